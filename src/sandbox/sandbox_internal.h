/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pieces of a run. The parent prepares a struct plan; from the clone on, the child only reads it and calls the
 * kernel: it must not allocate, because the program it was cloned from may have had threads.
 */
#ifndef STEAD_SANDBOX_SANDBOX_INTERNAL_H
#define STEAD_SANDBOX_SANDBOX_INTERNAL_H

#include <linux/filter.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/strmap.h"
#include "sandbox/fuse/fuse.h"
#include "sandbox/sandbox.h"

#define SANDBOX_UID        1000 /* inside */
#define SANDBOX_OTHERS_MAX 512  /* processes that the user may start elsewhere while a command runs */
#define SANDBOX_PATHS_MAX  64   /* further directories of the host that one job may read */

/* What the child says on the control socket, one packet each. */
enum note_kind {
	NOTE_VIEW,   /* the lower layer is mounted, and waits for answers; descriptor: of its mount */
	NOTE_FILES,  /* the view is there; descriptors: upper, lower (if it is to be filled), home (if it is kept) */
	NOTE_FAILED, /* value: the step, sys: why */
	NOTE_EXEC_FAILED, /* sys: why */
	NOTE_EXITED,      /* value: the status as wait() gives it */
	NOTE_PLACED,      /* of a worker: the files of the call are there */
	NOTE_CLEARED,     /* of a worker; value: nothing is left of the call */
	NOTE_READY,       /* of a spare: it waits for its job */
};
struct note {
	enum note_kind kind;
	int value, sys;
	int64_t cpu_us;
	uint64_t memory_peak;
	bool is_alone; /* NOTE_EXITED: nothing else is left, and the guardian ends by itself */
};
/* And what the parent says, by the first byte of a packet. Closing the socket ends everything. */
#define SAY_MAPPED 'm' /* the ids of the user namespace are there */
#define SAY_HIDDEN 'h' /* paths that must not be seen follow, each with a NUL at its end */
#define SAY_GO     'g' /* descriptors: cgroups of version 1, which the child enters */
#define SAY_CALL   'c' /* to a worker: files are wanted; one more byte: they will be filled. Descriptor: their tree */
#define SAY_CLEAR  'e' /* to a worker: what the call left running and mounted goes */
#define SAY_JOB    'j' /* to a spare: the job is in struct spare_call. Descriptors: in, out, said, answer, tree */
#define SAY_MAX    (32 * 1024) /* bytes of a packet */

/* Steps of the set-up, for messages. */
enum step {
	STEP_USER,
	STEP_NAMESPACES,
	STEP_IDS,
	STEP_ROOT,
	STEP_PROGRAMS,
	STEP_PATHS,
	STEP_DEVICES,
	STEP_NETWORK,
	STEP_FILES,
	STEP_KEPT,
	STEP_OVERLAY,
	STEP_PIVOT,
	STEP_FORK,
	STEP_CWD,
	STEP_LIMITS,
	STEP_PRIVILEGES,
	STEP_LANDLOCK,
	STEP_SECCOMP,
	STEPS
};

struct plan_rlimit {
	int what;
	rlim_t value;
};

/* What a spare learns when it gets its job, in memory that it shares with the parent: all of it, with what it points
   to. The guardian only reads it, and the command loses it with its program. */
struct spare_call {
	const char *const *programs, *const *argv, *const *env;
	const char *cwd;
	struct plan_rlimit rlimits[10];
	size_t rlimit_count;
	bool fill, shows, has_answer, has_tree;
};

struct plan {
	enum sandbox_tier tier;
	bool becomes; /* the process is root: it becomes `uid` first */
	uid_t uid;    /* on the host */
	gid_t gid;
	const char *const *programs; /* tried in this order, NULL at the end; NULL: the set-up alone is tried */
	const char *const *argv, *const *env, *const *paths;
	const char *cwd;
	int control, in, out, said;    /* the child's ends */
	int passed[2];                 /* become the descriptors 8 and 9; -1: there are none */
	int groups[2];                 /* of a worker: cgroups of version 1 that the child enters by itself; -1: none */
	int answer;                    /* becomes descriptor 3; -1: there is none */
	bool tty;                      /* all three are the terminal that becomes its own */
	char terminal[32];             /* its name on this machine; inside it is /dev/console */
	bool is_worker;                /* its files come and go while the program runs */
	const struct spare_call *call; /* of a spare: where its job will be; NULL: the job is known */
	/* The workspace. */
	bool has_files; /* else `at` is a plain temporary directory */
	const char *at; /* without the leading '/' */
	int tree;       /* a finished mount of the lower layer; -1: none */
	const char *dir;
	dev_t dev;
	ino_t ino;
	bool fill;  /* the parent fills the lower layer */
	bool shows; /* the child mounts a view of the store, and the parent answers; where that is refused, it fills */
	bool use_overlay;
	/* Kept between commands: the home is an overlay too, and both have one layer more. */
	bool keeps;
	const char *kept_dir; /* restored files; NULL: there are none yet */
	int kept_tree;        /* a mount of it that root has made; -1: none */
	const char *work;     /* other tiers: the directory on the host that it may change */
	char root_opts[64], upper_opts[96], tmp_opts[96], uid_map[48], gid_map[48];
	struct plan_rlimit rlimits[10];
	size_t rlimit_count;
	struct sock_fprog filter;
	/* Its network: where the descriptors of its sockets are sent; -1: it has none. */
	int net;
	const uint16_t *net_ports;
	const uint32_t *net_literals; /* addresses that the namespace gets */
	size_t net_port_count, net_literal_count;
	const char *net_bundle; /* certificates; NULL: those of the machine */
};

