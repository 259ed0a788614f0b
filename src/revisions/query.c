/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about the past: which revisions, what a path was, what it held, what is new. */
#include "base/clock.h"
#include "base/limits.h"
#include "revisions/layer.h"
#include "text/jv.h"

#define WORD_MAX     65536 /* of a word that lines are searched for */
#define NEAR_RECORDS 16

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
	return (q->with_aborted || !rec->r.aborted) && wpath_within(rec->r.path, q->path) &&
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

/* An answer that is being gathered. */
struct answer {
	struct revisions *rv;
	const struct rev_query *query;
	uint64_t low, high; /* the numbers in question */
	size_t limit;
	struct revision *list;
	size_t count, cap;
	bool more;
};

/* Adds a record that matches. False: the limit is reached. */
static bool answer_add(struct answer *a, struct ctx *ctx, const struct rev_record *rec)
{
	if (!matches(a->query, rec))
		return true;
	if (a->count == a->limit) {
		a->more = true;
		return false;
	}
	ARENA_ROOM(ctx->arena, a->list, a->count, a->cap);
	a->list[a->count++] = copy_out(ctx->arena, rec);
	return true;
}

/* What the line of every record that matches has in it: the rarest word that is asked for. */
static struct str wanted_text(struct arena *arena, const struct rev_query *q)
{
	struct str word = q->call_id.len ? q->call_id : q->session.len ? q->session : q->agent.len ? q->agent : q->user;
	struct buf out;

	buf_init(&out, arena, WORD_MAX);
	if (word.len)
		jv_write_string(&out, word);
	return out.overflow ? STR_NONE : buf_str(&out);
}

/* Along the numbers. */
static int answer_walk(struct answer *a, struct ctx *ctx, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct str text = wanted_text(ctx->arena, a->query);
	struct ctx c = *ctx;

	c.arena = arena;
	for (uint64_t i = 0; a->low + i <= a->high; i++) {
		struct rev_record rec;
		bool has;
		int r = revlog_get_with(a->rv->log, &c, a->query->newest_first ? a->high - i : a->low + i, text, &rec,
					&has, err);

		if (r == 0 && i % 1024 == 0)
			r = ctx_check(ctx, err);
		if (r == -ERR_CORRUPT && a->query->until_damage && a->count) {
			a->more = true;
			return 0;
		}
		if (r)
			return r;
		if (has && !answer_add(a, ctx, &rec))
			break;
		arena_reset(arena);
	}
	return 0;
}

/* Along one path. */
static int answer_path(struct answer *a, struct ctx *ctx, struct err *err)
{
	struct rev_record *at, *after, **list = NULL;
	size_t count = 0, cap = 0;
	int r = revlog_find(a->rv->log, ctx, a->query->path, a->high, &at, &after, err);

	while (r == 0 && at && at->r.number >= a->low) {
		if (a->query->newest_first && !answer_add(a, ctx, at))
			break;
		ARENA_ROOM(ctx->arena, list, count, cap);
		list[count++] = at;
		r = revlog_prev(a->rv->log, ctx, at, &at, err);
	}
	while (r == 0 && !a->query->newest_first && count-- > 0)
		if (!answer_add(a, ctx, list[count]))
			break;
	return r;
}

/* True when the newest record of the path says that it is a file: then its own chain is the answer. Records that cannot
   be read may belong to it: then all numbers are gone through, up to the first of those. */
static bool is_file(struct answer *a, struct ctx *ctx)
{
	struct rev_record *last;
	struct err ignored;

	return !wpath_is_root(a->query->path) && !a->query->with_aborted &&
	       !revlog_unread_between(a->rv->log, a->low - 1, a->high) &&
	       revlog_last(a->rv->log, ctx, a->query->path, &last, &ignored) == 0 && last && last->r.after.exists;
}

