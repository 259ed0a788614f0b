/* SPDX-License-Identifier: Apache-2.0 */
/* The prompt: prompt. */
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

int run_prompt(struct cli *cli, struct err *err)
{
	struct prompt_opts opts = {0};
	struct prompt prompt;
	struct jv *value;
	int r = args_number(&cli->args, OPT_BUDGET, PROMPT_TOKENS_MAX, 0, &opts.max_tokens, err);

	if (r == 0)
		r = cli_open(cli, CLI_READS, err);
	if (r == 0)
		r = prompt_assemble(cli->ws, &cli->ctx, &opts, &prompt, err);
	if (r)
		return r;
	if (cli->json) {
		value = prompt_value(cli->ctx.arena, &prompt);
		if (args_has(&cli->args, OPT_EXPLAIN))
			jv_remove(value, "text");
		output_json(&cli->out, cli->ctx.arena, value);
	} else if (args_has(&cli->args, OPT_EXPLAIN)) {
		explain(cli, &prompt);
	} else {
		output_add(&cli->out, prompt.text);
	}
	return 0;
}
