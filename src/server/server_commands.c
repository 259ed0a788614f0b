/* SPDX-License-Identifier: Apache-2.0 */
/* `stead serve` and `stead token`. */
#include "server/server_commands.h"

#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "command/cli.h"
#include "runner/runner.h"
#include "server/parse.h"
#include "server/serve.h"
#include "server/tokens.h"
#include "workspace/workspace_parts.h"

#define GRACE_MS    10000
#define NS_PER_DAY  (86400 * NS_PER_S)
#define EXPIRES_MAX 36500

/* --- serve --- */

static int wait_for_signal(const sigset_t *set)
{
	int signal = 0;

	while (sigwait(set, &signal) != 0)
		continue;
	return signal;
}

static void say_ready(struct cli *cli, const struct serve *serve)
{
	struct jv *v = jv_object(cli->ctx.arena);

	jv_set_str(cli->ctx.arena, v, "url", serve_url(serve));
	if (cli->json)
		output_json_line(&cli->out, cli->ctx.arena, v);
	else
		output_printf(&cli->out, "listening on %.*s\n", STR_ARG(serve_url(serve)));
	output_flush(&cli->out);
	if (serve_is_unused(serve))
		fputs("stead: there is no token yet, so every request is refused; make one: stead token create\n",
		      stderr);
}

/* One line on standard error for each event; fputs() keeps lines of several threads whole. */
static void print_event(void *arg, const struct runner_event *event)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	const struct cli *cli = arg;
	struct str line = runner_event_line(arena, event, cli->json);

	fputs(arena_printf(arena, "%.*s\n", STR_ARG(line)).ptr, stderr);
}

/* The runner of all workspaces, if --agents wants it; otherwise NULL. */
static int start_agents(struct cli *cli, struct runner **ret, struct err *err)
{
	struct runner_opts opts = {.store_url = cli_setting(cli, "store"), .event = print_event, .arg = cli};

	*ret = NULL;
	return args_has(&cli->args, "agents") ? runner_start(&opts, ret, err) : 0;
}

/* A name with a port, and an origin with a '/' at its end, would never be what a client sends. */
static int read_names(struct cli *cli, struct serve_opts *opts, struct err *err)
{
	struct arena *arena = cli->ctx.arena;
	struct str *hosts = args_each(arena, &cli->args, "host", &opts->host_count);
	struct str *origins = args_each(arena, &cli->args, "origin", &opts->origin_count);

	for (size_t i = 0; i < opts->host_count; i++) {
		struct str name = host_name(hosts[i]);

		if (!name.len)
			return err_set(err, ERR_INVALID, "--host is \"%.*s\"; give a name such as stead.example.org",
				       STR_ARG(utf8_first(hosts[i], 80)));
		hosts[i] = name;
	}
	for (size_t i = 0; i < opts->origin_count; i++) {
		struct str origin = origins[i];
		size_t host = str_find(origin, STR("://"), 0);

		if (str_ends(origin, STR("/")))
			origin.len--;
		if (host == SIZE_MAX || host + 3 >= origin.len ||
		    str_find_char(str_from(origin, host + 3), '/') != origin.len - host - 3)
			return err_set(
				err, ERR_INVALID,
				"--origin is \"%.*s\"; give the origin of the pages, such as https://app.example.org",
				STR_ARG(utf8_first(origins[i], 80)));
		origins[i] = origin;
	}
	opts->hosts = hosts;
	opts->origins = origins;
	return 0;
}

