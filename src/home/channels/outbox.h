/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is to be said to people and has not been sent: one file for each message, channels/outbox/<time>-<id>.json. Any
 * process may add one; the process that has the channels of the workspace (runner/desk.h) sends them in the order of
 * their names and removes them.
 */
#ifndef STEAD_HOME_CHANNELS_OUTBOX_H
#define STEAD_HOME_CHANNELS_OUTBOX_H

#include "text/jv.h"
#include "workspace/workspace.h"

struct outbox_item {
	struct str id;      /* set by outbox_each() */
	struct str channel; /* its name in agent.yaml */
	struct str chat;    /* "42", or "-100:7" with a topic */
	struct str text;    /* Markdown; of a file: its caption */
	struct str file;    /* a path of the home; empty: none */
	struct str file_name;
	struct str by; /* "the schedule \"daily\"": who says it, if the agent of the chat does not know of it; empty: it
			  does */
	bool is_for_agent; /* it is not sent: the agent of the chat gets it, and says what it makes of it */
};

/* The name of a channel of agent.yaml, or its type. */
struct str channels_name(const struct jv *channel);
/* True when agent.yaml has a channel of that name (empty: any). */
bool channels_has(struct workspace *ws, struct str name);
/* The name of the channel that has this name, else of the first one of this type; empty: there is none. */
struct str channels_find(struct workspace *ws, struct str name);
/* The chat that a session of the agent belongs to: "telegram:42:conv_…". False: none. */
bool channels_chat_of(struct str session, struct str *ret_channel, struct str *ret_chat);

int outbox_put(struct workspace *ws, struct ctx *ctx, const struct outbox_item *item, struct err *err);
/* Calls `send` for each, in order, and removes those for which it returns true. */
int outbox_each(struct workspace *ws, struct ctx *ctx, bool (*send)(void *arg, const struct outbox_item *item),
		void *arg, struct err *err);

#endif
