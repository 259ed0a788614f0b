/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adding to the log: formatting and group commit. log_table.c has what is known of the log, log_read.c how it is read.
 *
 * Group commit. A durable append costs about as much for one record as for a hundred, so threads share it. There is no
 * thread for it: any thread may become the leader, which appends for everybody.
 *
 *  - submit() puts the caller's entry, which is on the caller's stack, at the end of the queue. If no thread leads, the
 *    caller leads; otherwise it is a follower. A follower waits on the condition variable of its entry, and is woken
 *    when its entry is finished, or when it is first in the queue and nobody leads: then it leads.
 *  - lead() takes entries from the front of the queue, up to BATCH_BYTES. The leader's own entry may be too far back to
 *    be among them; then it leads again, or waits, until its entry is finished.
 *  - lead_batch() numbers the records, formats them and appends them with one call to the store. The lock is released
 *    only around that call (append_tail, or add_entry for a journal) and while it backs off (let_pass). During that
 *    time other threads may add entries and notes and look at the table. But nobody else appends or takes in new lines
 *    while `leading` is set, so the end of the log stays where the leader has seen it.
 *  - finish() puts the result into each entry of the batch and wakes its thread. From then on the entry may be gone.
 *
 * Threads that wait for anything else (refresh, flush, new revisions) wait on `changed`.
 *
 * Other processes. There is no lock between processes: an append is made on the condition that the tail segment still
 * has the version that was read last (a journal: that its last entry is the last one known). A leader that was
 * overtaken takes in the lines it missed, numbers its batch again and tries again. A draft whose path has got a newer
 * record is stale by then: it is left out, and its caller gets ERR_CONFLICT and looks again.
 *
 * Notes. The lines "done" and "abort" wait in `notes` and are written in front of the next batch. If the process dies
 * before that, the next one finds out from the files (recover.c).
 */
#include "revisions/log.h"

#include <errno.h>
#include <time.h>

#include "base/clock.h"
#include "base/limits.h"
#include "revisions/line.h"
#include "revisions/log_internal.h"

#define BATCH_BYTES (8 * MIB)
/* A file of this size goes when the disk is full and something is to be removed: the record of that needs room. */
#define RESERVE_BYTES (32 * KIB)
/* For a batch of this size memory is reserved at once. */
#define RESERVE_FROM (256 * KIB)

uint64_t revlog_head(const struct revlog *log)
{
	return log->low + log->record_count - 1;
}

uint64_t revlog_first(const struct revlog *log)
{
	return log->first;
}

int revlog_keeps(const struct revlog *log, uint64_t number, struct err *err)
{
	if (log->first == 0 || number >= log->first - 1)
		return 0;
	return err_set(err, ERR_NOT_FOUND, "revision %llu is no longer kept; the oldest that can be read is %llu",
		       (unsigned long long)number, (unsigned long long)(log->first - 1));
}

void revlog_lock(struct revlog *log)
{
	pthread_mutex_lock(&log->lock);
}

void revlog_unlock(struct revlog *log)
{
	pthread_mutex_unlock(&log->lock);
}

void revlog_wait(struct revlog *log, int64_t deadline_ns)
{
	struct timespec until = clock_timespec(deadline_ns);

	pthread_cond_timedwait(&log->changed, &log->lock, &until);
}

bool revlog_is_settled(struct revlog *log, const struct rev_record *rec)
{
	struct rev_record *last = revlog_last_known(log, rec->r.path);

	return rec->done || rec->r.aborted || (last && last->r.number > rec->r.number);
}

bool revlog_is_done(struct revlog *log, const struct rev_record *rec)
{
	bool is_done;

	pthread_mutex_lock(&log->lock);
	is_done = rec->done;
	pthread_mutex_unlock(&log->lock);
	return is_done;
}

/* A tail segment that does not exist was not written yet, or it was filled, and retention has removed it since. Then it
   has removed all segments before it, the oldest first. So one that is still there, when it is looked for after the
   tail, says that there never was a tail. The lock is held. */
static bool tail_never_was(struct revlog *log, struct ctx *ctx)
{
	const struct tail *t = &log->tail;
	struct store_stat stat;
	struct err ignored;

	return !t->exists && t->before &&
	       store_stat(log->meta, ctx, segment_path(ctx->arena, t->before), &stat, &ignored) == 0;
}

