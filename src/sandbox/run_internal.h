/* SPDX-License-Identifier: Apache-2.0 */
/* A run while it lasts, for run.c and worker.c. */
#ifndef STEAD_SANDBOX_RUN_INTERNAL_H
#define STEAD_SANDBOX_RUN_INTERNAL_H

#include <sys/ioctl.h>

#include "sandbox/net_internal.h"
#include "sandbox/sandbox_internal.h"
#include "sandbox/snapshot_internal.h"

struct run {
	struct ctx *ctx;
	const struct sandbox_job *job;
	struct sandbox_limits limits;
	struct plan plan;
	struct spawned child;
	struct cgroup group;
	int groups[2]; /* of version 1, for the child to enter */
	bool was_told; /* the command may begin */
	struct baseline base;
	struct net *net;           /* NULL: none */
	int in, out, said, answer; /* the parent's ends */
	int begun;                 /* a byte comes through it when bwrap has set up; -1: it is not used */
	struct buf answered;
	int upper;        /* what the command wrote */
	int home;         /* and in its home; -1: that is not kept */
	struct kept kept; /* what earlier commands left */
	const char *work; /* a temporary directory on the host; NULL: none */
	bool in_place;    /* the command changes the files themselves */
	bool try_overlay; /* a trial: over an empty directory */
	bool hides;       /* some of its files must not be seen */
	const char *const *hidden;
	size_t hidden_count;
	struct capture captured[2];
	struct str input;    /* what is left of it */
	bool input_is_all;   /* nothing is read from input_fd any longer */
	struct winsize size; /* of its terminal */
	char input_room[64 * 1024];
	int64_t started_ns, exited_ns; /* 0: not yet */
	uint64_t room;                 /* free bytes of the host when the command began */
	bool is_over, timed_out, stopped, out_of_disk;
	struct note exit;
	int exec_errno;
	/* In a worker; NULL: in processes of its own. */
	struct sandbox_worker *worker;
	bool opens;     /* the worker is being made: its program gets no files yet */
	bool is_spare;  /* a spare is being made: it gets a job and files later */
	bool has_begun; /* the worker's program has got the call: it must not be made again */
};

#define RUN_NEW(c, j)                                                                                                  \
	{                                                                                                              \
		.ctx = (c), .job = (j), .in = -1, .out = -1, .said = -1, .answer = -1, .begun = -1, .upper = -1,       \
		.home = -1, .groups = {-1, -1}, .child = {-1, -1}, .base = {.lower = -1}, .kept = {.lock = -1},        \
	}

/* Everything that needs memory, for the processes that follow. */
int run_prepare(struct run *r, enum sandbox_tier tier, struct err *err);
/* Both ends are above the numbers that the command's own will have. */
bool run_pipe(int *ret_read, int *ret_write);
/* A packet with descriptors. */
bool run_send(int to, const void *packet, size_t size, const int *fds, size_t count);
/* Gives back what the run holds. */
void run_release(struct run *r);
/* The next packet of a child, with the descriptors that come with it. 0: it is gone. */
ssize_t run_receive(int control, struct note *note, int fds[3]);

/* A program that is kept waiting for calls (sandbox.h). */
struct sandbox_worker {
	struct spawned child;
	int talk;  /* to its program */
	dev_t dev; /* the directory of its files; 0: there is none */
	ino_t ino;
	uid_t uid;
	bool is_ready, is_spent;
	struct cgroup group;
	struct kept kept;
};
/* The run begins in the spare. False: that is not for such a job, or has ended; nothing has happened (spare.c). */
bool spare_start(struct sandbox_spare *spare, struct run *r);
/* Whether the files of this run can be shown in it. */
bool worker_fits(const struct sandbox_worker *w, const struct run *r);
/* Asks for a place for the files; a note follows when there is one. */
int worker_call(struct run *r, struct err *err);
/* The program gets the call. */
int worker_begin(struct run *r, struct err *err);
/* What the program says: it is ready, or how the call ended. */
int worker_hear(struct run *r, struct err *err);
/* Ends what the call left running. False: that did not work, and the worker is to be ended. */
bool worker_clear(struct sandbox_worker *w);
void worker_end(struct sandbox_worker *w);

#endif
