/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that waits in its sandbox for calls, so that a call does not pay for its start. The sandbox is made once,
 * without files. For each call the guardian mounts the files in it, as they are then, over a new upper layer; the
 * program gets the descriptors of the call, starts a process for it with fork(), and tells how that ended. Afterwards
 * the guardian ends what is left, and what the call changed comes back as from any other run.
 *
 * The call's process has the rights of the program and no more: the same user, namespaces, limits, Landlock rules and
 * filter. It cannot write to the program's memory (/proc is read-only, the filter refuses ptrace) nor open its socket
 * (sockets cannot be opened through /proc). The program must hold nothing else that can be opened and written to.
 *
 * Rejected: a sandbox for each call that is made in advance. It costs an interpreter and its imports for every call,
 * and a second call that follows at once waits for all of it.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "sandbox/run_internal.h"

#define CLEAR_MS 3000
#define OPEN_MS  10000

static void drop(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* --- opening --- */

static bool give_input(struct run *r, struct str input)
{
	int fd = memfd_create("worker", MFD_CLOEXEC);
	size_t done = 0;

	while (fd >= 0 && done < input.len) {
		ssize_t n = write(fd, input.ptr + done, input.len - done);

		if (n <= 0)
			break;
		done += (size_t)n;
	}
	if (fd >= 0 && lseek(fd, 0, SEEK_SET) == 0)
		r->plan.in = fcntl(fd, F_DUPFD_CLOEXEC, 10);
	drop(&fd);
	return r->plan.in >= 0 && done == input.len;
}

/* What it prints is nobody's; its calls have pipes of their own. */
static bool give_streams(struct run *r, struct sandbox_worker *w)
{
	int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC), ends[2] = {-1, -1};

	if (nothing >= 0 && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0) {
		r->plan.out = fcntl(nothing, F_DUPFD_CLOEXEC, 10);
		r->plan.said = fcntl(nothing, F_DUPFD_CLOEXEC, 10);
		r->plan.answer = fcntl(ends[1], F_DUPFD_CLOEXEC, 10);
		w->talk = ends[0];
	}
	drop(&nothing);
	drop(&ends[1]);
	return r->plan.out >= 0 && r->plan.said >= 0 && r->plan.answer >= 0;
}

/* Until the view is there. The program is started without asking again. */
static int wait_view(struct sandbox_worker *w, struct err *err)
{
	struct pollfd fd = {.fd = w->child.control, .events = POLLIN};
	struct note note = {0};
	int fds[3];

	if (poll(&fd, 1, OPEN_MS) != 1 || run_receive(w->child.control, &note, fds) != (ssize_t)sizeof note)
		return err_set(err, ERR_UNAVAILABLE, "the sandbox of a worker ended unexpectedly");
	if (note.kind == NOTE_FAILED)
		return err_sys(err, note.sys, "the sandbox of a worker could not %s", step_name((enum step)note.value));
	if (note.kind != NOTE_FILES || !cgroup_add(&w->group, w->child.pid))
		return err_set(err, ERR_UNAVAILABLE, "a worker cannot be put under its limits");
	return 0;
}

static int start(struct run *r, struct sandbox_worker *w, struct err *err)
{
	struct plan *p = &r->plan;
	int code;

	if (!give_input(r, r->job->input) || !give_streams(r, w))
		return err_sys(err, errno, "cannot create the streams of a worker");
	cgroup_make(&w->group, r->limits.memory, 0);
	code = cgroup_open(&w->group, p->groups)
		       ? plan_spawn(p, &w->child, err)
		       : err_sys(err, errno, "the processes of a worker cannot be put under their limits");
	drop(&p->groups[0]);
	drop(&p->groups[1]);
	w->dev = p->dir ? p->dev : 0;
	w->ino = p->dir ? p->ino : 0;
	w->uid = p->uid;
	return code;
}

static int check(const struct sandbox_job *job, struct err *err)
{
	enum sandbox_tier tier;
	int code = sandbox_tier_choose(job->tier, &tier, err);

	if (code)
		return code;
	if (tier != SANDBOX_NAMESPACES || !tier_has_overlay() || landlock_abi() == 0)
		return err_set(err, ERR_UNSUPPORTED, "workers need the tier namespaces, an overlay and Landlock");
	if ((job->net && job->net->host_count) || (job->keep && !job->keep->read_only))
		return err_set(err, ERR_UNSUPPORTED,
			       "a program with a network, or whose home is kept, cannot wait for calls");
	return 0;
}

