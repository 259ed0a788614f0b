/* SPDX-License-Identifier: Apache-2.0 */
/* `stead search`: the tool's question and answer, with the matches in colour on a terminal. */
#include "command/cli.h"
#include "home/search/search_tools.h"

/* A passage, with colours instead of marks around the words that match. */
static void print_colored(struct output *out, struct str text)
{
	for (bool in = true; text.len; in = !in) {
		size_t at = str_find(text, STR("**"), 0);

		output_add(out, str_first(text, at));
		if (at == SIZE_MAX)
			break;
		output_add(out, output_tone(out, in ? TONE_BAD : TONE_PLAIN));
		text = str_from(text, at + 2);
	}
	output_add(out, output_tone(out, TONE_PLAIN));
}

static void print_text(struct output *out, struct str text)
{
	struct str line;

	while (str_cut(&text, '\n', &line)) {
		if (out->color && str_starts(line, STR("    ")))
			print_colored(out, line);
		else
			output_add(out, line);
		output_add(out, STR("\n"));
	}
}

static int question(struct cli *cli, struct search_query *ret, struct err *err)
{
	struct arena *arena = cli->ctx.arena;
	struct buf text;
	struct jv *args;
	int r = cli_args(cli,
			 "area=--area kind=--kind tags=--tag... author=--author since=--since until=--until "
			 "mode=--mode exact=--exact limit=--limit",
			 &args, err);

	if (r)
		return r;
	buf_init(&text, arena, 1 << 20);
	for (size_t i = 0; i < cli->args.operand_count; i++)
		buf_printf(&text, "%s%.*s", i ? " " : "", STR_ARG(cli->args.operands[i]));
	jv_set_str(arena, args, "query", buf_str(&text));
	return search_args(arena, args, ret, err);
}

static int run_search(struct cli *cli, struct err *err)
{
	struct search_query query;
	struct search_hits hits;
	struct jv *value;
	int r = question(cli, &query, err);

	if (r == 0)
		r = cli_open(cli, CLI_READS, err);
	if (r)
		return r;
	cli_show_progress(cli, "indexed");
	query.explain = args_has(&cli->args, "explain");
	r = home_search(cli->ws, &cli->ctx, &query, &hits, err);
	if (r)
		return r;
	cli->status = hits.count ? 0 : 1;
	value = search_value(cli->ctx.arena, cli->ws, &query, &hits);
	if (cli_json(cli, value))
		return 0;
	jv_remove(value, "next_cursor"); /* --limit is the way to more */
	print_text(&cli->out, cli_render(cli, "search", value));
	return 0;
}

static const struct option options[] = {
	{"area", 0, "AREA", .help = "search only this area", .complete = COMPLETE_AREA},
	{"kind", 0, "KIND", .help = "only notes of this kind, or lines of this role in a session"},
	{"tag", 0, "TAG", .help = "only documents with this tag; may be repeated"},
	{"author", 0, "NAME", .help = "only by this author"},
	{"since", 0, "TIME", .help = "not older than 2026-11-15, 2026-11-15T10:00:00Z, or an age: 12h, 7d"},
	{"until", 0, "TIME", .help = "not newer than this, in the same forms"},
	{"mode", 0, "MODE", .words = "auto text semantic",
	 .help = "text: by words; semantic: by meaning, if an embedder is configured; auto: both"},
	{"exact", .help = "match neither other endings nor misspellings"},
	{"limit", 'n', "N", .help = "at most N hits (default 10, at most 100)", .min = 1, .max = 100},
	{"explain", .help = "show scores, the weight of each word, and the cost of the search"},
	{0},
};

const struct command search_commands[] = {
	{"search", "find the best passages in notes, memory, sessions, knowledge and files", TOPIC_FILES, "[WORD...]",
	 .run = run_search, .options = options,
	 .about = "Any word may match; more and rarer words rank higher. '\"two words\"' must be adjacent; -word\n"
		  "must not occur. Other endings and misspellings match too, unless --exact is given. Works in any\n"
		  "language. Without words, lists everything, newest first. The exit code is 1 if nothing is found.\n",
	 .examples = "stead search deployment plan\n  the ten best passages\n"
		     "stead search '\"rate limit\" -redis' --area notes --since 7d\n"
		     "  a phrase, in the last week's notes\n"
		     "stead search 東京 天気 --json\n  for a script\n"},
	{0},
};