/* True when another process may have appended. The lock is held. */
static bool tail_changed(struct revlog *log)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx c = {.arena = arena};
	struct tail *t = &log->tail;
	struct store_stat stat;
	struct err ignored;
	int there;

	if (log->journal.at)
		return true;
	there = store_stat(log->meta, &c, segment_path(arena, t->first), &stat, &ignored);
	return (there == 0 && !(t->exists && str_eq(stat.version, str_n(t->version, t->version_len)))) ||
	       (there == -ERR_NOT_FOUND && (t->first > 1 || t->exists) && !tail_never_was(log, &c));
}

int revlog_refresh(struct revlog *log, struct ctx *ctx, struct err *err)
{
	int r = 0;

	pthread_mutex_lock(&log->lock);
	while (log->leading) /* what is being appended now would look like another process's lines */
		pthread_cond_wait(&log->changed, &log->lock);
	if (log_end_is_damaged(log) || tail_changed(log)) {
		r = log_take_tail(log, ctx, err);
		if (r == -ERR_CORRUPT && log->damage.cut)
			r = 0; /* what is whole can be read, but nothing can be added */
		pthread_cond_broadcast(&log->changed);
	}
	pthread_mutex_unlock(&log->lock);
	return r;
}

/* Looks for lines about the record among those that are not taken in. While this process appends, its own lines are
   among them: they are about other paths. *ret_seal: the log continues in another segment. */
static bool bytes_settle(struct arena *arena, struct str bytes, const struct rev_record *rec, bool *ret_seal)
{
	struct str line;

	while (rev_line_next(&bytes, &line)) {
		struct rev_line parsed;

		*ret_seal = *ret_seal || rev_line_number(line, "seal");
		if (rev_line_number(line, "done") == rec->r.number || rev_line_number(line, "abort") == rec->r.number)
			return true;
		if (rev_line_number(line, "rev") > rec->r.number && rev_line_parse(arena, line, &parsed) &&
		    str_eq(parsed.record.r.path.s, rec->r.path.s))
			return true;
	}
	return false;
}

/* While another thread appends, nothing can be taken in, and to wait for it would take as long as a sync: so the new
   bytes are only looked at. Everything that cannot be read counts as settled; then the caller looks at the file. */
bool revlog_is_open(struct revlog *log, struct ctx *ctx, const struct rev_record *rec)
{
	bool settled, seal = false;
	struct err ignored;

	pthread_mutex_lock(&log->lock);
	settled = revlog_is_settled(log, rec);
	if (!settled && tail_changed(log)) {
		struct store_range rest = {log->tail.parsed, UINT64_MAX};
		struct str bytes = STR_NONE;

		if (log->leading)
			settled = store_read(log->meta, ctx, segment_path(ctx->arena, log->tail.first), rest,
					     SEGMENT_READ, &bytes, NULL, &ignored) != 0 ||
				  bytes_settle(ctx->arena, bytes, rec, &seal);
		while (seal && !settled && log->leading)
			pthread_cond_wait(&log->changed, &log->lock);
		if (!settled && !log->leading)
			settled = log_take_tail(log, ctx, &ignored) != 0 || revlog_is_settled(log, rec);
	}
	pthread_mutex_unlock(&log->lock);
	return !settled;
}

int revlog_open(const struct revlog_place *place, struct ctx *ctx, struct revlog **ret_log, struct err *err)
{
	struct revlog *log = xcalloc(1, sizeof(*log));
	pthread_condattr_t attr;
	int r;

	log->meta = place->meta;
	log->run_store = place->runs;
	log->booted = place->booted;
	table_init(log);
	log->journal = (struct log_journal){.at = place->at, .path.s = arena_str(log->names, place->journal.s)};
	if (place->at && place->at != place->meta) { /* in meta: the files are elsewhere */
		log->journal.one_step = store_can(place->at, STORE_ONE_STEP);
		log->journal.write_step = store_can(place->at, STORE_WRITE_STEP);
	}
	pthread_mutex_init(&log->journal.kept.lock, NULL);
	log->batch = arena_new();
	log->queue_end = &log->queue;
	buf_init(&log->notes, NULL, BATCH_MAX);
	buf_init(&log->window.bytes, NULL, SEGMENT_READ);
	pthread_mutex_init(&log->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&log->changed, &attr);
	pthread_condattr_destroy(&attr);
	if (log->booted && log->run_store) /* a power cut may have left anything of it */
		runs_remove_all(log->run_store, ctx);
	r = log_load(log, ctx, err);
	if (r) {
		revlog_close(log, NULL);
		return err_prefix(err, "the revision log");
	}
	if (place->known_end > revlog_head(log))
		log_lose_end(log, place->known_end);
	*ret_log = log;
	return 0;
}

