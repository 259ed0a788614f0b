/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Taking a log elsewhere. What is carried is the log in one canonical form, which is itself a log: records without the
 * versions and owners of files (they mean something in one place only), no notes on what is done (all of it is),
 * segments cut by one rule. So two logs with the same history give the same bytes, and a bundle's log is put in place
 * as it is; opening it there compares the newest records with the files, as after a crash, and learns their versions.
 *
 * What the caller does not want (secrets) is left out with its contents.
 */
#include "base/limits.h"
#include "revisions/layer.h"
#include "revisions/log_internal.h"

#define CARRY_BYTES (4 * MIB)

static bool is_wanted(const struct rev_carry *c, const struct rev_record *rec)
{
	return rec->r.number <= c->until && c->wanted(c->arg, rec->r.path);
}

/* --- collecting what is to be carried --- */

/* Completes the changes up to `until` that are not done, so that the files are what the log says. */
static int settle_all(struct store *revisions, struct ctx *ctx, uint64_t until, struct err *err)
{
	struct revlog *log = revisions_of(revisions)->log;
	struct rev_record **open;
	size_t count;
	int r = 0;

	revlog_lock(log);
	open = revlog_open_records(log, ctx, &count);
	revlog_unlock(log);
	for (size_t i = 0; r == 0 && i < count; i++)
		if (open[i]->r.number <= until)
			r = revisions_settle(revisions, ctx, open[i]->r.path, NULL, err);
	return r;
}

static int blob_cmp(const void *a, const void *b)
{
	return rev_hash_cmp(&((const struct rev_blob *)a)->hash, &((const struct rev_blob *)b)->hash);
}

/* A state as it is carried: where its bytes will be. The lock is held. */
static int carried_state(struct revlog *log, struct ctx *ctx, const struct rev_carry *c, struct rev_state *s,
			 struct err *err)
{
	struct rev_record holder;
	bool has;
	int r;

	s->version = STR_NONE;
	s->owner = (struct store_owner){.kind = STORE_OWNER_TOP};
	if (s->where != REV_LOG || s->held_by == 0)
		return 0;
	if (s->held_by < revlog_first(log)) { /* the record that held it was dropped: it is a blob */
		s->where = REV_BLOB;
		s->hash = content_held_hash(s);
		s->held_by = 0;
		return 0;
	}
	r = revlog_get(log, ctx, s->held_by, &holder, &has, err);
	if (r == 0 && !(has && is_wanted(c, &holder))) {
		s->where = REV_NOWHERE;
		s->held_by = 0;
	}
	return r;
}

/* An append whose bytes are a blob of their own. */
static bool has_piece(const struct rev_record *rec)
{
	return rec->r.after.where == REV_PREFIX && rev_hash_is_set(&rec->piece);
}

/* The blobs that are found, with repeats. */
struct found {
	struct rev_blob *list;
	size_t count, cap;
};

static void found_add(struct found *f, const struct rev_hash *hash, uint64_t size)
{
	HEAP_ROOM(f->list, f->count, f->cap);
	f->list[f->count++] = (struct rev_blob){.hash = *hash, .size = size};
}

/* The blobs that one record refers to. The lock is held. */
static int list_record(struct revlog *log, struct ctx *ctx, struct rev_carry *c, struct rev_record *rec,
		       struct found *found, struct err *err)
{
	struct rev_state *two[2] = {&rec->r.before, &rec->r.after};
	int r = 0;

	c->head = rec->r.number;
	c->revisions += !rec->r.aborted;
	c->newest_ns = rec->r.time_ns > c->newest_ns ? rec->r.time_ns : c->newest_ns;
	if (rec->r.number <= c->since)
		return 0;
	for (int i = 0; r == 0 && i < 2; i++) {
		r = carried_state(log, ctx, c, two[i], err);
		if (r == 0 && two[i]->exists && two[i]->where == REV_BLOB)
			found_add(found, &two[i]->hash, two[i]->size);
	}
	if (has_piece(rec))
		found_add(found, &rec->piece, rec->r.after.size - rec->r.before.size);
	return r;
}

