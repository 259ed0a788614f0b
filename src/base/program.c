/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The child between fork and exec calls only what is allowed there in a program with threads; everything that
 * needs memory is done before. Both pipes are drained while waiting, so that a program that writes much never blocks;
 * output past the limit ends it. When the program itself has ended, what it left running in its session's group is
 * killed.
 */
#include "base/program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/env.h"
#include "base/fd.h"
#include "base/limits.h"

#define SAID_MAX   ((size_t)300)
#define FILE_MOST  ((rlim_t)256 * 1024 * 1024) /* of one file that it writes */
#define OPEN_MOST  ((rlim_t)256)
#define SLICE_MS   100
#define USUAL_PATH "/usr/local/bin:/usr/bin:/bin"

struct child {
	pid_t pid;
	int out, said, failed; /* ends of pipes to read from; `failed` has errno when exec failed */
};

static const char *search_path(void)
{
	const char *path = env_process("PATH");

	return path && *path ? path : USUAL_PATH;
}

/* The path of the program, or NULL. */
static const char *find_program(struct arena *arena, const char *name)
{
	struct str rest = str_of(search_path()), dir;

	if (strchr(name, '/'))
		return access(name, X_OK) == 0 ? name : NULL;
	while (rest.len && str_cut(&rest, ':', &dir)) {
		const char *path = arena_printf(arena, "%.*s/%s", STR_ARG(dir), name).ptr;

		if (dir.len && dir.ptr[0] == '/' && access(path, X_OK) == 0)
			return path;
	}
	return NULL;
}

static void limit(int what, rlim_t value)
{
	struct rlimit l = {value, value};

	(void)setrlimit((__rlimit_resource_t)what, &l);
}

/* Only async-signal-safe calls here. */
__attribute__((noreturn)) static void become(const char *program, const struct command_run *run, char *const *env,
					     const int out[2], const int said[2], const int failed[2])
{
	int nothing = open("/dev/null", O_RDONLY);
	sigset_t none;
	int why;

	setsid();
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	limit(RLIMIT_CORE, 0);
	limit(RLIMIT_FSIZE, FILE_MOST);
	limit(RLIMIT_CPU, (rlim_t)(run->timeout_ms / 1000 + 2));
	if (nothing >= 0 && dup2(nothing, 0) == 0 && dup2(out[1], 1) == 1 && dup2(said[1], 2) == 2 &&
	    dup2(failed[1], 3) == 3 && fcntl(3, F_SETFD, FD_CLOEXEC) == 0 && chdir(run->dir) == 0) {
		close_range(4, ~0U, 0);
		limit(RLIMIT_NOFILE, OPEN_MOST);
		execve(program, (char *const *)run->argv, env);
	}
	why = errno;
	(void)!write(3, &why, sizeof why);
	_exit(127);
}

static int start(struct ctx *ctx, const char *program, const struct command_run *run, struct child *c, struct err *err)
{
	char *env[] = {(char *)arena_printf(ctx->arena, "PATH=%s", search_path()).ptr, NULL};
	int out[2], said[2], failed[2];

	if (pipe2(out, O_CLOEXEC) != 0)
		return err_sys(err, errno, "cannot create a pipe");
	if (pipe2(said, O_CLOEXEC) != 0) {
		close(out[0]);
		close(out[1]);
		return err_sys(err, errno, "cannot create a pipe");
	}
	if (pipe2(failed, O_CLOEXEC) != 0) {
		close(out[0]);
		close(out[1]);
		close(said[0]);
		close(said[1]);
		return err_sys(err, errno, "cannot create a pipe");
	}
	*c = (struct child){.pid = fork(), .out = out[0], .said = said[0], .failed = failed[0]};
	if (c->pid == 0)
		become(program, run, env, out, said, failed);
	close(out[1]);
	close(said[1]);
	close(failed[1]);
	if (c->pid > 0)
		return 0;
	close(c->out);
	close(c->said);
	close(c->failed);
	return err_sys(err, errno, "cannot start a process");
}

/* Reads what is available. False at the end of the pipe. */
static bool drain(int fd, struct buf *buf)
{
	char bytes[16384];
	ssize_t n = read(fd, bytes, sizeof bytes);

	if (n > 0) {
		size_t room = buf->max - buf->len;

		buf_add(buf, str_first(str_n(bytes, (size_t)n), room));
		buf->overflow |= (size_t)n > room;
	}
	return n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN));
}

