/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One request at a time: it is written, and what comes back is read until its answer. On the way a ping is answered,
 * progress is shown, a change of the tools is noted, and a question goes to the host if the configuration allows it.
 *
 * The two eras of the protocol differ in how they begin and in how a server asks: a legacy server sends a request of
 * its own, a modern one answers that it needs input, and gets the same request again with it. Both end at mcp_host.ask.
 */
#include "mcp/client.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/limits.h"
#include "mcp/client_internal.h"

#define ROUNDS_MAX    8    /* of input for one request */
#define PROBE_MS      5000 /* for a program to say which era it speaks */
#define FRESH_MS      60000
#define FRESH_MS_MOST (24 * 3600 * 1000LL)
#define STALL_MS      (3600 * 1000U) /* the deadline of a request ends it, not silence */

struct mcp_client *mcp_client_new(struct str name, const struct jv *server)
{
	struct mcp_client *c = xcalloc(1, sizeof(*c));
	pthread_mutexattr_t again;

	c->name = name;
	c->server = server;
	c->to = -1;
	c->arena = arena_new();
	c->is_old = str_is(jv_get_str(server, "transport"), "sse");
	pthread_mutex_init(&c->lock, NULL);
	pthread_mutexattr_init(&again);
	pthread_mutexattr_settype(&again, PTHREAD_MUTEX_RECURSIVE); /* an answer to a question may bring another one */
	pthread_mutex_init(&c->talk, &again);
	pthread_mutexattr_destroy(&again);
	return c;
}

void mcp_client_show_errors(struct mcp_client *c)
{
	c->shows_errors = true;
}

struct str mcp_client_name(const struct mcp_client *c)
{
	return c->name;
}

int64_t mcp_client_timeout_ns(const struct mcp_client *c)
{
	return jv_get_int(c->server, "timeout_ms", 30000) * NS_PER_MS;
}

bool mcp_is_stdio(const struct mcp_client *c)
{
	return str_is(jv_get_str(c->server, "transport"), "stdio");
}

void mcp_drop(struct mcp_client *c)
{
	mcp_process_stop(c);
	listener_close(c);
	old_sse_close(c);
	free(c->session);
	c->session = NULL;
	c->started = false;
	c->tools_changed = true; /* another process may have others */
}

/* --- what the server says --- */

/* The server may ask only what the configuration lets it. */
static bool may_ask(const struct mcp_client *c, struct str method)
{
	return (str_is(method, "sampling/createMessage") && jv_get_bool(c->server, "sampling", false)) ||
	       (str_is(method, "elicitation/create") && jv_get_bool(c->server, "elicitation", false));
}

static int ask_host(struct flight *f, struct str method, const struct jv *params, struct jv **ret, struct err *err)
{
	if (!may_ask(f->c, method))
		return err_set(err, ERR_UNSUPPORTED, "not offered");
	if (!f->host || !f->host->ask)
		return err_set(err, ERR_UNAVAILABLE, "nobody is there to answer");
	return f->host->ask(f->host->arg, f->ctx, method, params, ret, err);
}

static int answer_question(struct flight *f, const struct rpc_message *m, struct buf *b)
{
	struct jv *result = jv_object(f->ctx->arena);
	struct rpc_error error = {.code = RPC_NO_METHOD};
	struct err err;
	int r = 0;

	if (!str_is(m->method, "ping"))
		r = ask_host(f, m->method, m->params, &result, &err);
	if (r) {
		if (r != -ERR_UNSUPPORTED)
			error.code = r == -ERR_DENIED || r == -ERR_CANCELLED ? -1 : RPC_INTERNAL;
		error.message = err_text(f->ctx->arena, &err);
		rpc_write_error(b, m->id, &error);
		return r;
	}
	buf_lit(b, "{\"jsonrpc\":\"2.0\",\"id\":");
	jv_write(b, m->id);
	buf_lit(b, ",\"result\":");
	jv_write(b, result);
	buf_lit(b, "}\n");
	return 0;
}

