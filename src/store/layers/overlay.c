/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two stores as one: writes go to `upper`, what upper does not have comes from `lower`, which is never changed. A
 * workspace made from a template is one of these, so a template is not copied, and its improvements arrive.
 *
 * Deleting what lower has leaves a whiteout in upper: the empty file ".stead-wh/<path>/.stead-wh". It hides `path` and
 * everything below it in lower, never anything in upper. The name comes twice so that a whiteout of "a" and one of
 * "a/b" can both exist; it is refused as an element of any path, so nobody can see or forge one.
 *
 * Each operation is ordered so that only its last step shows. A removed override is whited out first, while it still
 * covers what it will no longer hide; a moved template file is copied up in place, then whited out, then moved within
 * upper. A failure in between leaves what was there, at worst with a file copied up. One exception: a directory that
 * is in both stores disappears in two steps; if the second fails, the first is undone.
 *
 * A list asks of each of lower's entries whether upper covers it. Where upper has neither the directory nor whiteouts
 * below it, nothing can; that is remembered while the entries of a directory follow each other, so listing a large tree
 * with few changes costs little more than listing lower.
 *
 * Versions of lower's files begin with "l:", so that a condition tells which of the two was read. An upper version that
 * happens to begin with "l:" or "u:" gets "u:" before it.
 */
#include <pthread.h>

#include "base/limits.h"
#include "base/strmap.h"
#include "store/journal.h"
#include "store/list_stream.h"
#include "store/stores.h"

#define WHITEOUT ".stead-wh"

struct overlay {
	struct store base; /* inner is upper */
	struct store *upper, *lower;
	struct str mark;      /* WHITEOUT, or the name used instead */
	pthread_mutex_t lock; /* held from looking at what lower shows until the change that relies on it is made */
};

/* What is at a path. kind 0: nothing. */
struct found {
	enum store_kind kind;
	bool in_lower;
	struct store_stat stat;
};

static struct overlay *overlay_of(struct store *s)
{
	return (struct overlay *)s;
}

/* Small helpers: the two stores asked directly. */

static int find_in(struct store *in, struct ctx *ctx, struct wpath path, struct store_stat *ret, struct err *err)
{
	struct store_call call = {.op = STORE_OP_STAT, .path = path, .ret_stat = ret};
	int r = store_forward(in, ctx, &call, err);

	if (r == -ERR_NOT_FOUND)
		*ret = (struct store_stat){0};
	return r == -ERR_NOT_FOUND ? 0 : r;
}

static bool is_reserved(const struct overlay *o, struct str path)
{
	struct str name;

	if (str_find(path, o->mark, 0) == SIZE_MAX)
		return false;
	while (str_cut(&path, '/', &name))
		if (str_eq(name, o->mark))
			return true;
	return false;
}

static int refuse_reserved(const struct overlay *o, struct wpath path, struct err *err)
{
	if (!is_reserved(o, path.s))
		return 0;
	return err_set(err, ERR_DENIED, "the name \"%.*s\" is reserved; choose another one", STR_ARG(o->mark));
}

static struct str lower_version(struct arena *arena, struct str version)
{
	return version.len ? arena_printf(arena, "l:%.*s", STR_ARG(version)) : version;
}

static struct str upper_version(struct arena *arena, struct str version)
{
	if (str_starts(version, STR("l:")) || str_starts(version, STR("u:")))
		return arena_printf(arena, "u:%.*s", STR_ARG(version));
	return version;
}

/* The condition as upper understands it. One on a version of lower never holds there. */
static struct store_cond upper_cond(struct store_cond cond)
{
	if (str_starts(cond.version, STR("u:")))
		cond.version = str_from(cond.version, 2);
	return cond;
}

/* Whiteouts. */

static int whiteout_path(const struct overlay *o, struct ctx *ctx, struct wpath path, struct wpath *ret,
			 struct err *err)
{
	struct wpath in_area;
	int r = wpath_join(ctx->arena, (struct wpath){o->mark}, path, &in_area, err);

	return r ? r : wpath_join(ctx->arena, in_area, (struct wpath){o->mark}, ret, err);
}

