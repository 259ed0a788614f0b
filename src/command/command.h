/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands as data: a command is described once, and parsing, help, the manual page and the completion of three shells
 * come from that description. A family of src/home describes its commands in its own folder (struct family.commands),
 * src/admin and src/cli describe theirs, and src/cli/commands.c merges the tables. All tables end with {0}.
 */
#ifndef STEAD_COMMAND_COMMAND_H
#define STEAD_COMMAND_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

/* What a value or an operand can be completed to. */
enum complete {
	COMPLETE_NOTHING,
	COMPLETE_HOST_DIR,
	COMPLETE_WORKSPACE,
	COMPLETE_TOOL,
	COMPLETE_PATH,    /* in the workspace */
	COMPLETE_COMMAND, /* from here on: names that the program knows */
	COMPLETE_DIALECT,
	COMPLETE_AREA, /* of search */
};

struct option {
	const char *name;  /* without "--" */
	char letter;       /* 0: none */
	const char *value; /* what the value is called in help; NULL: the option takes none */
	const char *help;
	const char *env;   /* the variable that is used when the option is not given; NULL: none */
	uint64_t min, max; /* max not 0: the value is a number in this range */
	enum complete complete;
	const char *words; /* the only values that are accepted, separated by blanks; NULL: any */
	bool optional;     /* the value may be left out, and is given as --name=VALUE only */
};

struct cli;

/* What the workspace is opened for. CLI_CLOSED: the function opens it itself (cli_open), or needs none. CLI_READS is
   also for commands that change only what is already there: no workspace is made for it. CLI_CHANGES is for
   those that change files: only the workspace of a directory (--files) is made, which may have files without it. */
enum cli_use { CLI_CLOSED, CLI_READS, CLI_CHANGES, CLI_WRITES, CLI_SERVES };

/* Both commands and actions either run a function or call a tool. */
struct action {
	const char *name;     /* "show", as in `stead notes show REF` */
	const char *operands; /* as in the usage line, "NAME [FILE]" or "SLUG..."; their number is checked */
	enum cli_use opens;
	/* 0, or -kind with err; cli->status is the exit code of success (1: nothing matched). */
	int (*run)(struct cli *cli, struct err *err);
	const char *tool, *args; /* without `run`: the tool, and its arguments in the form of cli_args() */
};

/* The heading under which help lists a command. */
enum topic {
	TOPIC_AGENT,
	TOPIC_WORKSPACES,
	TOPIC_TOOLS,
	TOPIC_FILES,
	TOPIC_HOME,
	TOPIC_HISTORY,
	TOPIC_STORES,
	TOPIC_HELP,
	TOPICS
};

struct command {
	const char *name, *summary;
	enum topic topic;
	const char *operands; /* as for an action; NULL: none, or those of its actions */
	enum cli_use opens;
	int (*run)(struct cli *cli, struct err *err);
	const char *tool, *args;
	const struct action *actions; /* the first is the default; NULL: the command does one thing */
	bool runs_operands;           /* they are a program: what follows the first of them is its own */
	bool by_person;               /* a person changes files with it, unless --agent is given (workspace/rights.h) */
	enum complete complete;       /* of operands */
	const char *words;            /* what operands can be completed to; NULL: see `complete` */
	const char *about;            /* paragraphs, lines of at most 98 columns */
	const char *examples;         /* "command\n  what it does\n" … */
	const struct option *options; /* its own, in addition to the common ones; NULL: none */
};

/* Options that every command has. */
extern const struct option common_options[];

/* In a list that ends with NULL. NULL when there is none of that name. */
const struct command *command_find(const struct command *const *list, struct str name);
/* ERR_INVALID: there is no such command; names the nearest. */
int command_unknown(const struct command *const *list, struct str name, struct err *err);
/* The operands in the usage line: "PATTERN [PATH]", "[list | show ID]"; nothing when there are none. */
void command_operands(const struct command *command, struct buf *text);

/* One exit code per kind of error; 1 is for "nothing matched". */
int exit_code_of(enum err_kind kind);
struct exit_code {
	int code;
	const char *meaning;
};
extern const struct exit_code exit_codes[]; /* ends with a meaning that is NULL */

#endif
