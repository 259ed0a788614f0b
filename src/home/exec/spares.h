/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sandboxes that are made before there is a command for them (sandbox_spare_open): at most one of an opened workspace,
 * made in the background after two commands of the same kind in a row, so that the next one does not wait for it. It
 * ends with the workspace, or when no command has come for a while.
 */
#ifndef STEAD_HOME_EXEC_SPARES_H
#define STEAD_HOME_EXEC_SPARES_H

#include "sandbox/sandbox.h"
#include "workspace/workspace.h"

/* The one that waits, if it was made for jobs like this one; the caller's from now on. NULL: there is none. */
struct sandbox_spare *exec_spare_take(struct workspace *ws, struct ctx *ctx, const struct sandbox_job *job);
/* After the job has run: ends what was taken (or NULL), and has another one made if such jobs keep coming. */
void exec_spare_give(struct workspace *ws, struct ctx *ctx, const struct sandbox_job *job, struct sandbox_spare *spare);

#endif
