/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One lock. Each owner with work has a queue of its own, and those whose queue is not empty are in one line: a thread
 * takes a job of the first and puts that owner at the end of the line. An owner that has its share of the threads is
 * passed over; the thread that ends one of its jobs finds it again.
 */
#include "server/pool.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/arena.h"

#define BUCKETS 256

struct job {
	struct job *next;
	void (*run)(void *arg);
	void *arg;
};

struct owner {
	uint64_t key;
	struct owner *next_in_bucket;
	struct owner *next_in_line; /* of those with waiting jobs */
	struct job *first, *last;
	unsigned running;
};

struct pool {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	pthread_t *threads;
	unsigned count, idle, max, share;
	struct owner *owners[BUCKETS];
	struct owner *line_first, *line_last;
	size_t waiting, waiting_max;
	bool ended;
};

static struct owner **owner_slot(struct pool *p, uint64_t key)
{
	struct owner **slot = &p->owners[key % BUCKETS];

	while (*slot && (*slot)->key != key)
		slot = &(*slot)->next_in_bucket;
	return slot;
}

static void line_up(struct pool *p, struct owner *o)
{
	o->next_in_line = NULL;
	*(p->line_first ? &p->line_last->next_in_line : &p->line_first) = o;
	p->line_last = o;
}

/* The next job and its owner; NULL: nothing may run now. */
static struct job *take(struct pool *p, struct owner **ret_owner)
{
	struct owner **slot = &p->line_first, *o, *before = NULL;
	struct job *job;

	while (*slot && (*slot)->running >= p->share) {
		before = *slot;
		slot = &(*slot)->next_in_line;
	}
	o = *slot;
	if (!o)
		return NULL;
	*slot = o->next_in_line;
	if (p->line_last == o)
		p->line_last = before;
	job = o->first;
	o->first = job->next;
	if (o->first)
		line_up(p, o);
	o->running++;
	p->waiting--;
	*ret_owner = o;
	return job;
}

static void job_done(struct pool *p, struct owner *o)
{
	o->running--;
	if (o->running || o->first)
		return;
	*owner_slot(p, o->key) = o->next_in_bucket;
	free(o);
}

static void *work(void *arg)
{
	struct pool *p = arg;

	pthread_mutex_lock(&p->lock);
	for (;;) {
		struct owner *owner;
		struct job *job = take(p, &owner);

		if (!job && p->ended && !p->waiting)
			break;
		if (!job) {
			p->idle++;
			pthread_cond_wait(&p->wake, &p->lock);
			p->idle--;
			continue;
		}
		pthread_mutex_unlock(&p->lock);
		job->run(job->arg);
		free(job);
		pthread_mutex_lock(&p->lock);
		job_done(p, owner);
		if (p->ended && !p->waiting)
			pthread_cond_broadcast(&p->wake);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

struct pool *pool_new(unsigned threads_max, size_t queue_max)
{
	struct pool *p = xcalloc(1, sizeof(*p));

	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->wake, NULL);
	p->max = threads_max;
	p->share = threads_max > 1 ? (3 * threads_max + 3) / 4 : 1;
	p->threads = xcalloc(threads_max, sizeof(*p->threads));
	p->waiting_max = queue_max;
	return p;
}

void pool_destroy(struct pool *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->ended = true;
	pthread_cond_broadcast(&p->wake);
	pthread_mutex_unlock(&p->lock);
	for (unsigned i = 0; i < p->count; i++)
		pthread_join(p->threads[i], NULL);
	pthread_cond_destroy(&p->wake);
	pthread_mutex_destroy(&p->lock);
	free(p->threads);
	free(p);
}

static void enqueue(struct pool *p, uint64_t key, void (*run)(void *arg), void *arg)
{
	struct owner **slot = owner_slot(p, key), *o = *slot;
	struct job *job = xcalloc(1, sizeof(*job));

	job->run = run;
	job->arg = arg;
	if (!o) {
		o = *slot = xcalloc(1, sizeof(*o));
		o->key = key;
	}
	if (o->first) {
		o->last->next = job;
	} else {
		o->first = job;
		line_up(p, o);
	}
	o->last = job;
	p->waiting++;
}

bool pool_add(struct pool *p, uint64_t owner, void (*run)(void *arg), void *arg)
{
	bool added;

	pthread_mutex_lock(&p->lock);
	if (p->idle <= p->waiting && p->count < p->max && pthread_create(&p->threads[p->count], NULL, work, p) == 0)
		p->count++;
	added = p->count && p->waiting < p->waiting_max && !p->ended;
	if (added) {
		enqueue(p, owner, run, arg);
		pthread_cond_signal(&p->wake);
	}
	pthread_mutex_unlock(&p->lock);
	return added;
}

size_t pool_waiting(struct pool *p)
{
	size_t waiting;

	pthread_mutex_lock(&p->lock);
	waiting = p->waiting;
	pthread_mutex_unlock(&p->lock);
	return waiting;
}
