/* SPDX-License-Identifier: Apache-2.0 */
#include "session.h"

#define CALL(id, name, args)                                                                                           \
	"{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"tools/call\",\"params\":{\"name\":\"" name                    \
	"\",\"arguments\":" args "}}"

TEST(notifications_are_never_answered)
{
	struct session s;

	session_open(&s);
	session_line(&s, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}");
	session_line(&s, "{\"jsonrpc\":\"2.0\",\"method\":\"tools/list\"}");
	session_line(&s, "{\"jsonrpc\":\"2.0\",\"method\":\"nothing\",\"params\":7}");
	session_line(&s, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":{}}}");
	session_line(&s, "{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":{}}");
	session_line(&s, "\r");
	CHECK_STR(jv_get_str(session_ask(&s, PING), "id"), STR("ping"));
	session_close(&s);
}

TEST(hostile_lines_get_one_error_each_and_the_server_goes_on)
{
	static const struct {
		const char *line;
		int code;
	} cases[] = {
		{"garbage", RPC_PARSE},
		{"\xff\xfe\x80", RPC_PARSE},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping", RPC_PARSE},
		{"{\"jsonrpc\":\"2.0\",\"id\":99999999999999999999,\"method\":\"ping\"}", RPC_PARSE},
		{"[]", RPC_INVALID_REQUEST},
		{"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]", RPC_INVALID_REQUEST},
		{"{}", RPC_INVALID_REQUEST},
		{"null", RPC_INVALID_REQUEST},
		{"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}", RPC_INVALID_REQUEST},
		{"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}", RPC_INVALID_REQUEST},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":null}", RPC_INVALID_REQUEST},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\"}", RPC_NO_METHOD},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"prompts/none\"}", RPC_NO_METHOD},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":\"x\"}", RPC_INVALID_PARAMS},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\"}", RPC_INVALID_PARAMS},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":[]}}",
		 RPC_INVALID_PARAMS},
		{CALL("1", "read_file", "[]"), RPC_INVALID_PARAMS},
		{CALL("1", "no_such_tool", "{}"), RPC_INVALID_PARAMS},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{\"cursor\":\"x\"}}",
		 RPC_INVALID_PARAMS},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"resources/list\",\"params\":{\"cursor\":\"xyz\"}}",
		 RPC_INVALID_PARAMS},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"resources/read\",\"params\":{}}", RPC_INVALID_PARAMS},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"completion/complete\",\"params\":{\"ref\":1}}",
		 RPC_INVALID_PARAMS},
	};
	struct session s;

	session_open(&s);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct jv *reply = session_ask(&s, cases[i].line);

		if (code_of(reply) != cases[i].code)
			TEST_FAIL("%s got %d, expected %d", cases[i].line, code_of(reply), cases[i].code);
		CHECK(jv_get_str(jv_get(reply, "error"), "message").len > 10);
		CHECK((jv_get(reply, "id") != NULL) == (strstr(cases[i].line, "\"id\":1,") && cases[i].line[0] == '{'));
	}
	CHECK_STR(jv_get_str(session_ask(&s, PING), "id"), STR("ping"));
	session_close(&s);
}

TEST(bytes_that_no_text_holds_are_a_parse_error)
{
	struct session s;

	session_open(&s);
	session_send(&s, STR("{\"jsonrpc\":\"2.0\",\"id\":1,\0\"method\":\"ping\"}\n"));
	CHECK_INT(code_of(session_next(&s)), RPC_PARSE);
	session_send(&s, STR("{\"jsonrpc\":\"2.0\",\"id\":\"\\u0000\",\"method\":\"ping\"}\n"));
	CHECK_STR(jv_get_str(session_next(&s), "id"), STR("\0"));
	session_close(&s);
}

TEST(deep_nesting_is_refused)
{
	struct session s;
	char deep[20001];

	memset(deep, '[', 10000);
	memset(deep + 10000, ']', 10000);
	deep[20000] = '\0';
	session_open(&s);
	CHECK_INT(code_of(session_ask(&s, deep)), RPC_PARSE);
	CHECK_STR(jv_get_str(session_ask(&s, PING), "id"), STR("ping"));
	session_close(&s);
}

