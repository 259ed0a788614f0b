/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where earlier bytes lie. A small write has them in its own record; everything else is a blob, named by the hash of
 * its content, so that equal contents are kept once. What an append was made on needs no copy at all: it is the
 * beginning of what came after.
 */
#include "base/clock.h"
#include "base/hash.h"
#include "base/limits.h"
#include "store/revisions/layer.h"

#define PIECE_MAX (8 * MIB) /* contents up to this are handled in memory */

void content_hash(struct str bytes, uint64_t ret_hash[2])
{
	hash_u128(bytes, ret_hash);
}

struct wpath content_blob_path(struct arena *arena, const uint64_t hash[2])
{
	char hex[32];

	hex_u64(hash[0], hex);
	hex_u64(hash[1], hex + 16);
	return (struct wpath){arena_printf(arena, "blobs/%.2s/%.30s", hex, hex + 2)};
}

static bool exists_already(int r)
{
	return r == -ERR_EXISTS;
}

/* A blob that nothing refers to goes away when it is old (retain.c). So one that is found again, and will be referred
   to only by the next record, is relied on when it is young, and else written anew. */
static struct store_cond unless_young(struct revisions *rv, struct ctx *ctx, struct wpath blob)
{
	struct store_stat stat;
	struct err ignored;

	if (store_stat(rv->meta, ctx, blob, &stat, &ignored) == 0 &&
	    clock_real_ns() - stat.mtime_ns < REV_BLOB_GRACE_NS / 2)
		return (struct store_cond){.kind = STORE_ABSENT};
	return (struct store_cond){0};
}

int content_keep_bytes(struct revisions *rv, struct ctx *ctx, struct str bytes, struct rev_state *state,
		       struct err *err)
{
	struct store_cond absent = {.kind = STORE_ABSENT};
	struct wpath blob;
	int r;

	content_hash(bytes, state->hash);
	blob = content_blob_path(ctx->arena, state->hash);
	r = store_write(rv->meta, ctx, blob, bytes, absent, NULL, err);
	if (r == 0)
		rv->blob_bytes += bytes.len;
	else if (exists_already(r))
		r = store_write(rv->meta, ctx, blob, bytes, unless_young(rv, ctx, blob), NULL, err);
	if (r && !exists_already(r))
		return r;
	state->exists = true;
	state->size = bytes.len;
	state->where = REV_BLOB;
	state->held_by = 0;
	return 0;
}

int content_count(struct revisions *rv, struct ctx *ctx, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct store_list_req req = {.recursive = true, .limit = STORE_PAGE_MAX};
	struct store_page page;
	struct ctx c = *ctx;
	uint64_t bytes = 0;

	c.arena = arena;
	do {
		int r = store_list(rv->meta, &c, (struct wpath){STR("blobs")}, &req, &page, err);

		if (r)
			return r == -ERR_NOT_FOUND ? 0 : r;
		for (size_t i = 0; i < page.count; i++)
			bytes += page.entries[i].stat.size;
		req.after = page.next;
	} while (page.next.ptr);
	rv->blob_bytes = bytes;
	return 0;
}

struct hashing {
	struct hash_stream *hash;
	const struct source *from; /* hashes what passes */
	uint64_t size;
};

static int hashing_push(void *arg, const void *bytes, size_t len, struct err *err)
{
	struct hashing *h = arg;

	(void)err;
	hash_stream_add(h->hash, str_n(bytes, len));
	h->size += len;
	return 0;
}

static int hashing_pull(void *arg, void *buf, size_t cap, size_t *ret_len, struct err *err)
{
	struct hashing *h = arg;
	int r = h->from->pull(h->from->arg, buf, cap, ret_len, err);

	if (r == 0)
		hashing_push(h, buf, *ret_len, err);
	return r;
}

int content_hash_file(struct store *store, struct ctx *ctx, struct wpath path, uint64_t ret_hash[2],
		      struct store_stat *ret_stat, struct err *err)
{
	struct hashing h = {.hash = hash_stream_new()};
	struct sink sink = {.push = hashing_push, .arg = &h};
	struct store_call read = {
		.op = STORE_OP_READ, .path = path, .range = STORE_WHOLE, .sink = &sink, .ret_stat = ret_stat};
	int r = store_forward(store, ctx, &read, err);

	hash_stream_end(h.hash, ret_hash);
	return r;
}