static void show_progress(struct flight *f, const struct jv *params)
{
	struct arena *arena = f->ctx->arena;
	const struct jv *done = jv_get(params, "progress"), *total = jv_get(params, "total");
	struct str message = utf8_first(jv_get_str(params, "message"), 200);
	int64_t at = clock_monotonic_ns() + mcp_client_timeout_ns(f->c);
	struct buf text;

	if (!f->id || jv_get_int(params, "progressToken", -1) != f->id)
		return;
	f->ctx->deadline_ns = f->limit_ns && f->limit_ns < at ? f->limit_ns : at;
	if (!f->host || !f->host->progress)
		return;
	buf_init(&text, arena, 4 * KIB);
	if (done)
		jv_write(&text, done);
	if (total) {
		buf_lit(&text, " of ");
		jv_write(&text, total);
	}
	if (message.len)
		buf_printf(&text, "%s%.*s", text.len ? ": " : "", STR_ARG(message));
	f->host->progress(f->host->arg, buf_str(&text));
}

static void take_notice(struct flight *f, const struct rpc_message *m)
{
	if (str_is(m->method, "notifications/tools/list_changed"))
		f->c->tools_changed = true;
	else if (str_is(m->method, "notifications/progress"))
		show_progress(f, m->params);
}

int mcp_take(struct flight *f, struct str line,
	     int (*reply)(struct mcp_client *c, struct ctx *ctx, struct str line, struct err *err), struct err *err)
{
	struct rpc_message m;
	struct jv *v;
	struct err ignored;
	struct buf b;

	if (jv_parse(f->ctx->arena, line, &v, &ignored) != 0 || v->type != JV_OBJECT)
		return 0;
	if (!jv_get(v, "method")) {
		if (f->id && jv_get_int(v, "id", -1) == f->id && !f->answer)
			f->answer = v;
		return 0;
	}
	if (rpc_parse(f->ctx->arena, line, &m, &ignored) != 0)
		return 0;
	if (m.kind == RPC_NOTIFICATION)
		take_notice(f, &m);
	if (m.kind != RPC_REQUEST || f->c->era == MCP_IS_MODERN)
		return 0;
	buf_init(&b, f->ctx->arena, JSON_LEN_MAX);
	answer_question(f, &m, &b);
	return reply(f->c, f->ctx, buf_str(&b), err);
}

/* --- requests --- */

static struct jv *client_info(struct arena *arena)
{
	struct jv *info = jv_object(arena);

	jv_set_str(arena, info, "name", STR("stead"));
	jv_set_str(arena, info, "version", STR("0.1.0"));
	return info;
}

static struct jv *client_capabilities(const struct mcp_client *c, struct arena *arena)
{
	struct jv *v = jv_object(arena), *form = jv_object(arena);

	if (jv_get_bool(c->server, "sampling", false))
		jv_set(arena, v, "sampling", jv_object(arena));
	jv_set(arena, form, "form", jv_object(arena));
	if (jv_get_bool(c->server, "elicitation", false))
		jv_set(arena, v, "elicitation", form);
	return v;
}

/* What every modern request says about itself, and the token of progress. */
static void add_meta(struct flight *f, struct jv *params)
{
	struct arena *arena = f->ctx->arena;
	struct jv *meta = jv_object(arena);

	if (f->c->era == MCP_IS_MODERN) {
		jv_set_str(arena, meta, "io.modelcontextprotocol/protocolVersion", STR(MCP_MODERN));
		jv_set(arena, meta, "io.modelcontextprotocol/clientCapabilities", client_capabilities(f->c, arena));
		jv_set(arena, meta, "io.modelcontextprotocol/clientInfo", client_info(arena));
	}
	if (f->host && f->id && f->host->progress)
		jv_set_int(arena, meta, "progressToken", f->id);
	if (jv_count(meta))
		jv_set(arena, params, "_meta", meta);
}

