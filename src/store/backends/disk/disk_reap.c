/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Closes replaced files. When the last name and the last descriptor of a file go, the kernel frees its blocks, and
 * whoever took the last one away waits for that: a discard that a busy disk takes its time for, or a truncate of many
 * extents. Replacing a file of 1 KB was seen to spend nine tenths of its time there. So the old file is held open over
 * the rename, and a thread lets go of it. Nothing depends on when: the file no longer has a name.
 *
 * Waking the thread for each file would cost every writer a system call: once awake, it gathers for a moment.
 *
 * The thread is started by the second replacement, since a command that changes one file and ends would only pay for
 * it. What does not fit into the queue is closed by whoever brings it, so nothing piles up. After a fork the child has
 * no such thread and closes for itself.
 */
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/backends/disk/disk.h"

#define QUEUE     128
#define GATHER_NS 5000000

struct disk_reaper {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	pthread_t thread;
	_Atomic pid_t owner; /* the process that has the thread; 0: none was started */
	bool asked, asleep, ends;
	size_t count;
	int fds[QUEUE];
};

struct disk_reaper *disk_reaper_new(void)
{
	struct disk_reaper *r = xcalloc(1, sizeof(*r));

	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->wake, NULL);
	return r;
}

/* Waits for work, then for more of it. The lock is held on entry and return, and released while waiting. */
static void gather(struct disk_reaper *r)
{
	struct timespec until;

	r->asleep = true;
	while (r->count == 0 && !r->ends)
		pthread_cond_wait(&r->wake, &r->lock);
	r->asleep = false;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += GATHER_NS;
	until.tv_sec += until.tv_nsec / NS_PER_S;
	until.tv_nsec %= NS_PER_S;
	while (r->count < QUEUE / 2 && !r->ends && pthread_cond_timedwait(&r->wake, &r->lock, &until) == 0)
		continue;
}

static void *reap(void *arg)
{
	struct disk_reaper *r = arg;
	int fds[QUEUE];

	pthread_mutex_lock(&r->lock);
	while (r->count || !r->ends) {
		size_t count;

		gather(r);
		count = r->count;
		memcpy(fds, r->fds, count * sizeof(fds[0]));
		r->count = 0;
		pthread_mutex_unlock(&r->lock);
		for (size_t i = 0; i < count; i++)
			close(fds[i]);
		pthread_mutex_lock(&r->lock);
	}
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

/* The thread is another process's, whose locks stay as they were at the fork. */
static bool is_inherited(struct disk_reaper *r)
{
	pid_t owner = atomic_load(&r->owner);

	return owner && owner != getpid();
}

/* True when the thread takes it; *ret_wake when it must be told. The lock is held. */
static bool queue(struct disk_reaper *r, int fd, bool *ret_wake)
{
	if (!r->asked) {
		r->asked = true;
		return false;
	}
	if (!r->owner && pthread_create(&r->thread, NULL, reap, r) == 0)
		r->owner = getpid();
	if (!r->owner || r->count == QUEUE)
		return false;
	r->fds[r->count++] = fd;
	*ret_wake = r->asleep || r->count == QUEUE / 2;
	return true;
}

void disk_let_go(const struct disk *d, int fd)
{
	bool queued, wake = false;

	if (fd < 0)
		return;
	if (is_inherited(d->reaper)) {
		close(fd);
		return;
	}
	pthread_mutex_lock(&d->reaper->lock);
	queued = queue(d->reaper, fd, &wake);
	pthread_mutex_unlock(&d->reaper->lock);
	if (wake)
		pthread_cond_signal(&d->reaper->wake);
	if (!queued)
		close(fd);
}

void disk_reaper_destroy(struct disk_reaper *r)
{
	if (r->owner && !is_inherited(r)) {
		pthread_mutex_lock(&r->lock);
		r->ends = true;
		pthread_mutex_unlock(&r->lock);
		pthread_cond_signal(&r->wake);
		pthread_join(r->thread, NULL);
	}
	if (!is_inherited(r)) { /* else destroying would wait for the other process's thread */
		pthread_cond_destroy(&r->wake);
		pthread_mutex_destroy(&r->lock);
	}
	free(r);
}
