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

TEST(a_message_with_the_key_of_the_last_one_gets_its_answer_again)
{
	static const char key[] = "Idempotency-Key: 5f2c\r\n", other[] = "Idempotency-Key: 6a01\r\n";
	static struct site s;

	start(&s);
	for (int i = 0; i < 2; i++)
		CHECK_STR(jv_get_str(json_of(&s, say(&s, key, "{\"text\":\"Write it\"}")), "answer"), STR("Done."));
	CHECK_STR(jv_get_str(json_of(&s, say(&s, other, "{\"text\":\"Write it\"}")), "answer"), STR("Again."));
	CHECK_STATUS(say(&s, arena_printf(s.arena, "Idempotency-Key: %0300d\r\n", 1).ptr, "{\"text\":\"x\"}"), 400);
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

TEST(a_key_that_a_provider_lacks_is_not_the_token_of_the_client)
{
	static struct site s;
	struct reply reply;

	start(&s);
	write_file(arena_printf(s.arena, "%s/ws/demo/agent.yaml", s.dir).ptr, STR("model: \"anthropic:some\"\n"));
	unsetenv("ANTHROPIC_API_KEY");
	reply = say(&s, NULL, "{\"text\":\"x\"}");
	CHECK_STATUS(reply, 503);
	CHECK_HAS(reply.body, STR("anthropic needs a key"));
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
	CHECK(jv_get_bool(json_of(&s, say(&s, NULL, "{\"text\":\"Another\"}")), "unsaid", false));
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

TEST(a_conversation_of_another_agent_is_read_with_its_name)
{
	static struct site s;
	struct reply reply;

	site_start(&s, true);
	CHECK_STATUS(ask(&s, "POST", "/v1/workspaces/demo/tools/session_append", NULL,
			 STR("{\"session\":\"study\",\"agent\":\"scout\",\"entries\":[{\"type\":\"message\","
			     "\"role\":\"user\",\"content\":\"Look!\"}]}")),
		     200);
	reply = get(&s, "/v1/workspaces/demo/sessions/study/messages");
	CHECK_STATUS(reply, 404);
	CHECK_HAS(jv_get_str(json_of(&s, reply), "detail"), STR("there is study of the agent scout"));
	CHECK_HAS(get(&s, "/v1/workspaces/demo/sessions/study/messages?agent=scout").body, STR("Look!"));
	CHECK_HAS(get(&s, "/v1/workspaces/demo/admin/sessions/study/messages?agent=scout").body, STR("Look!"));
	CHECK_STR(jv_get_str(json_of(&s, get(&s, "/v1/workspaces/demo/admin/sessions/study?agent=scout")), "agent"),
		  STR("scout"));
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

TEST(abort_ends_a_turn_that_runs)
{
	static struct site s;
	static struct wire w;
	int model, asked;

	site_start(&s, true);
	model = silent_model(&s);
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

TEST(abort_ends_a_turn_that_another_server_runs)
{
	static struct site s, other;
	static struct wire w;
	int model, asked;

	site_start(&s, true);
	site_join(&other, &s);
	model = silent_model(&s);
	wire_open(&w, &s);
	wire_send(&w, STR("POST /v1/workspaces/demo/sessions/s%201/messages HTTP/1.1\r\nHost: localhost\r\n"
			  "Content-Length: 13\r\n\r\n{\"text\":\"Go\"}"));
	asked = accept(model, NULL, NULL);
	CHECK(asked >= 0);
	CHECK(jv_get_bool(act(&other, "abort"), "aborted", false));
	CHECK(wire_read(&w, false).status >= 400);
	CHECK(!jv_get_bool(act(&other, "abort"), "aborted", true));
	close(asked);
	close(model);
}

#define REPLAY "/v1/workspaces/demo/sessions/s%201/replay"

static struct reply replay(struct site *s, const char *headers, struct str body)
{
	return ask(s, "POST", REPLAY, headers, body);
}

/* A conversation with two steps, and a second model that agent.yaml names, which does something else. */
static void start_with_two_models(struct site *s, bool is_open)
{
	const char *dir;

	site_start(s, is_open);
	dir = s->dir;
	write_file(arena_printf(s->arena, "%s/recording.jsonl", dir).ptr, STR(RECORDING));
	write_file(arena_printf(s->arena, "%s/other.jsonl", dir).ptr,
		   STR("{\"type\":\"message\",\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"c9\","
		       "\"name\":\"write_file\",\"input\":{\"path\":\"a.md\",\"content\":\"bye\"}}]}\n"
		       "{\"type\":\"message\",\"role\":\"assistant\",\"content\":\"Gone.\","
		       "\"usage\":{\"input_tokens\":1000000,\"output_tokens\":7}}\n"));
	write_file(arena_printf(s->arena, "%s/ws/demo/agent.yaml", dir).ptr,
		   arena_printf(s->arena,
				"model:\n  provider: replay\n  model: \"%s/recording.jsonl\"\n"
				"  fallback: [{model: \"replay:%s/other.jsonl\", price: {input: 3}}]\n",
				dir, dir));
}

static struct str other_model(struct site *s, const char *more)
{
	return arena_printf(s->arena, "{\"model\":\"replay:%s/other.jsonl\"%s}", s->dir, more);
}

static bool has_replays(struct site *s)
{
	return str_find(get(s, "/v1/workspaces").body, STR("-replay-"), 0) != SIZE_MAX;
}

TEST(a_replay_with_nothing_changed_is_the_same_in_a_fork)
{
	static struct site s;
	const struct jv *v;
	const char *file;

	start(&s);
	say(&s, NULL, "{\"text\":\"Write it\"}");
	v = json_of(&s, replay(&s, NULL, STR("{\"from\":1}")));
	CHECK(jv_get_bool(v, "same", false));
	CHECK_STR(jv_get_str(v, "session"), STR("s 1"));
	CHECK_STR(jv_get_str(v, "model"), STR("recorded"));
	CHECK_INT(jv_count(jv_get(v, "steps")), 2);
	CHECK_INT(jv_count(jv_get(v, "files")), 0);
	file = arena_printf(s.arena, "/v1/workspaces/%.*s/files/a.md", STR_ARG(jv_get_str(v, "fork"))).ptr;
	CHECK_STR(get(&s, file).body, STR("hello"));
}

TEST(a_replay_with_another_model_says_what_differs_and_what_it_costs)
{
	static struct site s;
	const struct jv *v, *step;

	start_with_two_models(&s, true);
	say(&s, NULL, "{\"text\":\"Write it\"}");
	v = json_of(&s, replay(&s, NULL, other_model(&s, "")));
	CHECK(!jv_get_bool(v, "same", true));
	CHECK_STR(jv_str_of(jv_at(jv_get(v, "files"), 0)), STR("a.md"));
	step = jv_at(jv_get(v, "steps"), 1);
	CHECK_STR(jv_get_str(jv_get(step, "before"), "text"), STR("Done."));
	CHECK_STR(jv_get_str(jv_get(step, "after"), "text"), STR("Gone."));
	CHECK_INT(jv_get_int(jv_get(v, "usage_after"), "output_tokens", 0), 7);
	CHECK_INT((int64_t)jv_get(jv_get(v, "usage_after"), "cost_usd")->u.d, 3); /* a price of agent.yaml */
	CHECK_STR(get(&s, "/v1/workspaces/demo/files/a.md").body, STR("hello"));
}

TEST(a_replay_with_a_changed_result_goes_on_after_it)
{
	static struct site s;
	const struct jv *v;
	const char *messages;

	start(&s);
	say(&s, NULL, "{\"text\":\"Write it\"}");
	v = json_of(&s, replay(&s, NULL, STR("{\"set_result\":{\"1\":\"no room left\"}}")));
	CHECK_INT(jv_get_int(v, "from", 0), 2);
	messages = arena_printf(s.arena, "/v1/workspaces/%.*s/sessions/s%%201/messages?limit=100",
				STR_ARG(jv_get_str(v, "fork")))
			   .ptr;
	CHECK_HAS(get(&s, messages).body, STR("no room left"));
	CHECK(str_find(get(&s, "/v1/workspaces/demo/sessions/s%201/messages?limit=100").body, STR("no room left"), 0) ==
	      SIZE_MAX);
}

TEST(a_replay_that_stops_at_an_approval_says_so)
{
	static struct site s;
	const char *path;
	const struct jv *v;

	start(&s);
	path = arena_printf(s.arena, "%s/ws/demo/agent.yaml", s.dir).ptr;
	write_file(path, arena_printf(s.arena,
				      "model: \"replay:%s/recording.jsonl\"\n"
				      "policy: {rules: [{id: care, effect: ask, tool: write_file}]}\n",
				      s.dir));
	say(&s, NULL, "{\"text\":\"Write it\"}");
	v = json_of(&s, replay(&s, NULL, STR("{}")));
	CHECK_STR(jv_get_str(jv_at(jv_get(v, "waiting"), 0), "name"), STR("write_file"));
	CHECK_STR(jv_get_str(jv_at(jv_get(v, "waiting"), 0), "rule"), STR("care")); /* the fork's own copy is gone */
}

TEST(a_wrong_replay_is_refused_before_anything_is_forked)
{
	static const char *const bad[] = {
		"{\"from\":0}",
		"{\"from\":\"1\"}",
		"{\"prompt\":1}",
		"{\"base_url\":\"http://127.0.0.1:1\"}",
		"{\"model\":\"nothing\"}",
		"{\"set_result\":[]}",
		"{\"set_result\":{\"x\":\"y\"}}",
		"{\"set_result\":{\"1\":1}}",
		"{\"from\":1,\"set_result\":{\"1\":\"y\"}}",
	};
	static struct site s;

	start(&s);
	say(&s, NULL, "{\"text\":\"Write it\"}");
	for (size_t i = 0; i < COUNT(bad); i++)
		CHECK_STATUS(replay(&s, NULL, str_of(bad[i])), 400);
	CHECK_STATUS(replay(&s, NULL, STR("{\"from\":9}")), 404);
	CHECK_STATUS(replay(&s, NULL, STR("{\"model\":\"replay:/etc/hostname\"}")), 403);
	CHECK_STATUS(ask(&s, "POST", "/v1/workspaces/demo/sessions/none/replay", NULL, STR("{}")), 404);
	CHECK(!has_replays(&s));
	CHECK_STATUS(replay(&s, NULL, STR("{\"set_result\":{\"1.7\":\"y\"}}")), 404); /* known when the log is read */
	CHECK(!has_replays(&s));
}

TEST(a_token_that_writes_replays_with_models_of_agent_yaml_and_one_that_reads_does_not)
{
	static struct site s;
	const char *reads, *writes, *target = "/v1/workspaces/demo/sessions/s%201/messages";
	const struct jv *v;

	start_with_two_models(&s, false);
	reads = bearer(&s, site_token(&s, ACCESS_READ, "demo", NULL));
	writes = bearer(&s, site_token(&s, ACCESS_WRITE, "demo", "ada"));
	CHECK_STATUS(ask(&s, "POST", target, writes, STR("{\"text\":\"Write it\"}")), 200);
	CHECK_STATUS(replay(&s, reads, STR("{}")), 403);
	CHECK_STATUS(replay(&s, writes, STR("{\"model\":\"openai:gpt-4.1\"}")), 403);
	v = json_of(&s, replay(&s, writes, STR("{}")));
	CHECK(jv_get_bool(v, "same", false));
	v = json_of(&s, replay(&s, writes, other_model(&s, "")));
	CHECK(!jv_get_bool(v, "same", true));
}

TEST(a_replay_ends_and_leaves_nothing_when_its_client_goes)
{
	static struct site s;
	static struct wire w;
	char bytes[4096];
	int model, asked;
	ssize_t n;

	start(&s);
	say(&s, NULL, "{\"text\":\"Write it\"}");
	CHECK(!has_replays(&s));
	model = silent_model(&s);
	wire_open(&w, &s);
	wire_send(&w, STR("POST " REPLAY " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 14\r\n\r\n"
			  "{\"prompt\":\"p\"}"));
	asked = accept(model, NULL, NULL); /* it runs, and waits */
	CHECK(asked >= 0 && has_replays(&s));
	wire_close(&w);
	while ((n = recv(asked, bytes, sizeof(bytes), 0)) > 0)
		;
	CHECK_INT(n, 0); /* it has hung up */
	while (has_replays(&s))
		;
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