static int put_whiteout(struct overlay *o, struct ctx *ctx, struct wpath path, struct err *err)
{
	struct source empty = {.bytes = STR("")};
	struct store_stat stat;
	struct store_call call = {.op = STORE_OP_WRITE, .source = &empty, .ret_stat = &stat};
	int r = whiteout_path(o, ctx, path, &call.path, err);

	return r ? r : store_forward(o->upper, ctx, &call, err);
}

/* Only tidies up: a whiteout that is left behind hides nothing visible. */
static void drop_whiteout(struct overlay *o, struct ctx *ctx, struct wpath path)
{
	uint64_t count;
	struct store_call call = {.op = STORE_OP_REMOVE, .ret_count = &count};
	struct err ignored;

	if (whiteout_path(o, ctx, path, &call.path, &ignored) == 0)
		store_forward(o->upper, ctx, &call, &ignored);
}

/* Whether `path` (its first `len` bytes) has a whiteout; *ret_more: something below it may have one. */
static int has_whiteout(struct overlay *o, struct ctx *ctx, struct str path, bool *ret, bool *ret_more, struct err *err)
{
	struct store_stat stat;
	struct wpath area, mark;
	int r = wpath_join(ctx->arena, (struct wpath){o->mark}, (struct wpath){path}, &area, err);

	*ret = *ret_more = false;
	if (r == 0)
		r = find_in(o->upper, ctx, area, &stat, err);
	if (r || stat.kind != STORE_DIR)
		return r;
	*ret_more = true;
	r = wpath_join(ctx->arena, area, (struct wpath){o->mark}, &mark, err);
	if (r == 0)
		r = find_in(o->upper, ctx, mark, &stat, err);
	*ret = r == 0 && stat.kind == STORE_FILE;
	return r;
}

/* Whether lower's entry at `path` is covered: by a whiteout on it or above, by a file of upper on it or above, or (a
   file) by a directory of upper. Stops as soon as upper has nothing further down. */
static int is_covered(struct overlay *o, struct ctx *ctx, struct wpath path, enum store_kind kind, bool *ret,
		      struct err *err)
{
	bool in_upper = true, in_area = true;

	*ret = false;
	for (size_t i = 1; i <= path.s.len && (in_upper || in_area); i++) {
		struct wpath part = {str_first(path.s, i)};
		struct store_stat stat;
		int r = 0;

		if (i < path.s.len && path.s.ptr[i] != '/')
			continue;
		if (in_area)
			r = has_whiteout(o, ctx, part.s, ret, &in_area, err);
		if (r || *ret)
			return r;
		if (in_upper)
			r = find_in(o->upper, ctx, part, &stat, err);
		if (r)
			return r;
		*ret = in_upper &&
		       (stat.kind == STORE_FILE || (stat.kind == STORE_DIR && i == path.s.len && kind == STORE_FILE));
		if (*ret)
			return 0;
		in_upper = in_upper && stat.kind == STORE_DIR;
	}
	return 0;
}

/* Whether any file below lower's directory shows. */
static int shows_below(struct overlay *o, struct ctx *ctx, struct wpath dir, bool *ret, struct err *err)
{
	struct store_list_req req = {.recursive = true, .limit = 100};
	struct list_stream ls;
	const struct store_entry *e;

	*ret = false;
	list_stream_init(&ls, o->lower, ctx, dir, WPATH_ROOT, &req);
	while (!*ret) {
		bool covered = true;
		int r = list_stream_peek(&ls, &e, err);

		if (r || !e)
			return r;
		if (!is_reserved(o, e->path.s))
			r = is_covered(o, ctx, e->path, STORE_FILE, &covered, err);
		if (r)
			return r;
		*ret = !covered;
		list_stream_next(&ls);
	}
	return 0;
}

/* What lower shows at `path`; *ret_has: it has something there, shown or not. */
static int find_lower(struct overlay *o, struct ctx *ctx, struct wpath path, struct found *ret, bool *ret_has,
		      struct err *err)
{
	struct store_stat stat;
	bool covered, shows = true;
	int r = find_in(o->lower, ctx, path, &stat, err);

	*ret = (struct found){0};
	*ret_has = r == 0 && stat.kind;
	if (r || !stat.kind)
		return r;
	r = is_covered(o, ctx, path, stat.kind, &covered, err);
	if (r || covered)
		return r;
	if (stat.kind == STORE_DIR)
		r = shows_below(o, ctx, path, &shows, err);
	if (r || !shows)
		return r;
	*ret = (struct found){.kind = stat.kind, .in_lower = true, .stat = stat};
	ret->stat.version = lower_version(ctx->arena, stat.version);
	return 0;
}

