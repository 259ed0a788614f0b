/* SPDX-License-Identifier: Apache-2.0 */
/* What goes wrong with a Redis server, in one sentence each that says what to fix, with no secret in it. */
#include "store/backends/redis/redis_fix.h"

#define SECRET "hunter2-and-more"

/* redis-cli's answer, one line. */
static struct str cli(struct conf *c, const char *command)
{
	struct str line = arena_printf(c->ctx.arena, "redis-cli -p %s %s", redis_env("STEAD_TEST_REDIS_PORT"), command);
	FILE *f = popen(line.ptr, "r");
	char answer[256] = "";

	CHECK(f != NULL);
	if (!fgets(answer, sizeof(answer), f))
		answer[0] = '\0';
	pclose(f);
	return str_trim(arena_str(c->ctx.arena, str_of(answer)));
}

static struct conf conf_new(void)
{
	return (struct conf){.s = redis_open_new(), .ctx = {.arena = arena_new()}};
}

static void conf_end(struct conf *c)
{
	store_destroy(c->s);
	arena_destroy(c->ctx.arena);
}

#define CONF_SCOPE __attribute__((cleanup(conf_end))) struct conf

/* The URL does not open, as `kind`, with `words` in the sentence and without the secret. */
static void refused(const char *url, enum err_kind kind, const char *words)
{
	struct store *s;
	struct err err;

	CHECK_ERR(store_open_url(str_of(url), NULL, &s, &err), err, kind);
	CHECK_HAS(str_of(err.msg), str_of(words));
	CHECK(!strstr(err.msg, SECRET));
	CHECK(!strchr(err.msg, '\n'));
}

static const char *at(const char *user, const char *rest)
{
	static char url[512];

	snprintf(url, sizeof(url), "redis://%s127.0.0.1:%s%s", user, redis_env("STEAD_TEST_REDIS_PORT"), rest);
	return url;
}

TEST(a_wrong_password_says_where_to_set_it)
{
	refused(at("agent:" SECRET "@", ""), ERR_UNAUTHENTICATED, "STEAD_REDIS_PASSWORD");
	refused(at("nobody:" SECRET "@", ""), ERR_UNAUTHENTICATED, "check the user");
	setenv("REDIS_PASSWORD", SECRET, 1);
	refused(at("agent@", ""), ERR_UNAUTHENTICATED, "STEAD_REDIS_PASSWORD");
	unsetenv("REDIS_PASSWORD");
}

TEST(a_server_that_wants_a_password_is_named_with_the_variable)
{
	CONF_SCOPE c = conf_new();

	cli(&c, "config set requirepass " SECRET);
	refused(at("", ""), ERR_UNAUTHENTICATED, "set STEAD_REDIS_PASSWORD");
	setenv("STEAD_REDIS_PASSWORD", SECRET, 1);
	store_destroy(redis_open_new());
	unsetenv("STEAD_REDIS_PASSWORD");
	cli(&c, "-a " SECRET " --no-auth-warning config set requirepass ''");
	CHECK_STR(cli(&c, "ping"), STR("PONG"));
}

TEST(a_database_that_is_not_there_says_so)
{
	refused(at("", "/4711"), ERR_INVALID, "no such database");
	refused(at("", "/four"), ERR_INVALID, "not a number");
}

TEST(nobody_listening_and_an_unknown_name_are_unavailable)
{
	refused("redis://127.0.0.1:1", ERR_UNAVAILABLE, "Redis at 127.0.0.1:1: cannot connect");
	refused("redis://no-such-host.invalid", ERR_UNAVAILABLE, "cannot be resolved");
	refused("redis+unix:///no/such.sock", ERR_UNAVAILABLE, "/no/such.sock");
}

TEST(a_malformed_url_says_what_is_wrong_with_it)
{
	refused("redis://h:x", ERR_INVALID, "port");
	refused("redis://h:0", ERR_INVALID, "port");
	refused("redis://u:" SECRET "@h?prefix={a}", ERR_INVALID, "prefix");
	refused("redis://h?color=red", ERR_INVALID, "option");
	refused("redis://%zz@h", ERR_INVALID, "percent");
	refused("redis://[::1", ERR_INVALID, "bracket");
	refused("redis://h?timeout_ms=0", ERR_INVALID, "timeout_ms");
	refused("redis+unix://", ERR_INVALID, "socket");
}

