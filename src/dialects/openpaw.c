/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenPaw's tools for files, tasks, plans and archived conversations. '/' is the whole workspace; paths are relative
 * only. Kept: numbered reads with lines cut at 2,000 characters and a whole of at most 100,000, create-only write_file,
 * unique edits, regular expressions with lines cut at 200 characters, JSON from file_info, "Error:" before a failure.
 * Not kept: the redirection of writes into workspace/, which its own reads do not follow, and groups of context that
 * repeat lines. Its task tools are the native ones; its plan is the list of todo_write.
 */
#include "base/clock.h"
#include "dialects/common.h"
#include "home/plans/plans.h"
#include "home/plans/plans_tools.h"
#include "home/search/search.h"
#include "home/web/web_tools.h"

#define OUTPUT_MOST 100000
#define LINE_MOST   2000
#define GREP_CUT    200

static int paw_path(struct call *call, const struct jv *args, const char *from, struct jv *out, struct err *err)
{
	struct str path = jv_get_str(args, from);

	if (str_starts(path, STR("/")) || str_starts(path, STR("~")))
		return err_set(err, ERR_INVALID,
			       "the path \"%.*s\" is not relative; use a path inside the workspace, see ls('.')",
			       STR_ARG(utf8_first(path, 150)));
	jv_set_str(call->ctx->arena, out, "path", path);
	return 0;
}

/* A missing path gets the advice to look around. */
static int advise(int r, struct outcome *ret, const struct err *err)
{
	if (r && err->kind == ERR_NOT_FOUND && !ret->detail.len)
		ret->detail = STR("Use ls('.') to see what is there.");
	return r;
}

static int paw_ls(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	START(NULL);
	const struct jv *entries;
	struct str dir;

	r = paw_path(call, args, "path", mapped, err);
	if (r == 0)
		jv_set_bool(arena, mapped, "details", true), r = tool_ls(call, mapped, ret, err);
	if (r)
		return advise(r, ret, err);
	entries = jv_get(ret->value, "entries");
	dir = jv_get_str(ret->value, "path");
	dir = str_is(dir, "/") ? STR(".") : dir;
	if (jv_count(entries) == 0) {
		buf_printf(&text, "Directory '%.*s' is empty.", STR_ARG(dir));
		text_reply(ret, &text);
		return 0;
	}
	buf_printf(&text, "Workspace '%.*s', directory '%.*s':", STR_ARG(workspace_name(call->ws)), STR_ARG(dir));
	for (const struct jv_member *m = jv_first(entries); m; m = m->next) {
		buf_char(&text, '\n');
		buf_add(&text, jv_get_str(m->value, "path"));
		if (str_is(jv_get_str(m->value, "kind"), "directory")) {
			buf_char(&text, '/');
			continue;
		}
		buf_lit(&text, "  ");
		buf_size(&text, (uint64_t)jv_get_int(m->value, "size", 0));
		buf_lit(&text, "  ");
		buf_add(&text, jv_get_str(m->value, "modified"));
	}
	note_more(&text, ret->value, "entries in all; use glob_files");
	text_reply(ret, &text);
	return 0;
}

/* Numbered lines up to OUTPUT_MOST characters; returns how many were given. */
static uint64_t number_lines(struct str content, uint64_t first, struct buf *text)
{
	size_t used = 0;
	uint64_t given = 0;
	struct str line;

	if (str_ends(content, STR("\n")))
		content.len--;
	while (str_cut(&content, '\n', &line)) {
		struct str shown = utf8_points(line, LINE_MOST);
		size_t points = utf8_count(shown) + 8;

		if (used + points > OUTPUT_MOST)
			break;
		used += points;
		buf_printf(text, "%s%6llu→", given ? "\n" : "", (unsigned long long)(first + given + 1));
		buf_add(text, shown);
		given++;
	}
	return given;
}

