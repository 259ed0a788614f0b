/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scans of an overlay. A scan of the merged lists would read one file after the other; lower's own scan has threads and
 * opens files by their directory. So lower scans itself, and when it asks whether a file or directory is wanted, those
 * that upper covers are not. Upper's files, which are few in a fork, are collected first. Lower asks in list order, so
 * each of upper's files gets its number when the first of lower's files that comes after it is asked for. A thread of
 * its own reads them: the thread on which lower asks may be the only one that reads lower's files, and a visitor that
 * puts results in order may wait for those.
 *
 * Rules of ignore files are applied by each side itself. Lower sees its own ignore files only, so when upper has or
 * hides one, the merged lists are scanned instead. So they are when the caller wants one thread.
 */
#include <unistd.h>

#include "base/strmap.h"
#include "store/layers/overlay_internal.h"
#include "store/list_stream.h"
#include "text/ignore.h"

/* A file of upper that is wanted. */
struct upper_file {
	struct str path;
	uint64_t size;
	uint64_t before; /* so many of lower's files come before it; set when it is released */
};

struct both {
	struct overlay *o;
	struct ctx *ctx;
	const struct scan_req *req;
	struct arena *arena;
	struct strmap *upper; /* what upper has: enum store_kind. All names of each directory that was entered */
	struct strmap *sizes;
	struct strmap *gone;      /* whiteouts */
	bool rules_differ;        /* upper has or hides an ignore file */
	struct upper_file *files; /* sorted */
	size_t count, cap;
	uint64_t lower_count; /* wanted so far; the walking thread's */
	/* the thread of upper's files */
	unsigned worker;
	pthread_mutex_t lock;
	pthread_cond_t moved;
	atomic_size_t released; /* the first so many of `files` have their numbers */
	bool ended;             /* no more will be released */
	atomic_bool failed;
	int result;
	struct err err;
};

/* Upper's names, with ignore files as they show: what upper's files are collected from. */

struct upper_view {
	struct store base;
	struct both *both;
};

static struct both *both_of(struct store *s)
{
	return ((struct upper_view *)s)->both;
}

static bool is_rules(struct str path)
{
	return str_is(wpath_name((struct wpath){path}), IGNORE_FILE) || str_is(path, IGNORE_EXCLUDE_FILE) ||
	       str_is(path, ".git");
}

static int view_list(struct store *s, struct ctx *ctx, struct wpath path, const struct store_list_req *req,
		     struct store_page *ret_page, struct err *err)
{
	struct both *b = both_of(s);
	int r = overlay_list_upper(b->o, ctx, path, req, ret_page, err);

	for (size_t i = 0; r == 0 && i < ret_page->count; i++) {
		const struct store_entry *e = &ret_page->entries[i];
		struct str kept = arena_str(b->arena, e->path.s);

		*strmap_put(b->upper, kept, NULL) = e->stat.kind;
		*strmap_put(b->sizes, kept, NULL) = (size_t)e->stat.size;
		b->rules_differ = b->rules_differ || is_rules(kept);
	}
	return r;
}

static int view_stat(struct store *s, struct ctx *ctx, struct wpath path, struct store_stat *ret_stat, struct err *err)
{
	struct both *b = both_of(s);
	int r = overlay_find_in(b->o->upper, ctx, path, ret_stat, err);

	if (r == 0 && ret_stat->kind)
		b->rules_differ = true; /* only rules are asked for by name */
	return r ? r : overlay_stat(&b->o->base, ctx, path, ret_stat, err);
}

static int view_read(struct store *s, struct ctx *ctx, struct wpath path, struct store_range range,
		     const struct sink *sink, struct store_stat *ret_stat, struct err *err)
{
	return overlay_read(&both_of(s)->o->base, ctx, path, range, sink, ret_stat, err);
}

static const struct store_ops view_ops = {
	.name = "overlay-upper", .stat = view_stat, .read = view_read, .list = view_list};

static int collect(void *arg, const struct scan_item *item, struct err *err)
{
	struct both *b = arg;
	size_t *size = strmap_find(b->sizes, item->path);

	(void)err;
	ARENA_ROOM(b->arena, b->files, b->count, b->cap);
	b->files[b->count++] = (struct upper_file){.path = arena_str(b->arena, item->path), .size = size ? *size : 0};
	return 0;
}

static bool wants_dir(void *arg, struct str path)
{
	const struct scan_req *req = ((struct both *)arg)->req;

	return !req->want_dir || req->want_dir(req->arg, path);
}

