/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a bundle. It comes from anywhere, so nothing of it is believed: headers must be byte for byte what we would
 * write (text/tar.h), names must be paths that a bundle can have, in order and so without repeats, the log must hold
 * together, and every checksum must fit. It is read once, from a stream, in bounded memory, into a directory that no
 * workspace can be called by; when all of it is there and right, the directory gets the workspace's name. Until then
 * nothing can be seen, and whatever goes wrong, the directory is removed.
 *
 * A first pass that only checks was rejected: the file may be a pipe, and may change between the passes.
 */
#include <fcntl.h>
#include <unistd.h>

#include "admin/bundle_internal.h"
#include "base/clock.h"
#include "base/sha256.h"
#include "text/tar.h"
#include "workspace/workspace_parts.h"

#define GAP_MAX         ((uint64_t)1 << 20)
#define TMP_PREFIX      ".import-"
#define LEFTOVER_AGE_NS (INT64_C(86400) * 1000000000)

struct reader {
	struct ctx *ctx;
	struct store *base, *guard;
	struct str tmp; /* where it is put together */
	/* the stream */
	const struct source *source;
	char *buf;
	size_t have, at;
	bool ended;
	uint64_t taken; /* bytes given out */
	struct sha256 all;
	/* the entry that is being read */
	struct sha256 entry;
	struct rev_hashing *content; /* of a history content; else NULL */
	uint64_t left;
	/* what was read so far */
	struct sha256 sums;
	struct buf line;
	struct jv *manifest;
	char *last_name;
	struct rev_segment_check log;
	bool has_log, has_sums;
	uint64_t files, bytes, contents;
};

static int damaged(const struct reader *reader, const char *why, struct err *err)
{
	return err_set(err, ERR_CORRUPT,
		       "this is not a Stead bundle, or it is damaged: %s (at byte %llu); export it again", why,
		       (unsigned long long)reader->taken);
}

/* --- the stream --- */

static int fill(struct reader *reader, struct err *err)
{
	size_t n = 0;
	int r;

	if (!reader->source->pull) {
		reader->ended = true;
		return 0;
	}
	r = reader->source->pull(reader->source->arg, reader->buf, STREAM_CHUNK, &n, err);
	reader->have = n;
	reader->at = 0;
	reader->ended = n == 0;
	return r;
}

/* Up to `cap` bytes; none at the end. */
static int take(struct reader *reader, void *buf, size_t cap, size_t *ret_len, struct err *err)
{
	int r = 0;

	if (reader->at == reader->have && !reader->ended)
		r = fill(reader, err);
	if (r)
		return r;
	*ret_len = reader->have - reader->at < cap ? reader->have - reader->at : cap;
	if (*ret_len)
		memcpy(buf, reader->buf + reader->at, *ret_len);
	sha256_add(&reader->all, str_n(buf, *ret_len));
	reader->at += *ret_len;
	reader->taken += *ret_len;
	return 0;
}

static int take_all(struct reader *reader, void *buf, size_t len, struct err *err)
{
	for (size_t done = 0, n; done < len; done += n) {
		int r = take(reader, (char *)buf + done, len - done, &n, err);

		if (r)
			return r;
		if (n == 0)
			return damaged(reader, "it ends early", err);
	}
	return 0;
}

static bool is_zero(const char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (bytes[i])
			return false;
	return true;
}

/* The next entry's header; *ret_end: there is none. */
static int take_header(struct reader *reader, struct arena *arena, struct tar_entry *ret, bool *ret_end,
		       struct err *err)
{
	char header[TAR_HEADER_MAX] = {0};
	size_t len, extra;
	int r = take_all(reader, header, TAR_BLOCK, err);

