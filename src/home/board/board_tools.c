/* SPDX-License-Identifier: Apache-2.0 */
/* The tools of boards. */
#include "home/board/board_internal.h"
#include "home/board/board_task_tools.h"
#include "home/files/files.h"

#define LIMIT_DEFAULT 50

/* --- text --- */

static void item_text(struct buf *text, const struct jv *item)
{
	struct str thread = jv_get_str(item, "assigned_thread_id");

	buf_printf(text, "%.*s [%.*s", STR_ARG(item_key(item)), STR_ARG(jv_get_str(item, "status")));
	if (!str_is(jv_get_str(item, "priority"), "neutral"))
		buf_printf(text, ", %.*s", STR_ARG(jv_get_str(item, "priority")));
	if (thread.len)
		buf_printf(text, ", thread %.*s", STR_ARG(thread));
	if (jv_get_str(item, "archived_at").len)
		buf_add(text, STR(", archived"));
	buf_printf(text, "] %.*s", STR_ARG(jv_get_str(item, "title")));
}

static void render_items(const struct jv *args, const struct jv *value, struct buf *text)
{
	const struct jv *items = jv_get(value, "items");

	(void)args;
	for (const struct jv_member *m = jv_first(items); m; m = m->next) {
		item_text(text, m->value);
		buf_char(text, '\n');
	}
	buf_printf(text, "%zu of %lld item%s", jv_count(items), (long long)jv_get_int(value, "total", 0),
		   plural((uint64_t)jv_get_int(value, "total", 0)));
	if (jv_get(value, "next_cursor"))
		buf_printf(text, "; continue with cursor %.*s", STR_ARG(jv_get_str(value, "next_cursor")));
}

static void render_deliverable(struct buf *text, const struct jv *d)
{
	buf_printf(text, "\ndelivered %.*s: %.*s", STR_ARG(jv_get_str(d, "at")),
		   STR_ARG(jv_get_str(d, "result_summary")));
	for (const struct jv_member *m = jv_first(jv_get(d, "artifacts")); m; m = m->next)
		buf_printf(text, "\n  %.*s (%lld bytes, sha256 %.12s)", STR_ARG(jv_get_str(m->value, "path")),
			   (long long)jv_get_int(m->value, "size_bytes", 0), jv_get_str(m->value, "sha256").ptr);
}

/* What must hold before the item can be completed. */
static void render_checks(struct buf *text, const struct jv *checks)
{
	for (const struct jv_member *m = jv_first(checks); m; m = m->next) {
		struct str command = jv_get_str(m->value, "command");

		if (command.len)
			buf_printf(text, "\ncheck: the command %.*s", STR_ARG(command));
		else
			buf_printf(text, "\ncheck: the file %.*s", STR_ARG(jv_get_str(m->value, "path")));
	}
}

static void render_item(const struct jv *args, const struct jv *value, struct buf *text)
{
	const struct jv *item = jv_get(value, "item"), *question = jv_get(item, "pending_question");

	(void)args;
	item_text(text, item);
	if (jv_get_str(item, "description").len)
		buf_printf(text, "\n%.*s", STR_ARG(jv_get_str(item, "description")));
	for (const struct jv_member *m = jv_first(jv_get(item, "assignments")); m; m = m->next)
		buf_printf(text, "\nassignment %.*s: %.*s, thread %.*s, %.*s", STR_ARG(jv_get_str(m->value, "id")),
			   STR_ARG(jv_get_str(m->value, "role")), STR_ARG(jv_get_str(m->value, "thread_id")),
			   STR_ARG(jv_get_str(m->value, "status")));
	for (const struct jv_member *m = jv_first(jv_get(item, "mounts")); m; m = m->next)
		buf_printf(text, "\nmount %.*s (%.*s)", STR_ARG(jv_get_str(m->value, "mount_path")),
			   STR_ARG(jv_get_str(m->value, "mode")));
	for (const struct jv_member *m = jv_first(jv_get(question, "questions")); m; m = m->next)
		buf_printf(text, "\nwaits for an answer: %.*s", STR_ARG(jv_get_str(m->value, "text")));
	if (!jv_is_null(jv_get(item, "pending_approval")))
		buf_lit(text, "\nwaits for an approval");
	if (!jv_count(jv_get(item, "deliverables")))
		render_checks(text, jv_get(item, "checks"));
	for (const struct jv_member *m = jv_first(jv_get(item, "deliverables")); m; m = m->next)
		render_deliverable(text, m->value);
	if (jv_get_str(value, "journal").len)
		buf_printf(text, "\n\n%.*s", STR_ARG(jv_get_str(value, "journal")));
}

