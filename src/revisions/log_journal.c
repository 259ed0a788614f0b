/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log in a journal, for stores where a growing file is not cheap, or where files and log are in one database.
 *
 * A batch is one entry, with the same lines as in a segment. An entry is added on the condition that the last known
 * entry is still the last one. A process that was overtaken takes in the new entries, numbers its batch again, and
 * tries again after a random pause, so that many processes do not collide again and again.
 *
 * A single change is made in the same step as its entry where the store can do that. Then nothing is left to be done
 * afterwards: the record says "made", with the version that the file got. When several threads wait, their records
 * share an entry, and each thread makes its change itself, as on a store that needs two steps.
 */
#include <time.h>

#include "base/clock.h"
#include "base/limits.h"
#include "revisions/log.h"
#include "revisions/log_internal.h"

#define PAGE_BYTES   (16 * MIB)
#define RECENT_MAX   63
#define RECENT_BYTES (4 * MIB)
#define BACK_OFF_NS  INT64_C(200000000)
#define LISTEN_NS    NS_PER_S
#define KEPT_BYTES   (24 * MIB)
#define AHEAD_BYTES  (64 * KIB) /* read with an entry when lines are asked for one after the other */
#define BEHIND       16         /* entries before it, when that is the direction */
#define NEAR_MAX     4          /* both grow with each time, so often */
/* Entries that are asked for in another order: after so many of them a stretch is read at once, if the last ones were
   of use. */
#define STRETCH       128
#define STRETCH_BYTES (512 * KIB)
#define STRETCH_PRICE 32

/* --- recent entries, which the store may gather into one file --- */

static void recent_drop(struct log_journal *j, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		j->recent_bytes -= j->recent[i].bytes.len;
		free((char *)j->recent[i].bytes.ptr);
		j->recent[i].bytes = STR_NONE;
	}
	j->recent_count -= count;
	memmove(j->recent, j->recent + count, j->recent_count * sizeof(*j->recent));
}

static void recent_add(struct log_journal *j, uint64_t number, struct str bytes)
{
	if (store_can(j->at, STORE_JOURNAL))
		return;
	if (!j->recent)
		j->recent = xcalloc(RECENT_MAX + 1, sizeof(*j->recent));
	if (j->recent_count && j->recent[j->recent_count - 1].number + 1 != number)
		recent_drop(j, j->recent_count);
	j->recent[j->recent_count++] = (struct journal_entry){number, str_n(xstrndup(bytes), bytes.len)};
	j->recent_bytes += bytes.len;
	while (j->recent_count > RECENT_MAX || j->recent_bytes > RECENT_BYTES)
		recent_drop(j, 1);
}

/* --- entries that were read for a line --- */

static void kept_drop(struct kept_entries *k, uint64_t number)
{
	struct kept_entry **at = &k->entries[number % KEPT_ENTRIES], *e = *at;

	if (!e)
		return;
	k->bytes -= e->bytes.len;
	free((char *)e->bytes.ptr);
	free(e->starts);
	free(e);
	*at = NULL;
}

static void kept_clear(struct kept_entries *k)
{
	for (uint64_t i = 0; i < KEPT_ENTRIES; i++)
		kept_drop(k, i);
}

static const struct kept_entry *kept_find(const struct kept_entries *k, uint64_t number)
{
	const struct kept_entry *e = k->entries[number % KEPT_ENTRIES];

	return e && e->number == number ? e : NULL;
}

/* Notes where the records are: an entry of a group has hundreds of them. */
static void note_lines(struct kept_entry *e)
{
	struct str rest = e->bytes, line;
	size_t cap = 0;
	uint32_t index = 0;

	for (; rev_line_next(&rest, &line); index++) {
		if (!e->first) {
			e->first = rev_line_number(line, "rev");
			e->index = index;
		}
		if (!e->first)
			continue;
		HEAP_ROOM(e->starts, e->count, cap);
		e->starts[e->count++] = (uint32_t)(line.ptr - e->bytes.ptr);
	}
}

static void kept_add(struct kept_entries *k, const struct journal_entry *added)
{
	struct kept_entry *e;

	if (added->bytes.len > KEPT_BYTES || kept_find(k, added->number))
		return;
	if (k->bytes + added->bytes.len > KEPT_BYTES)
		kept_clear(k);
	kept_drop(k, added->number);
	e = xcalloc(1, sizeof(*e));
	e->number = added->number;
	e->bytes = str_n(xstrndup(added->bytes), added->bytes.len);
	note_lines(e);
	k->bytes += e->bytes.len;
	k->entries[e->number % KEPT_ENTRIES] = e;
}

