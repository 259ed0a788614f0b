/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the dialect `wacht` that work on boards. */
#ifndef STEAD_DIALECTS_WACHT_BOARD_H
#define STEAD_DIALECTS_WACHT_BOARD_H

#include "dialects/common.h"
#include "home/board/board.h"

typedef int (*wacht_tool)(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);

/* The item that the arguments name (board_item_id or task_key), or whose /task is the tool root; false: none. */
bool wacht_item(struct call *call, const struct jv *args, struct board_ref *ret);
/* Calls a file tool over the item's /task, or where there is no item over the tool root. */
int wacht_over_task(struct call *call, const struct jv *args, wacht_tool tool, struct outcome *ret, struct err *err);

int wacht_create(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);
int wacht_update(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);
int wacht_assign(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);
int wacht_get(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);
int wacht_list_threads(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);
int wacht_create_thread(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);
int wacht_update_thread(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);
int wacht_subscribe(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);
int wacht_unsubscribe(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);
int wacht_delegate(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);
int wacht_ask(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);
int wacht_notify(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);
int wacht_resolve(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);
int wacht_terminate(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);
int wacht_abort(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);
int wacht_sleep(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);

#endif
