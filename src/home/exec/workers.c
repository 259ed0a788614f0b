/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker is found by a hash over everything that its sandbox was made of: what it imports, the variables, the limits,
 * the directories, the packages. So whatever of it changes, the next call has a new worker; the old one is ended.
 *
 * A program that runs once, such as `stead call`, gains nothing from a worker. So unless the caller knows better, the
 * first call of a program makes none.
 *
 * Each opened workspace has a few, all of a process together have a bound, and one that was idle for some minutes is
 * ended by a thread that lives as long as there are any.
 */
#include "home/exec/workers.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/limits.h"
#include "sandbox/snapshot.h"
#include "text/jv.h"

#define KEY_LEN  32
#define ARGV_MAX 5

extern const struct str embedded_worker;

struct entry {
	struct sandbox_worker *worker; /* NULL: the entry is free */
	char key[KEY_LEN + 1];
	uint64_t name; /* hash of it */
	bool is_busy;
	int64_t idle_ns; /* since when */
};

struct workers {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct entry entries[WORKERS_MAX];
	uint64_t called[WORKERS_MAX]; /* names of programs that were asked for once, the newest first */
	pthread_t thread;
	bool has_thread, thread_is_over, ends;
};

static atomic_int workers_alive; /* of the process */

static void close_entry(struct entry *e)
{
	sandbox_worker_close(e->worker);
	*e = (struct entry){0};
	atomic_fetch_sub(&workers_alive, 1);
}

/* --- idle ones --- */

/* Ends what has been idle too long. Returns when to look again; 0: there is nothing to wait for. */
static int64_t sweep(struct workers *w)
{
	int64_t now = clock_monotonic_ns(), next = 0;

	for (size_t i = 0; i < COUNT(w->entries); i++) {
		struct entry *e = &w->entries[i];
		int64_t until = e->idle_ns + WORKER_IDLE_S * NS_PER_S;

		if (!e->worker)
			continue;
		if (!e->is_busy && until <= now) {
			close_entry(e);
			continue;
		}
		if (e->is_busy)
			until = now + WORKER_IDLE_S * NS_PER_S;
		if (!next || until < next)
			next = until;
	}
	return next;
}