static int run_serve(struct cli *cli, struct err *err)
{
	struct serve_opts opts = {.store_url = cli_setting(cli, "store"),
				  .is_open = args_has(&cli->args, "open"),
				  .relaxed = args_has(&cli->args, "relaxed"),
				  .tools = cli_choice(cli),
				  .structured = args_has(&cli->args, "structured"),
				  .verbose = args_has(&cli->args, "verbose")};
	struct str listen = args_get(&cli->args, "listen");
	struct runner *agents;
	struct serve *serve;
	sigset_t signals;
	int r;

	r = read_names(cli, &opts, err);
	if (r)
		return r;
	r = toolset_choice_check(opts.tools.sets, err);
	if (r)
		return err_prefix(err, "--tools");
	r = listen_parse(listen.len ? listen : STR("127.0.0.1:7777"), &opts.host, &opts.port, err);
	if (r)
		return err_prefix(err, "serve");
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	pthread_sigmask(SIG_BLOCK, &signals, NULL); /* inherited by all threads: only this one takes them */
	r = serve_start(&opts, &serve, err);
	if (r)
		return r;
	r = start_agents(cli, &agents, err);
	if (r) {
		serve_stop(serve, GRACE_MS);
		return r;
	}
	say_ready(cli, serve);
	wait_for_signal(&signals);
	pthread_sigmask(SIG_UNBLOCK, &signals, NULL); /* a second one ends the program at once */
	if (agents)
		runner_stop(agents);
	if (!serve_stop(serve, GRACE_MS))
		_exit(0);
	return 0;
}

static const struct option serve_options[] = {
	{"listen", 0, "HOST:PORT",
	 .help = "a numeric address and a port; port 0 picks a free one (default: 127.0.0.1:7777)"},
	{"agents",
	 .help = "also run the channels, schedules and heartbeats of all workspaces, as 'stead up --all' does"},
	{"open", .help = "require no token; only on loopback"},
	{"host", 0, "NAME", .help = "another name that clients may use for this server; may be repeated"},
	{"origin", 0, "URL", .help = "a website whose pages may use this server; may be repeated"},
	TOOLS_OPTIONS,
	{"structured", .help = "also return results to MCP clients as data: for programs, not for models"},
	{"verbose", 'v', .help = "write one line per request to standard error"},
	{0},
};

/* --- token --- */

static int open_base(struct cli *cli, bool create, struct store **ret, struct err *err)
{
	struct str dir;

	return workspace_open_store(cli->ctx.arena, cli_setting(cli, "store"), create, false, ret, &dir, err);
}

static void add_names(struct buf *b, const char *what, const struct jv *list, const char *none)
{
	buf_printf(b, ", %s", what);
	if (!list)
		buf_printf(b, "%s", none);
	for (const struct jv_member *m = jv_first(list); m; m = m->next) {
		if (m != jv_first(list))
			buf_char(b, ',');
		buf_add(b, jv_str_of(m->value));
	}
}

static void print_token(struct cli *cli, const struct jv *token)
{
	struct str expires = jv_get_str(token, "expires"), name = jv_get_str(token, "name");
	struct buf b;

	buf_init(&b, cli->ctx.arena, 100000);
	add_names(&b, "workspaces ", jv_get(token, "workspaces"), "all");
	add_names(&b, "users ", jv_get(token, "users"), "none");
	output_printf(&cli->out, "%.*s  %.*s%.*s, %s%.*s%s%s%.*s\n", STR_ARG(jv_get_str(token, "id")),
		      STR_ARG(jv_get_str(token, "access")), STR_ARG(buf_str(&b)),
		      jv_get_bool(token, "expired", false) ? "expired "
		      : expires.len                        ? "expires "
							   : "does not expire",
		      STR_ARG(expires), name.len ? "  " : "", "", STR_ARG(name));
}

static int want_of(struct cli *cli, struct token_want *want, struct err *err)
{
	struct str access = args_get(&cli->args, "access");
	uint64_t days = args_number(&cli->args, "expires", 0);

	*want = (struct token_want){.name = args_operand(&cli->args, 0)};
	want->workspaces = args_each(cli->ctx.arena, &cli->args, "for", &want->workspace_count);
	want->users = args_each(cli->ctx.arena, &cli->args, "as", &want->user_count);
	want->access = str_is(access, "admin") ? ACCESS_ADMIN : str_is(access, "read") ? ACCESS_READ : ACCESS_WRITE;
	if (days)
		want->expires_ns = clock_real_ns() + (int64_t)days * NS_PER_DAY;
	if (args_has(&cli->args, "workspace") || args_has(&cli->args, "user"))
		return err_set(
			err, ERR_INVALID,
			"token create: say which workspaces the token is for with --for, and which users with --as");
	return 0;
}

