/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What differs between two revisions. The log says which paths changed between them, so the cost follows that number;
 * a file whose state is the same at both ends (changed and changed back) is not read at all.
 */
#include <limits.h>

#include "base/limits.h"
#include "home/timeline/history_internal.h"

/* One file, asked for by name: two looks into its chain of changes instead of a walk over the log. */
static int one_file(struct workspace *ws, struct ctx *ctx, struct wpath path, uint64_t from, uint64_t to,
		    struct past_change *ret, bool *ret_is_file, struct err *err)
{
	struct store *rev = workspace_revisions(ws);
	int r;

	*ret = (struct past_change){.logged = past_logged(ws, ctx, path), .shown = path};
	*ret_is_file = false;
	if (wpath_is_root(path))
		return 0;
	r = revisions_state(rev, ctx, ret->logged, from, &ret->before, err);
	if (r == 0)
		r = revisions_state(rev, ctx, ret->logged, to, &ret->after, err);
	*ret_is_file = r == 0 && ret->before.exists && ret->after.exists;
	return r;
}

static int changes_between(struct workspace *ws, struct ctx *ctx, struct wpath path, uint64_t from, uint64_t to,
			   struct past_change **ret, size_t *ret_count, struct err *err)
{
	struct past_change *one = ARENA_NEW(ctx->arena, struct past_change);
	bool is_file;
	int r = past_visible(ws, path, err);

	*ret = one;
	*ret_count = 0;
	if (r == 0)
		r = past_kept(ws, ctx, from < to ? from : to, err);
	if (r == 0)
		r = one_file(ws, ctx, path, from, to, one, &is_file, err);
	if (r)
		return r;
	if (is_file) {
		*ret_count = 1;
		return 0;
	}
	if (from == to)
		return 0;
	r = past_changes(ws, ctx, path, from < to ? from : to, from < to ? to : from, ret, ret_count, err);
	for (size_t i = 0; r == 0 && from > to && i < *ret_count; i++) {
		struct rev_state later = (*ret)[i].after;

		(*ret)[i].after = (*ret)[i].before;
		(*ret)[i].before = later;
	}
	return r;
}

int history_diff_each(struct workspace *ws, struct ctx *ctx, struct wpath path, uint64_t from, uint64_t to,
		      history_diff_fn each, void *arg, struct err *err)
{
	struct past_change *changes;
	size_t count;
	int r = changes_between(ws, ctx, path, from, to, &changes, &count, err);

	for (size_t i = 0; r == 0 && i < count; i++) {
		ARENA_SCOPE struct arena *scratch = arena_new();
		struct ctx c = *ctx;
		struct jv *one;

		c.arena = scratch;
		r = ctx_check(ctx, err);
		if (r == 0)
			r = past_diff(ws, &c, &changes[i], from, to, UINT_MAX, &one, err);
		if (r == 0 && one)
			r = each(arg, one, err);
	}
	return r > 0 ? 0 : r;
}

struct collect {
	struct ctx *ctx;
	struct jv *files;
	size_t bytes;
	bool more;
};

static int collect_file(void *arg, const struct jv *file, struct err *err)
{
	struct collect *c = arg;
	struct arena *arena = c->ctx->arena;
	struct str diff = jv_get_str(file, "diff");
	struct jv *one = jv_object(arena);

	(void)err;
	c->more = jv_count(c->files) >= LIST_LIMIT_MAX || c->bytes >= DIFF_TEXT_MAX;
	if (c->more)
		return PAST_ENOUGH;
	jv_set_str(arena, one, "path", arena_str(arena, jv_get_str(file, "path")));
	jv_set_str(arena, one, "change", arena_str(arena, jv_get_str(file, "change")));
	if (diff.len > DIFF_TEXT_MAX - c->bytes) { /* to the end of the last line that fits */
		diff.len = str_rfind_char(str_first(diff, DIFF_TEXT_MAX - c->bytes), '\n') + 1;
		jv_set_bool(arena, one, "cut", true);
	}
	if (diff.ptr)
		jv_set_str(arena, one, "diff", arena_str(arena, diff));
	c->bytes += diff.len;
	jv_push(arena, c->files, one);
	return 0;
}

int history_diff(struct workspace *ws, struct ctx *ctx, struct wpath path, uint64_t from, uint64_t to, struct jv **ret,
		 struct err *err)
{
	struct collect c = {.ctx = ctx, .files = jv_array(ctx->arena)};
	int r = history_diff_each(ws, ctx, path, from, to, collect_file, &c, err);

	if (r)
		return r;
	*ret = jv_object(ctx->arena);
	jv_set_int(ctx->arena, *ret, "from", (int64_t)from);
	jv_set_int(ctx->arena, *ret, "to", (int64_t)to);
	jv_set(ctx->arena, *ret, "files", c.files);
	jv_set_bool(ctx->arena, *ret, "more", c.more);
	return 0;
}
