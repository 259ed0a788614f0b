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
	uint64_t (*slots)[2]; /* zero: free */
	size_t count, cap;
};

static uint64_t *set_slot(const struct hash_set *set, const uint64_t hash[2])
{
	size_t i = (size_t)hash[0] & (set->cap - 1);

	while ((set->slots[i][0] || set->slots[i][1]) && !(set->slots[i][0] == hash[0] && set->slots[i][1] == hash[1]))
		i = (i + 1) & (set->cap - 1);
	return set->slots[i];
}

/* Returns true when the hash is new. */
static bool set_add(struct hash_set *set, const uint64_t hash[2])
{
	uint64_t *slot;

	if (set->count * 2 >= set->cap) {
		struct hash_set grown = {.cap = set->cap ? set->cap * 2 : 1024};

		grown.slots = xcalloc(grown.cap, sizeof(*grown.slots));
		for (size_t i = 0; i < set->cap; i++)
			if (set->slots[i][0] || set->slots[i][1])
				memcpy(set_slot(&grown, set->slots[i]), set->slots[i], sizeof(*grown.slots));
		grown.count = set->count;
		free(set->slots);
		*set = grown;
	}
	slot = set_slot(set, hash);
	if (slot[0] || slot[1])
		return false;
	memcpy(slot, hash, sizeof(*set->slots));
	set->count++;
	return true;
}

static bool set_has(const struct hash_set *set, const uint64_t hash[2])
{
	uint64_t *slot = set->cap ? set_slot(set, hash) : NULL;

	return slot && (slot[0] || slot[1]);
}

/* --- which revisions go --- */

static uint64_t blob_cost(struct hash_set *seen, const struct rev_state *s)
{
	return s->exists && s->where == REV_BLOB && set_add(seen, s->hash) ? s->size : 0;
}

/* The oldest number that the limits allow to keep. The log's lock is held. */
static uint64_t by_limits(struct revlog *log, const struct rev_limits *limits)
{
	struct hash_set seen = {0};
	uint64_t count = 0, bytes = 0, number = revlog_head(log);
	int64_t oldest = limits->age_ns ? clock_real_ns() - limits->age_ns : INT64_MIN;

	if (!limits->revisions && !limits->bytes && !limits->age_ns)
		return revlog_first(log);
	for (; number >= revlog_first(log) && number; number--) {
		struct rev_record *rec = revlog_at(log, number);

		if (!rec)
			continue;
		count += !rec->r.aborted;
		bytes += rec->length + NOTE_BYTES + blob_cost(&seen, &rec->r.before) + blob_cost(&seen, &rec->r.after);
		if ((limits->revisions && count > limits->revisions) || (limits->bytes && bytes > limits->bytes) ||
		    rec->r.time_ns < oldest)
			break;
	}
	free(seen.slots);
	return number + 1;
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
static uint64_t choose(struct revlog *log, struct ctx *ctx, const struct rev_retain *want, struct rev_retained *ret)
{
	uint64_t horizon = by_limits(log, &want->limits), first = revlog_first(log);

	for (size_t i = 0; i < want->pin_count; i++)
		hold_at(want->pins[i], STR_NONE, &horizon, ret);
	for (size_t i = 0; i < log->checkpoint_count; i++)
		hold_at(log->checkpoints[i].number, log->checkpoints[i].name, &horizon, ret);
	ret->held_by = ret->held_by.len ? arena_str(ctx->arena, ret->held_by) : STR_NONE;
	for (uint64_t n = first; n < horizon; n++) {
		struct rev_record *rec = revlog_at(log, n);

		if (rec && !rec->done)
			horizon = n;
	}
	return horizon < first ? first : horizon;
}

/* --- what is still referred to --- */

struct plan {
	struct revisions *rv;
	struct ctx *ctx;
	uint64_t horizon, first;
	struct rev_record **old; /* those that go, by number - first */
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
	struct ctx ctx = *p->ctx;
	struct rev_state kept = {0};
	struct rev_record *holder = NULL;
	struct store_stat stat;
	struct str data;
	int r;

	ctx.arena = arena;
	if (store_stat(p->rv->meta, &ctx, content_blob_path(arena, s->hash), &stat, err) == 0)
		return 0;
	if (s->held_by >= p->first && s->held_by < p->horizon)
		holder = p->old[s->held_by - p->first];
	if (p->dry_run) {
		p->carried += holder ? s->size : 0;
		return 0;
	}
	r = holder ? revlog_read_data(p->rv->log, &ctx, holder, &data, err)
		   : revlog_read_dropped(p->rv->log, &ctx, s->held_by, &data, err);
	if (r == -ERR_NOT_FOUND)
		return 0; /* another process is doing the same, and was faster */
	p->carried += s->size;
	return r ? r : content_keep_bytes(p->rv, &ctx, data, &kept, err);
}

/* Copies the states that refer to blobs or to records that go; the others need nothing. */
static struct rev_state *collect_states(struct plan *p, size_t *ret_count)
{
	struct revlog *log = p->rv->log;
	struct rev_state *list;
	size_t count = 0;

	revlog_lock(log);
	list = xcalloc(3 * log->record_count + 1, sizeof(*list));
	for (uint64_t n = p->horizon; n <= revlog_head(log); n++) {
		struct rev_record *rec = revlog_at(log, n);
		const struct rev_state *two[2] = {rec ? &rec->r.before : NULL, rec ? &rec->r.after : NULL};

		for (int i = 0; rec && i < 2; i++)
			if (two[i]->exists &&
			    (two[i]->where == REV_BLOB ||
			     (two[i]->where == REV_LOG && two[i]->held_by && two[i]->held_by < p->horizon)))
				list[count++] = *two[i];
		if (rec && (rec->piece[0] || rec->piece[1]))
			list[count++] = (struct rev_state){.where = REV_BLOB, .hash = {rec->piece[0], rec->piece[1]}};
	}
	revlog_unlock(log);
	*ret_count = count;
	return list;
}

static int keep_used(struct plan *p, struct err *err)
{
	size_t count;
	struct rev_state *list = collect_states(p, &count);
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++)
		if (set_add(&p->used, list[i].hash) && list[i].where == REV_LOG)
			r = carry_over(p, &list[i], err);
	free(list);
	return r;
}

