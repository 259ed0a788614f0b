/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server with what the official conformance suite of MCP wants to find in one: tools, resources and prompts of
 * fixed names and contents. conformance_server STORE serves that store on a free port, prints its address and ends with
 * its input. The fixtures use what a method of the server uses to answer; transport, sessions, versions, errors and
 * envelopes are the server's own.
 */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/hex.h"
#include "mcp/server.h"
#include "net/digest.h"
#include "server/serve.h"

#define PNG     "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
#define WAV     "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAAAAA=="
#define TEXT(t) "{\"content\":[{\"type\":\"text\",\"text\":\"" t "\"}]}"
#define IMAGE   "{\"type\":\"image\",\"data\":\"" PNG "\",\"mimeType\":\"image/png\"}"
#define ASK_MS  10000
#define META    "io.modelcontextprotocol/"
#define FORM(message, properties, required)                                                                            \
	"{\"method\":\"elicitation/create\",\"params\":{\"mode\":\"form\",\"message\":\"" message                      \
	"\",\"requestedSchema\":{\"type\":\"object\",\"properties\":{" properties "},\"required\":[\"" required        \
	"\"]}}}"
#define SAMPLE(text, tokens)                                                                                           \
	"{\"method\":\"sampling/createMessage\",\"params\":{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":"   \
	"\"text\",\"text\":\"" text "\"}}],\"maxTokens\":" tokens "}}"
#define ROOTS "{\"method\":\"roots/list\",\"params\":{}}"
#define NAME  "\"name\":{\"type\":\"string\"}"

/* --- answers --- */

static struct jv *json(struct arena *arena, struct str text)
{
	struct jv *v;
	struct err err;

	if (jv_parse(arena, text, &v, &err) != 0) {
		fprintf(stderr, "conformance_server: %s: %.*s\n", err.msg, STR_ARG(text));
		abort();
	}
	return v;
}

static void reply_json(struct request *req, const char *text)
{
	reply_value(req, json(req->arena, str_of(text)));
}

static void reply_text(struct request *req, struct str text)
{
	struct jv *v = json(req->arena, STR(TEXT("")));

	jv_set_str(req->arena, (struct jv *)jv_at(jv_get(v, "content"), 0), "text", text);
	reply_value(req, v);
}

static const struct jv *args_of(const struct request *req)
{
	return jv_get(req->params, "arguments");
}

static void pause_briefly(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
}

/* --- tools that talk --- */

static void run_progress(struct request *req)
{
	const struct jv *token = jv_get(jv_get(req->params, "_meta"), "progressToken");

	for (int at = 0; token && at <= 100; at += 50) {
		struct jv *v = jv_object(req->arena);

		jv_set(req->arena, v, "progressToken", (struct jv *)token);
		jv_set_int(req->arena, v, "progress", at);
		jv_set_int(req->arena, v, "total", 100);
		server_notify(req, "notifications/progress", v);
		pause_briefly();
	}
	reply_text(req, STR("The work is done."));
}

static void run_logging(struct request *req)
{
	static const char *const lines[] = {"Tool execution started", "Tool processing data",
					    "Tool execution completed"};

	for (size_t i = 0; i < COUNT(lines); i++) {
		struct jv *v = jv_object(req->arena);

		jv_set_str(req->arena, v, "level", STR("info"));
		jv_set_str(req->arena, v, "data", str_of(lines[i]));
		server_notify(req, "notifications/message", v);
		pause_briefly();
	}
	reply_text(req, STR("Three lines were logged."));
}

/* Asks with the params of one of the requests above. */
static const struct jv *ask(struct request *req, struct jv *request)
{
	return server_ask(req, arena_cstr(req->arena, jv_get_str(request, "method")), jv_get(request, "params"),
			  ASK_MS);
}

static void run_sampling(struct request *req)
{
	struct jv *request = json(req->arena, STR(SAMPLE("", "100")));
	const struct jv *message = jv_at(jv_get(jv_get(request, "params"), "messages"), 0), *answer;

	jv_set_str(req->arena, (struct jv *)jv_get(message, "content"), "text", jv_get_str(args_of(req), "prompt"));
	answer = ask(req, request);
	reply_text(req, arena_printf(req->arena, "LLM response: %.*s",
				     STR_ARG(jv_get_str(jv_get(answer, "content"), "text"))));
}

