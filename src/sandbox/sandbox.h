/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where commands run. A job is a program, the files that it sees and its limits; the sandbox runs it to its end and
 * brings back what it printed and what it changed. It sees its files and the programs of the machine, read-only, and
 * nothing else: no other process, no network, no other file, no environment, no descriptor.
 *
 *	struct sandbox_job job = {.argv = argv, .owner = STR("acceptance"), .files = {.store = store}};
 *	struct sandbox_result result;
 *	r = sandbox_run(&ctx, &job, &result, err);
 *
 * `files.store` may be any store: with a memory store that holds the input, the result is read from that store.
 * Failing to run the command is an error. What the command does (its exit code, its time limit, files that could not
 * be brought back) is the result.
 */
#ifndef STEAD_SANDBOX_SANDBOX_H
#define STEAD_SANDBOX_SANDBOX_H

#include "sandbox/sandbox_net.h"
#include "store/store.h"

/* How a command is kept apart, the strongest first. */
enum sandbox_tier {
	SANDBOX_AUTO,       /* the strongest that isolates and that this machine has; never a weaker one */
	SANDBOX_NAMESPACES, /* own namespaces, own root directory, Landlock, seccomp, limits */
	SANDBOX_CONTAINER,  /* a container of Docker or Podman, on a copy of the files */
	SANDBOX_BUBBLEWRAP, /* the same, made by the program bwrap, on a copy of the files */
	SANDBOX_LANDLOCK,   /* weaker: sees the machine's files and processes, but can change only its own */
	SANDBOX_LOCAL,      /* not a sandbox: the user's own rights. For trusted commands, and only by name */
	SANDBOX_TIERS
};
const char *sandbox_tier_name(enum sandbox_tier tier);
/* ERR_INVALID lists the names. */
int sandbox_tier_parse(struct str name, enum sandbox_tier *ret, struct err *err);
/* The tier that a job with `asked` runs in. ERR_UNSUPPORTED: the machine does not allow it; says what is missing. The
   machine is tried once per process. */
int sandbox_tier_choose(enum sandbox_tier asked, enum sandbox_tier *ret, struct err *err);

/* What this machine can do, for people. `detail` is in the arena. */
struct sandbox_ability {
	const char *name;
	bool have;
	struct str detail;
};
size_t sandbox_abilities(struct arena *arena, struct sandbox_ability **ret);

/* Zero fields have the defaults of base/limits.h. */
struct sandbox_limits {
	int64_t timeout_ms;
	uint64_t memory;    /* bytes of all its processes together, if a cgroup is available; otherwise of each */
	uint64_t disk;      /* bytes that it may write to its files, and again to /tmp and to its home */
	uint64_t files;     /* files that it may make in each of them */
	uint64_t processes; /* and threads */
	size_t output;      /* bytes of stdout, and of stderr, that are kept in `stdout_text` and `stderr_text` */
};

#define SANDBOX_FILES_AT "/workspace"
struct sandbox_files {
	struct store *store; /* what the command sees; NULL: an empty directory whose contents are dropped */
	const char *at;      /* where it sees them; NULL: SANDBOX_FILES_AT */
	/* A directory of this machine with the same files, which are then not copied; NULL: they are. */
	const char *dir;
	/* Paths below `dir` that the command must not see. NULL: none. */
	bool (*is_hidden)(void *arg, struct wpath path);
	void *hidden_arg;
	/* A number that stands for these rules and for no others as long as this process lives, so that what was found
	   once need not be looked for again; 0: there is none. */
	uint64_t hidden_key;
	/* Directories of which nothing can be brought back: each is reported as one. NULL: none. The same argument. */
	bool (*is_fixed)(void *arg, struct wpath path);
	/* The revisions layer below `store`, and where the root of `store` is in it: tells what others have changed
	   while the command ran. NULL: versions tell it. */
	struct store *revisions;
	struct wpath root;
	/* The files of `store` at the revision `head`, as they are shown; NULL: those of `store`. */
	struct store *shown;
	uint64_t head;
	const char *const *exclude; /* globs of what is not brought back; NULL at the end. NULL: none */
	bool read_only;             /* what it changes is dropped */
	bool tells_dropped;         /* with read_only: `dropped` of the result is counted */
	uint64_t deletions_max;     /* more in one command are refused; 0: the default */
};

struct sandbox_keep;
struct sandbox_spare;
struct sandbox_worker;

struct sandbox_job {
	enum sandbox_tier tier;
	struct str owner;         /* whose command it is: two owners never have the same user id on the host */
	const char *const *argv;  /* NULL at the end; argv[0] is looked for in PATH */
	const char *const *env;   /* "NAME=value" in addition to PATH, HOME and their like; NULL at the end */
	const char *const *paths; /* further directories of the host that it may read; NULL at the end */
	const char *image;        /* of the tier container; NULL: SANDBOX_IMAGE_DEFAULT */
	struct wpath cwd;         /* in its files */
	struct str input;         /* its standard input */
	const int *input_fd;      /* or read from here until its end; NULL: no. The command never gets the descriptor */
	/* Its three streams are a terminal of its own, with the size of the terminal `input_fd`, which it follows. What
	   it prints is all stdout. */
	bool tty;
	/* More than 0: descriptor 3 of the command is a pipe, for an answer that nothing it prints can be taken for.
	   The first bytes of it are `answer` of the result. */
	size_t answer_max;
	struct sandbox_limits limits;
	struct sandbox_files files;
	/* What it may reach, and secrets that it may use; the variables of these are placeholders, whatever `env` says.
	   NULL: nothing. */
	const struct sandbox_net *net;
	/* Its home and what `exclude` leaves out are kept between commands (snapshot.h). NULL: they are dropped. */
	const struct sandbox_keep *keep;
	/* The program that makes the call, if it still can; else `argv` does in a process of its own. NULL: none. */
	struct sandbox_worker *worker;
	/* A sandbox made in advance, which the job uses up if it fits. NULL: none. */
	struct sandbox_spare *spare;
	const struct cancel *stop; /* when it is requested, the command is killed as at its time limit. NULL: never */
	/* Called with output as it comes, if not NULL; then nothing is kept. False: nobody reads it now, and the
	   command finds its pipe closed (a container is stopped). */
	bool (*output)(void *arg, bool is_stderr, struct str bytes);
	void *output_arg;
};

