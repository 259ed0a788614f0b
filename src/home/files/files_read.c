/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read_file, file_info, exists: looking at one file. A read is by lines (for text) or by bytes (for anything, and for
 * what a cut line left over); either says how much there is in all and where to continue. Whether a file is text is
 * decided by its bytes, never by its name, and binary bytes reach a model only as base64 that it asked for.
 */
#include <errno.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "home/files/files.h"
#include "workspace/past.h"

static int refuse_binary(struct wpath path, uint64_t size, struct err *err)
{
	return err_set(err, ERR_UNSUPPORTED,
		       "read %.*s: the file is binary (%llu bytes, not UTF-8 or with NUL bytes); read it with encoding "
		       "\"base64\", or ask file_info about it",
		       STR_ARG(path.s), (unsigned long long)size);
}

/* Moves both ends of a window of UTF-8 text to code points; `before` is how many bytes at the front were dropped. */
static struct str whole_points(struct str bytes, bool at_end, size_t *ret_before)
{
	struct str whole = utf8_skip_inside(bytes);

	*ret_before = bytes.len - whole.len;
	if (!at_end)
		whole.len -= utf8_unfinished(whole);
	return whole;
}

static int read_bytes(struct call *call, const struct jv *args, struct wpath path, bool base64, struct outcome *ret,
		      struct err *err)
{
	struct arena *arena = call->ctx->arena;
	uint64_t offset = arg_count(args, "byte_offset", 0, INT64_MAX);
	/* base64 makes four characters of three bytes */
	uint64_t limit = arg_count(args, "byte_limit", base64 ? READ_BYTES_DEFAULT * 3 / 4 : READ_BYTES_DEFAULT,
				   base64 ? TOOL_TEXT_MAX * 3 / 4 : TOOL_TEXT_MAX);
	struct store_stat stat;
	struct str bytes;
	size_t dropped = 0;
	uint64_t end;
	int r = store_read(call->files, call->ctx, path, (struct store_range){offset, limit}, TOOL_TEXT_MAX, &bytes,
			   &stat, err);

	if (r)
		return r;
	if (offset > stat.size || (offset == stat.size && offset > 0))
		return err_set(err, ERR_INVALID, "read %.*s: byte_offset %llu is past the end; the file has %llu bytes",
			       STR_ARG(path.s), (unsigned long long)offset, (unsigned long long)stat.size);
	end = offset + bytes.len;
	if (!base64) {
		struct str text = whole_points(bytes, end >= stat.size, &dropped);

		if (bytes_are_binary(text))
			return refuse_binary(path, stat.size, err);
		end = offset + dropped + text.len;
		bytes = text;
	}
	ret->value = value_file(arena, path, &stat);
	jv_set_str(arena, ret->value, "content", base64 ? base64_encode(arena, bytes) : bytes);
	jv_set_str(arena, ret->value, "encoding", base64 ? STR("base64") : STR("utf-8"));
	jv_set_int(arena, ret->value, "byte_offset", (int64_t)(offset + dropped));
	jv_set_int(arena, ret->value, "bytes", (int64_t)bytes.len);
	if (end < stat.size)
		jv_set_int(arena, ret->value, "next_byte_offset", (int64_t)end);
	return 0;
}

static void add_cuts(struct arena *arena, struct jv *value, const struct page *page)
{
	struct jv *cuts = jv_array(arena);

	for (size_t i = 0; i < page->cut_count && i < PAGE_CUTS_MAX; i++) {
		struct jv *cut = jv_object(arena);

		jv_set_int(arena, cut, "line", (int64_t)page->cuts[i].line);
		jv_set_int(arena, cut, "byte_offset", (int64_t)page->cuts[i].byte_offset);
		jv_set_int(arena, cut, "bytes_left", (int64_t)page->cuts[i].left);
		jv_push(arena, cuts, cut);
	}
	jv_set(arena, value, "cut_lines", cuts);
}

