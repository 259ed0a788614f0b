/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wacht's file tools over /task, the filesystem of one task, which is the tool root here. Paths are /task/… or
 * relative; its other mounts are not served. Results are objects: success, tool, path, and what the tool adds. Kept:
 * reads by 1-based lines or characters with totals and the SHA-256 of the slice, write_file overwrites, append_file
 * puts a newline between. Not kept: edit_file's rule that the file was read in the same turn; a turn is the caller's,
 * and a change in between is caught by the conditional write instead.
 */
#include "base/sha256.h"
#include "dialects/common.h"

#define READ_MOST READ_BYTES_DEFAULT

static int task_path(struct call *call, const struct jv *args, struct wpath *ret, struct err *err)
{
	struct str path = str_trim(jv_get_str(args, "path"));

	if (str_starts(path, STR("/task")) && (path.len == 5 || path.ptr[5] == '/'))
		path = str_from(path, 5);
	else if (str_starts(path, STR("/")))
		return err_set(err, ERR_INVALID, "the path \"%.*s\" is not in /task; use /task/… or a relative path",
			       STR_ARG(utf8_first(path, 150)));
	return wpath_parse_lenient(call->ctx->arena, path, ret, err);
}

static int task_file(struct call *call, const struct jv *args, struct wpath *ret, struct err *err)
{
	int r = task_path(call, args, ret, err);

	if (r == 0 && wpath_is_root(*ret))
		return err_set(err, ERR_INVALID, "/task is a directory; name a file, for example /task/notes.md");
	return r;
}

static struct jv *success(struct call *call, const char *tool, struct wpath path, struct outcome *ret)
{
	struct arena *arena = call->ctx->arena;

	ret->value = jv_object(arena);
	jv_set_bool(arena, ret->value, "success", true);
	jv_set_str(arena, ret->value, "tool", str_of(tool));
	jv_set_str(arena, ret->value, "path",
		   wpath_is_root(path) ? STR("/task") : arena_printf(arena, "/task/%.*s", STR_ARG(path.s)));
	return ret->value;
}

/* The lines start … *end (1-based, both there) as far as one reply goes; *end becomes the last one given. */
static struct str line_slice(struct str bytes, int64_t start, int64_t *end)
{
	size_t from = 0, to = 0;

	for (int64_t line = 1; line <= *end; line++) {
		size_t n = str_find_char(str_from(bytes, to), '\n');
		size_t next = to + n + (to + n < bytes.len);

		if (line > start && next - from > READ_MOST) {
			*end = line - 1;
			break;
		}
		from = line == start ? to : from;
		to = next;
	}
	return str_n(bytes.ptr + from, to - from);
}

static int wacht_read(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	bool by_chars = !jv_is_null(jv_get(args, "start_char")) || !jv_is_null(jv_get(args, "end_char"));
	int64_t start = jv_get_int(args, by_chars ? "start_char" : "start_line", 1);
	int64_t end = jv_get_int(args, by_chars ? "end_char" : "end_line", INT64_MAX);
	struct str bytes, slice;
	uint64_t lines, chars;
	struct wpath path;
	struct jv *v;
	int r = task_file(call, args, &path, err);

	if (r == 0)
		r = store_read(call->files, call->ctx, path, STORE_WHOLE, TOOL_FILE_MAX, &bytes, NULL, err);
	if (r)
		return r;
	if (bytes_are_binary(bytes))
		return err_set(err, ERR_UNSUPPORTED, "read_file %.*s: the file is binary (%zu bytes)", STR_ARG(path.s),
			       bytes.len);
	lines = count_lines(bytes);
	chars = utf8_count(bytes);
	if (start < 1 || end < start || (uint64_t)start > (by_chars ? chars : lines) + (bytes.len == 0))
		return err_set(err, ERR_INVALID, "read_file %.*s: the range from %lld on is not in 1 to %llu",
			       STR_ARG(path.s), (long long)start, (unsigned long long)(by_chars ? chars : lines));
	if (by_chars) {
		size_t before = utf8_points(bytes, (size_t)start - 1).len;

		slice = utf8_points(str_from(bytes, before), (size_t)(end - start) + (end != INT64_MAX));
		slice = utf8_first(slice, READ_MOST);
		end = start + (int64_t)utf8_count(slice) - 1;
	} else {
		end = end > (int64_t)lines ? (int64_t)lines : end;
		slice = line_slice(bytes, start, &end);
	}
	v = success(call, "read_file", path, ret);
	jv_set_str(arena, v, "content", slice);
	jv_set_int(arena, v, "total_lines", (int64_t)lines);
	jv_set_int(arena, v, "total_chars", (int64_t)chars);
	jv_set_str(arena, v, "slice_hash", sha256_hex(arena, slice));
	jv_set_int(arena, v, by_chars ? "start_char" : "start_line", start);
	jv_set_int(arena, v, by_chars ? "end_char" : "end_line", end);
	return 0;
}

