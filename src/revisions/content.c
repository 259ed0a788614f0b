/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contents that history needs: how they are kept, found again and released.
 *
 * Every record has a state before and a state after its change, and `where` in a state says where its bytes are:
 *
 *  REV_LOG      in the line of a record. A write of up to REV_INLINE_MAX bytes costs no file of its own that way. The
 *               bytes are in this record or in the earlier one that wrote them (`held_by`). When retention drops that
 *               record, it first writes the bytes as a blob, so readers look in the log and then for the blob.
 *  REV_BLOB     in a blob: a file in meta whose name is the hash of its content, blobs/<2 digits>/<30 digits>. Equal
 *               contents are kept once, and a blob never changes.
 *  REV_PREFIX   nowhere of their own: the record is an append, and the file's earlier content is the beginning of its
 *               later one. Such a content is read from the file itself while that still begins with it, otherwise from
 *               the state that ended the run of appends, and failing that it is put together: the content before the
 *               first append, then the piece that each append added (struct chain).
 *  REV_NOWHERE  no longer kept, or the path did not exist.
 *
 * A blob is written before the record that refers to it, so a record in the log never refers to a blob that is still to
 * come. The hash of a stream is known only at its end, so a stream is written as blobs/new-<random> and then moved.
 *
 * No count of references is kept: the records are the references. Nothing in this file removes a blob. Retention
 * removes those that no kept record refers to (retain.c), and redaction those that must go (redact.c). Both spare a
 * blob without a record until it is older than a grace period, since its record may be about to be logged. So a writer
 * that finds its blob already there relies on it only if it is young, and otherwise writes it again, which makes it
 * young.
 *
 * Counting references was rejected: a process that is killed between blob and count would leave a wrong number, and
 * every writer of the same content would compete for it.
 */
#include "base/clock.h"
#include "base/hash.h"
#include "base/limits.h"
#include "revisions/layer.h"
#include "revisions/line.h"

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

bool content_blob_hash(struct str path, uint64_t ret[2])
{
	char hex[32];

	if (path.len != 39 || path.ptr[8] != '/')
		return false;
	memcpy(hex, path.ptr + 6, 2);
	memcpy(hex + 2, path.ptr + 9, 30);
	return hex_hash(str_n(hex, 32), ret);
}

static bool exists_already(int r)
{
	return r == -ERR_EXISTS;
}

/* Whether a blob exists, and whether it is young enough to stay until its record is logged (see above). A blob of the
   wrong size counts as old: it is what a power cut left, in a store that does not sync. */
enum found { FOUND_NONE, FOUND_YOUNG, FOUND_OLD };

static enum found look_for(struct revisions *rv, struct ctx *ctx, struct wpath blob, uint64_t size)
{
	struct store_stat stat;
	struct err ignored;

	if (store_stat(rv->meta, ctx, blob, &stat, &ignored))
		return FOUND_NONE;
	return stat.size == size && clock_real_ns() - stat.mtime_ns < REV_BLOB_GRACE_NS / 2 ? FOUND_YOUNG : FOUND_OLD;
}

static struct store_cond replace_unless_young(struct revisions *rv, struct ctx *ctx, struct wpath blob, uint64_t size)
{
	struct store_cond absent = {.kind = STORE_ABSENT}, any = {0};

	return look_for(rv, ctx, blob, size) == FOUND_YOUNG ? absent : any;
}

int content_keep_bytes(struct revisions *rv, struct ctx *ctx, struct str bytes, struct rev_state *state,
		       struct err *err)
{
	struct store_cond cond = {.kind = STORE_ABSENT};
	struct wpath blob;
	enum found found;
	int r = 0;

	content_hash(bytes, state->hash);
	blob = content_blob_path(ctx->arena, state->hash);
	/* Where requests are slow the blob is written without a look first. If it exists and is old, it is written
	   again below. */
	found = rv->journal ? FOUND_NONE : look_for(rv, ctx, blob, bytes.len);
	if (rv->journal) {
		r = store_write(rv->meta, ctx, blob, bytes, cond, NULL, err);
		if (r && !exists_already(r))
			return r;
		found = r ? look_for(rv, ctx, blob, bytes.len) : FOUND_YOUNG;
		rv->blob_bytes += r ? 0 : bytes.len;
		r = 0;
	}
	if (found == FOUND_OLD)
		cond = (struct store_cond){0};
	if (found != FOUND_YOUNG) /* a write that is refused would cost as much as one that is not */
		r = store_write(rv->meta, ctx, blob, bytes, cond, NULL, err);
	if (r && !exists_already(r))
		return r;
	if (r == 0 && found == FOUND_NONE)
		rv->blob_bytes += bytes.len;
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
	const struct source *from; /* what is read from it is hashed */
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
		r = store_move(rv->meta, ctx, tmp, blob, any, replace_unless_young(rv, ctx, blob, h.size), NULL, err);
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

/* A source that reads a file of a store range by range, and fails when the file's version changes. */
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
		return err_set(err, ERR_CONFLICT, ERR_PATH " changed while it was read", STR_ARG(f->path.s));
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
	return err_set(err, ERR_NOT_FOUND, "the content of " ERR_PATH " around revision %llu is no longer kept",
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
		r = read_blob(rv, ctx, state, range, sink, err);
	return r == -ERR_NOT_FOUND ? not_kept(record, err) : r;
}

static struct store_range clamp_range(struct store_range range, uint64_t size)
{
	if (range.offset > size)
		range.offset = size;
	if (range.length > size - range.offset)
		range.length = size - range.offset;
	return range;
}

/* Reads one piece of the file as it is now. The log is read again after the piece: a record is in the log before the
   bytes change, so if there is no newer record, the piece is the content that `last` left. */
static int read_now_piece(struct revisions *rv, struct ctx *ctx, struct wpath path, const struct rev_record *last,
			  struct piece *piece, uint64_t offset, bool *ret_changed, struct err *err)
{
	struct sink sink = {.push = piece_push, .arg = piece};
	struct store_stat stat;
	struct store_call read = {
		.op = STORE_OP_READ, .path = path, .range = {offset, piece->cap}, .sink = &sink, .ret_stat = &stat};
	int r = store_forward(rv->base.inner, ctx, &read, err), up;
	struct err later;

