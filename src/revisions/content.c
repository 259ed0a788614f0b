/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contents that history needs: how they are kept, found again and released.
 *
 * Every record has a state before and a state after its change, and `where` in a state says where its bytes are:
 *
 *  REV_LOG      in the line of a record. A write of up to REV_INLINE_MAX bytes costs no file of its own that way. The
 *               bytes are in this record or in the earlier one that wrote them (`held_by`). When retention drops that
 *               record, it first writes the bytes as a blob, so readers look in the log and then for the blob.
 *  REV_HERE     the same for the content before the change, in the record of the change: of a file that a fork has from
 *               its parent, and changes for the first time.
 *  REV_BLOB     in a blob: a file in meta whose name is the hash of its content, blobs/<2 digits>/<the other digits>.
 *               Equal contents are kept once, and a blob never changes. It is checked against its name before any of it
 *               is used.
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
#include "base/sha256.h"
#include "revisions/layer.h"
#include "revisions/line.h"

#define PIECE_MAX (8 * MIB) /* files up to this are kept by way of memory */
#define CHECK_MAX (1 * MIB) /* blobs up to this are checked in memory */

void content_checksum(struct str bytes, struct rev_hash *ret_hash)
{
	*ret_hash = (struct rev_hash){0};
	hash_u128(bytes, ret_hash->w);
}

static void content_name(struct str bytes, struct rev_hash *ret_hash)
{
	struct sha256 sha;
	char hex[65];

	sha256_begin(&sha);
	sha256_add(&sha, bytes);
	sha256_end(&sha, hex);
	rev_hash_parse(str_n(hex, 64), ret_hash);
}

struct rev_hash content_held_hash(const struct rev_state *s)
{
	return (struct rev_hash){{s->hash.w[0], s->hash.w[1], s->held_by, 0}};
}

struct wpath content_blob_path(struct arena *arena, const struct rev_hash *hash)
{
	return (struct wpath){arena_printf(arena, "blobs/%.*s", STR_ARG(rev_blob_name(arena, hash)))};
}

