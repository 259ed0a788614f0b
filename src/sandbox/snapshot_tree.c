/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Restored files: a directory of this machine that has what the manifest says, and that a command sees as a layer below
 * the one it writes to. So a command starts at the same speed whatever was installed, and nothing is copied while the
 * snapshot stays the same.
 *
 * A tree is named after its snapshot, is never changed while a command uses it (a shared lock on its directory), and is
 * only given its name when it is complete. For a new snapshot, the tree of the one before is brought up to date when
 * nobody uses it: what is equal by hash stays, the rest is read from the store and verified. If it is in use, a second
 * tree is made from hard links to it. Trees are a cache: one that is lost is made again, and those of another start of
 * the machine are not trusted, because nothing is synced.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/sha256.h"
#include "sandbox/snapshot_internal.h"
#include "store/stores.h"

#define UNFINISHED "tmp-"
#define MANIFEST   "manifest"
#define ATTEMPTS   5

struct str snapshot_machine(struct arena *arena)
{
	char boot[64] = {0}, space[64] = {0};
	FD_SCOPE int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, boot, sizeof boot - 1) <= 0 ||
	    readlink("/proc/self/ns/pid", space, sizeof space - 1) <= 0)
		return STR_NONE;
	return hash_hex128(arena, arena_printf(arena, "%s%s", boot, space));
}

const char *snapshot_started(struct arena *arena, pid_t pid)
{
	char path[64], text[1024];
	struct str rest, word = STR_NONE;
	ssize_t n;

	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	{
		FD_SCOPE int fd = open(path, O_RDONLY | O_CLOEXEC);

		n = fd < 0 ? -1 : read(fd, text, sizeof text);
	}
	if (n <= 0)
		return "-";
	rest = str_n(text, (size_t)n);
	rest = str_from(rest, str_rfind_char(rest, ')') + 2); /* the third field, after the name */
	for (int i = 0; i < 20; i++)
		if (!str_cut(&rest, ' ', &word))
			return "-";
	return arena_cstr(arena, word);
}

struct tree {
	struct ctx *ctx;
	struct store *store;
	uid_t uid;
	gid_t gid;
	bool gives; /* root: files belong to `uid` */
	int dir;    /* the tree */
	const struct manifest *m;
	/* The tree that it is made from: an older state of itself, or another one. */
	struct manifest old;
	int linked; /* the other one; -1: it is itself */
};

/* --- names in a tree --- */

/* The directory that has the path, and the last part of it in `ret_name`. -errno. */
static int open_parent(const struct tree *t, struct str path, char ret_name[256])
{
	size_t slash = str_rfind_char(path, '/');
	struct str name = str_from(path, slash + 1);

	memcpy(ret_name, name.ptr, name.len);
	ret_name[name.len] = 0;
	return open_beneath(t->dir, str_first(path, slash), O_RDONLY | O_DIRECTORY);
}

static void give(const struct tree *t, int at, const char *name)
{
	if (t->gives)
		(void)!fchownat(at, name, t->uid, t->gid, AT_SYMLINK_NOFOLLOW);
}

/* Directories above a path that the manifest does not name. */
static void make_parents(const struct tree *t, struct str path)
{
	char text[SNAPSHOT_PATH_MAX + 1];

	for (size_t i = sizeof SNAPSHOT_HOME; i < path.len; i++) {
		struct str above = str_first(path, i);

		if (path.ptr[i] != '/' || manifest_find(t->m, above))
			continue;
		memcpy(text, above.ptr, above.len);
		text[above.len] = 0;
		if (mkdirat(t->dir, text, 0755) == 0)
			give(t, t->dir, text);
	}
}

static const struct snap_entry *unchanged(const struct tree *t, const struct snap_entry *e)
{
	const struct snap_entry *old = manifest_find(&t->old, e->path);

	return old && snap_entry_same(old, e) ? old : NULL;
}

/* --- files --- */

/* Files that are read from one pack, in the order of their places. */
struct reading {
	struct tree *t;
	struct snap_entry **list; /* sorted by offset */
	size_t count, at;         /* the one that is being written */
	int fd;                   /* its file; -1: not open */
	uint64_t done;
	struct sha256 sum;
};

