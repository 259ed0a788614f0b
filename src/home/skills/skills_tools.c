/* SPDX-License-Identifier: Apache-2.0 */
/* list_skills, load_skill, skill_manage, propose_skill. */
#include "home/skills/skills_tools.h"

#include "home/files/home_page.h"
#include "home/skills/skills.h"
#include "tool/call.h"
#include "tool/family.h"

static int tool_list_skills(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	struct jv *list = jv_array(arena), *drafts;
	struct skills skills;
	int r = skills_open(call->ws, call->ctx, &skills, err);

	(void)args;
	if (r)
		return r;
	for (size_t i = 0; i < skills.count; i++)
		jv_push(arena, list, skill_value(arena, &skills.skills[i]));
	skills_close(&skills);
	ret->value = jv_object(arena);
	jv_set(arena, ret->value, "skills", list);
	if (jv_count(skills.problems))
		jv_set(arena, ret->value, "problems", skills.problems);
	r = skill_drafts(call->ws, call->ctx, &drafts, err);
	if (r == 0 && jv_count(drafts))
		jv_set(arena, ret->value, "drafts", drafts);
	return r;
}

static void render_list(const struct jv *args, const struct jv *value, struct buf *text)
{
	(void)args;
	if (!jv_count(jv_get(value, "skills")))
		buf_lit(text, "there are no skills");
	for (const struct jv_member *m = jv_first(jv_get(value, "skills")); m; m = m->next) {
		buf_printf(text, "%s%.*s (%.*s): ", text->len ? "\n" : "", STR_ARG(jv_get_str(m->value, "name")),
			   STR_ARG(jv_get_str(m->value, "source")));
		buf_add(text, utf8_first(jv_get_str(m->value, "description"), KIB));
	}
	for (const struct jv_member *m = jv_first(jv_get(value, "drafts")); m; m = m->next)
		buf_printf(text, "\n%.*s (draft, %.*s)", STR_ARG(jv_get_str(m->value, "name")),
			   STR_ARG(jv_get_str(m->value, "verdict")));
	for (const struct jv_member *m = jv_first(jv_get(value, "problems")); m; m = m->next) {
		struct str path = jv_get_str(m->value, "path");

		buf_printf(text, "\nleft out: %.*s%s%.*s%s: %.*s", STR_ARG(path), path.len ? " (" : "",
			   STR_ARG(jv_get_str(m->value, "source")), path.len ? ")" : "",
			   STR_ARG(jv_get_str(m->value, "problem")));
	}
}

/* --- reading --- */

static int no_file(struct call *call, const struct skill *skill, struct str path, struct err *err)
{
	struct jv *files;
	struct err ignored;
	struct buf list;

	buf_init(&list, call->ctx->arena, 300);
	buf_lit(&list, "SKILL.md");
	if (skill_files(call->ctx, skill, &files, &ignored) == 0)
		for (const struct jv_member *m = jv_first(files); m; m = m->next)
			buf_printf(&list, ", %.*s", STR_ARG(jv_get_str(m->value, "path")));
	return err_set(err, ERR_NOT_FOUND, "the skill %.*s has no file \"%.*s\"; it has %.*s%s", STR_ARG(skill->name),
		       STR_ARG(utf8_first(path, 80)), STR_ARG(utf8_first(buf_str(&list), 260)),
		       list.overflow ? " …" : "");
}

static int load_from(struct call *call, const struct skill *skill, const struct jv *args, struct outcome *ret,
		     struct err *err)
{
	struct arena *arena = call->ctx->arena;
	struct str text = jv_get_str(args, "path");
	struct wpath relative = {STR("SKILL.md")}, path;
	struct jv *files;
	int r = text.len ? wpath_parse_lenient(arena, text, &relative, err) : 0;

