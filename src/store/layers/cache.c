/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps bytes that were read from a store far away, never versions: the inner store is asked for a file's current
 * version each time, by the list, stat or read that has to be made anyway. A version names its bytes for good, so bytes
 * kept under (store, path, version, size) cannot be stale, and the cache never needs to be invalidated.
 *
 * Where that saves something: a scan lists, and what the list shows to be unchanged is not read (cache_scan.c). A large
 * file that was read before costs one stat instead of its bytes. A small file is read in one request either way, so it
 * is read, and kept for the next scan. What is written in one piece is kept too.
 *
 * The alternative, to trust what was seen a moment ago for a moment longer, saves more requests and is wrong as soon as
 * two replicas talk about the same file.
 */
#include "base/arena.h"
#include "base/limits.h"
#include "base/sha256.h"
#include "store/layers/cache_internal.h"

static struct cache *cache_of(struct store *s)
{
	return (struct cache *)s;
}

static void add_part(struct sha256 *sum, struct str part)
{
	uint64_t len = part.len; /* before it, so that two parts cannot be cut another way */

	sha256_add(sum, str_n(&len, sizeof len));
	sha256_add(sum, part);
}

struct cache_key cache_key_of(const struct cache *c, struct wpath path, struct str version, uint64_t size)
{
	struct cache_key key;
	struct sha256 sum;

	sha256_begin(&sum);
	add_part(&sum, str_of(c->identity));
	add_part(&sum, path.s);
	add_part(&sum, version);
	sha256_add(&sum, str_n(&size, sizeof size));
	sha256_end(&sum, key.hex);
	return key;
}

/* The key that notes that a path had a large file: under a size that no file has. */
static struct cache_key note_key(const struct cache *c, struct wpath path)
{
	return cache_key_of(c, path, STR(""), UINT64_MAX);
}

/* --- reading through --- */

struct tee {
	const struct sink *to; /* NULL: nobody */
	struct cache_fill *fill;
	size_t max;
};

static int tee_push(void *arg, const void *bytes, size_t len, struct err *err)
{
	struct tee *t = arg;
	struct cache_fill *f = t->fill;

	if (len > t->max - f->len)
		f->too_much = true;
	if (!f->too_much && f->len + len > f->cap) {
		f->cap = 2 * f->cap > f->len + len ? 2 * f->cap : f->len + len;
		f->ptr = xrealloc(f->ptr, f->cap);
	}
	if (!f->too_much && len)
		memcpy(f->ptr + f->len, bytes, len);
	if (!f->too_much)
		f->len += len;
	return t->to ? t->to->push(t->to->arg, bytes, len, err) : 0;
}

static void *tee_reserve(void *arg, size_t size)
{
	struct tee *t = arg;

	return t->to->reserve(t->to->arg, size);
}

int cache_read_whole(struct cache *c, struct ctx *ctx, struct wpath path, const struct sink *sink,
		     struct cache_fill *ret, struct store_stat *ret_stat, struct err *err)
{
	struct tee tee = {.to = sink, .fill = ret, .max = c->pool->item_max};
	struct sink own = {.push = tee_push,
			   .reserve = sink && sink->reserve ? tee_reserve : NULL,
			   .arg = &tee,
			   .skip_dirs = sink && sink->skip_dirs};
	struct store_call call = {
		.op = STORE_OP_READ, .path = path, .range = STORE_WHOLE, .sink = &own, .ret_stat = ret_stat};
	struct cache_key key;
	int r;

	*ret = (struct cache_fill){0};
	r = store_forward(c->base.inner, ctx, &call, err);
	if (r || ret->too_much || ret->len != ret_stat->size || !ret_stat->version.len)
		return r;
	key = cache_key_of(c, path, ret_stat->version, ret_stat->size);
	c->pool->ops->put(c->pool, &key, str_n(ret->ptr, ret->len));
	if (ret->len >= CACHE_LARGE) {
		key = note_key(c, path);
		c->pool->ops->put(c->pool, &key, STR("large"));
	}
	return 0;
}

