/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tools of the reference server for files (npm @modelcontextprotocol/server-filesystem), for clients and prompts
 * that were written for it: its names, arguments and replies over a directory of the person's own. Absolute paths below
 * the directory are its normal form. Unlike it: a large file is read in part, line endings are kept by an edit, an edit
 * whose text occurs several times changes the first (as there), and everything can be undone.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "dialects/common.h"
#include "text/diff.h"
#include "text/glob.h"

#define TREE_MOST   20000
#define FOUND_MOST  5000
#define DEPTH_MOST  40
#define EXCLUDE_MAX 50

/* The path as the reference server gives it: absolute where there is a directory. */
static struct str whole_path(struct call *call, struct wpath path)
{
	struct arena *arena = call->ctx->arena;

	if (!workspace_files_are_own(call->ws))
		return path_shown(path);
	if (wpath_is_root(path))
		return workspace_files_place(call->ws);
	return arena_printf(arena, "%.*s/%.*s", STR_ARG(workspace_files_place(call->ws)), STR_ARG(path.s));
}

/* A path as the reference server takes it, relative to the directory: "." and ".." go by names, not by links, and an
   absolute path must be below the directory. */
static int resolve(struct call *call, struct str text, struct str *ret, struct err *err)
{
	struct str rest = text, part, below;
	bool leaves = false;
	struct buf out;

	buf_init(&out, call->ctx->arena, text.len + 2);
	while (!leaves && str_cut(&rest, '/', &part)) {
		if (!part.len || str_is(part, "."))
			continue;
		if (!str_is(part, "..")) {
			buf_char(&out, '/');
			buf_add(&out, part);
			continue;
		}
		leaves = !out.len;
		while (out.len && out.ptr[--out.len] != '/')
			;
	}
	below = out.len ? buf_str(&out) : STR("/");
	if (workspace_files_are_own(call->ws) && str_starts(text, STR("/")))
		below = workspace_below(call->ws, below);
	if (leaves || !below.ptr)
		return err_set(err, ERR_DENIED, "Access denied - path outside allowed directories: %.*s not in %.*s",
			       STR_ARG(utf8_first(text, 200)), STR_ARG(whole_path(call, WPATH_ROOT)));
	*ret = str_starts(below, STR("/")) ? str_from(below, 1) : below;
	return 0;
}

/* Sets `key` of arguments for a native tool to a path of theirs. */
static int set_path(struct call *call, struct str text, struct jv *mapped, const char *key, struct err *err)
{
	struct str path;
	int r = resolve(call, text, &path, err);

	if (r == 0)
		jv_set_str(call->ctx->arena, mapped, key, path);
	return r;
}

static int fs_path(struct call *call, const struct jv *args, struct wpath *ret, struct err *err)
{
	struct jv *mapped = jv_object(call->ctx->arena);
	int r = set_path(call, jv_get_str(args, "path"), mapped, "path", err);

	return r ? r : arg_path(call, mapped, "path", ret, err);
}

static int fs_file(struct call *call, struct str text, struct wpath *ret, struct err *err)
{
	struct jv *mapped = jv_object(call->ctx->arena);
	int r = set_path(call, text, mapped, "path", err);

	return r ? r : arg_file(call, mapped, "path", ret, err);
}

static void reply(struct outcome *ret, struct str text)
{
	ret->value = NULL;
	ret->text = text.ptr ? text : STR("");
}

/* --- reading --- */

static int read_part(struct call *call, struct wpath path, uint64_t first, uint64_t count, struct page *ret,
		     struct err *err)
{
	struct page_req req = {.offset = first,
			       .limit = count,
			       .bytes_max = READ_BYTES_DEFAULT,
			       .line_cut = READ_BYTES_DEFAULT,
			       .plain_cuts = true};
	struct str bytes, text;
	int r = page_read(call->ctx, call->files, path, &req, ret, err);

