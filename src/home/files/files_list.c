/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ls: a directory to a depth, in list order, a page at a time with the total. The walk goes depth first over the
 * store's lists, whose order puts a directory's content right after the directory, so the cursor is simply the last
 * name given.
 *
 * A page costs what is on it: only its entries are looked at. The total is a count of names. Most stores know it for
 * one directory; otherwise it is made by a second walk, when the page does not hold everything. That ends at WALK_MOST
 * entries; then the total is "at least".
 */
#include "base/clock.h"
#include "base/limits.h"
#include "home/files/files.h"
#include "text/ignore.h"
#include "workspace/own_dir.h"

#define WALK_MOST  100000
#define DEPTH_MOST 20

struct walk {
	struct call *call;
	struct jv *entries; /* NULL: the walk only counts */
	struct jv *links;   /* of a directory of the person's own */
	size_t limit;
	size_t bytes; /* of the paths given */
	uint64_t total, skipped;
	uint64_t ignored; /* left out by a rule of Git, and .git itself */
	bool uses_ignore;
	bool details;     /* sizes, times and versions are given too */
	struct str after; /* cursor to begin after: path, directories with '/' */
	struct str last;  /* given last, as a cursor */
	bool more, gave_up;
	bool wants_count;         /* of the directory that is listed next */
	struct store_count count; /* if the store knows it */
};

/* The entry's name in the walk's order: directories end in '/'. */
static struct str walk_key(struct arena *arena, const struct store_entry *e)
{
	return e->stat.kind == STORE_DIR ? arena_printf(arena, "%.*s/", STR_ARG(e->path.s)) : e->path.s;
}

static bool is_full(const struct walk *w)
{
	if (!w->entries)
		return w->total >= WALK_MOST;
	return jv_count(w->entries) >= w->limit || w->bytes >= READ_BYTES_DEFAULT;
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
	if (e->stat.kind == STORE_FILE && w->details) {
		jv_set_int(arena, v, "size", (int64_t)e->stat.size);
		jv_set_str(arena, v, "modified", workspace_time(w->call->ws, arena, e->stat.mtime_ns));
		jv_set_str(arena, v, "version", e->stat.version);
	}
	jv_push(arena, w->entries, v);
	w->bytes += e->path.s.len + (w->details ? 50 : 2);
	if (is_full(w))
		w->last = walk_key(arena, e);
}

/* A directory on the way down: how many levels may follow, and the rules of the directories above it. */
struct level {
	struct wpath dir;
	unsigned depth;
	const struct ignore *rules;
};

static int walk_dir(struct walk *w, struct ctx *ctx, const struct level *at, struct err *err);

/* What is in an entry of the walk. */
static int walk_below(struct walk *w, struct ctx *ctx, struct wpath dir, const struct level *at, struct err *err)
{
	struct level below = {dir, at->depth - 1, at->rules};
	int r = at->depth > 1 ? walk_dir(w, ctx, &below, err) : 0;

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
   continues after it. */
static int walk_cursor(struct walk *w, struct ctx *ctx, struct str cursor, const struct level *at, struct err *err)
{
	struct err ignored;
	struct wpath dir;
	int r;

	if (!str_ends(cursor, STR("/")) || wpath_parse(str_first(cursor, cursor.len - 1), &dir, &ignored))
		return 0;
	r = walk_below(w, ctx, dir, at, err);
	return r && (err->kind == ERR_INVALID || err->kind == ERR_DENIED) ? 0 : r;
}

/* A page of a directory: what it holds, and what is below its directories. */
static int walk_page(struct walk *w, struct ctx *ctx, const struct store_page *page, const struct level *at,
		     struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < page->count && r == 0; i++) {
		const struct store_entry *e = &page->entries[i];

		if (w->uses_ignore && ignore_match(at->rules, e->path.s, e->stat.kind == STORE_DIR)) {
			w->ignored++;
			continue;
		}
		if (is_full(w)) {
			w->more = true;
			return 0;
		}
		give_entry(w, e);
		if (e->stat.kind == STORE_DIR)
			r = walk_below(w, ctx, e->path, at, err);
	}
	w->more = w->more || (r == 0 && is_full(w) && page->next.ptr);
	return r;
}

