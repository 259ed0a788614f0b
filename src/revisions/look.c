/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looking at a path before it is changed. A look compares the file with the newest record of its path, and completes
 * the log until both agree: a record that is not done is made or found made (recover.c), and a change by another
 * program is recorded.
 */
#include "base/limits.h"
#include "revisions/layer.h"

#define TRIES_MAX 1000

static bool same_as(const struct rev_record *rec, const struct store_stat *stat, bool exists)
{
	if (rec->r.after.exists != exists)
		return false;
	return !exists || str_eq(rec->r.after.version, stat->version);
}

/* A file with no record. */
static struct rev_state state_of(const struct revisions *rv, const struct store_stat *stat)
{
	struct rev_state s = {.exists = true, .size = stat->size, .version = stat->version};

	revisions_take_rights(rv, &s, stat);
	return s;
}

static struct rev_state state_after(const struct rev_record *rec)
{
	struct rev_state s = rec->r.after;

	if (s.where == REV_LOG && s.held_by == 0)
		s.held_by = rec->r.number;
	return s;
}

/* Keeps the content that an append left, taken from the log: the file itself has changed since. */
static void keep_appended(struct revisions *rv, struct ctx *ctx, struct rev_record *rec, struct rev_state *state)
{
	struct str version = state->version;
	struct source source;
	struct err ignored;

	state->where = REV_NOWHERE;
	if (content_source_after(rv, ctx, rec, &source, &ignored))
		return;
	if (content_keep_stream(rv, ctx, &source, state, &ignored))
		state->where = REV_NOWHERE;
	state->version = version;
	content_source_end(&source);
}

/* The state before a change by another program: that after `rec`, unless a record that was lost since may have been one
   of this path. Then nothing is said of it, so that no later read takes it for the state of that time. */
static struct rev_state state_before(struct revisions *rv, const struct rev_record *rec)
{
	struct rev_state s = state_after(rec);
	bool lost;

	revlog_lock(rv->log);
	lost = revlog_lost_between(rv->log, rec->r.number, UINT64_MAX);
	revlog_unlock(rv->log);
	return lost ? (struct rev_state){.exists = s.exists, .size = s.size} : s;
}

/* Records what another program has changed since `rec`. */
static int record_outside(struct revisions *rv, struct ctx *ctx, struct wpath path, struct rev_record *rec, bool exists,
			  struct err *err)
{
	struct rev_draft d = {.op = REV_OUTSIDE, .path = path, .base = rec->r.number, .before = state_before(rv, rec)};
	struct ctx nobody = *ctx;
	int r;

	nobody.actor = (struct actor){0}; /* whoever it was, it was not the caller */
	if (d.before.where == REV_PREFIX) /* it was the beginning of a file that is gone */
		keep_appended(rv, ctx, rec, &d.before);
	if (exists) {
		r = content_keep_file(rv, ctx, path, &d.after, err);
		if (r)
			return r == -ERR_NOT_FOUND ? -ERR_CONFLICT : r;
	}
	r = revisions_log(rv, &nobody, &d, 1, err);
	if (r == 0)
		revlog_done(rv->log, d.record, d.after.version);
	return r;
}

bool look_empty_dir(struct revisions *rv, struct ctx *ctx, struct wpath path)
{
	struct store_list_req req = {.recursive = true, .limit = 1};
	struct store_page page;
	struct store_call list = {.op = STORE_OP_LIST, .path = path, .list = &req, .ret_page = &page};
	struct err ignored;

	return store_forward(rv->base.inner, ctx, &list, &ignored) == 0 && page.count == 0;
}

/* The lowest part of the path that exists, besides the path itself. False: that is the root. */
static bool stat_above(struct revisions *rv, struct ctx *ctx, struct wpath path, struct wpath *ret,
		       struct store_stat *ret_stat)
{
	for (path = wpath_parent(path); !wpath_is_root(path); path = wpath_parent(path)) {
		struct store_call get = {.op = STORE_OP_STAT, .path = path, .ret_stat = ret_stat};
		struct err ignored;

		*ret = path;
		if (store_forward(rv->base.inner, ctx, &get, &ignored) == 0)
			return true;
	}
	return false;
}

int look_refuse_below_file(struct revisions *rv, struct ctx *ctx, struct wpath path, struct err *err)
{
	struct store_stat stat;
	struct wpath above;

	if (stat_above(rv, ctx, path, &above, &stat) && stat.kind == STORE_FILE)
		return store_refuse(REFUSE_BELOW_FILE, above.s, err);
	return 0;
}

