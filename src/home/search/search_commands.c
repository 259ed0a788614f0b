/* SPDX-License-Identifier: Apache-2.0 */
/* `stead search`: the tool's question and answer, with the matches in colour on a terminal. */
#include "command/cli.h"
#include "home/search/search_tools.h"

/* The passage with its marks, or in bold where there are colours. */
static void print_marked(struct output *out, struct str text)
{
	bool in = false;

	if (!out->color) {
		output_add(out, text);
		return;
	}
	while (text.len) {
		size_t at = str_find(text, STR("**"), 0);

		output_add(out, str_first(text, at == SIZE_MAX ? text.len : at));
		if (at == SIZE_MAX)
			break;
		in = !in;
		output_add(out, output_tone(out, in ? TONE_BAD : TONE_PLAIN));
		text = str_from(text, at + 2);
	}
	output_add(out, output_tone(out, TONE_PLAIN));
}

static void print_hit(struct cli *cli, const struct search_hit *hit)
{
	struct output *out = &cli->out;

	output_add(out, output_tone(out, TONE_PATH));
	output_add(out, hit->path);
	output_add(out, output_tone(out, TONE_PLAIN));
	if (hit->id.len)
		output_printf(out, "#%.*s", STR_ARG(hit->id));
	output_add(out, STR("  "));
	output_add(out, output_tone(out, TONE_BOLD));
	output_add(out, hit->title);
	output_add(out, output_tone(out, TONE_PLAIN));
	if (hit->kind.len)
		output_printf(out, " (%.*s)", STR_ARG(hit->kind));
	if (hit->author.len)
		output_printf(out, " by %.*s", STR_ARG(hit->author));
	for (size_t i = 0; i < hit->tag_count; i++)
		output_printf(out, " #%.*s", STR_ARG(hit->tags[i]));
	if (args_has(&cli->args, OPT_EXPLAIN))
		output_printf(out, "  [%.3f]", hit->score);
	output_add(out, STR("\n    "));
	print_marked(out, hit->snippet);
	output_add(out, STR("\n"));
}

static struct jv *arguments(struct cli *cli, struct err *err)
{
	static const struct {
		enum option_id id;
		const char *key;
	} texts[] = {{OPT_KIND, "kind"},   {OPT_AUTHOR, "author"}, {OPT_SINCE, "since"},
		     {OPT_UNTIL, "until"}, {OPT_MODE, "mode"},     {OPT_AREA, "area"}};
	struct arena *arena = cli->ctx.arena;
	struct jv *args = jv_object(arena), *tags = jv_array(arena);
	struct buf query;
	uint64_t limit;
	size_t count;
	struct str *each = args_each(arena, &cli->args, OPT_TAG, &count);

	if (args_number(&cli->args, OPT_LIMIT, 100, 10, &limit, err) != 0)
		return NULL;
	buf_init(&query, arena, 1 << 20);
	for (size_t i = 0; i < cli->args.operand_count; i++)
		buf_printf(&query, "%s%.*s", i ? " " : "", STR_ARG(cli->args.operands[i]));
	jv_set_str(arena, args, "query", buf_str(&query));
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
		if (args_has(&cli->args, texts[i].id))
			jv_set_str(arena, args, texts[i].key, args_get(&cli->args, texts[i].id));
	for (size_t i = 0; i < count; i++)
		jv_push(arena, tags, jv_str(arena, each[i]));
	jv_set(arena, args, "tags", tags);
	jv_set_int(arena, args, "limit", (int64_t)(limit ? limit : 1));
	jv_set_bool(arena, args, "exact", args_has(&cli->args, OPT_EXACT));
	return args;
}

int run_search(struct cli *cli, struct err *err)
{
	const struct jv *args = arguments(cli, err);
	struct search_query query;
	struct search_hits hits;
	int r = args ? search_args(cli->ctx.arena, args, &query, err) : -(int)err->kind;

	if (r == 0)
		r = cli_open(cli, CLI_WRITES, err);
	if (r)
		return r;
	cli_show_progress(cli, "indexed");
	query.explain = args_has(&cli->args, OPT_EXPLAIN);
	r = home_search(cli->ws, &cli->ctx, &query, &hits, err);
	if (r)
		return r;
	cli->status = hits.count ? 0 : 1;
	if (cli->json) {
		output_json(&cli->out, cli->ctx.arena, search_value(cli->ctx.arena, cli->ws, &query, &hits));
		return 0;
	}
	output_add(&cli->out, hits.explanation);
	for (size_t i = 0; i < hits.count; i++)
		print_hit(cli, &hits.hits[i]);
	if (hits.total > hits.count)
		output_printf(&cli->out, "[%zu of %llu]\n", hits.count, (unsigned long long)hits.total);
	if (hits.note.len)
		output_printf(&cli->out, "[%.*s]\n", STR_ARG(hits.note));
	return 0;
}
