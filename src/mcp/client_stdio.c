/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server that is a program: one message a line on its standard input and output. Its answers are told apart by their
 * ids, so a request that was given up leaves the server running; one that stays silent for a second request is ended.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/sigpipe.h"
#include "mcp/client_internal.h"

#define LOOK_MS  25
#define ENV_MAX  128
#define ARGS_MAX 128

/* --- the process --- */

static size_t fill_env(struct arena *arena, const struct jv *env, char **out)
{
	const char *path = getenv("PATH"), *home = getenv("HOME");
	size_t n = 0;

	out[n++] = (char *)arena_printf(arena, "PATH=%s", path ? path : "/usr/bin:/bin").ptr;
	if (home)
		out[n++] = (char *)arena_printf(arena, "HOME=%s", home).ptr;
	for (const struct jv_member *m = jv_first(env); m && n < ENV_MAX; m = m->next)
		out[n++] = (char *)arena_printf(arena, "%.*s=%.*s", STR_ARG(m->key), STR_ARG(jv_str_of(m->value))).ptr;
	out[n] = NULL;
	return n;
}

/* Runs in the child: only what is safe after fork(). */
__attribute__((noreturn)) static void become(char *const *argv, char *const *env, const char *cwd, const int *in,
					     const int *out, bool shows_errors)
{
	int errors = shows_errors ? 2 : open("/dev/null", O_WRONLY | O_CLOEXEC);

	setsid();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (dup2(in[0], 0) < 0 || dup2(out[1], 1) < 0 || dup2(errors, 2) < 0 || (cwd && chdir(cwd) != 0))
		_exit(127);
	execvpe(argv[0], argv, env);
	_exit(127);
}

int mcp_process_start(struct mcp_client *c, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	char *argv[ARGS_MAX + 2] = {(char *)arena_cstr(arena, jv_get_str(c->server, "command"))}, *env[ENV_MAX + 3];
	const char *cwd = jv_get_str(c->server, "cwd").len ? arena_cstr(arena, jv_get_str(c->server, "cwd")) : NULL;
	int in[2], out[2];
	size_t n = 1;

	for (const struct jv_member *m = jv_first(jv_get(c->server, "args")); m && n <= ARGS_MAX; m = m->next)
		argv[n++] = (char *)arena_cstr(arena, jv_str_of(m->value));
	fill_env(arena, jv_get(c->server, "env"), env);
	if (pipe2(in, O_CLOEXEC) != 0)
		return err_sys(err, errno, "the MCP server \"%.*s\" cannot be started", STR_ARG(c->name));
	if (pipe2(out, O_CLOEXEC) != 0) {
		close(in[0]);
		close(in[1]);
		return err_sys(err, errno, "the MCP server \"%.*s\" cannot be started", STR_ARG(c->name));
	}
	c->pid = fork();
	if (c->pid == 0)
		become(argv, env, cwd, in, out, c->shows_errors);
	close(in[0]);
	close(out[1]);
	c->to = in[1];
	c->is_silent = false;
	fcntl(c->to, F_SETFL, O_NONBLOCK);
	rpc_reader_init(&c->from, out[0], MCP_ANSWER_MAX);
	return c->pid > 0 ? 0 : err_sys(err, errno, "the MCP server \"%.*s\" cannot be started", STR_ARG(c->name));
}

/* True: it has ended within the time. */
static bool has_ended(pid_t pid, int64_t ms)
{
	int64_t end = clock_monotonic_ns() + ms * NS_PER_MS;

	do {
		struct timespec t = clock_timespec(5 * NS_PER_MS);

		if (waitpid(pid, NULL, WNOHANG) != 0)
			return true;
		nanosleep(&t, NULL);
	} while (clock_monotonic_ns() < end);
	return false;
}

void mcp_process_stop(struct mcp_client *c)
{
	if (c->to >= 0)
		close(c->to);
	c->to = -1;
	if (c->pid <= 0)
		return;
	if (!has_ended(c->pid, MCP_END_MS)) {
		kill(-c->pid, SIGTERM);
		if (!has_ended(c->pid, MCP_END_MS)) {
			kill(-c->pid, SIGKILL);
			waitpid(c->pid, NULL, 0);
		}
	}
	kill(-c->pid, SIGKILL); /* what it started and left behind */
	close(c->from.fd);
	rpc_reader_release(&c->from);
	c->pid = 0;
}

