/* SPDX-License-Identifier: Apache-2.0 */
#include "session.h"

#define LISTEN(id, what)                                                                                               \
	"{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"subscriptions/listen\",\"params\":{" META                     \
	",\"notifications\":" what "}}"
#define CANCEL(id) "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":" id "}}"

static void start_legacy(struct session *s)
{
	session_open(s);
	session_ask(s, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":"
		       "\"2025-11-25\"}}");
}

/* Makes a call and gives the methods (and URIs) of the notifications before its answer, each followed by ' '. */
static struct str heard(struct session *s, const char *name, const char *args)
{
	struct buf b;
	struct jv *v;

	buf_init(&b, s->arena, 10000);
	session_line(s, arena_printf(s->arena,
				     "{\"jsonrpc\":\"2.0\",\"id\":77,\"method\":\"tools/call\",\"params\":{\"name\":"
				     "\"%s\",\"arguments\":%s}}",
				     name, args)
				.ptr);
	while ((v = session_next(s)) && !jv_get(v, "id")) {
		struct str method = jv_get_str(v, "method");

		buf_add(&b, str_from(method, str_rfind_char(method, '/') + 1));
		if (jv_get_str(jv_get(v, "params"), "uri").ptr)
			buf_printf(&b, "(%s)", jv_get_str(jv_get(v, "params"), "uri").ptr);
		buf_char(&b, ' ');
	}
	CHECK(v && !jv_get_bool(jv_get(v, "result"), "isError", false));
	return buf_str(&b);
}

TEST(a_legacy_session_hears_of_files_that_come_and_go_but_not_of_edits)
{
	struct session s;

	start_legacy(&s);
	CHECK_STR(heard(&s, "write_file", "{\"path\":\"a\",\"content\":\"one\"}"), STR("list_changed "));
	CHECK_STR(heard(&s, "edit_file", "{\"path\":\"a\",\"old_text\":\"one\",\"new_text\":\"two\"}"), STR(""));
	CHECK_STR(heard(&s, "write_file", "{\"path\":\"a\",\"content\":\"three\",\"mode\":\"overwrite\"}"), STR(""));
	CHECK_STR(heard(&s, "delete_file", "{\"path\":\"a\"}"), STR("list_changed "));
	session_close(&s);
}

TEST(a_subscriber_hears_of_its_file_and_its_directory_until_it_unsubscribes)
{
	struct session s;

	start_legacy(&s);
	session_ask(&s, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"resources/subscribe\",\"params\":{\"uri\":"
			"\"stead:///d/a\"}}");
	session_ask(&s, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"resources/subscribe\",\"params\":{\"uri\":"
			"\"stead:///d\"}}");
	CHECK_STR(heard(&s, "write_file", "{\"path\":\"d/a\",\"content\":\"one\"}"),
		  STR("updated(stead:///d) updated(stead:///d/a) list_changed "));
	CHECK_STR(heard(&s, "edit_file", "{\"path\":\"d/a\",\"old_text\":\"one\",\"new_text\":\"two\"}"),
		  STR("updated(stead:///d/a) "));
	session_ask(&s, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"resources/unsubscribe\",\"params\":{\"uri\":"
			"\"stead:///d/a\"}}");
	CHECK_STR(heard(&s, "edit_file", "{\"path\":\"d/a\",\"old_text\":\"two\",\"new_text\":\"one\"}"), STR(""));
	CHECK_STR(heard(&s, "delete_file", "{\"path\":\"d\",\"recursive\":true}"),
		  STR("updated(stead:///d) list_changed "));
	session_close(&s);
}

/* A server on a disk, and another process's handle on the same workspace. */
struct shared {
	struct session s;
	struct workspace *other;
	const char *dir;
};

static void shared_open(struct shared *sh)
{
	struct workspace_opts opts = {.name = STR("test"), .relaxed = true};
	struct err err = {0};
	char url[300];

	*sh = (struct shared){.dir = temp_dir_new()};
	snprintf(url, sizeof(url), "disk:%s", sh->dir);
	session_open_on(&sh->s, str_of(url), STR_NONE);
	opts.store_url = arena_printf(sh->s.arena, "disk:%s", sh->dir);
	CHECK_OK(workspace_open(&opts, &sh->other, &err), err);
	session_ask(&sh->s, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":"
			    "\"2025-11-25\"}}");
}

static void shared_write(struct shared *sh, const char *path, const char *text)
{
	struct ctx ctx = {.arena = sh->s.arena};
	struct err err = {0};

	CHECK_OK(store_write(workspace_files(sh->other), &ctx, (struct wpath){str_of(path)}, str_of(text),
			     (struct store_cond){0}, NULL, &err),
		 err);
}