	*ret_end = false;
	if (r)
		return r;
	if (is_zero(header, TAR_BLOCK)) {
		r = take_all(reader, header, TAR_BLOCK, err);
		if (r == 0 && is_zero(header, TAR_BLOCK))
			r = take(reader, header, 1, &extra, err);
		else if (r == 0)
			return damaged(reader, "its end marker is incomplete", err);
		if (r == 0 && extra)
			return damaged(reader, "there is data after its end", err);
		*ret_end = true;
		return r;
	}
	len = tar_header_len(header);
	if (len == 0 || len > sizeof(header))
		return damaged(reader, "an entry does not have the format of a bundle", err);
	r = take_all(reader, header + TAR_BLOCK, len - TAR_BLOCK, err);
	if (r == 0 && !tar_parse(arena, str_n(header, len), ret))
		return damaged(reader, "an entry does not have the format of a bundle", err);
	return r;
}

/* --- one entry --- */

static int entry_pull(void *arg, void *buf, size_t cap, size_t *ret_len, struct err *err)
{
	struct reader *reader = arg;
	int r;

	*ret_len = 0;
	if (reader->left == 0)
		return 0;
	r = take(reader, buf, cap < reader->left ? cap : (size_t)reader->left, ret_len, err);
	if (r)
		return r;
	if (*ret_len == 0)
		return damaged(reader, "it ends early", err);
	reader->left -= *ret_len;
	sha256_add(&reader->entry, str_n(buf, *ret_len));
	if (reader->content)
		rev_hashing_add(reader->content, str_n(buf, *ret_len));
	ctx_progress(reader->ctx, reader->taken, 0, STR("bytes"));
	return ctx_check(reader->ctx, err);
}

/* All of a small entry. */
static int entry_text(struct reader *reader, struct arena *arena, size_t max, struct str *ret, struct err *err)
{
	size_t len = (size_t)reader->left;
	char *bytes;

	if (reader->left > max)
		return damaged(reader, "an entry is too large", err);
	bytes = arena_alloc_raw(arena, len + 1);
	for (size_t done = 0, n; done < len; done += n) {
		int r = entry_pull(reader, bytes + done, len - done, &n, err);

		if (r)
			return r;
	}
	*ret = str_n(bytes, len);
	return 0;
}

static int entry_to_store(struct reader *reader, struct arena *arena, struct str path, struct err *err)
{
	struct source source = {.pull = entry_pull, .arg = reader};
	struct ctx ctx = *reader->ctx;
	struct wpath to;
	int r = wpath_parse(arena_printf(arena, "%.*s/%.*s", STR_ARG(reader->tmp), STR_ARG(path)), &to, err);

	ctx.arena = arena;
	return r ? r
		 : store_write_stream(reader->base, &ctx, to, &source, (struct store_cond){.kind = STORE_ABSENT}, NULL,
				      err);
}

static int take_manifest(struct reader *reader, struct err *err)
{
	struct arena *arena = reader->ctx->arena; /* it is the report, in the end */
	struct str text;
	struct jv *v;
	int r = entry_text(reader, arena, MIB, &text, err);

	if (r)
		return r;
	if (jv_parse(arena, text, &v, err) || !str_is(jv_get_str(v, "format"), BUNDLE_FORMAT) ||
	    !workspace_name_ok(jv_get_str(v, "workspace")) || jv_get_int(v, "first", -1) < 1)
		return damaged(reader, "its manifest is not valid", err);
	if (jv_get_int(v, "version", 0) != BUNDLE_VERSION)
		return err_set(err, ERR_UNSUPPORTED,
			       "the bundle has format version %lld; this program knows version %d",
			       (long long)jv_get_int(v, "version", 0), BUNDLE_VERSION);
	reader->manifest = v;
	reader->log.last = (uint64_t)jv_get_int(v, "first", 1) - 1;
	return 0;
}

static int take_file(struct reader *reader, struct arena *arena, struct str name, uint64_t size, struct err *err)
{
	struct wpath path;

	if (wpath_parse(name, &path, err) || wpath_is_root(path) || !bundle_wants(reader->guard, path))
		return damaged(reader, "an entry has a name that is not a valid path", err);
	reader->files++;
	reader->bytes += size;
	return entry_to_store(reader, arena, name, err);
}

