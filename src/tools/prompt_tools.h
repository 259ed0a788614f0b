/* SPDX-License-Identifier: Apache-2.0 */
/* assemble_prompt. */
#ifndef STEAD_TOOLS_PROMPT_TOOLS_H
#define STEAD_TOOLS_PROMPT_TOOLS_H

#include "tools/dialect.h"

extern const struct tool_group prompt_tools;

#endif
