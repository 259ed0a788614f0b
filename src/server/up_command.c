/* SPDX-License-Identifier: Apache-2.0 */
/* `stead up`: runs the channels, schedules and heartbeats of workspaces in the foreground, and says what happens. It is
 * here and not in src/runner because it may listen for the requests of services. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "command/cli.h"
#include "model/model.h"
#include "runner/runner.h"
#include "server/parse.h"
#include "server/serve.h"
#include "server/server_commands.h"

#define GRACE_MS 10000

struct show {
	struct cli *cli;
	pthread_mutex_t lock; /* events come from many threads */
};

static void show_event(void *arg, const struct runner_event *event)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct show *show = arg;
	struct str line = runner_event_line(arena, event, show->cli->json);

	pthread_mutex_lock(&show->lock);
	output_printf(&show->cli->out, "%.*s\n", STR_ARG(line));
	output_flush(&show->cli->out);
	pthread_mutex_unlock(&show->lock);
}

/* "a,b,c" */
static struct str *split_names(struct arena *arena, struct str list, size_t *ret_count)
{
	struct str *names = arena_alloc(arena, (list.len + 1) * sizeof *names), name;
	size_t n = 0;

	while (list.len && str_cut(&list, ',', &name))
		if (str_trim(name).len)
			names[n++] = str_trim(name);
	*ret_count = n;
	return names;
}

/* With --listen: services post messages to channels. */
static int start_listener(struct cli *cli, struct serve **ret, struct err *err)
{
	struct serve_opts opts = {.store_url = cli_setting(cli, "store"), .hooks_only = true};
	struct jv *v = jv_object(cli->ctx.arena);
	int r;

	if (!args_has(&cli->args, "listen"))
		return 0;
	opts.hosts = args_each(cli->ctx.arena, &cli->args, "host", &opts.host_count);
	r = listen_parse(args_get(&cli->args, "listen"), &opts.host, &opts.port, err);
	if (r)
		return err_prefix(err, "up");
	r = serve_start(&opts, ret, err);
	if (r)
		return r;
	jv_set_str(cli->ctx.arena, v, "url", serve_url(*ret));
	if (cli->json)
		output_json_line(&cli->out, cli->ctx.arena, v);
	else
		output_printf(&cli->out, "listening on %.*s\n", STR_ARG(serve_url(*ret)));
	return 0;
}

static void stop_listener(struct serve *serve)
{
	if (serve && !serve_stop(serve, GRACE_MS))
		_exit(0);
}

/* A model that no workspace can use would fail with each message. */
static int check_model(struct str text, struct err *err)
{
	struct str provider, name;

	if (!text.len)
		return 0;
	if (!model_split(text, &provider, &name))
		return err_set(err, ERR_INVALID,
			       "up: --model \"%.*s\" is not PROVIDER:MODEL, such as anthropic:claude-sonnet-4-5",
			       STR_ARG(utf8_first(text, 60)));
	return model_check_provider(provider, err);
}

static int run_up(struct cli *cli, struct err *err)
{
	struct show show = {.cli = cli, .lock = PTHREAD_MUTEX_INITIALIZER};
	struct runner_opts opts = {.store_url = cli_setting(cli, "store"),
				   .model = cli_setting(cli, "model"),
				   .base_url = args_get(&cli->args, "base-url"),
				   .tells_calls = args_has(&cli->args, "verbose"),
				   .event = show_event,
				   .arg = &show};
	struct str names = cli_setting(cli, "workspace");
	struct serve *serve = NULL;
	struct runner *runner;
	sigset_t signals;
	bool all = args_has(&cli->args, "all");
	int signal, r = check_model(opts.model, err);

	if (r)
		return r;
	if (all && names.len)
		return err_set(err, ERR_INVALID, "up: --all runs every workspace; leave out -w");
	if (!all && !str_is(names, "all") && !str_is(names, "*"))
		opts.names = split_names(cli->ctx.arena, names.len ? names : STR("default"), &opts.count);
	if (opts.names && !opts.count)
		return err_set(err, ERR_INVALID,
			       "up: -w \"%.*s\" names no workspace; give names separated by commas, or --all",
			       STR_ARG(utf8_first(names, 60)));
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	r = start_listener(cli, &serve, err);
	if (r == 0)
		r = runner_start(&opts, &runner, err);
	if (r) {
		stop_listener(serve);
		return r;
	}
	pthread_mutex_lock(&show.lock); /* the first events are being printed already */
	if (!cli->json)
		output_printf(&cli->out, "running %s; stop with Ctrl-C\n",
			      opts.count ? arena_cstr(cli->ctx.arena, names.len ? names : STR("default"))
					 : "all workspaces");
	output_flush(&cli->out);
	pthread_mutex_unlock(&show.lock);
	while (sigwait(&signals, &signal) != 0)
		continue;
	runner_stop(runner);
	stop_listener(serve);
	return 0;
}

static const struct option up_options[] = {
	{"all", .help = "every workspace in the store, including those created later"},
	{"model", 'm', "MODEL", .env = "STEAD_MODEL",
	 .help = "PROVIDER:MODEL for all of them (default: model in each agent.yaml)"},
	{"listen", 0, "HOST:PORT",
	 .help = "accept requests from services to channels (docs/channels.md); port 0 picks a free one"},
	{"host", 0, "NAME",
	 .help = "with --listen: another name that services may use for this server; may be repeated"},
	{"verbose", 'v', .help = "also print tool calls"},
	{"base-url", 0, "URL", .help = "another server that speaks the provider's protocol"},
	{0},
};

const struct command up_commands[] = {
	{"up", "run channels, schedules and heartbeats until you stop it", TOPIC_AGENT, .run = run_up,
	 .options = up_options,
	 .about = "Runs the channels, heartbeats and schedules (crons/, and those that agents made) of workspaces\n"
		  "in the foreground. -w takes names separated by commas, or all. Each due time runs once, however\n"
		  "many of these processes share a store. A run that was cut off continues when one of them starts\n"
		  "again. Changes to agent.yaml, .env, crons/ or stead.yaml take effect within a minute.\n",
	 .examples = "stead up -w research\n  one workspace\n"
		     "stead up --all --store disk:/srv/agents\n  all workspaces in a store\n"
		     "stead up --all --listen 127.0.0.1:7777\n  with channels that other services post to\n"
		     "stead up -c stead.yaml -w research,helper\n"
		     "  two workspaces of a deployment, with its settings for all\n"},
	{0},
};
