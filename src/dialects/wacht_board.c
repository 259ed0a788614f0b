/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wacht's tools for tasks, lanes and the loop, over the native tools of boards. An agent of Wacht works on one task:
 * the one whose /task is the tool root (`--root task:TASK-…`), unless a call names another; its thread is the session
 * of the connection. An execution or review lane that calls a task complete ends its own assignment: the coordinator
 * decides about the task.
 */
#include "dialects/wacht_board.h"

#include <time.h>

#include "base/clock.h"

extern const struct family board_family;

/* A native tool of boards, called with mapped arguments. */
/* The board that is meant when none is named: that of the lane which the connection is bound to. */
static struct str own_board(struct call *call)
{
	struct board_caller caller;
	struct err ignored;

	if (board_caller(call->ws, call->ctx, STR(""), STR(""), &caller, &ignored) != 0)
		return STR("");
	return caller.board;
}

static int native(struct call *call, const char *name, struct jv *args, struct outcome *ret, struct err *err)
{
	struct str board = jv_get_str(args, "board").len ? STR("") : own_board(call);

	if (board.len)
		jv_set_str(call->ctx->arena, args, "board", board);
	for (const struct tool *tool = board_family.tools; tool->name; tool++)
		if (str_is(str_of(name), tool->name))
			return tool->call(call, args, ret, err);
	return err_set(err, ERR_INTERNAL, "there is no tool %s", name);
}

static bool names_item(const struct jv *args)
{
	return jv_get_str(args, "board_item_id").len || jv_get_str(args, "task_key").len;
}

bool wacht_item(struct call *call, const struct jv *args, struct board_ref *ret)
{
	struct str id = jv_get_str(args, "board_item_id"), key = jv_get_str(args, "task_key");
	bool bound = board_bound_item(call->ws, call->ctx, ret);

	if (!bound)
		*ret = (struct board_ref){0};
	if (id.len || key.len)
		ret->ref = id.len ? id : key;
	if (ret->ref.len && !ret->board.len)
		ret->board = own_board(call);
	return ret->ref.len > 0;
}

/* The arguments of a native tool about the item. */
static int item_args(struct call *call, const struct jv *args, const char *const *pairs, struct jv **ret,
		     struct err *err)
{
	struct board_ref ref;

	*ret = args_map(call->ctx->arena, args, pairs);
	if (!wacht_item(call, args, &ref))
		return err_set(err, ERR_INVALID, "name the task: task_key or board_item_id");
	jv_set_str(call->ctx->arena, *ret, "item", ref.ref);
	if (ref.board.len)
		jv_set_str(call->ctx->arena, *ret, "board", ref.board);
	return 0;
}

static int finish(struct call *call, int r, const char *tool, struct outcome *ret)
{
	struct arena *arena = call->ctx->arena;
	struct jv *v = jv_object(arena);

	if (r)
		return r;
	jv_set_bool(arena, v, "success", true);
	jv_set_str(arena, v, "tool", str_of(tool));
	for (const struct jv_member *m = jv_first(ret->value); m; m = m->next)
		jv_set_key(arena, v, m->key, m->value);
	*ret = (struct outcome){.value = v};
	return 0;
}

/* The same over the files of the thread that the connection is bound to: /workspace and /uploads. */
static int over_thread(struct call *call, const struct jv *args, wacht_tool tool, struct outcome *ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	struct jv *mapped = jv_copy(arena, args);
	struct call inner = *call;
	struct board_caller caller;
	struct wpath path;
	int r = board_thread_path(arena, jv_get_str(args, "path"), &path, err);

	if (r == 0)
		r = board_caller(call->ws, call->ctx, STR(""), STR(""), &caller, err);
	if (r == 0 && !caller.thread_id.len)
		r = err_set(err, ERR_INVALID,
			    "the path \"%.*s\" belongs to a thread, and this connection is bound to none; use /task/…",
			    STR_ARG(utf8_first(jv_get_str(args, "path"), 150)));
	if (r == 0)
		r = board_thread_open(call->ws, call->ctx, caller.board, caller.thread_id, &inner.files, err);
	if (r)
		return r;
	jv_set_str(arena, mapped, "path", path.s);
	r = tool(&inner, mapped, ret, err);
	store_destroy(inner.files);
	if (r == 0)
		jv_set_str(arena, ret->value, "path", arena_printf(arena, "/%.*s", STR_ARG(path.s)));
	return r;
}

