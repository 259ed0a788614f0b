/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ls: a directory to a depth, in list order, a page at a time with the total. The walk goes depth first over the
 * store's lists, whose order puts a directory's content right after the directory, so the cursor is simply the last
 * name given. Counting ends at WALK_MOST entries; then the total is "at least".
 */
#include "base/clock.h"
#include "home/files/files.h"

#define WALK_MOST  100000
#define DEPTH_MOST 20

struct walk {
	struct call *call;
	struct jv *entries;
	struct str after; /* cursor: path, directories with '/' */
	size_t limit;
	uint64_t total, skipped;
	struct str last; /* given last, as a cursor */
	bool more, gave_up;
};

/* The entry's name in the walk's order: directories end in '/'. */
static struct str walk_key(struct arena *arena, const struct store_entry *e)
{
	return e->stat.kind == STORE_DIR ? arena_printf(arena, "%.*s/", STR_ARG(e->path.s)) : e->path.s;
}

static void give_entry(struct walk *w, const struct store_entry *e)
{
	struct arena *arena = w->call->ctx->arena;
	struct jv *v;

	w->total++;
	if (jv_count(w->entries) >= w->limit) {
		w->more = true;
		return;
	}
	if (w->after.len && str_cmp(walk_key(arena, e), w->after) <= 0)
		return;
	v = jv_object(arena);
	jv_set_str(arena, v, "path", e->path.s);
	jv_set_str(arena, v, "kind", e->stat.kind == STORE_DIR ? STR("directory") : STR("file"));
	if (e->stat.kind == STORE_FILE) {
		jv_set_int(arena, v, "size", (int64_t)e->stat.size);
		jv_set_str(arena, v, "modified", clock_format_utc(arena, e->stat.mtime_ns));
	}
	jv_push(arena, w->entries, v);
	if (jv_count(w->entries) == w->limit)
		w->last = walk_key(arena, e);
}

static int walk_dir(struct walk *w, struct wpath dir, unsigned depth, struct err *err)
{
	struct store_list_req req = {.limit = STORE_PAGE_MAX};
	struct store_page page;

	do {
		int r = store_list(w->call->files, w->call->ctx, dir, &req, &page, err);

		if (r == 0)
			r = ctx_check(w->call->ctx, err);
		if (r)
			return r;
		w->skipped += page.skipped;
		for (size_t i = 0; i < page.count; i++) {
			if (w->total >= WALK_MOST) {
				w->gave_up = true;
				return 0;
			}
			give_entry(w, &page.entries[i]);
			if (depth > 1 && page.entries[i].stat.kind == STORE_DIR) {
				r = walk_dir(w, page.entries[i].path, depth - 1, err);
				/* a directory may go while it is being walked */
				if (r && err->kind != ERR_NOT_FOUND)
					return r;
			}
		}
		req.after = page.next;
	} while (page.next.ptr);
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
		r = walk_dir(&w, path, (unsigned)arg_count(args, "depth", 1, DEPTH_MOST), err);
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
