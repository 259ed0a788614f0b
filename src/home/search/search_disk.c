/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of an index. Nothing here is synced: after a power cut a file may be short or a manifest may name one that
 * never reached the disk; checksums tell, and the index is built again.
 */
#include "home/search/search_disk.h"

#include "home/search/search.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/limits.h"

#define MANIFEST_MAX (256 * KIB)
#define SEGMENTS_MAX 4096

int index_dir_make(const char *dir, struct err *err)
{
	char path[4096];
	size_t n = strlen(dir);

	if (n >= sizeof path)
		return err_set(err, ERR_INVALID, "the directory of the search index has too long a name");
	memcpy(path, dir, n + 1);
	for (size_t i = 1; i <= n; i++) {
		if (path[i] != '/' && path[i])
			continue;
		path[i] = 0;
		if (mkdir(path, 0700) != 0 && errno != EEXIST && errno != EISDIR)
			return err_sys(err, errno, "create the directory of the search index");
		path[i] = dir[i];
	}
	return 0;
}

static const char *path_of(struct arena *arena, const char *dir, struct str name)
{
	return arena_printf(arena, "%s/%.*s", dir, STR_ARG(name)).ptr;
}

static bool is_name(struct str name)
{
	if (name.len != INDEX_NAME_LEN || !str_starts(name, STR("s-")))
		return false;
	for (size_t i = 2; i < name.len; i++)
		if (!strchr("0123456789abcdef", name.ptr[i]))
			return false;
	return true;
}

/* --- the manifest --- */

/* Rows have numbers of areas, so an index made with another list of areas is of no use. */
static struct str first_line(struct arena *arena)
{
	return arena_printf(arena, "stead-index 2 %.*s", STR_ARG(search_areas(arena, " ")));
}

bool index_manifest_parse(struct arena *arena, struct str text, struct index_manifest *ret)
{
	struct str rest = text, line;
	char sum[16];
	int64_t n;

	if (text.len < 22 || text.len > MANIFEST_MAX || !str_ends(text, STR("\n")))
		return false;
	hex_u64(hash_u64(str_first(text, text.len - 21), 0), sum);
	if (!str_eq(str_from(text, text.len - 21), arena_printf(arena, "sum %.16s\n", sum)))
		return false;
	rest.len -= 21;
	*ret = (struct index_manifest){.names = ARENA_ARRAY(arena, struct str, SEGMENTS_MAX)};
	if (!str_cut(&rest, '\n', &line) || !str_eq(line, first_line(arena)))
		return false;
	while (str_cut(&rest, '\n', &line)) {
		if (!line.len)
			continue;
		if (str_starts(line, STR("revision ")) && str_to_i64(str_from(line, 9), &n) && n >= 0)
			ret->revision = (uint64_t)n;
		else if (str_starts(line, STR("generation ")) && str_to_i64(str_from(line, 11), &n) && n > 0)
			ret->generation = (uint64_t)n;
		else if (is_name(line) && ret->count < SEGMENTS_MAX)
			ret->names[ret->count++] = line;
		else
			return false;
	}
	return ret->generation > 0;
}

void index_manifest_read(struct arena *arena, const char *dir, struct index_manifest *ret)
{
	FD_SCOPE int fd = open(path_of(arena, dir, STR("manifest")), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	char *text;
	size_t len = 0;

	*ret = (struct index_manifest){0};
	if (fd < 0)
		return;
	text = arena_alloc_raw(arena, MANIFEST_MAX + 1);
	for (;;) {
		ssize_t n = read(fd, text + len, MANIFEST_MAX + 1 - len);

		if (n <= 0)
			break;
		len += (size_t)n;
	}
	if (!index_manifest_parse(arena, str_n(text, len), ret))
		*ret = (struct index_manifest){0};
}

int index_manifest_write(struct arena *arena, const char *dir, const struct index_manifest *manifest, struct err *err)
{
	const char *path = path_of(arena, dir, STR("manifest"));
	const char *tmp = arena_printf(arena, "%s.%llx", path, (unsigned long long)random_u64()).ptr;
	struct buf buf;
	char sum[16];
	FD_SCOPE int fd = -1;

	buf_init(&buf, arena, MANIFEST_MAX);
	buf_add(&buf, first_line(arena));
	buf_printf(&buf, "\nrevision %llu\ngeneration %llu\n", (unsigned long long)manifest->revision,
		   (unsigned long long)manifest->generation);
	for (size_t i = 0; i < manifest->count; i++)
		buf_printf(&buf, "%.*s\n", STR_ARG(manifest->names[i]));
	hex_u64(hash_u64(buf_str(&buf), 0), sum);
	buf_printf(&buf, "sum %.16s\n", sum);
	fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, buf.ptr, buf.len) != (ssize_t)buf.len || rename(tmp, path) != 0) {
		int sys = errno;

		unlink(tmp);
		return err_sys(err, sys, "write the list of the search index");
	}
	return 0;
}

