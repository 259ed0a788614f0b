/* SPDX-License-Identifier: Apache-2.0 */
/* .env files, ${VAR} and the heads of Markdown files. */
#include "base/limits.h"
#include "test.h"
#include "text/dotenv.h"
#include "text/frontmatter.h"

static struct str as_json(struct arena *arena, const struct jv *v)
{
	struct buf b;

	buf_init(&b, arena, MIB);
	jv_write(&b, v);
	return buf_str(&b);
}

TEST(an_env_file_is_read_as_people_write_it)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct str text;
	struct err err;
	struct jv *vars;

	text = STR("# comment\n\nA=1\nexport B=two words # tail\r\nC='it is'\nD=\"a\\n\\\"b\\\" \\$x \\q\"\n"
		   "E=\nF='line one\nline two'\n  G = spaced  \nURL=http://h/#frag\nA=last");
	CHECK_OK(dotenv_parse(arena, text, &vars, &err), err);
	CHECK_STR(as_json(arena, vars),
		  STR("{\"A\":\"last\",\"B\":\"two words\",\"C\":\"it is\",\"D\":\"a\\n\\\"b\\\" $x \\\\q\",\"E\":\"\","
		      "\"F\":\"line one\\nline two\",\"G\":\"spaced\",\"URL\":\"http://h/#frag\"}"));
}

TEST(a_broken_env_line_is_named_without_its_value)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	static const char *const cases[][2] = {
		{"A=1\njust words\n", "line 2: expected NAME=value"},
		{"1A=secret\n", "line 1: expected NAME=value"},
		{"A=1\nB=2\nC=\"secret\nmore\n", "line 3: the value of C has no closing \""},
		{"A='x' secret\n", "line 1: text follows the closing quote of A"},
		{"A-B=secret", "line 1: expected NAME=value"},
		{"=secret", "line 1: expected NAME=value"},
		{"A=\xFF", "not UTF-8"},
	};
	struct err err;
	struct jv *vars;

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		CHECK_ERR(dotenv_parse(arena, str_of(cases[i][0]), &vars, &err), err, ERR_INVALID);
		CHECK_HAS(str_of(err.msg), str_of(cases[i][1]));
		CHECK_LACKS(str_of(err.msg), STR("secret"));
	}
}

/* Expands the one string {"k": text} with KEY=v"1 and returns it. */
static int expand(struct arena *arena, struct str text, struct str *ret, struct err *err)
{
	struct jv *doc = jv_object(arena), *vars = jv_object(arena);
	struct jv *v = jv_str(arena, text);

	v->line = 4;
	jv_set(arena, doc, "k", v);
	jv_set_str(arena, vars, "KEY", STR("v\"1"));
	if (dotenv_expand(arena, doc, vars, err) != 0)
		return -err->kind;
	*ret = jv_get_str(doc, "k");
	return 0;
}

TEST(variables_are_filled_in_from_env_then_from_the_process)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	static const char *const cases[][2] = {
		{"a ${KEY} b", "a v\"1 b"},
		{"${KEY}${KEY}", "v\"1v\"1"},
		{"$KEY", "$KEY"},
		{"$${KEY}", "${KEY}"},
		{"$$$$", "$$"},
		{"5$", "5$"},
		{"${STEAD_TEST_OUTSIDE}", "from outside"},
	};
	struct err err;
	struct str got;

	setenv("STEAD_TEST_OUTSIDE", "from outside", 1);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		CHECK_OK(expand(arena, str_of(cases[i][0]), &got, &err), err);
		CHECK_STR(got, str_of(cases[i][1]));
	}
	CHECK_ERR(expand(arena, STR("${STEAD_TEST_NONE}"), &got, &err), err, ERR_INVALID);
	CHECK_HAS(str_of(err.msg), STR("line 4: ${STEAD_TEST_NONE} is set neither in .env nor in the environment"));
	CHECK_ERR(expand(arena, STR("${A B}"), &got, &err), err, ERR_INVALID);
	CHECK_ERR(expand(arena, STR("${KEY"), &got, &err), err, ERR_INVALID);
}

TEST(a_head_is_cut_off_and_the_body_stays_byte_for_byte)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	static const struct {
		const char *text, *head, *body;
		bool has_head;
	} cases[] = {
		{"---\na: 1\n---\n\nbody\r\n", "{\"a\":1}", "\nbody\r\n", true},
		{"---\r\na: x\r\n---\r\nbody", "{\"a\":\"x\"}", "body", true},
		{"---\n---\n", "{}", "", true},
		{"---\na: 1\n---", "{\"a\":1}", "", true},
		{"# no head\n---\na: 1\n---\n", "{}", "# no head\n---\na: 1\n---\n", false},
		{"---\nonly a rule\n", "{}", "---\nonly a rule\n", false},
		{"", "{}", "", false},
		{"----\na: 1\n---\n", "{}", "----\na: 1\n---\n", false},
	};
	struct frontmatter f;
	struct err err;

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		CHECK_OK(frontmatter_parse(arena, str_of(cases[i].text), &f, &err), err);
		CHECK_STR(as_json(arena, f.head), str_of(cases[i].head));
		CHECK_STR(f.body, str_of(cases[i].body));
		CHECK_INT(f.has_head, cases[i].has_head);
	}
}

TEST(a_broken_head_is_an_error_with_the_line_of_the_file)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct frontmatter f;
	struct err err;

	CHECK_ERR(frontmatter_parse(arena, STR("---\na: 1\na: 2\n---\n"), &f, &err), err, ERR_INVALID);
	CHECK_HAS(str_of(err.msg), STR("line 3: the key \"a\""));
	CHECK_ERR(frontmatter_parse(arena, STR("---\njust words\n---\n"), &f, &err), err, ERR_INVALID);
}

TEST(any_title_tag_or_number_comes_back_as_it_was)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct str json = STR("{\"title\":\"plain title\",\"t1\":\"null\",\"t2\":\"1e3\",\"t3\":\"a: b # c\",\"t4\":"
			      "\"line\\nbreak\\t\\u0001\\u0000\",\"t5\":\"quote \\\" back\\\\slash\",\"t6\":\" edge \","
			      "\"t7\":\"\",\"t8\":\"---\",\"t9\":\"\\u2028\\u0085\\u00e9\xF0\x9F\x8C\xB1\\ufeff\","
			      "\"yes\":\"no\",\"a b\":\"~\",\"\\\"k\\\": x\":\"- item\",\"tags\":[\"a, b\",\"[c]\","
			      "\"null\",\"d\",1,null,true],\"n\":[-1,2.5,1e+22,9223372036854775807],\"empty\":[],"
			      "\"obj\":{\"x\":{},\"list\":[{\"a\":1,\"b\":[]},[1,[2]]]},\"z\":null,\"f\":1000.0}");
	struct frontmatter f;
	struct err err;
	struct jv *head;
	struct buf b;

	CHECK_OK(jv_parse(arena, json, &head, &err), err);
	for (int i = 0; i < 3; i++) {
		buf_init(&b, arena, MIB);
		frontmatter_write(&b, head, STR("---\nbody"));
		CHECK_OK(frontmatter_parse(arena, buf_str(&b), &f, &err), err);
		CHECK_STR(as_json(arena, f.head), as_json(arena, head));
		CHECK_STR(f.body, STR("---\nbody"));
		head = f.head;
	}
	CHECK_HAS(buf_str(&b), STR("title: plain title\n"));
}
