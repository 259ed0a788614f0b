/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS for clients (OpenSSL's one file). The peer's certificate and name are always checked. Calls do not wait: they
 * say what the descriptor must be ready for, and whoever owns the descriptor waits (sock.c).
 */
#ifndef STEAD_NET_TLS_H
#define STEAD_NET_TLS_H

#include <stddef.h>

#include "base/err.h"

struct tls_opts {
	const char *ca_file;              /* PEM of authorities to trust instead of the system's; NULL: the system's */
	const char *cert_file, *key_file; /* the client's own, PEM; NULL: none */
};

/* What many connections share. */
struct tls_config;
int tls_config_new(const struct tls_opts *opts, struct tls_config **ret_config, struct err *err);
void tls_config_destroy(struct tls_config *config);

struct tls;
/* `fd` is borrowed and does not block; `host` is the name or address that the certificate must have. */
int tls_new(struct tls_config *config, int fd, const char *host, struct tls **ret_tls, struct err *err);
void tls_destroy(struct tls *tls);

enum tls_step { TLS_DONE, TLS_WANT_READ, TLS_WANT_WRITE, TLS_END, TLS_FAILED };
/* TLS_FAILED writes err. TLS_END: the peer has closed. */
enum tls_step tls_handshake(struct tls *tls, struct err *err);
enum tls_step tls_read(struct tls *tls, void *bytes, size_t cap, size_t *ret_len, struct err *err);
enum tls_step tls_write(struct tls *tls, const void *bytes, size_t len, size_t *ret_len, struct err *err);

#endif