void journal_release(struct log_journal *j)
{
	kept_clear(&j->kept);
	pthread_mutex_destroy(&j->kept.lock);
	if (j->recent)
		recent_drop(j, j->recent_count);
	free(j->recent);
}

/* --- reading --- */

void journal_take_page(struct revlog *log, const struct journal_page *page)
{
	struct log_journal *j = &log->journal;

	for (size_t i = 0; i < page->count; i++) {
		const struct journal_entry *e = &page->entries[i];

		if (e->number != j->entry + 1)
			continue;
		log_take_batch_lines(log, e->bytes, (struct rev_place){e->number, REV_IN_JOURNAL, 0, 0, 0}, false);
		j->entry = e->number;
		j->bytes += e->bytes.len;
		recent_add(j, e->number, e->bytes);
	}
}

int journal_take(struct revlog *log, struct ctx *ctx, struct err *err)
{
	struct log_journal *j = &log->journal;

	for (;;) {
		ARENA_SCOPE struct arena *arena = arena_new();
		struct ctx c = {
			.arena = arena, .actor = ctx->actor, .deadline_ns = ctx->deadline_ns, .cancel = ctx->cancel};
		struct journal_read req = {.after = j->entry, .max_bytes = PAGE_BYTES, .known_ns = j->known_ns};
		struct journal_page page = {0};
		int64_t now = clock_real_ns();
		int r = store_journal_read(j->at, &c, j->path, &req, &page, err);

		if (r == -ERR_NOT_FOUND && page.first > j->entry + 1) {
			j->entry = page.first - 1;
			j->known_ns = 0;
			j->skipped = true;
			continue;
		}
		if (r)
			return r;
		if (j->entry == 0 && page.first > 1)
			j->skipped = true;
		if (page.first && page.last < j->entry)
			return err_set(err, ERR_CORRUPT,
				       "the revision log has lost its end: it has %llu entries and had %llu; restore "
				       "it from a backup",
				       (unsigned long long)page.last, (unsigned long long)j->entry);
		journal_take_page(log, &page);
		if (page.count == 0 || j->entry >= page.last) {
			j->known_ns = now;
			return 0;
		}
	}
}

/* The line of record `number` in an entry. */
static bool line_of(struct str bytes, uint64_t number, struct str *ret_line, uint32_t *ret_index)
{
	struct str line;

	for (*ret_index = 0; rev_line_next(&bytes, &line); (*ret_index)++)
		if (rev_line_number(line, "rev") == number) {
			*ret_line = line;
			return true;
		}
	return false;
}

/* The line, if its entry was read before. */
static bool kept_line(struct ctx *ctx, struct kept_entries *k, uint64_t entry, uint64_t number, struct str *ret_line,
		      uint32_t *ret_index)
{
	const struct kept_entry *e;
	bool found;

	pthread_mutex_lock(&k->lock);
	e = kept_find(k, entry);
	found = e && e->first && number >= e->first && number - e->first < e->count;
	if (found) {
		struct str rest = str_from(e->bytes, e->starts[number - e->first]);

		found = rev_line_next(&rest, ret_line) && rev_line_number(*ret_line, "rev") == number;
		*ret_index = e->index + (uint32_t)(number - e->first);
	}
	if (found) {
		*ret_line = arena_str(ctx->arena, *ret_line);
		k->last = entry;
		k->credit += k->credit < STRETCH_PRICE;
	}
	pthread_mutex_unlock(&k->lock);
	return found;
}

/* Reads an entry, and others along with it if the one before was near it. */
static void read_along(struct log_journal *j, struct ctx *ctx, uint64_t entry)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct journal_read req = {.after = entry - 1, .max_bytes = 1, .known_ns = clock_real_ns()};
	struct kept_entries *k = &j->kept;
	struct journal_page page = {0};
	uint64_t behind = BEHIND;
	struct ctx own = *ctx;
	struct err ignored;

	if (!store_can(j->at, STORE_JOURNAL)) /* an object for each: reading along costs as many requests */
		return;
	pthread_mutex_lock(&k->lock);
	behind <<= k->near;
	if (k->last && entry + 2 * behind > k->last && entry < k->last + 2 * behind) {
		req.max_bytes = AHEAD_BYTES << k->near;
		if (entry < k->last)
			req.after = entry > behind ? entry - behind : 0;
		k->near += k->near < NEAR_MAX;
	} else {
		k->near = 0;
		behind = 0;
		if (++k->credit >= STRETCH_PRICE / 4) {
			req.after = (entry - 1) / STRETCH * STRETCH;
			req.max_bytes = STRETCH_BYTES;
			behind = req.after + STRETCH - entry;
			k->credit -= STRETCH_PRICE;
		}
	}
	k->last = entry;
	pthread_mutex_unlock(&k->lock);
	own.arena = arena;
	/* large entries before it may have left no room for the one that is wanted */
	for (int tries = 0; tries < 2; tries++) {
		bool has = false;

		if (store_journal_read(j->at, &own, j->path, &req, &page, &ignored))
			return;
		pthread_mutex_lock(&k->lock);
		for (size_t i = 0; i < page.count && page.entries[i].number <= entry + behind; i++) {
			kept_add(k, &page.entries[i]);
			has = has || page.entries[i].number == entry;
		}
		pthread_mutex_unlock(&k->lock);
		if (has)
			return;
		req.after = entry - 1;
		req.max_bytes = 1;
	}
}

