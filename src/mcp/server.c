/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MCP over a byte stream, both eras in one process.
 *
 * The era is a property of each request, not of the connection: a request whose `_meta` names a protocol version is
 * modern (2026-07-28) and describes itself; any other belongs to the handshake revisions. So a client may probe with
 * server/discover and fall back to initialize on the same pipe, and no order of messages can confuse the server. The
 * only state of a legacy session is which of the older result forms it understands, and its subscriptions.
 */
#include <time.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/sigpipe.h"
#include "mcp/server.h"

#define META         "io.modelcontextprotocol/"
#define META_VERSION META "protocolVersion"
#define META_CAPS    META "clientCapabilities"
#define META_LEVEL   META "logLevel"
#define META_CLIENT  META "clientInfo"
#define MODERN       "2026-07-28"

static bool always(struct request *req)
{
	(void)req;
	return true;
}

static bool when_remote(struct request *req)
{
	return req->server->remote;
}

static const struct method methods[] = {
	{"tools/call", ERA_LEGACY | ERA_MODERN, tools_call_apart, method_tools_call},
	{"tools/list", ERA_LEGACY | ERA_MODERN, NULL, method_tools_list},
	{"resources/read", ERA_LEGACY | ERA_MODERN, always, method_resources_read},
	{"resources/list", ERA_LEGACY | ERA_MODERN, always, method_resources_list},
	{"resources/templates/list", ERA_LEGACY | ERA_MODERN, NULL, method_templates_list},
	{"prompts/list", ERA_LEGACY | ERA_MODERN, always, method_prompts_list},
	{"prompts/get", ERA_LEGACY | ERA_MODERN, always, method_prompts_get},
	{"completion/complete", ERA_LEGACY | ERA_MODERN, always, method_complete},
	{"server/discover", ERA_MODERN, NULL, method_discover},
	{"subscriptions/listen", ERA_MODERN, when_remote, method_listen},
	{"initialize", ERA_LEGACY, NULL, method_initialize},
	{"ping", ERA_LEGACY, NULL, method_empty},
	{"logging/setLevel", ERA_LEGACY, NULL, method_empty},
	{"resources/subscribe", ERA_LEGACY, when_remote, method_subscribe},
	{"resources/unsubscribe", ERA_LEGACY, NULL, method_unsubscribe},
};

static const struct method *method_find(struct str name)
{
	for (size_t i = 0; i < COUNT(methods); i++)
		if (str_is(name, methods[i].name))
			return &methods[i];
	return NULL;
}

struct ctx request_ctx(struct request *req)
{
	struct server *s = req->server;
	struct actor actor = workspace_actor(s->ws);
	int64_t deadline_ns = s->remote ? clock_monotonic_ns() + MCP_READ_SECONDS * NS_PER_S : 0;

	if (!actor.agent.len)
		actor.agent = str_of(req->client.name);
	if (!actor.session.len)
		actor.session = str_of(req->client.session);
	return (struct ctx){.arena = req->arena, .cancel = &req->cancel, .deadline_ns = deadline_ns, .actor = actor};
}

/* A name becomes part of paths and of lines for people: what is not a plain character is '-'. */
void client_set_name(struct client *client, const struct jv *info)
{
	struct str name = str_trim(jv_get_str(info, "name"));
	size_t n = 0;

	for (; n < name.len && n < CLIENT_NAME_MAX; n++) {
		char c = name.ptr[n];
		bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
				c == '-' || c == '_' || (c == '.' && n);

		client->name[n] = is_plain ? c : '-';
	}
	client->name[n] = '\0';
}

void client_set_session(struct client *client, uint64_t number)
{
	snprintf(client->session, sizeof(client->session), "mcp-%016llx", (unsigned long long)number);
}

/* Only a modern client knows these; without the version they are a modern request that lacks it. */
static bool is_modern(struct str method, const struct jv *meta)
{
	return jv_get(meta, META_VERSION) || jv_get(meta, META_CAPS) || str_is(method, "server/discover") ||
	       str_is(method, "subscriptions/listen");
}

static bool level_ok(const struct jv *level)
{
	static const char *const levels[] = {"debug", "info",     "notice", "warning",
					     "error", "critical", "alert",  "emergency"};

	if (!level)
		return true;
	for (size_t i = 0; i < COUNT(levels); i++)
		if (str_is(jv_str_of(level), levels[i]))
			return true;
	return false;
}

