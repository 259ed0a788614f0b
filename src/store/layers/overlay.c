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
 * overlay_cover.c knows what upper hides, overlay_list.c merges lists, overlay_scan.c runs lower's own scan.
 *
 * Versions of lower's files begin with "l:", so that a condition tells which of the two was read. An upper version that
 * happens to begin with "l:" or "u:" gets "u:" before it.
 */
#include "base/clock.h"
#include "store/journal.h"
#include "store/layers/overlay_internal.h"

#define WHITEOUT ".stead-wh"

bool overlay_is_reserved(const struct overlay *o, struct str path)
{
	struct str name;

	if (str_find(path, o->mark, 0) == SIZE_MAX)
		return false;
	while (str_cut(&path, '/', &name))
		if (str_eq(name, o->mark))
			return true;
	return false;
}

int overlay_refuse_reserved(const struct overlay *o, struct wpath path, struct err *err)
{
	if (!overlay_is_reserved(o, path.s))
		return 0;
	return err_set(err, ERR_DENIED, "the name \"%.*s\" is reserved; choose another one", STR_ARG(o->mark));
}

struct str overlay_lower_version(struct arena *arena, struct str version)
{
	return version.len ? arena_printf(arena, "l:%.*s", STR_ARG(version)) : version;
}

struct str overlay_upper_version(struct arena *arena, struct str version)
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

int overlay_stat(struct store *s, struct ctx *ctx, struct wpath path, struct store_stat *ret_stat, struct err *err)
{
	struct found f;
	int r = overlay_refuse_reserved(overlay_of(s), path, err);

	if (r == 0)
		r = overlay_find(overlay_of(s), ctx, path, COVER_RECENT, &f, err);
	if (r == 0 && !f.kind)
		r = store_not_found(err);
	if (r == 0)
		*ret_stat = f.stat;
	return r;
}

static int read_upper(struct overlay *o, struct ctx *ctx, struct store_call *call, struct err *err)
{
	int r = store_forward(o->upper, ctx, call, err);

	if (r == 0)
		call->ret_stat->version = overlay_upper_version(ctx->arena, call->ret_stat->version);
	return r;
}

/* Reads lower whatever upper has. */
static int read_below(struct overlay *o, struct ctx *ctx, struct store_call *call, struct err *err)
{
	struct sink sink = *call->sink;
	struct store_call read = *call;
	int r;

	sink.unchanged = false;
	if (o->memory && o->lower_is_fixed)
		sink.skip_dirs = false; /* what it has is asked for once, and remembered */
	read.sink = &sink;
	r = store_forward(o->lower, ctx, &read, err);
	if (r == 0)
		overlay_note_below(o, call->path, call->ret_stat);
	else if (r == -ERR_NOT_FOUND && !sink.skip_dirs) /* else it may be a directory */
		overlay_note_below(o, call->path, &(struct store_stat){0});
	return r;
}

/* Of a file that is covered, nothing of lower's may be handed on: that is asked first. */
static int read_lower(struct overlay *o, struct ctx *ctx, struct store_call *call, struct err *err)
{
	enum store_kind in_lower;
	struct err ignored;
	struct found f;
	bool covered, clear;
	int r = overlay_is_covered(o, ctx, call->path, STORE_FILE, COVER_RECENT, &covered, &clear, err);

	if (r == 0 && covered)
		r = store_not_found(err);
	if (r == 0)
		r = read_below(o, ctx, call, err);
	/* a directory may have nothing in it that shows */
	if (r == -ERR_INVALID && overlay_find_lower(o, ctx, call->path, COVER_RECENT, &f, &in_lower, &ignored) == 0 &&
	    !f.kind)
		r = store_not_found(err);
	if (r == 0)
		call->ret_stat->version = overlay_lower_version(ctx->arena, call->ret_stat->version);
	return r;
}

static int read_unchanged(struct overlay *o, struct ctx *ctx, struct store_call *call, struct err *err)
{
	int r;

	if (!o->lower_is_fixed)
		return err_set(err, ERR_UNSUPPORTED, "what is below may have changed");
	r = read_below(o, ctx, call, err);
	if (r == 0)
		call->ret_stat->version = overlay_lower_version(ctx->arena, call->ret_stat->version);
	return r;
}

