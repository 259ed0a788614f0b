/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Redaction: contents that must no longer be kept, wherever in the past they are.
 *
 * The log is never rewritten. Contents of paths that may have to be redacted are stored outside it, as blobs
 * (revisions_opts.apart). Redaction removes the blob, and the record that refers to it still says who changed what and
 * when. Removing a blob is one step on any store, so a kill cannot tear it and another process cannot read half of it:
 * it finds the content, or that it is no longer kept, as after retention.
 *
 * The present content of a path is what a crash would be repaired from, so it is not touched, nor is the run of appends
 * that it was made of. To get rid of something, change the file first.
 *
 * A writer that was overtaken leaves the content that it meant to write, without a record. Such contents are looked at
 * too, as soon as they are so old that no record will come.
 *
 * Rejected: replacing the lines of the log that have contents in them. A journal's entries cannot be replaced on every
 * store, and a log that is never changed is worth more than the blob that small contents cost here.
 */
#include "base/clock.h"
#include "base/limits.h"
#include "revisions/layer.h"
#include "revisions/log_internal.h"
#include "store/list_stream.h"

#define LOOK_MAX (64 * MIB) /* larger contents are not searched */

struct ref {
	struct rev_hash hash;
	uint64_t number; /* of the record that refers to it */
	bool wanted, now;
};

struct redaction {
	struct revisions *rv;
	struct ctx *ctx;
	const struct rev_redact *want;
	struct ref *refs; /* by hash */
	size_t count;
	size_t cap;
	uint64_t *lines; /* records of wanted paths that have bytes themselves */
	size_t line_count, line_cap;
	uint64_t *numbers; /* of revisions that lost a content */
	size_t number_count, number_cap;
	int64_t young_ns; /* what was written after this time may still get its record */
	struct rev_redacted *ret;
};

static int ref_cmp(const void *a, const void *b)
{
	return rev_hash_cmp(&((const struct ref *)a)->hash, &((const struct ref *)b)->hash);
}

