/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The network of commands: what agent.yaml allows, the secrets of .env that are granted to hosts, and the log of what
 * was connected to. The log is .stead/network.jsonl, one line for each command that used the network; when it has grown
 * it becomes network.old.jsonl, which it replaces.
 */
#include "base/clock.h"
#include "base/env.h"
#include "home/exec/exec_internal.h"
#include "store/jsonl.h"
#include "text/dotenv.h"
#include "workspace/workspace.h"

#define LOG_PATH SANDBOX_NET_LOG_PATH
#define LOG_OLD  ".stead/network.old.jsonl"

static const struct jv *section_of(struct workspace *ws)
{
	return jv_get(workspace_config(ws)->document, "sandbox");
}

/* --- what agent.yaml says --- */

static int read_host(struct arena *arena, const struct jv *v, struct sandbox_host *list, size_t *count, struct err *err)
{
	struct str host = v->type == JV_STR ? v->u.s : jv_get_str(v, "host"), address = jv_get_str(v, "address");
	size_t before = *count;
	int r = sandbox_hosts_parse(
		arena, address.len ? arena_printf(arena, "%.*s=%.*s", STR_ARG(host), STR_ARG(address)) : host, list,
		count, err);

	for (size_t i = before; r == 0 && i < *count; i++)
		list[i].allows_private = jv_get_bool(v, "private", false);
	return r ? err_prefix(err, "agent.yaml: sandbox.network") : 0;
}

/* The variables of the workspace's .env. */
static int read_variables(struct workspace *ws, struct ctx *ctx, struct jv **ret, struct err *err)
{
	struct str text = STR_NONE;
	int r = store_read(workspace_home(ws), ctx, (struct wpath){STR(".env")}, STORE_WHOLE, ENV_LEN_MAX, &text, NULL,
			   err);

	*ret = NULL;
	if (r == -ERR_NOT_FOUND)
		return 0;
	if (r == 0 && dotenv_parse(ctx->arena, text, ret, err) != 0)
		return err_in_file(err, ".env");
	return r;
}

static int read_secrets(struct workspace *ws, struct ctx *ctx, struct sandbox_net *net, struct err *err)
{
	const struct jv *list = jv_get(section_of(ws), "secrets");
	struct sandbox_secret *secrets = ARENA_ARRAY(ctx->arena, struct sandbox_secret, SANDBOX_SECRETS_MAX);
	struct jv *vars = NULL;
	int r = list ? read_variables(ws, ctx, &vars, err) : 0;

	net->secrets = secrets;
	for (const struct jv_member *m = jv_first(list); m && r == 0; m = m->next) {
		struct sandbox_secret *s = &secrets[net->secret_count];
		struct sandbox_host host;

		if (net->secret_count == SANDBOX_SECRETS_MAX)
			return err_set(err, ERR_TOO_LARGE, "agent.yaml: sandbox.secrets may have %d entries",
				       SANDBOX_SECRETS_MAX);
		*s = (struct sandbox_secret){.name = jv_get_str(m->value, "name"),
					     .header = jv_get_str(m->value, "header"),
					     .query = jv_get_str(m->value, "query"),
					     .plain_http = jv_get_bool(m->value, "plain_http", false)};
		s->value = jv_get_str(vars, arena_cstr(ctx->arena, s->name));
		if (!s->value.len)
			s->value = str_of(env_get(workspace_env(ws), arena_cstr(ctx->arena, s->name)));
		if (!s->value.len)
			return err_set(err, ERR_NOT_FOUND,
				       "agent.yaml: sandbox.secrets grants %.*s, which .env does not have",
				       STR_ARG(s->name));
		r = sandbox_host_parse(ctx->arena, jv_get_str(m->value, "host"), &host, err);
		if (r == 0 && (host.is_wild || host.port || host.address.len))
			r = err_set(err, ERR_INVALID, "it must be the name of one host, without a port");
		if (r)
			return err_prefix(err, "agent.yaml: sandbox.secrets: the host of %.*s", STR_ARG(s->name));
		s->host = host.name;
		r = sandbox_secret_check(s, err);
		net->secret_count++;
	}
	return r;
}

int exec_net(struct workspace *ws, struct ctx *ctx, const struct sandbox_net **ret, struct err *err)
{
	const struct jv *config = section_of(ws);
	struct sandbox_host *hosts = ARENA_ARRAY(ctx->arena, struct sandbox_host, SANDBOX_HOSTS_MAX);
	struct sandbox_net *net = ARENA_NEW(ctx->arena, struct sandbox_net);
	struct str ca = jv_get_str(config, "network_ca");
	int r = 0;

	*ret = NULL;
	*net = (struct sandbox_net){.hosts = hosts, .ca_file = ca.len ? arena_cstr(ctx->arena, ca) : NULL};
	for (const struct jv_member *m = jv_first(jv_get(config, "network")); m && r == 0; m = m->next)
		r = read_host(ctx->arena, m->value, hosts, &net->host_count, err);
	if (r == 0 && !config_size(jv_get(config, "network_bytes"), 0, &net->bytes_max))
		r = err_set(err, ERR_INVALID, "agent.yaml: sandbox.network_bytes is too large");
	if (r == 0)
		r = read_secrets(ws, ctx, net, err);
	if (r == 0)
		*ret = net;
	return r;
}

