/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The network of one run. A thread answers name lookups and accepts connections; each connection has a thread of its
 * own, because what it waits for (a lookup, a TLS handshake, a slow server) is not bounded by anything else. All of
 * them watch one descriptor, which becomes readable when the run is over; nothing outlives net_end().
 *
 * A name gets an address when it is first asked for, and keeps it for the run. A name that no rule allows does not
 * exist, and nobody outside is asked about it.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "sandbox/net_internal.h"

/* --- the log --- */

void net_log(struct net *net, const struct sandbox_connection *what)
{
	pthread_mutex_lock(&net->lock);
	if (net->log_count == SANDBOX_NET_LOG_MAX) {
		net->unlogged++;
	} else {
		ARENA_ROOM(net->arena, net->log, net->log_count, net->log_cap);
		net->log[net->log_count] = *what;
		net->log[net->log_count].host = arena_str(net->arena, what->host);
		net->log[net->log_count++].reason = arena_str(net->arena, what->reason);
	}
	pthread_mutex_unlock(&net->lock);
}

bool net_count(struct net *net, uint64_t bytes)
{
	bool ok;

	pthread_mutex_lock(&net->lock);
	net->bytes += bytes;
	ok = net->bytes <= net->bytes_max;
	pthread_mutex_unlock(&net->lock);
	return ok;
}

/* --- names --- */

static uint32_t address_of(struct net *net, struct str name)
{
	size_t i = 0;

	pthread_mutex_lock(&net->lock);
	while (i < net->name_count && !str_eq(net->names[i], name))
		i++;
	if (i == net->name_count && i < NET_NAMES_MAX) {
		ARENA_ROOM(net->arena, net->names, net->name_count, net->name_cap);
		net->names[net->name_count++] = arena_str(net->arena, name);
	}
	pthread_mutex_unlock(&net->lock);
	return i < NET_NAMES_MAX ? NET_FIRST_ADDRESS + (uint32_t)i : 0;
}

/* Each name once, however often it is asked for. */
static void log_name(struct net *net, struct str name)
{
	struct sandbox_connection what = {
		.host = name,
		.outcome = SANDBOX_NET_REFUSED,
		.reason = STR("the name is not allowed; sandbox.network or --net allows hosts"),
		.at_ns = clock_real_ns(),
	};
	bool known = false;

	pthread_mutex_lock(&net->lock);
	for (size_t i = 0; i < net->log_count && !known; i++)
		known = net->log[i].port == 0 && str_eq(net->log[i].host, name);
	pthread_mutex_unlock(&net->lock);
	if (!known)
		net_log(net, &what);
}

static void on_question(struct net *net)
{
	char packet[DNS_PACKET_MAX + 1];
	uint8_t answer[DNS_PACKET_MAX];
	struct sockaddr_storage from;
	socklen_t from_len = sizeof(from);
	struct dns_query query;
	struct str name;
	uint32_t address = 0;
	enum dns_code code = DNS_NO_NAME;
	ssize_t n = recvfrom(net->dns, packet, sizeof(packet), MSG_DONTWAIT, (struct sockaddr *)&from, &from_len);

	if (n <= 0)
		return;
	if (!dns_query_parse(str_n(packet, (size_t)n), &query)) {
		(void)!sendto(net->dns, answer, dns_answer_bad(str_n(packet, (size_t)n), answer),
			      MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&from, from_len);
		return;
	}
	name = str_n(query.name, query.name_len);
	if (net_allows_name(net->given, name)) {
		address = query.type == DNS_TYPE_A ? address_of(net, name) : 0;
		code = query.type == DNS_TYPE_A && !address ? DNS_REFUSED : DNS_OK;
	} else {
		log_name(net, name);
	}
	(void)!sendto(net->dns, answer, dns_answer(str_n(packet, (size_t)n), &query, code, address, answer),
		      MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&from, from_len);
}

/* --- connections --- */

struct start {
	struct net *net;
	int fd;
};

