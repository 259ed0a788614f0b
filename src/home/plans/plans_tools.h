/* SPDX-License-Identifier: Apache-2.0 */
/* Planning tools: native, and as AgentScope's and OpenPaw's agents know them. */
#ifndef STEAD_HOME_PLANS_PLANS_TOOLS_H
#define STEAD_HOME_PLANS_PLANS_TOOLS_H

#include "tool/dialect.h"

extern const struct tool_group agentscope_plan_tools, openpaw_plan_tools;

#endif
