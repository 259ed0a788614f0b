/* SPDX-License-Identifier: Apache-2.0 */
/* MCP over HTTP, both eras on one address. */
#include "client.h"
#include "server/mcp_door.h"

#define META                                                                                                           \
	"\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","                                       \
	"\"io.modelcontextprotocol/clientCapabilities\":{}"
#define BOTH "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"

static struct reply post(struct site *s, const char *headers, const char *body)
{
	return ask(s, "POST", "/mcp/demo", arena_printf(s->arena, BOTH "%s", headers).ptr, str_of(body));
}

static struct reply modern(struct site *s, const char *method, const char *name, const char *body)
{
	const char *headers = arena_printf(s->arena, "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: %s\r\n%s%s%s",
					   method, name ? "Mcp-Name: " : "", name ? name : "", name ? "\r\n" : "")
				      .ptr;

	return post(s, headers, body);
}

/* The header lines of a new session. */
static const char *session_open(struct site *s)
{
	struct reply reply = post(s, "",
				  "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{"
				  "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\"clientInfo\":"
				  "{\"name\":\"t\",\"version\":\"1\"}}}");
	struct str id = head_value(reply.head, "Mcp-Session-Id");
	const char *headers;

	CHECK_STATUS(reply, 200);
	CHECK_INT(id.len, 32);
	CHECK_HAS(reply.body, STR("\"protocolVersion\":\"2025-11-25\""));
	headers =
		arena_printf(s->arena, "Mcp-Session-Id: %.*s\r\nMCP-Protocol-Version: 2025-11-25\r\n", STR_ARG(id)).ptr;
	CHECK_STATUS(post(s, headers, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}"), 202);
	return headers;
}

static int64_t code_of(struct site *s, struct reply reply)
{
	return jv_get_int(jv_get(json_of(s, reply), "error"), "code", 0);
}

TEST(a_modern_call_needs_no_session)
{
	static struct site s;
	struct reply reply;

	site_start(&s, true);
	reply = modern(&s, "server/discover", NULL,
		       "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"server/discover\",\"params\":{" META "}}}");
	CHECK_STATUS(reply, 200);
	CHECK_HAS(reply.body, STR("\"supportedVersions\":[\"2026-07-28\"]"));
	reply = modern(
		&s, "tools/call", "write_file",
		"{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"tools/call\",\"params\":{\"name\":\"write_file\","
		"\"arguments\":{\"path\":\"m.md\",\"content\":\"modern\"}," META "}}}");
	CHECK_STATUS(reply, 200);
	CHECK_HAS(reply.body, STR("\"resultType\":\"complete\""));
	CHECK(!head_value(reply.head, "Mcp-Session-Id").ptr);
	CHECK_STR(get(&s, "/v1/workspaces/demo/files/m.md").body, STR("modern"));
}

TEST(modern_headers_must_agree_with_the_body)
{
	static const char list[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{" META "}}}";
	static const char read[] =
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"ls\"," META "}}}";
	static struct site s;

	site_start(&s, true);
	CHECK_STATUS(modern(&s, "tools/list", NULL, list), 200);
	CHECK_INT(code_of(&s, modern(&s, "tools/call", NULL, list)), -32020);
	CHECK_INT(code_of(&s, post(&s, "MCP-Protocol-Version: 2026-07-28\r\n", list)), -32020);
	CHECK_INT(code_of(&s, post(&s, "Mcp-Method: tools/list\r\n", list)), -32020);
	CHECK_INT(code_of(&s, modern(&s, "tools/call", NULL, read)), -32020);
	CHECK_INT(code_of(&s, modern(&s, "tools/call", "cat", read)), -32020);
	CHECK_STATUS(modern(&s, "tools/call", "=?base64?bHM=?=", read), 200);
	CHECK_INT(code_of(&s, modern(&s, "tools/call", "=?base64?b$M=?=", read)), -32020);
	CHECK_STATUS(modern(&s, "tools/call", "cat", read), 400);
}