static void render_threads(const struct jv *args, const struct jv *value, struct buf *text)
{
	(void)args;
	for (const struct jv_member *m = jv_first(jv_get(value, "threads")); m; m = m->next)
		buf_printf(text, "%.*s [%.*s, %.*s] %.*s: %.*s\n", STR_ARG(jv_get_str(m->value, "id")),
			   STR_ARG(jv_get_str(m->value, "purpose")), STR_ARG(jv_get_str(m->value, "status")),
			   STR_ARG(jv_get_str(m->value, "title")), STR_ARG(jv_get_str(m->value, "responsibility")));
	buf_printf(text, "%zu thread%s", jv_count(jv_get(value, "threads")),
		   plural(jv_count(jv_get(value, "threads"))));
}

static void render_comments(const struct jv *args, const struct jv *value, struct buf *text)
{
	(void)args;
	for (const struct jv_member *m = jv_first(jv_get(value, "comments")); m; m = m->next)
		buf_printf(text, "%.*s %.*s%s %.*s: %.*s\n", STR_ARG(jv_get_str(m->value, "id")),
			   STR_ARG(jv_get_str(m->value, "created_at")),
			   jv_get(m->value, "resolved_at") ? " (resolved)" : "",
			   STR_ARG(jv_get_str(m->value, "author")), STR_ARG(jv_get_str(m->value, "body")));
	buf_printf(text, "%zu comment%s", jv_count(jv_get(value, "comments")),
		   plural(jv_count(jv_get(value, "comments"))));
}

static void render_notices(const struct jv *args, const struct jv *value, struct buf *text)
{
	const struct jv *notices = jv_get(value, "notices");

	(void)args;
	for (const struct jv_member *m = jv_first(notices); m; m = m->next)
		buf_printf(text, "%.*s %.*s%s %.*s\n", STR_ARG(jv_get_str(m->value, "id")),
			   STR_ARG(jv_get_str(m->value, "created_at")),
			   jv_get_bool(m->value, "is_read", false) ? "" : " (new)",
			   STR_ARG(jv_get_str(m->value, "text")));
	buf_printf(text, "%zu notice%s", jv_count(notices), plural(jv_count(notices)));
	if (jv_get(value, "next_cursor"))
		buf_printf(text, "; continue with cursor %.*s", STR_ARG(jv_get_str(value, "next_cursor")));
}

static void render_journal(const struct jv *args, const struct jv *value, struct buf *text)
{
	(void)args;
	buf_add(text, jv_get_str(value, "journal").len ? jv_get_str(value, "journal") : STR("the journal is empty"));
}

/* --- results --- */

static int give(struct call *call, int r, const char *key, struct jv *value, struct outcome *ret)
{
	if (r)
		return r;
	ret->value = jv_object(call->ctx->arena);
	jv_set(call->ctx->arena, ret->value, key, value);
	return 0;
}

static struct jv *fields_of(struct call *call, const struct jv *args)
{
	struct jv *fields = jv_copy(call->ctx->arena, args);

	jv_remove(fields, "board");
	jv_remove(fields, "item");
	return fields;
}

static int caller_of(struct call *call, const struct jv *args, struct board_caller *ret, struct err *err)
{
	return board_caller(call->ws, call->ctx, jv_get_str(args, "board"), jv_get_str(args, "thread_id"), ret, err);
}

/* --- boards and items --- */

static int tool_list_boards(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct jv *boards = NULL;
	int r = board_all(call->ws, call->ctx, &boards, err);

	(void)args;
	return give(call, r, "boards", boards, ret);
}

static int tool_set_board(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct jv *board = NULL;
	int r = board_set(call->ws, call->ctx, jv_get_str(args, "board"), args, &board, err);

	return give(call, r, "board", board, ret);
}

/* How many items have which status; reads what changed since the last time. */
static int count_items(struct call *call, struct str board, struct jv **ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	struct board_list list = {.board = board, .limit = SIZE_MAX};
	struct jv *all;
	int r = board_item_list(call->ws, call->ctx, &list, &all, err);

	*ret = jv_object(arena);
	for (const struct jv_member *m = r ? NULL : jv_first(jv_get(all, "items")); m; m = m->next) {
		struct str status = jv_get_str(m->value, "status");
		const struct jv *n = jv_get_key(*ret, status);

		jv_set_key(arena, *ret, status, jv_int(arena, n ? n->u.i + 1 : 1));
	}
	return r;
}

