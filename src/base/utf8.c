/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"

/* The length that the first byte announces; 0 when no code point begins with it. */
static size_t promised(unsigned char c)
{
	return c < 0x80 ? 1 : c < 0xC2 ? 0 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : c < 0xF5 ? 4 : 0;
}

uint32_t utf8_next(struct str s, size_t *i)
{
	const char *p = s.ptr + *i;
	unsigned char first = (unsigned char)p[0];
	size_t n = promised(first), left = s.len - *i;
	uint32_t c = n > 1 ? first & (0x7Fu >> n) : first;

	++*i;
	if (n == 0 || n > left)
		return UTF8_BAD | first;
	for (size_t k = 1; k < n; k++) {
		if (!utf8_inside(p[k]))
			return UTF8_BAD | first;
		c = c << 6 | ((unsigned char)p[k] & 0x3F);
	}
	*i += n - 1;
	return c;
}

size_t utf8_put(char out[UTF8_LEN_MAX], uint32_t c)
{
	size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

	for (size_t i = n - 1; i > 0; i--, c >>= 6)
		out[i] = (char)(0x80 | (c & 0x3F));
	out[0] = n == 1 ? (char)c : (char)(0xF00u >> n | c);
	return n;
}

struct str utf8_points(struct str s, size_t n)
{
	size_t i = 0;

	while (i < s.len && n--)
		for (i++; i < s.len && utf8_inside(s.ptr[i]);)
			i++;
	return str_first(s, i);
}

size_t utf8_unfinished(struct str s)
{
	for (size_t n = 1; n <= 3 && n <= s.len; n++) {
		char c = s.ptr[s.len - n];

		if (!utf8_inside(c))
			return promised((unsigned char)c) > n ? n : 0;
	}
	return 0;
}

struct str utf8_skip_inside(struct str s)
{
	size_t n = 0;

	while (n < UTF8_LEN_MAX - 1 && n < s.len && utf8_inside(s.ptr[n]))
		n++;
	return str_from(s, n);
}

struct str str_lower(struct arena *arena, struct str s)
{
	char *out = arena_alloc_raw(arena, s.len + 1);

	for (size_t i = 0; i < s.len; i++)
		out[i] = (char)ascii_lower((unsigned char)s.ptr[i]);
	return str_n(out, s.len);
}