	if (r == 0)
		r = wpath_join(arena, skill->dir, relative, &path, err);
	if (r)
		return r;
	ret->value = skill_value(arena, skill);
	jv_set_str(arena, ret->value, "file", relative.s);
	r = wpath_is_root(relative) ? -ERR_NOT_FOUND : home_read_page(call, skill->store, path, args, ret->value, err);
	if (r == -ERR_NOT_FOUND || (r == -ERR_INVALID && !wpath_is_root(relative)))
		return no_file(call, skill, relative.s, err);
	if (r == 0 && str_is(relative.s, "SKILL.md")) {
		r = skill_files(call->ctx, skill, &files, err);
		if (r == 0)
			jv_set(arena, ret->value, "resources", files);
	}
	return r;
}

int tool_load_skill(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	const struct skill *skill;
	struct skills skills;
	int r = skills_open_named(call->ws, call->ctx, jv_get_str(args, "name"), &skills, err);

	if (r)
		return r;
	skill = skills_find(&skills, jv_get_str(args, "name"));
	r = skill ? load_from(call, skill, args, ret, err)
		  : skills_unknown(call->ctx->arena, &skills, jv_get_str(args, "name"), err);
	skills_close(&skills);
	return r;
}

void render_skill(const struct jv *args, const struct jv *value, struct buf *text)
{
	const struct jv *files = jv_get(value, "resources");

	render_home_page(args, value, text);
	if (!jv_count(files))
		return;
	buf_lit(text, "\n\nOther files of this skill (load them with path):");
	for (const struct jv_member *m = jv_first(files); m; m = m->next)
		buf_printf(text, "\n- %.*s (%lld bytes)", STR_ARG(jv_get_str(m->value, "path")),
			   (long long)jv_get_int(m->value, "size", 0));
}

/* --- as prompts --- */

/* Who may not load a skill gets none as a prompt either. */
static int list_skill_prompts(struct call *call, struct jv *list, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	struct skills skills;
	int r = prompt_offers(call->set, "load_skill") ? skills_open(call->ws, call->ctx, &skills, err)
						       : -ERR_NOT_FOUND;

	if (r)
		return r == -ERR_NOT_FOUND ? 0 : r;
	for (size_t i = 0; i < skills.count; i++) {
		struct jv *v = jv_object(arena);

		jv_set_str(arena, v, "name", arena_str(arena, skills.skills[i].name));
		jv_set_str(arena, v, "description", arena_str(arena, skills.skills[i].description));
		jv_push(arena, list, v);
	}
	skills_close(&skills);
	return 0;
}

static int get_skill_prompt(struct call *call, struct str name, struct str *ret_text, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	struct jv *args = jv_object(arena);
	struct outcome out = {0};
	struct buf text;
	int r;

	if (!prompt_offers(call->set, "load_skill"))
		return err_set(err, ERR_NOT_FOUND, "skills are not offered here");
	jv_set_str(arena, args, "name", name);
	r = tool_load_skill(call, args, &out, err);
	if (r)
		return r;
	buf_init(&text, arena, TOOL_TEXT_MAX);
	render_skill(args, out.value, &text);
	*ret_text = buf_str(&text);
	return 0;
}

/* --- writing --- */

static int tool_skill_manage(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct skill_edit edit = {
		.action = jv_get_str(args, "action"),
		.name = jv_get_str(args, "name"),
		.content = jv_get_str(args, "content"),
		.file_path = jv_get_str(args, "file_path"),
		.file_content = jv_get_str(args, "file_content"),
		.old_string = jv_get_str(args, "old_string"),
		.new_string = jv_get_str(args, "new_string"),
		.replace_all = jv_get_bool(args, "replace_all", false),
		.absorbed_into = jv_get_str(args, "absorbed_into"),
	};

	return skill_manage(call->ws, call->ctx, &edit, &ret->value, err);
}

static int tool_propose_skill(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	return skill_propose(call->ws, call->ctx, jv_get_str(args, "name"), jv_get_str(args, "description"),
			     jv_get_str(args, "body"), jv_get(args, "scripts"), &ret->value, err);
}

