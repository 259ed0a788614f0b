/* SPDX-License-Identifier: Apache-2.0 */
/* list_subagents and get_subagent: what subagents/ declares. */
#include "home/subagents/subagents_tools.h"

#include "home/subagents/subagents.h"
#include "tool/call.h"
#include "tool/family.h"
#include "tool/schemas.h"

static int tool_list_subagents(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	(void)args;
	return subagents_list(call->ws, call->ctx, false, &ret->value, err);
}

static void render_list(const struct jv *args, const struct jv *value, struct buf *text)
{
	(void)args;
	if (!jv_count(jv_get(value, "subagents")))
		buf_lit(text, "there are no subagents");
	for (const struct jv_member *m = jv_first(jv_get(value, "subagents")); m; m = m->next) {
		struct str model = jv_get_str(m->value, "model");

		buf_printf(text, "%s%.*s: ", text->len ? "\n" : "", STR_ARG(jv_get_str(m->value, "id")));
		buf_add(text, utf8_first(jv_get_str(m->value, "description"), KIB));
		buf_printf(text, " [works in %.*s%s%.*s]", STR_ARG(jv_get_str(jv_get(m->value, "workspace"), "root")),
			   model.len ? ", " : "", STR_ARG(model));
	}
	for (const struct jv_member *m = jv_first(jv_get(value, "problems")); m; m = m->next)
		buf_printf(text, "\nleft out: %.*s: %.*s", STR_ARG(jv_get_str(m->value, "path")),
			   STR_ARG(jv_get_str(m->value, "problem")));
}

static int tool_get_subagent(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	return subagent_get(call->ws, call->ctx, jv_get_str(args, "id"), &ret->value, err);
}

/* clang-format off */
#define R_SUBAGENT \
	S_BARE("id", "string") AND S_BARE("description", "string") AND \
	"\"workspace\":" S_OBJ(S_ENUM("mode", "\"isolated\",\"shared\"", "whose files it has") AND S_BARE("path", "string") AND \
		S_STR("root", "where it works; . is the workspace itself"), "\"mode\",\"root\"") AND \
	S_BARE("model", "string") AND S_INT1("steps", "turns it may take") AND S_BARE("temperature", "number") AND \
	S_BARE("top_p", "number") AND S_BARE("variant", "string") AND S_BARE("mode", "string") AND \
	S_BARE("hidden", "boolean") AND S_BARE("expose_to_user", "boolean") AND \
	"\"tools\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}}" AND \
	"\"skills\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}}" AND \
	S_STR("prompt", "its system prompt") AND S_LIST("warnings", "{\"type\":\"string\"}", "what is odd about it")
#define NEEDED "\"id\",\"description\",\"workspace\",\"steps\",\"mode\""

static const struct tool native[] = {
	{.name = "list_subagents", .title = "List subagents", .group = "subagents", .call = tool_list_subagents,
	 .render = render_list, .traits = RO,
	 .description = "The subagents that are declared, what each is for, and what could not be read.",
	 .input_schema = S_NONE,
	 .output_schema = S_OBJ(S_LIST("subagents", S_OBJ(R_SUBAGENT, NEEDED), "by id") AND
		S_LIST("problems", "{\"type\":\"object\"}", "what was left out and why"), "\"subagents\"")},
	{.name = "get_subagent", .title = "Show a subagent", .group = "subagents", .call = tool_get_subagent, .traits = RO,
	 .description = "One declared subagent, with its system prompt.",
	 .input_schema = S_OBJ(S_STR("id", "of list_subagents"), "\"id\""),
	 .output_schema = S_OBJ(R_SUBAGENT, NEEDED)},
	{0},
};
/* clang-format on */

const struct family subagents_family = {
	.name = "subagents",
	.tools = native,
	.commands = subagents_commands,
	.check = subagents_check,
};
