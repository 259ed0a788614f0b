/* SPDX-License-Identifier: Apache-2.0 */
/* A whole tool: counts the words of a text file. See ../adding-a-tool.md. */
#include <ctype.h>

#include "home/files/files.h"

static int tool_count_words(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	struct store_stat stat;
	struct wpath path;
	struct str bytes;
	int64_t words = 0;
	int r = arg_file(call, args, "path", &path, err);

	if (r == 0)
		r = store_read(call->files, call->ctx, path, STORE_WHOLE, TOOL_FILE_MAX, &bytes, &stat, err);
	if (r)
		return r;
	if (bytes_are_binary(bytes))
		return err_set(err, ERR_UNSUPPORTED, "count words of %.*s: the file is binary; name a text file",
			       STR_ARG(path.s));
	for (size_t i = 0; i < bytes.len; i++)
		words += !isspace((unsigned char)bytes.ptr[i]) && (i == 0 || isspace((unsigned char)bytes.ptr[i - 1]));
	ret->value = value_file(arena, path, &stat);
	jv_set_int(arena, ret->value, "words", words);
	return 0;
}

static void render_count_words(const struct jv *args, const struct jv *value, struct buf *text)
{
	(void)args;
	buf_printf(text, "%lld words in %.*s", (long long)jv_get_int(value, "words", 0),
		   STR_ARG(jv_get_str(value, "path")));
}

const struct tool example_count_words = {
	.name = "count_words",
	.title = "Count words",
	.description = "Counts the words of a text file.",
	.args = "path!: path from the tool root, for example notes/plan.md",
	.result = "path!; size! int; version!; words! int",
	.traits = TOOL_READS_ONLY | TOOL_IDEMPOTENT,
	.call = tool_count_words,
	.render = render_count_words,
};
