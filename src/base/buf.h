/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds text. In an arena (it dies with the arena) or, with arena NULL, on the heap (buf_release). It has a ceiling:
 * past it nothing more is added and `overflow` stays true, so a producer may write on and the owner checks once.
 */
#ifndef STEAD_BASE_BUF_H
#define STEAD_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/str.h"

struct buf {
	struct arena *arena; /* NULL: heap */
	char *ptr;
	size_t len, cap, max;
	bool overflow;
};

void buf_init(struct buf *buf, struct arena *arena, size_t max);
void buf_release(struct buf *buf);
void buf_clear(struct buf *buf);
/* Makes room for `more` bytes and returns where they go, or NULL past the ceiling; then add what you wrote to len. */
char *buf_reserve(struct buf *buf, size_t more);
void buf_add(struct buf *buf, struct str s);
void buf_char(struct buf *buf, char c);
void buf_u64(struct buf *buf, uint64_t v);
void buf_i64(struct buf *buf, int64_t v);
__attribute__((format(printf, 2, 3))) void buf_printf(struct buf *buf, const char *fmt, ...);
/* Literal text. */
#define buf_lit(buf, lit) buf_add((buf), STR(lit))

static inline struct str buf_str(const struct buf *buf)
{
	return (struct str){buf->ptr, buf->len};
}

#endif
