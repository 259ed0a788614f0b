/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenSSL wrapped in a few functions. Its error queue belongs to the thread and may hold what somebody else left there,
 * so it is emptied before every call whose failure is explained from it. Its own socket layer writes with write(),
 * which ends a program that did not ask for it by SIGPIPE; so the bytes go through a layer of ours that uses send().
 */
#include "net/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <pthread.h>

#include "base/arena.h"
#include "net/dynlib.h"
#include "net/tls_internal.h"

/* Loaded at the first use, not linked: see net/dynlib.h. */
#define FUNCTIONS(X)                                                                                                   \
	X(BIO_clear_flags)                                                                                             \
	X(BIO_free)                                                                                                    \
	X(BIO_get_data)                                                                                                \
	X(BIO_get_new_index)                                                                                           \
	X(BIO_meth_free)                                                                                               \
	X(BIO_meth_new)                                                                                                \
	X(BIO_meth_set_ctrl)                                                                                           \
	X(BIO_meth_set_read_ex)                                                                                        \
	X(BIO_meth_set_write_ex)                                                                                       \
	X(BIO_new)                                                                                                     \
	X(BIO_set_data)                                                                                                \
	X(BIO_set_flags)                                                                                               \
	X(BIO_set_init)                                                                                                \
	X(ERR_clear_error)                                                                                             \
	X(ERR_peek_error)                                                                                              \
	X(ERR_peek_last_error)                                                                                         \
	X(ERR_reason_error_string)                                                                                     \
	X(SSL_CTX_ctrl)                                                                                                \
	X(SSL_CTX_free)                                                                                                \
	X(SSL_CTX_load_verify_locations)                                                                               \
	X(SSL_CTX_new)                                                                                                 \
	X(SSL_CTX_set_default_verify_paths)                                                                            \
	X(SSL_CTX_set_verify)                                                                                          \
	X(SSL_CTX_use_PrivateKey_file)                                                                                 \
	X(SSL_CTX_use_certificate_chain_file)                                                                          \
	X(SSL_ctrl)                                                                                                    \
	X(SSL_do_handshake)                                                                                            \
	X(SSL_free)                                                                                                    \
	X(SSL_get0_param)                                                                                              \
	X(SSL_get_error)                                                                                               \
	X(SSL_get_verify_result)                                                                                       \
	X(SSL_new)                                                                                                     \
	X(SSL_pending)                                                                                                 \
	X(SSL_read_ex)                                                                                                 \
	X(SSL_set1_host)                                                                                               \
	X(SSL_set_bio)                                                                                                 \
	X(SSL_set_connect_state)                                                                                       \
	X(SSL_write_ex)                                                                                                \
	X(TLS_client_method)                                                                                           \
	X(X509_VERIFY_PARAM_set1_ip_asc)                                                                               \
	X(X509_verify_cert_error_string)
#define DECLARE(name) __typeof__(name) *(name);
#define ENTRY(name)   {#name, &ossl.name},

static struct {
	FUNCTIONS(DECLARE)
} ossl;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct err load_error; /* kind ERR_NONE: it is there */

static void load(void)
{
	static const struct dynlib_entry entries[] = {FUNCTIONS(ENTRY)};

	dynlib_load("libssl.so.3", "libssl3", entries, COUNT(entries), &load_error);
}

static int failed(struct err *err, enum err_kind kind, const char *what)
{
	unsigned long code = ossl.ERR_peek_last_error();
	const char *reason = code ? ossl.ERR_reason_error_string(code) : NULL;

	ossl.ERR_clear_error();
	return err_set(err, kind, "%s: %s", what, reason ? reason : "no reason was given");
}

static int passed(BIO *bio, ssize_t n, size_t *ret_len, int again)
{
	ossl.BIO_clear_flags(bio, BIO_FLAGS_RWS | BIO_FLAGS_SHOULD_RETRY);
	if (n > 0)
		*ret_len = (size_t)n;
	else if (n < 0 && (errno == EAGAIN || errno == EINTR))
		ossl.BIO_set_flags(bio, again | BIO_FLAGS_SHOULD_RETRY);
	return n > 0;
}

