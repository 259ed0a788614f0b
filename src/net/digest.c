/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenSSL is loaded at the first use, not linked: see net/dynlib.h. HMAC is written out here over SHA-256, because it
 * is four lines, and OpenSSL's own costs a look-up by name each time.
 */
#include "net/digest.h"

#include <openssl/evp.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/fatal.h"
#include "base/sha256.h"
#include "net/dynlib.h"

#define BLOCK_LEN 64

static struct {
	__typeof__(EVP_MD_fetch) *md_fetch;
	__typeof__(EVP_MD_CTX_new) *ctx_new;
	__typeof__(EVP_MD_CTX_free) *ctx_free;
	__typeof__(EVP_DigestInit_ex) *init;
	__typeof__(EVP_DigestUpdate) *update;
	__typeof__(EVP_DigestFinal_ex) *final;
} ssl;
static EVP_MD *sha256_md, *md5_md; /* NULL: not there */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load(void)
{
	const struct dynlib_entry entries[] = {
		{"EVP_MD_fetch", &ssl.md_fetch},  {"EVP_MD_CTX_new", &ssl.ctx_new},  {"EVP_MD_CTX_free", &ssl.ctx_free},
		{"EVP_DigestInit_ex", &ssl.init}, {"EVP_DigestUpdate", &ssl.update}, {"EVP_DigestFinal_ex", &ssl.final},
	};
	struct err err;

	if (dynlib_load("libcrypto.so.3", "libssl3", entries, COUNT(entries), &err) != 0)
		return;
	sha256_md = ssl.md_fetch(NULL, "SHA256", NULL);
	md5_md = ssl.md_fetch(NULL, "MD5", NULL);
}

struct digest {
	EVP_MD_CTX *ctx; /* NULL: own */
	struct sha256 own;
};

static unsigned nibble(char c)
{
	return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
}

static void begin(struct digest *digest)
{
	pthread_once(&once, load);
	digest->ctx = sha256_md ? ssl.ctx_new() : NULL;
	if (digest->ctx && ssl.init(digest->ctx, sha256_md, NULL) == 1)
		return;
	if (digest->ctx)
		ssl.ctx_free(digest->ctx);
	digest->ctx = NULL;
	sha256_begin(&digest->own);
}

void digest_add(struct digest *digest, struct str bytes)
{
	if (!digest->ctx)
		sha256_add(&digest->own, bytes);
	else if (bytes.len > 0 && ssl.update(digest->ctx, bytes.ptr, bytes.len) != 1)
		fatal("OpenSSL refused the bytes of a digest"); /* only lack of memory can cause this */
}

static void ssl_finish(struct digest *digest, uint8_t *ret)
{
	if (ssl.final(digest->ctx, ret, NULL) != 1)
		fatal("OpenSSL did not finish a digest");
	ssl.ctx_free(digest->ctx);
}

static void finish(struct digest *digest, uint8_t ret[SHA256_LEN])
{
	char hex[65];

	if (digest->ctx) {
		ssl_finish(digest, ret);
		return;
	}
	sha256_end(&digest->own, hex);
	for (size_t i = 0; i < SHA256_LEN; i++)
		ret[i] = (uint8_t)(nibble(hex[2 * i]) << 4 | nibble(hex[2 * i + 1]));
}

struct digest *digest_sha256_begin(void)
{
	struct digest *digest = xmalloc(sizeof(*digest));

	begin(digest);
	return digest;
}

void digest_end(struct digest *digest, uint8_t ret[SHA256_LEN])
{
	finish(digest, ret);
	free(digest);
}

static void sha256_of(struct str first, struct str second, uint8_t *ret)
{
	struct digest digest;

	begin(&digest);
	digest_add(&digest, first);
	digest_add(&digest, second);
	finish(&digest, ret);
}

void digest_sha256(struct str bytes, uint8_t ret[SHA256_LEN])
{
	sha256_of(bytes, STR_NONE, ret);
}

void digest_hmac_sha256(struct str key, struct str bytes, uint8_t ret[SHA256_LEN])
{
	uint8_t pad[BLOCK_LEN] = {0}, inner[SHA256_LEN];

	if (key.len > BLOCK_LEN)
		digest_sha256(key, pad);
	else if (key.len > 0)
		memcpy(pad, key.ptr, key.len);
	for (size_t i = 0; i < BLOCK_LEN; i++)
		pad[i] ^= 0x36;
	sha256_of(str_n(pad, BLOCK_LEN), bytes, inner);
	for (size_t i = 0; i < BLOCK_LEN; i++)
		pad[i] ^= 0x36 ^ 0x5c;
	sha256_of(str_n(pad, BLOCK_LEN), str_n(inner, SHA256_LEN), ret);
	explicit_bzero(pad, sizeof(pad));
}

int digest_md5(struct str bytes, uint8_t ret[MD5_LEN], struct err *err)
{
	struct digest digest;

	pthread_once(&once, load);
	if (!md5_md)
		return err_set(err, ERR_UNSUPPORTED,
			       "MD5 is needed and OpenSSL does not have it; install the package libssl3");
	digest.ctx = ssl.ctx_new();
	if (!digest.ctx || ssl.init(digest.ctx, md5_md, NULL) != 1)
		fatal("OpenSSL could not begin a digest");
	digest_add(&digest, bytes);
	ssl_finish(&digest, ret);
	return 0;
}