	if (r || !ret->binary)
		return r;
	r = store_read(call->files, call->ctx, path, STORE_WHOLE, READ_FOREIGN_MAX, &bytes, NULL, err);
	if (r)
		return r;
	if (!foreign_text(call->ctx->arena, bytes, &text))
		return err_set(err, ERR_UNSUPPORTED, "read %.*s: it is not text; use read_media_file", STR_ARG(path.s));
	ret->content = utf8_first(text, READ_BYTES_DEFAULT);
	ret->total_lines = ret->lines = 0;
	return 0;
}

/* The text of a file, without the line end after the last line of a part. */
static int read_text(struct call *call, const struct jv *args, struct wpath path, struct str *ret, struct err *err)
{
	int64_t head = jv_get_int(args, "head", 0), tail = jv_get_int(args, "tail", 0);
	struct page page;
	uint64_t total;
	int r;

	if (head > 0 && tail > 0)
		return err_set(err, ERR_INVALID, "Cannot specify both head and tail parameters simultaneously");
	r = read_part(call, path, 0, head > 0 ? (uint64_t)head : UINT64_MAX / 2, &page, err);
	total = r == 0 ? page.total_lines : 0;
	if (r == 0 && tail > 0 && (uint64_t)tail < total)
		r = read_part(call, path, total - (uint64_t)tail, (uint64_t)tail, &page, err);
	if (r)
		return r;
	*ret = page.content;
	if ((head > 0 || tail > 0) && str_ends(*ret, STR("\n")))
		ret->len--;
	if (!head && !tail && page.lines < page.total_lines)
		*ret = arena_printf(call->ctx->arena, "%.*s[the first %llu of %llu lines; head and tail read parts]",
				    STR_ARG(page.content), (unsigned long long)page.lines,
				    (unsigned long long)page.total_lines);
	return 0;
}

static int fs_read(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct wpath path;
	struct str text;
	int r = fs_file(call, jv_get_str(args, "path"), &path, err);

	if (r == 0)
		r = read_text(call, args, path, &text, err);
	if (r == 0)
		reply(ret, text);
	return r;
}

static int fs_read_many(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	const struct jv *paths = jv_get(args, "paths");
	struct buf out;

	(void)err;
	buf_init(&out, arena, 2 * TOOL_TEXT_MAX);
	for (const struct jv_member *m = jv_first(paths); m; m = m->next) {
		struct wpath path;
		struct err why;
		struct str text;
		int r = fs_file(call, jv_str_of(m->value), &path, &why);

		if (r == 0)
			r = read_text(call, NULL, path, &text, &why);
		if (m != jv_first(paths))
			buf_lit(&out, "\n---\n");
		buf_add(&out, jv_str_of(m->value));
		if (r)
			buf_printf(&out, ": Error - %.*s", STR_ARG(err_text(arena, &why)));
		else
			buf_printf(&out, ":\n%.*s\n", STR_ARG(text));
	}
	reply(ret, buf_str(&out));
	return 0;
}

static int fs_media(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	struct wpath path;
	struct str bytes;
	const char *mime;
	int r = fs_file(call, jv_get_str(args, "path"), &path, err);

	if (r == 0)
		r = store_read(call->files, call->ctx, path, STORE_WHOLE, READ_MEDIA_MAX, &bytes, NULL, err);
	if (r)
		return r;
	mime = mime_of_name(wpath_name(path));
	if (!mime || (strncmp(mime, "image/", 6) != 0 && strncmp(mime, "audio/", 6) != 0))
		mime = "application/octet-stream";
	ret->media = (struct media){str_of(mime), base64_encode(arena, bytes), path.s};
	reply(ret, arena_printf(arena, "%.*s: %s, %zu bytes", STR_ARG(path.s), mime, bytes.len));
	return 0;
}

/* --- writing --- */

static int fs_write(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	START("content", "content", NULL);

	jv_set_str(arena, mapped, "mode", STR("overwrite"));
	r = set_path(call, jv_get_str(args, "path"), mapped, "path", err);
	if (r == 0)
		r = tool_write_file(call, mapped, ret, err);
	if (r)
		return r;
	buf_printf(&text, "Successfully wrote to %.*s", STR_ARG(jv_get_str(args, "path")));
	text_reply(ret, &text);
	return 0;
}

