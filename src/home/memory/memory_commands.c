/* SPDX-License-Identifier: Apache-2.0 */
/* What the agent remembers: memory. Who uses the command line is a person, unless --agent says otherwise. */
#include "base/limits.h"
#include "command/cli.h"
#include "home/memory/memory.h"
#include "tool/tool.h"

static enum memory_trust caller_of(struct cli *cli)
{
	return args_get(&cli->args, OPT_AGENT).len ? TRUST_AGENT : TRUST_PERSON;
}

static void print_fact(struct cli *cli, const struct jv *fact)
{
	struct str id = jv_get_str(fact, "id"), trust = jv_get_str(fact, "trust");

	output_printf(&cli->out, "%.*s  %-8.*s  ", STR_ARG(id.len ? id : STR("-")), STR_ARG(trust));
	output_add(&cli->out, jv_get_str(fact, "text"));
	if (id.len && !jv_get_bool(fact, "current", true))
		output_add(&cli->out, STR("  (does not hold now)"));
	output_add(&cli->out, STR("\n"));
}

/* JSON as it is; else each fact on a line. */
static int print_facts(struct cli *cli, const struct jv *value, const char *key)
{
	if (cli->json) {
		output_json(&cli->out, cli->ctx.arena, value);
		return 0;
	}
	for (const struct jv_member *m = jv_first(jv_get(value, key)); m; m = m->next)
		print_fact(cli, m->value);
	if (!jv_count(jv_get(value, key)))
		output_add(&cli->out, STR("nothing\n"));
	return 0;
}

static int list(struct cli *cli, struct err *err)
{
	struct jv *value;
	int r = memory_list(cli->ws, &cli->ctx, args_has(&cli->args, OPT_ALL), 0, &value, err);

	return r ? r : print_facts(cli, value, "facts");
}

static int search(struct cli *cli, struct str query, struct err *err)
{
	struct jv *value;
	int r = memory_search(cli->ws, &cli->ctx, query, 50, args_has(&cli->args, OPT_ALL), &value, err);

	if (r)
		return r;
	cli->status = jv_count(jv_get(value, "matches")) ? 0 : 1;
	return print_facts(cli, value, "matches");
}

static int save(struct cli *cli, struct str content, struct err *err)
{
	struct memory_save want = {.content = content, .caller = caller_of(cli)};
	struct jv *value;
	int r = memory_save(cli->ws, &cli->ctx, &want, &value, err);

	return r ? r : print_facts(cli, value, "saved");
}

static int forget(struct cli *cli, struct str what, struct err *err)
{
	bool by_id = memory_id_is(what);
	struct jv *value;
	const struct jv *past;
	int r = memory_forget(cli->ws, &cli->ctx, by_id ? what : STR_NONE, by_id ? STR_NONE : what, caller_of(cli),
			      &value, err);

	if (r)
		return r;
	if (cli->json) {
		output_json(&cli->out, cli->ctx.arena, value);
		return 0;
	}
	past = jv_get(value, "history");
	output_printf(&cli->out, "receipt %.*s\n", STR_ARG(jv_get_str(value, "receipt")));
	for (const struct jv_member *m = jv_first(jv_get(value, "sha256")); m; m = m->next)
		output_printf(&cli->out, "  sha256 %.*s\n", STR_ARG(jv_str_of(m->value)));
	for (const struct jv_member *m = jv_first(jv_get(value, "files")); m; m = m->next)
		output_printf(&cli->out, "  %.*s: %lld removed\n", STR_ARG(jv_get_str(m->value, "path")),
			      (long long)jv_get_int(m->value, "facts", 0));
	output_printf(&cli->out, "  history: %lld contents of %lld revisions removed%s%.*s\n",
		      (long long)jv_get_int(past, "contents", 0), (long long)jv_get_int(past, "revisions", 0),
		      jv_get_bool(past, "covered", false) ? "" : "; not all: ", STR_ARG(jv_get_str(past, "why")));
	for (const struct jv_member *m = jv_first(jv_get(value, "mentions")); m; m = m->next)
		output_printf(&cli->out, "  still mentioned in %.*s\n", STR_ARG(jv_str_of(m->value)));
	return 0;
}

static int archive(struct cli *cli, struct err *err)
{
	struct jv *value;
	int r = memory_archive(cli->ws, &cli->ctx, &value, err);

	if (r)
		return r;
	if (cli->json)
		output_json(&cli->out, cli->ctx.arena, value);
	else
		output_printf(&cli->out, "archived %lld ledgers and %lld facts; MEMORY.md has %lld bytes\n",
			      (long long)jv_get_int(value, "ledgers", 0), (long long)jv_get_int(value, "facts", 0),
			      (long long)jv_get_int(value, "bytes", 0));
	return 0;
}

static int stats(struct cli *cli, struct err *err)
{
	struct jv *value;
	int r = memory_stats(cli->ws, &cli->ctx, &value, err);

	if (r)
		return r;
	if (cli->json) {
		output_json(&cli->out, cli->ctx.arena, value);
		return 0;
	}
	output_printf(&cli->out, "%lld facts, %lld of them hold now; MEMORY.md %lld of %lld bytes\n",
		      (long long)jv_get_int(value, "facts", 0), (long long)jv_get_int(value, "current", 0),
		      (long long)jv_get_int(value, "bytes", 0), (long long)jv_get_int(value, "budget_bytes", 0));
	for (const struct jv_member *m = jv_first(jv_get(value, "by_trust")); m; m = m->next)
		output_printf(&cli->out, "  %.*s: %lld\n", STR_ARG(m->key), (long long)m->value->u.i);
	output_printf(&cli->out, "%lld ledgers with %lld bytes, %lld files in the archive\n",
		      (long long)jv_get_int(value, "ledgers", 0), (long long)jv_get_int(value, "ledger_bytes", 0),
		      (long long)jv_get_int(value, "archived", 0));
	return 0;
}

int run_memory(struct cli *cli, struct err *err)
{
	struct str what = cli->args.operand_count ? cli->args.operands[0] : STR("list");
	bool named = cli->args.operand_count == 2;
	struct str operand = named ? cli->args.operands[1] : STR_NONE;
	bool reads = str_is(what, "list") || str_is(what, "search") || str_is(what, "stats");
	int r = cli_open(cli, reads ? CLI_READS : CLI_WRITES, err);

	if (r)
		return r;
	if (!named && str_is(what, "list"))
		return list(cli, err);
	if (!named && str_is(what, "archive"))
		return archive(cli, err);
	if (!named && str_is(what, "stats"))
		return stats(cli, err);
	if (named && str_is(what, "search"))
		return search(cli, operand, err);
	if (named && str_is(what, "save"))
		return save(cli, operand, err);
	if (named && str_is(what, "forget"))
		return forget(cli, operand, err);
	return err_set(err, ERR_INVALID,
		       "write: stead memory list, archive or stats; or search QUERY, save TEXT or forget FACT");
}
