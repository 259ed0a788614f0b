/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tier "bubblewrap": the namespaces and the view are made by bwrap, a program of the machine, for machines where
 * that program may make them and others may not. Alone it leaves much open (descriptors, strange sockets, io_uring,
 * keyrings, any number of processes), so Stead gives it the same filter of system calls, the same limits and the same
 * view as its own namespaces. It cannot mount an overlay: the files are a copy, bound in.
 *
 * bwrap ends with 1 when it cannot set up, and so may a command. What runs inside first is therefore a line for the
 * shell that says on a pipe that it has begun, sets the limit of processes (which is counted inside), and starts the
 * command, with the exit codes of a shell for a program that is not there. That shell is process 1: bwrap's own would
 * show paths of the host in its command line.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/env.h"
#include "base/fd.h"
#include "sandbox/sandbox_internal.h"

#define ARGS_MAX 400

struct args {
	struct arena *arena;
	const char **list;
	size_t count;
};

static void add(struct args *a, const char *arg)
{
	if (a->count < ARGS_MAX)
		a->list[a->count++] = arg;
}

static void add_all(struct args *a, const char *const *args)
{
	for (size_t i = 0; args[i]; i++)
		add(a, args[i]);
}

static void add_three(struct args *a, const char *what, const char *from, const char *to)
{
	add(a, what);
	add(a, from);
	add(a, to);
}

const char *bwrap_program(struct arena *arena)
{
	const char *path = env_process("PATH");
	struct str rest = str_of(path ? path : "/usr/bin:/bin"), dir;

	while (rest.len && str_cut(&rest, ':', &dir)) {
		const char *program = arena_printf(arena, "%.*s/bwrap", STR_ARG(dir)).ptr;

		if (dir.len && dir.ptr[0] == '/' && access(program, X_OK) == 0)
			return program;
	}
	return NULL;
}

int bwrap_filter(const struct sock_fprog *filter)
{
	size_t size = filter->len * sizeof *filter->filter;
	FD_SCOPE int fd = memfd_create("filter", MFD_CLOEXEC);

	if (fd < 0 || write(fd, filter->filter, size) != (ssize_t)size || lseek(fd, 0, SEEK_SET) != 0)
		return -1;
	return fcntl(fd, F_DUPFD_CLOEXEC, 10); /* above the numbers that bwrap gets */
}

static void add_programs(struct args *a)
{
	static const char *const tops[] = {"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"};

	for (size_t i = 0; i < COUNT(tops); i++) {
		char target[256];
		ssize_t n = readlink(tops[i], target, sizeof target - 1);

		if (n > 0)
			add_three(a, "--symlink", arena_cstr(a->arena, str_n(target, (size_t)n)), tops[i]);
		else if (access(tops[i], F_OK) == 0)
			add_three(a, "--ro-bind", tops[i], tops[i]);
	}
}

/* The files of /etc that are made for the command are in the work directory. */
static bool add_etc(struct args *a, const char *work)
{
	bool ok = mkdir(arena_printf(a->arena, "%s/etc", work).ptr, 0755) == 0;

	for (const struct etc_file *f = etc_made; ok && f->name; f++) {
		const char *path = arena_printf(a->arena, "%s/etc/%s", work, f->name).ptr;
		FD_SCOPE int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
		size_t len = strlen(f->text);

		ok = fd >= 0 && write(fd, f->text, len) == (ssize_t)len;
		add_three(a, "--ro-bind", path, arena_printf(a->arena, "/etc/%s", f->name).ptr);
	}
	for (size_t i = 0; etc_kept[i]; i++) {
		const char *path = arena_printf(a->arena, "/etc/%s", etc_kept[i]).ptr;

		if (access(path, F_OK) == 0)
			add_three(a, "--ro-bind", path, path);
	}
	return ok;
}

static void add_devices(struct args *a, const struct bwrap_view *v)
{
	static const char *const nodes[] = {"/dev/null",   "/dev/zero",    "/dev/full",
					    "/dev/random", "/dev/urandom", "/dev/tty"};
	static const char *const links[][2] = {{"/proc/self/fd", "/dev/fd"},
					       {"/proc/self/fd/0", "/dev/stdin"},
					       {"/proc/self/fd/1", "/dev/stdout"},
					       {"/proc/self/fd/2", "/dev/stderr"}};
	static const char *const temporary[] = {"/tmp", "/dev/shm", "/home"}; /* a kept home is bound */
	static const char *const covered[] = {"/proc/kcore", "/proc/keys", "/proc/key-users", "/proc/timer_list"};
	const char *size = arena_printf(a->arena, "%llu", (unsigned long long)v->disk).ptr;

	for (size_t i = 0; i < COUNT(nodes) - !v->tty; i++)
		add_three(a, "--dev-bind", nodes[i], nodes[i]);
	for (size_t i = 0; i < COUNT(links); i++)
		add_three(a, "--symlink", links[i][0], links[i][1]);
	for (size_t i = 0; i < COUNT(temporary) - v->keeps; i++) {
		add_three(a, "--perms", "1777", "--size");
		add_three(a, size, "--tmpfs", temporary[i]);
	}
	add_three(a, "--dir", "/run", "--dir");
	add_three(a, "/var", "--symlink", "../tmp");
	add_three(a, "/var/tmp", "--proc", "/proc");
	for (size_t i = 0; i < COUNT(covered); i++)
		if (access(covered[i], F_OK) == 0)
			add_three(a, "--ro-bind", "/dev/null", covered[i]);
}

int bwrap_args(struct arena *arena, const struct bwrap_view *v, const char *const **ret, struct err *err)
{
	static const char *const first[] = {
		"--unshare-all",    "--unshare-user",    "--uid",      "1000",    "--gid",      "1000",
		"--disable-userns", "--die-with-parent", "--hostname", "sandbox", "--cap-drop", "ALL",
		"--seccomp",        BWRAP_FILTER_FD,     NULL};
	struct args a = {.arena = arena, .list = ARENA_ARRAY(arena, const char *, ARGS_MAX + 1)};
	size_t given = 0;

	add(&a, "bwrap");
	add_all(&a, first);
	add_programs(&a);
	if (!add_etc(&a, v->work))
		return err_sys(err, errno, "cannot create /etc for the command");
	add_devices(&a, v);
	if (v->keeps)
		add_three(&a, "--bind", arena_printf(arena, "%s/home", v->work).ptr, "/home");
	for (size_t i = 0; v->paths && v->paths[i]; i++)
		add_three(&a, "--ro-bind", v->paths[i], v->paths[i]);
	add_three(&a, "--bind", arena_printf(arena, "%s/files", v->work).ptr, v->at);
	add_three(&a, "--remount-ro", "/", "--chdir");
	add_three(&a, v->cwd, "--as-pid-1", "--");
	add(&a, "/bin/sh");
	add(&a, "-c");
	add(&a, arena_printf(arena,
			     "ulimit -S -c 0; ulimit -p %llu 2>/dev/null || ulimit -u %llu 2>/dev/null; "
			     "printf s >&%s; \"$0\" \"$@\" %s>&-; exit $?",
			     (unsigned long long)v->processes, (unsigned long long)v->processes, BWRAP_START_FD,
			     BWRAP_START_FD)
			.ptr);
	while (v->argv[given] && a.count < ARGS_MAX)
		add(&a, v->argv[given++]);
	if (a.count == ARGS_MAX)
		return err_set(err, ERR_TOO_LARGE, "the command has more than %d arguments", ARGS_MAX / 2);
	*ret = a.list;
	return 0;
}
