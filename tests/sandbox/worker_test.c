/* SPDX-License-Identifier: Apache-2.0 */
/* Calls in a worker have the files and the limits of a command of its own, and none finds anything of another. */
#include "worker_fix.h"

#include <signal.h>
#include <sys/prctl.h>

/* Each fact for files that are copied, for those of a directory, and for a user without rights. */
static void as_user(void (*fact)(struct box *b))
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
		as_user(name##_for);                                                                                   \
	}                                                                                                              \
	static void name##_for(struct box *b)

FACT(a_call_sees_the_files_as_they_are_and_its_changes_come_back)
{
	put(b, "a", "one\n");
	put(b, "gone", "x");
	worker_init(b);
	ask(b, "cat a; pwd -L >/dev/null; echo two >>a; mkdir d; echo new >d/b; rm gone; echo said >&2; exit 3");
	CHECK_STR(b->result.out.text, STR("one\n"));
	CHECK_STR(b->result.said.text, STR("said\n"));
	CHECK_INT(b->result.exit_code, 3);
	CHECK_STR(content(b, "a"), STR("one\ntwo\n"));
	CHECK_STR(content(b, "d/b"), STR("new\n"));
	CHECK_STR(content(b, "gone"), STR("(absent)"));
	put(b, "a", "by another\n");
	put(b, "later", "later\n");
	ask(b, "cat a later d/b; ls; echo three >>/workspace/a");
	CHECK_STR(b->result.out.text, STR("by another\nlater\nnew\na\nd\nlater\n"));
	CHECK_STR(content(b, "a"), STR("by another\nthree\n"));
	CHECK_INT(sandbox_worker_is_spent(b->job.worker), false);
}

FACT(nothing_of_a_call_is_left_for_the_next)
{
	worker_init(b);
	ask(b, "echo x >/tmp/x; echo x >/dev/shm/x; echo x >/home/x; (setsid sleep 600 &) >/dev/null 2>&1; kill -STOP "
	       "$PPID; kill -CONT $PPID; (sleep 600 &)");
	CHECK_INT(b->result.exit_code, 0);
	CHECK_INT(sandbox_worker_is_spent(b->job.worker), false);
	ask(b, "ls -A /tmp /dev/shm /home | grep x; cat /proc/[0-9]*/comm | grep -c '^sleep'");
	CHECK_STR(b->result.out.text, STR("0\n"));
	CHECK_INT(sandbox_worker_is_spent(b->job.worker), false);
}

FACT(a_worker_is_spent_by_what_cannot_be_taken_away)
{
	worker_init(b);
	ask(b, "mkdir -p /tmp/deep/er; echo kept >kept");
	CHECK_STR(content(b, "kept"), STR("kept\n"));
	CHECK_INT(sandbox_worker_is_spent(b->job.worker), true);
	ask(b, "echo never"); /* runs without it, as the program of the job */
	CHECK_INT(b->result.exit_code, 1);
}

FACT(a_call_ends_at_its_limit_and_so_does_the_worker)
{
	worker_init(b);
	b->job.limits.timeout_ms = 300;
	ask(b, "echo begun >begun; sleep 600");
	CHECK_INT(b->result.timed_out, true);
	CHECK_INT(b->result.exit_code, 124);
	CHECK_STR(content(b, "begun"), STR("begun\n"));
	CHECK_INT(sandbox_worker_is_spent(b->job.worker), true);
}

TEST(a_call_cannot_end_or_change_the_program_without_being_noticed)
{
	static struct box b;

	box_on_memory(&b, SANDBOX_NAMESPACES);
	worker_init(&b);
	ask(&b, "python3 - $PPID <<'E'\n"
		"import os, resource, sys\n"
		"p = int(sys.argv[1])\n"
		"def attempt(name, f):\n"
		"    try: f(); print('open', name)\n"
		"    except OSError: pass\n"
		"attempt('memory', lambda: open('/proc/%d/mem' % p, 'r+b'))\n"
		"attempt('limits', lambda: resource.prlimit(p, resource.RLIMIT_NOFILE, (4, 4)))\n"
		"attempt('guardian', lambda: os.kill(1, 9))\n"
		"attempt('guardian root', lambda: os.listdir('/proc/1/root'))\n"
		"for fd in range(3, 9): attempt('socket %d' % fd, lambda: os.write(os.open('/proc/%d/fd/%d' % (p, fd), "
		"1), b'x'))\n"
		"E\n");
	CHECK_STR(b.result.said.text, STR(""));
	CHECK_LACKS(b.result.out.text, STR("open memory"));
	CHECK_LACKS(b.result.out.text, STR("open limits"));
	CHECK_LACKS(b.result.out.text, STR("open guardian"));
	CHECK_LACKS(b.result.out.text, STR("open socket"));
	CHECK_INT(sandbox_worker_is_spent(b.job.worker), false);
	ask(&b, "echo still; kill -9 $PPID; sleep 600");
	CHECK_INT(sandbox_worker_is_spent(b.job.worker), true);
	CHECK_INT(b.result.signal, SIGKILL);
}

TEST(shared_memory_spends_a_worker)
{
	static struct box b;

	box_on_memory(&b, SANDBOX_NAMESPACES);
	worker_init(&b);
	ask(&b, "command -v ipcmk >/dev/null || exit 9; ipcmk -M 4096");
	if (b.result.exit_code == 9)
		SKIP("there is no ipcmk");
	CHECK_INT(sandbox_worker_is_spent(b.job.worker), true);
}

TEST(files_that_a_call_may_only_read_stay_as_they_are)
{
	static struct box b;

	box_on_memory(&b, SANDBOX_NAMESPACES);
	put(&b, "a", "one\n");
	b.job.files.read_only = true;
	worker_init(&b);
	ask(&b, "echo two >>a; cat a");
	CHECK_STR(b.result.out.text, STR("one\ntwo\n"));
	CHECK_STR(content(&b, "a"), STR("one\n"));
	ask(&b, "cat a");
	CHECK_STR(b.result.out.text, STR("one\n"));
}