static int find_upper(struct overlay *o, struct ctx *ctx, struct wpath path, struct found *ret, struct err *err)
{
	struct store_stat stat;
	int r = find_in(o->upper, ctx, path, &stat, err);

	if (r)
		return r;
	*ret = (struct found){.kind = stat.kind, .stat = stat};
	ret->stat.version = upper_version(ctx->arena, stat.version);
	return 0;
}

/* What shows at `path`. */
static int find(struct overlay *o, struct ctx *ctx, struct wpath path, struct found *ret, struct err *err)
{
	bool has;
	int r = find_upper(o, ctx, path, ret, err);

	if (r || ret->kind)
		return r;
	return find_lower(o, ctx, path, ret, &has, err);
}

static int not_found(struct err *err)
{
	return err_set(err, ERR_NOT_FOUND, "there is no such file or directory; list its parent to see what is there");
}

static int is_a_dir(struct wpath path, struct err *err)
{
	return store_refuse(REFUSE_DIR, path.s, err);
}

/* A condition on what shows, when that is lower's or nothing. */
static int check_cond(const struct found *f, struct store_cond cond, struct err *err)
{
	return store_cond_check(cond, f->kind, f->stat.version, err);
}

/* Reading. */

static int overlay_stat(struct store *s, struct ctx *ctx, struct wpath path, struct store_stat *ret_stat,
			struct err *err)
{
	struct found f;
	int r = refuse_reserved(overlay_of(s), path, err);

	if (r == 0)
		r = find(overlay_of(s), ctx, path, &f, err);
	if (r == 0 && !f.kind)
		r = not_found(err);
	if (r == 0)
		*ret_stat = f.stat;
	return r;
}

static int overlay_read(struct store *s, struct ctx *ctx, struct wpath path, struct store_range range,
			const struct sink *sink, struct store_stat *ret_stat, struct err *err)
{
	struct overlay *o = overlay_of(s);
	struct store_stat stat;
	struct store_call call = {.op = STORE_OP_READ, .path = path, .range = range, .sink = sink, .ret_stat = &stat};
	struct found f;
	bool covered, has;
	int r = refuse_reserved(overlay_of(s), path, err);

	if (r)
		return r;
	r = store_forward(o->upper, ctx, &call, err);
	if (r == 0)
		stat.version = upper_version(ctx->arena, stat.version);
	if (r == -ERR_NOT_FOUND) { /* of a file that is covered, nothing of lower's may be handed on: ask first */
		r = is_covered(o, ctx, path, STORE_FILE, &covered, err);
		if (r == 0 && covered)
			r = not_found(err);
		if (r == 0)
			r = store_forward(o->lower, ctx, &call, err);
		if (r == -ERR_INVALID) { /* a directory, which may have nothing in it that shows */
			struct err ignored;

			if (find_lower(o, ctx, path, &f, &has, &ignored) == 0 && !f.kind)
				r = not_found(err);
		}
		if (r == 0)
			stat.version = lower_version(ctx->arena, stat.version);
	}
	if (r == 0)
		*ret_stat = stat;
	return r;
}

/* Writing. */

/* What lower shows at a place that is to be written; refuses when that is a directory, or a file on the way there. */
static int check_place(struct overlay *o, struct ctx *ctx, struct wpath path, struct found *ret, bool *ret_has,
		       struct err *err)
{
	*ret = (struct found){0};
	*ret_has = false;
	for (size_t i = 1; i <= path.s.len; i++) {
		struct wpath part = {str_first(path.s, i)};
		struct store_stat stat;
		bool covered = false;
		int r;

		if (i < path.s.len && path.s.ptr[i] != '/')
			continue;
		if (i == path.s.len) {
			r = find_lower(o, ctx, path, ret, ret_has, err);
			return r == 0 && ret->kind == STORE_DIR ? is_a_dir(path, err) : r;
		}
		r = find_in(o->lower, ctx, part, &stat, err);
		if (r == 0 && stat.kind == STORE_FILE)
			r = is_covered(o, ctx, part, STORE_FILE, &covered, err);
		if (r || !stat.kind)
			return r;
		if (stat.kind == STORE_FILE && !covered)
			return store_refuse(REFUSE_BELOW_FILE, part.s, err);
	}
	return 0;
}