	if (r && r != -ERR_NOT_FOUND && r != -ERR_INVALID)
		return r;
	up = revlog_refresh(rv->log, ctx, &later);
	if (up) {
		*err = later;
		return up;
	}
	revlog_lock(rv->log);
	*ret_changed = revlog_last(rv->log, path) != last ||
		       (last && (r || !last->done || !str_eq(last->r.after.version, stat.version)));
	revlog_unlock(rv->log);
	return *ret_changed ? 0 : r;
}

int content_read_now(struct revisions *rv, struct ctx *ctx, struct wpath path, const struct rev_record *last,
		     struct store_range range, const struct sink *sink, uint64_t *ret_len, bool *ret_changed,
		     struct err *err)
{
	*ret_len = 0;
	*ret_changed = false;
	do {
		ARENA_SCOPE struct arena *arena = arena_new();
		struct ctx c = *ctx;
		struct piece piece = {.cap = range.length < STREAM_CHUNK ? (size_t)range.length : STREAM_CHUNK};
		int r;

		c.arena = arena;
		piece.ptr = arena_alloc_raw(arena, piece.cap + 1);
		r = read_now_piece(rv, &c, path, last, &piece, range.offset, ret_changed, err);
		if (r || *ret_changed)
			return r;
		r = sink->push(sink->arg, piece.ptr, piece.len, err);
		if (r || piece.len < piece.cap)
			return r;
		*ret_len += piece.len;
		range.offset += piece.len;
		range.length -= range.length == UINT64_MAX ? 0 : piece.len;
	} while (range.length);
	return 0;
}

/* Follows a run of appends to its end: returns the last append, or the record of another kind that follows it. */
static const struct rev_record *end_of_appends(struct revisions *rv, const struct rev_record *record)
{
	revlog_lock(rv->log);
	while (record->next && record->r.after.where == REV_PREFIX)
		record = record->next;
	revlog_unlock(rv->log);
	return record;
}

/* Passes the given range of a source to the sink. */
static int push_source(const struct source *source, struct store_range range, const struct sink *sink, struct err *err)
{
	char *buf;
	int r = 0;

	if (!source->pull)
		return push_range(source->bytes, range, sink, err);
	buf = xmalloc(STREAM_CHUNK);
	while (r == 0 && range.length) {
		struct str got;
		size_t n = 0;

		r = source->pull(source->arg, buf, STREAM_CHUNK, &n, err);
		if (r || n == 0)
			break;
		got = str_from(str_n(buf, n), range.offset < n ? (size_t)range.offset : n);
		got = str_first(got, range.length < got.len ? (size_t)range.length : got.len);
		range.offset -= range.offset < n ? range.offset : n;
		range.length -= range.length == UINT64_MAX ? 0 : got.len;
		if (got.len)
			r = sink->push(sink->arg, got.ptr, got.len, err);
	}
	free(buf);
	return r;
}

int content_read_after(struct revisions *rv, struct ctx *ctx, const struct rev_record *record, struct store_range range,
		       const struct sink *sink, struct err *err)
{
	const struct rev_record *end;
	struct source source;
	uint64_t len;
	bool changed;
	int r;

	range = clamp_range(range, record->r.after.size);
	if (record->r.after.where != REV_PREFIX)
		return read_state(rv, ctx, record, &record->r.after, range, sink, err);
	end = end_of_appends(rv, record);
	if (end->r.after.where == REV_PREFIX) { /* the file still begins with this content */
		r = content_read_now(rv, ctx, record->r.path, end, range, sink, &len, &changed, err);
		if (r || !changed)
			return r;
		range.offset += len;
		range.length -= len;
		end = end_of_appends(rv, record);
	}
	if (end != record && (end->r.before.where == REV_LOG || end->r.before.where == REV_BLOB)) {
		r = read_state(rv, ctx, end, &end->r.before, range, sink, err);
		if (r != -ERR_NOT_FOUND)
			return r; /* the whole content was redacted, but its beginning may still be kept */
	}
	r = content_source_after(rv, ctx, record, &source, err);
	if (r == 0) {
		r = push_source(&source, range, sink, err);
		content_source_end(&source);
	}
	return r;
}

int content_read_before(struct revisions *rv, struct ctx *ctx, const struct rev_record *record,
			struct store_range range, const struct sink *sink, struct err *err)
{
	range = clamp_range(range, record->r.before.size);
	if (record->r.before.where != REV_PREFIX)
		return read_state(rv, ctx, record, &record->r.before, range, sink, err);
	return content_read_after(rv, ctx, record, range, sink,
				  err); /* an append: the content after it begins with this one */
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

/* --- contents that were appended to --- */

/* A source that puts a content together: the content before a run of appends, then the piece that each one added. */
struct chain {
	struct revisions *rv;
	struct ctx *ctx;
	const struct rev_record **records; /* oldest first; the first one's content is kept whole */
	size_t count, at;
	struct arena *memory; /* of the part that is being read; NULL: none is open. Freed at the end of the part */
	struct ctx part_ctx;
	struct source part;
	size_t part_at;
};

static int chain_open(struct chain *c, struct err *err)
{
	const struct rev_record *rec = c->records[c->at];

	c->memory = arena_new();
	c->part_ctx = *c->ctx;
	c->part_ctx.arena = c->memory;
	c->part_at = 0;
	return c->at ? content_piece(c->rv, &c->part_ctx, rec, 0, &c->part, err)
		     : content_source(c->rv, &c->part_ctx, rec, &rec->r.after, &c->part, err);
}

static void chain_close(struct chain *c)
{
	if (c->memory)
		arena_destroy(c->memory);
	c->memory = NULL;
}

static int chain_pull(void *arg, void *buf, size_t cap, size_t *ret_len, struct err *err)
{
	struct chain *c = arg;

	*ret_len = 0;
	for (; c->at < c->count; c->at++) {
		int r = c->memory ? 0 : chain_open(c, err);

		if (r == 0 && c->part.pull) {
			r = c->part.pull(c->part.arg, buf, cap, ret_len, err);
		} else if (r == 0) {
			struct str rest = str_first(str_from(c->part.bytes, c->part_at), cap);

			memcpy(buf, rest.ptr, rest.len);
			c->part_at += rest.len;
			*ret_len = rest.len;
		}
		if (r)
			chain_close(c);
		if (r || *ret_len)
			return r;
		chain_close(c);
	}
	return 0;
}

void content_source_end(struct source *source)
{
	if (source->pull == chain_pull)
		chain_close(source->arg);
}

static int chain_rewind(void *arg, struct err *err)
{
	struct chain *c = arg;

	(void)err;
	chain_close(c);
	c->at = 0;
	return 0;
}

int content_piece(struct revisions *rv, struct ctx *ctx, const struct rev_record *record, uint64_t skip,
		  struct source *ret_source, struct err *err)
{
	struct str data;
	int r;