static int socket_write(BIO *bio, const char *bytes, size_t len, size_t *ret_len)
{
	const struct tls *tls = ossl.BIO_get_data(bio);

	return passed(bio, send(tls->fd, bytes, len, MSG_NOSIGNAL), ret_len, BIO_FLAGS_WRITE);
}

static int socket_read(BIO *bio, char *bytes, size_t cap, size_t *ret_len)
{
	struct tls *tls = ossl.BIO_get_data(bio);
	size_t n = tls->ahead.len < cap ? tls->ahead.len : cap;

	if (!n)
		return passed(bio, recv(tls->fd, bytes, cap, 0), ret_len, BIO_FLAGS_READ);
	memcpy(bytes, tls->ahead.ptr, n);
	tls->ahead = str_from(tls->ahead, n);
	return passed(bio, (ssize_t)n, ret_len, BIO_FLAGS_READ);
}

static long socket_ctrl(BIO *bio, int what, long number, void *arg)
{
	(void)bio;
	(void)number;
	(void)arg;
	return what == BIO_CTRL_FLUSH;
}

static BIO_METHOD *socket_method(void)
{
	BIO_METHOD *m = ossl.BIO_meth_new(ossl.BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "stead socket");

	if (m) {
		ossl.BIO_meth_set_write_ex(m, socket_write);
		ossl.BIO_meth_set_read_ex(m, socket_read);
		ossl.BIO_meth_set_ctrl(m, socket_ctrl);
	}
	return m;
}

static int load_files(SSL_CTX *ctx, const struct tls_opts *opts, struct err *err)
{
	if (opts->ca_file ? ossl.SSL_CTX_load_verify_locations(ctx, opts->ca_file, NULL) != 1
			  : ossl.SSL_CTX_set_default_verify_paths(ctx) != 1)
		return failed(err, ERR_INVALID,
			      opts->ca_file ? "cannot load the file of certificate authorities"
					    : "cannot load the system's certificate authorities");
	if (opts->ca_file && opts->and_system)
		(void)ossl.SSL_CTX_set_default_verify_paths(ctx);
	if (opts->cert_file && ossl.SSL_CTX_use_certificate_chain_file(ctx, opts->cert_file) != 1)
		return failed(err, ERR_INVALID, "cannot load the client's certificate");
	if (opts->key_file && ossl.SSL_CTX_use_PrivateKey_file(ctx, opts->key_file, SSL_FILETYPE_PEM) != 1)
		return failed(err, ERR_INVALID, "cannot load the key of the client's certificate");
	return 0;
}

int tls_config_make(const SSL_METHOD *(*method)(void), struct tls_config **ret, struct err *err)
{
	struct tls_config *config = xcalloc(1, sizeof(*config));
	SSL_CTX *ctx;

	ossl.ERR_clear_error();
	config->socket = socket_method();
	ctx = config->ctx = ossl.SSL_CTX_new(method());
	if (!ctx || !config->socket) {
		tls_config_destroy(config);
		return failed(err, ERR_INTERNAL, "cannot set up TLS");
	}
	ossl.SSL_CTX_ctrl(ctx, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_2_VERSION, NULL);
	ossl.SSL_CTX_ctrl(ctx, SSL_CTRL_MODE, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER,
			  NULL);
	*ret = config;
	return 0;
}

int tls_config_new(const struct tls_opts *opts, struct tls_config **ret_config, struct err *err)
{
	struct tls_config *config = NULL;
	int r;

	pthread_once(&once, load);
	if (load_error.kind) {
		*err = load_error;
		return -err->kind;
	}
	r = tls_config_make(ossl.TLS_client_method, &config, err);
	if (r)
		return r;
	ossl.SSL_CTX_set_verify(config->ctx, SSL_VERIFY_PEER, NULL);
	r = load_files(config->ctx, opts, err);
	if (r) {
		tls_config_destroy(config);
		return r;
	}
	*ret_config = config;
	return 0;
}

void tls_config_destroy(struct tls_config *config)
{
	if (config) {
		ossl.SSL_CTX_free(config->ctx);
		ossl.BIO_meth_free(config->socket);
		free(config);
	}
}

