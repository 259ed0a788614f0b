/* SPDX-License-Identifier: Apache-2.0 */
/* The loop over a recorded model: turns, tool calls, limits, and what is left of a turn that failed. */
#include "agent/agent_fix.h"
#include "model/stub.h"

TEST(an_answer_ends_the_turn_and_is_in_the_log)
{
	const char *const answers[] = {"'Hello.'", NULL};
	struct agent_result result;
	struct bench b;
	struct err err;

	bench_open(&b, "");
	CHECK_OK(say(&b, recording(b.arena, answers), "Hi", &result, &err), err);
	CHECK_STR(result.answer, STR("Hello."));
	CHECK_INT(result.model_calls, 1);
	CHECK_INT(count_entries(&b, "message"), 2);
	CHECK_INT(count_entries(&b, "turn"), 1);
}

TEST(calls_run_in_order_and_their_results_go_to_the_model)
{
	const char *const answers[] = {
		"[" CALL("a", "write_file", "{'path':'x','content':'1'}") "," CALL(
			"b", "append_file", "{'path':'x','content':'2'}") "," CALL("c", "read_file",
										   "{'path':'x'}") "]",
		"'done'", NULL};
	struct agent_result result;
	const struct jv *calls;
	struct bench b;
	struct err err;

	bench_open(&b, "");
	CHECK_OK(say(&b, recording(b.arena, answers), "Go", &result, &err), err);
	calls = jv_get(jv_at(result.steps, 0), "calls");
	CHECK_INT(jv_count(calls), 3);
	CHECK_STR(jv_get_str(jv_at(calls, 2), "output"), STR("12"));
	CHECK_STR(content_of(&b, "x"), STR("12"));
	CHECK_INT(result.usage.input, 20);
}

TEST(reading_calls_that_follow_each_other_run_together)
{
	struct agent_result result;
	struct bench b;
	struct err err;
	struct buf answer;
	const char *answers[] = {NULL, "'done'", NULL};

	bench_open(&b, "");
	put(&b, "x", STR("text"));
	buf_init(&answer, b.arena, 10000);
	for (int i = 0; i < 20; i++)
		buf_printf(&answer, "%s" CALL("c%d", "read_file", "{'path':'x'}"), i ? "," : "[", i);
	buf_lit(&answer, "]");
	answers[0] = arena_cstr(b.arena, buf_str(&answer));
	CHECK_OK(say(&b, recording(b.arena, answers), "Go", &result, &err), err);
	CHECK_INT(count_entries(&b, "tool_result"), 20);
	for (const struct jv_member *m = jv_first(jv_get(jv_at(result.steps, 0), "calls")); m; m = m->next)
		CHECK_STR(jv_get_str(m->value, "output"), STR("text"));
}

TEST(a_tool_that_is_denied_or_unknown_is_an_error_for_the_model)
{
	const char *const answers[] = {"[" CALL("a", "clear_files", "{}") "," CALL("b", "nonsense", "{}") "," CALL(
					       "c", "session_append", "{'session':'s','entries':[]}") "]",
				       "'done'", NULL};
	struct agent_result result;
	struct bench b;
	struct err err;

	bench_open_disk(&b, "");
	CHECK_OK(store_write(workspace_home(b.ws), &b.ctx, (struct wpath){STR("agent.yaml")},
			     STR("tools:\n  deny: [clear_files]\n"), (struct store_cond){0}, NULL, &err),
		 err);
	bench_reopen(&b, (struct workspace_opts){0}, "");
	CHECK_OK(say(&b, recording(b.arena, answers), "Go", &result, &err), err);
	for (const struct jv_member *m = jv_first(jv_get(jv_at(result.steps, 0), "calls")); m; m = m->next) {
		CHECK(jv_get_bool(m->value, "is_error", false));
		CHECK_STARTS(jv_get_str(m->value, "output"), STR("there is no tool"));
	}
	CHECK_INT(count_entries(&b, "tool_use"), 0);
}

static void set_config(struct bench *b, const char *text)
{
	struct err err;

	CHECK_OK(store_write(workspace_home(b->ws), &b->ctx, (struct wpath){STR("agent.yaml")}, str_of(text),
			     (struct store_cond){0}, NULL, &err),
		 err);
	bench_reopen(b, (struct workspace_opts){0}, "");
}