static int list_blobs(struct revlog *log, struct ctx *ctx, struct rev_carry *c, struct found *found, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx own = *ctx;
	int r = 0;

	own.arena = arena;
	revlog_lock(log);
	c->first = revlog_first(log);
	c->head = c->first - 1;
	for (uint64_t n = c->first; r == 0 && n && n <= c->until && n <= revlog_head(log); n++) {
		struct rev_record rec;
		bool has;

		arena_reset(arena);
		r = revlog_get(log, &own, n, &rec, &has, err);
		if (r == 0 && has && is_wanted(c, &rec))
			r = list_record(log, &own, c, &rec, found, err);
	}
	revlog_unlock(log);
	return r;
}

static int copy_checkpoints(struct ctx *ctx, struct revlog *log, struct rev_carry *c, struct err *err)
{
	size_t n = 0;
	int r;

	revlog_lock(log);
	r = revlog_checkpoints(log, ctx, &c->checkpoints, &c->checkpoint_count, err);
	revlog_unlock(log);
	for (size_t i = 0; r == 0 && i < c->checkpoint_count; i++)
		if (c->checkpoints[i].number <= c->head)
			c->checkpoints[n++] = c->checkpoints[i];
	c->checkpoint_count = n;
	return r;
}

static bool is_whole(struct revisions *rv, const struct rev_blob *blob)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};
	struct store_stat stat;
	struct err ignored;

	return store_stat(rv->meta, &ctx, content_blob_path(arena, &blob->hash), &stat, &ignored) == 0 &&
	       stat.size == blob->size;
}

int revisions_carry(struct store *revisions, struct ctx *ctx, struct rev_carry *c, struct err *err)
{
	struct revisions *rv = revisions_of(revisions);
	REV_PINNED struct revisions *pin = revisions_pin(rv);
	struct found found = {0};
	size_t kept = 0;
	int r = revisions_ready(rv, ctx, err);

	if (r == 0)
		r = settle_all(revisions, ctx, c->until, err);
	if (r)
		return r;
	c->revisions = 0;
	c->newest_ns = 0;
	r = list_blobs(rv->log, ctx, c, &found, err);
	if (r == 0)
		r = copy_checkpoints(ctx, rv->log, c, err);
	if (found.count)
		qsort(found.list, found.count, sizeof(*found.list), blob_cmp);
	c->blobs = ARENA_ARRAY(ctx->arena, struct rev_blob, found.count);
	c->missing = 0;
	for (size_t i = 0; r == 0 && i < found.count; i++) {
		if (i && blob_cmp(&found.list[i - 1], &found.list[i]) == 0)
			continue;
		if (is_whole(rv, &found.list[i]))
			c->blobs[kept++] = found.list[i];
		else
			c->missing++;
	}
	c->blob_count = kept;
	free(found.list);
	return r;
}

int revisions_carry_blob(struct store *revisions, struct ctx *ctx, const struct rev_blob *blob, const struct sink *sink,
			 struct err *err)
{
	return store_read_stream(revisions_of(revisions)->meta, ctx, content_blob_path(ctx->arena, &blob->hash),
				 STORE_WHOLE, sink, NULL, err);
}

/* --- the lines --- */

static void drop_missing(const struct rev_carry *c, struct rev_state *s)
{
	struct rev_blob key = {.hash = s->hash};

	if (s->exists && s->where == REV_BLOB &&
	    !(c->blob_count && bsearch(&key, c->blobs, c->blob_count, sizeof(key), blob_cmp)))
		s->where = REV_NOWHERE;
}

/* Makes the draft for a record's canonical line; *ret_wanted false: the record is not carried. */
static int carried_draft(struct revisions *rv, struct ctx *ctx, const struct rev_carry *c, uint64_t number,
			 struct rev_draft *ret, bool *ret_aborted, bool *ret_wanted, struct err *err)
{
	struct rev_record rec;
	int r;

