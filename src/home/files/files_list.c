/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ls: a directory to a depth, in list order, a page at a time with the total. The walk goes depth first over the
 * store's lists, whose order puts a directory's content right after the directory, so the cursor is simply the last
 * name given.
 *
 * A page costs what is on it: only its entries are looked at. The total is a count of names, and is made by a second
 * walk only when the page does not hold everything. Counting ends at WALK_MOST entries; then the total is "at least".
 */
#include "base/clock.h"
#include "base/limits.h"
#include "home/files/files.h"

#define WALK_MOST  100000
#define DEPTH_MOST 20

struct walk {
	struct call *call;
	struct jv *entries; /* NULL: the walk only counts */
	size_t limit;
	uint64_t total, skipped;
	struct str after; /* cursor to begin after: path, directories with '/' */
	struct str last;  /* given last, as a cursor */
	bool more, gave_up;
};

/* The entry's name in the walk's order: directories end in '/'. */
static struct str walk_key(struct arena *arena, const struct store_entry *e)
{
	return e->stat.kind == STORE_DIR ? arena_printf(arena, "%.*s/", STR_ARG(e->path.s)) : e->path.s;
}

static bool is_full(const struct walk *w)
{
	return w->entries ? jv_count(w->entries) >= w->limit : w->total >= WALK_MOST;
}

static void give_entry(struct walk *w, const struct store_entry *e)
{
	struct arena *arena = w->call->ctx->arena;
	struct jv *v;

	w->total++;
	if (!w->entries)
		return;
	v = jv_object(arena);
	jv_set_str(arena, v, "path", e->path.s);
	jv_set_str(arena, v, "kind", e->stat.kind == STORE_DIR ? STR("directory") : STR("file"));
	if (e->stat.kind == STORE_FILE) {
		jv_set_int(arena, v, "size", (int64_t)e->stat.size);
		jv_set_str(arena, v, "modified", clock_format_utc(arena, e->stat.mtime_ns));
	}
	jv_push(arena, w->entries, v);
	if (is_full(w))
		w->last = walk_key(arena, e);
}

static int walk_dir(struct walk *w, struct ctx *ctx, struct wpath dir, unsigned depth, struct err *err);

/* What is in an entry of the walk. */
static int walk_below(struct walk *w, struct ctx *ctx, struct wpath dir, unsigned depth, struct err *err)
{
	int r = depth > 1 ? walk_dir(w, ctx, dir, depth - 1, err) : 0;

	return r && err->kind == ERR_NOT_FOUND ? 0 : r; /* a directory may go while it is being walked */
}

/* The cursor as one of the list of `dir`: the entry of it that the cursor is, or is below. False: all of the directory
   comes before the cursor. */
static bool cursor_in(const struct walk *w, struct arena *arena, struct wpath dir, struct str *ret)
{
	struct str below = wpath_is_root(dir) ? STR("") : arena_printf(arena, "%.*s/", STR_ARG(dir.s)), rest;

	*ret = STR("");
	if (!w->after.len || !str_starts(w->after, below))
		return str_cmp(w->after, below) <= 0;
	rest = str_from(w->after, below.len);
	if (rest.len)
		*ret = str_first(w->after, below.len + str_find_char(rest, '/') + 1);
	return true;
}

/* What comes after the cursor in the entry that it is below. Whether there is still such a directory or not, the walk
   goes on after it. */
static int walk_cursor(struct walk *w, struct ctx *ctx, struct str cursor, unsigned depth, struct err *err)
{
	struct err ignored;
	struct wpath dir;
	int r;

	if (!str_ends(cursor, STR("/")) || wpath_parse(str_first(cursor, cursor.len - 1), &dir, &ignored))
		return 0;
	r = walk_below(w, ctx, dir, depth, err);
	return r && (err->kind == ERR_INVALID || err->kind == ERR_DENIED) ? 0 : r;
}

/* A page of a directory: what it holds, and what is below its directories. */
static int walk_page(struct walk *w, struct ctx *ctx, const struct store_page *page, unsigned depth, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < page->count && r == 0; i++) {
		if (is_full(w)) {
			w->more = true;
			return 0;
		}
		give_entry(w, &page->entries[i]);
		if (page->entries[i].stat.kind == STORE_DIR)
			r = walk_below(w, ctx, page->entries[i].path, depth, err);
	}
	w->more = w->more || (r == 0 && is_full(w) && page->next.ptr);
	return r;
}