static int serve(const struct cache_item *item, struct store_range range, const struct sink *sink, struct err *err)
{
	struct str bytes =
		str_from(item->bytes, range.offset < item->bytes.len ? (size_t)range.offset : item->bytes.len);
	char *direct;

	if (range.length < bytes.len)
		bytes.len = (size_t)range.length;
	direct = sink->reserve ? sink->reserve(sink->arg, bytes.len) : NULL;
	if (direct && bytes.len)
		memcpy(direct, bytes.ptr, bytes.len);
	return sink->push(sink->arg, direct ? direct : bytes.ptr, bytes.len, err);
}

/* A large file that is kept: one stat tells whether it still is that one. False: read it. */
static bool read_kept(struct cache *c, struct ctx *ctx, const struct store_call *call, int *ret_r, struct err *err)
{
	struct cache_key key = note_key(c, call->path);
	struct store_stat stat;
	struct store_call look = {.op = STORE_OP_STAT, .path = call->path, .ret_stat = &stat};
	struct cache_item item;

	if (!c->pool->ops->get(c->pool, &key, &item))
		return false;
	c->pool->ops->release(c->pool, &item);
	*ret_r = store_forward(c->base.inner, ctx, &look, err);
	if (*ret_r)
		return true;
	if (stat.kind != STORE_FILE || stat.size < CACHE_LARGE)
		return false;
	key = cache_key_of(c, call->path, stat.version, stat.size);
	if (!c->pool->ops->get(c->pool, &key, &item))
		return false;
	if (item.bytes.len != stat.size) {
		c->pool->ops->release(c->pool, &item);
		return false;
	}
	*ret_r = serve(&item, call->range, call->sink, err);
	c->pool->ops->release(c->pool, &item);
	if (*ret_r == 0)
		*call->ret_stat = stat;
	return true;
}

static int cache_read(struct store *s, struct ctx *ctx, struct store_call *call, struct err *err)
{
	struct cache *c = cache_of(s);
	struct cache_fill fill;
	int r;

	if (read_kept(c, ctx, call, &r, err))
		return r;
	if (call->range.offset || call->range.length != UINT64_MAX)
		return store_forward(s->inner, ctx, call, err);
	r = cache_read_whole(c, ctx, call->path, call->sink, &fill, call->ret_stat, err);
	free(fill.ptr);
	return r;
}

static int cache_write(struct store *s, struct ctx *ctx, struct store_call *call, struct err *err)
{
	struct cache *c = cache_of(s);
	int r = store_forward(s->inner, ctx, call, err);
	struct str bytes = call->source->bytes;
	struct cache_key key;

	if (r || call->source->pull || bytes.len >= CACHE_LARGE || call->ret_stat->size != bytes.len ||
	    !call->ret_stat->version.len)
		return r;
	key = cache_key_of(c, call->path, call->ret_stat->version, bytes.len);
	c->pool->ops->put(c->pool, &key, bytes);
	return 0;
}

static int cache_around(struct store *s, struct ctx *ctx, struct store_call *call, struct err *err)
{
	if (call->op == STORE_OP_READ)
		return cache_read(s, ctx, call, err);
	if (call->op == STORE_OP_WRITE)
		return cache_write(s, ctx, call, err);
	return store_forward(s->inner, ctx, call, err);
}

static void cache_destroy(struct store *s)
{
	struct cache *c = cache_of(s);

	c->pool->ops->destroy(c->pool);
	free(c->identity);
	free(c);
}

static const struct store_ops cache_ops = {
	.name = "cache",
	.scan = cache_scan,
	.around = cache_around,
	.destroy = cache_destroy,
};

struct store *store_cache_new(struct store *inner, struct cache_opts opts)
{
	struct cache_pool *pool = opts.dir ? cache_disk_new(opts.dir, opts.bytes) : cache_memory_new(opts.bytes);
	struct cache *c;

	if (!pool) /* a directory that cannot be made: memory is better than nothing, and far smaller */
		pool = cache_memory_new(opts.bytes < CACHE_MEMORY_MAX ? opts.bytes : CACHE_MEMORY_MAX);
	if (pool->item_max > CACHE_ITEM_MAX)
		pool->item_max = CACHE_ITEM_MAX;
	c = xcalloc(1, sizeof *c);
	c->base = (struct store){.ops = &cache_ops, .inner = inner};
	c->pool = pool;
	c->identity = xstrndup(opts.identity);
	return &c->base;
}