static int paw_read(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	START(NULL);
	struct page_req req = {.offset = arg_count(args, "offset", 0, INT64_MAX),
			       .limit = arg_count(args, "limit", READ_LINES_DEFAULT, INT64_MAX),
			       .bytes_max = 4 * OUTPUT_MOST,
			       .line_cut = 4 * LINE_MOST,
			       .plain_cuts = true};
	struct page page;
	struct wpath path;
	uint64_t given, left;

	r = paw_path(call, args, "file_path", mapped, err);
	if (r == 0)
		r = arg_file(call, mapped, "path", &path, err);
	if (r == 0)
		r = page_read(call->ctx, call->files, path, &req, &page, err);
	if (r)
		return advise(r, ret, err);
	if (page.binary)
		return err_set(err, ERR_UNSUPPORTED, "'%.*s' is a binary file (%llu bytes) and cannot be read as text",
			       STR_ARG(path.s), (unsigned long long)page.stat.size);
	if (page.total_lines && req.offset >= page.total_lines)
		return err_set(err, ERR_INVALID, "offset %llu is past the end of '%.*s' (%llu lines)",
			       (unsigned long long)req.offset, STR_ARG(path.s), (unsigned long long)page.total_lines);
	if (page.total_lines == 0) {
		buf_printf(&text, "File '%.*s' is empty.", STR_ARG(path.s));
		text_reply(ret, &text);
		return 0;
	}
	given = number_lines(page.content, req.offset, &text);
	left = page.total_lines - req.offset - given;
	if (given < page.lines)
		buf_printf(&text, "\n[output cut at %d characters; continue with offset=%llu and a smaller limit]",
			   OUTPUT_MOST, (unsigned long long)(req.offset + given));
	if (left)
		buf_printf(&text, "\n[%llu more line%s; continue with offset=%llu]", (unsigned long long)left,
			   plural(left), (unsigned long long)(req.offset + given));
	text_reply(ret, &text);
	return 0;
}

static int paw_write(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	START("content", "content", NULL);
	bool appends;
	int64_t n;

	r = paw_path(call, args, "file_path", mapped, err);
	if (r == 0)
		r = tool_write_file(call, mapped, ret, err);
	appends = r && err->kind == ERR_EXISTS; /* "create new files or append to existing files" */
	if (appends) {
		*ret = (struct outcome){0};
		r = tool_append_file(call, mapped, ret, err);
	}
	if (r)
		return r;
	n = (int64_t)count_lines(jv_get_str(mapped, "content"));
	buf_printf(&text, "%s '%.*s' (%lld line%s)", appends ? "Appended to" : "Created",
		   STR_ARG(jv_get_str(ret->value, "path")), (long long)n, plural((uint64_t)n));
	text_reply(ret, &text);
	return 0;
}

static int paw_overwrite(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	START("content", "content", NULL);
	int64_t n;

	jv_set_str(arena, mapped, "mode", STR("overwrite"));
	r = paw_path(call, args, "file_path", mapped, err);
	if (r == 0)
		r = tool_write_file(call, mapped, ret, err);
	if (r)
		return r;
	n = jv_get_int(ret->value, "lines_written", 0);
	buf_printf(&text, "Wrote '%.*s' (%lld line%s)", STR_ARG(jv_get_str(ret->value, "path")), (long long)n,
		   plural((uint64_t)n));
	text_reply(ret, &text);
	return 0;
}

static int paw_edit(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	START("old_text", "old_text", "new_text", "new_text", "replace_all", "replace_all", NULL);
	int64_t n;

	r = paw_path(call, args, "file_path", mapped, err);
	if (r == 0)
		r = tool_edit_file(call, mapped, ret, err);
	if (r)
		return r;
	n = jv_get_int(ret->value, "replaced", 0);
	buf_printf(&text, "Replaced %lld occurrence%s in '%.*s'", (long long)n, plural((uint64_t)n),
		   STR_ARG(jv_get_str(ret->value, "path")));
	text_reply(ret, &text);
	return 0;
}

