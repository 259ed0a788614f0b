/* SPDX-License-Identifier: Apache-2.0 */
/* edit_file and insert_file: what they replace, what they keep, what they refuse and what they then show. */
#include "tool/tool_fix.h"

TEST(an_edit_replaces_one_place_and_shows_the_difference)
{
	struct bench b;
	const struct jv *v;

	bench_open(&b, "native");
	put(&b, "f", STR("one\ntwo\nthree\n"));
	v = good(&b, "edit_file", "{'path':'f','old_text':'two','new_text':'2'}");
	CHECK_STR(content_of(&b, "f"), STR("one\n2\nthree\n"));
	CHECK_INT(jv_get_int(v, "replaced", 0), 1);
	CHECK_INT(jv_at(jv_get(v, "lines"), 0)->u.i, 2);
	CHECK_STR(jv_get_str(v, "diff"), STR("--- f\n+++ f\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"));
	bench_close(&b);
}

TEST(a_text_that_occurs_more_than_once_is_refused_with_its_lines_unless_all_are_meant)
{
	struct bench b;

	bench_open(&b, "native");
	put(&b, "f", STR("x\ny\nx x\n"));
	refused(&b, "edit_file", "{'path':'f','old_text':'x','new_text':'z'}", ERR_INVALID);
	CHECK_HAS(b.result.text, STR("3 times (lines 1, 3, 3)"));
	good(&b, "edit_file", "{'path':'f','old_text':'x','new_text':'z','replace_all':true}");
	CHECK_STR(content_of(&b, "f"), STR("z\ny\nz z\n"));
	CHECK_INT(jv_get_int(b.result.value, "replaced", 0), 3);
	bench_close(&b);
}

TEST(empty_and_equal_texts_are_refused)
{
	struct bench b;

	bench_open(&b, "native");
	put(&b, "f", STR("abc"));
	refused(&b, "edit_file", "{'path':'f','old_text':'','new_text':'z'}", ERR_INVALID);
	refused(&b, "edit_file", "{'path':'f','old_text':'abc','new_text':'abc'}", ERR_INVALID);
	refused(&b, "edit_file", "{'path':'f'}", ERR_INVALID);
	refused(&b, "edit_file", "{'path':'f','old_text':'a'}", ERR_INVALID);
	refused(&b, "edit_file", "{'path':'f','edits':[]}", ERR_INVALID);
	CHECK_STR(content_of(&b, "f"), STR("abc"));
	bench_close(&b);
}

TEST(a_miss_shows_the_nearest_text_with_its_line_and_the_difference)
{
	struct bench b;

	bench_open(&b, "native");
	put(&b, "f", STR("def hello():\n    print('hi there')\n\ndef goodbye(name):\n\treturn name\n"));
	refused(&b, "edit_file", "{'path':'f','old_text':'def goodby(nam):\\n','new_text':'x'}", ERR_NOT_FOUND);
	CHECK_HAS(b.result.text, STR("nearest text is at line 4"));
	CHECK_HAS(b.result.text, STR("-def goodby(nam):\n+def goodbye(name):"));
	refused(&b, "edit_file", "{'path':'f','old_text':'    return name','new_text':'x'}", ERR_NOT_FOUND);
	CHECK_HAS(b.result.text, STR("line 5"));
	CHECK_HAS(b.result.text, STR("only in white space"));
	refused(&b, "edit_file", "{'path':'f','old_text':'DEF HELLO','new_text':'x'}", ERR_NOT_FOUND);
	CHECK_HAS(b.result.text, STR("line 1"));
	refused(&b, "edit_file", "{'path':'f','old_text':'qqqq zzzz','new_text':'x'}", ERR_NOT_FOUND);
	CHECK_STR(
		b.result.text,
		STR("edit f: the text to replace does not occur; copy it exactly from the file, with its white space"));
	bench_close(&b);
}

