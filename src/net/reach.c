/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lists follow IANA's registries of special-purpose addresses. For IPv6 the rule is the other way round: only
 * 2000::/3 is global unicast, and the parts of it that carry IPv4 addresses (6to4, Teredo) or are for documentation are
 * taken out; mapped addresses, unique local and link-local ones are outside it anyway.
 *
 * getaddrinfo() cannot be interrupted. It runs on a thread of its own, and a call that must end leaves that thread
 * behind; the thread frees what both share when it comes back.
 */
#include "net/reach.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"

#define LOOK_MS 20 /* how often a cancel flag is looked at */

struct special {
	unsigned char bytes[16];
	unsigned bits;
};

static const struct special v4_special[] = {
	{{0}, 8},
	{{10}, 8},
	{{100, 64}, 10},
	{{127}, 8},
	{{169, 254}, 16},
	{{172, 16}, 12},
	{{192, 0, 0}, 24},
	{{192, 0, 2}, 24},
	{{192, 31, 196}, 24},
	{{192, 52, 193}, 24},
	{{192, 88, 99}, 24},
	{{192, 168}, 16},
	{{192, 175, 48}, 24},
	{{198, 18}, 15},
	{{198, 51, 100}, 24},
	{{203, 0, 113}, 24},
	{{224}, 3}, /* multicast, reserved, broadcast */
};
static const struct special v6_global = {{0x20}, 3};
static const struct special v6_special[] = {
	{{0x20, 0x01, 0x00, 0x00}, 23},
	{{0x20, 0x01, 0x0D, 0xB8}, 32},
	{{0x20, 0x02}, 16},
	{{0x26, 0x20, 0x00, 0x4F, 0x80}, 48},
	{{0x3F, 0xFF}, 20},
};

static bool within(const unsigned char *address, const unsigned char *net, unsigned bits)
{
	unsigned whole = bits / 8, rest = bits % 8;

	if (memcmp(address, net, whole) != 0)
		return false;
	return rest == 0 || (address[whole] ^ net[whole]) >> (8 - rest) == 0;
}

static bool is_special(const unsigned char *address, const struct special *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (within(address, list[i].bytes, list[i].bits))
			return true;
	return false;
}

/* The bytes of an address; NULL for other families. */
static const unsigned char *bytes_of(const struct sockaddr *address)
{
	if (address->sa_family == AF_INET)
		return (const unsigned char *)&((const struct sockaddr_in *)address)->sin_addr;
	if (address->sa_family == AF_INET6)
		return (const unsigned char *)&((const struct sockaddr_in6 *)address)->sin6_addr;
	return NULL;
}

bool reach_permits(const struct reach *reach, const struct sockaddr *address)
{
	const unsigned char *bytes = bytes_of(address);

	if (!bytes)
		return false;
	for (size_t i = 0; i < reach->count; i++)
		if (reach->allowed[i].family == address->sa_family &&
		    within(bytes, reach->allowed[i].bytes, reach->allowed[i].bits))
			return true;
	if (address->sa_family == AF_INET)
		return !is_special(bytes, v4_special, COUNT(v4_special));
	return within(bytes, v6_global.bytes, v6_global.bits) && !is_special(bytes, v6_special, COUNT(v6_special));
}

int reach_allow(struct reach *reach, struct str network, struct err *err)
{
	struct str address = str_first(network, str_find_char(network, '/'));
	struct str bits = str_from(network, address.len + 1);
	struct reach_net net = {0};
	char text[64];
	int64_t n;

	if (reach->count == REACH_ALLOWED_MAX)
		return err_set(err, ERR_TOO_LARGE, "at most %d networks may be allowed", REACH_ALLOWED_MAX);
	snprintf(text, sizeof(text), "%.*s", STR_ARG(str_first(address, sizeof(text) - 1)));
	net.family = strchr(text, ':') ? AF_INET6 : AF_INET;
	net.bits = net.family == AF_INET ? 32 : 128;
	if (inet_pton(net.family, text, net.bytes) != 1 ||
	    (address.len < network.len && (!str_to_i64(bits, &n) || n < 0 || n > (int64_t)net.bits)))
		return err_set(err, ERR_INVALID,
			       "\"%.*s\" is not a network; write an address such as \"10.1.0.5\" or a network such as "
			       "\"10.1.0.0/16\"",
			       STR_ARG(utf8_first(network, 80)));
	if (address.len < network.len)
		net.bits = (unsigned)n;
	reach->allowed[reach->count++] = net;
	return 0;
}