TEST(a_message_over_the_ceiling_is_refused_and_the_next_is_served)
{
	size_t len = JSON_LEN_MAX + 1;
	char *line = malloc(len + 1);
	struct session s;

	memset(line, ' ', len);
	line[len] = '\n';
	session_open(&s);
	session_send(&s, str_n(line, len + 1));
	CHECK_INT(code_of(session_next(&s)), RPC_INVALID_REQUEST);
	CHECK_STR(jv_get_str(session_ask(&s, PING), "id"), STR("ping"));
	session_close(&s);
	free(line);
}

TEST(ids_come_back_as_they_were)
{
	static const char *const ids[] = {"0", "-5", "9007199254740993", "\"\"", "\"1\"", "\"\\u00e9\\n\\\"\""};
	struct session s;
	struct jv *want;
	struct err err;

	session_open(&s);
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		struct str line = arena_printf(s.arena, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"ping\"}", ids[i]);

		CHECK_OK(jv_parse(s.arena, str_of(ids[i]), &want, &err), err);
		CHECK(jv_equal(jv_get(session_ask(&s, line.ptr), "id"), want));
	}
	session_close(&s);
}

TEST(a_huge_id_comes_back_whole)
{
	size_t len = 1000000;
	char *id = malloc(len + 1);
	struct session s;

	memset(id, 'i', len);
	id[len] = '\0';
	session_open(&s);
	session_send(&s, STR("{\"jsonrpc\":\"2.0\",\"id\":\""));
	session_send(&s, str_n(id, len));
	session_line(&s, "\",\"method\":\"ping\"}");
	CHECK_STR(jv_get_str(session_next(&s), "id"), str_n(id, len));
	session_close(&s);
	free(id);
}

TEST(the_handshake_echoes_known_versions_and_offers_the_newest_for_others)
{
	static const char *const versions[][2] = {{"2024-11-05", "2024-11-05"}, {"2025-03-26", "2025-03-26"},
						  {"2025-06-18", "2025-06-18"}, {"2025-11-25", "2025-11-25"},
						  {"2026-07-28", "2025-11-25"}, {"1999-01-01", "2025-11-25"}};
	struct session s;

	session_open(&s);
	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
		struct str line = arena_printf(s.arena,
					       "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{"
					       "\"protocolVersion\":\"%s\",\"capabilities\":{}}}",
					       versions[i][0]);

		CHECK_STR(jv_get_str(jv_get(session_ask(&s, line.ptr), "result"), "protocolVersion"),
			  str_of(versions[i][1]));
	}
	session_close(&s);
}

TEST(structured_content_is_given_only_to_those_who_know_it)
{
	static const struct {
		const char *version;
		bool structured;
	} cases[] = {{"2024-11-05", false}, {"2025-03-26", false}, {"2025-06-18", true}, {"2025-11-25", true}};
	struct session s;

	session_open(&s);
	session_write(&s, "a.txt", "hello");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct jv *tool, *result;

		session_ask(&s, arena_printf(s.arena,
					     "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{"
					     "\"protocolVersion\":\"%s\"}}",
					     cases[i].version)
					.ptr);
		result = jv_get(session_ask(&s, CALL("2", "read_file", "{\"path\":\"a.txt\"}")), "result");
		CHECK_INT(jv_get(result, "structuredContent") != NULL, cases[i].structured);
		CHECK(!jv_get(result, "resultType"));
		result = jv_get(session_ask(&s, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}"), "result");
		tool = jv_at(jv_get(result, "tools"), 0);
		CHECK_INT(jv_get(tool, "outputSchema") != NULL, cases[i].structured);
	}
	session_close(&s);
}

TEST(a_modern_request_must_describe_itself)
{
	static const struct {
		const char *params;
		int code;
	} cases[] = {
		{"{}", RPC_INVALID_PARAMS},
		{"{\"_meta\":{}}", RPC_INVALID_PARAMS},
		{"{\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"}}", RPC_INVALID_PARAMS},
		{"{\"_meta\":{\"io.modelcontextprotocol/clientCapabilities\":{}}}", RPC_INVALID_PARAMS},
		{"{\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":7,"
		 "\"io.modelcontextprotocol/clientCapabilities\":{}}}",
		 RPC_INVALID_PARAMS},
		{"{\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
		 "\"io.modelcontextprotocol/clientCapabilities\":{},\"io.modelcontextprotocol/logLevel\":\"loud\"}}",
		 RPC_INVALID_PARAMS},
		{"{" META "}", 0},
	};
	struct session s;

	session_open(&s);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct str line = arena_printf(
			s.arena, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"server/discover\",\"params\":%s}",
			cases[i].params);

		CHECK_INT(code_of(session_ask(&s, line.ptr)), cases[i].code);
	}
	session_close(&s);
}

