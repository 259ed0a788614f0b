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
/* The same for a turn that is not shown as it runs: only what people should know. */
void show_note(void *arg, const struct agent_event *event);
void show_event(void *arg, const struct agent_event *event);
/* For agent_turn.approve: asks on the terminal, if there is one. */
enum agent_verdict show_approve(void *arg, const struct agent_event *event, int64_t wait_ns);
/* Asks on the terminal for the values of a form, one after the other. */
enum agent_verdict show_fill(void *arg, const struct agent_event *event, const struct jv *schema, struct arena *arena,
			     struct jv **ret_values);
/* The options of a command that continues there: " -w WORKSPACE --session SESSION". */
struct str show_place(struct cli *cli, struct str session);
/* Says which calls wait for approval, and how to decide. */
/* Says on standard error why the answer may not be what the person expects: it was cut, declined or is empty. */
void show_shortfall(const struct agent_result *result);
void show_waiting(struct cli *cli, const struct agent_result *result);
/* Ends the line of the answer, if one was begun. */
void show_end_line(struct show *show);

#endif
