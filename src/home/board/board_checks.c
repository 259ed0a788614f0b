/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Acceptance checks: what must be true of the files of a task before it counts as completed. They are written with the
 * item, and run by Stead when somebody calls the item complete, so they do not depend on what an agent says. A check
 * names a file and any of: min_size, json_schema, matches (a regular expression). A file that a check names must exist.
 *
 * A check may also be a command, whose exit code decides. It looks at the files in /task, in a sandbox, and changes
 * nothing. Agents write items, so it must give them no power that they lack: it never runs without isolation, and not
 * at all where the configuration denies the tool "execute".
 */
#include "home/board/board_internal.h"
#include "home/exec/exec.h"
#include "text/grep.h"
#include "text/schema.h"

/* Commands may have been forbidden since the item was written, so this is asked again before one runs. */
static int check_command(struct workspace *ws, struct str command, struct err *err)
{
	int r = 0;

	if (!str_trim(command).len || memchr(command.ptr, 0, command.len))
		r = err_set(err, ERR_INVALID, "the command is empty or has a NUL character; write it as for sh");
	if (r == 0 && command.len > BOARD_CHECK_COMMAND_MAX)
		r = err_set(err, ERR_TOO_LARGE, "the command has more than %zu bytes; keep it in a file of the task",
			    (size_t)BOARD_CHECK_COMMAND_MAX);
	return r ? r : tool_check_allowed(ws, "execute", err);
}

static int check_one(struct workspace *ws, const struct jv *check, struct err *err)
{
	const struct jv *schema = jv_get(check, "json_schema");
	struct str pattern = jv_get_str(check, "matches"), text = jv_get_str(check, "path");
	struct str command = jv_get_str(check, "command");
	int r = 0;

	if (!text.len && (!command.ptr || pattern.ptr || schema || jv_get(check, "min_size")))
		return err_set(err, ERR_INVALID,
			       "a check needs the path of a file, or a command, as {\"path\": …} or {\"command\": …}");
	if (command.ptr)
		r = check_command(ws, command, err);
	if (r)
		return err_prefix(err, "the check \"%.*s\"", STR_ARG(utf8_first(command, 100)));
	if (pattern.ptr)
		r = pattern_check(pattern, err);
	if (r == 0 && schema)
		r = schema_compile(schema, err);
	return r ? err_prefix(err, "the check of \"%.*s\"", STR_ARG(utf8_first(text, 100))) : 0;
}

int checks_validate(struct workspace *ws, const struct jv *checks, struct err *err)
{
	int r = 0;

	if (jv_count(checks) > BOARD_CHECKS_MAX)
		return err_set(err, ERR_TOO_LARGE, "an item has at most %d checks; put several into one command",
			       BOARD_CHECKS_MAX);
	for (const struct jv_member *m = jv_first(checks); m && r == 0; m = m->next)
		r = check_one(ws, m->value, err);
	return r;
}

struct checking {
	struct workspace *ws;
	struct ctx *ctx;
	struct store *task;
	struct str dir; /* of the files on this machine; empty: none */
	struct jv *results;
	struct str path;
	bool ok;
};

static struct jv *report(struct checking *c, const char *check, bool ok, struct str detail)
{
	struct arena *arena = c->ctx->arena;
	struct jv *v = jv_object(arena);

	if (c->path.len)
		jv_set_str(arena, v, "path", arena_printf(arena, "/task/%.*s", STR_ARG(c->path)));
	jv_set_str(arena, v, "check", str_of(check));
	jv_set_bool(arena, v, "ok", ok);
	if (detail.len)
		jv_set_str(arena, v, "detail", detail);
	jv_push(arena, c->results, v);
	c->ok = c->ok && ok;
	return v;
}

static void check_schema(struct checking *c, const struct jv *schema, struct str text)
{
	struct jv *value;
	struct err err;
	int r = jv_parse(c->ctx->arena, text, &value, &err);

	if (r == 0)
		r = schema_check(schema, value, "the file", &err);
	report(c, "json_schema", r == 0, r ? err_text(c->ctx->arena, &err) : STR(""));
}

/* A line of the file matches. */
static int check_pattern(struct checking *c, struct str pattern, struct str text, struct err *err)
{
	struct matcher *matcher;
	struct searcher *searcher;
	struct str line;
	size_t next;
	int r = matcher_new(c->ctx->arena, pattern, 0, &matcher, err), found;

	if (r)
		return r;
	searcher = searcher_new(matcher);
	searcher_begin(searcher, text);
	found = searcher_next(searcher, 0, &line, &next, err);
	searcher_destroy(searcher);
	matcher_destroy(matcher);
	if (found < 0)
		return found;
	report(c, "matches", found == 1,
	       found ? STR("")
		     : arena_printf(c->ctx->arena, "no line matches %.*s", STR_ARG(utf8_first(pattern, 100))));
	return 0;
}

