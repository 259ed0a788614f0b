/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Old files: text in Latin-1 (as Windows writes it, with its extra characters) and in UTF-16 with a byte order mark.
 * They are read as text, and only read: an edit works on bytes and keeps the encoding.
 */
#include "base/utf8.h"
#include "home/files/files.h"

/* What Windows-1252 has at 0x80 to 0x9f; 0: nothing. */
static const uint16_t windows[32] = {0x20ac, 0,      0x201a, 0x0192, 0x201e, 0x2026, 0x2020, 0x2021,
				     0x02c6, 0x2030, 0x0160, 0x2039, 0x0152, 0,      0x017d, 0,
				     0,      0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2013, 0x2014,
				     0x02dc, 0x2122, 0x0161, 0x203a, 0x0153, 0,      0x017e, 0x0178};

static void add_point(struct buf *out, uint32_t c)
{
	char bytes[UTF8_LEN_MAX];

	buf_add(out, str_n(bytes, utf8_put(bytes, c)));
}

/* No controls but those of text, and mostly ASCII: what a program wrote as data has more of the others. */
static bool looks_like_latin(struct str bytes)
{
	size_t high = 0;

	for (size_t i = 0; i < bytes.len; i++) {
		unsigned char c = (unsigned char)bytes.ptr[i];

		if (c == 0x7f || (c < 0x20 && !strchr("\t\n\r\f\033", c)) || c == 0 ||
		    (c >= 0x80 && c < 0xa0 && !windows[c - 0x80]))
			return false;
		high += c >= 0x80;
	}
	return high <= bytes.len / 3;
}

static uint32_t unit_at(struct str bytes, size_t i, bool big)
{
	unsigned char a = (unsigned char)bytes.ptr[i], b = (unsigned char)bytes.ptr[i + 1];

	return big ? (uint32_t)(a << 8 | b) : (uint32_t)(b << 8 | a);
}

/* After its mark. A surrogate without its other half, or a NUL, and it is not text. */
static bool add_utf16(struct buf *out, struct str bytes, bool big)
{
	for (size_t i = 0; i + 1 < bytes.len; i += 2) {
		uint32_t c = unit_at(bytes, i, big);

		if (c >= 0xD800 && c < 0xDC00 && i + 3 < bytes.len) {
			uint32_t low = unit_at(bytes, i + 2, big);

			if (low < 0xDC00 || low > 0xDFFF)
				return false;
			c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
			i += 2;
		} else if ((c >= 0xD800 && c <= 0xDFFF) || c == 0) {
			return false;
		}
		add_point(out, c);
	}
	return bytes.len % 2 == 0;
}

const char *foreign_text(struct arena *arena, struct str bytes, struct str *ret_text)
{
	bool little = str_starts(bytes, STR("\xff\xfe")), big = str_starts(bytes, STR("\xfe\xff"));
	struct buf out;

	buf_init(&out, arena, bytes.len * 3 + 1);
	if (little || big) {
		if (!add_utf16(&out, str_from(bytes, 2), big))
			return NULL;
		*ret_text = out.len ? buf_str(&out) : STR("");
		return "utf-16";
	}
	if (!bytes.len || !looks_like_latin(bytes))
		return NULL;
	for (size_t i = 0; i < bytes.len; i++) {
		unsigned char c = (unsigned char)bytes.ptr[i];

		add_point(&out, c >= 0x80 && c < 0xa0 ? windows[c - 0x80] : c);
	}
	*ret_text = buf_str(&out);
	return "latin-1";
}
