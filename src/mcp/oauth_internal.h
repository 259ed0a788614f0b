/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a login at an MCP server. */
#ifndef STEAD_MCP_OAUTH_INTERNAL_H
#define STEAD_MCP_OAUTH_INTERNAL_H

#include "mcp/client_internal.h"

struct url;

/* One login while it runs. */
struct login_run {
	struct mcp_client *c;
	struct ctx *ctx;
	struct str resource;     /* what the token is for */
	struct str issuer;       /* the authorization server */
	const struct jv *scopes; /* that the resource knows; NULL: it does not say */
	const struct jv *server; /* metadata of the authorization server */
	struct jv *client;       /* {client_id, client_secret?} */
	struct str scope;        /* that is asked for; empty: none */
};

/* --- oauth_discovery.c --- */

struct str oauth_challenge_param(struct str challenge, const char *name);
/* ERR_DENIED: without encryption, and not on this machine. */
int oauth_check_url(struct arena *arena, struct str text, struct url *ret, struct err *err);
/* The server's own address, as tokens name it. */
struct str oauth_resource(struct arena *arena, struct mcp_client *c);
/* Fills in resource, issuer and scopes. */
int oauth_find_resource(struct login_run *l, struct str challenge, struct err *err);
/* Fills in server. */
int oauth_find_server(struct login_run *l, struct err *err);

/* --- oauth_file.c: what logins gave, in a file of the person that no workspace has --- */

/* NULL: nothing is kept. */
struct jv *oauth_file_read(struct arena *arena, struct str resource);
int oauth_file_write(struct arena *arena, struct str resource, const struct jv *state, struct err *err);
bool oauth_file_remove(struct arena *arena, struct str resource);

#endif