/* Copies what lower shows at `path` to upper; ret_version is upper's. Somebody may have been faster: then it is theirs.
 */
static int copy_up(struct overlay *o, struct ctx *ctx, struct wpath path, struct str *ret_version, struct err *err)
{
	struct store_cond absent = {.kind = STORE_ABSENT};
	struct store_stat stat;
	int r = store_copy_between(o->lower, ctx, path, o->upper, path, absent, &stat, err);

	if (r == -ERR_EXISTS)
		r = find_in(o->upper, ctx, path, &stat, err);
	if (r == 0)
		*ret_version = stat.version;
	return r;
}

/* Write or append where lower shows a file and upper has none. */
static int change_lower_file(struct overlay *o, struct ctx *ctx, struct store_call *call, struct err *err)
{
	struct found f = {0};
	struct str version = STR_NONE;
	int r = find(o, ctx, call->path, &f, err);

	if (r == 0)
		r = check_cond(&f, call->cond, err);
	if (r)
		return r;
	if (!f.in_lower) {
		call->cond = upper_cond(call->cond);
		return store_forward(o->upper, ctx, call, err);
	}
	if (call->op == STORE_OP_APPEND) {
		r = copy_up(o, ctx, call->path, &version, err);
		if (r)
			return r;
		if (call->cond.kind == STORE_VERSION)
			call->cond.version = version;
	} else if (call->cond.kind == STORE_VERSION) {
		call->cond = (struct store_cond){.kind = STORE_ABSENT}; /* upper must still have none */
	}
	r = store_forward(o->upper, ctx, call, err);
	if (r == -ERR_EXISTS)
		r = err_set(err, ERR_CONFLICT, "it changed since it was read; read again");
	return r;
}

static int change(struct overlay *o, struct ctx *ctx, struct store_call *call, struct err *err)
{
	bool has = false, locks;
	struct found f = {0};
	int r = refuse_reserved(o, call->path, err);

	if (r == 0)
		r = check_place(o, ctx, call->path, &f, &has, err);
	if (r)
		return r;
	if (f.kind == STORE_FILE) {
		locks = call->cond.kind != STORE_ANY || call->op == STORE_OP_APPEND;
		if (locks)
			pthread_mutex_lock(&o->lock);
		r = change_lower_file(o, ctx, call, err);
		if (locks)
			pthread_mutex_unlock(&o->lock);
	} else {
		call->cond = upper_cond(call->cond);
		r = store_forward(o->upper, ctx, call, err);
	}
	if (r)
		return r;
	if (has)
		drop_whiteout(o, ctx, call->path);
	call->ret_stat->version = upper_version(ctx->arena, call->ret_stat->version);
	return 0;
}

static int overlay_write(struct store *s, struct ctx *ctx, struct wpath path, const struct source *source,
			 struct store_cond cond, struct store_stat *ret_stat, struct err *err)
{
	struct store_call call = {
		.op = STORE_OP_WRITE, .path = path, .source = source, .cond = cond, .ret_stat = ret_stat};

	return change(overlay_of(s), ctx, &call, err);
}

static int overlay_append(struct store *s, struct ctx *ctx, struct wpath path, const struct source *source,
			  struct store_cond cond, struct store_stat *ret_stat, struct err *err)
{
	struct store_call call = {
		.op = STORE_OP_APPEND, .path = path, .source = source, .cond = cond, .ret_stat = ret_stat};

	return change(overlay_of(s), ctx, &call, err);
}

/* Removing. */

static int remove_upper(struct overlay *o, struct ctx *ctx, struct wpath path, bool recursive, struct store_cond cond,
			struct err *err)
{
	uint64_t count;
	struct store_call call = {.op = STORE_OP_REMOVE,
				  .path = path,
				  .recursive = recursive,
				  .cond = upper_cond(cond),
				  .ret_count = &count};

	return store_forward(o->upper, ctx, &call, err);
}

static int remove_file(struct overlay *o, struct ctx *ctx, struct wpath path, const struct found *f,
		       struct store_cond cond, struct err *err)
{
	struct store_stat in_lower;
	int r = check_cond(f, cond, err);

