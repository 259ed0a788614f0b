/* SPDX-License-Identifier: Apache-2.0 */
/* `stead workflow`: workflows, and their runs. */
#include <stdio.h>
#include <unistd.h>

#include "agent/agent_commands.h"
#include "agent/workflow.h"
#include "base/limits.h"
#include "command/input.h"

static int run_list(struct cli *cli, struct err *err)
{
	struct jv *v;
	int r = workflow_list(cli->ws, &cli->ctx, &v, err);

	if (r || cli_json(cli, v))
		return r;
	for (const struct jv_member *m = jv_first(jv_get(v, "workflows")); m; m = m->next)
		output_printf(&cli->out, "%.*s\t%lld step%s\t%.*s\n", STR_ARG(jv_get_str(m->value, "name")),
			      (long long)jv_get_int(m->value, "steps", 0),
			      jv_get_int(m->value, "steps", 0) == 1 ? "" : "s",
			      STR_ARG(jv_get_str(m->value, "description")));
	for (const struct jv_member *m = jv_first(jv_get(v, "problems")); m; m = m->next)
		fprintf(stderr, "stead: %.*s\n",
			STR_ARG(output_shown(cli->ctx.arena, jv_get_str(m->value, "problem"))));
	if (!jv_count(jv_get(v, "workflows")) && !jv_count(jv_get(v, "problems")))
		output_add(&cli->out, STR("there are no workflows; write one to workflows/NAME.yaml\n"));
	return 0;
}

static int run_show(struct cli *cli, struct err *err)
{
	struct jv *v;
	int r = workflow_get(cli->ws, &cli->ctx, cli->args.operands[0], &v, err);

	if (r || cli_json(cli, v))
		return r;
	if (jv_get_str(v, "description").len)
		output_printf(&cli->out, "%.*s\n", STR_ARG(jv_get_str(v, "description")));
	if (jv_get_str(v, "input").len)
		output_printf(&cli->out, "input: %.*s\n", STR_ARG(jv_get_str(v, "input")));
	for (const struct jv_member *m = jv_first(jv_get(v, "steps")); m; m = m->next) {
		const char *mark = " after ";

		output_printf(&cli->out, "%.*s\t%.*s", STR_ARG(jv_get_str(m->value, "id")),
			      STR_ARG(jv_get_str(m->value, "agent")));
		for (const struct jv_member *n = jv_first(jv_get(m->value, "members")); n; n = n->next)
			output_printf(&cli->out, " + %.*s", STR_ARG(jv_str_of(n->value)));
		for (const struct jv_member *n = jv_first(jv_get(m->value, "needs")); n; n = n->next, mark = ", ")
			output_printf(&cli->out, "%s%.*s", mark, STR_ARG(jv_str_of(n->value)));
		if (jv_get(m->value, "when"))
			output_add(&cli->out, STR(" (on a condition)"));
		if (jv_get_str(m->value, "output").len)
			output_printf(&cli->out, " -> %.*s", STR_ARG(jv_get_str(m->value, "output")));
		output_add(&cli->out, STR("\n"));
	}
	return 0;
}

static void show_step(void *arg, struct str step, struct str status, struct str text)
{
	struct cli *cli = arg;

	(void)text;
	if (!cli->json)
		fprintf(stderr, "[%.*s: %.*s]\n", STR_ARG(step), STR_ARG(status));
}

static void print_waiting(const struct jv *record)
{
	for (const struct jv_member *m = jv_first(jv_get(record, "steps")); m; m = m->next)
		if (str_is(jv_get_str(m->value, "status"), "waiting"))
			fprintf(stderr,
				"stead: the step %.*s is waiting for approval; decide with 'stead approvals --agent "
				"%.*s --session %.*s', then 'stead workflow resume %.*s'\n",
				STR_ARG(m->key), STR_ARG(jv_get_str(m->value, "agent")),
				STR_ARG(jv_get_str(m->value, "session")), STR_ARG(jv_get_str(record, "id")));
}

