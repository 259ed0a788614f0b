/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recovery of records that are not done. Such a record was logged, and its change has been made, is about to be made by
 * its owner, or was cut off when the owner died. The next process that meets the record completes it: all writers help
 * each other, so nobody waits for a process that died.
 *
 * A replay must never undo what somebody did after the record: a person may have removed or shortened the file since.
 * Until the machine is restarted a change is either whole or not made, and it was acknowledged only if it was made. So
 * it is made again only where nothing newer can be lost: the path is exactly what it was before the record (by
 * version), or it does not exist and the record is seconds old, or one of a group that was not finished, or it is the
 * torn tail of an append of that moment. Everything else is left alone and becomes an outside change. But where a
 * change and its note are one step, a record without the note was not made: what is too old, or cannot be made because
 * a file is in the way, is given up.
 *
 * After a restart of the machine (another boot id), the newest records are doubted even if they were done, because the
 * log is synced and the files are not. Then older states, missing files, and files that are cut or have holes of zeros
 * are what the disk kept, and the change is made again; a file that was touched after the last record has somebody's
 * newer work in it, and is left alone. A process notes the boot when it has recovered the log, and before it adds the
 * first record of that boot. So a process that finds no note after it has read the log has read no work of this boot,
 * which must never be doubted: a file that is missing may have been removed on purpose.
 *
 * A change is made on the condition that the path is still what was looked at, and only if the log, read again after
 * that look, has nothing newer for the path. So several processes may recover one log at once, alongside live writers.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/limits.h"
#include "revisions/layer.h"

#define MARK_LINES 5
#define MARKS_MAX  ((size_t)4096) /* of the file with marks; then it begins again */
/* Longer than the kernel keeps dirty pages. */
#define WRITEBACK_NS (120 * NS_PER_S)
/* An owner makes its change within this time after the record, or is dead. */
#define OWNER_NS (5 * NS_PER_S)
/* The same where requests are slow and clocks differ. */
#define FAR_OWNER_NS (60 * NS_PER_S)

static int stat_file(struct revisions *rv, struct ctx *ctx, struct wpath path, struct store_stat *ret_stat,
		     bool *ret_exists, struct err *err)
{
	struct store_call get = {.op = STORE_OP_STAT, .path = path, .ret_stat = ret_stat};
	int r = store_forward(rv->base.inner, ctx, &get, err);

	*ret_exists = r == 0 && ret_stat->kind == STORE_FILE;
	return r == -ERR_NOT_FOUND ? 0 : r;
}

static bool is_state(const struct rev_state *state, const struct store_stat *stat, bool exists)
{
	return state->exists == exists && (!exists || str_eq(stat->version, state->version));
}

/* --- comparing what is there with what should be --- */

struct compare {
	const struct source *want;
	char *buf;
	struct str have; /* of want, not compared yet */
	uint64_t seen;
	bool differs; /* somewhere */
	bool foreign; /* somewhere in another way than by zeros, or by being longer */
};

static int compare_more(struct compare *c, struct err *err)
{
	size_t n = 0;
	int r;

	if (!c->want->pull) {
		c->have = str_from(c->want->bytes, (size_t)c->seen);
		return 0;
	}
	r = c->want->pull(c->want->arg, c->buf, STREAM_CHUNK, &n, err);
	c->have = str_n(c->buf, n);
	return r;
}

static int compare_push(void *arg, const void *bytes, size_t len, struct err *err)
{
	struct compare *c = arg;
	const char *p = bytes;

	while (len && !c->foreign) {
		int r = c->have.len ? 0 : compare_more(c, err);
		size_t n = c->have.len < len ? c->have.len : len;

		if (r)
			return r;
		c->foreign = n == 0;
		if (memcmp(p, c->have.ptr, n) != 0) {
			c->differs = true;
			for (size_t i = 0; i < n && !c->foreign; i++)
				c->foreign = p[i] != c->have.ptr[i] && p[i] != 0;
		}
		c->have = str_from(c->have, n);
		c->seen += n;
		p += n;
		len -= n;
	}
	return 0;
}

enum match {
	MATCH_OTHER, /* something else, or unknown */
	MATCH_TORN,  /* the beginning of what should be; with holes, if those are expected */
	MATCH_SAME,
};

/* Compares the path's content from `offset` on with the source. *stat becomes that of the content that was compared,
   because the owner may have made the change since the look. */