int revisions_query(struct store *revisions, struct ctx *ctx, const struct rev_query *query, struct revision **ret,
		    size_t *ret_count, bool *ret_more, struct err *err)
{
	struct revisions *rv = revisions_of(revisions);
	REV_PINNED struct revisions *pin = revisions_pin(rv);
	struct answer a = {.rv = rv, .query = query, .limit = query->limit ? query->limit : SIZE_MAX};
	int r = refresh(rv, ctx, err);

	if (r)
		return r;
	revlog_lock(rv->log);
	if (query->since)
		r = revlog_keeps(rv->log, query->since, err);
	if (r == 0 && query->until)
		r = revlog_keeps(rv->log, query->until, err);
	a.low = query->since + 1 > revlog_first(rv->log) ? query->since + 1 : revlog_first(rv->log);
	a.high = query->until && query->until < revlog_head(rv->log) ? query->until : revlog_head(rv->log);
	if (r == 0)
		r = is_file(&a, ctx) ? answer_path(&a, ctx, err) : answer_walk(&a, ctx, err);
	revlog_unlock(rv->log);
	if (r)
		return r;
	*ret = a.list;
	*ret_count = a.count;
	if (ret_more)
		*ret_more = a.more;
	return 0;
}

/* When the newest record before `number` was logged, as far as that is near; 0: not known. */
static int64_t time_before(struct revisions *rv, struct ctx *ctx, uint64_t number)
{
	int64_t time_ns = 0;

	revlog_lock(rv->log);
	for (int tries = 0; tries < NEAR_RECORDS && !time_ns && number-- > revlog_first(rv->log); tries++) {
		struct rev_record rec;
		struct err ignored;
		bool has;

		if (revlog_get(rv->log, ctx, number, &rec, &has, &ignored) == 0 && has)
			time_ns = rec.r.time_ns;
	}
	revlog_unlock(rv->log);
	return time_ns;
}

static bool is_newest(struct revisions *rv, uint64_t number)
{
	bool is;

	revlog_lock(rv->log);
	is = number >= revlog_head(rv->log);
	revlog_unlock(rv->log);
	return is;
}

/* True when no record from `lost` to `number` can have left the path in another state: the file is as the newest intact
   record left it or, if it has none, nobody has touched it since before the lost one. That a file is absent tells only
   of now: it may have been made and removed since. */
static bool is_not_lost(struct revisions *rv, struct ctx *ctx, struct wpath path, uint64_t number,
			const struct rev_record *at, uint64_t lost)
{
	struct store_stat stat;
	struct store_call get = {.op = STORE_OP_STAT, .path = path, .ret_stat = &stat};
	struct err ignored;
	int there = store_forward(rv->base.inner, ctx, &get, &ignored);

	if (at && at->done)
		return at->r.after.exists ? there == 0 && str_eq(stat.version, at->r.after.version)
					  : there == -ERR_NOT_FOUND && is_newest(rv, number);
	return !at && there == 0 && stat.kind == STORE_FILE && stat.changed_ns &&
	       stat.changed_ns < time_before(rv, ctx, lost) - CLOCK_STEP_NS;
}

int revisions_find(struct revisions *rv, struct ctx *ctx, struct wpath path, uint64_t number,
		   struct rev_record **ret_at, struct rev_record **ret_after, struct err *err)
{
	uint64_t lost;
	int r;

	revlog_lock(rv->log);
	r = revlog_find_state(rv->log, ctx, path, number, ret_at, ret_after, &lost, err);
	revlog_unlock(rv->log);
	if (r != -ERR_CORRUPT || !lost || *ret_after)
		return r;
	return is_not_lost(rv, ctx, path, number, *ret_at, lost) ? 0 : r;
}

/* True when what is in memory tells for good what a path was at a revision: its last record until then is done. What
   other processes have added since, and what cannot be read after it, cannot change that. */