static int exchange(struct flight *f, struct jv *params, struct err *err)
{
	struct arena *arena = f->ctx->arena;
	struct jv *v = jv_object(arena);
	struct buf b;

	jv_set_str(arena, v, "jsonrpc", STR("2.0"));
	if (f->id)
		jv_set_int(arena, v, "id", f->id);
	jv_set_str(arena, v, "method", f->method);
	if (params) {
		add_meta(f, params);
		jv_set(arena, v, "params", params);
	}
	f->params = params;
	buf_init(&b, arena, JSON_LEN_MAX);
	jv_write(&b, v);
	if (!mcp_is_stdio(f->c))
		return mcp_http_exchange(f, buf_str(&b), err);
	buf_char(&b, '\n');
	return mcp_stdio_exchange(f, buf_str(&b), err);
}

/* What a request is about, for the header of a modern one. */
static struct str subject(struct str method, const struct jv *params)
{
	if (str_is(method, "resources/read"))
		return jv_get_str(params, "uri");
	return str_is(method, "tools/call") || str_is(method, "prompts/get") ? jv_get_str(params, "name") : STR_NONE;
}

static struct ctx with_timeout(struct mcp_client *c, const struct ctx *ctx, const char *key)
{
	struct ctx own = *ctx;
	int64_t at = clock_monotonic_ns() + jv_get_int(c->server, key, 30000) * NS_PER_MS;

	if (!own.deadline_ns || own.deadline_ns > at)
		own.deadline_ns = at;
	return own;
}

/* The end of such a time, with the key of tools.json that sets it. */
static int tell_timeout(struct mcp_client *c, const char *key, struct err *err)
{
	bool is_start = strcmp(key, "initialization_timeout_ms") == 0;

	return err_set(err, ERR_TIMEOUT,
		       "the MCP server \"%.*s\" did not %s within %.6g s; %s in tools.json gives it more time",
		       STR_ARG(c->name), is_start ? "start" : "answer",
		       (double)jv_get_int(c->server, key, 30000) / 1000,
		       is_start ? "initializationTimeout" : "timeout");
}

/* One exchange; *f has how it went. */
static int request_once(struct flight *f, struct jv *params, const struct jv **ret_result, struct err *err)
{
	struct str why;
	int r;

	f->id = ++f->c->next_id;
	f->answer = NULL;
	f->name = subject(f->method, params);
	r = exchange(f, params, err);
	if (r)
		return r;
	*ret_result = jv_get(f->answer, "result");
	if (*ret_result)
		return 0;
	why = jv_get_str(jv_get(f->answer, "error"), "message");
	return err_set(err, ERR_INVALID, "the MCP server \"%.*s\" refused %.*s: %.*s", STR_ARG(f->c->name),
		       STR_ARG(f->method), STR_ARG(why.len ? utf8_first(why, 300) : STR("it gave no reason")));
}

/* Answers to what a modern server needs before it continues. */
static int give_input(struct flight *f, const struct jv *result, struct jv *params, struct err *err)
{
	struct arena *arena = f->ctx->arena;
	struct jv *responses = jv_object(arena);

	for (const struct jv_member *m = jv_first(jv_get(result, "inputRequests")); m; m = m->next) {
		struct str method = jv_get_str(m->value, "method");
		struct jv *answer = NULL;
		int r = ask_host(f, method, jv_get(m->value, "params"), &answer, err);

		if (r && str_is(method, "elicitation/create")) {
			answer = jv_object(arena);
			jv_set_str(arena, answer, "action", STR("cancel"));
		} else if (r) {
			return err_prefix(err, "the MCP server \"%.*s\" asks for %.*s", STR_ARG(f->c->name),
					  STR_ARG(utf8_first(method, 60)));
		}
		jv_set_key(arena, responses, m->key, answer);
	}
	jv_remove(params, "inputResponses");
	jv_remove(params, "requestState");
	if (jv_count(responses))
		jv_set(arena, params, "inputResponses", responses);
	if (jv_get(result, "requestState"))
		jv_set(arena, params, "requestState", (struct jv *)jv_get(result, "requestState"));
	return 0;
}

