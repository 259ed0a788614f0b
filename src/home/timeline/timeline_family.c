/* SPDX-License-Identifier: Apache-2.0 */
/* The timeline: the past of a workspace and its forks, as tools. */
#include "home/timeline/fork_tools.h"
#include "home/timeline/history_tools.h"
#include "home/timeline/timeline_commands.h"
#include "tool/call.h"
#include "tool/family.h"

/* clang-format off */
#define REVISION "{revision! int; path!; operation!; actor! obj; time!; before obj?; after obj?; from; to}"
#define A_REVISION ": a number, a checkpoint or head"

static const struct tool tools[] = {
	{
		.name = "history", .title = "List changes", .group = "history", .traits = RO | TOOL_LONG | TOOL_BASICS,
		.call = tool_history, .render = render_history,
		.description =
			"Lists the changes below a path, newest first: revision, time, operation, path, who made it, and the "
			"call id that undo takes. The operation \"outside\" is a change that another program made.",
		.args =
			"path: file or directory (default: everything)\n"
			"since: only changes after this revision" A_REVISION "\n"
			"until: only changes up to this revision" A_REVISION "\n"
			"user: only changes by this user\n"
			"agent: only changes by this agent\n"
			"session: only changes in this session\n"
			"call: only changes by this tool call\n"
			"limit int>=1: number of changes (default 100, at most 10000)",
		.result =
			"head! int\n"
			"revisions! [" REVISION "]: newest first\n"
			"more! bool; next int",
	},
	{
		.name = "diff", .title = "Compare two revisions", .group = "history", .traits = RO | TOOL_LONG | TOOL_BASICS,
		.call = tool_diff, .render = render_diff, .needs = "read_file",
		.description =
			"Shows what changed below a path between two revisions, as a unified diff. Without `to` it compares "
			"with the current state.",
		.args =
			"path: file or directory (default: everything)\n"
			"from!: the older revision (0: before the first change)" A_REVISION "\n"
			"to: the newer revision (default: the current state)" A_REVISION,
		.result =
			"from! int; to! int\n"
			"files! [{path!; change!; diff; cut bool}]: change is added, removed, changed, binary or large\n"
			"more! bool",
	},
	{
		.name = "restore", .title = "Restore an earlier state", .group = "history",
		.traits = TOOL_DESTRUCTIVE | TOOL_IDEMPOTENT | TOOL_BASICS, .call = tool_restore, .render = render_restored,
		.needs = "write_file delete_file",
		.description =
			"Returns a file, or everything below a directory, to its state after a revision. Files that did not "
			"exist then are removed. undo reverts a restore.",
		.args =
			"path!: file or directory; / is everything\n"
			"revision!: the state to return to" A_REVISION,
		.result =
			"path!; to! int\n"
			"restored! [str]: paths\n"
			"removed! [str]: paths\n"
			"counts! {restored! int; removed! int}: of all, if the lists are cut\n"
			"total! int; revision! int",
	},
	{
		.name = "undo", .title = "Undo changes", .group = "history", .traits = TOOL_DESTRUCTIVE | TOOL_BASICS,
		.call = tool_undo, .render = render_undone, .needs = "write_file delete_file",
		.description =
			"Reverts the last call, whatever it changed, or all changes since a revision, of a call, of a session "
			"or by an actor. Called again, it reverts the call before; with redo, it takes back the last undo. If "
			"someone else has changed one of the files since, nothing is undone and the difference is shown.",
		.args =
			"since: all changes after this revision" A_REVISION "\n"
			"call: the changes of this call (history shows call ids)\n"
			"session: the changes of this session\n"
			"actor: the changes by this user or agent\n"
			"redo bool: apply again what the last undo reverted, if nothing was changed since (default false)\n"
			"dry_run bool: report without changing anything (default false)",
		.result =
			"undone! [int]: the revisions that were reverted\n"
			"files! [{path!; how!; to int}]: how is restored, removed or unchanged\n"
			"changes! int; total! int\n"
			"counts! {restored int; removed int; unchanged int}: of all files, if the lists are cut\n"
			"conflicts! [{path!; revision! int; diff}]: files that someone else has changed since\n"
			"redo! bool; dry_run! bool",
	},
	{
		.name = "checkpoint", .title = "Name the current state", .group = "history", .traits = TOOL_IDEMPOTENT,
		.call = tool_checkpoint, .render = render_checkpoint,
		.description =
			"Names the newest revision; every argument that takes a revision also takes the name. Using a name "
			"again moves it. Without a name, lists the checkpoints.",
		.args = "name: a word, such as before-refactor",
		.result =
			"checkpoint; revision int\n"
			"checkpoints [{checkpoint!; revision! int; time}]: only without a name",
	},
	{
		.name = "changes", .title = "Follow changes", .group = "history", .traits = TOOL_READS_ONLY | TOOL_LONG,
		.call = tool_changes, .render = render_changes,
		.description =
			"Lists the changes after a revision, oldest first, and the revision to pass to the next call, so that "
			"none is missed or repeated. With wait_ms it waits for the first change.",
		.args =
			"since_revision: the last revision already seen (default 0)" A_REVISION "\n"
			"path_prefix: only this path and below (default: everything)\n"
			"wait_ms int>=0<=60000: how long to wait (default 0, at most 60000)\n"
			"limit int>=1: number of changes (default 100, at most 10000)",
		.result =
			"changes! [" REVISION "]: oldest first\n"
			"next! int; more! bool",
	},
	{
		.name = "fork", .title = "Fork the workspace", .traits = TOOL_NEEDS_HOME, .group = "forks", .call = tool_fork, .render = render_fork,
		.description =
			"Makes a new workspace with the contents of this one, without copying them. Changes in the fork are "
			"not seen here until it is merged.",
		.args =
			"name!: name of the new workspace: 2 to 64 lower-case letters, digits, '-' and '_'\n"
			"at_revision: fork this state (default: the current one)" A_REVISION,
		.result = "workspace!; parent!; revision! int",
	},
	{
		.name = "merge", .title = "Merge a fork", .group = "forks", .traits = TOOL_DESTRUCTIVE | TOOL_NEEDS_HOME,
		.call = tool_merge, .render = render_merge, .needs = "write_file delete_file",
		.description =
			"Merges the changes of a fork into this workspace, text line by line. On conflicts nothing is merged "
			"and both sides are shown: then merge the rest with partial, or write the resolved file here and merge "
			"with prefer ours, or take the fork's files with prefer theirs. undo reverts a merge.",
		.args =
			"fork!: the fork's name\n"
			"dry_run bool: show the result without changing anything (default false)\n"
			"partial bool: merge what does not conflict (default false)\n"
			"prefer ours|theirs: the side that wins a conflict",
		.result =
			"fork!; workspace; applied! bool\n"
			"merged! [{path!; how!}]: how is taken, merged, removed or kept\n"
			"conflicts! [{path!; why!; text; base! any; ours! any; theirs! any}]: changed on both sides\n"
			"unchanged int; left int; revision! int; call",
	},
	{0},
};
/* clang-format on */

const struct family timeline_family = {
	.name = "timeline",
	.about = "The history of the workspace: what changed, who changed it, undo, and forks.",
	.tools = tools,
	.commands = timeline_commands,
};
