/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Undo and redo.
 *
 * Undo takes back chosen changes, not time. Walking from the newest change of a path back, everything that was not
 * chosen must have left the path as it found it; else someone's work depends on what is to be undone, and the whole
 * undo is refused with the difference. A three-way merge of the text was rejected here: an undo that quietly rewrites
 * what a person did since is worse than one that says so.
 *
 * Without a choice it is the last call that is still in effect (undo_marks.c), whatever it changed: files of the tools,
 * or what a family keeps in the workspace (a fact, a note, a task). What Stead writes on its own account (sessions,
 * parked results) is nobody's to take back. Redo takes back an undo.
 */
#include "base/hash.h"
#include "base/limits.h"
#include "base/strmap.h"
#include "home/timeline/history_internal.h"
#include "workspace/rights.h"
#include "workspace/workspace_parts.h"

#define CONFLICT_DIFFS 20
#define CONFLICT_LINES 200
/* The changes of a call are next to each other, except for what others did at the same time. The search for more of
   them ends after so many changes by others. */
#define CALL_GAP 4096

/* A log, and which of its changes can be taken back. A directory of the person's own has a log for its files, and the
   workspace one for the rest; otherwise one log has both. */
struct area {
	struct store *log;
	struct wpath top;
	bool has_files, has_home;
};

/* One path of an undo, while the log is walked from the newest change back. */
struct undo_path {
	struct step step;              /* number: before the oldest chosen change; now: as it is */
	uint64_t newest;               /* chosen */
	const struct rev_state *left;  /* by that one */
	uint64_t last;                 /* its newest change, chosen or not */
	const struct rev_state *above; /* what the change that is met next must have left behind */
	uint64_t above_number;         /* after which revision */
	bool gap;                      /* changes that were not chosen were met since */
	bool conflict;
	bool mixed;          /* a conflict between two chosen changes */
	bool rights_changed; /* by a chosen change: permissions or the owner */
	bool removed;        /* by a chosen change, though the file may be there again */
};

struct undo {
	struct workspace *ws;
	struct ctx *ctx;
	struct undo_req req;
	bool is_default;
	struct area areas[2], area; /* area: the one that has the chosen changes */
	size_t area_count;
	struct undo_walk walks[2];
	uint64_t number;         /* the newest chosen change */
	uint64_t oldest;         /* no chosen change is older than this */
	struct strmap *index;    /* of paths; SIZE_MAX: not to be changed */
	struct undo_path *paths; /* heap */
	size_t count, cap;
	struct jv *numbers;
	uint64_t changes;
	bool found;
};

/* --- which changes are meant --- */

static bool is_chosen(const struct undo *u, const struct revision *r)
{
	const struct undo_req *req = &u->req;

	if (r->op == REV_OUTSIDE)
		return false;
	if (req->has_since)
		return r->number > req->since;
	if (req->call_id.len)
		return str_eq(r->actor.call_id, req->call_id);
	if (u->is_default) /* a change with no call of its own: that one change */
		return r->number == u->number;
	if (req->session.len)
		return str_eq(r->actor.session, req->session);
	return str_eq(r->actor.user, req->actor) || str_eq(r->actor.agent, req->actor);
}

static struct str top_of(struct wpath path)
{
	return str_first(path.s, str_find_char(path.s, '/'));
}

static bool is_one_of(struct str name, const char *const *names)
{
	for (; *names; names++)
		if (str_is(name, *names))
			return true;
	return false;
}

/* A path that a family keeps in the workspace. What decides how the workspace works, other file areas and what Stead
   keeps on its own account are left alone. */
static bool is_home_path(struct wpath path)
{
	static const char *const others[] = {"agents", "agent.yaml", "artifacts", "files",
					     "tasks",  "tools.json", "users",     NULL};

	return path.s.len && path.s.ptr[0] != '.' && !is_one_of(top_of(path), others);
}

