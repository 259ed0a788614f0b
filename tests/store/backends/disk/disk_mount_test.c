/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File systems that are full, read-only, or mounted inside the store. Each test mounts a small tmpfs in a mount
 * namespace of its own; where that is not permitted (no root) the test is skipped.
 */
#include <sched.h>
#include <sys/mount.h>

#include "store/backends/disk/disk_fix.h"

#define NOT_PERMITTED 77

static bool mount_at(struct fix *f, const char *sub, const char *options)
{
	char path[300];

	snprintf(path, sizeof(path), "%s/%s", f->dir, sub);
	return unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       mount("tmpfs", path, "tmpfs", 0, options) == 0;
}

/* A descriptor from before the mount sees the directory below it, so the store is opened again. */
static bool reopen(struct fix *f)
{
	static const struct store_disk_opts opts;

	store_destroy(f->s);
	return store_disk_open(f->dir, &opts, &f->s, &f->err) == 0;
}

static void check_child(int (*run)(struct fix *f), struct fix *f)
{
	int code = in_child(run, f);

	if (code == NOT_PERMITTED)
		SKIP("mounting is not permitted here");
	CHECK_INT(code, 0);
}

static int fill_the_disk(struct fix *f)
{
	static char big[2 * 1024 * 1024];
	struct str bytes;

	if (!mount_at(f, ".", "size=1m"))
		return NOT_PERMITTED;
	if (!reopen(f) || store_write(f->s, &f->ctx, P("file"), STR("old"), ANY, NULL, &f->err))
		return 1;
	if (store_write(f->s, &f->ctx, P("file"), str_n(big, sizeof(big)), ANY, NULL, &f->err) != -ERR_QUOTA)
		return 2;
	if (!strstr(f->err.msg, "the disk is full; free some space"))
		return 3;
	if (store_append(f->s, &f->ctx, P("file"), str_n(big, sizeof(big)), ANY, NULL, &f->err) != -ERR_QUOTA)
		return 4;
	if (store_write(f->s, &f->ctx, P("d/new"), str_n(big, sizeof(big)), ANY, NULL, &f->err) != -ERR_QUOTA)
		return 5;
	if (store_stat(f->s, &f->ctx, P("d"), NULL, &f->err) != -ERR_NOT_FOUND)
		return 6;
	if (store_read(f->s, &f->ctx, P("file"), STORE_WHOLE, MIB, &bytes, NULL, &f->err))
		return 7;
	return str_is(bytes, "old") ? 0 : 8;
}

TEST(a_full_disk_is_said_so_and_changes_nothing)
{
	struct fix f = fix_new(true);

	check_child(fill_the_disk, &f);
}

static int write_to_read_only(struct fix *f)
{
	if (!mount_at(f, ".", "size=1m"))
		return NOT_PERMITTED;
	if (!reopen(f) || store_write(f->s, &f->ctx, P("file"), STR("old"), ANY, NULL, &f->err))
		return 1;
	if (mount("none", f->dir, NULL, MS_REMOUNT | MS_RDONLY, NULL) < 0)
		return NOT_PERMITTED;
	if (store_write(f->s, &f->ctx, P("file"), STR("new"), ANY, NULL, &f->err) != -ERR_DENIED)
		return 2;
	if (!strstr(f->err.msg, "mounted read-only"))
		return 3;
	if (store_append(f->s, &f->ctx, P("file"), STR("new"), ANY, NULL, &f->err) != -ERR_DENIED)
		return 4;
	return store_remove(f->s, &f->ctx, P("file"), false, ANY, NULL, &f->err) == -ERR_DENIED ? 0 : 5;
}

TEST(a_read_only_file_system_is_said_so)
{
	struct fix f = fix_new(true);

	check_child(write_to_read_only, &f);
}

static int move_across(struct fix *f)
{
	struct store_stat moved;
	struct str bytes;

	if (mkdirat(f->fd, "m", 0755) < 0 || !mount_at(f, "m", "size=1m"))
		return NOT_PERMITTED;
	if (!reopen(f) || store_write(f->s, &f->ctx, P("a/file"), STR("bytes"), ANY, NULL, &f->err) ||
	    fchownat(f->fd, "a/file", 1234, 4321, 0) < 0)
		return 1;
	if (store_move(f->s, &f->ctx, P("a/file"), P("m/d/file"), ANY, ABSENT, NULL, &f->err))
		return 2;
	if (store_stat(f->s, &f->ctx, P("a"), NULL, &f->err) != -ERR_NOT_FOUND)
		return 3;
	if (store_read(f->s, &f->ctx, P("m/d/file"), STORE_WHOLE, MIB, &bytes, NULL, &f->err) ||
	    !str_is(bytes, "bytes"))
		return 4;
	if (store_stat(f->s, &f->ctx, P("m/d/file"), &moved, &f->err) || moved.owner.uid != 1234 ||
	    moved.owner.gid != 4321) /* as after any move */
		return 7;
	if (store_move(f->s, &f->ctx, P("m/d"), P("d"), ANY, ANY, NULL, &f->err) != -ERR_UNSUPPORTED)
		return 5;
	return store_copy(f->s, &f->ctx, P("m/d/file"), P("copy"), ANY, NULL, &f->err) ? 6 : 0;
}

TEST(a_file_moves_between_file_systems_and_a_directory_is_refused)
{
	struct fix f = fix_new(true);

	check_child(move_across, &f);
}