/* The rules that `file` of the directory adds. */
static const struct ignore *add_rules(struct walk *w, const struct ignore *rules, struct wpath dir, const char *file)
{
	struct arena *arena = w->call->ctx->arena;
	struct wpath path;
	struct err ignored;
	struct str text;

	if (wpath_join(arena, dir, (struct wpath){str_of(file)}, &path, &ignored) ||
	    store_read(w->call->files, w->call->ctx, path, (struct store_range){0, IGNORE_LEN_MAX}, IGNORE_LEN_MAX,
		       &text, NULL, &ignored))
		return rules;
	return ignore_push(arena, rules, dir.s, text);
}

/* The rules of the directories above `dir`. A directory that is ignored itself was asked for by its name, so in it
   nothing is. */
static const struct ignore *rules_above(struct walk *w, struct wpath dir)
{
	struct arena *arena = w->call->ctx->arena;
	struct str rest = dir.s, name;
	const struct ignore *rules = NULL;
	struct wpath at = WPATH_ROOT;
	struct err ignored;

	if (store_stat(w->call->files, w->call->ctx, (struct wpath){STR(".git")}, NULL, &ignored))
		rules = ignore_outside_repository(arena);
	rules = add_rules(w, rules, WPATH_ROOT, IGNORE_EXCLUDE_FILE);
	while (rest.len && str_cut(&rest, '/', &name)) {
		rules = add_rules(w, rules, at, IGNORE_FILE);
		if (wpath_join(arena, at, (struct wpath){name}, &at, &ignored) || ignore_match(rules, at.s, true)) {
			w->uses_ignore = false;
			return NULL;
		}
	}
	return rules;
}

static int walk_dir(struct walk *w, struct ctx *ctx, const struct level *above, struct err *err)
{
	struct store_list_req req = {.limit = STORE_PAGE_MAX, .names_only = !w->entries || !w->details};
	struct level at = *above;
	struct store_page page = {0};
	int r;

	if (!cursor_in(w, ctx->arena, at.dir, &req.after))
		return 0;
	if (w->uses_ignore)
		at.rules = add_rules(w, at.rules, at.dir, IGNORE_FILE);
	if (w->wants_count)
		req.count = &w->count;
	w->wants_count = false;
	r = walk_cursor(w, ctx, req.after, &at, err);
	while (r == 0 && !w->more) {
		if (w->entries) /* one tells whether there is more */
			req.limit = is_full(w) ? 1 : w->limit - jv_count(w->entries);
		r = store_list(w->call->files, ctx, at.dir, &req, &page, err);
		if (r == 0)
			r = ctx_check(ctx, err);
		if (r == 0) {
			w->skipped += page.skipped;
			if (page.skipped && w->links && !req.after.len)
				own_dir_links(ctx->arena, workspace_own_dir(w->call->ws), w->call->files, at.dir,
					      w->links);
			r = walk_page(w, ctx, &page, &at, err);
		}
		req.after = page.next;
		req.count = NULL;
		if (!page.next.ptr)
			break;
	}
	return r;
}

/* Counts what the page does not hold: what follows it, or everything when what precedes it is not known either. */
static int count_others(struct walk *w, const struct level *top, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = *w->call->ctx;
	bool only_rest = !w->after.len && top->depth == 1 && !w->skipped && !w->ignored;
	struct walk count = {.call = w->call,
			     .total = only_rest ? w->total : 0,
			     .after = only_rest ? w->last : STR(""),
			     .uses_ignore = w->uses_ignore};
	int r;

	if (w->count.known) {
		w->total = w->count.total;
		w->skipped = w->count.skipped;
		return 0;
	}
	ctx.arena = arena;
	r = walk_dir(&count, &ctx, top, err);
	if (r)
		return r;
	w->total = count.total;
	w->skipped = count.skipped;
	w->ignored = count.ignored;
	w->gave_up = count.more;
	return 0;
}

