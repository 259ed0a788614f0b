/* SPDX-License-Identifier: Apache-2.0 */
/* assemble_prompt: for clients that run a model themselves and want its system prompt from the workspace. */
#include "base/utf8.h"
#include "home/prompt/prompt_internal.h"
#include "tool/call.h"

static int tool_assemble_prompt(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct prompt_opts opts = {.max_tokens = (uint64_t)jv_get_int(args, "max_tokens", 0), .set = call->set};
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

/* The name must not be that of a skill, which are prompts too. */
#define PROMPT_NAME "workspace"

static int list_prompts(struct call *call, struct jv *list, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	struct jv *v = jv_object(arena);

	(void)err;
	jv_set_str(arena, v, "name", STR(PROMPT_NAME));
	jv_set_str(arena, v, "title", STR("The workspace"));
	jv_set_str(arena, v, "description",
		   STR("Who the agent is and what the workspace knows: identity, knowledge, memory, notes, tasks"));
	jv_push(arena, list, v);
	return 0;
}

static int get_prompt(struct call *call, struct str name, struct str *ret_text, struct err *err)
{
	struct prompt_opts opts = {.set = call->set};
	struct prompt prompt;
	int r;

	if (!str_is(name, PROMPT_NAME))
		return err_set(err, ERR_NOT_FOUND, "there is no prompt \"%.*s\"", STR_ARG(utf8_first(name, 80)));
	r = prompt_assemble(call->ws, call->ctx, &opts, &prompt, err);
	if (r == 0)
		*ret_text = prompt.text;
	return r;
}

/* clang-format off */
static const struct tool native[] = {
	{
		.name = "assemble_prompt", .title = "Assemble the prompt", .traits = RO, .call = tool_assemble_prompt,
		.render = render_prompt,
		.description =
			"Returns the system prompt of the workspace: identity, knowledge, skills, memory, notes, tasks and plan, "
			"within a token budget. What changes least comes first; breakpoints show where a prompt cache may end.",
		.args =
			"session: the session whose plan it includes (default: the session of the call)\n"
			"max_tokens int>=1: token budget, 1000 to 50000 (default: prompt.max_tokens of agent.yaml)",
		.result =
			"text!: the prompt\n"
			"tokens! int; max_tokens! int\n"
			"sections! [{name!; class!; tokens! int; bytes! int; tokens_whole int; sources; cut}]: in order; cut "
			"says what is missing\n"
			"breakpoints! [{class!; after!; bytes! int; tokens! int}]: where each class of sections ends, in bytes "
			"and tokens from the start\n"
			"problems [str]: files that could not be used",
	},
	{0},
};
/* clang-format on */

const struct family prompt_family = {
	.name = "prompt",
	.about = "The system prompt assembled from the workspace.",
	.tools = native,
	.prompt = prompt_sections,
	.commands = prompt_commands,
	.list_prompts = list_prompts,
	.get_prompt = get_prompt,
	.open = prompt_kept_new,
	.close = prompt_kept_destroy,
	.check = prompt_check,
};