static int take_segment(struct reader *reader, struct arena *arena, struct str name, struct err *err)
{
	struct str want = arena_printf(arena, "%016llu.jsonl", (unsigned long long)reader->log.last + 1), text;
	struct ctx ctx = *reader->ctx;
	int r;

	ctx.arena = arena;
	if (!str_eq(name, want) || (reader->has_log && !reader->log.sealed))
		return damaged(reader, "its history is out of order", err);
	reader->has_log = true;
	reader->log.first = reader->log.last + 1;
	r = entry_text(reader, arena, BUNDLE_SEGMENT_MAX, &text, err);
	if (r == 0)
		r = revisions_check_segment(&ctx, text, &reader->log, err);
	if (r)
		return r;
	return store_write(
		reader->base, &ctx,
		(struct wpath){arena_printf(arena, "%.*s/.stead/rev/log/%.*s", STR_ARG(reader->tmp), STR_ARG(name))},
		text, (struct store_cond){.kind = STORE_ABSENT}, NULL, err);
}

static int take_content(struct reader *reader, struct arena *arena, struct str name, struct err *err)
{
	struct rev_hash hash;
	bool same;
	int r;

	if (!rev_blob_hash(name, &hash))
		return damaged(reader, "an entry has a name that is not a content hash", err);
	reader->contents++;
	reader->content = rev_hashing_begin(&hash);
	r = entry_to_store(reader, arena, arena_printf(arena, ".stead/rev/blobs/%.*s", STR_ARG(name)), err);
	same = rev_hashing_end(reader->content);
	reader->content = NULL;
	if (r == 0 && !same)
		return damaged(reader, "a content does not match its hash", err);
	return r;
}

/* Compares the checksums computed while reading with those in the bundle. */
static int take_sums(struct reader *reader, struct err *err)
{
	struct sha256 lines = reader->sums;
	char hex[65], want[65], chunk[4096];
	size_t n = 1;

	sha256_end(&lines, hex);
	buf_clear(&reader->line);
	buf_printf(&reader->line, BUNDLE_SUM_MARK "%s\n", hex);
	sha256_add(&reader->sums, buf_str(&reader->line));
	sha256_end(&reader->sums, want);
	while (n) {
		int r = entry_pull(reader, chunk, sizeof(chunk), &n, err);

		if (r)
			return r;
	}
	sha256_end(&reader->entry, hex);
	reader->has_sums = true;
	if (strcmp(hex, want) != 0)
		return damaged(reader, "a checksum does not match", err);
	return 0;
}

/* --- all entries --- */

/* Groups in the order of the format, names in byte order within a group. */
static int group_of(struct str name)
{
	return str_is(name, BUNDLE_MANIFEST)         ? 1
	       : str_starts(name, STR(BUNDLE_FILES)) ? 2
	       : str_starts(name, STR(BUNDLE_LOG))   ? 3
	       : str_starts(name, STR(BUNDLE_BLOBS)) ? 4
	       : str_is(name, BUNDLE_SUMS)           ? 5
						     : 0;
}

static int check_order(struct reader *reader, struct str name, struct err *err)
{
	struct str last = reader->last_name ? str_of(reader->last_name) : STR("");
	int group = group_of(name), before = group_of(last);

	if (group == 0 || memchr(name.ptr, 0, name.len))
		return damaged(reader, "an entry has a name that bundles do not use", err);
	if ((before == 0 && group != 1) || group < before || (group == before && str_cmp(name, last) <= 0))
		return damaged(reader, "its entries are out of order", err);
	free(reader->last_name);
	reader->last_name = xstrndup(name);
	return 0;
}

