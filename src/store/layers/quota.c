/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bounds a workspace: bytes in all, files in all, bytes of one file.
 *
 * The usage is counted once, by a list, and then kept. That needs the size of what an operation replaces or removes, as
 * it is when the operation happens; so operations on the same path, or on a directory above it, wait for each other
 * here (reads do not). Others run at once: they reserve what they need before they begin, a stream while it flows, and
 * give back what was not used, so that writers together never pass a limit. One lock around each operation was
 * rejected, because a slow upload would hold up everybody.
 *
 * With a history (store_quota_count_kept) what a change replaces stays in use, so a change reserves its whole content
 * and not only what the file grows by, and its record. A removal adds nothing, so that it is always possible.
 *
 * Changes that bypass this layer are noticed in two ways: when a write would fail, usage is counted again before
 * it is refused; and after an operation with an unknown outcome it is counted again as soon as nothing is under way.
 */
#include <pthread.h>
#include <time.h>

#include "base/clock.h"
#include "base/limits.h"
#include "store/journal.h"
#include "store/list_stream.h"
#include "store/stores.h"

/* An operation under way: nobody else may touch anything at or below these. */
struct claim {
	struct claim *next;
	struct wpath path, to;
	bool has_to;
	uint64_t bytes, files; /* reserved beyond what was there before */
};

struct quota {
	struct store base;
	struct quota_limits limits;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct claim *claims;
	bool counted, doubtful;
	uint64_t bytes, files; /* used and reserved */
	int64_t counted_at_ns, count_took_ns;
	uint64_t (*kept)(void *arg, bool again); /* bytes of history in addition to the files; NULL: none */
	void *kept_arg;
	uint64_t each;   /* bytes of history that a change takes, besides contents */
	bool kept_again; /* the next question asks for a new count */
};

static struct quota *quota_of(struct store *s)
{
	return (struct quota *)s;
}

/* A bound on one file alone needs no sum. */
static bool sums(const struct quota *q)
{
	return q->limits.bytes || q->limits.files;
}

/* Counting. */

static int sum_below(struct store *inner, struct ctx *ctx, struct wpath dir, uint64_t *ret_bytes, uint64_t *ret_files,
		     struct err *err)
{
	LIST_PAGES_SCOPE struct list_pages pages = {.store = inner,
						    .dir = dir,
						    .req = {.recursive = true, .limit = STORE_PAGE_MAX},
						    .is_layer = true,
						    .ctx = *ctx};
	int r;

	*ret_bytes = *ret_files = 0;
	while ((r = list_pages_next(&pages, err)) > 0) {
		*ret_files += pages.page.count;
		for (size_t i = 0; i < pages.page.count; i++)
			*ret_bytes += pages.page.entries[i].stat.size;
	}
	return r;
}

static bool is_own(const struct quota *q, struct wpath path)
{
	return q->limits.skips_own && wpath_within(path, (struct wpath){STR(".stead")}) && path.s.len;
}

/* Everything but .stead/, which may have many more files than the rest and is not even listed. */
static int sum_others(struct quota *q, struct ctx *ctx, uint64_t *ret_bytes, uint64_t *ret_files, struct err *err)
{
	LIST_PAGES_SCOPE struct list_pages pages = {
		.store = q->base.inner, .req = {.limit = STORE_PAGE_MAX}, .is_layer = true, .ctx = *ctx};
	int r;

	*ret_bytes = *ret_files = 0;
	while ((r = list_pages_next(&pages, err)) > 0)
		for (size_t i = 0; i < pages.page.count; i++) {
			const struct store_entry *e = &pages.page.entries[i];
			uint64_t bytes = e->stat.size, files = 1;

			if (is_own(q, e->path))
				continue;
			if (e->stat.kind == STORE_DIR &&
			    (r = sum_below(q->base.inner, &pages.ctx, e->path, &bytes, &files, err)) != 0)
				return r;
			*ret_bytes += bytes;
			*ret_files += files;
		}
	return r;
}

static int sum_tree(struct quota *q, struct ctx *ctx, struct wpath dir, uint64_t *ret_bytes, uint64_t *ret_files,
		    struct err *err)
{
	if (q->limits.skips_own && wpath_is_root(dir))
		return sum_others(q, ctx, ret_bytes, ret_files, err);
	return sum_below(q->base.inner, ctx, dir, ret_bytes, ret_files, err);
}

