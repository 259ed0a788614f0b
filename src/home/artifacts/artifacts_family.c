/* SPDX-License-Identifier: Apache-2.0 */
/* Artifacts as a family: its tools, and large results of other tools that become artifacts. */
#include "home/artifacts/artifacts.h"
#include "home/artifacts/artifacts_tools.h"
#include "home/files/files.h"
#include "tool/family.h"

/* The tables are laid out by hand, one argument a line. */
/* clang-format off */
static const struct tool tools[] = {
	{
		.name = "park_result",
		.title = "Park a large result",
		.description =
			"Takes a result that is too large for the conversation: keeps it as an artifact and gives a preview "
			"and its id. One that is small enough comes back as it is, unless always is set.",
		.args =
		"content!: the result\n"
		"tool_name: what it came from (default result)\n"
		"args obj: what that was called with\n"
		"always bool: park it whatever its size (default false)",
		.result =
		"parked! bool; content; artifact_id; preview; tokens int; bytes int; preview_tokens int; "
		"lines_left int",
		.traits = TOOL_PARKS,
		.call = tool_park_result,
	},
	{
		.name = "list_artifacts",
		.title = "List parked results",
		.description = "Lists parked results, newest first, with where they come from and how large they are.",
		.args =
		"limit int>=1: how many (default 50, at most 500)\n"
		"cursor: next_cursor of the page before",
		.result =
		"artifacts! [{artifact_id!; tool_name!; bytes! int; tokens int; parked_at!}]: newest first\n"
		"total! int; next_cursor",
		.traits = TOOL_READS_ONLY | TOOL_IDEMPOTENT,
		.call = tool_list_artifacts,
		.render = render_list_artifacts,
	},
	{
		.name = "read_artifact",
		.title = "Read a parked result",
		.description = "Reads a parked result by lines or bytes, as read_file does.",
		.args =
		"artifact_id!: id, or any beginning of it that only one artifact has\n"
		"offset int>=0: first line, from 0 (default 0)\n"
		"limit int>=1: lines (default 2000)\n"
		"byte_offset int>=0: first byte: reads by bytes\n"
		"byte_limit int>=1: bytes (default 102400)\n"
		"line_numbers bool: put 1-based numbers before lines (default false)\n"
		"encoding utf-8|base64: of the content (default utf-8)",
		.result =
		"artifact_id!; size! int; content!; encoding!; offset int; lines int; total_lines int; "
		"total_lines_at_least int; next_offset int; byte_offset int; bytes int; "
		"next_byte_offset int\n"
		"cut_lines [{line! int; byte_offset! int; bytes_left! int}]: lines that were cut",
		.traits = TOOL_READS_ONLY | TOOL_IDEMPOTENT,
		.call = tool_read_artifact,
		.render = render_read_file,
	},
	{
		.name = "tail_artifact",
		.title = "Read the end of a parked result",
		.description = "The last lines of a parked result, and how many stand above.",
		.args =
		"artifact_id!: id, or any beginning of it that only one artifact has\n"
		"lines int>=1: how many (default 50)",
		.result = "artifact_id!; content!; lines! int; total_lines! int; byte_offset int",
		.traits = TOOL_READS_ONLY | TOOL_IDEMPOTENT,
		.call = tool_tail_artifact,
		.render = render_tail_artifact,
	},
	{
		.name = "search_artifact",
		.title = "Search in a parked result",
		.description =
			"Finds lines that have the text, in any case, each with one line before and after; counts them all.",
		.args =
		"artifact_id!: id, or any beginning of it that only one artifact has\n"
		"query!: text to look for\n"
		"limit int>=1: matching lines to give (default 10)\n"
		"cursor: next_cursor of the page before",
		.result =
		"artifact_id!\n"
		"lines! [{line! int; text!; context bool; group_start bool}]: with context\n"
		"total_matches! int; next_cursor",
		.traits = TOOL_READS_ONLY | TOOL_IDEMPOTENT,
		.call = tool_search_artifact,
		.render = render_search_artifact,
	},
	{0},
};
/* clang-format on */

static void *open_artifacts(struct workspace *ws)
{
	struct offload_config config;

	offload_read(workspace_config(ws)->document, &config);
	return artifacts_new(workspace_home(ws), &config);
}

static void close_artifacts(void *state)
{
	artifacts_destroy(state);
}

const struct family artifacts_family = {
	.name = "artifacts",
	.tools = tools,
	.open = open_artifacts,
	.close = close_artifacts,
	.after_call = park_outcome,
};

struct artifacts *workspace_artifacts(struct workspace *ws)
{
	return family_state(&artifacts_family, ws);
}
