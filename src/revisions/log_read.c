/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading the log: taking in what was added, finding a line again, and telling a cut-off append from damage.
 *
 * The log is taken in append by append. An append ends with a line that says so. If the last one does not, its writer
 * was killed: the rest is not taken in, and the next append says that it is void. A line that is complete and cannot be
 * read is never what a killed writer leaves, so it is damage. (A power cut may leave anything in the last append, so
 * after a restart of the machine that one is void as well.)
 *
 * Damage costs the revisions whose lines it hit, and no others. Each line's sum covers which line of its segment it is,
 * so after a bad line the next good one is known to be good, and how many are missing before it. Their numbers are
 * marked as damaged. A lost line about other revisions (done, abort) leaves those in doubt that have no such line:
 * they are marked too.
 */
#include "base/clock.h"
#include "revisions/log_internal.h"

#define WINDOW_BYTES (256 * KIB)

int log_damaged(const struct revlog *log, uint64_t number, struct err *err)
{
	(void)log;
	return err_set(err, ERR_CORRUPT,
		       "revision %llu cannot be read, because the log is damaged there; `stead fsck` shows where, and "
		       "`stead fsck --repair` sets that part aside",
		       (unsigned long long)number);
}

bool log_end_is_damaged(const struct revlog *log)
{
	return log->damage.at_end || log->damage.before_next || log->damage.cut;
}

static int end_damaged(const struct revlog *log, struct err *err)
{
	return err_set(
		err, ERR_CORRUPT,
		"the end of the revision log is damaged (log/%016llu.jsonl at byte %u); `stead fsck --repair` sets "
		"the damaged part aside",
		(unsigned long long)log->damage.place.at, log->damage.place.offset);
}

/* --- one append --- */

/* Records that have neither "done" nor "abort" may have lost it. */
static void doubt_open(struct revlog *log)
{
	for (size_t i = 0; i < log->record_count; i++)
		if (log->records[i] && !log->records[i]->done) {
			log->records[i]->damaged = log->records[i]->done = true;
			table_note_damaged(log, log->records[i]->r.number);
		}
}

void log_lose_end(struct revlog *log, uint64_t number)
{
	log->damage.place = (struct rev_place){log->tail.first, (uint32_t)log->tail.parsed, 0, 0, 0};
	log->damage.found = log->damage.cut = true;
	doubt_open(log);
	if (number - revlog_head(log) <= GAP_MAX)
		table_lose(log, number);
}

/* Adds a record that was read. */
static void take_record(struct revlog *log, struct rev_record *parsed, struct rev_place place)
{
	uint64_t number = parsed->r.number, head = revlog_head(log);
	struct rev_record *rec;

	if (number <= head) { /* known already: its segment was cut and is read again */
		rec = table_at(log, number);
		if (rec && !rec->damaged)
			rec->place = place;
		return;
	}
	if (log->journal.skipped) { /* what was in between is not kept */
		table_forget(log, number);
		log->journal.skipped = false;
		head = number - 1;
	}
	if (number - head > GAP_MAX)
		return;
	if (log->damage.before_next && log->damage.lines > number - head - 1)
		doubt_open(log); /* more lines than numbers are missing: some were about other revisions */
	if (log->damage.before_next && number > head + 1)
		table_lose(log, number - 1);
	log->damage.before_next = false;
	log->damage.lines = 0;
	if (place.offset == REV_IN_JOURNAL && !log->journal.first_in)
		log->journal.first_in = number;
	rec = ARENA_NEW(log->memory, struct rev_record);
	*rec = *parsed;
	rec->place = place;
	table_keep_record(log, rec);
	table_add(log, rec);
}

