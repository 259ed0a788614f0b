/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The past as a store. What has changed since the revision is looked up in the log; everything else is read from the
 * files as they are now. So a view costs nothing to make and nothing to keep, and reading through it costs what has
 * changed since, not what there is. It is what a fork stands on.
 *
 * The changed paths are held sorted, and brought up to date when the log has grown. A file that is being changed while
 * it is read is safe: its record is in the log before its bytes change, so looking at the log again after the read
 * tells whether the bytes were still the old ones (content_read_now).
 */
#include "base/limits.h"
#include "store/revisions/layer.h"

struct changed {
	struct str path;
	bool existed;
	uint64_t size;
};

struct at {
	struct store base;
	struct store *revisions; /* borrowed */
	uint64_t number;
	pthread_mutex_t lock;
	struct arena *memory;
	struct changed *changed; /* sorted by path */
	size_t count;
	uint64_t known; /* the log's head that `changed` covers */
};

static struct at *at_of(struct store *s)
{
	return (struct at *)s;
}

static int changed_cmp(const void *a, const void *b)
{
	return str_cmp(((const struct changed *)a)->path, ((const struct changed *)b)->path);
}

/* The first entry that is not before `path`. */
static size_t changed_from(const struct at *at, struct str path)
{
	size_t low = 0, high = at->count;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (str_cmp(at->changed[mid].path, path) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static const struct changed *changed_find(const struct at *at, struct str path)
{
	size_t i = changed_from(at, path);

	return i < at->count && str_eq(at->changed[i].path, path) ? &at->changed[i] : NULL;
}

/* Takes in what the log has got since. The view's lock is held. */
static int bring_up(struct at *at, struct ctx *ctx, struct err *err)
{
	struct revisions *rv = revisions_of(at->revisions);
	uint64_t head;
	size_t before = at->count;
	int r = revisions_ready(rv, ctx, err);

	if (r == 0)
		r = revlog_refresh(rv->log, ctx, err);
	if (r)
		return r;
	revlog_lock(rv->log);
	r = revlog_keeps(rv->log, at->number, err);
	head = revlog_head(rv->log);
	if (r == 0 && head > at->known) {
		size_t cap = at->count + (size_t)(head - at->known);

		at->changed = xrealloc(at->changed, (cap + 1) * sizeof(*at->changed));
		for (uint64_t n = at->known + 1; n <= head; n++) {
			struct rev_record *rec = revlog_at(rv->log, n);

			if (!rec || rec->r.aborted || (rec->prev && rec->prev->r.number > at->number))
				continue; /* not the first change of its path since */
			at->changed[at->count++] = (struct changed){.path = arena_str(at->memory, rec->r.path.s),
								    .existed = rec->r.before.exists,
								    .size = rec->r.before.size};
		}
		at->known = head;
	}
	revlog_unlock(rv->log);
	if (at->count > before)
		qsort(at->changed, at->count, sizeof(*at->changed), changed_cmp);
	return r;
}

/* Versions of the past are of another kind than those of now, and must not be taken for them. */
static struct str past_version(struct arena *arena, uint64_t number, struct str version, uint64_t size)
{
	if (version.len)
		return arena_printf(arena, "r-%.*s", STR_ARG(version));
	return arena_printf(arena, "r%llu-%llu", (unsigned long long)number, (unsigned long long)size);
}

/* What lies there now may be another program's work that nobody has noticed yet; the record tells what was there. */
static void as_recorded(struct at *at, struct wpath path, struct store_stat *stat)
{
	struct revlog *log = revisions_of(at->revisions)->log;
	const struct rev_record *last;

	revlog_lock(log);
	last = revlog_last(log, path);
	if (last && last->r.after.exists && !(last->done && str_eq(last->r.after.version, stat->version))) {
		stat->size = last->r.after.size;
		stat->version = STR_NONE;
	}
	revlog_unlock(log);
}

/* True when a file below `dir` existed at the revision. */
static int dir_existed(struct at *at, struct ctx *ctx, struct wpath dir, bool *ret, struct err *err)
{
	struct store_list_req req = {.recursive = true, .limit = 64};
	struct store_page page;
	struct store_call list = {.op = STORE_OP_LIST, .path = dir, .list = &req, .ret_page = &page};
	struct wpath below;
	int r;

	*ret = wpath_is_root(dir);
	for (size_t i = changed_from(at, dir.s); !*ret && i < at->count; i++) {
		below.s = at->changed[i].path;
		if (!str_starts(below.s, dir.s))
			break;
		*ret = wpath_within(below, dir) && !wpath_eq(below, dir) && at->changed[i].existed;
	}
	while (!*ret) {
		r = store_forward(at->revisions->inner, ctx, &list, err);
		if (r)
			return r == -ERR_NOT_FOUND || r == -ERR_INVALID ? 0 : r;
		for (size_t i = 0; i < page.count && !*ret; i++)
			*ret = !changed_find(at, page.entries[i].path.s);
		req.after = page.next;
		if (!page.next.ptr)
			break;
	}
	return 0;
}

static int stat_locked(struct at *at, struct ctx *ctx, struct wpath path, struct store_stat *ret_stat, struct err *err)
{
	struct store_call get = {.op = STORE_OP_STAT, .path = path, .ret_stat = ret_stat};
	const struct changed *c = changed_find(at, path.s);
	struct rev_state state;
	bool existed;
	int r;

	if (c && c->existed) {
		r = revisions_state(at->revisions, ctx, path, at->number, &state, err);
		*ret_stat = (struct store_stat){.kind = STORE_FILE, .size = c->size};
		ret_stat->version = past_version(ctx->arena, at->number, state.version, c->size);
		return r;
	}
	if (!c) {
		r = store_forward(at->revisions->inner, ctx, &get, err);
		if (r == 0 && ret_stat->kind == STORE_FILE) {
			as_recorded(at, path, ret_stat);
			ret_stat->version = past_version(ctx->arena, at->number, ret_stat->version, ret_stat->size);
			return 0;
		}
		if (r && r != -ERR_NOT_FOUND && r != -ERR_INVALID)
			return r;
	}
	r = dir_existed(at, ctx, path, &existed, err);
	if (r)
		return r;
	*ret_stat = (struct store_stat){.kind = STORE_DIR};
	return existed ? 0
		       : err_set(err, ERR_NOT_FOUND, "it did not exist at revision %llu",
				 (unsigned long long)at->number);
}

static int at_stat(struct store *s, struct ctx *ctx, struct wpath path, struct store_stat *ret_stat, struct err *err)
{
	struct at *at = at_of(s);
	int r;

	pthread_mutex_lock(&at->lock);
	r = bring_up(at, ctx, err);
	if (r == 0)
		r = stat_locked(at, ctx, path, ret_stat, err);
	pthread_mutex_unlock(&at->lock);
	return r;
}

static int at_read(struct store *s, struct ctx *ctx, struct wpath path, struct store_range range,
		   const struct sink *sink, struct store_stat *ret_stat, struct err *err)
{
	struct at *at = at_of(s);
	struct rev_state state;
	int r = at_stat(s, ctx, path, ret_stat, err);

	if (r)
		return r;
	if (ret_stat->kind == STORE_DIR)
		return err_set(err, ERR_INVALID, "it is a directory; name a file");
	return revisions_read(at->revisions, ctx, path, at->number, range, sink, &state, err);
}

/* --- lists --- */

struct gather {
	struct store_entry *entries;
	size_t count, cap;
};

static void gather_add(struct arena *arena, struct gather *g, struct store_entry e)
{
	if (g->count == g->cap) {
		size_t cap = g->cap ? g->cap * 2 : 64;

		g->entries = arena_grow(arena, g->entries, g->cap * sizeof(e), cap * sizeof(e));
		g->cap = cap;
	}
	g->entries[g->count++] = e;
}

static int entry_cmp(const void *a, const void *b)
{
	return store_entry_cmp(a, b);
}

/* What lies in the store now and was not changed since. */
static int gather_current(struct at *at, struct ctx *ctx, struct wpath dir, bool recursive, struct gather *g,
			  struct err *err)
{
	struct store_list_req req = {.recursive = recursive, .limit = STORE_PAGE_MAX};
	struct store_page page;
	struct store_call list = {.op = STORE_OP_LIST, .path = dir, .list = &req, .ret_page = &page};

	do {
		int r = store_forward(at->revisions->inner, ctx, &list, err);

		if (r == -ERR_NOT_FOUND || r == -ERR_INVALID)
			return 0;
		if (r)
			return r;
		for (size_t i = 0; i < page.count; i++) {
			struct store_entry e = page.entries[i];
			bool existed = !changed_find(at, e.path.s);

			if (e.stat.kind == STORE_DIR) {
				r = dir_existed(at, ctx, e.path, &existed, err);
				if (r)
					return r;
			} else {
				as_recorded(at, e.path, &e.stat);
				e.stat.version = past_version(ctx->arena, at->number, e.stat.version, e.stat.size);
			}
			if (existed)
				gather_add(ctx->arena, g, e);
		}
		req.after = page.next;
	} while (page.next.ptr);
	return 0;
}

/* What was changed since and existed then. */
static int gather_changed(struct at *at, struct ctx *ctx, struct wpath dir, bool recursive, struct gather *g,
			  struct err *err)
{
	for (size_t i = changed_from(at, dir.s); i < at->count; i++) {
		struct wpath path = {at->changed[i].path};
		struct store_entry e = {.path = path};
		size_t cut;
		int r;

		if (!str_starts(path.s, dir.s))
			break;
		if (!at->changed[i].existed || !wpath_within(path, dir) || wpath_eq(path, dir))
			continue;
		cut = str_find_char(wpath_relative(path, dir).s, '/');
		if (!recursive && cut < wpath_relative(path, dir).s.len) {
			e.path.s = str_first(path.s, (dir.s.len ? dir.s.len + 1 : 0) + cut);
			e.stat.kind = STORE_DIR;
		} else {
			r = stat_locked(at, ctx, path, &e.stat, err);
			if (r)
				return r;
		}
		e.path.s = arena_str(ctx->arena, e.path.s);
		gather_add(ctx->arena, g, e);
	}
	return 0;
}

static void cut_page(struct arena *arena, struct gather *g, const struct store_list_req *req, struct store_page *ret)
{
	size_t out = 0;

	*ret = (struct store_page){
		.entries = ARENA_ARRAY(arena, struct store_entry, req->limit < g->count ? req->limit : g->count)};
	qsort(g->entries, g->count, sizeof(*g->entries), entry_cmp);
	for (size_t i = 0; i < g->count; i++) {
		struct store_entry *e = &g->entries[i];
		bool is_dir = e->stat.kind == STORE_DIR;
		struct str key = is_dir ? arena_printf(arena, "%.*s/", STR_ARG(e->path.s)) : e->path.s;

		if (i && wpath_eq(e->path, g->entries[i - 1].path))
			continue; /* a directory that both halves know */
		if (req->after.len && str_cmp(key, req->after) <= 0)
			continue;
		if (out == req->limit) {
			struct store_entry *last = &ret->entries[out - 1];

			ret->next = last->stat.kind == STORE_DIR ? arena_printf(arena, "%.*s/", STR_ARG(last->path.s))
								 : last->path.s;
			break;
		}
		ret->entries[out++] = *e;
	}
	ret->count = out;
}

static int at_list(struct store *s, struct ctx *ctx, struct wpath dir, const struct store_list_req *req,
		   struct store_page *ret_page, struct err *err)
{
	struct at *at = at_of(s);
	struct gather g = {0};
	struct store_stat stat;
	int r;

	pthread_mutex_lock(&at->lock);
	r = bring_up(at, ctx, err);
	if (r == 0)
		r = stat_locked(at, ctx, dir, &stat, err);
	if (r == 0 && stat.kind == STORE_FILE)
		r = err_set(err, ERR_INVALID, "it is a file; name a directory");
	if (r == 0)
		r = gather_current(at, ctx, dir, req->recursive, &g, err);
	if (r == 0)
		r = gather_changed(at, ctx, dir, req->recursive, &g, err);
	pthread_mutex_unlock(&at->lock);
	if (r == 0)
		cut_page(ctx->arena, &g, req, ret_page);
	return r;
}

static int at_around(struct store *s, struct ctx *ctx, struct store_call *call, struct err *err)
{
	if (call->op == STORE_OP_SCAN)
		return store_scan_generic(s, ctx, call->path, call->scan, err);
	return err_set(err, ERR_DENIED, "the past cannot be changed; restore what you want from it instead");
}

static void at_destroy(struct store *s)
{
	struct at *at = at_of(s);

	pthread_mutex_destroy(&at->lock);
	arena_destroy(at->memory);
	free(at->changed);
	free(at);
}

static const struct store_ops at_ops = {
	.name = "at-revision",
	.stat = at_stat,
	.read = at_read,
	.list = at_list,
	.around = at_around,
	.destroy = at_destroy,
};

struct store *store_at_revision_new(struct store *revisions, uint64_t number)
{
	struct at *at = xcalloc(1, sizeof(*at));

	at->base.ops = &at_ops;
	at->revisions = revisions;
	at->number = number;
	at->known = number;
	at->memory = arena_new();
	pthread_mutex_init(&at->lock, NULL);
	return &at->base;
}
