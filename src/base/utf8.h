/* SPDX-License-Identifier: Apache-2.0 */
/* Code points and letters of text that is, or should be, UTF-8. Validation and cutting by bytes are in base/str.h. */
#ifndef STEAD_BASE_UTF8_H
#define STEAD_BASE_UTF8_H

#include "base/arena.h"
#include "base/str.h"

#define UTF8_LEN_MAX 4
#define UTF8_BAD     0x110000u /* beyond Unicode */

/* True for the second and later bytes of a code point. */
static inline bool utf8_inside(char c)
{
	return ((unsigned char)c & 0xC0) == 0x80;
}

/* The code point at s[*i], which must be inside; *i moves to the next one. A malformed byte counts as one code point:
   UTF8_BAD | byte. */
uint32_t utf8_next(struct str s, size_t *i);
/* Writes the code point; returns its length. */
size_t utf8_put(char out[UTF8_LEN_MAX], uint32_t c);
/* The first `n` code points. */
struct str utf8_points(struct str s, size_t n);
/* How many bytes at the end of `s` begin a code point whose other bytes are missing. */
size_t utf8_unfinished(struct str s);
/* Without the bytes at its start (three at most) that belong to a code point before it. */
struct str utf8_skip_inside(struct str s);

static inline unsigned char ascii_lower(unsigned char c)
{
	return c >= 'A' && c <= 'Z' ? (unsigned char)(c | 0x20) : c;
}

/* A copy in which A-Z are small letters. */
struct str str_lower(struct arena *arena, struct str s);

#endif
