/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON Schema for the two things that outsiders write and that must be right before anything runs: the arguments of a
 * tool call, and a workspace's configuration.
 *
 * The schema is walked as it is, together with the value. A tool's arguments have a handful of members, so the walk
 * costs a few hundred nanoseconds; translating schemas to another form first would buy nothing and would be a second
 * thing to keep right.
 *
 * The answer is a sentence for a person or a model, so the first fault is reported in full: where it is,
 * what was found, what was expected. A list of all faults reads worse and repairs nothing sooner.
 *
 * `examples` next to a `pattern` is what the sentence shows ("a string such as …"): nobody is helped by a regular
 * expression. `writeOnly` marks secrets: their value is never shown.
 */
#include "text/schema.h"

#include <math.h>

#include "base/limits.h"
#include "text/grep.h"

/* $ref may lead in circles; a value cannot nest deeper than JSON_DEPTH_MAX, but a circle needs no value to descend. */
#define DEPTH_MAX     (4 * JSON_DEPTH_MAX)
#define SHOWN_MAX     60
#define SENTENCE_MAX  300
#define ENUM_SHOWN    24
#define KEY_WORDS_MAX 128

enum keyword {
	KW_NONE,
	KW_ANNOTATION, /* says something to people, decides nothing */
	KW_TYPE,
	KW_ENUM,
	KW_CONST,
	KW_REF,
	KW_DEFS,
	KW_ONE_OF,
	KW_ANY_OF,
	KW_ITEMS,
	KW_MIN_ITEMS,
	KW_MAX_ITEMS,
	KW_UNIQUE_ITEMS,
	KW_PROPERTIES,
	KW_REQUIRED,
	KW_ADDITIONAL,
	KW_MINIMUM,
	KW_MAXIMUM,
	KW_ABOVE,
	KW_BELOW,
	KW_MIN_LENGTH,
	KW_MAX_LENGTH,
	KW_PATTERN,
};

static const struct {
	struct str name;
	enum keyword keyword;
} keywords[] = {
	{STR("type"), KW_TYPE},
	{STR("description"), KW_ANNOTATION},
	{STR("default"), KW_ANNOTATION},
	{STR("properties"), KW_PROPERTIES},
	{STR("required"), KW_REQUIRED},
	{STR("additionalProperties"), KW_ADDITIONAL},
	{STR("items"), KW_ITEMS},
	{STR("enum"), KW_ENUM},
	{STR("minimum"), KW_MINIMUM},
	{STR("maximum"), KW_MAXIMUM},
	{STR("exclusiveMinimum"), KW_ABOVE},
	{STR("exclusiveMaximum"), KW_BELOW},
	{STR("minLength"), KW_MIN_LENGTH},
	{STR("maxLength"), KW_MAX_LENGTH},
	{STR("pattern"), KW_PATTERN},
	{STR("minItems"), KW_MIN_ITEMS},
	{STR("maxItems"), KW_MAX_ITEMS},
	{STR("uniqueItems"), KW_UNIQUE_ITEMS},
	{STR("anyOf"), KW_ANY_OF},
	{STR("oneOf"), KW_ONE_OF},
	{STR("const"), KW_CONST},
	{STR("$ref"), KW_REF},
	{STR("$defs"), KW_DEFS},
	{STR("title"), KW_ANNOTATION},
	{STR("examples"), KW_ANNOTATION},
	{STR("deprecated"), KW_ANNOTATION},
	{STR("readOnly"), KW_ANNOTATION},
	{STR("writeOnly"), KW_ANNOTATION},
	{STR("$schema"), KW_ANNOTATION},
	{STR("$id"), KW_ANNOTATION},
	{STR("$comment"), KW_ANNOTATION},
};
#define KEYWORDS COUNT(keywords)

static enum keyword keyword_find(struct str name)
{
	for (size_t i = 0; i < KEYWORDS; i++)
		if (keywords[i].name.len == name.len && memcmp(keywords[i].name.ptr, name.ptr, name.len) == 0)
			return keywords[i].keyword;
	return KW_NONE;
}

/* The current place in the value: a chain on the stack, written out only when something is wrong. */
struct place {
	const struct place *up;
	struct str key; /* ptr NULL: an index */
	size_t index;
};

struct walk {
	const struct jv *root; /* the schema that $ref starts from */
	const char *what;
	struct err *err;
	unsigned depth;
};