/* The name is the hash, and the hash is known at the end: so it is written under a name of its own and then moved. */
int content_keep_stream(struct revisions *rv, struct ctx *ctx, const struct source *source, struct rev_state *state,
			struct err *err)
{
	struct hashing h = {.hash = hash_stream_new(), .from = source};
	struct source hashed = {.pull = hashing_pull, .arg = &h};
	struct wpath tmp = {arena_printf(ctx->arena, "blobs/new-%016llx", (unsigned long long)random_u64())};
	struct store_cond any = {0}, absent = {.kind = STORE_ABSENT};
	struct wpath blob;
	bool was_there;
	int r = store_write_stream(rv->meta, ctx, tmp, &hashed, any, NULL, err);

	hash_stream_end(h.hash, state->hash);
	if (r)
		return r;
	blob = content_blob_path(ctx->arena, state->hash);
	r = store_move(rv->meta, ctx, tmp, blob, any, absent, NULL, err);
	was_there = exists_already(r);
	if (was_there)
		r = store_move(rv->meta, ctx, tmp, blob, any, unless_young(rv, ctx, blob), NULL, err);
	if (r) {
		struct err ignored;

		store_remove(rv->meta, ctx, tmp, false, any, NULL, &ignored);
		if (!exists_already(r))
			return r;
	} else if (!was_there) {
		rv->blob_bytes += h.size;
	}
	state->exists = true;
	state->size = h.size;
	state->where = REV_BLOB;
	state->held_by = 0;
	return 0;
}

/* Ranged reads of a file in a store, as a source; the version must stay the same. */
struct file_source {
	struct store *store;
	struct ctx *ctx;
	struct wpath path;
	struct str version;
	uint64_t offset, end;
};

struct piece {
	char *ptr;
	size_t len, cap;
};

static int piece_push(void *arg, const void *bytes, size_t len, struct err *err)
{
	struct piece *p = arg;

	if (len > p->cap - p->len)
		return err_set(err, ERR_INTERNAL, "a read gave more bytes than its range holds");
	memcpy(p->ptr + p->len, bytes, len);
	p->len += len;
	return 0;
}

static int file_pull(void *arg, void *buf, size_t cap, size_t *ret_len, struct err *err)
{
	struct file_source *f = arg;
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = *f->ctx;
	struct piece piece = {.ptr = buf, .cap = cap < f->end - f->offset ? cap : (size_t)(f->end - f->offset)};
	struct sink sink = {.push = piece_push, .arg = &piece};
	struct store_stat stat;
	struct store_call read = {.op = STORE_OP_READ,
				  .path = f->path,
				  .range = {f->offset, piece.cap},
				  .sink = &sink,
				  .ret_stat = &stat};
	int r;

	ctx.arena = arena;
	*ret_len = 0;
	if (piece.cap == 0)
		return 0;
	r = store_forward(f->store, &ctx, &read, err);
	if (r)
		return r;
	if (f->version.len && !str_eq(stat.version, f->version))
		return err_set(err, ERR_CONFLICT, "\"%.*s\" changed while it was read", STR_ARG(f->path.s));
	f->offset += piece.len;
	*ret_len = piece.len;
	return 0;
}

static int file_rewind(void *arg, struct err *err)
{
	(void)err;
	((struct file_source *)arg)->offset = 0;
	return 0;
}

static struct source file_source(struct store *store, struct ctx *ctx, struct wpath path, struct str version,
				 uint64_t size)
{
	struct file_source *f = ARENA_NEW(ctx->arena, struct file_source);

	*f = (struct file_source){.store = store, .ctx = ctx, .path = path, .version = version, .end = size};
	return (struct source){.pull = file_pull, .rewind = file_rewind, .arg = f};
}

int content_keep_file(struct revisions *rv, struct ctx *ctx, struct wpath path, struct rev_state *state,
		      struct err *err)
{
	struct store_stat stat;
	struct store_call get = {.op = STORE_OP_STAT, .path = path, .ret_stat = &stat};
	struct source source;
	int r = store_forward(rv->base.inner, ctx, &get, err);

	if (r)
		return r;
	source = file_source(rv->base.inner, ctx, path, stat.version, UINT64_MAX);
	if (stat.size <= PIECE_MAX) { /* one blob write instead of a write and a move */
		char *bytes = arena_alloc_raw(ctx->arena, (size_t)stat.size + 1);
		size_t len = 0, n = 1;

		while (r == 0 && n && len <= stat.size) {
			r = source.pull(source.arg, bytes + len, (size_t)stat.size + 1 - len, &n, err);
			len += n;
		}
		if (r == 0)
			r = content_keep_bytes(rv, ctx, str_n(bytes, len), state, err);
	} else {
		r = content_keep_stream(rv, ctx, &source, state, err);
	}
	state->version = stat.version;
	return r;
}