void revlog_close(struct revlog *log, struct ctx *ctx)
{
	if (ctx)
		table_spill_at_close(log, ctx);
	journal_release(&log->journal);
	table_free(log);
	arena_destroy(log->batch);
	buf_release(&log->notes);
	pthread_mutex_destroy(&log->lock);
	pthread_cond_destroy(&log->changed);
	free(log);
}

/* --- appending --- */

/* Its sum comes when it is written to the log. */
static void write_note(struct buf *out, const char *kind, uint64_t number, struct str version)
{
	buf_lit(out, "{\"");
	buf_add(out, str_of(kind));
	buf_lit(out, "\":");
	buf_u64(out, number);
	if (version.len) {
		buf_lit(out, ",\"version\":");
		jv_write_string(out, version);
	}
	buf_char(out, '\n');
}

/* A note that has no room is left out. Then recovery finds out from the file. */
static void add_note(struct revlog *log, const char *kind, uint64_t number, struct str version)
{
	size_t start = log->notes.len;

	write_note(&log->notes, kind, number, version);
	if (log->notes.overflow) {
		log->notes.len = start;
		log->notes.overflow = false;
	}
}

/* After this the entry belongs to the thread that submitted it, which may return at once. */
static void finish(struct entry *e, int result, const struct err *why)
{
	e->result = result;
	if (result)
		e->err = *why;
	if (result == 0 && e->stale)
		e->result = err_set(&e->err, ERR_CONFLICT, "the path changed before its record was logged");
	e->finished = true;
	pthread_cond_signal(&e->wake);
}

/* Nobody leads from now on: wakes the first in the queue, which leads next, and all who wait for the log to change. */
static void stop_leading(struct revlog *log)
{
	log->leading = false;
	if (log->queue)
		pthread_cond_signal(&log->queue->wake);
	pthread_cond_broadcast(&log->changed);
}

/* True when the path's newest record is not the one that the drafter saw. All that came since is in memory. */
static bool is_newer(struct revlog *log, struct wpath path, uint64_t base)
{
	struct rev_record *last = revlog_last_known(log, path);

	if (last)
		return last->r.number != base;
	return base >= log->low || (base && base < log->first); /* it was aborted, or is no longer kept */
}

/* A draft is stale when its path has got a newer record than the drafter saw. */
static bool is_stale(struct revlog *log, const struct entry *e)
{
	for (size_t i = 0; i < e->count; i++) {
		const struct rev_draft *d = &e->drafts[i];

		if (is_newer(log, d->path, d->base) ||
		    (d->op == REV_COPY && is_newer(log, (struct wpath){d->other}, d->other_base)) ||
		    (d->first_seen && d->first_seen < log->first)) /* what it refers to may no longer be kept */
			return true;
	}
	return false;
}

/* A helper has made the change or is about to, or its path has been changed again; or what was in its way may be gone.
 */
static bool any_settled(struct revlog *log, const struct entry *e)
{
	if (e->obstacle && is_newer(log, e->obstacle->path, e->obstacle->base))
		return true;
	for (size_t i = 0; i < e->of_count; i++)
		if (revlog_is_settled(log, e->of[i]) || (e->aborts && e->of[i]->helped && !e->even_helped))
			return true;
	return false;
}

void log_finish_lines(struct buf *out, struct str lines, struct rev_seq *seq)
{
	struct str line;

	while (rev_line_next(&lines, &line)) {
		size_t start = out->len;

		buf_add(out, line);
		rev_line_finish(out, start, seq);
	}
}

/* One line per draft into `out`, numbered from `next` on; returns the number after the last. */
static uint64_t write_entry(struct buf *out, const struct entry *e, uint64_t next, struct str made, struct rev_seq *seq)
{
	for (size_t i = 0; i < e->count; i++) {
		size_t start = out->len;

		buf_lit(out, "{\"rev\":");
		buf_u64(out, next++);
		if (e->count - i > 1) {
			buf_lit(out, ",\"left\":");
			buf_u64(out, e->count - i - 1);
		}
		if (made.ptr) {
			buf_lit(out, ",\"made\":");
			jv_write_string(out, e->drafts[i].made.ptr ? e->drafts[i].made : made);
		}
		buf_add(out, e->bodies[i]);
		rev_line_finish(out, start, seq);
	}
	log_finish_lines(out, e->note, seq);
	return next;
}

/* An empty line is what ends a torn one, and does not count. */
static uint32_t count_lines(struct str bytes)
{
	uint32_t count = 0;
	struct str line;

	while (rev_line_next(&bytes, &line))
		count += line.len > 0;
	return count;
}

