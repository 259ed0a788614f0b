/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the server share. */
#ifndef STEAD_SERVER_SERVER_INTERNAL_H
#define STEAD_SERVER_SERVER_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "server/events.h"
#include "server/http.h"
#include "server/mcp_door.h"
#include "server/parse.h"
#include "server/serve.h"
#include "server/tenants.h"
#include "server/tokens.h"

struct route {
	const char *method, *path; /* "{name}" is one element of a target, "{path}" all that is left */
	const char *id;            /* of the operation, and the label of its numbers */
	enum access access;
	uint64_t body_max;
	const char *query;   /* its parameters, with blanks between them; NULL: none */
	const char *headers; /* of the request that it acts on; NULL: none */
	const char *body;    /* the media type of the body; NULL: it has none */
	const char *answers; /* statuses of success and their media types: "200 application/json 304 -" */
	bool is_quick;       /* where the store is on this machine and the workspace is open */
	void (*run)(struct exchange *x);
	const char *summary;
};
extern const struct route routes[];
#define ROUTES_MAX 40

/* Numbers of one route. */
#define TIME_BUCKETS 8
struct route_numbers {
	atomic_ullong by_class[6]; /* answers by the first digit of their status */
	atomic_ullong by_time[TIME_BUCKETS + 1];
	atomic_ullong micros;
	atomic_ullong bytes;
};

struct serve {
	struct serve_opts opts;
	struct arena *arena; /* of the options */
	struct store *base;  /* of all workspaces */
	bool is_local;
	bool unused;
	struct tokens *tokens;
	struct tenants *tenants;
	struct httpd *httpd;
	struct feeds *feeds;
	struct mcp_doors *doors;
	int64_t started_ns;
	struct route_numbers numbers[ROUTES_MAX + 1]; /* the last: no route */
	pthread_t sweeper;
	pthread_mutex_t lock;
	pthread_cond_t ending;
	bool sweeping, ended;
};

/* What is known of a request: exchange.state. */
struct web_call {
	struct serve *serve;
	const struct route *route; /* NULL: none */
	struct grant grant;
	struct str workspace, user;
	struct str rest; /* what "{path}" or "{name}" of the route is, not decoded */
	struct tenant *tenant;
};
static inline struct web_call *call_of(struct exchange *x)
{
	return x->state;
}
/* For calls of stores and tools. */
struct ctx exchange_ctx(struct exchange *x);

/* answer.c */
int http_status(enum err_kind kind);
void answer_error(struct exchange *x, const struct err *err);
/* The same with another status and further members, which may be NULL. */
void answer_problem(struct exchange *x, int status, const struct err *err, const struct jv *more);
void answer_json(struct exchange *x, int status, const struct jv *value);
/* JSON text in the arena. */
void answer_json_text(struct exchange *x, int status, struct str text);
void answer_empty(struct exchange *x, int status);
/* A stream of server-sent events. */
void answer_event_stream(struct exchange *x, const struct stream_opts *opts, struct stream **ret);
/* The body of a request whose body_max lets it be in memory. */
int body_text(struct exchange *x, struct str *ret, struct err *err);
/* The same as a JSON object; none counts as {}. */
int body_json(struct exchange *x, struct jv **ret, struct err *err);

/* The routes. */
void run_health(struct exchange *x);
void run_ready(struct exchange *x);
void run_metrics(struct exchange *x);
void run_openapi(struct exchange *x);
void run_workspaces(struct exchange *x);
void run_workspace_put(struct exchange *x);
void run_file_get(struct exchange *x);
void run_file_put(struct exchange *x);
void run_file_delete(struct exchange *x);
void run_file_list(struct exchange *x);
void run_tools(struct exchange *x);
void run_tool_call(struct exchange *x);
void run_events(struct exchange *x);
void run_mcp_post(struct exchange *x);
void run_mcp_get(struct exchange *x);
void run_mcp_delete(struct exchange *x);

/* metrics.c */
void metrics_count(struct serve *serve, const struct exchange *x);

#endif
