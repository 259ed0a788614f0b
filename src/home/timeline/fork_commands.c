/* SPDX-License-Identifier: Apache-2.0 */
/* Workspaces that stand on others: fork, merge. */
#include "command/cli.h"
#include "home/timeline/history.h"
#include "workspace/fork.h"

int run_fork(struct cli *cli, struct err *err)
{
	uint64_t number = FORK_AT_HEAD;
	struct jv *made;
	int r = cli_open(cli, CLI_WRITES, err);

	if (r == 0 && args_has(&cli->args, OPT_AT))
		r = past_revision(cli->ws, &cli->ctx, args_get(&cli->args, OPT_AT), &number, err);
	if (r == 0)
		r = fork_create(cli->ws, &cli->ctx, cli->args.operands[0], number, &made, err);
	if (r)
		return r;
	if (cli->json)
		output_json(&cli->out, cli->ctx.arena, made);
	else
		output_printf(&cli->out, "made workspace '%.*s', a fork of '%.*s' at revision %lld\n",
			      STR_ARG(jv_get_str(made, "workspace")), STR_ARG(jv_get_str(made, "parent")),
			      (long long)jv_get_int(made, "revision", 0));
	return 0;
}

static void print_conflict(struct cli *cli, const struct jv *conflict)
{
	struct str text = jv_get_str(conflict, "text");

	output_printf(&cli->out, "%.*sconflict%.*s %.*s: %.*s\n", STR_ARG(output_tone(&cli->out, TONE_BAD)),
		      STR_ARG(output_tone(&cli->out, TONE_PLAIN)), STR_ARG(jv_get_str(conflict, "path")),
		      STR_ARG(jv_get_str(conflict, "why")));
	if (!text.ptr)
		return;
	output_add(&cli->out, text);
	if (text.len && text.ptr[text.len - 1] != '\n')
		output_add(&cli->out, STR("\n"));
}

static void print_merge(struct cli *cli, const struct jv *report)
{
	const struct jv *merged = jv_get(report, "merged"), *conflicts = jv_get(report, "conflicts");
	bool applied = jv_get_bool(report, "applied", false);
	long long left = (long long)jv_get_int(report, "left", 0);

	for (const struct jv_member *m = jv_first(merged); m; m = m->next)
		output_printf(&cli->out, "%-8.*s %.*s\n", STR_ARG(jv_get_str(m->value, "how")),
			      STR_ARG(jv_get_str(m->value, "path")));
	for (const struct jv_member *m = jv_first(conflicts); m; m = m->next)
		print_conflict(cli, m->value);
	if (left)
		output_printf(&cli->out, "left: %lld changed paths outside of the root; see --root\n", left);
	if (!jv_count(merged) && !jv_count(conflicts))
		output_add(&cli->out, STR("nothing to merge\n"));
	else if (applied)
		output_printf(&cli->out, "merged %zu files into '%.*s'; take it back with: stead undo --call %.*s\n",
			      jv_count(merged), STR_ARG(jv_get_str(report, "workspace")),
			      STR_ARG(jv_get_str(report, "call")));
	else
		output_add(&cli->out, STR("nothing was changed\n"));
}

int run_merge(struct cli *cli, struct err *err)
{
	struct merge_req req = {.name = cli->args.operands[0],
				.dry_run = args_has(&cli->args, OPT_DRY_RUN),
				.partial = args_has(&cli->args, OPT_PARTIAL)};
	struct str prefer = args_get(&cli->args, OPT_PREFER);
	struct jv *report = NULL;
	int r = cli_open(cli, CLI_WRITES, err);

	if (prefer.len)
		req.prefer = str_is(prefer, "ours") ? MERGE_OURS : MERGE_THEIRS;
	if (r == 0)
		r = fork_merge(cli->ws, &cli->ctx, &req, &report, err);
	if (report && cli->json)
		output_json(&cli->out, cli->ctx.arena, report);
	else if (report)
		print_merge(cli, report);
	if (r == -ERR_CONFLICT && report)
		cli->hint = "--partial merges the other files; --prefer ours or theirs settles the conflicts";
	if (r == 0 && jv_count(jv_get(report, "conflicts")))
		cli->status = exit_code_of(ERR_CONFLICT);
	return r;
}
