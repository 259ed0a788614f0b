/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of files on their way in and out. A file of up to 256 KiB stands in its hash, and so comes with its version
 * in one round trip. What is larger goes on in chunks under a name that no other content ever has; a reader who knows
 * that name and the size reads the file as it was, however often it is replaced meanwhile.
 */
#include <stdio.h>

#include "store/backends/redis.h"

#define READ_AHEAD      2
#define READ_TRIES      3
#define META_FIELDS     5 /* version, size, time, inline length, generation; then the inline bytes */
#define GETRANGE_ANSWER (REDIS_CHUNK + 64)

/* In. */

/* As much as the source gives, up to `cap`; *ret_end when there is no more. */
static int pull_full(struct ctx *ctx, const struct source *source, char *buf, size_t cap, size_t *ret_len,
		     bool *ret_end, struct err *err)
{
	size_t have = 0;

	*ret_end = false;
	while (have < cap) {
		size_t n = 0;
		int r = ctx_check(ctx, err);

		if (r == 0)
			r = source->pull(source->arg, buf + have, cap - have, &n, err);
		if (r)
			return r;
		if (n == 0) {
			*ret_end = true;
			break;
		}
		have += n;
	}
	*ret_len = have;
	return 0;
}

static int stage(struct redis *rd, struct ctx *ctx, struct redis_bytes *b, bool append, struct str piece,
		 struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx own = *ctx;
	struct str gen = append ? arena_printf(arena, "%.*s+", STR_ARG(b->version)) : b->version;
	struct str args[] = {STR("SET"), redis_chunk_key(rd, arena, gen, b->pieces), piece, STR("PX"),
			     STR(REDIS_STAGED_MS)};
	struct resp_value v;
	int r;

	own.arena = arena;
	b->pieces++;
	r = redis_command(rd, &own, args, 5, REDIS_META_MAX, &v, err);
	return r;
}

/* From the bytes in memory, as if they were a stream. */
struct from_memory {
	struct str rest;
};

static int memory_pull(void *arg, void *buf, size_t cap, size_t *ret_len, struct err *err)
{
	struct from_memory *m = arg;
	size_t n = m->rest.len < cap ? m->rest.len : cap;

	(void)err;
	if (n)
		memcpy(buf, m->rest.ptr, n);
	m->rest = str_from(m->rest, n);
	*ret_len = n;
	return 0;
}

static int stage_all(struct redis *rd, struct ctx *ctx, const struct source *source, bool append, struct redis_bytes *b,
		     struct str first, struct err *err)
{
	size_t head = append ? 0 : REDIS_INLINE, len;
	uint64_t size = first.len;
	char *buf = (char *)first.ptr + head;
	bool end;
	int r = stage(rd, ctx, b, append, str_from(first, head), err);

	do {
		if (r == 0)
			r = pull_full(ctx, source, buf, REDIS_CHUNK, &len, &end, err);
		if (r == 0 && len)
			r = stage(rd, ctx, b, append, str_n(buf, len), err);
		if (r)
			return r;
		size += len;
	} while (!end);
	b->bytes = str_first(first, head);
	b->staged = arena_printf(ctx->arena, "%llu", (unsigned long long)(append ? b->pieces : size));
	return 0;
}

int redis_take_in(struct redis *rd, struct ctx *ctx, const struct source *source, bool append, struct str version,
		  struct redis_bytes *ret, struct err *err)
{
	struct from_memory memory = {source->bytes};
	struct source own = {.pull = memory_pull, .arg = &memory};
	size_t cap = append ? REDIS_CHUNK : REDIS_INLINE + REDIS_CHUNK, len;
	char *buf;
	bool end;
	int r;

	*ret = (struct redis_bytes){.version = version, .staged = STR("")};
	if (!source->pull && source->bytes.len <= REDIS_ONE_STEP_MAX) {
		ret->bytes = source->bytes.ptr ? source->bytes : STR("");
		return 0;
	}
	buf = arena_alloc_raw(ctx->arena, cap + 1);
	if (!source->pull)
		source = &own;
	r = pull_full(ctx, source, buf, cap, &len, &end, err);
	if (r)
		return r;
	ret->bytes = str_n(buf, len);
	if (end)
		return 0;
	r = stage_all(rd, ctx, source, append, ret, str_n(buf, len), err);
	if (r)
		redis_take_back(rd, ctx, ret);
	return r;
}

/* As well as it goes: what stays expires. */
void redis_take_back(struct redis *rd, struct ctx *ctx, const struct redis_bytes *b)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx own = {.arena = arena, .deadline_ns = ctx->deadline_ns};
	struct resp_value v;
	struct err ignored;

	for (uint64_t i = 0; i < b->pieces; i++) {
		struct str args[] = {STR("UNLINK"), redis_chunk_key(rd, arena, b->version, i),
				     arena_printf(arena, "%.*sc:%.*s+:%llu", STR_ARG(rd->key_base), STR_ARG(b->version),
						  (unsigned long long)i)};

		if (redis_command(rd, &own, args, 3, REDIS_META_MAX, &v, &ignored))
			return;
	}
}

/* Out. */

struct reading {
	struct redis *rd;
	struct ctx *ctx;
	const struct sink *sink;
	char *direct; /* filled, then pushed at once; NULL: pushed as it comes */
	size_t filled;
};

