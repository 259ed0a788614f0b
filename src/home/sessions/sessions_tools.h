/* SPDX-License-Identifier: Apache-2.0 */
/* The session tools that dialects build on, and an entry as a line of text. */
#ifndef STEAD_HOME_SESSIONS_SESSIONS_TOOLS_H
#define STEAD_HOME_SESSIONS_SESSIONS_TOOLS_H

#include "command/command.h"
#include "tool/tool.h"

extern const struct command sessions_commands[];

extern const struct option sessions_options[];
/* Actions of the command `sessions`, which src/agent describes: it can also resume one. */
int run_sessions_list(struct cli *cli, struct err *err);
int run_sessions_show(struct cli *cli, struct err *err);
int run_sessions_append(struct cli *cli, struct err *err);
int run_sessions_archive(struct cli *cli, struct err *err);

#define SESSION_LINE_MAX 500

int tool_session_list(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);
int tool_session_history(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);
int tool_session_search(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);

/* "[user]: text", cut at `most` bytes. */
void session_line(struct arena *arena, struct buf *text, const struct jv *entry, size_t most);

#endif