int overlay_read(struct store *s, struct ctx *ctx, struct wpath path, struct store_range range, const struct sink *sink,
		 struct store_stat *ret_stat, struct err *err)
{
	struct overlay *o = overlay_of(s);
	struct sink files = *sink;
	struct store_stat stat, below;
	struct store_call call = {.op = STORE_OP_READ, .path = path, .range = range, .sink = &files, .ret_stat = &stat};
	int r = overlay_refuse_reserved(o, path, err);
	bool may_be_dir, only_upper;

	if (r)
		return r;
	if (sink->unchanged) {
		call.sink = sink;
		call.ret_stat = ret_stat;
		return read_unchanged(o, ctx, &call, err);
	}
	only_upper = overlay_recall_below(o, ctx, path, &below) && !below.kind;
	if (!only_upper)
		files.skip_dirs = true; /* that upper has a directory counts only if lower has no file */
	r = read_upper(o, ctx, &call, err);
	may_be_dir = r && err->detail == DETAIL_MAY_BE_DIR && !only_upper;
	call.sink = sink;
	if (r == -ERR_NOT_FOUND && !only_upper)
		r = read_lower(o, ctx, &call, err);
	if (r == -ERR_NOT_FOUND && may_be_dir)
		r = sink->skip_dirs ? store_may_be_dir(err) : read_upper(o, ctx, &call, err);
	if (r == 0)
		*ret_stat = stat;
	return r;
}

/* Writing. */

/* Refuses to write below a file of lower that shows. The nearest parent that lower has decides. */
static int check_parents(struct overlay *o, struct ctx *ctx, struct wpath path, enum cover_age age, struct err *err)
{
	for (path = wpath_parent(path); !wpath_is_root(path); path = wpath_parent(path)) {
		struct store_stat stat;
		bool covered = false, clear;
		int r = overlay_find_below(o, ctx, path, &stat, err);

		if (r == 0 && stat.kind == STORE_FILE)
			r = overlay_is_covered(o, ctx, path, STORE_FILE, age, &covered, &clear, err);
		if (r || stat.kind == STORE_DIR || covered)
			return r;
		if (stat.kind == STORE_FILE)
			return store_refuse(REFUSE_BELOW_FILE, path.s, err);
	}
	return 0;
}

static int check_place_once(struct overlay *o, struct ctx *ctx, struct wpath path, enum cover_age age,
			    struct found *ret, enum store_kind *ret_kind, struct err *err)
{
	int r = overlay_find_lower(o, ctx, path, age, ret, ret_kind, err);

	if (r == 0 && ret->kind == STORE_DIR)
		r = is_a_dir(path, err);
	if (r == 0 && !*ret_kind)
		r = check_parents(o, ctx, path, age, err);
	return r;
}

/* What lower shows at a place that is to be written; refuses when that is a directory, or a file on the way there.
 *ret_kind: what lower has there, shown or not. */
static int check_place(struct overlay *o, struct ctx *ctx, struct wpath path, enum cover_age age, struct found *ret,
		       enum store_kind *ret_kind, struct err *err)
{
	int r = check_place_once(o, ctx, path, age, ret, ret_kind, err);

	if (r == -ERR_INVALID && o->memory && age != COVER_NOW) /* unless another process has just removed it */
		r = check_place_once(o, ctx, path, COVER_NOW, ret, ret_kind, err);
	return r;
}

/* Copies what lower shows at `path` to upper; ret_version is upper's. Somebody may have been faster: then it is theirs.
 */
static int copy_up(struct overlay *o, struct ctx *ctx, struct wpath path, struct str *ret_version, struct err *err)
{
	struct store_cond absent = {.kind = STORE_ABSENT};
	struct store_stat stat;
	int r = store_copy_between(o->lower, ctx, path, o->upper, path, absent, &stat, err);

	if (r == -ERR_EXISTS)
		r = overlay_find_in(o->upper, ctx, path, &stat, err);
	if (r == 0)
		*ret_version = stat.version;
	return r;
}

