/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inotify over directories below a root, with the paths of what happened. Events only say where to look: one that was
 * lost or came twice must do no harm.
 */
#ifndef STEAD_BASE_WATCH_H
#define STEAD_BASE_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/inotify.h>

struct watch {
	int fd; /* readable when something happened */
	char *root;
	char **dirs;       /* by watch number: the path below root; NULL: none */
	size_t cap, count; /* of dirs, and of those that are watched */
};

/* Whether the directory is on a file system that changes through this kernel alone: not a network or FUSE. */
bool watch_sees_all(const char *dir);

/* False: the kernel has no more instances for this user. */
bool watch_open(struct watch *w, const char *root);
void watch_close(struct watch *w);

/* The nearest directory above root that exists, for one event. That has no path. False: nothing can be watched. */
bool watch_add_above(struct watch *w, uint32_t events);
/* The directory `below` root ("": root itself). 0, or errno. */
int watch_add(struct watch *w, const char *below, uint32_t events);
struct watch_tree {
	uint32_t events;
	size_t dirs_max;
	bool (*skips)(const char *name); /* "." and ".." among them */
};
/* Adds `below` and the directories in it, down to `depth` levels. A directory is watched before it is read, so one that
   is made in it at that time is an event. A directory that is already gone is not an error. After any other error the
   rest is still watched, unless there is no room left (ENOSPC, ENOMEM). */
int watch_add_tree(struct watch *w, const char *below, const struct watch_tree *how, unsigned depth);

/* `path` is below root; NULL when the event has no name, its directory is not known, or it is too long. */
typedef void (*watch_take)(void *arg, const struct inotify_event *event, const char *path);
/* Hands over what happened since the last call. False: reading failed. */
bool watch_read(struct watch *w, watch_take take, void *arg);

#endif
