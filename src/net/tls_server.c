/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server's side of TLS, for connections that end here although they were meant for somebody else: an authority that
 * lives as long as what it is made for, and certificates of it. Keys are on the curve P-256, which every client knows
 * and which takes a tenth of a millisecond to make.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "base/clock.h"
#include "net/dynlib.h"
#include "net/tls_internal.h"

/* Loaded at the first use, not linked: see net/dynlib.h. */
#define FUNCTIONS(X)                                                                                                   \
	X(ASN1_INTEGER_set_uint64)                                                                                     \
	X(BIO_ctrl)                                                                                                    \
	X(BIO_free)                                                                                                    \
	X(BIO_new)                                                                                                     \
	X(BIO_s_mem)                                                                                                   \
	X(ERR_clear_error)                                                                                             \
	X(EVP_PKEY_Q_keygen)                                                                                           \
	X(EVP_PKEY_free)                                                                                               \
	X(EVP_sha256)                                                                                                  \
	X(PEM_write_bio_X509)                                                                                          \
	X(SSL_CTX_use_PrivateKey)                                                                                      \
	X(SSL_CTX_use_certificate)                                                                                     \
	X(SSL_set_accept_state)                                                                                        \
	X(TLS_server_method)                                                                                           \
	X(X509V3_EXT_conf_nid)                                                                                         \
	X(X509V3_set_ctx)                                                                                              \
	X(X509_EXTENSION_free)                                                                                         \
	X(X509_NAME_add_entry_by_txt)                                                                                  \
	X(X509_add_ext)                                                                                                \
	X(X509_free)                                                                                                   \
	X(X509_get_serialNumber)                                                                                       \
	X(X509_get_subject_name)                                                                                       \
	X(X509_getm_notAfter)                                                                                          \
	X(X509_getm_notBefore)                                                                                         \
	X(X509_gmtime_adj)                                                                                             \
	X(X509_new)                                                                                                    \
	X(X509_set_issuer_name)                                                                                        \
	X(X509_set_pubkey)                                                                                             \
	X(X509_set_version)                                                                                            \
	X(X509_sign)
#define DECLARE(name) __typeof__(name) *(name);
#define ENTRY(name)   {#name, &lib.name},

#define HOUR  3600L
#define LIVES (25 * HOUR) /* a command with a terminal may run for a day */
#define NAME  "Stead sandbox"

static struct {
	FUNCTIONS(DECLARE)
} lib;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct err load_error; /* kind ERR_NONE: it is there */

struct tls_authority {
	EVP_PKEY *key;
	X509 *certificate;
	char *pem;
};

static void load(void)
{
	static const struct dynlib_entry entries[] = {FUNCTIONS(ENTRY)};

	dynlib_load("libssl.so.3", "libssl3", entries, COUNT(entries), &load_error);
}

static bool add_extension(X509 *certificate, X509 *issuer, int what, const char *value)
{
	X509V3_CTX ctx = {0};
	X509_EXTENSION *extension;
	bool ok;

	lib.X509V3_set_ctx(&ctx, issuer, certificate, NULL, NULL, 0);
	extension = lib.X509V3_EXT_conf_nid(NULL, &ctx, what, value);
	ok = extension && lib.X509_add_ext(certificate, extension, -1) == 1;
	lib.X509_EXTENSION_free(extension);
	return ok;
}

/* A certificate without extensions, unsigned. NULL: it cannot be made. */
static X509 *certificate_new(EVP_PKEY *key, const char *name, X509 *issuer)
{
	X509 *c = lib.X509_new();
	X509_NAME *subject = c ? lib.X509_get_subject_name(c) : NULL;

	if (c && lib.X509_set_version(c, X509_VERSION_3) == 1 &&
	    lib.ASN1_INTEGER_set_uint64(lib.X509_get_serialNumber(c), random_u64() >> 1) == 1 &&
	    lib.X509_gmtime_adj(lib.X509_getm_notBefore(c), -HOUR) &&
	    lib.X509_gmtime_adj(lib.X509_getm_notAfter(c), LIVES) &&
	    lib.X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0) == 1 &&
	    lib.X509_set_issuer_name(c, issuer ? lib.X509_get_subject_name(issuer) : subject) == 1 &&
	    lib.X509_set_pubkey(c, key) == 1)
		return c;
	lib.X509_free(c);
	return NULL;
}