static int check(struct walk *w, const struct jv *schema, const struct jv *value, const struct place *place);

/* --- words --- */

static void write_place(struct buf *b, const struct place *place)
{
	if (!place)
		return;
	write_place(b, place->up);
	if (!place->key.ptr) {
		buf_printf(b, "[%zu]", place->index);
		return;
	}
	if (place->up)
		buf_char(b, '.');
	buf_add(b, utf8_first(place->key, SHOWN_MAX));
}

static void write_value(struct buf *b, const struct jv *v, bool hidden)
{
	struct str cut;

	if (!v || v->type == JV_NULL) {
		buf_lit(b, "null");
	} else if (v->type == JV_ARRAY) {
		buf_lit(b, "a list");
	} else if (v->type == JV_OBJECT) {
		buf_lit(b, "an object");
	} else if (hidden || v->from_env) {
		buf_lit(b, "a value that is not shown");
	} else if (v->type == JV_STR) {
		cut = utf8_first(v->u.s, SHOWN_MAX);
		buf_char(b, '"');
		buf_add(b, cut);
		if (cut.len < v->u.s.len)
			buf_lit(b, "\xE2\x80\xA6");
		buf_char(b, '"');
	} else {
		jv_write(b, v);
	}
}

static const struct jv *resolve(const struct walk *w, const struct jv *schema)
{
	struct str ref = jv_get_str(schema, "$ref");
	struct str prefix = STR("#/$defs/");

	if (!ref.ptr || !str_starts(ref, prefix))
		return schema;
	return jv_get_key(jv_get(w->root, "$defs"), str_from(ref, prefix.len));
}

static void write_bounds(struct buf *b, const struct jv *low, const struct jv *high, const char *unit)
{
	if (!low && !high)
		return;
	if (low && high) {
		buf_add(b, *unit ? STR(" of ") : STR(" between "));
		jv_write(b, low);
		buf_add(b, *unit ? STR(" to ") : STR(" and "));
		jv_write(b, high);
	} else {
		buf_add(b, low ? STR(" of at least ") : STR(" of at most "));
		jv_write(b, low ? low : high);
	}
	buf_add(b, str_of(unit));
}

static void write_string_form(struct buf *b, const struct jv *schema)
{
	const struct jv *example = jv_at(jv_get(schema, "examples"), 0);
	const struct jv *low = jv_get(schema, "minLength"), *high = jv_get(schema, "maxLength");

	if (low && low->u.i == 1) {
		buf_lit(b, "a non-empty string");
		low = NULL;
	} else {
		buf_lit(b, "a string");
	}
	write_bounds(b, low, high, " characters");
	if (jv_get(schema, "pattern") && example) {
		buf_lit(b, " such as ");
		write_value(b, example, false);
	} else if (jv_get(schema, "pattern")) {
		buf_lit(b, " that matches ");
		buf_add(b, jv_get_str(schema, "pattern"));
	}
}

static void write_type(struct buf *b, const struct jv *schema, struct str type)
{
	if (str_is(type, "integer") || str_is(type, "number")) {
		buf_add(b, str_is(type, "integer") ? STR("an integer") : STR("a number"));
		write_bounds(b, jv_get(schema, "minimum"), jv_get(schema, "maximum"), "");
		if (jv_get(schema, "exclusiveMinimum")) {
			buf_lit(b, " above ");
			jv_write(b, jv_get(schema, "exclusiveMinimum"));
		}
		if (jv_get(schema, "exclusiveMaximum")) {
			buf_lit(b, " below ");
			jv_write(b, jv_get(schema, "exclusiveMaximum"));
		}
	} else if (str_is(type, "string")) {
		write_string_form(b, schema);
	} else if (str_is(type, "boolean")) {
		buf_lit(b, "true or false");
	} else if (str_is(type, "array")) {
		buf_lit(b, "a list");
		write_bounds(b, jv_get(schema, "minItems"), jv_get(schema, "maxItems"), " items");
	} else if (str_is(type, "object")) {
		buf_lit(b, "an object");
	} else {
		buf_add(b, type);
	}
}

static void write_choices(struct buf *b, const struct jv *list)
{
	size_t n = 0;

	if (jv_count(list) > 1)
		buf_lit(b, "one of ");
	for (const struct jv_member *m = jv_first(list); m; m = m->next) {
		if (n++)
			buf_lit(b, ", ");
		if (n > ENUM_SHOWN) {
			buf_lit(b, "\xE2\x80\xA6");
			return;
		}
		write_value(b, m->value, false);
	}
}

