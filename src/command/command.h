/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command table: a command is described once, and parsing, help, the man page and the completion of three shells
 * come from that description. What is not in the table does not exist.
 */
#ifndef STEAD_COMMAND_COMMAND_H
#define STEAD_COMMAND_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* Every option of every command. One name means one thing wherever it occurs. */
enum option_id {
	OPT_STORE,
	OPT_CONFIG,
	OPT_WORKSPACE,
	OPT_USER,
	OPT_AGENT,
	OPT_SESSION,
	OPT_DIALECT,
	OPT_ROOT,
	OPT_FILES,
	OPT_RELAXED,
	OPT_JSON,
	OPT_HELP,
	OPT_VERSION,
	OPT_MODEL,
	OPT_CHANNEL,
	OPT_PRINT_CONFIG,
	OPT_LONG,
	OPT_MODE,
	OPT_IF_VERSION,
	OPT_CONTENT,
	OPT_REPLACE_ALL,
	OPT_DRY_RUN,
	OPT_LITERAL,
	OPT_IGNORE_CASE,
	OPT_CONTEXT,
	OPT_INCLUDE,
	OPT_EXCLUDE,
	OPT_COUNT,
	OPT_FILES_WITH_MATCHES,
	OPT_ALL,
	OPT_THREADS,
	OPT_FORCE,
	OPT_RECURSIVE,
	OPT_MAN,
	OPT_SINCE,
	OPT_UNTIL,
	OPT_CALL,
	OPT_ACTOR,
	OPT_LIMIT,
	OPT_ONCE,
	OPT_WORDS,
	OPT_LINES,
	OPT_AT,
	OPT_PARTIAL,
	OPT_PREFER,
	OPT_STATUS,
	OPT_TYPE,
	OPT_HOLDER,
	OPT_TTL,
	OPT_WAIT,
	OPT_FENCE,
	OPT_KIND,
	OPT_TAG,
	OPT_AUTHOR,
	OPT_OLDER_THAN,
	OPT_KEEP,
	OPT_FAILED,
	OPT_AREA,
	OPT_EXPLAIN,
	OPT_EXACT,
	OPT_DELETE,
	OPT_REPAIR,
	OPT_BUDGET,
	OPTIONS
};

/* What a value or an operand can be completed to. */
enum complete {
	COMPLETE_NOTHING,
	COMPLETE_WORDS, /* those in `words` */
	COMPLETE_HOST_DIR,
	COMPLETE_WORKSPACE,
	COMPLETE_TOOL,
	COMPLETE_PATH, /* in the workspace */
	COMPLETE_COMMAND,
	COMPLETE_DIALECT,
};

struct option {
	enum option_id id;
	char letter;       /* 0: none */
	const char *name;  /* without "--" */
	const char *value; /* what the value is called in help; NULL: takes none */
	const char *help;
	enum complete complete;
	const char *words; /* COMPLETE_WORDS: separated by spaces; then no other value is taken */
};

struct cli;

struct command {
	const char *name, *summary;
	const char *operands; /* as in the usage line: "PATTERN [PATH]" */
	unsigned operands_min, operands_max;
	enum complete complete; /* of operands */
	const char *words;
	const char *about;            /* paragraphs, lines of at most 78 columns */
	const char *examples;         /* "command\n  what it does\n" … */
	const struct option *options; /* its own, behind the common ones */
	size_t option_count;
	/* 0, or -kind with err; cli->status is the exit code of success (1: nothing matched). */
	int (*run)(struct cli *cli, struct err *err);
};

extern const struct command commands[];
extern const size_t command_count;
extern const struct option common_options[];
extern const size_t common_option_count;

/* NULL when there is none of that name. */
const struct command *command_find(struct str name);
/* ERR_INVALID: there is no such command; names the nearest. */
int command_unknown(struct str name, struct err *err);

/* One exit code per kind of error; 1 is for "nothing matched". */
int exit_code_of(enum err_kind kind);
struct exit_code {
	int code;
	const char *meaning;
};
extern const struct exit_code exit_codes[];
extern const size_t exit_code_count;

int run_help(struct cli *cli, struct err *err);
int run_completion(struct cli *cli, struct err *err);
int run_init(struct cli *cli, struct err *err);
int run_list(struct cli *cli, struct err *err);
int run_doctor(struct cli *cli, struct err *err);
int run_schema(struct cli *cli, struct err *err);
int run_mcp(struct cli *cli, struct err *err);
int run_call(struct cli *cli, struct err *err);
int run_tools(struct cli *cli, struct err *err);
int run_ls(struct cli *cli, struct err *err);
int run_cat(struct cli *cli, struct err *err);
int run_write(struct cli *cli, struct err *err);
int run_edit(struct cli *cli, struct err *err);
int run_grep(struct cli *cli, struct err *err);
int run_search(struct cli *cli, struct err *err);
int run_find(struct cli *cli, struct err *err);
int run_mv(struct cli *cli, struct err *err);
int run_cp(struct cli *cli, struct err *err);
int run_rm(struct cli *cli, struct err *err);
int run_export(struct cli *cli, struct err *err);
int run_import(struct cli *cli, struct err *err);
int run_gc(struct cli *cli, struct err *err);
int run_info(struct cli *cli, struct err *err);
int run_history(struct cli *cli, struct err *err);
int run_diff(struct cli *cli, struct err *err);
int run_restore(struct cli *cli, struct err *err);
int run_undo(struct cli *cli, struct err *err);
int run_checkpoint(struct cli *cli, struct err *err);
int run_watch(struct cli *cli, struct err *err);
int run_sessions(struct cli *cli, struct err *err);
int run_memory(struct cli *cli, struct err *err);
int run_usage(struct cli *cli, struct err *err);
int run_note(struct cli *cli, struct err *err);
int run_notes(struct cli *cli, struct err *err);
int run_tasks(struct cli *cli, struct err *err);
int run_skills(struct cli *cli, struct err *err);
int run_prompt(struct cli *cli, struct err *err);
int run_knowledge(struct cli *cli, struct err *err);
int run_subagents(struct cli *cli, struct err *err);
int run_upload(struct cli *cli, struct err *err);
int run_fork(struct cli *cli, struct err *err);
int run_merge(struct cli *cli, struct err *err);
int run_lease(struct cli *cli, struct err *err);
int run_copy(struct cli *cli, struct err *err);
int run_fsck(struct cli *cli, struct err *err);

#endif
