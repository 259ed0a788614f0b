/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs one configured program to its end: without a shell, in a directory of its own, with PATH as its whole
 * environment, in a new session, under limits, and killed with all its children at its time limit.
 */
#ifndef STEAD_BASE_PROGRAM_H
#define STEAD_BASE_PROGRAM_H

#include "base/ctx.h"

struct command_run {
	const char *const *argv; /* NULL at the end; argv[0] is looked for in PATH */
	const char *dir;         /* where it runs */
	int64_t timeout_ms;
	size_t output_max; /* bytes of its standard output; more is ERR_TOO_LARGE */
};

struct command_ran {
	struct str output; /* standard output */
	struct str said;   /* the first of its standard error, for messages */
};

/* 0 when it exited with 0. ERR_NOT_FOUND: there is no such program. ERR_TIMEOUT: killed. ERR_UNAVAILABLE: it failed. */
int command_run(struct ctx *ctx, const struct command_run *run, struct command_ran *ret, struct err *err);

#endif