static bool wants_file(void *arg, struct str path)
{
	const struct scan_req *req = ((struct both *)arg)->req;

	return !req->want_file || req->want_file(req->arg, path);
}

static int collect_upper(struct both *b, struct wpath path, struct err *err)
{
	struct upper_view view = {.base = {.ops = &view_ops}, .both = b};
	struct scan_req req = {.use_ignore = b->req->use_ignore,
			       .want_dir = wants_dir,
			       .want_file = wants_file,
			       .visit = collect,
			       .arg = b};
	int r = store_scan_generic(&view.base, b->ctx, path, &req, err);

	return r == -ERR_NOT_FOUND ? 0 : r;
}

/* All whiteouts below `path`. */
static int collect_gone(struct both *b, struct wpath path, struct err *err)
{
	struct str mark = b->o->mark;
	struct wpath area;
	int r = wpath_join(b->arena, (struct wpath){mark}, path, &area, err);
	LIST_PAGES_SCOPE struct list_pages pages = {.store = b->o->upper,
						    .dir = area,
						    .req = {.recursive = true, .limit = 1000, .names_only = true},
						    .is_layer = true,
						    .ctx = *b->ctx};

	while (r == 0 && (r = list_pages_next(&pages, err)) > 0)
		for (r = 0; pages.page.count; pages.page.count--) {
			struct str p = pages.page.entries++->path.s; /* "mark/path/mark" */

			if (p.len <= 2 * (mark.len + 1))
				continue;
			p = arena_str(b->arena, str_first(str_from(p, mark.len + 1), p.len - 2 * (mark.len + 1)));
			strmap_put(b->gone, p, NULL);
			b->rules_differ = b->rules_differ || is_rules(p);
		}
	return r == -ERR_NOT_FOUND ? 0 : r;
}

/* The numbers. */

/* Releases upper's files that come before `path` (ptr NULL: all of them). Called on the thread that walks. */
static void release(struct both *b, struct str path)
{
	size_t i = b->released;

	while (i < b->count && (!path.ptr || str_cmp(b->files[i].path, path) < 0))
		b->files[i++].before = b->lower_count;
	if (i == b->released && path.ptr)
		return;
	pthread_mutex_lock(&b->lock);
	b->released = i;
	b->ended = !path.ptr;
	pthread_cond_signal(&b->moved);
	pthread_mutex_unlock(&b->lock);
}

/* How many of upper's files come before lower's file number `seq`. They were released before it was wanted. */
static uint64_t upper_before(struct both *b, uint64_t seq)
{
	size_t low = 0, high = b->released;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (b->files[mid].before <= seq)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static void fail(struct both *b, int r, const struct err *err)
{
	pthread_mutex_lock(&b->lock);
	if (!b->failed) {
		b->result = r;
		b->err = *err;
		b->failed = true;
	}
	pthread_cond_signal(&b->moved);
	pthread_mutex_unlock(&b->lock);
}

static void *visit_upper(void *arg)
{
	struct both *b = arg;
	ARENA_SCOPE struct arena *arena = arena_new();
	char *chunk = b->req->contents ? xmalloc(SCAN_CHUNK) : NULL;
	struct ctx ctx = *b->ctx;

	ctx.arena = arena;
	ctx.progress = NULL; /* which belongs to the calling thread */
	for (size_t i = 0; i < b->count; i++) {
		struct scan_item item = {.worker = b->worker, .path = b->files[i].path};
		struct err err;
		bool go_on;
		int r;

		pthread_mutex_lock(&b->lock);
		while (i >= b->released && !b->ended && !b->failed)
			pthread_cond_wait(&b->moved, &b->lock);
		go_on = i < b->released && !b->failed;
		pthread_mutex_unlock(&b->lock);
		if (!go_on)
			break;
		item.seq = i + b->files[i].before;
		item.size = b->req->contents ? b->files[i].size : 0;
		r = ctx_check(&ctx, &err);
		if (r == 0)
			r = store_scan_file(b->o->upper, &ctx, b->req, &item, chunk, &err);
		if (r)
			fail(b, r, &err);
	}
	free(chunk);
	return NULL;
}

/* Lower's questions and visits. */

static bool lower_want_dir(void *arg, struct str path)
{
	struct both *b = arg;
	size_t *upper = strmap_find(b->upper, path);

	return !b->failed && !(upper && *upper == STORE_FILE) && !strmap_find(b->gone, path) &&
	       !str_eq(wpath_name((struct wpath){path}), b->o->mark) && wants_dir(b, path);
}

static bool lower_want_file(void *arg, struct str path)
{
	struct both *b = arg;

	if (b->failed || strmap_find(b->upper, path) || strmap_find(b->gone, path) ||
	    str_eq(wpath_name((struct wpath){path}), b->o->mark) || !wants_file(b, path))
		return false;
	release(b, path);
	b->lower_count++;
	return true;
}

static int lower_visit(void *arg, const struct scan_item *item, struct err *err)
{
	struct both *b = arg;
	struct scan_item own = *item;

	if (b->failed) {
		*err = b->err;
		return b->result;
	}
	own.seq += upper_before(b, item->seq);
	return b->req->visit(b->req->arg, &own, err);
}

static unsigned lower_threads(const struct scan_req *req)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);

	if (req->threads)
		return req->threads - 1;
	return cores < 1 ? 1 : cores < SCAN_WORKERS_MAX ? (unsigned)cores : SCAN_WORKERS_MAX - 1;
}

