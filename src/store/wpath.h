/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The only path that a store sees. Relative, '/' between elements, valid UTF-8, no empty, "." or ".." element, no
 * control character, at most PATH_LEN_MAX bytes and PATH_NAME_MAX per element. The root is the empty path. Only
 * wpath_parse() makes one from outside text, so whoever holds one need not check again.
 */
#ifndef STEAD_STORE_WPATH_H
#define STEAD_STORE_WPATH_H

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

struct wpath {
	struct str s; /* borrowed */
};

#define WPATH_ROOT ((struct wpath){{"", 0}})

/* Strict: the text must already be in the form above. Borrows `text`. The error says what is wrong with which path. */
int wpath_parse(struct str text, struct wpath *ret, struct err *err);
/* Lenient, for what people and models type: leading and trailing '/', doubled '/' and "." elements are dropped.
   ".." is refused, never resolved. */
int wpath_parse_lenient(struct arena *arena, struct str text, struct wpath *ret, struct err *err);
/* True when `name` is a valid element of a path. */
bool wpath_name_ok(struct str name);

static inline bool wpath_is_root(struct wpath p)
{
	return p.s.len == 0;
}

static inline bool wpath_eq(struct wpath a, struct wpath b)
{
	return str_eq(a.s, b.s);
}

/* The last element; of the root, "". */
struct str wpath_name(struct wpath p);
/* Without the last element; of the root, the root. */
struct wpath wpath_parent(struct wpath p);
/* True when p is dir or is below it. Everything is below the root. */
bool wpath_within(struct wpath p, struct wpath dir);
/* p without the leading `dir` and its '/'. p must be within dir. */
struct wpath wpath_relative(struct wpath p, struct wpath dir);
/* dir + "/" + p in the arena; ERR_INVALID when the whole gets too long. */
int wpath_join(struct arena *arena, struct wpath dir, struct wpath p, struct wpath *ret, struct err *err);

#endif
