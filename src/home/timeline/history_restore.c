/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making paths what they were, and restore.
 *
 * Everything that changes goes through workspace_files(), as a tool's own call would (what an undo takes back of a
 * family goes through workspace_home(), as the family's call did): so the guard, the quota and the listeners see it, it
 * gets a revision of its own, and it can be undone in turn. Each change is conditional on what the plan was made on, so
 * a writer who comes between is a conflict and not a loss. What goes is removed before what comes back is written: a
 * file may have to make room for a directory of its name, and the other way round.
 *
 * The changes are made as groups (store_group): on disk one append to the log for all of them, so that a kill leaves
 * none of them half made; on Redis and PostgreSQL one step for some hundred of them. There the store checks the
 * conditions, and no file is looked at before. In other remote stores, and through layers that know no groups, several
 * threads make them one by one.
 */
#include <pthread.h>

#include "base/limits.h"
#include "home/timeline/history_internal.h"
#include "workspace/workspace_parts.h"

#define MAKERS_MAX 31 /* threads besides the caller's */
#define STEPS_EACH 4  /* for fewer a thread is not worth starting */
/* Up to WHOLE_MAX steps are one group, which takes memory for each of them; more are made in groups of GROUP_MAX. */
#define WHOLE_MAX   10000
#define GROUP_MAX   2048
#define GROUP_BYTES (4 * MIB)
#define SMALL_MAX   (64 * KIB) /* a larger content is streamed */

/* --- one file --- */

/* A source of a file's bytes at a revision, in pieces, for files of any size. */
struct past_source {
	struct store *log;
	struct ctx *ctx;
	struct wpath logged;
	uint64_t number, offset;
};

struct piece {
	char *at;
	size_t len, cap;
};

static int piece_push(void *arg, const void *bytes, size_t len, struct err *err)
{
	struct piece *p = arg;

	if (len > p->cap - p->len)
		return err_set(err, ERR_INTERNAL, "a store gave more bytes than it was asked for");
	memcpy(p->at + p->len, bytes, len);
	p->len += len;
	return 0;
}

static int past_pull(void *arg, void *buf, size_t cap, size_t *ret_len, struct err *err)
{
	struct past_source *p = arg;
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = *p->ctx;
	struct piece piece = {.at = buf, .cap = cap};
	struct sink sink = {.push = piece_push, .arg = &piece};
	struct rev_state state;
	int r;

	ctx.arena = arena;
	r = revisions_read(p->log, &ctx, p->logged, p->number, (struct store_range){p->offset, cap}, &sink, &state,
			   err);
	p->offset += piece.len;
	*ret_len = piece.len;
	return r;
}

static int past_rewind(void *arg, struct err *err)
{
	(void)err;
	((struct past_source *)arg)->offset = 0;
	return 0;
}

bool step_is_needed(const struct step *s)
{
	return !past_same(s->then, s->now) || (s->with_rights && past_rights_differ(s->then, s->now));
}

const char *step_how(const struct step *s)
{
	return !step_is_needed(s) ? "unchanged" : s->then->exists ? "restored" : "removed";
}

struct store *step_log(struct workspace *ws, const struct step *s)
{
	return s->is_home ? workspace_shared(ws) : workspace_revisions(ws);
}

static int changed_by_other(const struct step *s, struct err *err)
{
	return err_set(err, ERR_CONFLICT, "\"%.*s\" is being changed by someone else; try again", STR_ARG(s->shown.s));
}

/* True when this user's file may cover one that people wrote for everybody. Removing the user's file through the tools
   would hide the shared one too; undoing its creation must show the shared one again. */
static bool covers_shared(struct workspace *ws, const struct step *s)
{
	struct wpath own = workspace_user_dir(ws);

	return !wpath_is_root(own) && workspace_may_be_asset(wpath_relative(s->logged, own));
}

static struct store *door_of(struct workspace *ws, const struct step *s)
{
	return s->is_home ? workspace_home(ws) : workspace_files(ws);
}

/* The condition under which the step is made: the file is what the plan took it for. */
static int step_cond(struct workspace *ws, struct ctx *ctx, const struct step *s, struct store_cond *ret,
		     struct err *err)
{
	struct store_stat stat;
	bool below; /* only in what people wrote for everybody, below this user's own part */
	int r = store_stat(door_of(ws, s), ctx, s->shown, &stat, err);

