/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What upper hides of lower. On this machine upper is asked about each element of a path, from the root down, and not
 * further than it has something. Over a network each of these questions is a round trip, so there all whiteouts are
 * fetched with one list and remembered. What this process changes is remembered at once. A whiteout of another process
 * may be missing for COVER_RECENT_NS, or until a journal in upper is read, by somebody who wants to know what others
 * did. Reads, lists and unconditional writes accept that; conditional changes, removals, moves and refusals fetch the
 * whiteouts again first. What upper has at a path itself is always asked.
 *
 * A file of upper above lower's entry covers it, too. That can only come to be when lower changes: upper gets a file in
 * place of lower's directory only after a whiteout of it, which stays. So with a lower store that never changes
 * (STORE_FIXED) upper is not asked about parents. What such a store has at a path is remembered, too.
 */
#include "base/clock.h"
#include "base/strmap.h"
#include "store/layers/overlay_internal.h"
#include "store/list_stream.h"

/* Beyond so many whiteouts, looking at those of one path is cheaper than fetching all. */
#define FETCH_MAX 100
/* Paths of lower that are remembered; then it begins again. */
#define BELOW_MAX 4096

struct overlay_memory {
	pthread_mutex_t lock;
	struct arena *arena;
	/* Whiteouts, with their parents: GONE, or 0 for a parent. NULL: not known, or there are too many. */
	struct strmap *gone;
	struct strmap *upper; /* what upper has at a path, as far as it was asked: enum store_kind */
	size_t count;         /* of whiteouts */
	int64_t fetched_ns;   /* 0: never */
	/* What a lower store that never changes has. */
	struct arena *below_arena;
	struct strmap *below; /* of a path: its place in `stats`, from 1 on */
	struct store_stat *stats;
};

#define GONE 1

struct overlay_memory *overlay_memory_new(void)
{
	struct overlay_memory *m = xcalloc(1, sizeof(*m));

	pthread_mutex_init(&m->lock, NULL);
	m->arena = arena_new();
	m->below_arena = arena_new();
	m->below = strmap_new(m->below_arena);
	m->stats = xcalloc(BELOW_MAX, sizeof(*m->stats));
	return m;
}

void overlay_memory_destroy(struct overlay_memory *m)
{
	if (!m)
		return;
	arena_destroy(m->arena);
	arena_destroy(m->below_arena);
	free(m->stats);
	pthread_mutex_destroy(&m->lock);
	free(m);
}

int overlay_find_in(struct store *in, struct ctx *ctx, struct wpath path, struct store_stat *ret, struct err *err)
{
	struct store_call call = {.op = STORE_OP_STAT, .path = path, .ret_stat = ret};
	int r = store_forward(in, ctx, &call, err);

	if (r == -ERR_NOT_FOUND)
		*ret = (struct store_stat){0};
	return r == -ERR_NOT_FOUND ? 0 : r;
}

/* Lower. */

/* The lock is held. */
static void note_one(struct overlay_memory *m, struct str path, const struct store_stat *stat)
{
	size_t *place;

	if (strmap_find(m->below, path) || strmap_count(m->below) == BELOW_MAX)
		return;
	place = strmap_put(m->below, arena_str(m->below_arena, path), NULL);
	*place = strmap_count(m->below);
	m->stats[*place - 1] = *stat;
	m->stats[*place - 1].version = arena_str(m->below_arena, stat->version);
}

void overlay_note_below(struct overlay *o, struct wpath path, const struct store_stat *stat)
{
	static const struct store_stat dir = {.kind = STORE_DIR};
	struct overlay_memory *m = o->memory;

	if (!m || !o->lower_is_fixed)
		return;
	pthread_mutex_lock(&m->lock);
	if (strmap_count(m->below) == BELOW_MAX) {
		arena_reset(m->below_arena);
		m->below = strmap_new(m->below_arena);
	}
	note_one(m, path.s, stat);
	for (size_t i = 1; stat->kind && i < path.s.len; i++)
		if (path.s.ptr[i] == '/')
			note_one(m, str_first(path.s, i), &dir);
	pthread_mutex_unlock(&m->lock);
}