/* The door by which a path can be changed; false: there is none. */
static bool find_door(const struct undo *u, struct wpath logged, struct step *ret)
{
	const struct area *a = &u->area;
	struct wpath shown;

	if (a->has_files && past_shown(u->ws, logged, &shown) &&
	    store_guard_says(workspace_files(u->ws), shown) == GUARD_FREE) {
		*ret = (struct step){.logged = logged, .shown = shown};
		return true;
	}
	shown = wpath_relative(logged, workspace_part(u->ws));
	*ret = (struct step){.logged = logged, .shown = shown, .is_home = true};
	return a->has_home && is_home_path(shown);
}

/* Files of the tools are anybody's. Elsewhere an agent takes back what it did itself, and of what people own and of
   memory nothing that it cannot prove to be its own. */
static bool may_take_back(const struct undo *u, const struct revision *r, const struct step *s)
{
	enum rights_owner owner = rights_owner_of(s->shown);
	struct str me = u->ctx->actor.agent;

	if (!s->is_home || (u->req.by_person && !me.len))
		return true;
	return str_eq(me, r->actor.agent) && (me.len || (owner != RIGHTS_PEOPLE && owner != RIGHTS_MEMORY));
}

static bool is_ours(const struct undo *u, const struct revision *r)
{
	struct step step;

	return find_door(u, r->path, &step) && may_take_back(u, r, &step);
}

static void find_areas(struct undo *u)
{
	struct store *files = workspace_revisions(u->ws), *home = workspace_shared(u->ws);
	bool all = u->is_default || (u->req.call_id.len && !u->req.has_since), is_one = files == home;

	u->areas[0] = (struct area){.log = files,
				    .top = all && is_one ? workspace_part(u->ws) : workspace_root(u->ws),
				    .has_files = true,
				    .has_home = all && is_one};
	u->areas[1] = (struct area){.log = home, .top = workspace_part(u->ws), .has_home = true};
	u->area_count = all && !is_one ? 2 : 1;
	u->area = u->areas[0];
}

/* --- the last call --- */

/* The newest event of one area. */
struct event {
	enum undo_met met; /* UNDO_PASS: there is none */
	uint64_t number;
	int64_t time_ns;
	struct str call_id;
};

struct event_search {
	struct undo *u;
	struct undo_walk *walk;
	struct event event;
};

static int find_event(void *arg, const struct revision *r, struct err *err)
{
	struct event_search *s = arg;
	enum undo_met met;

	(void)err;
	met = r->op == REV_OUTSIDE || !is_ours(s->u, r) ? UNDO_PASS : undo_walk_meet(s->walk, r);
	if (met == UNDO_PASS)
		return 0;
	s->event = (struct event){met, r->number, r->time_ns, arena_str(s->u->ctx->arena, r->actor.call_id)};
	return PAST_ENOUGH;
}

static int nothing_left(const struct undo *u, bool any, struct err *err)
{
	if (u->req.redo)
		return err_set(
			err, ERR_NOT_FOUND, "%s",
			any ? "nothing to redo: every undone change has been redone, or something has changed since "
			      "the undo"
			    : "nothing to redo: nothing was undone");
	return err_set(err, ERR_NOT_FOUND, "there is nothing left to undo");
}

/* The newest call that is in effect, or, to redo, the undo that nothing was changed after. */
static int choose_last(struct undo *u, struct err *err)
{
	struct event last = {0};
	struct area area = u->area;

	for (size_t i = 0; i < u->area_count; i++) {
		struct event_search s = {.u = u, .walk = &u->walks[i]};
		struct rev_query q = {.path = u->areas[i].top, .newest_first = true};
		int r;

		u->area = u->areas[i];
		r = past_each_in(u->area.log, u->ctx, q, find_event, &s, err);
		if (r)
			return r;
		if (s.event.met != UNDO_PASS && (last.met == UNDO_PASS || s.event.time_ns > last.time_ns)) {
			last = s.event;
			area = u->area;
		}
	}
	u->area = area;
	if (last.met == UNDO_PASS || (u->req.redo && last.met == UNDO_CHANGE))
		return nothing_left(u, last.met == UNDO_CHANGE, err);
	u->req.call_id = last.call_id;
	u->number = u->oldest = last.number;
	return 0;
}

