/* SPDX-License-Identifier: Apache-2.0 */
/* The head of a request to net/guard_proxy.h: where it goes, and what the server there gets. */
#ifndef STEAD_NET_GUARD_HEAD_H
#define STEAD_NET_GUARD_HEAD_H

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

#define GUARD_HEAD_MAX ((size_t)65536)

struct guard_request {
	struct str host; /* a name or an address; IPv6 without brackets */
	uint16_t port;
	struct str
		head; /* for the server, with the path alone; ptr NULL: a tunnel (CONNECT), the server gets no head */
};

/* `head` ends with its empty line. ERR_INVALID. */
int guard_head_parse(struct arena *arena, struct str head, struct guard_request *ret, struct err *err);

#endif
