/* SPDX-License-Identifier: Apache-2.0 */
/* Runs: results, limits, output, and files that go in and come back. */
#include "sandbox_fix.h"

#include <fcntl.h>
#include <signal.h>

#include "base/clock.h"

#define EACH_TIER(name)                                                                                                \
	static void name##_in(enum sandbox_tier tier);                                                                 \
	TEST(name##_with_namespaces)                                                                                   \
	{                                                                                                              \
		name##_in(SANDBOX_NAMESPACES);                                                                         \
	}                                                                                                              \
	TEST(name##_with_landlock)                                                                                     \
	{                                                                                                              \
		name##_in(SANDBOX_LANDLOCK);                                                                           \
	}                                                                                                              \
	TEST(name##_with_bubblewrap)                                                                                   \
	{                                                                                                              \
		name##_in(SANDBOX_BUBBLEWRAP);                                                                         \
	}                                                                                                              \
	static void name##_in(enum sandbox_tier tier)

EACH_TIER(a_command_gives_its_outputs_and_its_exit_code)
{
	static struct box b;

	box_on_memory(&b, tier);
	run(&b, "echo out; echo said >&2; exit 3");
	CHECK_STR(b.result.out.text, STR("out\n"));
	CHECK_STR(b.result.said.text, STR("said\n"));
	CHECK_INT(b.result.exit_code, 3);
	CHECK_INT(b.result.tier, tier);
}

TEST(a_signal_and_a_missing_program_have_the_codes_of_a_shell)
{
	static const char *const missing[] = {"no-such-program", NULL};
	static struct box b;

	box_on_memory(&b, SANDBOX_AUTO);
	run(&b, "kill -9 $$");
	CHECK_INT(b.result.exit_code, 128 + SIGKILL);
	CHECK_INT(b.result.signal, SIGKILL);
	b.job.argv = missing;
	CHECK_OK(sandbox_run(&b.ctx, &b.job, &b.result, &b.err), b.err);
	CHECK_INT(b.result.exit_code, 127);
	CHECK_HAS(b.result.said.text, STR("no such program"));
}

TEST(what_is_dropped_does_not_change_the_files_in_the_tier_local)
{
	static struct box b;

	box_on_disk(&b, SANDBOX_LOCAL);
	put(&b, "kept.txt", "kept");
	b.job.files.read_only = true;
	run(&b, "cat kept.txt; rm kept.txt; echo new >made.txt");
	CHECK_STR(b.result.out.text, STR("kept"));
	CHECK_STR(content(&b, "kept.txt"), STR("kept"));
	CHECK_STR(content(&b, "made.txt"), STR("(absent)"));
	b.job.files.read_only = false;
	run(&b, "rm kept.txt");
	CHECK_STR(content(&b, "kept.txt"), STR("(absent)"));
}

EACH_TIER(files_go_in_and_changes_come_back)
{
	static struct box b;

	box_on_memory(&b, tier);
	put(&b, "kept.txt", "kept");
	put(&b, "changed.txt", "before");
	put(&b, "dir/deleted.txt", "x");
	put(&b, "touched.txt", "same");
	run(&b,
	    "cat kept.txt; printf after > changed.txt; rm dir/deleted.txt; mkdir -p new/dir; printf n > new/dir/file;"
	    "touch touched.txt; mv kept.txt moved.txt");
	CHECK_STR(b.result.out.text, STR("kept"));
	CHECK(b.result.is_saved);
	CHECK_STR(content(&b, "changed.txt"), STR("after"));
	CHECK_STR(content(&b, "dir/deleted.txt"), STR("(absent)"));
	CHECK_STR(content(&b, "new/dir/file"), STR("n"));
	CHECK_STR(content(&b, "kept.txt"), STR("(absent)"));
	CHECK_STR(content(&b, "moved.txt"), STR("kept"));
	CHECK_STR(str_of(outcome(&b, "touched.txt")), STR("nothing"));
	CHECK_STR(str_of(outcome(&b, "new/dir/file")), STR("created"));
	CHECK_INT(b.result.change_count, 5);
}

static bool hides_env(void *arg, struct wpath path)
{
	(void)arg;
	return str_is(wpath_name(path), ".env");
}

TEST(a_directory_is_shown_without_its_hidden_files)
{
	static struct box b;
	char path[300];
	FILE *f;

	box_on_disk(&b, SANDBOX_NAMESPACES);
	b.job.files.store = b.store =
		store_guard_new(store_share(b.store),
				&(struct guard_rules){.hidden = (const char *const[]){".env"}, .hidden_count = 1});
	test_defer(store_destroy, b.store);
	snprintf(path, sizeof path, "%s/sub", b.dir);
	CHECK(mkdir(path, 0755) == 0);
	snprintf(path, sizeof path, "%s/sub/.env", b.dir);
	f = fopen(path, "w");
	CHECK(f && fputs("KEY=1", f) >= 0 && fclose(f) == 0);
	put(&b, "sub/seen", "seen");
	b.job.files.is_hidden = hides_env;
	run(&b, "ls -A sub; cat sub/.env; echo stolen > sub/.env; rm -rf sub");
	CHECK_STR(b.result.out.text, STR("seen\n"));
	CHECK_STR(content(&b, "sub/seen"), STR("(absent)"));
	CHECK(access(path, F_OK) == 0);
}

static void make_in(const char *dir, const char *name)
{
	char path[300];
	int fd;

	snprintf(path, sizeof path, "%s/%s", dir, name);
	fd = name[strlen(name) - 1] == '/' ? mkdir(path, 0755) : open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	CHECK(fd >= 0);
	if (name[strlen(name) - 1] != '/')
		close(fd);
}

static void rename_in(const char *dir, const char *from, const char *to)
{
	char a[300], b[300];

	snprintf(a, sizeof a, "%s/%s", dir, from);
	snprintf(b, sizeof b, "%s/%s", dir, to);
	CHECK(rename(a, b) == 0);
}

TEST(a_file_that_becomes_hidden_between_commands_is_not_seen)
{
	static const char *const made[] = {"sub/one/.env", "sub/two/.env"};
	static struct box b;

	box_on_disk(&b, SANDBOX_NAMESPACES);
	b.job.files.is_hidden = hides_env;
	b.job.files.hidden_key = UINT64_C(1) << 60;
	b.job.files.read_only = true;
	for (size_t i = 0; i < 3; i++) {
		static const char *const dirs[] = {"sub/", "sub/one/", "sub/two/"};

		make_in(b.dir, dirs[i]);
	}
	for (size_t i = 0; i < 6; i++) { /* first read, then by time, then watched */
		run(&b, "find . -name '.env*'");
		CHECK_STR(b.result.out.text, STR(""));
		if (i >= 1 && i < 3)
			make_in(b.dir, made[i - 1]);
		if (i == 3)
			rename_in(b.dir, "sub/one", "moved");
		if (i == 4) {
			rename_in(b.dir, "sub/two", "sub/one");
			make_in(b.dir, "sub/two/");
		}
	}
	run(&b, "ls -A . sub");
	CHECK_STR(b.result.out.text, STR(".:\nmoved\nsub\n\nsub:\none\ntwo\n"));
}

TEST(what_the_guard_protects_is_refused_and_the_rest_comes_back)
{
	static struct box b;

	box_on_memory(&b, SANDBOX_AUTO);
	b.job.files.store = b.store = store_guard_new(store_share(b.store), &guard_defaults);
	test_defer(store_destroy, b.store);
	run(&b, "echo KEY=1 > .env; echo fine > fine.txt; mkdir .stead; echo x > .stead/x");
	CHECK_STR(str_of(outcome(&b, ".env")), STR("refused"));
	CHECK_STR(str_of(outcome(&b, ".stead/x")), STR("refused"));
	CHECK_STR(content(&b, "fine.txt"), STR("fine\n"));
}

TEST(nothing_comes_back_when_the_whole_does_not_fit)
{
	static struct box b;

	box_on_memory(&b, SANDBOX_AUTO);
	b.job.files.store = b.store = store_quota_new(store_share(b.store), (struct quota_limits){.bytes = 1000});
	test_defer(store_destroy, b.store);
	run(&b, "echo small > small; head -c 2000 /dev/zero > large");
	CHECK(!b.result.is_saved);
	CHECK_INT(b.result.unsaved.kind, ERR_QUOTA);
	CHECK_STR(content(&b, "small"), STR("(absent)"));
}

TEST(a_command_that_deletes_too_much_is_not_believed)
{
	static struct box b;

	box_on_memory(&b, SANDBOX_AUTO);
	put(&b, "a", "1");
	put(&b, "b", "2");
	b.job.files.deletions_max = 1;
	run(&b, "rm a b; echo x > c");
	CHECK(!b.result.is_saved);
	CHECK_STR(content(&b, "a"), STR("1"));
	CHECK_STR(content(&b, "c"), STR("(absent)"));
}

TEST(a_program_that_may_not_be_run_is_looked_for_in_the_next_directory)
{
	static struct box b;

	box_on_memory(&b, SANDBOX_AUTO);
	put(&b, "echo", "not a program\n");
	put(&b, "only-here", "not a program\n");
	b.job.env = (const char *const[]){"PATH=/workspace:/usr/bin", NULL};
	b.job.argv = (const char *const[]){"echo", "found", NULL};
	CHECK_OK(sandbox_run(&b.ctx, &b.job, &b.result, &b.err), b.err);
	CHECK_STR(b.result.out.text, STR("found\n"));
	b.job.argv = (const char *const[]){"only-here", NULL};
	CHECK_OK(sandbox_run(&b.ctx, &b.job, &b.result, &b.err), b.err);
	CHECK_INT(b.result.exit_code, 126);
}

/* Another writer, while the command runs: it prints a line, and waits for one, which it gets after the write. */
struct writer {
	struct box *b;
	const char *path, *text;
	int go;
	bool done;
};

static bool write_now(void *arg, bool is_stderr, struct str bytes)
{
	struct writer *w = arg;

	(void)is_stderr, (void)bytes;
	if (w->done)
		return true;
	w->done = true;
	put(w->b, w->path, w->text);
	CHECK(write(w->go, "\n", 1) == 1);
	close(w->go);
	return true;
}

static void run_with_writer(struct box *b, const char *path, const char *text, const char *script)
{
	int ends[2];
	struct writer writer = {b, path, text, -1, false};

	CHECK(pipe2(ends, O_CLOEXEC) == 0);
	writer.go = ends[1];
	b->job.input_fd = &ends[0];
	b->job.output = write_now;
	b->job.output_arg = &writer;
	run(b, arena_printf(b->arena, "echo ready; read line; %s", script).ptr);
	close(ends[0]);
}

TEST(changes_of_two_writers_are_merged)
{
	static struct box b;

	box_on_memory(&b, SANDBOX_AUTO);
	put(&b, "list", "one\ntwo\nthree\nfour\nfive\n");
	run_with_writer(&b, "list", "ONE\ntwo\nthree\nfour\nfive\n", "sed -i s/five/FIVE/ list");
	CHECK_STR(str_of(outcome(&b, "list")), STR("merged"));
	CHECK_STR(content(&b, "list"), STR("ONE\ntwo\nthree\nfour\nFIVE\n"));
}

EACH_TIER(a_change_that_collides_is_kept_under_another_name)
{
	static struct box b;

	box_on_memory(&b, tier);
	put(&b, "list", "one\n");
	run_with_writer(&b, "list", "theirs\n", "echo ours > list");
	CHECK_STR(str_of(outcome(&b, "list")), STR("conflict"));
	CHECK_STR(content(&b, "list"), STR("theirs\n"));
	CHECK_STR(content(&b, "list.conflict-1"), STR("ours\n"));
}

TEST(a_change_by_another_program_is_seen_on_disk)
{
	static struct box b;

	box_on_disk(&b, SANDBOX_NAMESPACES);
	put(&b, "list", "one\n");
	run_with_writer(&b, "list", "theirs\n", "echo ours > list");
	CHECK_STR(str_of(outcome(&b, "list")), STR("conflict"));
	CHECK_STR(content(&b, "list"), STR("theirs\n"));
}

/* Processes of the machine whose command line has the mark. */
static int processes_with(const char *mark)
{
	char command[200];
	FILE *f;
	int count = -1;

	snprintf(command, sizeof command, "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n' | grep -c '^%s$'",
		 mark);
	f = popen(command, "r");
	CHECK(f && fscanf(f, "%d", &count) == 1);
	pclose(f);
	return count;
}

EACH_TIER(a_killed_command_takes_everything_with_it_that_it_started)
{
	static struct box b;

	box_on_memory(&b, tier);
	b.job.limits.timeout_ms = 2000;
	run(&b, "trap '' TERM; echo begun; setsid sh -c 'trap \"\" TERM; sleep 48151' & (setsid sleep 48151 &) ; sleep "
		"48151");
	CHECK(b.result.timed_out);
	CHECK_INT(b.result.exit_code, 124);
	CHECK_STR(b.result.out.text, STR("begun\n"));
	CHECK_INT(processes_with("48151"), 0);
}

EACH_TIER(what_a_command_leaves_running_ends_with_it)
{
	static struct box b;

	box_on_memory(&b, tier);
	run(&b, "(setsid sleep 48152 &) ; echo done");
	CHECK_INT(b.result.exit_code, 0);
	CHECK(!b.result.timed_out);
	CHECK_STR(b.result.out.text, STR("done\n"));
	CHECK_INT(processes_with("48152"), 0);
}

TEST(processes_that_multiply_are_bounded_and_end)
{
	static struct box b;

	box_on_memory(&b, SANDBOX_NAMESPACES);
	b.job.limits.timeout_ms = 1500;
	b.job.limits.processes = 50;
	run(&b, "f() { setsid sh -c 'sleep 48153' & f; }; f 2>/dev/null; sleep 48153");
	CHECK_INT(processes_with("48153"), 0);
}

TEST(a_command_has_as_many_processes_as_it_may_have_and_no_more)
{
	static struct box b;
	int64_t forks = 0;

	box_on_memory(&b, SANDBOX_NAMESPACES);
	b.job.limits.processes = 20;
	run(&b, "python3 -c 'import os, time\nn = 0\ntry:\n  while n < 60:\n    if os.fork() == 0: time.sleep(60)\n"
		"    n += 1\nexcept OSError: pass\nprint(n)'; true");
	CHECK(str_to_i64(str_trim(b.result.out.text), &forks));
	CHECK_INT(forks, 18); /* next to the shell and the first Python */
}

TEST(what_a_command_used_until_it_was_killed_is_in_the_result)
{
	static struct box b;

	box_on_memory(&b, SANDBOX_NAMESPACES);
	b.job.limits.timeout_ms = 1500;
	run(&b, "(while :; do :; done)");
	CHECK(b.result.timed_out);
	CHECK(b.result.cpu_ms > 0);
}

static void user_is_bounded(struct box *b)
{
	enum sandbox_tier have;
	int64_t most = 0;

	if (sandbox_tier_choose(SANDBOX_LANDLOCK, &have, &b->err) != 0)
		return;
	b->job.tier = SANDBOX_LANDLOCK;
	b->job.limits.processes = 20;
	run(b, "ulimit -p");
	CHECK(str_to_i64(str_trim(b->result.out.text), &most));
	CHECK(most > 20 && most < 4096);
}

TEST(where_processes_are_counted_by_user_those_that_run_already_are_added_to_the_limit)
{
	box_as_user(user_is_bounded);
}

TEST(git_is_told_to_leave_out_a_configuration_that_landlock_refuses)
{
	static struct box b;

	box_on_memory(&b, SANDBOX_LANDLOCK);
	run(&b, "echo $GIT_CONFIG_NOSYSTEM; git config --list >/dev/null && echo works");
	CHECK_STR(b.result.out.text, STR("1\nworks\n"));
	b.job.tier = SANDBOX_NAMESPACES;
	run(&b, "echo $GIT_CONFIG_NOSYSTEM");
	CHECK_STR(b.result.out.text, STR("\n"));
}

TEST(memory_is_bounded)
{
	static struct box b;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	SKIP("the memory of a sanitizer does not fit within the limit");
#endif
	box_on_memory(&b, SANDBOX_NAMESPACES);
	b.job.limits.memory = 100 * MIB;
	run(&b, "python3 -c 'x = bytearray(400 << 20)'");
	CHECK(b.result.exit_code != 0);
	run(&b, "head -c 400M /dev/zero > /dev/shm/x && echo unbounded");
	if (b.result.memory_is_shared)
		CHECK_STR(b.result.out.text, STR(""));
}

TEST(disk_and_files_are_bounded)
{
	static struct box b;

	box_on_memory(&b, SANDBOX_NAMESPACES);
	b.job.limits.disk = 8 * MIB;
	b.job.limits.files = 100;
	b.job.files.read_only = true;
	run(&b, "for d in . /tmp $HOME /dev/shm; do head -c 20M /dev/zero > $d/x 2>/dev/null && echo $d has room; "
		"rm $d/x; for i in $(seq 200); do : > $d/f$i; done 2>/dev/null; ls $d | wc -l; done");
	CHECK_LACKS(b.result.out.text, STR("room"));
	CHECK_LACKS(b.result.out.text, STR("200"));
	run(&b, "truncate -s 1T sparse 2>/dev/null && echo sparse");
	CHECK_STR(b.result.out.text, STR(""));
}

TEST(output_without_end_keeps_its_beginning_and_its_end)
{
	static struct box b;
	char last[8];

	box_on_memory(&b, SANDBOX_AUTO);
	b.job.limits.output = 1000;
	run(&b, "echo first; seq 2000000; echo last; yes | head -c 50000000 >&2");
	CHECK(b.result.out.is_cut);
	CHECK_STARTS(b.result.out.text, STR("first\n1\n2\n"));
	CHECK_ENDS(b.result.out.text, STR("1999999\n2000000\nlast\n"));
	CHECK_HAS(b.result.out.text, STR("bytes left out]"));
	CHECK_INT(b.result.said.bytes, 50000000);
	CHECK(pread(b.result.out.whole_fd, last, 5, (off_t)b.result.out.bytes - 5) == 5);
	CHECK_STR(str_n(last, 5), STR("last\n"));
}

TEST(output_for_a_reader_has_no_escapes)
{
	ARENA_SCOPE struct arena *arena = arena_new();

	CHECK_STR(sandbox_clean(arena, STR("a\33[31mred\33[0m\33]0;title\7b\rc\1\xff\td\33")),
		  STR("aredbc\xEF\xBF\xBD\td"));
}

TEST(links_devices_and_names_that_are_not_paths_are_reported)
{
	static struct box b;

	box_on_memory(&b, SANDBOX_AUTO);
	run(&b, "ln -s /etc/passwd link; mkfifo pipe; touch 'a\nb'; echo ok > ok; mkdir node_modules; echo x > "
		"node_modules/x");
	CHECK_STR(str_of(outcome(&b, "link")), STR("refused"));
	CHECK_STR(str_of(outcome(&b, "pipe")), STR("refused"));
	CHECK_STR(content(&b, "link"), STR("(absent)"));
	CHECK_STR(content(&b, "ok"), STR("ok\n"));
	CHECK_INT(b.result.change_count, 5);
}

TEST(excluded_paths_stay_out)
{
	static struct box b;

	box_on_memory(&b, SANDBOX_AUTO);
	b.job.files.exclude = (const char *const[]){"node_modules", NULL};
	run(&b, "mkdir -p a/node_modules; echo x > a/node_modules/x; echo y > a/y");
	CHECK_STR(content(&b, "a/node_modules/x"), STR("(absent)"));
	CHECK_STR(content(&b, "a/y"), STR("y\n"));
	CHECK_INT(b.result.excluded, 1);
}

TEST(marks_of_an_overlay_that_a_command_forges_mean_nothing)
{
	static struct box b;

	box_on_memory(&b, SANDBOX_NAMESPACES);
	put(&b, "dir/kept", "kept");
	run(&b, "python3 -c 'import os; os.setxattr(\"dir\", \"user.overlay.opaque\", b\"y\")'; echo new > dir/new; "
		"mknod dir/kept2 c 0 0");
	CHECK_STR(content(&b, "dir/kept"), STR("kept"));
	CHECK_STR(content(&b, "dir/new"), STR("new\n"));
}

TEST(a_file_and_a_directory_take_each_others_place)
{
	static struct box b;

	box_on_memory(&b, SANDBOX_AUTO);
	put(&b, "dir/one", "1");
	put(&b, "file", "f");
	run(&b, "rm -r dir; echo file > dir; rm file; mkdir file; echo inner > file/inner");
	CHECK_STR(content(&b, "dir"), STR("file\n"));
	CHECK_STR(content(&b, "file/inner"), STR("inner\n"));
}

TEST(the_environment_is_made_and_not_inherited)
{
	static struct box b;

	setenv("STEAD_TEST_SECRET", "secret", 1);
	box_on_memory(&b, SANDBOX_AUTO);
	b.job.env = (const char *const[]){"GIVEN=given", NULL};
	run(&b, "env; cat /proc/*/environ");
	CHECK_LACKS(b.result.out.text, STR("secret"));
	CHECK_HAS(b.result.out.text, STR("GIVEN=given\n"));
	CHECK_HAS(b.result.out.text, STR("HOME=/home\n"));
}

TEST(a_working_directory_must_exist)
{
	static const char *const argv[] = {"pwd", NULL};
	static struct box b;

	box_on_memory(&b, SANDBOX_AUTO);
	put(&b, "sub/x", "x");
	b.job.argv = argv;
	b.job.cwd = (struct wpath){STR("sub")};
	CHECK_OK(sandbox_run(&b.ctx, &b.job, &b.result, &b.err), b.err);
	CHECK_STR(b.result.out.text, STR("/workspace/sub\n"));
	b.job.cwd = (struct wpath){STR("missing")};
	CHECK_ERR(sandbox_run(&b.ctx, &b.job, &b.result, &b.err), b.err, ERR_NOT_FOUND);
}

TEST(input_reaches_the_command)
{
	static struct box b;

	box_on_memory(&b, SANDBOX_AUTO);
	b.job.input = STR("hello");
	run(&b, "cat");
	CHECK_STR(b.result.out.text, STR("hello"));
}

TEST(a_directory_below_tmp_can_be_shown)
{
	static struct box b;
	const char *paths[] = {temp_dir_new(), NULL}, *argv[] = {"true", NULL};

	box_on_memory(&b, SANDBOX_NAMESPACES);
	CHECK(chmod(paths[0], 0755) == 0 && mkdir(arena_printf(b.arena, "%s/inner", paths[0]).ptr, 0755) == 0);
	b.job.paths = paths;
	run(&b, arena_printf(b.arena, "ls %s; mkdir %s/x 2>/dev/null || echo fixed", paths[0], paths[0]).ptr);
	CHECK_STR(b.result.out.text, STR("inner\nfixed\n"));
	paths[0] = "/tmp/there-is-none";
	b.job.argv = argv;
	CHECK_INT(sandbox_run(&b.ctx, &b.job, &b.result, &b.err), -ERR_NOT_FOUND);
	CHECK_HAS(str_of(b.err.msg), STR("/tmp/there-is-none"));
}

TEST(descriptor_3_carries_an_answer_of_bounded_size)
{
	static struct box b;

	box_on_memory(&b, SANDBOX_NAMESPACES);
	b.job.answer_max = 8;
	run(&b, "echo printed; echo answer >&3");
	CHECK_STR(b.result.answer, STR("answer\n"));
	CHECK(!b.result.answer_is_cut);
	CHECK_STR(b.result.out.text, STR("printed\n"));
	run(&b, "seq 100000 >&3; echo rest");
	CHECK(b.result.answer_is_cut);
	CHECK_STR(b.result.out.text, STR("rest\n"));
	b.job.answer_max = 0;
	run(&b, "echo x >&3");
	CHECK(b.result.exit_code != 0);
}

TEST(two_owners_have_different_ids_on_the_host)
{
	static struct box b;
	struct str first;

	if (geteuid() != 0)
		SKIP("only root can give commands another user");
	box_on_memory(&b, SANDBOX_NAMESPACES);
	run(&b, "set -- $(cat /proc/self/uid_map); echo $2"); /* the id of the host */
	first = b.result.out.text;
	run(&b, "set -- $(cat /proc/self/uid_map); echo $2");
	CHECK_STR(b.result.out.text, first);
	b.job.owner = STR("another");
	run(&b, "set -- $(cat /proc/self/uid_map); echo $2");
	CHECK(!str_eq(first, b.result.out.text) && !str_is(first, "0\n"));
}

TEST(without_namespaces_each_run_is_a_user_of_its_own_so_that_its_processes_are_counted_alone)
{
	static struct box b;
	struct str first;

	if (geteuid() != 0)
		SKIP("only root can give commands another user");
	box_on_memory(&b, SANDBOX_LANDLOCK);
	run(&b, "id -u; echo x >made");
	first = b.result.out.text;
	run(&b, "id -u; cat made");
	CHECK(!str_starts(b.result.out.text, first) && !str_is(first, "0\n"));
	CHECK_HAS(b.result.out.text, STR("\nx\n"));
}

TEST(an_unknown_tier_is_refused)
{
	enum sandbox_tier tier;
	struct err err;

	CHECK_ERR(sandbox_tier_parse(STR("none"), &tier, &err), err, ERR_INVALID);
}
