/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STEAD_HOME_FILES_FILES_COMMANDS_H
#define STEAD_HOME_FILES_FILES_COMMANDS_H

#include "command/command.h"

extern const struct command files_commands[];

/* grep_commands.c */
extern const struct option grep_options[], find_options[];
int run_grep(struct cli *cli, struct err *err);
int run_find(struct cli *cli, struct err *err);

#endif
