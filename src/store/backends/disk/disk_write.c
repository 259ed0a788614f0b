/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Write, append and copy. New bytes go to a file that has no name yet (O_TMPFILE), are synced, and only then, under the
 * lock of the directory, compared with the condition and given their name: by link when there was no file (which is
 * exclusive by itself), by link to a temporary name and rename when there was one. So the temporary name exists for
 * microseconds, a stream of any size is written without holding a lock, and a killed writer leaves nothing, or one
 * locked-by-nobody temporary file that the next listing or replacing write of the directory removes.
 *
 * File systems without O_TMPFILE get a file that has its temporary name from the start; the rest is the same.
 *
 * An append writes in place, under the lock of the directory: rewriting a log for each line would make n lines cost n².
 * A file with a second hard link is rewritten instead, since the other name may be outside the store.
 *
 * The new file gets the owner, the mode and the extended attributes of the one that it replaces, or the owner and mode
 * that are asked for. It cannot get the other names of it: in a directory of the person's own (keep_links) such a file
 * is not changed at all.
 */
#include <errno.h>
#include <sys/file.h>
#include <sys/xattr.h>

#include "base/clock.h"
#include "base/hash.h"
#include "store/backends/disk/disk.h"

/* Internal answer: the directory vanished, resolve the path again. Not an error kind. */
#define RETRY 1

#define TEMP_NAME_CAP (sizeof(DISK_TMP_PREFIX) + 16)

#define ATTR_MAX (64 * KIB) /* of the list of names, and of a value: the kernel's own limits */

/* The file to be: `name` empty as long as it has none. */
struct temp {
	int fd;
	int dir; /* the directory of `name`; borrowed from the target or the store */
	char name[TEMP_NAME_CAP];
	uint32_t mode; /* that was asked for; 0: none was */
	struct store_owner owner;
};

/* Where the file is to go. */
struct target {
	struct wpath path;
	char name[PATH_NAME_MAX + 1];
	int dir; /* owned; carries the lock */
	bool made;
};

static void temp_name(char ret[TEMP_NAME_CAP], uint64_t number)
{
	memcpy(ret, DISK_TMP_PREFIX, sizeof(DISK_TMP_PREFIX) - 1);
	hex_u64(number, ret + sizeof(DISK_TMP_PREFIX) - 1);
	ret[TEMP_NAME_CAP - 1] = '\0';
}

/* For file systems without O_TMPFILE. 0 or -errno. A sweeper may lock and remove the file before its lock is taken
   here; then there is no link left and another is made. */
static int temp_open_named(struct disk *d, int dir, struct temp *ret)
{
	struct stat st;

	ret->dir = d->tmp >= 0 && fstat(dir, &st) == 0 && st.st_dev == d->tmp_dev ? d->tmp : dir;
	for (int tries = 0; tries < 100; tries++) {
		temp_name(ret->name, random_u64());
		ret->fd = openat(ret->dir, ret->name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
		if (ret->fd < 0)
			break;
		if (flock(ret->fd, LOCK_EX) == 0 && fstat(ret->fd, &st) == 0 && st.st_nlink)
			return 0;
		close(ret->fd);
		ret->fd = -1;
		errno = EBUSY;
	}
	ret->name[0] = '\0';
	return -errno;
}

/* 0 or -errno; ENOENT when the directory is gone (some file systems report another errno for that, ext4 EPERM). */
static int temp_open(struct disk *d, int dir, struct temp *ret)
{
	if (atomic_load_explicit(&d->no_tmpfile, memory_order_relaxed))
		return temp_open_named(d, dir, ret);
	ret->fd = openat(dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0644);
	if (ret->fd >= 0)
		return 0;
	if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL) {
		int sys = errno;

		return disk_dir_is_gone(dir) ? -ENOENT : -sys;
	}
	atomic_store_explicit(&d->no_tmpfile, true, memory_order_relaxed);
	return temp_open_named(d, dir, ret);
}

#define TEMP_NONE ((struct temp){.fd = -1, .dir = -1})

