/* SPDX-License-Identifier: Apache-2.0 */
/*
 * history, diff, restore, undo, checkpoint, changes: the past of the files as tools. The work is done in
 * home/history.h, whose values are the answers; here arguments become requests, and answers become text for a model. A
 * revision is a number, a checkpoint's name or "head", wherever one is asked for.
 */
#include "home/timeline/history_tools.h"

#include <stdatomic.h>

#include "base/clock.h"
#include "home/timeline/history.h"
#include "tool/call.h"

#define WAIT_MS_MAX    60000
#define NAMES_SHOWN    50
#define CONFLICTS_TEXT (64 * KIB)

static void add_lines_of(struct buf *text, const struct jv *list)
{
	for (const struct jv_member *m = jv_first(list); m; m = m->next)
		render_revision(m->value, text);
}

/* "12  2026-11-15T10:00:00Z  edited by ann: write notes.md (20 B, +5), call 3f-1" */
void render_revision(const struct jv *r, struct buf *text)
{
	static const char *const who[] = {"user", "agent", "session"};
	const struct jv *actor = jv_get(r, "actor"), *before = jv_get(r, "before"), *after = jv_get(r, "after");
	struct str other = jv_get_str(r, "from");
	bool any = false;

	buf_printf(text, "%lld  %.*s  %.*s %.*s", (long long)jv_get_int(r, "revision", 0),
		   STR_ARG(jv_get_str(r, "time")), STR_ARG(jv_get_str(r, "operation")), STR_ARG(jv_get_str(r, "path")));
	if (other.len)
		buf_printf(text, " from %.*s", STR_ARG(other));
	if (jv_get_str(r, "to").len)
		buf_printf(text, " to %.*s", STR_ARG(jv_get_str(r, "to")));
	if (jv_is_null(after))
		buf_lit(text, " (gone)");
	else
		buf_printf(text, " (%lld B, %+lld)", (long long)jv_get_int(after, "size", 0),
			   (long long)(jv_get_int(after, "size", 0) - jv_get_int(before, "size", 0)));
	for (size_t i = 0; i < sizeof(who) / sizeof(who[0]); i++) {
		struct str name = jv_get_str(actor, who[i]);

		if (!name.len)
			continue;
		buf_printf(text, "%s%s %.*s", any ? ", " : " by ", who[i], STR_ARG(name));
		any = true;
	}
	if (jv_get_str(actor, "call").len)
		buf_printf(text, ", call %.*s", STR_ARG(jv_get_str(actor, "call")));
	buf_char(text, '\n');
}

static void end_text(struct buf *text)
{
	if (text->len && text->ptr[text->len - 1] == '\n')
		text->len--;
}

/* --- history --- */

int tool_history(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct history_req req = {.user = jv_get_str(args, "user"),
				  .agent = jv_get_str(args, "agent"),
				  .session = jv_get_str(args, "session"),
				  .call_id = jv_get_str(args, "call"),
				  .limit = arg_count(args, "limit", HISTORY_LIMIT_DEFAULT, HISTORY_LIMIT_MAX)};
	bool since, until;
	int r = arg_path(call, args, "path", &req.path, err);

	if (r == 0)
		r = arg_revision(call, args, "since", &req.since, &since, err);
	if (r == 0)
		r = arg_revision(call, args, "until", &req.until, &until, err);
	if (r == 0 && until && req.until == 0)
		return err_set(err, ERR_INVALID,
			       "history: there are no changes up to revision 0; the first revision is 1");
	return r ? r : history_list(call->ws, call->ctx, &req, &ret->value, err);
}

void render_history(const struct jv *args, const struct jv *value, struct buf *text)
{
	(void)args;
	add_lines_of(text, jv_get(value, "revisions"));
	if (jv_count(jv_get(value, "revisions")) == 0)
		buf_lit(text, "[no changes are recorded]");
	if (jv_get_bool(value, "more", false))
		buf_printf(text, "[there are older changes; continue with until %lld]",
			   (long long)jv_get_int(value, "next", 0));
	end_text(text);
}

/* --- diff --- */

int tool_diff(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct wpath path;
	uint64_t from = 0, to = 0;
	bool given;
	int r = arg_path(call, args, "path", &path, err);

	if (r == 0)
		r = arg_revision(call, args, "from", &from, &given, err);
	if (r == 0)
		r = arg_revision(call, args, "to", &to, &given, err);
	if (r == 0 && !given) {
		r = history_notice(call->ws, call->ctx, path, err);
		if (r == 0)
			r = past_revision(call->ws, call->ctx, STR("head"), &to, err);
	}
	return r ? r : history_diff(call->ws, call->ctx, path, from, to, &ret->value, err);
}

