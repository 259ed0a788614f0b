/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"

/* Compiled in: one library less to load at each start, and no collision with the copy that libfyaml carries. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/fatal.h"

uint64_t hash_u64(struct str s, uint64_t seed)
{
	return XXH3_64bits_withSeed(s.ptr, s.len, seed);
}

void hash_u128(struct str s, uint64_t ret_hash[2])
{
	XXH128_hash_t h = XXH3_128bits(s.ptr, s.len);

	ret_hash[0] = h.high64;
	ret_hash[1] = h.low64;
}

struct str hash_hex128(struct arena *arena, struct str s)
{
	char *hex = arena_alloc_raw(arena, 33);
	uint64_t h[2];

	hash_u128(s, h);
	hex_u64(h[0], hex);
	hex_u64(h[1], hex + 16);
	hex[32] = '\0';
	return str_n(hex, 32);
}

struct hash_stream *hash_stream_new(void)
{
	XXH3_state_t *state = XXH3_createState();

	if (!state)
		fatal("out of memory in xxHash");
	XXH3_128bits_reset(state);
	return (struct hash_stream *)state;
}

void hash_stream_add(struct hash_stream *stream, struct str s)
{
	XXH3_128bits_update((XXH3_state_t *)stream, s.ptr, s.len);
}

void hash_stream_end(struct hash_stream *stream, uint64_t ret_hash[2])
{
	XXH128_hash_t h = XXH3_128bits_digest((XXH3_state_t *)stream);

	XXH3_freeState((XXH3_state_t *)stream);
	ret_hash[0] = h.high64;
	ret_hash[1] = h.low64;
}
