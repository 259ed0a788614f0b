/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks in the prompt: those that are still to be done, in the order of list_tasks. */
#include "home/tasks/tasks_internal.h"

static void add_field(struct buf *text, const char *before, struct str value)
{
	if (!value.len)
		return;
	buf_add(text, str_of(before));
	prompt_escape_line(text, value, PROMPT_ENTRY_MAX);
}

static void take(struct prompt_find *find, const struct store_entry *file)
{
	struct str id;

	if (task_file_id(file->path, &id))
		prompt_add_file(find, file->path.s, &file->stat);
}

static int find_tasks(struct prompt_find *find, struct err *err)
{
	int r = prompt_find_file(find, TASKS_PATH.s, err);

	return r ? r : prompt_find_below(find, TASKS_DIR, 1, take, err);
}

static int read_tasks(struct prompt_read *read, struct buf *text, struct err *err)
{
	struct jv *tasks, **all;
	size_t n = 0;
	int r = tasks_read(read->ws, read->ctx, (struct wpath){read->path}, &tasks, err);

	if (r)
		return r;
	all = ARENA_ARRAY(read->ctx->arena, struct jv *, jv_count(tasks) + 1);
	for (const struct jv_member *m = jv_first(tasks); m; m = m->next)
		all[n++] = m->value;
	tasks_set_short_ids(read->ctx->arena, all, n);
	for (size_t i = 0; i < n; i++) {
		if (!task_is_active(all[i]))
			continue;
		prompt_escape_line(text, task_rank(read->ctx->arena, all[i]), PROMPT_ENTRY_MAX);
		buf_char(text, PROMPT_KEY_END);
		add_field(text, "- ", jv_get_str(all[i], "short_id"));
		add_field(text, " [", jv_get_str(all[i], "status"));
		add_field(text, ", ", jv_get_str(all[i], "priority"));
		add_field(text, ", due ", jv_get_str(all[i], "deadline"));
		add_field(text, "] ", jv_get_str(all[i], "description"));
		buf_char(text, '\n');
	}
	return 0;
}

const struct prompt_section tasks_sections[] = {
	{"tasks", PROMPT_WORKING, 30, PROMPT_SORTED, 20, 3, .rest = "list_tasks shows them", .find = find_tasks,
	 .read = read_tasks},
	{0},
};