bool look_obstacle(struct revisions *rv, struct ctx *ctx, struct wpath path, struct rev_obstacle *ret)
{
	struct store_list_req req = {.recursive = true, .limit = 1};
	struct store_page page = {0};
	struct store_call list = {.op = STORE_OP_LIST, .path = path, .list = &req, .ret_page = &page};
	struct store_stat stat;
	struct look l;
	struct err ignored;

	if (!stat_above(rv, ctx, path, &ret->path, &stat) || stat.kind != STORE_FILE) {
		if (store_forward(rv->base.inner, ctx, &list, &ignored) || page.count == 0)
			return false;
		ret->path = page.entries[0].path; /* the path itself is a directory */
	}
	if (look_at(rv, ctx, ret->path, &l, &ignored) || !l.state.exists)
		return false;
	ret->base = l.base;
	return true;
}

/* True when a stat from before the log was asked is still right. If not, the change that the log tells of was made in
   between. */
static bool is_unchanged(struct revisions *rv, struct ctx *ctx, struct wpath path, const struct store_stat *stat,
			 bool exists)
{
	struct store_stat now;
	struct store_call get = {.op = STORE_OP_STAT, .path = path, .ret_stat = &now};
	struct err ignored;
	bool exists_now;

	if (rv->journal) /* a fork may believe for a moment what it knows of others' removals, but not after this */
		revlog_refresh(rv->log, ctx, &ignored);
	exists_now = store_forward(rv->base.inner, ctx, &get, &ignored) == 0;

	if (exists_now && now.kind == STORE_DIR)
		exists_now = !look_empty_dir(rv, ctx, path);
	return exists_now == exists && (!exists || str_eq(now.version, stat->version));
}

/* One look. *ret_again: file and log did not agree, and the log has been completed; look again. */
static int look_once(struct revisions *rv, struct ctx *ctx, struct wpath path, struct look *ret, bool *ret_again,
		     struct err *err)
{
	struct store_stat stat;
	struct store_call get = {.op = STORE_OP_STAT, .path = path, .ret_stat = &stat};
	struct rev_record *rec;
	int r = store_forward(rv->base.inner, ctx, &get, err);
	bool exists = r == 0, is_done, is_same;

	*ret_again = false;
	if (r && r != -ERR_NOT_FOUND)
		return r;
	if (exists && stat.kind == STORE_DIR && look_empty_dir(rv, ctx, path))
		exists = false;
	*ret = (struct look){.is_dir = exists && stat.kind == STORE_DIR};
	revlog_lock(rv->log);
	r = revlog_last(rv->log, ctx, path, &rec, err);
	ret->first = revlog_first(rv->log);
	is_done = !rec || rec->done;
	is_same = rec && is_done && same_as(rec, &stat, exists);
	if (is_same)
		ret->state = state_after(rec);
	if (is_same && exists)
		revisions_take_rights(rv, &ret->state, &stat);
	revlog_unlock(rv->log);
	ret->base = rec ? rec->r.number : 0;
	if (r || ret->is_dir || is_same)
		return r;
	if (rec && is_done && !is_unchanged(rv, ctx, path, &stat, exists)) {
		*ret_again = true;
		return 0;
	}
	if (rec) {
		r = is_done ? record_outside(rv, ctx, path, rec, exists, err) : recover_record(rv, ctx, rec, err);
		*ret_again = r == 0;
		return r;
	}
	if (exists)
		ret->state = state_of(rv, &stat);
	return 0;
}

bool look_known(struct revisions *rv, struct ctx *ctx, struct wpath path, struct store_cond cond, struct look *ret)
{
	struct rev_record *rec;
	struct err ignored;
	bool known;

	if (!rv->journal)
		return false;
	*ret = (struct look){0};
	revlog_lock(rv->log);
	rec = revlog_last_known(rv->log, path);
	/* A path with no record is taken to be new, unless trying that costs more than a look. */
	if (!rec && !revlog_one_step(rv->log) && revlog_last(rv->log, ctx, path, &rec, &ignored))
		rec = NULL;
	ret->base = rec ? rec->r.number : 0;
	ret->first = revlog_first(rv->log);
	known = rec ? rec->done : ret->first <= 1 || revlog_one_step(rv->log);
	if (known && rec)
		ret->state = state_after(rec);
	revlog_unlock(rv->log);
	if (ret->state.exists && (ret->state.version.len == 0 || str_is(ret->state.version, "unknown")))
		return false;
	return known && store_cond_check(cond, ret->state.exists, ret->state.version, &ignored) == 0;
}

static int buf_push(void *arg, const void *bytes, size_t len, struct err *err)
{
	(void)err;
	buf_add(arg, str_n(bytes, len));
	return 0;
}