static int rounds(struct flight *f, struct jv *params, const struct jv **ret_result, struct err *err)
{
	for (int i = 0; i < ROUNDS_MAX; i++) {
		struct str type;
		int r = request_once(f, params, ret_result, err);

		if (r)
			return r;
		type = jv_get_str(*ret_result, "resultType");
		if (!type.len || str_is(type, "complete"))
			return 0;
		if (!str_is(type, "input_required"))
			return err_set(err, ERR_UNSUPPORTED,
				       "the MCP server \"%.*s\" gave a result of the unknown type \"%.*s\"",
				       STR_ARG(f->c->name), STR_ARG(utf8_first(type, 60)));
		r = give_input(f, *ret_result, params, err);
		if (r)
			return r;
	}
	return err_set(err, ERR_UNAVAILABLE, "the MCP server \"%.*s\" asked %d times for input without a result",
		       STR_ARG(f->c->name), ROUNDS_MAX);
}

/* --- the beginning --- */

static bool lists(const struct jv *list, struct str name)
{
	for (const struct jv_member *m = jv_first(list); m; m = m->next)
		if (str_eq(jv_str_of(m->value), name))
			return true;
	return false;
}

/* A copy that lives as long as the client. */
static struct jv *keep(struct mcp_client *c, const struct jv *v)
{
	struct jv *copy = NULL;
	struct buf text;
	struct err ignored;

	buf_init(&text, c->arena, SIZE_MAX / 4);
	jv_write(&text, v);
	return jv_parse(c->arena, buf_str(&text), &copy, &ignored) == 0 ? copy : jv_object(c->arena);
}

static void keep_capabilities(struct mcp_client *c, const struct jv *result)
{
	const struct jv *v = jv_get(result, "capabilities");

	if (!c->capabilities || !v || !jv_equal(v, c->capabilities))
		c->capabilities = v ? keep(c, v) : NULL;
}

/* True: the server speaks the modern era. `*ret` is an error that ends the attempt. */
static bool is_modern(struct mcp_client *c, struct ctx *ctx, int *ret, struct err *err)
{
	struct ctx own = *ctx;
	struct flight f = {.c = c, .ctx = &own, .method = STR("server/discover"), .limit_ns = ctx->deadline_ns};
	int64_t at = clock_monotonic_ns() + PROBE_MS * NS_PER_MS;
	const struct jv *result = NULL, *data;
	struct err over;
	int r;

	if (mcp_is_stdio(c) && own.deadline_ns > at)
		own.deadline_ns = at;
	c->era = MCP_IS_MODERN;
	r = request_once(&f, jv_object(ctx->arena), &result, err);
	data = jv_get(jv_get(f.answer, "error"), "data");
	if (r && f.answer && lists(jv_get(data, "supported"), STR(MCP_MODERN)))
		r = request_once(&f, jv_object(ctx->arena), &result, err);
	c->era = MCP_UNKNOWN;
	if (r == 0)
		keep_capabilities(c, result);
	*ret = 0;
	if (r == -ERR_UNAUTHENTICATED || r == -ERR_DENIED || (!f.answer && !f.status && !mcp_is_stdio(c)) ||
	    (r && ctx_check(ctx, &over) != 0))
		*ret = r; /* it cannot be reached, whatever it speaks */
	return r == 0 ? lists(jv_get(result, "supportedVersions"), STR(MCP_MODERN))
		      : jv_get_int(jv_get(f.answer, "error"), "code", 0) == RPC_BAD_VERSION &&
				lists(jv_get(data, "supported"), STR(MCP_MODERN));
}

static int shake_hands(struct mcp_client *c, struct ctx *ctx, struct err *err)
{
	struct flight f = {.c = c, .ctx = ctx, .method = STR("initialize"), .limit_ns = ctx->deadline_ns};
	struct flight done = {.c = c, .ctx = ctx, .method = STR("notifications/initialized")};
	struct jv *params = jv_object(ctx->arena);
	const struct jv *result;
	int r;

	c->era = MCP_IS_LEGACY;
	jv_set_str(ctx->arena, params, "protocolVersion", STR(MCP_LEGACY));
	jv_set(ctx->arena, params, "capabilities", client_capabilities(c, ctx->arena));
	jv_set(ctx->arena, params, "clientInfo", client_info(ctx->arena));
	r = request_once(&f, params, &result, err);
	if (r && !c->old && !mcp_is_stdio(c) && (f.status == 400 || f.status == 404 || f.status == 405)) {
		struct err ignored;

		if (old_sse_open(c, ctx, &ignored) != 0)
			return r;
		c->is_old = true;
		r = request_once(&f, params, &result, err);
	}
	if (r)
		return r;
	keep_capabilities(c, result);
	c->started = true;
	r = exchange(&done, NULL, err);
	if (r == 0 && !c->old && !mcp_is_stdio(c) &&
	    (jv_get_bool(c->server, "sampling", false) || jv_get_bool(c->server, "elicitation", false)))
		listener_open(c);
	return r;
}

