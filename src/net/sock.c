/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sockets that do not block, and one place that waits. A wait is cut into slices when the call can be cancelled, since
 * a flag wakes nobody.
 */
#include "net/sock.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/tls.h"

#define CANCEL_SLICE_NS 20000000

struct sock {
	int fd;
	struct tls *tls;
};

static int closed(struct err *err)
{
	int r = err_set(err, ERR_UNAVAILABLE, "the server closed the connection");

	err->retryable = true;
	return r;
}

static int sys_failed(struct err *err, int sys, const char *what)
{
	int r = err_sys(err, sys, "%s", what);

	err->kind = ERR_UNAVAILABLE;
	err->retryable = true;
	(void)r;
	return -ERR_UNAVAILABLE;
}

/* Until the descriptor is ready for `events`. */
static int wait_for(int fd, short events, const struct ctx *ctx, int64_t deadline_ns, struct err *err)
{
	struct pollfd p = {.fd = fd, .events = events};

	if (ctx->deadline_ns && (!deadline_ns || ctx->deadline_ns < deadline_ns))
		deadline_ns = ctx->deadline_ns;
	for (;;) {
		int64_t left = deadline_ns ? deadline_ns - clock_monotonic_ns() : INT64_MAX;
		struct timespec t;
		int n, r = ctx_check(ctx, err);

		if (r)
			return r;
		if (left <= 0) {
			r = err_set(err, ERR_TIMEOUT, "the server did not answer in time");
			err->retryable = true;
			return r;
		}
		if (ctx->cancel && left > CANCEL_SLICE_NS)
			left = CANCEL_SLICE_NS;
		t = (struct timespec){.tv_sec = left / 1000000000, .tv_nsec = left % 1000000000};
		n = ppoll(&p, 1, left == INT64_MAX ? NULL : &t, NULL);
		if (n > 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return sys_failed(err, errno, "waiting for the server failed");
	}
}

static int connect_one(int family, const struct sockaddr *addr, socklen_t len, struct ctx *ctx, int64_t deadline_ns,
		       int *ret_fd, struct err *err)
{
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1, sys = 0, r = 0;
	socklen_t size = sizeof(sys);

	if (fd < 0)
		return sys_failed(err, errno, "cannot make a socket");
	if (family != AF_UNIX) {
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	}
	if (connect(fd, addr, len) && errno != EINPROGRESS)
		sys = errno;
	else
		r = wait_for(fd, POLLOUT, ctx, deadline_ns, err);
	if (r == 0 && sys == 0)
		getsockopt(fd, SOL_SOCKET, SO_ERROR, &sys, &size);
	if (r == 0 && sys) {
		r = err_set(err, ERR_UNAVAILABLE, "cannot connect: %s; check %s, and that the server runs",
			    strerror(sys), family == AF_UNIX ? "the path" : "the host and the port");
		err->sys = sys;
		err->retryable = true;
	}
	if (r) {
		close(fd);
		return r;
	}
	*ret_fd = fd;
	return 0;
}

static int connect_unix(const char *path, struct ctx *ctx, int64_t deadline_ns, int *ret_fd, struct err *err)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	size_t len = strlen(path);

	if (len >= sizeof(addr.sun_path))
		return err_set(err, ERR_INVALID, "the path of the unix socket is longer than %zu bytes",
			       sizeof(addr.sun_path) - 1);
	memcpy(addr.sun_path, path, len);
	return connect_one(AF_UNIX, (struct sockaddr *)&addr, sizeof(addr), ctx, deadline_ns, ret_fd, err);
}

static int connect_tcp(const struct sock_target *target, struct ctx *ctx, int64_t deadline_ns, int *ret_fd,
		       struct err *err)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG}, *all;
	char port[16];
	int r;

	snprintf(port, sizeof(port), "%u", target->port);
	r = getaddrinfo(target->host, port, &hints, &all);
	if (r) {
		err_set(err, ERR_UNAVAILABLE, "the name \"%s\" cannot be resolved: %s", target->host, gai_strerror(r));
		err->retryable = true;
		return -ERR_UNAVAILABLE;
	}
	r = -ERR_UNAVAILABLE;
	for (struct addrinfo *a = all; a && r; a = a->ai_next)
		r = connect_one(a->ai_family, a->ai_addr, a->ai_addrlen, ctx, deadline_ns, ret_fd, err);
	freeaddrinfo(all);
	return r;
}

