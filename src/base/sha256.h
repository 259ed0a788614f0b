/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256, for checksums that others can verify. */
#ifndef STEAD_BASE_SHA256_H
#define STEAD_BASE_SHA256_H

#include <stdint.h>

#include "base/arena.h"
#include "base/str.h"

/* Piece by piece: begin, add, end. */
struct sha256 {
	uint32_t h[8];
	uint64_t len;
	unsigned char part[64]; /* bytes that do not fill a block yet */
};
void sha256_begin(struct sha256 *s);
void sha256_add(struct sha256 *s, struct str bytes);
/* 64 hex digits and a NUL. */
void sha256_end(struct sha256 *s, char ret_hex[65]);

/* 64 hex digits. */
struct str sha256_hex(struct arena *arena, struct str bytes);

#endif