bool reach_is_same(const struct sockaddr *a, const struct sockaddr *b)
{
	if (a->sa_family != b->sa_family || !bytes_of(a))
		return false;
	if (memcmp(bytes_of(a), bytes_of(b), a->sa_family == AF_INET ? 4 : 16) != 0)
		return false;
	if (a->sa_family == AF_INET)
		return ((const struct sockaddr_in *)a)->sin_port == ((const struct sockaddr_in *)b)->sin_port;
	return ((const struct sockaddr_in6 *)a)->sin6_port == ((const struct sockaddr_in6 *)b)->sin6_port &&
	       ((const struct sockaddr_in6 *)a)->sin6_scope_id == ((const struct sockaddr_in6 *)b)->sin6_scope_id;
}

/* --- resolving --- */

/* Shared by the caller and the thread; who comes last frees it. */
struct lookup {
	pthread_mutex_t lock;
	pthread_cond_t done;
	bool is_done, is_left;
	char host[256], port[8];
	int status;
	struct addrinfo *all;
};

static void lookup_free(struct lookup *l)
{
	if (l->all)
		freeaddrinfo(l->all);
	pthread_cond_destroy(&l->done);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

static void *look_up(void *arg)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
	struct addrinfo *all = NULL;
	struct lookup *l = arg;
	int status = getaddrinfo(l->host, l->port, &hints, &all);
	bool left;

	pthread_mutex_lock(&l->lock);
	l->status = status;
	l->all = status ? NULL : all;
	l->is_done = true;
	left = l->is_left;
	pthread_cond_signal(&l->done);
	pthread_mutex_unlock(&l->lock);
	if (left)
		lookup_free(l);
	return NULL;
}

static int lookup_start(struct str host, uint16_t port, struct lookup **ret, struct err *err)
{
	struct lookup *l = xcalloc(1, sizeof(*l));
	pthread_attr_t detached;
	pthread_t thread;
	int sys;

	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->done, NULL);
	snprintf(l->host, sizeof(l->host), "%.*s", STR_ARG(str_first(host, sizeof(l->host) - 1)));
	snprintf(l->port, sizeof(l->port), "%u", port);
	pthread_attr_init(&detached);
	pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
	sys = pthread_create(&thread, &detached, look_up, l);
	pthread_attr_destroy(&detached);
	if (sys) {
		lookup_free(l);
		return err_sys(err, sys, "a name cannot be resolved");
	}
	*ret = l;
	return 0;
}

/* Waits for the thread; a call that must end leaves it. */
static int lookup_wait(struct lookup *l, struct ctx *ctx, struct err *err)
{
	int r = 0;

	pthread_mutex_lock(&l->lock);
	while (!l->is_done && (r = ctx_check(ctx, err)) == 0) {
		struct timespec until;

		clock_gettime(CLOCK_REALTIME, &until);
		until = clock_timespec(clock_of_timespec(until) + LOOK_MS * NS_PER_MS);
		pthread_cond_timedwait(&l->done, &l->lock, &until);
	}
	l->is_left = !l->is_done;
	pthread_mutex_unlock(&l->lock);
	return r;
}

static int check_all(const struct reach *reach, struct str host, const struct addrinfo *all,
		     struct reach_addresses *ret, struct err *err)
{
	char text[INET6_ADDRSTRLEN] = "?";

	ret->count = 0;
	for (const struct addrinfo *a = all; a; a = a->ai_next) {
		if (!reach_permits(reach, a->ai_addr)) {
			if (bytes_of(a->ai_addr))
				inet_ntop(a->ai_family, bytes_of(a->ai_addr), text, sizeof(text));
			return err_set(err, ERR_DENIED,
				       "\"%.*s\" leads to the address %s, which is not public; no connection was made; "
				       "a person can allow it with web.allow_addresses in agent.yaml",
				       STR_ARG(str_first(host, 200)), text);
		}
		if (ret->count < REACH_ADDRESSES_MAX)
			memcpy(&ret->list[ret->count++], a->ai_addr, a->ai_addrlen);
	}
	if (ret->count)
		return 0;
	return err_set(err, ERR_UNAVAILABLE, "the name \"%.*s\" has no address", STR_ARG(str_first(host, 200)));
}

int reach_resolve(const struct reach *reach, struct ctx *ctx, struct str host, uint16_t port,
		  struct reach_addresses *ret, struct err *err)
{
	struct lookup *l = NULL;
	int r = lookup_start(host, port, &l, err);

	if (r)
		return r;
	r = lookup_wait(l, ctx, err);
	if (r)
		return err_prefix(err, "while the name \"%.*s\" was resolved", STR_ARG(str_first(host, 200)));
	if (l->status)
		r = err_set(err, ERR_UNAVAILABLE, "the name \"%.*s\" cannot be resolved: %s",
			    STR_ARG(str_first(host, 200)), gai_strerror(l->status));
	else
		r = check_all(reach, host, l->all, ret, err);
	lookup_free(l);
	return r;
}
