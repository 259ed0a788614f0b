/* SPDX-License-Identifier: Apache-2.0 */
/* The memory tools: native, and as AgentScope's agents know them. */
#ifndef STEAD_TOOLS_MEMORY_TOOLS_H
#define STEAD_TOOLS_MEMORY_TOOLS_H

#include "tools/dialect.h"

extern const struct tool_group memory_tools, agentscope_memory_tools;

#endif
