/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The native table: what each tool is called, says of itself, takes and gives. The order is the order in which clients
 * see it. Descriptions are written for models: what it does, what it refuses, how to go on.
 */
#include "home/artifacts/artifacts_tools.h"
#include "home/files/files.h"
#include "home/knowledge/knowledge_tools.h"
#include "home/memory/memory_tools.h"
#include "home/notebook/notebook_tools.h"
#include "home/plans/plans_tools.h"
#include "home/prompt/prompt_tools.h"
#include "home/search/search_tools.h"
#include "home/sessions/sessions_tools.h"
#include "home/skills/skills_tools.h"
#include "home/subagents/subagents_tools.h"
#include "home/tasks/tasks_tools.h"
#include "home/timeline/fork_tools.h"
#include "home/timeline/history_tools.h"
#include "home/uploads/uploads_tools.h"
#include "tool/dialect.h"
#include "tool/schemas.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The tables are laid out by hand, one argument a line. */
/* clang-format off */
#define S_ENCODING S_ENUM("encoding", "\"utf-8\",\"base64\"", "of the content (default utf-8)")
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
#define SEARCH_LINE S_OBJ( \
	S_BARE("line", "integer") AND S_BARE("text", "string") AND S_BARE("context", "boolean") AND \
	S_BARE("group_start", "boolean"), "\"line\",\"text\"")
#define ARTIFACT S_OBJ( \
	S_BARE("artifact_id", "string") AND S_BARE("tool_name", "string") AND S_BARE("bytes", "integer") AND \
	S_BARE("tokens", "integer") AND S_BARE("parked_at", "string"), \
	"\"artifact_id\",\"tool_name\",\"bytes\",\"parked_at\"")
#define S_ARTIFACT S_STR("artifact_id", "id, or any beginning of it that only one artifact has")

#define S_REV(name, text) \
	"\"" name "\":{\"anyOf\":[{\"type\":\"integer\",\"minimum\":0},{\"type\":\"string\"}]," \
	"\"description\":\"" text ": a number, a checkpoint or head\"}"
#define S_NULLABLE(name) "\"" name "\":{\"type\":[\"object\",\"null\"]}"
#define REVISION S_OBJ( \
	S_BARE("revision", "integer") AND S_BARE("path", "string") AND S_BARE("operation", "string") AND \
	S_BARE("actor", "object") AND S_BARE("time", "string") AND S_NULLABLE("before") AND S_NULLABLE("after") AND \
	S_BARE("from", "string") AND S_BARE("to", "string"), \
	"\"revision\",\"path\",\"operation\",\"actor\",\"time\"")
#define DIFF_FILE S_OBJ( \
	S_BARE("path", "string") AND S_BARE("change", "string") AND S_BARE("diff", "string") AND \
	S_BARE("cut", "boolean"), "\"path\",\"change\"")
#define UNDO_FILE S_OBJ( \
	S_BARE("path", "string") AND S_BARE("how", "string") AND S_BARE("to", "integer"), "\"path\",\"how\"")
#define UNDO_CONFLICT S_OBJ( \
	S_BARE("path", "string") AND S_BARE("revision", "integer") AND S_BARE("diff", "string"), \
	"\"path\",\"revision\"")
#define CHECKPOINT S_OBJ( \
	S_BARE("checkpoint", "string") AND S_BARE("revision", "integer") AND S_BARE("time", "string"), \
	"\"checkpoint\",\"revision\"")

