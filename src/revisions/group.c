/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of several files that belong together: an undo, a restore, what a command in a sandbox changed.
 *
 * One after the other, each would wait for its own append to the log. Here all files are looked at first, all records
 * are logged with one append, and then the changes are made, in their order. An append is in the log as a whole or not
 * at all, and records that are not done are completed by the next process that opens the log: so after a kill or a
 * power cut either nothing of the group was made, or all of it is. Recovery has to know that a file which is not there
 * was not removed since by a person, though the record is old: the last change of the group says so (recover.c), since
 * it is made after all others.
 *
 * A group that has more than PART_MAX changes, or PART_BYTES of records, is logged in several parts, so that memory
 * does not grow with it. Then a kill can leave the first parts alone: each of them is whole.
 *
 * In a journal of a store that makes groups in one step (JOURNAL_GROUP), the changes and their records are that step,
 * in parts of at most JOURNAL_GROUP_MAX changes. Nothing is looked at before: the first try believes the log, and the
 * store checks the conditions. Only after a refusal the files are looked at, all of them in few requests. A content
 * that is too large for a step is written on its own, in its place among the others. Elsewhere (objects) changes are
 * made one by one, and callers make them from several threads.
 */
#include "base/limits.h"
#include "revisions/layer.h"

#define TRIES_MAX    1000
#define PART_MAX     16384
#define PART_BYTES   (8 * MIB)
#define RECORD_BYTES 400 /* about what a record takes besides its path and its bytes */

/* The items from `first` on that are logged together. */
struct part {
	struct store_group *group;
	size_t first, count;
	struct rev_draft *drafts;
	struct rev_record **records;
	struct source *sources;
	size_t bytes;
};

static bool is_all_recorded(const struct store_group *group)
{
	for (size_t i = 0; i < group->count; i++)
		if (!revisions_records(group->items[i].path))
			return false;
	return true;
}

/* Takes in the contents of as many items as go together. */
static int take_part(struct revisions *rv, struct ctx *ctx, struct part *p, struct err *err)
{
	size_t most = p->group->count - p->first;

	most = most < PART_MAX ? most : PART_MAX;
	p->drafts = ARENA_ARRAY(ctx->arena, struct rev_draft, most);
	p->records = ARENA_ARRAY(ctx->arena, struct rev_record *, most);
	p->sources = ARENA_ARRAY(ctx->arena, struct source, most);
	for (p->count = 0; p->count < most && p->bytes < PART_BYTES; p->count++) {
		const struct store_group_item *item = &p->group->items[p->first + p->count];
		struct rev_draft *d = &p->drafts[p->count];
		int r = 0;

		*d = (struct rev_draft){.op = item->op == STORE_OP_REMOVE ? REV_REMOVE : REV_WRITE, .path = item->path};
		if (item->op == STORE_OP_WRITE) {
			r = revisions_take_source(rv, ctx, item->source, d, &p->sources[p->count], err);
			d->after.mode = p->sources[p->count].mode = item->source->mode;
			d->after.owner = p->sources[p->count].owner = revisions_owner(rv, item->source->owner);
		}
		if (r) {
			p->group->failed = p->first + p->count;
			return r;
		}
		p->bytes += RECORD_BYTES + item->path.s.len + d->data.len;
	}
	return 0;
}

/* Refuses a change that what is there does not allow. */
static int check_look(const struct store_group_item *item, const struct look *l, struct err *err)
{
	int r;

	if (l->is_dir)
		return store_refuse(item->cond.kind == STORE_VERSION ? REFUSE_DIR_VERSION
				    : item->op == STORE_OP_REMOVE    ? REFUSE_NOT_RECURSIVE
								     : REFUSE_DIR,
				    item->path.s, err);
	r = store_cond_check(item->cond, l->state.exists, l->state.version, err);
	return r == 0 && item->op == STORE_OP_REMOVE && !l->state.exists ? store_not_found(err) : r;
}

static int look_one(struct revisions *rv, struct ctx *ctx, const struct store_group_item *item, struct rev_draft *d,
		    struct err *err)
{
	struct look l;
	int r = look_at(rv, ctx, item->path, &l, err);