static int take_by_group(struct reader *reader, struct arena *arena, const struct tar_entry *e, struct err *err)
{
	switch (group_of(e->name)) {
	case 1:
		return take_manifest(reader, err);
	case 2:
		return take_file(reader, arena, str_from(e->name, strlen(BUNDLE_FILES)), e->size, err);
	case 3:
		return take_segment(reader, arena, str_from(e->name, strlen(BUNDLE_LOG)), err);
	case 4:
		return take_content(reader, arena, str_from(e->name, strlen(BUNDLE_BLOBS)), err);
	default:
		return take_sums(reader, err);
	}
}

static int take_entry(struct reader *reader, bool *ret_end, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	char padding[TAR_BLOCK] = {0}, hex[65];
	struct tar_entry e = {0};
	int r = take_header(reader, arena, &e, ret_end, err);

	if (r || *ret_end)
		return r;
	r = check_order(reader, e.name, err);
	if (r)
		return r;
	sha256_begin(&reader->entry);
	reader->left = e.size;
	r = take_by_group(reader, arena, &e, err);
	if (r == 0)
		r = take_all(reader, padding, tar_padding(e.size), err);
	if (r)
		return r;
	if (!is_zero(padding, tar_padding(e.size)))
		return damaged(reader, "the padding between two entries is not zero", err);
	if (reader->has_sums)
		return 0;
	sha256_end(&reader->entry, hex);
	buf_clear(&reader->line);
	bundle_sum_line(&reader->line, hex, e.name);
	sha256_add(&reader->sums, buf_str(&reader->line));
	return 0;
}

static int take_entries(struct reader *reader, struct err *err)
{
	bool end = false;
	int r = 0;

	while (r == 0 && !end)
		r = take_entry(reader, &end, err);
	if (r)
		return r;
	if (!reader->has_sums || (reader->has_log && reader->log.sealed) ||
	    reader->files != (uint64_t)jv_get_int(reader->manifest, "files", -1) ||
	    reader->bytes != (uint64_t)jv_get_int(reader->manifest, "bytes", -1) ||
	    reader->contents != (uint64_t)jv_get_int(reader->manifest, "contents", -1) ||
	    reader->log.last != (uint64_t)jv_get_int(reader->manifest, "head", -1))
		return damaged(reader, "it does not match its manifest", err);
	return 0;
}

/* --- making it visible --- */

/* Opening compares the log with the files, and learns their versions. */
static int settle(struct ctx *ctx, struct store *base, struct str name, struct err *err)
{
	struct workspace_stores place = {.base = base};
	struct store *rev;
	uint64_t head;
	int r = workspace_record(ctx, &place, name, store_prefix_new(store_share(base), (struct wpath){name}),
				 ".stead/rev", &rev, err);

	if (r)
		return r;
	r = revisions_head(rev, ctx, &head, err);
	store_destroy(rev);
	return r;
}

static int exists_already(struct str name, struct err *err)
{
	return err_set(err, ERR_EXISTS,
		       "there is a workspace \"%.*s\" already; give another name: stead import FILE NAME",
		       STR_ARG(name));
}

static int check_name(struct ctx *ctx, struct store *base, struct str name, struct err *err)
{
	int r;

	if (!workspace_name_ok(name))
		return workspace_bad_name(name, err);
	r = store_stat(base, ctx, (struct wpath){name}, NULL, err);
	if (r == 0)
		return exists_already(name, err);
	return r == -ERR_NOT_FOUND ? 0 : r;
}

static int publish(struct reader *reader, struct str name, struct err *err)
{
	struct store_cond any = {0}, absent = {.kind = STORE_ABSENT};
	struct err ignored;
	int r = check_name(reader->ctx, reader->base, name, err);

	if (r == 0)
		r = store_move(reader->base, reader->ctx, (struct wpath){reader->tmp}, (struct wpath){name}, any,
			       absent, NULL, err);
	if (r == -ERR_EXISTS)
		return exists_already(name, err);
	if (r)
		return r;
	r = settle(reader->ctx, reader->base, name, err);
	if (r)
		store_remove(reader->base, reader->ctx, (struct wpath){name}, true, any, NULL, &ignored);
	return r;
}

