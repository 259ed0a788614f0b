/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A writer is killed at every system call of an operation, one run per call, and at random times. What it wrote is
 * there whole or not at all, and leaves no temporary files.
 */
#include <dirent.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <time.h>

#include "base/clock.h"
#include "store/backends/disk/disk_fix.h"

#define SIZE (20 * KIB)

/* Text of one letter: a mixture is a torn write. */
static struct str letters(struct arena *arena, char c, size_t size)
{
	char *p = arena_alloc_raw(arena, size);

	memset(p, c, size);
	return str_n(p, size);
}

/* Names of unfinished writes in a directory of the host, at any depth of two. */
static int count_temps(const char *dir)
{
	DIR *d = opendir(dir);
	int count = 0;

	CHECK(d);
	for (struct dirent *e; (e = readdir(d));) {
		char sub[600];

		count += strncmp(e->d_name, ".stead-tmp-", 11) == 0;
		snprintf(sub, sizeof(sub), "%s/%s", dir, e->d_name);
		if (e->d_type == DT_DIR && e->d_name[0] != '.')
			count += count_temps(sub);
	}
	closedir(d);
	return count;
}

struct scenario {
	const char *name;
	int (*act)(struct fix *f);
	char before; /* letters of "d/file" before: 0: no file */
	bool tmp_dir;
};

static int act_write(struct fix *f)
{
	return store_write(f->s, &f->ctx, P("d/file"), letters(f->ctx.arena, 'n', SIZE), ANY, NULL, &f->err);
}

static int act_append(struct fix *f)
{
	return store_append(f->s, &f->ctx, P("d/file"), letters(f->ctx.arena, 'n', SIZE), ANY, NULL, &f->err);
}

static int act_move(struct fix *f)
{
	return store_move(f->s, &f->ctx, P("source"), P("d/file"), ANY, ANY, NULL, &f->err);
}

static int act_copy(struct fix *f)
{
	return store_copy(f->s, &f->ctx, P("source"), P("d/file"), ANY, NULL, &f->err);
}

/* Lets the child run to its n-th stop at a system call and kills it there. False when it ended before. */
static bool kill_at(pid_t pid, int n)
{
	int status;

	CHECK(waitpid(pid, &status, 0) == pid && WIFSTOPPED(status));
	while (n--) {
		CHECK(ptrace(PTRACE_SYSCALL, pid, NULL, NULL) == 0);
		CHECK(waitpid(pid, &status, 0) == pid);
		if (WIFEXITED(status)) {
			CHECK_INT(WEXITSTATUS(status), 0);
			return false;
		}
		CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
	}
	kill(pid, SIGKILL);
	CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
	return true;
}

static pid_t start_traced(struct fix *f, const struct scenario *sc)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		_exit(sc->act(f) ? 1 : 0);
	}
	CHECK(pid > 0);
	return pid;
}

/* All of one kind, or (append) old ones and then new ones. */
static void check_whole(struct fix *f, const struct scenario *sc)
{
	struct str bytes;
	size_t old = 0;
	int r = store_read(f->s, &f->ctx, P("d/file"), STORE_WHOLE, MIB, &bytes, NULL, &f->err);

	if (r) {
		CHECK_INT(f->err.kind, ERR_NOT_FOUND);
		CHECK_INT(sc->before, 0);
		return;
	}
	while (old < bytes.len && bytes.ptr[old] == 'o')
		old++;
	for (size_t i = old; i < bytes.len; i++)
		CHECK_INT(bytes.ptr[i], 'n');
	CHECK(old == 0 || old == SIZE);
	CHECK(bytes.len - old == SIZE || (bytes.len == SIZE && old == SIZE));
	CHECK(sc->act == act_append || bytes.len == SIZE);
}