static int tool_get_board(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct jv *board = NULL, *counts;
	int r = board_get(call->ws, call->ctx, jv_get_str(args, "board"), &board, err);

	if (r == 0)
		r = count_items(call, jv_get_str(args, "board"), &counts, err);
	if (r == 0)
		jv_set(call->ctx->arena, board, "counts", counts);
	return give(call, r, "board", board, ret);
}

static int tool_create_item(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct jv *item = NULL;
	int r = board_item_create(call->ws, call->ctx, jv_get_str(args, "board"), args, &item, err);

	return give(call, r, "item", item, ret);
}

static int tool_list_items(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct board_list list = {.board = jv_get_str(args, "board"),
				  .status = jv_get_str(args, "status"),
				  .thread_id = jv_get_str(args, "thread_id"),
				  .child_of = jv_get_str(args, "child_of"),
				  .archived = jv_get_bool(args, "archived", false),
				  .scheduled = jv_get_bool(args, "scheduled", false),
				  .limit = (size_t)arg_count(args, "limit", LIMIT_DEFAULT, STORE_PAGE_MAX),
				  .cursor = jv_get_str(args, "cursor")};

	return board_item_list(call->ws, call->ctx, &list, &ret->value, err);
}

static int tool_get_item(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct str journal = STR("");
	struct jv *item = NULL;
	int r = board_item_get(call->ws, call->ctx, arg_item(args), &item, err);

	if (r == 0 && jv_get_bool(args, "with_journal", false))
		r = board_journal_tail(call->ws, call->ctx, arg_item(args), &journal, err);
	r = give(call, r, "item", item, ret);
	if (r == 0 && journal.len)
		jv_set_str(call->ctx->arena, ret->value, "journal", journal);
	return r;
}

static int tool_update_item(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct board_audit what = {.tool = "update_item", .args = fields_of(call, args)};
	struct board_caller caller;
	struct jv *item = NULL;
	int r = caller_of(call, args, &caller, err);

	if (r)
		return r;
	r = board_item_update(call->ws, call->ctx, arg_item(args), what.args, &caller, &item, err);
	what.err = r ? err : NULL;
	board_audit(call->ws, call->ctx, arg_item(args), &caller, &what);
	return give(call, r, "item", item, ret);
}

static int tool_archive_item(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct jv *item = NULL;
	int r = board_item_archive(call->ws, call->ctx, arg_item(args), &item, err);

	return give(call, r, "item", item, ret);
}

static int tool_unarchive_item(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct jv *item = NULL;
	int r = board_item_unarchive(call->ws, call->ctx, arg_item(args), &item, err);

	return give(call, r, "item", item, ret);
}

/* --- threads and assignments --- */

static int tool_list_threads(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct jv *threads = NULL;
	int r = thread_list(call->ws, call->ctx, jv_get_str(args, "board"), &threads, err);

	return give(call, r, "threads", threads, ret);
}

static int tool_create_thread(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct jv *thread = NULL;
	int r = thread_create(call->ws, call->ctx, jv_get_str(args, "board"), args, &thread, err);

	return give(call, r, "thread", thread, ret);
}

static int tool_update_thread(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct jv *thread = NULL;
	int r = thread_update(call->ws, call->ctx, jv_get_str(args, "board"), jv_get_str(args, "thread_id"), args,
			      &thread, err);

	return give(call, r, "thread", thread, ret);
}

static int tool_assign_item(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	return item_assign(call->ws, call->ctx, arg_item(args), args, &ret->value, err);
}

static int tool_update_assignment(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct board_audit what = {.tool = "update_assignment", .args = fields_of(call, args)};
	struct board_caller caller;
	int r = caller_of(call, args, &caller, err);

	if (r)
		return r;
	r = assignment_update(call->ws, call->ctx, arg_item(args), what.args, &caller, &ret->value, err);
	what.err = r ? err : NULL;
	board_audit(call->ws, call->ctx, arg_item(args), &caller, &what);
	return r;
}

static int tool_delegate_item(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	return item_delegate(call->ws, call->ctx, jv_get_str(args, "board"), args, &ret->value, err);
}

