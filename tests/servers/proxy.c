/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread and poll(). Each connection has two pipes, up (client to server) and down. A plan is looked at when a
 * request begins, and its fault stays with the connection until the next one begins. Whatever the test asks goes
 * through one lock, which the thread holds only while it works, not while it waits.
 */
#include "servers/proxy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/str.h"

#define PIPE_LEN  65536
#define CONNS_MAX 256
#define HEADS_MAX 65536 /* requests whose first bytes are remembered */
#define HEAD_LEN  200

struct head {
	size_t len;
	char bytes[HEAD_LEN];
};

struct pipe {
	char bytes[PIPE_LEN];
	size_t len, off;
	bool eof;
	uint64_t turn; /* bytes that passed since the request began */
};

struct conn {
	int client, server;
	struct pipe up, down;
	bool asking; /* the client spoke last */
	struct proxy_plan plan;
	int64_t hold_until_ns;
	uint64_t body_left; /* of a request that is answered here */
	bool head_seen, stalled;
	size_t tail; /* how much of "\r\n\r\n" the bytes ended with */
	char head[4096];
	size_t head_len;
};

struct proxy {
	pthread_t thread;
	pthread_mutex_t lock;
	int listener, wake;
	uint16_t port;
	struct sockaddr_in target;
	struct proxy_plan plan;
	char *match, *answer; /* the plan's, copied */
	uint64_t matched;     /* requests that the plan was looked at for */
	bool stopping;
	struct conn *conns[CONNS_MAX];
	uint64_t requests, connections, up, down, faults;
	struct head *heads;
};

static void die(const char *what)
{
	fprintf(stderr, "proxy: %s: %s\n", what, strerror(errno));
	abort();
}

static struct sockaddr_in address(const char *text)
{
	struct sockaddr_in in = {.sin_family = AF_INET};
	struct str s = str_of(text), host;
	size_t at = str_find(s, STR("://"), 0);
	int64_t port = 0;
	char ip[64];

	if (at != SIZE_MAX)
		s = str_from(s, at + 3);
	at = str_rfind_char(s, ':');
	host = str_first(s, at);
	s = str_from(s, at + 1);
	s = str_first(s, str_find_char(s, '/'));
	snprintf(ip, sizeof(ip), "%.*s", STR_ARG(host));
	if (!str_to_i64(s, &port) || port < 1 || port > 65535 || inet_pton(AF_INET, ip, &in.sin_addr) != 1) {
		fprintf(stderr, "proxy: \"%s\" is not an address like 127.0.0.1:1234\n", text);
		abort();
	}
	in.sin_port = htons((uint16_t)port);
	return in;
}

static void listen_on(struct proxy *p, uint16_t port)
{
	struct sockaddr_in in = {
		.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(in);
	int one = 1;

	p->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (p->listener < 0 || setsockopt(p->listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) != 0 ||
	    bind(p->listener, (struct sockaddr *)&in, sizeof(in)) != 0 || listen(p->listener, 128) != 0 ||
	    getsockname(p->listener, (struct sockaddr *)&in, &len) != 0)
		die("listen");
	p->port = ntohs(in.sin_port);
}

static void conn_close(struct proxy *p, size_t i)
{
	close(p->conns[i]->client);
	close(p->conns[i]->server);
	free(p->conns[i]);
	p->conns[i] = NULL;
}

static void cut_all(struct proxy *p, bool only_stalled)
{
	for (size_t i = 0; i < CONNS_MAX; i++)
		if (p->conns[i] && (!only_stalled || p->conns[i]->stalled))
			conn_close(p, i);
}

/* The server is on loopback: a connection is there at once or not at all. */
static void accept_one(struct proxy *p)
{
	int client = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK), server, one = 1;
	size_t i = 0;

	if (client < 0)
		return;
	p->connections++;
	while (i < CONNS_MAX && p->conns[i])
		i++;
	server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (i == CONNS_MAX || server < 0 || connect(server, (struct sockaddr *)&p->target, sizeof(p->target)) != 0) {
		if (server >= 0)
			close(server);
		close(client);
		return;
	}
	fcntl(server, F_SETFL, O_NONBLOCK);
	setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	p->conns[i] = xcalloc(1, sizeof(struct conn));
	p->conns[i]->client = client;
	p->conns[i]->server = server;
}

