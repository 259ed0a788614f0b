/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bucket for each token that was used lately: it holds as many requests as a minute allows, and fills steadily. So a
 * client may do its minute's work at once, and then continues at the rate that it was given.
 */
#include "server/gate.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/hash.h"

#define BUCKETS  256
#define IDLE_NS  (120 * NS_PER_S)
#define MINUTE_S 60
#define BUSY_S   1

struct gate_place {
	struct gate_place *next;
	struct str token;
	double left; /* requests that may be made now */
	int64_t at_ns;
	uint64_t running;
};

struct gate {
	struct gate_limits limits;
	pthread_mutex_t lock;
	struct gate_place *places[BUCKETS];
};

struct gate *gate_new(struct gate_limits limits)
{
	struct gate *g = xcalloc(1, sizeof(*g));

	g->limits = limits;
	pthread_mutex_init(&g->lock, NULL);
	return g;
}

static void place_free(struct gate_place *place)
{
	free((char *)place->token.ptr);
	free(place);
}

void gate_destroy(struct gate *g)
{
	if (!g)
		return;
	for (size_t i = 0; i < BUCKETS; i++)
		while (g->places[i]) {
			struct gate_place *place = g->places[i];

			g->places[i] = place->next;
			place_free(place);
		}
	pthread_mutex_destroy(&g->lock);
	free(g);
}

/* gate.lock is held. */
static struct gate_place *place_of(struct gate *g, struct str token, int64_t now)
{
	struct gate_place **slot = &g->places[hash_u64(token, 19) % BUCKETS];

	while (*slot && !str_eq((*slot)->token, token))
		slot = &(*slot)->next;
	if (!*slot) {
		*slot = xcalloc(1, sizeof(**slot));
		(*slot)->token = str_n(xstrndup(token), token.len);
		(*slot)->left = (double)g->limits.per_minute;
		(*slot)->at_ns = now;
	}
	return *slot;
}

/* Fills the bucket for the time that has passed. */
static void fill(const struct gate *g, struct gate_place *place, int64_t now)
{
	double rate = (double)g->limits.per_minute / MINUTE_S;

	place->left += rate * ((double)(now - place->at_ns) / (double)NS_PER_S);
	if (place->left > (double)g->limits.per_minute)
		place->left = (double)g->limits.per_minute;
	place->at_ns = now;
}

int gate_enter(struct gate *g, struct str token, struct gate_place **ret_place, unsigned *ret_retry_s, struct err *err)
{
	int64_t now = clock_monotonic_ns();
	struct gate_place *place;
	bool too_fast, too_many;

	*ret_place = NULL;
	if (!g->limits.per_minute && !g->limits.at_once)
		return 0;
	pthread_mutex_lock(&g->lock);
	place = place_of(g, token, now);
	fill(g, place, now);
	too_fast = g->limits.per_minute && place->left < 1;
	too_many = g->limits.at_once && place->running >= g->limits.at_once;
	if (too_fast)
		*ret_retry_s = 1 + (unsigned)((1 - place->left) * MINUTE_S / (double)g->limits.per_minute);
	else if (too_many)
		*ret_retry_s = BUSY_S;
	if (!too_fast && !too_many) {
		place->running++;
		place->left -= 1;
		*ret_place = place;
	}
	pthread_mutex_unlock(&g->lock);
	if (too_fast)
		return err_set(err, ERR_RATE_LIMITED,
			       "a token may make %llu requests per minute here; try again in %u s",
			       (unsigned long long)g->limits.per_minute, *ret_retry_s);
	if (too_many)
		return err_set(err, ERR_RATE_LIMITED,
			       "a token may have %llu requests in progress here; wait until one has ended",
			       (unsigned long long)g->limits.at_once);
	return 0;
}

void gate_leave(struct gate *g, struct gate_place *place)
{
	if (!place)
		return;
	pthread_mutex_lock(&g->lock);
	place->running--;
	pthread_mutex_unlock(&g->lock);
}

void gate_sweep(struct gate *g)
{
	int64_t now = clock_monotonic_ns();

	pthread_mutex_lock(&g->lock);
	for (size_t i = 0; i < BUCKETS; i++)
		for (struct gate_place **slot = &g->places[i]; *slot;) {
			struct gate_place *place = *slot;

			if (place->running || now - place->at_ns < IDLE_NS) {
				slot = &place->next;
				continue;
			}
			*slot = place->next;
			place_free(place);
		}
	pthread_mutex_unlock(&g->lock);
}
