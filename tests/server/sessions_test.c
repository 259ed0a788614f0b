/* SPDX-License-Identifier: Apache-2.0 */
/* Conversations with the agent over HTTP, with a recording as its model. */
#include "client.h"

static void write_file(const char *path, struct str text)
{
	FILE *f = fopen(path, "we");

	CHECK(f && fwrite(text.ptr, 1, text.len, f) == text.len && fclose(f) == 0);
}

#define RECORDING                                                                                                      \
	"{\"type\":\"message\",\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"c1\",\"name\":"     \
	"\"write_file\",\"input\":{\"path\":\"a.md\",\"content\":\"hello\"}}]}\n"                                      \
	"{\"type\":\"message\",\"role\":\"assistant\",\"content\":\"Done.\"}\n"                                        \
	"{\"type\":\"message\",\"role\":\"assistant\",\"content\":\"Again.\"}\n"

static void start(struct site *s)
{
	const char *recording;

	site_start(s, true);
	recording = arena_printf(s->arena, "%s/recording.jsonl", s->dir).ptr;
	write_file(recording, STR(RECORDING));
	write_file(arena_printf(s->arena, "%s/ws/demo/agent.yaml", s->dir).ptr,
		   arena_printf(s->arena, "model: \"replay:%s\"\n", recording));
}

static struct reply say(struct site *s, const char *headers, const char *body)
{
	return ask(s, "POST", "/v1/workspaces/demo/sessions/s%201/messages", headers, str_of(body));
}

TEST(a_message_is_answered_and_the_conversation_can_be_read)
{
	static struct site s;
	const struct jv *v;

	start(&s);
	v = json_of(&s, say(&s, NULL, "{\"text\":\"Write it\"}"));
	CHECK_STR(jv_get_str(v, "answer"), STR("Done."));
	CHECK_STR(jv_get_str(v, "session"), STR("s 1"));
	CHECK_STR(get(&s, "/v1/workspaces/demo/files/a.md").body, STR("hello"));
	v = json_of(&s, get(&s, "/v1/workspaces/demo/sessions/s%201/messages?limit=100"));
	CHECK_STR(jv_get_str(jv_at(jv_get(v, "entries"), 0), "content"), STR("Write it"));
	v = json_of(&s, get(&s, "/v1/workspaces/demo/sessions"));
	CHECK_STR(jv_get_str(jv_at(jv_get(v, "sessions"), 0), "session"), STR("s 1"));
	v = json_of(&s, say(&s, NULL, "{\"text\":\"And?\"}"));
	CHECK_STR(jv_get_str(v, "answer"), STR("Again."));
}

TEST(a_stream_shows_what_happens)
{
	static struct site s;
	struct reply reply;

	start(&s);
	reply = say(&s, "Accept: text/event-stream\r\n", "{\"text\":\"Write it\"}");
	CHECK_STATUS(reply, 200);
	CHECK_HAS(reply.body, STR("event: call\ndata: {\"event\":\"call\",\"id\":\"c1\",\"name\":\"write_file\""));
	CHECK_HAS(reply.body, STR("event: result\n"));
	CHECK_HAS(reply.body, STR("event: text\ndata: {\"event\":\"text\",\"text\":\"Done.\"}"));
	CHECK_HAS(reply.body, STR("event: end\ndata: {\"session\":\"s 1\""));
}

TEST(what_goes_wrong_is_a_problem_or_an_event)
{
	static struct site s;
	struct reply reply;

	start(&s);
	CHECK_STATUS(say(&s, NULL, "{\"text\":\"x\",\"model\":\"openai:y\"}"), 400);
	CHECK_STATUS(say(&s, NULL, "{\"text\":1}"), 400);
	CHECK_STATUS(say(&s, NULL, "{}"), 404); /* there is nothing to finish */
	reply = say(&s, "Accept: text/event-stream\r\n", "{}");
	CHECK_HAS(reply.body, STR("event: error\ndata: {\"status\":404,\"kind\":\"not_found\""));
	CHECK_STATUS(get(&s, "/v1/workspaces/demo/sessions/none/messages"), 404);
}

