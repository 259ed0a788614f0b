/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON values: building and writing. The parser is in jv_parse.c.
 *
 * Objects are lists in insertion order: tool arguments have a dozen members, and order is kept for people. A document
 * with thousands of members in one object still parses in linear time; only look-up is linear per key.
 */
#include "text/jv.h"

#include <math.h>
#include <stdio.h>

#include "text/jv_scan.h"

size_t jv_count(const struct jv *v)
{
	return v && (v->type == JV_ARRAY || v->type == JV_OBJECT) ? v->u.items.count : 0;
}

const struct jv *jv_get_key(const struct jv *object, struct str key)
{
	if (!object || object->type != JV_OBJECT)
		return NULL;
	for (const struct jv_member *m = object->u.items.first; m; m = m->next)
		if (str_eq(m->key, key))
			return m->value;
	return NULL;
}

const struct jv *jv_get(const struct jv *object, const char *key)
{
	return jv_get_key(object, str_of(key));
}

const struct jv *jv_at(const struct jv *array, size_t index)
{
	const struct jv_member *m = jv_first(array);

	while (m && index--)
		m = m->next;
	return m ? m->value : NULL;
}

struct str jv_str_of(const struct jv *v)
{
	return v && v->type == JV_STR ? v->u.s : STR_NONE;
}

struct str jv_get_str(const struct jv *object, const char *key)
{
	return jv_str_of(jv_get(object, key));
}

int64_t jv_get_int(const struct jv *object, const char *key, int64_t fallback)
{
	const struct jv *v = jv_get(object, key);

	if (v && v->type == JV_INT)
		return v->u.i;
	if (v && v->type == JV_REAL && v->u.d == floor(v->u.d) && fabs(v->u.d) < 9e15)
		return (int64_t)v->u.d;
	return fallback;
}

bool jv_get_bool(const struct jv *object, const char *key, bool fallback)
{
	const struct jv *v = jv_get(object, key);

	return v && v->type == JV_BOOL ? v->u.b : fallback;
}

bool jv_is_null(const struct jv *v)
{
	return !v || v->type == JV_NULL;
}

static struct jv *make(struct arena *arena, enum jv_type type)
{
	struct jv *v = ARENA_NEW(arena, struct jv);

	v->type = type;
	return v;
}

struct jv *jv_null(struct arena *arena)
{
	return make(arena, JV_NULL);
}

struct jv *jv_bool(struct arena *arena, bool b)
{
	struct jv *v = make(arena, JV_BOOL);

	v->u.b = b;
	return v;
}

struct jv *jv_int(struct arena *arena, int64_t i)
{
	struct jv *v = make(arena, JV_INT);

	v->u.i = i;
	return v;
}

struct jv *jv_real(struct arena *arena, double d)
{
	struct jv *v = make(arena, JV_REAL);

	v->u.d = d;
	return v;
}

struct jv *jv_str(struct arena *arena, struct str s)
{
	struct jv *v = make(arena, JV_STR);

	v->u.s = s;
	return v;
}

struct jv *jv_array(struct arena *arena)
{
	return make(arena, JV_ARRAY);
}

struct jv *jv_object(struct arena *arena)
{
	return make(arena, JV_OBJECT);
}

struct jv_member *jv_add(struct arena *arena, struct jv *container)
{
	struct jv_member *m = ARENA_NEW(arena, struct jv_member);

	*(container->u.items.last ? &container->u.items.last->next : &container->u.items.first) = m;
	container->u.items.last = m;
	container->u.items.count++;
	return m;
}

static void add_member(struct arena *arena, struct jv *container, struct str key, struct jv *value)
{
	struct jv_member *m = jv_add(arena, container);

	m->key = key;
	m->value = value;
}

void jv_push(struct arena *arena, struct jv *array, struct jv *value)
{
	jv_add(arena, array)->value = value;
}

void jv_set_key(struct arena *arena, struct jv *object, struct str key, struct jv *value)
{
	for (struct jv_member *m = object->u.items.first; m; m = m->next) {
		if (str_eq(m->key, key)) {
			m->value = value;
			return;
		}
	}
	add_member(arena, object, key, value);
}

