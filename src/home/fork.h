/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forks: a workspace that stands on another one as it was at a revision. Making one writes a single small file
 * (.stead/fork.json in the new workspace), whatever the size of the parent: reads fall through to the parent's past,
 * writes stay in the fork. Merging brings the fork's changes to the parent, file by file, three-way.
 */
#ifndef STEAD_HOME_FORK_H
#define STEAD_HOME_FORK_H

#include "home/workspace.h"

/* A new workspace `name` on what `ws` was at `number`. Forks of forks are fine. {"workspace","parent","revision"} */
int fork_create(struct workspace *ws, struct ctx *ctx, struct str name, uint64_t number, struct jv **ret,
		struct err *err);

/* Brings what changed in the fork `name` to its parent `ws`. Text by line; other files whole. A file that both changed
   in the same place is a conflict: {"path","base","ours","theirs" (each a revision or null),"text" (with markers, for
   text files)}, and with conflicts nothing is merged unless `partial`.
   {"merged":[{"path","how":"taken|merged|removed"}], "conflicts":[…],"unchanged":n,"revision"} */
struct merge_req {
	struct str name;
	bool dry_run;
	bool partial;
};
int fork_merge(struct workspace *ws, struct ctx *ctx, const struct merge_req *req, struct jv **ret, struct err *err);

/* What a workspace is a fork of; *ret_parent empty when it is none. Used by workspace_open. */
int fork_parent(struct ctx *ctx, struct store *home, struct str *ret_parent, uint64_t *ret_number, struct err *err);

#endif
