/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STEAD_HOME_TASKS_TASKS_TOOLS_H
#define STEAD_HOME_TASKS_TASKS_TOOLS_H

#include "text/jv.h"

/* One line: "[ ] 1a2b3c4d research, high, 2 h old: Compare the two drafts". */
void task_line(struct buf *text, const struct jv *task);

#endif