void render_diff(const struct jv *args, const struct jv *value, struct buf *text)
{
	const struct jv *files = jv_get(value, "files");

	(void)args;
	for (const struct jv_member *m = jv_first(files); m; m = m->next) {
		struct str diff = jv_get_str(m->value, "diff");

		if (diff.len)
			buf_add(text, diff);
		else
			buf_printf(text, "%.*s: %.*s\n", STR_ARG(jv_get_str(m->value, "path")),
				   STR_ARG(jv_get_str(m->value, "change")));
	}
	if (jv_count(files) == 0)
		buf_printf(text, "[no difference between revision %lld and %lld]",
			   (long long)jv_get_int(value, "from", 0), (long long)jv_get_int(value, "to", 0));
	if (jv_get_bool(value, "more", false))
		buf_lit(text, "[more files differ; set path]");
	end_text(text);
}

/* --- restore --- */

int tool_restore(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct wpath path;
	uint64_t number = 0;
	bool given;
	int r = arg_path(call, args, "path", &path, err);

	if (r == 0)
		r = arg_revision(call, args, "revision", &number, &given, err);
	return r ? r : history_restore(call->ws, call->ctx, path, number, &ret->value, err);
}

/* `total` may be more than the list has. */
static void add_names(struct buf *text, const char *what, const struct jv *names, size_t total)
{
	size_t n = 0;

	if (total == 0)
		return;
	buf_printf(text, "%s%s ", text->len ? "\n" : "", what);
	for (const struct jv_member *m = jv_first(names); m && n < NAMES_SHOWN; m = m->next, n++)
		buf_printf(text, "%s%.*s", n ? ", " : "", STR_ARG(jv_str_of(m->value)));
	if (total > n)
		buf_printf(text, "%s%zu%s", n ? " and " : "", total - n, n ? " more" : total == 1 ? " file" : " files");
}

static size_t count_of(const struct jv *value, const char *how)
{
	return (size_t)jv_get_int(jv_get(value, "counts"), how, 0);
}

void render_restored(const struct jv *args, const struct jv *value, struct buf *text)
{
	(void)args;
	add_names(text, "restored", jv_get(value, "restored"), count_of(value, "restored"));
	add_names(text, "removed", jv_get(value, "removed"), count_of(value, "removed"));
	if (jv_get_int(value, "total", 0) == 0)
		buf_printf(text, "nothing to do: this is already the state of revision %lld",
			   (long long)jv_get_int(value, "to", 0));
}

/* --- undo --- */

static int undo_request(struct call *call, const struct jv *args, struct undo_req *req, struct err *err)
{
	int r;

	*req = (struct undo_req){.call_id = jv_get_str(args, "call"),
				 .session = jv_get_str(args, "session"),
				 .actor = jv_get_str(args, "actor"),
				 .redo = jv_get_bool(args, "redo", false),
				 .dry_run = jv_get_bool(args, "dry_run", false)};
	r = arg_revision(call, args, "since", &req->since, &req->has_since, err);
	if (r == 0 &&
	    req->has_since + (req->call_id.len > 0) + (req->session.len > 0) + (req->actor.len > 0) + req->redo > 1)
		return err_set(
			err, ERR_INVALID,
			"undo: give only one of since, call, session, actor and redo, or none for the last call");
	return r;
}

struct str undo_conflicts_text(struct arena *arena, const struct jv *value)
{
	struct buf text;

	buf_init(&text, arena, CONFLICTS_TEXT);
	for (const struct jv_member *m = jv_first(jv_get(value, "conflicts")); m; m = m->next) {
		buf_printf(&text, "%.*s was changed since by revision %lld%s\n", STR_ARG(jv_get_str(m->value, "path")),
			   (long long)jv_get_int(m->value, "revision", 0), jv_get_str(m->value, "diff").len ? ":" : "");
		buf_add(&text, jv_get_str(m->value, "diff"));
	}
	return buf_str(&text);
}

int tool_undo(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct undo_req req;
	struct jv *value = NULL;
	int r = undo_request(call, args, &req, err);

	if (r == 0)
		r = history_undo(call->ws, call->ctx, &req, &value, err);
	ret->value = value;
	if (r == -ERR_CONFLICT && value) {
		ret->detail = undo_conflicts_text(call->ctx->arena, value);
		ret->failed_value = value;
	}
	return r;
}

