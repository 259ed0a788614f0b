/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes of a run. The first one made is the guardian: it has no rights that the command does not have, starts
 * the command, reaps what becomes an orphan, tells the parent how the command ended, and ends everything when the
 * control socket closes, which happens too when the parent is killed. With a process namespace of its own it is
 * process 1 there, and its end is the end of all others, whatever they did to leave their session or group. Elsewhere
 * it adopts what its descendants leave, and kills until nothing is left.
 *
 * A signal at the parent's death (PR_SET_PDEATHSIG) was rejected: it follows the thread that made the process, and
 * threads of a pool come and go.
 *
 * A user namespace that maps to user 0 of the host is not unprivileged: files of /proc/sys look at that id. So root
 * maps the id of another user, which only the parent can do, and the guardian becomes that user before it does anything
 * else.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "sandbox/sandbox_internal.h"

/* The network follows in view.c. */
#define NAMESPACES  (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP)
#define KILL_ROUNDS 1000

const char *step_name(enum step step)
{
	static const char *const names[STEPS] = {
		[STEP_USER] = "become another user",
		[STEP_NAMESPACES] = "make namespaces",
		[STEP_IDS] = "map user ids",
		[STEP_ROOT] = "make a root directory",
		[STEP_PROGRAMS] = "show the programs of the machine",
		[STEP_PATHS] = "show a further directory (sandbox.paths)",
		[STEP_DEVICES] = "make /dev, /proc and /tmp",
		[STEP_NETWORK] = "open a network",
		[STEP_FILES] = "show the files",
		[STEP_KEPT] = "show what earlier commands left behind",
		[STEP_OVERLAY] = "mount an overlay",
		[STEP_PIVOT] = "change the root directory",
		[STEP_FORK] = "start a process",
		[STEP_CWD] = "enter the working directory",
		[STEP_LIMITS] = "set limits",
		[STEP_PRIVILEGES] = "give up privileges",
		[STEP_LANDLOCK] = "apply Landlock",
		[STEP_SECCOMP] = "filter system calls",
	};

	return (unsigned)step < STEPS ? names[step] : "run";
}

/* --- the child's side of the socket --- */

void plan_note(const struct plan *plan, const struct note *note)
{
	(void)!send(plan->control, note, sizeof *note, MSG_NOSIGNAL);
}

void plan_fail(const struct plan *plan, enum step step)
{
	plan_note(plan, &(struct note){.kind = NOTE_FAILED, .value = (int)step, .sys = errno});
	_exit(125);
}

void plan_send(const struct plan *plan, const struct note *note, const int *given, size_t given_count)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(3 * sizeof(int))];
	} control = {{0}};
	struct iovec iov = {(void *)(uintptr_t)note, sizeof *note};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	size_t count = 0;
	int fds[3];

	for (size_t i = 0; i < given_count && count < COUNT(fds); i++)
		if (given[i] >= 0)
			fds[count++] = given[i];
	if (count) {
		struct cmsghdr *c;

		msg.msg_control = control.room;
		msg.msg_controllen = CMSG_SPACE(count * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		*c = (struct cmsghdr){
			.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(count * sizeof(int))};
		memcpy(CMSG_DATA(c), fds, count * sizeof(int));
	}
	if (sendmsg(plan->control, &msg, MSG_NOSIGNAL) < 0)
		_exit(125);
}

void plan_send_files(const struct plan *plan, int lower, int upper, int home)
{
	plan_send(plan, &(struct note){.kind = NOTE_FILES, .value = lower >= 0}, (const int[]){upper, lower, home}, 3);
}

static void enter_groups(const struct plan *plan, const int *groups, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (groups[i] >= 0 && write(groups[i], "0", 1) != 1)
			plan_fail(plan, STEP_LIMITS);
}

ssize_t plan_receive(int control, char *packet, size_t size, int fds[PLAN_FDS_MAX], size_t *ret_count)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(PLAN_FDS_MAX * sizeof(int))];
	} data;
	struct iovec iov = {packet, size};
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = data.room, .msg_controllen = sizeof data.room};
	struct cmsghdr *c;
	ssize_t n;

	while ((n = recvmsg(control, &msg, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR)
		;
	*ret_count = 0;
	c = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL;
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
		*ret_count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(fds, CMSG_DATA(c), *ret_count * sizeof(int));
	}
	return n;
}

