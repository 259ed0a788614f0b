/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small HTTP server on a thread of the test, which answers by path:
 *	/echo        the whole request, head and body, as it arrived
 *	/size/N      N bytes 'x'
 *	/endless     a body without an end
 *	/short/N     says N bytes, sends half, and hangs up
 *	/status/NNN  that status, with a short body
 *	/big500/N    status 500 with N bytes
 *	/fields/N    N header fields
 *	/count       nothing: for bodies that are only counted
 *	/garbage     something that is not HTTP
 */
#ifndef STEAD_TESTS_NET_LOOPBACK_H
#define STEAD_TESTS_NET_LOOPBACK_H

#include <stdint.h>

struct loopback;
struct loopback *loopback_start(void);
void loopback_stop(struct loopback *server);
uint16_t loopback_port(const struct loopback *server);
uint64_t loopback_requests(struct loopback *server); /* that arrived whole */
uint64_t loopback_bytes(struct loopback *server);    /* of bodies */

#endif