	revlog_lock(rv->log);
	r = revlog_get(rv->log, ctx, number, &rec, ret_wanted, err);
	*ret_wanted = r == 0 && *ret_wanted && is_wanted(c, &rec);
	if (*ret_wanted) {
		*ret = (struct rev_draft){.op = rec.r.op,
					  .path = rec.r.path,
					  .other = rec.r.other,
					  .before = rec.r.before,
					  .after = rec.r.after,
					  .time_ns = rec.r.time_ns,
					  .actor = rec.r.actor};
		r = carried_state(rv->log, ctx, c, &ret->before, err);
		if (r == 0)
			r = carried_state(rv->log, ctx, c, &ret->after, err);
		if (has_piece(&rec))
			ret->piece = (struct rev_state){.exists = true,
							.where = REV_BLOB,
							.size = rec.r.after.size - rec.r.before.size,
							.hash = rec.piece};
		*ret_aborted = rec.r.aborted;
	}
	revlog_unlock(rv->log);
	if (r || !*ret_wanted)
		return r;
	if (ret->other.len && !c->wanted(c->arg, (struct wpath){ret->other}))
		ret->other = STR_NONE;
	drop_missing(c, &ret->before);
	drop_missing(c, &ret->after);
	if (ret->piece.where == REV_BLOB && ret->after.where == REV_PREFIX) {
		struct rev_state piece = ret->piece;

		drop_missing(c, &piece);
		ret->after.where = piece.where == REV_BLOB ? REV_PREFIX : REV_NOWHERE;
	}
	if ((ret->after.where == REV_PREFIX && ret->piece.where != REV_BLOB) ||
	    (ret->after.where == REV_LOG && ret->after.held_by == 0))
		r = revlog_read_data(rv->log, ctx, &rec, &ret->data, err);
	if (r == 0 && ret->before.where == REV_HERE)
		r = revlog_read_was(rv->log, ctx, &rec, &ret->was, err);
	return r;
}

/* The lines of one record, without their sums. */
static int write_record(struct revisions *rv, struct ctx *ctx, const struct rev_carry *c, uint64_t number,
			struct buf *out, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx own = *ctx;
	struct rev_draft d;
	bool aborted = false, wanted = false;
	int r;

	own.arena = arena;
	r = carried_draft(rv, &own, c, number, &d, &aborted, &wanted, err);
	if (r || !wanted)
		return r;
	buf_printf(out, "{\"rev\":%llu", (unsigned long long)number);
	rev_line_body(arena, out, &d);
	buf_char(out, '\n');
	if (aborted)
		buf_printf(out, "{\"abort\":%llu\n", (unsigned long long)number);
	return 0;
}

/* A whole segment of lines that have no sums yet. */
static int put_segment(struct buf *lines, uint64_t first,
		       int (*put)(void *arg, uint64_t first, struct str bytes, struct err *err), void *arg,
		       struct err *err)
{
	struct rev_seq seq = {first, 0};
	struct buf out;
	int r;

	buf_init(&out, NULL, SEGMENT_READ);
	log_finish_lines(&out, buf_str(lines), &seq);
	rev_line_mark_end(&out);
	r = out.overflow || lines->overflow
		    ? err_set(err, ERR_TOO_LARGE, "the history has a record that is too large to copy")
		    : put(arg, first, buf_str(&out), err);
	buf_release(&out);
	return r;
}

int revisions_carry_log(struct store *revisions, struct ctx *ctx, const struct rev_carry *c,
			int (*put)(void *arg, uint64_t first, struct str bytes, struct err *err), void *arg,
			struct err *err)
{
	struct revisions *rv = revisions_of(revisions);
	REV_PINNED struct revisions *pin = revisions_pin(rv);
	uint64_t first = c->first;
	struct buf lines;
	int r = 0;

	buf_init(&lines, NULL, SEGMENT_READ);
	for (uint64_t n = c->first; r == 0 && n <= c->head; n++) {
		r = write_record(rv, ctx, c, n, &lines, err);
		if (r == 0 && lines.len > CARRY_BYTES && n < c->head) {
			buf_printf(&lines, "{\"seal\":%llu\n", (unsigned long long)(n + 1));
			r = put_segment(&lines, first, put, arg, err);
			buf_clear(&lines);
			first = n + 1;
		}
		if (r == 0)
			r = ctx_check(ctx, err);
	}
	for (size_t i = 0; i < c->checkpoint_count; i++) {
		rev_line_checkpoint(&lines, &c->checkpoints[i]);
		buf_char(&lines, '\n');
	}
	if (r == 0 && (c->head || c->checkpoint_count))
		r = put_segment(&lines, first, put, arg, err);
	buf_release(&lines);
	return r;
}

