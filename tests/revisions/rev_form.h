/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The forms of a revision log: segments, a journal of objects next to the files (two steps), a journal that takes
 * a change with its entry (one step). The tests of revisions are compiled once for each.
 */
#ifndef STEAD_TESTS_REV_FORM_H
#define STEAD_TESTS_REV_FORM_H

#include "revisions/revisions.h"
#include "store/plain_fix.h"

#define FORM_SEGMENTS 0
#define FORM_OBJECTS  1
#define FORM_ONE_STEP 2

#ifndef REV_FORM
#define REV_FORM FORM_SEGMENTS
#endif

__attribute__((unused)) static struct revisions_opts form_opts(int form)
{
	struct revisions_opts opts = {.journal = form != FORM_SEGMENTS};

	if (form == FORM_ONE_STEP)
		opts.own = (struct wpath){STR(".stead/rev")};
	return opts;
}

/* The store that has the log (and blobs) in memory. */
__attribute__((unused)) static struct store *form_meta(int form)
{
	return form == FORM_OBJECTS ? plain_new(store_memory_new()) : store_memory_new();
}

#endif