int sandbox_worker_open(struct ctx *ctx, const struct sandbox_job *job, struct sandbox_worker **ret, struct err *err)
{
	struct run r = RUN_NEW(ctx, job);
	struct sandbox_worker *w;
	int code = check(job, err);

	if (code)
		return code;
	w = xcalloc(1, sizeof(*w));
	*w = (struct sandbox_worker){.child = {-1, -1}, .talk = -1, .kept = {.lock = -1}};
	r.opens = true;
	code = run_prepare(&r, SANDBOX_NAMESPACES, err);
	if (code == 0)
		code = start(&r, w, err);
	w->kept = r.kept;
	r.kept = (struct kept){.lock = -1};
	if (code == 0)
		code = wait_view(w, err);
	run_release(&r);
	if (code)
		sandbox_worker_close(w);
	else
		*ret = w;
	return code;
}

bool sandbox_worker_is_spent(const struct sandbox_worker *w)
{
	return w->is_spent;
}

void worker_end(struct sandbox_worker *w)
{
	drop(&w->child.control);
	drop(&w->talk);
	if (w->child.pid > 0) {
		kill(w->child.pid, SIGKILL);
		while (waitpid(w->child.pid, NULL, __WALL) < 0 && errno == EINTR)
			;
		w->child.pid = -1;
	}
	w->is_spent = true;
}

void sandbox_worker_close(struct sandbox_worker *w)
{
	if (!w)
		return;
	worker_end(w);
	cgroup_remove(&w->group);
	kept_release(&w->kept);
	free(w);
}

/* --- a call --- */

bool worker_fits(const struct sandbox_worker *w, const struct run *r)
{
	const struct plan *p = &r->plan;

	return p->uid == w->uid &&
	       (!p->has_files || p->fill || p->tree >= 0 || (p->dir && p->dev == w->dev && p->ino == w->ino));
}

int worker_call(struct run *r, struct err *err)
{
	char packet[2] = {SAY_CALL, (char)r->plan.fill};

	if (!run_send(r->child.control, packet, sizeof packet, &r->plan.tree, r->plan.tree >= 0))
		return err_sys(err, errno, "the worker has ended");
	drop(&r->plan.tree);
	return 0;
}

int worker_begin(struct run *r, struct err *err)
{
	struct plan *p = &r->plan;
	int fds[4] = {p->in, p->out, p->said, p->answer};

	r->has_begun = true;
	if (!run_send(r->worker->talk, "c", 1, fds, p->answer >= 0 ? 4 : 3))
		return err_sys(err, errno, "the worker has ended");
	drop(&p->in);
	drop(&p->out);
	drop(&p->said);
	drop(&p->answer);
	return 0;
}

int worker_hear(struct run *r, struct err *err)
{
	struct sandbox_worker *w = r->worker;
	char text[80];
	ssize_t n;
	char *at = text + 1;

	while ((n = recv(w->talk, text, sizeof text - 1, 0)) < 0 && errno == EINTR)
		;
	text[n > 0 ? n : 0] = 0;
	if (text[0] == 'r' && !w->is_ready) {
		w->is_ready = true;
		return worker_call(r, err);
	}
	if (text[0] == 'x' && r->has_begun) {
		r->exit = (struct note){.kind = NOTE_EXITED, .value = (int)strtol(at, &at, 10)};
		r->exit.cpu_us = strtoll(at, &at, 10);
		r->exit.memory_peak = strtoull(at, &at, 10);
	} else {
		worker_end(w); /* it has ended, or says what makes no sense */
		if (!r->has_begun)
			return err_set(err, ERR_UNAVAILABLE, "the worker has ended");
		r->child = (struct spawned){-1, -1};
		r->exit = (struct note){.kind = NOTE_EXITED, .value = SIGKILL};
		r->is_over = true;
	}
	r->exited_ns = clock_monotonic_ns();
	return 0;
}

bool worker_clear(struct sandbox_worker *w)
{
	struct pollfd fd = {.fd = w->child.control, .events = POLLIN};
	struct note note = {0};
	int fds[3];

	return send(w->child.control, &(char){SAY_CLEAR}, 1, MSG_NOSIGNAL) == 1 && poll(&fd, 1, CLEAR_MS) == 1 &&
	       run_receive(w->child.control, &note, fds) == (ssize_t)sizeof note && note.kind == NOTE_CLEARED &&
	       note.value && !cgroup_was_out_of_memory(&w->group) && send(w->talk, "n", 1, MSG_NOSIGNAL) == 1;
}