static int fs_mkdir(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct wpath path;
	int r = fs_path(call, args, &path, err);

	if (r == 0)
		r = workspace_make_dir(call->ws, call->ctx, path, err);
	if (r == 0)
		reply(ret, arena_printf(call->ctx->arena, "Successfully created directory %.*s",
					STR_ARG(jv_get_str(args, "path"))));
	return r;
}

static int fs_move(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	START(NULL);

	r = set_path(call, jv_get_str(args, "source"), mapped, "from", err);
	if (r == 0)
		r = set_path(call, jv_get_str(args, "destination"), mapped, "to", err);
	if (r == 0)
		r = tool_move_file(call, mapped, ret, err);
	if (r == -ERR_EXISTS)
		return RETELL(err, "Destination already exists: %.*s",
			      STR_ARG(utf8_first(jv_get_str(args, "destination"), 300)));
	if (r)
		return r;
	buf_printf(&text, "Successfully moved %.*s to %.*s", STR_ARG(jv_get_str(args, "source")),
		   STR_ARG(jv_get_str(args, "destination")));
	text_reply(ret, &text);
	return 0;
}

/* The text with LF as CRLF. */
static struct str with_crlf(struct arena *arena, struct str text)
{
	struct buf out;

	buf_init(&out, arena, text.len * 2 + 1);
	for (size_t i = 0; i < text.len; i++) {
		if (text.ptr[i] == '\n' && (i == 0 || text.ptr[i - 1] != '\r'))
			buf_char(&out, '\r');
		buf_char(&out, text.ptr[i]);
	}
	return out.len ? buf_str(&out) : STR("");
}

/* Where lines begin that are `old` but for white space at their ends; SIZE_MAX: nowhere. *ret_end: where they end. */
static size_t find_loosely(struct str bytes, struct str old, size_t *ret_end)
{
	for (size_t at = 0; at < bytes.len;) {
		struct str rest = str_from(bytes, at), wanted = old, line, want;
		size_t line_len = str_find_char(rest, '\n') + 1;
		bool same = true;

		while (same && str_cut(&wanted, '\n', &want))
			same = str_cut(&rest, '\n', &line) && str_eq(str_trim(line), str_trim(want));
		if (same && str_trim(old).len) {
			*ret_end = bytes.len - rest.len;
			if (*ret_end > at && bytes.ptr[*ret_end - 1] == '\n' && !str_ends(old, STR("\n")))
				(*ret_end)--;
			return at;
		}
		at += line_len;
	}
	return SIZE_MAX;
}

static struct str leading_blanks(struct str line)
{
	size_t n = 0;

	while (n < line.len && (line.ptr[n] == ' ' || line.ptr[n] == '\t'))
		n++;
	return str_first(line, n);
}

/* Lines that were indented by `old` and are by `now`: what a line has besides is kept. */
static struct str indented(struct arena *arena, struct str text, struct str old, struct str now)
{
	struct buf out;
	struct str line;

	buf_init(&out, arena, TOOL_FILE_MAX + 1);
	while (text.len) {
		size_t end = str_find_char(text, '\n'), blanks;

		line = str_first(text, end < text.len ? end + 1 : end);
		text = str_from(text, line.len);
		blanks = leading_blanks(line).len;
		if (str_trim(line).len)
			buf_add(&out, now);
		buf_add(&out, str_from(line, str_starts(line, old) ? old.len : blanks < old.len ? blanks : 0));
	}
	return out.len ? buf_str(&out) : STR("");
}