/* What a value has to be, in words. */
static void write_expected(const struct walk *w, struct buf *b, const struct jv *schema, unsigned depth)
{
	const struct jv *type, *list;
	size_t n = 0;

	schema = resolve(w, schema);
	type = jv_get(schema, "type");
	list = jv_get(schema, "anyOf") ? jv_get(schema, "anyOf") : jv_get(schema, "oneOf");
	if (jv_get(schema, "enum")) {
		write_choices(b, jv_get(schema, "enum"));
	} else if (jv_get(schema, "const")) {
		write_value(b, jv_get(schema, "const"), false);
	} else if (list && depth < 4) {
		for (const struct jv_member *m = jv_first(list); m; m = m->next) {
			if (n++)
				buf_lit(b, " or ");
			write_expected(w, b, m->value, depth + 1);
		}
	} else if (type && type->type == JV_STR) {
		write_type(b, schema, type->u.s);
	} else if (type) {
		for (const struct jv_member *m = jv_first(type); m; m = m->next) {
			if (n++)
				buf_lit(b, " or ");
			write_type(b, schema, jv_str_of(m->value));
		}
	} else {
		buf_lit(b, "another value");
	}
}

static void write_opening(const struct walk *w, struct buf *b, unsigned line)
{
	buf_add(b, str_of(w->what));
	if (line)
		buf_printf(b, " line %u", line);
	buf_lit(b, ": ");
}

/* "<what> line 3: heartbeat.interval_minutes is "often"; expected an integer of at least 1" */
__attribute__((cold)) static int wrong_value(struct walk *w, const struct jv *schema, const struct jv *value,
					     const struct place *place, const char *because)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	bool hidden = jv_get_bool(schema, "writeOnly", false);
	struct buf b;

	if (!w->err)
		return -ERR_INVALID;
	buf_init(&b, arena, 4096);
	write_opening(w, &b, value->line);
	if (place)
		write_place(&b, place);
	else
		buf_lit(&b, "the whole");
	buf_lit(&b, " is ");
	write_value(&b, value, hidden);
	if (because) {
		buf_lit(&b, "; ");
		buf_add(&b, str_of(because));
	} else {
		buf_lit(&b, "; expected ");
		write_expected(w, &b, schema, 0);
	}
	return err_set(w->err, ERR_INVALID, "%.*s", STR_ARG(utf8_first(buf_str(&b), 470)));
}

__attribute__((cold)) static int missing_key(struct walk *w, const struct jv *value, const struct place *place,
					     struct str key)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct place at = {place, key, 0};
	struct buf b;

	if (!w->err)
		return -ERR_INVALID;
	buf_init(&b, arena, 4096);
	write_opening(w, &b, value->line);
	buf_char(&b, '"');
	write_place(&b, &at);
	buf_lit(&b, "\" is missing");
	return err_set(w->err, ERR_INVALID, "%.*s", STR_ARG(buf_str(&b)));
}

__attribute__((cold)) static int unknown_key(struct walk *w, const struct jv *properties,
					     const struct jv_member *member, const struct place *place)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct place at = {place, member->key, 0};
	const char *words[KEY_WORDS_MAX], *nearest;
	size_t n = 0, shown = 0;
	struct buf b;

	if (!w->err)
		return -ERR_INVALID;
	for (const struct jv_member *m = jv_first(properties); m && n < KEY_WORDS_MAX; m = m->next)
		words[n++] = arena_cstr(arena, m->key);
	nearest = str_nearest(member->key, words, n);
	buf_init(&b, arena, 4096);
	write_opening(w, &b, member->key_line);
	buf_lit(&b, "unknown key \"");
	write_place(&b, &at);
	buf_char(&b, '"');
	if (nearest)
		buf_printf(&b, "; did you mean \"%s\"?", nearest);
	else if (!n)
		buf_lit(&b, "; no keys are expected here");
	else
		buf_lit(&b, "; known keys are ");
	for (; !nearest && shown < n && b.len < SENTENCE_MAX; shown++)
		buf_printf(&b, "%s\"%s\"", shown ? ", " : "", words[shown]);
	if (!nearest && shown < n)
		buf_lit(&b, ", \xE2\x80\xA6");
	return err_set(w->err, ERR_INVALID, "%.*s", STR_ARG(utf8_first(buf_str(&b), 470)));
}

