/* SPDX-License-Identifier: Apache-2.0 */
/* The S3 store against a real server: what it costs, what it survives, what it says. Damage is done by the proxy. */
#include "store/backends/s3/s3_fix.h"

#include "revisions/revisions.h"
#include "servers/proxy.h"
#include "store/backends/s3/s3.h"

struct setup {
	struct conf c;
	struct proxy *proxy;
	char prefix[32];
};

static struct store *reopen(struct setup *t, const char *more)
{
	char endpoint[64];

	snprintf(endpoint, sizeof(endpoint), "http://127.0.0.1:%u", proxy_port(t->proxy));
	return s3_at(endpoint, t->prefix, more);
}

/* A store behind a proxy, that knows its server: the bucket is there, conditions were asked for, the root was seen. */
static struct setup begin(void)
{
	struct setup t = {.c = {.ctx = {.arena = arena_new()}}};

	t.proxy = proxy_start(s3_env(""));
	snprintf(t.prefix, sizeof(t.prefix), "%s", s3_prefix());
	t.c.s = reopen(&t, "");
	CHECK_OK(store_append(t.c.s, &t.c.ctx, P("warm"), STR("x"), ANY, NULL, &t.c.err), t.c.err);
	proxy_forget(t.proxy);
	return t;
}

static void end(struct setup *t)
{
	store_destroy(t->c.s);
	proxy_stop(t->proxy);
	arena_destroy(t->c.ctx.arena);
}

static int64_t in_ms(int ms)
{
	return clock_monotonic_ns() + ms * 1000000LL;
}

/* What it costs. */

TEST(a_write_is_one_put_and_a_read_one_get)
{
	struct setup t = begin();
	struct str v = put(&t.c, "a", "one");

	CHECK_INT(proxy_requests(t.proxy), 1);
	CHECK_INT(proxy_requests_with(t.proxy, "PUT /"), 1);
	CHECK_OK(store_write(t.c.s, &t.c.ctx, P("a"), STR("two"), VERS(v), NULL, &t.c.err), t.c.err);
	CHECK_OK(store_write(t.c.s, &t.c.ctx, P("b"), STR("new"), ABSENT, NULL, &t.c.err), t.c.err);
	CHECK_INT(proxy_requests(t.proxy), 3);
	CHECK_INT(proxy_requests_with(t.proxy, "PUT /"), 3);
	CHECK_STR(get(&t.c, "a"), STR("two"));
	CHECK_INT(proxy_requests(t.proxy), 4);
	CHECK_INT(proxy_requests_with(t.proxy, "GET /"), 1);
	CHECK_INT(store_s3_requests(t.c.s) >= 4, 1);
	end(&t);
}

TEST(the_first_write_into_a_directory_looks_at_it_once)
{
	struct setup t = begin();

	put(&t.c, "d/a", "1"); /* is there a "d"? is it a file? */
	CHECK_INT(proxy_requests_with(t.proxy, "list-type=2"), 1);
	put(&t.c, "d/b", "1");
	proxy_forget(t.proxy);
	put(&t.c, "d/c", "1");
	put(&t.c, "d/d", "1");
	CHECK_INT(proxy_requests(t.proxy), 2);
	end(&t);
}

TEST(a_list_is_one_list_for_a_thousand_names)
{
	struct setup t = begin();
	struct store_list_req req = {.limit = 1000};
	struct store_page page;

	for (int i = 0; i < 1001; i++) {
		char path[32];

		snprintf(path, sizeof(path), "d/%04d", i);
		put(&t.c, path, "x");
	}
	proxy_forget(t.proxy);
	CHECK_OK(store_list(t.c.s, &t.c.ctx, P("d"), &req, &page, &t.c.err), t.c.err);
	CHECK_INT(page.count, 1000);
	CHECK_INT(proxy_requests(t.proxy), 1);
	req.after = page.next;
	CHECK_OK(store_list(t.c.s, &t.c.ctx, P("d"), &req, &page, &t.c.err), t.c.err);
	CHECK_INT(page.count, 1);
	CHECK_INT(proxy_requests(t.proxy), 2);
	end(&t);
}

/* Answers that are lost. */

TEST(a_conditional_write_that_lost_its_answer_is_not_called_a_conflict)
{
	struct setup t = begin();
	struct str v = put(&t.c, "a", "one");

	proxy_arm(t.proxy, &(struct proxy_plan){.fault = PROXY_CUT_ANSWER, .match = "PUT /"});
	CHECK_OK(store_write(t.c.s, &t.c.ctx, P("a"), STR("two"), VERS(v), NULL, &t.c.err), t.c.err);
	CHECK_INT(proxy_faults(t.proxy), 1);
	CHECK_STR(get(&t.c, "a"), STR("two"));
	end(&t);
}

