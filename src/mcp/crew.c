/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who does the work. One thread at a time leads: it reads lines and answers quick calls on the spot. When it meets a
 * call that may take long (a search, anything that waits for the disk or a server), it gives the lead to another thread
 * and runs the call itself. So the call starts at once, on the core that parsed it, without a hand-over; and the next
 * line is read while it runs. A client that only reads a directory never causes a second thread to start.
 *
 * A pool that is fed by a fixed reading thread was tried on paper and rejected: each write would pay for waking a
 * worker, which is a good part of what a write costs.
 *
 * When all threads but the leader are busy, the leader keeps the lead (so that a cancellation is still read) and queues
 * the call; the first thread that is free takes it. Calls that wait for something to happen have threads of their own,
 * so that any number of them holds up no other call.
 *
 * When the input ends, what runs is finished and answered. But a call may hang in a server that does not answer, and
 * the client may be gone: when no call has ended for a while, those that wait for a server or for a change are
 * cancelled.
 */
#include <errno.h>
#include <malloc.h>
#include <time.h>

#include "base/clock.h"
#include "mcp/server.h"

/* A call that used more than this is followed by giving memory back to the system. */
#define TRIM_FROM (8 * MIB)

static void *crew_member(void *arg);

/* Queues; crew.lock is held. */

static void gang_push(struct gang *g, struct request *req)
{
	req->next_in_queue = NULL;
	*(g->first ? &g->last->next_in_queue : &g->first) = req;
	g->last = req;
	g->queued++;
}

static struct request *gang_pop(struct gang *g)
{
	struct request *req = g->first;

	if (req) {
		g->first = req->next_in_queue;
		g->queued--;
	}
	return req;
}

/* True when a thread is asleep or could be started. *ret_wake: it is asleep, and is to be woken after the lock is
   released, because it would only wait for the lock. */
static bool gang_find(struct server *s, struct gang *g, void *(*member)(void *), bool *ret_wake)
{
	*ret_wake = g->idle > g->queued; /* for each that is queued, one was woken */
	if (*ret_wake)
		return true;
	if (g->count >= g->max || pthread_create(&g->threads[g->count], NULL, member, s) != 0)
		return false;
	g->count++;
	return true;
}

/* Running. */

/* Returns with crew.lock held. */
static void run_apart(struct server *s, struct request *req, struct arena **arena)
{
	struct crew *c = &s->crew;
	struct arena *used = req->arena;
	struct request *released = NULL;
	bool kept = false, large = false;

	req->ret_kept = &kept;
	req->method->run(req);
	if (!kept) { /* else the request may be gone by now */
		released = order_leave(s, req);
		large = arena_size(used) > TRIM_FROM;
		if (*arena) {
			arena_destroy(used);
		} else {
			arena_reset(used);
			*arena = used;
		}
	}
	if (large) /* what was allocated next to the arena may have holes */
		malloc_trim(0);
	pthread_mutex_lock(&c->lock);
	while (released) { /* this thread is free to take one */
		struct request *next = released->next_in_queue;

		gang_push(&c->workers, released);
		released = next;
	}
	c->running--;
	c->finished++;
	if (c->ended)
		pthread_cond_signal(&c->done);
}

static void *waiter(void *arg)
{
	struct server *s = arg;
	struct crew *c = &s->crew;
	struct arena *arena = NULL;

	pthread_mutex_lock(&c->lock);
	for (;;) {
		struct request *req = gang_pop(&c->waiters);

		if (req) {
			pthread_mutex_unlock(&c->lock);
			run_apart(s, req, &arena);
		} else if (c->ended) {
			break;
		} else {
			c->waiters.idle++;
			pthread_cond_wait(&c->waiters.wake, &c->lock);
			c->waiters.idle--;
		}
	}
	pthread_mutex_unlock(&c->lock);
	arena_destroy(arena);
	return NULL;
}

/* Leading. */

/* True when the caller is to run the request and no longer leads; else another thread runs it, sooner or later. */
static bool hand_over(struct server *s, struct request *req)
{
	struct crew *c = &s->crew;
	struct gang *g = req->waits ? &c->waiters : &c->workers;
	bool may_run = order_enter(s, req), wake = false, passed = false;

	pthread_mutex_lock(&c->lock);
	c->running++;
	if (may_run) { /* else it is held back, and may have run and gone by now */
		bool found = gang_find(s, g, req->waits ? waiter : crew_member, &wake);

		/* either no thread can be started, or one of the crew is free to lead */
		passed = found ? !req->waits : g->count == 0;
		if (passed)
			c->has_leader = false;
		else
			gang_push(g, req);
	}
	pthread_mutex_unlock(&c->lock);
	if (wake)
		pthread_cond_signal(&g->wake);
	return passed;
}