static int wacht_write(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	struct str content = jv_get_str(args, "content");
	struct wpath path;
	struct jv *v;
	int r = task_file(call, args, &path, err);

	if (r == 0)
		r = store_write(call->files, call->ctx, path, content.ptr ? content : STR(""), (struct store_cond){0},
				NULL, err);
	if (r)
		return r;
	v = success(call, "write_file", path, ret);
	jv_set_int(arena, v, "lines_written", (int64_t)count_lines(content));
	jv_set_int(arena, v, "total_lines", (int64_t)count_lines(content));
	jv_set_bool(arena, v, "partial", false);
	return 0;
}

static int change_append(void *arg, struct arena *arena, struct str before, struct str *ret_after, struct err *err)
{
	const struct str *content = arg;
	struct buf buf;

	if (before.len + content->len + 1 > TOOL_FILE_MAX)
		return err_set(err, ERR_TOO_LARGE, "the file would grow past %zu bytes", TOOL_FILE_MAX);
	buf_init(&buf, arena, TOOL_FILE_MAX + 1);
	buf_add(&buf, before);
	if (before.len && before.ptr[before.len - 1] != '\n')
		buf_char(&buf, '\n');
	buf_add(&buf, *content);
	*ret_after = buf.ptr ? buf_str(&buf) : STR("");
	return 0;
}

static int wacht_append(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	struct store_cond absent = {.kind = STORE_ABSENT};
	struct str content = jv_get_str(args, "content");
	struct file_change change = {.change = change_append, .arg = &content, .after = content};
	struct wpath path;
	struct jv *v;
	int r = task_file(call, args, &path, err);

	if (r == 0)
		r = store_write(call->files, call->ctx, path, content.ptr ? content : STR(""), absent, NULL, err);
	if (r && err->kind == ERR_EXISTS)
		r = file_change(call, path, &change, err);
	if (r)
		return r;
	v = success(call, "append_file", path, ret);
	jv_set_int(arena, v, "lines_written", (int64_t)count_lines(content));
	jv_set_int(arena, v, "total_lines", (int64_t)count_lines(change.after));
	jv_set_bool(arena, v, "partial", false);
	return 0;
}

static int wacht_edit(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	struct jv *mapped = args_map(arena, args,
				     (const char *const[]){"old_string", "old_text", "new_string", "new_text",
							   "replace_all", "replace_all", NULL});
	struct wpath path;
	struct str bytes;
	int64_t n;
	struct jv *v;
	int r = task_file(call, args, &path, err);

	if (r)
		return r;
	jv_set_str(arena, mapped, "path", path.s);
	r = tool_edit_file(call, mapped, ret, err);
	if (r)
		return r;
	n = jv_get_int(ret->value, "replaced", 0);
	r = store_read(call->files, call->ctx, path, STORE_WHOLE, TOOL_FILE_MAX, &bytes, NULL, err);
	v = success(call, "edit_file", path, ret);
	jv_set_int(arena, v, "replacements", n);
	if (r == 0)
		jv_set_int(arena, v, "total_lines", (int64_t)count_lines(bytes));
	return 0;
}

