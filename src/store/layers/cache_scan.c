/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A scan of a store far away: pages of a recursive list, and of the files only the bytes that are not kept yet.
 *
 * The caller's thread lists and asks what is wanted; directories that are not wanted are left by a cursor, or passed
 * over in a list of their level, not by reading on.
 * More threads fetch than visit: fetching waits for the network, visiting uses a core. A file of up to one chunk is
 * fetched first and visited then; a larger one is fetched when its turn has come, so that only `threads` of them are in
 * memory. Visits begin strictly in list order, each with one of the `threads` numbers that the visitor knows, so a
 * visitor that makes others wait for an earlier file always finds that file begun.
 *
 * The rules of what to ignore are in files of the directories themselves (.gitignore), which one list does not give in
 * time; such a scan takes the generic way. It is asked for only where the files are somebody's own directory on this
 * machine.
 */
#include <pthread.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/limits.h"
#include "store/layers/cache_internal.h"

#define FETCHERS    16
#define THREADS_MAX 64
#define QUEUE       64
/* The greatest code point: sorts after every name. */
#define LAST_NAME "\xF4\x8F\xBF\xBF"

struct job {
	uint64_t seq, size;
	char *path, *version;
	size_t path_len, version_len;
};

struct run {
	struct cache *cache;
	struct ctx *ctx;
	const struct scan_req *req;
	struct wpath top;
	uint64_t seq;
	struct str refused; /* the directory that is not wanted and was left, in `dirs` */
	char accepted[PATH_LEN_MAX + 1];
	size_t accepted_len; /* the last directory that is wanted, with all above it */
	char refused_dir[PATH_LEN_MAX + 1];

	pthread_mutex_t lock;
	pthread_cond_t jobs, room;      /* one came; one was taken */
	pthread_cond_t turns[FETCHERS]; /* of the file `seq` is turns[seq % FETCHERS]: no more wait at once */
	struct job queue[QUEUE];
	size_t first, count;
	bool ended; /* no more jobs will come */
	int bad;    /* what ended the scan */
	struct err err;
	uint64_t next_begin; /* the file whose visit begins next */
	unsigned slots;
	bool slot_used[THREADS_MAX];
};

/* --- what is wanted (the caller's thread) --- */

static bool want_dirs_of(struct run *run, struct str path)
{
	size_t start = run->top.s.len ? run->top.s.len + 1 : 0;

	if (run->refused.len && wpath_within((struct wpath){path}, (struct wpath){run->refused}))
		return false;
	if (!run->req->want_dir)
		return true;
	for (size_t i = start; i < path.len; i++) {
		struct str dir = str_first(path, i);

		if (path.ptr[i] != '/')
			continue;
		if (run->accepted_len >= i && memcmp(run->accepted, path.ptr, i) == 0 &&
		    (run->accepted_len == i || run->accepted[i] == '/'))
			continue;
		if (!run->req->want_dir(run->req->arg, dir)) {
			memcpy(run->refused_dir, dir.ptr, dir.len);
			run->refused = str_n(run->refused_dir, dir.len);
			return false;
		}
		memcpy(run->accepted, dir.ptr, dir.len);
		run->accepted_len = dir.len;
	}
	return true;
}

/* --- visits --- */

static int visit_bytes(struct run *run, struct scan_item *item, struct str bytes, struct err *err)
{
	do {
		struct str part = str_first(bytes, SCAN_CHUNK);
		int r;

		item->last = part.len == bytes.len;
		if (!item->last) {
			size_t line = str_rfind_char(part, '\n');

			part.len = line < part.len ? line + 1 : part.len;
		}
		item->data = part;
		r = run->req->visit(run->req->arg, item, err);
		if (r)
			return r;
		item->offset += part.len;
		bytes = str_from(bytes, part.len);
	} while (!item->last);
	return 0;
}

static int visit_unreadable(struct run *run, struct scan_item *item, struct err *err)
{
	item->unreadable = item->last = true;
	item->data = STR_NONE;
	return run->req->visit(run->req->arg, item, err);
}

struct piece {
	char *ptr;
	size_t len;
};

static int piece_push(void *arg, const void *bytes, size_t len, struct err *err)
{
	struct piece *p = arg;

	if (len > SCAN_CHUNK - p->len)
		return err_set(err, ERR_INTERNAL, "a read gave more bytes than its range holds");
	if (len)
		memcpy(p->ptr + p->len, bytes, len);
	p->len += len;
	return 0;
}

/* A file that is larger than anything that is kept: by ranges, all of one version. */
static int visit_ranges(struct run *run, struct ctx *ctx, const struct job *job, struct scan_item *item,
			struct err *err)
{
	struct piece piece = {.ptr = xmalloc(SCAN_CHUNK)};
	struct sink sink = {.push = piece_push, .arg = &piece};
	struct store_stat stat;
	struct store_call call = {.op = STORE_OP_READ, .path = {item->path}, .sink = &sink, .ret_stat = &stat};
	int r = 0;

