/* SPDX-License-Identifier: Apache-2.0 */
#include "allocations.h"
#include "test.h"
#include "text/schema.h"

/* "" when `value` fits, else the sentence. */
static struct str verdict(struct arena *arena, const char *schema, const char *value)
{
	struct jv *s, *v;
	struct err err = {0};

	CHECK_OK(jv_parse(arena, str_of(schema), &s, &err), err);
	CHECK_OK(schema_compile(s, &err), err);
	CHECK_OK(jv_parse(arena, str_of(value), &v, &err), err);
	if (schema_check(s, v, "arguments", &err) == 0)
		return STR("");
	CHECK_INT(err.kind, ERR_INVALID);
	return arena_str(arena, str_of(err.msg));
}

static const char tool[] = "{\"type\":\"object\",\"properties\":{\"path\":{\"type\":\"string\",\"minLength\":1},"
			   "\"limit\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":100},"
			   "\"mode\":{\"enum\":[\"create\",\"append\"]},\"edits\":{\"type\":\"array\",\"items\":{"
			   "\"type\":\"object\",\"properties\":{\"old_text\":{\"type\":\"string\"}},"
			   "\"required\":[\"old_text\"],\"additionalProperties\":false}}},"
			   "\"required\":[\"path\"],\"additionalProperties\":false}";

TEST(a_wrong_argument_is_told_in_one_sentence)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	static const struct {
		const char *value, *want;
	} cases[] = {
		{"{\"path\":\"a\",\"limit\":3,\"mode\":\"append\"}", ""},
		{"{\"path\":\"a\",\"limit\":3.0}", ""},
		{"{\"pth\":\"a\"}", "arguments: unknown key \"pth\"; did you mean \"path\"?"},
		{"{\"path\":\"a\",\"zzzzzzzz\":1}", "arguments: unknown key \"zzzzzzzz\"; known keys are \"path\", "
						    "\"limit\", \"mode\", \"edits\""},
		{"{}", "arguments: \"path\" is missing"},
		{"{\"path\":7}", "arguments: path is 7; expected a non-empty string"},
		{"{\"path\":\"\"}", "arguments: path is \"\"; expected a non-empty string"},
		{"{\"path\":null}", "arguments: path is null; expected a non-empty string"},
		{"{\"path\":\"a\",\"limit\":0}", "arguments: limit is 0; expected an integer between 1 and 100"},
		{"{\"path\":\"a\",\"limit\":101}", "arguments: limit is 101; expected an integer between 1 and 100"},
		{"{\"path\":\"a\",\"limit\":2.5}", "arguments: limit is 2.5; expected an integer between 1 and 100"},
		{"{\"path\":\"a\",\"mode\":\"w\"}", "arguments: mode is \"w\"; expected one of \"create\", \"append\""},
		{"{\"path\":\"a\",\"edits\":{}}", "arguments: edits is an object; expected a list"},
		{"{\"path\":\"a\",\"edits\":[{\"old_text\":\"x\"},{}]}", "arguments: \"edits[1].old_text\" is missing"},
		{"{\"path\":\"a\",\"edits\":[{\"old_txt\":\"x\"}]}",
		 "arguments: unknown key \"edits[0].old_txt\"; did you mean \"old_text\"?"},
		{"[1]", "arguments: the whole is a list; expected an object"},
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		CHECK_STR(verdict(arena, tool, cases[i].value), str_of(cases[i].want));
}

TEST(each_keyword_accepts_and_rejects_what_the_standard_says)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	static const struct {
		const char *schema, *good, *bad;
	} cases[] = {
		{"{\"type\":\"null\"}", "null", "0"},
		{"{\"type\":\"boolean\"}", "false", "0"},
		{"{\"type\":\"number\"}", "1.5", "\"1\""},
		{"{\"type\":\"integer\"}", "1.0", "1.1"},
		{"{\"type\":[\"string\",\"integer\"]}", "4", "true"},
		{"{\"const\":{\"a\":[1]}}", "{\"a\":[1]}", "{\"a\":[2]}"},
		{"{\"const\":false}", "false", "0"},
		{"{\"enum\":[1,\"x\",null]}", "null", "\"1\""},
		{"{\"minimum\":1.1}", "1.1", "0.6"},
		{"{\"minimum\":9007199254740993}", "9007199254740993", "9007199254740992"},
		{"{\"maximum\":3}", "\"x\"", "3.5"},
		{"{\"exclusiveMinimum\":0}", "1", "0"},
		{"{\"exclusiveMaximum\":0}", "-1", "0"},
		{"{\"minLength\":2}", "\"\xC3\xA9\xC3\xA9\"", "\"\xC3\xA9\""},
		{"{\"maxLength\":2}", "\"\xF0\x9F\x92\xA9\xF0\x9F\x92\xA9\"", "\"abc\""},
		{"{\"pattern\":\"^a*$\"}", "\"aaa\"", "\"aab\""},
		{"{\"pattern\":\"^a$\"}", "\"a\"", "\"a\\n\""},
		{"{\"pattern\":\"a+\"}", "\"xxaayy\"", "\"xx\""},
		{"{\"minItems\":1}", "[1]", "[]"},
		{"{\"maxItems\":1}", "{}", "[1,2]"},
		{"{\"uniqueItems\":true}", "[1,2,\"1\"]", "[1,2,1]"},
		{"{\"items\":{\"type\":\"integer\"}}", "[1,2]", "[1,\"x\"]"},
		{"{\"items\":false}", "[]", "[1]"},
		{"{\"properties\":{\"a\":{\"type\":\"integer\"}}}", "{\"b\":\"x\",\"a\":1}", "{\"a\":\"x\"}"},
		{"{\"additionalProperties\":{\"type\":\"boolean\"}}", "{\"x\":true}", "{\"x\":1}"},
		{"{\"required\":[\"a\"]}", "{\"a\":null}", "{\"b\":1}"},
		{"{\"anyOf\":[{\"type\":\"integer\"},{\"minimum\":2}]}", "2.5", "1.5"},
		{"{\"oneOf\":[{\"type\":\"integer\"},{\"minimum\":2}]}", "1", "3"},
		{"{\"$ref\":\"#/$defs/p\",\"$defs\":{\"p\":{\"type\":\"object\",\"properties\":{\"next\":{"
		 "\"$ref\":\"#/$defs/p\"}},\"additionalProperties\":false}}}",
		 "{\"next\":{\"next\":{}}}", "{\"next\":{\"nxt\":{}}}"},
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		if (verdict(arena, cases[i].schema, cases[i].good).len)
			TEST_FAIL("%s refuses %s", cases[i].schema, cases[i].good);
		if (!verdict(arena, cases[i].schema, cases[i].bad).len)
			TEST_FAIL("%s accepts %s", cases[i].schema, cases[i].bad);
	}
}

