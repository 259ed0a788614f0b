/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bundle: one workspace as one file, with its files, its history and its configuration, without its secrets. A plain
 * tar archive with checksums; the format is described in docs/bundle-format.md.
 */
#ifndef STEAD_ADMIN_BUNDLE_H
#define STEAD_ADMIN_BUNDLE_H

#include "workspace/workspace.h"

/* Writes the workspace as it is now; others may change it during the export. Files that the guard always hides (.env,
   keys) are left out, from the history too, and so is .stead/. The same content gives the same bytes. A file area
   outside the workspace (files_dir) is not part of it.
   {"workspace","files","bytes","revisions","first","head","checkpoints", "contents","left_out","size","sha256"} */
int bundle_export(struct workspace *ws, struct ctx *ctx, const struct sink *sink, struct jv **ret_report,
		  struct err *err);

/* Makes a workspace of a bundle; `name` empty: the one that it had. Everything is checked while it is written to a
   place that nobody sees; only then it gets its name. ERR_EXISTS: there is one of that name; ERR_CORRUPT: the bundle is
   damaged. Whatever fails, nothing is left behind. The report is that of the export, with "workspace" the new name. */
int bundle_import(struct ctx *ctx, struct str store_url, const struct source *source, struct str name,
		  struct jv **ret_report, struct err *err);
/* The same into the store of all workspaces, when it is already open. */
int bundle_import_into(struct ctx *ctx, struct store *base, const struct source *source, struct str name,
		       struct jv **ret_report, struct err *err);

#endif
