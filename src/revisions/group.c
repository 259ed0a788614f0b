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
 * In a journal a change and its record are one step already, and callers make such changes from several threads.
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
		}
		if (r) {
			p->group->failed = p->first + p->count;
			return r;
		}
		p->bytes += RECORD_BYTES + item->path.s.len + d->data.len;
	}
	return 0;
}

static int look_one(struct revisions *rv, struct ctx *ctx, const struct store_group_item *item, struct rev_draft *d,
		    struct err *err)
{
	struct look l;
	int r = look_at(rv, ctx, item->path, &l, err);

	if (r == 0 && l.is_dir)
		r = store_refuse(item->cond.kind == STORE_VERSION ? REFUSE_DIR_VERSION
				 : item->op == STORE_OP_REMOVE    ? REFUSE_NOT_RECURSIVE
								  : REFUSE_DIR,
				 item->path.s, err);
	if (r == 0)
		r = store_cond_check(item->cond, l.state.exists, l.state.version, err);
	if (r == 0 && item->op == STORE_OP_REMOVE && !l.state.exists)
		r = store_not_found(err);
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
		r = revlog_append(rv->log, ctx, p->drafts, p->count, err);
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
			make_abort(rv, ctx, p->records + i + 1, p->count - i - 1);
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

int revisions_group(struct store *s, struct ctx *ctx, struct store_group *group, struct err *err)
{
	struct revisions *rv = revisions_of(s);

	group->failed = group->count;
	return rv->journal || !is_all_recorded(group) ? store_group_generic(s, ctx, group, err)
						      : change_group(rv, ctx, group, err);
}