/* Until all calls have ended. */
static void await_calls(struct server *s)
{
	struct crew *c = &s->crew;
	int64_t until = clock_monotonic_ns() + MCP_END_SECONDS * NS_PER_S;
	unsigned finished = c->finished;
	bool cancelled = false;

	while (c->running) {
		struct timespec t = clock_timespec(until);

		if (pthread_cond_timedwait(&c->done, &c->lock, &t) == ETIMEDOUT && c->finished == finished) {
			/* a call that is still there after it was cancelled waits for a server in a way of its own */
			if (s->remote && cancelled)
				ctx_end_all(clock_monotonic_ns());
			flights_cancel_all(s, !s->remote);
			cancelled = true;
		}
		if (c->finished != finished || clock_monotonic_ns() >= until)
			until = clock_monotonic_ns() + (cancelled ? 1 : MCP_END_SECONDS) * NS_PER_S;
		finished = c->finished;
	}
}

static void end_lead(struct server *s)
{
	struct crew *c = &s->crew;

	out_flush(&s->out);
	if (atomic_load(&s->out.broken))
		flights_cancel_all(s, false);
	pthread_mutex_lock(&c->lock);
	c->ended = true;
	c->has_leader = false;
	pthread_cond_broadcast(&c->workers.wake);
	pthread_cond_broadcast(&c->waiters.wake);
	if (s->remote || c->waiters.count)
		await_calls(s);
	pthread_mutex_unlock(&c->lock);
}

/* Reads until there is a call to run outside the lead (which is returned, and the lead is given away) or the input has
   ended. */
static struct request *lead(struct server *s, struct arena **arena)
{
	struct request *req;
	struct str line;

	for (;;) {
		switch (rpc_reader_next(&s->reader, &line)) {
		case RPC_NEED_MORE:
			if (s->helper.given) {
				helper_join(s);
				helper_give(s); /* of what it left */
				continue;
			}
			out_flush(&s->out);
			if (!atomic_load(&s->out.broken)) {
				rpc_reader_fill(&s->reader);
				helper_give(s);
				continue;
			}
			break;
		case RPC_TOO_LONG:
			server_refuse_long_line(s);
			continue;
		case RPC_LINE:
			if (!*arena)
				*arena = arena_new();
			req = server_take(s, arena, line);
			if (!req)
				continue;
			helper_stop(s);
			out_flush(&s->out);
			if (hand_over(s, req))
				return req;
			continue;
		case RPC_END:
			break;
		}
		end_lead(s);
		return NULL;
	}
}

static void *crew_member(void *arg)
{
	struct server *s = arg;
	struct crew *c = &s->crew;
	struct arena *arena = NULL;

	pthread_mutex_lock(&c->lock);
	for (;;) {
		struct request *req = NULL;

		if (!c->has_leader && !c->ended) {
			c->has_leader = true;
			pthread_mutex_unlock(&c->lock);
			req = lead(s, &arena);
			pthread_mutex_lock(&c->lock);
		} else if (c->workers.first) {
			req = gang_pop(&c->workers);
		} else if (c->ended) {
			break;
		} else {
			c->workers.idle++;
			pthread_cond_wait(&c->workers.wake, &c->lock);
			c->workers.idle--;
		}
		if (req) {
			pthread_mutex_unlock(&c->lock);
			run_apart(s, req, &arena);
		}
	}
	pthread_mutex_unlock(&c->lock);
	arena_destroy(arena);
	return NULL;
}

void crew_init(struct server *s)
{
	struct crew *c = &s->crew;
	pthread_condattr_t attr;

	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->workers.wake, NULL);
	pthread_cond_init(&c->waiters.wake, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&c->done, &attr);
	pthread_condattr_destroy(&attr);
	c->workers.max = s->remote ? MCP_THREADS_REMOTE : MCP_THREADS_LOCAL;
	c->waiters.max = MCP_THREADS_MAX;
}

void crew_run(struct server *s)
{
	struct gang *gangs[] = {&s->crew.workers, &s->crew.waiters};

	crew_member(s);
	/* nobody leads now, so no thread can be started */
	for (size_t i = 0; i < COUNT(gangs); i++)
		for (unsigned k = 0; k < gangs[i]->count; k++)
			pthread_join(gangs[i]->threads[k], NULL);
}

void crew_release(struct server *s)
{
	pthread_cond_destroy(&s->crew.done);
	pthread_cond_destroy(&s->crew.waiters.wake);
	pthread_cond_destroy(&s->crew.workers.wake);
	pthread_mutex_destroy(&s->crew.lock);
}
