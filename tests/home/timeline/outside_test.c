/* SPDX-License-Identifier: Apache-2.0 */
/* What another program does to the files of a workspace while a server runs. */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "home/timeline/history.h"
#include "home/timeline/outside.h"
#include "revisions/revisions.h"
#include "temp_dir.h"

static struct arena *arena;
static struct ctx ctx;
static struct err err;
static struct workspace *ws;
static struct outside *outside;
static const char *dir;

/* In place of the function of the C library: counts how often the watcher's thread waits for a time, and until
   something happens. */
static atomic_int waits_for_a_time, waits_for_an_event;

int poll(struct pollfd *fds, nfds_t count, int timeout)
{
	struct timespec time = {timeout / 1000, timeout % 1000 * 1000000L};

	atomic_fetch_add(timeout < 0 ? &waits_for_an_event : &waits_for_a_time, count == 2);
	return ppoll(fds, count, timeout < 0 ? NULL : &time, NULL);
}

static void start(void)
{
	outside = outside_start(ws, 0);
	CHECK(outside);
	test_defer(outside_stop, outside);
}

static void open_new(void)
{
	struct workspace_opts opts = {.name = STR("scout"), .create = true, .relaxed = true};

	arena = arena_new();
	test_defer(arena_destroy, arena);
	ctx = (struct ctx){.arena = arena};
	dir = temp_dir_new();
	opts.store_url = arena_printf(arena, "disk:%s", dir);
	CHECK_OK(workspace_open(&opts, &ws, &err), err);
	test_defer(workspace_close, ws);
}

static void set_up(void)
{
	open_new();
	CHECK_OK(store_write(workspace_files(ws), &ctx, (struct wpath){STR("d/a")}, STR("ours"), (struct store_cond){0},
			     NULL, &err),
		 err);
	start();
}

static void by_another_program(const char *path, const char *text)
{
	struct str name = arena_printf(arena, "%s/scout/files/%s", dir, path);
	FILE *f;

	if (!text) {
		CHECK(remove(name.ptr) == 0);
		return;
	}
	f = fopen(arena_printf(arena, "%s/unfinished", dir).ptr, "w");
	CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
	CHECK(rename(arena_printf(arena, "%s/unfinished", dir).ptr, name.ptr) == 0);
}

/* Waits for the next record of a path. */
static struct revision next(const char *path, uint64_t since)
{
	struct rev_query q = {.since = since, .limit = 1, .path = {str_of(path)}};
	struct revision *list;
	size_t count = 0;

	ctx.deadline_ns = clock_monotonic_ns() + INT64_C(20) * 1000000000;
	while (count == 0) {
		CHECK_OK(revisions_wait(workspace_revisions(ws), &ctx, since, 1000, &err), err);
		CHECK_OK(revisions_head(workspace_revisions(ws), &ctx, &since, &err), err);
		CHECK_OK(revisions_query(workspace_revisions(ws), &ctx, &q, &list, &count, NULL, &err), err);
	}
	ctx.deadline_ns = 0;
	return list[0];
}

/* The walk over the directories has begun when a first change is noticed; it is made until then. */
static uint64_t wait_until_watched(void)
{
	for (int i = 0; i < 200; i++) {
		int r;

		by_another_program("d/a", i % 2 ? "theirs" : "theirs too");
		ctx.deadline_ns = clock_monotonic_ns() + INT64_C(300) * 1000000;
		r = revisions_wait(workspace_revisions(ws), &ctx, 1, 1000, &err);
		ctx.deadline_ns = 0;
		if (r == 0) {
			uint64_t head;

			CHECK_OK(revisions_head(workspace_revisions(ws), &ctx, &head, &err), err);
			return head;
		}
	}
	TEST_FAIL("no change was ever noticed");
}

TEST(what_another_program_does_is_recorded_while_a_server_runs)
{
	struct revision r;
	uint64_t head;

	set_up();
	head = wait_until_watched();
	by_another_program("new.txt", "hello");
	r = next("files/new.txt", head);
	CHECK_INT(r.op, REV_OUTSIDE);
	CHECK(r.after.exists && r.after.size == 5);
	by_another_program("new.txt", NULL);
	r = next("files/new.txt", r.number);
	CHECK(!r.after.exists);
}

