/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tools.json: which tools are offered, and which MCP servers add theirs. JSON with // and block comments and trailing
 * commas; ${NAME} is filled in after parsing. Whatever is wrong is an error with its line: a deny list that is silently
 * gone would open the gate that it was meant to close.
 */
#ifndef STEAD_WORKSPACE_TOOLS_JSON_H
#define STEAD_WORKSPACE_TOOLS_JSON_H

#include "text/jv.h"

/* *ret is NULL for a text that is blank, else the checked document: {allow?, deny?, mcpServers?}. Its servers are in
   one form: {transport: stdio | http | sse, command?, args?, env?, cwd?, url?, headers?, queryParams?, timeout_ms,
   initialization_timeout_ms, disabled, enableTools?, disableTools?, protocolVersion?, sampling?,
   elicitation?, oauth?}. `vars` as for dotenv_expand. */
int tools_json_read(struct arena *arena, struct str text, const struct jv *vars, struct jv **ret, struct err *err);

#endif