TEST(a_turn_that_calls_the_model_too_often_is_closed)
{
	const char *const answers[] = {"[" CALL("a", "ls", "{}") "]", "[" CALL("b", "ls", "{}") "]", "'late'", NULL};
	struct agent_result result;
	struct bench b;
	struct err err;
	struct str model;

	bench_open_disk(&b, "");
	model = recording(b.arena, answers);
	set_config(&b, arena_printf(b.arena, "model:\n  model: \"%.*s\"\n  max_turns: 2\n", STR_ARG(model)).ptr);
	CHECK_ERR(say(&b, STR_NONE, "Go", &result, &err), err, ERR_QUOTA);
	CHECK_INT(count_entries(&b, "turn"), 1);
	CHECK_OK(say(&b, STR_NONE, "And now?", &result, &err), err);
	CHECK_STR(result.answer, STR("late"));
}

TEST(a_turn_that_failed_goes_on_where_it_was)
{
	const char *const one[] = {"[" CALL("a", "append_file", "{'path':'x','content':'1'}") "]", NULL};
	const char *const two[] = {"'done'", NULL};
	struct agent_result result;
	struct bench b;
	struct err err;

	bench_open(&b, "");
	CHECK_ERR(say(&b, recording(b.arena, one), "Go", &result, &err), err, ERR_NOT_FOUND);
	CHECK_OK(say(&b, recording(b.arena, two), "Go", &result, &err), err);
	CHECK(result.resumed);
	CHECK_STR(result.answer, STR("done"));
	CHECK_STR(content_of(&b, "x"), STR("1"));
	CHECK_INT(count_entries(&b, "message"), 3);
}

TEST(another_text_finishes_the_open_turn_first)
{
	const char *const one[] = {"[" CALL("a", "ls", "{}") "]", NULL};
	const char *const two[] = {"'first'", "'second'", NULL};
	struct agent_result result;
	struct bench b;
	struct err err;

	bench_open(&b, "");
	CHECK_ERR(say(&b, recording(b.arena, one), "One", &result, &err), err, ERR_NOT_FOUND);
	CHECK_OK(say(&b, recording(b.arena, two), "Two", &result, &err), err);
	CHECK_STR(result.answer, STR("second"));
	CHECK_INT(result.model_calls, 1);
	CHECK_INT(count_entries(&b, "turn"), 2);
}

struct given {
	struct bench *bench;
	struct str answer;
	size_t times, closed; /* closed: turns that were, when the answer came */
};

static void take_answer(void *arg, const struct agent_result *result)
{
	struct given *given = arg;

	given->answer = arena_str(given->bench->arena, result->answer);
	given->closed = count_entries(given->bench, "turn");
	given->times++;
}

static void say_as(struct bench *b, struct str model, struct agent_turn turn, struct agent_result *ret)
{
	struct agent_opts opts = {.model = model};
	struct agent *agent;
	struct err err;

	turn.session = STR("s");
	CHECK_OK(agent_open(b->ws, &opts, &agent, &err), err);
	CHECK_OK(agent_run(agent, &b->ctx, &turn, ret, &err), err);
	agent_close(agent);
}

TEST(an_answer_is_given_before_its_turn_is_closed)
{
	const char *const answers[] = {"'one'", NULL};
	struct agent_result result;
	struct bench b;
	struct given given = {.bench = &b};

	bench_open(&b, "");
	say_as(&b, recording(b.arena, answers),
	       (struct agent_turn){.text = STR("Go"), .answered = take_answer, .arg = &given}, &result);
	CHECK_STR(given.answer, STR("one"));
	CHECK_INT((int)given.closed, 0);
	CHECK_INT(count_entries(&b, "turn"), 1);
}

TEST(a_turn_that_is_finished_first_gives_no_answer_of_its_own)
{
	const char *const one[] = {"[" CALL("a", "ls", "{}") "]", NULL};
	const char *const two[] = {"'first'", "'second'", NULL};
	struct agent_result result;
	struct bench b;
	struct given given = {.bench = &b};
	struct err err;

	bench_open(&b, "");
	CHECK_ERR(say(&b, recording(b.arena, one), "One", &result, &err), err, ERR_NOT_FOUND);
	say_as(&b, recording(b.arena, two),
	       (struct agent_turn){.text = STR("Two"), .answered = take_answer, .arg = &given}, &result);
	CHECK_STR(given.answer, STR("second"));
	CHECK_INT((int)given.times, 1);
}

