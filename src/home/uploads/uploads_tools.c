/* SPDX-License-Identifier: Apache-2.0 */
/* save_upload, list_uploads, read_upload: uploads/ lies outside of what native file tools see. */
#include "home/uploads/uploads_tools.h"

#include "base/base64.h"
#include "home/files/home_page.h"
#include "home/uploads/uploads.h"
#include "tool/call.h"
#include "tool/family.h"
#include "tool/schemas.h"

static int save_bytes(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct upload upload = {.name = jv_get_str(args, "name"), .mime = jv_get_str(args, "mime")};

	if (!base64_decode(call->ctx->arena, jv_get_str(args, "content"), &upload.source.bytes))
		return err_set(err, ERR_INVALID, "content is not base64");
	upload.size = upload.source.bytes.len;
	return upload_save(call->ws, call->ctx, &upload, &ret->value, err);
}

/* A file of the tool's own area. */
static int save_file(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct upload upload = {.name = jv_get_str(args, "name"), .mime = jv_get_str(args, "mime")};
	struct wpath path;
	int r = arg_file(call, args, "path", &path, err);

	if (r == 0)
		r = store_read(call->files, call->ctx, path, STORE_WHOLE, TOOL_FILE_MAX, &upload.source.bytes, NULL,
			       err);
	if (r)
		return r;
	if (!upload.name.len)
		upload.name = wpath_name(path);
	upload.size = upload.source.bytes.len;
	return upload_save(call->ws, call->ctx, &upload, &ret->value, err);
}

static int tool_save_upload(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	if (!jv_get(args, "content") == !jv_get(args, "path"))
		return err_set(err, ERR_INVALID, "give either content (base64) or path");
	if (jv_get(args, "content") && !jv_get_str(args, "name").len)
		return err_set(err, ERR_INVALID, "name is missing; what is the file called?");
	return jv_get(args, "content") ? save_bytes(call, args, ret, err) : save_file(call, args, ret, err);
}

static void render_saved(const struct jv *args, const struct jv *value, struct buf *text)
{
	(void)args;
	buf_add(text, jv_get_str(value, "receipt"));
}

static int tool_list_uploads(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	return upload_list(call->ws, call->ctx, jv_get_str(args, "day"),
			   (size_t)arg_count(args, "limit", 100, LIST_LIMIT_DEFAULT), &ret->value, err);
}

static void render_list(const struct jv *args, const struct jv *value, struct buf *text)
{
	(void)args;
	if (!jv_count(jv_get(value, "files")))
		buf_lit(text, "there are no uploads");
	for (const struct jv_member *m = jv_first(jv_get(value, "files")); m; m = m->next) {
		buf_printf(text, "%s%.*s (", text->len ? "\n" : "", STR_ARG(jv_get_str(m->value, "path")));
		buf_size(text, (uint64_t)jv_get_int(m->value, "size", 0));
		buf_char(text, ')');
	}
	if (jv_get_bool(value, "more", false))
		buf_lit(text, "\n[there are more: give a day, or a larger limit]");
}

static int tool_read_upload(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	struct wpath path;
	int r = upload_path(arena, jv_get_str(args, "path"), &path, err);

	if (r)
		return r;
	ret->value = jv_object(arena);
	jv_set_str(arena, ret->value, "path", path.s);
	return home_read_page(call, workspace_home(call->ws), path, args, ret->value, err);
}

/* clang-format off */
static const struct tool native[] = {
	{.name = "save_upload", .title = "Save an upload", .group = "uploads", .call = tool_save_upload,
	 .render = render_saved, .traits = TOOL_LONG,
	 .description = "Keeps a file that somebody sent, under a safe name and today's date, and makes its text where a "
		"converter is set up for its kind.",
	 .input_schema = S_OBJ(
		S_STR("name", "what the sender calls it") AND
		S_STR("content", "its bytes, base64") AND
		S_STR("path", "or a file of yours to keep as an upload") AND
		S_STR("mime", "its MIME type, if known"), ""),
	 .output_schema = S_OBJ(
		S_BARE("path", "string") AND S_BARE("name", "string") AND S_BARE("original_name", "string") AND
		S_BARE("size", "integer") AND S_BARE("mime", "string") AND
		"\"text\":" S_OBJ(S_BARE("path", "string") AND S_BARE("size", "integer"), "\"path\"") AND
		S_STR("note", "why there is no text of it") AND S_STR("receipt", "lines to tell the agent"),
		"\"path\",\"name\",\"size\",\"mime\",\"receipt\"")},
	{.name = "list_uploads", .title = "List uploads", .group = "uploads", .call = tool_list_uploads,
	 .render = render_list, .traits = RO,
	 .description = "Files that were sent, the newest day first.",
	 .input_schema = S_OBJ(S_STR("day", "only of this day, YYYY-MM-DD") AND S_INT1("limit", "default 100"), ""),
	 .output_schema = S_OBJ(
		S_LIST("files", S_OBJ(S_BARE("path", "string") AND S_BARE("size", "integer") AND S_BARE("modified", "string"),
			"\"path\",\"size\""), "by day") AND S_BARE("more", "boolean"), "\"files\",\"more\"")},
	{.name = "read_upload", .title = "Read an upload", .group = "uploads", .call = tool_read_upload,
	 .render = render_home_page, .traits = RO,
	 .description = "Reads a file of list_uploads, by pages of lines; small files that are no text as base64.",
	 .input_schema = S_OBJ(S_STR("path", "of list_uploads") AND S_PAGE, "\"path\""),
	 .output_schema = S_OBJ(S_BARE("path", "string") AND R_PAGE, "\"path\",\"content\"")},
	{0},
};
/* clang-format on */

const struct family uploads_family = {
	.name = "uploads",
	.tools = native,
	.commands = uploads_commands,
};