static struct jv *report(struct reader *reader, struct str name)
{
	struct arena *arena = reader->ctx->arena;
	char hex[65];

	sha256_end(&reader->all, hex);
	jv_set_str(arena, reader->manifest, "workspace", arena_str(arena, name));
	jv_set_int(arena, reader->manifest, "size", (int64_t)reader->taken);
	jv_set_str(arena, reader->manifest, "sha256", arena_str(arena, str_of(hex)));
	return reader->manifest;
}

/* Removes the remains of killed imports: directories whose files have not changed for a day. */
static void remove_leftovers(struct ctx *ctx, struct store *base)
{
	struct store_list_req dirs = {.limit = 1000}, one = {.recursive = true, .limit = 1};
	struct store_page page, inside;
	struct err ignored;

	if (store_list(base, ctx, WPATH_ROOT, &dirs, &page, &ignored))
		return;
	for (size_t i = 0; i < page.count; i++) {
		struct wpath path = page.entries[i].path;

		if (!str_starts(path.s, STR(TMP_PREFIX)) || page.entries[i].stat.kind != STORE_DIR ||
		    store_list(base, ctx, path, &one, &inside, &ignored) || inside.count == 0 ||
		    clock_real_ns() - inside.entries[0].stat.mtime_ns < LEFTOVER_AGE_NS)
			continue;
		store_remove(base, ctx, path, true, (struct store_cond){0}, NULL, &ignored);
	}
}

int bundle_import_into(struct ctx *ctx, struct store *base, const struct source *source, struct str name,
		       struct jv **ret_report, struct err *err)
{
	struct reader reader = {.ctx = ctx, .base = base, .source = source, .guard = bundle_guard()};
	struct err ignored;
	int r = name.len ? check_name(ctx, base, name, err) : 0;

	reader.tmp = arena_printf(ctx->arena, TMP_PREFIX "%016llx", (unsigned long long)random_u64());
	reader.buf = source->pull ? arena_alloc_raw(ctx->arena, STREAM_CHUNK) : (char *)source->bytes.ptr;
	reader.have = source->pull ? 0 : source->bytes.len;
	reader.log = (struct rev_segment_check){.wanted = bundle_wants, .arg = reader.guard, .gap_max = GAP_MAX};
	sha256_begin(&reader.sums);
	sha256_begin(&reader.all);
	buf_init(&reader.line, NULL, 64 * KIB);
	if (r == 0)
		r = take_entries(&reader, err);
	if (r == 0 && !name.len)
		name = jv_get_str(reader.manifest, "workspace");
	if (r == 0)
		r = publish(&reader, name, err);
	if (r == 0)
		*ret_report = report(&reader, name);
	else
		store_remove(base, ctx, (struct wpath){reader.tmp}, true, (struct store_cond){0}, NULL, &ignored);
	buf_release(&reader.line);
	free(reader.last_name);
	store_destroy(reader.guard);
	return r;
}

/* What was written without waiting for the disk, all at once. */
static void sync_directory(struct str dir)
{
	int fd = dir.ptr ? open(dir.ptr, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	if (fd < 0)
		return;
	syncfs(fd);
	close(fd);
}

int bundle_import(struct ctx *ctx, struct str store_url, const struct source *source, struct str name,
		  struct jv **ret_report, struct err *err)
{
	struct store *base;
	struct str dir;
	int r = workspace_open_store(ctx->arena, store_url, true, true, &base, &dir, err);

	if (r)
		return r;
	remove_leftovers(ctx, base);
	r = bundle_import_into(ctx, base, source, name, ret_report, err);
	sync_directory(dir);
	store_destroy(base);
	return r;
}
