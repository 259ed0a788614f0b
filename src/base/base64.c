/* SPDX-License-Identifier: Apache-2.0 */
/* Base64 with padding (RFC 4648, section 4): how bytes that are not text pass through JSON. */
#include "base/base64.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

struct str base64_encode(struct arena *arena, struct str bytes)
{
	const unsigned char *p = (const unsigned char *)bytes.ptr;
	char *out = arena_alloc_raw(arena, (bytes.len + 2) / 3 * 4 + 1), *o = out;

	for (size_t i = 0; i < bytes.len; i += 3) {
		size_t left = bytes.len - i;
		unsigned v =
			(unsigned)p[i] << 16 | (left > 1 ? (unsigned)p[i + 1] << 8 : 0) | (left > 2 ? p[i + 2] : 0);

		*o++ = alphabet[v >> 18];
		*o++ = alphabet[v >> 12 & 63];
		*o++ = left > 1 ? alphabet[v >> 6 & 63] : '=';
		*o++ = left > 2 ? alphabet[v & 63] : '=';
	}
	return str_n(out, (size_t)(o - out));
}

static int digit(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool base64_decode(struct arena *arena, struct str text, struct str *ret)
{
	size_t pad = str_ends(text, STR("==")) ? 2 : str_ends(text, STR("=")) ? 1 : 0;
	size_t digits = text.len - pad, len = 0;
	unsigned v = 0;
	char *out;

	if (text.len % 4)
		return false;
	out = arena_alloc_raw(arena, text.len / 4 * 3 + 1);
	for (size_t i = 0; i < digits; i++) {
		int d = digit(text.ptr[i]);

		if (d < 0)
			return false;
		v = v << 6 | (unsigned)d;
		if (i % 4 == 0)
			continue;
		out[len++] = (char)(v >> (6 - 2 * (i % 4)));
	}
	/* the bits after the last whole byte must be zero, so that each value has one encoding */
	if ((pad == 1 && (v & 3)) || (pad == 2 && (v & 15)))
		return false;
	*ret = str_n(out, len);
	return true;
}
