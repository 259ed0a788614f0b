/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `stead up` with a Telegram channel, against a server that answers as Telegram does (with its error codes), and as a
 * model that repeats the message. Everything between is real: polling, queue, turns, sessions, uploads.
 */
#include <sys/stat.h>

#include "stub_server.h"
#include "temp_dir.h"

#include "base/clock.h"
#include "runner/channels/telegram_text.h"
#include "runner/desk.h"
#include "runner/telegram_html_check.h"
#include "text/jv.h"

#define TOKEN  "123:secret"
#define WAIT_S 60
#define MOST   256

struct sent {
	char method[32];
	int64_t chat, message;
	char *text; /* what a reader sees is checked when it is sent; this is with its tags */
	char *markup;
};

/* Telegram and the model. */
struct service {
	struct stub_server server;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	char *updates[MOST];
	size_t update_count;
	struct sent sent[MOST];
	size_t sent_count, questions, refusals;
	int fail_code; /* of the next call of `fail_method` */
	char fail_method[32];
	bool holds; /* the model does not answer questions after the first `free` ones */
	size_t free;
	int64_t offset; /* updates before it were taken */
	char problems[4096];
};

static void to_service(struct service *s, const char *update)
{
	pthread_mutex_lock(&s->lock);
	s->updates[s->update_count++] = strdup(update);
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

static void wait_a_little(struct service *s)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until = clock_timespec(clock_of_timespec(until) + 20 * NS_PER_MS);
	pthread_cond_timedwait(&s->changed, &s->lock, &until);
}