static int tool_stop_work(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct board_caller caller;
	struct jv *item = NULL;
	int r = caller_of(call, args, &caller, err);

	if (r == 0)
		r = board_stop(call->ws, call->ctx, arg_item(args), &caller, err);
	if (r == 0)
		r = board_item_get(call->ws, call->ctx, arg_item(args), &item, err);
	return give(call, r, "item", item, ret);
}

/* --- talk --- */

static int tool_comment_item(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct board_caller caller;
	struct jv *comment = NULL;
	int r = caller_of(call, args, &caller, err);

	if (r == 0)
		r = comment_add(call->ws, call->ctx, arg_item(args), args, &caller, &comment, err);
	return give(call, r, "comment", comment, ret);
}

static int tool_list_comments(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	return comment_list(call->ws, call->ctx, arg_item(args), (size_t)arg_count(args, "limit", LIMIT_DEFAULT, 1000),
			    jv_get_str(args, "cursor"), &ret->value, err);
}

static int tool_resolve_comment(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct board_caller caller;
	struct jv *comment = NULL;
	int r = caller_of(call, args, &caller, err);

	if (r == 0)
		r = comment_resolve(call->ws, call->ctx, arg_item(args), args, &caller, &comment, err);
	return give(call, r, "comment", comment, ret);
}

static int tool_ask_question(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct board_caller caller;
	struct jv *item = NULL;
	int r = caller_of(call, args, &caller, err);

	if (r == 0)
		r = question_ask(call->ws, call->ctx, arg_item(args), args, &caller, &item, err);
	return give(call, r, "item", item, ret);
}

static int tool_request_approval(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct board_caller caller;
	struct jv *item = NULL;
	int r = caller_of(call, args, &caller, err);

	if (r == 0)
		r = approval_request(call->ws, call->ctx, arg_item(args), args, &caller, &item, err);
	return give(call, r, "item", item, ret);
}

static int tool_watch_item(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct board_caller caller;
	struct jv *item = NULL;
	int r = caller_of(call, args, &caller, err);

	if (r == 0)
		r = item_watch(call->ws, call->ctx, arg_item(args), caller.thread_id, jv_get(args, "events"), &item,
			       err);
	return give(call, r, "item", item, ret);
}

static int tool_notify_user(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	struct jv *notice = jv_object(arena);
	struct str board = STR("");
	struct board_caller caller;
	int r = board_name(jv_get_str(args, "board"), &board, err);

	if (r == 0)
		r = caller_of(call, args, &caller, err);
	if (r)
		return r;
	jv_set_str(arena, notice, "kind", STR("message"));
	jv_set_str(arena, notice, "from", caller.name);
	if (jv_get_str(args, "item").len)
		jv_set_str(arena, notice, "board_item_id", jv_get_str(args, "item"));
	jv_set_str(arena, notice, "text", jv_get_str(args, "text"));
	r = notice_add(call->ws, call->ctx, board, notice, err);
	return give(call, r, "notice", notice, ret);
}

static int tool_list_notices(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	return notice_list(call->ws, call->ctx, jv_get_str(args, "board"), args, &ret->value, err);
}

static int tool_read_notices(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	return notice_mark(call->ws, call->ctx, jv_get_str(args, "board"), jv_get(args, "ids"), &ret->value, err);
}

/* --- the journal --- */

static int tool_read_journal(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct str journal = STR("");
	struct item item;
	int r = item_load(call->ws, call->ctx, arg_item(args), &item, err);

	if (r == 0)
		r = item_journal_read(call->ws, call->ctx, &item, &journal, err);
	if (r)
		return r;
	if (!jv_get_bool(args, "whole", false))
		journal = item_journal_tail(call->ctx->arena, journal);
	return give(call, 0, "journal", jv_str(call->ctx->arena, journal), ret);
}

static int tool_add_journal(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct str tail = STR("");
	int r = board_journal_add(call->ws, call->ctx, arg_item(args), jv_get_str(args, "text"), err);

	if (r == 0)
		r = board_journal_tail(call->ws, call->ctx, arg_item(args), &tail, err);
	return give(call, r, "journal", jv_str(call->ctx->arena, tail), ret);
}