	if (r && r != -ERR_NOT_FOUND)
		return r;
	if (r == 0 && stat.kind == STORE_DIR) /* of files that are about to go, or the write is refused */
		r = -ERR_NOT_FOUND;
	below = r == 0 && str_starts(stat.version, STR("l:"));
	if (s->now->exists ? r || (s->now->version.len && !str_eq(stat.version, s->now->version)) : r == 0 && !below)
		return changed_by_other(s, err);
	*ret = r ? (struct store_cond){.kind = STORE_ABSENT}
		 : (struct store_cond){.kind = STORE_VERSION, .version = stat.version};
	return 0;
}

/* The content that comes back: in memory if it is small. */
static int step_source(struct workspace *ws, struct ctx *ctx, const struct step *s, struct past_source *past,
		       struct source *ret, struct err *err)
{
	size_t size = (size_t)s->then->size, len = 0, n = 1;
	char *bytes;
	int r = 0;

	*past = (struct past_source){step_log(ws, s), ctx, s->logged, s->number, 0};
	*ret = (struct source){.pull = past_pull, .rewind = past_rewind, .arg = past};
	if (s->with_rights) {
		ret->mode = s->then->mode;
		ret->owner = s->then->owner;
	}
	if (s->then->size > SMALL_MAX)
		return 0;
	bytes = arena_alloc_raw(ctx->arena, size + 1);
	while (r == 0 && n && len < size) {
		r = past_pull(past, bytes + len, size - len, &n, err);
		len += r == 0 ? n : 0;
	}
	past->offset = 0;
	if (r == 0 && len == size)
		*ret = (struct source){.bytes = str_n(bytes, len), .mode = ret->mode, .owner = ret->owner};
	return r;
}

static int step_make(struct workspace *ws, struct ctx *ctx, const struct step *s, struct err *err)
{
	struct past_source past = {.log = step_log(ws, s)};
	struct store_cond cond;
	struct source source;
	int r = step_cond(ws, ctx, s, &cond, err);

	if (r == 0 && s->then->exists)
		r = step_source(ws, ctx, s, &past, &source, err);
	if (r)
		return r;
	if (s->then->exists)
		return store_write_stream(door_of(ws, s), ctx, s->shown, &source, cond, NULL, err);
	if (covers_shared(ws, s))
		return store_remove(past.log, ctx, s->logged, false, cond, NULL, err);
	return store_remove(door_of(ws, s), ctx, s->shown, false, cond, NULL, err);
}

static const struct step *step_at(const struct steps *steps, size_t i)
{
	return (const struct step *)((const char *)steps->first + i * steps->size);
}

static int drop_push(void *arg, const void *bytes, size_t len, struct err *err)
{
	(void)arg, (void)bytes, (void)len, (void)err;
	return 0;
}

/* The record says it for what retention dropped. What was forgotten (a fact of the memory) shows only when it is read.
 */
static bool is_kept(struct workspace *ws, struct ctx *ctx, const struct step *s)
{
	struct sink sink = {.push = drop_push};
	struct rev_state state;
	struct err ignored;

	if (s->then->where == REV_NOWHERE)
		return false;
	return !s->is_home || revisions_read(step_log(ws, s), ctx, s->logged, s->number, (struct store_range){0, 1},
					     &sink, &state, &ignored) != -ERR_NOT_FOUND;
}

int steps_check_kept(struct workspace *ws, struct ctx *ctx, const struct steps *steps, struct err *err)
{
	for (size_t i = 0; i < steps->count; i++) {
		const struct step *s = step_at(steps, i);

		if (s->then->exists && !past_same(s->then, s->now) && !is_kept(ws, ctx, s))
			return err_set(err, ERR_NOT_FOUND,
				       "\"%.*s\" as it was after revision %llu is not kept; nothing was changed",
				       STR_ARG(s->shown.s), (unsigned long long)s->number);
	}
	return 0;
}

/* Steps that several threads make at once: each waits for its own record, and the records of all share an append to the
   log. */
struct making {
	struct workspace *ws;
	struct ctx *ctx;
	const struct steps *steps;
	bool writes; /* of the two passes, the second */
	pthread_mutex_t lock;
	size_t next, made;
	int result;
	struct err err;
};

static bool is_in_pass(const struct making *m, const struct step *s)
{
	return s->then->exists == m->writes && step_is_needed(s);
}

/* The next step of this pass; NULL: there is none, or one has failed. */
static const struct step *take_step(struct making *m)
{
	const struct step *s = NULL;

	pthread_mutex_lock(&m->lock);
	while (!s && m->result == 0 && m->next < m->steps->count) {
		s = step_at(m->steps, m->next++);
		if (!is_in_pass(m, s))
			s = NULL;
	}
	pthread_mutex_unlock(&m->lock);
	return s;
}

