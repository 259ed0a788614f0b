/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about the past: which revisions, what a path was, what it held, what is new. */
#include "base/clock.h"
#include "base/limits.h"
#include "revisions/layer.h"

static int refresh(struct revisions *rv, struct ctx *ctx, struct err *err)
{
	int r = revisions_ready(rv, ctx, err);

	return r ? r : revlog_refresh(rv->log, ctx, err);
}

int revisions_head(struct store *revisions, struct ctx *ctx, uint64_t *ret_head, struct err *err)
{
	struct revisions *rv = revisions_of(revisions);
	int r = refresh(rv, ctx, err);

	if (r)
		return r;
	revlog_lock(rv->log);
	*ret_head = revlog_head(rv->log);
	revlog_unlock(rv->log);
	return 0;
}

static bool fits(struct str want, struct str have)
{
	return want.len == 0 || str_eq(want, have);
}

static bool matches(const struct rev_query *q, const struct rev_record *rec)
{
	return rec && (q->with_aborted || !rec->r.aborted) && wpath_within(rec->r.path, q->path) &&
	       fits(q->user, rec->r.actor.user) && fits(q->agent, rec->r.actor.agent) &&
	       fits(q->session, rec->r.actor.session) && fits(q->call_id, rec->r.actor.call_id);
}

static struct revision copy_out(struct arena *arena, const struct rev_record *rec)
{
	const struct revision *r = &rec->r;
	struct revision copy = *r;

	copy.done = rec->done;
	copy.path.s = arena_str(arena, r->path.s);
	copy.other = arena_str(arena, r->other);
	copy.before.version = arena_str(arena, r->before.version);
	copy.after.version = arena_str(arena, r->after.version);
	copy.actor = (struct actor){.user = arena_str(arena, r->actor.user),
				    .agent = arena_str(arena, r->actor.agent),
				    .session = arena_str(arena, r->actor.session),
				    .call_id = arena_str(arena, r->actor.call_id)};
	return copy;
}

int revisions_query(struct store *revisions, struct ctx *ctx, const struct rev_query *query, struct revision **ret,
		    size_t *ret_count, bool *ret_more, struct err *err)
{
	struct revisions *rv = revisions_of(revisions);
	size_t limit = query->limit ? query->limit : SIZE_MAX, count = 0, cap = 0;
	struct revision *list = NULL;
	uint64_t low, high;
	bool more = false;
	int r = refresh(rv, ctx, err);

	if (r)
		return r;
	revlog_lock(rv->log);
	if (query->since)
		r = revlog_keeps(rv->log, query->since, err);
	if (r == 0 && query->until)
		r = revlog_keeps(rv->log, query->until, err);
	low = query->since + 1 > revlog_first(rv->log) ? query->since + 1 : revlog_first(rv->log);
	high = query->until && query->until < revlog_head(rv->log) ? query->until : revlog_head(rv->log);
	for (uint64_t i = 0; r == 0 && low + i <= high; i++) {
		struct rev_record *rec = revlog_at(rv->log, query->newest_first ? high - i : low + i);

		if (!matches(query, rec))
			continue;
		if (count == limit) {
			more = true;
			break;
		}
		if (count == cap) {
			list = arena_grow(ctx->arena, list, cap * sizeof(*list), (cap ? cap * 2 : 32) * sizeof(*list));
			cap = cap ? cap * 2 : 32;
		}
		list[count++] = copy_out(ctx->arena, rec);
	}
	revlog_unlock(rv->log);
	if (r)
		return r;
	*ret = list;
	*ret_count = count;
	if (ret_more)
		*ret_more = more;
	return 0;
}

/* The record whose after-state (or, with *ret_before, whose before-state) is the path's state at `number`; NULL: the
   path has no record at all. The log's lock is held. */
static struct rev_record *find_state(struct revlog *log, struct wpath path, uint64_t number, bool *ret_before)
{
	struct rev_record *rec = revlog_last(log, path), *later = NULL;

	while (rec && rec->r.number > number) {
		later = rec;
		rec = rec->prev;
	}
	*ret_before = !rec;
	return rec ? rec : later;
}

int revisions_state(struct store *revisions, struct ctx *ctx, struct wpath path, uint64_t number,
		    struct rev_state *ret_state, struct err *err)
{
	struct revisions *rv = revisions_of(revisions);
	struct store_stat stat;
	struct store_call get = {.op = STORE_OP_STAT, .path = path, .ret_stat = &stat};
	struct rev_record *rec;
	bool before;
	int r = refresh(rv, ctx, err);

