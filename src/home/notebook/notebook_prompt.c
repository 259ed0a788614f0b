/* SPDX-License-Identifier: Apache-2.0 */
/* The notebook in the prompt: how it is used and with whom, and the notes that matter now. */
#include "home/notebook/notebook_internal.h"

#define QUESTIONS 20
#define NOTES     40

static int make_notebook(struct prompt_made *made, struct err *err)
{
	const struct jv *mates = workspace_config(made->ws)->teammates;
	struct str *names = ARENA_ARRAY(made->ctx->arena, struct str, jv_count(mates) + 1);
	size_t n = 0;

	(void)err;
	for (const struct jv_member *m = jv_first(mates); m; m = m->next)
		names[n++] = jv_str_of(m->value);
	if (prompt_offers(made->set, "note"))
		prompt_escape(&made->text,
			      offered_lines(made->ctx->arena, made->set,
					    notebook_prompt(workspace_notebook(made->ws), made->ctx, names, n)));
	return 0;
}

static void add_note(struct buf *text, const struct note *n)
{
	buf_lit(text, "- ");
	prompt_escape_line(text, n->slug, 200);
	buf_lit(text, " (");
	prompt_escape_line(text, n->author, 100);
	buf_printf(text, ", %s%.*s): ", n->answer == NOTE_OPEN ? "open " : "", STR_ARG(n->kind));
	prompt_escape_line(text, n->title, 200);
	buf_char(text, '\n');
}

/* Open questions first, then the last updated. */
static int make_notes(struct prompt_made *made, struct err *err)
{
	struct note_query questions = {.open_questions = true, .limit = QUESTIONS}, newest = {.limit = NOTES};
	struct notebook *nb = workspace_notebook(made->ws);
	struct note_list open, all;
	uint64_t shown;
	int r = notebook_list(nb, made->ctx, &newest, &all, err);

	if (r == 0 && all.total)
		r = notebook_list(nb, made->ctx, &questions, &open, err);
	if (r || !all.total)
		return r;
	shown = open.count;
	for (size_t i = 0; i < open.count; i++)
		add_note(&made->text, &open.notes[i]);
	for (size_t i = 0; i < all.count; i++)
		if (all.notes[i].answer != NOTE_OPEN) {
			add_note(&made->text, &all.notes[i]);
			shown++;
		}
	made->sources = STR("notes/");
	made->more = all.total > shown ? all.total - shown : 0;
	for (size_t i = 0; i < all.problem_count && i < 20; i++)
		prompt_add_problem(made, all.problems[i].path, all.problems[i].why);
	return 0;
}

const struct prompt_section notebook_sections[] = {
	{"notebook", PROMPT_STATIC, 40, PROMPT_TEXT, PROMPT_WHOLE, 6, .make = make_notebook},
	{"notes", PROMPT_WORKING, 10, PROMPT_LIST, 15, 1, .rest = "list_notes shows them\nsearch_notes finds them",
	 .make = make_notes, .derived = "WORKSPACE.md"},
	{0},
};