/* The record of a draft that is in the log now. */
static struct rev_record *take_draft(struct revlog *log, const struct entry *e, const struct rev_draft *d)
{
	struct rev_record *rec = ARENA_NEW(log->memory, struct rev_record);

	rec->r = (struct revision){.number = revlog_head(log) + 1,
				   .time_ns = d->time_ns,
				   .op = d->op,
				   .path = d->path,
				   .other = d->other,
				   .before = d->before,
				   .after = d->after,
				   .actor = d->actor,
				   .own = true};
	if (d->piece.where == REV_BLOB)
		rec->piece = d->piece.hash;
	if (e->step && e->step->made) {
		rec->done = true;
		rec->r.after.version = !d->after.exists ? STR_NONE : d->made.ptr ? d->made : e->step->version;
	}
	return rec;
}

/* The lines are walked again only to learn where each one is. */
void log_take_batch(struct revlog *log, struct entry *taken, struct str bytes, struct rev_place place, size_t notes_len,
		    size_t notes_taken)
{
	struct str rest = str_from(bytes, notes_len), before = str_first(bytes, notes_len), line;

	place.line += count_lines(before);
	for (struct entry *e = taken; e; e = e->next) {
		struct str note = e->note;

		for (size_t i = 0; !e->stale && i < e->count && rev_line_next(&rest, &line); i++) {
			struct rev_record *rec = take_draft(log, e, &e->drafts[i]);

			rec->place = place;
			rec->place.length = (uint32_t)line.len;
			if (place.offset != REV_IN_JOURNAL)
				rec->place.offset += (uint32_t)(line.ptr - bytes.ptr);
			place.line++;
			table_keep_record(log, rec);
			table_add(log, rec);
			e->drafts[i].record = rec;
		}
		for (size_t i = 0; !e->stale && i < e->of_count; i++) {
			if (e->aborts) {
				table_unlink(log, e->of[i]);
				continue;
			}
			e->of[i]->done = true;
			e->of[i]->r.after.version =
				e->of[i]->r.after.exists ? table_keep(log, e->step->version) : STR_NONE;
		}
		while (!e->stale && rev_line_next(&note, &line)) {
			struct str same;

			rev_line_next(&rest, &same);
			place.line++;
		}
	}
	/* notes that were added during the append stay for the next one */
	if (notes_taken)
		memmove(log->notes.ptr, log->notes.ptr + notes_taken, log->notes.len - notes_taken);
	log->notes.len -= notes_taken;
}

static struct wpath reserve_path(void)
{
	return (struct wpath){STR("reserve")};
}

/* Makes the reserve, unless it is there. On a disk that is full there is none. */
static void make_reserve(struct revlog *log, struct ctx *ctx)
{
	struct store_stat stat;
	struct err ignored;

	if (log->has_reserve || !log->run_store || !store_can(log->run_store, STORE_LOCAL))
		return;
	log->has_reserve = true;
	if (store_stat(log->run_store, ctx, reserve_path(), &stat, &ignored) == -ERR_NOT_FOUND)
		store_write(log->run_store, ctx, reserve_path(),
			    str_n(arena_alloc(ctx->arena, RESERVE_BYTES), RESERVE_BYTES), (struct store_cond){0}, NULL,
			    &ignored);
}

static bool only_removes(const struct entry *taken)
{
	bool only = taken;

	for (const struct entry *e = taken; e; e = e->next)
		for (size_t i = 0; i < e->count; i++)
			only = only && e->drafts[i].op == REV_REMOVE;
	return only;
}

/* True when there is room again, for a batch that removes files and does nothing else. */
static bool use_reserve(struct revlog *log, const struct entry *taken)
{
	struct ctx ctx = {.arena = log->batch};
	struct err ignored;

	if (!only_removes(taken) || !log->run_store || !store_can(log->run_store, STORE_LOCAL))
		return false;
	log->has_reserve = false; /* it is made again with the next change of another kind */
	return store_remove(log->run_store, &ctx, reserve_path(), false, (struct store_cond){0}, NULL, &ignored) == 0;
}

/* Appends `out` at the known end of the tail. The lock is released during the calls to the store, so what they need
   is copied first. */
