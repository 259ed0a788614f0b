/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scans of an overlay. A scan of the merged lists would read one file after the other; lower's own scan has threads and
 * opens files by their directory. So lower scans itself (scan_merge.c), and when it asks whether a file or directory is
 * wanted, those that upper covers are not. Upper's files, which are few in a fork, are collected first.
 *
 * Rules of ignore files are applied by each side itself. Lower sees its own ignore files only, so when upper has or
 * hides one, the merged lists are scanned instead. So they are when the caller wants one thread.
 */
#include "base/strmap.h"
#include "store/layers/overlay_internal.h"
#include "store/list_stream.h"
#include "store/scan_merge.h"
#include "text/ignore.h"

struct both {
	struct overlay *o;
	struct ctx *ctx;
	const struct scan_req *req;
	struct arena *arena;
	struct strmap *upper; /* what upper has: enum store_kind. All names of each directory that was entered */
	struct strmap *sizes;
	struct strmap *gone;           /* whiteouts */
	bool rules_differ;             /* upper has or hides an ignore file */
	struct scan_merge_file *files; /* of upper that are wanted, sorted */
	size_t count, cap, given;
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
	b->files[b->count++] =
		(struct scan_merge_file){.path = arena_str(b->arena, item->path), .size = size ? *size : 0};
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

/* What is merged. */

static bool hides(void *arg, struct str path, bool is_dir)
{
	struct both *b = arg;
	size_t *upper = strmap_find(b->upper, path);

	return (upper && !(is_dir && *upper != STORE_FILE)) || strmap_find(b->gone, path) ||
	       str_eq(wpath_name((struct wpath){path}), b->o->mark);
}

static bool next(void *arg, struct str path, struct scan_merge_file *ret)
{
	struct both *b = arg;

	if (b->given == b->count || (path.ptr && str_cmp(b->files[b->given].path, path) >= 0))
		return false;
	*ret = b->files[b->given++];
	return true;
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
	struct scan_merge merge = {
		.base = b->o->lower, .extra = b->o->upper, .req = b->req, .hides = hides, .next = next, .arg = b};
	int r = collect_gone(b, path, err);

	if (r == 0)
		r = collect_upper(b, path, err);
	if (r)
		return r;
	if (b->req->use_ignore && b->rules_differ)
		return store_scan_generic(&b->o->base, b->ctx, path, b->req, err);
	return scan_merge(&merge, b->ctx, path, err);
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
