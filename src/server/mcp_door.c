/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A message is answered by a peer of its own (src/mcp), so that its reply can only go to who asked. What a legacy
 * session has to keep (the form of its results, what it is subscribed to) is in the peer of the session, which answers
 * the few messages that change it and whose notifications go to the stream that the client opened with GET.
 *
 * A call that wants to report its progress, and a subscription of the newer era, are answered by a stream. It is opened
 * first and the call runs as a job of its own, so that what it says is sent while it runs.
 */
#include "server/mcp_door.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/hex.h"
#include "base/limits.h"
#include "mcp/mcp.h"
#include "server/server_internal.h"

#define BUCKETS         256
#define ID_LEN          32
#define SESSION_IDLE_NS (30 * 60 * NS_PER_S)
#define LINES_MAX       (1024 * MIB)
#define PENDING_MAX     (64 * MIB)
#define RPC_BAD_HEADER  (-32020)

struct session {
	struct session *next;
	char id[ID_LEN + 1];
	struct mcp_doors *doors;
	struct tenant *tenant;
	char grant[24]; /* the id of the token that opened it */
	struct server *peer;
	pthread_mutex_t lock;  /* one message at a time changes the peer */
	struct buf *reply;     /* where the reply of that message goes */
	struct stream *stream; /* doors.lock, like all that follows */
	struct door *running;
	unsigned refs;
	int64_t used_ns;
};

/* One message while it is answered, or for as long as it stays open. */
struct door {
	struct mcp_doors *doors;
	struct tenant *tenant;
	struct server *peer;
	struct arena *arena; /* of the message */
	struct rpc_message msg;
	struct session *session; /* NULL: of the newer era */
	struct stream *stream;   /* or: */
	struct buf lines;
	int code;
	bool open;
	unsigned refs;             /* the stream, the job */
	struct door *next, **slot; /* that are open: for comments */
	struct door *next_running;
};

struct mcp_doors {
	struct serve *serve;
	pthread_mutex_t lock;
	struct session *sessions[BUCKETS];
	unsigned session_count, open_count;
	struct door *open;
	bool ended;
};

struct mcp_doors *mcp_doors_new(struct serve *serve)
{
	struct mcp_doors *d = xcalloc(1, sizeof(*d));

	d->serve = serve;
	pthread_mutex_init(&d->lock, NULL);
	return d;
}

/* --- answers --- */

static void answer_rpc(struct exchange *x, int status, struct str line)
{
	exchange_add_header(x, "Content-Type", STR("application/json"));
	exchange_answer(x, status, arena_str(x->arena, str_trim(line)));
}

static void answer_rpc_error(struct exchange *x, int status, const struct jv *id, int code, const char *sentence)
{
	struct rpc_error error = {code, str_of(sentence), NULL};
	struct buf b;

	buf_init(&b, x->arena, 64 * KIB);
	rpc_write_error(&b, id, &error);
	answer_rpc(x, status, buf_str(&b));
}

/* The status that the newer era asks for; in the older one only what is not a request at all is refused by status. */
static int status_of(int code, bool modern)
{
	if (!modern || !code)
		return 200;
	if (code == RPC_NO_METHOD)
		return 404;
	return code == RPC_BAD_VERSION || code == RPC_NO_CAPABILITY || code == RPC_INVALID_REQUEST ? 400 : 200;
}

static void stream_lines(struct stream *stream, struct str lines)
{
	struct str line;
	struct buf b;

	buf_init(&b, NULL, LINES_MAX);
	while (str_cut(&lines, '\n', &line)) {
		if (!line.len)
			continue;
		buf_lit(&b, "event: message\ndata: ");
		buf_add(&b, line);
		buf_lit(&b, "\n\n");
	}
	if (b.len && !stream_add(stream, buf_str(&b)))
		stream_end(stream, true);
	buf_release(&b);
}

/* --- sessions --- */

static struct session **session_slot(struct mcp_doors *d, struct str id)
{
	struct session **slot = &d->sessions[hash_u64(id, 13) % BUCKETS];

	while (*slot && !str_is(id, (*slot)->id))
		slot = &(*slot)->next;
	return slot;
}