static void render_managed(const struct jv *args, const struct jv *value, struct buf *text)
{
	(void)args;
	buf_printf(text, "%.*s %.*s: %.*s", STR_ARG(jv_get_str(value, "action")), STR_ARG(jv_get_str(value, "name")),
		   STR_ARG(jv_get_str(value, "note")));
	if (jv_get(value, "match") && !str_is(jv_get_str(value, "match"), "exact"))
		buf_printf(text, "\nmatched with different white space (%.*s)", STR_ARG(jv_get_str(value, "match")));
	for (const struct jv_member *m = jv_first(jv_get(value, "findings")); m; m = m->next)
		buf_printf(text, "\nthe scan: %.*s line %lld %.*s (%.*s, %.*s)", STR_ARG(jv_get_str(m->value, "path")),
			   (long long)jv_get_int(m->value, "line", 0), STR_ARG(jv_get_str(m->value, "what")),
			   STR_ARG(jv_get_str(m->value, "class")), STR_ARG(jv_get_str(m->value, "severity")));
}

/* clang-format off */
#define MANAGED \
	"name!; action!; path!; draft! bool; verdict!\n" \
	"findings [obj]: findings of the scan: path, line, class, severity, what\n" \
	"match: how a patch matched: exact, trailing_blanks or blanks\n" \
	"note!"
#define DETAILS "license any; compatibility any; allowed_tools any; metadata any; warnings [str]"

static const struct tool native[] = {
	{
		.name = "list_skills", .title = "List skills", .traits = RO | TOOL_BASIC, .call = tool_list_skills, .render = render_list,
		.description = "Lists skills and when to use them, drafts, and skills that could not be read.",
		.result =
			"skills! [{name!; description!; source!; path!; " DETAILS "}]: by name\n"
			"drafts [obj]: skills that are not promoted yet\n"
			"problems [obj]: skills that were left out, and why",
	},
	{
		.name = "load_skill", .title = "Load a skill", .traits = RO | TOOL_BASIC, .call = tool_load_skill, .render = render_skill,
		.description = "Reads the instructions of a skill, or another of its files.",
		.args =
			"name!: name from list_skills\n"
			"path: a file of the skill (default SKILL.md)\n"
			PAGE_ARGS,
		.result =
			"name!; description; source; path; " DETAILS "; file!; " PAGE_RESULT "\n"
			"resources [obj]: its other files: path, size",
	},
	{
		.name = "skill_manage", .title = "Write a skill", .traits = TOOL_DESTRUCTIVE, .call = tool_skill_manage,
		.render = render_managed,
		.description =
			"Creates or changes a skill as a draft, which takes effect when a person promotes it. create and edit "
			"take the whole SKILL.md (name and description between --- lines, then the instructions); patch "
			"replaces a text; write_file and remove_file act on files in references/, templates/, scripts/ or "
			"assets/; delete archives the skill.",
		.args =
			"action! create|edit|patch|write_file|remove_file|delete: what to do\n"
			"name!: the skill: lower-case letters, digits, hyphens\n"
			"content: create, edit: the whole SKILL.md\n"
			"old_string: patch: the exact text to replace\n"
			"new_string: patch: the text that replaces it\n"
			"replace_all bool: patch: replace every occurrence\n"
			"file_path: patch, write_file, remove_file: a file of the skill (patch: default SKILL.md)\n"
			"file_content: write_file: what to write\n"
			"absorbed_into: delete: the skill that replaces it",
		.result = MANAGED,
	},
	{
		.name = "propose_skill", .title = "Propose a skill", .call = tool_propose_skill, .render = render_managed,
		.description = "Writes a new skill as a draft for a person to review: purpose, instructions and scripts.",
		.args =
			"name!: lower-case letters, digits, hyphens\n"
			"description!: what it does and when to use it, at most 1024 characters\n"
			"body!: the instructions, in Markdown\n"
			"scripts [{path!: in scripts/, references/, templates/ or assets/; content!: what to write}]: files of "
			"the skill",
		.result = MANAGED,
	},
	{0},
};
/* clang-format on */

const struct family skills_family = {
	.name = "skills",
	.about = "Instructions for recurring work, in skills/.",
	.tools = native,
	.prompt = skills_sections,
	.commands = skills_commands,
	.check = skills_check,
	.list_prompts = list_skill_prompts,
	.get_prompt = get_skill_prompt,
};
