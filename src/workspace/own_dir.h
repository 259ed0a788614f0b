/* SPDX-License-Identifier: Apache-2.0 */
/* What a directory of the person's own has in addition to files: empty directories, and symbolic links. `root` is its
 * path. */
#ifndef STEAD_WORKSPACE_OWN_DIR_H
#define STEAD_WORKSPACE_OWN_DIR_H

#include "store/store.h"
#include "text/jv.h"

/* Makes a directory and those above it; one that exists is left as it is. */
int own_dir_make(struct arena *arena, struct str root, struct wpath path, struct err *err);

/* The path that `path` stands for when links are followed; its last element only if `last`. ERR_DENIED: a link leads
   out of the directory. What does not exist stays as it is. */
int own_dir_resolve(struct arena *arena, struct str root, struct wpath path, bool last, struct wpath *ret,
		    struct err *err);
/* True when `path` itself is a link. */
bool own_dir_is_link(struct arena *arena, struct str root, struct wpath path, struct str *ret_target);
/* Adds {path, kind: "link", target} for each link in a directory, by name, except those whose names the guard of
   `files` hides. */
void own_dir_links(struct arena *arena, struct str root, struct store *files, struct wpath dir, struct jv *list);
/* True for a directory that has directories and links in it and nothing else. */
bool own_dir_is_bare(struct arena *arena, struct str root, struct wpath path);
/* Links themselves and bare directories, which no history has. A move never replaces anything. */
int own_dir_unlink(struct arena *arena, struct str root, struct wpath path, struct err *err);
int own_dir_rename(struct arena *arena, struct str root, struct wpath from, struct wpath to, struct err *err);
/* After the files of a directory were removed: its links and empty directories, and itself if it is empty then. True:
   it is gone. What is in .git stays. `ret_links`: how many links went. */
bool own_dir_drop(struct arena *arena, struct str root, struct wpath path, uint64_t *ret_links);

/* After the files of a directory were moved: its links and empty directories follow them. */
void own_dir_follow(struct arena *arena, struct str root, struct wpath from, struct wpath to);

#endif