/* With the lock held. */
static uint64_t kept_bytes(struct quota *q)
{
	bool again = q->kept_again;

	q->kept_again = false;
	return q->kept ? q->kept(q->kept_arg, again) : 0;
}

/* With the lock held. Reservations of operations under way are added to the count; one that has just finished is
   then counted twice or its removal is missed, so the count is in doubt until it can be made alone. */
static int count(struct quota *q, struct ctx *ctx, struct err *err)
{
	int64_t begin = clock_monotonic_ns();
	uint64_t bytes, files;
	int r = sum_tree(q, ctx, WPATH_ROOT, &bytes, &files, err);

	if (r)
		return r;
	q->doubtful = false;
	for (const struct claim *c = q->claims; c; c = c->next) {
		bytes += c->bytes;
		files += c->files;
		q->doubtful = true;
	}
	q->bytes = bytes;
	q->files = files;
	q->kept_again = q->counted;
	q->counted = true;
	kept_bytes(q);
	q->counted_at_ns = clock_monotonic_ns();
	q->count_took_ns = q->counted_at_ns - begin;
	return 0;
}

/* A full workspace whose client keeps trying must not spend its time counting: at most a tenth of it. */
static bool may_recount(const struct quota *q)
{
	return clock_monotonic_ns() - q->counted_at_ns >= 10 * q->count_took_ns;
}

/* Claims. */

static bool touches(struct wpath a, struct wpath b)
{
	return wpath_within(a, b) || wpath_within(b, a);
}

static bool collides(const struct quota *q, const struct claim *mine)
{
	for (const struct claim *c = q->claims; c; c = c->next) {
		if (touches(c->path, mine->path) || (c->has_to && touches(c->to, mine->path)))
			return true;
		if (mine->has_to && (touches(c->path, mine->to) || (c->has_to && touches(c->to, mine->to))))
			return true;
	}
	return false;
}

/* Waits in slices, so that the call's end is noticed. */
static int wait_for_change(struct quota *q, struct ctx *ctx, struct err *err)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += 20 * 1000 * 1000;
	if (until.tv_nsec >= NS_PER_S) {
		until.tv_nsec -= NS_PER_S;
		until.tv_sec++;
	}
	pthread_cond_timedwait(&q->changed, &q->lock, &until);
	return ctx_check(ctx, err);
}

static int claim(struct quota *q, struct ctx *ctx, struct claim *mine, struct err *err)
{
	int r = 0;

	pthread_mutex_lock(&q->lock);
	while (r == 0 && collides(q, mine))
		r = wait_for_change(q, ctx, err);
	if (r == 0 && sums(q) && (!q->counted || (q->doubtful && !q->claims)))
		r = count(q, ctx, err);
	if (r == 0) {
		mine->next = q->claims;
		q->claims = mine;
	}
	pthread_mutex_unlock(&q->lock);
	return r;
}

/* True when the outcome of a failed operation is certain: it did nothing. */
static bool refused_cleanly(int r)
{
	switch (-r) {
	case ERR_INVALID:
	case ERR_NOT_FOUND:
	case ERR_EXISTS:
	case ERR_CONFLICT:
	case ERR_DENIED:
	case ERR_TOO_LARGE:
	case ERR_UNSUPPORTED:
	case ERR_QUOTA:
		return true;
	default:
		return false;
	}
}

static uint64_t less(uint64_t from, uint64_t by)
{
	return from > by ? from - by : 0;
}

/* Ends a claim: its reservation is replaced by what really was added and taken away. */
static void settle(struct quota *q, struct claim *mine, int r, struct quota_limits added, struct quota_limits gone)
{
	struct claim **at = &q->claims;

	pthread_mutex_lock(&q->lock);
	while (*at != mine)
		at = &(*at)->next;
	*at = mine->next;
	q->bytes = less(q->bytes, mine->bytes);
	q->files = less(q->files, mine->files);
	if (r == 0) {
		q->bytes = less(q->bytes + added.bytes, gone.bytes);
		q->files = less(q->files + added.files, gone.files);
	} else if (!refused_cleanly(r)) {
		q->doubtful = true;
	}
	pthread_cond_broadcast(&q->changed);
	pthread_mutex_unlock(&q->lock);
}

