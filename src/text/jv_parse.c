/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON text to values, strictly by RFC 8259: one pass, straight into the arena. Beyond the grammar it refuses malformed
 * UTF-8, halves of surrogate pairs, a key twice in one object, NUL in a key, and numbers that do not fit (an integer 64
 * bits, a real the range of double): whoever sent such a thing meant something else than what we would understand.
 *
 * A library in this place (jansson) took a quarter of the time of a call that reads a small file: its tree of counted
 * references is built on the heap, copied into the arena and torn down. tests/text/json_test.c now compares this parser
 * with it.
 */
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>

#include "base/limits.h"
#include "base/strmap.h"
#include "base/utf8.h"
#include "text/jv.h"
#include "text/jv_scan.h"

/* Up to here keys are compared with each other, from here on in a table. */
#define KEYS_COMPARED 8

struct parser {
	struct arena *arena;
	const char *start, *at, *end;
	int depth;
	const char *why; /* what is wrong at `at` */
};

static struct jv *parse_value(struct parser *p);

static void *fail(struct parser *p, const char *at, const char *why)
{
	p->at = at;
	p->why = why;
	return NULL;
}

static void skip_space(struct parser *p)
{
	while (p->at < p->end && (*p->at == ' ' || *p->at == '\n' || *p->at == '\r' || *p->at == '\t'))
		p->at++;
}

static bool take(struct parser *p, char c)
{
	skip_space(p);
	if (p->at == p->end || *p->at != c)
		return false;
	p->at++;
	return true;
}

/* --- strings --- */

static bool hex4(const char *s, const char *end, unsigned *ret)
{
	unsigned v = 0;

	if (end - s < 4)
		return false;
	for (int i = 0; i < 4; i++) {
		char c = s[i];

		v <<= 4;
		if (c >= '0' && c <= '9')
			v |= (unsigned)(c - '0');
		else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
			v |= (unsigned)((c | 0x20) - 'a' + 10);
		else
			return false;
	}
	*ret = v;
	return true;
}

/* Decodes the digits that follow "\u" at *from and moves past them. NULL: not a code point. */
static char *put_unicode(char *to, const char **from, const char *end)
{
	const char *s = *from;
	unsigned c, low;

	if (!hex4(s, end, &c))
		return NULL;
	s += 4;
	if (c >= 0xD800 && c < 0xDC00) {
		if (end - s < 6 || s[0] != '\\' || s[1] != 'u' || !hex4(s + 2, end, &low) || low < 0xDC00 ||
		    low > 0xDFFF)
			return NULL;
		c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
		s += 6;
	} else if (c >= 0xDC00 && c <= 0xDFFF) {
		return NULL;
	}
	*from = s;
	return to + utf8_put(to, c);
}

/* The escape after the backslash at from[-1]. */
static char *put_escape(char *to, const char **from, const char *end)
{
	static const char names[] = "\"\\/bfnrt", bytes[] = "\"\\/\b\f\n\r\t";
	char c = *(*from)++;
	const char *name;

	if (c == 'u')
		return put_unicode(to, from, end);
	name = c ? strchr(names, c) : NULL;
	if (!name)
		return NULL;
	*to = bytes[name - names];
	return to + 1;
}

/* The raw text [from, end) without its quotes; it is never shorter than what it means. */
static bool unescape(struct parser *p, const char *from, const char *end, struct str *ret)
{
	char *text = arena_alloc_raw(p->arena, (size_t)(end - from) + 1), *to = text;

	while (from < end) {
		const char *slash = memchr(from, '\\', (size_t)(end - from));
		size_t n = (size_t)((slash ? slash : end) - from);

		memcpy(to, from, n);
		to += n;
		from += n;
		if (!slash)
			break;
		from++;
		to = put_escape(to, &from, end);
		if (!to) {
			fail(p, slash, "this is not a JSON escape");
			return false;
		}
	}
	*to = '\0';
	*ret = str_n(text, (size_t)(to - text));
	return true;
}