/* A page of a text that is in memory, by lines. */
static struct str lines_of(struct arena *arena, struct str text, const struct page_req *req, struct page *page)
{
	struct buf out;

	buf_init(&out, arena, text.len * 2 + 64);
	page->lines = page->total_lines = 0;
	page->total_known = true;
	while (text.len) {
		struct str line = str_first(text, str_find_char(text, '\n') + 1);

		if (page->total_lines >= req->offset && page->lines < req->limit && out.len < req->bytes_max) {
			if (req->number)
				buf_printf(&out, "%6llu\t", (unsigned long long)page->total_lines + 1);
			buf_add(&out, line);
			page->lines++;
		}
		page->total_lines++;
		text = str_from(text, line.len);
	}
	return out.len ? buf_str(&out) : STR("");
}

/* A file that is not UTF-8: an image or a sound, or text in another encoding. *ret_name: the encoding of the text that
   is in the page now; NULL: ret->media has it. */
static int read_foreign(struct call *call, struct wpath path, const struct page_req *req, struct page *page,
			const char **ret_name, struct outcome *ret, struct err *err)
{
	const char *mime = mime_of_name(wpath_name(path));
	bool is_media = mime && (strncmp(mime, "image/", 6) == 0 || strncmp(mime, "audio/", 6) == 0);
	size_t max = is_media ? READ_MEDIA_MAX : READ_FOREIGN_MAX;
	struct str bytes, text;
	int r;

	*ret_name = NULL;
	if (page->stat.size > max)
		return refuse_binary(path, page->stat.size, err);
	r = store_read(call->files, call->ctx, path, STORE_WHOLE, max, &bytes, &page->stat, err);
	if (r)
		return r;
	if (is_media) {
		ret->media = (struct media){str_of(mime), base64_encode(call->ctx->arena, bytes), path.s};
		return 0;
	}
	*ret_name = foreign_text(call->ctx->arena, bytes, &text);
	if (!*ret_name)
		return refuse_binary(path, page->stat.size, err);
	page->content = lines_of(call->ctx->arena, text, req, page);
	return 0;
}

/* What the text says of an image or a sound. */
static int give_media(struct call *call, struct wpath path, const struct page *page, struct outcome *ret)
{
	struct arena *arena = call->ctx->arena;

	ret->value = value_file(arena, path, &page->stat);
	jv_set_str(arena, ret->value, "content", STR(""));
	jv_set_str(arena, ret->value, "encoding", STR("media"));
	jv_set_str(arena, ret->value, "mime", ret->media.mime);
	ret->text = arena_printf(arena, "%.*s: %.*s, %llu bytes; encoding base64 gives the bytes", STR_ARG(path.s),
				 STR_ARG(ret->media.mime), (unsigned long long)page->stat.size);
	return 0;
}