TEST(a_user_without_the_right_to_a_prefix_is_denied)
{
	setenv("STEAD_REDIS_PASSWORD", redis_env("STEAD_TEST_REDIS_SECRET"), 1);
	refused(at("agent@", "?prefix=other"), ERR_DENIED, "docs/stores.md");
	unsetenv("STEAD_REDIS_PASSWORD");
}

TEST(a_certificate_that_is_not_trusted_is_refused)
{
	unsetenv("STEAD_REDIS_CA");
	refused(redis_env("STEAD_TEST_REDIS_TLS"), ERR_UNAUTHENTICATED, "certificate is not trusted");
	setenv("STEAD_REDIS_CA", "/dev/null", 1);
	refused(redis_env("STEAD_TEST_REDIS_TLS"), ERR_INVALID, "certificate authorities");
	unsetenv("STEAD_REDIS_CA");
}

TEST(a_server_without_tls_does_not_speak_it)
{
	char url[128];
	struct store *s;
	struct err err;

	snprintf(url, sizeof(url), "rediss://127.0.0.1:%s?timeout_ms=300", redis_env("STEAD_TEST_REDIS_PORT"));
	CHECK_ERR(store_open_url(str_of(url), NULL, &s, &err), err, ERR_TIMEOUT);
	CHECK_HAS(str_of(err.msg), STR("Redis at 127.0.0.1"));
}

TEST(a_full_server_refuses_writes_and_lets_things_be_removed)
{
	CONF_SCOPE c = conf_new();
	uint64_t count;

	put(&c, "a", "small");
	cli(&c, "config set maxmemory 1");
	CHECK_ERR(store_write(c.s, &c.ctx, P("b"), STR("x"), ANY, NULL, &c.err), c.err, ERR_QUOTA);
	CHECK_HAS(str_of(c.err.msg), STR("maxmemory"));
	CHECK_ERR(store_append(c.s, &c.ctx, P("a"), STR("x"), ANY, NULL, &c.err), c.err, ERR_QUOTA);
	CHECK_STR(get(&c, "a"), STR("small"));
	CHECK_OK(store_remove(c.s, &c.ctx, P("a"), false, ANY, &count, &c.err), c.err);
	cli(&c, "config set maxmemory 0");
	CHECK_TREE(&c, "");
}

TEST(a_read_only_replica_says_to_name_the_primary)
{
	CONF_SCOPE c = conf_new();
	int r;

	cli(&c, "replicaof 127.0.0.1 1");
	r = store_write(c.s, &c.ctx, P("b"), STR("x"), ANY, NULL, &c.err);
	cli(&c, "replicaof no one");
	CHECK_ERR(r, c.err, ERR_UNAVAILABLE);
	CHECK_HAS(str_of(c.err.msg), STR("read-only replica"));
	put(&c, "b", "x");
}

TEST(a_server_that_is_busy_with_a_script_says_so)
{
	CONF_SCOPE c = conf_new();
	int r = 0;

	cli(&c, "config set busy-reply-threshold 1");
	cli(&c, "eval 'while true do end' 0 >/dev/null 2>&1 &");
	for (int i = 0; i < 1000 && r == 0; i++)
		r = store_write(c.s, &c.ctx, P("b"), STR("x"), ANY, NULL, &c.err);
	cli(&c, "script kill");
	CHECK_ERR(r, c.err, ERR_UNAVAILABLE);
	CHECK_HAS(str_of(c.err.msg), STR("busy"));
	cli(&c, "config set busy-reply-threshold 5000");
	put(&c, "b", "x");
}

TEST(keys_of_another_program_are_not_touched)
{
	CONF_SCOPE c = conf_new();

	cli(&c, "set {theirs}:format other");
	refused(at("", "?prefix=theirs"), ERR_UNSUPPORTED, "another prefix");
	CHECK_STR(cli(&c, "get {theirs}:format"), STR("other"));
}

TEST(scripts_that_were_flushed_are_given_again)
{
	CONF_SCOPE c = conf_new();

	put(&c, "a", "1");
	cli(&c, "script flush");
	put(&c, "a", "2");
	CHECK_STR(get(&c, "a"), STR("2"));
}

TEST(a_server_that_does_not_keep_what_it_acknowledges_is_pointed_out)
{
	CONF_SCOPE c = conf_new();
	struct store *s;

	CHECK_HAS(str_of(store_redis_advice(c.s)), STR("appendfsync always"));
	cli(&c, "config set appendfsync always");
	cli(&c, "config set maxmemory-policy allkeys-lru");
	s = redis_open_new();
	CHECK_HAS(str_of(store_redis_advice(s)), STR("noeviction"));
	store_destroy(s);
	cli(&c, "config set maxmemory-policy noeviction");
	s = redis_open_new();
	CHECK(store_redis_advice(s) == NULL);
	store_destroy(s);
	cli(&c, "config set appendfsync everysec");
}

