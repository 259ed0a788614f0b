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

/* The lines of all skills, as they were found: a list for one turn, or the one that a workspace keeps. */
struct skill_lines {
	struct arena *arena; /* of a kept one */
	bool found;
	struct jv *lines; /* [{path, version, line}] */
	struct jv *problems;
};

/* Skills of other layers may be hidden by those of the workspace, so all are asked for together. */
static int list_layers(struct prompt_find *find, struct arena *arena, struct skill_lines *ret, struct err *err)
{
	struct skills skills;
	int r = skills_open(find->ws, find->ctx, &skills, err);

	if (r)
		return r;
	ret->lines = jv_array(arena);
	for (size_t i = 0; i < skills.count; i++) {
		const struct skill *k = &skills.skills[i];
		struct jv *one = jv_object(arena);
		struct buf line;

		buf_init(&line, find->ctx->arena, 64 * KIB);
		prompt_escape_entry(&line, k->name, k->description);
		jv_set_str(arena, one, "path",
			   arena_printf(arena, "%.*s (%.*s)", STR_ARG(k->name), STR_ARG(k->source)));
		jv_set_str(arena, one, "version", arena_str(arena, k->version));
		jv_set_str(arena, one, "line", arena_str(arena, buf_str(&line)));
		jv_push(arena, ret->lines, one);
	}
	ret->problems = skills.problems ? jv_copy(arena, skills.problems) : NULL;
	ret->found = true;
	skills_close(&skills);
	return 0;
}

static void *kept_new(struct workspace *ws)
{
	struct skill_lines *kept = xcalloc(1, sizeof *kept);

	(void)ws;
	kept->arena = arena_new();
	return kept;
}

static void kept_destroy(void *state)
{
	arena_destroy(((struct skill_lines *)state)->arena);
	free(state);
}

/* The prompt of a workspace is made by one thread at a time, so what is kept needs no lock. */
static int find_in_layers(struct prompt_find *find, bool once, struct err *err)
{
	static const char key;
	struct skill_lines own = {.arena = find->ctx->arena}, *all = &own;
	int r = 0;

	if (once)
		all = workspace_slot(find->ws, &key, kept_new, kept_destroy);
	if (!all->found)
		r = list_layers(find, all->arena, all, err);
	if (r)
		return r;
	find->is_unwatched = true;
	for (const struct jv_member *m = jv_first(all->lines); m; m = m->next)
		prompt_add_line(find, jv_get_str(m->value, "path"), jv_get_str(m->value, "version"),
				jv_get_str(m->value, "line"));
	for (const struct jv_member *m = jv_first(all->problems); m; m = m->next)
		prompt_add_unusable(find, jv_get_str(m->value, "path"), jv_get_str(m->value, "problem"));
	return 0;
}

static int find_skills(struct prompt_find *find, struct err *err)
{
	const struct jv *settings = jv_get(workspace_config(find->ws)->document, "skills");

	bool once = config_disables(workspace_config(find->ws), "dynamic_skills");

	if (once || jv_get_str(settings, "global_dir").len || jv_count(jv_get(settings, "repositories")))
		return find_in_layers(find, once, err);
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
	 "If one of these fits a task, load it first with load_skill.\n", "list_skills shows them", .find = find_skills,
	 .read = read_skill},
	{0},
};