/* clang-format off */
#define BOARD    "board: default main"
#define ITEM     "item!: its id or key\n" BOARD
#define THREAD   "\nthread_id: the lane that acts (default: the session's)"
#define PRIORITY "priority urgent|high|neutral|low: default neutral\n"
#define CHECKS   "checks [{path; min_size int>=0; json_schema obj; matches; command}]<=50: what must be true of files at completion; " \
		 "matches: a regular expression of a line; command: runs in /task, sandboxed, must exit with 0\n"
#define MOUNTS   "mounts [{mount_path!; s3_relative_key; source; mode ro|rw; description str<=512}]<=16: stores shown below /task; " \
		 "key: a path in a store of boards.mounts\n"
#define TASKPATH "path!: below /task, such as artifacts/summary.md\n"
#define HANDOFF  "result_summary: what came of it, at least 30 characters; needed to complete, fail, block, reject or ask back\n" \
		 "artifacts [{path!; kind; note}]<=100: files of the task that are the result; needed to complete\n" \
		 "findings: one line of at most 200 characters, as are the next two\ncautions\nnext"
#define STATUSES "pending|available|claimed|in_progress|completed|blocked|needs_clarification|rejected|failed|cancelled|" \
		 "waiting_for_children"
#define AN_ITEM  "item! {...}; journal"
#define WRITTEN  "path!; size! int; version!; action!; bytes_written! int; lines_written! int"

