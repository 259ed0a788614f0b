/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arguments as headers. A property of a tool's schema that is marked with x-mcp-header is sent as a header too, so that
 * a proxy between client and server can route by it. The marks are the server's words: a tool whose marks break the
 * rules is left out.
 */
#include "base/base64.h"
#include "base/buf.h"
#include "base/limits.h"
#include "mcp/client_internal.h"

#define MARK      "x-mcp-header"
#define MARKS_MAX 32
#define DEPTH_MAX 16
#define SAFE_MOST 9007199254740991LL /* 2^53 - 1 */

static bool is_token(struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		if (!((s.ptr[i] >= 'a' && s.ptr[i] <= 'z') || (s.ptr[i] >= 'A' && s.ptr[i] <= 'Z') ||
		      (s.ptr[i] >= '0' && s.ptr[i] <= '9') || memchr("!#$%&'*+-.^_`|~", s.ptr[i], 15)))
			return false;
	return s.len > 0;
}

struct marks {
	struct str names[MARKS_MAX];
	size_t count;
	bool is_wrong;
};

static void add_mark(struct marks *marks, const struct jv *property)
{
	const struct jv *mark = jv_get(property, MARK);
	struct str name = jv_str_of(mark), type = jv_get_str(property, "type");

	if (!mark)
		return;
	if (!is_token(name) || marks->count == MARKS_MAX ||
	    !(str_is(type, "string") || str_is(type, "integer") || str_is(type, "boolean"))) {
		marks->is_wrong = true;
		return;
	}
	for (size_t i = 0; i < marks->count; i++)
		marks->is_wrong = marks->is_wrong || str_eq_nocase(marks->names[i], name);
	marks->names[marks->count++] = name;
}

/* `reachable`: through "properties" alone, from the root. */
static void find_marks(struct marks *marks, const struct jv *v, bool reachable, unsigned depth)
{
	if (!v || depth > DEPTH_MAX || (v->type != JV_OBJECT && v->type != JV_ARRAY))
		return;
	for (const struct jv_member *m = jv_first(v); m; m = m->next) {
		if (v->type == JV_OBJECT && str_is(m->key, "properties") && m->value->type == JV_OBJECT) {
			for (const struct jv_member *p = jv_first(m->value); p; p = p->next) {
				if (reachable)
					add_mark(marks, p->value);
				else if (jv_get(p->value, MARK))
					marks->is_wrong = true;
				find_marks(marks, p->value, reachable, depth + 1);
			}
		} else {
			if (m->value->type == JV_OBJECT && jv_get(m->value, MARK))
				marks->is_wrong = true;
			find_marks(marks, m->value, false, depth + 1);
		}
	}
}

bool mcp_header_marks_ok(const struct jv *schema)
{
	struct marks marks = {0};

	if (jv_get(schema, MARK))
		return false;
	find_marks(&marks, schema, true, 0);
	return !marks.is_wrong;
}

static bool is_plain(struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		if ((s.ptr[i] < 32 && s.ptr[i] != '\t') || s.ptr[i] == 127 || (unsigned char)s.ptr[i] > 127)
			return false;
	return str_eq(str_trim(s), s) && !(str_starts(s, STR("=?base64?")) && str_ends(s, STR("?=")));
}

struct str mcp_header_value(struct arena *arena, struct str value)
{
	if (is_plain(value))
		return value;
	return arena_printf(arena, "=?base64?%.*s?=", STR_ARG(base64_encode(arena, value)));
}

/* ptr NULL: the value is not one that can be sent. */
static struct str value_text(struct arena *arena, const struct jv *v)
{
	if (v->type == JV_STR)
		return mcp_header_value(arena, v->u.s);
	if (v->type == JV_BOOL)
		return v->u.b ? STR("true") : STR("false");
	if (v->type == JV_INT && v->u.i >= -SAFE_MOST && v->u.i <= SAFE_MOST)
		return arena_printf(arena, "%lld", (long long)v->u.i);
	return STR_NONE;
}

static size_t add_headers(struct arena *arena, const struct jv *schema, const struct jv *args,
			  struct http_header *headers, size_t most, unsigned depth)
{
	size_t n = 0;

	if (depth > DEPTH_MAX)
		return 0;
	for (const struct jv_member *p = jv_first(jv_get(schema, "properties")); p && n < most; p = p->next) {
		const struct jv *value = jv_get_key(args, p->key);
		struct str mark = jv_get_str(p->value, MARK), text;

		if (jv_is_null(value))
			continue;
		if (value->type == JV_OBJECT)
			n += add_headers(arena, p->value, value, headers + n, most - n, depth + 1);
		text = mark.len ? value_text(arena, value) : STR_NONE;
		if (text.ptr && n < most)
			headers[n++] = (struct http_header){arena_printf(arena, "mcp-param-%.*s", STR_ARG(mark)), text};
	}
	return n;
}

size_t mcp_param_headers(struct arena *arena, const struct jv *schema, const struct jv *args,
			 struct http_header *headers, size_t most)
{
	return schema && args ? add_headers(arena, schema, args, headers, most, 0) : 0;
}