static const char *whose(const struct quota *q)
{
	return q->limits.whose ? q->limits.whose : "the workspace's";
}

/* What the claim has reserved is not in use yet: it belongs to what the change would take. */
static int over_bytes(struct quota *q, const struct claim *mine, uint64_t more, struct err *err)
{
	uint64_t kept = kept_bytes(q), used = less(q->bytes, mine->bytes) + kept;

	more += mine->bytes;
	if (kept)
		return err_set(
			err, ERR_QUOTA,
			"it would take %llu byte%s more, and %llu of %s %llu are in use, %llu of them by "
			"kept history; remove files or keep less history (`history` in agent.yaml), then run `stead "
			"gc`, or raise the limit",
			(unsigned long long)more, more == 1 ? "" : "s", (unsigned long long)used, whose(q),
			(unsigned long long)q->limits.bytes, (unsigned long long)kept);
	return err_set(err, ERR_QUOTA,
		       "it would take %llu byte%s more, and %llu of %s %llu are in use; remove files that "
		       "are no longer needed, or raise the limit",
		       (unsigned long long)more, more == 1 ? "" : "s", (unsigned long long)used, whose(q),
		       (unsigned long long)q->limits.bytes);
}

static int over_files(const struct quota *q, struct err *err)
{
	return err_set(err, ERR_QUOTA,
		       "%llu of %s %llu files are already there; remove files that are no longer needed, or raise "
		       "the limit",
		       (unsigned long long)q->files, whose(q), (unsigned long long)q->limits.files);
}

static int over_file_size(const struct quota *q, uint64_t size, struct err *err)
{
	return err_set(err, ERR_QUOTA, "the file would have %llu bytes or more, and one file may have %llu; split it",
		       (unsigned long long)size, (unsigned long long)q->limits.file_size);
}

static bool fits(struct quota *q, uint64_t bytes, uint64_t files)
{
	return (!q->limits.bytes || bytes == 0 || q->bytes + kept_bytes(q) + bytes <= q->limits.bytes) &&
	       (!q->limits.files || files == 0 || q->files + files <= q->limits.files);
}

/* Adds to a claim's reservation, or refuses. */
static int reserve(struct quota *q, struct ctx *ctx, struct claim *mine, uint64_t bytes, uint64_t files,
		   struct err *err)
{
	int r = 0;

	pthread_mutex_lock(&q->lock);
	if (!fits(q, bytes, files) && may_recount(q))
		r = count(q, ctx, err);
	if (r == 0 && !fits(q, bytes, 0))
		r = over_bytes(q, mine, bytes, err);
	if (r == 0 && !fits(q, 0, files))
		r = over_files(q, err);
	if (r == 0) {
		mine->bytes += bytes;
		mine->files += files;
		q->bytes += bytes;
		q->files += files;
	}
	pthread_mutex_unlock(&q->lock);
	return r;
}

/* A source that is measured while it flows. */
struct meter {
	struct quota *quota;
	struct ctx *ctx;
	struct claim *claim;
	const struct source *source;
	uint64_t base; /* what the file keeps (append) */
	uint64_t old;  /* what the file had, already counted, and which the new bytes take the place of */
	uint64_t each; /* reserved for the record */
	uint64_t flown;
};

static int meter_size(const struct meter *m, struct err *err)
{
	uint64_t size = m->base + m->flown, most = m->quota->limits.file_size;

	return most && size > most ? over_file_size(m->quota, size, err) : 0;
}

static int meter_check(struct meter *m, struct err *err)
{
	uint64_t size = m->base + m->flown, have = m->old + m->claim->bytes - m->each;
	int r = meter_size(m, err);

	return r == 0 && size > have ? reserve(m->quota, m->ctx, m->claim, size - have, 0, err) : r;
}

static int meter_pull(void *arg, void *buf, size_t cap, size_t *ret_len, struct err *err)
{
	struct meter *m = arg;
	size_t n;
	int r = m->source->pull(m->source->arg, buf, cap, &n, err);

	if (r)
		return r;
	m->flown += n;
	r = meter_check(m, err);
	if (r == 0)
		*ret_len = n;
	return r;
}