/* Why the directory could not be listed. The path is looked at only now, so a list that succeeds costs one question. */
static int explain(struct call *call, struct wpath path, int r, struct err *err)
{
	struct store_stat stat;
	int found;

	if (wpath_is_root(path) || (r != -ERR_INVALID && r != -ERR_NOT_FOUND && r != -ERR_DENIED))
		return r;
	found = store_stat(call->files, call->ctx, path, &stat, err);
	if (found == 0 && stat.kind == STORE_FILE)
		return err_set(err, ERR_INVALID, "ls %.*s: it is a file; use read_file", STR_ARG(path.s));
	return found ? found : r;
}

/* A page as asked, of the directory `path`; a file is an answer of its own. */
int tool_ls(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	struct walk w = {.call = call,
			 .entries = jv_array(arena),
			 .links = workspace_own_dir(call->ws).len ? jv_array(arena) : NULL,
			 .after = jv_get_str(args, "cursor"),
			 .uses_ignore = files_use_ignore(call, args),
			 .details = jv_get_bool(args, "details", false),
			 .limit = arg_count(args, "limit", LIST_LIMIT_DEFAULT, LIST_LIMIT_MAX)};
	struct level top = {.depth = (unsigned)arg_count(args, "depth", 1, DEPTH_MOST)};
	struct wpath path;
	int r = arg_path(call, args, "path", &path, err);

	if (r)
		return r;
	top.dir = path;
	w.wants_count = top.depth == 1 && !w.uses_ignore;
	if (w.uses_ignore)
		top.rules = rules_above(&w, path);
	if (r == 0)
		r = walk_dir(&w, call->ctx, &top, err);
	if (r == 0 && (w.more || w.after.len))
		r = count_others(&w, &top, err);
	if (r)
		return explain(call, path, r, err);
	ret->value = jv_object(arena);
	jv_set_str(arena, ret->value, "path", path_shown(path));
	jv_set(arena, ret->value, "entries", w.entries);
	jv_set_int(arena, ret->value, w.gave_up ? "total_at_least" : "total", (int64_t)w.total);
	if (jv_count(w.links))
		jv_set(arena, ret->value, "links", w.links);
	if (w.skipped > jv_count(w.links))
		jv_set_int(arena, ret->value, "skipped", (int64_t)(w.skipped - jv_count(w.links)));
	if (w.ignored)
		jv_set_int(arena, ret->value, "ignored", (int64_t)w.ignored);
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
		if (jv_get(m->value, "version")) {
			buf_lit(text, "  ");
			buf_size(text, (uint64_t)jv_get_int(m->value, "size", 0));
			buf_printf(text, "  %.*s  version %.*s", STR_ARG(jv_get_str(m->value, "modified")),
				   STR_ARG(jv_get_str(m->value, "version")));
		}
		buf_char(text, '\n');
	}
	for (const struct jv_member *m = jv_first(jv_get(value, "links")); m; m = m->next) {
		struct str path = jv_get_str(m->value, "path");

		buf_printf(text, "%.*s -> %.*s\n", STR_ARG(str_is(dir, "/") ? path : str_from(path, dir.len + 1)),
			   STR_ARG(jv_get_str(m->value, "target")));
	}
	if (jv_count(jv_get(value, "entries")) + jv_count(jv_get(value, "links")) == 0)
		buf_printf(text, "[no entries%s]\n", total > 0 ? " on this page" : "");
	if (jv_get_int(value, "skipped", 0))
		buf_printf(text, "[%lld left out: their names are not valid paths, or they are not files]\n",
			   (long long)jv_get_int(value, "skipped", 0));
	if (jv_get_int(value, "ignored", 0))
		buf_printf(text, "[%lld ignored by Git %s not shown; set all to see them]\n",
			   (long long)jv_get_int(value, "ignored", 0),
			   jv_get_int(value, "ignored", 0) == 1 ? "is" : "are");
	if (next.len)
		buf_printf(text, "[%zu of %s%lld entries; continue with cursor \"%.*s\"]\n",
			   jv_count(jv_get(value, "entries")), total < 0 ? "more than " : "",
			   (long long)(total < 0 ? jv_get_int(value, "total_at_least", 0) : total), STR_ARG(next));
	if (text->len && text->ptr[text->len - 1] == '\n')
		text->len--;
}
