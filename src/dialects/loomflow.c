/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loomflow's workspace: the notebook tools with their names, arguments and "ERROR:" before a failure, and its file
 * tools over the file area. Kept: a note gets its author from the host; read_note takes a slug or part of a title;
 * lists are newest first and 50 at a time; tags may be one text with commas; list_notes takes the author as `author`
 * (as its documentation says) or `author_filter` (as its code does). Beyond it: lists give their total and can be
 * continued, long notes are read in parts, and earlier versions can be read. bash runs in the sandbox.
 */
#include "dialects/common.h"
#include "home/notebook/notebook_tools.h"

#define LIST_MOST 50
#define GREP_MOST 200
#define FIND_MOST 300

/* --- notes --- */

static void add_title(struct buf *text, const struct jv *note)
{
	struct str title = jv_get_str(note, "title");

	for (size_t i = 0; i < title.len; i++)
		buf_char(text, (unsigned char)title.ptr[i] < 0x20 ? ' ' : title.ptr[i]);
}

static void loom_note_text(const struct jv *args, const struct jv *value, struct buf *text)
{
	(void)args;
	buf_printf(text, "Saved note '%.*s' (author: %.*s, kind: %.*s).", STR_ARG(jv_get_str(value, "slug")),
		   STR_ARG(jv_get_str(value, "author")), STR_ARG(jv_get_str(value, "kind")));
}

static int loom_read_note(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	START("slug_or_title", "slug_or_title", "version", "version", "offset", "offset", NULL);

	r = tool_read_note(call, mapped, ret, err);
	if (r && err->kind == ERR_NOT_FOUND && !jv_get(args, "version"))
		return RETELL(err, "no note matches '%.*s'; use list_notes to see what exists",
			      STR_ARG(utf8_first(jv_get_str(args, "slug_or_title"), 100)));
	if (r)
		return r;
	buf_lit(&text, "# ");
	add_title(&text, ret->value);
	buf_printf(&text, "\nslug: %.*s | author: %.*s | kind: %.*s | updated: %.*s\n\n",
		   STR_ARG(jv_get_str(ret->value, "slug")), STR_ARG(jv_get_str(ret->value, "author")),
		   STR_ARG(jv_get_str(ret->value, "kind")), STR_ARG(jv_get_str(ret->value, "updated")));
	buf_add(&text, jv_get_str(ret->value, "content"));
	if (jv_get(ret->value, "next_offset"))
		buf_printf(&text, "\n[%lld of %lld bytes; continue with offset=%lld]",
			   (long long)jv_get_int(ret->value, "next_offset", 0),
			   (long long)jv_get_int(ret->value, "size", 0),
			   (long long)jv_get_int(ret->value, "next_offset", 0));
	text_reply(ret, &text);
	return 0;
}

/* "- 001-x [ann/finding] Title — first line" */
static void add_notes(struct buf *text, const struct jv *value)
{
	const struct jv *notes = jv_get(value, "notes");

	for (const struct jv_member *m = jv_first(notes); m; m = m->next) {
		struct str lede = jv_get_str(m->value, "lede");

		buf_printf(text, "%s- %.*s [%.*s/%.*s] ", text->len ? "\n" : "", STR_ARG(jv_get_str(m->value, "slug")),
			   STR_ARG(jv_get_str(m->value, "author")), STR_ARG(jv_get_str(m->value, "kind")));
		add_title(text, m->value);
		if (lede.len)
			buf_printf(text, " — %.*s", STR_ARG(lede));
	}
	if (jv_get(value, "next_cursor"))
		buf_printf(text, "\n[%zu of %lld; continue with cursor=\"%.*s\"]", jv_count(notes),
			   (long long)jv_get_int(value, "total", 0), STR_ARG(jv_get_str(value, "next_cursor")));
	if (jv_get(value, "problems"))
		buf_printf(text, "\n[%lld files cannot be read as notes, for example %.*s]",
			   (long long)jv_get_int(value, "total_problems", 0),
			   STR_ARG(jv_get_str(jv_at(jv_get(value, "problems"), 0), "path")));
}

static int loom_list_notes(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	START("author", "author", "kind", "kind", "limit", "limit", "cursor", "cursor", NULL);

	if (jv_get_str(args, "author_filter").len)
		jv_set_str(arena, mapped, "author", jv_get_str(args, "author_filter"));
	if (!jv_get(mapped, "limit"))
		jv_set_int(arena, mapped, "limit", LIST_MOST);
	r = tool_list_notes(call, mapped, ret, err);
	if (r)
		return r;
	add_notes(&text, ret->value);
	if (!text.len)
		buf_lit(&text, "No notes match.");
	text_reply(ret, &text);
	return 0;
}

