/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What history keeps in addition to the present files, for quotas.
 *
 * It is added up from the records: each says which content it replaced or removed. The content that it made is not
 * counted here, because that is in the file until another record replaces it. What an append replaces is the beginning
 * of the file, and what is moved is there under another name. So the sum is what only history keeps, or more: a content
 * that was replaced twice, or that came back, is counted although the blobs have it once. The bytes of log and blobs
 * were rejected as the measure: they contain the present contents as well, so every file would count twice.
 *
 * Only records that are new since the last question are looked at. A process that starts would have to look at all of
 * them, so the sum is stored from time to time, next to the index. It is derived, like the index: a sum that does not
 * belong to this log (another horizon, another record at its number) is not used.
 */
#include "base/clock.h"
#include "revisions/layer.h"
#include "text/jv.h"

#define STORE_EVERY 1000 /* records */
#define SUM_MAX     4096

static uint64_t cost_of(const struct revision *r)
{
	bool moved_away = r->op == REV_MOVE && !r->after.exists;
	uint64_t bytes = r->op == REV_REMOVE || moved_away ? 0 : REV_RECORD_BYTES;

	if (r->aborted || moved_away || r->op == REV_APPEND || !r->before.exists || r->before.where == REV_NOWHERE)
		return bytes;
	return bytes + r->before.size;
}

/* --- the stored sum --- */

static struct store *sum_store(const struct revisions *rv)
{
	return rv->journal ? rv->meta : rv->scratch;
}

static struct wpath sum_path(struct arena *arena, struct wpath dir)
{
	return (struct wpath){arena_printf(arena, "past/%.*s%ssum", STR_ARG(dir.s), dir.s.len ? "/" : "")};
}

/* When the record was made, which tells it from one that another log has at the same number. 0: it is not there. */
static int64_t time_of(struct revisions *rv, struct ctx *ctx, uint64_t number)
{
	struct rev_record rec;
	struct err ignored;
	bool has = false;

	return revlog_get(rv->log, ctx, number, &rec, &has, &ignored) == 0 && has ? rec.r.time_ns : 0;
}

static void load_sum(struct revisions *rv, struct ctx *ctx, struct rev_past *past)
{
	struct str text;
	struct err ignored;
	struct jv *v;
	int64_t time;

	if (!sum_store(rv) || store_read(sum_store(rv), ctx, sum_path(ctx->arena, past->dir), STORE_WHOLE, SUM_MAX,
					 &text, NULL, &ignored))
		return;
	if (jv_parse(ctx->arena, text, &v, &ignored))
		return;
	time = jv_get_int(v, "time", 0);
	revlog_lock(rv->log);
	if ((uint64_t)jv_get_int(v, "first", 0) == revlog_first(rv->log) && time &&
	    time == time_of(rv, ctx, (uint64_t)jv_get_int(v, "seen", 0))) {
		past->first = revlog_first(rv->log);
		past->stored = past->seen = (uint64_t)jv_get_int(v, "seen", 0);
		past->bytes = (uint64_t)jv_get_int(v, "bytes", 0);
	}
	revlog_unlock(rv->log);
}

static void store_sum(struct revisions *rv, struct ctx *ctx, struct rev_past *past)
{
	struct jv *v = jv_object(ctx->arena);
	struct store_cond any = {0};
	struct err ignored;
	struct buf text;
	int64_t time;

	past->stored = past->seen;
	revlog_lock(rv->log);
	time = time_of(rv, ctx, past->seen);
	revlog_unlock(rv->log);
	if (!sum_store(rv) || !time)
		return;
	jv_set_int(ctx->arena, v, "first", (int64_t)past->first);
	jv_set_int(ctx->arena, v, "seen", (int64_t)past->seen);
	jv_set_int(ctx->arena, v, "time", time);
	jv_set_int(ctx->arena, v, "bytes", (int64_t)past->bytes);
	buf_init(&text, ctx->arena, SUM_MAX);
	jv_write(&text, v);
	store_write(sum_store(rv), ctx, sum_path(ctx->arena, past->dir), buf_str(&text), any, NULL, &ignored);
}

/* --- adding up --- */

/* The lock is held. Records that cannot be read count nothing. */
static int add_new(struct revisions *rv, struct ctx *ctx, struct rev_past *past, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx c = *ctx;
	int r = 0;

	c.arena = arena;
	if (past->first != revlog_first(rv->log)) /* history was dropped */
		*past = (struct rev_past){
			.dir = past->dir, .first = revlog_first(rv->log), .seen = revlog_first(rv->log) - 1};
	while (r == 0 && past->seen < revlog_head(rv->log)) {
		struct rev_record rec;
		bool has = false;

		arena_reset(arena);
		r = revlog_get(rv->log, &c, past->seen + 1, &rec, &has, err);
		if (r == -ERR_CORRUPT)
			r = 0;
		else if (r == 0 && has && wpath_within(rec.r.path, past->dir))
			past->bytes += cost_of(&rec.r);
		past->seen += r == 0;
	}
	return r;
}

int revisions_past(struct store *revisions, struct ctx *ctx, bool again, struct rev_past *past, struct err *err)
{
	struct revisions *rv = revisions_of(revisions);
	REV_PINNED struct revisions *pin = revisions_pin(rv);
	int64_t now = clock_monotonic_ns();
	int r = revisions_ready(rv, ctx, err);

	if (r)
		return r;
	if (again)
		past->first = 0;
	else if (!past->first)
		load_sum(rv, ctx, past);
	if (again || now - past->asked_ns > NS_PER_S) { /* another process may have changed something */
		past->asked_ns = now;
		r = revlog_refresh(rv->log, ctx, err);
	}
	revlog_lock(rv->log);
	if (r == 0)
		r = add_new(rv, ctx, past, err);
	revlog_unlock(rv->log);
	if (r == 0 && past->seen - past->stored >= STORE_EVERY)
		store_sum(rv, ctx, past);
	return r;
}