TEST(several_edits_are_applied_in_order_and_all_or_nothing)
{
	struct bench b;

	bench_open(&b, "native");
	put(&b, "f", STR("a b c"));
	refused(&b, "edit_file",
		"{'path':'f','edits':[{'old_text':'a','new_text':'1'},{'old_text':'missing','new_text':'2'}]}",
		ERR_NOT_FOUND);
	CHECK_HAS(b.result.text, STR("edit 2 of 2"));
	CHECK_STR(content_of(&b, "f"), STR("a b c"));
	good(&b, "edit_file",
	     "{'path':'f','edits':[{'old_text':'a','new_text':'bb'},{'old_text':'bb b','new_text':'x'}]}");
	CHECK_STR(content_of(&b, "f"), STR("x c"));
	bench_close(&b);
}

TEST(a_dry_run_shows_and_changes_nothing)
{
	struct bench b;
	const struct jv *v;

	bench_open(&b, "native");
	put(&b, "f", STR("a\n"));
	v = good(&b, "edit_file", "{'path':'f','old_text':'a','new_text':'b','dry_run':true}");
	CHECK_HAS(jv_get_str(v, "diff"), STR("-a\n+b\n"));
	CHECK_STR(content_of(&b, "f"), STR("a\n"));
	CHECK_HAS(b.result.text, STR("would replace"));
	bench_close(&b);
}

TEST(line_ends_byte_order_mark_and_other_bytes_are_kept)
{
	struct bench b;

	bench_open(&b, "native");
	put(&b, "crlf", STR("\xEF\xBB\xBFone\r\ntwo\r\nthree"));
	good(&b, "edit_file", "{'path':'crlf','old_text':'one\\ntwo','new_text':'1\\n2'}");
	CHECK(jv_get_bool(b.result.value, "matched_crlf", false));
	CHECK_STR(content_of(&b, "crlf"), STR("\xEF\xBB\xBF"
					      "1\r\n2\r\nthree"));
	put(&b, "bytes", STR("\xFF\0 key=1 \xFE"));
	good(&b, "edit_file", "{'path':'bytes','old_text':'key=1','new_text':'key=2'}");
	CHECK_STR(content_of(&b, "bytes"), STR("\xFF\0 key=2 \xFE"));
	put(&b, "lf", STR("one\ntwo\n"));
	good(&b, "edit_file", "{'path':'lf','old_text':'one\\r\\ntwo','new_text':'1\\r\\n2'}");
	CHECK_STR(content_of(&b, "lf"), STR("1\n2\n"));
	bench_close(&b);
}

TEST(lines_are_inserted_before_a_line_and_one_past_the_end_appends)
{
	static const struct {
		const char *file;
		int line;
		const char *text, *want;
	} cases[] = {
		{"a\nb\n", 1, "x", "x\na\nb\n"},
		{"a\nb\n", 2, "x\\n", "a\nx\nb\n"},
		{"a\nb\n", 3, "x", "a\nb\nx\n"},
		{"a\nb", 3, "x", "a\nb\nx"},
		{"a\r\nb\r\n", 2, "x\\ny", "a\r\nx\r\ny\r\nb\r\n"},
		{"", 1, "x", "x\n"},
	};
	struct bench b;
	char json[200];

	bench_open(&b, "native");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		put(&b, "f", str_of(cases[i].file));
		snprintf(json, sizeof(json), "{'path':'f','insert_line':%d,'insert_text':'%s'}", cases[i].line,
			 cases[i].text);
		good(&b, "insert_file", json);
		CHECK_STR(content_of(&b, "f"), str_of(cases[i].want));
	}
	put(&b, "f", STR("a\nb\n"));
	refused(&b, "insert_file", "{'path':'f','insert_line':0,'insert_text':'x'}", ERR_INVALID);
	refused(&b, "insert_file", "{'path':'f','insert_line':4,'insert_text':'x'}", ERR_INVALID);
	CHECK_HAS(b.result.text, STR("1 to 3"));
	refused(&b, "insert_file", "{'path':'f','insert_line':9000000000000000000,'insert_text':'x'}", ERR_INVALID);
	CHECK_STR(content_of(&b, "f"), STR("a\nb\n"));
	bench_close(&b);
}
