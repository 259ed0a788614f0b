/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes that this server did not make. Its own come from the events layer, at once; those of other processes on the
 * same store (another server, the command line) and of other programs are found in the revision log, by one thread that
 * looks a few times a second. It is started with the first subscription, because most servers never have one, and it
 * skips what this process did, so that no change is announced twice.
 *
 * A record may be in the log before its file is in place: it is settled first, so that a client that reads the resource
 * after the notification sees the new bytes.
 */
#include <errno.h>
#include <time.h>

#include "base/strmap.h"
#include "mcp/server.h"
#include "revisions/revisions.h"
#include "store/stores.h"

#define LOOK_EVERY_NS INT64_C(250000000)
#define PAGE          1000
/* Watched files that are looked at themselves, for changes by programs that write no log. */
#define LOOKED_AT 256

static struct ctx follow_ctx(struct server *s, struct arena *arena)
{
	return (struct ctx){.arena = arena, .cancel = &s->follower.cancel, .actor = workspace_actor(s->ws)};
}

static void tell_of(struct server *s, struct ctx *ctx, struct strmap *told, const struct revision *r)
{
	struct store *rev = workspace_revisions(s->ws);
	struct wpath shown;
	struct err ignored;
	bool added;

	if (r->own && r->op != REV_OUTSIDE)
		return;
	if (!wpath_within(r->path, workspace_root(s->ws)))
		return;
	shown = wpath_relative(r->path, workspace_root(s->ws));
	if (store_guard_says(workspace_files(s->ws), shown) == GUARD_HIDDEN)
		return;
	*strmap_put(told, r->path.s, &added) += r->before.exists != r->after.exists;
	if (added && !r->done)
		revisions_settle(rev, ctx, r->path, NULL, &ignored);
}

/* One page of the log; false when there is no more. */
static bool look_at_log(struct server *s, uint64_t *known)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = follow_ctx(s, arena);
	struct store *rev = workspace_revisions(s->ws);
	struct rev_query q = {.since = *known, .limit = PAGE};
	struct strmap *told = strmap_new(arena);
	struct revision *found;
	struct err ignored;
	size_t count;
	bool more = false;

	if (revisions_query(rev, &ctx, &q, &found, &count, &more, &ignored) != 0) {
		/* retention dropped records that were not read yet: only the present state can be announced */
		revisions_head(rev, &ctx, known, &ignored);
		return false;
	}
	for (size_t i = 0; i < count; i++)
		tell_of(s, &ctx, told, &found[i]);
	for (size_t i = 0; i < count; i++) {
		size_t *changes = strmap_find(told, found[i].path.s);

		if (!changes || *changes == SIZE_MAX)
			continue;
		subs_tell(s, wpath_relative(found[i].path, workspace_root(s->ws)), *changes > 0);
		*changes = SIZE_MAX; /* once is enough */
	}
	if (count)
		*known = found[count - 1].number;
	return more;
}

/* Records another program's change of a file; it is then announced with the next page of the log. */
static void look_at_files(struct server *s)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = follow_ctx(s, arena);
	struct wpath *watched = ARENA_ARRAY(arena, struct wpath, LOOKED_AT);
	size_t count = subs_watched(s, arena, watched, LOOKED_AT);

	for (size_t i = 0; i < count; i++) {
		struct wpath logged;
		struct err ignored;

		if (wpath_join(arena, workspace_root(s->ws), watched[i], &logged, &ignored) == 0)
			revisions_settle(workspace_revisions(s->ws), &ctx, logged, NULL, &ignored);
	}
}

static void *follow(void *arg)
{
	struct server *s = arg;
	struct follower *f = &s->follower;
	uint64_t known = f->known;

	pthread_mutex_lock(&f->lock);
	while (!f->ended) {
		struct timespec until;

		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_nsec += LOOK_EVERY_NS;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		if (pthread_cond_timedwait(&f->end, &f->lock, &until) != ETIMEDOUT)
			continue;
		pthread_mutex_unlock(&f->lock);
		look_at_files(s);
		while (look_at_log(s, &known))
			continue;
		pthread_mutex_lock(&f->lock);
	}
	pthread_mutex_unlock(&f->lock);
	return NULL;
}

void follow_start(struct server *s, struct ctx *ctx)
{
	struct follower *f = &s->follower;
	pthread_condattr_t attr;
	struct err ignored;

	pthread_mutex_lock(&f->lock);
	/* from what is there now: before the subscription is confirmed */
	if (!f->running && revisions_head(workspace_revisions(s->ws), ctx, &f->known, &ignored) == 0) {
		pthread_condattr_init(&attr);
		pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
		pthread_cond_init(&f->end, &attr);
		pthread_condattr_destroy(&attr);
		f->running = pthread_create(&f->thread, NULL, follow, s) == 0;
		if (!f->running)
			pthread_cond_destroy(&f->end);
	}
	pthread_mutex_unlock(&f->lock);
}

void follow_end(struct server *s)
{
	struct follower *f = &s->follower;

	if (!f->running)
		return;
	atomic_store(&f->cancel.requested, true);
	pthread_mutex_lock(&f->lock);
	f->ended = true;
	pthread_cond_signal(&f->end);
	pthread_mutex_unlock(&f->lock);
	pthread_join(f->thread, NULL);
	pthread_cond_destroy(&f->end);
}
