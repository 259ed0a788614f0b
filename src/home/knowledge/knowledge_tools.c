/* SPDX-License-Identifier: Apache-2.0 */
/* knowledge_list and read_knowledge: knowledge/ is outside the tool root of the file tools. */
#include "home/files/home_page.h"
#include "home/knowledge/knowledge.h"
#include "tool/call.h"
#include "tool/family.h"

static int tool_knowledge_list(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct knowledge_query query = {.under = jv_get_str(args, "under"),
					.after = jv_get_str(args, "cursor"),
					.limit = (size_t)arg_count(args, "limit", 0, KNOWLEDGE_LIST_MAX)};

	return knowledge_list(call->ws, call->ctx, &query, &ret->value, err);
}

static void render_list(const struct jv *args, const struct jv *value, struct buf *text)
{
	const struct jv *files = jv_get(value, "files");

	(void)args;
	if (!jv_count(files))
		buf_lit(text, "there are no knowledge files yet");
	for (const struct jv_member *m = jv_first(files); m; m = m->next) {
		struct str title = jv_get_str(m->value, "title");

		buf_printf(text, "%s%.*s (", text->len ? "\n" : "", STR_ARG(jv_get_str(m->value, "path")));
		buf_size(text, (uint64_t)jv_get_int(m->value, "size", 0));
		buf_printf(text, ")%s%.*s", title.len ? ": " : "", STR_ARG(title));
	}
	if (jv_get(value, "next"))
		buf_printf(text, "\n[more: cursor=%.*s]", STR_ARG(jv_get_str(value, "next")));
}

static int tool_read_knowledge(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	struct str text = jv_get_str(args, "path");
	struct wpath path;
	int r = knowledge_path(arena, text.len ? text : STR("KNOWLEDGE.md"), &path, err);

	if (r)
		return r;
	ret->value = jv_object(arena);
	jv_set_str(arena, ret->value, "path", path.s);
	r = home_read_page(call, workspace_home(call->ws), path, args, ret->value, err);
	if (r == -ERR_NOT_FOUND)
		return err_set(err, ERR_NOT_FOUND, "there is no %.*s; knowledge_list lists the files", STR_ARG(path.s));
	return r;
}

/* clang-format off */
static const struct tool native[] = {
	{
		.name = "knowledge_list", .title = "List knowledge", .traits = RO, .call = tool_knowledge_list,
		.render = render_list,
		.description = "Lists the reference files that people wrote for you, with their titles, by path.",
		.args =
			"under: only files below this directory\n"
			"limit int>=1: number of files (default 200)\n"
			"cursor: next of the previous page",
		.result =
			"entry! bool: whether there is a KNOWLEDGE.md\n"
			"files! [{path!; size! int; title}]: by path\n"
			"next",
	},
	{
		.name = "read_knowledge", .title = "Read knowledge", .traits = RO, .call = tool_read_knowledge,
		.render = render_home_page,
		.description = "Reads a reference file by lines.",
		.args =
			"path: path from knowledge_list (default KNOWLEDGE.md)\n"
			PAGE_ARGS,
		.result = "path!; " PAGE_RESULT,
	},
	{0},
};
/* clang-format on */

const struct family knowledge_family = {
	.name = "knowledge",
	.about = "Reference files that people wrote for agents, in knowledge/.",
	.tools = native,
	.search = knowledge_sources,
	.prompt = knowledge_sections,
	.commands = knowledge_commands,
};
