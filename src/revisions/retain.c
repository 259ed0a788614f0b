/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Retention: history is cut at its old end. One number, the horizon, says which revisions go: those before it are not
 * kept. A revision can be read as long as the records after it are there (they say what was before them), so a
 * checkpoint or a fork at revision N keeps everything after N, and nothing before.
 *
 * Other processes have the log open: they know records that are about to go, and draft records that refer to them. So
 * the horizon is first written as a line in the log. Nobody can append without having read that line (an append is
 * conditional on the version of the tail), and a process that reads it forgets what is before the horizon and drafts
 * again. No record after that line refers to what goes, and all records before it are known. That is the whole
 * synchronisation: nobody waits.
 *
 * Then come these steps. Each is useful by itself, so a kill between two of them loses nothing:
 *  - what a kept record refers to in a dropped one becomes a blob (readers look for it there by its hash, and before it
 *    is there, in the segment that is not yet cut);
 *  - blobs that no kept record refers to are removed, if they are older than the grace: a blob is written before the
 *    record that refers to it. A writer that finds its blob already there relies on it only if it is young (content.c);
 *  - sealed segments are replaced by what is left of them, in place and atomically, on the condition that nobody else
 *    did. The tail is sealed first when it has to be cut. A reader with an old place in a segment that was cut finds
 *    another line there, or none, and looks for the new place (log.c). A segment that has nothing left keeps its seal
 *    for a day, so that a process whose tail it was finds the next one; then its file goes, lowest first.
 *
 * Rejected: writing the log again under another name and switching. It needs a switch that all processes see at once,
 * and twice the space.
 */
#include "base/clock.h"
#include "base/hash.h"
#include "base/limits.h"
#include "revisions/layer.h"
#include "revisions/log_internal.h"
#include "store/list_stream.h"

#define STUB_BYTES  256
#define STUB_AGE_NS (86400 * NS_PER_S)
#define CUT_MIN     KIB

/* --- a set of hashes --- */

struct hash_set {
	struct rev_hash *slots; /* zero: free */
	size_t count, cap;
};

static struct rev_hash *set_slot(const struct hash_set *set, const struct rev_hash *hash)
{
	size_t i = (size_t)hash->w[0] & (set->cap - 1);

	while (rev_hash_is_set(&set->slots[i]) && rev_hash_cmp(&set->slots[i], hash) != 0)
		i = (i + 1) & (set->cap - 1);
	return &set->slots[i];
}

/* Returns true when the hash is new. */
static bool set_add(struct hash_set *set, const struct rev_hash *hash)
{
	struct rev_hash *slot;

	if (set->count * 2 >= set->cap) {
		struct hash_set grown = {.cap = set->cap ? set->cap * 2 : 1024};

		grown.slots = xcalloc(grown.cap, sizeof(*grown.slots));
		for (size_t i = 0; i < set->cap; i++)
			if (rev_hash_is_set(&set->slots[i]))
				*set_slot(&grown, &set->slots[i]) = set->slots[i];
		grown.count = set->count;
		free(set->slots);
		*set = grown;
	}
	slot = set_slot(set, hash);
	if (rev_hash_is_set(slot))
		return false;
	*slot = *hash;
	set->count++;
	return true;
}

static bool set_has(const struct hash_set *set, const struct rev_hash *hash)
{
	return set->cap && rev_hash_is_set(set_slot(set, hash));
}

/* --- which revisions go --- */

static uint64_t blob_cost(struct hash_set *seen, const struct rev_state *s)
{
	return s->exists && s->where == REV_BLOB && set_add(seen, &s->hash) ? s->size : 0;
}

/* The oldest number that the limits allow to keep. The log's lock is held. */
static int by_limits(struct revlog *log, struct ctx *ctx, const struct rev_limits *limits, uint64_t *ret,
		     struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct hash_set seen = {0};
	uint64_t count = 0, bytes = 0, number = revlog_head(log);
	int64_t oldest = limits->age_ns ? clock_real_ns() - limits->age_ns : INT64_MIN;
	struct ctx c = *ctx;
	int r = 0;

	*ret = revlog_first(log);
	if (!limits->revisions && !limits->bytes && !limits->age_ns)
		return 0;
	c.arena = arena;
	for (; number >= revlog_first(log) && number; number--) {
		struct rev_record rec;
		bool has;

		arena_reset(arena);
		r = revlog_get(log, &c, number, &rec, &has, err);
		if (r && r != -ERR_CORRUPT)
			break;
		if (r || !has)
			continue;
		count += !rec.r.aborted;
		bytes += rec.place.length + NOTE_BYTES + blob_cost(&seen, &rec.r.before) +
			 blob_cost(&seen, &rec.r.after);
		if ((limits->revisions && count > limits->revisions) || (limits->bytes && bytes > limits->bytes) ||
		    rec.r.time_ns < oldest)
			break;
	}
	free(seen.slots);
	*ret = number + 1;
	return r == -ERR_CORRUPT ? 0 : r;
}

