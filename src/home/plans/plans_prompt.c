/* SPDX-License-Identifier: Apache-2.0 */
/* Planning in the prompt: the session's plan and to-do list, and whether plan mode is on. */
#include "home/plans/plans.h"

static int find_plan(struct prompt_find *find, struct err *err)
{
	struct wpath plan, state;

	plan_places(find->ws, find->ctx, &plan, &state);
	return prompt_find_file(find, plan.s, err);
}

static int find_todo(struct prompt_find *find, struct err *err)
{
	struct wpath plan, state;

	plan_places(find->ws, find->ctx, &plan, &state);
	return prompt_find_file(find, state.s, err);
}

static int read_todo(struct prompt_read *read, struct buf *text, struct err *err)
{
	struct jv *plan, *todo;
	int r = plan_look(read->ws, read->ctx, false, &plan, err);

	if (r == 0)
		r = todo_read(read->ws, read->ctx, &todo, err);
	if (r)
		return r;
	if (jv_get_bool(plan, "active", false))
		buf_lit(text, "Plan mode is on: tools that change something are refused until plan_exit.\n");
	for (const struct jv_member *m = jv_first(jv_get(todo, "todos")); m; m = m->next) {
		struct str status = jv_get_str(m->value, "status"), content = jv_get_str(m->value, "content");

		if (content.len) {
			buf_printf(text, "- [%c] ",
				   str_is(status, "completed")     ? 'x'
				   : str_is(status, "in_progress") ? '~'
								   : ' ');
			prompt_escape_line(text, content, PROMPT_ENTRY_MAX);
		}
		buf_char(text, '\n');
	}
	return 0;
}

const struct prompt_section plans_sections[] = {
	{"plan", PROMPT_WORKING, 40, PROMPT_TEXT, 20, 5, .rest = "plan_read shows the rest", .find = find_plan},
	{"todo", PROMPT_WORKING, 50, PROMPT_LIST, 15, 4, .rest = "todo_read shows them", .find = find_todo,
	 .read = read_todo},
	{0},
};
