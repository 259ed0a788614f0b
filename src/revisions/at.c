/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The past as a store. What has changed since the revision is looked up in the log; everything else is read from the
 * files as they are now. So a view costs nothing to make and nothing to keep, and reading through it costs what has
 * changed since, not what there is. Forks are built on it.
 *
 * The changed paths are kept sorted, and brought up to date when the log has grown; a list merges them with the list of
 * the present files, page by page. Reading a file while it is being changed is safe: its record is in the log before
 * its bytes change, so looking at the log again after the read tells whether the bytes were still the old ones
 * (content_read_now).
 */
#include "base/clock.h"
#include "base/hash.h"
#include "base/limits.h"
#include "revisions/at_internal.h"
#include "store/list_stream.h"

#define STABLE_TRIES 16

static int changed_cmp(const void *a, const void *b)
{
	return str_cmp(((const struct changed *)a)->path, ((const struct changed *)b)->path);
}

size_t at_changed_from(const struct at *at, struct str path)
{
	size_t low = 0, high = at->count;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (str_cmp(at->changed[mid].path, path) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

const struct changed *at_changed_find(const struct at *at, struct str path)
{
	size_t i = at_changed_from(at, path);

	return i < at->count && str_eq(at->changed[i].path, path) ? &at->changed[i] : NULL;
}

/* Sorts the new entries, which begin at `sorted`, into their places. */
static void sort_in(struct at *at, size_t sorted)
{
	size_t fresh = at->count - sorted, out = at->count;
	struct changed *tail;

	if (fresh == 0)
		return;
	tail = xmalloc(fresh * sizeof(*tail));
	memcpy(tail, at->changed + sorted, fresh * sizeof(*tail));
	qsort(tail, fresh, sizeof(*tail), changed_cmp);
	while (fresh) {
		bool old = sorted && changed_cmp(&at->changed[sorted - 1], &tail[fresh - 1]) > 0;

		at->changed[--out] = old ? at->changed[--sorted] : tail[--fresh];
	}
	free(tail);
}

/* Notes the change `rec` if it is the first one of its path since the revision. The log's lock is held. */
static int take_change(struct at *at, struct ctx *ctx, struct rev_record *rec, struct err *err)
{
	struct rev_record *then, *first;
	int r;

	if (rec->r.aborted)
		return 0;
	r = revlog_find(revisions_of(at->revisions)->log, ctx, rec->r.path, at->number, &then, &first, err);
	if (r || !first || first->r.number != rec->r.number)
		return r;
	if (at->count == at->cap) {
		at->cap = at->cap ? 2 * at->cap : 64;
		at->changed = xrealloc(at->changed, at->cap * sizeof(*at->changed));
	}
	at->changed[at->count++] = (struct changed){
		.path = arena_str(at->memory, rec->r.path.s),
		.existed = rec->r.before.exists,
		.size = rec->r.before.size,
		.time_ns = then ? then->r.time_ns : rec->r.time_ns,
	};
	return 0;
}

/* Takes in what the log has in memory. */
static int take_known(struct at *at, struct ctx *ctx, struct err *err)
{
	struct revisions *rv = revisions_of(at->revisions);
	struct arena *arena = NULL; /* made if there is something new */
	struct ctx c = *ctx;
	uint64_t head;
	size_t before = at->count;
	int r;

	revlog_lock(rv->log);
	r = revlog_keeps(rv->log, at->number, err);
	head = revlog_head(rv->log);
	while (r == 0 && head > at->known) {
		struct rev_record rec;
		bool has;

		if (arena)
			arena_reset(arena);
		else
			c.arena = arena = arena_new();
		r = revlog_get(rv->log, &c, at->known + 1, &rec, &has, err);
		if (r == 0 && has)
			r = take_change(at, &c, &rec, err);
		if (r == 0)
			at->known++;
	}
	revlog_unlock(rv->log);
	if (arena)
		arena_destroy(arena);
	sort_in(at, before);
	return r;
}

int at_bring_up(struct at *at, struct ctx *ctx, struct err *err)
{
	struct revisions *rv = revisions_of(at->revisions);
	int r = revisions_ready(rv, ctx, err);

	if (r == 0)
		r = revlog_refresh(rv->log, ctx, err);
	return r ? r : take_known(at, ctx, err);
}

/* The revision's time is the latest that is known. A change of before it that is not made yet may still come. */
int at_settle(struct at *at, struct ctx *ctx, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct revlog *log = revisions_of(at->revisions)->log;
	struct ctx c = *ctx;
	struct rev_record **open;
	size_t count;
	int r = 0;

	if (at->settled_ns)
		return 0;
	c.arena = arena;
	revlog_lock(log);
	open = revlog_open_records(log, &c, &count);
	for (uint64_t n = at->number; r == 0 && n >= revlog_first(log) && n && !at->settled_ns; n--) {
		struct rev_record rec;
		bool has;

		r = revlog_get(log, &c, n, &rec, &has, err);
		if (r == 0 && has)
			at->settled_ns = rec.r.time_ns - CLOCK_STEP_NS;
	}
	for (size_t i = 0; i < count; i++)
		if (open[i]->r.number <= at->number)
			at->settled_ns = 0;
	revlog_unlock(log);
	return r;
}

/* A version of the past has another form than a present one, so that the two cannot be confused. */
static struct str past_version(struct arena *arena, uint64_t number, struct str version, uint64_t size)
{
	if (version.len)
		return arena_printf(arena, "r-%.*s", STR_ARG(version));
	return arena_printf(arena, "r%llu-%llu", (unsigned long long)number, (unsigned long long)size);
}

/* A path with no record after the revision usually is what it was then. `now` is its present stat; NULL: it does not
   exist. It differs when a change from before the revision is not applied yet, or when another program has changed the
   file and that was not noticed. Returns true then, if the log has kept the state: *ret is that state. */
static bool log_differs(struct at *at, struct ctx *ctx, struct wpath path, const struct store_stat *now,
			struct store_stat *ret)
{
	struct revlog *log = revisions_of(at->revisions)->log;
	const struct rev_state *then;
	struct rev_record *rec;
	struct err ignored;
	bool differs = false;

	revlog_lock(log);
	if (revlog_last(log, ctx, path, &rec, &ignored) == 0 && rec && rec->r.number <= at->number) {
		then = &rec->r.after;
		differs = !rec->done || then->exists != (now != NULL) ||
			  (now && then->version.len && !str_eq(then->version, now->version));
		differs = differs && (!then->exists || then->where != REV_NOWHERE) &&
			  !revlog_lost_between(log, rec->r.number, at->number);
		if (differs)
			*ret = (struct store_stat){
				.kind = then->exists ? STORE_FILE : 0,
				.size = then->size,
				.mtime_ns = rec->r.time_ns,
				.version = past_version(ctx->arena, at->number, then->version, then->size),
			};
	}
	revlog_unlock(log);
	return differs;
}

/* True when a file below `dir` existed at the revision. `is_now`: it is a directory now, so it has
   files. */
static int dir_existed(struct at *at, struct ctx *ctx, struct wpath dir, bool is_now, bool *ret, struct err *err)
{
	struct store_list_req req = {.recursive = true, .limit = 64};
	struct store_page page;
	struct store_call list = {.op = STORE_OP_LIST, .path = dir, .list = &req, .ret_page = &page};
	struct str below = wpath_is_root(dir) ? STR("") : arena_printf(ctx->arena, "%.*s/", STR_ARG(dir.s));
	bool made = false; /* something in it was created since */
	int r;

	*ret = wpath_is_root(dir);
	for (size_t i = at_changed_from(at, below); !*ret && i < at->count; i++) {
		if (!str_starts(at->changed[i].path, below))
			break;
		*ret = at->changed[i].existed;
		made = true;
	}
	if (*ret || !is_now || !made) {
		*ret = *ret || is_now;
		return 0;
	}
	do {
		r = store_forward(at->revisions->inner, ctx, &list, err);
		if (r)
			return r == -ERR_NOT_FOUND || r == -ERR_INVALID ? 0 : r;
		for (size_t i = 0; i < page.count && !*ret; i++)
			*ret = !at_changed_find(at, page.entries[i].path.s);
		req.after = page.next;
	} while (!*ret && page.next.ptr);
	return 0;
}

/* The file at `path` as the log knows it: *ret_known is false when no record after the revision says what it was. */
static int stat_logged(struct at *at, struct ctx *ctx, struct wpath path, struct store_stat *ret_stat, bool *ret_known,
		       bool *ret_existed, struct err *err)
{
	struct revlog *log = revisions_of(at->revisions)->log;
	struct rev_record *then, *after;
	int r;

	r = revisions_find(revisions_of(at->revisions), ctx, path, at->number, &then, &after, err);
	revlog_lock(log);
	*ret_known = r == 0 && after;
	*ret_existed = *ret_known && (then ? then->r.after.exists : after->r.before.exists);
	if (*ret_existed) {
		const struct rev_state *s = then ? &then->r.after : &after->r.before;
		bool is_next = !then || revlog_is_next(log, then, after);
		struct str version = s->version.len || !is_next ? s->version : after->r.before.version;

		*ret_stat = (struct store_stat){.kind = STORE_FILE,
						.size = is_next ? after->r.before.size : s->size,
						.mtime_ns = then ? then->r.time_ns : after->r.time_ns,
						.version = past_version(ctx->arena, at->number, version, s->size)};
	}
	revlog_unlock(log);
	return r;
}

/* True when a record after the revision says what the path was: not if it was aborted since. */
static bool is_logged(struct at *at, struct ctx *ctx, struct wpath path)
{
	struct store_stat unused;
	struct err ignored;
	bool known, existed;

	return stat_logged(at, ctx, path, &unused, &known, &existed, &ignored) == 0 && existed;
}

/* What the files have at a path. */
struct present {
	bool exists, is_dir;
	struct store_stat stat;
};

static int stat_present(struct at *at, struct ctx *ctx, struct wpath path, struct present *ret, struct err *err)
{
	struct store_call get = {.op = STORE_OP_STAT, .path = path, .ret_stat = &ret->stat};
	int r = store_forward(at->revisions->inner, ctx, &get, err);

	ret->exists = r == 0;
	ret->is_dir = r == 0 && ret->stat.kind == STORE_DIR;
	return r == -ERR_NOT_FOUND || r == -ERR_INVALID ? 0 : r;
}

/* The path as it was, from what the files have, looked at before, and what the log has in memory, read after that: a
   change is in the log before it is made. */
static int stat_then(struct at *at, struct ctx *ctx, struct wpath path, const struct present *now,
		     struct store_stat *ret_stat, struct err *err)
{
	bool is_file = now->exists && !now->is_dir, known, existed;
	int r = stat_logged(at, ctx, path, ret_stat, &known, &existed, err);

	if (r || existed)
		return r;
	if (!known && log_differs(at, ctx, path, is_file ? &now->stat : NULL, ret_stat)) {
		if (ret_stat->kind)
			return 0;
	} else if (!known && is_file) {
		*ret_stat = now->stat;
		ret_stat->version = past_version(ctx->arena, at->number, now->stat.version, now->stat.size);
		return 0;
	}
	*ret_stat = (struct store_stat){.kind = STORE_DIR};
	if (wpath_is_root(path))
		return 0;
	r = take_known(at, ctx, err);
	if (r == 0)
		r = dir_existed(at, ctx, path, now->is_dir, &existed, err);
	if (r)
		return r;
	return existed ? 0
		       : err_set(err, ERR_NOT_FOUND, "it did not exist at revision %llu",
				 (unsigned long long)at->number);
}

static int head_of(struct at *at, struct ctx *ctx, uint64_t *ret_head, struct err *err)
{
	struct revisions *rv = revisions_of(at->revisions);
	int r = revisions_head(at->revisions, ctx, ret_head, err);

	if (r)
		return r;
	revlog_lock(rv->log);
	r = revlog_keeps(rv->log, at->number, err);
	revlog_unlock(rv->log);
	return r;
}

/* The path's last record, if it is one of the revision or before; else NULL. Newer records may be missing: what it says
   must be compared with the file (content_is_of). */
static struct rev_record *last_known(struct at *at, struct ctx *ctx, struct wpath path)
{
	struct revisions *rv = revisions_of(at->revisions);
	struct rev_record *rec = NULL;
	struct err ignored;

	if (!rv->journal)
		return NULL;
	revlog_lock(rv->log);
	if (revlog_head(rv->log) < at->number || revlog_keeps(rv->log, at->number, &ignored) ||
	    revlog_last(rv->log, ctx, path, &rec, &ignored))
		rec = NULL;
	revlog_unlock(rv->log);
	return rec && rec->r.number <= at->number ? rec : NULL;
}

/* Gives the file of now the version that it has in the past. */
static void stat_of_past(struct at *at, struct ctx *ctx, const struct rev_record *rec, struct store_stat *stat)
{
	struct revlog *log = revisions_of(at->revisions)->log;

	revlog_lock(log);
	stat->version = past_version(ctx->arena, at->number, rec->r.after.version, stat->size);
	revlog_unlock(log);
}

/* What the path was, from what the files had a moment ago. The view's lock is held. The log is looked at once, after
   the file. Only a directory in which files were made since takes longer: its list must be of the same moment. */
static int stat_after_look(struct at *at, struct ctx *ctx, struct wpath path, struct present *now,
			   struct store_stat *ret_stat, struct err *err)
{
	uint64_t before, after;
	struct err late;
	int r = head_of(at, ctx, &before, err);

	for (int tries = 0; tries < STABLE_TRIES && r == 0; tries++) {
		r = stat_then(at, ctx, path, now, ret_stat, err);
		if ((r && r != -ERR_NOT_FOUND) || !now->is_dir || at->count == 0 || wpath_is_root(path))
			break;
		if (head_of(at, ctx, &after, &late) || after == before)
			break;
		before = after;
		r = stat_present(at, ctx, path, now, err);
	}
	return r;
}

static int stat_locked(struct at *at, struct ctx *ctx, struct wpath path, struct store_stat *ret_stat, struct err *err)
{
	struct present now;
	const struct rev_record *rec;
	int r = revisions_ready(revisions_of(at->revisions), ctx, err);

	if (r == 0)
		r = stat_present(at, ctx, path, &now, err);
	if (r)
		return r;
	rec = now.exists ? last_known(at, ctx, path) : NULL;
	if (!content_is_of(revisions_of(at->revisions), rec, &now.stat))
		return stat_after_look(at, ctx, path, &now, ret_stat, err);
	*ret_stat = now.stat;
	stat_of_past(at, ctx, rec, ret_stat);
	return 0;
}

static int at_stat(struct store *s, struct ctx *ctx, struct wpath path, struct store_stat *ret_stat, struct err *err)
{
	struct at *at = at_of(s);
	REV_PINNED struct revisions *pin = revisions_pin(revisions_of(at->revisions));
	int r;

	pthread_mutex_lock(&at->lock);
	r = stat_locked(at, ctx, path, ret_stat, err);
	pthread_mutex_unlock(&at->lock);
	return r;
}

/* Most files are what they were then: the file is read, and its version tells. *ret_done is false when it does not;
   then `range` is what is left of it. */
static int read_unchanged(struct at *at, struct ctx *ctx, struct wpath path, struct store_range *range,
			  const struct sink *sink, struct store_stat *ret_stat, bool *ret_done, struct err *err)
{
	const struct rev_record *rec = last_known(at, ctx, path);
	bool changed = true;
	uint64_t len;
	int r;

	*ret_done = false;
	if (!rec)
		return 0;
	r = content_read_now(revisions_of(at->revisions), ctx, path, rec, *range, sink, ret_stat, &len, &changed, err);
	if (r)
		return r;
	*ret_done = !changed;
	if (changed) {
		range->offset += len;
		range->length -= range->length == UINT64_MAX ? 0 : len;
	} else {
		stat_of_past(at, ctx, rec, ret_stat);
	}
	return 0;
}

static int at_read(struct store *s, struct ctx *ctx, struct wpath path, struct store_range range,
		   const struct sink *sink, struct store_stat *ret_stat, struct err *err)
{
	struct at *at = at_of(s);
	REV_PINNED struct revisions *pin = revisions_pin(revisions_of(at->revisions));
	struct rev_state state;
	struct present now;
	bool done = false;
	int r = revisions_ready(revisions_of(at->revisions), ctx, err);

	if (r == 0)
		r = read_unchanged(at, ctx, path, &range, sink, ret_stat, &done, err);
	if (r || done)
		return r;
	/* The read itself looks at the log before and after. So it is not looked at here, unless nothing is found. */
	pthread_mutex_lock(&at->lock);
	r = stat_present(at, ctx, path, &now, err);
	if (r == 0)
		r = stat_then(at, ctx, path, &now, ret_stat, err);
	if (r == -ERR_NOT_FOUND)
		r = stat_after_look(at, ctx, path, &now, ret_stat, err);
	pthread_mutex_unlock(&at->lock);
	if (r)
		return r;
	if (ret_stat->kind == STORE_DIR)
		return err_set(err, ERR_INVALID, "it is a directory; name a file");
	return revisions_read(at->revisions, ctx, path, at->number, range, sink, &state, err);
}

/* --- lists --- */

/* Two lists merged: present files that have not changed since, and changed ones that existed at the revision. */
struct walk {
	struct at *at;
	struct ctx *ctx;
	struct wpath dir;
	struct str below; /* dir with a '/' after it; empty for the root */
	const struct store_list_req *req;
	struct list_stream now;
	size_t next; /* of at->changed */
};

/* Whether the log need not be asked about a file that has no record since: it was not changed by anybody, or only its
   name counts. */
static bool is_settled(const struct walk *w, const struct store_stat *now)
{
	return w->at->settled_ns && (w->req->names_only || (now->changed_ns && now->changed_ns < w->at->settled_ns));
}

/* The next entry that exists now and existed at the revision. */
static int peek_now(struct walk *w, struct store_entry *ret, bool *ret_has, struct err *err)
{
	for (;;) {
		const struct store_entry *e;
		struct store_stat then;
		bool existed;
		int r = list_stream_peek(&w->now, &e, err);

		*ret_has = r == 0 && e;
		if (r || !e)
			return r;
		*ret = *e;
		existed = !at_changed_find(w->at, e->path.s);
		if (e->stat.kind == STORE_DIR) {
			r = dir_existed(w->at, w->ctx, e->path, true, &existed, err);
			if (r)
				return r;
		} else if (existed && !is_settled(w, &e->stat) &&
			   log_differs(w->at, w->ctx, e->path, &e->stat, &then)) {
			ret->stat = then;
			existed = then.kind;
		} else if (existed && !w->req->names_only) {
			ret->stat.version = past_version(w->ctx->arena, w->at->number, e->stat.version, e->stat.size);
		}
		if (existed)
			return 0;
		list_stream_next(&w->now);
	}
}

/* The next entry that was changed since and existed at the revision; w->next stays on it. */
static int peek_then(struct walk *w, struct store_entry *ret, bool *ret_has, struct err *err)
{
	for (; w->next < w->at->count; w->next++) {
		const struct changed *c = &w->at->changed[w->next];
		size_t slash = w->below.len + str_find_char(str_from(c->path, w->below.len), '/');
		bool in_dir = !w->req->recursive && slash < c->path.len;
		struct present now = {0};
		int r;

		*ret_has = str_starts(c->path, w->below);
		if (!*ret_has)
			return 0;
		if (!c->existed || str_cmp(in_dir ? str_first(c->path, slash + 1) : c->path, w->req->after) <= 0)
			continue;
		ret->path.s = arena_str(w->ctx->arena, in_dir ? str_first(c->path, slash) : c->path);
		ret->stat = (struct store_stat){.kind = STORE_DIR};
		if (in_dir)
			return 0;
		r = is_logged(w->at, w->ctx, ret->path) ? 0 : stat_present(w->at, w->ctx, ret->path, &now, err);
		return r ? r : stat_then(w->at, w->ctx, ret->path, &now, &ret->stat, err);
	}
	*ret_has = false;
	return 0;
}

/* Moves past the entry that peek_then() returned. */
static void leave_then(struct walk *w, const struct store_entry *e)
{
	struct str past = e->path.s;

	if (e->stat.kind == STORE_DIR) /* '0' is what comes after '/' */
		w->next = at_changed_from(w->at, arena_printf(w->ctx->arena, "%.*s0", STR_ARG(past)));
	else
		while (w->next < w->at->count && str_eq(w->at->changed[w->next].path, past))
			w->next++;
}

/* Whether anything below the directory was changed since. */
static bool has_changed(const struct walk *w)
{
	size_t i = at_changed_from(w->at, w->below);

	return i < w->at->count && str_starts(w->at->changed[i].path, w->below);
}

static int walk_page(struct walk *w, bool is_now, struct store_page *ret_page, struct err *err)
{
	struct page_builder out = {.arena = w->ctx->arena, .limit = w->req->limit};
	struct str from = str_cmp(w->req->after, w->below) > 0 ? w->req->after : w->below;

	list_stream_init(&w->now, w->at->revisions->inner, w->ctx, w->dir, WPATH_ROOT, w->req);
	w->now.done = w->now.done || !is_now;
	w->now.req.count = has_changed(w) ? NULL : w->req->count;
	if (w->req->count)
		w->req->count->known = false; /* of an earlier try */
	w->next = at_changed_from(w->at, from);
	while (!page_builder_full(&out)) {
		struct store_entry a, b;
		bool has_a, has_b;
		int c, r = peek_now(w, &a, &has_a, err);

		if (r == 0)
			r = peek_then(w, &b, &has_b, err);
		if (r)
			return r;
		if (!has_a && !has_b)
			break;
		c = !has_a ? 1 : !has_b ? -1 : store_entry_cmp(&a, &b);
		page_builder_add(&out, c <= 0 ? &a : &b);
		if (c <= 0)
			list_stream_next(&w->now);
		if (c >= 0)
			leave_then(w, &b);
	}
	out.page.skipped = w->now.skipped;
	page_builder_finish(&out, ret_page);
	return 0;
}

/* The place that remembers a directory and its stamp, and what is in it if it does. 0: there is no stamp. */
static uint64_t quiet_key(struct at *at, const struct walk *w, uint64_t stamp, uint64_t **ret_place)
{
	uint64_t key = hash_u64(w->dir.s, stamp);

	*ret_place = &at->quiet[key % AT_QUIET_MAX];
	return stamp && w->req->names_only && !w->req->recursive ? key : 0;
}

/* Most directories are what they were: then the store's own page is the answer. It is taken first and the log is looked
   at after it, because a change is in the log before it is made. *ret_done is false when anything in the directory may
   have been different. */
static int list_unchanged(struct walk *w, struct store_page *ret_page, bool *ret_done, struct err *err)
{
	struct store_page page = {0};
	struct store_call list = {.op = STORE_OP_LIST, .path = w->dir, .list = w->req, .ret_page = &page};
	uint64_t key, *quiet;
	struct store_stat then;
	struct at *at = w->at;
	int r;

	*ret_done = false;
	if (has_changed(w))
		return 0;
	r = store_forward(at->revisions->inner, w->ctx, &list, err);
	if (r)
		return r == -ERR_NOT_FOUND || r == -ERR_INVALID ? 0 : r;
	key = quiet_key(at, w, page.stamp, &quiet);
	page.stamp = 0;
	*ret_done = key && *quiet == key;
	if (*ret_done) {
		*ret_page = page;
		return 0;
	}
	r = at_bring_up(at, w->ctx, err);
	if (r == 0)
		r = at_settle(at, w->ctx, err);
	if (r || has_changed(w) || at_changed_find(at, w->dir.s) || log_differs(at, w->ctx, w->dir, NULL, &then))
		return r;
	for (size_t i = 0; i < page.count; i++) {
		struct store_entry *e = &page.entries[i];

		if (e->stat.kind == STORE_DIR)
			continue;
		if (!is_settled(w, &e->stat) && log_differs(at, w->ctx, e->path, &e->stat, &then))
			return 0;
		if (!w->req->names_only)
			e->stat.version = past_version(w->ctx->arena, at->number, e->stat.version, e->stat.size);
	}
	if (key && at->settled_ns)
		*quiet = key;
	*ret_page = page;
	*ret_done = true;
	return 0;
}

static int list_locked(struct at *at, struct ctx *ctx, struct wpath dir, const struct store_list_req *req,
		       struct store_page *ret_page, struct err *err)
{
	struct walk w = {.at = at, .ctx = ctx, .dir = dir, .req = req};
	struct err late;
	bool done;
	int r;

	if (!wpath_is_root(dir))
		w.below = arena_printf(ctx->arena, "%.*s/", STR_ARG(dir.s));
	r = list_unchanged(&w, ret_page, &done, err);
	if (r || done)
		return r;
	for (int tries = 0; tries < STABLE_TRIES; tries++) {
		struct store_stat stat;
		struct present now;
		size_t count;

		r = stat_present(at, ctx, dir, &now, err);
		if (r == 0 && tries == 0)
			r = at_bring_up(at, ctx, err);
		if (r == 0)
			r = at_settle(at, ctx, err);
		if (r == 0)
			r = stat_then(at, ctx, dir, &now, &stat, err);
		count = at->count;
		if (r == 0 && stat.kind == STORE_FILE)
			r = err_set(err, ERR_INVALID, "it is a file; name a directory");
		if (r == 0)
			r = walk_page(&w, now.is_dir, ret_page, err);
		if ((r && r != -ERR_NOT_FOUND) || at_bring_up(at, ctx, &late) || at->count == count)
			break; /* otherwise files that changed during the walk may be missing: walk again */
	}
	return r;
}

static int at_list(struct store *s, struct ctx *ctx, struct wpath dir, const struct store_list_req *req,
		   struct store_page *ret_page, struct err *err)
{
	struct at *at = at_of(s);
	REV_PINNED struct revisions *pin = revisions_pin(revisions_of(at->revisions));
	int r;

	pthread_mutex_lock(&at->lock);
	r = list_locked(at, ctx, dir, req, ret_page, err);
	pthread_mutex_unlock(&at->lock);
	return r;
}

static int at_around(struct store *s, struct ctx *ctx, struct store_call *call, struct err *err)
{
	if (call->op == STORE_OP_SCAN)
		return at_scan(s, ctx, call->path, call->scan, err);
	return err_set(err, ERR_DENIED, "the past cannot be changed; restore what you want from it instead");
}

static void at_destroy(struct store *s)
{
	struct at *at = at_of(s);

	pthread_mutex_destroy(&at->lock);
	arena_destroy(at->memory);
	free(at->changed);
	free(at);
}

static const struct store_ops at_ops = {
	.name = "at-revision",
	.stat = at_stat,
	.read = at_read,
	.list = at_list,
	.around = at_around,
	.destroy = at_destroy,
};

struct store *store_at_revision_new(struct store *revisions, uint64_t number)
{
	struct at *at = xcalloc(1, sizeof(*at));

	at->base.ops = &at_ops;
	at->revisions = revisions;
	at->number = number;
	at->known = number;
	at->memory = arena_new();
	pthread_mutex_init(&at->lock, NULL);
	return &at->base;
}
