/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list_skills, load_skill, skill_manage, propose_skill. AgentScope's load_skill_through_path has the same reading with
 * its own names, its header and its fence; skill_manage and propose_skill are AgentScope's names already.
 */
#include "home/skills/skills_tools.h"

#include "home/files/home_page.h"
#include "home/skills/skills.h"
#include "tool/call.h"
#include "tool/family.h"
#include "tool/schemas.h"

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
	for (const struct jv_member *m = jv_first(jv_get(value, "problems")); m; m = m->next)
		buf_printf(text, "\nleft out: %.*s (%.*s): %.*s", STR_ARG(jv_get_str(m->value, "path")),
			   STR_ARG(jv_get_str(m->value, "source")), STR_ARG(jv_get_str(m->value, "problem")));
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

static int tool_load_skill(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	const struct skill *skill;
	struct skills skills;
	int r = skills_open(call->ws, call->ctx, &skills, err);

	if (r)
		return r;
	skill = skills_find(&skills, jv_get_str(args, "name"));
	r = skill ? load_from(call, skill, args, ret, err)
		  : skills_unknown(call->ctx->arena, &skills, jv_get_str(args, "name"), err);
	skills_close(&skills);
	return r;
}

static void render_load(const struct jv *args, const struct jv *value, struct buf *text)
{
	const struct jv *files = jv_get(value, "resources");

	render_home_page(args, value, text);
	if (!jv_count(files))
		return;
	buf_lit(text, "\n\nFiles of this skill, to be loaded with path:");
	for (const struct jv_member *m = jv_first(files); m; m = m->next)
		buf_printf(text, "\n- %.*s (%lld bytes)", STR_ARG(jv_get_str(m->value, "path")),
			   (long long)jv_get_int(m->value, "size", 0));
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
		buf_printf(text, "\nmatched with other blanks (%.*s)", STR_ARG(jv_get_str(value, "match")));
	for (const struct jv_member *m = jv_first(jv_get(value, "findings")); m; m = m->next)
		buf_printf(text, "\nthe scan: %.*s line %lld %.*s (%.*s, %.*s)", STR_ARG(jv_get_str(m->value, "path")),
			   (long long)jv_get_int(m->value, "line", 0), STR_ARG(jv_get_str(m->value, "what")),
			   STR_ARG(jv_get_str(m->value, "class")), STR_ARG(jv_get_str(m->value, "severity")));
}

/* --- AgentScope --- */

static int scope_load(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	START("skillId", "name", "path", "path", NULL);
	struct str file, name;

	r = tool_load_skill(call, mapped, ret, err);
	if (r)
		return r;
	file = jv_get_str(ret->value, "file");
	name = jv_get_str(ret->value, "name");
	if (str_is(file, "SKILL.md"))
		buf_printf(&text, "Skill: %.*s_%.*s\nName: %.*s\nDescription: %.*s\nSource: %.*s\n\n````\n",
			   STR_ARG(name), STR_ARG(jv_get_str(ret->value, "source")), STR_ARG(name),
			   STR_ARG(jv_get_str(ret->value, "description")), STR_ARG(jv_get_str(ret->value, "source")));
	if (str_is(file, "SKILL.md")) {
		buf_add(&text, jv_get_str(ret->value, "content"));
		buf_lit(&text, "\n````");
		jv_remove(ret->value, "content");
	}
	render_load(args, ret->value, &text);
	text_reply(ret, &text);
	return 0;
}

/* clang-format off */
#define FINDING "{\"type\":\"object\"}"
#define R_SKILL S_BARE("name", "string") AND S_BARE("description", "string") AND S_BARE("source", "string") AND \
	S_BARE("path", "string") AND "\"license\":{}" AND "\"compatibility\":{}" AND "\"allowed_tools\":{}" AND \
	"\"metadata\":{}" AND S_LIST("warnings", "{\"type\":\"string\"}", "what is odd about it")
#define R_MANAGED S_OBJ( \
	S_BARE("name", "string") AND S_BARE("action", "string") AND S_BARE("path", "string") AND \
	S_BARE("draft", "boolean") AND S_BARE("verdict", "string") AND \
	S_LIST("findings", FINDING, "of the scan: path, line, class, severity, what") AND \
	S_STR("match", "of a patch: exact, trailing_blanks or blanks") AND S_BARE("note", "string"), \
	"\"name\",\"action\",\"path\",\"draft\",\"verdict\",\"note\"")

