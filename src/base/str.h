/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A string slice by value: pointer and length, not NUL-terminated, not owned. Text is parsed by cutting slices.
 * A `const char *` in this project always means NUL-terminated; a `struct str` never promises it.
 */
#ifndef STEAD_BASE_STR_H
#define STEAD_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct str {
	const char *ptr;
	size_t len;
};

/* STR("literal") costs nothing at run time. STR_ARG is for printf's "%.*s" and gives the whole string, up to INT32_MAX
 * bytes; a message that quotes what an outsider wrote shortens it with utf8_first(). */
#define STR(lit)   ((struct str){"" lit, sizeof(lit) - 1})
#define STR_NONE   ((struct str){NULL, 0})
#define STR_ARG(s) (int)((s).len > INT32_MAX ? INT32_MAX : (s).len), (s).ptr ? (s).ptr : ""

/* How many elements an array has. */
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static inline struct str str_of(const char *z)
{
	return (struct str){z, z ? strlen(z) : 0};
}

static inline struct str str_n(const void *p, size_t n)
{
	return (struct str){p, n};
}

static inline bool str_eq(struct str a, struct str b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static inline bool str_is(struct str a, const char *z)
{
	return str_eq(a, str_of(z));
}

/* Byte order; a proper prefix comes first. */
static inline int str_cmp(struct str a, struct str b)
{
	size_t n = a.len < b.len ? a.len : b.len;
	int c = n ? memcmp(a.ptr, b.ptr, n) : 0;

	return c ? c : (a.len > b.len) - (a.len < b.len);
}

static inline bool str_starts(struct str s, struct str prefix)
{
	return s.len >= prefix.len && (prefix.len == 0 || memcmp(s.ptr, prefix.ptr, prefix.len) == 0);
}

static inline bool str_ends(struct str s, struct str suffix)
{
	return s.len >= suffix.len &&
	       (suffix.len == 0 || memcmp(s.ptr + s.len - suffix.len, suffix.ptr, suffix.len) == 0);
}

/* The part from `from` on; past the end it is empty. */
static inline struct str str_from(struct str s, size_t from)
{
	if (from >= s.len)
		return (struct str){s.ptr ? s.ptr + s.len : NULL, 0};
	return (struct str){s.ptr + from, s.len - from};
}

/* The first `n` bytes, or all when there are fewer. */
static inline struct str str_first(struct str s, size_t n)
{
	return (struct str){s.ptr, n < s.len ? n : s.len};
}

/* Index of the first `c`, or s.len when there is none. */
size_t str_find_char(struct str s, char c);
/* Index of the last `c`, or s.len when there is none. */
size_t str_rfind_char(struct str s, char c);
/* Index of the first `needle` at or after `from`, or SIZE_MAX. An empty needle is never found. */
size_t str_find(struct str s, struct str needle, size_t from);
/* Cuts `*rest` at the first `sep`: gives the part before it and leaves the part after it. False when `*rest` is used
 * up. */
bool str_cut(struct str *rest, char sep, struct str *ret_part);
/* Without ASCII white space at both ends. */
struct str str_trim(struct str s);
/* Decimal digits with an optional '-', nothing else, within int64_t. */
bool str_to_i64(struct str s, int64_t *ret);
bool str_eq_nocase(struct str a, struct str b);

/* True for well-formed UTF-8 (no surrogates, no overlong forms). NUL is well-formed. */
bool utf8_valid(struct str s);
/* The longest prefix of at most `max` bytes that does not cut a code point. */
struct str utf8_first(struct str s, size_t max);
/* Code points, counting each malformed byte as one. */
size_t utf8_count(struct str s);

/* Levenshtein distance up to `max`, else max + 1. Used to name the nearest known word. */
unsigned str_distance(struct str a, struct str b, unsigned max);
/* The nearest of `n` words within a third of the word's length, or NULL. */
const char *str_nearest(struct str word, const char *const *words, size_t n);

#endif