	while (r == 0 && !item->last) {
		struct err why;

		piece.len = 0;
		call.range = (struct store_range){item->offset, SCAN_CHUNK};
		if (store_forward(run->cache->base.inner, ctx, &call, &why) != 0 ||
		    !str_eq(stat.version, str_n(job->version, job->version_len))) {
			r = visit_unreadable(run, item, err);
			break;
		}
		item->data = str_n(piece.ptr, piece.len);
		item->last = item->offset + piece.len >= stat.size || !piece.len;
		if (!item->last) {
			size_t line = str_rfind_char(item->data, '\n');

			item->data.len = line < piece.len ? line + 1 : piece.len;
		}
		r = run->req->visit(run->req->arg, item, err);
		item->offset += item->data.len;
	}
	free(piece.ptr);
	return r;
}

/* --- fetching --- */

struct fetched {
	struct cache_item item; /* kept */
	struct cache_fill fill; /* read now */
	bool kept, missing;
	int r;
	struct err err;
};

/* Failures of one file are that file's; those of the store as a whole end the scan. */
static bool ends_all(int r)
{
	return r == -ERR_CANCELLED || r == -ERR_TIMEOUT || r == -ERR_UNAVAILABLE || r == -ERR_UNAUTHENTICATED ||
	       r == -ERR_RATE_LIMITED;
}

static void fetch(struct run *run, struct ctx *ctx, const struct job *job, struct fetched *f)
{
	struct cache *c = run->cache;
	struct wpath path = {str_n(job->path, job->path_len)};
	struct cache_key key = cache_key_of(c, path, str_n(job->version, job->version_len), job->size);
	struct store_stat stat;

	f->kept = c->pool->ops->get(c->pool, &key, &f->item);
	if (!f->kept)
		f->r = cache_read_whole(c, ctx, path, NULL, &f->fill, &stat, &f->err);
}

static void release(struct run *run, struct fetched *f)
{
	if (f->kept)
		run->cache->pool->ops->release(run->cache->pool, &f->item);
	free(f->fill.ptr);
}

static int visit_fetched(struct run *run, struct ctx *ctx, const struct job *job, unsigned slot, struct fetched *f,
			 struct err *err)
{
	struct scan_item item = {
		.seq = job->seq, .worker = slot, .path = str_n(job->path, job->path_len), .size = job->size};
	bool ranges = job->size > run->cache->pool->item_max;

	if (!ranges && job->size > SCAN_CHUNK)
		fetch(run, ctx, job, f);
	if (ends_all(f->r)) {
		*err = f->err;
		return f->r;
	}
	if (ranges || f->fill.too_much)
		return visit_ranges(run, ctx, job, &item, err);
	if (f->r)
		return visit_unreadable(run, &item, err);
	return visit_bytes(run, &item, f->kept ? f->item.bytes : str_n(f->fill.ptr ? f->fill.ptr : "", f->fill.len),
			   err);
}

/* --- threads --- */

static bool take_job(struct run *run, struct job *ret)
{
	bool got;

	pthread_mutex_lock(&run->lock);
	while (!run->count && !run->ended && !run->bad)
		pthread_cond_wait(&run->jobs, &run->lock);
	got = run->count && !run->bad;
	if (got) {
		*ret = run->queue[run->first];
		run->first = (run->first + 1) % QUEUE;
		if (run->count-- == QUEUE)
			pthread_cond_signal(&run->room);
	}
	pthread_mutex_unlock(&run->lock);
	return got;
}

/* With the lock held. Those who wait for a turn have consecutive numbers, from next_begin on. */
static void call_next(struct run *run)
{
	pthread_cond_signal(&run->turns[run->next_begin % FETCHERS]);
}

static void end_all(struct run *run, int r, const struct err *err)
{
	if (!run->bad) {
		run->bad = r;
		run->err = *err;
	}
	pthread_cond_broadcast(&run->jobs);
	pthread_cond_broadcast(&run->room);
	for (size_t i = 0; i < FETCHERS; i++)
		pthread_cond_broadcast(&run->turns[i]);
}

static unsigned free_slot(const struct run *run)
{
	unsigned slot = 0;

	while (slot < run->slots && run->slot_used[slot])
		slot++;
	return slot;
}

/* False: the scan was ended while waiting. */
static bool await_turn(struct run *run, uint64_t seq, unsigned *ret_slot)
{
	bool go;

	pthread_mutex_lock(&run->lock);
	while (!run->bad && (run->next_begin != seq || free_slot(run) == run->slots))
		pthread_cond_wait(&run->turns[seq % FETCHERS], &run->lock);
	go = run->bad == 0;
	if (go) {
		*ret_slot = free_slot(run);
		run->slot_used[*ret_slot] = true;
		run->next_begin++;
		call_next(run);
	}
	pthread_mutex_unlock(&run->lock);
	return go;
}

