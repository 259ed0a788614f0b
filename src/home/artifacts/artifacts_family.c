/* SPDX-License-Identifier: Apache-2.0 */
/* Artifacts as a family: its tools, and large results of other tools that become artifacts. */
#include "home/artifacts/artifacts.h"
#include "home/artifacts/artifacts_tools.h"
#include "home/files/files.h"
#include "tool/family.h"

/* clang-format off */
#define ARTIFACT "artifact_id!: its id, or the first characters of it if they are unique\n"
#define CURSOR "cursor: next_cursor of the previous page"

static const struct tool tools[] = {
	{
		.name = "park_result", .title = "Park a large result", .traits = TOOL_PARKS, .call = tool_park_result,
		.description =
			"Stores a large result as an artifact and returns its id and a preview. A small one is returned "
			"unchanged, unless always is set.",
		.args =
			"content!: the result\n"
			"tool_name: the tool that returned it (default result)\n"
			"args obj: the arguments of that tool\n"
			"always bool: park a small result too (default false)",
		.result =
			"parked! bool; content; artifact_id; preview; tokens int; bytes int; preview_tokens int; lines_left int",
	},
	{
		.name = "list_artifacts", .title = "List parked results", .traits = RO, .call = tool_list_artifacts,
		.render = render_list_artifacts,
		.description = "Lists parked results, newest first, with the tool that returned them and their size.",
		.args =
			"limit int>=1: number of results (default 50, at most 500)\n"
			CURSOR,
		.result =
			"artifacts! [{artifact_id!; tool_name!; bytes! int; tokens int; parked_at!}]: newest first\n"
			"total! int; next_cursor",
	},
	{
		.name = "read_artifact", .title = "Read a parked result", .traits = RO, .call = tool_read_artifact,
		.render = render_read_file,
		.description = "Reads a parked result by lines or bytes, as read_file does.",
		.args =
			ARTIFACT
			"offset int>=0: first line, from 1 (default 1)\n"
			"limit int>=1: number of lines (default 2000)\n"
			"byte_offset int>=0: first byte; reads by bytes\n"
			"byte_limit int>=1: number of bytes (default 40960)\n"
			"line_numbers bool: put a number before each line, from 1 (default false)\n"
			"encoding utf-8|base64: encoding of the content (default utf-8)",
		.result =
			"artifact_id!; size! int; content!; encoding!; mime; offset int; lines int; total_lines int; "
			"total_lines_at_least int; next_offset int; byte_offset int; bytes int; next_byte_offset int\n"
			"cut_lines [{line! int; byte_offset! int; bytes_left! int}]: lines that were cut",
	},
	{
		.name = "tail_artifact", .title = "Read the end of a parked result", .traits = RO,
		.call = tool_tail_artifact, .render = render_tail_artifact,
		.description = "Reads the last lines of a parked result and says how many come before them.",
		.args =
			ARTIFACT
			"lines int>=1: number of lines (default 50)",
		.result = "artifact_id!; content!; lines! int; total_lines! int; byte_offset int",
	},
	{
		.name = "search_artifact", .title = "Search in a parked result", .traits = RO,
		.call = tool_search_artifact, .render = render_search_artifact,
		.description =
			"Finds the lines of a parked result that contain a text, ignoring case, with the lines around them, "
			"and counts all matches.",
		.args =
			ARTIFACT
			"query!: text to find\n"
			"limit int>=1: number of matching lines (default 10)\n"
			CURSOR,
		.result =
			"artifact_id!\n"
			"lines! [{line! int; text!; context bool; group_start bool}]: matching lines and their context\n"
			"total_matches! int; next_cursor",
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
	.about = "Results that are too large for a conversation.",
	.tools = tools,
	.open = open_artifacts,
	.close = close_artifacts,
	.after_call = park_outcome,
};

struct artifacts *workspace_artifacts(struct workspace *ws)
{
	return family_state(&artifacts_family, ws);
}