static enum match match_source(struct revisions *rv, struct ctx *ctx, const struct rev_record *rec, uint64_t offset,
			       const struct source *want, bool holes, struct store_stat *stat)
{
	struct compare c = {.want = want, .buf = xmalloc(STREAM_CHUNK)};
	struct sink sink = {.push = compare_push, .arg = &c};
	struct store_stat now;
	struct store_call read = {.op = STORE_OP_READ,
				  .path = rec->r.path,
				  .range = {offset, UINT64_MAX},
				  .sink = &sink,
				  .ret_stat = &now};
	struct err ignored;
	int r = store_forward(rv->base.inner, ctx, &read, &ignored);

	free(c.buf);
	if (r == 0)
		*stat = now;
	if (r || c.foreign || (c.differs && !holes))
		return MATCH_OTHER;
	return !c.differs && offset + c.seen == rec->r.after.size ? MATCH_SAME : MATCH_TORN;
}

/* Compares the present content with the content after the record. */
static enum match match_content(struct revisions *rv, struct ctx *ctx, struct rev_record *rec, struct store_stat *stat)
{
	uint64_t offset = 0;
	struct source want;
	struct err ignored;
	enum match m;

	if (stat->size > rec->r.after.size ||
	    (!rec->doubted && stat->size < rec->r.before.size && rec->r.after.where == REV_PREFIX))
		return MATCH_OTHER;
	if (rec->r.after.where == REV_PREFIX &&
	    (!rec->doubted || content_source_after(rv, ctx, rec, &want, &ignored) != 0)) {
		offset = rec->r.before.size;
		if (stat->size < offset || content_piece(rv, ctx, rec, 0, &want, &ignored) != 0)
			return MATCH_OTHER;
	} else if (content_source_after(rv, ctx, rec, &want, &ignored) != 0) {
		return MATCH_OTHER;
	}
	m = match_source(rv, ctx, rec, offset, &want, rec->doubted, stat);
	content_source_end(&want);
	return m;
}

static enum match match_now(struct revisions *rv, struct ctx *ctx, struct rev_record *rec, struct store_stat *stat,
			    bool exists)
{
	if (!rec->r.after.exists || !exists)
		return rec->r.after.exists == exists ? MATCH_SAME : MATCH_OTHER;
	return match_content(rv, ctx, rec, stat);
}

/* --- making a change again --- */

/* The content that the path should have. For an append whose earlier content is not kept, the file itself has the
   beginning; *ret_append: then the source is only the rest, which is to be appended. */
static int whole_source(struct revisions *rv, struct ctx *ctx, struct rev_record *rec, const struct store_stat *stat,
			struct source *ret, bool *ret_append, struct err *err)
{
	bool on_top = rec->r.after.where == REV_PREFIX && stat->size >= rec->r.before.size;
	int r = -ERR_NOT_FOUND;

	*ret_append = false;
	if (!on_top || rec->doubted)
		r = content_source_after(rv, ctx, rec, ret, err);
	if (r == 0 || !on_top)
		return r;
	*ret_append = true;
	return content_piece(rv, ctx, rec, stat->size - rec->r.before.size, ret, err);
}

static int make_again(struct revisions *rv, struct ctx *ctx, struct rev_record *rec, const struct store_stat *stat,
		      bool exists, struct err *err)
{
	struct store_stat after = {0};
	struct source source = {0};
	uint64_t count;
	bool append = false;
	struct store_call call = {.op = STORE_OP_REMOVE,
				  .path = rec->r.path,
				  .cond = {.kind = exists ? STORE_VERSION : STORE_ABSENT, .version = stat->version},
				  .ret_stat = &after,
				  .ret_count = &count};
	int r = 0;

	if (rec->r.after.exists) {
		r = whole_source(rv, ctx, rec, stat, &source, &append, err);
		call.op = append ? STORE_OP_APPEND : STORE_OP_WRITE;
		call.source = &source;
		source.mode = rec->r.after.mode;
		source.owner = revisions_owner(rv, rec->r.after.owner);
	}
	if (r == 0)
		r = make_change(rv, ctx, &call, &rec, 1, err);
	content_source_end(&source);
	return r;
}