/* --- blobs --- */

static void sweep_entry(struct plan *p, const struct store_entry *e)
{
	struct store_cond same = {.kind = STORE_VERSION, .version = e->stat.version};
	bool is_blob;
	uint64_t hash[2];
	struct err ignored;

	is_blob = content_blob_hash(e->path.s, hash);
	if (is_blob && set_has(&p->used, hash))
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
	return line_number(line, "rev") >= horizon || line_number(line, "done") >= horizon ||
	       line_number(line, "abort") >= horizon || line_number(line, "seal");
}

static void write_rest(struct buf *out, struct str bytes, uint64_t horizon)
{
	struct str line;

	buf_printf(out, "{\"horizon\":%llu", (unsigned long long)horizon);
	rev_line_finish(out, 0);
	while (str_cut(&bytes, '\n', &line)) {
		if (!line_stays(line, horizon))
			continue;
		buf_add(out, line);
		buf_char(out, '\n');
	}
}

/* Updates the places of the lines that stayed. */
static void set_places(struct revlog *log, size_t index, struct str bytes)
{
	uint64_t at = 0;
	struct str line;

	revlog_lock(log);
	log->segments[index].size = bytes.len;
	while (str_cut(&bytes, '\n', &line)) {
		struct rev_record *rec = revlog_at(log, line_number(line, "rev"));

		if (rec && rec->segment == index) {
			rec->offset = at;
			rec->length = (uint32_t)line.len;
		}
		at += line.len + 1;
	}
	revlog_unlock(log);
}

static int cut_segment(struct plan *p, size_t index, uint64_t first, struct err *err)
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
	write_rest(&rest, bytes, p->horizon);
	if (rest.overflow || bytes.len < STUB_BYTES || bytes.len < rest.len + CUT_MIN)
		return 0;
	if (!p->dry_run) {
		struct store_cond same = {.kind = STORE_VERSION, .version = stat.version};

		r = store_write(p->rv->meta, &ctx, path, buf_str(&rest), same, NULL, err);
		if (r)
			return r == -ERR_CONFLICT ? 0 : r; /* another process is doing the same */
		set_places(p->rv->log, index, buf_str(&rest));
	}
	p->ret->freed += bytes.len - rest.len;
	return 0;
}

