/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merged scans: scan_merge.h says what they are for. Extra files are queued with the number of the base's files before
 * them. The queue only grows during a scan, because the numbers of the base's files are found in it.
 */
#include "store/scan_merge.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/limits.h"

struct queued {
	struct scan_merge_file file;
	uint64_t before; /* so many of the base's files come before it */
};

struct merging {
	const struct scan_merge *m;
	struct ctx *ctx;
	uint64_t base_count; /* wanted so far; the walking thread's */
	unsigned worker;     /* of the thread that reads extra files */
	pthread_mutex_t lock;
	pthread_cond_t moved;
	struct queued *queue; /* heap */
	size_t count, cap;
	bool ended; /* no more will be queued */
	bool has_thread;
	pthread_t thread;
	atomic_bool failed;
	int result;
	struct err err;
};

static void fail(struct merging *g, int r, const struct err *err)
{
	pthread_mutex_lock(&g->lock);
	if (!g->failed) {
		g->result = r;
		g->err = *err;
		g->failed = true;
	}
	pthread_cond_signal(&g->moved);
	pthread_mutex_unlock(&g->lock);
}

/* --- extra files --- */

/* Waits for the file number `i` of the queue. False: there is none. */
static bool take(struct merging *g, size_t i, struct queued *ret)
{
	bool has;

	pthread_mutex_lock(&g->lock);
	while (i >= g->count && !g->ended && !g->failed)
		pthread_cond_wait(&g->moved, &g->lock);
	has = i < g->count && !g->failed;
	if (has)
		*ret = g->queue[i];
	pthread_mutex_unlock(&g->lock);
	return has;
}

static int read_extra(struct merging *g, struct arena *arena, const struct scan_item *item, char *chunk,
		      struct err *err)
{
	struct ctx ctx = *g->ctx;
	int r;

	ctx.arena = arena;
	ctx.progress = NULL; /* which belongs to the calling thread */
	r = ctx_check(&ctx, err);
	return r ? r : store_scan_file(g->m->extra, &ctx, g->m->req, item, chunk, err);
}

static void *visit_extra(void *arg)
{
	struct merging *g = arg;
	ARENA_SCOPE struct arena *arena = arena_new();
	char *chunk = g->m->req->contents ? xmalloc(SCAN_CHUNK) : NULL;
	struct queued q;

	for (size_t i = 0; take(g, i, &q); i++) {
		struct scan_item item = {.seq = i + q.before, .worker = g->worker, .path = q.file.path};
		struct err err;
		int r;

		item.size = g->m->req->contents ? q.file.size : 0;
		r = read_extra(g, arena, &item, chunk, &err);
		if (r)
			fail(g, r, &err);
	}
	free(chunk);
	return NULL;
}

/* Queues the extra files that come before `path` (ptr NULL: all of them). Called on the thread that walks. */
static void queue_until(struct merging *g, struct str path)
{
	struct scan_merge_file file;
	struct err err;

	while (!g->failed && g->m->next(g->m->arg, path, &file)) {
		if (!g->has_thread && pthread_create(&g->thread, NULL, visit_extra, g) != 0) {
			int r = err_set(&err, ERR_UNAVAILABLE,
					"no thread can be started; raise the limit of processes");

			fail(g, r, &err);
			return;
		}
		g->has_thread = true;
		pthread_mutex_lock(&g->lock);
		HEAP_ROOM(g->queue, g->count, g->cap);
		g->queue[g->count++] = (struct queued){file, g->base_count};
		pthread_cond_signal(&g->moved);
		pthread_mutex_unlock(&g->lock);
	}
}

/* How many extra files come before the base's file number `seq`. They were queued before it was wanted. */
static uint64_t extra_before(struct merging *g, uint64_t seq)
{
	size_t low = 0, high;

	pthread_mutex_lock(&g->lock);
	high = g->count;
	while (low < high) {
		size_t mid = (low + high) / 2;

		if (g->queue[mid].before <= seq)
			low = mid + 1;
		else
			high = mid;
	}
	pthread_mutex_unlock(&g->lock);
	return low;
}

/* --- the base's questions and visits --- */

static bool base_want_dir(void *arg, struct str path)
{
	struct merging *g = arg;
	const struct scan_req *req = g->m->req;

	return !g->failed && !g->m->hides(g->m->arg, path, true) && (!req->want_dir || req->want_dir(req->arg, path));
}

static bool base_want_file(void *arg, struct str path)
{
	struct merging *g = arg;
	const struct scan_req *req = g->m->req;

	if (g->failed || g->m->hides(g->m->arg, path, false) || (req->want_file && !req->want_file(req->arg, path)))
		return false;
	queue_until(g, path);
	g->base_count++;
	return true;
}

static int read_instead(struct merging *g, const struct scan_item *item, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	char *chunk = xmalloc(SCAN_CHUNK);
	struct scan_item own = {.seq = item->seq,
				.worker = item->worker,
				.path = item->path,
				.size = item->size,
				.offset = item->offset};
	int r = read_extra(g, arena, &own, chunk, err);

	free(chunk);
	return r ? r : SCAN_SKIP_FILE;
}

static int base_visit(void *arg, const struct scan_item *item, struct err *err)
{
	struct merging *g = arg;
	struct scan_item own = *item;

	if (g->failed) {
		*err = g->err;
		return g->result;
	}
	own.seq += extra_before(g, item->seq);
	if (g->m->is_stale && g->m->req->contents && g->m->is_stale(g->m->arg, item))
		return read_instead(g, &own, err);
	return g->m->req->visit(g->m->req->arg, &own, err);
}

/* Threads of the base. One worker is left for extra files, and, where the base is a merged scan itself, one for that:
   both are idle most of the time. */
static unsigned base_threads(const struct scan_req *req)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);

	if (req->threads)
		return req->threads - 1;
	return cores < 1 ? 2 : cores + 1 < SCAN_WORKERS_MAX ? (unsigned)cores + 1 : SCAN_WORKERS_MAX - 1;
}

int scan_merge(const struct scan_merge *merge, struct ctx *ctx, struct wpath path, struct err *err)
{
	struct merging g = {.m = merge, .ctx = ctx};
	struct scan_req own = *merge->req;
	struct store_call scan = {.op = STORE_OP_SCAN, .path = path, .scan = &own};
	int r;

	g.worker = own.threads = base_threads(merge->req);
	own.dated = own.dated || merge->dated;
	own.want_dir = base_want_dir;
	own.want_file = base_want_file;
	own.visit = base_visit;
	own.arg = &g;
	pthread_mutex_init(&g.lock, NULL);
	pthread_cond_init(&g.moved, NULL);
	r = store_forward(merge->base, ctx, &scan, err);
	if (r && r != -ERR_NOT_FOUND) /* removed since it was looked for */
		fail(&g, r, err);
	queue_until(&g, STR_NONE);
	pthread_mutex_lock(&g.lock);
	g.ended = true;
	pthread_cond_signal(&g.moved);
	pthread_mutex_unlock(&g.lock);
	if (g.has_thread)
		pthread_join(g.thread, NULL);
	if (g.failed)
		*err = g.err;
	pthread_cond_destroy(&g.moved);
	pthread_mutex_destroy(&g.lock);
	free(g.queue);
	return g.result;
}
