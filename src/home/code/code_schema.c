/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of fields, as Wacht writes what a function takes and gives, as JSON Schemas. */
#include "base/limits.h"
#include "home/code/code.h"
#include "text/schema.h"

#define DEPTH_MAX 16

static const char *const types[][2] = {{"STRING", "string"},   {"INTEGER", "integer"}, {"NUMBER", "number"},
				       {"BOOLEAN", "boolean"}, {"ARRAY", "array"},     {"OBJECT", "object"}};

static int object_of(struct arena *arena, const struct jv *fields, unsigned depth, struct jv **ret, struct err *err);

static int type_of(struct str written, const char **ret, struct err *err)
{
	for (size_t i = 0; i < COUNT(types); i++)
		if (str_eq_nocase(written, str_of(types[i][0]))) {
			*ret = types[i][1];
			return 0;
		}
	return err_set(err, ERR_INVALID,
		       "the type \"%.*s\" of a field is not STRING, INTEGER, NUMBER, BOOLEAN, ARRAY or OBJECT",
		       STR_ARG(utf8_first(written, 40)));
}

static int schema_of(struct arena *arena, const struct jv *field, unsigned depth, struct jv **ret, struct err *err)
{
	const struct jv *items = jv_get(field, "items"), *below = jv_get(field, "properties");
	struct str written = jv_get_str(field, "type");
	struct jv *schema, *inner = NULL;
	const char *type;
	int r = depth > DEPTH_MAX ? err_set(err, ERR_INVALID, "the fields are nested more than %d deep", DEPTH_MAX)
				  : type_of(written.len ? written : jv_get_str(field, "field_type"), &type, err);

	if (r == 0 && items)
		r = schema_of(arena, items, depth + 1, &inner, err);
	else if (r == 0 && below)
		r = object_of(arena, below, depth + 1, &inner, err);
	if (r)
		return r;
	schema = below && inner ? inner : jv_object(arena);
	jv_set_str(arena, schema, "type", str_of(type));
	if (items)
		jv_set(arena, schema, "items", inner);
	if (jv_get_str(field, "description").len)
		jv_set_str(arena, schema, "description", jv_get_str(field, "description"));
	*ret = schema;
	return 0;
}

static int object_of(struct arena *arena, const struct jv *fields, unsigned depth, struct jv **ret, struct err *err)
{
	struct jv *schema = jv_object(arena), *properties = jv_object(arena), *required = jv_array(arena);
	int r = 0;

	for (const struct jv_member *m = jv_first(fields); m && r == 0; m = m->next) {
		struct str name = jv_get_str(m->value, "name");
		struct jv *one;

		if (!name.len)
			return err_set(err, ERR_INVALID, "a field has no name");
		r = schema_of(arena, m->value, depth, &one, err);
		if (r)
			return err_prefix(err, "%.*s", STR_ARG(utf8_first(name, 80)));
		jv_set_key(arena, properties, name, one);
		if (jv_get_bool(m->value, "required", false))
			jv_push(arena, required, jv_str(arena, name));
	}
	jv_set_str(arena, schema, "type", STR("object"));
	jv_set(arena, schema, "properties", properties);
	if (jv_count(required))
		jv_set(arena, schema, "required", required);
	*ret = schema;
	return r;
}

int code_schema(struct arena *arena, const struct jv *written, struct jv **ret, struct err *err)
{
	int r = 0;

	if (written->type == JV_ARRAY)
		r = object_of(arena, written, 0, ret, err);
	else
		*ret = jv_copy(arena, written);
	return r ? r : schema_compile(*ret, err);
}
