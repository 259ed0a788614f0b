/* SPDX-License-Identifier: Apache-2.0 */
/* What others do to a file between the two calls with which a read begins. The second one, fstat, is wrapped; and
   fstatat, to answer as the kernel does while a file is being replaced; and flock, before which a file that is about to
   be removed gets its final name. */
#include <sys/file.h>
#include <sys/stat.h>

#include "store/backends/disk/disk_fix.h"

static void (*before_fstat)(void); /* done once */
static struct fix *at;

int __real_fstat64(int fd, struct stat *st);
int __wrap_fstat64(int fd, struct stat *st);

int __wrap_fstat64(int fd, struct stat *st)
{
	void (*act)(void) = before_fstat;

	before_fstat = NULL;
	if (act)
		act();
	return __real_fstat64(fd, st);
}

static unsigned going; /* so many answers are of a file that has just lost its name */

int __real_fstatat64(int dir, const char *name, struct stat *st, int flags);
int __wrap_fstatat64(int dir, const char *name, struct stat *st, int flags);

int __wrap_fstatat64(int dir, const char *name, struct stat *st, int flags)
{
	int r = __real_fstatat64(dir, name, st, flags);

	if (r == 0 && going && S_ISREG(st->st_mode)) {
		going--;
		st->st_nlink = 0;
		st->st_ctim.tv_nsec ^= 1;
	}
	return r;
}

static void (*before_flock)(void); /* done once */

int __real_flock(int fd, int operation);
int __wrap_flock(int fd, int operation);

int __wrap_flock(int fd, int operation)
{
	void (*act)(void) = before_flock;

	before_flock = NULL;
	if (act)
		act();
	return __real_flock(fd, operation);
}

static void move_and_append(void)
{
	struct err err;

	CHECK_OK(store_move(at->s, &at->ctx, P("e/y"), P("d/y"), ANY, ANY, NULL, &err), err);
	CHECK_OK(store_append(at->s, &at->ctx, P("d/y"), STR("two\n"), ANY, NULL, &err), err);
}

static void replace(void)
{
	struct err err;

	CHECK_OK(store_write(at->s, &at->ctx, P("e/y"), STR("new\n"), ANY, NULL, &err), err);
}

static struct fix opened(void (*act)(void))
{
	struct fix f = fix_new(true);

	CHECK_OK(store_write(f.s, &f.ctx, P("e/y"), STR("one\n"), ANY, NULL, &f.err), f.err);
	before_fstat = act;
	return f;
}

TEST(a_read_never_gives_what_was_appended_under_another_name)
{
	struct fix f = opened(move_and_append);
	struct str bytes;

	at = &f;
	CHECK_INT(store_read(f.s, &f.ctx, P("e/y"), STORE_WHOLE, MIB, &bytes, NULL, &f.err), -ERR_NOT_FOUND);
	CHECK_OK(store_read(f.s, &f.ctx, P("d/y"), STORE_WHOLE, MIB, &bytes, NULL, &f.err), f.err);
	CHECK_STR(bytes, STR("one\ntwo\n"));
}

TEST(a_read_of_a_file_that_is_being_replaced_gives_one_of_the_two)
{
	struct fix f = opened(replace);
	struct str bytes;

	at = &f;
	CHECK_OK(store_read(f.s, &f.ctx, P("e/y"), STORE_WHOLE, MIB, &bytes, NULL, &f.err), f.err);
	CHECK_STR(bytes, STR("new\n"));
}

TEST(a_stat_of_a_file_that_is_being_replaced_gives_a_version_that_it_had)
{
	struct fix f = opened(replace);
	struct store_stat seen, now;

	at = &f;
	CHECK_OK(store_stat(f.s, &f.ctx, P("e/y"), &seen, &f.err), f.err);
	CHECK_OK(store_stat(f.s, &f.ctx, P("e/y"), &now, &f.err), f.err);
	CHECK_STR(seen.version, now.version);
}

TEST(a_file_that_the_kernel_still_finds_while_it_is_being_replaced_is_looked_at_again)
{
	struct fix f = fix_new(true);
	struct store_list_req req = {.limit = 10};
	struct store_stat made, seen;
	struct store_page page;

	CHECK_OK(store_write(f.s, &f.ctx, P("y"), STR("one\n"), ANY, &made, &f.err), f.err);
	going = 3;
	CHECK_OK(store_stat(f.s, &f.ctx, P("y"), &seen, &f.err), f.err);
	CHECK_STR(seen.version, made.version);
	going = 3;
	CHECK_OK(store_list(f.s, &f.ctx, WPATH_ROOT, &req, &page, &f.err), f.err);
	CHECK_INT(page.count, 1);
	CHECK_STR(page.entries[0].stat.version, made.version);
}

TEST(a_file_system_that_counts_no_links_is_waited_for_once)
{
	struct fix f = fix_new(true);
	struct store_stat seen;

	CHECK_OK(store_write(f.s, &f.ctx, P("y"), STR("one\n"), ANY, NULL, &f.err), f.err);
	going = 2000;
	CHECK_OK(store_stat(f.s, &f.ctx, P("y"), &seen, &f.err), f.err);
	CHECK_INT(going, 2000 - 1001);
	CHECK_OK(store_stat(f.s, &f.ctx, P("y"), &seen, &f.err), f.err);
	CHECK_INT(going, 2000 - 1002);
	going = 0;
}

static int live = -1; /* a writer that has not finished */

static void finish_and_begin_the_next(void)
{
	CHECK(renameat(at->fd, ".stead-tmp-0", at->fd, "done") == 0);
	raw_write(at->fd, ".stead-tmp-0", "half");
	live = openat(at->fd, ".stead-tmp-0", O_RDONLY | O_CLOEXEC);
	CHECK(live >= 0 && __real_flock(live, LOCK_EX) == 0);
}

TEST(a_list_leaves_the_unfinished_file_of_the_next_writer_alone)
{
	struct fix f = fix_new(true);
	struct store_list_req req = {.limit = 10};
	struct store_page page;

	at = &f;
	raw_write(f.fd, ".stead-tmp-0", "whole");
	before_flock = finish_and_begin_the_next;
	CHECK_OK(store_list(f.s, &f.ctx, WPATH_ROOT, &req, &page, &f.err), f.err);
	CHECK_STR(raw_read(f.ctx.arena, f.fd, ".stead-tmp-0"), STR("half"));
	CHECK_STR(raw_read(f.ctx.arena, f.fd, "done"), STR("whole"));
	close(live);
}
