/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the cache share. A pool keeps bytes under keys, in memory or in a directory, up to a size; it may
 * forget any of them at any time and never gives back other bytes than were put in. Thread-safe.
 */
#ifndef STEAD_STORE_LAYERS_CACHE_INTERNAL_H
#define STEAD_STORE_LAYERS_CACHE_INTERNAL_H

#include "store/stores.h"

#define CACHE_KEY_LEN 64 /* hex digits of a SHA-256: a tenant who chooses paths cannot make two keys meet */

struct cache_key {
	char hex[CACHE_KEY_LEN + 1];
};

struct cache_item {
	struct str bytes;
	void *own;      /* what keeps them */
	int64_t used_s; /* when it was used last, as far as the pool knows */
};

struct cache_pool;

struct cache_pool_ops {
	bool (*get)(struct cache_pool *pool, const struct cache_key *key, struct cache_item *ret);
	void (*put)(struct cache_pool *pool, const struct cache_key *key, struct str bytes);
	void (*release)(struct cache_pool *pool, struct cache_item *item);
	void (*destroy)(struct cache_pool *pool);
};

struct cache_pool {
	const struct cache_pool_ops *ops;
	size_t item_max; /* larger ones are not kept */
};

struct cache_pool *cache_memory_new(uint64_t bytes_max);
/* NULL when the directory cannot be made. */
struct cache_pool *cache_disk_new(const char *dir, uint64_t bytes_max);

struct cache {
	struct store base;
	struct cache_pool *pool;
	char *identity;
};

struct cache_key cache_key_of(const struct cache *c, struct wpath path, struct str version, uint64_t size);
/* The whole file from the inner store, into `pool` and, up to the pool's largest item, into `ret` (heap). Writes what
   was read to `sink` when that is not NULL. */
struct cache_fill {
	char *ptr;
	size_t len, cap;
	bool too_much; /* it was longer than the pool keeps: ptr holds nothing */
};
int cache_read_whole(struct cache *c, struct ctx *ctx, struct wpath path, const struct sink *sink,
		     struct cache_fill *ret, struct store_stat *ret_stat, struct err *err);

int cache_scan(struct store *s, struct ctx *ctx, struct wpath path, const struct scan_req *req, struct err *err);

#endif
