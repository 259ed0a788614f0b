/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON text to values: jansson's one file. Its tree is made of counted references on the heap, which does not go with
 * arenas, so the tree is copied and dropped at once; for what a client may send, the copy costs less than a system
 * call.
 */
#include <jansson.h>

#include "base/limits.h"
#include "text/jv.h"

static struct jv *convert(struct arena *arena, json_t *node)
{
	const char *key;
	size_t i, key_len;
	json_t *child;
	struct jv *v;

	switch (json_typeof(node)) {
	case JSON_NULL:
		return jv_null(arena);
	case JSON_TRUE:
	case JSON_FALSE:
		return jv_bool(arena, json_is_true(node));
	case JSON_INTEGER:
		return jv_int(arena, json_integer_value(node));
	case JSON_REAL:
		return jv_real(arena, json_real_value(node));
	case JSON_STRING:
		return jv_str(arena, arena_str(arena, str_n(json_string_value(node), json_string_length(node))));
	case JSON_ARRAY:
		v = jv_array(arena);
		json_array_foreach (node, i, child)
			jv_push(arena, v, convert(arena, child));
		return v;
	case JSON_OBJECT:
		break;
	}
	v = jv_object(arena);
	json_object_keylen_foreach (node, key, key_len, child) {
		/* keys are unique already: append without the look-up that jv_set makes */
		struct jv_member *m = ARENA_NEW(arena, struct jv_member);

		m->key = arena_str(arena, str_n(key, key_len));
		m->value = convert(arena, child);
		if (v->u.items.last)
			v->u.items.last->next = m;
		else
			v->u.items.first = m;
		v->u.items.last = m;
		v->u.items.count++;
	}
	return v;
}

/* jansson's own ceiling is deep enough to overflow small thread stacks; ours is checked before it parses. */
static bool nests_too_deep(struct str text)
{
	bool in_string = false;
	int depth = 0;

	for (size_t i = 0; i < text.len; i++) {
		char c = text.ptr[i];

		if (in_string) {
			if (c == '\\')
				i++;
			else if (c == '"')
				in_string = false;
		} else if (c == '"') {
			in_string = true;
		} else if (c == '{' || c == '[') {
			if (++depth > JSON_DEPTH_MAX)
				return true;
		} else if (c == '}' || c == ']') {
			depth--;
		}
	}
	return false;
}

int jv_parse(struct arena *arena, struct str text, struct jv **ret, struct err *err)
{
	json_error_t why;
	json_t *root;

	if (text.len > JSON_LEN_MAX)
		return err_set(err, ERR_TOO_LARGE, "the JSON text has %zu bytes; at most %zu are read", text.len,
			       JSON_LEN_MAX);
	if (nests_too_deep(text))
		return err_set(err, ERR_INVALID, "the JSON text nests deeper than %d levels; flatten it",
			       JSON_DEPTH_MAX);
	root = json_loadb(text.ptr ? text.ptr : "", text.len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL,
			  &why);
	if (!root)
		return err_set(err, ERR_INVALID, "not JSON, line %d column %d: %s", why.line, why.column, why.text);
	*ret = convert(arena, root);
	json_decref(root);
	return 0;
}