static void *connection(void *arg)
{
	struct start start = *(struct start *)arg;
	struct net *net = start.net;

	free(arg);
	net_conn_serve(net, start.fd);
	pthread_mutex_lock(&net->lock);
	net->alive--;
	pthread_cond_signal(&net->idle);
	pthread_mutex_unlock(&net->lock);
	return NULL;
}

static void on_connection(struct net *net, int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct start *start;
	pthread_attr_t detached;
	pthread_t thread;
	bool ok;

	if (fd < 0)
		return;
	pthread_mutex_lock(&net->lock);
	ok = ++net->total <= SANDBOX_NET_CONNECTIONS_MAX;
	net->alive += ok;
	pthread_mutex_unlock(&net->lock);
	if (!ok) {
		close(fd);
		return;
	}
	start = xmalloc(sizeof(*start));
	*start = (struct start){net, fd};
	pthread_attr_init(&detached);
	pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&thread, &detached, connection, start) != 0) {
		close(fd);
		free(start);
		pthread_mutex_lock(&net->lock);
		net->alive--;
		pthread_mutex_unlock(&net->lock);
	}
	pthread_attr_destroy(&detached);
}

static void *serve(void *arg)
{
	struct net *net = arg;
	struct pollfd fds[SANDBOX_PORTS_MAX + 2] = {{.fd = net->stop_fd, .events = POLLIN},
						    {.fd = net->dns, .events = POLLIN}};

	for (;;) {
		bool full;

		pthread_mutex_lock(&net->lock);
		full = net->alive >= NET_ALIVE_MAX;
		if (full) { /* others wait in the kernel's queue; names are answered again in a moment */
			struct timespec soon = clock_timespec(clock_real_ns() + 20 * NS_PER_MS);

			pthread_cond_timedwait(&net->idle, &net->lock, &soon);
			full = net->alive >= NET_ALIVE_MAX;
		}
		pthread_mutex_unlock(&net->lock);
		for (size_t i = 0; i < net->port_count; i++)
			fds[i + 2] = (struct pollfd){.fd = full ? -1 : net->listeners[i], .events = POLLIN};
		if (poll(fds, (nfds_t)net->port_count + 2, full ? 0 : -1) < 0 && errno != EINTR)
			break;
		if (fds[0].revents)
			break;
		if (fds[1].revents)
			on_question(net);
		for (size_t i = 0; i < net->port_count; i++)
			if (fds[i + 2].revents)
				on_connection(net, net->listeners[i]);
	}
	return NULL;
}

/* --- of a run --- */

static int add_port(struct net *net, uint16_t port, struct err *err)
{
	for (size_t i = 0; i < net->port_count; i++)
		if (net->ports[i] == port)
			return 0;
	if (net->port_count == SANDBOX_PORTS_MAX)
		return err_set(err, ERR_TOO_LARGE, "a command may use at most %d different network ports",
			       SANDBOX_PORTS_MAX);
	net->ports[net->port_count++] = port;
	return 0;
}

static int collect(struct net *net, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < net->given->host_count; i++) {
		const struct sandbox_host *host = &net->given->hosts[i];

		if (host->literal)
			net->literals[net->literal_count++] = host->literal;
		if (host->port) {
			r = add_port(net, host->port, err);
		} else {
			r = add_port(net, 80, err);
			if (r == 0)
				r = add_port(net, 443, err);
		}
	}
	return r;
}

/* Both ends of a pair, above the descriptors that a command has. */
static bool make_pair(int ends[2])
{
	int low[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, low) != 0)
		return false;
	for (int i = 0; i < 2; i++) {
		ends[i] = fcntl(low[i], F_DUPFD_CLOEXEC, 4);
		close(low[i]);
	}
	return ends[0] >= 0 && ends[1] >= 0;
}