/* --- a log that follows another --- */

static bool is_same(const struct rev_record *a, const struct rev_record *b)
{
	const struct rev_state *x = &a->r.after, *y = &b->r.after;

	return a->r.op == b->r.op && a->r.time_ns == b->r.time_ns && str_eq(a->r.path.s, b->r.path.s) &&
	       str_eq(a->r.other, b->r.other) && str_eq(a->r.actor.user, b->r.actor.user) && x->exists == y->exists &&
	       x->size == y->size && x->hash.w[0] == y->hash.w[0] && x->hash.w[1] == y->hash.w[1];
}

/* The same record of two logs, or none of both. */
static int get_both(struct revlog *a, struct revlog *b, struct ctx *ctx, uint64_t number, struct rev_record two[2],
		    bool has[2], struct err *err)
{
	int r;

	revlog_lock(a);
	r = revlog_get(a, ctx, number, &two[0], &has[0], err);
	revlog_unlock(a);
	if (r)
		return r;
	revlog_lock(b);
	r = revlog_get(b, ctx, number, &two[1], &has[1], err);
	revlog_unlock(b);
	return r;
}

int revisions_compare(struct store *revisions, struct ctx *ctx, struct store *with, uint64_t *ret_head,
		      uint64_t *ret_differs, struct err *err)
{
	REV_PINNED struct revisions *pin = revisions_pin(revisions_of(revisions));
	REV_PINNED struct revisions *other_pin = revisions_pin(revisions_of(with));
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx own = *ctx;
	uint64_t first, other, other_first;
	struct revlog *a, *b;
	int r = revisions_head(revisions, ctx, ret_head, err);

	if (r == 0)
		r = revisions_head(with, ctx, &other, err);
	if (r)
		return r;
	own.arena = arena;
	a = revisions_of(revisions)->log;
	b = revisions_of(with)->log;
	*ret_differs = 0;
	revlog_lock(a);
	first = revlog_first(a);
	revlog_unlock(a);
	revlog_lock(b);
	other_first = revlog_first(b);
	revlog_unlock(b);
	if (*ret_head && first > other_first) /* this log was cut: what the other refers to may be gone here */
		*ret_differs = first;
	first = first > other_first ? first : other_first;
	for (uint64_t n = first; r == 0 && n <= *ret_head && !*ret_differs; n++) {
		struct rev_record two[2];
		bool has[2];

		arena_reset(arena);
		r = get_both(a, b, &own, n, two, has, err);
		if (r == 0 && (n > other || has[0] != has[1] || (has[0] && !is_same(&two[0], &two[1]))))
			*ret_differs = n;
	}
	return r;
}

/* Lines about records that are already there: changes that were aborted later, and checkpoints that moved. */
static int write_notes(struct revlog *log, struct revlog *from, struct ctx *ctx, const struct rev_carry *c,
		       struct buf *out, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct rev_checkpoint *have;
	struct ctx own = *ctx;
	uint64_t first, head;
	size_t count, k;
	int r;

	own.arena = arena;
	revlog_lock(log);
	first = revlog_first(log);
	head = revlog_head(log);
	r = revlog_checkpoints(log, ctx, &have, &count, err);
	revlog_unlock(log);
	for (uint64_t n = first; r == 0 && n <= head; n++) {
		struct rev_record two[2];
		bool has[2];

		arena_reset(arena);
		r = get_both(log, from, &own, n, two, has, err);
		if (r == 0 && has[0] && has[1] && !two[0].r.aborted && two[1].r.aborted)
			buf_printf(out, "{\"abort\":%llu\n", (unsigned long long)n);
	}
	for (size_t i = 0; r == 0 && i < c->checkpoint_count; i++) {
		const struct rev_checkpoint *mark = &c->checkpoints[i];

		for (k = 0; k < count && !str_eq(have[k].name, mark->name); k++)
			;
		if (k == count || have[k].time_ns < mark->time_ns) {
			rev_line_checkpoint(out, mark);
			buf_char(out, '\n');
		}
	}
	return r;
}

