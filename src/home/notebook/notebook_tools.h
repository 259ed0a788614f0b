/* SPDX-License-Identifier: Apache-2.0 */
/* The tools of the notebook (home/notebook.h), for the native table and for dialects. */
#ifndef STEAD_HOME_NOTEBOOK_NOTEBOOK_TOOLS_H
#define STEAD_HOME_NOTEBOOK_NOTEBOOK_TOOLS_H

#include "command/command.h"
#include "home/notebook/notebook.h"
#include "tool/tool.h"

extern const struct command notebook_commands[];

int tool_note(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);
int tool_read_note(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);
int tool_list_notes(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);
int tool_search_notes(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);
int tool_update_note(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);
int tool_archive_note(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);
int tool_ask_question(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);
int tool_answer_question(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);
int tool_list_open_questions(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);

#endif
