/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wildcards of one path element: `*`, `?`, `[a-z]`, `[!a-z]`, `[[:digit:]]`, '\' before a character. Globs and
 * ignore files share this; each handles '/' and `**` itself. Matching takes time linear in pattern times name.
 */
#ifndef STEAD_TEXT_WILD_H
#define STEAD_TEXT_WILD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/str.h"

enum {
	WILD_NOCASE = 1, /* ASCII letters */
	WILD_BYTES = 2,  /* `?` and `[…]` take one byte, not one code point: git's way */
	WILD_STRICT = 4, /* an unclosed '[' or a '\' at the end never matches (git's way); else it is itself */
};

/* Most patterns have a shape that needs no matcher. */
enum wild_shape { WILD_LITERAL, WILD_PREFIX, WILD_SUFFIX, WILD_ALL, WILD_TOKENS, WILD_NEVER };

struct wild_token;

struct wild {
	enum wild_shape shape;
	bool bytes, nocase;
	struct str lit; /* LITERAL, PREFIX ("lit*"), SUFFIX ("*lit") */
	const struct wild_token *tokens;
	size_t count;
};

/* `pattern` has at most PATTERN_LEN_MAX bytes. Everything lives in the arena. */
void wild_compile(struct arena *arena, struct str pattern, unsigned flags, struct wild *ret);
bool wild_match(const struct wild *wild, struct str name);

/* A pattern of several elements; `any_depth` is a lone `**`: any number of elements, also none. */
struct wild_element {
	bool any_depth;
	struct wild wild;
};
bool wild_match_path(const struct wild_element *elements, size_t count, struct str path);
/* Cuts the element at the front of `*rest` off; false at the end. */
bool wild_next_name(struct str *rest, struct str *ret_name);

/* The length of the class that starts at the '[' of `s`, both brackets included; 0 when it is not closed. */
size_t wild_class_len(struct str s);

#endif