static void loom_search_text(const struct jv *args, const struct jv *value, struct buf *text)
{
	(void)args;
	for (const struct jv_member *m = jv_first(jv_get(value, "notes")); m; m = m->next) {
		buf_printf(text, "%s- %.*s [%.*s/%.*s] ", text->len ? "\n" : "", STR_ARG(jv_get_str(m->value, "slug")),
			   STR_ARG(jv_get_str(m->value, "author")), STR_ARG(jv_get_str(m->value, "kind")));
		add_title(text, m->value);
		buf_printf(text, "\n  %.*s", STR_ARG(jv_get_str(m->value, "snippet")));
	}
	if (!text->len)
		buf_lit(text, "No notes match.");
	if (jv_get(value, "next_cursor"))
		buf_printf(text, "\n[%lld in all; continue with cursor=\"%.*s\"]",
			   (long long)jv_get_int(value, "total", 0), STR_ARG(jv_get_str(value, "next_cursor")));
}

static void loom_update_note_text(const struct jv *args, const struct jv *value, struct buf *text)
{
	buf_printf(text, "Updated note '%.*s' (%zu characters, version %lld).", STR_ARG(jv_get_str(value, "slug")),
		   utf8_count(jv_get_str(args, "content")), (long long)jv_get_int(value, "version", 0));
}

static void loom_archive_note_text(const struct jv *args, const struct jv *value, struct buf *text)
{
	(void)args;
	buf_printf(text, "Archived note '%.*s'. It no longer shows in lists and searches.",
		   STR_ARG(jv_get_str(value, "slug")));
}

static void loom_ask_text(const struct jv *args, const struct jv *value, struct buf *text)
{
	(void)args;
	buf_printf(text, "Question '%.*s' is open.", STR_ARG(jv_get_str(value, "slug")));
}

static void loom_answer_text(const struct jv *args, const struct jv *value, struct buf *text)
{
	(void)args;
	buf_printf(text, "Answered question '%.*s' with note '%.*s'.",
		   STR_ARG(jv_get_str(jv_get(value, "question"), "slug")), STR_ARG(jv_get_str(value, "slug")));
}

static void loom_questions_text(const struct jv *args, const struct jv *value, struct buf *text)
{
	(void)args;
	add_notes(text, value);
	if (!text->len)
		buf_lit(text, "No open questions.");
}

/* --- files --- */

static int loom_read(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	START("path", "path", NULL);
	struct page_req req = {.offset = arg_count(args, "offset", 0, INT64_MAX),
			       .limit = arg_count(args, "limit", READ_LINES_DEFAULT, INT64_MAX),
			       .bytes_max = READ_BYTES_DEFAULT,
			       .line_cut = READ_LINE_CUT,
			       .number = "%6llu\t"};
	struct page page;
	struct wpath path;

	r = arg_file(call, mapped, "path", &path, err);
	if (r == 0)
		r = page_read(call->ctx, call->files, path, &req, &page, err);
	if (r)
		return r;
	if (page.binary)
		return err_set(err, ERR_UNSUPPORTED, "'%.*s' is a binary file (%llu bytes) and cannot be read as text",
			       STR_ARG(path.s), (unsigned long long)page.stat.size);
	buf_add(&text, page.content);
	if (req.offset + page.lines < page.total_lines)
		buf_printf(&text, "%s[%llu more lines; continue with offset=%llu]",
			   str_ends(page.content, STR("\n")) ? "" : "\n",
			   (unsigned long long)(page.total_lines - req.offset - page.lines),
			   (unsigned long long)(req.offset + page.lines));
	if (!text.len)
		buf_lit(&text, "(empty file)");
	text_reply(ret, &text);
	return 0;
}

static int loom_write(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	START("path", "path", "content", "content", NULL);

	jv_set_str(arena, mapped, "mode", STR("overwrite"));
	r = tool_write_file(call, mapped, ret, err);
	if (r)
		return r;
	buf_printf(&text, "Wrote %lld bytes to %.*s", (long long)jv_get_int(ret->value, "bytes_written", 0),
		   STR_ARG(jv_get_str(ret->value, "path")));
	text_reply(ret, &text);
	return 0;
}