static void shared_close(struct shared *sh)
{
	session_close(&sh->s);
	workspace_close(sh->other);
}

/* Method and URI of the next notification. */
static struct str next_heard(struct session *s)
{
	struct jv *v = session_next(s);
	struct str method = jv_get_str(v, "method"), uri = jv_get_str(jv_get(v, "params"), "uri");

	return arena_printf(s->arena, "%.*s %.*s", STR_ARG(str_from(method, str_rfind_char(method, '/') + 1)),
			    STR_ARG(uri));
}

TEST(a_subscriber_hears_once_of_what_another_process_or_program_changes)
{
	struct shared sh;
	struct jv *v;
	char name[80];
	FILE *f;

	shared_open(&sh);
	session_ask(&sh.s, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"resources/subscribe\",\"params\":{\"uri\":"
			   "\"stead:///a\"}}");
	shared_write(&sh, "a", "one");
	CHECK_STR(next_heard(&sh.s), STR("updated stead:///a"));
	CHECK_STR(next_heard(&sh.s), STR("list_changed "));
	v = session_ask(&sh.s, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"resources/read\",\"params\":{\"uri\":"
			       "\"stead:///a\"}}");
	CHECK_STR(jv_get_str(jv_at(jv_get(jv_get(v, "result"), "contents"), 0), "text"), STR("one"));
	CHECK_STR(heard(&sh.s, "edit_file", "{\"path\":\"a\",\"old_text\":\"one\",\"new_text\":\"two\"}"),
		  STR("updated(stead:///a) "));
	snprintf(name, sizeof(name), "%s/test/files/a", sh.dir);
	f = fopen(name, "w");
	CHECK(f && fputs("by hand", f) >= 0 && fclose(f) == 0);
	CHECK_STR(next_heard(&sh.s), STR("updated stead:///a"));
	shared_write(&sh, "b", "end"); /* nothing came between, so each of the two changes was announced once */
	CHECK_STR(next_heard(&sh.s), STR("list_changed "));
	shared_close(&sh);
}

TEST(a_subscriber_hears_when_a_directory_above_goes)
{
	struct session s;

	start_legacy(&s);
	session_write(&s, "x/y/z", "1");
	session_ask(&s, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"resources/subscribe\",\"params\":{\"uri\":"
			"\"stead:///x/y/z\"}}");
	CHECK_STR(heard(&s, "move_file", "{\"from\":\"x\",\"to\":\"w\"}"),
		  STR("updated(stead:///x/y/z) list_changed list_changed "));
	session_close(&s);
}

TEST(a_listener_is_acknowledged_first_with_what_it_will_get)
{
	const struct jv *params, *accepted;
	struct session s;
	struct jv *v;

	session_open(&s);
	v = session_ask(&s, LISTEN("\"L1\"", "{\"resourcesListChanged\":true,\"toolsListChanged\":true,"
					     "\"resourceSubscriptions\":[\"stead:///a\"]}"));
	params = jv_get(v, "params");
	accepted = jv_get(params, "notifications");
	CHECK_STR(jv_get_str(v, "method"), STR("notifications/subscriptions/acknowledged"));
	CHECK_STR(jv_get_str(jv_get(params, "_meta"), "io.modelcontextprotocol/subscriptionId"), STR("L1"));
	CHECK(jv_get_bool(accepted, "resourcesListChanged", false));
	CHECK(!jv_get(accepted, "toolsListChanged"));
	CHECK_STR(jv_str_of(jv_at(jv_get(accepted, "resourceSubscriptions"), 0)), STR("stead:///a"));
	session_close(&s);
}

TEST(every_notification_names_its_listener_and_none_comes_after_cancellation)
{
	struct session s;
	struct jv *v;

	session_open(&s);
	session_ask(&s, LISTEN("5", "{\"resourceSubscriptions\":[\"stead:///a\"]}"));
	session_line(&s, "{\"jsonrpc\":\"2.0\",\"id\":6,\"method\":\"tools/call\",\"params\":{\"name\":\"write_file\","
			 "\"arguments\":{\"path\":\"a\",\"content\":\"x\"}}}");
	v = session_next(&s);
	CHECK_STR(jv_get_str(v, "method"), STR("notifications/resources/updated"));
	CHECK_INT(jv_get_int(jv_get(jv_get(v, "params"), "_meta"), "io.modelcontextprotocol/subscriptionId", 0), 5);
	CHECK_INT(jv_get_int(session_next(&s), "id", 0), 6);
	session_line(&s, CANCEL("5"));
	CHECK_STR(heard(&s, "append_file", "{\"path\":\"a\",\"content\":\"x\"}"), STR(""));
	session_finish(&s);
	CHECK(!session_next(&s));
	session_close(&s);
}

