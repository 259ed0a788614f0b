/* SPDX-License-Identifier: Apache-2.0 */
#include "allocations.h"
#include "base/limits.h"
#include "test.h"
#include "text/yaml.h"

static struct str as_json(struct arena *arena, struct str text)
{
	struct jv *v;
	struct err err;
	struct buf b;

	CHECK_OK(yaml_parse(arena, text, &v, &err), err);
	buf_init(&b, arena, 4 * MIB);
	jv_write(&b, v);
	return buf_str(&b);
}

static struct str refusal(struct arena *arena, struct str text)
{
	struct jv *v;
	struct err err = {0};

	CHECK_ERR(yaml_parse(arena, text, &v, &err), err, ERR_INVALID);
	return arena_str(arena, str_of(err.msg));
}

TEST(plain_scalars_follow_the_core_schema)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	static const char *const cases[][2] = {
		{"null", "null"},
		{"~", "null"},
		{"", "null"},
		{"true", "true"},
		{"FALSE", "false"},
		{"yes", "\"yes\""},
		{"on", "\"on\""},
		{"12", "12"},
		{"-7", "-7"},
		{"+7", "7"},
		{"007", "7"},
		{"0x1F", "31"},
		{"0o17", "15"},
		{"017", "17"},
		{"0b1", "\"0b1\""},
		{"1_000", "\"1_000\""},
		{"1.5", "1.5"},
		{".5", "0.5"},
		{"1e3", "1000.0"},
		{"1e", "\"1e\""},
		{".", "\".\""},
		{"12:30", "\"12:30\""},
		{"2026-11-15", "\"2026-11-15\""},
		{"9223372036854775807", "9223372036854775807"},
		{"'12'", "\"12\""},
		{"\"true\"", "\"true\""},
		{"\"a\\u00e9\\n\"", "\"a\xC3\xA9\\n\""},
		{"[a, 'b', 3]", "[\"a\",\"b\",3]"},
		{"{a: 1, b: {c: null}}", "{\"a\":1,\"b\":{\"c\":null}}"},
		{"k: |\n  one\n  two\n", "{\"k\":\"one\\ntwo\\n\"}"},
		{"k: >-\n  one\n  two\n", "{\"k\":\"one two\"}"},
		{"1: x", "{\"1\":\"x\"}"},
		{"# only a comment\n", "null"},
		{"---\na: 1\n...\n", "{\"a\":1}"},
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		CHECK_STR(as_json(arena, str_of(cases[i][0])), str_of(cases[i][1]));
}

TEST(values_and_keys_know_their_line)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	const struct jv_member *m;
	struct err err;
	struct jv *v;

	CHECK_OK(yaml_parse(arena, STR("# c\na: 1\nb:\n  - x\n  - y: 2\n"), &v, &err), err);
	m = jv_first(v);
	CHECK_INT(m->key_line, 2);
	CHECK_INT(m->value->line, 2);
	CHECK_INT(m->next->key_line, 3);
	CHECK_INT(jv_at(m->next->value, 1)->line, 5);
}

TEST(what_makes_yaml_surprising_is_refused_with_its_line)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	static const char *const cases[][2] = {
		{"a: 1\nb: 2\na: 3\n", "line 3: the key \"a\" occurs twice"},
		{"a: 1\nb: !!int 3\n", "line 2: the tag "},
		{"a: !x {b: 1}\n", "line 1: the tag "},
		{"a: 1\n---\nb: 2\n", "line 2: a second document begins"},
		{"a: &x {k: 1}\nb:\n  <<: *x\n", "line 3: merge keys"},
		{"a: *none\n", "line 1: *none does not name an earlier anchor"},
		{"a: &x [*x]\n", "does not name an earlier anchor"},
		{"? [a, b]\n: 1\n", "line 1: a key must be plain text"},
		{"a: .inf\n", "line 1: .inf is not allowed"},
		{"a: [1, 2\nb: 3\n", "not YAML"},
		{"a: 'x\n", "not YAML"},
		{"a:\n\t- x\n", "not YAML"},
		{"\xFF", "not UTF-8"},
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		CHECK_HAS(refusal(arena, str_of(cases[i][0])), str_of(cases[i][1]));
}

TEST(an_alias_is_a_copy)
{
	ARENA_SCOPE struct arena *arena = arena_new();

	CHECK_STR(as_json(arena, STR("a: &x {k: [1]}\nb: *x\n")), STR("{\"a\":{\"k\":[1]},\"b\":{\"k\":[1]}}"));
}

TEST(a_billion_laughs_end_early)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct buf b;
	size_t before;

	buf_init(&b, arena, MIB);
	buf_lit(&b, "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol]\n");
	for (int i = 1; i < 30; i++)
		buf_printf(&b, "a%d: &a%d [*a%d, *a%d, *a%d, *a%d, *a%d, *a%d]\n", i, i, i - 1, i - 1, i - 1, i - 1,
			   i - 1, i - 1);
	before = allocation_bytes;
	CHECK_HAS(refusal(arena, buf_str(&b)), STR("aliases make the document larger"));
	/* All of it would be 8 * 6^29 values. With a sanitizer each value is a block with a head, hence not 64 MiB. */
	CHECK(allocation_bytes - before < 128 * MIB);
}

TEST(depth_and_length_are_bounded)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	char deep[2000];
	struct jv *v;
	struct err err;

	memset(deep, '[', 1000);
	memset(deep + 1000, ']', 1000);
	CHECK(refusal(arena, str_n(deep, 2000)).len > 0);
	CHECK_ERR(yaml_parse(arena, str_n(arena_alloc(arena, YAML_LEN_MAX + 1), YAML_LEN_MAX + 1), &v, &err), err,
		  ERR_TOO_LARGE);
}
