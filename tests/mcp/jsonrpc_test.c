/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/jsonrpc.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test.h"

/* A reader over a stream that holds `bytes`. */
static struct rpc_reader reader_of(struct str bytes, size_t line_max)
{
	int fd = memfd_create("in", MFD_CLOEXEC);
	struct rpc_reader r;

	if (fd < 0 || write(fd, bytes.ptr, bytes.len) != (ssize_t)bytes.len)
		abort();
	lseek(fd, 0, SEEK_SET);
	rpc_reader_init(&r, fd, line_max);
	return r;
}

static void reader_done(struct rpc_reader *r)
{
	close(r->fd);
	rpc_reader_release(r);
}

static enum rpc_got next(struct rpc_reader *r, struct str *line)
{
	enum rpc_got got;

	while ((got = rpc_reader_next(r, line)) == RPC_NEED_MORE)
		rpc_reader_fill(r);
	return got;
}

/* The code that a line is answered with (0: none), and the id that it has. */
static int code_of(struct arena *arena, const char *line, struct rpc_message *ret)
{
	struct err err;

	return rpc_parse(arena, str_of(line), ret, &err);
}

TEST(lines_are_cut_at_newlines_and_a_carriage_return_is_dropped)
{
	struct rpc_reader r = reader_of(STR("one\r\n\ntwo\nthree"), 100);
	struct str line;

	CHECK_INT(next(&r, &line), RPC_LINE);
	CHECK_STR(line, STR("one"));
	CHECK_INT(next(&r, &line), RPC_LINE);
	CHECK_STR(line, STR(""));
	CHECK_INT(next(&r, &line), RPC_LINE);
	CHECK_STR(line, STR("two"));
	CHECK_INT(next(&r, &line), RPC_LINE);
	CHECK_STR(line, STR("three"));
	CHECK_INT(next(&r, &line), RPC_END);
	reader_done(&r);
}

TEST(a_line_that_is_too_long_is_skipped_without_losing_the_next)
{
	static char bytes[300000];
	struct rpc_reader r;
	struct str line;

	memset(bytes, 'x', sizeof(bytes));
	memcpy(bytes + sizeof(bytes) - 6, "\nnext\n", 6);
	r = reader_of(str_n(bytes, sizeof(bytes)), 1000);
	CHECK_INT(next(&r, &line), RPC_TOO_LONG);
	CHECK_INT(next(&r, &line), RPC_LINE);
	CHECK_STR(line, STR("next"));
	CHECK(r.cap < 200000);
	CHECK_INT(next(&r, &line), RPC_END);
	reader_done(&r);
}

TEST(the_longest_allowed_line_is_taken_and_one_byte_more_is_not)
{
	struct rpc_reader r = reader_of(STR("12345\n123456\n12345"), 5);
	struct str line;

	CHECK_INT(next(&r, &line), RPC_LINE);
	CHECK_INT(next(&r, &line), RPC_TOO_LONG);
	CHECK_INT(next(&r, &line), RPC_LINE);
	CHECK_STR(line, STR("12345"));
	reader_done(&r);
}

TEST(a_stream_that_ends_within_a_line_that_is_too_long_says_so_once)
{
	static char bytes[100000];
	struct rpc_reader r;
	struct str line;

	memset(bytes, 'x', sizeof(bytes));
	r = reader_of(str_n(bytes, sizeof(bytes)), 10);
	CHECK_INT(next(&r, &line), RPC_TOO_LONG);
	CHECK_INT(next(&r, &line), RPC_END);
	reader_done(&r);
}

TEST(a_long_line_does_not_keep_its_memory)
{
	size_t len = 5000000;
	char *bytes = malloc(len);
	struct rpc_reader r;
	struct str line;

	memset(bytes, 'x', len);
	bytes[len - 1] = '\n';
	r = reader_of(str_n(bytes, len), len);
	CHECK_INT(next(&r, &line), RPC_LINE);
	CHECK_INT(line.len, len - 1);
	CHECK_INT(next(&r, &line), RPC_END);
	CHECK(r.cap <= 1024 * 1024);
	reader_done(&r);
	free(bytes);
}

TEST(requests_notifications_and_responses_are_told_apart)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct rpc_message m;

	CHECK_INT(code_of(arena, "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\",\"params\":{}}", &m), 0);
	CHECK_INT(m.kind, RPC_REQUEST);
	CHECK_INT(m.id->u.i, 7);
	CHECK_STR(m.method, STR("ping"));
	CHECK_INT(code_of(arena, "{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"params\":[1]}", &m), 0);
	CHECK_INT(m.kind, RPC_NOTIFICATION);
	CHECK(!m.params);
	CHECK_INT(code_of(arena, "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}", &m), 0);
	CHECK_INT(m.kind, RPC_RESPONSE);
}

TEST(what_is_not_json_gets_a_parse_error)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	static const char *const bad[] = {"x", "{", "{\"a\":}", "\xff\xfe", "{\"a\":\"\xc3\x28\"}", "{} {}"};
	struct rpc_message m;

	CHECK_INT(code_of(arena, "{\"id\":1,}", &m), RPC_PARSE);
	CHECK_INT(m.id->u.i, 1);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CHECK_INT(code_of(arena, bad[i], &m), RPC_PARSE);
		CHECK(!m.id);
	}
}

TEST(a_wrong_envelope_gets_invalid_request_with_its_id_where_it_has_one)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct rpc_message m;

	CHECK_INT(code_of(arena, "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]", &m), RPC_INVALID_REQUEST);
	CHECK_INT(code_of(arena, "\"ping\"", &m), RPC_INVALID_REQUEST);
	CHECK_INT(code_of(arena, "{\"id\":1,\"method\":\"ping\"}", &m), RPC_INVALID_REQUEST);
	CHECK_INT(m.id->u.i, 1);
	CHECK_INT(code_of(arena, "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":5}", &m), RPC_INVALID_REQUEST);
	CHECK_STR(m.id->u.s, STR("a"));
	CHECK_INT(code_of(arena, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"x\",\"params\":[]}", &m),
		  RPC_INVALID_PARAMS);
	CHECK_INT(m.id->u.i, 2);
}

TEST(an_id_that_is_neither_string_nor_integer_is_refused)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	static const char *const ids[] = {"null", "1.5", "true", "[1]", "{}"};
	struct rpc_message m;

	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		struct str line = arena_printf(arena, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"ping\"}", ids[i]);

		CHECK_INT(code_of(arena, line.ptr, &m), RPC_INVALID_REQUEST);
		CHECK(!m.id);
	}
}

TEST(an_error_reply_without_a_readable_id_has_none)
{
	struct rpc_error error = {RPC_PARSE, STR("no \"json\""), NULL};
	struct buf b;

	buf_init(&b, NULL, 1000);
	rpc_write_error(&b, NULL, &error);
	CHECK_STR(buf_str(&b),
		  STR("{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32700,\"message\":\"no \\\"json\\\"\"}}\n"));
	buf_release(&b);
}