/* One edit: the first exact occurrence, or else lines that differ in white space, whose indentation is kept. */
static int change_once(struct arena *arena, struct str *bytes, struct str old, struct str new, struct err *err)
{
	size_t at = str_find(*bytes, old, 0), end = at + old.len;
	struct buf out;

	if (at == SIZE_MAX && str_find(*bytes, STR("\r\n"), 0) != SIZE_MAX) {
		old = with_crlf(arena, old);
		new = with_crlf(arena, new);
		at = str_find(*bytes, old, 0);
		end = at + old.len;
	}
	if (at == SIZE_MAX) {
		at = find_loosely(*bytes, old, &end);
		if (at == SIZE_MAX)
			return err_set(err, ERR_NOT_FOUND, "Could not find exact match for edit: %.*s",
				       STR_ARG(utf8_first(old, 300)));
		new = indented(arena, new, leading_blanks(old), leading_blanks(str_from(*bytes, at)));
	}
	buf_init(&out, arena, TOOL_FILE_MAX + 1);
	buf_add(&out, str_first(*bytes, at));
	buf_add(&out, new);
	buf_add(&out, str_from(*bytes, end));
	if (out.overflow)
		return err_set(err, ERR_TOO_LARGE, "the file would have more than %zu bytes", TOOL_FILE_MAX);
	*bytes = out.len ? buf_str(&out) : STR("");
	return 0;
}

static int change_all(void *arg, struct arena *arena, struct str before, struct str *ret_after, struct err *err)
{
	const struct jv *edits = arg;
	int r = 0;

	*ret_after = before;
	for (const struct jv_member *m = jv_first(edits); m && r == 0; m = m->next) {
		struct str old = jv_get_str(m->value, "oldText");

		r = old.len ? change_once(arena, ret_after, old, jv_get_str(m->value, "newText"), err)
			    : err_set(err, ERR_INVALID, "oldText is empty; give the text to replace");
	}
	return r;
}

/* Backticks, one more than the text has in a row and at least three. */
static struct str fence_for(struct arena *arena, struct str text)
{
	size_t most = 2, run = 0;
	struct buf out;

	for (size_t i = 0; i < text.len; i++) {
		run = text.ptr[i] == '`' ? run + 1 : 0;
		most = run > most ? run : most;
	}
	buf_init(&out, arena, most + 1);
	for (size_t i = 0; i <= most; i++)
		buf_char(&out, '`');
	return buf_str(&out);
}

static int fs_edit(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	struct file_change change = {.change = change_all,
				     .arg = (void *)jv_get(args, "edits"),
				     .dry_run = jv_get_bool(args, "dryRun", false)};
	struct buf diff, out;
	struct wpath path;
	struct str where, fence;
	int r = fs_file(call, jv_get_str(args, "path"), &path, err);

	if (r == 0)
		r = file_change(call, path, &change, err);
	if (r)
		return r;
	buf_init(&diff, arena, TOOL_TEXT_MAX);
	diff_unified(arena, change.before, change.after, STR(""), 2000, &diff);
	where = whole_path(call, path);
	fence = fence_for(arena, diff.len ? buf_str(&diff) : STR(""));
	buf_init(&out, arena, 2 * TOOL_TEXT_MAX);
	buf_printf(&out,
		   "%.*sdiff\nIndex: %.*s\n===================================================================\n"
		   "--- %.*s\toriginal\n+++ %.*s\tmodified\n%.*s%.*s\n\n",
		   STR_ARG(fence), STR_ARG(where), STR_ARG(where), STR_ARG(where), (int)diff.len,
		   diff.ptr ? diff.ptr : "", STR_ARG(fence));
	reply(ret, buf_str(&out));
	return 0;
}

/* --- looking around --- */

