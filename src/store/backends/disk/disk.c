/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store in a directory of the host. The files are ordinary files: other programs may read and change them, and are
 * noticed by their versions. What other programs cannot do is lead the store out of its directory: see disk_fs.c for
 * how paths are resolved, disk_write.c for how bytes become durable, docs/decisions/0003 and 0004 for why.
 *
 * A version is a hash of inode, size, mtime and ctime, so a list gives versions for the price of a stat, and a change
 * by any program gives a new one. A hash of the content was rejected: every list would read every file.
 */
#include <errno.h>
#include <time.h>

#include "store/backends/disk/disk.h"
#include "store/stores.h"

#define READ_TRIES 100 /* of a file that others keep replacing */

/* 0 or -errno. */
static int stat_once(const struct disk *d, struct wpath path, struct stat *ret)
{
	FD_SCOPE int fd = -1;

	if (!wpath_is_root(path) && str_find_char(path.s, '/') == path.s.len) {
		char name[PATH_NAME_MAX + 1];

		disk_name(path, name);
		return disk_lstat(d->root, name, ret);
	}
	fd = disk_open_path(d, path, O_PATH | O_NOFOLLOW);
	return fd < 0 ? fd : fstat(fd, ret) < 0 ? -errno : 0;
}

static int disk_stat(struct store *s, struct ctx *ctx, struct wpath path, struct store_stat *ret_stat, struct err *err)
{
	struct disk *d = disk_of(s);
	unsigned round = 0;
	struct stat st;
	int sys;

	if (disk_reserved(path))
		return store_not_found(err);
	do
		sys = stat_once(d, path, &st);
	while (sys == 0 && disk_is_going(d, &st, round++));
	if (sys < 0)
		return sys == -ENOTDIR ? store_not_found(err) : disk_fail(err, -sys);
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return disk_fail_kind(err, st.st_mode);
	disk_fill_stat(d, ctx->arena, &st, ret_stat);
	return 0;
}

/* Reads up to `len` bytes at `offset`, fewer only at the end of the file. */
static int read_full(int fd, char *buf, size_t len, uint64_t offset, size_t *ret_len, struct err *err)
{
	size_t have = 0;

	while (have < len) {
		ssize_t n = pread(fd, buf + have, len - have, (off_t)(offset + have));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return disk_fail(err, errno);
		if (n == 0)
			break; /* the file was truncated in the meantime */
		have += (size_t)n;
	}
	*ret_len = have;
	return 0;
}

static int read_chunks(struct ctx *ctx, int fd, uint64_t from, uint64_t len, const struct sink *sink, struct err *err)
{
	size_t cap = len < STREAM_CHUNK ? (size_t)len : STREAM_CHUNK;
	char *buf = xmalloc(cap + 1);
	int r = 0;

	while (r == 0 && len) {
		size_t n = 0;

		r = ctx_check(ctx, err);
		if (r == 0)
			r = read_full(fd, buf, len < cap ? (size_t)len : cap, from, &n, err);
		if (r || n == 0)
			break;
		r = sink->push(sink->arg, buf, n, err);
		from += n;
		len -= n;
	}
	free(buf);
	return r;
}

static int read_range(struct ctx *ctx, int fd, uint64_t size, struct store_range range, const struct sink *sink,
		      struct err *err)
{
	uint64_t from = range.offset < size ? range.offset : size;
	uint64_t len = range.length < size - from ? range.length : size - from;
	char *direct;
	size_t n = 0;
	int r;

	if (sink->take_file && sink->take_file(sink->arg, fd, from, len))
		return 0;
	direct = sink->reserve ? sink->reserve(sink->arg, (size_t)len) : NULL;
	if (!direct)
		return read_chunks(ctx, fd, from, len, sink, err);
	r = read_full(fd, direct, (size_t)len, from, &n, err);
	return r ? r : sink->push(sink->arg, direct, n, err);
}

/* A file that was opened may be moved and appended to, in its new place, before its size is known: then the bytes were
   never under this name. So a file that has changed since `opened` must still be what the path names. The clock is the
   one that the kernel takes the times of files from. */
static bool is_still_there(const struct disk *d, struct wpath path, const struct stat *st,
			   const struct timespec *opened)
{
	FD_SCOPE int fd = -1;
	struct stat now;

	if (st->st_ctim.tv_sec < opened->tv_sec ||
	    (st->st_ctim.tv_sec == opened->tv_sec && st->st_ctim.tv_nsec < opened->tv_nsec))
		return true;
	fd = disk_open_path(d, path, O_PATH | O_NOFOLLOW);
	return fd >= 0 && fstat(fd, &now) == 0 && now.st_ino == st->st_ino && now.st_dev == st->st_dev &&
	       now.st_size >= st->st_size;
}

