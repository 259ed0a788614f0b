/* SPDX-License-Identifier: Apache-2.0 */
/* Parking of large results: thresholds, ids, previews, retention, and reading back after a restart. */
#include "tool/tool_fix.h"

#include "home/artifacts/artifacts.h"

#define NOW "1763200242"

static void at(const char *seconds)
{
	char ns[40];

	snprintf(ns, sizeof(ns), "%s000000000", seconds);
	setenv("STEAD_TEST_CLOCK_NS", ns, 1);
}

/* Parks `len` bytes through the tool: `unit` over and over. */
static const struct jv *park(struct bench *b, const char *unit, size_t len, const char *tool)
{
	struct jv *args = jv_object(b->arena);
	struct buf buf;

	buf_init(&buf, b->arena, len + 64);
	while (buf.len < len)
		buf_add(&buf, str_first(str_of(unit), len - buf.len));
	jv_set_str(b->arena, args, "content", buf.ptr ? buf_str(&buf) : STR(""));
	if (tool)
		jv_set_str(b->arena, args, "tool_name", str_of(tool));
	call_jv(b, "park_result", args);
	if (b->result.is_error)
		TEST_FAIL("park_result failed: %.*s", STR_ARG(b->result.text));
	return b->result.value;
}

TEST(an_empty_configuration_has_the_default_thresholds)
{
	struct offload_config config;

	offload_read(NULL, &config);
	CHECK(config.enabled);
	CHECK_INT(config.threshold_bytes, 2000);
	CHECK_INT(config.threshold_tokens, 500);
	CHECK_INT(config.max_preview_tokens, 150);
	CHECK_INT(config.max_preview_lines, 10);
	CHECK_INT(config.retention_days, 7);
}

TEST(a_result_is_parked_past_the_byte_threshold_only)
{
	struct bench b;

	bench_open(&b, "native");
	/* one word: few tokens, many bytes */
	CHECK(!jv_get_bool(park(&b, "a", 1999, NULL), "parked", true));
	CHECK_INT(b.result.text.len, 1999);
	CHECK(!jv_get_bool(park(&b, "a", 2000, NULL), "parked", true));
	CHECK(jv_get_bool(park(&b, "a", 2001, NULL), "parked", false));
	CHECK_HAS(b.result.text, STR("[TOOL RESPONSE OFFLOADED]"));
	bench_close(&b);
}

TEST(a_result_is_parked_past_the_token_threshold_only)
{
	struct bench b;

	bench_open(&b, "native");
	CHECK_INT(tokens_estimate(STR("one two")), 2);
	CHECK(!jv_get_bool(park(&b, "ab ", 3 * 500 - 1, NULL), "parked", true));
	CHECK(jv_get_bool(park(&b, "ab ", 3 * 501 - 1, NULL), "parked", false));
	CHECK_INT(jv_get_int(b.result.value, "tokens", 0), 501);
	bench_close(&b);
}

TEST(text_that_is_a_special_token_somewhere_is_only_text)
{
	CHECK(tokens_estimate(STR("<|endoftext|>")) > 1);
	CHECK(tokens_estimate(STR("<|endoftext|>")) < 12);
	CHECK_INT(tokens_estimate(STR("")), 0);
	CHECK_INT(tokens_estimate(STR("\xE4\xBD\xA0\xE5\xA5\xBD")), 2);
	CHECK_INT(tokens_estimate(STR("1234567")), 3);
}

static void extension_is(struct bench *b, const char *content, const char *extension)
{
	struct jv *args = jv_object(b->arena);
	struct str id;
	struct store_stat stat;
	struct err err = {0};

	jv_set_str(b->arena, args, "content", str_of(content));
	jv_set_bool(b->arena, args, "always", true);
	id = jv_get_str(call_jv(b, "park_result", args), "artifact_id");
	CHECK_OK(store_stat(workspace_home(b->ws), &b->ctx,
			    (struct wpath){arena_printf(b->arena, "artifacts/%.*s%s", STR_ARG(id), extension)}, &stat,
			    &err),
		 err);
}

TEST(the_extension_follows_the_content)
{
	struct bench b;

	bench_open(&b, "native");
	extension_is(&b, " {\"a\": [1]}", ".json");
	extension_is(&b, "[1, 2]", ".json");
	extension_is(&b, "{not json", ".txt");
	extension_is(&b, "<note/>", ".xml");
	extension_is(&b, "plain", ".txt");
	extension_is(&b, "", ".txt");
	bench_close(&b);
}

TEST(two_results_of_the_same_second_have_two_ids)
{
	struct bench b;
	struct str first, second;

	at(NOW);
	bench_open(&b, "native");
	first = jv_get_str(park(&b, "same ", 3000, "web.search"), "artifact_id");
	second = jv_get_str(park(&b, "same ", 3000, "web.search"), "artifact_id");
	CHECK_STARTS(first, STR("web_search_20251115_095042_"));
	CHECK(!str_eq(first, second));
	CHECK_INT(jv_get_int(good(&b, "list_artifacts", "{}"), "total", 0), 2);
	bench_close(&b);
	unsetenv("STEAD_TEST_CLOCK_NS");
}

