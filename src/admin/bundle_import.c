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

#include "base/clock.h"
#include "base/sha256.h"
#include "admin/bundle_internal.h"
#include "workspace/workspace_internal.h"
#include "text/tar.h"

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
	struct hash_stream *content; /* of a history content; else NULL */
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

static int damaged(const struct reader *r, const char *why, struct err *err)
{
	return err_set(err, ERR_CORRUPT, "the bundle is damaged or is none: %s (at byte %llu); export it again", why,
		       (unsigned long long)r->taken);
}

/* --- the stream --- */

static int fill(struct reader *r, struct err *err)
{
	size_t n = 0;
	int bad;

	if (!r->source->pull) {
		r->ended = true;
		return 0;
	}
	bad = r->source->pull(r->source->arg, r->buf, STREAM_CHUNK, &n, err);
	r->have = n;
	r->at = 0;
	r->ended = n == 0;
	return bad;
}

/* Up to `cap` bytes; none at the end. */
static int take(struct reader *r, void *buf, size_t cap, size_t *ret_len, struct err *err)
{
	int bad = 0;

	if (r->at == r->have && !r->ended)
		bad = fill(r, err);
	if (bad)
		return bad;
	*ret_len = r->have - r->at < cap ? r->have - r->at : cap;
	if (*ret_len)
		memcpy(buf, r->buf + r->at, *ret_len);
	sha256_add(&r->all, str_n(buf, *ret_len));
	r->at += *ret_len;
	r->taken += *ret_len;
	return 0;
}

