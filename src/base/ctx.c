/* SPDX-License-Identifier: Apache-2.0 */
#include "base/ctx.h"

#include "base/clock.h"

int ctx_check(const struct ctx *ctx, struct err *err)
{
	if (ctx->cancel && atomic_load_explicit(&ctx->cancel->requested, memory_order_relaxed))
		return err_set(err, ERR_CANCELLED, "the call was cancelled");
	if (ctx->deadline_ns && clock_monotonic_ns() >= ctx->deadline_ns)
		return err_set(err, ERR_TIMEOUT, "the call ran out of time; narrow it or allow it more");
	return 0;
}

void ctx_progress(const struct ctx *ctx, uint64_t done, uint64_t total, struct str what)
{
	if (ctx->progress)
		ctx->progress->report(ctx->progress->arg, done, total, what);
}