static int meter_rewind(void *arg, struct err *err)
{
	struct meter *m = arg;

	m->flown = 0;
	return m->source->rewind(m->source->arg, err);
}

/* Operations. */

/* A file's size and presence; what is not there, or a directory, has none. */
static int look(struct quota *q, struct ctx *ctx, struct wpath path, struct quota_limits *ret, bool *ret_dir,
		struct err *err)
{
	struct store_stat stat = {0};
	struct store_call get = {.op = STORE_OP_STAT, .path = path, .ret_stat = &stat};
	int r = store_forward(q->base.inner, ctx, &get, err);

	*ret = (struct quota_limits){0};
	*ret_dir = r == 0 && stat.kind == STORE_DIR;
	if (r == 0 && stat.kind == STORE_FILE)
		*ret = (struct quota_limits){.bytes = stat.size, .files = 1};
	return r == -ERR_NOT_FOUND ? 0 : r;
}

static int put(struct quota *q, struct ctx *ctx, struct store_call *call, struct claim *mine, struct err *err)
{
	struct meter m = {.quota = q, .ctx = ctx, .claim = mine, .source = call->source, .each = q->each};
	struct source source = *call->source;
	struct store_call own = *call;
	struct quota_limits old, added = {0};
	bool dir;
	int r = look(q, ctx, call->path, &old, &dir, err);

	m.base = call->op == STORE_OP_APPEND ? old.bytes : 0;
	m.old = q->kept ? m.base : old.bytes; /* with a history, what is replaced stays */
	m.flown = source.pull ? 0 : source.bytes.len;
	if (r == 0)
		r = meter_size(&m, err);
	if (r == 0)
		r = reserve(q, ctx, mine, q->each + less(m.base + m.flown, m.old), !dir && old.files == 0, err);
	if (source.pull) {
		source = (struct source){.pull = meter_pull,
					 .rewind = source.rewind ? meter_rewind : NULL,
					 .arg = &m,
					 .mode = source.mode,
					 .owner = source.owner};
		own.source = &source;
	}
	if (r == 0)
		r = store_forward(q->base.inner, ctx, &own, err);
	if (r == 0)
		added = (struct quota_limits){.bytes = call->ret_stat->size, .files = 1};
	settle(q, mine, r, added, old);
	return r;
}

static int copy(struct quota *q, struct ctx *ctx, struct store_call *call, struct claim *mine, struct err *err)
{
	struct quota_limits from, old = {0}, added = {0};
	bool dir;
	int r = look(q, ctx, call->path, &from, &dir, err);

	if (r == 0)
		r = look(q, ctx, call->to, &old, &dir, err);
	if (r == 0 && q->limits.file_size && from.bytes > q->limits.file_size)
		r = over_file_size(q, from.bytes, err);
	if (r == 0)
		r = reserve(q, ctx, mine, q->kept ? from.bytes + q->each : less(from.bytes, old.bytes),
			    less(from.files, old.files), err);
	if (r == 0)
		r = store_forward(q->base.inner, ctx, call, err);
	if (r == 0)
		added = (struct quota_limits){.bytes = call->ret_stat->size, .files = 1};
	settle(q, mine, r, added, old);
	return r;
}

/* What the records of a move take: one for each file. */
static int reserve_move(struct quota *q, struct ctx *ctx, struct wpath path, struct claim *mine, struct err *err)
{
	struct quota_limits from;
	bool dir;
	int r;

	if (!q->each || !q->limits.bytes)
		return 0;
	r = look(q, ctx, path, &from, &dir, err);
	if (r == 0 && dir)
		r = sum_tree(q, ctx, path, &from.bytes, &from.files, err);
	return r ? r : reserve(q, ctx, mine, from.files * q->each, 0, err);
}

/* No content is added; a target that is replaced goes. */
static int move(struct quota *q, struct ctx *ctx, struct store_call *call, struct claim *mine, struct err *err)
{
	struct quota_limits old = {0};
	bool dir;
	int r = reserve_move(q, ctx, call->path, mine, err);

	if (r == 0)
		r = look(q, ctx, call->to, &old, &dir, err);
	if (r == 0)
		r = store_forward(q->base.inner, ctx, call, err);
	settle(q, mine, r, (struct quota_limits){0}, old);
	return r;
}

