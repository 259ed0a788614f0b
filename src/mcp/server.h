/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the MCP server: what its files share. One `struct server` per connection.
 *
 * Locks, in the order in which they may be taken: `subs.lock`, then `flights.lock` or `out.lock`. `crew.lock`,
 * `order.lock`, `helper.lock` and `follower.lock` are taken alone. None but the last is held while a store is asked.
 */
#ifndef STEAD_MCP_SERVER_H
#define STEAD_MCP_SERVER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/ctx.h"
#include "base/limits.h"
#include "mcp/jsonrpc.h"
#include "mcp/mcp.h"

/* What a result may look like, by protocol version. */
enum form {
	FORM_PLAIN,  /* 2024-11-05, 2025-03-26: text only */
	FORM_TITLED, /* 2025-06-18, 2025-11-25: tools have a title, and may have structured content */
	FORM_MODERN, /* 2026-07-28: every request and result describes itself */
	FORMS
};

/* Replies and notifications of all threads, one line each, in one buffer. */
struct out {
	pthread_mutex_t lock;
	struct buf buf;
	int fd;
	atomic_bool broken; /* the peer is gone: nothing more is written */
	bool collects;      /* nothing is ever written: whoever owns it takes the lines out */
	mcp_push push;      /* gets the lines in place of fd; NULL: fd */
	void *push_arg;
};

/* Requests that run outside the reading thread, or stay open, by id: so that they can be cancelled, and an id is not
   used twice. */
#define FLIGHT_BUCKETS 256
struct flights {
	pthread_mutex_t lock;
	struct request *bucket[FLIGHT_BUCKETS];
	size_t count;
};

/* Threads of one kind, and the requests that none of them has taken yet. See crew.c. */
struct gang {
	pthread_cond_t wake;
	pthread_t threads[MCP_THREADS_MAX];
	unsigned count, max; /* started, and how many may be */
	unsigned idle, queued;
	struct request *first, *last;
};

struct crew {
	pthread_mutex_t lock;
	struct gang workers; /* the caller of mcp_serve_stdio is one more */
	struct gang waiters; /* run calls that wait for something to happen */
	bool has_leader, ended;
	pthread_cond_t done; /* a call ended after the input had */
	unsigned running;    /* calls outside the lead: queued, held back or running */
	unsigned finished;   /* counts calls that ended */
};

/* The second thread for quick calls; see helper.c. What is not under the lock is the leader's. */
struct helper {
	enum { HELPER_NEW, HELPER_STARTED, HELPER_NONE } state;
	pthread_t thread;
	bool given; /* lines, which were not taken back */
	size_t end; /* of the reader's bytes before they were given */
	pthread_mutex_t lock;
	pthread_cond_t wake, done;
	bool busy, began, ends;
	atomic_bool wanted; /* the leader wants back what is left */
	struct str lines;   /* its part of the reader's bytes; when it is done, what it left */
	struct out out;     /* its answers; the leader's when it is done */
};

/* Changes in flight, by the paths that they change; see order.c. */
#define ORDER_BUCKETS 256
#define ORDER_PATHS   4
struct order {
	pthread_mutex_t lock;
	struct order_path *bucket[ORDER_BUCKETS]; /* in the order in which they came */
};

struct order_path {
	struct order_path *next;
	struct request *req;
	uint64_t hash;
};

/* Who wants to hear of changes; see notify.c. */
struct subs {
	pthread_mutex_t lock;
	struct subscription *first;
	size_t count;
	uint64_t listener; /* handle of the events layer */
	bool listening;
	uint64_t *seen; /* hashes of paths that are known to exist */
	size_t seen_count;
};

/* The thread that finds what others changed; see follow.c. */
struct follower {
	pthread_mutex_t lock;
	pthread_cond_t end;
	pthread_t thread;
	uint64_t known;       /* the newest revision when it was started */
	struct cancel cancel; /* of what it asks the store */
	bool running, ended;
};

