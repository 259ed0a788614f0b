/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a regular expression says, as a tree: read by the literal finder (which text must every match contain?) and by
 * the automaton (text/dfa.h). The syntax is PCRE2's, and PCRE2 has accepted the pattern before it comes here. What a
 * tree cannot say (back references, look-around, Unicode properties) is kept as an opaque node, and `regular` is false:
 * then PCRE2 itself decides about each line.
 *
 * A subject is one line without its end. Characters are code points; \w \d \s \b and case folding are ASCII.
 */
#ifndef STEAD_TEXT_REGEX_H
#define STEAD_TEXT_REGEX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/str.h"

enum re_kind {
	RE_EMPTY,
	RE_CLASS, /* one code point of a set; a literal character is a set of one */
	RE_CAT,
	RE_ALT,
	RE_REPEAT,
	RE_BOL,
	RE_EOL,
	RE_WORD,     /* \b */
	RE_NOT_WORD, /* \B */
	RE_ZERO,     /* not understood, takes no text */
	RE_OPAQUE,   /* not understood, takes any text */
};

struct re_range {
	uint32_t lo, hi;
};

#define RE_FOREVER UINT32_MAX

struct re_node {
	enum re_kind kind;
	struct re_node *first, *next; /* children, siblings */
	uint32_t min, max;            /* RE_REPEAT; RE_FOREVER */
	struct re_range *ranges;      /* RE_CLASS: sorted, apart, never with a newline */
	size_t count;
};

struct re {
	const struct re_node *root;
	bool regular;     /* the tree says all of it */
	bool nocase;      /* also after a leading (?i) */
	bool names_cr;    /* names '\r': the one at a line's end then belongs to the line */
	bool names_lf;    /* names '\n' outside a class, which no line has */
	bool has_verb;    /* "(*" */
	bool wide_nocase; /* folds letters beyond ASCII */
};

/* The pattern must be one that PCRE2 compiles (it bounds the depth). Never fails: at worst the tree is one opaque
   node. */
void regex_parse(struct arena *arena, struct str pattern, bool nocase, struct re *ret);
/* "alpha" … "xdigit", "word": the ASCII characters of the class, the last range followed by {0, 0}. NULL: unknown. */
const struct re_range *regex_posix_class(struct str name);
/* One literal text as a tree. */
void regex_literal(struct arena *arena, struct str text, bool nocase, struct re *ret);

/* Texts of which every match has at least one. 0: no such set that is worth looking for. *ret_exact: a line that has
   one of them matches, nothing else need be asked. `texts` holds LITERALS_MAX. */
size_t regex_literals(struct arena *arena, const struct re *re, struct str *texts, bool *ret_exact);

#endif
