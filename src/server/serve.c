/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a request to its route. Everything that decides whether a request is allowed is in here, in one order, before
 * its body is read: the name of the server, the origin of the page, the route, the token, the workspace and the user.
 */
#include "server/serve.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/hex.h"
#include "base/limits.h"
#include "server/server_internal.h"
#include "workspace/place.h"
#include "workspace/workspace_parts.h"

#define WORKERS      16
#define SWEEP_S      5
#define IDLE_S       60
#define USER_LEN_MAX 200

struct ctx exchange_ctx(struct exchange *x)
{
	struct web_call *call = call_of(x);

	struct ctx ctx = {
		.arena = x->arena, .cancel = &x->cancel, .deadline_ns = x->started_ns + SERVER_CALL_MS * NS_PER_MS};

	if (call->tenant)
		ctx.actor = workspace_actor(call->tenant->ws);
	return ctx;
}

struct ctx exchange_change_ctx(struct exchange *x)
{
	struct ctx ctx = exchange_ctx(x);

	ctx.actor.call_id = call_id_new(x->arena);
	return ctx;
}

struct store *exchange_files(struct exchange *x)
{
	struct web_call *call = call_of(x);

	return call->task ? call->task : workspace_files(call->tenant->ws);
}

struct board_ref exchange_item(struct exchange *x)
{
	struct web_call *call = call_of(x);

	return (struct board_ref){percent_decode(x->arena, call->board), percent_decode(x->arena, call->item)};
}

/* --- may this request be answered at all --- */

static bool is_listed(const struct str *list, size_t count, struct str text)
{
	for (size_t i = 0; i < count; i++)
		if (str_eq_nocase(list[i], text))
			return true;
	return false;
}

/* A page that got its name to point at this machine must not reach it (DNS rebinding), nor may any other page. */
static int check_names(const struct serve *s, struct exchange *x, struct err *err)
{
	struct str host = exchange_header(x, "Host"), origin = exchange_header(x, "Origin"), name = host_name(host);

	if (!host.ptr || !name.len)
		return err_set(err, ERR_INVALID, "the request has no valid Host header");
	if (!str_eq_nocase(name, s->opts.host) && !is_listed(s->opts.hosts, s->opts.host_count, name) &&
	    !(host_is_loopback(s->opts.host) && host_is_loopback(name)))
		return err_set(err, ERR_DENIED,
			       "this server does not go by the name \"%.*s\"; start it with --host %.*s to allow it",
			       STR_ARG(utf8_first(name, 80)), STR_ARG(utf8_first(name, 80)));
	if (!origin.ptr)
		return 0;
	if (is_listed(s->opts.origins, s->opts.origin_count, origin))
		cors_allow(x, origin);
	else if (!str_eq_nocase(origin_host(origin), host))
		return err_set(err, ERR_DENIED,
			       "pages from \"%.*s\" may not use this server; start it with --origin to allow them",
			       STR_ARG(utf8_first(origin, 100)));
	return 0;
}

static int authenticate(struct serve *s, struct exchange *x, bool may_wait, bool *ret_later, struct err *err)
{
	struct web_call *call = call_of(x);
	struct str header = exchange_header(x, "Authorization"), token = bearer_token(header);
	struct ctx ctx = exchange_ctx(x);

	*ret_later = false;
	if (s->opts.is_open) {
		call->grant = (struct grant){.access = ACCESS_ADMIN};
		return 0;
	}
	if (!token.ptr)
		return err_set(
			err, ERR_UNAUTHENTICATED,
			"this server requires a token: Authorization: Bearer TOKEN (stead token create makes one)");
	return tokens_check(s->tokens, &ctx, token, may_wait, &call->grant, ret_later, err);
}

/* A target that names no workspace is about the only one of the token, or the default one. */
static void find_own_workspace(struct web_call *call)
{
	if (!str_is(call->workspace, TOKENS_OWN))
		return;
	call->workspace =
		jv_count(call->grant.workspaces) == 1 ? jv_str_of(jv_at(call->grant.workspaces, 0)) : STR("default");
}

static bool has_control(struct str text)
{
	for (size_t i = 0; i < text.len; i++)
		if ((unsigned char)text.ptr[i] < ' ' || text.ptr[i] == 0x7f)
			return true;
	return false;
}