static int take_away(struct quota *q, struct ctx *ctx, struct store_call *call, struct claim *mine, struct err *err)
{
	struct quota_limits old;
	bool dir;
	int r = look(q, ctx, call->path, &old, &dir, err);

	if (r == 0 && dir && call->recursive)
		r = sum_tree(q, ctx, call->path, &old.bytes, &old.files, err);
	if (r == 0)
		r = store_forward(q->base.inner, ctx, call, err);
	settle(q, mine, r, (struct quota_limits){0}, old);
	return r;
}

static int quota_around(struct store *s, struct ctx *ctx, struct store_call *call, struct err *err)
{
	struct quota *q = quota_of(s);
	struct claim mine = {.path = call->path, .to = call->to};
	int r;

	if (store_op_info[call->op].reads_only || is_own(q, call->path) || call->op == STORE_OP_JOURNAL_CUT ||
	    (call->op == STORE_OP_JOURNAL_ADD && call->journal_add->change == JOURNAL_ALONE))
		return store_forward(s->inner, ctx, call, err); /* journals are not files; their owner counts them */
	mine.has_to = call->op == STORE_OP_MOVE || call->op == STORE_OP_COPY;
	r = claim(q, ctx, &mine, err);
	if (r)
		return r;
	switch (call->op) {
	case STORE_OP_WRITE:
	case STORE_OP_APPEND:
		return put(q, ctx, call, &mine, err);
	case STORE_OP_COPY:
		return copy(q, ctx, call, &mine, err);
	case STORE_OP_MOVE:
		return move(q, ctx, call, &mine, err);
	case STORE_OP_REMOVE:
		return take_away(q, ctx, call, &mine, err);
	default:
		r = err_set(err, ERR_UNSUPPORTED, "quotas do not know how to count a %s", store_op_info[call->op].name);
		settle(q, &mine, r, (struct quota_limits){0}, (struct quota_limits){0});
		return r;
	}
}

/* The directory that has all files of the group. */
static struct wpath common_dir(const struct store_group *group)
{
	struct wpath dir = wpath_parent(group->items[0].path);

	for (size_t i = 1; i < group->count; i++)
		while (!wpath_within(group->items[i].path, dir))
			dir = wpath_parent(dir);
	return dir;
}

/* What the group needs beyond what is in use. What its files have now goes to `old`. Sizes are known before. */
static int weigh_group(struct quota *q, struct ctx *ctx, const struct store_group *group, struct quota_limits *old,
		       struct quota_limits *ret_more, struct err *err)
{
	struct quota_limits gone = {0};

	*ret_more = (struct quota_limits){0};
	for (size_t i = 0; i < group->count; i++) {
		const struct store_group_item *item = &group->items[i];
		uint64_t size = item->source ? item->source->bytes.len : 0;
		bool dir;
		int r = look(q, ctx, item->path, &old[i], &dir, err);

		if (r == 0 && q->limits.file_size && size > q->limits.file_size)
			r = over_file_size(q, size, err);
		if (r)
			return r;
		ret_more->bytes += item->op == STORE_OP_WRITE ? size + q->each : 0;
		ret_more->files += item->op == STORE_OP_WRITE;
		gone.bytes += old[i].bytes;
		gone.files += old[i].files;
	}
	ret_more->bytes = q->kept ? ret_more->bytes : less(ret_more->bytes, gone.bytes);
	ret_more->files = less(ret_more->files, gone.files);
	return 0;
}

/* True when the group has a content that is measured while it flows, or a file that is not counted. */
static bool is_mixed(const struct quota *q, const struct store_group *group)
{
	for (size_t i = 0; i < group->count; i++)
		if ((group->items[i].source && group->items[i].source->pull) || is_own(q, group->items[i].path))
			return true;
	return false;
}

