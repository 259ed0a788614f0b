/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log: formatting, group commit, and the table of records in memory.
 *
 * Many writers share one append: whoever finds nobody leading takes the whole queue, numbers it, appends it with one
 * call and wakes the others. Between processes there is no lock either: an append is conditional on the version of the
 * tail segment, so a process that was overtaken reads what it missed, numbers its batch anew and tries again.
 *
 * The table is rebuilt from the segments at open. A database beside the log was rejected: it would be a second truth.
 */
#include "store/revisions/log.h"

#include <errno.h>
#include <time.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/limits.h"
#include "store/revisions/line.h"

#define SEGMENT_BYTES ((uint64_t)4 * 1024 * 1024)
#define SEGMENT_READ  (256 * MIB)
#define APPEND_TRIES  1000
#define BATCH_BYTES   (8 * MIB)

struct segment {
	uint64_t first;  /* revision */
	uint64_t parsed; /* bytes taken in: up to the last whole line */
	uint64_t size;   /* bytes in all; more than parsed when a writer was cut off in its last line */
	char version[64];
	size_t version_len;
	bool exists, sealed;
};

struct entry {
	struct rev_draft *drafts;
	struct str *bodies; /* one formatted record each, without number and sum */
	size_t count;
	struct str note; /* instead of drafts: a finished line (checkpoint) */
	size_t bytes;
	bool stale; /* in this try of the batch */
	bool finished;
	int result;
	struct err err;
	struct entry *next;
};

struct path_slot {
	struct rev_record *last;
	struct path_slot *next;
	uint64_t hash;
	struct str path;
};

struct revlog {
	struct store *meta;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct arena *memory; /* strings and records; with the lock held */
	struct arena *batch;  /* the leader's */
	struct segment *segments;
	size_t segment_count, segment_cap;
	struct rev_record **records; /* [i] has number first + i; NULL: a number that was never used */
	size_t record_count, record_cap;
	uint64_t first;
	struct path_slot **slots;
	size_t slot_count, slot_cap;
	struct rev_checkpoint *checkpoints;
	size_t checkpoint_count, checkpoint_cap;
	struct buf notes; /* done and abort lines that wait for the next append */
	struct entry *queue, **queue_end;
	bool leading;
};

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
	if (log->record_count == 0)
		log->first = rec->r.number;
	if (rec->r.number < log->first)
		return;
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

static struct str keep(struct revlog *log, struct str s)
{
	return s.len ? arena_str(log->memory, s) : STR_NONE;
}

static void keep_record(struct revlog *log, struct rev_record *rec)
{
	rec->r.other = keep(log, rec->r.other);
	rec->r.before.version = keep(log, rec->r.before.version);
	rec->r.after.version = keep(log, rec->r.after.version);
	rec->r.actor.workspace = keep(log, rec->r.actor.workspace);
	rec->r.actor.user = keep(log, rec->r.actor.user);
	rec->r.actor.agent = keep(log, rec->r.actor.agent);
	rec->r.actor.session = keep(log, rec->r.actor.session);
	rec->r.actor.call_id = keep(log, rec->r.actor.call_id);
}

uint64_t revlog_head(const struct revlog *log)
{
	return log->record_count ? log->first + log->record_count - 1 : log->first ? log->first - 1 : 0;
}

uint64_t revlog_first(const struct revlog *log)
{
	return log->first;
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
		log->checkpoints[i].name = keep(log, c->name);
	}
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
	struct timespec until = {.tv_sec = deadline_ns / 1000000000, .tv_nsec = deadline_ns % 1000000000};

	pthread_cond_timedwait(&log->changed, &log->lock, &until);
}

/* --- segments --- */

static struct wpath segment_path(struct arena *arena, uint64_t first)
{
	return (struct wpath){arena_printf(arena, "log/%016llu.jsonl", (unsigned long long)first)};
}

static struct segment *segment_add(struct revlog *log, uint64_t first)
{
	struct segment *s;