static int scan_lower(struct both *b, struct wpath path, struct err *err)
{
	struct scan_req own = *b->req;
	struct store_call scan = {.op = STORE_OP_SCAN, .path = path, .scan = &own};
	pthread_t thread = 0;
	int r;

	own.want_dir = lower_want_dir;
	own.want_file = lower_want_file;
	own.visit = lower_visit;
	own.arg = b;
	if (b->count) {
		b->worker = own.threads = lower_threads(b->req);
		if (pthread_create(&thread, NULL, visit_upper, b) != 0)
			return err_set(err, ERR_UNAVAILABLE, "no thread can be started; raise the limit of processes");
	}
	r = store_forward(b->o->lower, b->ctx, &scan, err);
	if (r == -ERR_NOT_FOUND) /* removed since it was looked for */
		r = 0;
	if (r)
		fail(b, r, err);
	if (b->count) {
		release(b, STR_NONE);
		pthread_join(thread, NULL);
	}
	if (b->failed)
		*err = b->err;
	return b->result;
}

/* Scan of upper alone. */

static bool upper_want_dir(void *arg, struct str path)
{
	struct both *b = arg;

	return !str_eq(wpath_name((struct wpath){path}), b->o->mark) && wants_dir(b, path);
}

static int upper_visit(void *arg, const struct scan_item *item, struct err *err)
{
	const struct scan_req *req = ((struct both *)arg)->req;

	return req->visit(req->arg, item, err);
}

static int scan_upper(struct both *b, struct wpath path, struct err *err)
{
	struct scan_req own = *b->req;
	struct store_call scan = {.op = STORE_OP_SCAN, .path = path, .scan = &own};

	own.want_dir = upper_want_dir;
	own.want_file = wants_file;
	own.visit = upper_visit;
	own.arg = b;
	return store_forward(b->o->upper, b->ctx, &scan, err);
}

static int scan_both(struct both *b, struct wpath path, struct err *err)
{
	int r = collect_gone(b, path, err);

	if (r == 0)
		r = collect_upper(b, path, err);
	if (r)
		return r;
	if (b->req->use_ignore && b->rules_differ)
		return store_scan_generic(&b->o->base, b->ctx, path, b->req, err);
	pthread_mutex_init(&b->lock, NULL);
	pthread_cond_init(&b->moved, NULL);
	r = scan_lower(b, path, err);
	pthread_cond_destroy(&b->moved);
	pthread_mutex_destroy(&b->lock);
	return r;
}

int overlay_scan(struct store *s, struct ctx *ctx, struct wpath path, const struct scan_req *req, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct overlay *o = overlay_of(s);
	struct both b = {.o = o,
			 .ctx = ctx,
			 .req = req,
			 .arena = arena,
			 .upper = strmap_new(arena),
			 .sizes = strmap_new(arena),
			 .gone = strmap_new(arena)};
	enum store_kind in_lower;
	struct found f;
	int r = overlay_refuse_reserved(o, path, err);

	if (r == 0)
		r = overlay_find_lower(o, ctx, path, COVER_RECENT, &f, &in_lower, err);
	if (r)
		return r;
	if (!in_lower)
		return scan_upper(&b, path, err);
	if (f.kind != STORE_DIR || req->threads == 1)
		return store_scan_generic(s, ctx, path, req, err);
	return scan_both(&b, path, err);
}
