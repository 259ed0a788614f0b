/* SPDX-License-Identifier: Apache-2.0 */
/* assemble_prompt. */
#ifndef STEAD_HOME_PROMPT_PROMPT_TOOLS_H
#define STEAD_HOME_PROMPT_PROMPT_TOOLS_H

#include "command/command.h"
#include "tool/dialect.h"

extern const struct command prompt_commands[];

#endif