#define AUTHOR_TOOLS(OUT) \
	{.name = "skill_manage", .title = "Write a skill", .group = "skills", .call = tool_skill_manage, \
	 .render = render_managed, .traits = TOOL_DESTRUCTIVE, \
	 .description = "Makes or changes a skill as a draft, which counts when a person has promoted it. create and edit take " \
		"the whole SKILL.md (a head with name and description between --- lines, then instructions); patch replaces " \
		"a text; write_file and remove_file are for files in references/, templates/, scripts/, assets/; delete " \
		"archives.", \
	 .input_schema = S_OBJ( \
		S_ENUM("action", "\"create\",\"edit\",\"patch\",\"write_file\",\"remove_file\",\"delete\"", "what to do") AND \
		S_STR("name", "the skill: small letters, digits, hyphens") AND \
		S_STR("content", "create, edit: the whole SKILL.md") AND \
		S_STR("old_string", "patch: text that is there") AND \
		S_STR("new_string", "patch: text in its place") AND \
		S_BOOL("replace_all", "patch: every occurrence (default false)") AND \
		S_STR("file_path", "patch, write_file, remove_file: a file of the skill (patch: default SKILL.md)") AND \
		S_STR("file_content", "write_file: what to write") AND \
		S_STR("absorbed_into", "delete: the skill that has it now"), "\"action\",\"name\""), OUT}, \
	{.name = "propose_skill", .title = "Propose a skill", .group = "skills", .acts_as = PROPOSE_AS, \
	 .call = tool_propose_skill, .render = render_managed, \
	 .description = "Writes a new skill as a draft for a person to look at: what it is for, instructions, and scripts.", \
	 .input_schema = S_OBJ( \
		S_STR("name", "small letters, digits, hyphens") AND \
		S_STR("description", "what it does and when to use it, at most 1024 characters") AND \
		S_STR("body", "the instructions, Markdown") AND \
		S_LIST("scripts", S_OBJ(S_STR("path", "in scripts/, references/, templates/ or assets/") AND \
			S_STR("content", "what to write"), "\"path\",\"content\""), "files beside it"), \
		"\"name\",\"description\",\"body\""), OUT},

#define PROPOSE_AS NULL
static const struct tool native[] = {
	{.name = "list_skills", .title = "List skills", .group = "skills", .call = tool_list_skills, .render = render_list,
	 .description = "What skills there are and when to use them; also drafts, and those that could not be read.",
	 .traits = RO, .input_schema = S_NONE,
	 .output_schema = S_OBJ(S_LIST("skills", S_OBJ(R_SKILL, "\"name\",\"description\",\"source\",\"path\""), "by name") AND
		S_LIST("drafts", "{\"type\":\"object\"}", "not promoted yet") AND
		S_LIST("problems", "{\"type\":\"object\"}", "what was left out and why"), "\"skills\"")},
	{.name = "load_skill", .title = "Load a skill", .group = "skills", .call = tool_load_skill, .render = render_load,
	 .description = "Reads the instructions of a skill, or another of its files.",
	 .traits = RO, .input_schema = S_OBJ(
		S_STR("name", "of list_skills") AND
		S_STR("path", "a file of the skill (default SKILL.md)") AND S_PAGE, "\"name\""),
	 .output_schema = S_OBJ(R_SKILL AND S_BARE("file", "string") AND R_PAGE AND
		S_LIST("resources", "{\"type\":\"object\"}", "its other files: path, size"), "\"name\",\"file\",\"content\"")},
	AUTHOR_TOOLS(.output_schema = R_MANAGED)
	{0},
};
#undef PROPOSE_AS
#define PROPOSE_AS "skill_manage"
static const struct tool agentscope[] = {
	{.name = "load_skill_through_path", .title = "Load a skill", .group = "skills", .acts_as = "load_skill",
	 .call = scope_load, .traits = RO,
	 .description = "Reads a skill's SKILL.md, or one of the files that it lists.",
	 .input_schema = S_OBJ(
		S_STR("skillId", "the id or the name of the skill") AND
		S_STR("path", "SKILL.md, or a file of the skill"), "\"skillId\",\"path\"")},
	AUTHOR_TOOLS(.output_schema = NULL)
	{0},
};
/* clang-format on */

const struct tool_group agentscope_skill_tools = {agentscope, COUNT(agentscope)};

const struct family skills_family = {
	.name = "skills",
	.tools = native,
	.commands = skills_commands,
	.check = skills_check,
};