	if (r == 0)
		r = find_in(o->lower, ctx, path, &in_lower, err);
	if (r == 0 && in_lower.kind)
		r = put_whiteout(o, ctx, path, err);
	if (r == 0 && !f->in_lower)
		r = remove_upper(o, ctx, path, false, cond, err);
	return r;
}

static int remove_dir(struct overlay *o, struct ctx *ctx, struct wpath path, struct err *err)
{
	struct store_stat in_upper, in_lower;
	bool was_there = true, more;
	int r = find_in(o->upper, ctx, path, &in_upper, err);

	if (r == 0)
		r = find_in(o->lower, ctx, path, &in_lower, err);
	if (r == 0 && in_lower.kind)
		r = has_whiteout(o, ctx, path.s, &was_there, &more, err);
	if (r == 0 && !was_there)
		r = put_whiteout(o, ctx, path, err);
	else if (r)
		return r;
	if (r == 0 && in_upper.kind) {
		struct err ignored;

		r = remove_upper(o, ctx, path, true, (struct store_cond){0}, err);
		if (r && find_in(o->upper, ctx, path, &in_upper, &ignored) == 0 && !in_upper.kind)
			return 0; /* it did happen: taking the whiteout back would bring the template back */
	}
	if (r && !was_there) /* also one whose writing failed: it may be there all the same */
		drop_whiteout(o, ctx, path);
	return r;
}

static int overlay_list(struct store *s, struct ctx *ctx, struct wpath path, const struct store_list_req *req,
			struct store_page *ret_page, struct err *err);

typedef int (*each_entry)(struct overlay *o, struct ctx *ctx, const struct store_entry *e, void *arg, struct err *err);

/* Calls `each` for what shows in `dir`. */
static int for_each(struct overlay *o, struct ctx *ctx, struct wpath dir, bool recursive, each_entry each, void *arg,
		    struct err *err)
{
	struct store_list_req req = {.recursive = recursive, .limit = 1000};
	struct store_page page;

	do {
		int r = ctx_check(ctx, err);

		if (r == 0)
			r = overlay_list(&o->base, ctx, dir, &req, &page, err);
		for (size_t i = 0; r == 0 && i < page.count; i++)
			r = each(o, ctx, &page.entries[i], arg, err);
		if (r)
			return r;
		req.after = page.next;
	} while (page.next.ptr);
	return 0;
}

static int count_one(struct overlay *o, struct ctx *ctx, const struct store_entry *e, void *arg, struct err *err)
{
	(void)o;
	(void)ctx;
	(void)e;
	(void)err;
	++*(uint64_t *)arg;
	return 0;
}

static int remove_one(struct overlay *o, struct ctx *ctx, const struct store_entry *e, void *arg, struct err *err)
{
	struct found f;
	int r;

	(void)arg;
	if (e->stat.kind == STORE_DIR)
		return remove_dir(o, ctx, e->path, err);
	r = find(o, ctx, e->path, &f, err);
	return r || !f.kind ? r : remove_file(o, ctx, e->path, &f, (struct store_cond){0}, err);
}

static int remove_locked(struct overlay *o, struct ctx *ctx, struct wpath path, bool recursive, struct store_cond cond,
			 uint64_t *ret_count, struct err *err)
{
	struct found f;
	uint64_t count = 0;
	int r = find(o, ctx, path, &f, err);

	if (r)
		return r;
	if (!f.kind)
		return cond.kind == STORE_VERSION ? check_cond(&f, cond, err) : not_found(err);
	if (f.kind == STORE_DIR && cond.kind != STORE_ANY)
		return err_set(err, ERR_INVALID, "it is a directory, which has no version; leave the condition out");
	if (f.kind == STORE_DIR && !recursive)
		return store_refuse(REFUSE_NOT_RECURSIVE, path.s, err);
	if (f.kind == STORE_FILE) {
		count = 1;
		r = remove_file(o, ctx, path, &f, cond, err);
	} else {
		r = for_each(o, ctx, path, true, count_one, &count, err);
		if (r == 0 && wpath_is_root(path)) /* which has no whiteout of its own */
			r = for_each(o, ctx, path, false, remove_one, NULL, err);
		else if (r == 0)
			r = remove_dir(o, ctx, path, err);
	}
	if (r == 0)
		*ret_count = count;
	return r;
}

