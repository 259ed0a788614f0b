/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of tools in the one form that their schema names. A call whose arguments have it already costs no copy. */
#include "tool/coerce.h"

static bool is_required(const struct jv *schema, struct str key)
{
	for (const struct jv_member *m = jv_first(jv_get(schema, "required")); m; m = m->next)
		if (str_eq(jv_str_of(m->value), key))
			return true;
	return false;
}

static const struct jv *to_list(struct arena *arena, const struct jv *value)
{
	struct str text = str_trim(value->u.s);
	struct jv *list;
	struct err ignored;

	if (str_starts(text, STR("[")) && jv_parse(arena, text, &list, &ignored) == 0 && list->type == JV_ARRAY)
		return list;
	list = jv_array(arena);
	jv_push(arena, list, (struct jv *)value);
	return list;
}

/* Items that are texts, for objects of which one text must be given: {"path": "a.md"} for "a.md". */
static const struct jv *wrap_items(struct arena *arena, const struct jv *items, const struct jv *list)
{
	const struct jv *required = jv_get(items, "required");
	struct jv *out = jv_array(arena);
	bool changed = false;

	if (!str_is(jv_get_str(items, "type"), "object") || jv_count(required) != 1)
		return list;
	for (const struct jv_member *m = jv_first(list); m; m = m->next) {
		struct jv *item = m->value;

		if (item->type == JV_STR) {
			changed = true;
			item = jv_object(arena);
			jv_set_key(arena, item, jv_str_of(jv_at(required, 0)), m->value);
		}
		jv_push(arena, out, item);
	}
	return changed ? out : list;
}

/* The value in the form that `property` names; the value itself when it has that form, or none can be made of it. */
static const struct jv *coerce(struct arena *arena, const struct jv *property, const struct jv *value)
{
	struct str type = jv_get_str(property, "type");
	int64_t n;

	if (value->type == JV_INT && str_is(type, "string"))
		return jv_str(arena, arena_printf(arena, "%lld", (long long)value->u.i));
	if (value->type == JV_STR && str_is(type, "array"))
		value = to_list(arena, value);
	if (value->type == JV_ARRAY)
		return wrap_items(arena, jv_get(property, "items"), value);
	if (value->type != JV_STR)
		return value;
	if (str_is(type, "integer") && str_to_i64(value->u.s, &n))
		return jv_int(arena, n);
	if (str_is(type, "boolean") && (str_is(value->u.s, "true") || str_is(value->u.s, "false")))
		return jv_bool(arena, str_is(value->u.s, "true"));
	return value;
}

const struct jv *args_coerce(struct arena *arena, const struct jv *schema, const struct jv *args)
{
	const struct jv *properties = jv_get(schema, "properties");
	struct jv *out = jv_object(arena);
	bool changed = false;

	if (jv_is_null(args))
		return out;
	for (const struct jv_member *m = args->type == JV_OBJECT ? jv_first(args) : NULL; m; m = m->next) {
		const struct jv *property = jv_get_key(properties, m->key), *value = m->value;

		if (property && jv_is_null(value) && !is_required(schema, m->key)) {
			changed = true;
			continue;
		}
		if (property)
			value = coerce(arena, property, value);
		changed = changed || value != m->value;
		jv_set_key(arena, out, m->key, (struct jv *)value);
	}
	return changed ? out : args;
}
