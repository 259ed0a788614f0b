/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sockets, and one place that waits. A wait is cut into slices, since the flag of a cancelled call wakes nobody. Only
 * receiving in the clear may sleep in the call itself, for a moment.
 */
#include "net/sock.h"

#include <errno.h>
#include <fcntl.h>
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

#define CANCEL_SLICE_NS  20000000
#define RECEIVE_FIRST_MS 20

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
		t = clock_timespec(left < CANCEL_SLICE_NS ? left : CANCEL_SLICE_NS);
		n = ppoll(&p, 1, &t, NULL);
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

/* For receive(): a receive that is not told otherwise waits a little. */
static void may_sleep(int fd)
{
	struct timeval t = {.tv_usec = RECEIVE_FIRST_MS * 1000};
	int flags = fcntl(fd, F_GETFL);

	if (flags >= 0 && setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t)) == 0)
		fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
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
	if (!target->tls)
		may_sleep(fd);
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

/* One receive that sleeps until something comes, for as long as RECEIVE_FIRST_MS; then it is waited for in the way that
   knows deadlines and cancels. Most answers come before that, and so cost one system call. */
static int receive(struct sock *s, struct ctx *ctx, int64_t deadline_ns, struct msghdr *msg, size_t *ret_len,
		   struct err *err)
{
	int64_t soon = clock_monotonic_ns() + (int64_t)RECEIVE_FIRST_MS * NS_PER_MS;
	bool sleep = (!deadline_ns || deadline_ns > soon) && (!ctx->deadline_ns || ctx->deadline_ns > soon);
	int r = ctx_check(ctx, err);

	while (r == 0) {
		ssize_t n;

		if (!sleep)
			r = wait_for(s->fd, POLLIN, ctx, deadline_ns, err);
		if (r)
			break;
		n = recvmsg(s->fd, msg, sleep ? 0 : MSG_DONTWAIT);
		if (n > 0) {
			*ret_len = (size_t)n;
			return 0;
		}
		if (n == 0)
			return closed(err);
		if (errno != EAGAIN && errno != EINTR)
			return sys_failed(err, errno, "the connection broke");
		sleep = false;
	}
	return r;
}

int sock_read(struct sock *s, struct ctx *ctx, int64_t deadline_ns, void *bytes, size_t cap, void *spill,
	      size_t spill_cap, size_t *ret_len, struct err *err)
{
	struct iovec pieces[2] = {{bytes, cap}, {spill, spill_cap}};
	struct msghdr msg = {.msg_iov = pieces, .msg_iovlen = spill_cap ? 2 : 1};

	while (s->tls) {
		enum tls_step step = tls_read(s->tls, bytes, cap, ret_len, err);
		int r;

		if (step == TLS_DONE)
			return 0;
		r = tls_wait(s, step, ctx, deadline_ns, err);
		if (r)
			return r;
	}
	return receive(s, ctx, deadline_ns, &msg, ret_len, err);
}

/* What was sent of the list goes from its front. */
static void advance(struct iovec **pieces, size_t *count, size_t sent)
{
	while (*count && sent >= (*pieces)->iov_len) {
		sent -= (*pieces)->iov_len;
		(*pieces)++;
		(*count)--;
	}
	if (*count) {
		(*pieces)->iov_base = (char *)(*pieces)->iov_base + sent;
		(*pieces)->iov_len -= sent;
	}
}

int sock_write(struct sock *s, struct ctx *ctx, int64_t deadline_ns, struct iovec *pieces, size_t count,
	       struct err *err)
{
	advance(&pieces, &count, 0);
	while (count) {
		size_t sent = 0;
		int r = 0;

		if (s->tls) {
			enum tls_step step = tls_write(s->tls, pieces->iov_base, pieces->iov_len, &sent, err);

			r = step == TLS_DONE ? 0 : tls_wait(s, step, ctx, deadline_ns, err);
		} else {
			struct msghdr msg = {.msg_iov = pieces, .msg_iovlen = count};
			ssize_t n = sendmsg(s->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);

			if (n >= 0)
				sent = (size_t)n;
			else if (errno == EAGAIN)
				r = wait_for(s->fd, POLLOUT, ctx, deadline_ns, err);
			else if (errno != EINTR)
				r = sys_failed(err, errno, "the connection broke");
		}
		if (r)
			return r;
		advance(&pieces, &count, sent);
	}
	return 0;
}

int sock_is_quiet(struct sock *s)
{
	char byte;
	ssize_t n = recv(s->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

	return n > 0 ? s->tls != NULL /* TLS sends tickets unasked */ : n < 0 && errno == EAGAIN;
}
