/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fails the n-th operation, for tests that count: fail operation 1, check, fail operation 2, check, until the scenario
 * succeeds. "Before" is a store that did not get the request; "after" is one that did, whose answer was lost.
 */
#include <stdatomic.h>

#include "base/arena.h"
#include "store/journal.h"
#include "store/stores.h"

struct fault {
	struct store base;
	atomic_uint_fast64_t count;
	atomic_uint_fast64_t nth;
	enum err_kind kind;
	bool after;
};

static struct fault *fault_of(struct store *s)
{
	return (struct fault *)s;
}

static int fail(const struct fault *f, const struct store_call *call, struct err *err)
{
	int r = err_set(err, f->kind, "the %s was made to fail %s it was done", store_op_info[call->op].name,
			f->after ? "after" : "before");

	err->retryable = f->kind == ERR_UNAVAILABLE || f->kind == ERR_TIMEOUT || f->kind == ERR_RATE_LIMITED;
	return r;
}

static int fault_around(struct store *s, struct ctx *ctx, struct store_call *call, struct err *err)
{
	struct fault *f = fault_of(s);
	bool chosen = atomic_fetch_add(&f->count, 1) + 1 == atomic_load(&f->nth);

	if (chosen && f->after) {
		struct store_stat stat; /* a lost answer leaves the caller's outputs alone */
		struct store_page page;
		uint64_t count;
		struct journal_page journal;
		struct journal_added added = {0};
		struct store_call own = *call;

		own.ret_stat = own.ret_stat ? &stat : NULL;
		own.ret_page = own.ret_page ? &page : NULL;
		own.ret_count = own.ret_count ? &count : NULL;
		own.ret_journal = own.ret_journal ? &journal : NULL;
		own.ret_added = own.ret_added ? &added : NULL;
		(void)store_forward(s->inner, ctx, &own, err);
		return fail(f, call, err);
	}
	return chosen ? fail(f, call, err) : store_forward(s->inner, ctx, call, err);
}

static void fault_destroy(struct store *s)
{
	free(fault_of(s));
}

static const struct store_ops fault_ops = {
	.name = "fault",
	.around = fault_around,
	.destroy = fault_destroy,
};

struct store *store_fault_new(struct store *inner)
{
	struct fault *f = xcalloc(1, sizeof(*f));

	f->base = (struct store){.ops = &fault_ops, .inner = inner};
	return &f->base;
}

void store_fault_arm(struct store *fault, uint64_t nth, enum err_kind kind, bool after)
{
	struct fault *f = fault_of(fault);

	f->kind = kind;
	f->after = after;
	atomic_store(&f->count, 0);
	atomic_store(&f->nth, nth);
}

uint64_t store_fault_count(const struct store *fault)
{
	return atomic_load(&((const struct fault *)fault)->count);
}
