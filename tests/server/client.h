/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server in this process over a new store, and raw sockets to it: a test says which bytes it sends, and reads what
 * comes back. Waiting ends after ten seconds with a failed test.
 */
#ifndef STEAD_TESTS_SERVER_CLIENT_H
#define STEAD_TESTS_SERVER_CLIENT_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/ctx.h"
#include "base/limits.h"
#include "server/serve.h"
#include "server/tokens.h"
#include "store/stores.h"
#include "temp_dir.h"
#include "text/jv.h"
#include "workspace/workspace.h"

#define WAIT_MS 10000

struct site {
	struct serve *serve;
	struct arena *arena;
	struct str store_url;
	const char *dir;
	uint16_t port;
};

static void site_stop(struct site *s)
{
	if (s->serve && !serve_stop(s->serve, 1000)) {
		printf("# the server did not end\n");
		abort();
	}
	s->serve = NULL;
	arena_destroy(s->arena);
}

__attribute__((unused)) static void site_make_workspace(struct site *s, const char *name)
{
	struct workspace_opts opts = {.store_url = s->store_url, .name = str_of(name), .create = true, .relaxed = true};
	struct workspace *ws;
	struct err err = {0};

	CHECK_OK(workspace_open(&opts, &ws, &err), err);
	workspace_close(ws);
}

/* Serves a new directory with one workspace, "demo". */
__attribute__((unused)) static void site_start_with(struct site *s, struct serve_opts opts)
{
	struct err err = {0};
	int64_t port = 0;

	opts.host = STR("127.0.0.1");
	opts.relaxed = true;

	*s = (struct site){.arena = arena_new(), .dir = temp_dir_new()};
	s->store_url = arena_printf(s->arena, "disk:%s/ws", s->dir);
	test_defer(site_stop, s);
	site_make_workspace(s, "demo");
	opts.store_url = s->store_url;
	CHECK_OK(serve_start(&opts, &s->serve, &err), err);
	CHECK(str_to_i64(str_from(serve_url(s->serve), strlen("http://127.0.0.1:")), &port));
	s->port = (uint16_t)port;
}

/* One more server over the store of `first`. */
__attribute__((unused)) static void site_join(struct site *s, const struct site *first)
{
	struct serve_opts opts = {.host = STR("127.0.0.1"), .relaxed = true, .is_open = true};
	struct err err = {0};
	int64_t port = 0;

	*s = (struct site){.arena = arena_new(), .dir = first->dir};
	s->store_url = arena_str(s->arena, first->store_url);
	test_defer(site_stop, s);
	opts.store_url = s->store_url;
	CHECK_OK(serve_start(&opts, &s->serve, &err), err);
	CHECK(str_to_i64(str_from(serve_url(s->serve), strlen("http://127.0.0.1:")), &port));
	s->port = (uint16_t)port;
}

/* A model that takes requests and never answers: the socket that it listens on. */
__attribute__((unused)) static int silent_model(struct site *s)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof at;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	FILE *config;

	CHECK(bind(fd, (struct sockaddr *)&at, sizeof at) == 0 && listen(fd, 8) == 0 &&
	      getsockname(fd, (struct sockaddr *)&at, &len) == 0);
	setenv("OPENAI_API_KEY", "none", 1);
	config = fopen(arena_printf(s->arena, "%s/ws/demo/agent.yaml", s->dir).ptr, "we");
	CHECK(config && fprintf(config, "model:\n  provider: openai\n  model: m\n  base_url: http://127.0.0.1:%d\n",
				ntohs(at.sin_port)) > 0);
	CHECK(fclose(config) == 0);
	return fd;
}

__attribute__((unused)) static void site_start(struct site *s, bool is_open)
{
	site_start_with(s, (struct serve_opts){.is_open = is_open});
}

/* The text of a new token. */
__attribute__((unused)) static const char *site_token(struct site *s, enum access access, const char *workspace,
						      const char *user)
{
	struct str workspaces = str_of(workspace), users = str_of(user);
	struct token_want want = {.access = access,
				  .workspaces = &workspaces,
				  .workspace_count = workspace != NULL,
				  .users = &users,
				  .user_count = user != NULL};
	struct ctx ctx = {.arena = s->arena};
	struct store *base;
	struct jv *token;
	struct err err = {0};

	CHECK_OK(store_open_url(s->store_url, NULL, &base, &err), err);
	CHECK_OK(token_create(base, &ctx, &want, &token, &err), err);
	store_destroy(base);
	return arena_cstr(s->arena, jv_get_str(token, "token"));
}

/* --- connections --- */

struct reply {
	int status;
	struct str head, body; /* head: with its last line end */
};

struct wire {
	int fd;
	struct arena *arena;
	char *buf;
	size_t len, cap;
};

static void wire_close(struct wire *w)
{
	if (w->fd >= 0)
		close(w->fd);
	w->fd = -1;
	free(w->buf);
	w->buf = NULL;
}

__attribute__((unused)) static void wire_open(struct wire *w, struct site *s)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(s->port)};

	*w = (struct wire){.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), .arena = s->arena};
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK(connect(w->fd, (struct sockaddr *)&to, sizeof(to)) == 0);
	test_defer(wire_close, w);
}

__attribute__((unused)) static void wire_send(struct wire *w, struct str bytes)
{
	while (bytes.len) {
		ssize_t n = send(w->fd, bytes.ptr, bytes.len, MSG_NOSIGNAL);

		if (n <= 0)
			TEST_FAIL("the server has closed the connection");
		bytes = str_from(bytes, (size_t)n);
	}
}