/* What clients are asked while a request of theirs runs; see ask.c. */
struct asks {
	pthread_mutex_t lock;
	pthread_cond_t came;
	struct ask *first;
};

/* tools/list, rendered once per form: the tools with ',' between them, and where each begins. */
struct tool_cache {
	struct buf text;
	size_t *starts;
};

/* Who is at the other end, for what it changes. Empty: not known. */
#define CLIENT_NAME_MAX 64
struct client {
	char name[CLIENT_NAME_MAX + 1];
	char session[24]; /* of this connection */
};

struct server {
	struct workspace *ws;
	struct toolset *set;
	struct mcp_opts opts;
	bool remote;               /* a store is on a server, and its answers may have to be waited for */
	const struct jv *timeouts; /* tool_timeouts of agent.yaml; NULL: there is none */
	struct rpc_reader reader;  /* touched by the leader alone, like the next two */
	struct tool_cache tools[FORMS];
	enum form legacy_form;
	struct client client; /* of the handshake */
	int error_code;       /* of the last error that was replied; 0: none */
	struct out out;
	struct flights flights;
	struct crew crew;
	struct helper helper;
	struct order order;
	struct subs subs;
	struct follower follower;
	struct asks asks;
};

/* One request, in its own arena. */
struct request {
	struct server *server;
	struct out *out; /* where the reply goes */
	struct arena *arena;
	const struct method *method;
	const struct jv *id, *params;
	enum form form;
	struct client client;
	struct cancel cancel;
	bool in_flight;
	bool waits;               /* for something to happen: runs on a thread for such calls */
	bool urgent;              /* nobody else will flush its reply */
	bool *ret_kept;           /* set by `run`: the request stays open, and its arena with it */
	const char *result_type;  /* of a modern result; NULL: "complete" */
	const struct err *failed; /* why the tool failed, for programs: goes into the result's _meta */
	size_t reply_start;       /* in the output buffer, while the reply is written */
	uint64_t hash;
	struct request *next_in_bucket, *next_in_queue;
	struct order_path changes[ORDER_PATHS]; /* the paths that it changes */
	unsigned change_count;
	unsigned held_by; /* earlier changes of the same paths that are not done */
};

enum { ERA_LEGACY = 1, ERA_MODERN = 2 };

struct method {
	const char *name;
	unsigned eras;
	/* True when the request runs outside the reading thread; NULL: it never does. */
	bool (*runs_apart)(struct request *req);
	/* Answers the request with exactly one of the reply functions (or keeps it open: subscriptions/listen). */
	void (*run)(struct request *req);
};

/* server.c: answers the message in `line`, or returns a request that is to run outside the reading thread; the request
   then owns *arena, which becomes NULL. */
struct request *server_take(struct server *s, struct arena **arena, struct str line);
/* Answers the message in `line`, to `out`, if it is a quick call of a tool; false: nothing was done. */
bool server_take_quick(struct server *s, struct arena *arena, struct out *out, struct str line);
void server_refuse_long_line(struct server *s);
struct ctx request_ctx(struct request *req);
/* Takes the name in a clientInfo. */
void client_set_name(struct client *client, const struct jv *info);
void client_set_session(struct client *client, uint64_t number);

/* crew.c: serves until the input ends and everything that ran is done. */
void crew_init(struct server *s);
void crew_run(struct server *s);
void crew_release(struct server *s);

/* helper.c. Gives a part of what was just read to the helper, if that pays. */
void helper_give(struct server *s);
/* Lets nothing run at the same time as what the caller does next. */
void helper_stop(struct server *s);
/* Stops the helper, and takes its answers and the lines that it left. The leader's own have been read. */
void helper_join(struct server *s);
void helper_init(struct server *s);
void helper_release(struct server *s);

