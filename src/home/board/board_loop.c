/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a run. An agent that stops must leave an item in a state that somebody else continues with: a lane has
 * ended its assignment and written to the journal; the coordinator has resolved what people said, has a brief that
 * lanes can work by, and has either given the work to somebody or ended it. What is missing is named, so that the agent
 * can do it and stop then.
 */
#include "home/board/board_internal.h"
#include "text/diff.h"

#define BRIEF_LINES 5
#define BRIEF_CHARS 120

static int check_lane(const struct item *item, const struct board_caller *caller, size_t journal, struct err *err)
{
	const struct jv *last = NULL;

	for (const struct jv_member *m = jv_first(jv_get(item->v, "assignments")); m; m = m->next)
		if (str_eq(jv_get_str(m->value, "thread_id"), caller->thread_id))
			last = m->value;
	if (last && !jv_get(last, "result_status"))
		return err_set(err, ERR_CONFLICT,
			       "your assignment %.*s of %.*s is %.*s; end it first (completed, blocked or rejected)",
			       STR_ARG(jv_get_str(last, "id")), STR_ARG(item_key(item->v)),
			       STR_ARG(jv_get_str(last, "status")));
	if (last && journal <= (size_t)jv_get_int(last, "journal_size", 0))
		return err_set(err, ERR_CONFLICT, "nothing was added to the journal of %.*s during your assignment",
			       STR_ARG(item_key(item->v)));
	return 0;
}

int board_check_brief(struct workspace *ws, struct ctx *ctx, struct board_ref ref, struct err *err)
{
	struct str brief = STR("");
	struct item item;
	int r = item_load(ws, ctx, ref, &item, err);

	if (r == 0)
		r = store_read(workspace_home(ws), ctx,
			       board_path(ctx->arena, item.board, "tasks/%.*s/TASK.md", STR_ARG(item_key(item.v))),
			       STORE_WHOLE, BOARD_RECORD_MAX, &brief, NULL, err);
	if (r && r != -ERR_NOT_FOUND)
		return r;
	if (count_lines(brief) < BRIEF_LINES || utf8_count(brief) < BRIEF_CHARS)
		return err_set(
			err, ERR_CONFLICT,
			"TASK.md is the brief that lanes work by: write at least %d lines and %d characters first",
			BRIEF_LINES, BRIEF_CHARS);
	return 0;
}

static int check_coordinator(struct workspace *ws, struct ctx *ctx, const struct item *item, struct err *err)
{
	static const char *const rests[] = {"needs_clarification",  "completed", "cancelled", "blocked",
					    "waiting_for_children", "failed",    "rejected"};
	struct board_ref ref = {item->board, item->id};
	struct jv *comments;
	bool active = false;
	int r = comment_list(ws, ctx, ref, 1000, STR(""), &comments, err);

	for (const struct jv_member *m = r ? NULL : jv_first(jv_get(comments, "comments")); m; m = m->next)
		if (!jv_get(m->value, "resolved_at") && !jv_get_str(m->value, "thread_id").len)
			return err_set(err, ERR_CONFLICT, "the user's comment %.*s is not resolved",
				       STR_ARG(jv_get_str(m->value, "id")));
	if (r == 0)
		r = board_check_brief(ws, ctx, ref, err);
	for (const struct jv_member *m = jv_first(jv_get(item->v, "assignments")); m; m = m->next)
		active = active || !jv_get(m->value, "result_status");
	if (r == 0 && !active && !word_in(jv_get_str(item->v, "status"), rests, COUNT(rests)))
		r = err_set(err, ERR_CONFLICT,
			    "nobody works on %.*s (%.*s); assign it, ask the user, or set its final status",
			    STR_ARG(item_key(item->v)), STR_ARG(jv_get_str(item->v, "status")));
	return r;
}

int board_stop(struct workspace *ws, struct ctx *ctx, struct board_ref ref, const struct board_caller *caller,
	       struct err *err)
{
	struct jv *fields = jv_object(ctx->arena), *thread;
	struct str journal;
	struct item item;
	int r = item_load(ws, ctx, ref, &item, err);

	if (r == 0)
		r = item_journal_read(ws, ctx, &item, &journal, err);
	if (r)
		return r;
	if (str_is(caller->purpose, "coordinator"))
		r = check_coordinator(ws, ctx, &item, err);
	else if (caller->thread_id.len)
		r = check_lane(&item, caller, journal.len, err);
	jv_set_str(ctx->arena, fields, "status", STR("idle"));
	if (r == 0 && caller->thread_id.len)
		r = thread_update(ws, ctx, item.board, caller->thread_id, fields, &thread, err);
	return r;
}
