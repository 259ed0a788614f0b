/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Taking a log elsewhere. What is carried is the log in one canonical form, which is itself a log: records without the
 * versions of files (they mean something in one store only), no notes on what is done (all of it is), segments cut by
 * one rule. So two logs with the same history give the same bytes, and a bundle's log is put in place as it is; opening
 * it there compares the newest records with the files, as after a crash, and learns their versions.
 *
 * What the caller does not want (secrets) is left out with its contents.
 */
#include "base/limits.h"
#include "revisions/layer.h"
#include "revisions/log_internal.h"

#define CARRY_BYTES (4 * MIB)

static bool is_wanted(const struct rev_carry *c, const struct rev_record *rec)
{
	return rec && rec->r.number <= c->until && c->wanted(c->arg, rec->r.path);
}

/* --- collecting what is to be carried --- */

/* Completes the changes up to `until` that are not done, so that the files are what the log says. */
static int settle_all(struct store *revisions, struct ctx *ctx, uint64_t until, struct err *err)
{
	struct revlog *log = revisions_of(revisions)->log;
	struct wpath *paths;
	size_t count = 0;
	int r = 0;

	revlog_lock(log);
	paths = xcalloc(log->record_count + 1, sizeof(*paths));
	for (uint64_t n = revlog_first(log); n && n <= until; n++) {
		struct rev_record *rec = revlog_at(log, n);

		if (rec && !rec->done)
			paths[count++] = (struct wpath){arena_str(ctx->arena, rec->r.path.s)};
	}
	revlog_unlock(log);
	for (size_t i = 0; r == 0 && i < count; i++)
		r = revisions_settle(revisions, ctx, paths[i], NULL, err);
	free(paths);
	return r;
}

static int blob_cmp(const void *a, const void *b)
{
	const struct rev_blob *x = a, *y = b;

	if (x->hash[0] != y->hash[0])
		return x->hash[0] < y->hash[0] ? -1 : 1;
	return x->hash[1] < y->hash[1] ? -1 : x->hash[1] > y->hash[1];
}

static int mark_cmp(const void *a, const void *b)
{
	return str_cmp(((const struct rev_checkpoint *)a)->name, ((const struct rev_checkpoint *)b)->name);
}

/* A state as it is carried: where its bytes will be. The lock is held. */
static struct rev_state carried_state(struct revlog *log, const struct rev_carry *c, const struct rev_state *from)
{
	struct rev_state s = *from;

	s.version = STR_NONE;
	if (s.where != REV_LOG || s.held_by == 0)
		return s;
	if (s.held_by < revlog_first(log)) { /* the record that held it was dropped: it is a blob */
		s.where = REV_BLOB;
		s.held_by = 0;
	} else if (!is_wanted(c, revlog_at(log, s.held_by))) {
		s.where = REV_NOWHERE;
		s.held_by = 0;
	}
	return s;
}

/* An append whose bytes are a blob of their own. */
static bool has_piece(const struct rev_record *rec)
{
	return rec->r.after.where == REV_PREFIX && (rec->piece[0] || rec->piece[1]);
}

/* Every blob that a wanted record refers to, with repeats. The lock is held. */
static size_t list_blobs(struct revlog *log, struct rev_carry *c, struct rev_blob *list)
{
	size_t count = 0;

	for (uint64_t n = revlog_first(log); n && n <= c->until; n++) {
		struct rev_record *rec = revlog_at(log, n);
		struct rev_state two[2];

		if (!is_wanted(c, rec))
			continue;
		c->head = n;
		c->revisions += !rec->r.aborted;
		c->newest_ns = rec->r.time_ns > c->newest_ns ? rec->r.time_ns : c->newest_ns;
		if (n <= c->since)
			continue;
		two[0] = carried_state(log, c, &rec->r.before);
		two[1] = carried_state(log, c, &rec->r.after);
		for (int i = 0; i < 2; i++)
			if (two[i].exists && two[i].where == REV_BLOB)
				list[count++] = (struct rev_blob){.hash = {two[i].hash[0], two[i].hash[1]},
								  .size = two[i].size};
		if (has_piece(rec))
			list[count++] = (struct rev_blob){.hash = {rec->piece[0], rec->piece[1]},
							  .size = rec->r.after.size - rec->r.before.size};
	}
	return count;
}

