/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages that wait for a turn. A session has one turn at a time; what arrives in the meantime waits here, in order,
 * and a mode decides what it does to the turn that is running. A message is in a file of the workspace
 * (channels/queue/<session>.jsonl) before queue_put() returns, and leaves it when its turn has ended, so a restart
 * loses none and repeats none: a batch that was taken and not finished is the first one to be taken again. Thread-safe;
 * times are clock_monotonic_ns() and given by the caller.
 */
#ifndef STEAD_RUNNER_QUEUE_H
#define STEAD_RUNNER_QUEUE_H

#include "text/jv.h"
#include "workspace/workspace.h"

enum queue_mode {
	QUEUE_COLLECT,   /* wait for a silence, then all that came is one turn */
	QUEUE_STEER,     /* a message ends the running turn before its next tool call, and begins the next one */
	QUEUE_FOLLOWUP,  /* one turn for each message, one after the other */
	QUEUE_INTERRUPT, /* a message stops the running turn at once */
	QUEUE_MODES,
};
enum queue_drop { QUEUE_SUMMARIZE, QUEUE_OLD, QUEUE_NEW }; /* drop the oldest and say so, drop the oldest, refuse */

struct queue_opts {
	enum queue_mode mode;
	int64_t debounce_ms; /* of QUEUE_COLLECT */
	size_t cap;          /* messages that wait in one session */
	enum queue_drop drop;
	size_t turns; /* that run at once, over all sessions (a lane) */
};

struct queue_message {
	struct str id;      /* the channel's: a message that comes twice is taken once */
	struct str session; /* "telegram:42" */
	struct str text;
	const struct jv *origin; /* for the answer, as the channel wants it; NULL: none */
	bool is_system;          /* an event, not a person: waits for no silence and never ends a turn */
};

/* What one turn is about. */
struct queue_batch {
	struct str session;
	struct str id;           /* of its last message: the same batch has the same id after a restart */
	struct str text;         /* of all its messages, after notes and a line on dropped ones */
	const struct jv *origin; /* of its last message */
	size_t count;
	bool is_again; /* it was taken before, by a process that died */
};

struct queue;

/* Reads channels.queue and lanes of agent.yaml. */
struct queue_opts queue_settings(struct workspace *ws);
/* Reads the files of sessions that have something waiting. `ws` is borrowed. */
int queue_open(struct workspace *ws, struct ctx *ctx, const struct queue_opts *opts, struct queue **ret,
	       struct err *err);
void queue_close(struct queue *queue);

enum queue_result { QUEUE_ADDED, QUEUE_SEEN, QUEUE_REFUSED };
/* QUEUE_SEEN: the session has had a message with this id. QUEUE_REFUSED: it is full, and the policy is QUEUE_NEW. */
int queue_put(struct queue *queue, struct ctx *ctx, const struct queue_message *message, int64_t now_ns,
	      enum queue_result *ret, struct err *err);
/* A text that the next batch of people begins with: something was said in the chat that the agent does not know. It
   starts no turn. */
int queue_note(struct queue *queue, struct ctx *ctx, struct str session, struct str note, struct err *err);
/* The next batch whose time has come, in ctx->arena; false: there is none before *ret_next_ns (INT64_MAX: until a
   message arrives or a turn ends). The session is busy until queue_done() or queue_release(). */
int queue_take(struct queue *queue, struct ctx *ctx, int64_t now_ns, struct queue_batch *ret, bool *ret_taken,
	       int64_t *ret_next_ns, struct err *err);
/* The turn has ended, well or not: its messages are forgotten. */
int queue_done(struct queue *queue, struct ctx *ctx, const struct queue_batch *batch, struct err *err);
/* The turn was cut off and is to be taken again. */
void queue_release(struct queue *queue, const struct queue_batch *batch);
/* Messages of people that came after the batch of the running turn. */
size_t queue_waiting(struct queue *queue, struct str session);

/* The mode of one session; QUEUE_MODES: the configured one again. It survives a restart. */
int queue_set_mode(struct queue *queue, struct ctx *ctx, struct str session, enum queue_mode mode, struct err *err);
enum queue_mode queue_mode_of(struct queue *queue, struct str session);
const char *queue_mode_name(enum queue_mode mode);
bool queue_mode_parse(struct str name, enum queue_mode *ret);

/* Waits until something has changed since the mark, or `until_ns`. */
uint64_t queue_mark(struct queue *queue);
void queue_wait(struct queue *queue, uint64_t mark, int64_t until_ns);
void queue_wake(struct queue *queue);

#endif
