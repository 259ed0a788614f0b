/* SPDX-License-Identifier: Apache-2.0 */
/* Tool tables in short form: each form gives its JSON Schema, and a broken text is refused. */
#include "test.h"
#include "tool/schema_text.h"

static void means(const char *text, const char *properties, const char *required)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct jv *schema;
	struct err err = {0};
	struct buf out, want;

	buf_init(&out, arena, 4096);
	buf_init(&want, arena, 4096);
	CHECK_OK(schema_text_parse(arena, text, &schema, &err), err);
	jv_write(&out, schema);
	buf_printf(&want, "{'type':'object','properties':{%s},'required':[%s],'additionalProperties':false}",
		   properties, required);
	for (size_t i = 0; i < want.len; i++)
		want.ptr[i] = want.ptr[i] == '\'' ? '"' : want.ptr[i];
	CHECK_STR(buf_str(&out), buf_str(&want));
}

TEST(an_argument_is_a_string_unless_it_has_a_type)
{
	means("a", "'a':{'type':'string'}", "");
	means("a int; b num; c bool", "'a':{'type':'integer'},'b':{'type':'number'},'c':{'type':'boolean'}", "");
	means("a obj; b list; c any", "'a':{'type':'object'},'b':{'type':'array'},'c':{}", "");
	means("a str?", "'a':{'type':['string','null']}", "");
}

TEST(a_description_goes_to_the_end_of_the_line)
{
	means("a!: b; c: d\ne int: f",
	      "'a':{'type':'string','description':'b; c: d'},"
	      "'e':{'type':'integer','description':'f'}",
	      "'a'");
}

TEST(words_choices_and_bounds_limit_a_value)
{
	means("a x|utf-8: y", "'a':{'type':'string','enum':['x','utf-8'],'description':'y'}", "");
	means("a! int>=0 or str", "'a':{'anyOf':[{'type':'integer','minimum':0},{'type':'string'}]}", "'a'");
	means("a int>=1<=5; b str>=1",
	      "'a':{'type':'integer','minimum':1,'maximum':5},'b':{'type':'string','minLength':1}", "");
	means("a [int]=2", "'a':{'type':'array','items':{'type':'integer'},'minItems':2,'maxItems':2}", "");
}

TEST(lists_and_objects_nest)
{
	means("a! [{b!: c; d [e|f]}]: g",
	      "'a':{'type':'array','items':{'type':'object','properties':{'b':{'type':'string','description':'c'},"
	      "'d':{'type':'array','items':{'type':'string','enum':['e','f']}}},'required':['b'],"
	      "'additionalProperties':false},'description':'g'}",
	      "'a'");
	means("a {b; ...}", "'a':{'type':'object','properties':{'b':{'type':'string'}},'required':[]}", "");
}

TEST(a_broken_text_is_refused_and_its_place_is_shown)
{
	static const char *const broken[] = {
		"a: ",   "a strr", "a; a",    "a int>1",  "a bool>=1", "a [str",  "a {b",    "a {b; ... c}",
		"a x|",  "a;b",    "!",       "a int or", "a  int",    "a>=1",    "a int>",  "a int>=x",
		"a ...", "a\n\nb", "a {b} x", "a [str]?", "a [x|y",    "a: b\n;", "a {b: }", "a int=",
	};

	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
		ARENA_SCOPE struct arena *arena = arena_new();
		struct jv *schema;
		struct err err = {0};

		CHECK_ERR(schema_text_parse(arena, broken[i], &schema, &err), err, ERR_INVALID);
		CHECK_HAS(str_of(err.msg), STR("expected at \""));
	}
}
