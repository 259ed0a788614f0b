/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SHA-256 (FIPS 180-4). Wacht's read_file promises one of the slice it gives, and a bundle can be checked with
 * sha256sum; that alone does not justify linking a TLS library into a file server.
 */
#include "base/sha256.h"

#include "base/hash.h"

static const uint32_t k[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate(uint32_t x, unsigned n)
{
	return x >> n | x << (32 - n);
}

static void block(uint32_t h[8], const unsigned char *p)
{
	uint32_t w[64], s[8];

	for (unsigned i = 0; i < 16; i++)
		w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 | (uint32_t)p[4 * i + 2] << 8 |
		       p[4 * i + 3];
	for (unsigned i = 16; i < 64; i++)
		w[i] = w[i - 16] + (rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3) + w[i - 7] +
		       (rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10);
	memcpy(s, h, sizeof(s));
	/* Eight rounds at a time: the names of the words turn instead of the words. */
	for (unsigned i = 0; i < 64; i += 8) {
#define WORD(n, j) s[((n) - (j)) & 7]
#define ROUND(j)                                                                                                       \
	do {                                                                                                           \
		uint32_t e = WORD(4, j), a = WORD(0, j);                                                               \
		uint32_t t = WORD(7, j) + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) +                             \
			     ((e & WORD(5, j)) ^ (~e & WORD(6, j))) + k[i + (j)] + w[i + (j)];                         \
		WORD(3, j) += t;                                                                                       \
		WORD(7, j) = t + (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) +                                      \
			     ((a & WORD(1, j)) ^ (a & WORD(2, j)) ^ (WORD(1, j) & WORD(2, j)));                        \
	} while (0)
		ROUND(0);
		ROUND(1);
		ROUND(2);
		ROUND(3);
		ROUND(4);
		ROUND(5);
		ROUND(6);
		ROUND(7);
	}
	for (unsigned i = 0; i < 8; i++)
		h[i] += s[i];
}

void sha256_begin(struct sha256 *s)
{
	*s = (struct sha256){
		.h = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void sha256_add(struct sha256 *s, struct str bytes)
{
	size_t have = (size_t)(s->len % 64);

	s->len += bytes.len;
	if (have) {
		size_t n = bytes.len < 64 - have ? bytes.len : 64 - have;

		if (n)
			memcpy(s->part + have, bytes.ptr, n);
		bytes = str_from(bytes, n);
		if (have + n < 64)
			return;
		block(s->h, s->part);
	}
	for (; bytes.len >= 64; bytes = str_from(bytes, 64))
		block(s->h, (const unsigned char *)bytes.ptr);
	if (bytes.len)
		memcpy(s->part, bytes.ptr, bytes.len);
}

void sha256_end(struct sha256 *s, char ret_hex[65])
{
	unsigned char last[128] = {0};
	size_t rest = (size_t)(s->len % 64), tail = rest < 56 ? 64 : 128;

	memcpy(last, s->part, rest);
	last[rest] = 0x80;
	for (unsigned i = 0; i < 8; i++)
		last[tail - 1 - i] = (unsigned char)(s->len * 8 >> (8 * i));
	for (size_t i = 0; i < tail; i += 64)
		block(s->h, last + i);
	for (unsigned i = 0; i < 8; i += 2)
		hex_u64((uint64_t)s->h[i] << 32 | s->h[i + 1], ret_hex + 8 * i);
	ret_hex[64] = '\0';
}

struct str sha256_hex(struct arena *arena, struct str bytes)
{
	char *hex = arena_alloc_raw(arena, 65);
	struct sha256 s;

	sha256_begin(&s);
	sha256_add(&s, bytes);
	sha256_end(&s, hex);
	return str_n(hex, 64);
}
