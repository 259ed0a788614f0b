/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layer that records every change.
 *
 * A change of a path takes four steps:
 *
 *  look   look() compares the path with its newest record. If that record is not done, its change is finished first; if
 *         the file differs from a record that is done, another program changed it, and that is recorded as an outside
 *         change. It starts over until file and log agree. hold() then keeps the bytes that are about to be replaced.
 *  log    The record is appended, with the new bytes or a reference to them. From here on the change is durable. If the
 *         path has got a newer record since the look, nothing is logged (ERR_CONFLICT).
 *  apply  The change is made in the store below, on the condition that the path is still what the look saw.
 *  done   The log notes the version that the path got. The note is written with the next append; nobody waits for it.
 *
 * When the condition of "apply" fails, there are two cases. Either another process has completed our record for us,
 * which is success (recover_took_effect). Or another writer was first: the record is marked as aborted, and the change
 * starts again with a look, or is refused if the caller's own condition no longer holds. make.c says why the condition
 * is enough.
 *
 * A record with neither "done" nor "abort" belongs to a process that is still applying it, or died. Nobody waits to
 * find out which: the next process that looks at the path, or opens the log, completes the record as a helper. It finds
 * the change made and notes that; or makes it, on the same condition as the owner; or, where that could undo newer
 * work, leaves the file alone and notes the version "unknown", so that the next look records an outside change
 * (recover.c). So the order of the log is the order of what happened, between threads and processes, with no lock that
 * a killed process could leave behind. The locks here only keep the threads of one process from competing for the same
 * path.
 *
 * With a journal a look would cost a request, so the first try believes the log's newest record (look_known) and makes
 * the change on the condition that the path is what that record left. If the store refuses, the next try looks; `enum
 * step` carries this from one try to the next. A store that has both journal and files logs and applies in one step.
 *
 * Looks are in look.c, moves, copies and whole directories in tree.c, groups of changes in group.c, and what other
 * programs did in notice.c.
 *
 * Reads, lists and scans pass through untouched.
 */
#include "revisions/layer.h"

#include "base/hash.h"
#include "base/limits.h"

#define TRIES_MAX  1000
#define OWN_PREFIX STR(".stead")

static const struct store_ops revisions_ops;

struct revisions *revisions_of(struct store *s)
{
	return (struct revisions *)s;
}

/* Stead's own data is not part of the history. */
bool revisions_records(struct wpath path)
{
	return !wpath_within(path, (struct wpath){OWN_PREFIX});
}

/* --- locks --- */

static pthread_mutex_t *stripe_of(struct revisions *rv, struct wpath path)
{
	return &rv->stripes[hash_u64(path.s, 1) % REV_STRIPES];
}

void revisions_lock_path(struct revisions *rv, struct wpath path)
{
	pthread_rwlock_rdlock(&rv->tree);
	pthread_mutex_lock(stripe_of(rv, path));
}

void revisions_unlock_path(struct revisions *rv, struct wpath path)
{
	pthread_mutex_unlock(stripe_of(rv, path));
	pthread_rwlock_unlock(&rv->tree);
}

/* How a try of a change learns what its path is. Each try leaves here what the next one has to do. */
enum step {
	STEP_TRUST, /* believe the log's newest record of the path, where look_known() can */
	STEP_LOOK,  /* look at the path: it was not what the last try took it for */
	STEP_TREE,  /* removing only: the path is a directory, which tree_remove() removes */
};

/* --- refusing --- */

/* What cannot be done is refused here, with the sentences that all stores use. It is not left to the store below: there
   it could be possible by now, and would be made without a record. */

static int refuse_dir(struct wpath path, struct store_cond cond, enum store_refusal otherwise, struct err *err)
{
	return store_refuse(cond.kind == STORE_VERSION ? REFUSE_DIR_VERSION : otherwise, path.s, err);
}

/* --- changing --- */

