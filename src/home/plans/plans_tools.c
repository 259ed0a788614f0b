/* SPDX-License-Identifier: Apache-2.0 */
/* plan_enter, plan_write, plan_read, plan_exit, todo_write, todo_read. */
#include "home/plans/plans_tools.h"

#include "home/plans/plans.h"
#include "tool/call.h"
#include "tool/family.h"

static int tool_plan_enter(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	(void)args;
	return plan_enter(call->ws, call->ctx, &ret->value, err);
}

static int tool_plan_write(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	return plan_write(call->ws, call->ctx, jv_get_str(args, "content"), &ret->value, err);
}

static int tool_plan_read(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	(void)args;
	return plan_look(call->ws, call->ctx, true, &ret->value, err);
}

static int tool_plan_exit(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	return plan_exit(call->ws, call->ctx, jv_get_str(args, "summary"), &ret->value, err);
}

static void render_plan(const struct jv *args, const struct jv *value, struct buf *text)
{
	struct str path = jv_get_str(value, "path");

	(void)args;
	buf_printf(text, "plan mode is %s; the plan is %.*s%s", jv_get_bool(value, "active", false) ? "on" : "off",
		   STR_ARG(path), jv_get_bool(value, "exists", false) ? "" : " (not written yet)");
	if (jv_get(value, "content")) {
		buf_char(text, '\n');
		buf_add(text, jv_get_str(value, "content"));
	}
}

static int tool_todo_write(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	return todo_write(call->ws, call->ctx, jv_get(args, "todos"), &ret->value, err);
}

static int tool_todo_read(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	(void)args;
	return todo_read(call->ws, call->ctx, &ret->value, err);
}

void todo_lines(const struct jv *value, const char *running, struct buf *text)
{
	for (const struct jv_member *m = jv_first(jv_get(value, "todos")); m; m = m->next) {
		struct str status = jv_get_str(m->value, "status"), evidence = jv_get_str(m->value, "evidence");

		buf_printf(text, "\n- %s %.*s",
			   str_is(status, "completed")     ? "[x]"
			   : str_is(status, "in_progress") ? running
							   : "[ ]",
			   STR_ARG(jv_get_str(m->value, "content")));
		if (evidence.len)
			buf_printf(text, " (%.*s)", STR_ARG(evidence));
	}
}

static void render_todos(const struct jv *args, const struct jv *value, struct buf *text)
{
	(void)args;
	buf_printf(text, "%lld open", (long long)jv_get_int(value, "open", 0));
	todo_lines(value, "[~]", text);
}

/* clang-format off */
#define PLAN "active! bool; path!; exists! bool; content"
#define TODOS \
	"todos! [obj]: with their ids\n" \
	"open! int"

static const struct tool native[] = {
	{
		.name = "plan_enter", .title = "Start planning", .group = "plan", .traits = TOOL_IDEMPOTENT | TOOL_PLANS,
		.call = tool_plan_enter, .render = render_plan,
		.description = "Turns plan mode on for this session: until plan_exit, tools that change something are refused.",
		.result = PLAN,
	},
	{
		.name = "plan_write", .title = "Write the plan", .group = "plan", .traits = TOOL_IDEMPOTENT | TOOL_PLANS,
		.call = tool_plan_write, .render = render_plan,
		.description = "Writes the whole plan as Markdown and names its file.",
		.args = "content!: the whole plan, in Markdown",
		.result = PLAN,
	},
	{
		.name = "plan_read", .title = "Read the plan", .group = "plan", .traits = RO | TOOL_PLANS,
		.call = tool_plan_read, .render = render_plan,
		.description = "Reads the plan of this session and says whether plan mode is on.",
		.result = PLAN,
	},
	{
		.name = "plan_exit", .title = "Finish planning", .group = "plan", .traits = TOOL_PLANS,
		.call = tool_plan_exit, .render = render_plan,
		.description = "Turns plan mode off once the plan is written and agreed on.",
		.args = "summary: the plan in one sentence",
		.result = PLAN,
	},
	{
		.name = "todo_write", .title = "Write the to-do list", .group = "plan",
		.traits = TOOL_IDEMPOTENT | TOOL_PLANS, .call = tool_todo_write, .render = render_todos,
		.description = "Replaces the to-do list of this session. An empty list clears it.",
		.args =
			"todos! [{content!: what to do; "
			"status: pending, in_progress (one at a time) or completed; "
			"priority: high, medium or low; "
			"evidence: for a completed item: a file that proves it (it must exist), or a sentence}]: "
			"all items, in order",
		.result = TODOS,
	},
	{
		.name = "todo_read", .title = "Read the to-do list", .group = "plan", .traits = RO | TOOL_PLANS,
		.call = tool_todo_read, .render = render_todos,
		.description = "Reads the to-do list of this session.",
		.result = TODOS,
	},
	{0},
};
/* clang-format on */

static int refuse_in_plan_mode(struct call *call, const struct tool *tool, struct err *err)
{
	return workspace_acts_for_person(call->ws) ? 0 : plan_refuses(call->ws, call->ctx, tool->name, err);
}

const struct family plans_family = {
	.name = "plans",
	.about = "Plan mode, and the plan and the to-do list of a session.",
	.tools = native,
	.prompt = plans_sections,
	.before_change = refuse_in_plan_mode,
};
