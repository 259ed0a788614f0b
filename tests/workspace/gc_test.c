/* SPDX-License-Identifier: Apache-2.0 */
/* Retention as a workspace asks for it: the limits of agent.yaml, what forks need, and that it runs by itself. */
#include "base/limits.h"
#include "revisions/revisions.h"
#include "temp_dir.h"
#include "test.h"
#include "workspace/gc.h"
#include "workspace/workspace_parts.h"

static struct arena *arena;
static struct ctx ctx;
static struct err err;
static const struct store_cond any = {0};
static struct str url;

static void set_up(void)
{
	arena = arena_new();
	ctx = (struct ctx){.arena = arena};
	url = arena_printf(arena, "disk:%s", temp_dir_new());
}

static struct workspace *open_ws(const char *name)
{
	struct workspace_opts opts = {.store_url = url, .name = str_of(name), .create = true, .relaxed = true};
	struct workspace *ws;

	CHECK_OK(workspace_open(&opts, &ws, &err), err);
	return ws;
}

static void put(struct workspace *ws, const char *path, int i)
{
	CHECK_OK(store_write(workspace_files(ws), &ctx, (struct wpath){str_of(path)},
			     arena_printf(arena, "%s %d", path, i), any, NULL, &err),
		 err);
}

static struct wpath of(struct workspace *ws, const char *path)
{
	return (struct wpath){arena_printf(arena, "%.*s/%s", STR_ARG(workspace_name(ws)), path)};
}

/* Not through the recorded store: a person's editor does not go there either. */
static void put_raw(struct workspace *ws, const char *path, const char *text)
{
	CHECK_OK(store_write(workspace_store_of(ws, false), &ctx, of(ws, path), str_of(text), any, NULL, &err), err);
}

static struct workspace *limited(const char *name)
{
	struct workspace *ws = open_ws(name);

	put_raw(ws, "agent.yaml", "history: {revisions: 5}\n");
	workspace_close(ws);
	return open_ws(name);
}

static int64_t first_after(struct workspace *ws)
{
	struct jv *report;

	CHECK_OK(gc_run(ws, &ctx, false, &report, &err), err);
	return jv_get_int(report, "first", -1);
}

TEST(the_limits_of_agent_yaml_are_kept_to)
{
	struct workspace *ws;

	set_up();
	ws = limited("one");
	for (int i = 1; i <= 20; i++)
		put(ws, "a.md", i);
	CHECK_INT(first_after(ws), 16);
	workspace_close(ws);
	arena_destroy(arena);
}

TEST(a_fork_keeps_what_it_stands_on_and_what_it_has_to_merge)
{
	struct workspace *ws, *fork;
	struct jv *report;

	set_up();
	ws = limited("one");
	fork = open_ws("two");
	put_raw(fork, ".stead/fork.json", "{\"parent\":\"one\",\"revision\":7}");
	for (int i = 1; i <= 20; i++)
		put(ws, "a.md", i);
	CHECK_OK(gc_run(ws, &ctx, false, &report, &err), err);
	CHECK_INT(jv_get_int(report, "first", -1), 8);
	CHECK_INT(jv_get_int(jv_get(report, "held"), "revision", -1), 7);
	put_raw(ws, ".stead/fork.json", "{\"parent\":\"zero\",\"revision\":1,\"merged\":9}");
	put_raw(fork, ".stead/fork.json", "{\"parent\":\"one\",\"revision\":12}");
	CHECK_INT(first_after(ws), 10);
	put_raw(fork, ".stead/fork.json", "not JSON");
	CHECK_INT(gc_run(ws, &ctx, false, &report, &err), -ERR_INVALID);
	workspace_close(fork);
	workspace_close(ws);
	arena_destroy(arena);
}

TEST(it_runs_by_itself_when_a_writer_ends_and_not_again_within_the_hour)
{
	struct workspace *ws;
	struct jv *report;

	set_up();
	ws = limited("one");
	for (int i = 1; i <= 20; i++)
		put(ws, "a.md", i);
	workspace_close(ws);
	ws = open_ws("one");
	CHECK_OK(gc_run(ws, &ctx, true, &report, &err), err);
	CHECK_INT(jv_get_int(report, "dropped", -1), 0);
	for (int i = 1; i <= 20; i++)
		put(ws, "a.md", i);
	workspace_close(ws);
	ws = open_ws("one");
	CHECK_OK(gc_run(ws, &ctx, true, &report, &err), err);
	CHECK_INT(jv_get_int(report, "dropped", -1), 20);
	workspace_close(ws);
	arena_destroy(arena);
}

TEST(it_runs_by_itself_while_a_writer_goes_on)
{
	struct store_stat stat;
	struct workspace *ws;
	uint64_t head;

	set_up();
	ws = limited("one");
	for (int i = 1; i <= 1500; i++)
		put(ws, "a.md", i);
	while (store_stat(workspace_store_of(ws, false), &ctx, of(ws, ".stead/rev/gc-mark"), &stat, &err) ==
	       -ERR_NOT_FOUND)
		;
	CHECK_OK(revisions_head(workspace_revisions(ws), &ctx, &head, &err), err);
	CHECK_INT(head, 1500);
	CHECK(first_after(ws) == 1496);
	workspace_close(ws);
	arena_destroy(arena);
}