static int run_token_create(struct cli *cli, struct err *err)
{
	struct token_want want;
	struct store *base;
	struct jv *token;
	int r = want_of(cli, &want, err);

	if (r == 0)
		r = open_base(cli, true, &base, err);
	if (r)
		return r;
	r = token_create(base, &cli->ctx, &want, &token, err);
	store_destroy(base);
	if (r || cli_json(cli, token))
		return r;
	print_token(cli, token);
	output_printf(&cli->out, "%.*s\n", STR_ARG(jv_get_str(token, "token")));
	fputs("stead: the token is shown only this once\n", stderr);
	return 0;
}

static int run_token_list(struct cli *cli, struct err *err)
{
	struct store *base;
	struct jv *list;
	int r = open_base(cli, false, &base, err);

	if (r)
		return r;
	r = token_list(base, &cli->ctx, &list, err);
	store_destroy(base);
	if (r || cli_json(cli, list))
		return r;
	for (const struct jv_member *m = jv_first(list); m; m = m->next)
		print_token(cli, m->value);
	if (!jv_count(list) && cli->out.to_terminal)
		output_add(&cli->out, STR("no tokens; make one with 'stead token create'\n"));
	return 0;
}

static int run_token_revoke(struct cli *cli, struct err *err)
{
	struct jv *v = jv_object(cli->ctx.arena);
	struct store *base;
	int r = open_base(cli, false, &base, err);

	if (r)
		return r;
	r = token_revoke(base, &cli->ctx, cli->args.operands[0], err);
	store_destroy(base);
	jv_set_str(cli->ctx.arena, v, "revoked", cli->args.operands[0]);
	if (r == 0 && !cli_json(cli, v))
		output_printf(&cli->out, "revoked %.*s\n", STR_ARG(cli->args.operands[0]));
	return r;
}

static const struct action token_actions[] = {
	{"list", NULL, .run = run_token_list},
	{"create", "[NAME]", .run = run_token_create},
	{"revoke", "ID", .run = run_token_revoke},
	{0},
};

static const struct option token_options[] = {
	{"access", 0, "ACCESS", .help = "create: the access: read, write (default) or admin",
	 .words = "read write admin"},
	{"for", 0, "WORKSPACE", .help = "create: a workspace that it may use (default: all); may be repeated",
	 .complete = COMPLETE_WORKSPACE},
	{"as", 0, "USER", .help = "create: a user that it may act as, '*' for any (default: none); may be repeated"},
	{"expires", 0, "DAYS", .help = "create: expire after this many days (default: never)", .min = 1,
	 .max = EXPIRES_MAX},
	{0},
};

const struct command server_commands[] = {
	{"serve", "serve all workspaces in the store over HTTP", TOPIC_TOOLS, .run = run_serve,
	 .options = serve_options,
	 .about = "Serves files, tools, events and MCP over HTTP until SIGTERM or Ctrl-C. Prints a line with its\n"
		  "address when it is ready. Clients send a token (see 'stead token'); with --open, which is for\n"
		  "trying it on your own machine, they need none. docs/server.md describes the routes. --tools and\n"
		  "--read-only choose the tools that MCP clients get, as in 'stead mcp'.\n",
	 .examples = "stead serve --open\n  on http://127.0.0.1:7777, for this machine only\n"
		     "stead serve --listen 0.0.0.0:7777 --host stead.example.org\n"
		     "  for others, with tokens; put a TLS proxy in front of it\n"},
	{"token", "create, list and revoke tokens for 'stead serve'", TOPIC_TOOLS, .actions = token_actions,
	 .options = token_options,
	 .about = "A token says which workspaces its holder may use, as which users, and with what access: read;\n"
		  "write, which includes read; or admin, which can also create workspaces and read the server's\n"
		  "metrics. It is shown once; the store keeps only a hash. Servers refuse a revoked token within a\n"
		  "second.\n",
	 .examples = "stead token create ci --for research --access read --expires 30\n"
		     "  one workspace, 30 days\n"
		     "stead token revoke 0f1e2d3c4b5a6978\n  end it\n"},
	{0},
};
