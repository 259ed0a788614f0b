/* SPDX-License-Identifier: Apache-2.0 */
/* Hashes that nobody can attack us through: xxHash for tables, versions and checksums (not for secrets). */
#ifndef STEAD_BASE_HASH_H
#define STEAD_BASE_HASH_H

#include <stdint.h>

#include "base/arena.h"
#include "base/str.h"

uint64_t hash_u64(struct str s, uint64_t seed);
/* 128 bits as 32 hex digits: content identity. */
struct str hash_hex128(struct arena *arena, struct str s);
/* A number as 16 hex digits at `ret_hex` (not terminated). */
void hex_u64(uint64_t v, char ret_hex[16]);

#endif
