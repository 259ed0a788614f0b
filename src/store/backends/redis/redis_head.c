/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The head of a file: what its string in Redis begins with. All fields have a fixed width, so that a script compares a
 * version by its place, an append changes the head in place, and one GET brings a file with its version. The
 * bytes up to the version are all that a simple write looks at.
 *
 *   at    bytes
 *   0     1      "0" all bytes follow the head; "1" the rest is in chunks
 *   1     8      the connection that wrote it
 *   9     48     version, padded with spaces
 *   57    16     size
 *   73    20     time of the last change in nanoseconds
 *   93    8      how many bytes follow the head
 *   101   48     what the chunks are named by, padded
 *
 * A hash with a field for each was rejected: it costs three times as much to write, and as much again to read.
 */
#include <stdio.h>

#include "store/backends/redis/redis.h"

#define AT_CONN    1
#define AT_VERSION (AT_CONN + RESP_CONN_NAME)
#define AT_SIZE    (AT_VERSION + REDIS_VERSION_MAX)
#define AT_TIME    (AT_SIZE + 16)
#define AT_INLINED (AT_TIME + 20)
#define AT_GEN     (AT_INLINED + 8)
_Static_assert(AT_GEN + REDIS_VERSION_MAX == REDIS_HEAD, "the head is as long as its fields");

/* Digits, padded with zeros in front. */
static void put_number(char *at, size_t width, uint64_t n)
{
	while (width--) {
		at[width] = (char)('0' + n % 10);
		n /= 10;
	}
}

static bool take_number(const char *at, size_t width, uint64_t *ret)
{
	uint64_t n = 0;

	for (size_t i = 0; i < width; i++) {
		if (at[i] < '0' || at[i] > '9' || n > (uint64_t)INT64_MAX / 10 - 1)
			return false;
		n = n * 10 + (uint64_t)(at[i] - '0');
	}
	*ret = n;
	return true;
}

static void put_padded(char *at, struct str text)
{
	memset(at, ' ', REDIS_VERSION_MAX);
	if (text.len)
		memcpy(at, text.ptr, text.len);
}

static struct str take_padded(const char *at)
{
	size_t len = REDIS_VERSION_MAX;

	while (len && at[len - 1] == ' ')
		len--;
	return str_n(at, len);
}

bool redis_head_parse(struct str bytes, struct redis_file *ret)
{
	uint64_t mtime;

	if (bytes.len < REDIS_HEAD || !take_number(bytes.ptr + AT_SIZE, 16, &ret->size) ||
	    !take_number(bytes.ptr + AT_TIME, 20, &mtime) || !take_number(bytes.ptr + AT_INLINED, 8, &ret->inlined) ||
	    ret->inlined > ret->size)
		return false;
	ret->mtime_ns = (int64_t)mtime;
	ret->version = take_padded(bytes.ptr + AT_VERSION);
	ret->gen = take_padded(bytes.ptr + AT_GEN);
	return true;
}

struct store_stat redis_head_stat(const struct redis_file *file)
{
	return (struct store_stat){
		.kind = STORE_FILE, .size = file->size, .mtime_ns = file->mtime_ns, .version = file->version};
}

int redis_change_init(struct redis_change *ch, struct store_cond cond, struct str version, int64_t mtime_ns,
		      struct err *err)
{
	struct str want = cond.kind == STORE_VERSION ? cond.version : STR("");

	ch->joined = 0;
	ch->tail = ch->bytes_key = STR("");
	ch->simple_arg = STR("-");
	if (version.len > REDIS_VERSION_MAX)
		return err_set(err, ERR_INVALID, "a version of more than %d bytes", REDIS_VERSION_MAX);
	if (want.len > REDIS_VERSION_MAX) /* no file has that */
		want = STR("?");
	ch->head[0] = '0';
	memset(ch->head + AT_CONN, ' ', RESP_CONN_NAME);
	put_padded(ch->head + AT_VERSION, version);
	put_number(ch->head + AT_SIZE, 16, 0);
	put_number(ch->head + AT_TIME, 20, mtime_ns > 0 ? (uint64_t)mtime_ns : 0);
	put_number(ch->head + AT_INLINED, 8, 0);
	put_padded(ch->head + AT_GEN, STR(""));
	put_padded(ch->want, want);
	ch->want_arg = str_n(ch->want, sizeof(ch->want));
	return 0;
}

void redis_change_bytes(struct redis *rd, struct ctx *ctx, struct redis_change *ch, struct str version,
			struct str bytes, uint64_t staged_size)
{
	uint64_t size = staged_size ? staged_size : bytes.len;

	put_number(ch->head + AT_SIZE, 16, size);
	put_number(ch->head + AT_INLINED, 8, size < REDIS_INLINE ? size : REDIS_INLINE);
	ch->tail = bytes;
	if (size > REDIS_INLINE) {
		ch->head[0] = '1';
		put_padded(ch->head + AT_GEN, version);
	} else if (bytes.len >= REDIS_SEPARATE_MIN) {
		ch->bytes_key = redis_key(rd, ctx->arena, "c:", version);
	}
}

void redis_change_simple(struct redis_change *ch, struct store_cond cond)
{
	if (cond.kind == STORE_ABSENT || ch->head[0] != '0')
		return;
	ch->simple[0] = '0';
	memcpy(ch->simple + AT_VERSION, ch->want, REDIS_VERSION_MAX);
	ch->simple_arg = str_n(ch->simple, cond.kind == STORE_VERSION ? sizeof(ch->simple) : AT_VERSION);
}

void redis_change_stamp(struct redis_change *ch, const char *conn)
{
	memcpy(ch->head + AT_CONN, conn, RESP_CONN_NAME);
	memcpy(ch->simple + AT_CONN, conn, RESP_CONN_NAME);
}
