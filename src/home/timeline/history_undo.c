/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Going back: restore and undo.
 *
 * Everything that changes goes through workspace_files(), as a tool's own call would: so the guard, the quota and the
 * listeners see it, it gets a revision of its own, and it can be undone in turn. Each change is conditional on what the
 * plan was made on, so a writer who comes between is a conflict and not a loss. What goes is removed before what comes
 * back is written: a file may have to make room for a directory of its name, and the other way round.
 *
 * Undo takes back chosen changes, not time. Walking from the newest change of a path back, everything that was not
 * chosen must have left the path as it found it; else someone's work depends on what is to be undone, and the whole
 * undo is refused with the difference. A three-way merge of the text was rejected here: an undo that quietly rewrites
 * what a person did since is worse than one that says so.
 */
#include "base/limits.h"
#include "base/strmap.h"
#include "home/timeline/history_internal.h"
#include "workspace/workspace_parts.h"

#define CONFLICT_DIFFS 20
#define CONFLICT_LINES 200

/* --- one file --- */

/* A source of a file's bytes at a revision, in pieces, for files of any size. */
struct past_source {
	struct workspace *ws;
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
	r = revisions_read(workspace_revisions(p->ws), &ctx, p->logged, p->number, (struct store_range){p->offset, cap},
			   &sink, &state, err);
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

/* A path that goes back, and to what. */
struct step {
	struct wpath logged, shown;
	uint64_t number; /* to what it was after this */
	struct rev_state then, now;
};

static const char *step_how(const struct step *s)
{
	return past_same(&s->then, &s->now) ? "unchanged" : s->then.exists ? "restored" : "removed";
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
	struct store *files = workspace_files(ws);
	struct past_source past = {ws, ctx, s->logged, s->number, 0};
	struct source source = {.pull = past_pull, .rewind = past_rewind, .arg = &past};
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
		return store_remove(workspace_revisions(ws), ctx, s->logged, false, cond, NULL, err);
	return store_remove(files, ctx, s->shown, false, cond, NULL, err);
}

static int check_kept(const struct step *steps, size_t count, struct err *err)
{
	for (size_t i = 0; i < count; i++)
		if (steps[i].then.exists && steps[i].then.where == REV_NOWHERE &&
		    !past_same(&steps[i].then, &steps[i].now))
			return err_set(err, ERR_NOT_FOUND,
				       "\"%.*s\" as it was after revision %llu is not kept; nothing was changed",
				       STR_ARG(steps[i].shown.s), (unsigned long long)steps[i].number);
	return 0;
}

/* All of them: what goes first, then what comes back. */
static int steps_make(struct workspace *ws, struct ctx *ctx, const struct step *steps, size_t count, struct err *err)
{
	size_t made = 0;
	int r = check_kept(steps, count, err);

	for (int writes = 0; r == 0 && writes < 2; writes++)
		for (size_t i = 0; r == 0 && i < count; i++) {
			if (steps[i].then.exists != (writes == 1) || past_same(&steps[i].then, &steps[i].now))
				continue;
			r = step_make(ws, ctx, &steps[i], err);
			made += r == 0;
			ctx_progress(ctx, made, count, STR("files"));
		}
	if (r && made)
		return err_prefix(err, "%zu file%s went back (undo takes that back), then", made, made == 1 ? "" : "s");
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

static int restore_steps(struct workspace *ws, struct ctx *ctx, struct wpath path, uint64_t number, struct step **ret,
			 size_t *ret_count, struct err *err)
{
	struct step *steps = ARENA_NEW(ctx->arena, struct step);
	struct past_change *changes;
	size_t count, n = 0;
	bool is_file;
	int r = restore_one(ws, ctx, path, number, steps, &is_file, err);

	*ret = steps;
	*ret_count = is_file;
	if (r || is_file)
		return r;
	r = past_notice(ws, ctx, path, err);
	if (r == 0)
		r = past_changes(ws, ctx, path, number, 0, &changes, &count, err);
	if (r == 0 && count == 0)
		r = check_known(ws, ctx, path, err);
	if (r)
		return r;
	steps = ARENA_ARRAY(ctx->arena, struct step, count + 1);
	for (size_t i = 0; i < count; i++)
		if (!changes[i].fixed)
			steps[n++] = (struct step){changes[i].logged, changes[i].shown, number, changes[i].before,
						   changes[i].after};
	*ret = steps;
	*ret_count = n;
	return 0;
}

int history_restore(struct workspace *ws, struct ctx *ctx, struct wpath path, uint64_t number, struct jv **ret,
		    struct err *err)
{
	struct arena *arena = ctx->arena;
	struct jv *restored = jv_array(arena), *removed = jv_array(arena);
	struct step *steps;
	uint64_t head;
	size_t count, total = 0;
	int r = past_visible(ws, path, err);

	if (r == 0)
		r = past_kept(ws, ctx, number, err);
	if (r == 0)
		r = restore_steps(ws, ctx, path, number, &steps, &count, err);
	if (r == 0)
		r = steps_make(ws, ctx, steps, count, err);
	if (r == 0)
		r = revisions_head(workspace_revisions(ws), ctx, &head, err);
	if (r)
		return r;
	for (size_t i = 0; i < count; i++) {
		if (past_same(&steps[i].then, &steps[i].now))
			continue;
		if (total++ < HISTORY_LIMIT_MAX)
			jv_push(arena, steps[i].then.exists ? restored : removed, jv_str(arena, steps[i].shown.s));
	}
	*ret = jv_object(arena);
	jv_set_str(arena, *ret, "path", wpath_is_root(path) ? STR("/") : path.s);
	jv_set_int(arena, *ret, "to", (int64_t)number);
	jv_set(arena, *ret, "restored", restored);
	jv_set(arena, *ret, "removed", removed);
	jv_set_int(arena, *ret, "total", (int64_t)total);
	jv_set_int(arena, *ret, "revision", (int64_t)head);
	return 0;
}

/* --- undo --- */

/* One path of an undo, while the log is walked from the newest change back. */
struct undo_path {
	struct step step;       /* number: before the oldest chosen change; now: as it is */
	uint64_t newest;        /* chosen */
	uint64_t last;          /* its newest change, chosen or not */
	struct rev_state above; /* what the change that is met next must have left behind */
	bool gap;               /* changes that were not chosen were met since */
	bool conflict;
};

struct undo {
	struct workspace *ws;
	struct ctx *ctx;
	struct undo_req req;
	uint64_t oldest; /* no chosen change is older than this */
	struct strmap *index;
	struct undo_path *paths;
	size_t count, cap;
	struct jv *numbers;
	bool found;
};

static bool is_chosen(const struct undo_req *req, const struct revision *r)
{
	if (r->op == REV_OUTSIDE)
		return false;
	if (req->has_since)
		return r->number > req->since;
	if (req->call_id.len)
		return str_eq(r->actor.call_id, req->call_id);
	if (req->session.len)
		return str_eq(r->actor.session, req->session);
	return str_eq(r->actor.user, req->actor) || str_eq(r->actor.agent, req->actor);
}

/* Tools may take the change back. */
static bool is_ours(struct workspace *ws, const struct revision *r)
{
	struct wpath shown;

	return past_shown(ws, r->path, &shown) && store_guard_says(workspace_files(ws), shown) == GUARD_FREE;
}

static int find_last(void *arg, const struct revision *r, struct err *err)
{
	struct undo *u = arg;

	(void)err;
	if (r->op == REV_OUTSIDE || !is_ours(u->ws, r))
		return 0;
	u->found = true;
	u->oldest = r->number;
	u->req.call_id = arena_str(u->ctx->arena, r->actor.call_id);
	if (!u->req.call_id.len) { /* a change with no call of its own: that one change */
		u->req.has_since = true;
		u->req.since = r->number - 1;
	}
	return PAST_ENOUGH;
}

static int find_oldest(void *arg, const struct revision *r, struct err *err)
{
	struct undo *u = arg;

	(void)err;
	if (!is_chosen(&u->req, r) || !is_ours(u->ws, r))
		return 0;
	u->found = true;
	u->oldest = r->number;
	return PAST_ENOUGH;
}

static int nothing(const struct undo *u, bool is_default, struct err *err)
{
	if (is_default)
		return err_set(err, ERR_NOT_FOUND, "nothing has been changed yet, so there is nothing to undo");
	if (u->req.has_since)
		return err_set(err, ERR_NOT_FOUND,
			       "nothing was changed after revision %llu, so there is nothing to undo",
			       (unsigned long long)u->req.since);
	return err_set(err, ERR_NOT_FOUND, "no change was made by %s \"%.*s\"; history shows who made which",
		       u->req.call_id.len   ? "call"
		       : u->req.session.len ? "session"
					    : "actor",
		       STR_ARG(utf8_first(u->req.call_id.len   ? u->req.call_id
					  : u->req.session.len ? u->req.session
							       : u->req.actor,
					  80)));
}

/* Finds the requested changes, and the oldest of them. */
static int choose(struct undo *u, struct err *err)
{
	struct undo_req *req = &u->req;
	struct rev_query q = {.path = workspace_root(u->ws)};
	bool is_default = !req->has_since && !req->call_id.len && !req->session.len && !req->actor.len;
	int r = 0;

	if (is_default) {
		q.newest_first = true;
		r = past_each(u->ws, u->ctx, q, find_last, u, err);
		if (r == 0 && !u->found)
			return nothing(u, true, err);
		u->found = false;
		q.newest_first = false;
	}
	q.since = req->has_since ? req->since : 0;
	q.call_id = req->has_since ? STR_NONE : req->call_id;
	q.session = req->has_since || req->call_id.len ? STR_NONE : req->session;
	if (r == 0)
		r = past_each(u->ws, u->ctx, q, find_oldest, u, err);
	return r || u->found ? r : nothing(u, false, err);
}

static struct undo_path *path_of(struct undo *u, const struct revision *r)
{
	size_t *at = strmap_find(u->index, r->path.s);
	struct undo_path *p;
	struct wpath logged;

	if (at)
		return *at == SIZE_MAX ? NULL : &u->paths[*at];
	logged.s = arena_str(u->ctx->arena, r->path.s);
	at = strmap_put(u->index, logged.s, NULL);
	if (!is_ours(u->ws, r)) {
		*at = SIZE_MAX;
		return NULL;
	}
	ARENA_ROOM(u->ctx->arena, u->paths, u->count, u->cap);
	*at = u->count++;
	p = &u->paths[*at];
	*p = (struct undo_path){.last = r->number};
	p->step.logged = logged;
	past_shown(u->ws, logged, &p->step.shown);
	p->step.now = p->above = past_keep(u->ctx, &r->after);
	return p;
}

static int plan_change(void *arg, const struct revision *r, struct err *err)
{
	struct undo *u = arg;
	struct undo_path *p = path_of(u, r);

	(void)err;
	if (!p)
		return 0;
	if (!is_chosen(&u->req, r)) {
		p->gap = true;
		return 0;
	}
	if (p->gap && !past_same(&r->after, &p->above))
		p->conflict = true;
	p->gap = false;
	if (!p->newest)
		p->newest = r->number;
	p->step.number = r->number - 1;
	p->step.then = p->above = past_keep(u->ctx, &r->before);
	if (jv_count(u->numbers) < HISTORY_LIMIT_MAX)
		jv_push(u->ctx->arena, u->numbers, jv_int(u->ctx->arena, (int64_t)r->number));
	return 0;
}

/* Leaves only the paths that have a chosen change. A path that is as it was before all of them is not a conflict. */
static void keep_chosen(struct undo *u)
{
	size_t n = 0;

	for (size_t i = 0; i < u->count; i++) {
		struct undo_path *p = &u->paths[i];

		if (!p->newest)
			continue;
		p->conflict = p->conflict && !past_same(&p->step.then, &p->step.now);
		u->paths[n++] = *p;
	}
	u->count = n;
}

static int plan(struct undo *u, struct err *err)
{
	struct rev_query q = {.since = u->oldest - 1, .path = workspace_root(u->ws), .newest_first = true};
	int r;

	u->index = strmap_new(u->ctx->arena);
	u->numbers = jv_array(u->ctx->arena);
	u->count = 0;
	r = past_each(u->ws, u->ctx, q, plan_change, u, err);
	if (r == 0)
		keep_chosen(u);
	return r;
}

/* Plans, checks whether another program has changed one of the files, and if so plans again with that change. */
static int plan_settled(struct undo *u, struct err *err)
{
	bool any = false;
	int r = plan(u, err);

	for (size_t i = 0; r == 0 && i < u->count; i++) {
		bool is_new = false;

		r = revisions_settle(workspace_revisions(u->ws), u->ctx, u->paths[i].step.logged, &is_new, err);
		any |= is_new;
	}
	return r == 0 && any ? plan(u, err) : r;
}

static int conflict_values(struct undo *u, struct jv *list, struct err *err)
{
	struct arena *arena = u->ctx->arena;
	int r = 0;

	for (size_t i = 0; r == 0 && i < u->count && jv_count(list) < HISTORY_LIMIT_MAX; i++) {
		const struct undo_path *p = &u->paths[i];
		struct past_change since = {.logged = p->step.logged, .shown = p->step.shown, .after = p->step.now};
		struct jv *one = jv_object(arena), *diff = NULL;

		if (!p->conflict)
			continue;
		jv_set_str(arena, one, "path", p->step.shown.s);
		jv_set_int(arena, one, "revision", (int64_t)p->last);
		if (jv_count(list) < CONFLICT_DIFFS) {
			r = revisions_state(workspace_revisions(u->ws), u->ctx, since.logged, p->newest, &since.before,
					    err);
			if (r == 0)
				r = past_diff(u->ws, u->ctx, &since, p->newest, UINT64_MAX, CONFLICT_LINES, &diff, err);
		}
		if (diff && jv_get_str(diff, "diff").len)
			jv_set_str(arena, one, "diff", jv_get_str(diff, "diff"));
		jv_push(arena, list, one);
	}
	return r;
}

static int undo_make(struct undo *u, struct jv *files, struct err *err)
{
	struct arena *arena = u->ctx->arena;
	struct step *steps = ARENA_ARRAY(arena, struct step, u->count + 1);
	int r;

	for (size_t i = 0; i < u->count; i++)
		steps[i] = u->paths[i].step;
	r = u->req.dry_run ? check_kept(steps, u->count, err) : steps_make(u->ws, u->ctx, steps, u->count, err);
	for (size_t i = 0; r == 0 && i < u->count && i < HISTORY_LIMIT_MAX; i++) {
		struct jv *one = jv_object(arena);

		jv_set_str(arena, one, "path", steps[i].shown.s);
		jv_set_str(arena, one, "how", str_of(step_how(&steps[i])));
		jv_set_int(arena, one, "to", (int64_t)steps[i].number);
		jv_push(arena, files, one);
	}
	return r;
}

static int refuse_conflicts(const struct jv *conflicts, struct err *err)
{
	size_t others = jv_count(conflicts) - 1;

	return err_set(err, ERR_CONFLICT,
		       "undo: \"%.*s\"%s changed since by someone else, so nothing was undone; look at the difference, "
		       "and restore single files where the older one is wanted",
		       STR_ARG(jv_get_str(jv_at(conflicts, 0), "path")), others ? " and others were" : " was");
}

int history_undo(struct workspace *ws, struct ctx *ctx, const struct undo_req *req, struct jv **ret, struct err *err)
{
	struct arena *arena = ctx->arena;
	struct undo u = {.ws = ws, .ctx = ctx, .req = *req};
	struct jv *conflicts = jv_array(arena), *files = jv_array(arena);
	bool blocked;
	int r = choose(&u, err);

	if (r == 0)
		r = plan_settled(&u, err);
	if (r == 0)
		r = conflict_values(&u, conflicts, err);
	blocked = jv_count(conflicts) > 0;
	if (r == 0 && !blocked)
		r = undo_make(&u, files, err);
	if (r)
		return r;
	*ret = jv_object(arena);
	jv_set(arena, *ret, "undone", blocked ? jv_array(arena) : u.numbers);
	jv_set(arena, *ret, "files", files);
	jv_set_int(arena, *ret, "total", blocked ? 0 : (int64_t)u.count);
	jv_set(arena, *ret, "conflicts", conflicts);
	jv_set_bool(arena, *ret, "dry_run", req->dry_run);
	return blocked && !req->dry_run ? refuse_conflicts(conflicts, err) : 0;
}
