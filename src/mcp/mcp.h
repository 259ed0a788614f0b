/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MCP over stdio, both eras: the handshake of 2024-11-05 … 2025-11-25 and the stateless form of 2026-07-28. One JSON
 * message a line. Serves the toolset, the workspace's files as resources, and completion of paths.
 */
#ifndef STEAD_MCP_MCP_H
#define STEAD_MCP_MCP_H

#include "tool/tool.h"
#include "workspace/workspace.h"

/* Serves until `in_fd` ends or the peer is gone; 0 then. Finishes what runs before it returns; what then hangs in a
   store on a server is cancelled, if need be for the whole process (ctx_end_all). */
int mcp_serve_stdio(struct workspace *ws, struct toolset *set, int in_fd, int out_fd, struct err *err);

#endif
