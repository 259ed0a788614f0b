/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing a bundle. The bundle is a snapshot of one revision: the files come from a view of that revision, and the log
 * ends with it. Others can change the workspace while the bundle is being written; nobody is locked out.
 *
 * Order, times and numbers come from the content alone (the time of an entry is that of the newest revision), so that a
 * workspace that was imported exports to the same bytes.
 */
#include "admin/bundle_internal.h"

#include "base/clock.h"
#include "base/limits.h"
#include "base/sha256.h"
#include "text/tar.h"
#include "workspace/workspace_parts.h"

bool bundle_wants(void *guard, struct wpath path)
{
	return store_guard_says(guard, path) != GUARD_HIDDEN;
}

struct store *bundle_guard(void)
{
	return store_guard_new(store_memory_new(), &guard_defaults);
}

void bundle_sum_line(struct buf *out, const char *hex, struct str name)
{
	bool odd = memchr(name.ptr, '\\', name.len);

	/* as sha256sum writes it: a line with an escaped name begins with a backslash */
	if (odd)
		buf_char(out, '\\');
	buf_printf(out, "%s  ", hex);
	for (size_t i = 0; i < name.len; i++) {
		if (name.ptr[i] == '\\')
			buf_char(out, '\\');
		buf_char(out, name.ptr[i]);
	}
	buf_char(out, '\n');
}

struct writer {
	struct ctx *ctx;
	const struct sink *sink;
	struct store *revisions;
	struct sha256 all; /* of the whole file */
	uint64_t size;
	struct buf sums;
	int64_t time_s;
	uint64_t done, total; /* bytes, for the progress */
	/* the entry that is being written */
	struct sha256 entry;
	uint64_t entry_left;
	struct str entry_name;
};

static int emit(struct writer *w, struct str bytes, struct err *err)
{
	sha256_add(&w->all, bytes);
	w->size += bytes.len;
	return w->sink->push(w->sink->arg, bytes.ptr, bytes.len, err);
}

static int entry_begin(struct writer *w, struct str name, uint64_t size, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct tar_entry e = {name, size, w->time_s};
	struct buf header;

	buf_init(&header, arena, TAR_HEADER_MAX);
	tar_header(&header, &e);
	sha256_begin(&w->entry);
	w->entry_left = size;
	w->entry_name = name;
	return emit(w, buf_str(&header), err);
}

static int entry_push(void *arg, const void *bytes, size_t len, struct err *err)
{
	struct writer *w = arg;

	if (len > w->entry_left)
		return err_set(err, ERR_CONFLICT, "\"%.*s\" changed while it was exported; export again",
			       STR_ARG(w->entry_name));
	w->entry_left -= len;
	w->done += len;
	sha256_add(&w->entry, str_n(bytes, len));
	ctx_progress(w->ctx, w->done, w->total, STR("bytes"));
	return emit(w, str_n(bytes, len), err);
}

static int entry_end(struct writer *w, uint64_t size, bool listed, struct err *err)
{
	static const char zeros[TAR_BLOCK];
	char hex[65];

	if (w->entry_left)
		return err_set(err, ERR_CONFLICT, "\"%.*s\" changed while it was exported; export again",
			       STR_ARG(w->entry_name));
	sha256_end(&w->entry, hex);
	if (listed)
		bundle_sum_line(&w->sums, hex, w->entry_name);
	return emit(w, str_n(zeros, tar_padding(size)), err);
}

static int write_entry(struct writer *w, struct str name, struct str bytes, bool listed, struct err *err)
{
	int r = entry_begin(w, name, bytes.len, err);

	if (r == 0 && bytes.len)
		r = entry_push(w, bytes.ptr, bytes.len, err);
	return r ? r : entry_end(w, bytes.len, listed, err);
}

/* --- files --- */

struct file_list {
	struct store_entry *entries;
	size_t count, cap;
	uint64_t bytes, left_out;
};

static void file_add(struct arena *arena, struct file_list *l, const struct store_entry *e)
{
	ARENA_ROOM(arena, l->entries, l->count, l->cap);
	l->entries[l->count] = *e;
	l->entries[l->count++].path.s = arena_str(arena, e->path.s);
	l->bytes += e->stat.size;
}

