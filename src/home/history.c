/* SPDX-License-Identifier: Apache-2.0 */
/*
 * History, restore, undo and the feed, over the revisions of a workspace.
 *
 * Everything that changes goes through workspace_files(), as a tool's own call would: so the guard, the quota and the
 * listeners see it, it gets a revision of its own, and it can be undone in turn. Everything that looks asks the guard
 * first, so that no door to the past shows what the door to the present hides.
 */
#include "home/history.h"

#include <limits.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/strmap.h"
#include "store/revisions.h"
#include "text/diff.h"

#define NS_PER_MS INT64_C(1000000)

/* --- paths: the tools' and the log's --- */

static struct wpath to_log(struct workspace *ws, struct ctx *ctx, struct wpath path)
{
	struct wpath joined = WPATH_ROOT;
	struct err ignored;

	wpath_join(ctx->arena, workspace_root(ws), path, &joined, &ignored);
	return joined;
}

/* False for what lies outside of the tool root or is hidden from tools. */
static bool to_tool(struct workspace *ws, struct ctx *ctx, struct wpath logged, struct wpath *ret)
{
	struct err err;

	if (!wpath_within(logged, workspace_root(ws)))
		return false;
	*ret = wpath_relative(logged, workspace_root(ws));
	return store_stat(workspace_files(ws), ctx, *ret, NULL, &err) != -ERR_DENIED;
}

static int visible(struct workspace *ws, struct ctx *ctx, struct wpath path, struct err *err)
{
	return store_stat(workspace_files(ws), ctx, path, NULL, err) == -ERR_DENIED ? -ERR_DENIED : 0;
}

/* --- names of revisions --- */

int history_rev(struct workspace *ws, struct ctx *ctx, struct str text, uint64_t *ret_number, struct err *err)
{
	struct store *rev = workspace_revisions(ws);
	struct rev_checkpoint *marks;
	const char **names;
	const char *near;
	size_t count;
	int64_t number;
	uint64_t head;
	int r = revisions_head(rev, ctx, &head, err);

	if (r == 0)
		r = revisions_checkpoints(rev, ctx, &marks, &count, err);
	if (r)
		return r;
	if (str_to_i64(text, &number) && number >= 0 && (uint64_t)number <= head) {
		*ret_number = (uint64_t)number;
		return 0;
	}
	if (str_is(text, "head")) {
		*ret_number = head;
		return 0;
	}
	names = ARENA_ARRAY(ctx->arena, const char *, count);
	for (size_t i = 0; i < count; i++) {
		if (str_eq(marks[i].name, text)) {
			*ret_number = marks[i].number;
			return 0;
		}
		names[i] = arena_cstr(ctx->arena, marks[i].name);
	}
	near = str_nearest(text, names, count);
	return err_set(err, ERR_NOT_FOUND, "there is no revision \"%.*s\"; the newest is %llu%s%s%s",
		       STR_ARG(utf8_first(text, 80)), (unsigned long long)head, near ? "; did you mean \"" : "",
		       near ? near : "", near ? "\"?" : "");
}

int history_path_at(struct workspace *ws, struct ctx *ctx, struct str text, struct wpath *ret_path,
		    uint64_t *ret_number, bool *ret_has_rev, struct err *err)
{
	size_t at = str_rfind_char(text, '@');
	struct err ignored;

	*ret_has_rev = at < text.len && at > 0 && at + 1 < text.len &&
		       history_rev(ws, ctx, str_from(text, at + 1), ret_number, &ignored) == 0;
	return wpath_parse_lenient(ctx->arena, *ret_has_rev ? str_first(text, at) : text, ret_path, err);
}

/* --- as values --- */

static struct jv *actor_value(struct arena *arena, const struct actor *actor)
{
	struct jv *v = jv_object(arena);

	if (actor->user.len)
		jv_set_str(arena, v, "user", actor->user);
	if (actor->agent.len)
		jv_set_str(arena, v, "agent", actor->agent);
	if (actor->session.len)
		jv_set_str(arena, v, "session", actor->session);
	if (actor->call_id.len)
		jv_set_str(arena, v, "call", actor->call_id);
	return v;
}

static struct jv *state_value(struct arena *arena, const struct rev_state *state)
{
	struct jv *v;

	if (!state->exists)
		return jv_null(arena);
	v = jv_object(arena);
	jv_set_int(arena, v, "size", (int64_t)state->size);
	if (state->version.len)
		jv_set_str(arena, v, "version", state->version);
	return v;
}

