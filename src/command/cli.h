/* SPDX-License-Identifier: Apache-2.0 */
/* What every command runs with: its arguments, its memory, its output, and the workspace when it asks for one. */
#ifndef STEAD_COMMAND_CLI_H
#define STEAD_COMMAND_CLI_H

#include "base/ctx.h"
#include "command/args.h"
#include "command/output.h"
#include "tool/tool.h"
#include "workspace/workspace.h"

struct cli {
	struct args args;
	struct ctx ctx; /* ctx.arena lives as long as the command */
	struct output out;
	struct progress progress;
	bool json;
	int status;           /* exit code when run() succeeds */
	struct str detail;    /* lines behind the sentence of an error */
	const char *hint;     /* how an error is avoided on the command line; NULL: none */
	struct workspace *ws; /* closed by main() */
	struct toolset *set;
};

/* An option's value, or else the environment's ($STEAD_STORE, …); STR_NONE when neither is there. */
struct str cli_setting(const struct cli *cli, enum option_id id);

enum cli_use { CLI_READS, CLI_WRITES, CLI_SERVES };
/* Opens the workspace that the options name, as cli->ws. "default" is made when it is missing; one that is named only
   by a command that serves it. A command that only reads the person's own directory (--files) makes no workspace. */
int cli_open(struct cli *cli, enum cli_use use, struct err *err);
/* The tools of the workspace that is open, as cli->set. */
int cli_open_tools(struct cli *cli, struct str dialect, struct err *err);
/* Calls a native tool for a command, and prints its text or, with --json, its value. */
int cli_call(struct cli *cli, const char *tool, const struct jv *args, struct err *err);
/* Prints a result; a tool's error becomes err with its details in cli->detail. */
int cli_print_result(struct cli *cli, const struct tool_result *result, struct err *err);
/* What a person typed as a path of the workspace. */
int cli_path(struct cli *cli, struct str text, struct wpath *ret, struct err *err);
/* ctx_progress() calls are shown from now on. `verb`: "searched". */
void cli_show_progress(struct cli *cli, const char *verb);

#endif
