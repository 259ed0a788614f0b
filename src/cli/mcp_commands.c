/* SPDX-License-Identifier: Apache-2.0 */
/* `stead mcp`: the door for MCP clients, and the block that tells a client how to open it. */
#include <limits.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "cli/commands.h"
#include "command/cli.h"
#include "home/timeline/outside.h"
#include "mcp/mcp.h"

/* A client starts the program from a directory of its own, so no path in the block may be relative. */
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
	static const char *const passed[] = {"store",   "workspace", "user", "agent",
					     "session", "dialect",   "root", "files"};
	struct arena *arena = cli->ctx.arena;
	struct jv *document = jv_object(arena), *servers = jv_object(arena), *server = jv_object(arena);
	struct jv *list = jv_array(arena);
	struct str program = absolute(arena, STR("/proc/self/exe"));

	if (str_is(program, "/proc/self/exe"))
		return err_set(err, ERR_UNAVAILABLE, "mcp --print-config: /proc does not say where this program is");
	jv_push(arena, list, jv_str(arena, STR("mcp")));
	for (size_t i = 0; i < sizeof(passed) / sizeof(passed[0]); i++) {
		struct str value = cli_setting(cli, passed[i]);

		if (strcmp(passed[i], "store") == 0)
			value = absolute_store(arena, value);
		if (strcmp(passed[i], "files") == 0)
			value = value.len ? absolute(arena, value) : value;
		if (value.len) {
			jv_push(arena, list, jv_str(arena, arena_printf(arena, "--%s", passed[i])));
			jv_push(arena, list, jv_str(arena, value));
		}
	}
	if (args_has(&cli->args, "relaxed"))
		jv_push(arena, list, jv_str(arena, STR("--relaxed")));
	jv_set_str(arena, server, "command", program);
	jv_set(arena, server, "args", list);
	jv_set(arena, servers, "stead", server);
	jv_set(arena, document, "mcpServers", servers);
	output_json(&cli->out, arena, document);
	return 0;
}

static int run_mcp(struct cli *cli, struct err *err)
{
	struct outside *outside;
	int r;

	if (args_has(&cli->args, "print-config"))
		return print_config(cli, err);
	if (isatty(STDIN_FILENO) && isatty(STDERR_FILENO))
		fputs("stead mcp speaks JSON-RPC with an MCP client; 'stead mcp --print-config' prints what to paste "
		      "into one. Ctrl-D ends it.\n",
		      stderr);
	r = cli_open(cli, CLI_SERVES, err);
	if (r == 0)
		r = cli_open_tools(cli, args_get(&cli->args, "dialect"), err);
	if (r)
		return r;
	outside = outside_start(cli->ws);
	r = mcp_serve_stdio(cli->ws, cli->set, STDIN_FILENO, STDOUT_FILENO, err);
	outside_stop(outside);
	if (workspace_is_remote(cli->ws)) /* closing it must not wait for a server that does not answer */
		ctx_end_all(clock_monotonic_ns() + MCP_END_SECONDS * NS_PER_S);
	return r;
}

static const struct option options[] = {
	{"print-config", .help = "print the settings for an MCP client, and exit"},
	{0},
};

const struct command mcp_commands[] = {
	{"mcp", "serve the workspace to an MCP client (stdio)", TOPIC_TOOLS, .run = run_mcp, .options = options,
	 .about = "Speaks the Model Context Protocol on standard input and output until the input ends. The\n"
		  "workspace is created if it does not exist. Clients start this command themselves:\n"
		  "--print-config prints what to paste into their settings.\n",
	 .examples = "stead mcp --print-config -w research\n  the block for the settings of your client\n"
		     "stead mcp --files ~/project\n  serve one of your own directories\n"
		     "stead mcp --dialect anthropic-memory\n  the tools of another system\n"},
	{0},
};
