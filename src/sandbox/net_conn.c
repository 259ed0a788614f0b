/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection of a command: whom it is for (the address that it was made to says the name), whether a rule allows
 * that, what it speaks, and whether the name it speaks of is the same. Only then the server is dialled, at an address
 * that was looked up and checked here.
 *
 *	TLS             the server name of its first message must be the name; the bytes are passed on as they are, or,
 *	                for a host that has a secret, TLS ends here and begins again on the other side
 *	HTTP            every request on the connection must be for the name
 *	anything else   is passed on, unless the port is 80 or 443 or the host has a secret
 *
 * A server that speaks first (SSH, SMTP) speaks neither TLS nor HTTP. So on other ports the server is dialled at once,
 * and who speaks first decides.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/limits.h"
#include "net/hello.h"
#include "net/http_head.h"
#include "sandbox/net_internal.h"

#define DIAL_MS   15000
#define DIALS_MAX 4

bool conn_refuse(struct conn *c, enum sandbox_net_outcome outcome, const char *fmt, ...)
{
	char text[300];
	va_list args;

	if (c->log.reason.ptr)
		return false;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	c->log.outcome = outcome;
	c->log.reason = arena_str(c->ctx.arena, str_of(text)); /* not that of one request */
	return false;
}

/* --- whom it is for --- */

static bool find_target(struct conn *c)
{
	struct sockaddr_in at;
	socklen_t len = sizeof(at);
	uint32_t address;
	char text[INET_ADDRSTRLEN] = "?";

	if (getsockname(c->in.fd, (struct sockaddr *)&at, &len) != 0 || at.sin_family != AF_INET)
		return conn_refuse(c, SANDBOX_NET_REFUSED, "it is not a connection of IPv4");
	address = ntohl(at.sin_addr.s_addr);
	c->port = c->log.port = ntohs(at.sin_port);
	inet_ntop(AF_INET, &at.sin_addr, text, sizeof(text));
	c->name = arena_str(c->arena, str_of(text));
	c->is_literal = true;
	pthread_mutex_lock(&c->net->lock);
	if (address - NET_FIRST_ADDRESS < c->net->name_count) {
		c->name = c->net->names[address - NET_FIRST_ADDRESS];
		c->is_literal = false;
	}
	pthread_mutex_unlock(&c->net->lock);
	c->host = net_find_host(c->net->given, c->name, c->is_literal ? address : 0, c->port);
	if (c->host && c->is_literal)
		c->name = c->host->name;
	c->log.host = c->name;
	c->has_secret = net_has_secret(c->net, c->name);
	return c->host ||
	       conn_refuse(c, SANDBOX_NET_REFUSED, "%.*s:%u is not allowed; sandbox.network or --net allows hosts",
			   STR_ARG(c->name), c->port);
}

/* --- the server --- */

/* Addresses that are not public, as far as a rule allows them. Link-local ones, where clouds keep credentials, only
   when they are named. */
static void set_reach(const struct conn *c, struct reach *reach)
{
	static const char *const private[] = {"127.0.0.0/8",   "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16",
					      "100.64.0.0/10", "::1",        "fc00::/7"};
	struct err ignored;

	*reach = (struct reach){0};
	if (c->is_literal && !c->host->address.len)
		(void)reach_allow(reach, str_is(c->name, "localhost") ? STR("127.0.0.1") : c->name, &ignored);
	if (c->host->address.len)
		(void)reach_allow(reach, c->host->address, &ignored);
	for (size_t i = 0; c->host->allows_private && i < COUNT(private); i++)
		(void)reach_allow(reach, str_of(private[i]), &ignored);
}

/* A machine may have public addresses of its own: what listens there is not for commands. */
static bool is_own(int fd, const struct sockaddr_storage *peer)
{
	struct sockaddr_storage own = {0};
	socklen_t len = sizeof(own);

	if (getsockname(fd, (struct sockaddr *)&own, &len) != 0)
		return true;
	if (own.ss_family == AF_INET)
		((struct sockaddr_in *)&own)->sin_port = ((const struct sockaddr_in *)peer)->sin_port;
	else
		((struct sockaddr_in6 *)&own)->sin6_port = ((const struct sockaddr_in6 *)peer)->sin6_port;
	return reach_is_same((struct sockaddr *)&own, (const struct sockaddr *)peer);
}

static int dial_one(struct conn *c, const struct sockaddr_storage *to)
{
	socklen_t len = to->ss_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
	int fd = socket(to->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), sys = 0;
	socklen_t sys_len = sizeof(sys);

	if (fd < 0)
		return -1;
	if (connect(fd, (const struct sockaddr *)to, len) == 0)
		return fd;
	if (errno == EINPROGRESS && conn_wait(c, fd, POLLOUT, deadline_in(DIAL_MS)) &&
	    getsockopt(fd, SOL_SOCKET, SO_ERROR, &sys, &sys_len) == 0 && sys == 0)
		return fd;
	close(fd);
	return -1;
}

