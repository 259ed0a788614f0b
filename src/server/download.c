/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A directory as one file, zip or tar, made while it is sent. A worker makes the next piece when the one before was
 * sent, so an archive of any size costs one piece of memory and holds no thread while its client reads. What a zip has
 * to repeat at its end, one line for each file, waits in an unlinked file.
 *
 * The files are read through the store of the file tools. What cannot be read there is not in the archive. A file that
 * is changed while it is sent ends the answer: the sizes and checksums before it would be wrong.
 */
#include "server/download.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "server/server_internal.h"
#include "text/tar.h"
#include "text/zip.h"

#define PIECE      (256 * KIB)
#define PAGE_FILES 500

struct pack {
	struct serve *serve;
	struct tenant *tenant;
	struct store *files;
	struct stream *stream;
	struct arena *arena; /* of the next three */
	struct wpath root;
	struct str top; /* the first element of all names */
	bool is_zip;
	struct arena *page_arena;
	struct store_page page;
	size_t next; /* of the page */
	struct str after;
	bool listed; /* that was the last page */
	/* The file that is being sent; left 0: none. */
	struct arena *file_arena;
	struct wpath path;
	struct str version;
	struct zip_entry entry;
	uint64_t left;
	/* The archive so far. */
	uint64_t offset, count;
	int central_fd; /* -1: none yet */
	uint64_t central_size, central_sent;
	bool ended;
	atomic_uint refs; /* the stream, and a job */
};

static void pack_unref(struct pack *p)
{
	if (atomic_fetch_sub(&p->refs, 1) != 1)
		return;
	stream_release(p->stream);
	store_destroy(p->files);
	tenants_put(p->serve->tenants, p->tenant);
	arena_destroy(p->file_arena);
	arena_destroy(p->page_arena);
	arena_destroy(p->arena);
	if (p->central_fd >= 0)
		close(p->central_fd);
	free(p);
}

static struct ctx pack_ctx(struct arena *arena)
{
	return (struct ctx){.arena = arena, .deadline_ns = clock_monotonic_ns() + SERVER_OPEN_MS * NS_PER_MS};
}

/* Some programs take a backslash for a separator, and a control character is nothing that a person chose. */
static struct str archive_name(struct arena *arena, struct str top, struct str rest)
{
	struct str name = arena_printf(arena, "%.*s/%.*s", STR_ARG(top), STR_ARG(rest));
	char *text = (char *)name.ptr;

	for (size_t i = 0; i < name.len; i++)
		if (text[i] == '\\' || (unsigned char)text[i] < ' ' || text[i] == 0x7f)
			text[i] = '_';
	return name;
}

static int next_page(struct pack *p, struct err *err)
{
	struct store_list_req req = {.recursive = true, .limit = PAGE_FILES, .names_only = true};
	struct ctx ctx;
	int r;

	p->after = arena_str(p->file_arena, p->after);
	arena_reset(p->page_arena);
	ctx = pack_ctx(p->page_arena);
	req.after = arena_str(p->page_arena, p->after);
	r = store_list(p->files, &ctx, p->root, &req, &p->page, err);
	if (r)
		return r;
	p->next = 0;
	p->after = p->page.next;
	p->listed = !p->page.next.ptr;
	return 0;
}

/* Reads the beginning of the next file, and writes what comes before it. A file that is gone, or may not be read, is
   left out. */
static int begin_file(struct pack *p, struct wpath path, struct buf *out, struct err *err)
{
	size_t skip = p->root.s.len ? p->root.s.len + 1 : 0;
	struct store_stat stat;
	struct str bytes;
	struct ctx ctx;
	int r;

	arena_reset(p->file_arena);
	ctx = pack_ctx(p->file_arena);
	r = store_read(p->files, &ctx, path, (struct store_range){0, PIECE}, PIECE, &bytes, &stat, err);
	if (r == -ERR_NOT_FOUND || r == -ERR_DENIED)
		return 0;
	if (r)
		return r;
	p->path.s = arena_str(p->file_arena, path.s);
	p->version = stat.version;
	p->entry = (struct zip_entry){.name = archive_name(p->file_arena, p->top, str_from(path.s, skip)),
				      .size = stat.size,
				      .time_s = stat.mtime_ns / NS_PER_S,
				      .crc = zip_crc(0, bytes),
				      .offset = p->offset + out->len};
	if (p->is_zip)
		zip_local(out, &p->entry);
	else
		tar_header(out, &(struct tar_entry){p->entry.name, p->entry.size, p->entry.time_s});
	buf_add(out, bytes);
	p->left = stat.size - bytes.len;
	p->count++;
	return 1;
}

static int go_on_with_file(struct pack *p, struct buf *out, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct store_range range = {p->entry.size - p->left, p->left < PIECE ? p->left : PIECE};
	struct ctx ctx = pack_ctx(arena);
	struct store_stat stat;
	struct str bytes;
	int r = store_read(p->files, &ctx, p->path, range, PIECE, &bytes, &stat, err);

	if (r == 0 && (!str_eq(stat.version, p->version) || bytes.len != range.length))
		r = err_set(err, ERR_CONFLICT, "the file changed while it was being sent");
	if (r)
		return r;
	p->entry.crc = zip_crc(p->entry.crc, bytes);
	p->left -= bytes.len;
	buf_add(out, bytes);
	return 0;
}