static int check_cond(struct store_cond cond, const struct look *l, struct err *err)
{
	return store_cond_check(cond, l->state.exists, l->state.version, err);
}

/* The condition that the path is still what the look saw. */
static struct store_cond cond_unchanged(const struct look *l)
{
	return (struct store_cond){.kind = l->state.exists ? STORE_VERSION : STORE_ABSENT, .version = l->state.version};
}

static bool was_overtaken(int r)
{
	return r == -ERR_CONFLICT || r == -ERR_EXISTS || r == -ERR_NOT_FOUND;
}

/* Logs the draft of `call` and makes the change, in one request if the store can. *ret_step is STEP_LOOK when the file
   was not what it was taken for. */
static int log_and_apply(struct revisions *rv, struct ctx *ctx, struct store_call *call, struct rev_draft *d,
			 enum step *ret_step, struct err *err)
{
	struct rev_step step;
	int r;

	call->cond.known_ns = clock_monotonic_ns(); /* the log refuses the record if it no longer holds */
	if (make_step(rv, ctx, call, &step))
		r = revlog_append_step(rv->log, ctx, d, 1, &step, err);
	else
		r = revisions_log(rv, ctx, d, 1, err);
	*ret_step = step.refused ? STEP_LOOK : STEP_TRUST;
	if (r)
		return r;
	if (!step.made) {
		r = make_logged(rv, ctx, call, &d->record, 1, err);
		*ret_step = r ? STEP_LOOK : STEP_TRUST;
		return r;
	}
	*call->ret_stat = step.stat;
	return 0;
}

/* What is at the path: as the log says, or, if it does not say enough or was wrong the last time, as it is seen. */
static int look(struct revisions *rv, struct ctx *ctx, const struct store_call *wanted, enum step step,
		struct look *ret, struct str *ret_was, struct err *err)
{
	bool known = step == STEP_TRUST && (look_inherited(rv, ctx, wanted->path, wanted->cond, ret, ret_was) ||
					    look_known(rv, ctx, wanted->path, wanted->cond, ret));

	if (known && wanted->op == STORE_OP_REMOVE) /* there must be something, and it may be a directory */
		known = ret->state.exists;
	return known ? 0 : look_at(rv, ctx, wanted->path, ret, err);
}

/* One try of a write or an append. `d` has op, path, after and data; the path is locked. */
static int change_once(struct revisions *rv, struct ctx *ctx, const struct store_call *wanted, struct rev_draft *d,
		       enum step *step, struct err *err)
{
	struct store_call call = *wanted;
	struct look l;
	int r = look(rv, ctx, wanted, *step, &l, &d->was, err);

	if (r == 0 && l.is_dir)
		return refuse_dir(wanted->path, wanted->cond, REFUSE_DIR, err);
	if (r == 0)
		r = check_cond(wanted->cond, &l, err);
	if (r == 0 && !l.state.exists && !rv->journal)
		r = look_refuse_below_file(rv, ctx, wanted->path, err);
	if (r)
		return r;
	if (d->op == REV_APPEND && l.state.exists) {
		l.state.where = REV_PREFIX;
		d->after =
			(struct rev_state){.exists = true, .where = REV_PREFIX, .size = l.state.size + d->piece.size};
	} else {
		r = look_hold(rv, ctx, wanted->path, &l, err);
	}
	d->before = l.state;
	d->base = l.base;
	if (r) {
		*step = STEP_LOOK; /* the bytes that were to be kept are not there */
		return r;
	}
	call.cond = cond_unchanged(&l);
	return log_and_apply(rv, ctx, &call, d, step, err);
}

/* Tries until no other writer was first, or one broke the caller's condition. */
static int change(struct revisions *rv, struct ctx *ctx, const struct store_call *wanted, const struct rev_draft *draft,
		  struct err *err)
{
	enum step step = STEP_TRUST;
	int r = 0;