int exec_net_hosts(struct ctx *ctx, struct sandbox_job *job, struct str hosts, bool and_own, struct err *err)
{
	struct sandbox_host *list = ARENA_ARRAY(ctx->arena, struct sandbox_host, SANDBOX_HOSTS_MAX);
	struct sandbox_net *net = ARENA_NEW(ctx->arena, struct sandbox_net);
	int r;

	if (job->net)
		*net = *job->net;
	if (!and_own)
		net->host_count = 0;
	if (net->host_count)
		memcpy(list, net->hosts, net->host_count * sizeof(*list));
	r = sandbox_hosts_parse(ctx->arena, hosts, list, &net->host_count, err);
	net->hosts = list;
	if (r == 0)
		job->net = net;
	return r;
}

/* --- the result --- */

static struct jv *connection_value(struct arena *arena, const struct sandbox_connection *c)
{
	struct jv *v = jv_object(arena);

	jv_set_str(arena, v, "host", c->host);
	if (c->port)
		jv_set_int(arena, v, "port", c->port);
	jv_set_str(arena, v, "outcome", str_of(sandbox_net_outcome_name(c->outcome)));
	if (c->reason.len)
		jv_set_str(arena, v, "reason", c->reason);
	if (c->port) {
		jv_set_int(arena, v, "sent", (int64_t)c->sent);
		jv_set_int(arena, v, "received", (int64_t)c->received);
		jv_set_int(arena, v, "duration_ms", c->duration_ms);
	}
	return v;
}

void exec_net_value(struct arena *arena, const struct sandbox_result *r, struct jv *ret)
{
	struct jv *list = jv_array(arena);

	if (!r->connection_count)
		return;
	for (size_t i = 0; i < r->connection_count; i++)
		jv_push(arena, list, connection_value(arena, &r->connections[i]));
	jv_set(arena, ret, "network", list);
}

void exec_net_remarks(const struct jv *value, struct buf *text)
{
	size_t shown = 0;

	for (const struct jv_member *m = jv_first(jv_get(value, "network")); m && shown < 10; m = m->next) {
		struct str reason = jv_get_str(m->value, "reason");

		if (!reason.len)
			continue;
		buf_printf(text, "[network: %.*s", STR_ARG(jv_get_str(m->value, "host")));
		if (jv_get(m->value, "port"))
			buf_printf(text, ":%lld", (long long)jv_get_int(m->value, "port", 0));
		buf_printf(text, " %.*s: %.*s]\n", STR_ARG(jv_get_str(m->value, "outcome")), STR_ARG(reason));
		shown++;
	}
}

/* --- the log --- */

/* A log that has grown makes room. */
static void turn_log(struct workspace *ws, struct ctx *ctx)
{
	struct store *home = workspace_home(ws);
	struct store_stat stat;
	struct err ignored;

	if (store_stat(home, ctx, (struct wpath){STR(LOG_PATH)}, &stat, &ignored) != 0 ||
	    stat.size < SANDBOX_NET_LOG_BYTES)
		return;
	(void)store_remove(home, ctx, (struct wpath){STR(LOG_OLD)}, false, (struct store_cond){0}, NULL, &ignored);
	(void)store_move(home, ctx, (struct wpath){STR(LOG_PATH)}, (struct wpath){STR(LOG_OLD)}, (struct store_cond){0},
			 (struct store_cond){0}, NULL, &ignored);
}

void exec_net_log(struct workspace *ws, struct ctx *ctx, const struct sandbox_job *job, const struct sandbox_result *r)
{
	struct arena *arena = ctx->arena;
	struct jv *line = jv_object(arena);
	struct err ignored;

	if (!r->connection_count)
		return;
	jv_set_str(arena, line, "at", clock_format_utc(arena, clock_real_ns()));
	jv_set_str(arena, line, "program", utf8_first(str_of(job->argv[0]), 200));
	if (ctx->actor.agent.len)
		jv_set_str(arena, line, "agent", ctx->actor.agent);
	if (ctx->actor.session.len)
		jv_set_str(arena, line, "session", ctx->actor.session);
	exec_net_value(arena, r, line);
	if (r->connections_unlogged)
		jv_set_int(arena, line, "more", (int64_t)r->connections_unlogged);
	turn_log(ws, ctx);
	(void)jsonl_append(workspace_home(ws), ctx, (struct wpath){STR(LOG_PATH)}, line, NULL, &ignored);
}
