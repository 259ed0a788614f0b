/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What git would leave out: the rules of .gitignore files, each for its directory and below, and .git itself. A walk
 * goes down from the root: in each directory it puts that directory's file on what it has (ignore_push), asks for every
 * name (ignore_match), and does not enter a directory that is ignored, as nothing in there can come back.
 *
 *	ig = ignore_push(arena, NULL, STR(""), text of IGNORE_EXCLUDE_FILE);   the root's, if it has one
 *	ig = ignore_push(arena, ig, STR(""), text of IGNORE_FILE);             then of each directory on the way down
 */
#ifndef STEAD_TEXT_IGNORE_H
#define STEAD_TEXT_IGNORE_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/limits.h"
#include "base/str.h"

#define IGNORE_FILE         ".gitignore"
#define IGNORE_EXCLUDE_FILE ".git/info/exclude"
#define IGNORE_LEN_MAX      (1 * MIB) /* of one file; the rest of it is not read */

struct ignore;

/* Where a chain starts that is not in a repository (the root has no ".git"), such as an unpacked archive. Rules hold
   there too, but one that takes every name ("*", or "/" and "*") is dropped: it is meant for a checkout, and nothing
   would be left here. In a repository start from NULL. */
const struct ignore *ignore_outside_repository(struct arena *arena);
/* The rules in `text` for the directory `dir` (its path from the root; the root is ""), put on those of `parent`
   (NULL: none). Everything is copied into the arena. Never fails: a malformed line has no effect. */
const struct ignore *ignore_push(struct arena *arena, const struct ignore *parent, struct str dir, struct str text);
/* True when the rules, or being named ".git", leave `path` (from the root) out. It must be in the directory that
   `ignore` was pushed for, or below it. Directories above it are not looked at. `ignore` may be NULL (no rules). */
bool ignore_match(const struct ignore *ignore, struct str path, bool is_dir);

#endif
