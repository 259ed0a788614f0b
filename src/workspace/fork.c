/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making and opening forks.
 *
 * A fork is a directory with one file, .stead/fork.json, that names a parent and one of its revisions. What the fork
 * changes is stored in its own directory; everything else is read from the parent as it was at that revision, through
 * the parent's log. So making a fork costs the same for ten files and for ten million, and no byte is stored twice. A
 * copy of the tree, or hard links, were rejected: both take time in proportion to the tree, and the first program that
 * writes in place breaks a link.
 *
 * The parent's own data (.stead/) never shows through: a fork has its own log, and its removals of parent files are
 * marked below .stead-gone/, which no path can name.
 */
#include "workspace/fork.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/limits.h"
#include "revisions/revisions.h"
#include "store/list_stream.h"
#include "workspace/workspace_parts.h"

#define FORK_FILE ".stead/fork.json"
#define OWN_DIR   ".stead"

/* --- .stead/fork.json --- */

static int not_a_fork_file(struct err *err)
{
	return err_set(err, ERR_CORRUPT,
		       FORK_FILE " does not say what the workspace is a fork of; put the file back, or remove the "
				 "workspace's directory");
}

int fork_read(struct ctx *ctx, struct store *home, struct fork_info *ret, bool *ret_is, struct err *err)
{
	struct str text;
	struct jv *doc;
	const struct jv *pending, *merging, *files;
	struct store_stat stat;
	int r = store_read(home, ctx, (struct wpath){STR(FORK_FILE)}, STORE_WHOLE, JSON_LEN_MAX, &text, &stat, err);

	*ret_is = r == 0;
	if (r)
		return r == -ERR_NOT_FOUND ? 0 : r;
	r = jv_parse(ctx->arena, text, &doc, err);
	if (r)
		return err_prefix(err, FORK_FILE);
	pending = jv_get(doc, "pending");
	merging = jv_get(doc, "merging");
	files = jv_get(doc, "files");
	*ret = (struct fork_info){.parent = jv_get_str(doc, "parent"),
				  .revision = (uint64_t)jv_get_int(doc, "revision", -1),
				  .dir = jv_get_str(files, "dir"),
				  .dir_revision = (uint64_t)jv_get_int(files, "revision", 0),
				  .merged = (uint64_t)jv_get_int(doc, "merged", 0),
				  .pending = pending ? jv_copy(ctx->arena, pending) : jv_object(ctx->arena),
				  .merging = (uint64_t)jv_get_int(merging, "until", 0),
				  .call = jv_get_str(merging, "call"),
				  .version = stat.version};
	if (!workspace_name_ok(ret->parent) || ret->revision > INT64_MAX || ret->merged > INT64_MAX ||
	    (ret->dir.len && (ret->dir.ptr[0] != '/' || memchr(ret->dir.ptr, 0, ret->dir.len))) ||
	    ret->dir_revision > INT64_MAX)
		return not_a_fork_file(err);
	return 0;
}

int fork_write(struct ctx *ctx, struct store *home, struct fork_info *info, struct err *err)
{
	struct store_cond cond = {.kind = info->version.len ? STORE_VERSION : STORE_ABSENT, .version = info->version};
	struct arena *arena = ctx->arena;
	struct store_stat stat;
	int r;
	struct jv *doc = jv_object(arena);
	struct buf text;

	jv_set_str(arena, doc, "parent", info->parent);
	jv_set_int(arena, doc, "revision", (int64_t)info->revision);
	if (info->dir.len) {
		struct jv *files = jv_object(arena);

		jv_set_str(arena, files, "dir", info->dir);
		jv_set_int(arena, files, "revision", (int64_t)info->dir_revision);
		jv_set(arena, doc, "files", files);
	}
	if (info->merged)
		jv_set_int(arena, doc, "merged", (int64_t)info->merged);
	if (jv_count(info->pending))
		jv_set(arena, doc, "pending", info->pending);
	if (info->merging) {
		struct jv *merging = jv_object(arena);

		jv_set_int(arena, merging, "until", (int64_t)info->merging);
		jv_set_str(arena, merging, "call", info->call);
		jv_set(arena, doc, "merging", merging);
	}
	buf_init(&text, arena, JSON_LEN_MAX);
	jv_write_pretty(&text, doc);
	if (text.overflow)
		return err_set(err, ERR_TOO_LARGE, FORK_FILE " would have too many unsettled paths; resolve some");
	r = store_write(home, ctx, (struct wpath){STR(FORK_FILE)}, buf_str(&text), cond, &stat, err);
	if (r == 0)
		info->version = stat.version;
	return r;
}

