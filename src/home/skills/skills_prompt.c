/* SPDX-License-Identifier: Apache-2.0 */
/* Skills in the prompt: name and description of each, of all layers. */
#include "base/limits.h"
#include "home/skills/skills.h"

#define DIR "skills/"

static void take(struct prompt_find *find, const struct store_entry *file)
{
	struct str rest = str_from(file->path.s, strlen(DIR)), name;

	if (str_cut(&rest, '/', &name) && name.len && name.ptr[0] != '.' && name.ptr[0] != '_' &&
	    str_is(rest, "SKILL.md"))
		prompt_add_file(find, file->path.s, &file->stat);
}

/* Skills of other layers may be hidden by those of the workspace, so all are asked for together. */
static int find_in_layers(struct prompt_find *find, struct err *err)
{
	struct arena *arena = find->ctx->arena;
	struct skills skills;
	int r = skills_open(find->ws, find->ctx, &skills, err);

	if (r)
		return r;
	find->is_unwatched = true;
	for (size_t i = 0; i < skills.count; i++) {
		const struct skill *k = &skills.skills[i];
		struct buf line;

		buf_init(&line, arena, 64 * KIB);
		prompt_escape_entry(&line, k->name, k->description);
		prompt_add_line(find, arena_printf(arena, "%.*s (%.*s)", STR_ARG(k->name), STR_ARG(k->source)),
				k->version, buf_str(&line));
	}
	for (const struct jv_member *m = jv_first(skills.problems); m; m = m->next)
		prompt_add_unusable(find, jv_get_str(m->value, "path"), jv_get_str(m->value, "problem"));
	skills_close(&skills);
	return 0;
}

static int find_skills(struct prompt_find *find, struct err *err)
{
	const struct jv *settings = jv_get(workspace_config(find->ws)->document, "skills");

	if (jv_get_str(settings, "global_dir").len || jv_count(jv_get(settings, "repositories")))
		return find_in_layers(find, err);
	return prompt_find_below(find, "skills", 1, take, err);
}

static int read_skill(struct prompt_read *read, struct buf *text, struct err *err)
{
	struct str dir = str_from(read->path, strlen(DIR));
	struct skill skill;
	int r = skill_parse(read->ctx->arena, str_first(dir, str_find_char(dir, '/')), read->bytes, &skill, err);

	if (r == 0)
		prompt_escape_entry(text, skill.name, skill.description);
	return r;
}

const struct prompt_section skills_sections[] = {
	{"skills", PROMPT_STATIC, 80, PROMPT_LIST, 10, 3,
	 "Before a task that one of these fits, load it with load_skill.\n", "list_skills shows them",
	 .find = find_skills, .read = read_skill},
	{0},
};
