/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workflows: people write the steps down once (workflows/NAME.yaml), and agents do them. A step is a turn of an agent
 * in a session of its own, so it is durable as every turn is; the record of a run (agents/<agent>/workflows/RUN.json)
 * says which steps have ended and what they gave. A run that was killed continues with the steps that are not done.
 */
#ifndef STEAD_AGENT_WORKFLOW_H
#define STEAD_AGENT_WORKFLOW_H

#include "agent/agent.h"

/* The steps of a file in one form: {name, description?, input?, notebook: bool, max_running, answer?, steps: [{id,
   agent, task, needs: [id …], when?, output?, model?, prompt?, tools?, members?, on_failure}]}. A step needs only steps
   before it. ERR_INVALID names the line. */
int workflow_parse(struct arena *arena, struct str name, struct str text, struct jv **ret, struct err *err);
int workflow_get(struct workspace *ws, struct ctx *ctx, struct str name, struct jv **ret, struct err *err);
/* {workflows: [{name, description?, input?, steps: count}], problems: [{path, problem}]} */
int workflow_list(struct workspace *ws, struct ctx *ctx, struct jv **ret, struct err *err);
/* Whether the condition of a step holds, by the record of its run. No condition holds always. */
bool workflow_holds(const struct jv *when, const struct jv *states);
/* A text with the input, the run's id and the results of steps in the place of {{input}}, {{run}} and {{STEP}}. */
struct str workflow_fill(struct arena *arena, struct str text, const struct jv *record);

struct workflow_opts {
	struct str model, base_url, dialect; /* empty: as agent.yaml says */
	/* Called on the caller's thread when a step begins and when it has ended; may be NULL. */
	void (*event)(void *arg, struct str step, struct str status, struct str text);
	void *arg;
};

/* Begins a run: *ret_record is written before anything is done. With an `id` that a run has already, that one. */
int workflow_begin(struct workspace *ws, struct ctx *ctx, struct str name, struct str input, struct str id,
		   struct jv **ret_record, struct err *err);
/* Does what is left of a run: {id, workflow, input, status: running | waiting | done | failed, answer?, steps: {id:
   {status: pending | running | waiting | done | skipped | failed, session?, result?, …}}, usage}. ERR_CONFLICT: another
   process runs one of its steps. A failure that may pass leaves the run as it is; it continues when it is run again. */
int workflow_run(struct workspace *ws, struct ctx *ctx, struct str id, const struct workflow_opts *opts,
		 struct jv **ret_record, struct err *err);
int workflow_record(struct workspace *ws, struct ctx *ctx, struct str id, struct jv **ret, struct err *err);
/* [record …] without the definitions, the newest first. */
int workflow_runs(struct workspace *ws, struct ctx *ctx, struct jv **ret, struct err *err);

struct agent;
/* Adds the tool with which an agent runs a workflow, if there is one. */
int workflow_tool_add(struct agent *agent, struct err *err);

#endif
