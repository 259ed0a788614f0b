/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Heads of HTTP requests and answers as the sandbox's proxy reads them, and chunked bodies. Beyond "does not crash": a
 * head that is accepted has one host and at most one way to tell its length, no part of it has a line break, a request
 * that is written again is read as the same; a body does not depend on the pieces that it comes in.
 */
#include <stdint.h>
#include <stdlib.h>

#include "net/http_head.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
	if (!fact)
		abort();
}

static void require_line(struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		require(s.ptr[i] != '\r' && s.ptr[i] != '\n' && s.ptr[i] != 0);
}

static void check(const struct http_head *head, size_t size)
{
	require(head->len >= 4 && head->len <= size && head->count <= HEAD_FIELDS_MAX);
	require(!(head->has_length && head->is_chunked));
	for (size_t i = 0; i < head->count; i++) {
		require(head->fields[i].name.len > 0);
		require_line(head->fields[i].name);
		require_line(head->fields[i].value);
	}
}

static void check_request(struct arena *arena, const struct http_head *head)
{
	struct http_head *again = ARENA_NEW(arena, struct http_head);
	struct buf text;

	require(head->method.len && head->host.len && head->target.len);
	require(head->target.ptr[0] == '/' || str_is(head->target, "*"));
	require_line(head->target);
	buf_init(&text, arena, 4 * HEAD_BYTES_MAX);
	buf_printf(&text, "%.*s %.*s HTTP/1.%d\r\n", STR_ARG(head->method), STR_ARG(head->target), head->minor);
	for (size_t i = 0; i < head->count; i++)
		buf_printf(&text, "%.*s: %.*s\r\n", STR_ARG(head->fields[i].name), STR_ARG(head->fields[i].value));
	buf_lit(&text, "\r\n");
	if (http_head_request(buf_str(&text), again) != HEAD_DONE) {
		require(text.len > HEAD_BYTES_MAX);
		return;
	}
	require(again->len == text.len && again->count == head->count && str_eq(again->host, head->host));
	require(again->has_length == head->has_length && again->length == head->length &&
		again->is_chunked == head->is_chunked && str_eq(again->target, head->target));
}

/* The bytes of a chunked body that comes in pieces of `step`. */
static void decode(struct str bytes, size_t step, struct buf *ret, struct http_chunks *chunks)
{
	*chunks = (struct http_chunks){0};
	while (bytes.len && chunks->state != CHUNK_OVER && chunks->state != CHUNK_BAD) {
		struct str piece = str_first(bytes, step), data;

		bytes = str_from(bytes, step);
		while (piece.len && chunks->state != CHUNK_OVER && chunks->state != CHUNK_BAD) {
			http_chunks_take(chunks, &piece, &data);
			buf_add(ret, data);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct http_head *head = ARENA_NEW(arena, struct http_head);
	struct str bytes = str_n(data, size);
	struct http_chunks one, other;
	struct buf a, b;

	if (http_head_request(bytes, head) == HEAD_DONE) {
		check(head, size);
		check_request(arena, head);
	}
	if (http_head_answer(bytes, head) == HEAD_DONE) {
		check(head, size);
		require(head->status >= 100 && head->status <= 599);
		require_line(head->reason);
	}
	buf_init(&a, arena, size + 1);
	buf_init(&b, arena, size + 1);
	decode(bytes, size, &a, &one);
	decode(bytes, 1, &b, &other);
	require(one.state == other.state && str_eq(buf_str(&a), buf_str(&b)));
	return 0;
}