static int paw_glob(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	START("pattern", "pattern", NULL);

	r = paw_path(call, args, "path", mapped, err);
	if (r == 0)
		r = tool_glob(call, mapped, ret, err);
	if (r)
		return advise(r, ret, err);
	for (const struct jv_member *m = jv_first(jv_get(ret->value, "paths")); m; m = m->next) {
		if (text.len)
			buf_char(&text, '\n');
		buf_add(&text, jv_str_of(m->value));
	}
	if (text.len == 0)
		buf_printf(&text, "No files match '%.*s'.", STR_ARG(jv_get_str(args, "pattern")));
	note_more(&text, ret->value, "files in all; narrow the pattern");
	text_reply(ret, &text);
	return 0;
}

static int paw_grep(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	START("pattern", "pattern", "file_pattern", "include", "case_sensitive", "case_sensitive", "max_matches",
	      "limit", "context_lines", "context", NULL);
	uint64_t shown = 0, total;

	r = paw_path(call, args, "path", mapped, err);
	if (r == 0)
		r = tool_grep(call, mapped, ret, err);
	if (r)
		return advise(r, ret, err);
	for (const struct jv_member *m = jv_first(jv_get(ret->value, "lines")); m; m = m->next) {
		char sep = jv_get_bool(m->value, "context", false) ? '-' : ':';

		shown += sep == ':';
		if (text.len)
			buf_char(&text, '\n');
		if (jv_get_int(args, "context_lines", 0) > 0 && jv_get_bool(m->value, "group_start", false))
			buf_lit(&text, "--\n");
		buf_add(&text, jv_get_str(m->value, "path"));
		buf_printf(&text, "%c%lld%c ", sep, (long long)jv_get_int(m->value, "line", 0), sep);
		buf_add(&text, utf8_points(jv_get_str(m->value, "text"), GREP_CUT));
	}
	total = (uint64_t)jv_get_int(ret->value, "total_matches", 0);
	if (total == 0)
		buf_printf(&text, "No matches for '%.*s'.", STR_ARG(jv_get_str(args, "pattern")));
	if (total > shown)
		buf_printf(&text, "\n[%llu more match%s; narrow the pattern or raise max_matches]",
			   (unsigned long long)(total - shown), total - shown == 1 ? "" : "es");
	text_reply(ret, &text);
	return 0;
}

static void paw_info_file(struct arena *arena, const struct jv *value, struct jv *out)
{
	struct buf size;

	buf_init(&size, arena, 64);
	buf_size(&size, (uint64_t)jv_get_int(value, "size", 0));
	jv_set_int(arena, out, "size_bytes", jv_get_int(value, "size", 0));
	jv_set_str(arena, out, "size_human", buf_str(&size));
	jv_set_bool(arena, out, "is_binary", jv_get_bool(value, "is_binary", false));
	jv_set_str(arena, out, "last_modified", jv_get_str(value, "modified"));
	if (jv_get(value, "line_count_at_least"))
		jv_set_str(arena, out, "line_count", STR("10000+"));
	else if (jv_get(value, "line_count"))
		jv_set_int(arena, out, "line_count", jv_get_int(value, "line_count", 0));
	jv_set_str(arena, out, "suggested_read_strategy", jv_get_str(value, "suggested_read"));
}

static int paw_info(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	START(NULL);
	struct jv *out = jv_object(arena);

	r = paw_path(call, args, "path", mapped, err);
	if (r)
		return r;
	r = tool_file_info(call, mapped, ret, err);
	jv_set_str(arena, out, "path", jv_get_str(args, "path"));
	jv_set_bool(arena, out, "exists", r == 0);
	if (r) {
		jv_set_str(arena, out, "error", err_text(arena, err));
	} else if (str_is(jv_get_str(ret->value, "kind"), "directory")) {
		jv_set_str(arena, out, "error", STR("it is a directory; use ls"));
	} else {
		paw_info_file(arena, ret->value, out);
	}
	jv_write_pretty(&text, out);
	text.len--;
	text_reply(ret, &text);
	return 0;
}

/* --- plans and archives --- */

