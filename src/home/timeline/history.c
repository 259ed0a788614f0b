/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looking at the past: names of revisions, the list of changes, the feed, checkpoints.
 *
 * The feed promises no gap and no repeat. A record is in the log before its change is visible, so the feed completes
 * the newest changes before it reports them: a client that then reads the file sees the reported change.
 */
#include "base/clock.h"
#include "base/limits.h"
#include "home/timeline/history_internal.h"
#include "home/timeline/outside.h"

#define FEED_POLL_MS 200

/* --- as values --- */

static void set_copy(struct arena *arena, struct jv *v, const char *key, struct str text)
{
	if (text.len)
		jv_set_str(arena, v, key, arena_str(arena, text));
}

static struct jv *actor_value(struct arena *arena, const struct actor *actor)
{
	struct jv *v = jv_object(arena);

	set_copy(arena, v, "user", actor->user);
	set_copy(arena, v, "agent", actor->agent);
	set_copy(arena, v, "session", actor->session);
	set_copy(arena, v, "call", actor->call_id);
	return v;
}

static struct jv *state_value(struct arena *arena, const struct rev_state *state)
{
	struct jv *v;

	if (!state->exists)
		return jv_null(arena);
	v = jv_object(arena);
	jv_set_int(arena, v, "size", (int64_t)state->size);
	set_copy(arena, v, "version", state->version);
	return v;
}

static struct jv *revision_value(struct workspace *ws, struct arena *arena, const struct revision *r, struct wpath path)
{
	struct jv *v = jv_object(arena);
	struct wpath other;

	jv_set_int(arena, v, "revision", (int64_t)r->number);
	jv_set_str(arena, v, "path", arena_str(arena, path.s));
	jv_set_str(arena, v, "operation", str_of(rev_op_name(r->op)));
	jv_set(arena, v, "actor", actor_value(arena, &r->actor));
	jv_set_str(arena, v, "time", workspace_time(ws, arena, r->time_ns));
	jv_set(arena, v, "before", state_value(arena, &r->before));
	jv_set(arena, v, "after", state_value(arena, &r->after));
	if (r->other.len && past_shown(ws, (struct wpath){r->other}, &other))
		set_copy(arena, v, r->after.exists ? "from" : "to", other.s);
	return v;
}

/* --- lists --- */

struct listing {
	struct workspace *ws;
	struct ctx *ctx;
	struct jv *list;
	size_t limit;
	uint64_t last; /* number that was looked at last */
	bool more;
	bool settle, unsettled; /* the feed: a change was met whose end is not known */
};

static int list_one(void *arg, const struct revision *r, struct err *err)
{
	struct listing *l = arg;
	struct wpath shown;

	(void)err;
	if (jv_count(l->list) >= l->limit) {
		l->more = true;
		return PAST_ENOUGH;
	}
	l->last = r->number;
	if (!past_shown(l->ws, r->path, &shown))
		return 0;
	if (l->settle && !r->done) {
		l->unsettled = true;
		return revisions_settle(workspace_revisions(l->ws), l->ctx, r->path, NULL, err);
	}
	jv_push(l->ctx->arena, l->list, revision_value(l->ws, l->ctx->arena, r, shown));
	return 0;
}

static size_t bounded(size_t limit)
{
	if (limit == 0)
		return HISTORY_LIMIT_DEFAULT;
	return limit < HISTORY_LIMIT_MAX ? limit : HISTORY_LIMIT_MAX;
}

/* One file that is there is looked at itself. In a store elsewhere nothing else is: a look costs a request for each
   file, and other programs rarely write there. On this machine the watcher of a server is asked to catch up; where
   there is none, as in a command, every known file is looked at. */
int history_notice(struct workspace *ws, struct ctx *ctx, struct wpath path, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct store *rev = workspace_revisions(ws);
	struct wpath logged = past_logged(ws, ctx, path);
	struct ctx own = *ctx;
	struct store_stat stat;
	struct err ignored;
	uint64_t count;
	int r = past_visible(ws, path, err);

	own.arena = arena;
	if (r == 0 && !wpath_is_root(path))
		r = revisions_settle(rev, &own, logged, NULL, err);
	if (r || !store_is_local(rev))
		return r;
	if (!wpath_is_root(path) && store_stat(rev, &own, logged, &stat, &ignored) == 0 && stat.kind == STORE_FILE)
		return 0;
	return outside_catch_up(ws, ctx) ? 0 : revisions_notice(rev, &own, logged, &count, err);
}

