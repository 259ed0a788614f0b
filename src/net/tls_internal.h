/* SPDX-License-Identifier: Apache-2.0 */
/* What the two files of TLS share. */
#ifndef STEAD_NET_TLS_INTERNAL_H
#define STEAD_NET_TLS_INTERNAL_H

#include <openssl/ssl.h>

#include "net/tls.h"

struct tls_config {
	SSL_CTX *ctx;
	BIO_METHOD *socket;
};

struct tls {
	SSL *ssl;
	int fd;
	struct str ahead; /* read before what comes from fd */
};

/* Without certificates. The library is loaded already. */
int tls_config_make(const SSL_METHOD *(*method)(void), struct tls_config **ret, struct err *err);
int tls_make(struct tls_config *config, int fd, struct tls **ret, struct err *err);

#endif
