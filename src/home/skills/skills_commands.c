/* SPDX-License-Identifier: Apache-2.0 */
/* Skills, and what people decide about those that agents wrote. */
#include "home/skills/skills.h"

#include "command/cli.h"
#include "home/skills/skills_tools.h"

static int print(struct cli *cli, const struct jv *value, const char *verb)
{
	if (cli_json(cli, value))
		return 0;
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

/* Scans the draft if there is one, else the skill. */
static int run_skills_scan(struct cli *cli, struct err *err)
{
	struct str name = cli->args.operands[0];
	struct jv *value;
	int r;

	r = skill_scan(cli->ws, &cli->ctx, name, true, &value, err);
	if (r == -ERR_NOT_FOUND || r == -ERR_INVALID)
		r = skill_scan(cli->ws, &cli->ctx, name, false, &value, err);
	if (r)
		return r;
	cli->status = str_is(jv_get_str(value, "verdict"), "SAFE") ? 0 : 1;
	return print(cli, value, "scanned");
}

static int run_skills_promote(struct cli *cli, struct err *err)
{
	struct jv *value;
	int r = skill_promote(cli->ws, &cli->ctx, cli->args.operands[0], args_has(&cli->args, "force"), &value, err);

	return r ? r : print(cli, value, "promoted");
}

static int run_skills_archive(struct cli *cli, struct err *err)
{
	struct jv *value;
	int r = skill_archive(cli->ws, &cli->ctx, cli->args.operands[0], STR_NONE, &value, err);

	return r ? r : print(cli, value, "archived");
}

static int run_skills_add(struct cli *cli, struct err *err)
{
	struct jv *value;
	int r = skill_add(cli->ws, &cli->ctx, cli->args.operands[0], args_has(&cli->args, "force"), &value, err);

	return r ? r : print(cli, value, "added");
}

static const struct action actions[] = {
	{"list", NULL, .tool = "list_skills", .args = ""},
	{"show", "NAME [FILE]", .tool = "load_skill", .args = "name path"},
	{"scan", "NAME", .opens = CLI_READS, .run = run_skills_scan},
	{"promote", "NAME", .opens = CLI_WRITES, .run = run_skills_promote},
	{"archive", "NAME", .opens = CLI_WRITES, .run = run_skills_archive},
	{"add", "DIR", .opens = CLI_WRITES, .run = run_skills_add},
	{0},
};

static const struct option options[] = {
	{"force", 'f', .help = "promote, add: go ahead even if the scan warns, and replace an existing skill"},
	{0},
};

const struct command skills_commands[] = {
	{"skills", "show skills, and decide about drafts that agents wrote", TOPIC_HOME, .actions = actions,
	 .options = options,
	 .about = "A skill is a directory with a SKILL.md. Agents write drafts in skills/_drafts: 'scan' reports\n"
		  "what looks dangerous in a draft; 'promote' makes it a skill and archives the skill that it\n"
		  "replaces. 'archive' moves a skill to skills/.archive. 'add' copies a directory from this machine\n"
		  "into the workspace. The scan finds carelessness, not malice: read a draft before you promote it.\n",
	 .examples = "stead skills\n  all skills and drafts\n"
		     "stead skills scan report-style\n  check a draft\n"
		     "stead skills promote report-style\n  put it into use\n"
		     "stead skills add ~/skills/pdf\n  add one of your own\n"},
	{0},
};