static void *keep_sweeping(void *arg)
{
	struct workers *w = arg;
	int64_t next;

	pthread_mutex_lock(&w->lock);
	while (!w->ends && (next = sweep(w)) != 0) {
		struct timespec until = {next / NS_PER_S, next % NS_PER_S};

		pthread_cond_timedwait(&w->changed, &w->lock, &until);
	}
	w->thread_is_over = true; /* it is joined by the next one, or at the end */
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

static void start_sweeping(struct workers *w)
{
	if (w->has_thread && !w->thread_is_over)
		return;
	if (w->has_thread)
		pthread_join(w->thread, NULL);
	w->thread_is_over = false;
	w->has_thread = pthread_create(&w->thread, NULL, keep_sweeping, w) == 0;
}

/* --- of a workspace --- */

static void *workers_open(struct workspace *ws)
{
	struct workers *w = xcalloc(1, sizeof(*w));
	pthread_condattr_t attr;

	(void)ws;
	pthread_mutex_init(&w->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&w->changed, &attr);
	pthread_condattr_destroy(&attr);
	return w;
}

static void workers_close(void *state)
{
	struct workers *w = state;
	bool join;

	pthread_mutex_lock(&w->lock);
	w->ends = true;
	join = w->has_thread;
	pthread_cond_broadcast(&w->changed);
	pthread_mutex_unlock(&w->lock);
	if (join)
		pthread_join(w->thread, NULL);
	for (size_t i = 0; i < COUNT(w->entries); i++)
		if (w->entries[i].worker)
			close_entry(&w->entries[i]);
	pthread_cond_destroy(&w->changed);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

static struct workers *workers_of(struct workspace *ws)
{
	static const char key;

	return workspace_slot(ws, &key, workers_open, workers_close);
}

/* --- finding one --- */

static void add_list(struct buf *text, const char *const *list)
{
	for (size_t i = 0; list && list[i]; i++) {
		buf_add(text, str_of(list[i]));
		buf_char(text, '\0');
	}
	buf_char(text, '\1');
}

static void key_of(struct arena *arena, const struct sandbox_job *job, struct str input, char *ret)
{
	struct buf text;
	struct str hash;

	buf_init(&text, arena, WORKER_INPUT_MAX);
	add_list(&text, job->env);
	add_list(&text, job->paths);
	buf_printf(&text, "%d %d %llu %llu %llu %s\n%s\n", (int)job->tier, job->files.store != NULL,
		   (unsigned long long)job->limits.memory, (unsigned long long)job->limits.disk,
		   (unsigned long long)job->limits.processes, job->files.dir ? job->files.dir : "",
		   job->files.at ? job->files.at : "");
	if (job->keep && job->keep->about)
		jv_write(&text, job->keep->about);
	for (size_t i = 0; job->net && i < job->net->secret_count; i++)
		buf_printf(&text, "\n%.*s", STR_ARG(job->net->secrets[i].name));
	buf_char(&text, '\n');
	buf_add(&text, input);
	hash = hash_hex128(arena, buf_str(&text));
	memcpy(ret, hash.ptr, KEY_LEN);
	ret[KEY_LEN] = 0;
}

/* One that waits. What belongs to an earlier content of the program is ended on the way. */
static struct entry *find(struct workers *w, const char *key, uint64_t name)
{
	struct entry *found = NULL;

	for (size_t i = 0; i < COUNT(w->entries); i++) {
		struct entry *e = &w->entries[i];

		if (!e->worker || e->is_busy || e->name != name)
			continue;
		if (strcmp(e->key, key) == 0)
			found = e;
		else
			close_entry(e);
	}
	return found;
}

/* Room for one more: free, or of the one that has been idle longest. */
static struct entry *make_room(struct workers *w)
{
	struct entry *oldest = NULL;

	for (size_t i = 0; i < COUNT(w->entries); i++) {
		struct entry *e = &w->entries[i];

		if (!e->worker && atomic_load(&workers_alive) < WORKERS_ALL_MAX)
			return e;
		if (e->worker && !e->is_busy && (!oldest || e->idle_ns < oldest->idle_ns))
			oldest = e;
	}
	if (oldest)
		close_entry(oldest);
	return oldest;
}

/* True when it was asked for before; remembers it. */
static bool was_called(struct workers *w, uint64_t name)
{
	for (size_t i = 0; i < COUNT(w->called); i++)
		if (w->called[i] == name)
			return true;
	memmove(w->called + 1, w->called, sizeof w->called - sizeof w->called[0]);
	w->called[0] = name;
	return false;
}

static struct entry *start(struct workers *w, struct ctx *ctx, const struct sandbox_job *job, struct str input)
{
	const char **argv = ARENA_ARRAY(ctx->arena, const char *, ARGV_MAX + 2);
	struct sandbox_job own = *job;
	struct entry *e = make_room(w);
	struct err ignored;
	size_t n = 0;

	for (; n < ARGV_MAX && job->argv[n]; n++)
		argv[n] = job->argv[n];
	argv[n - 1] = arena_printf(ctx->arena, "%.*s%s", STR_ARG(embedded_worker), argv[n - 1]).ptr;
	argv[n] = "worker";
	own.argv = argv;
	own.input = input;
	own.limits.timeout_ms = SANDBOX_SECONDS_MAX * INT64_C(1000); /* each call has its own */
	if (!e || sandbox_worker_open(ctx, &own, &e->worker, &ignored) != 0)
		return NULL;
	atomic_fetch_add(&workers_alive, 1);
	return e;
}

struct sandbox_worker *exec_worker_take(struct workspace *ws, struct ctx *ctx, const struct sandbox_job *job,
					struct str program, struct str input, bool at_once)
{
	struct workers *w = workers_of(ws);
	uint64_t name = hash_u64(program, 0);
	struct sandbox_worker *worker = NULL;
	char key[KEY_LEN + 1];
	struct entry *e;

	key_of(ctx->arena, job, input, key);
	pthread_mutex_lock(&w->lock);
	e = find(w, key, name);
	if (!e && (was_called(w, name) || at_once) && (e = start(w, ctx, job, input))) {
		memcpy(e->key, key, sizeof key);
		e->name = name;
		start_sweeping(w);
	}
	if (e) {
		e->is_busy = true;
		worker = e->worker;
	}
	pthread_mutex_unlock(&w->lock);
	return worker;
}

void exec_worker_give(struct workspace *ws, struct sandbox_worker *worker)
{
	struct workers *w = workers_of(ws);

	if (!worker)
		return;
	pthread_mutex_lock(&w->lock);
	for (size_t i = 0; i < COUNT(w->entries); i++) {
		struct entry *e = &w->entries[i];

		if (e->worker != worker)
			continue;
		e->is_busy = false;
		e->idle_ns = clock_monotonic_ns();
		if (sandbox_worker_is_spent(worker))
			close_entry(e);
	}
	pthread_mutex_unlock(&w->lock);
}
