/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STEAD_HOME_TIMELINE_TIMELINE_COMMANDS_H
#define STEAD_HOME_TIMELINE_TIMELINE_COMMANDS_H

#include "command/command.h"

extern const struct command timeline_commands[];

/* diff_commands.c */
extern const struct option diff_options[];
int run_diff(struct cli *cli, struct err *err);

#endif
