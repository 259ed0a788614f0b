/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP client against a server on loopback, directly and through the proxy that does damage. */
#include "net/http.h"

#include <malloc.h>
#include <pthread.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/limits.h"
#include "net/loopback.h"
#include "servers/proxy.h"
#include "test.h"

#define MS INT64_C(1000000)

/* A client, a server, and the proxy between them. */
struct net {
	struct arena *arena;
	struct ctx ctx;
	struct http *http;
	struct loopback *server;
	struct proxy *proxy;
	struct http_response response;
	struct err err;
};

static struct net *net_open(struct http_opts opts)
{
	struct net *n = xcalloc(1, sizeof(*n));
	char address[64];

	n->arena = arena_new();
	n->ctx.arena = n->arena;
	n->http = http_new(&opts);
	n->server = loopback_start();
	snprintf(address, sizeof(address), "127.0.0.1:%u", loopback_port(n->server));
	n->proxy = proxy_start(address);
	return n;
}

static void net_close(struct net *n)
{
	http_destroy(n->http);
	proxy_stop(n->proxy);
	loopback_stop(n->server);
	arena_destroy(n->arena);
	free(n);
}

static struct str url_of(struct net *n, const char *path)
{
	return arena_printf(n->arena, "http://127.0.0.1:%u%s", proxy_port(n->proxy), path);
}

static int ask(struct net *n, struct http_request req, const char *path)
{
	req.url = url_of(n, path);
	if (!req.method)
		req.method = "GET";
	return http_perform(n->http, &n->ctx, &req, &n->response, &n->err);
}

static int get(struct net *n, const char *path)
{
	return ask(n, (struct http_request){0}, path);
}

/* A body of `length` bytes, or one that fails or ends after `stop`. */
struct body {
	uint64_t length, at, stop;
	unsigned rewinds;
	bool fails;
};

static int body_pull(void *arg, void *to, size_t cap, size_t *ret_len, struct err *err)
{
	struct body *b = arg;
	uint64_t left = b->stop - b->at;

	if (left == 0 && b->fails)
		return err_set(err, ERR_CORRUPT, "the body is rotten");
	*ret_len = cap < left ? cap : (size_t)left;
	memset(to, 'b', *ret_len);
	b->at += *ret_len;
	return 0;
}

static int body_rewind(void *arg, struct err *err)
{
	struct body *b = arg;

	(void)err;
	b->at = 0;
	b->rewinds++;
	return 0;
}

static int put_body(struct net *n, struct body *b, const char *path)
{
	struct http_source source = {body_pull, body_rewind, b, b->length};

	return ask(n, (struct http_request){.method = "PUT", .source = &source}, path);
}

struct sink {
	uint64_t bytes, stop; /* fails past stop */
	int status;
	unsigned heads;
	struct str kind;
};

static int sink_head(void *arg, int status, const struct http_header *headers, size_t count, struct err *err)
{
	struct sink *s = arg;

	(void)err;
	s->heads++;
	s->status = status;
	for (size_t i = 0; i < count; i++)
		if (str_is(headers[i].name, "x-kind"))
			s->kind = headers[i].value;
	return s->bytes == 0 ? 0 : -1;
}

static int sink_push(void *arg, const void *bytes, size_t len, struct err *err)
{
	struct sink *s = arg;

	(void)bytes;
	s->bytes += len;
	if (s->stop && s->bytes > s->stop)
		return err_set(err, ERR_QUOTA, "the sink is full");
	return 0;
}

TEST(an_answer_has_its_status_its_headers_in_lower_case_and_its_body)
{
	struct net *n = net_open((struct http_opts){0});

	CHECK_OK(get(n, "/echo?q=1"), n->err);
	CHECK_INT(n->response.status, 200);
	CHECK_STR(http_header_of(&n->response, "etag"), STR("\"a b\""));
	CHECK(http_header_of(&n->response, "x-empty").ptr != NULL);
	CHECK(http_header_of(&n->response, "missing").ptr == NULL);
	CHECK_HAS(n->response.body, STR("GET /echo?q=1 HTTP/1.1\r\n"));
	CHECK(n->response.sent);
	CHECK_INT(n->response.requests, 1);
	net_close(n);
}