/* Writes what follows the bytes of a file, and notes it for the end. */
static int end_file(struct pack *p, struct buf *out, struct err *err)
{
	static const char zeros[TAR_BLOCK];
	struct buf line;
	bool stored;

	if (!p->is_zip) {
		buf_add(out, str_n(zeros, tar_padding(p->entry.size)));
		return 0;
	}
	zip_descriptor(out, &p->entry);
	buf_init(&line, p->file_arena, 2 * ZIP_NAME_MAX);
	zip_central(&line, &p->entry);
	if (p->central_fd < 0)
		p->central_fd = httpd_spool(p->serve->httpd, err);
	if (p->central_fd < 0)
		return -(int)err->kind;
	stored = write_whole(p->central_fd, buf_str(&line));
	p->central_size += line.len;
	return stored ? 0 : err_sys(err, errno, "the directory of the archive cannot be stored");
}

/* What comes after all files. */
static int add_end(struct pack *p, struct buf *out, struct err *err)
{
	static const char zeros[TAR_END_LEN];
	size_t want = p->central_size - p->central_sent < PIECE ? p->central_size - p->central_sent : PIECE;
	char *to;

	if (!p->is_zip) {
		buf_add(out, str_n(zeros, TAR_END_LEN));
		p->ended = true;
		return 0;
	}
	to = want ? buf_reserve(out, want) : NULL;
	if (to && pread(p->central_fd, to, want, (off_t)p->central_sent) != (ssize_t)want)
		return err_set(err, ERR_INTERNAL, "the directory of the archive cannot be read back");
	out->len += to ? want : 0;
	p->central_sent += want;
	p->ended = p->central_sent == p->central_size;
	if (p->ended)
		zip_end(out, p->count, p->central_size, p->offset + out->len - p->central_size);
	return 0;
}

/* One step: a part of a file, the beginning of the next, a further page of names, or the end. */
static int step(struct pack *p, struct buf *out, struct err *err)
{
	int r;

	if (p->left) {
		r = go_on_with_file(p, out, err);
		return r || p->left ? r : end_file(p, out, err);
	}
	if (p->next < p->page.count) {
		r = begin_file(p, p->page.entries[p->next++].path, out, err);
		return r != 1 || p->left ? (r == 1 ? 0 : r) : end_file(p, out, err);
	}
	return p->listed ? add_end(p, out, err) : next_page(p, err);
}

static void pack_piece(void *arg)
{
	struct pack *p = arg;
	struct err err = {0};
	struct buf out;
	int r = 0;

	buf_init(&out, NULL, 4 * PIECE);
	while (r == 0 && !p->ended && out.len < PIECE)
		r = step(p, &out, &err);
	p->offset += out.len;
	if (r || out.overflow) {
		stream_end(p->stream, true);
	} else {
		bool is_last = p->ended;

		stream_add(p->stream, buf_str(&out)); /* from here on another thread may make the next piece */
		if (is_last)
			stream_end(p->stream, false);
	}
	buf_release(&out);
	pack_unref(p);
}

static void pack_drained(void *arg)
{
	struct pack *p = arg;

	atomic_fetch_add(&p->refs, 1);
	if (!httpd_submit(p->serve->httpd, p->tenant->owner, pack_piece, p)) {
		stream_end(p->stream, true);
		pack_unref(p);
	}
}

static void pack_gone(void *arg)
{
	pack_unref(arg);
}

static void answer_pack(struct exchange *x, struct wpath root, bool is_zip)
{
	struct web_call *call = call_of(x);
	struct pack *p = xcalloc(1, sizeof(*p));
	struct stream_opts opts = {
		.size = UINT64_MAX, .pending_max = 4 * PIECE, .drained = pack_drained, .gone = pack_gone, .arg = p};
	struct str top = wpath_is_root(root) ? (call->task ? STR("task") : call->workspace) : wpath_name(root);

	p->serve = call->serve;
	p->tenant = tenants_share(call->serve->tenants, call->tenant);
	p->files = store_share(exchange_files(x));
	p->arena = arena_new();
	p->page_arena = arena_new();
	p->file_arena = arena_new();
	p->root.s = arena_str(p->arena, root.s);
	p->top = arena_str(p->arena, top);
	p->is_zip = is_zip;
	p->central_fd = -1;
	atomic_init(&p->refs, 1);
	exchange_add_header(x, "Content-Type", str_of(is_zip ? "application/zip" : "application/x-tar"));
	exchange_add_header(x, "Cache-Control", STR("no-store"));
	exchange_add_header(
		x, "Content-Disposition",
		disposition(x->arena, arena_printf(x->arena, "%.*s.%s", STR_ARG(top), is_zip ? "zip" : "tar")));
	p->stream = exchange_answer_stream(x, 200, &opts);
}

int format_parse(struct str text, bool *ret_is_zip, struct err *err)
{
	if (text.len && !str_is(text, "zip") && !str_is(text, "tar"))
		return err_set(err, ERR_INVALID, "format: \"%.*s\" is not a format; write zip or tar",
			       STR_ARG(utf8_first(text, 40)));
	*ret_is_zip = !str_is(text, "tar");
	return 0;
}

int exchange_download(struct exchange *x, const struct download *what, struct err *err)
{
	struct ctx ctx = exchange_ctx(x);
	struct store_stat stat;
	int r = store_stat(exchange_files(x), &ctx, what->path, &stat, err);

	if (r)
		return r;
	if (stat.kind == STORE_DIR) {
		answer_pack(x, what->path, what->is_zip);
		return 0;
	}
	call_of(x)->is_attachment = !what->is_shown;
	return exchange_get_file(x, what->path, err);
}

void run_download(struct exchange *x)
{
	struct download what = {0};
	struct str format;
	struct err err = {0};
	bool found;
	int r = query_path(x, &what.path, &err);

	if (r == 0)
		r = query_get(x->arena, x->query, "format", &format, &found, &err);
	if (r == 0)
		r = format_parse(format, &what.is_zip, &err);
	if (r == 0)
		r = exchange_download(x, &what, &err);
	if (r)
		answer_error(x, &err);
}