TEST(a_status_says_what_is_wrong_with_a_modern_request)
{
	static struct site s;
	struct reply reply;

	site_start(&s, true);
	reply = modern(&s, "ping", NULL, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{" META "}}}");
	CHECK_STATUS(reply, 404);
	CHECK_INT(code_of(&s, reply), -32601);
	reply = modern(&s, "tools/list", NULL,
		       "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{}}");
	CHECK_STATUS(reply, 400);
	reply = post(&s, "MCP-Protocol-Version: 1900-01-01\r\nMcp-Method: tools/list\r\n",
		     "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{\"_meta\":{"
		     "\"io.modelcontextprotocol/protocolVersion\":\"1900-01-01\","
		     "\"io.modelcontextprotocol/clientCapabilities\":{}}}}");
	CHECK_STATUS(reply, 400);
	CHECK_INT(code_of(&s, reply), -32022);
	reply = post(&s, "MCP-Protocol-Version: 1900-01-01\r\n", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}");
	CHECK_STATUS(reply, 400);
	CHECK_HAS(reply.body, STR("this version of the protocol is not supported"));
	CHECK_STATUS(post(&s, "", "{"), 400);
	CHECK_INT(code_of(&s, post(&s, "", "[]")), -32600);
	CHECK_STATUS(ask(&s, "GET", "/mcp/demo", "MCP-Protocol-Version: 2026-07-28\r\n", STR_NONE), 405);
	CHECK_STATUS(ask(&s, "DELETE", "/mcp/demo", "MCP-Protocol-Version: 2026-07-28\r\n", STR_NONE), 405);
}

