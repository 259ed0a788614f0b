/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a command left, read from the upper layers of its two overlays: all of its home, and among its files what
 * `exclude` names. A change elsewhere among the files matters only when it removes something that is kept: a directory
 * that is gone takes its node_modules along.
 *
 * In tiers without layers they are whole directories: then all that is kept is listed, and kept_compare() finds what
 * was changed.
 *
 * Every process of the command is dead, and the layers are thrown away afterwards. So a file that its owner may not
 * read is simply made readable here; the mode that is kept is the one it had.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/sha256.h"
#include "sandbox/snapshot_internal.h"
#include "text/glob.h"

#define EXCLUDE_MAX 64
#define CHUNK       (256 * KIB)

struct scan {
	struct ctx *ctx;
	const struct glob *exclude[EXCLUDE_MAX];
	size_t exclude_count;
	uint64_t size_max;
	char *chunk;
	struct manifest *out;
	const struct kept *copy; /* NULL: they are layers */
};

static int scan_dir(struct scan *s, int fd, struct str at, bool is_kept, unsigned depth, struct err *err);

/* Without "files/". */
static bool is_excluded(const struct scan *s, struct str path)
{
	struct str inside = str_from(path, sizeof SNAPSHOT_FILES);

	for (size_t i = 0; i < s->exclude_count; i++)
		if (glob_match(s->exclude[i], inside))
			return true;
	return false;
}

static int too_many(const struct scan *s, struct err *err)
{
	return err_set(err, ERR_TOO_LARGE,
		       "what the command left behind has more than %llu MiB or %d files (sandbox.snapshot_size); the "
		       "earlier state stays",
		       (unsigned long long)(s->size_max / MIB), SNAPSHOT_FILES_MAX);
}

static int add(struct scan *s, struct snap_entry entry, struct err *err)
{
	if (s->out->count == SNAPSHOT_FILES_MAX || (entry.kind == SNAP_FILE && entry.size > s->size_max) ||
	    s->out->bytes + entry.size > s->size_max)
		return too_many(s, err);
	if (entry.path.len > SNAPSHOT_PATH_MAX)
		return err_set(err, ERR_TOO_LARGE, "a path that the command left behind has more than %d bytes",
			       SNAPSHOT_PATH_MAX);
	manifest_add(s->ctx->arena, s->out, entry);
	return 0;
}

/* The file of the store, which was copied there and is as it was. */
static bool is_of_store(const struct scan *s, struct str path, const struct stat *st)
{
	const struct baseline *base = s->copy ? s->copy->base : NULL;
	struct str inside = str_from(path, sizeof SNAPSHOT_FILES);
	const size_t *at = base && base->index && str_starts(path, STR(SNAPSHOT_FILES "/"))
				   ? strmap_find(base->index, inside)
				   : NULL;
	const struct copied *c = at ? &base->copies[*at - 1] : NULL;

	return c && c->size == (uint64_t)st->st_size && c->inode == st->st_ino &&
	       c->changed_ns == clock_of_timespec(st->st_ctim);
}

/* The hash of a kept file that nobody has touched since it was copied; empty: it has to be read. */
static struct str known_hash(const struct scan *s, const struct snap_entry *entry, const struct stat *st)
{
	const struct snap_entry *was = s->copy ? manifest_find(&s->copy->copied, entry->path) : NULL;
	bool same = was && was->kind == SNAP_FILE && was->size == entry->size && was->mtime_ns == entry->mtime_ns &&
		    clock_of_timespec(st->st_ctim) < s->copy->copied_ns;

	return same ? was->hash : STR_NONE;
}

