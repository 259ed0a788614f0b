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

/* A case that a store by design does not pass, and why not. It must fail: otherwise it is not an exception. */
struct conf_exception {
	const char *name, *why;
};

struct conf_run {
	struct store *(*open)(void);
	const struct conf_case *at;
};

static void conf_run_case(void *arg)
{
	struct conf_run *run = arg;
	struct conf c = {.ctx = {.arena = arena_new()}};

	test_defer(arena_destroy, c.ctx.arena);
	c.s = run->open();
	test_defer(store_destroy, c.s);
	run->at->run(&c);
}

/* A failed check ends the case, not the list, so that one run shows all that is wrong. */
static void conf_run(const struct conf_list *list, struct store *(*open)(void), const struct conf_exception *except)
{
	int cases = 0, wrong = 0, found = 0, wanted = 0;

	for (const struct conf_exception *e = except; e && e->name; e++)
		wanted++;
	for (const struct conf_case *k = list->first; k; k = k->next, cases++) {
		struct conf_run run = {open, k};
		bool passed = test_try(conf_run_case, &run) == TEST_PASSED;
		const struct conf_exception *e = except;

		while (e && e->name && strcmp(e->name, k->name) != 0)
			e++;
		if (e && e->name) {
			found++;
			printf("# %s case %s: %s\n", passed ? "passed, which is unexpected," : "expected in", k->name,
			       e->why);
		} else if (!passed) {
			printf("# in case %s\n", k->name);
		}
		wrong += passed == (e && e->name);
	}
	CHECK(cases >= list->at_least);
	CHECK_INT(found, wanted);
	CHECK_INT(wrong, 0);
}

#endif
