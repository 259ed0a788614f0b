/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conversations over HTTP. A turn may take minutes and waits most of the time, so it has a thread of its own and no
 * worker; the request is parked, or answered with a stream. A client that goes away ends only its stream: the turn
 * continues, and its answer is in the session. A client chooses neither the model nor its address: those are
 * agent.yaml's, since they decide where keys and conversations are sent. A replay (replays.c) runs the same way; nobody
 * but its client has any use for it, so it ends with the client.
 */
#include "home/sessions/sessions.h"
#include "agent/agent.h"
#include "agent/replay.h"
#include "base/clock.h"
#include "base/hex.h"
#include "base/limits.h"
#include "server/host_tools.h"
#include "server/server_internal.h"

#define PENDING_MAX   (4 * MIB) /* bytes that a client of a stream may be behind */
#define LIMIT_DEFAULT 50
#define LIMIT_MAX     1000
#define STACK_BYTES   (512 * KIB)
#define STOP_S        10
#define LOOK_MS       500 /* how soon a request by another server to stop a turn is seen */

struct turns {
	pthread_mutex_t lock;
	pthread_cond_t none;
	size_t count;
	struct web_turn *running;
	uint64_t numbers; /* given to turns so far */
	pthread_t watch;  /* looks for requests to stop a turn; begins with the first turn */
	pthread_cond_t wake;
	bool watches, ended;
};

/* One turn, or a replay of several. */
struct web_turn {
	struct web_turn *next, **slot; /* of those that run */
	uint64_t number;
	struct cancel *cancel; /* `own`, or that of the exchange */
	struct cancel own;
	struct serve *serve;
	struct tenant *tenant;
	struct arena *arena;
	struct str session, text, key;
	struct str board;        /* of_thread: that it is on */
	struct stream *stream;   /* or: */
	struct exchange *x;      /* that waits for the answer; NULL: nobody does */
	struct host_tools *host; /* the client's tools; NULL: it has none */
	bool of_thread;          /* the session is a thread of a board, in the dialect that has its files */
	/* Of a replay: it runs in a fork, so it is not a turn of its session. In the arena of the exchange. */
	const struct replay_opts *replay;
};

struct turns *turns_new(void)
{
	struct turns *turns = xcalloc(1, sizeof(*turns));

	pthread_mutex_init(&turns->lock, NULL);
	pthread_cond_init(&turns->none, NULL);
	pthread_cond_init(&turns->wake, NULL);
	return turns;
}

/* --- requests of other servers --- */

/* A turn as the watching thread remembers it while it holds no lock. */
struct seen_turn {
	uint64_t number;
	struct tenant *tenant;
	struct str session;
};

/* Those that run; each tenant is shared. The lock is held. */
static size_t list_running(struct turns *turns, struct arena *arena, struct seen_turn **ret)
{
	size_t n = 0;

	*ret = ARENA_ARRAY(arena, struct seen_turn, turns->count + 1);
	for (struct web_turn *t = turns->running; t && n < turns->count; t = t->next)
		if (!t->replay)
			(*ret)[n++] = (struct seen_turn){t->number, tenants_share(t->serve->tenants, t->tenant),
							 arena_str(arena, t->session)};
	return n;
}

static void cancel_number(struct turns *turns, uint64_t number)
{
	pthread_mutex_lock(&turns->lock);
	for (struct web_turn *t = turns->running; t; t = t->next)
		if (t->number == number)
			atomic_store(&t->cancel->requested, true);
	pthread_mutex_unlock(&turns->lock);
}

static void look_at(struct turns *turns, struct serve *serve, struct arena *arena, const struct seen_turn *seen)
{
	struct ctx ctx = {.arena = arena, .deadline_ns = clock_monotonic_ns() + SERVER_OPEN_MS * NS_PER_MS};

	if (agent_stop_asked(seen->tenant->ws, &ctx, seen->session))
		cancel_number(turns, seen->number);
	tenants_put(serve->tenants, seen->tenant);
}

