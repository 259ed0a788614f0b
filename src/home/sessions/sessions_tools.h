/* SPDX-License-Identifier: Apache-2.0 */
/* The session tools: native, and as AgentScope's and OpenPaw's agents know them. */
#ifndef STEAD_HOME_SESSIONS_SESSIONS_TOOLS_H
#define STEAD_HOME_SESSIONS_SESSIONS_TOOLS_H

#include "command/command.h"
#include "tool/dialect.h"

extern const struct command sessions_commands[];

extern const struct tool_group agentscope_session_tools, openpaw_session_tools;

/* "[user]: text", cut at `most` bytes; also the command line prints entries so. */
void session_line(struct arena *arena, struct buf *text, const struct jv *entry, size_t most);

#endif
