/* SPDX-License-Identifier: Apache-2.0 */
/* Hashes that nobody can attack us through: xxHash for tables, versions and checksums (not for secrets). */
#ifndef STEAD_BASE_HASH_H
#define STEAD_BASE_HASH_H

#include <stdint.h>

#include "base/arena.h"
#include "base/hex.h"

uint64_t hash_u64(struct str s, uint64_t seed);
/* 128 bits as 32 hex digits: content identity. */
struct str hash_hex128(struct arena *arena, struct str s);
/* The same as two numbers, at once or piece by piece. */
void hash_u128(struct str s, uint64_t ret_hash[2]);
struct hash_stream;
struct hash_stream *hash_stream_new(void);
void hash_stream_add(struct hash_stream *stream, struct str s);
/* Ends and frees the stream. */
void hash_stream_end(struct hash_stream *stream, uint64_t ret_hash[2]);

#endif
