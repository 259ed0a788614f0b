/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces that more than one dialect needs. A dialect itself is one file: its table, its paths, its replies. */
#include "dialects/common.h"

struct str glob_any_depth(struct arena *arena, struct str pattern)
{
	if (pattern.len == 0 || str_find_char(pattern, '/') < pattern.len || str_is(pattern, "**"))
		return pattern;
	return arena_printf(arena, "**/%.*s", STR_ARG(pattern));
}

void add_grep_lines(struct buf *text, const struct jv *value)
{
	for (const struct jv_member *m = jv_first(jv_get(value, "lines")); m; m = m->next)
		buf_printf(text, "%s%.*s:%lld:%.*s", text->len ? "\n" : "", STR_ARG(jv_get_str(m->value, "path")),
			   (long long)jv_get_int(m->value, "line", 0), STR_ARG(jv_get_str(m->value, "text")));
}

void note_more(struct buf *text, const struct jv *value, const char *what)
{
	if (jv_get(value, "next_cursor"))
		buf_printf(text, "\n[%lld %s]", (long long)jv_get_int(value, "total", 0), what);
}

static void add_to(struct arena *arena, struct jv *object, const char *key, int64_t n)
{
	int64_t value = jv_get_int(object, key, -1);

	if (value >= 0 && value < INT64_MAX)
		jv_set_int(arena, object, key, value + n);
}

void offset_from_0(struct arena *arena, struct jv *mapped)
{
	add_to(arena, mapped, "offset", 1);
}

void next_offset_from_0(struct arena *arena, struct jv *value)
{
	add_to(arena, value, "next_offset", -1);
}

int reply_execute(struct call *call, const struct exec_call *what, bool code_first, struct outcome *ret,
		  struct err *err)
{
	struct buf text;
	struct jv *ran;
	int r = exec_call(call, what, &ran, err);
	long long code;

	if (r)
		return r;
	code = jv_get_int(ran, "exit_code", 1);
	buf_init(&text, call->ctx->arena, 2 * TOOL_TEXT_MAX);
	if (code_first)
		buf_printf(&text, "Exit code: %lld\n\n", code);
	exec_output(ran, &text);
	exec_remarks(ran, &text);
	if (!code_first)
		buf_printf(&text, "[exit code %lld]", code);
	text_reply(ret, &text);
	return 0;
}
