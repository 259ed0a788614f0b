/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tools over artifacts: park_result for agents that have a large result of their own, and list, read, tail, search
 * for whoever wants it back. Their own results are never parked: reading back would otherwise never end.
 */
#include "home/artifacts/artifacts_tools.h"

#include "base/clock.h"
#include "base/utf8.h"
#include "find/find.h"
#include "home/artifacts/artifacts.h"
#include "home/files/files.h"

#define TAIL_DEFAULT 50
#define SEARCH_HITS  10
#define TAIL_WINDOW  (256 * KIB)

int tool_park_result(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	struct str content = jv_get_str(args, "content");

	if (content.len > TOOL_FILE_MAX)
		return err_set(err, ERR_TOO_LARGE,
			       "park a result of %zu bytes: at most %zu can be parked; park it in parts", content.len,
			       TOOL_FILE_MAX);
	/* the caller of the tool parks what is too large (TOOL_PARKS), as for every tool whose result may be */
	ret->value = jv_object(arena);
	jv_set_bool(arena, ret->value, "parked", false);
	jv_set_str(arena, ret->value, "content", content.ptr ? content : STR(""));
	ret->text = content.ptr ? content : STR("");
	return 0;
}

int park_outcome(struct call *call, const struct tool *tool, const struct jv *args, struct outcome *out,
		 struct err *err)
{
	struct arena *arena = call->ctx->arena;
	bool own = tool->call == tool_park_result;
	struct str name = own ? jv_get_str(args, "tool_name") : str_of(tool->name);
	struct parked p;
	struct buf text;
	int r;

	if (!artifacts_too_large(workspace_artifacts(call->ws), out->text) &&
	    !(own && jv_get_bool(args, "always", false)))
		return 0;
	name = name.len ? name : STR("result");
	r = artifacts_park(workspace_artifacts(call->ws), call->ctx, name, own ? jv_get(args, "args") : args, out->text,
			   &p, err);
	if (r)
		return r;
	out->value = jv_object(arena);
	jv_set_bool(arena, out->value, "parked", true);
	jv_set_str(arena, out->value, "artifact_id", p.id);
	jv_set_str(arena, out->value, "preview", p.preview);
	jv_set_int(arena, out->value, "tokens", (int64_t)p.tokens);
	jv_set_int(arena, out->value, "bytes", (int64_t)p.bytes);
	jv_set_int(arena, out->value, "preview_tokens", (int64_t)p.preview_tokens);
	jv_set_int(arena, out->value, "lines_left", (int64_t)p.lines_left);
	buf_init(&text, arena, TOOL_TEXT_MAX);
	parked_block(&text, name, &p);
	out->text = buf_str(&text);
	return 0;
}

static struct jv *artifact_value(struct call *call, const struct artifact *a)
{
	struct arena *arena = call->ctx->arena;
	const struct jv *meta = artifacts_meta(workspace_artifacts(call->ws), call->ctx, a->id);
	struct jv *v = jv_object(arena);

	jv_set_str(arena, v, "artifact_id", a->id);
	jv_set_str(arena, v, "tool_name", meta ? jv_get_str(meta, "tool_name") : STR("?"));
	jv_set_int(arena, v, "bytes", (int64_t)a->size);
	if (meta)
		jv_set_int(arena, v, "tokens", jv_get_int(meta, "original_tokens", 0));
	jv_set_str(arena, v, "parked_at", workspace_time(call->ws, arena, a->time_ns));
	return v;
}

int tool_list_artifacts(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	uint64_t limit = arg_count(args, "limit", 50, 500);
	struct str after = jv_get_str(args, "cursor");
	struct jv *list = jv_array(arena);
	struct artifact *all;
	size_t count, i = 0;
	int r;

	artifacts_sweep(workspace_artifacts(call->ws), call->ctx);
	r = artifacts_list(workspace_artifacts(call->ws), call->ctx, &all, &count, err);
	if (r)
		return r;
	for (size_t k = 0; after.len && k < count; k++)
		if (str_eq(all[k].id, after))
			i = k + 1;
	if (after.len && i == 0)
		return err_set(err, ERR_INVALID, "the cursor names an artifact that is gone; list from the start");
	for (; i < count && jv_count(list) < limit; i++)
		jv_push(arena, list, artifact_value(call, &all[i]));
	ret->value = jv_object(arena);
	jv_set(arena, ret->value, "artifacts", list);
	jv_set_int(arena, ret->value, "total", (int64_t)count);
	if (i < count)
		jv_set_str(arena, ret->value, "next_cursor", all[i - 1].id);
	return 0;
}

