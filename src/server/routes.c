/* SPDX-License-Identifier: Apache-2.0 */
/* All routes. What is allowed (serve.c), the numbers (metrics.c) and the OpenAPI document (openapi.c) read this table.
 */
#include "base/limits.h"
#include "server/server_internal.h"

#define JSON        "application/json"
#define ANY         "application/octet-stream"
#define FILE_PATH   "/v1/workspaces/{workspace}/files/{path}"
#define CONDITIONS  "If-Match If-None-Match"
#define MCP_HEADERS "MCP-Protocol-Version Mcp-Method Mcp-Name Mcp-Session-Id"

const struct route routes[] = {
	{"GET", "/healthz", "health", .is_quick = true, .run = run_health, .answers = "200 text/plain",
	 .summary = "The process answers."},
	{"GET", "/readyz", "ready", .run = run_ready, .answers = "200 text/plain",
	 .summary = "The store answers, too. 503 when it does not."},
	{"GET", "/metrics", "metrics", ACCESS_ADMIN, .run = run_metrics, .answers = "200 text/plain",
	 .summary = "Numbers of the server in the text format of Prometheus."},
	{"GET", "/v1/workspaces", "list_workspaces", ACCESS_READ, .query = "cursor limit", .run = run_workspaces,
	 .answers = "200 " JSON, .summary = "The workspaces that the token is for, by name, in pages."},
	{"PUT", "/v1/workspaces/{workspace}", "create_workspace", ACCESS_ADMIN, .run = run_workspace_put,
	 .answers = "201 " JSON " 200 " JSON, .summary = "Creates a workspace. 200 when it exists already."},
	{"GET", "/v1/workspaces/{workspace}/files", "list_files", ACCESS_READ, .is_quick = true,
	 .query = "path recursive cursor limit", .run = run_file_list, .answers = "200 " JSON,
	 .summary = "The entries of a directory, or all files below it, in pages."},
	{"GET", FILE_PATH, "read_file", ACCESS_READ, .is_quick = true, .headers = CONDITIONS " Range If-Range",
	 .run = run_file_get, .answers = "200 " ANY " 206 " ANY " 304 -",
	 .summary = "The bytes of a file, or a range of them. Its version is the ETag."},
	{"HEAD", FILE_PATH, "stat_file", ACCESS_READ, .is_quick = true, .headers = CONDITIONS, .run = run_file_get,
	 .answers = "200 - 304 -", .summary = "The size, version and time of a file."},
	{"PUT", FILE_PATH, "write_file", ACCESS_WRITE, HTTP_FILE_BODY_MAX, .headers = CONDITIONS, .body = ANY,
	 .run = run_file_put, .answers = "200 " JSON " 201 " JSON,
	 .summary = "Writes a file whole. If-Match: only that version is replaced; If-None-Match: *: it must be new."},
	{"DELETE", FILE_PATH, "delete_file", ACCESS_WRITE, .query = "recursive", .headers = "If-Match",
	 .run = run_file_delete, .answers = "204 -", .summary = "Removes a file, or with recursive a directory."},
	{"GET", "/v1/workspaces/{workspace}/tools", "list_tools", ACCESS_READ, .run = run_tools, .answers = "200 " JSON,
	 .summary = "The tools of the workspace with the schemas of their arguments and results."},
	{"POST", "/v1/workspaces/{workspace}/tools/{name}", "call_tool", ACCESS_READ, HTTP_TOOL_BODY_MAX, .body = JSON,
	 .run = run_tool_call, .answers = "200 " JSON,
	 .summary = "Calls a tool. The body has its arguments. A tool that changes something needs write access."},
	{"GET", "/v1/workspaces/{workspace}/events", "events", ACCESS_READ, .query = "since path wait limit",
	 .headers = "Last-Event-ID", .run = run_events, .answers = "200 text/event-stream 200 " JSON,
	 .summary = "Changes after a revision, as server-sent events. With wait: one answer, after so many seconds at "
		    "most."},
	{"POST", "/mcp/{workspace}", "mcp", ACCESS_READ, HTTP_TOOL_BODY_MAX, .body = JSON, .headers = MCP_HEADERS,
	 .run = run_mcp_post, .answers = "200 " JSON " 200 text/event-stream 202 -",
	 .summary = "A message of the Model Context Protocol."},
	{"GET", "/mcp/{workspace}", "mcp_stream", ACCESS_READ, .headers = "Mcp-Session-Id MCP-Protocol-Version",
	 .run = run_mcp_get, .answers = "200 text/event-stream", .summary = "The notifications of an MCP session."},
	{"DELETE", "/mcp/{workspace}", "mcp_end", ACCESS_READ, .headers = "Mcp-Session-Id MCP-Protocol-Version",
	 .run = run_mcp_delete, .answers = "204 -", .summary = "Ends an MCP session."},
	{"GET", "/openapi.json", "openapi", .run = run_openapi, .answers = "200 " JSON,
	 .summary = "This description, as an OpenAPI 3.1 document."},
	{0},
};