TEST(a_create_that_lost_its_answer_has_made_the_file)
{
	struct setup t = begin();

	proxy_arm(t.proxy, &(struct proxy_plan){.fault = PROXY_CUT_ANSWER, .match = "PUT /"});
	CHECK_OK(store_write(t.c.s, &t.c.ctx, P("a"), STR("mine"), ABSENT, NULL, &t.c.err), t.c.err);
	CHECK_INT(proxy_faults(t.proxy), 1);
	CHECK_ERR(store_write(t.c.s, &t.c.ctx, P("a"), STR("x"), ABSENT, NULL, &t.c.err), t.c.err, ERR_EXISTS);
	end(&t);
}

TEST(an_append_that_lost_any_answer_is_there_once)
{
	struct setup t = begin();

	put(&t.c, "log", "0\n");
	for (unsigned n = 1; n <= 2; n++) {
		proxy_arm(t.proxy, &(struct proxy_plan){.fault = PROXY_CUT_ANSWER, .at = n});
		CHECK_OK(store_append(t.c.s, &t.c.ctx, P("log"), STR("x\n"), ANY, NULL, &t.c.err), t.c.err);
		CHECK_INT(proxy_faults(t.proxy), n);
	}
	proxy_disarm(t.proxy);
	CHECK_STR(get(&t.c, "log"), STR("0\nx\nx\n"));
	end(&t);
}

TEST(a_conflict_stays_a_conflict)
{
	struct setup t = begin();
	struct store *other = reopen(&t, "");
	struct str v = put(&t.c, "a", "one");

	CHECK_OK(store_write(other, &t.c.ctx, P("a"), STR("two"), ANY, NULL, &t.c.err), t.c.err);
	CHECK_ERR(store_write(t.c.s, &t.c.ctx, P("a"), STR("three"), VERS(v), NULL, &t.c.err), t.c.err, ERR_CONFLICT);
	CHECK_STR(get(&t.c, "a"), STR("two"));
	store_destroy(other);
	end(&t);
}

#define LETTERS_26  "abcdefghijklmnopqrstuvwxyz"
#define LETTERS_130 LETTERS_26 LETTERS_26 LETTERS_26 LETTERS_26 LETTERS_26

TEST(a_version_that_is_too_long_is_an_error)
{
	struct setup t = begin();
	struct store_stat stat;

	put(&t.c, "a", "one");
	proxy_arm(t.proxy, &(struct proxy_plan){.fault = PROXY_ANSWER,
						.answer = PROXY_STATUS("200 OK", "ETag: \"" LETTERS_130 "\"\r\n")});
	CHECK_ERR(store_stat(t.c.s, &t.c.ctx, P("a"), &stat, &t.c.err), t.c.err, ERR_UNSUPPORTED);
	CHECK_HAS(str_of(t.c.err.msg), STR("an ETag of 130 bytes"));
	end(&t);
}

/* A server that is slow, busy, or gone. */

TEST(a_busy_server_is_asked_again)
{
	static const char *const answers[] = {PROXY_STATUS("503 Slow Down", "Retry-After: 1\r\n"),
					      PROXY_STATUS("500 Internal Server Error", ""),
					      PROXY_STATUS("429 Too Many Requests", "")};
	struct setup t = begin();

	for (size_t i = 0; i < 3; i++) {
		struct proxy_plan plan = {.fault = PROXY_ANSWER, .answer = answers[i], .count = 2};

		proxy_arm(t.proxy, &plan);
		put(&t.c, "a", "x");
		proxy_arm(t.proxy, &plan);
		CHECK_STR(get(&t.c, "a"), STR("x"));
	}
	CHECK_INT(proxy_faults(t.proxy), 12);
	end(&t);
}

TEST(every_call_ends_by_its_deadline_when_the_server_is_silent)
{
	struct setup t = begin();
	struct store_list_req req = {.limit = 10};
	struct store_page page;
	struct str bytes;

	put(&t.c, "a", "x");
	proxy_arm(t.proxy, &(struct proxy_plan){.fault = PROXY_STALL, .count = PROXY_ALWAYS});
	t.c.ctx.deadline_ns = in_ms(200);
	CHECK_ERR(store_read(t.c.s, &t.c.ctx, P("a"), STORE_WHOLE, 9, &bytes, NULL, &t.c.err), t.c.err, ERR_TIMEOUT);
	t.c.ctx.deadline_ns = in_ms(200);
	CHECK_ERR(store_write(t.c.s, &t.c.ctx, P("a"), STR("y"), ANY, NULL, &t.c.err), t.c.err, ERR_TIMEOUT);
	t.c.ctx.deadline_ns = in_ms(200);
	CHECK_ERR(store_list(t.c.s, &t.c.ctx, P(""), &req, &page, &t.c.err), t.c.err, ERR_TIMEOUT);
	proxy_disarm(t.proxy);
	t.c.ctx.deadline_ns = 0;
	CHECK_STR(get(&t.c, "a"), STR("x"));
	end(&t);
}

