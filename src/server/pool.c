/* SPDX-License-Identifier: Apache-2.0 */
/* A plain pool: one lock, one ring, threads that are started only while work waits and none is idle. */
#include "server/pool.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/arena.h"

struct job {
	void (*run)(void *arg);
	void *arg;
};

struct pool {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	pthread_t *threads;
	unsigned count, idle, max;
	struct job *ring;
	size_t first, waiting, ring_size;
	bool ended;
};

static void *work(void *arg)
{
	struct pool *p = arg;

	pthread_mutex_lock(&p->lock);
	for (;;) {
		struct job job;

		if (!p->waiting && p->ended)
			break;
		if (!p->waiting) {
			p->idle++;
			pthread_cond_wait(&p->wake, &p->lock);
			p->idle--;
			continue;
		}
		job = p->ring[p->first];
		p->first = (p->first + 1) % p->ring_size;
		p->waiting--;
		pthread_mutex_unlock(&p->lock);
		job.run(job.arg);
		pthread_mutex_lock(&p->lock);
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
	p->threads = xcalloc(threads_max, sizeof(*p->threads));
	p->ring_size = queue_max;
	p->ring = xcalloc(queue_max, sizeof(*p->ring));
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
	free(p->ring);
	free(p);
}

bool pool_add(struct pool *p, void (*run)(void *arg), void *arg)
{
	bool added;

	pthread_mutex_lock(&p->lock);
	if (p->idle <= p->waiting && p->count < p->max && pthread_create(&p->threads[p->count], NULL, work, p) == 0)
		p->count++;
	added = p->count && p->waiting < p->ring_size && !p->ended;
	if (added) {
		p->ring[(p->first + p->waiting) % p->ring_size] = (struct job){run, arg};
		p->waiting++;
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