static int go_on(struct cli *cli, struct str id, struct err *err)
{
	struct workflow_opts opts = {.model = cli_setting(cli, "model"),
				     .base_url = args_get(&cli->args, "base-url"),
				     .dialect = cli_setting(cli, "dialect"),
				     .event = show_step,
				     .arg = cli};
	struct jv *record;
	struct str status;
	int r = workflow_run(cli->ws, &cli->ctx, id, &opts, &record, err);

	if (r && r != -ERR_NOT_FOUND)
		cli->hint =
			arena_printf(cli->ctx.arena,
				     "nothing is lost: 'stead workflow resume %.*s' continues with the remaining steps",
				     STR_ARG(id))
				.ptr;
	if (r)
		return r;
	status = jv_get_str(record, "status");
	jv_remove(record, "definition");
	if (!cli_json(cli, record) && str_is(status, "done"))
		output_words(&cli->out, arena_printf(cli->ctx.arena, "%.*s\n", STR_ARG(jv_get_str(record, "answer"))));
	if (str_is(status, "waiting")) {
		print_waiting(record);
		cli->status = exit_code_of(ERR_DENIED);
	}
	for (const struct jv_member *m = jv_first(jv_get(record, "steps")); m && str_is(status, "failed"); m = m->next)
		if (jv_get_str(m->value, "error").len) {
			fprintf(stderr, "stead: the step %.*s failed: %.*s\n", STR_ARG(m->key),
				STR_ARG(output_shown(cli->ctx.arena, jv_get_str(m->value, "error"))));
			cli->status = 1;
		}
	return 0;
}

static int run_run(struct cli *cli, struct err *err)
{
	struct str input = args_operand(&cli->args, 1);
	struct jv *record;
	int r = 0;

	if (str_is(input, "-"))
		r = input_read(cli->ctx.arena, STDIN_FILENO, TOOL_TEXT_MAX, &input, err);
	if (r == 0 && !utf8_valid(input))
		r = err_set(err, ERR_INVALID, "workflow: the input is not UTF-8; save it as UTF-8");
	if (r == 0)
		r = workflow_begin(cli->ws, &cli->ctx, cli->args.operands[0], str_trim(input), STR_NONE, &record, err);
	if (r)
		return r;
	if (!cli->json)
		fprintf(stderr, "[run %.*s]\n", STR_ARG(jv_get_str(record, "id")));
	return go_on(cli, jv_get_str(record, "id"), err);
}

static int run_resume(struct cli *cli, struct err *err)
{
	return go_on(cli, cli->args.operands[0], err);
}

static int run_runs(struct cli *cli, struct err *err)
{
	struct jv *list;
	int r = workflow_runs(cli->ws, &cli->ctx, &list, err);

	if (r || cli_json(cli, list))
		return r;
	for (const struct jv_member *m = jv_first(list); m; m = m->next) {
		size_t ended = 0;

		for (const struct jv_member *s = jv_first(jv_get(m->value, "steps")); s; s = s->next)
			ended += jv_get(s->value, "endedAt") || str_is(jv_get_str(s->value, "status"), "skipped");
		output_printf(&cli->out, "%.*s\t%.*s\t%.*s\t%zu of %zu step%s\t%.*s\n",
			      STR_ARG(jv_get_str(m->value, "id")), STR_ARG(jv_get_str(m->value, "workflow")),
			      STR_ARG(jv_get_str(m->value, "status")), ended, jv_count(jv_get(m->value, "steps")),
			      jv_count(jv_get(m->value, "steps")) == 1 ? "" : "s",
			      STR_ARG(jv_get_str(m->value, "begunAt")));
	}
	if (!jv_count(list))
		output_add(&cli->out, STR("no runs\n"));
	return 0;
}

const struct option workflow_options[] = {
	{"model", 'm', "MODEL", .env = "STEAD_MODEL", .help = "PROVIDER:MODEL (default: model in agent.yaml)"},
	{"base-url", 0, "URL", .help = "another server that speaks the provider's protocol"},
	{0},
};

const struct action workflow_actions[] = {
	{"list", NULL, .opens = CLI_READS, .run = run_list},
	{"show", "NAME", .opens = CLI_READS, .run = run_show},
	{"run", "NAME [INPUT]", .opens = CLI_WRITES, .run = run_run},
	{"runs", NULL, .opens = CLI_READS, .run = run_runs},
	{"resume", "RUN", .opens = CLI_WRITES, .run = run_resume},
	{0},
};
