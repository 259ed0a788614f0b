/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands that want too much: each is ended at its deadline or refused at its limit, and afterwards this process has
 * no child, mount, descriptor, cgroup or directory more than before. And a Stead that is killed at any moment: the next
 * one finds nothing that is left.
 */
#include "sandbox_fix.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ptrace.h>

static int entries(const char *dir, const char *prefix)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	int count = 0;

	while (d && (e = readdir(d)))
		count += strncmp(e->d_name, prefix, strlen(prefix)) == 0;
	if (d)
		closedir(d);
	return count;
}

static int lines_of(const char *path, const char *with)
{
	FILE *f = fopen(path, "r");
	char line[4096];
	int count = 0;

	while (f && fgets(line, sizeof line, f))
		count += strstr(line, with) != NULL;
	if (f)
		fclose(f);
	return count;
}

/* Processes of the machine that have such an argument. */
static int processes_with(const char *mark)
{
	DIR *d = opendir("/proc");
	struct dirent *e;
	int count = 0;

	while (d && (e = readdir(d))) {
		char path[300], text[4096];
		FILE *f;
		size_t n;

		snprintf(path, sizeof path, "/proc/%s/cmdline", e->d_name);
		f = e->d_name[0] >= '1' && e->d_name[0] <= '9' ? fopen(path, "r") : NULL;
		n = f ? fread(text, 1, sizeof text, f) : 0;
		count += memmem(text, n, mark, strlen(mark)) != NULL;
		if (f)
			fclose(f);
	}
	if (d)
		closedir(d);
	return count;
}

/* The group of the memory controller that this process is in, if the machine has such groups. */
static const char *own_groups(void)
{
	static char dir[600];
	FILE *f = fopen("/proc/self/cgroup", "r");
	char line[512], *at;

	dir[0] = 0;
	while (f && fgets(line, sizeof line, f))
		if ((at = strstr(line, ":memory:"))) {
			at[strcspn(at, "\n")] = 0;
			snprintf(dir, sizeof dir, "/sys/fs/cgroup/memory%s", at + 8);
		}
	if (f)
		fclose(f);
	return dir;
}

struct left {
	int descriptors, mounts, groups, work;
};

static struct left look(pid_t pid)
{
	char group[40], work[40];

