/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which addresses a request on behalf of a model may reach: public ones, and those that configuration names. A name is
 * resolved once, every address that it has is checked, and the request is pinned to the checked addresses
 * (http_request.pin). So a name that resolves differently a moment later changes nothing.
 */
#ifndef STEAD_NET_REACH_H
#define STEAD_NET_REACH_H

#include <sys/socket.h>

#include "base/ctx.h"

#define REACH_ADDRESSES_MAX 32 /* of one name */
#define REACH_ALLOWED_MAX   64

struct reach {
	struct reach_net {
		int family;
		unsigned char bytes[16];
		unsigned bits;
	} allowed[REACH_ALLOWED_MAX]; /* in addition to public addresses */
	size_t count;
};

struct reach_addresses {
	struct sockaddr_storage list[REACH_ADDRESSES_MAX];
	size_t count;
};

/* Allows "10.1.0.0/16", "127.0.0.1", "fd00::/8". ERR_INVALID. */
int reach_allow(struct reach *reach, struct str network, struct err *err);
/* False for loopback, private, link-local, shared, multicast, reserved and documentation addresses, for IPv4 addresses
   inside IPv6 ones, and for every family but these two, unless they are allowed. */
bool reach_permits(const struct reach *reach, const struct sockaddr *address);
/* All addresses of a name, or the address itself, with the port. ERR_DENIED as soon as one of them is not permitted:
   nothing is connected to. Ends by ctx's deadline and soon after a cancel. */
int reach_resolve(const struct reach *reach, struct ctx *ctx, struct str host, uint16_t port,
		  struct reach_addresses *ret, struct err *err);
/* The same address and port. */
bool reach_is_same(const struct sockaddr *a, const struct sockaddr *b);

#endif
