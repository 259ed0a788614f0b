/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the client share. */
#ifndef STEAD_MCP_CLIENT_INTERNAL_H
#define STEAD_MCP_CLIENT_INTERNAL_H

#include <pthread.h>
#include <sys/types.h>

#include "mcp/client.h"
#include "mcp/jsonrpc.h"
#include "net/http.h"

#define MCP_LEGACY "2025-11-25"
#define MCP_MODERN "2026-07-28"

#define MCP_ANSWER_MAX (16 * MIB)
#define MCP_END_MS     1000 /* for a server to end by itself, and then after SIGTERM */

/* How a server is spoken to, once it has been greeted. */
enum mcp_era {
	MCP_UNKNOWN,
	MCP_IS_LEGACY, /* a handshake, then requests of a session */
	MCP_IS_MODERN, /* every request says everything about itself */
};

struct listener;
struct oauth;
struct old_sse;

struct mcp_client {
	struct str name;
	const struct jv *server;
	pthread_mutex_t lock;
	bool started;
	enum mcp_era era;
	int64_t next_id;
	bool tools_changed, resources_changed;
	/* stdio */
	pid_t pid; /* 0: none */
	int to;
	bool shows_errors; /* its standard error is that of Stead; else nobody reads it */
	struct rpc_reader from;
	bool is_silent; /* a request has timed out, and nothing has come since */
	/* HTTP */
	struct http *http;
	char *session; /* NULL: the server gave none */
	struct oauth *oauth;
	struct old_sse *old;         /* the stream of the old transport; NULL: not in use */
	bool is_old;                 /* the server speaks the old transport */
	struct listener *listener;   /* what a legacy server says unasked; NULL: nobody listens */
	pthread_mutex_t talk;        /* one message of the server at a time */
	const struct mcp_host *host; /* of the request that runs; under `talk` */
	/* what the server offers */
	struct arena *arena;
	const struct jv *capabilities; /* NULL: not known */
	struct mcp_tool *tools;
	size_t count, cap;
	bool listed;
	int64_t listed_ns, fresh_ns; /* when the list was read, and for how long it counts as current */
	unsigned listings;
	uint64_t tools_hash;
};

/* A request on its way. */
struct flight {
	struct mcp_client *c;
	struct ctx *ctx; /* of the request alone */
	const struct mcp_host *host;
	int64_t id; /* 0: a notification */
	struct str method, name;
	const struct jv *params;
	int64_t limit_ns; /* the deadline that progress cannot move; 0: none */
	struct jv *answer;
	int status;        /* of HTTP; 0: none */
	bool session_lost; /* the server does not know the session, so it has done nothing */
	bool was_sent;
};

/* --- client.c --- */

bool mcp_is_stdio(const struct mcp_client *c);
/* Forgets the connection; the next use makes another. */
void mcp_drop(struct mcp_client *c);
/* A message of the server: the answer, a notification, or a question, whose reply is given to `reply`. */
int mcp_take(struct flight *f, struct str line,
	     int (*reply)(struct mcp_client *c, struct ctx *ctx, struct str line, struct err *err), struct err *err);

/* --- client_stdio.c --- */

int mcp_process_start(struct mcp_client *c, struct err *err);
void mcp_process_stop(struct mcp_client *c);
/* True: it was started and has ended by itself. */
bool mcp_process_is_gone(struct mcp_client *c);
int mcp_stdio_send(struct mcp_client *c, struct ctx *ctx, struct str line, struct err *err);
int mcp_stdio_exchange(struct flight *f, struct str line, struct err *err);
/* Takes what the server has said without being asked, and does not wait. */
void mcp_stdio_look(struct mcp_client *c, struct ctx *ctx);

/* --- client_http.c --- */

int mcp_http_exchange(struct flight *f, struct str body, struct err *err);
/* Tells the server that its session has ended. */
void mcp_http_end(struct mcp_client *c);
struct str mcp_url(struct mcp_client *c, struct arena *arena);
/* Headers of every request: those of tools.json and the token. */
size_t mcp_own_headers(struct mcp_client *c, struct arena *arena, struct http_header *headers, size_t most);

/* --- client_sse.c: the transport of 2024-11-05 --- */

int old_sse_open(struct mcp_client *c, struct ctx *ctx, struct err *err);
void old_sse_close(struct mcp_client *c);
int old_sse_exchange(struct flight *f, struct str body, struct err *err);

/* --- client_listen.c --- */

/* Waits until the stream has begun. A server that has none is not an error. */
void listener_open(struct mcp_client *c);
void listener_close(struct mcp_client *c);

/* --- client_headers.c: parameters as headers --- */

/* Whether the marks of a tool's schema are such that it can be called over HTTP. */
bool mcp_header_marks_ok(const struct jv *schema);
size_t mcp_param_headers(struct arena *arena, const struct jv *schema, const struct jv *args,
			 struct http_header *headers, size_t most);
/* A value as a header may have it. */
struct str mcp_header_value(struct arena *arena, struct str value);

/* --- client_oauth.c --- */

/* Gets a token after a server has refused a request (401, or 403 for its scope). */
int oauth_login(struct mcp_client *c, struct ctx *ctx, const struct http_response *refused, struct err *err);
/* The token; empty: none. It lives until the next login. */
struct str oauth_token(struct mcp_client *c, struct ctx *ctx);
/* True: a person is there for a login, which may take as long as they like. */
bool oauth_has_person(const struct mcp_client *c);
void oauth_destroy(struct oauth *oauth);

#endif
