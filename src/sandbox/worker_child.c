/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guardian of a worker. It gives each call its files and, when the call is over, ends every process that is left of
 * it, except the program that waits for the next call.
 *
 * Processes are found by their numbers: those that were given out since the call began. A list from /proc would miss
 * what hides from it, and a group or session can be left. When a process can still start another one faster than it is
 * ended, or something else is left that the next call would find, the worker is not used again.
 *
 * This runs in a clone of a program that may have threads: calls of the kernel, no memory.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sandbox/sandbox_internal.h"

#define NUMBERS_MAX 100000 /* of processes of one call */
#define ROUNDS_MAX  100
#define PAUSE_MS    5

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

static pid_t start_nothing(void)
{
	pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

	if (pid == 0)
		_exit(0);
	return pid;
}

#else

static int nothing(void *arg)
{
	(void)arg;
	_exit(0);
}

static pid_t start_nothing(void)
{
	static _Alignas(16) char stack[16 * 1024];

	return clone(nothing, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);
}

#endif

/* The number that the next process would have had; -1. */
static pid_t next_number(void)
{
	pid_t pid = start_nothing();

	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return pid;
}

/* Kills everything from `first` up to `last`. True: there was something. */
static bool kill_from(pid_t first, pid_t last, pid_t command)
{
	bool any = false;

	for (pid_t pid = first; pid < last; pid++)
		if (pid != command && kill(pid, SIGKILL) == 0)
			any = true;
	return any;
}

static bool end_processes(pid_t first, pid_t command)
{
	pid_t last = next_number(), next, gone;

	for (int round = 0; round < ROUNDS_MAX; round++) {
		bool any;

		if (last < first || last - first > NUMBERS_MAX)
			return false;
		any = kill_from(first, last, command);
		while ((gone = waitpid(-1, NULL, WNOHANG)) > 0)
			if (gone == command)
				return false;
		if (any) {
			(void)poll(NULL, 0, PAUSE_MS);
			continue;
		}
		next = next_number();
		if (next == last + 1)
			return kill(command, SIGCONT) == 0; /* something of the call may have stopped it */
		last = next;
	}
	return false;
}

/* Shared memory, semaphores and queues outlive the processes that made them. */
static bool has_shared(void)
{
	struct shm_info memory = {0};
	struct seminfo semaphores = {0};
	struct msginfo queues = {0};

	return shmctl(0, SHM_INFO, (struct shmid_ds *)(void *)&memory) < 0 || memory.used_ids > 0 ||
	       semctl(0, 0, SEM_INFO, &semaphores) < 0 || semaphores.semusz > 0 ||
	       msgctl(0, MSG_INFO, (struct msqid_ds *)(void *)&queues) < 0 || queues.msgpool > 0;
}

/* What a process of the same user can change of another one, and what it would pass on to the calls after it. */
struct standing {
	int nice, policy, io;
	cpu_set_t cpus;
};

static struct standing standing_of(pid_t pid)
{
	struct standing now = {.nice = getpriority(PRIO_PROCESS, (id_t)pid), .policy = sched_getscheduler(pid)};

	now.io = (int)syscall(SYS_ioprio_get, 1 /* IOPRIO_WHO_PROCESS */, pid);
	(void)sched_getaffinity(pid, sizeof now.cpus, &now.cpus);
	return now;
}

static bool stands_as_before(pid_t command, const struct standing *before)
{
	struct standing now = standing_of(command);

	return now.nice == before->nice && now.policy == before->policy && now.io == before->io &&
	       CPU_EQUAL(&now.cpus, &before->cpus);
}

bool worker_serve(const struct plan *plan, pid_t command)
{
	static struct standing before;
	static pid_t first;
	char packet[2];
	int fds[PLAN_FDS_MAX];
	size_t count;
	ssize_t n = plan_receive(plan->control, packet, sizeof packet, fds, &count);

	if (n == 2 && packet[0] == SAY_CALL) {
		if (!first) {
			first = next_number() + 1;
			before = standing_of(command);
		}
		view_place(plan, packet[1] != 0, count ? fds[0] : -1);
		plan_note(plan, &(struct note){.kind = NOTE_PLACED});
		return first > 1;
	}
	if (n == 1 && packet[0] == SAY_CLEAR) {
		bool ok = end_processes(first, command) && stands_as_before(command, &before) && !has_shared() &&
			  view_clear(plan);

		first = next_number() + 1; /* what comes now belongs to the next call */
		plan_note(plan, &(struct note){.kind = NOTE_CLEARED, .value = ok});
		return true;
	}
	return false;
}
