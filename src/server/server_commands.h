/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STEAD_SERVER_SERVER_COMMANDS_H
#define STEAD_SERVER_SERVER_COMMANDS_H

#include "command/command.h"

extern const struct command server_commands[];
/* up */
extern const struct command up_commands[];

#endif