	if (record->piece[0] || record->piece[1]) {
		*ret_source = file_source(rv->meta, ctx, content_blob_path(ctx->arena, record->piece), STR_NONE,
					  record->r.after.size - record->r.before.size);
		((struct file_source *)ret_source->arg)->offset = skip;
		ret_source->rewind = NULL; /* it would begin before the skipped bytes */
		return 0;
	}
	r = revlog_read_data(rv->log, ctx, record, &data, err);
	if (r == 0)
		*ret_source = (struct source){.bytes = str_from(data, (size_t)skip)};
	return r;
}

int content_source_after(struct revisions *rv, struct ctx *ctx, const struct rev_record *record,
			 struct source *ret_source, struct err *err)
{
	const struct rev_record *first = record;
	struct chain *c;
	size_t count = 1;

	if (record->r.after.where != REV_PREFIX)
		return content_source(rv, ctx, record, &record->r.after, ret_source, err);
	revlog_lock(rv->log);
	while (first && first->r.after.where == REV_PREFIX) {
		bool fits = first->prev && first->prev->r.after.size == first->r.before.size;

		first = fits ? first->prev : NULL;
		count++;
	}
	c = ARENA_NEW(ctx->arena, struct chain);
	*c = (struct chain){.rv = rv, .ctx = ctx, .count = count};
	if (first && first->r.after.exists && first->r.after.where != REV_NOWHERE) {
		c->records = ARENA_ARRAY(ctx->arena, const struct rev_record *, count);
		for (const struct rev_record *rec = record; count; rec = rec->prev)
			c->records[--count] = rec;
	}
	revlog_unlock(rv->log);
	if (!c->records)
		return not_kept(record, err);
	*ret_source = (struct source){.pull = chain_pull, .rewind = chain_rewind, .arg = c};
	return 0;
}
