/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads of subagents, one for each that runs. They belong to the opened workspace: when it is closed, all of them
 * are cancelled and waited for, so nothing outlives its stores. A thread that has ended is joined by whoever looks
 * next.
 */
#include <pthread.h>
#include <stdlib.h>

#include "agent/children.h"
#include "agent/servers.h"
#include "base/clock.h"

#define LOOK_NS (50 * NS_PER_MS) /* how often a waiting caller looks whether it is cancelled */

struct crew {
	struct workspace *ws;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct child *first;
	struct tree *trees;
	bool is_closing;
};

static void *crew_open(struct workspace *ws)
{
	struct crew *crew = xcalloc(1, sizeof(*crew));
	pthread_condattr_t attr;

	crew->ws = ws;
	pthread_mutex_init(&crew->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&crew->changed, &attr);
	pthread_condattr_destroy(&attr);
	return crew;
}

/* --- trees: under the lock --- */

static struct tree *tree_find(struct crew *crew, struct session_ref top)
{
	struct tree *t = crew->trees;

	while (t && !(str_eq(t->top.agent, top.agent) && str_eq(t->top.session, top.session)))
		t = t->next;
	return t;
}

static struct tree *tree_use(struct crew *crew, struct session_ref top, uint64_t tokens)
{
	struct tree *t = tree_find(crew, top);

	if (!t) {
		t = xcalloc(1, sizeof(*t));
		t->arena = arena_new();
		t->top = (struct session_ref){arena_str(t->arena, top.agent), arena_str(t->arena, top.session)};
		atomic_store(&t->tokens, tokens);
		t->next = crew->trees;
		crew->trees = t;
	}
	t->users++;
	return t;
}

static void tree_leave(struct crew *crew, struct tree *tree)
{
	struct tree **at = &crew->trees;

	if (--tree->users > 0)
		return;
	while (*at != tree)
		at = &(*at)->next;
	*at = tree->next;
	arena_destroy(tree->arena);
	free(tree);
}

/* --- threads --- */

static void child_destroy(struct child *child)
{
	servers_destroy(child->servers);
	arena_destroy(child->arena);
	free(child);
}

/* Joins what has ended; under the lock. */
static void reap(struct crew *crew)
{
	struct child **at = &crew->first;

	while (*at) {
		struct child *child = *at;

		if (!child->is_done) {
			at = &child->next;
			continue;
		}
		*at = child->next;
		tree_leave(crew, child->tree);
		pthread_join(child->thread, NULL); /* it only has to return */
		child_destroy(child);
	}
}

static void crew_close(void *state)
{
	struct crew *crew = state;

	pthread_mutex_lock(&crew->lock);
	crew->is_closing = true;
	for (struct child *c = crew->first; c; c = c->next)
		atomic_store(&c->cancel.requested, true);
	for (reap(crew); crew->first; reap(crew))
		pthread_cond_wait(&crew->changed, &crew->lock);
	pthread_mutex_unlock(&crew->lock);
	pthread_cond_destroy(&crew->changed);
	pthread_mutex_destroy(&crew->lock);
	free(crew);
}

struct crew *crew_of(struct workspace *ws)
{
	static const char key;

	return workspace_thread_slot(ws, &key, crew_open, crew_close);
}

struct workspace *crew_workspace(struct crew *crew)
{
	return crew->ws;
}

static void *thread_main(void *arg)
{
	struct child *child = arg;
	struct crew *crew = child->crew;

	child_run(child);
	pthread_mutex_lock(&crew->lock);
	child->is_done = true;
	pthread_cond_broadcast(&crew->changed);
	pthread_mutex_unlock(&crew->lock);
	return NULL;
}

static struct child *find(struct crew *crew, struct str id)
{
	struct child *c = crew->first;

	while (c && (c->is_done || !str_eq(jv_get_str(c->record, "taskId"), id)))
		c = c->next;
	return c;
}

