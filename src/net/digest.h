/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Digests for protocols that ask for them by name (OpenSSL's one file). SHA-256 here runs on the CPU's own
 * instructions; where OpenSSL is not there it falls back to base/sha256.h. Safe from many threads.
 */
#ifndef STEAD_NET_DIGEST_H
#define STEAD_NET_DIGEST_H

#include <stdint.h>

#include "base/err.h"
#include "base/hex.h"
#include "base/str.h"

#define SHA256_LEN ((size_t)32)
#define MD5_LEN    ((size_t)16)

void digest_sha256(struct str bytes, uint8_t ret[SHA256_LEN]);
void digest_hmac_sha256(struct str key, struct str bytes, uint8_t ret[SHA256_LEN]);
/* Only for fields of protocols that demand it. ERR_UNSUPPORTED where OpenSSL is missing or refuses it. */
int digest_md5(struct str bytes, uint8_t ret[MD5_LEN], struct err *err);

/* Piece by piece; one that was begun must be ended. */
struct digest;
struct digest *digest_sha256_begin(void);
void digest_add(struct digest *digest, struct str bytes);
void digest_end(struct digest *digest, uint8_t ret[SHA256_LEN]);

#endif
