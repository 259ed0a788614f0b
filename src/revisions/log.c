/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log: formatting, group commit, and the table of records in memory.
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
 *
 * The table is rebuilt from the segments at open. A database next to the log was rejected: it would be a second truth.
 */
#include "revisions/log.h"

#include <errno.h>
#include <time.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/limits.h"
#include "revisions/line.h"
#include "revisions/log_internal.h"

#define SEGMENT_BYTES ((uint64_t)4 * 1024 * 1024)
#define BATCH_BYTES   (8 * MIB)
#define GAP_MAX       ((uint64_t)1 << 20) /* numbers that may be missing between two records */

/* --- the table; the lock is held --- */

static struct path_slot *slot_find(struct revlog *log, struct str path, bool add)
{
	uint64_t hash = hash_u64(path, 0);
	struct path_slot *slot;

	for (slot = log->slots[hash & (log->slot_cap - 1)]; slot; slot = slot->next)
		if (slot->hash == hash && str_eq(slot->path, path))
			return slot;
	if (!add)
		return NULL;
	if (log->slot_count >= log->slot_cap) {
		size_t cap = log->slot_cap * 2;
		struct path_slot **slots = xcalloc(cap, sizeof(struct path_slot *));

		for (size_t i = 0; i < log->slot_cap; i++) {
			struct path_slot *next;

			for (struct path_slot *s = log->slots[i]; s; s = next) {
				next = s->next;
				s->next = slots[s->hash & (cap - 1)];
				slots[s->hash & (cap - 1)] = s;
			}
		}
		free(log->slots);
		log->slots = slots;
		log->slot_cap = cap;
	}
	slot = ARENA_NEW(log->memory, struct path_slot);
	slot->hash = hash;
	slot->path = arena_str(log->memory, path);
	slot->next = log->slots[hash & (log->slot_cap - 1)];
	log->slots[hash & (log->slot_cap - 1)] = slot;
	log->slot_count++;
	return slot;
}

static void table_add(struct revlog *log, struct rev_record *rec)
{
	struct path_slot *slot = slot_find(log, rec->r.path.s, true);
	size_t index;

	rec->r.path.s = slot->path;
	index = (size_t)(rec->r.number - log->first);
	while (index >= log->record_cap) {
		log->record_cap = log->record_cap ? log->record_cap * 2 : 256;
		log->records = xrealloc(log->records, log->record_cap * sizeof(struct rev_record *));
	}
	for (size_t i = log->record_count; i < index; i++)
		log->records[i] = NULL;
	log->records[index] = rec;
	if (index >= log->record_count)
		log->record_count = index + 1;
	rec->prev = slot->last;
	if (rec->prev)
		rec->prev->next = rec;
	slot->last = rec;
}

static void table_unlink(struct revlog *log, struct rev_record *rec)
{
	struct path_slot *slot = slot_find(log, rec->r.path.s, false);

	if (rec->prev)
		rec->prev->next = rec->next;
	if (rec->next)
		rec->next->prev = rec->prev;
	else if (slot && slot->last == rec)
		slot->last = rec->prev;
	rec->prev = rec->next = NULL;
	rec->r.aborted = true;
	rec->done = true;
}

/* Forgets the records before `horizon`. Their memory stays, because another thread may be looking at one of them. */
static void forget_before(struct revlog *log, uint64_t horizon)
{
	size_t n;

	log->recount = true;
	if (horizon <= log->first)
		return;
	n = horizon - log->first < log->record_count ? (size_t)(horizon - log->first) : log->record_count;
	for (size_t i = 0; i < n; i++) {
		struct rev_record *rec = log->records[i];
		struct path_slot *slot;

		if (!rec || rec->r.aborted)
			continue;
		if (rec->next) {
			rec->next->prev = NULL;
			continue;
		}
		slot = slot_find(log, rec->r.path.s, false);
		if (slot && slot->last == rec)
			slot->last = NULL;
	}
	log->record_count -= n;
	if (log->record_count)
		memmove(log->records, log->records + n, log->record_count * sizeof(struct rev_record *));
	log->first = horizon;
	log->journal.bytes = 0;
	for (size_t i = 0; i < log->record_count; i++)
		if (log->records[i] && log->records[i]->segment == REV_IN_JOURNAL)
			log->journal.bytes += log->records[i]->length + NOTE_BYTES;
}

static struct str keep(struct revlog *log, struct str s)
{
	return s.len ? arena_str(log->memory, s) : STR_NONE;
}

static struct str keep_word(struct revlog *log, struct str s, struct str last)
{
	return str_eq(s, last) ? last : keep(log, s);
}

