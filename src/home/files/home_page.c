/* SPDX-License-Identifier: Apache-2.0 */
#include "home/files/home_page.h"

#include "home/files/files.h"

static int read_binary(struct call *call, struct store *store, struct wpath path, uint64_t size, struct jv *value,
		       struct err *err)
{
	struct arena *arena = call->ctx->arena;
	struct str bytes;
	int r;

	if (size > READ_BYTES_DEFAULT)
		return err_set(err, ERR_UNSUPPORTED,
			       "%.*s is not text and has %llu bytes; at most %zu bytes are given as base64",
			       STR_ARG(path.s), (unsigned long long)size, READ_BYTES_DEFAULT);
	r = store_read(store, call->ctx, path, STORE_WHOLE, READ_BYTES_DEFAULT, &bytes, NULL, err);
	if (r)
		return r;
	jv_set_str(arena, value, "content", base64_encode(arena, bytes));
	jv_set_str(arena, value, "encoding", STR("base64"));
	return 0;
}

int home_read_page(struct call *call, struct store *store, struct wpath path, const struct jv *args, struct jv *value,
		   struct err *err)
{
	struct arena *arena = call->ctx->arena;
	struct page_req req = {.offset = arg_first_line(args),
			       .limit = arg_count(args, "limit", READ_LINES_DEFAULT, INT64_MAX),
			       .bytes_max = READ_BYTES_DEFAULT,
			       .line_cut = READ_LINE_CUT};
	struct page page;
	int r = page_read(call->ctx, store, path, &req, &page, err);

	if (r)
		return r;
	jv_set_int(arena, value, "size", (int64_t)page.stat.size);
	if (page.binary)
		return read_binary(call, store, path, page.stat.size, value, err);
	jv_set_str(arena, value, "content", page.content);
	jv_set_int(arena, value, "lines", (int64_t)page.lines);
	if (page.total_known)
		jv_set_int(arena, value, "total_lines", (int64_t)page.total_lines);
	if (page.lines && (!page.total_known || req.offset + page.lines < page.total_lines))
		jv_set_int(arena, value, "next_offset", (int64_t)(req.offset + page.lines + 1));
	return 0;
}

void render_home_page(const struct jv *args, const struct jv *value, struct buf *text)
{
	(void)args;
	if (jv_get(value, "encoding"))
		buf_lit(text, "base64:");
	buf_add(text, jv_get_str(value, "content"));
	if (jv_get(value, "next_offset"))
		buf_printf(text, "\n[continues at offset=%lld]", (long long)jv_get_int(value, "next_offset", 0));
}
