/* SPDX-License-Identifier: Apache-2.0 */
/* list_subagents and get_subagent: what subagents/ declares. */
#include "home/subagents/subagents.h"
#include "tool/call.h"
#include "tool/family.h"

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
#define SUBAGENT \
	"id!; description!; workspace! {mode! isolated|shared|fork: whose files it sees; path; " \
	"root!: where it works (. is the workspace itself)}; model\n" \
	"steps! int>=1: number of turns it may take\n" \
	"temperature num; top_p num; variant; mode!; hidden bool; expose_to_user bool; tools [str]; skills [str]\n" \
	"prompt: its system prompt\n" \
	"warnings [str]: unusual settings"

static const struct tool native[] = {
	{
		.name = "list_subagents", .title = "List subagents", .traits = RO, .call = tool_list_subagents,
		.render = render_list,
		.description = "Lists the declared subagents, the purpose of each, and declarations that could not be read.",
		.result =
			"subagents! [{" SUBAGENT "}]: by id\n"
			"problems [obj]: declarations that were left out, and why",
	},
	{
		.name = "get_subagent", .title = "Show a subagent", .traits = RO, .call = tool_get_subagent,
		.description = "Shows a declared subagent with its system prompt.",
		.args = "id!: id from list_subagents",
		.result = SUBAGENT,
	},
	{0},
};
/* clang-format on */

const struct family subagents_family = {
	.name = "subagents",
	.about = "Subagents declared in subagents/.",
	.tools = native,
	.prompt = subagents_sections,
	.commands = subagents_commands,
	.check = subagents_check,
};