static int overlay_remove(struct store *s, struct ctx *ctx, struct wpath path, bool recursive, struct store_cond cond,
			  uint64_t *ret_count, struct err *err)
{
	struct overlay *o = overlay_of(s);
	int r = refuse_reserved(overlay_of(s), path, err);

	if (r)
		return r;
	pthread_mutex_lock(&o->lock);
	r = remove_locked(o, ctx, path, recursive, cond, ret_count, err);
	pthread_mutex_unlock(&o->lock);
	return r;
}

/* Moving. */

static int copy_up_one(struct overlay *o, struct ctx *ctx, const struct store_entry *e, void *arg, struct err *err)
{
	struct str version;

	(void)arg;
	return str_starts(e->stat.version, STR("l:")) ? copy_up(o, ctx, e->path, &version, err) : 0;
}

/* Brings everything that shows at `path` into upper and covers lower there. Nothing that shows changes by it. */
static int pull_up(struct overlay *o, struct ctx *ctx, struct wpath path, const struct found *f,
		   struct str *ret_version, struct err *err)
{
	struct store_stat in_lower;
	int r = find_in(o->lower, ctx, path, &in_lower, err);

	if (r || !in_lower.kind)
		return r;
	if (f->kind == STORE_DIR)
		r = for_each(o, ctx, path, true, copy_up_one, NULL, err);
	else if (f->in_lower)
		r = copy_up(o, ctx, path, ret_version, err);
	return r ? r : put_whiteout(o, ctx, path, err);
}

/* Upper would refuse a target below one of its files; better before anything is copied up. */
static int check_way(struct overlay *o, struct ctx *ctx, struct wpath to, struct err *err)
{
	struct store_stat stat;
	int r;

	for (size_t i = 1; i < to.s.len; i++) {
		if (to.s.ptr[i] != '/')
			continue;
		r = find_in(o->upper, ctx, (struct wpath){str_first(to.s, i)}, &stat, err);
		if (r || !stat.kind)
			return r;
		if (stat.kind == STORE_FILE)
			return store_refuse(REFUSE_BELOW_FILE, str_first(to.s, i), err);
	}
	return 0;
}

static int move_locked(struct overlay *o, struct ctx *ctx, struct store_call *call, struct err *err)
{
	struct str version = STR_NONE;
	struct found from, to, to_lower;
	bool has;
	int r = find(o, ctx, call->path, &from, err);

	if (r)
		return r;
	if (!from.kind)
		return call->cond.kind == STORE_VERSION ? check_cond(&from, call->cond, err) : not_found(err);
	if (from.kind == STORE_DIR && call->cond.kind != STORE_ANY)
		return err_set(err, ERR_INVALID, "it is a directory, which has no version; leave the condition out");
	r = check_cond(&from, call->cond, err);
	if (r == 0)
		r = check_place(o, ctx, call->to, &to_lower, &has, err);
	if (r == 0)
		r = check_way(o, ctx, call->to, err);
	if (r == 0)
		r = find(o, ctx, call->to, &to, err);
	if (r == 0 && to.kind && (from.kind == STORE_DIR || to.kind == STORE_DIR))
		return err_set(err, ERR_INVALID, ERR_PATH " exists; a directory neither replaces nor is replaced",
			       STR_ARG(call->to.s));
	if (r == 0)
		r = check_cond(&to, call->to_cond, err);
	if (r == 0)
		r = pull_up(o, ctx, call->path, &from, &version, err);
	if (r)
		return r;
	call->cond = upper_cond(call->cond);
	if (from.in_lower && call->cond.kind == STORE_VERSION)
		call->cond.version = version;
	call->to_cond = to.in_lower ? (struct store_cond){.kind = STORE_ABSENT} : upper_cond(call->to_cond);
	r = store_forward(o->upper, ctx, call, err);
	if (r == 0 && from.kind == STORE_FILE && has)
		drop_whiteout(o, ctx, call->to);
	return r;
}