static struct jv *revision_value(struct workspace *ws, struct ctx *ctx, const struct revision *r, struct wpath path)
{
	struct arena *arena = ctx->arena;
	struct jv *v = jv_object(arena);
	struct wpath other;

	jv_set_int(arena, v, "revision", (int64_t)r->number);
	jv_set_str(arena, v, "path", path.s);
	jv_set_str(arena, v, "operation", str_of(rev_op_name(r->op)));
	jv_set(arena, v, "actor", actor_value(arena, &r->actor));
	jv_set_str(arena, v, "time", clock_format_utc(arena, r->time_ns));
	jv_set(arena, v, "before", state_value(arena, &r->before));
	jv_set(arena, v, "after", state_value(arena, &r->after));
	if (r->other.len && to_tool(ws, ctx, (struct wpath){r->other}, &other))
		jv_set_str(arena, v, r->after.exists ? "from" : "to", other.s);
	return v;
}

/* Revisions that the query finds and tools may see, as values, up to `limit`. */
static int query_values(struct workspace *ws, struct ctx *ctx, struct rev_query *q, size_t limit, struct jv *list,
			bool *ret_more, uint64_t *ret_last, struct err *err)
{
	struct revision *found;
	size_t count;
	bool more;
	int r;

	q->limit = limit;
	r = revisions_query(workspace_revisions(ws), ctx, q, &found, &count, &more, err);
	if (r)
		return r;
	for (size_t i = 0; i < count; i++) {
		struct wpath path;

		*ret_last = found[i].number;
		if (to_tool(ws, ctx, found[i].path, &path))
			jv_push(ctx->arena, list, revision_value(ws, ctx, &found[i], path));
	}
	*ret_more = more;
	return 0;
}

int history_list(struct workspace *ws, struct ctx *ctx, const struct history_req *req, struct jv **ret, struct err *err)
{
	struct rev_query q = {.since = req->since,
			      .until = req->until,
			      .path = to_log(ws, ctx, req->path),
			      .user = req->user,
			      .agent = req->agent,
			      .session = req->session,
			      .call_id = req->call_id,
			      .newest_first = !req->oldest_first};
	struct jv *list = jv_array(ctx->arena);
	uint64_t head, last = 0, noticed;
	bool more;
	int r = visible(ws, ctx, req->path, err);

	if (r == 0)
		r = revisions_notice(workspace_revisions(ws), ctx, q.path, &noticed, err);
	if (r == 0)
		r = revisions_head(workspace_revisions(ws), ctx, &head, err);
	if (r == 0)
		r = query_values(ws, ctx, &q, req->limit ? req->limit : HISTORY_LIMIT_DEFAULT, list, &more, &last, err);
	if (r)
		return r;
	*ret = jv_object(ctx->arena);
	jv_set_int(ctx->arena, *ret, "head", (int64_t)head);
	jv_set(ctx->arena, *ret, "revisions", list);
	jv_set_bool(ctx->arena, *ret, "more", more);
	return 0;
}

int history_changes(struct workspace *ws, struct ctx *ctx, uint64_t since, struct wpath path, unsigned wait_ms,
		    size_t limit, struct jv **ret, struct err *err)
{
	struct store *rev = workspace_revisions(ws);
	struct rev_query q = {.since = since, .path = to_log(ws, ctx, path)};
	int64_t deadline = clock_monotonic_ns() + (int64_t)wait_ms * NS_PER_MS;
	struct ctx waiting = *ctx;
	struct jv *list = jv_array(ctx->arena);
	uint64_t next = since;
	bool more = false;
	int r = visible(ws, ctx, path, err);

	if (!waiting.deadline_ns || deadline < waiting.deadline_ns)
		waiting.deadline_ns = deadline;
	while (r == 0) {
		uint64_t last = 0, head;

		r = revisions_head(rev, ctx, &head, err);
		q.since = next;
		q.until = head;
		if (r == 0 && head > next)
			r = query_values(ws, ctx, &q, limit ? limit : HISTORY_LIMIT_DEFAULT, list, &more, &last, err);
		if (r)
			return r;
		if (head > next)
			next = more ? last : head; /* nothing between was for the caller */
		if (jv_count(list) || more || clock_monotonic_ns() >= deadline)
			break;
		r = revisions_wait(rev, &waiting, next, 200, err);
		if (r == -ERR_TIMEOUT && (!ctx->deadline_ns || clock_monotonic_ns() < ctx->deadline_ns))
			break; /* the wait is over, not the call */
	}
	if (r && r != -ERR_TIMEOUT)
		return r;
	*ret = jv_object(ctx->arena);
	jv_set(ctx->arena, *ret, "changes", list);
	jv_set_int(ctx->arena, *ret, "next", (int64_t)next);
	jv_set_bool(ctx->arena, *ret, "more", more);
	return 0;
}

