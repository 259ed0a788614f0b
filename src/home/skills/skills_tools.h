/* SPDX-License-Identifier: Apache-2.0 */
/* load_skill, which dialects build on. */
#ifndef STEAD_HOME_SKILLS_SKILLS_TOOLS_H
#define STEAD_HOME_SKILLS_SKILLS_TOOLS_H

#include "command/command.h"
#include "tool/tool.h"

extern const struct command skills_commands[];

int tool_load_skill(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);
void render_skill(const struct jv *args, const struct jv *value, struct buf *text);

#endif
