/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streamable HTTP: a request is a POST, and its answer is JSON or a stream of events. Questions of a legacy server come
 * on that stream and are answered by further POSTs while it runs. A legacy stream that ends before the answer is taken
 * up where it was, after the pause that the server has named.
 */
#include <stdlib.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/limits.h"
#include "mcp/client_internal.h"
#include "net/sse.h"

#define HEADERS_MAX   96
#define LOGINS_MAX    3 /* of one request: a token, and more rights for it */
#define RESUMES_MAX   20
#define RETRY_MS      1000
#define RETRY_MS_MOST 30000

struct web_answer {
	struct flight *f;
	bool is_stream;
	struct sse sse;
	struct buf body;
};

struct str mcp_url(struct mcp_client *c, struct arena *arena)
{
	struct str base = jv_get_str(c->server, "url");
	struct buf url;
	char mark = str_find_char(base, '?') < base.len ? '&' : '?';

	buf_init(&url, arena, 64 * KIB);
	buf_add(&url, base);
	for (const struct jv_member *m = jv_first(jv_get(c->server, "queryParams")); m; m = m->next) {
		buf_char(&url, mark);
		http_encode(&url, m->key, false);
		buf_char(&url, '=');
		http_encode(&url, jv_str_of(m->value), false);
		mark = '&';
	}
	return buf_str(&url);
}

size_t mcp_own_headers(struct mcp_client *c, struct arena *arena, struct http_header *headers, size_t most)
{
	struct ctx ctx = {.arena = arena};
	struct str token = oauth_token(c, &ctx);
	size_t n = 0;

	for (const struct jv_member *m = jv_first(jv_get(c->server, "headers")); m && n < most; m = m->next)
		headers[n++] = (struct http_header){m->key, jv_str_of(m->value)};
	if (token.len && n < most)
		headers[n++] =
			(struct http_header){STR("authorization"), arena_printf(arena, "Bearer %.*s", STR_ARG(token))};
	return n;
}

/* Which arguments a tool wants as headers; NULL: it is not known. */
static const struct jv *schema_of(const struct mcp_client *c, struct str tool)
{
	for (size_t i = 0; i < c->count; i++)
		if (str_eq(c->tools[i].name, tool))
			return c->tools[i].schema;
	return NULL;
}

static size_t modern_headers(const struct flight *f, struct http_header *h, size_t most)
{
	struct arena *arena = f->ctx->arena;
	size_t n = 0;

	h[n++] = (struct http_header){STR("mcp-protocol-version"), STR(MCP_MODERN)};
	h[n++] = (struct http_header){STR("mcp-method"), f->method};
	if (f->name.len)
		h[n++] = (struct http_header){STR("mcp-name"), mcp_header_value(arena, f->name)};
	if (str_is(f->method, "tools/call"))
		n += mcp_param_headers(arena, schema_of(f->c, f->name), jv_get(f->params, "arguments"), h + n,
				       most - n);
	return n;
}

static size_t headers_of(const struct flight *f, struct http_header *h)
{
	struct mcp_client *c = f->c;
	size_t n = 0;

	h[n++] = (struct http_header){STR("content-type"), STR("application/json")};
	h[n++] = (struct http_header){STR("accept"), STR("application/json, text/event-stream")};
	if (c->era == MCP_IS_MODERN)
		n += modern_headers(f, h + n, HEADERS_MAX / 2);
	else if (c->started)
		h[n++] = (struct http_header){STR("mcp-protocol-version"), STR(MCP_LEGACY)};
	if (c->session)
		h[n++] = (struct http_header){STR("mcp-session-id"), str_of(c->session)};
	return n + mcp_own_headers(c, f->ctx->arena, h + n, HEADERS_MAX - n);
}

/* --- what comes back --- */

static int post_line(struct mcp_client *c, struct ctx *ctx, struct str line, struct err *err)
{
	struct flight f = {.c = c, .ctx = ctx};

	return mcp_http_exchange(&f, line, err);
}