int journal_line(struct revlog *log, struct ctx *ctx, uint64_t entry, uint64_t number, struct str *ret_line,
		 uint32_t *ret_index, struct err *err)
{
	struct log_journal *j = &log->journal;

	if (kept_line(ctx, &j->kept, entry, number, ret_line, ret_index))
		return 0;
	read_along(j, ctx, entry);
	if (kept_line(ctx, &j->kept, entry, number, ret_line, ret_index))
		return 0;
	/* first by its own name, then by a list of the entries */
	for (int listed = 0; listed < 2; listed++) {
		struct journal_read req = {
			.after = entry - 1, .max_bytes = 1, .known_ns = listed ? 0 : clock_real_ns()};
		struct journal_page page;
		int r = store_journal_read(j->at, ctx, j->path, &req, &page, err);

		if (r && r != -ERR_NOT_FOUND)
			return r;
		if (r == 0 && page.count && page.entries[0].number == entry &&
		    line_of(page.entries[0].bytes, number, ret_line, ret_index))
			return 0;
	}
	return err_set(err, ERR_NOT_FOUND, "revision %llu is no longer kept", (unsigned long long)number);
}

int journal_find_line(struct revlog *log, struct ctx *ctx, uint64_t number, struct str *ret_line, struct err *err)
{
	struct log_journal *j = &log->journal;
	struct journal_read req = {.max_bytes = PAGE_BYTES};
	uint32_t index;

	for (;;) {
		struct journal_page page = {0};
		int r = store_journal_read(j->at, ctx, j->path, &req, &page, err);

		if (r == -ERR_NOT_FOUND && page.first > req.after + 1) {
			req.after = page.first - 1;
			continue;
		}
		if (r)
			return r;
		for (size_t i = 0; i < page.count; i++)
			if (line_of(page.entries[i].bytes, number, ret_line, &index))
				return 0;
		if (page.count == 0)
			break;
		req.after = page.entries[page.count - 1].number;
	}
	return err_set(err, ERR_NOT_FOUND, "revision %llu is no longer kept", (unsigned long long)number);
}

/* --- adding --- */

/* The context of a batch: its deadline is the latest one of its calls. */
static struct ctx batch_ctx(struct revlog *log, const struct entry *taken)
{
	struct ctx ctx = {.arena = log->batch};

	for (const struct entry *e = taken; e; e = e->next) {
		if (e->deadline_ns == 0)
			return (struct ctx){.arena = log->batch};
		if (e->deadline_ns > ctx.deadline_ns)
			ctx.deadline_ns = e->deadline_ns;
	}
	return ctx;
}

struct adding {
	struct entry *taken;
	struct rev_step *step; /* the change that is tried with the entry, or NULL */
	struct buf out;
	size_t notes_len, notes_taken;
	struct journal_added added;
	int64_t took_ns;
};

