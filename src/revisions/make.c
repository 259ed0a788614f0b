/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making the change of a record that is in the log.
 *
 * The owner of the record and any number of helpers may do that at the same time, so the change is made under a
 * condition that only one of them can meet. "The path still has this version" is such a condition, since a version
 * never comes back. "The path does not exist" is not: a helper may have made the file for us, and another process may
 * have removed it since. So before a file is made, the log is asked whether the record is still open. Whoever changes
 * the path after us notes that our record is done, and logs its own change, before it makes it; so the answer is right
 * if nobody can change the path between question and change. There are two ways to that:
 *
 *  - On disk the question is asked under the lock of the directory, in which all files are made (store_cond.still).
 *  - Where a journal and the files are in one store, the change and the note that it is done are one step, which is
 *    made only if the journal has got no other entry.
 *
 * A file can also be kept from being made by another one: a part of its path, or below it. That one may go away at any
 * time, and then a helper would make a change that its owner has given up. So the abort has a condition as well:
 *
 *  - On disk, that the obstacle has no newer record: nobody removes it without one, and whoever makes our change after
 *    that reads the log first.
 *  - In a journal, that the record is open. The abort is an entry of its own: either the step that makes the change
 *    comes before it, and the abort is refused, or it comes after it, and is refused itself. The same holds for every
 *    other reason to give up.
 *
 * Stores that have neither (objects), and contents that are too large for a step, go by time: an owner that comes later
 * than REV_LATE_NS asks the log right before the change, and helpers leave the record to it for REV_HELP_AFTER_NS
 * (recover.c). What is left is a request for the change that is on its way for longer than the difference. A helper
 * also says in the log what it is about to do, and the record is not given up before it had the time to.
 */
#include "base/clock.h"
#include "base/hash.h"
#include "base/limits.h"
#include "revisions/layer.h"

#define TRIES_MAX 20

static bool ends_call(int r)
{
	return r == -ERR_CANCELLED || r == -ERR_TIMEOUT;
}

bool make_groups(const struct revisions *rv)
{
	return rv->journal && rv->log_at == rv->base.inner && revlog_one_step(rv->log) &&
	       store_can(rv->log_at, STORE_GROUP_STEP);
}

bool make_step(struct revisions *rv, struct ctx *ctx, const struct store_call *call, struct rev_step *ret)
{
	static const enum journal_change changes[STORE_OPS] = {[STORE_OP_WRITE] = JOURNAL_WRITE,
							       [STORE_OP_APPEND] = JOURNAL_APPEND,
							       [STORE_OP_REMOVE] = JOURNAL_REMOVE,
							       [STORE_OP_MOVE] = JOURNAL_MOVE};

	*ret = (struct rev_step){.change = changes[call->op], .path = call->path, .cond = call->cond};
	ret->version = STR("");
	if (!rv->journal || rv->log_at != rv->base.inner || !revlog_steps(rv->log, ret->change) || call->recursive ||
	    (call->source && (call->source->pull || call->source->bytes.len > REV_STEP_MAX)))
		return false;
	if (call->source) {
		ret->content = call->source->bytes;
		ret->version = arena_printf(ctx->arena, "%016llx", (unsigned long long)random_u64());
	}
	if (call->op == STORE_OP_MOVE) {
		ret->path = call->to;
		ret->cond = call->to_cond;
		ret->from = call->path;
		ret->from_cond = call->cond;
		/* the caller's, because a record's memory may go with the end of the call */
		ret->version = arena_str(ctx->arena, call->cond.version);
	}
	return true;
}

/* What is asked under the lock. */
struct still {
	struct revisions *rv;
	struct ctx *ctx;
	const struct rev_record *rec; /* must be open; NULL: not asked */
	struct wpath from;            /* a copy: the file that is copied, and its version */
	struct str version;
};

