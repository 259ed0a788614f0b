/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds any of a few literals in much text. The first half of every search: what a pattern must contain is looked for
 * at memory speed, and only lines that have it are looked at closer.
 */
#ifndef STEAD_TEXT_LITERAL_H
#define STEAD_TEXT_LITERAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/str.h"

#define LITERALS_MAX 64

struct literals;

/* 1 … LITERALS_MAX literals, none empty, none with a newline. `nocase` folds ASCII letters. Lives in the arena (the
   texts are copied); may be used by several threads at once. */
const struct literals *literals_new(struct arena *arena, const struct str *texts, size_t count, bool nocase);
/* A position in the first line at or after `from` that holds one of them, or SIZE_MAX. `from` must be the start of a
   line. Which position in the line is unspecified. */
size_t literals_find(const struct literals *lits, struct str data, size_t from);
/* How rare the literal is in text, roughly: the higher, the fewer places are looked at in vain. */
unsigned literal_rarity(struct str text, bool nocase);

/* Newlines in the text. */
uint64_t newline_count(const char *text, size_t len);

#endif