static int take_sse(void *arg, const struct sse_event *event, struct err *err)
{
	struct web_answer *a = arg;
	int r;

	if (!event->data.len)
		return 0;
	pthread_mutex_lock(&a->f->c->talk);
	r = mcp_take(a->f, event->data, post_line, err);
	pthread_mutex_unlock(&a->f->c->talk);
	return r;
}

static int take_head(void *arg, int status, const struct http_header *headers, size_t count, struct err *err)
{
	struct web_answer *a = arg;
	struct mcp_client *c = a->f->c;

	(void)status;
	(void)err;
	for (size_t i = 0; i < count; i++) {
		if (str_is(headers[i].name, "content-type"))
			a->is_stream = str_starts(headers[i].value, STR("text/event-stream"));
		if (str_is(headers[i].name, "mcp-session-id") && !c->session && c->era != MCP_IS_MODERN)
			c->session = xstrndup(headers[i].value);
	}
	return 0;
}

static int take_body(void *arg, const void *bytes, size_t len, struct err *err)
{
	struct web_answer *a = arg;

	if (a->is_stream)
		return sse_feed(&a->sse, str_n(bytes, len), err);
	buf_add(&a->body, str_n(bytes, len));
	return a->body.overflow ? err_set(err, ERR_TOO_LARGE, "the MCP server \"%.*s\" answered with more than %zu MiB",
					  STR_ARG(a->f->c->name), MCP_ANSWER_MAX / MIB)
				: 0;
}

/* --- requests --- */

struct web_request {
	const char *method;
	struct str body, last_event;
};

static int perform(struct web_answer *a, const struct web_request *req, struct http_response *response, struct err *err)
{
	struct flight *f = a->f;
	struct http_header headers[HEADERS_MAX + 2];
	struct http_request request = {.method = req->method,
				       .url = mcp_url(f->c, f->ctx->arena),
				       .headers = headers,
				       .header_count = headers_of(f, headers),
				       .body = req->body,
				       .push = take_body,
				       .head = take_head,
				       .arg = a};
	int r;

	if (req->last_event.len)
		headers[request.header_count++] = (struct http_header){STR("last-event-id"), req->last_event};
	a->is_stream = false;
	sse_again(&a->sse);
	buf_clear(&a->body);
	r = http_perform(f->c->http, f->ctx, &request, response, err);
	f->was_sent = f->was_sent || response->sent;
	f->status = r ? 0 : response->status;
	return r;
}

static bool wants_scope(const struct http_response *response)
{
	struct str challenge = http_header_of(response, "www-authenticate");

	return response->status == 403 && challenge.ptr &&
	       str_find(challenge, STR("insufficient_scope"), 0) != SIZE_MAX;
}

/* The request was given up: a legacy server gets a notice, a modern one sees that nobody listens. */
static void cancel(struct flight *f)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena, .deadline_ns = clock_monotonic_ns() + MCP_END_MS * NS_PER_MS};
	struct flight notice = {.c = f->c, .ctx = &ctx};
	struct err ignored;

	if (f->c->era == MCP_IS_LEGACY && f->id && f->was_sent && f->c->started)
		mcp_http_exchange(&notice,
				  arena_printf(arena,
					       "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":"
					       "{\"requestId\":%lld}}",
					       (long long)f->id),
				  &ignored);
}

static void pause_ms(int64_t ms, int64_t deadline_ns)
{
	int64_t left = deadline_ns ? deadline_ns - clock_monotonic_ns() : INT64_MAX;
	struct timespec t = clock_timespec(ms * NS_PER_MS < left ? ms * NS_PER_MS : left > 0 ? left : 0);

	nanosleep(&t, NULL);
}

/* A stream that ended before the answer: a server that has numbered its events continues it. */
static int resume(struct web_answer *a, struct err *err)
{
	struct flight *f = a->f;
	int r = 0;

	for (int i = 0; i < RESUMES_MAX && r == 0 && !f->answer && a->sse.last_id.len; i++) {
		int64_t ms = a->sse.retry_ms >= 0 ? a->sse.retry_ms : RETRY_MS;
		struct web_request req = {.method = "GET",
					  .last_event = arena_str(f->ctx->arena, buf_str(&a->sse.last_id))};
		struct http_response response;

		pause_ms(ms < RETRY_MS_MOST ? ms : RETRY_MS_MOST, f->ctx->deadline_ns);
		r = ctx_check(f->ctx, err);
		if (r == 0)
			r = perform(a, &req, &response, err);
		if (r == -ERR_UNAVAILABLE)
			r = 0; /* it is tried again */
		else if (r == 0 && response.status / 100 != 2)
			break;
	}
	return r;
}