	if (log->segment_count == log->segment_cap) {
		log->segment_cap = log->segment_cap ? log->segment_cap * 2 : 8;
		log->segments = xrealloc(log->segments, log->segment_cap * sizeof(*log->segments));
	}
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

static void take_line(struct revlog *log, struct str line, uint64_t offset)
{
	ARENA_SCOPE struct arena *scratch = arena_new();
	struct segment *tail = &log->segments[log->segment_count - 1];
	struct rev_line parsed;
	struct rev_record *rec;

	if (!rev_line_parse(scratch, line, &parsed))
		return;
	switch (parsed.kind) {
	case REV_LINE_RECORD:
		if (parsed.record.r.number <= revlog_head(log) && log->record_count)
			return; /* seen already */
		rec = ARENA_NEW(log->memory, struct rev_record);
		*rec = parsed.record;
		rec->segment = (uint32_t)(log->segment_count - 1);
		rec->offset = offset;
		rec->length = (uint32_t)line.len;
		keep_record(log, rec);
		table_add(log, rec);
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
	case REV_LINE_CHECKPOINT:
		checkpoint_put(log, &(struct rev_checkpoint){parsed.text, parsed.number, parsed.time_ns});
		break;
	case REV_LINE_SEAL:
		tail->sealed = true;
		segment_add(log, parsed.number);
		break;
	}
}

/* Takes in what stands behind `parsed` in the tail segment, and in those that follow it. The lock is held. */
static int take_tail(struct revlog *log, struct ctx *ctx, struct err *err)
{
	for (;;) {
		ARENA_SCOPE struct arena *arena = arena_new();
		struct ctx c = {.arena = arena, .actor = ctx->actor};
		size_t index = log->segment_count - 1;
		struct segment *s = &log->segments[index];
		struct wpath path = segment_path(arena, s->first);
		uint64_t at = s->parsed;
		struct store_stat stat;
		struct str rest;
		int r = store_read(log->meta, &c, path, (struct store_range){at, UINT64_MAX}, SEGMENT_READ, &rest,
				   &stat, err);

		if (r == -ERR_NOT_FOUND)
			return 0;
		if (r)
			return r;
		set_version(s, stat.version);
		s->size = at + rest.len;
		for (;;) {
			size_t end = str_find_char(rest, '\n');

			if (end == rest.len)
				break;
			take_line(log, str_first(rest, end), at);
			rest = str_from(rest, end + 1);
			at += end + 1;
		}
		log->segments[index].parsed = at;
		if (!log->segments[index].sealed)
			return 0;
	}
}

int revlog_refresh(struct revlog *log, struct ctx *ctx, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx c = {.arena = arena};
	struct segment *s;
	struct store_stat stat;
	struct err ignored;
	int r = 0;

	pthread_mutex_lock(&log->lock);
	while (log->leading) /* what is being appended now would look like another's */
		pthread_cond_wait(&log->changed, &log->lock);
	s = &log->segments[log->segment_count - 1];
	if (store_stat(log->meta, &c, segment_path(arena, s->first), &stat, &ignored) == 0 &&
	    !(s->exists && str_eq(stat.version, str_n(s->version, s->version_len)))) {
		r = take_tail(log, ctx, err);
		pthread_cond_broadcast(&log->changed);
	}
	pthread_mutex_unlock(&log->lock);
	return r;
}

static int load_all(struct revlog *log, struct ctx *ctx, struct err *err)
{
	struct store_list_req req = {.recursive = true, .limit = STORE_PAGE_MAX};
	struct store_page page;
	uint64_t lowest = UINT64_MAX;

	do {
		int r = store_list(log->meta, ctx, (struct wpath){STR("log")}, &req, &page, err);
		int64_t first;

		if (r == -ERR_NOT_FOUND)
			break;
		if (r)
			return r;
		for (size_t i = 0; i < page.count; i++) {
			struct str name = str_from(page.entries[i].path.s, 4);

			if (name.len == 22 && str_ends(name, STR(".jsonl")) &&
			    str_to_i64(str_first(name, 16), &first) && (uint64_t)first < lowest)
				lowest = (uint64_t)first;
		}
		req.after = page.next;
	} while (page.next.ptr);
	segment_add(log, lowest == UINT64_MAX ? 1 : lowest);
	log->first = log->segments[0].first;
	return take_tail(log, ctx, err);
}

int revlog_open(struct store *meta, struct ctx *ctx, struct revlog **ret_log, struct err *err)
{
	struct revlog *log = xcalloc(1, sizeof(*log));
	pthread_condattr_t attr;
	int r;

	log->meta = meta;
	log->memory = arena_new();
	log->batch = arena_new();
	log->slot_cap = 1024;
	log->slots = xcalloc(log->slot_cap, sizeof(struct path_slot *));
	log->queue_end = &log->queue;
	buf_init(&log->notes, NULL, BATCH_BYTES);
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

/* From here on the entry is its submitter's again. */
static void finish(struct entry *e, int result, const struct err *why)
{
	e->result = result;
	if (result)
		e->err = *why;
	if (result == 0 && e->stale)
		e->result = err_set(&e->err, ERR_CONFLICT, "the path changed meanwhile");
	e->finished = true;
}

/* A draft is stale when its path has got a newer record than the drafter saw. */
static bool is_stale(struct revlog *log, const struct entry *e)
{
	for (size_t i = 0; i < e->count; i++)
		if (revlog_last(log, e->drafts[i].path) != e->drafts[i].base)
			return true;
	return false;
}

/* One line per draft into `out`, numbered from `next` on; returns the number after the last. */
static uint64_t write_entry(struct buf *out, const struct entry *e, uint64_t next)
{
	for (size_t i = 0; i < e->count; i++) {
		size_t start = out->len;

		buf_lit(out, "{\"rev\":");
		buf_u64(out, next++);
		buf_add(out, e->bodies[i]);
		rev_line_finish(out, start);
	}
	buf_add(out, e->note);
	return next;
}

/* The batch is durable: its records enter the table. Walks the lines again only for their places. */
static void take_batch(struct revlog *log, struct entry *taken, struct str bytes, uint64_t offset, size_t notes_len)
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
						   .after = d->after};
			rec->r.time_ns = d->time_ns;
			rec->r.actor = d->actor;
			rec->segment = (uint32_t)(log->segment_count - 1);
			rec->offset = offset + at;
			rec->length = (uint32_t)(end - at);
			keep_record(log, rec);
			table_add(log, rec);
			d->record = rec;
			at = end + 1;
		}
		at += e->note.len;
	}
}

