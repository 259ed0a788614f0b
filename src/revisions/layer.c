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
 * starts again with a look, or is refused if the caller's own condition no longer holds.
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
 * A move is a group of records, two per file: one path is gone, the other is there. The whole group is logged at once,
 * and if a helper has made one of its records, the others are completed too.
 *
 * Reads, lists and scans pass through untouched.
 */
#include "revisions/layer.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/strmap.h"
#include "store/list_stream.h"

#define TRIES_MAX    1000
#define ONE_STEP_MAX (1 * MIB) /* larger contents are written to the store on their own */
#define BATCH_MAX    512
#define OWN_PREFIX   STR(".stead")

static const struct store_ops revisions_ops;

struct revisions *revisions_of(struct store *s)
{
	return (struct revisions *)s;
}

/* Stead's own data is not part of the history. */
static bool is_recorded(struct wpath path)
{
	return !wpath_within(path, (struct wpath){OWN_PREFIX});
}

/* --- locks --- */

static pthread_mutex_t *stripe_of(struct revisions *rv, struct wpath path)
{
	return &rv->stripes[hash_u64(path.s, 1) % REV_STRIPES];
}

static void lock_path(struct revisions *rv, struct wpath path)
{
	pthread_rwlock_rdlock(&rv->tree);
	pthread_mutex_lock(stripe_of(rv, path));
}

static void unlock_path(struct revisions *rv, struct wpath path)
{
	pthread_mutex_unlock(stripe_of(rv, path));
	pthread_rwlock_unlock(&rv->tree);
}

/* --- looking at a path --- */

/* How a try of a change learns what its path is. Each try leaves here what the next one has to do. */
enum step {
	STEP_TRUST, /* believe the log's newest record of the path, where look_known() can */
	STEP_LOOK,  /* look at the path: it was not what the last try took it for */
	STEP_TREE,  /* removing only: the path is a directory, which remove_tree() removes */
};

/* What is known of a path before a change. */
struct look {
	uint64_t base;          /* its newest record; 0: none */
	uint64_t first;         /* the oldest revision that was kept then */
	struct rev_state state; /* now; `where` says whether and where its bytes are kept */
	bool is_dir;
};

static bool same_as(const struct rev_record *rec, const struct store_stat *stat, bool exists)
{
	if (rec->r.after.exists != exists)
		return false;
	return !exists || str_eq(rec->r.after.version, stat->version);
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

/* Records what another program has changed since `rec`. */
static int record_outside(struct revisions *rv, struct ctx *ctx, struct wpath path, struct rev_record *rec, bool exists,
			  struct err *err)
{
	struct rev_draft d = {.op = REV_OUTSIDE, .path = path, .base = rec->r.number, .before = state_after(rec)};
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
	r = revlog_append(rv->log, &nobody, &d, 1, err);
	if (r == 0)
		revlog_done(rv->log, d.record, d.after.version);
	return r;
}

/* A directory that another program emptied may still exist on the host. To a store it does not exist, and its path may
   become a file. */
static bool is_empty_dir(struct revisions *rv, struct ctx *ctx, struct wpath path)
{
	struct store_list_req req = {.recursive = true, .limit = 1};
	struct store_page page;
	struct store_call list = {.op = STORE_OP_LIST, .path = path, .list = &req, .ret_page = &page};
	struct err ignored;

	return store_forward(rv->base.inner, ctx, &list, &ignored) == 0 && page.count == 0;
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
	if (exists && stat.kind == STORE_DIR && is_empty_dir(rv, ctx, path))
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
		ret->state.mode = stat.mode;
	revlog_unlock(rv->log);
	ret->base = rec ? rec->r.number : 0;
	if (r || ret->is_dir || is_same)
		return r;
	if (rec) {
		r = is_done ? record_outside(rv, ctx, path, rec, exists, err) : recover_record(rv, ctx, rec, err);
		*ret_again = r == 0;
		return r;
	}
	if (exists)
		ret->state = (struct rev_state){
			.exists = true, .size = stat.size, .version = stat.version, .mode = stat.mode};
	return 0;
}

/* What the log says about a path, without a look. False: it does not say enough, or it does not meet the caller's
   condition; then the path must be looked at. */
static bool look_known(struct revisions *rv, struct ctx *ctx, struct wpath path, struct store_cond cond,
		       struct look *ret)
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

static int look(struct revisions *rv, struct ctx *ctx, struct wpath path, struct look *ret, struct err *err)
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
	return again ? err_set(err, ERR_CONFLICT, ERR_PATH " changed each time it was looked at", STR_ARG(path.s)) : r;
}

