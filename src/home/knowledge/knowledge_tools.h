/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STEAD_HOME_KNOWLEDGE_KNOWLEDGE_TOOLS_H
#define STEAD_HOME_KNOWLEDGE_KNOWLEDGE_TOOLS_H

#include "command/command.h"
#include "tool/dialect.h"

extern const struct command knowledge_commands[];

#endif