int index_lock(const char *dir)
{
	char path[4096];
	int fd;

	if (snprintf(path, sizeof path, "%s/lock", dir) >= (int)sizeof path)
		return -1;
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0) {
		close(fd);
		return -1;
	}
	return fd;
}

/* --- segments --- */

static int open_all(struct arena *arena, const char *dir, const struct index_manifest *m,
		    struct words_segment ***ret_segments, struct err *err)
{
	struct words_segment **list = ARENA_ARRAY(arena, struct words_segment *, m->count + 1);
	int r = 0;
	size_t n = 0;

	while (!r && n < m->count) {
		r = words_segment_open(path_of(arena, dir, m->names[n]), &list[n], err);
		n += r == 0;
	}
	while (r && n)
		words_segment_unref(list[--n]);
	*ret_segments = list;
	return r;
}

int index_open(struct arena *arena, const char *dir, struct index_manifest *ret_manifest,
	       struct words_segment ***ret_segments, struct err *err)
{
	uint64_t before = 0;

	/* Who merges removes files behind our back: then there is a newer manifest. */
	for (;;) {
		int r;

		index_manifest_read(arena, dir, ret_manifest);
		r = open_all(arena, dir, ret_manifest, ret_segments, err);
		if (r != -ERR_NOT_FOUND || ret_manifest->generation == before)
			return r;
		before = ret_manifest->generation;
	}
}

int index_save(struct arena *arena, const char *dir, const struct words_segment *segment, struct str *ret_name,
	       struct err *err)
{
	char hex[16];

	hex_u64(random_u64(), hex);
	*ret_name = arena_printf(arena, "s-%.16s", hex);
	return words_segment_save(segment, path_of(arena, dir, *ret_name), err);
}

static bool stamp_path(const char *dir, char *path, size_t size)
{
	return snprintf(path, size, "%s/compared", dir) < (int)size;
}

void index_stamp(const char *dir)
{
	char path[4096];
	FD_SCOPE int fd = -1;

	if (stamp_path(dir, path, sizeof path))
		fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd >= 0)
		(void)futimens(fd, NULL);
}

int64_t index_stamp_age(const char *dir)
{
	struct stat st;
	char path[4096];
	int64_t age;

	if (!stamp_path(dir, path, sizeof path) || lstat(path, &st) != 0)
		return INT64_MAX;
	age = clock_real_ns() - (int64_t)st.st_mtim.tv_sec * 1000000000;
	return age >= 0 ? age : INT64_MAX;
}

void index_sweep_dir(struct arena *arena, const char *dir, const struct index_manifest *manifest)
{
	DIR *d = opendir(dir);
	struct dirent *e;

	while (d && (e = readdir(d))) {
		struct str name = str_of(e->d_name);
		bool named = str_is(name, "manifest") || str_is(name, "lock") || name.ptr[0] == '.';

		for (size_t i = 0; !named && i < manifest->count; i++)
			named = str_eq(manifest->names[i], name);
		if (!named && (is_name(name) || str_starts(name, STR("manifest."))))
			unlink(path_of(arena, dir, name));
	}
	if (d)
		closedir(d);
}

void index_drop_vectors(struct arena *arena, const char *dir)
{
	DIR *d = opendir(dir);

	for (struct dirent *e; d && (e = readdir(d));)
		if (str_starts(str_of(e->d_name), STR(INDEX_VECTORS)))
			unlink(path_of(arena, dir, str_of(e->d_name)));
	if (d)
		closedir(d);
}