static int note_oldest(void *arg, const struct revision *r, struct err *err)
{
	struct undo *u = arg;

	(void)err;
	u->oldest = r->number;
	return 0;
}

/* Finds the last call and its oldest change, from the newest one back. */
static int choose_default(struct undo *u, struct err *err)
{
	struct rev_query q = {.newest_first = true};
	uint64_t before;
	int r = choose_last(u, err);

	q.path = u->area.top;
	q.call_id = u->req.call_id;
	do {
		if (r || !q.call_id.len || u->oldest == 1)
			return r;
		before = u->oldest;
		q.until = before - 1;
		q.since = q.until > CALL_GAP ? q.until - CALL_GAP : 0;
		r = past_each_in(u->area.log, u->ctx, q, note_oldest, u, err);
		if (r == -ERR_NOT_FOUND && q.since) { /* history begins later */
			q.since = 0;
			r = past_each_in(u->area.log, u->ctx, q, note_oldest, u, err);
		}
		if (r == -ERR_NOT_FOUND) /* with this very change */
			r = 0;
	} while (r == 0 && u->oldest < before);
	return r;
}

/* --- a choice --- */

static int find_chosen(void *arg, const struct revision *r, struct err *err)
{
	struct undo *u = arg;

	(void)err;
	if (!is_chosen(u, r) || !is_ours(u, r))
		return 0;
	if (!u->found)
		u->number = r->number;
	u->found = true;
	u->oldest = u->req.has_since ? u->req.since + 1 : r->number;
	return u->req.has_since ? PAST_ENOUGH : 0;
}