	for (int tries = 0; tries < TRIES_MAX; tries++) {
		struct rev_draft d = *draft;

		revisions_lock_path(rv, wanted->path);
		r = change_once(rv, ctx, wanted, &d, &step, err);
		revisions_unlock_path(rv, wanted->path);
		if (!was_overtaken(r))
			return r;
		if (wanted->cond.kind == STORE_ABSENT && r == -ERR_EXISTS)
			return r;
		if (wanted->cond.kind == STORE_VERSION && tries)
			return r;
		if (wanted->source->pull &&
		    (!wanted->source->rewind || wanted->source->rewind(wanted->source->arg, err)))
			return r;
	}
	return r;
}

/* A source whose first bytes have been read already: those bytes, then the rest. */
struct ahead {
	struct str first;
	size_t at;
	const struct source *rest;
};

static int ahead_pull(void *arg, void *buf, size_t cap, size_t *ret_len, struct err *err)
{
	struct ahead *a = arg;
	size_t n = a->first.len - a->at;

	if (n == 0)
		return a->rest->pull(a->rest->arg, buf, cap, ret_len, err);
	if (n > cap)
		n = cap;
	memcpy(buf, a->first.ptr + a->at, n);
	a->at += n;
	*ret_len = n;
	return 0;
}

static void draft_inline(struct rev_draft *d, struct str bytes)
{
	d->data = bytes;
	d->after = (struct rev_state){.exists = true, .where = REV_LOG, .size = bytes.len};
	content_checksum(bytes, &d->after.hash);
}

/* Reads the beginning of a source, as much as decides where it goes. *ret is on the heap. */
static int read_first(const struct source *source, char **ret, size_t *ret_len, struct err *err)
{
	char *first = xmalloc(REV_INLINE_MAX + 1);
	size_t len = 0, n = 1;
	int r = 0;

	while (r == 0 && n && len <= REV_INLINE_MAX) {
		r = source->pull(source->arg, first + len, REV_INLINE_MAX + 1 - len, &n, err);
		len += r == 0 ? n : 0;
	}
	if (r) {
		free(first);
		return r;
	}
	*ret = first;
	*ret_len = len;
	return 0;
}

struct store_owner revisions_owner(const struct revisions *rv, struct store_owner owner)
{
	return rv->journal ? (struct store_owner){0} : owner;
}

void revisions_take_rights(const struct revisions *rv, struct rev_state *state, const struct store_stat *stat)
{
	state->mode = stat->mode;
	state->owner = revisions_owner(rv, stat->owner);
}

int revisions_take_source(struct revisions *rv, struct ctx *ctx, const struct source *source, struct rev_draft *d,
			  struct source *ret_source, struct err *err)
{
	struct ahead ahead = {.rest = source};
	struct source all = {.pull = ahead_pull, .arg = &ahead};
	bool apart = rv->apart && rv->apart(d->path);
	char *first;
	size_t len;
	int r;

	*ret_source = *source;
	if (!source->pull && source->bytes.len <= REV_INLINE_MAX && !apart) {
		draft_inline(d, source->bytes);
		return 0;
	}
	if (!source->pull)
		return content_keep_bytes(rv, ctx, source->bytes, &d->after, err);
	r = read_first(source, &first, &len, err);
	if (r)
		return r;
	if (len <= REV_INLINE_MAX) {
		*ret_source = (struct source){.bytes = arena_str(ctx->arena, str_n(first, len))};
		free(first);
		if (apart)
			return content_keep_bytes(rv, ctx, ret_source->bytes, &d->after, err);
		draft_inline(d, ret_source->bytes);
		return 0;
	}
	ahead.first = str_n(first, len);
	r = content_keep_stream(rv, ctx, &all, &d->after, err);
	free(first);
	return r ? r : content_source(rv, ctx, NULL, &d->after, ret_source, err);
}