static int greet(struct mcp_client *c, struct ctx *ctx, struct err *err)
{
	struct str pinned = jv_get_str(c->server, "protocolVersion");
	bool modern = false;
	int r = 0;

	if (c->is_old)
		r = old_sse_open(c, ctx, err);
	else if (!pinned.len && c->era == MCP_UNKNOWN)
		modern = is_modern(c, ctx, &r, err);
	else
		modern = c->era == MCP_UNKNOWN ? str_cmp(pinned, STR(MCP_MODERN)) >= 0 : c->era == MCP_IS_MODERN;
	if (r)
		return r;
	if (mcp_is_stdio(c) && c->pid == 0) /* the question about the era has ended it */
		r = mcp_process_start(c, err);
	if (r == 0 && !modern)
		return shake_hands(c, ctx, err);
	if (r == 0 && pinned.len && c->era == MCP_UNKNOWN)
		is_modern(c, ctx, &r, err); /* for what it offers */
	c->era = MCP_IS_MODERN;
	c->started = r == 0;
	return r;
}

static int start(struct mcp_client *c, struct ctx *ctx, struct err *err)
{
	struct ctx own = oauth_has_person(c) ? *ctx : with_timeout(c, ctx, "initialization_timeout_ms");
	struct http_opts opts = {.stall_ms = STALL_MS};
	int r = 0;

	if (c->started && mcp_process_is_gone(c))
		mcp_drop(c);
	if (c->started)
		return 0;
	if (mcp_is_stdio(c))
		r = mcp_process_start(c, err);
	else if (!c->http)
		c->http = http_new(&opts);
	if (r == 0)
		r = greet(c, &own, err);
	if (r == -ERR_TIMEOUT && own.deadline_ns != ctx->deadline_ns)
		r = tell_timeout(c, "initialization_timeout_ms", err);
	if (r) {
		mcp_drop(c);
		c->era = MCP_UNKNOWN;
	}
	return r;
}

static void set_host(struct mcp_client *c, const struct mcp_host *host)
{
	pthread_mutex_lock(&c->talk);
	c->host = host;
	pthread_mutex_unlock(&c->talk);
}

/* A request to a server that is started if need be; under the lock. A server that forgot the session, or ended before
   it could have done anything, gets it again, once; also one whose requests change nothing. */
static int request(struct mcp_client *c, struct ctx *ctx, const struct mcp_host *host, const char *method,
		   struct jv *params, bool may_repeat, const struct jv **ret_result, struct err *err)
{
	int r = 0;

	for (int attempt = 0; attempt < 2; attempt++) {
		struct ctx own;
		struct flight f = {
			.c = c, .ctx = &own, .host = host, .method = str_of(method), .limit_ns = ctx->deadline_ns};

		r = start(c, ctx, err);
		if (r)
			return r;
		own = with_timeout(c, ctx, "timeout_ms");
		set_host(c, host);
		r = rounds(&f, params, ret_result, err);
		set_host(c, NULL);
		if (r == -ERR_TIMEOUT && own.deadline_ns != ctx->deadline_ns)
			r = tell_timeout(c, "timeout_ms", err);
		if (!(r == -ERR_UNAVAILABLE && !c->started && (f.session_lost || !f.was_sent || may_repeat)))
			break;
	}
	return r;
}

int mcp_client_greet(struct mcp_client *c, struct ctx *ctx, struct err *err)
{
	int r;

	pthread_mutex_lock(&c->lock);
	r = start(c, ctx, err);
	pthread_mutex_unlock(&c->lock);
	return r;
}

/* --- lists --- */

