/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A place where people talk to an agent: messages in, messages out. A channel decides who may talk, turns what arrives
 * into plain messages with files that are already uploads, and writes answers in the form of its service. What happens
 * in between (queue, turns, commands) is the same for all of them (runner/desk.h).
 */
#ifndef STEAD_RUNNER_CHANNELS_CHANNEL_H
#define STEAD_RUNNER_CHANNELS_CHANNEL_H

#include "base/ctx.h"
#include "text/jv.h"
#include "workspace/workspace.h"

struct channel;

/* What arrived. Valid during the call of `receive`. */
struct channel_message {
	struct str id;      /* the service's: the same again after a message was delivered twice */
	struct str chat;    /* where it was said; with the channel's name it names the session */
	struct str sender;  /* as the agent is to call them */
	struct str text;    /* with receipts of files before it, and what was said before in a group */
	struct str command; /* "status" of "/status@bot now"; empty: none */
	struct str command_args;
	bool is_group;
	const struct jv *origin; /* for channel_send: where an answer goes */
};

/* A choice under a message; a press arrives as the command `command` with `args`. */
struct channel_button {
	const char *label, *command, *args;
};

/* What somebody said in a group that the agent may see. */
struct channel_heard {
	struct str chat, id;     /* of the message, as the service numbers them */
	struct str sender, name; /* as the service knows them, and as the agent calls them */
	struct str text, file;   /* file: its name; empty: none */
};

struct channel_events {
	/* For each such message, before `receive`, and also for those that are not for the agent. */
	void (*heard)(void *arg, struct channel *channel, struct ctx *ctx, const struct channel_heard *heard);
	/* Called on the channel's threads. The message counts as delivered when this returns 0; otherwise it comes
	   again. */
	int (*receive)(void *arg, struct channel *channel, struct ctx *ctx, const struct channel_message *message,
		       struct err *err);
	/* Something that a person should know: the token is refused, another program polls. */
	void (*problem)(void *arg, struct channel *channel, struct str text);
	void *arg;
};

struct channel_ops {
	const char *type;
	/* Sends Markdown, in as many messages as it takes. With `ret_message` only the first of them, for `edit`, which
	   sends the others with the last edit. */
	int (*send)(struct channel *channel, struct ctx *ctx, const struct jv *origin, struct str markdown,
		    const struct channel_button *buttons, struct jv **ret_message, struct err *err);
	/* Replaces what was sent; what does not fit follows in further messages when `is_last`. NULL: it cannot, and
	   gets whole answers only. */
	int (*edit)(struct channel *channel, struct ctx *ctx, const struct jv *origin, const struct jv *message,
		    struct str markdown, bool is_last, struct err *err);
	int (*send_file)(struct channel *channel, struct ctx *ctx, const struct jv *origin, struct str name,
			 struct str bytes, struct str caption, struct err *err);
	void (*typing)(struct channel *channel, struct ctx *ctx, const struct jv *origin); /* may be NULL */
	/* What a service posted and channel_check() accepted; NULL: it asks for what there is by itself. An error: it
	   comes again. */
	int (*take)(struct channel *channel, struct ctx *ctx, struct str id, const struct jv *body, struct err *err);
	void (*close)(struct channel *channel); /* ends its threads */
};

struct channel {
	const struct channel_ops *ops;
	struct str name; /* of agent.yaml: its name, or its type */
};

/* Opens one channel of agent.yaml and begins to listen. `ws` and `events` must outlive it. */
int channel_open(struct workspace *ws, const struct jv *config, const struct channel_events *events,
		 struct channel **ret, struct err *err);
/* The channels of agent.yaml: `channels`, or the one in `channel`. NULL after the last. */
const struct jv *channel_config(struct workspace *ws, size_t index);
/* Its name, or its type. */
struct str channel_config_name(const struct jv *config);

/* A file that a person sent becomes an upload, and a line of the message says so; speech is followed by its words. */
struct upload;
void channel_keep_file(struct workspace *ws, struct ctx *ctx, const struct upload *upload, struct buf *text);
/* Waits; ERR_CANCELLED, ERR_TIMEOUT. */
int channel_pause(struct ctx *ctx, int64_t ms, struct err *err);

/* --- requests of services --- */

#define CHANNEL_REPLAY_S 300 /* a signature is accepted so many seconds before and after its time */

/* A request that came over HTTP. */
struct channel_post {
	struct str body;
	struct str (*header)(void *arg, const char *name); /* ptr NULL: it has none */
	void *arg;
	int64_t now; /* seconds */
};
struct channel_receipt {
	struct str id; /* of the request: the same when it is sent again */
	int64_t until; /* second after which it is no longer accepted */
};
/* Whether a request to the channel `name` comes from its service; nothing of it is used before.
   ERR_UNAUTHENTICATED: it does not; ERR_NOT_FOUND: no channel of that name takes requests. */
int channel_check(struct workspace *ws, struct str name, struct arena *arena, const struct channel_post *post,
		  struct channel_receipt *ret, struct err *err);
/* Whether the channel can do anything with the body of a request that was accepted. ERR_INVALID says what is wrong. */
int channel_check_body(struct workspace *ws, struct str name, struct arena *arena, const struct jv *body,
		       struct err *err);
/* Whether a secret that was sent is the right one; takes as long whatever differs. */
bool channel_secret_is(struct str given, struct str secret);

int webhook_open(struct workspace *ws, const struct jv *config, const struct channel_events *events,
		 struct channel **ret, struct err *err);
int webhook_check(const struct jv *config, struct arena *arena, const struct channel_post *post,
		  struct channel_receipt *ret, struct err *err);
int webhook_check_body(struct arena *arena, const struct jv *body, struct err *err);
int telegram_check(const struct jv *config, struct arena *arena, const struct channel_post *post,
		   struct channel_receipt *ret, struct err *err);
int telegram_open(struct workspace *ws, const struct jv *config, const struct channel_events *events,
		  struct channel **ret, struct err *err);

#endif
