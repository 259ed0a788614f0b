/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The desk of one workspace: its channels, its queue and the turns that answer what arrives. Among all processes that
 * share a store, one at a time has the desk of a workspace (a lease); when it ends, another one takes over. Messages
 * that were accepted are in the queue's files, so none is lost.
 */
#ifndef STEAD_RUNNER_DESK_H
#define STEAD_RUNNER_DESK_H

#include "runner/runner.h"

struct desk;

struct desk_opts {
	struct str store_url, workspace;
	struct str model, base_url; /* as in runner_opts */
	bool relaxed;
	bool tells_calls; /* as in runner_opts */
	bool is_reload;   /* it was closed for a reload: chats are not told that it opens */
	void (*event)(void *arg, const struct runner_event *event);
	void *arg;
};

/* True when agent.yaml has a channel. */
bool desk_is_wanted(struct workspace *ws);
/* Copies what it needs. Channels are opened in the background. */
int desk_open(const struct desk_opts *opts, struct desk **ret, struct err *err);
/* Closes the channels, cancels the turns and waits for them; what was cut off continues with the next opening. NULL is
   allowed. */
void desk_close(struct desk *desk);
/* The same, because it is opened again at once with other settings: chats are not told, and nothing is archived. */
void desk_close_for_reload(struct desk *desk);
/* Something was put into the inbox of a workspace: the desks of this process that have it look at once. */
void desks_notice(struct str workspace);

#endif