static void take_line(struct revlog *log, const struct rev_line *line, struct rev_place place)
{
	struct rev_record *rec = table_at(log, line->number);

	if (rec && rec->damaged)
		rec = NULL;
	switch (line->kind) {
	case REV_LINE_RECORD: {
		struct rev_record parsed = line->record;

		take_record(log, &parsed, place);
		break;
	}
	case REV_LINE_DONE: /* after a power cut a second line has the version of the file that was made again */
		if (rec && (!rec->done || (line->text.len && !str_is(line->text, "unknown")))) {
			rec->r.after.version = table_keep(log, line->text);
			rec->done = true;
		}
		break;
	case REV_LINE_ABORT:
		if (rec && !rec->r.aborted)
			table_unlink(log, rec);
		break;
	case REV_LINE_HELP:
		if (rec)
			rec->helped = true;
		break;
	case REV_LINE_CHECKPOINT:
		checkpoint_put(log, &(struct rev_checkpoint){line->text, line->number, line->time_ns});
		break;
	case REV_LINE_SEAL:
		if (line->number > log->tail.first && !log->journal.begun)
			log->tail.sealed = true, log->tail.next = line->number;
		break;
	case REV_LINE_HORIZON:
		table_forget(log, line->number);
		break;
	case REV_LINE_LOST:
		if (line->number > revlog_head(log) && line->number - revlog_head(log) <= GAP_MAX)
			table_skip(log, line->number);
		break;
	case REV_LINE_TORN:
		break;
	}
}

static void note_damage(struct revlog *log, struct rev_place place)
{
	if (!log->damage.found)
		log->damage.place = place;
	log->damage.found = log->damage.before_next = true;
}

void log_take_batch_lines(struct revlog *log, struct str bytes, struct rev_place place, bool in_segment)
{
	ARENA_SCOPE struct arena *scratch = arena_new();
	struct rev_seq seq = {place.at, place.line};
	uint32_t bad = 0; /* lines since the last good one */
	struct str line;

	while (rev_line_next(&bytes, &line)) {
		struct rev_seq expected = seq;
		struct rev_line parsed;

		arena_reset(scratch);
		place.length = (uint32_t)line.len;
		if (!rev_line_find(line, &seq) || !rev_line_parse(scratch, line, &parsed)) {
			note_damage(log, place);
			bad++;
		} else {
			if (seq.line != expected.line && !log->damage.before_next)
				note_damage(log, place); /* lines are missing */
			log->damage.lines += seq.line - expected.line;
			bad = 0;
			place.line = seq.line++;
			take_line(log, &parsed, place);
		}
		if (in_segment)
			place.offset += (uint32_t)line.len + 1;
	}
	if (in_segment)
		log->tail.line = seq.line; /* the next good line tells how many are missing */
	else
		log->damage.lines += bad;
}

/* --- segments --- */

struct wpath segment_path(struct arena *arena, uint64_t first)
{
	return (struct wpath){arena_printf(arena, "log/%016llu.jsonl", (unsigned long long)first)};
}

void tail_set_version(struct tail *t, struct str version)
{
	t->version_len = version.len < sizeof(t->version) ? version.len : sizeof(t->version);
	memcpy(t->version, version.ptr, t->version_len);
	t->exists = true;
}

void tail_set_end(struct tail *t, struct str taken)
{
	t->end_len = taken.len < SEGMENT_END ? taken.len : SEGMENT_END;
	memcpy(t->end, taken.ptr + taken.len - t->end_len, t->end_len);
}

void tail_start(struct revlog *log, uint64_t first)
{
	uint64_t before = log->tail.exists ? log->tail.first : 0;

	log->sealed_bytes += log->tail.size;
	log->tail = (struct tail){.first = first, .before = before};
}

/* Adds the segments that are among the names of a page. */
static void add_segments(struct ctx *ctx, const struct store_page *page, struct segment **list, size_t *count,
			 size_t *cap)
{
	for (size_t i = 0; i < page->count; i++) {
		struct str path = page->entries[i].path.s, name = str_from(path, 4);
		int64_t first;

		if (!str_starts(path, STR("log/")) || name.len != 22 || !str_ends(name, STR(".jsonl")) ||
		    !str_to_i64(str_first(name, 16), &first) || first <= 0)
			continue;
		ARENA_ROOM(ctx->arena, *list, *count, *cap);
		(*list)[(*count)++] = (struct segment){(uint64_t)first, page->entries[i].stat};
	}
}

static void segments_among(struct ctx *ctx, const struct store_page *names, struct segment **ret, size_t *ret_count)
{
	size_t cap = 0;

	*ret = NULL;
	*ret_count = 0;
	add_segments(ctx, names, ret, ret_count, &cap);
}

