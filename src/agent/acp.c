/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread reads; a prompt gets a thread of its own, because its turn asks the client for permissions while it runs
 * and the reader has to bring the answers. Everything that is sent is one write of whole lines, under one lock. All
 * updates of a turn are sent before the answer to its prompt.
 */
#include "agent/acp.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/agent_internal.h"
#include "base/clock.h"
#include "base/limits.h"
#include "home/sessions/sessions.h"
#include "stead.h"

#define VERSION        1
#define RPC_NOT_FOUND  (-32002)
#define SESSIONS_SHOWN 100
#define LOOK_NS        (50 * NS_PER_MS)

struct acp {
	const struct acp_opts *opts;
	int out_fd;
	pthread_mutex_t lock; /* of all that is below, and of writing */
	pthread_cond_t answered;
	struct acp_session *sessions;
	int64_t next_id;
	struct arena *arena; /* of the answers */
	struct jv *answers;  /* by the id of our request: null while it waits */
	atomic_bool is_ending;
};

/* --- sending --- */

static void send_line(struct acp *acp, const struct jv *message)
{
	struct buf line;
	struct str rest;

	buf_init(&line, NULL, JSON_LEN_MAX);
	jv_write(&line, message);
	buf_char(&line, '\n');
	rest = buf_str(&line);
	pthread_mutex_lock(&acp->lock);
	while (rest.len) {
		ssize_t n = write(acp->out_fd, rest.ptr, rest.len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			break; /* the client is gone; its end of the other pipe says so, too */
		rest = str_from(rest, (size_t)n);
	}
	pthread_mutex_unlock(&acp->lock);
	buf_release(&line);
}

static struct jv *envelope(struct arena *arena)
{
	struct jv *v = jv_object(arena);

	jv_set_str(arena, v, "jsonrpc", STR("2.0"));
	return v;
}

static void send_result(struct acp *acp, struct arena *arena, const struct jv *id, struct jv *result)
{
	struct jv *v = envelope(arena);

	jv_set(arena, v, "id", (struct jv *)id);
	jv_set(arena, v, "result", result);
	send_line(acp, v);
}

static void send_error(struct acp *acp, struct arena *arena, const struct jv *id, int code, struct str message)
{
	struct jv *v = envelope(arena), *error = jv_object(arena);

	jv_set_int(arena, error, "code", code);
	jv_set_str(arena, error, "message", message);
	jv_set(arena, v, "id", id ? (struct jv *)id : jv_null(arena));
	jv_set(arena, v, "error", error);
	send_line(acp, v);
}

void acp_update(struct acp_session *s, struct arena *arena, struct jv *update)
{
	struct jv *v = envelope(arena), *params = jv_object(arena);

	jv_set_str(arena, params, "sessionId", s->id);
	jv_set(arena, params, "update", update);
	jv_set_str(arena, v, "method", STR("session/update"));
	jv_set(arena, v, "params", params);
	send_line(s->acp, v);
}

/* --- our own requests --- */

const struct jv *acp_ask(struct acp_session *s, struct arena *arena, const char *method, struct jv *params,
			 int64_t wait_ns)
{
	struct acp *acp = s->acp;
	struct jv *v = envelope(arena);
	int64_t end_ns = clock_monotonic_ns() + wait_ns, now_ns;
	const struct jv *answer = NULL;
	struct str key;

	pthread_mutex_lock(&acp->lock);
	key = arena_printf(acp->arena, "%lld", (long long)++acp->next_id);
	jv_set_key(acp->arena, acp->answers, key, jv_null(acp->arena));
	pthread_mutex_unlock(&acp->lock);
	jv_set_str(arena, v, "id", key);
	jv_set_str(arena, v, "method", str_of(method));
	jv_set(arena, v, "params", params);
	send_line(acp, v);
	pthread_mutex_lock(&acp->lock);
	while (jv_is_null(jv_get_key(acp->answers, key)) && !atomic_load(&acp->is_ending) &&
	       !atomic_load(&s->cancel.requested) && (now_ns = clock_monotonic_ns()) < end_ns) {
		struct timespec until = clock_timespec(now_ns + LOOK_NS < end_ns ? now_ns + LOOK_NS : end_ns);

		pthread_cond_timedwait(&acp->answered, &acp->lock, &until);
	}
	answer = jv_get_key(acp->answers, key);
	answer = jv_is_null(answer) ? NULL : answer;
	jv_remove(acp->answers, key.ptr);
	pthread_mutex_unlock(&acp->lock);
	return answer; /* it lives as long as the connection */
}

/* A response of the client: its result, or false for an error. */
static void take_answer(struct acp *acp, struct str line)
{
	struct jv *v;
	struct err ignored;

	pthread_mutex_lock(&acp->lock);
	if (jv_parse(acp->arena, line, &v, &ignored) == 0 && jv_get_key(acp->answers, jv_get_str(v, "id"))) {
		const struct jv *result = jv_get(v, "result");

		jv_set_key(acp->arena, acp->answers, jv_get_str(v, "id"),
			   result ? (struct jv *)result : jv_bool(acp->arena, false));
		pthread_cond_broadcast(&acp->answered);
	}
	pthread_mutex_unlock(&acp->lock);
}

/* --- sessions --- */

static struct acp_session *session_find(struct acp *acp, struct str id)
{
	struct acp_session *s = acp->sessions;

	while (s && !str_eq(s->id, id))
		s = s->next;
	return s;
}

/* Waits for the turn that runs, if any. */
static void session_settle(struct acp_session *s)
{
	if (s->is_threaded)
		pthread_join(s->thread, NULL);
	s->is_threaded = false;
}

static void session_destroy(struct acp_session *s)
{
	atomic_store(&s->cancel.requested, true);
	session_settle(s);
	agent_close(s->agent);
	if (s->ws)
		workspace_close(s->ws);
	arena_destroy(s->arena);
	free(s);
}

/* The protocol's form of servers in that of tools.json. */
static struct jv *servers_from(struct arena *arena, const struct jv *list)
{
	struct jv *servers = jv_object(arena);

	for (const struct jv_member *m = jv_first(list); m; m = m->next) {
		struct jv *server = jv_object(arena), *pairs = jv_object(arena);
		bool is_http = jv_get_str(m->value, "url").len > 0;

		for (const struct jv_member *p = jv_first(jv_get(m->value, is_http ? "headers" : "env")); p;
		     p = p->next)
			jv_set_key(arena, pairs, jv_get_str(p->value, "name"),
				   jv_str(arena, jv_get_str(p->value, "value")));
		jv_set_str(arena, server, "transport", is_http ? STR("http") : STR("stdio"));
		jv_set_str(arena, server, is_http ? "url" : "command",
			   jv_get_str(m->value, is_http ? "url" : "command"));
		if (jv_get(m->value, "args"))
			jv_set(arena, server, "args", (struct jv *)jv_get(m->value, "args"));
		jv_set(arena, server, is_http ? "headers" : "env", pairs);
		jv_set_key(arena, servers, jv_get_str(m->value, "name"), server);
	}
	return servers;
}

static int session_open(struct acp *acp, struct str id, const struct jv *params, struct acp_session **ret,
			struct err *err)
{
	struct acp_session *s = xcalloc(1, sizeof(*s));
	struct agent_opts opts = acp->opts->agent;
	int r;

	s->acp = acp;
	s->arena = arena_new();
	s->id = arena_str(s->arena, id);
	s->cwd = arena_str(s->arena, jv_get_str(params, "cwd"));
	opts.servers = servers_from(s->arena, agent_keep(s->arena, jv_get(params, "mcpServers")));
	if (!s->cwd.len || s->cwd.ptr[0] != '/')
		r = err_set(err, ERR_INVALID, "cwd must be an absolute path");
	else
		r = acp->opts->open(acp->opts->arg, s->cwd, &s->ws, err);
	if (r == 0)
		r = agent_open(s->ws, &opts, &s->agent, err);
	if (r) {
		session_destroy(s);
		return r;
	}
	s->next = acp->sessions;
	acp->sessions = s;
	*ret = s;
	return 0;
}

static bool session_exists(struct acp_session *s, struct arena *arena)
{
	struct ctx ctx = {.arena = arena};
	struct session_page page;
	struct err ignored;

	return session_history(s->ws, &ctx, (struct session_ref){workspace_actor(s->ws).agent, s->id}, 0, 1, false,
			       &page, &ignored) == 0;
}

static void session_drop(struct acp *acp, struct acp_session *s)
{
	struct acp_session **at = &acp->sessions;

	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	session_destroy(s);
}

/* --- a prompt --- */

static const char *stop_reason(int r, const struct agent_result *result, const struct err *err)
{
	if (r == 0)
		return result->cut          ? "max_tokens"
		       : result->refused    ? "refusal"
		       : result->redirected ? "cancelled"
					    : "end_turn";
	return err->kind == ERR_CANCELLED ? "cancelled" : err->kind == ERR_QUOTA ? "max_turn_requests" : NULL;
}

static int take_turn(struct acp_session *s, struct ctx *ctx, struct agent_result *result, struct err *err)
{
	struct agent_turn turn = {.session = s->id, .event = acp_event, .approve = acp_approve, .arg = s};
	int r = acp_prompt_read(ctx->arena, s->prompt, &turn.text, (struct jv **)&turn.blocks, err);

	*result = (struct agent_result){0};
	if (r || acp_command(s, ctx, turn.text, err, &r))
		return r;
	r = agent_run(s->agent, ctx, &turn, result, err);
	for (const struct jv_member *m = r ? NULL : jv_first(result->waiting); m; m = m->next)
		acp_send_text(s, "agent_message_chunk",
			      arena_printf(ctx->arena,
					   "A call to %.*s is waiting for approval; send any message to continue after "
					   "the decision.",
					   STR_ARG(jv_get_str(m->value, "name"))));
	return r;
}

static void *prompt_main(void *arg)
{
	struct acp_session *s = arg;
	struct arena *arena = s->turn;
	struct ctx ctx = {.arena = arena, .cancel = &s->cancel};
	struct jv *answer = jv_object(arena);
	struct agent_result result;
	struct err err;
	const char *reason;
	int r = take_turn(s, &ctx, &result, &err);

	if (atomic_load(&s->cancel.requested))
		r = err_set(&err, ERR_CANCELLED, "cancelled");
	reason = stop_reason(r, &result, &err);
	pthread_mutex_lock(&s->acp->lock);
	s->is_busy = false;
	pthread_mutex_unlock(&s->acp->lock);
	if (reason) {
		jv_set_str(arena, answer, "stopReason", str_of(reason));
		send_result(s->acp, arena, s->request_id, answer);
	} else {
		send_error(s->acp, arena, s->request_id, RPC_INTERNAL, err_text(arena, &err));
	}
	arena_destroy(arena);
	return NULL;
}

static int begin_prompt(struct acp_session *s, const struct jv *id, const struct jv *params, struct err *err)
{
	bool is_busy;

	pthread_mutex_lock(&s->acp->lock);
	is_busy = s->is_busy;
	pthread_mutex_unlock(&s->acp->lock);
	if (is_busy)
		return err_set(err, ERR_CONFLICT,
			       "this session is still working on a prompt; cancel it or wait until it ends");
	session_settle(s);
	s->turn = arena_new();
	s->prompt = agent_keep(s->turn, jv_get(params, "prompt"));
	s->request_id = agent_keep(s->turn, id);
	atomic_store(&s->cancel.requested, false);
	s->is_busy = true;
	s->is_threaded = pthread_create(&s->thread, NULL, prompt_main, s) == 0;
	if (s->is_threaded)
		return 0;
	s->is_busy = false;
	arena_destroy(s->turn);
	return err_set(err, ERR_UNAVAILABLE, "a thread cannot be started");
}

/* --- methods --- */

struct rpc_call {
	struct acp *acp;
	struct arena *arena;
	const struct jv *id, *params;
	struct acp_session *session; /* of sessionId; NULL: it is not open here */
};

/* Gives a result, or an error; *ret NULL: the answer comes later. */
typedef int (*method_fn)(struct rpc_call *c, struct jv **ret, struct err *err);

static int do_initialize(struct rpc_call *c, struct jv **ret, struct err *err)
{
	static const char answer[] =
		"{\"agentCapabilities\":{\"loadSession\":true,\"promptCapabilities\":{\"image\":true,\"audio\":false,"
		"\"embeddedContext\":true},\"mcpCapabilities\":{\"http\":true,\"sse\":false},"
		"\"sessionCapabilities\":{\"list\":{},\"resume\":{},\"close\":{}}},\"authMethods\":[]}";
	struct jv *info = jv_object(c->arena);
	int r = jv_parse(c->arena, str_of(answer), ret, err);

	jv_set_str(c->arena, info, "name", STR("stead"));
	jv_set_str(c->arena, info, "title", STR("Stead"));
	jv_set_str(c->arena, info, "version", str_of(STEAD_VERSION));
	jv_set_int(c->arena, *ret, "protocolVersion", VERSION);
	jv_set(c->arena, *ret, "agentInfo", info);
	return r;
}

static int do_new(struct rpc_call *c, struct jv **ret, struct err *err)
{
	struct acp_session *s;
	int r = session_open(c->acp, arena_printf(c->arena, "acp-%.*s", STR_ARG(call_id_new(c->arena))), c->params, &s,
			     err);

	if (r)
		return r;
	*ret = jv_object(c->arena);
	jv_set_str(c->arena, *ret, "sessionId", s->id);
	send_result(c->acp, c->arena, c->id, *ret);
	*ret = NULL;
	acp_send_commands(s);
	return 0;
}

/* Opens a session that another connection began. */
static int take_up(struct rpc_call *c, struct err *err)
{
	struct str id = jv_get_str(c->params, "sessionId");
	int r = c->session ? 0 : session_open(c->acp, id, c->params, &c->session, err);

	if (r == 0 && !session_exists(c->session, c->arena)) {
		session_drop(c->acp, c->session);
		r = err_set(err, ERR_NOT_FOUND, "there is no session \"%.*s\" for this directory",
			    STR_ARG(utf8_first(id, 80)));
	}
	return r;
}

static int do_load(struct rpc_call *c, struct jv **ret, struct err *err)
{
	int r = take_up(c, err);

	if (r == 0)
		r = acp_replay(c->session, c->arena, err);
	*ret = jv_object(c->arena);
	return r;
}

static int do_resume(struct rpc_call *c, struct jv **ret, struct err *err)
{
	*ret = jv_object(c->arena);
	return take_up(c, err);
}

static void list_sessions(struct rpc_call *c, struct workspace *ws, struct str cwd, struct jv *out)
{
	struct ctx ctx = {.arena = c->arena};
	struct jv *list;
	struct err ignored;
	uint64_t total;

	if (session_list(ws, &ctx, workspace_actor(ws).agent, SESSIONS_SHOWN, &list, &total, &ignored) != 0)
		return;
	for (const struct jv_member *m = jv_first(list); m; m = m->next) {
		struct jv *v = jv_object(c->arena);

		if (!str_starts(jv_get_str(m->value, "session"), STR("acp-")))
			continue;
		jv_set_str(c->arena, v, "sessionId", jv_get_str(m->value, "session"));
		jv_set_str(c->arena, v, "cwd", cwd);
		if (jv_get_str(m->value, "title").len)
			jv_set_str(c->arena, v, "title", jv_get_str(m->value, "title"));
		jv_set_str(c->arena, v, "updatedAt", jv_get_str(m->value, "last_active_at"));
		jv_push(c->arena, out, v);
	}
}

static int do_list(struct rpc_call *c, struct jv **ret, struct err *err)
{
	struct str cwd = jv_get_str(c->params, "cwd");
	struct jv *out = jv_array(c->arena);
	struct workspace *ws;
	int r = 0;

	if (cwd.len) {
		r = c->acp->opts->open(c->acp->opts->arg, cwd, &ws, err);
		if (r)
			return r;
		list_sessions(c, ws, cwd, out);
		workspace_close(ws);
	} else if (c->acp->sessions) {
		list_sessions(c, c->acp->sessions->ws, c->acp->sessions->cwd, out);
	}
	*ret = jv_object(c->arena);
	jv_set(c->arena, *ret, "sessions", out);
	return 0;
}

static int do_close(struct rpc_call *c, struct jv **ret, struct err *err)
{
	(void)err;
	session_drop(c->acp, c->session);
	*ret = jv_object(c->arena);
	return 0;
}

static int do_prompt(struct rpc_call *c, struct jv **ret, struct err *err)
{
	*ret = NULL;
	return begin_prompt(c->session, c->id, c->params, err);
}

static const struct method {
	const char *name;
	method_fn run;
	bool needs_session;
} methods[] = {
	{"initialize", do_initialize, false}, {"session/new", do_new, false},   {"session/load", do_load, false},
	{"session/resume", do_resume, false}, {"session/list", do_list, false}, {"session/close", do_close, true},
	{"session/prompt", do_prompt, true},
};

static int code_of(const struct err *err)
{
	return err->kind == ERR_NOT_FOUND ? RPC_NOT_FOUND
	       : err->kind == ERR_INVALID ? RPC_INVALID_PARAMS
					  : RPC_INTERNAL;
}

static void answer(struct acp *acp, struct arena *arena, const struct rpc_message *msg)
{
	struct rpc_call c = {.acp = acp, .arena = arena, .id = msg->id, .params = msg->params};
	const struct method *m = NULL;
	struct jv *result = NULL;
	struct err err;

	for (size_t i = 0; i < COUNT(methods) && !m; i++)
		if (str_is(msg->method, methods[i].name))
			m = &methods[i];
	c.session = session_find(acp, jv_get_str(msg->params, "sessionId"));
	if (!m)
		send_error(acp, arena, msg->id, RPC_NO_METHOD, STR("there is no such method"));
	else if (m->needs_session && !c.session)
		send_error(acp, arena, msg->id, RPC_NOT_FOUND,
			   STR("there is no such session; open it with session/new, session/load or session/resume"));
	else if (m->run(&c, &result, &err) != 0)
		send_error(acp, arena, msg->id, code_of(&err), err_text(arena, &err));
	else if (result)
		send_result(acp, arena, msg->id, result);
}

static void take_notification(struct acp *acp, const struct rpc_message *msg)
{
	struct acp_session *s = session_find(acp, jv_get_str(msg->params, "sessionId"));

	if (s && str_is(msg->method, "session/cancel"))
		atomic_store(&s->cancel.requested, true);
}

static void take_line(struct acp *acp, struct str line)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct rpc_message msg;
	struct err err;
	int code = rpc_parse(arena, line, &msg, &err);

	if (code)
		send_error(acp, arena, msg.id, code, err_text(arena, &err));
	else if (msg.kind == RPC_REQUEST)
		answer(acp, arena, &msg);
	else if (msg.kind == RPC_NOTIFICATION)
		take_notification(acp, &msg);
	else
		take_answer(acp, line);
}

/* --- the connection --- */

static void serve(struct acp *acp, int in_fd)
{
	struct rpc_reader reader;
	enum rpc_got got;
	struct str line;

	rpc_reader_init(&reader, in_fd, JSON_LEN_MAX);
	while ((got = rpc_reader_next(&reader, &line)) != RPC_END) {
		if (got == RPC_LINE && str_trim(line).len)
			take_line(acp, line);
		else if (got == RPC_NEED_MORE)
			rpc_reader_fill(&reader);
	}
	rpc_reader_release(&reader);
}

int acp_serve(const struct acp_opts *opts, int in_fd, int out_fd, struct err *err)
{
	struct acp acp = {.opts = opts, .out_fd = out_fd, .arena = arena_new()};
	pthread_condattr_t attr;

	(void)err;
	acp.answers = jv_object(acp.arena);
	pthread_mutex_init(&acp.lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&acp.answered, &attr);
	pthread_condattr_destroy(&attr);
	serve(&acp, in_fd);
	atomic_store(&acp.is_ending, true);
	while (acp.sessions)
		session_drop(&acp, acp.sessions);
	pthread_cond_destroy(&acp.answered);
	pthread_mutex_destroy(&acp.lock);
	arena_destroy(acp.arena);
	return 0;
}
