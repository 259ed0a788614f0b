/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slices: search, cut, compare, and the little UTF-8 that every edge needs. Anything that needs tables (case folding,
 * normalisation, grapheme breaks) belongs to text/, not here.
 */
#include "base/str.h"

#include <strings.h>

size_t str_find_char(struct str s, char c)
{
	const char *p = s.len ? memchr(s.ptr, c, s.len) : NULL;

	return p ? (size_t)(p - s.ptr) : s.len;
}

size_t str_rfind_char(struct str s, char c)
{
	const char *p = s.len ? memrchr(s.ptr, c, s.len) : NULL;

	return p ? (size_t)(p - s.ptr) : s.len;
}

size_t str_find(struct str s, struct str needle, size_t from)
{
	const char *p;

	if (needle.len == 0 || from > s.len || s.len - from < needle.len)
		return SIZE_MAX;
	p = memmem(s.ptr + from, s.len - from, needle.ptr, needle.len);
	return p ? (size_t)(p - s.ptr) : SIZE_MAX;
}

bool str_cut(struct str *rest, char sep, struct str *ret_part)
{
	size_t at;

	if (rest->ptr == NULL)
		return false;
	at = str_find_char(*rest, sep);
	*ret_part = str_first(*rest, at);
	*rest = at < rest->len ? str_from(*rest, at + 1) : STR_NONE;
	return true;
}

static bool is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

struct str str_trim(struct str s)
{
	while (s.len && is_space(s.ptr[0]))
		s = str_from(s, 1);
	while (s.len && is_space(s.ptr[s.len - 1]))
		s.len--;
	return s;
}

bool str_to_i64(struct str s, int64_t *ret)
{
	bool minus = s.len && s.ptr[0] == '-';
	int64_t v = 0;

	s = str_from(s, minus);
	if (s.len == 0)
		return false;
	for (size_t i = 0; i < s.len; i++) {
		int digit = s.ptr[i] - '0';

		if (digit < 0 || digit > 9)
			return false;
		if (__builtin_mul_overflow(v, 10, &v) || __builtin_sub_overflow(v, digit, &v))
			return false;
	}
	if (!minus && v == INT64_MIN)
		return false;
	*ret = minus ? v : -v;
	return true;
}

bool str_eq_nocase(struct str a, struct str b)
{
	return a.len == b.len && (a.len == 0 || strncasecmp(a.ptr, b.ptr, a.len) == 0);
}

/* Length of the well-formed sequence at p (n bytes left), or 0. */
static size_t utf8_sequence(const unsigned char *p, size_t n)
{
	if (p[0] < 0x80)
		return 1;
	if (p[0] < 0xC2)
		return 0;
	if (p[0] < 0xE0)
		return n >= 2 && (p[1] & 0xC0) == 0x80 ? 2 : 0;
	if (p[0] < 0xF0) {
		if (n < 3 || (p[1] & 0xC0) != 0x80 || (p[2] & 0xC0) != 0x80)
			return 0;
		if ((p[0] == 0xE0 && p[1] < 0xA0) || (p[0] == 0xED && p[1] > 0x9F))
			return 0;
		return 3;
	}
	if (p[0] > 0xF4 || n < 4)
		return 0;
	if ((p[1] & 0xC0) != 0x80 || (p[2] & 0xC0) != 0x80 || (p[3] & 0xC0) != 0x80)
		return 0;
	if ((p[0] == 0xF0 && p[1] < 0x90) || (p[0] == 0xF4 && p[1] > 0x8F))
		return 0;
	return 4;
}

bool utf8_valid(struct str s)
{
	const unsigned char *p = (const unsigned char *)s.ptr;
	size_t i = 0;

	while (i < s.len) {
		uint64_t words[4];
		size_t step;

		if (s.len - i >= sizeof(words)) { /* ASCII bytes, 32 or 8 at a time */
			memcpy(words, p + i, sizeof(words));
			if (((words[0] | words[1] | words[2] | words[3]) & 0x8080808080808080u) == 0) {
				i += sizeof(words);
				continue;
			}
		}
		if (s.len - i >= sizeof(words[0])) {
			memcpy(words, p + i, sizeof(words[0]));
			if ((words[0] & 0x8080808080808080u) == 0) {
				i += sizeof(words[0]);
				continue;
			}
		}
		step = utf8_sequence(p + i, s.len - i);
		if (step == 0)
			return false;
		i += step;
	}
	return true;
}

struct str utf8_first(struct str s, size_t max)
{
	if (s.len <= max)
		return s;
	while (max > 0 && ((unsigned char)s.ptr[max] & 0xC0) == 0x80)
		max--;
	return str_first(s, max);
}

size_t utf8_count(struct str s)
{
	const unsigned char *p = (const unsigned char *)s.ptr;
	size_t count = 0;

	for (size_t i = 0; i < s.len; count++) {
		size_t step = utf8_sequence(p + i, s.len - i);

		i += step ? step : 1;
	}
	return count;
}

/* Two letters that changed places are one mistake ("hlep"), as are one too many, one too few and a wrong one. */
unsigned str_distance(struct str a, struct str b, unsigned max)
{
	unsigned rows[3][65];

	if (a.len > 64 || b.len > 64)
		return max + 1;
	for (size_t j = 0; j <= b.len; j++)
		rows[0][j] = (unsigned)j;
	for (size_t i = 1; i <= a.len; i++) {
		unsigned *row = rows[i % 3], *above = rows[(i + 2) % 3], *second = rows[(i + 1) % 3];

		row[0] = (unsigned)i;
		for (size_t j = 1; j <= b.len; j++) {
			unsigned best = above[j - 1] + (a.ptr[i - 1] != b.ptr[j - 1]);

			if (above[j] + 1 < best)
				best = above[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			if (i > 1 && j > 1 && a.ptr[i - 1] == b.ptr[j - 2] && a.ptr[i - 2] == b.ptr[j - 1] &&
			    second[j - 2] + 1 < best)
				best = second[j - 2] + 1;
			row[j] = best;
		}
	}
	return rows[a.len % 3][b.len] > max ? max + 1 : rows[a.len % 3][b.len];
}

const char *str_nearest(struct str word, const char *const *words, size_t n)
{
	unsigned best = word.len <= 4 ? 2 : (unsigned)(word.len / 3) + 1;
	const char *nearest = NULL;

	for (size_t i = 0; i < n; i++) {
		unsigned d = str_distance(word, str_of(words[i]), best);

		if (d < best) {
			best = d;
			nearest = words[i];
		}
	}
	return nearest;
}