static void temp_close(struct temp *t)
{
	if (t->name[0])
		unlinkat(t->dir, t->name, 0);
	if (t->fd >= 0)
		close(t->fd);
	*t = TEMP_NONE;
}

#define TEMP_SCOPE __attribute__((cleanup(temp_close)))

static void target_close(struct target *t)
{
	if (t->dir >= 0)
		close(t->dir);
	t->dir = -1;
}

#define TARGET_SCOPE __attribute__((cleanup(target_close)))

static struct target target_of(struct wpath path)
{
	struct target t = {.path = path, .dir = -1};

	disk_name(path, t.name);
	return t;
}

static int target_open(struct disk *d, struct target *t, struct err *err)
{
	struct wpath parent = wpath_parent(t->path);

	if (t->dir >= 0)
		close(t->dir);
	t->dir = disk_make_dir(d, parent, &t->made);
	return t->dir < 0 ? disk_fail_parent(d, parent, -t->dir, err) : 0;
}

/* The directory and, in it, a file without a name. */
static int target_open_temp(struct disk *d, struct target *t, struct temp *ret, struct err *err)
{
	for (unsigned tries = 0; tries < DISK_TRIES_MAX; tries++) {
		int sys, r = target_open(d, t, err);

		if (r)
			return r;
		sys = temp_open(d, t->dir, ret);
		if (sys != -ENOENT)
			return sys < 0 ? disk_fail(err, -sys) : 0;
		disk_back_off(tries);
	}
	return disk_fail(err, EBUSY);
}

static int write_all(const struct ctx *ctx, int fd, const char *p, size_t len, struct err *err)
{
	while (len) {
		ssize_t n = write(fd, p, len < 4 * MIB ? len : 4 * MIB);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return disk_fail(err, errno);
		p += n;
		len -= (size_t)n;
		if (len) {
			int r = ctx_check(ctx, err);

			if (r)
				return r;
		}
	}
	return 0;
}

static int fill_from_source(const struct ctx *ctx, int fd, const struct source *source, struct err *err)
{
	char *buf;
	int r;

	if (!source->pull)
		return write_all(ctx, fd, source->bytes.ptr, source->bytes.len, err);
	buf = xmalloc(STREAM_CHUNK);
	do {
		size_t n = 0;

		r = ctx_check(ctx, err);
		if (r == 0)
			r = source->pull(source->arg, buf, STREAM_CHUNK, &n, err);
		if (r || n == 0)
			break;
		r = write_all(ctx, fd, buf, n, err);
	} while (r == 0);
	free(buf);
	return r;
}

/* The next `len` bytes of `from`, or as many as there are, without passing them through this process. */
static int fill_from_file(const struct ctx *ctx, int fd, int from, uint64_t len, struct err *err)
{
	bool by_kernel = true;
	char *buf = NULL;
	int r = 0;

	while (r == 0 && len) {
		size_t want = len < 16 * MIB ? (size_t)len : 16 * MIB;
		ssize_t n = by_kernel ? copy_file_range(from, NULL, fd, NULL, want, 0) : 0;

		if (n == 0 ||
		    (n < 0 && errno != EIO && errno != ENOSPC && errno != EDQUOT && errno != EFBIG && errno != EINTR))
			by_kernel = false;
		if (!by_kernel) {
			if (!buf)
				buf = xmalloc(STREAM_CHUNK);
			n = read(from, buf, want < STREAM_CHUNK ? want : STREAM_CHUNK);
			if (n > 0)
				r = write_all(ctx, fd, buf, (size_t)n, err);
		}
		if (n == 0)
			break;
		if (n < 0 && errno != EINTR)
			r = disk_fail(err, errno);
		if (n > 0)
			len -= (uint64_t)n;
		if (r == 0)
			r = ctx_check(ctx, err);
	}
	free(buf);
	return r;
}

/* Gives a file away as far as that is permitted: at least to the group. `now` is the file. True: something changed. */
static bool give(int fd, const struct stat *now, uid_t uid, gid_t gid)
{
	if (now->st_uid == uid && now->st_gid == gid)
		return false;
	return fchown(fd, uid, gid) == 0 || (now->st_gid != gid && fchown(fd, (uid_t)-1, gid) == 0);
}

