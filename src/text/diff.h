/* SPDX-License-Identifier: Apache-2.0 */
/* Differences of two texts by lines. */
#ifndef STEAD_TEXT_DIFF_H
#define STEAD_TEXT_DIFF_H

#include "base/buf.h"

/* Lines, counting a last one without its newline. */
uint64_t count_lines(struct str bytes);

/* Unified. Bounded: past its work limit a region is shown as replaced; past `lines_max` lines the rest is counted.
   `path` goes into the header; empty: no header. */
void diff_unified(struct arena *arena, struct str before, struct str after, struct str path, unsigned lines_max,
		  struct buf *out);

#endif
