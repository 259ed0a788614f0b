/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STEAD_RUNNER_DESK_INTERNAL_H
#define STEAD_RUNNER_DESK_INTERNAL_H

#include <pthread.h>

#include "runner/channels/channel.h"
#include "runner/desk.h"
#include "runner/queue.h"

#define DESK_CHANNELS_MAX 20

struct turn;

/* What is looked at every few seconds, and may not work for long. */
enum desk_source { DESK_OUTBOX, DESK_INBOX, DESK_FOLLOWUPS, DESK_SOURCES };

struct desk {
	struct arena *arena; /* of the options */
	struct desk_opts opts;
	struct workspace *ws;
	struct queue *queue;
	struct channel_events events;
	struct channel *channels[DESK_CHANNELS_MAX];
	size_t channel_count;
	struct cancel stop;
	atomic_bool leaves; /* its turns are cut off, to continue later */
	bool reloads;       /* it is closed to be opened again; set before `stop` */
	pthread_t thread;
	pthread_mutex_t lock;        /* turns and channels */
	pthread_cond_t ended;        /* a turn */
	struct turn *turns;          /* that run */
	struct desk_wait *waits;     /* for answers of people: desk_waits.c */
	pthread_mutex_t outbox;      /* held while what waits is sent */
	uint64_t told[DESK_SOURCES]; /* hash of what was reported last of each; 0: it works */
	int64_t cut_day;             /* since 1970, on which old days of the logs of chats were removed */
	atomic_bool has_mail;        /* something was put into the inbox */
	struct desk *next;           /* of this process: desk_inbox.c */
};

/* The channel that `origin` of a message names; NULL: it is not open. */
struct channel *desk_channel(struct desk *desk, const struct jv *origin);
/* Says something; what goes wrong is an event. */
void desk_say(struct desk *desk, struct ctx *ctx, const struct jv *origin, struct str text,
	      const struct channel_button *buttons);
void desk_problem(struct desk *desk, struct str what, struct str text);
/* The result of a look: a problem is reported when it is another than that of the last look. */
void desk_looked(struct desk *desk, enum desk_source source, int r, struct ctx *ctx, const struct err *err);
int64_t desk_ttl_minutes(struct desk *desk, bool is_group);
/* The session of the queue for a chat of a channel. */
struct str desk_chat(struct arena *arena, const struct channel *channel, const struct channel_message *message);

/* A command of a chat: true when it was one, and it was carried out. */
int desk_command(struct desk *desk, struct ctx *ctx, struct str chat, const struct channel_message *message,
		 const struct jv *origin, bool *ret_done, struct err *err);

/* desk_inbox.c: which desks this process has, and what services posted. */
void desk_enlist(struct desk *desk);
void desk_delist(struct desk *desk);
void desk_take_inbox(struct desk *desk, struct ctx *ctx);
/* The follow-ups that are due become messages of the queue. */
void desk_start_followups(struct desk *desk, struct ctx *ctx);
/* What a channel needs to reach a chat: "42", "-100:7" or "room-1". */
struct jv *desk_origin(struct arena *arena, struct str channel, struct str chat);

/* Texts of messages that Stead puts into the queue itself. */
#define COMPACT_TEXT "/compact"
#define RESUME_TEXT  "/resume" /* a call of the open turn was approved or denied */

/* desk_waits.c: a turn of the chat waits for approvals ([{id, expires_at}]); it continues when they have expired. */
void desk_wait_for_answer(struct desk *desk, struct str chat, const struct jv *waiting);
/* Those of an earlier process. */
void desk_find_waiting(struct desk *desk, struct ctx *ctx);
/* Lets turns continue whose questions have expired; when the next one expires, in monotonic time, or INT64_MAX. */
int64_t desk_resume_expired(struct desk *desk, struct ctx *ctx);
void desk_forget_waits(struct desk *desk);

/* The short form of an approval's id, for buttons and people. */
struct str desk_approval_id(struct arena *arena, struct str call);

#endif
