/* SPDX-License-Identifier: Apache-2.0 */
/* What every request meets before its route: framing, names, limits; and clients that are slow, wrong or gone. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "client.h"

static struct reply send_raw(struct site *s, const char *bytes)
{
	struct reply reply;
	static struct wire w;

	wire_open(&w, s);
	wire_send(&w, str_of(bytes));
	reply = wire_read(&w, false);
	test_close(&w);
	return reply;
}

TEST(health_needs_no_token)
{
	static struct site s;

	site_start(&s, false);
	CHECK_STATUS(get(&s, "/healthz"), 200);
	CHECK_STATUS(get(&s, "/readyz"), 200);
	CHECK_STATUS(get(&s, "/metrics"), 401);
	CHECK_STATUS(get(&s, "/v1/workspaces"), 401);
}

TEST(an_error_is_a_problem_document)
{
	static struct site s;
	struct reply reply;

	site_start(&s, true);
	reply = ask(&s, "GET", "/v1/workspaces/demo/files/none.md", "X-Request-Id: abc-1\r\n", STR_NONE);
	CHECK_STATUS(reply, 404);
	CHECK_STR(head_value(reply.head, "Content-Type"), STR("application/problem+json"));
	CHECK_STR(head_value(reply.head, "X-Request-Id"), STR("abc-1"));
	CHECK_STR(jv_get_str(json_of(&s, reply), "kind"), STR("not_found"));
	CHECK_INT(jv_get_int(json_of(&s, reply), "status", 0), 404);
	CHECK_STR(jv_get_str(json_of(&s, reply), "request_id"), STR("abc-1"));
	CHECK_STARTS(jv_get_str(json_of(&s, reply), "detail"), STR("read none.md: there is no such file"));
}

TEST(a_missing_workspace_is_named_without_its_place)
{
	static struct site s;
	struct reply reply;

	site_start(&s, true);
	reply = get(&s, "/v1/workspaces/nowhere/files/a.md");
	CHECK_STATUS(reply, 404);
	CHECK_STR(jv_get_str(json_of(&s, reply), "detail"),
		  STR("there is no workspace \"nowhere\"; GET /v1/workspaces lists them"));
}

TEST(a_request_id_that_could_break_a_log_is_replaced)
{
	static struct site s;

	site_start(&s, true);
	CHECK_INT(head_value(ask(&s, "GET", "/healthz", "X-Request-Id: a\"b\r\n", STR_NONE).head, "X-Request-Id").len,
		  16);
	CHECK_INT(head_value(get(&s, "/healthz").head, "X-Request-Id").len, 16);
}

TEST(other_names_and_pages_are_refused)
{
	static struct site s;

	site_start(&s, true);
	CHECK_STATUS(send_raw(&s, "GET /healthz HTTP/1.1\r\nHost: evil.example\r\n\r\n"), 403);
	CHECK_STATUS(send_raw(&s, "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1.evil.example\r\n\r\n"), 403);
	CHECK_STATUS(send_raw(&s, "GET /healthz HTTP/1.1\r\nHost: localhost:9\r\n\r\n"), 200);
	CHECK_STATUS(send_raw(&s, "GET /healthz HTTP/1.1\r\nHost: [::1]:9\r\n\r\n"), 200);
	CHECK_STATUS(send_raw(&s, "GET /healthz HTTP/1.1\r\nHost: a\r\nHost: 127.0.0.1\r\n\r\n"), 400);
	CHECK_STATUS(send_raw(&s, "GET /healthz HTTP/1.1\r\n\r\n"), 400);
	CHECK_STATUS(ask(&s, "GET", "/healthz", "Origin: http://evil.example\r\n", STR_NONE), 403);
	CHECK_STATUS(ask(&s, "GET", "/healthz", "Origin: null\r\n", STR_NONE), 403);
	CHECK_STATUS(ask(&s, "GET", "/healthz", "Origin: http://127.0.0.1\r\n", STR_NONE), 200);
	CHECK_STATUS(ask(&s, "GET", "/healthz", "Origin: http://127.0.0.1:8080\r\n", STR_NONE), 403);
}

TEST(framing_that_can_be_read_in_two_ways_is_refused)
{
	static struct site s;

	site_start(&s, true);
	CHECK_STATUS(send_raw(&s, "PUT /v1/workspaces/demo/files/a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n"
				  "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
		     400);
	CHECK_STATUS(send_raw(&s, "PUT /v1/workspaces/demo/files/a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n"
				  "Content-Length: 2\r\n\r\nab"),
		     400);
	CHECK_STATUS(send_raw(&s, "PUT /v1/workspaces/demo/files/a HTTP/1.1\r\nHost: localhost\r\n"
				  "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
		     501);
	CHECK_STATUS(send_raw(&s, "PUT /v1/workspaces/demo/files/a HTTP/1.1\r\nHost: localhost\r\n"
				  "Content-Length: -1\r\n\r\n"),
		     400);
	CHECK_STATUS(send_raw(&s, "GET http://localhost/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"), 400);
	CHECK_STATUS(get(&s, "/v1/workspaces/demo/files/a"), 404);
}

/* To some proxies "Content-Length :" is the length of the body; what they take for a body must not become a request. */
TEST(nothing_is_read_after_a_head_that_is_unclear)
{
	static const char *const heads[] = {
		"Host: localhost\r\nContent-Length : 40\r\n",
		"Host: localhost\r\nTransfer-Encoding : chunked\r\n",
		"Host: localhost\r\nX Y: z\r\n",
		"Host: localhost\r\nHost: localhost\r\n",
		"Host: localhost\r\nStead-User: a\r\nStead-User: b\r\n",
	};
	static struct site s;

	site_start(&s, true);
	for (size_t i = 0; i < COUNT(heads); i++) {
		static struct wire w;
		char end;

		wire_open(&w, &s);
		wire_send(&w, arena_printf(s.arena,
					   "PUT /v1/workspaces/demo/files/a HTTP/1.1\r\n%s\r\n"
					   "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
					   heads[i]));
		CHECK_STATUS(wire_read(&w, false), 400);
		CHECK(recv(w.fd, &end, 1, 0) <= 0);
		test_close(&w);
	}
	CHECK_STATUS(get(&s, "/v1/workspaces/demo/files/a"), 404);
}

