/* SPDX-License-Identifier: Apache-2.0 */
/* Workspaces and the schemas of their configuration: init, list, schema. */
#include "cli/commands.h"
#include "command/cli.h"
#include "model/model.h"
#include "workspace/place.h"

/* The command that most people type next; it finds the workspace where this one made it. */
static void print_next(struct cli *cli, const struct init_opts *opts)
{
	bool is_told = args_has(&cli->args, "path") || args_has(&cli->args, "store");
	struct str option = STR("");

	if (is_told)
		option = arena_printf(cli->ctx.arena, " --store %.*s", STR_ARG(opts->store_url));
	else if (args_has(&cli->args, "config"))
		option = arena_printf(cli->ctx.arena, " -c %.*s", STR_ARG(args_get(&cli->args, "config")));

	if (opts->channel.len)
		output_printf(&cli->out,
			      "next: fill in the channel in agent.yaml and its secret in .env, then: stead up -w "
			      "%.*s%.*s\n",
			      STR_ARG(opts->name), STR_ARG(option));
	else
		output_printf(&cli->out, "next: stead mcp --print-config -w %.*s%.*s\n", STR_ARG(opts->name),
			      STR_ARG(option));
}

static int run_init(struct cli *cli, struct err *err)
{
	struct init_opts opts = {
		.store_url = cli_setting(cli, "store"),
		.name = cli->args.operands[0],
		.model = args_get(&cli->args, "model"),
		.channel = args_get(&cli->args, "channel"),
	};
	struct str provider, model;
	struct jv *report;
	int r = 0;

	if (args_has(&cli->args, "path"))
		opts.store_url = arena_printf(cli->ctx.arena, "disk:%.*s", STR_ARG(args_get(&cli->args, "path")));
	if (model_split(opts.model, &provider, &model)) /* else agent.yaml is refused, which says what a model is */
		r = model_check_provider(provider, err);
	if (r == 0)
		r = workspace_init(&cli->ctx, &opts, &report, err);
	if (r)
		return r;
	if (cli_json(cli, report))
		return 0;
	output_printf(&cli->out, "made workspace '%.*s' in %.*s\n", STR_ARG(opts.name),
		      STR_ARG(jv_get_str(report, "place")));
	for (const struct jv_member *m = jv_first(jv_get(report, "written")); m; m = m->next)
		output_printf(&cli->out, "  %.*s\n", STR_ARG(jv_str_of(m->value)));
	print_next(cli, &opts);
	return 0;
}

static int run_list(struct cli *cli, struct err *err)
{
	struct jv *list;
	int r = workspace_list(&cli->ctx, cli_setting(cli, "store"), &list, err);

	if (r)
		return r;
	if (cli_json(cli, list))
		return 0;
	for (const struct jv_member *m = jv_first(list); m; m = m->next) {
		struct str problem = jv_get_str(m->value, "problem"), parent = jv_get_str(m->value, "fork_of");

		output_printf(&cli->out, "%-20.*s %6lld %-5s %10.*s  %.*s%s%.*s\n",
			      STR_ARG(jv_get_str(m->value, "name")), (long long)jv_get_int(m->value, "files", 0),
			      jv_get_int(m->value, "files", 0) == 1 ? "file" : "files",
			      STR_ARG(output_size(cli->ctx.arena, (uint64_t)jv_get_int(m->value, "bytes", 0))),
			      STR_ARG(jv_get_str(m->value, "modified")), problem.len ? "  " : "", STR_ARG(problem));
		if (parent.len)
			output_printf(&cli->out, "%-20s a fork of %.*s at revision %lld\n", "", STR_ARG(parent),
				      (long long)jv_get_int(m->value, "fork_revision", 0));
	}
	if (jv_count(list) == 0 && cli->out.to_terminal)
		output_add(&cli->out, STR("there is no workspace yet; create one with 'stead init NAME'\n"));
	return 0;
}

static int run_schema(struct cli *cli, struct err *err)
{
	struct str file = cli->args.operands[0];

	if (str_is(file, "agent.yaml"))
		output_add(&cli->out, config_schema());
	else if (str_is(file, "tools.json"))
		output_add(&cli->out, config_tools_schema());
	else if (str_is(file, "stead.yaml"))
		output_add(&cli->out, place_schema());
	else
		return err_set(err, ERR_NOT_FOUND,
			       "schema: there is no schema for '%.*s'; use agent.yaml, tools.json or stead.yaml",
			       STR_ARG(utf8_first(file, 80)));
	return 0;
}

static const struct option init_options[] = {
	{"model", 0, "PROVIDER:ID", .help = "the model that the agent uses"},
	{"path", 0, "DIR", .help = "the directory of workspaces, like --store disk:DIR"},
	{"channel", 0, "TYPE", .help = "the channel through which people talk to the agent"},
	{0},
};

const struct command workspace_commands[] = {
	{"init", "create a workspace", TOPIC_WORKSPACES, "NAME", .run = run_init, .options = init_options,
	 .about = "Writes the first files of an agent's home: who the agent is (AGENTS.md, SOUL.md), who it works\n"
		  "for (USER.md), what it does on its own (HEARTBEAT.md), its settings (agent.yaml) and its secrets\n"
		  "(.env). A name has 2 to 64 characters from a-z, 0-9, '_' and '-', and begins with a letter.\n",
	 .examples = "stead init research\n  a workspace in your data directory\n"
		     "stead init --store disk:./agents helper\n  one in your project\n"},
	{"list", "list the workspaces in a store", TOPIC_WORKSPACES, .run = run_list,
	 .about = "Prints one line for each: name, number of files, size, time of the last change.\n",
	 .examples = "stead list\n  the workspaces in your data directory\n"
		     "stead list --json | jq -r '.[].name'\n  their names, for a script\n"},
	{"schema", "print the JSON Schema of a configuration file", TOPIC_WORKSPACES,
	 "agent.yaml|tools.json|stead.yaml", .run = run_schema, .words = "agent.yaml tools.json stead.yaml",
	 .about = "Editors use it to check and complete the file while you type.\n",
	 .examples = "stead schema agent.yaml > agent.schema.json\n  keep it in your project\n"},
	{0},
};
