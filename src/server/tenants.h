/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workspaces that are open, by name and user: opened once, shared by the requests, closed when nobody has used them for
 * a while. A request has a handle of exactly one workspace and one user, and nothing else leads to another.
 */
#ifndef STEAD_SERVER_TENANTS_H
#define STEAD_SERVER_TENANTS_H

#include "tool/tool.h"
#include "workspace/workspace.h"

struct tenants;
struct house; /* a workspace that is open, with all its users */

struct tenant {
	struct house *house;
	struct tenant *next;
	struct str user;
	uint64_t owner; /* the same for all users of a workspace: for pool.h */
	struct workspace *ws;
	struct toolset *set;                     /* all tools */
	struct toolset *reading;                 /* those that only read */
	struct toolset *offers, *offers_reading; /* those of both that MCP clients get */
	unsigned refs;
	int64_t used_ns;
};

/* The strings of `like` are copied: its store, and how workspaces are opened; so is the choice of MCP clients' tools.
 */
struct tenants *tenants_new(const struct workspace_opts *like, const struct toolset_choice *choice);
/* When nobody has a tenant any longer. */
void tenants_destroy(struct tenants *tenants);
/* One that is already open, or NULL: never waits. */
struct tenant *tenants_find(struct tenants *tenants, struct str name, struct str user);
/* Opens it when it is not. */
int tenants_get(struct tenants *tenants, struct str name, struct str user, struct tenant **ret, struct err *err);
/* Another owner of the same tenant; each calls tenants_put(). */
struct tenant *tenants_share(struct tenants *tenants, struct tenant *tenant);
void tenants_put(struct tenants *tenants, struct tenant *tenant);
/* Of the same workspace and user. One of them may have been opened before settings changed. */
bool tenant_is(const struct tenant *a, const struct tenant *b);
/* Looks for changed settings (agent.yaml, tools.json, .env) of the workspaces that are open. What is asked for from
   then on is opened again; who has a tenant keeps it, with the settings that it was opened with. */
void tenants_renew(struct tenants *tenants);
/* Closes what was not used for `idle_ns`. */
void tenants_sweep(struct tenants *tenants, int64_t idle_ns);
/* The owner of the work for a workspace. */
uint64_t tenants_owner(struct str workspace);
uint64_t tenants_count(struct tenants *tenants);

#endif