TEST(the_preview_is_bounded_by_lines_and_by_tokens)
{
	struct bench b;
	const struct jv *v;

	bench_open(&b, "native");
	v = park(&b, "short\n", 6000, NULL);
	CHECK_STR(jv_get_str(v, "preview"),
		  STR("short\nshort\nshort\nshort\nshort\nshort\nshort\nshort\nshort\nshort\n"));
	CHECK_INT(jv_get_int(v, "lines_left", 0), 990);
	CHECK_HAS(b.result.text, STR("[990 more lines]"));
	v = park(&b, "word ", 6000, NULL);
	CHECK(jv_get_int(v, "preview_tokens", 1000) <= 150);
	CHECK(jv_get_int(v, "preview_tokens", 0) > 100);
	bench_close(&b);
}

TEST(artifacts_survive_a_restart_and_are_read_in_parts)
{
	struct bench b, again;
	const struct jv *v;
	struct str id;
	char json[200];

	bench_open_disk(&b, "native");
	id = arena_str(b.arena, jv_get_str(park(&b, "line of text\nNeedle\nmore\n", 5000, "shell"), "artifact_id"));
	bench_open_at(&again, arena_printf(b.arena, "disk:%s", b.dir), "native");
	v = good(&again, "list_artifacts", "{}");
	CHECK_STR(jv_get_str(jv_at(jv_get(v, "artifacts"), 0), "artifact_id"), id);
	CHECK_STR(jv_get_str(jv_at(jv_get(v, "artifacts"), 0), "tool_name"), STR("shell"));
	snprintf(json, sizeof(json), "{'artifact_id':'%.*s','offset':2,'limit':1}", STR_ARG(id));
	v = good(&again, "read_artifact", json);
	CHECK_STR(jv_get_str(v, "content"), STR("Needle\n"));
	snprintf(json, sizeof(json), "{'artifact_id':'shell','lines':2}"); /* an unambiguous beginning is enough */
	v = good(&again, "tail_artifact", json);
	CHECK_INT(jv_get_int(v, "lines", 0), 2);
	CHECK_HAS(again.result.text, STR(" lines above]"));
	v = good(&again, "search_artifact", "{'artifact_id':'shell','query':'needle'}");
	CHECK(jv_get_int(v, "total_matches", 0) > 100);
	CHECK_HAS(again.result.text, STR("1- line of text\n2: Needle\n3- more"));
	CHECK_HAS(again.result.text, STR("[10 of "));
	bench_close(&again);
	bench_close(&b);
}

TEST(old_artifacts_are_removed_and_the_sweep_runs_at_most_once_an_hour)
{
	struct bench b;

	at(NOW);
	bench_open(&b, "native");
	park(&b, "x ", 4000, "old");
	at("1763805041"); /* seven days less a second later */
	park(&b, "x ", 4000, "new");
	CHECK_INT(jv_get_int(good(&b, "list_artifacts", "{}"), "total", 0), 2);
	at("1763805043"); /* too old now, but the sweep has just run */
	CHECK_INT(jv_get_int(good(&b, "list_artifacts", "{}"), "total", 0), 2);
	at("1763808700");
	CHECK_INT(jv_get_int(good(&b, "list_artifacts", "{}"), "total", 0), 1);
	CHECK_HAS(b.result.text, STR("from new"));
	bench_close(&b);
	unsetenv("STEAD_TEST_CLOCK_NS");
}

TEST(the_list_is_paged_newest_first)
{
	struct bench b;
	const struct jv *v;
	char json[200];

	bench_open(&b, "native");
	at("1763200001");
	park(&b, "x ", 4000, "first");
	at("1763200002");
	park(&b, "x ", 4000, "second");
	at("1763200003");
	park(&b, "x ", 4000, "third");
	v = good(&b, "list_artifacts", "{'limit':2}");
	CHECK_INT(jv_get_int(v, "total", 0), 3);
	CHECK_STR(jv_get_str(jv_at(jv_get(v, "artifacts"), 0), "tool_name"), STR("third"));
	snprintf(json, sizeof(json), "{'limit':2,'cursor':'%.*s'}", STR_ARG(jv_get_str(v, "next_cursor")));
	v = good(&b, "list_artifacts", json);
	CHECK_STR(jv_get_str(jv_at(jv_get(v, "artifacts"), 0), "tool_name"), STR("first"));
	CHECK(jv_get(v, "next_cursor") == NULL);
	bench_close(&b);
	unsetenv("STEAD_TEST_CLOCK_NS");
}

TEST(the_side_file_says_where_a_result_came_from)
{
	struct bench b;
	struct str id, text;
	struct err err = {0};
	struct jv *meta;

	bench_open(&b, "native");
	b.ctx.actor.session = STR("s1");
	good(&b, "park_result", "{'content':'abc','always':true,'tool_name':'fetch','args':{'url':'x'}}");
	id = jv_get_str(b.result.value, "artifact_id");
	CHECK_OK(store_read(workspace_home(b.ws), &b.ctx,
			    (struct wpath){arena_printf(b.arena, "artifacts/%.*s.meta.json", STR_ARG(id))}, STORE_WHOLE,
			    100000, &text, NULL, &err),
		 err);
	CHECK_OK(jv_parse(b.arena, text, &meta, &err), err);
	CHECK_STR(jv_get_str(meta, "tool_name"), STR("fetch"));
	CHECK_INT(jv_get_int(meta, "original_bytes", 0), 3);
	CHECK_STR(jv_get_str(jv_get(jv_get(meta, "custom"), "args"), "url"), STR("x"));
	CHECK_STR(jv_get_str(jv_get(meta, "custom"), "session_id"), STR("s1"));
	bench_close(&b);
}