/* All pages of a list. *ret_ttl: how long it counts as current, in ms; -1: the server does not say. */
static int list_all(struct mcp_client *c, struct ctx *ctx, const char *method, const char *key, struct jv **ret,
		    int64_t *ret_ttl, struct err *err)
{
	struct jv *all = jv_array(ctx->arena);
	const struct jv *cursor = NULL;
	struct str last;

	for (size_t page = 0; page < MCP_CLIENT_PAGES_MAX; page++) {
		struct jv *params = jv_object(ctx->arena);
		const struct jv *result;
		int r;

		if (cursor)
			jv_set(ctx->arena, params, "cursor", (struct jv *)cursor);
		r = request(c, ctx, NULL, method, params, true, &result, err);
		if (r)
			return r;
		for (const struct jv_member *m = jv_first(jv_get(result, key)); m; m = m->next)
			if (jv_count(all) < MCP_CLIENT_TOOLS_MAX)
				jv_push(ctx->arena, all, m->value);
		*ret_ttl = jv_get_int(result, "ttlMs", -1);
		last = jv_str_of(cursor);
		cursor = jv_get(result, "nextCursor");
		if (!cursor || cursor->type != JV_STR || (page && str_eq(jv_str_of(cursor), last)))
			break; /* a server that gives the same cursor again would do so for ever */
	}
	*ret = all;
	return 0;
}

static void add_tool(struct mcp_client *c, const struct jv *v)
{
	const struct jv *only = jv_get(c->server, "enableTools"), *hints = jv_get(v, "annotations");
	struct str name = jv_get_str(v, "name");
	const struct jv *copy;

	if (!name.len || c->count >= MCP_CLIENT_TOOLS_MAX || (jv_count(only) && !lists(only, name)) ||
	    lists(jv_get(c->server, "disableTools"), name) || !jv_get(v, "inputSchema") ||
	    (!mcp_is_stdio(c) && c->era == MCP_IS_MODERN && !mcp_header_marks_ok(jv_get(v, "inputSchema"))))
		return;
	copy = keep(c, v);
	ARENA_ROOM(c->arena, c->tools, c->count, c->cap);
	c->tools[c->count++] = (struct mcp_tool){.name = jv_get_str(copy, "name"),
						 .description = jv_get_str(copy, "description"),
						 .schema = jv_get(copy, "inputSchema"),
						 .is_idempotent = jv_get_bool(hints, "idempotentHint", false) ||
								  jv_get_bool(hints, "readOnlyHint", false)};
}

/* The list of before stays where it is: others may still look at it. */
static void take_tools(struct mcp_client *c, const struct jv *all, uint64_t hash)
{
	c->tools = NULL;
	c->count = c->cap = 0;
	for (const struct jv_member *m = jv_first(all); m; m = m->next)
		add_tool(c, m->value);
	c->tools_hash = hash;
	c->listings++;
}

static int list_tools(struct mcp_client *c, struct ctx *ctx, struct err *err)
{
	int64_t ttl = -1;
	struct jv *all;
	struct buf text;
	uint64_t hash;
	int r = list_all(c, ctx, "tools/list", "tools", &all, &ttl, err);

	if (r)
		return r;
	buf_init(&text, ctx->arena, SIZE_MAX / 4);
	jv_write(&text, all);
	hash = hash_u64(buf_str(&text), 0);
	if (!c->listed || (hash != c->tools_hash && c->listings < MCP_CLIENT_LISTINGS_MAX))
		take_tools(c, all, hash);
	c->listed = true;
	c->tools_changed = false;
	c->listed_ns = clock_monotonic_ns();
	c->fresh_ns = (ttl < 0 ? FRESH_MS : ttl < FRESH_MS_MOST ? ttl : FRESH_MS_MOST) * NS_PER_MS;
	return 0;
}

/* Over HTTP nobody listens between requests: a list that may change is read again when it is old. */
static bool is_stale(struct mcp_client *c, struct ctx *ctx)
{
	const struct jv *tools = jv_get(c->capabilities, "tools");

	if (mcp_is_stdio(c) && c->started)
		mcp_stdio_look(c, ctx);
	if (!c->listed || c->tools_changed)
		return true;
	return !mcp_is_stdio(c) && jv_get_bool(tools, "listChanged", false) &&
	       clock_monotonic_ns() - c->listed_ns > c->fresh_ns;
}

