/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON parser and writer. jansson is the reference: whatever either accepts, both must read alike. */
#include <jansson.h>

#include "base/arena.h"
#include "base/limits.h"
#include "test.h"
#include "text/jv.h"

static bool same(const struct jv *v, const json_t *want)
{
	const struct jv_member *m = jv_first(v);
	const char *key;
	json_t *child;
	size_t i;

	switch (json_typeof(want)) {
	case JSON_NULL:
		return v->type == JV_NULL;
	case JSON_TRUE:
	case JSON_FALSE:
		return v->type == JV_BOOL && v->u.b == json_is_true(want);
	case JSON_INTEGER:
		return v->type == JV_INT && v->u.i == json_integer_value(want);
	case JSON_REAL:
		return v->type == JV_REAL && v->u.d == json_real_value(want);
	case JSON_STRING:
		return v->type == JV_STR && v->u.s.ptr[v->u.s.len] == '\0' &&
		       str_eq(v->u.s, str_n(json_string_value(want), json_string_length(want)));
	case JSON_ARRAY:
		json_array_foreach (want, i, child) {
			if (!m || !same(m->value, child))
				return false;
			m = m->next;
		}
		return v->type == JV_ARRAY && jv_count(v) == json_array_size(want);
	case JSON_OBJECT:
		break;
	}
	json_object_foreach((json_t *)want, key, child)
	{ /* both keep the order */
		if (!m || !str_is(m->key, key) || !same(m->value, child))
			return false;
		m = m->next;
	}
	return v->type == JV_OBJECT && jv_count(v) == json_object_size(want);
}

static void check_like_jansson(struct str text)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	json_t *want = json_loadb(text.ptr, text.len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
	struct jv *v = NULL;
	struct err err;
	bool read = jv_parse(arena, text, &v, &err) == 0;
	bool agree = read ? want && same(v, want) : !want;

	json_decref(want);
	if (!agree)
		TEST_FAIL("read differently: %.*s", STR_ARG(text));
}

static const char *const texts[] = {
	"0",
	"-0",
	"-1",
	"01",
	"-",
	"1.",
	".5",
	"1.5e",
	"1e5",
	"1E+05",
	"-1.25e-3",
	"1e400",
	"-1e400",
	"1e-400",
	"9223372036854775807",
	"9223372036854775808",
	"-9223372036854775808",
	"-9223372036854775809",
	"123456789012345678901234567890",
	"true",
	"tru",
	"truex",
	"null",
	"nul",
	"false",
	"",
	" ",
	"\n[\r\t1 ]\n",
	"[1,]",
	"[,1]",
	"[1 2]",
	"[",
	"]",
	"{",
	"{}",
	"{\"a\"}",
	"{\"a\":}",
	"{\"a\":1,}",
	"{a:1}",
	"{\"a\":1 \"b\":2}",
	"{\"a\":1,\"a\":2}",
	"{\"a\\u0000\":1}",
	"{\"\":1}",
	"\"",
	"\"\\",
	"\"\\\"",
	"\"\\x\"",
	"\"\\u12\"",
	"\"\\u12g4\"",
	"\"\\u00e9\\uD83D\\uDE00\"",
	"\"\\uD83D\"",
	"\"\\uD83Dx\"",
	"\"\\uD83D\\u0041\"",
	"\"\\uDE00\"",
	"\"\\b\\f\\n\\r\\t\\/\\\\\\\"\"",
	"\"a\nb\"",
	"\"a\tb\"",
	"\"\x7f\"",
	"\"\xC3\xA9\"",
	"\"\xC3\"",
	"\"\xED\xA0\x80\"",
	"\"\xF4\x90\x80\x80\"",
	"\"\xC0\x80\"",
	"\xEF\xBB\xBF{}",
	"[1] x",
	"[1]]",
	"//c\n1",
	"[1,/**/2]",
	"'a'",
	"+1",
	"NaN",
	"Infinity",
	("\"0123456789abcdef0123456789abcdef\\n0123456789abcdef\xC3\xA9"
	 "0123456789abcdef\""),
};