/* --- the walk --- */

static bool is_integer(const struct jv *v)
{
	return v->type == JV_INT || (v->type == JV_REAL && floor(v->u.d) == v->u.d);
}

static bool has_type(const struct jv *v, struct str type)
{
	switch (v->type) {
	case JV_NULL:
		return str_eq(type, STR("null"));
	case JV_BOOL:
		return str_eq(type, STR("boolean"));
	case JV_INT:
	case JV_REAL:
		return str_eq(type, STR("number")) || (is_integer(v) && str_eq(type, STR("integer")));
	case JV_STR:
		return str_eq(type, STR("string"));
	case JV_ARRAY:
		return str_eq(type, STR("array"));
	case JV_OBJECT:
		return str_eq(type, STR("object"));
	}
	return false;
}

static bool type_fits(const struct jv *value, const struct jv *type)
{
	if (type->type == JV_STR)
		return has_type(value, type->u.s);
	for (const struct jv_member *m = jv_first(type); m; m = m->next)
		if (has_type(value, jv_str_of(m->value)))
			return true;
	return false;
}

static double number_of(const struct jv *v)
{
	return v->type == JV_INT ? (double)v->u.i : v->u.d;
}

/* <0, 0, >0; exact for two integers, of which a double would lose the last digits. */
static int number_cmp(const struct jv *a, const struct jv *b)
{
	double x, y;

	if (a->type == JV_INT && b->type == JV_INT)
		return (a->u.i > b->u.i) - (a->u.i < b->u.i);
	x = number_of(a);
	y = number_of(b);
	return (x > y) - (x < y);
}

static bool is_among(const struct jv *value, const struct jv *list)
{
	for (const struct jv_member *m = jv_first(list); m; m = m->next)
		if (jv_equal(m->value, value))
			return true;
	return false;
}

static bool has_repeats(const struct jv *list)
{
	for (const struct jv_member *a = jv_first(list); a; a = a->next)
		for (const struct jv_member *b = a->next; b; b = b->next)
			if (jv_equal(a->value, b->value))
				return true;
	return false;
}

/* A branch whose type fits the value tells more about what is wrong than "none of them fits". */
static int check_branches(struct walk *w, const struct jv *schema, const struct jv *branches, bool exactly_one,
			  const struct jv *value, const struct place *place)
{
	const struct jv *likely = NULL;
	unsigned fits = 0, by_type = 0;
	struct walk quiet = *w;

	quiet.err = NULL;
	for (const struct jv_member *m = jv_first(branches); m; m = m->next) {
		const struct jv *branch = resolve(w, m->value), *type = jv_get(branch, "type");

		if (check(&quiet, branch, value, place) == 0) {
			fits++;
			if (!exactly_one)
				return 0;
		} else if (type && type_fits(value, type)) {
			by_type++;
			likely = branch;
		}
	}
	if (fits == 1)
		return 0;
	if (fits > 1)
		return wrong_value(w, schema, value, place, "it matches more than one of the forms allowed here");
	if (by_type == 1 && (value->type == JV_OBJECT || value->type == JV_ARRAY))
		return check(w, likely, value, place);
	return wrong_value(w, schema, value, place, NULL);
}

static int check_object(struct walk *w, const struct jv *properties, const struct jv *additional,
			const struct jv *value, const struct place *place)
{
	bool closed = additional && additional->type == JV_BOOL && !additional->u.b;

	for (const struct jv_member *m = value->u.items.first; m; m = m->next) {
		const struct jv *schema = jv_get_key(properties, m->key);
		struct place at = {place, m->key, 0};
		int r;

		if (!schema && closed)
			return unknown_key(w, properties, m, place);
		if (!schema)
			schema = additional;
		r = schema ? check(w, schema, m->value, &at) : 0;
		if (r)
			return r;
	}
	return 0;
}

static int check_items(struct walk *w, const struct jv *items, const struct jv *value, const struct place *place)
{
	size_t i = 0;

	for (const struct jv_member *m = value->u.items.first; m; m = m->next) {
		struct place at = {place, STR_NONE, i++};
		int r = check(w, items, m->value, &at);

		if (r)
			return r;
	}
	return 0;
}