/* True when the log has all that ever happened to the path, and nothing did. */
static bool never_changed(struct revisions *rv, struct ctx *ctx, struct wpath path, struct look *ret)
{
	struct rev_record *rec;
	struct err ignored;
	bool never;

	revlog_lock(rv->log);
	ret->first = revlog_first(rv->log);
	never = ret->first <= 1 && !revlog_lost_between(rv->log, 0, UINT64_MAX) &&
		revlog_last(rv->log, ctx, path, &rec, &ignored) == 0 && !rec;
	revlog_unlock(rv->log);
	return never;
}

bool look_inherited(struct revisions *rv, struct ctx *ctx, struct wpath path, struct store_cond cond, struct look *ret,
		    struct str *ret_was)
{
	struct buf bytes;
	struct sink sink = {.push = buf_push, .arg = &bytes, .unchanged = true};
	struct store_stat stat;
	struct store_call read = {
		.op = STORE_OP_READ, .path = path, .range = {0, REV_INLINE_MAX + 1}, .sink = &sink, .ret_stat = &stat};
	struct err ignored;

	*ret = (struct look){0};
	if (!rv->journal || !store_can(rv->base.inner, STORE_OVER_PAST) || !never_changed(rv, ctx, path, ret))
		return false;
	buf_init(&bytes, ctx->arena, 2 * REV_INLINE_MAX);
	if (store_forward(rv->base.inner, ctx, &read, &ignored) || store_cond_check(cond, true, stat.version, &ignored))
		return false;
	ret->state = state_of(rv, &stat);
	if (stat.size <= REV_INLINE_MAX && bytes.len == stat.size && !(rv->apart && rv->apart(path))) {
		*ret_was = buf_str(&bytes);
		ret->state.where = REV_HERE;
		content_checksum(*ret_was, &ret->state.hash);
	}
	return true;
}

int look_at(struct revisions *rv, struct ctx *ctx, struct wpath path, struct look *ret, struct err *err)
{
	int r = rv->journal ? revlog_refresh(rv->log, ctx, err) : 0; /* others may have changed it */
	bool again = r == 0;

	for (int tries = 0; again && tries < TRIES_MAX; tries++) {
		struct err ignored;

		again = false;
		r = ctx_check(ctx, err);
		if (r == 0)
			r = look_once(rv, ctx, path, ret, &again, err);
		again = again || r == -ERR_CONFLICT; /* the path changed while its state was recorded */
		if (again && tries)
			revlog_refresh(rv->log, ctx, &ignored);
	}
	return again ? err_set(err, ERR_CONFLICT, ERR_PATH " changed every time it was read", STR_ARG(path.s)) : r;
}

bool look_agrees(struct revisions *rv, struct ctx *ctx, struct wpath path, const struct store_stat *stat,
		 struct look *ret)
{
	bool exists = stat->kind != 0, agrees;
	struct rev_record *rec = NULL;
	struct err ignored;

	*ret = (struct look){.is_dir = stat->kind == STORE_DIR};
	revlog_lock(rv->log);
	agrees = revlog_last(rv->log, ctx, path, &rec, &ignored) == 0;
	ret->first = revlog_first(rv->log);
	if (rec && agrees && !ret->is_dir) {
		agrees = rec->done && same_as(rec, stat, exists);
		ret->state = state_after(rec);
	}
	revlog_unlock(rv->log);
	ret->base = rec ? rec->r.number : 0;
	if (!rec && exists && !ret->is_dir)
		ret->state = state_of(rv, stat);
	return agrees;
}

int look_all(struct revisions *rv, struct ctx *ctx, const struct wpath *paths, size_t count, struct look *ret,
	     struct err *err)
{
	struct store_stat *stats = ARENA_ARRAY(ctx->arena, struct store_stat, count);
	int r = revlog_refresh(rv->log, ctx, err);

	if (r == 0)
		r = store_stat_all(rv->base.inner, ctx, paths, count, stats, err);
	for (size_t i = 0; r == 0 && i < count; i++)
		if (!look_agrees(rv, ctx, paths[i], &stats[i], &ret[i]))
			r = look_at(rv, ctx, paths[i], &ret[i], err);
	return r;
}

int look_hold(struct revisions *rv, struct ctx *ctx, struct wpath path, struct look *l, struct err *err)
{
	struct str version = l->state.version;
	int r;

	if (!l->state.exists || l->state.where == REV_LOG || l->state.where == REV_BLOB || l->state.where == REV_HERE)
		return 0;
	r = content_keep_file(rv, ctx, path, &l->state, err);
	if (r == -ERR_NOT_FOUND || (r == 0 && !str_eq(l->state.version, version)))
		return err_set(err, ERR_CONFLICT, ERR_PATH " changed while its content was being kept",
			       STR_ARG(path.s));
	return r;
}
