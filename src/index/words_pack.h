/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 128 numbers in as many bits each as the largest needs, over four lanes of 32 bits: number i is in lane i % 4, row i /
 * 4. The compiler turns a row into one vector operation on any machine that has vectors of 16 bytes.
 */
#ifndef STEAD_INDEX_WORDS_PACK_H
#define STEAD_INDEX_WORDS_PACK_H

#include <stdint.h>
#include <string.h>

typedef uint32_t words_lanes __attribute__((vector_size(16)));

static inline unsigned words_bits(uint32_t largest)
{
	return largest ? 32 - (unsigned)__builtin_clz(largest) : 0;
}

/* 16 * bits bytes at `to`. */
static inline void words_pack(const uint32_t in[128], unsigned bits, unsigned char *to)
{
	words_lanes held = {0}, row;
	unsigned used = 0;

	for (unsigned i = 0; bits && i < 32; i++) {
		memcpy(&row, in + (size_t)i * 4, sizeof row);
		held |= row << used;
		used += bits;
		if (used >= 32) {
			memcpy(to, &held, sizeof held);
			to += sizeof held;
			used -= 32;
			held = used ? row >> (bits - used) : (words_lanes){0};
		}
	}
}

/* With `sum`, numbers are differences to the fourth before; the first four to `start`. */
static inline __attribute__((always_inline)) void words_unpack(const unsigned char *from, unsigned bits, uint32_t *out,
							       int sum, uint32_t start)
{
	const uint32_t all = bits == 32 ? UINT32_MAX : (UINT32_C(1) << bits) - 1;
	words_lanes mask = {all, all, all, all}, held = {0}, acc = {start, start, start, start}, row;
	unsigned left = 0;

	for (unsigned i = 0; i < 32; i++) {
		if (left >= bits) {
			row = held;
			held = bits < 32 ? held >> bits : (words_lanes){0};
			left -= bits;
		} else {
			words_lanes next;

			memcpy(&next, from, sizeof next);
			from += sizeof next;
			row = left ? held | next << left : next;
			held = bits - left < 32 ? next >> (bits - left) : (words_lanes){0};
			left = 32 - (bits - left);
		}
		row &= mask;
		if (sum)
			row = acc = acc + row;
		memcpy(out + (size_t)i * 4, &row, sizeof row);
	}
}

#endif
