/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations that only this folder uses. */
#ifndef STEAD_HOME_EXEC_EXEC_INTERNAL_H
#define STEAD_HOME_EXEC_EXEC_INTERNAL_H

#include "home/exec/exec.h"

extern const struct family exec_family;

/* One of its limits ended the command of this result. */
bool exec_hit_limit(const struct jv *value);

/* A command that a shell can be given: not empty and without NUL. */
int exec_command_check(struct str command, struct err *err);
/* A working directory from a call: relative to the root of the files, or below `at`, where the command sees them (NULL:
   /workspace). Empty: the root. */
int exec_cwd(struct arena *arena, struct str text, const char *at, struct wpath *ret, struct err *err);

/* What commands of this workspace may reach, and its secrets (exec_net.c). */
int exec_net(struct workspace *ws, struct ctx *ctx, const struct sandbox_net **ret, struct err *err);
/* Adds "network" to a result, and lines about connections that failed to its remarks. */
void exec_net_value(struct arena *arena, const struct sandbox_result *r, struct jv *ret);
void exec_net_remarks(const struct jv *value, struct buf *text);
/* Appends to .stead/network.jsonl. */
#define SANDBOX_NET_LOG_PATH ".stead/network.jsonl"
void exec_net_log(struct workspace *ws, struct ctx *ctx, const struct sandbox_job *job, const struct sandbox_result *r);
/* `stead sandbox list` and `stead sandbox drop` (keep.c). */
struct cli;
int sandbox_list(struct cli *cli, struct err *err);
int sandbox_drop(struct cli *cli, struct err *err);

/* The jobs of an open workspace (jobs.c). */
void *jobs_open(struct workspace *ws);
void jobs_close(void *state);
int tool_start_job(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);
int tool_wait_job(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);
int tool_kill_job(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);
int tool_list_jobs(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);

#endif