TEST(a_query_of_thousands_of_parameters_is_answered)
{
	static struct site s;
	struct buf target;

	site_start(&s, true);
	buf_init(&target, s.arena, 64 * KIB);
	buf_lit(&target, "/v1/workspaces/demo/files?path=");
	while (target.len < 30000)
		buf_lit(&target, "&path=x");
	CHECK_STATUS(get(&s, arena_cstr(s.arena, buf_str(&target))), 400);
	CHECK_STATUS(get(&s, "/v1/workspaces/demo/files?path=&recursive=true"), 200);
}

TEST(a_user_is_text_of_one_line)
{
	static struct site s;

	site_start(&s, true);
	CHECK_STATUS(ask(&s, "GET", "/v1/workspaces/demo/files", "Stead-User: al%20ice\r\n", STR_NONE), 200);
	CHECK_STATUS(ask(&s, "GET", "/v1/workspaces/demo/files", "Stead-User: a%00b\r\n", STR_NONE), 400);
	CHECK_STATUS(ask(&s, "GET", "/v1/workspaces/demo/files", "Stead-User: a%0d%0aX: y\r\n", STR_NONE), 400);
}

TEST(a_blank_in_a_target_is_named)
{
	static struct site s;
	struct reply reply;

	site_start(&s, true);
	reply = get(&s, "/v1/workspaces/demo/files/a b.md");
	CHECK_STATUS(reply, 400);
	CHECK_HAS(jv_get_str(json_of(&s, reply), "detail"), STR("write it as %20"));
}

