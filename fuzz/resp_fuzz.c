/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers of an untrusted Redis server. The first byte says how the rest is cut into pieces, so that every
 * place of an answer is once the end of what has come. Beyond "does not crash": the same bytes in other pieces give the
 * same answer, and nothing is longer than was allowed.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/buf.h"
#include "net/resp.h"

#define MAX  4096
#define HEAD 3

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

static int feed_fill(void *arg, void *bytes, size_t cap, void *spill, size_t spill_cap, size_t *ret_len,
		     struct err *err)
{
	struct feed *f = arg;
	size_t n = f->piece < cap + spill_cap ? f->piece : cap + spill_cap;

	n = n < f->rest.len ? n : f->rest.len;
	if (n == 0)
		return err_set(err, ERR_UNAVAILABLE, "the end");
	memcpy(bytes, f->rest.ptr, n < cap ? n : cap);
	if (n > cap)
		memcpy(spill, f->rest.ptr + cap, n - cap);
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

/* Strings put elsewhere, after a head of some bytes. */
struct put {
	struct arena *arena;
	char *bytes;
	size_t len;
	char last; /* of the head */
};

static char *put_to(void *arg, const char *head, size_t rest)
{
	struct put *p = arg;

	require(rest <= MAX);
	p->last = head[HEAD - 1];
	p->bytes = rest % 3 ? arena_alloc(p->arena, rest) : NULL;
	p->len = p->bytes ? rest : 0;
	return p->bytes;
}

/* All answers in the bytes, and how it ended. */
static struct str parse_all(struct arena *arena, struct str bytes, size_t piece, bool placed)
{
	struct feed feed = {bytes, piece};
	struct put put = {.arena = arena};
	struct resp_place place = {.head = HEAD, .to = put_to, .arg = &put};
	struct resp_in in = {.buf = arena_alloc(arena, RESP_BUF), .fill = feed_fill, .arg = &feed, .arena = arena};
	struct resp_value v;
	struct err err = {0};
	struct buf out;
	int r;

	buf_init(&out, arena, (size_t)1 << 24);
	in.place = placed ? &place : NULL;
	while ((r = resp_parse(&in, MAX, &v, &err)) == 0) {
		show(&out, &v);
		if (put.len) {
			require(v.s.len == HEAD && v.s.ptr[HEAD - 1] == put.last);
			buf_add(&out, str_n(put.bytes, put.len));
		}
		put.len = 0;
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
	struct str bytes, all;

	if (size == 0)
		return 0;
	bytes = str_n(data + 1, size - 1);
	all = parse_all(arena, bytes, SIZE_MAX, false);
	require(str_eq(all, parse_all(arena, bytes, data[0] % 16 + 1, false)));
	require(str_eq(all, parse_all(arena, bytes, data[0] % 16 + 1, true)));
	require(str_eq(all, parse_all(arena, bytes, SIZE_MAX, true)));
	return 0;
}
