/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The task list: what an agent means to do across conversations. It is in TASKS.yaml, and when that is full, in files
 * of single tasks below tasks/. People may edit them: their comments and keys of their own stay. A TASKS.yaml that
 * cannot be read is never emptied: the next change sets it aside and says so.
 */
#ifndef STEAD_HOME_TASKS_TASKS_H
#define STEAD_HOME_TASKS_TASKS_H

#include "command/command.h"
#include "text/jv.h"
#include "tool/prompt_section.h"

/* `status` and `type` may be empty. Urgent first, then the oldest. Each gets "short_id": the least of its id, at least
   8 characters, that names it alone. */
int tasks_list(struct workspace *ws, struct ctx *ctx, struct str status, struct str type, struct jv **ret_tasks,
	       struct err *err);
/* `id` is any beginning of an id that only one task has. ERR_INVALID tells which have it. */
int tasks_get(struct workspace *ws, struct ctx *ctx, struct str id, struct jv **ret_task, struct err *err);
/* *ret_note (may come back empty): something to tell, such as a broken file that was set aside. */
int tasks_create(struct workspace *ws, struct ctx *ctx, const struct jv *fields, struct jv **ret_task,
		 struct str *ret_note, struct err *err);
/* `fields`: status, notes (added to those there are), description, priority, deadline, metadata, result_summary,
   result_path, error_message, … Sets started_at and completed_at by the status and counts the check. */
int tasks_update(struct workspace *ws, struct ctx *ctx, struct str id, const struct jv *fields, struct jv **ret_task,
		 struct str *ret_note, struct err *err);
/* Only a task that has ended, unless `force`. */
int tasks_delete(struct workspace *ws, struct ctx *ctx, struct str id, bool force, struct jv **ret_task,
		 struct err *err);
/* What nobody looked after for 48 hours has failed; what ended 3 days ago goes (builtins.task_tracker.config:
   stale_hours, max_age_days; 0: never). Every change does it too, for TASKS.yaml and some of the other files. */
int tasks_clean(struct workspace *ws, struct ctx *ctx, uint64_t *ret_failed, uint64_t *ret_removed, struct err *err);
/* True for pending, in_progress and awaiting_check. */
bool task_is_active(const struct jv *task);

/* For `stead doctor`. */
void tasks_check(struct workspace *ws, struct ctx *ctx, const struct findings *findings);
/* For the prompt. */
extern const struct prompt_section tasks_sections[];

extern const struct command tasks_commands[];

#endif