TEST(a_server_that_is_gone_is_named_and_works_again_when_it_is_back)
{
	struct setup t = begin();

	proxy_arm(t.proxy, &(struct proxy_plan){.fault = PROXY_REFUSE, .count = PROXY_ALWAYS});
	t.c.ctx.deadline_ns = in_ms(400);
	CHECK(store_write(t.c.s, &t.c.ctx, P("a"), STR("x"), ANY, NULL, &t.c.err) != 0);
	CHECK(t.c.err.kind == ERR_UNAVAILABLE || t.c.err.kind == ERR_TIMEOUT);
	CHECK_HAS(str_of(t.c.err.msg), STR("127.0.0.1"));
	proxy_disarm(t.proxy);
	t.c.ctx.deadline_ns = 0;
	put(&t.c, "a", "x");
	end(&t);
}

TEST(a_wrong_region_is_mended_and_remembered)
{
	struct setup t = begin();

	proxy_arm(t.proxy, &(struct proxy_plan){
				   .fault = PROXY_ANSWER,
				   .answer = PROXY_STATUS("400 Bad Request", "x-amz-bucket-region: eu-west-1\r\n")});
	put(&t.c, "a", "x");
	CHECK_INT(proxy_faults(t.proxy), 1);
	CHECK_STR(str_of(s3_of(t.c.s)->region), STR("eu-west-1"));
	CHECK_STR(get(&t.c, "a"), STR("x"));
	end(&t);
}

TEST(a_temporary_redirect_is_followed_and_signed_anew)
{
	struct setup t = begin();
	char answer[512];

	snprintf(answer, sizeof(answer),
		 "HTTP/1.1 307 Temporary Redirect\r\nLocation: %s/%s/%s/a\r\nContent-Length: 0\r\n\r\n", s3_env(""),
		 S3_BUCKET, t.prefix);
	proxy_arm(t.proxy, &(struct proxy_plan){.fault = PROXY_ANSWER, .answer = answer});
	put(&t.c, "a", "x");
	CHECK_INT(proxy_requests(t.proxy), 1); /* the second one did not pass here */
	CHECK_STR(get(&t.c, "a"), STR("x"));
	end(&t);
}

TEST(a_wrong_clock_is_mended)
{
	struct setup t = begin();
	char early[32];

	snprintf(early, sizeof(early), "%lld", (long long)(clock_real_ns() - 3600 * 1000000000LL));
	setenv("STEAD_TEST_CLOCK_NS", early, 1);
	put(&t.c, "a", "x");
	CHECK_STR(get(&t.c, "a"), STR("x"));
	unsetenv("STEAD_TEST_CLOCK_NS");
	CHECK(s3_of(t.c.s)->clock_ns > 3000 * 1000000000LL);
	end(&t);
}

/* What it says. */

static struct err failing(const char *url)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena, .deadline_ns = in_ms(1500)};
	struct err err = {0};
	struct store *s;

	if (store_open_url(str_of(url), NULL, &s, &err) == 0) {
		CHECK(store_write(s, &ctx, P("a"), STR("x"), ANY, NULL, &err) != 0);
		store_destroy(s);
	}
	CHECK(!strchr(err.msg, '\n'));
	CHECK(!strstr(err.msg, "wrong-secret") && !strstr(err.msg, s3_env("_SECRET")));
	return err;
}

TEST(a_wrong_secret_and_an_unknown_key_are_said_without_showing_them)
{
	char url[256];
	struct err err;

	s3_keys();
	s3_url(url, sizeof(url), NULL, "p", "");
	setenv("AWS_SECRET_ACCESS_KEY", "wrong-secret", 1);
	err = failing(url);
	CHECK_INT(err.kind, ERR_UNAUTHENTICATED);
	CHECK_HAS(str_of(err.msg), STR("check the secret that goes with AWS_ACCESS_KEY_ID"));
	setenv("AWS_ACCESS_KEY_ID", "NOBODY", 1);
	err = failing(url);
	CHECK_INT(err.kind, ERR_UNAUTHENTICATED);
	CHECK_HAS(str_of(err.msg), STR("AWS_ACCESS_KEY_ID"));
}