TEST(a_body_in_a_coding_is_not_taken_for_the_file)
{
	static struct site s;

	site_start(&s, true);
	CHECK_STATUS(ask(&s, "PUT", "/v1/workspaces/demo/files/a", "Content-Encoding: gzip\r\n", STR("\x1f\x8b")), 415);
	CHECK_STATUS(ask(&s, "PUT", "/v1/workspaces/demo/files/a", "Content-Encoding: identity\r\n", STR("a")), 201);
}

TEST(head_is_get_without_a_body)
{
	static struct site s;
	struct reply reply;

	site_start(&s, true);
	reply = ask(&s, "HEAD", "/healthz", NULL, STR_NONE);
	CHECK_STATUS(reply, 200);
	CHECK_STR(head_value(reply.head, "Content-Length"), STR("3"));
	CHECK_STATUS(ask(&s, "HEAD", "/v1/workspaces/demo/files", NULL, STR_NONE), 200);
	CHECK_STATUS(ask(&s, "HEAD", "/v1/workspaces/demo/files/none", NULL, STR_NONE), 404);
	CHECK_STATUS(ask(&s, "HEAD", "/v1/workspaces/demo/events", NULL, STR_NONE), 405);
	CHECK_STATUS(ask(&s, "HEAD", "/links/0", NULL, STR_NONE), 405);
	CHECK_STATUS(ask(&s, "HEAD", "/mcp/demo", NULL, STR_NONE), 405);
}

TEST(options_lists_the_methods_of_an_address)
{
	static struct site s;
	struct reply reply;

	site_start(&s, false);
	reply = ask(&s, "OPTIONS", "/v1/workspaces/demo/files", NULL, STR_NONE);
	CHECK_STATUS(reply, 204);
	CHECK_STR(head_value(reply.head, "Allow"), STR("GET, HEAD, POST, OPTIONS"));
	CHECK(!head_value(reply.head, "Access-Control-Allow-Origin").ptr);
	CHECK_STATUS(ask(&s, "OPTIONS", "/nothing", NULL, STR_NONE), 404);
}

TEST(pages_of_an_origin_that_was_named_may_use_the_server)
{
	static const char preflight[] = "Origin: https://app.example\r\nAccess-Control-Request-Method: PUT\r\n"
					"Access-Control-Request-Headers: authorization,if-match\r\n";
	const struct str origins[] = {STR("https://app.example")};
	static struct site s;
	struct reply reply;

	site_start_with(&s, (struct serve_opts){.origins = origins, .origin_count = 1});
	reply = ask(&s, "OPTIONS", "/v1/workspaces/demo/files/a", preflight, STR_NONE);
	CHECK_STATUS(reply, 204);
	CHECK_STR(head_value(reply.head, "Access-Control-Allow-Origin"), STR("https://app.example"));
	CHECK_HAS(head_value(reply.head, "Access-Control-Allow-Methods"), STR("PUT"));
	CHECK_STR(head_value(reply.head, "Access-Control-Allow-Headers"), STR("authorization,if-match"));
	reply = ask(&s, "OPTIONS", "/v1/workspaces/demo/files/a",
		    "Origin: https://app.example\r\nAccess-Control-Request-Method: PUT\r\n"
		    "Access-Control-Request-Headers: a<script>\r\n",
		    STR_NONE);
	CHECK(!head_value(reply.head, "Access-Control-Allow-Headers").ptr);
	/* an error can be read by the page, too */
	reply = ask(&s, "GET", "/v1/workspaces", "Origin: https://app.example\r\n", STR_NONE);
	CHECK_STATUS(reply, 401);
	CHECK_STR(head_value(reply.head, "Access-Control-Allow-Origin"), STR("https://app.example"));
	CHECK_HAS(head_value(reply.head, "Access-Control-Expose-Headers"), STR("ETag"));
	CHECK_STR(head_value(reply.head, "Vary"), STR("Origin"));
	reply = ask(&s, "OPTIONS", "/v1/workspaces/demo/files/a",
		    "Origin: https://evil.example\r\nAccess-Control-Request-Method: PUT\r\n", STR_NONE);
	CHECK_STATUS(reply, 403);
	CHECK(!head_value(reply.head, "Access-Control-Allow-Origin").ptr);
}