static int refused(struct flight *f, const struct http_response *response, struct err *err)
{
	struct mcp_client *c = f->c;
	struct jv *v;
	struct err ignored;

	if (jv_parse(f->ctx->arena, response->body, &v, &ignored) == 0 && v->type == JV_OBJECT && jv_get(v, "error") &&
	    f->id) {
		f->answer = v; /* an error of the protocol, with the status that belongs to it */
		if (response->status != 404 || c->era == MCP_IS_MODERN || !c->session)
			return 0;
	}
	f->session_lost = response->status == 404 && c->session && f->id;
	if (f->session_lost)
		mcp_drop(c);
	f->answer = NULL;
	return err_set(err, response->status == 401 || response->status == 403 ? ERR_UNAUTHENTICATED : ERR_UNAVAILABLE,
		       "the MCP server \"%.*s\" answered with HTTP %d; check its url and headers in tools.json",
		       STR_ARG(c->name), response->status);
}

static int exchange(struct web_answer *a, struct str body, struct err *err)
{
	struct web_request req = {.method = "POST", .body = body};
	struct flight *f = a->f;
	struct http_response response;
	int r = 0;

	for (int logins = 0; r == 0; logins++) {
		r = perform(a, &req, &response, err);
		if (r || (response.status != 401 && !wants_scope(&response)) || logins == LOGINS_MAX)
			break;
		r = oauth_login(f->c, f->ctx, &response, err);
	}
	if (r == 0 && response.status / 100 != 2)
		return refused(f, &response, err);
	if (r == 0 && f->id && !f->answer && !a->is_stream)
		r = mcp_take(f, buf_str(&a->body), post_line, err);
	/* A stream that broke is continued as well as one that was closed. */
	if ((r == 0 || r == -ERR_UNAVAILABLE) && f->id && !f->answer && a->is_stream && f->c->era == MCP_IS_LEGACY)
		r = resume(a, err);
	return r;
}

int mcp_http_exchange(struct flight *f, struct str body, struct err *err)
{
	struct web_answer a = {.f = f};
	struct mcp_client *c = f->c;
	struct err over;
	int r;

	if (c->old)
		return old_sse_exchange(f, body, err);
	sse_init(&a.sse, take_sse, &a);
	buf_init(&a.body, f->ctx->arena, MCP_ANSWER_MAX);
	r = exchange(&a, body, err);
	sse_release(&a.sse);
	if (r && f->id && !f->answer && ctx_check(f->ctx, &over) != 0)
		cancel(f);
	if (r)
		return str_starts(str_of(err->msg), STR("the MCP server")) || err->kind == ERR_UNAUTHENTICATED
			       ? r
			       : err_prefix(err, "the MCP server \"%.*s\"", STR_ARG(c->name));
	if (!f->id || f->answer)
		return 0;
	return a.body.len ? err_set(err, ERR_UNAVAILABLE,
				    "the MCP server \"%.*s\" did not answer in MCP; check its url in tools.json",
				    STR_ARG(c->name))
			  : err_set(err, ERR_UNAVAILABLE, "the MCP server \"%.*s\" gave no answer; check that it works",
				    STR_ARG(c->name));
}

void mcp_http_end(struct mcp_client *c)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena, .deadline_ns = clock_monotonic_ns() + MCP_END_MS * NS_PER_MS};
	struct flight f = {.c = c, .ctx = &ctx};
	struct http_header headers[HEADERS_MAX];
	struct http_request req = {.method = "DELETE", .url = mcp_url(c, arena), .headers = headers};
	struct http_response response;
	struct err ignored;

	req.header_count = headers_of(&f, headers);
	http_perform(c->http, &ctx, &req, &response, &ignored);
}