/* More bytes; false: the server has closed. */
__attribute__((unused)) static bool wire_more(struct wire *w)
{
	struct pollfd p = {.fd = w->fd, .events = POLLIN};
	ssize_t n;

	if (poll(&p, 1, WAIT_MS) != 1)
		TEST_FAIL("nothing came in %d ms; so far: %.*s", WAIT_MS, (int)w->len, w->buf ? w->buf : "");
	if (w->cap - w->len < 65536) {
		w->cap = w->cap ? 2 * w->cap : 131072;
		w->buf = realloc(w->buf, w->cap);
	}
	n = recv(w->fd, w->buf + w->len, w->cap - w->len - 1, 0);
	if (n <= 0)
		return false;
	w->len += (size_t)n;
	return true;
}

__attribute__((unused)) static struct str head_value(struct str head, const char *name)
{
	struct str line;

	while (str_cut(&head, '\n', &line)) {
		size_t colon = str_find_char(line, ':');

		if (str_eq_nocase(str_first(line, colon), str_of(name)))
			return str_trim(str_from(line, colon + 1));
	}
	return STR_NONE;
}

/* The chunks of a body put together; false: it is not whole. */
__attribute__((unused)) static bool join_chunks(struct arena *arena, struct str text, struct str *ret, size_t *ret_used)
{
	struct str rest = text;
	struct buf b;

	buf_init(&b, arena, 1024 * MIB);
	for (;;) {
		size_t end = str_find(rest, STR("\r\n"), 0), size;

		if (end == SIZE_MAX)
			return false;
		size = strtoul(arena_cstr(arena, str_first(rest, end)), NULL, 16);
		rest = str_from(rest, end + 2);
		if (rest.len < size + 2)
			return false;
		buf_add(&b, str_first(rest, size));
		rest = str_from(rest, size + 2);
		if (!size)
			break;
	}
	*ret = b.ptr ? buf_str(&b) : STR("");
	*ret_used = text.len - rest.len;
	return true;
}

/* The next answer, whole. `no_body`: to HEAD. Status 0: the connection was closed without one. */
__attribute__((unused)) static struct reply wire_read(struct wire *w, bool no_body)
{
	struct reply reply = {0};
	size_t end, used = 0;
	int64_t length = 0;
	struct str value;

	while ((end = str_find(str_n(w->buf, w->len), STR("\r\n\r\n"), 0)) == SIZE_MAX)
		if (!wire_more(w))
			return reply;
	reply.head = arena_str(w->arena, str_n(w->buf, end + 4));
	CHECK(str_starts(reply.head, STR("HTTP/1.1 ")) && str_to_i64(str_first(str_from(reply.head, 9), 3), &length));
	reply.status = (int)length;
	length = 0;
	value = head_value(reply.head, "Content-Length");
	if (value.ptr)
		CHECK(str_to_i64(value, &length));
	if (head_value(reply.head, "Transfer-Encoding").ptr && !no_body) {
		while (!join_chunks(w->arena, str_n(w->buf + end + 4, w->len - end - 4), &reply.body, &used))
			CHECK(wire_more(w));
	} else {
		used = no_body || reply.status == 304 || reply.status == 204 ? 0 : (size_t)length;
		while (w->len < end + 4 + used)
			CHECK(wire_more(w));
		reply.body = arena_str(w->arena, str_n(w->buf + end + 4, used));
	}
	used += end + 4;
	memmove(w->buf, w->buf + used, w->len - used);
	w->len -= used;
	if (reply.status == 100)
		return wire_read(w, no_body);
	return reply;
}

/* One request on a connection of its own. `extra`: header lines, each with "\r\n"; NULL: none. */
__attribute__((unused)) static struct reply ask(struct site *s, const char *method, const char *target,
						const char *extra, struct str body)
{
	struct reply reply;
	static struct wire w;

	wire_open(&w, s);
	wire_send(&w, arena_printf(s->arena, "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\n%s", method, target,
				   extra ? extra : ""));
	if (body.ptr)
		wire_send(&w, arena_printf(s->arena, "Content-Length: %zu\r\n", body.len));
	wire_send(&w, STR("\r\n"));
	if (body.len)
		wire_send(&w, body);
	reply = wire_read(&w, strcmp(method, "HEAD") == 0);
	test_close(&w);
	return reply;
}

__attribute__((unused)) static struct reply get(struct site *s, const char *target)
{
	return ask(s, "GET", target, NULL, STR_NONE);
}

__attribute__((unused)) static const char *bearer(struct site *s, const char *token)
{
	return arena_printf(s->arena, "Authorization: Bearer %s\r\n", token).ptr;
}

__attribute__((unused)) static const struct jv *json_of(struct site *s, struct reply reply)
{
	struct jv *v;
	struct err err = {0};

	CHECK_OK(jv_parse(s->arena, reply.body, &v, &err), err);
	return v;
}

#define CHECK_STATUS(got, want)                                                                                        \
	do {                                                                                                           \
		struct reply reply_ = (got);                                                                           \
		if (reply_.status != (want))                                                                           \
			TEST_FAIL("%s is %d, expected %d: %.*s", #got, reply_.status, (want),                          \
				  STR_ARG(str_first(reply_.body, 300)));                                               \
	} while (0)

/* A file outside the store, or one that the server has not read yet. */
__attribute__((unused)) static void write_host_file(const char *path, struct str text)
{
	FILE *f = fopen(path, "we");

	CHECK(f && fwrite(text.ptr, 1, text.len, f) == text.len && fclose(f) == 0);
}

#endif