	if (r == 0)
		r = check_look(item, &l, err);
	if (r == 0 && !l.state.exists)
		r = look_refuse_below_file(rv, ctx, item->path, err);
	if (r == 0)
		r = look_hold(rv, ctx, item->path, &l, err);
	d->before = l.state;
	d->base = l.base;
	return r;
}

/* Looks at all files and logs their changes. ERR_CONFLICT without a failed item: another writer was first with one of
   them, and nothing is logged. */
static int log_part(struct revisions *rv, struct ctx *ctx, struct part *p, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx own = *ctx;
	int r = 0;

	own.arena = arena;
	for (size_t i = 0; r == 0 && i < p->count; i++) {
		arena_reset(arena); /* a look may need much more than it leaves */
		r = look_one(rv, &own, &p->group->items[p->first + i], &p->drafts[i], err);
		p->drafts[i].before.version = arena_str(ctx->arena, p->drafts[i].before.version);
		if (r)
			p->group->failed = p->first + i;
	}
	if (r == 0)
		r = revisions_log(rv, ctx, p->drafts, p->count, err);
	for (size_t i = 0; r == 0 && i < p->count; i++)
		p->records[i] = p->drafts[i].record;
	return r;
}

static int make_one(struct revisions *rv, struct ctx *ctx, const struct rev_draft *d, const struct source *source,
		    struct rev_record **record, struct store_stat *ret_stat, struct err *err)
{
	uint64_t count = 1;
	struct store_call call = {
		.op = d->op == REV_REMOVE ? STORE_OP_REMOVE : STORE_OP_WRITE,
		.path = d->path,
		.source = d->op == REV_REMOVE ? NULL : source,
		.cond = {.kind = d->before.exists ? STORE_VERSION : STORE_ABSENT, .version = d->before.version},
		.ret_stat = ret_stat,
		.ret_count = &count};

	return make_logged(rv, ctx, &call, record, 1, err);
}

/* At once, or, if others have made some of them by now, one by one. */
static void abort_rest(struct revisions *rv, struct ctx *ctx, struct rev_record **records, size_t count)
{
	bool aborted = count == 0 || make_abort(rv, ctx, records, count);

	for (size_t i = 0; !aborted && i < count; i++)
		make_abort(rv, ctx, records + i, 1);
}

/* Makes what was logged, up to the first change that another writer or the store prevents. `results` outlives the
   part. */
static int make_part(struct revisions *rv, struct ctx *ctx, struct part *p, struct arena *results, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx own = *ctx;

	own.arena = arena;
	for (size_t i = 0; i < p->count; i++) {
		struct store_group_item *item = &p->group->items[p->first + i];
		struct store_stat stat = {0};
		int r;

		arena_reset(arena);
		r = make_one(rv, &own, &p->drafts[i], &p->sources[i], &p->records[i], &stat, err);
		if (r) {
			p->group->failed = p->first + i;
			abort_rest(rv, ctx, p->records + i + 1, p->count - i - 1);
			return r;
		}
		item->made = true;
		item->stat = stat;
		item->stat.version = arena_str(results, stat.version);
	}
	return 0;
}

static int change_part(struct revisions *rv, struct ctx *ctx, struct part *p, struct arena *results, struct err *err)
{
	int r = take_part(rv, ctx, p, err);
	bool again = r == 0;

	for (int tries = 0; again && tries < TRIES_MAX; tries++) {
		r = log_part(rv, ctx, p, err);
		again = r == -ERR_CONFLICT && p->group->failed == p->group->count;
	}
	return r ? r : make_part(rv, ctx, p, results, err);
}

/* --- in one step with the records --- */

static bool fits_step(const struct rev_draft *d, const struct source *source)
{
	return d->op == REV_REMOVE || (!source->pull && source->bytes.len <= REV_STEP_MAX);
}

