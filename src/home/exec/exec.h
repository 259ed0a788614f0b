/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands over the files of a workspace: `stead exec` and the tools that run commands. A command sees what the file
 * tools see, in the sandbox that agent.yaml asks for, and what it changes comes back under the same rules.
 */
#ifndef STEAD_HOME_EXEC_EXEC_H
#define STEAD_HOME_EXEC_EXEC_H

#include "command/command.h"
#include "sandbox/sandbox.h"
#include "sandbox/snapshot.h"
#include "tool/call.h"

/* A job over the files of the workspace, with the tier and the limits of agent.yaml. The caller adds the program and
   may lower or raise the rest. */
int exec_job(struct workspace *ws, struct ctx *ctx, struct sandbox_job *ret, struct err *err);
/* Keeps what the job leaves for the next one of the same "session", "user" or "agent" of the workspace, or of everybody
   ("global"); "none" or empty: nothing is kept. Without a session, nothing is kept for one. */
int exec_keep(struct workspace *ws, struct ctx *ctx, struct str scope, struct sandbox_job *job, struct err *err);
/* The same under a name of the caller's own: `about` says what it is, has a member "scope" unlike those above, and must
   outlive the job. */
int exec_keep_as(struct workspace *ws, struct ctx *ctx, const struct jv *about, struct sandbox_job *job,
		 struct err *err);
/* A job that only looks at `files`, which it sees at `at`: what it changes is dropped, it always runs in a tier that
   isolates, and it gets none of the variables of agent.yaml. `dir` as in struct sandbox_files; empty: none. `files` is
   a guard. */
int exec_job_on(struct workspace *ws, struct ctx *ctx, struct store *files, struct str dir, const char *at,
		struct sandbox_job *ret, struct err *err);
/* Hosts of a call ("pypi.org,*.example.com:8443"), in addition to those of agent.yaml with `and_own`, else in their
   place. Secrets stay. Nothing allowed: hosts empty, and_own false. */
int exec_net_hosts(struct ctx *ctx, struct sandbox_job *job, struct str hosts, bool and_own, struct err *err);
/* Whether what commands do may reach beyond the files: they may use hosts, or run without a sandbox. */
int exec_reaches_out(struct workspace *ws, struct ctx *ctx, bool *ret, struct err *err);
/* Runs it; a job over the files of a workspace whose root is a task sees what is mounted into that. Programs that ran
 * among the files themselves (the tier local) have their changes recorded. */
int exec_run(struct workspace *ws, struct ctx *ctx, const struct sandbox_job *job, struct sandbox_result *ret,
	     struct err *err);

/* Runs it, and what it changes goes to a new fork of the workspace. `name` empty: one is made up. *ret_fork is empty
   when it changed nothing; then there is no fork. */
int exec_hold(struct workspace *ws, struct ctx *ctx, const struct sandbox_job *job, struct str name,
	      struct sandbox_result *ret, struct str *ret_fork, struct err *err);

/* What a tool runs. */
struct exec_call {
	const char *shell; /* "sh" or "bash" */
	struct str command;
	struct str cwd;        /* relative to the files; empty: their root */
	int64_t timeout_s;     /* 0: that of agent.yaml */
	int64_t timeout_max_s; /* more is ERR_INVALID */
	struct str input;
	size_t output;  /* bytes of each output in the answer; 0: the default */
	const char *at; /* where the command sees the files; NULL: as for every job */
};
/* {exit_code, stdout, stderr, duration_ms, tier, changes, …}: the result of the tool `execute`. Output that does not
   fit is parked as an artifact. */
int exec_call(struct call *call, const struct exec_call *what, struct jv **ret, struct err *err);
/* The same value for a job that has run. */
struct jv *exec_value(struct workspace *ws, struct ctx *ctx, struct sandbox_result *result);
/* Both outputs as one text, each with a newline at its end. */
void exec_output(const struct jv *value, struct buf *text);
/* "killed after 30 seconds …", "2 files were not brought back …": lines that a reader needs in addition to the output.
 */
void exec_remarks(const struct jv *value, struct buf *text);

extern const struct command exec_commands[];

#endif