static struct child *child_new(struct crew *crew, struct agent *parent, const struct records *records,
			       const struct jv *record)
{
	struct child *c = xcalloc(1, sizeof(*c));

	c->crew = crew;
	c->arena = arena_new();
	c->record = agent_keep(c->arena, record);
	c->records = (struct records){
		records->ws, {arena_str(c->arena, records->top.agent), arena_str(c->arena, records->top.session)}};
	c->opts = (struct agent_opts){.model = arena_str(c->arena, parent->opts.model),
				      .base_url = arena_str(c->arena, parent->opts.base_url),
				      .dialect = arena_str(c->arena, parent->opts.dialect)};
	c->servers = servers_share(parent->servers);
	c->kin = (struct kin){.crew = crew,
			      .top = c->records.top,
			      .depth = (unsigned)jv_get_int(c->record, "depth", 1),
			      .recorded = parent->kin.recorded,
			      .filter_count = parent->kin.filter_count};
	for (size_t i = 0; i < parent->kin.filter_count; i++)
		c->kin.filters[i] = (struct tool_filter){agent_keep(c->arena, parent->kin.filters[i].only),
							 agent_keep(c->arena, parent->kin.filters[i].never)};
	return c;
}

static uint64_t tokens_spent(const struct records *records)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct jv *tasks;
	struct err ignored;
	int64_t sum = 0;

	if (task_records_read(records, arena, &tasks, &ignored) == 0)
		for (const struct jv_member *m = jv_first(tasks); m; m = m->next)
			sum += jv_get_int(m->value, "tokens", 0);
	return (uint64_t)sum;
}

void crew_start(struct crew *crew, struct agent *parent, const struct records *records, const struct jv *record)
{
	uint64_t tokens = tokens_spent(records);
	struct child *c = child_new(crew, parent, records, record);
	bool starts;

	pthread_mutex_lock(&crew->lock);
	reap(crew);
	starts = !crew->is_closing && !find(crew, jv_get_str(c->record, "taskId"));
	if (starts) {
		c->tree = c->kin.tree = tree_use(crew, c->records.top, tokens);
		starts = pthread_create(&c->thread, NULL, thread_main, c) == 0;
		if (!starts)
			tree_leave(crew, c->tree);
	}
	if (starts) {
		c->next = crew->first;
		crew->first = c;
	}
	pthread_mutex_unlock(&crew->lock);
	if (!starts)
		child_destroy(c);
}

/* --- from outside --- */

static bool is_among(const struct jv *ids, struct str id)
{
	for (const struct jv_member *m = jv_first(ids); m; m = m->next)
		if (str_eq(jv_str_of(m->value), id))
			return true;
	return false;
}

static size_t running(const struct crew *crew, struct str session, const struct jv *ids)
{
	size_t count = 0;

	for (const struct child *c = crew->first; c; c = c->next) {
		bool concerned = ids ? is_among(ids, jv_get_str(c->record, "taskId"))
				     : str_eq(jv_get_str(c->record, "parentSessionId"), session);

		count += !c->is_done && concerned;
	}
	return count;
}

bool crew_wait(struct crew *crew, const struct ctx *ctx, struct str session, const struct jv *ids, bool any,
	       int64_t wait_ns)
{
	int64_t end_ns = clock_monotonic_ns() + wait_ns, now_ns = 0;
	size_t at_first, now;
	struct err ignored;

	pthread_mutex_lock(&crew->lock);
	at_first = now = running(crew, session, ids);
	while (now > 0 && !(any && now < at_first) && (now_ns = clock_monotonic_ns()) < end_ns &&
	       ctx_check(ctx, &ignored) == 0) {
		struct timespec until = clock_timespec(now_ns + LOOK_NS < end_ns ? now_ns + LOOK_NS : end_ns);

		pthread_cond_timedwait(&crew->changed, &crew->lock, &until);
		now = running(crew, session, ids);
	}
	pthread_mutex_unlock(&crew->lock);
	return now == 0 || (any && now < at_first);
}

bool crew_cancel(struct crew *crew, struct str id)
{
	struct child *c;

	pthread_mutex_lock(&crew->lock);
	c = find(crew, id);
	if (c) {
		atomic_store(&c->is_cancelled, true);
		atomic_store(&c->cancel.requested, true);
	}
	pthread_mutex_unlock(&crew->lock);
	return c != NULL;
}