int revisions_follow(struct store *revisions, struct ctx *ctx, struct store *from, const struct rev_carry *c,
		     struct err *err)
{
	REV_PINNED struct revisions *pin = revisions_pin(revisions_of(revisions));
	REV_PINNED struct revisions *other_pin = revisions_pin(revisions_of(from));
	struct revlog *log = revisions_of(revisions)->log;
	uint64_t head;
	struct buf out;
	int r = revisions_head(revisions, ctx, &head, err);

	if (r == 0 && c->first > head + 1) { /* the revisions in between are no longer kept there */
		r = revlog_set_horizon(log, ctx, c->first, err);
		head = c->first - 1;
	}
	buf_init(&out, NULL, SEGMENT_READ);
	for (uint64_t n = head + 1; r == 0 && n <= c->head; n++) {
		r = write_record(revisions_of(from), ctx, c, n, &out, err);
		if (r == 0 && out.len > CARRY_BYTES) {
			r = out.overflow ? 0 : revlog_take_up(log, ctx, buf_str(&out), err);
			if (!out.overflow)
				buf_clear(&out);
		}
		if (r == 0)
			r = ctx_check(ctx, err);
	}
	if (r == 0)
		r = write_notes(log, revisions_of(from)->log, ctx, c, &out, err);
	if (r == 0 && out.overflow)
		r = err_set(err, ERR_TOO_LARGE, "the history has a record that is too large to copy");
	if (r == 0 && out.len)
		r = revlog_take_up(log, ctx, buf_str(&out), err);
	buf_release(&out);
	return r == -ERR_CONFLICT ? err_set(err, ERR_CONFLICT,
					    "the copy changed while it was being updated; leave it alone and run the "
					    "command again")
				  : r;
}

/* --- reading them --- */

static int bad_log(const char *why, struct err *err)
{
	return err_set(err, ERR_CORRUPT, "the history in it is damaged: %s", why);
}

static bool names_owner(const struct rev_state *s)
{
	return s->owner.kind == STORE_OWNER_IDS;
}

int revisions_check_segment(struct ctx *ctx, struct str bytes, struct rev_segment_check *c, struct err *err)
{
	struct rev_seq seq = {c->first, 0};
	struct str line;
	bool sealed = false;

	(void)ctx;
	while (bytes.len) {
		ARENA_SCOPE struct arena *arena = arena_new();
		struct rev_line parsed;

		if (!rev_line_next(&bytes, &line) || !rev_line_is_whole(line, seq) ||
		    !rev_line_parse(arena, line, &parsed) || sealed)
			return bad_log("a line cannot be read", err);
		seq.line++;
		switch (parsed.kind) {
		case REV_LINE_RECORD:
			if (parsed.record.r.number <= c->last || parsed.record.r.number - c->last > c->gap_max)
				return bad_log("revisions are out of order", err);
			if (parsed.record.left)
				return bad_log("a revision is not one by itself", err);
			if (names_owner(&parsed.record.r.before) || names_owner(&parsed.record.r.after))
				return bad_log("a revision says which user of this machine a file is to belong to",
					       err);
			if (!c->wanted(c->arg, parsed.record.r.path))
				return bad_log("a revision has a path that a bundle cannot have", err);
			c->last = parsed.record.r.number;
			break;
		case REV_LINE_SEAL:
			if (parsed.number <= c->last)
				return bad_log("revisions are out of order", err);
			c->last = parsed.number - 1;
			sealed = true;
			break;
		case REV_LINE_ABORT:
		case REV_LINE_CHECKPOINT:
			if (parsed.number > c->last)
				return bad_log("a line belongs to a missing revision", err);
			break;
		default:
			return bad_log("a line cannot be read", err);
		}
	}
	c->sealed = sealed;
	return 0;
}
