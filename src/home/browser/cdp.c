/* SPDX-License-Identifier: Apache-2.0 */
/* The pipe and not a WebSocket: no port that other programs of this machine could connect to, and no handshake. */
#include "home/browser/cdp.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/sigpipe.h"

#define LOOK_MS  50
#define CHUNK    (64 * KIB)
#define HIGH_FD  10 /* above those that the browser gets */
#define END_MS   2000
#define ARGS_MAX 32

struct cdp {
	struct cdp_opts opts;
	pid_t pid;
	int to, from;
	struct buf in; /* what came and was not taken */
	int64_t last_id;
};

/* --- start and end --- */

static bool make_pipe(int *ret_read, int *ret_write)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) != 0)
		return false;
	*ret_read = fcntl(ends[0], F_DUPFD_CLOEXEC, HIGH_FD);
	*ret_write = fcntl(ends[1], F_DUPFD_CLOEXEC, HIGH_FD);
	close(ends[0]);
	close(ends[1]);
	return *ret_read >= 0 && *ret_write >= 0;
}

static int spawn_browser(struct cdp *c, struct arena *arena, int in, int out)
{
	const char *const argv[ARGS_MAX] = {
		c->opts.program, "--headless=new", "--remote-debugging-pipe", "--no-first-run", "--disable-gpu",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-quic",
		"--disable-dev-shm-usage", "--disable-breakpad", "--mute-audio", "--no-default-browser-check",
		"--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
		/* loopback goes through the proxy as well, and no name is resolved here */
		"--proxy-bypass-list=<-loopback>", "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
		arena_printf(arena, "--proxy-server=http://127.0.0.1:%u", c->opts.proxy_port).ptr,
		arena_printf(arena, "--user-data-dir=%s/profile", c->opts.dir).ptr, "--window-size=1280,900",
		/* its own sandbox does not work for root */
		geteuid() == 0 ? "--no-sandbox" : "about:blank", geteuid() == 0 ? "about:blank" : NULL};
	const char *path = getenv("PATH");
	const char *const env[] = {arena_printf(arena, "PATH=%s", path ? path : "/usr/bin:/bin").ptr,
				   arena_printf(arena, "HOME=%s", c->opts.dir).ptr, "LANG=C.UTF-8", NULL};
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t none;
	int sys;

	sigemptyset(&none);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_adddup2(&files, in, 3);
	posix_spawn_file_actions_adddup2(&files, out, 4);
	sys = posix_spawn(&c->pid, c->opts.program, &files, &attr, (char *const *)argv, (char *const *)env);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attr);
	return sys;
}

int cdp_open(struct ctx *ctx, const struct cdp_opts *opts, struct cdp **ret, struct err *err)
{
	struct cdp *c = xcalloc(1, sizeof(*c));
	int in = -1, out = -1, sys = 0;

	c->opts = *opts;
	c->to = c->from = -1;
	buf_init(&c->in, NULL, BROWSER_MESSAGE_MAX);
	if (!make_pipe(&in, &c->to) || !make_pipe(&c->from, &out))
		sys = errno;
	if (!sys)
		sys = spawn_browser(c, ctx->arena, in, out);
	if (in >= 0)
		close(in);
	if (out >= 0)
		close(out);
	if (sys) {
		cdp_close(c);
		return err_sys(err, sys, "\"%s\" cannot be started", opts->program);
	}
	*ret = c;
	return 0;
}

void cdp_close(struct cdp *c)
{
	int64_t until = clock_monotonic_ns() + END_MS * NS_PER_MS;

	if (!c)
		return;
	if (c->to >= 0)
		close(c->to); /* it ends by itself when it reads that */
	if (c->from >= 0)
		close(c->from);
	while (c->pid > 0 && waitpid(c->pid, NULL, WNOHANG) == 0) {
		if (clock_monotonic_ns() > until)
			kill(-c->pid, SIGKILL);
		poll(NULL, 0, LOOK_MS / 5);
	}
	buf_release(&c->in);
	free(c);
}