TEST(a_missing_bucket_and_an_unreachable_host_are_named)
{
	char url[256];
	struct err err;

	s3_keys();
	snprintf(url, sizeof(url), "s3://no-such-bucket/p?endpoint=%s", s3_env(""));
	err = failing(url);
	CHECK_INT(err.kind, ERR_UNAVAILABLE);
	CHECK_HAS(str_of(err.msg), STR("there is no bucket \"no-such-bucket\""));
	CHECK_HAS(str_of(err.msg), STR("create=1"));
	err = failing("s3://b/p?endpoint=http://127.0.0.1:1");
	CHECK(err.kind == ERR_UNAVAILABLE || err.kind == ERR_TIMEOUT);
	CHECK_HAS(str_of(err.msg), STR("127.0.0.1:1"));
}

TEST(a_full_server_and_an_expired_token_are_said)
{
	static const char full[] = "HTTP/1.1 403 Forbidden\r\nContent-Length: 41\r\n\r\n"
				   "<Error><Code>QuotaExceeded</Code></Error>";
	static const char old[] = "HTTP/1.1 400 Bad Request\r\nContent-Length: 40\r\n\r\n"
				  "<Error><Code>ExpiredToken</Code></Error>";
	struct setup t = begin();

	proxy_arm(t.proxy, &(struct proxy_plan){.fault = PROXY_ANSWER, .answer = full});
	CHECK_ERR(store_write(t.c.s, &t.c.ctx, P("a"), STR("x"), ANY, NULL, &t.c.err), t.c.err, ERR_QUOTA);
	CHECK_HAS(str_of(t.c.err.msg), STR("no room left"));
	proxy_arm(t.proxy, &(struct proxy_plan){.fault = PROXY_ANSWER, .answer = old});
	CHECK_ERR(store_write(t.c.s, &t.c.ctx, P("a"), STR("x"), ANY, NULL, &t.c.err), t.c.err, ERR_UNAUTHENTICATED);
	CHECK_HAS(str_of(t.c.err.msg), STR("expired"));
	end(&t);
}

/* Keys of others. */

static void raw_put(struct setup *t, const char *key)
{
	struct s3 *s3 = s3_of(t->c.s);
	struct s3_call call = {.method = "PUT"};
	struct s3_answer a;

	call.key = arena_printf(t->c.ctx.arena, "%s/%s", t->prefix, key);
	CHECK_OK(s3_call(s3, &t->c.ctx, &call, &a, &t->c.err), t->c.err);
	CHECK_INT(a.http.status, 200);
}

TEST(keys_that_are_no_paths_are_left_out_and_counted)
{
	struct setup t = begin();
	struct store_list_req req = {.limit = 10, .recursive = true};
	struct store_page page;

	raw_put(&t, "d/../up");
	raw_put(&t, "d//two");
	raw_put(&t, "d/ok");
	raw_put(&t, "d/"); /* how other programs mark an empty directory */
	CHECK_OK(store_list(t.c.s, &t.c.ctx, P("d"), &req, &page, &t.c.err), t.c.err);
	CHECK_INT(page.count, 1);
	CHECK_INT(page.skipped, 2);
	CHECK_STR(listing(&t.c, "d", false, 10), STR("d/ok"));
	end(&t);
}

TEST(what_is_the_stores_own_is_not_shown_and_not_written)
{
	struct setup t = begin();

	CHECK_STR(listing(&t.c, "", false, 10), STR("warm"));
	CHECK_GONE(&t.c, ".stead-s3");
	CHECK_ERR(store_write(t.c.s, &t.c.ctx, P(".stead-s3/x"), STR("x"), ANY, NULL, &t.c.err), t.c.err, ERR_INVALID);
	CHECK_ERR(store_move(t.c.s, &t.c.ctx, P("warm"), P(".stead-s3/probe"), ANY, ANY, NULL, &t.c.err), t.c.err,
		  ERR_INVALID);
	end(&t);
}

TEST(a_key_with_control_characters_is_removed_with_its_directory)
{
	struct setup t = begin();

	raw_put(&t, "d/line\nbreak\x01");
	put(&t.c, "d/a", "x");
	put(&t.c, "d/b", "x");
	CHECK_OK(store_remove(t.c.s, &t.c.ctx, P("d"), true, ANY, NULL, &t.c.err), t.c.err);
	CHECK_GONE(&t.c, "d");
	end(&t);
}