/* Makes sure that the present bytes of the path are kept, because they are about to be replaced. */
static int hold(struct revisions *rv, struct ctx *ctx, struct wpath path, struct look *l, struct err *err)
{
	struct str version = l->state.version;
	int r;

	if (!l->state.exists || l->state.where == REV_LOG || l->state.where == REV_BLOB)
		return 0;
	r = content_keep_file(rv, ctx, path, &l->state, err);
	if (r == 0 && !str_eq(l->state.version, version))
		return err_set(err, ERR_CONFLICT, ERR_PATH " changed while its content was being kept",
			       STR_ARG(path.s));
	return r;
}

/* --- refusing --- */

/* What cannot be done is refused here, with the sentences that all stores use. It is not left to the store below: there
   it could be possible by now, and would be made without a record. */

static int refuse_missing(struct err *err)
{
	return err_set(err, ERR_NOT_FOUND, "there is no such file or directory; list its parent to see what is there");
}

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

static bool ends_call(int r)
{
	return r == -ERR_CANCELLED || r == -ERR_TIMEOUT;
}

static void flush_abort(struct revisions *rv, struct ctx *ctx)
{
	struct err ignored;

	revlog_flush(rv->log, ctx, &ignored);
}

/* Makes the change in the store below. When that fails because a helper has completed our record before us, the change
   is there, and that is success. Otherwise the record is aborted, and the abort is written at once: until then another
   process might make the change. */
static int apply(struct revisions *rv, struct ctx *ctx, struct store_call *call, struct rev_record *rec,
		 struct err *err)
{
	pthread_mutex_t *dir = &rv->dirs[hash_u64(wpath_parent(call->path).s, 1) % REV_STRIPES];
	int r;

	pthread_mutex_lock(dir);
	r = store_forward(rv->base.inner, ctx, call, err);
	pthread_mutex_unlock(dir);
	if (r == 0) {
		revlog_done(rv->log, rec, rec->r.after.exists ? call->ret_stat->version : STR_NONE);
		return 0;
	}
	if (!ends_call(r) && recover_took_effect(rv, ctx, rec, r == -ERR_EXISTS, call->ret_stat))
		return 0;
	revlog_abort(rv->log, rec);
	flush_abort(rv, ctx);
	return r;
}

/* Logs the draft of `call` and makes the change, in one request if the store can. *ret_step is STEP_LOOK when the file
   was not what it was taken for. */
static int log_and_apply(struct revisions *rv, struct ctx *ctx, struct store_call *call, struct rev_draft *d,
			 enum step *ret_step, struct err *err)
{
	static const enum journal_change changes[STORE_OPS] = {[STORE_OP_WRITE] = JOURNAL_WRITE,
							       [STORE_OP_APPEND] = JOURNAL_APPEND,
							       [STORE_OP_REMOVE] = JOURNAL_REMOVE};
	struct rev_step step = {.change = changes[call->op], .cond = call->cond, .version = STR("")};
	bool one = rv->journal && rv->log_at == rv->base.inner &&
		   (!call->source || (!call->source->pull && call->source->bytes.len <= ONE_STEP_MAX));
	int r;

	if (one && call->source) {
		step.content = call->source->bytes;
		step.version = arena_printf(ctx->arena, "%016llx", (unsigned long long)random_u64());
	}
	r = one ? revlog_append_step(rv->log, ctx, d, &step, err) : revlog_append(rv->log, ctx, d, 1, err);
	*ret_step = step.refused ? STEP_LOOK : STEP_TRUST;
	if (r)
		return r;
	if (!step.made) {
		r = apply(rv, ctx, call, d->record, err);
		*ret_step = r ? STEP_LOOK : STEP_TRUST;
		return r;
	}
	*call->ret_stat = step.stat;
	return 0;
}

/* One try of a write or an append. `d` has op, path, after and data; the path is locked. */
static int change_once(struct revisions *rv, struct ctx *ctx, const struct store_call *wanted, struct rev_draft *d,
		       enum step *step, struct err *err)
{
	struct store_call call = *wanted;
	struct look l;
	int r = 0;