bool overlay_recall_below(struct overlay *o, struct ctx *ctx, struct wpath path, struct store_stat *ret)
{
	struct overlay_memory *m = o->memory;
	const size_t *place;

	if (!m || !o->lower_is_fixed)
		return false;
	pthread_mutex_lock(&m->lock);
	place = strmap_find(m->below, path.s);
	if (place) {
		*ret = m->stats[*place - 1];
		ret->version = arena_str(ctx->arena, ret->version);
	}
	pthread_mutex_unlock(&m->lock);
	return place != NULL;
}

int overlay_find_below(struct overlay *o, struct ctx *ctx, struct wpath path, struct store_stat *ret, struct err *err)
{
	int r;

	if (overlay_recall_below(o, ctx, path, ret))
		return 0;
	r = overlay_find_in(o->lower, ctx, path, ret, err);
	if (r == 0)
		overlay_note_below(o, path, ret);
	return r;
}

/* Whiteouts. */

static int whiteout_path(const struct overlay *o, struct ctx *ctx, struct wpath path, struct wpath *ret,
			 struct err *err)
{
	struct wpath in_area;
	int r = wpath_join(ctx->arena, (struct wpath){o->mark}, path, &in_area, err);

	return r ? r : wpath_join(ctx->arena, in_area, (struct wpath){o->mark}, ret, err);
}

/* The lock is held. */
static void remember(struct overlay_memory *m, struct str path)
{
	size_t *state;

	path = arena_str(m->arena, path);
	for (size_t i = 1; i < path.len; i++)
		if (path.ptr[i] == '/')
			strmap_put(m->gone, str_first(path, i), NULL);
	state = strmap_put(m->gone, path, NULL);
	m->count += *state != GONE;
	*state = GONE;
}

/* Notes a change of this process: `r` is how it ended. One that failed may have been made all the same. */
static void note_whiteout(struct overlay *o, struct wpath path, bool is_there, int r)
{
	struct overlay_memory *m = o->memory;
	size_t *state;

	if (!m)
		return;
	pthread_mutex_lock(&m->lock);
	if (r)
		m->fetched_ns = 0;
	else if (m->gone && is_there)
		remember(m, path.s);
	else if (m->gone && (state = strmap_find(m->gone, path.s)))
		*state = 0;
	pthread_mutex_unlock(&m->lock);
}

int overlay_put_whiteout(struct overlay *o, struct ctx *ctx, struct wpath path, struct err *err)
{
	struct source empty = {.bytes = STR("")};
	struct store_stat stat;
	struct store_call call = {.op = STORE_OP_WRITE, .source = &empty, .ret_stat = &stat};
	int r = whiteout_path(o, ctx, path, &call.path, err);

	if (r)
		return r;
	r = store_forward(o->upper, ctx, &call, err);
	note_whiteout(o, path, true, r);
	return r;
}

/* Only tidies up: a whiteout that is left over hides nothing visible. */
void overlay_drop_whiteout(struct overlay *o, struct ctx *ctx, struct wpath path)
{
	uint64_t count;
	struct store_call call = {.op = STORE_OP_REMOVE, .ret_count = &count};
	struct err ignored;
	int r;

	if (whiteout_path(o, ctx, path, &call.path, &ignored))
		return;
	r = store_forward(o->upper, ctx, &call, &ignored);
	note_whiteout(o, path, false, r == -ERR_NOT_FOUND ? 0 : r);
}

/* Asks upper whether `path` has a whiteout; *ret_more: something below it may have one. */
static int ask_whiteout(struct overlay *o, struct ctx *ctx, struct wpath path, bool *ret, bool *ret_more,
			struct err *err)
{
	struct store_stat stat;
	struct wpath area, mark;
	int r = wpath_join(ctx->arena, (struct wpath){o->mark}, path, &area, err);

	*ret = *ret_more = false;
	if (r == 0)
		r = overlay_find_in(o->upper, ctx, area, &stat, err);
	if (r || stat.kind != STORE_DIR)
		return r;
	*ret_more = true;
	r = wpath_join(ctx->arena, area, (struct wpath){o->mark}, &mark, err);
	if (r == 0)
		r = overlay_find_in(o->upper, ctx, mark, &stat, err);
	*ret = r == 0 && stat.kind == STORE_FILE;
	return r;
}

int overlay_has_whiteout(struct overlay *o, struct ctx *ctx, struct wpath path, bool *ret, struct err *err)
{
	bool more;

	return ask_whiteout(o, ctx, path, ret, &more, err);
}

/* The memory. */

