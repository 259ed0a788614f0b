/* SPDX-License-Identifier: Apache-2.0 */
/* Subagents in the prompt: a line for each that is not hidden. */
#include "home/subagents/subagents.h"

#define DIR "subagents/"

static void take(struct prompt_find *find, const struct store_entry *file)
{
	struct str name = str_from(file->path.s, strlen(DIR));

	if (str_ends(name, STR(".md")) && name.ptr[0] != '.' && name.ptr[0] != '_')
		prompt_add_file(find, file->path.s, &file->stat);
}

static int find_subagents(struct prompt_find *find, struct err *err)
{
	if (config_disables(workspace_config(find->ws), "subagents"))
		return 0;
	return prompt_find_below(find, "subagents", 0, take, err);
}

static int read_subagent(struct prompt_read *read, struct buf *text, struct err *err)
{
	struct str id = str_from(read->path, strlen(DIR));
	struct jv *agent;
	int r = subagent_parse(read->ctx->arena, str_first(id, id.len - 3), read->bytes, &agent, err);

	if (r == 0 && !jv_get_bool(agent, "hidden", false))
		prompt_escape_entry(text, jv_get_str(agent, "id"), jv_get_str(agent, "description"));
	return r;
}

const struct prompt_section subagents_sections[] = {
	{"subagents", PROMPT_STATIC, 90, PROMPT_LIST, 5, 2, .rest = "list_subagents shows them", .find = find_subagents,
	 .read = read_subagent},
	{0},
};
