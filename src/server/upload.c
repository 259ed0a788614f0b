/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several files in one request, as a form of a browser or `curl -F` sends them. Each is written whole; they are not one
 * step, but they are one call: `undo` takes all of them back. The names are checked before the first is written.
 */
#include "base/limits.h"
#include "server/multipart.h"
#include "server/server_internal.h"
#include "text/jv.h"

/* Where a part goes: below `dir`, by the name that the client gives it. */
static int part_path(struct exchange *x, struct wpath dir, const struct part *part, struct wpath *ret, struct err *err)
{
	struct str name = part->filename;

	if (!name.len || name.ptr[0] == '/')
		return err_set(err, ERR_INVALID, "a file of the form has no usable name; give it one");
	if (!wpath_is_root(dir))
		name = arena_printf(x->arena, "%.*s/%.*s", STR_ARG(dir.s), STR_ARG(name));
	return wpath_parse(name, ret, err); /* strict: no "." or "..", so it is below `dir` */
}

static int write_parts(struct exchange *x, const struct part *parts, const struct wpath *paths, size_t count,
		       struct jv *list, struct err *err)
{
	struct ctx ctx = exchange_change_ctx(x);

	for (size_t i = 0; i < count; i++) {
		struct source source = {.bytes = parts[i].bytes};
		struct jv *one = jv_object(x->arena);
		struct store_stat stat;
		int r;

		if (!parts[i].filename.ptr)
			continue;
		r = store_write_stream(exchange_files(x), &ctx, paths[i], &source, (struct store_cond){0}, &stat, err);
		if (r)
			return r;
		jv_set_str(x->arena, one, "path", paths[i].s);
		jv_set_int(x->arena, one, "size", (int64_t)stat.size);
		jv_set_str(x->arena, one, "version", stat.version);
		jv_push(x->arena, list, one);
	}
	return 0;
}

static int take_form(struct exchange *x, const struct body_view *body, struct str boundary, struct jv *list,
		     struct err *err)
{
	struct part *parts;
	struct wpath dir, *paths;
	size_t count;
	int r = query_path(x, &dir, err);

	if (r == 0)
		r = multipart_parse(x->arena, body->text, boundary, &parts, &count, err);
	if (r)
		return r;
	paths = ARENA_ARRAY(x->arena, struct wpath, count + 1);
	for (size_t i = 0; r == 0 && i < count; i++)
		if (parts[i].filename.ptr)
			r = part_path(x, dir, &parts[i], &paths[i], err);
	return r ? r : write_parts(x, parts, paths, count, list, err);
}

void run_files_post(struct exchange *x)
{
	struct str boundary = multipart_boundary(x->arena, exchange_header(x, "Content-Type"));
	struct jv *v = jv_object(x->arena), *list = jv_array(x->arena);
	struct body_view body = {0};
	struct err err = {0};
	int r = 0;

	if (!boundary.ptr)
		r = err_set(&err, ERR_INVALID,
			    "send several files as multipart/form-data, or PUT one to its own address");
	if (r == 0)
		r = body_map(x, &body, &err);
	if (r == 0)
		r = take_form(x, &body, boundary, list, &err);
	if (r == 0 && !jv_count(list))
		r = err_set(&err, ERR_INVALID, "the form has no file in it");
	if (r) {
		answer_error(x, &err);
	} else {
		jv_set(x->arena, v, "files", list);
		answer_json(x, 201, v);
	}
	body_unmap(&body);
}