static int overlay_move(struct store *s, struct ctx *ctx, struct wpath from, struct wpath to, struct store_cond cond,
			struct store_cond to_cond, struct store_stat *ret_stat, struct err *err)
{
	struct overlay *o = overlay_of(s);
	struct store_call call = {
		.op = STORE_OP_MOVE, .path = from, .to = to, .cond = cond, .to_cond = to_cond, .ret_stat = ret_stat};
	int r = refuse_reserved(o, from, err);

	if (r == 0)
		r = refuse_reserved(o, to, err);
	if (r)
		return r;
	pthread_mutex_lock(&o->lock);
	r = move_locked(o, ctx, &call, err);
	pthread_mutex_unlock(&o->lock);
	if (r == 0)
		ret_stat->version = upper_version(ctx->arena, ret_stat->version);
	return r;
}

/* Lists. */

static int peek_upper(const struct overlay *o, struct list_stream *ls, struct store_entry *ret, bool *ret_has,
		      struct err *err)
{
	for (;;) {
		const struct store_entry *e;
		int r = list_stream_peek(ls, &e, err);

		*ret_has = r == 0 && e;
		if (r || !e)
			return r;
		if (!is_reserved(o, e->path.s)) {
			*ret = *e;
			ret->stat.version = upper_version(ls->ctx->arena, e->stat.version);
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
		bool clear = false, covered = true, shows = true;
		int r = list_stream_peek(ls, &e, err);

		*ret_has = r == 0 && e;
		if (r || !e)
			return r;
		if (!is_reserved(o, e->path.s)) {
			r = is_clear(o, ls->ctx, ls->dir, e->path, levels, &clear, err);
			covered = !clear;
			if (r == 0 && !clear)
				r = is_covered(o, ls->ctx, e->path, e->stat.kind, &covered, err);
		}
		if (r == 0 && !covered && !clear && e->stat.kind == STORE_DIR)
			r = shows_below(o, ls->ctx, e->path, &shows, err);
		if (r)
			return r;
		if (!covered && shows) {
			*ret = *e;
			ret->stat.version = lower_version(ls->ctx->arena, e->stat.version);
			return 0;
		}
		list_stream_next(ls);
	}
}

static int merge(struct overlay *o, struct list_stream *upper, struct list_stream *lower, struct page_builder *out,
		 struct err *err)
{
	struct levels levels = {0};

