/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a sandbox is made in advance. An agent runs one command after another with pauses in which a model thinks: the
 * pause makes the next sandbox. A program that runs one command and ends, such as `stead exec`, would only pay for it;
 * so the second command of the same kind asks for the first spare.
 *
 * A thread makes it, since that takes longer than the command saves, and ends it when it has been idle. Whether a job
 * really fits is decided by the sandbox; the key here only tells jobs of different kinds apart, so that they do not end
 * each other's spares.
 */
#include "home/exec/spares.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/limits.h"

struct spares {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct sandbox_spare *spare; /* NULL: none waits */
	uint64_t key;                /* of what it is for */
	uint64_t last;               /* of the last job */
	int64_t used_ns;             /* when a job came last */
	/* What is to be made: a copy of a job, in an arena that the thread takes over. */
	struct arena *arena;
	struct sandbox_job wanted;
	uint64_t wanted_key;
	bool is_wanted, is_making, is_refused;
	pthread_t thread;
	bool has_thread, thread_is_over, ends;
};

static atomic_int spares_alive; /* of the process */

static void end_spare(struct sandbox_spare *spare)
{
	if (!spare)
		return;
	sandbox_spare_close(spare);
	atomic_fetch_sub(&spares_alive, 1);
}

/* --- the thread --- */

/* Without the lock, which is held on entry and return. */
static void make_wanted(struct spares *s)
{
	struct ctx ctx = {.arena = s->arena};
	struct sandbox_job job = s->wanted;
	struct sandbox_spare *spare = NULL, *old;
	uint64_t key = s->wanted_key;
	struct err ignored;
	int r = 0;

	s->is_wanted = false;
	s->is_making = true;
	s->arena = NULL;
	pthread_mutex_unlock(&s->lock);
	if (atomic_fetch_add(&spares_alive, 1) < SPARES_ALL_MAX)
		r = sandbox_spare_open(&ctx, &job, &spare, &ignored);
	if (!spare)
		atomic_fetch_sub(&spares_alive, 1);
	arena_destroy(ctx.arena);
	pthread_mutex_lock(&s->lock);
	old = s->spare;
	s->spare = spare;
	s->key = key;
	s->is_making = false;
	s->is_refused = r == -ERR_UNSUPPORTED;
	pthread_mutex_unlock(&s->lock);
	end_spare(old);
	pthread_mutex_lock(&s->lock);
}

static void *make_and_end(void *arg)
{
	struct spares *s = arg;

	pthread_mutex_lock(&s->lock);
	while (!s->ends) {
		int64_t until = s->used_ns + SPARE_IDLE_S * NS_PER_S;
		struct timespec at = clock_timespec(until);

		if (s->is_wanted)
			make_wanted(s);
		else if (clock_monotonic_ns() >= until)
			break;
		else
			pthread_cond_timedwait(&s->changed, &s->lock, &at);
	}
	end_spare(s->spare);
	s->spare = NULL;
	s->thread_is_over = true; /* it is joined by the next one, or at the end */
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

static void start_thread(struct spares *s)
{
	if (s->has_thread && !s->thread_is_over)
		return;
	if (s->has_thread)
		pthread_join(s->thread, NULL);
	s->thread_is_over = false;
	s->has_thread = pthread_create(&s->thread, NULL, make_and_end, s) == 0;
}

/* --- of a workspace --- */

static void *spares_open(struct workspace *ws)
{
	struct spares *s = xcalloc(1, sizeof *s);
	pthread_condattr_t attr;

	(void)ws;
	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&s->changed, &attr);
	pthread_condattr_destroy(&attr);
	return s;
}

static void drop_wanted(struct spares *s)
{
	if (s->arena)
		arena_destroy(s->arena);
	s->arena = NULL;
	s->is_wanted = false;
}

static void spares_close(void *state)
{
	struct spares *s = state;
	bool join;

	pthread_mutex_lock(&s->lock);
	s->ends = true;
	join = s->has_thread;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	if (join)
		pthread_join(s->thread, NULL);
	drop_wanted(s);
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static struct spares *spares_of(struct workspace *ws)
{
	static const char key;

	return workspace_slot(ws, &key, spares_open, spares_close);
}

/* --- jobs --- */

static bool can_have_one(const struct sandbox_job *job)
{
	return (job->tier == SANDBOX_AUTO || job->tier == SANDBOX_NAMESPACES) && !job->worker && !job->keep &&
	       !job->tty && !(job->net && (job->net->host_count || job->net->secret_count));
}

/* Never 0. */
static uint64_t key_of(struct arena *arena, const struct sandbox_job *job)
{
	const struct sandbox_limits *l = &job->limits;
	struct str text =
		arena_printf(arena, "%d %d %llu %llu %llu %llu\n%s\n%s\n%.*s", (int)job->tier, job->files.store != NULL,
			     (unsigned long long)l->memory, (unsigned long long)l->disk, (unsigned long long)l->files,
			     (unsigned long long)l->processes, job->files.dir ? job->files.dir : "",
			     job->files.at ? job->files.at : "", STR_ARG(job->owner));
	uint64_t hash = hash_u64(text, 0);

	for (size_t i = 0; job->paths && job->paths[i]; i++)
		hash = hash_u64(str_of(job->paths[i]), hash);
	return hash ? hash : 1;
}

static const char *copy_text(struct arena *arena, const char *text)
{
	return text ? arena_cstr(arena, str_of(text)) : NULL;
}

/* What a spare is made of; of the store it only counts that there is one. */
static void want(struct spares *s, const struct sandbox_job *job, uint64_t key)
{
	struct arena *arena = arena_new();
	size_t count = 0;
	const char **paths;

	while (job->paths && job->paths[count])
		count++;
	paths = ARENA_ARRAY(arena, const char *, count + 1);
	for (size_t i = 0; i < count; i++)
		paths[i] = copy_text(arena, job->paths[i]);
	drop_wanted(s);
	s->arena = arena;
	s->wanted = (struct sandbox_job){.tier = job->tier,
					 .owner = arena_str(arena, job->owner),
					 .paths = paths,
					 .limits = job->limits,
					 .files = {.store = job->files.store,
						   .at = copy_text(arena, job->files.at),
						   .dir = copy_text(arena, job->files.dir)}};
	s->wanted_key = key;
	s->is_wanted = true;
	start_thread(s);
	pthread_cond_signal(&s->changed);
}

struct sandbox_spare *exec_spare_take(struct workspace *ws, struct ctx *ctx, const struct sandbox_job *job)
{
	struct spares *s = can_have_one(job) ? spares_of(ws) : NULL;
	struct sandbox_spare *spare = NULL;

	if (!s)
		return NULL;
	pthread_mutex_lock(&s->lock);
	s->used_ns = clock_monotonic_ns();
	if (s->spare && s->key == key_of(ctx->arena, job)) {
		spare = s->spare;
		s->spare = NULL;
	}
	pthread_mutex_unlock(&s->lock);
	return spare;
}

void exec_spare_give(struct workspace *ws, struct ctx *ctx, const struct sandbox_job *job, struct sandbox_spare *spare)
{
	struct spares *s = can_have_one(job) ? spares_of(ws) : NULL;
	uint64_t key;

	end_spare(spare);
	if (!s)
		return;
	key = key_of(ctx->arena, job);
	pthread_mutex_lock(&s->lock);
	s->used_ns = clock_monotonic_ns();
	if (key == s->last && !s->is_refused && !(s->spare && s->key == key) &&
	    !((s->is_wanted || s->is_making) && s->wanted_key == key))
		want(s, job, key);
	s->last = key;
	pthread_mutex_unlock(&s->lock);
}