/* Waits for the condition, under the lock; the test fails when it does not come. */
#define AWAIT(s, condition)                                                                                            \
	do {                                                                                                           \
		int64_t until_ = clock_monotonic_ns() + WAIT_S * NS_PER_S;                                             \
		bool came_;                                                                                            \
		pthread_mutex_lock(&(s)->lock);                                                                        \
		while (!(came_ = (condition)) && clock_monotonic_ns() < until_)                                        \
			wait_a_little(s);                                                                              \
		pthread_mutex_unlock(&(s)->lock);                                                                      \
		if (!came_)                                                                                            \
			TEST_FAIL("%s did not come true; problems: %s", #condition, (s)->problems);                    \
	} while (0)

static void reply_ok(struct buf *out, struct str result)
{
	struct buf body;

	buf_init(&body, NULL, MIB);
	buf_printf(&body, "{\"ok\":true,\"result\":%.*s}", STR_ARG(result));
	stub_reply(out, 200, "Content-Type: application/json\r\n", buf_str(&body));
	buf_release(&body);
}

static void reply_error(struct buf *out, int code, const char *text, const char *parameters)
{
	char body[400];

	snprintf(body, sizeof(body), "{\"ok\":false,\"error_code\":%d,\"description\":\"%s\"%s%s}", code, text,
		 parameters ? ",\"parameters\":" : "", parameters ? parameters : "");
	stub_reply(out, code, "", str_of(body));
}

static void get_updates(struct service *s, const struct jv *args, struct buf *out)
{
	int64_t offset = jv_get_int(args, "offset", 0);
	struct buf list;

	buf_init(&list, NULL, MIB);
	pthread_mutex_lock(&s->lock);
	s->offset = offset;
	while ((size_t)offset >= s->update_count + 1 && !atomic_load(&s->server.ended) && list.len == 0) {
		wait_a_little(s);
		if (recv(s->server.fd, NULL, 0, MSG_DONTWAIT) == 0 && atomic_load(&s->server.ended))
			break;
	}
	buf_char(&list, '[');
	for (size_t i = offset > 0 ? (size_t)offset - 1 : 0; i < s->update_count; i++)
		buf_printf(&list, "%s{\"update_id\":%zu,%s}", list.len > 1 ? "," : "", i + 1, s->updates[i]);
	buf_char(&list, ']');
	pthread_mutex_unlock(&s->lock);
	reply_ok(out, buf_str(&list));
	buf_release(&list);
}

/* A message without its tags, as it is counted. */
static size_t visible_units(struct str html)
{
	size_t units = 0;
	bool in_tag = false;

	for (size_t i = 0; i < html.len; i++) {
		if (html.ptr[i] == '<')
			in_tag = true;
		units += !in_tag && ((unsigned char)html.ptr[i] & 0xC0) != 0x80;
		if (html.ptr[i] == '>')
			in_tag = false;
		if (html.ptr[i] == '&')
			i += str_find_char(str_from(html, i), ';');
	}
	return units;
}

static void take_message(struct service *s, const char *method, const struct jv *args, struct buf *out)
{
	struct str text = jv_get_str(args, "text");
	bool is_html = str_is(jv_get_str(args, "parse_mode"), "HTML");
	struct sent *m;
	struct buf markup;
	char result[64];

	if (!text.len || (is_html && visible_units(text) > TELEGRAM_TEXT_MAX)) {
		reply_error(out, 400, "Bad Request: message is too long", NULL);
		return;
	}
	if (is_html && !telegram_html_is_valid(text)) {
		reply_error(out, 400, "Bad Request: can't parse entities", NULL);
		return;
	}
	buf_init(&markup, NULL, MIB);
	if (jv_get(args, "reply_markup"))
		jv_write(&markup, jv_get(args, "reply_markup"));
	pthread_mutex_lock(&s->lock);
	m = &s->sent[s->sent_count++];
	snprintf(m->method, sizeof(m->method), "%s", method);
	m->chat = jv_get_int(args, "chat_id", 0);
	m->message = jv_get_int(args, "message_id", 0);
	m->text = xstrndup(text);
	m->markup = xstrndup(buf_str(&markup));
	snprintf(result, sizeof(result), "{\"message_id\":%zu}", s->sent_count + 1000);
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	buf_release(&markup);
	reply_ok(out, str_of(result));
}

static bool fails(struct service *s, const char *method, struct buf *out)
{
	int code = 0;

	pthread_mutex_lock(&s->lock);
	if (s->fail_code && strcmp(s->fail_method, method) == 0) {
		code = s->fail_code;
		s->fail_code = 0;
		s->refusals++;
		pthread_cond_broadcast(&s->changed);
	}
	pthread_mutex_unlock(&s->lock);
	if (code == 429)
		reply_error(out, 429, "Too Many Requests: retry after 1", "{\"retry_after\":1}");
	else if (code == 409)
		reply_error(out, 409, "Conflict: terminated by other getUpdates request", NULL);
	else if (code == 400)
		reply_error(out, 400, "Bad Request: can't parse entities", NULL);
	else if (code)
		reply_error(out, code, "Internal Server Error", NULL);
	return code != 0;
}

static void answer_telegram(struct service *s, const char *method, const struct jv *args, struct buf *out)
{
	if (fails(s, method, out))
		return;
	if (strcmp(method, "getMe") == 0)
		reply_ok(out, STR("{\"id\":7,\"is_bot\":true,\"username\":\"stead_bot\"}"));
	else if (strcmp(method, "getUpdates") == 0)
		get_updates(s, args, out);
	else if (strcmp(method, "sendMessage") == 0 || strcmp(method, "editMessageText") == 0)
		take_message(s, method, args, out);
	else if (strcmp(method, "getFile") == 0)
		reply_ok(out, STR("{\"file_id\":\"f\",\"file_size\":5,\"file_path\":\"documents/a.txt\"}"));
	else
		reply_ok(out, STR("true"));
}

/* The text of the last user message. */
static struct str last_said(const struct jv *args)
{
	const struct jv *content = NULL;

	for (const struct jv_member *m = jv_first(jv_get(args, "messages")); m; m = m->next)
		if (str_is(jv_get_str(m->value, "role"), "user"))
			content = jv_get(m->value, "content");
	return content && content->type == JV_ARRAY ? jv_get_str(jv_at(content, jv_count(content) - 1), "text")
						    : jv_str_of(content);
}

static struct str last_role(const struct jv *args)
{
	const struct jv *messages = jv_get(args, "messages");

	return jv_get_str(jv_at(messages, jv_count(messages) - 1), "role");
}

static void answer_model(struct service *s, struct arena *arena, const struct jv *args, struct buf *out)
{
	struct str said = last_said(args), text;
	struct buf body, json;

	pthread_mutex_lock(&s->lock);
	s->questions++;
	pthread_cond_broadcast(&s->changed);
	while (s->holds && s->questions > s->free && !atomic_load(&s->server.ended))
		wait_a_little(s);
	pthread_mutex_unlock(&s->lock);
	buf_init(&body, arena, 4 * MIB);
	buf_init(&json, arena, 4 * MIB);
	text = arena_printf(arena, "echo: %.*s", STR_ARG(said));
	if (str_find(said, STR("long"), 0) != SIZE_MAX) {
		buf_lit(&body, "```c\n");
		for (int i = 0; i < 600; i++)
			buf_printf(&body, "int line_%d = %d < %d;\n", i, i, i + 1);
		buf_lit(&body, "```\n**end**");
		text = arena_str(arena, buf_str(&body));
		buf_clear(&body);
	}
	jv_write_string(&json, text);
	if (str_is(said, "tell") && str_is(last_role(args), "user")) {
		buf_lit(&body, "data: {\"id\":\"r\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\","
			       "\"tool_calls\":[{\"index\":0,\"id\":\"c\",\"type\":\"function\",\"function\":{\"name\":"
			       "\"send_message\",\"arguments\":\"{\\\"content\\\":\\\"I am **at it**\\\"}\"}}]},"
			       "\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n");
		stub_reply(out, 200, "Content-Type: text/event-stream\r\n", buf_str(&body));
		return;
	}
	if (str_is(said, "work")) {
		buf_lit(&body,
			"data: {\"id\":\"r\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\","
			"\"tool_calls\":[{\"index\":0,\"id\":\"c\",\"type\":\"function\",\"function\":{\"name\":\"ls\","
			"\"arguments\":\"{}\"}}]},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n");
		stub_reply(out, 200, "Content-Type: text/event-stream\r\n", buf_str(&body));
		return;
	}
	buf_printf(&body,
		   "data: "
		   "{\"id\":\"r\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":%.*s}}]}\n\n"
		   "data: {\"id\":\"r\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":"
		   "{\"prompt_tokens\":3,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n",
		   STR_ARG(buf_str(&json)));
	stub_reply(out, 200, "Content-Type: text/event-stream\r\n", buf_str(&body));
}

static void answer(void *arg, const struct stub_request *req, struct buf *out)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct service *s = arg;
	struct jv *args = NULL;
	struct err ignored;

	if (req->body.len && jv_parse(arena, req->body, &args, &ignored) != 0)
		args = NULL;
	if (str_ends(req->target, STR("/chat/completions")))
		answer_model(s, arena, args, out);
	else if (str_starts(req->target, STR("/file/bot" TOKEN "/")))
		stub_reply(out, 200, "", STR("hello"));
	else if (str_starts(req->target, STR("/bot" TOKEN "/")))
		answer_telegram(s, arena_cstr(arena, str_from(req->target, strlen("/bot" TOKEN "/"))), args, out);
	else
		reply_error(out, 404, "Not Found", NULL);
}

