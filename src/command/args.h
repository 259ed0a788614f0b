/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line, parsed. Options stand before or behind the command and between operands, as "--name value",
 * "--name=value", "-n value" or "-nvalue"; flags of one letter may be put together ("-il"); "--" ends the options; "-"
 * is an operand. Before the command only the common options are known, since a letter may mean another thing to another
 * command. Given twice, the last value counts, except where args_each is used.
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
	enum option_id id;
	struct str value;
};

struct args {
	const struct command *command; /* NULL: none was given */
	struct args_option *options;   /* in the order they came */
	size_t option_count;
	struct str *operands;
	size_t operand_count;
};

/* Also on failure `ret_args` has what was understood before it (so that --json is known for the error). Does not check
   the number of operands: --help goes before it. */
int args_parse(struct arena *arena, int argc, char *const *argv, struct args *ret_args, struct err *err);
int args_check_operands(const struct args *args, struct err *err);

bool args_has(const struct args *args, enum option_id id);
/* The last value, or STR_NONE. */
struct str args_get(const struct args *args, enum option_id id);
/* All values, in order. */
struct str *args_each(struct arena *arena, const struct args *args, enum option_id id, size_t *ret_count);
/* A number of 0 … max; absent: `fallback`. */
int args_number(const struct args *args, enum option_id id, uint64_t max, uint64_t fallback, uint64_t *ret,
		struct err *err);

#endif
