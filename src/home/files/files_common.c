/* SPDX-License-Identifier: Apache-2.0 */
/* The lines that make the refusal of a file tool useful. */
#include "home/files/files.h"

void explain_conflict(struct call *call, struct wpath path, struct outcome *ret)
{
	struct store_stat stat;
	struct err ignored;

	if (store_stat(call->files, call->ctx, path, &stat, &ignored) || stat.kind != STORE_FILE)
		ret->detail = STR("The file no longer exists.");
	else
		ret->detail = arena_printf(call->ctx->arena, "The version is \"%.*s\" now; read the file again.",
					   STR_ARG(stat.version));
}

struct str first_lines(struct call *call, struct store *store, struct wpath path)
{
	struct store_range head = {0, 1200};
	struct str bytes, line;
	struct err ignored;
	struct buf buf;

	if (store_read(store, call->ctx, path, head, 1200, &bytes, NULL, &ignored))
		return STR_NONE;
	if (str_find_char(bytes, '\0') < bytes.len)
		return STR("The existing file is binary.");
	if (bytes.len == 0)
		return STR("The existing file is empty.");
	buf_init(&buf, call->ctx->arena, 4 * KIB);
	buf_lit(&buf, "It begins with:\n");
	if (bytes.ptr[bytes.len - 1] == '\n')
		bytes.len--;
	for (int i = 0; i < 5 && str_cut(&bytes, '\n', &line); i++) {
		buf_lit(&buf, "  ");
		buf_add(&buf, utf8_first(line, 200));
		buf_char(&buf, '\n');
	}
	buf.len--;
	return buf_str(&buf);
}