TEST(alternatives_are_named_together_and_the_likely_one_is_explained)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	const char *schema = "{\"properties\":{\"size\":{\"anyOf\":[{\"type\":\"integer\",\"minimum\":0},{\"type\":"
			     "\"string\",\"pattern\":\"^[0-9]+MB$\",\"examples\":[\"10MB\"]}]},\"m\":{\"anyOf\":["
			     "{\"type\":\"string\"},{\"type\":\"object\",\"properties\":{\"id\":{}},"
			     "\"additionalProperties\":false}]}}}";

	CHECK_STR(verdict(arena, schema, "{\"size\":\"10\"}"),
		  STR("arguments: size is \"10\"; expected an integer of at least 0 or a string such as \"10MB\""));
	CHECK_STR(verdict(arena, schema, "{\"m\":{\"idd\":1}}"),
		  STR("arguments: unknown key \"m.idd\"; did you mean \"id\"?"));
}

TEST(a_secret_is_never_shown)
{
	ARENA_SCOPE struct arena *arena = arena_new();

	CHECK_STR(verdict(arena, "{\"properties\":{\"token\":{\"type\":\"integer\",\"writeOnly\":true}}}",
			  "{\"token\":\"sk-123\"}"),
		  STR("arguments: token is a value that is not shown; expected an integer"));
}

TEST(a_schema_that_would_be_checked_only_in_part_does_not_compile)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	static const char *const bad[] = {
		"{\"properties\":{\"a\":{\"format\":\"date\"}}}",
		"{\"type\":\"strnig\"}",
		"{\"$ref\":\"#/$defs/none\"}",
		"{\"pattern\":\"(\"}",
		"{\"minimum\":\"1\"}",
		"{\"minLength\":-1}",
		"{\"required\":[1]}",
		"{\"items\":[{}]}",
		"{\"enum\":[]}",
		"[]",
	};
	struct err err;
	struct jv *s;

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		CHECK_OK(jv_parse(arena, str_of(bad[i]), &s, &err), err);
		if (schema_compile(s, &err) == 0)
			TEST_FAIL("%s compiles", bad[i]);
	}
}

TEST(a_circle_of_references_ends_with_an_error)
{
	ARENA_SCOPE struct arena *arena = arena_new();

	CHECK_HAS(verdict(arena,
			  "{\"$ref\":\"#/$defs/a\",\"$defs\":{\"a\":{\"$ref\":\"#/$defs/b\"},\"b\":{\"$ref\":\"#/$defs/"
			  "a\"}}}",
			  "1"),
		  STR("is nested too deeply"));
}

TEST(a_very_long_value_does_not_break_the_sentence)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	char value[3000];
	struct str got;

	memset(value, 'x', sizeof value);
	memcpy(value, "{\"path\":\"a\",\"", 13);
	memcpy(value + sizeof value - 5, "\":1}", 5);
	got = verdict(arena, tool, value);
	CHECK_HAS(got, STR("known keys are"));
	CHECK(got.len < 480);
}

TEST(checking_a_tool_call_allocates_nothing)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct jv *s, *v;
	struct err err;
	size_t before;

	CHECK_OK(jv_parse(arena, str_of(tool), &s, &err), err);
	CHECK_OK(jv_parse(arena, STR("{\"path\":\"notes/a.md\",\"limit\":10,\"mode\":\"create\"}"), &v, &err), err);
	before = allocation_count;
	CHECK(before > 0);
	for (int i = 0; i < 100; i++)
		CHECK_OK(schema_check(s, v, "arguments", &err), err);
	CHECK_INT(allocation_count - before, 0);
}
