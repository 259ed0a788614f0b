/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread accepts, and each connection has a thread that relays bytes. CONNECT is for TLS and WebSockets; a request
 * for a whole URL is sent on with its path alone, and only one request is made over such a connection, because the next
 * one may be for another host. Refusals are answers that say why, so that the page shows the reason.
 */
#include "net/guard_proxy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/limits.h"
#include "net/guard_head.h"

#define CHUNK       (32 * KIB)
#define LOOK_MS     100
#define HEAD_S      30
#define CONNECT_MS  10000
#define CLIENTS_MAX 256

struct guard_proxy {
	struct reach reach;
	int fd;
	uint16_t port;
	struct cancel stop;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t none;
	unsigned clients;
};

struct client {
	struct guard_proxy *proxy;
	int fd;
};

static bool send_all(struct guard_proxy *p, int fd, const char *bytes, size_t len)
{
	while (len && !atomic_load(&p->stop.requested)) {
		ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n > 0) {
			bytes += n;
			len -= (size_t)n;
		} else if (n < 0 && errno == EAGAIN) {
			poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, LOOK_MS);
		} else {
			return false;
		}
	}
	return len == 0;
}

static void refuse(struct guard_proxy *p, int fd, struct arena *arena, const struct err *err)
{
	struct str text = err_text(arena, err);
	struct str answer =
		arena_printf(arena,
			     "HTTP/1.1 %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: "
			     "%zu\r\nConnection: close\r\n\r\n%.*s",
			     err->kind == ERR_DENIED ? "403 Forbidden" : "502 Bad Gateway", text.len, STR_ARG(text));

	send_all(p, fd, answer.ptr, answer.len);
}

/* Reads until the end of the head; what came after it is in the buffer too. */
static bool read_head(struct guard_proxy *p, int fd, struct buf *head, size_t *ret_end)
{
	int64_t until = clock_monotonic_ns() + HEAD_S * NS_PER_S;

	while (clock_monotonic_ns() < until && !atomic_load(&p->stop.requested) && head->len < GUARD_HEAD_MAX) {
		size_t at = str_find(buf_str(head), STR("\r\n\r\n"), 0);
		char *room;
		ssize_t n;

		if (at != SIZE_MAX) {
			*ret_end = at + 4;
			return true;
		}
		if (poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, LOOK_MS) <= 0)
			continue;
		room = buf_reserve(head, 4 * KIB);
		n = room ? recv(fd, room, 4 * KIB, MSG_DONTWAIT) : 0;
		if (n <= 0)
			return false;
		head->len += (size_t)n;
	}
	return false;
}

static int connect_one(struct ctx *ctx, const struct sockaddr_storage *address, struct err *err)
{
	socklen_t len = address->ss_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
	int fd = socket(address->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), sys = 0;
	socklen_t size = sizeof(sys);

	if (fd < 0)
		return err_sys(err, errno, "a connection cannot be made");
	if (connect(fd, (const struct sockaddr *)address, len) == 0)
		return fd;
	while (errno == EINPROGRESS && ctx_check(ctx, err) == 0)
		if (poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, LOOK_MS) > 0) {
			getsockopt(fd, SOL_SOCKET, SO_ERROR, &sys, &size);
			if (sys == 0)
				return fd;
			break;
		}
	close(fd);
	return err_set(err, ERR_UNAVAILABLE, "the server cannot be reached");
}

/* A connection to a checked address of the host; a descriptor, or negative. */
static int reach_host(struct guard_proxy *p, struct ctx *ctx, struct str host, uint16_t port, struct err *err)
{
	struct reach_addresses addresses;
	int r = reach_resolve(&p->reach, ctx, host, port, &addresses, err);

	for (size_t i = 0; r == 0 && i < addresses.count; i++) {
		int fd = connect_one(ctx, &addresses.list[i], err);

		if (fd >= 0)
			return fd;
	}
	return -1;
}

static void relay(struct guard_proxy *p, int a, int b)
{
	char chunk[CHUNK];

	for (;;) {
		struct pollfd fds[2] = {{.fd = a, .events = POLLIN}, {.fd = b, .events = POLLIN}};
		int n = poll(fds, 2, LOOK_MS);

		if (atomic_load(&p->stop.requested))
			return;
		for (int i = 0; n > 0 && i < 2; i++) {
			ssize_t got;

			if (!fds[i].revents)
				continue;
			got = recv(fds[i].fd, chunk, sizeof(chunk), MSG_DONTWAIT);
			if (got == 0 || (got < 0 && errno != EAGAIN))
				return;
			if (got > 0 && !send_all(p, i == 0 ? b : a, chunk, (size_t)got))
				return;
		}
	}
}

