/* SPDX-License-Identifier: Apache-2.0 */
/* The task list: tasks. */
#include "command/cli.h"
#include "home/tasks/tasks.h"
#include "home/tasks/tasks_tools.h"

static int clean(struct cli *cli, struct err *err)
{
	struct arena *arena = cli->ctx.arena;
	uint64_t failed, removed;
	struct jv *report = jv_object(arena);
	int r = cli_open(cli, CLI_WRITES, err);

	if (r == 0)
		r = tasks_clean(cli->ws, &cli->ctx, &failed, &removed, err);
	if (r)
		return r;
	jv_set_int(arena, report, "failed", (int64_t)failed);
	jv_set_int(arena, report, "removed", (int64_t)removed);
	if (cli->json)
		output_json(&cli->out, arena, report);
	else
		output_printf(&cli->out, "marked %llu as failed, removed %llu\n", (unsigned long long)failed,
			      (unsigned long long)removed);
	return 0;
}

int run_tasks(struct cli *cli, struct err *err)
{
	struct str what = cli->args.operand_count ? cli->args.operands[0] : STR("list");
	struct jv *tasks;
	struct buf text;
	int r;

	if (str_is(what, "clean"))
		return clean(cli, err);
	if (!str_is(what, "list"))
		return err_set(err, ERR_INVALID, "tasks: \"%.*s\" is neither list nor clean", STR_ARG(what));
	r = cli_open(cli, CLI_READS, err);
	if (r == 0)
		r = tasks_list(cli->ws, &cli->ctx, args_get(&cli->args, OPT_STATUS), args_get(&cli->args, OPT_TYPE),
			       &tasks, err);
	if (r)
		return r;
	if (cli->json) {
		output_json(&cli->out, cli->ctx.arena, tasks);
		return 0;
	}
	buf_init(&text, cli->ctx.arena, 16 * 1024 * 1024);
	for (const struct jv_member *m = jv_first(tasks); m; m = m->next) {
		task_line(&text, m->value);
		buf_char(&text, '\n');
	}
	if (!jv_count(tasks))
		buf_lit(&text, "no tasks\n");
	output_add(&cli->out, buf_str(&text));
	return 0;
}
