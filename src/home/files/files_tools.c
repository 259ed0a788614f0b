/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file tools: what each is called, says of itself, takes and gives. Descriptions are written for models: what it
 * does, what it refuses, how to go on.
 */
#include "home/files/files.h"
#include "tool/family.h"
#include "tool/search_source.h"

/* The tables are laid out by hand, one argument a line. */
/* clang-format off */
static const struct tool tools[] = {
	{
		.name = "ls",
		.title = "List a directory",
		.description =
			"Lists files and directories with size and time, in order, with the total. A page has up to "
			"`limit` entries; go on with next_cursor.",
		.args =
		"path: directory (default: the root)\n"
		"depth int>=1: levels to go down, 1 to 20 (default 1)\n"
		"limit int>=1: entries to give (default 1000, at most 10000)\n"
		"cursor: next_cursor of the page before",
		.result =
		"path!\n"
		"entries! [{path!; kind!; size int; modified}]: in list order\n"
		"total int; total_at_least int; skipped int; next_cursor",
		.traits = TOOL_READS_ONLY | TOOL_IDEMPOTENT,
		.call = tool_ls,
		.render = render_ls,
	},
	{
		.name = "read_file",
		.title = "Read a file",
		.description =
			"Reads text by lines (offset counts from 0) or any file by bytes (byte_offset, byte_limit). Tells "
			"the total and where to go on. Lines over 2000 bytes are cut, with the byte offset of the rest. "
			"Binary files need encoding base64.",
		.args =
		"path!: path from the tool root, for example notes/plan.md\n"
		"offset int>=0: first line, from 0 (default 0)\n"
		"limit int>=1: lines (default 2000)\n"
		"byte_offset int>=0: first byte: reads by bytes\n"
		"byte_limit int>=1: bytes (default 102400)\n"
		"line_numbers bool: put 1-based numbers before lines (default false)\n"
		"encoding utf-8|base64: of the content (default utf-8)\n"
		"at_revision int>=0 or str: read it as it was after this revision: a number, a checkpoint "
		"or head",
		.result =
		"path!; size! int; version!; revision int; content!; encoding!; offset int; lines int; "
		"total_lines int; total_lines_at_least int; next_offset int; byte_offset int; bytes int; "
		"next_byte_offset int\n"
		"cut_lines [{line! int; byte_offset! int; bytes_left! int}]: lines that were cut",
		.traits = TOOL_READS_ONLY | TOOL_IDEMPOTENT,
		.call = tool_read_file,
		.render = render_read_file,
	},
	{
		.name = "write_file",
		.title = "Write a file",
		.description =
			"Writes a whole file; directories are made. mode create (the default) refuses an existing file "
			"and shows how it begins; overwrite creates or replaces; append adds the exact bytes, creating "
			"the file.",
		.args =
		"path!: path from the tool root, for example notes/plan.md\n"
		"content!: what to write\n"
		"mode create|overwrite|append: default create\n"
		"encoding utf-8|base64: of the content (default utf-8)\n"
		"if_version: act only if the file still has this version; else nothing changes",
		.result = "path!; size! int; version!; action!; bytes_written! int; lines_written! int",
		.traits = TOOL_DESTRUCTIVE,
		.call = tool_write_file,
		.render = render_written,
	},
	{
		.name = "append_file",
		.title = "Append to a file",
		.description =
			"Adds the exact content to the end of a file and creates it if it is missing. Never loses what "
			"another writer appends at the same time.",
		.args =
		"path!: path from the tool root, for example notes/plan.md\n"
		"content!: what to add\n"
		"encoding utf-8|base64: of the content (default utf-8)\n"
		"if_version: act only if the file still has this version; else nothing changes",
		.result = "path!; size! int; version!; action!; bytes_written! int; lines_written! int",
		.call = tool_append_file,
		.render = render_written,
	},
	{
		.name = "edit_file",
		.title = "Replace text in a file",
		.description =
			"Replaces old_text, which must occur exactly once unless replace_all, by new_text; or applies a "
			"list of edits in order, all or nothing. Shows the difference; dry_run only shows it. When the "
			"text is not found, the nearest text is shown.",
		.args =
		"path!: path from the tool root, for example notes/plan.md\n"
		"old_text: text that is there, exactly\n"
		"new_text: text to put in its place\n"
		"replace_all bool: replace every occurrence (default false)\n"
		"edits [{old_text!: text that is there; new_text!: text to put in its place; "
		"replace_all bool: replace every occurrence (default false)}]: several edits in place of "
		"old_text and new_text\n"
		"dry_run bool: change nothing (default false)\n"
		"if_version: act only if the file still has this version; else nothing changes",
		.result =
		"path!; size! int; version!; replaced! int\n"
		"lines! [int]: 1-based, where it was found\n"
		"dry_run! bool; diff!; matched_crlf bool",
		.traits = TOOL_DESTRUCTIVE,
		.call = tool_edit_file,
		.render = render_edit,
	},
	{
		.name = "insert_file",
		.title = "Insert lines into a file",
		.description =
			"Puts insert_text before line insert_line (1-based; one past the last line appends). Keeps the "
			"file's line ends.",
		.args =
		"path!: path from the tool root, for example notes/plan.md\n"
		"insert_line! int>=0: 1 is before the first line\n"
		"insert_text!: whole lines\n"
		"if_version: act only if the file still has this version; else nothing changes",
		.result = "path!; size! int; version!; inserted_at! int; total_lines! int; diff!",
		.call = tool_insert_file,
		.render = render_edit,
	},
	{
		.name = "delete_file",
		.title = "Delete a file or directory",
		.description = "Removes a file, or with recursive a directory and all in it.",
		.args =
		"path!: path from the tool root, for example notes/plan.md\n"
		"recursive bool: needed for a directory (default false)\n"
		"if_version: act only if the file still has this version; else nothing changes",
		.result = "path!; removed! int",
		.traits = TOOL_DESTRUCTIVE,
		.call = tool_delete_file,
		.render = render_removed,
	},
	{
		.name = "move_file",
		.title = "Move or rename",
		.description =
			"Moves a file or directory; directories on the way are made. Refuses an existing target unless "
			"overwrite; a directory is never replaced.",
		.args =
		"from!: what to move\n"
		"to!: its new path\n"
		"overwrite bool: replace a file that is there (default false)\n"
		"if_version: act only if the file still has this version; else nothing changes",
		.result = "path!; size int; version!; action!; from!; kind!",
		.traits = TOOL_DESTRUCTIVE,
		.call = tool_move_file,
		.render = render_moved,
	},
	{
		.name = "copy_file",
		.title = "Copy a file",
		.description =
			"Copies one file. Refuses an existing target unless overwrite. if_version is the source's.",
		.args =
		"from!: what to copy\n"
		"to!: path of the copy\n"
		"overwrite bool: replace a file that is there (default false)\n"
		"if_version: act only if the file still has this version; else nothing changes",
		.result = "path!; size int; version!; action!; from!; kind!",
		.traits = TOOL_DESTRUCTIVE,
		.call = tool_copy_file,
		.render = render_moved,
	},
	{
		.name = "clear_files",
		.title = "Delete all files",
		.description = "Removes everything under the tool root and tells how many files that were.",
		.result = "path!; removed! int",
		.traits = TOOL_DESTRUCTIVE | TOOL_IDEMPOTENT,
		.call = tool_clear_files,
		.render = render_removed,
	},
	{
		.name = "glob",
		.title = "Find files by pattern",
		.description =
			"Lists files whose path matches: * and ? within a name, ** over any number of directories "
			"(**/*.md includes the root), [a-z], {one,two}. In order, with the total.",
		.args =
		"pattern!: matched against the path below `path`\n"
		"path: directory to look in (default: the root)\n"
		"limit int>=1: files to give (default 1000, at most 10000)\n"
		"all bool: also what .gitignore leaves out in a project of the person's own\n"
		"cursor: next_cursor of the page before",
		.result =
		"paths! [str]: from the tool root\n"
		"total! int; next_cursor",
		.traits = TOOL_READS_ONLY | TOOL_IDEMPOTENT | TOOL_LONG,
		.call = tool_glob,
		.render = render_glob,
	},
	{
		.name = "grep",
		.title = "Search in files",
		.description =
			"Finds lines by regular expression (or literal text) in a file or below a directory, in order, as "
			"path:line:text, counting all matches. Binary files are left out.",
		.args =
		"pattern!: a Perl-compatible expression, or text with literal\n"
		"path: file or directory (default: the root)\n"
		"literal bool: take the pattern as it stands (default false)\n"
		"case_sensitive bool: default true\n"
		"include str or [str]<=50: only files that match; without / the name at any depth\n"
		"exclude str or [str]<=50: not files that match\n"
		"context int>=0: lines to show before and after, at most 50 (default 0)\n"
		"output lines|files|count: what to list (default lines)\n"
		"limit int>=1: lines or files to give (default 100, at most 10000)\n"
		"all bool: also what .gitignore leaves out in a project of the person's own\n"
		"cursor: next_cursor of the page before",
		.result =
		"lines [{path!; line! int; text!; context bool; cut bool; "
		"group_start bool}]: with output lines\n"
		"files [{path!; count! int}]: with output files and count\n"
		"total_matches! int; total_files! int; searched! int; binary_skipped int; unreadable int; "
		"next_cursor",
		.traits = TOOL_READS_ONLY | TOOL_IDEMPOTENT | TOOL_LONG,
		.call = tool_grep,
		.render = render_grep,
	},
	{
		.name = "file_info",
		.title = "Describe a file",
		.description =
			"Size, time, version, whether it is binary, number of lines, kind of content, and how best to "
			"read it.",
		.args = "path!: path from the tool root, for example notes/plan.md",
		.result =
		"path!; size! int; version!; kind!; modified; is_binary bool; line_count int; "
		"line_count_at_least int; mime; suggested_read",
		.traits = TOOL_READS_ONLY | TOOL_IDEMPOTENT,
		.call = tool_file_info,
		.render = render_file_info,
	},
	{
		.name = "exists",
		.title = "Test whether a path exists",
		.description = "Says whether there is a file or a directory at the path.",
		.args = "path!: path from the tool root, for example notes/plan.md",
		.result = "path!; exists! bool; kind; version",
		.traits = TOOL_READS_ONLY | TOOL_IDEMPOTENT,
		.call = tool_exists,
		.render = render_exists,
	},
	{0},
};
/* clang-format on */

static bool owns(struct wpath path)
{
	return wpath_within(path, (struct wpath){STR("files")}) && path.s.len > strlen("files");
}

static const char *const places[] = {"files", NULL};
static const struct search_source sources[] = {{"files", places, owns, NULL}, {0}};

const struct family files_family = {
	.name = "files",
	.tools = tools,
	.search = sources,
};