/* Starts after the opening quote. The string is NUL-terminated in the arena. */
static bool parse_string(struct parser *p, struct str *ret)
{
	const char *from = p->at, *at = from;
	bool escapes = false, beyond_ascii = false;

	for (;;) {
		at += jv_scan(at, (size_t)(p->end - at), NULL);
		if (at < p->end && *at == '"')
			break;
		if (at < p->end && *at == '\\' && p->end - at > 1) {
			escapes = true;
			at += 2;
		} else if (at < p->end && (unsigned char)*at >= 0x80) {
			beyond_ascii = true;
			at++;
		} else {
			fail(p, at,
			     at < p->end && *at != '\\' ? "a control character in a string must be escaped"
							: "the string has no end");
			return false;
		}
	}
	if (escapes && !unescape(p, from, at, ret))
		return false;
	if (!escapes)
		*ret = arena_str(p->arena, str_n(from, (size_t)(at - from)));
	if (beyond_ascii && !utf8_valid(*ret)) {
		fail(p, from, "the string is not UTF-8");
		return false;
	}
	p->at = at + 1;
	return true;
}

/* --- numbers --- */

static const char *skip_digits(const char *at, const char *end)
{
	while (at < end && *at >= '0' && *at <= '9')
		at++;
	return at;
}

static struct jv *parse_real(struct parser *p, const char *from, const char *end)
{
	const char *text = arena_cstr(p->arena, str_n(from, (size_t)(end - from)));
	double d;

	/* an embedder's locale may write 0,5 */
	d = strtod_l(text, NULL, newlocale(LC_ALL_MASK, "C", (locale_t)0));
	return isfinite(d) ? jv_real(p->arena, d) : fail(p, from, "the number is too large");
}

static struct jv *parse_number(struct parser *p)
{
	const char *from = p->at, *at = from + (*from == '-'), *digits = at;
	bool negative = digits > from, real = false;
	uint64_t most = (uint64_t)INT64_MAX + negative, v = 0;

	at = skip_digits(at, p->end);
	if (at == digits || (*digits == '0' && at - digits > 1))
		return fail(p, from, at == digits ? "a value was expected" : "a number must not begin with 0");
	p->at = at;
	if (p->at < p->end && *p->at == '.') {
		real = true;
		p->at = skip_digits(at + 1, p->end);
		if (p->at == at + 1)
			return fail(p, p->at, "digits must follow the point");
	}
	if (p->at < p->end && (*p->at | 0x20) == 'e') {
		const char *exponent = p->at + 1;

		real = true;
		exponent += exponent < p->end && (*exponent == '+' || *exponent == '-');
		p->at = skip_digits(exponent, p->end);
		if (p->at == exponent)
			return fail(p, p->at, "digits must follow the exponent");
	}
	if (real)
		return parse_real(p, from, p->at);
	for (; digits < at; digits++) {
		unsigned digit = (unsigned)(*digits - '0');

		if (v > (most - digit) / 10)
			return fail(p, from, "the integer does not fit into 64 bits");
		v = v * 10 + digit;
	}
	return jv_int(p->arena, negative ? (int64_t)(0 - v) : (int64_t)v);
}

/* --- arrays, objects, all --- */

static struct jv *parse_array(struct parser *p)
{
	struct jv *v = jv_array(p->arena);

	if (take(p, ']'))
		return v;
	do {
		struct jv *item = parse_value(p);

		if (!item)
			return NULL;
		jv_add(p->arena, v)->value = item;
	} while (take(p, ','));
	return take(p, ']') ? v : fail(p, p->at, "',' or ']' was expected");
}

static bool key_is_new(struct parser *p, const struct jv *object, struct str key, struct strmap **seen)
{
	bool added;

	if (object->u.items.count < KEYS_COMPARED)
		return !jv_get_key(object, key);
	if (!*seen) {
		*seen = strmap_new(p->arena);
		for (const struct jv_member *m = jv_first(object); m; m = m->next)
			strmap_put(*seen, m->key, NULL);
	}
	strmap_put(*seen, key, &added);
	return added;
}