static void *watch_turns(void *arg)
{
	struct turns *turns = arg;
	ARENA_SCOPE struct arena *arena = arena_new();

	pthread_mutex_lock(&turns->lock);
	while (!turns->ended) {
		struct timespec until = clock_timespec(clock_real_ns() + LOOK_MS * NS_PER_MS);
		struct serve *serve = turns->running ? turns->running->serve : NULL;
		struct seen_turn *seen;
		size_t count;

		if (!serve) {
			pthread_cond_wait(&turns->wake, &turns->lock);
			continue;
		}
		count = list_running(turns, arena, &seen);
		pthread_mutex_unlock(&turns->lock);
		for (size_t i = 0; i < count; i++)
			look_at(turns, serve, arena, &seen[i]);
		arena_reset(arena);
		pthread_mutex_lock(&turns->lock);
		if (!turns->ended)
			pthread_cond_timedwait(&turns->wake, &turns->lock, &until);
	}
	pthread_mutex_unlock(&turns->lock);
	return NULL;
}

/* --- turns --- */

void turns_end(struct turns *turns)
{
	pthread_mutex_lock(&turns->lock);
	turns->ended = true;
	for (struct web_turn *t = turns->running; t; t = t->next)
		atomic_store(&t->cancel->requested, true);
	while (turns->count)
		pthread_cond_wait(&turns->none, &turns->lock);
	pthread_cond_broadcast(&turns->wake);
	pthread_mutex_unlock(&turns->lock);
	if (turns->watches)
		pthread_join(turns->watch, NULL);
	turns->watches = false;
}

void turns_destroy(struct turns *turns)
{
	if (!turns)
		return;
	pthread_mutex_destroy(&turns->lock);
	pthread_cond_destroy(&turns->none);
	pthread_cond_destroy(&turns->wake);
	free(turns);
}

static bool turns_begin(struct turns *turns)
{
	bool may;

	pthread_mutex_lock(&turns->lock);
	may = !turns->ended && turns->count < SERVER_TURNS_MAX;
	turns->count += may;
	pthread_mutex_unlock(&turns->lock);
	return may;
}

/* From here on it can be cancelled. */
static void turns_enter(struct turns *turns, struct web_turn *t)
{
	pthread_mutex_lock(&turns->lock);
	t->next = turns->running;
	t->slot = &turns->running;
	if (t->next)
		t->next->slot = &t->next;
	turns->running = t;
	t->number = ++turns->numbers;
	if (turns->ended)
		atomic_store(&t->cancel->requested, true);
	else if (!turns->watches) /* without it, only this server can stop its turns */
		turns->watches = pthread_create(&turns->watch, NULL, watch_turns, turns) == 0;
	else if (!t->next)
		pthread_cond_signal(&turns->wake);
	pthread_mutex_unlock(&turns->lock);
}

static void turns_leave(struct turns *turns, struct web_turn *t)
{
	pthread_mutex_lock(&turns->lock);
	*t->slot = t->next;
	if (t->next)
		t->next->slot = t->slot;
	pthread_cond_broadcast(&turns->none);
	pthread_mutex_unlock(&turns->lock);
}

static struct web_turn *turns_find(struct turns *turns, const struct tenant *tenant, struct str session)
{
	for (struct web_turn *t = turns->running; t; t = t->next)
		if (!t->replay && tenant_is(t->tenant, tenant) && str_eq(t->session, session))
			return t;
	return NULL;
}

bool turns_cancel(struct turns *turns, const struct tenant *tenant, struct str session, int64_t until_ns)
{
	struct timespec until = clock_timespec(until_ns);
	struct web_turn *t;
	bool found = false;

	pthread_mutex_lock(&turns->lock);
	while ((t = turns_find(turns, tenant, session)) && clock_real_ns() < until_ns) {
		found = true;
		atomic_store(&t->cancel->requested, true);
		pthread_cond_timedwait(&turns->none, &turns->lock, &until);
	}
	pthread_mutex_unlock(&turns->lock);
	return found;
}

