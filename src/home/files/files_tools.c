/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of the file tools. Descriptions are written for models: what a tool does, what it refuses, how to
 * continue.
 */
#include "home/files/files.h"
#include "home/files/files_commands.h"
#include "tool/family.h"
#include "tool/search_source.h"

/* clang-format off */
#define PATH       "path!: path from the tool root, for example notes/plan.md\n"
#define ENCODING   "encoding utf-8|base64: encoding of the content (default utf-8)\n"
#define IF_VERSION "if_version: change the file only if it still has this version"
#define CURSOR     "cursor: next_cursor of the previous page"
#define ALL        "all bool: include what .gitignore excludes in a project that the user opened\n"
#define WRITTEN    "path!; size! int; version!; action!; bytes_written! int; lines_written! int"
#define MOVED      "path!; size int; version!; action!; from!; kind!"

static const struct tool tools[] = {
	{
		.name = "ls", .title = "List a directory",
		.traits = RO | TOOL_BASICS | TOOL_FIRST, .call = tool_ls, .render = render_ls,
		.description =
			"Lists the names of files and directories, sorted, and their total number. Directories end in '/'. "
			"Continue a long list with next_cursor.",
		.args =
			"path: directory (default: the root)\n"
			"depth int>=1: levels to descend, 1 to 20 (default 1)\n"
			"details bool: show size, time and version of each file\n"
			"limit int>=1: number of entries (default 1000, at most 10000)\n"
			ALL CURSOR,
		.result =
			"path!\n"
			"entries! [{path!; kind!; size int; modified; version}]: in list order; size, modified and version with "
			"details\n"
			"links [{path!; kind!; target!}]: symbolic links\n"
			"total int; total_at_least int; skipped int; ignored int; next_cursor",
	},
	{
		.name = "read_file", .title = "Read a file",
		.traits = RO | TOOL_BASICS | TOOL_FIRST, .call = tool_read_file, .render = render_read_file,
		.description =
			"Reads text by lines (offset, limit) or any file by bytes (byte_offset, byte_limit), and says "
			"how much there is. Lines over 2000 bytes are cut, with the byte offset of the rest. "
			"Images and sounds are shown. Other binary files need encoding base64.",
		.args =
			PATH
			"offset int>=0: first line, from 1 (default 1)\n"
			"limit int>=1: number of lines (default 2000)\n"
			"byte_offset int>=0: first byte; reads by bytes\n"
			"byte_limit int>=1: number of bytes (default 40960)\n"
			"line_numbers bool: put a number before each line, from 1\n"
			ENCODING
			"at_revision: read the file as it was after this revision: a number, a checkpoint or head",
		.result =
			"path!; size! int; version!; revision int; content!; encoding!; mime; offset int; lines int; total_lines int; "
			"total_lines_at_least int; next_offset int; byte_offset int; bytes int; next_byte_offset int\n"
			"cut_lines [{line! int; byte_offset! int; bytes_left! int}]: lines that were cut",
	},
	{
		.name = "read_files", .title = "Read several files", .traits = RO, .call = tool_read_files,
		.needs = "read_file", .render = render_read_files,
		.description =
			"Reads several text files at once, each from its first line, in one reply of at most 40 KiB. A file that cannot "
			"be read does not stop the others.",
		.args = "paths! [str]>=1<=50: paths from the tool root",
		.result =
			"files! [{path!; size int; version; content; encoding; mime; offset int; lines int; total_lines int; "
			"total_lines_at_least int; next_offset int; cut_lines [{line! int; byte_offset! int; bytes_left! int}]; error}]",
	},
	{
		.name = "write_file", .title = "Write a file",
		.traits = TOOL_DESTRUCTIVE | TOOL_BASICS | TOOL_FIRST, .call = tool_write_file,
		.render = render_written,
		.description =
			"Writes a whole file and makes missing directories. mode create (the default) refuses an existing file "
			"and shows its first lines; overwrite creates or replaces it; append adds the exact bytes to it or "
			"creates it.",
		.args =
			PATH
			"content!: what to write\n"
			"mode create|overwrite|append: default create\n"
			ENCODING IF_VERSION,
		.result = WRITTEN,
	},
	{
		.name = "append_file", .title = "Append to a file", .traits = TOOL_BASICS, .call = tool_append_file,
		.render = render_written,
		.needs = "write_file",
		.description =
			"Adds the exact content to the end of a file, or creates it. What another writer appends at the same "
			"time is kept.",
		.args =
			PATH
			"content!: what to append\n"
			ENCODING IF_VERSION,
		.result = WRITTEN,
	},
	{
		.name = "edit_file", .title = "Replace text in a file",
		.traits = TOOL_DESTRUCTIVE | TOOL_BASICS | TOOL_FIRST, .call = tool_edit_file,
		.needs = "write_file read_file",
		.render = render_edit,
		.description =
			"Replaces old_text with new_text. old_text must occur exactly once, unless replace_all is set. With "
			"edits, applies several replacements in order, all or none. Shows the diff; if the text is not found, "
			"shows the nearest text.",
		.args =
			PATH
			"old_text: the exact text to replace\n"
			"new_text: the text that replaces it\n"
			"replace_all bool: replace every occurrence\n"
			"edits [{old_text!: the exact text to replace; new_text!: the text that replaces it; "
			"replace_all bool: replace every occurrence}]: several edits, instead of old_text and "
			"new_text\n"
			"dry_run bool: show the diff without changing the file\n"
			IF_VERSION,
		.result =
			"path!; size! int; version!; replaced! int\n"
			"lines! [int]: the lines where it was found, from 1\n"
			"dry_run! bool; diff!; matched_crlf bool",
	},
	{
		.name = "insert_file", .title = "Insert lines into a file", .call = tool_insert_file, .render = render_edit,
		.needs = "write_file read_file",
		.description =
			"Inserts text before a line; the line after the last one appends. Keeps the file's line endings.",
		.args =
			PATH
			"insert_line! int>=0: the line to insert before, from 1\n"
			"insert_text!: whole lines\n"
			IF_VERSION,
		.result = "path!; size! int; version!; inserted_at! int; total_lines! int; diff!",
	},
	{
		.name = "delete_file", .title = "Delete a file or directory", .traits = TOOL_DESTRUCTIVE | TOOL_BASICS,
		.call = tool_delete_file, .render = render_removed,
		.description = "Deletes a file, or with recursive a directory and everything in it.",
		.args =
			PATH
			"recursive bool: required for a directory\n"
			IF_VERSION,
		.result = "path!; removed! int",
	},
	{
		.name = "move_file", .title = "Move or rename", .traits = TOOL_DESTRUCTIVE | TOOL_BASICS, .call = tool_move_file,
		.needs = "write_file delete_file read_file",
		.render = render_moved,
		.description =
			"Moves a file or directory and makes missing directories. Refuses to replace an existing file unless "
			"overwrite is set, and never replaces a directory.",
		.args =
			"from!: path of the file or directory\n"
			"to!: its new path\n"
			"overwrite bool: replace an existing file\n"
			IF_VERSION,
		.result = MOVED,
	},
	{
		.name = "copy_file", .title = "Copy a file", .traits = TOOL_DESTRUCTIVE | TOOL_BASICS, .call = tool_copy_file,
		.needs = "write_file read_file",
		.render = render_moved,
		.description = "Copies one file. Refuses to replace an existing file unless overwrite is set.",
		.args =
			"from!: path of the file\n"
			"to!: path of the copy\n"
			"overwrite bool: replace an existing file\n"
			"if_version: copy the file only if it still has this version",
		.result = MOVED,
	},
	{
		.name = "clear_files", .title = "Delete all files", .traits = TOOL_DESTRUCTIVE | TOOL_IDEMPOTENT,
		.needs = "delete_file",
		.call = tool_clear_files, .render = render_removed,
		.description = "Deletes everything below the root and reports how many files there were.",
		.result = "path!; removed! int",
	},
	{
		.name = "glob", .title = "Find files by pattern",
		.traits = RO | TOOL_LONG | TOOL_BASICS | TOOL_FIRST, .call = tool_glob,
		.render = render_glob,
		.description =
			"Lists the files whose path matches a pattern, sorted, and their total number. * and ? match within a "
			"name, ** any number of directories (**/*.md includes the root); [a-z] and {one,two} work too.",
		.args =
			"pattern!: matched against the path below `path`\n"
			"path: directory to search (default: the root)\n"
			"limit int>=1: number of files (default 1000, at most 10000)\n"
			ALL CURSOR,
		.result =
			"paths! [str]: paths from the tool root\n"
			"total! int; next_cursor; hint",
	},
	{
		.name = "grep", .title = "Search in files",
		.traits = RO | TOOL_LONG | TOOL_BASICS | TOOL_FIRST, .call = tool_grep,
		.needs = "read_file",
		.render = render_grep,
		.description =
			"Finds lines by regular expression or literal text in a file or below a directory, shows them as "
			"path:line:text, and counts all matches. Binary files are skipped.",
		.args =
			"pattern!: a Perl-compatible regular expression, or text if literal is set\n"
			"path: file or directory (default: the root)\n"
			"literal bool: search for the pattern as plain text\n"
			"case_sensitive bool: default true\n"
			"include [str]<=50: only files that match one of these globs; without / it matches names at any depth\n"
			"exclude [str]<=50: skip files that match one of these globs\n"
			"context int>=0: lines to show before and after each match, at most 50 (default 0)\n"
			"output lines|files|count: what to list (default lines)\n"
			"limit int>=1: number of lines or files (default 100, at most 10000)\n"
			ALL CURSOR,
		.result =
			"lines [{path!; line! int; text!; context bool; cut bool; group_start bool}]: for output lines\n"
			"files [{path!; count! int}]: for output files and count\n"
			"total_matches! int; total_files! int; searched! int; binary_skipped int; unreadable int; next_cursor; hint",
	},
	{
		.name = "file_info", .title = "Describe a file", .traits = RO | TOOL_BASIC_FILES, .call = tool_file_info,
		.render = render_file_info,
		.description = "Shows a file's size, time, version, type, number of lines, and the best way to read it.",
		.args = "path!: path from the tool root, for example notes/plan.md",
		.result =
			"path!; size! int; version!; kind!; modified; is_binary bool; line_count int; line_count_at_least int; "
			"mime; suggested_read",
	},
	{
		.name = "exists", .title = "Test whether a path exists", .traits = RO, .call = tool_exists,
		.render = render_exists,
		.description = "Says whether there is a file or a directory at a path.",
		.args = "path!: path from the tool root, for example notes/plan.md",
		.result = "path!; exists! bool; kind; version",
	},
	{0},
};
/* clang-format on */

/* The words of a PDF are among commands of its own language, and a passage of that helps nobody. */
static bool owns(struct wpath path)
{
	struct str end = str_from(path.s, path.s.len > 4 ? path.s.len - 4 : 0);

	return wpath_within(path, (struct wpath){STR("files")}) && path.s.len > strlen("files") &&
	       !str_eq_nocase(end, STR(".pdf"));
}

static const char *const places[] = {"files", NULL};
static const struct search_source sources[] = {{"files", places, owns, NULL, NULL}, {0}};

const struct family files_family = {
	.name = "files",
	.about = "The files below the tool root.",
	.tools = tools,
	.search = sources,
	.commands = files_commands,
};
