/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Remove and move. A tree is removed by descriptors, each directory opened from its parent's: a directory that
 * somebody swaps for a link is either not entered or, once entered, still itself. Links in the tree are removed,
 * what they point to is not. At most TREE_FDS descriptors are open at once; a deeper subtree is moved up to the
 * top of the tree that is being removed and taken in a later round, so no depth is too deep.
 *
 * Files are unlinked under the lock of their directory, since a conditional write elsewhere compares and renames under
 * it. Directories need none: rmdir removes only what is empty.
 */
#include <dirent.h>
#include <errno.h>

#include "base/clock.h"
#include "base/hash.h"
#include "store/backends/disk/disk.h"

#define TREE_FDS   64
#define ROUNDS_MAX 1000
/* Internal answer: a directory vanished or a name appeared, look again. Not an error kind. */
#define RETRY 1

struct removal {
	const struct disk *d;
	struct ctx *ctx;
	int top;
	uint64_t count;
};

static int empty_dir(struct removal *rm, int dir, unsigned depth, struct err *err);

/* Moves a directory to the top of the removed tree, under a name that nobody uses. */
static int move_up(struct removal *rm, int dir, const char *name, struct err *err)
{
	char up[] = "stead-removed-0123456789abcdef";

	hex_u64(random_u64(), up + sizeof(up) - 17);
	if (renameat2(dir, name, rm->top, up, RENAME_NOREPLACE) < 0 && errno != ENOENT)
		return disk_fail(err, errno);
	return 0;
}

static int remove_subdir(struct removal *rm, int dir, const char *name, unsigned depth, struct err *err)
{
	FD_SCOPE int sub = -1;
	int r;

	if (depth >= TREE_FDS)
		return move_up(rm, dir, name, err);
	sub = disk_open_at(dir, name, O_RDONLY | O_DIRECTORY);
	if (sub == -ENOENT || sub == -ELOOP || sub == -ENOTDIR)
		return 0; /* gone, or swapped: the next round sees what it is now */
	if (sub < 0)
		return disk_fail(err, -sub);
	r = empty_dir(rm, sub, depth + 1, err);
	if (r)
		return r;
	if (unlinkat(dir, name, AT_REMOVEDIR) < 0 && errno != ENOENT && errno != ENOTEMPTY && errno != ENOTDIR)
		return disk_fail(err, errno);
	return 0;
}

static int remove_files(struct removal *rm, int dir, const struct disk_names *names, struct err *err)
{
	int r = disk_lock(rm->ctx, dir, err);

	for (size_t i = 0; r == 0 && i < names->count; i++) {
		const struct disk_name_ref *ref = &names->refs[i];
		const char *name = names->text + ref->at;

		if (ref->type == DT_DIR)
			continue;
		if (ref->type == DT_REG && disk_name_reserved(name))
			disk_sweep_name(dir, name); /* a live one goes by itself, soon */
		else if (unlinkat(dir, name, 0) == 0)
			rm->count += ref->type == DT_REG;
		else if (errno != ENOENT && errno != EISDIR)
			r = disk_fail(err, errno);
	}
	disk_unlock(dir);
	return r;
}

/* One round: everything that is in it now. *ret_empty when there was nothing. */
static int empty_once(struct removal *rm, int dir, unsigned depth, bool *ret_empty, struct err *err)
{
	struct disk_names names;
	int r = ctx_check(rm->ctx, err);

	if (r)
		return r;
	if (lseek(dir, 0, SEEK_SET) < 0)
		return disk_fail(err, errno);
	r = disk_names_read(dir, true, &names, err);
	if (r)
		return r;
	*ret_empty = names.count == 0;
	for (size_t i = 0; r == 0 && i < names.count; i++)
		if (names.refs[i].type == DT_DIR)
			r = remove_subdir(rm, dir, names.text + names.refs[i].at, depth, err);
	if (r == 0 && names.count)
		r = remove_files(rm, dir, &names, err);
	disk_names_release(&names);
	return r;
}

