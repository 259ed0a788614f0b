/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Power cuts. Each scenario works in a workspace on disk while its system calls are recorded (recorder.h). Then the
 * states in which a power cut may leave the disk are made, and each is opened as after a restart of the machine:
 *
 *  - everything that was acknowledged before the cut is there, and the call that was under way is there as a whole or
 *    not at all: nothing is lost, torn or invented, and no change counts as one of another program;
 *  - every acknowledged revision shows what it showed before;
 *  - fsck finds nothing, and work goes on.
 *
 * A sample of the states is checked; STEAD_POWER_STATES sets how many of each scenario, 0: all of them.
 * STEAD_TEST_SEED repeats a sample. STEAD_POWER_SHOW prints the steps of a state that fails.
 */
#include <unistd.h>

#include "admin/copy.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/limits.h"
#include "recorder.h"
#include "revisions/revisions.h"
#include "tool/tool_fix.h"

#define SNAPS_MAX   64
#define FAILS_SHOWN 12
#define WHICH_MAX   10 /* of the newest steps, each by itself */
#define RANDOM_CUTS 8

struct file {
	struct str path, bytes;
};

/* What there was after a step. */
struct snap {
	struct file *files; /* by path */
	size_t count;
	uint64_t head;
	const char *step;
};

struct run {
	struct bench b;
	struct arena *arena; /* of the snaps */
	struct snap snaps[SNAPS_MAX];
	unsigned count;
	char url[300];
	char why[700];
};

static uint64_t rng_state;

static uint64_t rng(void)
{
	uint64_t z = rng_state += 0x9E3779B97F4A7C15u;

	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
	z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
	return z ^ (z >> 31);
}

/* --- what there is --- */

static int list_files(struct store *s, struct ctx *ctx, struct snap *ret, struct err *err)
{
	struct store_list_req req = {.recursive = true, .limit = STORE_PAGE_MAX};
	struct store_page page;
	size_t cap = 0;

	*ret = (struct snap){0};
	do {
		int r = store_list(s, ctx, WPATH_ROOT, &req, &page, err);

		for (size_t i = 0; r == 0 && i < page.count; i++) {
			struct file f = {.path = arena_str(ctx->arena, page.entries[i].path.s)};

			if (str_starts(f.path, STR(".stead/")) || str_is(f.path, "WORKSPACE.md"))
				continue; /* made from the notes */
			r = store_read(s, ctx, (struct wpath){f.path}, STORE_WHOLE, 16 * MIB, &f.bytes, NULL, err);
			ARENA_ROOM(ctx->arena, ret->files, ret->count, cap);
			ret->files[ret->count++] = f;
		}
		if (r)
			return r;
		req.after = page.next;
	} while (page.next.ptr);
	return 0;
}

/* The first path that differs; NULL: they are the same. */
static const struct file *differing(const struct snap *want, const struct snap *have, const char **ret_how)
{
	size_t i = 0, k = 0;

	while (i < want->count || k < have->count) {
		int c = i == want->count   ? 1
			: k == have->count ? -1
					   : str_cmp(want->files[i].path, have->files[k].path);

		*ret_how = c < 0 ? "is missing" : c > 0 ? "should not be there" : "has another content";
		if (c < 0)
			return &want->files[i];
		if (c > 0)
			return &have->files[k];
		if (!str_eq(want->files[i].bytes, have->files[k].bytes))
			return &have->files[k];
		i++;
		k++;
	}
	return NULL;
}

/* --- recording --- */

static void open_for_work(struct run *r)
{
	struct workspace_opts opts = {.store_url = str_of(r->url), .name = STR("test"), .create = true, .person = true};

	bench_start(&r->b, &opts, "");
}

/* The call has been answered: from here on it must survive. */
static void done(struct run *r, const char *step)
{
	struct ctx ctx = {.arena = r->arena};
	struct snap *s = &r->snaps[r->count];
	struct err err;

	CHECK(r->count + 1 < SNAPS_MAX);
	recorder_mark(r->count++);
	CHECK_OK(list_files(workspace_revisions(r->b.ws), &ctx, s, &err), err);
	CHECK_OK(revisions_head(workspace_revisions(r->b.ws), &ctx, &s->head, &err), err);
	s->step = step;
}

