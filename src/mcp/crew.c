/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who does the work. One thread at a time leads: it reads lines and answers quick calls on the spot. When it meets a
 * call that may take long (a search, anything that waits for the disk), it gives the lead to another thread and runs
 * the call itself. So the call starts at once, on the core that parsed it, without a hand-over; and the next line is
 * read while it runs. A client that only reads never causes a second thread to start.
 *
 * A pool that is fed by a fixed reading thread was tried on paper and rejected: each write would pay for waking a
 * worker, which is a good part of what a write costs.
 *
 * When all threads but the leader are busy, the leader keeps the lead (so that a cancellation is still read) and queues
 * the call; the first thread that is free takes it.
 */
#include <signal.h>

#include "mcp/server.h"

static void *crew_member(void *arg);

static void run_beside(struct request *req, struct arena **arena)
{
	struct arena *used = req->arena;

	req->method->run(req);
	if (*arena) {
		arena_destroy(used);
	} else {
		arena_reset(used);
		*arena = used;
	}
}

/* Finds a thread that can lead from now on; crew.lock is held. *ret_wake: the thread is asleep, and is to be woken
   after the lock is released, because it would only wait for the lock. */
static bool find_successor(struct server *s, bool *ret_wake)
{
	struct crew *c = &s->crew;

	*ret_wake = c->idle > 0;
	if (*ret_wake)
		return true;
	if (c->thread_count >= CREW_MAX || pthread_create(&c->threads[c->thread_count], NULL, crew_member, s) != 0)
		return false;
	c->thread_count++;
	return true;
}

/* True when the caller is to run the request and leads no more; else it was queued. */
static bool pass_lead(struct server *s, struct request *req)
{
	struct crew *c = &s->crew;
	bool passed, wake;

	pthread_mutex_lock(&c->lock);
	passed = find_successor(s, &wake);
	if (passed) {
		c->has_leader = false;
	} else {
		req->next_in_queue = NULL;
		*(c->queue_first ? &c->queue_last->next_in_queue : &c->queue_first) = req;
		c->queue_last = req;
	}
	pthread_mutex_unlock(&c->lock);
	if (wake)
		pthread_cond_signal(&c->wake);
	return passed;
}

static void end_lead(struct server *s)
{
	struct crew *c = &s->crew;

	out_flush(&s->out);
	if (atomic_load(&s->out.broken))
		flights_cancel_all(s);
	pthread_mutex_lock(&c->lock);
	c->ended = true;
	c->has_leader = false;
	pthread_cond_broadcast(&c->wake);
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
			out_flush(&s->out);
			if (!atomic_load(&s->out.broken)) {
				rpc_reader_fill(&s->reader);
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
			out_flush(&s->out);
			if (pass_lead(s, req))
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
		} else if (c->queue_first) {
			req = c->queue_first;
			c->queue_first = req->next_in_queue;
		} else if (c->ended) {
			break;
		} else {
			c->idle++;
			pthread_cond_wait(&c->wake, &c->lock);
			c->idle--;
		}
		if (req) {
			pthread_mutex_unlock(&c->lock);
			run_beside(req, &arena);
			pthread_mutex_lock(&c->lock);
		}
	}
	pthread_mutex_unlock(&c->lock);
	arena_destroy(arena);
	return NULL;
}

void crew_run(struct server *s)
{
	crew_member(s);
	/* nobody leads now, so no thread can be started */
	for (unsigned i = 0; i < s->crew.thread_count; i++)
		pthread_join(s->crew.threads[i], NULL);
}
