/* SPDX-License-Identifier: Apache-2.0 */
/* Knowledge in the prompt: its entry as text, of the other files the paths. */
#include "base/limits.h"
#include "home/knowledge/knowledge.h"

#define ENTRY "knowledge/KNOWLEDGE.md"

static void take_path(struct prompt_find *find, const struct store_entry *file)
{
	struct buf line;

	if (prompt_is_hidden(file->path.s) || str_is(file->path.s, ENTRY))
		return;
	buf_init(&line, find->ctx->arena, 8 * PATH_LEN_MAX);
	buf_lit(&line, "- ");
	prompt_escape_line(&line, file->path.s, PATH_LEN_MAX);
	buf_char(&line, '\n');
	prompt_add_line(find, file->path.s, STR(""), buf_str(&line));
}

static int find_paths(struct prompt_find *find, struct err *err)
{
	return prompt_find_below(find, "knowledge", PROMPT_DEPTH_MAX, take_path, err);
}

const struct prompt_section knowledge_sections[] = {
	{"knowledge", PROMPT_STATIC, 60, PROMPT_TEXT, 15, 5, .rest = "read_knowledge shows the rest", .file = ENTRY},
	{"knowledge_files", PROMPT_STATIC, 70, PROMPT_LIST, 5, 1, "Read with read_knowledge what the task needs.\n",
	 "knowledge_list shows them", .find = find_paths},
	{0},
};