/* A call and its answer. Each one is a call of its own for undo. */
static void act(struct run *r, const char *tool, const char *json)
{
	r->b.ctx.actor = workspace_actor(r->b.ws);
	r->b.ctx.actor.call_id = arena_printf(r->arena, "call-%u", r->count);
	good(&r->b, tool, json);
	done(r, tool);
}

static void again(struct run *r)
{
	bench_stop(&r->b);
	open_for_work(r);
	done(r, "open");
}

static void put_large(struct run *r, const char *path, char c, size_t size)
{
	char *bytes = arena_alloc_raw(r->arena, size);

	memset(bytes, c, size);
	r->b.ctx.actor = workspace_actor(r->b.ws);
	r->b.ctx.actor.call_id = arena_printf(r->arena, "call-%u", r->count);
	put(&r->b, path, str_n(bytes, size));
	done(r, "put");
}

static void work_write(struct run *r)
{
	act(r, "write_file", "{\'path\':\'a.md\',\'content\':\'one\\n\',\'mode\':\'overwrite\'}");
	act(r, "write_file", "{\'path\':\'d/e/b.md\',\'content\':\'two\\n\',\'mode\':\'overwrite\'}");
	act(r, "write_file",
	    "{\'path\':\'a.md\',\'content\':\'three, which is longer than one\\n\',\'mode\':\'overwrite\'}");
	put_large(r, "big", 'b', 70000);
	act(r, "append_file", "{'path':'a.md','content':'four\\n'}");
	act(r, "append_file", "{'path':'a.md','content':'five\\n'}");
	act(r, "edit_file", "{'path':'a.md','old_text':'three','new_text':'3'}");
	put_large(r, "big", 'c', 40000);
	act(r, "write_file", "{\'path\':\'a.md\',\'content\':\'\',\'mode\':\'overwrite\'}");
	act(r, "write_file", "{\'path\':\'d/e/b.md\',\'content\':\'2\',\'mode\':\'overwrite\'}");
	put_large(r, "d/mid", 'm', 9000);
	put_large(r, "d/mid", 'n', 5000);
}

static void work_move(struct run *r)
{
	act(r, "write_file", "{\'path\':\'a.md\',\'content\':\'one\\n\',\'mode\':\'overwrite\'}");
	act(r, "write_file", "{\'path\':\'d/x\',\'content\':\'x\\n\',\'mode\':\'overwrite\'}");
	act(r, "write_file", "{\'path\':\'d/y\',\'content\':\'y\\n\',\'mode\':\'overwrite\'}");
	put_large(r, "d/z/big", 'z', 30000);
	act(r, "move_file", "{'from':'a.md','to':'b.md'}");
	act(r, "move_file", "{'from':'d','to':'f'}");
	act(r, "write_file", "{\'path\':\'d/x\',\'content\':\'new x\\n\',\'mode\':\'overwrite\'}");
	act(r, "move_file", "{'from':'b.md','to':'f/x','overwrite':true}");
	act(r, "copy_file", "{'from':'f/z/big','to':'copy'}");
	act(r, "delete_file", "{'path':'f/y'}");
	act(r, "move_file", "{'from':'f','to':'d/f'}");
	act(r, "delete_file", "{'path':'d','recursive':true}");
	act(r, "write_file", "{\'path\':\'d\',\'content\':\'a file now\\n\',\'mode\':\'overwrite\'}");
}

static void work_undo(struct run *r)
{
	act(r, "write_file", "{\'path\':\'a.md\',\'content\':\'one\\n\',\'mode\':\'overwrite\'}");
	act(r, "write_file", "{\'path\':\'b.md\',\'content\':\'one\\n\',\'mode\':\'overwrite\'}");
	act(r, "write_file", "{\'path\':\'a.md\',\'content\':\'two\\n\',\'mode\':\'overwrite\'}");
	act(r, "checkpoint", "{'name':'good'}");
	put_large(r, "big", 'b', 70000);
	act(r, "delete_file", "{'path':'b.md'}");
	act(r, "undo", "{}");
	act(r, "undo", "{}");
	act(r, "undo", "{'redo':true}");
	act(r, "append_file", "{'path':'a.md','content':'three\\n'}");
	act(r, "restore", "{'path':'a.md','revision':'1'}");
	act(r, "undo", "{}");
	act(r, "restore", "{'path':'/','revision':'good'}");
}

