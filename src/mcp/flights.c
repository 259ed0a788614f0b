/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests in flight, by id. Quick calls never enter: they are answered before the next line is read. An id is compared
 * by type and value, so 1 and "1" are two ids.
 */
#include "base/hash.h"
#include "mcp/server.h"

static uint64_t id_hash(const struct jv *id)
{
	return id->type == JV_STR ? hash_u64(id->u.s, 1) : hash_u64(str_n(&id->u.i, sizeof(id->u.i)), 2);
}

static struct request **slot_of(struct flights *f, const struct jv *id, uint64_t hash)
{
	struct request **slot = &f->bucket[hash % FLIGHT_BUCKETS];

	while (*slot && ((*slot)->hash != hash || !jv_equal((*slot)->id, id)))
		slot = &(*slot)->next_in_bucket;
	return slot;
}

bool flights_has(struct server *s, const struct jv *id)
{
	struct flights *f = &s->flights;
	bool found;

	pthread_mutex_lock(&f->lock);
	found = f->count && *slot_of(f, id, id_hash(id));
	pthread_mutex_unlock(&f->lock);
	return found;
}

bool flights_add(struct server *s, struct request *req)
{
	struct flights *f = &s->flights;
	struct request **slot;

	req->hash = id_hash(req->id);
	pthread_mutex_lock(&f->lock);
	if (f->count >= MCP_IN_FLIGHT_MAX) {
		pthread_mutex_unlock(&f->lock);
		return false;
	}
	slot = slot_of(f, req->id, req->hash);
	*slot = req;
	req->next_in_bucket = NULL;
	req->in_flight = true;
	f->count++;
	pthread_mutex_unlock(&f->lock);
	return true;
}

bool flights_remove(struct server *s, struct request *req)
{
	struct flights *f = &s->flights;
	struct request **slot;

	if (!req->in_flight)
		return true;
	pthread_mutex_lock(&f->lock);
	slot = slot_of(f, req->id, req->hash);
	*slot = req->next_in_bucket;
	req->in_flight = false;
	f->count--;
	pthread_mutex_unlock(&f->lock);
	return !atomic_load(&req->cancel.requested);
}

void flights_cancel(struct server *s, const struct jv *id)
{
	struct flights *f = &s->flights;
	struct request *req;

	pthread_mutex_lock(&f->lock);
	req = f->count ? *slot_of(f, id, id_hash(id)) : NULL;
	if (req)
		atomic_store(&req->cancel.requested, true);
	pthread_mutex_unlock(&f->lock);
}

void flights_cancel_all(struct server *s, bool only_waiting)
{
	struct flights *f = &s->flights;

	pthread_mutex_lock(&f->lock);
	for (size_t i = 0; i < FLIGHT_BUCKETS; i++)
		for (struct request *req = f->bucket[i]; req; req = req->next_in_bucket)
			if (req->waits || !only_waiting)
				atomic_store(&req->cancel.requested, true);
	pthread_mutex_unlock(&f->lock);
}
