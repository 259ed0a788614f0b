/* SPDX-License-Identifier: Apache-2.0 */
/*
 * utf8proc, wrapped. Tables of Unicode change every year; Debian's library has them, and this file has only what search
 * decides for itself: which scripts are written without blanks.
 *
 * Thai and Lao "am" is one character in every text, but NFKC cuts it in two. It is put together again, so that the
 * usual spelling needs no folding at all.
 */
#include "text/unicode.h"

#include <utf8proc.h>

uint32_t unicode_decode(struct str s, size_t at, size_t *ret_len)
{
	utf8proc_int32_t c;
	utf8proc_ssize_t n;

	if ((unsigned char)s.ptr[at] < 0x80) {
		*ret_len = 1;
		return (unsigned char)s.ptr[at];
	}
	n = utf8proc_iterate((const utf8proc_uint8_t *)s.ptr + at, (utf8proc_ssize_t)(s.len - at), &c);
	*ret_len = n > 0 ? (size_t)n : 1;
	return n > 0 ? (uint32_t)c : 0xFFFD;
}

static const struct range {
	uint32_t first, last;
} dense[] = {
	{0x0E00, 0x0EFF}, {0x1000, 0x109F}, {0x1100, 0x11FF}, {0x1780, 0x17FF},   {0x2E80, 0x2FDF},
	{0x3005, 0x3007}, {0x3031, 0x3035}, {0x3041, 0x30FF}, {0x3105, 0x318F},   {0x31F0, 0x31FF},
	{0x3400, 0x4DBF}, {0x4E00, 0x9FFF}, {0xA960, 0xA97F}, {0xA9E0, 0xA9FF},   {0xAA60, 0xAA7F},
	{0xAC00, 0xD7FF}, {0xF900, 0xFAFF}, {0xFF66, 0xFFDC}, {0x1B000, 0x1B16F}, {0x20000, 0x323AF},
};

static bool in_ranges(uint32_t c, const struct range *ranges, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (c <= ranges[i].last)
			return c >= ranges[i].first;
	return false;
}

enum unicode_class unicode_class(uint32_t c)
{
	switch (utf8proc_category((utf8proc_int32_t)c)) {
	case UTF8PROC_CATEGORY_LU:
	case UTF8PROC_CATEGORY_LL:
	case UTF8PROC_CATEGORY_LT:
	case UTF8PROC_CATEGORY_LM:
	case UTF8PROC_CATEGORY_LO:
	case UTF8PROC_CATEGORY_NL:
		return in_ranges(c, dense, COUNT(dense)) ? UNICODE_DENSE : UNICODE_WORD;
	case UTF8PROC_CATEGORY_ND:
	case UTF8PROC_CATEGORY_NO:
		return UNICODE_WORD;
	case UTF8PROC_CATEGORY_MN:
	case UTF8PROC_CATEGORY_MC:
	case UTF8PROC_CATEGORY_ME:
		return UNICODE_MARK;
	default:
		return UNICODE_GAP;
	}
}

bool unicode_is_settled(uint32_t c)
{
	static const struct range settled[] = {
		{0x0E01, 0x0E4C}, {0x0E4E, 0x0EB2}, {0x0EB3, 0x0ECC}, {0x0ECE, 0x0EDB},
		{0x1000, 0x109F}, {0x1780, 0x17D3}, {0x3005, 0x3007}, {0x3041, 0x3096},
		{0x30A1, 0x30FE}, {0x3400, 0x4DBF}, {0x4E00, 0x9FFF}, {0xAC00, 0xD7A3},
	};

	return in_ranges(c, settled, COUNT(settled));
}

bool unicode_has_accents(uint32_t c)
{
	return (c >= 0xC0 && c <= 0x52F) || (c >= 0x1E00 && c <= 0x1FFF);
}

/* U+0E4D U+0E32 and U+0ECD U+0EB2. */
static utf8proc_ssize_t join_am(utf8proc_int32_t *code, utf8proc_ssize_t n)
{
	utf8proc_ssize_t out = 0;

	for (utf8proc_ssize_t i = 0; i < n; i++) {
		bool thai = i + 1 < n && code[i] == 0x0E4D && code[i + 1] == 0x0E32;
		bool lao = i + 1 < n && code[i] == 0x0ECD && code[i + 1] == 0x0EB2;

		code[out++] = thai ? 0x0E33 : lao ? 0x0EB3 : code[i];
		i += thai || lao;
	}
	return out;
}

struct str unicode_fold(struct unicode_room *room, struct str s, bool without_marks)
{
	const utf8proc_ssize_t cap = (utf8proc_ssize_t)COUNT(room->code) - 1;
	utf8proc_option_t how =
		UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT | UTF8PROC_CASEFOLD | UTF8PROC_IGNORE;
	utf8proc_ssize_t n;

	s = utf8_first(s, UNICODE_FOLD_MAX);
	if (without_marks)
		how |= UTF8PROC_STRIPMARK;
	n = utf8proc_decompose((const utf8proc_uint8_t *)s.ptr, (utf8proc_ssize_t)s.len, room->code, cap, how);
	if (n < 0 || n > cap)
		return STR("");
	n = utf8proc_reencode(room->code, join_am(room->code, n), how);
	return n < 0 ? STR("") : str_n(room->code, (size_t)n);
}