static void work_gc(struct run *r)
{
	struct rev_retain want = {.limits = {.revisions = 4}, .grace_ns = -1};
	struct rev_retained report;
	struct err err;

	act(r, "write_file", "{\'path\':\'a.md\',\'content\':\'one\\n\',\'mode\':\'overwrite\'}");
	put_large(r, "big", 'a', 30000);
	put_large(r, "big", 'b', 30000);
	act(r, "checkpoint", "{'name':'early'}");
	for (int i = 0; i < 6; i++)
		act(r, "append_file", "{'path':'a.md','content':'more\\n'}");
	put_large(r, "big", 'c', 100);
	for (int round = 0; round < 2; round++) {
		CHECK_OK(revisions_retain(workspace_revisions(r->b.ws), &r->b.ctx, &want, &report, &err), err);
		done(r, "gc");
		act(r, "write_file", "{\'path\':\'a.md\',\'content\':\'after\\n\',\'mode\':\'overwrite\'}");
		again(r);
	}
}

static void work_notes(struct run *r)
{
	act(r, "note", "{'title':'Loads','content':'The bridge bears 40 t.'}");
	act(r, "memory_save", "{'content':'The user prefers metric units.','source':'said so'}");
	act(r, "create_task", "{'description':'Check the bolts'}");
	act(r, "search", "{'query':'bridge'}");
	again(r);
	act(r, "note", "{'title':'Bolts','content':'M12, all of them.'}");
	act(r, "memory_save", "{'content':'Reports go to Ann.','source':'said so'}");
	act(r, "search", "{'query':'bolts'}");
	again(r);
	act(r, "search", "{'query':'metric'}");
	again(r);
}

static void work_merge(struct run *r)
{
	struct workspace_opts opts = {.store_url = str_of(r->url), .name = STR("trial"), .person = true};
	struct bench fork = {.arena = r->arena, .ctx = {.arena = r->arena}};

	act(r, "write_file", "{\'path\':\'a.md\',\'content\':\'one\\ntwo\\n\',\'mode\':\'overwrite\'}");
	act(r, "write_file", "{\'path\':\'b.md\',\'content\':\'one\\n\',\'mode\':\'overwrite\'}");
	act(r, "fork", "{'name':'trial'}");
	bench_start(&fork, &opts, "");
	good(&fork, "write_file", "{\'path\':\'a.md\',\'content\':\'one\\nTWO\\n\',\'mode\':\'overwrite\'}");
	done(r, "write in the fork");
	good(&fork, "delete_file", "{'path':'b.md'}");
	done(r, "delete in the fork");
	good(&fork, "write_file", "{\'path\':\'new/c.md\',\'content\':\'three\\n\',\'mode\':\'overwrite\'}");
	done(r, "write in the fork");
	bench_stop(&fork);
	done(r, "close the fork");
	act(r, "merge", "{'fork':'trial'}");
	act(r, "write_file", "{\'path\':\'a.md\',\'content\':\'last\\n\',\'mode\':\'overwrite\'}");
}

/* As commands do it: each opens the workspace and closes it. */
static void work_commands(struct run *r)
{
	for (int i = 0; i < 4; i++) {
		act(r, "append_file", "{'path':'a.md','content':'line\\n'}");
		again(r);
		act(r, "write_file", "{\'path\':\'b.md\',\'content\':\'text\\n\',\'mode\':\'overwrite\'}");
		again(r);
		act(r, "delete_file", "{'path':'b.md'}");
		again(r);
	}
}

/* --- checking --- */

static bool fail(struct run *r, const char *what, const char *detail)
{
	snprintf(r->why, sizeof(r->why), "%s: %s", what, detail);
	return false;
}

static bool same(struct run *r, const char *what, const struct snap *want, const struct snap *have)
{
	const char *how;
	const struct file *f = differing(want, have, &how);

	if (f)
		snprintf(r->why, sizeof(r->why), "%s: %.*s %s (%zu bytes: \"%.*s\")", what, STR_ARG(f->path), how,
			 f->bytes.len, (int)(f->bytes.len < 60 ? f->bytes.len : 60), f->bytes.ptr);
	return !f;
}

