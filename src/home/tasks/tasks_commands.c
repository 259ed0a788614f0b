/* SPDX-License-Identifier: Apache-2.0 */
/* The task list. */
#include "command/cli.h"
#include "home/tasks/tasks.h"

static int run_tasks_list(struct cli *cli, struct err *err)
{
	struct jv *tasks;
	int r = tasks_list(cli->ws, &cli->ctx, args_get(&cli->args, "status"), args_get(&cli->args, "type"), &tasks,
			   err);

	if (r == 0)
		cli_print_list(cli, "list_tasks", "tasks", tasks);
	return r;
}

static int run_tasks_clean(struct cli *cli, struct err *err)
{
	struct arena *arena = cli->ctx.arena;
	uint64_t failed, removed;
	struct jv *report = jv_object(arena);
	int r = tasks_clean(cli->ws, &cli->ctx, &failed, &removed, err);

	if (r)
		return r;
	jv_set_int(arena, report, "failed", (int64_t)failed);
	jv_set_int(arena, report, "removed", (int64_t)removed);
	if (!cli_json(cli, report))
		output_printf(&cli->out, "marked %llu as failed, removed %llu\n", (unsigned long long)failed,
			      (unsigned long long)removed);
	return 0;
}

static const struct action actions[] = {
	{"list", NULL, .opens = CLI_READS, .run = run_tasks_list},
	{"clean", NULL, .opens = CLI_WRITES, .run = run_tasks_clean},
	{0},
};

static const struct option options[] = {
	{"status", 0, "STATUS", .help = "only tasks with this status",
	 .words = "pending in_progress awaiting_check completed failed cancelled"},
	{"type", 0, "TYPE", .help = "only tasks of this type"},
	{0},
};

const struct command tasks_commands[] = {
	{"tasks", "show the task list, or clean it up", TOPIC_HOME, .actions = actions, .options = options,
	 .about = "Lists the tasks in TASKS.yaml, the most urgent first. You may edit the file by hand; comments\n"
		  "are kept. 'clean' marks tasks without progress for 48 hours as failed, and removes tasks that\n"
		  "ended 3 days ago; so does every change to a task. Set the times in agent.yaml, under\n"
		  "builtins.task_tracker.config (stale_hours, max_age_days; 0: never).\n",
	 .examples = "stead tasks\n  all tasks\n"
		     "stead call create_task description='compare the drafts' priority=high\n  a new task\n"
		     "stead call update_task task_id=1a2b status=completed\n  the beginning of the id is enough\n"},
	{0},
};