void jv_set(struct arena *arena, struct jv *object, const char *key, struct jv *value)
{
	jv_set_key(arena, object, str_of(key), value);
}

void jv_remove(struct jv *object, const char *key)
{
	struct jv_member *before = NULL;

	for (struct jv_member *m = object->u.items.first; m; before = m, m = m->next) {
		if (!str_is(m->key, key))
			continue;
		if (before)
			before->next = m->next;
		else
			object->u.items.first = m->next;
		if (object->u.items.last == m)
			object->u.items.last = before;
		object->u.items.count--;
		return;
	}
}

void jv_set_str(struct arena *arena, struct jv *object, const char *key, struct str s)
{
	jv_set(arena, object, key, jv_str(arena, s));
}

void jv_set_int(struct arena *arena, struct jv *object, const char *key, int64_t i)
{
	jv_set(arena, object, key, jv_int(arena, i));
}

void jv_set_bool(struct arena *arena, struct jv *object, const char *key, bool b)
{
	jv_set(arena, object, key, jv_bool(arena, b));
}

struct jv *jv_copy(struct arena *arena, const struct jv *v)
{
	struct jv *copy = ARENA_NEW(arena, struct jv);

	*copy = *v;
	if (v->type == JV_STR)
		copy->u.s = arena_str(arena, v->u.s);
	if (v->type != JV_ARRAY && v->type != JV_OBJECT)
		return copy;
	copy->u.items.first = copy->u.items.last = NULL;
	copy->u.items.count = 0;
	for (const struct jv_member *m = v->u.items.first; m; m = m->next) {
		add_member(arena, copy, arena_str(arena, m->key), jv_copy(arena, m->value));
		copy->u.items.last->key_line = m->key_line;
	}
	return copy;
}

bool jv_equal(const struct jv *a, const struct jv *b)
{
	if (!a || !b || a->type != b->type)
		return a == b;
	switch (a->type) {
	case JV_NULL:
		return true;
	case JV_BOOL:
		return a->u.b == b->u.b;
	case JV_INT:
		return a->u.i == b->u.i;
	case JV_REAL:
		return a->u.d == b->u.d;
	case JV_STR:
		return str_eq(a->u.s, b->u.s);
	case JV_ARRAY:
	case JV_OBJECT:
		break;
	}
	if (a->u.items.count != b->u.items.count)
		return false;
	for (const struct jv_member *m = a->u.items.first, *n = b->u.items.first; m; m = m->next, n = n->next) {
		const struct jv *other = a->type == JV_OBJECT ? jv_get_key(b, m->key) : n->value;

		if (!jv_equal(m->value, other))
			return false;
	}
	return true;
}

/* At most this many bytes for one of the source. */
#define ESCAPE_MAX ((size_t)6)

/* Writes the escape of a byte that must not be written raw; returns the end of it. */
static char *put_escape(char *to, unsigned char c)
{
	static const char hex[] = "0123456789abcdef";
	char name = c == '\n' ? 'n' : c == '\t' ? 't' : c == '\r' ? 'r' : c == '"' || c == '\\' ? (char)c : 0;

	*to++ = '\\';
	if (name) {
		*to++ = name;
		return to;
	}
	memcpy(to, "u00", 3);
	to[3] = hex[c >> 4];
	to[4] = hex[c & 15];
	return to + 5;
}

/* Writes what is at *from, which is not a plain byte, and moves past it: an escape, a well-formed sequence of UTF-8,
   or U+FFFD for a malformed byte. */
static char *put_special(char *to, const char **from, const char *end)
{
	unsigned char c = (unsigned char)**from;
	size_t n = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : 2;

	if (c < 0x80) {
		++*from;
		return put_escape(to, c);
	}
	if (n <= (size_t)(end - *from) && utf8_valid(str_n(*from, n))) {
		memcpy(to, *from, n);
		*from += n;
		return to + n;
	}
	++*from;
	memcpy(to, "\xEF\xBF\xBD", 3);
	return to + 3;
}

