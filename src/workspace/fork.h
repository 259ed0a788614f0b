/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forks: a workspace that is based on another one as it was at a revision. Making one writes a single small file
 * (.stead/fork.json in the new workspace), whatever the size of the parent: reads fall through to the parent's past,
 * writes stay in the fork. Merging brings the fork's changes to the parent, file by file, three-way.
 */
#ifndef STEAD_WORKSPACE_FORK_H
#define STEAD_WORKSPACE_FORK_H

#include "workspace/workspace.h"

#define FORK_AT_HEAD UINT64_MAX

/* The workspace that a fork of this name is. The forks of users end with a mark of the user: names of one are not in
   the way of another, and do not tell which there are. A name with the mark is left as it is. */
struct str fork_name_of(struct workspace *ws, struct arena *arena, struct str name);
/* A new workspace `name` on what `ws` was at `number` (FORK_AT_HEAD: is now). Forks of forks are fine. Where the files
   are a directory of the person's own, `number` is a revision of that directory.
   {"workspace","parent","revision"} */
int fork_create(struct workspace *ws, struct ctx *ctx, struct str name, uint64_t number, struct jv **ret,
		struct err *err);

enum merge_side { MERGE_NEITHER, MERGE_OURS, MERGE_THEIRS };
struct merge_req {
	struct str name;
	bool dry_run;
	bool partial; /* with conflicts: merge the rest */
	/* What a conflict is settled with. Ours: the parent's file stays as it is and counts as merged, which is how a
	   conflict that was resolved in the parent by hand is ended. */
	enum merge_side prefer;
	/* The only files and directories to bring; the others wait for the next merge. NULL: all. */
	const struct wpath *paths;
	size_t path_count;
};
/* Brings what changed in the fork `name` since it was last merged to its parent `ws`, as far as it is below the tool
   root. Text by line; other files whole. A file that both changed in the same place is a conflict, and with conflicts
   nothing is merged unless `partial`; a path that is not settled is looked at again by the next merge.
   {"fork","merged":[{"path","how":"taken|merged|removed|kept"}], "conflicts":[{"path","why","base","ours","theirs"
   (each {"workspace","revision"} or null: it was not there), "text" (text files: the whole file with markers)}],
   "unchanged":n, "left":n (changed, but outside the root or not for tools), "revision" (of the parent), "call" (for
   undo), "applied":bool} ERR_CONFLICT when there are conflicts and neither dry_run nor partial (ret is written then
   too). */
int fork_merge(struct workspace *ws, struct ctx *ctx, const struct merge_req *req, struct jv **ret, struct err *err);

/* True when `name` is a fork of `ws`. *ret_name is its whole name: that of the user's own fork, or else everybody's. */
bool fork_find(struct workspace *ws, struct ctx *ctx, struct str name, struct str *ret_name);
/* Removes the fork `name` of `ws` with all that it changed. ERR_INVALID: it is not a fork of `ws`. ERR_CONFLICT: other
   workspaces are forks of it. */
int fork_drop(struct workspace *ws, struct ctx *ctx, struct str name, struct err *err);

/* What .stead/fork.json says. */
struct fork_info {
	struct str parent;
	uint64_t revision; /* of the parent */
	/* The files of the parent are in this directory of the person's own, at this revision of its own log. Empty:
	   they are in the parent. In the fork they are files/. */
	struct str dir;
	uint64_t dir_revision;
	uint64_t merged;    /* the fork's own revision up to which it is merged, but for `pending` */
	struct jv *pending; /* {path: revision up to which that path is merged} */
	/* A merge that began and did not say that it ended: up to which revision of the fork, by which call. */
	uint64_t merging;
	struct str call;
	struct str version; /* of the file; empty: it does not exist yet */
};
/* Of the workspace in the directory `home`. *ret_is false: it is not a fork. */
int fork_read(struct ctx *ctx, struct store *home, struct fork_info *ret, bool *ret_is, struct err *err);
/* ERR_CONFLICT or ERR_EXISTS when somebody else wrote it after it was read; info gets the new version. */
int fork_write(struct ctx *ctx, struct store *home, struct fork_info *info, struct err *err);

#endif