TEST(a_call_that_needs_approval_waits_for_a_decision)
{
	static struct site s;
	const char *path, *target = "/v1/workspaces/demo/sessions/s%201/approvals";
	const struct jv *v;
	struct str body;

	start(&s);
	path = arena_printf(s.arena, "%s/ws/demo/agent.yaml", s.dir).ptr;
	write_file(path,
		   arena_printf(s.arena, "model: \"replay:%s/recording.jsonl\"\npolicy: {mode: interactive}\n", s.dir));
	v = json_of(&s, say(&s, NULL, "{\"text\":\"Write it\"}"));
	CHECK_INT(jv_count(jv_get(v, "waiting")), 1);
	CHECK_STATUS(get(&s, "/v1/workspaces/demo/files/a.md"), 404);
	v = jv_at(jv_get(json_of(&s, get(&s, target)), "approvals"), 0);
	CHECK_STR(jv_get_str(v, "name"), STR("write_file"));
	CHECK_STATUS(ask(&s, "POST", target, NULL, STR("{\"id\":\"x.1\",\"decision\":\"approve\"}")), 404);
	CHECK_STATUS(ask(&s, "POST", target, NULL, STR("{\"decision\":\"maybe\"}")), 400);
	body = arena_printf(s.arena, "{\"id\":\"%.*s\",\"decision\":\"approve\"}", STR_ARG(jv_get_str(v, "id")));
	CHECK_STATUS(ask(&s, "POST", target, NULL, body), 200);
	v = json_of(&s, say(&s, NULL, "{}"));
	CHECK_STR(jv_get_str(v, "answer"), STR("Done."));
	CHECK_STR(get(&s, "/v1/workspaces/demo/files/a.md").body, STR("hello"));
}

#define CALLS "/v1/workspaces/demo/sessions/s%201/calls"
#define WEATHER                                                                                                        \
	"{\"name\":\"weather\",\"description\":\"The weather of a city\",\"input_schema\":{\"type\":\"object\","       \
	"\"properties\":{\"city\":{\"type\":\"string\"}}}}"

TEST(a_client_answers_calls_of_its_own_tools)
{
	static struct site s;
	static struct wire w;
	struct str body = STR("{\"text\":\"Go\",\"tools\":[" WEATHER "]}");
	const struct jv *calls = NULL;

	start(&s);
	write_file(arena_printf(s.arena, "%s/recording.jsonl", s.dir).ptr,
		   STR("{\"type\":\"message\",\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"c1\","
		       "\"name\":\"weather\",\"input\":{\"city\":\"Oslo\"}}]}\n"
		       "{\"type\":\"message\",\"role\":\"assistant\",\"content\":\"It rains.\"}\n"));
	wire_open(&w, &s);
	wire_send(&w, arena_printf(s.arena,
				   "POST /v1/workspaces/demo/sessions/s%%201/messages HTTP/1.1\r\nHost: localhost\r\n"
				   "Content-Length: %zu\r\n\r\n%.*s",
				   body.len, STR_ARG(body)));
	while (!jv_count(calls))
		calls = jv_get(json_of(&s, get(&s, CALLS)), "calls");
	CHECK_STR(jv_get_str(jv_at(calls, 0), "name"), STR("weather"));
	CHECK_STR(jv_get_str(jv_get(jv_at(calls, 0), "input"), "city"), STR("Oslo"));
	CHECK_STATUS(ask(&s, "POST", CALLS, NULL, STR("{\"id\":\"x\",\"text\":\"rain\"}")), 404);
	CHECK_STATUS(ask(&s, "POST", CALLS, NULL, STR("{\"text\":\"rain\"}")), 400);
	body = arena_printf(s.arena, "{\"id\":\"%.*s\",\"text\":\"rain in Oslo\"}",
			    STR_ARG(jv_get_str(jv_at(calls, 0), "id")));
	CHECK_STATUS(ask(&s, "POST", CALLS, NULL, body), 204);
	CHECK_HAS(wire_read(&w, false).body, STR("\"output\":\"rain in Oslo\""));
	CHECK_STATUS(ask(&s, "POST", CALLS, NULL, body), 404); /* it has been answered */
}

TEST(tools_of_a_client_are_checked_before_the_turn)
{
	static struct site s;
	struct reply reply;

	start(&s);
	CHECK_STATUS(say(&s, NULL, "{\"text\":\"x\",\"tools\":{}}"), 400);
	CHECK_STATUS(say(&s, NULL, "{\"text\":\"x\",\"tools\":[{\"name\":\"a b\"}]}"), 400);
	reply = say(&s, NULL,
		    "{\"text\":\"x\",\"tools\":[" WEATHER
		    ",{\"name\":\"read_file\",\"description\":\"d\",\"input_schema\":{}},"
		    "{\"name\":\"grep\",\"description\":\"d\",\"input_schema\":{}}]}");
	CHECK_STATUS(reply, 409);
	CHECK_HAS(reply.body, STR("these names are reserved for tools of Stead: read_file, grep; use others"));
}

#define ADMIN "/v1/workspaces/demo/admin/sessions/s%201"

static const struct jv *act(struct site *s, const char *action)
{
	struct reply reply = ask(s, "POST", arena_printf(s->arena, "%s:%s", ADMIN, action).ptr, NULL, STR("{}"));

	CHECK_STATUS(reply, 200);
	return json_of(s, reply);
}

