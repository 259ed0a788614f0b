/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that waits in its sandbox for calls, so that a call does not pay for its start. The sandbox is made once,
 * without files. For each call the guardian mounts the files in it, as they are then, over a new upper layer; the
 * program gets the descriptors of the call, starts a process for it with fork(), and tells how that ended. Afterwards
 * the guardian ends what is left, and what the call changed comes back as from any other run.
 *
 * The call's process has the rights of the program and no more: the same user, namespaces, limits, Landlock rules and
 * filter. It cannot write to the program's memory (Landlock gives it no write to /proc, the filter no ptrace) nor open
 * its socket (sockets cannot be opened through /proc). So there are no workers without Landlock.
 *
 * Rejected: a sandbox for each call that is made in advance. It costs an interpreter and its imports for every call,
 * and a second call that follows at once waits for all of it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "sandbox/run_internal.h"

#define CLEAR_MS    3000
#define OPEN_MS     10000
#define ENTRIES_MAX 100 /* of a directory, that are removed after a call */

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
static int wait_view(struct run *r, struct sandbox_worker *w, struct err *err)
{
	struct pollfd fd = {.fd = w->child.control, .events = POLLIN};
	struct note note = {0};

	if (poll(&fd, 1, OPEN_MS) != 1 || run_receive(w->child.control, &note, w->dirs) != (ssize_t)sizeof note)
		return err_set(err, ERR_UNAVAILABLE, "the sandbox of a worker ended unexpectedly");
	if (note.kind == NOTE_FAILED)
		return err_sys(err, note.sys, "the sandbox of a worker could not %s", step_name((enum step)note.value));
	if (note.kind != NOTE_FILES || w->dirs[2] < 0 || !cgroup_add(&w->group, w->child.pid))
		return err_set(err, ERR_UNAVAILABLE, "a worker cannot be put under its limits");
	w->keeps = r->plan.keeps;
	return 0;
}

static int start(struct run *r, struct sandbox_worker *w, struct err *err)
{
	struct plan *p = &r->plan;
	int code;

	if (!give_input(r, r->job->input) || !give_streams(r, w))
		return err_sys(err, errno, "cannot create the streams of a worker");
	cgroup_make(&w->group, r->limits.memory, r->limits.processes + 3);
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
	*w = (struct sandbox_worker){.child = {-1, -1}, .talk = -1, .dirs = {-1, -1, -1}, .kept = {.lock = -1}};
	for (; job->paths && job->paths[w->path_count] && w->path_count < SANDBOX_PATHS_MAX; w->path_count++)
		w->paths[w->path_count] = strdup(job->paths[w->path_count]);
	r.opens = true;
	code = run_prepare(&r, SANDBOX_NAMESPACES, err);
	if (code == 0)
		code = start(&r, w, err);
	w->kept = r.kept;
	r.kept = (struct kept){.lock = -1};
	if (code == 0)
		code = wait_view(&r, w, err);
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
	for (size_t i = 0; i < COUNT(w->dirs); i++)
		drop(&w->dirs[i]);
	for (size_t i = 0; i < w->path_count; i++)
		free(w->paths[i]);
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

/* A packet with descriptors. */
static bool send_with(int to, const void *packet, size_t size, const int *fds, size_t count)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(4 * sizeof(int))];
	} data = {{0}};
	struct iovec iov = {(void *)(uintptr_t)packet, size};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	if (count) {
		struct cmsghdr *c;

		msg.msg_control = data.room;
		msg.msg_controllen = CMSG_SPACE(count * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		*c = (struct cmsghdr){
			.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(count * sizeof(int))};
		memcpy(CMSG_DATA(c), fds, count * sizeof(int));
	}
	return sendmsg(to, &msg, MSG_NOSIGNAL) == (ssize_t)size;
}

int worker_call(struct run *r, struct err *err)
{
	char packet[2] = {SAY_CALL, (char)r->plan.fill};

	if (!send_with(r->child.control, packet, sizeof packet, &r->plan.tree, r->plan.tree >= 0))
		return err_sys(err, errno, "the worker has ended");
	drop(&r->plan.tree);
	return 0;
}

int worker_begin(struct run *r, struct err *err)
{
	struct plan *p = &r->plan;
	int fds[4] = {p->in, p->out, p->said, p->answer};

	r->has_begun = true;
	if (!send_with(r->worker->talk, "c", 1, fds, p->answer >= 0 ? 4 : 3))
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
	       note.value && !cgroup_was_out_of_memory(&w->group);
}

/* A further directory that it sees (2), or one on the way to such a one (1). */
static int is_shown(const struct sandbox_worker *w, const char *path)
{
	size_t len = strlen(path);

	for (size_t i = 0; i < w->path_count; i++)
		if (strncmp(w->paths[i], path, len) == 0 && (w->paths[i][len] == 0 || w->paths[i][len] == '/'))
			return w->paths[i][len] ? 1 : 2;
	return 0;
}

/* True when the directory has nothing of the call now. Directories of the call are left: what is in them may be deep.
 */
static bool tidy(const struct sandbox_worker *w, int at, const char *where, bool may_remove)
{
	int fd = openat(at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), count = 0;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	char path[512];
	struct dirent *e;
	bool ok = dir != NULL;

	if (!dir && fd >= 0)
		close(fd);
	while (ok && (e = readdir(dir))) {
		int shown, len = snprintf(path, sizeof path, "%s/%s", where, e->d_name);

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		shown = len < (int)sizeof path ? is_shown(w, path) : 0;
		if (shown == 1) {
			FD_SCOPE int below = openat(at, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

			ok = below >= 0 && tidy(w, below, path, may_remove);
		} else if (shown == 0) {
			ok = may_remove && ++count <= ENTRIES_MAX && unlinkat(at, e->d_name, 0) == 0;
		}
	}
	if (dir)
		closedir(dir);
	return ok;
}

void worker_tidy(struct sandbox_worker *w)
{
	static const char *const names[] = {"/tmp", "/dev/shm", "/home"};

	for (size_t i = 0; i < COUNT(w->dirs) && !w->is_spent; i++) {
		struct stat st;
		bool is_upper = w->keeps && i == 2;

		if (!tidy(w, w->dirs[i], names[i], !is_upper) || fstat(w->dirs[i], &st) != 0 ||
		    (!is_upper && (st.st_mode & 07777) != 01777))
			worker_end(w);
	}
}
