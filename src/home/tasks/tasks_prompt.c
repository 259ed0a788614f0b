/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks in the prompt: those that are still to be done, in the order of list_tasks. */
#include "home/tasks/tasks.h"

static void add_field(struct buf *text, const char *before, struct str value)
{
	if (!value.len)
		return;
	buf_add(text, str_of(before));
	prompt_escape_line(text, value, PROMPT_ENTRY_MAX);
}

static int read_tasks(struct prompt_read *read, struct buf *text, struct err *err)
{
	struct jv *tasks;
	int r = tasks_list(read->ws, read->ctx, STR_NONE, STR_NONE, &tasks, err);

	if (r)
		return r;
	for (const struct jv_member *m = jv_first(tasks); m; m = m->next) {
		if (!task_is_active(m->value))
			continue;
		add_field(text, "- ", jv_get_str(m->value, "short_id"));
		add_field(text, " [", jv_get_str(m->value, "status"));
		add_field(text, ", ", jv_get_str(m->value, "priority"));
		add_field(text, ", due ", jv_get_str(m->value, "deadline"));
		add_field(text, "] ", jv_get_str(m->value, "description"));
		buf_char(text, '\n');
	}
	return 0;
}

const struct prompt_section tasks_sections[] = {
	{"tasks", PROMPT_WORKING, 30, PROMPT_LIST, 20, 3, .rest = "list_tasks shows them", .file = "TASKS.yaml",
	 .read = read_tasks},
	{0},
};
