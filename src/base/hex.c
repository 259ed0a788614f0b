/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hex.h"

static const char digits[] = "0123456789abcdef";

void hex_u64(uint64_t v, char ret_hex[16])
{
	for (int i = 15; i >= 0; i--) {
		ret_hex[i] = digits[v & 15];
		v >>= 4;
	}
}

void hex_bytes(const uint8_t *bytes, size_t len, char *ret_hex)
{
	for (size_t i = 0; i < len; i++) {
		ret_hex[2 * i] = digits[bytes[i] >> 4];
		ret_hex[2 * i + 1] = digits[bytes[i] & 15];
	}
}

int percent_byte(struct str text, size_t at)
{
	int high = at + 2 < text.len && text.ptr[at] == '%' ? hex_digit(text.ptr[at + 1]) : -1;
	int low = high >= 0 ? hex_digit(text.ptr[at + 2]) : -1;

	return low < 0 ? -1 : high * 16 + low;
}

struct str percent_decode(struct arena *arena, struct str text)
{
	char *out = arena_alloc_raw(arena, text.len + 1);
	size_t n = 0;

	for (size_t i = 0; i < text.len; i++) {
		int byte = percent_byte(text, i);

		if (text.ptr[i] == '%' && byte < 0)
			return STR_NONE;
		out[n++] = byte < 0 ? text.ptr[i] : (char)byte;
		i += byte < 0 ? 0 : 2;
	}
	out[n] = '\0';
	return str_n(out, n);
}
