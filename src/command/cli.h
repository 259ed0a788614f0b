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
	bool relaxed;         /* the workspace is opened as with --relaxed */
	bool with_git;        /* and, for a person, with git's own directory (workspace_opts) */
	int status;           /* exit code when the command succeeds */
	struct str detail;    /* lines that follow the sentence of an error */
	const char *hint;     /* how an error is avoided on the command line; NULL: none */
	struct workspace *ws; /* closed by main() */
	struct store *task;   /* what a task shows as its files; NULL: they are those of the workspace. The same */
	struct toolset *set;
};

/* Runs the command or its action: its function, or its tool. */
int cli_run(struct cli *cli, struct err *err);

/* An option's value, or else that of its environment variable; STR_NONE when neither is set. "store" also considers
   --config and the stead.yaml of the current directory. */
struct str cli_setting(const struct cli *cli, const char *option);

/* The options of commands that offer tools. */
#define TOOLS_OPTIONS                                                                                                  \
	{"tools", 0, "NAME,...", .env = "STEAD_TOOLS",                                                                 \
	 .help = "the tools to offer: default, all, names of tools or families (files, memory, tasks, ...)"},          \
	{                                                                                                              \
		"read-only", .help = "offer only tools that change nothing"                                            \
	}

/* In the dialect "omnicoreagent", when neither is given: the store and the workspace that OmniCoreAgent's variables
   name (foreign_place.c). */
int cli_foreign_place(struct arena *arena, struct str dialect, struct str *store, struct str *name, struct err *err);
/* Opens the workspace that the options name, as cli->ws. A directory of the host (--files) without a name has a
   workspace of its own, named after it. A missing "default", or that of a directory, is created by a command that
   writes; a missing workspace of another name only by a command that serves it. What a command reads of a directory
   whose workspace does not exist is empty. ERR_INVALID, ERR_NOT_FOUND: a dialect or a root that does not exist. */
int cli_open(struct cli *cli, enum cli_use use, struct err *err);
/* The same for a command over the files: those of a task have what is mounted into it. ERR_NOT_FOUND: there is no such
   task. */
int cli_open_files(struct cli *cli, enum cli_use use, struct err *err);
struct store *cli_files(struct cli *cli);
/* The workspace that the options name, else that of a directory of the host, for commands that open several. The caller
   closes it. */
int cli_open_dir(struct cli *cli, struct str dir, struct workspace **ret_ws, struct err *err);
/* The tools of the workspace that is open, as cli->set. */
int cli_open_tools(struct cli *cli, struct str dialect, struct err *err);
/* What the options of TOOLS_OPTIONS say. */
struct toolset_choice cli_choice(const struct cli *cli);
/* Those of cli->set that a client gets by them. To be destroyed before cli->set. */
int cli_choose_tools(struct cli *cli, struct toolset **ret_offered, struct err *err);

/*
 * Arguments for a tool from the command line, described by words: "path" is the next operand (left out when it is not
 * given), "if_version=--if-version" an option, "tags=--tag..." a list of all values of an option. A flag becomes true,
 * an option with a range a number. ERR_INVALID: text that is not UTF-8.
 */
int cli_args(struct cli *cli, const char *words, struct jv **ret_args, struct err *err);
/* Calls a native tool and prints its result. Opens the workspace unless it is already open. */
int cli_call(struct cli *cli, const char *tool, const struct jv *args, struct err *err);
/* cli_args() and cli_call() together. */
int cli_tool(struct cli *cli, const char *tool, const char *words, struct err *err);
/* For errors of stores and tools, which name a tool's arguments: says how the command spells them. Returns `r`. */
int cli_hint(struct cli *cli, int r, enum err_kind kind, const char *text);

/* Errors come from stores and tools, and name tools and their arguments: says what a person types instead. */
void cli_speak_commands(const struct cli *cli, struct err *err);

/* With --json: prints the value and returns true. */
bool cli_json(struct cli *cli, const struct jv *value);
/* The text that the native tool of that name renders for a value. */
struct str cli_render(struct cli *cli, const char *tool, const struct jv *value);
/* Prints the value with --json, else that text. */
void cli_print(struct cli *cli, const char *tool, const struct jv *value);
/* The same for a list, which the tool's value has under `key`. */
void cli_print_list(struct cli *cli, const char *tool, const char *key, struct jv *list);
/* Prints a result; a tool's error becomes err with its details in cli->detail. */
int cli_print_result(struct cli *cli, const struct tool_result *result, struct err *err);

/* What a person typed as a path of the workspace. */
int cli_path(struct cli *cli, struct str text, struct wpath *ret, struct err *err);
/* ctx_progress() calls are shown from now on. `verb`: "searched". */
void cli_show_progress(struct cli *cli, const char *verb);

#endif