/* Gives a new file to whom it is asked for. Nothing is given to root: what asks may be a log that somebody else has
   written. What root writes is root's already. */
static int give_as_asked(const struct disk *d, const struct temp *temp, struct err *err)
{
	bool is_top = temp->owner.kind == STORE_OWNER_TOP;
	uid_t uid = is_top ? d->uid : temp->owner.uid;
	gid_t gid = is_top ? d->gid : temp->owner.gid;
	struct stat st;

	if (temp->owner.kind == STORE_OWNER_UNKNOWN)
		return 0;
	if (fstat(temp->fd, &st) < 0)
		return disk_fail(err, errno);
	give(temp->fd, &st, uid ? uid : st.st_uid, gid ? gid : st.st_gid);
	return 0;
}

/* The time is set from the full clock: the kernel's coarse one may not advance for a whole tick, and a version must
 * change. The owner comes last, because only an owner may change the rest. */
static int temp_finish(const struct disk *d, const struct temp *temp, struct err *err)
{
	int64_t now = clock_real_ns();
	struct timespec times[2] = {
		{.tv_nsec = UTIME_OMIT},
		clock_timespec(now),
	};
	int r = 0;

	if (temp->mode && fchmod(temp->fd, temp->mode & 0777) < 0)
		return disk_fail(err, errno);
	if (futimens(temp->fd, times) < 0)
		return disk_fail(err, errno);
	r = give_as_asked(d, temp, err);
	return r ? r : disk_sync(d, temp->fd, err);
}

/* Gives the file without a name one. 0 or -errno. */
static int link_fd(struct disk *d, int fd, int dir, const char *name)
{
	char proc[40];

	if (!atomic_load_explicit(&d->link_by_proc, memory_order_relaxed)) {
		if (linkat(fd, "", dir, name, AT_EMPTY_PATH) == 0)
			return 0;
		if (errno != ENOENT && errno != EPERM)
			return -errno;
	}
	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	if (linkat(AT_FDCWD, proc, dir, name, AT_SYMLINK_FOLLOW) < 0)
		return -errno;
	atomic_store_explicit(&d->link_by_proc, true, memory_order_relaxed);
	return 0;
}

/* In the target's directory the name is always the same, since that directory's lock is held: the next writer finds a
   dead writer's file and removes it. In tmp_dir, which has no lock, names are random. */
static int temp_link(struct disk *d, const struct target *t, const struct stat *old, struct temp *temp)
{
	int sys = -ENOENT;

	flock(temp->fd, LOCK_EX | LOCK_NB);
	if (d->tmp >= 0 && old->st_dev == d->tmp_dev) {
		temp_name(temp->name, random_u64());
		temp->dir = d->tmp;
		sys = link_fd(d, temp->fd, temp->dir, temp->name);
	}
	if (sys == -ENOENT) { /* no tmp_dir, or it was removed */
		temp_name(temp->name, 0);
		temp->dir = t->dir;
		sys = link_fd(d, temp->fd, temp->dir, temp->name);
	}
	if (sys == -EEXIST) {
		if (!disk_sweep_name(temp->dir, temp->name))
			temp_name(temp->name, random_u64());
		sys = link_fd(d, temp->fd, temp->dir, temp->name);
	}
	if (sys < 0)
		temp->name[0] = '\0';
	return sys;
}

/* 0 or -errno. */
static int publish_new(struct disk *d, const struct target *t, struct temp *temp)
{
	if (!temp->name[0])
		return link_fd(d, temp->fd, t->dir, t->name);
	if (renameat2(temp->dir, temp->name, t->dir, t->name, RENAME_NOREPLACE) < 0) {
		if (errno != EINVAL && errno != ENOSYS)
			return -errno;
		if (linkat(temp->dir, temp->name, t->dir, t->name, 0) < 0)
			return -errno;
		unlinkat(temp->dir, temp->name, 0);
	}
	temp->name[0] = '\0';
	return 0;
}