/* "exit code 1: 2 of 7 tests failed": the last line is the one that says why, nearly always. */
static struct str command_detail(struct arena *arena, const struct sandbox_result *result)
{
	struct str out = str_trim(result->said.text);
	struct str how = result->timed_out       ? STR("killed at its time limit")
			 : result->out_of_memory ? STR("killed because it used too much memory")
						 : arena_printf(arena, "exit code %d", result->exit_code);

	if (!out.len)
		out = str_trim(result->out.text);
	if (str_rfind_char(out, '\n') < out.len)
		out = str_from(out, str_rfind_char(out, '\n') + 1);
	return out.len ? arena_printf(arena, "%.*s: %.*s", STR_ARG(how), STR_ARG(utf8_first(out, 300))) : how;
}

static int run_command(struct checking *c, struct str command, struct err *err)
{
	struct arena *arena = c->ctx->arena;
	const char *argv[] = {"sh", "-c", arena_cstr(arena, command), NULL};
	struct sandbox_result result;
	struct sandbox_job job;
	struct jv *v;
	bool ok;
	int r = check_command(c->ws, command, err);

	if (r == 0)
		r = exec_job_on(c->ws, c->ctx, c->task, c->dir, "/task", &job, err);
	if (r == 0) {
		job.argv = argv;
		job.limits.output = BOARD_CHECK_OUTPUT_MAX;
		r = sandbox_run(c->ctx, &job, &result, err);
	}
	if (r)
		return err_prefix(err, "the check \"%.*s\"", STR_ARG(utf8_first(command, 100)));
	ok = result.exit_code == 0;
	v = report(c, "command", ok, ok ? STR("") : command_detail(arena, &result));
	jv_set_str(arena, v, "command", command);
	jv_set_int(arena, v, "exit_code", result.exit_code);
	jv_set_int(arena, v, "duration_ms", result.duration_ms);
	sandbox_result_release(&result);
	return 0;
}

static int run_on_file(struct checking *c, const struct jv *check, struct err *err)
{
	const struct jv *schema = jv_get(check, "json_schema");
	struct str pattern = jv_get_str(check, "matches"), text;
	int64_t least = jv_get_int(check, "min_size", -1);
	struct store_stat stat;
	struct wpath path;
	int r = board_task_path(c->ctx->arena, jv_get_str(check, "path"), &path, err);

	if (r)
		return r;
	c->path = path.s;
	r = store_stat(c->task, c->ctx, path, &stat, err);
	if (r && r != -ERR_NOT_FOUND)
		return r;
	report(c, "exists", r == 0 && stat.kind == STORE_FILE,
	       r                        ? STR("the file does not exist")
	       : stat.kind == STORE_DIR ? STR("it is a directory")
					: STR(""));
	if (r || stat.kind == STORE_DIR)
		return 0;
	if (least >= 0)
		report(c, "min_size", stat.size >= (uint64_t)least,
		       stat.size >= (uint64_t)least
			       ? STR("")
			       : arena_printf(c->ctx->arena, "it has %llu bytes; at least %lld are needed",
					      (unsigned long long)stat.size, (long long)least));
	if (!schema && !pattern.ptr)
		return 0;
	r = store_read(c->task, c->ctx, path, STORE_WHOLE, BOARD_CHECK_FILE_MAX, &text, NULL, err);
	if (r == 0 && schema)
		check_schema(c, schema, text);
	if (r == 0 && pattern.ptr)
		r = check_pattern(c, pattern, text, err);
	return r;
}

static int run_one(struct checking *c, const struct jv *check, struct err *err)
{
	struct str command = jv_get_str(check, "command");
	int r = 0;

	c->path = STR("");
	if (jv_get_str(check, "path").len)
		r = run_on_file(c, check, err);
	return r || !command.ptr ? r : run_command(c, command, err);
}

int checks_run(struct workspace *ws, struct ctx *ctx, struct store *task, const struct item *item,
	       struct jv **ret_results, bool *ret_ok, struct err *err)
{
	struct checking c = {.ws = ws, .ctx = ctx, .task = task, .results = jv_array(ctx->arena), .ok = true};
	int r = 0;

	if (!jv_count(jv_get(item->v, "mounts"))) /* what is mounted is in no directory */
		c.dir = workspace_home_dir(
			ws, ctx->arena, board_path(ctx->arena, item->board, "tasks/%.*s", STR_ARG(item_key(item->v))));
	for (const struct jv_member *m = jv_first(jv_get(item->v, "checks")); m && r == 0; m = m->next)
		r = run_one(&c, m->value, err);
	*ret_results = c.results;
	*ret_ok = c.ok;
	return r;
}