static void hold_at(uint64_t number, struct str name, uint64_t *horizon, struct rev_retained *ret)
{
	if (number + 1 >= *horizon)
		return;
	*horizon = number + 1;
	ret->held_at = number;
	ret->held_by = name;
}

/* The horizon: within the limits, but not past a pin, a checkpoint or a change that is not done. */
static int choose(struct revlog *log, struct ctx *ctx, const struct rev_retain *want, struct rev_retained *ret,
		  uint64_t *ret_horizon, struct err *err)
{
	uint64_t horizon, first = revlog_first(log);
	struct rev_checkpoint *marks;
	struct rev_record **open;
	size_t count;
	int r = by_limits(log, ctx, &want->limits, &horizon, err);

	if (r == 0)
		r = revlog_checkpoints(log, ctx, &marks, &count, err);
	if (r)
		return r;
	for (size_t i = 0; i < want->pin_count; i++)
		hold_at(want->pins[i], STR_NONE, &horizon, ret);
	for (size_t i = 0; i < count; i++)
		hold_at(marks[i].number, marks[i].name, &horizon, ret);
	open = revlog_open_records(log, ctx, &count);
	for (size_t i = 0; i < count; i++)
		if (open[i]->r.number < horizon)
			horizon = open[i]->r.number;
	*ret_horizon = horizon < first ? first : horizon;
	return 0;
}

/* --- what is still referred to --- */

struct plan {
	struct revisions *rv;
	struct ctx *ctx;
	uint64_t horizon, first;
	struct hash_set used;
	uint64_t carried; /* bytes of blobs that had to be made */
	int64_t young_ns; /* blobs written after this time stay */
	bool dry_run;
	struct rev_retained *ret;
};

/* Writes a content as a blob: it is in a record that goes, and a kept record refers to it. */
static int carry_over(struct plan *p, const struct rev_state *s, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct rev_hash hash = content_held_hash(s);
	struct ctx ctx = *p->ctx;
	struct store_stat stat;
	struct str data;
	int r;

	ctx.arena = arena;
	if (store_stat(p->rv->meta, &ctx, content_blob_path(arena, &hash), &stat, err) == 0)
		return 0;
	if (p->dry_run) {
		p->carried += s->held_by >= p->first ? s->size : 0;
		return 0;
	}
	r = revlog_read_dropped(p->rv->log, &ctx, s->held_by, &data, err);
	if (r == -ERR_NOT_FOUND)
		return 0; /* another process is doing the same, and was faster */
	p->carried += s->size;
	return r ? r : content_keep_as(p->rv, &ctx, data, &hash, err);
}

/* What a kept record refers to: a blob, or a record that goes. The lock is held. */
static int keep_state(struct plan *p, const struct rev_state *s, struct err *err)
{
	struct rev_hash hash = s->hash;
	int r = 0;

	if (!s->exists)
		return 0;
	if (s->where == REV_BLOB) {
		set_add(&p->used, &hash);
	} else if (s->where == REV_LOG && s->held_by && s->held_by < p->horizon) {
		hash = content_held_hash(s);
		if (set_add(&p->used, &hash)) {
			revlog_unlock(p->rv->log);
			r = carry_over(p, s, err);
			revlog_lock(p->rv->log);
		}
	}
	return r;
}

static int keep_used(struct plan *p, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct revlog *log = p->rv->log;
	struct ctx ctx = *p->ctx;
	int r = 0;

	ctx.arena = arena;
	revlog_lock(log);
	for (uint64_t n = p->horizon; r == 0 && n <= revlog_head(log); n++) {
		struct rev_record rec;
		bool has;

		arena_reset(arena);
		r = revlog_get(log, &ctx, n, &rec, &has, err);
		if (r || !has)
			continue;
		r = keep_state(p, &rec.r.before, err);
		if (r == 0)
			r = keep_state(p, &rec.r.after, err);
		if (r == 0 && rev_hash_is_set(&rec.piece))
			set_add(&p->used, &rec.piece);
	}
	revlog_unlock(log);
	return r;
}

/* --- blobs --- */

