/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent in the library: a program runs turns, and gives the agent tools of its own. A tool of the program is called
 * like any other, after the policy and the approvals of agent.yaml, and its calls are in the session's log.
 */
#include <stdlib.h>

#include "agent/agent.h"
#include "lib/lib_internal.h"

struct stead_agent {
	struct agent *agent;
	struct stead *stead;
	struct stead_tool *tools;
	size_t count;
};

static int call_tool(void *arg, struct ctx *ctx, const struct jv *args, struct str *ret_text, struct err *err)
{
	const struct stead_tool *tool = arg;
	char *text = NULL;
	struct buf json;
	int failed;

	buf_init(&json, ctx->arena, SIZE_MAX / 4);
	jv_write(&json, args);
	failed = tool->call(tool->arg, arena_cstr(ctx->arena, buf_str(&json)), &text);
	*ret_text = arena_str(ctx->arena, str_of(text ? text : ""));
	free(text);
	if (!utf8_valid(*ret_text))
		return err_set(err, ERR_INVALID, "the tool gave text that is not UTF-8");
	if (failed && !ret_text->len)
		return err_set(err, ERR_INVALID, "the tool failed without giving a reason");
	return failed ? err_set(err, ERR_INVALID, "%.*s", STR_ARG(utf8_first(*ret_text, 400))) : 0;
}

static int take_tools(struct stead_agent *a, struct lib_call *c, const struct stead_agent_options *o,
		      struct agent_host_tool *tools)
{
	const char *at = (const char *)o->tools;
	int r = 0;

	for (size_t i = 0; i < o->tool_count && r == 0; i++) {
		struct stead_tool *t = &a->tools[i];
		struct jv *schema = NULL;

		r = lib_take(at, "stead_tool", t, sizeof *t, &c->err);
		if (r == 0 && (!t->name || !t->description || !t->input_schema || !t->call))
			r = err_set(&c->err, ERR_INVALID,
				    "a tool needs a name, a description, an input_schema and a call");
		if (r == 0)
			r = jv_parse(c->ctx.arena, str_of(t->input_schema), &schema, &c->err);
		if (r == 0)
			tools[i] = (struct agent_host_tool){.name = str_of(t->name),
							    .description = str_of(t->description),
							    .schema = schema,
							    .reads_only = t->reads_only,
							    .call = call_tool,
							    .arg = t};
		at += t->size;
	}
	return r;
}

static void agent_free(struct stead_agent *a)
{
	agent_close(a->agent);
	free(a->tools);
	free(a);
}

int stead_agent_open(struct stead *stead, const struct stead_agent_options *options, struct stead_agent **ret_agent,
		     struct stead_error *error)
{
	LIB_CALL c;
	struct stead_agent_options o = {0};
	struct stead_agent *a;
	struct agent_opts opts = {0};
	struct agent_host_tool *tools = NULL;
	int r = lib_begin_plain(&c, stead, NULL);

	if (r == 0 && options)
		r = lib_take(options, "stead_agent_options", &o, sizeof o, &c.err);
	if (r)
		return lib_end(&c.err, r, error);
	a = xcalloc(1, sizeof *a);
	a->stead = stead;
	a->tools = xcalloc(o.tool_count + 1, sizeof *a->tools);
	tools = ARENA_ARRAY(c.ctx.arena, struct agent_host_tool, o.tool_count + 1);
	r = take_tools(a, &c, &o, tools);
	opts = (struct agent_opts){.model = str_of(o.model),
				   .base_url = str_of(o.base_url),
				   .prompt = str_of(o.prompt),
				   .dialect = str_of(o.dialect),
				   .tools = tools,
				   .tool_count = o.tool_count};
	if (r == 0)
		r = agent_open(stead->ws, &opts, &a->agent, &c.err);
	if (r)
		agent_free(a);
	else
		*ret_agent = a;
	return lib_end(&c.err, r, error);
}

void stead_agent_close(struct stead_agent *agent)
{
	if (agent)
		agent_free(agent);
}

static void give_event(void *arg, const struct agent_event *event)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	const struct stead_turn *turn = arg;
	struct buf json;

	buf_init(&json, arena, SIZE_MAX / 4);
	jv_write(&json, agent_event_value(arena, event));
	turn->event(turn->arg, arena_cstr(arena, buf_str(&json)));
}

static enum agent_verdict ask_program(void *arg, const struct agent_event *event, int64_t wait_ns)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	const struct stead_turn *turn = arg;
	struct buf json;
	int answer;

	(void)wait_ns;
	buf_init(&json, arena, SIZE_MAX / 4);
	jv_write(&json, agent_event_value(arena, event));
	answer = turn->approve(turn->arg, arena_cstr(arena, buf_str(&json)));
	return answer > 0 ? AGENT_YES : answer < 0 ? AGENT_NO : AGENT_LATER;
}

int stead_agent_run(struct stead_agent *agent, const struct stead_call_options *how, const struct stead_turn *turn,
		    char **ret_answer, char **ret_json, struct stead_error *error)
{
	LIB_CALL c;
	struct stead_turn t = {0};
	struct agent_result result;
	int r = lib_begin_plain(&c, agent->stead, how);

	if (r == 0)
		r = lib_take(turn, "stead_turn", &t, sizeof t, &c.err);
	if (r == 0) {
		struct agent_turn in = {.session = str_of(t.session),
					.text = str_of(t.text),
					.event = t.event ? give_event : NULL,
					.approve = t.approve ? ask_program : NULL,
					.arg = &t};

		r = agent_run(agent->agent, &c.ctx, &in, &result, &c.err);
	}
	if (r == 0 && ret_answer)
		*ret_answer = xstrndup(result.answer);
	if (r == 0 && ret_json) {
		struct buf json;

		buf_init(&json, c.ctx.arena, SIZE_MAX / 4);
		jv_write(&json, agent_result_value(c.ctx.arena, &result));
		*ret_json = xstrndup(buf_str(&json));
	}
	return lib_end(&c.err, r, error);
}
