/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells listeners of changes, on the thread that made them. No lock is held while a listener runs, so a listener may
 * use the store and may add listeners; it is pinned by a count instead, and unlisten waits for the count to fall. The
 * plainer read-write lock was rejected: a listener that listens would lock up.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "base/arena.h"
#include "store/journal.h"
#include "store/stores.h"

struct listener {
	struct listener *next;
	uint64_t handle;
	store_listener call;
	void *arg;
	unsigned running; /* calls under way: stays in the list while it is not 0 */
	bool leaving;
};

struct events {
	struct store base;
	atomic_uint listeners; /* lets a store that nobody listens to skip the lock */
	pthread_mutex_t lock;
	pthread_cond_t idle;
	struct listener *first;
	uint64_t last_handle;
};

static struct events *events_of(struct store *s)
{
	return (struct events *)s;
}

static void notify(struct events *e, const struct store_event *event)
{
	pthread_mutex_lock(&e->lock);
	for (struct listener *l = e->first; l; l = l->next) {
		if (l->leaving)
			continue;
		l->running++;
		pthread_mutex_unlock(&e->lock);
		l->call(l->arg, event);
		pthread_mutex_lock(&e->lock);
		if (--l->running == 0 && l->leaving)
			pthread_cond_broadcast(&e->idle);
	}
	pthread_mutex_unlock(&e->lock);
}

static const enum store_op journal_ops[] = {[JOURNAL_WRITE] = STORE_OP_WRITE,
					    [JOURNAL_APPEND] = STORE_OP_APPEND,
					    [JOURNAL_REMOVE] = STORE_OP_REMOVE,
					    [JOURNAL_MOVE] = STORE_OP_MOVE};

/* The changes of a group that was made with an entry. */
static int notify_items(struct events *e, const struct journal_add *add, struct actor actor)
{
	for (size_t i = 0; i < add->item_count; i++) {
		const struct journal_item *item = &add->items[i];
		bool is_move = item->change == JOURNAL_MOVE;
		struct store_event event = {.op = journal_ops[item->change],
					    .path = is_move ? item->from : item->path,
					    .to = is_move ? item->path : WPATH_ROOT,
					    .cond = item->cond.kind,
					    .actor = actor};

		if (item->change != JOURNAL_REMOVE)
			event.version = item->version;
		notify(e, &event);
	}
	return 0;
}

/* What a journal did to a file in the same step is an event of that file; the journal itself has no events. */
static bool journal_event(const struct store_call *call, struct store_event *event)
{
	if (call->op != STORE_OP_JOURNAL_ADD || call->journal_add->change == JOURNAL_ALONE)
		return false;
	event->op = journal_ops[call->journal_add->change];
	event->path = event->op == STORE_OP_MOVE ? call->journal_add->from : call->to;
	event->to = event->op == STORE_OP_MOVE ? call->to : WPATH_ROOT;
	if (event->op != STORE_OP_REMOVE)
		event->version = call->ret_added->stat.version;
	return true;
}

static int events_around(struct store *s, struct ctx *ctx, struct store_call *call, struct err *err)
{
	struct events *e = events_of(s);
	struct store_event event = {
		.op = call->op, .path = call->path, .to = call->to, .cond = call->cond.kind, .actor = ctx->actor};
	int r = store_forward(s->inner, ctx, call, err);

	if (r || store_op_info[call->op].reads_only || atomic_load(&e->listeners) == 0)
		return r;
	if (call->op == STORE_OP_JOURNAL_ADD && call->journal_add->change == JOURNAL_GROUP)
		return notify_items(e, call->journal_add, ctx->actor);
	if ((call->op == STORE_OP_JOURNAL_ADD || call->op == STORE_OP_JOURNAL_CUT) && !journal_event(call, &event))
		return 0;
	if (call->op == STORE_OP_MOVE || call->op == STORE_OP_COPY)
		event.cond = call->to_cond.kind;
	if (call->ret_stat)
		event.version = call->ret_stat->version;
	notify(e, &event);
	return 0;
}

static int events_group(struct store *s, struct ctx *ctx, struct store_group *group, struct err *err)
{
	struct events *e = events_of(s);
	struct store_call call = {.op = STORE_OP_GROUP, .group = group};
	int r = store_forward(s->inner, ctx, &call, err);

	for (size_t i = 0; i < group->count && atomic_load(&e->listeners); i++) {
		const struct store_group_item *item = &group->items[i];
		struct store_event event = {
			.op = item->op, .path = item->path, .cond = item->cond.kind, .actor = ctx->actor};

		if (item->op == STORE_OP_WRITE)
			event.version = item->stat.version;
		if (item->made)
			notify(e, &event);
	}
	return r;
}

static void events_destroy(struct store *s)
{
	struct events *e = events_of(s);

	while (e->first) {
		struct listener *l = e->first;

		e->first = l->next;
		free(l);
	}
	pthread_cond_destroy(&e->idle);
	pthread_mutex_destroy(&e->lock);
	free(e);
}

static const struct store_ops events_ops = {
	.name = "events",
	.group = events_group,
	.around = events_around,
	.destroy = events_destroy,
};

struct store *store_events_new(struct store *inner)
{
	struct events *e = xcalloc(1, sizeof(*e));

	e->base = (struct store){.ops = &events_ops, .inner = inner};
	pthread_mutex_init(&e->lock, NULL);
	pthread_cond_init(&e->idle, NULL);
	return &e->base;
}

uint64_t store_events_listen(struct store *events, store_listener listener, void *arg)
{
	struct events *e = events_of(events);
	struct listener *l = xcalloc(1, sizeof(*l)), **at = &e->first;
	uint64_t handle;

	l->call = listener;
	l->arg = arg;
	pthread_mutex_lock(&e->lock);
	handle = l->handle = ++e->last_handle;
	while (*at) /* in the order in which they came */
		at = &(*at)->next;
	*at = l;
	atomic_fetch_add(&e->listeners, 1);
	pthread_mutex_unlock(&e->lock);
	return handle;
}

void store_events_unlisten(struct store *events, uint64_t handle)
{
	struct events *e = events_of(events);
	struct listener **at;

	pthread_mutex_lock(&e->lock);
	for (struct listener *l = e->first; l; l = l->next)
		if (l->handle == handle && !l->leaving) {
			l->leaving = true;
			while (l->running)
				pthread_cond_wait(&e->idle, &e->lock);
			for (at = &e->first; *at != l; at = &(*at)->next)
				;
			*at = l->next;
			free(l);
			atomic_fetch_sub(&e->listeners, 1);
			break;
		}
	pthread_mutex_unlock(&e->lock);
}
