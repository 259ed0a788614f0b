/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checking a log from its first line to its last, and every content that its records refer to. It reads the files
 * themselves, not what is known of them in memory or in the index, so it also works on a log that cannot be opened.
 *
 * A repair keeps everything that is whole. A damaged segment is copied to damaged/ and then replaced by its good lines;
 * a number whose line is gone gets a line that says so, so that the numbers after it stay what they are. A damaged
 * content is moved to damaged/, and one that is missing gets an empty file there: the next check finds nothing new. The
 * index is made again.
 *
 * The end alone (`end_only`) is for a look that has to be cheap. It is where most damage shows: what a failing disk, a
 * copy that was cut or a tool that truncates leaves.
 */
#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "revisions/layer.h"
#include "revisions/log_internal.h"
#include "store/list_stream.h"

/* A segment has about SEGMENT_BYTES, and one append more. */
#define END_BYTES_MAX (16 * SEGMENT_BYTES)
#define END_ENTRIES   256

struct checking {
	struct store *meta;
	struct ctx *ctx;
	struct rev_check *check;
	uint64_t horizon;   /* the highest that a line sets */
	uint64_t last;      /* the last revision that was seen */
	uint64_t known_end; /* the newest one that there was at the last clean end; 0: not known */
	struct rev_blob *blobs;
	size_t count, cap;
};

__attribute__((format(printf, 2, 3))) static void found(struct checking *c, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	c->check->damages++;
	c->check->found(c->check->arg, str_of(text));
}

/* --- lines --- */

static void take_state(struct checking *c, const struct rev_state *s)
{
	struct rev_blob b = {.hash = s->hash, .size = s->size};

	if (!s->exists || s->where != REV_BLOB)
		return;
	HEAP_ROOM(c->blobs, c->count, c->cap);
	c->blobs[c->count++] = b;
}

static void take_line(struct checking *c, struct str line)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct rev_line parsed;

	if (!rev_line_parse(arena, line, &parsed))
		return;
	if (parsed.kind == REV_LINE_HORIZON && parsed.number > c->horizon)
		c->horizon = parsed.number;
	if (parsed.kind == REV_LINE_LOST && parsed.number > c->last)
		c->last = parsed.number;
	if (parsed.kind != REV_LINE_RECORD)
		return;
	c->last = parsed.record.r.number;
	if (!c->check->first)
		c->check->first = c->last;
	c->check->last = c->last;
	take_state(c, &parsed.record.r.before);
	take_state(c, &parsed.record.r.after);
	if (rev_hash_is_set(&parsed.record.piece))
		take_state(c, &(struct rev_state){.exists = true,
						  .where = REV_BLOB,
						  .hash = parsed.record.piece,
						  .size = parsed.record.r.after.size - parsed.record.r.before.size});
}

/* What is left of a segment or an entry: its good lines, with new sums, and lines for the numbers that are lost. */
struct rest {
	struct buf out;
	struct rev_seq seq;
	bool damaged, sealed;
	uint64_t next;    /* sealed: what the seal says */
	uint64_t unknown; /* bad lines since the last record: each may have been one */
	uint64_t highest; /* number that a bad line seems to have */
};

static void rest_add(struct rest *rest, struct str line)
{
	size_t start = rest->out.len;

	buf_add(&rest->out, str_first(line, line.len - REV_LINE_SUM));
	rev_line_finish(&rest->out, start, &rest->seq);
}

static void rest_lose(struct checking *c, struct rest *rest, uint64_t until)
{
	for (uint64_t n = c->last + 1; n <= until && until - c->last <= GAP_MAX; n++)
		rev_line_note(&rest->out, "lost", n, &rest->seq);
	if (until > c->last)
		c->last = until;
}

/* One line that is not good. */
static void bad_line(struct checking *c, struct rest *rest, const char *file, size_t offset, struct str line)
{
	uint64_t number = rev_line_number(line, "rev");

	rest->damaged = true;
	rest->unknown++;
	if (number > rest->highest && number - c->last <= GAP_MAX)
		rest->highest = number;
	if (number)
		found(c, "%s, byte %zu: the line of revision %llu is damaged", file, offset,
		      (unsigned long long)number);
	else
		found(c, "%s, byte %zu: a line is damaged", file, offset);
}