TEST(an_error_answer_is_a_result_and_a_redirect_is_not_followed)
{
	struct net *n = net_open((struct http_opts){0});
	static const int statuses[] = {301, 307, 404, 412, 429, 500, 503};

	for (size_t i = 0; i < sizeof(statuses) / sizeof(*statuses); i++) {
		CHECK_OK(get(n, arena_printf(n->arena, "/status/%d", statuses[i]).ptr), n->err);
		CHECK_INT(n->response.status, statuses[i]);
		CHECK_STR(n->response.body, STR("body"));
	}
	CHECK_INT(proxy_requests(n->proxy), 7);
	net_close(n);
}

TEST(a_head_request_does_not_wait_for_the_body_it_is_told_of)
{
	struct net *n = net_open((struct http_opts){0});

	CHECK_OK(ask(n, (struct http_request){.method = "HEAD"}, "/size/1000"), n->err);
	CHECK_STR(http_header_of(&n->response, "content-length"), STR("1000"));
	CHECK_INT(n->response.body.len, 0);
	CHECK_OK(get(n, "/size/10"), n->err);
	CHECK_INT(n->response.body.len, 10);
	CHECK_INT(proxy_connections(n->proxy), 1);
	net_close(n);
}

TEST(a_body_is_sent_with_its_length_and_without_an_expectation)
{
	struct net *n = net_open((struct http_opts){0});
	char *big = arena_alloc(n->arena, 3 * MIB);

	memset(big, 'y', 3 * MIB);
	CHECK_OK(ask(n, (struct http_request){.method = "PUT", .body = str_n(big, 3 * MIB), .body_max = 8 * MIB},
		     "/echo"),
		 n->err);
	CHECK_HAS(n->response.body, STR("\r\nContent-Length: 3145728\r\n"));
	CHECK_LACKS(n->response.body, STR("Expect"));
	CHECK_LACKS(n->response.body, STR("Transfer-Encoding"));
	CHECK_ENDS(n->response.body, str_n(big, 3 * MIB));
	net_close(n);
}

TEST(an_empty_put_or_post_has_a_length_of_zero_and_a_delete_has_none)
{
	struct net *n = net_open((struct http_opts){0});

	CHECK_OK(ask(n, (struct http_request){.method = "PUT"}, "/echo"), n->err);
	CHECK_HAS(n->response.body, STR("PUT /echo HTTP/1.1\r\n"));
	CHECK_HAS(n->response.body, STR("\r\nContent-Length: 0\r\n"));
	CHECK_OK(ask(n, (struct http_request){.method = "POST"}, "/echo?uploads="), n->err);
	CHECK_HAS(n->response.body, STR("\r\nContent-Length: 0\r\n"));
	CHECK_OK(ask(n, (struct http_request){.method = "DELETE"}, "/echo"), n->err);
	CHECK_HAS(n->response.body, STR("DELETE /echo HTTP/1.1\r\n"));
	CHECK_LACKS(n->response.body, STR("Content-Length"));
	net_close(n);
}

TEST(a_path_is_sent_as_it_is)
{
	struct net *n = net_open((struct http_opts){.path_as_is = true});

	CHECK_OK(get(n, "/echo/a/../b//./%20%2B"), n->err);
	CHECK_HAS(n->response.body, STR("GET /echo/a/../b//./%20%2B HTTP/1.1\r\n"));
	net_close(n);
}