/* True when the file is the content from before the record, or what a power cut may leave of it. */
static bool is_left_of(struct revisions *rv, struct ctx *ctx, struct rev_record *rec, const struct store_stat *stat)
{
	const struct rev_state *then = &rec->r.before;
	struct store_stat now = *stat;
	struct err ignored;
	struct source want;
	enum match m;

	if (!then->exists || stat->size > then->size)
		return false;
	if (then->size == stat->size && rev_hash_is_set(&then->hash) &&
	    content_is(rv->base.inner, ctx, rec->r.path, &then->hash, &now))
		return true;
	if (then->where == REV_PREFIX ? content_source_after(rv, ctx, rec, &want, &ignored)
				      : content_source(rv, ctx, rec, then, &want, &ignored))
		return false;
	m = match_source(rv, ctx, rec, 0, &want, true, &now);
	content_source_end(&want);
	return m != MATCH_OTHER;
}

/* True when the path has the content from before this record, or from before an earlier one that is doubted; of a file
   that nobody has touched since (`is_recent`) a part is enough. */
static bool is_older(struct revisions *rv, struct ctx *ctx, struct rev_record *rec, const struct store_stat *stat,
		     bool exists, bool is_recent)
{
	struct err ignored;
	bool older = false;

	while (rec && rec->doubted && !older) {
		const struct rev_state *then = &rec->r.before;
		struct rev_record *prev;
		int r;

		older = is_state(then, stat, exists) || (exists && is_recent && is_left_of(rv, ctx, rec, stat));
		revlog_lock(rv->log);
		r = revlog_prev(rv->log, ctx, rec, &prev, &ignored);
		revlog_unlock(rv->log);
		rec = r ? NULL : prev;
	}
	return older;
}

/* When the newest record was logged. */
static int64_t newest_time(struct revisions *rv, struct ctx *ctx)
{
	struct rev_record *rec = NULL;
	struct err ignored;

	revlog_lock(rv->log);
	if (revlog_at(rv->log, ctx, revlog_head(rv->log), &rec, &ignored))
		rec = NULL;
	revlog_unlock(rv->log);
	return rec ? rec->r.time_ns : clock_real_ns();
}

/* The last record of the group of writes that `rec` belongs to; NULL: it was logged alone. */
static struct rev_record *last_of_group(struct revisions *rv, struct ctx *ctx, struct rev_record *rec)
{
	struct rev_record *other = NULL;
	struct err ignored;
	int r;

	if (rec->r.op != REV_WRITE)
		return NULL;
	revlog_lock(rv->log);
	r = revlog_at(rv->log, ctx, rec->left ? rec->r.number + rec->left : rec->r.number - 1, &other, &ignored);
	revlog_unlock(rv->log);
	if (r || !other || other->damaged)
		return NULL;
	if (rec->left == 0)
		return other->left == 1 ? rec : NULL;
	return other;
}

/* True when the record is one of a group, and the process that made the group's changes, one after the other, did not
   come to the last one. Then what is missing was not made. */
static bool is_cut_off(struct revisions *rv, struct ctx *ctx, struct rev_record *rec)
{
	struct rev_record *last = last_of_group(rv, ctx, rec);
	struct store_stat stat = {0};
	struct err ignored;
	bool exists;

	if (!last || last->done || last->r.aborted)
		return false;
	return stat_file(rv, ctx, last->r.path, &stat, &exists, &ignored) == 0 &&
	       is_state(&last->r.before, &stat, exists);
}

/* True when making the change cannot undo anything that came after the record (see above). */
static bool may_be_made(struct revisions *rv, struct ctx *ctx, struct rev_record *rec, const struct store_stat *stat,
			bool exists, enum match m)
{
	int64_t latest = rec->r.time_ns + (rv->journal ? FAR_OWNER_NS : OWNER_NS);

	if (!rec->doubted) {
		if (!exists)
			return !rec->r.before.exists && (clock_real_ns() < latest || is_cut_off(rv, ctx, rec));
		return is_state(&rec->r.before, stat, exists) || (m == MATCH_TORN && stat->mtime_ns < latest);
	}
	latest = newest_time(rv, ctx) + OWNER_NS;
	return !exists || (m == MATCH_TORN && stat->mtime_ns < latest) ||
	       is_older(rv, ctx, rec, stat, exists, stat->mtime_ns < latest);
}

