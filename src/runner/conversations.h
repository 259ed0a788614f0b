/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which conversation a chat is in. A chat (the session of the queue, "telegram:42") has one conversation after the
 * other; each is a session of the agent of its own, "telegram:42:conv_2026-11-16T09-50-42-000000".
 * channels/conversations.json says which is the present one, so it survives a restart.
 */
#ifndef STEAD_RUNNER_CONVERSATIONS_H
#define STEAD_RUNNER_CONVERSATIONS_H

#include "workspace/workspace.h"

struct conversation {
	struct str session; /* of the agent */
	struct str id;      /* "conv_…" */
	struct str model;   /* chosen with /model; empty: the configured one */
	struct str summary; /* of the conversation before it, for the first message of this one; may be empty */
	bool is_fresh;      /* it began with this call */
	bool is_expired;    /* because the one before it was silent for too long */
};

/* The present conversation of a chat, which is made when there is none. `ttl_minutes` (0: none): a conversation that
   was silent for longer is over; it is archived, and another one begins. */
int conversation_now(struct workspace *ws, struct ctx *ctx, struct str chat, int64_t ttl_minutes,
		     struct conversation *ret, struct err *err);
/* Ends it: archives what was said, with the tag, and begins another one with `summary`. *ret_messages: how many were
   archived; 0: nothing was said. */
int conversation_end(struct workspace *ws, struct ctx *ctx, struct str chat, struct str tag, struct str summary,
		     int64_t *ret_messages, struct err *err);
/* Its summary has been said. */
int conversation_began(struct workspace *ws, struct ctx *ctx, struct str chat, struct err *err);
/* `model` empty: the configured one again. */
int conversation_set_model(struct workspace *ws, struct ctx *ctx, struct str chat, struct str model, struct err *err);

/* Calls `each` with every chat that has a conversation. */
int conversations_each(struct workspace *ws, struct ctx *ctx,
		       void (*each)(void *arg, struct str chat, struct str session), void *arg, struct err *err);

#endif