static int publish_over(struct disk *d, const struct target *t, const struct stat *old, struct temp *temp)
{
	int sys = temp->name[0] ? 0 : temp_link(d, t, old, temp), replaced;

	if (sys < 0)
		return sys;
	replaced = openat(t->dir, t->name, O_PATH | O_NOFOLLOW | O_CLOEXEC); /* see disk_reap.c */
	if (renameat(temp->dir, temp->name, t->dir, t->name) < 0)
		sys = errno == ENOENT ? -EBUSY : -errno; /* it cannot be linked a second time */
	else
		temp->name[0] = '\0';
	disk_let_go(d, replaced);
	return sys;
}

/* True for attributes that belong to the file and not to its present bytes: a signature or a capability of a program
   must not pass to what somebody else wrote. */
static bool attr_stays(const char *name)
{
	return strncmp(name, "user.", 5) == 0 || strcmp(name, "system.posix_acl_access") == 0 ||
	       strcmp(name, "security.selinux") == 0;
}

/* Copies the extended attributes of the file `old`; `value` has room for ATTR_MAX bytes. What may not be set is left
   out. 0 or -errno. */
static int copy_attrs(int fd, const char *old, const char *names, size_t len, char *value)
{
	for (const char *name = names; name < names + len; name += strlen(name) + 1) {
		ssize_t n = attr_stays(name) ? lgetxattr(old, name, value, ATTR_MAX) : -1;

		if (n >= 0 && fsetxattr(fd, name, value, (size_t)n, 0) < 0 && errno != EPERM && errno != EACCES &&
		    errno != EOPNOTSUPP)
			return -errno;
	}
	return 0;
}

/* Most files have no attributes: then this is one call. *ret_changed: some were set. */
static int keep_attrs(const struct target *t, int fd, bool *ret_changed, struct err *err)
{
	char old[PATH_NAME_MAX + 40], *names;
	ssize_t len;
	int sys;

	snprintf(old, sizeof(old), "/proc/self/fd/%d/%s", t->dir, t->name);
	*ret_changed = llistxattr(old, NULL, 0) > 0;
	if (!*ret_changed)
		return 0;
	names = xmalloc(2 * ATTR_MAX);
	len = llistxattr(old, names, ATTR_MAX);
	sys = len > 0 ? copy_attrs(fd, old, names, (size_t)len, names + ATTR_MAX) : 0;
	free(names);
	return sys ? disk_fail(err, -sys) : 0;
}

/* The new file gets the owner, mode and attributes of the one that it replaces. Changing the owner may not be
   permitted; then the file is ours. */
static int keep_properties(const struct disk *d, const struct target *t, const struct temp *temp,
			   const struct stat *old, struct err *err)
{
	mode_t mode = (temp->mode ? temp->mode : old->st_mode) & 0777;
	bool changed, has_attrs;
	struct stat st;
	int r;

	if (fstat(temp->fd, &st) < 0)
		return disk_fail(err, errno);
	changed = (st.st_mode & 0777) != mode;
	if (changed && fchmod(temp->fd, mode) < 0)
		return disk_fail(err, errno);
	r = keep_attrs(t, temp->fd, &has_attrs, err);
	if (r)
		return r;
	if (temp->owner.kind == STORE_OWNER_UNKNOWN) /* last: only an owner may change the rest */
		changed |= give(temp->fd, &st, old->st_uid, old->st_gid);
	return changed || has_attrs ? disk_sync(d, temp->fd, err) : 0;
}

/* A killed writer may have left a second name, which goes with a sweep. */
static int check_links(const struct disk *d, const struct target *t, const struct stat *old, struct err *err)
{
	struct stat st;

	if (!d->keep_links || old->st_nlink < 2)
		return 0;
	disk_sweep(t->dir);
	if (disk_lstat(t->dir, t->name, &st) < 0 || st.st_nlink < 2)
		return 0;
	return err_set(err, ERR_DENIED,
		       "the file has %llu names (hard links), and a change here would not reach the others; change it "
		       "with another program, or delete it and write it again, which separates it from them",
		       (unsigned long long)st.st_nlink);
}

