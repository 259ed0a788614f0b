/* SPDX-License-Identifier: Apache-2.0 */
/* Conversations and the tokens they used: sessions, usage. */
#include <stdio.h>

#include "base/clock.h"
#include "base/limits.h"
#include "command/cli.h"
#include "home/sessions/sessions.h"
#include "home/sessions/sessions_tools.h"

static struct session_ref ref_of(struct cli *cli)
{
	return (struct session_ref){.agent = args_get(&cli->args, "agent"), .session = cli->args.operands[0]};
}

int run_sessions_list(struct cli *cli, struct err *err)
{
	struct arena *arena = cli->ctx.arena;
	struct jv *sessions, *value = jv_object(arena);
	uint64_t total;
	int r = session_list(cli->ws, &cli->ctx, args_get(&cli->args, "agent"), args_number(&cli->args, "limit", 50),
			     &sessions, &total, err);

	if (r || cli_json(cli, sessions))
		return r;
	jv_set(arena, value, "sessions", sessions);
	jv_set_int(arena, value, "total", (int64_t)total);
	cli_print(cli, "session_list", value);
	return 0;
}

int run_sessions_show(struct cli *cli, struct err *err)
{
	size_t count = args_number(&cli->args, "limit", 50);
	struct session_page page;
	struct buf text;
	int r = session_history(cli->ws, &cli->ctx, ref_of(cli), 0, count, false, &page, err);

	if (r || cli_json(cli, page.entries))
		return r;
	buf_init(&text, cli->ctx.arena, SIZE_MAX / 2);
	for (const struct jv_member *m = jv_first(page.entries); m; m = m->next) {
		session_line(cli->ctx.arena, &text, m->value, SIZE_MAX);
		buf_char(&text, '\n');
	}
	output_words(&cli->out, buf_str(&text));
	return 0;
}

#define APPEND_MOST 1000 /* entries at once */

static int append_read(struct cli *cli, struct jv **entries, size_t *count, struct err *err)
{
	struct jv *written;
	int r = session_append_all(cli->ws, &cli->ctx, ref_of(cli), *entries, &written, err);

	*count += r ? 0 : jv_count(*entries);
	*entries = jv_array(cli->ctx.arena);
	return r;
}

/* One JSON object per line of standard input. */
int run_sessions_append(struct cli *cli, struct err *err)
{
	struct jv *entries = jv_array(cli->ctx.arena);
	char *line = NULL;
	size_t cap = 0, count = 0;
	ssize_t n;
	int r = 0;

	while (r == 0 && (n = getline(&line, &cap, stdin)) >= 0) {
		struct str text = str_trim(str_n(line, (size_t)n));
		struct jv *entry;

		if (!text.len)
			continue;
		r = jv_parse(cli->ctx.arena, arena_str(cli->ctx.arena, text), &entry, err);
		if (r == 0 && str_is(jv_get_str(entry, "type"), "usage")) {
			r = usage_add(cli->ws, &cli->ctx, ref_of(cli), entry, err);
			count += r == 0;
		} else if (r == 0) {
			jv_push(cli->ctx.arena, entries, entry);
		}
		if (r)
			err_prefix(err, "entry %zu", count + jv_count(entries) + 1);
		if (r == 0 && jv_count(entries) == APPEND_MOST)
			r = append_read(cli, &entries, &count, err);
	}
	free(line);
	if (r == 0)
		r = append_read(cli, &entries, &count, err);
	if (r == 0)
		output_printf(&cli->out, "added %zu to session '%.*s'\n", count, STR_ARG(cli->args.operands[0]));
	return r;
}

int run_sessions_archive(struct cli *cli, struct err *err)
{
	struct jv *report;
	int r = session_archive(cli->ws, &cli->ctx, ref_of(cli), STR_NONE, STR_NONE, &report, err);

	if (r == 0)
		cli_print(cli, "session_archive", report);
	return r;
}

static int run_usage(struct cli *cli, struct err *err)
{
	struct str since = args_get(&cli->args, "since");
	int64_t from = 0;
	struct jv *sum;
	int r = 0;

	if (since.len && !clock_parse(since, &from))
		return err_set(err, ERR_INVALID,
			       "--since \"%.*s\" is not a valid time; write 2026-11-15 or 2026-11-15T09:30:00Z",
			       STR_ARG(since));
	r = cli_open(cli, CLI_READS, err);
	if (r == 0)
		r = usage_sum(cli->ws, &cli->ctx, args_get(&cli->args, "agent"), from, &sum, err);
	if (r || cli_json(cli, sum))
		return r;
	output_printf(&cli->out, "%lld tokens in, %lld out, %lld calls", (long long)jv_get_int(sum, "input_tokens", 0),
		      (long long)jv_get_int(sum, "output_tokens", 0), (long long)jv_get_int(sum, "llm_calls", 0));
	if (jv_get(sum, "cost_usd"))
		output_printf(&cli->out, ", %.4f USD", jv_get(sum, "cost_usd")->u.d);
	output_add(&cli->out, STR("\n"));
	for (const struct jv_member *m = jv_first(jv_get(sum, "by_model")); m; m = m->next)
		output_printf(&cli->out, "  %.*s: %lld in, %lld out\n", STR_ARG(m->key),
			      (long long)jv_get_int(m->value, "input_tokens", 0),
			      (long long)jv_get_int(m->value, "output_tokens", 0));
	return 0;
}

const struct option sessions_options[] = {
	{"limit", 'n', "N", .help = "how many sessions, or how many of the last entries (default: 50)", .min = 1,
	 .max = 100000},
	{"model", 'm', "MODEL", .env = "STEAD_MODEL", .help = "resume: PROVIDER:MODEL (default: model in agent.yaml)"},
	{"base-url", 0, "URL", .help = "resume: another server that speaks the provider's protocol"},
	{0},
};
static const struct option usage_options[] = {
	{"since", 0, "TIME", .help = "only since this time, such as 2026-11-15"},
	{0},
};

const struct command sessions_commands[] = {
	{"usage", "show how many tokens were used", TOPIC_HOME, .run = run_usage, .options = usage_options,
	 .about = "Sums up agents/<agent>/token_usage.jsonl by model, for all agents or for --agent. Other runtimes\n"
		  "add to it with session_append and entries of type usage.\n",
	 .examples = "stead usage --since 2026-11-15\n  since that day\n"},
	{0},
};