	snprintf(group, sizeof group, "stead-%d-", (int)pid);
	snprintf(work, sizeof work, "stead-sandbox-%d-", (int)pid);
	return (struct left){.descriptors = entries("/proc/self/fd", ""),
			     .mounts = lines_of("/proc/self/mountinfo", "stead-sandbox-") +
				       lines_of("/proc/self/mountinfo", "overlay lowerdir=mask:lower") +
				       lines_of("/proc/self/mountinfo", " /tmp/root"),
			     .groups = entries(own_groups(), group),
			     .work = entries(getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", work)};
}

static void run_and_leave_nothing(struct box *b, const char *script)
{
	struct left before = look(getpid()), after;

	run(b, script);
	after = look(getpid());
	CHECK_INT(after.descriptors,
		  before.descriptors + (b->result.out.whole_fd >= 0) + (b->result.said.whole_fd >= 0));
	CHECK_INT(after.mounts, 0);
	CHECK_INT(after.groups, 0);
	CHECK_INT(after.work, 0);
	CHECK(waitpid(-1, NULL, WNOHANG | __WALL) < 0); /* no child */
}

#define EACH_TIER(name)                                                                                                \
	static void name##_in(enum sandbox_tier tier);                                                                 \
	TEST(name##_with_namespaces)                                                                                   \
	{                                                                                                              \
		name##_in(SANDBOX_NAMESPACES);                                                                         \
	}                                                                                                              \
	TEST(name##_with_bubblewrap)                                                                                   \
	{                                                                                                              \
		name##_in(SANDBOX_BUBBLEWRAP);                                                                         \
	}                                                                                                              \
	TEST(name##_with_landlock)                                                                                     \
	{                                                                                                              \
		name##_in(SANDBOX_LANDLOCK);                                                                           \
	}                                                                                                              \
	static void name##_in(enum sandbox_tier tier)

EACH_TIER(a_thousand_processes_that_left_their_session_end_at_the_deadline)
{
	static struct box b;

	box_on_memory(&b, tier);
	b.job.limits.processes = 1100;
	b.job.limits.timeout_ms = 2500;
	run_and_leave_nothing(&b, "i=0; while [ $i -lt 1000 ]; do i=$((i+1)); setsid sleep 48171 & done; wait");
	CHECK(b.result.timed_out);
	CHECK_INT(processes_with("48171"), 0);
}

EACH_TIER(processes_that_multiply_without_end_are_ended)
{
	static struct box b;

	box_on_memory(&b, tier);
	b.job.limits.processes = 60;
	b.job.limits.timeout_ms = 700;
	run_and_leave_nothing(&b, "f() { f 2>/dev/null | f 2>/dev/null & }; f 2>/dev/null; sleep 48172");
	CHECK_INT(processes_with("48172"), 0);
}

EACH_TIER(output_without_end_is_ended_at_the_deadline)
{
	static struct box b;

	box_on_memory(&b, tier);
	b.job.limits.timeout_ms = 1500;
	run_and_leave_nothing(&b, "yes & exec yes >&2");
	CHECK(b.result.timed_out);
	CHECK(b.result.out.is_cut && b.result.said.is_cut);
	CHECK(b.result.out.text.len < 100000);
}

EACH_TIER(twenty_gigabytes_of_disk_are_not_to_be_had)
{
	static struct box b;

	box_on_memory(&b, tier);
	b.job.limits.disk = 8 * MIB;
	b.job.files.read_only = true;
	run_and_leave_nothing(
		&b, "i=0; while [ $i -lt 2500 ]; do i=$((i+1)); head -c 8000000 /dev/zero > f$i || exit 9; done; "
		    "echo all");
	CHECK_LACKS(b.result.out.text, STR("all"));
	CHECK(b.result.out_of_disk || b.result.exit_code == 9);
}

EACH_TIER(eight_gibibytes_of_memory_are_not_to_be_had)
{
	static struct box b;

	box_on_memory(&b, tier);
	b.job.limits.memory = 200 * MIB;
	run_and_leave_nothing(&b, "python3 -c 'x = bytearray(8 << 30); print(\"had\")' 2>/dev/null");
	CHECK_LACKS(b.result.out.text, STR("had"));
}

/* --- a Stead that is killed --- */

/* Runs a command, with `in_advance` in a sandbox that it has made before, and is killed when it makes the N-th call of
   the kernel. True: it was. */
static bool killed_at(long call, enum sandbox_tier tier, bool in_advance, pid_t *ret)
{
	static struct box b;
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		box_on_memory(&b, tier);
		put(&b, "file", "x");
		CHECK(ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0 && raise(SIGSTOP) == 0);
		if (in_advance)
			CHECK_OK(sandbox_spare_open(&b.ctx, &b.job, &b.job.spare, &b.err), b.err);
		run(&b, "echo changed > file; echo new > new");
		sandbox_spare_close(b.job.spare);
		_exit(0);
	}
	*ret = pid;
	CHECK(waitpid(pid, &status, 0) == pid && WIFSTOPPED(status));
	for (long n = 0; n < 2 * call; n++) {
		if (ptrace(PTRACE_SYSCALL, pid, NULL, NULL) != 0 || waitpid(pid, &status, 0) != pid ||
		    WIFEXITED(status))
			return false;
	}
	CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, &status, 0) == pid);
	return true;
}

static bool has_ended(pid_t group)
{
	char text[32];

	snprintf(text, sizeof text, "stead-%d-", (int)group);
	return entries(own_groups(), text) == 0;
}

static void killed_everywhere(enum sandbox_tier tier, bool in_advance)
{
	static struct box b;
	struct left left;
	pid_t pid;

	box_on_memory(&b, tier);
	for (long call = 1; killed_at(call, tier, in_advance, &pid); call += 17) {
		for (int tries = 0; tries < 200; tries++) { /* a group is free when its last process is */
			run(&b, "true");
			if (has_ended(pid))
				break;
		}
		left = look(pid);
		CHECK_INT(left.groups, 0);
		CHECK_INT(left.work, 0);
		CHECK_INT(lines_of("/proc/self/mountinfo", "stead-sandbox"), 0);
	}
}

TEST(nothing_is_left_of_a_stead_that_was_killed_with_namespaces)
{
	killed_everywhere(SANDBOX_NAMESPACES, false);
}

TEST(nothing_is_left_of_a_stead_that_was_killed_with_a_sandbox_made_in_advance)
{
	killed_everywhere(SANDBOX_NAMESPACES, true);
}

TEST(nothing_is_left_of_a_stead_that_was_killed_with_landlock)
{
	killed_everywhere(SANDBOX_LANDLOCK, false);
}

TEST(nothing_is_left_of_a_stead_that_was_killed_with_bubblewrap)
{
	killed_everywhere(SANDBOX_BUBBLEWRAP, false);
}