TEST(a_message_with_the_key_of_the_last_turn_is_not_asked_again)
{
	const char *const answers[] = {"'one'", "'two'", "'three'", NULL};
	static const struct {
		const char *key, *answer;
	} messages[] = {{"k1", "one"}, {"k1", "one"}, {"k2", "two"}, {"k2", "two"}, {"", "three"}};
	struct agent_result result;
	struct bench b;
	struct str model;

	bench_open(&b, "");
	model = recording(b.arena, answers);
	for (size_t i = 0; i < COUNT(messages); i++) {
		say_as(&b, model, (struct agent_turn){.text = STR("Go"), .key = str_of(messages[i].key)}, &result);
		CHECK_STR(result.answer, str_of(messages[i].answer));
	}
}

TEST(an_open_turn_of_another_key_is_finished_before_the_same_text_is_asked)
{
	const char *const one[] = {"[" CALL("a", "ls", "{}") "]", NULL};
	const char *const two[] = {"'first'", "'second'", NULL};
	struct agent_opts opts = {0};
	struct agent_turn turn = {.session = STR("s"), .text = STR("Go"), .key = STR("k1")};
	struct agent_result result;
	struct agent *agent;
	struct bench b;
	struct err err;

	bench_open(&b, "");
	opts.model = recording(b.arena, one);
	CHECK_OK(agent_open(b.ws, &opts, &agent, &err), err);
	CHECK_ERR(agent_run(agent, &b.ctx, &turn, &result, &err), err, ERR_NOT_FOUND);
	agent_close(agent);
	turn.key = STR("k2");
	say_as(&b, recording(b.arena, two), turn, &result);
	CHECK_STR(result.answer, STR("second"));
}

TEST(without_a_text_the_last_answer_is_given_and_nothing_is_asked)
{
	const char *const answers[] = {"'Hello.'", NULL};
	struct agent_result result;
	struct bench b;
	struct err err;
	struct str model;

	bench_open(&b, "");
	model = recording(b.arena, answers);
	CHECK_ERR(say(&b, model, "", &result, &err), err, ERR_NOT_FOUND);
	CHECK_OK(say(&b, model, "Hi", &result, &err), err);
	CHECK_OK(say(&b, model, "", &result, &err), err);
	CHECK_STR(result.answer, STR("Hello."));
	CHECK(!result.resumed);
}

TEST(a_key_in_agent_yaml_is_refused_and_one_from_env_is_not_shown)
{
	struct agent_opts opts = {0};
	struct agent *agent;
	struct bench b;
	struct err err;

	bench_open_disk(&b, "");
	set_config(&b, "model:\n  model: openai:x\n  base_url: http://127.0.0.1:1\n  api_key: sk-written-here\n");
	CHECK_ERR(agent_open(b.ws, &opts, &agent, &err), err, ERR_INVALID);
	CHECK_LACKS(str_of(err.msg), STR("sk-written"));
	set_config(&b, "model: openai:x\n");
	unsetenv("OPENAI_API_KEY");
	CHECK_ERR(agent_open(b.ws, &opts, &agent, &err), err, ERR_UNAUTHENTICATED);
	CHECK_HAS(str_of(err.msg), STR("OPENAI_API_KEY"));
}

TEST(tokens_are_counted_once_for_a_turn)
{
	const char *const answers[] = {"'a'", "'b'", NULL};
	struct agent_result result;
	struct jv *sum;
	struct bench b;
	struct err err;
	struct str model;

	bench_open(&b, "");
	model = recording(b.arena, answers);
	CHECK_OK(say(&b, model, "1", &result, &err), err);
	CHECK_OK(say(&b, model, "2", &result, &err), err);
	CHECK_OK(usage_sum(b.ws, &b.ctx, STR_NONE, 0, &sum, &err), err);
	CHECK_INT(jv_get_int(sum, "input_tokens", 0), 20);
	CHECK_INT(jv_get_int(sum, "llm_calls", 0), 2);
}

#define CHAT_ANSWER STUB_STREAM "data: {\"choices\":[{\"delta\":{\"content\":\"ok\"},\"finish_reason\":\"stop\"}]}\n\n"