static struct jv *parse_object(struct parser *p)
{
	struct jv *v = jv_object(p->arena);
	struct strmap *seen = NULL;

	if (take(p, '}'))
		return v;
	do {
		struct jv_member *m;
		const char *from;
		struct str key;

		if (!take(p, '"'))
			return fail(p, p->at, "a key in double quotes was expected");
		from = p->at;
		if (!parse_string(p, &key))
			return NULL;
		if (memchr(key.ptr, '\0', key.len))
			return fail(p, from, "a key must not have a NUL character");
		if (!key_is_new(p, v, key, &seen))
			return fail(p, from, "this key occurs twice in one object");
		if (!take(p, ':'))
			return fail(p, p->at, "':' was expected");
		m = jv_add(p->arena, v);
		m->key = key;
		m->value = parse_value(p);
		if (!m->value)
			return NULL;
	} while (take(p, ','));
	return take(p, '}') ? v : fail(p, p->at, "',' or '}' was expected");
}

static struct jv *parse_container(struct parser *p, bool is_object)
{
	struct jv *v;

	p->at++;
	if (++p->depth > JSON_DEPTH_MAX)
		return fail(p, p->at, NULL);
	v = is_object ? parse_object(p) : parse_array(p);
	p->depth--;
	return v;
}

static bool take_word(struct parser *p, struct str word)
{
	if (!str_starts(str_n(p->at, (size_t)(p->end - p->at)), word))
		return false;
	p->at += word.len;
	return true;
}

static struct jv *parse_value(struct parser *p)
{
	struct str s;

	skip_space(p);
	switch (p->at < p->end ? *p->at : '\0') {
	case '"':
		p->at++;
		return parse_string(p, &s) ? jv_str(p->arena, s) : NULL;
	case '{':
		return parse_container(p, true);
	case '[':
		return parse_container(p, false);
	case 't':
	case 'f':
		if (take_word(p, STR("true")))
			return jv_bool(p->arena, true);
		if (take_word(p, STR("false")))
			return jv_bool(p->arena, false);
		break;
	case 'n':
		if (take_word(p, STR("null")))
			return jv_null(p->arena);
		break;
	default:
		if (p->at < p->end && (*p->at == '-' || (*p->at >= '0' && *p->at <= '9')))
			return parse_number(p);
	}
	return fail(p, p->at, "a value was expected");
}

static int refuse(const struct parser *p, struct err *err)
{
	const char *line = p->start;
	size_t lines = 1;
	struct str rest;

	if (!p->why)
		return err_set(err, ERR_INVALID, "the JSON text is nested more than %d levels deep; flatten it",
			       JSON_DEPTH_MAX);
	for (const char *at = line; at < p->at; at++) {
		if (*at == '\n') {
			line = at + 1;
			lines++;
		}
	}
	rest = utf8_first(str_n(p->at, (size_t)(p->end - p->at)), 20);
	rest = str_first(rest, str_find_char(rest, '\n'));
	if (p->at == p->end || !utf8_valid(rest))
		rest = STR("");
	return err_set(err, ERR_INVALID, "not JSON, line %zu column %zu: %s%s%.*s%s", lines,
		       utf8_count(str_n(line, (size_t)(p->at - line))) + 1, p->why,
		       rest.len          ? " near '"
		       : p->at == p->end ? " at the end of the text"
					 : "",
		       STR_ARG(rest), rest.len ? "'" : "");
}

int jv_parse(struct arena *arena, struct str text, struct jv **ret, struct err *err)
{
	struct parser p = {.arena = arena, .start = text.ptr ? text.ptr : ""};
	struct jv *v;

	if (text.len > JSON_LEN_MAX)
		return err_set(err, ERR_TOO_LARGE, "the JSON text has %zu bytes; at most %zu are read", text.len,
			       JSON_LEN_MAX);
	p.at = p.start;
	p.end = p.start + text.len;
	v = parse_value(&p);
	skip_space(&p);
	if (v && p.at < p.end)
		v = fail(&p, p.at, "nothing may follow the value");
	if (!v)
		return refuse(&p, err);
	*ret = v;
	return 0;
}
