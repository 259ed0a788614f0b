/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"

/* Compiled in: one library less to load at each start, and none to collide with the copy that libfyaml carries. */
#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t hash_u64(struct str s, uint64_t seed)
{
	return XXH3_64bits_withSeed(s.ptr, s.len, seed);
}

void hex_u64(uint64_t v, char ret_hex[16])
{
	static const char digits[] = "0123456789abcdef";

	for (int i = 15; i >= 0; i--) {
		ret_hex[i] = digits[v & 15];
		v >>= 4;
	}
}

struct str hash_hex128(struct arena *arena, struct str s)
{
	XXH128_hash_t h = XXH3_128bits(s.ptr, s.len);
	char *hex = arena_alloc_raw(arena, 33);

	hex_u64(h.high64, hex);
	hex_u64(h.low64, hex + 16);
	hex[32] = '\0';
	return str_n(hex, 32);
}