static bool head_has(struct str head, const char *text)
{
	return !text || str_find(head, str_of(text), 0) != SIZE_MAX;
}

/* The client speaks after the server has: a request begins, and the plan says what becomes of it. */
static void request_begins(struct proxy *p, struct conn *c)
{
	struct str head = str_n(c->up.bytes, c->up.len);
	uint64_t first = p->plan.at ? p->plan.at : 1, count = p->plan.count ? p->plan.count : 1;

	c->asking = true;
	c->up.turn = c->down.turn = 0;
	c->plan = (struct proxy_plan){0};
	c->hold_until_ns = 0;
	c->head_seen = false;
	c->tail = c->head_len = 0;
	if (p->requests < HEADS_MAX) {
		struct head *kept = &p->heads[p->requests];

		kept->len = str_first(head, HEAD_LEN).len;
		memcpy(kept->bytes, head.ptr, kept->len);
	}
	p->requests++;
	if (p->plan.fault == PROXY_PASS || p->plan.fault == PROXY_REFUSE || !head_has(head, p->match))
		return;
	p->matched++;
	if (p->matched < first || p->matched - first >= count)
		return;
	c->plan = p->plan;
	p->faults++;
}

/* Follows a request that is answered here to its end, which Content-Length gives; of other protocols a request is what
   comes at once. True when it is there. */
static bool swallow(struct conn *c)
{
	size_t i = c->up.off;

	if (strncmp(c->plan.answer, "HTTP/", 5) != 0) {
		c->up.off = c->up.len = 0;
		return true;
	}
	for (; !c->head_seen && i < c->up.len; i++) {
		char ch = c->up.bytes[i];

		if (c->head_len + 1 < sizeof(c->head))
			c->head[c->head_len++] = ch;
		c->tail = ch == "\r\n\r\n"[c->tail] ? c->tail + 1 : ch == '\r';
		if (c->tail == 4) {
			const char *length;

			c->head[c->head_len] = 0;
			length = strcasestr(c->head, "\r\nContent-Length:");
			c->body_left = length ? strtoull(length + 17, NULL, 10) : 0;
			c->head_seen = true;
		}
	}
	if (c->head_seen) {
		size_t rest = c->up.len - i;

		c->body_left -= rest < c->body_left ? rest : c->body_left;
	}
	c->up.off = c->up.len = 0;
	return c->head_seen && c->body_left == 0;
}

/* Reads into an empty pipe. False when the connection is broken. */
static bool fill(struct pipe *pipe, int fd)
{
	ssize_t n = read(fd, pipe->bytes, PIPE_LEN);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	pipe->off = 0;
	pipe->len = (size_t)n;
	pipe->eof = n == 0;
	return true;
}

/* How much of what is in a pipe may pass now. */
static size_t allowed(const struct pipe *pipe, bool limited, uint64_t most)
{
	size_t there = pipe->len - pipe->off;

	if (!limited)
		return there;
	return most - pipe->turn < there ? (size_t)(most - pipe->turn) : there;
}

/* Writes what may pass. False when the connection is broken. */
static bool drain(struct pipe *pipe, int fd, size_t len, uint64_t *total)
{
	ssize_t n;

	if (len == 0)
		return true;
	n = send(fd, pipe->bytes + pipe->off, len, MSG_NOSIGNAL);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	pipe->off += (size_t)n;
	if (pipe->off == pipe->len)
		pipe->off = pipe->len = 0;
	pipe->turn += (size_t)n;
	*total += (size_t)n;
	return true;
}

/* Client to server. False: cut. */
static bool go_up(struct proxy *p, struct conn *c, short ready)
{
	bool limited;

	if (c->up.eof && (ready & (POLLHUP | POLLERR)))
		return false;
	if ((ready & (POLLIN | POLLHUP | POLLERR)) && c->up.off == c->up.len && !c->up.eof) {
		if (!fill(&c->up, c->client))
			return false;
		if (c->up.eof)
			return shutdown(c->server, SHUT_WR) == 0;
		if (!c->asking && c->up.len > 0)
			request_begins(p, c);
	}
	limited = c->plan.fault == PROXY_CUT_REQUEST;
	if (c->plan.fault == PROXY_STALL) {
		c->stalled = true;
		return true;
	}
	if (c->plan.fault == PROXY_ANSWER) {
		if (c->up.len > c->up.off && swallow(c)) {
			struct str answer = str_of(p->answer);

			p->down += answer.len;
			c->asking = false;
			return send(c->client, answer.ptr, answer.len, MSG_NOSIGNAL) == (ssize_t)answer.len;
		}
		return true;
	}
	if (!drain(&c->up, c->server, allowed(&c->up, limited, c->plan.bytes), &p->up))
		return false;
	return !limited || c->up.turn < c->plan.bytes;
}