int exchange_stop_turn(struct exchange *x, struct str session, bool *ret_ran, struct err *err)
{
	struct web_call *call = call_of(x);
	struct ctx ctx = exchange_ctx(x);
	int r = 0;

	*ret_ran = turns_cancel(call->serve->turns, call->tenant, session, clock_real_ns() + STOP_S * NS_PER_S);
	if (*ret_ran)
		return 0;
	ctx.deadline_ns = clock_monotonic_ns() + STOP_S * NS_PER_S;
	r = agent_stop(call->tenant->ws, &ctx, session, ret_ran, err);
	if (r == -ERR_TIMEOUT)
		return err_set(
			err, ERR_CONFLICT,
			"the server that runs the turn did not end it within %d s; try again, or send a new message",
			STOP_S);
	return r;
}

bool turns_has(struct turns *turns, const struct tenant *tenant, struct str session)
{
	bool has;

	pthread_mutex_lock(&turns->lock);
	has = turns_find(turns, tenant, session) != NULL;
	pthread_mutex_unlock(&turns->lock);
	return has;
}

static void turns_finish(struct turns *turns)
{
	pthread_mutex_lock(&turns->lock);
	turns->count--;
	pthread_cond_broadcast(&turns->none);
	pthread_mutex_unlock(&turns->lock);
}

static void send_event(struct web_turn *t, const char *name, const struct jv *value)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct buf b;

	buf_init(&b, arena, JSON_LEN_MAX);
	buf_printf(&b, "event: %s\ndata: ", name);
	jv_write(&b, value);
	buf_lit(&b, "\n\n");
	stream_add(t->stream, buf_str(&b)); /* a client that is gone misses it; the session has it */
}

static void take_event(void *arg, const struct agent_event *event)
{
	ARENA_SCOPE struct arena *arena = arena_new();

	send_event(arg, agent_event_name(event), agent_event_value(arena, event));
}

static void tell_call(void *arg, const struct jv *call)
{
	struct web_turn *t = arg;

	if (t->stream)
		send_event(t, "host_call", call);
}

static void give_stream(struct web_turn *t, int r, const struct agent_result *result, const struct err *err)
{
	struct jv *problem = jv_object(t->arena);

	if (r == 0) {
		send_event(t, "end", agent_result_value(t->arena, result));
	} else {
		jv_set_int(t->arena, problem, "status", http_status(err->kind));
		jv_set_str(t->arena, problem, "kind", str_of(err_kind_name(err->kind)));
		jv_set_str(t->arena, problem, "detail", err_text(t->arena, err));
		send_event(t, "error", problem);
	}
	stream_end(t->stream, false);
	stream_release(t->stream);
}

/* What became of the run of a thread, for those who look at it later. */
static void note_thread(struct web_turn *t, int r, const struct agent_result *result, const struct err *err)
{
	struct ctx ctx = {.arena = t->arena, .actor = workspace_actor(t->tenant->ws)};
	struct str status = STR("idle");
	struct err ignored;

	if (r == -ERR_CONFLICT) /* another process runs it, and says how it goes */
		return;
	if (r)
		status = r == -ERR_CANCELLED ? STR("interrupted") : STR("failed");
	else if (result->waiting)
		status = STR("waiting_for_input");
	board_thread_note(t->tenant->ws, &ctx, t->board, t->session, status, r ? err_text(t->arena, err) : STR(""),
			  &ignored);
}

/* A provider that refuses the key of the workspace is not about the token of the client. */
static int blame_provider(int r, struct err *err)
{
	if (r != -ERR_UNAUTHENTICATED)
		return r;
	err->kind = ERR_UNAVAILABLE;
	return -ERR_UNAVAILABLE;
}

/* What runs is over: its thread ends. */
static void turn_end(struct web_turn *t)
{
	struct serve *serve = t->serve;

	host_tools_release(t->host);
	tenants_put(serve->tenants, t->tenant);
	arena_destroy(t->arena);
	turns_finish(serve->turns);
}

static void *replay_run(void *arg)
{
	struct web_turn *t = arg;
	struct ctx ctx = {.arena = t->arena, .cancel = t->cancel, .actor = workspace_actor(t->tenant->ws)};
	struct jv *report;
	struct err err;
	int r;

	turns_enter(t->serve->turns, t);
	r = blame_provider(agent_replay(t->tenant->ws, &ctx, t->replay, &report, &err), &err);
	turns_leave(t->serve->turns, t);
	if (r)
		answer_error(t->x, &err);
	else
		answer_json(t->x, 200, report);
	exchange_resume(t->x);
	turn_end(t);
	return NULL;
}

