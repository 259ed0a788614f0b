/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An HTTP server on threads of the test, on a free port of loopback. Each request is given to the test's function,
 * which writes the whole answer. A connection carries one request.
 */
#ifndef STEAD_TESTS_STUB_SERVER_H
#define STEAD_TESTS_STUB_SERVER_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/limits.h"
#include "test.h"

struct stub_request {
	struct str method, target; /* target with its query */
	struct str head, body;
	int fd; /* for answers that are sent in parts */
};

struct stub_server {
	int fd;
	uint16_t port;
	/* Adds the answer, status line and all; adds nothing to hang up. Runs on any thread. */
	void (*answer)(void *arg, const struct stub_request *req, struct buf *out);
	void *arg;
	pthread_t thread;
	atomic_uint connections, open;
	atomic_bool ended;
};

struct stub_connection {
	struct stub_server *server;
	int fd;
};

static bool stub_receive(int fd, struct buf *in, size_t *ret_head)
{
	while (!in->overflow) {
		char chunk[65536];
		size_t head = str_find(buf_str(in), STR("\r\n\r\n"), 0), at;
		int64_t length = 0;
		ssize_t n;

		if (head != SIZE_MAX) {
			struct str text = str_first(buf_str(in), head + 2);

			at = str_find(text, STR("ontent-Length: "), 0);
			if (at != SIZE_MAX) {
				struct str value = str_from(text, at + 15);

				str_to_i64(str_first(value, str_find_char(value, '\r')), &length);
			}
			*ret_head = head + 4;
			if (in->len >= head + 4 + (size_t)length)
				return true;
		}
		n = recv(fd, chunk, sizeof(chunk), 0);
		if (n <= 0)
			return false;
		buf_add(in, str_n(chunk, (size_t)n));
	}
	return false;
}

static void stub_send(int fd, struct str bytes)
{
	while (bytes.len) {
		ssize_t n = send(fd, bytes.ptr, bytes.len, MSG_NOSIGNAL);

		if (n <= 0)
			return;
		bytes = str_from(bytes, (size_t)n);
	}
}

static void *stub_serve(void *arg)
{
	struct stub_connection c = *(struct stub_connection *)arg;
	struct buf in, out;
	size_t head = 0;

	free(arg);
	buf_init(&in, NULL, 128 * MIB);
	buf_init(&out, NULL, 128 * MIB);
	if (stub_receive(c.fd, &in, &head)) {
		struct str line = str_first(buf_str(&in), str_find_char(buf_str(&in), '\r'));
		struct stub_request req = {
			.head = str_first(buf_str(&in), head), .body = str_from(buf_str(&in), head), .fd = c.fd};

		str_cut(&line, ' ', &req.method);
		str_cut(&line, ' ', &req.target);
		c.server->answer(c.server->arg, &req, &out);
		stub_send(c.fd, buf_str(&out));
	}
	shutdown(c.fd, SHUT_WR);
	buf_release(&in);
	buf_release(&out);
	close(c.fd);
	atomic_fetch_sub(&c.server->open, 1);
	return NULL;
}

static void *stub_accept(void *arg)
{
	struct stub_server *s = arg;

	for (;;) {
		struct stub_connection *c;
		pthread_t thread;
		int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC);

		if (fd < 0)
			return NULL;
		atomic_fetch_add(&s->connections, 1);
		atomic_fetch_add(&s->open, 1);
		c = malloc(sizeof(*c));
		*c = (struct stub_connection){s, fd};
		pthread_create(&thread, NULL, stub_serve, c);
		pthread_detach(thread);
	}
}

/* Waits for the threads that answer; `ended` tells an answer that waits to stop. */
static void stub_stop(struct stub_server *s)
{
	atomic_store(&s->ended, true);
	shutdown(s->fd, SHUT_RDWR);
	pthread_join(s->thread, NULL);
	close(s->fd);
	while (atomic_load(&s->open))
		sched_yield();
}

/* At an address of one's own; the port 0 is a free one. */
static void stub_start_at(struct stub_server *s, const char *address, uint16_t port,
			  void (*answer)(void *arg, const struct stub_request *req, struct buf *out), void *arg)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
	bool is_v6 = inet_pton(AF_INET6, address, &v6.sin6_addr) == 1;
	struct sockaddr *a = is_v6 ? (struct sockaddr *)&v6 : (struct sockaddr *)&v4;
	socklen_t len = is_v6 ? sizeof(v6) : sizeof(v4);

	CHECK(is_v6 || inet_pton(AF_INET, address, &v4.sin_addr) == 1);
	memset(s, 0, sizeof(*s));
	s->answer = answer;
	s->arg = arg;
	s->fd = socket(a->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(s->fd >= 0 && bind(s->fd, a, len) == 0 && listen(s->fd, 64) == 0);
	CHECK(getsockname(s->fd, a, &len) == 0);
	s->port = ntohs(is_v6 ? v6.sin6_port : v4.sin_port);
	CHECK(pthread_create(&s->thread, NULL, stub_accept, s) == 0);
	test_defer(stub_stop, s);
}

/* `s` must outlive the test function (static): the server is stopped when the test ends. */
__attribute__((unused)) static void
stub_start(struct stub_server *s, void (*answer)(void *arg, const struct stub_request *req, struct buf *out), void *arg)
{
	stub_start_at(s, "127.0.0.1", 0, answer, arg);
}

/* An answer with a body. `headers` end with "\r\n" each. */
__attribute__((unused)) static void stub_reply(struct buf *out, int status, const char *headers, struct str body)
{
	buf_printf(out, "HTTP/1.1 %d X\r\nConnection: close\r\nContent-Length: %zu\r\n%s\r\n", status, body.len,
		   headers);
	buf_add(out, body);
}

#endif