void overlay_forget_covers(struct overlay *o)
{
	struct overlay_memory *m = o->memory;

	if (!m)
		return;
	pthread_mutex_lock(&m->lock);
	m->fetched_ns = 0;
	pthread_mutex_unlock(&m->lock);
}

/* Fetches all whiteouts, or finds that there are too many. The lock is held. */
static int fetch(struct overlay *o, struct ctx *ctx, struct err *err)
{
	struct overlay_memory *m = o->memory;
	struct store_list_req req = {
		.recursive = true, .limit = STORE_PAGE_MAX, .names_only = true, .never_file = true};
	struct store_page page = {0};
	struct store_call list = {.op = STORE_OP_LIST, .path = {o->mark}, .list = &req, .ret_page = &page};
	int64_t now = clock_monotonic_ns();
	int r = store_forward(o->upper, ctx, &list, err);

	if (r && r != -ERR_NOT_FOUND)
		return r;
	arena_reset(m->arena);
	m->gone = page.next.ptr ? NULL : strmap_new(m->arena);
	m->upper = strmap_new(m->arena);
	m->count = m->gone ? 0 : page.count; /* remember() counts */
	m->fetched_ns = now;
	for (size_t i = 0; m->gone && i < page.count; i++) {
		struct str whole = page.entries[i].path.s;

		if (whole.len > 2 * (o->mark.len + 1)) /* "mark/path/mark" */
			remember(m, str_first(str_from(whole, o->mark.len + 1), whole.len - 2 * (o->mark.len + 1)));
	}
	return 0;
}

/* Brings the memory to the age that is asked for. False: upper itself has to be asked. */
static int bring_up(struct overlay *o, struct ctx *ctx, enum cover_age age, bool *ret_answers, struct err *err)
{
	struct overlay_memory *m = o->memory;
	bool is_known = m->fetched_ns && (age == COVER_KNOWN || clock_monotonic_ns() - m->fetched_ns < COVER_RECENT_NS);
	int r = 0;

	if (age == COVER_NOW && m->fetched_ns && m->count > FETCH_MAX) {
		*ret_answers = false;
		return 0;
	}
	if (!is_known || age == COVER_NOW)
		r = fetch(o, ctx, err);
	*ret_answers = r == 0 && m->gone;
	return r;
}

/* What is remembered about `path`. *ret_answers: it is all there is to know about whiteouts. */
static int recall(struct overlay *o, struct ctx *ctx, struct str path, enum cover_age age, bool *ret_answers, bool *ret,
		  bool *ret_clear, struct err *err)
{
	size_t *state = NULL;
	int r;

	pthread_mutex_lock(&o->memory->lock);
	r = bring_up(o, ctx, age, ret_answers, err);
	for (size_t i = 1; r == 0 && *ret_answers && i <= path.len && !*ret; i++) {
		if (i < path.len && path.ptr[i] != '/')
			continue;
		state = strmap_find(o->memory->gone, str_first(path, i));
		*ret = state && *state == GONE;
		if (!state)
			break;
	}
	*ret_clear = !state;
	pthread_mutex_unlock(&o->memory->lock);
	return r;
}

/* The kind of what upper has at a path above the one that is looked for. */
static int upper_kind(struct overlay *o, struct ctx *ctx, struct wpath path, enum store_kind *ret, struct err *err)
{
	struct overlay_memory *m = o->memory;
	struct store_stat stat;
	size_t *known = NULL;
	int r;

	if (m) {
		pthread_mutex_lock(&m->lock);
		known = m->upper ? strmap_find(m->upper, path.s) : NULL;
		*ret = known ? (enum store_kind) * known : 0;
		pthread_mutex_unlock(&m->lock);
	}
	if (known)
		return 0;
	r = overlay_find_in(o->upper, ctx, path, &stat, err);
	*ret = r ? 0 : stat.kind;
	if (m && r == 0) {
		pthread_mutex_lock(&m->lock);
		if (m->upper)
			*strmap_put(m->upper, arena_str(m->arena, path.s), NULL) = stat.kind;
		pthread_mutex_unlock(&m->lock);
	}
	return r;
}