static void end_turn(struct run *run, unsigned slot, int r, const struct err *err)
{
	pthread_mutex_lock(&run->lock);
	run->slot_used[slot] = false;
	if (r && r != SCAN_SKIP_FILE)
		end_all(run, r, err);
	call_next(run);
	pthread_mutex_unlock(&run->lock);
}

static void *fetcher(void *arg)
{
	struct run *run = arg;
	struct arena *arena = arena_new();
	struct ctx ctx = *run->ctx;
	struct job job;

	ctx.arena = arena;
	ctx.progress = NULL;
	while (take_job(run, &job)) {
		struct fetched f = {0};
		struct err err = {0};
		unsigned slot;

		if (job.size <= SCAN_CHUNK && job.size <= run->cache->pool->item_max)
			fetch(run, &ctx, &job, &f);
		if (await_turn(run, job.seq, &slot))
			end_turn(run, slot, visit_fetched(run, &ctx, &job, slot, &f, &err), &err);
		release(run, &f);
		free(job.path);
		arena_reset(arena);
	}
	arena_destroy(arena);
	return NULL;
}

/* --- the list --- */

static int give_job(struct run *run, const struct store_entry *e)
{
	size_t path_len = e->path.s.len, version_len = e->stat.version.len;
	struct job job = {.seq = run->seq++, .size = e->stat.size, .path_len = path_len, .version_len = version_len};
	int r;

	job.path = xmalloc(path_len + version_len + 1);
	memcpy(job.path, e->path.s.ptr, path_len);
	job.version = job.path + path_len;
	if (version_len)
		memcpy(job.version, e->stat.version.ptr, version_len);
	pthread_mutex_lock(&run->lock);
	while (run->count == QUEUE && !run->bad)
		pthread_cond_wait(&run->room, &run->lock);
	r = run->bad;
	if (!r) {
		run->queue[(run->first + run->count++) % QUEUE] = job;
		pthread_cond_signal(&run->jobs);
	}
	pthread_mutex_unlock(&run->lock);
	if (r)
		free(job.path);
	return r;
}

static int take_entry(struct run *run, const struct store_entry *e, struct err *err)
{
	struct scan_item item = {.path = e->path.s, .last = true};
	int r;

	if (run->req->want_file && !run->req->want_file(run->req->arg, e->path.s))
		return 0;
	if (run->req->contents)
		return give_job(run, e);
	item.seq = run->seq++;
	r = run->req->visit(run->req->arg, &item, err);
	return r == SCAN_SKIP_FILE ? 0 : r;
}

/* A place in the list: in a recursive one of `top`, or among the children of one directory. */
struct place {
	char level[PATH_LEN_MAX + 1]; /* the directory; only when `by_level` */
	size_t level_len;
	bool by_level;
	char after[PATH_LEN_MAX + 8];
	struct store_list_req req;
};

static void go_on_after(struct place *at, struct str path, const char *end)
{
	int len = snprintf(at->after, sizeof at->after, "%.*s%s", STR_ARG(path), end);

	at->req.after = str_n(at->after, (size_t)len < sizeof at->after ? (size_t)len : sizeof at->after - 1);
}

/* Everything in the directory is done. */
static void leave_dir(struct place *at, struct str dir)
{
	at->by_level = false;
	at->req.recursive = true;
	go_on_after(at, dir, "/" LAST_NAME);
}

/* From the directory that was refused last on, its siblings are looked at without what is in them. */
static void begin_level(struct run *run, struct place *at)
{
	struct str dir = wpath_parent((struct wpath){run->refused}).s;

	at->by_level = true;
	at->req.recursive = false;
	if (dir.len)
		memcpy(at->level, dir.ptr, dir.len);
	at->level_len = dir.len;
	go_on_after(at, run->refused, "/");
}

static int list_tree(struct run *run, struct wpath top, struct err *err);

/* A page of one level. A directory that is wanted is listed by itself, and the list continues recursively after it, for
   the next ones may be wanted too. */
static int take_level(struct run *run, struct place *at, struct wpath top, const struct store_page *page, bool *ret_end,
		      struct err *err)
{
	struct str level = str_n(at->level, at->level_len);

	for (size_t i = 0; i < page->count; i++) {
		const struct store_entry *e = &page->entries[i];
		int r = 0;

		if (e->stat.kind == STORE_FILE)
			r = take_entry(run, e, err);
		else if (run->req->want_dir(run->req->arg, e->path.s)) {
			r = list_tree(run, e->path, err);
			leave_dir(at, e->path.s);
			return r;
		}
		if (r)
			return r;
	}
	*ret_end = !page->next.ptr && level.len == top.s.len;
	if (page->next.ptr)
		go_on_after(at, page->next, "");
	else if (!*ret_end)
		leave_dir(at, level);
	return 0;
}

