/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Only the thread that delivers the file whose turn it is gives outcomes on, outside the lock: nobody else can, because
 * the turn passes on only when it says so. So a slow reader at the other end of a pipe holds up that one thread until
 * the window is full, and memory stays bounded.
 */
#include "find/find_order.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

static struct outcome nothing_found;

struct outcome *outcome_new(struct str path)
{
	struct outcome *o = xcalloc(1, sizeof(*o));

	o->bytes_cap = path.len + 4096;
	o->bytes = xmalloc(o->bytes_cap);
	if (path.len)
		memcpy(o->bytes, path.ptr, path.len);
	o->path_len = o->len = path.len;
	return o;
}

void outcome_destroy(struct outcome *o)
{
	if (!o || o == &nothing_found)
		return;
	free(o->hits);
	free(o->bytes);
	free(o);
}

void outcome_add(struct outcome *o, struct hit hit, struct str text)
{
	HEAP_ROOM(o->hits, o->count, o->cap);
	if (o->len + text.len > o->bytes_cap) {
		o->bytes_cap = 2 * (o->len + text.len);
		o->bytes = xrealloc(o->bytes, o->bytes_cap);
	}
	hit.at = o->len;
	hit.len = text.len;
	o->hits[o->count++] = hit;
	if (text.len)
		memcpy(o->bytes + o->len, text.ptr, text.len);
	o->len += text.len;
}

void order_init(struct order *order, int (*give)(void *, struct outcome *, struct err *), void *arg)
{
	*order = (struct order){.give = give, .arg = arg};
	pthread_mutex_init(&order->lock, NULL);
	pthread_cond_init(&order->moved, NULL);
}

void order_release(struct order *order)
{
	for (size_t i = 0; i < ORDER_WINDOW; i++)
		outcome_destroy(order->ring[i]);
	pthread_cond_destroy(&order->moved);
	pthread_mutex_destroy(&order->lock);
}

bool order_is_turn(const struct order *order, uint64_t seq)
{
	return atomic_load_explicit(&order->next, memory_order_acquire) == seq;
}

void order_fail(struct order *order)
{
	pthread_mutex_lock(&order->lock);
	atomic_store(&order->failed, true);
	pthread_cond_broadcast(&order->moved);
	pthread_mutex_unlock(&order->lock);
}

/* Waits, locked, until `seq` is within the window. A scan that was cancelled may never get there: so it looks. */
static int wait_for_room(struct order *order, const struct ctx *ctx, uint64_t seq, struct err *err)
{
	while (seq >= order->next + ORDER_WINDOW && !order->failed) {
		struct timespec until;
		int r = ctx_check(ctx, err);

		if (r)
			return r;
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += 20 * 1000 * 1000;
		if (until.tv_nsec >= 1000000000) {
			until.tv_sec++;
			until.tv_nsec -= 1000000000;
		}
		pthread_cond_timedwait(&order->moved, &order->lock, &until);
	}
	if (order->failed)
		return err_set(err, ERR_CANCELLED, "the search has ended");
	return 0;
}

/* Locked: takes what has its turn, and passes the turn on. NULL: it is not there yet. */
static struct outcome *take_next(struct order *order)
{
	struct outcome **slot = &order->ring[order->next % ORDER_WINDOW], *o = *slot;

	*slot = NULL;
	return o;
}

int order_deliver(struct order *order, const struct ctx *ctx, uint64_t seq, struct outcome *o, struct err *err)
{
	int r = 0;

	pthread_mutex_lock(&order->lock);
	if (seq != order->next) {
		r = wait_for_room(order, ctx, seq, err);
		if (r == 0 && seq != order->next) {
			order->ring[seq % ORDER_WINDOW] = o ? o : &nothing_found;
			o = NULL;
			pthread_mutex_unlock(&order->lock);
			return 0;
		}
	}
	if (!o)
		o = &nothing_found;
	while (o && r == 0) {
		if (o != &nothing_found) {
			pthread_mutex_unlock(&order->lock);
			o->done = true;
			r = order->give(order->arg, o, err);
			outcome_destroy(o);
			o = NULL;
			pthread_mutex_lock(&order->lock);
		}
		order->next++;
		o = take_next(order);
	}
	outcome_destroy(o);
	pthread_cond_broadcast(&order->moved);
	pthread_mutex_unlock(&order->lock);
	return r;
}