static void *turn_run(void *arg)
{
	struct web_turn *t = arg;
	struct serve *serve = t->serve;
	struct ctx ctx = {.arena = t->arena, .cancel = t->cancel};
	struct agent_turn turn = {.session = t->session,
				  .text = t->text,
				  .key = t->key,
				  .event = t->stream ? take_event : NULL,
				  .arg = t};
	struct agent_opts opts = {0};
	struct agent_result result;
	struct agent *agent = NULL;
	struct err err;
	int r;

	host_tools_offer(t->host, &opts);
	if (t->of_thread)
		opts.dialect = STR("wacht");
	turns_enter(serve->turns, t);
	r = agent_open(t->tenant->ws, &opts, &agent, &err);
	if (r == 0)
		r = agent_run(agent, &ctx, &turn, &result, &err);
	r = blame_provider(r, &err);
	if (t->of_thread) /* before it leaves: who sees that it ended sees how */
		note_thread(t, r, &result, &err);
	turns_leave(serve->turns, t);
	if (t->stream) {
		give_stream(t, r, &result, &err);
	} else if (t->x) {
		if (r)
			answer_error(t->x, &err);
		else
			answer_json(t->x, 200, agent_result_value(t->x->arena, &result));
		exchange_resume(t->x);
	}
	agent_close(agent);
	turn_end(t);
	return NULL;
}

static bool start_thread(struct web_turn *t, void *(*run)(void *arg))
{
	pthread_attr_t attr;
	pthread_t thread;
	bool started;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	started = pthread_create(&thread, &attr, run, t) == 0;
	pthread_attr_destroy(&attr);
	return started;
}

static void ignore_gone(void *arg)
{
	(void)arg; /* the turn continues */
}

static struct web_turn *turn_new(struct exchange *x, struct str session, struct str text)
{
	struct web_call *call = call_of(x);
	struct arena *arena = arena_new();
	struct web_turn *t = ARENA_NEW(arena, struct web_turn);

	*t = (struct web_turn){.serve = call->serve,
			       .tenant = tenants_share(call->serve->tenants, call->tenant),
			       .arena = arena,
			       .session = arena_str(arena, session),
			       .text = arena_str(arena, text),
			       .x = x};
	t->cancel = &t->own;
	return t;
}

static void start_turn(struct exchange *x, struct str session, struct str text, const struct jv *tools)
{
	struct stream_opts opts = {.size = UINT64_MAX, .pending_max = PENDING_MAX, .gone = ignore_gone};
	bool streams = str_find(exchange_header(x, "Accept"), STR("text/event-stream"), 0) != SIZE_MAX;
	struct serve *serve = x->arg;
	struct web_turn *t;
	struct err err;

	if (!turns_begin(serve->turns)) {
		err_set(&err, ERR_UNAVAILABLE, "too many turns are running; try again later");
		answer_error(x, &err);
		return;
	}
	t = turn_new(x, session, text);
	t->key = arena_str(t->arena, exchange_header(x, "Idempotency-Key"));
	if (tools && host_tools_new(t->arena, tools, tell_call, t, &t->host, &err) != 0) {
		turn_end(t);
		answer_error(x, &err);
		return;
	}
	if (streams)
		answer_event_stream(x, &opts, &t->stream);
	else
		exchange_park(x);
	if (start_thread(t, turn_run))
		return;
	turn_run(t); /* no thread is to be had: this one does it */
}

void start_replay(struct exchange *x, const struct replay_opts *opts)
{
	struct serve *serve = x->arg;
	struct web_turn *t;
	struct err err;

	if (!turns_begin(serve->turns)) {
		err_set(&err, ERR_UNAVAILABLE, "too many turns are running; try again later");
		answer_error(x, &err);
		return;
	}
	t = turn_new(x, opts->session, STR_NONE);
	t->replay = opts;
	t->cancel = &x->cancel;
	exchange_park_for_client(x);
	if (!start_thread(t, replay_run))
		replay_run(t);
}