TEST(the_console_of_agentscope_finds_its_routes)
{
	static struct site s;
	const struct jv *v;

	start(&s);
	say(&s, NULL, "{\"text\":\"Write it\"}");
	v = json_of(&s, get(&s, "/v1/workspaces/demo/admin/sessions"));
	CHECK_STR(jv_get_str(jv_at(jv_get(v, "sessions"), 0), "session"), STR("s 1"));
	CHECK_STR(jv_get_str(json_of(&s, get(&s, ADMIN)), "session"), STR("s 1"));
	CHECK_STATUS(get(&s, "/v1/workspaces/demo/admin/sessions/none"), 404);
	v = json_of(&s, get(&s, ADMIN "/messages"));
	CHECK_STR(jv_get_str(jv_at(jv_get(v, "messages"), 0), "content"), STR("Write it"));
	CHECK_INT(jv_count(jv_get(json_of(&s, get(&s, ADMIN "/tasks")), "tasks")), 0);
	CHECK_INT(jv_count(jv_get(json_of(&s, get(&s, ADMIN "/subagent-tasks")), "tasks")), 0);
	CHECK_INT(jv_get_int(act(&s, "undo"), "changes", 0), 1);
	CHECK_STATUS(get(&s, "/v1/workspaces/demo/files/a.md"), 404);
	CHECK_INT(jv_get_int(act(&s, "redo"), "changes", 0), 1);
	CHECK_STR(get(&s, "/v1/workspaces/demo/files/a.md").body, STR("hello"));
	CHECK(jv_get_bool(act(&s, "enter-plan-mode"), "active", false));
	CHECK(jv_get_bool(json_of(&s, get(&s, ADMIN "/plan")), "active", false));
	CHECK(!jv_get_bool(act(&s, "exit-plan-mode"), "active", true));
	CHECK(!jv_get_bool(act(&s, "abort"), "aborted", true));
}

/* A model that takes requests and never answers. */
static int silent_model(uint16_t *ret_port)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof at;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(bind(fd, (struct sockaddr *)&at, sizeof at) == 0 && listen(fd, 8) == 0 &&
	      getsockname(fd, (struct sockaddr *)&at, &len) == 0);
	*ret_port = ntohs(at.sin_port);
	return fd;
}

TEST(abort_ends_a_turn_that_runs)
{
	static struct site s;
	static struct wire w;
	uint16_t port;
	int model = silent_model(&port), asked;

	site_start(&s, true);
	setenv("OPENAI_API_KEY", "none", 1);
	write_file(arena_printf(s.arena, "%s/ws/demo/agent.yaml", s.dir).ptr,
		   arena_printf(s.arena, "model:\n  provider: openai\n  model: m\n  base_url: http://127.0.0.1:%d\n",
				port));
	wire_open(&w, &s);
	wire_send(&w, STR("POST /v1/workspaces/demo/sessions/s%201/messages HTTP/1.1\r\nHost: localhost\r\n"
			  "Content-Length: 13\r\n\r\n{\"text\":\"Go\"}"));
	asked = accept(model, NULL, NULL); /* the turn runs, and waits */
	CHECK(asked >= 0);
	CHECK(jv_get_bool(act(&s, "abort"), "aborted", false));
	CHECK(wire_read(&w, false).status >= 400);
	CHECK(!jv_get_bool(act(&s, "abort"), "aborted", true));
	close(asked);
	close(model);
}

TEST(a_target_without_a_workspace_is_about_that_of_the_token)
{
	static struct site s;
	const char *token;

	site_start(&s, false);
	site_make_workspace(&s, "other");
	token = bearer(&s, site_token(&s, ACCESS_READ, "demo", NULL));
	CHECK_STATUS(ask(&s, "GET", "/v1/admin/sessions", token, STR_NONE), 200);
	CHECK_STATUS(ask(&s, "GET", "/v1/workspaces/-/files", token, STR_NONE), 200);
	token = bearer(&s, site_token(&s, ACCESS_READ, NULL, NULL));
	CHECK_STATUS(ask(&s, "GET", "/v1/admin/sessions", token, STR_NONE), 404); /* "default" */
}

TEST(a_token_that_only_reads_cannot_talk_to_the_agent)
{
	static struct site s;
	const char *token;

	site_start(&s, false);
	token = site_token(&s, ACCESS_READ, "demo", NULL);
	CHECK_STATUS(
		ask(&s, "POST", "/v1/workspaces/demo/sessions/s/messages", bearer(&s, token), STR("{\"text\":\"x\"}")),
		403);
}
