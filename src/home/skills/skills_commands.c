/* SPDX-License-Identifier: Apache-2.0 */
/* What people prepared: skills (and what they decide about those that agents wrote), knowledge, subagents. */
#include "command/cli.h"
#include "home/skills/skills.h"

static int print(struct cli *cli, const struct jv *value, const char *verb)
{
	if (cli->json) {
		output_json(&cli->out, cli->ctx.arena, value);
		return 0;
	}
	output_printf(&cli->out, "%s %.*s: %.*s\n", verb, STR_ARG(jv_get_str(value, "name")),
		      STR_ARG(jv_get_str(value, "path")));
	if (jv_get(value, "verdict"))
		output_printf(&cli->out, "the scan says %.*s\n", STR_ARG(jv_get_str(value, "verdict")));
	for (const struct jv_member *m = jv_first(jv_get(value, "findings")); m; m = m->next)
		output_printf(&cli->out, "  %.*s:%lld: %.*s (%.*s, %.*s)\n", STR_ARG(jv_get_str(m->value, "path")),
			      (long long)jv_get_int(m->value, "line", 0), STR_ARG(jv_get_str(m->value, "what")),
			      STR_ARG(jv_get_str(m->value, "class")), STR_ARG(jv_get_str(m->value, "severity")));
	return 0;
}

static int show(struct cli *cli, struct err *err)
{
	struct jv *args = jv_object(cli->ctx.arena);
	int r = cli_open(cli, CLI_READS, err);

	jv_set_str(cli->ctx.arena, args, "name", cli->args.operands[1]);
	if (cli->args.operand_count > 2)
		jv_set_str(cli->ctx.arena, args, "path", cli->args.operands[2]);
	return r ? r : cli_call(cli, "load_skill", args, err);
}

/* A draft if there is one, else the skill. */
static int scan(struct cli *cli, struct err *err)
{
	struct str name = cli->args.operands[1];
	struct jv *value;
	int r = cli_open(cli, CLI_READS, err);

	if (r)
		return r;
	r = skill_scan(cli->ws, &cli->ctx, name, true, &value, err);
	if (r == -ERR_NOT_FOUND || r == -ERR_INVALID)
		r = skill_scan(cli->ws, &cli->ctx, name, false, &value, err);
	if (r)
		return r;
	cli->status = str_is(jv_get_str(value, "verdict"), "SAFE") ? 0 : 1;
	return print(cli, value, "scanned");
}

static int promote(struct cli *cli, struct err *err)
{
	struct jv *value;
	int r = cli_open(cli, CLI_WRITES, err);

	if (r == 0)
		r = skill_promote(cli->ws, &cli->ctx, cli->args.operands[1], args_has(&cli->args, OPT_FORCE), &value,
				  err);
	return r ? r : print(cli, value, "promoted");
}

static int archive(struct cli *cli, struct err *err)
{
	struct jv *value;
	int r = cli_open(cli, CLI_WRITES, err);

	if (r == 0)
		r = skill_archive(cli->ws, &cli->ctx, cli->args.operands[1], STR_NONE, &value, err);
	return r ? r : print(cli, value, "archived");
}

static int add(struct cli *cli, struct err *err)
{
	struct jv *value;
	int r = cli_open(cli, CLI_WRITES, err);

	if (r == 0)
		r = skill_add(cli->ws, &cli->ctx, cli->args.operands[1], args_has(&cli->args, OPT_FORCE), &value, err);
	return r ? r : print(cli, value, "added");
}

int run_skills(struct cli *cli, struct err *err)
{
	static const struct {
		const char *name;
		int (*run)(struct cli *cli, struct err *err);
	} actions[] = {{"show", show}, {"scan", scan}, {"promote", promote}, {"archive", archive}, {"add", add}};
	struct str what = cli->args.operand_count ? cli->args.operands[0] : STR("list");
	int r;

	if (str_is(what, "list")) {
		r = cli_open(cli, CLI_READS, err);
		return r ? r : cli_call(cli, "list_skills", jv_object(cli->ctx.arena), err);
	}
	for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++)
		if (str_is(what, actions[i].name)) {
			if (cli->args.operand_count < 2)
				return err_set(err, ERR_INVALID, "skills %s: a %s is missing", actions[i].name,
					       str_is(what, "add") ? "directory" : "name");
			return actions[i].run(cli, err);
		}
	return err_set(err, ERR_INVALID, "skills: \"%.*s\" is none of list, show, scan, promote, archive and add",
		       STR_ARG(what));
}

/* --- knowledge and subagents: the tools, for people --- */

static int list_or_show(struct cli *cli, const char *list, const char *under, const char *show_tool, const char *key,
			struct err *err)
{
	struct arena *arena = cli->ctx.arena;
	struct str what = cli->args.operand_count ? cli->args.operands[0] : STR("list");
	struct jv *args = jv_object(arena);
	bool lists = str_is(what, "list");
	int r;

	if (!lists && !str_is(what, "show"))
		return err_set(err, ERR_INVALID, "\"%.*s\" is neither list nor show", STR_ARG(what));
	if (!lists && cli->args.operand_count < 2)
		return err_set(err, ERR_INVALID, "show: which %s?", key);
	if (lists && cli->args.operand_count > 1 && !under)
		return err_set(err, ERR_INVALID, "list takes nothing more");
	if (cli->args.operand_count > 1)
		jv_set_str(arena, args, lists ? under : key, cli->args.operands[1]);
	r = cli_open(cli, CLI_READS, err);
	return r ? r : cli_call(cli, lists ? list : show_tool, args, err);
}

int run_knowledge(struct cli *cli, struct err *err)
{
	return list_or_show(cli, "knowledge_list", "under", "read_knowledge", "path", err);
}

int run_subagents(struct cli *cli, struct err *err)
{
	return list_or_show(cli, "list_subagents", NULL, "get_subagent", "id", err);
}