static void add_undone(struct buf *text, const struct jv *value, bool dry_run)
{
	static const char *const hows[][2] = {
		{"restored", "would restore"}, {"removed", "would remove"}, {"unchanged", "already in that state"}};
	ARENA_SCOPE struct arena *arena = arena_new();

	for (size_t i = 0; i < sizeof(hows) / sizeof(hows[0]); i++) {
		struct jv *names = jv_array(arena);

		for (const struct jv_member *m = jv_first(jv_get(value, "files")); m; m = m->next)
			if (str_is(jv_get_str(m->value, "how"), hows[i][0]))
				jv_push(arena, names, jv_str(arena, jv_get_str(m->value, "path")));
		add_names(text, i == 2 ? hows[i][1] : hows[i][dry_run], names, count_of(value, hows[i][0]));
	}
}

void render_undone(const struct jv *args, const struct jv *value, struct buf *text)
{
	bool dry_run = jv_get_bool(value, "dry_run", false), redo = jv_get_bool(value, "redo", false);
	uint64_t changes = (uint64_t)jv_get_int(value, "changes", 0), files = (uint64_t)jv_get_int(value, "total", 0);
	ARENA_SCOPE struct arena *arena = arena_new();

	(void)args;
	if (jv_count(jv_get(value, "conflicts"))) { /* only a dry run succeeds with them */
		buf_printf(text, "nothing can be %s, because files were changed since\n", redo ? "redone" : "undone");
		buf_add(text, undo_conflicts_text(arena, value));
		end_text(text);
		return;
	}
	buf_printf(text, "%s %llu change%s (%llu file%s)",
		   dry_run ? redo ? "would redo" : "would undo"
		   : redo  ? "redid"
			   : "undid",
		   (unsigned long long)changes, plural(changes), (unsigned long long)files, plural(files));
	add_undone(text, value, dry_run);
}

/* --- checkpoint --- */

int tool_checkpoint(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct str name = jv_get_str(args, "name");
	struct jv *list;
	int r;

	if (name.ptr)
		return history_checkpoint(call->ws, call->ctx, name, &ret->value, err);
	r = history_checkpoints(call->ws, call->ctx, &list, err);
	if (r)
		return r;
	ret->value = jv_object(call->ctx->arena);
	jv_set(call->ctx->arena, ret->value, "checkpoints", list);
	return 0;
}

void render_checkpoint(const struct jv *args, const struct jv *value, struct buf *text)
{
	const struct jv *list = jv_get(value, "checkpoints");

	(void)args;
	if (!list) {
		buf_printf(text, "\"%.*s\" now names revision %lld", STR_ARG(jv_get_str(value, "checkpoint")),
			   (long long)jv_get_int(value, "revision", 0));
		return;
	}
	for (const struct jv_member *m = jv_first(list); m; m = m->next)
		buf_printf(text, "%.*s  revision %lld  %.*s\n", STR_ARG(jv_get_str(m->value, "checkpoint")),
			   (long long)jv_get_int(m->value, "revision", 0), STR_ARG(jv_get_str(m->value, "time")));
	if (jv_count(list) == 0)
		buf_lit(text, "[no checkpoints; give a name to make one]");
	end_text(text);
}

/* --- changes --- */

/* Looks for changes by other programs. In a large workspace that takes time, and a feed is read often, so the next look
   waits for ten times as long as this one took. */
static int notice_sometimes(struct call *call, struct wpath path, struct err *err)
{
	static _Atomic int64_t not_before_ns;
	int64_t start = clock_monotonic_ns(), end;
	int r;

	if (start < atomic_load(&not_before_ns))
		return 0;
	r = history_notice(call->ws, call->ctx, path, err);
	end = clock_monotonic_ns();
	atomic_store(&not_before_ns, end + 10 * (end - start));
	return r;
}

int tool_changes(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct wpath path;
	uint64_t since = 0;
	bool given;
	int r = arg_path(call, args, "path_prefix", &path, err);

	if (r == 0)
		r = arg_revision(call, args, "since_revision", &since, &given, err);
	if (r == 0)
		r = notice_sometimes(call, path, err);
	if (r)
		return r;
	return history_changes(call->ws, call->ctx, since, path, (unsigned)arg_count(args, "wait_ms", 0, WAIT_MS_MAX),
			       arg_count(args, "limit", HISTORY_LIMIT_DEFAULT, HISTORY_LIMIT_MAX), &ret->value, err);
}

void render_changes(const struct jv *args, const struct jv *value, struct buf *text)
{
	(void)args;
	add_lines_of(text, jv_get(value, "changes"));
	if (jv_count(jv_get(value, "changes")) == 0)
		buf_lit(text, "[nothing changed] ");
	buf_printf(text, "[%scontinue with since_revision %lld]",
		   jv_get_bool(value, "more", false) ? "there are more; " : "",
		   (long long)jv_get_int(value, "next", 0));
}