static int append_tail(struct revlog *log, struct str out, uint64_t *ret_offset, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};
	struct tail *t = &log->tail;
	struct wpath path = segment_path(arena, t->first);
	struct store_cond cond = {.kind = t->exists ? STORE_VERSION : STORE_ABSENT,
				  .version = arena_str(arena, str_n(t->version, t->version_len))};
	uint64_t size = t->size, first = t->first, lowest, next = 0;
	bool exists = t->exists;
	struct store_stat stat;
	int r = 0;

	pthread_mutex_unlock(&log->lock);
	/* A new segment: other processes may have filled it already, and retention may have removed it since. */
	if (!exists && first > 1)
		r = segments_find(log->meta, &ctx, first, &lowest, &next, err);
	if (r == 0 && next)
		r = err_set(err, ERR_CONFLICT, "the log continues in a later segment");
	if (r == 0)
		r = store_append(log->meta, &ctx, path, out, cond, &stat, err);
	pthread_mutex_lock(&log->lock);
	if (r)
		return r;
	tail_set_version(t, stat.version);
	*ret_offset = size;
	t->size = t->parsed = size + out.len;
	t->line += count_lines(out);
	tail_set_end(t, out);
	return 0;
}

void log_build_batch(struct revlog *log, struct entry *taken, struct str made, struct rev_seq seq, struct buf *out,
		     size_t *ret_notes_len)
{
	uint64_t next = revlog_head(log) + 1;
	size_t room = log->notes.len * 2;

	for (struct entry *e = taken; e; e = e->next)
		room += e->bytes + e->count * 64;
	if (room > RESERVE_FROM && room < BATCH_MAX / 2) /* a buffer that grows leaves its smaller forms behind */
		buf_reserve(out, room);
	log_finish_lines(out, buf_str(&log->notes), &seq);
	*ret_notes_len = out->len;
	for (struct entry *e = taken; e; e = e->next) {
		e->stale = e->of ? any_settled(log, e) : is_stale(log, e);
		if (!e->stale)
			next = write_entry(out, e, next, made, &seq);
	}
}

/* Builds what is appended to the tail segment. Returns true when the batch ends with the seal of the segment. */
static bool build_segment_batch(struct revlog *log, struct entry *taken, struct buf *out, size_t *ret_notes_len)
{
	struct tail *t = &log->tail;
	struct rev_seq seq = {t->first, t->line};
	uint64_t next = revlog_head(log) + 1;
	size_t prefix = 0;
	bool seal = false, wanted = false;

	if (t->size > t->parsed) { /* a killed writer left a part of its append */
		buf_char(out, '\n');
		rev_line_note(out, "torn", t->size - t->parsed + 1, &seq);
		prefix = out->len;
	}
	log_build_batch(log, taken, STR_NONE, seq, out, ret_notes_len);
	for (struct entry *e = taken; e; e = e->next) {
		next += e->stale ? 0 : e->count;
		seal = seal || e->seal;
		wanted = wanted || e->end_torn;
	}
	seal = (seal || t->size + out->len > SEGMENT_BYTES) && next > t->first;
	if (out->len == prefix && !seal && !wanted)
		out->len = 0;
	if (out->len == 0 && !seal)
		return false;
	if (seal) {
		seq = (struct rev_seq){t->first, t->line + count_lines(buf_str(out))};
		rev_line_note(out, "seal", next, &seq);
	}
	rev_line_mark_end(out);
	return seal;
}

/* A failed append may have reached the store after all (the answer was lost, or a sync failed). Its callers get an
   error, so records of it that are in the log are aborted. The lock is held. */
static void take_back(struct revlog *log, struct entry *taken, uint64_t next)
{
	struct ctx ctx = {.arena = log->batch};
	struct err ignored;

	if (log_take_tail(log, &ctx, &ignored))
		return;
	for (struct entry *e = taken; e; e = e->next)
		for (size_t i = 0; !e->stale && i < e->count; i++) {
			struct rev_record *rec = table_at(log, next++);

			if (rec && rec->r.time_ns == e->drafts[i].time_ns &&
			    str_eq(rec->r.path.s, e->drafts[i].path.s) && !rec->r.aborted) {
				table_unlink(log, rec);
				add_note(log, "abort", rec->r.number, STR_NONE);
			}
		}
}

/* Appends the notes and then the entries of `taken`, which may be empty. The lock is held, and released during the
   append. When another process was first, the batch is built again from what it appended. */
