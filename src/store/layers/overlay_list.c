/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of an overlay: those of the two stores merged. A list asks of each of lower's entries whether upper covers it.
 * Where upper has neither the directory nor whiteouts below it, nothing can; that is remembered while the entries of a
 * directory follow each other, so listing a large tree with few changes costs little more than listing lower.
 */
#include "base/strmap.h"
#include "store/layers/overlay_internal.h"
#include "store/list_stream.h"

static int peek_upper(const struct overlay *o, struct list_stream *ls, struct store_entry *ret, bool *ret_has,
		      struct err *err)
{
	for (;;) {
		const struct store_entry *e;
		int r = list_stream_peek(ls, &e, err);

		*ret_has = r == 0 && e;
		if (r || !e)
			return r;
		if (!overlay_is_reserved(o, e->path.s)) {
			*ret = *e;
			ret->stat.version = overlay_upper_version(ls->ctx->arena, e->stat.version);
			return 0;
		}
		list_stream_leave(ls, o->mark);
	}
}

/* What upper has in one directory: names of files, directories and whiteouts. */
struct level {
	struct str dir;
	struct strmap *names; /* NULL: too many to remember */
};

#define LEVELS_MAX 16
#define NAMES_MAX  4000

/* The directories on the way to lower's entry, as far as upper has something in them. */
struct levels {
	struct level level[LEVELS_MAX];
	size_t count;
};

static int add_names(struct overlay *o, struct ctx *ctx, struct wpath dir, struct level *level, struct err *err)
{
	struct store_list_req req = {.limit = NAMES_MAX};
	struct store_page page;
	struct store_call list = {.op = STORE_OP_LIST, .path = dir, .list = &req, .ret_page = &page};
	int r = store_forward(o->upper, ctx, &list, err);

	if (r == -ERR_INVALID) /* a file of upper covers the directory */
		level->names = NULL;
	if (r)
		return r == -ERR_NOT_FOUND || r == -ERR_INVALID ? 0 : r;
	for (size_t i = 0; i < page.count && level->names; i++)
		strmap_put(level->names, wpath_name(page.entries[i].path), NULL);
	if (page.next.ptr)
		level->names = NULL;
	return 0;
}

static int load_level(struct overlay *o, struct ctx *ctx, struct str dir, struct level *ret, struct err *err)
{
	struct wpath area;
	int r = wpath_join(ctx->arena, (struct wpath){o->mark}, (struct wpath){dir}, &area, err);

	*ret = (struct level){.dir = arena_str(ctx->arena, dir), .names = strmap_new(ctx->arena)};
	if (r == 0)
		r = add_names(o, ctx, (struct wpath){dir}, ret, err);
	return r ? r : add_names(o, ctx, area, ret, err);
}

/* Whether upper has nothing to do with lower's entry `path`, below the directory `top` that is not covered. It says so
   only when it knows. */
static int is_clear(struct overlay *o, struct ctx *ctx, struct wpath top, struct wpath path, struct levels *levels,
		    bool *ret, struct err *err)
{
	struct str dir = top.s;

	*ret = false;
	for (size_t depth = 0; depth < LEVELS_MAX; depth++) {
		struct level *level = &levels->level[depth];
		size_t from = dir.len ? dir.len + 1 : 0;
		struct str name = str_from(path.s, from);
		int r = 0;

		name = str_first(name, str_find_char(name, '/'));
		if (depth >= levels->count || !str_eq(level->dir, dir)) {
			r = load_level(o, ctx, dir, level, err);
			levels->count = depth + 1;
		}
		if (r || !level->names || (depth && strmap_find(level->names, o->mark)))
			return r; /* the last: the directory itself is whited out */
		*ret = !strmap_find(level->names, name);
		if (*ret || from + name.len >= path.s.len)
			return 0;
		dir = str_first(path.s, from + name.len);
	}
	return 0;
}

/* The next of lower's entries that shows. */
static int peek_lower(struct overlay *o, struct list_stream *ls, struct levels *levels, struct store_entry *ret,
		      bool *ret_has, struct err *err)
{
	for (;;) {
		const struct store_entry *e;
		bool clear = false, covered = true, shows = true, none_gone = false;
		int r = list_stream_peek(ls, &e, err);

		*ret_has = r == 0 && e;
		if (r || !e)
			return r;
		if (!overlay_is_reserved(o, e->path.s)) {
			r = is_clear(o, ls->ctx, ls->dir, e->path, levels, &clear, err);
			covered = !clear;
			if (r == 0 && !clear)
				r = overlay_is_covered(o, ls->ctx, e->path, e->stat.kind, COVER_RECENT, &covered,
						       &none_gone, err);
		}
		if (r == 0 && !covered && !clear && !none_gone && e->stat.kind == STORE_DIR)
			r = overlay_shows_below(o, ls->ctx, e->path, COVER_RECENT, &shows, err);
		if (r)
			return r;
		if (!covered && shows) {
			*ret = *e;
			ret->stat.version = overlay_lower_version(ls->ctx->arena, e->stat.version);
			return 0;
		}
		list_stream_next(ls);
	}
}

