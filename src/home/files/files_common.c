/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The small things that every file tool does alike: a path from the arguments, the condition, the common part of a
 * result, and the lines that make a refusal useful. They stand here once so that the tools cannot differ in them.
 */
#include "home/files/files.h"

int arg_path(struct call *call, const struct jv *args, const char *key, struct wpath *ret, struct err *err)
{
	struct str text = jv_get_str(args, key);

	if (text.len && text.ptr[0] == '~')
		return err_set(err, ERR_INVALID,
			       "the path \"%.*s\" starts with \"~\"; paths are relative to the tool root",
			       STR_ARG(str_first(text, 200)));
	if (text.len == 0) {
		*ret = WPATH_ROOT;
		return 0;
	}
	return wpath_parse_lenient(call->ctx->arena, text, ret, err);
}

int arg_file(struct call *call, const struct jv *args, const char *key, struct wpath *ret, struct err *err)
{
	int r = arg_path(call, args, key, ret, err);

	if (r == 0 && wpath_is_root(*ret))
		return err_set(err, ERR_INVALID, "\"%s\" is empty or the root; name a file, for example notes/plan.md",
			       key);
	return r;
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

void explain_conflict(struct call *call, struct wpath path, struct outcome *ret)
{
	struct store_stat stat;
	struct err ignored;

	if (store_stat(call->files, call->ctx, path, &stat, &ignored) || stat.kind != STORE_FILE)
		ret->detail = STR("The file is not there any more.");
	else
		ret->detail = arena_printf(call->ctx->arena, "The version is \"%.*s\" now; read the file again.",
					   STR_ARG(stat.version));
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

bool bytes_are_binary(struct str bytes)
{
	return str_find_char(bytes, '\0') < bytes.len || !utf8_valid(bytes);
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
		return STR("What is there is binary.");
	if (bytes.len == 0)
		return STR("What is there is empty.");
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