/* A write or an append, from its source to its revision. */
static int put(struct store *s, struct ctx *ctx, struct store_call call, enum rev_op op, struct err *err)
{
	struct revisions *rv = revisions_of(s);
	REV_PINNED struct revisions *pin = revisions_pin(rv);
	struct rev_draft d = {.op = op, .path = call.path};
	struct source taken;
	int r;

	if (!revisions_records(call.path))
		return store_forward(s->inner, ctx, &call, err);
	r = revisions_ready(rv, ctx, err);
	if (r == 0)
		r = revisions_take_source(rv, ctx, call.source, &d, &taken, err);
	if (r)
		return r;
	if (op == REV_APPEND)
		d.piece = d.after; /* which is right as it is when the file does not exist yet */
	d.after.mode = taken.mode = call.source->mode;
	d.after.owner = taken.owner = revisions_owner(rv, call.source->owner);
	call.source = &taken;
	return change(rv, ctx, &call, &d, err);
}

static int revisions_write(struct store *s, struct ctx *ctx, struct wpath path, const struct source *source,
			   struct store_cond cond, struct store_stat *ret_stat, struct err *err)
{
	struct store_call call = {
		.op = STORE_OP_WRITE, .path = path, .source = source, .cond = cond, .ret_stat = ret_stat};

	return put(s, ctx, call, REV_WRITE, err);
}

static int revisions_append(struct store *s, struct ctx *ctx, struct wpath path, const struct source *source,
			    struct store_cond cond, struct store_stat *ret_stat, struct err *err)
{
	struct store_call call = {
		.op = STORE_OP_APPEND, .path = path, .source = source, .cond = cond, .ret_stat = ret_stat};

	return put(s, ctx, call, REV_APPEND, err);
}

/* --- removing --- */

/* One try of removing a file. With STEP_TREE nothing was done. */
static int remove_file(struct revisions *rv, struct ctx *ctx, struct store_call *wanted, enum step *step,
		       struct err *err)
{
	struct rev_draft d = {.op = REV_REMOVE, .path = wanted->path};
	struct store_stat unused = {0};
	struct store_call call = *wanted;
	struct look l;
	int r = look(rv, ctx, wanted, *step, &l, &d.was, err);

	if (r)
		return r;
	if (l.is_dir && wanted->recursive && wanted->cond.kind == STORE_ANY) {
		*step = STEP_TREE;
		return 0;
	}
	if (l.is_dir)
		return refuse_dir(wanted->path, wanted->cond, REFUSE_NOT_RECURSIVE, err);
	r = check_cond(wanted->cond, &l, err);
	if (r == 0 && !l.state.exists)
		return store_not_found(err);
	if (r == 0)
		r = look_hold(rv, ctx, wanted->path, &l, err);
	d.before = l.state;
	d.base = l.base;
	if (r) {
		*step = STEP_LOOK;
		return r;
	}
	call.cond = cond_unchanged(&l);
	call.ret_stat = &unused;
	*call.ret_count = 1; /* even if a helper removes it for us */
	return log_and_apply(rv, ctx, &call, &d, step, err);
}

static int revisions_remove(struct store *s, struct ctx *ctx, struct wpath path, bool recursive, struct store_cond cond,
			    uint64_t *ret_count, struct err *err)
{
	struct revisions *rv = revisions_of(s);
	REV_PINNED struct revisions *pin = revisions_pin(rv);
	struct store_call call = {
		.op = STORE_OP_REMOVE, .path = path, .recursive = recursive, .cond = cond, .ret_count = ret_count};
	enum step step = STEP_TRUST;
	bool again = true;
	int r;

	if (!revisions_records(path))
		return store_forward(s->inner, ctx, &call, err);
	r = revisions_ready(rv, ctx, err);
	if (r)
		return r;
	if (wpath_is_root(path) && recursive && cond.kind == STORE_ANY)
		return tree_remove(rv, ctx, path, ret_count, err);
	for (int tries = 0; again && tries < TRIES_MAX; tries++) {
		bool was_trusted = tries == 0 && rv->journal;

		revisions_lock_path(rv, path);
		r = remove_file(rv, ctx, &call, &step, err);
		revisions_unlock_path(rv, path);
		/* The log said that the file exists, and the store does not have it: the next try looks. */
		again = (r == -ERR_CONFLICT && (cond.kind == STORE_ANY || tries == 0)) ||
			(r == -ERR_NOT_FOUND && was_trusted && step == STEP_LOOK);
	}
	return step == STEP_TREE ? tree_remove(rv, ctx, path, ret_count, err) : r;
}

