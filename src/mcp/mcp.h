/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MCP over stdio, both eras: the handshake of 2024-11-05 … 2025-11-25 and the stateless form of 2026-07-28. One JSON
 * message a line. Serves the toolset, the workspace's files as resources, and completion of paths.
 */
#ifndef STEAD_MCP_MCP_H
#define STEAD_MCP_MCP_H

#include "tool/tool.h"
#include "workspace/workspace.h"

struct request;

struct mcp_opts {
	bool structured; /* results have structured content and tools an output schema, in addition to the text. Without
			    it there is text alone: models whose client gets both see the data and not the text */
	/* May be NULL. Gets each request of a method that is served before the method does; true: it was answered. So
	   an embedder offers what is not in the workspace (server.h has what it may use). Not over stdio. */
	bool (*extra)(struct request *req);
};

/* Serves until `in_fd` ends or the peer is gone; 0 then. Finishes what runs before it returns; what then hangs in a
   store on a server is cancelled, if need be for the whole process (ctx_end_all). */
int mcp_serve_stdio(struct workspace *ws, struct toolset *set, const struct mcp_opts *opts, int in_fd, int out_fd,
		    struct err *err);

/*
 * The same server a message at a time, for transports on which each message has an answer of its own (HTTP). A peer is
 * what one client is to the server: its form of results, its subscriptions. Its messages may come from several threads.
 */
struct server;
struct rpc_message;
/* Gets replies and notifications, whole lines. Not called by two threads at once. */
typedef void (*mcp_push)(void *arg, struct str lines);

struct server *mcp_peer_new(struct workspace *ws, struct toolset *set, const struct mcp_opts *opts, mcp_push push,
			    void *arg);
/* Ends its subscriptions. When no message is being answered. */
void mcp_peer_destroy(struct server *peer);
/* Its client has a session from now on, with a name that no other has. */
void mcp_peer_begin_session(struct server *peer);
/* For doors that many callers share. ERR_INVALID: the call would turn plan mode on for all that have no session. */
int mcp_check_session(const struct toolset *set, const struct ctx *ctx, struct str name, struct err *err);
/* From now on it is the peer of the same client: results have the form that the other agreed on with `initialize`, and
   changes are made in its name and session. */
void mcp_peer_like(struct server *peer, const struct server *other);
/* Answers a request, or acts on a notification, on this thread. True: the request stays open (subscriptions/listen) and
   has taken the arena, in which the message is. *ret_code: of the error it was answered with, or 0. */
bool mcp_peer_take(struct server *peer, struct arena *arena, const struct rpc_message *msg, int *ret_code);
/* A client's answer to what server_ask() asked; false: this peer did not ask for it. */
bool mcp_peer_answered(struct server *peer, const struct rpc_message *answer);
/* Cancels the request that a cancellation names, if this peer runs it; NULL: all that it runs. */
void mcp_peer_cancel(struct server *peer, const struct rpc_message *cancelled);

#endif