static bool is_told(struct revisions *rv, struct ctx *ctx, struct wpath path, uint64_t number)
{
	struct rev_record *at, *after;
	struct err ignored;
	uint64_t unused;
	bool told;

	revlog_lock(rv->log);
	told = revlog_head(rv->log) >= number &&
	       revlog_find_state(rv->log, ctx, path, number, &at, &after, &unused, &ignored) == 0 &&
	       (after || (at && at->done));
	revlog_unlock(rv->log);
	return told;
}

/* Takes in what was added to the log, unless it does not matter for this state. */
static int refresh_for(struct revisions *rv, struct ctx *ctx, struct wpath path, uint64_t number, struct err *err)
{
	int r;

	if (rv->journal && is_told(rv, ctx, path, number))
		return 0;
	r = revlog_refresh(rv->log, ctx, err);
	return r == -ERR_CORRUPT && is_told(rv, ctx, path, number) ? 0 : r;
}

int revisions_state(struct store *revisions, struct ctx *ctx, struct wpath path, uint64_t number,
		    struct rev_state *ret_state, struct err *err)
{
	struct revisions *rv = revisions_of(revisions);
	REV_PINNED struct revisions *pin = revisions_pin(rv);
	struct store_stat stat;
	struct store_call get = {.op = STORE_OP_STAT, .path = path, .ret_stat = &stat};
	struct rev_record *at, *after;
	bool is_logged;
	int r = revisions_ready(rv, ctx, err);

	if (r == 0)
		r = refresh_for(rv, ctx, path, number, err);
	if (r)
		return r;
	revlog_lock(rv->log);
	r = revlog_keeps(rv->log, number, err);
	revlog_unlock(rv->log);
	if (r == 0)
		r = revisions_find(rv, ctx, path, number, &at, &after, err);
	if (r)
		return r;
	revlog_lock(rv->log);
	if (at || after) {
		*ret_state = at ? at->r.after : after->r.before;
		if ((ret_state->where == REV_LOG || ret_state->where == REV_HERE) && ret_state->held_by == 0)
			ret_state->held_by = at ? at->r.number : after->r.number;
		if (at && after && !revlog_is_next(rv->log, at, after))
			after = NULL; /* it says nothing of this state */
		if (!ret_state->version.len && after && after->r.before.exists)
			ret_state->version = after->r.before.version; /* the index has it for the newest one only */
		if (ret_state->exists && !ret_state->mode && after) { /* what the next change found */
			ret_state->mode = after->r.before.mode;
			ret_state->owner = after->r.before.owner;
		}
		ret_state->version = arena_str(ctx->arena, ret_state->version);
	}
	is_logged = at || after;
	revlog_unlock(rv->log);
	if (is_logged)
		return 0;
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
	REV_PINNED struct revisions *pin = revisions_pin(rv);

	for (;;) {
		struct rev_record *at, *after;
		struct store_stat unused;
		uint64_t len;
		bool changed;
		int r = revisions_state(revisions, ctx, path, number, ret_state, err);

		if (r == 0 && !ret_state->exists)
			r = absent_then(path, number, err);
		if (r)
			return r;
		r = revisions_find(rv, ctx, path, number, &at, &after, err);
		if (r)
			return r;
		if (!after) {
			r = content_read_now(rv, ctx, path, at, range, sink, &unused, &len, &changed, err);
			if (r || !changed)
				return r;
			range.offset += len;
			range.length -= range.length == UINT64_MAX ? 0 : len;
		}
		if (at || after)
			return at ? content_read_after(rv, ctx, at, range, sink, err)
				  : content_read_before(rv, ctx, after, range, sink, err);
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
		return err_set(err, ERR_INVALID,
			       "\"%.*s\" cannot name a checkpoint; use a word without \"/\" that is not a number",
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
	int r = refresh(rv, ctx, err);

	if (r)
		return r;
	revlog_lock(rv->log);
	r = revlog_checkpoints(rv->log, ctx, ret, ret_count, err);
	revlog_unlock(rv->log);
	return r;
}