/* Appends `out` behind what is known of the tail. The lock is released while it waits for the store. */
static int append_tail(struct revlog *log, struct str out, uint64_t *ret_offset, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};
	struct segment *s = &log->segments[log->segment_count - 1];
	struct wpath path = segment_path(arena, s->first);
	struct store_cond cond = {.kind = s->exists ? STORE_VERSION : STORE_ABSENT,
				  .version = arena_str(arena, str_n(s->version, s->version_len))};
	uint64_t size = s->size;
	struct store_stat stat;
	int r;

	pthread_mutex_unlock(&log->lock);
	r = store_append(log->meta, &ctx, path, out, cond, &stat, err);
	pthread_mutex_lock(&log->lock);
	if (r)
		return r;
	s = &log->segments[log->segment_count - 1];
	set_version(s, stat.version);
	*ret_offset = size;
	s->size = s->parsed = size + out.len;
	return 0;
}

static void build_batch(struct revlog *log, struct entry *taken, struct buf *out, size_t *ret_notes_len)
{
	struct segment *s = &log->segments[log->segment_count - 1];
	uint64_t next = revlog_head(log) + 1;

	if (s->size > s->parsed)
		buf_char(out, '\n'); /* ends the torn line of a killed writer */
	buf_add(out, buf_str(&log->notes));
	*ret_notes_len = out->len;
	for (struct entry *e = taken; e; e = e->next) {
		e->stale = is_stale(log, e);
		if (!e->stale)
			next = write_entry(out, e, next);
	}
	if (s->size + out->len > SEGMENT_BYTES) {
		size_t start = out->len;

		buf_printf(out, "{\"seal\":%llu", (unsigned long long)next);
		rev_line_finish(out, start);
	}
}

