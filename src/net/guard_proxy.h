/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A proxy on loopback for a program that resolves names and follows redirects by itself, such as a browser. Each
 * connection that it asks for is resolved here, once, and goes to an address that was checked (net/reach.h); so neither
 * a redirect nor a name that changes its address leads to a private one.
 */
#ifndef STEAD_NET_GUARD_PROXY_H
#define STEAD_NET_GUARD_PROXY_H

#include "net/reach.h"

struct guard_proxy;

/* Listens on a free port of 127.0.0.1. `reach` is copied. */
int guard_proxy_start(const struct reach *reach, struct guard_proxy **ret, struct err *err);
uint16_t guard_proxy_port(const struct guard_proxy *proxy);
/* Ends all connections and waits for them. NULL is allowed. */
void guard_proxy_stop(struct guard_proxy *proxy);

#endif