bool conn_dial(struct conn *c)
{
	struct reach_addresses *all = ARENA_NEW(c->arena, struct reach_addresses);
	struct str target = c->host->address.len           ? c->host->address
			    : str_is(c->name, "localhost") ? STR("127.0.0.1")
							   : c->name;
	uint16_t port = c->host->address_port ? c->host->address_port : c->port;
	bool may_be_own = c->is_literal || c->host->address.len || c->host->allows_private;
	struct reach reach;
	struct err err = {0};
	int r;

	set_reach(c, &reach);
	c->ctx.deadline_ns = deadline_in(DIAL_MS);
	r = reach_resolve(&reach, &c->ctx, target, port, all, &err);
	if (r == -ERR_DENIED)
		return conn_refuse(c, SANDBOX_NET_REFUSED,
				   "%.*s leads to an address that is not public; \"private: true\" or an address in "
				   "sandbox.network allows it",
				   STR_ARG(c->name));
	if (r)
		return conn_refuse(c, SANDBOX_NET_FAILED, "%.*s", STR_ARG(err_text(c->arena, &err)));
	for (size_t i = 0; i < all->count && i < DIALS_MAX && c->out.fd < 0 && !c->log.reason.ptr; i++) {
		c->out.fd = dial_one(c, &all->list[i]);
		if (c->out.fd >= 0 && !may_be_own && is_own(c->out.fd, &all->list[i]))
			return conn_refuse(c, SANDBOX_NET_REFUSED, "%.*s leads to this machine itself",
					   STR_ARG(c->name));
	}
	return c->out.fd >= 0 ||
	       conn_refuse(c, SANDBOX_NET_FAILED, "%.*s:%u cannot be connected to", STR_ARG(c->name), port);
}

/* --- bytes as they are --- */

/* What is waiting in one direction. */
static bool pass(struct conn *c, struct side *from, struct side *to, bool *ended)
{
	int n = side_fill(c, from, deadline_in(SANDBOX_NET_IDLE_MS));

	if (n < 0)
		return false;
	if (n == 0) {
		*ended = true;
		shutdown(to->fd, SHUT_WR);
		return true;
	}
	if (!side_write(c, to, side_have(from)))
		return false;
	side_use(from, from->len - from->at);
	return true;
}

void conn_relay(struct conn *c)
{
	bool in_ended = false, out_ended = false;
	int64_t until = deadline_in(SANDBOX_NET_IDLE_MS);

	while (!in_ended || !out_ended) {
		struct pollfd fds[3] = {{.fd = in_ended ? -1 : c->in.fd, .events = POLLIN},
					{.fd = out_ended ? -1 : c->out.fd, .events = POLLIN},
					{.fd = c->net->stop_fd, .events = POLLIN}};
		int n = poll(fds, 3, 1000);

		if (n < 0 && errno != EINTR)
			return;
		if (n > 0 && fds[2].revents)
			return;
		if (n == 0 && clock_monotonic_ns() > until) {
			conn_refuse(c, SANDBOX_NET_FAILED, "it was idle for too long");
			return;
		}
		if (n <= 0)
			continue;
		until = deadline_in(SANDBOX_NET_IDLE_MS);
		if (fds[0].revents && !pass(c, &c->in, &c->out, &in_ended))
			return;
		if (fds[1].revents && !pass(c, &c->out, &c->in, &out_ended))
			return;
	}
}

static void relay_raw(struct conn *c)
{
	if (c->out.fd < 0 && !conn_dial(c))
		return;
	if (side_write(c, &c->out, side_have(&c->in))) {
		side_use(&c->in, c->in.len - c->in.at);
		conn_relay(c);
	}
}

/* --- what it speaks --- */

/* The server name must be the name; an address has none. */
static bool check_hello(struct conn *c)
{
	int64_t deadline = deadline_in(c->net->head_ms);
	struct hello hello;
	enum hello_state state;

	while ((state = hello_parse(side_have(&c->in), &hello)) == HELLO_MORE) {
		int n = side_fill(c, &c->in, deadline);

		if (n == 0)
			return conn_refuse(c, SANDBOX_NET_FAILED, "the command closed the connection before TLS began");
		if (n < 0)
			return conn_refuse(c, SANDBOX_NET_REFUSED, "the first message of TLS is too large or too slow");
	}
	if (state == HELLO_BAD)
		return conn_refuse(c, SANDBOX_NET_REFUSED, "the first message of TLS is malformed");
	if (hello.is_encrypted)
		return conn_refuse(c, SANDBOX_NET_REFUSED, "its TLS hides the server name (ECH)");
	if (hello.name_len ? str_eq(str_n(hello.name, hello.name_len), c->name) : c->is_literal)
		return true;
	return conn_refuse(c, SANDBOX_NET_REFUSED, "TLS asks for the server \"%.*s\", but the connection is for %.*s",
			   (int)hello.name_len, hello.name, STR_ARG(c->name));
}