/* Whether what upper has at `part`, on the way to lower's `path`, covers that; *ret_more: it has something below. */
static int covers_part(struct overlay *o, struct ctx *ctx, struct wpath path, struct wpath part, enum store_kind kind,
		       bool *ret, bool *ret_more, struct err *err)
{
	bool is_last = part.s.len == path.s.len;
	enum store_kind upper = 0;
	struct store_stat stat;
	int r;

	if (!is_last) {
		r = upper_kind(o, ctx, part, &upper, err);
	} else {
		r = overlay_find_in(o->upper, ctx, part, &stat, err);
		upper = r ? 0 : stat.kind;
	}
	*ret = upper == STORE_FILE || (upper == STORE_DIR && is_last && kind == STORE_FILE);
	*ret_more = upper == STORE_DIR;
	return r;
}

/* Asks upper about each element of the path, as far as it has something there. */
static int ask_upper(struct overlay *o, struct ctx *ctx, struct wpath path, enum store_kind kind, bool in_area,
		     bool *ret, bool *ret_clear, struct err *err)
{
	bool in_upper = !o->lower_is_fixed;

	for (size_t i = 1; i <= path.s.len && (in_upper || in_area) && !*ret; i++) {
		struct wpath part = {str_first(path.s, i)};
		int r = 0;

		if (i < path.s.len && path.s.ptr[i] != '/')
			continue;
		if (in_area) {
			r = ask_whiteout(o, ctx, part, ret, &in_area, err);
			*ret_clear = !in_area;
		}
		if (r == 0 && in_upper && !*ret)
			r = covers_part(o, ctx, path, part, kind, ret, &in_upper, err);
		if (r)
			return r;
	}
	return 0;
}

int overlay_is_covered(struct overlay *o, struct ctx *ctx, struct wpath path, enum store_kind kind, enum cover_age age,
		       bool *ret, bool *ret_clear, struct err *err)
{
	bool answers = false;
	int r = 0;

	*ret = false;
	*ret_clear = true;
	if (o->memory)
		r = recall(o, ctx, path.s, age, &answers, ret, ret_clear, err);
	if (r || *ret)
		return r;
	return ask_upper(o, ctx, path, kind, !answers, ret, ret_clear, err);
}

/* What shows. */

int overlay_shows_below(struct overlay *o, struct ctx *ctx, struct wpath dir, enum cover_age age, bool *ret,
			struct err *err)
{
	struct store_list_req req = {.recursive = true, .limit = 100, .names_only = true};
	struct list_stream ls;
	const struct store_entry *e;

	*ret = false;
	list_stream_init(&ls, o->lower, ctx, dir, WPATH_ROOT, &req);
	while (!*ret) {
		bool covered = true, clear;
		int r = list_stream_peek(&ls, &e, err);

		if (r || !e)
			return r;
		if (!overlay_is_reserved(o, e->path.s))
			r = overlay_is_covered(o, ctx, e->path, STORE_FILE, age, &covered, &clear, err);
		if (r)
			return r;
		*ret = !covered;
		list_stream_next(&ls);
	}
	return 0;
}

int overlay_find_lower(struct overlay *o, struct ctx *ctx, struct wpath path, enum cover_age age, struct found *ret,
		       enum store_kind *ret_kind, struct err *err)
{
	struct store_stat stat;
	bool covered, clear, shows = true;
	int r = overlay_find_below(o, ctx, path, &stat, err);

	*ret = (struct found){0};
	*ret_kind = r ? 0 : stat.kind;
	if (r || !stat.kind)
		return r;
	r = overlay_is_covered(o, ctx, path, stat.kind, age, &covered, &clear, err);
	if (r || covered)
		return r;
	if (stat.kind == STORE_DIR && !clear)
		r = overlay_shows_below(o, ctx, path, age, &shows, err);
	if (r || !shows)
		return r;
	*ret = (struct found){.kind = stat.kind, .in_lower = true, .stat = stat};
	ret->stat.version = overlay_lower_version(ctx->arena, stat.version);
	return 0;
}

int overlay_find(struct overlay *o, struct ctx *ctx, struct wpath path, enum cover_age age, struct found *ret,
		 struct err *err)
{
	enum store_kind in_lower;
	struct store_stat stat;
	int r = overlay_find_in(o->upper, ctx, path, &stat, err);

	if (r)
		return r;
	if (!stat.kind)
		return overlay_find_lower(o, ctx, path, age, ret, &in_lower, err);
	*ret = (struct found){.kind = stat.kind, .stat = stat};
	ret->stat.version = overlay_upper_version(ctx->arena, stat.version);
	return 0;
}