/* Adds the entry. The lock is released during the call to the store. */
static int add_entry(struct revlog *log, struct adding *a, struct err *err)
{
	struct log_journal *j = &log->journal;
	struct ctx ctx = batch_ctx(log, a->taken);
	struct journal_add add = {.after = j->entry, .bytes = buf_str(&a->out), .known_ns = j->known_ns};
	struct wpath to = WPATH_ROOT;
	struct store_cond cond = {0};
	int64_t began = clock_monotonic_ns(), now = clock_real_ns();
	int r;

	if (a->step) {
		to = a->step->path;
		cond = a->step->cond;
		add.from = a->step->from;
		add.from_cond = a->step->from_cond;
		add.change = a->step->change;
		add.content = a->step->content;
		add.version = a->step->version;
		add.items = a->step->items;
		add.item_count = a->step->item_count;
	}
	if (j->recent_count) {
		struct journal_entry *recent = ARENA_ARRAY(log->batch, struct journal_entry, j->recent_count);

		/* only the leader changes them, so their bytes stay while the lock is released */
		memcpy(recent, j->recent, j->recent_count * sizeof(*recent));
		add.recent = recent;
		add.recent_count = j->recent_count;
	}
	pthread_mutex_unlock(&log->lock);
	r = store_journal_add(j->at, &ctx, j->path, to, cond, &add, &a->added, err);
	a->took_ns = clock_monotonic_ns() - began;
	pthread_mutex_lock(&log->lock);
	if (r == 0)
		j->known_ns = now;
	return r;
}

/* The entry is in the journal: takes it in. */
static void take_added(struct revlog *log, struct adding *a)
{
	struct log_journal *j = &log->journal;

	if (a->step) {
		a->step->made = true;
		a->step->stat = a->added.stat;
		a->step->stat.version = a->step->version;
	}
	j->entry++;
	j->bytes += a->out.len;
	recent_add(j, j->entry, buf_str(&a->out));
	log_take_batch(log, a->taken, buf_str(&a->out), (struct rev_place){j->entry, REV_IN_JOURNAL, 0, 0, 0},
		       a->notes_len, a->notes_taken);
}

/* Takes in the entries of the others, and then pauses for a random time, which grows with the number of tries and the
   time that one takes. The lock is released during the pause. */
static int let_pass(struct revlog *log, struct adding *a, int tries, struct err *err)
{
	struct ctx ctx = batch_ctx(log, a->taken);
	int64_t longest = a->took_ns * (tries < 8 ? tries : 8);
	struct timespec t = {0};

	if (ctx_check(&ctx, err))
		return -(int)err->kind;
	journal_take_page(log, &a->added.news);
	if (a->added.news.count == 0 || a->added.news.last > log->journal.entry) {
		int r = journal_take(log, &ctx, err);

		if (r)
			return r;
	} else {
		log->journal.known_ns = clock_real_ns() - a->took_ns;
	}
	if (longest > BACK_OFF_NS)
		longest = BACK_OFF_NS;
	if (longest > 0) {
		t.tv_nsec = (long)(random_u64() % (uint64_t)longest);
		pthread_mutex_unlock(&log->lock);
		nanosleep(&t, NULL);
		pthread_mutex_lock(&log->lock);
	}
	return 0;
}

/* What the change of an entry left, as far as its record says. */
static struct store_stat stat_after(const struct entry *e)
{
	size_t last = e->of ? e->of_count - 1 : e->count - 1;

	return (struct store_stat){.kind = STORE_FILE,
				   .size = e->of ? e->of[last]->r.after.size : e->drafts[last].after.size,
				   .mtime_ns = e->of ? e->of[last]->r.time_ns : e->drafts[last].time_ns};
}

/* After an error the entry may have been added all the same. If it is in the journal, it is taken in as ours. */
static bool was_added(struct revlog *log, struct adding *a)
{
	struct ctx ctx = {.arena = log->batch};

	if (!store_journal_has(log->journal.at, &ctx, log->journal.path, log->journal.entry, buf_str(&a->out)))
		return false;
	if (a->step)
		a->added.stat = stat_after(a->taken);
	take_added(log, a);
	return true;
}

static bool is_overtaken(const struct adding *a, int r)
{
	return r == -ERR_CONFLICT && a->added.overtaken;
}

/* True when the file refused the change, rather than the journal or the connection. */
static bool is_refused(int r)
{
	return r == -ERR_CONFLICT || r == -ERR_EXISTS || r == -ERR_NOT_FOUND || r == -ERR_INVALID || r == -ERR_DENIED ||
	       r == -ERR_TOO_LARGE || r == -ERR_QUOTA;
}

