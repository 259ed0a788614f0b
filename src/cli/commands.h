/* SPDX-License-Identifier: Apache-2.0 */
/* All commands, and those that belong to no family. */
#ifndef STEAD_CLI_COMMANDS_H
#define STEAD_CLI_COMMANDS_H

#include "command/command.h"

/* All commands in the order of help, NULL at the end. */
const struct command *const *command_list(void);

extern const struct command workspace_commands[]; /* init, list, schema */
extern const struct command mcp_commands[];
extern const struct command tools_commands[]; /* call, tools */
extern const struct command lease_commands[];
extern const struct command help_commands[]; /* help, completion */

/* Also without a command, and for --help of any command. */
int run_help(struct cli *cli, struct err *err);
int run_completion(struct cli *cli, struct err *err);
/* `stead mcp --print-config` (print_config.c) */
int print_config(struct cli *cli, struct err *err);

#endif
