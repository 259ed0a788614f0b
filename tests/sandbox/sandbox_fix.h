/* SPDX-License-Identifier: Apache-2.0 */
/* Set-up of the sandbox's tests: a store, a job over it, and a run as root or as a user without rights. */
#ifndef STEAD_TESTS_SANDBOX_FIX_H
#define STEAD_TESTS_SANDBOX_FIX_H

#include <grp.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/limits.h"
#include "sandbox/sandbox.h"
#include "store/stores.h"
#include "temp_dir.h"

#define NOBODY 65534

/* Static in a test, because what is deferred runs when its function has returned. */
struct box {
	struct arena *arena;
	struct ctx ctx;
	struct err err;
	struct store *store;
	const char *dir; /* of a disk store, else NULL */
	struct sandbox_job job;
	struct sandbox_result result;
};

static void box_release(struct box *b)
{
	sandbox_result_release(&b->result);
}

/* A tier that this machine refuses is not tested. */
static void box_init(struct box *b, enum sandbox_tier tier)
{
	enum sandbox_tier have;

	*b = (struct box){.arena = arena_new(), .result = {.out = {.whole_fd = -1}, .said = {.whole_fd = -1}}};
	test_defer(arena_destroy, b->arena);
	b->ctx.arena = b->arena;
	if (sandbox_tier_choose(tier, &have, &b->err) != 0)
		SKIP("%.150s", b->err.msg);
	b->job = (struct sandbox_job){.tier = tier, .owner = STR("test"), .limits = {.timeout_ms = 20000}};
	test_defer(box_release, b);
}

__attribute__((unused)) static void box_on_memory(struct box *b, enum sandbox_tier tier)
{
	box_init(b, tier);
	b->job.files.store = b->store = store_memory_new();
	test_defer(store_destroy, b->store);
}

__attribute__((unused)) static void box_on_disk(struct box *b, enum sandbox_tier tier)
{
	struct store_disk_opts opts = {.relaxed = true};

	box_init(b, tier);
	b->job.files.dir = b->dir = temp_dir_new();
	CHECK_OK(store_disk_open(b->dir, &opts, &b->store, &b->err), b->err);
	b->job.files.store = b->store;
	test_defer(store_destroy, b->store);
}

__attribute__((unused)) static void put(struct box *b, const char *path, const char *text)
{
	CHECK_OK(store_write(b->store, &b->ctx, (struct wpath){str_of(path)}, str_of(text), (struct store_cond){0},
			     NULL, &b->err),
		 b->err);
}

/* The bytes of a file, or "(absent)". */
__attribute__((unused)) static struct str content(struct box *b, const char *path)
{
	struct str bytes;
	int r = store_read(b->store, &b->ctx, (struct wpath){str_of(path)}, STORE_WHOLE, MERGE_FILE_MAX, &bytes, NULL,
			   &b->err);

	return r ? STR("(absent)") : bytes;
}

__attribute__((unused)) static void run(struct box *b, const char *script)
{
	const char *argv[] = {"sh", "-c", script, NULL};

	b->job.argv = argv;
	CHECK_OK(sandbox_run(&b->ctx, &b->job, &b->result, &b->err), b->err);
}

/* How a path came back, or NULL. */
__attribute__((unused)) static const char *outcome(const struct box *b, const char *path)
{
	for (size_t i = 0; i < b->result.change_count; i++)
		if (str_is(b->result.changes[i].path, path))
			return sandbox_outcome_name(b->result.changes[i].outcome);
	return "nothing";
}

/* The fact for a user without rights. The child prints what went wrong, and ends with 1. */
__attribute__((unused)) static void box_as_user(void (*fact)(struct box *b))
{
	static struct box b;
	int status;
	pid_t pid;

	if (geteuid() != 0)
		SKIP("this is not root: the other cases run as a user");
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		CHECK(setgroups(0, NULL) == 0 && setresgid(NOBODY, NOBODY, NOBODY) == 0 &&
		      setresuid(NOBODY, NOBODY, NOBODY) == 0 && prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0);
		box_on_disk(&b, SANDBOX_NAMESPACES);
		fact(&b);
		while (test_scopes[test_depth].cleanups)
			test_run_cleanup(&test_scopes[test_depth].cleanups);
		fflush(stdout);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK_INT(status, 0);
}

/* Each fact for files that are copied, for those of a directory, and for a user without rights. */
#define FACT(name)                                                                                                     \
	static void name##_for(struct box *b);                                                                         \
	TEST(name##_with_a_copy)                                                                                       \
	{                                                                                                              \
		static struct box b;                                                                                   \
		box_on_memory(&b, SANDBOX_NAMESPACES);                                                                 \
		name##_for(&b);                                                                                        \
	}                                                                                                              \
	TEST(name##_with_a_directory)                                                                                  \
	{                                                                                                              \
		static struct box b;                                                                                   \
		box_on_disk(&b, SANDBOX_NAMESPACES);                                                                   \
		name##_for(&b);                                                                                        \
	}                                                                                                              \
	TEST(name##_for_a_user)                                                                                        \
	{                                                                                                              \
		box_as_user(name##_for);                                                                               \
	}                                                                                                              \
	static void name##_for(struct box *b)

#endif
