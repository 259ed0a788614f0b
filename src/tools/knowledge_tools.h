/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STEAD_TOOLS_KNOWLEDGE_TOOLS_H
#define STEAD_TOOLS_KNOWLEDGE_TOOLS_H

#include "tools/dialect.h"

extern const struct tool_group knowledge_tools;

#endif
