/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server's side of what it says to a client besides answers: notifications about a request, and questions
 * (sampling, elicitation) of the handshake revisions. The thread that runs the request waits; the answer comes as a
 * message of its own, on another thread, and finds the question by its id, which is random: a client can only answer
 * what it was asked.
 */
#include "base/clock.h"
#include "base/hex.h"
#include "mcp/server.h"

#define ID_LEN     16
#define ANSWER_MAX (4 * MIB)
#define LOOK_MS    100 /* how often the one who waits looks whether the request was cancelled */

struct ask {
	struct ask *next;
	char id[ID_LEN + 1];
	struct buf text; /* of the result; on the heap */
	bool came;
};

void asks_init(struct asks *a)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&a->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&a->came, &attr);
	pthread_condattr_destroy(&attr);
}

void asks_release(struct asks *a)
{
	pthread_cond_destroy(&a->came);
	pthread_mutex_destroy(&a->lock);
}

/* `id` may be NULL: a notification. */
static void send(struct server *s, const char *id, const char *method, const struct jv *params)
{
	struct buf *buf = out_begin(&s->out);

	buf_lit(buf, "{\"jsonrpc\":\"2.0\",");
	if (id)
		buf_printf(buf, "\"id\":\"%s\",", id);
	buf_printf(buf, "\"method\":\"%s\",\"params\":", method);
	jv_write(buf, params);
	buf_lit(buf, "}\n");
	out_end(&s->out, true);
}

void server_notify(struct request *req, const char *method, const struct jv *params)
{
	send(req->server, NULL, method, params);
}

static void wait_for(struct request *req, struct ask *ask, int64_t ms)
{
	struct asks *asks = &req->server->asks;
	int64_t end = clock_monotonic_ns() + ms * NS_PER_MS;

	while (!ask->came && clock_monotonic_ns() < end && !atomic_load(&req->cancel.requested)) {
		struct timespec until = clock_timespec(clock_monotonic_ns() + LOOK_MS * NS_PER_MS);

		pthread_cond_timedwait(&asks->came, &asks->lock, &until);
	}
}

const struct jv *server_ask(struct request *req, const char *method, const struct jv *params, int64_t ms)
{
	struct asks *asks = &req->server->asks;
	struct ask ask = {0}, **slot;
	struct jv *answer = NULL;
	struct err ignored;

	hex_u64(random_u64(), ask.id);
	buf_init(&ask.text, NULL, ANSWER_MAX);
	pthread_mutex_lock(&asks->lock);
	ask.next = asks->first;
	asks->first = &ask;
	pthread_mutex_unlock(&asks->lock);
	send(req->server, ask.id, method, params);
	pthread_mutex_lock(&asks->lock);
	wait_for(req, &ask, ms);
	for (slot = &asks->first; *slot != &ask;)
		slot = &(*slot)->next;
	*slot = ask.next;
	pthread_mutex_unlock(&asks->lock);
	if (ask.text.len && !ask.text.overflow &&
	    jv_parse(req->arena, arena_str(req->arena, buf_str(&ask.text)), &answer, &ignored) != 0)
		answer = NULL;
	buf_release(&ask.text);
	return answer;
}

bool mcp_peer_answered(struct server *s, const struct rpc_message *answer)
{
	struct str id = jv_str_of(answer->id);
	bool found = false;

	pthread_mutex_lock(&s->asks.lock);
	for (struct ask *ask = s->asks.first; ask && !found; ask = ask->next) {
		found = id.len == ID_LEN && str_is(id, ask->id) && !ask->came;
		if (!found)
			continue;
		if (answer->result)
			jv_write(&ask->text, answer->result);
		ask->came = true;
		pthread_cond_broadcast(&s->asks.came);
	}
	pthread_mutex_unlock(&s->asks.lock);
	return found;
}
