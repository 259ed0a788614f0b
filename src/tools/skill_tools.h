/* SPDX-License-Identifier: Apache-2.0 */
/* The skill tools: native, and as AgentScope's agents know them. */
#ifndef STEAD_TOOLS_SKILL_TOOLS_H
#define STEAD_TOOLS_SKILL_TOOLS_H

#include "tools/dialect.h"

extern const struct tool_group skill_tools, agentscope_skill_tools;

#endif
