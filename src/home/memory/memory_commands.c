/* SPDX-License-Identifier: Apache-2.0 */
/* What the agent remembers. The user of the command line is a person, unless --agent is given. */
#include "base/limits.h"
#include "command/cli.h"
#include "home/memory/memory.h"
#include "home/memory/memory_tools.h"
#include "tool/call.h"

static enum memory_trust caller_of(struct cli *cli)
{
	return args_get(&cli->args, "agent").len ? TRUST_AGENT : TRUST_PERSON;
}

static int run_memory_list(struct cli *cli, struct err *err)
{
	struct jv *value;
	int r = memory_list(cli->ws, &cli->ctx, args_has(&cli->args, "all"), 0, &value, err);

	if (r == 0)
		cli_print(cli, "memory_list", value);
	return r;
}

static int run_memory_search(struct cli *cli, struct err *err)
{
	struct jv *value;
	int r = memory_search(cli->ws, &cli->ctx, cli->args.operands[0], 50, args_has(&cli->args, "all"), &value, err);

	if (r)
		return r;
	cli->status = jv_count(jv_get(value, "matches")) ? 0 : 1;
	cli_print(cli, "memory_search", value);
	return 0;
}

static int run_memory_save(struct cli *cli, struct err *err)
{
	struct memory_save save = {.content = cli->args.operands[0], .caller = caller_of(cli)};
	struct jv *value;
	int r = memory_save(cli->ws, &cli->ctx, &save, &value, err);

	if (r == 0)
		cli_print(cli, "memory_save", value);
	return r;
}

static int run_memory_forget(struct cli *cli, struct err *err)
{
	struct str what = cli->args.operands[0];
	bool by_id = memory_id_is(what);
	struct jv *value;
	int r = memory_forget(cli->ws, &cli->ctx, by_id ? what : STR_NONE, by_id ? STR_NONE : what, caller_of(cli),
			      &value, err);

	if (r == 0)
		cli_print(cli, "memory_forget", value);
	return r;
}

static int run_memory_archive(struct cli *cli, struct err *err)
{
	struct jv *value;
	int r = memory_archive(cli->ws, &cli->ctx, &value, err);

	if (r || cli_json(cli, value))
		return r;
	output_printf(&cli->out, "archived %.*s and %.*s; MEMORY.md has %.*s\n",
		      STR_ARG(value_count(cli->ctx.arena, value, "ledgers", "ledger")),
		      STR_ARG(value_count(cli->ctx.arena, value, "facts", "fact")),
		      STR_ARG(value_count(cli->ctx.arena, value, "bytes", "byte")));
	return 0;
}

static int run_memory_stats(struct cli *cli, struct err *err)
{
	struct jv *value;
	int r = memory_stats(cli->ws, &cli->ctx, &value, err);

	if (r || cli_json(cli, value))
		return r;
	output_printf(&cli->out, "%.*s, %lld current; MEMORY.md has %lld of %lld bytes\n",
		      STR_ARG(value_count(cli->ctx.arena, value, "facts", "fact")),
		      (long long)jv_get_int(value, "current", 0), (long long)jv_get_int(value, "bytes", 0),
		      (long long)jv_get_int(value, "budget_bytes", 0));
	for (const struct jv_member *m = jv_first(jv_get(value, "by_trust")); m; m = m->next)
		output_printf(&cli->out, "  %.*s: %lld\n", STR_ARG(m->key), (long long)m->value->u.i);
	output_printf(&cli->out, "%.*s with %.*s, %.*s in the archive\n",
		      STR_ARG(value_count(cli->ctx.arena, value, "ledgers", "ledger")),
		      STR_ARG(value_count(cli->ctx.arena, value, "ledger_bytes", "byte")),
		      STR_ARG(value_count(cli->ctx.arena, value, "archived", "file")));
	return 0;
}

static const struct action actions[] = {
	{"list", NULL, .opens = CLI_READS, .run = run_memory_list},
	{"search", "QUERY", .opens = CLI_READS, .run = run_memory_search},
	{"save", "TEXT", .opens = CLI_WRITES, .run = run_memory_save},
	{"forget", "FACT", .opens = CLI_WRITES, .run = run_memory_forget},
	{"archive", NULL, .opens = CLI_WRITES, .run = run_memory_archive},
	{"stats", NULL, .opens = CLI_READS, .run = run_memory_stats},
	{0},
};

static const struct option options[] = {
	{"all", 'a', .help = "list, search: include facts that are not current"},
	{0},
};

const struct command memory_commands[] = {
	{"memory", "list, search, save and forget what the agent remembers", TOPIC_HOME, .actions = actions,
	 .options = options,
	 .about = "Facts are bullets in MEMORY.md and in daily ledgers under memory/, each followed by its origin.\n"
		  "What you save here counts as a person's word, unless --agent is given. 'forget' takes the id or\n"
		  "the exact words of a fact, removes the fact from the files, the history and the index, and\n"
		  "prints a receipt. 'archive' moves old ledgers, and facts that exceed the budget (memory: in\n"
		  "agent.yaml), to the archive.\n",
	 .examples = "stead memory save 'The office closes at six.'\n  a fact\n"
		     "stead memory search office\n  the best match first\n"
		     "stead memory --all\n  include facts that are no longer current\n"},
	{0},
};
