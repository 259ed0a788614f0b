/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS for clients (OpenSSL's one module). The peer's certificate and name are always checked. Calls do not wait: they
 * say what the descriptor must be ready for, and whoever owns the descriptor waits (sock.c).
 */
#ifndef STEAD_NET_TLS_H
#define STEAD_NET_TLS_H

#include <stddef.h>

#include "base/err.h"
#include "base/str.h"

struct tls_opts {
	const char *ca_file;              /* PEM of authorities to trust instead of the system's; NULL: the system's */
	const char *cert_file, *key_file; /* the client's own, PEM; NULL: none */
	bool and_system;                  /* `ca_file` is trusted in addition to the system's authorities */
};

/* What many connections share. */
struct tls_config;
int tls_config_new(const struct tls_opts *opts, struct tls_config **ret_config, struct err *err);
void tls_config_destroy(struct tls_config *config);

struct tls;
/* `fd` is borrowed and does not block; `host` is the name or address that the certificate must have. */
int tls_new(struct tls_config *config, int fd, const char *host, struct tls **ret_tls, struct err *err);
void tls_destroy(struct tls *tls);
/* True when bytes were decrypted and not read: the descriptor says nothing of them. */
bool tls_has_more(const struct tls *tls);

enum tls_step { TLS_DONE, TLS_WANT_READ, TLS_WANT_WRITE, TLS_END, TLS_FAILED };
/* TLS_FAILED writes err. TLS_END: the peer has closed. */
enum tls_step tls_handshake(struct tls *tls, struct err *err);
enum tls_step tls_read(struct tls *tls, void *bytes, size_t cap, size_t *ret_len, struct err *err);
enum tls_step tls_write(struct tls *tls, const void *bytes, size_t len, size_t *ret_len, struct err *err);

/* --- servers (tls_server.c) --- */

/* An authority made for the moment: its key never leaves the process. */
struct tls_authority;
int tls_authority_new(struct tls_authority **ret, struct err *err);
void tls_authority_destroy(struct tls_authority *authority);
/* Its certificate, PEM. */
struct str tls_authority_pem(const struct tls_authority *authority);
/* A server with a certificate of `authority` for a name or an IPv4 address. tls_config_destroy(). */
int tls_server_new(const struct tls_authority *authority, const char *host, struct tls_config **ret, struct err *err);
/* The server's side of a connection. `ahead`: what was already read from `fd`; it must stay until the handshake is
 * done.
 */
int tls_accept(struct tls_config *server, int fd, struct str ahead, struct tls **ret, struct err *err);

#endif
