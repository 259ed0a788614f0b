/* SPDX-License-Identifier: Apache-2.0 */
/* A recorded conversation again, from one of its steps, in a fork, compared with what it was. */
#ifndef STEAD_AGENT_REPLAY_H
#define STEAD_AGENT_REPLAY_H

#include "agent/agent.h"

/* A result of a tool that takes the place of the recorded one. */
struct replay_output {
	uint64_t step, nth; /* of the session, and of the step: both count from 1 */
	struct str text;
};

struct replay_opts {
	struct str session;
	uint64_t from;              /* the step at which it begins; 0: the first, or what follows a changed result */
	struct str model, base_url; /* empty: the recorded answers, or after a change the model of agent.yaml */
	struct str prompt;          /* in place of the workspace's; empty: that */
	const struct replay_output *outputs;
	size_t output_count;
};

/* "3" or "3.2": writes step and nth. */
bool replay_place_parse(struct str place, struct replay_output *ret);

/*
 * Runs as many turns as the conversation has from there on, up to a call that needs approval. The new run stays in the
 * fork that the report names; a replay that fails leaves none.
 *
 * {session, from, fork, model, steps: [{step, same, before?, after?}], files: [path], same, waiting?, usage_before,
 * usage_after}; before and after, where they differ, are steps as in agent_result without ids, times and tokens, or
 * null. ERR_NOT_FOUND: there is no such session, step or call.
 */
int agent_replay(struct workspace *ws, struct ctx *ctx, const struct replay_opts *opts, struct jv **ret_report,
		 struct err *err);

#endif
