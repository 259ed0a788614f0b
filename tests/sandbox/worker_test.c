/* SPDX-License-Identifier: Apache-2.0 */
/* Calls in a worker have the files and the limits of a command of its own, and none finds anything of another. */
#include "worker_fix.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

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

FACT(a_connection_that_a_call_closed_is_not_there_for_the_next)
{
	worker_init(b);
	ask(b, "python3 - <<'E'\n"
	       "import socket\n"
	       "at = socket.create_server(('127.0.0.1', 0))\n"
	       "to = socket.create_connection(at.getsockname())\n"
	       "to.close()\n"
	       "at.accept()[0].close()\n"
	       "E");
	CHECK_STR(b->result.said.text, STR(""));
	ask(b, "wc -l </proc/net/tcp");
	CHECK_STR(b->result.out.text, STR("1\n"));
}

FACT(temporary_directories_are_new_for_each_call)
{
	worker_init(b);
	ask(b, "python3 - <<'E'\n"
	       "import os\n"
	       "for d in '/tmp', '/dev/shm', '/home':\n"
	       "    os.makedirs(d + '/deep/er')\n"
	       "    try: os.setxattr(d, 'user.left', b'here')\n"
	       "    except OSError: pass\n"
	       "    os.utime(d, (7, 7))\n"
	       "    os.chmod(d, 0o700)\n"
	       "E\n"
	       "echo kept >kept");
	CHECK_STR(b->result.said.text, STR(""));
	CHECK_STR(content(b, "kept"), STR("kept\n"));
	CHECK_INT(sandbox_worker_is_spent(b->job.worker), false);
	ask(b, "ls -A /tmp /dev/shm /home; stat -c '%a %Y' /tmp /dev/shm /home | grep -c -v '^1777 [1-9].........$'\n"
	       "python3 -c 'import os; print([os.listxattr(d) for d in (\"/tmp\", \"/dev/shm\", \"/home\")])'");
	CHECK_STR(b->result.out.text, STR("/dev/shm:\n\n/home:\n\n/tmp:\n0\n[[], [], []]\n"));
	CHECK_INT(sandbox_worker_is_spent(b->job.worker), false);
}

FACT(a_call_sees_its_files_under_their_usual_name)
{
	worker_init(b);
	ask(b, "pwd -P; realpath .; ls /mnt 2>/dev/null");
	CHECK_STR(b->result.out.text, STR("/workspace\n/workspace\n"));
}

FACT(a_call_ends_at_its_limit_and_so_does_the_worker)
{
	/* a machine that is busy may need longer to begin */
	for (int64_t ms = 300; ms < 60000 && !str_is(content(b, "begun"), "begun\n"); ms *= 4) {
		worker_init(b);
		b->job.limits.timeout_ms = ms;
		ask(b, "echo begun >begun; sleep 600");
		CHECK_INT(b->result.timed_out, true);
		CHECK_INT(b->result.exit_code, 124);
	}
	CHECK_STR(content(b, "begun"), STR("begun\n"));
	CHECK_INT(sandbox_worker_is_spent(b->job.worker), true);
	ask(b, "echo never"); /* runs without it, as the program of the job */
	CHECK_INT(b->result.exit_code, 1);
}

FACT(a_call_cannot_leave_a_mark_on_the_program)
{
	worker_init(b);
	ask(b, "ionice -c 3 -p $PPID");
	CHECK_INT(b->result.exit_code, 0);
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
		"attempt('settings', lambda: open('/proc/%d/oom_score_adj' % p, 'w').write('500'))\n"
		"attempt('kernel', lambda: open('/proc/sys/net/ipv4/ip_forward', 'w'))\n"
		"for d in ('/', '/etc', '/usr', '/dev', '/run', '/proc'): attempt(d, lambda: open(d + '/x', 'w'))\n"
		"attempt('limits', lambda: resource.prlimit(p, resource.RLIMIT_NOFILE, (4, 4)))\n"
		"attempt('guardian', lambda: os.kill(1, 9))\n"
		"attempt('guardian root', lambda: os.listdir('/proc/1/root'))\n"
		"for fd in range(3, 9): attempt('socket %d' % fd, lambda: os.write(os.open('/proc/%d/fd/%d' % (p, fd), "
		"1), b'x'))\n"
		"E\n");
	CHECK_STR(b.result.said.text, STR(""));
	CHECK_STR(b.result.out.text, STR(""));
	CHECK_INT(sandbox_worker_is_spent(b.job.worker), false);
	ask(&b, "echo still; kill -9 $PPID; sleep 600");
	CHECK_INT(sandbox_worker_is_spent(b.job.worker), true);
	CHECK_INT(b.result.signal, SIGKILL);
}

FACT(directories_of_the_host_are_shown_below_temporary_ones_too)
{
	const char *dir = temp_dir_new();
	const char *const paths[] = {dir, NULL};
	char script[300];

	b->job.paths = paths;
	snprintf(script, sizeof script, "%s/there", dir);
	CHECK(chmod(dir, 0755) == 0 && close(open(script, O_WRONLY | O_CREAT | O_CLOEXEC, 0644)) == 0);
	worker_init(b);
	snprintf(script, sizeof script, "ls %s; touch %s/x 2>/dev/null || echo no; mkdir /tmp/made", dir, dir);
	for (int i = 0; i < 2; i++) {
		ask(b, script);
		CHECK_STR(b->result.out.text, STR("there\nno\n"));
		CHECK_INT(sandbox_worker_is_spent(b->job.worker), false);
	}
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