static void reply_form(struct request *req, const char *params, struct str message)
{
	struct jv *request = json(req->arena, str_of(params));
	const struct jv *answer;
	struct buf b;

	if (message.len)
		jv_set_str(req->arena, (struct jv *)jv_get(request, "params"), "message", message);
	jv_remove((struct jv *)jv_get(request, "params"), "mode");
	answer = ask(req, request);
	buf_init(&b, req->arena, MIB);
	jv_write(&b, jv_get(answer, "content") ? jv_get(answer, "content") : jv_object(req->arena));
	reply_text(req, arena_printf(req->arena, "User response: action=%.*s, content=%.*s",
				     STR_ARG(jv_get_str(answer, "action")), STR_ARG(buf_str(&b))));
}

static void run_elicitation(struct request *req)
{
	reply_form(req,
		   FORM("", "\"username\":{\"type\":\"string\"},\"email\":{\"type\":\"string\"}", "username\",\"email"),
		   jv_get_str(args_of(req), "message"));
}

static void run_defaults(struct request *req)
{
	reply_form(req,
		   FORM("Please fill in",
			"\"name\":{\"type\":\"string\",\"default\":\"John "
			"Doe\"},\"age\":{\"type\":\"integer\",\"default\":30},"
			"\"score\":{\"type\":\"number\",\"default\":95.5},\"status\":{\"type\":\"string\",\"enum\":["
			"\"active\","
			"\"inactive\",\"pending\"],\"default\":\"active\"},\"verified\":{\"type\":\"boolean\","
			"\"default\":true}",
			"name"),
		   STR_NONE);
}

#define OPTIONS "\"enum\":[\"option1\",\"option2\",\"option3\"]"
#define TITLED(t)                                                                                                      \
	"[{\"const\":\"value1\",\"title\":\"First " t "\"},{\"const\":\"value2\",\"title\":\"Second " t                \
	"\"},{\"const\":\"value3\",\"title\":\"Third " t "\"}]"

static void run_enums(struct request *req)
{
	reply_form(
		req,
		FORM("Please choose",
		     "\"untitledSingle\":{\"type\":\"string\"," OPTIONS
		     "},\"titledSingle\":{\"type\":\"string\",\"oneOf\":" TITLED(
			     "Option") "},\"legacyEnum\":{\"type\":\"string\",\"enum\":[\"opt1\",\"opt2\",\"opt3\"],"
				       "\"enumNames\":[\"Option One\",\"Option Two\",\"Option Three\"]},"
				       "\"untitledMulti\":{\"type\":\"array\",\"items\":{\"type\":\"string\"," OPTIONS
				       "}},\"titledMulti\":{\"type\":\"array\",\"items\":{\"anyOf\":" TITLED(
					       "Choice") "}}",
		     "untitledSingle"),
		STR_NONE);
}

/* --- tools that want input first (2026-07-28) --- */

static const struct jv *caps_of(const struct request *req)
{
	return jv_get(jv_get(req->params, "_meta"), META "clientCapabilities");
}

static void run_missing_capability(struct request *req)
{
	if (jv_get(caps_of(req), "sampling"))
		reply_text(req, STR("The client can sample."));
	else
		reply_error(req, RPC_NO_CAPABILITY,
			    json(req->arena, STR("{\"requiredCapabilities\":{\"sampling\":{}}}")),
			    "this tool needs a client with the capability \"sampling\"");
}

static const struct jv *input(const struct request *req, const char *key)
{
	return jv_get(jv_get(req->params, "inputResponses"), key);
}

/* The text that a form was filled in with; ptr NULL: it was not. */
static struct str filled(const struct request *req, const char *key, const char *member)
{
	const struct jv *answer = input(req, key), *value = jv_get(jv_get(answer, "content"), member);

	return str_is(jv_get_str(answer, "action"), "accept") && value && value->type == JV_STR ? value->u.s : STR_NONE;
}

static struct str seal_of(struct arena *arena, struct str text)
{
	uint8_t sum[SHA256_LEN];
	char *hex = arena_alloc(arena, 2 * sizeof(sum) + 1);

	digest_hmac_sha256(STR("a key that no client knows"), text, sum);
	for (size_t i = 0; i < sizeof(sum); i += 8) {
		uint64_t v = 0;

		for (size_t j = 0; j < 8; j++)
			v = v << 8 | sum[i + j];
		hex_u64(v, hex + 2 * i);
	}
	return str_n(hex, 2 * sizeof(sum));
}

