/* SPDX-License-Identifier: Apache-2.0 */
#include "text/base64.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_write(struct buf *out, struct str bytes)
{
	const unsigned char *p = (const unsigned char *)bytes.ptr;
	size_t len = (bytes.len + 2) / 3 * 4;
	char *to = buf_reserve(out, len);

	if (!to)
		return;
	for (size_t i = 0; i < bytes.len; i += 3) {
		size_t left = bytes.len - i;
		unsigned v =
			(unsigned)p[i] << 16 | (left > 1 ? (unsigned)p[i + 1] << 8 : 0) | (left > 2 ? p[i + 2] : 0);

		*to++ = alphabet[v >> 18];
		*to++ = alphabet[v >> 12 & 63];
		*to++ = left > 1 ? alphabet[v >> 6 & 63] : '=';
		*to++ = left > 2 ? alphabet[v & 63] : '=';
	}
	out->len += len;
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

bool base64_parse(struct arena *arena, struct str text, struct str *ret_bytes)
{
	size_t pad =
		text.len && text.ptr[text.len - 1] == '=' ? 1 + (text.len > 1 && text.ptr[text.len - 2] == '=') : 0;
	char *out = arena_alloc_raw(arena, text.len / 4 * 3 + 1);
	size_t n = 0;

	if (text.len % 4)
		return false;
	for (size_t i = 0; i < text.len; i += 4) {
		size_t keep = i + 4 == text.len ? 4 - pad : 4;
		unsigned v = 0;

		for (size_t j = 0; j < 4; j++) {
			int d = j < keep ? digit(text.ptr[i + j]) : 0;

			if (d < 0)
				return false;
			v = v << 6 | (unsigned)d;
		}
		if ((keep == 3 && v & 0xFF) || (keep == 2 && v & 0xFFFF))
			return false;
		out[n++] = (char)(v >> 16);
		if (keep > 2)
			out[n++] = (char)(v >> 8 & 0xFF);
		if (keep > 3)
			out[n++] = (char)(v & 0xFF);
	}
	*ret_bytes = str_n(out, n);
	return true;
}