int history_checkpoint(struct workspace *ws, struct ctx *ctx, struct str name, struct jv **ret, struct err *err)
{
	uint64_t head;
	int r = revisions_head(workspace_revisions(ws), ctx, &head, err);

	if (r == 0)
		r = revisions_checkpoint(workspace_revisions(ws), ctx, name, head, err);
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
	int r = revisions_checkpoints(workspace_revisions(ws), ctx, &marks, &count, err);

	if (r)
		return r;
	*ret = jv_array(ctx->arena);
	for (size_t i = 0; i < count; i++) {
		struct jv *v = jv_object(ctx->arena);

		jv_set_str(ctx->arena, v, "checkpoint", marks[i].name);
		jv_set_int(ctx->arena, v, "revision", (int64_t)marks[i].number);
		jv_set_str(ctx->arena, v, "time", clock_format_utc(ctx->arena, marks[i].time_ns));
		jv_push(ctx->arena, *ret, v);
	}
	return 0;
}

/* --- bytes of the past --- */

struct collect {
	struct buf bytes;
};

static int collect_push(void *arg, const void *bytes, size_t len, struct err *err)
{
	struct collect *c = arg;

	buf_add(&c->bytes, str_n(bytes, len));
	if (c->bytes.overflow)
		return err_set(err, ERR_TOO_LARGE, "the file is larger than %zu bytes", c->bytes.max);
	return 0;
}

static int read_logged(struct workspace *ws, struct ctx *ctx, struct wpath logged, uint64_t number, size_t max,
		       struct str *ret_bytes, struct err *err)
{
	struct collect c;
	struct sink sink = {.push = collect_push, .arg = &c};
	struct rev_state state;
	int r;

	buf_init(&c.bytes, ctx->arena, max);
	r = revisions_read(workspace_revisions(ws), ctx, logged, number, STORE_WHOLE, &sink, &state, err);
	*ret_bytes = c.bytes.ptr ? buf_str(&c.bytes) : STR("");
	return r;
}

int history_read(struct workspace *ws, struct ctx *ctx, struct wpath path, uint64_t number, size_t max,
		 struct str *ret_bytes, struct err *err)
{
	int r = visible(ws, ctx, path, err);

	return r ? r : read_logged(ws, ctx, to_log(ws, ctx, path), number, max, ret_bytes, err);
}

/* A source of a file's bytes at a revision, in pieces, for files of any size. */
struct past_source {
	struct workspace *ws;
	struct ctx *ctx;
	struct wpath logged;
	uint64_t number, offset;
};

static int past_pull(void *arg, void *buf, size_t cap, size_t *ret_len, struct err *err)
{
	struct past_source *p = arg;
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = *p->ctx;
	struct collect c;
	struct sink sink = {.push = collect_push, .arg = &c};
	struct rev_state state;
	int r;

	ctx.arena = arena;
	buf_init(&c.bytes, arena, cap);
	r = revisions_read(workspace_revisions(p->ws), &ctx, p->logged, p->number, (struct store_range){p->offset, cap},
			   &sink, &state, err);
	if (r)
		return r;
	if (c.bytes.len)
		memcpy(buf, c.bytes.ptr, c.bytes.len);
	p->offset += c.bytes.len;
	*ret_len = c.bytes.len;
	return 0;
}

static int past_rewind(void *arg, struct err *err)
{
	(void)err;
	((struct past_source *)arg)->offset = 0;
	return 0;
}

/* --- differences --- */

static bool same_state(const struct rev_state *a, const struct rev_state *b)
{
	if (a->exists != b->exists || a->size != b->size)
		return false;
	if (!a->exists)
		return true;
	if (str_eq(a->version, b->version) && a->version.len)
		return true;
	return (a->hash[0] || a->hash[1]) && a->hash[0] == b->hash[0] && a->hash[1] == b->hash[1];
}

static bool is_text(struct str s)
{
	return utf8_valid(s) && (s.len == 0 || !memchr(s.ptr, 0, s.len));
}

