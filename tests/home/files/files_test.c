/* SPDX-License-Identifier: Apache-2.0 */
/* What each native file tool promises. Every result is also checked against its output schema (tools.h). */
#include "tool/tool_fix.h"

TEST(a_file_is_created_once_and_the_refusal_shows_how_it_begins)
{
	struct bench b;

	bench_open(&b, "native");
	good(&b, "write_file", "{'path':'/notes/plan.md','content':'one\\ntwo\\n'}");
	CHECK_STR(jv_get_str(b.result.value, "path"), STR("notes/plan.md"));
	CHECK(jv_get_str(b.result.value, "version").len > 0);
	refused(&b, "write_file", "{'path':'notes/plan.md','content':'three'}", ERR_EXISTS);
	CHECK_HAS(b.result.text, STR("overwrite"));
	CHECK_HAS(b.result.text, STR("  one\n  two"));
	CHECK_STR(content_of(&b, "notes/plan.md"), STR("one\ntwo\n"));
	bench_close(&b);
}

TEST(overwrite_creates_or_replaces_and_append_adds_exact_bytes)
{
	struct bench b;

	bench_open(&b, "native");
	good(&b, "write_file", "{'path':'a','content':'x','mode':'overwrite'}");
	good(&b, "write_file", "{'path':'a','content':'y','mode':'overwrite'}");
	good(&b, "write_file", "{'path':'a','content':'z','mode':'append'}");
	good(&b, "append_file", "{'path':'a','content':'\\n'}");
	good(&b, "append_file", "{'path':'new','content':'1'}");
	CHECK_STR(content_of(&b, "a"), STR("yz\n"));
	CHECK_STR(content_of(&b, "new"), STR("1"));
	bench_close(&b);
}

TEST(a_stale_version_changes_nothing_and_tells_the_current_one)
{
	static const char *const calls[][2] = {
		{"write_file", "{'path':'a','content':'n','mode':'overwrite','if_version':'stale'}"},
		{"write_file", "{'path':'a','content':'n','mode':'append','if_version':'stale'}"},
		{"append_file", "{'path':'a','content':'n','if_version':'stale'}"},
		{"edit_file", "{'path':'a','old_text':'o','new_text':'n','if_version':'stale'}"},
		{"insert_file", "{'path':'a','insert_line':1,'insert_text':'n','if_version':'stale'}"},
		{"delete_file", "{'path':'a','if_version':'stale'}"},
		{"move_file", "{'from':'a','to':'b','if_version':'stale'}"},
		{"copy_file", "{'from':'a','to':'b','if_version':'stale'}"},
	};
	struct bench b;
	struct str version;

	bench_open(&b, "native");
	good(&b, "write_file", "{'path':'a','content':'o'}");
	version = jv_get_str(b.result.value, "version");
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		refused(&b, calls[i][0], calls[i][1], ERR_CONFLICT);
		CHECK_HAS(b.result.text, version);
		CHECK_STR(content_of(&b, "a"), STR("o"));
	}
	bench_close(&b);
}

TEST(lines_are_read_in_pages_with_the_total_and_where_to_go_on)
{
	struct bench b;
	const struct jv *v;

	bench_open(&b, "native");
	put(&b, "f", STR("a\nb\nc\nd"));
	v = good(&b, "read_file", "{'path':'f','offset':2,'limit':2}");
	CHECK_STR(jv_get_str(v, "content"), STR("b\nc\n"));
	CHECK_INT(jv_get_int(v, "total_lines", 0), 4);
	CHECK_INT(jv_get_int(v, "next_offset", 0), 4);
	CHECK_STR(b.result.text, STR("b\nc\n[2 of 4 lines; continue with offset 4]"));
	v = good(&b, "read_file", "{'path':'f','offset':4,'line_numbers':true}");
	CHECK_STR(b.result.text, STR("     4\td"));
	CHECK(jv_get(v, "next_offset") == NULL);
	refused(&b, "read_file", "{'path':'f','offset':5}", ERR_INVALID);
	CHECK_HAS(b.result.text, STR("has 4 lines"));
	bench_close(&b);
}

TEST(an_empty_file_reads_as_empty_and_a_missing_one_is_not_found)
{
	struct bench b;

	bench_open(&b, "native");
	put(&b, "empty", STR(""));
	good(&b, "read_file", "{'path':'empty'}");
	CHECK_HAS(b.result.text, STR("the file is empty"));
	CHECK_INT(jv_get_int(b.result.value, "total_lines", -1), 0);
	refused(&b, "read_file", "{'path':'missing'}", ERR_NOT_FOUND);
	bench_close(&b);
}

