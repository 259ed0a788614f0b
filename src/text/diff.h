/* SPDX-License-Identifier: Apache-2.0 */
/* Differences of two texts by lines. */
#ifndef STEAD_TEXT_DIFF_H
#define STEAD_TEXT_DIFF_H

#include "base/buf.h"

/* Lines, counting a last one without its newline. */
uint64_t count_lines(struct str bytes);

/* A text as lines, each with its line end. */
struct diff_lines {
	struct str *line;
	size_t count;
};
struct diff_lines diff_cut_lines(struct arena *arena, struct str text);
/* Which lines of `a` are removed and which of `b` are added (arrays of their counts, cleared before) to come from one
   to the other. The shortest way up to `cost_most` differences; past that the differing middle is one replacement,
   which is as true. Time and memory grow with the square of `cost_most`. */
void diff_script(struct arena *arena, const struct diff_lines *a, const struct diff_lines *b, int cost_most,
		 bool *removed, bool *added);

/* Unified. Bounded: past its work limit a region is shown as replaced; past `lines_max` lines the rest is counted, and
   long lines are cut; with UINT_MAX it is whole, and `patch` takes it.
   `path` goes into the header; empty: no header. */
void diff_unified(struct arena *arena, struct str before, struct str after, struct str path, unsigned lines_max,
		  struct buf *out);

/* Text put around words of the old and of the new side. */
struct diff_marks {
	const char *old_start, *old_end, *new_start, *new_end;
};
/* Both texts as one, with the words that only one of them has between marks. Ends with a newline. */
void diff_words(struct arena *arena, struct str before, struct str after, const struct diff_marks *marks,
		struct buf *out);
/* A unified difference in that form: lines without their sign, replaced ones joined word by word. */
void diff_by_words(struct arena *arena, struct str unified, const struct diff_marks *marks, struct buf *out);

#endif