TEST(headers_are_sent_as_given_and_none_can_smuggle_another)
{
	struct net *n = net_open((struct http_opts){0});
	const struct http_header good[] = {{STR("x-a"), STR("one two")}, {STR("x-none"), STR_NONE}};
	const struct http_header bad[] = {{STR("x-a"), STR("secret\r\nx-b: evil")}};

	CHECK_OK(ask(n, (struct http_request){.headers = good, .header_count = 2}, "/echo"), n->err);
	CHECK_HAS(n->response.body, STR("\r\nx-a: one two\r\n"));
	CHECK_HAS(n->response.body, STR("\r\nx-none:\r\n"));
	CHECK_ERR(ask(n, (struct http_request){.headers = bad, .header_count = 1}, "/echo"), n->err, ERR_INVALID);
	CHECK(strstr(n->err.msg, "secret") == NULL);
	net_close(n);
}

TEST(requests_one_after_the_other_share_a_connection)
{
	struct net *n = net_open((struct http_opts){0});

	for (int i = 0; i < 20; i++)
		CHECK_OK(ask(n, (struct http_request){.method = "PUT", .body = STR("body")}, "/echo"), n->err);
	CHECK_INT(proxy_connections(n->proxy), 1);
	CHECK_INT(proxy_requests(n->proxy), 20);
	CHECK_INT(proxy_requests_with(n->proxy, "PUT /echo"), 20);
	net_close(n);
}

struct worker {
	struct net *n;
	pthread_t thread;
	uint64_t whole;
};

static void *work(void *arg)
{
	struct worker *w = arg;
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};

	for (int i = 0; i < 50; i++) {
		struct http_request req = {
			.method = "GET",
			.url = arena_printf(arena, "http://127.0.0.1:%u/size/5000", proxy_port(w->n->proxy))};
		struct http_response response;
		struct err err;

		if (http_perform(w->n->http, &ctx, &req, &response, &err) == 0 && response.body.len == 5000)
			w->whole++;
	}
	return NULL;
}