static int lead_batch(struct revlog *log, struct entry *taken, struct err *err)
{
	int r = -ERR_CONFLICT;

	if (log->journal.at)
		return journal_lead(log, taken, err);
	if (log_end_is_damaged(log)) {
		struct ctx ctx = {.arena = log->batch};

		r = log_take_tail(log, &ctx, err);
		if (r)
			return r;
		r = -ERR_CONFLICT;
	}
	for (int tries = 0; tries < APPEND_TRIES && (r == -ERR_CONFLICT || r == -ERR_EXISTS); tries++) {
		struct ctx ctx = {.arena = log->batch};
		uint64_t offset = 0, first;
		size_t notes_len, notes_taken = log->notes.len;
		uint32_t line;
		bool sealed;
		struct buf out;

		arena_reset(log->batch);
		if (tries) {
			r = log_take_tail(log, &ctx, err);
			if (r)
				return r;
		}
		first = log->tail.first;
		line = log->tail.line;
		buf_init(&out, log->batch, BATCH_MAX);
		sealed = build_segment_batch(log, taken, &out, &notes_len);
		if (out.len == 0)
			return 0;
		if (out.overflow)
			return err_set(
				err, ERR_TOO_LARGE,
				"the change touches too many files to be recorded as one; change only some of them");
		r = append_tail(log, buf_str(&out), &offset, err);
		if (r == -ERR_QUOTA && use_reserve(log, taken))
			r = -ERR_CONFLICT; /* again, with the room that there is now */
		if (r && r != -ERR_CONFLICT && r != -ERR_EXISTS)
			take_back(log, taken, revlog_head(log) + 1);
		if (r)
			continue;
		log_take_batch(log, taken, buf_str(&out), (struct rev_place){first, (uint32_t)offset, 0, line, 0},
			       notes_len, notes_taken);
		if (sealed)
			tail_start(log, revlog_head(log) + 1);
		if (!only_removes(taken))
			make_reserve(log, &ctx);
	}
	return r;
}

/* A change that is made with its note, and a group that is made with its records, have an entry of their own. */
static bool goes_alone(const struct entry *e)
{
	return e->of || (e->step && e->step->items);
}

/* Leads one batch: takes it from the front of the queue, appends it, and finishes its entries. The lock is held. */
static void lead(struct revlog *log)
{
	struct entry *taken = log->queue;
	struct entry **end = &taken;
	size_t bytes = 0;
	struct err err;
	int r;

	log->leading = true;
	while (*end &&
	       (bytes == 0 || (!goes_alone(taken) && !goes_alone(*end) && bytes + (*end)->bytes <= BATCH_BYTES))) {
		bytes += (*end)->bytes;
		end = &(*end)->next;
	}
	log->queue = *end;
	*end = NULL;
	if (!log->queue)
		log->queue_end = &log->queue;
	r = lead_batch(log, taken, &err);
	for (struct entry *next, *e = taken; e; e = next) {
		next = e->next;
		finish(e, r, &err);
	}
	stop_leading(log);
}

/* Queues the entry and returns when it is finished, by this thread or another one. */
static int submit(struct revlog *log, struct entry *e, struct err *err)
{
	pthread_cond_init(&e->wake, NULL);
	pthread_mutex_lock(&log->lock);
	*log->queue_end = e;
	log->queue_end = &e->next;
	while (!e->finished) {
		if (log->leading)
			pthread_cond_wait(&e->wake, &log->lock);
		else
			lead(log);
	}
	pthread_mutex_unlock(&log->lock);
	pthread_cond_destroy(&e->wake);
	if (e->result)
		*err = e->err;
	return e->result;
}

static int append(struct revlog *log, struct ctx *ctx, struct rev_draft *drafts, size_t count, struct rev_step *step,
		  struct err *err)
{
	struct entry e = {.drafts = drafts, .count = count, .step = step, .deadline_ns = ctx->deadline_ns};
	struct buf body;

	e.bodies = ARENA_ARRAY(ctx->arena, struct str, count);
	buf_init(&body, NULL, BATCH_MAX);
	for (size_t i = 0; i < count; i++) {
		body.len = 0;
		drafts[i].time_ns = clock_real_ns();
		drafts[i].actor = ctx->actor;
		rev_line_body(ctx->arena, &body, &drafts[i]);
		e.bodies[i] = arena_str(ctx->arena, buf_str(&body));
		e.bytes += body.len + 64;
	}
	buf_release(&body);
	return submit(log, &e, err);
}

int revlog_append(struct revlog *log, struct ctx *ctx, struct rev_draft *drafts, size_t count, struct err *err)
{
	return append(log, ctx, drafts, count, NULL, err);
}

int revlog_append_step(struct revlog *log, struct ctx *ctx, struct rev_draft *drafts, size_t count,
		       struct rev_step *step, struct err *err)
{
	return append(log, ctx, drafts, count, step, err);
}

