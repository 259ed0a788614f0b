/* SPDX-License-Identifier: Apache-2.0 */
/* The three protocols against a server whose answers are fixed: what is sent, what is understood, what is retried. */
#include "model/model.h"

#include <math.h>

#include "base/clock.h"
#include "model/stub.h"
#include "net/sse.h"

struct fix {
	struct ctx ctx;
	struct model *model;
	struct stub *stub;
	struct model_answer answer;
	struct err err;
	struct buf shown;
};

#define KEY "sk-secret-0123456789"

static void show(void *arg, enum model_delta kind, struct str text)
{
	struct fix *f = arg;

	buf_printf(&f->shown, "%s%.*s",
		   kind == MODEL_AGAIN      ? "<again>"
		   : kind == MODEL_THINKING ? "~"
					    : "",
		   STR_ARG(kind == MODEL_AGAIN ? STR("") : text));
}

static void fix_open(struct fix *f, const char *provider, const char *const *answers)
{
	struct model_settings set = {.provider = str_of(provider),
				     .name = STR("m"),
				     .api_key = STR(KEY),
				     .temperature = NAN,
				     .top_p = NAN,
				     .retries = 2,
				     .pause_ms = 1};

	*f = (struct fix){.ctx.arena = arena_new()};
	test_defer(arena_destroy, f->ctx.arena);
	buf_init(&f->shown, f->ctx.arena, (size_t)1 << 20);
	f->stub = stub_start(answers);
	set.base_url = str_of(f->stub->url);
	CHECK_OK(model_open(&set, &f->model, &f->err), f->err);
	test_defer(model_close, f->model);
}

static int ask_with(struct fix *f, const char *messages)
{
	struct str system[] = {STR("static. "), STR("session.")};
	struct jv *schema, *list;
	struct model_request req = {.system = system, .system_count = 2, .delta = show, .arg = f};
	struct model_tool tool = {STR("read_file"), STR("Reads."), NULL};

	CHECK_OK(jv_parse(f->ctx.arena, STR("{\"type\":\"object\"}"), &schema, &f->err), f->err);
	CHECK_OK(jv_parse(f->ctx.arena, str_of(messages), &list, &f->err), f->err);
	tool.schema = schema;
	req.tools = model_tools(f->model, f->ctx.arena, &tool, 1);
	req.messages = list;
	return model_ask(f->model, &f->ctx, &req, &f->answer, &f->err);
}

#define HELLO "[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"hello\"}]}]"
#define TOOLS                                                                                                          \
	"[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"hello\"}]},"                                   \
	"{\"role\":\"assistant\",\"wire\":\"anthropic\",\"content\":["                                                 \
	"{\"type\":\"thinking\",\"thinking\":\"hm\",\"signature\":\"sig\"},"                                           \
	"{\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"read_file\",\"input\":{\"path\":\"a\"}}]},"                   \
	"{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"t1\",\"content\":\"text\"}]}]"

static struct str json(struct fix *f, const struct jv *v)
{
	struct buf b;

	buf_init(&b, f->ctx.arena, (size_t)1 << 20);
	jv_write(&b, v);
	return buf_str(&b);
}

static struct str request(struct fix *f, size_t index)
{
	stub_join(f->stub);
	CHECK(index < f->stub->count);
	return buf_str(&f->stub->requests[index]);
}

#define A_START                                                                                                        \
	"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"usage\":{"            \
	"\"input_tokens\":5,\"cache_read_input_tokens\":100,\"output_tokens\":1}}}\n\n"