static void keep_record(struct revlog *log, struct rev_record *rec)
{
	rec->r.other = keep(log, rec->r.other);
	rec->r.before.version = keep(log, rec->r.before.version);
	rec->r.after.version = keep(log, rec->r.after.version);
	rec->r.actor.workspace = keep_word(log, rec->r.actor.workspace, log->last_actor.workspace);
	rec->r.actor.user = keep_word(log, rec->r.actor.user, log->last_actor.user);
	rec->r.actor.agent = keep_word(log, rec->r.actor.agent, log->last_actor.agent);
	rec->r.actor.session = keep_word(log, rec->r.actor.session, log->last_actor.session);
	rec->r.actor.call_id = keep_word(log, rec->r.actor.call_id, log->last_actor.call_id);
	log->last_actor = rec->r.actor;
}

uint64_t revlog_head(const struct revlog *log)
{
	return log->record_count ? log->first + log->record_count - 1 : log->first ? log->first - 1 : 0;
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

struct rev_record *revlog_last(struct revlog *log, struct wpath path)
{
	struct path_slot *slot = slot_find(log, path.s, false);

	return slot ? slot->last : NULL;
}

struct rev_record *revlog_at(struct revlog *log, uint64_t number)
{
	if (number < log->first || number - log->first >= log->record_count)
		return NULL;
	return log->records[number - log->first];
}

const struct rev_checkpoint *revlog_checkpoints(const struct revlog *log, size_t *ret_count)
{
	*ret_count = log->checkpoint_count;
	return log->checkpoints;
}

static void checkpoint_put(struct revlog *log, const struct rev_checkpoint *c)
{
	size_t i = 0;

	while (i < log->checkpoint_count && !str_eq(log->checkpoints[i].name, c->name))
		i++;
	if (i == log->checkpoint_count) {
		if (i == log->checkpoint_cap) {
			log->checkpoint_cap = i ? i * 2 : 16;
			log->checkpoints = xrealloc(log->checkpoints, log->checkpoint_cap * sizeof(*log->checkpoints));
		}
		log->checkpoint_count++;
		log->checkpoints[i] = (struct rev_checkpoint){.name = keep(log, c->name)};
	}
	if (c->time_ns < log->checkpoints[i].time_ns)
		return; /* retention wrote it again while it moved */
	log->checkpoints[i].number = c->number;
	log->checkpoints[i].time_ns = c->time_ns;
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

/* --- segments --- */

struct wpath segment_path(struct arena *arena, uint64_t first)
{
	return (struct wpath){arena_printf(arena, "log/%016llu.jsonl", (unsigned long long)first)};
}

static struct segment *segment_add(struct revlog *log, uint64_t first)
{
	struct segment *s;

	HEAP_ROOM(log->segments, log->segment_count, log->segment_cap);
	s = &log->segments[log->segment_count++];
	*s = (struct segment){.first = first};
	return s;
}

static void set_version(struct segment *s, struct str version)
{
	s->version_len = version.len < sizeof(s->version) ? version.len : sizeof(s->version);
	memcpy(s->version, version.ptr, s->version_len);
	s->exists = true;
}

static void set_end(struct segment *s, struct str taken)
{
	s->end_len = taken.len < SEGMENT_END ? taken.len : SEGMENT_END;
	memcpy(s->end, taken.ptr + taken.len - s->end_len, s->end_len);
}

static void set_place(struct revlog *log, struct rev_record *rec, uint64_t offset, size_t length)
{
	rec->segment = log->journal.begun ? REV_IN_JOURNAL : (uint32_t)(log->segment_count - 1);
	rec->offset = offset;
	rec->length = (uint32_t)length;
}

/* Adds a record that was read. It enters the table together with its group, when the last one of the group is there. */
static void take_record(struct revlog *log, const struct rev_record *parsed, uint64_t offset, size_t length)
{
	uint64_t number = parsed->r.number, head = log->group ? log->group_end->r.number : revlog_head(log);
	struct rev_record *rec, *next;

	if (log->group && (number != head + 1 || parsed->left + 1 != log->group_end->left)) {
		log->group = NULL; /* its end was never written */
		head = revlog_head(log);
	}
	if (number <= head) { /* known already: its segment was cut and is read again */
		rec = revlog_at(log, number);
		if (rec)
			set_place(log, rec, offset, length);
		return;
	}
	if (log->journal.skipped && !log->group) { /* what was in between is not kept */
		forget_before(log, number);
		log->journal.skipped = false;
		head = number - 1;
	}
	if (number - head > GAP_MAX)
		return;
	rec = ARENA_NEW(log->memory, struct rev_record);
	*rec = *parsed;
	set_place(log, rec, offset, length);
	keep_record(log, rec);
	rec->r.path.s = arena_str(log->memory, rec->r.path.s);
	if (log->group)
		log->group_end->next = rec;
	else
		log->group = rec;
	log->group_end = rec;
	if (rec->left)
		return;
	for (rec = log->group; rec; rec = next) {
		next = rec->next;
		rec->next = NULL;
		table_add(log, rec);
	}
	log->group = NULL;
}

static void take_line(struct revlog *log, struct arena *scratch, struct str line, uint64_t offset)
{
	struct segment *tail = &log->segments[log->segment_count - 1];
	struct rev_line parsed;
	struct rev_record *rec;

	if (!rev_line_parse(scratch, line, &parsed)) {
		log->group = NULL;
		return;
	}
	if (parsed.kind != REV_LINE_RECORD)
		log->group = NULL;
	switch (parsed.kind) {
	case REV_LINE_RECORD:
		take_record(log, &parsed.record, offset, line.len);
		break;
	case REV_LINE_DONE:
		rec = revlog_at(log, parsed.number);
		if (rec && !rec->done) {
			rec->r.after.version = keep(log, parsed.text);
			rec->done = true;
		}
		break;
	case REV_LINE_ABORT:
		rec = revlog_at(log, parsed.number);
		if (rec && !rec->r.aborted)
			table_unlink(log, rec);
		break;
	case REV_LINE_HELP:
		rec = revlog_at(log, parsed.number);
		if (rec)
			rec->helped = true;
		break;
	case REV_LINE_CHECKPOINT:
		checkpoint_put(log, &(struct rev_checkpoint){parsed.text, parsed.number, parsed.time_ns});
		break;
	case REV_LINE_SEAL:
		if (parsed.number > tail->first && !log->journal.begun) {
			tail->sealed = true;
			segment_add(log, parsed.number);
		}
		break;
	case REV_LINE_HORIZON:
		forget_before(log, parsed.number);
		break;
	}
}

int segments_find(struct store *meta, struct ctx *ctx, uint64_t above, uint64_t *ret_lowest, uint64_t *ret_next,
		  struct err *err)
{
	struct store_list_req req = {.recursive = true, .limit = STORE_PAGE_MAX};
	struct store_page page;

	*ret_lowest = *ret_next = 0;
	do {
		int r = store_list(meta, ctx, (struct wpath){STR("log")}, &req, &page, err);
		int64_t first;

		if (r)
			return r == -ERR_NOT_FOUND ? 0 : r;
		for (size_t i = 0; i < page.count; i++) { /* in order of their numbers */
			struct str name = str_from(page.entries[i].path.s, 4);

			if (name.len != 22 || !str_ends(name, STR(".jsonl")) ||
			    !str_to_i64(str_first(name, 16), &first) || first <= 0)
				continue;
			if (*ret_lowest == 0)
				*ret_lowest = (uint64_t)first;
			if (*ret_next == 0 && (uint64_t)first > above)
				*ret_next = (uint64_t)first;
		}
		req.after = page.next;
	} while (page.next.ptr);
	return 0;
}

/* The file of the tail segment does not exist. Usually it was not written yet. But if there are later segments, other
   processes have filled it and retention has removed it. If no earlier segment is left either, retention has removed
   everything that is known here. */
static int find_tail(struct revlog *log, struct ctx *ctx, bool *ret_found, struct err *err)
{
	uint64_t lowest, next;
	int r = segments_find(log->meta, ctx, log->segments[log->segment_count - 1].first, &lowest, &next, err);

	*ret_found = r == 0 && next;
	if (!*ret_found)
		return r;
	if (lowest == next)
		forget_before(log, next);
	segment_add(log, next);
	return 0;
}

/* Reads what the tail's file holds after the part that was taken in; *ret_at is where that begins. If the bytes before
   that place have changed, retention has cut the file, and it is read from its start. */
static int read_tail(struct revlog *log, struct ctx *ctx, uint64_t *ret_at, struct str *ret_rest, struct err *err)
{
	struct segment *s = &log->segments[log->segment_count - 1];
	struct wpath path = segment_path(ctx->arena, s->first);
	struct store_stat stat;
	int r;

	*ret_at = s->parsed;
	r = store_read(log->meta, ctx, path, (struct store_range){s->parsed - s->end_len, UINT64_MAX}, SEGMENT_READ,
		       ret_rest, &stat, err);
	if (r == 0 && str_starts(*ret_rest, str_n(s->end, s->end_len))) {
		*ret_rest = str_from(*ret_rest, s->end_len);
	} else if (r == 0) {
		*ret_at = 0;
		r = store_read(log->meta, ctx, path, STORE_WHOLE, SEGMENT_READ, ret_rest, &stat, err);
	}
	if (r)
		return r;
	set_version(s, stat.version);
	s->size = *ret_at + ret_rest->len;
	return 0;
}

/* Takes in every whole line of `bytes`, and returns how many bytes those lines have. */
static size_t take_lines(struct revlog *log, struct str bytes, uint64_t offset, bool in_segment)
{
	ARENA_SCOPE struct arena *scratch = arena_new();
	struct str rest = bytes;

	for (;;) {
		size_t end = str_find_char(rest, '\n');

		if (end == rest.len)
			return bytes.len - rest.len;
		arena_reset(scratch);
		take_line(log, scratch, str_first(rest, end),
			  offset + (in_segment ? (uint64_t)(bytes.len - rest.len) : 0));
		rest = str_from(rest, end + 1);
	}
}

void log_take_lines(struct revlog *log, struct str bytes, uint64_t offset)
{
	take_lines(log, bytes, offset, false);
}

/* Takes in what follows `parsed` in the tail segment, and the segments after it. The lock is held. */
static int take_segments(struct revlog *log, struct ctx *ctx, struct err *err)
{
	for (;;) {
		ARENA_SCOPE struct arena *arena = arena_new();
		struct ctx c = {.arena = arena, .actor = ctx->actor};
		size_t index = log->segment_count - 1, taken;
		struct str rest;
		bool found;
		uint64_t at;
		int r = read_tail(log, &c, &at, &rest, err);

		if (r == -ERR_NOT_FOUND) {
			r = find_tail(log, &c, &found, err);
			if (r || !found)
				return r;
			continue;
		}
		if (r)
			return r;
		taken = take_lines(log, rest, at, true);
		at += taken;
		log->segments[index].parsed = at;
		if (at == 0)
			log->segments[index].end_len = 0;
		else if (taken)
			set_end(&log->segments[index], str_first(rest, taken));
		if (!log->segments[index].sealed)
			return 0;
	}
}

static int take_tail(struct revlog *log, struct ctx *ctx, struct err *err)
{
	return log->journal.begun ? journal_take(log, ctx, err) : take_segments(log, ctx, err);
}

/* True when another process may have appended. The lock is held. */
static bool tail_changed(struct revlog *log)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx c = {.arena = arena};
	struct segment *s = &log->segments[log->segment_count - 1];
	struct store_stat stat;
	struct err ignored;
	int there;

	if (log->journal.at)
		return true;
	there = store_stat(log->meta, &c, segment_path(arena, s->first), &stat, &ignored);
	return (there == 0 && !(s->exists && str_eq(stat.version, str_n(s->version, s->version_len)))) ||
	       (there == -ERR_NOT_FOUND && s->first > 1);
}

int revlog_refresh(struct revlog *log, struct ctx *ctx, struct err *err)
{
	int r = 0;

	pthread_mutex_lock(&log->lock);
	while (log->leading) /* what is being appended now would look like another process's lines */
		pthread_cond_wait(&log->changed, &log->lock);
	if (tail_changed(log)) {
		r = take_tail(log, ctx, err);
		pthread_cond_broadcast(&log->changed);
	}
	pthread_mutex_unlock(&log->lock);
	return r;
}

static int load_all(struct revlog *log, struct ctx *ctx, struct err *err)
{
	uint64_t lowest, next;
	int r = segments_find(log->meta, ctx, 0, &lowest, &next, err);

	if (r)
		return r;
	segment_add(log, lowest ? lowest : 1);
	log->first = log->segments[0].first;
	r = lowest || !log->journal.at ? take_segments(log, ctx, err) : 0;
	if (r || !log->journal.at)
		return r;
	log->journal.begun = true;
	return journal_take(log, ctx, err);
}

int revlog_open(struct store *meta, struct store *at, struct wpath journal, struct ctx *ctx, struct revlog **ret_log,
		struct err *err)
{
	struct revlog *log = xcalloc(1, sizeof(*log));
	pthread_condattr_t attr;
	int r;

	log->meta = meta;
	log->memory = arena_new();
	log->journal = (struct log_journal){.at = at, .path.s = arena_str(log->memory, journal.s)};
	log->journal.one_step =
		at && at != meta && store_can(at, STORE_ONE_STEP); /* in meta: the files are elsewhere */
	log->batch = arena_new();
	log->slot_cap = 1024;
	log->slots = xcalloc(log->slot_cap, sizeof(struct path_slot *));
	log->queue_end = &log->queue;
	buf_init(&log->notes, NULL, BATCH_MAX);
	pthread_mutex_init(&log->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&log->changed, &attr);
	pthread_condattr_destroy(&attr);
	r = load_all(log, ctx, err);
	if (r) {
		revlog_close(log);
		return err_prefix(err, "the revision log");
	}
	*ret_log = log;
	return 0;
}

void revlog_close(struct revlog *log)
{
	journal_release(&log->journal);
	arena_destroy(log->memory);
	arena_destroy(log->batch);
	free(log->segments);
	free(log->records);
	free(log->slots);
	free(log->checkpoints);
	buf_release(&log->notes);
	pthread_mutex_destroy(&log->lock);
	pthread_cond_destroy(&log->changed);
	free(log);
}

/* --- appending --- */

/* A note that has no room is left out. Then recovery finds out from the file. */
static void add_note(struct revlog *log, const char *kind, uint64_t number, struct str version)
{
	size_t start = log->notes.len;

	buf_lit(&log->notes, "{\"");
	buf_add(&log->notes, str_of(kind));
	buf_lit(&log->notes, "\":");
	buf_u64(&log->notes, number);
	if (version.len) {
		buf_lit(&log->notes, ",\"version\":");
		jv_write_string(&log->notes, version);
	}
	rev_line_finish(&log->notes, start);
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

/* A draft is stale when its path has got a newer record than the drafter saw. */
static bool is_stale(struct revlog *log, const struct entry *e)
{
	for (size_t i = 0; i < e->count; i++)
		if (revlog_last(log, e->drafts[i].path) != e->drafts[i].base ||
		    (e->drafts[i].first_seen && e->drafts[i].first_seen < log->first))
			return true; /* in the second case, what the draft refers to may no longer be kept */
	return false;
}

/* One line per draft into `out`, numbered from `next` on; returns the number after the last. */
static uint64_t write_entry(struct buf *out, const struct entry *e, uint64_t next, struct str made)
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
			jv_write_string(out, made);
		}
		buf_add(out, e->bodies[i]);
		rev_line_finish(out, start);
	}
	buf_add(out, e->note);
	return next;
}