/* Server to client. False: cut. */
static bool go_down(struct proxy *p, struct conn *c, short ready)
{
	bool cut = c->plan.fault == PROXY_CUT_ANSWER, stall = c->plan.fault == PROXY_STALL_ANSWER;

	if ((ready & (POLLIN | POLLHUP | POLLERR)) && c->down.off == c->down.len && !c->down.eof) {
		if (!fill(&c->down, c->server))
			return false;
		if (c->down.eof)
			return false;
		if (c->down.len > 0 && c->asking) {
			c->asking = false;
			if (c->plan.fault == PROXY_DELAY)
				c->hold_until_ns = clock_monotonic_ns() + (int64_t)c->plan.delay_ms * 1000000;
		}
	}
	if (c->hold_until_ns && clock_monotonic_ns() < c->hold_until_ns)
		return true;
	if (!drain(&c->down, c->client, allowed(&c->down, cut || stall, c->plan.bytes), &p->down))
		return false;
	if (stall && !c->asking && c->down.turn >= c->plan.bytes)
		c->stalled = true;
	return !cut || c->asking || c->down.turn < c->plan.bytes;
}

static short wanted(const struct pipe *from_here, const struct pipe *to_here)
{
	return (short)((from_here->off == from_here->len && !from_here->eof ? POLLIN : 0) |
		       (to_here->off < to_here->len ? POLLOUT : 0));
}

/* Fills the list for poll(); two for each connection. Returns how long to wait. */
static int watch(struct proxy *p, struct pollfd *fds, size_t *ret_count)
{
	int64_t now = clock_monotonic_ns(), next = INT64_MAX;

	fds[0] = (struct pollfd){.fd = p->wake, .events = POLLIN};
	fds[1] = (struct pollfd){.fd = p->listener, .events = POLLIN}; /* -1 is passed over */
	for (size_t i = 0; i < CONNS_MAX; i++) {
		struct conn *c = p->conns[i];

		fds[2 + 2 * i] = fds[3 + 2 * i] = (struct pollfd){.fd = -1};
		if (!c || c->stalled)
			continue;
		fds[2 + 2 * i] = (struct pollfd){.fd = c->client, .events = wanted(&c->up, &c->down)};
		fds[3 + 2 * i] = (struct pollfd){.fd = c->server, .events = wanted(&c->down, &c->up)};
		if (c->hold_until_ns > now) {
			next = c->hold_until_ns < next ? c->hold_until_ns : next;
			fds[2 + 2 * i].events &= (short)~POLLOUT;
		}
	}
	*ret_count = 2 + 2 * CONNS_MAX;
	return next == INT64_MAX ? -1 : (int)((next - now) / 1000000) + 1;
}

static void *serve(void *arg)
{
	struct proxy *p = arg;
	struct pollfd *fds = xcalloc(2 + 2 * CONNS_MAX, sizeof(*fds));
	size_t count;

	pthread_mutex_lock(&p->lock);
	while (!p->stopping) {
		int wait_ms = watch(p, fds, &count);
		uint64_t dummy;

		pthread_mutex_unlock(&p->lock);
		poll(fds, count, wait_ms);
		pthread_mutex_lock(&p->lock);
		if (fds[0].revents && read(p->wake, &dummy, sizeof(dummy)) < 0 && errno != EAGAIN)
			die("read");
		if (fds[0].revents)
			continue; /* something changed while it waited: the list is stale */
		for (size_t i = 0; i < CONNS_MAX; i++) {
			struct conn *c = p->conns[i];

			if (c && !c->stalled &&
			    !(go_up(p, c, fds[2 + 2 * i].revents) && go_down(p, c, fds[3 + 2 * i].revents)))
				conn_close(p, i);
		}
		if (fds[1].revents && p->listener >= 0)
			accept_one(p);
	}
	cut_all(p, false);
	pthread_mutex_unlock(&p->lock);
	free(fds);
	return NULL;
}