static void serve_client(struct guard_proxy *p, int fd, struct arena *arena)
{
	struct ctx ctx = {.arena = arena,
			  .cancel = &p->stop,
			  .deadline_ns = clock_monotonic_ns() + (HEAD_S * 1000 + CONNECT_MS) * NS_PER_MS};
	struct guard_request request;
	struct err err = {0};
	struct buf head;
	size_t end = 0;
	int other = -1;

	buf_init(&head, arena, GUARD_HEAD_MAX + 8 * KIB);
	if (!read_head(p, fd, &head, &end))
		return;
	if (guard_head_parse(arena, str_first(buf_str(&head), end), &request, &err) == 0)
		other = reach_host(p, &ctx, request.host, request.port, &err);
	if (other < 0) {
		refuse(p, fd, arena, &err);
		return;
	}
	if (request.head.ptr ? send_all(p, other, request.head.ptr, request.head.len)
			     : send_all(p, fd, "HTTP/1.1 200 Connection established\r\n\r\n", 39))
		if (send_all(p, other, head.ptr + end, head.len - end))
			relay(p, fd, other);
	close(other);
}

static void *client_thread(void *arg)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct client client = *(struct client *)arg;
	struct guard_proxy *p = client.proxy;

	free(arg);
	serve_client(p, client.fd, arena);
	close(client.fd);
	pthread_mutex_lock(&p->lock);
	p->clients--;
	pthread_cond_broadcast(&p->none);
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

static void start_client(struct guard_proxy *p, int fd)
{
	struct client *client = xcalloc(1, sizeof(*client));
	pthread_attr_t attr;
	pthread_t thread;
	bool may;

	*client = (struct client){p, fd};
	pthread_mutex_lock(&p->lock);
	may = p->clients < CLIENTS_MAX;
	p->clients += may;
	pthread_mutex_unlock(&p->lock);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (may && pthread_create(&thread, &attr, client_thread, client) != 0) {
		pthread_mutex_lock(&p->lock);
		p->clients--;
		pthread_mutex_unlock(&p->lock);
		may = false;
	}
	pthread_attr_destroy(&attr);
	if (!may) {
		close(fd);
		free(client);
	}
}

static void *accept_thread(void *arg)
{
	struct guard_proxy *p = arg;

	while (!atomic_load(&p->stop.requested)) {
		int fd;

		if (poll(&(struct pollfd){.fd = p->fd, .events = POLLIN}, 1, LOOK_MS) <= 0)
			continue;
		fd = accept4(p->fd, NULL, NULL, SOCK_CLOEXEC);
		if (fd >= 0)
			start_client(p, fd);
	}
	return NULL;
}

int guard_proxy_start(const struct reach *reach, struct guard_proxy **ret, struct err *err)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(address);
	struct guard_proxy *p = xcalloc(1, sizeof(*p));
	int sys = 0;

	p->reach = *reach;
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->none, NULL);
	p->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (p->fd < 0 || bind(p->fd, (struct sockaddr *)&address, len) != 0 || listen(p->fd, 128) != 0 ||
	    getsockname(p->fd, (struct sockaddr *)&address, &len) != 0)
		sys = errno;
	p->port = ntohs(address.sin_port);
	if (!sys)
		sys = pthread_create(&p->thread, NULL, accept_thread, p);
	if (!sys) {
		*ret = p;
		return 0;
	}
	if (p->fd >= 0)
		close(p->fd);
	free(p);
	return err_sys(err, sys, "the browser's proxy cannot be started");
}

uint16_t guard_proxy_port(const struct guard_proxy *p)
{
	return p->port;
}

void guard_proxy_stop(struct guard_proxy *p)
{
	if (!p)
		return;
	atomic_store(&p->stop.requested, true);
	pthread_join(p->thread, NULL);
	pthread_mutex_lock(&p->lock);
	while (p->clients)
		pthread_cond_wait(&p->none, &p->lock);
	pthread_mutex_unlock(&p->lock);
	close(p->fd);
	pthread_cond_destroy(&p->none);
	pthread_mutex_destroy(&p->lock);
	free(p);
}
