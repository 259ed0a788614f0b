/* SPDX-License-Identifier: Apache-2.0 */
#include "base/ctx.h"

#include "base/clock.h"

static _Atomic int64_t end_all_ns; /* 0: not yet */

void ctx_end_all(int64_t at_ns)
{
	atomic_store(&end_all_ns, at_ns);
}

int ctx_check(const struct ctx *ctx, struct err *err)
{
	int64_t end_ns = atomic_load_explicit(&end_all_ns, memory_order_relaxed);

	if (ctx->cancel && atomic_load_explicit(&ctx->cancel->requested, memory_order_relaxed))
		return err_set(err, ERR_CANCELLED, "the call was cancelled");
	if (end_ns && clock_monotonic_ns() >= end_ns)
		return err_set(err, ERR_CANCELLED, "the program is ending");
	if (ctx->deadline_ns && clock_monotonic_ns() >= ctx->deadline_ns)
		return err_set(err, ERR_TIMEOUT, "the call ran out of time; narrow it, or allow more time");
	return 0;
}

void ctx_progress(const struct ctx *ctx, uint64_t done, uint64_t total, struct str what)
{
	if (ctx->progress)
		ctx->progress->report(ctx->progress->arg, done, total, what);
}

/* Random bits for the process, a number for the call. Two threads that come first may both draw: one wins. */
struct str call_id_new(struct arena *arena)
{
	static _Atomic uint64_t process;
	static _Atomic uint64_t calls;
	uint64_t mine = atomic_load(&process);

	if (mine == 0) {
		uint64_t drawn = (random_u64() >> 16) | 1;

		if (atomic_compare_exchange_strong(&process, &mine, drawn))
			mine = drawn;
	}
	return arena_printf(arena, "%012llx-%llu", (unsigned long long)mine,
			    (unsigned long long)atomic_fetch_add(&calls, 1) + 1);
}