/* --- messages --- */

static bool send_all(struct cdp *c, struct str bytes)
{
	while (bytes.len) {
		ssize_t n = sigpipe_write(c->to, bytes.ptr, bytes.len);

		if (n <= 0)
			return false;
		bytes = str_from(bytes, (size_t)n);
	}
	return true;
}

static bool send_command(struct cdp *c, struct arena *arena, struct str session, const char *method,
			 const struct jv *params)
{
	struct jv *message = jv_object(arena);
	struct buf text;

	jv_set_int(arena, message, "id", ++c->last_id);
	jv_set_str(arena, message, "method", str_of(method));
	if (params)
		jv_set(arena, message, "params", (struct jv *)params);
	if (session.len)
		jv_set_str(arena, message, "sessionId", session);
	buf_init(&text, arena, BROWSER_MESSAGE_MAX);
	jv_write(&text, message);
	buf_char(&text, '\0');
	return send_all(c, buf_str(&text));
}

void cdp_post(struct cdp *c, struct arena *arena, struct str session, const char *method, const struct jv *params)
{
	send_command(c, arena, session, method, params);
}

static int ended(struct err *err)
{
	return err_set(err, ERR_UNAVAILABLE, "the browser has ended; navigate again to start another one");
}

/* The next message, or NULL when none came in time. */
static int next_message(struct cdp *c, struct ctx *ctx, int64_t until_ns, struct jv **ret, struct err *err)
{
	*ret = NULL;
	for (;;) {
		const char *end = c->in.len ? memchr(c->in.ptr, '\0', c->in.len) : NULL;
		char *room;
		ssize_t n;
		int r;

		if (end) {
			size_t len = (size_t)(end - c->in.ptr);

			r = jv_parse(ctx->arena, str_n(c->in.ptr, len), ret, err);
			memmove(c->in.ptr, end + 1, c->in.len - len - 1);
			c->in.len -= len + 1;
			return r;
		}
		r = ctx_check(ctx, err);
		if (r || clock_monotonic_ns() >= until_ns)
			return r;
		if (poll(&(struct pollfd){.fd = c->from, .events = POLLIN}, 1, LOOK_MS) <= 0)
			continue;
		room = buf_reserve(&c->in, CHUNK);
		n = room ? read(c->from, room, CHUNK) : 0;
		if (n <= 0)
			return ended(err);
		c->in.len += (size_t)n;
	}
}

static void give_event(struct cdp *c, struct arena *arena, const struct jv *message)
{
	if (jv_get_str(message, "method").len)
		c->opts.event(c->opts.arg, arena, jv_get_str(message, "method"), message);
}

int cdp_call(struct cdp *c, struct ctx *ctx, struct str session, const char *method, const struct jv *params,
	     struct jv **ret, struct err *err)
{
	int64_t id;

	if (!send_command(c, ctx->arena, session, method, params))
		return ended(err);
	id = c->last_id;
	for (;;) {
		const struct jv *problem;
		struct jv *message;
		int r = next_message(c, ctx, INT64_MAX, &message, err);

		if (r)
			return r;
		if (jv_get_int(message, "id", 0) != id) {
			give_event(c, ctx->arena, message);
			continue;
		}
		problem = jv_get(message, "error");
		if (problem)
			return err_set(err, ERR_INVALID, "the browser refused %s: %.*s", method,
				       STR_ARG(utf8_first(jv_get_str(problem, "message"), 200)));
		if (ret)
			*ret = (struct jv *)jv_get(message, "result");
		return 0;
	}
}

int cdp_wait(struct cdp *c, struct ctx *ctx, bool (*until)(void *arg), int64_t until_ns, struct err *err)
{
	while (!until(c->opts.arg) && clock_monotonic_ns() < until_ns) {
		struct jv *message;
		int r = next_message(c, ctx, until_ns, &message, err);

		if (r)
			return r;
		if (message)
			give_event(c, ctx->arena, message);
	}
	return 0;
}