/* Looks at the target; *ret_exists only for a regular file. */
static int look(const struct target *t, struct stat *ret_st, bool *ret_exists, struct err *err)
{
	int sys = disk_lstat(t->dir, t->name, ret_st);

	*ret_exists = false;
	if (sys < 0)
		return sys == -ENOENT ? 0 : disk_fail(err, -sys);
	if (S_ISDIR(ret_st->st_mode))
		return disk_drop_empty_dir(t->dir, t->name) ? 0 : disk_is_dir(t->path, err);
	if (!S_ISREG(ret_st->st_mode))
		return disk_fail_kind(err, ret_st->st_mode);
	*ret_exists = true;
	return 0;
}

/* Under the directory's lock: compares, names the file, and returns its stat. RETRY: the directory is gone. */
static int publish_locked(struct disk *d, const struct target *t, struct temp *temp, struct store_cond cond,
			  struct stat *ret_st, struct err *err)
{
	int sys = -EEXIST;

	for (unsigned tries = 0; sys == -EEXIST && tries < DISK_TRIES_MAX; tries++) {
		struct stat old;
		bool exists;
		int r = look(t, &old, &exists, err);

		if (r == 0)
			r = disk_check_cond(exists ? &old : NULL, cond, err);
		if (r == 0 && exists)
			r = check_links(d, t, &old, err);
		if (r == 0 && exists)
			r = keep_properties(d, t, temp, &old, err);
		if (r)
			return r;
		sys = exists ? publish_over(d, t, &old, temp) : publish_new(d, t, temp);
	}
	if (sys == -ENOENT) {
		if (disk_dir_is_gone(t->dir))
			return temp->name[0] ? disk_fail(err, EBUSY) : RETRY;
		atomic_store_explicit(&d->no_tmpfile, true, memory_order_relaxed);
		return err_set(err, ERR_UNAVAILABLE,
			       "the kernel cannot name an unnamed temporary file without /proc; try again, and a named "
			       "one is used");
	}
	if (sys < 0 || fstat(temp->fd, ret_st) < 0)
		return disk_fail(err, sys < 0 ? -sys : errno);
	return 0;
}

static int publish(struct disk *d, struct ctx *ctx, struct target *t, struct temp *temp, struct store_cond cond,
		   struct stat *ret_st, struct err *err)
{
	for (unsigned tries = 0; tries < DISK_TRIES_MAX; tries++) {
		TURN_SCOPE pthread_mutex_t *turn = disk_turn_take(d, wpath_parent(t->path));
		int r = disk_lock(ctx, t->dir, err);

		if (r == 0)
			r = publish_locked(d, t, temp, cond, ret_st, err);
		disk_unlock(t->dir);
		disk_turn_end(&turn); /* whoever waits need not wait for the disk */
		if (r == 0)
			r = disk_sync(d, t->dir, err);
		if (r != RETRY)
			return r;
		if (tries)
			disk_back_off(tries);
		r = target_open(d, t, err);
		if (r)
			return r;
	}
	return disk_fail(err, EBUSY);
}

/* A write that failed leaves no directory behind that was made for it. */
static int finish_write(const struct disk *d, struct ctx *ctx, struct target *t, struct temp *temp,
			const struct stat *st, int r, struct store_stat *ret_stat)
{
	temp_close(temp);
	target_close(t); /* with the lock, which pruning takes itself */
	if (r == 0)
		disk_fill_stat(d, ctx->arena, st, ret_stat);
	else if (t->made)
		disk_prune(d, wpath_parent(t->path));
	return r;
}

int disk_write(struct store *s, struct ctx *ctx, struct wpath path, const struct source *source, struct store_cond cond,
	       struct store_stat *ret_stat, struct err *err)
{
	struct disk *d = disk_of(s);
	TARGET_SCOPE struct target t = target_of(path);
	TEMP_SCOPE struct temp temp = TEMP_NONE;
	struct stat st;
	int r = disk_refuse_reserved(path, err);

