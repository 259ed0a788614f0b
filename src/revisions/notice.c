/* SPDX-License-Identifier: Apache-2.0 */
/* Noticing what other programs have changed, and recording it. */
#include "revisions/layer.h"

static int last_number(struct revisions *rv, struct ctx *ctx, struct wpath path, uint64_t *ret, struct err *err)
{
	struct rev_record *rec;
	int r;

	revlog_lock(rv->log);
	r = revlog_last(rv->log, ctx, path, &rec, err);
	*ret = r == 0 && rec ? rec->r.number : 0;
	revlog_unlock(rv->log);
	return r;
}

static int notice_one(struct revisions *rv, struct ctx *ctx, struct wpath path, uint64_t *count, struct err *err)
{
	uint64_t before, after = 0;
	struct look l;
	int r;

	revisions_lock_path(rv, path);
	r = last_number(rv, ctx, path, &before, err);
	if (r == 0 && before)
		r = look_at(rv, ctx, path, &l, err);
	if (r == 0)
		r = last_number(rv, ctx, path, &after, err);
	revisions_unlock_path(rv, path);
	*count += r == 0 && before != after;
	return r;
}

/* The path of the record `n`, in ctx's arena, if that is its newest record; else ptr is NULL. */
static int newest_path(struct revisions *rv, struct ctx *ctx, uint64_t n, struct wpath below, struct wpath *ret,
		       struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx c = *ctx;
	struct rev_record rec, *last = NULL;
	bool has;
	int r;

	c.arena = arena;
	*ret = (struct wpath){STR_NONE};
	revlog_lock(rv->log);
	r = revlog_get(rv->log, &c, n, &rec, &has, err);
	if (r == 0 && has && !rec.r.aborted && wpath_within(rec.r.path, below))
		r = revlog_last(rv->log, &c, rec.r.path, &last, err);
	if (r == 0 && last && last->r.number == n)
		ret->s = arena_str(ctx->arena, rec.r.path.s);
	revlog_unlock(rv->log);
	return r == -ERR_CORRUPT ? 0 : r; /* its path is not known */
}

/* Looks at the path of the record `n`, if that is its newest one. */
static int notice_at(struct revisions *rv, struct ctx *ctx, uint64_t n, struct wpath below, uint64_t *count,
		     struct err *err)
{
	REV_PINNED struct revisions *pin = revisions_pin(rv);
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx c = *ctx;
	struct wpath path;
	int r;

	c.arena = arena;
	r = newest_path(rv, &c, n, below, &path, err);
	return r == 0 && path.s.ptr ? notice_one(rv, &c, path, count, err) : r;
}

#define SETTLE_MAX 512

/* The next paths, of which those that do not agree with the log are looked at one by one. */
static int settle_some(struct revisions *rv, struct ctx *ctx, const struct wpath *paths, size_t count,
		       uint64_t *ret_new, struct err *err)
{
	struct store_stat *stats = ARENA_ARRAY(ctx->arena, struct store_stat, count);
	int r = store_stat_all(rv->base.inner, ctx, paths, count, stats, err);

	for (size_t i = 0; r == 0 && i < count; i++) {
		struct look l;

		if (!look_agrees(rv, ctx, paths[i], &stats[i], &l))
			r = notice_one(rv, ctx, paths[i], ret_new, err);
	}
	return r;
}

/* With a journal a look is a request: many paths are looked at together. */
static int notice_by_lists(struct revisions *rv, struct ctx *ctx, const uint64_t *numbers, size_t count,
			   struct wpath below, uint64_t *ret_new, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx own = *ctx;
	struct wpath paths[SETTLE_MAX];
	size_t n = 0;
	int r = 0;

	own.arena = arena;
	for (size_t i = 0; r == 0 && i < count; i++) {
		REV_PINNED struct revisions *pin = revisions_pin(rv);

		r = newest_path(rv, &own, numbers[i], below, &paths[n], err);
		n += r == 0 && paths[n].s.ptr;
		if (r || n == 0 || (n < SETTLE_MAX && i + 1 < count))
			continue;
		r = settle_some(rv, &own, paths, n, ret_new, err);
		if (r == 0)
			r = ctx_check(ctx, err);
		arena_reset(arena);
		n = 0;
	}
	return r;
}

/* Each path once, at its newest record: that is where its state is. The index says which those are, so this costs what
   there are paths, not changes. */