int revlog_make(struct revlog *log, struct ctx *ctx, struct rev_record **records, size_t count, struct rev_step *step,
		struct err *err)
{
	struct entry e = {.of = records, .of_count = count, .step = step, .deadline_ns = ctx->deadline_ns};
	struct buf lines;

	buf_init(&lines, ctx->arena, BATCH_BYTES);
	for (size_t i = 0; i < count; i++)
		write_note(&lines, "done", records[i]->r.number, records[i]->r.after.exists ? step->version : STR_NONE);
	e.note = buf_str(&lines);
	e.bytes = e.note.len;
	return submit(log, &e, err);
}

int revlog_give_up(struct revlog *log, struct ctx *ctx, struct rev_record **records, size_t count,
		   const struct rev_obstacle *obstacle, bool even_helped, struct err *err)
{
	struct entry e = {
		.of = records, .of_count = count, .aborts = true, .even_helped = even_helped, .obstacle = obstacle};
	struct buf lines;

	buf_init(&lines, ctx->arena, BATCH_BYTES);
	for (size_t i = 0; i < count; i++)
		write_note(&lines, "abort", records[i]->r.number, STR_NONE);
	e.note = buf_str(&lines);
	e.bytes = e.note.len;
	return submit(log, &e, err);
}

int revlog_seal(struct revlog *log, struct ctx *ctx, struct err *err)
{
	struct entry e = {.seal = true};

	(void)ctx;
	return submit(log, &e, err);
}

int revlog_end_torn(struct revlog *log, struct err *err)
{
	struct entry e = {.end_torn = true};

	return log->journal.at ? 0 : submit(log, &e, err);
}

int revlog_set_horizon(struct revlog *log, struct ctx *ctx, uint64_t number, struct err *err)
{
	struct rev_checkpoint *marks;
	struct entry e = {0};
	struct buf lines;
	size_t count;
	int r;

	buf_init(&lines, ctx->arena, BATCH_BYTES);
	pthread_mutex_lock(&log->lock);
	r = revlog_checkpoints(log, ctx, &marks, &count, err);
	pthread_mutex_unlock(&log->lock);
	for (size_t i = 0; r == 0 && i < count; i++) { /* their lines may be in the part that is cut */
		rev_line_checkpoint(&lines, &marks[i]);
		buf_char(&lines, '\n');
	}
	buf_printf(&lines, "{\"horizon\":%llu\n", (unsigned long long)number);
	if (r == 0 && lines.overflow)
		r = err_set(err, ERR_TOO_LARGE, "there are too many checkpoints");
	if (r)
		return r;
	e.note = buf_str(&lines);
	e.bytes = lines.len;
	r = submit(log, &e, err);
	if (r == 0) {
		pthread_mutex_lock(&log->lock);
		table_forget(log, number);
		pthread_mutex_unlock(&log->lock);
	}
	return r;
}

/* Appends lines of another log to the tail segment. The lock is held. */
static int take_up_tail(struct revlog *log, struct ctx *ctx, struct str lines, struct err *err)
{
	struct rev_place place = {log->tail.first, 0, 0, log->tail.line, 0};
	struct rev_seq seq = {log->tail.first, log->tail.line};
	struct buf out;
	uint64_t offset;
	int r;

	buf_init(&out, ctx->arena, SEGMENT_READ);
	if (log->tail.size > log->tail.parsed) {
		buf_char(&out, '\n');
		rev_line_note(&out, "torn", log->tail.size - log->tail.parsed + 1, &seq);
	}
	log_finish_lines(&out, lines, &seq);
	rev_line_mark_end(&out);
	r = append_tail(log, buf_str(&out), &offset, err);
	if (r)
		return r;
	lines = buf_str(&out);
	if (lines.ptr[0] == '\n') { /* what ends the torn line is not one */
		lines = str_from(lines, 1);
		offset++;
	}
	place.offset = (uint32_t)offset;
	log_take_batch_lines(log, lines, place, true);
	return 0;
}

int revlog_take_up(struct revlog *log, struct ctx *ctx, struct str lines, struct err *err)
{
	bool full;
	int r;

	pthread_mutex_lock(&log->lock);
	while (log->leading)
		pthread_cond_wait(&log->changed, &log->lock);
	log->leading = true;
	r = log->journal.at ? journal_take_up(log, ctx, lines, err) : take_up_tail(log, ctx, lines, err);
	full = r == 0 && !log->journal.at && log->tail.size > SEGMENT_BYTES;
	stop_leading(log);
	pthread_mutex_unlock(&log->lock);
	return full ? revlog_seal(log, ctx, err) : r;
}