TEST(an_open_listener_gets_its_result_when_the_server_ends)
{
	const struct jv *result;
	struct session s;
	struct jv *v;

	session_open(&s);
	session_ask(&s, LISTEN("5", "{\"resourcesListChanged\":true}"));
	session_finish(&s);
	v = session_next(&s);
	result = jv_get(v, "result");
	CHECK_INT(jv_get_int(v, "id", 0), 5);
	CHECK_STR(jv_get_str(result, "resultType"), STR("complete"));
	CHECK_INT(jv_get_int(jv_get(result, "_meta"), "io.modelcontextprotocol/subscriptionId", 0), 5);
	session_close(&s);
}

TEST(the_id_of_an_open_request_cannot_be_used_again)
{
	struct session s;

	session_open(&s);
	session_ask(&s, LISTEN("5", "{\"resourcesListChanged\":true}"));
	CHECK_INT(code_of(session_ask(&s, "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\"}")), RPC_INVALID_REQUEST);
	CHECK_INT(code_of(session_ask(&s, LISTEN("5", "{}"))), RPC_INVALID_REQUEST);
	CHECK_INT(code_of(session_ask(&s, "{\"jsonrpc\":\"2.0\",\"id\":\"5\",\"method\":\"ping\"}")), 0);
	session_line(&s, CANCEL("5"));
	CHECK_INT(code_of(session_ask(&s, "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\"}")), 0);
	session_close(&s);
}

TEST(a_listener_that_asks_for_nothing_that_can_be_watched_is_refused)
{
	struct session s;

	session_open(&s);
	CHECK_INT(code_of(session_ask(&s, LISTEN("5", "7"))), RPC_INVALID_PARAMS);
	CHECK_INT(code_of(session_ask(&s, LISTEN("5", "{\"resourceSubscriptions\":[\"stead:///a\",\"file:///b\"]}"))),
		  RPC_INVALID_PARAMS);
	CHECK_INT(code_of(session_ask(&s, "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\"}")), 0);
	session_close(&s);
}

/* Small files in a directory of the person's own, and their end. */
static void write_files(struct session *s, int count)
{
	struct ctx ctx = {.arena = s->arena};
	struct err err = {0};

	for (int i = 0; i < count; i++) {
		struct wpath path = {arena_printf(s->arena, "d/%d", i)};

		CHECK_OK(store_write(workspace_files(s->ws), &ctx, path, STR("needle\n"), (struct store_cond){0}, NULL,
				     &err),
			 err);
	}
}

static void remove_files(struct session *s)
{
	struct ctx ctx = {.arena = s->arena};
	struct err err = {0};

	CHECK_OK(store_remove(workspace_files(s->ws), &ctx, WPATH_ROOT, true, (struct store_cond){0}, NULL, &err), err);
}

/* A call that waits for a change that never comes. */
#define WAIT                                                                                                           \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"changes\",\"arguments\":{"     \
	"\"since_revision\":0,\"wait_ms\":60000}}}"

TEST(a_call_that_waits_does_not_hold_up_a_quick_one_and_is_not_answered_when_cancelled)
{
	struct session s;

	session_open(&s);
	session_line(&s, WAIT);
	session_line(&s, PING);
	CHECK_STR(jv_get_str(session_next(&s), "id"), STR("ping"));
	session_line(&s, CANCEL("1"));
	session_finish(&s);
	CHECK(!session_next(&s));
	session_close(&s);
}

TEST(progress_rises_strictly_and_ends_before_the_answer)
{
	const char *dir = temp_dir_new();
	int64_t last = -1, reports = 0;
	struct session s;
	struct jv *v;

	session_open_at(&s, str_of(dir));
	write_files(&s, 1100);
	session_line(&s, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"_meta\":{"
			 "\"progressToken\":\"p\"},\"name\":\"grep\",\"arguments\":{\"pattern\":\"needle\"}}}");
	while ((v = session_next(&s)) && !jv_get(v, "id")) {
		const struct jv *params = jv_get(v, "params");

		CHECK_STR(jv_get_str(v, "method"), STR("notifications/progress"));
		CHECK_STR(jv_get_str(params, "progressToken"), STR("p"));
		CHECK(jv_get_int(params, "progress", -1) > last);
		last = jv_get_int(params, "progress", -1);
		reports++;
	}
	CHECK(reports > 0);
	CHECK(jv_get(v, "result"));
	remove_files(&s);
	session_close(&s);
}
