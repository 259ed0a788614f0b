/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Agent Client Protocol, version 1, over a pair of descriptors: an editor starts `stead acp` and talks to the agent
 * in JSON lines. Sessions of the protocol are sessions of a workspace, so they survive the editor.
 */
#ifndef STEAD_AGENT_ACP_H
#define STEAD_AGENT_ACP_H

#include <pthread.h>
#include <stdatomic.h>

#include "agent/agent.h"
#include "base/buf.h"
#include "mcp/jsonrpc.h"

struct acp_opts {
	struct agent_opts agent;
	/* Opens the workspace of a project directory. It is closed with workspace_close(). */
	int (*open)(void *arg, struct str cwd, struct workspace **ret_ws, struct err *err);
	void *arg;
};

/* Serves until `in_fd` ends; what runs then is cancelled, and can continue later. */
int acp_serve(const struct acp_opts *opts, int in_fd, int out_fd, struct err *err);

/* --- inside --- */

struct acp;

struct acp_session {
	struct acp_session *next;
	struct acp *acp;
	struct arena *arena; /* of the names */
	struct str id, cwd;
	struct workspace *ws;
	struct agent *agent;
	struct cancel cancel;
	bool is_busy, is_threaded; /* under the lock of the connection */
	pthread_t thread;
	struct jv *prompt, *request_id; /* of the turn that runs, in `turn` */
	struct arena *turn;
};

/* Sends {sessionId, update} as session/update; `update` is in `arena`. */
void acp_update(struct acp_session *s, struct arena *arena, struct jv *update);
/* Asks the client and waits for its answer. NULL: none came in time. The answer is in `arena`. */
const struct jv *acp_ask(struct acp_session *s, struct arena *arena, const char *method, struct jv *params,
			 int64_t wait_ns);

/* --- acp_updates.c --- */

/* What the user says: the text of a prompt's blocks, and the pictures among them as blocks for the model (NULL: none).
 */
int acp_prompt_read(struct arena *arena, const struct jv *prompt, struct str *ret_text, struct jv **ret_blocks,
		    struct err *err);
/* For struct agent_turn, with a session as `arg`. */
void acp_event(void *arg, const struct agent_event *event);
enum agent_verdict acp_approve(void *arg, const struct agent_event *event, int64_t wait_ns);
/* Sends the conversation of a session as updates. */
int acp_replay(struct acp_session *s, struct arena *arena, struct err *err);
void acp_send_text(struct acp_session *s, const char *kind, struct str text);
void acp_send_commands(struct acp_session *s);
/* A line that begins with '/': true if it was one of our commands; its answer is sent. */
bool acp_command(struct acp_session *s, struct ctx *ctx, struct str line, struct err *err, int *ret);

#endif
