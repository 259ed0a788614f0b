/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Anthropic's memory tool: one tool, `memory`, with six commands over /memories, which is the tool root here (by
 * default the directory memories/ of the workspace). Models are trained on its exact sentences, so they are given word
 * for word, without the "Error: " that only part of the documentation shows; failures are marked as such by the result.
 */
#include "dialects/common.h"

#define LINES_MOST 999999

struct memory {
	struct call *call;
	struct outcome *ret;
	struct err *err;
	struct buf text;
};

/* Ends the call with the sentence in m->text, whole, also when it is longer than an error's message. */
static int fail(struct memory *m, enum err_kind kind)
{
	struct str sentence = utf8_first(buf_str(&m->text), 400);

	m->ret->text = buf_str(&m->text);
	m->ret->detail = str_from(m->ret->text, sentence.len);
	return err_set(m->err, kind, "%.*s", STR_ARG(sentence));
}

static int memory_path(struct memory *m, struct str text, struct wpath *ret)
{
	struct err ignored;

	if (!str_is(text, "/memories") && !str_starts(text, STR("/memories/"))) {
		buf_printf(&m->text, "Path must start with /memories, got: %.*s", STR_ARG(text));
		return fail(m, ERR_INVALID);
	}
	if (str_find_char(text, '\\') < text.len || str_find(text, STR("%2e"), 0) != SIZE_MAX ||
	    str_find(text, STR("%2E"), 0) != SIZE_MAX ||
	    wpath_parse_lenient(m->call->ctx->arena, str_from(text, 9), ret, &ignored)) {
		buf_printf(&m->text, "Path %.*s would escape /memories directory", STR_ARG(text));
		return fail(m, ERR_INVALID);
	}
	return 0;
}

/* The path as the model knows it. */
static struct str shown(struct memory *m, struct wpath path)
{
	return wpath_is_root(path) ? STR("/memories")
				   : arena_printf(m->call->ctx->arena, "/memories/%.*s", STR_ARG(path.s));
}

static int missing(struct memory *m, struct wpath path, const char *more)
{
	buf_printf(&m->text, "The path %.*s does not exist%s", STR_ARG(shown(m, path)), more);
	return fail(m, ERR_NOT_FOUND);
}

/* "512B", "1.5K", "4K" */
static void size_text(struct buf *buf, uint64_t bytes)
{
	static const char units[] = "BKMG";
	double scaled = (double)bytes;
	size_t unit = 0;

	while (scaled >= 1024 && unit < 3) {
		scaled /= 1024;
		unit++;
	}
	scaled = (double)(uint64_t)(scaled * 10 + 0.5) / 10;
	if (scaled == (double)(uint64_t)scaled)
		buf_printf(buf, "%llu%c", (unsigned long long)scaled, units[unit]);
	else
		buf_printf(buf, "%.1f%c", scaled, units[unit]);
}

static bool hidden(struct str path)
{
	struct str name;

	while (str_cut(&path, '/', &name))
		if (str_starts(name, STR(".")) || str_is(name, "node_modules"))
			return true;
	return false;
}

/* Sizes of the directory's files, below it. */
static uint64_t tree_size(const struct jv *entries, struct wpath dir)
{
	uint64_t sum = 0;

	for (const struct jv_member *e = jv_first(entries); e; e = e->next)
		if (wpath_within((struct wpath){jv_get_str(e->value, "path")}, dir))
			sum += (uint64_t)jv_get_int(e->value, "size", 0);
	return sum;
}

static int view_directory(struct memory *m, struct wpath path)
{
	struct arena *arena = m->call->ctx->arena;
	struct outcome listed = {0};
	struct jv *args = jv_object(arena);
	const struct jv *entries;
	int r;

	jv_set_str(arena, args, "path", path.s);
	jv_set_int(arena, args, "depth", 2);
	jv_set_int(arena, args, "limit", LIST_LIMIT_MAX);
	jv_set_bool(arena, args, "details", true);
	r = tool_ls(m->call, args, &listed, m->err);
	if (r)
		return r;
	entries = jv_get(listed.value, "entries");
	buf_printf(&m->text,
		   "Here're the files and directories up to 2 levels deep in %.*s, excluding hidden items and "
		   "node_modules:\n",
		   STR_ARG(shown(m, path)));
	size_text(&m->text, tree_size(entries, path));
	buf_printf(&m->text, "\t%.*s", STR_ARG(shown(m, path)));
	for (const struct jv_member *e = jv_first(entries); e; e = e->next) {
		struct wpath p = {jv_get_str(e->value, "path")};
		bool is_dir = str_is(jv_get_str(e->value, "kind"), "directory");

		if (hidden(wpath_relative(p, path).s))
			continue;
		buf_char(&m->text, '\n');
		size_text(&m->text, is_dir ? tree_size(entries, p) : (uint64_t)jv_get_int(e->value, "size", 0));
		buf_printf(&m->text, "\t%.*s%s", STR_ARG(shown(m, p)), is_dir ? "/" : "");
	}
	if (jv_get(listed.value, "next_cursor"))
		buf_printf(&m->text, "\n[more than %d entries; view a directory below]", LIST_LIMIT_MAX);
	return 0;
}

