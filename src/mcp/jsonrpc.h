/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON-RPC 2.0 as MCP uses it on a byte stream: one message a line, no batches. This part knows nothing of MCP's
 * methods: it cuts lines, reads envelopes and writes error replies.
 */
#ifndef STEAD_MCP_JSONRPC_H
#define STEAD_MCP_JSONRPC_H

#include <stdbool.h>

#include "base/buf.h"
#include "text/jv.h"

enum {
	RPC_PARSE = -32700,
	RPC_INVALID_REQUEST = -32600,
	RPC_NO_METHOD = -32601,
	RPC_INVALID_PARAMS = -32602,
	RPC_INTERNAL = -32603,
	RPC_NO_RESOURCE_LEGACY = -32002,
	RPC_NO_CAPABILITY = -32021,
	RPC_BAD_VERSION = -32022,
};

/* Cuts lines out of what a descriptor gives. A line longer than JSON_LEN_MAX is dropped while it is read, so it is
   never in memory as a whole, and the next line is still found. */
struct rpc_reader {
	int fd;
	char *buf;
	size_t cap, start, end; /* unread bytes are buf[start, end) */
	size_t searched;        /* buf[start, searched) holds no '\n' */
	size_t line_max;
	bool skipping; /* within a line that is too long */
	bool ended;
};

enum rpc_got { RPC_LINE, RPC_TOO_LONG, RPC_NEED_MORE, RPC_END };

void rpc_reader_init(struct rpc_reader *r, int fd, size_t line_max);
void rpc_reader_release(struct rpc_reader *r);
/* The next line from what was read, without its end; valid until rpc_reader_fill(). Bytes after the last '\n' count as
   a line when the stream has ended. */
enum rpc_got rpc_reader_next(struct rpc_reader *r, struct str *ret_line);
/* Waits for bytes. An error of the descriptor counts as its end. */
void rpc_reader_fill(struct rpc_reader *r);

enum rpc_kind { RPC_REQUEST, RPC_NOTIFICATION, RPC_RESPONSE };

struct rpc_message {
	enum rpc_kind kind;
	const struct jv *id; /* a string or an integer; NULL when there is none */
	struct str method;
	const struct jv *params; /* an object, or NULL */
	const struct jv *result; /* of a response; NULL: it is an error */
};

/* What a failed request is answered with. */
struct rpc_error {
	int code;
	struct str message;
	const struct jv *data; /* may be NULL */
};

/* 0 and the message, or the error code for the answer; then `err` has the sentence, and ret->id the id if one could be
   read. Everything is in the arena. */
int rpc_parse(struct arena *arena, struct str line, struct rpc_message *ret, struct err *err);

/* `{"jsonrpc":"2.0","id":…,"error":{…}}` and a line end; without "id" when id is NULL. */
void rpc_write_error(struct buf *buf, const struct jv *id, const struct rpc_error *error);

#endif
