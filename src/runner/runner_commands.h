/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STEAD_RUNNER_RUNNER_COMMANDS_H
#define STEAD_RUNNER_RUNNER_COMMANDS_H

#include "command/command.h"

/* status */
extern const struct command runner_commands[];
/* schedule */
extern const struct command schedule_commands[];

#endif
