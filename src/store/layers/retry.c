/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Repeats what failed for a passing reason. The difficulty is the unknown outcome: an operation may have happened, and
 * only its answer was lost. Reads and unconditional writes may simply be made again. A conditional operation may be
 * made again too, because its condition fails if the first try did happen; but then the refusal must not be believed
 * before looking whether the state is the one that was asked for. An unconditional append, remove or move is not made
 * again: it could add twice, or take away what somebody else has put there since.
 */
#include <time.h>

#include "base/clock.h"
#include "base/limits.h"
#include "store/journal.h"
#include "store/stores.h"

struct retry {
	struct store base;
	struct retry_policy policy;
};

static struct retry *retry_of(struct store *s)
{
	return (struct retry *)s;
}

/* Waiting. */

/* Between half of the doubled delay and all of it, so that clients that failed together do not come back together. */
static int64_t delay_ns(const struct retry_policy *p, unsigned failures)
{
	uint64_t ms = p->first_ms;

	while (failures-- > 1 && ms < p->longest_ms)
		ms *= 2;
	if (ms > p->longest_ms)
		ms = p->longest_ms;
	ms *= 1000000;
	return (int64_t)(ms / 2 + (ms ? random_u64() % (ms / 2 + 1) : 0));
}

/* False when the call ends before the delay does: the failure is then the better answer. */
static bool pause_for(struct ctx *ctx, int64_t ns)
{
	int64_t end = clock_monotonic_ns() + ns, left;
	struct err ignored;

	if (ctx->deadline_ns && end >= ctx->deadline_ns)
		return false;
	while ((left = end - clock_monotonic_ns()) > 0) {
		int64_t slice = left < 10000000 ? left : 10000000; /* a cancel is noticed within 10 ms */
		struct timespec t = {.tv_nsec = slice};

		if (ctx_check(ctx, &ignored))
			return false;
		nanosleep(&t, NULL);
	}
	return ctx_check(ctx, &ignored) == 0;
}

/* Comparing what is stored with what was to be stored. */

struct compare {
	const struct source *source;
	struct str bytes; /* of the source that were not compared yet */
	char *buf;
	bool differs;
};

static int compare_push(void *arg, const void *bytes, size_t len, struct err *err)
{
	struct compare *c = arg;
	struct str rest = str_n(bytes, len);

	while (rest.len && !c->differs) {
		size_t n;

		if (c->bytes.len == 0 && c->source->pull) {
			size_t got = 0;
			int r = c->source->pull(c->source->arg, c->buf, STREAM_CHUNK, &got, err);

			if (r)
				return r;
			c->bytes = str_n(c->buf, got);
		}
		n = rest.len < c->bytes.len ? rest.len : c->bytes.len;
		c->differs = n == 0 || memcmp(rest.ptr, c->bytes.ptr, n) != 0;
		rest = str_from(rest, n);
		c->bytes = str_from(c->bytes, n);
	}
	return 0;
}

static bool rewind_source(const struct source *source)
{
	struct err ignored;

	return !source->pull || (source->rewind && source->rewind(source->arg, &ignored) == 0);
}

/* True when the file at `path` holds exactly the source's bytes. */
static bool holds(struct store *inner, struct ctx *ctx, struct wpath path, const struct source *source,
		  struct store_stat *ret_stat)
{
	struct compare c = {.source = source, .bytes = source->pull ? STR("") : source->bytes};
	struct sink sink = {.push = compare_push, .arg = &c};
	struct store_call call = {
		.op = STORE_OP_READ, .path = path, .range = STORE_WHOLE, .sink = &sink, .ret_stat = ret_stat};
	struct err ignored;
	size_t more = 0;
	bool same;

	if (!rewind_source(source))
		return false;
	c.buf = xmalloc(STREAM_CHUNK);
	same = store_forward(inner, ctx, &call, &ignored) == 0 && !c.differs && c.bytes.len == 0;
	if (same && source->pull)
		same = source->pull(source->arg, c.buf, STREAM_CHUNK, &more, &ignored) == 0 && more == 0;
	free(c.buf);
	return same;
}

static bool stat_inner(struct store *inner, struct ctx *ctx, struct wpath path, struct store_stat *ret)
{
	struct store_call call = {.op = STORE_OP_STAT, .path = path, .ret_stat = ret};
	struct err ignored;

	return store_forward(inner, ctx, &call, &ignored) == 0;
}

static bool is_gone(struct store *inner, struct ctx *ctx, struct wpath path)
{
	struct store_stat stat;
	struct store_call call = {.op = STORE_OP_STAT, .path = path, .ret_stat = &stat};
	struct err ignored;

	return store_forward(inner, ctx, &call, &ignored) == -ERR_NOT_FOUND;
}

/* True when the entry is there: an earlier try added it, and with it made the change of the file. */
static bool was_added(struct store *inner, struct ctx *ctx, const struct store_call *call)
{
	const struct journal_add *add = call->journal_add;

	if (!store_journal_has(inner, ctx, call->path, add->after, add->bytes))
		return false;
	*call->ret_added = (struct journal_added){0};
	if (add->change == JOURNAL_ALONE || add->change == JOURNAL_REMOVE)
		return true;
	/* When it was changed again since, it had this version all the same. */
	if (!stat_inner(inner, ctx, call->to, &call->ret_added->stat))
		call->ret_added->stat = (struct store_stat){.kind = STORE_FILE, .size = add->content.len};
	call->ret_added->stat.version = add->version;
	return true;
}

/* A repeated conditional operation was refused: was it an earlier try that made the condition fail? Then this fills in
   the answer that was lost. */