int wacht_over_task(struct call *call, const struct jv *args, wacht_tool tool, struct outcome *ret, struct err *err)
{
	struct board_ref ref;
	struct call inner = *call;
	int r;

	if (board_is_thread_path(jv_get_str(args, "path")))
		return over_thread(call, args, tool, ret, err);
	if (!wacht_item(call, args, &ref))
		return tool(call, args, ret, err);
	if (call->files != workspace_files(call->ws) && !names_item(args))
		return tool(call, args, ret, err); /* the task of this connection, which is open */
	r = board_task_open(call->ws, call->ctx, ref, &inner.files, err);
	if (r)
		return r;
	r = tool(&inner, args, ret, err);
	store_destroy(inner.files);
	return r;
}

/* --- tasks --- */

#define HANDOFF_PAIRS                                                                                                  \
	"status", "status", "result_summary", "result_summary", "artifacts", "artifacts", "findings", "findings",      \
		"cautions", "cautions", "next", "next"

int wacht_create(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct jv *mapped =
		args_map(call->ctx->arena, args,
			 (const char *const[]){"title", "title", "description", "description", "status", "status",
					       "priority", "priority", "child_of", "child_of", "mounts", "mounts",
					       "checks", "checks", "metadata", "metadata", NULL});
	struct board_ref ref;

	if (board_bound_item(call->ws, call->ctx, &ref))
		jv_set_str(call->ctx->arena, mapped, "board", ref.board);
	return finish(call, native(call, "create_item", mapped, ret, err), "create_project_task", ret);
}

int wacht_update(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct board_caller caller;
	struct jv *mapped;
	bool by_lane;
	int r = item_args(call, args,
			  (const char *const[]){HANDOFF_PAIRS, "title", "title", "description", "description",
						"priority", "priority", "metadata", "metadata", NULL},
			  &mapped, err);

	if (r == 0)
		r = board_caller(call->ws, call->ctx, jv_get_str(mapped, "board"), STR(""), &caller, err);
	if (r)
		return r;
	by_lane = str_is(caller.purpose, "execution") || str_is(caller.purpose, "review");
	if (by_lane && str_is(jv_get_str(mapped, "status"), "completed"))
		r = native(call, "update_assignment", mapped, ret, err);
	else
		r = native(call, "update_item", mapped, ret, err);
	return finish(call, r, "update_project_task", ret);
}

int wacht_assign(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct jv *mapped;
	int r = item_args(call, args,
			  (const char *const[]){"thread_id", "thread_id", "role", "role", "instructions",
						"instructions", "handoff_file_path", "handoff_file_path", NULL},
			  &mapped, err);

	if (r == 0)
		r = board_check_brief(call->ws, call->ctx,
				      (struct board_ref){jv_get_str(mapped, "board"), jv_get_str(mapped, "item")}, err);
	return r ? r : finish(call, native(call, "assign_item", mapped, ret, err), "assign_project_task", ret);
}

int wacht_get(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct jv *mapped;
	int r = item_args(call, args, (const char *const[]){NULL}, &mapped, err);

	if (r)
		return r;
	jv_set_bool(call->ctx->arena, mapped, "with_journal", true);
	return finish(call, native(call, "get_item", mapped, ret, err), "get_project_task", ret);
}

/* --- lanes --- */

static int with_board(struct call *call, const struct jv *args, const char *tool, struct outcome *ret, struct err *err)
{
	struct jv *mapped = jv_copy(call->ctx->arena, args);
	struct board_ref ref;

	if (board_bound_item(call->ws, call->ctx, &ref))
		jv_set_str(call->ctx->arena, mapped, "board", ref.board);
	return finish(call, native(call, tool, mapped, ret, err), tool, ret);
}

int wacht_list_threads(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	return with_board(call, args, "list_threads", ret, err);
}

int wacht_create_thread(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	return with_board(call, args, "create_thread", ret, err);
}

int wacht_update_thread(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	return with_board(call, args, "update_thread", ret, err);
}

static int watch(struct call *call, const struct jv *args, const char *name, const struct jv *events,
		 struct outcome *ret, struct err *err)
{
	struct jv *mapped;
	int r = item_args(call, args, (const char *const[]){"thread_id", "thread_id", NULL}, &mapped, err);

