/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STEAD_RUNNER_STATUS_H
#define STEAD_RUNNER_STATUS_H

#include "text/jv.h"
#include "workspace/workspace.h"

/* What the workspace does by itself, in ctx->arena: {workspace, running: [{schedule, due, since, by}], next:
   [{schedule, at, local}], recent: [{timestamp, schedule, outcome, …}], conversations, today: {llm_calls,
   total_tokens, cost_usd?}, problems?}. At most five of each list, the nearest first. */
int runner_status(struct workspace *ws, struct ctx *ctx, struct jv **ret, struct err *err);

#endif
