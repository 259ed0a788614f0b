/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Zip headers, to bytes. Contents are stored as they are: what agents keep is small text or is compressed already, and
 * a compressor would cost a library and more time than the network takes.
 */
#include "text/zip.h"

#include <pthread.h>
#include <time.h>

#define VERSION_PLAIN 20
#define VERSION_64    45
#define FLAGS         0x0808u /* sizes follow the bytes; the name is UTF-8 */
#define MADE_BY_UNIX  (3u << 8)
#define MODE_FILE     (0100644u << 16)
#define MAX32         UINT32_MAX
#define MAX16         UINT16_MAX

static uint32_t table[8][256];

static void make_table(void)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t c = i;

		for (int bit = 0; bit < 8; bit++)
			c = (c >> 1) ^ (c & 1 ? 0xEDB88320u : 0);
		table[0][i] = c;
	}
	for (uint32_t i = 0; i < 256; i++)
		for (int slice = 1; slice < 8; slice++)
			table[slice][i] = (table[slice - 1][i] >> 8) ^ table[0][table[slice - 1][i] & 255];
}

static uint32_t load32(const unsigned char *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

uint32_t zip_crc(uint32_t crc, struct str bytes)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	const unsigned char *p = (const unsigned char *)bytes.ptr;
	size_t left = bytes.len;

	pthread_once(&once, make_table);
	crc = ~crc;
	for (; left >= 8; left -= 8, p += 8) {
		uint32_t a = crc ^ load32(p), b = load32(p + 4);

		crc = table[7][a & 255] ^ table[6][a >> 8 & 255] ^ table[5][a >> 16 & 255] ^ table[4][a >> 24] ^
		      table[3][b & 255] ^ table[2][b >> 8 & 255] ^ table[1][b >> 16 & 255] ^ table[0][b >> 24];
	}
	for (; left; left--, p++)
		crc = crc >> 8 ^ table[0][(crc ^ *p) & 255];
	return ~crc;
}

static void put(struct buf *out, uint64_t v, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		buf_char(out, (char)(v >> 8 * i & 255));
}

static bool is_large(const struct zip_entry *e)
{
	return e->size >= MAX32;
}

/* Date and time of MS-DOS, which begin in 1980. */
static uint32_t dos_time(int64_t time_s)
{
	time_t t = (time_t)time_s;
	struct tm tm;

	if (!gmtime_r(&t, &tm) || tm.tm_year < 80 || tm.tm_year > 207)
		return (1u << 5 | 1u) << 16;
	return (uint32_t)((tm.tm_year - 80) << 9 | (tm.tm_mon + 1) << 5 | tm.tm_mday) << 16 |
	       (uint32_t)(tm.tm_hour << 11 | tm.tm_min << 5 | tm.tm_sec / 2);
}

/* Version, flags, method and time: the same in both headers. */
static void put_common(struct buf *out, const struct zip_entry *e, bool is_64)
{
	put(out, is_64 ? VERSION_64 : VERSION_PLAIN, 2);
	put(out, FLAGS, 2);
	put(out, 0, 2); /* stored */
	put(out, dos_time(e->time_s), 4);
}

void zip_local(struct buf *out, const struct zip_entry *e)
{
	bool is_64 = is_large(e);

	buf_lit(out, "PK\3\4");
	put_common(out, e, is_64);
	put(out, 0, 4); /* the checksum and the sizes come later */
	put(out, is_64 ? MAX32 : 0, 4);
	put(out, is_64 ? MAX32 : 0, 4);
	put(out, e->name.len, 2);
	put(out, is_64 ? 20 : 0, 2);
	buf_add(out, e->name);
	if (!is_64)
		return;
	put(out, 1, 2);
	put(out, 16, 2);
	put(out, 0, 8);
	put(out, 0, 8);
}

void zip_descriptor(struct buf *out, const struct zip_entry *e)
{
	unsigned width = is_large(e) ? 8 : 4;

	buf_lit(out, "PK\7\10");
	put(out, e->crc, 4);
	put(out, e->size, width);
	put(out, e->size, width);
}

void zip_central(struct buf *out, const struct zip_entry *e)
{
	bool far = e->offset >= MAX32, large = is_large(e);
	unsigned extra = (large ? 16u : 0) + (far ? 8u : 0);

	buf_lit(out, "PK\1\2");
	put(out, MADE_BY_UNIX | (extra ? VERSION_64 : VERSION_PLAIN), 2);
	put_common(out, e, extra != 0);
	put(out, e->crc, 4);
	put(out, large ? MAX32 : e->size, 4);
	put(out, large ? MAX32 : e->size, 4);
	put(out, e->name.len, 2);
	put(out, extra ? extra + 4 : 0, 2);
	put(out, 0, 6); /* no comment, the first disk, binary */
	put(out, MODE_FILE, 4);
	put(out, far ? MAX32 : e->offset, 4);
	buf_add(out, e->name);
	if (!extra)
		return;
	put(out, 1, 2);
	put(out, extra, 2);
	if (large) {
		put(out, e->size, 8);
		put(out, e->size, 8);
	}
	if (far)
		put(out, e->offset, 8);
}

void zip_end(struct buf *out, uint64_t count, uint64_t size, uint64_t offset)
{
	if (count >= MAX16 || size >= MAX32 || offset >= MAX32) {
		buf_lit(out, "PK\6\6");
		put(out, 44, 8); /* bytes that follow */
		put(out, MADE_BY_UNIX | VERSION_64, 2);
		put(out, VERSION_64, 2);
		put(out, 0, 8); /* disks */
		put(out, count, 8);
		put(out, count, 8);
		put(out, size, 8);
		put(out, offset, 8);
		buf_lit(out, "PK\6\7");
		put(out, 0, 4);
		put(out, offset + size, 8);
		put(out, 1, 4);
	}
	buf_lit(out, "PK\5\6");
	put(out, 0, 4);
	put(out, count < MAX16 ? count : MAX16, 2);
	put(out, count < MAX16 ? count : MAX16, 2);
	put(out, size < MAX32 ? size : MAX32, 4);
	put(out, offset < MAX32 ? offset : MAX32, 4);
	put(out, 0, 2);
}