/* /etc of a command: what is made for it, and what it sees of the machine's (view.c). Both end with NULL. */
struct etc_file {
	const char *name, *text;
};
extern const struct etc_file etc_made[];
extern const char *const etc_kept[];

/* --- the child's side --- */

__attribute__((noreturn)) void plan_fail(const struct plan *plan, enum step step);
void plan_note(const struct plan *plan, const struct note *note);
/* A descriptor of the machine's own /proc, until the command has begun; -1: the machine has none (spawn.c). */
int plan_proc(void);
/* Begins to make the network of its own; view_build() enters it. */
void view_begin_network(const struct plan *plan);
/* Mounts what the command sees, and makes it the root (view.c). A spare learns its job on the way. */
void view_build(struct plan *plan);
/* Waits for the job of a spare and completes the plan with it (spare.c). */
void spare_wait(struct plan *plan);
/* For a worker: its program enters the view; files are placed there for a call, and go after it. */
void view_enter(const struct plan *plan);
void view_place(const struct plan *plan, bool fill, int tree);
bool view_clear(const struct plan *plan);
/* A packet for the guardian of a worker (worker_child.c). False: everything is to end. */
bool worker_serve(const struct plan *plan, pid_t command);
/* The next packet from a socket with its descriptors, at most PLAN_FDS_MAX: *ret_count of them. As recvmsg(). */
#define PLAN_FDS_MAX 5
ssize_t plan_receive(int control, char *packet, size_t size, int fds[PLAN_FDS_MAX], size_t *ret_count);
/* The next packet from the parent; ends the process when it is gone. */
size_t plan_hear(const struct plan *plan, char *packet, size_t size);
void plan_send_files(const struct plan *plan, int lower, int upper, int home);
/* A note with up to three descriptors; those that are -1 are left out. */
void plan_send(const struct plan *plan, const struct note *note, const int *fds, size_t count);
/* Opens the sockets of its network and sends them to the parent (net_child.c). */
void net_open(const struct plan *plan);
/* Everything that cannot be taken back: limits, capabilities, Landlock, the filter (confine.c). */
void confine(const struct plan *plan);
/* No program that this process or one that it makes executes can get a capability; those it has stay. */
void bound_capabilities(void);
/* All capabilities of this thread go. */
bool drop_capabilities(void);
int landlock_abi(void);

/* --- the parent's side --- */

/* What the machine allows in its own namespaces, as far as it was tried (tiers.c). */
bool tier_has_overlay(void);
/* The plan of a job that has no program: a trial of the set-up (run.c). */
int sandbox_try(enum sandbox_tier tier, bool with_overlay, struct err *err);

/* The system calls that are refused, as a program for the kernel (filter.c). */
void filter_build(struct arena *arena, enum sandbox_tier tier, bool is_worker, struct sock_fprog *ret);

struct spawned {
	pid_t pid;   /* to kill and reap */
	int control; /* the parent's end */
};
/* Starts the child (spawn.c). */
int plan_spawn(struct plan *plan, struct spawned *ret, struct err *err);
const char *step_name(enum step step);

/* A group of processes with limits of their own, where the machine lends us one (cgroup.c). */
struct cgroup {
	char dirs[2][512]; /* empty: none */
	bool is_v2;
};
/* Nothing when there is none to be had. `processes` 0: RLIMIT_NPROC counts those of this command alone. */
void cgroup_make(struct cgroup *group, uint64_t memory, uint64_t processes);
/* Descriptors through which a thread enters groups of version 1 when it writes "0": the kernel moves another thread
   only after a grace period of milliseconds. -1: there is none, cgroup_add() does it. */
bool cgroup_open(const struct cgroup *group, int ret[2]);
bool cgroup_add(const struct cgroup *group, pid_t pid);
bool cgroup_has_memory(const struct cgroup *group);
bool cgroup_was_out_of_memory(const struct cgroup *group);
void cgroup_remove(struct cgroup *group);

/* Root that can become every other user. In a container of a user who is not root, root is that user and no more. */
bool user_is_root(void);
/* The machine's root, in a user namespace that has no others. */
bool user_is_lonely_root(void);

/* Threads of this user, as far as the machine shows them. */
uint64_t user_threads(void);

/* A directory on the host with "files", "tmp" and "home" in it (work.c). *ret is set when it is there, even on failure.
 */
int work_make(struct arena *arena, bool becomes, uid_t uid, gid_t gid, const char **ret, struct err *err);
void work_remove(int at, const char *name);
uint64_t work_room(const char *work); /* free bytes of its file system */
uint64_t work_used(const char *work); /* bytes in it */

