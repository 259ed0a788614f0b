/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of subagents: agents/<agent>/tasks/<session>.json of the conversation at the top has one for each task that
 * it, its subagents and theirs have given away, by id, in the form of AgentScope (taskId, subAgentId, status, …). A
 * record is written before its subagent starts and survives it, so that the next process knows what was going on.
 */
#ifndef STEAD_AGENT_RECORDS_H
#define STEAD_AGENT_RECORDS_H

#include "home/sessions/sessions.h"

/* The conversation at the top. */
struct records {
	struct workspace *ws;
	struct session_ref top;
};

/* {id: record}; {} when there are none. */
int task_records_read(const struct records *records, struct arena *arena, struct jv **ret_tasks, struct err *err);
/* Changes them under a condition: `edit` may be called several times. An error of `edit` changes nothing. */
typedef int (*records_edit)(void *arg, struct arena *arena, struct jv *tasks, struct err *err);
int task_records_change(const struct records *records, struct arena *arena, records_edit edit, void *arg,
			struct err *err);
/* Sets these members of one record; null removes a member. What has ended keeps its status. */
int task_records_set(const struct records *records, struct arena *arena, struct str id, const struct jv *members,
		     struct err *err);

/* COMPLETED, FAILED or CANCELLED. */
bool record_has_ended(const struct jv *record);
/* By its id, or by its label among the tasks of this conversation. NULL: none. */
const struct jv *record_find(const struct jv *tasks, struct str name, struct str session);

#endif
