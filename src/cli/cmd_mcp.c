/* SPDX-License-Identifier: Apache-2.0 */
/* `stead mcp`: the door for MCP clients, and the block that tells a client how to open it. */
#include <limits.h>
#include <unistd.h>

#include "command/cli.h"
#include "home/timeline/outside.h"
#include "mcp/mcp.h"

static void push_option(struct arena *arena, struct jv *list, const char *name, struct str value)
{
	jv_push(arena, list, jv_str(arena, str_of(name)));
	jv_push(arena, list, jv_str(arena, value));
}

/* A client starts the program from a directory of its own, so nothing relative may stand in the block. */
static struct str absolute(struct arena *arena, struct str path)
{
	char whole[PATH_MAX];

	if (realpath(arena_cstr(arena, path), whole))
		return arena_str(arena, str_of(whole));
	/* a directory that will be made later */
	if (path.len == 0 || path.ptr[0] == '/' || !getcwd(whole, sizeof(whole)))
		return path;
	return arena_printf(arena, "%s/%.*s", whole, STR_ARG(str_starts(path, STR("./")) ? str_from(path, 2) : path));
}

static struct str absolute_store(struct arena *arena, struct str url)
{
	if (str_starts(url, STR("config:")))
		return arena_printf(arena, "config:%.*s", STR_ARG(absolute(arena, str_from(url, 7))));
	if (!str_starts(url, STR("disk:")))
		return url;
	return arena_printf(arena, "disk:%.*s", STR_ARG(absolute(arena, str_from(url, 5))));
}

static int print_config(struct cli *cli, struct err *err)
{
	static const struct {
		enum option_id id;
		const char *name;
	} passed[] = {{OPT_STORE, "--store"}, {OPT_WORKSPACE, "--workspace"}, {OPT_USER, "--user"},
		      {OPT_AGENT, "--agent"}, {OPT_SESSION, "--session"},     {OPT_DIALECT, "--dialect"},
		      {OPT_ROOT, "--root"},   {OPT_FILES, "--files"}};
	struct arena *arena = cli->ctx.arena;
	struct jv *document = jv_object(arena), *servers = jv_object(arena), *server = jv_object(arena);
	struct jv *list = jv_array(arena);
	struct str program = absolute(arena, STR("/proc/self/exe"));

	if (str_is(program, "/proc/self/exe"))
		return err_set(err, ERR_UNAVAILABLE, "mcp --print-config: /proc does not tell where this program lies");
	jv_push(arena, list, jv_str(arena, STR("mcp")));
	for (size_t i = 0; i < sizeof(passed) / sizeof(passed[0]); i++) {
		struct str value = cli_setting(cli, passed[i].id);

		if (passed[i].id == OPT_STORE)
			value = absolute_store(arena, value);
		if (passed[i].id == OPT_FILES)
			value = value.len ? absolute(arena, value) : value;
		if (value.len)
			push_option(arena, list, passed[i].name, value);
	}
	if (args_has(&cli->args, OPT_RELAXED))
		jv_push(arena, list, jv_str(arena, STR("--relaxed")));
	jv_set_str(arena, server, "command", program);
	jv_set(arena, server, "args", list);
	jv_set(arena, servers, "stead", server);
	jv_set(arena, document, "mcpServers", servers);
	output_json(&cli->out, arena, document);
	return 0;
}

int run_mcp(struct cli *cli, struct err *err)
{
	struct outside *outside;
	int r;

	if (args_has(&cli->args, OPT_PRINT_CONFIG))
		return print_config(cli, err);
	if (isatty(STDIN_FILENO) && isatty(STDERR_FILENO))
		fputs("stead mcp speaks JSON-RPC with an MCP client; 'stead mcp --print-config' prints what to paste "
		      "into one. Ctrl-D ends it.\n",
		      stderr);
	r = cli_open(cli, CLI_SERVES, err);
	if (r == 0)
		r = cli_open_tools(cli, args_get(&cli->args, OPT_DIALECT), err);
	if (r)
		return r;
	outside = outside_start(cli->ws);
	r = mcp_serve_stdio(cli->ws, cli->set, STDIN_FILENO, STDOUT_FILENO, err);
	outside_stop(outside);
	return r;
}
