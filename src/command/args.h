/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line, parsed. Options come before or after the command and between operands, as "--name value",
 * "--name=value", "-n value" or "-nvalue"; flags of one letter may be combined ("-il"); "--" ends the options; "-" is
 * an operand. Before the command only the common options are known, since a letter may mean something else to another
 * command. If an option is repeated, the last value counts, except where args_each is used.
 */
#ifndef STEAD_COMMAND_ARGS_H
#define STEAD_COMMAND_ARGS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "command/command.h"

struct args_option {
	const struct option *option;
	struct str value;
};

struct args {
	const struct command *const *list; /* all commands */
	const struct command *command;     /* NULL: none was given */
	const struct action *action;       /* of a command that has actions; set by args_check */
	struct args_option *options;       /* in the order in which they were given */
	size_t option_count;
	struct str *operands; /* without the name of the action */
	size_t operand_count;
};

/* `list`: all commands, NULL at the end. Also on failure `ret_args` has what was understood before it (so that --json
   is known for the error). */
int args_parse(struct arena *arena, const struct command *const *list, int argc, char *const *argv,
	       struct args *ret_args, struct err *err);
/* Chooses the action, and checks operands and numbers. Separate from args_parse because --help comes first. */
int args_check(struct args *args, struct err *err);

/* Options are asked for by name. A name that neither the command nor common_options declares is a bug, and aborts. */
bool args_has(const struct args *args, const char *name);
/* The last value, or STR_NONE. */
struct str args_get(const struct args *args, const char *name);
/* All values, in order. */
struct str *args_each(struct arena *arena, const struct args *args, const char *name, size_t *ret_count);
/* The value of an option that is a number (struct option.max), or `fallback`. */
uint64_t args_number(const struct args *args, const char *name, uint64_t fallback);
/* The declaration of an option. */
const struct option *args_option(const struct args *args, struct str name);
/* The operand at `index`, or "". */
struct str args_operand(const struct args *args, size_t index);

#endif
