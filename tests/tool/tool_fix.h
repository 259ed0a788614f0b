/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Set-up of tool tests: a workspace on a store of each kind, a toolset over it, and calls whose results are checked
 * against the tool's output schema every time.
 */
#ifndef STEAD_TESTS_TOOL_FIX_H
#define STEAD_TESTS_TOOL_FIX_H

#include "temp_dir.h"
#include "text/schema.h"
#include "tool/tool.h"
#include "workspace/workspace.h"

struct bench {
	struct arena *arena;
	struct ctx ctx;
	struct workspace *ws;
	struct toolset *set;
	struct tool_result result;
	const char *dir; /* of a disk store, else NULL */
};

static void bench_init(struct bench *b)
{
	*b = (struct bench){.arena = arena_new()};
	test_defer(arena_destroy, b->arena);
	b->ctx.arena = b->arena;
}

/* Opens the workspace; whatever this opens is closed when the test ends. */
static void bench_start(struct bench *b, const struct workspace_opts *opts, const char *dialect)
{
	struct err err = {0};

	CHECK_OK(workspace_open(opts, &b->ws, &err), err);
	test_defer(workspace_close, b->ws);
	CHECK_OK(toolset_new(b->ws, str_of(dialect), &b->set, &err), err);
	test_defer(toolset_destroy, b->set);
}

static void bench_stop(struct bench *b)
{
	test_close(b->set);
	test_close(b->ws);
	b->set = NULL;
	b->ws = NULL;
}

__attribute__((unused)) static void bench_close(struct bench *b)
{
	bench_stop(b);
	test_close(b->arena);
}

/* The same store on disk, opened again in another way. */
__attribute__((unused)) static void bench_reopen(struct bench *b, struct workspace_opts opts, const char *dialect)
{
	opts.store_url = arena_printf(b->arena, "disk:%s", b->dir);
	opts.name = STR("test");
	opts.relaxed = true;
	bench_stop(b);
	bench_start(b, &opts, dialect);
}

static void bench_open_at(struct bench *b, struct str url, const char *dialect)
{
	struct workspace_opts opts = {.store_url = url,
				      .name = STR("test"),
				      .root = dialect_root(str_of(dialect)),
				      .create = true,
				      .relaxed = true};

	bench_init(b);
	bench_start(b, &opts, dialect);
}

__attribute__((unused)) static void bench_open(struct bench *b, const char *dialect)
{
	bench_open_at(b, STR("memory:"), dialect);
}

__attribute__((unused)) static void bench_open_disk(struct bench *b, const char *dialect)
{
	const char *dir = temp_dir_new();
	char url[300];

	snprintf(url, sizeof(url), "disk:%s", dir);
	bench_open_at(b, str_of(url), dialect);
	b->dir = dir;
}

/* Calls with JSON text; single quotes stand for double ones. The result is left in b->result. */
static const struct jv *call_jv(struct bench *b, const char *tool, const struct jv *args)
{
	struct err err = {0};
	const struct tool_info *info;

	CHECK_OK(toolset_call(b->set, &b->ctx, str_of(tool), args, &b->result, &err), err);
	info = toolset_find(b->set, str_of(tool));
	if (!b->result.is_error && info->output_schema)
		CHECK_OK(schema_check(info->output_schema, b->result.value, tool, &err), err);
	return b->result.value;
}

static const struct jv *call(struct bench *b, const char *tool, const char *json)
{
	char *text = (char *)arena_str(b->arena, str_of(json)).ptr;
	struct err err = {0};
	struct jv *args;

	for (char *p = text; *p; p++)
		if (*p == '\'')
			*p = '"';
	CHECK_OK(jv_parse(b->arena, str_of(text), &args, &err), err);
	return call_jv(b, tool, args);
}

__attribute__((unused)) static const struct jv *good(struct bench *b, const char *tool, const char *json)
{
	const struct jv *v = call(b, tool, json);

	if (b->result.is_error)
		TEST_FAIL("%s %s failed: %.*s", tool, json, STR_ARG(b->result.text));
	return v;
}

__attribute__((unused)) static struct str refused(struct bench *b, const char *tool, const char *json,
						  enum err_kind kind)
{
	call(b, tool, json);
	if (!b->result.is_error)
		TEST_FAIL("%s %s succeeded: %.*s", tool, json, STR_ARG(b->result.text));
	if (b->result.err.kind != kind)
		TEST_FAIL("%s %s failed as %s (%s), expected %s", tool, json, err_kind_name(b->result.err.kind),
			  b->result.err.msg, err_kind_name(kind));
	return b->result.text;
}

__attribute__((unused)) static struct str content_of(struct bench *b, const char *path)
{
	struct err err = {0};
	struct wpath p;
	struct str bytes;

	CHECK_OK(wpath_parse(str_of(path), &p, &err), err);
	CHECK_OK(store_read(workspace_files(b->ws), &b->ctx, p, STORE_WHOLE, (size_t)1 << 30, &bytes, NULL, &err), err);
	return bytes;
}

__attribute__((unused)) static void put(struct bench *b, const char *path, struct str bytes)
{
	struct err err = {0};
	struct wpath p;

	CHECK_OK(wpath_parse(str_of(path), &p, &err), err);
	CHECK_OK(store_write(workspace_files(b->ws), &b->ctx, p, bytes, (struct store_cond){0}, NULL, &err), err);
}

#endif