static void answer_queued(struct exchange *x)
{
	struct jv *v = jv_object(x->arena);

	jv_set_str(x->arena, v, "status", STR("queued"));
	answer_json(x, 200, v);
}

void start_thread_turn(struct exchange *x, struct str thread, struct str text)
{
	struct stream_opts opts = {.size = UINT64_MAX, .pending_max = PENDING_MAX, .gone = ignore_gone};
	bool streams = str_find(exchange_header(x, "Accept"), STR("text/event-stream"), 0) != SIZE_MAX;
	struct web_call *call = call_of(x);
	struct ctx ctx = exchange_change_ctx(x);
	struct web_turn *t;
	struct err err = {0};
	bool runs = turns_has(call->serve->turns, call->tenant, thread);
	int r = runs ? 0 : agent_turn_runs(call->tenant->ws, &ctx, thread, &runs, &err);

	if (r == 0 && runs)
		r = err_set(&err, ERR_CONFLICT, "the thread %.*s is running; wait until it is idle, or cancel it",
			    STR_ARG(thread));
	else if (r == 0 && !turns_begin(call->serve->turns))
		r = err_set(&err, ERR_UNAVAILABLE, "too many turns are running; try again later");
	if (r) {
		answer_error(x, &err);
		return;
	}
	t = turn_new(x, thread, text);
	if (board_thread_note(call->tenant->ws, &ctx, call->board, thread, STR("running"), STR(""), &err) != 0) {
		turn_end(t);
		answer_error(x, &err);
		return;
	}
	t->x = NULL;
	t->of_thread = true;
	t->board = arena_str(t->arena, call->board);
	if (streams)
		answer_event_stream(x, &opts, &t->stream);
	else
		answer_queued(x);
	if (!start_thread(t, turn_run))
		turn_run(t);
}

void run_message(struct exchange *x)
{
	struct str session = percent_decode(x->arena, call_of(x)->rest), text;
	struct jv *body;
	struct err err;
	int r = body_json(x, &body, &err);

	text = r ? STR_NONE : str_trim(jv_get_str(body, "text"));
	for (const struct jv_member *m = r ? NULL : jv_first(body); m && r == 0; m = m->next)
		if (!str_is(m->key, "tools") && (!str_is(m->key, "text") || m->value->type != JV_STR))
			r = err_set(&err, ERR_INVALID,
				    "the body must be {\"text\": \"…\", \"tools\": […]}, and nothing else");
	if (r == 0 && (!session.len || session.len > PATH_NAME_MAX))
		r = err_set(&err, ERR_INVALID, "the name of a session must have 1 to %zu bytes", PATH_NAME_MAX);
	if (r == 0)
		r = agent_key_check(exchange_header(x, "Idempotency-Key"), &err);
	if (r)
		answer_error(x, &err);
	else
		start_turn(x, session, text, jv_get(body, "tools"));
}

int exchange_session(struct exchange *x, struct session_ref *ret, struct err *err)
{
	bool found;

	*ret = (struct session_ref){.session = percent_decode(x->arena, call_of(x)->rest)};
	return query_get(x->arena, x->query, "agent", &ret->agent, &found, err);
}

void run_messages(struct exchange *x)
{
	struct web_call *call = call_of(x);
	struct session_ref ref;
	struct ctx ctx = exchange_ctx(x);
	uint64_t limit = LIMIT_DEFAULT, before = 0;
	struct jv *v = jv_object(x->arena);
	struct session_page page;
	struct err err;
	int r = query_number(x->arena, x->query, "limit", LIMIT_MAX, &limit, &err);

	if (r == 0)
		r = query_number(x->arena, x->query, "before", INT64_MAX, &before, &err);
	if (r == 0)
		r = exchange_session(x, &ref, &err);
	if (r == 0)
		r = session_history(call->tenant->ws, &ctx, ref, before, limit ? limit : 1, false, &page, &err);
	if (r) {
		answer_error(x, &err);
		return;
	}
	jv_set(x->arena, v, "entries", page.entries);
	jv_set(x->arena, v, "before", page.before ? jv_int(x->arena, (int64_t)page.before) : jv_null(x->arena));
	answer_json(x, 200, v);
}