/* The entries of one directory, in order, as ls gives them with details. */
static int list(struct call *call, struct wpath dir, bool details, const struct jv **ret_entries, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	struct jv *args = jv_object(arena), *all = jv_array(arena);
	struct outcome out;
	int r;

	jv_set_str(arena, args, "path", dir.s);
	jv_set_int(arena, args, "limit", LIST_LIMIT_MAX);
	jv_set_bool(arena, args, "all", true);
	jv_set_bool(arena, args, "details", details);
	do {
		out = (struct outcome){0};
		r = tool_ls(call, args, &out, err);
		if (r)
			return r;
		for (const struct jv_member *m = jv_first(jv_get(out.value, "entries")); m; m = m->next)
			jv_push(arena, all, m->value);
		for (const struct jv_member *m = jv_first(jv_get(out.value, "links")); m; m = m->next)
			jv_push(arena, all, m->value);
		if (jv_get(out.value, "next_cursor"))
			jv_set_str(arena, args, "cursor", jv_get_str(out.value, "next_cursor"));
	} while (jv_get(out.value, "next_cursor") && jv_count(all) < TREE_MOST);
	*ret_entries = all;
	return 0;
}

static bool is_directory(const struct jv *entry)
{
	return str_is(jv_get_str(entry, "kind"), "directory");
}

static struct str name_of(const struct jv *entry)
{
	return wpath_name((struct wpath){jv_get_str(entry, "path")});
}

static int fs_list(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	const struct jv *entries;
	struct wpath path;
	struct buf out;
	int r = fs_path(call, args, &path, err);

	if (r == 0)
		r = list(call, path, false, &entries, err);
	if (r)
		return r;
	buf_init(&out, call->ctx->arena, 2 * TOOL_TEXT_MAX);
	for (const struct jv_member *m = jv_first(entries); m; m = m->next)
		buf_printf(&out, "%s%s %.*s", out.len ? "\n" : "", is_directory(m->value) ? "[DIR]" : "[FILE]",
			   STR_ARG(name_of(m->value)));
	reply(ret, out.len ? buf_str(&out) : STR(""));
	return 0;
}

/* "1.50 KB", as the reference server writes sizes. */
static const char *size_text(struct arena *arena, uint64_t bytes)
{
	static const char *const units[] = {"B", "KB", "MB", "GB", "TB"};
	double scaled = (double)bytes;
	size_t unit = 0;

	for (; scaled >= 1024 && unit < 4; unit++)
		scaled /= 1024;
	if (unit == 0)
		return arena_printf(arena, "%llu B", (unsigned long long)bytes).ptr;
	return arena_printf(arena, "%.2f %s", scaled, units[unit]).ptr;
}

static int by_size(const void *a, const void *b)
{
	int64_t x = jv_get_int(*(const struct jv *const *)a, "size", 0);
	int64_t y = jv_get_int(*(const struct jv *const *)b, "size", 0);

	return (x < y) - (x > y);
}

/* The size of a file, or of the one that a link leads to. */
static uint64_t entry_size(struct call *call, const struct jv *entry)
{
	struct store_stat stat;
	struct wpath path;
	struct err err;

	if (!str_is(jv_get_str(entry, "kind"), "link"))
		return (uint64_t)jv_get_int(entry, "size", 0);
	if (workspace_path(call->ws, call->ctx->arena, jv_get_str(entry, "path"), &path, &err) ||
	    store_stat(call->files, call->ctx, path, &stat, &err) || stat.kind != STORE_FILE)
		return 0;
	return stat.size;
}

static int fs_list_sizes(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	uint64_t files = 0, dirs = 0, bytes = 0;
	const struct jv *entries, **sorted;
	struct wpath path;
	struct buf out;
	size_t n = 0;
	int r = fs_path(call, args, &path, err);

	if (r == 0)
		r = list(call, path, true, &entries, err);
	if (r)
		return r;
	sorted = ARENA_ARRAY(arena, const struct jv *, jv_count(entries) + 1);
	for (const struct jv_member *m = jv_first(entries); m; m = m->next)
		sorted[n++] = m->value;
	if (str_is(jv_get_str(args, "sortBy"), "size"))
		qsort(sorted, n, sizeof *sorted, by_size);
	buf_init(&out, arena, 2 * TOOL_TEXT_MAX);
	for (size_t i = 0; i < n; i++) {
		bool is_dir = is_directory(sorted[i]);
		uint64_t size = entry_size(call, sorted[i]);

		buf_printf(&out, "%s %-30.*s ", is_dir ? "[DIR]" : "[FILE]", STR_ARG(name_of(sorted[i])));
		buf_printf(&out, is_dir ? "\n" : "%10s\n", size_text(arena, size));
		files += !is_dir;
		dirs += is_dir;
		bytes += is_dir ? 0 : size;
	}
	buf_printf(&out, "\nTotal: %llu files, %llu directories\nCombined size: %s", (unsigned long long)files,
		   (unsigned long long)dirs, size_text(arena, bytes));
	reply(ret, buf_str(&out));
	return 0;
}