static void *make_some(void *arg)
{
	struct making *m = arg;
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx one = *m->ctx;
	const struct step *s;

	one.arena = arena;
	while ((s = take_step(m))) {
		struct err err;
		int r;

		arena_reset(arena); /* each file is streamed through memory of its own */
		r = step_make(m->ws, &one, s, &err);
		pthread_mutex_lock(&m->lock);
		m->made += r == 0;
		if (r && m->result == 0) {
			m->result = r;
			m->err = err;
		}
		ctx_progress(m->ctx, m->made, m->steps->count, STR("files"));
		pthread_mutex_unlock(&m->lock);
	}
	return NULL;
}

/* A thread that cannot be started is not missed: the caller makes steps, too. */
static void make_pass(struct making *m)
{
	pthread_t threads[MAKERS_MAX];
	size_t count = 0, wanted = m->steps->count / STEPS_EACH;

	while (count < wanted && count < MAKERS_MAX && pthread_create(&threads[count], NULL, make_some, m) == 0)
		count++;
	make_some(m);
	while (count > 0)
		pthread_join(threads[--count], NULL);
}

/* Steps that are made as one group. */
struct gathering {
	struct making *m;
	struct store *door; /* of all of them */
	struct ctx ctx;     /* its arena has the group */
	struct ctx one;     /* for a single step */
	size_t most;        /* steps of a group */
	bool in_steps;      /* the store makes a group in one step with its records */
	struct store_group_item *items;
	size_t count;
	uint64_t bytes;
};

static int make_gathered(struct gathering *g, struct err *err)
{
	struct store_group group = {.items = g->items, .count = g->count};
	int r = store_group(g->door, &g->ctx, &group, err);

	for (size_t i = 0; i < group.count; i++)
		g->m->made += group.items[i].made;
	ctx_progress(g->m->ctx, g->m->made, g->m->steps->count, STR("files"));
	arena_reset(g->ctx.arena);
	g->items = NULL;
	g->count = 0;
	g->bytes = 0;
	return r;
}

/* The same for a group that the store makes in one step, which checks the condition itself: without a look. */
static int group_cond(struct gathering *g, const struct step *s, struct store_cond *ret, struct err *err)
{
	if (!g->in_steps || (s->now->exists && !s->now->version.len))
		return step_cond(g->m->ws, &g->one, s, ret, err);
	*ret = (struct store_cond){.kind = s->now->exists ? STORE_VERSION : STORE_ABSENT, .version = s->now->version};
	return 0;
}

static int gather_step(struct gathering *g, const struct step *s, struct err *err)
{
	struct store *door = door_of(g->m->ws, s);
	struct store_group_item *item;
	struct source *source = NULL;
	int r = 0;

	if (g->count && (door != g->door || g->count == g->most || g->bytes >= GROUP_BYTES))
		r = make_gathered(g, err);
	if (r)
		return r;
	if (!s->then->exists && covers_shared(g->m->ws, s)) {
		r = step_make(g->m->ws, &g->ctx, s, err);
		g->m->made += r == 0;
		return r;
	}
	if (!g->items)
		g->items = ARENA_ARRAY(g->ctx.arena, struct store_group_item, g->most);
	g->door = door;
	item = &g->items[g->count];
	*item = (struct store_group_item){.op = s->then->exists ? STORE_OP_WRITE : STORE_OP_REMOVE, .path = s->shown};
	arena_reset(g->one.arena);
	r = group_cond(g, s, &item->cond, err);
	item->cond.version = arena_str(g->ctx.arena, item->cond.version);
	if (r == 0 && s->then->exists) {
		item->source = source = ARENA_NEW(g->ctx.arena, struct source);
		r = step_source(g->m->ws, &g->ctx, s, ARENA_NEW(g->ctx.arena, struct past_source), source, err);
		g->bytes += source->bytes.len;
	}
	g->count += r == 0;
	return r;
}

static void make_groups(struct making *m)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	ARENA_SCOPE struct arena *one = arena_new();
	struct gathering g = {.m = m, .ctx = *m->ctx, .one = *m->ctx};

	g.in_steps = workspace_is_remote(m->ws);
	g.most = m->steps->count <= WHOLE_MAX ? m->steps->count : GROUP_MAX;
	g.ctx.arena = arena;
	g.one.arena = one;
	for (int pass = 0; m->result == 0 && pass < 2; pass++) {
		m->writes = pass == 1;
		for (size_t i = 0; m->result == 0 && i < m->steps->count; i++)
			if (is_in_pass(m, step_at(m->steps, i)))
				m->result = gather_step(&g, step_at(m->steps, i), &m->err);
	}
	if (m->result == 0 && g.count)
		m->result = make_gathered(&g, &m->err);
}

