/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small things that handlers of every family and dialect do alike: a path from the arguments, the condition, the common
 * part of a result. They are written once so that the tools cannot differ in them.
 */
#include "tool/call.h"

#include "workspace/past.h"

typedef int path_reader(const struct workspace *ws, struct arena *arena, struct str text, struct wpath *ret,
			struct err *err);

static int read_path(struct call *call, const struct jv *args, const char *key, path_reader *reader, struct wpath *ret,
		     struct err *err)
{
	struct str text = jv_get_str(args, key);

	if (text.len && text.ptr[0] == '~')
		return err_set(err, ERR_INVALID,
			       "the path \"%.*s\" starts with \"~\"; paths are relative to the tool root",
			       STR_ARG(utf8_first(text, 200)));
	if (text.len == 0) {
		*ret = WPATH_ROOT;
		return 0;
	}
	return reader(call->ws, call->ctx->arena, text, ret, err);
}

static int refuse_root(struct wpath path, const char *key, struct err *err)
{
	if (!wpath_is_root(path))
		return 0;
	return err_set(err, ERR_INVALID, "\"%s\" is empty or the root; name a file, for example notes/plan.md", key);
}

int arg_path(struct call *call, const struct jv *args, const char *key, struct wpath *ret, struct err *err)
{
	return read_path(call, args, key, workspace_path, ret, err);
}

int arg_file(struct call *call, const struct jv *args, const char *key, struct wpath *ret, struct err *err)
{
	int r = arg_path(call, args, key, ret, err);

	return r ? r : refuse_root(*ret, key, err);
}

int arg_written_file(struct call *call, const struct jv *args, const char *key, struct wpath *ret, struct err *err)
{
	int r = read_path(call, args, key, workspace_written_path, ret, err);

	return r ? r : refuse_root(*ret, key, err);
}

struct store_cond arg_cond(const struct jv *args)
{
	struct str version = jv_get_str(args, "if_version");

	if (!version.ptr)
		return (struct store_cond){0};
	return (struct store_cond){.kind = STORE_VERSION, .version = version};
}

uint64_t arg_count(const struct jv *args, const char *key, uint64_t fallback, uint64_t max)
{
	int64_t n = jv_get_int(args, key, -1);
	uint64_t count = n < 0 ? fallback : (uint64_t)n;

	return count > max ? max : count;
}

uint64_t arg_first_line(const struct jv *args)
{
	uint64_t line = arg_count(args, "offset", 1, INT64_MAX);

	return line ? line - 1 : 0;
}

struct jv *value_file(struct arena *arena, struct wpath path, const struct store_stat *stat)
{
	struct jv *v = jv_object(arena);

	jv_set_str(arena, v, "path", path_shown(path));
	jv_set_int(arena, v, "size", (int64_t)stat->size);
	jv_set_str(arena, v, "version", stat->version);
	return v;
}

struct str path_shown(struct wpath path)
{
	return wpath_is_root(path) ? STR("/") : path.s;
}

void buf_size(struct buf *buf, uint64_t bytes)
{
	static const char *const units[] = {"KB", "MB", "GB", "TB"};
	double scaled = (double)bytes / 1024;
	size_t unit = 0;

	if (bytes < 1024) {
		buf_printf(buf, "%llu B", (unsigned long long)bytes);
		return;
	}
	while (scaled >= 1024 && unit < 3) {
		scaled /= 1024;
		unit++;
	}
	buf_printf(buf, "%.1f %s", scaled, units[unit]);
}

const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

struct str value_count(struct arena *arena, const struct jv *value, const char *key, const char *noun)
{
	int64_t n = jv_get_int(value, key, 0);

	return arena_printf(arena, "%lld %s%s", (long long)n, noun, plural((uint64_t)n));
}

bool bytes_are_binary(struct str bytes)
{
	return str_find_char(bytes, '\0') < bytes.len || !utf8_valid(bytes);
}

struct jv *args_map(struct arena *arena, const struct jv *args, const char *const *pairs)
{
	struct jv *out = jv_object(arena);

	for (; pairs[0]; pairs += 2) {
		const struct jv *v = jv_get(args, pairs[0]);

		if (!jv_is_null(v))
			jv_set(arena, out, pairs[1], (struct jv *)v);
	}
	return out;
}

void text_reply(struct outcome *ret, const struct buf *text)
{
	ret->value = NULL;
	ret->text = text->ptr ? buf_str(text) : STR("");
}

int arg_revision(struct call *call, const struct jv *args, const char *key, uint64_t *ret, bool *ret_given,
		 struct err *err)
{
	const struct jv *v = jv_get(args, key);
	struct str text = jv_str_of(v);

	*ret_given = !jv_is_null(v);
	if (!*ret_given)
		return 0;
	if (v->type == JV_INT)
		text = arena_printf(call->ctx->arena, "%lld", (long long)v->u.i);
	return past_revision(call->ws, call->ctx, text, ret, err);
}
