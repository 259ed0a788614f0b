/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers of a Redis server that may be anybody. The first byte says how the rest is cut into pieces, so that every
 * place of an answer is once the end of what has come. Beyond "does not crash": the same bytes in other pieces give the
 * same answer, and nothing is longer than was allowed.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/buf.h"
#include "net/resp.h"

#define MAX 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct feed {
	struct str rest;
	size_t piece;
};

static void require(bool fact)
{
	if (!fact)
		abort();
}

static int feed_fill(void *arg, void *bytes, size_t cap, size_t *ret_len, struct err *err)
{
	struct feed *f = arg;
	size_t n = f->piece < cap ? f->piece : cap;

	n = n < f->rest.len ? n : f->rest.len;
	if (n == 0)
		return err_set(err, ERR_UNAVAILABLE, "the end");
	memcpy(bytes, f->rest.ptr, n);
	f->rest = str_from(f->rest, n);
	*ret_len = n;
	return 0;
}

static void show(struct buf *out, const struct resp_value *v)
{
	require(v->s.len <= 8192 || v->type == RESP_STR || v->type == RESP_ERROR);
	buf_printf(out, "%d %lld %zu ", (int)v->type, (long long)v->i, v->count);
	if (v->type == RESP_STR || v->type == RESP_ERROR) {
		require(v->s.ptr[v->s.len] == '\0');
		buf_add(out, v->s);
	}
	for (size_t i = 0; i < v->count; i++)
		show(out, &v->items[i]);
}

/* All answers in the bytes, and how it ended. */
static struct str parse_all(struct arena *arena, struct str bytes, size_t piece)
{
	struct feed feed = {bytes, piece};
	struct resp_in in = {.buf = arena_alloc(arena, RESP_BUF), .fill = feed_fill, .arg = &feed, .arena = arena};
	struct resp_value v;
	struct err err = {0};
	struct buf out;
	int r;

	buf_init(&out, arena, (size_t)1 << 24);
	while ((r = resp_parse(&in, MAX, &v, &err)) == 0) {
		show(&out, &v);
		if (v.type == RESP_ERROR) {
			struct err meaning = {0};

			require(resp_error(v.s, &meaning) == -(int)meaning.kind && meaning.msg[0]);
		}
	}
	require(r == -(int)err.kind && err.msg[0]);
	buf_printf(&out, "%s", err.msg);
	return buf_str(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct str bytes;

	if (size == 0)
		return 0;
	bytes = str_n(data + 1, size - 1);
	require(str_eq(parse_all(arena, bytes, SIZE_MAX), parse_all(arena, bytes, data[0] % 16 + 1)));
	return 0;
}
