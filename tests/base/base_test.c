/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "store/wpath.h"
#include "test.h"
#include "text/jv.h"

TEST(numbers_are_parsed_within_their_range)
{
	int64_t v;

	CHECK(str_to_i64(STR("-9223372036854775808"), &v) && v == INT64_MIN);
	CHECK(str_to_i64(STR("9223372036854775807"), &v) && v == INT64_MAX);
	CHECK(!str_to_i64(STR("9223372036854775808"), &v));
	CHECK(!str_to_i64(STR(""), &v));
	CHECK(!str_to_i64(STR("1x"), &v));
}

TEST(utf8_refuses_surrogates_overlong_and_cut_sequences)
{
	CHECK(utf8_valid(STR("h\xC3\xA9llo \xF0\x9F\x8C\xB1 and more text")));
	CHECK(!utf8_valid(STR("\xED\xA0\x80")));
	CHECK(!utf8_valid(STR("\xC0\xAF")));
	CHECK(!utf8_valid(STR("\xE2\x82")));
	CHECK_STR(utf8_first(STR("a\xC3\xA9"), 2), STR("a"));
}

TEST(code_points_come_back_as_they_were_written)
{
	static const uint32_t points[] = {0x41, 0x7F, 0x80, 0x7FF, 0x800, 0xFFFD, 0x10000, 0x10FFFF};
	char text[UTF8_LEN_MAX];

	for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
		struct str s = str_n(text, utf8_put(text, points[i]));
		size_t at = 0;

		CHECK(utf8_valid(s));
		CHECK_INT(utf8_next(s, &at), points[i]);
		CHECK_INT(at, s.len);
		CHECK_INT(utf8_unfinished(s), 0);
		for (s.len--; s.len; s.len--)
			CHECK_INT(utf8_unfinished(s), s.len);
	}
}

TEST(a_malformed_byte_is_one_code_point_outside_unicode)
{
	struct str s = STR("\xE2\x82z\xFF");
	size_t at = 0;

	CHECK_INT(utf8_next(s, &at), UTF8_BAD | 0xE2);
	CHECK_INT(utf8_next(s, &at), UTF8_BAD | 0x82);
	CHECK_INT(utf8_next(s, &at), 'z');
	CHECK_INT(utf8_next(s, &at), UTF8_BAD | 0xFF);
	CHECK_INT(at, s.len);
}

TEST(text_is_cut_between_code_points)
{
	CHECK_STR(utf8_points(STR("\xC3\xA9\xE2\x82\xACz"), 2), STR("\xC3\xA9\xE2\x82\xAC"));
	CHECK_STR(utf8_skip_inside(STR("\x82\xACz")), STR("z"));
	CHECK_STR(utf8_skip_inside(STR("z\x82")), STR("z\x82"));
}

TEST(the_nearest_word_is_named_and_a_far_one_is_not)
{
	static const char *const words[] = {"heartbeat", "timezone", "queue"};

	CHECK_STR(str_of(str_nearest(STR("hartbeat"), words, 3)), STR("heartbeat"));
	CHECK(str_nearest(STR("zzz"), words, 3) == NULL);
}

TEST(a_message_stays_one_line)
{
	struct err err;

	CHECK_INT(err_set(&err, ERR_INVALID, "bad\nname %s", "x\ry"), -ERR_INVALID);
	CHECK_STR(str_of(err.msg), STR("bad?name x?y"));
	err_prefix(&err, "read %s", "a");
	CHECK_STR(str_of(err.msg), STR("read a: bad?name x?y"));
}

TEST(a_buffer_stops_at_its_ceiling)
{
	struct buf b;

	buf_init(&b, NULL, 5);
	buf_lit(&b, "abc");
	buf_lit(&b, "def");
	CHECK(b.overflow);
	CHECK_STR(buf_str(&b), STR("abc"));
	buf_release(&b);
}

TEST(json_round_trips)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct str text = STR("{\"a\":[1,-2.5,true,null,\"x\\u0000\\n\\u00e9\"],\"b\":{}}");
	struct jv *v;
	struct err err;
	struct buf b;

	CHECK_OK(jv_parse(arena, text, &v, &err), err);
	buf_init(&b, arena, 1000);
	jv_write(&b, v);
	CHECK_STR(buf_str(&b), STR("{\"a\":[1,-2.5,true,null,\"x\\u0000\\n\xC3\xA9\"],\"b\":{}}"));
	CHECK_ERR(jv_parse(arena, STR("{\"a\":1,\"a\":2}"), &v, &err), err, ERR_INVALID);
	CHECK_ERR(jv_parse(arena, STR("[1] x"), &v, &err), err, ERR_INVALID);
}