/* Patterns of the arguments, compiled. In a tree, one without '*' means that path at any depth. */
struct exclude {
	const struct glob *globs[EXCLUDE_MAX];
	size_t count;
};

static int read_exclude(struct arena *arena, const struct jv *args, bool any_depth, struct exclude *ret,
			struct err *err)
{
	int r = 0;

	ret->count = 0;
	for (const struct jv_member *m = jv_first(jv_get(args, "excludePatterns")); m && r == 0; m = m->next) {
		struct str pattern = jv_str_of(m->value);

		if (any_depth && str_find_char(pattern, '*') == pattern.len)
			pattern = arena_printf(arena, "**/%.*s", STR_ARG(pattern));
		if (ret->count < EXCLUDE_MAX)
			r = glob_compile(arena, pattern, 0, &ret->globs[ret->count++], err);
	}
	return r;
}

static bool is_excluded(const struct exclude *exclude, struct str path)
{
	for (size_t i = 0; i < exclude->count; i++)
		if (glob_match(exclude->globs[i], path))
			return true;
	return false;
}

/* A walk over everything below a directory, for directory_tree and search_files. */
struct look {
	struct call *call;
	struct wpath top;
	struct exclude exclude;
	const struct glob *wanted; /* NULL: a tree is made */
	struct buf found;
	size_t seen;
};

static int look_into(struct look *look, struct wpath dir, unsigned depth, struct jv **ret_children, struct err *err)
{
	struct arena *arena = look->call->ctx->arena;
	struct jv *children = jv_array(arena), *below = NULL;
	const struct jv *entries;
	int r = depth ? list(look->call, dir, false, &entries, err) : 0;

	if (!depth)
		entries = children;
	for (const struct jv_member *m = r ? NULL : jv_first(entries); m && r == 0; m = m->next) {
		struct wpath path = {jv_get_str(m->value, "path")};
		struct str relative = wpath_relative(path, look->top).s;
		struct jv *v = jv_object(arena);

		if (is_excluded(&look->exclude, relative) || ++look->seen > TREE_MOST)
			continue;
		if (look->wanted && glob_match(look->wanted, relative) && look->found.len < READ_BYTES_DEFAULT)
			buf_printf(&look->found, "%s%.*s", look->found.len ? "\n" : "",
				   STR_ARG(whole_path(look->call, path)));
		jv_set_str(arena, v, "name", name_of(m->value));
		jv_set_str(arena, v, "type", is_directory(m->value) ? STR("directory") : STR("file"));
		if (is_directory(m->value)) {
			r = look_into(look, path, depth - 1, &below, err);
			if (r == 0)
				jv_set(arena, v, "children", below);
		}
		jv_push(arena, children, v);
	}
	*ret_children = children;
	return r;
}

static int start_look(struct look *look, struct call *call, const struct jv *args, bool makes_tree, struct err *err)
{
	int r = fs_path(call, args, &look->top, err);

	look->call = call;
	buf_init(&look->found, call->ctx->arena, TOOL_TEXT_MAX);
	return r ? r : read_exclude(call->ctx->arena, args, makes_tree, &look->exclude, err);
}