size_t plan_hear(const struct plan *plan, char *packet, size_t size)
{
	int groups[PLAN_FDS_MAX];
	size_t count;
	ssize_t n = plan_receive(plan->control, packet, size, groups, &count);

	if (n <= 0)
		_exit(125);
	enter_groups(plan, groups, count);
	for (size_t i = 0; i < count; i++)
		close(groups[i]);
	return (size_t)n;
}

/* --- the machine's /proc --- */

static int host_proc = -1;

int plan_proc(void)
{
	return host_proc;
}

/* --- the command --- */

/* As descriptor 3; the control socket has a higher number. */
static bool give_answer_pipe(const struct plan *plan)
{
	return plan->answer == 3 ? fcntl(3, F_SETFD, 0) == 0 : dup2(plan->answer, 3) == 3;
}

/* When the memory of all is used up, the kernel ends the command and not the guardian, which reports it. The command
   marks itself, in the machine's /proc, because its own is read-only. It does so while the guardian waits: at any other
   time the kernel would look through all processes of the machine for those that share the memory. */
static void become_first_to_go(void)
{
	int fd = openat(host_proc, "self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd >= 0) {
		(void)!write(fd, "1000", 4);
		close(fd);
	}
}

__attribute__((noreturn)) static void become_command(const struct plan *plan)
{
	bool is_denied = false;
	sigset_t none;

	become_first_to_go();
	if (plan->is_worker)
		view_enter(plan);
	setsid();
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (dup2(plan->in, 0) < 0 || dup2(plan->out, 1) < 0 || dup2(plan->said, 2) < 0 ||
	    (plan->tty && ioctl(0, TIOCSCTTY, 0) != 0) || close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) != 0 ||
	    (plan->answer >= 0 && !give_answer_pipe(plan)) ||
	    (plan->passed[0] >= 0 && (dup2(plan->passed[0], 8) != 8 || dup2(plan->passed[1], 9) != 9)))
		plan_fail(plan, STEP_FORK);
	umask(022);
	if (chdir(plan->cwd) != 0)
		plan_fail(plan, STEP_CWD);
	confine(plan);
	if (!plan->programs)
		_exit(0);
	for (size_t i = 0; plan->programs[i]; i++) {
		execve(plan->programs[i], (char *const *)plan->argv, (char *const *)plan->env);
		is_denied |= errno == EACCES; /* as in a shell, another directory of PATH may have it */
		if (errno != ENOENT && errno != ENOTDIR && errno != EACCES)
			break;
	}
	if (is_denied && (errno == ENOENT || errno == ENOTDIR))
		errno = EACCES;
	plan_note(plan, &(struct note){.kind = NOTE_EXEC_FAILED, .sys = errno});
	_exit(errno == ENOENT || errno == ENOTDIR ? 127 : 126);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

/* The runtime of a sanitizer knows no stacks but those that it has seen. */
static pid_t start_command(const struct plan *plan)
{
	pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

	if (pid == 0)
		become_command(plan);
	return pid;
}

#else

static int command_begin(void *plan)
{
	become_command(plan);
}

/* The command shares the guardian's memory until it executes its program: nothing has to be copied for it. The guardian
   waits until then, so the command has a stack of its own and all else to itself. */
static pid_t start_command(const struct plan *plan)
{
	static _Alignas(16) char stack[64 * 1024];

	return clone(command_begin, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, (void *)(uintptr_t)plan);
}

#endif

/* --- the guardian --- */

/* Processes that this one made or adopted. Returns how many of them will be there to be reaped. */
static size_t kill_children(void)
{
	char path[64], text[32 * 1024];
	size_t count = 0;
	ssize_t n;
	int fd;

	snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)syscall(SYS_gettid));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	if (fd >= 0)
		close(fd);
	while (n > 0 && text[n - 1] != ' ') /* not a number that the end of the buffer has cut */
		n--;
	text[n > 0 ? n : 0] = 0;
	for (char *p = text, *end; *p; p = end) {
		long pid = strtol(p, &end, 10);

		if (end == p)
			break;
		count += pid > 1 && kill((pid_t)pid, SIGKILL) == 0;
	}
	return count;
}

