/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was said in groups, whether or not it was for the agent: channels/log/<channel>/<chat>/<day>.jsonl, a line for
 * each message, days in UTC. Direct messages are not logged: their conversation has them. A message that a service
 * delivers twice may have two lines; readers take the first.
 */
#ifndef STEAD_HOME_CHANNELS_CHAT_LOG_H
#define STEAD_HOME_CHANNELS_CHAT_LOG_H

#include "text/jv.h"
#include "workspace/workspace.h"

struct chat_line {
	struct str channel, chat; /* as in struct outbox_item */
	struct str id;            /* of the message, by the service; may be empty for the agent's own */
	struct str user, name;    /* who said it: as the service knows them, and as the agent calls them */
	struct str text;
	struct str file; /* the name of one that came with it; may be empty */
	bool is_bot;     /* the agent said it */
};

/* Adds a line, if channel_log of that channel is enabled. */
int chat_log_add(struct workspace *ws, struct ctx *ctx, const struct chat_line *line, struct err *err);
/* True when the chat has a log: it is a group in which something was said. */
bool chat_log_exists(struct workspace *ws, struct ctx *ctx, struct str channel, struct str chat);
/* Removes the days that are older than channel_log.retention_days, of all channels. */
int chat_log_cut(struct workspace *ws, struct ctx *ctx, int64_t now_ns, struct err *err);

struct chat_query {
	struct str channel, chat;
	uint64_t limit;
	struct str before;        /* `before` of an earlier answer; empty: the newest */
	struct str keyword, user; /* in any case; empty: any */
	bool has_bots;            /* with what the agent said */
};
/* {channel, chat, messages: [{at, id?, user_id?, name, text, file?, is_bot?}], before?}, the oldest first.
   ERR_NOT_FOUND names the chats that have a log. */
int chat_log_read(struct workspace *ws, struct ctx *ctx, const struct chat_query *query, struct jv **ret,
		  struct err *err);

#endif
