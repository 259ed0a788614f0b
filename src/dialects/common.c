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