	if (r == 0)
		r = target_open_temp(d, &t, &temp, err);
	if (r == 0)
		r = fill_from_source(ctx, temp.fd, source, err);
	temp.mode = source->mode;
	temp.owner = source->owner;
	if (r == 0)
		r = temp_finish(d, &temp, err);
	if (r == 0)
		r = publish(d, ctx, &t, &temp, cond, &st, err);
	return finish_write(d, ctx, &t, &temp, &st, r, ret_stat);
}

/* What is to be appended: bytes, or a file without a name that a stream was collected in before the lock was taken. */
struct piece {
	struct str bytes;
	int spool; /* -1: none */
};

static int fill_from_piece(const struct ctx *ctx, int fd, const struct piece *piece, struct err *err)
{
	if (piece->spool < 0)
		return write_all(ctx, fd, piece->bytes.ptr, piece->bytes.len, err);
	if (lseek(piece->spool, 0, SEEK_SET) < 0)
		return disk_fail(err, errno);
	return fill_from_file(ctx, fd, piece->spool, UINT64_MAX, err);
}

/* Old bytes (`from`, -1: none) and new ones to a new file, under the lock. */
static int append_by_rewrite(struct disk *d, struct ctx *ctx, struct target *t, int from, const struct piece *piece,
			     struct store_cond cond, pthread_mutex_t **turn, struct stat *ret_st, struct err *err)
{
	TEMP_SCOPE struct temp temp = TEMP_NONE;
	int r = 0, sys = temp_open(d, t->dir, &temp);

	if (sys < 0)
		return sys == -ENOENT ? RETRY : disk_fail(err, -sys);
	if (from >= 0)
		r = fill_from_file(ctx, temp.fd, from, UINT64_MAX, err);
	if (r == 0)
		r = fill_from_piece(ctx, temp.fd, piece, err);
	if (r == 0)
		r = temp_finish(d, &temp, err);
	if (r == 0)
		r = publish_locked(d, t, &temp, cond, ret_st, err);
	if (r == 0) {
		disk_unlock(t->dir);
		disk_turn_end(turn);
		r = disk_sync(d, t->dir, err);
	}
	return r;
}

static int append_in_place(struct disk *d, struct ctx *ctx, struct target *t, int fd, const struct piece *piece,
			   pthread_mutex_t **turn, struct stat *st, struct err *err)
{
	int r = fill_from_piece(ctx, fd, piece, err);

	if (r) { /* takes back a part; if that fails too, the first failure is the one to report */
		if (ftruncate(fd, st->st_size) < 0)
			err->retryable = false;
		return r;
	}
	if (fstat(fd, st) < 0)
		return disk_fail(err, errno);
	disk_unlock(t->dir);
	disk_turn_end(turn);
	return d->relaxed || fdatasync(fd) == 0 ? 0 : disk_fail(err, errno);
}

/* Gives the turn back, with the lock, before it waits for the disk. */
static int append_locked(struct disk *d, struct ctx *ctx, struct target *t, const struct piece *piece,
			 struct store_cond cond, pthread_mutex_t **turn, struct stat *ret_st, struct err *err)
{
	FD_SCOPE int fd = disk_open_at(t->dir, t->name, O_RDWR | O_APPEND | O_NOFOLLOW | O_NONBLOCK);
	int r;

	if (fd == -EISDIR && disk_drop_empty_dir(t->dir, t->name))
		fd = -ENOENT;
	if (fd == -ENOENT)
		return append_by_rewrite(d, ctx, t, -1, piece, cond, turn, ret_st, err);
	if (fd == -EISDIR)
		return disk_is_dir(t->path, err);
	if (fd < 0)
		return disk_fail(err, -fd);
	if (fstat(fd, ret_st) < 0)
		return disk_fail(err, errno);
	if (!S_ISREG(ret_st->st_mode))
		return disk_fail_kind(err, ret_st->st_mode);
	r = disk_check_cond(ret_st, cond, err);
	if (r)
		return r;
	if (ret_st->st_nlink > 1)
		return append_by_rewrite(d, ctx, t, fd, piece, cond, turn, ret_st, err);
	return append_in_place(d, ctx, t, fd, piece, turn, ret_st, err);
}

