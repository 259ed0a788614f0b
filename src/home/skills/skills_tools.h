/* SPDX-License-Identifier: Apache-2.0 */
/* The skill tools: native, and as AgentScope's agents know them. */
#ifndef STEAD_HOME_SKILLS_SKILLS_TOOLS_H
#define STEAD_HOME_SKILLS_SKILLS_TOOLS_H

#include "command/command.h"
#include "tool/dialect.h"

extern const struct command skills_commands[];

extern const struct tool_group agentscope_skill_tools;

#endif