/* What a modern request must say about itself; answers it and returns false when it does not. */
static bool check_modern(struct request *req, const struct jv *meta)
{
	const struct jv *version = jv_get(meta, META_VERSION), *caps = jv_get(meta, META_CAPS);
	struct jv *data, *supported;

	if (!version || version->type != JV_STR) {
		reply_error(req, RPC_INVALID_PARAMS, NULL, "params._meta must have \"%s\", a string", META_VERSION);
		return false;
	}
	if (!caps || caps->type != JV_OBJECT) {
		reply_error(req, RPC_INVALID_PARAMS, NULL, "params._meta must have \"%s\", an object", META_CAPS);
		return false;
	}
	if (!str_is(version->u.s, MODERN)) {
		data = jv_object(req->arena);
		supported = jv_array(req->arena);
		jv_push(req->arena, supported, jv_str(req->arena, STR(MODERN)));
		jv_set(req->arena, data, "supported", supported);
		jv_set_str(req->arena, data, "requested", version->u.s);
		reply_error(req, RPC_BAD_VERSION, data,
			    "protocol version \"%.*s\" is not supported in this form; use %s, or initialize for an "
			    "older one",
			    (int)utf8_first(version->u.s, 40).len, version->u.s.ptr, MODERN);
		return false;
	}
	if (!level_ok(jv_get(meta, META_LEVEL))) {
		reply_error(req, RPC_INVALID_PARAMS, NULL, "\"%s\" must be a log level such as \"info\"", META_LEVEL);
		return false;
	}
	return true;
}

/* Finds the method; answers and returns false when there is none for this request. */
static bool resolve(struct request *req, struct str name)
{
	const struct jv *meta = jv_get(req->params, "_meta");
	bool modern = is_modern(name, meta);

	if (modern) {
		req->form = FORM_MODERN;
		if (!check_modern(req, meta))
			return false;
		client_set_name(&req->client, jv_get(meta, META_CLIENT));
	}
	req->method = method_find(name);
	if (req->method && (req->method->eras & (modern ? ERA_MODERN : ERA_LEGACY)))
		return true;
	reply_error(req, RPC_NO_METHOD, NULL, "method \"%.*s\" is not supported%s", (int)utf8_first(name, 100).len,
		    name.ptr, req->method ? " in this revision of the protocol" : "");
	return false;
}

static struct request *request_new(struct server *s, struct arena *arena, struct out *out,
				   const struct rpc_message *msg)
{
	struct request *req = ARENA_NEW(arena, struct request);

	*req = (struct request){.server = s,
				.out = out,
				.arena = arena,
				.id = msg->id,
				.params = msg->params,
				.form = s->legacy_form,
				.client = s->client};
	return req;
}

/* Returns the request when it is to run outside the lead. *ret_kept: it was answered and stays open. */
static struct request *handle_request(struct server *s, struct arena *arena, const struct rpc_message *msg,
				      bool *ret_kept)
{
	struct request *req = request_new(s, arena, &s->out, msg);

	if (flights_has(s, req->id)) {
		reply_error(req, RPC_INVALID_REQUEST, NULL, "the id of this request is still in use by an earlier one");
		return NULL;
	}
	if (!resolve(req, msg->method) || (s->opts.extra && s->opts.extra(req)))
		return NULL;
	if (req->method->runs_apart && req->method->runs_apart(req)) {
		if (flights_add(s, req))
			return req;
		reply_error(req, RPC_INTERNAL, NULL, "%d requests are already running; wait for one to end",
			    MCP_IN_FLIGHT_MAX);
		return NULL;
	}
	req->ret_kept = ret_kept;
	req->method->run(req);
	return NULL;
}

static void handle_notification(struct server *s, const struct rpc_message *msg)
{
	const struct jv *id = jv_get(msg->params, "requestId");

	if (!str_is(msg->method, "notifications/cancelled") || !id || (id->type != JV_STR && id->type != JV_INT))
		return;
	/* In this order: a listen request that is about to be a subscription sees one or the other. */
	flights_cancel(s, id);
	subs_cancel(s, id);
}

static void refuse_line(struct server *s, const struct jv *id, int code, struct str sentence)
{
	struct rpc_error error = {code, sentence, NULL};

	rpc_write_error(out_begin(&s->out), id, &error);
	out_end(&s->out, false);
}

void server_refuse_long_line(struct server *s)
{
	struct err err;

	err_set(&err, ERR_TOO_LARGE, "a message may have at most %zu bytes; this one was skipped", JSON_LEN_MAX);
	refuse_line(s, NULL, RPC_INVALID_REQUEST, str_of(err.msg));
}

static bool is_call(const struct rpc_message *msg)
{
	return msg->kind == RPC_REQUEST && str_is(msg->method, "tools/call");
}

