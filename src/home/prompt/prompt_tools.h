/* SPDX-License-Identifier: Apache-2.0 */
/* assemble_prompt. */
#ifndef STEAD_HOME_PROMPT_PROMPT_TOOLS_H
#define STEAD_HOME_PROMPT_PROMPT_TOOLS_H

#include "tool/dialect.h"

#endif