TEST(what_agent_yaml_says_of_the_model_reaches_the_server)
{
	const char *const answers[] = {CHAT_ANSWER, NULL};
	struct stub *stub = stub_start(answers);
	struct agent_result result;
	struct bench b;
	struct err err;
	struct str sent;

	bench_open_disk(&b, "");
	CHECK_OK(store_write(workspace_home(b.ws), &b.ctx, (struct wpath){STR(".env")}, STR("MY_KEY=sk-from-env\n"),
			     (struct store_cond){0}, NULL, &err),
		 err);
	set_config(&b, arena_printf(b.arena,
				    "model:\n  provider: openai\n  model: some-model\n  api_key: ${MY_KEY}\n"
				    "  base_url: %s\n  temperature: 0.5\n  top_p: 0.25\n  max_tokens: 77\n"
				    "  options: {service_tier: auto}\n",
				    stub->url)
			       .ptr);
	CHECK_OK(say(&b, STR_NONE, "Hi", &result, &err), err);
	stub_join(stub);
	sent = buf_str(&stub->requests[0]);
	CHECK_HAS(sent, STR("authorization: Bearer sk-from-env"));
	CHECK_HAS(sent, STR("\"model\":\"some-model\",\"stream\":true,\"temperature\":0.5,\"top_p\":0.25,"
			    "\"service_tier\":\"auto\""));
	CHECK_HAS(sent, STR("\"max_tokens\":77"));
	CHECK_STR(result.model, STR("openai:some-model"));
}

TEST(a_model_sees_the_picture_that_it_reads_and_one_that_refuses_pictures_gets_the_text)
{
	const char *const answers[] = {
		STUB_STREAM
		"data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":"
		"\"read_file\",\"arguments\":\"{\\\"path\\\":\\\"p.png\\\"}\"}}]},\"finish_reason\":\"tool_calls\"}]}"
		"\n\n",
		"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}", CHAT_ANSWER, NULL};
	struct stub *stub = stub_start(answers);
	struct agent_result result;
	struct bench b;
	struct err err;

	bench_open_disk(&b, "");
	set_config(&b, arena_printf(b.arena, "model: {model: 'openai:m', base_url: '%s'}\n", stub->url).ptr);
	put(&b, "p.png", STR("\x89PNG\r\n\x1a\n123"));
	CHECK_OK(say(&b, STR_NONE, "Look", &result, &err), err);
	stub_join(stub);
	CHECK_STR(result.answer, STR("ok"));
	CHECK_HAS(buf_str(&stub->requests[1]), STR("{\"url\":\"data:image/png;base64,iVBORw0KGgoxMjM=\"}"));
	CHECK(str_find(buf_str(&stub->requests[2]), STR("base64,"), 0) == SIZE_MAX);
}

TEST(a_turn_ends_by_its_time_limit)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(at);
	int silent = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); /* takes connections and says nothing */
	struct agent_result result;
	struct bench b;
	struct err err;

	CHECK(bind(silent, (struct sockaddr *)&at, sizeof(at)) == 0 && listen(silent, 4) == 0);
	CHECK(getsockname(silent, (struct sockaddr *)&at, &len) == 0);
	bench_open_disk(&b, "");
	set_config(&b,
		   arena_printf(b.arena,
				"model: {model: 'openai:m', base_url: 'http://127.0.0.1:%d', timeout_seconds: 0.1}\n",
				ntohs(at.sin_port))
			   .ptr);
	CHECK_ERR(say(&b, STR_NONE, "Hi", &result, &err), err, ERR_TIMEOUT);
	CHECK_HAS(str_of(err.msg), STR("longer than the 0.1 s of model.timeout_seconds"));
	CHECK(err.retryable);
	close(silent);
	CHECK_INT(count_entries(&b, "turn"), 0); /* it is open, and goes on later */
}

/* A log whose last answer asked for `count` calls, of which the first was begun; `more` entries follow. */
static void write_log(struct bench *b, size_t count, const char *more)
{
	static const char *const head =
		"[{'type':'message','turn':'t','role':'user','content':'Go'},"
		"{'type':'request','turn':'t','step':1,'model':'m','revision':0},"
		"{'type':'message','id':'answer','turn':'t','role':'assistant','step':1,'content':[";
	struct jv *entries, *written;
	struct buf text;
	struct err err;

	buf_init(&text, b->arena, (size_t)1 << 20);
	buf_add(&text, str_of(head));
	for (size_t i = 0; i < count; i++)
		buf_printf(&text, "%s{'type':'tool_use','id':'c%zu','name':'weather','input':{}}", i ? "," : "", i);
	buf_printf(&text, "]},{'type':'tool_use','turn':'t','toolCallId':'c0','name':'weather','call':'answer.1'}%s]",
		   more);
	CHECK_OK(jv_parse(b->arena, quoted(b->arena, arena_cstr(b->arena, buf_str(&text))), &entries, &err), err);
	CHECK_OK(session_append_all(b->ws, &b->ctx, (struct session_ref){.session = STR("s")}, entries, &written, &err),
		 err);
}

