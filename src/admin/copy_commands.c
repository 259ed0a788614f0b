/* SPDX-License-Identifier: Apache-2.0 */
/* Whole stores: copy, fsck. */
#include "admin/copy.h"
#include "command/cli.h"

int run_copy(struct cli *cli, struct err *err)
{
	struct copy_req req = {
		.from = cli->args.operands[0],
		.to = cli->args.operands[1],
		.workspace = cli_setting(cli, OPT_WORKSPACE),
		.dry_run = args_has(&cli->args, OPT_DRY_RUN),
		.remove = args_has(&cli->args, OPT_DELETE),
	};
	struct arena *arena = cli->ctx.arena;
	const struct jv *list;
	struct jv *report;
	int r;

	cli_show_progress(cli, "copied");
	r = store_copy_workspaces(&cli->ctx, &req, &report, err);
	if (r)
		return r;
	if (cli->json) {
		output_json(&cli->out, arena, report);
		return 0;
	}
	list = jv_get(report, "workspaces");
	for (const struct jv_member *m = jv_first(list); m; m = m->next) {
		const struct jv *w = m->value;

		output_printf(&cli->out, "%s '%.*s': %lld files (%.*s), %lld were there already",
			      req.dry_run ? "would copy" : "copied", STR_ARG(jv_get_str(w, "name")),
			      (long long)jv_get_int(w, "copied", 0),
			      STR_ARG(output_size(arena, (uint64_t)jv_get_int(w, "copied_bytes", 0))),
			      (long long)jv_get_int(w, "same", 0));
		if (jv_get_int(w, "removed", 0))
			output_printf(&cli->out, ", %lld removed", (long long)jv_get_int(w, "removed", 0));
		output_printf(&cli->out, "; history up to revision %lld\n", (long long)jv_get_int(w, "head", 0));
	}
	if (!jv_count(list))
		output_add(&cli->out, STR("there is no workspace to copy\n"));
	return 0;
}

int run_fsck(struct cli *cli, struct err *err)
{
	struct str url = cli->args.operand_count ? cli->args.operands[0] : cli_setting(cli, OPT_STORE);
	bool repair = args_has(&cli->args, OPT_REPAIR);
	struct jv *lines;
	int r;

	cli_show_progress(cli, "checked");
	r = store_fsck(&cli->ctx, url, cli_setting(cli, OPT_WORKSPACE), repair, &lines, err);
	if (r)
		return r;
	if (cli->json)
		output_json(&cli->out, cli->ctx.arena, lines);
	for (const struct jv_member *m = jv_first(lines); m; m = m->next) {
		bool ok = jv_get_bool(m->value, "ok", false);
		struct str workspace = jv_get_str(m->value, "workspace"), fix = jv_get_str(m->value, "fix");

		if (!ok)
			cli->status = 1;
		if (cli->json)
			continue;
		output_printf(&cli->out, "%.*s%-5s%.*s %.*s%s%.*s: %.*s%s%.*s\n",
			      STR_ARG(output_tone(&cli->out, ok ? TONE_GOOD : TONE_BAD)), ok ? "ok" : "wrong",
			      STR_ARG(output_tone(&cli->out, TONE_PLAIN)), STR_ARG(workspace),
			      workspace.len ? ": " : "", STR_ARG(jv_get_str(m->value, "check")),
			      STR_ARG(jv_get_str(m->value, "detail")), fix.len ? "; to mend it: " : "", STR_ARG(fix));
	}
	return 0;
}
