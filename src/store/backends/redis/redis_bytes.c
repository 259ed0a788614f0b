/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of files on their way in and out. A file of up to 256 KiB is one string after its head, and so comes with
 * its version in one round trip, straight to where the caller wants it. A larger one continues in chunks under a name
 * that no other content ever has; a reader that knows that name and the size reads the file as it was, however often it
 * is replaced while being read.
 */
#include <stdio.h>

#include "store/backends/redis/redis.h"

#define READ_AHEAD      2
#define READ_TRIES      3
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
	b->size = size;
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
	struct store_range range;
	char *direct; /* filled, then pushed at once; NULL: pushed as it comes */
	size_t direct_cap, filled;
	bool reserved; /* asked for, if only to be told no */
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
			r = err_set(err, ERR_CONFLICT, "it was replaced while it was being read; read again");
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

/* What of the file is wanted. */
static void clip(struct store_range range, uint64_t size, uint64_t *ret_from, uint64_t *ret_end)
{
	uint64_t from = range.offset < size ? range.offset : size;

	*ret_from = from;
	*ret_end = range.length < size - from ? from + range.length : size;
}

static void reserve(struct reading *rg, uint64_t len)
{
	if (rg->direct && rg->direct_cap == len) /* by an answer whose connection broke */
		return;
	rg->direct = NULL;
	if (rg->sink->reserve && len <= SIZE_MAX / 2)
		rg->direct = rg->sink->reserve(rg->sink->arg, (size_t)len);
	rg->direct_cap = (size_t)len;
	rg->reserved = true;
}

/* The bytes after the head go straight to the sink's memory when all of them are wanted, from the first. */
static char *place_read(void *arg, const char *head, size_t rest)
{
	struct reading *rg = arg;
	struct redis_file file;
	uint64_t from, end;

	rg->filled = 0;
	rg->reserved = false;
	if (!redis_head_parse(str_n(head, REDIS_HEAD), &file) || file.inlined != rest)
		return NULL;
	clip(rg->range, file.size, &from, &end);
	if (from > 0 || end < rest || rest == 0)
		return NULL;
	reserve(rg, end);
	if (rg->direct)
		rg->filled = rest;
	return rg->direct;
}

static int read_range(struct reading *rg, const struct redis_file *file, struct str head, struct err *err)
{
	uint64_t inlined = file->inlined, from, end, in_head;
	int r = 0;

	clip(rg->range, file->size, &from, &end);
	if (!rg->reserved)
		reserve(rg, end - from);
	in_head = end < inlined ? end : inlined;
	if (from < in_head && rg->filled == 0) {
		if (head.len != inlined)
			return err_set(err, ERR_CORRUPT, "Redis has %zu of the file's first %llu bytes", head.len,
				       (unsigned long long)inlined);
		r = deliver(rg, str_n(head.ptr + from, (size_t)(in_head - from)), err);
	}
	if (r == 0 && end > inlined && from < end)
		r = read_tail(rg, file->gen, from > inlined ? from - inlined : 0, end - inlined, err);
	if (r == 0 && rg->direct)
		r = rg->sink->push(rg->sink->arg, rg->direct, rg->filled, err);
	return r;
}

int redis_read(struct store *s, struct ctx *ctx, struct wpath path, struct store_range range, const struct sink *sink,
	       struct store_stat *ret_stat, struct err *err)
{
	struct redis *rd = redis_of(s);
	struct reading rg = {.rd = rd, .ctx = ctx, .sink = sink, .range = range};
	struct resp_place place = {.head = REDIS_HEAD, .to = place_read, .arg = &rg};
	struct str args[] = {STR("GET"), redis_key(rd, ctx->arena, "f:", path.s), STR("0"), STR(REDIS_HEAD_END)};
	bool all = range.offset < REDIS_INLINE;
	struct redis_file file;
	struct resp_value v;
	int r;

	if (!all)
		args[0] = STR("GETRANGE");
	r = redis_command_placed(rd, ctx, args, all ? 2 : 4, REDIS_INLINE + REDIS_META_MAX, all ? &place : NULL, &v,
				 err);
	if (r)
		return r;
	if (v.type != RESP_STR || v.s.len == 0)
		return sink->skip_dirs ? store_may_be_dir(err) : redis_missing(rd, ctx, path, err);
	if (!redis_head_parse(v.s, &file))
		return redis_no_head(err);
	r = read_range(&rg, &file, str_from(v.s, REDIS_HEAD), err);
	if (r == 0)
		*ret_stat = redis_head_stat(&file);
	return r;
}