int revlog_help(struct revlog *log, struct ctx *ctx, struct rev_record *record, struct err *err)
{
	struct entry e = {.deadline_ns = ctx->deadline_ns};

	e.note = arena_printf(ctx->arena, "{\"help\":%llu\n", (unsigned long long)record->r.number);
	e.bytes = e.note.len;
	return submit(log, &e, err);
}

int revlog_checkpoint(struct revlog *log, struct ctx *ctx, struct str name, uint64_t number, struct err *err)
{
	struct rev_checkpoint c = {name, number, clock_real_ns()}, before;
	struct entry e = {0};
	struct buf line;
	bool has;
	int r;

	/* A name that is given again moves, whatever the clock says. */
	pthread_mutex_lock(&log->lock);
	r = checkpoint_find(log, ctx, name, &before, &has, err);
	pthread_mutex_unlock(&log->lock);
	if (r)
		return r;
	if (has && before.time_ns >= c.time_ns)
		c.time_ns = before.time_ns + 1;
	buf_init(&line, ctx->arena, 64 * KIB);
	rev_line_checkpoint(&line, &c);
	buf_char(&line, '\n');
	e.note = buf_str(&line);
	e.bytes = line.len;
	r = submit(log, &e, err);
	if (r == 0) {
		pthread_mutex_lock(&log->lock);
		checkpoint_put(log, &c);
		pthread_mutex_unlock(&log->lock);
	}
	return r;
}

void revlog_done(struct revlog *log, struct rev_record *record, struct str version)
{
	pthread_mutex_lock(&log->lock);
	if (!record->done) {
		record->r.after.version = table_keep(log, version);
		record->done = true;
		add_note(log, "done", record->r.number, version);
	}
	pthread_mutex_unlock(&log->lock);
}

void revlog_abort(struct revlog *log, struct rev_record *record)
{
	pthread_mutex_lock(&log->lock);
	if (!record->r.aborted && !record->in_runs) {
		table_unlink(log, record);
		add_note(log, "abort", record->r.number, STR_NONE);
	}
	pthread_mutex_unlock(&log->lock);
}

int revlog_flush(struct revlog *log, struct ctx *ctx, struct err *err)
{
	int r = 0;

	(void)ctx;
	pthread_mutex_lock(&log->lock);
	while (log->leading)
		pthread_cond_wait(&log->changed, &log->lock);
	if (log->notes.len) {
		log->leading = true;
		r = lead_batch(log, NULL, err);
		stop_leading(log);
	}
	pthread_mutex_unlock(&log->lock);
	return r;
}

/* Bytes of the segments before the tail. */
static uint64_t count_sealed(struct revlog *log)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};
	struct segment *list;
	struct err ignored;
	uint64_t bytes = 0;
	size_t count;

	if (segments_list(log->meta, &ctx, &list, &count, &ignored))
		return 0;
	for (size_t i = 0; i < count; i++)
		if (list[i].first != log->tail.first)
			bytes += list[i].stat.size;
	return bytes;
}

uint64_t revlog_bytes(struct revlog *log, bool *ret_recount)
{
	uint64_t bytes;

	pthread_mutex_lock(&log->lock);
	*ret_recount = log->recount;
	if (log->recount)
		log->sealed_bytes = count_sealed(log);
	log->recount = false;
	bytes = log->sealed_bytes + log->tail.size + log->journal.bytes;
	pthread_mutex_unlock(&log->lock);
	return bytes;
}

bool revlog_all_done(struct revlog *log, struct arena *arena, struct str *ret_name, uint64_t *ret_size,
		     uint64_t *ret_head)
{
	bool all = true;

	pthread_mutex_lock(&log->lock);
	for (size_t i = 0; i < log->record_count && all; i++)
		all = !log->records[i] || log->records[i]->done;
	*ret_name = str_from(segment_path(arena, log->tail.first).s, 4);
	*ret_size = log->tail.size;
	*ret_head = revlog_head(log);
	all = all && log->tail.exists && log->notes.len == 0 && !log->damage.found;
	pthread_mutex_unlock(&log->lock);
	return all;
}

bool revlog_one_step(const struct revlog *log)
{
	return log->journal.one_step;
}

bool revlog_steps(const struct revlog *log, enum journal_change change)
{
	return change != JOURNAL_ALONE &&
	       (log->journal.one_step || (log->journal.write_step && change == JOURNAL_WRITE));
}
