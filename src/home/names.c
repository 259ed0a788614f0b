/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of workspaces, and names of people as path elements.
 *
 * Whoever is called "a/b", "A_B", "con" or ".." must get a partition of his own, on every file system that a workspace
 * may be copied to. So a name is encoded, never cleaned: small letters, digits, '-', '_' and inner '.' stand for
 * themselves, every other byte is '~' and two hex digits. That can be read back, so two names cannot become one; it has
 * no capital letters, so a file system that ignores case cannot make them one either.
 *
 * What gets too long for a path element is cut, and "~~" and the SHA-256 of the whole follow ("~~" cannot come from the
 * rule above). A fast hash would not do: a tenant may choose his own name, and could choose one that collides.
 */
#include "base/limits.h"
#include "home/workspace.h"

#define PLAIN_MAX 200
#define CUT_AT    120

bool workspace_name_ok(struct str name)
{
	if (name.len < 2 || name.len > 64 || name.ptr[0] < 'a' || name.ptr[0] > 'z')
		return false;
	for (size_t i = 0; i < name.len; i++) {
		char c = name.ptr[i];

		if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-'))
			return false;
	}
	return true;
}

/* --- SHA-256 (FIPS 180-4) --- */

static const uint32_t sha_k[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t ror(uint32_t v, unsigned n)
{
	return v >> n | v << (32 - n);
}

static void sha_block(uint32_t h[8], const unsigned char *p)
{
	uint32_t w[64], s[8];

	for (int i = 0; i < 16; i++)
		w[i] = (uint32_t)p[i * 4] << 24 | (uint32_t)p[i * 4 + 1] << 16 | (uint32_t)p[i * 4 + 2] << 8 |
		       p[i * 4 + 3];
	for (int i = 16; i < 64; i++)
		w[i] = w[i - 16] + w[i - 7] + (ror(w[i - 15], 7) ^ ror(w[i - 15], 18) ^ w[i - 15] >> 3) +
		       (ror(w[i - 2], 17) ^ ror(w[i - 2], 19) ^ w[i - 2] >> 10);
	memcpy(s, h, sizeof s);
	for (int i = 0; i < 64; i++) {
		uint32_t a = s[7] + (ror(s[4], 6) ^ ror(s[4], 11) ^ ror(s[4], 25)) + ((s[4] & s[5]) ^ (~s[4] & s[6])) +
			     sha_k[i] + w[i];
		uint32_t b = (ror(s[0], 2) ^ ror(s[0], 13) ^ ror(s[0], 22)) +
			     ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));

		memmove(s + 1, s, 7 * sizeof *s);
		s[4] += a;
		s[0] = a + b;
	}
	for (int i = 0; i < 8; i++)
		h[i] += s[i];
}

static void sha256_hex(struct buf *out, struct str text)
{
	uint32_t h[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
			 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
	unsigned char tail[128] = {0};
	size_t whole = text.len / 64 * 64, rest = text.len - whole, end = rest < 56 ? 64 : 128;

	for (size_t i = 0; i < whole; i += 64)
		sha_block(h, (const unsigned char *)text.ptr + i);
	if (rest)
		memcpy(tail, text.ptr + whole, rest);
	tail[rest] = 0x80;
	for (size_t i = 0; i < 8; i++)
		tail[end - 1 - i] = (unsigned char)((uint64_t)text.len * 8 >> (8 * i));
	for (size_t i = 0; i < end; i += 64)
		sha_block(h, tail + i);
	for (int i = 0; i < 8; i++)
		buf_printf(out, "%08x", h[i]);
}

/* --- encoding --- */

/* Names that some systems keep for devices, also with an extension behind them. */
static bool is_device(struct str name)
{
	static const char *const devices[] = {"con", "prn", "aux", "nul"};
	struct str stem = str_first(name, str_find_char(name, '.'));

	for (size_t i = 0; i < sizeof devices / sizeof devices[0]; i++)
		if (str_is(stem, devices[i]))
			return true;
	return stem.len == 4 && (str_starts(stem, STR("com")) || str_starts(stem, STR("lpt"))) && stem.ptr[3] >= '0' &&
	       stem.ptr[3] <= '9';
}

static bool stands_for_itself(struct str name, size_t i)
{
	char c = name.ptr[i];

	if (c == '.')
		return i > 0 && i + 1 < name.len;
	if (i == 0 && is_device(name))
		return false;
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

struct str workspace_encode_name(struct arena *arena, struct str name)
{
	struct buf b;
	size_t cut = 0;

	if (name.len == 0)
		return STR("~");
	buf_init(&b, arena, PATH_NAME_MAX);
	for (size_t i = 0; i < name.len && b.len <= PLAIN_MAX; i++) {
		if (stands_for_itself(name, i))
			buf_char(&b, name.ptr[i]);
		else
			buf_printf(&b, "~%02x", (unsigned char)name.ptr[i]);
		if (b.len <= CUT_AT)
			cut = b.len;
	}
	if (b.len > PLAIN_MAX) {
		b.len = cut;
		buf_lit(&b, "~~");
		sha256_hex(&b, name);
	}
	return buf_str(&b);
}