static int read_blob(struct revisions *rv, struct ctx *ctx, const struct rev_state *state, struct store_range range,
		     const struct sink *sink, struct err *err)
{
	return store_read_stream(rv->meta, ctx, content_blob_path(ctx->arena, state->hash), range, sink, NULL, err);
}

static int push_range(struct str data, struct store_range range, const struct sink *sink, struct err *err)
{
	data = str_from(data, range.offset < data.len ? (size_t)range.offset : data.len);
	data = str_first(data, range.length < data.len ? (size_t)range.length : data.len);
	return sink->push(sink->arg, data.ptr, data.len, err);
}

static int not_kept(const struct rev_record *record, struct err *err)
{
	return err_set(err, ERR_NOT_FOUND, "the content of \"%.*s\" around revision %llu is not kept any more",
		       STR_ARG(record->r.path.s), (unsigned long long)record->r.number);
}

static int read_logged(struct revisions *rv, struct ctx *ctx, uint64_t number, struct store_range range,
		       const struct sink *sink, struct err *err)
{
	struct rev_record *holder;
	struct str data;
	int r;

	revlog_lock(rv->log);
	holder = revlog_at(rv->log, number);
	revlog_unlock(rv->log);
	r = holder ? revlog_read_data(rv->log, ctx, holder, &data, err)
		   : revlog_read_dropped(rv->log, ctx, number, &data, err);
	return r ? r : push_range(data, range, sink, err);
}

static int read_state(struct revisions *rv, struct ctx *ctx, const struct rev_record *record,
		      const struct rev_state *state, struct store_range range, const struct sink *sink, struct err *err)
{
	int r = -ERR_NOT_FOUND;

	if (state->where == REV_LOG)
		r = read_logged(rv, ctx, state->held_by ? state->held_by : record->r.number, range, sink, err);
	if (state->where == REV_LOG && r != -ERR_NOT_FOUND)
		return r;
	if (state->where == REV_BLOB || state->where == REV_LOG)
		return read_blob(rv, ctx, state, range, sink, err);
	return not_kept(record, err);
}

static struct store_range within(struct store_range range, uint64_t size)
{
	if (range.offset > size)
		range.offset = size;
	if (range.length > size - range.offset)
		range.length = size - range.offset;
	return range;
}

int content_read_after(struct revisions *rv, struct ctx *ctx, const struct rev_record *record, struct store_range range,
		       const struct sink *sink, struct err *err)
{
	struct store_stat stat;
	struct store_call read = {.op = STORE_OP_READ, .path = record->r.path, .sink = sink, .ret_stat = &stat};
	const struct rev_record *next;

	range = within(range, record->r.after.size);
	if (record->r.after.where != REV_PREFIX)
		return read_state(rv, ctx, record, &record->r.after, range, sink, err);
	revlog_lock(rv->log);
	next = record->next;
	while (next && next->r.op == REV_APPEND && next->next)
		next = next->next; /* appends only: the last one's file begins with this content */
	revlog_unlock(rv->log);
	if (next && next->r.op != REV_APPEND)
		return read_state(rv, ctx, next, &next->r.before, range, sink, err);
	read.range = range;
	return store_forward(rv->base.inner, ctx, &read, err);
}

int content_read_before(struct revisions *rv, struct ctx *ctx, const struct rev_record *record,
			struct store_range range, const struct sink *sink, struct err *err)
{
	range = within(range, record->r.before.size);
	if (record->r.before.where != REV_PREFIX)
		return read_state(rv, ctx, record, &record->r.before, range, sink, err);
	return content_read_after(rv, ctx, record, range, sink, err); /* an append: the same beginning */
}

int content_source(struct revisions *rv, struct ctx *ctx, const struct rev_record *record,
		   const struct rev_state *state, struct source *ret_source, struct err *err)
{
	const struct rev_record *holder = record;
	struct str data;
	int r;

	if (state->where == REV_LOG && state->held_by) {
		revlog_lock(rv->log);
		holder = revlog_at(rv->log, state->held_by);
		revlog_unlock(rv->log);
	}
	if (state->where == REV_BLOB || (state->where == REV_LOG && !holder)) {
		*ret_source =
			file_source(rv->meta, ctx, content_blob_path(ctx->arena, state->hash), STR_NONE, state->size);
		return 0;
	}
	if (state->where != REV_LOG)
		return not_kept(record, err);
	r = revlog_read_data(rv->log, ctx, holder, &data, err);
	*ret_source = (struct source){.bytes = data};
	return r;
}
