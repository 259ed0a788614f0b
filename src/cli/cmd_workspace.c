/* SPDX-License-Identifier: Apache-2.0 */
/* Workspaces as a whole: init, list, doctor, schema. */
#include "admin/doctor.h"
#include "base/clock.h"
#include "command/cli.h"
#include "workspace/place.h"

static void print_strings(struct output *out, const struct jv *list, const char *prefix)
{
	for (const struct jv_member *m = jv_first(list); m; m = m->next)
		output_printf(out, "%s%.*s\n", prefix, STR_ARG(jv_str_of(m->value)));
}

int run_init(struct cli *cli, struct err *err)
{
	struct init_opts opts = {
		.store_url = cli_setting(cli, OPT_STORE),
		.name = cli->args.operands[0],
		.model = args_get(&cli->args, OPT_MODEL),
		.channel = args_get(&cli->args, OPT_CHANNEL),
	};
	struct jv *report;
	int r = workspace_init(&cli->ctx, &opts, &report, err);

	if (r)
		return r;
	if (cli->json) {
		output_json(&cli->out, cli->ctx.arena, report);
		return 0;
	}
	output_printf(&cli->out, "made workspace '%.*s' in %.*s\n", STR_ARG(opts.name),
		      STR_ARG(jv_get_str(report, "place")));
	print_strings(&cli->out, jv_get(report, "written"), "  ");
	output_printf(&cli->out, "next: stead mcp --print-config -w %.*s\n", STR_ARG(opts.name));
	return 0;
}

int run_list(struct cli *cli, struct err *err)
{
	struct jv *list;
	int r = workspace_list(&cli->ctx, cli_setting(cli, OPT_STORE), &list, err);

	if (r)
		return r;
	if (cli->json) {
		output_json(&cli->out, cli->ctx.arena, list);
		return 0;
	}
	for (const struct jv_member *m = jv_first(list); m; m = m->next) {
		struct str problem = jv_get_str(m->value, "problem"), parent = jv_get_str(m->value, "fork_of");

		output_printf(&cli->out, "%-20.*s %6lld files %10.*s  %.*s%s%.*s\n",
			      STR_ARG(jv_get_str(m->value, "name")), (long long)jv_get_int(m->value, "files", 0),
			      STR_ARG(output_size(cli->ctx.arena, (uint64_t)jv_get_int(m->value, "bytes", 0))),
			      STR_ARG(jv_get_str(m->value, "modified")), problem.len ? "  " : "", STR_ARG(problem));
		if (parent.len)
			output_printf(&cli->out, "%-20s a fork of %.*s at revision %lld\n", "", STR_ARG(parent),
				      (long long)jv_get_int(m->value, "fork_revision", 0));
	}
	if (jv_count(list) == 0 && cli->out.to_terminal)
		output_add(&cli->out, STR("no workspace yet; make one with 'stead init NAME'\n"));
	return 0;
}

int run_doctor(struct cli *cli, struct err *err)
{
	struct str name = cli->args.operand_count ? cli->args.operands[0] : cli_setting(cli, OPT_WORKSPACE);
	struct jv *checks;
	int r = workspace_doctor(&cli->ctx, cli_setting(cli, OPT_STORE), name, &checks, err);

	if (r)
		return r;
	if (cli->json)
		output_json(&cli->out, cli->ctx.arena, checks);
	for (const struct jv_member *m = jv_first(checks); m; m = m->next) {
		bool ok = jv_get_bool(m->value, "ok", false);
		struct str fix = jv_get_str(m->value, "fix"), detail = jv_get_str(m->value, "detail");
		struct str workspace = jv_get_str(m->value, "workspace");

		if (!ok)
			cli->status = 1;
		if (cli->json)
			continue;
		output_printf(&cli->out, "%.*s%-5s%.*s %.*s%s%.*s: %.*s\n",
			      STR_ARG(output_tone(&cli->out, ok ? TONE_GOOD : TONE_BAD)), ok ? "ok" : "wrong",
			      STR_ARG(output_tone(&cli->out, TONE_PLAIN)), STR_ARG(workspace),
			      workspace.len ? ": " : "", STR_ARG(jv_get_str(m->value, "check")), STR_ARG(detail));
		if (fix.len)
			output_printf(&cli->out, "      to mend it: %.*s\n", STR_ARG(fix));
	}
	return 0;
}

int run_schema(struct cli *cli, struct err *err)
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
			       "schema: there is none for '%.*s'; there is one each for agent.yaml, tools.json "
			       "and stead.yaml",
			       STR_ARG(utf8_first(file, 80)));
	return 0;
}