static int quota_group(struct store *s, struct ctx *ctx, struct store_group *group, struct err *err)
{
	struct quota *q = quota_of(s);
	struct store_call call = {.op = STORE_OP_GROUP, .group = group};
	struct quota_limits more, added = {0}, gone = {0}, *old;
	struct claim mine = {0};
	int r;

	if (is_mixed(q, group))
		return store_group_generic(s, ctx, group, err);
	mine.path = common_dir(group);
	old = ARENA_ARRAY(ctx->arena, struct quota_limits, group->count);
	r = claim(q, ctx, &mine, err);
	if (r)
		return r;
	r = weigh_group(q, ctx, group, old, &more, err);
	if (r == 0)
		r = reserve(q, ctx, &mine, more.bytes, more.files, err);
	if (r == 0)
		r = store_forward(s->inner, ctx, &call, err);
	for (size_t i = 0; i < group->count; i++) {
		const struct store_group_item *item = &group->items[i];

		if (!item->made)
			continue;
		added.bytes += item->op == STORE_OP_WRITE ? item->stat.size : 0;
		added.files += item->op == STORE_OP_WRITE;
		gone.bytes += old[i].bytes;
		gone.files += old[i].files;
	}
	settle(q, &mine, r == 0 || refused_cleanly(r) ? 0 : r, added, gone);
	return r;
}

static void quota_destroy(struct store *s)
{
	struct quota *q = quota_of(s);

	pthread_cond_destroy(&q->changed);
	pthread_mutex_destroy(&q->lock);
	free(q);
}

static const struct store_ops quota_ops = {
	.name = "quota",
	.cannot = STORE_ONE_STEP | STORE_GROUP_STEP | STORE_WRITE_STEP | STORE_OVER_PAST,
	.group = quota_group,
	.around = quota_around,
	.destroy = quota_destroy,
};

struct store *store_quota_new(struct store *inner, struct quota_limits limits)
{
	struct quota *q;

	if (!limits.bytes && !limits.files && !limits.file_size)
		return inner; /* nothing to bound costs nothing */
	q = xcalloc(1, sizeof(*q));
	q->base = (struct store){.ops = &quota_ops, .inner = inner};
	q->limits = limits;
	pthread_mutex_init(&q->lock, NULL);
	pthread_cond_init(&q->changed, NULL);
	return &q->base;
}

void store_quota_count_kept(struct store *quota, uint64_t (*kept)(void *arg, bool again), void *arg, uint64_t each)
{
	struct quota *q = quota_of(quota);

	if (quota->ops != &quota_ops || !q->limits.bytes)
		return; /* there was nothing to bound */
	q->kept = kept;
	q->kept_arg = arg;
	q->each = each;
}

static int check_one(struct quota *q, struct ctx *ctx, struct quota_need need, struct err *err)
{
	uint64_t bytes = q->kept ? need.bytes + need.changes * q->each : less(need.bytes, need.replaced);
	struct claim mine = {.path = WPATH_ROOT};
	int r;

	if (q->limits.file_size && need.file_size > q->limits.file_size)
		return over_file_size(q, need.file_size, err);
	r = claim(q, ctx, &mine, err);
	if (r)
		return r;
	r = reserve(q, ctx, &mine, bytes, need.files, err);
	settle(q, &mine, -ERR_QUOTA, (struct quota_limits){0}, (struct quota_limits){0});
	return r;
}

int store_quota_check(struct store *s, struct ctx *ctx, struct quota_need need, struct err *err)
{
	int r = 0;

	for (; r == 0 && s; s = s->inner)
		if (s->ops == &quota_ops)
			r = check_one(quota_of(s), ctx, need, err);
	return r;
}

bool store_quota_bounds(const struct store *s)
{
	while (s && s->ops != &quota_ops)
		s = s->inner;
	return s != NULL;
}

int store_quota_around(struct store *s, struct ctx *ctx, struct quota_need need,
		       int (*make)(void *arg, struct err *err), void *arg, struct err *err)
{
	struct claim mine = {.path = WPATH_ROOT};
	struct quota *q;
	int r;

	while (s && s->ops != &quota_ops)
		s = s->inner;
	if (!s)
		return make(arg, err);
	q = quota_of(s);
	r = claim(q, ctx, &mine, err);
	if (r)
		return r;
	r = reserve(q, ctx, &mine, less(need.bytes, need.replaced), need.files, err);
	if (r == 0)
		r = store_quota_around(s->inner, ctx, need, make, arg, err);
	settle(q, &mine, r, (struct quota_limits){.bytes = need.bytes, .files = need.files},
	       (struct quota_limits){.bytes = need.replaced});
	return r;
}
