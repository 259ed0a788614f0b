/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the disk backend reaches its files. A path is never trusted as a string: openat2 resolves it in the kernel, from
 * the root's descriptor, with every kind of link refused on the way. There is no fallback for kernels without openat2:
 * checking each element with lstat first leaves a gap in which a directory can be swapped for a link.
 *
 * Locks are flock()s of the directory that holds the file, each on a descriptor opened for that one operation. So they
 * hold between threads as well as processes, leave no lock files behind, and die with their process. A directory may be
 * removed (pruned) while one waits for its lock; whoever creates in it then gets ENOENT and resolves the path again.
 */
#include <dirent.h>
#include <errno.h>
#include <linux/openat2.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/clock.h"
#include "base/hash.h"
#include "store/backends/disk/disk.h"

#define ABOVE_MAX       4   /* directories above the store */
#define EMPTY_DEPTH_MAX 100 /* nested directories without a file */

/* How long a directory may be in use by others before it is left for them to prune. */
#define PRUNE_WAIT_NS (INT64_C(1000) * 1000 * 1000)

int disk_open_at(int dir, const char *name, int flags)
{
	struct open_how how = {
		.flags = (uint64_t)(flags | O_CLOEXEC | (flags & O_PATH ? 0 : O_NOCTTY)),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	long fd;
	int tries = 0;

	do
		fd = syscall(SYS_openat2, dir, name, &how, sizeof(how));
	while (fd < 0 && (errno == EINTR || errno == EAGAIN) && tries++ < 100);
	return fd < 0 ? -errno : (int)fd;
}

int disk_open_path(const struct disk *d, struct wpath path, int flags)
{
	char text[PATH_LEN_MAX + 1];

	if (wpath_is_root(path))
		return disk_open_at(d->root, ".", flags);
	memcpy(text, path.s.ptr, path.s.len);
	text[path.s.len] = '\0';
	return disk_open_at(d->root, text, flags);
}

int disk_open_dir(const struct disk *d, struct wpath path)
{
	return disk_open_path(d, path, O_RDONLY | O_DIRECTORY);
}

void disk_back_off(unsigned round)
{
	unsigned shift = round < 7 ? round : 7;
	int64_t ns = (INT64_C(20000) << shift) / 2;

	ns += (int64_t)(random_u64() % (uint64_t)ns); /* so that waiters do not wake together */
	nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

/* Opens `name` in `parent`, making it when it is missing. */
static int make_one(const struct disk *d, int parent, const char *name, bool *ret_made)
{
	for (int tries = 0; tries < 100; tries++) {
		int fd;

		if (mkdirat(parent, name, 0755) == 0) {
			*ret_made = true;
			if (!d->relaxed && fsync(parent) < 0)
				return -errno;
		} else if (errno != EEXIST) {
			return -errno;
		}
		fd = disk_open_at(parent, name, O_RDONLY | O_DIRECTORY);
		if (fd != -ENOENT) /* else it was pruned between the two */
			return fd;
	}
	return -EBUSY;
}

/* The store's own directory may be new too, and some of those above it. Where they may not be read they are not ours.
 */
static void sync_above(const struct disk *d)
{
	int fd = fcntl(d->root, F_DUPFD_CLOEXEC, 0);

	for (int i = 0; fd >= 0 && i < ABOVE_MAX; i++) {
		int parent = openat(fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		close(fd);
		fd = parent;
		if (fd >= 0)
			fsync(fd);
	}
	if (fd >= 0)
		close(fd);
}

/* A handle that syncs makes a directory in one that perhaps a relaxed handle has made: the names on the way to it must
   be durable as well. 0 or -errno. */
static int sync_names(struct disk *d, struct wpath path)
{
	if (!d->relaxed && !atomic_exchange_explicit(&d->above_synced, true, memory_order_relaxed))
		sync_above(d);
	for (; !d->relaxed && !wpath_is_root(path); path = wpath_parent(path)) {
		FD_SCOPE int fd = disk_open_dir(d, wpath_parent(path));

		if (fd < 0 || fsync(fd) < 0)
			return fd < 0 ? fd : -errno;
	}
	return 0;
}

static int make_path(struct disk *d, struct wpath path, bool *ret_made)
{
	struct wpath have = path;
	struct str rest, name;
	int fd = disk_open_dir(d, path);

	while (fd == -ENOENT && !wpath_is_root(have)) {
		have = wpath_parent(have);
		fd = disk_open_dir(d, have);
	}
	rest = wpath_relative(path, have).s;
	if (fd >= 0 && rest.len) {
		int sys = sync_names(d, have);

		if (sys < 0) {
			close(fd);
			return sys;
		}
	}
	while (fd >= 0 && rest.len && str_cut(&rest, '/', &name)) {
		char text[PATH_NAME_MAX + 1];
		int next;

		disk_name((struct wpath){name}, text);
		next = make_one(d, fd, text, ret_made);
		close(fd);
		fd = next;
	}
	return fd;
}

int disk_make_dir(struct disk *d, struct wpath path, bool *ret_made)
{
	for (unsigned tries = 0; tries < DISK_TRIES_MAX; tries++) {
		int fd = make_path(d, path, ret_made);

		if (fd != -ENOENT) /* else an outer directory was pruned before the inner one was made */
			return fd;
		disk_back_off(tries);
	}
	return -EBUSY;
}

bool disk_dir_is_gone(int dir)
{
	struct stat st;

	return fstat(dir, &st) == 0 && st.st_nlink == 0;
}

int disk_is_dir(struct wpath path, struct err *err)
{
	return store_refuse(REFUSE_DIR, path.s, err);
}

int disk_fail_kind(struct err *err, mode_t mode)
{
	const char *what = S_ISLNK(mode)    ? "a symbolic link"
			   : S_ISFIFO(mode) ? "a FIFO"
			   : S_ISSOCK(mode) ? "a socket"
					    : "a device";

	return err_set(err, ERR_DENIED,
		       "it is %s; only regular files and directories are served, so name the real file", what);
}

static const struct {
	int sys;
	enum err_kind kind;
	const char *text;
} sentences[] = {
	{ELOOP, ERR_DENIED, "the path goes through a symbolic link, and links are never followed; name the real file"},
	{EXDEV, ERR_DENIED, "the path leads out of the store; name a file inside it"},
	{ENXIO, ERR_DENIED, "it is a FIFO, a socket or a device; only regular files are served"},
	{ENODEV, ERR_DENIED, "it is a FIFO, a socket or a device; only regular files are served"},
	{EACCES, ERR_DENIED, "the file system denies access; check the owner and mode of the file and its directories"},
	{EPERM, ERR_DENIED, "the file system does not permit it; check whether the file or directory is immutable"},
	{EROFS, ERR_DENIED, "the file system is mounted read-only; mount it writable or use another store"},
	{ENOSPC, ERR_QUOTA, "the disk is full; free some space, then try again"},
	{EDQUOT, ERR_QUOTA, "the disk quota is used up; free some space, then try again"},
	{EFBIG, ERR_TOO_LARGE, "the file would exceed the limit of the file system or the process"},
	{EMFILE, ERR_UNAVAILABLE, "this process has too many files open; try again, or raise its limit (ulimit -n)"},
	{ENFILE, ERR_UNAVAILABLE, "the system has too many files open; try again later"},
	{EIO, ERR_UNAVAILABLE, "the disk reports an input/output error; check the disk before writing again"},
	{ENAMETOOLONG, ERR_INVALID, "a name in the path is longer than this file system allows; shorten it"},
	{EBUSY, ERR_UNAVAILABLE, "others are removing and recreating the directory; try again"},
};

int disk_fail(struct err *err, int sys)
{
	if (sys == ENOENT)
		store_not_found(err);
	else
		err_sys(err, sys, "the file system failed");
	for (size_t i = 0; i < COUNT(sentences); i++)
		if (sentences[i].sys == sys)
			err_set(err, sentences[i].kind, "%s", sentences[i].text);
	err->sys = sys;
	return -(int)err->kind;
}

int disk_fail_parent(const struct disk *d, struct wpath path, int sys, struct err *err)
{
	if (sys != ENOTDIR)
		return disk_fail(err, sys);
	for (size_t i = 0; i <= path.s.len; i++) {
		struct wpath part = {str_first(path.s, i)};
		FD_SCOPE int fd = -1;
		struct stat st;

		if (i == 0 || (i < path.s.len && path.s.ptr[i] != '/'))
			continue;
		fd = disk_open_path(d, part, O_PATH | O_NOFOLLOW);
		if (fd < 0 || fstat(fd, &st) < 0 || S_ISDIR(st.st_mode))
			continue;
		if (!S_ISREG(st.st_mode))
			return disk_fail_kind(err, st.st_mode);
		return store_refuse(REFUSE_BELOW_FILE, part.s, err);
	}
	return err_set(err, ERR_INVALID, "a part of " ERR_PATH " is a file, so nothing can be below it",
		       STR_ARG(path.s));
}

bool disk_name_reserved(const char *name)
{
	return name[0] == '.' && strncmp(name, DISK_TMP_PREFIX, sizeof(DISK_TMP_PREFIX) - 1) == 0;
}

bool disk_reserved(struct wpath path)
{
	return str_starts(path.s, STR(DISK_TMP_PREFIX)) || str_find(path.s, STR("/" DISK_TMP_PREFIX), 0) != SIZE_MAX;
}

int disk_refuse_reserved(struct wpath path, struct err *err)
{
	if (!disk_reserved(path))
		return 0;
	return err_set(err, ERR_INVALID,
		       "names that begin with \"" DISK_TMP_PREFIX "\" are kept for unfinished writes; "
		       "choose another name");
}

void disk_name(struct wpath path, char ret_name[PATH_NAME_MAX + 1])
{
	struct str name = wpath_name(path);

	memcpy(ret_name, name.ptr, name.len);
	ret_name[name.len] = '\0';
}

int disk_lock(const struct ctx *ctx, int dir, struct err *err)
{
	int64_t end = 0;

	for (unsigned round = 0;; round++) {
		int r;

		if (flock(dir, LOCK_EX | LOCK_NB) == 0)
			return 0;
		if (errno != EWOULDBLOCK && errno != EINTR)
			return disk_fail(err, errno);
		r = ctx_check(ctx, err);
		if (r)
			return r;
		if (!end)
			end = clock_monotonic_ns() + DISK_LOCK_MAX_NS;
		else if (clock_monotonic_ns() > end)
			break;
		disk_back_off(round);
	}
	err_set(err, ERR_TIMEOUT,
		"another process has kept the directory locked for %d s; try again, and if that does not help, look "
		"for a stopped process that has it open",
		(int)(DISK_LOCK_MAX_NS / NS_PER_S));
	err->retryable = true;
	return -ERR_TIMEOUT;
}

pthread_mutex_t *disk_turn_take(struct disk *d, struct wpath dir)
{
	pthread_mutex_t *turn = &d->turns[hash_u64(dir.s, 1) % DISK_TURNS];
	struct timespec until;

	if (pthread_mutex_trylock(turn) == 0)
		return turn;
	/* By the wall clock, because ThreadSanitizer does not know pthread_mutex_clocklock. If the clock is set back,
	   the wait is longer, but it still ends with the holder's short turn. */
	until = clock_timespec(clock_real_ns() + DISK_TURN_MAX_NS);
	return pthread_mutex_timedlock(turn, &until) == 0 ? turn : NULL;
}

void disk_unlock(int dir)
{
	flock(dir, LOCK_UN);
}

int disk_sync(const struct disk *d, int fd, struct err *err)
{
	return d->relaxed || fsync(fd) == 0 ? 0 : disk_fail(err, errno);
}

bool disk_is_going(struct disk *d, const struct stat *st, unsigned round)
{
	if (!S_ISREG(st->st_mode) || st->st_nlink > 0 || atomic_load_explicit(&d->no_link_counts, memory_order_relaxed))
		return false;
	if (round == DISK_TRIES_MAX) /* about two seconds: no rename takes that long */
		atomic_store_explicit(&d->no_link_counts, true, memory_order_relaxed);
	else
		disk_back_off(round);
	return round < DISK_TRIES_MAX;
}

int disk_lstat(int dir, const char *name, struct stat *ret)
{
	return fstatat(dir, name, ret, AT_SYMLINK_NOFOLLOW) == 0 ? 0 : -errno;
}

void disk_version(const struct stat *st, char ret_hex[DISK_VERSION_LEN])
{
	int64_t parts[6] = {
		(int64_t)st->st_ino, (int64_t)st->st_size, st->st_mtim.tv_sec,
		st->st_mtim.tv_nsec, st->st_ctim.tv_sec,   st->st_ctim.tv_nsec,
	};

	hex_u64(hash_u64(str_n(parts, sizeof(parts)), 0), ret_hex);
}

struct store_owner disk_owner(const struct disk *d, const struct stat *st)
{
	if (st->st_uid == d->uid && st->st_gid == d->gid)
		return (struct store_owner){.kind = STORE_OWNER_TOP};
	return (struct store_owner){.kind = STORE_OWNER_IDS, .uid = st->st_uid, .gid = st->st_gid};
}

void disk_fill_stat(const struct disk *d, struct arena *arena, const struct stat *st, struct store_stat *ret)
{
	char *hex;

	if (S_ISDIR(st->st_mode)) {
		*ret = (struct store_stat){.kind = STORE_DIR};
		return;
	}
	hex = arena_alloc_raw(arena, DISK_VERSION_LEN);
	disk_version(st, hex);
	*ret = (struct store_stat){
		.kind = STORE_FILE,
		.size = (uint64_t)st->st_size,
		.mtime_ns = clock_of_timespec(st->st_mtim),
		.version = str_n(hex, DISK_VERSION_LEN),
		.mode = st->st_mode & 0777,
		.changed_ns = clock_of_timespec(st->st_ctim),
		.owner = disk_owner(d, st),
	};
}

int disk_check_cond(const struct stat *st, struct store_cond cond, struct err *err)
{
	char have[DISK_VERSION_LEN];

	if (st)
		disk_version(st, have);
	return store_cond_check(cond, st, str_n(have, sizeof(have)), err);
}

void disk_prune(const struct disk *d, struct wpath dir)
{
	struct ctx patience = {.deadline_ns = clock_monotonic_ns() + PRUNE_WAIT_NS};
	int fd = wpath_is_root(dir) ? -1 : disk_open_dir(d, dir);
	struct err err;

	while (fd >= 0 && !wpath_is_root(dir)) {
		int parent = disk_lock(&patience, fd, &err) ? -1 : disk_open_dir(d, wpath_parent(dir));
		char name[PATH_NAME_MAX + 1];

		disk_name(dir, name);
		if (parent >= 0 && unlinkat(parent, name, AT_REMOVEDIR) < 0) {
			close(parent);
			parent = -1;
		}
		if (parent >= 0 && !d->relaxed)
			fsync(parent);
		close(fd); /* and its lock, before the next one is waited for */
		fd = parent;
		dir = wpath_parent(dir);
	}
	if (fd >= 0)
		close(fd);
}

/* Directories in directories, as another program may leave them, hold nothing either. They go from the inside out; the
   first entry that is not a directory ends it: empty directories are gone by then, the others are untouched. */
static bool drop_empty_tree(int dir, const char *name, unsigned depth)
{
	struct dirent *e;
	bool empty = true;
	DIR *list;
	int fd;

	if (unlinkat(dir, name, AT_REMOVEDIR) == 0)
		return true;
	if ((errno != ENOTEMPTY && errno != EEXIST) || depth == 0)
		return false;
	fd = disk_open_at(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
	list = fd < 0 ? NULL : fdopendir(fd);
	if (!list) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	while (empty && (e = readdir(list)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			empty = drop_empty_tree(fd, e->d_name, depth - 1);
	closedir(list);
	return empty && unlinkat(dir, name, AT_REMOVEDIR) == 0;
}

bool disk_drop_empty_dir(int dir, const char *name)
{
	return drop_empty_tree(dir, name, EMPTY_DEPTH_MAX);
}

/* A writer holds the flock of its unfinished file as long as the file has this name, and so does whoever removes it: a
   name that is locked here and still means this file cannot come to mean another one before the unlink. A link count
   would not tell: the file may have got its final name since it was opened, and the next writer this one. */
bool disk_sweep_name(int dir, const char *name)
{
	FD_SCOPE int fd = disk_open_at(dir, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
	struct stat st, now;

	if (fd < 0)
		return fd == -ENOENT;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || flock(fd, LOCK_EX | LOCK_NB) < 0)
		return false;
	if (disk_lstat(dir, name, &now) < 0)
		return true;
	return now.st_ino == st.st_ino && now.st_dev == st.st_dev && unlinkat(dir, name, 0) == 0;
}

void disk_sweep(int dir)
{
	struct disk_names names;
	struct err err;

	if (disk_names_read(dir, false, &names, &err) == 0)
		disk_names_release(&names);
}
