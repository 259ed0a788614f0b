/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept, and taking it elsewhere: gc, export, import. */
#include "cli/cli.h"
#include "home/gc.h"

int run_gc(struct cli *cli, struct err *err)
{
	bool dry_run = args_has(&cli->args, OPT_DRY_RUN);
	struct arena *arena = cli->ctx.arena;
	const struct jv *held;
	struct jv *report;
	int r = cli_open(cli, CLI_READS, err);

	if (r == 0)
		r = gc_run(cli->ws, &cli->ctx, dry_run, &report, err);
	if (r)
		return r;
	if (cli->json) {
		output_json(&cli->out, arena, report);
		return 0;
	}
	output_printf(&cli->out, "%s %lld revisions and %.*s\n", dry_run ? "would free" : "freed",
		      (long long)jv_get_int(report, "dropped", 0),
		      STR_ARG(output_size(arena, (uint64_t)jv_get_int(report, "freed", 0))));
	output_printf(&cli->out, "kept: revisions %lld to %lld, %.*s\n", (long long)jv_get_int(report, "first", 0),
		      (long long)jv_get_int(report, "head", 0),
		      STR_ARG(output_size(arena, (uint64_t)jv_get_int(report, "bytes", 0))));
	if (jv_get_int(report, "waiting", 0))
		output_printf(&cli->out, "another %.*s can go when it is a minute old\n",
			      STR_ARG(output_size(arena, (uint64_t)jv_get_int(report, "waiting", 0))));
	held = jv_get(report, "held");
	if (held && jv_get_str(held, "checkpoint").len)
		output_printf(&cli->out, "more stays because of checkpoint '%.*s' at revision %lld\n",
			      STR_ARG(jv_get_str(held, "checkpoint")), (long long)jv_get_int(held, "revision", 0));
	else if (held)
		output_printf(&cli->out, "more stays because of a fork at revision %lld\n",
			      (long long)jv_get_int(held, "revision", 0));
	return 0;
}