static int make_file(struct tree *t, const struct snap_entry *e)
{
	char name[256];
	FD_SCOPE int parent = open_parent(t, e->path, name);

	return parent < 0 ? parent : openat(parent, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

/* Mode, time and owner; closes it. */
static int finish_file(const struct tree *t, const struct snap_entry *e, int fd, struct err *err)
{
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, clock_timespec(e->mtime_ns)};
	bool ok =
		(!t->gives || fchown(fd, t->uid, t->gid) == 0) && fchmod(fd, e->mode) == 0 && futimens(fd, times) == 0;
	int sys = errno;

	close(fd);
	return ok ? 0 : err_sys(err, sys, "cannot finish a kept file");
}

static int end_file(struct reading *r, struct err *err)
{
	const struct snap_entry *e = r->list[r->at];
	char hex[65];
	int fd = r->fd;

	r->fd = -1;
	r->done = 0;
	r->at++;
	sha256_end(&r->sum, hex);
	if (!str_is(e->hash, hex)) {
		close(fd);
		return err_set(err, ERR_CORRUPT, "the content of \"%.*s\" is damaged",
			       STR_ARG(utf8_first(e->path, 200)));
	}
	return finish_file(r->t, e, fd, err);
}

static int begin_file(struct reading *r, struct err *err)
{
	r->fd = make_file(r->t, r->list[r->at]);
	sha256_begin(&r->sum);
	return r->fd < 0 ? err_sys(err, -r->fd, "cannot write a kept file") : 0;
}

static int push_bytes(void *arg, const void *bytes, size_t len, struct err *err)
{
	struct reading *r = arg;
	struct str rest = str_n(bytes, len);
	int code = 0;

	while (code == 0 && rest.len && r->at < r->count) {
		struct str part = str_first(rest, (size_t)(r->list[r->at]->size - r->done));
		ssize_t n;

		if (r->fd < 0)
			code = begin_file(r, err);
		if (code)
			break;
		n = write(r->fd, part.ptr, part.len);
		if (n < 0)
			return err_sys(err, errno, "cannot write a kept file");
		sha256_add(&r->sum, str_first(part, (size_t)n));
		r->done += (uint64_t)n;
		rest = str_from(rest, (size_t)n);
		if (r->done == r->list[r->at]->size)
			code = end_file(r, err);
	}
	return code;
}

/* Files that are next to each other in a pack, with one read. */
static int read_run(struct tree *t, struct snap_entry **list, size_t count, struct err *err)
{
	const struct snap_entry *last = list[count - 1];
	struct reading r = {.t = t, .list = list, .count = count, .fd = -1};
	struct sink sink = {.push = push_bytes, .arg = &r};
	struct store_range range = {list[0]->offset, last->offset + last->size - list[0]->offset};
	int code =
		store_read_stream(t->store, t->ctx, snapshot_pack_path(t->ctx->arena, t->m->packs[list[0]->pack].hash),
				  range, &sink, NULL, err);

	if (r.fd >= 0)
		close(r.fd);
	if (code == 0 && r.at != count)
		code = err_set(err, ERR_CORRUPT, "a pack is shorter than its manifest says");
	return code;
}

static int empty_file(struct tree *t, const struct snap_entry *e, struct err *err)
{
	int fd = make_file(t, e);

	return fd < 0 ? err_sys(err, -fd, "cannot write a kept file") : finish_file(t, e, fd, err);
}

/* A file of a tree that its owner may not read: the mode that counts is in the list. */
static int open_shut(int dir, struct str path)
{
	char text[SNAPSHOT_PATH_MAX + 1];
	struct stat st;

	for (size_t i = 1; i <= path.len && i < sizeof text; i++) {
		if (i < path.len && path.ptr[i] != '/')
			continue;
		memcpy(text, path.ptr, i);
		text[i] = 0;
		if (fstatat(dir, text, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISLNK(st.st_mode))
			(void)fchmodat(dir, text, (st.st_mode & 0777) | (S_ISDIR(st.st_mode) ? 0500 : 0400), 0);
	}
	return open_beneath(dir, path, O_RDONLY);
}

/* The same content as that of the file `from` of the tree `dir`. */
static int copy_file(struct tree *t, int dir, struct str from, const struct snap_entry *e, struct err *err)
{
	char bytes[64 * 1024];
	int opened = open_beneath(dir, from, O_RDONLY);
	FD_SCOPE int in = opened == -EACCES ? open_shut(dir, from) : opened;
	int out = in < 0 ? -1 : make_file(t, e);
	ssize_t n = out < 0 ? -1 : 1;

	if (in < 0)
		errno = -in;

	while (n > 0 && (n = read(in, bytes, sizeof bytes)) > 0)
		if (write(out, bytes, (size_t)n) != n)
			n = -1;
	if (n < 0) {
		if (out >= 0)
			close(out);
		return err_sys(err, errno, "cannot copy a kept file");
	}
	return finish_file(t, e, out, err);
}

static int by_place(const void *a, const void *b)
{
	const struct snap_entry *x = *(struct snap_entry *const *)a, *y = *(struct snap_entry *const *)b;

	if (x->pack != y->pack)
		return x->pack < y->pack ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static int fetch_files(struct tree *t, struct snap_entry **list, size_t count, struct err *err)
{
	size_t kept = 0, from = 0;
	int r = 0;

	if (!count)
		return 0;
	qsort(list, count, sizeof *list, by_place);
	for (size_t i = 0; i < count; i++) /* equal contents once */
		if (!kept || by_place(&list[kept - 1], &list[i]) != 0) {
			struct snap_entry *first = list[i];

			list[i] = list[kept];
			list[kept++] = first;
		}
	for (size_t i = 1; i <= kept && r == 0; i++)
		if (i == kept || list[i]->pack != list[from]->pack ||
		    list[i]->offset != list[i - 1]->offset + list[i - 1]->size) {
			r = read_run(t, &list[from], i - from, err);
			from = i;
		}
	for (size_t i = kept; i < count && r == 0; i++) {
		struct snap_entry **same = bsearch(&list[i], list, kept, sizeof *list, by_place);

		r = same ? copy_file(t, t->dir, (*same)->path, list[i], err)
			 : err_set(err, ERR_CORRUPT, "a kept file has no directory");
	}
	return r;
}

/* --- a tree --- */

static void remove_in(int at, const char *name);

static void empty_dir(int fd)
{
	DIR *dir = fdopendir(fd);
	struct dirent *e;

	while (dir && (e = readdir(dir)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			remove_in(fd, e->d_name);
	if (dir)
		closedir(dir);
	else
		close(fd);
}

static void remove_in(int at, const char *name)
{
	int fd;

	if (unlinkat(at, name, 0) == 0 || errno == ENOENT)
		return;
	fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno == EACCES && fchmodat(at, name, 0700, 0) == 0)
		fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0) {
		(void)fchmod(fd, 0700);
		empty_dir(fd);
	}
	(void)unlinkat(at, name, AT_REMOVEDIR);
}

/* Directories above a path that nothing is in any longer and that the manifest does not name. */
static void remove_parents(const struct tree *t, struct str path)
{
	char text[SNAPSHOT_PATH_MAX + 1];

	for (;;) {
		path = str_first(path, str_rfind_char(path, '/'));
		if (str_rfind_char(path, '/') == path.len || manifest_find(t->m, path))
			return;
		memcpy(text, path.ptr, path.len);
		text[path.len] = 0;
		if (unlinkat(t->dir, text, AT_REMOVEDIR) != 0)
			return;
	}
}

/* Removes what differs from the new state; what is in a directory goes before it. */
static void remove_changed(struct tree *t)
{
	for (size_t i = t->old.count; i-- > 0;) {
		const struct snap_entry *old = &t->old.entries[i], *now = manifest_find(t->m, old->path);
		char name[256];
		int parent;

		if (now && (snap_entry_same(old, now) || (old->kind == SNAP_DIR && now->kind == SNAP_DIR)))
			continue;
		parent = open_parent(t, old->path, name);
		if (parent < 0)
			continue;
		if (unlinkat(parent, name, old->kind == SNAP_DIR ? AT_REMOVEDIR : 0) != 0)
			remove_in(parent, name);
		close(parent);
		remove_parents(t, old->path);
	}
}

/* Directories that may not be written to are opened up until the tree is finished. */
static void open_up(struct tree *t)
{
	for (size_t i = 0; i < t->old.count; i++) {
		char name[256];
		int parent;

		if (t->old.entries[i].kind != SNAP_DIR || (t->old.entries[i].mode & 0700) == 0700)
			continue;
		parent = open_parent(t, t->old.entries[i].path, name);
		if (parent >= 0) {
			(void)fchmodat(parent, name, 0700, 0);
			close(parent);
		}
	}
}

static bool make_link(const struct snap_entry *e, int parent, const char *name)
{
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, clock_timespec(e->mtime_ns)};
	char target[SNAPSHOT_PATH_MAX + 1];

	memcpy(target, e->target.ptr, e->target.len);
	target[e->target.len] = 0;
	return symlinkat(target, parent, name) == 0 && utimensat(parent, name, times, AT_SYMLINK_NOFOLLOW) == 0;
}

/* A hard link to the file of the other tree. */
static bool share_file(const struct tree *t, const struct snap_entry *e, int parent, const char *name)
{
	struct tree other = *t;
	char same[256];

	other.dir = t->linked;
	{
		FD_SCOPE int from = open_parent(&other, e->path, same);

		return from >= 0 && linkat(from, same, parent, name, 0) == 0;
	}
}

/* Everything but the contents of files. *ret_fetch: the file has to be read. */
static int make_entry(struct tree *t, const struct snap_entry *e, bool *ret_fetch, struct err *err)
{
	char name[256];
	FD_SCOPE int parent = open_parent(t, e->path, name);
	bool ok = parent >= 0;

	*ret_fetch = false;
	if (!ok) {
		errno = -parent;
	} else if (e->kind == SNAP_DIR) {
		ok = mkdirat(parent, name, 0700) == 0 || errno == EEXIST;
	} else if (e->kind == SNAP_LINK) {
		ok = make_link(e, parent, name);
	} else if (e->kind == SNAP_GONE) {
		ok = mknodat(parent, name, S_IFCHR | 0600, makedev(0, 0)) == 0;
	} else {
		*ret_fetch = t->linked < 0 || !unchanged(t, e) || !share_file(t, e, parent, name);
		return 0;
	}
	if (ok)
		give(t, parent, name);
	return ok ? 0 : err_sys(err, errno, "cannot make \"%.*s\" in the cache", STR_ARG(utf8_first(e->path, 200)));
}

static int finish_dirs(struct tree *t, struct err *err)
{
	for (size_t i = t->m->count; i-- > 0;) {
		const struct snap_entry *e = &t->m->entries[i];

		if (e->kind != SNAP_DIR)
			continue;
		{
			FD_SCOPE int fd = open_beneath(t->dir, e->path, O_RDONLY | O_DIRECTORY);

			if (fd < 0 ||
			    (e->opaque ? fsetxattr(fd, "user.overlay.opaque", "y", 1, 0) != 0
				       : fremovexattr(fd, "user.overlay.opaque") != 0 && errno != ENODATA &&
						 errno != ENOTSUP) ||
			    fchmod(fd, e->mode) != 0)
				return err_sys(err, errno, "cannot finish a directory of the cache");
		}
	}
	return 0;
}

static int write_manifest(struct tree *t, struct err *err)
{
	struct str text;
	int r = manifest_format(t->ctx->arena, t->m, &text, err);
	FD_SCOPE int fd =
		r ? -1 : openat(t->dir, MANIFEST, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (r)
		return r;
	while (fd >= 0 && text.len) {
		ssize_t n = write(fd, text.ptr, text.len);

		if (n <= 0)
			return err_sys(err, errno, "cannot write to the cache of kept files");
		text = str_from(text, (size_t)n);
	}
	return fd < 0 ? err_sys(err, errno, "cannot write to the cache of kept files") : 0;
}

static int fill(struct tree *t, struct err *err)
{
	struct snap_entry **fetch = ARENA_ARRAY(t->ctx->arena, struct snap_entry *, t->m->count + 1);
	size_t count = 0;
	int r = 0;

	if (t->linked < 0) {
		open_up(t);
		remove_changed(t);
	}
	for (size_t i = 0; i < t->m->count && r == 0; i++) {
		struct snap_entry *e = &t->m->entries[i];
		bool wanted;

		if (i % 256 == 0)
			r = ctx_check(t->ctx, err);
		if (r || (t->linked < 0 && unchanged(t, e) && e->kind != SNAP_DIR))
			continue;
		make_parents(t, e->path);
		r = make_entry(t, e, &wanted, err);
		if (r == 0 && wanted && e->size == 0)
			r = empty_file(t, e, err);
		else if (r == 0 && wanted)
			fetch[count++] = e;
	}
	if (r == 0)
		r = fetch_files(t, fetch, count, err);
	if (r == 0)
		r = finish_dirs(t, err);
	return r ? r : write_manifest(t, err);
}

/* --- the cache --- */

static bool make_dirs(struct arena *arena, const char *path)
{
	struct str whole = str_of(path);

	for (size_t i = 1; i <= whole.len; i++)
		if (i == whole.len || whole.ptr[i] == '/')
			if (mkdir(arena_cstr(arena, str_first(whole, i)), 0700) != 0 && errno != EEXIST)
				return false;
	return true;
}

static const char *tree_name(struct arena *arena, struct str id)
{
	struct str machine = snapshot_machine(arena);

	return arena_printf(arena, "%.*s-%.*s", STR_ARG(str_first(machine, 16)), STR_ARG(id)).ptr;
}

/* A finished tree that others do not change as long as the lock is open; -1: there is none. */
static int use_tree(int cache, const char *name)
{
	int fd = openat(cache, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat opened, named;

	if (fd < 0)
		return -1;
	if (flock(fd, LOCK_SH) == 0 && fstat(fd, &opened) == 0 &&
	    fstatat(cache, name, &named, AT_SYMLINK_NOFOLLOW) == 0 && opened.st_ino == named.st_ino &&
	    opened.st_dev == named.st_dev)
		return fd;
	close(fd);
	return -1;
}

static bool read_manifest(struct ctx *ctx, int dir, struct manifest *ret)
{
	FD_SCOPE int fd = openat(dir, MANIFEST, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	struct err ignored;
	size_t done = 0;
	char *text;

	if (fd < 0 || fstat(fd, &st) != 0 || (uint64_t)st.st_size > SNAPSHOT_MANIFEST_MAX)
		return false;
	text = arena_alloc_raw(ctx->arena, (size_t)st.st_size + 1);
	while (done < (size_t)st.st_size) {
		ssize_t n = read(fd, text + done, (size_t)st.st_size - done);

		if (n <= 0)
			return false;
		done += (size_t)n;
	}
	return manifest_parse(ctx->arena, str_n(text, done), ret, &ignored) == 0;
}

/* Finds a tree to begin with, and removes what nobody uses. With the lock of the cache. */
static void look_around(struct tree *t, int cache, const char *ours, const char *unfinished)
{
	int listed = openat(cache, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = listed < 0 ? NULL : fdopendir(listed);
	struct dirent *e;

	if (!dir && listed >= 0)
		close(listed);
	while (dir && (e = readdir(dir))) {
		int fd = e->d_name[0] == '.'
				 ? -1
				 : openat(cache, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		bool is_free = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
		bool is_tree = fd >= 0 && strncmp(e->d_name, ours, 17) == 0;

		if (fd < 0)
			continue;
		if (is_tree && t->dir < 0 && t->linked < 0 && read_manifest(t->ctx, fd, &t->old)) {
			if (is_free && renameat(cache, e->d_name, cache, unfinished) == 0)
				t->dir = fd;
			else
				t->linked = fd;
			continue;
		}
		if (is_free)
			remove_in(cache, e->d_name);
		close(fd);
	}
	if (dir)
		closedir(dir);
}

void snapshot_forget(const char *cache)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};
	struct tree none = {.ctx = &ctx, .dir = -1, .linked = -1};
	FD_SCOPE int fd = open(cache, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) != 0)
		return;
	look_around(&none, fd, "there is no tree so", "");
	(void)rmdir(cache);
}

static int make_tree(struct tree *t, int cache, const char *name, struct err *err)
{
	const char *unfinished = arena_printf(t->ctx->arena, UNFINISHED "%s", name).ptr;
	static const char *const parts[] = {SNAPSHOT_HOME, SNAPSHOT_FILES};
	int r = 0;

	remove_in(cache, unfinished);
	look_around(t, cache, name, unfinished);
	if (t->dir < 0) {
		if (t->linked < 0)
			t->old = (struct manifest){0};
		if (mkdirat(cache, unfinished, 0700) == 0)
			t->dir = openat(cache, unfinished, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (t->dir < 0 || flock(t->dir, LOCK_EX | LOCK_NB) != 0)
			r = err_sys(err, errno, "cannot make a directory in the cache of kept files");
	}
	for (size_t i = 0; i < COUNT(parts) && r == 0; i++) {
		if (mkdirat(t->dir, parts[i], 0755) != 0 && errno != EEXIST)
			r = err_sys(err, errno, "cannot make a directory in the cache of kept files");
		give(t, t->dir, parts[i]);
	}
	give(t, cache, unfinished);
	if (r == 0)
		r = fill(t, err);
	if (r == 0 && renameat(cache, unfinished, cache, name) != 0)
		r = err_sys(err, errno, "cannot name a tree of kept files");
	if (r)
		remove_in(cache, unfinished);
	if (t->linked >= 0)
		close(t->linked);
	if (t->dir >= 0)
		close(t->dir);
	return r;
}

static int restore_once(struct ctx *ctx, const struct sandbox_keep *keep, uid_t uid, gid_t gid, struct kept *ret,
			struct err *err)
{
	struct tree t = {.ctx = ctx, .store = ret->store, .uid = uid, .gid = gid, .dir = -1, .linked = -1};
	FD_SCOPE int cache = -1;
	struct snap_head head;
	const char *name;
	int r = snapshot_id(ret->store, ctx, &ret->id, err);

	if (r || !ret->id.len)
		return r;
	if (!make_dirs(ctx->arena, keep->cache) || (cache = open(keep->cache, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		return err_sys(err, errno, "cannot make the cache of kept files \"%.200s\"", keep->cache);
	name = tree_name(ctx->arena, ret->id);
	ret->dir = arena_printf(ctx->arena, "%s/%s", keep->cache, name).ptr;
	ret->lock = use_tree(cache, name);
	if (ret->lock >= 0)
		return 0;
	if (flock(cache, LOCK_EX) != 0)
		return err_sys(err, errno, "cannot lock the cache of kept files");
	ret->lock = use_tree(cache, name); /* somebody else has made it */
	if (ret->lock >= 0)
		return 0;
	r = snapshot_head(ret->store, ctx, &head, err);
	if (r == 0 && !str_eq(head.id, ret->id))
		return err_set(err, ERR_NOT_FOUND, "a newer snapshot was saved");
	t.gives = user_is_root();
	t.m = &head.manifest;
	if (r == 0)
		r = make_tree(&t, cache, name, err);
	if (r == 0)
		ret->lock = use_tree(cache, name);
	return r == 0 && ret->lock < 0 ? err_set(err, ERR_UNAVAILABLE, "the cache of kept files was removed") : r;
}

int kept_restore(struct ctx *ctx, const struct sandbox_keep *keep, uid_t uid, gid_t gid, struct kept *ret,
		 struct err *err)
{
	int r = -ERR_NOT_FOUND;

	for (int i = 0; i < ATTEMPTS && r == -ERR_NOT_FOUND; i++) { /* a pack may go when a newer snapshot is saved */
		kept_release(ret);
		ret->store = store_prefix_new(store_share(keep->store), keep->dir);
		r = restore_once(ctx, keep, uid, gid, ret, err);
	}
	if (r == -ERR_NOT_FOUND)
		r = err_set(err, ERR_CORRUPT, "a pack of it is missing");
	if (r == -ERR_CORRUPT)
		err_prefix(err,
			   "what earlier commands left behind cannot be restored (drop it with 'stead sandbox drop')");
	return r;
}

/* --- for a command without layers --- */

/* Takes the place of what is there. */
static int place_copy(struct tree *t, int from, const struct snap_entry *e, struct err *err)
{
	char name[256];
	bool ignored;

	make_parents(t, e->path);
	{
		FD_SCOPE int parent = open_parent(t, e->path, name);

		if (parent < 0)
			return err_sys(err, -parent,
				       "what earlier commands left behind cannot be copied for the command");
		if (e->kind != SNAP_DIR || e->opaque)
			work_remove(parent, name);
		else
			(void)unlinkat(parent, name, 0); /* which leaves a directory */
	}
	if (e->kind == SNAP_GONE)
		return 0;
	return e->kind == SNAP_FILE ? copy_file(t, from, e->path, e, err) : make_entry(t, e, &ignored, err);
}

static int place_copies(struct tree *t, int from, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < t->m->count && r == 0; i++) {
		r = ctx_check(t->ctx, err);
		if (r == 0)
			r = place_copy(t, from, &t->m->entries[i], err);
	}
	for (size_t i = t->m->count; i-- > 0 && r == 0;) {
		const struct snap_entry *e = &t->m->entries[i];
		FD_SCOPE int fd = e->kind == SNAP_DIR ? open_beneath(t->dir, e->path, O_RDONLY | O_DIRECTORY) : -1;

		if (fd >= 0 && fchmod(fd, e->mode) != 0)
			r = err_sys(err, errno, "a directory for the command cannot be finished");
	}
	return r;
}

int kept_copy(struct ctx *ctx, struct kept *kept, const char *work, uid_t uid, gid_t gid, struct err *err)
{
	struct tree t = {.ctx = ctx, .uid = uid, .gid = gid, .gives = user_is_root(), .m = &kept->copied, .linked = -1};
	FD_SCOPE int dir = open(work, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st;
	int r;

	kept->is_copied = true;
	if (!kept->dir)
		return 0;
	if (dir < 0 || !read_manifest(ctx, kept->lock, &kept->copied))
		return err_set(err, ERR_UNAVAILABLE,
			       "the cache of what earlier commands left behind cannot be read; remove it: \"%.200s\"",
			       kept->dir);
	t.dir = dir;
	r = place_copies(&t, kept->lock, err);
	if (r == 0 && (fchmod(dir, 0700) != 0 || fstat(dir, &st) != 0)) /* its time of change is now */
		r = err_sys(err, errno, "the command's directory cannot be examined");
	if (r == 0)
		kept->copied_ns = clock_of_timespec(st.st_ctim);
	return r;
}

void kept_compare(struct arena *arena, const struct kept *kept, const struct manifest *all, struct manifest *ret)
{
	struct strmap *store = kept->base ? kept->base->index : NULL;

	*ret = (struct manifest){0};
	for (size_t i = 0; i < all->count; i++) {
		struct snap_entry e = all->entries[i];
		const struct snap_entry *was = manifest_find(&kept->copied, e.path);

		if (was && was->kind == SNAP_DIR && e.kind == SNAP_DIR)
			e.opaque = was->opaque;
		if (!was || !snap_entry_same(was, &e))
			manifest_add(arena, ret, e);
	}
	for (size_t i = 0; i < kept->copied.count; i++) {
		struct snap_entry e = {.kind = SNAP_GONE, .path = kept->copied.entries[i].path, .pack = SNAP_NEW};

		if (kept->copied.entries[i].kind == SNAP_GONE || manifest_find(all, e.path))
			continue;
		/* a mark is only needed where the store has something that would show again */
		e.is_cover = !store || str_starts(e.path, STR(SNAPSHOT_HOME)) ||
			     !strmap_find(store, str_from(e.path, sizeof SNAPSHOT_FILES));
		manifest_add(arena, ret, e);
	}
	manifest_sort(ret);
}

void kept_release(struct kept *kept)
{
	if (kept->lock >= 0)
		close(kept->lock);
	store_destroy(kept->store);
	*kept = (struct kept){.lock = -1};
}