int segments_list(struct store *meta, struct ctx *ctx, struct segment **ret, size_t *ret_count, struct err *err)
{
	struct store_list_req req = {.recursive = true, .limit = STORE_PAGE_MAX, .never_file = true};
	struct store_page page;
	size_t cap = 0;

	*ret = NULL;
	*ret_count = 0;
	do {
		int r = store_list(meta, ctx, (struct wpath){STR("log")}, &req, &page, err);

		if (r)
			return r == -ERR_NOT_FOUND ? 0 : r;
		add_segments(ctx, &page, ret, ret_count, &cap);
		req.after = page.next;
	} while (page.next.ptr);
	return 0;
}

int segments_find(struct store *meta, struct ctx *ctx, uint64_t above, uint64_t *ret_lowest, uint64_t *ret_next,
		  struct err *err)
{
	struct segment *list;
	size_t count;
	int r = segments_list(meta, ctx, &list, &count, err);

	*ret_lowest = r == 0 && count ? list[0].first : 0;
	*ret_next = 0;
	for (size_t i = 0; r == 0 && i < count && *ret_next == 0; i++)
		if (list[i].first > above)
			*ret_next = list[i].first;
	return r;
}

static int rolled_back(const struct revlog *log, struct err *err)
{
	return err_set(err, ERR_CORRUPT,
		       "the revision log has lost earlier contents (log/%016llu.jsonl is gone, shorter or changed); "
		       "restore it from a backup, or run `stead fsck --repair`",
		       (unsigned long long)log->tail.first);
}

/* The file of the tail segment does not exist. Usually it was not written yet. But if there are later segments, other
   processes have filled it and retention has removed it. If no earlier segment is left either, retention has removed
   everything that is known here. */
static int find_tail(struct revlog *log, struct ctx *ctx, bool *ret_found, struct err *err)
{
	uint64_t lowest, next;
	int r = segments_find(log->meta, ctx, log->tail.first - 1, &lowest, &next, err);

	*ret_found = r == 0 && next;
	if (r)
		return r;
	if (!next)
		return log->tail.exists ? rolled_back(log, err) : 0;
	if (next == log->tail.first)
		return 0; /* another process has just made it */
	if (lowest == next)
		table_forget(log, next);
	else if (next > revlog_head(log) + 1)
		table_lose(log, next - 1);
	tail_start(log, next);
	return 0;
}

/* Reads what the tail's file holds after the part that was taken in; *ret_at is where that begins. If the bytes before
   that place have changed, retention has cut the file, and it is read from its start. */
static int read_tail(struct revlog *log, struct ctx *ctx, uint64_t *ret_at, struct str *ret_rest, struct err *err)
{
	struct tail *t = &log->tail;
	struct wpath path = segment_path(ctx->arena, t->first);
	struct store_stat stat;
	struct str line;
	int r;

	*ret_at = t->parsed;
	r = store_read(log->meta, ctx, path, (struct store_range){t->parsed - t->end_len, UINT64_MAX}, SEGMENT_READ,
		       ret_rest, &stat, err);
	if (r == 0 && str_starts(*ret_rest, str_n(t->end, t->end_len))) {
		*ret_rest = str_from(*ret_rest, t->end_len);
	} else if (r == 0) {
		*ret_at = 0;
		r = store_read(log->meta, ctx, path, STORE_WHOLE, SEGMENT_READ, ret_rest, &stat, err);
		if (r == 0) {
			struct str all = *ret_rest;

			if (!rev_line_next(&all, &line) || !rev_line_number(line, "horizon"))
				return rolled_back(log, err);
			t->line = 0;
		}
	}
	if (r)
		return r;
	tail_set_version(t, stat.version);
	t->size = *ret_at + ret_rest->len;
	return 0;
}

/* True when no whole append follows. */
static bool is_last(struct str rest)
{
	bool is_end = false;
	struct str line;
	uint64_t sum;

	while (!is_end && rev_line_next(&rest, &line))
		if (!rev_line_sum(line, &sum, &is_end))
			is_end = false;
	return !is_end;
}

