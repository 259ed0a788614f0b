/* SPDX-License-Identifier: Apache-2.0 */
/* Moving workspaces between stores, and looking whether a store is whole. */
#ifndef STEAD_ADMIN_COPY_H
#define STEAD_ADMIN_COPY_H

#include "base/ctx.h"
#include "text/jv.h"

struct copy_req {
	struct str from, to;  /* store URLs, also "config:FILE" */
	struct str workspace; /* empty: all */
	bool dry_run;
	bool remove; /* delete files that the source no longer has */
};

/* Copies files (secrets too), then the history. A file that the target already has with the same bytes is skipped, so
   that a second run continues an interrupted copy or transfers what has changed. Every file is read back and compared.
   ERR_EXISTS: the target has a workspace of that name that is not a copy of this one; ERR_CONFLICT: the copy has been
   changed since.
   {"dry_run","workspaces":[{"name","files","bytes","copied","copied_bytes","same","removed","revisions","head"}]} */
int store_copy_workspaces(struct ctx *ctx, const struct copy_req *req, struct jv **ret_report, struct err *err);

/* An array of {workspace?, check, ok, detail, fix?}; what it finds is in the lines, not an error. `repair` mends what
   can be derived from the rest: changes that nobody recorded, what killed processes left. */
int store_fsck(struct ctx *ctx, struct str url, struct str workspace, bool repair, struct jv **ret_lines,
	       struct err *err);

#endif