/* Takes in as many items as one step can make; none: the first one is too large. */
static int take_step(struct revisions *rv, struct ctx *ctx, struct part *p, struct err *err)
{
	size_t most = p->group->count - p->first, bytes = 0;

	most = most < JOURNAL_GROUP_MAX ? most : JOURNAL_GROUP_MAX;
	p->drafts = ARENA_ARRAY(ctx->arena, struct rev_draft, most);
	p->sources = ARENA_ARRAY(ctx->arena, struct source, most);
	for (p->count = 0; p->count < most; p->count++) {
		const struct store_group_item *item = &p->group->items[p->first + p->count];
		const struct source *source = item->source;
		struct rev_draft *d = &p->drafts[p->count];
		int r = 0;

		*d = (struct rev_draft){.op = item->op == STORE_OP_REMOVE ? REV_REMOVE : REV_WRITE, .path = item->path};
		if (source && (!fits_step(d, source) || bytes + source->bytes.len > JOURNAL_GROUP_BYTES))
			break;
		if (source) {
			r = revisions_take_source(rv, ctx, source, d, &p->sources[p->count], err);
			d->after.mode = source->mode;
			bytes += source->bytes.len;
		}
		if (r) {
			p->group->failed = p->first + p->count;
			return r;
		}
	}
	return 0;
}

/* What is known of the files: by the log alone if `trust`, and otherwise by looking. */
static int look_step(struct revisions *rv, struct ctx *ctx, const struct part *p, bool trust, struct look *looks,
		     struct err *err)
{
	struct wpath *paths = ARENA_ARRAY(ctx->arena, struct wpath, p->count);
	struct look *found = ARENA_ARRAY(ctx->arena, struct look, p->count);
	size_t *of = ARENA_ARRAY(ctx->arena, size_t, p->count), n = 0;
	int r;

	for (size_t i = 0; i < p->count; i++) {
		const struct store_group_item *item = &p->group->items[p->first + i];

		if (trust && look_known(rv, ctx, item->path, item->cond, &looks[i]))
			continue;
		paths[n] = item->path;
		of[n++] = i;
	}
	r = n ? look_all(rv, ctx, paths, n, found, err) : 0;
	for (size_t i = 0; r == 0 && i < n; i++)
		looks[of[i]] = found[i];
	return r;
}

/* Completes the draft of an item, and says what the store has to do for it. */
static int draft_item(struct revisions *rv, struct ctx *ctx, const struct part *p, size_t i, struct look *l,
		      struct journal_item *ret, struct err *err)
{
	const struct store_group_item *item = &p->group->items[p->first + i];
	struct rev_draft *d = &p->drafts[i];
	int r = check_look(item, l, err);

	if (r == 0)
		r = look_hold(rv, ctx, item->path, l, err);
	d->before = l->state;
	d->base = l->base;
	*ret = (struct journal_item){
		.change = d->op == REV_REMOVE ? JOURNAL_REMOVE : JOURNAL_WRITE,
		.path = item->path,
		.cond = {.kind = l->state.exists ? STORE_VERSION : STORE_ABSENT, .version = l->state.version}};
	d->made = ret->version = STR("");
	if (d->op == REV_WRITE) {
		ret->content = p->sources[i].bytes;
		d->made = ret->version = arena_printf(ctx->arena, "%016llx", (unsigned long long)random_u64());
	}
	return r;
}

/* One try. *ret_again: another writer was first, or the log was believed and the store knew better. */
static int try_step(struct revisions *rv, struct ctx *ctx, struct part *p, bool trust, bool *ret_again, struct err *err)
{
	struct look *looks = ARENA_ARRAY(ctx->arena, struct look, p->count);
	struct journal_item *items = ARENA_ARRAY(ctx->arena, struct journal_item, p->count);
	struct rev_step step = {.change = JOURNAL_GROUP,
				.path = WPATH_ROOT,
				.version = STR(""),
				.items = items,
				.item_count = p->count};
	int r = look_step(rv, ctx, p, trust, looks, err);

	*ret_again = false;
	for (size_t i = 0; r == 0 && i < p->count; i++) {
		r = draft_item(rv, ctx, p, i, &looks[i], &items[i], err);
		if (r) {
			p->group->failed = p->first + i;
			*ret_again = trust && r == -ERR_CONFLICT;
			return r;
		}
	}
	if (r)
		return r;
	r = revlog_append_step(rv->log, ctx, p->drafts, p->count, &step, err);
	if (r && step.refused)
		p->group->failed = p->first + step.failed;
	*ret_again = r == -ERR_CONFLICT || r == -ERR_EXISTS || r == -ERR_NOT_FOUND;
	return r;
}