static int authorize(struct exchange *x, struct err *err)
{
	struct web_call *call = call_of(x);
	struct str user = exchange_header(x, "Stead-User");

	if (call->grant.access < call->route->access)
		return err_set(err, ERR_DENIED, "this token has \"%s\" access, and this needs \"%s\"",
			       access_name(call->grant.access), access_name(call->route->access));
	find_own_workspace(call);
	if (call->workspace.ptr && !workspace_name_ok(call->workspace)) {
		struct str name = percent_decode(x->arena, call->workspace);

		return workspace_bad_name(name.ptr ? name : call->workspace, err);
	}
	if (call->workspace.ptr && !grant_covers_workspace(&call->grant, call->workspace))
		return err_set(err, ERR_DENIED, "this token is not for the workspace \"%.*s\"",
			       STR_ARG(call->workspace));
	user = percent_decode(x->arena, user);
	if (user.len > USER_LEN_MAX || (user.len && !utf8_valid(user)) || has_control(user))
		return err_set(err, ERR_INVALID, "the header Stead-User must be text of one line and at most %d bytes",
			       USER_LEN_MAX);
	return call->workspace.ptr || call->route->of_thread ? grant_user(&call->grant, user, &call->user, err) : 0;
}

/* --- routes --- */

/* "{name}", or "{name}:action", where the action is part of the form. */
static bool take_name(struct str want, struct str have, struct str *ret)
{
	struct str action = str_from(want, str_find_char(want, '}') + 1);

	if (!str_ends(have, action) || have.len == action.len)
		return false;
	*ret = str_first(have, have.len - action.len);
	return true;
}

/* True when the target has the form of the route; fills in what its names stand for. */
static bool route_matches(const struct route *route, struct str path, struct web_call *call)
{
	struct str form = str_from(str_of(route->path), 1), rest = str_from(path, 1), want, have;

	call->workspace = call->rest = call->board = call->item = call->thread = STR_NONE;
	while (str_cut(&form, '/', &want)) {
		if (str_is(want, "{path}")) {
			call->rest = rest;
			return rest.len > 0;
		}
		if (!str_cut(&rest, '/', &have) || (!have.len && want.len))
			return false;
		if (str_is(want, "{workspace}"))
			call->workspace = have;
		else if (str_is(want, "{board}"))
			call->board = have;
		else if (str_is(want, "{item}"))
			call->item = have;
		else if (str_is(want, "{thread}"))
			call->thread = have;
		else if (want.ptr[0] == '{' ? !take_name(want, have, &call->rest) : !str_eq(want, have))
			return false;
	}
	return rest.len == 0 && (path.len == 1 || !str_ends(path, STR("/")));
}

static struct str route_path(struct exchange *x)
{
	for (const struct route_name *one = route_names; one->name; one++)
		if (str_starts(x->path, str_of(one->name)))
			return arena_printf(x->arena, "%s%.*s", one->path,
					    STR_ARG(str_from(x->path, strlen(one->name))));
	return x->path;
}

static bool is_served(const struct serve *s, const struct route *route)
{
	return !s->opts.hooks_only || route->run == run_hook || route->run == run_health;
}

/* A project of Wacht has one board. A workspace may have several: "research" is its board "main", and "research:drafts"
   is another. */
static void split_project(struct exchange *x, struct web_call *call)
{
	struct str project = percent_decode(x->arena, call->workspace);
	size_t colon = str_find_char(project, ':');

	if (!str_starts(str_of(call->route->path), STR("/ai/actor-projects/")) || colon == project.len)
		return;
	call->workspace = str_first(project, colon);
	call->board = str_from(project, colon + 1);
}

/* Where GET can be asked for, so can HEAD: the library leaves the body out. */
static bool route_takes(const struct route *route, struct str method)
{
	return str_is(method, route->method) ||
	       (str_is(method, "HEAD") && str_is(str_of(route->method), "GET") && !route->is_get_only);
}

/* "GET, HEAD", … of what has the form of the target. */
static void add_allowed(struct buf *allowed, const struct route *route)
{
	static const char *const methods[] = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"};

	for (size_t i = 0; i < COUNT(methods); i++) {
		if (!route_takes(route, str_of(methods[i])) ||
		    str_find(buf_str(allowed), str_of(methods[i]), 0) < allowed->len)
			continue;
		buf_printf(allowed, "%s%s", allowed->len ? ", " : "", methods[i]);
	}
}

