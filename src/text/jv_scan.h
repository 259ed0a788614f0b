/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs of bytes that need no escape inside a JSON string: ASCII from 0x20 on, without '"' and '\\'. Parser and
 * writer spend most of their time on them, so they are found (and copied) 16 at a time where the machine can, else 8.
 */
#ifndef STEAD_TEXT_JV_SCAN_H
#define STEAD_TEXT_JV_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#define JV_STEP ((size_t)16)

/* Where the first other byte among JV_STEP bytes is, JV_STEP when there is none; copies all of them to `to` if set. */
static inline size_t jv_scan_step(const char *from, char *to)
{
	__m128i v = _mm_loadu_si128((const void *)from);
	/* signed: bytes from 0x80 on are less than 0x20 too */
	__m128i other = _mm_cmplt_epi8(v, _mm_set1_epi8(0x20));
	unsigned mask;

	other = _mm_or_si128(other, _mm_cmpeq_epi8(v, _mm_set1_epi8('"')));
	other = _mm_or_si128(other, _mm_cmpeq_epi8(v, _mm_set1_epi8('\\')));
	mask = (unsigned)_mm_movemask_epi8(other);
	if (to)
		_mm_storeu_si128((void *)to, v);
	return mask ? (size_t)__builtin_ctz(mask) : JV_STEP;
}
#else
#define JV_STEP ((size_t)8)

static inline size_t jv_scan_step(const char *from, char *to)
{
	uint64_t w, low, quote, slash, mask;

	memcpy(&w, from, 8);
	if (to)
		memcpy(to, &w, 8);
	low = (w - 0x2020202020202020u) & ~w;
	quote = w ^ 0x2222222222222222u;
	quote = (quote - 0x0101010101010101u) & ~quote;
	slash = w ^ 0x5C5C5C5C5C5C5C5Cu;
	slash = (slash - 0x0101010101010101u) & ~slash;
	mask = (w | low | quote | slash) & 0x8080808080808080u;
	if (!mask)
		return JV_STEP;
		/* a borrow may mark a byte after the first marked one, never one before it */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return (size_t)__builtin_ctzll(mask) / 8;
#else
	return 0; /* the bytes are looked at one by one */
#endif
}
#endif

static inline bool jv_is_plain(char c)
{
	return (signed char)c >= 0x20 && c != '"' && c != '\\';
}

/* Length of the run at `from`. With `to` set it is copied there, and up to JV_STEP bytes after it may be scribbled on:
   the caller has room for len + JV_STEP. */
static inline size_t jv_scan(const char *from, size_t len, char *to)
{
	size_t i = 0;

	while (len - i >= JV_STEP) {
		size_t n = jv_scan_step(from + i, to ? to + i : NULL);

		i += n;
		if (n < JV_STEP)
			break;
	}
	for (; i < len && jv_is_plain(from[i]); i++)
		if (to)
			to[i] = from[i];
	return i;
}

#endif
