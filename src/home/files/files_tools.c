/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file tools: what each is called, says of itself, takes and gives. Descriptions are written for models: what it
 * does, what it refuses, how to go on.
 */
#include "home/files/files.h"
#include "home/files/files_commands.h"
#include "tool/family.h"
#include "tool/schemas.h"
#include "tool/search_source.h"

/* The tables are laid out by hand, one argument a line. */
/* clang-format off */
#define LS_ENTRY S_OBJ( \
	S_BARE("path", "string") AND S_BARE("kind", "string") AND S_BARE("size", "integer") AND \
	S_BARE("modified", "string"), "\"path\",\"kind\"")
#define CUT_LINE S_OBJ( \
	S_BARE("line", "integer") AND S_BARE("byte_offset", "integer") AND S_BARE("bytes_left", "integer"), \
	"\"line\",\"byte_offset\",\"bytes_left\"")
#define EDIT_ITEM S_OBJ( \
	S_STR("old_text", "text that is there") AND S_STR("new_text", "text to put in its place") AND \
	S_BOOL("replace_all", "replace every occurrence (default false)"), "\"old_text\",\"new_text\"")
#define R_WRITTEN S_OBJ( \
	R_FILE AND S_BARE("action", "string") AND S_BARE("bytes_written", "integer") AND \
	S_BARE("lines_written", "integer"), \
	"\"path\",\"size\",\"version\",\"action\",\"bytes_written\",\"lines_written\"")
#define R_REMOVED S_OBJ(S_BARE("path", "string") AND S_BARE("removed", "integer"), "\"path\",\"removed\"")
#define R_MOVED S_OBJ( \
	R_FILE AND S_BARE("action", "string") AND S_BARE("from", "string") AND S_BARE("kind", "string"), \
	"\"path\",\"from\",\"kind\",\"action\",\"version\"")
#define GLOB_OR_LIST(name, text) \
	"\"" name "\":{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"array\",\"items\":{\"type\":\"string\"}," \
	"\"maxItems\":50}],\"description\":\"" text "\"}"
#define GREP_LINE S_OBJ( \
	S_BARE("path", "string") AND S_BARE("line", "integer") AND S_BARE("text", "string") AND \
	S_BARE("context", "boolean") AND S_BARE("cut", "boolean") AND S_BARE("group_start", "boolean"), \
	"\"path\",\"line\",\"text\"")
#define GREP_FILE S_OBJ(S_BARE("path", "string") AND S_BARE("count", "integer"), "\"path\",\"count\"")