static char *to_pem(X509 *certificate)
{
	BIO *bio = lib.BIO_new(lib.BIO_s_mem());
	char *bytes = NULL, *text = NULL;
	long len;

	if (bio && lib.PEM_write_bio_X509(bio, certificate) == 1) {
		len = lib.BIO_ctrl(bio, BIO_CTRL_INFO, 0, &bytes);
		text = len > 0 ? xstrndup(str_n(bytes, (size_t)len)) : NULL;
	}
	lib.BIO_free(bio);
	return text;
}

int tls_authority_new(struct tls_authority **ret, struct err *err)
{
	struct tls_authority *a;
	X509 *c;

	pthread_once(&once, load);
	if (load_error.kind) {
		*err = load_error;
		return -err->kind;
	}
	a = xcalloc(1, sizeof(*a));
	a->key = lib.EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256");
	c = a->certificate = a->key ? certificate_new(a->key, NAME, NULL) : NULL;
	if (c && add_extension(c, c, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
	    add_extension(c, c, NID_key_usage, "critical,keyCertSign") &&
	    add_extension(c, c, NID_subject_key_identifier, "hash") && lib.X509_sign(c, a->key, lib.EVP_sha256()) > 0)
		a->pem = to_pem(c);
	lib.ERR_clear_error();
	if (!a->pem) {
		tls_authority_destroy(a);
		return err_set(err, ERR_INTERNAL, "a certificate authority cannot be made");
	}
	*ret = a;
	return 0;
}

void tls_authority_destroy(struct tls_authority *authority)
{
	if (authority) {
		lib.X509_free(authority->certificate);
		lib.EVP_PKEY_free(authority->key);
		free(authority->pem);
		free(authority);
	}
}

struct str tls_authority_pem(const struct tls_authority *authority)
{
	return str_of(authority->pem);
}

static X509 *server_certificate(const struct tls_authority *authority, EVP_PKEY *key, const char *host)
{
	X509 *c = certificate_new(key, NAME, authority->certificate), *by = authority->certificate;
	struct in_addr address;
	char names[300];

	snprintf(names, sizeof(names), "%s:%s", inet_pton(AF_INET, host, &address) == 1 ? "IP" : "DNS", host);
	if (c && add_extension(c, by, NID_basic_constraints, "critical,CA:FALSE") &&
	    add_extension(c, by, NID_key_usage, "critical,digitalSignature") &&
	    add_extension(c, by, NID_ext_key_usage, "serverAuth") &&
	    add_extension(c, by, NID_subject_alt_name, names) &&
	    add_extension(c, by, NID_subject_key_identifier, "hash") &&
	    add_extension(c, by, NID_authority_key_identifier, "keyid:always") &&
	    lib.X509_sign(c, authority->key, lib.EVP_sha256()) > 0)
		return c;
	lib.X509_free(c);
	return NULL;
}

int tls_server_new(const struct tls_authority *authority, const char *host, struct tls_config **ret, struct err *err)
{
	EVP_PKEY *key = lib.EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256");
	X509 *certificate = key ? server_certificate(authority, key, host) : NULL;
	struct tls_config *config = NULL;
	int r = 0;

	lib.ERR_clear_error();
	if (!certificate)
		r = err_set(err, ERR_INTERNAL, "a certificate for \"%.100s\" cannot be made", host);
	if (r == 0)
		r = tls_config_make(lib.TLS_server_method, &config, err);
	if (r == 0 && (lib.SSL_CTX_use_certificate(config->ctx, certificate) != 1 ||
		       lib.SSL_CTX_use_PrivateKey(config->ctx, key) != 1)) {
		tls_config_destroy(config);
		r = err_set(err, ERR_INTERNAL, "a certificate for \"%.100s\" cannot be used", host);
	}
	lib.X509_free(certificate);
	lib.EVP_PKEY_free(key);
	if (r == 0)
		*ret = config;
	return r;
}

int tls_accept(struct tls_config *server, int fd, struct str ahead, struct tls **ret, struct err *err)
{
	int r = tls_make(server, fd, ret, err);

	if (r)
		return r;
	(*ret)->ahead = ahead;
	lib.SSL_set_accept_state((*ret)->ssl);
	return 0;
}