static void copy_checkpoints(struct ctx *ctx, struct revlog *log, struct rev_carry *c)
{
	const struct rev_checkpoint *list = revlog_checkpoints(log, &c->checkpoint_count);
	size_t n = 0;

	c->checkpoints = ARENA_ARRAY(ctx->arena, struct rev_checkpoint, c->checkpoint_count);
	for (size_t i = 0; i < c->checkpoint_count; i++) {
		if (list[i].number > c->head)
			continue;
		c->checkpoints[n] = list[i];
		c->checkpoints[n++].name = arena_str(ctx->arena, list[i].name);
	}
	c->checkpoint_count = n;
	if (n)
		qsort(c->checkpoints, n, sizeof(*c->checkpoints), mark_cmp);
}

int revisions_carry(struct store *revisions, struct ctx *ctx, struct rev_carry *c, struct err *err)
{
	struct revisions *rv = revisions_of(revisions);
	struct rev_blob *list;
	size_t count, kept = 0;
	int r = revisions_ready(rv, ctx, err);

	if (r == 0)
		r = settle_all(revisions, ctx, c->until, err);
	if (r)
		return r;
	revlog_lock(rv->log);
	c->first = revlog_first(rv->log);
	c->head = c->first - 1;
	c->revisions = 0;
	c->newest_ns = 0;
	list = xcalloc(3 * rv->log->record_count + 1, sizeof(*list));
	count = list_blobs(rv->log, c, list);
	copy_checkpoints(ctx, rv->log, c);
	revlog_unlock(rv->log);
	qsort(list, count, sizeof(*list), blob_cmp);
	c->blobs = ARENA_ARRAY(ctx->arena, struct rev_blob, count);
	for (size_t i = 0; i < count; i++) {
		ARENA_SCOPE struct arena *scratch = arena_new();
		struct ctx own = {.arena = scratch};
		struct store_stat stat;
		struct err ignored;

		if ((kept && blob_cmp(&c->blobs[kept - 1], &list[i]) == 0) ||
		    store_stat(rv->meta, &own, content_blob_path(scratch, list[i].hash), &stat, &ignored) ||
		    stat.size != list[i].size)
			continue;
		c->blobs[kept++] = list[i];
	}
	c->blob_count = kept;
	free(list);
	return 0;
}

int revisions_carry_blob(struct store *revisions, struct ctx *ctx, const struct rev_blob *blob, const struct sink *sink,
			 struct err *err)
{
	return store_read_stream(revisions_of(revisions)->meta, ctx, content_blob_path(ctx->arena, blob->hash),
				 STORE_WHOLE, sink, NULL, err);
}

/* --- the lines --- */

static void drop_missing(const struct rev_carry *c, struct rev_state *s)
{
	struct rev_blob key = {.hash = {s->hash[0], s->hash[1]}};

	if (s->exists && s->where == REV_BLOB &&
	    !(c->blob_count && bsearch(&key, c->blobs, c->blob_count, sizeof(key), blob_cmp)))
		s->where = REV_NOWHERE;
}

/* Makes the draft for a record's canonical line; false: the record is not carried. */
static int carried_draft(struct revisions *rv, struct ctx *ctx, const struct rev_carry *c, uint64_t number,
			 struct rev_draft *ret, bool *ret_aborted, bool *ret_wanted, struct err *err)
{
	struct rev_record *rec;
	int r = 0;

