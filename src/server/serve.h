/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `stead serve`: every workspace of a store over HTTP. Routes are one table (routes.c), which the OpenAPI document
 * comes from too; what they do is what the other doors do: the same stores, the same tools, the same errors.
 */
#ifndef STEAD_SERVER_SERVE_H
#define STEAD_SERVER_SERVE_H

#include "base/err.h"
#include "base/str.h"
#include "tool/tool.h"

struct serve;
struct request;

struct serve_opts {
	struct str store_url;
	struct str host; /* numeric, or "localhost" */
	uint16_t port;   /* 0: a free one */
	bool is_open;    /* no tokens: loopback only */
	bool hooks_only; /* nothing but requests of services to channels, which are signed, and /healthz */
	bool relaxed;
	struct toolset_choice tools; /* what MCP clients get */
	bool structured;             /* as in struct mcp_opts, like the next one */
	bool (*extra)(struct request *req);
	bool verbose;    /* one line on standard error for each request */
	unsigned head_s; /* seconds in which the head of a request must come; 0: HTTP_HEAD_S */
	/* Further names that clients may use for this server in Host, and origins whose pages may call it. */
	const struct str *hosts, *origins;
	size_t host_count, origin_count;
};

/* Serves from now on. ERR_DENIED: it would be open to others, or there are no tokens and others could reach it. */
int serve_start(const struct serve_opts *opts, struct serve **ret_serve, struct err *err);
/* "http://127.0.0.1:7777" */
struct str serve_url(const struct serve *serve);
/* True when there are no tokens, so that nobody can use it yet. */
bool serve_is_unused(const struct serve *serve);
/* No new requests; those that run have `grace_ms`. Frees it. False: something does not end, and the process should. */
bool serve_stop(struct serve *serve, int64_t grace_ms);

#endif
