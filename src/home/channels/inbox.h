/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What services posted to Stead and no channel has taken yet: one file for each request,
 * channels/inbox/<time>-<id>.json. Any process that serves HTTP may add one, after it has checked who sent it; the
 * process that has the channels of the workspace (runner/desk.h) takes them in the order of their names.
 *
 * A request that is sent again within the time in which its signature is accepted counts once: what was taken leaves a
 * mark in channels/seen/ until that time is over.
 */
#ifndef STEAD_HOME_CHANNELS_INBOX_H
#define STEAD_HOME_CHANNELS_INBOX_H

#include "text/jv.h"
#include "workspace/workspace.h"

struct inbox_item {
	struct str channel;    /* its name in agent.yaml */
	struct str id;         /* of the request: the same when it is sent again */
	int64_t until;         /* second after which its signature is no longer accepted */
	const struct jv *body; /* as it was sent */
};

int inbox_put(struct workspace *ws, struct ctx *ctx, const struct inbox_item *item, struct err *err);
/* What a file of the inbox says. ERR_INVALID; its strings are those of the file. */
int inbox_parse(struct arena *arena, struct str bytes, struct inbox_item *ret, struct err *err);
/* Calls `take` for each, in order, and removes those for which it returns true; one that was taken before is removed
   without a call. A file that cannot be read as one is moved to channels/damaged/ and is the error; the next call
   continues after it. */
int inbox_each(struct workspace *ws, struct ctx *ctx, bool (*take)(void *arg, const struct inbox_item *item), void *arg,
	       struct err *err);
/* Moves a file that cannot be read as a message to channels/damaged/, so that those after it are not held up. *err,
   which says what is wrong with it, gets both paths. Returns the error. */
int channels_set_aside(struct workspace *ws, struct ctx *ctx, struct wpath path, struct err *err);
/* Removes the marks of requests that nobody can send again. Only after inbox_each() found nothing left. */
int inbox_sweep(struct workspace *ws, struct ctx *ctx, int64_t now, struct err *err);

#endif
