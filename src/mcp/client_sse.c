/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transport of 2024-11-05: one stream of events for as long as the connection lasts, whose first event names the
 * address for POSTs; every answer comes on the stream. It has a thread that reads it and puts messages into a list,
 * from which the thread of a request takes them. Only servers that offer nothing newer cost that thread.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/limits.h"
#include "mcp/client_internal.h"
#include "net/sse.h"
#include "net/url.h"

#define HEADERS_MAX 80
#define WAITING_MAX 1000 /* messages */
#define LOOK_MS     100

struct message {
	struct message *next;
	struct str text;
};

struct old_sse {
	struct mcp_client *c;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t news;
	struct cancel cancel;
	struct arena *arena; /* of the thread */
	char *address;       /* for POSTs; NULL: the server has not named it yet */
	struct message *first, **last;
	size_t count;
	bool ended;
	struct err why;
};

static int take_event(void *arg, const struct sse_event *event, struct err *err)
{
	struct old_sse *o = arg;
	int r = 0;

	pthread_mutex_lock(&o->lock);
	if (str_is(event->event, "endpoint") && !o->address) {
		o->address = xstrndup(event->data);
	} else if (event->data.len && o->count < WAITING_MAX) {
		struct message *m = xmalloc(sizeof(*m) + event->data.len);

		memcpy(m + 1, event->data.ptr, event->data.len);
		*m = (struct message){.text = str_n(m + 1, event->data.len)};
		*o->last = m;
		o->last = &m->next;
		o->count++;
	} else if (o->count >= WAITING_MAX) {
		r = err_set(err, ERR_TOO_LARGE, "more than %d messages are waiting", WAITING_MAX);
	}
	pthread_cond_signal(&o->news);
	pthread_mutex_unlock(&o->lock);
	return r;
}

static int take_bytes(void *arg, const void *bytes, size_t len, struct err *err)
{
	return sse_feed(arg, str_n(bytes, len), err);
}

static void *read_stream(void *arg)
{
	struct old_sse *o = arg;
	struct http_header headers[HEADERS_MAX] = {{STR("accept"), STR("text/event-stream")}};
	struct ctx ctx = {.arena = o->arena, .cancel = &o->cancel};
	struct http_request req = {
		.method = "GET", .url = mcp_url(o->c, o->arena), .headers = headers, .push = take_bytes};
	struct http_response response;
	struct sse sse;
	struct err err;
	int r;

	req.header_count = 1 + mcp_own_headers(o->c, o->arena, headers + 1, HEADERS_MAX - 1);
	req.arg = &sse;
	sse_init(&sse, take_event, o);
	r = http_perform(o->c->http, &ctx, &req, &response, &err);
	sse_release(&sse);
	if (r == 0)
		err_set(&err, ERR_UNAVAILABLE, "its stream ended with HTTP %d", response.status);
	pthread_mutex_lock(&o->lock);
	o->ended = true;
	o->why = err;
	pthread_cond_signal(&o->news);
	pthread_mutex_unlock(&o->lock);
	return NULL;
}

/* Waits a moment for news; under the lock. */
static void look(struct old_sse *o)
{
	struct timespec until = clock_timespec(clock_real_ns() + LOOK_MS * NS_PER_MS);

	pthread_cond_timedwait(&o->news, &o->lock, &until);
}

static int failed(struct old_sse *o, struct err *err)
{
	*err = o->why;
	return err_prefix(err, "the MCP server \"%.*s\"", STR_ARG(o->c->name));
}

int old_sse_open(struct mcp_client *c, struct ctx *ctx, struct err *err)
{
	struct old_sse *o = xcalloc(1, sizeof(*o));
	int r = 0;

	o->c = c;
	o->arena = arena_new();
	o->last = &o->first;
	pthread_mutex_init(&o->lock, NULL);
	pthread_cond_init(&o->news, NULL);
	if (pthread_create(&o->thread, NULL, read_stream, o) != 0) {
		pthread_mutex_destroy(&o->lock);
		pthread_cond_destroy(&o->news);
		arena_destroy(o->arena);
		free(o);
		return err_set(err, ERR_UNAVAILABLE, "there is no thread left for the MCP server \"%.*s\"",
			       STR_ARG(c->name));
	}
	c->old = o;
	pthread_mutex_lock(&o->lock);
	while (!o->address && !o->ended && (r = ctx_check(ctx, err)) == 0)
		look(o);
	if (r == 0 && !o->address)
		r = failed(o, err);
	pthread_mutex_unlock(&o->lock);
	if (r)
		old_sse_close(c);
	return r;
}

void old_sse_close(struct mcp_client *c)
{
	struct old_sse *o = c->old;

	if (!o)
		return;
	atomic_store(&o->cancel.requested, true);
	pthread_join(o->thread, NULL);
	for (struct message *m = o->first, *next; m; m = next) {
		next = m->next;
		free(m);
	}
	pthread_mutex_destroy(&o->lock);
	pthread_cond_destroy(&o->news);
	arena_destroy(o->arena);
	free(o->address);
	free(o);
	c->old = NULL;
}

/* The address for POSTs; it must be on the server that has named it. */
static int address_of(struct old_sse *o, struct arena *arena, struct str *ret, struct err *err)
{
	struct url base, url;
	int r = url_parse(arena, mcp_url(o->c, arena), &base, err);

	if (r == 0)
		r = url_join(arena, &base, str_of(o->address), &url, err);
	if (r == 0 && (!str_eq(base.host, url.host) || base.port != url.port || base.tls != url.tls))
		r = err_set(err, ERR_DENIED, "the MCP server \"%.*s\" names an address on another server",
			    STR_ARG(o->c->name));
	if (r == 0)
		*ret = url_format(arena, &url);
	return r;
}

static int post(struct mcp_client *c, struct ctx *ctx, struct str body, struct err *err)
{
	struct http_header headers[HEADERS_MAX] = {{STR("content-type"), STR("application/json")}};
	struct http_request req = {.method = "POST", .headers = headers, .body = body};
	struct http_response response;
	int r = address_of(c->old, ctx->arena, &req.url, err);

	req.header_count = 1 + mcp_own_headers(c, ctx->arena, headers + 1, HEADERS_MAX - 1);
	if (r == 0)
		r = http_perform(c->http, ctx, &req, &response, err);
	if (r == 0 && response.status / 100 != 2)
		r = err_set(err, ERR_UNAVAILABLE, "the MCP server \"%.*s\" answered with HTTP %d", STR_ARG(c->name),
			    response.status);
	return r;
}

/* The next message; NULL: there is none yet. */
static struct message *next_message(struct old_sse *o)
{
	struct message *m = o->first;

	if (!m)
		return NULL;
	o->first = m->next;
	if (!o->first)
		o->last = &o->first;
	o->count--;
	return m;
}

int old_sse_exchange(struct flight *f, struct str body, struct err *err)
{
	struct old_sse *o = f->c->old;
	int r = post(f->c, f->ctx, body, err);

	f->was_sent = true;
	while (r == 0 && f->id && !f->answer) {
		struct message *m;
		bool ended;

		pthread_mutex_lock(&o->lock);
		m = next_message(o);
		ended = o->ended;
		if (!m && !ended)
			look(o);
		pthread_mutex_unlock(&o->lock);
		if (m)
			r = mcp_take(f, m->text, post, err);
		else
			r = ended ? failed(o, err) : ctx_check(f->ctx, err);
		free(m);
		if (r && ended)
			mcp_drop(f->c);
	}
	return r;
}
