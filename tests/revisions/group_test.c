/* SPDX-License-Identifier: Apache-2.0 */
/* Changes that belong together: one append to the log, and whole after a kill at any of them. */
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "revisions/revisions.h"
#include "store/store_fix.h"

#define FILES 8

/* Counts the appends to the log and the lists of it, and ends the process at a change of a file. */
struct watch {
	struct store base;
	int appends, lists;
	int left; /* changes until the end; < 0: it does not come */
};

static int watch_around(struct store *s, struct ctx *ctx, struct store_call *call, struct err *err)
{
	struct watch *w = (struct watch *)s;

	w->appends += call->op == STORE_OP_APPEND;
	w->lists += call->op == STORE_OP_LIST;
	if ((call->op == STORE_OP_WRITE || call->op == STORE_OP_REMOVE) && w->left-- == 0)
		_exit(0);
	return store_forward(s->inner, ctx, call, err);
}

static void watch_destroy(struct store *s)
{
	(void)s;
}

static const struct store_ops watch_ops = {.name = "watch", .around = watch_around, .destroy = watch_destroy};

struct rig {
	struct conf c;
	struct watch files, log;
	const char *dir;
};

static void rig_open(struct rig *r, int left)
{
	struct store_disk_opts visible = {.relaxed = true, .create = true};
	const char *files = arena_printf(r->c.ctx.arena, "%s/files", r->dir).ptr;
	const char *log = arena_printf(r->c.ctx.arena, "%s/log", r->dir).ptr;

	r->files = (struct watch){.base.ops = &watch_ops, .left = left};
	r->log = (struct watch){.base.ops = &watch_ops, .left = -1};
	CHECK_OK(store_disk_open(files, &visible, &r->files.base.inner, &r->c.err), r->c.err);
	CHECK_OK(store_disk_open(log, &visible, &r->log.base.inner, &r->c.err), r->c.err);
	CHECK_OK(store_revisions_open(&r->files.base, &r->log.base, (struct revisions_opts){0}, &r->c.ctx, &r->c.s,
				      &r->c.err),
		 r->c.err);
}

static void rig_begin(struct rig *r)
{
	*r = (struct rig){.c.ctx.arena = arena_new(), .dir = temp_dir_new()};
	rig_open(r, -1);
}

static void rig_end(struct rig *r)
{
	store_destroy(r->c.s);
	arena_destroy(r->c.ctx.arena);
}

/* Half of the files are there and are replaced, one of those goes; the others are new. */
static int change_all(struct rig *r, struct store_group *ret)
{
	static struct source source;
	struct arena *arena = r->c.ctx.arena;

	source.bytes = STR("new");
	*ret = (struct store_group){.items = ARENA_ARRAY(arena, struct store_group_item, FILES), .count = FILES};
	for (int i = 0; i < FILES; i++) {
		const char *path = arena_printf(arena, "d/%d", i).ptr;
		struct store_group_item item = {
			.op = STORE_OP_WRITE, .path = P(path), .source = &source, .cond = ABSENT};

		if (i < FILES / 2)
			item.cond = VERS(stat_of(&r->c, path).version);
		if (i == 0) {
			item.op = STORE_OP_REMOVE;
			item.source = NULL;
		}
		ret->items[i] = item;
	}
	return store_group(r->c.s, &r->c.ctx, ret, &r->c.err);
}

static void put_old(struct rig *r)
{
	for (int i = 0; i < FILES / 2; i++)
		put(&r->c, arena_printf(r->c.ctx.arena, "d/%d", i).ptr, "old");
}

static void check_new(struct rig *r)
{
	CHECK_TREE(&r->c, "d/1 d/2 d/3 d/4 d/5 d/6 d/7");
	for (int i = 1; i < FILES; i++)
		CHECK_STR(get(&r->c, arena_printf(r->c.ctx.arena, "d/%d", i).ptr), STR("new"));
}

static void set_clock_back(struct rig *r)
{
	int64_t long_ago = clock_real_ns() - 600 * NS_PER_S;

	CHECK(setenv("STEAD_TEST_CLOCK_NS", arena_printf(r->c.ctx.arena, "%lld", (long long)long_ago).ptr, 1) == 0);
}