TEST(a_long_line_is_cut_and_the_rest_is_read_by_bytes)
{
	char text[5003];
	struct bench b;
	const struct jv *v, *cut;

	bench_open(&b, "native");
	memset(text, 'x', sizeof(text));
	text[1] = '\n';
	memcpy(text + 2 + 1999, "\xC3\xA9", 2); /* the cut falls into a code point */
	put(&b, "f", str_n(text, sizeof(text)));
	v = good(&b, "read_file", "{'path':'f'}");
	cut = jv_at(jv_get(v, "cut_lines"), 0);
	CHECK_INT(jv_get_int(cut, "line", 0), 2);
	CHECK_INT(jv_get_int(cut, "byte_offset", 0), 2001);
	CHECK_INT(jv_get_int(cut, "bytes_left", 0), 5003 - 2001);
	v = good(&b, "read_file", "{'path':'f','byte_offset':2001}");
	CHECK_STR(jv_get_str(v, "content"), str_n(text + 2001, 5003 - 2001));
	bench_close(&b);
}

TEST(a_byte_window_never_cuts_a_code_point)
{
	struct bench b;
	const struct jv *v;

	bench_open(&b, "native");
	put(&b, "f", STR("a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x8C\xB1z"));
	v = good(&b, "read_file", "{'path':'f','byte_offset':2,'byte_limit':6}");
	CHECK_STR(jv_get_str(v, "content"), STR("\xE2\x82\xAC"));
	CHECK_INT(jv_get_int(v, "byte_offset", 0), 3);
	CHECK_INT(jv_get_int(v, "next_byte_offset", 0), 6);
	bench_close(&b);
}

TEST(binary_is_decided_by_content_and_given_only_as_base64)
{
	struct bench b;
	const struct jv *v;

	bench_open(&b, "native");
	put(&b, "image.txt", STR("\x89PNG\0\1"));
	put(&b, "latin.md", STR("caf\xE9\n"));
	put(&b, "text.png", STR("only text\n"));
	refused(&b, "read_file", "{'path':'image.txt'}", ERR_UNSUPPORTED);
	CHECK_HAS(b.result.text, STR("6 bytes"));
	CHECK_HAS(b.result.text, STR("base64"));
	refused(&b, "read_file", "{'path':'latin.md','encoding':'utf-8'}", ERR_UNSUPPORTED);
	v = good(&b, "read_file", "{'path':'image.txt','encoding':'base64'}");
	CHECK_STR(jv_get_str(v, "content"), STR("iVBORwAB"));
	good(&b, "read_file", "{'path':'text.png'}");
	CHECK_STR(b.result.text, STR("only text\n"));
	good(&b, "write_file", "{'path':'copy','content':'iVBORwAB','encoding':'base64'}");
	CHECK_STR(content_of(&b, "copy"), STR("\x89PNG\0\1"));
	refused(&b, "write_file", "{'path':'bad','content':'iVBORwA','encoding':'base64'}", ERR_INVALID);
	bench_close(&b);
}

TEST(a_file_larger_than_memory_allows_is_paged_and_counted)
{
	struct bench b;
	size_t size = (size_t)3 << 20;
	char *text = malloc(size);
	const struct jv *v;

	bench_open(&b, "native");
	for (size_t i = 0; i < size; i++)
		text[i] = i % 64 == 63 ? '\n' : (char)('a' + i / 64 % 26);
	put(&b, "big", str_n(text, size));
	v = good(&b, "read_file", "{'path':'big','offset':40001,'limit':1}");
	CHECK_STR(jv_get_str(v, "content"), str_n(text + 40000 * 64, 64));
	CHECK_INT(jv_get_int(v, "total_lines", 0), 49152);
	v = good(&b, "read_file", "{'path':'big','limit':100000}");
	CHECK_INT(jv_get_int(v, "lines", 0), 640); /* 40 KiB of 64-byte lines */
	CHECK_INT(jv_get_int(v, "next_offset", 0), 641);
	free(text);
	bench_close(&b);
}

TEST(a_directory_is_listed_in_order_by_pages_with_totals)
{
	struct bench b;
	const struct jv *v;

	bench_open(&b, "native");
	put(&b, "b.md", STR("12"));
	put(&b, "a/x", STR(""));
	put(&b, "a/deep/y", STR(""));
	v = good(&b, "ls", "{}");
	CHECK_INT(jv_get_int(v, "total", 0), 2);
	CHECK_HAS(b.result.text, STR("a/\nb.md"));
	v = good(&b, "ls", "{'depth':3,'limit':2}");
	CHECK_INT(jv_get_int(v, "total", 0), 5);
	CHECK_STR(jv_get_str(jv_at(jv_get(v, "entries"), 1), "path"), STR("a/deep"));
	v = good(&b, "ls", "{'depth':3,'limit':2,'cursor':'a/deep/'}");
	CHECK_STR(jv_get_str(jv_at(jv_get(v, "entries"), 0), "path"), STR("a/deep/y"));
	CHECK_STR(jv_get_str(jv_at(jv_get(v, "entries"), 1), "path"), STR("a/x"));
	CHECK_STR(jv_get_str(v, "next_cursor"), STR("a/x"));
	v = good(&b, "ls", "{'depth':3,'limit':2,'cursor':'a/x'}");
	CHECK_INT(jv_count(jv_get(v, "entries")), 1);
	CHECK(jv_get(v, "next_cursor") == NULL);
	refused(&b, "ls", "{'path':'b.md'}", ERR_INVALID);
	CHECK_HAS(b.result.text, STR("read_file"));
	refused(&b, "ls", "{'path':'nope'}", ERR_NOT_FOUND);
	bench_close(&b);
}