static int check_required(struct walk *w, const struct jv *required, const struct jv *value, const struct place *place)
{
	for (const struct jv_member *m = jv_first(required); m; m = m->next)
		if (!jv_get_key(value, jv_str_of(m->value)))
			return missing_key(w, value, place, jv_str_of(m->value));
	return 0;
}

static size_t limit_of(const struct jv *v)
{
	return v->type == JV_INT && v->u.i > 0 ? (size_t)v->u.i : 0;
}

/* Keywords that look at one value and descend nowhere. They hold for the types they speak of and let others pass. */
static bool simple_fits(enum keyword keyword, const struct jv *rule, const struct jv *value)
{
	bool is_number = value->type == JV_INT || value->type == JV_REAL;
	bool is_str = value->type == JV_STR, is_list = value->type == JV_ARRAY;

	switch (keyword) {
	case KW_TYPE:
		return type_fits(value, rule);
	case KW_ENUM:
		return is_among(value, rule);
	case KW_CONST:
		return jv_equal(value, rule);
	case KW_MINIMUM:
		return !is_number || number_cmp(value, rule) >= 0;
	case KW_MAXIMUM:
		return !is_number || number_cmp(value, rule) <= 0;
	case KW_ABOVE:
		return !is_number || number_cmp(value, rule) > 0;
	case KW_BELOW:
		return !is_number || number_cmp(value, rule) < 0;
	case KW_MIN_LENGTH:
		return !is_str || utf8_count(value->u.s) >= limit_of(rule);
	case KW_MAX_LENGTH:
		/* a code point has one byte at least: most strings need no counting */
		return !is_str || value->u.s.len <= limit_of(rule) || utf8_count(value->u.s) <= limit_of(rule);
	case KW_PATTERN:
		return !is_str || pattern_found(rule->u.s, value->u.s);
	case KW_MIN_ITEMS:
		return !is_list || jv_count(value) >= limit_of(rule);
	case KW_MAX_ITEMS:
		return !is_list || jv_count(value) <= limit_of(rule);
	default:
		return true;
	}
}

static int check_keywords(struct walk *w, const struct jv *schema, const struct jv *value, const struct place *place)
{
	const struct jv *properties = NULL, *additional = NULL, *required = NULL;
	int r = 0;

	for (const struct jv_member *m = schema->u.items.first; m && !r; m = m->next) {
		enum keyword keyword = keyword_find(m->key);

		if (keyword == KW_PROPERTIES)
			properties = m->value;
		else if (keyword == KW_ADDITIONAL)
			additional = m->value;
		else if (keyword == KW_REQUIRED)
			required = m->value;
		else if (keyword == KW_ANY_OF || keyword == KW_ONE_OF)
			r = check_branches(w, schema, m->value, keyword == KW_ONE_OF, value, place);
		else if (keyword == KW_ITEMS && value->type == JV_ARRAY)
			r = check_items(w, m->value, value, place);
		else if (keyword == KW_UNIQUE_ITEMS && m->value->u.b && has_repeats(value))
			r = wrong_value(w, schema, value, place, "an item occurs twice");
		else if (keyword == KW_REF)
			r = check(w, resolve(w, schema), value, place);
		else if (!simple_fits(keyword, m->value, value))
			r = wrong_value(w, schema, value, place, NULL);
	}
	if (r || value->type != JV_OBJECT)
		return r;
	/* unknown keys first: "pth" is more to the point than that "path" is missing */
	if (properties || additional)
		r = check_object(w, properties, additional, value, place);
	return r ? r : check_required(w, required, value, place);
}

static int check(struct walk *w, const struct jv *schema, const struct jv *value, const struct place *place)
{
	int r;

	if (!schema || schema->type == JV_BOOL)
		return schema && !schema->u.b ? wrong_value(w, schema, value, place, "nothing is allowed here") : 0;
	if (w->depth >= DEPTH_MAX)
		return wrong_value(w, schema, value, place, "it is nested too deeply");
	w->depth++;
	r = check_keywords(w, schema, value, place);
	w->depth--;
	return r;
}

int schema_check(const struct jv *schema, const struct jv *value, const char *what, struct err *err)
{
	struct walk w = {schema, what, err, 0};

	return check(&w, schema, value, NULL);
}

/* --- is the schema itself one that the walk understands --- */

static int compile(const struct jv *root, const struct jv *schema, unsigned depth, struct err *err);