TEST(a_version_that_is_no_etag_matches_nothing_and_gets_into_no_header)
{
	static const char *const versions[] = {"*", "\"a\"", "a, b", "x\r\nx-amz-acl: public-read", " "};
	struct setup t = begin();

	put(&t.c, "a", "old");
	for (size_t i = 0; i < 5; i++)
		CHECK_ERR(store_write(t.c.s, &t.c.ctx, P("a"), STR("new"), VERS(str_of(versions[i])), NULL, &t.c.err),
			  t.c.err, ERR_CONFLICT);
	CHECK_STR(get(&t.c, "a"), STR("old"));
	end(&t);
}

/* Large files. */

static void check_stream(struct conf *c, const char *path, uint64_t from, uint64_t len)
{
	struct str bytes;

	CHECK_OK(store_read(c->s, &c->ctx, P(path), (struct store_range){from, len}, 64 * MIB, &bytes, NULL, &c->err),
		 c->err);
	CHECK_INT(bytes.len, len);
	for (size_t i = 0; i < bytes.len; i++)
		if (bytes.ptr[i] != stream_byte(from + i))
			TEST_FAIL("byte %zu is wrong", i);
}

TEST(a_large_file_goes_up_and_comes_down_in_parts)
{
	static const uint64_t sizes[] = {8 * MIB - 1, 8 * MIB, 8 * MIB + 1, 41 * MIB + 7};
	struct setup t = begin();

	for (size_t i = 0; i < 4; i++) {
		struct stream st = {.total = sizes[i]};
		struct source source = stream_source(&st);
		struct store_stat wrote;

		CHECK_OK(store_write_stream(t.c.s, &t.c.ctx, P("big"), &source, ANY, &wrote, &t.c.err), t.c.err);
		CHECK_INT(wrote.size, sizes[i]);
		CHECK_STR(stat_of(&t.c, "big").version, wrote.version);
		check_stream(&t.c, "big", 0, sizes[i]);
	}
	check_stream(&t.c, "big", 8 * MIB - 3, 17 * MIB);
	CHECK_INT(proxy_requests_with(t.proxy, "partNumber="), 1 + 2 + 6);
	end(&t);
}

TEST(a_large_write_under_a_condition_is_one_put)
{
	struct setup t = begin();
	struct stream st = {.total = 20 * MIB + 1};
	struct source source = stream_source(&st);
	struct str v = put(&t.c, "big", "small");

	CHECK_OK(store_write_stream(t.c.s, &t.c.ctx, P("big"), &source, VERS(v), NULL, &t.c.err), t.c.err);
	st.at = 0;
	CHECK_ERR(store_write_stream(t.c.s, &t.c.ctx, P("big"), &source, VERS(v), NULL, &t.c.err), t.c.err,
		  ERR_CONFLICT);
	CHECK_INT(proxy_requests_with(t.proxy, "partNumber="), 0);
	check_stream(&t.c, "big", 0, 20 * MIB + 1);
	end(&t);
}

TEST(an_upload_that_fails_is_aborted)
{
	struct setup t = begin();
	struct stream st = {.total = 40 * MIB, .fail_at = 20 * MIB};
	struct source source = stream_source(&st);

	put(&t.c, "big", "old");
	CHECK_ERR(store_write_stream(t.c.s, &t.c.ctx, P("big"), &source, ANY, NULL, &t.c.err), t.c.err,
		  ERR_UNAVAILABLE);
	CHECK_INT(proxy_requests_with(t.proxy, "DELETE /"), 1);
	CHECK_STR(get(&t.c, "big"), STR("old"));
	end(&t);
}

TEST(a_part_that_is_cut_off_is_sent_or_fetched_again)
{
	struct setup t = begin();
	struct stream st = {.total = 20 * MIB};
	struct source source = stream_source(&st);

	proxy_arm(t.proxy, &(struct proxy_plan){.fault = PROXY_CUT_REQUEST, .match = "partNumber=2", .bytes = 3 * MIB});
	CHECK_OK(store_write_stream(t.c.s, &t.c.ctx, P("big"), &source, ANY, NULL, &t.c.err), t.c.err);
	CHECK_INT(proxy_faults(t.proxy), 1);
	for (unsigned n = 1; n <= 3; n++) {
		proxy_arm(t.proxy, &(struct proxy_plan){.fault = PROXY_CUT_ANSWER, .at = n, .bytes = 5 * MIB});
		check_stream(&t.c, "big", 0, 20 * MIB);
	}
	CHECK_INT(proxy_faults(t.proxy), 4);
	end(&t);
}

