/* SPDX-License-Identifier: Apache-2.0 */
/* Conversations and what they cost: sessions, usage. */
#include <stdio.h>

#include "base/clock.h"
#include "base/limits.h"
#include "command/cli.h"
#include "home/sessions/sessions.h"
#include "home/sessions/sessions_tools.h"

static struct session_ref ref_of(struct cli *cli)
{
	return (struct session_ref){.agent = args_get(&cli->args, OPT_AGENT), .session = cli->args.operands[1]};
}

static int list(struct cli *cli, struct err *err)
{
	struct jv *sessions;
	int r = session_list(cli->ws, &cli->ctx, args_get(&cli->args, OPT_AGENT), &sessions, err);

	if (r)
		return r;
	if (cli->json) {
		output_json(&cli->out, cli->ctx.arena, sessions);
		return 0;
	}
	for (const struct jv_member *m = jv_first(sessions); m; m = m->next)
		output_printf(&cli->out, "%.*s  %6lld  %.*s  %.*s\n", STR_ARG(jv_get_str(m->value, "last_active_at")),
			      (long long)jv_get_int(m->value, "messages", 0), STR_ARG(jv_get_str(m->value, "session")),
			      STR_ARG(jv_get_str(m->value, "title")));
	if (!jv_count(sessions))
		output_add(&cli->out, STR("no sessions\n"));
	return 0;
}

static int show(struct cli *cli, struct err *err)
{
	int64_t count = 50;
	struct session_page page;
	struct buf text;
	int r;

	if (args_has(&cli->args, OPT_LIMIT) &&
	    (!str_to_i64(args_get(&cli->args, OPT_LIMIT), &count) || count < 1 || count > 100000))
		return err_set(err, ERR_INVALID, "--limit takes a number from 1 to 100000");
	r = session_history(cli->ws, &cli->ctx, ref_of(cli), 0, (size_t)count, false, &page, err);
	if (r)
		return r;
	if (cli->json) {
		output_json(&cli->out, cli->ctx.arena, page.entries);
		return 0;
	}
	buf_init(&text, cli->ctx.arena, SIZE_MAX / 2);
	for (const struct jv_member *m = jv_first(page.entries); m; m = m->next) {
		session_line(cli->ctx.arena, &text, m->value, SIZE_MAX);
		buf_char(&text, '\n');
	}
	output_add(&cli->out, buf_str(&text));
	return 0;
}

/* One JSON object a line from standard input. */
static int append(struct cli *cli, struct err *err)
{
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
		if (r == 0 && str_is(jv_get_str(entry, "type"), "usage"))
			r = usage_add(cli->ws, &cli->ctx, ref_of(cli), entry, err);
		else if (r == 0)
			r = session_append(cli->ws, &cli->ctx, ref_of(cli), entry, NULL, err);
		count += r == 0;
		if (r)
			err_prefix(err, "entry %zu", count + 1);
	}
	free(line);
	if (r == 0)
		output_printf(&cli->out, "added %zu to session '%.*s'\n", count, STR_ARG(cli->args.operands[1]));
	return r;
}

static int archive(struct cli *cli, struct err *err)
{
	struct jv *report;
	int r = session_archive(cli->ws, &cli->ctx, ref_of(cli), STR_NONE, STR_NONE, &report, err);

	if (r)
		return r;
	if (cli->json)
		output_json(&cli->out, cli->ctx.arena, report);
	else
		output_printf(&cli->out, "archived %lld messages as %.*s\n",
			      (long long)jv_get_int(report, "messages", 0), STR_ARG(jv_get_str(report, "path")));
	return 0;
}

int run_sessions(struct cli *cli, struct err *err)
{
	struct str what = cli->args.operand_count ? cli->args.operands[0] : STR("list");
	bool named = cli->args.operand_count == 2;
	bool writes = str_is(what, "append") || str_is(what, "archive");
	int r = cli_open(cli, writes ? CLI_WRITES : CLI_READS, err);

	if (r)
		return r;
	if (str_is(what, "list") && !named)
		return list(cli, err);
	if (!named)
		return err_set(err, ERR_INVALID,
			       "write: stead sessions list, or show, append or archive and the id of a session");
	if (str_is(what, "show"))
		return show(cli, err);
	if (str_is(what, "append"))
		return append(cli, err);
	if (str_is(what, "archive"))
		return archive(cli, err);
	return err_set(err, ERR_INVALID, "sessions: \"%.*s\" is none of list, show, append, archive", STR_ARG(what));
}

int run_usage(struct cli *cli, struct err *err)
{
	struct str since = args_get(&cli->args, OPT_SINCE);
	int64_t from = 0;
	struct jv *sum;
	int r = 0;

	if (since.len && !clock_parse(since, &from))
		return err_set(err, ERR_INVALID,
			       "--since \"%.*s\" is no time; write 2026-11-15 or 2026-11-15T09:30:00Z", STR_ARG(since));
	r = cli_open(cli, CLI_READS, err);
	if (r == 0)
		r = usage_sum(cli->ws, &cli->ctx, args_get(&cli->args, OPT_AGENT), from, &sum, err);
	if (r)
		return r;
	if (cli->json) {
		output_json(&cli->out, cli->ctx.arena, sum);
		return 0;
	}
	output_printf(&cli->out, "%lld tokens in, %lld out, %lld calls\n",
		      (long long)jv_get_int(sum, "input_tokens", 0), (long long)jv_get_int(sum, "output_tokens", 0),
		      (long long)jv_get_int(sum, "llm_calls", 0));
	for (const struct jv_member *m = jv_first(jv_get(sum, "by_model")); m; m = m->next)
		output_printf(&cli->out, "  %.*s: %lld in, %lld out\n", STR_ARG(m->key),
			      (long long)jv_get_int(m->value, "input_tokens", 0),
			      (long long)jv_get_int(m->value, "output_tokens", 0));
	return 0;
}