bool mcp_process_is_gone(struct mcp_client *c)
{
	siginfo_t info = {0};

	return c->pid > 0 && waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0;
}

/* --- messages --- */

static int ended(struct mcp_client *c, struct err *err)
{
	mcp_drop(c);
	return err_set(err, ERR_UNAVAILABLE,
		       "the MCP server \"%.*s\" ended; check its command in tools.json with 'stead servers show %.*s'",
		       STR_ARG(c->name), STR_ARG(c->name));
}

static int wait_for(struct mcp_client *c, struct ctx *ctx, int fd, short events, struct err *err)
{
	struct pollfd p = {.fd = fd, .events = events};
	int r;

	while ((r = ctx_check(ctx, err)) == 0)
		if (poll(&p, 1, LOOK_MS) != 0)
			return 0;
	return err_prefix(err, "the MCP server \"%.*s\"", STR_ARG(c->name));
}

int mcp_stdio_send(struct mcp_client *c, struct ctx *ctx, struct str line, struct err *err)
{
	bool begun = false;
	int r = 0;

	while (line.len && r == 0) {
		ssize_t n = sigpipe_write(c->to, line.ptr, line.len);

		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return ended(c, err);
		begun = begun || n > 0;
		line = str_from(line, n > 0 ? (size_t)n : 0);
		if (n < 0)
			r = wait_for(c, ctx, c->to, POLLOUT, err);
	}
	if (r && begun)
		mcp_drop(c); /* half a line cannot be taken back */
	return r;
}

/* The request was given up: the server need not continue. */
static void cancel(struct flight *f)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena, .deadline_ns = clock_monotonic_ns() + LOOK_MS * NS_PER_MS};
	struct str line = arena_printf(arena,
				       "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":"
				       "{\"requestId\":%lld}}\n",
				       (long long)f->id);
	struct err ignored;

	if (f->c->is_silent) {
		mcp_drop(f->c);
		return;
	}
	f->c->is_silent = true;
	if (!str_is(f->method, "initialize"))
		mcp_stdio_send(f->c, &ctx, line, &ignored);
}

static int read_answer(struct flight *f, struct err *err)
{
	struct mcp_client *c = f->c;

	while (!f->answer) {
		struct str line;
		enum rpc_got got = rpc_reader_next(&c->from, &line);
		int r = 0;

		if (got == RPC_END)
			return ended(c, err);
		if (got == RPC_NEED_MORE) {
			r = wait_for(c, f->ctx, c->from.fd, POLLIN, err);
			if (r) {
				cancel(f);
				return r;
			}
			rpc_reader_fill(&c->from);
			c->is_silent = false;
			continue;
		}
		if (got == RPC_LINE)
			r = mcp_take(f, line, mcp_stdio_send, err);
		if (got == RPC_TOO_LONG) /* it may have been the answer, which will not come again */
			r = err_set(err, ERR_TOO_LARGE, "the MCP server \"%.*s\" answered with more than %zu MiB",
				    STR_ARG(c->name), MCP_ANSWER_MAX / MIB);
		if (r)
			return r;
	}
	return 0;
}

int mcp_stdio_exchange(struct flight *f, struct str line, struct err *err)
{
	int r = mcp_stdio_send(f->c, f->ctx, line, err);

	f->was_sent = r == 0;
	return r || !f->id ? r : read_answer(f, err);
}

void mcp_stdio_look(struct mcp_client *c, struct ctx *ctx)
{
	struct flight f = {.c = c, .ctx = ctx};
	struct pollfd p = {.fd = c->from.fd, .events = POLLIN};
	struct err ignored;

	while (c->pid > 0) {
		struct str line;
		enum rpc_got got = rpc_reader_next(&c->from, &line);

		if (got == RPC_END) {
			mcp_drop(c);
			return;
		}
		if (got == RPC_LINE && mcp_take(&f, line, mcp_stdio_send, &ignored) != 0)
			return;
		if (got == RPC_NEED_MORE && poll(&p, 1, 0) <= 0)
			return;
		if (got == RPC_NEED_MORE)
			rpc_reader_fill(&c->from);
	}
}