	if (*step != STEP_TRUST || !look_known(rv, ctx, wanted->path, wanted->cond, &l))
		r = look(rv, ctx, wanted->path, &l, err);
	if (r == 0 && l.is_dir)
		return refuse_dir(wanted->path, wanted->cond, REFUSE_DIR, err);
	if (r == 0)
		r = check_cond(wanted->cond, &l, err);
	if (r)
		return r;
	if (d->op == REV_APPEND && l.state.exists) {
		l.state.where = REV_PREFIX;
		d->after =
			(struct rev_state){.exists = true, .where = REV_PREFIX, .size = l.state.size + d->piece.size};
	} else {
		r = hold(rv, ctx, wanted->path, &l, err);
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

		lock_path(rv, wanted->path);
		r = change_once(rv, ctx, wanted, &d, &step, err);
		unlock_path(rv, wanted->path);
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

/* Reads a small source into memory, for the record itself. A larger one becomes a blob, which is then the source. */
static int take_source(struct revisions *rv, struct ctx *ctx, const struct source *source, struct rev_draft *d,
		       struct source *ret_source, struct err *err)
{
	struct ahead ahead = {.rest = source};
	struct source all = {.pull = ahead_pull, .arg = &ahead};
	bool apart = rv->apart && rv->apart(d->path);
	char *first;
	size_t len = 0, n = 1;
	int r;

	*ret_source = *source;
	if (!source->pull && source->bytes.len <= REV_INLINE_MAX && !apart) {
		draft_inline(d, source->bytes);
		return 0;
	}
	if (!source->pull)
		return content_keep_bytes(rv, ctx, source->bytes, &d->after, err);
	first = arena_alloc_raw(ctx->arena, REV_INLINE_MAX + 1);
	while (n && len <= REV_INLINE_MAX) {
		r = source->pull(source->arg, first + len, REV_INLINE_MAX + 1 - len, &n, err);
		if (r)
			return r;
		len += n;
	}
	if (len <= REV_INLINE_MAX) {
		*ret_source = (struct source){.bytes = str_n(first, len)};
		if (apart)
			return content_keep_bytes(rv, ctx, ret_source->bytes, &d->after, err);
		draft_inline(d, ret_source->bytes);
		return 0;
	}
	ahead.first = str_n(first, len);
	r = content_keep_stream(rv, ctx, &all, &d->after, err);
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

	if (!is_recorded(call.path))
		return store_forward(s->inner, ctx, &call, err);
	r = revisions_ready(rv, ctx, err);
	if (r == 0)
		r = take_source(rv, ctx, call.source, &d, &taken, err);
	if (r)
		return r;
	if (op == REV_APPEND)
		d.piece = d.after; /* which is right as it is when the file does not exist yet */
	d.after.mode = taken.mode = call.source->mode;
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
	int r = 0;

	if (*step != STEP_TRUST || !look_known(rv, ctx, wanted->path, wanted->cond, &l) || !l.state.exists)
		r = look(rv, ctx, wanted->path, &l, err);
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
		return refuse_missing(err);
	if (r == 0)
		r = hold(rv, ctx, wanted->path, &l, err);
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

/* Logs a batch of removals and makes them. The tree is held alone. */
static int remove_batch(struct revisions *rv, struct ctx *ctx, const struct store_entry *entries, size_t count,
			uint64_t *ret_count, struct err *err)
{
	struct rev_draft *drafts = ARENA_ARRAY(ctx->arena, struct rev_draft, count);
	size_t n = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++) {
		struct look l;

		if (!is_recorded(entries[i].path))
			continue;
		r = look(rv, ctx, entries[i].path, &l, err);
		if (r || !l.state.exists)
			continue;
		r = hold(rv, ctx, entries[i].path, &l, err);
		drafts[n++] = (struct rev_draft){
			.op = REV_REMOVE, .path = entries[i].path, .before = l.state, .base = l.base};
	}
	if (r == 0 && n)
		r = revlog_append(rv->log, ctx, drafts, n, err);
	for (size_t i = 0; r == 0 && i < n; i++) {
		struct store_stat unused = {0};
		uint64_t one = 1;
		struct store_call call = {.op = STORE_OP_REMOVE,
					  .path = drafts[i].path,
					  .cond = {.kind = STORE_VERSION, .version = drafts[i].before.version},
					  .ret_stat = &unused,
					  .ret_count = &one};

		r = apply(rv, ctx, &call, drafts[i].record, err);
		*ret_count += r ? 0 : one;
		for (size_t j = i + 1; r && j < n; j++) /* logged, and not going to be made */
			revlog_abort(rv->log, drafts[j].record);
	}
	if (r && n)
		flush_abort(rv, ctx);
	return r;
}

static int remove_tree(struct revisions *rv, struct ctx *ctx, struct wpath path, uint64_t *ret_count, struct err *err)
{
	LIST_PAGES_SCOPE struct list_pages pages = {.store = rv->base.inner,
						    .dir = path,
						    .req = {.recursive = true, .limit = BATCH_MAX},
						    .is_layer = true,
						    .ctx = *ctx};
	int r;

	*ret_count = 0;
	pthread_rwlock_wrlock(&rv->tree);
	while ((r = list_pages_next(&pages, err)) > 0) { /* after the last batch the directory is gone */
		int tries = 0;

		do
			r = remove_batch(rv, &pages.ctx, pages.page.entries, pages.page.count, ret_count, err);
		while (r == -ERR_CONFLICT && tries++ < TRIES_MAX); /* another writer was first */
		if (r)
			break;
	}
	pthread_rwlock_unlock(&rv->tree);
	return r;
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

	if (!is_recorded(path))
		return store_forward(s->inner, ctx, &call, err);
	r = revisions_ready(rv, ctx, err);
	if (r)
		return r;
	if (wpath_is_root(path) && recursive && cond.kind == STORE_ANY)
		return remove_tree(rv, ctx, path, ret_count, err);
	for (int tries = 0; again && tries < TRIES_MAX; tries++) {
		bool was_trusted = tries == 0 && rv->journal;

		lock_path(rv, path);
		r = remove_file(rv, ctx, &call, &step, err);
		unlock_path(rv, path);
		/* The log said that the file exists, and the store does not have it: the next try looks. */
		again = (r == -ERR_CONFLICT && (cond.kind == STORE_ANY || tries == 0)) ||
			(r == -ERR_NOT_FOUND && was_trusted && step == STEP_LOOK);
	}
	return step == STEP_TREE ? remove_tree(rv, ctx, path, ret_count, err) : r;
}

/* --- moving and copying --- */

/* The two drafts for one moved file: `from` is gone, `to` is there. */
static int draft_move(struct revisions *rv, struct ctx *ctx, struct wpath from, struct wpath to,
		      struct rev_draft two[2], struct look *ret_from, struct err *err)
{
	struct look target;
	int r = look(rv, ctx, from, ret_from, err);

	if (r == 0)
		r = look(rv, ctx, to, &target, err);
	if (r == 0)
		r = hold(rv, ctx, from, ret_from, err);
	if (r == 0 && !target.is_dir)
		r = hold(rv, ctx, to, &target, err);
	if (r)
		return r;
	two[0] = (struct rev_draft){
		.op = REV_MOVE, .path = from, .other = to.s, .before = ret_from->state, .base = ret_from->base};
	two[1] = (struct rev_draft){
		.op = REV_MOVE, .path = to, .other = from.s, .before = target.state, .base = target.base};
	two[0].first_seen = two[1].first_seen = ret_from->first;
	two[1].after = ret_from->state;
	two[1].after.version = STR_NONE;
	return 0;
}

/* Notes that one record of a move or copy is done. If its path is not what the move left, another process has changed
   it since, and the record is recovered. */
static int end_move(struct revisions *rv, struct ctx *ctx, struct rev_draft *d, struct err *err)
{
	struct store_stat stat;
	struct store_call get = {.op = STORE_OP_STAT, .path = d->path, .ret_stat = &stat};
	struct err ignored;
	int r = store_forward(rv->base.inner, ctx, &get, &ignored);

	if (r == -ERR_NOT_FOUND && !d->after.exists)
		revlog_done(rv->log, d->record, STR_NONE);
	else if (r == 0 && d->after.exists && stat.kind == STORE_FILE && stat.size == d->after.size)
		revlog_done(rv->log, d->record, stat.version);
	else
		return recover_record(rv, ctx, d->record, err);
	return 0;
}

/* Ends the records of a move or copy whose result is `result`, and returns the final result. A failed move counts as
   made when a helper has completed one of its records: then the others are completed too. */
static int end_moves(struct revisions *rv, struct ctx *ctx, struct rev_draft *drafts, size_t count, int result,
		     struct store_stat *ret_stat, struct err *err)
{
	bool moved = result == 0;

	for (size_t i = 0; i < count && !moved && !ends_call(result); i++) {
		struct store_stat stat;

		moved = recover_took_effect(rv, ctx, drafts[i].record, false, &stat);
		if (moved)
			*ret_stat = stat;
	}
	for (size_t i = 0; i < count; i++) {
		if (!moved) {
			revlog_abort(rv->log, drafts[i].record);
		} else if (end_move(rv, ctx, &drafts[i], err)) {
			flush_abort(rv, ctx);
			return -(int)err->kind;
		}
	}
	if (!moved)
		flush_abort(rv, ctx);
	return moved ? 0 : result;
}

/* Refuses a path that cannot exist because one of its parents is a file, before the change is logged: no other process
   may find a record that can never be made. */
static int refuse_below_file(struct revisions *rv, struct ctx *ctx, struct wpath path, struct err *err)
{
	for (path = wpath_parent(path); !wpath_is_root(path); path = wpath_parent(path)) {
		struct store_stat stat;
		struct store_call get = {.op = STORE_OP_STAT, .path = path, .ret_stat = &stat};
		struct err ignored;

		if (store_forward(rv->base.inner, ctx, &get, &ignored) == 0)
			return stat.kind == STORE_FILE ? store_refuse(REFUSE_BELOW_FILE, path.s, err) : 0;
	}
	return 0;
}

/* What a move or copy of one file needs, besides its conditions. */
static int check_ends(struct revisions *rv, struct ctx *ctx, const struct store_call *wanted, const struct look *from,
		      const struct look *to, struct err *err)
{
	if (from->is_dir)
		return store_refuse(REFUSE_DIR, wanted->path.s, err);
	if (!from->state.exists)
		return refuse_missing(err);
	if (to->is_dir)
		return store_refuse(REFUSE_DIR, wanted->to.s, err);
	return refuse_below_file(rv, ctx, wanted->to, err);
}

static int move_file(struct revisions *rv, struct ctx *ctx, struct store_call *wanted, struct err *err)
{
	struct store_call call = *wanted;
	struct rev_draft two[2];
	struct look from, to;
	int r = draft_move(rv, ctx, wanted->path, wanted->to, two, &from, err);

	if (r)
		return r;
	r = look(rv, ctx, wanted->to, &to, err);
	if (r == 0 && !to.is_dir)
		r = check_cond(wanted->to_cond, &to, err);
	if (r == 0)
		r = check_cond(wanted->cond, &from, err);
	if (r == 0)
		r = check_ends(rv, ctx, wanted, &from, &to, err);
	if (r == 0)
		r = revlog_append(rv->log, ctx, two, 2, err);
	if (r)
		return r;
	call.cond = cond_unchanged(&from);
	call.to_cond = (struct store_cond){.kind = to.state.exists ? STORE_ANY : STORE_ABSENT};
	r = store_forward(rv->base.inner, ctx, &call, err);
	return end_moves(rv, ctx, two, 2, r, wanted->ret_stat, err);
}

/* All files below a directory, as move drafts. */
static int draft_tree(struct revisions *rv, struct ctx *ctx, struct wpath from, struct wpath to,
		      struct rev_draft **ret_drafts, size_t *ret_count, struct err *err)
{
	struct store_list_req req = {.recursive = true, .limit = BATCH_MAX};
	struct store_page page;
	struct store_call list = {.op = STORE_OP_LIST, .path = from, .list = &req, .ret_page = &page};
	struct rev_draft *drafts = NULL;
	size_t count = 0, cap = 0;
	int r;

	do {
		r = store_forward(rv->base.inner, ctx, &list, err);
		for (size_t i = 0; r == 0 && i < page.count; i++) {
			struct wpath target;
			struct look unused;

			if (count + 2 > cap) {
				size_t more = cap ? cap * 2 : 64;

				drafts = arena_grow(ctx->arena, drafts, cap * sizeof(*drafts), more * sizeof(*drafts));
				cap = more;
			}
			r = wpath_join(ctx->arena, to, wpath_relative(page.entries[i].path, from), &target, err);
			if (r == 0)
				r = draft_move(rv, ctx, page.entries[i].path, target, drafts + count, &unused, err);
			count += 2;
		}
		req.after = page.next;
	} while (r == 0 && page.next.ptr);
	*ret_drafts = drafts;
	*ret_count = count;
	return r;
}

/* A directory replaces nothing. On disk an empty directory may be there, and counts as nothing. */
static int refuse_taken(struct revisions *rv, struct ctx *ctx, const struct store_call *wanted, struct err *err)
{
	struct store_stat stat;
	struct store_call get = {.op = STORE_OP_STAT, .path = wanted->to, .ret_stat = &stat};
	struct err ignored;

	if (store_forward(rv->base.inner, ctx, &get, &ignored) != 0)
		return refuse_below_file(rv, ctx, wanted->to, err);
	if (stat.kind == STORE_DIR)
		return is_empty_dir(rv, ctx, wanted->to) ? 0 : store_refuse(REFUSE_DIR, wanted->to.s, err);
	if (wanted->to_cond.kind != STORE_ANY && store_cond_check(wanted->to_cond, true, stat.version, err))
		return -(int)err->kind;
	return store_refuse(REFUSE_FILE_TARGET, wanted->to.s, err);
}

static int move_tree(struct revisions *rv, struct ctx *ctx, struct store_call *wanted, struct err *err)
{
	struct store_call call = *wanted;
	struct rev_draft *drafts;
	size_t count;
	int r = draft_tree(rv, ctx, wanted->path, wanted->to, &drafts, &count, err);

	if (r == 0)
		r = refuse_taken(rv, ctx, wanted, err);
	if (r == 0)
		r = revlog_append(rv->log, ctx, drafts, count, err);
	if (r)
		return r;
	r = store_forward(rv->base.inner, ctx, &call, err);
	return end_moves(rv, ctx, drafts, count, r, wanted->ret_stat, err);
}

static int revisions_move(struct store *s, struct ctx *ctx, struct wpath from, struct wpath to, struct store_cond cond,
			  struct store_cond to_cond, struct store_stat *ret_stat, struct err *err)
{
	struct revisions *rv = revisions_of(s);
	REV_PINNED struct revisions *pin = revisions_pin(rv);
	struct store_call call = {
		.op = STORE_OP_MOVE, .path = from, .to = to, .cond = cond, .to_cond = to_cond, .ret_stat = ret_stat};
	bool is_conditional = cond.kind != STORE_ANY || to_cond.kind == STORE_VERSION, again = true;
	int r;

	if (!is_recorded(from) || !is_recorded(to))
		return store_forward(s->inner, ctx, &call, err);
	r = revisions_ready(rv, ctx, err);
	if (r)
		return r;
	for (int tries = 0; again && tries < TRIES_MAX; tries++) {
		struct store_stat stat;
		struct store_call get = {.op = STORE_OP_STAT, .path = from, .ret_stat = &stat};

		pthread_rwlock_wrlock(&rv->tree);
		r = store_forward(s->inner, ctx, &get, err);
		if (r == 0 && (stat.kind != STORE_DIR || cond.kind == STORE_ANY))
			r = stat.kind == STORE_DIR ? move_tree(rv, ctx, &call, err) : move_file(rv, ctx, &call, err);
		else if (r == 0)
			r = refuse_dir(from, cond, REFUSE_DIR, err);
		else if (r == -ERR_NOT_FOUND && store_cond_check(cond, false, STR_NONE, err))
			r = -(int)err->kind; /* the version that is wanted is gone */
		else if (r == -ERR_NOT_FOUND)
			r = refuse_missing(err);
		pthread_rwlock_unlock(&rv->tree);
		again = r == -ERR_CONFLICT && (tries == 0 || !is_conditional);
	}
	return r;
}

static int copy_once(struct revisions *rv, struct ctx *ctx, struct store_call *wanted, struct err *err)
{
	struct rev_draft two[2];
	struct store_call call = *wanted;
	struct look from, to;
	int r = draft_move(rv, ctx, wanted->path, wanted->to, two, &from, err);

	if (r == 0)
		r = look(rv, ctx, wanted->to, &to, err);
	if (r == 0 && !to.is_dir)
		r = check_cond(wanted->to_cond, &to, err);
	if (r == 0)
		r = check_ends(rv, ctx, wanted, &from, &to, err);
	if (r)
		return r;
	two[1].op = REV_COPY;
	r = revlog_append(rv->log, ctx, &two[1], 1, err);
	if (r)
		return r;
	call.to_cond = cond_unchanged(&to);
	r = store_forward(rv->base.inner, ctx, &call, err);
	return end_moves(rv, ctx, &two[1], 1, r, wanted->ret_stat, err);
}

static int revisions_copy(struct store *s, struct ctx *ctx, struct wpath from, struct wpath to,
			  struct store_cond to_cond, struct store_stat *ret_stat, struct err *err)
{
	struct revisions *rv = revisions_of(s);
	REV_PINNED struct revisions *pin = revisions_pin(rv);
	struct store_call call = {
		.op = STORE_OP_COPY, .path = from, .to = to, .to_cond = to_cond, .ret_stat = ret_stat};
	bool again = true;
	int r;

	if (!is_recorded(to))
		return store_forward(s->inner, ctx, &call, err);
	r = revisions_ready(rv, ctx, err);
	if (r)
		return r;
	for (int tries = 0; again && tries < TRIES_MAX; tries++) {
		pthread_rwlock_wrlock(&rv->tree);
		r = copy_once(rv, ctx, &call, err);
		pthread_rwlock_unlock(&rv->tree);
		again = r == -ERR_CONFLICT && (tries == 0 || to_cond.kind == STORE_ANY);
	}
	return r;
}

/* --- noticing --- */

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

	lock_path(rv, path);
	r = last_number(rv, ctx, path, &before, err);
	if (r == 0 && before)
		r = look(rv, ctx, path, &l, err);
	if (r == 0)
		r = last_number(rv, ctx, path, &after, err);
	unlock_path(rv, path);
	*count += r == 0 && before != after;
	return r;
}

/* Each path once, at its newest record: that is where its state is. */
int revisions_notice(struct store *revisions, struct ctx *ctx, struct wpath path, uint64_t *ret_count, struct err *err)
{
	struct revisions *rv = revisions_of(revisions);
	uint64_t head, first;
	int r = revisions_head(revisions, ctx, &head, err);

	*ret_count = 0;
	if (r)
		return r;
	revlog_lock(rv->log);
	first = revlog_first(rv->log);
	revlog_unlock(rv->log);
	for (uint64_t n = head; r == 0 && n >= first && n > 0; n--) {
		REV_PINNED struct revisions *pin = revisions_pin(rv);
		ARENA_SCOPE struct arena *arena = arena_new();
		struct ctx c = *ctx;
		struct rev_record rec, *last = NULL;
		bool has;

		c.arena = arena;
		revlog_lock(rv->log);
		r = revlog_get(rv->log, &c, n, &rec, &has, err);
		if (r == 0 && has && !rec.r.aborted && wpath_within(rec.r.path, path))
			r = revlog_last(rv->log, &c, rec.r.path, &last, err);
		revlog_unlock(rv->log);
		if (r == -ERR_CORRUPT)
			r = 0; /* its path is not known */
		else if (r == 0 && last && last->r.number == n)
			r = notice_one(rv, &c, rec.r.path, ret_count, err);
		if (r == 0)
			r = ctx_check(ctx, err);
	}
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
	lock_path(rv, path);
	if (existed && before.ptr)
		r = content_keep_bytes(rv, ctx, before, &d.before, err);
	if (r == 0)
		r = content_keep_file(rv, ctx, path, &d.after, err);
	if (r == 0)
		r = revlog_append(rv->log, &nobody, &d, 1, err);
	if (r == 0)
		revlog_done(rv->log, d.record, d.after.version);
	unlock_path(rv, path);
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

/* All other operations only read, or are refused. */
static int revisions_around(struct store *s, struct ctx *ctx, struct store_call *call, struct err *err)
{
	bool is_journal = call->op == STORE_OP_JOURNAL_ADD || call->op == STORE_OP_JOURNAL_CUT;

	if (store_op_info[call->op].reads_only || (is_journal && !is_recorded(call->path) && wpath_is_root(call->to)))
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
	for (size_t i = 0; i < REV_STRIPES; i++) {
		pthread_mutex_destroy(&rv->stripes[i]);
		pthread_mutex_destroy(&rv->dirs[i]);
	}
	free(rv);
}

static const struct store_ops revisions_ops = {
	.name = "revisions",
	.cannot = STORE_ONE_STEP,
	.write = revisions_write,
	.append = revisions_append,
	.remove = revisions_remove,
	.move = revisions_move,
	.copy = revisions_copy,
	.around = revisions_around,
	.destroy = revisions_destroy,
};

struct revisions *revisions_pin(struct revisions *rv)
{
	pthread_rwlock_rdlock(&rv->pins);
	return rv;
}

static bool has_records(struct revisions *rv)
{
	uint64_t head;

	revlog_lock(rv->log);
	head = revlog_head(rv->log);
	revlog_unlock(rv->log);
	return head > 0;
}

void revisions_unpin(struct revisions **pinned)
{
	struct revisions *rv = *pinned;
	bool opened = atomic_load_explicit(&rv->opened, memory_order_acquire);

	if (opened && rv->boot_due && has_records(rv) && atomic_exchange(&rv->boot_due, false)) {
		ARENA_SCOPE struct arena *arena = arena_new();
		struct ctx ctx = {.arena = arena};

		recover_note_boot(rv, &ctx);
	}
	pthread_rwlock_unlock(&rv->pins);
	if (!opened || !revlog_is_large(rv->log))
		return;
	if (pthread_rwlock_trywrlock(&rv->pins) == 0) {
		ARENA_SCOPE struct arena *arena = arena_new();
		struct ctx ctx = {.arena = arena};

		revlog_trim(rv->log, &ctx);
		pthread_rwlock_unlock(&rv->pins);
	}
}

int revisions_ready(struct revisions *rv, struct ctx *ctx, struct err *err)
{
	int r = 0;

	if (atomic_load_explicit(&rv->opened, memory_order_acquire))
		return 0;
	pthread_mutex_lock(&rv->opening);
	if (!rv->opened) {
		bool booted = recover_booted(rv, ctx);
		struct revlog_place place = {.meta = rv->meta,
					     .runs = rv->journal ? rv->meta : rv->scratch,
					     .at = rv->log_at,
					     .journal = rv->log_path,
					     .booted = booted};

		r = revlog_open(&place, ctx, &rv->log, err);
		if (r == 0)
			r = recover_all(rv, ctx, booted, err);
		if (r && rv->log) {
			revlog_close(rv->log, NULL);
			rv->log = NULL;
		}
		atomic_store_explicit(&rv->opened, r == 0, memory_order_release);
	}
	pthread_mutex_unlock(&rv->opening);
	return r;
}

uint64_t revisions_kept_bytes(struct store *revisions)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct revisions *rv = revisions_of(revisions);
	struct ctx ctx = {.arena = arena};
	struct err ignored;
	uint64_t log_bytes;
	bool recount;

	if (revisions_ready(rv, &ctx, &ignored))
		return 0;
	if (clock_monotonic_ns() - rv->counted_ns > NS_PER_S) { /* another process may have freed some */
		rv->counted_ns = clock_monotonic_ns();
		revlog_refresh(rv->log, &ctx, &ignored);
	}
	log_bytes = revlog_bytes(rv->log, &recount);
	if (recount || !rv->blobs_counted)
		content_count(rv, &ctx, &ignored);
	return log_bytes + rv->blob_bytes;
}

int store_revisions_open(struct store *inner, struct store *meta, struct revisions_opts opts, struct ctx *ctx,
			 struct store **ret_store, struct err *err)
{
	struct revisions *rv = xcalloc(1, sizeof(*rv));
	int r = 0;

	rv->base = (struct store){.ops = &revisions_ops, .inner = inner};
	rv->meta = meta;
	rv->scratch = opts.scratch;
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
	for (size_t i = 0; i < REV_STRIPES; i++) {
		pthread_mutex_init(&rv->stripes[i], NULL);
		pthread_mutex_init(&rv->dirs[i], NULL);
	}
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