static int number_cmp(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void add_ref(struct redaction *d, const struct rev_hash *hash, const struct rev_record *rec, bool wanted,
		    bool now)
{
	if (!rev_hash_is_set(hash))
		return;
	HEAP_ROOM(d->refs, d->count, d->cap);
	d->refs[d->count++] = (struct ref){*hash, rec->r.number, wanted, now};
}

/* Whether the content after the record is the present one, or its beginning. The lock is held. */
static int is_now(struct redaction *d, struct ctx *ctx, const struct rev_record *rec, bool *ret, struct err *err)
{
	struct rev_record *last, *own, *end = NULL;
	int r;

	*ret = false;
	if (rec->r.aborted)
		return 0;
	r = revlog_last(d->rv->log, ctx, rec->r.path, &last, err);
	if (r == 0 && last && last->r.number != rec->r.number && last->r.after.where == REV_PREFIX) {
		r = revlog_at(d->rv->log, ctx, rec->r.number, &own, err);
		if (r == 0 && own)
			r = revlog_end_of_appends(d->rv->log, ctx, own, &end, err);
	}
	*ret = r == 0 && last && (last->r.number == rec->r.number || end == last);
	return r;
}

/* True when the bytes of its change are in the record. */
static bool has_data(const struct rev_record *rec)
{
	return (rec->r.after.where == REV_LOG && rec->r.after.held_by == 0) ||
	       (rec->r.after.where == REV_PREFIX && !rev_hash_is_set(&rec->piece));
}

/* What one record refers to. */
static int collect_one(struct redaction *d, struct ctx *ctx, const struct rev_record *rec, struct err *err)
{
	bool wanted = d->want->wanted(d->want->arg, rec->r.path), now;
	int r = is_now(d, ctx, rec, &now, err);

	if (r)
		return r;
	if (rec->r.before.where == REV_BLOB)
		add_ref(d, &rec->r.before.hash, rec, wanted, false);
	if (rec->r.after.where == REV_BLOB)
		add_ref(d, &rec->r.after.hash, rec, wanted, now);
	add_ref(d, &rec->piece, rec, wanted, now);
	if (rec->r.before.where == REV_LOG && rec->r.before.held_by < revlog_first(d->rv->log)) {
		struct rev_hash held = content_held_hash(&rec->r.before);

		add_ref(d, &held, rec, wanted, false);
	}
	if (wanted && (rec->r.before.where == REV_HERE || has_data(rec))) {
		HEAP_ROOM(d->lines, d->line_count, d->line_cap);
		d->lines[d->line_count++] = rec->r.number;
	}
	return 0;
}

static int collect(struct redaction *d, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct revlog *log = d->rv->log;
	struct ctx ctx = *d->ctx;
	int r = 0;

	ctx.arena = arena;
	revlog_lock(log);
	for (uint64_t n = revlog_first(log); r == 0 && n && n <= revlog_head(log); n++) {
		struct rev_record rec;
		bool has;

		arena_reset(arena);
		r = revlog_get(log, &ctx, n, &rec, &has, err);
		if (r == 0 && has)
			r = collect_one(d, &ctx, &rec, err);
	}
	revlog_unlock(log);
	if (d->count)
		qsort(d->refs, d->count, sizeof(*d->refs), ref_cmp);
	return r;
}

/* Removes the blob if it must go. `refs` are all references to it. */
static int inspect(struct redaction *d, const struct store_entry *e, const struct ref *refs, size_t count,
		   struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = *d->ctx;
	bool wanted = count == 0, now = false;
	struct store_cond any = {0};
	struct str bytes;
	int r;

	for (size_t i = 0; i < count; i++) {
		wanted = wanted || refs[i].wanted;
		now = now || refs[i].now;
	}
	if (!wanted || e->stat.size > LOOK_MAX)
		return 0;
	ctx.arena = arena;
	r = store_read(d->rv->meta, &ctx, e->path, STORE_WHOLE, LOOK_MAX, &bytes, NULL, err);
	if (r)
		return r == -ERR_NOT_FOUND ? 0 : r;
	if (!d->want->holds(d->want->arg, bytes))
		return 0;
	if (now || (count == 0 && e->stat.mtime_ns > d->young_ns)) {
		d->ret->left += now;
		d->ret->waiting += !now;
		return 0;
	}
	/* the mark says that it is missing on purpose */
	if (!d->want->dry_run && count && str_starts(e->path.s, STR("blobs/")))
		r = store_write(d->rv->meta, &ctx,
				(struct wpath){arena_printf(arena, "gone/%.*s", STR_ARG(str_from(e->path.s, 6)))},
				STR(""), any, NULL, err);
	if (r == 0 && !d->want->dry_run)
		r = store_remove(d->rv->meta, &ctx, e->path, false, any, NULL, err);
	if (r)
		return r == -ERR_NOT_FOUND ? 0 : r;
	d->ret->contents++;
	for (size_t i = 0; i < count; i++) {
		HEAP_ROOM(d->numbers, d->number_count, d->number_cap);
		d->numbers[d->number_count++] = refs[i].number;
	}
	if (!d->want->dry_run)
		d->rv->blob_bytes -= e->stat.size < d->rv->blob_bytes ? e->stat.size : d->rv->blob_bytes;
	return 0;
}

static int look_at_blob(struct redaction *d, const struct store_entry *e, struct err *err)
{
	struct ref key = {0}, *found;
	size_t from, to;

	if (!content_blob_hash(e->path.s, &key.hash))
		return inspect(d, e, NULL, 0, err); /* an unfinished one */
	found = d->count ? bsearch(&key, d->refs, d->count, sizeof(key), ref_cmp) : NULL;
	if (!found)
		return inspect(d, e, NULL, 0, err);
	from = to = (size_t)(found - d->refs);
	while (from && ref_cmp(&d->refs[from - 1], &key) == 0)
		from--;
	while (to < d->count && ref_cmp(&d->refs[to], &key) == 0)
		to++;
	return inspect(d, e, d->refs + from, to - from, err);
}

static int look_at_blobs(struct redaction *d, struct err *err)
{
	LIST_PAGES_SCOPE struct list_pages pages = {
		.store = d->rv->meta, .dir = {STR("blobs")}, .req = {.recursive = true, .limit = 1000}, .ctx = *d->ctx};
	int r;

	while ((r = list_pages_next(&pages, err)) > 0)
		for (size_t i = 0; i < pages.page.count; i++) {
			r = look_at_blob(d, &pages.page.entries[i], err);
			if (r)
				return r == -ERR_NOT_FOUND ? 0 : r;
		}
	return r == -ERR_NOT_FOUND ? 0 : r;
}

/* Contents in the log itself, from before they were stored as blobs: counted, so that nobody believes them gone. */
static int look_at_lines(struct redaction *d, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < d->line_count; i++) {
		ARENA_SCOPE struct arena *arena = arena_new();
		struct ctx ctx = *d->ctx;
		struct rev_record *rec;
		struct str bytes;
		bool holds = false;

		ctx.arena = arena;
		revlog_lock(d->rv->log);
		r = revlog_at(d->rv->log, &ctx, d->lines[i], &rec, err);
		revlog_unlock(d->rv->log);
		if (r == 0 && !rec)
			continue;
		if (r == 0 && rec->r.before.where == REV_HERE) {
			r = revlog_read_was(d->rv->log, &ctx, rec, &bytes, err);
			holds = r == 0 && d->want->holds(d->want->arg, bytes);
		}
		if (r == 0 && !holds && has_data(rec)) {
			r = revlog_read_data(d->rv->log, &ctx, rec, &bytes, err);
			holds = r == 0 && d->want->holds(d->want->arg, bytes);
		}
		d->ret->left += holds;
		r = r == -ERR_NOT_FOUND ? 0 : r;
	}
	return r;
}

int revisions_redact(struct store *revisions, struct ctx *ctx, const struct rev_redact *want, struct rev_redacted *ret,
		     struct err *err)
{
	struct redaction d = {.rv = revisions_of(revisions), .ctx = ctx, .want = want, .ret = ret};
	REV_PINNED struct revisions *pin = revisions_pin(d.rv);
	uint64_t head;
	int r = revisions_head(revisions, ctx, &head, err);

	*ret = (struct rev_redacted){0};
	if (r)
		return r;
	d.young_ns = want->grace_ns < 0 ? INT64_MAX
					: clock_real_ns() - (want->grace_ns ? want->grace_ns : REV_BLOB_GRACE_NS);
	r = collect(&d, err);
	if (r == 0)
		r = look_at_blobs(&d, err);
	if (r == 0)
		r = look_at_lines(&d, err);
	if (d.number_count)
		qsort(d.numbers, d.number_count, sizeof(*d.numbers), number_cmp);
	for (size_t i = 0; i < d.number_count; i++)
		ret->revisions += i == 0 || d.numbers[i] != d.numbers[i - 1];
	free(d.refs);
	free(d.numbers);
	free(d.lines);
	return r;
}