int fork_is(struct ctx *ctx, struct store *home, bool *ret, struct err *err)
{
	int r = store_stat(home, ctx, (struct wpath){STR(FORK_FILE)}, NULL, err);

	*ret = r == 0;
	return r == -ERR_NOT_FOUND ? 0 : r;
}

/* --- the parent's past, as the fork sees it --- */

struct past {
	struct store base;
	struct store *view;      /* at a revision */
	struct store *revisions; /* what it is a view of, when it was opened for it; else NULL */
};

static struct past *past_of(struct store *s)
{
	return (struct past *)s;
}

static bool is_own(struct wpath path)
{
	return wpath_within(path, (struct wpath){STR(OWN_DIR)}) || wpath_within(path, (struct wpath){STR(FORK_GONE)});
}

/* A fork speaks of its files as any workspace does: what is not there is not explained with the parent's past. */
static int past_forward(struct store *s, struct ctx *ctx, struct store_call *call, struct err *err)
{
	int r = is_own(call->path) ? -ERR_NOT_FOUND : store_forward(past_of(s)->view, ctx, call, err);

	return r == -ERR_NOT_FOUND ? store_not_found(err) : r;
}

static int past_stat(struct store *s, struct ctx *ctx, struct wpath path, struct store_stat *ret_stat, struct err *err)
{
	struct store_call call = {.op = STORE_OP_STAT, .path = path, .ret_stat = ret_stat};

	return past_forward(s, ctx, &call, err);
}

static int past_read(struct store *s, struct ctx *ctx, struct wpath path, struct store_range range,
		     const struct sink *sink, struct store_stat *ret_stat, struct err *err)
{
	struct store_call call = {
		.op = STORE_OP_READ, .path = path, .range = range, .sink = sink, .ret_stat = ret_stat};

	return past_forward(s, ctx, &call, err);
}

static int past_list(struct store *s, struct ctx *ctx, struct wpath path, const struct store_list_req *req,
		     struct store_page *ret_page, struct err *err)
{
	struct page_builder out = {.arena = ctx->arena, .limit = req->limit};
	struct store_call call = {.op = STORE_OP_LIST, .path = path, .list = req, .ret_page = ret_page};
	const struct store_entry *e;
	struct list_stream all;
	int r = 0;

	if (!wpath_is_root(path))
		return past_forward(s, ctx, &call, err);
	list_stream_init(&all, past_of(s)->view, ctx, path, WPATH_ROOT, req);
	while (r == 0 && !page_builder_full(&out)) {
		r = list_stream_peek(&all, &e, err);
		if (r || !e)
			break;
		if (is_own(e->path)) {
			list_stream_leave(&all, str_first(e->path.s, str_find_char(e->path.s, '/')));
			continue;
		}
		page_builder_add(&out, e);
		list_stream_next(&all);
	}
	out.page.skipped = all.skipped;
	if (r == 0)
		page_builder_finish(&out, ret_page);
	return r;
}

static bool past_want_dir(void *arg, struct str path)
{
	const struct scan_req *req = arg;

	return !is_own((struct wpath){path}) && (!req->want_dir || req->want_dir(req->arg, path));
}

