/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SKILL.md, read leniently and written strictly. What others wrote is taken as far as it can be understood: a missing
 * name is the directory's, a value with ": " in it (the usual mistake) is quoted for the author. Only a skill without a
 * description, or with a head that no repair makes YAML, is left out: nobody could tell when to use it.
 */
#include <stdarg.h>
#include <stdio.h>

#include "base/limits.h"
#include "home/skills/skills.h"
#include "text/frontmatter.h"
#include "text/yaml.h"

#define NAME_POINTS        64
#define DESCRIPTION_POINTS 1024
#define COMPATIBILITY_MAX  500

bool skill_name_ok(struct str name)
{
	if (!name.len || name.len > NAME_POINTS)
		return false;
	for (size_t i = 0; i < name.len; i++) {
		char c = name.ptr[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && (i == 0 || !memchr("._-", c, 3)))
			return false;
	}
	return true;
}

/* The specification's own rule, in which letters of any script count. */
static bool name_is_by_the_book(struct str name)
{
	for (size_t i = 0; i < name.len; i++) {
		unsigned char c = (unsigned char)name.ptr[i];

		if (c == '-' && (i == 0 || i + 1 == name.len || name.ptr[i - 1] == '-'))
			return false;
		if (c != '-' && !(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c < 128)
			return false;
	}
	return name.len && utf8_count(name) <= NAME_POINTS;
}

/* What can be a name at all: it is looked up and shown, never a path. */
static bool name_is_usable(struct str name)
{
	if (!name.len || utf8_count(name) > NAME_POINTS || !utf8_valid(name))
		return false;
	for (size_t i = 0; i < name.len; i++)
		if ((unsigned char)name.ptr[i] < 32 || name.ptr[i] == 127)
			return false;
	return true;
}

__attribute__((format(printf, 3, 4))) static void warn(struct arena *arena, struct skill *skill, const char *fmt, ...)
{
	char text[300];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	jv_push(arena, skill->warnings, jv_str(arena, arena_str(arena, str_of(text))));
}

/* --- the head, repaired --- */

/* "key: value" at the margin, whose value YAML would misread. */
static bool needs_quotes(struct str line, size_t *ret_value)
{
	size_t colon = str_find_char(line, ':');
	struct str value = str_trim(str_from(line, colon + 1));

	*ret_value = colon + 1;
	if (colon == 0 || colon >= line.len || memchr(" \t#-\"'", line.ptr[0], 6) || !value.len)
		return false;
	if (memchr("\"'|>[{", value.ptr[0], 6))
		return false;
	return str_find(value, STR(": "), 0) != SIZE_MAX || value.ptr[value.len - 1] == ':' ||
	       memchr("*&!%@`", value.ptr[0], 6) != NULL;
}

static struct str repaired(struct arena *arena, struct str text)
{
	struct str rest = text, line;
	unsigned fences = 0;
	struct buf out;
	size_t at;

	buf_init(&out, arena, 2 * text.len + KIB);
	while (fences < 2 && str_cut(&rest, '\n', &line)) {
		struct str bare = str_trim(line);

		fences += str_is(bare, "---");
		if (needs_quotes(line, &at)) {
			buf_add(&out, str_first(line, at));
			buf_char(&out, ' ');
			jv_write_string(&out, str_trim(str_from(line, at)));
		} else {
			buf_add(&out, line);
		}
		buf_char(&out, '\n');
	}
	buf_add(&out, rest);
	return buf_str(&out);
}

/* Skips a byte order mark. */
static struct str without_bom(struct str text)
{
	return str_starts(text, STR("\xEF\xBB\xBF")) ? str_from(text, 3) : text;
}

static int read_head(struct arena *arena, struct str text, struct skill *skill, struct err *err)
{
	struct frontmatter fm;
	struct err second;
	int r = frontmatter_parse(arena, text, &fm, err);

	if (r == -ERR_INVALID && frontmatter_parse(arena, repaired(arena, text), &fm, &second) == 0) {
		warn(arena, skill, "the head is not valid YAML (%.*s); it was read as if the value were in quotes",
		     STR_ARG(utf8_first(err_text(arena, err), 150)));
		r = 0;
	}
	if (r)
		return r;
	if (!fm.has_head)
		return err_set(err, ERR_INVALID,
			       "SKILL.md does not begin with a \"---\" line, a head (name, description) and another "
			       "\"---\" line");
	skill->head = fm.head;
	skill->body = fm.body;
	return 0;
}

/* --- reading --- */

/* A scalar as text: a name like 1.0 is not a number here. */
static struct str scalar(struct arena *arena, const struct jv *v)
{
	struct buf text;

	if (!v || v->type == JV_NULL || v->type == JV_ARRAY || v->type == JV_OBJECT)
		return STR_NONE;
	if (v->type == JV_STR)
		return str_trim(v->u.s);
	buf_init(&text, arena, KIB);
	jv_write(&text, v);
	return buf_str(&text);
}

static int take_name(struct arena *arena, struct str dir_name, struct skill *skill, struct err *err)
{
	struct str name = scalar(arena, jv_get(skill->head, "name"));

	if (!name.len) {
		warn(arena, skill, "the head has no name; the directory's name is used");
		name = dir_name;
	} else if (!name_is_usable(name)) {
		warn(arena, skill, "the name has more than %d characters or is not text; the directory's name is used",
		     NAME_POINTS);
		name = dir_name;
	}
	if (!name_is_usable(name))
		return err_set(err, ERR_INVALID, "the skill has no name of 1 to %d characters", NAME_POINTS);
	if (!str_eq(name, dir_name) && dir_name.len)
		warn(arena, skill, "the name \"%.*s\" differs from the directory's", STR_ARG(name));
	if (!name_is_by_the_book(name))
		warn(arena, skill, "a name should have lower-case letters, digits and single hyphens between them");
	skill->name = name;
	return 0;
}

int skill_parse(struct arena *arena, struct str dir_name, struct str text, struct skill *ret, struct err *err)
{
	struct skill skill = {.warnings = jv_array(arena)};
	int r = read_head(arena, without_bom(text), &skill, err);

	if (r == 0)
		r = take_name(arena, dir_name, &skill, err);
	if (r)
		return r;
	skill.description = scalar(arena, jv_get(skill.head, "description"));
	if (!skill.description.len)
		return err_set(err, ERR_INVALID, "the head of SKILL.md has no description; say what it does and when");
	if (utf8_count(skill.description) > DESCRIPTION_POINTS)
		warn(arena, &skill, "the description has more than %d characters", DESCRIPTION_POINTS);
	if (utf8_count(scalar(arena, jv_get(skill.head, "compatibility"))) > COMPATIBILITY_MAX)
		warn(arena, &skill, "compatibility has more than %d characters", COMPATIBILITY_MAX);
	if (!str_trim(skill.body).len)
		warn(arena, &skill, "there are no instructions after the head");
	ret->name = skill.name;
	ret->description = skill.description;
	ret->head = skill.head;
	ret->body = skill.body;
	ret->warnings = skill.warnings;
	return 0;
}

/* --- writing --- */

static int check_fields(struct arena *arena, const struct jv *head, struct err *err)
{
	static const char *const texts[] = {"name", "description", "license", "compatibility", "allowed-tools"};
	const struct jv *metadata = jv_get(head, "metadata");

	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		const struct jv *v = jv_get(head, texts[i]);

		if (v && v->type != JV_STR && !scalar(arena, v).len)
			return err_set(err, ERR_INVALID, "SKILL.md line %u: %s is not text", v->line, texts[i]);
	}
	if (metadata && metadata->type != JV_OBJECT)
		return err_set(err, ERR_INVALID, "SKILL.md line %u: metadata is not a map", metadata->line);
	if (utf8_count(jv_get_str(head, "compatibility")) > COMPATIBILITY_MAX)
		return err_set(err, ERR_INVALID, "SKILL.md: compatibility has more than %d characters",
			       COMPATIBILITY_MAX);
	return 0;
}

