/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Subagents that run. A subagent is an agent like any other, with a session of its own (sub-…), whose turns are durable
 * steps; it differs in who talks to it. Its thread belongs to the crew of the opened workspace, not to the turn that
 * started it: a background task continues when the turn has ended, and ends with the workspace. The next process that
 * runs a turn of the parent takes up what was not finished.
 */
#ifndef STEAD_AGENT_CHILDREN_H
#define STEAD_AGENT_CHILDREN_H

#include <pthread.h>
#include <stdatomic.h>

#include "agent/agent_internal.h"
#include "agent/records.h"

struct child_limits {
	bool enabled;
	unsigned max_depth;
	uint64_t max_running, max_tasks, max_tokens; /* of the whole tree; max_tokens 0: no limit */
	int64_t timeout_ns;                          /* of one task, with everything below it */
};
struct child_limits child_limits_read(const struct jv *document);

/* --- crew.c: threads --- */

/* The subagents of an opened workspace that run now. */
struct crew;
struct crew *crew_of(struct workspace *ws);
struct workspace *crew_workspace(struct crew *crew);
/* Starts the subagent of a record, unless it runs already or the workspace is being closed. `parent` lends its model,
 * its tools and its servers. */
void crew_start(struct crew *crew, struct agent *parent, const struct records *records, const struct jv *record);
/* Waits until none of these (an array of ids; NULL: none of this conversation's) runs in this process, or, with `any`,
   until one of them does not. False: the time is over. ERR_CANCELLED and ERR_TIMEOUT of ctx count as that. */
bool crew_wait(struct crew *crew, const struct ctx *ctx, struct str session, const struct jv *ids, bool any,
	       int64_t wait_ns);
/* True: it ran here, and will end soon. */
bool crew_cancel(struct crew *crew, struct str id);

/* What all subagents of one conversation share. */
struct tree {
	struct tree *next;
	struct arena *arena; /* of the names */
	struct session_ref top;
	size_t users;
	_Atomic uint64_t tokens;
};

/* --- child.c: the life of one --- */

struct child {
	struct child *next;
	struct crew *crew;
	struct tree *tree;
	struct arena *arena; /* of what is below */
	pthread_t thread;
	struct cancel cancel;
	bool is_done;             /* under the lock of the crew */
	atomic_bool is_cancelled; /* somebody asked for it; else the process ends, and the task continues later */
	struct records records;   /* of the tree */
	struct jv *record;        /* as it was at the start */
	struct agent_opts opts;   /* of the parent */
	struct servers *servers;
	struct kin kin; /* its own */
	int64_t looked_ns;
};
/* Runs it to its end, and writes that into its record. */
void child_run(struct child *child);

/* --- children.c: what a parent does --- */

struct spawn {
	struct str agent_id; /* empty: general-purpose */
	struct str task, role, label, output_path;
	const struct jv *only, *never; /* patterns of tool names; NULL: no limit */
	int64_t timeout_ns;            /* 0: as agent.yaml says */
};
/* All give records. ERR_QUOTA: a limit of the tree. */
int children_spawn(struct run *run, struct ctx *ctx, const struct spawn *spawn, struct jv **ret_record,
		   struct err *err);
/* Another message to a subagent of this conversation, by task id, agent key or label. */
int children_send(struct run *run, struct ctx *ctx, struct str to, struct str message, struct jv **ret_record,
		  struct err *err);
/* [record …], the oldest first. */
int children_list(struct run *run, struct ctx *ctx, struct jv **ret_list, struct err *err);
/* Waits for these (array; NULL: all that run), or for one of them, and marks those that ended as reported. */
int children_wait(struct run *run, struct ctx *ctx, const struct jv *ids, bool any, int64_t wait_ns,
		  struct jv **ret_list, struct err *err);
int children_cancel(struct run *run, struct ctx *ctx, struct str id, struct jv **ret_record, struct err *err);

/* At the beginning of a turn: what another process left unfinished continues. */
void children_take_up(struct run *run);
/* Before each question to the model: tasks that ended are reported once, as an entry of the log. */
void children_tell(struct run *run);

/* --- child_tools.c --- */

/* Adds the tools, in the words of the dialect. */
int child_tools_add(struct agent *agent, struct err *err);

#endif