static int fs_tree(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct look look = {0};
	struct jv *tree;
	struct buf out;
	int r = start_look(&look, call, args, true, err);

	if (r == 0)
		r = look_into(&look, look.top, DEPTH_MOST, &tree, err);
	if (r)
		return r;
	buf_init(&out, call->ctx->arena, 8 * TOOL_TEXT_MAX);
	jv_write_pretty(&out, tree);
	reply(ret, str_trim(buf_str(&out)));
	return 0;
}

static int fs_search(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct str pattern = jv_get_str(args, "pattern");
	struct look look = {0};
	struct jv *ignored;
	int r = start_look(&look, call, args, false, err);

	/* a pattern that ends with two stars means what is in a directory, not the directory */
	if (str_ends(pattern, STR("/**")))
		pattern = arena_printf(call->ctx->arena, "%.*s/*", STR_ARG(pattern));
	if (r == 0)
		r = glob_compile(call->ctx->arena, pattern, 0, &look.wanted, err);
	if (r == 0)
		r = look_into(&look, look.top, DEPTH_MOST, &ignored, err);
	if (r == 0)
		reply(ret, look.found.len ? buf_str(&look.found) : STR("No matches found"));
	return r;
}

/* What the file system knows of a file besides what stores keep. False: it is in another store. */
static bool host_times(struct call *call, struct wpath path, struct statx *ret)
{
	const char *where = arena_cstr(call->ctx->arena, whole_path(call, path));

	return workspace_files_are_own(call->ws) &&
	       statx(AT_FDCWD, where, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS | STATX_BTIME, ret) == 0;
}

/* "Sun Nov 15 2026 10:50:42 GMT+0000 (Coordinated Universal Time)" */
static void add_time(struct buf *out, const char *label, int64_t seconds)
{
	time_t at = (time_t)seconds;
	struct tm tm;
	char text[80];

	gmtime_r(&at, &tm);
	strftime(text, sizeof text, "%a %b %d %Y %H:%M:%S GMT+0000 (Coordinated Universal Time)", &tm);
	buf_printf(out, "%s: %s\n", label, text);
}

static int fs_info(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct store_stat stat;
	struct wpath path;
	struct statx host;
	struct buf out;
	bool on_host;
	int r = fs_path(call, args, &path, err);

	if (r == 0)
		r = store_stat(call->files, call->ctx, path, &stat, err);
	if (r)
		return r;
	on_host = host_times(call, path, &host);
	buf_init(&out, call->ctx->arena, 4096);
	buf_printf(&out, "size: %llu\n", (unsigned long long)(on_host ? host.stx_size : stat.size));
	add_time(&out, "created", on_host ? host.stx_btime.tv_sec : stat.mtime_ns / NS_PER_S);
	add_time(&out, "modified", on_host ? host.stx_mtime.tv_sec : stat.mtime_ns / NS_PER_S);
	add_time(&out, "accessed", on_host ? host.stx_atime.tv_sec : stat.mtime_ns / NS_PER_S);
	buf_printf(&out, "isDirectory: %s\nisFile: %s\npermissions: %03o", stat.kind == STORE_DIR ? "true" : "false",
		   stat.kind == STORE_FILE ? "true" : "false",
		   on_host                  ? host.stx_mode & 0777u
		   : stat.kind == STORE_DIR ? 0755u
					    : 0644u);
	reply(ret, buf_str(&out));
	return 0;
}

static int fs_allowed(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	(void)args;
	(void)err;
	reply(ret, arena_printf(call->ctx->arena, "Allowed directories:\n%.*s", STR_ARG(whole_path(call, WPATH_ROOT))));
	return 0;
}

/* clang-format off */
#define PATH "path!: absolute, or relative to the directory"