/* All other operations only read, or are refused. */
static int revisions_around(struct store *s, struct ctx *ctx, struct store_call *call, struct err *err)
{
	bool is_journal = call->op == STORE_OP_JOURNAL_ADD || call->op == STORE_OP_JOURNAL_CUT;

	if (store_op_info[call->op].reads_only ||
	    (is_journal && !revisions_records(call->path) && wpath_is_root(call->to)))
		return store_forward(s->inner, ctx, call, err);
	return err_set(err, ERR_UNSUPPORTED, "the revisions layer does not know how to record this operation");
}

static void revisions_destroy(struct store *s)
{
	struct revisions *rv = revisions_of(s);
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};
	struct err ignored;

	if (rv->log) {
		if (revlog_flush(rv->log, &ctx, &ignored) == 0)
			recover_mark_clean(rv, &ctx);
		revlog_close(rv->log, &ctx);
	}
	store_destroy(rv->meta);
	store_destroy(rv->scratch);
	free((char *)rv->boot_id.ptr);
	free((char *)rv->log_path.s.ptr);
	pthread_rwlock_destroy(&rv->tree);
	pthread_rwlock_destroy(&rv->pins);
	pthread_mutex_destroy(&rv->opening);
	for (size_t i = 0; i < REV_STRIPES; i++)
		pthread_mutex_destroy(&rv->stripes[i]);
	free(rv);
}

static const struct store_ops revisions_ops = {
	.name = "revisions",
	.cannot = STORE_ONE_STEP | STORE_GROUP_STEP | STORE_WRITE_STEP | STORE_OVER_PAST,
	.write = revisions_write,
	.append = revisions_append,
	.remove = revisions_remove,
	.move = revisions_move,
	.copy = revisions_copy,
	.group = revisions_group,
	.around = revisions_around,
	.destroy = revisions_destroy,
};

int store_revisions_open(struct store *inner, struct store *meta, struct revisions_opts opts, struct ctx *ctx,
			 struct store **ret_store, struct err *err)
{
	struct revisions *rv = xcalloc(1, sizeof(*rv));
	int r = 0;

	rv->base = (struct store){.ops = &revisions_ops, .inner = inner};
	rv->meta = meta;
	rv->scratch = opts.scratch;
	rv->log_syncs = opts.log_syncs;
	rv->boot_id = str_n(xstrndup(opts.boot_id), opts.journal ? 0 : opts.boot_id.len);
	rv->journal = opts.journal;
	rv->apart = opts.apart;
	if (opts.journal) {
		bool within = !wpath_is_root(opts.own);

		rv->log_at = within ? inner : meta;
		rv->log_path.s =
			within ? arena_printf(ctx->arena, "%.*s/journal", STR_ARG(opts.own.s)) : STR("journal");
		rv->log_path.s = str_n(xstrndup(rv->log_path.s), rv->log_path.s.len);
	}
	pthread_rwlock_init(&rv->tree, NULL);
	pthread_rwlock_init(&rv->pins, NULL);
	pthread_mutex_init(&rv->opening, NULL);
	for (size_t i = 0; i < REV_STRIPES; i++)
		pthread_mutex_init(&rv->stripes[i], NULL);
	if (!recover_is_clean(rv, ctx))
		r = revisions_ready(rv, ctx, err);
	if (r) {
		rv->meta = rv->scratch = NULL; /* they stay the caller's */
		revisions_destroy(&rv->base);
		return r;
	}
	*ret_store = &rv->base;
	return 0;
}
