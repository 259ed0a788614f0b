/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers of the file tools over /task, for the tables of this family and of the dialect that has them too. */
#ifndef STEAD_HOME_BOARD_BOARD_TASK_TOOLS_H
#define STEAD_HOME_BOARD_BOARD_TASK_TOOLS_H

#include "home/board/board.h"
#include "tool/call.h"

/* `board` and `item` of the arguments. */
struct board_ref arg_item(const struct jv *args);
/* Calls a handler of the files family over the item's /task; its paths may begin with /task/. */
int board_task_call(struct call *call, struct board_ref ref, const struct jv *args,
		    int (*tool)(struct call *call, const struct jv *args, struct outcome *ret, struct err *err),
		    struct outcome *ret, struct err *err);

/* One line of the audit log of the thread that acts; nothing without a thread. */
struct board_audit {
	const char *tool;
	const struct jv *args;
	const struct err *err; /* NULL: it succeeded */
};
void board_audit(struct workspace *ws, struct ctx *ctx, struct board_ref ref, const struct board_caller *caller,
		 const struct board_audit *what);

int tool_item_ls(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);
int tool_item_read(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);
int tool_item_grep(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);
int tool_item_write(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);
int tool_item_edit(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);
int tool_item_delete(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);
int tool_item_move(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);

#endif
