/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first message of a TLS client, which says in the clear which server it wants (RFC 8446 4.1.2, RFC 6066 3). It may
 * come in several records and in any number of pieces.
 */
#ifndef STEAD_NET_HELLO_H
#define STEAD_NET_HELLO_H

#include "net/dns.h"

#define HELLO_BYTES_MAX ((size_t)32 * 1024) /* records of one message */

enum hello_state {
	HELLO_MORE, /* the message is not whole yet */
	HELLO_DONE,
	HELLO_BAD, /* not a ClientHello, or one that two readers could understand differently */
};

struct hello {
	char name[DNS_NAME_MAX + 1]; /* in small letters; empty: it names no server */
	size_t name_len;
	bool is_encrypted; /* it has a second, encrypted message with another name (ECH) */
};

/* Reads the bytes that have come so far. */
enum hello_state hello_parse(struct str bytes, struct hello *ret);

#endif
