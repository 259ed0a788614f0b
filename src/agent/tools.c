/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which tools the agent has: those of the workspace, those of MCP servers, and its own. The configuration's allow and
 * deny lists hold for all three; a subagent gets those of its parent's that its declaration names.
 */
#include "agent/agent_internal.h"
#include "agent/servers.h"
#include "text/glob.h"
#include "text/schema.h"

bool names_match(const struct jv *patterns, struct str name)
{
	ARENA_SCOPE struct arena *arena = jv_count(patterns) ? arena_new() : NULL;

	for (const struct jv_member *m = jv_first(patterns); m; m = m->next) {
		const struct glob *glob;
		struct err ignored;

		if (glob_compile(arena, jv_str_of(m->value), 0, &glob, &ignored) == 0 && glob_match(glob, name))
			return true;
	}
	return false;
}

/* What reaches people, acts later or belongs to one chat is not for subagents: their parent decides about it. */
static bool is_for_the_top(struct str name)
{
	static const char *const names[] = {"send_message",   "send_file",        "schedule_at",
					    "schedule_every", "cancel_scheduled", "request_followup",
					    "notify_user",    "ask_user",         "browse_channel_history"};

	for (size_t i = 0; i < COUNT(names); i++)
		if (str_is(name, names[i]))
			return true;
	return false;
}

static bool passes_filters(const struct agent *agent, struct str name)
{
	if (agent->kin.depth > 0 && is_for_the_top(name))
		return false;
	for (size_t i = 0; i < agent->kin.filter_count; i++) {
		const struct tool_filter *f = &agent->kin.filters[i];

		if (names_match(f->never, name) || (jv_count(f->only) && !names_match(f->only, name)))
			return false;
	}
	return true;
}

bool agent_may_call(const struct agent *agent, struct str name)
{
	return !settings_is_for_runtimes(name) && passes_filters(agent, name);
}

static bool lists_tool(const struct jv *list, struct str name)
{
	return names_match(list, name) || tool_list_has_builtin_of(list, name);
}

static bool is_wanted(const struct config *config, struct str name)
{
	if (lists_tool(config->tools_deny, name))
		return false;
	if (jv_count(config->tools_allow) && !lists_tool(config->tools_allow, name))
		return false;
	return !config->builtins_allow || !tool_is_of_builtin(name) || lists_tool(config->builtins_allow, name);
}

int agent_tool_add(struct agent *agent, const struct agent_tool *tool, struct err *err)
{
	struct str name = tool->info.name;

	if (toolset_find(agent->set, name) || agent_tool_find(agent, name))
		return err_set(err, ERR_EXISTS, "there is already a tool \"%.*s\"", STR_ARG(name));
	if (!is_wanted(workspace_config(agent->ws), name) || !passes_filters(agent, name))
		return 0;
	ARENA_ROOM(agent->arena, agent->own, agent->own_count, agent->own_cap);
	agent->own[agent->own_count++] = *tool;
	return 0;
}

/* --- tools of the program --- */

static int call_host(const struct agent_tool *tool, struct run *run, struct ctx *ctx, const struct jv *args,
		     struct str *ret_text, struct err *err)
{
	const struct agent_host_tool *host = tool->arg;

	(void)run;
	return host->call(host->arg, ctx, args, ret_text, err);
}

bool agent_is_tool_name(struct str name)
{
	for (size_t i = 0; i < name.len; i++) {
		char c = name.ptr[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') && c != '_' &&
		    c != '-')
			return false;
	}
	return name.len && name.len <= AGENT_TOOL_NAME_MAX;
}

static int add_host_tool(struct agent *agent, const struct agent_host_tool *given, struct err *err)
{
	struct agent_host_tool *host = ARENA_NEW(agent->arena, struct agent_host_tool);
	unsigned traits = given->reads_only ? TOOL_READS_ONLY | TOOL_IDEMPOTENT : TOOL_OPEN_WORLD;
	struct agent_tool tool = {.call = call_host, .arg = host};
	int r;

	if (!agent_is_tool_name(given->name))
		return err_set(err, ERR_INVALID,
			       "the name of the tool \"%.*s\" is not 1 to %zu letters, digits, \"_\" and \"-\"",
			       STR_ARG(utf8_first(given->name, AGENT_TOOL_NAME_MAX)), AGENT_TOOL_NAME_MAX);
	r = schema_compile(given->schema, err);
	if (r)
		return err_prefix(err, "the schema of the tool \"%.*s\"", STR_ARG(utf8_first(given->name, 64)));
	*host = *given;
	tool.info = (struct tool_info){.name = arena_str(agent->arena, given->name),
				       .title = arena_str(agent->arena, given->name),
				       .description = arena_str(agent->arena, given->description),
				       .input_schema = agent_keep(agent->arena, given->schema),
				       .traits = traits};
	return agent_tool_add(agent, &tool, err);
}

static bool is_taken(const struct agent *agent, struct str name)
{
	return tool_is_native(name) || toolset_find(agent->set, name) || agent_tool_find(agent, name);
}

int host_tools_add(struct agent *agent, const struct agent_opts *opts, struct err *err)
{
	struct buf taken;
	int r = 0;

	buf_init(&taken, agent->arena, 64 * KIB);
	for (size_t i = 0; i < opts->tool_count; i++)
		if (is_taken(agent, opts->tools[i].name))
			buf_printf(&taken, "%s%.*s", taken.len ? ", " : "", STR_ARG(opts->tools[i].name));
	if (taken.len)
		return err_set(err, ERR_EXISTS, "these names are reserved for tools of Stead: %.*s; use others",
			       STR_ARG(utf8_first(buf_str(&taken), 300)));
	for (size_t i = 0; i < opts->tool_count && r == 0; i++)
		r = add_host_tool(agent, &opts->tools[i], err);
	return r;
}

const struct agent_tool *agent_tool_find(const struct agent *agent, struct str name)
{
	for (size_t i = 0; i < agent->own_count; i++)
		if (str_eq(agent->own[i].info.name, name))
			return &agent->own[i];
	return NULL;
}

static void take(struct agent *agent, struct model_tool *tools, size_t *count, const struct tool_info *info)
{
	if (agent_may_call(agent, info->name))
		tools[(*count)++] = (struct model_tool){info->name, info->description, info->input_schema};
}

/* A subagent whose declaration names its tools gets those; otherwise the set that every client gets. */
static const struct toolset *offered_set(const struct agent *agent)
{
	for (size_t i = 0; i < agent->kin.filter_count; i++)
		if (jv_count(agent->kin.filters[i].only))
			return agent->set;
	return agent->offered;
}

void agent_offer_tools(struct agent *agent)
{
	const struct toolset *set = offered_set(agent);
	size_t count = 0, remote_count;
	const struct server_tool *remote = servers_list(agent->servers, &remote_count);
	struct model_tool *tools =
		ARENA_ARRAY(agent->arena, struct model_tool, toolset_count(set) + remote_count + agent->own_count + 1);

	for (size_t i = 0; i < toolset_count(set); i++)
		take(agent, tools, &count, toolset_at(set, i));
	for (size_t i = 0; i < agent->own_count; i++)
		take(agent, tools, &count, &agent->own[i].info);
	for (size_t i = 0; i < remote_count; i++)
		take(agent, tools, &count, &remote[i].info);
	for (size_t i = 0; i < agent->model_count; i++)
		agent->models[i].tools = model_tools(agent->models[i].model, agent->arena, tools, count);
}