/* A helper makes the change. Without a lock or a step that covers both, the log says so first (recover_took_effect). */
static int help(struct revisions *rv, struct ctx *ctx, struct rev_record *rec, const struct store_stat *stat,
		bool exists, struct err *err)
{
	int r = 0;

	if (!exists && !rec->r.own && make_is_apart(rv, rec))
		r = revlog_help(rv->log, ctx, rec, err);
	if (r || make_is_settled(rv, rec))
		return r;
	r = make_again(rv, ctx, rec, stat, exists, err);
	/* another process made the same change first, or a later look finds out what happened; a file that was to be
	   removed may be gone, or a directory by now */
	if (r == -ERR_CONFLICT || r == -ERR_EXISTS)
		return 0;
	return !rec->r.after.exists && (r == -ERR_NOT_FOUND || r == -ERR_INVALID) ? 0 : r;
}

/* The change is made apart from its record, and no condition tells that the path was changed and is again as before:
   its owner gets the time to make it (make.c). */
static void leave_to_owner(struct revisions *rv, struct ctx *ctx, struct rev_record *rec, bool exists)
{
	bool may_come_back = rec->r.after.exists && (!exists || store_can(rv->base.inner, STORE_OVER_PAST));
	int64_t wait = rec->r.time_ns + REV_HELP_AFTER_NS - clock_real_ns();

	if (!make_is_apart(rv, rec) || rec->r.own || rec->doubted || !may_come_back)
		return;
	/* more than that is another clock */
	make_wait_settled(rv, ctx, rec, clock_monotonic_ns() + (wait < REV_HELP_AFTER_NS ? wait : REV_HELP_AFTER_NS));
}

/* The other record of a move, if that is open; NULL: there is none. Moves are logged in pairs: the path that goes, then
   the one that comes. */
static struct rev_record *other_of(struct revisions *rv, struct ctx *ctx, const struct rev_record *rec)
{
	uint64_t number = rec->r.after.exists ? rec->r.number - 1 : rec->r.number + 1;
	struct rev_record *other = NULL;
	struct err ignored;

	if (rec->r.op != REV_MOVE || rec->doubted)
		return NULL;
	revlog_lock(rv->log);
	if (revlog_at(rv->log, ctx, number, &other, &ignored) ||
	    (other && (other->damaged || other->r.op != REV_MOVE || !str_eq(other->r.path.s, rec->r.other) ||
		       revlog_is_settled(rv->log, other))))
		other = NULL;
	revlog_unlock(rv->log);
	return other;
}

/* A helper's try. */
struct helper {
	struct revisions *rv;
	struct ctx *ctx;
	struct rev_record *rec;
	const struct store_stat *stat;
	bool exists;
};

static int helper_make(void *arg, struct err *err)
{
	struct helper *h = arg;

	return help(h->rv, h->ctx, h->rec, h->stat, h->exists, err);
}

/* Makes the change, or gives it up, with the other record of a move. What is doubted was made, and is not given up.
   ERR_INVALID: neither can be done. */
static int help_or_give_up(struct revisions *rv, struct ctx *ctx, struct rev_record *rec, const struct store_stat *stat,
			   bool exists, struct err *err)
{
	struct helper helper = {.rv = rv, .ctx = ctx, .rec = rec, .stat = stat, .exists = exists};
	struct rev_record *from = other_of(rv, ctx, rec), *two[2] = {from, rec};
	struct making m = {.make = helper_make, .arg = &helper};
	bool gave_up;
	int r;

	m.recs = from ? two : &two[1];
	m.count = rec->doubted ? 0 : from ? 2 : 1;
	r = make_or_give_up(rv, ctx, &m, &gave_up, err);
	return gave_up ? 0 : r;
}

/* True when nobody has made the change: it is made in one step with its note, and there is none. */
static bool is_unmade(struct revisions *rv, const struct rev_record *rec, const struct store_stat *stat, bool exists)
{
	return rv->journal && !make_is_apart(rv, rec) && !rec->doubted && is_state(&rec->r.before, stat, exists);
}

/* Gives up a change that was not made and is too old to be made now, with the other record of a move. */
static int abandon(struct revisions *rv, struct ctx *ctx, struct rev_record *rec, struct err *err)
{
	struct rev_record *from = other_of(rv, ctx, rec), *two[2] = {from, rec};
	int r = revlog_give_up(rv->log, ctx, from ? two : &two[1], from ? 2 : 1, NULL, false, err);

	return r == -ERR_CONFLICT ? 0 : r; /* another process has settled it */
}

