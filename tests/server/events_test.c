/* SPDX-License-Identifier: Apache-2.0 */
/* The feed over HTTP: no gap, no repeat, from any revision, to clients that wait without holding a thread. */
#include "client.h"

#define FILES  "/v1/workspaces/demo/files"
#define EVENTS "/v1/workspaces/demo/events"

static void put(struct site *s, const char *name)
{
	struct reply reply = ask(s, "PUT", arena_printf(s->arena, FILES "/%s", name).ptr, NULL, STR("x"));

	CHECK(reply.status == 200 || reply.status == 201); /* some write a file again */
}

static void watch(struct wire *w, struct site *s, const char *target, const char *extra)
{
	wire_open(w, s);
	wire_send(w,
		  arena_printf(s->arena, "GET %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n", target, extra ? extra : ""));
}

/* Waits until the text came so many times. */
static void wait_for(struct wire *w, const char *text, size_t times)
{
	for (;;) {
		size_t found = 0, at = 0;

		while ((at = str_find(str_n(w->buf, w->len), str_of(text), at)) != SIZE_MAX && ++found)
			at++;
		if (found >= times)
			return;
		CHECK(wire_more(w));
	}
}

static struct str paths_of(struct site *s, const struct jv *page)
{
	struct buf b;

	buf_init(&b, s->arena, 10000);
	for (const struct jv_member *m = jv_first(jv_get(page, "changes")); m; m = m->next) {
		buf_add(&b, jv_get_str(m->value, "path"));
		buf_char(&b, ' ');
	}
	return b.ptr ? buf_str(&b) : STR("");
}

TEST(a_poll_gives_what_came_after)
{
	static struct site s;
	const struct jv *page;

	site_start(&s, true);
	put(&s, "a");
	put(&s, "b");
	put(&s, "d/c");
	page = json_of(&s, get(&s, EVENTS "?since=0&wait=0"));
	CHECK_STR(paths_of(&s, page), STR("a b d/c "));
	CHECK_STR(paths_of(&s, json_of(&s, get(&s, EVENTS "?since=1&wait=0&limit=1"))), STR("b "));
	CHECK_STR(paths_of(&s, json_of(&s, get(&s, EVENTS "?since=0&wait=0&path=d"))), STR("d/c "));
	page = json_of(
		&s,
		get(&s,
		    arena_printf(s.arena, EVENTS "?wait=0&since=%lld", (long long)jv_get_int(page, "next", -1)).ptr));
	CHECK_INT(jv_count(jv_get(page, "changes")), 0);
	CHECK_STATUS(get(&s, EVENTS "?since=x&wait=0"), 400);
	CHECK_STATUS(get(&s, EVENTS "?since=0&wait=99999"), 400);
}

TEST(a_revision_that_does_not_exist_yet_is_refused)
{
	static struct site s;
	struct reply reply;

	site_start(&s, true);
	put(&s, "a");
	CHECK_STATUS(get(&s, EVENTS "?since=1&wait=0"), 200);
	reply = get(&s, EVENTS "?since=2&wait=0");
	CHECK_STATUS(reply, 404);
	CHECK_HAS(jv_get_str(json_of(&s, reply), "detail"), STR("there is no revision 2; the newest is 1"));
	CHECK_STATUS(ask(&s, "GET", EVENTS, "Last-Event-ID: 500\r\n", STR_NONE), 404);
}

TEST(a_poll_waits_for_a_change)
{
	static struct site s;
	static struct wire w;

	site_start(&s, true);
	put(&s, "a");
	watch(&w, &s, EVENTS "?since=1&wait=60", NULL);
	put(&s, "b");
	CHECK_STR(paths_of(&s, json_of(&s, wire_read(&w, false))), STR("b "));
}

TEST(a_poll_ends_without_a_change)
{
	static struct site s;

	site_start(&s, true);
	put(&s, "a");
	CHECK_STR(get(&s, EVENTS "?since=1&wait=1").body, STR("{\"changes\":[],\"next\":1,\"more\":false}"));
}

TEST(a_stream_gives_each_change_once)
{
	static struct site s;
	static struct wire w;

	site_start(&s, true);
	put(&s, "a");
	watch(&w, &s, EVENTS "?since=0", NULL);
	wait_for(&w, "\nid: 1\n", 1);
	for (int i = 0; i < 30; i++)
		put(&s, arena_printf(s.arena, "f%d", i).ptr);
	wait_for(&w, "\nid: 31\n", 1);
	for (int i = 2; i <= 31; i++) {
		struct str id = arena_printf(s.arena, "\nid: %d\n", i), text = str_n(w.buf, w.len);
		size_t at = str_find(text, id, 0);

		CHECK(at != SIZE_MAX);
		CHECK(str_find(text, id, at + 1) == SIZE_MAX);
	}
	CHECK_HAS(str_n(w.buf, w.len), STR("event: change\ndata: {\"revision\":1,\"path\":\"a\""));
}