static const struct file *find_file(const struct snap *s, struct str path)
{
	for (size_t i = 0; i < s->count; i++)
		if (str_eq(s->files[i].path, path))
			return &s->files[i];
	return NULL;
}

static bool same_file(const struct file *a, const struct file *b)
{
	return a && b ? str_eq(a->bytes, b->bytes) : a == b;
}

/* A call that makes several changes may have made some of them. Those are in the log, and check_log() compares the
   files with that; every other file is as before. */
static bool is_between(struct store *rev, struct ctx *ctx, const struct snap *before, const struct snap *now)
{
	const struct snap *all[] = {before, now};

	for (size_t k = 0; k < COUNT(all); k++)
		for (size_t i = 0; i < all[k]->count; i++) {
			struct str path = all[k]->files[i].path;
			struct rev_query newer = {.since = before->head, .path = {path}};
			struct revision *list;
			size_t count;
			struct err err;

			if (same_file(find_file(before, path), find_file(now, path)))
				continue;
			if (revisions_query(rev, ctx, &newer, &list, &count, NULL, &err) || count == 0)
				return false;
		}
	return true;
}

static bool makes_several(const char *step)
{
	static const char *const steps[] = {"restore", "undo", "merge", "memory_save", "note"};

	for (size_t i = 0; i < COUNT(steps); i++)
		if (strcmp(steps[i], step) == 0)
			return true;
	return false;
}

/* The present is what was acknowledged, or that and the call under way. */
static bool check_now(struct run *r, struct workspace *ws, struct ctx *ctx, unsigned mark)
{
	struct snap now;
	struct err err;
	const char *how;

	if (list_files(workspace_revisions(ws), ctx, &now, &err))
		return fail(r, "list", err.msg);
	if (mark + 1 < r->count && !differing(&r->snaps[mark + 1], &now, &how))
		return true;
	if (mark + 1 < r->count && makes_several(r->snaps[mark + 1].step) &&
	    is_between(workspace_revisions(ws), ctx, &r->snaps[mark], &now))
		return true;
	return same(r, "now", &r->snaps[mark], &now);
}

/* Each acknowledged revision shows what there was, unless it is no longer kept. */
static bool check_past(struct run *r, struct workspace *ws, struct ctx *ctx, unsigned mark)
{
	for (unsigned i = 0; i <= mark; i++) {
		struct store *then = store_at_revision_new(workspace_revisions(ws), r->snaps[i].head);
		struct snap past;
		struct err err;
		int bad = list_files(then, ctx, &past, &err);

		store_destroy(then);
		if (bad == -ERR_NOT_FOUND && strstr(err.msg, "no longer kept"))
			continue;
		if (bad)
			return fail(r, "the past", err.msg);
		if (!same(r, r->snaps[i].step, &r->snaps[i], &past))
			return false;
	}
	return true;
}

static bool check_log(struct run *r, struct workspace *ws, struct ctx *ctx, unsigned mark)
{
	struct store *rev = workspace_revisions(ws);
	struct revision *list;
	uint64_t noticed, head;
	size_t count;
	struct err err;

	if (revisions_notice(rev, ctx, WPATH_ROOT, &noticed, &err) || revisions_head(rev, ctx, &head, &err) ||
	    revisions_query(rev, ctx, &(struct rev_query){0}, &list, &count, NULL, &err))
		return fail(r, "the log", err.msg);
	if (head < r->snaps[mark].head)
		return fail(r, "the log", "has lost its end");
	for (size_t i = 0; i < count; i++)
		if (list[i].op == REV_OUTSIDE) {
			snprintf(r->why, sizeof(r->why), "revision %llu of %.*s is an outside change",
				 (unsigned long long)list[i].number, STR_ARG(list[i].path.s));
			return false;
		}
	return true;
}

static bool check_fsck(struct run *r, struct ctx *ctx, struct str url)
{
	struct jv *lines;
	struct err err;

	if (store_fsck(ctx, url, STR("test"), false, &lines, &err))
		return fail(r, "fsck", err.msg);
	for (const struct jv_member *m = jv_first(lines); m; m = m->next)
		if (!jv_get_bool(m->value, "ok", true)) {
			struct str detail = jv_get_str(m->value, "detail");

			snprintf(r->why, sizeof(r->why), "fsck: %.*s", STR_ARG(detail));
			return false;
		}
	return true;
}