__attribute__((noreturn)) static void end_all(const struct plan *plan, pid_t command)
{
	if (plan->tier == SANDBOX_NAMESPACES)
		_exit(0); /* the kernel kills what is left in the namespace */
	if (command > 0)
		kill(-command, SIGKILL);
	for (int round = 0; round < KILL_ROUNDS; round++) {
		size_t killed = kill_children();
		pid_t gone;

		while ((gone = waitpid(-1, NULL, killed ? 0 : WNOHANG)) > 0)
			killed -= killed > 0;
		if (gone < 0 && errno == ECHILD)
			break;
	}
	_exit(0);
}

/* Reaps what has ended; reports the command. When nothing else is left in its namespace, that ends too. */
static void reap(const struct plan *plan, pid_t command)
{
	struct note note = {.kind = NOTE_EXITED};
	struct rusage used;
	bool has_ended = false;
	int status;
	pid_t pid;

	while ((pid = wait4(-1, &status, WNOHANG, &used)) > 0)
		if (pid == command) {
			getrusage(RUSAGE_CHILDREN, &used);
			note.value = status;
			note.cpu_us = (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * INT64_C(1000000) +
				      used.ru_utime.tv_usec + used.ru_stime.tv_usec;
			note.memory_peak = (uint64_t)used.ru_maxrss * 1024;
			has_ended = true;
		}
	if (!has_ended)
		return;
	note.is_alone = plan->tier == SANDBOX_NAMESPACES && !plan->is_worker && pid < 0 && errno == ECHILD;
	plan_note(plan, &note);
	if (note.is_alone)
		_exit(0);
}

__attribute__((noreturn)) static void guard(const struct plan *plan)
{
	struct pollfd fds[2] = {{.fd = plan->control, .events = POLLIN}, {.events = POLLIN}};
	struct signalfd_siginfo info;
	sigset_t child;
	pid_t command;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	fds[1].fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
	command = fds[1].fd < 0 ? -1 : start_command(plan);
	if (command < 0)
		plan_fail(plan, STEP_FORK);
	if (host_proc >= 0)
		close(host_proc);
	/* a command must be able to neither look into this process nor use what it holds */
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	/* that of a worker continues mounting; its capabilities are those of a namespace with one user in it */
	if (plan->tier != SANDBOX_LOCAL && !plan->is_worker)
		(void)drop_capabilities();
	close(plan->in);
	close(plan->out);
	close(plan->said);
	if (plan->answer >= 0)
		close(plan->answer);
	if (plan->passed[1] >= 0)
		close(plan->passed[1]);
	for (;;) {
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			end_all(plan, command);
		if (fds[0].revents && !(plan->is_worker && worker_serve(plan, command)))
			end_all(plan, command);
		while (read(fds[1].fd, &info, sizeof info) > 0)
			;
		reap(plan, command);
	}
}

/* Closes what the parent had open: the command must get none of it, and a pipe of another run must not be held. */
static void close_others(const struct plan *plan)
{
	int keep[] = {plan->in,     plan->out,       plan->said,      plan->control,   plan->tree,
		      plan->answer, plan->passed[0], plan->passed[1], plan->kept_tree, plan->net};
	int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
	unsigned from = 3;

	for (int fd = 0; fd < 3; fd++)
		if (nothing < 0 || (nothing != fd && dup2(nothing, fd) < 0))
			plan_fail(plan, STEP_FORK);

	for (;;) {
		unsigned next = ~0U;

		for (size_t i = 0; i < COUNT(keep); i++)
			if (keep[i] >= (int)from && (unsigned)keep[i] < next)
				next = (unsigned)keep[i];
		if (next == ~0U)
			break;
		if (next > from)
			close_range(from, next - 1, 0);
		from = next + 1;
	}
	close_range(from, ~0U, 0);
}

/* Capabilities in a user namespace that does not know root are not lost by this. */
static void become_user(const struct plan *plan, uid_t uid, gid_t gid)
{
	if (syscall(SYS_setgroups, 0, NULL) != 0 || syscall(SYS_setresgid, gid, gid, gid) != 0 ||
	    syscall(SYS_setresuid, uid, uid, uid) != 0 || prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) != 0)
		plan_fail(plan, STEP_USER);
}