/* Ends a change made under the lock: the thread must look again. */
static void unlock(struct proxy *p)
{
	uint64_t one = 1;

	if (write(p->wake, &one, sizeof(one)) < 0)
		die("write");
	pthread_mutex_unlock(&p->lock);
}

struct proxy *proxy_start(const char *target)
{
	struct proxy *p = xcalloc(1, sizeof(*p));

	p->target = address(target);
	p->heads = xcalloc(HEADS_MAX, sizeof(*p->heads));
	p->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (p->wake < 0)
		die("eventfd");
	listen_on(p, 0);
	pthread_mutex_init(&p->lock, NULL);
	if (pthread_create(&p->thread, NULL, serve, p) != 0)
		die("thread");
	return p;
}

void proxy_stop(struct proxy *p)
{
	pthread_mutex_lock(&p->lock);
	p->stopping = true;
	unlock(p);
	pthread_join(p->thread, NULL);
	if (p->listener >= 0)
		close(p->listener);
	close(p->wake);
	pthread_mutex_destroy(&p->lock);
	free(p->match);
	free(p->answer);
	free(p->heads);
	free(p);
}

uint16_t proxy_port(const struct proxy *p)
{
	return p->port;
}

static void set_plan(struct proxy *p, const struct proxy_plan *plan)
{
	free(p->match);
	free(p->answer);
	p->plan = *plan;
	p->match = plan->match ? xstrndup(str_of(plan->match)) : NULL;
	p->answer = xstrndup(str_of(plan->answer ? plan->answer : PROXY_STATUS("500 Internal Server Error", "")));
	p->matched = 0;
}

void proxy_arm(struct proxy *p, const struct proxy_plan *plan)
{
	pthread_mutex_lock(&p->lock);
	set_plan(p, plan);
	if (plan->fault == PROXY_REFUSE) {
		cut_all(p, false);
		if (p->listener >= 0) {
			shutdown(p->listener, SHUT_RDWR); /* the thread's poll() would keep it open for a moment */
			close(p->listener);
		}
		p->listener = -1;
		p->faults++;
	} else if (p->listener < 0) {
		listen_on(p, p->port);
	}
	unlock(p);
}

void proxy_disarm(struct proxy *p)
{
	pthread_mutex_lock(&p->lock);
	set_plan(p, &(struct proxy_plan){0});
	cut_all(p, true);
	if (p->listener < 0)
		listen_on(p, p->port);
	unlock(p);
}

void proxy_cut(struct proxy *p)
{
	pthread_mutex_lock(&p->lock);
	cut_all(p, false);
	unlock(p);
}

void proxy_retarget(struct proxy *p, const char *target)
{
	pthread_mutex_lock(&p->lock);
	p->target = address(target);
	unlock(p);
}

static uint64_t get(struct proxy *p, const uint64_t *counter)
{
	uint64_t v;

	pthread_mutex_lock(&p->lock);
	v = *counter;
	pthread_mutex_unlock(&p->lock);
	return v;
}

uint64_t proxy_requests(struct proxy *p)
{
	return get(p, &p->requests);
}

uint64_t proxy_connections(struct proxy *p)
{
	return get(p, &p->connections);
}

uint64_t proxy_bytes_up(struct proxy *p)
{
	return get(p, &p->up);
}

uint64_t proxy_bytes_down(struct proxy *p)
{
	return get(p, &p->down);
}

uint64_t proxy_faults(struct proxy *p)
{
	return get(p, &p->faults);
}

uint64_t proxy_requests_with(struct proxy *p, const char *text)
{
	uint64_t n = 0;

	pthread_mutex_lock(&p->lock);
	for (uint64_t i = 0; i < p->requests && i < HEADS_MAX; i++)
		n += head_has(str_n(p->heads[i].bytes, p->heads[i].len), text);
	pthread_mutex_unlock(&p->lock);
	return n;
}

void proxy_tell(struct proxy *p)
{
	pthread_mutex_lock(&p->lock);
	for (uint64_t i = 0; i < p->requests && i < HEADS_MAX; i++)
		printf("# asked: %.*s\n", (int)strcspn(p->heads[i].bytes, "\r\n"), p->heads[i].bytes);
	pthread_mutex_unlock(&p->lock);
}

void proxy_forget(struct proxy *p)
{
	pthread_mutex_lock(&p->lock);
	p->requests = p->connections = p->up = p->down = p->faults = 0;
	pthread_mutex_unlock(&p->lock);
}