TEST(a_real_is_written_so_that_it_reads_back_the_same)
{
	static const double values[] = {0.1, 1.0 / 3.0, 44444444444444444444444444444444.0, 5e-324, -1.5};
	ARENA_SCOPE struct arena *arena = arena_new();

	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
		struct jv *v;
		struct err err;
		struct buf b;

		buf_init(&b, arena, 100);
		jv_write(&b, jv_real(arena, values[i]));
		CHECK_OK(jv_parse(arena, buf_str(&b), &v, &err), err);
		CHECK(v->type == JV_REAL && v->u.d == values[i]);
	}
}

TEST(a_string_is_printed_whole_however_long_it_is)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	char *text = arena_alloc(arena, 100001);

	memset(text, 'x', 100000);
	CHECK_INT(arena_printf(arena, "<%.*s>", STR_ARG(str_of(text))).len, 100002);
}

/* Whichever byte of a character the message's end falls on. */
TEST(a_message_that_is_cut_ends_with_a_whole_character)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	char *text = arena_alloc(arena, 4 * 1000 + 1);
	struct err err;

	for (int i = 0; i < 1000; i++)
		memcpy(text + 4 * i, "\xF0\x9F\x8F\xA0", 4);
	for (int i = 0; i < 4; i++) {
		err_set(&err, ERR_INVALID, "%.*s%.*s", i, "abc", STR_ARG(str_of(text)));
		CHECK(utf8_valid(str_of(err.msg)) && strlen(err.msg) > sizeof(err.msg) - 5);
		err_sys(&err, ENOENT, "%.*s%.*s", i, "abc", STR_ARG(str_of(text)));
		CHECK(utf8_valid(str_of(err.msg)) && strlen(err.msg) > sizeof(err.msg) - 5);
		err_prefix(&err, "%.*s", i, "abc");
		CHECK(utf8_valid(str_of(err.msg)) && strlen(err.msg) > sizeof(err.msg) - 5);
	}
}

TEST(a_layer_takes_its_directory_off_the_paths_of_a_message)
{
	struct err err;

	err_set(&err, ERR_INVALID, ERR_PATH " is below " ERR_PATH ", ws/a is not a path", STR_ARG(STR("ws/a/b")),
		STR_ARG(STR("ws")));
	err_prefix(&err, "stat " ERR_PATH_BARE, STR_ARG(STR("ws/x")));
	err_prefix(&err, "read " ERR_PATH_BARE, STR_ARG(STR("wss/x")));
	CHECK_STR(str_of(err.msg), STR("read wss/x: stat ws/x: \"ws/a/b\" is below \"ws\", ws/a is not a path"));
	err_leave_dir(&err, STR("ws"));
	CHECK_STR(str_of(err.msg), STR("read wss/x: stat x: \"a/b\" is below \"/\", ws/a is not a path"));
	err_leave_dir(&err, STR("a"));
	CHECK_STR(str_of(err.msg), STR("read wss/x: stat x: \"b\" is below \"/\", ws/a is not a path"));
}

TEST(a_message_with_more_paths_than_can_be_noted_shows_none_of_the_others)
{
	struct err err;

	err_set(&err, ERR_INVALID, "end");
	for (int i = 0; i < ERR_PATHS_MAX + 2; i++)
		err_prefix(&err, ERR_PATH_BARE, STR_ARG(STR("ws/x")));
	err_leave_dir(&err, STR("ws"));
	CHECK_INT(str_find(str_of(err.msg), STR("ws"), 0), SIZE_MAX);
	CHECK_HAS(str_of(err.msg), STR("x: x: "));
	CHECK_HAS(str_of(err.msg), STR("????: end"));
}

TEST(the_line_of_an_error_follows_the_name_of_its_file)
{
	struct err err;

	err_set(&err, ERR_INVALID, "line 3: no colon");
	err_detail(&err, DETAIL_AT_LINE);
	CHECK_INT(err_in_file(&err, "agent.yaml"), -ERR_INVALID);
	CHECK_STR(str_of(err.msg), STR("agent.yaml line 3: no colon"));
	err_in_file(&err, ".env");
	CHECK_STR(str_of(err.msg), STR(".env: agent.yaml line 3: no colon"));
}

TEST(json_nesting_is_bounded)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	char deep[400];
	struct jv *v;
	struct err err;

	memset(deep, '[', 200);
	memset(deep + 200, ']', 200);
	CHECK_ERR(jv_parse(arena, str_n(deep, 400), &v, &err), err, ERR_INVALID);
}

TEST(malformed_utf8_is_written_as_replacement_characters)
{
	struct buf b;

	buf_init(&b, NULL, 100);
	jv_write_string(&b, STR("a\xFFz\"\\"));
	CHECK_STR(buf_str(&b), STR("\"a\xEF\xBF\xBDz\\\"\\\\\""));
	buf_release(&b);
}