	while (!page_builder_full(out)) {
		struct store_entry a, b;
		bool has_a, has_b;
		int c, r = peek_upper(o, upper, &a, &has_a, err);

		if (r == 0)
			r = peek_lower(o, lower, &levels, &b, &has_b, err);
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

static int overlay_list(struct store *s, struct ctx *ctx, struct wpath path, const struct store_list_req *req,
			struct store_page *ret_page, struct err *err)
{
	struct overlay *o = overlay_of(s);
	struct page_builder out = {.arena = ctx->arena, .limit = req->limit};
	struct list_stream upper, lower;
	struct store_stat in_lower;
	struct found f;
	bool covered = false;
	int r = refuse_reserved(overlay_of(s), path, err);

	if (r == 0)
		r = find(o, ctx, path, &f, err);
	if (r == 0 && f.kind != STORE_DIR)
		r = f.kind ? store_refuse(REFUSE_FILE, path.s, err) : not_found(err);
	if (r == 0)
		r = find_in(o->lower, ctx, path, &in_lower, err);
	if (r == 0 && in_lower.kind == STORE_DIR)
		r = is_covered(o, ctx, path, STORE_DIR, &covered, err);
	if (r)
		return r;
	list_stream_init(&upper, o->upper, ctx, path, WPATH_ROOT, req);
	list_stream_init(&lower, o->lower, ctx, path, WPATH_ROOT, req);
	lower.done = in_lower.kind != STORE_DIR || covered;
	r = merge(o, &upper, &lower, &out, err);
	out.page.skipped = upper.skipped + lower.skipped;
	if (r == 0)
		page_builder_finish(&out, ret_page);
	return r;
}

/* Scans: where lower has nothing, upper's own, which is the faster one. */

struct upper_scan {
	const struct scan_req *req;
	struct str mark;
};

static bool scan_want_dir(void *arg, struct str path)
{
	const struct upper_scan *scan = arg;
	const struct scan_req *req = scan->req;

	return !str_eq(wpath_name((struct wpath){path}), scan->mark) &&
	       (!req->want_dir || req->want_dir(req->arg, path));
}

static bool scan_want_file(void *arg, struct str path)
{
	const struct scan_req *req = ((const struct upper_scan *)arg)->req;

	return !req->want_file || req->want_file(req->arg, path);
}

static int scan_visit(void *arg, const struct scan_item *item, struct err *err)
{
	const struct scan_req *req = ((const struct upper_scan *)arg)->req;

	return req->visit(req->arg, item, err);
}

static int overlay_scan(struct store *s, struct ctx *ctx, struct wpath path, const struct scan_req *req,
			struct err *err)
{
	struct overlay *o = overlay_of(s);
	struct store_list_req first = {.limit = 1};
	struct store_page page = {0};
	struct store_call list = {.op = STORE_OP_LIST, .path = path, .list = &first, .ret_page = &page};
	struct scan_req own = *req;
	struct upper_scan wanted = {req, o->mark};
	struct store_call scan = {.op = STORE_OP_SCAN, .path = path, .scan = &own};
	int r = refuse_reserved(overlay_of(s), path, err);

	if (r)
		return r;
	r = store_forward(o->lower, ctx, &list, err);
	if (r == -ERR_NOT_FOUND || (r == 0 && page.count == 0)) {
		own.want_dir = scan_want_dir;
		own.want_file = scan_want_file;
		own.visit = scan_visit;
		own.arg = &wanted;
		return store_forward(o->upper, ctx, &scan, err);
	}
	return store_scan_generic(s, ctx, path, req, err);
}

static void overlay_destroy(struct store *s)
{
	struct overlay *o = overlay_of(s);

	store_destroy(o->lower);
	pthread_mutex_destroy(&o->lock);
	free(o);
}

/* Journals are in upper: lower is only read. What they change in the same step would have to be looked for in both. */
static int overlay_journal_read(struct store *s, struct ctx *ctx, struct wpath journal, const struct journal_read *req,
				struct journal_page *ret_page, struct err *err)
{
	struct store_call call = {
		.op = STORE_OP_JOURNAL_READ, .path = journal, .journal_read = req, .ret_journal = ret_page};

	return store_forward(overlay_of(s)->upper, ctx, &call, err);
}

static int overlay_journal_add(struct store *s, struct ctx *ctx, struct wpath journal, struct wpath to,
			       struct store_cond cond, const struct journal_add *add, struct journal_added *ret_added,
			       struct err *err)
{
	struct store_call call = {
		.op = STORE_OP_JOURNAL_ADD, .path = journal, .journal_add = add, .ret_added = ret_added};

	(void)to;
	(void)cond;
	if (add->change != JOURNAL_ALONE)
		return err_set(err, ERR_UNSUPPORTED, "an overlay cannot change a file and a journal in one step");
	return store_forward(overlay_of(s)->upper, ctx, &call, err);
}

static int overlay_journal_cut(struct store *s, struct ctx *ctx, struct wpath journal, uint64_t before, struct err *err)
{
	struct store_call call = {.op = STORE_OP_JOURNAL_CUT, .path = journal, .journal_before = before};

	return store_forward(overlay_of(s)->upper, ctx, &call, err);
}

static const struct store_ops overlay_ops = {
	.name = "overlay",
	.cannot = STORE_ONE_STEP,
	.stat = overlay_stat,
	.read = overlay_read,
	.write = overlay_write,
	.append = overlay_append,
	.remove = overlay_remove,
	.move = overlay_move,
	.copy = store_copy_generic,
	.list = overlay_list,
	.scan = overlay_scan,
	.journal_read = overlay_journal_read,
	.journal_add = overlay_journal_add,
	.journal_cut = overlay_journal_cut,
	.destroy = overlay_destroy,
};

struct store *store_overlay_new(struct store *upper, struct store *lower)
{
	return store_overlay_marked_new(upper, lower, WHITEOUT);
}

struct store *store_overlay_marked_new(struct store *upper, struct store *lower, const char *mark)
{
	struct overlay *o = xcalloc(1, sizeof(*o));

	o->base = (struct store){.ops = &overlay_ops, .inner = upper};
	o->upper = upper;
	o->lower = lower;
	o->mark = str_of(mark);
	pthread_mutex_init(&o->lock, NULL);
	return &o->base;
}
