/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_enter, plan_write, plan_read, plan_exit, todo_write, todo_read. AgentScope's table is the same with text alone;
 * OpenPaw's write_plan and read_plan are a list of steps, which is the same list as todo_write's.
 */
#include "home/plans/plans_tools.h"

#include "home/plans/plans.h"
#include "tool/call.h"
#include "tool/family.h"
#include "tool/schemas.h"

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

static void render_items(const struct jv *value, const char *running, struct buf *text)
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
	render_items(value, "[~]", text);
}

/* --- OpenPaw: steps --- */

static int paw_write_plan(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	struct jv *todos = jv_array(arena);
	struct buf text;
	int r;

	for (const struct jv_member *m = jv_first(jv_get(args, "steps")); m; m = m->next) {
		struct jv *item = jv_object(arena);

		jv_set_str(arena, item, "content", jv_get_str(m->value, "step"));
		jv_set_str(arena, item, "status", jv_get_str(m->value, "status"));
		jv_push(arena, todos, item);
	}
	r = todo_write(call->ws, call->ctx, todos, &ret->value, err);
	if (r)
		return r;
	buf_init(&text, arena, TOOL_TEXT_MAX);
	buf_printf(&text, "Plan with %zu steps:", jv_count(todos));
	render_items(ret->value, "[>]", &text);
	text_reply(ret, &text);
	return 0;
}

static int paw_read_plan(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct buf text;
	int r = todo_read(call->ws, call->ctx, &ret->value, err);

	(void)args;
	if (r)
		return r;
	buf_init(&text, call->ctx->arena, TOOL_TEXT_MAX);
	buf_add(&text, jv_count(jv_get(ret->value, "todos")) ? STR("Plan:") : STR("There is no plan yet."));
	render_items(ret->value, "[>]", &text);
	text_reply(ret, &text);
	return 0;
}

/* --- tables --- */

/* clang-format off */
#define R_PLAN S_OBJ( \
	S_BARE("active", "boolean") AND S_BARE("path", "string") AND S_BARE("exists", "boolean") AND \
	S_BARE("content", "string"), "\"active\",\"path\",\"exists\"")
#define TODO_IN S_OBJ( \
	S_STR("content", "what is to do") AND \
	S_STR("status", "pending, in_progress (one at a time) or completed") AND \
	S_STR("priority", "high, medium or low") AND \
	S_STR("evidence", "of a completed item: the file that shows it (it must exist), or a sentence"), "\"content\"")
#define R_TODOS S_OBJ(S_LIST("todos", "{\"type\":\"object\"}", "with their ids") AND S_BARE("open", "integer"), \
	"\"todos\",\"open\"")

#define PLAN_TOOLS(OUT, OUT_TODOS) \
	{.name = "plan_enter", .title = "Begin to plan", .group = "plan", .call = tool_plan_enter, .render = render_plan, \
	 .description = "Switches plan mode on for this session: until plan_exit, tools that change something are refused.", \
	 .traits = TOOL_IDEMPOTENT | TOOL_PLANS, .input_schema = S_NONE, OUT}, \
	{.name = "plan_write", .title = "Write the plan", .group = "plan", .call = tool_plan_write, .render = render_plan, \
	 .description = "Writes the whole plan as Markdown; the file is named in the answer.", \
	 .traits = TOOL_IDEMPOTENT | TOOL_PLANS, \
	 .input_schema = S_OBJ(S_STR("content", "the whole plan, Markdown"), "\"content\""), OUT}, \
	{.name = "plan_read", .title = "Read the plan", .group = "plan", .call = tool_plan_read, .render = render_plan, \
	 .description = "The plan of this session, and whether plan mode is on.", \
	 .traits = RO | TOOL_PLANS, .input_schema = S_NONE, OUT}, \
	{.name = "plan_exit", .title = "End planning", .group = "plan", .call = tool_plan_exit, .render = render_plan, \
	 .description = "Switches plan mode off when the plan is written and agreed on.", \
	 .traits = TOOL_PLANS, .input_schema = S_OBJ(S_STR("summary", "the plan in a sentence"), ""), OUT}, \
	{.name = "todo_write", .title = "Write the to-do list", .group = "plan", .call = tool_todo_write, \
	 .render = render_todos, \
	 .description = "Replaces the list of what is to do in this session. An empty list clears it.", \
	 .traits = TOOL_IDEMPOTENT | TOOL_PLANS, \
	 .input_schema = S_OBJ(S_LIST("todos", TODO_IN, "all items, in order"), "\"todos\""), OUT_TODOS},

static const struct tool native[] = {
	PLAN_TOOLS(.output_schema = R_PLAN, .output_schema = R_TODOS)
	{.name = "todo_read", .title = "Read the to-do list", .group = "plan", .call = tool_todo_read, .render = render_todos,
	 .description = "What is to do in this session.",
	 .traits = RO | TOOL_PLANS, .input_schema = S_NONE, .output_schema = R_TODOS},
	{0},
};
static const struct tool agentscope[] = {PLAN_TOOLS(.output_schema = NULL, .output_schema = NULL) {0}};

#define STEP S_OBJ(S_STR("step", "what is to do") AND \
	S_ENUM("status", "\"pending\",\"in_progress\",\"completed\"", "default pending"), "\"step\"")
static const struct tool openpaw[] = {
	{.name = "write_plan", .title = "Write the plan", .group = "plan", .acts_as = "todo_write", .call = paw_write_plan,
	 .traits = TOOL_IDEMPOTENT | TOOL_PLANS, .description = "Replaces the steps of the plan of this session.",
	 .input_schema = S_OBJ(S_LIST("steps", STEP, "all steps, in order"), "\"steps\"")},
	{.name = "read_plan", .title = "Read the plan", .group = "plan", .acts_as = "todo_read", .call = paw_read_plan,
	 .traits = RO | TOOL_PLANS, .description = "The steps of the plan of this session.", .input_schema = S_NONE},
	{0},
};
/* clang-format on */

const struct tool_group agentscope_plan_tools = {agentscope, COUNT(agentscope)};
const struct tool_group openpaw_plan_tools = {openpaw, COUNT(openpaw)};

static int refuse_in_plan_mode(struct call *call, const struct tool *tool, struct err *err)
{
	return plan_refuses(call->ws, call->ctx, tool->name, err);
}

const struct family plans_family = {
	.name = "plans",
	.tools = native,
	.prompt = plans_sections,
	.before_change = refuse_in_plan_mode,
};