static bool is_of_lower(struct store_cond cond)
{
	return cond.kind == STORE_VERSION && str_starts(cond.version, STR("l:"));
}

/* The file that a write, an append, or an entry of a journal with a write changes. */
static struct wpath changed_path(const struct store_call *call)
{
	return call->op == STORE_OP_JOURNAL_ADD ? call->to : call->path;
}

static struct store_stat *changed_stat(const struct store_call *call)
{
	return call->op == STORE_OP_JOURNAL_ADD ? &call->ret_added->stat : call->ret_stat;
}

/* True when the condition is a version of lower's that lower has, and the log has just said that it shows. */
static bool is_vouched_for(struct overlay *o, struct ctx *ctx, const struct store_call *call)
{
	struct store_stat below;

	return is_of_lower(call->cond) && call->cond.known_ns &&
	       clock_monotonic_ns() - call->cond.known_ns < COVER_RECENT_NS &&
	       overlay_recall_below(o, ctx, changed_path(call), &below) && below.kind == STORE_FILE &&
	       str_eq(overlay_lower_version(ctx->arena, below.version), call->cond.version);
}

/* Makes the change of a file that lower has in upper, which must still have none. */
static int change_first(struct overlay *o, struct ctx *ctx, struct store_call *call, struct err *err)
{
	int r;

	call->cond = (struct store_cond){.kind = STORE_ABSENT};
	r = store_forward(o->upper, ctx, call, err);
	return r == -ERR_EXISTS ? err_set(err, ERR_CONFLICT, "it changed since it was read; read again") : r;
}

/* Write or append that depends on the file `f`, which lower has and upper may cover. The lock is held. */
static int change_lower_file(struct overlay *o, struct ctx *ctx, struct store_call *call, struct found *f,
			     struct err *err)
{
	bool covered, clear, was_version = call->cond.kind == STORE_VERSION;
	struct store_stat in_upper = {0};
	int r = overlay_is_covered(o, ctx, changed_path(call), STORE_FILE, COVER_NOW, &covered, &clear, err);

	if (r == 0 && !covered && call->op == STORE_OP_APPEND)
		r = overlay_find_in(o->upper, ctx, call->path, &in_upper, err);
	if (r)
		return r;
	if (covered || in_upper.kind) {
		call->cond = upper_cond(call->cond);
		return store_forward(o->upper, ctx, call, err);
	}
	r = check_cond(f, call->cond, err);
	if (r)
		return r;
	if (call->op == STORE_OP_APPEND) {
		struct str version;

		r = copy_up(o, ctx, call->path, &version, err);
		if (r)
			return r;
		if (was_version)
			call->cond.version = version;
	} else if (was_version) {
		return change_first(o, ctx, call, err);
	}
	return store_forward(o->upper, ctx, call, err);
}

/* Of a file that upper must have: then what lower has there matters only for the error. */
static int change_own(struct overlay *o, struct ctx *ctx, struct store_call *call, struct err *err)
{
	enum store_kind in_lower;
	struct err refused;
	struct found f;
	int r;

	call->cond = upper_cond(call->cond);
	r = store_forward(o->upper, ctx, call, err);
	if (r == -ERR_CONFLICT &&
	    check_place(o, ctx, changed_path(call), COVER_RECENT, &f, &in_lower, &refused) == -ERR_INVALID) {
		*err = refused;
		return -ERR_INVALID;
	}
	return r;
}

static int change_at(struct overlay *o, struct ctx *ctx, struct store_call *call, struct err *err)
{
	/* what depends on lower's file is looked at again under the lock */
	bool depends = call->op == STORE_OP_APPEND || call->cond.kind == STORE_ABSENT || is_of_lower(call->cond);
	struct wpath path = changed_path(call);
	enum store_kind in_lower = 0;
	struct found f = {0};
	int r = check_place(o, ctx, path, depends ? COVER_KNOWN : COVER_RECENT, &f, &in_lower, err);

	if (r)
		return r;
	if (f.kind == STORE_FILE && depends) {
		pthread_mutex_lock(&o->lock);
		r = change_lower_file(o, ctx, call, &f, err);
		pthread_mutex_unlock(&o->lock);
	} else {
		r = store_forward(o->upper, ctx, call, err);
	}
	/* one in place of a directory stays: it hides what lower has below */
	if (r == 0 && in_lower == STORE_FILE && !f.kind)
		overlay_drop_whiteout(o, ctx, path);
	return r;
}