int revisions_notice(struct store *revisions, struct ctx *ctx, struct wpath path, uint64_t *ret_count, struct err *err)
{
	struct revisions *rv = revisions_of(revisions);
	uint64_t head, *numbers = NULL;
	size_t count = 0;
	int r = revisions_head(revisions, ctx, &head, err);

	*ret_count = 0;
	if (r)
		return r;
	{
		REV_PINNED struct revisions *pin = revisions_pin(rv);

		revlog_lock(rv->log);
		r = revlog_newest(rv->log, ctx, &numbers, &count, err);
		revlog_unlock(rv->log);
	}
	if (r == 0 && rv->journal)
		r = notice_by_lists(rv, ctx, numbers, count, path, ret_count, err);
	for (size_t i = 0; r == 0 && !rv->journal && i < count; i++) {
		r = notice_at(rv, ctx, numbers[i], path, ret_count, err);
		if (r == 0)
			r = ctx_check(ctx, err);
	}
	free(numbers);
	return r;
}

bool revisions_knows(struct store *revisions, struct wpath path)
{
	struct revisions *rv = revisions_of(revisions);
	REV_PINNED struct revisions *pin = revisions_pin(rv);
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};
	struct err ignored;
	uint64_t last;

	return last_number(rv, &ctx, path, &last, &ignored) == 0 && last;
}

int revisions_adopt(struct store *revisions, struct ctx *ctx, struct wpath path, bool existed, struct str before,
		    struct err *err)
{
	struct revisions *rv = revisions_of(revisions);
	REV_PINNED struct revisions *pin = revisions_pin(rv);
	struct rev_draft d = {.op = REV_OUTSIDE, .path = path, .before = {.exists = existed}};
	struct ctx nobody = *ctx;
	int r = revisions_ready(rv, ctx, err);

	if (r || revisions_knows(revisions, path))
		return r;
	nobody.actor = (struct actor){0};
	revisions_lock_path(rv, path);
	if (existed && before.ptr)
		r = content_keep_bytes(rv, ctx, before, &d.before, err);
	if (r == 0)
		r = content_keep_file(rv, ctx, path, &d.after, err);
	if (r == 0)
		r = revisions_log(rv, &nobody, &d, 1, err);
	if (r == 0)
		revlog_done(rv->log, d.record, d.after.version);
	revisions_unlock_path(rv, path);
	return r == -ERR_CONFLICT || r == -ERR_NOT_FOUND ? 0 : r; /* the writer that changes it records it */
}

int revisions_settle(struct store *revisions, struct ctx *ctx, struct wpath path, bool *ret_new, struct err *err)
{
	struct revisions *rv = revisions_of(revisions);
	REV_PINNED struct revisions *pin = revisions_pin(rv);
	uint64_t count = 0;
	int r = revisions_ready(rv, ctx, err);

	if (r == 0)
		r = revlog_refresh(rv->log, ctx, err);
	if (r == 0)
		r = notice_one(rv, ctx, path, &count, err);
	if (r == 0 && ret_new)
		*ret_new = count > 0;
	return r;
}

int revisions_flush(struct store *revisions, struct ctx *ctx, struct err *err)
{
	struct revisions *rv = revisions_of(revisions);

	return atomic_load_explicit(&rv->opened, memory_order_acquire) ? revlog_flush(rv->log, ctx, err) : 0;
}

static int settle_by_lists(struct revisions *rv, struct ctx *ctx, bool (*path)(void *arg, struct wpath *ret_path),
			   void *arg, uint64_t *ret_new, struct err *err)
{
	struct wpath paths[SETTLE_MAX];
	size_t count = 0;
	int r = 0;
	bool more = true;

	while (r == 0 && more) {
		more = path(arg, &paths[count]);
		count += more;
		if (count == SETTLE_MAX || (!more && count)) {
			arena_reset(ctx->arena);
			r = settle_some(rv, ctx, paths, count, ret_new, err);
			revisions_pause(rv);
			count = 0;
		}
	}
	return r;
}

int revisions_settle_all(struct store *revisions, struct ctx *ctx, bool (*path)(void *arg, struct wpath *ret_path),
			 void *arg, bool *ret_new, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct revisions *rv = revisions_of(revisions);
	REV_PINNED struct revisions *pin = revisions_pin(rv);
	struct ctx own = *ctx;
	uint64_t count = 0;
	struct wpath next;
	int r = revisions_ready(rv, ctx, err);

	own.arena = arena;
	if (r == 0)
		r = revlog_refresh(rv->log, ctx, err);
	if (r == 0 && rv->journal)
		r = settle_by_lists(rv, &own, path, arg, &count, err);
	while (r == 0 && !rv->journal && path(arg, &next)) {
		uint64_t one = 0;

		arena_reset(arena);
		r = notice_one(rv, &own, next, &one, err);
		count += one;
		revisions_pause(rv); /* the log's memory may be trimmed */
	}
	*ret_new = count > 0;
	return r;
}