static int is_still(void *arg, struct err *err)
{
	const struct still *s = arg;
	struct store_stat stat;
	struct store_call get = {.op = STORE_OP_STAT, .path = s->from, .ret_stat = &stat};

	if (s->rec && !revlog_is_open(s->rv->log, s->ctx, s->rec))
		return err_set(err, ERR_CONFLICT, "another process has completed the change");
	if (s->version.ptr &&
	    (store_forward(s->rv->base.inner, s->ctx, &get, err) || !str_eq(stat.version, s->version)))
		return err_set(err, ERR_CONFLICT, ERR_PATH " changed while it was being copied", STR_ARG(s->from.s));
	return 0;
}

bool make_is_apart(const struct revisions *rv, const struct rev_record *rec)
{
	return rv->journal && !(revlog_one_step(rv->log) && rec->r.after.size <= REV_STEP_MAX);
}

bool make_is_settled(struct revisions *rv, const struct rev_record *rec)
{
	bool settled;

	revlog_lock(rv->log);
	settled = revlog_is_settled(rv->log, rec);
	revlog_unlock(rv->log);
	return settled;
}

/* True when the change is made apart from its record and late, and others have completed it. */
static bool is_too_late(struct revisions *rv, struct ctx *ctx, const struct rev_record *rec)
{
	int64_t age = clock_real_ns() - rec->r.time_ns;
	struct err ignored;

	if (!rv->journal || (age >= 0 && age < REV_LATE_NS))
		return false;
	revlog_refresh(rv->log, ctx, &ignored);
	return make_is_settled(rv, rec);
}

/* A step is made from bytes in memory: a kept content that is small enough is read first. *ret is the source itself, or
   its bytes. */
static int gather(struct revisions *rv, struct ctx *ctx, const struct source *source, const struct rev_record *rec,
		  struct source *ret, struct err *err)
{
	size_t max = (size_t)rec->r.after.size + 1, len = 0, n = 1;
	char *bytes;
	int r = 0;

	*ret = *source;
	if (!source->pull || !rv->journal || !revlog_steps(rv->log, JOURNAL_WRITE) || rec->r.after.size > REV_STEP_MAX)
		return 0;
	bytes = arena_alloc_raw(ctx->arena, max);
	while (r == 0 && n && len < max) {
		r = source->pull(source->arg, bytes + len, max - len, &n, err);
		len += r == 0 ? n : 0;
	}
	ret->pull = NULL;
	ret->bytes = str_n(bytes, len);
	return r;
}

/* The change in one step with the note that it is done, if the store can. *ret_stepped: it was tried. */
static int make_in_step(struct revisions *rv, struct ctx *ctx, const struct store_call *wanted,
			struct rev_record **recs, size_t count, bool *ret_stepped, struct err *err)
{
	struct store_call call = *wanted;
	struct source gathered;
	struct rev_step step;
	int r = 0;

	*ret_stepped = true;
	if (call.source) {
		r = gather(rv, ctx, call.source, recs[count - 1], &gathered, err);
		call.source = &gathered;
	}
	if (r)
		return r;
	*ret_stepped = make_step(rv, ctx, &call, &step);
	if (!*ret_stepped)
		return 0;
	r = revlog_make(rv->log, ctx, recs, count, &step, err);
	if (r == 0)
		*call.ret_stat = step.stat;
	return r;
}

int make_change(struct revisions *rv, struct ctx *ctx, struct store_call *call, struct rev_record **recs, size_t count,
		struct err *err)
{
	struct store_cond *cond = call->op == STORE_OP_MOVE || call->op == STORE_OP_COPY ? &call->to_cond : &call->cond;
	struct still still = {.rv = rv, .ctx = ctx};
	bool stepped;
	int r = make_in_step(rv, ctx, call, recs, count, &stepped, err);

