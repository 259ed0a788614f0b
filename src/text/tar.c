/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tar headers, to bytes and back. Reading takes the few fields that count and proves the rest by writing the header
 * again: a parser that knows one form cannot be talked into another (docs/decisions/0017).
 */
#include "text/tar.h"

#define NAME_LEN   100
#define OCTAL11    ((uint64_t)1 << 33) /* one more than eleven octal digits hold */
#define PAX_NAME   "PaxHeaders/entry"
#define CHECK_AT   148
#define CHECK_LEN  8
#define KIND_AT    156
#define SIZE_AT    124
#define TIME_AT    136
#define NUMBER_LEN 12

static void put_octal(char *at, size_t digits, uint64_t v)
{
	for (size_t i = digits; i--; v >>= 3)
		at[i] = (char)('0' + (v & 7));
}

static void put_block(struct buf *out, struct str name, uint64_t size, uint64_t time_s, char kind)
{
	char b[TAR_BLOCK] = {0};
	unsigned sum = 0;

	memcpy(b, name.ptr, name.len < NAME_LEN ? name.len : NAME_LEN);
	put_octal(b + 100, 7, 0644);
	put_octal(b + 108, 7, 0);
	put_octal(b + 116, 7, 0);
	put_octal(b + SIZE_AT, 11, size);
	put_octal(b + TIME_AT, 11, time_s);
	memset(b + CHECK_AT, ' ', CHECK_LEN);
	b[KIND_AT] = kind;
	memcpy(b + 257, "ustar\00000", 8);
	put_octal(b + 329, 7, 0);
	put_octal(b + 337, 7, 0);
	for (size_t i = 0; i < TAR_BLOCK; i++)
		sum += (unsigned char)b[i];
	put_octal(b + CHECK_AT, 6, sum);
	b[CHECK_AT + 6] = 0;
	buf_add(out, str_n(b, TAR_BLOCK));
}

/* "LEN key=value\n", where LEN counts itself. */
static void put_record(struct buf *out, const char *key, struct str value)
{
	size_t rest = strlen(key) + value.len + 3, len;

	for (size_t digits = 1;; digits++) {
		size_t max = 10;

		for (size_t i = 1; i < digits; i++)
			max *= 10;
		len = rest + digits;
		if (len < max)
			break;
	}
	buf_printf(out, "%zu %s=%.*s\n", len, key, STR_ARG(value));
}

static bool is_plain(struct str name)
{
	for (size_t i = 0; i < name.len; i++)
		if ((unsigned char)name.ptr[i] >= 0x80)
			return false;
	return name.len <= NAME_LEN;
}

static uint64_t time_of(const struct tar_entry *e)
{
	return e->time_s < 0 ? 0 : (uint64_t)e->time_s < OCTAL11 ? (uint64_t)e->time_s : OCTAL11 - 1;
}

size_t tar_padding(uint64_t size)
{
	return (size_t)(-size & (TAR_BLOCK - 1));
}

void tar_header(struct buf *out, const struct tar_entry *e)
{
	static const char zeros[TAR_BLOCK];
	char digits[24];
	struct buf pax;

	buf_init(&pax, NULL, TAR_HEADER_MAX);
	if (!is_plain(e->name))
		put_record(&pax, "path", e->name);
	if (e->size >= OCTAL11) {
		snprintf(digits, sizeof(digits), "%llu", (unsigned long long)e->size);
		put_record(&pax, "size", str_of(digits));
	}
	if (pax.len) {
		put_block(out, STR(PAX_NAME), pax.len, time_of(e), 'x');
		buf_add(out, buf_str(&pax));
		buf_add(out, str_n(zeros, tar_padding(pax.len)));
	}
	put_block(out, e->name, e->size < OCTAL11 ? e->size : 0, time_of(e), '0');
	buf_release(&pax);
}

/* Eleven octal digits; false when there is anything else. */
static bool get_octal(const char *at, uint64_t *ret)
{
	*ret = 0;
	for (size_t i = 0; i < NUMBER_LEN - 1; i++) {
		if (at[i] < '0' || at[i] > '7')
			return false;
		*ret = *ret << 3 | (uint64_t)(at[i] - '0');
	}
	return true;
}

size_t tar_header_len(const char block[TAR_BLOCK])
{
	uint64_t size;

	if (block[KIND_AT] == '0')
		return TAR_BLOCK;
	if (block[KIND_AT] != 'x' || !get_octal(block + SIZE_AT, &size) || size == 0 ||
	    size > TAR_HEADER_MAX - 2 * TAR_BLOCK)
		return 0;
	return 2 * TAR_BLOCK + (size_t)size + tar_padding(size);
}

/* The value of the record that comes next, if it is of `key`. */
static bool get_record(struct str *rest, const char *key, struct str *ret)
{
	struct str len, line;
	int64_t n;

	line = *rest;
	if (!str_cut(&line, ' ', &len) || !str_to_i64(len, &n) || n <= (int64_t)len.len + 1 || (uint64_t)n > rest->len)
		return false;
	line = str_first(line, (size_t)n - len.len - 1);
	if (!str_starts(line, str_of(key)) || line.len < strlen(key) + 2 || line.ptr[strlen(key)] != '=')
		return false;
	*ret = str_from(str_first(line, line.len - 1), strlen(key) + 1);
	*rest = str_from(*rest, (size_t)n);
	return true;
}

bool tar_parse(struct arena *arena, struct str header, struct tar_entry *ret)
{
	const char *block = header.ptr + header.len - TAR_BLOCK;
	struct tar_entry e = {0};
	struct str pax, value;
	uint64_t number;
	struct buf again;
	int64_t size;

	if (header.len < TAR_BLOCK || tar_header_len(header.ptr) != header.len ||
	    !get_octal(block + SIZE_AT, &e.size) || !get_octal(block + TIME_AT, &number))
		return false;
	e.time_s = (int64_t)number;
	e.name = str_n(block, strnlen(block, NAME_LEN));
	if (header.len > TAR_BLOCK) {
		if (!get_octal(header.ptr + SIZE_AT, &number))
			return false;
		pax = str_n(header.ptr + TAR_BLOCK, (size_t)number);
		if (get_record(&pax, "path", &value))
			e.name = value;
		if (get_record(&pax, "size", &value)) {
			if (!str_to_i64(value, &size) || size < 0)
				return false;
			e.size = (uint64_t)size;
		}
	}
	buf_init(&again, arena, 2 * TAR_HEADER_MAX);
	tar_header(&again, &e);
	if (!str_eq(buf_str(&again), header))
		return false;
	*ret = e;
	ret->name = arena_str(arena, e.name);
	return true;
}