static int gather(struct ctx *ctx, struct child *c, const struct command_run *run, struct buf *out, struct buf *said,
		  struct err *err)
{
	int64_t end = clock_monotonic_ns() + run->timeout_ms * 1000000;
	struct pollfd fds[2] = {{.fd = c->out, .events = POLLIN}, {.fd = c->said, .events = POLLIN}};

	while (fds[0].fd >= 0 || fds[1].fd >= 0) {
		int r = ctx_check(ctx, err);

		if (r)
			return r;
		if (clock_monotonic_ns() >= end)
			return err_set(err, ERR_TIMEOUT, "it was killed after %lld seconds",
				       (long long)(run->timeout_ms / 1000));
		if (poll(fds, 2, SLICE_MS) < 0 && errno != EINTR)
			return err_sys(err, errno, "its output cannot be read");
		if (fds[0].revents && !drain(c->out, out))
			fds[0].fd = -1;
		if (fds[1].revents && !drain(c->said, said))
			fds[1].fd = -1;
		if (out->overflow)
			return err_set(err, ERR_TOO_LARGE, "it printed more than %zu bytes", run->output_max);
	}
	return 0;
}

/* Waits until the program itself has ended, at most until the time limit that gather() kept. */
static int reap(struct ctx *ctx, struct child *c, int64_t until_ns, int *ret_status, struct err *err)
{
	struct timespec pause = {0, 2000000};

	while (waitpid(c->pid, ret_status, WNOHANG) == 0) {
		int r = ctx_check(ctx, err);

		if (r == 0 && clock_monotonic_ns() >= until_ns)
			r = err_set(err, ERR_TIMEOUT, "it closed its output but did not exit; it was killed");
		if (r)
			return r;
		nanosleep(&pause, NULL);
	}
	c->pid = -c->pid; /* only its group is left */
	return 0;
}

static void finish(struct child *c)
{
	pid_t group = c->pid < 0 ? -c->pid : c->pid;

	kill(-group, SIGKILL);
	if (c->pid > 0) {
		kill(c->pid, SIGKILL);
		while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	close(c->out);
	close(c->said);
	close(c->failed);
}

static int verdict(const struct child *c, int status, struct str said, struct err *err)
{
	int why;

	if (read(c->failed, &why, sizeof why) == (ssize_t)sizeof why)
		return err_sys(err, why, "it could not be started");
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	if (WIFSIGNALED(status))
		return err_set(err, ERR_UNAVAILABLE, "it was killed by signal %d%s%.*s", WTERMSIG(status),
			       said.len ? ": " : "", STR_ARG(said));
	return err_set(err, ERR_UNAVAILABLE, "it exited with status %d%s%.*s", WEXITSTATUS(status),
		       said.len ? ": " : "", STR_ARG(said));
}

/* The text as one line that fits into a message. */
static struct str one_line(struct arena *arena, struct str text)
{
	char *out = (char *)arena_str(arena, utf8_first(str_trim(text), SAID_MAX - 60)).ptr;

	for (char *p = out; *p; p++)
		if ((unsigned char)*p < 32)
			*p = ' ';
	return str_of(out);
}

int command_run(struct ctx *ctx, const struct command_run *run, struct command_ran *ret, struct err *err)
{
	const char *program = find_program(ctx->arena, run->argv[0]);
	int64_t until = clock_monotonic_ns() + run->timeout_ms * 1000000;
	struct buf out, said;
	struct child c = {0};
	int r, status = 0;

	if (!program)
		return err_set(err, ERR_NOT_FOUND, "the program \"%.100s\" is not installed", run->argv[0]);
	r = start(ctx, program, run, &c, err);
	if (r)
		return err_prefix(err, "%.100s", run->argv[0]);
	buf_init(&out, ctx->arena, run->output_max);
	buf_init(&said, ctx->arena, SAID_MAX);
	r = gather(ctx, &c, run, &out, &said, err);
	if (r == 0)
		r = reap(ctx, &c, until, &status, err);
	ret->output = buf_str(&out);
	ret->said = one_line(ctx->arena, buf_str(&said));
	if (r == 0)
		r = verdict(&c, status, ret->said, err);
	finish(&c);
	return r ? err_prefix(err, "%.100s", run->argv[0]) : 0;
}