static int empty_dir(struct removal *rm, int dir, unsigned depth, struct err *err)
{
	for (int round = 0; round < ROUNDS_MAX; round++) {
		bool empty = false;
		int r = empty_once(rm, dir, depth, &empty, err);

		if (r || empty)
			return r;
	}
	return err_set(err, ERR_UNAVAILABLE,
		       "others keep writing to the directory while it is being removed; try again");
}

/* Empties the directory `name` of `parent` and removes it; without a name, only empties `parent`. */
static int remove_tree(const struct disk *d, struct ctx *ctx, int parent, const char *name, uint64_t *ret_count,
		       struct err *err)
{
	FD_SCOPE int top = disk_open_at(parent, name ? name : ".", O_RDONLY | O_DIRECTORY);
	struct removal rm = {.d = d, .ctx = ctx, .top = top};
	int r = top < 0 ? disk_fail(err, -top) : 0;

	for (int round = 0; r == 0; round++) {
		r = empty_dir(&rm, top, 0, err);
		if (r || !name || unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
			break;
		if ((errno != ENOTEMPTY && errno != EEXIST) || round == ROUNDS_MAX)
			r = disk_fail(err, errno);
		else
			r = disk_lock(ctx, top, err); /* a writer is between its two steps: wait for it */
		disk_unlock(top);
	}
	*ret_count = rm.count;
	return r;
}

static int missing(struct store_cond cond, struct err *err)
{
	return cond.kind == STORE_VERSION ? disk_check_cond(NULL, cond, err) : store_not_found(err);
}

static int dir_has_no_version(struct wpath path, struct err *err)
{
	return store_refuse(REFUSE_DIR_VERSION, path.s, err);
}

/* Under the lock of `dir`: unlinks a file, or tells that it is a directory that may be removed. */
static int remove_locked(int dir, struct wpath path, bool recursive, struct store_cond cond, bool *ret_tree,
			 struct err *err)
{
	char name[PATH_NAME_MAX + 1];
	struct stat st;
	int sys, r;

	disk_name(path, name);
	sys = disk_lstat(dir, name, &st);
	if (sys < 0)
		return sys == -ENOENT ? missing(cond, err) : disk_fail(err, -sys);
	*ret_tree = S_ISDIR(st.st_mode);
	if (*ret_tree && cond.kind != STORE_ANY)
		return dir_has_no_version(path, err);
	if (*ret_tree && !recursive)
		return store_refuse(REFUSE_NOT_RECURSIVE, path.s, err);
	if (*ret_tree)
		return 0;
	if (!S_ISREG(st.st_mode))
		return disk_fail_kind(err, st.st_mode);
	r = disk_check_cond(&st, cond, err);
	if (r == 0 && unlinkat(dir, name, 0) < 0)
		r = errno == ENOENT ? missing(cond, err) : disk_fail(err, errno);
	return r;
}

static int remove_root(const struct disk *d, struct ctx *ctx, struct store_cond cond, uint64_t *ret_count,
		       struct err *err)
{
	int r;

