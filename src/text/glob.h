/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Path-aware globs: `*` and `?` never match '/', `**` as a whole element matches any number of elements (also none),
 * `[a-z]`, `[!a-z]`, `{one,two}`, and '\' takes the next character as it is. A pattern without '/' matches the last
 * element at any depth when GLOB_BASENAME is given, else only at the top. Matching takes time linear in pattern times
 * path, whatever the pattern (no backtracking blow-up).
 * Hidden names are names like others. Two stars at the end match the directory as well as what is in it; a '/' at the
 * end means the same. A '/' or "./" at the front is dropped (and makes a pattern one with '/'). Case folds in ASCII.
 */
#ifndef STEAD_TEXT_GLOB_H
#define STEAD_TEXT_GLOB_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

enum { GLOB_NOCASE = 1, GLOB_BASENAME = 2 };

struct glob;

/* Compiled for many matches, in the arena; may be used by several threads at once. */
int glob_compile(struct arena *arena, struct str pattern, unsigned flags, const struct glob **ret, struct err *err);
bool glob_match(const struct glob *glob, struct str path);
/* True when something below the directory `dir` could match: lets a walk leave whole trees out. */
bool glob_may_match_below(const struct glob *glob, struct str dir);

#endif