/* Takes in all whole appends of `rest`, which is at offset `at` of the tail; returns how many bytes they have. */
static size_t take_appends(struct revlog *log, struct str rest, uint64_t at)
{
	size_t taken = 0, len, voided;
	bool bad;

	for (;;) {
		struct rev_place place = {log->tail.first, 0, 0, log->tail.line, 0};
		struct rev_seq seq = {log->tail.first, log->tail.line};

		len = rev_append_next(str_from(rest, taken), seq, &voided, &bad);
		if (len == 0 || (bad && log->booted && is_last(str_from(rest, taken + voided + len))))
			break;
		place.offset = (uint32_t)(at + taken + voided);
		log_take_batch_lines(log, str_first(str_from(rest, taken + voided), len), place, true);
		taken += voided + len;
		if (log->tail.sealed)
			break;
	}
	return taken;
}

/* What is left after the last whole append is an append that was cut off, or damage. */
static void judge_rest(struct revlog *log, struct str rest, uint64_t at)
{
	struct rev_place place = {log->tail.first, (uint32_t)at, (uint32_t)rest.len, 0, 0};

	log->damage.at_end = false;
	if (rest.len == 0 || log->booted ||
	    rev_append_is_cut_off(rest, (struct rev_seq){log->tail.first, log->tail.line}))
		return;
	log->damage.place = place;
	log->damage.found = log->damage.at_end = true;
}

/* The tail has no seal. If there is a later segment all the same, another process has sealed it since it was read, or
   its end was lost. *ret_more: it has to be read once more, or reading continues with the later one. `sure`: it was
   read again after a later one was seen. */
static int find_later(struct revlog *log, struct ctx *ctx, bool sure, bool *ret_more, struct err *err)
{
	uint64_t lowest, next = 0;
	int r = segments_find(log->meta, ctx, log->tail.first, &lowest, &next, err);

	*ret_more = r == 0 && next;
	if (!*ret_more || !sure)
		return r;
	note_damage(log, (struct rev_place){log->tail.first, (uint32_t)log->tail.parsed, 0, 0, 0});
	log->damage.at_end = false;
	if (next > revlog_head(log) + 1 && next - revlog_head(log) <= GAP_MAX)
		table_lose(log, next - 1);
	doubt_open(log);
	tail_start(log, next);
	return 0;
}

/* Takes in what follows in the tail segment, and the segments after it. */
static int take_segments(struct revlog *log, struct ctx *ctx, bool check_later, struct err *err)
{
	bool sure = false;

	for (;;) {
		ARENA_SCOPE struct arena *arena = arena_new();
		struct ctx c = {.arena = arena, .actor = ctx->actor};
		uint64_t at, first = log->tail.first;
		struct str rest;
		size_t taken;
		bool more;
		int r = read_tail(log, &c, &at, &rest, err);

		if (r == -ERR_NOT_FOUND) {
			r = find_tail(log, &c, &more, err);
			if (r || !more)
				return r;
			continue;
		}
		if (r)
			return r;
		taken = take_appends(log, rest, at);
		log->tail.parsed = at + taken;
		if (at + taken == 0)
			log->tail.end_len = 0;
		else if (taken)
			tail_set_end(&log->tail, str_first(rest, taken));
		if (log->tail.sealed) {
			tail_start(log, log->tail.next);
			sure = false;
			continue;
		}
		judge_rest(log, str_from(rest, taken), at + taken);
		if (!check_later)
			return 0;
		r = find_later(log, &c, sure && taken == 0, &more, err);
		if (r || !more)
			return r;
		sure = log->tail.first == first;
	}
}

int log_take_tail(struct revlog *log, struct ctx *ctx, struct err *err)
{
	int r = log->journal.begun ? journal_take(log, ctx, err) : take_segments(log, ctx, false, err);

	return r == 0 && log_end_is_damaged(log) ? end_damaged(log, err) : r;
}

/* The segment that the index ends in: true when the line of its last revision is where the index says. Reading
   continues after that line. */
static bool resume(struct revlog *log, struct ctx *ctx)
{
	const struct run_head *h = run_head(log->runs[log->run_count - 1]);
	struct err ignored;
	struct str line;

	if (h->end.offset == REV_IN_JOURNAL) {
		log->journal.entry = h->end.at;
		log->journal.begun = true;
		log->journal.bytes = h->bytes;
		return log->journal.at != NULL;
	}
	if (log_line(log, ctx, h->last, &h->end, &line, &ignored))
		return false;
	log->tail = (struct tail){
		.first = h->end.at, .parsed = h->end.offset + (uint64_t)h->end.length + 1, .line = h->end.line + 1};
	line = arena_printf(ctx->arena, "%.*s\n", STR_ARG(line));
	tail_set_end(&log->tail, line);
	return true;
}