/* The lines are walked again only to learn where each one is. */
void log_take_batch(struct revlog *log, struct entry *taken, struct str bytes, uint64_t offset, size_t notes_len,
		    size_t notes_taken)
{
	size_t at = notes_len;
	uint64_t next = revlog_head(log) + 1;

	for (struct entry *e = taken; e; e = e->next) {
		if (e->stale)
			continue;
		for (size_t i = 0; i < e->count; i++) {
			struct rev_draft *d = &e->drafts[i];
			size_t end = at + str_find_char(str_from(bytes, at), '\n');
			struct rev_record *rec = ARENA_NEW(log->memory, struct rev_record);

			rec->r = (struct revision){.number = next++,
						   .op = d->op,
						   .path = d->path,
						   .other = d->other,
						   .before = d->before,
						   .after = d->after,
						   .own = true};
			rec->r.time_ns = d->time_ns;
			rec->r.actor = d->actor;
			if (d->piece.where == REV_BLOB)
				memcpy(rec->piece, d->piece.hash, sizeof(rec->piece));
			if (e->step && e->step->made) {
				rec->done = true;
				rec->r.after.version = d->after.exists ? e->step->version : STR_NONE;
			}
			set_place(log, rec, offset + (log->journal.begun ? 0 : at), end - at);
			keep_record(log, rec);
			table_add(log, rec);
			d->record = rec;
			at = end + 1;
		}
		at += e->note.len;
	}
	/* notes that were added during the append stay for the next one */
	if (notes_taken)
		memmove(log->notes.ptr, log->notes.ptr + notes_taken, log->notes.len - notes_taken);
	log->notes.len -= notes_taken;
}

