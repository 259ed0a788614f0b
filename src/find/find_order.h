/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts the results of several threads back into list order. Files are started in order but finish in any order; an
 * outcome is delivered when all before it have been. The window is bounded: a thread that is too far ahead waits.
 */
#ifndef STEAD_FIND_FIND_ORDER_H
#define STEAD_FIND_FIND_ORDER_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/ctx.h"

#define ORDER_WINDOW 1024

/* One line of an outcome; its text is in the outcome's bytes. */
struct hit {
	uint64_t line;
	size_t at, len;
	bool is_match, cut;
	bool is_after; /* a context line that belongs to the match before it */
};

/* What was found in one file. */
struct outcome {
	size_t path_len; /* the path is at the start of bytes */
	uint64_t matches;
	struct hit *hits;
	size_t count, cap;
	char *bytes;
	size_t len, bytes_cap;
	bool done; /* nothing comes after */
};

struct outcome *outcome_new(struct str path);
void outcome_destroy(struct outcome *outcome);
void outcome_add(struct outcome *outcome, struct hit hit, struct str text);

struct order {
	pthread_mutex_t lock;
	pthread_cond_t moved;
	struct outcome *ring[ORDER_WINDOW]; /* NULL: not there yet */
	_Atomic uint64_t next;              /* the file whose turn it is */
	atomic_bool failed;
	/* Called by one thread at a time, in order. Keeps nothing of the outcome. */
	int (*give)(void *arg, struct outcome *outcome, struct err *err);
	void *arg;
};

void order_init(struct order *order, int (*give)(void *, struct outcome *, struct err *), void *arg);
void order_release(struct order *order);
/* The file `seq` is done; takes ownership of the outcome (NULL: nothing was found). Delivers every outcome whose turn
   it is now. */
int order_deliver(struct order *order, const struct ctx *ctx, uint64_t seq, struct outcome *outcome, struct err *err);
/* True when it is the turn of `seq`: then the thread that searches it, and has not delivered it yet, may give parts of
   it directly. */
bool order_is_turn(const struct order *order, uint64_t seq);
/* Wakes all waiting threads: the search is over. */
void order_fail(struct order *order);

#endif