static int loom_edit(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	START("path", "path", "old_string", "old_text", "new_string", "new_text", "replace_all", "replace_all", NULL);

	r = tool_edit_file(call, mapped, ret, err);
	if (r)
		return r;
	buf_printf(&text, "Replaced %lld occurrence(s) in %.*s", (long long)jv_get_int(ret->value, "replaced", 0),
		   STR_ARG(jv_get_str(ret->value, "path")));
	text_reply(ret, &text);
	return 0;
}

static int loom_grep(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	START("pattern", "pattern", "path", "path", "glob", "include", NULL);

	jv_set_bool(arena, mapped, "case_sensitive", !jv_get_bool(args, "ignore_case", false));
	jv_set_int(arena, mapped, "limit", GREP_MOST);
	r = tool_grep(call, mapped, ret, err);
	if (r)
		return r;
	add_grep_lines(&text, ret->value);
	if (!text.len)
		buf_lit(&text, "No matches");
	if (jv_get(ret->value, "next_cursor"))
		buf_printf(&text, "\n[%lld matches in all; narrow the pattern or the path]",
			   (long long)jv_get_int(ret->value, "total_matches", 0));
	text_reply(ret, &text);
	return 0;
}

static int loom_find(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	START("path", "path", NULL);

	jv_set_str(arena, mapped, "pattern", glob_any_depth(arena, jv_get_str(args, "glob")));
	jv_set_int(arena, mapped, "limit", FIND_MOST);
	r = tool_glob(call, mapped, ret, err);
	if (r)
		return r;
	for (const struct jv_member *m = jv_first(jv_get(ret->value, "paths")); m; m = m->next)
		buf_printf(&text, "%s%.*s", text.len ? "\n" : "", STR_ARG(jv_str_of(m->value)));
	if (!text.len)
		buf_lit(&text, "No files match");
	note_more(&text, ret->value, "files in all; narrow the pattern");
	text_reply(ret, &text);
	return 0;
}

static int loom_ls(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	START("path", "path", NULL);

	jv_set_bool(arena, mapped, "details", true);
	r = tool_ls(call, mapped, ret, err);
	if (r)
		return r;
	for (const struct jv_member *m = jv_first(jv_get(ret->value, "entries")); m; m = m->next) {
		buf_printf(&text, "%s%.*s", text.len ? "\n" : "", STR_ARG(jv_get_str(m->value, "path")));
		if (str_is(jv_get_str(m->value, "kind"), "directory"))
			buf_char(&text, '/');
		else
			buf_printf(&text, " (%lld bytes)", (long long)jv_get_int(m->value, "size", 0));
	}
	if (!text.len)
		buf_lit(&text, "(empty)");
	note_more(&text, ret->value, "entries in all; use find");
	text_reply(ret, &text);
	return 0;
}

static int loom_bash(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct exec_call what = {.shell = "bash",
				 .command = jv_get_str(args, "command"),
				 .timeout_s = jv_get_int(args, "timeout", 30),
				 .timeout_max_s = SANDBOX_SECONDS_MAX,
				 .output = 10000};

	return reply_execute(call, &what, false, ret, err);
}

/* clang-format off */
#define PATH "path!: path from the tool root, for example notes/plan.md"
#define TAGS "tags [str]<=50: labels"
#define CURSOR "cursor: next_cursor of the previous page"