/* `may_make` is false when it can only be found out what there is. */
static int recover_one(struct revisions *rv, struct ctx *ctx, struct rev_record *rec, bool may_make, struct err *err)
{
	struct store_stat stat = {0}, again = {0};
	bool exists, exists_again;
	enum match m;
	int r = stat_file(rv, ctx, rec->r.path, &stat, &exists, err);

	if (r)
		return r;
	m = match_now(rv, ctx, rec, &stat, exists);
	/* The same bytes in the version of before are not the change: its owner is about to make it, in a new version.
	 */
	if (m == MATCH_SAME && !(exists && is_state(&rec->r.before, &stat, exists))) {
		revlog_done(rv->log, rec, exists ? stat.version : STR_NONE);
		return 0;
	}
	leave_to_owner(rv, ctx, rec, exists);
	/* What was seen may be the work of others who have completed the record since: the log says so. Or the owner
	   made the change during the look, which then saw a file that is gone. */
	r = revlog_refresh(rv->log, ctx, err);
	if (r == 0)
		r = stat_file(rv, ctx, rec->r.path, &again, &exists_again, err);
	if (r || make_is_settled(rv, rec) || exists != exists_again || (exists && !str_eq(stat.version, again.version)))
		return r;
	if (may_make && may_be_made(rv, ctx, rec, &stat, exists, m)) {
		r = help_or_give_up(rv, ctx, rec, &stat, exists, err);
		if (r != -ERR_NOT_FOUND && r != -ERR_INVALID && r != -ERR_CORRUPT)
			return r; /* if it cannot be made now, the record stays open */
	} else if (may_make && is_unmade(rv, rec, &stat, exists)) {
		return abandon(rv, ctx, rec, err);
	}
	revlog_done(rv->log, rec, STR("unknown"));
	return 0;
}

static bool is_unknown(struct revisions *rv, const struct rev_record *rec)
{
	bool unknown;

	revlog_lock(rv->log);
	unknown = rec->done && str_is(rec->r.after.version, "unknown");
	revlog_unlock(rv->log);
	return unknown;
}

/* Of a move, the file that comes is made before the other one goes. If it is not there, the other one stays. */
int recover_record(struct revisions *rv, struct ctx *ctx, struct rev_record *rec, struct err *err)
{
	struct rev_record *other = other_of(rv, ctx, rec);
	bool other_first = other && other->r.after.exists;
	int r = other_first ? recover_one(rv, ctx, other, true, err) : 0;

	if (r == 0)
		r = recover_one(rv, ctx, rec, !(other_first && is_unknown(rv, other)), err);
	if (r == 0 && other && !other_first)
		r = recover_one(rv, ctx, other, !is_unknown(rv, rec), err);
	return r;
}

/* True when the path has the content after the record. */
static bool is_in_effect(struct revisions *rv, struct ctx *ctx, struct rev_record *rec, struct store_stat *ret_stat)
{
	struct err ignored;
	bool exists;

	return stat_file(rv, ctx, rec->r.path, ret_stat, &exists, &ignored) == 0 &&
	       match_now(rv, ctx, rec, ret_stat, exists) == MATCH_SAME &&
	       !(exists && is_state(&rec->r.before, ret_stat, exists)); /* the same bytes, from before */
}

static bool was_helped(struct revisions *rv, struct ctx *ctx, const struct rev_record *rec)
{
	struct err ignored;
	bool helped;

	if (revlog_refresh(rv->log, ctx, &ignored))
		return true; /* unknown, so perhaps */
	revlog_lock(rv->log);
	helped = rec->helped;
	revlog_unlock(rv->log);
	return helped;
}

/* A process that changes the path after our record was logged completes our record first, and logs its own after it. So
   a newer record of the path proves that ours took effect; without one, the content decides. The log is read again
   after the content, since both may change in between.

   With a journal, a path without a record is only assumed to be absent. If it exists, its content proves nothing: it
   may be the same by chance. So a helper says so in the log before it makes the change of another process, and without
   that line no helper made it. */
bool recover_took_effect(struct revisions *rv, struct ctx *ctx, struct rev_record *rec, bool guessed,
			 struct store_stat *ret_stat)
{
	struct store_stat stat = {0};
	struct err ignored;
	bool is_there, effect;

