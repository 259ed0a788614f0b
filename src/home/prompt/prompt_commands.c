/* SPDX-License-Identifier: Apache-2.0 */
/* The prompt, and a table that explains it. */
#include "base/limits.h"
#include "command/cli.h"
#include "home/prompt/prompt.h"

static void explain(struct cli *cli, const struct prompt *prompt)
{
	struct output *out = &cli->out;

	output_printf(out, "%7s %8s  %-8s %-16s %s\n", "tokens", "bytes", "class", "section", "from");
	for (size_t i = 0; i < prompt->count; i++) {
		const struct prompt_span *s = &prompt->sections[i];

		output_printf(out, "%7llu %8zu  %-8s %-16s %.*s\n", (unsigned long long)s->tokens, s->len,
			      prompt_class_names[s->class], s->name,
			      STR_ARG(s->sources.len ? s->sources : STR("(Stead)")));
		if (s->cut.len)
			output_printf(out, "%18s cut: %.*s (whole: %llu tokens)\n", "", STR_ARG(s->cut),
				      (unsigned long long)s->tokens_all);
		if (i + 1 < prompt->count && s[1].class != s->class)
			output_printf(out, "%18s -- a cache may end here, at byte %zu\n", "", s->start + s->len);
	}
	output_printf(out, "%7llu %8zu  of %llu tokens\n", (unsigned long long)prompt->tokens, prompt->text.len,
		      (unsigned long long)prompt->max_tokens);
	for (size_t i = 0; i < prompt->problem_count; i++)
		output_printf(out, "not used: %.*s\n", STR_ARG(prompt->problems[i]));
}

static int run_prompt(struct cli *cli, struct err *err)
{
	struct prompt_opts opts = {.max_tokens = args_number(&cli->args, "budget", 0)};
	bool explains = args_has(&cli->args, "explain");
	struct toolset *offered = NULL;
	struct prompt prompt;
	struct jv *value;
	int r = cli_open_tools(cli, args_get(&cli->args, "dialect"), err);

	if (r == 0)
		r = cli_choose_tools(cli, &offered, err);
	opts.set = offered;
	if (r == 0)
		r = prompt_assemble(cli->ws, &cli->ctx, &opts, &prompt, err);
	toolset_destroy(offered);
	if (r)
		return r;
	value = prompt_value(cli->ctx.arena, &prompt);
	if (explains)
		jv_remove(value, "text");
	if (cli_json(cli, value))
		return 0;
	if (explains)
		explain(cli, &prompt);
	else
		output_add(&cli->out, prompt.text);
	return 0;
}

static const struct option options[] = {
	{"explain", .help = "print a table of the sections instead: tokens, files, what was cut and why"},
	TOOLS_OPTIONS,
	{"budget", 0, "N", .max = PROMPT_TOKENS_MAX,
	 .help = "at most N tokens, 1000 to 50000 (default: prompt.max_tokens in agent.yaml)"},
	{0},
};

const struct command prompt_commands[] = {
	{"prompt", "print the system prompt assembled from the workspace", TOPIC_HOME, .opens = CLI_READS,
	 .run = run_prompt, .options = options,
	 .about = "Prints identity, knowledge, skills, memory, notes, tasks and the plan, as a model reads them\n"
		  "before a conversation. The least changing parts come first, so that prompt caches can reuse\n"
		  "them; text in a file cannot end its section. All sections share one token budget. The prompt\n"
		  "names only tools that an MCP client gets with the same --tools and --dialect.\n",
	 .examples = "stead prompt\n  the prompt\n"
		     "stead prompt --explain\n  the size of each section, and what was left out\n"
		     "stead prompt --session 42 --json\n  with that session's plan and the cache breakpoints\n"},
	{0},
};
