/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tools of a client: it names them with a message, and answers their calls while the turn runs. A call waits on the
 * turn's thread until its answer comes, so nothing of it survives the process: a call that was cut off has an unknown
 * outcome, as every effect outside the workspace has.
 */
#ifndef STEAD_SERVER_HOST_TOOLS_H
#define STEAD_SERVER_HOST_TOOLS_H

#include "agent/agent.h"

struct host_tools;

/* `list` is the client's: [{name, description, input_schema, reads_only?}]. `tell` gets each call as {id, name, input},
   on the thread that makes it. On the arena, which must outlive the turn. */
int host_tools_new(struct arena *arena, const struct jv *list, void (*tell)(void *arg, const struct jv *call),
		   void *arg, struct host_tools **ret, struct err *err);
/* After the turn. NULL is allowed. */
void host_tools_release(struct host_tools *host);
/* NULL: none. */
void host_tools_offer(struct host_tools *host, struct agent_opts *opts);
/* The calls that wait for an answer: [{id, name, input}], copied. NULL: none. */
struct jv *host_tools_waiting(struct host_tools *host, struct arena *arena);
/* ERR_NOT_FOUND: no call of this id waits. */
int host_tools_answer(struct host_tools *host, struct str id, struct str text, bool is_error, struct err *err);

#endif
