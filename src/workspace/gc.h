/* SPDX-License-Identifier: Apache-2.0 */
/* Retention of a workspace's history, as agent.yaml asks for it (`history:`). */
#ifndef STEAD_WORKSPACE_GC_H
#define STEAD_WORKSPACE_GC_H

#include "workspace/workspace.h"

/* Drops what is older than the limits allow, and contents that nothing refers to. Revisions that checkpoints and forks
   of this workspace need are kept. {"dry_run","dropped","freed","contents","waiting","first","head","bytes",
   "held"?:{"revision","checkpoint"?}}: revisions and bytes that went (or would go), contents (blobs) among them, bytes
   that are too young to go, and what is left. */
int gc_run(struct workspace *ws, struct ctx *ctx, bool dry_run, struct jv **ret, struct err *err);

/* Runs it by itself, at most once an hour and only with limits: on a thread of its own after many changes, and at the
   end of a handle that made changes. Never on the way of a write. */
struct gc_auto;
struct gc_auto *gc_auto_new(struct workspace *ws);
/* Before the workspace is closed. NULL is allowed. */
void gc_auto_end(struct gc_auto *gc);

#endif