void render_list_artifacts(const struct jv *args, const struct jv *value, struct buf *text)
{
	(void)args;
	for (const struct jv_member *m = jv_first(jv_get(value, "artifacts")); m; m = m->next) {
		if (text->len)
			buf_char(text, '\n');
		buf_printf(text, "%.*s  from %.*s  %lld bytes, %lld tokens  %.*s",
			   STR_ARG(jv_get_str(m->value, "artifact_id")), STR_ARG(jv_get_str(m->value, "tool_name")),
			   (long long)jv_get_int(m->value, "bytes", 0), (long long)jv_get_int(m->value, "tokens", 0),
			   STR_ARG(jv_get_str(m->value, "parked_at")));
	}
	if (text->len == 0)
		buf_lit(text, "no artifacts");
	if (jv_get_str(value, "next_cursor").len)
		buf_printf(text, "\n[%zu of %lld; continue with cursor \"%.*s\"]", jv_count(jv_get(value, "artifacts")),
			   (long long)jv_get_int(value, "total", 0), STR_ARG(jv_get_str(value, "next_cursor")));
}

/* The artifact that the arguments name, and the same call with the artifacts area as its files. */
static int open_artifact(struct call *call, const struct jv *args, struct call *ret_call, struct jv **ret_args,
			 struct str *ret_id, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	struct wpath path;
	int r = artifacts_find(workspace_artifacts(call->ws), call->ctx, jv_get_str(args, "artifact_id"), &path, ret_id,
			       err);

	if (r)
		return r;
	*ret_call = *call;
	ret_call->files = artifacts_store(workspace_artifacts(call->ws));
	*ret_args = jv_copy(arena, args);
	jv_remove(*ret_args, "artifact_id");
	jv_set_str(arena, *ret_args, "path", path.s);
	return 0;
}

int tool_read_artifact(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct call inner;
	struct jv *inner_args;
	struct str id;
	int r = open_artifact(call, args, &inner, &inner_args, &id, err);

	if (r == 0)
		r = tool_read_file(&inner, inner_args, ret, err);
	if (r)
		return r;
	jv_remove(ret->value, "path");
	jv_remove(ret->value, "version");
	jv_set_str(call->ctx->arena, ret->value, "artifact_id", id);
	return 0;
}

/* The last `want` lines, or all when there are fewer. */
static struct str last_lines(struct str bytes, uint64_t want)
{
	size_t at = bytes.len;

	if (at && bytes.ptr[at - 1] == '\n')
		at--;
	while (at > 0 && want > 0) {
		size_t nl = str_rfind_char(str_first(bytes, at), '\n');

		if (nl == at)
			break;
		if (--want == 0)
			return str_from(bytes, nl + 1);
		at = nl;
	}
	return bytes;
}

int tool_tail_artifact(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	uint64_t want = arg_count(args, "lines", TAIL_DEFAULT, 10000), total;
	struct store_stat stat;
	struct wpath path;
	struct str bytes, tail, id;
	int r = artifacts_find(workspace_artifacts(call->ws), call->ctx, jv_get_str(args, "artifact_id"), &path, &id,
			       err);

	if (r == 0)
		r = store_read(artifacts_store(workspace_artifacts(call->ws)), call->ctx, path, STORE_WHOLE,
			       TOOL_FILE_MAX, &bytes, &stat, err);
	if (r)
		return r;
	total = count_lines(bytes);
	tail = str_from(bytes, bytes.len > TAIL_WINDOW ? bytes.len - TAIL_WINDOW : 0);
	tail = last_lines(utf8_skip_inside(tail), want);
	ret->value = jv_object(arena);
	jv_set_str(arena, ret->value, "artifact_id", id);
	jv_set_str(arena, ret->value, "content", tail);
	jv_set_int(arena, ret->value, "lines", (int64_t)count_lines(tail));
	jv_set_int(arena, ret->value, "total_lines", (int64_t)total);
	jv_set_int(arena, ret->value, "byte_offset", (int64_t)(tail.ptr - bytes.ptr));
	return 0;
}

