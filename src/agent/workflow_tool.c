/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A workflow as a tool of the agent. The run's id is made from the id of the call, so a call that is made again after a
 * kill finds its run and continues with it. The agents of a workflow have no such tool: a workflow cannot start itself.
 */
#include "agent/agent_internal.h"
#include "agent/workflow.h"
#include "base/sha256.h"
#include "tool/schema_text.h"

static int call_workflow(const struct agent_tool *tool, struct run *run, struct ctx *ctx, const struct jv *args,
			 struct str *ret_text, struct err *err)
{
	struct arena *arena = ctx->arena;
	const struct agent_opts *own = &run->agent->opts;
	struct workflow_opts opts = {.model = own->model, .base_url = own->base_url, .dialect = own->dialect};
	struct str id = arena_printf(arena, "call-%.*s", STR_ARG(str_first(sha256_hex(arena, ctx->actor.call_id), 12)));
	struct str status;
	struct jv *record;
	int r = workflow_begin(run->agent->ws, ctx, jv_get_str(args, "name"), jv_get_str(args, "input"), id, &record,
			       err);

	(void)tool;
	if (r == 0)
		r = workflow_run(run->agent->ws, ctx, id, &opts, &record, err);
	if (r)
		return r;
	status = jv_get_str(record, "status");
	if (!str_is(status, "done"))
		return err_set(err, str_is(status, "waiting") ? ERR_DENIED : ERR_UNAVAILABLE,
			       "run %.*s of the workflow is %.*s; a person can inspect it with 'stead workflow runs'",
			       STR_ARG(id), STR_ARG(status));
	*ret_text = jv_get_str(record, "answer");
	return 0;
}

int workflow_tool_add(struct agent *agent, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};
	struct agent_tool tool = {.call = call_workflow,
				  .ends_itself = true,
				  .info = {.name = STR("run_workflow"),
					   .title = STR("Run a workflow"),
					   .traits = TOOL_OPEN_WORLD | TOOL_IDEMPOTENT}};
	struct jv *list, *schema;
	struct buf text;
	int r;

	if (agent->kin.depth > 0 || agent->kin.is_step)
		return 0;
	r = workflow_list(agent->ws, &ctx, &list, err);
	if (r || !jv_count(jv_get(list, "workflows")))
		return r;
	buf_init(&text, agent->arena, 64 * KIB);
	buf_lit(&text, "Runs a workflow that people have written, and returns its result. There are:");
	for (const struct jv_member *m = jv_first(jv_get(list, "workflows")); m; m = m->next)
		buf_printf(&text, "\n%.*s: %.*s%s%.*s", STR_ARG(jv_get_str(m->value, "name")),
			   STR_ARG(utf8_first(jv_get_str(m->value, "description"), 300)),
			   jv_get_str(m->value, "input").len ? " Input: " : "",
			   STR_ARG(utf8_first(jv_get_str(m->value, "input"), 200)));
	tool.info.description = buf_str(&text);
	r = schema_text_parse(agent->arena, "name!: of the workflow\ninput: for its steps", &schema, err);
	tool.info.input_schema = schema;
	return r ? r : agent_tool_add(agent, &tool, err);
}