TEST(files_of_a_directory_that_another_program_brings_are_recorded)
{
	uint64_t since;

	set_up();
	since = wait_until_watched();
	CHECK(mkdir(arena_printf(arena, "%s/made", dir).ptr, 0700) == 0);
	CHECK(mkdir(arena_printf(arena, "%s/made/in", dir).ptr, 0700) == 0);
	CHECK(fclose(fopen(arena_printf(arena, "%s/made/in/it", dir).ptr, "w")) == 0);
	CHECK(rename(arena_printf(arena, "%s/made", dir).ptr, arena_printf(arena, "%s/scout/files/came", dir).ptr) ==
	      0);
	CHECK_INT(next("files/came/in/it", since).op, REV_OUTSIDE);
}

TEST(a_file_area_that_does_not_exist_is_waited_for_in_its_directory)
{
	open_new();
	CHECK(access(arena_printf(arena, "%s/scout/files", dir).ptr, F_OK) != 0);
	start();
	while (!atomic_load(&waits_for_an_event))
		CHECK(atomic_load(&waits_for_a_time) < 5);
	CHECK(outside_catch_up(ws, &ctx));
	CHECK(mkdir(arena_printf(arena, "%s/scout/other", dir).ptr, 0700) == 0);
	CHECK(mkdir(arena_printf(arena, "%s/scout/files", dir).ptr, 0700) == 0);
	by_another_program("first", "x");
	CHECK_INT(next("files/first", 0).op, REV_OUTSIDE);
	by_another_program("second", "x");
	CHECK_INT(next("files/second", 1).op, REV_OUTSIDE);
}

TEST(our_own_changes_are_not_recorded_twice)
{
	struct rev_query q = {.path = {STR("files/d/own")}};
	struct revision *list;
	uint64_t head;
	size_t count;

	set_up();
	head = wait_until_watched();
	CHECK_OK(store_write(workspace_files(ws), &ctx, (struct wpath){STR("d/own")}, STR("1"), (struct store_cond){0},
			     NULL, &err),
		 err);
	by_another_program("last", "x"); /* comes after it, so it is looked at after it */
	next("files/last", head);
	CHECK_OK(revisions_query(workspace_revisions(ws), &ctx, &q, &list, &count, NULL, &err), err);
	CHECK_INT(count, 1);
	CHECK_INT(list[0].op, REV_WRITE);
}

static int64_t count_outside(const char *path)
{
	struct history_req req = {.path = {str_of(path)}};
	int64_t n = 0;
	struct jv *v;

	CHECK_OK(history_list(ws, &ctx, &req, &v, &err), err);
	for (const struct jv_member *m = jv_first(jv_get(v, "revisions")); m; m = m->next)
		n += str_is(jv_get_str(m->value, "operation"), "outside");
	return n;
}

TEST(history_has_what_another_program_did_a_moment_before)
{
	set_up();
	by_another_program("d/a", "theirs"); /* before anything is watched */
	CHECK_INT(count_outside(""), 1);
	for (int i = 0; i < 20; i++) {
		by_another_program("d/a", i % 2 ? "one" : "another");
		CHECK_INT(count_outside("d"), 2 + i);
	}
	by_another_program("d/a", NULL);
	CHECK_INT(count_outside("d/a"), 22);
}

/* What is not watched shows which files are looked at. */
TEST(with_a_watcher_history_looks_at_the_asked_file_and_not_at_every_known_one)
{
	set_up();
	CHECK_OK(store_write(workspace_files(ws), &ctx, (struct wpath){STR("node_modules/m")}, STR("ours"),
			     (struct store_cond){0}, NULL, &err),
		 err);
	CHECK_INT(count_outside(""), 0);
	by_another_program("node_modules/m", "theirs");
	CHECK_INT(count_outside(""), 0);
	CHECK_INT(count_outside("node_modules/m"), 1);
	test_close(outside);
	by_another_program("node_modules/m", "theirs again");
	CHECK_INT(count_outside(""), 2);
}
