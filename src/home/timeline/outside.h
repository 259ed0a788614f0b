/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notices while a server runs what other programs do to the files of a workspace, and has it recorded as outside
 * changes, so that history and the change feed know of it at once. Without it the same is noticed when Stead next
 * builds on the file. For doors that stay open; a command that ends at once has no use for it.
 */
#ifndef STEAD_HOME_TIMELINE_OUTSIDE_H
#define STEAD_HOME_TIMELINE_OUTSIDE_H

#include "workspace/workspace.h"

struct outside;

/* Starts one thread that watches the file area; the workspace must outlive it. NULL: there is nothing to be watched
   (not on a disk), or no thread to be had. The first walk over the directories begins after `start_ms`. Where the
   kernel's limits do not let it watch all, it watches a part. */
struct outside *outside_start(struct workspace *ws, int start_ms);
/* Has the watcher of this workspace record what other programs have done until now. False: there is none, or it does
   not see everything; then whoever needs that must look at the files. Ends early with the call. */
bool outside_catch_up(struct workspace *ws, const struct ctx *ctx);
/* When it returns the thread has ended. NULL is allowed. */
void outside_stop(struct outside *outside);

#endif
