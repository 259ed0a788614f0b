/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stream on which a legacy server over HTTP speaks without being asked: many servers put their questions there and
 * not on the stream of the call that they are about. It has a thread, and exists only where the configuration lets the
 * server ask. A message that comes there and one that comes on the stream of a call are handled one at a time.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/limits.h"
#include "mcp/client_internal.h"
#include "net/sse.h"

#define HEADERS_MAX 80
#define OPEN_MS     3000 /* for the stream to begin before the first call is made */
#define LOOK_MS     50

struct listener {
	struct mcp_client *c;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t news;
	struct cancel cancel;
	struct arena *arena; /* of the thread */
	struct sse sse;
	char *session;   /* NULL: the server gave none */
	bool is_settled; /* it has begun, or never will */
};

static int reply(struct mcp_client *c, struct ctx *ctx, struct str line, struct err *err)
{
	struct flight f = {.c = c, .ctx = ctx};

	return mcp_http_exchange(&f, line, err);
}

static int take_event(void *arg, const struct sse_event *event, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct listener *l = arg;
	struct ctx ctx = {.arena = arena, .cancel = &l->cancel};
	struct flight f = {.c = l->c, .ctx = &ctx};
	struct err ignored;

	(void)err;
	if (!event->data.len)
		return 0;
	pthread_mutex_lock(&l->c->talk);
	f.host = l->c->host;
	mcp_take(&f, event->data, reply, &ignored);
	pthread_mutex_unlock(&l->c->talk);
	return 0;
}

static void settle(struct listener *l)
{
	pthread_mutex_lock(&l->lock);
	l->is_settled = true;
	pthread_cond_signal(&l->news);
	pthread_mutex_unlock(&l->lock);
}

static int take_head(void *arg, int status, const struct http_header *headers, size_t count, struct err *err)
{
	(void)status;
	(void)headers;
	(void)count;
	(void)err;
	settle(arg);
	return 0;
}

static int take_bytes(void *arg, const void *bytes, size_t len, struct err *err)
{
	struct listener *l = arg;

	return sse_feed(&l->sse, str_n(bytes, len), err);
}

static void *listen_to(void *arg)
{
	struct listener *l = arg;
	struct http_header headers[HEADERS_MAX] = {{STR("accept"), STR("text/event-stream")},
						   {STR("mcp-protocol-version"), STR(MCP_LEGACY)}};
	struct ctx ctx = {.arena = l->arena, .cancel = &l->cancel};
	struct http_request req = {.method = "GET",
				   .url = mcp_url(l->c, l->arena),
				   .headers = headers,
				   .header_count = 2,
				   .head = take_head,
				   .push = take_bytes,
				   .arg = l};
	struct http_response response;
	struct err ignored;

	if (l->session)
		headers[req.header_count++] = (struct http_header){STR("mcp-session-id"), str_of(l->session)};
	req.header_count += mcp_own_headers(l->c, l->arena, headers + req.header_count, HEADERS_MAX - req.header_count);
	http_perform(l->c->http, &ctx, &req, &response, &ignored);
	settle(l);
	return NULL;
}

void listener_open(struct mcp_client *c)
{
	struct listener *l = xcalloc(1, sizeof(*l));
	int64_t until = clock_monotonic_ns() + OPEN_MS * NS_PER_MS;

	l->c = c;
	l->arena = arena_new();
	l->session = c->session ? xstrndup(str_of(c->session)) : NULL;
	sse_init(&l->sse, take_event, l);
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->news, NULL);
	c->listener = l;
	if (pthread_create(&l->thread, NULL, listen_to, l) != 0) {
		l->thread = 0;
		return;
	}
	pthread_mutex_lock(&l->lock);
	while (!l->is_settled && clock_monotonic_ns() < until) {
		struct timespec at = clock_timespec(clock_real_ns() + LOOK_MS * NS_PER_MS);

		pthread_cond_timedwait(&l->news, &l->lock, &at);
	}
	pthread_mutex_unlock(&l->lock);
}

void listener_close(struct mcp_client *c)
{
	struct listener *l = c->listener;

	if (!l)
		return;
	c->listener = NULL;
	atomic_store(&l->cancel.requested, true);
	if (l->thread)
		pthread_join(l->thread, NULL);
	sse_release(&l->sse);
	pthread_mutex_destroy(&l->lock);
	pthread_cond_destroy(&l->news);
	arena_destroy(l->arena);
	free(l->session);
	free(l);
}