/* TLS of a host with a secret ends here. */
static void serve_terminated(struct conn *c)
{
	struct err err = {0};
	size_t i = 0;

	while (!str_eq(c->net->given->secrets[i].host, c->name))
		i++;
	if (!conn_dial(c))
		return;
	if (tls_new(c->net->outside, c->out.fd, arena_cstr(c->arena, c->name), &c->out.tls, &err) != 0 ||
	    tls_accept(c->net->servers[i], c->in.fd, arena_str(c->arena, side_have(&c->in)), &c->in.tls, &err) != 0) {
		conn_refuse(c, SANDBOX_NET_FAILED, "%.*s", STR_ARG(err_text(c->arena, &err)));
		return;
	}
	/* the server first: a certificate that is not trusted is a connection that is not made */
	if (!side_handshake(c, &c->out) || !side_handshake(c, &c->in))
		return;
	c->in.at = c->in.len = 0;
	c->is_tls = true;
	net_http_serve(c);
}

static void serve_tls(struct conn *c)
{
	if (!check_hello(c))
		return;
	if (c->has_secret)
		serve_terminated(c);
	else
		relay_raw(c);
}

static bool looks_like_http(struct str bytes)
{
	static const char *const methods[] = {"GET ",   "HEAD ",  "POST ",    "PUT ",    "DELETE ",
					      "PATCH ", "TRACE ", "OPTIONS ", "CONNECT "};

	for (size_t i = 0; i < COUNT(methods); i++) {
		struct str m = str_of(methods[i]);

		if (str_eq(str_first(bytes, m.len), str_first(m, bytes.len)))
			return true;
	}
	return str_find(bytes, STR(" HTTP/1."), 0) != SIZE_MAX;
}

/* On other ports: who speaks first? True: the command, or the connection has ended. */
static bool command_is_first(struct conn *c)
{
	struct pollfd fds[3] = {{.events = POLLIN}, {.events = POLLIN}, {.fd = c->net->stop_fd, .events = POLLIN}};

	if (!c->has_secret && !conn_dial(c))
		return true;
	fds[0].fd = c->in.fd;
	fds[1].fd = c->out.fd;
	while (poll(fds, 3, (int)SANDBOX_NET_IDLE_MS) < 0 && errno == EINTR)
		;
	return fds[0].revents || !fds[1].revents;
}

static void serve(struct conn *c)
{
	bool is_web = c->port == 80 || c->port == 443;
	struct str have;
	int n;

	if (!find_target(c))
		return;
	if (!is_web && !command_is_first(c)) {
		relay_raw(c);
		return;
	}
	n = c->log.reason.ptr ? -1 : side_fill(c, &c->in, deadline_in(c->net->head_ms));
	if (n == 0 && c->out.fd >= 0)
		relay_raw(c); /* it sends nothing, and may want an answer all the same */
	if (n <= 0)
		return;
	have = side_have(&c->in);
	if (have.ptr[0] == 22)
		serve_tls(c);
	else if (c->has_secret || is_web || looks_like_http(have))
		net_http_serve(c);
	else
		relay_raw(c);
}

static void finish(struct conn *c, int64_t began)
{
	tls_destroy(c->in.tls);
	tls_destroy(c->out.tls);
	if (c->log.outcome == SANDBOX_NET_ENDED)
		c->log.reason = STR_NONE;
	else if (c->log.outcome == SANDBOX_NET_REFUSED && c->log.received == 0)
		(void)setsockopt(c->in.fd, SOL_SOCKET, SO_LINGER, &(struct linger){1, 0}, sizeof(struct linger));
	if (c->out.fd >= 0)
		close(c->out.fd);
	close(c->in.fd);
	c->log.duration_ms = (clock_monotonic_ns() - began) / NS_PER_MS;
	net_log(c->net, &c->log);
}

void net_conn_serve(struct net *net, int fd)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct conn c = {.net = net,
			 .arena = arena,
			 .ctx = {.arena = arena, .cancel = &net->stop},
			 .in = {.fd = fd, .bytes = arena_alloc_raw(arena, HEAD_BYTES_MAX)},
			 .out = {.fd = -1, .bytes = arena_alloc_raw(arena, HEAD_BYTES_MAX)},
			 .log = {.at_ns = clock_real_ns()}};
	int64_t began = clock_monotonic_ns();

	serve(&c);
	finish(&c, began);
}
