/* SPDX-License-Identifier: Apache-2.0 */
/* assemble_prompt: for clients that run a model themselves and want its system prompt from the workspace. */
#include "home/prompt/prompt_tools.h"

#include "home/prompt/prompt.h"
#include "tool/call.h"
#include "tool/family.h"
#include "tool/schemas.h"

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
#define SECTION S_OBJ( \
	S_BARE("name", "string") AND S_BARE("class", "string") AND S_BARE("tokens", "integer") AND \
	S_BARE("bytes", "integer") AND S_BARE("tokens_whole", "integer") AND S_BARE("sources", "string") AND \
	S_BARE("cut", "string"), "\"name\",\"class\",\"tokens\",\"bytes\"")
#define BREAKPOINT S_OBJ( \
	S_BARE("class", "string") AND S_BARE("after", "string") AND S_BARE("bytes", "integer") AND \
	S_BARE("tokens", "integer"), "\"class\",\"after\",\"bytes\",\"tokens\"")

static const struct tool native[] = {
	{.name = "assemble_prompt", .title = "Assemble the prompt", .group = "prompt", .call = tool_assemble_prompt,
	 .render = render_prompt, .traits = RO,
	 .description =
		"Gives the system prompt that the workspace makes: identity, knowledge, skills, memory, notes, tasks and "
		"plan, within a budget. What changes least stands first; breakpoints tell where a prompt cache may end.",
	 .input_schema = S_OBJ(
		S_STR("session", "the session whose plan it has (default: that of the call)") AND
		S_INT1("max_tokens", "budget of all sections, 1000 to 50000 (default: agent.yaml, prompt.max_tokens)"), ""),
	 .output_schema = S_OBJ(
		S_STR("text", "the prompt") AND
		S_BARE("tokens", "integer") AND
		S_BARE("max_tokens", "integer") AND
		S_LIST("sections", SECTION, "in order; cut says what is missing") AND
		S_LIST("breakpoints", BREAKPOINT, "where a class of sections ends: bytes and tokens up to there") AND
		S_LIST("problems", "{\"type\":\"string\"}", "files that could not be used"),
		"\"text\",\"tokens\",\"max_tokens\",\"sections\",\"breakpoints\"")},
	{0},
};
/* clang-format on */

const struct family prompt_family = {
	.name = "prompt",
	.tools = native,
	.commands = prompt_commands,
	.open = prompt_kept_new,
	.close = prompt_kept_destroy,
};