static int take_all(struct reader *r, void *buf, size_t len, struct err *err)
{
	for (size_t done = 0, n; done < len; done += n) {
		int bad = take(r, (char *)buf + done, len - done, &n, err);

		if (bad)
			return bad;
		if (n == 0)
			return damaged(r, "it ends early", err);
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
static int take_header(struct reader *r, struct arena *arena, struct tar_entry *ret, bool *ret_end, struct err *err)
{
	char header[TAR_HEADER_MAX] = {0};
	size_t len, extra;
	int bad = take_all(r, header, TAR_BLOCK, err);

	*ret_end = false;
	if (bad)
		return bad;
	if (is_zero(header, TAR_BLOCK)) {
		bad = take_all(r, header, TAR_BLOCK, err);
		if (bad == 0 && is_zero(header, TAR_BLOCK))
			bad = take(r, header, 1, &extra, err);
		else if (bad == 0)
			return damaged(r, "its end is not one", err);
		if (bad == 0 && extra)
			return damaged(r, "something stands behind its end", err);
		*ret_end = true;
		return bad;
	}
	len = tar_header_len(header);
	if (len == 0 || len > sizeof(header))
		return damaged(r, "an entry is not of the form that bundles have", err);
	bad = take_all(r, header + TAR_BLOCK, len - TAR_BLOCK, err);
	if (bad == 0 && !tar_parse(arena, str_n(header, len), ret))
		return damaged(r, "an entry is not of the form that bundles have", err);
	return bad;
}

/* --- one entry --- */

static int entry_pull(void *arg, void *buf, size_t cap, size_t *ret_len, struct err *err)
{
	struct reader *r = arg;
	int bad;

	*ret_len = 0;
	if (r->left == 0)
		return 0;
	bad = take(r, buf, cap < r->left ? cap : (size_t)r->left, ret_len, err);
	if (bad)
		return bad;
	if (*ret_len == 0)
		return damaged(r, "it ends early", err);
	r->left -= *ret_len;
	sha256_add(&r->entry, str_n(buf, *ret_len));
	if (r->content)
		hash_stream_add(r->content, str_n(buf, *ret_len));
	ctx_progress(r->ctx, r->taken, 0, STR("bytes"));
	return ctx_check(r->ctx, err);
}

/* All of a small entry. */
static int entry_text(struct reader *r, struct arena *arena, size_t max, struct str *ret, struct err *err)
{
	size_t len = (size_t)r->left;
	char *bytes;

	if (r->left > max)
		return damaged(r, "an entry is larger than it can be", err);
	bytes = arena_alloc_raw(arena, len + 1);
	for (size_t done = 0, n; done < len; done += n) {
		int bad = entry_pull(r, bytes + done, len - done, &n, err);

		if (bad)
			return bad;
	}
	*ret = str_n(bytes, len);
	return 0;
}

static int entry_to_store(struct reader *r, struct arena *arena, struct str path, struct err *err)
{
	struct source source = {.pull = entry_pull, .arg = r};
	struct ctx ctx = *r->ctx;
	struct wpath to;
	int bad = wpath_parse(arena_printf(arena, "%.*s/%.*s", STR_ARG(r->tmp), STR_ARG(path)), &to, err);

	ctx.arena = arena;
	return bad ? bad
		   : store_write_stream(r->base, &ctx, to, &source, (struct store_cond){.kind = STORE_ABSENT}, NULL,
					err);
}

static int take_manifest(struct reader *r, struct err *err)
{
	struct arena *arena = r->ctx->arena; /* it is the report, in the end */
	struct str text;
	struct jv *v;
	int bad = entry_text(r, arena, MIB, &text, err);

	if (bad)
		return bad;
	if (jv_parse(arena, text, &v, err) || !str_is(jv_get_str(v, "format"), BUNDLE_FORMAT) ||
	    !workspace_name_ok(jv_get_str(v, "workspace")) || jv_get_int(v, "first", -1) < 1)
		return damaged(r, "its manifest is not one", err);
	if (jv_get_int(v, "version", 0) != BUNDLE_VERSION)
		return err_set(err, ERR_UNSUPPORTED,
			       "the bundle is of version %lld of its format; this program knows version %d",
			       (long long)jv_get_int(v, "version", 0), BUNDLE_VERSION);
	r->manifest = v;
	r->log.last = (uint64_t)jv_get_int(v, "first", 1) - 1;
	return 0;
}

static int take_file(struct reader *r, struct arena *arena, struct str name, uint64_t size, struct err *err)
{
	struct wpath path;

	if (wpath_parse(name, &path, err) || wpath_is_root(path) || !bundle_wants(r->guard, path))
		return damaged(r, "a name in it cannot be a file's", err);
	r->files++;
	r->bytes += size;
	return entry_to_store(r, arena, name, err);
}

static int take_segment(struct reader *r, struct arena *arena, struct str name, struct err *err)
{
	struct str want = arena_printf(arena, "%016llu.jsonl", (unsigned long long)r->log.last + 1), text;
	struct ctx ctx = *r->ctx;
	int bad;

	ctx.arena = arena;
	if (!str_eq(name, want) || (r->has_log && !r->log.sealed))
		return damaged(r, "its history is out of order", err);
	r->has_log = true;
	bad = entry_text(r, arena, BUNDLE_SEGMENT_MAX, &text, err);
	if (bad == 0)
		bad = revisions_check_segment(&ctx, text, &r->log, err);
	if (bad)
		return bad;
	return store_write(
		r->base, &ctx,
		(struct wpath){arena_printf(arena, "%.*s/.stead/rev/log/%.*s", STR_ARG(r->tmp), STR_ARG(name))}, text,
		(struct store_cond){.kind = STORE_ABSENT}, NULL, err);
}

static int take_content(struct reader *r, struct arena *arena, struct str name, struct err *err)
{
	char hex[33], want[33] = {0};
	uint64_t hash[2];
	int bad;

	if (name.len != 33 || name.ptr[2] != '/')
		return damaged(r, "a name in it cannot be a content's", err);
	memcpy(want, name.ptr, 2);
	memcpy(want + 2, name.ptr + 3, 30);
	for (size_t i = 0; i < 32; i++)
		if (!memchr("0123456789abcdef", want[i], 16))
			return damaged(r, "a name in it cannot be a content's", err);
	r->contents++;
	r->content = hash_stream_new();
	bad = entry_to_store(r, arena, arena_printf(arena, ".stead/rev/blobs/%.*s", STR_ARG(name)), err);
	hash_stream_end(r->content, hash);
	r->content = NULL;
	hex_u64(hash[0], hex);
	hex_u64(hash[1], hex + 16);
	if (bad == 0 && memcmp(hex, want, 32) != 0)
		return damaged(r, "a content is not what its name says", err);
	return bad;
}

/* The sums that were computed on the way, against those that stand in it. */
static int take_sums(struct reader *r, struct err *err)
{
	struct sha256 lines = r->sums;
	char hex[65], want[65], chunk[4096];
	size_t n = 1;

	sha256_end(&lines, hex);
	buf_clear(&r->line);
	buf_printf(&r->line, BUNDLE_SUM_MARK "%s\n", hex);
	sha256_add(&r->sums, buf_str(&r->line));
	sha256_end(&r->sums, want);
	while (n) {
		int bad = entry_pull(r, chunk, sizeof(chunk), &n, err);

		if (bad)
			return bad;
	}
	sha256_end(&r->entry, hex);
	r->has_sums = true;
	if (strcmp(hex, want) != 0)
		return damaged(r, "a checksum does not fit", err);
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

static int check_order(struct reader *r, struct str name, struct err *err)
{
	struct str last = r->last_name ? str_of(r->last_name) : STR("");
	int group = group_of(name), before = group_of(last);

	if (group == 0 || memchr(name.ptr, 0, name.len))
		return damaged(r, "a name in it is not one of a bundle's", err);
	if ((before == 0 && group != 1) || group < before || (group == before && str_cmp(name, last) <= 0))
		return damaged(r, "its entries are out of order", err);
	free(r->last_name);
	r->last_name = xstrndup(name);
	return 0;
}

static int take_by_group(struct reader *r, struct arena *arena, const struct tar_entry *e, struct err *err)
{
	switch (group_of(e->name)) {
	case 1:
		return take_manifest(r, err);
	case 2:
		return take_file(r, arena, str_from(e->name, strlen(BUNDLE_FILES)), e->size, err);
	case 3:
		return take_segment(r, arena, str_from(e->name, strlen(BUNDLE_LOG)), err);
	case 4:
		return take_content(r, arena, str_from(e->name, strlen(BUNDLE_BLOBS)), err);
	default:
		return take_sums(r, err);
	}
}

static int take_entry(struct reader *r, bool *ret_end, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	char padding[TAR_BLOCK] = {0}, hex[65];
	struct tar_entry e = {0};
	int bad = take_header(r, arena, &e, ret_end, err);

	if (bad || *ret_end)
		return bad;
	bad = check_order(r, e.name, err);
	if (bad)
		return bad;
	sha256_begin(&r->entry);
	r->left = e.size;
	bad = take_by_group(r, arena, &e, err);
	if (bad == 0)
		bad = take_all(r, padding, tar_padding(e.size), err);
	if (bad)
		return bad;
	if (!is_zero(padding, tar_padding(e.size)))
		return damaged(r, "something stands between two entries", err);
	if (r->has_sums)
		return 0;
	sha256_end(&r->entry, hex);
	buf_clear(&r->line);
	bundle_sum_line(&r->line, hex, e.name);
	sha256_add(&r->sums, buf_str(&r->line));
	return 0;
}

static int take_entries(struct reader *r, struct err *err)
{
	bool end = false;
	int bad = 0;

	while (bad == 0 && !end)
		bad = take_entry(r, &end, err);
	if (bad)
		return bad;
	if (!r->has_sums || (r->has_log && r->log.sealed) ||
	    r->files != (uint64_t)jv_get_int(r->manifest, "files", -1) ||
	    r->bytes != (uint64_t)jv_get_int(r->manifest, "bytes", -1) ||
	    r->contents != (uint64_t)jv_get_int(r->manifest, "contents", -1) ||
	    r->log.last != (uint64_t)jv_get_int(r->manifest, "head", -1))
		return damaged(r, "it does not hold what its manifest says", err);
	return 0;
}

/* --- making it visible --- */

/* Opening compares the log with the files, and learns their versions. */
static int settle(struct ctx *ctx, struct store *base, struct str name, struct err *err)
{
	struct home_place place = {.base = base};
	struct store *rev;
	uint64_t head;
	int bad = home_record(ctx, &place, name, store_view_new(base, (struct wpath){name}), ".stead/rev", &rev, err);

	if (bad)
		return bad;
	bad = revisions_head(rev, ctx, &head, err);
	store_destroy(rev);
	return bad;
}

static int exists_already(struct str name, struct err *err)
{
	return err_set(err, ERR_EXISTS,
		       "there is a workspace \"%.*s\" already; give another name: stead import FILE NAME",
		       STR_ARG(name));
}

static int check_name(struct ctx *ctx, struct store *base, struct str name, struct err *err)
{
	int bad;

	if (!workspace_name_ok(name))
		return home_bad_name(name, err);
	bad = store_stat(base, ctx, (struct wpath){name}, NULL, err);
	if (bad == 0)
		return exists_already(name, err);
	return bad == -ERR_NOT_FOUND ? 0 : bad;
}

static int publish(struct reader *r, struct str name, struct err *err)
{
	struct store_cond any = {0}, absent = {.kind = STORE_ABSENT};
	struct err ignored;
	int bad = check_name(r->ctx, r->base, name, err);

	if (bad == 0)
		bad = store_move(r->base, r->ctx, (struct wpath){r->tmp}, (struct wpath){name}, any, absent, NULL, err);
	if (bad == -ERR_EXISTS)
		return exists_already(name, err);
	if (bad)
		return bad;
	bad = settle(r->ctx, r->base, name, err);
	if (bad)
		store_remove(r->base, r->ctx, (struct wpath){name}, true, any, NULL, &ignored);
	return bad;
}

static struct jv *report(struct reader *r, struct str name)
{
	struct arena *arena = r->ctx->arena;
	char hex[65];

	sha256_end(&r->all, hex);
	jv_set_str(arena, r->manifest, "workspace", arena_str(arena, name));
	jv_set_int(arena, r->manifest, "size", (int64_t)r->taken);
	jv_set_str(arena, r->manifest, "sha256", arena_str(arena, str_of(hex)));
	return r->manifest;
}

/* What an import that was killed left: its files have not changed for a day. */
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
	struct reader r = {.ctx = ctx, .base = base, .source = source, .guard = bundle_guard()};
	struct err ignored;
	int bad = name.len ? check_name(ctx, base, name, err) : 0;

	r.tmp = arena_printf(ctx->arena, TMP_PREFIX "%016llx", (unsigned long long)random_u64());
	r.buf = source->pull ? arena_alloc_raw(ctx->arena, STREAM_CHUNK) : (char *)source->bytes.ptr;
	r.have = source->pull ? 0 : source->bytes.len;
	r.log = (struct rev_segment_check){.wanted = bundle_wants, .arg = r.guard, .gap_max = GAP_MAX};
	sha256_begin(&r.sums);
	sha256_begin(&r.all);
	buf_init(&r.line, NULL, 64 * KIB);
	if (bad == 0)
		bad = take_entries(&r, err);
	if (bad == 0 && !name.len)
		name = jv_get_str(r.manifest, "workspace");
	if (bad == 0)
		bad = publish(&r, name, err);
	if (bad == 0)
		*ret_report = report(&r, name);
	else
		store_remove(base, ctx, (struct wpath){r.tmp}, true, (struct store_cond){0}, NULL, &ignored);
	buf_release(&r.line);
	free(r.last_name);
	store_destroy(r.guard);
	return bad;
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
	int bad = home_open_store(ctx->arena, store_url, true, true, &base, &dir, err);

	if (bad)
		return bad;
	remove_leftovers(ctx, base);
	bad = bundle_import_into(ctx, base, source, name, ret_report, err);
	sync_directory(dir);
	store_destroy(base);
	return bad;
}
