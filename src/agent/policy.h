/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What may happen to a tool call of the agent: `policy` and `approval_gates` of agent.yaml. Of all rules that concern a
 * call the strictest counts: deny before ask before allow; without a rule the mode decides. Tools that tools.deny names
 * are not there at all and never come here.
 */
#ifndef STEAD_AGENT_POLICY_H
#define STEAD_AGENT_POLICY_H

#include "tool/tool.h"

enum gate_effect { GATE_ALLOW, GATE_ASK, GATE_DENY };

struct gate {
	enum gate_effect effect;
	struct str rule; /* what decided: the id of a rule, "approval_gates", or "mode: strict" */
	bool hides_args; /* the person who is asked does not see them */
};

struct gates;

/* ERR_INVALID: a pattern is not valid. What the document points to must outlive it. */
int gates_new(const struct jv *document, struct gates **ret_gates, struct err *err);
void gates_destroy(struct gates *gates);
struct gate gates_decide(const struct gates *gates, const struct tool_info *tool, struct str server,
			 const struct jv *input);
/* How long a question waits for an answer, and whether the call is made without one. */
int64_t gates_wait_ns(const struct gates *gates);
bool gates_approve_late(const struct gates *gates);

#endif