TEST(many_threads_share_a_client_and_open_no_more_connections_than_they_are)
{
	struct net *n = net_open((struct http_opts){0});
	struct worker workers[8];

	for (size_t i = 0; i < 8; i++) {
		workers[i] = (struct worker){.n = n};
		CHECK_INT(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	}
	for (size_t i = 0; i < 8; i++)
		pthread_join(workers[i].thread, NULL);
	for (size_t i = 0; i < 8; i++)
		CHECK_INT(workers[i].whole, 50);
	CHECK_INT(proxy_requests(n->proxy), 400);
	CHECK(proxy_connections(n->proxy) <= 8);
	net_close(n);
}

static size_t in_use(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

TEST(bodies_stream_both_ways)
{
	struct net *n = net_open((struct http_opts){0});
	struct body up = {.length = 20 * MIB, .stop = 20 * MIB};
	struct sink down = {0};
	size_t before = in_use();

	CHECK_OK(put_body(n, &up, "/count"), n->err);
	CHECK_INT(loopback_bytes(n->server), 20 * MIB);
	CHECK_OK(ask(n, (struct http_request){.head = sink_head, .push = sink_push, .arg = &down}, "/size/20971520"),
		 n->err);
	CHECK_INT(down.bytes, 20 * MIB);
	CHECK_INT(down.heads, 1);
	CHECK_INT(down.status, 200);
	CHECK_STR(down.kind, STR("run"));
	CHECK_INT(n->response.body.len, 0);
	CHECK(in_use() < before + MIB);
	net_close(n);
}

TEST(an_error_answer_is_collected_also_where_bodies_are_streamed)
{
	struct net *n = net_open((struct http_opts){0});
	struct sink down = {0};

	CHECK_OK(ask(n, (struct http_request){.head = sink_head, .push = sink_push, .arg = &down}, "/status/404"),
		 n->err);
	CHECK_INT(n->response.status, 404);
	CHECK_STR(n->response.body, STR("body"));
	CHECK_INT(down.bytes + down.heads, 0);
	net_close(n);
}

TEST(an_answer_that_is_too_large_is_refused_and_an_error_is_cut)
{
	struct net *n = net_open((struct http_opts){0});

	CHECK_OK(ask(n, (struct http_request){.body_max = 1000}, "/size/1000"), n->err);
	CHECK_ERR(ask(n, (struct http_request){.body_max = 999}, "/size/1000"), n->err, ERR_TOO_LARGE);
	CHECK_ERR(get(n, "/endless"), n->err, ERR_TOO_LARGE);
	CHECK_OK(get(n, "/big500/10000000"), n->err);
	CHECK_INT(n->response.status, 500);
	CHECK_INT(n->response.body.len, HTTP_ERROR_BODY_MAX);
	CHECK_OK(get(n, "/fields/200"), n->err);
	CHECK_ERR(get(n, "/fields/300"), n->err, ERR_TOO_LARGE);
	net_close(n);
}

TEST(a_failing_callback_ends_the_request_with_its_own_error)
{
	struct net *n = net_open((struct http_opts){0});
	struct body rotten = {.length = 9 * MIB, .stop = 4 * MIB, .fails = true};
	struct body brief = {.length = 9 * MIB, .stop = 4 * MIB};
	struct sink full = {.stop = MIB};

	CHECK_ERR(put_body(n, &rotten, "/count"), n->err, ERR_CORRUPT);
	CHECK_STR(str_of(n->err.msg), STR("the body is rotten"));
	CHECK_ERR(put_body(n, &brief, "/count"), n->err, ERR_INTERNAL);
	CHECK_ERR(ask(n, (struct http_request){.push = sink_push, .arg = &full}, "/size/20000000"), n->err, ERR_QUOTA);
	CHECK_OK(get(n, "/size/1"), n->err);
	CHECK_INT(loopback_requests(n->server), 2);
	net_close(n);
}

TEST(a_body_on_a_kept_connection_that_is_dead_is_sent_again_from_its_start)
{
	static const uint64_t after[] = {0, 10, 100000, 5000000};

	for (size_t i = 0; i < sizeof(after) / sizeof(*after); i++) {
		struct net *n = net_open((struct http_opts){0});
		struct body up = {.length = 20 * MIB, .stop = 20 * MIB};

		CHECK_OK(get(n, "/size/1"), n->err);
		proxy_arm(n->proxy, &(struct proxy_plan){.fault = PROXY_CUT_REQUEST, .bytes = after[i]});
		CHECK_OK(put_body(n, &up, "/count"), n->err);
		CHECK_INT(n->response.requests, 2);
		CHECK_INT(up.rewinds, 1);
		CHECK_INT(proxy_faults(n->proxy), 1);
		CHECK_INT(loopback_bytes(n->server), 20 * MIB);
		net_close(n);
	}
}

TEST(connections_that_the_server_dropped_meanwhile_are_not_noticed_by_the_caller)
{
	struct net *n = net_open((struct http_opts){0});

	for (int i = 0; i < 10; i++) {
		CHECK_OK(ask(n, (struct http_request){.method = "PUT", .body = STR("abc")}, "/echo"), n->err);
		proxy_cut(n->proxy);
	}
	CHECK_INT(loopback_bytes(n->server), 30);
	net_close(n);
}

TEST(an_answer_lost_on_a_kept_connection_is_seen_in_the_count_of_requests)
{
	struct net *n = net_open((struct http_opts){0});

	CHECK_OK(get(n, "/size/1"), n->err);
	proxy_arm(n->proxy, &(struct proxy_plan){.fault = PROXY_CUT_ANSWER});
	CHECK_OK(ask(n, (struct http_request){.method = "PUT", .body = STR("abc")}, "/echo"), n->err);
	CHECK_INT(n->response.requests, 2);
	CHECK_INT(loopback_requests(n->server), 3);
	net_close(n);
}

TEST(an_answer_lost_on_a_new_connection_is_unavailable_and_was_sent)
{
	struct net *n = net_open((struct http_opts){0});

	proxy_arm(n->proxy, &(struct proxy_plan){.fault = PROXY_CUT_ANSWER});
	CHECK_ERR(ask(n, (struct http_request){.method = "PUT", .body = STR("abc")}, "/echo"), n->err, ERR_UNAVAILABLE);
	CHECK(n->err.retryable);
	CHECK(n->response.sent);
	CHECK_INT(loopback_requests(n->server), 1);
	CHECK_HAS(str_of(n->err.msg), STR("127.0.0.1"));
	net_close(n);
}

TEST(a_body_that_is_cut_in_the_middle_is_an_error_and_not_a_short_body)
{
	struct net *n = net_open((struct http_opts){0});
	struct sink down = {0};

	CHECK_ERR(get(n, "/short/1000"), n->err, ERR_UNAVAILABLE);
	proxy_arm(n->proxy, &(struct proxy_plan){.fault = PROXY_CUT_ANSWER, .bytes = 200000});
	CHECK_ERR(ask(n, (struct http_request){.push = sink_push, .arg = &down}, "/size/400000"), n->err,
		  ERR_UNAVAILABLE);
	CHECK(n->err.retryable);
	CHECK(down.bytes > 0 && down.bytes < 400000);
	net_close(n);
}

TEST(a_refused_connection_was_not_sent_and_works_again_when_the_server_is_back)
{
	struct net *n = net_open((struct http_opts){0});

	proxy_arm(n->proxy, &(struct proxy_plan){.fault = PROXY_REFUSE});
	CHECK_ERR(get(n, "/size/1"), n->err, ERR_UNAVAILABLE);
	CHECK(n->err.retryable);
	CHECK(!n->response.sent);
	proxy_disarm(n->proxy);
	CHECK_OK(get(n, "/size/1"), n->err);
	net_close(n);
}

TEST(a_server_that_falls_silent_ends_the_request_at_every_stage)
{
	struct net *n = net_open((struct http_opts){.stall_ms = 800});
	static const struct proxy_plan plans[] = {
		{.fault = PROXY_STALL},
		{.fault = PROXY_STALL_ANSWER},
		{.fault = PROXY_STALL_ANSWER, .bytes = 20},
		{.fault = PROXY_STALL_ANSWER, .bytes = 100000},
	};

	for (size_t i = 0; i < sizeof(plans) / sizeof(*plans); i++) {
		proxy_arm(n->proxy, &plans[i]);
		CHECK_ERR(get(n, "/size/900000"), n->err, ERR_TIMEOUT);
		CHECK(n->err.retryable);
		proxy_disarm(n->proxy);
		CHECK_OK(get(n, "/size/900000"), n->err);
	}
	net_close(n);
}

TEST(an_upload_that_nobody_takes_ends_too)
{
	struct net *n = net_open((struct http_opts){.stall_ms = 150});
	struct body up = {.length = 200 * MIB, .stop = 200 * MIB};

	proxy_arm(n->proxy, &(struct proxy_plan){.fault = PROXY_STALL});
	CHECK_ERR(put_body(n, &up, "/count"), n->err, ERR_TIMEOUT);
	CHECK(up.at < 100 * MIB);
	net_close(n);
}

TEST(a_request_ends_by_the_deadline_of_its_call_and_by_its_own)
{
	struct net *n = net_open((struct http_opts){0});

	proxy_arm(n->proxy, &(struct proxy_plan){.fault = PROXY_STALL, .count = PROXY_ALWAYS});
	n->ctx.deadline_ns = clock_monotonic_ns() + 100 * MS;
	CHECK_ERR(get(n, "/size/1"), n->err, ERR_TIMEOUT);
	CHECK(clock_monotonic_ns() >= n->ctx.deadline_ns);
	CHECK_ERR(get(n, "/size/1"), n->err, ERR_TIMEOUT); /* already over */
	CHECK(!n->response.sent);
	n->ctx.deadline_ns = 0;
	CHECK_ERR(ask(n, (struct http_request){.timeout_ms = 100}, "/size/1"), n->err, ERR_TIMEOUT);
	CHECK(n->response.sent);
	net_close(n);
}

static void *cancel_when_asked(void *arg)
{
	struct net *n = arg;

	while (proxy_requests(n->proxy) == 0)
		sched_yield();
	atomic_store(&((struct cancel *)n->ctx.cancel)->requested, true);
	return NULL;
}

TEST(a_cancelled_call_ends_while_it_waits)
{
	struct net *n = net_open((struct http_opts){0});
	struct cancel cancel = {false};
	pthread_t thread;

	n->ctx.cancel = &cancel;
	proxy_arm(n->proxy, &(struct proxy_plan){.fault = PROXY_STALL});
	CHECK_INT(pthread_create(&thread, NULL, cancel_when_asked, n), 0);
	CHECK_ERR(get(n, "/size/1"), n->err, ERR_CANCELLED);
	pthread_join(thread, NULL);
	net_close(n);
}

TEST(a_slow_answer_arrives)
{
	struct net *n = net_open((struct http_opts){0});

	proxy_arm(n->proxy, &(struct proxy_plan){.fault = PROXY_DELAY, .delay_ms = 60});
	CHECK_OK(get(n, "/size/300000"), n->err);
	CHECK_INT(n->response.body.len, 300000);
	CHECK_INT(proxy_faults(n->proxy), 1);
	net_close(n);
}

TEST(the_proxy_answers_for_the_server_at_the_request_it_was_told)
{
	struct net *n = net_open((struct http_opts){0});

	proxy_arm(n->proxy, &(struct proxy_plan){.fault = PROXY_ANSWER,
						 .at = 2,
						 .count = 2,
						 .match = "PUT ",
						 .answer = PROXY_STATUS("503 Slow Down", "Retry-After: 7\r\n")});
	for (int i = 1; i <= 4; i++) {
		struct body up = {.length = 300000, .stop = 300000};

		CHECK_OK(get(n, "/size/1"), n->err);
		CHECK_INT(n->response.status, 200);
		CHECK_OK(put_body(n, &up, "/count"), n->err);
		CHECK_INT(n->response.status, i == 2 || i == 3 ? 503 : 200);
		if (i == 2)
			CHECK_STR(http_header_of(&n->response, "retry-after"), STR("7"));
	}
	CHECK_INT(loopback_requests(n->server), 6);
	CHECK_INT(proxy_requests(n->proxy), 8);
	CHECK_INT(proxy_faults(n->proxy), 2);
	net_close(n);
}

TEST(what_is_not_http_and_what_is_no_address_is_said)
{
	struct net *n = net_open((struct http_opts){0});
	struct http_request req = {.method = "GET", .url = STR("ftp://127.0.0.1/x")};

	CHECK_ERR(get(n, "/garbage"), n->err, ERR_UNAVAILABLE);
	CHECK_HAS(str_of(n->err.msg), STR("HTTP"));
	CHECK_ERR(http_perform(n->http, &n->ctx, &req, &n->response, &n->err), n->err, ERR_INVALID);
	req.url = STR("http://user:password@127.0.0.1:1/?token=secret");
	CHECK_ERR(http_perform(n->http, &n->ctx, &req, &n->response, &n->err), n->err, ERR_INVALID);
	CHECK(!strstr(n->err.msg, "password") && !strstr(n->err.msg, "secret"));
	req.url = STR("http://no-such-host.invalid/");
	CHECK_ERR(http_perform(n->http, &n->ctx, &req, &n->response, &n->err), n->err, ERR_UNAVAILABLE);
	CHECK_HAS(str_of(n->err.msg), STR("no-such-host.invalid"));
	net_close(n);
}

TEST(text_is_percent_encoded_with_and_without_slashes)
{
	struct buf out;

	buf_init(&out, NULL, KIB);
	http_encode(&out, STR("a/b c+~\xc3\xa9"), true);
	CHECK_STR(buf_str(&out), STR("a/b%20c%2B~%C3%A9"));
	buf_clear(&out);
	http_encode(&out, STR("a/b"), false);
	CHECK_STR(buf_str(&out), STR("a%2Fb"));
	buf_release(&out);
}
