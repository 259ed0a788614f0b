/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP requests (libcurl's one file). A client keeps connections open and may be used from many threads at once. A
 * request ends by its deadline, whatever the server does. What the server answers is a result, also when it is 500:
 * only a request that got no whole answer is an error.
 */
#ifndef STEAD_NET_HTTP_H
#define STEAD_NET_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/ctx.h"
#include "base/err.h"
#include "base/str.h"

struct buf;
struct http; /* a client */

struct http_opts {
	unsigned connect_ms; /* 0: 5000 */
	unsigned stall_ms;   /* less than a byte in this time ends a request; 0: 15000 */
	const char *ca_file; /* PEM of authorities to trust instead of the system's; NULL: the system's */
	bool path_as_is;     /* do not squash "." and ".." in paths */
};

struct http_header {
	struct str name, value;
};

/* The body of a request that is not in memory: called for the next bytes, *ret_len 0 at the end. `rewind` starts it
   again when a connection that was kept open turns out to be dead. */
struct http_source {
	int (*pull)(void *arg, void *buf, size_t cap, size_t *ret_len, struct err *err);
	int (*rewind)(void *arg, struct err *err);
	void *arg;
	uint64_t length;
};

/* Addresses that were checked before (net/reach.h). The request goes to one of them, whatever the name of its URL leads
   to by then, and never through a proxy; a socket to any other address is not even opened (ERR_DENIED). */
struct reach_addresses;

struct http_request {
	const char *method;
	struct str url;
	const struct reach_addresses *pin; /* NULL: wherever the URL leads */
	const struct http_header *headers;
	size_t header_count;
	struct str body;                  /* or: */
	const struct http_source *source; /* NULL: body */
	/* Gets the body of an answer with a status of 2xx as it comes; NULL: it is collected (at most body_max). An
	   error answer is always collected. A failure of push ends the request with that failure. */
	int (*push)(void *arg, const void *bytes, size_t len, struct err *err);
	/* Called once for an answer of 2xx, when its head is there and before the first push; may be NULL. */
	int (*head)(void *arg, int status, const struct http_header *headers, size_t count, struct err *err);
	void *arg;
	size_t body_max;    /* 0: 1 MiB; more is ERR_TOO_LARGE (an error answer is cut instead) */
	int64_t timeout_ms; /* for the whole request, in addition to ctx's deadline; 0: none */
};

struct http_response {
	int status;
	const struct http_header *headers; /* names in lower case; in the caller's arena */
	size_t header_count;
	struct str body;
	bool sent;         /* on failure too: some of the request may have reached the server */
	uint64_t requests; /* how many times it was sent (2: a kept connection was dead) */
};

struct http *http_new(const struct http_opts *opts); /* NULL: the defaults */
void http_destroy(struct http *http);                /* when no request runs */
/* ERR_UNAVAILABLE (retryable): no connection, cut off; ERR_TIMEOUT: deadline, stall (retryable); ERR_DENIED: the
   server's certificate is not trusted; ERR_CANCELLED; ERR_UNSUPPORTED: libcurl is not installed; or what a callback
   failed with. Messages name the host, never a header, query or credentials. A proxy is used where the environment
   names one (https_proxy and so on), never for loopback. Redirects are answers. */
int http_perform(struct http *http, struct ctx *ctx, const struct http_request *req, struct http_response *ret,
		 struct err *err);
struct str http_header_of(const struct http_response *response, const char *name); /* ptr NULL: it has none */

/* Percent-encodes all but A-Z a-z 0-9 - . _ ~ (and '/', when `keep_slash`). */
void http_encode(struct buf *out, struct str text, bool keep_slash);

#endif