/* One trip each, once the connection is open. */
TEST(reading_and_writing_are_one_round_trip_each)
{
	CONF_SCOPE c = conf_new();
	uint64_t before;
	struct str v;

	put(&c, "d/a", "one");
	before = store_redis_trips(c.s);
	get(&c, "d/a");
	CHECK_INT(store_redis_trips(c.s) - before, 1);
	v = put(&c, "d/b", "made below a directory");
	CHECK_OK(store_write(c.s, &c.ctx, P("d/b"), STR("two"), VERS(v), NULL, &c.err), c.err);
	CHECK_OK(store_append(c.s, &c.ctx, P("d/b"), STR("+"), ANY, NULL, &c.err), c.err);
	CHECK_INT(store_redis_trips(c.s) - before, 4);
	CHECK_OK(store_copy(c.s, &c.ctx, P("d/b"), P("e"), ANY, NULL, &c.err), c.err);
	CHECK_OK(store_move(c.s, &c.ctx, P("d"), P("f"), ANY, ANY, NULL, &c.err), c.err);
	CHECK_OK(store_remove(c.s, &c.ctx, P("f"), true, ANY, NULL, &c.err), c.err);
	CHECK_TREE(&c, "e");
	CHECK_INT(store_redis_trips(c.s) - before, 8);
}

TEST(what_was_staged_for_a_write_that_failed_goes_away)
{
	CONF_SCOPE c = conf_new();
	struct stream st = {.total = 4 * MIB};
	struct source source = stream_source(&st);
	char scan[160];

	put(&c, "a", "there");
	CHECK_ERR(store_write_stream(c.s, &c.ctx, P("a"), &source, ABSENT, NULL, &c.err), c.err, ERR_EXISTS);
	snprintf(scan, sizeof(scan), "--scan --pattern '{t%d-*}:c:*' | wc -l", (int)getpid());
	CHECK_STR(cli(&c, scan), STR("0"));
	st = (struct stream){.total = 4 * MIB};
	CHECK_OK(store_write_stream(c.s, &c.ctx, P("a"), &source, ANY, NULL, &c.err), c.err);
	CHECK_STR(cli(&c, scan), STR("4"));
}

TEST(a_large_append_is_one_step_and_reads_back)
{
	CONF_SCOPE c = conf_new();
	struct stream st = {.total = 3 * MIB + 5}, more = {.total = 2 * MIB + 1};
	struct source source = stream_source(&st), second = stream_source(&more);
	struct str bytes;

	put(&c, "a", "head");
	CHECK_OK(store_append_stream(c.s, &c.ctx, P("a"), &source, ANY, NULL, &c.err), c.err);
	CHECK_OK(store_append(c.s, &c.ctx, P("a"), STR("mid"), ANY, NULL, &c.err), c.err);
	CHECK_OK(store_append_stream(c.s, &c.ctx, P("a"), &second, ANY, NULL, &c.err), c.err);
	bytes = get(&c, "a");
	CHECK_INT(bytes.len, 4 + 3 * MIB + 5 + 3 + 2 * MIB + 1);
	CHECK_STR(str_first(bytes, 4), STR("head"));
	CHECK_STR(str_first(str_from(bytes, 4 + 3 * MIB + 5), 3), STR("mid"));
	for (size_t i = 0; i < 3 * MIB + 5; i++)
		if (bytes.ptr[4 + i] != stream_byte(i))
			TEST_FAIL("byte %zu is %d", i, bytes.ptr[4 + i]);
	for (size_t i = 0; i < 2 * MIB + 1; i++)
		if (bytes.ptr[12 + 3 * MIB + i] != stream_byte(i))
			TEST_FAIL("byte %zu of the second is %d", i, bytes.ptr[12 + 3 * MIB + i]);
	for (uint64_t from = 3 * MIB - 2; from < 3 * MIB + 20; from++) {
		struct store_range range = {from, 7};
		struct str part;

		CHECK_OK(store_read(c.s, &c.ctx, P("a"), range, 7, &part, NULL, &c.err), c.err);
		CHECK_STR(part, str_first(str_from(bytes, from), 7));
	}
}
