/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store as a file system of this machine. A view answers what the kernel asks through /dev/fuse, on threads of its
 * own, until it is closed or the mount is gone. What is written through it is kept per file and becomes one change of
 * the store when the file is closed or synced.
 *
 *	r = fuse_mount(dir, "stead", false, &dev, err);
 *	view = fuse_view_new(&(struct fuse_opts){.files = store, .dev = dev});
 *	fuse_view_wait(view, …);
 *	fuse_view_close(view);
 */
#ifndef STEAD_SANDBOX_FUSE_FUSE_H
#define STEAD_SANDBOX_FUSE_FUSE_H

#include <sys/types.h>

#include "store/store.h"

struct fuse_view;

struct fuse_opts {
	struct store *files; /* must outlive the view */
	int dev;             /* of a mount; owned from now on */
	bool read_only;
	bool is_fixed;    /* nothing ever changes in it: the kernel may keep what it knows for ever */
	int64_t known_ms; /* else for how long, while fuse_view_changed() reports what others change */
	uid_t uid;        /* whom all files belong to, as the mount's user namespace counts */
	gid_t gid;
	int64_t call_ms;     /* after which a call of the store fails; 0: a minute */
	struct actor actor;  /* who changes things */
	struct store *syncs; /* what is synced when a program asks for it; NULL: `files` */
	/* May the path be changed? Asked before a file is made, because its bytes come later. NULL: ask when they do.
	 */
	int (*may_change)(void *arg, struct wpath path, struct err *err);
	/* A new directory where the store has directories without files. NULL: those exist in this view alone. */
	int (*make_dir)(void *arg, struct ctx *ctx, struct wpath path, struct err *err);
	/* A file that could not be written at its last chance to be. NULL: it is not reported. */
	void (*lost)(void *arg, struct wpath path, const struct err *err);
	void *arg;
};
/* Starts to answer. */
struct fuse_view *fuse_view_new(const struct fuse_opts *opts);
/* Another writer made, changed or removed the path: what the kernel knows of it is dropped. Never to be called from a
   call of the view's own. */
void fuse_view_changed(struct fuse_view *v, struct wpath path);
/* The version of a file as it was shown; an empty one: it was not there; false: it was not looked at. In the arena. */
bool fuse_view_version(struct fuse_view *v, struct arena *arena, struct wpath path, struct str *ret);
/* Readable when the mount is gone. */
int fuse_view_over_fd(const struct fuse_view *v);
/* No request is answered from now on: calls that wait end, and their readers get an error. What was shown is known
   still. NULL is allowed. */
void fuse_view_end(struct fuse_view *v);
/* The same, then writes what was not written yet, and frees the view. */
void fuse_view_close(struct fuse_view *v);

/* --- mounts --- */

/* Mounts over a directory; *ret_dev answers for it. `source` is what lists of mounts show. Users other than root need
   the program fusermount3. */
int fuse_mount(const char *dir, const char *source, bool read_only, int *ret_dev, struct err *err);
/* A mount that has no place yet, for move_mount(2), whose files belong to `uid`. Root alone. ERR_UNSUPPORTED: this
   machine does not allow it. */
int fuse_mount_detached(uid_t uid, gid_t gid, int *ret_dev, int *ret_tree, struct err *err);
enum fuse_state {
	FUSE_NOT_OURS, /* nothing of Stead is mounted there */
	FUSE_SERVED,
	FUSE_DEAD, /* its process is gone */
};
/* What is mounted at `dir` (an absolute path without links); *ret_pid: the process that serves it, 0 when unknown. */
enum fuse_state fuse_mount_state(const char *dir, pid_t *ret_pid);
/* `lazily`: also while it is used, and calls that wait fail. */
int fuse_unmount(const char *dir, bool lazily, struct err *err);

#endif