static int merge(struct overlay *o, struct list_stream *upper, struct list_stream *lower, struct levels *levels,
		 struct page_builder *out, struct err *err)
{
	while (!page_builder_full(out)) {
		struct store_entry a, b;
		bool has_a, has_b;
		int c, r = peek_upper(o, upper, &a, &has_a, err);

		if (r == 0)
			r = peek_lower(o, lower, levels, &b, &has_b, err);
		if (r)
			return r;
		if (!has_a && !has_b)
			return 0;
		c = !has_a ? 1 : !has_b ? -1 : store_entry_cmp(&a, &b);
		page_builder_add(out, c <= 0 ? &a : &b);
		if (c <= 0)
			list_stream_next(upper);
		if (c >= 0)
			list_stream_next(lower);
	}
	return 0;
}

/* A directory that upper has nothing of and hides nothing in is lower's, and lower's page is the answer, with its
 *count. ret_done is false when it has to be merged. */
static int list_lower(struct overlay *o, struct ctx *ctx, struct wpath path, const struct store_list_req *req,
		      struct store_page *ret_page, bool *ret_done, struct err *err)
{
	struct store_page page;
	struct store_call list = {.op = STORE_OP_LIST, .path = path, .list = req, .ret_page = &page};
	bool covered, clear;
	int r = overlay_is_covered(o, ctx, path, STORE_DIR, COVER_RECENT, &covered, &clear, err);

	*ret_done = false;
	if (r || covered || !clear)
		return r;
	r = store_forward(o->lower, ctx, &list, err);
	if (r)
		return r == -ERR_NOT_FOUND || r == -ERR_INVALID ? 0 : r;
	for (size_t i = 0; i < page.count; i++) {
		struct store_entry *e = &page.entries[i];

		if (req->recursive ? overlay_is_reserved(o, e->path.s) : str_eq(wpath_name(e->path), o->mark))
			return 0;
		e->stat.version = overlay_lower_version(ctx->arena, e->stat.version);
	}
	page.stamp = 0; /* it says nothing about upper */
	*ret_page = page;
	*ret_done = true;
	return 0;
}

/* `in_upper`: upper has the directory. */
static int list_merged(struct overlay *o, struct ctx *ctx, struct wpath path, const struct store_list_req *req,
		       bool in_upper, struct store_page *ret_page, struct err *err)
{
	struct page_builder out = {.arena = ctx->arena, .limit = req->limit};
	struct list_stream upper, lower;
	struct levels levels = {0};
	struct store_stat in_lower = {0};
	enum store_kind unused;
	struct found f;
	bool covered = false, clear;
	int r;

	if (req->count)
		req->count->known = false; /* lower may have answered */
	if (in_upper) {
		r = overlay_find_below(o, ctx, path, &in_lower, err);
		if (r == 0 && in_lower.kind == STORE_DIR)
			r = overlay_is_covered(o, ctx, path, STORE_DIR, COVER_RECENT, &covered, &clear, err);
	} else {
		r = overlay_find_lower(o, ctx, path, COVER_RECENT, &f, &unused, err);
		in_lower.kind = r ? 0 : f.kind;
		if (r == 0 && f.kind != STORE_DIR)
			r = f.kind ? store_refuse(REFUSE_FILE, path.s, err) : store_not_found(err);
	}
	if (r)
		return r;
	list_stream_init(&upper, o->upper, ctx, path, WPATH_ROOT, req);
	list_stream_init(&lower, o->lower, ctx, path, WPATH_ROOT, req);
	upper.done = upper.done || !in_upper;
	lower.done = lower.done || in_lower.kind != STORE_DIR || covered;
	r = merge(o, &upper, &lower, &levels, &out, err);
	out.page.skipped = upper.skipped + lower.skipped;
	if (r == 0)
		page_builder_finish(&out, ret_page);
	return r;
}

int overlay_list(struct store *s, struct ctx *ctx, struct wpath path, const struct store_list_req *req,
		 struct store_page *ret_page, struct err *err)
{
	struct overlay *o = overlay_of(s);
	struct store_stat in_upper;
	bool done = false;
	int r = overlay_refuse_reserved(o, path, err);

	if (r == 0)
		r = overlay_find_in(o->upper, ctx, path, &in_upper, err);
	if (r == 0 && in_upper.kind == STORE_FILE)
		r = store_refuse(REFUSE_FILE, path.s, err);
	if (r == 0 && !in_upper.kind)
		r = list_lower(o, ctx, path, req, ret_page, &done, err);
	return r || done ? r : list_merged(o, ctx, path, req, in_upper.kind != 0, ret_page, err);
}

int overlay_list_upper(struct overlay *o, struct ctx *ctx, struct wpath path, const struct store_list_req *req,
		       struct store_page *ret_page, struct err *err)
{
	struct page_builder out = {.arena = ctx->arena, .limit = req->limit};
	struct list_stream upper;
	struct store_entry e;
	bool has = true;
	int r = 0;

	list_stream_init(&upper, o->upper, ctx, path, WPATH_ROOT, req);
	while (r == 0 && has && !page_builder_full(&out)) {
		r = peek_upper(o, &upper, &e, &has, err);
		if (r == 0 && has) {
			page_builder_add(&out, &e);
			list_stream_next(&upper);
		}
	}
	if (r == 0)
		page_builder_finish(&out, ret_page);
	return r;
}