static void note_made(const struct part *p, struct arena *results)
{
	for (size_t i = 0; i < p->count; i++) {
		struct store_group_item *item = &p->group->items[p->first + i];

		item->made = true;
		if (item->op == STORE_OP_WRITE)
			item->stat = (struct store_stat){.kind = STORE_FILE,
							 .size = p->drafts[i].after.size,
							 .mtime_ns = p->drafts[i].time_ns,
							 .version = arena_str(results, p->drafts[i].made)};
	}
}

/* An item that is too large for a step. */
static int change_alone(struct revisions *rv, struct ctx *ctx, struct part *p, struct err *err)
{
	struct store_group one = {.items = p->group->items + p->first, .count = 1, .failed = 1};
	int r = store_group_generic(&rv->base, ctx, &one, err);

	p->count = 1;
	if (r)
		p->group->failed = p->first;
	return r;
}

static int change_step(struct revisions *rv, struct ctx *ctx, struct part *p, struct arena *results, struct err *err)
{
	int r = take_step(rv, ctx, p, err);
	bool again = true;

	if (r || p->count == 0)
		return r;
	pthread_rwlock_wrlock(&rv->tree);
	for (int tries = 0; again && tries < TRIES_MAX; tries++) {
		p->group->failed = p->group->count;
		r = try_step(rv, ctx, p, tries == 0, &again, err);
	}
	pthread_rwlock_unlock(&rv->tree);
	if (r == 0)
		note_made(p, results);
	return r;
}

static int change_in_steps(struct revisions *rv, struct ctx *ctx, struct store_group *group, struct err *err)
{
	struct part p = {.group = group};
	int r = 0;

	while (r == 0 && p.first < group->count) {
		{
			REV_PINNED struct revisions *pin = revisions_pin(rv);
			ARENA_SCOPE struct arena *arena = arena_new();
			struct ctx own = *ctx;

			own.arena = arena;
			r = change_step(rv, &own, &p, ctx->arena, err);
		}
		if (r == 0 && p.count == 0)
			r = change_alone(rv, ctx, &p, err);
		p.first += p.count;
	}
	return r;
}

static int change_group(struct revisions *rv, struct ctx *ctx, struct store_group *group, struct err *err)
{
	REV_PINNED struct revisions *pin = revisions_pin(rv);
	struct part p = {.group = group};
	int r = revisions_ready(rv, ctx, err);

	while (r == 0 && p.first < group->count) {
		ARENA_SCOPE struct arena *arena = arena_new();
		struct ctx own = *ctx;

		own.arena = arena;
		p.bytes = 0;
		pthread_rwlock_wrlock(&rv->tree);
		r = change_part(rv, &own, &p, ctx->arena, err);
		pthread_rwlock_unlock(&rv->tree);
		p.first += p.count;
		revisions_pause(rv);
	}
	return r;
}

bool revisions_makes_groups(struct store *revisions)
{
	return make_groups(revisions_of(revisions));
}

int revisions_group(struct store *s, struct ctx *ctx, struct store_group *group, struct err *err)
{
	struct revisions *rv = revisions_of(s);
	int r = 0;

	group->failed = group->count;
	if (!is_all_recorded(group))
		return store_group_generic(s, ctx, group, err);
	if (rv->journal)
		r = revisions_ready(rv, ctx, err);
	if (r)
		return r;
	if (rv->journal)
		return make_groups(rv) ? change_in_steps(rv, ctx, group, err) : store_group_generic(s, ctx, group, err);
	return change_group(rv, ctx, group, err);
}