bool server_take_quick(struct server *s, struct arena *arena, struct out *out, struct str line)
{
	struct rpc_message msg;
	struct request *req;
	bool kept = false;
	struct err err;

	if (rpc_parse(arena, line, &msg, &err) || !is_call(&msg) || flights_has(s, msg.id))
		return false;
	req = request_new(s, arena, out, &msg);
	if (!tools_call_is_quick(req))
		return false;
	req->ret_kept = &kept;
	if (resolve(req, msg.method))
		req->method->run(req);
	return true;
}

struct request *server_take(struct server *s, struct arena **arena, struct str line)
{
	struct request *req = NULL;
	struct rpc_message msg;
	bool kept = false;
	struct err err;
	int code;

	if (str_trim(line).len == 0)
		return NULL;
	code = rpc_parse(*arena, line, &msg, &err);
	if (code || !is_call(&msg))
		helper_stop(s);
	if (code)
		refuse_line(s, msg.id, code, str_of(err.msg));
	else if (msg.kind == RPC_REQUEST)
		req = handle_request(s, *arena, &msg, &kept);
	else if (msg.kind == RPC_NOTIFICATION)
		handle_notification(s, &msg);
	if (req || kept)
		*arena = NULL;
	else
		arena_reset(*arena);
	return req;
}

static void server_init(struct server *s, struct workspace *ws, struct toolset *set, const struct mcp_opts *opts,
			int in_fd, int out_fd)
{
	*s = (struct server){
		.ws = ws, .set = set, .opts = *opts, .remote = workspace_is_remote(ws), .legacy_form = FORM_TITLED};
	s->timeouts = jv_get(workspace_config(ws)->document, "tool_timeouts");
	rpc_reader_init(&s->reader, in_fd, JSON_LEN_MAX);
	out_init(&s->out, out_fd);
	pthread_mutex_init(&s->flights.lock, NULL);
	crew_init(s);
	helper_init(s);
	pthread_mutex_init(&s->order.lock, NULL);
	pthread_mutex_init(&s->subs.lock, NULL);
	pthread_mutex_init(&s->follower.lock, NULL);
	asks_init(&s->asks);
}

static void server_release(struct server *s)
{
	helper_release(s);
	follow_end(s);
	subs_release(s);
	out_flush(&s->out);
	for (size_t i = 0; i < FORMS; i++)
		tool_cache_release(&s->tools[i]);
	asks_release(&s->asks);
	pthread_mutex_destroy(&s->follower.lock);
	pthread_mutex_destroy(&s->subs.lock);
	pthread_mutex_destroy(&s->order.lock);
	crew_release(s);
	pthread_mutex_destroy(&s->flights.lock);
	out_release(&s->out);
	rpc_reader_release(&s->reader);
}

int mcp_serve_stdio(struct workspace *ws, struct toolset *set, const struct mcp_opts *opts, int in_fd, int out_fd,
		    struct err *err)
{
	struct server *s = xcalloc(1, sizeof(*s));
	struct sigpipe held;

	(void)err;
	sigpipe_hold(&held); /* the threads of this server take it over */
	server_init(s, ws, set, opts, in_fd, out_fd);
	client_set_session(&s->client, random_u64());
	crew_run(s);
	server_release(s);
	sigpipe_release(&held);
	free(s);
	return 0;
}

struct server *mcp_peer_new(struct workspace *ws, struct toolset *set, const struct mcp_opts *opts, mcp_push push,
			    void *arg)
{
	struct server *s = xcalloc(1, sizeof(*s));

	server_init(s, ws, set, opts, -1, -1);
	s->out.push = push;
	s->out.push_arg = arg;
	return s;
}

void mcp_peer_destroy(struct server *s)
{
	if (!s)
		return;
	server_release(s);
	free(s);
}

void mcp_peer_begin_session(struct server *s)
{
	client_set_session(&s->client, random_u64());
}

void mcp_peer_like(struct server *s, const struct server *other)
{
	s->legacy_form = other->legacy_form;
	s->client = other->client;
}

bool mcp_peer_take(struct server *s, struct arena *arena, const struct rpc_message *msg, int *ret_code)
{
	struct request *req = NULL;
	bool kept = false;

	s->error_code = 0;
	if (msg->kind == RPC_REQUEST)
		req = handle_request(s, arena, msg, &kept);
	else if (msg->kind == RPC_NOTIFICATION)
		handle_notification(s, msg);
	if (req) {
		req->ret_kept = &kept;
		req->method->run(req);
	}
	out_flush(&s->out);
	*ret_code = s->error_code;
	return kept;
}

void mcp_peer_cancel(struct server *s, const struct rpc_message *cancelled)
{
	if (cancelled)
		handle_notification(s, cancelled);
	else
		flights_cancel_all(s, false);
}
