/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool in memory: a table and a list from the last used to the first. What is given out is counted, so that it can be
 * dropped from the pool while somebody still reads it, and no bytes are copied on the way out.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "base/arena.h"
#include "store/layers/cache_internal.h"

#define BUCKETS 4096

struct kept {
	struct cache_key key;
	struct kept *next;          /* in its bucket */
	struct kept *newer, *older; /* by use */
	atomic_uint users;          /* the pool is one of them */
	size_t len;
	char bytes[];
};

struct memory_pool {
	struct cache_pool base;
	pthread_mutex_t lock;
	uint64_t bytes, bytes_max;
	struct kept *newest, *oldest;
	struct kept *buckets[BUCKETS];
};

static struct memory_pool *pool_of(struct cache_pool *p)
{
	return (struct memory_pool *)p;
}

static struct kept **bucket_of(struct memory_pool *p, const struct cache_key *key)
{
	unsigned n = 0;

	for (int i = 0; i < 3; i++) {
		char c = key->hex[i];

		n = n * 16 + (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
	}
	return &p->buckets[n % BUCKETS];
}

static void give_back(struct kept *k)
{
	if (atomic_fetch_sub(&k->users, 1) == 1)
		free(k);
}

static void unlink_use(struct memory_pool *p, struct kept *k)
{
	*(k->newer ? &k->newer->older : &p->newest) = k->older;
	*(k->older ? &k->older->newer : &p->oldest) = k->newer;
	k->newer = k->older = NULL;
}

static void link_newest(struct memory_pool *p, struct kept *k)
{
	k->older = p->newest;
	if (p->newest)
		p->newest->newer = k;
	p->newest = k;
	if (!p->oldest)
		p->oldest = k;
}

static void drop(struct memory_pool *p, struct kept *k)
{
	struct kept **at = bucket_of(p, &k->key);

	while (*at != k)
		at = &(*at)->next;
	*at = k->next;
	unlink_use(p, k);
	p->bytes -= k->len + sizeof *k;
	give_back(k);
}

static struct kept *find(struct memory_pool *p, const struct cache_key *key)
{
	struct kept *k = *bucket_of(p, key);

	while (k && memcmp(k->key.hex, key->hex, CACHE_KEY_LEN) != 0)
		k = k->next;
	return k;
}

static bool memory_get(struct cache_pool *pool, const struct cache_key *key, struct cache_item *ret)
{
	struct memory_pool *p = pool_of(pool);
	struct kept *k;

	pthread_mutex_lock(&p->lock);
	k = find(p, key);
	if (k) {
		atomic_fetch_add(&k->users, 1);
		unlink_use(p, k);
		link_newest(p, k);
		*ret = (struct cache_item){.bytes = str_n(k->bytes, k->len), .own = k};
	}
	pthread_mutex_unlock(&p->lock);
	return k != NULL;
}

static void memory_release(struct cache_pool *pool, struct cache_item *item)
{
	(void)pool;
	give_back(item->own);
}

static void memory_put(struct cache_pool *pool, const struct cache_key *key, struct str bytes)
{
	struct memory_pool *p = pool_of(pool);
	struct kept *k, **bucket;

	if (bytes.len > pool->item_max)
		return;
	k = xcalloc(1, sizeof *k + bytes.len);
	k->key = *key;
	k->len = bytes.len;
	k->users = 1;
	if (bytes.len)
		memcpy(k->bytes, bytes.ptr, bytes.len);
	pthread_mutex_lock(&p->lock);
	if (find(p, key)) { /* another thread read the same; one of them is enough */
		free(k);
	} else {
		while (p->oldest && p->bytes + k->len + sizeof *k > p->bytes_max)
			drop(p, p->oldest);
		bucket = bucket_of(p, key);
		k->next = *bucket;
		*bucket = k;
		link_newest(p, k);
		p->bytes += k->len + sizeof *k;
	}
	pthread_mutex_unlock(&p->lock);
}

static void memory_destroy(struct cache_pool *pool)
{
	struct memory_pool *p = pool_of(pool);

	for (struct kept *k = p->oldest, *newer; k; k = newer) {
		newer = k->newer;
		drop(p, k);
	}
	pthread_mutex_destroy(&p->lock);
	free(p);
}

static const struct cache_pool_ops memory_pool_ops = {
	.get = memory_get, .put = memory_put, .release = memory_release, .destroy = memory_destroy};

struct cache_pool *cache_memory_new(uint64_t bytes_max)
{
	struct memory_pool *p = xcalloc(1, sizeof *p);

	p->base.ops = &memory_pool_ops;
	p->base.item_max = (size_t)(bytes_max / 4);
	p->bytes_max = bytes_max;
	pthread_mutex_init(&p->lock, NULL);
	return &p->base;
}
