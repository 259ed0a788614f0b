/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What travels with a call: its memory, its deadline, whether it was cancelled, and who makes it. Borrowed by every
 * function it is passed to. One ctx belongs to one thread; `cancel` may be set from any.
 */
#ifndef STEAD_BASE_CTX_H
#define STEAD_BASE_CTX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

/* Who acts. Empty fields are unknown, not "everybody". */
struct actor {
	struct str workspace, user, agent, session, call_id;
};

struct cancel {
	atomic_bool requested;
};

/* Progress of long work; `total` 0 means unknown. Called on the thread that runs the call. */
struct progress {
	void (*report)(void *arg, uint64_t done, uint64_t total, struct str what);
	void *arg;
};

struct ctx {
	struct arena *arena;
	int64_t deadline_ns;             /* clock_monotonic_ns(), 0: none */
	const struct cancel *cancel;     /* NULL: cannot be cancelled */
	const struct progress *progress; /* NULL: nobody listens */
	struct actor actor;
};

/* An id that no other call has had, in any process. */
struct str call_id_new(struct arena *arena);
/* ERR_CANCELLED or ERR_TIMEOUT when the call should end, else 0. Cheap enough for inner loops. */
int ctx_check(const struct ctx *ctx, struct err *err);
/* The program is about to end: from this time on (clock_monotonic_ns()) every call of the process is cancelled, those
   that were begun without a flag of their own too. For programs only, never for the library. */
void ctx_end_all(int64_t at_ns);
void ctx_progress(const struct ctx *ctx, uint64_t done, uint64_t total, struct str what);

#endif
