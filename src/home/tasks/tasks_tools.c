/* SPDX-License-Identifier: Apache-2.0 */
/* Tools over TASKS.yaml. */

#include "base/clock.h"
#include "home/tasks/tasks.h"
#include "tool/call.h"
#include "tool/family.h"

#define NS_PER_MIN (INT64_C(60) * 1000000000)

/* --- text --- */

static void add_age(struct buf *text, int64_t ns)
{
	long long minutes = (long long)(ns / NS_PER_MIN);

	if (minutes < 60)
		buf_printf(text, "%lld min", minutes);
	else if (minutes < 48 * 60)
		buf_printf(text, "%lld h", minutes / 60);
	else
		buf_printf(text, "%lld d", minutes / (24 * 60));
}

static const char *icon_of(struct str status)
{
	return str_is(status, "completed")        ? "[x]"
	       : str_is(status, "in_progress")    ? "[>]"
	       : str_is(status, "awaiting_check") ? "[?]"
	       : str_is(status, "failed")         ? "[!]"
	       : str_is(status, "cancelled")      ? "[-]"
						  : "[ ]";
}

/* One line: "[ ] 1a2b3c4d research, high, 2 h old: Compare the two drafts". */
static void task_line(struct buf *text, const struct jv *task)
{
	struct str id = jv_get_str(task, "short_id"), what = jv_get_str(task, "description");
	int64_t made, now = clock_real_ns(), expected = jv_get_int(task, "expected_duration_minutes", 0);

	what = str_first(what, str_find_char(what, '\n'));
	buf_printf(text, "%s %.*s %.*s, %.*s", icon_of(jv_get_str(task, "status")),
		   STR_ARG(id.len ? id : str_first(jv_get_str(task, "id"), 8)), STR_ARG(jv_get_str(task, "type")),
		   STR_ARG(jv_get_str(task, "priority")));
	if (clock_parse(jv_get_str(task, "created_at"), &made) && now >= made) {
		buf_lit(text, ", ");
		add_age(text, now - made);
		buf_lit(text, " old");
	}
	if (str_is(jv_get_str(task, "status"), "in_progress") && expected > 0 &&
	    clock_parse(jv_get_str(task, "started_at"), &made) && now >= made)
		buf_printf(text, ", running %lld of %lld min", (long long)((now - made) / NS_PER_MIN),
			   (long long)expected);
	buf_printf(text, ": %.*s%s", STR_ARG(utf8_first(what, 60)), what.len > 60 ? "…" : "");
}

static void render_list(const struct jv *args, const struct jv *value, struct buf *text)
{
	const struct jv *tasks = jv_get(value, "tasks");

	(void)args;
	for (const struct jv_member *m = jv_first(tasks); m; m = m->next) {
		task_line(text, m->value);
		buf_char(text, '\n');
	}
	buf_printf(text, jv_count(tasks) ? "%zu task%s" : "no tasks", jv_count(tasks), plural(jv_count(tasks)));
}

static void render_task(const struct jv *args, const struct jv *value, struct buf *text)
{
	const struct jv *task = jv_get(value, "task");
	struct str note = jv_get_str(value, "note");

	(void)args;
	buf_printf(text, "%.*s task %.*s\n", STR_ARG(jv_get_str(value, "action")), STR_ARG(jv_get_str(task, "id")));
	for (const struct jv_member *m = jv_first(task); m; m = m->next) {
		if (jv_is_null(m->value) || str_is(m->key, "id") || (m->value->type == JV_STR && !m->value->u.s.len))
			continue;
		buf_printf(text, "%.*s: ", STR_ARG(m->key));
		if (m->value->type == JV_STR)
			buf_add(text, str_trim(m->value->u.s));
		else
			jv_write(text, m->value);
		buf_char(text, '\n');
	}
	if (note.len)
		buf_printf(text, "note: %.*s\n", STR_ARG(note));
	text->len--;
}

/* --- handlers --- */

static const char *const task_times[] = {"created_at", "started_at",      "completed_at",
					 "deadline",   "last_checked_at", NULL};

static void give(struct call *call, struct outcome *ret, const char *action, struct jv *task, struct str note)
{
	struct arena *arena = call->ctx->arena;

	workspace_times(call->ws, arena, task, task_times);
	ret->value = jv_object(arena);
	jv_set_str(arena, ret->value, "action", str_of(action));
	jv_set(arena, ret->value, "task", task);
	if (note.len)
		jv_set_str(arena, ret->value, "note", note);
}

