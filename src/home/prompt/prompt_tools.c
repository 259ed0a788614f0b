/* SPDX-License-Identifier: Apache-2.0 */
/* assemble_prompt: for clients that run a model themselves and want its system prompt from the workspace. */
#include "home/prompt/prompt_internal.h"
#include "tool/call.h"

static int tool_assemble_prompt(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct prompt_opts opts = {.max_tokens = (uint64_t)jv_get_int(args, "max_tokens", 0)};
	struct ctx ctx = *call->ctx;
	struct prompt prompt;
	int r;

	if (jv_get_str(args, "session").len)
		ctx.actor.session = jv_get_str(args, "session");
	r = prompt_assemble(call->ws, &ctx, &opts, &prompt, err);
	if (r == 0)
		ret->value = prompt_value(ctx.arena, &prompt);
	return r;
}

static void render_prompt(const struct jv *args, const struct jv *value, struct buf *text)
{
	(void)args;
	buf_add(text, jv_get_str(value, "text"));
}

/* clang-format off */
static const struct tool native[] = {
	{
		.name = "assemble_prompt", .title = "Assemble the prompt", .traits = RO, .call = tool_assemble_prompt,
		.render = render_prompt,
		.description =
			"Gives the system prompt of the workspace: identity, knowledge, skills, memory, notes, tasks and plan, "
			"within a token budget. What changes least comes first; breakpoints tell where a prompt cache may end.",
		.args =
			"session: the session whose plan it includes (default: the session of the call)\n"
			"max_tokens int>=1: token budget, 1000 to 50000 (default: prompt.max_tokens of agent.yaml)",
		.result =
			"text!: the prompt\n"
			"tokens! int; max_tokens! int\n"
			"sections! [{name!; class!; tokens! int; bytes! int; tokens_whole int; sources; cut}]: in order; cut "
			"tells what is missing\n"
			"breakpoints! [{class!; after!; bytes! int; tokens! int}]: where each class of sections ends, in bytes "
			"and tokens from the start\n"
			"problems [str]: files that could not be used",
	},
	{0},
};
/* clang-format on */

const struct family prompt_family = {
	.name = "prompt",
	.about = "The system prompt that a workspace gives its agent.",
	.tools = native,
	.prompt = prompt_sections,
	.commands = prompt_commands,
	.open = prompt_kept_new,
	.close = prompt_kept_destroy,
};