static const struct tool tools[] = {
	{.name = "read_file", .title = "Read File (Deprecated)", .group = "files", .acts_as = "read_file", .traits = RO,
	 .call = fs_read, .description = "Reads a file as text. The same as read_text_file.",
	 .args = PATH "\ntail int>=1: only the last N lines\nhead int>=1: only the first N lines"},
	{.name = "read_text_file", .title = "Read Text File", .group = "files", .acts_as = "read_file", .traits = RO,
	 .call = fs_read, .description = "Reads a file as text, whole or only its first (head) or last (tail) lines.",
	 .args = PATH "\ntail int>=1: only the last N lines\nhead int>=1: only the first N lines"},
	{.name = "read_media_file", .title = "Read Media File", .group = "files", .acts_as = "read_file", .traits = RO,
	 .call = fs_media, .description = "Reads a file as bytes: an image, a sound, or any other as a resource.", .args = PATH},
	{.name = "read_multiple_files", .title = "Read Multiple Files", .group = "files", .acts_as = "read_file",
	 .traits = RO, .call = fs_read_many,
	 .description = "Reads several files at once. A file that cannot be read does not stop the others.",
	 .args = "paths! [str]>=1<=100: the files"},
	{.name = "write_file", .title = "Write File", .group = "files", .acts_as = "write_file",
	 .traits = TOOL_DESTRUCTIVE | TOOL_IDEMPOTENT, .call = fs_write,
	 .description = "Creates a file, or replaces it without asking.", .args = PATH "\ncontent!: the whole content"},
	{.name = "edit_file", .title = "Edit File", .group = "files", .acts_as = "edit_file", .traits = TOOL_DESTRUCTIVE,
	 .call = fs_edit,
	 .description = "Replaces text in a file, each edit its first occurrence, and shows the difference. Lines that differ "
			"only in white space match too.",
	 .args = PATH "\nedits! [{oldText!: text to search for; newText!: text to replace it with}]<=200: in this order, all or none\n"
		 "dryRun bool: show the difference without changing the file (default false)"},
	{.name = "create_directory", .title = "Create Directory", .group = "files", .acts_as = "write_file",
	 .traits = TOOL_IDEMPOTENT, .call = fs_mkdir,
	 .description = "Creates a directory and those above it. One that exists is left as it is.", .args = PATH},
	{.name = "list_directory", .title = "List Directory", .group = "files", .acts_as = "ls", .traits = RO,
	 .call = fs_list, .description = "Lists a directory, with [FILE] or [DIR] before each name.", .args = PATH},
	{.name = "list_directory_with_sizes", .title = "List Directory with Sizes", .group = "files", .acts_as = "ls",
	 .traits = RO, .call = fs_list_sizes, .description = "Lists a directory with the sizes of its files.",
	 .args = PATH "\nsortBy name|size: the order (default name)"},
	{.name = "directory_tree", .title = "Directory Tree", .group = "files", .acts_as = "ls", .traits = RO | TOOL_LONG,
	 .call = fs_tree, .description = "Gives everything below a directory as JSON: name, type, children.",
	 .args = PATH "\nexcludePatterns [str]<=50: globs to leave out"},
	{.name = "move_file", .title = "Move File", .group = "files", .acts_as = "move_file", .traits = TOOL_DESTRUCTIVE,
	 .call = fs_move, .description = "Moves or renames a file or directory. Fails if the destination exists.",
	 .args = "source!: path of the file or directory\ndestination!: its new path"},
	{.name = "search_files", .title = "Search Files", .group = "files", .acts_as = "glob", .traits = RO | TOOL_LONG,
	 .call = fs_search,
	 .description = "Finds files and directories whose path matches a glob: *.ext in the directory, **/*.ext at any depth.",
	 .args = PATH "\npattern!: matched against the path below it\nexcludePatterns [str]<=50: globs to leave out"},
	{.name = "get_file_info", .title = "Get File Info", .group = "files", .acts_as = "file_info", .traits = RO,
	 .call = fs_info, .description = "Gives size, times, kind and permissions of a file or directory.", .args = PATH},
	{.name = "list_allowed_directories", .title = "List Allowed Directories", .group = "files", .acts_as = "ls",
	 .traits = RO, .call = fs_allowed, .description = "Names the directory that these tools work in."},
	{0},
};
/* clang-format on */

const struct dialect dialect_filesystem = {
	.name = "filesystem",
	.tools = tools,
};