static int cut_segments(struct plan *p, struct err *err)
{
	struct revlog *log = p->rv->log;
	int r = 0;

	if (p->rv->journal)
		return p->dry_run ? 0 : revlog_cut(log, p->ctx, p->horizon, err);
	for (size_t i = 0; r == 0; i++) {
		uint64_t first;
		bool cut;

		revlog_lock(log);
		cut = i < log->segment_count && log->segments[i].first < p->horizon;
		first = cut ? log->segments[i].first : 0;
		cut = cut && (log->segments[i].sealed || p->dry_run);
		revlog_unlock(log);
		if (!cut)
			break;
		r = cut_segment(p, i, first, err);
	}
	return r;
}

/* Removes segments with nothing left, lowest first, once they are too old to be the tail of any process. */
static void remove_stubs(struct plan *p)
{
	struct store_list_req req = {.recursive = true, .limit = 1000};
	struct store_page page;
	struct err ignored;

	if (store_list(p->rv->meta, p->ctx, (struct wpath){STR("log")}, &req, &page, &ignored))
		return;
	for (size_t i = 0; i + 1 < page.count; i++) {
		struct store_entry *e = &page.entries[i];
		struct store_cond same = {.kind = STORE_VERSION, .version = e->stat.version};

		if (e->stat.size >= STUB_BYTES || clock_real_ns() - e->stat.mtime_ns < STUB_AGE_NS ||
		    store_remove(p->rv->meta, p->ctx, e->path, false, same, NULL, &ignored))
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
	in_tail = log->segments[log->segment_count - 1].first < p->horizon;
	revlog_unlock(log);
	if (in_tail)
		r = revlog_seal(log, p->ctx, err);
	return r ? r : revlog_set_horizon(log, p->ctx, p->horizon, err);
}

static void remember_old(struct plan *p)
{
	p->old = xcalloc((size_t)(p->horizon - p->first) + 1, sizeof(struct rev_record *));
	for (uint64_t n = p->first; n < p->horizon; n++) {
		p->old[n - p->first] = revlog_at(p->rv->log, n);
		if (p->old[n - p->first] && p->rv->journal)
			p->ret->freed += p->old[n - p->first]->length + NOTE_BYTES;
		p->ret->dropped += p->old[n - p->first] && !p->old[n - p->first]->r.aborted;
	}
}

static int carry_out(struct plan *p, struct err *err)
{
	bool moves = p->horizon > p->first;
	int r = 0;

	if (moves && !p->dry_run)
		r = fence(p, err);
	if (r == 0)
		r = keep_used(p, err);
	if (r == 0)
		r = sweep_blobs(p, err);
	if (r == 0)
		r = cut_segments(p, err);
	if (r == 0 && !p->dry_run && !p->rv->journal)
		remove_stubs(p);
	if (r == 0 && moves && !p->dry_run) /* again: now others may count */
		r = revlog_set_horizon(p->rv->log, p->ctx, p->horizon, err);
	return r;
}

int revisions_retain(struct store *revisions, struct ctx *ctx, const struct rev_retain *want, struct rev_retained *ret,
		     struct err *err)
{
	struct plan p = {.rv = revisions_of(revisions), .ctx = ctx, .dry_run = want->dry_run, .ret = ret};
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
	p.horizon = choose(p.rv->log, ctx, want, ret);
	remember_old(&p);
	revlog_unlock(p.rv->log);
	r = carry_out(&p, err);
	free(p.old);
	free(p.used.slots);
	ret->freed -= p.carried < ret->freed ? p.carried : ret->freed;
	ret->first = p.horizon;
	ret->bytes =
		want->dry_run ? before - (ret->freed < before ? ret->freed : before) : revisions_kept_bytes(revisions);
	return r;
}