static int nothing_chosen(const struct undo *u, struct err *err)
{
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

static int choose(struct undo *u, struct err *err)
{
	const struct undo_req *req = &u->req;
	int r = 0;

	for (size_t i = 0; r == 0 && !u->found && i < u->area_count; i++) {
		struct rev_query q = {.path = u->areas[i].top, .newest_first = true};

		u->area = u->areas[i];
		q.since = req->has_since ? req->since : 0;
		q.call_id = req->has_since ? STR_NONE : req->call_id;
		q.session = req->has_since || req->call_id.len ? STR_NONE : req->session;
		r = past_each_in(u->area.log, u->ctx, q, find_chosen, u, err);
	}
	return r || u->found ? r : nothing_chosen(u, err);
}

/* --- the plan --- */

static struct undo_path *path_of(struct undo *u, const struct revision *r)
{
	size_t *at = strmap_find(u->index, r->path.s);
	struct undo_path *p;
	struct wpath logged;
	struct step step;

	if (at)
		return *at == SIZE_MAX ? NULL : &u->paths[*at];
	logged.s = arena_str(u->ctx->arena, r->path.s);
	at = strmap_put(u->index, logged.s, NULL);
	if (!find_door(u, logged, &step)) {
		*at = SIZE_MAX;
		return NULL;
	}
	if (u->count == u->cap) {
		u->cap = u->cap ? u->cap * 2 : 16;
		u->paths = xrealloc(u->paths, u->cap * sizeof(*u->paths));
	}
	*at = u->count++;
	p = &u->paths[*at];
	*p = (struct undo_path){.step = step, .last = r->number, .above_number = r->number};
	p->step.now = p->above = past_keep(u->ctx, &r->after);
	return p;
}

static int hash_push(void *arg, const void *bytes, size_t len, struct err *err)
{
	(void)err;
	hash_stream_add(arg, str_n(bytes, len));
	return 0;
}

static int hash_after(struct undo *u, struct wpath path, uint64_t number, uint64_t ret_hash[2], struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct hash_stream *hash = hash_stream_new();
	struct sink sink = {.push = hash_push, .arg = hash};
	struct ctx ctx = *u->ctx;
	struct rev_state ignored;
	int r;

	ctx.arena = arena;
	r = revisions_read(u->area.log, &ctx, path, number, STORE_WHOLE, &sink, &ignored, err);
	hash_stream_end(hash, ret_hash);
	return r;
}

/* A state of a path, which it had after this revision. */
struct past_state {
	const struct rev_state *state;
	uint64_t number;
};

/* Both hashes are known, of the same kind, and not of the same content. */
static bool hashes_differ(const struct rev_hash *a, const struct rev_hash *b)
{
	return rev_hash_is_set(a) && rev_hash_is_set(b) && !a->w[3] == !b->w[3] &&
	       (a->w[0] != b->w[0] || a->w[1] != b->w[1]);
}

/* Whether a path had the same bytes twice. The records alone need not say so: the hash of what an append left is not in
   the log. */
static int is_same(struct undo *u, struct wpath path, struct past_state a, struct past_state b, bool *ret,
		   struct err *err)
{
	uint64_t hash_a[2], hash_b[2];
	int r;

	*ret = past_same(a.state, b.state);
	if (*ret || !a.state->exists || !b.state->exists || a.state->size != b.state->size ||
	    hashes_differ(&a.state->hash, &b.state->hash))
		return 0;
	r = hash_after(u, path, a.number, hash_a, err);
	if (r == 0)
		r = hash_after(u, path, b.number, hash_b, err);
	*ret = r == 0 && hash_a[0] == hash_b[0] && hash_a[1] == hash_b[1];
	return r == -ERR_NOT_FOUND ? 0 : r; /* no longer kept: not known to be the same */
}

static int plan_change(void *arg, const struct revision *r, struct err *err)
{
	struct undo *u = arg;
	struct undo_path *p = path_of(u, r);
	struct past_state left = {&r->after, r->number};
	bool same = true;
	int bad = 0;

	if (!p)
		return 0;
	if (!is_chosen(u, r) || !may_take_back(u, r, &p->step)) {
		p->gap = true;
		return 0;
	}
	if (p->gap)
		bad = is_same(u, r->path, left, (struct past_state){p->above, p->above_number}, &same, err);
	p->conflict |= !same;
	p->mixed |= !same && p->newest;
	p->gap = false;
	if (!p->newest) {
		p->newest = r->number;
		p->left = r->number == p->last ? p->step.now : past_keep(u->ctx, &r->after);
	}
	p->rights_changed |= past_rights_differ(&r->before, &r->after);
	p->removed |= !r->after.exists;
	p->step.number = p->above_number = r->number - 1;
	p->step.then = p->above = past_keep(u->ctx, &r->before);
	u->changes++;
	if (u->changes <= HISTORY_LIMIT_MAX)
		jv_push(u->ctx->arena, u->numbers, jv_int(u->ctx->arena, (int64_t)r->number));
	return bad;
}

/* A path that the chosen changes left as they found it has nothing to take back, whatever was done to it since: also by
   the undo of an older call, after a call like that was passed over. */
static int leave_if_undone(struct undo *u, struct undo_path *p, struct err *err)
{
	struct past_state then = {p->step.then, p->step.number}, left = {p->left, p->newest};
	bool same = false;
	int r = 0;

	if (!p->mixed &&
	    !(p->rights_changed && (p->step.then->mode != p->left->mode || past_rights_differ(p->step.then, p->left))))
		r = is_same(u, p->step.logged, then, left, &same, err);
	if (!same)
		return r;
	p->step.then = p->step.now;
	p->step.number = p->last;
	p->conflict = p->rights_changed = false;
	return 0;
}

/* Leaves only the paths that have a chosen change. A path that is as it was before all of them is not a conflict. */
static int keep_chosen(struct undo *u, struct err *err)
{
	size_t n = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < u->count; i++) {
		struct undo_path *p = &u->paths[i];

		if (!p->newest)
			continue;
		r = leave_if_undone(u, p, err);
		p->conflict = p->conflict && !past_same(p->step.then, p->step.now);
		p->step.with_rights = p->rights_changed || p->removed || !p->step.now->exists;
		u->paths[n++] = *p;
	}
	u->count = n;
	return r;
}

