/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the server share. */
#ifndef STEAD_SERVER_SERVER_INTERNAL_H
#define STEAD_SERVER_SERVER_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "home/board/board.h"
#include "home/sessions/sessions.h"
#include "server/events.h"
#include "server/gate.h"
#include "server/http.h"
#include "server/links.h"
#include "server/lists.h"
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
	/* run_tool_route: calls this tool, with arguments from the target, the query and the body; answers with its
	   result. */
	const char *tool;
	const char *member; /* of the result that is the answer; NULL: all of it */
	bool of_task;       /* it works on the files of a board's item: web_call.task is open */
	bool is_get_only;   /* HEAD would begin a stream, or use up a link */
	bool of_thread;     /* the same with the files of a thread; where the target names no workspace, it is found */
};
extern const struct route routes[];
#define ROUTES_MAX 160

#define TOKENS_OWN "-" /* in place of the name of a workspace, which cannot be one */
/* Other names under which clients know routes: a target that begins with `name` is that of `path` and the rest. */
struct route_name {
	const char *name, *path;
	const char *form; /* what `path` is in the table of routes */
};
extern const struct route_name route_names[];

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
	struct turns *turns;
	struct gate *gate;
	struct links *links;
	struct lists *lists;
	struct thread_places *thread_places;
	const struct jv *settings; /* "server" in stead.yaml; NULL: none */
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
	struct str board, item, thread; /* "{board}", "{item}", "{thread}", not decoded */
	struct str rest;                /* what "{path}" or another name of the route is, not decoded */
	struct tenant *tenant;
	struct store *task;           /* with of_task or of_thread */
	struct gate_place *place;     /* what it takes of its token's limits; NULL: nothing */
	const struct list_text *list; /* the answer, when it is one that was kept */
	unsigned retry_s;             /* for Retry-After; 0: a second */
	bool is_cors;                 /* it comes from a page of another origin, which is allowed */
	bool is_attachment;           /* the file that it asks for is to be saved, not shown */
};
static inline struct web_call *call_of(struct exchange *x)
{
	return x->state;
}
/* For calls of stores and tools; and for a change: all that a request changes is one call, and one undo. */
struct ctx exchange_ctx(struct exchange *x);
struct ctx exchange_change_ctx(struct exchange *x);
/* The files that the route is about: of the workspace, or of an item. */
struct store *exchange_files(struct exchange *x);
/* The item that the target names. */
struct board_ref exchange_item(struct exchange *x);

/* thread_places.c: the workspaces of threads, for targets that name only the thread. */
struct thread_places *thread_places_new(void);
void thread_places_destroy(struct thread_places *places);
/* The thread is in the workspace of this request. */
void thread_places_keep(struct exchange *x, struct str thread);
/* Sets the workspace, the user and the tenant of the call: where the thread is, among what the token is for. */
int exchange_find_thread(struct exchange *x, struct err *err);

/* cors.c: the answer may be read by a page of that origin; an answer to OPTIONS, with the methods of the address. */
void cors_allow(struct exchange *x, struct str origin);
void answer_options(struct exchange *x, struct str methods);

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
/* The same without a copy of what is in a file; until body_unmap(). */
struct body_view {
	struct str text;
	void *mapped;
	size_t size;
};
int body_map(struct exchange *x, struct body_view *ret, struct err *err);
void body_unmap(struct body_view *view);
/* The same as a JSON object; none counts as {}. */
int body_json(struct exchange *x, struct jv **ret, struct err *err);
/* board_routes.c: the same, or the fields of a form, which are of the types that the tool's arguments have. */
int body_fields(struct exchange *x, const char *tool, struct jv **ret, struct err *err);

/* "200 application/json …": the status of success. */
int route_status(const struct route *route);

/* tools.c */
/* Calls a tool that the token may call, and gives its result; what goes wrong is answered, and false. */
bool exchange_call_tool(struct exchange *x, const char *name, const struct jv *args, const struct jv **ret_result);
/* The native tool of that name; NULL: there is none. */
const struct tool *tool_named(const char *name);

/* files.c */
/* {path, entries, next} as JSON text. */
struct file_list {
	struct wpath path;
	struct store_list_req req;
	struct store_page page;
};
/* A path among the files that the route is about: this text; the parameter "path" of the query. */
int files_path(struct exchange *x, struct str text, struct wpath *ret, struct err *err);
int query_path(struct exchange *x, struct wpath *ret, struct err *err);
int exchange_list_files(struct exchange *x, struct file_list *ret, struct err *err);
/* Answers with the bytes of a file as the request asks for them: ranges and conditions. */
int exchange_get_file(struct exchange *x, struct wpath path, struct err *err);
/* "attachment; filename=…" for a name of any characters. */
struct str disposition(struct arena *arena, struct str name);
/* {path, name, mime_type, is_text, size_bytes, truncated, content | content_base64}. */
int file_preview(struct exchange *x, struct wpath path, struct jv **ret, struct err *err);

