/* SPDX-License-Identifier: Apache-2.0 */
/* A command in a sandbox that was made in advance is as any other command, and finds nothing of another one. */
#include "sandbox_fix.h"

#include <signal.h>

static void spare_init(struct box *b)
{
	if (sandbox_spare_open(&b->ctx, &b->job, &b->job.spare, &b->err) != 0)
		SKIP("%.150s", b->err.msg);
	test_defer(sandbox_spare_close, b->job.spare);
}

/* In the spare, which is used up by it. */
static void run_in_spare(struct box *b, const char *script)
{
	spare_init(b);
	run(b, script);
	CHECK(sandbox_spare_is_used(b->job.spare));
}

FACT(a_spare_shows_the_files_as_they_are_and_changes_come_back)
{
	put(b, "a", "one\n");
	spare_init(b);
	put(b, "b", "later\n");
	run(b, "cat a b; echo two >>a; mkdir d; echo new >d/c; rm b; echo said >&2; exit 3");
	CHECK(sandbox_spare_is_used(b->job.spare));
	CHECK_STR(b->result.out.text, STR("one\nlater\n"));
	CHECK_STR(b->result.said.text, STR("said\n"));
	CHECK_INT(b->result.exit_code, 3);
	CHECK_STR(content(b, "a"), STR("one\ntwo\n"));
	CHECK_STR(content(b, "d/c"), STR("new\n"));
	CHECK_STR(content(b, "b"), STR("(absent)"));
}

FACT(a_spare_gets_input_variables_directory_and_answer_of_its_job)
{
	const char *env[] = {"OF_THE_JOB=yes", NULL};
	struct wpath sub;

	put(b, "sub/file", "x");
	spare_init(b);
	CHECK_OK(wpath_parse(STR("sub"), &sub, &b->err), b->err);
	b->job.env = env;
	b->job.cwd = sub;
	b->job.input = STR("typed\n");
	b->job.answer_max = 100;
	run(b, "ls; cat; echo $OF_THE_JOB; echo told >&3");
	CHECK(sandbox_spare_is_used(b->job.spare));
	CHECK_STR(b->result.out.text, STR("file\ntyped\nyes\n"));
	CHECK_STR(b->result.answer, STR("told\n"));
}

TEST(a_spare_of_other_limits_is_left_alone)
{
	static struct box b;

	box_on_disk(&b, SANDBOX_NAMESPACES);
	spare_init(&b);
	b.job.limits.processes = 17;
	run(&b, "echo ran");
	CHECK(!sandbox_spare_is_used(b.job.spare));
	CHECK_STR(b.result.out.text, STR("ran\n"));
}

TEST(a_spare_of_another_owner_is_left_alone)
{
	static struct box b;

	box_on_memory(&b, SANDBOX_NAMESPACES);
	if (geteuid() != 0)
		SKIP("only root gives owners users of their own");
	spare_init(&b);
	b.job.owner = STR("somebody else");
	run(&b, "echo ran");
	CHECK(!sandbox_spare_is_used(b.job.spare));
}

TEST(a_spare_of_another_place_of_the_files_is_left_alone)
{
	static struct box b;

	box_on_memory(&b, SANDBOX_NAMESPACES);
	spare_init(&b);
	b.job.files.at = "/elsewhere";
	run(&b, "pwd");
	CHECK(!sandbox_spare_is_used(b.job.spare));
	CHECK_STR(b.result.out.text, STR("/elsewhere\n"));
}

TEST(a_second_job_does_not_find_the_spare_of_the_first)
{
	static struct box b;

	box_on_memory(&b, SANDBOX_NAMESPACES);
	run_in_spare(&b, "echo left >/tmp/left; echo $$");
	sandbox_result_release(&b.result);
	run(&b, "cat /tmp/left 2>/dev/null || echo nothing");
	CHECK_STR(b.result.out.text, STR("nothing\n"));
}

TEST(variables_that_do_not_fit_a_spare_run_without_it)
{
	static struct box b;
	static char values[6][100 * 1024];
	const char *env[7] = {NULL};

	box_on_memory(&b, SANDBOX_NAMESPACES);
	spare_init(&b);
	for (int i = 0; i < 6; i++) {
		memset(values[i], 'x', sizeof values[i] - 1);
		memcpy(values[i], (char[]){'V', (char)('0' + i), '='}, 3);
		env[i] = values[i];
	}
	b.job.env = env;
	run(&b, "echo ${#V0} ${#V5}");
	CHECK(!sandbox_spare_is_used(b.job.spare));
	CHECK_STR(b.result.out.text, STR("102396 102396\n"));
}

TEST(everything_of_a_spare_is_killed_at_the_deadline)
{
	static struct box b;

	box_on_memory(&b, SANDBOX_NAMESPACES);
	spare_init(&b);
	b.job.limits.timeout_ms = 300;
	run(&b, "setsid sleep 600 & sleep 600");
	CHECK(sandbox_spare_is_used(b.job.spare));
	CHECK(b.result.timed_out);
	CHECK_INT(b.result.exit_code, 124);
}

TEST(limits_of_the_job_hold_in_a_spare)
{
	static struct box b;

	box_on_memory(&b, SANDBOX_NAMESPACES);
	b.job.limits.disk = 2000000;
	run_in_spare(&b, "head -c 3000000 /dev/zero >big 2>/dev/null && echo written; ulimit -n");
	CHECK_LACKS(b.result.out.text, STR("written"));
	CHECK_HAS(b.result.out.text, STR("1024\n"));
}

/* The only child of this process is the guardian of the spare. */
static pid_t only_child(void)
{
	char path[64];
	pid_t pid = 0;
	FILE *f;

	snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
	f = fopen(path, "r");
	if (f) {
		if (fscanf(f, "%d", &pid) != 1)
			pid = 0;
		(void)!fclose(f);
	}
	return pid;
}

TEST(a_job_runs_by_itself_when_its_spare_has_died)
{
	static struct box b;
	siginfo_t info;
	pid_t pid;

	box_on_memory(&b, SANDBOX_NAMESPACES);
	spare_init(&b);
	pid = only_child();
	CHECK(pid > 0 && kill(pid, SIGKILL) == 0 && waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) == 0);
	run(&b, "echo ran");
	CHECK(!sandbox_spare_is_used(b.job.spare));
	CHECK_STR(b.result.out.text, STR("ran\n"));
}

TEST(a_spare_that_is_closed_leaves_no_process)
{
	static struct box b;

	box_on_memory(&b, SANDBOX_NAMESPACES);
	if (sandbox_spare_open(&b.ctx, &b.job, &b.job.spare, &b.err) != 0)
		SKIP("%.150s", b.err.msg);
	CHECK(only_child() > 0);
	sandbox_spare_close(b.job.spare);
	CHECK_INT(only_child(), 0);
}

TEST(a_spare_is_refused_to_a_job_with_a_network)
{
	static struct box b;
	struct sandbox_host host = {.name = STR("example.com")};
	struct sandbox_net net = {.hosts = &host, .host_count = 1};

	box_on_memory(&b, SANDBOX_NAMESPACES);
	b.job.net = &net;
	CHECK_INT(sandbox_spare_open(&b.ctx, &b.job, &b.job.spare, &b.err), -ERR_UNSUPPORTED);
	b.job.spare = NULL;
}
