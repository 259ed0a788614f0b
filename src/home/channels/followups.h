/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A turn that an agent asks for at the end of one: channels/followups/<chat>.json, one file for each chat that ever
 * asked. At most one waits in a chat, and a chain of them that no person interrupts ends after FOLLOWUP_DEPTH_MAX.
 */
#ifndef STEAD_HOME_CHANNELS_FOLLOWUPS_H
#define STEAD_HOME_CHANNELS_FOLLOWUPS_H

#include "text/jv.h"
#include "workspace/workspace.h"

struct followup {
	struct str channel, chat;
	struct str id, prompt;
	int64_t due;   /* seconds */
	int64_t depth; /* 1: a person's message led to it */
};

/* ERR_EXISTS: one waits already; ERR_QUOTA: the chain is too long. */
int followup_add(struct workspace *ws, struct ctx *ctx, struct str channel, struct str chat, struct str prompt,
		 int64_t delay_s, struct followup *ret, struct err *err);
/* A person has spoken: the next chain begins. */
int followup_reset(struct workspace *ws, struct ctx *ctx, struct str channel, struct str chat, struct err *err);
/* Calls `start` for those that are due; one for which it returns true no longer waits. */
int followups_each(struct workspace *ws, struct ctx *ctx, int64_t now,
		   bool (*start)(void *arg, const struct followup *followup), void *arg, struct err *err);

#endif