static void make_each(struct making *m)
{
	pthread_mutex_init(&m->lock, NULL);
	for (int pass = 0; m->result == 0 && pass < 2; pass++) {
		m->writes = pass == 1;
		m->next = 0;
		make_pass(m);
	}
	pthread_mutex_destroy(&m->lock);
}

/* True when every layer between the door of the steps and their log passes a group on, and the log makes it in one
   step. */
static bool knows_groups(struct workspace *ws, const struct steps *steps)
{
	for (size_t i = 0; i < steps->count; i++) {
		const struct step *s = step_at(steps, i);
		const struct store *door = door_of(ws, s), *log = step_log(ws, s);

		if (i && s->is_home == step_at(steps, i - 1)->is_home)
			continue;
		while (door && door != log && door->ops->group)
			door = door->inner;
		if (door != log || !revisions_makes_groups(step_log(ws, s)))
			return false;
	}
	return true;
}

int steps_make(struct workspace *ws, struct ctx *ctx, const struct steps *steps, struct err *err)
{
	struct making m = {.ws = ws, .ctx = ctx, .steps = steps};
	int r = steps_check_kept(ws, ctx, steps, err);

	if (r)
		return r;
	if (workspace_is_remote(ws) && !knows_groups(ws, steps))
		make_each(&m);
	else
		make_groups(&m);
	if (m.result)
		*err = m.err;
	if (m.result && m.made)
		return err_prefix(err, "%zu file%s went back (%s reverts that), then", m.made, m.made == 1 ? "" : "s",
				  steps->taken_back_by);
	return m.result;
}

/* --- restore --- */

/* A file then that is a file or nothing now: two looks into its chain of changes instead of a walk over the log. */
static int restore_one(struct workspace *ws, struct ctx *ctx, struct wpath path, uint64_t number, struct step *ret,
		       bool *ret_is_file, struct err *err)
{
	struct store *rev = workspace_revisions(ws);
	struct rev_state *states = ARENA_ARRAY(ctx->arena, struct rev_state, 2);
	struct store_stat stat;
	int r;

	*ret_is_file = false;
	*ret = (struct step){.logged = past_logged(ws, ctx, path),
			     .shown = path,
			     .number = number,
			     .then = &states[0],
			     .now = &states[1],
			     .with_rights = true};
	if (wpath_is_root(path))
		return 0;
	r = revisions_settle(rev, ctx, ret->logged, NULL, err);
	if (r == 0)
		r = revisions_state(rev, ctx, ret->logged, number, &states[0], err);
	if (r == 0)
		r = revisions_state(rev, ctx, ret->logged, UINT64_MAX, &states[1], err);
	if (r)
		return r;
	r = store_stat(rev, ctx, ret->logged, &stat, err);
	if (r && r != -ERR_NOT_FOUND)
		return r;
	*ret_is_file = states[0].exists && (r || stat.kind == STORE_FILE);
	return 0;
}

/* Nothing is known of the path: has it ever been there? */
static int check_known(struct workspace *ws, struct ctx *ctx, struct wpath path, struct err *err)
{
	struct rev_query q = {.path = past_logged(ws, ctx, path), .limit = 1};
	struct revision *found;
	size_t count;
	int r = revisions_query(workspace_revisions(ws), ctx, &q, &found, &count, NULL, err);

	if (r || count || wpath_is_root(path))
		return r;
	r = store_stat(workspace_files(ws), ctx, path, NULL, err);
	if (r == -ERR_NOT_FOUND)
		return err_set(err, ERR_NOT_FOUND,
			       "\"%.*s\" does not exist and has no history; history lists the paths that changed",
			       STR_ARG(path.s));
	return r;
}