static int compile_each(const struct jv *root, const struct jv *list, unsigned depth, struct err *err)
{
	for (const struct jv_member *m = jv_first(list); m; m = m->next) {
		int r = compile(root, m->value, depth, err);

		if (r)
			return r;
	}
	return 0;
}

static bool type_known(const struct jv *type)
{
	static const char *const known[] = {"string", "integer", "number", "boolean", "array", "object", "null"};

	if (type->type == JV_ARRAY) {
		for (const struct jv_member *m = jv_first(type); m; m = m->next)
			if (m->value->type != JV_STR || !type_known(m->value))
				return false;
		return jv_count(type) > 0;
	}
	for (size_t i = 0; i < COUNT(known); i++)
		if (type->type == JV_STR && str_is(type->u.s, known[i]))
			return true;
	return false;
}

static bool all_strings(const struct jv *list)
{
	for (const struct jv_member *m = jv_first(list); m; m = m->next)
		if (m->value->type != JV_STR)
			return false;
	return list->type == JV_ARRAY;
}

static bool ref_known(const struct jv *root, const struct jv *schema)
{
	struct walk w = {root, "", NULL, 0};
	const struct jv *target = resolve(&w, schema);

	return target && target != schema;
}

/* True when the keyword's own value has the form that the walk relies on. */
static bool rule_is_well_formed(enum keyword keyword, const struct jv *root, const struct jv *schema,
				const struct jv *rule)
{
	struct err ignored;

	switch (keyword) {
	case KW_TYPE:
		return type_known(rule);
	case KW_ENUM:
		return rule->type == JV_ARRAY && jv_count(rule) > 0;
	case KW_REF:
		return ref_known(root, schema);
	case KW_ONE_OF:
	case KW_ANY_OF:
		return rule->type == JV_ARRAY && jv_count(rule) > 0;
	case KW_PROPERTIES:
	case KW_DEFS:
		return rule->type == JV_OBJECT;
	case KW_REQUIRED:
		return all_strings(rule);
	case KW_ITEMS:
	case KW_ADDITIONAL:
		return rule->type == JV_OBJECT || rule->type == JV_BOOL;
	case KW_UNIQUE_ITEMS:
		return rule->type == JV_BOOL;
	case KW_PATTERN:
		return rule->type == JV_STR && pattern_check(rule->u.s, &ignored) == 0;
	case KW_MINIMUM:
	case KW_MAXIMUM:
	case KW_ABOVE:
	case KW_BELOW:
		return rule->type == JV_INT || rule->type == JV_REAL;
	case KW_MIN_LENGTH:
	case KW_MAX_LENGTH:
	case KW_MIN_ITEMS:
	case KW_MAX_ITEMS:
		return rule->type == JV_INT && rule->u.i >= 0;
	default:
		return true;
	}
}

static int compile_rule(const struct jv *root, const struct jv *schema, const struct jv_member *m, unsigned depth,
			struct err *err)
{
	enum keyword keyword = keyword_find(m->key);

	if (keyword == KW_NONE)
		return err_set(err, ERR_UNSUPPORTED, "schema: the keyword \"%.*s\" is not supported; leave it out",
			       STR_ARG(m->key));
	if (!rule_is_well_formed(keyword, root, schema, m->value))
		return err_set(err, ERR_INVALID, "schema: the value of \"%.*s\" is not valid for this keyword",
			       STR_ARG(m->key));
	if (keyword == KW_PROPERTIES || keyword == KW_DEFS || keyword == KW_ONE_OF || keyword == KW_ANY_OF)
		return compile_each(root, m->value, depth, err);
	if (keyword == KW_ITEMS || keyword == KW_ADDITIONAL)
		return compile(root, m->value, depth, err);
	return 0;
}

static int compile(const struct jv *root, const struct jv *schema, unsigned depth, struct err *err)
{
	if (schema->type == JV_BOOL)
		return 0;
	if (schema->type != JV_OBJECT)
		return err_set(err, ERR_INVALID, "schema: a schema must be an object, true or false");
	if (depth > JSON_DEPTH_MAX)
		return err_set(err, ERR_INVALID, "schema: it is nested more than %d levels deep", JSON_DEPTH_MAX);
	for (const struct jv_member *m = jv_first(schema); m; m = m->next) {
		int r = compile_rule(root, schema, m, depth + 1, err);

		if (r)
			return r;
	}
	return 0;
}

int schema_compile(const struct jv *schema, struct err *err)
{
	return compile(schema, schema, 0, err);
}