TEST(a_call_that_was_begun_by_a_tool_that_is_gone_has_an_unknown_outcome)
{
	static const char *const answers[] = {"'done'", NULL};
	struct agent_result result;
	const struct jv *calls;
	struct bench b;
	struct err err;

	bench_open_disk(&b, "");
	write_log(&b, 2, "");
	CHECK_OK(say(&b, recording(b.arena, answers), "Go", &result, &err), err);
	calls = jv_get(jv_at(result.steps, 0), "calls");
	CHECK_STARTS(jv_get_str(jv_at(calls, 0), "output"), STR("the outcome is unknown"));
	CHECK_STARTS(jv_get_str(jv_at(calls, 1), "output"), STR("there is no tool \"weather\""));
}

TEST(the_model_learns_why_calls_of_a_turn_that_was_ended_have_no_result)
{
	const char *answers[] = {STUB_STREAM "data: {\"choices\":[{\"delta\":{\"content\":\"ok\"},"
					     "\"finish_reason\":\"stop\"}]}\n\n",
				 NULL};
	struct stub *stub = stub_start(answers);
	struct agent_result result;
	struct bench b;
	struct err err;
	struct str sent;

	bench_open_disk(&b, "");
	set_config(&b, arena_printf(b.arena, "model: {model: 'openai:m', base_url: '%s'}\n", stub->url).ptr);
	write_log(&b, 130, ",{'type':'turn','turn':'t','status':'dropped'}");
	CHECK_OK(say(&b, STR_NONE, "Hi", &result, &err), err);
	stub_join(stub);
	sent = buf_str(&stub->requests[0]);
	CHECK_HAS(sent, STR("\"tool_call_id\":\"c0\",\"content\":\"the outcome is unknown"));
	CHECK_HAS(sent, STR("\"tool_call_id\":\"c1\",\"content\":\"this call was not made: the turn had ended\""));
	CHECK_HAS(sent,
		  STR("\"tool_call_id\":\"c129\",\"content\":\"this call was not made: one answer may have at most 128 "
		      "calls; ask for it again\""));
}

/* What the server may keep: everything up to the first class of the prompt that changes with a turn. */
static struct str stable(struct stub *stub, size_t index)
{
	struct str body = buf_str(&stub->requests[index]);
	size_t from = str_find(body, STR("{\"model\""), 0);
	size_t to = str_find(body, STR("cache_control"), 0);

	CHECK(from != SIZE_MAX && to != SIZE_MAX);
	return str_n(body.ptr + from, to - from);
}

#define ANTHROPIC_ANSWER                                                                                               \
	STUB_STREAM "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{}}\n\n"                      \
		    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,"                 \
		    "\"content_block\":{\"type\":\"text\",\"text\":\"ok\"}}\n\n"                                       \
		    "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"

TEST(the_stable_prefix_is_the_same_bytes_over_50_turns_with_writes)
{
	const char *answers[51] = {NULL};
	struct agent_result result;
	struct stub *stub;
	struct bench b;
	struct err err;

	for (size_t i = 0; i < 50; i++)
		answers[i] = ANTHROPIC_ANSWER;
	stub = stub_start(answers);
	bench_open_disk(&b, "");
	set_config(&b, arena_printf(b.arena, "model: {model: 'anthropic:m', base_url: '%s'}\n", stub->url).ptr);
	for (int i = 0; i < 50; i++) {
		good(&b, "note", arena_printf(b.arena, "{'title':'Note %d','content':'x'}", i).ptr);
		good(&b, "write_file", arena_printf(b.arena, "{'path':'f%d','content':'x'}", i).ptr);
		CHECK_OK(say(&b, STR_NONE, "Hi", &result, &err), err);
	}
	stub_join(stub);
	CHECK(stable(stub, 0).len > 1000);
	for (size_t i = 1; i < 50; i++)
		CHECK_STR(stable(stub, i), stable(stub, 0));
}