static int plan(struct undo *u, struct err *err)
{
	struct rev_query q = {.since = u->oldest - 1, .path = u->area.top, .newest_first = true};
	int r;

	u->index = strmap_new(u->ctx->arena);
	u->numbers = jv_array(u->ctx->arena);
	u->count = 0;
	u->changes = 0;
	r = past_each_in(u->area.log, u->ctx, q, plan_change, u, err);
	return r ? r : keep_chosen(u, err);
}

/* Plans, checks whether another program has changed one of the files, and if so plans again with that change. */
static int plan_settled(struct undo *u, struct err *err)
{
	int r = plan(u, err);
	struct steps steps = {u->paths, sizeof(*u->paths), u->count, NULL};
	bool is_new;

	if (r == 0)
		r = steps_settle(u->ws, u->ctx, &steps, &is_new, err);
	return r == 0 && is_new ? plan(u, err) : r;
}

static bool has_effect(const struct undo *u)
{
	for (size_t i = 0; i < u->count; i++)
		if (u->paths[i].conflict || step_is_needed(&u->paths[i].step))
			return true;
	return false;
}

/* Chooses and plans. A last call that left nothing to take back is passed over. */
static int prepare(struct undo *u, struct err *err)
{
	uint64_t *passed[2] = {0};
	size_t count[2] = {0}, cap[2] = {0};
	int r;

	if (!u->is_default) {
		r = choose(u, err);
		return r ? r : plan_settled(u, err);
	}
	for (;;) {
		size_t at;

		for (size_t i = 0; i < u->area_count; i++) {
			u->walks[i] = undo_walk_new(u->ctx->arena, u->req.redo);
			for (size_t k = 0; k < count[i]; k++)
				undo_walk_skip(&u->walks[i], passed[i][k]);
		}
		r = choose_default(u, err);
		if (r == 0)
			r = plan_settled(u, err);
		if (r || has_effect(u))
			return r;
		at = u->area.log != u->areas[0].log;
		ARENA_ROOM(u->ctx->arena, passed[at], count[at], cap[at]);
		passed[at][count[at]++] = u->number;
	}
}

/* --- the answer --- */

static int conflict_values(struct undo *u, struct jv *list, struct err *err)
{
	struct arena *arena = u->ctx->arena;
	int r = 0;

	for (size_t i = 0; r == 0 && i < u->count && jv_count(list) < HISTORY_LIMIT_MAX; i++) {
		const struct undo_path *p = &u->paths[i];
		struct past_change since = {.logged = p->step.logged, .shown = p->step.shown, .after = *p->step.now};
		struct jv *one = jv_object(arena), *diff = NULL;

		if (!p->conflict)
			continue;
		jv_set_str(arena, one, "path", p->step.shown.s);
		jv_set_int(arena, one, "revision", (int64_t)p->last);
		/* what others wrote into a family's file is shown by the family's own tools only */
		if (jv_count(list) < CONFLICT_DIFFS && !p->step.is_home) {
			r = revisions_state(u->area.log, u->ctx, since.logged, p->newest, &since.before, err);
			if (r == 0)
				r = past_diff(u->ws, u->ctx, &since, p->newest, UINT64_MAX, CONFLICT_LINES, &diff, err);
		}
		if (diff && jv_get_str(diff, "diff").len)
			jv_set_str(arena, one, "diff", jv_get_str(diff, "diff"));
		jv_push(arena, list, one);
	}
	return r;
}

static struct undo_mark mark_of(const struct undo *u)
{
	const struct undo_req *req = &u->req;
	struct arena *arena = u->ctx->arena;

	if (req->has_since)
		return (struct undo_mark){.what = UNDO_SINCE, .number = req->since};
	if (req->session.len && !req->call_id.len)
		return (struct undo_mark){.what = UNDO_SESSION, .name = workspace_encode_name(arena, req->session)};
	if (req->actor.len && !req->call_id.len)
		return (struct undo_mark){.what = UNDO_ACTOR, .name = workspace_encode_name(arena, req->actor)};
	return (struct undo_mark){.what = UNDO_NUMBER, .number = u->number, .is_redo = req->redo};
}