/* What the command inherits whatever it is: a spare has it before there is a command. All signals are blocked. */
static void settle(const struct plan *plan)
{
	for (int sig = 1; sig < 65; sig++)
		signal(sig, SIG_DFL);
	if (plan->tier == SANDBOX_NAMESPACES || plan->tier == SANDBOX_LANDLOCK)
		bound_capabilities();
	if (plan->tier == SANDBOX_NAMESPACES) {
		(void)sethostname("sandbox", 7);
		(void)syscall(SYS_keyctl, 1 /* KEYCTL_JOIN_SESSION_KEYRING */, NULL, 0, 0, 0);
	}
}

__attribute__((noreturn)) static void guardian(struct plan *plan)
{
	char said;

	enter_groups(plan, plan->groups, COUNT(plan->groups));
	close_others(plan);
	host_proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (plan->tier == SANDBOX_NAMESPACES) {
		view_begin_network(plan);
		if (plan->becomes && plan_hear(plan, &said, 1) && said == SAY_MAPPED)
			become_user(plan, SANDBOX_UID, SANDBOX_UID);
		settle(plan);
		view_build(plan);
	} else {
		if (plan->becomes)
			become_user(plan, plan->uid, plan->gid);
		settle(plan);
		if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0)
			plan_fail(plan, STEP_FORK);
		plan_send_files(plan, -1, -1, -1);
		while (plan_hear(plan, &said, 1) && said != SAY_GO)
			;
	}
	guard(plan);
}

/* --- the parent --- */

static bool write_map(pid_t pid, const char *file, const char *map)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
	{
		FD_SCOPE int fd = open(path, O_WRONLY | O_CLOEXEC);

		return fd >= 0 && write(fd, map, strlen(map)) == (ssize_t)strlen(map);
	}
}

/* Root knows the user that the command is to be; the guardian waits for it. */
static int map_user(const struct plan *plan, const struct spawned *child, struct err *err)
{
	if (!write_map(child->pid, "uid_map", plan->uid_map) || !write_map(child->pid, "gid_map", plan->gid_map) ||
	    send(child->control, &(char){SAY_MAPPED}, 1, MSG_NOSIGNAL) != 1)
		return err_sys(err, errno, "cannot %s", step_name(STEP_IDS));
	return 0;
}

static int refused(int sys, struct err *err)
{
	if (sys == ENOSPC || sys == EUSERS)
		return err_set(
			err, ERR_UNSUPPORTED,
			"it allows no more user namespaces; raise the limit with sysctl user.max_user_namespaces");
	if (sys == EPERM || sys == EACCES)
		return err_set(
			err, ERR_UNSUPPORTED,
			"it refuses user namespaces to this user; allow them (sysctl "
			"kernel.unprivileged_userns_clone=1 on Debian, "
			"kernel.apparmor_restrict_unprivileged_userns=0 on Ubuntu), or choose another sandbox.tier "
			"of those in `stead doctor`");
	return err_sys(err, sys, "cannot %s", step_name(STEP_NAMESPACES));
}

/* Above the descriptors that a command may have, even where the program has closed some of those. */
static bool control_pair(int ends[2])
{
	int low[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, low) != 0)
		return false;
	ends[0] = fcntl(low[0], F_DUPFD_CLOEXEC, 10);
	ends[1] = fcntl(low[1], F_DUPFD_CLOEXEC, 10);
	close(low[0]);
	close(low[1]);
	return ends[0] >= 0 && ends[1] >= 0;
}

int plan_spawn(struct plan *plan, struct spawned *ret, struct err *err)
{
	unsigned long flags = plan->tier == SANDBOX_NAMESPACES ? NAMESPACES : 0;
	sigset_t all, before;
	int ends[2];
	pid_t pid;

	if (!control_pair(ends))
		return err_sys(err, errno, "cannot create a socket");
	plan->control = ends[1];
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before); /* no handler of the program runs in the child */
	pid = (pid_t)syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
	if (pid == 0)
		guardian(plan);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	close(ends[1]);
	if (pid < 0) {
		close(ends[0]);
		return flags ? refused(errno, err) : err_sys(err, errno, "cannot %s", step_name(STEP_FORK));
	}
	*ret = (struct spawned){.pid = pid, .control = ends[0]};
	return plan->becomes && flags ? map_user(plan, ret, err) : 0;
}
