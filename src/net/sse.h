/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Server-sent events (text/event-stream), parsed as they arrive: the streams of models and of MCP servers. Bytes may be
 * cut anywhere. Lines end with LF, CRLF or CR; comments and fields that are not known are passed over.
 */
#ifndef STEAD_NET_SSE_H
#define STEAD_NET_SSE_H

#include "base/buf.h"
#include "base/err.h"

struct sse_event {
	struct str event; /* its type; empty: not given */
	struct str data;  /* its data lines, with '\n' between them */
	struct str id;    /* empty: not given */
};

/* Gets each event that has data; what it points to is valid during the call. A failure ends the parsing. */
typedef int (*sse_take)(void *arg, const struct sse_event *event, struct err *err);

struct sse {
	struct buf line, event, data, id;
	sse_take take;
	void *arg;
	struct buf last_id; /* of the last event that had one */
	int64_t retry_ms;   /* how long the server wants a pause before another connection; -1: it has not said */
	bool has_data, after_cr, begun;
};

void sse_init(struct sse *sse, sse_take take, void *arg);
void sse_release(struct sse *sse);
/* Another connection continues the stream: what was cut off is forgotten, `last_id` and `retry_ms` stay. */
void sse_again(struct sse *sse);
/* ERR_TOO_LARGE: an event has more than SSE_EVENT_MAX bytes; or what `take` failed with. An event that the stream's end
   cuts off is not given. */
int sse_feed(struct sse *sse, struct str bytes, struct err *err);

#endif