static bool one_run(const struct scenario *sc, int n)
{
	struct fix f = fix_new(false);
	const char *tmp = sc->tmp_dir ? temp_dir_new() : NULL;
	bool killed;

	fix_reopen(&f, false, tmp);
	put(&f, "source", "");
	CHECK_OK(store_write(f.s, &f.ctx, P("source"), letters(f.ctx.arena, 'n', SIZE), ANY, NULL, &f.err), f.err);
	if (sc->before)
		CHECK_OK(store_write(f.s, &f.ctx, P("d/file"), letters(f.ctx.arena, sc->before, SIZE), ANY, NULL,
				     &f.err),
			 f.err);
	killed = kill_at(start_traced(&f, sc), n);
	check_whole(&f, sc);
	fix_reopen(&f, false, tmp);
	list(&f, "", true);
	CHECK_INT(count_temps(f.dir), 0);
	if (tmp)
		CHECK_INT(count_temps(tmp), 0);
	check_whole(&f, sc);
	put(&f, "d/file", "and continues");
	return killed;
}

static void kill_everywhere(const struct scenario *sc)
{
	int n = 1;

	while (one_run(sc, n))
		n++;
	printf("# %s: killed at %d stops\n", sc->name, n - 1);
	CHECK(n > 15);
}

TEST(a_writer_killed_at_any_system_call_of_a_replace_leaves_old_or_new)
{
	kill_everywhere(&(struct scenario){"replace", act_write, 'o', false});
	kill_everywhere(&(struct scenario){"replace by tmp_dir", act_write, 'o', true});
}

TEST(a_writer_killed_at_any_system_call_of_a_create_leaves_nothing_or_all)
{
	kill_everywhere(&(struct scenario){"create", act_write, 0, false});
	kill_everywhere(&(struct scenario){"create by tmp_dir", act_write, 0, true});
}

TEST(a_writer_killed_at_any_system_call_of_an_append_leaves_old_or_new)
{
	kill_everywhere(&(struct scenario){"append", act_append, 'o', false});
	kill_everywhere(&(struct scenario){"append to a new file", act_append, 0, false});
}

TEST(a_writer_killed_at_any_system_call_of_a_move_or_copy_leaves_old_or_new)
{
	kill_everywhere(&(struct scenario){"move", act_move, 'o', false});
	kill_everywhere(&(struct scenario){"copy", act_copy, 'o', false});
	kill_everywhere(&(struct scenario){"copy by tmp_dir", act_copy, 'o', true});
}

/* Random times. */

static void write_for_ever(struct fix *f, int who)
{
	for (unsigned i = 0;; i++) {
		char c = (char)('a' + (who * 13 + (int)(i % 13)));

		arena_reset(f->ctx.arena);
		if (store_write(f->s, &f->ctx, P("d/file"), letters(f->ctx.arena, c, 1000 + i % 30 * 1000), ANY, NULL,
				&f->err)) {
			printf("# %s\n", f->err.msg);
			_exit(1);
		}
	}
}

static void check_one_letter(struct fix *f)
{
	struct str bytes = get(f, "d/file");

	CHECK(bytes.len >= 1000 && bytes.len % 1000 == 0);
	for (size_t i = 1; i < bytes.len; i++)
		CHECK_INT(bytes.ptr[i], bytes.ptr[0]);
}

TEST(two_writers_killed_at_random_times_leave_a_whole_file)
{
	struct fix f = fix_new(true);

	put(&f, "d/file", "");
	CHECK_OK(store_write(f.s, &f.ctx, P("d/file"), letters(f.ctx.arena, 'z', 1000), ANY, NULL, &f.err), f.err);
	for (int round = 0; round < 400; round++) {
		struct timespec wait = {.tv_nsec = (long)(random_u64() % 4000000)};
		pid_t pids[2];

		fflush(stdout);
		for (int i = 0; i < 2; i++) {
			pids[i] = fork();
			if (pids[i] == 0)
				write_for_ever(&f, i);
		}
		nanosleep(&wait, NULL); /* the random time, not a wait for something */
		for (int i = 0; i < 2; i++) {
			int status;

			kill(pids[i], SIGKILL);
			CHECK(waitpid(pids[i], &status, 0) == pids[i] && WIFSIGNALED(status));
		}
		check_one_letter(&f);
		list(&f, "", true);
		CHECK_INT(count_temps(f.dir), 0);
		arena_reset(f.ctx.arena);
	}
}