static int read_lines(struct call *call, const struct jv *args, struct wpath path, size_t bytes_max,
		      struct outcome *ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	struct page_req req = {.offset = arg_first_line(args),
			       .limit = arg_count(args, "limit", READ_LINES_DEFAULT, INT64_MAX),
			       .bytes_max = bytes_max,
			       .line_cut = READ_LINE_CUT,
			       .number = jv_get_bool(args, "line_numbers", false) ? "%6llu\t" : NULL};
	const char *encoding = "utf-8";
	struct page page;
	int r = page_read(call->ctx, call->files, path, &req, &page, err);

	if (r == 0 && page.binary && str_is(jv_get_str(args, "encoding"), "utf-8"))
		return refuse_binary(path, page.stat.size, err);
	if (r == 0 && page.binary)
		r = read_foreign(call, path, &req, &page, &encoding, ret, err);
	if (r)
		return r;
	if (!encoding)
		return give_media(call, path, &page, ret);
	if (req.offset > 0 && req.offset >= page.total_lines && page.total_known)
		return err_set(err, ERR_INVALID, "read %.*s: line %llu is past the end; the file has %llu line%s",
			       STR_ARG(path.s), (unsigned long long)req.offset + 1,
			       (unsigned long long)page.total_lines, plural(page.total_lines));
	ret->value = value_file(arena, path, &page.stat);
	jv_set_str(arena, ret->value, "content", page.content);
	jv_set_str(arena, ret->value, "encoding", str_of(encoding));
	jv_set_int(arena, ret->value, "offset", (int64_t)req.offset + 1);
	jv_set_int(arena, ret->value, "lines", (int64_t)page.lines);
	jv_set_int(arena, ret->value, page.total_known ? "total_lines" : "total_lines_at_least",
		   (int64_t)page.total_lines);
	if (req.offset + page.lines < page.total_lines || !page.total_known)
		jv_set_int(arena, ret->value, "next_offset", (int64_t)(req.offset + page.lines + 1));
	if (page.cut_count)
		add_cuts(arena, ret->value, &page);
	/* nothing to add: the text is the bytes that are already there */
	if (page.content.len && !jv_get(ret->value, "next_offset"))
		ret->text = page.content;
	return 0;
}

static int read_any(struct call *call, const struct jv *args, struct wpath path, struct outcome *ret, struct err *err)
{
	bool base64 = str_is(jv_get_str(args, "encoding"), "base64");

	if (base64 || !jv_is_null(jv_get(args, "byte_offset")) || !jv_is_null(jv_get(args, "byte_limit")))
		return read_bytes(call, args, path, base64, ret, err);
	return read_lines(call, args, path, READ_BYTES_DEFAULT, ret, err);
}

/* The same reads, on the store of the past. */
static int read_at(struct call *call, const struct jv *args, struct wpath path, uint64_t number, struct outcome *ret,
		   struct err *err)
{
	struct call then = *call;
	struct past_files *past;
	int r = past_settle(call->ws, call->ctx, path, err);

	if (r)
		return r;
	past = workspace_files_at(call->ws, number, &then.files);
	r = read_any(&then, args, path, ret, err);
	workspace_files_at_close(past);
	if (r == 0)
		jv_set_int(call->ctx->arena, ret->value, "revision", (int64_t)number);
	return r;
}

int tool_read_file(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct wpath path;
	uint64_t number;
	bool is_past;
	int r = arg_written_file(call, args, "path", &path, err);

	if (r == 0)
		r = arg_revision(call, args, "at_revision", &number, &is_past, err);
	if (r)
		return r;
	if (!is_past) {
		r = read_any(call, args, path, ret, err);
		if (r != -ERR_DENIED || err->sys != ELOOP)
			return r;
	}
	/* of the past, or through a symbolic link: what counts is the file that the path leads to */
	r = arg_file(call, args, "path", &path, err);
	if (r)
		return r;
	return is_past ? read_at(call, args, path, number, ret, err) : read_any(call, args, path, ret, err);
}

/* One of several files: what read_file gives of it, or the reason why not. *left: bytes that the reply has room for. */
static struct jv *read_one(struct call *call, struct str name, size_t *left)
{
	struct arena *arena = call->ctx->arena;
	struct jv *args = jv_object(arena), *failed = jv_object(arena);
	struct outcome out = {0};
	struct wpath path;
	struct err err;
	size_t size;
	int r;

	jv_set_str(arena, args, "path", name);
	r = arg_file(call, args, "path", &path, &err);
	if (r == 0 && !*left)
		r = err_set(&err, ERR_TOO_LARGE, "the reply is full; read it with another call");
	if (r == 0)
		r = read_lines(call, args, path, *left, &out, &err);
	if (r) {
		jv_set_str(arena, failed, "path", name);
		jv_set_str(arena, failed, "error", err_text(arena, &err));
		return failed;
	}
	size = jv_get_str(out.value, "content").len;
	*left = size + KIB < *left ? *left - size : 0; /* a few lines of the next file are of no use */
	return out.value;
}

