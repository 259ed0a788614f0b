/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of cases that a store must pass, and what runs one: a case gets an empty store of its own. */
#ifndef STEAD_TESTS_STORE_CONFORMANCE_RUN_H
#define STEAD_TESTS_STORE_CONFORMANCE_RUN_H

#include "store/store_fix.h"

struct conf_case {
	const char *name;
	void (*run)(struct conf *c);
	struct conf_case *next;
};

struct conf_list {
	struct conf_case *first, *last;
	int at_least; /* cases: a list that lost some fails */
};

static void conf_add(struct conf_list *list, struct conf_case *k)
{
	*(list->last ? &list->last->next : &list->first) = k;
	list->last = k;
}

#define CONF_CASE(list, id)                                                                                            \
	static void id(struct conf *c);                                                                                \
	static struct conf_case id##_entry = {#id, id, NULL};                                                          \
	__attribute__((constructor)) static void id##_add(void)                                                        \
	{                                                                                                              \
		conf_add(&list, &id##_entry);                                                                          \
	}                                                                                                              \
	static void id(struct conf *c)

struct conf_run {
	struct store *(*open)(void);
	const struct conf_case *at;
	bool is_borrowed;
};

static void conf_run_case(void *arg)
{
	struct conf_run *run = arg;
	struct conf c = {.ctx = {.arena = arena_new()}};

	test_defer(arena_destroy, c.ctx.arena);
	c.s = run->open();
	if (!run->is_borrowed)
		test_defer(store_destroy, c.s);
	run->at->run(&c);
}

/* Every case on a store that `open` gives; is_borrowed: `open` has deferred the end of it. A failed check ends the
   case, not the list, so that one run shows all that is wrong. */
static void conf_run_as(const struct conf_list *list, struct store *(*open)(void), bool is_borrowed)
{
	int cases = 0, wrong = 0;

	for (const struct conf_case *k = list->first; k; k = k->next, cases++) {
		struct conf_run run = {open, k, is_borrowed};

		if (test_try(conf_run_case, &run) == TEST_PASSED)
			continue;
		printf("# in case %s\n", k->name);
		wrong++;
	}
	CHECK(cases >= list->at_least);
	CHECK_INT(wrong, 0);
}

static void conf_run(const struct conf_list *list, struct store *(*open)(void))
{
	conf_run_as(list, open, false);
}

#endif