	revlog_lock(rv->log);
	rec = revlog_at(rv->log, number);
	*ret_wanted = is_wanted(c, rec);
	if (*ret_wanted) {
		*ret = (struct rev_draft){.op = rec->r.op,
					  .path = rec->r.path,
					  .other = rec->r.other,
					  .before = carried_state(rv->log, c, &rec->r.before),
					  .after = carried_state(rv->log, c, &rec->r.after),
					  .time_ns = rec->r.time_ns,
					  .actor = rec->r.actor};
		if (has_piece(rec))
			ret->piece = (struct rev_state){.exists = true,
							.where = REV_BLOB,
							.size = rec->r.after.size - rec->r.before.size,
							.hash = {rec->piece[0], rec->piece[1]}};
		*ret_aborted = rec->r.aborted;
	}
	revlog_unlock(rv->log);
	if (!*ret_wanted)
		return 0;
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
		r = revlog_read_data(rv->log, ctx, rec, &ret->data, err);
	return r;
}

static void write_seal(struct buf *out, uint64_t next)
{
	size_t start = out->len;

	buf_printf(out, "{\"seal\":%llu", (unsigned long long)next);
	rev_line_finish(out, start);
}

static int write_record(struct revisions *rv, struct ctx *ctx, const struct rev_carry *c, uint64_t number,
			struct buf *out, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx own = *ctx;
	struct rev_draft d;
	bool aborted, wanted;
	size_t start = out->len;
	int r;

	own.arena = arena;
	r = carried_draft(rv, &own, c, number, &d, &aborted, &wanted, err);
	if (r || !wanted)
		return r;
	buf_printf(out, "{\"rev\":%llu", (unsigned long long)number);
	rev_line_body(arena, out, &d);
	rev_line_finish(out, start);
	if (aborted) {
		start = out->len;
		buf_printf(out, "{\"abort\":%llu", (unsigned long long)number);
		rev_line_finish(out, start);
	}
	return 0;
}

int revisions_carry_log(struct store *revisions, struct ctx *ctx, const struct rev_carry *c,
			int (*put)(void *arg, uint64_t first, struct str bytes, struct err *err), void *arg,
			struct err *err)
{
	struct revisions *rv = revisions_of(revisions);
	uint64_t first = c->first;
	struct buf out;
	int r = 0;

	buf_init(&out, NULL, SEGMENT_READ);
	for (uint64_t n = c->first; r == 0 && n <= c->head; n++) {
		r = write_record(rv, ctx, c, n, &out, err);
		if (r == 0 && out.len > CARRY_BYTES && n < c->head) {
			write_seal(&out, n + 1);
			r = put(arg, first, buf_str(&out), err);
			buf_clear(&out);
			first = n + 1;
		}
		if (r == 0)
			r = ctx_check(ctx, err);
	}
	for (size_t i = 0; i < c->checkpoint_count; i++)
		rev_line_checkpoint(&out, &c->checkpoints[i]);
	if (r == 0 && out.overflow)
		r = err_set(err, ERR_TOO_LARGE, "the history has a record that is too large to be carried");
	if (r == 0 && (c->head || c->checkpoint_count))
		r = put(arg, first, buf_str(&out), err);
	buf_release(&out);
	return r;
}

/* --- a log that follows another --- */

static bool is_same(const struct rev_record *a, const struct rev_record *b)
{
	const struct rev_state *x, *y;

	if (!a || !b)
		return a == b;
	x = &a->r.after;
	y = &b->r.after;
	return a->r.op == b->r.op && a->r.time_ns == b->r.time_ns && str_eq(a->r.path.s, b->r.path.s) &&
	       str_eq(a->r.other, b->r.other) && str_eq(a->r.actor.user, b->r.actor.user) && x->exists == y->exists &&
	       x->size == y->size && x->hash[0] == y->hash[0] && x->hash[1] == y->hash[1];
}

