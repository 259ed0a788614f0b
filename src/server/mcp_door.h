/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MCP over streamable HTTP at /mcp/{workspace}, both eras on one address. The messages go to the same dispatcher as
 * those on stdio (src/mcp); what is in here is what HTTP adds: headers, sessions, streams and statuses.
 */
#ifndef STEAD_SERVER_MCP_DOOR_H
#define STEAD_SERVER_MCP_DOOR_H

#include "base/str.h"
#include "mcp/jsonrpc.h"

struct mcp_doors;
struct serve;

struct mcp_doors *mcp_doors_new(struct serve *serve);
/* Ends all streams. */
void mcp_doors_end(struct mcp_doors *doors);
/* When no request runs. */
void mcp_doors_destroy(struct mcp_doors *doors);
/* Sends a comment on every stream, and ends the sessions that were not used for a while. */
void mcp_doors_tick(struct mcp_doors *doors);

/* The headers of a modern request must agree with its body. `name` is what Mcp-Name must be (ptr NULL: it is not
   asked for). */
struct mcp_headers {
	struct str version, method, name; /* ptr NULL: absent */
};
/* True when the request is of the era of 2026-07-28. */
bool mcp_is_modern(const struct mcp_headers *headers, const struct rpc_message *msg);
/* True when a modern request has what it must say about itself. */
bool mcp_describes_itself(const struct rpc_message *msg);
/* NULL: they agree; else what is wrong (-32020). */
const char *mcp_headers_wrong(struct arena *arena, const struct mcp_headers *headers, const struct rpc_message *msg);

#endif
