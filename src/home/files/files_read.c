/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read_file, file_info, exists: looking at one file. A read is by lines (for text) or by bytes (for anything, and for
 * what a cut line left over); either says how much there is in all and where to go on. Whether a file is text is
 * decided by its bytes, never by its name, and binary bytes reach a model only as base64 that it asked for.
 */
#include "base/clock.h"
#include "base/utf8.h"
#include "home/files/files.h"
#include "workspace/past.h"

static int refuse_binary(struct wpath path, uint64_t size, struct err *err)
{
	return err_set(err, ERR_UNSUPPORTED,
		       "read %.*s: the file is binary (%llu bytes, a NUL byte or no UTF-8); read it with encoding "
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
	uint64_t limit =
		arg_count(args, "byte_limit", READ_BYTES_DEFAULT, base64 ? TOOL_TEXT_MAX * 3 / 4 : TOOL_TEXT_MAX);
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

static int read_lines(struct call *call, const struct jv *args, struct wpath path, struct outcome *ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	struct page_req req = {.offset = arg_count(args, "offset", 0, INT64_MAX),
			       .limit = arg_count(args, "limit", READ_LINES_DEFAULT, INT64_MAX),
			       .bytes_max = READ_BYTES_DEFAULT,
			       .line_cut = READ_LINE_CUT,
			       .number = jv_get_bool(args, "line_numbers", false) ? "%6llu\t" : NULL};
	struct page page;
	int r = page_read(call->ctx, call->files, path, &req, &page, err);

	if (r)
		return r;
	if (page.binary)
		return refuse_binary(path, page.stat.size, err);
	if (req.offset > 0 && req.offset >= page.total_lines && page.total_known)
		return err_set(
			err, ERR_INVALID,
			"read %.*s: offset %llu is past the end; the file has %llu line%s (offset counts from 0)",
			STR_ARG(path.s), (unsigned long long)req.offset, (unsigned long long)page.total_lines,
			plural(page.total_lines));
	ret->value = value_file(arena, path, &page.stat);
	jv_set_str(arena, ret->value, "content", page.content);
	jv_set_str(arena, ret->value, "encoding", STR("utf-8"));
	jv_set_int(arena, ret->value, "offset", (int64_t)req.offset);
	jv_set_int(arena, ret->value, "lines", (int64_t)page.lines);
	jv_set_int(arena, ret->value, page.total_known ? "total_lines" : "total_lines_at_least",
		   (int64_t)page.total_lines);
	if (req.offset + page.lines < page.total_lines || !page.total_known)
		jv_set_int(arena, ret->value, "next_offset", (int64_t)(req.offset + page.lines));
	if (page.cut_count)
		add_cuts(arena, ret->value, &page);
	/* nothing to add: the text is the bytes that are there already */
	if (page.content.len && !jv_get(ret->value, "next_offset"))
		ret->text = page.content;
	return 0;
}

static int read_any(struct call *call, const struct jv *args, struct wpath path, struct outcome *ret, struct err *err)
{
	bool base64 = str_is(jv_get_str(args, "encoding"), "base64");

	if (base64 || !jv_is_null(jv_get(args, "byte_offset")) || !jv_is_null(jv_get(args, "byte_limit")))
		return read_bytes(call, args, path, base64, ret, err);
	return read_lines(call, args, path, ret, err);
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
	int r = arg_file(call, args, "path", &path, err);

	if (r == 0)
		r = arg_revision(call, args, "at_revision", &number, &is_past, err);
	if (r)
		return r;
	return is_past ? read_at(call, args, path, number, ret, err) : read_any(call, args, path, ret, err);
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