/* What two contents of one path differ in; NULL when they do not. */
static int diff_value(struct workspace *ws, struct ctx *ctx, struct wpath path, uint64_t from, uint64_t to,
		      struct jv **ret, struct err *err)
{
	struct wpath logged = to_log(ws, ctx, path);
	struct rev_state a, b;
	struct str old = STR(""), new = STR("");
	struct buf text;
	int r = revisions_state(workspace_revisions(ws), ctx, logged, from, &a, err);

	*ret = NULL;
	if (r == 0)
		r = revisions_state(workspace_revisions(ws), ctx, logged, to, &b, err);
	if (r || same_state(&a, &b))
		return r;
	if (a.exists)
		r = read_logged(ws, ctx, logged, from, TOOL_FILE_MAX, &old, err);
	if (r == 0 && b.exists)
		r = read_logged(ws, ctx, logged, to, TOOL_FILE_MAX, &new, err);
	if (r || (a.exists == b.exists && str_eq(old, new)))
		return r;
	*ret = jv_object(ctx->arena);
	jv_set_str(ctx->arena, *ret, "path", path.s);
	jv_set_str(ctx->arena, *ret, "change",
		   !a.exists                        ? STR("added")
		   : !b.exists                      ? STR("removed")
		   : !is_text(old) || !is_text(new) ? STR("binary")
						    : STR("changed"));
	buf_init(&text, ctx->arena, TOOL_TEXT_MAX);
	if (is_text(old) && is_text(new))
		diff_unified(ctx->arena, old, new, path.s, UINT_MAX, &text);
	jv_set_str(ctx->arena, *ret, "diff", buf_str(&text));
	return 0;
}

int history_diff(struct workspace *ws, struct ctx *ctx, struct wpath path, uint64_t from, uint64_t to, struct jv **ret,
		 struct err *err)
{
	struct rev_query q = {
		.since = from < to ? from : to, .until = from < to ? to : from, .path = to_log(ws, ctx, path)};
	struct jv *files = jv_array(ctx->arena);
	struct strmap *seen = strmap_new(ctx->arena);
	struct revision *found = NULL;
	size_t count = 0;
	int r = visible(ws, ctx, path, err);

	if (r == 0 && from != to)
		r = revisions_query(workspace_revisions(ws), ctx, &q, &found, &count, NULL, err);
	for (size_t i = 0; r == 0 && i < count; i++) {
		struct wpath shown;
		struct jv *one;
		bool added;

		strmap_put(seen, found[i].path.s, &added);
		if (!added || !to_tool(ws, ctx, found[i].path, &shown))
			continue;
		r = diff_value(ws, ctx, shown, from, to, &one, err);
		if (r == 0 && one)
			jv_push(ctx->arena, files, one);
	}
	if (r)
		return r;
	*ret = jv_object(ctx->arena);
	jv_set_int(ctx->arena, *ret, "from", (int64_t)from);
	jv_set_int(ctx->arena, *ret, "to", (int64_t)to);
	jv_set(ctx->arena, *ret, "files", files);
	return 0;
}

/* --- going back --- */

/* Makes `path` what it was after `number`. *ret_how: "restored", "removed", or NULL when it is that already. */
static int go_back(struct workspace *ws, struct ctx *ctx, struct wpath path, uint64_t number, const char **ret_how,
		   struct err *err)
{
	struct store *files = workspace_files(ws);
	struct past_source past = {ws, ctx, to_log(ws, ctx, path), number, 0};
	struct source source = {.pull = past_pull, .rewind = past_rewind, .arg = &past};
	struct store_cond cond = {0};
	struct rev_state then, now;
	struct store_stat stat;
	int r = revisions_state(workspace_revisions(ws), ctx, past.logged, number, &then, err);

	*ret_how = NULL;
	if (r == 0)
		r = revisions_state(workspace_revisions(ws), ctx, past.logged, UINT64_MAX, &now, err);
	if (r || same_state(&then, &now))
		return r;
	if (then.exists && then.where == REV_NOWHERE)
		return err_set(err, ERR_NOT_FOUND, "\"%.*s\" at revision %llu is not kept any more", STR_ARG(path.s),
			       (unsigned long long)number);
	r = store_stat(files, ctx, path, &stat, err);
	if (r && r != -ERR_NOT_FOUND)
		return r;
	cond = r ? (struct store_cond){.kind = STORE_ABSENT}
		 : (struct store_cond){.kind = STORE_VERSION, .version = stat.version};
	*ret_how = then.exists ? "restored" : "removed";
	if (then.exists)
		return store_write_stream(files, ctx, path, &source, cond, NULL, err);
	return r ? 0 : store_remove(files, ctx, path, false, cond, NULL, err);
}

