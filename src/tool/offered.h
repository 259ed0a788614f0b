/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sentences by Stead name native tools. An agent may have others: a dialect has its own names, a set has only some.
 * These functions give the text as that agent can follow it. Tools whose names are words of English (note, search) are
 * not looked for.
 */
#ifndef STEAD_TOOL_OFFERED_H
#define STEAD_TOOL_OFFERED_H

#include "tool/tool.h"

/* Lines, with the names that the set has for the native tools in them, and without lines that name a tool which it does
   not have. A line that begins with two blanks belongs to the one before it. */
struct str offered_lines(struct arena *arena, const struct toolset *set, struct str text);
/* The same for a sentence of clauses ("…; read it, or use insert_file"): leaves out what cannot be followed. What comes
   before the first ';' always stays. */
struct str offered_advice(struct arena *arena, const struct toolset *set, struct str sentence);

#endif