static const struct tool tools[] = {
	{.name = "note", .title = "Note", .group = "notes", .acts_as = "note", .call = tool_note, .render = loom_note_text,
	 .description = "Adds a note to the shared notebook.",
	 .args =
		"title!: what it is about, in one line\n"
		"content!: the note, in Markdown\n"
		"kind: finding (default), question, decision, summary, artifact, plan or note\n"
		TAGS},
	{.name = "read_note", .title = "Read note", .group = "notes", .acts_as = "read_note", .traits = RO,
	 .call = loom_read_note,
	 .description = "Reads a note by its slug or part of its title.",
	 .args =
		"slug_or_title!: slug, or part of the title\n"
		"version int>=1: an earlier version (default: the current one)\n"
		"offset int>=0: first byte, for long notes"},
	{.name = "list_notes", .title = "List notes", .group = "notes", .acts_as = "list_notes", .traits = RO,
	 .call = loom_list_notes,
	 .description = "Lists notes, newest first: slug, author, kind, title and first line.",
	 .args =
		"author: only notes by this author\n"
		"author_filter: the same as author\n"
		"kind: only notes of this kind\n"
		"limit int>=1: number of notes (default 50)\n"
		CURSOR},
	{.name = "search_notes", .title = "Search notes", .group = "notes", .acts_as = "search_notes",
	 .traits = RO | TOOL_LONG, .call = tool_search_notes, .render = loom_search_text,
	 .description = "Searches the notebook by words, best first.",
	 .args =
		"query!: words\n"
		"kind: only notes of this kind\n"
		CURSOR},
	{.name = "update_note", .title = "Update note", .group = "notes", .acts_as = "update_note",
	 .call = tool_update_note, .render = loom_update_note_text,
	 .description = "Replaces the text of one of your own notes; the previous version is kept.",
	 .args =
		"slug!: slug of your note\n"
		"content!: the whole new text\n"
		TAGS},
	{.name = "archive_note", .title = "Archive note", .group = "notes", .acts_as = "archive_note",
	 .traits = TOOL_IDEMPOTENT, .call = tool_archive_note, .render = loom_archive_note_text,
	 .description = "Hides one of your own notes from lists and searches; it can still be read by its slug.",
	 .args = "slug!: slug of your note"},
	{.name = "ask_question", .title = "Ask", .group = "notes", .acts_as = "ask_question", .call = tool_ask_question, .render = loom_ask_text,
	 .description = "Leaves a question for your teammates.",
	 .args =
		"title!: the question\n"
		"content!: what is needed to answer it"},
	{.name = "answer_question", .title = "Answer", .group = "notes", .acts_as = "answer_question",
	 .call = tool_answer_question, .render = loom_answer_text,
	 .description = "Answers an open question of any agent with a finding.",
	 .args =
		"slug!: slug of the question\n"
		"content!: the answer"},
	{.name = "list_open_questions", .title = "Open questions", .group = "notes",
	 .acts_as = "list_open_questions", .traits = RO, .call = tool_list_open_questions, .render = loom_questions_text,
	 .description = "Lists the questions that nobody has answered.",
	 .args = CURSOR},
	{.name = "read", .title = "Read", .group = "files", .acts_as = "read_file", .traits = RO, .call = loom_read,
	 .description = "Reads a text file with line numbers.",
	 .args =
		PATH "\n"
		"offset int>=0: first line, from 0 (default 0)\n"
		"limit int>=0: number of lines (default 2000)"},
	{.name = "write", .title = "Write", .group = "files", .acts_as = "write_file", .traits = TOOL_DESTRUCTIVE,
	 .call = loom_write,
	 .description = "Writes a file and replaces its content.",
	 .args =
		PATH "\n"
		"content!: what to write"},
	{.name = "edit", .title = "Edit", .group = "files", .acts_as = "edit_file", .traits = TOOL_DESTRUCTIVE,
	 .call = loom_edit,
	 .description = "Replaces a string that must occur exactly once, or every occurrence with replace_all.",
	 .args =
		PATH "\n"
		"old_string!: the exact string to replace\n"
		"new_string!: the string that replaces it\n"
		"replace_all bool: replace every occurrence (default false)"},
	{.name = "grep", .title = "Grep", .group = "files", .acts_as = "grep", .traits = RO | TOOL_LONG,
	 .call = loom_grep,
	 .description = "Finds lines that match a regular expression.",
	 .args =
		"pattern!: regular expression\n"
		"path: file or directory (default .)\n"
		"glob: only files that match this pattern\n"
		"ignore_case bool: ignore case (default false)"},
	{.name = "find", .title = "Find", .group = "files", .acts_as = "glob", .traits = RO | TOOL_LONG,
	 .call = loom_find,
	 .description = "Finds files by a glob pattern at any depth.",
	 .args =
		"glob!: for example *.md\n"
		"path: directory (default .)"},
	{.name = "ls", .title = "List", .group = "files", .acts_as = "ls", .traits = RO, .call = loom_ls,
	 .description = "Lists a directory with sizes.",
	 .args = "path: directory (default .)"},
	{.name = "bash", .title = "Run a command", .group = "exec", .acts_as = "execute",
	 .traits = TOOL_LONG | TOOL_DESTRUCTIVE | TOOL_RUNS, .call = loom_bash,
	 .description = "Runs a command with bash in a sandbox that sees the files, and no network.",
	 .args =
		"command!: the command\n"
		"timeout int>=1: seconds (default 30, at most 1800)"},
	{0},
};
/* clang-format on */

const struct dialect dialect_loomflow = {
	.name = "loomflow",
	.tools = tools,
	.error_prefix = "ERROR: ",
};