int revisions_compare(struct store *revisions, struct ctx *ctx, struct store *with, uint64_t *ret_head,
		      uint64_t *ret_differs, struct err *err)
{
	uint64_t first, head, other;
	struct revlog *a, *b;
	int r = revisions_head(revisions, ctx, ret_head, err);

	if (r == 0)
		r = revisions_head(with, ctx, &other, err);
	if (r)
		return r;
	a = revisions_of(revisions)->log;
	b = revisions_of(with)->log;
	*ret_differs = 0;
	revlog_lock(a);
	revlog_lock(b);
	head = *ret_head = revlog_head(a);
	first = revlog_first(a);
	if (head && first > revlog_first(b)) /* this log was cut: what the other refers to may be gone here */
		*ret_differs = first;
	first = first > revlog_first(b) ? first : revlog_first(b);
	for (uint64_t n = first; n <= head && !*ret_differs; n++)
		if (n > revlog_head(b) || !is_same(revlog_at(a, n), revlog_at(b, n)))
			*ret_differs = n;
	revlog_unlock(b);
	revlog_unlock(a);
	return 0;
}

/* Lines about records that are there already: changes that were aborted later, and checkpoints that moved. */
static void write_notes(struct revlog *log, struct revlog *from, const struct rev_carry *c, struct buf *out)
{
	const struct rev_checkpoint *have;
	size_t count, k;

	revlog_lock(log);
	revlog_lock(from);
	for (uint64_t n = revlog_first(log); n <= revlog_head(log); n++) {
		const struct rev_record *a = revlog_at(log, n), *b = revlog_at(from, n);
		size_t start = out->len;

		if (!a || !b || a->r.aborted || !b->r.aborted)
			continue;
		buf_printf(out, "{\"abort\":%llu", (unsigned long long)n);
		rev_line_finish(out, start);
	}
	have = revlog_checkpoints(log, &count);
	for (size_t i = 0; i < c->checkpoint_count; i++) {
		const struct rev_checkpoint *mark = &c->checkpoints[i];

		for (k = 0; k < count && !str_eq(have[k].name, mark->name); k++)
			;
		if (k == count || have[k].time_ns < mark->time_ns)
			rev_line_checkpoint(out, mark);
	}
	revlog_unlock(from);
	revlog_unlock(log);
}

int revisions_follow(struct store *revisions, struct ctx *ctx, struct store *from, const struct rev_carry *c,
		     struct err *err)
{
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
		write_notes(log, revisions_of(from)->log, c, &out);
	if (r == 0 && out.overflow)
		r = err_set(err, ERR_TOO_LARGE, "the history has a record that is too large to be carried");
	if (r == 0 && out.len)
		r = revlog_take_up(log, ctx, buf_str(&out), err);
	buf_release(&out);
	return r == -ERR_CONFLICT ? err_set(err, ERR_CONFLICT,
					    "the copy was changed while it was being updated; leave it alone and run "
					    "the command again")
				  : r;
}

/* --- reading them --- */

static int bad_log(const char *why, struct err *err)
{
	return err_set(err, ERR_CORRUPT, "the history in it is not sound: %s", why);
}

int revisions_check_segment(struct ctx *ctx, struct str bytes, struct rev_segment_check *c, struct err *err)
{
	struct str line;
	bool sealed = false;

	(void)ctx;
	while (bytes.len) {
		ARENA_SCOPE struct arena *arena = arena_new();
		struct rev_line parsed;

		if (!str_cut(&bytes, '\n', &line) || !rev_line_parse(arena, line, &parsed) || sealed)
			return bad_log("a line cannot be read", err);
		switch (parsed.kind) {
		case REV_LINE_RECORD:
			if (parsed.record.r.number <= c->last || parsed.record.r.number - c->last > c->gap_max)
				return bad_log("revisions are out of order", err);
			if (parsed.record.left)
				return bad_log("a revision is not one by itself", err);
			if (!c->wanted(c->arg, parsed.record.r.path))
				return bad_log("a revision is of a path that a bundle cannot have", err);
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
				return bad_log("a line is of a revision that is not there", err);
			break;
		default:
			return bad_log("a line cannot be read", err);
		}
	}
	c->sealed = sealed;
	return 0;
}