static bool past_want_file(void *arg, struct str path)
{
	const struct scan_req *req = arg;

	return !is_own((struct wpath){path}) && (!req->want_file || req->want_file(req->arg, path));
}

static int past_visit(void *arg, const struct scan_item *item, struct err *err)
{
	const struct scan_req *req = arg;

	return req->visit(req->arg, item, err);
}

static int past_scan(struct store *s, struct ctx *ctx, struct wpath path, const struct scan_req *req, struct err *err)
{
	struct scan_req asked = *req, own = *req;
	struct store_call call = {.op = STORE_OP_SCAN, .path = path, .scan = &own};

	own.want_dir = past_want_dir;
	own.want_file = past_want_file;
	own.visit = past_visit;
	own.arg = &asked;
	return past_forward(s, ctx, &call, err);
}

static void past_destroy(struct store *s)
{
	struct past *past = past_of(s);

	store_destroy(past->view); /* before what it looks at */
	store_destroy(past->revisions);
	free(past);
}

static const struct store_ops past_ops = {
	.name = "fork-parent",
	.stat = past_stat,
	.read = past_read,
	.list = past_list,
	.scan = past_scan,
	.can = STORE_FIXED,
	.destroy = past_destroy,
};

static struct store *past_new(struct store *revisions, bool owned, uint64_t number)
{
	struct past *past = xcalloc(1, sizeof *past);

	past->base.ops = &past_ops;
	past->view = store_at_revision_new(revisions, number);
	past->revisions = owned ? revisions : NULL;
	return &past->base;
}

/* --- opening --- */

static int open_raw(struct ctx *ctx, const struct workspace_stores *place, struct str name, unsigned depth,
		    struct store **ret_raw, struct err *err);

static int check_parent(struct ctx *ctx, const struct workspace_stores *place, struct str name, struct str parent,
			unsigned depth, struct err *err)
{
	int r;

	if (depth > FORK_DEPTH_MAX)
		return err_set(err, ERR_INVALID,
			       "the workspace \"%.*s\" is a fork of a fork and so on, more than %d deep or in a "
			       "circle; merge forks into their parents first",
			       STR_ARG(name), FORK_DEPTH_MAX);
	r = store_stat(place->base, ctx, (struct wpath){parent}, NULL, err);
	if (r == -ERR_NOT_FOUND)
		return err_set(err, ERR_NOT_FOUND,
			       "the workspace \"%.*s\" is a fork of \"%.*s\", which no longer exists; restore that "
			       "workspace under its name",
			       STR_ARG(name), STR_ARG(parent));
	return r;
}

static int open_parent(struct ctx *ctx, const struct workspace_stores *place, const struct fork_info *info,
		       unsigned depth, struct store **ret_past, struct err *err)
{
	struct store *raw, *revisions;
	int r;

	if (place->known.len && str_eq(place->known, info->parent)) {
		*ret_past = past_new(place->known_revisions, false, info->revision);
		return 0;
	}
	r = open_raw(ctx, place, info->parent, depth + 1, &raw, err);
	if (!r)
		r = workspace_record(ctx, place, info->parent, raw, ".stead/rev", &revisions, err);
	if (!r)
		*ret_past = past_new(revisions, true, info->revision);
	return r;
}

/* The person's own directory, as it was, in the place of the parent's files. Owns `past`, whatever happens. */
static int add_own_files(struct ctx *ctx, const struct workspace_stores *place, const struct fork_info *info,
			 struct store *past, struct store **ret, struct err *err)
{
	bool known = place->known_own && str_eq(place->known, info->parent) && str_eq(place->known_dir, info->dir);
	struct store_mount mount = {.at = {STR("files")}, .read_only = true};
	struct store *revisions = place->known_own;
	int r = known ? 0
		      : workspace_record_own(ctx, place, info->parent, info->dir,
					     &(struct store_disk_opts){.relaxed = true, .keep_links = true}, &revisions,
					     err);

