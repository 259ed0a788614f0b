/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completion of paths: the names in the directory that the value so far names, which begin as its last element does.
 * Directories end in '/', so that a client can ask on.
 */
#include "base/limits.h"
#include "mcp/server.h"

#define VALUES_MAX 100

struct matches {
	struct jv *values;
	int64_t total;
	bool more;
};

static int collect(struct request *req, struct str dir_text, struct str prefix, struct matches *ret, struct err *err)
{
	struct store_list_req list_req = {.limit = LIST_LIMIT_MAX};
	struct ctx ctx = request_ctx(req);
	struct arena *arena = req->arena;
	struct store_page page;
	struct wpath dir;
	int r = wpath_parse_lenient(arena, dir_text, &dir, err);

	if (r == 0)
		r = store_list(workspace_files(req->server->ws), &ctx, dir, &list_req, &page, err);
	if (r)
		return r;
	for (size_t i = 0; i < page.count; i++) {
		struct str name = wpath_name(page.entries[i].path);
		const char *end = page.entries[i].stat.kind == STORE_DIR ? "/" : "";

		if (!str_starts(name, prefix) || ret->total++ >= VALUES_MAX)
			continue;
		jv_push(arena, ret->values,
			jv_str(arena, arena_printf(arena, "%.*s%.*s%s", STR_ARG(dir_text), STR_ARG(name), end)));
	}
	ret->more = ret->total > VALUES_MAX || page.next.ptr;
	return 0;
}

/* Only the path of the template can be completed; answers and returns false for anything else. */
static bool check_ref(struct request *req)
{
	const struct jv *ref = jv_get(req->params, "ref"), *argument = jv_get(req->params, "argument");
	const struct jv *name = jv_get(argument, "name"), *value = jv_get(argument, "value");

	if (!name || name->type != JV_STR || !value || value->type != JV_STR) {
		reply_error(req, RPC_INVALID_PARAMS, NULL,
			    "params.argument must have a name and a value, both strings");
		return false;
	}
	if (!str_is(jv_get_str(ref, "type"), "ref/resource") || !str_is(jv_get_str(ref, "uri"), URI_TEMPLATE)) {
		reply_error(req, RPC_INVALID_PARAMS, NULL,
			    "only {\"type\":\"ref/resource\",\"uri\":\"%s\"} can be completed", URI_TEMPLATE);
		return false;
	}
	if (!str_is(name->u.s, "path")) {
		reply_error(req, RPC_INVALID_PARAMS, NULL, "the template %s has one argument, \"path\"", URI_TEMPLATE);
		return false;
	}
	return true;
}

void method_complete(struct request *req)
{
	struct jv *result = jv_object(req->arena), *completion = jv_object(req->arena);
	struct matches found = {.values = jv_array(req->arena)};
	struct str value;
	size_t slash;
	struct err err;

	if (!check_ref(req))
		return;
	value = jv_get_str(jv_get(req->params, "argument"), "value");
	slash = str_rfind_char(value, '/');
	slash = slash < value.len ? slash + 1 : 0;
	/* a directory that is not there, or cannot be named, has nothing to offer */
	if (collect(req, str_first(value, slash), str_from(value, slash), &found, &err) != 0)
		found = (struct matches){.values = jv_array(req->arena)};
	jv_set(req->arena, completion, "values", found.values);
	jv_set_int(req->arena, completion, "total", found.total);
	jv_set_bool(req->arena, completion, "hasMore", found.more);
	jv_set(req->arena, result, "completion", completion);
	reply_value(req, result);
}