/* --- a workspace with a desk --- */

struct scene {
	struct arena *arena;
	struct service service;
	const char *dir;
	struct desk *desk;
	struct desk_opts opts;
};

static void on_event(void *arg, const struct runner_event *event)
{
	struct scene *scene = arg;
	struct service *s = &scene->service;
	size_t len;

	pthread_mutex_lock(&s->lock);
	len = strlen(s->problems);
	if (event->is_error && len + event->text.len + 4 < sizeof(s->problems))
		snprintf(s->problems + len, sizeof(s->problems) - len, "%.*s\n", STR_ARG(event->text));
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

static void write_host(struct scene *c, const char *name, const char *text)
{
	char path[400];
	FILE *f;

	snprintf(path, sizeof(path), "%s/store/test/%s", c->dir, name);
	f = fopen(path, "we");
	CHECK(f != NULL);
	fputs(text, f);
	fclose(f);
}

static void desk_start(struct scene *c)
{
	struct err err = {0};

	CHECK_OK(desk_open(&c->opts, &c->desk, &err), err);
	test_defer(desk_close, c->desk);
}

static void scene_free(struct scene *c)
{
	for (size_t i = 0; i < c->service.update_count; i++)
		free(c->service.updates[i]);
	for (size_t i = 0; i < c->service.sent_count; i++) {
		free(c->service.sent[i].text);
		free(c->service.sent[i].markup);
	}
	arena_destroy(c->arena);
}

static void scene_write(struct scene *c, const char *channel, const char *more)
{
	char yaml[2000];

	snprintf(yaml, sizeof(yaml),
		 "model: {provider: openai, model: echo, base_url: \"http://127.0.0.1:%u/v1\"}\n"
		 "channel: {type: telegram, token: \"${TOKEN}\", base_url: \"http://127.0.0.1:%u\"%s}\n%s",
		 c->service.server.port, c->service.server.port, channel, more);
	write_host(c, "agent.yaml", yaml);
	write_host(c, ".env", "TOKEN=" TOKEN "\nOPENAI_API_KEY=none\n");
}

/* `channel` and `more` are parts of agent.yaml. */
static void scene_open(struct scene *c, const char *channel, const char *more)
{
	struct workspace_opts opts;
	struct workspace *ws;
	struct err err = {0};

	memset(c, 0, sizeof(*c));
	c->arena = arena_new();
	test_defer(scene_free, c);
	pthread_mutex_init(&c->service.lock, NULL);
	pthread_cond_init(&c->service.changed, NULL);
	stub_start(&c->service.server, answer, &c->service);
	c->dir = temp_dir_new();
	c->opts = (struct desk_opts){.store_url = arena_printf(c->arena, "disk:%s/store", c->dir),
				     .workspace = STR("test"),
				     .relaxed = true,
				     .event = on_event,
				     .arg = c};
	opts = (struct workspace_opts){
		.store_url = c->opts.store_url, .name = STR("test"), .create = true, .relaxed = true};
	CHECK_OK(workspace_open(&opts, &ws, &err), err);
	workspace_close(ws);
	scene_write(c, channel, more);
	desk_start(c);
}

#define ANN      ", allowed_users: [42]"
#define AT_ONCE  "queue: {mode: followup}\n"
#define FROM_ANN "\"from\":{\"id\":42,\"first_name\":\"Ann\"},\"chat\":{\"id\":42,\"type\":\"private\"}"

static void ann_says(struct scene *c, const char *text)
{
	char update[1000];

	snprintf(update, sizeof(update), "\"message\":{\"message_id\":5," FROM_ANN ",\"text\":\"%s\"}", text);
	to_service(&c->service, update);
}

static bool was_sent(struct service *s, int64_t chat, const char *text)
{
	for (size_t i = 0; i < s->sent_count; i++)
		if (s->sent[i].chat == chat && strstr(s->sent[i].text, text))
			return true;
	return false;
}

static size_t times_sent(struct service *s, const char *text)
{
	size_t n = 0;

	for (size_t i = 0; i < s->sent_count; i++)
		n += strcmp(s->sent[i].method, "sendMessage") == 0 && strstr(s->sent[i].text, text) != NULL;
	return n;
}

TEST(a_message_is_answered_in_its_chat)
{
	static struct scene c;

	scene_open(&c, ANN, AT_ONCE);
	ann_says(&c, "hello");
	AWAIT(&c.service, was_sent(&c.service, 42, "echo: hello"));
	CHECK_INT(c.service.questions, 1);
}

TEST(an_empty_list_admits_nobody_and_says_who_asked)
{
	static struct scene c;

	scene_open(&c, "", AT_ONCE);
	ann_says(&c, "hello");
	AWAIT(&c.service, strstr(c.service.problems, "add 42 to allowed_users") != NULL);
	CHECK_INT(c.service.sent_count, 0);
	CHECK_INT(c.service.questions, 0);
}

#define IN_GROUP(id, name, text)                                                                                       \
	"\"message\":{\"message_id\":9,\"from\":{\"id\":" #id ",\"first_name\":\"" name                                \
	"\"},\"chat\":{\"id\":-5,\"type\":\"group\"},\"text\":\"" text "\"}"

TEST(in_a_group_a_mention_counts_and_brings_what_was_said_before)
{
	static struct scene c;

	scene_open(&c,
		   ", allowed_groups: [-5], mention_required: true, triggers: [butler], user_aliases: {\"8\": Boss}, "
		   "context_messages: 2",
		   AT_ONCE);
	to_service(&c.service, IN_GROUP(1, "Ann", "one"));
	to_service(&c.service, IN_GROUP(1, "Ann", "two"));
	to_service(&c.service, IN_GROUP(1, "Ann", "three"));
	to_service(&c.service, IN_GROUP(1, "Ann", "/status@other_bot"));
	to_service(&c.service, IN_GROUP(8, "Bob", "@Stead_Bot what now?"));
	AWAIT(&c.service, was_sent(&c.service, -5, "Ann: two\nAnn: three\n[now:]\nBoss: what now?"));
	to_service(&c.service, IN_GROUP(1, "Ann", "Butler, again"));
	AWAIT(&c.service, was_sent(&c.service, -5, "echo: Ann: Butler, again"));
	CHECK_INT(c.service.questions, 2);
}

/* Whether the log of a chat has a text. */
static bool is_logged(struct scene *c, const char *chat, const char *text)
{
	return system(arena_printf(c->arena, "grep -rqsF '%s' %s/store/test/channels/log/telegram/%s", text, c->dir,
				   chat)
			      .ptr) == 0;
}

TEST(what_a_group_says_is_logged_with_the_answers_and_direct_messages_are_not)
{
	static struct scene c;

	scene_open(&c, ", allowed_users: [42], allowed_groups: [-5], mention_required: true", AT_ONCE);
	to_service(&c.service, IN_GROUP(1, "Ann", "not for the agent"));
	to_service(&c.service, IN_GROUP(1, "Ann", "@Stead_Bot hello"));
	AWAIT(&c.service, times_sent(&c.service, "hello") == 1);
	ann_says(&c, "in private");
	AWAIT(&c.service, was_sent(&c.service, 42, "echo: in private"));
	test_close(c.desk);
	CHECK(is_logged(&c, "-5", "\"display_name\":\"Ann\",\"content\":\"not for the agent\""));
	CHECK(is_logged(&c, "-5", "\"is_bot\":true"));
	CHECK(!is_logged(&c, "42", "in private"));
}

TEST(a_long_answer_is_split_within_the_limit_and_its_markup_stays_whole)
{
	static struct scene c;

	scene_open(&c, ANN, AT_ONCE);
	ann_says(&c, "long");
	AWAIT(&c.service, was_sent(&c.service, 42, "<b>end</b>"));
	CHECK(was_sent(&c.service, 42, "int line_599 = 599 &lt; 600;"));
	CHECK(c.service.sent_count >= 4);
}

TEST(a_long_answer_that_comes_at_once_after_a_wait_is_sent_once)
{
	static struct scene c;
	int64_t began;
	size_t ends = 0;

	scene_open(&c, ANN, AT_ONCE);
	c.service.holds = true;
	ann_says(&c, "a long one");
	AWAIT(&c.service, c.service.questions == 1);
	began = clock_monotonic_ns(); /* what comes later than this is shown before the turn has ended */
	AWAIT(&c.service, clock_monotonic_ns() - began > 2 * NS_PER_S);
	pthread_mutex_lock(&c.service.lock);
	c.service.holds = false;
	pthread_mutex_unlock(&c.service.lock);
	AWAIT(&c.service, was_sent(&c.service, 42, "<b>end</b>"));
	ann_says(&c, "hello");
	AWAIT(&c.service, was_sent(&c.service, 42, "echo: hello"));
	for (size_t i = 0; i < c.service.sent_count; i++)
		ends += strstr(c.service.sent[i].text, "<b>end</b>") != NULL;
	CHECK_INT(ends, 1);
}

TEST(a_service_that_counts_its_updates_from_the_start_again_after_weeks_is_heard)
{
	static struct scene c;

	scene_open(&c, ANN, AT_ONCE);
	ann_says(&c, "first");
	AWAIT(&c.service, was_sent(&c.service, 42, "echo: first"));
	test_close(c.desk);
	write_host(&c, "channels/telegram.json", "{\"offset\":900,\"at\":\"2020-01-01T00:00:00Z\"}\n");
	desk_start(&c);
	ann_says(&c, "hello");
	AWAIT(&c.service, was_sent(&c.service, 42, "echo: hello"));
}

TEST(the_service_may_be_busy_broken_or_used_by_another_program)
{
	static const struct {
		int code;
		const char *method;
	} cases[] = {
		{429, "sendMessage"}, {400, "sendMessage"}, {500, "getUpdates"}, {502, "getMe"}, {429, "getUpdates"}};

	for (size_t i = 0; i < COUNT(cases); i++) {
		static struct scene c;

		scene_open(&c, ANN, AT_ONCE);
		pthread_mutex_lock(&c.service.lock);
		c.service.fail_code = cases[i].code;
		snprintf(c.service.fail_method, sizeof(c.service.fail_method), "%s", cases[i].method);
		pthread_mutex_unlock(&c.service.lock);
		ann_says(&c, "hello");
		AWAIT(&c.service, times_sent(&c.service, "echo: hello") == 1);
		test_close(c.desk);
		CHECK_INT(times_sent(&c.service, "echo: hello"), 1);
		test_close(&c.service.server);
		test_close(&c);
	}
}

TEST(a_file_becomes_an_upload_and_the_agent_gets_the_receipt)
{
	static struct scene c;

	scene_open(&c, ANN, AT_ONCE);
	to_service(&c.service,
		   "\"message\":{\"message_id\":5," FROM_ANN
		   ",\"caption\":\"read it\",\"document\":{\"file_id\":\"f\",\"file_name\":\"My Notes.txt\"}}");
	AWAIT(&c.service, was_sent(&c.service, 42, "My Notes.txt (5 bytes"));
	CHECK(was_sent(&c.service, 42, "read it"));
}

TEST(commands_are_carried_out_at_once_and_unknown_ones_go_to_the_agent)
{
	static struct scene c;

	scene_open(&c, ANN, AT_ONCE);
	ann_says(&c, "/help");
	AWAIT(&c.service, was_sent(&c.service, 42, "/compact"));
	ann_says(&c, "/queue");
	AWAIT(&c.service, c.service.sent_count == 2 && strstr(c.service.sent[1].markup, "/queue steer"));
	to_service(&c.service,
		   "\"callback_query\":{\"id\":\"q\",\"from\":{\"id\":42,\"first_name\":\"Ann\"},\"message\":{"
		   "\"message_id\":6,\"chat\":{\"id\":42,\"type\":\"private\"},\"text\":\"x\"},\"data\":\"/queue "
		   "steer\"}");
	AWAIT(&c.service, was_sent(&c.service, 42, "The mode is now steer"));
	ann_says(&c, "/status");
	AWAIT(&c.service, was_sent(&c.service, 42, "model: openai:echo"));
	CHECK(was_sent(&c.service, 42, "context: 0 turns, about 3 % of 200000 tokens"));
	CHECK(was_sent(&c.service, 42, "tasks: 0 active"));
	ann_says(&c, "/model nonsense");
	AWAIT(&c.service, was_sent(&c.service, 42, "Write PROVIDER:MODEL"));
	ann_says(&c, "/model nobody:thing");
	AWAIT(&c.service, was_sent(&c.service, 42, "That model cannot be used: "));
	ann_says(&c, "/model openai:other");
	AWAIT(&c.service, was_sent(&c.service, 42, "The model of this chat is openai:other."));
	CHECK_INT(c.service.questions, 0);
	ann_says(&c, "/weather");
	AWAIT(&c.service, was_sent(&c.service, 42, "echo: /weather"));
}

TEST(a_press_by_somebody_who_is_not_admitted_does_nothing)
{
	static struct scene c;

	scene_open(&c, ANN, AT_ONCE);
	to_service(&c.service,
		   "\"callback_query\":{\"id\":\"q\",\"from\":{\"id\":66,\"first_name\":\"Eve\"},\"message\":{"
		   "\"message_id\":6,\"chat\":{\"id\":42,\"type\":\"private\"},\"text\":\"x\"},\"data\":\"/new\"}");
	AWAIT(&c.service, strstr(c.service.problems, "add 66") != NULL);
	CHECK_INT(c.service.sent_count, 0);
}

TEST(new_archives_the_conversation_and_compact_keeps_a_summary)
{
	static struct scene c;

	scene_open(&c, ANN, AT_ONCE);
	ann_says(&c, "first");
	AWAIT(&c.service, was_sent(&c.service, 42, "echo: first"));
	ann_says(&c, "/new");
	AWAIT(&c.service, was_sent(&c.service, 42, "2 messages of the old one were archived"));
	ann_says(&c, "second");
	AWAIT(&c.service, was_sent(&c.service, 42, "echo: second"));
	ann_says(&c, "/compact");
	AWAIT(&c.service, was_sent(&c.service, 42, "with this summary"));
	ann_says(&c, "third");
	AWAIT(&c.service, was_sent(&c.service, 42, "[end]\n\nthird"));
	ann_says(&c, "fourth");
	AWAIT(&c.service, was_sent(&c.service, 42, "echo: fourth"));
}

TEST(messages_that_were_accepted_survive_a_stop_and_are_answered_once)
{
	static struct scene c;

	scene_open(&c, ANN, AT_ONCE);
	c.service.holds = true;
	ann_says(&c, "one");
	ann_says(&c, "two");
	AWAIT(&c.service, c.service.questions == 1);
	test_close(c.desk);
	CHECK_INT(c.service.sent_count, 0);
	pthread_mutex_lock(&c.service.lock);
	c.service.holds = false;
	pthread_mutex_unlock(&c.service.lock);
	desk_start(&c);
	AWAIT(&c.service, times_sent(&c.service, "echo: two") == 1);
	CHECK_INT(times_sent(&c.service, "echo: one"), 1);
	CHECK_INT(c.service.questions, 3);
}

TEST(interrupt_stops_the_running_turn)
{
	static struct scene c;

	scene_open(&c, ANN, "queue: {mode: interrupt}\n");
	c.service.holds = true;
	ann_says(&c, "slow");
	AWAIT(&c.service, c.service.questions == 1);
	ann_says(&c, "quick");
	AWAIT(&c.service, was_sent(&c.service, 42, "Stopped"));
	pthread_mutex_lock(&c.service.lock);
	c.service.holds = false;
	pthread_mutex_unlock(&c.service.lock);
	/* the model gets what was said before, and answers once */
	AWAIT(&c.service, was_sent(&c.service, 42, "echo: slow\nquick"));
	CHECK_INT(times_sent(&c.service, "echo: "), 1);
}

TEST(steer_ends_the_turn_before_its_next_tool_call)
{
	static struct scene c;

	scene_open(&c, ANN, "queue: {mode: steer}\n");
	c.service.free = 1;
	c.service.holds = true;
	ann_says(&c, "work"); /* the model calls a tool each time it is asked */
	AWAIT(&c.service, c.service.questions == 2);
	ann_says(&c, "enough");
	AWAIT(&c.service, c.service.offset == 3);
	pthread_mutex_lock(&c.service.lock);
	c.service.holds = false;
	pthread_mutex_unlock(&c.service.lock);
	AWAIT(&c.service, was_sent(&c.service, 42, "echo: enough"));
	CHECK_INT(c.service.questions, 3);
}

TEST(collected_messages_are_one_turn)
{
	static struct scene c;

	scene_open(&c, ANN, "queue: {mode: collect, debounce_ms: 300}\n");
	ann_says(&c, "one");
	ann_says(&c, "two");
	AWAIT(&c.service, was_sent(&c.service, 42, "echo: one\n\ntwo"));
	CHECK_INT(c.service.questions, 1);
}

TEST(messages_begin_with_their_time_if_that_is_wanted)
{
	static struct scene c;

	scene_open(&c, ANN, "timezone: Asia/Kathmandu\nbuiltins: {timestamp: {enabled: true}}\n" AT_ONCE);
	ann_says(&c, "hello");
	AWAIT(&c.service, was_sent(&c.service, 42, "+05:45]\nhello"));
	CHECK(was_sent(&c.service, 42, "echo: [20"));
}

TEST(a_denied_timestamp_is_left_out)
{
	static struct scene c;

	scene_open(&c, ANN, "builtins: {deny: ['group:processor'], timestamp: {enabled: true}}\n" AT_ONCE);
	ann_says(&c, "hello");
	AWAIT(&c.service, was_sent(&c.service, 42, "echo: hello"));
}

TEST(what_does_not_fit_into_the_queue_is_refused_with_a_sentence)
{
	static struct scene c;

	scene_open(&c, ANN, "queue: {mode: followup, cap: 1, drop_policy: new}\nlanes: {main_concurrency: 1}\n");
	c.service.holds = true;
	ann_says(&c, "one");
	AWAIT(&c.service, c.service.questions == 1);
	ann_says(&c, "two");
	ann_says(&c, "three");
	AWAIT(&c.service, was_sent(&c.service, 42, "Too many messages"));
	pthread_mutex_lock(&c.service.lock);
	c.service.holds = false;
	pthread_mutex_unlock(&c.service.lock);
	AWAIT(&c.service, was_sent(&c.service, 42, "echo: two"));
	CHECK_INT(times_sent(&c.service, "three"), 0);
}

TEST(everybody_may_talk_when_allow_all_says_so)
{
	static struct scene c;

	scene_open(&c, ", allow_all: true", AT_ONCE);
	ann_says(&c, "hello");
	AWAIT(&c.service, was_sent(&c.service, 42, "echo: hello"));
}

TEST(two_channels_have_names_and_sessions_of_their_own)
{
	static struct scene c;
	char yaml[1000];

	scene_open(&c, "", AT_ONCE);
	test_close(c.desk);
	snprintf(yaml, sizeof(yaml),
		 "model: {provider: openai, model: echo, base_url: \"http://127.0.0.1:%u/v1\"}\nqueue: {mode: "
		 "followup}\n"
		 "channels:\n  - {name: one, token: \"${TOKEN}\", base_url: \"http://127.0.0.1:%u\", allowed_users: "
		 "[42]}\n"
		 "  - {name: two, token: plain}\n  - {name: one, token: \"${TOKEN}\", allowed_users: [42]}\n",
		 c.service.server.port, c.service.server.port);
	write_host(&c, "agent.yaml", yaml);
	desk_start(&c);
	AWAIT(&c.service, strstr(c.service.problems, "the channel \"two\" has no token from .env") != NULL);
	AWAIT(&c.service, strstr(c.service.problems, "another channel has this name") != NULL);
	ann_says(&c, "/status");
	ann_says(&c, "hello");
	AWAIT(&c.service, was_sent(&c.service, 42, "echo: hello"));
	CHECK(access(arena_printf(c.arena, "%s/store/test/channels/queue/one~3a42.jsonl", c.dir).ptr, F_OK) == 0);
}

TEST(a_group_that_was_silent_begins_again)
{
	static const char old[] =
		"{\"telegram:-5\":{\"conversation_id\":\"conv_old\",\"last_active_at\":\"2020-01-01T00:00:00Z\"}}";
	static struct scene c;

	scene_open(&c, ", allowed_groups: [-5]", AT_ONCE "session_ttl_minutes: 10\n");
	to_service(&c.service, IN_GROUP(1, "Ann", "one"));
	AWAIT(&c.service, was_sent(&c.service, -5, "echo: Ann: one"));
	test_close(c.desk);
	write_host(&c, "channels/conversations.json", old);
	desk_start(&c);
	to_service(&c.service, IN_GROUP(1, "Ann", "two"));
	AWAIT(&c.service, was_sent(&c.service, -5, "A new one begins"));
	AWAIT(&c.service, was_sent(&c.service, -5, "echo: Ann: two"));
	test_close(c.desk);
	scene_write(&c, ", allowed_groups: [-5]",
		    AT_ONCE "session_ttl_minutes: 10\nlifecycle: {notify_session_ttl: false}\n");
	write_host(&c, "channels/conversations.json", old);
	desk_start(&c);
	to_service(&c.service, IN_GROUP(1, "Ann", "three"));
	AWAIT(&c.service, was_sent(&c.service, -5, "echo: Ann: three"));
	CHECK_INT(times_sent(&c.service, "A new one begins"), 1);
}

TEST(the_agent_speaks_to_its_chat_while_it_works)
{
	static struct scene c;

	scene_open(&c, ANN, AT_ONCE);
	ann_says(&c, "tell");
	AWAIT(&c.service, was_sent(&c.service, 42, "echo: tell"));
	CHECK_INT(c.service.sent_count, 2);
	CHECK_STR(str_of(c.service.sent[0].text), STR("I am <b>at it</b>"));
}

#define ASKS AT_ONCE "approval_gates: {enabled: true, tools: {send_message: {require_approval: true}}}\n"

/* Presses the first or the second button of the question that was sent last. */
static void ann_presses(struct scene *c, const char *command)
{
	char update[1000], *id;

	pthread_mutex_lock(&c->service.lock);
	id = strstr(c->service.sent[c->service.sent_count - 1].markup, command);
	CHECK(id != NULL);
	snprintf(update, sizeof(update),
		 "\"callback_query\":{\"id\":\"q\",\"from\":{\"id\":42,\"first_name\":\"Ann\"},\"message\":{"
		 "\"message_id\":6,\"chat\":{\"id\":42,\"type\":\"private\"},\"text\":\"x\"},\"data\":\"%.*s\"}",
		 (int)strcspn(id, "\""), id);
	pthread_mutex_unlock(&c->service.lock);
	to_service(&c->service, update);
}

TEST(a_call_that_needs_approval_is_made_after_a_press_and_not_before)
{
	static struct scene c;

	scene_open(&c, ANN, ASKS);
	ann_says(&c, "tell");
	AWAIT(&c.service, was_sent(&c.service, 42, "May the agent call <b>send_message</b>?"));
	CHECK(strstr(c.service.sent[0].text, "I am **at it**"));
	CHECK_INT(c.service.questions, 1);
	ann_presses(&c, "/approve ");
	AWAIT(&c.service, was_sent(&c.service, 42, "echo: tell"));
	CHECK_INT(times_sent(&c.service, "I am <b>at it</b>"), 1);
	CHECK_INT(times_sent(&c.service, "Approved."), 1);
	ann_says(&c, "/approve 00000000");
	AWAIT(&c.service, was_sent(&c.service, 42, "Nothing is waiting for that decision"));
}

TEST(a_call_that_was_denied_after_a_restart_is_not_made)
{
	static struct scene c;

	scene_open(&c, ANN, ASKS);
	ann_says(&c, "tell");
	AWAIT(&c.service, was_sent(&c.service, 42, "May the agent call"));
	test_close(c.desk);
	desk_start(&c);
	ann_presses(&c, "/deny ");
	AWAIT(&c.service, was_sent(&c.service, 42, "echo: tell"));
	CHECK_INT(times_sent(&c.service, "I am <b>at it</b>"), 0);
	CHECK_INT(c.service.questions, 2);
}

TEST(a_call_that_nobody_decides_about_is_made_or_not_as_the_default_says)
{
	static struct scene c;

	scene_open(&c, ANN,
		   AT_ONCE "approval_gates: {enabled: true, timeout_seconds: 0.1, default_action: approve, "
			   "tools: {send_message: {}}}\n");
	ann_says(&c, "tell");
	AWAIT(&c.service, was_sent(&c.service, 42, "May the agent call"));
	AWAIT(&c.service, was_sent(&c.service, 42, "echo: tell"));
	CHECK_INT(times_sent(&c.service, "I am <b>at it</b>"), 1);
}

TEST(a_question_that_expires_after_a_restart_is_answered_by_the_default)
{
	static struct scene c;

	scene_open(&c, ANN, AT_ONCE "approval_gates: {enabled: true, timeout_seconds: 1, tools: {send_message: {}}}\n");
	ann_says(&c, "tell");
	AWAIT(&c.service, was_sent(&c.service, 42, "May the agent call"));
	test_close(c.desk);
	desk_start(&c);
	AWAIT(&c.service, was_sent(&c.service, 42, "echo: tell"));
	CHECK_INT(times_sent(&c.service, "I am <b>at it</b>"), 0);
	CHECK_INT(c.service.questions, 2);
}

TEST(chats_are_told_of_the_start_and_the_stop_and_archived)
{
	static struct scene c;
	char archives[400];

	scene_open(&c, ANN, AT_ONCE "lifecycle: {notify_startup: true, notify_shutdown: true}\n");
	ann_says(&c, "one");
	AWAIT(&c.service, was_sent(&c.service, 42, "echo: one"));
	test_close(c.desk);
	CHECK_INT(times_sent(&c.service, "Going offline."), 1);
	snprintf(archives, sizeof(archives), "grep -rq shutdown %s/store/test/memory/conversations", c.dir);
	CHECK_INT(system(archives), 0);
	desk_start(&c);
	AWAIT(&c.service, times_sent(&c.service, "Online again.") == 1);
	ann_says(&c, "two");
	AWAIT(&c.service, was_sent(&c.service, 42, "echo: two"));
	CHECK_INT(c.service.questions, 2);
}

TEST(chats_are_not_told_of_a_reload)
{
	static struct scene c;
	struct err err = {0};

	scene_open(&c, ANN, AT_ONCE "lifecycle: {notify_startup: true, notify_shutdown: true}\n");
	test_close(c.desk); /* there is nobody to be told yet */
	CHECK_OK(desk_open(&c.opts, &c.desk, &err), err);
	test_defer(desk_close_for_reload, c.desk);
	ann_says(&c, "one");
	AWAIT(&c.service, was_sent(&c.service, 42, "echo: one"));
	test_close(c.desk);
	c.opts.is_reload = true;
	desk_start(&c);
	ann_says(&c, "two");
	AWAIT(&c.service, was_sent(&c.service, 42, "echo: two"));
	CHECK_INT(times_sent(&c.service, "line."), 0);
	CHECK_INT(times_sent(&c.service, "again."), 0);
}

TEST(channels_that_cannot_be_had_are_told_of_once)
{
	static struct scene c;
	const char *found;
	char dir[400];

	scene_open(&c, ANN, AT_ONCE);
	test_close(c.desk);
	snprintf(dir, sizeof(dir), "rm -rf %s/store/test/channels; mkdir %s/store/test/channels", c.dir, c.dir);
	CHECK_INT(system(dir), 0);
	write_host(&c, "channels/queue", "this is not a directory");
	desk_start(&c);
	AWAIT(&c.service, strstr(c.service.problems, "\"channels/queue\" is a file"));
	test_close(c.desk);
	found = strstr(c.service.problems, "\"channels/queue\" is a file");
	CHECK(found && !strstr(found + 1, "\"channels/queue\" is a file"));
}

/* What waits to be sent when the desk opens. */
static void put_into_outbox(struct scene *c, const char *item)
{
	char dir[400];

	test_close(c->desk);
	snprintf(dir, sizeof(dir), "%s/store/test/channels", c->dir);
	mkdir(dir, 0700);
	snprintf(dir, sizeof(dir), "%s/store/test/channels/outbox", c->dir);
	CHECK(mkdir(dir, 0700) == 0);
	write_host(c, "channels/outbox/1.json", item);
	desk_start(c);
}

TEST(the_agent_of_a_chat_knows_what_a_schedule_said_there)
{
	static struct scene c;

	scene_open(&c, ANN, AT_ONCE);
	put_into_outbox(&c, "{\"channel\":\"telegram\",\"chat\":\"42\",\"text\":\"the disk is full\",\"by\":\"the "
			    "heartbeat\"}");
	AWAIT(&c.service, was_sent(&c.service, 42, "the disk is full"));
	CHECK_INT(c.service.questions, 0);
	ann_says(&c, "clean it");
	AWAIT(&c.service, was_sent(&c.service, 42, "echo: [said in this chat by the heartbeat, "));
	CHECK(was_sent(&c.service, 42, ":]\nthe disk is full\n[end]\n\nclean it"));
	ann_says(&c, "thanks");
	AWAIT(&c.service, was_sent(&c.service, 42, "echo: thanks"));
}

TEST(what_is_for_the_agent_of_a_chat_is_a_turn_and_is_not_sent_itself)
{
	static struct scene c;

	scene_open(&c, ANN, AT_ONCE);
	put_into_outbox(&c, "{\"channel\":\"telegram\",\"chat\":\"42\",\"text\":\"the disk is full\",\"by\":\"the "
			    "heartbeat\",\"for_agent\":true}");
	AWAIT(&c.service, was_sent(&c.service, 42, "echo: [from the heartbeat; "));
	CHECK_INT(times_sent(&c.service, "the disk is full"), 1);
	CHECK_INT(c.service.questions, 1);
}

TEST(a_heartbeat_is_skipped_while_the_agent_answers_in_a_chat)
{
	static struct scene c;
	struct firing firing = {.workspace = STR("test"), .schedule = STR("heartbeat"), .due = 1800, .relaxed = true};
	struct ctx ctx = {0};
	struct jv *record;
	struct err err = {0};

	scene_open(&c, ANN, AT_ONCE "heartbeat: {enabled: true}\n");
	write_host(&c, "HEARTBEAT.md", "Look after the plants every morning.\n");
	firing.store_url = c.opts.store_url;
	ctx.arena = c.arena;
	c.service.holds = true;
	ann_says(&c, "slow");
	AWAIT(&c.service, c.service.questions == 1);
	CHECK_OK(firing_run(&ctx, &firing, &record, &err), err);
	CHECK_STR(jv_get_str(record, "reason"), STR("the agent is answering in the chat telegram:42"));
	pthread_mutex_lock(&c.service.lock);
	c.service.holds = false;
	pthread_mutex_unlock(&c.service.lock);
	AWAIT(&c.service, was_sent(&c.service, 42, "echo: slow"));
	test_close(c.desk); /* the turn has ended */
	CHECK_OK(firing_run(&ctx, &firing, &record, &err), err);
	CHECK_STR(jv_get_str(record, "outcome"), STR("ran"));
}

TEST(what_other_processes_put_into_the_outbox_is_sent_once_and_in_order)
{
	static struct scene c;
	char dir[400];

	scene_open(&c, ANN, AT_ONCE);
	test_close(c.desk);
	snprintf(dir, sizeof(dir), "%s/store/test/channels", c.dir);
	mkdir(dir, 0700);
	snprintf(dir, sizeof(dir), "%s/store/test/channels/outbox", c.dir);
	CHECK(mkdir(dir, 0700) == 0);
	write_host(&c, "channels/outbox/2.json", "{\"channel\":\"telegram\",\"chat\":\"42\",\"text\":\"second\"}");
	write_host(&c, "channels/outbox/1.json", "{\"channel\":\"telegram\",\"chat\":\"-9:3\",\"text\":\"first\"}");
	write_host(&c, "channels/outbox/0.json", "{\"channel\":\"pigeon\",\"chat\":\"1\",\"text\":\"lost\"}");
	desk_start(&c);
	AWAIT(&c.service, was_sent(&c.service, 42, "second"));
	CHECK(was_sent(&c.service, -9, "first"));
	CHECK(strstr(c.service.problems, "there is no channel \"pigeon\"") != NULL);
	AWAIT(&c.service, access(dir, F_OK) != 0 || rmdir(dir) == 0);
	CHECK_INT(c.service.sent_count, 2);
}
