/* SPDX-License-Identifier: Apache-2.0 */
/* The memory tools that dialects build on. */
#ifndef STEAD_HOME_MEMORY_MEMORY_TOOLS_H
#define STEAD_HOME_MEMORY_MEMORY_TOOLS_H

#include "command/command.h"
#include "tool/tool.h"

extern const struct command memory_commands[];

int tool_memory_save(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);
int tool_memory_search(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);
int tool_memory_get(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);
/* The lines of memory_get's result, each after its number and `separator`. */
void memory_lines(struct buf *text, const struct jv *value, const char *separator);

#endif