int journal_lead(struct revlog *log, struct entry *taken, struct err *err)
{
	int r = -ERR_CONFLICT;

	for (int tries = 1; tries <= APPEND_TRIES; tries++) {
		struct adding a = {.taken = taken, .notes_taken = log->notes.len};

		arena_reset(log->batch);
		if (taken && !taken->next && taken->step && revlog_steps(log, taken->step->change))
			a.step = taken->step;
		buf_init(&a.out, log->batch, BATCH_MAX);
		log_build_batch(log, taken, a.step ? a.step->version : STR_NONE,
				(struct rev_seq){log->journal.entry + 1, 0}, &a.out, &a.notes_len);
		rev_line_mark_end(&a.out);
		if (a.step && taken->stale)
			a.step = NULL;
		if (a.out.len == 0)
			return 0;
		if (a.out.overflow)
			return err_set(
				err, ERR_TOO_LARGE,
				"the change touches too many files to be recorded as one; change only some of them");
		r = add_entry(log, &a, err);
		if (r == 0) {
			take_added(log, &a);
			return 0;
		}
		if (is_overtaken(&a, r)) {
			r = let_pass(log, &a, tries, err);
			if (r)
				return r;
			r = err_set(err, ERR_CONFLICT,
				    "other processes kept writing to the revision log first; try again");
			continue;
		}
		if (a.step && is_refused(r)) {
			a.step->refused = true;
			a.step->failed = a.added.failed;
			return r;
		}
		return was_added(log, &a) ? 0 : r;
	}
	return r;
}

int journal_take_up(struct revlog *log, struct ctx *ctx, struct str lines, struct err *err)
{
	struct log_journal *j = &log->journal;
	struct rev_seq seq = {j->entry + 1, 0};
	struct journal_add add = {.after = j->entry, .known_ns = j->known_ns};
	struct journal_added added = {0};
	int64_t now = clock_real_ns();
	struct buf out;
	int r;

	buf_init(&out, ctx->arena, BATCH_MAX);
	log_finish_lines(&out, lines, &seq);
	rev_line_mark_end(&out);
	add.bytes = buf_str(&out);
	pthread_mutex_unlock(&log->lock);
	r = store_journal_add(j->at, ctx, j->path, WPATH_ROOT, (struct store_cond){0}, &add, &added, err);
	pthread_mutex_lock(&log->lock);
	if (r)
		return r;
	j->known_ns = now;
	j->entry++;
	j->bytes += add.bytes.len;
	recent_add(j, j->entry, add.bytes);
	log_take_batch_lines(log, add.bytes, (struct rev_place){j->entry, REV_IN_JOURNAL, 0, 0, 0}, false);
	return 0;
}

/* --- waiting --- */

bool revlog_listen(struct revlog *log, struct ctx *ctx, int64_t deadline_ns)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx c = *ctx;
	struct journal_read req = {.max_bytes = 1, .wait_ns = deadline_ns - clock_monotonic_ns()};
	struct journal_page page;
	struct err ignored;

	if (!log->journal.at || !store_can(log->journal.at, STORE_JOURNAL))
		return false;
	c.arena = arena;
	revlog_lock(log);
	req.after = log->journal.entry;
	revlog_unlock(log);
	if (req.wait_ns > LISTEN_NS)
		req.wait_ns = LISTEN_NS;
	return req.wait_ns <= 0 ||
	       store_journal_read(log->journal.at, &c, log->journal.path, &req, &page, &ignored) == 0;
}

/* --- cutting --- */

/* Removes the segments that the log began with and that hold nothing that is kept. */
static void drop_segments(struct revlog *log, struct ctx *ctx, uint64_t horizon)
{
	struct store_cond any = {0};
	struct segment *list;
	struct err ignored;
	size_t count;

	if (segments_list(log->meta, ctx, &list, &count, &ignored))
		return;
	for (size_t i = 0; i < count; i++) {
		uint64_t next = i + 1 < count ? list[i + 1].first : UINT64_MAX;

		revlog_lock(log);
		if (next == UINT64_MAX && log->journal.first_in && log->journal.first_in <= horizon)
			next = horizon; /* all that is kept is in the journal */
		revlog_unlock(log);
		if (next > horizon)
			break;
		store_remove(log->meta, ctx, segment_path(ctx->arena, list[i].first), false, any, NULL, &ignored);
	}
}

int revlog_cut(struct revlog *log, struct ctx *ctx, uint64_t horizon, struct err *err)
{
	struct log_journal *j = &log->journal;
	uint64_t before, head;
	int r = 0;

	revlog_lock(log);
	before = j->entry;
	head = revlog_head(log);
	for (uint64_t n = horizon; r == 0 && n <= head; n++) { /* the first one that is kept has the lowest entry */
		struct rev_record *rec;

		r = revlog_at(log, ctx, n, &rec, err);
		if (r || !rec)
			continue;
		if (rec->place.offset == REV_IN_JOURNAL && rec->place.at < before)
			before = rec->place.at;
		break;
	}
	revlog_unlock(log);
	if (r)
		return r;
	drop_segments(log, ctx, horizon);
	return before ? store_journal_cut(j->at, ctx, j->path, before, err) : 0;
}