/* Appends the queue (or, with `taken` empty, only the notes). The lock is held, and released while waiting. */
static int lead_batch(struct revlog *log, struct entry *taken, struct err *err)
{
	int r = -ERR_CONFLICT;

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
		buf_init(&out, log->batch, SEGMENT_READ);
		build_batch(log, taken, &out, &notes_len);
		if (out.len == 0)
			return 0;
		sealed = log->segments[log->segment_count - 1].size + out.len > SEGMENT_BYTES;
		r = append_tail(log, buf_str(&out), &offset, err);
		if (r)
			continue;
		take_batch(log, taken, buf_str(&out), offset, notes_len);
		/* notes that were added meanwhile stay for the next append */
		if (notes_taken) {
			memmove(log->notes.ptr, log->notes.ptr + notes_taken, log->notes.len - notes_taken);
			log->notes.len -= notes_taken;
		}
		if (sealed) {
			log->segments[log->segment_count - 1].sealed = true;
			segment_add(log, revlog_head(log) + 1);
		}
	}
	return r;
}

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
	log->leading = false;
	pthread_cond_broadcast(&log->changed);
}

static int submit(struct revlog *log, struct entry *e, struct err *err)
{
	pthread_mutex_lock(&log->lock);
	*log->queue_end = e;
	log->queue_end = &e->next;
	while (!e->finished) {
		if (log->leading)
			pthread_cond_wait(&log->changed, &log->lock);
		else
			lead(log);
	}
	pthread_mutex_unlock(&log->lock);
	if (e->result)
		*err = e->err;
	return e->result;
}

int revlog_append(struct revlog *log, struct ctx *ctx, struct rev_draft *drafts, size_t count, struct err *err)
{
	struct entry e = {.drafts = drafts, .count = count};

	e.bodies = ARENA_ARRAY(ctx->arena, struct str, count);
	for (size_t i = 0; i < count; i++) {
		struct buf body;

		drafts[i].time_ns = clock_real_ns();
		drafts[i].actor = ctx->actor;
		buf_init(&body, ctx->arena, SEGMENT_READ);
		rev_line_body(ctx->arena, &body, &drafts[i]);
		e.bodies[i] = buf_str(&body);
		e.bytes += body.len + 64;
	}
	return submit(log, &e, err);
}

int revlog_checkpoint(struct revlog *log, struct ctx *ctx, struct str name, uint64_t number, struct err *err)
{
	struct rev_checkpoint c = {name, number, clock_real_ns()};
	struct entry e = {0};
	struct buf line;
	int r;

	buf_init(&line, ctx->arena, 64 * KIB);
	buf_lit(&line, "{\"checkpoint\":");
	jv_write_string(&line, name);
	buf_printf(&line, ",\"rev\":%llu,\"time\":%lld", (unsigned long long)number, (long long)c.time_ns);
	rev_line_finish(&line, 0);
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

static void add_note(struct revlog *log, const char *kind, uint64_t number, struct str version)
{
	size_t start = log->notes.len;

	buf_printf(&log->notes, "{\"%s\":%llu", kind, (unsigned long long)number);
	if (version.len) {
		buf_lit(&log->notes, ",\"version\":");
		jv_write_string(&log->notes, version);
	}
	rev_line_finish(&log->notes, start);
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
		log->leading = false;
		pthread_cond_broadcast(&log->changed);
	}
	pthread_mutex_unlock(&log->lock);
	return r;
}

uint64_t revlog_bytes(struct revlog *log)
{
	uint64_t bytes = 0;

	pthread_mutex_lock(&log->lock);
	for (size_t i = 0; i < log->segment_count; i++)
		bytes += log->segments[i].size;
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

int revlog_read_data(struct revlog *log, struct ctx *ctx, const struct rev_record *record, struct str *ret_data,
		     struct err *err)
{
	struct wpath path;
	struct str line;
	int r;

	pthread_mutex_lock(&log->lock);
	path = segment_path(ctx->arena, log->segments[record->segment].first);
	pthread_mutex_unlock(&log->lock);
	r = store_read(log->meta, ctx, path, (struct store_range){record->offset, record->length}, SEGMENT_READ, &line,
		       NULL, err);
	if (r)
		return r;
	if (!rev_line_data(ctx->arena, line, ret_data))
		return err_set(err, ERR_CORRUPT, "revision %llu in the log is damaged; run `stead doctor`",
			       (unsigned long long)record->r.number);
	return 0;
}