int history_restore(struct workspace *ws, struct ctx *ctx, struct wpath path, uint64_t number, struct jv **ret,
		    struct err *err)
{
	struct rev_query q = {.since = number, .path = to_log(ws, ctx, path)};
	struct jv *report = jv_object(ctx->arena);
	struct strmap *seen = strmap_new(ctx->arena);
	struct jv *restored = jv_array(ctx->arena), *removed = jv_array(ctx->arena);
	struct revision *found;
	uint64_t noticed, head;
	size_t count = 0;
	int r = visible(ws, ctx, path, err);

	if (r == 0)
		r = revisions_notice(workspace_revisions(ws), ctx, q.path, &noticed, err);
	if (r == 0)
		r = revisions_query(workspace_revisions(ws), ctx, &q, &found, &count, NULL, err);
	for (size_t i = 0; r == 0 && i < count; i++) {
		struct wpath shown;
		const char *how;
		bool added;

		strmap_put(seen, found[i].path.s, &added);
		if (!added || !to_tool(ws, ctx, found[i].path, &shown))
			continue;
		r = go_back(ws, ctx, shown, number, &how, err);
		if (r == 0 && how)
			jv_push(ctx->arena, how[2] == 's' ? restored : removed, jv_str(ctx->arena, shown.s));
	}
	if (r == 0)
		r = revisions_head(workspace_revisions(ws), ctx, &head, err);
	if (r)
		return r;
	jv_set(ctx->arena, report, "restored", restored);
	jv_set(ctx->arena, report, "removed", removed);
	jv_set_int(ctx->arena, report, "to", (int64_t)number);
	jv_set_int(ctx->arena, report, "revision", (int64_t)head);
	*ret = report;
	return 0;
}

/* --- undo --- */

/* One path of an undo. Walking from the newest revision back, `changes` counts all of its changes seen so far; when
   a chosen one is met, all that were seen must have been chosen too, or someone else's work stands on it. */
struct undo_path {
	struct wpath shown;
	uint64_t oldest, newest; /* chosen */
	size_t changes, chosen;
	bool conflict;
	uint64_t last; /* its newest change, chosen or not */
};

static bool is_chosen(const struct undo_req *req, const struct revision *r)
{
	if (req->has_since)
		return true;
	if (req->call_id.len)
		return str_eq(r->actor.call_id, req->call_id);
	if (req->session.len)
		return str_eq(r->actor.session, req->session);
	return str_eq(r->actor.user, req->actor) || str_eq(r->actor.agent, req->actor);
}

/* "The last call" as a request that names it. */
static int name_last_call(struct workspace *ws, struct ctx *ctx, struct undo_req *req, struct err *err)
{
	struct rev_query q = {.newest_first = true, .path = workspace_root(ws), .limit = 1};
	struct revision *last;
	size_t count;
	int r;

	if (req->has_since || req->call_id.len || req->session.len || req->actor.len)
		return 0;
	r = revisions_query(workspace_revisions(ws), ctx, &q, &last, &count, NULL, err);
	if (r)
		return r;
	if (count == 0)
		return err_set(err, ERR_NOT_FOUND, "nothing has been changed yet, so there is nothing to undo");
	req->call_id = last[0].actor.call_id;
	if (!req->call_id.len) { /* a change with no call of its own: that one change */
		req->has_since = true;
		req->since = last[0].number - 1;
	}
	return 0;
}

static void plan_change(struct undo_path *p, const struct undo_req *req, const struct revision *r, struct ctx *ctx,
			struct jv *numbers)
{
	if (p->changes++ == 0)
		p->last = r->number;
	if (!is_chosen(req, r))
		return;
	if (p->chosen++ == 0)
		p->newest = r->number;
	p->oldest = r->number;
	p->conflict = p->changes != p->chosen;
	jv_push(ctx->arena, numbers, jv_int(ctx->arena, (int64_t)r->number));
}

