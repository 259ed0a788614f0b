/* SPDX-License-Identifier: Apache-2.0 */
/* The memory tools: native, and as AgentScope's agents know them. */
#ifndef STEAD_HOME_MEMORY_MEMORY_TOOLS_H
#define STEAD_HOME_MEMORY_MEMORY_TOOLS_H

#include "command/command.h"
#include "tool/dialect.h"

extern const struct command memory_commands[];

extern const struct tool_group agentscope_memory_tools;

#endif