	if (stepped)
		return r;
	if (cond->kind == STORE_ABSENT)
		still.rec = recs[count - 1];
	if (call->op == STORE_OP_COPY) {
		still.from = call->path;
		still.version = call->cond.version;
	}
	if (!rv->journal && store_can(rv->base.inner, STORE_ASKS) && (still.rec || still.version.ptr)) {
		cond->still = is_still;
		cond->arg = &still;
	}
	if (is_too_late(rv, ctx, recs[count - 1]))
		return err_set(err, ERR_CONFLICT, "another process has completed the change");
	r = store_forward(rv->base.inner, ctx, call, err);
	for (size_t i = 0; r == 0 && i < count; i++)
		revlog_done(rv->log, recs[i], recs[i]->r.after.exists ? call->ret_stat->version : STR_NONE);
	return r;
}

/* The change was made by others: completes what is left of it. */
static int complete(struct revisions *rv, struct ctx *ctx, struct rev_record **recs, size_t count,
		    const struct store_stat *stat, struct store_stat *ret_stat, struct err *err)
{
	const struct rev_record *last = recs[count - 1];

	for (size_t i = count; i-- > 0;)
		if (!revlog_is_done(rv->log, recs[i])) {
			int r = recover_record(rv, ctx, recs[i], err);

			if (r)
				return r;
		}
	*ret_stat = *stat;
	if (count > 1)
		*ret_stat = (struct store_stat){.kind = STORE_FILE,
						.size = last->r.after.size,
						.mtime_ns = last->r.time_ns,
						.version = arena_str(ctx->arena, last->r.after.version)};
	return 0;
}

/* Looks whether others have made what could not be made here. */
static bool find_made(struct revisions *rv, struct ctx *ctx, struct rev_record **recs, size_t count, bool guessed,
		      struct store_stat *ret_stat)
{
	bool made = false;

	for (size_t i = count; i-- > 0 && !made;)
		made = recover_took_effect(rv, ctx, recs[i], guessed, ret_stat);
	return made;
}

int make_or_find(struct revisions *rv, struct ctx *ctx, struct store_call *call, struct rev_record **recs, size_t count,
		 struct err *err)
{
	int r = make_change(rv, ctx, call, recs, count, err);
	struct store_stat stat = {0};

	if (r && !ends_call(r) && find_made(rv, ctx, recs, count, count == 1 && r == -ERR_EXISTS, &stat))
		return complete(rv, ctx, recs, count, &stat, call->ret_stat, err);
	return r;
}

/* --- giving up --- */

/* True when the log has an answer for one of the records. */
static bool any_settled(struct revisions *rv, struct rev_record **recs, size_t count)
{
	bool any = false;

	for (size_t i = 0; i < count; i++)
		any = any || make_is_settled(rv, recs[i]);
	return any;
}

void make_wait_settled(struct revisions *rv, struct ctx *ctx, const struct rev_record *rec, int64_t until_ns)
{
	int64_t pause = NS_PER_MS;
	struct err ignored;

	while (clock_monotonic_ns() < until_ns && !make_is_settled(rv, rec) && ctx_check(ctx, &ignored) == 0) {
		struct timespec t = clock_timespec(pause);

		nanosleep(&t, NULL);
		pause = pause < 200 * NS_PER_MS ? 2 * pause : pause;
		revlog_refresh(rv->log, ctx, &ignored);
	}
}

/* Where the log cannot be written (a full disk) this process at least treats the records as aborted, and says so with
   its next append. */
static int give_up_records(struct revisions *rv, struct ctx *ctx, struct rev_record **recs, size_t count,
			   bool even_helped)
{
	struct err ignored;
	int r = revlog_give_up(rv->log, ctx, recs, count, NULL, even_helped, &ignored);

	for (size_t i = 0; r && r != -ERR_CONFLICT && !rv->journal && i < count; i++)
		if (!revlog_is_done(rv->log, recs[i]))
			revlog_abort(rv->log, recs[i]);
	return r;
}

/* Aborts records that are open. ERR_CONFLICT: one of them is settled, or another process has said that it is about to
   make it; then *ret_helped, and it had time to. */
static int abort_open(struct revisions *rv, struct ctx *ctx, struct rev_record **recs, size_t count, bool even_helped,
		      bool *ret_helped)
{
	int r = give_up_records(rv, ctx, recs, count, even_helped);

	*ret_helped = r == -ERR_CONFLICT && !even_helped && !any_settled(rv, recs, count);
	if (*ret_helped)
		make_wait_settled(rv, ctx, recs[count - 1], clock_monotonic_ns() + REV_HELP_AFTER_NS);
	return r;
}