/* No route takes the method of the request. */
static int refuse_method(struct exchange *x, struct buf *allowed, struct err *err)
{
	if (!allowed->len)
		return err_set(err, ERR_NOT_FOUND,
			       "there is nothing at this address; /openapi.json lists what there is");
	buf_lit(allowed, ", OPTIONS");
	err_set(err, ERR_UNSUPPORTED, "this address accepts %.*s", STR_ARG(buf_str(allowed)));
	if (str_is(x->method, "OPTIONS")) {
		answer_options(x, buf_str(allowed));
		return -(int)err->kind;
	}
	exchange_add_header(x, "Allow", buf_str(allowed));
	answer_problem(x, 405, err, NULL);
	return -(int)err->kind;
}

static void take_route(struct exchange *x, const struct route *route, const struct web_call *names)
{
	struct web_call *call = call_of(x);

	call->route = route;
	call->workspace = names->workspace;
	call->board = names->board;
	call->item = names->item;
	call->thread = names->thread;
	call->rest = names->rest;
	split_project(x, call);
}

/* The route of just this method comes before that of GET. */
static int find_route(struct exchange *x, struct err *err)
{
	struct web_call *call = call_of(x), tried = {0};
	struct str path = route_path(x);
	struct buf allowed;

	buf_init(&allowed, x->arena, 200);
	for (const struct route *route = routes; route->path; route++) {
		if (!route_matches(route, path, &tried) || !is_served(call->serve, route))
			continue;
		if (!route_takes(route, x->method)) {
			add_allowed(&allowed, route);
			continue;
		}
		if (!call->route || str_is(x->method, route->method))
			take_route(x, route, &tried);
		if (str_is(x->method, route->method))
			return 0;
	}
	return call->route ? 0 : refuse_method(x, &allowed, err);
}

static void set_up(struct exchange *x)
{
	struct web_call *call = ARENA_NEW(x->arena, struct web_call);

	call->serve = x->arg;
	x->state = call;
	exchange_add_header(x, "X-Request-Id", str_of(x->id));
	exchange_add_header(x, "X-Content-Type-Options", STR("nosniff"));
}

/* Bytes in a coding would be stored, or read, as what they are not. */
static int check_coding(struct exchange *x, struct err *err)
{
	struct str coding = exchange_header(x, "Content-Encoding");

	if (!coding.len || str_eq_nocase(coding, STR("identity")))
		return 0;
	err_set(err, ERR_UNSUPPORTED, "send the body without Content-Encoding; it is taken as it is");
	answer_problem(x, 415, err, NULL);
	return -(int)err->kind;
}

/* The checks that come before the token. */
static int check_head(struct exchange *x, struct err *err)
{
	struct web_call *call = call_of(x);
	int r = check_names(call->serve, x, err);

	if (r == 0)
		r = find_route(x, err);
	if (r == 0)
		r = check_coding(x, err);
	if (r == 0)
		r = query_check(x->query, call->route->query ? call->route->query : "", err);
	return r;
}

static bool begin(struct exchange *x, bool may_wait)
{
	struct serve *s = x->arg;
	struct web_call *call;
	struct err err = {0};
	bool later = false;
	int r = 0;

	if (!x->state) {
		set_up(x);
		r = check_head(x, &err);
	}
	call = call_of(x);
	if (r == 0 && call->route->access)
		r = authenticate(s, x, may_wait, &later, &err);
	if (r == 0 && later)
		return false;
	if (r == 0 && call->route->access)
		r = gate_enter(s->gate, call->grant.id, &call->place, &call->retry_s, &err);
	if (r == 0 && call->route->access)
		r = authorize(x, &err);
	if (r && !x->answered)
		answer_error(x, &err);
	if (r)
		return true;
	x->body_max = call->route->body_max;
	x->owner = call->workspace.ptr ? tenants_owner(call->workspace) : 0;
	if (call->route->is_quick && call->workspace.ptr && s->is_local)
		call->tenant = tenants_find(s->tenants, call->workspace, call->user);
	x->is_quick = call->route->is_quick && (!call->workspace.ptr || call->tenant);
	return true;
}