static int tool_create_task(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct jv *task;
	struct str note = STR_NONE;
	int r = tasks_create(call->ws, call->ctx, args, &task, &note, err);

	if (r == 0)
		give(call, ret, "created", task, note);
	return r;
}

static int tool_update_task(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct jv *fields = jv_copy(call->ctx->arena, args), *task;
	struct str note = STR_NONE;
	int r;

	jv_remove(fields, "task_id");
	if (jv_count(fields) == 0)
		return err_set(err, ERR_INVALID, "there is nothing to change; give a status, notes or another field");
	r = tasks_update(call->ws, call->ctx, jv_get_str(args, "task_id"), fields, &task, &note, err);
	if (r == 0)
		give(call, ret, "updated", task, note);
	return r;
}

static int tool_get_task(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct jv *task;
	int r = tasks_get(call->ws, call->ctx, jv_get_str(args, "task_id"), &task, err);

	if (r == 0)
		give(call, ret, "found", task, STR_NONE);
	return r;
}

static int tool_delete_task(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct jv *task;
	int r = tasks_delete(call->ws, call->ctx, jv_get_str(args, "task_id"), false, &task, err);

	if (r == 0)
		give(call, ret, "deleted", task, STR_NONE);
	return r;
}

static int tool_list_tasks(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	struct jv *tasks;
	int r = tasks_list(call->ws, call->ctx, jv_get_str(args, "status"), jv_get_str(args, "type"), &tasks, err);

	if (r)
		return r;
	workspace_times(call->ws, arena, tasks, task_times);
	ret->value = jv_object(arena);
	jv_set(arena, ret->value, "tasks", tasks);
	jv_set_int(arena, ret->value, "total", (int64_t)jv_count(tasks));
	return 0;
}

/* clang-format off */
#define TASK_ID  "task_id!: its id, or the first characters of it if they are unique"
#define STATUS   "status pending|in_progress|awaiting_check|completed|failed|cancelled: "
#define PRIORITY "priority low|normal|high|urgent: "
#define METADATA "metadata obj: anything else to keep with the task"
#define TASK     "action!; task! obj; note"

static const struct tool native[] = {
	{
		.name = "create_task", .title = "Create a task", .traits = TOOL_BASIC, .call = tool_create_task, .render = render_task,
		.description = "Adds a task to TASKS.yaml, for work that continues after this conversation. Returns its id.",
		.args =
			"description!: what to do\n"
			"type: research, deployment, batch, monitoring, custom or a word of your own (default custom)\n"
			PRIORITY "default normal\n"
			"expected_duration_minutes int>=0: how long it should take\n"
			"check_interval_minutes int>=0: how often to check on it\n"
			"deadline: when it should be done, such as 2026-11-15T09:30:00Z\n"
			METADATA,
		.result = TASK,
	},
	{
		.name = "list_tasks", .title = "List tasks", .traits = RO | TOOL_BASIC, .call = tool_list_tasks, .render = render_list,
		.description = "Lists tasks, most urgent and oldest first, with short ids that the other task tools accept.",
		.args =
			STATUS "only tasks with this status\n"
			"type: only tasks of this type",
		.result =
			"tasks! [obj]: with all their fields\n"
			"total! int",
	},
	{
		.name = "update_task", .title = "Update a task", .traits = TOOL_BASIC, .call = tool_update_task, .render = render_task,
		.description = "Changes a task's status or fields, or adds a line to its notes.",
		.args =
			TASK_ID "\n"
			STATUS "in_progress records the start, a final status the end\n"
			"notes: a line to add to its notes, with the time\n"
			"description: the new description\n"
			PRIORITY "the new priority\n"
			"deadline: when it should be done\n"
			"result_summary: what the result is\n"
			"result_path: file with the result\n"
			"error_message: why it failed\n"
			METADATA,
		.result = TASK,
	},
	{
		.name = "get_task", .title = "Show a task", .traits = RO, .call = tool_get_task, .render = render_task,
		.description = "Shows all fields of a task.",
		.args = TASK_ID,
		.result = TASK,
	},
	{
		.name = "delete_task", .title = "Delete a task", .traits = TOOL_DESTRUCTIVE, .call = tool_delete_task,
		.render = render_task,
		.description = "Deletes a task that is completed, failed or cancelled.",
		.args = TASK_ID,
		.result = TASK,
	},
	{0},
};
/* clang-format on */

const struct family tasks_family = {
	.name = "tasks",
	.about = "Work that continues after a conversation, in TASKS.yaml.",
	.tools = native,
	.prompt = tasks_sections,
	.commands = tasks_commands,
	.check = tasks_check,
};
