/* SPDX-License-Identifier: Apache-2.0 */
/* The task tools: native, and as OpenPaw's agents know them. */
#ifndef STEAD_HOME_TASKS_TASKS_TOOLS_H
#define STEAD_HOME_TASKS_TASKS_TOOLS_H

#include "tool/dialect.h"

extern const struct tool_group openpaw_task_tools;

/* One line: "[ ] 1a2b3c4d research, high, 2 h old: Compare the two drafts". */
void task_line(struct buf *text, const struct jv *task);

#endif
