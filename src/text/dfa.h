/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the lines that a regular expression matches, reading every byte once: an automaton whose states are made when
 * they are first needed. No pattern makes it slow, except one that needs ever new states; those are counted.
 */
#ifndef STEAD_TEXT_DFA_H
#define STEAD_TEXT_DFA_H

#include "base/arena.h"
#include "base/str.h"
#include "text/regex.h"

/* What the automata of several threads share; immutable. */
struct nfa;
/* NULL when the expression is not regular or needs too many states. */
const struct nfa *nfa_new(struct arena *arena, const struct re *re);

/* One thread's. */
struct dfa;
struct dfa *dfa_new(const struct nfa *nfa);
void dfa_destroy(struct dfa *dfa);

#define DFA_NONE SIZE_MAX       /* no more lines match */
#define DFA_WORK (SIZE_MAX - 1) /* the work that one search may cost is used up */
/* A position in the first line at or after `from` that matches (it may be the line's '\n', or data.len). `from` must
   be the start of a line. The last line need not have a '\n'. */
size_t dfa_find(struct dfa *dfa, struct str data, size_t from);

#endif
