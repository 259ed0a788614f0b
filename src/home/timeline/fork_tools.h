/* SPDX-License-Identifier: Apache-2.0 */
/* Forks: workspaces to try something in, and merging the result. */
#ifndef STEAD_HOME_TIMELINE_FORK_TOOLS_H
#define STEAD_HOME_TIMELINE_FORK_TOOLS_H

#include "tool/tool.h"

int tool_fork(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);
int tool_merge(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);
void render_fork(const struct jv *args, const struct jv *value, struct buf *text);
void render_merge(const struct jv *args, const struct jv *value, struct buf *text);

#endif