TEST(a_legacy_session_begins_and_ends)
{
	static const char list[] = "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\"}";
	static struct site s;
	const char *session;
	struct reply reply;

	site_start(&s, true);
	CHECK_STATUS(post(&s, "", list), 400);
	CHECK_STATUS(post(&s, "Mcp-Session-Id: 00000000000000000000000000000000\r\n", list), 404);
	session = session_open(&s);
	reply = post(&s, session, list);
	CHECK_STATUS(reply, 200);
	CHECK_HAS(reply.body, STR("\"name\":\"read_file\""));
	CHECK_STATUS(post(&s, session, "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"ping\"}"), 200);
	CHECK_STATUS(post(&s, session, "{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":{}}"), 202);
	CHECK_INT(code_of(&s, post(&s, session, "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"none\"}")), -32601);
	CHECK_STATUS(ask(&s, "DELETE", "/mcp/demo", session, STR_NONE), 204);
	CHECK_STATUS(post(&s, session, list), 404);
}

TEST(plan_mode_belongs_to_one_session_and_a_request_without_one_cannot_turn_it_on)
{
	static const char
		enter[] = "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":"
			  "{\"name\":\"plan_enter\",\"arguments\":{}}}",
		write[] = "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/call\",\"params\":{\"name\":"
			  "\"write_file\",\"arguments\":{\"path\":\"a\",\"content\":\"x\",\"mode\":\"overwrite\"}}}";
	static struct site s;
	const char *one, *two;
	struct reply reply;

	site_start_with(&s, (struct serve_opts){.is_open = true, .tools = {.sets = STR("all")}});
	one = session_open(&s);
	two = session_open(&s);
	CHECK_HAS(post(&s, one, enter).body, STR("lan mode is on"));
	CHECK_HAS(post(&s, one, write).body, STR("\"isError\":true"));
	CHECK(str_find(post(&s, two, write).body, STR("\"isError\""), 0) == SIZE_MAX);
	reply = modern(&s, "tools/call", "plan_enter",
		       "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"tools/call\",\"params\":{\"name\":\"plan_enter\","
		       "\"arguments\":{}," META "}}}");
	CHECK_HAS(reply.body, STR("plan mode belongs to a session, and this request has none"));
	CHECK_STATUS(ask(&s, "POST", "/v1/workspaces/demo/tools/plan_enter", NULL, STR("{}")), 400);
	CHECK_STATUS(ask(&s, "POST", "/v1/workspaces/demo/tools/write_file", NULL,
			 STR("{\"path\":\"b\",\"content\":\"x\"}")),
		     200);
}

TEST(a_session_is_for_its_token_and_workspace_only)
{
	static struct site s;
	const char *mine, *other, *session;
	struct reply reply;

	site_start(&s, false);
	mine = bearer(&s, site_token(&s, ACCESS_WRITE, "demo", NULL));
	other = bearer(&s, site_token(&s, ACCESS_WRITE, "demo", NULL));
	reply = post(&s, mine, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{}}");
	session = arena_printf(s.arena, "Mcp-Session-Id: %.*s\r\n", STR_ARG(head_value(reply.head, "Mcp-Session-Id")))
			  .ptr;
	CHECK_STATUS(post(&s, arena_printf(s.arena, "%s%s", mine, session).ptr,
			  "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"ping\"}"),
		     200);
	CHECK_STATUS(post(&s, arena_printf(s.arena, "%s%s", other, session).ptr,
			  "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"ping\"}"),
		     404);
}

TEST(a_reader_cannot_call_a_tool_that_writes)
{
	static struct site s;
	const char *token;
	struct reply reply;

	site_start(&s, false);
	token = bearer(&s, site_token(&s, ACCESS_READ, "demo", NULL));
	reply = post(&s,
		     arena_printf(s.arena,
				  "%sMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n"
				  "Mcp-Name: write_file\r\n",
				  token)
			     .ptr,
		     "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"tools/call\",\"params\":{\"name\":\"write_file\","
		     "\"arguments\":{\"path\":\"m.md\",\"content\":\"x\"}," META "}}}");
	CHECK_INT(code_of(&s, reply), -32602);
	CHECK_HAS(reply.body, STR("this connection may only read"));
	CHECK_STATUS(ask(&s, "GET", "/v1/workspaces/demo/files/m.md", token, STR_NONE), 404);
}

static void wait_for(struct wire *w, const char *text)
{
	while (str_find(str_n(w->buf, w->len), str_of(text), 0) == SIZE_MAX)
		CHECK(wire_more(w));
}

static void put(struct site *s, const char *name)
{
	struct reply reply =
		ask(s, "PUT", arena_printf(s->arena, "/v1/workspaces/demo/files/%s", name).ptr, NULL, STR("x"));

	CHECK(reply.status == 200 || reply.status == 201);
}

TEST(notifications_come_on_the_stream_of_a_session)
{
	static struct site s;
	static struct wire w;
	const char *session;

	site_start(&s, true);
	put(&s, "a.md");
	session = session_open(&s);
	wire_open(&w, &s);
	wire_send(&w, arena_printf(s.arena, "GET /mcp/demo HTTP/1.1\r\nHost: localhost\r\n%s\r\n", session));
	wait_for(&w, ":\n\n");
	CHECK_STATUS(ask(&s, "GET", "/mcp/demo", session, STR_NONE), 409);
	CHECK_STATUS(post(&s, session,
			  "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"resources/subscribe\",\"params\":"
			  "{\"uri\":\"stead:///a.md\"}}"),
		     200);
	put(&s, "a.md");
	wait_for(&w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/updated\"");
	CHECK_STATUS(ask(&s, "DELETE", "/mcp/demo", session, STR_NONE), 204);
	wait_for(&w, "0\r\n\r\n");
}

TEST(a_modern_subscription_is_a_stream)
{
	static const char body[] = "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"subscriptions/listen\",\"params\":{"
				   "\"notifications\":{\"resourcesListChanged\":true}," META "}}}";
	static struct site s;
	static struct wire w;

	site_start(&s, true);
	wire_open(&w, &s);
	wire_send(&w, arena_printf(s.arena,
				   "POST /mcp/demo HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n" BOTH
				   "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: subscriptions/listen\r\n\r\n%s",
				   strlen(body), body));
	wait_for(&w, "notifications/subscriptions/acknowledged");
	put(&s, "new.md");
	wait_for(&w, "notifications/resources/list_changed");
	test_close(&w);
	CHECK_STATUS(get(&s, "/healthz"), 200);
}

TEST(progress_comes_before_the_result)
{
	static struct site s;
	struct reply reply;

	site_start(&s, true);
	for (int i = 0; i < 20; i++)
		put(&s, arena_printf(s.arena, "f%d.md", i).ptr);
	reply = modern(&s, "tools/call", "grep",
		       "{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"tools/call\",\"params\":{\"name\":\"grep\","
		       "\"arguments\":{\"pattern\":\"x\"}," META ",\"progressToken\":\"p\"}}}");
	CHECK_STATUS(reply, 200);
	CHECK_STR(head_value(reply.head, "Content-Type"), STR("text/event-stream"));
	CHECK_HAS(reply.body, STR("data: {\"jsonrpc\":\"2.0\",\"id\":8,\"result\":"));
	CHECK_ENDS(reply.body, STR("}}\n\n"));
}

TEST(the_server_ends_while_mcp_streams_are_open)
{
	static struct site s;
	static struct wire w;
	const char *session;

	site_start(&s, true);
	session = session_open(&s);
	wire_open(&w, &s);
	wire_send(&w, arena_printf(s.arena, "GET /mcp/demo HTTP/1.1\r\nHost: localhost\r\n%s\r\n", session));
	wait_for(&w, ":\n\n");
	CHECK(serve_stop(s.serve, 5000));
	s.serve = NULL;
	wait_for(&w, "0\r\n\r\n");
}
