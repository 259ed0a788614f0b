/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads for work that may take long. They are started when they are needed; the queue has an end. Work has an owner
 * (a workspace): owners take turns, and no single one has more than three quarters of the threads, so that nobody can
 * keep the others waiting.
 */
#ifndef STEAD_SERVER_POOL_H
#define STEAD_SERVER_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pool;

struct pool *pool_new(unsigned threads_max, size_t queue_max);
/* Ends after everything that was added has run. */
void pool_destroy(struct pool *pool);
/* False: too much is waiting, or no thread is available. */
bool pool_add(struct pool *pool, uint64_t owner, void (*run)(void *arg), void *arg);
size_t pool_waiting(struct pool *pool);

#endif
