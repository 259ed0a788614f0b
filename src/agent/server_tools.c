/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resources and prompts of MCP servers, for the agent: one tool that lists them, one that reads a resource, and one
 * that gets a prompt. They are offered when a server has said that it has some. What they give is the server's text.
 */
#include "agent/agent_internal.h"
#include "agent/servers.h"
#include "tool/schema_text.h"

static int client_of(struct run *run, const struct jv *args, struct mcp_client **ret, struct err *err)
{
	struct str name = jv_get_str(args, "server");

	*ret = servers_client(run->agent->servers, name);
	return *ret ? 0
		    : err_set(err, ERR_NOT_FOUND, "there is no MCP server \"%.*s\"; server_offers lists them",
			      STR_ARG(utf8_first(name, 80)));
}

static void add_line(struct buf *text, const struct jv *item, const char *key)
{
	struct str about = jv_get_str(item, "description");

	buf_printf(text, "  %.*s", STR_ARG(utf8_first(jv_get_str(item, key), 500)));
	for (const struct jv_member *m = jv_first(jv_get(item, "arguments")); m; m = m->next)
		buf_printf(text, " %.*s%s", STR_ARG(utf8_first(jv_get_str(m->value, "name"), 80)),
			   jv_get_bool(m->value, "required", false) ? "!" : "");
	if (about.len)
		buf_printf(text, ": %.*s", STR_ARG(utf8_first(str_first(about, str_find_char(about, '\n')), 300)));
	buf_char(text, '\n');
}

static void add_offers(struct buf *text, struct mcp_client *client, struct ctx *ctx)
{
	static const struct {
		const char *capability, *what, *key, *title;
	} kinds[] = {{"resources", "resources", "uri", "resources"},
		     {"resources", "resources/templates", "uriTemplate", "templates of resources"},
		     {"prompts", "prompts", "name", "prompts (\"!\" marks a required argument)"}};

	for (size_t i = 0; i < COUNT(kinds); i++) {
		struct jv *list;
		struct err err;

		if (!mcp_client_offers(client, kinds[i].capability))
			continue;
		if (mcp_client_list(client, ctx, kinds[i].what, &list, &err) != 0) {
			if (i != 1) /* not every server has templates */
				buf_printf(text, "%.*s\n", STR_ARG(err_text(ctx->arena, &err)));
			continue;
		}
		if (jv_count(list))
			buf_printf(text, "%.*s, %s:\n", STR_ARG(mcp_client_name(client)), kinds[i].title);
		for (const struct jv_member *m = jv_first(list); m; m = m->next)
			add_line(text, m->value, kinds[i].key);
	}
}

static int call_offers(const struct agent_tool *tool, struct run *run, struct ctx *ctx, const struct jv *args,
		       struct str *ret_text, struct err *err)
{
	struct mcp_client *client;
	struct buf text;
	int r = 0;

	(void)tool;
	buf_init(&text, ctx->arena, TOOL_TEXT_MAX);
	if (jv_get_str(args, "server").len) {
		r = client_of(run, args, &client, err);
		if (r == 0)
			add_offers(&text, client, ctx);
	} else {
		for (size_t i = 0; (client = servers_client_at(run->agent->servers, i)); i++)
			add_offers(&text, client, ctx);
	}
	*ret_text = text.len ? buf_str(&text) : STR("no resources and no prompts\n");
	return r;
}

static int call_resource(const struct agent_tool *tool, struct run *run, struct ctx *ctx, const struct jv *args,
			 struct str *ret_text, struct err *err)
{
	struct server_host own = {.run = run, .server = jv_get_str(args, "server")};
	struct mcp_host host = server_host(&own);
	struct mcp_client *client;
	int r = client_of(run, args, &client, err);

	(void)tool;
	return r ? r : mcp_client_read(client, ctx, jv_get_str(args, "uri"), &host, ret_text, err);
}

static int call_prompt(const struct agent_tool *tool, struct run *run, struct ctx *ctx, const struct jv *args,
		       struct str *ret_text, struct err *err)
{
	struct server_host own = {.run = run, .server = jv_get_str(args, "server")};
	struct mcp_host host = server_host(&own);
	struct mcp_client *client;
	int r = client_of(run, args, &client, err);

	(void)tool;
	return r ? r
		 : mcp_client_prompt(client, ctx, jv_get_str(args, "name"), jv_get(args, "arguments"), &host, ret_text,
				     err);
}

static const struct {
	const char *name, *description, *args;
	int (*call)(const struct agent_tool *tool, struct run *run, struct ctx *ctx, const struct jv *args,
		    struct str *ret_text, struct err *err);
} tools[] = {
	{"server_offers", "Lists the resources and prompts of MCP servers.", "server: only of this one", call_offers},
	{"server_resource", "Reads a resource of an MCP server.", "server!: its name\nuri!: of the resource",
	 call_resource},
	{"server_prompt", "Gets a prompt of an MCP server, filled in.",
	 "server!: its name\nname!: of the prompt\narguments obj: by name, as text", call_prompt},
};

void server_tools_add(struct agent *agent)
{
	struct mcp_client *client;
	struct err ignored;
	bool has_some = false;

	for (size_t i = 0; (client = servers_client_at(agent->servers, i)); i++)
		has_some = has_some || mcp_client_offers(client, "resources") || mcp_client_offers(client, "prompts");
	for (size_t i = 0; has_some && i < COUNT(tools); i++) {
		struct agent_tool tool = {.call = tools[i].call,
					  .names_server = true,
					  .info = {.name = str_of(tools[i].name),
						   .title = str_of(tools[i].name),
						   .description = str_of(tools[i].description),
						   .traits = TOOL_OPEN_WORLD | TOOL_IDEMPOTENT}};
		struct jv *schema;

		if (agent_tool_find(agent, tool.info.name) ||
		    schema_text_parse(agent->arena, tools[i].args, &schema, &ignored) != 0)
			continue;
		tool.info.input_schema = schema;
		agent_tool_add(agent, &tool, &ignored); /* a tool of the workspace with this name stays */
	}
}