	if (r) {
		store_destroy(past);
		return err_prefix(err, "the fork belongs to the directory \"%.*s\"",
				  STR_ARG(utf8_first(info->dir, 200)));
	}
	mount.store = past_new(revisions, !known, info->dir_revision);
	*ret = store_mounts_new(past, &mount, 1);
	return 0;
}

static int open_raw(struct ctx *ctx, const struct workspace_stores *place, struct str name, unsigned depth,
		    struct store **ret_raw, struct err *err)
{
	struct store *own = store_prefix_new(store_share(place->base), (struct wpath){name}), *past;
	struct fork_info info;
	bool is_fork;
	int r = fork_read(ctx, own, &info, &is_fork, err);

	if (!r && !is_fork) {
		*ret_raw = own;
		return 0;
	}
	if (!r)
		r = check_parent(ctx, place, name, info.parent, depth, err);
	if (!r)
		r = open_parent(ctx, place, &info, depth, &past, err);
	if (!r && info.dir.len)
		r = add_own_files(ctx, place, &info, past, &past, err);
	if (r) {
		store_destroy(own);
		return r;
	}
	*ret_raw = store_overlay_marked_new(own, past, FORK_GONE);
	return 0;
}

int fork_open_raw(struct ctx *ctx, const struct workspace_stores *place, struct str name, struct store **ret_raw,
		  struct err *err)
{
	return open_raw(ctx, place, name, 1, ret_raw, err);
}

/* --- making --- */

static int is_taken(struct str name, struct err *err)
{
	return err_set(err, ERR_EXISTS, "the workspace \"%.*s\" already exists; choose another name", STR_ARG(name));
}

static int check_new(struct workspace *ws, struct ctx *ctx, struct str name, struct err *err)
{
	int r;

	if (!workspace_name_ok(name))
		return workspace_bad_name(name, err);
	if (workspace_files_are_own(ws) && workspace_part(ws).s.len)
		return err_set(err, ERR_UNSUPPORTED,
			       "a fork of one of your directories belongs to no user; leave out --user");
	r = store_stat(workspace_store_of(ws, false), ctx, (struct wpath){name}, NULL, err);
	if (r == -ERR_NOT_FOUND)
		return 0;
	return r ? r : is_taken(name, err);
}

/* The number of forks below `name`: its parent, that one's parent, and so on. */
static int count_parents(struct ctx *ctx, struct store *base, struct str name, unsigned *ret, struct err *err)
{
	bool is_fork = true;

	for (*ret = 0; is_fork && *ret <= FORK_DEPTH_MAX; ++*ret) {
		struct store *home = store_prefix_new(store_share(base), (struct wpath){name});
		struct fork_info info = {0};
		int r = fork_read(ctx, home, &info, &is_fork, err);

		store_destroy(home);
		if (r)
			return r;
		name = info.parent;
	}
	return 0;
}

struct str fork_name_of(struct workspace *ws, struct arena *arena, struct str name)
{
	struct str part = workspace_part(ws).s, mark;

	if (!part.len)
		return name;
	mark = arena_printf(arena, "-%.8s", hash_hex128(arena, part).ptr);
	return str_ends(name, mark) ? name : arena_printf(arena, "%.*s%s", STR_ARG(name), mark.ptr);
}

int fork_create(struct workspace *ws, struct ctx *ctx, struct str name, uint64_t number, struct jv **ret,
		struct err *err)
{
	struct fork_info info = {.parent = workspace_name(ws)};
	struct store *home;
	unsigned parents;
	uint64_t head, whole;
	int r;