static int walk_dir(struct walk *w, struct ctx *ctx, struct wpath dir, unsigned depth, struct err *err)
{
	struct store_list_req req = {.limit = STORE_PAGE_MAX, .names_only = !w->entries};
	struct store_page page = {0};
	int r;

	if (!cursor_in(w, ctx->arena, dir, &req.after))
		return 0;
	r = walk_cursor(w, ctx, req.after, depth, err);
	while (r == 0 && !w->more) {
		if (w->entries) /* one tells whether there is more */
			req.limit = is_full(w) ? 1 : w->limit - jv_count(w->entries);
		r = store_list(w->call->files, ctx, dir, &req, &page, err);
		if (r == 0)
			r = ctx_check(ctx, err);
		if (r == 0) {
			w->skipped += page.skipped;
			r = walk_page(w, ctx, &page, depth, err);
		}
		req.after = page.next;
		if (!page.next.ptr)
			break;
	}
	return r;
}

/* Counts what the page does not hold: what follows it, or everything when what precedes it is not known either. */
static int count_others(struct walk *w, struct wpath dir, unsigned depth, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = *w->call->ctx;
	bool only_rest = !w->after.len && depth == 1 && !w->skipped;
	struct walk count = {
		.call = w->call, .total = only_rest ? w->total : 0, .after = only_rest ? w->last : STR("")};
	int r;

	ctx.arena = arena;
	r = walk_dir(&count, &ctx, dir, depth, err);
	if (r)
		return r;
	w->total = count.total;
	w->skipped = count.skipped;
	w->gave_up = count.more;
	return 0;
}

/* A page as asked, of the directory `path`; a file is an answer of its own. */
int tool_ls(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	struct walk w = {.call = call,
			 .entries = jv_array(arena),
			 .after = jv_get_str(args, "cursor"),
			 .limit = arg_count(args, "limit", LIST_LIMIT_DEFAULT, LIST_LIMIT_MAX)};
	unsigned depth = (unsigned)arg_count(args, "depth", 1, DEPTH_MOST);
	struct store_stat stat;
	struct wpath path;
	int r = arg_path(call, args, "path", &path, err);

	if (r == 0 && !wpath_is_root(path)) {
		r = store_stat(call->files, call->ctx, path, &stat, err);
		if (r == 0 && stat.kind == STORE_FILE)
			return err_set(err, ERR_INVALID, "ls %.*s: it is a file; use read_file or file_info",
				       STR_ARG(path.s));
	}
	if (r == 0)
		r = walk_dir(&w, call->ctx, path, depth, err);
	if (r == 0 && (w.more || w.after.len))
		r = count_others(&w, path, depth, err);
	if (r)
		return r;
	ret->value = jv_object(arena);
	jv_set_str(arena, ret->value, "path", path_shown(path));
	jv_set(arena, ret->value, "entries", w.entries);
	jv_set_int(arena, ret->value, w.gave_up ? "total_at_least" : "total", (int64_t)w.total);
	if (w.skipped)
		jv_set_int(arena, ret->value, "skipped", (int64_t)w.skipped);
	if (w.more && w.last.len)
		jv_set_str(arena, ret->value, "next_cursor", w.last);
	return 0;
}

void render_ls(const struct jv *args, const struct jv *value, struct buf *text)
{
	struct str dir = jv_get_str(value, "path"), next = jv_get_str(value, "next_cursor");
	int64_t total = jv_get_int(value, "total", -1);

	(void)args;
	for (const struct jv_member *m = jv_first(jv_get(value, "entries")); m; m = m->next) {
		struct str path = jv_get_str(m->value, "path");

		buf_add(text, str_is(dir, "/") ? path : str_from(path, dir.len + 1));
		if (str_is(jv_get_str(m->value, "kind"), "directory")) {
			buf_lit(text, "/\n");
			continue;
		}
		buf_lit(text, "  ");
		buf_size(text, (uint64_t)jv_get_int(m->value, "size", 0));
		buf_lit(text, "  ");
		buf_add(text, jv_get_str(m->value, "modified"));
		buf_char(text, '\n');
	}
	if (jv_count(jv_get(value, "entries")) == 0)
		buf_printf(text, "[no entries%s]\n", total > 0 ? " on this page" : "");
	if (jv_get_int(value, "skipped", 0))
		buf_printf(text, "[%lld entries left out: their names are not valid paths, or they are not files]\n",
			   (long long)jv_get_int(value, "skipped", 0));
	if (next.len)
		buf_printf(text, "[%zu of %s%lld entries; continue with cursor \"%.*s\"]\n",
			   jv_count(jv_get(value, "entries")), total < 0 ? "more than " : "",
			   (long long)(total < 0 ? jv_get_int(value, "total_at_least", 0) : total), STR_ARG(next));
	if (text->len && text->ptr[text->len - 1] == '\n')
		text->len--;
}
