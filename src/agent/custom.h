/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Custom tools: what people put into tools/ of a workspace. A Python file (tools/x.py) has functions with @tool; a
 * description (tools/x.json) names a program of any language. Each call runs in the sandbox, with the files and the
 * variables of .env that the tool declares, and nothing else. Agents cannot write tools/.
 */
#ifndef STEAD_AGENT_CUSTOM_H
#define STEAD_AGENT_CUSTOM_H

#include "agent/agent_internal.h"

/* Adds the tools to the agent. A file that is broken, and a name that is taken, are reported and hurt no other. */
void custom_tools_add(struct agent *agent, struct ctx *ctx, void (*report)(void *arg, struct str sentence), void *arg);

#endif
