/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The regular expressions that schemas use: literals, '.', [classes] with ranges and '^', \d \D \w \W \s \S, groups
 * (also "(?:"), '|', * + ? {n} {n,} {n,m}, ^ and $. Nothing is captured, and nothing else is accepted: no
 * back-reference, no look-around. Matching takes time linear in text times pattern, so it needs no limit of work.
 */
#ifndef STEAD_TEXT_PATTERN_H
#define STEAD_TEXT_PATTERN_H

#include <stdbool.h>

#include "base/str.h"

/* False when the pattern has what is not accepted here, or is too long. */
bool pattern_ok(struct str pattern);
/* True when the pattern is found somewhere in `text` (^ and $ are the ends of the text). A bad pattern finds nothing.
 */
bool pattern_found(struct str pattern, struct str text);

#endif