static int list_files(struct ctx *ctx, struct store *view, struct store *guard, struct file_list *ret, struct err *err)
{
	struct store_list_req req = {.recursive = true, .limit = STORE_PAGE_MAX};
	ARENA_SCOPE struct arena *cursor = arena_new();
	int r;

	do {
		ARENA_SCOPE struct arena *arena = arena_new();
		struct ctx own = *ctx;
		struct store_page page = {0};

		own.arena = arena;
		r = store_list(view, &own, WPATH_ROOT, &req, &page, err);
		for (size_t i = 0; r == 0 && i < page.count; i++) {
			if (bundle_wants(guard, page.entries[i].path))
				file_add(ctx->arena, ret, &page.entries[i]);
			else
				ret->left_out += !wpath_within(page.entries[i].path, (struct wpath){STR(".stead")});
		}
		req.after = page.next.ptr ? arena_str(cursor, page.next) : STR_NONE;
	} while (r == 0 && req.after.ptr);
	return r;
}

static int write_files(struct writer *w, struct store *view, const struct file_list *files, struct err *err)
{
	struct sink sink = {.push = entry_push, .arg = w};
	int r = 0;

	for (size_t i = 0; r == 0 && i < files->count; i++) {
		ARENA_SCOPE struct arena *arena = arena_new();
		struct store_entry *e = &files->entries[i];
		struct ctx own = *w->ctx;

		own.arena = arena;
		r = entry_begin(w, arena_printf(arena, BUNDLE_FILES "%.*s", STR_ARG(e->path.s)), e->stat.size, err);
		if (r == 0)
			r = store_read_stream(view, &own, e->path, STORE_WHOLE, &sink, NULL, err);
		if (r == 0)
			r = entry_end(w, e->stat.size, true, err);
		if (r == 0)
			r = ctx_check(w->ctx, err);
	}
	return r;
}

/* --- history --- */

static int put_segment(void *arg, uint64_t first, struct str bytes, struct err *err)
{
	struct writer *w = arg;
	ARENA_SCOPE struct arena *arena = arena_new();
	struct str name = arena_printf(arena, BUNDLE_LOG "%016llu.jsonl", (unsigned long long)first);

	return write_entry(w, name, bytes, true, err);
}

/* A content on its way into the bundle, hashed: a reader refuses one that is not what its name says. */
struct checked {
	struct writer *w;
	struct rev_hashing *hashing;
};

static int checked_push(void *arg, const void *bytes, size_t len, struct err *err)
{
	struct checked *c = arg;

	rev_hashing_add(c->hashing, str_n(bytes, len));
	return entry_push(c->w, bytes, len, err);
}

static int write_blob(struct writer *w, struct ctx *ctx, const struct rev_blob *blob, struct err *err)
{
	struct str name = rev_blob_name(ctx->arena, &blob->hash);
	struct checked checked = {w, NULL};
	struct sink sink = {.push = checked_push, .arg = &checked};
	int r = entry_begin(w, arena_printf(ctx->arena, BUNDLE_BLOBS "%.*s", STR_ARG(name)), blob->size, err);

	if (r)
		return r;
	checked.hashing = rev_hashing_begin(&blob->hash);
	r = revisions_carry_blob(w->revisions, ctx, blob, &sink, err);
	if (!rev_hashing_end(checked.hashing) && r == 0)
		r = err_set(err, ERR_CORRUPT,
			    "a kept content is damaged (%.*s); 'stead fsck --repair' sets it aside, then export again",
			    STR_ARG(name));
	return r ? r : entry_end(w, blob->size, true, err);
}

static int write_blobs(struct writer *w, const struct rev_carry *carry, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < carry->blob_count; i++) {
		ARENA_SCOPE struct arena *arena = arena_new();
		struct ctx own = *w->ctx;

		own.arena = arena;
		r = write_blob(w, &own, &carry->blobs[i], err);
		if (r == 0)
			r = ctx_check(w->ctx, err);
	}
	return r;
}

/* --- all of it --- */

