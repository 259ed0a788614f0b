/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server on a thread of its own, and the test as its client. Whatever comes back is checked to be one JSON message a
 * line. Waiting ends after ten seconds with a failed test.
 */
#ifndef STEAD_TESTS_SESSION_H
#define STEAD_TESTS_SESSION_H

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include "base/limits.h"
#include "mcp/jsonrpc.h"
#include "mcp/mcp.h"
#include "temp_dir.h"

struct session {
	struct workspace *ws;
	struct toolset *all, *set; /* set: what it serves */
	struct mcp_opts opts;
	struct arena *arena;
	pthread_t thread;
	int server_in, server_out, to, from;
	int status; /* of mcp_serve_stdio */
	struct rpc_reader reader;
};

static void *session_serve(void *arg)
{
	struct session *s = arg;
	struct err err;

	s->status = mcp_serve_stdio(s->ws, s->set, &s->opts, s->server_in, s->server_out, &err);
	close(s->server_out);
	return NULL;
}

struct session_how {
	struct str store_url, files_dir;
	const char *sets; /* NULL: all tools, and structured results */
	struct str dialect;
};

static void session_open_how(struct session *s, const struct session_how *how)
{
	struct workspace_opts opts = {.store_url = how->store_url,
				      .name = STR("test"),
				      .files_dir = how->files_dir,
				      .create = true,
				      .relaxed = true};
	struct toolset_choice choice = {.sets = how->sets ? str_of(how->sets) : STR("all")};
	struct err err = {0};
	int in[2], out[2];

	*s = (struct session){.arena = arena_new(), .status = -1, .opts = {.structured = !how->sets}};
	dialect_opts(how->dialect, &opts);
	CHECK_OK(workspace_open(&opts, &s->ws, &err), err);
	CHECK_OK(toolset_new(s->ws, how->dialect, &s->all, &err), err);
	CHECK_OK(toolset_choose(s->all, &choice, &s->set, &err), err);
	CHECK(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0);
	s->server_in = in[0];
	s->to = in[1];
	s->from = out[0];
	s->server_out = out[1];
	rpc_reader_init(&s->reader, s->from, 512 * MIB);
	CHECK_INT(pthread_create(&s->thread, NULL, session_serve, s), 0);
}

static void session_open_on(struct session *s, struct str store_url, struct str files_dir)
{
	session_open_how(s, &(struct session_how){.store_url = store_url, .files_dir = files_dir});
}

__attribute__((unused)) static void session_open_at(struct session *s, struct str files_dir)
{
	session_open_on(s, STR("memory:"), files_dir);
}

__attribute__((unused)) static void session_open(struct session *s)
{
	session_open_at(s, STR_NONE);
}

static void session_send(struct session *s, struct str bytes)
{
	while (bytes.len) {
		ssize_t n = write(s->to, bytes.ptr, bytes.len);

		CHECK(n > 0);
		bytes = str_from(bytes, (size_t)n);
	}
}

/* A line and its end. */
static void session_line(struct session *s, const char *line)
{
	session_send(s, arena_printf(s->arena, "%s\n", line));
}

/* The next message, or NULL when the server has ended. */
static struct jv *session_next(struct session *s)
{
	struct err err = {0};
	enum rpc_got got;
	struct str line;
	struct jv *v;

	while ((got = rpc_reader_next(&s->reader, &line)) == RPC_NEED_MORE) {
		if (poll(&(struct pollfd){.fd = s->from, .events = POLLIN}, 1, 10000) <= 0)
			TEST_FAIL("the server says nothing");
		rpc_reader_fill(&s->reader);
	}
	if (got == RPC_END)
		return NULL;
	CHECK_INT(got, RPC_LINE);
	CHECK_OK(jv_parse(s->arena, arena_str(s->arena, line), &v, &err), err);
	CHECK_STR(jv_get_str(v, "jsonrpc"), STR("2.0"));
	return v;
}

/* Sends a line and gives the next message. */
__attribute__((unused)) static struct jv *session_ask(struct session *s, const char *line)
{
	struct jv *v;

	session_line(s, line);
	v = session_next(s);
	if (!v)
		TEST_FAIL("the server ended instead of answering %.200s", line);
	return v;
}

/* Ends the input and waits; what was not read yet can still be read. */
static void session_finish(struct session *s)
{
	close(s->to);
	s->to = -1;
	pthread_join(s->thread, NULL);
	CHECK_INT(s->status, 0);
}

static void session_close(struct session *s)
{
	if (s->to >= 0)
		session_finish(s);
	close(s->from);
	close(s->server_in);
	rpc_reader_release(&s->reader);
	toolset_destroy(s->set);
	toolset_destroy(s->all);
	workspace_close(s->ws);
	arena_destroy(s->arena);
}

static inline int code_of(const struct jv *reply)
{
	return (int)jv_get_int(jv_get(reply, "error"), "code", 0);
}

#define META                                                                                                           \
	"\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","                                       \
	"\"io.modelcontextprotocol/clientCapabilities\":{}}"
#define PING "{\"jsonrpc\":\"2.0\",\"id\":\"ping\",\"method\":\"ping\"}"

/* Writes a file by a call of id 0, and takes the answer; notifications before it are dropped. */
__attribute__((unused)) static void session_write(struct session *s, const char *path, const char *content)
{
	struct jv *v;

	session_line(s, arena_printf(s->arena,
				     "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"tools/call\",\"params\":{\"name\":"
				     "\"write_file\",\"arguments\":{\"path\":\"%s\",\"content\":\"%s\",\"mode\":"
				     "\"overwrite\"}}}",
				     path, content)
				.ptr);
	do
		v = session_next(s);
	while (!jv_get(v, "id"));
	CHECK(!jv_get_bool(jv_get(v, "result"), "isError", false) && jv_get(v, "result"));
}

#endif