/* order.c. Notes the path, an argument of a call that changes it. */
void order_add(struct request *req, struct str path);
/* Enters a request with its paths; false when it must not run before order_leave() has given it back. */
bool order_enter(struct server *s, struct request *req);
/* The request is done. Gives the requests that may run from now on, linked by next_in_queue. */
struct request *order_leave(struct server *s, struct request *req);

/* flights.c. The id must not be in use (flights_has); false when there are too many. */
bool flights_has(struct server *s, const struct jv *id);
bool flights_add(struct server *s, struct request *req);
/* False when the request was cancelled: then nothing is answered. */
bool flights_remove(struct server *s, struct request *req);
void flights_cancel(struct server *s, const struct jv *id);
/* All requests, or those that wait. */
void flights_cancel_all(struct server *s, bool only_waiting);

/* out.c. out_begin locks and gives the buffer; out_end unlocks. Written by out_flush, or at once when `now` is set. */
void out_init(struct out *out, int fd);
void out_release(struct out *out);
struct buf *out_begin(struct out *out);
void out_end(struct out *out, bool now);
void out_flush(struct out *out);

/* reply.c. A request that was cancelled is not answered: then reply_begin gives NULL. Between begin and end the members
   of the result object are written, each followed by reply_end's. */
struct buf *reply_begin(struct request *req);
void reply_end(struct request *req, struct buf *buf, size_t members);
void reply_value(struct request *req, const struct jv *result);
void reply_error(struct request *req, int code, const struct jv *data, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* From an error of a store: not found, refused or broken, with the resource's URI. */
void reply_store_error(struct request *req, struct str uri, const struct err *err);
/* ttlMs and cacheScope, which modern results of lists and reads must have. */
void reply_cache_hint(struct request *req, struct jv *result, int64_t ttl_ms);

/* ask.c: only while a request runs whose answer is a stream. A notification about it, sent at once. */
void server_notify(struct request *req, const char *method, const struct jv *params);
/* Asks the client (of the handshake revisions) and waits for its answer, for `ms` at most; in the request's arena.
   NULL: there was none, or an error. */
const struct jv *server_ask(struct request *req, const char *method, const struct jv *params, int64_t ms);
void asks_init(struct asks *asks);
void asks_release(struct asks *asks);

/* The methods. */
void method_initialize(struct request *req);
void method_discover(struct request *req);
void method_empty(struct request *req);
void method_tools_list(struct request *req);
void method_prompts_list(struct request *req);
void method_prompts_get(struct request *req);
void method_tools_call(struct request *req);
bool tools_call_apart(struct request *req);
/* True when the call only reads, and is answered at once. */
bool tools_call_is_quick(struct request *req);
void tool_cache_release(struct tool_cache *cache);
void method_resources_list(struct request *req);
void method_templates_list(struct request *req);
void method_resources_read(struct request *req);
void method_subscribe(struct request *req);
void method_unsubscribe(struct request *req);
void method_listen(struct request *req);
void method_complete(struct request *req);

/* notify.c */

/* A legacy session hears of files that come and go without asking. */
void subs_add_session(struct server *s);
/* Ends the subscriptions/listen request of this id; false when there is none. */
bool subs_cancel(struct server *s, const struct jv *id);
/* Ends all, gracefully. */
void subs_release(struct server *s);

/* A path was changed by another process; `came_or_went`: lists are others now. */
void subs_tell(struct server *s, struct wpath path, bool came_or_went);
/* Up to `max` of the paths that are watched, copied to the arena. */
size_t subs_watched(struct server *s, struct arena *arena, struct wpath *ret, size_t max);

/* follow.c: starts with the first call, which must come before the subscription is confirmed. It asks the store. */
void follow_start(struct server *s, struct ctx *ctx);
void follow_end(struct server *s);

/* uri.c: `stead:///` and the path, percent-encoded. */
#define URI_TEMPLATE "stead:///{+path}"
struct str uri_format(struct arena *arena, struct str path);
int uri_parse(struct arena *arena, struct str uri, struct wpath *ret_path, struct err *err);

#endif