	if (cond.kind != STORE_ANY)
		return dir_has_no_version(WPATH_ROOT, err);
	r = remove_tree(d, ctx, d->root, NULL, ret_count, err);
	return r ? r : disk_sync(d, d->root, err);
}

/* Opens the parent directory of `path`. */
static int open_parent(const struct disk *d, struct wpath path, struct store_cond cond, int *ret_dir, struct err *err)
{
	int fd = disk_reserved(path) ? -ENOENT : disk_open_dir(d, wpath_parent(path));

	if (fd < 0)
		return fd == -ENOENT || fd == -ENOTDIR ? missing(cond, err) : disk_fail(err, -fd);
	*ret_dir = fd;
	return 0;
}

int disk_remove(struct store *s, struct ctx *ctx, struct wpath path, bool recursive, struct store_cond cond,
		uint64_t *ret_count, struct err *err)
{
	struct disk *d = disk_of(s);
	TURN_SCOPE pthread_mutex_t *turn = NULL;
	FD_SCOPE int dir = -1;
	uint64_t count = 1;
	bool tree = false;
	int r;

	if (wpath_is_root(path))
		return remove_root(d, ctx, cond, ret_count, err);
	r = open_parent(d, path, cond, &dir, err);
	if (r)
		return r;
	turn = disk_turn_take(d, wpath_parent(path));
	r = disk_lock(ctx, dir, err);
	if (r)
		return r;
	r = remove_locked(dir, path, recursive, cond, &tree, err);
	disk_unlock(dir);
	disk_turn_end(&turn);
	if (r == 0 && tree) {
		char name[PATH_NAME_MAX + 1];

		disk_name(path, name);
		r = remove_tree(d, ctx, dir, name, &count, err);
	}
	if (r == 0)
		r = disk_sync(d, dir, err);
	if (r == 0) {
		disk_prune(d, wpath_parent(path));
		*ret_count = count;
	}
	return r;
}

/* One end of a move. */
struct end {
	struct wpath path;
	char name[PATH_NAME_MAX + 1];
	struct store_cond cond;
	int dir;
	struct stat st;
	bool exists;
};

static struct end end_of(struct wpath path, struct store_cond cond)
{
	struct end e = {.path = path, .cond = cond, .dir = -1};