static int wacht_list(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	struct jv *mapped = args_map(arena, args, (const char *const[]){"cursor", "cursor", NULL});
	struct jv *entries = jv_array(arena), *v;
	struct outcome listed = {0};
	struct wpath path;
	int r = task_path(call, args, &path, err);

	if (r)
		return r;
	jv_set_str(arena, mapped, "path", path.s);
	r = tool_ls(call, mapped, &listed, err);
	if (r)
		return r;
	for (const struct jv_member *m = jv_first(jv_get(listed.value, "entries")); m; m = m->next) {
		struct jv *e = jv_object(arena);

		jv_set_str(arena, e, "name", wpath_name((struct wpath){jv_get_str(m->value, "path")}));
		jv_set_str(arena, e, "kind", jv_get_str(m->value, "kind"));
		jv_set_int(arena, e, "size_bytes", jv_get_int(m->value, "size", 0));
		if (jv_get(m->value, "modified"))
			jv_set_str(arena, e, "modified_at", jv_get_str(m->value, "modified"));
		jv_push(arena, entries, e);
	}
	v = success(call, "list_directory", path, ret);
	jv_set(arena, v, "entries", entries);
	jv_set_int(arena, v, "total", jv_get_int(listed.value, "total", jv_get_int(listed.value, "total_at_least", 0)));
	if (jv_get(listed.value, "next_cursor"))
		jv_set_str(arena, v, "next_cursor", jv_get_str(listed.value, "next_cursor"));
	return 0;
}

static int wacht_exists(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	struct store_stat stat;
	struct wpath path;
	struct jv *v;
	int r = task_path(call, args, &path, err);

	if (r)
		return r;
	r = store_stat(call->files, call->ctx, path, &stat, err);
	if (r && err->kind != ERR_NOT_FOUND)
		return r;
	v = success(call, "exists", path, ret);
	jv_set_bool(arena, v, "exists", r == 0);
	if (r == 0)
		jv_set_str(arena, v, "kind", stat.kind == STORE_DIR ? STR("directory") : STR("file"));
	return 0;
}

/* clang-format off */
#define PATH    "path!: /task/… or relative to it"
#define DONE    "success! bool; tool!; path!"
#define WRITTEN DONE "; lines_written! int; total_lines! int; partial! bool"

static const struct tool tools[] = {
	{.name = "read_file", .title = "Read", .group = "files", .acts_as = "read_file", .traits = RO,
	 .call = wacht_read,
	 .description = "Reads a text file of the task, whole or by lines or characters, at most 100 KiB at once.",
	 .args =
		PATH "\n"
		"start_line int>=1: first line, from 1\n"
		"end_line int>=1: last line\n"
		"start_char int>=1: first character, from 1\n"
		"end_char int>=1: last character",
	 .result =
		DONE "; content!; total_lines! int; total_chars! int; slice_hash!; "
		"start_line int; end_line int; start_char int; end_char int"},
	{.name = "write_file", .title = "Write", .group = "files", .acts_as = "write_file",
	 .traits = TOOL_DESTRUCTIVE | TOOL_IDEMPOTENT, .call = wacht_write,
	 .description = "Writes a file of the task and replaces its content.",
	 .args =
		PATH "\n"
		"content!: what to write",
	 .result = WRITTEN},
	{.name = "append_file", .title = "Append", .group = "files", .acts_as = "append_file", .call = wacht_append,
	 .description = "Appends text to a file on a new line, or creates the file.",
	 .args =
		PATH "\n"
		"content!: what to append",
	 .result = WRITTEN},
	{.name = "edit_file", .title = "Edit", .group = "files", .acts_as = "edit_file", .traits = TOOL_DESTRUCTIVE,
	 .call = wacht_edit,
	 .description = "Replaces a string that must occur exactly once, or every occurrence with replace_all.",
	 .args =
		PATH "\n"
		"old_string!: the exact string to replace\n"
		"new_string!: the string that replaces it\n"
		"replace_all bool: replace every occurrence (default false)",
	 .result = DONE "; replacements! int; total_lines int"},
	{.name = "list_directory", .title = "List", .group = "files", .acts_as = "ls", .traits = RO, .call = wacht_list,
	 .description = "Lists a directory of the task.",
	 .args =
		"path: directory (default /task)\n"
		"cursor: next_cursor of the previous page",
	 .result =
		DONE "\n"
		"entries! [{name!; kind!; size_bytes! int; modified_at}]: in order\n"
		"total! int; next_cursor"},
	{.name = "exists", .title = "Exists", .group = "files", .acts_as = "exists", .traits = RO, .call = wacht_exists,
	 .description = "Tells whether there is a file or directory at a path.",
	 .args = PATH,
	 .result = DONE "; exists! bool; kind"},
	{0},
};
/* clang-format on */

const struct dialect dialect_wacht = {
	.name = "wacht",
	.root = "task:default",
	.tools = tools,
};
