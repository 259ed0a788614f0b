/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interpreters that wait for calls of the custom tools of an opened workspace, one for each file of tools/ that is in
 * use (sandbox_worker_open). They belong to one user of one workspace and end with it, with a change of their file, or
 * when nothing has called them for a while.
 */
#ifndef STEAD_AGENT_CUSTOM_WORKERS_H
#define STEAD_AGENT_CUSTOM_WORKERS_H

#include "sandbox/sandbox.h"
#include "workspace/workspace.h"

/* A worker that waits for a call of `job`, or a new one whose input is `source`, for the caller alone until it is given
   back. `path` is the file; a worker of an earlier content of it is ended. NULL: there can be none now, and the job
   runs by itself. */
struct sandbox_worker *custom_worker_take(struct workspace *ws, struct ctx *ctx, const struct sandbox_job *job,
					  struct str path, struct str source);
void custom_worker_give(struct workspace *ws, struct sandbox_worker *worker);

#endif
