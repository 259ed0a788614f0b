/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The workspace's files as resources. They are read through the same guarded store that the file tools see, so what a
 * tool cannot name cannot be read here either. Text or binary is decided by content; the name only gives the MIME type
 * that a client may show.
 */
#include "base/base64.h"
#include "base/limits.h"
#include "find/find.h"
#include "mcp/server.h"

#define PAGE 500
/* Files change at any time, also by other programs: a client should ask again. */
#define TTL_FILES_MS     0
#define TTL_TEMPLATES_MS 3600000

struct mime {
	const char *ext, *type;
};

static const struct mime mimes[] = {
	{"css", "text/css"},         {"csv", "text/csv"},          {"gif", "image/gif"},
	{"html", "text/html"},       {"jpeg", "image/jpeg"},       {"jpg", "image/jpeg"},
	{"js", "text/javascript"},   {"json", "application/json"}, {"md", "text/markdown"},
	{"mp3", "audio/mpeg"},       {"pdf", "application/pdf"},   {"png", "image/png"},
	{"svg", "image/svg+xml"},    {"txt", "text/plain"},        {"wav", "audio/wav"},
	{"webp", "image/webp"},      {"xml", "application/xml"},   {"yaml", "application/yaml"},
	{"yml", "application/yaml"}, {"zip", "application/zip"},
};

/* NULL when the name does not say. */
static const char *mime_of(struct wpath path)
{
	struct str name = wpath_name(path);
	size_t dot = str_rfind_char(name, '.');

	if (dot < name.len)
		for (size_t i = 0; i < COUNT(mimes); i++)
			if (str_eq_nocase(str_from(name, dot + 1), str_of(mimes[i].ext)))
				return mimes[i].type;
	return NULL;
}

static struct jv *describe(struct arena *arena, struct wpath path)
{
	struct jv *r = jv_object(arena);
	const char *mime = mime_of(path);

	jv_set_str(arena, r, "uri", uri_format(arena, path.s));
	jv_set_str(arena, r, "name", path.s);
	if (mime)
		jv_set_str(arena, r, "mimeType", str_of(mime));
	return r;
}

static int list_workspace(struct request *req, struct ctx *ctx, struct str after, struct jv *list, struct str *ret_next,
			  struct err *err)
{
	struct store_list_req list_req = {.recursive = true, .limit = PAGE, .after = after};
	struct store_page page;
	int r = store_list(workspace_files(req->server->ws), ctx, WPATH_ROOT, &list_req, &page, err);

	if (r)
		return r;
	for (size_t i = 0; i < page.count; i++) {
		struct jv *item = describe(req->arena, page.entries[i].path);

		jv_set_int(req->arena, item, "size", (int64_t)page.entries[i].stat.size);
		jv_push(req->arena, list, item);
	}
	*ret_next = page.next;
	return 0;
}

/* In a directory of the person's own, what .gitignore leaves out would drown the rest. */
static int list_own(struct request *req, struct ctx *ctx, struct str after, struct jv *list, struct str *ret_next,
		    struct err *err)
{
	struct glob_req glob_req = {.pattern = STR("**"), .use_ignore = true, .limit = PAGE, .cursor = after};
	struct glob_result found;
	int r = find_glob(workspace_files(req->server->ws), ctx, &glob_req, NULL, NULL, &found, err);

	if (r)
		return r;
	for (size_t i = 0; i < found.count; i++)
		jv_push(req->arena, list, describe(req->arena, (struct wpath){found.paths[i]}));
	*ret_next = found.next;
	return 0;
}

/* Cursors of the store are bytes; on the wire they are hex, so that any of them is a string. */
static struct str cursor_format(struct arena *arena, struct str bytes)
{
	static const char hex[] = "0123456789abcdef";
	char *text = arena_alloc_raw(arena, 2 * bytes.len + 1);

	for (size_t i = 0; i < bytes.len; i++) {
		text[2 * i] = hex[(unsigned char)bytes.ptr[i] >> 4];
		text[2 * i + 1] = hex[(unsigned char)bytes.ptr[i] & 15];
	}
	return str_n(text, 2 * bytes.len);
}

static bool cursor_parse(struct arena *arena, struct str text, struct str *ret)
{
	char *bytes = arena_alloc_raw(arena, text.len / 2 + 1);

	if (text.len % 2)
		return false;
	for (size_t i = 0; i < text.len; i++) {
		const char *digits = "0123456789abcdef", *at = memchr(digits, text.ptr[i], 16);

		if (!at)
			return false;
		if (i % 2)
			bytes[i / 2] = (char)(bytes[i / 2] | (at - digits));
		else
			bytes[i / 2] = (char)((at - digits) << 4);
	}
	*ret = str_n(bytes, text.len / 2);
	return true;
}