#define MERGED_FILE S_OBJ(S_BARE("path", "string") AND S_BARE("how", "string"), "\"path\",\"how\"")
#define MERGE_CONFLICT S_OBJ( \
	S_BARE("path", "string") AND S_BARE("why", "string") AND S_BARE("text", "string") AND \
	"\"base\":{},\"ours\":{},\"theirs\":{}", "\"path\",\"why\",\"base\",\"ours\",\"theirs\"")

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
		.family = "files",
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
		.family = "files",
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
		.family = "files",
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
		.family = "files",
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
		.family = "files",
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
		.family = "files",
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
		.family = "files",
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
		.family = "files",
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
		.family = "files",
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
		.family = "files",
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
		.family = "files",
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
		.family = "files",
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
		.family = "files",
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
		.family = "files",
	},
	{
		.name = "park_result",
		.title = "Park a large result",
		.description =
			"Takes a result that is too large for the conversation: keeps it as an artifact and gives a preview "
			"and its id. One that is small enough comes back as it is, unless always is set.",
		.input_schema = S_OBJ(
			S_STR("content", "the result") AND
			S_STR("tool_name", "what it came from (default result)") AND
			"\"args\":{\"type\":\"object\",\"description\":\"what that was called with\"}" AND
			S_BOOL("always", "park it whatever its size (default false)"), "\"content\""),
		.output_schema = S_OBJ(
			S_BARE("parked", "boolean") AND
			S_BARE("content", "string") AND
			S_BARE("artifact_id", "string") AND
			S_BARE("preview", "string") AND
			S_BARE("tokens", "integer") AND
			S_BARE("bytes", "integer") AND
			S_BARE("preview_tokens", "integer") AND
			S_BARE("lines_left", "integer"), "\"parked\""),
		.traits = TOOL_PARKS,
		.call = tool_park_result,
		.family = "artifacts",
	},
	{
		.name = "list_artifacts",
		.title = "List parked results",
		.description = "Lists parked results, newest first, with where they come from and how large they are.",
		.input_schema = S_OBJ(S_INT1("limit", "how many (default 50, at most 500)") AND S_CURSOR, ""),
		.output_schema = S_OBJ(
			S_LIST("artifacts", ARTIFACT, "newest first") AND
			S_BARE("total", "integer") AND
			S_BARE("next_cursor", "string"), "\"artifacts\",\"total\""),
		.traits = TOOL_READS_ONLY | TOOL_IDEMPOTENT,
		.call = tool_list_artifacts,
		.render = render_list_artifacts,
		.family = "artifacts",
	},
	{
		.name = "read_artifact",
		.title = "Read a parked result",
		.description = "Reads a parked result by lines or bytes, as read_file does.",
		.input_schema = S_OBJ(
			S_ARTIFACT AND
			S_INT("offset", "first line, from 0 (default 0)") AND
			S_INT1("limit", "lines (default 2000)") AND
			S_INT("byte_offset", "first byte: reads by bytes") AND
			S_INT1("byte_limit", "bytes (default 102400)") AND
			S_BOOL("line_numbers", "put 1-based numbers before lines (default false)") AND
			S_ENCODING, "\"artifact_id\""),
		.output_schema = S_OBJ(
			S_BARE("artifact_id", "string") AND
			S_BARE("size", "integer") AND
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
			"\"artifact_id\",\"size\",\"content\",\"encoding\""),
		.traits = TOOL_READS_ONLY | TOOL_IDEMPOTENT,
		.call = tool_read_artifact,
		.render = render_read_file,
		.family = "artifacts",
	},
	{
		.name = "tail_artifact",
		.title = "Read the end of a parked result",
		.description = "The last lines of a parked result, and how many stand above.",
		.input_schema = S_OBJ(S_ARTIFACT AND S_INT1("lines", "how many (default 50)"), "\"artifact_id\""),
		.output_schema = S_OBJ(
			S_BARE("artifact_id", "string") AND
			S_BARE("content", "string") AND
			S_BARE("lines", "integer") AND
			S_BARE("total_lines", "integer") AND
			S_BARE("byte_offset", "integer"),
			"\"artifact_id\",\"content\",\"lines\",\"total_lines\""),
		.traits = TOOL_READS_ONLY | TOOL_IDEMPOTENT,
		.call = tool_tail_artifact,
		.render = render_tail_artifact,
		.family = "artifacts",
	},
	{
		.name = "search_artifact",
		.title = "Search in a parked result",
		.description =
			"Finds lines that have the text, in any case, each with one line before and after; counts them all.",
		.input_schema = S_OBJ(
			S_ARTIFACT AND
			S_STR("query", "text to look for") AND
			S_INT1("limit", "matching lines to give (default 10)") AND
			S_CURSOR, "\"artifact_id\",\"query\""),
		.output_schema = S_OBJ(
			S_BARE("artifact_id", "string") AND
			S_LIST("lines", SEARCH_LINE, "with context") AND
			S_BARE("total_matches", "integer") AND
			S_BARE("next_cursor", "string"), "\"artifact_id\",\"lines\",\"total_matches\""),
		.traits = TOOL_READS_ONLY | TOOL_IDEMPOTENT,
		.call = tool_search_artifact,
		.render = render_search_artifact,
		.family = "artifacts",
	},
	{
		.name = "history",
		.title = "List changes",
		.description =
			"Lists what was changed below a path, newest first: revision, time, operation, path, who, and the "
			"call that undo takes. Changes by other programs are operation outside.",
		.input_schema = S_OBJ(
			S_STR("path", "file or directory (default: everything)") AND
			S_REV("since", "only what came after this revision") AND
			S_REV("until", "only up to this revision") AND
			S_STR("user", "only by this user") AND
			S_STR("agent", "only by this agent") AND
			S_STR("session", "only in this session") AND
			S_STR("call", "only by this tool call") AND
			S_INT1("limit", "changes to give (default 100, at most 10000)"), ""),
		.output_schema = S_OBJ(
			S_BARE("head", "integer") AND
			S_LIST("revisions", REVISION, "newest first") AND
			S_BARE("more", "boolean") AND
			S_BARE("next", "integer"), "\"head\",\"revisions\",\"more\""),
		.traits = TOOL_READS_ONLY | TOOL_IDEMPOTENT | TOOL_LONG,
		.call = tool_history,
		.render = render_history,
		.family = "history",
	},
	{
		.name = "diff",
		.title = "Compare two revisions",
		.description =
			"Shows as unified differences what changed below a path between two revisions; without `to`, up to "
			"what is there now.",
		.input_schema = S_OBJ(
			S_STR("path", "file or directory (default: everything)") AND
			S_REV("from", "the older revision; 0 is before everything") AND
			S_REV("to", "the newer revision (default: now)"), "\"from\""),
		.output_schema = S_OBJ(
			S_BARE("from", "integer") AND
			S_BARE("to", "integer") AND
			S_LIST("files", DIFF_FILE, "change: added, removed, changed, binary or large") AND
			S_BARE("more", "boolean"), "\"from\",\"to\",\"files\",\"more\""),
		.traits = TOOL_READS_ONLY | TOOL_IDEMPOTENT | TOOL_LONG,
		.call = tool_diff,
		.render = render_diff,
		.family = "history",
		.needs = "read_file",
	},
	{
		.name = "restore",
		.title = "Bring back an earlier state",
		.description =
			"Makes a file, or everything below a directory, what it was after a revision; what did not exist then "
			"is removed. A restore is a change like any other: undo takes it back.",
		.input_schema = S_OBJ(
			S_STR("path", "file or directory; / is everything") AND
			S_REV("revision", "the state to go back to"), "\"path\",\"revision\""),
		.output_schema = S_OBJ(
			S_BARE("path", "string") AND
			S_BARE("to", "integer") AND
			S_LIST("restored", "{\"type\":\"string\"}", "paths") AND
			S_LIST("removed", "{\"type\":\"string\"}", "paths") AND
			S_BARE("total", "integer") AND
			S_BARE("revision", "integer"),
			"\"path\",\"to\",\"restored\",\"removed\",\"total\",\"revision\""),
		.traits = TOOL_DESTRUCTIVE | TOOL_IDEMPOTENT,
		.call = tool_restore,
		.render = render_restored,
		.family = "history",
		.needs = "write_file delete_file",
	},
	{
		.name = "undo",
		.title = "Take back changes",
		.description =
			"Takes back the last call, or all changes since a revision, of a call, a session or an actor; undoing "
			"an undo brings them again. If one of the files was changed by someone else since, nothing is undone "
			"and the difference is shown.",
		.input_schema = S_OBJ(
			S_REV("since", "everything after this revision") AND
			S_STR("call", "what this call changed (history shows calls)") AND
			S_STR("session", "what this session changed") AND
			S_STR("actor", "what this user or agent changed") AND
			S_BOOL("dry_run", "change nothing (default false)"), ""),
		.output_schema = S_OBJ(
			S_LIST("undone", "{\"type\":\"integer\"}", "revisions that were taken back") AND
			S_LIST("files", UNDO_FILE, "how: restored, removed or unchanged") AND
			S_BARE("total", "integer") AND
			S_LIST("conflicts", UNDO_CONFLICT, "what was changed since") AND
			S_BARE("dry_run", "boolean"), "\"undone\",\"files\",\"total\",\"conflicts\",\"dry_run\""),
		.traits = TOOL_DESTRUCTIVE,
		.call = tool_undo,
		.render = render_undone,
		.family = "history",
		.needs = "write_file delete_file",
	},
	{
		.name = "checkpoint",
		.title = "Name the present state",
		.description =
			"Gives the newest revision a name that is taken wherever a revision is; a name given again moves. "
			"Without a name, lists the checkpoints.",
		.input_schema = S_OBJ(S_STR("name", "a word, such as before-refactor"), ""),
		.output_schema = S_OBJ(
			S_BARE("checkpoint", "string") AND
			S_BARE("revision", "integer") AND
			S_LIST("checkpoints", CHECKPOINT, "without a name"), ""),
		.traits = TOOL_IDEMPOTENT,
		.call = tool_checkpoint,
		.render = render_checkpoint,
		.family = "history",
	},
	{
		.name = "changes",
		.title = "Follow changes",
		.description =
			"Gives the changes after a revision, oldest first, and the revision to ask with next: no gap, no "
			"repeat. With wait_ms it waits for the first one.",
		.input_schema = S_OBJ(
			S_REV("since_revision", "the last one that is known (default 0)") AND
			S_STR("path_prefix", "only this path and below (default: everything)") AND
			"\"wait_ms\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":60000,\"description\":\"how long to wait "
			"(default 0, at most 60000)\"}" AND
			S_INT1("limit", "changes to give (default 100, at most 10000)"), ""),
		.output_schema = S_OBJ(
			S_LIST("changes", REVISION, "oldest first") AND
			S_BARE("next", "integer") AND
			S_BARE("more", "boolean"), "\"changes\",\"next\",\"more\""),
		.traits = TOOL_READS_ONLY | TOOL_LONG,
		.call = tool_changes,
		.render = render_changes,
		.family = "history",
	},
	{
		.name = "fork",
		.title = "Fork the workspace",
		.description =
			"Makes a workspace that has everything this one has, without copying: a place where subagents try "
			"something. Changes there do not show here until they are merged.",
		.input_schema = S_OBJ(
			S_STR("name", "of the new workspace: 2 to 64 small letters, digits, '-' and '_'") AND
			S_REV("at_revision", "as it was then (default: as it is)"), "\"name\""),
		.output_schema = S_OBJ(
			S_BARE("workspace", "string") AND
			S_BARE("parent", "string") AND
			S_BARE("revision", "integer"), "\"workspace\",\"parent\",\"revision\""),
		.traits = 0,
		.call = tool_fork,
		.render = render_fork,
		.family = "forks",
	},
	{
		.name = "merge",
		.title = "Merge a fork",
		.description =
			"Brings what changed in a fork of this workspace back, text by line. With conflicts nothing is merged "
			"and both sides are shown with markers: merge the rest with partial, write the resolved file here and "
			"merge with prefer ours, or take the fork's files with prefer theirs. undo takes a merge back.",
		.input_schema = S_OBJ(
			S_STR("fork", "the fork's name") AND
			S_BOOL("dry_run", "change nothing, show what would be (default false)") AND
			S_BOOL("partial", "merge what does not conflict (default false)") AND
			S_ENUM("prefer", "\"ours\",\"theirs\"", "what conflicts are settled with"), "\"fork\""),
		.output_schema = S_OBJ(
			S_BARE("fork", "string") AND
			S_BARE("workspace", "string") AND
			S_BARE("applied", "boolean") AND
			S_LIST("merged", MERGED_FILE, "how: taken, merged, removed or kept") AND
			S_LIST("conflicts", MERGE_CONFLICT, "both changed the same") AND
			S_BARE("unchanged", "integer") AND
			S_BARE("left", "integer") AND
			S_BARE("revision", "integer") AND
			S_BARE("call", "string"), "\"fork\",\"applied\",\"merged\",\"conflicts\",\"revision\""),
		.traits = TOOL_DESTRUCTIVE,
		.call = tool_merge,
		.render = render_merge,
		.family = "forks",
		.needs = "write_file delete_file",
	},
};
/* clang-format on */

static const struct tool_group core_tools = {tools, COUNT(tools)};
/* clang-format off */
static const struct tool_group *const groups[] = {
	&core_tools,
	&search_tools,
	&note_tools,
	&task_tools,
	&session_tools,
	&plan_tools,
	&memory_tools,
	&skill_tools,
	&prompt_tools,
	&knowledge_tools,
	&subagent_tools,
	&upload_tools,
	NULL,
};
/* clang-format on */

const struct dialect dialect_native = {
	.name = "native",
	.groups = groups,
};