/* The state of an earlier round: empty when there is none. False: it was changed on its way, and that was answered. */
static bool state_of(struct request *req, struct str *ret)
{
	struct str sealed = jv_get_str(req->params, "requestState");
	size_t dot = str_find_char(sealed, '.');

	*ret = str_first(sealed, dot);
	if (!jv_get(req->params, "requestState") || str_eq(seal_of(req->arena, *ret), str_from(sealed, dot + 1)))
		return true;
	reply_error(req, RPC_INVALID_PARAMS, NULL, "the state of this request is not what the server gave out");
	return false;
}

/* `requests`: members of an object; `state` may be empty. */
static void want_input(struct request *req, const char *requests, struct str state)
{
	struct jv *v = jv_object(req->arena);

	jv_set(req->arena, v, "inputRequests", json(req->arena, arena_printf(req->arena, "{%s}", requests)));
	if (state.len)
		jv_set_str(req->arena, v, "requestState",
			   arena_printf(req->arena, "%.*s.%.*s", STR_ARG(state), STR_ARG(seal_of(req->arena, state))));
	req->result_type = "input_required";
	reply_value(req, v);
}

static void run_want_name(struct request *req)
{
	struct str name = filled(req, "user_name", "name");

	if (name.ptr)
		reply_text(req, arena_printf(req->arena, "Hello, %.*s!", STR_ARG(name)));
	else
		want_input(req, "\"user_name\":" FORM("What is your name?", NAME, "name"), STR_NONE);
}

static void run_want_sample(struct request *req)
{
	if (jv_get(input(req, "capital_question"), "content"))
		reply_text(req, jv_get_str(jv_get(input(req, "capital_question"), "content"), "text"));
	else
		want_input(req, "\"capital_question\":" SAMPLE("What is the capital of France?", "100"), STR_NONE);
}

static void run_want_roots(struct request *req)
{
	if (jv_get(input(req, "client_roots"), "roots"))
		reply_text(req, STR("The roots are known."));
	else
		want_input(req, "\"client_roots\":" ROOTS, STR_NONE);
}

static void run_want_state(struct request *req)
{
	struct str state;

	if (!state_of(req, &state))
		return;
	if (str_is(state, "confirming") && str_is(jv_get_str(input(req, "confirm"), "action"), "accept"))
		reply_text(req, STR("state-ok"));
	else
		want_input(req, "\"confirm\":" FORM("Please confirm", "\"ok\":{\"type\":\"boolean\"}", "ok"),
			   STR("confirming"));
}

static void run_want_several(struct request *req)
{
	struct str state;

	if (!state_of(req, &state))
		return;
	if (str_is(state, "three") && filled(req, "user_name", "name").ptr &&
	    jv_get(input(req, "greeting"), "content") && jv_get(input(req, "client_roots"), "roots"))
		reply_text(req, STR("All three are there."));
	else
		want_input(req,
			   "\"user_name\":" FORM("What is your name?", NAME, "name") ",\"greeting\":" SAMPLE(
				   "Generate a greeting", "50") ",\"client_roots\":" ROOTS,
			   STR("three"));
}

static void run_want_rounds(struct request *req)
{
	struct str state;

	if (!state_of(req, &state))
		return;
	if (str_is(state, "second") && filled(req, "step2", "color").ptr)
		reply_text(req, STR("Both steps are done."));
	else if (str_is(state, "second") || (str_is(state, "first") && filled(req, "step1", "name").ptr))
		want_input(req,
			   "\"step2\":" FORM("Step 2: What is your favorite color?", "\"color\":{\"type\":\"string\"}",
					     "color"),
			   STR("second"));
	else
		want_input(req, "\"step1\":" FORM("Step 1: What is your name?", NAME, "name"), STR("first"));
}

static void run_want_possible(struct request *req)
{
	static const struct {
		const char *capability, *request;
	} kinds[] = {{"elicitation", "\"user_name\":" FORM("What is your name?", NAME, "name")},
		     {"sampling", "\"greeting\":" SAMPLE("Generate a greeting", "50")},
		     {"roots", "\"client_roots\":" ROOTS}};
	struct buf b;

	buf_init(&b, req->arena, 10000);
	for (size_t i = 0; i < COUNT(kinds); i++)
		if (jv_get(caps_of(req), kinds[i].capability))
			buf_printf(&b, "%s%s", b.len ? "," : "", kinds[i].request);
	if (b.len && !jv_get(req->params, "inputResponses"))
		want_input(req, arena_cstr(req->arena, buf_str(&b)), STR_NONE);
	else
		reply_text(req, STR("What the client can do was done."));
}