struct sandbox_output {
	struct str text; /* the first and last part, with a line between them that says what is missing */
	uint64_t bytes;  /* all that was printed */
	bool is_cut;
	int whole_fd; /* a file with all of it, or the first SANDBOX_SPILL_MAX bytes; -1 when `text` is all */
};

/* A change of a file. */
enum sandbox_outcome {
	SANDBOX_CREATED,
	SANDBOX_CHANGED,
	SANDBOX_DELETED,
	SANDBOX_MERGED,   /* changed by another writer while the command ran; both changes are in it now */
	SANDBOX_CONFLICT, /* the other writer's is kept; the command's own is in `kept_as` */
	SANDBOX_REFUSED,  /* not brought back; `reason` */
	SANDBOX_OUTCOMES
};
const char *sandbox_outcome_name(enum sandbox_outcome outcome);
struct sandbox_change {
	enum sandbox_outcome outcome;
	struct str path;
	struct str reason, kept_as; /* empty where they do not apply */
};

struct sandbox_result {
	enum sandbox_tier tier;
	int exit_code;  /* 128 + n after signal n, 124 after the time limit, 126 and 127 as in a shell */
	int signal;     /* 0: none */
	bool timed_out; /* it was killed, and everything that it had started */
	bool stopped;   /* the same, because of `stop` */
	bool out_of_memory;
	bool out_of_disk; /* it was killed because its copy of the files grew beyond `disk` */
	int64_t duration_ms, cpu_ms;
	uint64_t memory_peak; /* bytes of the largest process */
	struct sandbox_output out, said;
	struct str answer; /* what came through descriptor 3 */
	bool answer_is_cut;
	struct sandbox_change *changes; /* by path */
	size_t change_count;
	uint64_t dropped;                       /* files that it changed and may only read, if `tells_dropped` */
	struct str dropped_path;                /* one of them */
	uint64_t excluded;                      /* files that `exclude` left out */
	struct str left_out;                    /* one of them that is lost, and that somebody may miss; or empty */
	bool is_saved;                          /* everything but what `changes` names was brought back */
	struct err unsaved;                     /* else why nothing was */
	bool memory_is_shared;                  /* a cgroup bounds all its processes together */
	struct sandbox_connection *connections; /* as they ended */
	size_t connection_count;
	uint64_t connections_unlogged; /* more than the list has */
};

/* Runs the job to its end. Everything is in ctx->arena, except the descriptors (sandbox_result_release). */
int sandbox_run(struct ctx *ctx, const struct sandbox_job *job, struct sandbox_result *ret, struct err *err);
void sandbox_result_release(struct sandbox_result *result);

/*
 * A program that waits in a sandbox of its own, without files, for one call after another: with the rights of `job`,
 * whose `argv` it is and whose `input` is its standard input. It writes "r" to descriptor 3, a socket, when it is
 * ready. A packet "c" on that socket brings the descriptors 0 to 3 of a call; the program forks a process that makes
 * the call, and writes "x STATUS CPU-MICROSECONDS BYTES" when that has ended. A packet "n" follows: now the program may
 * fork the process of the next call, which then reads the socket. ERR_UNSUPPORTED: not on this machine or with this
 * job; a network and a home that is written back rule it out.
 */
int sandbox_worker_open(struct ctx *ctx, const struct sandbox_job *job, struct sandbox_worker **ret, struct err *err);
/* It cannot be used again: a call ran into a limit, or left something that the next one would find. */
bool sandbox_worker_is_spent(const struct sandbox_worker *worker);
void sandbox_worker_close(struct sandbox_worker *worker);

/*
 * A sandbox without a command, made in advance for one job like `job`: its namespaces, its view and its groups, so that
 * the job does not wait for them. It fits a job of the same owner, directory, place of the files, further directories
 * and limits, without a network, a terminal or a kept home; another job runs as if there were no spare. It serves one
 * job and is never used again, so no job finds anything of another. `job` needs no argv, and is not kept.
 * ERR_UNSUPPORTED: not on this machine or for this job.
 */
int sandbox_spare_open(struct ctx *ctx, const struct sandbox_job *job, struct sandbox_spare **ret, struct err *err);
/* A job has used it up. */
bool sandbox_spare_is_used(const struct sandbox_spare *spare);
/* NULL is allowed. */
void sandbox_spare_close(struct sandbox_spare *spare);

/* Output as text for a model: malformed UTF-8 becomes U+FFFD, escape sequences and control characters go. */
struct str sandbox_clean(struct arena *arena, struct str bytes);

#endif
