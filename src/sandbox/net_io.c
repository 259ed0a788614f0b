/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and writing of one connection: nothing blocks longer than its deadline, and all of it ends with the run. */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/limits.h"
#include "net/http_head.h"
#include "sandbox/net_internal.h"

int64_t deadline_in(int64_t ms)
{
	return clock_monotonic_ns() + ms * NS_PER_MS;
}

bool conn_wait(struct conn *c, int fd, short events, int64_t deadline_ns)
{
	struct pollfd fds[2] = {{.fd = fd, .events = events}, {.fd = c->net->stop_fd, .events = POLLIN}};

	for (;;) {
		int64_t left = (deadline_ns - clock_monotonic_ns()) / NS_PER_MS;
		int n;

		if (left <= 0)
			return conn_refuse(c, SANDBOX_NET_FAILED, "it was idle for too long");
		n = poll(fds, 2, left > 1000000 ? 1000000 : (int)left + 1);
		if (n < 0 && errno != EINTR)
			return conn_refuse(c, SANDBOX_NET_FAILED, "the connection cannot be waited for");
		if (n > 0 && fds[1].revents)
			return conn_refuse(c, SANDBOX_NET_ENDED, "the command ended");
		if (n > 0)
			return true;
	}
}

static bool tls_wait(struct conn *c, const struct side *side, enum tls_step step, int64_t deadline_ns)
{
	return conn_wait(c, side->fd, step == TLS_WANT_WRITE ? POLLOUT : POLLIN, deadline_ns);
}

/* The reason is the peer's or the library's, never a byte that was sent. */
static int tls_failed(struct conn *c, const struct side *side, const struct err *err)
{
	conn_refuse(c, SANDBOX_NET_FAILED, "%s: %.*s", side == &c->in ? "TLS with the command" : "TLS with the server",
		    STR_ARG(err_text(c->arena, err)));
	return -1;
}

/* Some bytes, as many as there are. 0: the end. */
static int read_some(struct conn *c, struct side *side, char *to, size_t cap, int64_t deadline_ns, size_t *ret)
{
	for (;;) {
		struct err err = {0};
		enum tls_step step;
		ssize_t n;

		if (side->tls) {
			step = tls_read(side->tls, to, cap, ret, &err);
			if (step == TLS_DONE)
				return 1;
			if (step == TLS_END)
				return 0;
			if (step == TLS_FAILED)
				return tls_failed(c, side, &err);
			if (!tls_wait(c, side, step, deadline_ns))
				return -1;
			continue;
		}
		n = recv(side->fd, to, cap, MSG_DONTWAIT);
		if (n > 0) {
			*ret = (size_t)n;
			return 1;
		}
		if (n == 0)
			return 0;
		if (errno == EAGAIN && !conn_wait(c, side->fd, POLLIN, deadline_ns))
			return -1;
		if (errno != EAGAIN && errno != EINTR) {
			conn_refuse(c, SANDBOX_NET_FAILED, "%s broke the connection",
				    side == &c->in ? "the command" : "the server");
			return -1;
		}
	}
}

int side_fill(struct conn *c, struct side *side, int64_t deadline_ns)
{
	size_t n = 0;
	int r;

	if (side->at) {
		memmove(side->bytes, side->bytes + side->at, side->len - side->at);
		side->len -= side->at;
		side->at = 0;
	}
	if (side->len == HEAD_BYTES_MAX)
		return -1;
	r = read_some(c, side, side->bytes + side->len, HEAD_BYTES_MAX - side->len, deadline_ns, &n);
	if (r <= 0)
		return r;
	side->len += n;
	if (side == &c->in)
		c->log.sent += n;
	else
		c->log.received += n;
	if (!net_count(c->net, n)) {
		conn_refuse(c, SANDBOX_NET_REFUSED,
			    "the command has used up its network traffic; sandbox.network_bytes raises the limit");
		return -1;
	}
	return 1;
}

void side_use(struct side *side, size_t n)
{
	side->at += n;
}

bool side_write(struct conn *c, struct side *side, struct str bytes)
{
	int64_t deadline = deadline_in(SANDBOX_NET_IDLE_MS);

	while (bytes.len) {
		struct err err = {0};
		enum tls_step step = TLS_DONE;
		size_t done = 0;
		ssize_t n;

		if (side->tls) {
			step = tls_write(side->tls, bytes.ptr, bytes.len, &done, &err);
			if (step == TLS_FAILED)
				return tls_failed(c, side, &err) == 0;
			if (step == TLS_END)
				return conn_refuse(c, SANDBOX_NET_FAILED, "the other end closed the connection");
			if (step != TLS_DONE && !tls_wait(c, side, step, deadline))
				return false;
		} else {
			n = send(side->fd, bytes.ptr, bytes.len, MSG_NOSIGNAL | MSG_DONTWAIT);
			done = n > 0 ? (size_t)n : 0;
			if (n < 0 && errno == EAGAIN && !conn_wait(c, side->fd, POLLOUT, deadline))
				return false;
			if (n < 0 && errno != EAGAIN && errno != EINTR)
				return conn_refuse(c, SANDBOX_NET_FAILED, "%s broke the connection",
						   side == &c->in ? "the command" : "the server");
		}
		bytes = str_from(bytes, done);
	}
	return true;
}

bool side_handshake(struct conn *c, struct side *side)
{
	int64_t deadline = deadline_in(c->net->head_ms);

	for (;;) {
		struct err err = {0};
		enum tls_step step = tls_handshake(side->tls, &err);

		if (step == TLS_DONE)
			return true;
		if (step == TLS_FAILED)
			return tls_failed(c, side, &err) == 0;
		if (step == TLS_END)
			return conn_refuse(c, SANDBOX_NET_FAILED, "%s ended the TLS handshake",
					   side == &c->in ? "the command" : "the server");
		if (!tls_wait(c, side, step, deadline))
			return false;
	}
}