static void sweep_entry(struct plan *p, const struct store_entry *e)
{
	struct store_cond same = {.kind = STORE_VERSION, .version = e->stat.version};
	bool is_blob;
	struct rev_hash hash;
	struct err ignored;

	is_blob = content_blob_hash(e->path.s, &hash);
	if (is_blob && set_has(&p->used, &hash))
		return;
	if (e->stat.mtime_ns > (is_blob ? p->young_ns : clock_real_ns() - STUB_AGE_NS)) {
		p->ret->waiting += is_blob ? e->stat.size : 0;
		return;
	}
	if (!p->dry_run && store_remove(p->rv->meta, p->ctx, e->path, false, same, NULL, &ignored))
		return; /* it was written again since it was listed: it is needed */
	p->ret->freed += e->stat.size;
	p->ret->blobs++;
	if (!p->dry_run)
		p->rv->blob_bytes -= e->stat.size < p->rv->blob_bytes ? e->stat.size : p->rv->blob_bytes;
}

static int sweep_blobs(struct plan *p, struct err *err)
{
	LIST_PAGES_SCOPE struct list_pages pages = {
		.store = p->rv->meta, .dir = {STR("blobs")}, .req = {.recursive = true, .limit = 1000}, .ctx = *p->ctx};
	struct ctx *outer = p->ctx;
	int r;

	while ((r = list_pages_next(&pages, err)) > 0) {
		p->ctx = &pages.ctx;
		for (size_t i = 0; i < pages.page.count; i++)
			sweep_entry(p, &pages.page.entries[i]);
	}
	p->ctx = outer;
	return r == -ERR_NOT_FOUND ? 0 : r;
}

/* --- segments --- */

static bool line_stays(struct str line, uint64_t horizon)
{
	return rev_line_number(line, "rev") >= horizon || rev_line_number(line, "done") >= horizon ||
	       rev_line_number(line, "abort") >= horizon || rev_line_number(line, "seal") ||
	       rev_line_number(line, "lost") >= horizon;
}

/* What is left of a segment. A line that is damaged is not copied as if it were good: then nothing is cut. */
static bool write_rest(struct buf *out, uint64_t first, struct str bytes, uint64_t horizon)
{
	struct rev_seq from = {first, 0}, to = {first, 0};
	struct str line;

	rev_line_note(out, "horizon", horizon, &to);
	while (rev_line_next(&bytes, &line)) {
		size_t start = out->len;

		if (rev_line_number(line, "torn"))
			from = (struct rev_seq){first, from.line};
		if (!rev_line_is_whole(line, from)) {
			if (!bytes.len || !rev_line_number(str_first(bytes, 64), "torn"))
				return false;
			continue; /* it is void */
		}
		from.line++;
		if (!line_stays(line, horizon))
			continue;
		buf_add(out, str_first(line, line.len - REV_LINE_SUM));
		rev_line_finish(out, start, &to);
	}
	rev_line_mark_end(out);
	return true;
}

static int cut_segment(struct plan *p, uint64_t first, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = *p->ctx;
	struct wpath path = segment_path(arena, first);
	struct store_stat stat;
	struct str bytes;
	struct buf rest;
	int r;

	ctx.arena = arena;
	r = store_read(p->rv->meta, &ctx, path, STORE_WHOLE, SEGMENT_READ, &bytes, &stat, err);
	if (r)
		return r == -ERR_NOT_FOUND ? 0 : r;
	buf_init(&rest, arena, SEGMENT_READ + KIB);
	if (!write_rest(&rest, first, bytes, p->horizon))
		return 0;
	if (rest.overflow || bytes.len < STUB_BYTES || bytes.len < rest.len + CUT_MIN)
		return 0;
	if (!p->dry_run) {
		struct store_cond same = {.kind = STORE_VERSION, .version = stat.version};

		r = store_write(p->rv->meta, &ctx, path, buf_str(&rest), same, NULL, err);
		if (r)
			return r == -ERR_CONFLICT ? 0 : r; /* another process is doing the same */
	}
	p->ret->freed += bytes.len - rest.len;
	return 0;
}

static int cut_segments(struct plan *p, struct err *err)
{
	struct revlog *log = p->rv->log;
	struct segment *list;
	uint64_t tail;
	size_t count;
	int r;

	if (p->rv->journal)
		return p->dry_run ? 0 : revlog_cut(log, p->ctx, p->horizon, err);
	revlog_lock(log);
	tail = log->tail.first;
	revlog_unlock(log);
	r = segments_list(p->rv->meta, p->ctx, &list, &count, err);
	for (size_t i = 0; r == 0 && i < count && list[i].first < p->horizon; i++)
		if (list[i].first != tail || p->dry_run)
			r = cut_segment(p, list[i].first, err);
	return r;
}

