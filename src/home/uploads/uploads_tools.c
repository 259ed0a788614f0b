/* SPDX-License-Identifier: Apache-2.0 */
/* save_upload, list_uploads, read_upload: uploads/ is outside the tool root of the file tools. */
#include "base/base64.h"
#include "home/files/home_page.h"
#include "home/uploads/uploads.h"
#include "tool/call.h"
#include "tool/family.h"

static int save_bytes(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct upload upload = {.name = jv_get_str(args, "name"), .mime = jv_get_str(args, "mime")};

	if (!base64_decode(call->ctx->arena, jv_get_str(args, "content"), &upload.source.bytes))
		return err_set(err, ERR_INVALID, "content is not base64; encode the bytes of the file in base64");
	upload.size = upload.source.bytes.len;
	return upload_save(call->ws, call->ctx, &upload, &ret->value, err);
}

/* From a file below the tool root. */
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
		return err_set(err, ERR_INVALID, "give either \"content\" (base64) or \"path\"");
	if (jv_get(args, "content") && !jv_get_str(args, "name").len)
		return err_set(err, ERR_INVALID, "\"name\" is missing; give the sender's name for the file");
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
		buf_lit(text, "\n[there are more; set day or a larger limit]");
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
	{
		.name = "save_upload", .title = "Save an upload", .traits = TOOL_LONG, .call = tool_save_upload,
		.needs = "read_file",
		.render = render_saved,
		.description =
			"Saves a file that someone sent, under a safe name and today's date, and extracts its text if a "
			"converter for its type is configured.",
		.args =
			"name: the sender's name for the file\n"
			"content: its bytes, in base64\n"
			"path: or the path of a file to save as an upload\n"
			"mime: its MIME type, if known",
		.result =
			"path!; name!; original_name; size! int; mime!; text {path!; size int}\n"
			"note: why there is no text\n"
			"receipt!: text for the agent",
	},
	{
		.name = "list_uploads", .title = "List uploads", .traits = RO, .call = tool_list_uploads,
		.render = render_list,
		.description = "Lists the files that were sent, newest day first.",
		.args =
			"day: only uploads of this day, YYYY-MM-DD\n"
			"limit int>=1: number of files (default 100)",
		.result =
			"files! [{path!; size! int; modified}]: by day\n"
			"more! bool",
	},
	{
		.name = "read_upload", .title = "Read an upload", .traits = RO, .call = tool_read_upload,
		.render = render_home_page,
		.description = "Reads an upload by lines, or a small binary file as base64.",
		.args =
			"path!: path from list_uploads\n"
			PAGE_ARGS,
		.result = "path!; " PAGE_RESULT,
	},
	{0},
};
/* clang-format on */

const struct family uploads_family = {
	.name = "uploads",
	.about = "Files from people, in uploads/.",
	.tools = native,
	.commands = uploads_commands,
};
