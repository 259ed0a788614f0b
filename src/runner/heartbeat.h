/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The heartbeat: at an interval the agent looks at HEARTBEAT.md and its tasks, and acts if there is something to do.
 * Whether there may be something is found out without the model. It is a schedule like the others (its due times are
 * multiples of the interval on the wall clock), with a check before the run and a log of its own, heartbeat_log.jsonl.
 */
#ifndef STEAD_RUNNER_HEARTBEAT_H
#define STEAD_RUNNER_HEARTBEAT_H

#include "home/schedules/schedules.h"

/* `ws` is a handle whose root is the whole workspace, so that its changes are those of all files. */

/* False: the heartbeat is not enabled. */
bool heartbeat_schedule(struct workspace *ws, struct arena *arena, struct schedule *ret);
/* Why there is nothing to do at `due`, or STR_NONE with the prompt in *ret_prompt and the number of active tasks. */
int heartbeat_check(struct workspace *ws, struct ctx *ctx, int64_t due, struct str *ret_reason, struct str *ret_prompt,
		    uint64_t *ret_tasks, struct err *err);
/* Where the answer goes: {channel, chat_id, delivery}, in `arena`; NULL: to nobody. */
const struct jv *heartbeat_output(struct workspace *ws, struct arena *arena);
/* Whether an answer of HEARTBEAT_OK is kept from the chat. */
bool heartbeat_keeps_ok(struct workspace *ws);
/* "HEARTBEAT_OK" and nothing else. */
bool heartbeat_is_ok(struct str answer);
/* Adds a line with the time and the workspace to the log. */
int heartbeat_log(struct workspace *ws, struct ctx *ctx, struct jv *record, struct err *err);
/* "08:00-22:30"; ERR_INVALID. `minute`: of the day. Both bounds belong to it, and it may span midnight. */
int heartbeat_hours_contain(struct str hours, int minute, bool *ret, struct err *err);

#endif