void run_sessions(struct exchange *x)
{
	struct ctx ctx = exchange_ctx(x);
	struct jv *v = jv_object(x->arena), *list;
	uint64_t limit = LIMIT_DEFAULT, total;
	struct err err;
	int r = query_number(x->arena, x->query, "limit", LIMIT_MAX, &limit, &err);

	if (r == 0)
		r = session_list(call_of(x)->tenant->ws, &ctx, STR_NONE, limit ? limit : 1, &list, &total, &err);
	if (r) {
		answer_error(x, &err);
		return;
	}
	jv_set(x->arena, v, "sessions", list);
	jv_set_int(x->arena, v, "total", (int64_t)total);
	answer_json(x, 200, v);
}

static void answer_approvals(struct exchange *x, struct ctx *ctx, struct str session)
{
	struct workspace *ws = call_of(x)->tenant->ws;
	struct jv *v = jv_object(x->arena), *list;
	struct err err;

	if (agent_approvals(ws, ctx, STR_NONE, session, &list, &err) != 0) {
		answer_error(x, &err);
		return;
	}
	jv_set(x->arena, v, "approvals", list);
	answer_json(x, 200, v);
}

void run_approvals(struct exchange *x)
{
	struct ctx ctx = exchange_ctx(x);

	answer_approvals(x, &ctx, percent_decode(x->arena, call_of(x)->rest));
}

void run_approval_decide(struct exchange *x)
{
	struct web_call *call = call_of(x);
	struct ctx ctx = exchange_ctx(x);
	struct agent_decision decision = {.session = percent_decode(x->arena, call->rest), .by = call->user};
	struct jv *body;
	struct str word;
	struct err err;
	int r = body_json(x, &body, &err);

	word = r ? STR_NONE : jv_get_str(body, "decision");
	decision.id = r ? STR_NONE : jv_get_str(body, "id");
	decision.approves = str_is(word, "approve");
	if (r == 0 && !decision.approves && !str_is(word, "deny"))
		r = err_set(&err, ERR_INVALID,
			    "the body must be {\"id\": \"…\", \"decision\": \"approve\"} or \"deny\"");
	if (r == 0)
		r = agent_decide(call->tenant->ws, &ctx, &decision, &err);
	if (r)
		answer_error(x, &err);
	else
		answer_approvals(x, &ctx, decision.session);
}

/* The turn of the session that runs here, with the lock held; only the server that runs it has its calls. */
static struct host_tools *host_of(struct exchange *x, struct turns *turns)
{
	struct web_turn *t = turns_find(turns, call_of(x)->tenant, percent_decode(x->arena, call_of(x)->rest));

	return t ? t->host : NULL;
}

void run_host_calls(struct exchange *x)
{
	struct turns *turns = call_of(x)->serve->turns;
	struct jv *v = jv_object(x->arena), *list;

	pthread_mutex_lock(&turns->lock);
	list = host_tools_waiting(host_of(x, turns), x->arena);
	pthread_mutex_unlock(&turns->lock);
	jv_set(x->arena, v, "calls", list);
	answer_json(x, 200, v);
}

void run_host_answer(struct exchange *x)
{
	struct turns *turns = call_of(x)->serve->turns;
	struct jv *body;
	struct err err;
	int r = body_json(x, &body, &err);

	if (r == 0 && (!jv_get_str(body, "id").len || !jv_get(body, "text") || jv_get(body, "text")->type != JV_STR))
		r = err_set(&err, ERR_INVALID,
			    "the body must be {\"id\": \"…\", \"text\": \"…\", \"is_error\": false}");
	if (r == 0) {
		pthread_mutex_lock(&turns->lock);
		r = host_tools_answer(host_of(x, turns), jv_get_str(body, "id"), jv_get_str(body, "text"),
				      jv_get_bool(body, "is_error", false), &err);
		pthread_mutex_unlock(&turns->lock);
	}
	if (r)
		answer_error(x, &err);
	else
		answer_empty(x, 204);
}