	if (rv->journal && guessed && !was_helped(rv, ctx, rec))
		return false;
	is_there = is_in_effect(rv, ctx, rec, &stat);
	revlog_refresh(rv->log, ctx, &ignored);
	revlog_lock(rv->log);
	/* A helper that could not say what is there did not make the change. If it was given up, what is there is the
	   work of others. */
	effect = !rec->r.aborted &&
		 (is_there || (revlog_is_settled(rv->log, rec) && !str_is(rec->r.after.version, "unknown")));
	if (!is_there)
		stat = (struct store_stat){.version = arena_str(ctx->arena, rec->r.after.version)};
	revlog_unlock(rv->log);
	if (!effect)
		return false;
	if (is_there)
		revlog_done(rv->log, rec, rec->r.after.exists ? stat.version : STR_NONE);
	*ret_stat = (struct store_stat){.kind = STORE_FILE,
					.size = rec->r.after.size,
					.mtime_ns = stat.mtime_ns ? stat.mtime_ns : rec->r.time_ns,
					.version = stat.version};
	return true;
}

/* After a restart of the machine: gathers the newest records of their paths, to be compared with the files. The lock is
   held. */
static int doubt_recent(struct revisions *rv, struct ctx *ctx, struct rev_record ***ret, size_t *ret_count,
			struct err *err)
{
	uint64_t head = revlog_head(rv->log);
	int64_t oldest = INT64_MIN;
	size_t cap = 0;

	for (uint64_t n = head; n >= revlog_first(rv->log) && n > 0; n--) {
		struct rev_record *rec, *last;
		int r = revlog_at(rv->log, ctx, n, &rec, err);

		if (r == -ERR_CORRUPT || (r == 0 && !rec))
			continue;
		if (r)
			return r;
		if (oldest == INT64_MIN)
			oldest = rec->r.time_ns - WRITEBACK_NS;
		if (rec->r.time_ns < oldest)
			break;
		if (rec->r.aborted)
			continue;
		r = revlog_last(rv->log, ctx, rec->r.path, &last, err);
		if (r)
			return r;
		rec->doubted = true;
		rec->done = last != rec; /* the last one of each path decides for all */
		if (rec->done)
			continue;
		ARENA_ROOM(ctx->arena, *ret, *ret_count, cap);
		(*ret)[(*ret_count)++] = rec;
	}
	return 0;
}

/* A mark names the end of the log and the boot in which all of it was done, then the newest revision, and has a sum. It
 * is derived: without it the log is read. Each one is added to those before it, and only the last one counts: a line is
 * cheaper than a new file in the place of the old one, which costs two inodes at each end. */
static struct wpath mark_path(void)
{
	return (struct wpath){STR("revisions-clean")};
}

/* The last MARK_LINES lines; ptr NULL: the last one was not written to its end. */
static struct str last_mark(struct str marks)
{
	size_t at = marks.len;

	if (!marks.len || marks.ptr[marks.len - 1] != '\n')
		return STR_NONE;
	for (int lines = 0; at > 0; at--)
		if (marks.ptr[at - 1] == '\n' && ++lines > MARK_LINES)
			break;
	return str_from(marks, at);
}

static struct str read_mark(struct revisions *rv, struct ctx *ctx)
{
	struct str marks = STR_NONE;
	struct err ignored;

	rv->marks_len = MARKS_MAX; /* what cannot be read is replaced by the next mark */
	if (rv->journal || !rv->scratch ||
	    store_read(rv->scratch, ctx, mark_path(), STORE_WHOLE, 2 * MARKS_MAX, &marks, NULL, &ignored))
		return STR_NONE;
	rv->marks_len = marks.len;
	return last_mark(marks);
}

bool recover_is_clean(struct revisions *rv, struct ctx *ctx)
{
	struct str mark = read_mark(rv, ctx), end, boot, path;
	struct store_stat stat;
	struct err ignored;

	if (rv->journal) /* a change is acknowledged when it is made, so recovery can wait */
		return true;
	if (!mark.ptr) /* nothing was ever recorded, or the log was not closed */
		return store_stat(rv->meta, ctx, (struct wpath){STR("log")}, &stat, &ignored) == -ERR_NOT_FOUND;
	if (!str_cut(&mark, '\n', &path) || !str_cut(&mark, '\n', &end) || !str_cut(&mark, '\n', &boot))
		return false;
	return str_eq(boot, rv->boot_id) && wpath_name_ok(path) &&
	       store_stat(rv->meta, ctx, (struct wpath){arena_printf(ctx->arena, "log/%.*s", STR_ARG(path))}, &stat,
			  &ignored) == 0 &&
	       str_eq(arena_printf(ctx->arena, "%llu", (unsigned long long)stat.size), end);
}