/* An address is compared with the certificate's addresses, a name with its names (and is sent to the server). */
static int expect_host(SSL *ssl, const char *host)
{
	unsigned char address[16];

	if (inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1)
		return ossl.X509_VERIFY_PARAM_set1_ip_asc(ossl.SSL_get0_param(ssl), host);
	return ossl.SSL_set1_host(ssl, host) == 1 &&
	       ossl.SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, (char *)host) == 1;
}

int tls_make(struct tls_config *config, int fd, struct tls **ret, struct err *err)
{
	struct tls *tls;
	BIO *bio;
	SSL *ssl;

	ossl.ERR_clear_error();
	ssl = ossl.SSL_new(config->ctx);
	bio = ossl.BIO_new(config->socket);
	if (!ssl || !bio) {
		ossl.BIO_free(bio);
		ossl.SSL_free(ssl);
		return failed(err, ERR_INTERNAL, "cannot begin TLS");
	}
	tls = xcalloc(1, sizeof(*tls));
	tls->ssl = ssl;
	tls->fd = fd;
	ossl.BIO_set_data(bio, tls);
	ossl.BIO_set_init(bio, 1);
	ossl.SSL_set_bio(ssl, bio, bio);
	*ret = tls;
	return 0;
}

int tls_new(struct tls_config *config, int fd, const char *host, struct tls **ret_tls, struct err *err)
{
	struct tls *tls;
	int r = tls_make(config, fd, &tls, err);

	if (r)
		return r;
	if (expect_host(tls->ssl, host) != 1) {
		tls_destroy(tls);
		return failed(err, ERR_INTERNAL, "cannot begin TLS");
	}
	ossl.SSL_set_connect_state(tls->ssl);
	*ret_tls = tls;
	return 0;
}

void tls_destroy(struct tls *tls)
{
	if (tls) {
		ossl.SSL_free(tls->ssl);
		free(tls);
	}
}

static enum tls_step step_of(struct tls *tls, int r, const char *what, struct err *err)
{
	long verified;

	switch (ossl.SSL_get_error(tls->ssl, r)) {
	case SSL_ERROR_WANT_READ:
		return TLS_WANT_READ;
	case SSL_ERROR_WANT_WRITE:
		return TLS_WANT_WRITE;
	case SSL_ERROR_ZERO_RETURN:
		return TLS_END;
	case SSL_ERROR_SYSCALL:
		if (ossl.ERR_peek_error() == 0)
			return TLS_END;
		break;
	}
	if (ERR_GET_REASON(ossl.ERR_peek_last_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING) {
		ossl.ERR_clear_error();
		return TLS_END;
	}
	verified = ossl.SSL_get_verify_result(tls->ssl);
	if (verified != X509_V_OK) {
		ossl.ERR_clear_error();
		err_set(err, ERR_UNAUTHENTICATED, "the server's certificate is not trusted: %s",
			ossl.X509_verify_cert_error_string(verified));
		return TLS_FAILED;
	}
	failed(err, ERR_UNAVAILABLE, what);
	return TLS_FAILED;
}

enum tls_step tls_handshake(struct tls *tls, struct err *err)
{
	int r;

	ossl.ERR_clear_error();
	r = ossl.SSL_do_handshake(tls->ssl);
	return r == 1 ? TLS_DONE : step_of(tls, r, "the TLS handshake failed", err);
}

enum tls_step tls_read(struct tls *tls, void *bytes, size_t cap, size_t *ret_len, struct err *err)
{
	int r;

	ossl.ERR_clear_error();
	r = ossl.SSL_read_ex(tls->ssl, bytes, cap, ret_len);
	return r == 1 ? TLS_DONE : step_of(tls, r, "reading through TLS failed", err);
}

enum tls_step tls_write(struct tls *tls, const void *bytes, size_t len, size_t *ret_len, struct err *err)
{
	int r;

	ossl.ERR_clear_error();
	r = ossl.SSL_write_ex(tls->ssl, bytes, len, ret_len);
	return r == 1 ? TLS_DONE : step_of(tls, r, "writing through TLS failed", err);
}

bool tls_has_more(const struct tls *tls)
{
	return ossl.SSL_pending(tls->ssl) > 0;
}