/* The names of the index and of the segments in one request, where the journal is not among the files of meta. *ret_has
   is false elsewhere, and when there are too many. */
static int list_names(struct revlog *log, struct ctx *ctx, struct store_page *ret, bool *ret_has, struct err *err)
{
	/* what comes after blobs/ */
	struct store_list_req req = {.recursive = true, .limit = STORE_PAGE_MAX, .after = STR("blobs0")};
	int r;

	*ret_has = false;
	if (!log->journal.at || log->run_store != log->meta || !store_can(log->journal.at, STORE_JOURNAL))
		return 0;
	r = store_list(log->meta, ctx, WPATH_ROOT, &req, ret, err);
	*ret_has = r == 0 && !ret->next.ptr;
	return r;
}

/* Reads the log from its beginning. */
static int load_whole(struct revlog *log, struct ctx *ctx, const struct store_page *names, struct err *err)
{
	struct segment *list;
	size_t count;
	int r = 0;

	if (names)
		segments_among(ctx, names, &list, &count);
	else
		r = segments_list(log->meta, ctx, &list, &count, err);
	if (r)
		return r;
	log->tail = (struct tail){.first = count ? list[0].first : 1};
	log->low = log->first = log->tail.first;
	log->journal.begun = !count && log->journal.at;
	return 0;
}

int log_load(struct revlog *log, struct ctx *ctx, struct err *err)
{
	struct store_page page = {0}, *names = NULL;
	bool has;
	int r = list_names(log, ctx, &page, &has, err);

	log->recount = true;
	if (has)
		names = &page;
	if (r == 0)
		r = table_open_runs(log, ctx, names, err);
	if (r)
		return r;
	if (log->run_count && !resume(log, ctx))
		table_drop_runs(log, ctx);
	if (log->run_count == 0)
		r = load_whole(log, ctx, names, err);
	if (r == 0 && !log->journal.begun)
		r = take_segments(log, ctx, true, err);
	table_lose_open(log);
	if (r || !log->journal.at)
		return r;
	log->journal.begun = true;
	return journal_take(log, ctx, err);
}

/* --- finding a line again --- */

/* Bytes of a segment, from the window if they are there. When records are read one after the other, more is read. */
static int window_read(struct revlog *log, struct ctx *ctx, uint64_t number, const struct rev_place *p, struct str *ret,
		       struct err *err)
{
	struct window *w = &log->window;
	uint64_t from = p->offset, want = p->length;
	bool down = number + 1 == w->last, near = down || number == w->last + 1;
	struct str bytes;
	int r;

	w->last = number;
	if (w->at == p->at && from >= w->offset && from + want <= w->offset + w->bytes.len) {
		*ret = str_n(w->bytes.ptr + (from - w->offset), want);
		return 0;
	}
	if (near && want < WINDOW_BYTES) {
		uint64_t end = down ? from + want : from + WINDOW_BYTES;

		from = down ? (end > WINDOW_BYTES ? end - WINDOW_BYTES : 0) : from;
		want = end - from;
	}
	r = store_read(log->meta, ctx, segment_path(ctx->arena, p->at), (struct store_range){from, want}, SEGMENT_READ,
		       &bytes, NULL, err);
	if (r)
		return r;
	if (near) {
		buf_clear(&w->bytes);
		buf_add(&w->bytes, bytes);
		w->at = p->at;
		w->offset = from;
		bytes = str_n(w->bytes.ptr, w->bytes.len);
	}
	bytes = str_from(bytes, p->offset - from < bytes.len ? (size_t)(p->offset - from) : bytes.len);
	*ret = str_first(bytes, p->length);
	return 0;
}

static int no_longer_kept(uint64_t number, struct err *err)
{
	return err_set(err, ERR_NOT_FOUND, "revision %llu is no longer kept", (unsigned long long)number);
}

/* Retention has cut the segment: searches it for the line. ERR_NOT_FOUND: retention has dropped it. */
static int search_segment(struct revlog *log, struct ctx *ctx, uint64_t number, uint64_t at, struct str *ret_line,
			  struct err *err)
{
	struct rev_seq seq = {at, 0};
	struct str rest, line;
	int r = store_read(log->meta, ctx, segment_path(ctx->arena, at), STORE_WHOLE, SEGMENT_READ, &rest, NULL, err);

