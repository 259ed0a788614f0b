/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STEAD_ADMIN_ADMIN_COMMANDS_H
#define STEAD_ADMIN_ADMIN_COMMANDS_H

#include "command/command.h"

extern const struct command admin_commands[]; /* doctor, export, import, copy, fsck */

#endif