/* A workspace is opened for those routes that name one, except for the one that makes it. */
static void run(struct exchange *x)
{
	struct web_call *call = call_of(x);
	struct ctx ctx;
	struct err err;
	int r = 0;

	if (call->workspace.ptr && !call->tenant && call->route->run != run_workspace_put)
		r = tenants_get(call->serve->tenants, call->workspace, call->user, &call->tenant, &err);
	if (r == 0 && call->route->of_thread && !call->workspace.ptr)
		r = exchange_find_thread(x, &err);
	ctx = exchange_ctx(x);
	if (r == 0 && call->route->of_task)
		r = board_task_open(call->tenant->ws, &ctx, exchange_item(x), &call->task, &err);
	if (r == 0 && call->route->of_thread)
		r = board_thread_open(call->tenant->ws, &ctx, percent_decode(x->arena, call->board),
				      percent_decode(x->arena, call->thread), &call->task, &err);
	if (r)
		answer_error(x, &err);
	else
		call->route->run(x);
}

static void refuse(struct exchange *x, const struct err *err)
{
	if (!x->state)
		set_up(x);
	answer_error(x, err);
}

static void done(struct exchange *x)
{
	struct serve *s = x->arg;
	struct web_call *call = call_of(x);
	bool is_link = call && call->route && call->route->run == run_link; /* its address is a secret */
	struct str path = is_link ? STR("/links/-") : utf8_first(x->path, 512);
	double ms = (double)(clock_monotonic_ns() - x->started_ns) / 1e6;

	metrics_count(s, x);
	if (call) {
		list_text_put(call->list);
		store_destroy(call->task);
		tenants_put(s->tenants, call->tenant);
		gate_leave(s->gate, call->place);
	}
	if (!s->opts.verbose)
		return;
	fprintf(stderr, "%s %s %.*s %.*s%s%.*s %d %llu %.1fms %s %s\n", clock_format_utc(x->arena, clock_real_ns()).ptr,
		x->peer, STR_ARG(utf8_first(x->method, 16)), STR_ARG(path), x->query.len ? "?" : "",
		STR_ARG(utf8_first(x->query, 512)), x->status,
		(unsigned long long)(x->answer_size == UINT64_MAX ? 0 : x->answer_size), ms, x->id,
		call && call->grant.id.len ? call->grant.id.ptr : "-");
}

/* --- start and stop --- */

