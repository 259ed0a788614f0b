/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Python interpreters that wait for calls in sandboxes of their own (sandbox_worker_open): for run_code and the
 * functions of agent.yaml, and one for each custom tool that is in use. They belong to one user of one opened workspace
 * and end with it, with a change of what they were made of, or when nothing has called them for a while.
 */
#ifndef STEAD_HOME_EXEC_WORKERS_H
#define STEAD_HOME_EXEC_WORKERS_H

#include "sandbox/sandbox.h"
#include "workspace/workspace.h"

/*
 * A worker that waits for a call of `job`, or a new one, for the caller alone until it is given back. `program` names
 * what it is for; one of the same name that was made of something else is ended. The last argument of `job` is a Python
 * text, which is run with worker.py before it and the argument "worker", and `input` is its standard input.
 *
 * NULL: the job runs by itself, because there can be no worker now, or, unless `at_once`, because this is the first
 * call of the program.
 */
struct sandbox_worker *exec_worker_take(struct workspace *ws, struct ctx *ctx, const struct sandbox_job *job,
					struct str program, struct str input, bool at_once);
/* NULL: nothing happens. */
void exec_worker_give(struct workspace *ws, struct sandbox_worker *worker);

#endif