/* One line that is good; `after_gap`: some before it were not. */
static void good_line(struct checking *c, struct rest *rest, struct str line, bool after_gap)
{
	uint64_t number = rev_line_number(line, "rev");

	if (after_gap && number > c->last + 1)
		rest_lose(c, rest, number - 1);
	if (number)
		rest->unknown = rest->highest = 0;
	rest_add(rest, line);
	rest->next = rev_line_number(line, "seal");
	rest->sealed = rest->next != 0;
	take_line(c, line);
}

/* Goes through the lines of one segment or entry. What an append declares void is left out, and so is the beginning of
   an append at the end, whose writer was killed. */
static void check_lines(struct checking *c, const char *file, struct str bytes, struct rev_seq seq, struct rest *rest)
{
	struct str all = bytes, line;
	bool bad = false, unused, is_end = true;
	uint64_t sum;
	size_t voided;

	for (;;) {
		struct rev_seq at = seq;
		size_t offset;

		if (is_end && rev_append_next(bytes, seq, &voided, &unused))
			bytes = str_from(bytes, voided);
		else if (is_end && rev_append_is_cut_off(bytes, seq))
			return;
		if (!rev_line_next(&bytes, &line))
			return;
		offset = (size_t)(line.ptr - all.ptr);
		if (!rev_line_sum(line, &sum, &is_end))
			is_end = false;
		if (!rev_line_find(line, &at)) {
			bad_line(c, rest, file, offset, line);
			bad = true;
			continue;
		}
		if (at.line != seq.line && !bad) {
			rest->damaged = true;
			rest->unknown += at.line - seq.line;
			found(c, "%s, byte %zu: lines before it are missing (%u)", file, offset, at.line - seq.line);
		}
		good_line(c, rest, line, rest->damaged);
		seq = at;
		seq.line++;
		bad = false;
	}
}

static int set_aside(struct checking *c, struct str name, struct str bytes, struct err *err)
{
	struct wpath path = {
		arena_printf(c->ctx->arena, "damaged/%lld-%.*s", (long long)clock_real_ns(), STR_ARG(name))};

	return store_write(c->meta, c->ctx, path, bytes, (struct store_cond){0}, NULL, err);
}

/* Writes lines for numbers whose segment is gone. */
static int fill_gap(struct checking *c, uint64_t first, uint64_t next, struct err *err)
{
	struct rest rest = {.seq = {first, 0}};
	int r;

	found(c, "log/%016llu.jsonl is missing, with revisions %llu to %llu", (unsigned long long)first,
	      (unsigned long long)first, (unsigned long long)next - 1);
	if (!c->check->repair || next - first > GAP_MAX)
		return 0;
	buf_init(&rest.out, NULL, SEGMENT_READ);
	c->last = first - 1;
	rest_lose(c, &rest, next - 1);
	rev_line_note(&rest.out, "seal", next, &rest.seq);
	rev_line_mark_end(&rest.out);
	r = store_write(c->meta, c->ctx, segment_path(c->ctx->arena, first), buf_str(&rest.out),
			(struct store_cond){.kind = STORE_ABSENT}, NULL, err);
	buf_release(&rest.out);
	return r;
}

/* One segment. `next`: the first revision of the one after it; 0: it is the last. */
static int check_segment(struct checking *c, uint64_t first, uint64_t next, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct rest rest = {.seq = {first, 0}};
	struct ctx ctx = *c->ctx;
	struct wpath path = segment_path(arena, first);
	struct store_stat stat;
	struct str bytes, tail;
	uint64_t sum;
	bool is_end;
	size_t end;
	int r;

	ctx.arena = arena;
	r = store_read(c->meta, &ctx, path, STORE_WHOLE, SEGMENT_READ, &bytes, &stat, err);
	if (r)
		return r;
	buf_init(&rest.out, NULL, SEGMENT_READ);
	check_lines(c, path.s.ptr, bytes, rest.seq, &rest);
	end = str_rfind_char(bytes, '\n');
	tail = end == bytes.len ? bytes : str_from(bytes, end + 1);
	if (tail.len && (next || rev_line_sum(str_first(tail, tail.len - 1), &sum, &is_end))) {
		rest.damaged = true;
		rest.unknown++;
		found(c, "%s: its last line is damaged", path.s.ptr);
	}
	if (!next && rest.unknown) /* nobody knows how many revisions there were */
		rest_lose(c, &rest, rest.highest > c->last + rest.unknown ? rest.highest : c->last + rest.unknown);
	if (!next && !rest.sealed && c->known_end > c->last) {
		rest.damaged = true;
		found(c, "%s: it ends at revision %llu, but there were %llu", path.s.ptr, (unsigned long long)c->last,
		      (unsigned long long)c->known_end);
		rest_lose(c, &rest, c->known_end);
	}
	if (next && (!rest.sealed || rest.next != next)) {
		rest.damaged = true;
		found(c, "%s: its end is missing", path.s.ptr);
		rest_lose(c, &rest, next - 1);
		rev_line_note(&rest.out, "seal", next, &rest.seq);
	}
	rev_line_mark_end(&rest.out);
	if (rest.damaged && c->check->repair) {
		r = set_aside(c, str_from(path.s, 4), bytes, err);
		if (r == 0)
			r = store_write(c->meta, &ctx, path, buf_str(&rest.out),
					(struct store_cond){.kind = STORE_VERSION, .version = stat.version}, NULL, err);
	}
	buf_release(&rest.out);
	return r;
}

