/* SPDX-License-Identifier: Apache-2.0 */
/* Events of a turn, printed for a person. */
#ifndef STEAD_AGENT_SHOW_H
#define STEAD_AGENT_SHOW_H

#include "agent/agent.h"
#include "command/cli.h"

struct show {
	struct cli *cli;
	bool begun; /* text of this answer was printed */
};

/* For agent_turn.event; `arg` is a struct show. */
void show_event(void *arg, const struct agent_event *event);
/* For agent_turn.approve: asks on the terminal, if there is one. */
enum agent_verdict show_approve(void *arg, const struct agent_event *event, int64_t wait_ns);
/* Asks on the terminal for the values of a form, one after the other. */
enum agent_verdict show_fill(void *arg, const struct agent_event *event, const struct jv *schema, struct arena *arena,
			     struct jv **ret_values);
/* Says which calls wait for approval, and how to decide. */
void show_waiting(struct cli *cli, const struct agent_result *result);
/* Ends the line of the answer, if one was begun. */
void show_end_line(struct show *show);

#endif
