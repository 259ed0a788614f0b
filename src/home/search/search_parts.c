/* SPDX-License-Identifier: Apache-2.0 */
/* Names and versions of parts of files in the index. */
#include "home/search/search_parts.h"

#include <stdio.h>

#define PART_MARK '\x01' /* no path and no version has it */

struct str search_part_key(struct arena *arena, struct str path, uint64_t number)
{
	return arena_printf(arena, "%.*s%c%08llx", STR_ARG(path), PART_MARK, (unsigned long long)number);
}

struct str search_part_file(struct str key)
{
	return str_first(key, str_find_char(key, PART_MARK));
}

struct str search_part_version(struct arena *arena, struct str version, const struct search_part *part)
{
	return arena_printf(arena, "%.*s%c%llx %llx %llx %llx %llx", STR_ARG(version), PART_MARK,
			    (unsigned long long)part->number, (unsigned long long)part->offset,
			    (unsigned long long)part->line, (unsigned long long)part->size,
			    (unsigned long long)part->hash);
}

static bool take_number(struct str *rest, uint64_t *ret)
{
	static const char digits[] = "0123456789abcdef";
	struct str word;

	*ret = 0;
	if (!str_cut(rest, ' ', &word) || !word.len || word.len > 16)
		return false;
	for (size_t i = 0; i < word.len; i++) {
		const char *digit = memchr(digits, word.ptr[i], 16);

		if (!digit)
			return false;
		*ret = *ret << 4 | (uint64_t)(digit - digits);
	}
	return true;
}

bool search_part_parse(struct str version, struct str *ret_version, struct search_part *ret_part)
{
	size_t mark = str_find_char(version, PART_MARK);
	struct str rest = str_from(version, mark < version.len ? mark + 1 : mark);

	*ret_version = str_first(version, mark);
	*ret_part = (struct search_part){.line = 1};
	return mark < version.len && take_number(&rest, &ret_part->number) && take_number(&rest, &ret_part->offset) &&
	       take_number(&rest, &ret_part->line) && take_number(&rest, &ret_part->size) &&
	       take_number(&rest, &ret_part->hash);
}

struct str search_part_known(const struct words_view *view, struct str path, struct search_part *ret_part)
{
	struct search_part unused;
	struct str version, plain;

	if (!words_view_file(view, path, &version) || !version.len)
		return STR_NONE;
	search_part_parse(version, &plain, ret_part ? ret_part : &unused);
	return plain;
}