static void *sweep(void *arg)
{
	struct serve *s = arg;

	pthread_mutex_lock(&s->lock);
	while (!s->ended) {
		struct timespec until = clock_timespec(clock_monotonic_ns() + SWEEP_S * NS_PER_S);

		pthread_cond_timedwait(&s->ending, &s->lock, &until);
		if (s->ended)
			break;
		pthread_mutex_unlock(&s->lock);
		mcp_doors_tick(s->doors);
		tenants_renew(s->tenants);
		tenants_sweep(s->tenants, IDLE_S * NS_PER_S);
		links_sweep(s->links);
		lists_sweep(s->lists);
		gate_sweep(s->gate);
		pthread_mutex_lock(&s->lock);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

static struct str *copy_list(struct arena *arena, const struct str *list, size_t count)
{
	struct str *copy = ARENA_ARRAY(arena, struct str, count + 1);

	for (size_t i = 0; i < count; i++)
		copy[i] = arena_str(arena, list[i]);
	return copy;
}

static struct serve *serve_new(const struct serve_opts *opts)
{
	struct serve *s = xcalloc(1, sizeof(*s));
	pthread_condattr_t attr;

	s->arena = arena_new();
	s->opts = *opts;
	s->opts.store_url = arena_str(s->arena, opts->store_url);
	s->opts.host = arena_str(s->arena, opts->host);
	s->opts.tools.sets = arena_str(s->arena, opts->tools.sets);
	s->opts.hosts = copy_list(s->arena, opts->hosts, opts->host_count);
	s->opts.origins = copy_list(s->arena, opts->origins, opts->origin_count);
	s->started_ns = clock_real_ns();
	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&s->ending, &attr);
	pthread_condattr_destroy(&attr);
	return s;
}

static void serve_destroy(struct serve *s)
{
	httpd_destroy(s->httpd);
	mcp_doors_destroy(s->doors);
	turns_destroy(s->turns);
	links_destroy(s->links);
	lists_destroy(s->lists);
	thread_places_destroy(s->thread_places);
	gate_destroy(s->gate);
	feeds_destroy(s->feeds);
	tenants_destroy(s->tenants);
	tokens_destroy(s->tokens);
	store_destroy(s->base);
	pthread_cond_destroy(&s->ending);
	pthread_mutex_destroy(&s->lock);
	arena_destroy(s->arena);
	free(s);
}

/* Who could reach it, and what keeps them out. */
static int check_exposure(struct serve *s, struct err *err)
{
	struct ctx ctx = {.arena = s->arena};
	bool loopback = host_is_loopback(s->opts.host), any;
	int r;

	if (s->opts.is_open && !loopback)
		return err_set(err, ERR_DENIED,
			       "serve: --open lets in everybody who can connect, so it is for loopback only; listen on "
			       "127.0.0.1, or make a token and leave out --open");
	if (s->opts.is_open || s->opts.hooks_only)
		return 0;
	r = token_any(s->base, &ctx, &any, err);
	if (r)
		return r;
	if (!any && !loopback)
		return err_set(
			err, ERR_DENIED,
			"serve: others can reach %.*s, and there is no token yet; make one first: stead token create",
			STR_ARG(s->opts.host));
	s->unused = !any;
	return 0;
}

/* What stead.yaml says about the server. */
static int read_settings(struct serve *s, struct gate_limits *ret_limits, struct err *err)
{
	struct place_config config;
	int r = place_read(s->arena, s->opts.store_url, &config, err);

	if (r)
		return r;
	s->settings = config.server;
	*ret_limits = (struct gate_limits){
		.per_minute = (uint64_t)jv_get_int(config.server, "requests_per_minute", 0),
		.at_once = (uint64_t)jv_get_int(config.server, "requests_at_once", 0),
	};
	return 0;
}

static int open_base(struct serve *s, struct err *err)
{
	struct str url = workspace_url(s->arena, s->opts.store_url), dir;

	if (str_starts(url, STR("memory:")) || workspace_is_temp(url))
		return err_set(err, ERR_UNSUPPORTED,
			       "serve: workspaces in \"%.*s\" end when they are closed; use disk:DIR or a server",
			       STR_ARG(utf8_first(s->opts.store_url, 80)));
	return workspace_open_store(s->arena, s->opts.store_url, true, s->opts.relaxed, &s->base, &dir, err);
}

int serve_start(const struct serve_opts *opts, struct serve **ret_serve, struct err *err)
{
	struct serve *s = serve_new(opts);
	struct workspace_opts like = {.store_url = s->opts.store_url, .relaxed = s->opts.relaxed};
	struct httpd_opts http = {.host = s->opts.host,
				  .port = s->opts.port,
				  .workers = WORKERS,
				  .head_s = s->opts.head_s,
				  .begin = begin,
				  .run = run,
				  .done = done,
				  .refuse = refuse,
				  .arg = s};
	struct gate_limits limits;
	int r = open_base(s, err);

	if (r == 0)
		r = read_settings(s, &limits, err);
	if (r == 0)
		r = check_exposure(s, err);
	if (r == 0) {
		s->is_local = store_is_local(s->base);
		s->tokens = tokens_new(s->base);
		s->tenants = tenants_new(&like, &s->opts.tools);
		s->feeds = feeds_new(s);
		s->doors = mcp_doors_new(s);
		s->turns = turns_new();
		s->gate = gate_new(limits);
		s->links = links_new(s->base);
		s->lists = lists_new();
		s->thread_places = thread_places_new();
		r = httpd_start(&http, &s->httpd, err);
	}
	if (r) {
		serve_destroy(s);
		return r;
	}
	s->sweeping = pthread_create(&s->sweeper, NULL, sweep, s) == 0;
	*ret_serve = s;
	return 0;
}

struct str serve_url(const struct serve *s)
{
	return httpd_url(s->httpd);
}

bool serve_is_unused(const struct serve *s)
{
	return s->unused;
}

bool serve_stop(struct serve *s, int64_t grace_ms)
{
	pthread_mutex_lock(&s->lock);
	s->ended = true;
	pthread_cond_signal(&s->ending);
	pthread_mutex_unlock(&s->lock);
	if (s->sweeping)
		pthread_join(s->sweeper, NULL);
	feeds_end(s->feeds);
	mcp_doors_end(s->doors);
	turns_end(s->turns);
	if (!httpd_drain(s->httpd, grace_ms))
		return false;
	serve_destroy(s);
	return true;
}