void method_resources_list(struct request *req)
{
	const struct jv *cursor = jv_get(req->params, "cursor");
	struct jv *result = jv_object(req->arena), *list = jv_array(req->arena);
	struct str after = STR_NONE, next = STR_NONE;
	struct ctx ctx = request_ctx(req);
	struct err err;
	int r;

	if (!jv_is_null(cursor) && (cursor->type != JV_STR || !cursor_parse(req->arena, cursor->u.s, &after))) {
		reply_error(req, RPC_INVALID_PARAMS, NULL,
			    "the cursor does not belong to this list; start without one");
		return;
	}
	if (workspace_files_are_own(req->server->ws))
		r = list_own(req, &ctx, after, list, &next, &err);
	else
		r = list_workspace(req, &ctx, after, list, &next, &err);
	if (r) {
		reply_store_error(req, STR("stead:///"), &err);
		return;
	}
	jv_set(req->arena, result, "resources", list);
	if (next.ptr)
		jv_set_str(req->arena, result, "nextCursor", cursor_format(req->arena, next));
	reply_cache_hint(req, result, TTL_FILES_MS);
	reply_value(req, result);
}

void method_templates_list(struct request *req)
{
	struct jv *result = jv_object(req->arena), *list = jv_array(req->arena), *t = jv_object(req->arena);

	if (jv_get_str(req->params, "cursor").len) {
		reply_error(req, RPC_INVALID_PARAMS, NULL,
			    "the cursor does not belong to this list; start without one");
		return;
	}
	jv_set_str(req->arena, t, "uriTemplate", STR(URI_TEMPLATE));
	jv_set_str(req->arena, t, "name", STR("file"));
	jv_set_str(req->arena, t, "title", STR("A file or directory of the workspace"));
	jv_set_str(req->arena, t, "description",
		   STR("The bytes of a file, as text if they are text, or the names in a directory. The path is "
		       "relative to the root of the workspace."));
	jv_push(req->arena, list, t);
	jv_set(req->arena, result, "resourceTemplates", list);
	reply_cache_hint(req, result, TTL_TEMPLATES_MS);
	reply_value(req, result);
}

static int read_dir(struct request *req, struct ctx *ctx, struct wpath path, struct jv *item, struct err *err)
{
	struct store_list_req list_req = {.limit = LIST_LIMIT_MAX};
	struct store_page page;
	struct buf text;
	int r = store_list(workspace_files(req->server->ws), ctx, path, &list_req, &page, err);

	if (r)
		return r;
	buf_init(&text, req->arena, MCP_RESOURCE_MAX);
	for (size_t i = 0; i < page.count; i++) {
		buf_add(&text, wpath_name(page.entries[i].path));
		buf_add(&text, page.entries[i].stat.kind == STORE_DIR ? STR("/\n") : STR("\n"));
	}
	if (page.next.ptr)
		buf_printf(&text, "(the first %d names; the directory holds more)\n", LIST_LIMIT_MAX);
	jv_set_str(req->arena, item, "mimeType", STR("inode/directory"));
	jv_set_str(req->arena, item, "text", text.ptr ? buf_str(&text) : STR(""));
	return 0;
}

static int read_file(struct request *req, struct ctx *ctx, struct wpath path, struct jv *item, struct err *err)
{
	const char *mime = mime_of(path);
	struct str bytes;
	int r = store_read(workspace_files(req->server->ws), ctx, path, STORE_WHOLE, MCP_RESOURCE_MAX, &bytes, NULL,
			   err);

	if (r)
		return r;
	if (utf8_valid(bytes) && str_find_char(bytes, '\0') == bytes.len) {
		jv_set_str(req->arena, item, "mimeType", str_of(mime ? mime : "text/plain"));
		jv_set_str(req->arena, item, "text", bytes.ptr ? bytes : STR(""));
	} else {
		jv_set_str(req->arena, item, "mimeType", str_of(mime ? mime : "application/octet-stream"));
		jv_set_str(req->arena, item, "blob", base64_encode(req->arena, bytes));
	}
	return 0;
}

void method_resources_read(struct request *req)
{
	struct str uri = jv_get_str(req->params, "uri");
	struct jv *result = jv_object(req->arena), *list = jv_array(req->arena), *item = jv_object(req->arena);
	struct ctx ctx = request_ctx(req);
	struct store_stat stat;
	struct wpath path;
	struct err err;
	int r = uri_parse(req->arena, uri, &path, &err);

	if (r == 0)
		r = store_stat(workspace_files(req->server->ws), &ctx, path, &stat, &err);
	if (r == 0) {
		jv_set_str(req->arena, item, "uri", uri);
		r = stat.kind == STORE_DIR ? read_dir(req, &ctx, path, item, &err)
					   : read_file(req, &ctx, path, item, &err);
	}
	if (r) {
		reply_store_error(req, uri, &err);
		return;
	}
	jv_push(req->arena, list, item);
	jv_set(req->arena, result, "contents", list);
	reply_cache_hint(req, result, TTL_FILES_MS);
	reply_value(req, result);
}