#define A_TEXT                                                                                                         \
	"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":"           \
	"{\"type\":\"text\",\"text\":\"\"}}\n\n"                                                                       \
	"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":"                   \
	"{\"type\":\"text_delta\",\"text\":\"Hi\"}}\n\n"                                                               \
	"event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n"
#define A_END                                                                                                          \
	"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},"            \
	"\"usage\":{\"output_tokens\":7}}\n\n"                                                                         \
	"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
#define A_WHOLE STUB_STREAM A_START A_TEXT A_END
#define A_CALL                                                                                                         \
	"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":"           \
	"{\"type\":\"tool_use\",\"id\":\"t9\",\"name\":\"read_file\",\"input\":{}}}\n\n"                               \
	"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":"                   \
	"{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"path\\\":\"}}\n\n"                                     \
	"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":"                   \
	"{\"type\":\"input_json_delta\",\"partial_json\":\"\\\"a\\\"}\"}}\n\n"

TEST(anthropic_text_and_usage_are_understood)
{
	const char *const answers[] = {A_WHOLE, NULL};
	struct fix f;

	fix_open(&f, "anthropic", answers);
	CHECK_OK(ask_with(&f, HELLO), f.err);
	CHECK_STR(json(&f, f.answer.content), STR("[{\"type\":\"text\",\"text\":\"Hi\"}]"));
	CHECK_STR(buf_str(&f.shown), STR("Hi"));
	CHECK_INT(f.answer.usage.input, 105);
	CHECK_INT(f.answer.usage.output, 7);
	CHECK_HAS(request(&f, 0), STR("POST /v1/messages "));
	CHECK_HAS(request(&f, 0), STR("x-api-key: " KEY));
}

TEST(anthropic_gets_signed_thinking_back_and_openai_does_not)
{
	const char *const anthropic[] = {A_WHOLE, NULL};
	const char *const chat[] = {STUB_STREAM "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"},"
						"\"finish_reason\":\"stop\"}]}\n\n",
				    NULL};
	struct fix f;

	fix_open(&f, "anthropic", anthropic);
	CHECK_OK(ask_with(&f, TOOLS), f.err);
	CHECK_HAS(request(&f, 0), STR("{\"type\":\"thinking\",\"thinking\":\"hm\",\"signature\":\"sig\"}"));
	fix_open(&f, "openai", chat);
	CHECK_OK(ask_with(&f, TOOLS), f.err);
	CHECK_LACKS(request(&f, 0), STR("hm"));
	CHECK_HAS(request(&f, 0), STR("\"tool_calls\":[{\"id\":\"t1\",\"type\":\"function\",\"function\":{\"name\":"
				      "\"read_file\",\"arguments\":\"{\\\"path\\\":\\\"a\\\"}\"}}]"));
	CHECK_HAS(request(&f, 0), STR("{\"role\":\"tool\",\"tool_call_id\":\"t1\",\"content\":\"text\"}"));
}

TEST(arguments_in_pieces_become_one_call)
{
	const char *const answers[] = {STUB_STREAM A_START A_TEXT A_CALL A_END, NULL};
	struct fix f;

	fix_open(&f, "anthropic", answers);
	CHECK_OK(ask_with(&f, HELLO), f.err);
	CHECK_STR(json(&f, jv_at(f.answer.content, 1)),
		  STR("{\"type\":\"tool_use\",\"id\":\"t9\",\"name\":\"read_file\",\"input\":{\"path\":\"a\"}}"));
}

TEST(a_call_that_the_token_limit_cut_is_left_out)
{
	const char *const answers[] = {STUB_STREAM A_START A_TEXT A_CALL
				       "event: message_delta\ndata: "
				       "{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"max_tokens\"}}\n\n"
				       "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
				       NULL};
	struct fix f;

	fix_open(&f, "anthropic", answers);
	CHECK_OK(ask_with(&f, HELLO), f.err);
	CHECK_INT(f.answer.stop, MODEL_CUT);
	CHECK_INT(jv_count(f.answer.content), 1);
}

TEST(an_input_that_comes_with_the_begin_of_its_call_counts)
{
	const char *const answers[] = {
		STUB_STREAM A_START
		"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,"
		"\"content_block\":{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"read_file\",\"input\":{"
		"\"path\":\"x\"}}}\n\n"
		"event: message_delta\ndata: "
		"{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"}}\n\n"
		"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
		NULL};
	struct fix f;

	fix_open(&f, "anthropic", answers);
	CHECK_OK(ask_with(&f, HELLO), f.err);
	CHECK_STR(jv_get_str(jv_get(jv_at(f.answer.content, 0), "input"), "path"), STR("x"));
}

TEST(chat_calls_without_index_and_id_are_told_apart)
{
	const char *const answers[] = {
		STUB_STREAM
		"data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"name\":\"a\",\"arguments\":"
		"\"{}\"}},{\"function\":{\"name\":\"b\",\"arguments\":\"{\\\"x\\\"\"}}]}}]}\r\n\r\n"
		"data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"arguments\":\":1}\"}}]},"
		"\"finish_reason\":\"stop\"}]}\r\n\r\ndata: [DONE]\r\n\r\n",
		NULL};
	struct fix f;

	fix_open(&f, "openai", answers);
	CHECK_OK(ask_with(&f, HELLO), f.err);
	CHECK_STR(json(&f, f.answer.content),
		  STR("[{\"type\":\"tool_use\",\"id\":\"call_1\",\"name\":\"a\",\"input\":{}},"
		      "{\"type\":\"tool_use\",\"id\":\"call_2\",\"name\":\"b\",\"input\":{\"x\":1}}]"));
}

TEST(arguments_that_are_an_object_count_as_its_text)
{
	const char *const answers[] = {
		STUB_STREAM
		"data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":"
		"\"read_file\",\"arguments\":{\"path\":\"x\"}}}]},\"finish_reason\":\"tool_calls\"}]}\n\n",
		NULL};
	struct fix f;

	fix_open(&f, "openai", answers);
	CHECK_OK(ask_with(&f, HELLO), f.err);
	CHECK_STR(jv_get_str(jv_get(jv_at(f.answer.content, 0), "input"), "path"), STR("x"));
}

TEST(calls_with_the_same_id_are_told_apart)
{
	const char *const answers[] = {
		STUB_STREAM "data: {\"choices\":[{\"delta\":{\"tool_calls\":["
			    "{\"index\":0,\"id\":\"c\",\"function\":{\"name\":\"a\",\"arguments\":\"{}\"}},"
			    "{\"index\":1,\"id\":\"c\",\"function\":{\"name\":\"a\",\"arguments\":\"{}\"}},"
			    "{\"index\":2,\"id\":\"c_1\",\"function\":{\"name\":\"a\",\"arguments\":\"{}\"}}]},"
			    "\"finish_reason\":\"stop\"}]}\n\n",
		NULL};
	struct fix f;

	fix_open(&f, "openai", answers);
	CHECK_OK(ask_with(&f, HELLO), f.err);
	CHECK_STR(jv_get_str(jv_at(f.answer.content, 0), "id"), STR("c"));
	CHECK_STR(jv_get_str(jv_at(f.answer.content, 1), "id"), STR("c_1"));
	CHECK_STR(jv_get_str(jv_at(f.answer.content, 2), "id"), STR("c_1_2"));
}

#define INVENTED                                                                                                       \
	"[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"hello\"}]},"                                   \
	"{\"role\":\"assistant\",\"content\":["                                                                        \
	"{\"type\":\"tool_use\",\"id\":\"functions.a:0\",\"name\":\"multi_tool.a b\",\"input\":{}},"                   \
	"{\"type\":\"tool_use\",\"id\":\"t2\",\"name\":\"\",\"input\":{}}]},"                                          \
	"{\"role\":\"user\",\"content\":["                                                                             \
	"{\"type\":\"tool_result\",\"tool_use_id\":\"functions.a:0\",\"content\":\"x\"},"                              \
	"{\"type\":\"tool_result\",\"tool_use_id\":\"t2\",\"content\":\"x\"}]}]"

TEST(names_and_ids_that_a_model_invented_are_sent_back_as_the_provider_accepts_them)
{
	static const struct {
		const char *provider, *name, *id, *result, *none;
	} cases[] = {
		{"anthropic", "\"name\":\"multi_tool_a_b\"", "\"id\":\"functions_a_0\"",
		 "\"tool_use_id\":\"functions_a_0\"", "\"name\":\"unknown\""},
		{"openai", "\"name\":\"multi_tool_a_b\"", "\"id\":\"functions.a:0\"",
		 "\"tool_call_id\":\"functions.a:0\"", "\"name\":\"unknown\""},
		{"openai-responses", "\"name\":\"multi_tool_a_b\"", "\"call_id\":\"functions_a_0\"",
		 "\"type\":\"function_call_output\",\"call_id\":\"functions_a_0\"", "\"name\":\"unknown\""},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		const char *const answers[] = {"HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n", NULL};
		struct fix f;

		fix_open(&f, cases[i].provider, answers);
		CHECK_ERR(ask_with(&f, INVENTED), f.err, ERR_NOT_FOUND);
		CHECK_HAS(request(&f, 0), str_of(cases[i].name));
		CHECK_HAS(request(&f, 0), str_of(cases[i].id));
		CHECK_HAS(request(&f, 0), str_of(cases[i].result));
		CHECK_HAS(request(&f, 0), str_of(cases[i].none));
	}
}

TEST(tokens_that_cannot_be_are_not_counted)
{
	const char *const answers[] = {
		STUB_STREAM "data: {\"choices\":[{\"delta\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}],"
			    "\"usage\":{\"prompt_tokens\":-1,\"completion_tokens\":3}}\n\n",
		NULL};
	struct fix f;

	fix_open(&f, "openai", answers);
	CHECK_OK(ask_with(&f, HELLO), f.err);
	CHECK_INT(f.answer.usage.input, 0);
	CHECK_INT(f.answer.usage.output, 3);
}

#define C_DELTA(DELTA) "data: {\"choices\":[{\"delta\":{" DELTA "}}]}\n\n"
#define C_CALL(TEXT)   C_DELTA("\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"" TEXT "\"}}]")
#define C_STOP         "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"

TEST(a_character_whose_halves_are_in_two_events_is_one)
{
	const char *const answers[] = {STUB_STREAM C_DELTA("\"content\":\"A \\ud83d\"") C_DELTA("\"role\":null")
					       C_DELTA("\"content\":\"\\uDE00 \\\\ud83d \\ud83d\\ude01\\uD83D\"")
						       C_DELTA("\"content\":\"\\ude02\"")
							       C_CALL("{\\\"a\\\": \\\"\\ud83d") C_CALL("\\ude03\\\"}")
								       C_STOP,
				       NULL};
	struct fix f;

	fix_open(&f, "openai", answers);
	CHECK_OK(ask_with(&f, HELLO), f.err);
	CHECK_STR(buf_str(&f.shown), STR("A \xF0\x9F\x98\x80 \\ud83d \xF0\x9F\x98\x81\xF0\x9F\x98\x82"));
	CHECK_STR(json(&f, jv_get(jv_at(f.answer.content, 1), "input")), STR("{\"a\":\"\xF0\x9F\x98\x83\"}"));
}

TEST(half_a_character_within_a_text_is_not_json)
{
	const char *const answers[] = {STUB_STREAM C_DELTA("\"content\":\"A \\ud83d B\"") C_STOP,
				       STUB_STREAM C_DELTA("\"content\":\"\\ude00\"") C_STOP,
				       STUB_STREAM C_DELTA("\"content\":\"whole\"") C_STOP, NULL};
	struct fix f;

	fix_open(&f, "openai", answers);
	CHECK_OK(ask_with(&f, HELLO), f.err);
	CHECK_INT(f.answer.attempts, 3);
}

TEST(arguments_that_are_not_json_are_kept_and_marked)
{
	const char *const answers[] = {
		STUB_STREAM "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c\",\"function\":{"
			    "\"name\":\"a\",\"arguments\":\"{oops\"}}]},\"finish_reason\":\"tool_calls\"}]}\n\n",
		NULL};
	struct fix f;
	const struct jv *call;

	fix_open(&f, "openai", answers);
	CHECK_OK(ask_with(&f, HELLO), f.err);
	call = jv_at(f.answer.content, 0);
	CHECK_STR(jv_get_str(call, "input_text"), STR("{oops"));
	CHECK(jv_get_str(call, "input_error").len > 0);
}

TEST(responses_keep_reasoning_items_and_send_them_back)
{
	const char *const answers[] = {
		STUB_STREAM "event: response.output_text.delta\ndata: "
			    "{\"type\":\"response.output_text.delta\",\"delta\":\"Hi\"}\n\n"
			    "event: response.completed\ndata: "
			    "{\"type\":\"response.completed\",\"response\":{\"id\":\"r1\",\"output\":["
			    "{\"type\":\"reasoning\",\"id\":\"rs_1\",\"encrypted_content\":\"xyz\",\"summary\":[]},"
			    "{\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"text\":\"Hi\"}]},"
			    "{\"type\":\"function_call\",\"call_id\":\"c1\",\"name\":\"a\",\"arguments\":\"{}\"}],"
			    "\"usage\":{\"input_tokens\":4,\"output_tokens\":2,\"input_tokens_details\":{\"cached_"
			    "tokens\":3}}}}\n\n",
		STUB_STREAM "data: {\"type\":\"response.completed\",\"response\":{\"output\":[]}}\n\n", NULL};
	struct str again;
	struct fix f;

	fix_open(&f, "openai-responses", answers);
	CHECK_OK(ask_with(&f, HELLO), f.err);
	CHECK_STR(buf_str(&f.shown), STR("Hi"));
	CHECK_INT(f.answer.usage.cache_read, 3);
	again = arena_printf(f.ctx.arena,
			     "[{\"role\":\"user\",\"content\":[]},{\"role\":\"assistant\",\"wire\":"
			     "\"responses\",\"content\":%.*s}]",
			     STR_ARG(json(&f, f.answer.content)));
	CHECK_OK(ask_with(&f, again.ptr), f.err);
	CHECK_HAS(request(&f, 1),
		  STR("{\"type\":\"reasoning\",\"id\":\"rs_1\",\"encrypted_content\":\"xyz\",\"summary\":"
		      "[]}"));
	CHECK_HAS(request(&f, 1), STR("{\"type\":\"function_call\",\"call_id\":\"c1\",\"name\":\"a\",\"arguments\":"
				      "\"{}\"}"));
}

TEST(what_may_pass_is_tried_again)
{
	const char *const answers[] = {"HTTP/1.1 529 Overloaded\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
				       STUB_STREAM A_START A_TEXT, /* cut off */
				       A_WHOLE, NULL};
	struct fix f;

	fix_open(&f, "anthropic", answers);
	CHECK_OK(ask_with(&f, HELLO), f.err);
	CHECK_INT(f.answer.attempts, 3);
	CHECK_STR(buf_str(&f.shown), STR("<again>Hi<again>Hi"));
}

TEST(an_error_in_the_stream_and_a_line_that_is_not_json_are_tried_again)
{
	const char *const answers[] = {
		STUB_STREAM A_START
		"event: error\ndata: "
		"{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"x\"}}\n\n",
		STUB_STREAM "event: message_start\ndata: {\"type\":\n\n", A_WHOLE, NULL};
	struct fix f;

	fix_open(&f, "anthropic", answers);
	CHECK_OK(ask_with(&f, HELLO), f.err);
	CHECK_INT(f.answer.attempts, 3);
}

TEST(a_pause_beyond_the_deadline_is_not_begun)
{
	const char *const answers[] = {"HTTP/1.1 429 Slow\r\nretry-after: 3600\r\ncontent-length: 0\r\n\r\n", NULL};
	struct fix f;

	fix_open(&f, "anthropic", answers);
	f.ctx.deadline_ns = clock_monotonic_ns() + 60 * NS_PER_S;
	CHECK_ERR(ask_with(&f, HELLO), f.err, ERR_RATE_LIMITED);
	CHECK(f.err.retryable);
	CHECK_HAS(str_of(f.err.msg), STR("a retry in 3600 s"));
}

TEST(what_will_not_pass_is_not_tried_again)
{
	static const struct {
		const char *answer;
		enum err_kind kind;
	} cases[] = {
		{"HTTP/1.1 401 No\r\ncontent-length: 0\r\n\r\n", ERR_UNAUTHENTICATED},
		{"HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n", ERR_NOT_FOUND},
		{"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}", ERR_UNSUPPORTED},
		{"HTTP/1.1 500 No\r\nx-should-retry: false\r\ncontent-length: 0\r\n\r\n", ERR_UNAVAILABLE},
		{"HTTP/1.1 429 No\r\ncontent-length: 45\r\n\r\n{\"error\":{\"code\":\"insufficient_quota\",\"x\":1}} ",
		 ERR_QUOTA},
		{"HTTP/1.1 400 No\r\ncontent-length: 64\r\n\r\n{\"error\":{\"message\":\"prompt is too long: 9 > 8\"}} "
		 "   "
		 "              ",
		 ERR_TOO_LARGE},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		const char *const answers[] = {cases[i].answer, NULL};
		struct fix f;

		fix_open(&f, "openai", answers);
		CHECK_ERR(ask_with(&f, HELLO), f.err, cases[i].kind);
		request(&f, 0);
		CHECK_INT(f.stub->count, 1);
	}
}

TEST(a_key_that_a_server_quotes_is_in_no_message)
{
	const char *const answers[] = {"HTTP/1.1 400 No\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n"
				       "{\"error\":{\"message\":\"bad key " KEY "\"}}",
				       NULL};
	struct fix f;

	fix_open(&f, "openai", answers);
	CHECK_ERR(ask_with(&f, HELLO), f.err, ERR_INVALID);
	CHECK_LACKS(str_of(f.err.msg), STR(KEY));
}

TEST(a_key_is_not_sent_unencrypted_to_a_public_host)
{
	struct model_settings set = {.provider = STR("openai"), .name = STR("m"), .api_key = STR(KEY)};
	struct model *model;
	struct err err;

	set.base_url = STR("http://api.example.com/v1");
	CHECK_ERR(model_open(&set, &model, &err), err, ERR_INVALID);
	set.base_url = STR("http://192.168.1.5:8000/v1");
	CHECK_OK(model_open(&set, &model, &err), err);
	model_close(model);
	set.provider = STR("opanai");
	CHECK_ERR(model_open(&set, &model, &err), err, ERR_INVALID);
}

static int take_event(void *arg, const struct sse_event *event, struct err *err)
{
	(void)err;
	buf_printf(arg, "%.*s=%.*s;", STR_ARG(event->event), STR_ARG(event->data));
	return 0;
}

TEST(events_are_the_same_wherever_the_bytes_are_cut)
{
	struct str text =
		STR("\xef\xbb\xbf: c\ndata: a\ndata:b\r\n\revent: x\rdata\r\n\nid: 3\n\nevent: lost\ndata: 1");
	struct arena *arena = arena_new();

	test_defer(arena_destroy, arena);
	for (size_t step = 1; step <= text.len; step++) {
		struct buf out;
		struct sse sse;
		struct err err;

		buf_init(&out, arena, 1000);
		sse_init(&sse, take_event, &out);
		for (size_t i = 0; i < text.len; i += step)
			CHECK_OK(sse_feed(&sse, str_first(str_from(text, i), step), &err), err);
		sse_release(&sse);
		CHECK_STR(buf_str(&out), STR("=a\nb;x=;"));
	}
}
