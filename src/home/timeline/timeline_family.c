/* SPDX-License-Identifier: Apache-2.0 */
/* The timeline: the past of a workspace and its forks, as tools. */
#include "home/timeline/fork_tools.h"
#include "home/timeline/history_tools.h"
#include "home/timeline/timeline_commands.h"
#include "tool/family.h"
#include "tool/schemas.h"

/* The tables are laid out by hand, one argument a line. */
/* clang-format off */
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
		.group = "history",
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
		.group = "history",
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
		.group = "history",
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
		.group = "history",
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
		.group = "history",
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
		.group = "history",
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
		.group = "forks",
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
		.group = "forks",
		.needs = "write_file delete_file",
	},
	{0},
};
/* clang-format on */

const struct family timeline_family = {
	.name = "timeline",
	.tools = tools,
	.commands = timeline_commands,
};