/* Only the newest of the segments. */
static int check_newest(struct checking *c, const struct segment *newest, struct err *err)
{
	int r = 0;

	if (newest && newest->stat.size > END_BYTES_MAX) {
		c->check->too_large = newest->stat.size;
		return 0;
	}
	c->last = newest ? newest->first - 1 : 0;
	if (newest)
		r = check_segment(c, newest->first, 0, err);
	if (r == -ERR_NOT_FOUND) /* retention has just removed it */
		return 0;
	return r == 0 && c->known_end > c->last ? fill_gap(c, c->last + 1, c->known_end + 1, err) : r;
}

static int check_segments(struct checking *c, struct err *err)
{
	struct segment *list;
	size_t count;
	int r = segments_list(c->meta, c->ctx, &list, &count, err);

	if (r == 0 && c->check->end_only)
		return check_newest(c, count ? &list[count - 1] : NULL, err);
	c->last = count ? list[0].first - 1 : 0;
	for (size_t i = 0; r == 0 && i < count; i++) {
		uint64_t before = c->last;

		if (i && list[i].first > before + 1)
			r = fill_gap(c, before + 1, list[i].first, err);
		if (r == 0)
			r = check_segment(c, list[i].first, i + 1 < count ? list[i + 1].first : 0, err);
		if (r == 0)
			r = ctx_check(c->ctx, err);
	}
	if (r == 0 && c->known_end > c->last)
		r = fill_gap(c, c->last + 1, c->known_end + 1, err);
	if (r == 0 && count && list[0].first > 1 && list[0].first > c->horizon)
		r = fill_gap(c, 1, list[0].first, err);
	return r;
}

/* The entries after `after`. */
static int check_journal(struct checking *c, struct store *at, struct wpath journal, uint64_t after, struct err *err)
{
	for (;;) {
		ARENA_SCOPE struct arena *arena = arena_new();
		struct journal_read req = {.after = after, .max_bytes = 4 * MIB};
		struct journal_page page = {0};
		struct ctx ctx = *c->ctx;
		int r;

		ctx.arena = arena;
		r = store_journal_read(at, &ctx, journal, &req, &page, err);
		if (r == -ERR_NOT_FOUND && page.first > after + 1) {
			after = page.first - 1;
			continue;
		}
		if (r || page.count == 0)
			return r == -ERR_NOT_FOUND ? 0 : r;
		for (size_t i = 0; i < page.count; i++) {
			struct rest rest = {.seq = {page.entries[i].number, 0}};
			char file[64];

			snprintf(file, sizeof(file), "entry %llu of the journal",
				 (unsigned long long)page.entries[i].number);
			buf_init(&rest.out, arena, SEGMENT_READ);
			check_lines(c, file, page.entries[i].bytes, rest.seq, &rest);
			after = page.entries[i].number;
		}
	}
}

/* What retention has dropped may still be there. */
static void drop_old(struct checking *c)
{
	if (c->check->last && c->check->first < c->horizon)
		c->check->first = c->horizon;
}

/* --- contents --- */

static int blob_cmp(const void *a, const void *b)
{
	return rev_hash_cmp(&((const struct rev_blob *)a)->hash, &((const struct rev_blob *)b)->hash);
}

/* A content that is not there: lost, unless it was forgotten on purpose, or a repair has said so before. */
static int check_missing(struct checking *c, struct ctx *ctx, const struct rev_blob *b, struct wpath path,
			 struct wpath aside, struct err *err)
{
	struct wpath gone = {arena_printf(ctx->arena, "gone/%.*s", STR_ARG(rev_blob_name(ctx->arena, &b->hash)))};
	struct store_stat stat;
	struct err ignored;

