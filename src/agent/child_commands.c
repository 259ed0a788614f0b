/* SPDX-License-Identifier: Apache-2.0 */
/* `stead agents`: the tasks of subagents, read from their records, whichever process runs them. */
#include "agent/agent_commands.h"
#include "agent/records.h"
#include "base/limits.h"

static struct records records_of(struct cli *cli)
{
	return (struct records){cli->ws, {workspace_actor(cli->ws).agent, agent_session_of(cli)}};
}

static int run_list(struct cli *cli, struct err *err)
{
	struct records records = records_of(cli);
	struct jv *tasks, *list = jv_array(cli->ctx.arena);
	int r = task_records_read(&records, cli->ctx.arena, &tasks, err);

	if (r)
		return r;
	for (const struct jv_member *m = jv_first(tasks); m; m = m->next)
		jv_push(cli->ctx.arena, list, m->value);
	if (cli_json(cli, list))
		return 0;
	for (const struct jv_member *m = jv_first(list); m; m = m->next) {
		struct str task = jv_get_str(m->value, "task");

		output_printf(&cli->out, "%.*s  %-9.*s  %.*s  %.*s\n", STR_ARG(jv_get_str(m->value, "taskId")),
			      STR_ARG(jv_get_str(m->value, "status")), STR_ARG(jv_get_str(m->value, "subAgentId")),
			      STR_ARG(utf8_first(str_first(task, str_find_char(task, '\n')), 60)));
	}
	if (!jv_count(list))
		output_add(&cli->out, STR("this session has given no tasks to subagents\n"));
	return 0;
}

static int find(struct cli *cli, const struct records *records, const struct jv **ret, struct err *err)
{
	struct str id = cli->args.operands[0];
	struct jv *tasks;
	int r = task_records_read(records, cli->ctx.arena, &tasks, err);

	if (r)
		return r;
	*ret = jv_get_key(tasks, id);
	if (!*ret)
		*ret = record_find(tasks, id, records->top.session);
	return *ret ? 0
		    : err_set(err, ERR_NOT_FOUND, "session \"%.*s\" has no task \"%.*s\"; 'stead agents' lists them",
			      STR_ARG(utf8_first(records->top.session, 60)), STR_ARG(utf8_first(id, 80)));
}

static int run_output(struct cli *cli, struct err *err)
{
	struct records records = records_of(cli);
	const struct jv *record;
	struct str why;
	int r = find(cli, &records, &record, err);

	if (r || cli_json(cli, record))
		return r;
	why = jv_get_str(record, "errorMessage");
	if (!record_has_ended(record))
		return err_set(err, ERR_UNAVAILABLE, "task %.*s has no result yet; it is %.*s",
			       STR_ARG(jv_get_str(record, "taskId")), STR_ARG(jv_get_str(record, "status")));
	output_words(&cli->out,
		     arena_printf(cli->ctx.arena, "%.*s\n", STR_ARG(why.len ? why : jv_get_str(record, "result"))));
	return 0;
}

static int run_cancel(struct cli *cli, struct err *err)
{
	struct records records = records_of(cli);
	struct arena *arena = cli->ctx.arena;
	struct jv *members = jv_object(arena);
	const struct jv *record;
	int r = find(cli, &records, &record, err);

	jv_set_bool(arena, members, "cancelRequested", true);
	jv_set_str(arena, members, "status", STR("CANCELLED"));
	if (r == 0 && record_has_ended(record))
		return err_set(err, ERR_CONFLICT, "task %.*s has ended already: %.*s",
			       STR_ARG(jv_get_str(record, "taskId")), STR_ARG(jv_get_str(record, "status")));
	if (r == 0)
		r = task_records_set(&records, arena, jv_get_str(record, "taskId"), members, err);
	if (r == 0)
		output_printf(&cli->out, "cancelled %.*s\n", STR_ARG(jv_get_str(record, "taskId")));
	return r;
}

const struct action child_actions[] = {
	{"list", NULL, .opens = CLI_READS, .run = run_list},
	{"output", "ID", .opens = CLI_READS, .run = run_output},
	{"cancel", "ID", .opens = CLI_WRITES, .run = run_cancel},
	{0},
};