TEST(a_stream_goes_on_after_the_last_event)
{
	static struct site s;
	static struct wire w;

	site_start(&s, true);
	put(&s, "a");
	put(&s, "b");
	put(&s, "c");
	watch(&w, &s, EVENTS "?since=0", "Last-Event-ID: 2\r\n");
	wait_for(&w, "\nid: 3\n", 1);
	CHECK_LACKS(str_n(w.buf, w.len), STR("\nid: 2\n"));
}

TEST(changes_by_other_processes_arrive)
{
	static struct site s;
	static struct wire w;
	struct workspace_opts opts = {.name = STR("demo"), .relaxed = true};
	struct workspace *ws;
	struct ctx ctx;
	struct err err = {0};

	site_start(&s, true);
	put(&s, "a");
	watch(&w, &s, EVENTS "?since=1", NULL);
	wait_for(&w, "retry:", 1);
	/* another handle of the same store is to it what another process is */
	opts.store_url = s.store_url;
	ctx = (struct ctx){.arena = s.arena};
	CHECK_OK(workspace_open(&opts, &ws, &err), err);
	CHECK_OK(store_write(workspace_files(ws), &ctx, (struct wpath){STR("other")}, STR("x"), (struct store_cond){0},
			     NULL, &err),
		 err);
	workspace_close(ws);
	wait_for(&w, "\"path\":\"other\"", 1);
}

TEST(who_waits_holds_no_thread)
{
	static struct site s;
	static struct wire polls[100], streams[100];

	site_start(&s, true);
	put(&s, "a");
	for (int i = 0; i < 100; i++) { /* many more than there are workers */
		watch(&polls[i], &s, EVENTS "?since=1&wait=60", NULL);
		watch(&streams[i], &s, EVENTS "?since=1", NULL);
	}
	for (int i = 0; i < 100; i++)
		wait_for(&streams[i], "retry:", 1);
	put(&s, "b");
	for (int i = 0; i < 100; i++) {
		CHECK_STR(paths_of(&s, json_of(&s, wire_read(&polls[i], false))), STR("b "));
		wait_for(&streams[i], "\nid: 2\n", 1);
	}
}

TEST(clients_that_go_away_are_forgotten)
{
	static struct site s;
	static struct wire w;

	site_start(&s, true);
	put(&s, "a");
	for (int i = 0; i < 50; i++) {
		watch(&w, &s, i % 2 ? EVENTS "?since=1" : EVENTS "?since=0", NULL);
		if (i % 3)
			wait_for(&w, "retry:", 1);
		test_close(&w);
	}
	put(&s, "b"); /* a dead client is noticed when it is written to */
	for (int i = 0; i < 200; i++) {
		if (str_find(get(&s, "/metrics").body, STR("\nstead_events_watchers 0\n"), 0) != SIZE_MAX)
			return;
		put(&s, "c");
	}
	TEST_FAIL("watchers stay");
}

TEST(hidden_files_and_other_users_are_not_in_the_feed)
{
	static struct site s;
	struct str text;

	site_start(&s, true);
	CHECK_STATUS(ask(&s, "PUT", FILES "/mine", "Stead-User: alice\r\n", STR("x")), 201);
	CHECK_STATUS(ask(&s, "PUT", FILES "/yours", "Stead-User: bob\r\n", STR("x")), 201);
	put(&s, "shared");
	text = ask(&s, "GET", EVENTS "?since=0&wait=0", "Stead-User: alice\r\n", STR_NONE).body;
	CHECK_HAS(text, STR("\"mine\""));
	CHECK_LACKS(text, STR("yours"));
	CHECK_LACKS(text, STR("shared"));
	text = get(&s, EVENTS "?since=0&wait=0").body;
	CHECK_LACKS(text, STR("mine"));
	CHECK_LACKS(text, STR("yours"));
}

TEST(the_server_ends_while_clients_wait)
{
	static struct site s;
	static struct wire poll_wire, stream;

	site_start(&s, true);
	put(&s, "a");
	watch(&stream, &s, EVENTS "?since=1", NULL);
	watch(&poll_wire, &s, EVENTS "?since=1&wait=300", NULL);
	wait_for(&stream, "retry:", 1);
	while (str_find(get(&s, "/metrics").body, STR("\nstead_events_watchers 2\n"), 0) == SIZE_MAX)
		continue;
	CHECK(serve_stop(s.serve, 5000));
	s.serve = NULL;
	CHECK_STATUS(wire_read(&poll_wire, false), 200);
	wait_for(&stream, "0\r\n\r\n", 1);
}
