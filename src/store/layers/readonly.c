/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Refuses every change. It decides by what store_op_info says of an operation, not by a list of its own: an operation
 * that is added later is refused until somebody declares that it only reads.
 */
#include "base/arena.h"
#include "store/stores.h"

static int readonly_around(struct store *s, struct ctx *ctx, struct store_call *call, struct err *err)
{
	if (!store_op_info[call->op].reads_only)
		return err_set(err, ERR_DENIED, "this place is read-only; write to another one");
	return store_forward(s->inner, ctx, call, err);
}

static void readonly_destroy(struct store *s)
{
	free(s);
}

static const struct store_ops readonly_ops = {
	.name = "readonly",
	.around = readonly_around,
	.destroy = readonly_destroy,
};

struct store *store_readonly_new(struct store *inner)
{
	struct store *s = xcalloc(1, sizeof(*s));

	*s = (struct store){.ops = &readonly_ops, .inner = inner};
	return s;
}