/* Removes segments with nothing left, lowest first, once they are too old to be the tail of any process. */
static void remove_stubs(struct plan *p)
{
	struct segment *list;
	struct err ignored;
	size_t count;

	if (segments_list(p->rv->meta, p->ctx, &list, &count, &ignored))
		return;
	for (size_t i = 0; i + 1 < count; i++) {
		const struct store_stat *stat = &list[i].stat;
		struct store_cond same = {.kind = STORE_VERSION, .version = stat->version};

		if (stat->size >= STUB_BYTES || clock_real_ns() - stat->mtime_ns < STUB_AGE_NS ||
		    store_remove(p->rv->meta, p->ctx, segment_path(p->ctx->arena, list[i].first), false, same, NULL,
				 &ignored))
			break;
	}
}

/* --- all of it --- */

/* Writes the line that sets the horizon, in a segment that will not be cut. */
static int fence(struct plan *p, struct err *err)
{
	struct revlog *log = p->rv->log;
	bool in_tail;
	int r = 0;

	if (p->rv->journal)
		return revlog_set_horizon(log, p->ctx, p->horizon, err);

	revlog_lock(log);
	in_tail = log->tail.first < p->horizon;
	revlog_unlock(log);
	if (in_tail)
		r = revlog_seal(log, p->ctx, err);
	return r ? r : revlog_set_horizon(log, p->ctx, p->horizon, err);
}

/* Counts what goes. The lock is held. */
static int count_old(struct plan *p, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = *p->ctx;
	int r = 0;

	ctx.arena = arena;
	for (uint64_t n = p->first; r == 0 && n < p->horizon; n++) {
		struct rev_record rec;
		bool has;

		arena_reset(arena);
		r = revlog_get(p->rv->log, &ctx, n, &rec, &has, err);
		if (r == -ERR_CORRUPT) { /* it goes like the others */
			r = 0;
			continue;
		}
		if (r || !has)
			continue;
		if (p->rv->journal)
			p->ret->freed += rec.place.length + NOTE_BYTES;
		p->ret->dropped += !rec.r.aborted;
	}
	return r;
}

static int carry_out(struct plan *p, struct err *err)
{
	bool moves = p->horizon > p->first;
	int r = 0;

	if (moves && !p->dry_run && p->rv->log_syncs)
		r = store_sync(p->rv->base.inner, err); /* until then the log may be all that has a content */
	if (r == 0 && moves && !p->dry_run)
		r = fence(p, err);
	if (r == 0)
		r = keep_used(p, err);
	if (r == 0)
		r = sweep_blobs(p, err);
	if (r == 0)
		r = cut_segments(p, err);
	if (r == 0 && !p->dry_run && !p->rv->journal)
		remove_stubs(p);
	if (r == 0 && moves && !p->dry_run) {
		revlog_lock(p->rv->log);
		table_cut_runs(p->rv->log, p->ctx, p->horizon);
		revlog_unlock(p->rv->log);
		/* again: now others may count */
		r = revlog_set_horizon(p->rv->log, p->ctx, p->horizon, err);
	}
	return r;
}

int revisions_retain(struct store *revisions, struct ctx *ctx, const struct rev_retain *want, struct rev_retained *ret,
		     struct err *err)
{
	struct plan p = {.rv = revisions_of(revisions), .ctx = ctx, .dry_run = want->dry_run, .ret = ret};
	REV_PINNED struct revisions *pin = revisions_pin(p.rv);
	uint64_t before;
	int r;

	*ret = (struct rev_retained){.held_at = UINT64_MAX};
	/* measured from before the references are collected, however long that takes */
	p.young_ns = want->grace_ns < 0 ? INT64_MAX
					: clock_real_ns() - (want->grace_ns ? want->grace_ns : REV_BLOB_GRACE_NS);
	r = revisions_head(revisions, ctx, &ret->head, err);
	if (r)
		return r;
	before = revisions_kept_bytes(revisions);
	revlog_lock(p.rv->log);
	p.first = revlog_first(p.rv->log);
	r = choose(p.rv->log, ctx, want, ret, &p.horizon, err);
	if (r == 0)
		r = count_old(&p, err);
	revlog_unlock(p.rv->log);
	if (r == 0)
		r = carry_out(&p, err);
	free(p.used.slots);
	ret->freed -= p.carried < ret->freed ? p.carried : ret->freed;
	ret->first = p.horizon;
	ret->bytes =
		want->dry_run ? before - (ret->freed < before ? ret->freed : before) : revisions_kept_bytes(revisions);
	return r;
}
