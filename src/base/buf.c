/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void buf_init(struct buf *buf, struct arena *arena, size_t max)
{
	*buf = (struct buf){.arena = arena, .max = max};
}

void buf_release(struct buf *buf)
{
	if (!buf->arena)
		free(buf->ptr);
	*buf = (struct buf){.arena = buf->arena, .max = buf->max};
}

void buf_clear(struct buf *buf)
{
	buf->len = 0;
	buf->overflow = false;
}

char *buf_reserve(struct buf *buf, size_t more)
{
	size_t cap = buf->cap;

	if (buf->overflow || more > buf->max || buf->len > buf->max - more) {
		buf->overflow = true;
		return NULL;
	}
	if (buf->len + more > cap) {
		if (cap < 128)
			cap = 128;
		while (cap < buf->len + more)
			cap *= 2;
		buf->ptr = buf->arena ? arena_grow(buf->arena, buf->ptr, buf->cap, cap) : xrealloc(buf->ptr, cap);
		buf->cap = cap;
	}
	return buf->ptr + buf->len;
}

void buf_add(struct buf *buf, struct str s)
{
	char *p;

	if (s.len == 0)
		return;
	p = buf_reserve(buf, s.len);
	if (!p)
		return;
	memcpy(p, s.ptr, s.len);
	buf->len += s.len;
}

void buf_char(struct buf *buf, char c)
{
	buf_add(buf, (struct str){&c, 1});
}

void buf_u64(struct buf *buf, uint64_t v)
{
	char digits[20];
	size_t at = sizeof(digits);

	do {
		digits[--at] = (char)('0' + v % 10);
		v /= 10;
	} while (v);
	buf_add(buf, (struct str){digits + at, sizeof(digits) - at});
}

void buf_i64(struct buf *buf, int64_t v)
{
	if (v < 0)
		buf_char(buf, '-');
	buf_u64(buf, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

void buf_printf(struct buf *buf, const char *fmt, ...)
{
	va_list ap, again;
	char *p;
	int n;

	va_start(ap, fmt);
	va_copy(again, ap);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n > 0 && (p = buf_reserve(buf, (size_t)n + 1))) {
		vsnprintf(p, (size_t)n + 1, fmt, again);
		buf->len += (size_t)n;
	}
	va_end(again);
}
