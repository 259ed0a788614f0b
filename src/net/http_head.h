/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The head of an HTTP/1 request or answer as a proxy must read it: what two readers could understand differently (two
 * hosts, two lengths, a length and an encoding, folded lines, a bare line feed) is refused, so that the request that
 * was checked is the request that the server sees. Heads are written again from their parts, never passed on.
 */
#ifndef STEAD_NET_HTTP_HEAD_H
#define STEAD_NET_HTTP_HEAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

#define HEAD_BYTES_MAX  ((size_t)64 * 1024)
#define HEAD_FIELDS_MAX 128

enum head_state {
	HEAD_MORE, /* not whole yet */
	HEAD_DONE,
	HEAD_BAD,
};

struct http_head {
	struct str method, target; /* of a request */
	int status;                /* of an answer */
	struct str reason;
	int minor; /* of the version: 0 or 1 */
	struct head_field {
		struct str name, value;
	} fields[HEAD_FIELDS_MAX];
	size_t count;
	size_t len;             /* bytes of the head */
	struct str host;        /* of a request: the one Host header, or that of an absolute target; with its port */
	bool has_length;        /* Content-Length */
	uint64_t length;        /* else 0 */
	bool is_chunked;        /* Transfer-Encoding: chunked */
	bool wants_close;       /* Connection: close */
	const char *reason_bad; /* HEAD_BAD: why, for people */
};

/* A request of the form that servers are asked in. An absolute target is cut to its path, and its host must be that of
   the Host header. CONNECT is HEAD_BAD. Everything points into `bytes`. */
enum head_state http_head_request(struct str bytes, struct http_head *ret);
/* An answer. */
enum head_state http_head_answer(struct str bytes, struct http_head *ret);
/* The value of a field; ptr NULL: there is none. */
struct str http_head_find(const struct http_head *head, const char *name);
/* True for fields that belong to one connection and are not passed on. */
bool http_head_is_hop(struct str name);

/* The lengths of chunks in a body, whose bytes come in pieces. */
struct http_chunks {
	enum { CHUNK_SIZE, CHUNK_DATA, CHUNK_DATA_END, CHUNK_TRAILER, CHUNK_OVER, CHUNK_BAD } state;
	uint64_t left;
	unsigned digits;
	bool saw_cr, in_extension;
	size_t line; /* characters of this line */
	size_t trailer;
};
/* Takes from the front of *rest. *ret_data: bytes of the body, which may be empty. Trailers are dropped. Call it until
 *rest is empty or the state is CHUNK_OVER or CHUNK_BAD. */
void http_chunks_take(struct http_chunks *chunks, struct str *rest, struct str *ret_data);

#endif