int history_list(struct workspace *ws, struct ctx *ctx, const struct history_req *req, struct jv **ret, struct err *err)
{
	struct rev_query q = {.since = req->since,
			      .until = req->until,
			      .path = past_logged(ws, ctx, req->path),
			      .user = req->user,
			      .agent = req->agent,
			      .session = req->session,
			      .call_id = req->call_id,
			      .newest_first = !req->oldest_first};
	struct listing l = {.ws = ws, .ctx = ctx, .list = jv_array(ctx->arena), .limit = bounded(req->limit)};
	uint64_t head = 0;
	int r = past_visible(ws, req->path, err);

	q.limit = l.limit + 1; /* the one after them says that there are more */
	if (r == 0 && !req->as_known)
		r = history_notice(ws, ctx, req->path, err);
	if (r == 0)
		r = revisions_head(workspace_revisions(ws), ctx, &head, err);
	if (r == 0)
		r = past_each(ws, ctx, q, list_one, &l, err);
	if (r == -ERR_CORRUPT && jv_count(l.list) > 0) {
		l.more = true; /* the next page begins with the damage, and names it */
		r = 0;
	}
	if (r)
		return r;
	*ret = jv_object(ctx->arena);
	jv_set_int(ctx->arena, *ret, "head", (int64_t)head);
	jv_set(ctx->arena, *ret, "revisions", l.list);
	jv_set_bool(ctx->arena, *ret, "more", l.more);
	if (l.more)
		jv_set_int(ctx->arena, *ret, "next", (int64_t)(req->oldest_first ? l.last : l.last - 1));
	return 0;
}

/* --- the feed --- */

/* One page after `since`. The first pass may find changes that are still in progress; it completes them, and the next
   pass reports those that took effect. */
static int feed_page(struct listing *l, uint64_t since, struct wpath logged, uint64_t head, struct err *err)
{
	struct rev_query q = {.since = since, .until = head, .path = logged};
	int r = 0;

	for (int pass = 0; r == 0 && (pass == 0 || (pass == 1 && l->unsettled)); pass++) {
		l->settle = pass == 0;
		l->list = jv_array(l->ctx->arena);
		l->last = since;
		l->more = false;
		r = past_each(l->ws, l->ctx, q, list_one, l, err);
	}
	return r;
}

int history_changes(struct workspace *ws, struct ctx *ctx, uint64_t since, struct wpath path, unsigned wait_ms,
		    size_t limit, struct jv **ret, struct err *err)
{
	struct store *rev = workspace_revisions(ws);
	struct wpath logged = past_logged(ws, ctx, path);
	int64_t deadline = clock_monotonic_ns() + (int64_t)wait_ms * 1000000;
	struct listing l = {.ws = ws, .ctx = ctx, .list = jv_array(ctx->arena), .limit = bounded(limit)};
	struct ctx waiting = *ctx;
	uint64_t next = since;
	int r = past_visible(ws, path, err);

	if (!waiting.deadline_ns || deadline < waiting.deadline_ns)
		waiting.deadline_ns = deadline;
	while (r == 0) {
		uint64_t head;

		r = revisions_head(rev, ctx, &head, err);
		if (r == 0 && head > next) {
			l.unsettled = false;
			r = feed_page(&l, next, logged, head, err);
			next = l.more ? l.last : head; /* nothing between was for the caller */
		}
		if (r)
			return r;
		if (jv_count(l.list) || l.more || clock_monotonic_ns() >= deadline)
			break;
		r = revisions_wait(rev, &waiting, next, FEED_POLL_MS, err);
	}
	if (r == -ERR_TIMEOUT) /* the end of wait_ms is an answer, the deadline of the call is not */
		r = ctx_check(ctx, err);
	if (r)
		return r;
	*ret = jv_object(ctx->arena);
	jv_set(ctx->arena, *ret, "changes", l.list);
	jv_set_int(ctx->arena, *ret, "next", (int64_t)next);
	jv_set_bool(ctx->arena, *ret, "more", l.more);
	return 0;
}

/* --- checkpoints --- */

int history_checkpoint(struct workspace *ws, struct ctx *ctx, struct str name, struct jv **ret, struct err *err)
{
	struct str space = past_namespace(ws, ctx);
	struct str stored = arena_printf(ctx->arena, "%.*s%.*s", STR_ARG(space), STR_ARG(name));
	uint64_t head;
	int r;

	if (str_is(name, "head") || str_find(name, STR(".."), 0) != SIZE_MAX || str_find_char(name, '@') < name.len)
		return err_set(err, ERR_INVALID,
			       "\"%.*s\" cannot name a checkpoint; use a name without \"@\" and \"..\", and other than "
			       "\"head\"",
			       STR_ARG(utf8_first(name, 80)));
	/* other programs' changes are not looked for: a checkpoint must cost the same whatever there is */
	r = revisions_head(workspace_revisions(ws), ctx, &head, err);
	if (r == 0)
		r = revisions_checkpoint(workspace_revisions(ws), ctx, stored, head, err);
	if (r)
		return r;
	*ret = jv_object(ctx->arena);
	jv_set_str(ctx->arena, *ret, "checkpoint", name);
	jv_set_int(ctx->arena, *ret, "revision", (int64_t)head);
	return 0;
}

int history_checkpoints(struct workspace *ws, struct ctx *ctx, struct jv **ret, struct err *err)
{
	struct rev_checkpoint *marks;
	size_t count;
	int r = past_checkpoints(ws, ctx, &marks, &count, err);

	if (r)
		return r;
	*ret = jv_array(ctx->arena);
	for (size_t i = 0; i < count; i++) {
		struct jv *v = jv_object(ctx->arena);

		jv_set_str(ctx->arena, v, "checkpoint", marks[i].name);
		jv_set_int(ctx->arena, v, "revision", (int64_t)marks[i].number);
		jv_set_str(ctx->arena, v, "time", workspace_time(ws, ctx->arena, marks[i].time_ns));
		jv_push(ctx->arena, *ret, v);
	}
	return 0;
}