	name = fork_name_of(ws, ctx->arena, name);
	r = check_new(ws, ctx, name, err);
	if (!r)
		r = count_parents(ctx, workspace_store_of(ws, false), workspace_name(ws), &parents, err);
	if (!r && parents > FORK_DEPTH_MAX)
		r = err_set(err, ERR_INVALID, "forks of forks may be %d deep; merge \"%.*s\" into its parent first",
			    FORK_DEPTH_MAX, STR_ARG(workspace_name(ws)));
	if (!r)
		r = revisions_head(workspace_revisions(ws), ctx, &head, err);
	if (!r)
		r = revisions_head(workspace_shared(ws), ctx, &whole, err);
	if (r)
		return r;
	if (number != FORK_AT_HEAD && number > head)
		return err_set(err, ERR_NOT_FOUND, "there is no revision %llu of \"%.*s\"; the newest is %llu",
			       (unsigned long long)number, STR_ARG(workspace_name(ws)), (unsigned long long)head);
	info.revision = number == FORK_AT_HEAD ? head : number;
	if (workspace_files_are_own(ws)) {
		info.dir = workspace_own_dir(ws);
		info.dir_revision = info.revision;
		info.revision = whole;
	}
	home = store_prefix_new(store_share(workspace_store_of(ws, true)), (struct wpath){name});
	r = fork_write(ctx, home, &info, err);
	store_destroy(home);
	if (r) /* another process may have made it since check_new() */
		return r == -ERR_EXISTS ? is_taken(name, err) : r;
	*ret = jv_object(ctx->arena);
	jv_set_str(ctx->arena, *ret, "workspace", name);
	jv_set_str(ctx->arena, *ret, "parent", info.parent);
	jv_set_int(ctx->arena, *ret, "revision", (int64_t)(info.dir.len ? info.dir_revision : info.revision));
	return 0;
}

/* --- dropping --- */

/* *ret: `name` is a fork of the workspace `parent`. */
static int is_fork_of(struct ctx *ctx, struct store *base, struct str name, struct str parent, bool *ret,
		      struct err *err)
{
	struct store *home = store_prefix_new(store_share(base), (struct wpath){name});
	struct fork_info info;
	bool is_fork;
	int r = fork_read(ctx, home, &info, &is_fork, err);

	store_destroy(home);
	*ret = r == 0 && is_fork && str_eq(info.parent, parent);
	return r;
}

bool fork_find(struct workspace *ws, struct ctx *ctx, struct str name, struct str *ret_name)
{
	struct str names[] = {fork_name_of(ws, ctx->arena, name), name};
	struct err ignored;
	bool is = false;

	for (size_t i = 0; i < COUNT(names) && !is; i++) {
		if (!workspace_name_ok(names[i]) ||
		    is_fork_of(ctx, workspace_store_of(ws, false), names[i], workspace_name(ws), &is, &ignored) != 0)
			is = false;
		*ret_name = names[i];
	}
	return is;
}

int fork_drop(struct workspace *ws, struct ctx *ctx, struct str name, struct err *err)
{
	struct jv *names = jv_array(ctx->arena), *unused = jv_array(ctx->arena);
	struct store *base = workspace_store_of(ws, true);
	bool has_fork = false;
	int r;

	if (!fork_find(ws, ctx, name, &name))
		return err_set(err, ERR_INVALID, "\"%.*s\" is not a fork of \"%.*s\"; `stead list` shows the forks",
			       STR_ARG(utf8_first(name, 80)), STR_ARG(workspace_name(ws)));
	r = workspace_names(ctx, base, names, unused, err);
	for (const struct jv_member *m = jv_first(names); r == 0 && m; m = m->next) {
		r = is_fork_of(ctx, base, jv_str_of(m->value), name, &has_fork, err);
		if (r == 0 && has_fork)
			return err_set(err, ERR_CONFLICT, "\"%.*s\" is a fork of \"%.*s\"; drop that one first",
				       STR_ARG(jv_str_of(m->value)), STR_ARG(name));
	}
	return r ? r : store_remove(base, ctx, (struct wpath){name}, true, (struct store_cond){0}, NULL, err);
}