/* In a process of its own, which ends at the change after `made` of them, long ago. */
static void change_and_die(struct rig *r, int made)
{
	struct store_group group;
	pid_t pid;
	int status;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		set_clock_back(r);
		rig_open(r, made);
		_exit(change_all(r, &group) == 0 ? 0 : 1);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	CHECK_INT(status, 0);
}

TEST(a_group_is_one_append_to_the_log)
{
	struct rig r;
	struct store_group group;
	int before;

	rig_begin(&r);
	put_old(&r);
	before = r.log.appends;
	CHECK_OK(change_all(&r, &group), r.c.err);
	CHECK_INT(r.log.appends - before, 1);
	check_new(&r);
	rig_end(&r);
}

/* Then the segment that follows does not exist, and whether another process has filled it is asked for each file. */
TEST(a_group_that_fills_its_segment_does_not_list_the_log_for_each_file)
{
	enum { COUNT_OF_FILES = 100, BYTES = 60 * 1024 };
	struct store_group_item items[COUNT_OF_FILES];
	struct store_group group = {.items = items, .count = COUNT_OF_FILES};
	struct source source = {0};
	struct rig r;
	int before;

	rig_begin(&r);
	source.bytes = str_n(arena_alloc(r.c.ctx.arena, BYTES), BYTES);
	for (int i = 0; i < COUNT_OF_FILES; i++)
		items[i] = (struct store_group_item){.op = STORE_OP_WRITE,
						     .path = P(arena_printf(r.c.ctx.arena, "d/%d", i).ptr),
						     .source = &source,
						     .cond = ABSENT};
	put(&r.c, "first", "of the log");
	before = r.log.lists;
	CHECK_OK(store_group(r.c.s, &r.c.ctx, &group, &r.c.err), r.c.err);
	CHECK(r.log.lists - before < 10);
	put(&r.c, "last", "in the next segment");
	CHECK_STR(get(&r.c, "last"), STR("in the next segment"));
	rig_end(&r);
}

TEST(a_group_whose_process_was_killed_at_any_change_is_whole_after_the_next_start)
{
	for (int made = 0; made <= FILES; made++) {
		struct rig r;
		struct revision *list;
		size_t count;

		rig_begin(&r);
		put_old(&r);
		store_destroy(r.c.s);
		change_and_die(&r, made);
		rig_open(&r, -1);
		check_new(&r);
		CHECK_OK(revisions_query(r.c.s, &r.c.ctx, &(struct rev_query){0}, &list, &count, NULL, &r.c.err),
			 r.c.err);
		CHECK_INT(count, FILES / 2 + FILES);
		rig_end(&r);
	}
}

TEST(a_file_of_a_finished_group_that_a_person_removed_stays_removed)
{
	struct rig r;

	rig_begin(&r);
	put_old(&r);
	store_destroy(r.c.s);
	change_and_die(&r, FILES); /* all were made, and the log does not say so */
	CHECK(unlink(arena_printf(r.c.ctx.arena, "%s/files/d/5", r.dir).ptr) == 0);
	rig_open(&r, -1);
	CHECK_TREE(&r.c, "d/1 d/2 d/3 d/4 d/6 d/7");
	rig_end(&r);
}

TEST(nothing_of_a_group_is_made_when_one_condition_does_not_hold)
{
	struct rig r;
	struct store_group group;
	uint64_t head;

	rig_begin(&r);
	put_old(&r);
	put(&r.c, "d/7", "by another writer");
	CHECK_ERR(change_all(&r, &group), r.c.err, ERR_EXISTS);
	CHECK_INT(group.failed, 7);
	CHECK_TREE(&r.c, "d/0 d/1 d/2 d/3 d/7");
	CHECK_STR(get(&r.c, "d/1"), STR("old"));
	CHECK_OK(revisions_head(r.c.s, &r.c.ctx, &head, &r.c.err), r.c.err);
	CHECK_INT(head, FILES / 2 + 1);
	rig_end(&r);
}
