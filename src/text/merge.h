/* SPDX-License-Identifier: Apache-2.0 */
/* Three-way merges of texts by lines. */
#ifndef STEAD_TEXT_MERGE_H
#define STEAD_TEXT_MERGE_H

#include "base/buf.h"

/* The labels after the markers of a conflict: "<<<<<<< ours", "||||||| base", "=======", ">>>>>>> theirs". */
struct merge_labels {
	struct str ours, base, theirs;
};

/* Adds to `out` what becomes of `base` when the changes of both are made. A place that only one changed, or both in the
   same way, is as they made it; one that they changed differently is a conflict, written with markers and all three
   sides. Returns the number of conflicts. No line that a side added is left out. Lines end as they ended; markers end
   as the lines of `ours` do. */
size_t merge_lines(struct arena *arena, struct str base, struct str ours, struct str theirs,
		   const struct merge_labels *labels, struct buf *out);

#endif
