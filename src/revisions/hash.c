/* SPDX-License-Identifier: Apache-2.0 */
/* The hashes of contents: their text, their order, and checking a content against one. */
#include "base/hash.h"
#include "base/hex.h"
#include "base/sha256.h"
#include "revisions/revisions.h"

struct rev_hashing {
	struct rev_hash like;
	struct hash_stream *sum; /* for a checksum; NULL: SHA-256 */
	struct sha256 sha;
};

bool rev_hash_is_set(const struct rev_hash *h)
{
	return h->w[0] || h->w[1] || h->w[2] || h->w[3];
}

int rev_hash_cmp(const struct rev_hash *a, const struct rev_hash *b)
{
	for (int i = 0; i < 4; i++)
		if (a->w[i] != b->w[i])
			return a->w[i] < b->w[i] ? -1 : 1;
	return 0;
}

static int words(const struct rev_hash *h)
{
	return h->w[3] ? 4 : h->w[2] ? 3 : 2;
}

size_t rev_hash_hex(const struct rev_hash *h, char ret_hex[REV_HASH_DIGITS])
{
	int n = words(h);

	for (int i = 0; i < n; i++)
		hex_u64(h->w[i], ret_hex + (ptrdiff_t)16 * i);
	return (size_t)n * 16;
}

bool rev_hash_parse(struct str hex, struct rev_hash *ret)
{
	*ret = (struct rev_hash){0};
	if (hex.len == 0)
		return true;
	if (hex.len != 32 && hex.len != 48 && hex.len != 64)
		return false;
	for (size_t i = 0; i < hex.len; i++) {
		int digit = hex_digit(hex.ptr[i]);

		if (digit < 0 || (hex.ptr[i] >= 'A' && hex.ptr[i] <= 'F'))
			return false;
		ret->w[i / 16] = ret->w[i / 16] << 4 | (uint64_t)digit;
	}
	return true;
}

struct str rev_blob_name(struct arena *arena, const struct rev_hash *hash)
{
	char hex[REV_HASH_DIGITS];
	int len = (int)rev_hash_hex(hash, hex);

	return arena_printf(arena, "%.2s/%.*s", hex, len - 2, hex + 2);
}

bool rev_blob_hash(struct str name, struct rev_hash *ret)
{
	char hex[REV_HASH_DIGITS];

	if ((name.len != 49 && name.len != 65) || name.ptr[2] != '/')
		return false;
	memcpy(hex, name.ptr, 2);
	memcpy(hex + 2, name.ptr + 3, name.len - 3);
	return rev_hash_parse(str_n(hex, name.len - 1), ret) && rev_hash_is_set(ret);
}

struct rev_hashing *rev_hashing_begin(const struct rev_hash *like)
{
	struct rev_hashing *h = xcalloc(1, sizeof(*h));

	h->like = *like;
	if (words(like) < 4)
		h->sum = hash_stream_new();
	else
		sha256_begin(&h->sha);
	return h;
}

void rev_hashing_add(struct rev_hashing *h, struct str bytes)
{
	if (h->sum)
		hash_stream_add(h->sum, bytes);
	else
		sha256_add(&h->sha, bytes);
}

int rev_hashing_push(void *hashing, const void *bytes, size_t len, struct err *err)
{
	(void)err;
	rev_hashing_add(hashing, str_n(bytes, len));
	return 0;
}

bool rev_hashing_end(struct rev_hashing *h)
{
	struct rev_hash got = h->like;
	char hex[65];
	bool same;

	if (h->sum) {
		hash_stream_end(h->sum, got.w);
	} else {
		sha256_end(&h->sha, hex);
		rev_hash_parse(str_n(hex, 64), &got);
	}
	same = rev_hash_cmp(&got, &h->like) == 0;
	free(h);
	return same;
}
