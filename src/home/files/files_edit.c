/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edit_file and insert_file: changes inside a file. A change is computed on the bytes of one version and written on
 * the condition that it is still that version, again and again when another writer came first, so concurrent edits
 * lose nothing. The reply shows what changed, because a model that sees the result does not read the file again.
 */
#include "home/files/files.h"

#define DIFF_LINES 120

struct edit_job {
	const struct edit *edits;
	size_t count;
	struct str what;
	struct edit_report report;
	struct str detail;
};

static int change_edits(void *arg, struct arena *arena, struct str before, struct str *ret_after, struct err *err)
{
	struct edit_job *job = arg;

	return edit_apply(arena, before, job->edits, job->count, job->what, ret_after, &job->report, &job->detail, err);
}

static struct edit edit_from(const struct jv *v)
{
	return (struct edit){.old_text = jv_get_str(v, "old_text"),
			     .new_text = jv_get_str(v, "new_text"),
			     .replace_all = jv_get_bool(v, "replace_all", false)};
}

static int collect_edits(struct call *call, const struct jv *args, struct wpath path, struct edit_job *job,
			 struct err *err)
{
	const struct jv *list = jv_get(args, "edits");
	bool single = !jv_is_null(jv_get(args, "old_text")) || !jv_is_null(jv_get(args, "new_text"));
	struct edit *edits;

	if (single == !jv_is_null(list))
		return err_set(err, ERR_INVALID,
			       single ? "edit %.*s: give old_text and new_text, or edits, but not both"
				      : "edit %.*s: give old_text and new_text, or edits, which is a list of them",
			       STR_ARG(path.s));
	if (single && (jv_is_null(jv_get(args, "old_text")) || jv_is_null(jv_get(args, "new_text"))))
		return err_set(
			err, ERR_INVALID,
			"edit %.*s: old_text and new_text are both needed; new_text may be empty to delete old_text",
			STR_ARG(path.s));
	if (jv_count(list) > EDITS_MAX || (!single && jv_count(list) == 0))
		return err_set(err, ERR_INVALID, "edit %.*s: edits has %zu members; give 1 to %d", STR_ARG(path.s),
			       jv_count(list), EDITS_MAX);
	job->count = single ? 1 : jv_count(list);
	job->edits = edits = ARENA_ARRAY(call->ctx->arena, struct edit, job->count);
	if (single)
		edits[0] = edit_from(args);
	for (const struct jv_member *m = jv_first(list); m; m = m->next)
		*edits++ = edit_from(m->value);
	return 0;
}

static struct str diff_text(struct arena *arena, struct wpath path, struct str before, struct str after)
{
	struct buf buf;

	buf_init(&buf, arena, 128 * KIB);
	diff_unified(arena, before, after, path.s, DIFF_LINES, &buf);
	return buf.ptr ? buf_str(&buf) : STR("");
}

int tool_edit_file(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	struct edit_job job = {0};
	struct file_change change = {.change = change_edits,
				     .arg = &job,
				     .cond = arg_cond(args),
				     .dry_run = jv_get_bool(args, "dry_run", false)};
	struct wpath path;
	struct jv *lines;
	int r = arg_file(call, args, "path", &path, err);

	job.what = path.s;
	if (r == 0)
		r = collect_edits(call, args, path, &job, err);
	if (r)
		return r;
	r = file_change(call, path, &change, err);
	ret->detail = job.detail;
	if (r && err->kind == ERR_CONFLICT)
		explain_conflict(call, path, ret);
	if (r)
		return r;
	if (change.dry_run)
		change.stat.size = change.before.len;
	ret->value = value_file(arena, path, &change.stat);
	jv_set_int(arena, ret->value, "replaced", (int64_t)job.report.replaced);
	lines = jv_array(arena);
	for (size_t i = 0; i < job.report.line_count; i++)
		jv_push(arena, lines, jv_int(arena, (int64_t)job.report.lines[i]));
	jv_set(arena, ret->value, "lines", lines);
	jv_set_bool(arena, ret->value, "dry_run", change.dry_run);
	jv_set_str(arena, ret->value, "diff", diff_text(arena, path, change.before, change.after));
	if (job.report.crlf)
		jv_set_bool(arena, ret->value, "matched_crlf", true);
	return 0;
}

void render_edit(const struct jv *args, const struct jv *value, struct buf *text)
{
	int64_t n = jv_get_int(value, "replaced", 0);

	(void)args;
	if (jv_get(value, "replaced"))
		buf_printf(text, "%s %lld occurrence%s in ",
			   jv_get_bool(value, "dry_run", false) ? "would replace" : "replaced", (long long)n,
			   plural((uint64_t)n));
	else
		buf_printf(text, "inserted at line %lld of ", (long long)jv_get_int(value, "inserted_at", 0));
	buf_add(text, jv_get_str(value, "path"));
	buf_lit(text, " (version ");
	buf_add(text, jv_get_str(value, "version"));
	buf_lit(text, ")\n");
	buf_add(text, jv_get_str(value, "diff"));
	if (text->len && text->ptr[text->len - 1] == '\n')
		text->len--;
}

struct insert_job {
	uint64_t line;
	struct str text;
	struct str what;
};

static int change_insert(void *arg, struct arena *arena, struct str before, struct str *ret_after, struct err *err)
{
	struct insert_job *job = arg;
	int r = insert_apply(arena, before, job->line, job->text, ret_after, err);

	return r ? err_prefix(err, "insert into %.*s", STR_ARG(job->what)) : 0;
}

int tool_insert_file(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	struct insert_job job = {.line = arg_count(args, "insert_line", 0, INT64_MAX),
				 .text = jv_get_str(args, "insert_text")};
	struct file_change change = {.change = change_insert, .arg = &job, .cond = arg_cond(args)};
	struct wpath path;
	int r = arg_file(call, args, "path", &path, err);

	if (r)
		return r;
	job.what = path.s;
	if (job.text.len == 0)
		return err_set(err, ERR_INVALID, "insert into %.*s: insert_text is empty; nothing would change",
			       STR_ARG(path.s));
	r = file_change(call, path, &change, err);
	if (r && err->kind == ERR_CONFLICT)
		explain_conflict(call, path, ret);
	if (r)
		return r;
	ret->value = value_file(arena, path, &change.stat);
	jv_set_int(arena, ret->value, "inserted_at", (int64_t)job.line);
	jv_set_int(arena, ret->value, "total_lines", (int64_t)count_lines(change.after));
	jv_set_str(arena, ret->value, "diff", diff_text(arena, path, change.before, change.after));
	return 0;
}
