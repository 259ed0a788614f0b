/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of the past: a revision is named by its number, by a checkpoint's name, or by "head"; a path has the form that
 * tools use (relative to the tool root) and the form that the log uses.
 */
#ifndef STEAD_WORKSPACE_PAST_H
#define STEAD_WORKSPACE_PAST_H

#include "revisions/revisions.h"
#include "workspace/workspace.h"

/* The path as the log has it. */
struct wpath past_logged(struct workspace *ws, struct ctx *ctx, struct wpath path);
/* The path as tools have it; false for what is outside the tool root or hidden from tools. */
bool past_shown(struct workspace *ws, struct wpath logged, struct wpath *ret);
/* ERR_DENIED for what is hidden. */
int past_visible(struct workspace *ws, struct wpath path, struct err *err);
/* The namespace of this user's checkpoints in the log, and the checkpoints under the names that the user gave them. */
struct str past_namespace(struct workspace *ws, struct ctx *ctx);
int past_checkpoints(struct workspace *ws, struct ctx *ctx, struct rev_checkpoint **ret, size_t *ret_count,
		     struct err *err);
/* Number of a revision that a person named. ERR_NOT_FOUND names the nearest checkpoint. */
int past_revision(struct workspace *ws, struct ctx *ctx, struct str text, uint64_t *ret_number, struct err *err);
/* "PATH@REV", cut at the last '@'; "@REV" is the root. Without '@', or when a file of that whole name is there,
 *ret_has_rev is false. */
int past_path_at(struct workspace *ws, struct ctx *ctx, struct str text, struct wpath *ret_path, uint64_t *ret_number,
		 bool *ret_has_rev, struct err *err);
/* Records what another program did to one file, so that its past is distinct from its present. Call it before a file of
   workspace_files_at() is read. */
int past_settle(struct workspace *ws, struct ctx *ctx, struct wpath path, struct err *err);

#endif
