/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The changes of one item, read from the revision log of the workspace: its record, its comments, and the files below
 * its /task. Like the feed of files it has no gap and no repeat: a change that is logged and not yet visible is
 * completed before it is reported.
 */
#include "base/clock.h"
#include "home/board/board_internal.h"
#include "revisions/revisions.h"
#include "workspace/workspace_parts.h"

#define PAGE 500

struct places {
	struct wpath record, archived, comments, task;
};

static int find_places(struct workspace *ws, struct ctx *ctx, const struct item *item, struct places *ret,
		       struct err *err)
{
	struct arena *arena = ctx->arena;
	struct wpath part = workspace_part(ws);
	int r = wpath_join(arena, part, board_path(arena, item->board, "items/%.*s.json", STR_ARG(item->id)),
			   &ret->record, err);

	if (r == 0)
		r = wpath_join(arena, part, board_path(arena, item->board, "archive/%.*s.json", STR_ARG(item->id)),
			       &ret->archived, err);
	if (r == 0)
		r = wpath_join(arena, part, board_path(arena, item->board, "comments/%.*s.jsonl", STR_ARG(item->id)),
			       &ret->comments, err);
	if (r == 0)
		r = wpath_join(arena, part, board_path(arena, item->board, "tasks/%.*s", STR_ARG(item_key(item->v))),
			       &ret->task, err);
	return r;
}

/* The path as clients of the item know it; ptr NULL: another item has it, or no item. */
static struct str shown(struct arena *arena, const struct places *p, struct wpath path)
{
	if (wpath_eq(path, p->record) || wpath_eq(path, p->archived))
		return STR("item");
	if (wpath_eq(path, p->comments))
		return STR("comments");
	if (wpath_within(path, p->task))
		return arena_printf(arena, "/task/%.*s", STR_ARG(wpath_relative(path, p->task).s));
	return STR_NONE;
}

static struct jv *change_value(struct arena *arena, const struct revision *rev, struct str path)
{
	struct jv *v = jv_object(arena);

	jv_set_int(arena, v, "revision", (int64_t)rev->number);
	jv_set_str(arena, v, "path", path);
	jv_set_str(arena, v, "operation", str_of(rev->after.exists ? rev_op_name(rev->op) : "remove"));
	jv_set_str(arena, v, "time", clock_format_utc(arena, rev->time_ns));
	if (rev->after.exists)
		jv_set_int(arena, v, "size_bytes", (int64_t)rev->after.size);
	return v;
}

int board_changes(struct workspace *ws, struct ctx *ctx, struct board_ref ref, uint64_t since, size_t limit,
		  struct jv **ret, struct err *err)
{
	struct store *log = workspace_shared(ws);
	struct rev_query query = {.since = since, .limit = PAGE};
	struct jv *list = jv_array(ctx->arena);
	bool more = true, full = false;
	struct places places;
	struct item item;
	int r = item_load(ws, ctx, ref, &item, err);

	if (r == 0)
		r = revisions_head(log, ctx, &query.until, err);
	if (r == 0)
		r = find_places(ws, ctx, &item, &places, err);
	query.path = (struct wpath){arena_printf(ctx->arena, "%.*s%sboards/%.*s", STR_ARG(workspace_part(ws).s),
						 workspace_part(ws).s.len ? "/" : "", STR_ARG(item.board))};
	while (r == 0 && more && !full && query.until > query.since) {
		struct revision *page;
		size_t count;

		r = revisions_query(log, ctx, &query, &page, &count, &more, err);
		for (size_t i = 0; r == 0 && i < count && !full; i++) {
			struct str path = shown(ctx->arena, &places, page[i].path);

			full = jv_count(list) && jv_count(list) >= limit; /* at least one, so that there is an end */
			if (full)
				break;
			if (path.ptr && !page[i].done)
				r = revisions_settle(log, ctx, page[i].path, NULL, err);
			if (r == 0 && path.ptr)
				jv_push(ctx->arena, list, change_value(ctx->arena, &page[i], path));
			query.since = page[i].number;
		}
	}
	if (r)
		return r;
	if (!full && query.until > query.since)
		query.since = query.until; /* what else happened has nothing to do with the item */
	*ret = jv_object(ctx->arena);
	jv_set(ctx->arena, *ret, "changes", list);
	jv_set_int(ctx->arena, *ret, "next", (int64_t)query.since);
	jv_set_bool(ctx->arena, *ret, "more", full);
	return 0;
}