static int view_file(struct memory *m, struct wpath path, const struct jv *range)
{
	int64_t first = 1, last = -1;
	struct page_req req = {.limit = LINES_MOST + 1,
			       .bytes_max = TOOL_TEXT_MAX,
			       .line_cut = READ_BYTES_DEFAULT,
			       .number = "%6llu\t"};
	struct page page;
	int r;

	if (jv_count(range) == 2) {
		first = jv_at(range, 0)->u.i;
		last = jv_at(range, 1)->u.i;
	}
	if (first < 1 || (last != -1 && last < first)) {
		buf_printf(&m->text, "Invalid `view_range`: [%lld, %lld]", (long long)first, (long long)last);
		return fail(m, ERR_INVALID);
	}
	req.offset = (uint64_t)first - 1;
	if (last >= first)
		req.limit = (uint64_t)(last - first) + 1;
	r = page_read(m->call->ctx, m->call->files, path, &req, &page, m->err);
	if (r)
		return r;
	if (page.binary) {
		buf_printf(&m->text, "The path %.*s is not a text file.", STR_ARG(shown(m, path)));
		return fail(m, ERR_UNSUPPORTED);
	}
	if (page.total_lines > LINES_MOST) {
		buf_printf(&m->text, "File %.*s exceeds maximum line limit of 999,999 lines.", STR_ARG(shown(m, path)));
		return fail(m, ERR_TOO_LARGE);
	}
	buf_printf(&m->text, "Here's the content of %.*s with line numbers:\n", STR_ARG(shown(m, path)));
	buf_add(&m->text,
		str_ends(page.content, STR("\n")) ? str_first(page.content, page.content.len - 1) : page.content);
	if (last == -1 && req.offset + page.lines < page.total_lines)
		buf_printf(&m->text, "\n[%llu more lines; give view_range]",
			   (unsigned long long)(page.total_lines - req.offset - page.lines));
	return 0;
}

static int memory_view(struct memory *m, const struct jv *args, struct wpath path)
{
	struct store_stat stat;
	int r = store_stat(m->call->files, m->call->ctx, path, &stat, m->err);

	if (r && m->err->kind == ERR_NOT_FOUND)
		return missing(m, path, ". Please provide a valid path.");
	if (r)
		return r;
	return stat.kind == STORE_DIR ? view_directory(m, path) : view_file(m, path, jv_get(args, "view_range"));
}

static int memory_create(struct memory *m, const struct jv *args, struct wpath path)
{
	struct store_cond absent = {.kind = STORE_ABSENT};
	struct str text = jv_get_str(args, "file_text");
	int r = store_write(m->call->files, m->call->ctx, path, text.ptr ? text : STR(""), absent, NULL, m->err);

	if (r && m->err->kind == ERR_EXISTS) {
		buf_printf(&m->text, "File %.*s already exists", STR_ARG(shown(m, path)));
		return fail(m, ERR_EXISTS);
	}
	if (r == 0)
		buf_printf(&m->text, "File created successfully at: %.*s", STR_ARG(shown(m, path)));
	return r;
}

struct replace_job {
	struct memory *m;
	struct wpath path;
	struct str old_str, new_str;
	size_t at; /* where the new text begins */
};

/* `before` with `len` bytes at `at` replaced. */
static int splice(struct arena *arena, struct str before, size_t at, size_t len, struct str text, struct str *ret_after)
{
	struct buf buf;

	buf_init(&buf, arena, before.len + text.len + 1);
	buf_add(&buf, str_first(before, at));
	buf_add(&buf, text);
	buf_add(&buf, str_from(before, at + len));
	*ret_after = buf.ptr ? buf_str(&buf) : STR("");
	return 0;
}

