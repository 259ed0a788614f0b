/* SPDX-License-Identifier: Apache-2.0 */
/* Artifacts as a family: its tools, and large results of other tools that become artifacts. */
#include "home/artifacts/artifacts.h"
#include "home/artifacts/artifacts_tools.h"
#include "home/files/files.h"
#include "tool/family.h"
#include "tool/schemas.h"

/* The tables are laid out by hand, one argument a line. */
/* clang-format off */
#define CUT_LINE S_OBJ( \
	S_BARE("line", "integer") AND S_BARE("byte_offset", "integer") AND S_BARE("bytes_left", "integer"), \
	"\"line\",\"byte_offset\",\"bytes_left\"")
#define SEARCH_LINE S_OBJ( \
	S_BARE("line", "integer") AND S_BARE("text", "string") AND S_BARE("context", "boolean") AND \
	S_BARE("group_start", "boolean"), "\"line\",\"text\"")
#define ARTIFACT S_OBJ( \
	S_BARE("artifact_id", "string") AND S_BARE("tool_name", "string") AND S_BARE("bytes", "integer") AND \
	S_BARE("tokens", "integer") AND S_BARE("parked_at", "string"), \
	"\"artifact_id\",\"tool_name\",\"bytes\",\"parked_at\"")
#define S_ARTIFACT S_STR("artifact_id", "id, or any beginning of it that only one artifact has")

static const struct tool tools[] = {
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