/* A client that sent no body need not connect again after an error. */
TEST(an_error_leaves_the_connection_open)
{
	static struct site s;
	static struct wire w;

	site_start(&s, false);
	wire_open(&w, &s);
	for (int i = 0; i < 3; i++) {
		wire_send(&w, STR("GET /v1/workspaces HTTP/1.1\r\nHost: localhost\r\n\r\n"));
		CHECK_STATUS(wire_read(&w, false), 401);
	}
	test_close(&w);
}

TEST(a_body_where_none_belongs_is_refused)
{
	static struct site s;

	site_start(&s, true);
	CHECK_STATUS(ask(&s, "GET", "/healthz", NULL, STR("body")), 400);
	CHECK_STATUS(ask(&s, "DELETE", "/v1/workspaces/demo/files/a", NULL, STR("body")), 400);
}

TEST(a_body_that_is_announced_too_large_is_refused_before_it_comes)
{
	static struct site s;
	struct reply reply;

	site_start(&s, true);
	reply = send_raw(&s, "POST /v1/workspaces/demo/tools/ls HTTP/1.1\r\nHost: localhost\r\n"
			     "Content-Length: 99999999999\r\n\r\n");
	CHECK_STATUS(reply, 413);
	CHECK_STR(jv_get_str(json_of(&s, reply), "detail"), STR("the body of this request may have at most 64.0 MiB"));
}

TEST(a_head_that_does_not_end_is_refused)
{
	static struct site s;
	static struct wire w;
	struct str line = STR("X-Filler: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n");

	site_start(&s, true);
	wire_open(&w, &s);
	wire_send(&w, STR("GET /healthz HTTP/1.1\r\nHost: localhost\r\n"));
	for (int i = 0; i < 2000; i++)
		if (send(w.fd, line.ptr, line.len, MSG_NOSIGNAL) < 0)
			break;
	CHECK(wire_read(&w, false).status / 100 != 2);
	CHECK_STATUS(get(&s, "/healthz"), 200);
}

TEST(unknown_addresses_methods_and_parameters_are_named)
{
	static struct site s;
	struct reply reply;

	site_start(&s, true);
	CHECK_STATUS(get(&s, "/nothing"), 404);
	CHECK_STATUS(get(&s, "/v1/workspaces/"), 404);
	CHECK_STATUS(get(&s, "/healthz/"), 404);
	reply = ask(&s, "PATCH", "/v1/workspaces/demo/files/a", NULL, STR_NONE);
	CHECK_STATUS(reply, 405);
	CHECK_STR(head_value(reply.head, "Allow"), STR("GET, HEAD, PUT, DELETE, OPTIONS"));
	reply = get(&s, "/v1/workspaces/demo/files?pth=x");
	CHECK_STATUS(reply, 400);
	CHECK_HAS(jv_get_str(json_of(&s, reply), "detail"),
		  STR("unknown parameter \"pth\"; it may have: path recursive"));
	CHECK_STATUS(get(&s, "/v1/workspaces/demo/files?limit=5&limit=6"), 400);
	CHECK_STATUS(get(&s, "/v1/workspaces/demo/files?path=%zz"), 400);
	CHECK_STATUS(get(&s, "/v1/workspaces/demo/files?path=a%00b"), 400);
}