	if (store_stat(c->meta, ctx, gone, &stat, &ignored) == 0)
		return 0;
	if (store_stat(c->meta, ctx, aside, &stat, &ignored) == 0) {
		c->check->contents--;
		c->check->aside++;
		return 0;
	}
	found(c, "%s is missing, but a revision refers to it", path.s.ptr);
	return c->check->repair ? store_write(c->meta, ctx, aside, STR(""), (struct store_cond){0}, NULL, err) : 0;
}

static int check_blob(struct checking *c, const struct rev_blob *b, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct wpath path = content_blob_path(arena, &b->hash);
	struct wpath aside = {arena_printf(arena, "damaged/%.*s", STR_ARG(path.s))};
	struct store_cond any = {0};
	struct ctx ctx = *c->ctx;
	struct store_stat stat;
	int r;

	ctx.arena = arena;
	c->check->contents++;
	if (content_is(c->meta, &ctx, path, &b->hash, &stat) && stat.size == b->size)
		return 0;
	r = store_stat(c->meta, &ctx, path, &stat, err);
	if (r)
		return r == -ERR_NOT_FOUND ? check_missing(c, &ctx, b, path, aside, err) : r;
	found(c, "%s does not match its name, which is the hash of its content", path.s.ptr);
	if (!c->check->repair)
		return 0;
	return store_move(c->meta, &ctx, path, aside, any, any, NULL, err);
}

static int check_blobs(struct checking *c, struct err *err)
{
	int r = 0;

	if (c->count)
		qsort(c->blobs, c->count, sizeof(*c->blobs), blob_cmp);
	for (size_t i = 0; r == 0 && i < c->count; i++) {
		if (i && blob_cmp(&c->blobs[i - 1], &c->blobs[i]) == 0)
			continue;
		r = check_blob(c, &c->blobs[i], err);
		if (r == 0)
			r = ctx_check(c->ctx, err);
	}
	return r;
}

/* What is known of a log that is open: where its journal ends, and which revisions could not be read. */
static int check_open(struct checking *c, struct revisions *rv, struct err *err)
{
	struct revlog *log;
	uint64_t entry;
	bool unread;
	int r = revisions_ready(rv, c->ctx, err);

	if (r)
		return r;
	log = rv->log;
	revlog_lock(log);
	unread = log_end_is_damaged(log) || revlog_unread_between(log, 0, UINT64_MAX);
	entry = log->journal.entry;
	c->check->last = revlog_head(log);
	revlog_unlock(log);
	if (rv->journal)
		r = check_journal(c, rv->log_at, rv->log_path, entry > END_ENTRIES ? entry - END_ENTRIES : 0, err);
	if (r == 0 && unread && !c->check->damages)
		found(c, "some revisions cannot be read");
	return r;
}

int revisions_check_files(struct store *meta, struct ctx *ctx, struct rev_check *check, struct err *err)
{
	struct checking c = {.meta = meta, .ctx = ctx, .check = check};
	int r = check_segments(&c, err);

	drop_old(&c);
	if (r == 0 && !check->end_only)
		r = check_blobs(&c, err);
	if (r == 0 && check->repair && check->damages)
		runs_remove_all(meta, ctx);
	free(c.blobs);
	return r;
}

int revisions_check(struct store *revisions, struct ctx *ctx, struct rev_check *check, struct err *err)
{
	struct revisions *rv = revisions_of(revisions);
	struct checking c = {.meta = rv->meta, .ctx = ctx, .check = check, .known_end = recover_known_end(rv, ctx)};
	struct store *runs = rv->journal ? rv->meta : rv->scratch;
	int r = check_segments(&c, err);

	if (check->end_only) {
		REV_PINNED struct revisions *pin = revisions_pin(rv);

		if (r == 0)
			r = check_open(&c, rv, err);
		free(c.blobs);
		return r;
	}
	if (r == 0 && rv->journal)
		r = check_journal(&c, rv->log_at, rv->log_path, 0, err);
	drop_old(&c);
	if (r == 0)
		r = check_blobs(&c, err);
	if (r == 0 && check->repair && check->damages && runs) {
		runs_remove_all(runs, ctx);
		if (rv->log) {
			revlog_forget(rv->log);
			revisions_unpin(&(struct revisions *){revisions_pin(rv)}); /* it is read again now */
		}
	}
	free(c.blobs);
	return r;
}