static int paw_write_plan(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	struct jv *todos = jv_array(arena);
	struct buf text;
	int r;

	for (const struct jv_member *m = jv_first(jv_get(args, "steps")); m; m = m->next) {
		struct jv *item = jv_object(arena);

		jv_set_str(arena, item, "content", jv_get_str(m->value, "step"));
		jv_set_str(arena, item, "status", jv_get_str(m->value, "status"));
		jv_push(arena, todos, item);
	}
	r = todo_write(call->ws, call->ctx, todos, &ret->value, err);
	if (r)
		return r;
	buf_init(&text, arena, TOOL_TEXT_MAX);
	buf_printf(&text, "Plan with %zu steps:", jv_count(todos));
	todo_lines(ret->value, "[>]", &text);
	text_reply(ret, &text);
	return 0;
}

static int paw_read_plan(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct buf text;
	int r = todo_read(call->ws, call->ctx, &ret->value, err);

	(void)args;
	if (r)
		return r;
	buf_init(&text, call->ctx->arena, TOOL_TEXT_MAX);
	buf_add(&text, jv_count(jv_get(ret->value, "todos")) ? STR("Plan:") : STR("There is no plan yet."));
	todo_lines(ret->value, "[>]", &text);
	text_reply(ret, &text);
	return 0;
}

static int paw_conversations(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	START(NULL);
	struct search_query query = {.text = jv_get_str(args, "query"),
				     .areas = search_area(STR("memory")),
				     .under = STR("memory/conversations"),
				     .limit = arg_count(args, "limit", 5, 20)};
	struct search_hits hits;

	(void)mapped;
	r = home_search(call->ws, call->ctx, &query, &hits, err);
	if (r)
		return r;
	for (size_t i = 0; i < hits.count; i++)
		buf_printf(&text, "%s[%.*s]\n%.*s", i ? "\n\n" : "",
			   STR_ARG(wpath_name((struct wpath){hits.hits[i].path})), STR_ARG(hits.hits[i].snippet));
	if (!hits.count)
		buf_printf(&text, "No conversations match '%.*s'.", STR_ARG(query.text));
	text_reply(ret, &text);
	return 0;
}

static int paw_shell(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct exec_call what = {.shell = "sh",
				 .command = jv_get_str(args, "command"),
				 .timeout_s = jv_get_int(args, "timeout_seconds", 120),
				 .timeout_max_s = 600,
				 .output = 50000};

	return reply_execute(call, &what, false, ret, err);
}

/* clang-format off */
#define FILE_PATH "file_path!: relative path in the workspace\n"

