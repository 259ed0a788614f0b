/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A test is a function whose name is the fact it proves. TEST(name) registers it; a binary runs them all and prints
 * TAP. A failed check prints both values and ends that test (by longjmp), not the run; SKIP() ends one that this
 * machine cannot do. What a test must give back is passed to test_defer(), which holds in both cases.
 * `binary NAME…` runs only those.
 */
#ifndef STEAD_TESTS_TEST_H
#define STEAD_TESTS_TEST_H

#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/str.h"

struct test {
	const char *name;
	void (*run)(void);
	struct test *next;
};

static struct test *test_first, **test_last = &test_first;

#define TEST(id)                                                                                                       \
	static void id(void);                                                                                          \
	static struct test id##_entry = {#id, id, NULL};                                                               \
	__attribute__((constructor)) static void id##_add(void)                                                        \
	{                                                                                                              \
		*test_last = &id##_entry;                                                                              \
		test_last = &id##_entry.next;                                                                          \
	}                                                                                                              \
	static void id(void)

enum test_result { TEST_PASSED, TEST_FAILED, TEST_SKIPPED };

struct test_cleanup {
	void (*run)(void *arg);
	void *arg;
	struct test_cleanup *next;
};

/* A test, or one of the cases that it runs with test_try(). */
struct test_scope {
	jmp_buf end;
	enum test_result result;
	struct test_cleanup *cleanups; /* the last one first */
};

static struct test_scope test_scopes[4];
static int test_depth; /* of the running one; 0: none */
static pid_t test_pid;
static char test_why[200]; /* of the last SKIP() */

/* A child process and a thread have nowhere to jump to: they end their process. */
__attribute__((noreturn)) static void test_leave(enum test_result result)
{
	if (gettid() != test_pid) {
		fflush(stdout);
		_exit(1);
	}
	test_scopes[test_depth].result = result;
	longjmp(test_scopes[test_depth].end, 1);
}

/* `destroy(object)` is called when the test ends, however it ends; the last object is the first to go. */
#define test_defer(destroy, object) ((void)sizeof((destroy)(object), 0), test_push((void (*)(void *))(destroy), object))

__attribute__((unused)) static void test_push(void (*run)(void *arg), void *arg)
{
	struct test_cleanup *c = malloc(sizeof(*c));

	if (!c)
		abort();
	*c = (struct test_cleanup){run, arg, test_scopes[test_depth].cleanups};
	test_scopes[test_depth].cleanups = c;
}

static void test_run_cleanup(struct test_cleanup **at)
{
	struct test_cleanup c = **at;

	free(*at);
	*at = c.next;
	c.run(c.arg);
}

/* Does now what was deferred for `object`; nothing for NULL. */
__attribute__((unused)) static void test_close(const void *object)
{
	for (int depth = object ? test_depth : 0; depth > 0; depth--)
		for (struct test_cleanup **at = &test_scopes[depth].cleanups; *at; at = &(*at)->next)
			if ((*at)->arg == object) {
				test_run_cleanup(at);
				return;
			}
	if (object) {
		printf("Bail out! test_close() of what was not deferred\n");
		abort();
	}
}

/* Runs `run` up to its first failed check, and what it deferred. */
static enum test_result test_try(void (*run)(void *arg), void *arg)
{
	struct test_scope *scope = &test_scopes[++test_depth];

	if (test_depth >= (int)(sizeof(test_scopes) / sizeof(test_scopes[0])))
		abort();
	scope->result = TEST_PASSED;
	if (setjmp(scope->end) == 0)
		run(arg);
	scope = &test_scopes[test_depth];
	while (scope->cleanups) /* one that fails a check comes back to here */
		test_run_cleanup(&scope->cleanups);
	test_depth--;
	return scope->result;
}

#define TEST_FAIL(...)                                                                                                 \
	do {                                                                                                           \
		printf("# %s:%d: ", __FILE__, __LINE__);                                                               \
		printf(__VA_ARGS__);                                                                                   \
		printf("\n");                                                                                          \
		test_leave(TEST_FAILED);                                                                               \
	} while (0)

/* Ends a test that proves nothing on this machine; the format says why. */
#define SKIP(...)                                                                                                      \
	do {                                                                                                           \
		snprintf(test_why, sizeof(test_why), __VA_ARGS__);                                                     \
		test_leave(TEST_SKIPPED);                                                                              \
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

#define CHECK_HAS(got, part)   CHECK_PART(got, part, true)
#define CHECK_LACKS(got, part) CHECK_PART(got, part, false)
#define CHECK_PART(got, part, wanted)                                                                                  \
	do {                                                                                                           \
		struct str got_ = (got), part_ = (part);                                                               \
		if ((str_find(got_, part_, 0) != SIZE_MAX) != (wanted))                                                \
			TEST_FAIL("%s is \"%.*s\", expected it %s \"%.*s\"", #got, STR_ARG(got_),                      \
				  (wanted) ? "to have" : "without", STR_ARG(part_));                                   \
	} while (0)

#define CHECK_STARTS(got, part)                                                                                        \
	do {                                                                                                           \
		struct str got_ = (got), part_ = (part);                                                               \
		if (!str_starts(got_, part_))                                                                          \
			TEST_FAIL("%s is \"%.*s\", expected it to start with \"%.*s\"", #got, STR_ARG(got_),           \
				  STR_ARG(part_));                                                                     \
	} while (0)

#define CHECK_ENDS(got, part)                                                                                          \
	do {                                                                                                           \
		struct str got_ = (got), part_ = (part);                                                               \
		if (!str_ends(got_, part_))                                                                            \
			TEST_FAIL("%s is \"%.*s\", expected it to end with \"%.*s\"", #got, STR_ARG(got_),             \
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

static void test_run_one(void *arg)
{
	((const struct test *)arg)->run();
}

int main(int argc, char **argv)
{
	int number = 0, r = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	test_pid = getpid();
	for (struct test *t = test_first; t; t = t->next) {
		int wanted = argc < 2;
		enum test_result result;

		for (int i = 1; i < argc; i++)
			wanted |= strcmp(argv[i], t->name) == 0;
		if (!wanted)
			continue;
		result = test_try(test_run_one, t);
		r |= result == TEST_FAILED;
		printf("%s %d - %s%s%s\n", result == TEST_FAILED ? "not ok" : "ok", ++number, t->name,
		       result == TEST_SKIPPED ? " # SKIP " : "", result == TEST_SKIPPED ? test_why : "");
	}
	printf("1..%d\n", number);
	return r;
}

#endif