	if (r)
		return r;
	jv_set(call->ctx->arena, mapped, "events", (struct jv *)events);
	return finish(call, native(call, "watch_item", mapped, ret, err), name, ret);
}

int wacht_subscribe(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	static const char *const all[] = {"completed", "blocked", "cancelled"};
	struct jv *events = jv_array(call->ctx->arena);

	for (size_t i = 0; i < COUNT(all); i++)
		jv_push(call->ctx->arena, events, jv_str(call->ctx->arena, str_of(all[i])));
	return watch(call, args, "subscribe_to_task",
		     jv_count(jv_get(args, "events")) ? jv_get(args, "events") : events, ret, err);
}

int wacht_unsubscribe(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	return watch(call, args, "unsubscribe", jv_array(call->ctx->arena), ret, err);
}

int wacht_delegate(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct jv *mapped = args_map(call->ctx->arena, args,
				     (const char *const[]){"target_lane_thread_id", "thread_id", "title", "title",
							   "description", "description", NULL});
	struct board_ref ref;

	if (board_bound_item(call->ws, call->ctx, &ref))
		jv_set_str(call->ctx->arena, mapped, "board", ref.board);
	return finish(call, native(call, "delegate_item", mapped, ret, err), "delegate_task", ret);
}

/* --- the user --- */

int wacht_ask(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct jv *mapped;
	int r = item_args(call, args, (const char *const[]){"questions", "questions", NULL}, &mapped, err);

	return r ? r : finish(call, native(call, "ask_user", mapped, ret, err), "ask_user", ret);
}

int wacht_notify(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct jv *mapped = args_map(call->ctx->arena, args, (const char *const[]){"message", "text", NULL});
	struct board_ref ref;

	if (wacht_item(call, args, &ref)) {
		jv_set_str(call->ctx->arena, mapped, "item", ref.ref);
		jv_set_str(call->ctx->arena, mapped, "board", ref.board);
	}
	return finish(call, native(call, "notify_user", mapped, ret, err), "notify_user", ret);
}

int wacht_resolve(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct jv *mapped;
	int r = item_args(
		call, args,
		(const char *const[]){"comment_id", "comment_id", "resolution_summary", "resolution_summary", NULL},
		&mapped, err);

	return r ? r : finish(call, native(call, "resolve_comment", mapped, ret, err), "resolve_user_feedback", ret);
}

/* --- the loop --- */

int wacht_terminate(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	static const char *const names[] = {"summary", "artifacts", "blockers", "next_actions"};
	struct arena *arena = call->ctx->arena;
	struct jv *mapped;
	int r = item_args(call, args, (const char *const[]){NULL}, &mapped, err);

	if (r == 0)
		r = native(call, "stop_work", mapped, ret, err);
	r = finish(call, r, "terminate_loop", ret);
	for (size_t i = 0; r == 0 && i < COUNT(names); i++)
		if (jv_get(args, names[i]))
			jv_set(arena, ret->value, names[i], jv_copy(arena, jv_get(args, names[i])));
	return r;
}

int wacht_abort(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	bool returns = str_is(jv_get_str(args, "outcome"), "return_to_coordinator");
	struct arena *arena = call->ctx->arena;
	struct jv *mapped;
	int r = item_args(call, args, (const char *const[]){"reason", "result_summary", NULL}, &mapped, err);

	if (r)
		return r;
	jv_set_str(arena, mapped, "status", returns ? STR("rejected") : STR("blocked"));
	jv_set_str(arena, mapped, "result_status", returns ? STR("needs_replan") : STR("blocked"));
	return finish(call, native(call, "update_assignment", mapped, ret, err), "abort_task", ret);
}

int wacht_sleep(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	int64_t end = clock_monotonic_ns() + jv_get_int(args, "duration", 1) * NS_PER_S;
	int r = 0;

	while (r == 0 && clock_monotonic_ns() < end) {
		struct timespec pause = {.tv_nsec = 50 * NS_PER_MS};

		nanosleep(&pause, NULL);
		r = ctx_check(call->ctx, err);
	}
	ret->value = jv_object(call->ctx->arena);
	jv_set(call->ctx->arena, ret->value, "duration", jv_int(call->ctx->arena, jv_get_int(args, "duration", 1)));
	return finish(call, r, "sleep", ret);
}