static const struct tool tools[] = {
	{
		.name = "list_boards", .title = "List boards", .traits = RO, .call = tool_list_boards,
		.description = "Lists the task boards of the workspace.",
		.result = "boards! [{id!; title!; ...}]",
	},
	{
		.name = "set_board", .title = "Create or change a board", .traits = TOOL_IDEMPOTENT, .call = tool_set_board,
		.description = "Creates a task board, or changes its title and description.",
		.args = "board!: lower-case letters, digits, '-' and '_'\ntitle str<=200\ndescription str<=4000",
		.result = "board! {id!; title!; ...}",
	},
	{
		.name = "get_board", .title = "Show a board", .traits = RO, .call = tool_get_board,
		.description = "Shows a board and how many of its items have each status.",
		.args = BOARD,
		.result = "board! {id!; title!; counts! obj; ...}",
	},
	{
		.name = "create_item", .title = "Create a board item", .call = tool_create_item, .render = render_item,
		.description =
			"Puts a task on a board. It gets its own filesystem, /task, with the brief in TASK.md. Returns its id and key.",
		.args =
			"title! str>=1<=300: what is to be done\n"
			"description str<=65536: the brief\n"
			PRIORITY
			"status pending|available|blocked|needs_clarification: default pending\n"
			"child_of: the item that it is a part of\n"
			CHECKS MOUNTS
			"metadata obj: anything else\n"
			"schedule_kind once|interval: interval: a new item every interval_seconds from next_run_at on\n"
			"next_run_at: such as 2026-11-30T09:00:00Z\ninterval_seconds int\n"
			"overlap parallel|skip: default parallel; skip: no new item while one is open\n"
			BOARD,
		.result = AN_ITEM,
	},
	{
		.name = "list_items", .title = "List board items", .traits = RO, .call = tool_list_items, .render = render_items,
		.description = "Lists the items of a board, newest first.",
		.args =
			"status " STATUSES ": only items with this status\n"
			"thread_id: only items of this thread\n"
			"child_of: only parts of the item with this id\n"
			"archived bool: only archived items\n"
			"scheduled bool: only items whose time has not come\n"
			"limit int>=1<=10000: default 50\n"
			"cursor: next_cursor of the previous page\n"
			BOARD,
		.result = "items! [{...}]; total! int; next_cursor",
	},
	{
		.name = "get_item", .title = "Show a board item", .traits = RO, .call = tool_get_item, .render = render_item,
		.description = "Shows an item with its assignments, deliverables, mounts, and what it waits for.",
		.args = "with_journal bool: also the end of its journal\n" ITEM,
		.result = AN_ITEM,
	},
	{
		.name = "update_item", .title = "Update a board item", .call = tool_update_item, .render = render_item,
		.description =
			"Changes an item, or its status. To complete it, give result_summary and artifacts: every artifact must exist and "
			"not be empty, and the checks of the item must pass. An item that has ended is reopened with status pending.",
		.args =
			"status " STATUSES "\n"
			HANDOFF "\n"
			"title str>=1<=300\ndescription str<=65536: the brief\n"
			PRIORITY CHECKS MOUNTS
			"metadata obj: replaces what is kept with it\n"
			"clear_schedule bool: put it on the board now, and end its schedule\n"
			ITEM THREAD,
		.result = AN_ITEM,
	},
	{
		.name = "archive_item", .title = "Archive a board item", .traits = TOOL_DESTRUCTIVE, .call = tool_archive_item,
		.render = render_item,
		.description = "Takes an item off the board and frees the space of its files. unarchive_item brings it back.",
		.args = ITEM,
		.result = AN_ITEM,
	},
	{
		.name = "unarchive_item", .title = "Take a board item back", .call = tool_unarchive_item, .render = render_item,
		.description = "Puts an archived item and its files back on the board.",
		.args = ITEM,
		.result = AN_ITEM,
	},
	{
		.name = "list_threads", .title = "List threads", .traits = RO, .call = tool_list_threads, .render = render_threads,
		.description = "Lists the lanes of a board, which work can be assigned to.",
		.args = BOARD,
		.result = "threads! [{id!; purpose!; status!; ...}]",
	},
	{
		.name = "create_thread", .title = "Create a thread", .call = tool_create_thread,
		.description = "Creates a lane. It is refused when another lane is responsible for nearly the same.",
		.args =
			"title! str>=1<=200\n"
			"responsibility str<=2000: what it does, in at least 30 characters and 4 words; needed unless it is a conversation\n"
			"purpose conversation|coordinator|execution|review: default execution\n"
			"assigned_agent_name str<=200: the agent that runs it\n"
			"capability_tags [str]<=50\n"
			"reusable bool: default true\n"
			"accepts_assignments bool: default true\n"
			"system_instructions: at most 160 words and 1200 characters\n"
			BOARD,
		.result = "thread! {id!; purpose!; status!; ...}",
	},
	{
		.name = "update_thread", .title = "Update a thread", .call = tool_update_thread,
		.description = "Changes the description or the status of a lane.",
		.args =
			"thread_id!\n"
			"status idle|running|waiting_for_input|interrupted|completed|failed\n"
			"title str>=1<=200\n"
			"responsibility str<=2000\n"
			"assigned_agent_name str<=200\n"
			"capability_tags [str]<=50\n"
			"reusable bool\n"
			"accepts_assignments bool\n"
			"system_instructions\n"
			BOARD,
		.result = "thread! {id!; purpose!; status!; ...}",
	},
	{
		.name = "assign_item", .title = "Assign a board item", .call = tool_assign_item, .traits = TOOL_IDEMPOTENT,
		.description =
			"Assigns an item to a lane. Lanes work on an item one after the other, in the order of assignment. An item that has "
			"ended is reopened.",
		.args =
			"thread_id!: the lane\n"
			"role executor|reviewer|specialist_reviewer|approver|observer|coordinator: default executor\n"
			"instructions str<=65536: what this lane is to do\n"
			"handoff_file_path: a file of /task/handoff that it starts from\n"
			ITEM,
		.result = "item! {...}; assignment! {id!; status!; ...}",
	},
	{
		.name = "update_assignment", .title = "Update an assignment", .call = tool_update_assignment,
		.description =
			"Claims, starts or ends the assignment of a lane. Its result goes to the journal, and the coordinator decides what "
			"comes next. To complete it, give result_summary and artifacts.",
		.args =
			"status! claimed|in_progress|completed|rejected|blocked|cancelled\n"
			"assignment_id: default: the open one of the lane that acts\n"
			"result_status completed|blocked|failed|needs_clarification|needs_replan|rejected|cancelled: default: the status\n"
			HANDOFF "\n"
			ITEM THREAD,
		.result = "item! {...}; assignment! {id!; status!; ...}",
	},
	{
		.name = "delegate_item", .title = "Delegate a task", .call = tool_delegate_item,
		.description = "Creates an item for one lane alone: when the lane completes its assignment, the item is completed.",
		.args =
			"title! str>=1<=300\n"
			"description! str<=65536: its scope and its output, in at least 80 characters and 14 words\n"
			"thread_id!: the lane\n"
			BOARD,
		.result = "task_key!; board_item_id!; target_lane_thread_id!; assigned_agent_id!",
	},
	{
		.name = "stop_work", .title = "Stop working on a board item", .call = tool_stop_work, .render = render_item,
		.description =
			"Ends the run of a lane. It is refused while something is left undone, which the refusal names.",
		.args = ITEM THREAD,
		.result = AN_ITEM,
	},
	{
		.name = "comment_item", .title = "Comment on a board item", .call = tool_comment_item,
		.description = "Adds a comment. A user's comment pauses work on the item until the coordinator has decided.",
		.args = "body! str>=1<=65536\nmetadata obj\n" ITEM THREAD,
		.result = "comment! {id!; body!; author!; created_at!; ...}",
	},
	{
		.name = "list_comments", .title = "List comments", .traits = RO, .call = tool_list_comments, .render = render_comments,
		.description = "Lists the newest comments of an item, the newest last, and whether they are resolved.",
		.args = "limit int>=1<=1000: default 50\ncursor: next_cursor of the previous page\n" ITEM,
		.result = "comments! [{id!; body!; author!; created_at!; ...}]; next_cursor",
	},
	{
		.name = "resolve_comment", .title = "Resolve a comment", .traits = TOOL_IDEMPOTENT, .call = tool_resolve_comment,
		.description = "Marks a comment as resolved and says how.",
		.args = "comment_id!\nresolution_summary str<=4000\n" ITEM THREAD,
		.result = "comment! {id!; resolved_at!; ...}",
	},
	{
		.name = "ask_user", .title = "Ask the user", .call = tool_ask_question, .render = render_item,
		.description = "Asks the user one or more questions about an item, which waits for the answer.",
		.args =
			"questions! [{text! str>=1<=4000; id; kind free_text|single_choice|multi_choice|yes_no|number|date|confirm; "
			"options [str]}]>=1<=20: the default kind is free_text\n"
			ITEM THREAD,
		.result = AN_ITEM,
	},
	{
		.name = "request_approval", .title = "Request an approval", .call = tool_request_approval, .render = render_item,
		.description = "Asks the user to approve the use of tools for an item.",
		.args =
			"tools! [{tool_name!; arguments obj; reason str<=1000}]>=1<=50\n"
			"message str<=4000\n"
			ITEM THREAD,
		.result = AN_ITEM,
	},
	{
		.name = "watch_item", .title = "Watch a board item", .traits = TOOL_IDEMPOTENT, .call = tool_watch_item,
		.render = render_item,
		.description = "Tells a lane when an item is completed, blocked or cancelled, as a notice. An empty list ends this.",
		.args = "events! [completed|blocked|cancelled|failed|rejected]<=5\n" ITEM THREAD,
		.result = AN_ITEM,
	},
	{
		.name = "notify_user", .title = "Notify the user", .call = tool_notify_user,
		.description = "Leaves a notice for the user.",
		.args = "text! str>=1<=4000\nitem: the item it is about\n" BOARD THREAD,
		.result = "notice! {text!; ...}",
	},
	{
		.name = "list_notices", .title = "List notices", .traits = RO, .call = tool_list_notices, .render = render_notices,
		.description = "Lists notices for the user, or for a lane, newest first.",
		.args =
			"thread_id: notices for this lane (default: the user's)\n"
			"unread bool: only unread notices\n"
			"limit int>=1<=1000: default 50\n"
			"cursor: next_cursor of the previous page\n"
			BOARD,
		.result = "notices! [{id!; text; is_read! bool; ...}]; next_cursor",
	},
	{
		.name = "read_notices", .title = "Mark notices as read", .traits = TOOL_IDEMPOTENT, .call = tool_read_notices,
		.description = "Marks notices as read.",
		.args = "ids! [str]<=1000\n" BOARD,
		.result = "marked! int",
	},
	{
		.name = "read_journal", .title = "Read the journal", .traits = RO, .call = tool_read_journal, .render = render_journal,
		.description = "Reads the end of an item's journal: what each lane handed over.",
		.args = "whole bool: the whole journal\n" ITEM,
		.result = "journal!",
	},
	{
		.name = "add_journal", .title = "Add to the journal", .call = tool_add_journal, .render = render_journal,
		.description = "Adds a section to an item's journal. Nothing in the journal can be changed.",
		.args = "text! str>=1<=65536: Markdown\n" ITEM,
		.result = "journal!",
	},
	{
		.name = "item_ls", .title = "List files of an item", .traits = RO, .call = tool_item_ls, .render = render_ls,
		.description = "Lists a directory of an item's /task.",
		.args =
			"path: directory (default /task)\n"
			"depth int>=1: levels to descend, 1 to 20 (default 1)\n"
			"limit int>=1: number of entries (default 1000, at most 10000)\n"
			"cursor: next_cursor of the previous page\n"
			ITEM,
		.result =
			"path!\n"
			"entries! [{path!; kind!; size int; modified}]: in list order\n"
			"total int; total_at_least int; skipped int; next_cursor",
	},
	{
		.name = "item_read", .title = "Read a file of an item", .traits = RO, .call = tool_item_read, .render = render_read_file,
		.description = "Reads a file of an item's /task by lines, or by bytes.",
		.args =
			TASKPATH
			"offset int>=0: first line, from 1 (default 1)\n"
			"limit int>=1: number of lines (default 2000)\n"
			"byte_offset int>=0: first byte; reads by bytes\n"
			"byte_limit int>=1: number of bytes (default 40960)\n"
			"encoding utf-8|base64: encoding of the content (default utf-8)\n"
			ITEM,
		.result =
			"path!; size! int; version!; revision int; content!; encoding!; offset int; lines int; total_lines int; "
			"total_lines_at_least int; next_offset int; byte_offset int; bytes int; next_byte_offset int\n"
			"cut_lines [{line! int; byte_offset! int; bytes_left! int}]: lines that were cut",
	},
	{
		.name = "item_grep", .title = "Search files of an item", .traits = RO | TOOL_LONG, .call = tool_item_grep,
		.render = render_grep,
		.description = "Finds lines in the files of an item's /task by regular expression or literal text.",
		.args =
			"pattern!: a Perl-compatible regular expression, or text if literal is set\n"
			"path: file or directory (default /task)\n"
			"literal bool: search for the pattern as plain text\n"
			"limit int>=1: number of lines (default 100, at most 10000)\n"
			"cursor: next_cursor of the previous page\n"
			ITEM,
		.result =
			"lines [{path!; line! int; text!; context bool; cut bool; group_start bool}]\n"
			"files [{path!; count! int}]\n"
			"total_matches! int; total_files! int; searched! int; binary_skipped int; unreadable int; next_cursor",
	},
	{
		.name = "item_write", .title = "Write a file of an item", .traits = TOOL_DESTRUCTIVE, .call = tool_item_write,
		.render = render_written,
		.description =
			"Writes a file of an item's /task. Deliverables go to artifacts/, files for the next lane to handoff/. JOURNAL.md can "
			"only be appended to.",
		.args =
			TASKPATH
			"content!: what to write\n"
			"mode create|overwrite|append: default create\n"
			"encoding utf-8|base64: encoding of the content (default utf-8)\n"
			"if_version: change the file only if it still has this version\n"
			ITEM THREAD,
		.result = WRITTEN,
	},
	{
		.name = "item_edit", .title = "Replace text in a file of an item", .traits = TOOL_DESTRUCTIVE, .call = tool_item_edit,
		.render = render_edit,
		.description = "Replaces old_text, which must occur exactly once, in a file of an item's /task.",
		.args =
			TASKPATH
			"old_text!: the exact text to replace\n"
			"new_text!: the text that replaces it\n"
			"replace_all bool: replace every occurrence\n"
			ITEM THREAD,
		.result =
			"path!; size! int; version!; replaced! int\n"
			"lines! [int]: the lines where it was found, from 1\n"
			"dry_run! bool; diff!; matched_crlf bool",
	},
	{
		.name = "item_move", .title = "Move a file of an item", .traits = TOOL_DESTRUCTIVE, .call = tool_item_move,
		.render = render_moved,
		.description = "Moves a file or directory of an item's /task.",
		.args =
			"from!: path below /task\n"
			"to!: its new path\n"
			"overwrite bool: replace an existing file\n"
			ITEM THREAD,
		.result = "path!; size int; version!; action!; from!; kind!",
	},
	{
		.name = "item_delete", .title = "Delete a file of an item", .traits = TOOL_DESTRUCTIVE, .call = tool_item_delete,
		.render = render_removed,
		.description = "Deletes a file, or with recursive a directory, of an item's /task.",
		.args =
			TASKPATH
			"recursive bool: required for a directory\n"
			ITEM THREAD,
		.result = "path!; removed! int",
	},
	{0},
};
/* clang-format on */

const struct family board_family = {
	.name = "board",
	.about = "Task boards: items with their own filesystems, lanes, checked deliverables, journals.",
	.tools = tools,
	.commands = board_commands,
	.prompt = board_sections,
	.open = board_state_new,
	.close = board_state_destroy,
	.files = board_root_files,
	.check = board_check,
};
