/* SPDX-License-Identifier: Apache-2.0 */
/* The timeline: the past of a workspace and its forks, as tools. */
#include "home/timeline/fork_tools.h"
#include "home/timeline/history_tools.h"
#include "tool/family.h"

/* The tables are laid out by hand, one argument a line. */
/* clang-format off */
static const struct tool tools[] = {
	{
		.name = "history",
		.title = "List changes",
		.description =
			"Lists what was changed below a path, newest first: revision, time, operation, path, who, and the "
			"call that undo takes. Changes by other programs are operation outside.",
		.args =
		"path: file or directory (default: everything)\n"
		"since int>=0 or str: only what came after this revision: a number, a checkpoint or head\n"
		"until int>=0 or str: only up to this revision: a number, a checkpoint or head\n"
		"user: only by this user\n"
		"agent: only by this agent\n"
		"session: only in this session\n"
		"call: only by this tool call\n"
		"limit int>=1: changes to give (default 100, at most 10000)",
		.result =
		"head! int\n"
		"revisions! [{revision! int; path!; operation!; actor! obj; time!; before obj?; "
		"after obj?; from; to}]: newest first\n"
		"more! bool; next int",
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
		.args =
		"path: file or directory (default: everything)\n"
		"from! int>=0 or str: the older revision; "
		"0 is before everything: a number, a checkpoint or head\n"
		"to int>=0 or str: the newer revision (default: now): a number, a checkpoint or head",
		.result =
		"from! int; to! int\n"
		"files! [{path!; change!; diff; "
		"cut bool}]: change: added, removed, changed, binary or large\n"
		"more! bool",
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
		.args =
		"path!: file or directory; / is everything\n"
		"revision! int>=0 or str: the state to go back to: a number, a checkpoint or head",
		.result =
		"path!; to! int\n"
		"restored! [str]: paths\n"
		"removed! [str]: paths\n"
		"total! int; revision! int",
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
		.args =
		"since int>=0 or str: everything after this revision: a number, a checkpoint or head\n"
		"call: what this call changed (history shows calls)\n"
		"session: what this session changed\n"
		"actor: what this user or agent changed\n"
		"dry_run bool: change nothing (default false)",
		.result =
		"undone! [int]: revisions that were taken back\n"
		"files! [{path!; how!; to int}]: how: restored, removed or unchanged\n"
		"total! int\n"
		"conflicts! [{path!; revision! int; diff}]: what was changed since\n"
		"dry_run! bool",
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
		.args = "name: a word, such as before-refactor",
		.result =
		"checkpoint; revision int\n"
		"checkpoints [{checkpoint!; revision! int; time}]: without a name",
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
		.args =
		"since_revision int>=0 or str: the last one that is known (default 0): a number, a "
		"checkpoint or head\n"
		"path_prefix: only this path and below (default: everything)\n"
		"wait_ms int>=0<=60000: how long to wait (default 0, at most 60000)\n"
		"limit int>=1: changes to give (default 100, at most 10000)",
		.result =
		"changes! [{revision! int; path!; operation!; actor! obj; time!; before obj?; after obj?; "
		"from; to}]: oldest first\n"
		"next! int; more! bool",
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
		.args =
		"name!: of the new workspace: 2 to 64 small letters, digits, '-' and '_'\n"
		"at_revision int>=0 or str: as it was then (default: as it is): a number, a checkpoint or "
		"head",
		.result = "workspace!; parent!; revision! int",
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
		.args =
		"fork!: the fork's name\n"
		"dry_run bool: change nothing, show what would be (default false)\n"
		"partial bool: merge what does not conflict (default false)\n"
		"prefer ours|theirs: what conflicts are settled with",
		.result =
		"fork!; workspace; applied! bool\n"
		"merged! [{path!; how!}]: how: taken, merged, removed or kept\n"
		"conflicts! [{path!; why!; text; base! any; ours! any; "
		"theirs! any}]: both changed the same\n"
		"unchanged int; left int; revision! int; call",
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
};