static int append_piece(struct disk *d, struct ctx *ctx, struct target *t, const struct piece *piece,
			struct store_cond cond, struct stat *ret_st, struct err *err)
{
	for (unsigned tries = 0; tries < DISK_TRIES_MAX; tries++) {
		TURN_SCOPE pthread_mutex_t *turn = NULL;
		int r = target_open(d, t, err);

		if (r == 0) {
			turn = disk_turn_take(d, wpath_parent(t->path));
			r = disk_lock(ctx, t->dir, err);
		}
		if (r == 0)
			r = append_locked(d, ctx, t, piece, cond, &turn, ret_st, err);
		if (r != RETRY)
			return r;
		disk_back_off(tries);
	}
	return disk_fail(err, EBUSY);
}

int disk_append(struct store *s, struct ctx *ctx, struct wpath path, const struct source *source,
		struct store_cond cond, struct store_stat *ret_stat, struct err *err)
{
	struct disk *d = disk_of(s);
	TARGET_SCOPE struct target t = target_of(path);
	TEMP_SCOPE struct temp spool = TEMP_NONE;
	struct piece piece = {.bytes = source->bytes, .spool = -1};
	struct stat st;
	int r = disk_refuse_reserved(path, err);

	if (r == 0 && source->pull) { /* a slow stream must not keep the lock */
		r = target_open_temp(d, &t, &spool, err);
		if (r == 0)
			r = fill_from_source(ctx, spool.fd, source, err);
		piece.spool = spool.fd;
	}
	if (r == 0)
		r = append_piece(d, ctx, &t, &piece, cond, &st, err);
	return finish_write(d, ctx, &t, &spool, &st, r, ret_stat);
}

/* Opens what is to be copied. */
static int open_source(const struct disk *d, struct wpath path, struct stat *ret_st, int *ret_fd, struct err *err)
{
	FD_SCOPE int fd = disk_reserved(path) ? -ENOENT : disk_open_path(d, path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW);

	if (fd < 0)
		return fd == -ENOTDIR ? store_not_found(err) : disk_fail(err, -fd);
	if (fstat(fd, ret_st) < 0)
		return disk_fail(err, errno);
	if (S_ISDIR(ret_st->st_mode))
		return disk_is_dir(path, err);
	if (!S_ISREG(ret_st->st_mode))
		return disk_fail_kind(err, ret_st->st_mode);
	*ret_fd = fd;
	fd = -1;
	return 0;
}

int disk_copy_owned(struct store *s, struct ctx *ctx, struct wpath from, struct wpath to, struct store_cond to_cond,
		    struct store_owner owner, struct store_stat *ret_stat, struct err *err)
{
	struct disk *d = disk_of(s);
	TARGET_SCOPE struct target t = target_of(to);
	TEMP_SCOPE struct temp temp = TEMP_NONE;
	FD_SCOPE int source = -1;
	struct stat st;
	int r = disk_refuse_reserved(to, err);

	if (r == 0)
		r = open_source(d, from, &st, &source, err);
	if (r == 0)
		r = target_open_temp(d, &t, &temp, err);
	if (r == 0)
		r = fill_from_file(ctx, temp.fd, source, (uint64_t)st.st_size, err);
	temp.owner = owner;
	if (r == 0 && fchmod(temp.fd, st.st_mode & 0777) < 0)
		r = disk_fail(err, errno);
	if (r == 0)
		r = temp_finish(d, &temp, err);
	if (r == 0)
		r = publish(d, ctx, &t, &temp, to_cond, &st, err);
	return finish_write(d, ctx, &t, &temp, &st, r, ret_stat);
}

int disk_copy(struct store *s, struct ctx *ctx, struct wpath from, struct wpath to, struct store_cond to_cond,
	      struct store_stat *ret_stat, struct err *err)
{
	return disk_copy_owned(s, ctx, from, to, to_cond, (struct store_owner){0}, ret_stat, err);
}
