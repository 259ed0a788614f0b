/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A test is a function whose name is the fact it proves. TEST(name) registers it; a binary runs them all and prints
 * TAP. A failed check prints both values and ends that test (by longjmp), not the run. `binary NAME…` runs only those.
 */
#ifndef STEAD_TESTS_TEST_H
#define STEAD_TESTS_TEST_H

#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/str.h"

struct test {
	const char *name;
	void (*run)(void);
	struct test *next;
};

static struct test *test_first, **test_last = &test_first;
static jmp_buf test_end;
static int test_failed;

#define TEST(id)                                                                                                       \
	static void id(void);                                                                                          \
	static struct test id##_entry = {#id, id, NULL};                                                               \
	__attribute__((constructor)) static void id##_add(void)                                                        \
	{                                                                                                              \
		*test_last = &id##_entry;                                                                              \
		test_last = &id##_entry.next;                                                                          \
	}                                                                                                              \
	static void id(void)

#define TEST_FAIL(...)                                                                                                 \
	do {                                                                                                           \
		printf("# %s:%d: ", __FILE__, __LINE__);                                                               \
		printf(__VA_ARGS__);                                                                                   \
		printf("\n");                                                                                          \
		test_failed = 1;                                                                                       \
		longjmp(test_end, 1);                                                                                  \
	} while (0)

#define CHECK(cond)                                                                                                    \
	do {                                                                                                           \
		if (!(cond))                                                                                           \
			TEST_FAIL("%s is false", #cond);                                                               \
	} while (0)

#define CHECK_INT(got, want)                                                                                           \
	do {                                                                                                           \
		long long got_ = (long long)(got), want_ = (long long)(want);                                          \
		if (got_ != want_)                                                                                     \
			TEST_FAIL("%s is %lld, expected %lld", #got, got_, want_);                                     \
	} while (0)

#define CHECK_STR(got, want)                                                                                           \
	do {                                                                                                           \
		struct str got_ = (got), want_ = (want);                                                               \
		if (!str_eq(got_, want_))                                                                              \
			TEST_FAIL("%s is \"%.*s\", expected \"%.*s\"", #got, STR_ARG(got_), STR_ARG(want_));           \
	} while (0)

#define CHECK_HAS(got, part)                                                                                           \
	do {                                                                                                           \
		struct str got_ = (got), part_ = (part);                                                               \
		if (str_find(got_, part_, 0) == SIZE_MAX)                                                              \
			TEST_FAIL("%s is \"%.*s\", expected it to have \"%.*s\"", #got, STR_ARG(got_),                 \
				  STR_ARG(part_));                                                                     \
	} while (0)

/* A call that must succeed, or fail with a kind; `err` is the struct err it was given. */
#define CHECK_OK(call, err)                                                                                            \
	do {                                                                                                           \
		if ((call) != 0)                                                                                       \
			TEST_FAIL("%s failed: %s (%s)", #call, (err).msg, err_kind_name((err).kind));                  \
	} while (0)
#define CHECK_ERR(call, err, want)                                                                                     \
	do {                                                                                                           \
		int r_ = (call);                                                                                       \
		if (r_ == 0)                                                                                           \
			TEST_FAIL("%s succeeded, expected %s", #call, err_kind_name(want));                            \
		if ((err).kind != (want))                                                                              \
			TEST_FAIL("%s failed as %s (%s), expected %s", #call, err_kind_name((err).kind), (err).msg,    \
				  err_kind_name(want));                                                                \
	} while (0)

static void test_run_one(const struct test *t)
{
	test_failed = 0;
	if (setjmp(test_end) == 0)
		t->run();
}

int main(int argc, char **argv)
{
	int number = 0, r = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (struct test *t = test_first; t; t = t->next) {
		int wanted = argc < 2;

		for (int i = 1; i < argc; i++)
			wanted |= strcmp(argv[i], t->name) == 0;
		if (!wanted)
			continue;
		test_run_one(t);
		r += test_failed;
		printf("%s %d - %s\n", test_failed ? "not ok" : "ok", ++number, t->name);
	}
	printf("1..%d\n", number);
	return r ? 1 : 0;
}

#endif
