/* SPDX-License-Identifier: Apache-2.0 */
/* What an open workspace consists of, for workspace.c, workspace_quotas.c and workspace_paths.c. */
#ifndef STEAD_WORKSPACE_WORKSPACE_INTERNAL_H
#define STEAD_WORKSPACE_WORKSPACE_INTERNAL_H

#include <pthread.h>

#include "revisions/revisions.h"
#include "workspace/gc.h"
#include "workspace/place.h"
#include "workspace/rights.h"
#include "workspace/workspace_parts.h"

#define SLOTS_MAX 32

/* A user's part of a workspace with limits of its own. It belongs to the workspace that was opened first, so that all
   handles of the user count together. */
struct user_part {
	struct user_part *next;
	struct wpath dir;
	struct store *store, *revisions;
	struct rev_past past; /* with the lock of the quota */
};

/* What '/' is for tools. */
struct root {
	struct wpath path;
	bool whole;   /* the workspace itself */
	bool of_item; /* the files of an item of a board */
	bool of_task; /* those, or another task's */
};

struct workspace {
	struct arena *arena; /* for as long as the handle lives; written to while it is opened only */
	struct config config;
	struct actor actor;
	struct str place, whole;   /* of '/' and of the workspace, as a person would name them */
	struct str dir, store_dir; /* dir: host directory of the workspace on disk, else ptr NULL */
	bool with_git;             /* as in workspace_opts */
	struct str own_dir;        /* the directory of the person's own, without symbolic links; else empty */
	bool own_files;
	struct workspace_opts opts;      /* as it was opened */
	const struct workspace *sibling; /* whose base stores these are; NULL: its own */
	struct workspace *of;            /* whose opened workspace this is, for another user; NULL: its own */
	bool is_fork;
	struct place_config where;
	struct place *stores;    /* owned, unless they are the sibling's */
	struct store *base;      /* of all workspaces; on disk it does not sync, because the log does */
	struct store *log_base;  /* the same place, as durable as asked for; NULL: base itself */
	struct store *templates; /* below every workspace; NULL: nothing is */
	struct store *raw;       /* this workspace, unrecorded; of a fork: its own directory over the parent's past */
	struct store *shared;    /* this workspace, everybody's: every change of it gets a revision */
	_Atomic uint64_t snapshots;      /* bytes that are kept of sandboxes, when they were counted last */
	_Atomic int64_t snapshots_at_ns; /* 0: they are to be counted */
	struct rev_past past, own_past;  /* of shared and of recorded; each with the lock of its quota */
	struct store *counted;           /* shared within its quota; of another handle when that has opened it */
	pthread_mutex_t parts_lock;
	struct user_part *parts;
	struct store *home; /* counted, or what this user has of it */
	struct store *files, *events;
	struct store
		*recorded; /* the revisions layer below files: shared, or that of a directory of the person's own */
	struct wpath root; /* where the file area is in it */
	struct wpath user_dir;
	struct root tool_root;
	struct rights rights;
	struct gc_auto *gc;
	const char *temp;           /* a directory that goes with the handle; NULL: none */
	pthread_mutex_t slots_lock; /* recursive: opening one may ask for another */
	struct slot {
		const void *key;
		void *state;
		void (*close)(void *state);
		bool uses_others;
	} slots[SLOTS_MAX];
	size_t slot_count;
};

/* --- limits (workspace_quotas.c) --- */

/* The shared workspace within its limits. */
struct store *workspace_counted_new(struct workspace *ws);
/* This user's own part, within its limits. */
struct store *workspace_user_part(const struct workspace *ws);
void workspace_user_parts_end(struct workspace *ws);
/* A directory of the person's own is bounded as a workspace is, by itself. Owns `files`. */
struct store *workspace_own_limits(struct workspace *ws, struct store *files);

#endif