/* The workspace can be worked in: a change is made and taken back. */
static bool check_goes_on(struct run *r, struct workspace *ws, struct ctx *ctx)
{
	struct store_cond any = {0};
	struct err err;

	if (store_write(workspace_files(ws), ctx, (struct wpath){STR("goes/on")}, STR("yes"), any, NULL, &err) ||
	    store_remove(workspace_files(ws), ctx, (struct wpath){STR("goes/on")}, false, any, NULL, &err))
		return fail(r, "a change after the cut", err.msg);
	return true;
}

/* A fork that was answered for can be opened. */
static bool check_fork(struct run *r, struct str url, unsigned mark)
{
	struct workspace_opts opts = {.store_url = url, .name = STR("trial"), .relaxed = true, .person = true};
	struct workspace *ws;
	struct err err;
	bool is_forked = false;

	for (unsigned i = 0; i <= mark; i++)
		is_forked = is_forked || strcmp(r->snaps[i].step, "fork") == 0;
	if (!is_forked)
		return true;
	if (workspace_open(&opts, &ws, &err))
		return fail(r, "the fork", err.msg);
	workspace_close(ws);
	return true;
}

static bool check_state(struct run *r, const char *dir, unsigned mark)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};
	struct str url = arena_printf(arena, "disk:%s", dir);
	struct workspace_opts opts = {.store_url = url, .name = STR("test"), .relaxed = true, .person = true};
	struct workspace *ws;
	struct err err;
	bool fine;

	if (rng() % 2 && !check_fsck(r, &ctx, url)) /* as the first program after the restart */
		return false;
	if (workspace_open(&opts, &ws, &err))
		return fail(r, "open", err.msg);
	fine = check_now(r, ws, &ctx, mark) && check_past(r, ws, &ctx, mark) && check_log(r, ws, &ctx, mark) &&
	       check_goes_on(r, ws, &ctx);
	workspace_close(ws);
	return fine && check_fsck(r, &ctx, url) && check_fork(r, url, mark);
}

/* --- which states --- */

struct cuts {
	struct cut *list;
	uint64_t *seen; /* hashes of states and what was acknowledged by then */
	size_t count, cap;
};

static void add_cut(struct cuts *c, struct cut cut)
{
	uint64_t hash = cut_make(&cut, NULL, NULL, NULL) * 31 + cut_mark(cut.after);

	for (size_t i = 0; i < c->count; i++)
		if (c->seen[i] == hash)
			return;
	if (c->count == c->cap) {
		c->cap = c->cap ? 2 * c->cap : 1024;
		c->list = xrealloc(c->list, c->cap * sizeof(*c->list));
		c->seen = xrealloc(c->seen, c->cap * sizeof(*c->seen));
	}
	c->seen[c->count] = hash;
	c->list[c->count++] = cut;
}

static void add_cuts_after(struct cuts *c, size_t after)
{
	size_t open = cut_open_steps(after), last = open < WHICH_MAX ? open : WHICH_MAX;

	add_cut(c, (struct cut){after, CUT_NONE, 0});
	add_cut(c, (struct cut){after, CUT_ALL, 0});
	for (size_t i = 1; i < open; i += 1 + open / WHICH_MAX)
		add_cut(c, (struct cut){after, CUT_FIRST, i});
	for (int kind = CUT_BUT; kind < CUT_RANDOM; kind++)
		for (size_t i = 0; i < last; i++)
			add_cut(c, (struct cut){after, (enum cut_kind)kind, i});
	for (int i = 0; i < RANDOM_CUTS; i++)
		add_cut(c, (struct cut){after, CUT_RANDOM, rng()});
}

/* A sample does not need all of them. */
static void find_cuts(struct cuts *c, size_t sample)
{
	size_t first = 0, steps = recorder_steps();

	while (cut_mark(first) == 0 && first < steps)
		first++;
	if (!sample)
		for (size_t after = first; after <= steps; after++)
			add_cuts_after(c, after);
	while (sample && c->count < sample * 8)
		add_cuts_after(c, first + (size_t)(rng() % (steps - first + 1)));
}