static int change_replace(void *arg, struct arena *arena, struct str before, struct str *ret_after, struct err *err)
{
	struct replace_job *job = arg;
	struct buf *text = &job->m->text;
	size_t first = str_find(before, job->old_str, 0), from = 0;
	uint64_t line = 1;

	(void)err;
	buf_clear(text);
	if (first == SIZE_MAX) {
		buf_printf(text, "No replacement was performed, old_str `%.*s` did not appear verbatim in %.*s.",
			   STR_ARG(job->old_str), STR_ARG(shown(job->m, job->path)));
		return fail(job->m, ERR_NOT_FOUND);
	}
	if (str_find(before, job->old_str, first + 1) != SIZE_MAX) {
		buf_printf(text, "No replacement was performed. Multiple occurrences of old_str `%.*s` in lines: ",
			   STR_ARG(job->old_str));
		for (size_t at = first; at != SIZE_MAX; at = str_find(before, job->old_str, at + job->old_str.len)) {
			for (; from < at; from++)
				line += before.ptr[from] == '\n';
			buf_printf(text, "%s%llu", at == first ? "" : ", ", (unsigned long long)line);
		}
		buf_lit(text, ". Please ensure it is unique");
		return fail(job->m, ERR_INVALID);
	}
	job->at = first;
	return splice(arena, before, first, job->old_str.len, job->new_str, ret_after);
}

/* The changed lines with two either side, numbered. */
static void snippet(struct buf *text, struct str bytes, size_t at, size_t len)
{
	uint64_t first = count_lines(str_first(bytes, at)), last, line = 0;
	struct str rest = bytes, part;

	if (at == 0 || bytes.ptr[at - 1] == '\n')
		first++;
	last = first + (len ? count_lines(str_n(bytes.ptr + at, len)) - 1 : 0);
	while (str_cut(&rest, '\n', &part)) {
		line++;
		if (line + 2 < first || line > last + 2 || (!rest.ptr && part.len == 0))
			continue;
		buf_printf(text, "\n%6llu\t", (unsigned long long)line);
		buf_add(text, part);
	}
}

static int memory_str_replace(struct memory *m, const struct jv *args, struct wpath path)
{
	struct replace_job job = {
		.m = m, .path = path, .old_str = jv_get_str(args, "old_str"), .new_str = jv_get_str(args, "new_str")};
	struct file_change change = {.change = change_replace, .arg = &job};
	int r;

	if (job.old_str.len == 0) {
		buf_lit(&m->text, "No replacement was performed, old_str is empty.");
		return fail(m, ERR_INVALID);
	}
	r = file_change(m->call, path, &change, m->err);
	if (r)
		return r;
	buf_lit(&m->text,
		"The memory file has been edited. Here is the snippet showing the change (with line numbers):");
	snippet(&m->text, change.after, job.at, job.new_str.len);
	return 0;
}

struct line_job {
	struct memory *m;
	int64_t line;
	struct str text;
};

static int change_insert(void *arg, struct arena *arena, struct str before, struct str *ret_after, struct err *err)
{
	struct line_job *job = arg;
	uint64_t lines = count_lines(before);

	buf_clear(&job->m->text);
	if (job->line < 0 || (uint64_t)job->line > lines) {
		buf_printf(&job->m->text,
			   "Invalid `insert_line` parameter: %lld. It should be within the range of lines of the file: "
			   "[0, %llu]",
			   (long long)job->line, (unsigned long long)lines);
		return fail(job->m, ERR_INVALID);
	}
	return insert_apply(arena, before, (uint64_t)job->line + 1, job->text, ret_after, err);
}

static int memory_insert(struct memory *m, const struct jv *args, struct wpath path)
{
	struct line_job job = {
		.m = m, .line = jv_get_int(args, "insert_line", 0), .text = jv_get_str(args, "insert_text")};
	struct file_change change = {.change = change_insert, .arg = &job};
	int r = file_change(m->call, path, &change, m->err);

	if (r == 0)
		buf_printf(&m->text, "The file %.*s has been edited.", STR_ARG(shown(m, path)));
	return r;
}

static int memory_delete(struct memory *m, struct wpath path)
{
	int r;

	if (wpath_is_root(path)) {
		buf_lit(&m->text, "Cannot delete the /memories directory itself");
		return fail(m, ERR_INVALID);
	}
	r = store_remove(m->call->files, m->call->ctx, path, true, (struct store_cond){0}, NULL, m->err);
	if (r && m->err->kind == ERR_NOT_FOUND)
		return missing(m, path, "");
	if (r == 0)
		buf_printf(&m->text, "Successfully deleted %.*s", STR_ARG(shown(m, path)));
	return r;
}