void render_tail_artifact(const struct jv *args, const struct jv *value, struct buf *text)
{
	int64_t above = jv_get_int(value, "total_lines", 0) - jv_get_int(value, "lines", 0);

	(void)args;
	if (above > 0)
		buf_printf(text, "[%lld line%s above]\n", (long long)above, plural((uint64_t)above));
	buf_add(text, jv_get_str(value, "content"));
}

int tool_search_artifact(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	struct grep_req req = {.pattern = jv_get_str(args, "query"),
			       .literal = true,
			       .ignore_case = true,
			       .context = 1,
			       .output = GREP_LINES,
			       .limit = arg_count(args, "limit", SEARCH_HITS, GREP_LIMIT_MAX),
			       .cursor = jv_get_str(args, "cursor"),
			       .line_cut = GREP_LINE_CUT,
			       .threads = 1};
	struct grep_result found;
	struct jv *lines;
	struct str id;
	int r = artifacts_find(workspace_artifacts(call->ws), call->ctx, jv_get_str(args, "artifact_id"), &req.path,
			       &id, err);

	if (r == 0 && (req.pattern.len == 0 || req.pattern.len > PATTERN_LEN_MAX))
		return err_set(err, ERR_INVALID, "search_artifact: the query has %zu bytes; give 1 to %zu",
			       req.pattern.len, PATTERN_LEN_MAX);
	if (r == 0)
		r = find_grep(artifacts_store(workspace_artifacts(call->ws)), call->ctx, &req, NULL, NULL, &found, err);
	if (r)
		return r;
	lines = jv_array(arena);
	for (size_t i = 0; i < found.count; i++) {
		struct jv *v = jv_object(arena);

		jv_set_int(arena, v, "line", (int64_t)found.lines[i].line);
		jv_set_str(arena, v, "text", found.lines[i].text);
		if (!found.lines[i].is_match)
			jv_set_bool(arena, v, "context", true);
		if (found.lines[i].group_start && i)
			jv_set_bool(arena, v, "group_start", true);
		jv_push(arena, lines, v);
	}
	ret->value = jv_object(arena);
	jv_set_str(arena, ret->value, "artifact_id", id);
	jv_set(arena, ret->value, "lines", lines);
	jv_set_int(arena, ret->value, "total_matches", (int64_t)found.matches);
	if (found.next.ptr)
		jv_set_str(arena, ret->value, "next_cursor", found.next);
	return 0;
}

void render_search_artifact(const struct jv *args, const struct jv *value, struct buf *text)
{
	int64_t matches = jv_get_int(value, "total_matches", 0), shown = 0;

	(void)args;
	for (const struct jv_member *m = jv_first(jv_get(value, "lines")); m; m = m->next) {
		bool context = jv_get_bool(m->value, "context", false);

		shown += !context;
		if (text->len)
			buf_char(text, '\n');
		if (jv_get_bool(m->value, "group_start", false))
			buf_lit(text, "---\n");
		buf_i64(text, jv_get_int(m->value, "line", 0));
		buf_char(text, context ? '-' : ':');
		buf_char(text, ' ');
		buf_add(text, jv_get_str(m->value, "text"));
	}
	if (matches == 0)
		buf_lit(text, "no line matches");
	if (jv_get_str(value, "next_cursor").len)
		buf_printf(text, "\n[%lld of %lld matching lines; continue with cursor \"%.*s\"]", (long long)shown,
			   (long long)matches, STR_ARG(jv_get_str(value, "next_cursor")));
}