/* A page of the recursive list. When nothing on a whole page is in a directory that is wanted, reading on would cost as
   much as there is in the others. */
static int take_deep(struct run *run, struct place *at, const struct store_page *page, bool *ret_end, struct err *err)
{
	bool any_wanted = false;

	for (size_t i = 0; i < page->count; i++) {
		const struct store_entry *e = &page->entries[i];
		int r = 0;

		if (want_dirs_of(run, e->path.s)) {
			any_wanted = true;
			r = take_entry(run, e, err);
		}
		if (r)
			return r;
	}
	*ret_end = !page->next.ptr;
	if (*ret_end)
		return 0;
	if (page->count && !any_wanted) /* so the last entry is in the directory that was refused last */
		begin_level(run, at);
	else if (run->refused.len && wpath_within((struct wpath){page->next}, (struct wpath){run->refused}))
		leave_dir(at, run->refused);
	else
		go_on_after(at, page->next, "");
	return 0;
}

static int list_tree(struct run *run, struct wpath top, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct place *at = ARENA_NEW(arena, struct place);
	struct arena *pages = arena_new();
	struct ctx ctx = *run->ctx;
	struct store_page page;
	struct store_call call = {.op = STORE_OP_LIST, .list = &at->req, .ret_page = &page};
	bool end = false;
	int r = 0;

	ctx.arena = pages;
	at->req = (struct store_list_req){.recursive = true, .limit = 1000};
	while (r == 0 && !end) {
		call.path = at->by_level ? (struct wpath){str_n(at->level, at->level_len)} : top;
		r = ctx_check(run->ctx, err);
		if (r == 0)
			r = store_forward(run->cache->base.inner, &ctx, &call, err);
		if (r == -ERR_NOT_FOUND && (at->req.after.len || top.s.len != run->top.s.len)) {
			r = 0; /* gone since it was seen */
			end = !at->by_level || at->level_len == top.s.len;
			if (!end)
				leave_dir(at, call.path.s);
		} else if (r == 0) {
			r = at->by_level ? take_level(run, at, top, &page, &end, err)
					 : take_deep(run, at, &page, &end, err);
		}
		arena_reset(pages);
	}
	arena_destroy(pages);
	return r;
}

static unsigned threads_of(const struct scan_req *req)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);

	if (req->threads)
		return req->threads < THREADS_MAX ? req->threads : THREADS_MAX;
	return cores < 1 ? 1 : cores > 8 ? 8 : (unsigned)cores;
}

/* With contents: the list on this thread, the rest on others. */
static int scan_contents(struct run *run, struct err *err)
{
	pthread_t threads[FETCHERS];
	unsigned started = 0;
	int r;

	pthread_mutex_init(&run->lock, NULL);
	pthread_cond_init(&run->jobs, NULL);
	pthread_cond_init(&run->room, NULL);
	for (size_t i = 0; i < FETCHERS; i++)
		pthread_cond_init(&run->turns[i], NULL);
	while (started < FETCHERS && pthread_create(&threads[started], NULL, fetcher, run) == 0)
		started++;
	r = started ? list_tree(run, run->top, err)
		    : err_set(err, ERR_UNAVAILABLE, "no thread can be started; raise the limit of processes");
	pthread_mutex_lock(&run->lock);
	run->ended = true;
	if (r)
		end_all(run, r, err);
	pthread_cond_broadcast(&run->jobs);
	pthread_mutex_unlock(&run->lock);
	while (started)
		pthread_join(threads[--started], NULL);
	for (; run->count; run->count--, run->first = (run->first + 1) % QUEUE)
		free(run->queue[run->first].path);
	for (size_t i = 0; i < FETCHERS; i++)
		pthread_cond_destroy(&run->turns[i]);
	pthread_cond_destroy(&run->room);
	pthread_cond_destroy(&run->jobs);
	pthread_mutex_destroy(&run->lock);
	if (run->bad)
		*err = run->err;
	return run->bad;
}

int cache_scan(struct store *s, struct ctx *ctx, struct wpath path, const struct scan_req *req, struct err *err)
{
	struct run *run;
	int r;

	if (req->use_ignore)
		return store_scan_generic(s, ctx, path, req, err);
	run = xcalloc(1, sizeof *run);
	*run = (struct run){.cache = (struct cache *)s, .ctx = ctx, .req = req, .top = path, .slots = threads_of(req)};
	r = req->contents ? scan_contents(run, err) : list_tree(run, run->top, err);
	free(run);
	return r;
}