static bool happened_before(struct store *inner, struct ctx *ctx, const struct store_call *call)
{
	struct store_stat stat;

	switch (call->op) {
	case STORE_OP_WRITE:
		if (!holds(inner, ctx, call->path, call->source, &stat))
			return false;
		*call->ret_stat = stat;
		return true;
	case STORE_OP_REMOVE:
		if (!is_gone(inner, ctx, call->path))
			return false;
		*call->ret_count = 1;
		return true;
	case STORE_OP_JOURNAL_ADD:
		return was_added(inner, ctx, call);
	default:
		return false;
	}
}

/* A read's sink, watched: once it has bytes, they cannot be taken back. */
struct watch {
	const struct sink *sink;
	bool pushed, reserved;
	void *block;
	size_t size;
};

static int watch_push(void *arg, const void *bytes, size_t len, struct err *err)
{
	struct watch *w = arg;

	w->pushed = true;
	return w->sink->push(w->sink->arg, bytes, len, err);
}

static void *watch_reserve(void *arg, size_t size)
{
	struct watch *w = arg;

	if (!w->reserved) { /* it may be asked once only */
		w->reserved = true;
		w->block = w->sink->reserve(w->sink->arg, size);
		w->size = size;
	}
	return w->size == size ? w->block : NULL;
}

/* A scan's visitor, watched for the same reason. */
struct watch_scan {
	const struct scan_req *req;
	bool began;
};

static bool watch_want_dir(void *arg, struct str path)
{
	struct watch_scan *w = arg;

	w->began = true;
	return !w->req->want_dir || w->req->want_dir(w->req->arg, path);
}

static bool watch_want_file(void *arg, struct str path)
{
	struct watch_scan *w = arg;

	w->began = true;
	return !w->req->want_file || w->req->want_file(w->req->arg, path);
}

static int watch_visit(void *arg, const struct scan_item *item, struct err *err)
{
	struct watch_scan *w = arg;

	return w->req->visit(w->req->arg, item, err);
}

struct attempt {
	struct store_call call; /* with the watched sink and visitor */
	struct sink sink;
	struct scan_req scan;
	struct watch watch;
	struct watch_scan watch_scan;
};

static void attempt_init(struct attempt *a, const struct store_call *call)
{
	*a = (struct attempt){.call = *call};
	if (call->sink) {
		a->watch.sink = call->sink;
		a->sink = (struct sink){
			.push = watch_push, .reserve = call->sink->reserve ? watch_reserve : NULL, .arg = &a->watch};
		a->call.sink = &a->sink;
	}
	if (call->scan) {
		a->watch_scan.req = call->scan;
		a->scan = *call->scan;
		a->scan.want_dir = watch_want_dir;
		a->scan.want_file = watch_want_file;
		a->scan.visit = watch_visit;
		a->scan.arg = &a->watch_scan;
		a->call.scan = &a->scan;
	}
}

/* Whether the operation that just failed may be made again. */
static bool may_repeat(struct store *inner, struct ctx *ctx, const struct attempt *a)
{
	const struct store_call *c = &a->call;
	struct store_stat stat;

	if (c->source && !rewind_source(c->source))
		return false;
	switch (c->op) {
	case STORE_OP_READ:
		return !a->watch.pushed;
	case STORE_OP_SCAN:
		return !a->watch_scan.began;
	case STORE_OP_APPEND: /* only if it is certain that nothing was added */
		if (c->cond.kind == STORE_ABSENT)
			return is_gone(inner, ctx, c->path);
		return c->cond.kind == STORE_VERSION && stat_inner(inner, ctx, c->path, &stat) &&
		       str_eq(stat.version, c->cond.version);
	case STORE_OP_COPY:
		return c->to_cond.kind == STORE_ANY;
	case STORE_OP_JOURNAL_ADD: /* the number is a condition; a refusal is looked into */
		return true;
	case STORE_OP_REMOVE:
		return c->cond.kind == STORE_VERSION;
	case STORE_OP_MOVE: /* only if the source is still what it was: where it went cannot be told from a version */
		return c->cond.kind == STORE_VERSION && stat_inner(inner, ctx, c->path, &stat) &&
		       str_eq(stat.version, c->cond.version);
	default:
		return store_op_info[c->op].idempotent;
	}
}

/* Refusals that an earlier try can be the reason of. */
static bool may_be_own(enum store_op op, int r)
{
	return r == -ERR_EXISTS || r == -ERR_CONFLICT || (op == STORE_OP_JOURNAL_ADD && r == -ERR_NOT_FOUND);
}

static int retry_around(struct store *s, struct ctx *ctx, struct store_call *call, struct err *err)
{
	const struct retry_policy *policy = &retry_of(s)->policy;
	struct attempt a;
	unsigned failures = 0;
	int r;

	attempt_init(&a, call);
	for (;;) {
		r = store_forward(s->inner, ctx, &a.call, err);
		if (r == 0)
			return 0;
		if (failures && may_be_own(call->op, r) && happened_before(s->inner, ctx, &a.call))
			return 0;
		if (!err->retryable || ++failures >= policy->tries)
			return r;
		if (!pause_for(ctx, delay_ns(policy, failures)) || !may_repeat(s->inner, ctx, &a))
			return r;
	}
}

static void retry_destroy(struct store *s)
{
	free(retry_of(s));
}

static const struct store_ops retry_ops = {
	.name = "retry",
	.around = retry_around,
	.destroy = retry_destroy,
};

struct store *store_retry_new(struct store *inner, struct retry_policy policy)
{
	struct retry *t = xcalloc(1, sizeof(*t));

	t->base = (struct store){.ops = &retry_ops, .inner = inner};
	t->policy = policy;
	return &t->base;
}