/* --- the tables --- */

#define RESOURCE(uri, mime, text)                                                                                      \
	"{\"type\":\"resource\",\"resource\":{\"uri\":\"" uri "\",\"mimeType\":\"" mime "\",\"text\":\"" text "\"}}"
#define ONE_STRING(name)                                                                                               \
	"{\"type\":\"object\",\"properties\":{\"" name "\":{\"type\":\"string\"}},\"required\":[\"" name "\"]}"

static const struct {
	const char *name;
	const char *result; /* or: */
	void (*run)(struct request *req);
	const char *schema; /* NULL: no arguments */
} tools[] = {
	{"test_simple_text", TEXT("This is a simple text response for testing."), NULL, NULL},
	{"test_image_content", "{\"content\":[" IMAGE "]}", NULL, NULL},
	{"test_audio_content", "{\"content\":[{\"type\":\"audio\",\"data\":\"" WAV "\",\"mimeType\":\"audio/wav\"}]}",
	 NULL, NULL},
	{"test_embedded_resource",
	 "{\"content\":[" RESOURCE("test://embedded-resource", "text/plain",
				   "This is an embedded resource content.") "]}",
	 NULL, NULL},
	{"test_multiple_content_types",
	 "{\"content\":[{\"type\":\"text\",\"text\":\"Multiple content types test:\"}," IMAGE
	 "," RESOURCE("test://mixed-content-resource", "application/json",
		      "{\\\"test\\\":\\\"data\\\",\\\"value\\\":123}") "]}",
	 NULL, NULL},
	{"test_error_handling",
	 "{\"content\":[{\"type\":\"text\",\"text\":\"This tool intentionally returns an error for "
	 "testing\"}],\"isError\":true}",
	 NULL, NULL},
	{"test_tool_with_progress", NULL, run_progress, NULL},
	{"test_tool_with_logging", NULL, run_logging, NULL},
	{"test_sampling", NULL, run_sampling, ONE_STRING("prompt")},
	{"test_elicitation", NULL, run_elicitation, ONE_STRING("message")},
	{"test_elicitation_sep1034_defaults", NULL, run_defaults, NULL},
	{"test_elicitation_sep1330_enums", NULL, run_enums, NULL},
	{"test_missing_capability", NULL, run_missing_capability, NULL},
	{"test_streaming_elicitation", TEXT("Nothing was asked."), NULL, NULL},
	{"test_logging_tool", TEXT("Nothing was logged."), NULL, NULL},
	{"test_input_required_result_elicitation", NULL, run_want_name, NULL},
	{"test_input_required_result_sampling", NULL, run_want_sample, NULL},
	{"test_input_required_result_list_roots", NULL, run_want_roots, NULL},
	{"test_input_required_result_request_state", NULL, run_want_state, NULL},
	{"test_input_required_result_tampered_state", NULL, run_want_state, NULL},
	{"test_input_required_result_multiple_inputs", NULL, run_want_several, NULL},
	{"test_input_required_result_multi_round", NULL, run_want_rounds, NULL},
	{"test_input_required_result_capabilities", NULL, run_want_possible, NULL},
	{"json_schema_2020_12_tool", TEXT("The schema was met."), NULL,
	 "{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"type\":\"object\",\"$defs\":{\"address\":{"
	 "\"$anchor\":\"addressDef\",\"type\":\"object\",\"properties\":{\"street\":{\"type\":\"string\"},\"city\":{"
	 "\"type\":\"string\"}}}},\"properties\":{\"name\":{\"type\":\"string\"},\"address\":{\"$ref\":\"#/$defs/"
	 "address\"},\"contactMethod\":{\"type\":\"string\",\"enum\":[\"phone\",\"email\"]},\"phone\":{\"type\":"
	 "\"string\"},\"email\":{\"type\":\"string\"}},\"allOf\":[{\"anyOf\":[{\"required\":[\"phone\"]},{\"required\":"
	 "[\"email\"]}]}],\"if\":{\"properties\":{\"contactMethod\":{\"const\":\"phone\"}},\"required\":["
	 "\"contactMethod\"]},\"then\":{\"required\":[\"phone\"]},\"else\":{\"required\":[\"email\"]},"
	 "\"additionalProperties\":false}"},
};

