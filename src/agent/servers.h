/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The MCP servers of tools.json, as tools of the agent. A tool is offered as "<server>__<tool>"; allow and deny lists,
 * policy and approvals apply to that name. Every such tool counts as one that acts outside the workspace, whatever
 * the server says of it.
 */
#ifndef STEAD_AGENT_SERVERS_H
#define STEAD_AGENT_SERVERS_H

#include "mcp/client.h"
#include "tool/tool.h"

struct servers;

struct server_tool {
	struct tool_info info; /* with the name under which it is offered */
	struct mcp_client *client;
	struct str name; /* that the server knows */
};

/* `more` (may be NULL) has further servers; both must outlive them. */
struct servers *servers_new(const struct config *config, const struct jv *more);
/* Another owner of the same servers: returns them. */
struct servers *servers_share(struct servers *servers);
/* Ends one ownership, and with the last all servers. NULL is allowed. */
void servers_destroy(struct servers *servers);
/* Starts the servers and lists their tools; later, asks those again that have said that their tools changed. One that
   fails is reported and left out for a while. True: the tools are not those of before. */
bool servers_start(struct servers *servers, struct ctx *ctx, void (*report)(void *arg, struct str sentence), void *arg);
/* The client of a server; NULL: there is none of this name. */
struct mcp_client *servers_client(const struct servers *servers, struct str name);
struct mcp_client *servers_client_at(const struct servers *servers, size_t index); /* NULL after the last */
/* The tools that are offered now; they stay valid as long as the servers. */
const struct server_tool *servers_list(const struct servers *servers, size_t *ret_count);
/* NULL: there is no such tool. */
const struct server_tool *servers_find(const struct servers *servers, struct str name);

#endif