	if (r)
		return r;
	revlog_lock(rv->log);
	r = revlog_keeps(rv->log, number, err);
	rec = find_state(rv->log, path, number, &before);
	if (r == 0 && rec) {
		*ret_state = before ? rec->r.before : rec->r.after;
		if (ret_state->where == REV_LOG && ret_state->held_by == 0)
			ret_state->held_by = rec->r.number;
		ret_state->version = arena_str(ctx->arena, ret_state->version);
	}
	revlog_unlock(rv->log);
	if (r || rec)
		return r;
	*ret_state = (struct rev_state){0};
	r = store_forward(revisions->inner, ctx, &get, err);
	if (r == 0 && stat.kind == STORE_FILE)
		*ret_state = (struct rev_state){
			.exists = true, .where = REV_PREFIX, .size = stat.size, .version = stat.version};
	return r == -ERR_NOT_FOUND ? 0 : r;
}

static int absent_then(struct wpath path, uint64_t number, struct err *err)
{
	return err_set(err, ERR_NOT_FOUND, ERR_PATH " did not exist at revision %llu; `history` lists its revisions",
		       STR_ARG(path.s), (unsigned long long)number);
}

/* If the file now has the requested state it is read itself, which costs nothing more. Otherwise, or as soon as it
   changes, the kept bytes are read. */
int revisions_read(struct store *revisions, struct ctx *ctx, struct wpath path, uint64_t number,
		   struct store_range range, const struct sink *sink, struct rev_state *ret_state, struct err *err)
{
	struct revisions *rv = revisions_of(revisions);
	struct rev_record *rec;

	for (;;) {
		bool before, is_last, changed;
		uint64_t len;
		int r = revisions_state(revisions, ctx, path, number, ret_state, err);

		if (r == 0 && !ret_state->exists)
			r = absent_then(path, number, err);
		if (r)
			return r;
		revlog_lock(rv->log);
		rec = find_state(rv->log, path, number, &before);
		is_last = !rec || (!before && !rec->next);
		revlog_unlock(rv->log);
		if (is_last) {
			r = content_read_now(rv, ctx, path, rec, range, sink, &len, &changed, err);
			if (r || !changed)
				return r;
			range.offset += len;
			range.length -= range.length == UINT64_MAX ? 0 : len;
		}
		if (rec)
			return before ? content_read_before(rv, ctx, rec, range, sink, err)
				      : content_read_after(rv, ctx, rec, range, sink, err);
	}
}

int revisions_wait(struct store *revisions, struct ctx *ctx, uint64_t since, unsigned poll_ms, struct err *err)
{
	struct revisions *rv = revisions_of(revisions);

	for (;;) {
		int64_t until = clock_monotonic_ns() + (int64_t)poll_ms * NS_PER_MS;
		uint64_t head;
		int r = revisions_head(revisions, ctx, &head, err);

		if (r || head > since)
			return r;
		r = ctx_check(ctx, err);
		if (r)
			return r;
		if (ctx->deadline_ns && ctx->deadline_ns < until)
			until = ctx->deadline_ns;
		if (revlog_listen(rv->log, ctx, ctx->deadline_ns ? ctx->deadline_ns : INT64_MAX))
			continue;
		revlog_lock(rv->log);
		if (revlog_head(rv->log) <= since)
			revlog_wait(rv->log, until);
		revlog_unlock(rv->log);
	}
}

int revisions_checkpoint(struct store *revisions, struct ctx *ctx, struct str name, uint64_t number, struct err *err)
{
	struct revisions *rv = revisions_of(revisions);
	int64_t ignored;
	uint64_t head;
	int r = revisions_head(revisions, ctx, &head, err);

	if (r)
		return r;
	if (!wpath_name_ok(name) || str_to_i64(name, &ignored))
		return err_set(err, ERR_INVALID, "\"%.*s\" cannot name a checkpoint; use a word that is not a number",
			       STR_ARG(name));
	if (number > head)
		return err_set(err, ERR_NOT_FOUND, "there is no revision %llu; the newest is %llu",
			       (unsigned long long)number, (unsigned long long)head);
	return revlog_checkpoint(rv->log, ctx, name, number, err);
}

int revisions_checkpoints(struct store *revisions, struct ctx *ctx, struct rev_checkpoint **ret, size_t *ret_count,
			  struct err *err)
{
	struct revisions *rv = revisions_of(revisions);
	const struct rev_checkpoint *list;
	struct rev_checkpoint *copy;
	int r = refresh(rv, ctx, err);

	if (r)
		return r;
	revlog_lock(rv->log);
	list = revlog_checkpoints(rv->log, ret_count);
	copy = ARENA_ARRAY(ctx->arena, struct rev_checkpoint, *ret_count);
	for (size_t i = 0; i < *ret_count; i++) {
		copy[i] = list[i];
		copy[i].name = arena_str(ctx->arena, list[i].name);
	}
	revlog_unlock(rv->log);
	*ret = copy;
	return 0;
}