static size_t number_of(const char *name, size_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 10) : otherwise;
}

static void remove_tree(const char *dir)
{
	nftw(dir, temp_dir_drop, 16, FTW_DEPTH | FTW_PHYS);
}

static struct str boot_id(struct arena *arena)
{
	char text[64];
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
	size_t n = f ? fread(text, 1, sizeof(text), f) : 0;

	if (f)
		fclose(f);
	return arena_str(arena, str_trim(str_n(text, n)));
}

/* Makes and checks the states. */
static void check_cuts(struct run *r, const char *name)
{
	const char *boot = arena_cstr(r->arena, boot_id(r->arena)), *other = "00000000-0000-4000-8000-000000000000";
	size_t sample = number_of("STEAD_POWER_STATES", 25), fails = 0, tried = 0;
	struct cuts c = {0};
	char dir[400];

	snprintf(dir, sizeof(dir), "%s/state", temp_dir_new());
	find_cuts(&c, sample);
	for (size_t i = 0; i < (sample && sample < c.count ? sample : c.count); i++) {
		struct cut cut = c.list[sample ? (size_t)(rng() % c.count) : i];
		unsigned mark = cut_mark(cut.after);

		cut_make(&cut, dir, boot, other);
		tried++;
		if (!check_state(r, dir, mark) && fails++ < FAILS_SHOWN) {
			printf("# %s: power cut after step %zu (%s %llu), after the answer to %u (%s): %s\n", name,
			       cut.after, cut_kind_name(cut.kind), (unsigned long long)cut.which, mark,
			       r->snaps[mark].step, r->why);
			if (getenv("STEAD_POWER_SHOW"))
				cut_print(&cut);
		}
		remove_tree(dir);
	}
	free(c.list);
	free(c.seen);
	printf("# %s: %zu of %zu states checked, %zu steps, %u calls\n", name, tried, c.count, recorder_steps(),
	       r->count);
	if (fails)
		TEST_FAIL("%zu of %zu states are wrong; the last one: %s", fails, tried, r->why);
}

/* The record is complete when the state after all of it is what is on the disk. */
static void check_record(struct run *r)
{
	char dir[400], command[1000];

	snprintf(dir, sizeof(dir), "%s/all", temp_dir_new());
	cut_make(&(struct cut){recorder_steps(), CUT_ALL, 0}, dir, NULL, NULL);
	snprintf(command, sizeof(command), "diff -r '%s' '%s' >&2", dir, r->b.dir);
	CHECK_INT(system(command), 0);
}

static void power_cuts(const char *name, void (*work)(struct run *r))
{
	static struct run run;
	struct run *r = &run;
	uint64_t seed = number_of("STEAD_TEST_SEED", random_u64() % 1000000);

	printf("# seed %llu\n", (unsigned long long)seed);
	rng_state = seed;
	*r = (struct run){.arena = arena_new()};
	test_defer(arena_destroy, r->arena);
	bench_init(&r->b);
	r->b.dir = temp_dir_new();
	snprintf(r->url, sizeof(r->url), "disk:%s", r->b.dir);
	recorder_start(r->b.dir);
	open_for_work(r);
	done(r, "open");
	done(r, "open");
	work(r);
	bench_stop(&r->b);
	recorder_stop();
	check_record(r);
	check_cuts(r, name);
}

TEST(a_power_cut_while_files_are_written_loses_nothing)
{
	power_cuts("write", work_write);
}

TEST(a_power_cut_while_files_are_moved_and_removed_loses_nothing)
{
	power_cuts("move", work_move);
}

TEST(a_power_cut_during_undo_and_restore_loses_nothing)
{
	power_cuts("undo", work_undo);
}

TEST(a_power_cut_while_history_is_cut_loses_nothing_that_is_kept)
{
	power_cuts("gc", work_gc);
}

TEST(a_power_cut_while_notes_and_facts_are_written_and_searched_loses_nothing)
{
	power_cuts("notes", work_notes);
}

TEST(a_power_cut_while_a_fork_is_merged_loses_nothing)
{
	power_cuts("merge", work_merge);
}

TEST(a_power_cut_between_commands_loses_nothing)
{
	power_cuts("commands", work_commands);
}