/* Near the ceiling of the buffer: no byte more is asked for than is written. */
static void write_string_bounded(struct buf *buf, struct str s)
{
	const char *from = s.ptr ? s.ptr : "", *end = from + s.len;

	buf_char(buf, '"');
	while (from < end && !buf->overflow) {
		size_t n = jv_scan(from, (size_t)(end - from), NULL);
		char special[ESCAPE_MAX];

		buf_add(buf, str_n(from, n));
		from += n;
		if (from < end)
			buf_add(buf, str_n(special, (size_t)(put_special(special, &from, end) - special)));
	}
	buf_char(buf, '"');
}

void jv_write_string(struct buf *buf, struct str s)
{
	const char *from = s.ptr ? s.ptr : "", *end = from + s.len;
	size_t slack = 2 + ESCAPE_MAX + JV_STEP;
	char *to;

	if (buf->overflow || buf->max - buf->len < slack || s.len > (buf->max - buf->len - slack) / ESCAPE_MAX) {
		write_string_bounded(buf, s);
		return;
	}
	to = buf_reserve(buf, s.len + slack);
	*to++ = '"';
	while (from < end) {
		size_t n = jv_scan(from, (size_t)(end - from), to);

		from += n;
		to += n;
		if (from == end)
			break;
		to = put_special(to, &from, end);
		buf->len = (size_t)(to - buf->ptr);
		to = buf_reserve(buf, (size_t)(end - from) + slack);
	}
	*to++ = '"';
	buf->len = (size_t)(to - buf->ptr);
}

static void write_real(struct buf *buf, double d)
{
	char text[32];
	int n;

	if (!isfinite(d)) {
		buf_lit(buf, "null");
		return;
	}
	/* 15 digits read well (0.1); when they are not this very number, 17 always are. */
	n = snprintf(text, sizeof(text), "%.15g", d);
	if (strtod(text, NULL) != d)
		n = snprintf(text, sizeof(text), "%.17g", d);
	buf_add(buf, str_n(text, (size_t)n));
	if (!memchr(text, '.', (size_t)n) && !memchr(text, 'e', (size_t)n))
		buf_lit(buf, ".0");
}

static void newline(struct buf *buf, int depth)
{
	buf_char(buf, '\n');
	for (int i = 0; i < depth; i++)
		buf_lit(buf, "  ");
}

/* depth < 0: compact */
static void write_value(struct buf *buf, const struct jv *v, int depth)
{
	bool is_object;

	if (jv_is_null(v)) {
		buf_lit(buf, "null");
		return;
	}
	if (v->type == JV_BOOL)
		buf_add(buf, v->u.b ? STR("true") : STR("false"));
	else if (v->type == JV_INT)
		buf_i64(buf, v->u.i);
	else if (v->type == JV_REAL)
		write_real(buf, v->u.d);
	else if (v->type == JV_STR)
		jv_write_string(buf, v->u.s);
	if (v->type != JV_ARRAY && v->type != JV_OBJECT)
		return;
	is_object = v->type == JV_OBJECT;
	buf_char(buf, is_object ? '{' : '[');
	for (const struct jv_member *m = v->u.items.first; m; m = m->next) {
		if (m != v->u.items.first)
			buf_char(buf, ',');
		if (depth >= 0)
			newline(buf, depth + 1);
		if (is_object) {
			jv_write_string(buf, m->key);
			buf_add(buf, depth >= 0 ? STR(": ") : STR(":"));
		}
		write_value(buf, m->value, depth >= 0 ? depth + 1 : -1);
	}
	if (depth >= 0 && v->u.items.first)
		newline(buf, depth);
	buf_char(buf, is_object ? '}' : ']');
}

void jv_write(struct buf *buf, const struct jv *v)
{
	write_value(buf, v, -1);
}

void jv_write_pretty(struct buf *buf, const struct jv *v)
{
	write_value(buf, v, 0);
	buf_char(buf, '\n');
}
