/* SPDX-License-Identifier: Apache-2.0 */
/* The handlers of web_fetch and web_search, which dialects offer under other names. */
#ifndef STEAD_HOME_WEB_TOOLS_H
#define STEAD_HOME_WEB_TOOLS_H

#include "tool/tool.h"

int tool_web_fetch(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);
void render_web_page(const struct jv *args, const struct jv *value, struct buf *text);
int tool_web_search(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);
void render_web_results(const struct jv *args, const struct jv *value, struct buf *text);

#endif