static int plan_undo(struct workspace *ws, struct ctx *ctx, const struct undo_req *req, struct undo_path **ret,
		     size_t *ret_count, struct jv *numbers, struct err *err)
{
	struct rev_query q = {
		.since = req->has_since ? req->since : 0, .path = workspace_root(ws), .newest_first = true};
	struct strmap *index = strmap_new(ctx->arena);
	struct undo_path *paths;
	struct revision *found;
	size_t count, n = 0;
	int r = revisions_query(workspace_revisions(ws), ctx, &q, &found, &count, NULL, err);

	if (r)
		return r;
	paths = ARENA_ARRAY(ctx->arena, struct undo_path, count + 1);
	for (size_t i = 0; i < count; i++) {
		struct wpath shown;
		bool added;
		size_t *at = strmap_put(index, found[i].path.s, &added);

		if (added) {
			*at = to_tool(ws, ctx, found[i].path, &shown) ? n++ : SIZE_MAX;
			if (*at != SIZE_MAX)
				paths[*at] = (struct undo_path){.shown = shown};
		}
		if (*at != SIZE_MAX)
			plan_change(&paths[*at], req, &found[i], ctx, numbers);
	}
	*ret = paths;
	*ret_count = n;
	return jv_count(numbers) ? 0 : err_set(err, ERR_NOT_FOUND, "no change fits; `history` shows who changed what");
}

static int conflict_value(struct workspace *ws, struct ctx *ctx, const struct undo_path *p, struct jv **ret,
			  struct err *err)
{
	struct jv *diff;
	int r = diff_value(ws, ctx, p->shown, p->newest, UINT64_MAX, &diff, err);

	if (r)
		return r;
	*ret = jv_object(ctx->arena);
	jv_set_str(ctx->arena, *ret, "path", p->shown.s);
	jv_set_int(ctx->arena, *ret, "revision", (int64_t)p->last);
	jv_set_str(ctx->arena, *ret, "diff", diff ? jv_get_str(diff, "diff") : STR(""));
	return 0;
}

static int make_undo(struct workspace *ws, struct ctx *ctx, const struct undo_path *paths, size_t count, bool dry_run,
		     struct jv *files, struct err *err)
{
	for (size_t i = 0; i < count; i++) {
		struct jv *one = jv_object(ctx->arena);
		const char *how = NULL;
		int r;

		if (!paths[i].chosen)
			continue;
		r = dry_run ? 0 : go_back(ws, ctx, paths[i].shown, paths[i].oldest - 1, &how, err);

		if (r)
			return r;
		jv_set_str(ctx->arena, one, "path", paths[i].shown.s);
		jv_set_int(ctx->arena, one, "to", (int64_t)paths[i].oldest - 1);
		jv_set_str(ctx->arena, one, "how", str_of(how ? how : dry_run ? "would be undone" : "unchanged"));
		jv_push(ctx->arena, files, one);
	}
	return 0;
}

int history_undo(struct workspace *ws, struct ctx *ctx, const struct undo_req *req, struct jv **ret, struct err *err)
{
	struct undo_req chosen = *req;
	struct jv *numbers = jv_array(ctx->arena), *conflicts = jv_array(ctx->arena), *files = jv_array(ctx->arena);
	struct undo_path *paths;
	uint64_t noticed;
	size_t count;
	int r = revisions_notice(workspace_revisions(ws), ctx, workspace_root(ws), &noticed, err);

	if (r == 0)
		r = name_last_call(ws, ctx, &chosen, err);
	if (r == 0)
		r = plan_undo(ws, ctx, &chosen, &paths, &count, numbers, err);
	if (r)
		return r;
	for (size_t i = 0; r == 0 && i < count; i++) {
		struct jv *conflict;

		if (!paths[i].conflict)
			continue;
		r = conflict_value(ws, ctx, &paths[i], &conflict, err);
		if (r == 0)
			jv_push(ctx->arena, conflicts, conflict);
	}
	if (r == 0 && jv_count(conflicts) == 0)
		r = make_undo(ws, ctx, paths, count, req->dry_run, files, err);
	if (r)
		return r;
	*ret = jv_object(ctx->arena);
	jv_set(ctx->arena, *ret, "undone", jv_count(conflicts) ? jv_array(ctx->arena) : numbers);
	jv_set(ctx->arena, *ret, "files", files);
	jv_set(ctx->arena, *ret, "conflicts", conflicts);
	if (jv_count(conflicts) && !req->dry_run)
		return err_set(
			err, ERR_CONFLICT,
			"undo: \"%.*s\"%s changed since by someone else; nothing was undone, the difference is shown",
			STR_ARG(jv_get_str(jv_at(conflicts, 0), "path")), jv_count(conflicts) > 1 ? " and others" : "");
	return 0;
}