static int change(struct overlay *o, struct ctx *ctx, struct store_call *call, struct err *err)
{
	int r = overlay_refuse_reserved(o, changed_path(call), err);

	if (r)
		return r;
	if (call->cond.kind == STORE_VERSION && !is_of_lower(call->cond))
		r = change_own(o, ctx, call, err);
	else if (call->op != STORE_OP_APPEND && is_vouched_for(o, ctx, call))
		r = change_first(o, ctx, call, err);
	else
		r = change_at(o, ctx, call, err);
	if (r)
		return r;
	changed_stat(call)->version = overlay_upper_version(ctx->arena, changed_stat(call)->version);
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
		r = overlay_find_below(o, ctx, path, &in_lower, err);
	if (r == 0 && in_lower.kind)
		r = overlay_put_whiteout(o, ctx, path, err);
	if (r == 0 && !f->in_lower)
		r = remove_upper(o, ctx, path, false, cond, err);
	return r;
}

static int remove_dir(struct overlay *o, struct ctx *ctx, struct wpath path, struct err *err)
{
	struct store_stat in_upper, in_lower;
	bool was_there = true;
	int r = overlay_find_in(o->upper, ctx, path, &in_upper, err);

	if (r == 0)
		r = overlay_find_below(o, ctx, path, &in_lower, err);
	if (r == 0 && in_lower.kind)
		r = overlay_has_whiteout(o, ctx, path, &was_there, err);
	if (r == 0 && !was_there)
		r = overlay_put_whiteout(o, ctx, path, err);
	else if (r)
		return r;
	if (r == 0 && in_upper.kind) {
		struct err ignored;

		r = remove_upper(o, ctx, path, true, (struct store_cond){0}, err);
		if (r && overlay_find_in(o->upper, ctx, path, &in_upper, &ignored) == 0 && !in_upper.kind)
			return 0; /* it did happen: taking the whiteout back would bring the template back */
	}
	if (r && !was_there) /* also one whose writing failed: it may be there all the same */
		overlay_drop_whiteout(o, ctx, path);
	return r;
}

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
	r = overlay_find(o, ctx, e->path, COVER_NOW, &f, err);
	return r || !f.kind ? r : remove_file(o, ctx, e->path, &f, (struct store_cond){0}, err);
}

static int remove_locked(struct overlay *o, struct ctx *ctx, struct wpath path, bool recursive, struct store_cond cond,
			 uint64_t *ret_count, struct err *err)
{
	struct found f;
	uint64_t count = 0;
	int r = overlay_find(o, ctx, path, COVER_NOW, &f, err);

	if (r)
		return r;
	if (!f.kind)
		return cond.kind == STORE_VERSION ? check_cond(&f, cond, err) : store_not_found(err);
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
	int r = overlay_refuse_reserved(overlay_of(s), path, err);

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
	int r = overlay_find_below(o, ctx, path, &in_lower, err);

	if (r || !in_lower.kind)
		return r;
	if (f->kind == STORE_DIR)
		r = for_each(o, ctx, path, true, copy_up_one, NULL, err);
	else if (f->in_lower)
		r = copy_up(o, ctx, path, ret_version, err);
	return r ? r : overlay_put_whiteout(o, ctx, path, err);
}