/* Everything at and below the path that has changed since. */
static int restore_plan(struct workspace *ws, struct ctx *ctx, struct wpath path, uint64_t number, struct step **ret,
			size_t *ret_count, struct err *err)
{
	struct past_change *changes;
	struct step *steps;
	size_t count, n = 0;
	int r = past_changes(ws, ctx, path, number, 0, &changes, &count, err);

	if (r == 0 && count == 0)
		r = check_known(ws, ctx, path, err);
	if (r)
		return r;
	steps = ARENA_ARRAY(ctx->arena, struct step, count + 1);
	for (size_t i = 0; i < count; i++)
		if (!changes[i].fixed)
			steps[n++] = (struct step){.logged = changes[i].logged,
						   .shown = changes[i].shown,
						   .number = number,
						   .then = &changes[i].before,
						   .now = &changes[i].after,
						   .with_rights = true};
	*ret = steps;
	*ret_count = n;
	return 0;
}

/* The paths of steps that are in one log. */
struct settling {
	struct workspace *ws;
	const struct steps *steps;
	struct store *log;
	size_t next;
};

static bool next_path(void *arg, struct wpath *ret)
{
	struct settling *s = arg;

	while (s->next < s->steps->count) {
		const struct step *step = step_at(s->steps, s->next++);

		*ret = step->logged;
		if (step_log(s->ws, step) == s->log)
			return true;
	}
	return false;
}

int steps_settle(struct workspace *ws, struct ctx *ctx, const struct steps *steps, bool *ret_new, struct err *err)
{
	struct store *logs[] = {workspace_revisions(ws), workspace_shared(ws)};
	int r = 0;

	*ret_new = false;
	for (size_t i = 0; r == 0 && steps->count && i < (logs[0] == logs[1] ? 1 : 2); i++) {
		struct settling s = {.ws = ws, .steps = steps, .log = logs[i]};
		bool is_new = false;

		r = revisions_settle_all(logs[i], ctx, next_path, &s, &is_new, err);
		*ret_new |= is_new;
	}
	return r;
}

static int restore_steps(struct workspace *ws, struct ctx *ctx, struct wpath path, uint64_t number, struct step **ret,
			 size_t *ret_count, struct err *err)
{
	struct steps all = {.size = sizeof(struct step)};
	bool is_file, is_new;
	int r;

	*ret = ARENA_NEW(ctx->arena, struct step);
	r = restore_one(ws, ctx, path, number, *ret, &is_file, err);
	*ret_count = is_file;
	if (r || is_file)
		return r;
	r = history_notice(ws, ctx, path, err);
	if (r == 0)
		r = restore_plan(ws, ctx, path, number, ret, ret_count, err);
	all.first = *ret;
	all.count = *ret_count;
	if (r == 0)
		r = steps_settle(ws, ctx, &all, &is_new, err);
	return r == 0 && is_new ? restore_plan(ws, ctx, path, number, ret, ret_count, err) : r;
}

int history_restore(struct workspace *ws, struct ctx *ctx, struct wpath path, uint64_t number, struct jv **ret,
		    struct err *err)
{
	struct arena *arena = ctx->arena;
	struct jv *restored = jv_array(arena), *removed = jv_array(arena);
	struct steps all = {.size = sizeof(struct step), .taken_back_by = "undo"};
	struct jv *counts = jv_object(arena);
	size_t of[2] = {0}; /* removed, restored */
	struct step *steps = NULL;
	uint64_t head;
	int r = past_visible(ws, path, err);

	if (r == 0)
		r = past_kept(ws, ctx, number, err);
	if (r == 0)
		r = restore_steps(ws, ctx, path, number, &steps, &all.count, err);
	all.first = steps;
	if (r == 0)
		r = steps_make(ws, ctx, &all, err);
	if (r == 0)
		r = revisions_head(workspace_revisions(ws), ctx, &head, err);
	if (r)
		return r;
	for (size_t i = 0; i < all.count; i++) {
		if (!step_is_needed(&steps[i]))
			continue;
		of[steps[i].then->exists]++;
		if (of[0] + of[1] <= HISTORY_LIMIT_MAX)
			jv_push(arena, steps[i].then->exists ? restored : removed, jv_str(arena, steps[i].shown.s));
	}
	jv_set_int(arena, counts, "restored", (int64_t)of[1]);
	jv_set_int(arena, counts, "removed", (int64_t)of[0]);
	*ret = jv_object(arena);
	jv_set_str(arena, *ret, "path", wpath_is_root(path) ? STR("/") : path.s);
	jv_set_int(arena, *ret, "to", (int64_t)number);
	jv_set(arena, *ret, "restored", restored);
	jv_set(arena, *ret, "removed", removed);
	jv_set(arena, *ret, "counts", counts);
	jv_set_int(arena, *ret, "total", (int64_t)(of[0] + of[1]));
	jv_set_int(arena, *ret, "revision", (int64_t)head);
	return 0;
}