static struct jv *manifest(struct arena *arena, struct workspace *ws, const struct file_list *files,
			   const struct rev_carry *carry)
{
	struct jv *v = jv_object(arena);

	jv_set_str(arena, v, "format", STR(BUNDLE_FORMAT));
	jv_set_int(arena, v, "version", BUNDLE_VERSION);
	jv_set_str(arena, v, "workspace", workspace_name(ws));
	jv_set_str(arena, v, "created", clock_format_utc(arena, carry->newest_ns));
	jv_set_int(arena, v, "files", (int64_t)files->count);
	jv_set_int(arena, v, "bytes", (int64_t)files->bytes);
	jv_set_int(arena, v, "revisions", (int64_t)carry->revisions);
	jv_set_int(arena, v, "first", (int64_t)carry->first);
	jv_set_int(arena, v, "head", (int64_t)carry->head);
	jv_set_int(arena, v, "checkpoints", (int64_t)carry->checkpoint_count);
	jv_set_int(arena, v, "contents", (int64_t)carry->blob_count);
	return v;
}

static int write_sums(struct writer *w, struct err *err)
{
	static const char zeros[TAR_END_LEN];
	ARENA_SCOPE struct arena *arena = arena_new();
	struct str sum = sha256_hex(arena, buf_str(&w->sums));
	int r;

	buf_printf(&w->sums, BUNDLE_SUM_MARK "%.*s\n", STR_ARG(sum));
	if (w->sums.overflow)
		return err_set(err, ERR_TOO_LARGE, "the workspace has too many files for one bundle; use 'stead copy'");
	r = write_entry(w, STR(BUNDLE_SUMS), buf_str(&w->sums), false, err);
	return r ? r : emit(w, str_n(zeros, sizeof(zeros)), err);
}

static int write_all(struct writer *w, struct store *view, const struct jv *head, const struct file_list *files,
		     const struct rev_carry *carry, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct buf text;
	int r;

	buf_init(&text, arena, MIB);
	jv_write_pretty(&text, head);
	buf_char(&text, '\n');
	r = write_entry(w, STR(BUNDLE_MANIFEST), buf_str(&text), true, err);
	if (r == 0)
		r = write_files(w, view, files, err);
	if (r == 0)
		r = revisions_carry_log(w->revisions, w->ctx, carry, put_segment, w, err);
	if (r == 0)
		r = write_blobs(w, carry, err);
	return r ? r : write_sums(w, err);
}

static int export_at(struct writer *w, struct workspace *ws, struct store *guard, uint64_t head, struct jv **ret,
		     struct err *err)
{
	struct rev_carry carry = {.until = head, .wanted = bundle_wants, .arg = guard};
	struct store *view = store_at_revision_new(w->revisions, head);
	struct arena *arena = w->ctx->arena;
	struct file_list files = {0};
	char hex[65];
	int r = revisions_carry(w->revisions, w->ctx, &carry, err);

	if (r == 0)
		r = list_files(w->ctx, view, guard, &files, err);
	if (r == 0) {
		w->time_s = carry.newest_ns / 1000000000;
		w->total = files.bytes;
		for (size_t i = 0; i < carry.blob_count; i++)
			w->total += carry.blobs[i].size;
		*ret = manifest(arena, ws, &files, &carry);
		r = write_all(w, view, *ret, &files, &carry, err);
	}
	store_destroy(view);
	if (r)
		return r;
	sha256_end(&w->all, hex);
	jv_set_int(arena, *ret, "left_out", (int64_t)files.left_out);
	jv_set_int(arena, *ret, "missing", (int64_t)carry.missing);
	jv_set_int(arena, *ret, "size", (int64_t)w->size);
	jv_set_str(arena, *ret, "sha256", arena_str(arena, str_of(hex)));
	return 0;
}

int bundle_export(struct workspace *ws, struct ctx *ctx, const struct sink *sink, struct jv **ret_report,
		  struct err *err)
{
	struct writer w = {.ctx = ctx, .sink = sink, .revisions = workspace_shared(ws)};
	struct store *guard = bundle_guard();
	struct arena *scratch = arena_new(); /* for what noticing needs */
	struct ctx own = *ctx;
	uint64_t noticed, head;
	int r;

	own.arena = scratch;
	r = revisions_notice(w.revisions, &own, WPATH_ROOT, &noticed, err);
	arena_destroy(scratch);
	sha256_begin(&w.all);
	buf_init(&w.sums, NULL, BUNDLE_SUMS_MAX);
	if (r == 0)
		r = revisions_head(w.revisions, ctx, &head, err);
	if (r == 0)
		r = export_at(&w, ws, guard, head, ret_report, err);
	buf_release(&w.sums);
	store_destroy(guard);
	return r ? err_prefix(err, "export \"%.*s\"", STR_ARG(workspace_name(ws))) : 0;
}
