/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which lines of a text match a pattern. Lines end in "\n" or "\r\n"; neither end is part of the line (unless the
 * pattern itself names '\r'), so nothing in a pattern can reach into the next line and `$` matches before both.
 * Every search ends: what PCRE2 decides is bounded by its match limits and by a budget of time for slow lines.
 */
#ifndef STEAD_TEXT_GREP_H
#define STEAD_TEXT_GREP_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

/* Compiled; immutable, shared by threads. */
struct matcher;
/* One thread's use of it. */
struct searcher;

enum { MATCH_LITERAL = 1, MATCH_NOCASE = 2 };

/* ERR_INVALID with the place and the reason when the pattern is malformed; ERR_TOO_LARGE past PATTERN_LEN_MAX.
   matcher_destroy() frees what is allocated outside the arena. */
int matcher_new(struct arena *arena, struct str pattern, unsigned flags, struct matcher **ret, struct err *err);
void matcher_destroy(struct matcher *matcher);

struct searcher *searcher_new(const struct matcher *matcher);
void searcher_destroy(struct searcher *searcher);

/* Sets the text: whole lines, but the last needs no end. It must stay until the last searcher_next(). */
void searcher_begin(struct searcher *searcher, struct str text);
/* The next matching line: 1 and its bytes (without the end) and where the next line starts; 0: there is none; else
   -kind: the pattern took too much work. `from` is the start of a line; give *ret_next back to continue. */
int searcher_next(struct searcher *searcher, size_t from, struct str *ret_line, size_t *ret_next, struct err *err);

/* For one short text that is not cut into lines, such as a string that a schema describes: `^` and `$` are the ends of
   the text. A schema may come from outside, so pattern_check() refuses what needs backtracking (ERR_INVALID). */
int pattern_check(struct str pattern, struct err *err);
/* True when the pattern is found somewhere in the text. A pattern that is not valid, or that takes too much work, finds
   nothing. */
bool pattern_found(struct str pattern, struct str text);

#endif
