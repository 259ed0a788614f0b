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
 * time, and then a helper would make a change that its owner has given up. So the record is given up on the condition
 * that the obstacle has no newer record: nobody removes it without one, and whoever makes our change after that reads
 * the log first.
 *
 * Stores that have neither (objects) go by time: an owner that comes later than REV_LATE_NS asks the log right before
 * the change, and helpers leave the record to it for REV_HELP_AFTER_NS (recover.c). What is left is a request for the
 * change that is on its way for longer than the difference. A helper also says in the log what it is about to do.
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

/* True when the change is made apart from its record and late, and others have completed it. */
static bool is_too_late(struct revisions *rv, struct ctx *ctx, const struct rev_record *rec)
{
	int64_t age = clock_real_ns() - rec->r.time_ns;
	struct err ignored;
	bool settled;

	if (!rv->journal || (age >= 0 && age < REV_LATE_NS))
		return false;
	revlog_refresh(rv->log, ctx, &ignored);
	revlog_lock(rv->log);
	settled = revlog_is_settled(rv->log, rec);
	revlog_unlock(rv->log);
	return settled;
}

int make_change(struct revisions *rv, struct ctx *ctx, struct store_call *call, struct rev_record **recs, size_t count,
		struct err *err)
{
	struct store_cond *cond = call->op == STORE_OP_MOVE || call->op == STORE_OP_COPY ? &call->to_cond : &call->cond;
	struct still still = {.rv = rv, .ctx = ctx};
	struct rev_step step;
	int r;

	if (make_step(rv, ctx, call, &step)) {
		r = revlog_make(rv->log, ctx, recs, count, &step, err);
		if (r == 0)
			*call->ret_stat = step.stat;
		return r;
	}
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

int make_or_find(struct revisions *rv, struct ctx *ctx, struct store_call *call, struct rev_record **recs, size_t count,
		 struct err *err)
{
	int r = make_change(rv, ctx, call, recs, count, err);
	struct store_stat stat = {0};
	bool made = false;

	for (size_t i = count; r && !ends_call(r) && i-- > 0 && !made;)
		made = recover_took_effect(rv, ctx, recs[i], count == 1 && r == -ERR_EXISTS, &stat);
	return made ? complete(rv, ctx, recs, count, &stat, call->ret_stat, err) : r;
}

void make_abort(struct revisions *rv, struct ctx *ctx, struct rev_record **recs, size_t count)
{
	struct err ignored;

	for (size_t i = 0; i < count; i++)
		if (!revlog_is_done(rv->log, recs[i]))
			revlog_abort(rv->log, recs[i]);
	revlog_flush(rv->log, ctx, &ignored); /* until then another process might make the change */
}

bool make_give_up(struct revisions *rv, struct ctx *ctx, struct rev_record **recs, size_t count)
{
	struct rev_obstacle obstacle;
	struct err ignored;

	return !rv->journal && recs[count - 1]->r.after.exists &&
	       look_obstacle(rv, ctx, recs[count - 1]->r.path, &obstacle) &&
	       revlog_abort_behind(rv->log, ctx, recs, count, &obstacle, &ignored) == 0;
}

/* The source from its beginning. False: it has been read, and cannot be read again. */
static bool rewind_source(const struct source *source)
{
	struct err ignored;

	return !source || !source->pull || (source->rewind && source->rewind(source->arg, &ignored) == 0);
}

int make_logged(struct revisions *rv, struct ctx *ctx, struct store_call *call, struct rev_record **recs, size_t count,
		struct err *err)
{
	int r = -ERR_INVALID;

	for (int tries = 0; r == -ERR_INVALID && tries < TRIES_MAX; tries++) {
		if (tries && !rewind_source(call->source))
			break;
		r = make_or_find(rv, ctx, call, recs, count, err);
		if (r == -ERR_INVALID && make_give_up(rv, ctx, recs, count))
			return r;
		if (rv->journal) /* there it cannot be given up, and each try is a request */
			break;
	}
	if (r)
		make_abort(rv, ctx, recs, count);
	return r;
}