static int undo_make(struct undo *u, struct jv *files, struct jv *counts, struct err *err)
{
	static const char *const hows[] = {"restored", "removed", "unchanged"};
	struct steps steps = {u->paths, sizeof(*u->paths), u->count, u->req.redo ? "undo" : "redo"};
	struct arena *arena = u->ctx->arena;
	struct ctx ctx = *u->ctx;
	struct undo_mark mark = mark_of(u);
	int64_t of[COUNT(hows)] = {0};
	int r;

	ctx.actor.call_id =
		undo_mark_call(arena, &mark, ctx.actor.call_id.len ? ctx.actor.call_id : call_id_new(arena));
	r = u->req.dry_run ? steps_check_kept(u->ws, &ctx, &steps, err) : steps_make(u->ws, &ctx, &steps, err);
	for (size_t i = 0; r == 0 && i < u->count; i++) {
		const struct step *s = &u->paths[i].step;
		const char *how = step_how(s);
		struct jv *one;

		for (size_t k = 0; k < COUNT(hows); k++)
			of[k] += strcmp(how, hows[k]) == 0;
		if (i >= HISTORY_LIMIT_MAX)
			continue;
		one = jv_object(arena);
		jv_set_str(arena, one, "path", s->shown.s);
		jv_set_str(arena, one, "how", str_of(how));
		jv_set_int(arena, one, "to", (int64_t)s->number);
		jv_push(arena, files, one);
	}
	for (size_t k = 0; k < COUNT(hows); k++)
		jv_set_int(arena, counts, hows[k], of[k]);
	return r;
}

static int refuse_conflicts(const struct undo *u, const struct jv *conflicts, struct err *err)
{
	size_t others = jv_count(conflicts) - 1;

	return err_set(err, ERR_CONFLICT,
		       "%s: \"%.*s\"%s changed since by someone else, so nothing was %s; look at the difference, and "
		       "restore single files where you want the older one",
		       u->req.redo ? "redo" : "undo", STR_ARG(jv_get_str(jv_at(conflicts, 0), "path")),
		       others ? " and others were" : " was", u->req.redo ? "redone" : "undone");
}

static int undo(struct undo *u, struct jv **ret, struct err *err)
{
	struct arena *arena = u->ctx->arena;
	struct jv *conflicts = jv_array(arena), *files = jv_array(arena), *counts = jv_object(arena);
	bool blocked;
	int r = prepare(u, err);

	if (r == 0)
		r = conflict_values(u, conflicts, err);
	blocked = jv_count(conflicts) > 0;
	if (r == 0 && !blocked)
		r = undo_make(u, files, counts, err);
	if (r)
		return r;
	*ret = jv_object(arena);
	jv_set(arena, *ret, "undone", blocked ? jv_array(arena) : u->numbers);
	jv_set_int(arena, *ret, "changes", blocked ? 0 : (int64_t)u->changes);
	jv_set(arena, *ret, "files", files);
	jv_set(arena, *ret, "counts", counts);
	jv_set_int(arena, *ret, "total", blocked ? 0 : (int64_t)u->count);
	jv_set(arena, *ret, "conflicts", conflicts);
	jv_set_bool(arena, *ret, "redo", u->req.redo);
	jv_set_bool(arena, *ret, "dry_run", u->req.dry_run);
	return blocked && !u->req.dry_run ? refuse_conflicts(u, conflicts, err) : 0;
}

int history_undo(struct workspace *ws, struct ctx *ctx, const struct undo_req *req, struct jv **ret, struct err *err)
{
	struct undo u = {.ws = ws, .ctx = ctx, .req = *req};
	int r;

	u.is_default = req->redo || (!req->has_since && !req->call_id.len && !req->session.len && !req->actor.len);
	find_areas(&u);
	r = undo(&u, ret, err);
	free(u.paths);
	return r;
}