bool content_blob_hash(struct str path, struct rev_hash *ret)
{
	return path.len > 6 && rev_blob_hash(str_from(path, 6), ret);
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

int content_keep_as(struct revisions *rv, struct ctx *ctx, struct str bytes, const struct rev_hash *hash,
		    struct err *err)
{
	struct store_cond cond = {.kind = STORE_ABSENT};
	struct wpath blob = content_blob_path(ctx->arena, hash);
	enum found found;
	int r = 0;

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
	return 0;
}

int content_keep_bytes(struct revisions *rv, struct ctx *ctx, struct str bytes, struct rev_state *state,
		       struct err *err)
{
	int r;

	content_name(bytes, &state->hash);
	r = content_keep_as(rv, ctx, bytes, &state->hash, err);
	if (r)
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
	rv->blobs_counted = true;
	return 0;
}

struct hashing {
	struct sha256 sha;
	const struct source *from; /* what is read from it is hashed */
	uint64_t size;
};

static int hashing_pull(void *arg, void *buf, size_t cap, size_t *ret_len, struct err *err)
{
	struct hashing *h = arg;
	int r = h->from->pull(h->from->arg, buf, cap, ret_len, err);

	if (r == 0) {
		sha256_add(&h->sha, str_n(buf, *ret_len));
		h->size += *ret_len;
	}
	return r;
}

bool content_is(struct store *store, struct ctx *ctx, struct wpath path, const struct rev_hash *hash,
		struct store_stat *ret_stat)
{
	struct rev_hashing *h = rev_hashing_begin(hash);
	struct sink sink = {.push = rev_hashing_push, .arg = h};
	struct store_call read = {
		.op = STORE_OP_READ, .path = path, .range = STORE_WHOLE, .sink = &sink, .ret_stat = ret_stat};
	struct err ignored;
	int r = store_forward(store, ctx, &read, &ignored);

	return rev_hashing_end(h) && r == 0;
}

int content_keep_stream(struct revisions *rv, struct ctx *ctx, const struct source *source, struct rev_state *state,
			struct err *err)
{
	struct hashing h = {.from = source};
	struct source hashed = {.pull = hashing_pull, .arg = &h};
	struct wpath tmp = {arena_printf(ctx->arena, "blobs/new-%016llx", (unsigned long long)random_u64())};
	struct store_cond any = {0}, absent = {.kind = STORE_ABSENT};
	struct wpath blob;
	bool was_there;
	char hex[65];
	int r;

	sha256_begin(&h.sha);
	r = store_write_stream(rv->meta, ctx, tmp, &hashed, any, NULL, err);
	sha256_end(&h.sha, hex);
	rev_hash_parse(str_n(hex, 64), &state->hash);
	if (r)
		return r;
	blob = content_blob_path(ctx->arena, &state->hash);
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
	struct store_stat stat = {.size = state->size, .version = state->version};
	struct store_call get = {.op = STORE_OP_STAT, .path = path, .ret_stat = &stat};
	struct source source;
	int r = 0;

	if (!state->exists || !state->version.len) /* nobody has looked yet */
		r = store_forward(rv->base.inner, ctx, &get, err);
	if (r)
		return r;
	if (stat.kind == STORE_FILE)
		revisions_take_rights(rv, state, &stat);
	source = file_source(rv->base.inner, ctx, path, stat.version, UINT64_MAX);
	if (stat.size <= PIECE_MAX) { /* one blob write instead of a write and a move */
		char *bytes = arena_alloc_raw(ctx->arena, (size_t)stat.size + 1);
		size_t len = 0, n = 1;

		while (r == 0 && n && len < stat.size + !stat.version.len) { /* a version tells where it ends */
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

static int push_range(struct str data, struct store_range range, const struct sink *sink, struct err *err)
{
	data = str_from(data, range.offset < data.len ? (size_t)range.offset : data.len);
	data = str_first(data, range.length < data.len ? (size_t)range.length : data.len);
	return sink->push(sink->arg, data.ptr, data.len, err);
}

static int bad_blob(struct wpath blob, struct err *err)
{
	return err_set(err, ERR_CORRUPT,
		       "a kept content is damaged (" ERR_PATH "); `stead fsck` shows what it belongs to",
		       STR_ARG(blob.s));
}

/* Checks a blob against its name before any of it is used. A small one is returned (in ctx's arena); a large one is
   only read, *ret_bytes has ptr NULL, and it is read again where it is used. It never changes, so both times are the
   same. */
static int check_blob(struct revisions *rv, struct ctx *ctx, const struct rev_hash *hash, uint64_t size,
		      struct str *ret_bytes, struct err *err)
{
	struct wpath blob = content_blob_path(ctx->arena, hash);
	struct rev_hashing *h = rev_hashing_begin(hash);
	struct sink check = {.push = rev_hashing_push, .arg = h};
	int r;

	*ret_bytes = STR_NONE;
	if (size <= CHECK_MAX)
		r = store_read(rv->meta, ctx, blob, STORE_WHOLE, CHECK_MAX, ret_bytes, NULL, err);
	else
		r = store_read_stream(rv->meta, ctx, blob, STORE_WHOLE, &check, NULL, err);
	if (r == 0)
		rev_hashing_add(h, *ret_bytes);
	if ((!rev_hashing_end(h) && r == 0) || r == -ERR_TOO_LARGE)
		r = bad_blob(blob, err);
	return r;
}

static int read_blob(struct revisions *rv, struct ctx *ctx, const struct rev_hash *hash, uint64_t size,
		     struct store_range range, const struct sink *sink, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx own = *ctx;
	struct str bytes;
	int r;

	own.arena = arena;
	r = check_blob(rv, &own, hash, size, &bytes, err);
	if (r)
		return r;
	return bytes.ptr ? push_range(bytes, range, sink, err)
			 : store_read_stream(rv->meta, &own, content_blob_path(arena, hash), range, sink, NULL, err);
}

/* A source over a blob of range.length bytes, from range.offset on. */
static int blob_source(struct revisions *rv, struct ctx *ctx, const struct rev_hash *hash, struct store_range range,
		       struct source *ret_source, struct err *err)
{
	struct str bytes;
	int r = check_blob(rv, ctx, hash, range.length, &bytes, err);

	if (r)
		return r;
	if (bytes.ptr) {
		*ret_source = (struct source){.bytes = str_from(bytes, (size_t)range.offset)};
		return 0;
	}
	*ret_source = file_source(rv->meta, ctx, content_blob_path(ctx->arena, hash), STR_NONE, range.length);
	((struct file_source *)ret_source->arg)->offset = range.offset;
	if (range.offset)
		ret_source->rewind = NULL; /* it would begin before the skipped bytes */
	return 0;
}

static int not_kept(const struct rev_record *record, struct err *err)
{
	return err_set(err, ERR_NOT_FOUND, "the content of " ERR_PATH " around revision %llu is no longer kept",
		       STR_ARG(record->r.path.s), (unsigned long long)record->r.number);
}

/* The bytes in the record `number`, or in what retention made of it; `before`: those of the state before it, which
   nothing needs that is not dropped with the record. */
static int logged_bytes(struct revisions *rv, struct ctx *ctx, uint64_t number, bool before, struct str *ret_data,
			struct err *err)
{
	struct rev_record *holder;
	int r;

	revlog_lock(rv->log);
	r = revlog_at(rv->log, ctx, number, &holder, err);
	revlog_unlock(rv->log);
	if (r)
		return r;
	if (before)
		return holder ? revlog_read_was(rv->log, ctx, holder, ret_data, err) : -ERR_NOT_FOUND;
	return holder ? revlog_read_data(rv->log, ctx, holder, ret_data, err)
		      : revlog_read_dropped(rv->log, ctx, number, ret_data, err);
}

/* Where a kept state is: its bytes, if they are in the log (then *ret_blob is zero), or else the name of its blob. */
static int find_held(struct revisions *rv, struct ctx *ctx, const struct rev_record *record,
		     const struct rev_state *state, struct str *ret_bytes, struct rev_hash *ret_blob, struct err *err)
{
	struct rev_state held = *state;
	int r;

	*ret_blob = state->hash;
	if (state->where != REV_LOG && state->where != REV_HERE)
		return state->where == REV_BLOB ? 0 : -ERR_NOT_FOUND;
	if (held.held_by == 0)
		held.held_by = record->r.number;
	r = logged_bytes(rv, ctx, held.held_by, held.where == REV_HERE, ret_bytes, err);
	if (held.where == REV_HERE) {
		*ret_blob = (struct rev_hash){0};
		return r;
	}
	*ret_blob = r ? content_held_hash(&held) : (struct rev_hash){0};
	return r == -ERR_NOT_FOUND ? 0 : r;
}

static int read_state(struct revisions *rv, struct ctx *ctx, const struct rev_record *record,
		      const struct rev_state *state, struct store_range range, const struct sink *sink, struct err *err)
{
	struct rev_hash blob;
	struct str bytes;
	int r = find_held(rv, ctx, record, state, &bytes, &blob, err);

	if (r == 0)
		r = rev_hash_is_set(&blob) ? read_blob(rv, ctx, &blob, state->size, range, sink, err)
					   : push_range(bytes, range, sink, err);
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

bool content_is_of(struct revisions *rv, const struct rev_record *record, const struct store_stat *stat)
{
	bool is;

	if (!rv->journal || !record || stat->kind != STORE_FILE)
		return false;
	revlog_lock(rv->log);
	is = record->done && record->r.after.exists && record->r.after.version.len &&
	     str_eq(record->r.after.version, stat->version);
	revlog_unlock(rv->log);
	return is;
}

/* Reads one piece of the file as it is now. The log is read again after the piece: a record is in the log before the
   bytes change, so if there is no newer record, the piece is the content that `last` left. Where the version alone
   tells that, the log is not asked. */
static int read_now_piece(struct revisions *rv, struct ctx *ctx, struct wpath path, const struct rev_record *last,
			  struct piece *piece, uint64_t offset, struct store_stat *ret_stat, bool *ret_changed,
			  struct err *err)
{
	struct sink sink = {.push = piece_push, .arg = piece};
	struct store_stat stat;
	struct store_call read = {
		.op = STORE_OP_READ, .path = path, .range = {offset, piece->cap}, .sink = &sink, .ret_stat = &stat};
	int r = store_forward(rv->base.inner, ctx, &read, err), up;
	struct rev_record *now;
	struct err later;

	if (r && r != -ERR_NOT_FOUND && r != -ERR_INVALID)
		return r;
	if (r == 0) {
		*ret_stat = stat;
		ret_stat->version = STR_NONE;
		if (content_is_of(rv, last, &stat))
			return 0;
	}
	up = revlog_refresh(rv->log, ctx, &later);
	if (up) {
		*err = later;
		return up;
	}
	revlog_lock(rv->log);
	up = revlog_last(rv->log, ctx, path, &now, err);
	*ret_changed = now != last || (last && (r || !last->done || !str_eq(last->r.after.version, stat.version)));
	revlog_unlock(rv->log);
	return up ? up : *ret_changed ? 0 : r;
}

int content_read_now(struct revisions *rv, struct ctx *ctx, struct wpath path, const struct rev_record *last,
		     struct store_range range, const struct sink *sink, struct store_stat *ret_stat, uint64_t *ret_len,
		     bool *ret_changed, struct err *err)
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
		r = read_now_piece(rv, &c, path, last, &piece, range.offset, ret_stat, ret_changed, err);
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

/* *ret is `record` when a record may be missing in between: then nothing after it tells what it left. */
static int end_of_appends(struct revisions *rv, struct ctx *ctx, struct rev_record *record, struct rev_record **ret,
			  struct err *err)
{
	int r;

	revlog_lock(rv->log);
	r = revlog_end_of_appends(rv->log, ctx, record, ret, err);
	if (r == 0 && revlog_lost_between(rv->log, record->r.number, (*ret)->r.number))
		*ret = record;
	revlog_unlock(rv->log);
	return r;
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

int content_read_after(struct revisions *rv, struct ctx *ctx, struct rev_record *record, struct store_range range,
		       const struct sink *sink, struct err *err)
{
	struct rev_record *end;
	struct store_stat unused;
	struct source source;
	uint64_t len;
	bool changed;
	int r;

	range = clamp_range(range, record->r.after.size);
	if (record->r.after.where != REV_PREFIX)
		return read_state(rv, ctx, record, &record->r.after, range, sink, err);
	r = end_of_appends(rv, ctx, record, &end, err);
	if (r == 0 && end->r.after.where == REV_PREFIX) { /* the file still begins with this content */
		r = content_read_now(rv, ctx, record->r.path, end, range, sink, &unused, &len, &changed, err);
		if (r || !changed)
			return r;
		range.offset += len;
		range.length -= len;
		r = end_of_appends(rv, ctx, record, &end, err);
	}
	if (r)
		return r;
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

int content_read_before(struct revisions *rv, struct ctx *ctx, struct rev_record *record, struct store_range range,
			const struct sink *sink, struct err *err)
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
	struct rev_hash blob;
	struct str bytes;
	int r = find_held(rv, ctx, record, state, &bytes, &blob, err);

	if (r == 0 && rev_hash_is_set(&blob))
		r = blob_source(rv, ctx, &blob, (struct store_range){0, state->size}, ret_source, err);
	else if (r == 0)
		*ret_source = (struct source){.bytes = bytes};
	return r == -ERR_NOT_FOUND && record ? not_kept(record, err) : r;
}

/* --- contents that were appended to --- */

/* A source that puts a content together: the content before a run of appends, then the piece that each one added. */
struct chain {
	struct revisions *rv;
	struct ctx *ctx;
	struct rev_record **records; /* oldest first; the first one's content is kept whole */
	size_t count, at;
	struct arena *memory; /* of the part that is being read; NULL: none is open. Freed at the end of the part */
	struct ctx part_ctx;
	struct source part;
	size_t part_at;
};

static int chain_open(struct chain *c, struct err *err)
{
	struct rev_record *rec = c->records[c->at];

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

	if (rev_hash_is_set(&record->piece))
		return blob_source(rv, ctx, &record->piece,
				   (struct store_range){skip, record->r.after.size - record->r.before.size}, ret_source,
				   err);
	r = revlog_read_data(rv->log, ctx, record, &data, err);
	if (r == 0)
		*ret_source = (struct source){.bytes = str_from(data, (size_t)skip)};
	return r;
}

/* The records whose contents make up the one after `record`, newest first: appends, and the state before the first. */
static int collect_chain(struct revisions *rv, struct ctx *ctx, struct rev_record *record, struct rev_record ***ret,
			 size_t *ret_count, struct err *err)
{
	struct rev_record **list = NULL, *rec = record;
	size_t count = 0, cap = 0;
	int r = 0;

	revlog_lock(rv->log);
	while (r == 0 && rec) {
		struct rev_record *prev;

		ARENA_ROOM(ctx->arena, list, count, cap);
		list[count++] = rec;
		if (rec->r.after.where != REV_PREFIX)
			break;
		r = revlog_prev(rv->log, ctx, rec, &prev, err);
		if (r == 0 && prev)
			r = revlog_check_next(rv->log, prev, rec, err);
		rec = r == 0 && prev && prev->r.after.size == rec->r.before.size ? prev : NULL;
	}
	revlog_unlock(rv->log);
	if (r == 0 && !(rec && rec->r.after.exists && rec->r.after.where != REV_NOWHERE))
		r = not_kept(record, err);
	*ret = list;
	*ret_count = count;
	return r;
}

int content_source_after(struct revisions *rv, struct ctx *ctx, struct rev_record *record, struct source *ret_source,
			 struct err *err)
{
	struct chain *c;
	int r;

	if (record->r.after.where != REV_PREFIX)
		return content_source(rv, ctx, record, &record->r.after, ret_source, err);
	c = ARENA_NEW(ctx->arena, struct chain);
	*c = (struct chain){.rv = rv, .ctx = ctx};
	r = collect_chain(rv, ctx, record, &c->records, &c->count, err);
	for (size_t i = 0; r == 0 && i < c->count / 2; i++) {
		struct rev_record *swap = c->records[i];

		c->records[i] = c->records[c->count - 1 - i];
		c->records[c->count - 1 - i] = swap;
	}
	if (r == 0)
		*ret_source = (struct source){.pull = chain_pull, .rewind = chain_rewind, .arg = c};
	return r;
}