/* Appends `out` at the known end of the tail. The lock is released during the calls to the store, so what they need
   is copied first. */
static int append_tail(struct revlog *log, struct str out, uint64_t *ret_offset, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};
	struct segment *s = &log->segments[log->segment_count - 1];
	struct wpath path = segment_path(arena, s->first);
	struct store_cond cond = {.kind = s->exists ? STORE_VERSION : STORE_ABSENT,
				  .version = arena_str(arena, str_n(s->version, s->version_len))};
	uint64_t size = s->size, first = s->first, lowest, next = 0;
	bool exists = s->exists;
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
	s = &log->segments[log->segment_count - 1];
	set_version(s, stat.version);
	*ret_offset = size;
	s->size = s->parsed = size + out.len;
	log->group = NULL; /* a group that was cut off before these lines stays cut off */
	set_end(s, out);
	return 0;
}

void log_build_batch(struct revlog *log, struct entry *taken, struct str made, struct buf *out, size_t *ret_notes_len)
{
	uint64_t next = revlog_head(log) + 1;

	buf_add(out, buf_str(&log->notes));
	*ret_notes_len = out->len;
	for (struct entry *e = taken; e; e = e->next) {
		e->stale = is_stale(log, e);
		if (!e->stale)
			next = write_entry(out, e, next, made);
	}
}