TEST(a_large_file_is_appended_to)
{
	struct setup t = begin();
	struct stream st = {.total = 9 * MIB}, more = {.total = 9 * MIB + 100, .at = 9 * MIB};
	struct source source = stream_source(&st), behind = stream_source(&more);
	struct store_stat after;

	CHECK_OK(store_write_stream(t.c.s, &t.c.ctx, P("big"), &source, ANY, NULL, &t.c.err), t.c.err);
	CHECK_OK(store_append_stream(t.c.s, &t.c.ctx, P("big"), &behind, ANY, &after, &t.c.err), t.c.err);
	CHECK_INT(after.size, 9 * MIB + 100);
	check_stream(&t.c, "big", 0, 9 * MIB + 100);
	end(&t);
}

/* Many steps, and a crash after each. */

static void make_tree(struct setup *t)
{
	put(&t->c, "d/a", "1");
	put(&t->c, "d/e/b", "2");
	put(&t->c, "d/e/c", "3");
}

/* Every file is somewhere, whole. */
static void check_nothing_lost(struct conf *c, const char *to)
{
	static const char *const names[] = {"a", "e/b", "e/c"};

	for (size_t i = 0; i < 3; i++) {
		char from[64], there[64];
		struct str bytes;

		snprintf(from, sizeof(from), "d/%s", names[i]);
		snprintf(there, sizeof(there), "%s/%s", to, names[i]);
		if (store_read(c->s, &c->ctx, P(from), STORE_WHOLE, 9, &bytes, NULL, &c->err))
			CHECK_OK(store_read(c->s, &c->ctx, P(there), STORE_WHOLE, 9, &bytes, NULL, &c->err), c->err);
		CHECK_INT(bytes.ptr[0], (int)('1' + i));
	}
}

TEST(a_directory_move_that_was_cut_off_at_any_request_is_finished_by_a_second_one)
{
	struct setup t = begin();
	bool done = false;
	unsigned n = 0;

	while (!done) {
		make_tree(&t);
		t.c.ctx.deadline_ns = in_ms(400);
		proxy_arm(t.proxy, &(struct proxy_plan){.fault = PROXY_CUT_REQUEST, .at = ++n, .count = PROXY_ALWAYS});
		done = store_move(t.c.s, &t.c.ctx, P("d"), P("x/y"), ANY, ANY, NULL, &t.c.err) == 0;
		proxy_disarm(t.proxy);
		t.c.ctx.deadline_ns = 0;
		store_destroy(t.c.s); /* what it remembered is gone with it */
		t.c.s = reopen(&t, "");
		check_nothing_lost(&t.c, "x/y");
		if (!done)
			CHECK_OK(store_move(t.c.s, &t.c.ctx, P("d"), P("x/y"), ANY, ANY, NULL, &t.c.err), t.c.err);
		CHECK_TREE(&t.c, "warm x/y/a x/y/e/b x/y/e/c");
		CHECK_OK(store_remove(t.c.s, &t.c.ctx, P("x"), true, ANY, NULL, &t.c.err), t.c.err);
	}
	CHECK(n > 8);
	end(&t);
}

TEST(a_file_move_to_an_absent_name_is_finished_by_a_second_one)
{
	struct setup t = begin();
	bool done = false;
	unsigned n = 0;

	while (!done) {
		struct str bytes;

		put(&t.c, "from", "bytes");
		t.c.ctx.deadline_ns = in_ms(400);
		proxy_arm(t.proxy, &(struct proxy_plan){.fault = PROXY_CUT_REQUEST, .at = ++n, .count = PROXY_ALWAYS});
		done = store_move(t.c.s, &t.c.ctx, P("from"), P("to"), ANY, ABSENT, NULL, &t.c.err) == 0;
		proxy_disarm(t.proxy);
		t.c.ctx.deadline_ns = 0;
		if (!done)
			CHECK_OK(store_move(t.c.s, &t.c.ctx, P("from"), P("to"), ANY, ABSENT, NULL, &t.c.err), t.c.err);
		CHECK_OK(store_read(t.c.s, &t.c.ctx, P("to"), STORE_WHOLE, 9, &bytes, NULL, &t.c.err), t.c.err);
		CHECK_TREE(&t.c, "to warm");
		CHECK_OK(store_remove(t.c.s, &t.c.ctx, P("to"), false, ANY, NULL, &t.c.err), t.c.err);
	}
	CHECK(n > 3);
	end(&t);
}