/* The routes. */
void run_tool_route(struct exchange *x);
void run_file_preview(struct exchange *x);
void run_download(struct exchange *x);
void run_link_create(struct exchange *x);
void run_link(struct exchange *x);
void run_resource_metadata(struct exchange *x);
void run_item_create(struct exchange *x);
void run_item_update(struct exchange *x);
void run_item_comment(struct exchange *x);
void run_wacht_board(struct exchange *x);
void run_wacht_items(struct exchange *x);
void run_wacht_item(struct exchange *x);
void run_wacht_comments(struct exchange *x);
void run_wacht_threads(struct exchange *x);
void run_wacht_assignments(struct exchange *x);
void run_wacht_cancel(struct exchange *x);
void run_wacht_archive(struct exchange *x);
void run_wacht_unarchive(struct exchange *x);
void run_wacht_thread_create(struct exchange *x);
void run_wacht_delegate(struct exchange *x);
void run_wacht_list(struct exchange *x);
void run_wacht_download(struct exchange *x);
/* A thread with the members that clients of Wacht know. */
/* {data, limit, has_more, next_cursor?} */
void answer_wacht_page(struct exchange *x, const struct jv *data, uint64_t limit, struct str next);
struct jv *wacht_thread_view(struct exchange *x, const struct jv *thread);
void run_thread(struct exchange *x);
void run_thread_update(struct exchange *x);
void run_thread_list(struct exchange *x);
void run_thread_messages(struct exchange *x);
void run_thread_run(struct exchange *x);
void run_item_answer(struct exchange *x);
void run_item_approval(struct exchange *x);
void run_hook(struct exchange *x);
void run_health(struct exchange *x);
void run_ready(struct exchange *x);
void run_metrics(struct exchange *x);
void run_openapi(struct exchange *x);
void run_usage(struct exchange *x);
void run_status(struct exchange *x);
void run_token_list(struct exchange *x);
void run_token_create(struct exchange *x);
void run_token_revoke(struct exchange *x);
void run_page(struct exchange *x);
void run_page_asset(struct exchange *x);
void run_workspaces(struct exchange *x);
void run_workspace_get(struct exchange *x);
void run_workspace_put(struct exchange *x);
void run_file_get(struct exchange *x);
void run_file_put(struct exchange *x);
void run_file_delete(struct exchange *x);
void run_file_list(struct exchange *x);
void run_files_post(struct exchange *x);
void run_tools(struct exchange *x);
void run_tool_call(struct exchange *x);
void run_sessions(struct exchange *x);
void run_messages(struct exchange *x);
void run_message(struct exchange *x);
void run_session_replay(struct exchange *x);
void run_approvals(struct exchange *x);
void run_approval_decide(struct exchange *x);
void run_host_calls(struct exchange *x);
void run_host_answer(struct exchange *x);
void run_admin_sessions(struct exchange *x);
void run_admin_session(struct exchange *x);
void run_admin_messages(struct exchange *x);
void run_admin_tasks(struct exchange *x);
void run_admin_subagent_tasks(struct exchange *x);
void run_admin_plan(struct exchange *x);
void run_admin_action(struct exchange *x);
void run_events(struct exchange *x);
void run_mcp_post(struct exchange *x);
void run_mcp_get(struct exchange *x);
void run_mcp_delete(struct exchange *x);

/* sessions.c: turns of agents, each with a thread. */
struct turns *turns_new(void);
/* Cancels those that run, and waits until none does. What they did is in their logs. */
void turns_end(struct turns *turns);
void turns_destroy(struct turns *turns);
/* Cancels the turn of a session, and waits until it ends, at most until then (real time). False: none runs in this
 * process. */
bool turns_cancel(struct turns *turns, const struct tenant *tenant, struct str session, int64_t until_ns);
/* The session that the target names, of the agent that the query names. */
int exchange_session(struct exchange *x, struct session_ref *ret, struct err *err);
/* Ends a turn of the session, whichever server runs it, and waits until it has ended. *ret_ran: there was one. */
int exchange_stop_turn(struct exchange *x, struct str session, bool *ret_ran, struct err *err);
/* True when a turn of the session runs in this process. */
bool turns_has(struct turns *turns, const struct tenant *tenant, struct str session);
/* Starts a turn of the session that is a thread, and answers at once, or with a stream if the client wants one. The
   thread's record says how it goes. */
void start_thread_turn(struct exchange *x, struct str thread, struct str text);
/* Runs a replay as turns run, and answers with its report. `opts` is in the arena of the exchange. */
struct replay_opts;
void start_replay(struct exchange *x, const struct replay_opts *opts);
/* For the forms of Wacht: a directory as {exists, entries, files, mounts, has_more, next_cursor?}. */
void answer_wacht_list(struct exchange *x, const struct file_list *list, const struct jv *mounts);

/* metrics.c */
void metrics_count(struct serve *serve, const struct exchange *x);

#endif