TEST(what_is_json_is_read_as_jansson_reads_it)
{
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		check_like_jansson(str_of(texts[i]));
	check_like_jansson(str_n("\"a\0b\"", 5));
}

static uint64_t state = 88172645463325252u;

static size_t below(size_t n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (size_t)(state % n);
}

TEST(damaged_json_is_read_or_refused_as_jansson_does)
{
	static const char seed[] =
		"{\"jsonrpc\":\"2.0\",\"id\":12,\"params\":{\"name\":\"read_file\",\"arguments\":{\"path\":"
		"\"notes/caf\xC3\xA9.md\",\"n\":[1,-2.5e3,true,false,null,\"\\u00e9\\n\\\"\"]},\"b\":{}}}";
	static const char bytes[] = "{}[]:,\"\\ue0159-+.tfn \n\x01\x80\xC3";

	for (int round = 0; round < 200000; round++) {
		char text[sizeof(seed)];
		size_t len = sizeof(seed) - 1;

		memcpy(text, seed, sizeof(seed));
		for (size_t n = 1 + below(3); n; n--) {
			size_t at = below(len - 1);

			if (below(3)) {
				text[at] = bytes[below(sizeof(bytes) - 1)];
			} else {
				memmove(text + at, text + at + 1, len - at - 1);
				len--;
			}
		}
		check_like_jansson(str_n(text, len));
	}
}

TEST(a_key_that_stands_twice_is_found_among_many)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct jv *v;
	struct err err;
	struct buf b;

	buf_init(&b, arena, 1 * MIB);
	for (int i = 0; i < 5000; i++)
		buf_printf(&b, "%s\"key%d\":%d", i ? "," : "{", i, i);
	buf_lit(&b, "}");
	CHECK_OK(jv_parse(arena, buf_str(&b), &v, &err), err);
	CHECK_INT(jv_count(v), 5000);
	b.len--;
	buf_lit(&b, ",\"key7\":0}");
	CHECK_ERR(jv_parse(arena, buf_str(&b), &v, &err), err, ERR_INVALID);
	CHECK_HAS(str_of(err.msg), STR("this key occurs twice"));
}

TEST(a_refusal_names_line_column_and_what_stands_there)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct jv *v;
	struct err err;

	CHECK_ERR(jv_parse(arena, STR("{\n\"\xC3\xA9\" 1}"), &v, &err), err, ERR_INVALID);
	CHECK_STR(str_of(err.msg), STR("not JSON, line 2 column 5: ':' was expected near '1}'"));
	CHECK_ERR(jv_parse(arena, STR("[1"), &v, &err), err, ERR_INVALID);
	CHECK_STR(str_of(err.msg), STR("not JSON, line 1 column 3: ',' or ']' was expected at the end of the text"));
}

TEST(a_string_is_written_the_same_near_the_ceiling_of_its_buffer)
{
	for (size_t len = 0; len < 80; len++) {
		struct buf roomy, tight;
		char text[80];

		for (size_t i = 0; i < len; i++)
			text[i] = "abcdefghijklmnop\n\t\"\\\x01\xC3\xA9\x80"[below(23)];
		buf_init(&roomy, NULL, 1 * MIB);
		jv_write_string(&roomy, str_n(text, len));
		buf_init(&tight, NULL, roomy.len);
		jv_write_string(&tight, str_n(text, len));
		CHECK(!tight.overflow);
		CHECK_STR(buf_str(&tight), buf_str(&roomy));
		buf_release(&tight);
		buf_init(&tight, NULL, roomy.len - 1);
		jv_write_string(&tight, str_n(text, len));
		CHECK(tight.overflow);
		buf_release(&tight);
		buf_release(&roomy);
	}
}
