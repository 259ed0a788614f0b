/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the list of conformance.h: one STACK line for each store. */
#ifndef STEAD_TESTS_STORE_CONFORMANCE_RUN_H
#define STEAD_TESTS_STORE_CONFORMANCE_RUN_H

#include "store/conformance.h"

/* One case on a fresh store. A failed check ends the case, not the list, so that one run shows all that is wrong. */
static bool run_case(struct store *(*open)(void), const struct conf_case *k)
{
	struct arena *arena = arena_new();
	struct conf c = {.ctx = {.arena = arena}};

	test_failed = 0;
	if (setjmp(test_end) == 0) {
		c.s = open();
		k->run(&c);
	}
	if (test_failed)
		printf("# in case %s\n", k->name);
	store_destroy(c.s);
	arena_destroy(arena);
	return !test_failed;
}

static void run_all(struct store *(*open)(void))
{
	jmp_buf outer;
	int cases = 0, r = 0;

	memcpy(&outer, &test_end, sizeof(outer));
	for (const struct conf_case *k = conf_first; k; k = k->next, cases++)
		r += !run_case(open, k);
	memcpy(&test_end, &outer, sizeof(outer));
	CHECK(cases >= 60);
	CHECK_INT(r, 0);
}

#define STACK(id, expr)                                                                                                \
	static struct store *id##_open(void)                                                                           \
	{                                                                                                              \
		return expr;                                                                                           \
	}                                                                                                              \
	TEST(id##_keeps_the_contract)                                                                                  \
	{                                                                                                              \
		run_all(id##_open);                                                                                    \
	}

#endif