bool mcp_client_is_stale(struct mcp_client *c, struct ctx *ctx)
{
	bool stale;

	pthread_mutex_lock(&c->lock);
	stale = is_stale(c, ctx);
	pthread_mutex_unlock(&c->lock);
	return stale;
}

int mcp_client_tools(struct mcp_client *c, struct ctx *ctx, const struct mcp_tool **ret_tools, size_t *ret_count,
		     struct err *err)
{
	int r = 0;

	pthread_mutex_lock(&c->lock);
	if (is_stale(c, ctx))
		r = list_tools(c, ctx, err);
	*ret_tools = c->tools;
	*ret_count = c->count;
	pthread_mutex_unlock(&c->lock);
	return r;
}

bool mcp_client_offers(struct mcp_client *c, const char *what)
{
	bool offers;

	pthread_mutex_lock(&c->lock);
	offers = jv_get(c->capabilities, what) != NULL;
	pthread_mutex_unlock(&c->lock);
	return offers;
}

int mcp_client_list(struct mcp_client *c, struct ctx *ctx, const char *what, struct jv **ret, struct err *err)
{
	const char *key = str_is(str_of(what), "resources/templates") ? "resourceTemplates" : what;
	const char *method = arena_printf(ctx->arena, "%s/list", what).ptr;
	int64_t ttl;
	int r;

	pthread_mutex_lock(&c->lock);
	r = list_all(c, ctx, method, key, ret, &ttl, err);
	pthread_mutex_unlock(&c->lock);
	return r;
}

/* --- calls --- */

/* Text of one block. What is not text is named. */
static void add_block(struct buf *text, const struct jv *block)
{
	struct str type = jv_get_str(block, "type");
	const struct jv *resource = jv_get(block, "resource");

	if (text->len)
		buf_char(text, '\n');
	if (str_is(type, "text"))
		buf_add(text, jv_get_str(block, "text"));
	else if (str_is(type, "resource") && jv_get_str(resource, "text").ptr)
		buf_printf(text, "[%.*s]\n%.*s", STR_ARG(jv_get_str(resource, "uri")),
			   STR_ARG(jv_get_str(resource, "text")));
	else if (str_is(type, "resource_link"))
		buf_printf(text, "[%.*s: %.*s]", STR_ARG(jv_get_str(block, "name")), STR_ARG(jv_get_str(block, "uri")));
	else
		buf_printf(text, "[%.*s %.*s]", STR_ARG(utf8_first(type, 40)),
			   STR_ARG(utf8_first(jv_get_str(block, "mimeType"), 80)));
}

static struct str result_text(struct arena *arena, const struct jv *result)
{
	const struct jv *content = jv_get(result, "content");
	struct buf text;

	buf_init(&text, arena, JSON_LEN_MAX); /* of a whole answer: a large one is for the agent to store */
	for (const struct jv_member *m = jv_first(content); m && content->type == JV_ARRAY; m = m->next)
		add_block(&text, m->value);
	if (!text.len && jv_get(result, "structuredContent"))
		jv_write(&text, jv_get(result, "structuredContent"));
	if (!text.len && content && content->type != JV_ARRAY) /* not as the protocol says, but it may be useful */
		jv_write(&text, content);
	return text.len ? buf_str(&text) : STR("");
}

/* The first one; the text names them all. */
static void find_image(const struct jv *content, struct mcp_result *ret)
{
	for (const struct jv_member *m = jv_first(content); m && content->type == JV_ARRAY && !ret->image.len;
	     m = m->next)
		if (str_is(jv_get_str(m->value, "type"), "image")) {
			ret->image = jv_get_str(m->value, "data");
			ret->mime = jv_get_str(m->value, "mimeType");
		}
}

static bool is_repeatable(const struct mcp_client *c, struct str tool)
{
	for (size_t i = 0; i < c->count; i++)
		if (str_eq(c->tools[i].name, tool))
			return c->tools[i].is_idempotent;
	return false;
}