TEST(a_removal_that_was_cut_off_is_finished_by_a_second_one)
{
	struct setup t = begin();
	bool done = false;
	unsigned n = 0;

	while (!done) {
		int r;

		make_tree(&t);
		t.c.ctx.deadline_ns = in_ms(400);
		proxy_arm(t.proxy, &(struct proxy_plan){.fault = PROXY_CUT_REQUEST, .at = ++n, .count = PROXY_ALWAYS});
		done = store_remove(t.c.s, &t.c.ctx, P("d"), true, ANY, NULL, &t.c.err) == 0;
		proxy_disarm(t.proxy);
		t.c.ctx.deadline_ns = 0;
		r = done ? 0 : store_remove(t.c.s, &t.c.ctx, P("d"), true, ANY, NULL, &t.c.err);
		CHECK(r == 0 || r == -ERR_NOT_FOUND);
		CHECK_TREE(&t.c, "warm");
	}
	CHECK(n > 2);
	end(&t);
}

TEST(a_moved_file_keeps_its_time_and_an_encrypted_one_its_bytes)
{
	struct setup t = begin();
	struct store_stat before, after;

	put(&t.c, "a", "x");
	before = stat_of(&t.c, "a");
	CHECK_OK(store_move(t.c.s, &t.c.ctx, P("a"), P("b"), ANY, ANY, NULL, &t.c.err), t.c.err);
	after = stat_of(&t.c, "b");
	CHECK_INT(after.mtime_ns, before.mtime_ns);
	CHECK_INT(after.size, 1);
	end(&t);
}

/* What killed processes leave. */

static struct str raw(struct setup *t, const char *method, const char *key, const char *param)
{
	struct s3 *s3 = s3_of(t->c.s);
	struct s3_call call = {.method = method};
	struct s3_answer a;

	if (key)
		call.key = arena_printf(t->c.ctx.arena, "%s/%s", t->prefix, key);
	call.query[0] = (struct s3_param){param, STR("")};
	if (!key)
		call.query[1] = (struct s3_param){"prefix", str_of(t->prefix)};
	CHECK_OK(s3_call(s3, &t->c.ctx, &call, &a, &t->c.err), t->c.err);
	CHECK_INT(a.http.status, 200);
	return a.http.body;
}

TEST(an_upload_that_a_killed_process_left_is_swept_a_day_later)
{
	struct setup t = begin();
	struct stream st = {.total = 9 * MIB};
	struct source source = stream_source(&st);
	char later[32];

	raw(&t, "POST", "half", "uploads");
	CHECK_OK(store_write_stream(t.c.s, &t.c.ctx, P("big"), &source, ANY, NULL, &t.c.err), t.c.err);
	CHECK_HAS(raw(&t, "GET", NULL, "uploads"), STR("half"));
	store_destroy(t.c.s);
	t.c.s = reopen(&t, "");
	st.at = 0;
	snprintf(later, sizeof(later), "%lld", (long long)(clock_real_ns() + 48 * 3600 * 1000000000LL));
	setenv("STEAD_TEST_CLOCK_NS", later, 1);
	CHECK_OK(store_write_stream(t.c.s, &t.c.ctx, P("big"), &source, ANY, NULL, &t.c.err), t.c.err);
	unsetenv("STEAD_TEST_CLOCK_NS");
	t.c.ctx.deadline_ns = 0;
	store_destroy(t.c.s);
	t.c.s = reopen(&t, "");
	CHECK_LACKS(raw(&t, "GET", NULL, "uploads"), STR("half"));
	end(&t);
}

TEST(an_r2_store_writes_and_reads_with_its_own_names_in_the_environment)
{
	struct conf c = {.ctx = {.arena = arena_new()}};
	char url[256];

	setenv("R2_ACCESS_KEY_ID", s3_env("_KEY"), 1);
	setenv("R2_SECRET_ACCESS_KEY", s3_env("_SECRET"), 1);
	snprintf(url, sizeof(url), "r2://" S3_BUCKET "/%s?create=1&endpoint=%s", s3_prefix(), s3_env(""));
	CHECK_OK(store_open_url(str_of(url), NULL, &c.s, &c.err), c.err);
	put(&c, "d/a", "x");
	CHECK_STR(get(&c, "d/a"), STR("x"));
	CHECK_ERR(store_write(c.s, &c.ctx, P("d/a"), STR("y"), ABSENT, NULL, &c.err), c.err, ERR_EXISTS);
	CHECK_TREE(&c, "d/a");
	store_destroy(c.s);
	arena_destroy(c.ctx.arena);
}

/* Every operation under every fault. */

