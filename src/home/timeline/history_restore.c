/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making paths what they were, and restore.
 *
 * Everything that changes goes through workspace_files(), as a tool's own call would (what an undo takes back of a
 * family goes through workspace_home(), as the family's call did): so the guard, the quota and the listeners see it, it
 * gets a revision of its own, and it can be undone in turn. Each change is conditional on what the plan was made on, so
 * a writer who comes between is a conflict and not a loss. What goes is removed before what comes back is written: a
 * file may have to make room for a directory of its name, and the other way round.
 */
#include "base/limits.h"
#include "home/timeline/history_internal.h"
#include "workspace/workspace_parts.h"

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
	return !past_same(&s->then, &s->now) || (s->then.exists && s->mode && s->now.mode && s->mode != s->now.mode);
}

const char *step_how(const struct step *s)
{
	return !step_is_needed(s) ? "unchanged" : s->then.exists ? "restored" : "removed";
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

static int step_make(struct workspace *ws, struct ctx *ctx, const struct step *s, struct err *err)
{
	struct store *files = s->is_home ? workspace_home(ws) : workspace_files(ws);
	struct past_source past = {step_log(ws, s), ctx, s->logged, s->number, 0};
	struct source source = {.pull = past_pull, .rewind = past_rewind, .arg = &past, .mode = s->mode};
	struct store_cond cond = {.kind = STORE_ABSENT};
	struct store_stat stat;
	bool below; /* only in what people wrote for everybody, below this user's own part */
	int r = store_stat(files, ctx, s->shown, &stat, err);

	if (r && r != -ERR_NOT_FOUND)
		return r;
	below = r == 0 && str_starts(stat.version, STR("l:"));
	if (s->now.exists ? r || (s->now.version.len && !str_eq(stat.version, s->now.version)) : r == 0 && !below)
		return changed_by_other(s, err);
	if (r == 0)
		cond = (struct store_cond){.kind = STORE_VERSION, .version = stat.version};
	if (s->then.exists)
		return store_write_stream(files, ctx, s->shown, &source, cond, NULL, err);
	if (covers_shared(ws, s))
		return store_remove(past.log, ctx, s->logged, false, cond, NULL, err);
	return store_remove(files, ctx, s->shown, false, cond, NULL, err);
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

	if (s->then.where == REV_NOWHERE)
		return false;
	return !s->is_home || revisions_read(step_log(ws, s), ctx, s->logged, s->number, (struct store_range){0, 1},
					     &sink, &state, &ignored) != -ERR_NOT_FOUND;
}

int steps_check_kept(struct workspace *ws, struct ctx *ctx, const struct steps *steps, struct err *err)
{
	for (size_t i = 0; i < steps->count; i++) {
		const struct step *s = step_at(steps, i);

		if (s->then.exists && !past_same(&s->then, &s->now) && !is_kept(ws, ctx, s))
			return err_set(err, ERR_NOT_FOUND,
				       "\"%.*s\" as it was after revision %llu is not kept; nothing was changed",
				       STR_ARG(s->shown.s), (unsigned long long)s->number);
	}
	return 0;
}

int steps_make(struct workspace *ws, struct ctx *ctx, const struct steps *steps, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx one = *ctx;
	size_t made = 0;
	int r = steps_check_kept(ws, ctx, steps, err);

	one.arena = arena;
	for (int writes = 0; r == 0 && writes < 2; writes++)
		for (size_t i = 0; r == 0 && i < steps->count; i++) {
			const struct step *s = step_at(steps, i);

			if (s->then.exists != (writes == 1) || !step_is_needed(s))
				continue;
			arena_reset(arena); /* each file is streamed through memory of its own */
			r = step_make(ws, &one, s, err);
			made += r == 0;
			ctx_progress(ctx, made, steps->count, STR("files"));
		}
	if (r && made)
		return err_prefix(err, "%zu file%s went back (%s takes that back), then", made, made == 1 ? "" : "s",
				  steps->taken_back_by);
	return r;
}

/* --- restore --- */

/* A file then that is a file or nothing now: two looks into its chain of changes instead of a walk over the log. */
static int restore_one(struct workspace *ws, struct ctx *ctx, struct wpath path, uint64_t number, struct step *ret,
		       bool *ret_is_file, struct err *err)
{
	struct store *rev = workspace_revisions(ws);
	struct store_stat stat;
	int r;

	*ret_is_file = false;
	*ret = (struct step){.logged = past_logged(ws, ctx, path), .shown = path, .number = number};
	if (wpath_is_root(path))
		return 0;
	r = revisions_settle(rev, ctx, ret->logged, NULL, err);
	if (r == 0)
		r = revisions_state(rev, ctx, ret->logged, number, &ret->then, err);
	ret->mode = ret->then.mode;
	if (r == 0)
		r = revisions_state(rev, ctx, ret->logged, UINT64_MAX, &ret->now, err);
	if (r)
		return r;
	r = store_stat(rev, ctx, ret->logged, &stat, err);
	if (r && r != -ERR_NOT_FOUND)
		return r;
	*ret_is_file = ret->then.exists && (r || stat.kind == STORE_FILE);
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
		return err_set(err, ERR_NOT_FOUND, "\"%.*s\" is not there and has no history", STR_ARG(path.s));
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
						   .then = changes[i].before,
						   .now = changes[i].after,
						   .mode = changes[i].before.mode};
	*ret = steps;
	*ret_count = n;
	return 0;
}

int steps_settle(struct workspace *ws, struct ctx *ctx, const struct steps *steps, bool *ret_new, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx own = *ctx;
	int r = 0;

	own.arena = arena;
	*ret_new = false;
	for (size_t i = 0; r == 0 && i < steps->count; i++) {
		const struct step *s = step_at(steps, i);
		bool is_new = false;

		arena_reset(arena);
		r = revisions_settle(step_log(ws, s), &own, s->logged, &is_new, err);
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
		of[steps[i].then.exists]++;
		if (of[0] + of[1] <= HISTORY_LIMIT_MAX)
			jv_push(arena, steps[i].then.exists ? restored : removed, jv_str(arena, steps[i].shown.s));
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
