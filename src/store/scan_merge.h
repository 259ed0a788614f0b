/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A scan of one store (the base) with files of another one (the extra files) in their places. The base scans itself,
 * with its own threads. It asks in list order which files are wanted, so each extra file gets its number when the first
 * of the base's files that comes after it is asked for. A thread of its own reads them: the thread on which the base
 * asks may be the only one that reads the base's files, and a visitor that puts results in order may wait for those.
 */
#ifndef STEAD_STORE_SCAN_MERGE_H
#define STEAD_STORE_SCAN_MERGE_H

#include "store/store.h"

struct scan_merge_file {
	struct str path; /* stays until the scan is over */
	uint64_t size;
};

struct scan_merge {
	struct store *base, *extra;
	const struct scan_req *req; /* with two threads at least, or 0 */
	bool dated;                 /* the base says when its files were changed (scan_req.dated) */
	/* These two are called on the thread that walks. `hides`: an entry of the base is left out. `next`: the next of
	   the extra files, which the caller's request wants, before `path` in list order; ptr NULL: of all that are
	   left. False: there is none. */
	bool (*hides)(void *arg, struct str path, bool is_dir);
	bool (*next)(void *arg, struct str path, struct scan_merge_file *ret);
	/* On any thread. True: the rest of this file of the base is read from `extra` instead. May be NULL. */
	bool (*is_stale)(void *arg, const struct scan_item *item);
	void *arg;
};

int scan_merge(const struct scan_merge *merge, struct ctx *ctx, struct wpath path, struct err *err);

#endif