TEST(one_connection_carries_many_requests)
{
	static struct site s;
	static struct wire w;

	site_start(&s, true);
	wire_open(&w, &s);
	for (int i = 0; i < 20; i++) /* all at once: pipelined */
		wire_send(&w, i % 2 ? STR("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
				    : STR("GET /v1/workspaces/demo/files/none HTTP/1.1\r\nHost: localhost\r\n\r\n"));
	for (int i = 0; i < 20; i++)
		CHECK_STATUS(wire_read(&w, false), i % 2 ? 200 : 404);
}

TEST(slow_and_silent_clients_delay_nobody)
{
	static struct site s;
	static struct wire idle[200], slow[40];

	site_start(&s, true);
	for (int i = 0; i < 200; i++)
		wire_open(&idle[i], &s);
	for (int i = 0; i < 40; i++) { /* more than there are workers, each with half a body */
		wire_open(&slow[i], &s);
		wire_send(&slow[i], arena_printf(s.arena,
						 "PUT /v1/workspaces/demo/files/slow%d HTTP/1.1\r\n"
						 "Host: localhost\r\nContent-Length: 10\r\n\r\nhalf",
						 i));
	}
	CHECK_STATUS(ask(&s, "PUT", "/v1/workspaces/demo/files/quick", NULL, STR("x")), 201);
	CHECK_STATUS(get(&s, "/v1/workspaces/demo/files/quick"), 200);
	CHECK_STATUS(get(&s, "/v1/workspaces/demo/files/slow0"), 404);
	for (int i = 0; i < 40; i++)
		wire_send(&slow[i], STR("-whole"));
	for (int i = 0; i < 40; i++)
		CHECK_STATUS(wire_read(&slow[i], false), 201);
	CHECK_STR(get(&s, "/v1/workspaces/demo/files/slow7").body, STR("half-whole"));
}

TEST(a_head_or_a_body_that_comes_too_slowly_is_cut_off)
{
	static const char *const beginnings[] = {"GET /healthz HTTP/1.1\r\nHos",
						 ("PUT /v1/workspaces/demo/files/x HTTP/1.1\r\nHost: localhost\r\n"
						  "Content-Length: 1000\r\n\r\n"),
						 ""};
	static struct site s;
	static struct wire w;

	site_start_with(&s, (struct serve_opts){.is_open = true, .head_s = 1});
	for (size_t i = 0; i < COUNT(beginnings); i++) {
		wire_open(&w, &s);
		wire_send(&w, str_of(beginnings[i]));
		while (wire_more(&w)) /* ends only when the server closes */
			continue;
		test_close(&w);
	}
	CHECK_STATUS(get(&s, "/v1/workspaces/demo/files/x"), 404);
}

TEST(junk_ends_its_own_connection_only)
{
	static const char *const junk[] = {"\r\n\r\n\r\n", "GET\r\n\r\n",
					   "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
					   ("PUT /v1/workspaces/demo/files/x HTTP/1.1\r\nHost: localhost\r\n"
					    "Transfer-Encoding: chunked\r\n\r\nff\r\n")};
	static struct site s;

	site_start(&s, true);
	for (size_t i = 0; i < COUNT(junk); i++) {
		static struct wire w;

		wire_open(&w, &s);
		wire_send(&w, str_of(junk[i]));
		test_close(&w);
	}
	CHECK_STATUS(get(&s, "/healthz"), 200);
	CHECK_STATUS(get(&s, "/v1/workspaces/demo/files/x"), 404);
}

TEST(targets_and_bodies_that_are_wrong_are_refused)
{
	static const char *const wrong[] = {
		"GET / HTTP/9.9\r\nHost: localhost\r\n\r\n",
		"GET /%00 HTTP/1.1\r\nHost: localhost\r\n\r\n",
		("PUT /v1/workspaces/demo/files/x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
		 "zzzz\r\n"),
		("PUT /v1/workspaces/demo/files/x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
		 "ffffffffffffffffff\r\n"),
		"GET /v1/workspaces/demo/files/../../x HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"GET /v1/workspaces/%2e%2e/files HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"GET /v1/workspaces/demo/files/%2e%2e%2fx HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"GET /v1/workspaces/demo/files//x HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"GET /v1/workspaces/demo/files/a%0d%0ab HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"GET /v1/workspaces/demo/files/a%00b HTTP/1.1\r\nHost: localhost\r\n\r\n",
	};
	static struct site s;

	site_start(&s, true);
	for (size_t i = 0; i < COUNT(wrong); i++) {
		int status = send_raw(&s, wrong[i]).status;

		if (status / 100 != 4 && status != 505)
			TEST_FAIL("%s gives %d", wrong[i], status);
	}
	CHECK_STATUS(get(&s, "/v1/workspaces/demo/files/x"), 404);
}

TEST(the_numbers_name_routes_and_no_tenant)
{
	static struct site s;
	struct str text;
	int tries = 0;

	site_start(&s, true);
	get(&s, "/v1/workspaces/demo/files/secret-name.md");
	/* a request is counted when its answer was sent, which may be after the client has read it */
	do
		text = get(&s, "/metrics").body;
	while (str_find(text, STR("route=\"read_file\",status"), 0) == SIZE_MAX && tries++ < 1000);
	CHECK_HAS(text, STR("stead_http_requests_total{route=\"read_file\",status=\"4xx\"} 1\n"));
	CHECK_HAS(text, STR("stead_http_request_seconds_count{route=\"read_file\"} 1\n"));
	CHECK_LACKS(text, STR("secret-name"));
	CHECK_LACKS(text, STR("demo"));
}

TEST(an_open_server_is_for_loopback_only)
{
	static struct site s;
	struct serve_opts opts = {.host = STR("0.0.0.0"), .is_open = true, .relaxed = true};
	struct serve *serve;
	struct err err = {0};

	site_start(&s, true);
	opts.store_url = s.store_url;
	CHECK_ERR(serve_start(&opts, &serve, &err), err, ERR_DENIED);
	opts.is_open = false;
	CHECK_ERR(serve_start(&opts, &serve, &err), err, ERR_DENIED);
	CHECK_HAS(str_of(err.msg), STR("stead token create"));
}

TEST(a_port_that_is_taken_is_reported)
{
	static struct site s;
	struct serve_opts opts = {.host = STR("127.0.0.1"), .is_open = true, .relaxed = true};
	struct serve *serve;
	struct err err = {0};

	site_start(&s, true);
	opts.store_url = s.store_url;
	opts.port = s.port;
	CHECK_ERR(serve_start(&opts, &serve, &err), err, ERR_EXISTS);
}

static atomic_bool knocking;

/* Connects and asks, again and again; whether it is answered does not matter. */
static void *knock(void *arg)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(((struct site *)arg)->port)};
	struct str request = STR("GET /v1/workspaces/demo/files HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
	char answer[512];

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	while (atomic_load(&knocking)) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

		if (connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0 &&
		    send(fd, request.ptr, request.len, MSG_NOSIGNAL) > 0)
			(void)!recv(fd, answer, sizeof(answer), 0);
		close(fd);
	}
	return NULL;
}

/* STEAD_STOP_ROUNDS: how often. */
TEST(a_server_that_is_stopped_under_load_ends)
{
	const char *given = getenv("STEAD_STOP_ROUNDS");
	int rounds = given ? (int)strtol(given, NULL, 10) : 10;

	for (int round = 0; round < rounds; round++) {
		static struct site s;
		pthread_t threads[4];

		site_start(&s, true);
		atomic_store(&knocking, true);
		for (size_t i = 0; i < COUNT(threads); i++)
			CHECK(pthread_create(&threads[i], NULL, knock, &s) == 0);
		CHECK_STATUS(get(&s, "/healthz"), 200);
		CHECK(serve_stop(s.serve, 5000));
		s.serve = NULL;
		atomic_store(&knocking, false);
		for (size_t i = 0; i < COUNT(threads); i++)
			pthread_join(threads[i], NULL);
		test_close(&s);
	}
}
