/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paths and names of the past. Paths are turned between the log's form and the tools' form here and nowhere else, and
 * every path that leaves is put before the guard's rules first, so that no door to the past shows what the door to the
 * present hides.
 */
#include "workspace/past.h"

#include "store/stores.h"

struct wpath past_logged(struct workspace *ws, struct ctx *ctx, struct wpath path)
{
	struct wpath joined = WPATH_ROOT;
	struct err ignored;

	if (wpath_join(ctx->arena, workspace_root(ws), path, &joined, &ignored))
		return path; /* too long to have ever been written: nothing in the log has that name */
	return joined;
}

bool past_shown(struct workspace *ws, struct wpath logged, struct wpath *ret)
{
	if (!wpath_within(logged, workspace_root(ws)))
		return false;
	*ret = wpath_relative(logged, workspace_root(ws));
	return store_guard_says(workspace_files(ws), *ret) != GUARD_HIDDEN;
}

int past_visible(struct workspace *ws, struct wpath path, struct err *err)
{
	if (store_guard_says(workspace_files(ws), path) != GUARD_HIDDEN)
		return 0;
	return err_set(err, ERR_DENIED, "\"%.*s\" is protected, and so is its history; work without it",
		       STR_ARG(path.s));
}

/* The users of a workspace share one log, but not their names: a user's checkpoints are recorded as "@<user>@<name>",
   which cannot be the name of a checkpoint, because '@' is refused there. */
struct str past_namespace(struct workspace *ws, struct ctx *ctx)
{
	struct str user = workspace_actor(ws).user;

	return user.len ? arena_printf(ctx->arena, "@%.*s@", STR_ARG(workspace_encode_name(ctx->arena, user)))
			: STR("");
}

/* The checkpoints of this user, under the names that the user gave them. */
int past_checkpoints(struct workspace *ws, struct ctx *ctx, struct rev_checkpoint **ret, size_t *ret_count,
		     struct err *err)
{
	struct str space = past_namespace(ws, ctx);
	struct rev_checkpoint *all;
	size_t count, n = 0;
	int r = revisions_checkpoints(workspace_revisions(ws), ctx, &all, &count, err);

	for (size_t i = 0; r == 0 && i < count; i++) {
		if (!str_starts(all[i].name, space.len ? space : STR("@")) != !space.len)
			continue;
		all[n] = all[i];
		all[n++].name = str_from(all[i].name, space.len);
	}
	*ret = all;
	*ret_count = n;
	return r;
}

int past_revision(struct workspace *ws, struct ctx *ctx, struct str text, uint64_t *ret_number, struct err *err)
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
		r = past_checkpoints(ws, ctx, &marks, &count, err);
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

int past_path_at(struct workspace *ws, struct ctx *ctx, struct str text, struct wpath *ret_path, uint64_t *ret_number,
		 bool *ret_has_rev, struct err *err)
{
	size_t at = str_rfind_char(text, '@');
	struct err ignored;
	int r = workspace_path(ws, ctx->arena, text, ret_path, err);

	*ret_has_rev = false;
	if (at + 1 >= text.len)
		return r;
	if (r == 0 && store_stat(workspace_files(ws), ctx, *ret_path, NULL, &ignored) == 0)
		return 0; /* a file of that very name */
	r = past_revision(ws, ctx, str_from(text, at + 1), ret_number, err);
	if (r)
		return r;
	*ret_has_rev = true;
	return workspace_path(ws, ctx->arena, str_first(text, at), ret_path, err);
}

int past_settle(struct workspace *ws, struct ctx *ctx, struct wpath path, struct err *err)
{
	int r = past_visible(ws, path, err);

	if (r)
		return r;
	r = revisions_settle(workspace_revisions(ws), ctx, past_logged(ws, ctx, path), NULL, err);
	return r == -ERR_CORRUPT ? 0 : r; /* what is whole can be read; the rest is an error when it is asked for */
}
