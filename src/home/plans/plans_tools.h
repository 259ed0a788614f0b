/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STEAD_HOME_PLANS_PLANS_TOOLS_H
#define STEAD_HOME_PLANS_PLANS_TOOLS_H

#include "tool/tool.h"

/* The items of a to-do list, a line each: "- [x] text", with `running` as the mark of what is in progress. */
void todo_lines(const struct jv *value, const char *running, struct buf *text);

#endif