void recover_mark_clean(struct revisions *rv, struct ctx *ctx)
{
	struct str name;
	struct str mark;
	uint64_t size, head;
	struct err ignored;

	if (rv->journal || !rv->scratch || !revlog_all_done(rv->log, ctx->arena, &name, &size, &head))
		return;
	mark = arena_printf(ctx->arena, "%.*s\n%llu\n%.*s\n%llu\n", STR_ARG(name), (unsigned long long)size,
			    STR_ARG(rv->boot_id), (unsigned long long)head);
	mark = arena_printf(ctx->arena, "%.*s%016llx\n", STR_ARG(mark), (unsigned long long)hash_u64(mark, 0));
	if (rv->marks_len + mark.len > MARKS_MAX)
		store_write(rv->scratch, ctx, mark_path(), mark, (struct store_cond){0}, NULL, &ignored);
	else
		store_append(rv->scratch, ctx, mark_path(), mark, (struct store_cond){0}, NULL, &ignored);
}

/* After a restart of the machine a log that does not sync may have lost its end, and nothing was promised of it. */
uint64_t recover_known_end(struct revisions *rv, struct ctx *ctx)
{
	struct str mark = read_mark(rv, ctx), rest = mark, line, head;

	for (int i = 0; i < 3; i++)
		if (!mark.ptr || !str_cut(&rest, '\n', &line))
			return 0;
	if (rv->boot_id.len == 0 || !str_eq(line, rv->boot_id) || !str_cut(&rest, '\n', &head) ||
	    !str_eq(rest, arena_printf(ctx->arena, "%016llx\n",
				       (unsigned long long)hash_u64(str_first(mark, mark.len - rest.len), 0))))
		return 0;
	return strtoull(arena_cstr(ctx->arena, head), NULL, 10);
}

/* Names the boot in which the log was last used. */
static struct wpath boot_path(void)
{
	return (struct wpath){STR("revisions-boot")};
}

bool recover_booted(struct revisions *rv, struct ctx *ctx)
{
	struct str boot;
	struct err ignored;

	if (rv->boot_id.len == 0 || rv->journal)
		return false;
	return !rv->scratch || store_read(rv->scratch, ctx, boot_path(), STORE_WHOLE, 512, &boot, NULL, &ignored) ||
	       !str_eq(boot, rv->boot_id);
}

static bool has_records(struct revisions *rv)
{
	uint64_t head;

	revlog_lock(rv->log);
	head = revlog_head(rv->log);
	revlog_unlock(rv->log);
	return head > 0;
}

void recover_note_boot(struct revisions *rv, struct ctx *ctx)
{
	struct err ignored;

	store_write(rv->scratch, ctx, boot_path(), rv->boot_id, (struct store_cond){0}, NULL, &ignored);
	rv->boot_due = false;
}

/* A record whose change cannot be made now (the disk is full) stays open; the workspace can be used regardless. */
int recover_all(struct revisions *rv, struct ctx *ctx, bool booted, struct err *err)
{
	struct rev_record **open = NULL;
	size_t count = 0;
	int r = 0;

	revlog_lock(rv->log);
	if (booted)
		r = doubt_recent(rv, ctx, &open, &count, err);
	if (r == 0 && !booted)
		open = revlog_open_records(rv->log, ctx, &count);
	revlog_unlock(rv->log);
	for (size_t i = count; r == 0 && i-- > 0;) {
		r = recover_record(rv, ctx, open[booted ? i : count - 1 - i], err);
		if (r != -ERR_CANCELLED && r != -ERR_TIMEOUT)
			r = 0;
	}
	if (r == 0 && booted) {
		struct err ignored;

		revlog_end_torn(rv->log, &ignored); /* the next start is not the first one after the power cut */
		revlog_lock(rv->log);
		open = revlog_open_records(rv->log, ctx, &count); /* older than what is doubted */
		revlog_unlock(rv->log);
		for (size_t i = 0; r == 0 && i < count; i++) {
			r = recover_record(rv, ctx, open[i], err);
			if (r != -ERR_CANCELLED && r != -ERR_TIMEOUT)
				r = 0;
		}
		revlog_flush(rv->log, ctx, &ignored); /* files that were made again have new versions */
		rv->boot_due = r == 0 && rv->scratch;
		if (rv->boot_due && has_records(rv))
			recover_note_boot(rv, ctx);
	}
	return r;
}