int net_new(const struct sandbox_net *given, struct net **ret, struct err *err)
{
	struct net *net = xcalloc(1, sizeof(*net));
	int r = 0;

	*net = (struct net){.given = given,
			    .arena = arena_new(),
			    .ends = {-1, -1},
			    .dns = -1,
			    .stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
			    .head_ms = given->head_ms ? given->head_ms : SANDBOX_NET_HEAD_MS,
			    .bytes_max = given->bytes_max ? given->bytes_max : SANDBOX_NET_BYTES_DEFAULT};
	for (size_t i = 0; i < SANDBOX_PORTS_MAX; i++)
		net->listeners[i] = -1;
	pthread_mutex_init(&net->lock, NULL);
	pthread_cond_init(&net->idle, NULL);
	if (net->stop_fd < 0 || (given->host_count && !make_pair(net->ends)))
		r = err_sys(err, errno, "cannot create a socket for the command's network");
	if (r == 0)
		r = collect(net, err);
	if (r == 0)
		r = net_secrets_prepare(net, err);
	if (r) {
		net_destroy(net);
		return r;
	}
	*ret = net;
	return 0;
}

void net_plan(struct net *net, struct plan *plan)
{
	plan->net = net->ends[1];
	plan->net_ports = net->ports;
	plan->net_port_count = net->port_count;
	plan->net_literals = net->literals;
	plan->net_literal_count = net->literal_count;
	plan->net_bundle = net->bundle;
}

static void drop(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static bool receive(struct net *net)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE((SANDBOX_PORTS_MAX + 1) * sizeof(int))];
	} data;
	char byte;
	struct iovec iov = {&byte, 1};
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = data.room, .msg_controllen = sizeof(data.room)};
	int fds[SANDBOX_PORTS_MAX + 1];
	struct cmsghdr *c;

	if (recvmsg(net->ends[0], &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) != 1)
		return false;
	c = CMSG_FIRSTHDR(&msg);
	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS ||
	    c->cmsg_len != CMSG_LEN((net->port_count + 1) * sizeof(int)))
		return false;
	memcpy(fds, CMSG_DATA(c), (net->port_count + 1) * sizeof(int));
	net->dns = fds[0];
	memcpy(net->listeners, fds + 1, net->port_count * sizeof(int));
	return true;
}

int net_begin(struct net *net, struct err *err)
{
	if (!net || net->runs || net->ends[0] < 0)
		return 0;
	drop(&net->ends[1]);
	if (!receive(net))
		return err_set(err, ERR_UNAVAILABLE, "the command's network could not be opened");
	drop(&net->ends[0]);
	if (pthread_create(&net->thread, NULL, serve, net) != 0)
		return err_set(err, ERR_UNAVAILABLE, "a thread for the command's network cannot be started");
	net->runs = true;
	return 0;
}

void net_end(struct net *net)
{
	if (!net || !net->runs)
		return;
	atomic_store(&net->stop.requested, true);
	(void)!write(net->stop_fd, &(uint64_t){1}, sizeof(uint64_t));
	pthread_join(net->thread, NULL);
	pthread_mutex_lock(&net->lock);
	while (net->alive)
		pthread_cond_wait(&net->idle, &net->lock);
	pthread_mutex_unlock(&net->lock);
	net->runs = false;
}

void net_result(struct net *net, struct arena *arena, struct sandbox_result *ret)
{
	if (!net)
		return;
	ret->connections = ARENA_ARRAY(arena, struct sandbox_connection, net->log_count);
	ret->connection_count = net->log_count;
	ret->connections_unlogged = net->unlogged;
	for (size_t i = 0; i < net->log_count; i++) {
		ret->connections[i] = net->log[i];
		ret->connections[i].host = arena_str(arena, net->log[i].host);
		ret->connections[i].reason = arena_str(arena, net->log[i].reason);
	}
}

void net_destroy(struct net *net)
{
	if (!net)
		return;
	net_end(net);
	for (size_t i = 0; i < SANDBOX_PORTS_MAX; i++)
		drop(&net->listeners[i]);
	drop(&net->dns);
	drop(&net->stop_fd);
	drop(&net->ends[0]);
	drop(&net->ends[1]);
	for (size_t i = 0; i < SANDBOX_SECRETS_MAX; i++)
		tls_config_destroy(net->servers[i]);
	tls_config_destroy(net->outside);
	tls_authority_destroy(net->authority);
	pthread_cond_destroy(&net->idle);
	pthread_mutex_destroy(&net->lock);
	arena_destroy(net->arena);
	free(net);
}