static const char resources[] =
	"{\"resources\":[{\"uri\":\"test://static-text\",\"name\":\"static-text\",\"description\":\"A text that never "
	"changes.\",\"mimeType\":\"text/plain\"},{\"uri\":\"test://static-binary\",\"name\":\"static-binary\","
	"\"description\":\"An image that never "
	"changes.\",\"mimeType\":\"image/png\"},{\"uri\":\"test://watched-resource\","
	"\"name\":\"watched-resource\",\"description\":\"A text to subscribe to.\",\"mimeType\":\"text/plain\"}]}";
static const char templates[] =
	"{\"resourceTemplates\":[{\"uriTemplate\":\"test://template/{id}/data\",\"name\":\"template\",\"description\":"
	"\"Data by id.\",\"mimeType\":\"application/json\"}]}";
static const char prompts[] =
	"{\"prompts\":[{\"name\":\"test_simple_prompt\",\"description\":\"A prompt without arguments.\"},{\"name\":"
	"\"test_prompt_with_arguments\",\"description\":\"A prompt with two "
	"arguments.\",\"arguments\":[{\"name\":\"arg1\","
	"\"description\":\"The first.\",\"required\":true},{\"name\":\"arg2\",\"description\":\"The "
	"second.\",\"required\":"
	"true}]},{\"name\":\"test_prompt_with_embedded_resource\",\"description\":\"A prompt with a resource.\","
	"\"arguments\":[{\"name\":\"resourceUri\",\"description\":\"Its URI.\",\"required\":true}]},{\"name\":"
	"\"test_prompt_with_image\",\"description\":\"A prompt with an image.\"},{\"name\":"
	"\"test_input_required_result_prompt\",\"description\":\"A prompt that wants input first.\"}]}";

static void list_tools(struct request *req)
{
	struct arena *arena = req->arena;
	struct jv *v = jv_object(arena), *list = jv_array(arena);

	for (size_t i = 0; i < COUNT(tools); i++) {
		struct jv *tool = jv_object(arena);

		jv_set_str(arena, tool, "name", str_of(tools[i].name));
		jv_set_str(arena, tool, "description", STR("A fixture of the conformance suite."));
		jv_set(arena, tool, "inputSchema",
		       json(arena,
			    str_of(tools[i].schema ? tools[i].schema : "{\"type\":\"object\",\"properties\":{}}")));
		jv_push(arena, list, tool);
	}
	jv_set(arena, v, "tools", list);
	reply_cache_hint(req, v, 1000);
	reply_value(req, v);
}

static bool call_tool(struct request *req)
{
	struct str name = jv_get_str(req->params, "name");

	for (size_t i = 0; i < COUNT(tools); i++) {
		if (!str_is(name, tools[i].name))
			continue;
		if (tools[i].run)
			tools[i].run(req);
		else
			reply_json(req, tools[i].result);
		return true;
	}
	return false;
}

static void reply_content(struct request *req, struct str uri, const char *mime, const char *member, struct str text)
{
	struct arena *arena = req->arena;
	struct jv *v = jv_object(arena), *list = jv_array(arena), *one = jv_object(arena);

	jv_set_str(arena, one, "uri", uri);
	jv_set_str(arena, one, "mimeType", str_of(mime));
	jv_set_str(arena, one, member, text);
	jv_push(arena, list, one);
	jv_set(arena, v, "contents", list);
	reply_cache_hint(req, v, 1000);
	reply_value(req, v);
}

static bool read_resource(struct request *req)
{
	struct str uri = jv_get_str(req->params, "uri"), id;

	if (str_is(uri, "test://static-text"))
		reply_content(req, uri, "text/plain", "text", STR("This is the content of the static text resource."));
	else if (str_is(uri, "test://static-binary"))
		reply_content(req, uri, "image/png", "blob", STR(PNG));
	else if (str_is(uri, "test://watched-resource"))
		reply_content(req, uri, "text/plain", "text", STR("Watch this."));
	else if (str_starts(uri, STR("test://template/")) && str_ends(uri, STR("/data"))) {
		id = str_first(str_from(uri, strlen("test://template/")),
			       uri.len - strlen("test://template/") - strlen("/data"));
		reply_content(req, uri, "application/json", "text",
			      arena_printf(req->arena,
					   "{\"id\":\"%.*s\",\"templateTest\":true,\"data\":\"Data for ID: %.*s\"}",
					   STR_ARG(id), STR_ARG(id)));
	} else {
		return false;
	}
	return true;
}