int tool_read_files(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	struct jv *files = jv_array(arena);
	size_t left = READ_BYTES_DEFAULT;

	(void)err;
	for (const struct jv_member *m = jv_first(jv_get(args, "paths")); m; m = m->next)
		jv_push(arena, files, read_one(call, jv_str_of(m->value), &left));
	ret->value = jv_object(arena);
	jv_set(arena, ret->value, "files", files);
	return 0;
}

void render_read_files(const struct jv *args, const struct jv *value, struct buf *text)
{
	for (const struct jv_member *m = jv_first(jv_get(value, "files")); m; m = m->next) {
		struct str error = jv_get_str(m->value, "error");

		if (text->len && text->ptr[text->len - 1] != '\n')
			buf_char(text, '\n');
		buf_printf(text, "==> %.*s <==\n", STR_ARG(jv_get_str(m->value, "path")));
		if (error.len)
			buf_printf(text, "[%.*s]", STR_ARG(error));
		else if (str_is(jv_get_str(m->value, "encoding"), "media"))
			buf_lit(text, "[an image or a sound; read_file shows it]");
		else
			render_read_file(args, m->value, text);
	}
}

void render_read_file(const struct jv *args, const struct jv *value, struct buf *text)
{
	struct str content = jv_get_str(value, "content");
	int64_t next_byte = jv_get_int(value, "next_byte_offset", -1), next = jv_get_int(value, "next_offset", -1);
	int64_t total = jv_get_int(value, "total_lines", -1);

	(void)args;
	buf_add(text, content);
	if (content.len == 0)
		buf_printf(text,
			   jv_get_int(value, "size", 0) ? "[no lines in this range; %lld bytes in all]"
							: "[the file is empty: %lld bytes]",
			   (long long)jv_get_int(value, "size", 0));
	if (content.len && content.ptr[content.len - 1] != '\n' && (next >= 0 || next_byte >= 0))
		buf_char(text, '\n');
	if (next_byte >= 0)
		buf_printf(text, "[%lld of %lld bytes; continue with byte_offset %lld]",
			   (long long)jv_get_int(value, "bytes", 0), (long long)jv_get_int(value, "size", 0),
			   (long long)next_byte);
	if (next >= 0 && total >= 0)
		buf_printf(text, "[%lld of %lld lines; continue with offset %lld]",
			   (long long)jv_get_int(value, "lines", 0), (long long)total, (long long)next);
	else if (next >= 0)
		buf_printf(text, "[%lld of more than %lld lines; continue with offset %lld or by byte_offset]",
			   (long long)jv_get_int(value, "lines", 0),
			   (long long)jv_get_int(value, "total_lines_at_least", 0), (long long)next);
}

int tool_exists(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	struct store_stat stat = {0};
	struct wpath path;
	int r = arg_path(call, args, "path", &path, err);

	if (r)
		return r;
	r = store_stat(call->files, call->ctx, path, &stat, err);
	if (r && err->kind != ERR_NOT_FOUND)
		return r;
	ret->value = jv_object(arena);
	jv_set_str(arena, ret->value, "path", path_shown(path));
	jv_set_bool(arena, ret->value, "exists", r == 0);
	if (r == 0)
		jv_set_str(arena, ret->value, "kind", stat.kind == STORE_DIR ? STR("directory") : STR("file"));
	if (r == 0 && stat.kind == STORE_FILE)
		jv_set_str(arena, ret->value, "version", stat.version);
	return 0;
}

void render_exists(const struct jv *args, const struct jv *value, struct buf *text)
{
	(void)args;
	if (jv_get_bool(value, "exists", false)) {
		buf_lit(text, "yes, a ");
		buf_add(text, jv_get_str(value, "kind"));
	} else {
		buf_lit(text, "no");
	}
}