static const struct tool tools[] = {
	{
		.name = "ls",
		.title = "List a directory",
		.description =
			"Lists files and directories with size and time, in order, with the total. A page has up to "
			"`limit` entries; go on with next_cursor.",
		.input_schema = S_OBJ(
			S_STR("path", "directory (default: the root)") AND
			S_INT1("depth", "levels to go down, 1 to 20 (default 1)") AND
			S_INT1("limit", "entries to give (default 1000, at most 10000)") AND
			S_CURSOR, ""),
		.output_schema = S_OBJ(
			S_BARE("path", "string") AND
			S_LIST("entries", LS_ENTRY, "in list order") AND
			S_BARE("total", "integer") AND
			S_BARE("total_at_least", "integer") AND
			S_BARE("skipped", "integer") AND
			S_BARE("next_cursor", "string"), "\"path\",\"entries\""),
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
		.input_schema = S_OBJ(
			S_PATH AND
			S_INT("offset", "first line, from 0 (default 0)") AND
			S_INT1("limit", "lines (default 2000)") AND
			S_INT("byte_offset", "first byte: reads by bytes") AND
			S_INT1("byte_limit", "bytes (default 102400)") AND
			S_BOOL("line_numbers", "put 1-based numbers before lines (default false)") AND
			S_ENCODING AND
			S_REV("at_revision", "read it as it was after this revision"), "\"path\""),
		.output_schema = S_OBJ(
			R_FILE AND
			S_BARE("revision", "integer") AND
			S_BARE("content", "string") AND
			S_BARE("encoding", "string") AND
			S_BARE("offset", "integer") AND
			S_BARE("lines", "integer") AND
			S_BARE("total_lines", "integer") AND
			S_BARE("total_lines_at_least", "integer") AND
			S_BARE("next_offset", "integer") AND
			S_BARE("byte_offset", "integer") AND
			S_BARE("bytes", "integer") AND
			S_BARE("next_byte_offset", "integer") AND
			S_LIST("cut_lines", CUT_LINE, "lines that were cut"),
			"\"path\",\"size\",\"version\",\"content\",\"encoding\""),
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
		.input_schema = S_OBJ(
			S_PATH AND
			S_STR("content", "what to write") AND
			S_ENUM("mode", "\"create\",\"overwrite\",\"append\"", "default create") AND
			S_ENCODING AND
			S_IF_VERSION, "\"path\",\"content\""),
		.output_schema = R_WRITTEN,
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
		.input_schema = S_OBJ(
			S_PATH AND
			S_STR("content", "what to add") AND
			S_ENCODING AND
			S_IF_VERSION, "\"path\",\"content\""),
		.output_schema = R_WRITTEN,
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
		.input_schema = S_OBJ(
			S_PATH AND
			S_STR("old_text", "text that is there, exactly") AND
			S_STR("new_text", "text to put in its place") AND
			S_BOOL("replace_all", "replace every occurrence (default false)") AND
			S_LIST("edits", EDIT_ITEM, "several edits in place of old_text and new_text") AND
			S_BOOL("dry_run", "change nothing (default false)") AND
			S_IF_VERSION, "\"path\""),
		.output_schema = S_OBJ(
			R_FILE AND
			S_BARE("replaced", "integer") AND
			S_LIST("lines", "{\"type\":\"integer\"}", "1-based, where it was found") AND
			S_BARE("dry_run", "boolean") AND
			S_BARE("diff", "string") AND
			S_BARE("matched_crlf", "boolean"),
			"\"path\",\"size\",\"version\",\"replaced\",\"lines\",\"dry_run\",\"diff\""),
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
		.input_schema = S_OBJ(
			S_PATH AND
			S_INT("insert_line", "1 is before the first line") AND
			S_STR("insert_text", "whole lines") AND
			S_IF_VERSION, "\"path\",\"insert_line\",\"insert_text\""),
		.output_schema = S_OBJ(
			R_FILE AND
			S_BARE("inserted_at", "integer") AND
			S_BARE("total_lines", "integer") AND
			S_BARE("diff", "string"),
			"\"path\",\"size\",\"version\",\"inserted_at\",\"total_lines\",\"diff\""),
		.call = tool_insert_file,
		.render = render_edit,
	},
	{
		.name = "delete_file",
		.title = "Delete a file or directory",
		.description = "Removes a file, or with recursive a directory and all in it.",
		.input_schema = S_OBJ(
			S_PATH AND
			S_BOOL("recursive", "needed for a directory (default false)") AND
			S_IF_VERSION, "\"path\""),
		.output_schema = R_REMOVED,
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
		.input_schema = S_OBJ(
			S_STR("from", "what to move") AND
			S_STR("to", "its new path") AND
			S_BOOL("overwrite", "replace a file that is there (default false)") AND
			S_IF_VERSION, "\"from\",\"to\""),
		.output_schema = R_MOVED,
		.traits = TOOL_DESTRUCTIVE,
		.call = tool_move_file,
		.render = render_moved,
	},
	{
		.name = "copy_file",
		.title = "Copy a file",
		.description =
			"Copies one file. Refuses an existing target unless overwrite. if_version is the source's.",
		.input_schema = S_OBJ(
			S_STR("from", "what to copy") AND
			S_STR("to", "path of the copy") AND
			S_BOOL("overwrite", "replace a file that is there (default false)") AND
			S_IF_VERSION, "\"from\",\"to\""),
		.output_schema = R_MOVED,
		.traits = TOOL_DESTRUCTIVE,
		.call = tool_copy_file,
		.render = render_moved,
	},
	{
		.name = "clear_files",
		.title = "Delete all files",
		.description = "Removes everything under the tool root and tells how many files that were.",
		.input_schema = S_NONE,
		.output_schema = R_REMOVED,
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
		.input_schema = S_OBJ(
			S_STR("pattern", "matched against the path below `path`") AND
			S_STR("path", "directory to look in (default: the root)") AND
			S_INT1("limit", "files to give (default 1000, at most 10000)") AND
			S_BOOL("all", "also what .gitignore leaves out in a project of the person's own") AND
			S_CURSOR, "\"pattern\""),
		.output_schema = S_OBJ(
			S_LIST("paths", "{\"type\":\"string\"}", "from the tool root") AND
			S_BARE("total", "integer") AND
			S_BARE("next_cursor", "string"), "\"paths\",\"total\""),
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
		.input_schema = S_OBJ(
			S_STR("pattern", "a Perl-compatible expression, or text with literal") AND
			S_STR("path", "file or directory (default: the root)") AND
			S_BOOL("literal", "take the pattern as it stands (default false)") AND
			S_BOOL("case_sensitive", "default true") AND
			GLOB_OR_LIST("include", "only files that match; without / the name at any depth") AND
			GLOB_OR_LIST("exclude", "not files that match") AND
			S_INT("context", "lines to show before and after, at most 50 (default 0)") AND
			S_ENUM("output", "\"lines\",\"files\",\"count\"", "what to list (default lines)") AND
			S_INT1("limit", "lines or files to give (default 100, at most 10000)") AND
			S_BOOL("all", "also what .gitignore leaves out in a project of the person's own") AND
			S_CURSOR, "\"pattern\""),
		.output_schema = S_OBJ(
			S_LIST("lines", GREP_LINE, "with output lines") AND
			S_LIST("files", GREP_FILE, "with output files and count") AND
			S_BARE("total_matches", "integer") AND
			S_BARE("total_files", "integer") AND
			S_BARE("searched", "integer") AND
			S_BARE("binary_skipped", "integer") AND
			S_BARE("unreadable", "integer") AND
			S_BARE("next_cursor", "string"), "\"total_matches\",\"total_files\",\"searched\""),
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
		.input_schema = S_OBJ(S_PATH, "\"path\""),
		.output_schema = S_OBJ(
			R_FILE AND
			S_BARE("kind", "string") AND
			S_BARE("modified", "string") AND
			S_BARE("is_binary", "boolean") AND
			S_BARE("line_count", "integer") AND
			S_BARE("line_count_at_least", "integer") AND
			S_BARE("mime", "string") AND
			S_BARE("suggested_read", "string"), "\"path\",\"size\",\"version\",\"kind\""),
		.traits = TOOL_READS_ONLY | TOOL_IDEMPOTENT,
		.call = tool_file_info,
		.render = render_file_info,
	},
	{
		.name = "exists",
		.title = "Test whether a path exists",
		.description = "Says whether there is a file or a directory at the path.",
		.input_schema = S_OBJ(S_PATH, "\"path\""),
		.output_schema = S_OBJ(
			S_BARE("path", "string") AND
			S_BARE("exists", "boolean") AND
			S_BARE("kind", "string") AND
			S_BARE("version", "string"), "\"path\",\"exists\""),
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
	.commands = files_commands,
};
