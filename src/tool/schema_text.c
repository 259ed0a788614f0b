/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON Schema is exact and unreadable: four lines of punctuation for each argument. Tables are read far more often than
 * this parser, so they are written in a form of their own (schema_text.h), and clients get the JSON Schema.
 */
#include "tool/schema_text.h"

#include <string.h>

struct parser {
	struct arena *arena;
	const char *at;
	unsigned depth; /* of {} */
	struct err *err;
};

static const struct type {
	const char *word, *name, *min, *max;
} types[] = {
	{"str", "string", "minLength", "maxLength"},
	{"int", "integer", "minimum", "maximum"},
	{"num", "number", "minimum", "maximum"},
	{"bool", "boolean", NULL, NULL},
	{"obj", "object", NULL, NULL},
	{"list", "array", "minItems", "maxItems"},
	{"null", "null", NULL, NULL},
	{"any", NULL, NULL, NULL},
};

static int parse_type(struct parser *p, struct jv **ret);
static int parse_object(struct parser *p, struct jv **ret);

static int expected(struct parser *p, const char *what)
{
	return err_set(p->err, ERR_INVALID, "%s is expected at \"%.40s\"", what, p->at);
}

static bool take(struct parser *p, const char *text)
{
	size_t len = strlen(text);

	if (strncmp(p->at, text, len) != 0)
		return false;
	p->at += len;
	return true;
}

static struct str take_word(struct parser *p)
{
	const char *start = p->at;

	while ((*p->at >= 'a' && *p->at <= 'z') || (*p->at >= 'A' && *p->at <= 'Z') ||
	       (*p->at >= '0' && *p->at <= '9') || *p->at == '_' || *p->at == '-')
		p->at++;
	return str_n(start, (size_t)(p->at - start));
}

/* ">=1<=50" or "=2" after a type. */
static int parse_bounds(struct parser *p, const struct type *type, struct jv *schema)
{
	while (*p->at == '>' || *p->at == '<' || *p->at == '=') {
		bool is_min = *p->at != '<', is_max = *p->at != '>';
		int64_t n;

		p->at += *p->at != '=';
		if (!type->min || !take(p, "=") || !str_to_i64(take_word(p), &n))
			return expected(p, "a bound of a type that has one");
		if (is_min)
			jv_set_int(p->arena, schema, type->min, n);
		if (is_max)
			jv_set_int(p->arena, schema, type->max, n);
	}
	return 0;
}

static int parse_words(struct parser *p, struct str word, struct jv *schema)
{
	struct jv *words = jv_array(p->arena);

	jv_set_str(p->arena, schema, "type", STR("string"));
	jv_set(p->arena, schema, "enum", words);
	do {
		if (!word.len)
			return expected(p, "a word");
		jv_push(p->arena, words, jv_str(p->arena, word));
	} while (take(p, "|") && (word = take_word(p), true));
	return 0;
}

static int parse_named(struct parser *p, struct jv *schema)
{
	struct str word = take_word(p);
	const struct type *type = types;
	struct jv *either;

	if (*p->at == '|')
		return parse_words(p, word, schema);
	while (type < types + COUNT(types) && !str_is(word, type->word))
		type++;
	if (type == types + COUNT(types))
		return expected(p, "a type");
	if (!type->name)
		return 0;
	if (take(p, "?")) {
		either = jv_array(p->arena);
		jv_push(p->arena, either, jv_str(p->arena, str_of(type->name)));
		jv_push(p->arena, either, jv_str(p->arena, STR("null")));
		jv_set(p->arena, schema, "type", either);
		return 0;
	}
	jv_set_str(p->arena, schema, "type", str_of(type->name));
	return parse_bounds(p, type, schema);
}

static int parse_one(struct parser *p, struct jv **ret)
{
	static const struct type list = {"", "", "minItems", "maxItems"};
	struct jv *items;
	int r;

	if (*p->at == '{')
		return parse_object(p, ret);
	*ret = jv_object(p->arena);
	if (!take(p, "["))
		return parse_named(p, *ret);
	r = parse_type(p, &items);
	if (r)
		return r;
	if (!take(p, "]"))
		return expected(p, "']'");
	jv_set_str(p->arena, *ret, "type", STR("array"));
	jv_set(p->arena, *ret, "items", items);
	return parse_bounds(p, &list, *ret);
}

static int parse_type(struct parser *p, struct jv **ret)
{
	struct jv *choices, *one = NULL;
	int r = parse_one(p, &one);

	*ret = one;
	if (r || strncmp(p->at, " or ", 4) != 0)
		return r;
	choices = jv_array(p->arena);
	jv_push(p->arena, choices, one);
	while (r == 0 && take(p, " or ")) {
		r = parse_one(p, &one);
		jv_push(p->arena, choices, one);
	}
	*ret = jv_object(p->arena);
	jv_set(p->arena, *ret, "anyOf", choices);
	return r;
}

static int parse_property(struct parser *p, struct jv *properties, struct jv *required)
{
	struct str name = take_word(p);
	struct jv *schema;
	int r = 0;

	if (!name.len || jv_get_key(properties, name))
		return expected(p, "the name of another property");
	if (take(p, "!"))
		jv_push(p->arena, required, jv_str(p->arena, name));
	if (take(p, " ")) {
		r = parse_type(p, &schema);
	} else {
		schema = jv_object(p->arena);
		jv_set_str(p->arena, schema, "type", STR("string"));
	}
	if (r)
		return r;
	if (take(p, ": ")) {
		size_t len = strcspn(p->at, p->depth ? ";}\n" : "\n");

		if (!len)
			return expected(p, "a description");
		jv_set_str(p->arena, schema, "description", str_n(p->at, len));
		p->at += len;
	}
	jv_set_key(p->arena, properties, name, schema);
	return 0;
}

/* What is in {}, or the whole text. */
static int parse_properties(struct parser *p, struct jv **ret)
{
	struct jv *properties = jv_object(p->arena), *required = jv_array(p->arena);
	char end = p->depth ? '}' : '\0';
	bool open = false;
	int r;

	while (*p->at != end) {
		open = take(p, "...");
		r = open ? 0 : parse_property(p, properties, required);
		if (r)
			return r;
		if (*p->at != end && (open || (!take(p, "; ") && !take(p, "\n"))))
			return expected(p, open ? "the end of the properties" : "a separator");
	}
	*ret = jv_object(p->arena);
	jv_set_str(p->arena, *ret, "type", STR("object"));
	jv_set(p->arena, *ret, "properties", properties);
	if (jv_count(properties))
		jv_set(p->arena, *ret, "required", required);
	if (!open)
		jv_set_bool(p->arena, *ret, "additionalProperties", false);
	return 0;
}

static int parse_object(struct parser *p, struct jv **ret)
{
	int r;

	p->at++;
	p->depth++;
	r = parse_properties(p, ret);
	p->depth--;
	p->at += r == 0; /* '}' */
	return r;
}

int schema_text_parse(struct arena *arena, const char *text, struct jv **ret_schema, struct err *err)
{
	struct parser p = {.arena = arena, .at = text, .err = err};

	return parse_properties(&p, ret_schema);
}