/* Messages of a prompt: JSON of their contents, with ';' between them. */
static void reply_prompt(struct request *req, const char *first, const char *second)
{
	struct arena *arena = req->arena;
	struct jv *v = jv_object(arena), *list = jv_array(arena);

	for (int i = 0; i < 2; i++) {
		struct jv *message = jv_object(arena);
		const char *content = i ? second : first;

		if (!content)
			continue;
		jv_set_str(arena, message, "role", STR("user"));
		jv_set(arena, message, "content", json(arena, str_of(content)));
		jv_push(arena, list, message);
	}
	jv_set(arena, v, "messages", list);
	reply_value(req, v);
}

#define SAYS(t) "{\"type\":\"text\",\"text\":\"" t "\"}"

static bool get_prompt(struct request *req)
{
	struct str name = jv_get_str(req->params, "name"), uri = jv_get_str(args_of(req), "resourceUri");
	struct str one = jv_get_str(args_of(req), "arg1"), two = jv_get_str(args_of(req), "arg2");

	if (str_is(name, "test_simple_prompt"))
		reply_prompt(req, SAYS("This is a simple prompt for testing."), NULL);
	else if (str_is(name, "test_prompt_with_arguments"))
		reply_prompt(req,
			     arena_printf(req->arena, SAYS("Prompt with arguments: arg1='%.*s', arg2='%.*s'"),
					  STR_ARG(one), STR_ARG(two))
				     .ptr,
			     NULL);
	else if (str_is(name, "test_prompt_with_embedded_resource"))
		reply_prompt(req,
			     arena_printf(req->arena,
					  RESOURCE("%.*s", "text/plain", "Embedded resource content for testing."),
					  STR_ARG(uri))
				     .ptr,
			     SAYS("Please process the embedded resource above."));
	else if (str_is(name, "test_prompt_with_image"))
		reply_prompt(req, IMAGE, SAYS("Please analyze the image above."));
	else if (!str_is(name, "test_input_required_result_prompt"))
		return false;
	else if (filled(req, "user_context", "context").ptr)
		reply_prompt(req, SAYS("The context is known."), NULL);
	else
		want_input(req,
			   "\"user_context\":" FORM("What is the context?", "\"context\":{\"type\":\"string\"}",
						    "context"),
			   STR_NONE);
	return true;
}

static void reply_list(struct request *req, const char *text)
{
	struct jv *v = json(req->arena, str_of(text));

	reply_cache_hint(req, v, 1000);
	reply_value(req, v);
}

static bool answer(struct request *req)
{
	struct str method = str_of(req->method->name);

	if (str_is(method, "tools/call"))
		return call_tool(req);
	if (str_is(method, "resources/read"))
		return read_resource(req);
	if (str_is(method, "prompts/get"))
		return get_prompt(req);
	if (str_is(method, "tools/list"))
		list_tools(req);
	else if (str_is(method, "resources/list"))
		reply_list(req, resources);
	else if (str_is(method, "resources/templates/list"))
		reply_list(req, templates);
	else if (str_is(method, "prompts/list"))
		reply_list(req, prompts);
	else if (str_is(method, "resources/subscribe") || str_is(method, "resources/unsubscribe"))
		method_empty(req);
	else if (str_is(method, "completion/complete"))
		reply_json(req, "{\"completion\":{\"values\":[],\"total\":0,\"hasMore\":false}}");
	else
		return false;
	return true;
}

int main(int argc, char **argv)
{
	struct serve_opts opts = {
		.host = STR("127.0.0.1"), .is_open = true, .relaxed = true, .structured = true, .extra = answer};
	struct serve *serve;
	struct err err = {0};
	char byte;

	if (argc != 2)
		return 2;
	opts.store_url = str_of(argv[1]);
	if (serve_start(&opts, &serve, &err) != 0) {
		fprintf(stderr, "conformance_server: %s\n", err.msg);
		return 1;
	}
	printf("%.*s\n", STR_ARG(serve_url(serve)));
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		continue;
	return serve_stop(serve, 5000) ? 0 : 1;
}