	disk_name(path, e.name);
	return e;
}

static void end_close(struct end *e)
{
	if (e->dir >= 0)
		close(e->dir);
	e->dir = -1;
}

#define END_SCOPE __attribute__((cleanup(end_close)))

/* Checks the source: it exists, is of a kind that can be moved, and meets its condition. */
static int check_from(struct end *from, struct err *err)
{
	int sys = disk_lstat(from->dir, from->name, &from->st);

	if (sys < 0)
		return sys == -ENOENT ? missing(from->cond, err) : disk_fail(err, -sys);
	if (S_ISDIR(from->st.st_mode))
		return from->cond.kind == STORE_ANY ? 0 : dir_has_no_version(from->path, err);
	if (!S_ISREG(from->st.st_mode))
		return disk_fail_kind(err, from->st.st_mode);
	return disk_check_cond(&from->st, from->cond, err);
}

static int check_to(struct end *to, const struct end *from, struct err *err)
{
	int r, sys = disk_lstat(to->dir, to->name, &to->st);

	if (sys < 0 && sys != -ENOENT)
		return disk_fail(err, -sys);
	to->exists = sys == 0;
	if (to->exists && S_ISDIR(to->st.st_mode)) {
		if (!disk_drop_empty_dir(to->dir, to->name))
			return disk_is_dir(to->path, err);
		to->exists = false;
	}
	if (to->exists && !S_ISREG(to->st.st_mode))
		return disk_fail_kind(err, to->st.st_mode);
	r = disk_check_cond(to->exists ? &to->st : NULL, to->cond, err);
	if (r == 0 && to->exists && S_ISDIR(from->st.st_mode))
		return store_refuse(REFUSE_FILE_TARGET, to->path.s, err);
	return r;
}

/* Locks both directories, always the same one first, so that two moves cannot wait for each other. */
static int lock_both(struct ctx *ctx, const struct end *from, const struct end *to, struct err *err)
{
	struct stat a, b;
	bool from_first;
	int r;

	if (fstat(from->dir, &a) < 0 || fstat(to->dir, &b) < 0)
		return disk_fail(err, errno);
	if (a.st_dev == b.st_dev && a.st_ino == b.st_ino)
		return disk_lock(ctx, from->dir, err);
	from_first = a.st_dev != b.st_dev ? a.st_dev < b.st_dev : a.st_ino < b.st_ino;
	r = disk_lock(ctx, from_first ? from->dir : to->dir, err);
	return r ? r : disk_lock(ctx, from_first ? to->dir : from->dir, err);
}

/* 0 or -errno. */
static int rename_end(const struct end *from, const struct end *to)
{
	if (to->exists)
		return renameat(from->dir, from->name, to->dir, to->name) == 0 ? 0 : -errno;
	if (renameat2(from->dir, from->name, to->dir, to->name, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	return renameat(from->dir, from->name, to->dir, to->name) == 0 ? 0 : -errno;
}

static int move_locked(const struct disk *d, struct ctx *ctx, struct end *from, struct end *to,
		       struct store_stat *ret_stat, struct err *err)
{
	int sys, r = check_from(from, err);

	if (r == 0)
		r = check_to(to, from, err);
	if (r)
		return r;
	sys = rename_end(from, to);
	if (sys == -ENOENT || sys == -EEXIST)
		return RETRY;
	if (sys == -EXDEV)
		err_set(err, ERR_UNSUPPORTED, "they are on different file systems; copy, then remove");
	else if (sys < 0)
		disk_fail(err, -sys);
	if (sys < 0) {
		err->sys = -sys;
		return -(int)err->kind;
	}
	sys = disk_lstat(to->dir, to->name, &to->st);
	if (sys < 0)
		return disk_fail(err, -sys);
	disk_fill_stat(d, ctx->arena, &to->st, ret_stat);
	return 0;
}

/* Opens both directories, makes the target's, and moves under their locks. */
static int move_once(struct disk *d, struct ctx *ctx, struct end *from, struct end *to, bool *ret_made,
		     struct store_stat *ret_stat, struct err *err)
{
	struct wpath to_parent = wpath_parent(to->path);
	int r;

	end_close(from);
	end_close(to);
	r = open_parent(d, from->path, from->cond, &from->dir, err);
	if (r == 0)
		r = check_from(from, err); /* before directories are made for nothing */
	if (r)
		return r;
	to->dir = disk_make_dir(d, to_parent, ret_made);
	if (to->dir < 0)
		return disk_fail_parent(d, to_parent, -to->dir, err);
	r = lock_both(ctx, from, to, err);
	if (r == 0)
		r = move_locked(d, ctx, from, to, ret_stat, err);
	disk_unlock(from->dir);
	disk_unlock(to->dir);
	return r;
}

/* A file system is mounted inside the store: the bytes are copied, and the source goes if it is still the same. */
static int move_by_copy(struct store *s, struct ctx *ctx, const struct end *from, const struct end *to,
			struct store_stat *ret_stat, struct err *err)
{
	struct store_stat source;
	uint64_t count;
	int r;

	disk_fill_stat(disk_of(s), ctx->arena, &from->st, &source);
	r = disk_copy_owned(s, ctx, from->path, to->path, to->cond, source.owner, ret_stat, err);
	if (r)
		return r;
	return disk_remove(s, ctx, from->path, false,
			   (struct store_cond){.kind = STORE_VERSION, .version = source.version}, &count, err);
}

int disk_move(struct store *s, struct ctx *ctx, struct wpath from_path, struct wpath to_path, struct store_cond cond,
	      struct store_cond to_cond, struct store_stat *ret_stat, struct err *err)
{
	struct disk *d = disk_of(s);
	END_SCOPE struct end from = end_of(from_path, cond), to = end_of(to_path, to_cond);
	bool made = false;
	int r = disk_refuse_reserved(to_path, err);

	if (r)
		return r;
	r = RETRY;
	for (unsigned tries = 0; r == RETRY && tries < DISK_TRIES_MAX; tries++) {
		if (tries)
			disk_back_off(tries);
		r = move_once(d, ctx, &from, &to, &made, ret_stat, err);
	}
	if (r == RETRY)
		r = disk_fail(err, EBUSY);
	if (r && err->sys == EXDEV && S_ISREG(from.st.st_mode))
		return move_by_copy(s, ctx, &from, &to, ret_stat, err);
	if (r == 0)
		r = disk_sync(d, to.dir, err);
	if (r == 0)
		r = disk_sync(d, from.dir, err);
	if (r == 0)
		disk_prune(d, wpath_parent(from_path));
	else if (made)
		disk_prune(d, wpath_parent(to_path));
	return r;
}