/* Upper would refuse a target below one of its files; better before anything is copied up. */
static int check_way(struct overlay *o, struct ctx *ctx, struct wpath to, struct err *err)
{
	struct store_stat stat;
	int r;

	for (size_t i = 1; i < to.s.len; i++) {
		if (to.s.ptr[i] != '/')
			continue;
		r = overlay_find_in(o->upper, ctx, (struct wpath){str_first(to.s, i)}, &stat, err);
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
	enum store_kind to_kind;
	int r = overlay_find(o, ctx, call->path, COVER_NOW, &from, err);

	if (r)
		return r;
	if (!from.kind)
		return call->cond.kind == STORE_VERSION ? check_cond(&from, call->cond, err) : store_not_found(err);
	if (from.kind == STORE_DIR && call->cond.kind != STORE_ANY)
		return err_set(err, ERR_INVALID, "it is a directory, which has no version; leave the condition out");
	r = check_cond(&from, call->cond, err);
	if (r == 0)
		r = check_place(o, ctx, call->to, COVER_NOW, &to_lower, &to_kind, err);
	if (r == 0)
		r = check_way(o, ctx, call->to, err);
	if (r == 0)
		r = overlay_find(o, ctx, call->to, COVER_NOW, &to, err);
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
	if (r == 0 && from.kind == STORE_FILE && to_kind == STORE_FILE)
		overlay_drop_whiteout(o, ctx, call->to);
	return r;
}

static int overlay_move(struct store *s, struct ctx *ctx, struct wpath from, struct wpath to, struct store_cond cond,
			struct store_cond to_cond, struct store_stat *ret_stat, struct err *err)
{
	struct overlay *o = overlay_of(s);
	struct store_call call = {
		.op = STORE_OP_MOVE, .path = from, .to = to, .cond = cond, .to_cond = to_cond, .ret_stat = ret_stat};
	int r = overlay_refuse_reserved(o, from, err);

	if (r == 0)
		r = overlay_refuse_reserved(o, to, err);
	if (r)
		return r;
	pthread_mutex_lock(&o->lock);
	r = move_locked(o, ctx, &call, err);
	pthread_mutex_unlock(&o->lock);
	if (r == 0)
		ret_stat->version = overlay_upper_version(ctx->arena, ret_stat->version);
	return r;
}

static void overlay_destroy(struct store *s)
{
	struct overlay *o = overlay_of(s);

	store_destroy(o->lower);
	overlay_memory_destroy(o->memory);
	pthread_mutex_destroy(&o->lock);
	free(o);
}

/* Journals are in upper: lower is only read. Of what they change in the same step, a write is one of upper. */
static int overlay_journal_read(struct store *s, struct ctx *ctx, struct wpath journal, const struct journal_read *req,
				struct journal_page *ret_page, struct err *err)
{
	struct store_call call = {
		.op = STORE_OP_JOURNAL_READ, .path = journal, .journal_read = req, .ret_journal = ret_page};

	overlay_forget_covers(overlay_of(s)); /* who asks what others did wants to see it, too */
	return store_forward(overlay_of(s)->upper, ctx, &call, err);
}

static int overlay_journal_add(struct store *s, struct ctx *ctx, struct wpath journal, struct wpath to,
			       struct store_cond cond, const struct journal_add *add, struct journal_added *ret_added,
			       struct err *err)
{
	struct store_call call = {.op = STORE_OP_JOURNAL_ADD,
				  .path = journal,
				  .to = to,
				  .cond = cond,
				  .journal_add = add,
				  .ret_added = ret_added};

	int r;

	if (add->change == JOURNAL_WRITE)
		r = change(overlay_of(s), ctx, &call, err);
	else if (add->change == JOURNAL_ALONE)
		r = store_forward(overlay_of(s)->upper, ctx, &call, err);
	else
		return err_set(err, ERR_UNSUPPORTED, "an overlay cannot make this change and an entry in one step");
	if (r) /* perhaps because others were first */
		overlay_forget_covers(overlay_of(s));
	return r;
}

static int overlay_journal_cut(struct store *s, struct ctx *ctx, struct wpath journal, uint64_t before, struct err *err)
{
	struct store_call call = {.op = STORE_OP_JOURNAL_CUT, .path = journal, .journal_before = before};

	return store_forward(overlay_of(s)->upper, ctx, &call, err);
}

static const struct store_ops overlay_ops = {
	.name = "overlay",
	.cannot = STORE_ONE_STEP | STORE_GROUP_STEP,
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
	.can = STORE_OVER_PAST,
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
	o->lower_is_fixed = store_can(lower, STORE_FIXED);
	o->memory = store_can(upper, STORE_LOCAL) ? NULL : overlay_memory_new();
	pthread_mutex_init(&o->lock, NULL);
	return &o->base;
}