static int deliver(struct reading *rg, struct str bytes, struct err *err)
{
	if (!rg->direct)
		return bytes.len ? rg->sink->push(rg->sink->arg, bytes.ptr, bytes.len, err) : 0;
	if (bytes.len)
		memcpy(rg->direct + rg->filled, bytes.ptr, bytes.len);
	rg->filled += bytes.len;
	return 0;
}

static void ask_range(struct reading *rg, struct resp_conn *conn, struct arena *arena, struct str gen, uint64_t at,
		      size_t len)
{
	uint64_t from = at % REDIS_CHUNK;
	struct str args[] = {STR("GETRANGE"), redis_chunk_key(rg->rd, arena, gen, at / REDIS_CHUNK),
			     arena_printf(arena, "%llu", (unsigned long long)from),
			     arena_printf(arena, "%llu", (unsigned long long)(from + len - 1))};

	resp_put(conn, args, 4);
}

static size_t piece_len(uint64_t at, uint64_t end)
{
	uint64_t room = REDIS_CHUNK - at % REDIS_CHUNK;

	return (size_t)(room < end - at ? room : end - at);
}

/* Reads on from *at while the connection holds, asking for a chunk ahead. A failure of the sink is final. */
static int read_some(struct reading *rg, struct resp_conn *conn, struct str gen, uint64_t *at, uint64_t end,
		     bool *ret_final, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	uint64_t asked = *at;
	unsigned ahead = 0;
	int r = 0;

	while (r == 0 && *at < end) {
		size_t len = piece_len(*at, end);
		struct resp_value v;

		for (; ahead < READ_AHEAD && asked < end; ahead++) {
			ask_range(rg, conn, arena, gen, asked, piece_len(asked, end));
			asked += piece_len(asked, end);
		}
		r = resp_send(conn, rg->ctx, err);
		if (r == 0)
			r = resp_get(conn, rg->ctx, arena, GETRANGE_ANSWER, 0, &v, err);
		if (r)
			return r;
		*ret_final = true;
		ahead--;
		if (v.type == RESP_ERROR)
			return resp_error(v.s, err);
		if (v.type != RESP_STR || v.s.len != len) {
			r = err_set(err, ERR_CONFLICT, "it was replaced while it was read; read again");
			err->retryable = true;
			return r;
		}
		r = deliver(rg, v.s, err);
		if (r == 0)
			*ret_final = false;
		*at += len;
		arena_reset(arena);
	}
	return r;
}

static int read_tail(struct reading *rg, struct str gen, uint64_t at, uint64_t end, struct err *err)
{
	unsigned failures = 0;

	for (;;) {
		uint64_t before = at;
		struct resp_conn *conn;
		bool final = false;
		int r = resp_take(rg->rd->client, rg->ctx, false, &conn, err);

		if (r)
			return r;
		r = read_some(rg, conn, gen, &at, end, &final, err);
		resp_give(rg->rd->client, conn);
		failures = at > before ? 1 : failures + 1;
		if (r == 0 || final || err->kind != ERR_UNAVAILABLE || failures >= READ_TRIES)
			return r;
	}
}

static int read_range(struct reading *rg, const struct resp_value *meta, struct store_range range, struct err *err)
{
	uint64_t size = redis_number(meta, 1), inlined = redis_number(meta, 3), from, end, in_head;
	struct str head = redis_item(meta, META_FIELDS);
	int r = 0;

	from = range.offset < size ? range.offset : size;
	end = range.length < size - from ? from + range.length : size;
	if (rg->sink->reserve && end - from <= SIZE_MAX / 2)
		rg->direct = rg->sink->reserve(rg->sink->arg, (size_t)(end - from));
	in_head = end < inlined ? end : inlined;
	if (from < in_head) {
		if (head.len != inlined)
			return err_set(err, ERR_CORRUPT, "Redis has %zu of the file's first %llu bytes", head.len,
				       (unsigned long long)inlined);
		r = deliver(rg, str_n(head.ptr + from, (size_t)(in_head - from)), err);
	}
	if (r == 0 && end > inlined && from < end)
		r = read_tail(rg, redis_item(meta, 4), from > inlined ? from - inlined : 0, end - inlined, err);
	if (r == 0 && rg->direct)
		r = rg->sink->push(rg->sink->arg, rg->direct, rg->filled, err);
	return r;
}

int redis_read(struct store *s, struct ctx *ctx, struct wpath path, struct store_range range, const struct sink *sink,
	       struct store_stat *ret_stat, struct err *err)
{
	struct redis *rd = redis_of(s);
	struct reading rg = {.rd = rd, .ctx = ctx, .sink = sink};
	struct str args[] = {
		STR("HMGET"), redis_key(rd, ctx->arena, "f:", path.s), STR("v"), STR("s"), STR("m"), STR("i"), STR("g"),
		STR("d")};
	struct resp_value meta;
	int64_t mtime = 0;
	int r = redis_command(rd, ctx, args, range.offset < REDIS_INLINE ? 8 : 7, REDIS_INLINE + REDIS_META_MAX, &meta,
			      err);

	if (r)
		return r;
	if (meta.type != RESP_ARRAY || redis_item(&meta, 0).len == 0)
		return redis_missing(rd, ctx, path, err);
	r = read_range(&rg, &meta, range, err);
	if (r)
		return r;
	str_to_i64(redis_item(&meta, 2), &mtime);
	*ret_stat = (struct store_stat){
		.kind = STORE_FILE, .size = redis_number(&meta, 1), .mtime_ns = mtime, .version = redis_item(&meta, 0)};
	return 0;
}
