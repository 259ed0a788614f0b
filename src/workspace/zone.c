/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The offset of a zone from its TZif file. The C library knows only one zone per process, and setting it is not safe
 * while other threads ask for the time, so the file is read here: the second block of it (64-bit times), the last
 * change before the time that is asked for. Files in the short form end with the change before the rule that applies
 * from then on; after it, the offset of the last change is used, which is right except for summer time.
 */
#include "workspace/zone.h"

#include <fcntl.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/limits.h"

#define ZONES    "/usr/share/zoneinfo/"
#define HEAD     ((size_t)44)
#define ZONE_MAX (256 * KIB)

static uint32_t be32(const unsigned char *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static int64_t be64(const unsigned char *p)
{
	return (int64_t)((uint64_t)be32(p) << 32 | be32(p + 4));
}

struct counts {
	size_t isut, isstd, leap, times, types, chars;
};

static bool head_at(struct str file, size_t at, struct counts *ret)
{
	const unsigned char *p = (const unsigned char *)file.ptr + at + 20;

	if (at > file.len || file.len - at < HEAD || memcmp(file.ptr + at, "TZif", 4) != 0)
		return false;
	*ret = (struct counts){be32(p), be32(p + 4), be32(p + 8), be32(p + 12), be32(p + 16), be32(p + 20)};
	return ret->isut <= file.len && ret->isstd <= file.len && ret->leap <= file.len && ret->times <= file.len &&
	       ret->types && ret->types <= 256 && ret->chars <= file.len;
}

static size_t block_size(const struct counts *c, size_t time)
{
	return c->times * (time + 1) + c->types * 6 + c->chars + c->leap * (time + 4) + c->isstd + c->isut;
}

static int32_t offset_in(struct str file, int64_t seconds)
{
	struct counts c;
	size_t at = HEAD, n = 0, type;
	const unsigned char *p;

	if (!head_at(file, 0, &c) || file.ptr[4] < '2')
		return 0;
	at += block_size(&c, 4);
	if (!head_at(file, at, &c) || file.len - at - HEAD < block_size(&c, 8))
		return 0;
	p = (const unsigned char *)file.ptr + at + HEAD;
	while (n < c.times && be64(p + 8 * n) <= seconds)
		n++;
	type = n ? p[8 * c.times + n - 1] : 0;
	if (type >= c.types)
		return 0;
	return (int32_t)be32(p + 9 * c.times + 6 * type);
}

int32_t zone_offset(struct arena *arena, struct str zone, int64_t real_ns)
{
	const char *path = arena_printf(arena, ZONES "%.*s", STR_ARG(zone)).ptr;
	char *bytes;
	ssize_t n;

	if (!zone.len || str_is(zone, "UTC") || zone.ptr[0] == '/' || memchr(zone.ptr, '.', zone.len))
		return 0;
	FD_SCOPE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	if (fd < 0)
		return 0;
	bytes = arena_alloc_raw(arena, ZONE_MAX);
	n = read(fd, bytes, ZONE_MAX);
	return n > 0 ? offset_in(str_n(bytes, (size_t)n), real_ns / 1000000000) : 0;
}

struct str zone_date(struct arena *arena, struct str zone, int64_t real_ns)
{
	int64_t local = real_ns + (int64_t)zone_offset(arena, zone, real_ns) * 1000000000;

	return str_first(clock_format_utc(arena, local), 10);
}