static int scan_file(struct scan *s, int here, const char *name, struct snap_entry entry, struct err *err)
{
	FD_SCOPE int fd = openat(here, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct sha256 sum;
	char *hex = arena_alloc_raw(s->ctx->arena, 65);
	uint64_t done = 0;
	ssize_t n = 1;

	if (fd < 0)
		return err_sys(err, errno, "a file that the command left behind cannot be read");
	if (entry.size > s->size_max)
		return too_many(s, err);
	sha256_begin(&sum);
	while (done < entry.size && n > 0) {
		n = read(fd, s->chunk, CHUNK);
		if (n > 0) {
			sha256_add(&sum, str_n(s->chunk, (size_t)n));
			done += (uint64_t)n;
		}
	}
	sha256_end(&sum, hex);
	entry.hash = str_n(hex, 64);
	if (done != entry.size)
		return err_sys(err, errno, "a file that the command left behind cannot be read");
	return add(s, entry, err);
}

static int scan_subdir(struct scan *s, int here, const char *name, struct snap_entry entry, bool is_kept,
		       unsigned depth, struct err *err)
{
	int below = openat(here, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), r = 0;
	char mark[4];

	if (below < 0)
		return err_sys(err, errno, "a directory that the command left behind cannot be read");
	if (depth == SNAPSHOT_DEPTH_MAX - 2) {
		close(below);
		return err_set(err, ERR_TOO_LARGE, "what the command left behind is more than %d directories deep",
			       SNAPSHOT_DEPTH_MAX);
	}
	entry.opaque = fgetxattr(below, "user.overlay.opaque", mark, sizeof mark) == 1 && mark[0] == 'y';
	entry.is_cover = !is_kept;
	if (is_kept || entry.opaque)
		r = add(s, entry, err);
	if (r) {
		close(below);
		return r;
	}
	return scan_dir(s, below, entry.path, is_kept, depth + 1, err);
}

static int scan_one(struct scan *s, int here, const char *name, struct str at, bool is_kept, unsigned depth,
		    struct err *err)
{
	struct snap_entry entry = {.path = arena_printf(s->ctx->arena, "%.*s/%s", STR_ARG(at), name), .pack = SNAP_NEW};
	struct stat st;

	if (fstatat(here, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return 0;
	is_kept = is_kept || is_excluded(s, entry.path);
	entry.mode = st.st_mode & 0777;
	entry.mtime_ns = clock_of_timespec(st.st_mtim);
	entry.is_cover = !is_kept;
	if (S_ISDIR(st.st_mode) || (S_ISREG(st.st_mode) && is_kept)) {
		mode_t needed = S_ISDIR(st.st_mode) ? 0700 : 0400;

		if ((st.st_mode & needed) != needed)
			(void)fchmodat(here, name, (st.st_mode & 0777) | needed, 0);
	}
	if (S_ISDIR(st.st_mode)) {
		entry.kind = SNAP_DIR;
		entry.mtime_ns = 0; /* it changes with every entry and nobody relies on it */
		return scan_subdir(s, here, name, entry, is_kept, depth, err);
	}
	if (s->copy && !is_kept)
		return 0;
	if (S_ISREG(st.st_mode) && is_of_store(s, entry.path, &st))
		return 0;
	if (S_ISREG(st.st_mode)) {
		entry.kind = SNAP_FILE;
		entry.size = is_kept ? (uint64_t)st.st_size : 0;
		entry.hash = known_hash(s, &entry, &st);
		if (entry.hash.len)
			return add(s, entry, err);
		return is_kept ? scan_file(s, here, name, entry, err) : add(s, entry, err);
	}
	if (S_ISCHR(st.st_mode) && st.st_rdev == makedev(0, 0)) {
		entry.kind = SNAP_GONE;
		entry.mode = 0;
		entry.mtime_ns = 0;
		entry.is_cover = !is_kept || str_starts(at, STR(SNAPSHOT_HOME)); /* nothing is below the home */
		return add(s, entry, err);
	}
	if (S_ISLNK(st.st_mode)) {
		char target[SNAPSHOT_PATH_MAX + 1];
		ssize_t n = readlinkat(here, name, target, sizeof target);

		entry.kind = SNAP_LINK;
		entry.mode = 0;
		if (n <= 0 || n > SNAPSHOT_PATH_MAX)
			return 0;
		entry.target = arena_str(s->ctx->arena, str_n(target, (size_t)n));
		return add(s, entry, err);
	}
	return 0; /* sockets and pipes end with the processes that used them */
}

/* Closes `fd`. */
static int scan_dir(struct scan *s, int fd, struct str at, bool is_kept, unsigned depth, struct err *err)
{
	DIR *dir = fdopendir(fd);
	struct dirent *e;
	int r = 0;

	if (!dir) {
		close(fd);
		return err_sys(err, errno, "cannot read what the command left behind");
	}
	while (r == 0 && (e = readdir(dir))) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		r = ctx_check(s->ctx, err);
		if (r == 0)
			r = scan_one(s, fd, e->d_name, at, is_kept, depth, err);
	}
	closedir(dir);
	return r;
}

static int scan_top(struct scan *s, int dir, const char *name, bool is_kept, struct err *err)
{
	int fd = dir < 0 ? -1 : open_beneath(dir, STR_NONE, O_RDONLY | O_DIRECTORY);

	if (dir < 0)
		return 0;
	return fd < 0 ? err_sys(err, -fd, "cannot read what the command left behind")
		      : scan_dir(s, fd, str_of(name), is_kept, 0, err);
}

int snapshot_scan(struct ctx *ctx, const struct kept *kept, int home, int files, const char *const *exclude,
		  uint64_t size_max, struct manifest *ret, struct err *err)
{
	struct scan s = {.ctx = ctx,
			 .size_max = size_max,
			 .out = ret,
			 .chunk = xmalloc(CHUNK),
			 .copy = kept->is_copied ? kept : NULL};
	int r = 0;

	*ret = (struct manifest){0};
	for (size_t i = 0; exclude && exclude[i] && i < EXCLUDE_MAX && r == 0; i++)
		r = glob_compile(ctx->arena, str_of(exclude[i]), GLOB_BASENAME, &s.exclude[s.exclude_count++], err);
	if (r == 0)
		r = scan_top(&s, home, SNAPSHOT_HOME, true, err);
	if (r == 0)
		r = scan_top(&s, files, SNAPSHOT_FILES, false, err);
	free(s.chunk);
	manifest_sort(ret);
	return r;
}

int snapshot_open(int home, int files, struct str path)
{
	bool is_home = str_starts(path, STR(SNAPSHOT_HOME "/"));

	return open_beneath(is_home ? home : files,
			    str_from(path, is_home ? sizeof SNAPSHOT_HOME : sizeof SNAPSHOT_FILES), O_RDONLY);
}