static int memory_rename(struct memory *m, const struct jv *args)
{
	struct store_cond absent = {.kind = STORE_ABSENT};
	struct wpath from, to;
	int r = memory_path(m, jv_get_str(args, "old_path"), &from);

	if (r == 0)
		r = memory_path(m, jv_get_str(args, "new_path"), &to);
	if (r)
		return r;
	if (wpath_is_root(from)) {
		buf_lit(&m->text, "Cannot rename the /memories directory itself");
		return fail(m, ERR_INVALID);
	}
	if (wpath_is_root(to))
		r = err_set(m->err, ERR_EXISTS, "the root exists");
	else
		r = store_move(m->call->files, m->call->ctx, from, to, (struct store_cond){0}, absent, NULL, m->err);
	if (r && m->err->kind == ERR_NOT_FOUND)
		return missing(m, from, "");
	if (r && m->err->kind == ERR_EXISTS) {
		buf_printf(&m->text, "The destination %.*s already exists", STR_ARG(shown(m, to)));
		return fail(m, ERR_EXISTS);
	}
	if (r == 0)
		buf_printf(&m->text, "Successfully renamed %.*s to %.*s", STR_ARG(shown(m, from)),
			   STR_ARG(shown(m, to)));
	return r;
}

/* The arguments that each command needs. */
static int check_arguments(const struct jv *args, struct str command, struct err *err)
{
	static const char *const needs[][4] = {
		{"view", "path"},
		{"create", "path", "file_text"},
		{"str_replace", "path", "old_str"},
		{"insert", "path", "insert_line", "insert_text"},
		{"delete", "path"},
		{"rename", "old_path", "new_path"},
	};

	for (size_t i = 0; i < COUNT(needs); i++) {
		if (!str_is(command, needs[i][0]))
			continue;
		for (size_t k = 1; k < 4 && needs[i][k]; k++)
			if (jv_is_null(jv_get(args, needs[i][k])))
				return err_set(err, ERR_INVALID, "memory: the command \"%s\" needs \"%s\"", needs[i][0],
					       needs[i][k]);
	}
	return 0;
}

/* Commands that change a file answer for a directory and a missing file in words of their own. */
static int expect_file(struct memory *m, struct wpath path)
{
	struct store_stat stat;
	int r = store_stat(m->call->files, m->call->ctx, path, &stat, m->err);

	if (r && m->err->kind == ERR_NOT_FOUND)
		return missing(m, path, ". Please provide a valid path.");
	if (r == 0 && stat.kind == STORE_DIR) {
		buf_printf(&m->text, "The path %.*s is not a file.", STR_ARG(shown(m, path)));
		return fail(m, ERR_INVALID);
	}
	return r;
}

static int memory_run(struct memory *m, const struct jv *args, struct str command)
{
	struct wpath path;
	int r = check_arguments(args, command, m->err);

	if (r)
		return r;
	if (str_is(command, "rename"))
		return memory_rename(m, args);
	r = memory_path(m, jv_get_str(args, "path"), &path);
	if (r)
		return r;
	if (str_is(command, "view"))
		return memory_view(m, args, path);
	if (str_is(command, "create"))
		return memory_create(m, args, path);
	if (str_is(command, "delete"))
		return memory_delete(m, path);
	r = expect_file(m, path);
	if (r)
		return r;
	return str_is(command, "insert") ? memory_insert(m, args, path) : memory_str_replace(m, args, path);
}

static int call_memory(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct memory m = {.call = call, .ret = ret, .err = err};
	int r;

	buf_init(&m.text, call->ctx->arena, 2 * TOOL_TEXT_MAX);
	r = memory_run(&m, args, jv_get_str(args, "command"));
	if (r == 0)
		text_reply(ret, &m.text);
	return r;
}

/* clang-format off */
static const struct tool tools[] = {
	{
		.name = "memory", .title = "Memory", .group = "files", .traits = TOOL_DESTRUCTIVE, .call = call_memory,
		.acts_as = "ls read_file write_file edit_file insert_file delete_file move_file",
		.description =
			"Keeps notes in files under /memories, which persist between conversations. Commands: view (a file, or a "
			"directory two levels deep), create (never overwrites), str_replace (the text must be unique), "
			"insert (after a line; 0 is the start), delete, rename.",
		.args =
			"command! view|create|str_replace|insert|delete|rename: what to do\n"
			"path: /memories or below\n"
			"view_range [int]=2: view: [first, last] line, from 1; -1 is the end\n"
			"file_text: create: what to write\n"
			"old_str: str_replace: the exact text to replace\n"
			"new_str: str_replace: the text that replaces it\n"
			"insert_line int: insert: after this line; 0 is the start\n"
			"insert_text: insert: the lines\n"
			"old_path: rename: the current path\n"
			"new_path: rename: the new path",
	},
	{0},
};
/* clang-format on */

const struct dialect dialect_anthropic_memory = {
	.name = "anthropic-memory",
	.root = "memories",
	.top = "/memories",
	.tools = tools,
};