/* Waits for what TLS wants next. */
static int tls_wait(struct sock *s, enum tls_step step, struct ctx *ctx, int64_t deadline_ns, struct err *err)
{
	switch (step) {
	case TLS_WANT_READ:
		return wait_for(s->fd, POLLIN, ctx, deadline_ns, err);
	case TLS_WANT_WRITE:
		return wait_for(s->fd, POLLOUT, ctx, deadline_ns, err);
	case TLS_END:
		return closed(err);
	case TLS_FAILED:
	case TLS_DONE:
		break;
	}
	return -err->kind;
}

static int start_tls(struct sock *s, const struct sock_target *target, struct ctx *ctx, int64_t deadline_ns,
		     struct err *err)
{
	enum tls_step step;
	int r = tls_new(target->tls, s->fd, target->host, &s->tls, err);

	while (r == 0 && (step = tls_handshake(s->tls, err)) != TLS_DONE)
		r = tls_wait(s, step, ctx, deadline_ns, err);
	return r;
}

int sock_connect(const struct sock_target *target, struct ctx *ctx, int64_t deadline_ns, struct sock **ret_sock,
		 struct err *err)
{
	struct sock *s;
	int fd, r = target->unix_path ? connect_unix(target->unix_path, ctx, deadline_ns, &fd, err)
				      : connect_tcp(target, ctx, deadline_ns, &fd, err);

	if (r)
		return r;
	s = xcalloc(1, sizeof(*s));
	s->fd = fd;
	if (target->tls) {
		r = start_tls(s, target, ctx, deadline_ns, err);
		if (r) {
			sock_close(s);
			return r;
		}
	}
	*ret_sock = s;
	return 0;
}

void sock_close(struct sock *s)
{
	if (s) {
		tls_destroy(s->tls);
		close(s->fd);
		free(s);
	}
}

int sock_read(struct sock *s, struct ctx *ctx, int64_t deadline_ns, void *bytes, size_t cap, size_t *ret_len,
	      struct err *err)
{
	int r;

	while (s->tls) {
		enum tls_step step = tls_read(s->tls, bytes, cap, ret_len, err);

		if (step == TLS_DONE)
			return 0;
		r = tls_wait(s, step, ctx, deadline_ns, err);
		if (r)
			return r;
	}
	for (;;) {
		ssize_t n;

		r = wait_for(s->fd, POLLIN, ctx, deadline_ns, err);
		if (r)
			return r;
		n = recv(s->fd, bytes, cap, 0);
		if (n > 0) {
			*ret_len = (size_t)n;
			return 0;
		}
		if (n == 0)
			return closed(err);
		if (errno != EAGAIN && errno != EINTR)
			return sys_failed(err, errno, "the connection broke");
	}
}

int sock_write(struct sock *s, struct ctx *ctx, int64_t deadline_ns, const void *bytes, size_t len, struct err *err)
{
	const char *at = bytes;

	while (len) {
		size_t sent = 0;
		int r = 0;

		if (s->tls) {
			enum tls_step step = tls_write(s->tls, at, len, &sent, err);

			r = step == TLS_DONE ? 0 : tls_wait(s, step, ctx, deadline_ns, err);
		} else {
			ssize_t n = send(s->fd, at, len, MSG_NOSIGNAL);

			if (n >= 0)
				sent = (size_t)n;
			else if (errno == EAGAIN)
				r = wait_for(s->fd, POLLOUT, ctx, deadline_ns, err);
			else if (errno != EINTR)
				r = sys_failed(err, errno, "the connection broke");
		}
		if (r)
			return r;
		at += sent;
		len -= sent;
	}
	return 0;
}

int sock_is_quiet(struct sock *s)
{
	char byte;
	ssize_t n = recv(s->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

	return n > 0 ? s->tls != NULL /* TLS sends tickets unasked */ : n < 0 && errno == EAGAIN;
}