TEST(files_are_moved_copied_and_removed_only_as_asked)
{
	struct bench b;
	const struct jv *v;

	bench_open(&b, "native");
	put(&b, "a", STR("A"));
	put(&b, "b", STR("B"));
	put(&b, "d/x", STR("1"));
	put(&b, "d/y", STR("2"));
	refused(&b, "move_file", "{'from':'a','to':'b'}", ERR_EXISTS);
	CHECK_HAS(b.result.text, STR("overwrite"));
	CHECK_STR(content_of(&b, "b"), STR("B"));
	good(&b, "copy_file", "{'from':'a','to':'new/c'}");
	good(&b, "move_file", "{'from':'a','to':'b','overwrite':true}");
	CHECK_STR(content_of(&b, "b"), STR("A"));
	CHECK_STR(content_of(&b, "new/c"), STR("A"));
	refused(&b, "delete_file", "{'path':'d'}", ERR_INVALID);
	CHECK_HAS(b.result.text, STR("holds 2 files"));
	v = good(&b, "delete_file", "{'path':'d','recursive':true}");
	CHECK_INT(jv_get_int(v, "removed", 0), 2);
	refused(&b, "delete_file", "{'path':'/','recursive':true}", ERR_INVALID);
	v = good(&b, "clear_files", "{}");
	CHECK_INT(jv_get_int(v, "removed", 0), 2);
	v = good(&b, "exists", "{'path':'b'}");
	CHECK(!jv_get_bool(v, "exists", true));
	bench_close(&b);
}

TEST(file_info_describes_without_reading_it_out)
{
	struct bench b;
	const struct jv *v;

	bench_open(&b, "native");
	put(&b, "n.md", STR("a\nb\nc"));
	put(&b, "x.bin", STR("\0"));
	put(&b, "d/f", STR(""));
	v = good(&b, "file_info", "{'path':'n.md'}");
	CHECK_INT(jv_get_int(v, "line_count", 0), 3);
	CHECK(!jv_get_bool(v, "is_binary", true));
	CHECK_STR(jv_get_str(v, "mime"), STR("text/markdown"));
	v = good(&b, "file_info", "{'path':'x.bin'}");
	CHECK(jv_get_bool(v, "is_binary", false));
	CHECK(jv_get(v, "line_count") == NULL);
	v = good(&b, "file_info", "{'path':'d'}");
	CHECK_STR(jv_get_str(v, "kind"), STR("directory"));
	bench_close(&b);
}

TEST(a_page_has_2000_lines_unless_more_are_asked_for)
{
	struct bench b;
	struct buf text;
	const struct jv *v;

	bench_open(&b, "native");
	buf_init(&text, b.arena, (size_t)1 << 20);
	for (int i = 0; i < 2001; i++)
		buf_lit(&text, "x\n");
	put(&b, "f", buf_str(&text));
	v = good(&b, "read_file", "{'path':'f'}");
	CHECK_INT(jv_get_int(v, "lines", 0), 2000);
	CHECK_INT(jv_get_int(v, "next_offset", 0), 2001);
	put(&b, "f", str_n(text.ptr, 4000));
	v = good(&b, "read_file", "{'path':'f'}");
	CHECK(jv_get(v, "next_offset") == NULL);
	bench_close(&b);
}

TEST(file_info_ends_counting_in_a_file_over_10_MiB)
{
	struct bench b;
	size_t size = ((size_t)10 << 20) + 300000;
	char *text = malloc(size);
	const struct jv *v;

	bench_open(&b, "native");
	memset(text, '\n', size);
	put(&b, "f", str_n(text, size));
	v = good(&b, "file_info", "{'path':'f'}");
	CHECK_INT(jv_get_int(v, "size", 0), (long long)size);
	CHECK(jv_get_int(v, "line_count_at_least", 0) >= 10 << 20);
	CHECK(jv_get(v, "line_count") == NULL);
	free(text);
	bench_close(&b);
}
