/* SPDX-License-Identifier: Apache-2.0 */
/* A workspace as a file system of this machine: what is shown, under which rules, and how it stays up to date. */
#ifndef STEAD_HOME_MOUNT_MOUNT_H
#define STEAD_HOME_MOUNT_MOUNT_H

#include "command/command.h"
#include "workspace/workspace.h"

struct mount_opts {
	const char *dir;   /* of the host: absolute, without links */
	struct wpath path; /* the part of the files that is shown */
	struct str at;     /* a revision; empty: the present */
	bool read_only;
	bool says_lost; /* what could not be written is printed on standard error */
};

/* Mounts and serves. `ready` is called when the files can be used; then it returns when the mount is gone, or when
   `stop` (a descriptor) can be read, after it has unmounted. */
int mount_serve(struct workspace *ws, struct ctx *ctx, const struct mount_opts *opts, int stop,
		void (*ready)(void *arg), void *arg, struct err *err);

extern const struct command mount_commands[];

#endif
