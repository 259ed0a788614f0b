/* SPDX-License-Identifier: Apache-2.0 */
#include "net/loopback.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/limits.h"

#define CONNS_MAX 512

struct loopback {
	pthread_mutex_t lock;
	pthread_t acceptor, threads[CONNS_MAX];
	int listener, fds[CONNS_MAX];
	size_t count;
	uint16_t port;
	uint64_t requests, bytes;
};

struct client {
	struct loopback *server;
	int fd;
};

static bool put(int fd, struct str bytes)
{
	while (bytes.len > 0) {
		ssize_t n = send(fd, bytes.ptr, bytes.len, MSG_NOSIGNAL);

		if (n <= 0)
			return false;
		bytes = str_from(bytes, (size_t)n);
	}
	return true;
}

static bool put_run(int fd, uint64_t n)
{
	char chunk[16384];

	memset(chunk, 'x', sizeof(chunk));
	for (; n > 0; n -= n < sizeof(chunk) ? n : sizeof(chunk))
		if (!put(fd, str_n(chunk, n < sizeof(chunk) ? n : sizeof(chunk))))
			return false;
	return true;
}

static uint64_t length_of(struct str head)
{
	int64_t n = 0;
	struct str line;

	while (str_cut(&head, '\n', &line))
		if (line.len > 15 && str_eq_nocase(str_first(line, 15), STR("content-length:")))
			str_to_i64(str_trim(str_from(line, 15)), &n);
	return (uint64_t)n;
}

static bool answer(int fd, struct str request, struct str path)
{
	struct buf out;
	int64_t n = 0;
	bool ok, no_body = str_starts(request, STR("HEAD "));

	str_to_i64(str_from(path, str_rfind_char(path, '/') + 1), &n);
	buf_init(&out, NULL, 64 * MIB);
	if (str_starts(path, STR("/endless")))
		buf_lit(&out, "HTTP/1.1 200 OK\r\n\r\n");
	else if (str_starts(path, STR("/size/")) || str_starts(path, STR("/short/")))
		buf_printf(&out, "HTTP/1.1 200 OK\r\nX-Kind: run\r\nContent-Length: %lld\r\n\r\n", (long long)n);
	else if (str_starts(path, STR("/big500/")))
		buf_printf(&out, "HTTP/1.1 500 Oh\r\nContent-Length: %lld\r\n\r\n", (long long)n);
	else if (str_starts(path, STR("/status/")))
		buf_printf(&out, "HTTP/1.1 %03d Said So\r\nLocation: /echo\r\nContent-Length: 4\r\n\r\n%s", (int)n,
			   no_body ? "" : "body");
	else if (str_starts(path, STR("/garbage")))
		buf_lit(&out, "SSH-2.0-not-http\r\n");
	else if (!str_starts(path, STR("/fields/")))
		buf_printf(&out, "HTTP/1.1 200 OK\r\nX-Empty:\r\nETag:  \"a b\" \r\nContent-Length: %zu\r\n\r\n",
			   str_starts(path, STR("/echo")) ? request.len : 0);
	else
		buf_lit(&out, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n");
	if (str_starts(path, STR("/fields/"))) {
		for (int64_t i = 0; i < n; i++)
			buf_printf(&out, "X-Field-%lld: v\r\n", (long long)i);
		buf_lit(&out, "\r\n");
	} else if (str_starts(path, STR("/echo")) && !no_body) {
		buf_add(&out, request);
	}
	ok = put(fd, buf_str(&out));
	buf_release(&out);
	if (str_starts(path, STR("/endless")))
		while (ok)
			ok = put_run(fd, MIB);
	else if (str_starts(path, STR("/short/")))
		ok = put_run(fd, (uint64_t)n / 2) && false;
	else if (ok && !no_body && (str_starts(path, STR("/size/")) || str_starts(path, STR("/big500/"))))
		ok = put_run(fd, (uint64_t)n);
	return ok && !str_starts(path, STR("/garbage"));
}

/* One request: its head, then its body. False when the connection is over. */
static bool serve_one(struct client *c)
{
	struct buf in;
	size_t end = SIZE_MAX;
	uint64_t want = 0;
	struct str path;
	bool ok = true;

	buf_init(&in, NULL, 64 * MIB);
	while (end == SIZE_MAX || in.len < end + 4 + want) {
		char *to = buf_reserve(&in, 65536);
		ssize_t n = to ? recv(c->fd, to, 65536, 0) : 0;

		if (n <= 0) {
			buf_release(&in);
			return false;
		}
		in.len += (size_t)n;
		if (end == SIZE_MAX) {
			end = str_find(buf_str(&in), STR("\r\n\r\n"), 0);
			want = end == SIZE_MAX ? 0 : length_of(str_first(buf_str(&in), end));
		}
	}
	pthread_mutex_lock(&c->server->lock);
	c->server->requests++;
	c->server->bytes += want;
	pthread_mutex_unlock(&c->server->lock);
	path = str_from(buf_str(&in), str_find_char(buf_str(&in), ' ') + 1);
	ok = answer(c->fd, buf_str(&in), str_first(path, str_find_char(path, ' ')));
	buf_release(&in);
	return ok;
}

static void *serve(void *arg)
{
	struct client c = *(struct client *)arg;

	free(arg);
	while (serve_one(&c))
		continue;
	shutdown(c.fd, SHUT_RDWR);
	return NULL;
}

static void *accept_all(void *arg)
{
	struct loopback *s = arg;
	int fd;

	while ((fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		struct client *c = xmalloc(sizeof(*c));
		int one = 1;

		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		*c = (struct client){s, fd};
		pthread_mutex_lock(&s->lock);
		if (s->count == CONNS_MAX || pthread_create(&s->threads[s->count], NULL, serve, c) != 0)
			abort();
		s->fds[s->count++] = fd;
		pthread_mutex_unlock(&s->lock);
	}
	return NULL;
}

struct loopback *loopback_start(void)
{
	struct loopback *s = xcalloc(1, sizeof(*s));
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(in);

	pthread_mutex_init(&s->lock, NULL);
	s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (s->listener < 0 || bind(s->listener, (struct sockaddr *)&in, sizeof(in)) != 0 ||
	    listen(s->listener, 128) != 0 || getsockname(s->listener, (struct sockaddr *)&in, &len) != 0 ||
	    pthread_create(&s->acceptor, NULL, accept_all, s) != 0)
		abort();
	s->port = ntohs(in.sin_port);
	return s;
}

void loopback_stop(struct loopback *s)
{
	shutdown(s->listener, SHUT_RDWR);
	pthread_join(s->acceptor, NULL);
	for (size_t i = 0; i < s->count; i++) {
		shutdown(s->fds[i], SHUT_RDWR);
		pthread_join(s->threads[i], NULL);
		close(s->fds[i]);
	}
	close(s->listener);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

uint16_t loopback_port(const struct loopback *s)
{
	return s->port;
}

uint64_t loopback_requests(struct loopback *s)
{
	uint64_t n;

	pthread_mutex_lock(&s->lock);
	n = s->requests;
	pthread_mutex_unlock(&s->lock);
	return n;
}

uint64_t loopback_bytes(struct loopback *s)
{
	uint64_t n;

	pthread_mutex_lock(&s->lock);
	n = s->bytes;
	pthread_mutex_unlock(&s->lock);
	return n;
}
