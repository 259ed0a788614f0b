/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces that more than one dialect needs. A dialect itself is one file: its table, its paths, its replies. */
#include "dialects/common.h"

struct jv *args_map(struct arena *arena, const struct jv *args, const char *const *pairs)
{
	struct jv *out = jv_object(arena);

	for (; pairs[0]; pairs += 2) {
		const struct jv *v = jv_get(args, pairs[0]);

		if (!jv_is_null(v))
			jv_set(arena, out, pairs[1], (struct jv *)v);
	}
	return out;
}

void text_reply(struct outcome *ret, const struct buf *text)
{
	ret->value = NULL;
	ret->text = text->ptr ? buf_str(text) : STR("");
}

struct str utf8_points(struct str s, size_t n)
{
	size_t i = 0;

	while (i < s.len && n--) {
		i++;
		while (i < s.len && ((unsigned char)s.ptr[i] & 0xC0) == 0x80)
			i++;
	}
	return str_first(s, i);
}

struct str glob_any_depth(struct arena *arena, struct str pattern)
{
	if (pattern.len == 0 || str_find_char(pattern, '/') < pattern.len || str_is(pattern, "**"))
		return pattern;
	return arena_printf(arena, "**/%.*s", STR_ARG(pattern));
}
