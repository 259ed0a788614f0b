/* SPDX-License-Identifier: Apache-2.0 */
/* `stead mcp`: the door for MCP clients, and the block that tells a client how to open it. */
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "cli/commands.h"
#include "command/cli.h"
#include "home/timeline/outside.h"
#include "mcp/mcp.h"

#define OUTSIDE_START_MS 300 /* the first requests are answered before the files are watched */

static int run_mcp(struct cli *cli, struct err *err)
{
	struct mcp_opts opts = {.structured = args_has(&cli->args, "structured")};
	struct toolset *offered = NULL;
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
	if (r == 0)
		r = cli_choose_tools(cli, &offered, err);
	if (r)
		return r;
	outside = outside_start(cli->ws, OUTSIDE_START_MS);
	r = mcp_serve_stdio(cli->ws, offered, &opts, STDIN_FILENO, STDOUT_FILENO, err);
	outside_stop(outside);
	toolset_destroy(offered);
	if (workspace_is_remote(cli->ws)) /* closing it must not wait for a server that does not answer */
		ctx_end_all(clock_monotonic_ns() + MCP_END_SECONDS * NS_PER_S);
	return r;
}

static const struct option options[] = {
	TOOLS_OPTIONS,
	{"structured", .help = "also return results as data, with output schemas: for programs, not for models"},
	{"print-config", 0, "CLIENT", .optional = true,
	 .help = "print the settings for MCP clients, or for one client (--print-config=vscode), and exit",
	 .words = "claude-code claude-desktop cursor vscode codex opencode zed gemini"},
	{0},
};

const struct command mcp_commands[] = {
	{"mcp", "serve the workspace to an MCP client (stdio)", TOPIC_TOOLS, .run = run_mcp, .options = options,
	 .about = "Speaks the Model Context Protocol on standard input and output until the input ends. The\n"
		  "workspace is created if it does not exist. Clients start this command themselves:\n"
		  "--print-config prints what to paste into their settings.\n"
		  "\n"
		  "A client gets a small set of tools, because models pay for each one: 'stead tools' marks them.\n"
		  "--tools chooses others: default, all, names of tools, or families such as memory or tasks\n"
		  "(\"default,plans\").\n",
	 .examples = "stead mcp --print-config -w research\n  what to paste into your client's settings\n"
		     "stead mcp --print-config=codex --files .\n  the same for Codex, and this directory\n"
		     "stead mcp --files ~/project\n  serve one of your directories\n"
		     "stead mcp --tools default,plans --read-only\n"
		     "  more tools, but only those that change nothing\n"
		     "stead mcp --dialect anthropic-memory\n  another system's tools\n"},
	{0},
};