static int open_to_read(struct disk *d, struct wpath path, struct stat *ret_st, int *ret_fd, struct err *err)
{
	for (unsigned tries = 0;; tries++) {
		FD_SCOPE int fd = -ENOENT;
		struct timespec now;

		clock_gettime(CLOCK_REALTIME_COARSE, &now);
		if (!disk_reserved(path))
			fd = disk_open_path(d, path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
		if (fd < 0)
			return fd == -ENOTDIR ? store_not_found(err) : disk_fail(err, -fd);
		if (fstat(fd, ret_st) < 0)
			return disk_fail(err, errno);
		if (disk_is_going(d, ret_st, tries))
			continue;
		if (!S_ISREG(ret_st->st_mode) || tries >= READ_TRIES || is_still_there(d, path, ret_st, &now)) {
			*ret_fd = fd;
			fd = -1;
			return 0;
		}
	}
}

static int disk_read(struct store *s, struct ctx *ctx, struct wpath path, struct store_range range,
		     const struct sink *sink, struct store_stat *ret_stat, struct err *err)
{
	FD_SCOPE int fd = -1;
	struct stat st;
	int r = open_to_read(disk_of(s), path, &st, &fd, err);

	if (r)
		return r;
	if (S_ISDIR(st.st_mode))
		return disk_is_dir(path, err);
	if (!S_ISREG(st.st_mode))
		return disk_fail_kind(err, st.st_mode);
	r = read_range(ctx, fd, (uint64_t)st.st_size, range, sink, err);
	if (r == 0)
		disk_fill_stat(disk_of(s), ctx->arena, &st, ret_stat);
	return r;
}

static int disk_sync_all(struct store *s, struct err *err)
{
	return syncfs(disk_of(s)->root) == 0 ? 0 : disk_fail(err, errno);
}

static void disk_destroy(struct store *s)
{
	struct disk *d = disk_of(s);

	disk_reaper_destroy(d->reaper);
	disk_kept_destroy(d->kept);
	if (d->tmp >= 0)
		close(d->tmp);
	if (d->root >= 0)
		close(d->root);
	for (size_t i = 0; i < DISK_TURNS; i++)
		pthread_mutex_destroy(&d->turns[i]);
	free(d);
}

static const struct store_ops disk_ops = {
	.name = "disk",
	.stat = disk_stat,
	.read = disk_read,
	.write = disk_write,
	.append = disk_append,
	.remove = disk_remove,
	.move = disk_move,
	.copy = disk_copy,
	.list = disk_list,
	.scan = disk_scan,
	.sync = disk_sync_all,
	.can = STORE_LOCAL | STORE_ASKS,
	.destroy = disk_destroy,
};

/* Makes a directory of the host and its parents. The operator chose the path, so links in it are followed. */
static int make_host_dir(const char *dir, struct err *err)
{
	char *path = xstrndup(str_of(dir));
	int r = 0;

	for (char *p = path + 1; r == 0 && *path; p++) {
		char c = *p;

		if (c != '/' && c != '\0')
			continue;
		*p = '\0';
		if (mkdir(path, 0755) < 0 && errno != EEXIST)
			r = err_sys(err, errno, "cannot make the directory \"%s\"", path);
		*p = c;
		if (c == '\0')
			break;
	}
	free(path);
	return r;
}

static int open_host_dir(const char *dir, bool create, int flags, int *ret_fd, struct err *err)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags);

	if (fd < 0 && errno == ENOENT && create) {
		int r = make_host_dir(dir, err);

		if (r)
			return r;
		fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags);
	}
	if (fd < 0)
		return err_sys(err, errno, "cannot open the directory \"%s\"", dir);
	*ret_fd = fd;
	return 0;
}

static int open_tmp_dir(struct disk *d, const char *dir, struct err *err)
{
	struct stat st;
	int r = open_host_dir(dir, true, O_NOFOLLOW, &d->tmp, err);

	if (r)
		return r;
	if (fstat(d->tmp, &st) < 0)
		return err_sys(err, errno, "cannot look at the directory \"%s\"", dir);
	d->tmp_dev = st.st_dev;
	disk_sweep(d->tmp);
	return 0;
}

/* A kernel (or a seccomp filter) without openat2 cannot keep the promise, so nothing is opened at all. */
static int probe_openat2(const struct disk *d, const char *dir, struct err *err)
{
	FD_SCOPE int fd = disk_open_dir(d, WPATH_ROOT);

	if (fd == -ENOSYS || fd == -EPERM)
		return err_set(
			err, ERR_UNSUPPORTED,
			"cannot open the directory \"%s\" safely: the kernel has no openat2, or a filter forbids "
			"it; Linux 5.6 or newer is needed",
			dir);
	return fd < 0 ? err_sys(err, -fd, "cannot open the directory \"%s\"", dir) : 0;
}

static int find_owner(struct disk *d, const char *dir, struct err *err)
{
	struct stat st;

	if (fstat(d->root, &st) < 0)
		return err_sys(err, errno, "cannot look at the directory \"%s\"", dir);
	d->uid = st.st_uid;
	d->gid = st.st_gid;
	return 0;
}

uint64_t store_disk_dirs_read(struct store *disk)
{
	return atomic_load(&disk_of(disk)->dirs_read);
}

int store_disk_open(const char *dir, const struct store_disk_opts *opts, struct store **ret_store, struct err *err)
{
	static const struct store_disk_opts defaults;
	struct disk *d = xcalloc(1, sizeof(*d));
	int r;

	if (!opts)
		opts = &defaults;
	d->base.ops = &disk_ops;
	d->root = d->tmp = -1;
	d->relaxed = opts->relaxed;
	d->keep_links = opts->keep_links;
	d->reaper = disk_reaper_new();
	d->kept = disk_kept_new();
	for (size_t i = 0; i < DISK_TURNS; i++)
		pthread_mutex_init(&d->turns[i], NULL);
	r = open_host_dir(dir, opts->create, 0, &d->root, err);
	if (r == 0)
		r = find_owner(d, dir, err);
	if (r == 0)
		r = probe_openat2(d, dir, err);
	if (r == 0 && opts->tmp_dir)
		r = open_tmp_dir(d, opts->tmp_dir, err);
	if (r) {
		disk_destroy(&d->base);
		return r;
	}
	*ret_store = &d->base;
	return 0;
}