int skill_check(struct arena *arena, struct str name, struct str text, struct err *err)
{
	struct frontmatter fm;
	struct str in_head, description;
	int r;

	if (utf8_count(text) > SKILL_DOCUMENT_MAX)
		return err_set(err, ERR_TOO_LARGE,
			       "SKILL.md has more than %zu characters; put parts of it in "
			       "references/",
			       SKILL_DOCUMENT_MAX);
	r = frontmatter_parse(arena, text, &fm, err);
	if (r)
		return err_prefix(err, "SKILL.md");
	if (!fm.has_head)
		return err_set(err, ERR_INVALID,
			       "SKILL.md must begin with a \"---\" line, then name and description, then \"---\"");
	r = check_fields(arena, fm.head, err);
	if (r)
		return r;
	in_head = scalar(arena, jv_get(fm.head, "name"));
	description = scalar(arena, jv_get(fm.head, "description"));
	if (!str_eq(in_head, name))
		return err_set(err, ERR_INVALID, "the head of SKILL.md has the name \"%.*s\", not \"%.*s\"",
			       STR_ARG(utf8_first(in_head, 80)), STR_ARG(name));
	if (!description.len || utf8_count(description) > DESCRIPTION_POINTS)
		return err_set(err, ERR_INVALID, "the description in SKILL.md must have 1 to %d characters",
			       DESCRIPTION_POINTS);
	if (!str_trim(fm.body).len)
		return err_set(
			err, ERR_INVALID,
			"SKILL.md has no instructions after its head; write what to do after the second \"---\"");
	return 0;
}