TEST(an_unknown_version_is_told_what_is_supported)
{
	const struct jv *data;
	struct jv *reply;
	struct session s;

	session_open(&s);
	reply = session_ask(&s, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{\"_meta\":{"
				"\"io.modelcontextprotocol/protocolVersion\":\"1900-01-01\","
				"\"io.modelcontextprotocol/clientCapabilities\":{}}}}");
	CHECK_INT(code_of(reply), RPC_BAD_VERSION);
	data = jv_get(jv_get(reply, "error"), "data");
	CHECK_STR(jv_str_of(jv_at(jv_get(data, "supported"), 0)), STR("2026-07-28"));
	CHECK_STR(jv_get_str(data, "requested"), STR("1900-01-01"));
	session_close(&s);
}

TEST(methods_of_one_era_are_unknown_in_the_other)
{
	static const char *const legacy_only[] = {"initialize", "ping", "logging/setLevel", "resources/subscribe"};
	struct session s;

	session_open(&s);
	for (size_t i = 0; i < sizeof(legacy_only) / sizeof(legacy_only[0]); i++) {
		struct str line = arena_printf(s.arena,
					       "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":{" META
					       ",\"level\":\"info\",\"uri\":\"stead:///a\"}}",
					       legacy_only[i]);

		CHECK_INT(code_of(session_ask(&s, line.ptr)), RPC_NO_METHOD);
	}
	session_close(&s);
}

TEST(every_modern_result_says_that_it_is_complete_and_by_whom)
{
	static const struct {
		const char *method, *params;
		bool cached;
	} cases[] = {
		{"server/discover", "", true},
		{"tools/list", "", true},
		{"resources/list", "", true},
		{"resources/templates/list", "", true},
		{"resources/read", ",\"uri\":\"stead:///\"", true},
		{"tools/call", ",\"name\":\"ls\"", false},
		{"tools/call", ",\"name\":\"read_file\",\"arguments\":{\"path\":\"none\"}", false},
	};
	struct session s;

	session_open(&s);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct str line = arena_printf(
			s.arena, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":{" META "%s}}",
			cases[i].method, cases[i].params);
		const struct jv *result = jv_get(session_ask(&s, line.ptr), "result");
		const struct jv *info = jv_get(jv_get(result, "_meta"), "io.modelcontextprotocol/serverInfo");

		CHECK_STR(jv_get_str(result, "resultType"), STR("complete"));
		CHECK_STR(jv_get_str(info, "name"), STR("stead"));
		CHECK_INT(jv_get_int(result, "ttlMs", -1) >= 0 && jv_get(result, "cacheScope"), cases[i].cached);
	}
	session_close(&s);
}

TEST(a_list_of_tools_goes_on_where_a_cursor_says)
{
	const struct jv *all, *rest;
	struct session s;

	session_open(&s);
	all = jv_get(jv_get(session_ask(&s, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}"), "result"),
		     "tools");
	rest = jv_get(jv_get(session_ask(&s, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{"
					     "\"cursor\":\"3\"}}"),
			     "result"),
		      "tools");
	CHECK_INT(jv_count(rest), jv_count(all) - 3);
	CHECK(jv_equal(jv_at(rest, 0), jv_at(all, 3)));
	session_close(&s);
}

/* Sends `count` writes in one go, without reading answers. */
static void send_writes(struct session *s, int first, int count)
{
	struct buf b;

	buf_init(&b, s->arena, 100 * MIB);
	for (int i = first; i < first + count; i++)
		buf_printf(&b, CALL("%d", "write_file", "{\"path\":\"n/%04d.txt\",\"content\":\"text %d\"}") "\n", i, i,
			   i);
	session_send(s, buf_str(&b));
}

TEST(many_writes_at_once_are_all_answered_once)
{
	bool seen[200] = {false};
	struct session s;

	session_open(&s);
	send_writes(&s, 0, 200);
	for (int i = 0; i < 200; i++) {
		struct jv *reply = session_next(&s);
		int64_t id = jv_get_int(reply, "id", -1);

		CHECK(id >= 0 && id < 200 && !seen[id]);
		seen[id] = true;
		CHECK(!jv_get_bool(jv_get(reply, "result"), "isError", false));
	}
	session_close(&s);
}

TEST(changes_of_one_path_take_effect_in_the_order_in_which_they_came)
{
	struct session s;
	struct str text;
	struct buf b, want;

	session_open(&s);
	buf_init(&b, s.arena, 1 * MIB);
	buf_init(&want, s.arena, 1 * MIB);
	for (int i = 0; i < 300; i++) {
		buf_printf(&b,
			   CALL("%d", "write_file",
				"{\"path\":\"%slog.txt\",\"content\":\"%d\\n\",\"mode\":\"append\"}") "\n",
			   i, i % 2 ? "/" : "", i);
		buf_printf(&want, "%d\n", i);
	}
	session_send(&s, buf_str(&b));
	for (int i = 0; i < 300; i++)
		CHECK(!jv_get_bool(jv_get(session_next(&s), "result"), "isError", false));
	text = jv_get_str(jv_get(jv_get(session_ask(&s, CALL("999", "read_file", "{\"path\":\"log.txt\"}")), "result"),
				 "structuredContent"),
			  "content");
	CHECK_STR(text, buf_str(&want));
	session_close(&s);
}

static struct str content_of(const struct jv *reply)
{
	return jv_get_str(jv_get(jv_get(reply, "result"), "structuredContent"), "content");
}

TEST(many_quick_calls_at_once_are_answered_in_their_order)
{
	struct session s;
	struct buf b;

	session_open(&s);
	for (int i = 0; i < 8; i++)
		session_write(&s, arena_printf(s.arena, "f%d.txt", i).ptr, arena_printf(s.arena, "text %d", i).ptr);
	buf_init(&b, s.arena, 4 * MIB);
	for (int i = 0; i < 2000; i++) {
		if (i % 97 == 96) /* looks like a call, and is something else */
			buf_printf(&b,
				   "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"ping\",\"params\":{\"x\":\"tools/"
				   "call\"}}\n",
				   i);
		else
			buf_printf(&b, CALL("%d", "read_file", "{\"path\":\"f%d.txt\"}") "\n", i, i % 8);
	}
	session_send(&s, buf_str(&b));
	for (int i = 0; i < 2000; i++) {
		struct jv *reply = session_next(&s);

		CHECK_INT(jv_get_int(reply, "id", -1), i);
		if (i % 97 != 96)
			CHECK_STR(content_of(reply), arena_printf(s.arena, "text %d", i % 8));
	}
	session_close(&s);
}

/* Takes the answers to `count` reads, of ids below 1000, and of one change. */
static void check_reads(struct session *s, int count, struct str content)
{
	for (int i = 0; i <= count; i++) {
		struct jv *reply = session_next(s);

		while (!jv_get(reply, "id"))
			reply = session_next(s);
		if (jv_get_int(reply, "id", -1) < 1000)
			CHECK_STR(content_of(reply), content);
	}
}

TEST(reads_that_came_before_a_change_see_the_file_as_it_was)
{
	struct session s;

	session_open(&s);
	session_write(&s, "f.txt", "round 0");
	for (int round = 1; round < 30; round++) {
		struct buf b;

		buf_init(&b, s.arena, 1 * MIB);
		for (int i = 0; i < 60; i++)
			buf_printf(&b, CALL("%d", "read_file", "{\"path\":\"f.txt\"}") "\n", i);
		buf_printf(&b,
			   CALL("1000", "write_file",
				"{\"path\":\"f.txt\",\"content\":\"round %d\",\"mode\":\"overwrite\"}") "\n",
			   round);
		session_send(&s, buf_str(&b));
		check_reads(&s, 60, arena_printf(s.arena, "round %d", round - 1));
	}
	session_close(&s);
}

/* More than there are threads of any kind. */
#define WAITING 100

TEST(calls_that_wait_for_changes_hold_up_no_other_call)
{
	struct session s;
	struct jv *reply;

	session_open(&s);
	for (int i = 1; i <= WAITING; i++)
		session_line(&s, arena_printf(s.arena,
					      CALL("%d", "changes", "{\"path_prefix\":\"other\",\"wait_ms\":60000}"), i)
					 .ptr);
	reply = session_ask(&s, CALL("999", "write_file", "{\"path\":\"a\",\"content\":\"a\"}"));
	CHECK_INT(jv_get_int(reply, "id", 0), 999);
	CHECK(!jv_get_bool(jv_get(reply, "result"), "isError", false));
	session_close(&s); /* ends, although they would wait for a minute */
}

TEST(two_calls_that_wait_never_share_a_thread)
{
	struct session s;

	session_open(&s);
	for (int i = 0; i < 20; i++) {
		const char *line = arena_printf(s.arena,
						CALL("%d", "changes", "{\"wait_ms\":60000}") "\n" CALL(
							"1000", "changes", "{\"wait_ms\":1}"),
						i)
					   .ptr;

		session_ask(&s, CALL("999", "changes", "{\"wait_ms\":1}")); /* leaves a thread without work */
		CHECK_INT(jv_get_int(session_ask(&s, line), "id", 0), 1000);
	}
	session_close(&s);
}

TEST(a_tool_ends_by_the_time_that_agent_yaml_gives_it)
{
	const char *dir = temp_dir_new();
	struct arena *arena = arena_new();
	struct str store = arena_printf(arena, "disk:%s/store", dir);
	struct workspace_opts opts = {.store_url = store, .name = STR("test"), .create = true, .relaxed = true};
	struct workspace *ws;
	struct ctx ctx = {.arena = arena};
	struct session s;
	struct jv *reply;
	struct err err;

	CHECK_OK(workspace_open(&opts, &ws, &err), err);
	CHECK_OK(store_write(workspace_home(ws), &ctx, (struct wpath){STR("agent.yaml")},
			     STR("name: x\ntool_timeouts: {default_seconds: 3600, overrides: {changes: 0.2}}\n"),
			     (struct store_cond){0}, NULL, &err),
		 err);
	workspace_close(ws);
	session_open_on(&s, store, STR_NONE);
	reply = session_ask(&s, CALL("1", "changes", "{\"path_prefix\":\"other\",\"wait_ms\":60000}"));
	CHECK_STR(jv_get_str(jv_get(jv_get(jv_get(reply, "result"), "_meta"), "stead/error"), "kind"), STR("timeout"));
	session_close(&s);
	arena_destroy(arena);
}

TEST(what_runs_when_the_input_ends_is_finished_and_answered)
{
	struct session s;
	int answers = 0;

	session_open(&s);
	send_writes(&s, 0, 30);
	session_finish(&s);
	while (session_next(&s))
		answers++;
	CHECK_INT(answers, 30);
	session_close(&s);
}

TEST(a_client_that_is_gone_ends_the_server_quietly)
{
	struct session s;

	session_open(&s);
	close(s.from);
	s.from = open("/dev/null", O_RDONLY | O_CLOEXEC);
	session_line(&s, PING);
	send_writes(&s, 0, 10);
	session_finish(&s);
	session_close(&s);
}

TEST(resources_are_listed_by_pages_without_loss)
{
	struct str cursor = STR_NONE;
	struct session s;
	size_t total = 0, pages = 0;

	session_open(&s);
	send_writes(&s, 0, 600);
	for (int i = 0; i < 600; i++)
		session_next(&s);
	do {
		struct str line = arena_printf(s.arena,
					       "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"resources/list\",\"params\":"
					       "{\"cursor\":%s%.*s%s}}",
					       cursor.ptr ? "\"" : "null", STR_ARG(cursor), cursor.ptr ? "\"" : "");
		const struct jv *result = jv_get(session_ask(&s, line.ptr), "result");

		total += jv_count(jv_get(result, "resources"));
		cursor = jv_get_str(result, "nextCursor");
		pages++;
	} while (cursor.ptr && pages < 10);
	CHECK_INT(total, 600);
	CHECK_INT(pages, 2);
	session_close(&s);
}

TEST(in_a_directory_of_the_persons_own_what_git_ignores_is_not_listed)
{
	const char *dir = temp_dir_new();
	const struct jv *list;
	struct session s;

	session_open_at(&s, str_of(dir));
	session_write(&s, ".gitignore", "out/\\n");
	session_write(&s, "out/big.o", "x");
	session_write(&s, "src/main.c", "x");
	list = jv_get(jv_get(session_ask(&s, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"resources/list\"}"), "result"),
		      "resources");
	CHECK_INT(jv_count(list), 2);
	CHECK_STR(jv_get_str(jv_at(list, 0), "uri"), STR("stead:///.gitignore"));
	CHECK_STR(jv_get_str(jv_at(list, 1), "uri"), STR("stead:///src/main.c"));
	session_close(&s);
}

static struct jv *read_uri(struct session *s, const char *uri)
{
	return session_ask(s, arena_printf(s->arena,
					   "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"resources/read\",\"params\":{"
					   "\"uri\":\"%s\"}}",
					   uri)
				      .ptr);
}

TEST(a_uri_is_percent_encoded_and_read_back)
{
	const struct jv *list, *contents;
	struct session s;

	session_open(&s);
	session_write(&s, "a b/100% #1?.md", "x");
	list = jv_get(jv_get(session_ask(&s, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"resources/list\"}"), "result"),
		      "resources");
	CHECK_STR(jv_get_str(jv_at(list, 0), "uri"), STR("stead:///a%20b/100%25%20%231%3F.md"));
	contents = jv_get(jv_get(read_uri(&s, "stead:///a%20b/100%25%20%231%3F.md"), "result"), "contents");
	CHECK_STR(jv_get_str(jv_at(contents, 0), "text"), STR("x"));
	contents = jv_get(jv_get(read_uri(&s, "stead:///a b/100%25 #1?.md"), "result"), "contents");
	CHECK_STR(jv_get_str(jv_at(contents, 0), "text"), STR("x"));
	session_close(&s);
}

TEST(a_uri_cannot_leave_the_workspace)
{
	static const char *const uris[] = {"file:///etc/passwd",
					   "stead:///../../etc/passwd",
					   "stead:///%2e%2e/%2e%2e/etc/passwd",
					   "stead:///a/%00",
					   "stead:///%zz",
					   "stead:///%2",
					   "stead:///.env",
					   "stead:///.stead/x",
					   "stead://etc/passwd",
					   ""};
	struct session s;

	session_open(&s);
	for (size_t i = 0; i < sizeof(uris) / sizeof(uris[0]); i++) {
		int code = code_of(read_uri(&s, uris[i]));

		if (code != RPC_INVALID_PARAMS && code != RPC_NO_RESOURCE_LEGACY)
			TEST_FAIL("%s got %d", uris[i], code);
	}
	session_close(&s);
}

TEST(a_path_over_the_limit_is_refused)
{
	char uri[4000] = "stead:///";
	struct session s;

	memset(uri + 9, 'x', 3000);
	session_open(&s);
	CHECK_INT(code_of(read_uri(&s, uri)), RPC_INVALID_PARAMS);
	session_close(&s);
}

TEST(a_resource_over_the_ceiling_is_refused_with_its_uri)
{
	size_t len = MCP_RESOURCE_MAX + 1;
	char *text = malloc(len + 1);
	struct session s;
	struct jv *reply;

	memset(text, 'x', len);
	text[len] = '\0';
	session_open(&s);
	session_send(&s, STR("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":"
			     "\"write_file\",\"arguments\":{\"path\":\"big\",\"content\":\""));
	session_send(&s, str_n(text, len));
	session_line(&s, "\"}}}");
	session_next(&s);
	reply = read_uri(&s, "stead:///big");
	CHECK_INT(code_of(reply), RPC_INVALID_PARAMS);
	CHECK_STR(jv_get_str(jv_get(jv_get(reply, "error"), "data"), "kind"), STR("too_large"));
	CHECK_STR(jv_get_str(jv_get(jv_get(reply, "error"), "data"), "uri"), STR("stead:///big"));
	session_close(&s);
	free(text);
}

TEST(completion_gives_at_most_a_hundred_and_counts_the_rest)
{
	const struct jv *completion;
	struct session s;

	session_open(&s);
	send_writes(&s, 0, 130);
	for (int i = 0; i < 130; i++)
		session_next(&s);
	completion = jv_get(jv_get(session_ask(&s, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"completion/complete\","
						   "\"params\":{\"ref\":{\"type\":\"ref/resource\",\"uri\":"
						   "\"stead:///{+path}\"},\"argument\":{\"name\":\"path\",\"value\":"
						   "\"n/0\"}}}"),
				   "result"),
			    "completion");
	CHECK_INT(jv_count(jv_get(completion, "values")), 100);
	CHECK_STR(jv_str_of(jv_at(jv_get(completion, "values"), 0)), STR("n/0000.txt"));
	CHECK_INT(jv_get_int(completion, "total", 0), 130);
	CHECK(jv_get_bool(completion, "hasMore", false));
	session_close(&s);
}
