/* SPDX-License-Identifier: Apache-2.0 */
/* The socket on which a server waits for connections. */
#ifndef STEAD_SERVER_LISTEN_H
#define STEAD_SERVER_LISTEN_H

#include "base/err.h"

/* `host` is a numeric address or "localhost"; `port` 0 takes a free one. The URL has the port that was taken. */
int listen_open(struct str host, uint16_t port, int *ret_fd, char *ret_url, size_t url_size, struct err *err);

#endif
