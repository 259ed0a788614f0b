/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces that more than one dialect needs. A dialect itself is one file: its table, its paths, its replies. */
#include "dialects/common.h"

struct str glob_any_depth(struct arena *arena, struct str pattern)
{
	if (pattern.len == 0 || str_find_char(pattern, '/') < pattern.len || str_is(pattern, "**"))
		return pattern;
	return arena_printf(arena, "**/%.*s", STR_ARG(pattern));
}