	for (bool is_first = true; r == 0 && rev_line_next(&rest, &line); is_first = false) {
		if (is_first && rev_line_number(line, "horizon") > number)
			return no_longer_kept(number, err);
		if (rev_line_number(line, "rev") != number)
			continue;
		if (!rev_line_find(line, &seq))
			return log_damaged(log, number, err);
		*ret_line = line;
		return 0;
	}
	return r && r != -ERR_NOT_FOUND ? r : log_damaged(log, number, err);
}

int log_line(struct revlog *log, struct ctx *ctx, uint64_t number, const struct rev_place *p, struct str *ret_line,
	     struct err *err)
{
	uint32_t index;
	int r;

	if (p->offset == REV_IN_JOURNAL) {
		r = journal_line(log, ctx, p->at, number, ret_line, &index, err);
		if (r == 0 && !rev_line_is_whole(*ret_line, (struct rev_seq){p->at, index}))
			r = log_damaged(log, number, err);
		return r;
	}
	r = window_read(log, ctx, number, p, ret_line, err);
	if (r == 0 && ret_line->len == p->length && rev_line_number(*ret_line, "rev") == number &&
	    rev_line_is_whole(*ret_line, (struct rev_seq){p->at, p->line}))
		return 0;
	if (r && r != -ERR_NOT_FOUND)
		return r;
	log->window.at = 0;
	return search_segment(log, ctx, number, p->at, ret_line, err);
}

/* The line of a record, checked, in ctx's arena. */
static int whole_line(struct revlog *log, struct ctx *ctx, const struct rev_record *record, struct str *ret_line,
		      struct err *err)
{
	int r;

	if (record->place.offset == REV_IN_JOURNAL) { /* a request: nobody else has to wait for it */
		uint32_t index;

		r = journal_line(log, ctx, record->place.at, record->r.number, ret_line, &index, err);
		if (r == 0 && !rev_line_is_whole(*ret_line, (struct rev_seq){record->place.at, index}))
			r = log_damaged(log, record->r.number, err);
	} else {
		pthread_mutex_lock(&log->lock);
		r = log_line(log, ctx, record->r.number, &record->place, ret_line, err);
		if (r == 0)
			*ret_line = arena_str(ctx->arena, *ret_line);
		pthread_mutex_unlock(&log->lock);
	}
	return r;
}

int revlog_read_data(struct revlog *log, struct ctx *ctx, const struct rev_record *record, struct str *ret_data,
		     struct err *err)
{
	struct str line;
	int r = whole_line(log, ctx, record, &line, err);

	if (r)
		return r;
	return rev_line_data(ctx->arena, line, ret_data) ? 0 : log_damaged(log, record->r.number, err);
}

int revlog_read_was(struct revlog *log, struct ctx *ctx, const struct rev_record *record, struct str *ret_was,
		    struct err *err)
{
	struct str line;
	int r = whole_line(log, ctx, record, &line, err);

	if (r)
		return r;
	return rev_line_was(ctx->arena, line, ret_was) ? 0 : log_damaged(log, record->r.number, err);
}

int revlog_read_dropped(struct revlog *log, struct ctx *ctx, uint64_t number, struct str *ret_data, struct err *err)
{
	struct segment *list;
	size_t count;
	uint64_t at = 0;
	struct str line;
	int r;

	if (log->journal.at) {
		r = journal_find_line(log, ctx, number, &line, err);
		if (r != -ERR_NOT_FOUND)
			return r ? r : rev_line_data(ctx->arena, line, ret_data) ? 0 : no_longer_kept(number, err);
	}
	r = segments_list(log->meta, ctx, &list, &count, err);
	if (r)
		return r;
	for (size_t i = 0; i < count && list[i].first <= number; i++)
		at = list[i].first;
	if (at == 0)
		return no_longer_kept(number, err);
	r = search_segment(log, ctx, number, at, &line, err);
	if (r)
		return r == -ERR_NOT_FOUND || r == -ERR_CORRUPT ? no_longer_kept(number, err) : r;
	return rev_line_data(ctx->arena, line, ret_data) ? 0 : no_longer_kept(number, err);
}