/* Returns true when the batch ends with the seal of the segment. */
static bool build_segment_batch(struct revlog *log, struct entry *taken, struct buf *out, size_t *ret_notes_len)
{
	struct segment *s = &log->segments[log->segment_count - 1];
	uint64_t next = revlog_head(log) + 1;
	bool seal = false;

	if (s->size > s->parsed)
		buf_char(out, '\n'); /* ends the torn line of a killed writer */
	log_build_batch(log, taken, STR_NONE, out, ret_notes_len);
	for (struct entry *e = taken; e; e = e->next) {
		next += e->stale ? 0 : e->count;
		seal = seal || e->seal;
	}
	seal = (seal || s->size + out->len > SEGMENT_BYTES) && next > s->first;
	if (seal) {
		size_t start = out->len;

		buf_printf(out, "{\"seal\":%llu", (unsigned long long)next);
		rev_line_finish(out, start);
	}
	return seal;
}

/* A failed append may have reached the store after all (the answer was lost, or a sync failed). Its callers get an
   error, so records of it that are in the log are aborted. The lock is held. */
static void take_back(struct revlog *log, struct entry *taken, uint64_t next)
{
	struct ctx ctx = {.arena = log->batch};
	struct err ignored;

	if (take_tail(log, &ctx, &ignored))
		return;
	for (struct entry *e = taken; e; e = e->next)
		for (size_t i = 0; !e->stale && i < e->count; i++) {
			struct rev_record *rec = revlog_at(log, next++);

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

	for (int tries = 0; tries < APPEND_TRIES && (r == -ERR_CONFLICT || r == -ERR_EXISTS); tries++) {
		struct ctx ctx = {.arena = log->batch};
		uint64_t offset = 0;
		size_t notes_len, notes_taken = log->notes.len;
		bool sealed;
		struct buf out;

		arena_reset(log->batch);
		if (tries) {
			r = take_tail(log, &ctx, err);
			if (r)
				return r;
		}
		buf_init(&out, log->batch, BATCH_MAX);
		sealed = build_segment_batch(log, taken, &out, &notes_len);
		if (out.len == 0)
			return 0;
		if (out.overflow)
			return err_set(
				err, ERR_TOO_LARGE,
				"the change touches too many files to be recorded as one; change a part of them");
		r = append_tail(log, buf_str(&out), &offset, err);
		if (r && r != -ERR_CONFLICT && r != -ERR_EXISTS)
			take_back(log, taken, revlog_head(log) + 1);
		if (r)
			continue;
		log_take_batch(log, taken, buf_str(&out), offset, notes_len, notes_taken);
		if (sealed) {
			log->segments[log->segment_count - 1].sealed = true;
			segment_add(log, revlog_head(log) + 1);
		}
	}
	return r;
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
	while (*end && (bytes == 0 || bytes + (*end)->bytes <= BATCH_BYTES)) {
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

	e.bodies = ARENA_ARRAY(ctx->arena, struct str, count);
	for (size_t i = 0; i < count; i++) {
		struct buf body;

		drafts[i].time_ns = clock_real_ns();
		drafts[i].actor = ctx->actor;
		buf_init(&body, ctx->arena, BATCH_MAX);
		rev_line_body(ctx->arena, &body, &drafts[i]);
		e.bodies[i] = buf_str(&body);
		e.bytes += body.len + 64;
	}
	return submit(log, &e, err);
}

int revlog_append(struct revlog *log, struct ctx *ctx, struct rev_draft *drafts, size_t count, struct err *err)
{
	return append(log, ctx, drafts, count, NULL, err);
}

int revlog_append_step(struct revlog *log, struct ctx *ctx, struct rev_draft *draft, struct rev_step *step,
		       struct err *err)
{
	return append(log, ctx, draft, 1, step, err);
}

int revlog_seal(struct revlog *log, struct ctx *ctx, struct err *err)
{
	struct entry e = {.seal = true};

	(void)ctx;
	return submit(log, &e, err);
}

int revlog_set_horizon(struct revlog *log, struct ctx *ctx, uint64_t number, struct err *err)
{
	struct entry e = {0};
	struct buf lines;
	size_t start;
	int r;

	buf_init(&lines, ctx->arena, BATCH_BYTES);
	pthread_mutex_lock(&log->lock);
	for (size_t i = 0; i < log->checkpoint_count; i++) /* their lines may be in the part that is cut */
		rev_line_checkpoint(&lines, &log->checkpoints[i]);
	pthread_mutex_unlock(&log->lock);
	start = lines.len;
	buf_printf(&lines, "{\"horizon\":%llu", (unsigned long long)number);
	rev_line_finish(&lines, start);
	if (lines.overflow)
		return err_set(err, ERR_TOO_LARGE, "there are too many checkpoints");
	e.note = buf_str(&lines);
	e.bytes = lines.len;
	r = submit(log, &e, err);
	if (r == 0) {
		pthread_mutex_lock(&log->lock);
		forget_before(log, number);
		pthread_mutex_unlock(&log->lock);
	}
	return r;
}

/* Appends lines of another log to the tail segment. The lock is held. */
static int take_up_tail(struct revlog *log, struct ctx *ctx, struct str lines, struct err *err)
{
	struct segment *s = &log->segments[log->segment_count - 1];
	uint64_t offset;
	int r;

	if (s->size > s->parsed) /* ends the torn line of a killed writer */
		lines = arena_printf(ctx->arena, "\n%.*s", STR_ARG(lines));
	r = append_tail(log, lines, &offset, err);
	if (r == 0)
		take_lines(log, lines, offset, true);
	return r;
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
	full = r == 0 && !log->journal.at && log->segments[log->segment_count - 1].size > SEGMENT_BYTES;
	stop_leading(log);
	pthread_mutex_unlock(&log->lock);
	return full ? revlog_seal(log, ctx, err) : r;
}

int revlog_help(struct revlog *log, struct ctx *ctx, struct rev_record *record, struct err *err)
{
	struct entry e = {.deadline_ns = ctx->deadline_ns};
	struct buf line;

	buf_init(&line, ctx->arena, KIB);
	buf_printf(&line, "{\"help\":%llu", (unsigned long long)record->r.number);
	rev_line_finish(&line, 0);
	e.note = buf_str(&line);
	e.bytes = line.len;
	return submit(log, &e, err);
}

int revlog_checkpoint(struct revlog *log, struct ctx *ctx, struct str name, uint64_t number, struct err *err)
{
	struct rev_checkpoint c = {name, number, clock_real_ns()};
	struct entry e = {0};
	struct buf line;
	int r;

	buf_init(&line, ctx->arena, 64 * KIB);
	rev_line_checkpoint(&line, &c);
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
		record->r.after.version = keep(log, version);
		record->done = true;
		add_note(log, "done", record->r.number, version);
	}
	pthread_mutex_unlock(&log->lock);
}

void revlog_abort(struct revlog *log, struct rev_record *record)
{
	pthread_mutex_lock(&log->lock);
	if (!record->r.aborted) {
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

uint64_t revlog_bytes(struct revlog *log, bool *ret_recount)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};
	uint64_t bytes = 0;

	pthread_mutex_lock(&log->lock);
	*ret_recount = log->recount;
	for (size_t i = 0; i < log->segment_count; i++) {
		struct segment *s = &log->segments[i];
		struct store_stat stat;
		struct err ignored;

		if (log->recount && s->sealed)
			s->size = store_stat(log->meta, &ctx, segment_path(arena, s->first), &stat, &ignored) == 0
					  ? stat.size
					  : 0;
		bytes += s->size;
	}
	log->recount = false;
	bytes += log->journal.bytes;
	pthread_mutex_unlock(&log->lock);
	return bytes;
}

bool revlog_all_done(struct revlog *log, struct arena *arena, struct str *ret_name, uint64_t *ret_size)
{
	struct segment *s;
	bool all = true;

	pthread_mutex_lock(&log->lock);
	for (size_t i = 0; i < log->record_count && all; i++)
		all = !log->records[i] || log->records[i]->done;
	s = &log->segments[log->segment_count - 1];
	if (!s->exists && log->segment_count > 1)
		s--;
	*ret_name = str_from(segment_path(arena, s->first).s, 4);
	*ret_size = s->size;
	all = all && s->exists && log->notes.len == 0;
	pthread_mutex_unlock(&log->lock);
	return all;
}

uint64_t line_number(struct str line, const char *kind)
{
	size_t len = strlen(kind);
	uint64_t number = 0;

	if (line.len < len + 5 || memcmp(line.ptr, "{\"", 2) != 0 || memcmp(line.ptr + 2, kind, len) != 0 ||
	    memcmp(line.ptr + 2 + len, "\":", 2) != 0)
		return 0;
	for (size_t i = len + 4; i < line.len && line.ptr[i] >= '0' && line.ptr[i] <= '9'; i++)
		number = number * 10 + (uint64_t)(line.ptr[i] - '0');
	return number;
}

/* Reads the line of a record from its known place; ERR_NOT_FOUND when the line is not there. */
static int read_line(struct revlog *log, struct ctx *ctx, const struct rev_record *record, struct str *ret_line,
		     struct err *err)
{
	struct store_range range;
	struct wpath path;
	int r;

	if (record->segment == REV_IN_JOURNAL)
		return journal_line(log, ctx, record->offset, record->r.number, ret_line, err);
	pthread_mutex_lock(&log->lock);
	path = segment_path(ctx->arena, log->segments[record->segment].first);
	range = (struct store_range){record->offset, record->length};
	pthread_mutex_unlock(&log->lock);
	r = store_read(log->meta, ctx, path, range, SEGMENT_READ, ret_line, NULL, err);
	if (r == 0 && line_number(*ret_line, "rev") != record->r.number)
		r = err_set(err, ERR_NOT_FOUND, "revision %llu is no longer kept",
			    (unsigned long long)record->r.number);
	return r;
}

/* Another process has cut the segment of `record`: finds where the remaining lines are now. */
static int find_places(struct revlog *log, struct ctx *ctx, const struct rev_record *record, struct err *err)
{
	uint32_t index = record->segment;
	uint64_t at = 0;
	struct wpath path;
	struct str rest, line;
	int r;

	pthread_mutex_lock(&log->lock);
	path = segment_path(ctx->arena, log->segments[index].first);
	pthread_mutex_unlock(&log->lock);
	r = store_read(log->meta, ctx, path, STORE_WHOLE, SEGMENT_READ, &rest, NULL, err);
	if (r)
		return r;
	pthread_mutex_lock(&log->lock);
	while (str_cut(&rest, '\n', &line)) {
		struct rev_record *rec = revlog_at(log, line_number(line, "rev"));

		if (rec && rec->segment == index) {
			rec->offset = at;
			rec->length = (uint32_t)line.len;
		}
		at += line.len + 1;
	}
	pthread_mutex_unlock(&log->lock);
	return 0;
}

int revlog_read_data(struct revlog *log, struct ctx *ctx, const struct rev_record *record, struct str *ret_data,
		     struct err *err)
{
	struct str line;
	int r = read_line(log, ctx, record, &line, err);

	if (r == -ERR_NOT_FOUND && record->segment != REV_IN_JOURNAL) {
		r = find_places(log, ctx, record, err);
		if (r == 0)
			r = read_line(log, ctx, record, &line, err);
	}
	if (r)
		return r;
	if (!rev_line_data(ctx->arena, line, ret_data))
		return err_set(err, ERR_CORRUPT, "revision %llu in the log is damaged; run `stead doctor`",
			       (unsigned long long)record->r.number);
	return 0;
}

int revlog_read_dropped(struct revlog *log, struct ctx *ctx, uint64_t number, struct str *ret_data, struct err *err)
{
	struct wpath path;
	struct str rest, line, found = STR_NONE;
	size_t i;
	int r;

	pthread_mutex_lock(&log->lock);
	for (i = log->segment_count - 1; i && log->segments[i].first > number; i--)
		;
	path = segment_path(ctx->arena, log->segments[i].first);
	pthread_mutex_unlock(&log->lock);
	if (log->journal.at && journal_find_line(log, ctx, number, &line, err) == 0)
		return rev_line_data(ctx->arena, line, ret_data)
			       ? 0
			       : err_set(err, ERR_NOT_FOUND, "revision %llu has no bytes", (unsigned long long)number);
	r = store_read(log->meta, ctx, path, STORE_WHOLE, SEGMENT_READ, &rest, NULL, err);
	if (r)
		return r;
	while (str_cut(&rest, '\n',
		       &line)) /* the last one counts: the numbers of a group that was cut off are used again */
		if (line_number(line, "rev") == number)
			found = line;
	if (found.ptr && rev_line_data(ctx->arena, found, ret_data))
		return 0;
	return err_set(err, ERR_NOT_FOUND, "revision %llu is no longer kept", (unsigned long long)number);
}
