/* SPDX-License-Identifier: Apache-2.0 */
/* What a client of a model gets: a list of tools that is worth its tokens, text, and its own name in the history. */
#include "session.h"

#define CALL(id, name, args)                                                                                           \
	"{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"tools/call\",\"params\":{\"name\":\"" name                    \
	"\",\"arguments\":" args "}}"
#define HELLO                                                                                                          \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-11-25\","      \
	"\"capabilities\":{},\"clientInfo\":{\"name\":\"Claude Code/../x\",\"version\":\"1\"}}}"

/* A server that offers what `sets` chooses, as `stead mcp` does. */
static void serve(struct session *s, const char *files_dir, const char *sets)
{
	struct session_how how = {.store_url = STR("memory:"), .files_dir = str_of(files_dir), .sets = sets};

	session_open_how(s, &how);
}

/* Sends a line and gives its answer; notifications before it are dropped. */
static struct jv *answer(struct session *s, const char *line)
{
	struct jv *reply = session_ask(s, line);

	while (!jv_get(reply, "id"))
		reply = session_next(s);
	return reply;
}

/* The bytes of tools/list on the wire. */
static size_t list_size(const char *files_dir, const char *sets)
{
	struct session s;
	struct jv *reply;
	struct buf b;
	size_t size;

	serve(&s, files_dir, sets);
	reply = session_ask(&s, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}");
	buf_init(&b, s.arena, 10 * MIB);
	jv_write(&b, reply);
	for (const struct jv_member *m = jv_first(jv_get(jv_get(reply, "result"), "tools")); m; m = m->next)
		CHECK(!jv_get(m->value, "outputSchema"));
	size = b.len;
	session_close(&s);
	return size;
}

/* The arguments of a tool. */
static const struct jv *schema_of(const struct jv *tools, const char *name)
{
	for (const struct jv_member *m = jv_first(tools); m; m = m->next)
		if (str_is(jv_get_str(m->value, "name"), name))
			return jv_get(jv_get(m->value, "inputSchema"), "properties");
	TEST_FAIL("a tool is missing");
}

TEST(the_list_of_tools_is_as_large_as_a_model_can_bear)
{
	size_t files = list_size(temp_dir_new(), ""), workspace = list_size(NULL, "");
	size_t all = list_size(NULL, "all");

	printf("# tools/list: --files %zu bytes, workspace %zu, all %zu\n", files, workspace, all);
	CHECK(files <= 14000);
	CHECK(workspace <= 24000);
	CHECK(all <= 60000);
}