static int run_op(struct conf *c, int op)
{
	struct store_list_req req = {.limit = 10};
	struct store_page page;
	struct str bytes;

	switch (op) {
	case 0:
		return store_stat(c->s, &c->ctx, P("d/a"), NULL, &c->err);
	case 1:
		return store_read(c->s, &c->ctx, P("d/a"), STORE_WHOLE, 100, &bytes, NULL, &c->err);
	case 2:
		return store_write(c->s, &c->ctx, P("d/a"), STR("new"), ANY, NULL, &c->err);
	case 3:
		return store_append(c->s, &c->ctx, P("d/a"), STR("+"), ANY, NULL, &c->err);
	case 4:
		return store_copy(c->s, &c->ctx, P("d/a"), P("d/copy"), ANY, NULL, &c->err);
	case 5:
		return store_move(c->s, &c->ctx, P("d/a"), P("d/moved"), ANY, ANY, NULL, &c->err);
	case 6:
		return store_list(c->s, &c->ctx, P("d"), &req, &page, &c->err);
	default:
		return store_remove(c->s, &c->ctx, P("d"), true, ANY, NULL, &c->err);
	}
}

/* Whatever happened, "d/a" has its old bytes or its new ones, or has gone where the operation takes it. */
static void check_whole(struct conf *c, int op)
{
	static const char *const paths[] = {"d/a", "d/copy", "d/moved"};
	unsigned found = 0;

	for (size_t i = 0; i < 3; i++) {
		struct str bytes;
		int r = store_read(c->s, &c->ctx, P(paths[i]), STORE_WHOLE, 100, &bytes, NULL, &c->err);

		CHECK(r == 0 || r == -ERR_NOT_FOUND);
		if (r == 0)
			CHECK(str_is(bytes, "old") || (op == 2 && str_is(bytes, "new")) ||
			      (op == 3 && str_is(bytes, "old+")));
		found += r == 0;
	}
	CHECK(found > 0 || op == 7);
}

TEST(every_operation_ends_under_every_fault_and_leaves_nothing_half_done)
{
	static const struct proxy_plan plans[] = {
		{.fault = PROXY_ANSWER, .answer = PROXY_STATUS("503 Slow Down", ""), .count = PROXY_ALWAYS},
		{.fault = PROXY_ANSWER, .answer = PROXY_STATUS("500 Internal Server Error", ""), .count = PROXY_ALWAYS},
		{.fault = PROXY_ANSWER, .answer = PROXY_STATUS("429 Too Many", ""), .count = PROXY_ALWAYS},
		{.fault = PROXY_CUT_REQUEST, .bytes = 40, .count = PROXY_ALWAYS},
		{.fault = PROXY_CUT_ANSWER, .count = PROXY_ALWAYS},
		{.fault = PROXY_CUT_ANSWER, .bytes = 30, .count = PROXY_ALWAYS},
		{.fault = PROXY_STALL, .count = PROXY_ALWAYS},
		{.fault = PROXY_STALL_ANSWER, .count = PROXY_ALWAYS},
	};
	struct setup t = begin();

	for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++)
		for (int op = 0; op < 8; op++) {
			put(&t.c, "d/a", "old");
			proxy_arm(t.proxy, &plans[i]);
			t.c.ctx.deadline_ns = in_ms(120);
			if (run_op(&t.c, op))
				CHECK(t.c.err.msg[0] && !strchr(t.c.err.msg, '\n'));
			proxy_disarm(t.proxy);
			t.c.ctx.deadline_ns = 0;
			check_whole(&t.c, op);
			CHECK_OK(store_remove(t.c.s, &t.c.ctx, P(""), true, ANY, NULL, &t.c.err), t.c.err);
		}
	end(&t);
}

/* History next to the files. */

TEST(with_revisions_a_write_costs_two_requests_more_and_a_read_none)
{
	struct setup t = begin();
	char meta_prefix[48], endpoint[64];
	struct store *meta;

	snprintf(meta_prefix, sizeof(meta_prefix), "%s-meta", t.prefix);
	snprintf(endpoint, sizeof(endpoint), "http://127.0.0.1:%u", proxy_port(t.proxy));
	meta = s3_at(endpoint, meta_prefix, "");
	CHECK_OK(
		store_revisions_open(t.c.s, meta, (struct revisions_opts){.journal = true}, &t.c.ctx, &t.c.s, &t.c.err),
		t.c.err);
	put(&t.c, "a", "1");
	put(&t.c, "a", "2");
	for (int i = 0; i < 5; i++) {
		char path[16];

		proxy_forget(t.proxy);
		put(&t.c, "a", i % 2 ? "x" : "y");
		CHECK(proxy_requests(t.proxy) <= 3);
		snprintf(path, sizeof(path), "new-%d", i);
		proxy_forget(t.proxy);
		put(&t.c, path, "z");
		CHECK(proxy_requests(t.proxy) <= 3);
	}
	proxy_forget(t.proxy);
	CHECK_STR(get(&t.c, "a"), STR("y"));
	CHECK_INT(proxy_requests(t.proxy), 1);
	end(&t);
}