int mcp_client_call(struct mcp_client *c, struct ctx *ctx, struct str tool, const struct jv *args,
		    const struct mcp_host *host, struct mcp_result *ret, struct err *err)
{
	struct jv *params = jv_object(ctx->arena);
	const struct jv *result;
	int r;

	jv_set_str(ctx->arena, params, "name", tool);
	jv_set(ctx->arena, params, "arguments", args ? (struct jv *)args : jv_object(ctx->arena));
	pthread_mutex_lock(&c->lock);
	r = request(c, ctx, host, "tools/call", params, is_repeatable(c, tool), &result, err);
	pthread_mutex_unlock(&c->lock);
	if (r)
		return r;
	*ret = (struct mcp_result){.text = result_text(ctx->arena, result),
				   .is_error = jv_get_bool(result, "isError", false)};
	find_image(jv_get(result, "content"), ret);
	return 0;
}

int mcp_client_read(struct mcp_client *c, struct ctx *ctx, struct str uri, const struct mcp_host *host,
		    struct str *ret_text, struct err *err)
{
	struct jv *params = jv_object(ctx->arena);
	const struct jv *result;
	struct buf text;
	int r;

	jv_set_str(ctx->arena, params, "uri", uri);
	pthread_mutex_lock(&c->lock);
	r = request(c, ctx, host, "resources/read", params, true, &result, err);
	pthread_mutex_unlock(&c->lock);
	if (r)
		return r;
	buf_init(&text, ctx->arena, JSON_LEN_MAX);
	for (const struct jv_member *m = jv_first(jv_get(result, "contents")); m; m = m->next) {
		if (text.len)
			buf_char(&text, '\n');
		if (jv_get_str(m->value, "text").ptr)
			buf_add(&text, jv_get_str(m->value, "text"));
		else
			buf_printf(&text, "[%zu bytes of %.*s in base64]", jv_get_str(m->value, "blob").len,
				   STR_ARG(utf8_first(jv_get_str(m->value, "mimeType"), 80)));
	}
	*ret_text = text.len ? buf_str(&text) : STR("");
	return 0;
}

int mcp_client_prompt(struct mcp_client *c, struct ctx *ctx, struct str name, const struct jv *args,
		      const struct mcp_host *host, struct str *ret_text, struct err *err)
{
	struct jv *params = jv_object(ctx->arena);
	const struct jv *result;
	struct buf text;
	int r;

	jv_set_str(ctx->arena, params, "name", name);
	if (jv_count(args))
		jv_set(ctx->arena, params, "arguments", (struct jv *)args);
	pthread_mutex_lock(&c->lock);
	r = request(c, ctx, host, "prompts/get", params, true, &result, err);
	pthread_mutex_unlock(&c->lock);
	if (r)
		return r;
	buf_init(&text, ctx->arena, JSON_LEN_MAX);
	for (const struct jv_member *m = jv_first(jv_get(result, "messages")); m; m = m->next) {
		if (text.len)
			buf_char(&text, '\n');
		buf_printf(&text, "%.*s:", STR_ARG(utf8_first(jv_get_str(m->value, "role"), 20)));
		add_block(&text, jv_get(m->value, "content"));
	}
	*ret_text = text.len ? buf_str(&text) : STR("");
	return 0;
}

struct jv *mcp_form_values(struct arena *arena, const struct jv *schema, const struct jv *given)
{
	struct jv *values = jv_object(arena);

	for (const struct jv_member *m = jv_first(jv_get(schema, "properties")); m; m = m->next) {
		const struct jv *value = jv_get_key(given, m->key);

		if (!value)
			value = jv_get(m->value, "default");
		if (value)
			jv_set_key(arena, values, m->key, jv_copy(arena, value));
	}
	return values;
}

void mcp_client_destroy(struct mcp_client *c)
{
	if (!c)
		return;
	if (c->http && c->session)
		mcp_http_end(c);
	mcp_drop(c);
	oauth_destroy(c->oauth);
	http_destroy(c->http);
	pthread_mutex_destroy(&c->lock);
	pthread_mutex_destroy(&c->talk);
	arena_destroy(c->arena);
	free(c);
}