bool make_abort(struct revisions *rv, struct ctx *ctx, struct rev_record **recs, size_t count)
{
	return give_up_records(rv, ctx, recs, count, false) == 0;
}

int make_abort_or_find(struct revisions *rv, struct ctx *ctx, struct rev_record **recs, size_t count,
		       struct store_stat *ret_stat, int result, struct err *err)
{
	struct store_stat stat = {0};
	bool helped = false;
	int r = abort_open(rv, ctx, recs, count, false, &helped);

	if (r == -ERR_CONFLICT && find_made(rv, ctx, recs, count, false, &stat))
		return complete(rv, ctx, recs, count, &stat, ret_stat, err);
	if (helped && !ends_call(result)) /* if the call has ended, the helper has had no time */
		abort_open(rv, ctx, recs, count, true, &helped);
	return result;
}

/* Gives up records whose last one cannot be made because a file is in the way. False: that file is gone, or may be, or
   one of the records is settled, or a helper has had time to make it, which counts in the first try only. */
static bool give_up(struct revisions *rv, struct ctx *ctx, struct rev_record **recs, size_t count, bool is_first)
{
	struct rev_obstacle obstacle;
	struct err ignored;
	bool helped;

	if (!recs[count - 1]->r.after.exists)
		return false;
	if (rv->journal)
		return abort_open(rv, ctx, recs, count, !is_first, &helped) == 0;
	return look_obstacle(rv, ctx, recs[count - 1]->r.path, &obstacle) &&
	       revlog_give_up(rv->log, ctx, recs, count, &obstacle, false, &ignored) == 0;
}

int make_or_give_up(struct revisions *rv, struct ctx *ctx, const struct making *m, bool *ret_gave_up, struct err *err)
{
	int r = -ERR_INVALID;

	*ret_gave_up = false;
	for (int tries = 0; r == -ERR_INVALID && !*ret_gave_up && tries < TRIES_MAX; tries++) {
		struct err ignored;

		if (tries) /* what was in the way may be gone */
			revlog_refresh(rv->log, ctx, &ignored);
		r = m->make(m->arg, err);
		*ret_gave_up = r == -ERR_INVALID && m->count && give_up(rv, ctx, m->recs, m->count, tries == 0);
	}
	return r;
}

/* The owner's try. */
struct owner {
	struct revisions *rv;
	struct ctx *ctx;
	struct store_call *call;
	struct rev_record **recs;
	size_t count;
	bool again;
};

static int owner_make(void *arg, struct err *err)
{
	struct owner *o = arg;
	const struct source *source = o->call->source;

	if (o->again && source && source->pull) {
		int r = source->rewind ? source->rewind(source->arg, err) : -1;

		if (r)
			return err_set(err, ERR_CONFLICT, "the content cannot be read again for another try");
	}
	o->again = true;
	return make_or_find(o->rv, o->ctx, o->call, o->recs, o->count, err);
}

int make_try(struct revisions *rv, struct ctx *ctx, struct store_call *call, struct rev_record **recs, size_t count,
	     bool *ret_gave_up, struct err *err)
{
	struct owner owner = {.rv = rv, .ctx = ctx, .call = call, .recs = recs, .count = count};
	struct making m = {.make = owner_make, .arg = &owner, .recs = recs, .count = count};

	return make_or_give_up(rv, ctx, &m, ret_gave_up, err);
}

int make_logged(struct revisions *rv, struct ctx *ctx, struct store_call *call, struct rev_record **recs, size_t count,
		struct err *err)
{
	bool gave_up;
	int r = make_try(rv, ctx, call, recs, count, &gave_up, err);

	return r == 0 || gave_up ? r : make_abort_or_find(rv, ctx, recs, count, call->ret_stat, r, err);
}
