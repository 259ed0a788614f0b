/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Planning: a plan that is written before anything is done, and a list of what is to do now. Both belong to a session
 * of an agent (that of the call, or the one that the workspace was opened for; without one there is one list for all).
 *
 *   plans/PLAN.md, plans/<session>.md                    the plan, for people too
 *   agents/<agent>/context/<session>/planning.json       whether plan mode is on, and the list
 *
 * While plan mode is on, tools that change something are refused, except those of planning itself.
 */
#ifndef STEAD_HOME_PLANS_PLANS_H
#define STEAD_HOME_PLANS_PLANS_H

#include "text/jv.h"
#include "tool/prompt_section.h"
#include "workspace/workspace.h"

/* Where both lie for the session of the call. */
void plan_places(struct workspace *ws, struct ctx *ctx, struct wpath *ret_plan, struct wpath *ret_state);
/* {active, path, exists, content?} */
int plan_look(struct workspace *ws, struct ctx *ctx, bool with_content, struct jv **ret, struct err *err);
int plan_enter(struct workspace *ws, struct ctx *ctx, struct jv **ret, struct err *err);
int plan_write(struct workspace *ws, struct ctx *ctx, struct str content, struct jv **ret, struct err *err);
/* ERR_INVALID when plan mode is not on. `summary` (may be empty) is kept with the state. */
int plan_exit(struct workspace *ws, struct ctx *ctx, struct str summary, struct jv **ret, struct err *err);
/* A person turns plan mode off, with or without a plan. */
int plan_leave(struct workspace *ws, struct ctx *ctx, struct jv **ret, struct err *err);
/* 0 unless plan mode is on. Looks into the store at most once a second. */
int plan_refuses(struct workspace *ws, struct ctx *ctx, const char *tool, struct err *err);

/* Replaces the list: [{content, status: pending | in_progress | completed, priority: high | medium | low, evidence?}].
   At most one is in progress; an item keeps its id while its content is the same. `evidence` of a completed item is a
   path of the tools' file area, which must exist, or a sentence. *ret: {todos: […], open}. */
int todo_write(struct workspace *ws, struct ctx *ctx, const struct jv *todos, struct jv **ret, struct err *err);
int todo_read(struct workspace *ws, struct ctx *ctx, struct jv **ret, struct err *err);

/* For the prompt. */
extern const struct prompt_section plans_sections[];

#endif
