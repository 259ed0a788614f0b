/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The little of DNS that answers a resolver library: one question in, one answer out. What is not a plain question is
 * refused as a whole, so that nothing but a name and a type ever leaves the parser.
 */
#ifndef STEAD_NET_DNS_H
#define STEAD_NET_DNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

#define DNS_NAME_MAX   253
#define DNS_PACKET_MAX 512
#define DNS_TYPE_A     1

enum dns_code { DNS_OK = 0, DNS_NO_NAME = 3, DNS_REFUSED = 5 };

struct dns_query {
	char name[DNS_NAME_MAX + 1]; /* in small letters, without a dot at its end; letters, digits, '-', '_', '.' */
	size_t name_len;
	uint16_t type;
	size_t question_end; /* of the packet */
};

/* False: not one question of the class IN with a name that a host can have. */
bool dns_query_parse(struct str packet, struct dns_query *ret);
/* The answer to `packet`, from which `query` was read. `address` (of IPv4, in the order of the host) is given when the
   code is DNS_OK and the question asks for it; 0: there is none. The number of bytes written. */
size_t dns_answer(struct str packet, const struct dns_query *query, enum dns_code code, uint32_t address,
		  uint8_t ret[DNS_PACKET_MAX]);

/* "Not a question": the answer to a packet that dns_query_parse() refuses. 0: it is not even that. */
size_t dns_answer_bad(struct str packet, uint8_t ret[DNS_PACKET_MAX]);

/* The name of a host, as it may be written: letters, digits, '-', '_', and dots between labels of at most 63
   characters. `ret` gets it in small letters, without a dot at the end. */
bool dns_name_clean(struct str name, char ret[DNS_NAME_MAX + 1], size_t *ret_len);

#endif
