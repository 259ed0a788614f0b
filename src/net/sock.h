/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection to a server, over TCP, a unix socket or TLS. Every call ends by the earlier of its deadline and that of
 * the ctx, and soon after a cancel. After a failure the connection is good for nothing but sock_close().
 */
#ifndef STEAD_NET_SOCK_H
#define STEAD_NET_SOCK_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/ctx.h"
#include "base/err.h"

struct tls_config;
struct sock;

struct sock_target {
	const char *host; /* name or address */
	unsigned port;
	const char *unix_path;  /* instead of host and port */
	struct tls_config *tls; /* NULL: in the clear */
};

int sock_connect(const struct sock_target *target, struct ctx *ctx, int64_t deadline_ns, struct sock **ret_sock,
		 struct err *err);
void sock_close(struct sock *sock);
/* Waits for at least one byte; the end of the stream is an error. Bytes after the first `cap` go to
   `spill`; *ret_len counts both. */
int sock_read(struct sock *sock, struct ctx *ctx, int64_t deadline_ns, void *bytes, size_t cap, void *spill,
	      size_t spill_cap, size_t *ret_len, struct err *err);
/* All pieces, in order; the list is used up. */
int sock_write(struct sock *sock, struct ctx *ctx, int64_t deadline_ns, struct iovec *pieces, size_t count,
	       struct err *err);
/* True when nothing is waiting to be read and the peer has not closed: a kept connection may be used again. */
int sock_is_quiet(struct sock *sock);

#endif
