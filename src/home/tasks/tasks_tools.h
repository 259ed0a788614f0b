/* SPDX-License-Identifier: Apache-2.0 */
/* The task tools: native, and as OpenPaw's agents know them. */
#ifndef STEAD_HOME_TASKS_TASKS_TOOLS_H
#define STEAD_HOME_TASKS_TASKS_TOOLS_H

#include "command/command.h"
#include "tool/dialect.h"

extern const struct command tasks_commands[];

extern const struct tool_group openpaw_task_tools;

#endif