TEST(a_long_list_describes_an_argument_of_the_same_meaning_once)
{
	const struct jv *tools, *write, *append;
	struct session s;

	serve(&s, NULL, "all");
	tools = jv_get(jv_get(session_ask(&s, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}"), "result"),
		       "tools");
	write = schema_of(tools, "write_file");
	append = schema_of(tools, "append_file");
	CHECK(jv_get_str(jv_get(write, "if_version"), "description").len > 0);
	CHECK_STR(jv_get_str(jv_get(append, "if_version"), "type"), STR("string"));
	CHECK(!jv_get(jv_get(append, "if_version"), "description"));
	CHECK_STR(jv_get_str(jv_get(append, "content"), "description"), STR("what to append"));
	session_close(&s);
}

TEST(a_result_is_text_alone)
{
	struct session s;
	const struct jv *result;

	serve(&s, NULL, "");
	answer(&s, HELLO);
	answer(&s, CALL("2", "write_file", "{\"path\":\"a.c\",\"content\":\"say(\\\"hi\\\");\\n\"}"));
	result = jv_get(answer(&s, CALL("3", "read_file", "{\"path\":\"a.c\"}")), "result");
	CHECK(!jv_get(result, "structuredContent"));
	CHECK_STR(jv_get_str(jv_at(jv_get(result, "content"), 0), "text"), STR("say(\"hi\");\n"));
	session_close(&s);
}

TEST(a_tool_that_is_not_offered_cannot_be_called)
{
	struct session s;

	serve(&s, NULL, "");
	CHECK_HAS(jv_get_str(jv_get(answer(&s, CALL("2", "clear_files", "{}")), "error"), "message"),
		  STR("there is no tool \"clear_files\" here: agent.yaml or --tools leaves it out"));
	CHECK_INT(code_of(answer(&s, CALL("2", "clear_files", "{}"))), RPC_INVALID_PARAMS);
	session_close(&s);
}

TEST(the_instructions_name_only_tools_that_are_offered)
{
	struct session s;
	struct str text;

	serve(&s, temp_dir_new(), "read_file,undo");
	text = jv_get_str(jv_get(answer(&s, HELLO), "result"), "instructions");
	CHECK_HAS(text, STR("read_file"));
	CHECK_HAS(text, STR("be undone: undo."));
	CHECK(str_find(text, STR("memory_save"), 0) == SIZE_MAX);
	CHECK(str_find(text, STR("write_file"), 0) == SIZE_MAX);
	session_close(&s);
}

TEST(the_instructions_are_in_the_words_of_the_dialect)
{
	static const struct {
		const char *dialect, *words;
	} rows[] = {
		{"openpaw", "overwrite_file, grep_files, glob_files."},
		{"agentscope", "Work with list_files, read_file"},
		{"loomflow", "Work with ls, read, edit, write, grep, find."},
		{"wacht", "Paths begin with /task. Work with list_directory, read_file"},
		{"anthropic-memory", "Paths begin with /memories. Work with memory."},
		{"filesystem", "Paths are relative to its root. Work with list_directory"},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct session_how how = {
			.store_url = STR("memory:"), .sets = "default", .dialect = str_of(rows[i].dialect)};
		struct session s;

		session_open_how(&s, &how);
		CHECK_HAS(jv_get_str(jv_get(answer(&s, HELLO), "result"), "instructions"), str_of(rows[i].words));
		session_close(&s);
	}
}

TEST(a_change_has_the_name_and_the_session_of_its_client)
{
	struct session s;
	const struct jv *result;
	struct str text;

	serve(&s, NULL, "");
	answer(&s, HELLO);
	answer(&s, CALL("2", "write_file", "{\"path\":\"a\",\"content\":\"x\"}"));
	result = jv_get(answer(&s, CALL("3", "history", "{}")), "result");
	text = jv_get_str(jv_at(jv_get(result, "content"), 0), "text");
	CHECK_HAS(text, STR("Claude-Code-..-x"));
	result = jv_get(answer(&s, CALL("4", "history", "{\"agent\":\"Claude-Code-..-x\"}")), "result");
	CHECK_HAS(jv_get_str(jv_at(jv_get(result, "content"), 0), "text"), STR(" a"));
	session_close(&s);
}

TEST(a_request_that_is_not_json_is_answered_with_its_id)
{
	static const char *const lines[] = {
		"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{\"name\":\"\\ud83d\"}}",
		"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{\"name\":\"\xff\"}}",
		"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\",\"params\":{\"id\":9,\"a\":1,\"a\":2}}",
		("{\"params\":{\"id\":9,\"a\":99999999999999999999999},\"method\":\"ping\",\"jsonrpc\":\"2.0\",\"id\" "
		 ": "
		 "7}"),
		"{\"a\":\"\\\"id\\\":9\",\"\\ud83d\":[{\"id\":9}],\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}",
	};
	struct session s;

	serve(&s, NULL, "");
	for (size_t i = 0; i < COUNT(lines); i++) {
		struct jv *reply = answer(&s, lines[i]);

		CHECK_INT(code_of(reply), RPC_PARSE);
		CHECK_INT(jv_get_int(reply, "id", 0), 7);
	}
	CHECK_STR(jv_get_str(answer(&s, "{\"jsonrpc\":\"2.0\",\"id\":\"a\\\"b\",\"method\":\"ping\",\"x\":\"\xff\"}"),
			     "id"),
		  STR("a\"b"));
	session_close(&s);
}

TEST(a_pattern_that_looks_at_the_whole_line_from_each_place_in_it_ends)
{
	struct session s;
	char *line = malloc(1500000);
	size_t n = (size_t)snprintf(line, 200, "%s",
				    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{"
				    "\"name\":\"write_file\",\"arguments\":{\"path\":\"a\",\"content\":\"");
	const struct jv *result;

	serve(&s, NULL, "");
	memset(line + n, 'a', 1000000);
	snprintf(line + n + 1000000, 100, "b\"}}}");
	answer(&s, line);
	free(line);
	result = jv_get(answer(&s, CALL("2", "grep", "{\"pattern\":\"(?=(a+))\\\\1b\\\\1\"}")), "result");
	CHECK(jv_get_bool(result, "isError", false));
	CHECK_HAS(jv_get_str(jv_at(jv_get(result, "content"), 0), "text"), STR("takes too much work"));
	session_close(&s);
}

TEST(the_workspace_and_each_skill_are_prompts)
{
	struct session s;
	const struct jv *result, *list;
	struct err err = {0};

	serve(&s, NULL, "");
	CHECK_OK(store_write(workspace_home(s.ws), &(struct ctx){.arena = s.arena},
			     (struct wpath){STR("skills/letters/SKILL.md")},
			     STR("---\nname: letters\ndescription: Sorts letters.\n---\nSort by date.\n"),
			     (struct store_cond){0}, NULL, &err),
		 err);
	list = jv_get(jv_get(answer(&s, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"prompts/list\"}"), "result"),
		      "prompts");
	CHECK_INT(jv_count(list), 2);
	CHECK_STR(jv_get_str(jv_at(list, 0), "name"), STR("letters"));
	CHECK_STR(jv_get_str(jv_at(list, 1), "name"), STR("workspace"));
	result = jv_get(
		answer(&s,
		       "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"prompts/get\",\"params\":{\"name\":\"letters\"}}"),
		"result");
	CHECK_HAS(jv_get_str(jv_get(jv_at(jv_get(result, "messages"), 0), "content"), "text"), STR("Sort by date."));
	result = jv_get(
		answer(&s,
		       "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"prompts/get\",\"params\":{\"name\":\"workspace\"}}"),
		"result");
	CHECK_HAS(jv_get_str(jv_get(jv_at(jv_get(result, "messages"), 0), "content"), "text"), STR("<workspace>"));
	CHECK_INT(code_of(answer(
			  &s, "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"prompts/get\",\"params\":{\"name\":\"x\"}}")),
		  RPC_INVALID_PARAMS);
	session_close(&s);
}

TEST(plan_mode_is_of_one_connection)
{
	struct session one, two;
	struct session_how how = {.store_url = STR("memory:"), .sets = "all"};
	const char *dir = temp_dir_new();
	char url[400];

	snprintf(url, sizeof url, "disk:%s", dir);
	how.store_url = str_of(url);
	session_open_how(&one, &how);
	session_open_how(&two, &how);
	answer(&one, CALL("1", "plan_enter", "{}"));
	CHECK(jv_get_bool(jv_get(answer(&one, CALL("2", "write_file", "{\"path\":\"a\",\"content\":\"x\"}")), "result"),
			  "isError", false));
	CHECK(!jv_get_bool(
		jv_get(answer(&two, CALL("2", "write_file", "{\"path\":\"a\",\"content\":\"x\"}")), "result"),
		"isError", false));
	session_close(&two);
	session_close(&one);
}