static void session_unref(struct session *s)
{
	struct mcp_doors *d = s->doors;
	bool last;

	pthread_mutex_lock(&d->lock);
	last = --s->refs == 0;
	s->used_ns = clock_monotonic_ns();
	pthread_mutex_unlock(&d->lock);
	if (!last)
		return;
	mcp_peer_destroy(s->peer);
	tenants_put(d->serve->tenants, s->tenant);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

/* Replies go to the message that is being answered, everything else to the stream. */
static void session_push(void *arg, struct str lines)
{
	struct session *s = arg;
	struct str line;

	while (str_cut(&lines, '\n', &line)) {
		if (str_starts(line, STR("{\"jsonrpc\":\"2.0\",\"method\":"))) {
			pthread_mutex_lock(&s->doors->lock);
			if (s->stream)
				stream_lines(s->stream, line);
			pthread_mutex_unlock(&s->doors->lock);
		} else if (s->reply) {
			buf_add(s->reply, line);
		}
	}
}

static struct toolset *tools_of(const struct web_call *call)
{
	return call->grant.access >= ACCESS_WRITE ? call->tenant->offers : call->tenant->offers_reading;
}

static struct server *peer_new(struct web_call *call, mcp_push push, void *arg)
{
	struct mcp_opts opts = {.structured = call->serve->opts.structured, .extra = call->serve->opts.extra};

	return mcp_peer_new(call->tenant->ws, tools_of(call), &opts, push, arg);
}

/* Takes the session that was not used for the longest time out of the table; doors.lock is held. */
static struct session *take_oldest(struct mcp_doors *d)
{
	struct session *oldest = NULL;

	for (size_t i = 0; i < BUCKETS; i++)
		for (struct session *s = d->sessions[i]; s; s = s->next)
			if (s->refs == 1 && (!oldest || s->used_ns < oldest->used_ns))
				oldest = s;
	if (oldest) {
		*session_slot(d, str_of(oldest->id)) = oldest->next;
		d->session_count--;
	}
	return oldest;
}

/* With a reference for the caller; NULL: there are too many. */
static struct session *session_new(struct mcp_doors *d, struct web_call *call)
{
	struct session *s = xcalloc(1, sizeof(*s)), *old = NULL;
	bool full;

	hex_u64(random_u64(), s->id);
	hex_u64(random_u64(), s->id + 16);
	s->doors = d;
	s->tenant = tenants_share(d->serve->tenants, call->tenant);
	memcpy(s->grant, call->grant.id.len ? call->grant.id.ptr : "", call->grant.id.len);
	s->peer = peer_new(call, session_push, s);
	mcp_peer_begin_session(s->peer);
	pthread_mutex_init(&s->lock, NULL);
	s->refs = 2;
	s->used_ns = clock_monotonic_ns();
	pthread_mutex_lock(&d->lock);
	if (d->session_count >= SERVER_SESSIONS_MAX)
		old = take_oldest(d);
	full = d->ended || d->session_count >= SERVER_SESSIONS_MAX;
	if (!full) {
		struct session **slot = session_slot(d, str_of(s->id));

		s->next = *slot;
		*slot = s;
		d->session_count++;
	}
	pthread_mutex_unlock(&d->lock);
	if (old)
		session_unref(old);
	if (!full)
		return s;
	s->refs = 1;
	session_unref(s);
	return NULL;
}

/* The session that the request names, with a reference. A session is only there for the token that opened it. */
static struct session *session_find(struct exchange *x)
{
	struct web_call *call = call_of(x);
	struct mcp_doors *d = call->serve->doors;
	struct str id = exchange_header(x, "Mcp-Session-Id");
	struct session *s;

	pthread_mutex_lock(&d->lock);
	s = id.len == ID_LEN ? *session_slot(d, id) : NULL;
	if (s &&
	    (!tenant_is(s->tenant, call->tenant) || !str_is(call->grant.id.len ? call->grant.id : STR(""), s->grant)))
		s = NULL;
	if (s)
		s->refs++;
	pthread_mutex_unlock(&d->lock);
	return s;
}

/* Answers and returns NULL when there is no such session. */
static struct session *session_of(struct exchange *x, const struct jv *id)
{
	struct session *s;

	if (!exchange_header(x, "Mcp-Session-Id").ptr) {
		answer_rpc_error(x, 400, id, RPC_INVALID_REQUEST,
				 "the header Mcp-Session-Id is missing; send initialize first");
		return NULL;
	}
	s = session_find(x);
	if (!s)
		answer_rpc_error(x, 404, id, RPC_INVALID_REQUEST,
				 "there is no such session, or it has ended; send initialize again");
	return s;
}

/* --- one message --- */

static void door_push(void *arg, struct str lines)
{
	struct door *door = arg;

	if (door->stream)
		stream_lines(door->stream, lines);
	else
		buf_add(&door->lines, lines);
}

static struct door *door_new(struct exchange *x, struct arena *arena, const struct rpc_message *msg,
			     struct session *session)
{
	struct web_call *call = call_of(x);
	struct door *door = xcalloc(1, sizeof(*door));

	door->doors = call->serve->doors;
	door->tenant = tenants_share(call->serve->tenants, call->tenant);
	door->arena = arena;
	door->msg = *msg;
	door->refs = 1;
	door->session = session;
	door->peer = peer_new(call, door_push, door);
	buf_init(&door->lines, NULL, LINES_MAX);
	if (session) {
		mcp_peer_like(door->peer, session->peer);
		pthread_mutex_lock(&door->doors->lock);
		session->refs++;
		door->next_running = session->running;
		session->running = door;
		pthread_mutex_unlock(&door->doors->lock);
	}
	return door;
}

static void forget_running(struct door *door)
{
	struct door **slot;

	if (!door->session)
		return;
	pthread_mutex_lock(&door->doors->lock);
	for (slot = &door->session->running; *slot && *slot != door;)
		slot = &(*slot)->next_running;
	if (*slot)
		*slot = door->next_running;
	pthread_mutex_unlock(&door->doors->lock);
}

static void door_close(void *arg)
{
	struct door *door = arg;

	forget_running(door);
	mcp_peer_destroy(door->peer);
	if (door->arena && !door->open)
		arena_destroy(door->arena);
	if (door->stream)
		stream_release(door->stream);
	if (door->session)
		session_unref(door->session);
	tenants_put(door->doors->serve->tenants, door->tenant);
	buf_release(&door->lines);
	free(door);
}

static bool door_unref(struct door *door)
{
	bool last;

	pthread_mutex_lock(&door->doors->lock);
	last = --door->refs == 0;
	if (last && door->slot) {
		*door->slot = door->next;
		if (door->next)
			door->next->slot = door->slot;
		door->doors->open_count--;
	}
	pthread_mutex_unlock(&door->doors->lock);
	return last;
}

static void run_door(void *arg)
{
	struct door *door = arg;

	door->open = mcp_peer_take(door->peer, door->arena, &door->msg, &door->code);
	if (door->stream && !door->open)
		stream_end(door->stream, false);
	if (door->stream && door_unref(door))
		door_close(door);
}

/* The client of a stream is gone: what it asked for is cancelled. Closing may wait for a thread, so a worker does it.
 */
static void door_gone(void *arg)
{
	struct door *door = arg;

	mcp_peer_cancel(door->peer, NULL);
	if (door_unref(door) && !httpd_submit(door->doors->serve->httpd, door->tenant->owner, door_close, door))
		door_close(door);
}

/* Answers with a stream, on which the message is answered by a job. */
static void answer_by_stream(struct exchange *x, struct door *door)
{
	struct stream_opts opts = {.size = UINT64_MAX, .pending_max = PENDING_MAX, .gone = door_gone, .arg = door};
	struct mcp_doors *d = door->doors;
	struct err err;
	bool full;

	pthread_mutex_lock(&d->lock);
	full = d->ended || d->open_count >= SERVER_LISTENS_MAX;
	if (!full) {
		answer_event_stream(x, &opts, &door->stream);
		d->open_count++;
		door->next = d->open;
		door->slot = &d->open;
		if (door->next)
			door->next->slot = &door->next;
		d->open = door;
		door->refs = 2;
	}
	pthread_mutex_unlock(&d->lock);
	if (full) {
		err_set(&err, ERR_UNAVAILABLE, "too many streams are open; try again later");
		answer_error(x, &err);
		door_close(door);
		return;
	}
	if (!httpd_submit(d->serve->httpd, door->tenant->owner, run_door, door)) {
		stream_end(door->stream, true);
		door_unref(door);
	}
}

/* A call of the handshake revisions may have to ask the client something, if the embedder's tools do that. */
static bool may_ask(struct exchange *x, const struct session *session)
{
	return session && call_of(x)->serve->opts.extra;
}

static bool wants_stream(struct exchange *x, const struct rpc_message *msg, const struct session *session)
{
	struct str accept = exchange_header(x, "Accept");
	bool reports = jv_get(jv_get(msg->params, "_meta"), "progressToken");

	if (str_is(msg->method, "subscriptions/listen"))
		return true;
	return str_is(msg->method, "tools/call") && (reports || may_ask(x, session)) &&
	       str_find(accept, STR("text/event-stream"), 0) != SIZE_MAX;
}

static void answer_request(struct exchange *x, struct arena *arena, const struct rpc_message *msg,
			   struct session *session)
{
	struct door *door = door_new(x, arena, msg, session);
	struct str lines;
	size_t before;

	if (wants_stream(x, msg, session)) {
		answer_by_stream(x, door);
		return;
	}
	run_door(door);
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it is counted */
	lines = str_trim(door->lines.ptr ? buf_str(&door->lines) : STR(""));
	before = str_rfind_char(lines, '\n'); /* what comes before the reply is for streams */
	if (lines.len)
		answer_rpc(x, status_of(door->code, !session), str_from(lines, before < lines.len ? before + 1 : 0));
	else
		answer_empty(x, 202); /* it was cancelled */
	door_close(door);
}

/* --- POST --- */

/* Messages that change what a session keeps. Takes the arena. */
static void answer_in_session(struct exchange *x, struct session *s, struct arena *arena, const struct rpc_message *msg)
{
	struct buf reply;
	int code;

	buf_init(&reply, x->arena, LINES_MAX);
	pthread_mutex_lock(&s->lock);
	s->reply = &reply;
	mcp_peer_take(s->peer, arena, msg, &code);
	s->reply = NULL;
	pthread_mutex_unlock(&s->lock);
	answer_rpc(x, 200, reply.ptr ? buf_str(&reply) : STR(""));
	arena_destroy(arena);
}

static void answer_initialize(struct exchange *x, struct arena *arena, const struct rpc_message *msg)
{
	struct session *s = session_new(call_of(x)->serve->doors, call_of(x));

	if (!s) {
		answer_rpc_error(x, 503, msg->id, RPC_INTERNAL, "too many sessions are open; try again later");
		arena_destroy(arena);
		return;
	}
	answer_in_session(x, s, arena, msg);
	exchange_add_header(x, "Mcp-Session-Id", str_of(s->id));
	session_unref(s);
}

/* What concerns requests that run: an answer to what one of them asked, or its cancellation. */
static void tell_running(struct session *s, const struct rpc_message *msg)
{
	bool is_answer = msg->kind == RPC_RESPONSE;

	if (!is_answer && !str_is(msg->method, "notifications/cancelled"))
		return;
	pthread_mutex_lock(&s->doors->lock);
	for (struct door *door = s->running; door; door = door->next_running) {
		if (!is_answer)
			mcp_peer_cancel(door->peer, msg);
		else if (mcp_peer_answered(door->peer, msg))
			break;
	}
	pthread_mutex_unlock(&s->doors->lock);
}

static void post_legacy(struct exchange *x, struct arena *arena, const struct rpc_message *msg)
{
	struct session *s;

	if (msg->kind == RPC_REQUEST && str_is(msg->method, "initialize")) {
		answer_initialize(x, arena, msg);
		return;
	}
	s = session_of(x, msg->id);
	if (!s) {
		arena_destroy(arena);
		return;
	}
	if (msg->kind != RPC_REQUEST) {
		tell_running(s, msg);
		answer_empty(x, 202);
		arena_destroy(arena);
	} else if (str_is(msg->method, "resources/subscribe") || str_is(msg->method, "resources/unsubscribe")) {
		answer_in_session(x, s, arena, msg);
	} else {
		answer_request(x, arena, msg, s);
	}
	session_unref(s);
}

static void post_modern(struct exchange *x, struct arena *arena, const struct mcp_headers *headers,
			const struct rpc_message *msg)
{
	const char *wrong = msg->kind == RPC_REQUEST ? mcp_headers_wrong(arena, headers, msg) : NULL;

	if (wrong)
		answer_rpc_error(x, 400, msg->id, RPC_BAD_HEADER, wrong);
	else if (msg->kind != RPC_REQUEST)
		answer_empty(x, 202);
	else if (!mcp_describes_itself(msg))
		answer_rpc_error(x, 400, msg->id, RPC_INVALID_PARAMS,
				 "params._meta must have the protocol version and the capabilities of the client");
	else {
		answer_request(x, arena, msg, NULL);
		return;
	}
	arena_destroy(arena);
}

void run_mcp_post(struct exchange *x)
{
	struct mcp_headers headers = {.version = exchange_header(x, "MCP-Protocol-Version"),
				      .method = exchange_header(x, "Mcp-Method"),
				      .name = exchange_header(x, "Mcp-Name")};
	struct arena *arena = arena_new(); /* a request that stays open outlives the exchange */
	struct rpc_message msg = {0};
	struct str text;
	struct err err;
	int code = body_text(x, &text, &err) ? RPC_INTERNAL : rpc_parse(arena, text, &msg, &err);

	if (code) {
		answer_rpc_error(x, code == RPC_INTERNAL ? 500 : 400, msg.id, code, err_text(x->arena, &err).ptr);
		arena_destroy(arena);
	} else if (mcp_is_modern(&headers, &msg)) {
		post_modern(x, arena, &headers, &msg);
	} else {
		post_legacy(x, arena, &msg);
	}
}

/* --- GET and DELETE: the older era alone --- */

static void session_stream_gone(void *arg)
{
	struct session *s = arg;
	struct stream *stream;

	pthread_mutex_lock(&s->doors->lock);
	stream = s->stream;
	s->stream = NULL;
	pthread_mutex_unlock(&s->doors->lock);
	if (stream)
		stream_release(stream);
	session_unref(s);
}

static bool refuse_modern(struct exchange *x)
{
	struct mcp_headers headers = {.version = exchange_header(x, "MCP-Protocol-Version")};
	struct rpc_message none = {0};

	if (!mcp_is_modern(&headers, &none))
		return false;
	exchange_add_header(x, "Allow", STR("POST"));
	answer_rpc_error(x, 405, NULL, RPC_INVALID_REQUEST, "this revision of the protocol has only POST");
	return true;
}

void run_mcp_get(struct exchange *x)
{
	struct stream_opts opts = {.size = UINT64_MAX, .pending_max = PENDING_MAX, .gone = session_stream_gone};
	struct session *s = refuse_modern(x) ? NULL : session_of(x, NULL);
	bool taken;

	if (!s)
		return;
	opts.arg = s;
	pthread_mutex_lock(&s->doors->lock);
	taken = s->stream || s->doors->ended;
	if (!taken) {
		answer_event_stream(x, &opts, &s->stream);
		stream_add(s->stream, STR(":\n\n"));
	}
	pthread_mutex_unlock(&s->doors->lock);
	if (taken) {
		answer_rpc_error(x, 409, NULL, RPC_INVALID_REQUEST, "this session already has a stream");
		session_unref(s);
	}
}

void run_mcp_delete(struct exchange *x)
{
	struct session *s = refuse_modern(x) ? NULL : session_of(x, NULL), **slot;
	bool found;

	if (!s)
		return;
	pthread_mutex_lock(&s->doors->lock);
	slot = session_slot(s->doors, str_of(s->id));
	found = *slot == s;
	if (found) {
		*slot = s->next;
		s->doors->session_count--;
	}
	if (s->stream)
		stream_end(s->stream, false);
	pthread_mutex_unlock(&s->doors->lock);
	if (found)
		session_unref(s);
	session_unref(s); /* NOLINT(clang-analyzer-unix.Malloc): it is counted */
	answer_empty(x, 204);
}

/* --- time --- */

void mcp_doors_tick(struct mcp_doors *d)
{
	int64_t now = clock_monotonic_ns();
	struct session *ended = NULL;

	pthread_mutex_lock(&d->lock);
	for (struct door *door = d->open; door; door = door->next)
		if (door->stream)
			stream_add(door->stream, STR(":\n\n"));
	for (size_t i = 0; i < BUCKETS; i++) {
		struct session **slot = &d->sessions[i];

		while (*slot) {
			struct session *s = *slot;

			if (s->stream)
				stream_add(s->stream, STR(":\n\n"));
			if (s->refs > 1 || now - s->used_ns < SESSION_IDLE_NS) {
				slot = &s->next;
				continue;
			}
			*slot = s->next;
			s->next = ended;
			ended = s;
			d->session_count--;
		}
	}
	pthread_mutex_unlock(&d->lock);
	while (ended) {
		struct session *s = ended;

		ended = s->next;
		session_unref(s);
	}
}

void mcp_doors_end(struct mcp_doors *d)
{
	if (!d)
		return;
	pthread_mutex_lock(&d->lock);
	d->ended = true;
	for (struct door *door = d->open; door; door = door->next)
		if (door->stream)
			stream_end(door->stream, false);
	for (size_t i = 0; i < BUCKETS; i++)
		for (struct session *s = d->sessions[i]; s; s = s->next)
			if (s->stream)
				stream_end(s->stream, false);
	pthread_mutex_unlock(&d->lock);
}

void mcp_doors_destroy(struct mcp_doors *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < BUCKETS; i++)
		while (d->sessions[i]) {
			struct session *s = d->sessions[i];

			d->sessions[i] = s->next;
			session_unref(s);
		}
	pthread_mutex_destroy(&d->lock);
	free(d);
}