/* What bwrap is to do (bwrap.c). */
#define BWRAP_FILTER_FD "8" /* plan.passed[0] */
#define BWRAP_START_FD  "9" /* plan.passed[1]: a byte comes through it when the command begins */
struct bwrap_view {
	const char *work, *at, *cwd; /* on the host; and in its view */
	const char *const *paths, *const *argv;
	uint64_t disk, processes;
	bool tty, keeps;
};
const char *bwrap_program(struct arena *arena); /* NULL: the machine has none */
int bwrap_args(struct arena *arena, const struct bwrap_view *view, const char *const **ret, struct err *err);
int bwrap_filter(const struct sock_fprog *filter); /* a file with it; -1 */

/* A whole run in a container (container.c), and the filter for its engine (engine_filter.c). */
int container_run(struct ctx *ctx, const struct sandbox_job *job, const struct sandbox_limits *limits, uid_t uid,
		  struct sandbox_result *ret, struct err *err);
struct str engine_filter(struct arena *arena);

/* A mount of `dir` in which the files of its owner belong to `uid`: root alone can make one. -1: not here. */
int lower_tree(const char *dir, uid_t uid, gid_t gid);
/* A read-only mount of `dir` as it is. -1: root alone can make one. */
int lower_clone(const char *dir);
/* Paths below `dir` that are hidden, or are neither files, directories nor links. */
int lower_hidden(struct ctx *ctx, const struct sandbox_files *files, const char *const **ret, size_t *ret_count,
		 struct err *err);

/* The files of a store are shown rather than copied (lower_view.c): there is /dev/fuse, and they are not few. */
bool lower_is_shown(struct ctx *ctx, const struct sandbox_files *files);
/* What answers for a mount of them: root's own, without a place, or the one that `dev` is of. NULL: not here. */
struct fuse_view *lower_view(struct ctx *ctx, const struct sandbox_files *files, uid_t uid, gid_t gid, int *ret_tree);
struct fuse_view *lower_view_of(struct ctx *ctx, const struct sandbox_files *files, int dev);

/* What the command started with. */
struct baseline {
	uint64_t head;          /* newest revision */
	struct fuse_view *view; /* knows what was shown; NULL: there is none */
	int64_t time_ns;        /* real */
	int lower;              /* copies as they were made; -1: there are none */
	struct strmap *index;   /* copied files by path: a number in `copies`, from 1 */
	struct copied {
		struct str path, version;
		uint64_t size;
		int64_t changed_ns; /* of the copy */
		uint64_t inode;
	} * copies;
	size_t count, cap;
};
/* Copies the files of the store to the directory `to`, as files of `uid` (copy.c). */
int baseline_copy(struct ctx *ctx, const struct sandbox_files *files, int to, uid_t uid, gid_t gid,
		  struct baseline *base, struct err *err);

/* What the command changed, as read from its files. */
struct found {
	struct str path;
	bool is_deleted;
	uint64_t size;
	uint32_t mode;
	bool is_made; /* with others, as a group */
	/* What the store has at the path, once it was looked at: 0, -ERR_NOT_FOUND, or why it cannot be told. */
	bool is_seen;
	int seen;
	struct store_stat have;
};
struct changes {
	struct arena *arena;
	int dir; /* where the contents of changed files are; borrowed */
	struct found *found;
	size_t count, cap;
	struct sandbox_change *told; /* what was refused while reading */
	size_t told_count, told_cap;
	uint64_t excluded;
	struct str left_out;
};
/* From the upper layer of an overlay, or by comparing a copy with the baseline (changes.c). */
int changes_of_overlay(struct ctx *ctx, const struct sandbox_files *files, int upper, struct changes *ret,
		       struct err *err);
int changes_of_copy(struct ctx *ctx, const struct sandbox_files *files, int dir, const struct baseline *base,
		    struct changes *ret, struct err *err);
/* A file of a tree that an outsider made: no link is followed, no device opened. -errno. */
int open_beneath(int dir, struct str path, int flags);
/* Writes the changes to the store, all under one call id (commit.c). An error: nothing was written. */
int changes_commit(struct ctx *ctx, const struct sandbox_files *files, const struct baseline *base,
		   struct changes *changes, struct sandbox_result *result, struct err *err);

/* Counts them for `dropped` of the result; the store stays as it is. */
void changes_count_dropped(struct ctx *ctx, const struct sandbox_files *files, struct changes *changes,
			   struct sandbox_result *result);

/* Output of one stream: the first and the last bytes in memory, all of it in a file (capture.c). */
struct capture {
	size_t head_max, tail_max;
	struct buf head;
	char *tail; /* a ring of tail_max bytes */
	size_t tail_at;
	uint64_t total;
	int spill; /* -1: none yet */
	uint64_t spilled;
};
void capture_init(struct capture *c, struct arena *arena, size_t keep);
void capture_add(struct capture *c, struct str bytes);
void capture_end(struct capture *c, struct arena *arena, struct sandbox_output *ret);

#endif