static const struct tool tools[] = {
	{.name = "ls", .title = "List", .group = "files", .acts_as = "ls", .traits = RO, .call = paw_ls,
	 .description = "Lists a directory of the workspace, with sizes and times.",
	 .args = "path: relative directory (default .)"},
	{.name = "read_file", .title = "Read", .group = "files", .acts_as = "read_file", .traits = RO, .call = paw_read,
	 .description = "Reads a text file with line numbers, 2000 lines at a time.",
	 .args =
		FILE_PATH
		"offset int>=0: first line, from 0 (default 0)\n"
		"limit int>=1: number of lines (default 2000)"},
	{.name = "write_file", .title = "Write", .group = "files", .acts_as = "write_file", .call = paw_write,
	 .description = "Creates a file, or appends to one that exists.",
	 .args =
		FILE_PATH
		"content!: what to write"},
	{.name = "overwrite_file", .title = "Overwrite", .group = "files", .acts_as = "write_file",
	 .traits = TOOL_DESTRUCTIVE | TOOL_IDEMPOTENT, .call = paw_overwrite,
	 .description = "Creates a file or replaces its whole content.",
	 .args =
		FILE_PATH
		"content!: what to write"},
	{.name = "edit_file", .title = "Edit", .group = "files", .acts_as = "edit_file", .traits = TOOL_DESTRUCTIVE,
	 .call = paw_edit,
	 .description = "Replaces text that must occur exactly once, or every occurrence with replace_all.",
	 .args =
		FILE_PATH
		"old_text!: the exact text to replace\n"
		"new_text!: the text that replaces it\n"
		"replace_all bool: replace every occurrence (default false)"},
	{.name = "glob_files", .title = "Glob", .group = "files", .acts_as = "glob", .traits = RO | TOOL_LONG,
	 .call = paw_glob,
	 .description = "Finds files by pattern; ** matches any number of directories.",
	 .args =
		"pattern!: for example **/*.py\n"
		"path: relative directory (default .)"},
	{.name = "grep_files", .title = "Grep", .group = "files", .acts_as = "grep", .traits = RO | TOOL_LONG,
	 .call = paw_grep,
	 .description = "Finds lines by regular expression, with context_lines around each.",
	 .args =
		"pattern!: regular expression\n"
		"path: relative file or directory (default .)\n"
		"file_pattern: only files that match this pattern\n"
		"case_sensitive bool: default true\n"
		"max_matches int>=1: number of matching lines (default 100)\n"
		"context_lines int>=0: lines to show before and after each match (default 0)"},
	{.name = "file_info", .title = "File info", .group = "files", .acts_as = "file_info", .traits = RO,
	 .call = paw_info,
	 .description = "Gives the size, type and number of lines of a file and the best way to read it, as JSON.",
	 .args = "path!: relative path"},
	{.same_as = "create_task"}, {.same_as = "list_tasks"}, {.same_as = "update_task"}, {.same_as = "get_task"},
	{.same_as = "delete_task"},
	{.name = "write_plan", .title = "Write the plan", .group = "plan", .acts_as = "todo_write", .call = paw_write_plan,
	 .traits = TOOL_IDEMPOTENT | TOOL_PLANS, .description = "Replaces the steps of the plan of this session.",
	 .args =
		"steps! [{step!: what to do; "
		"status pending|in_progress|completed: default pending}]: all steps, in order"},
	{.name = "read_plan", .title = "Read the plan", .group = "plan", .acts_as = "todo_read", .call = paw_read_plan,
	 .traits = RO | TOOL_PLANS, .description = "Reads the steps of the plan of this session."},
	{.name = "search_conversations", .title = "Search conversations", .group = "sessions", .acts_as = "session_search",
	 .traits = RO | TOOL_LONG, .call = paw_conversations,
	 .description = "Finds passages in archived conversations, best first.",
	 .args =
		"query!: words to find\n"
		"limit int>=1: number of passages (default 5, at most 20)"},
	{.same_as = "send_message"}, {.same_as = "send_file"}, {.same_as = "request_followup"},
	{.same_as = "browse_channel_history"},
	{.same_as = "text_to_speech"}, {.same_as = "speech_to_text"}, {.same_as = "markdown_to_pdf"},
	{.same_as = "browser_navigate"}, {.same_as = "browser_snapshot"}, {.same_as = "browser_click"}, {.same_as = "browser_type"},
	{.same_as = "browser_select"}, {.same_as = "browser_scroll"}, {.same_as = "browser_back"}, {.same_as = "browser_screenshot"},
	{.same_as = "browser_close"}, {.same_as = "browser_tabs"}, {.same_as = "browser_switch_tab"},
	{.name = "brave_search", .title = "Search the web", .group = "web", .acts_as = "web_search",
	 .traits = RO | TOOL_OPEN_WORLD | TOOL_LONG, .call = tool_web_search, .render = render_web_results,
	 .description = "Searches the web; gives titles, URLs and the text found, best first.",
	 .args = "query!: words to search for"},
	{.name = "shell", .title = "Run a command", .group = "exec", .acts_as = "execute",
	 .traits = TOOL_LONG | TOOL_DESTRUCTIVE | TOOL_RUNS, .call = paw_shell,
	 .description = "Runs a shell command in a sandbox that sees the workspace, and no network.",
	 .args =
		"command!: the command, for sh\n"
		"timeout_seconds int>=1: default 120, at most 600"},
	{0},
};
/* clang-format on */

const struct dialect dialect_openpaw = {
	.name = "openpaw",
	.root = "workspace",
	.tools = tools,
	.error_prefix = "Error: ",
};
