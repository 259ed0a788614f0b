/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a command leaves outside the files that are brought back: its home directory, and the directories that
 * `exclude` names (node_modules, .venv). With a struct sandbox_keep it is there again for the next command, on any
 * machine that has the same store.
 *
 * A snapshot is a manifest (every path with its kind, mode, time and hash) and packs, which hold the contents that were
 * new when they were written. All of them are named by a hash, written before they are named, and verified when they
 * are read. `head.json` names the manifest and is replaced in one step, so a snapshot is the old one or the new one.
 */
#ifndef STEAD_SANDBOX_SNAPSHOT_H
#define STEAD_SANDBOX_SNAPSHOT_H

#include "store/store.h"

struct jv;

struct sandbox_keep {
	struct store *store; /* borrowed */
	struct wpath dir;    /* in it; nothing else is there */
	/* A directory of this machine for restored files. It is made when it is missing, and may be removed at any
	   time that no command runs. */
	const char *cache;
	uint64_t size_max;      /* bytes of its files; 0: SNAPSHOT_SIZE_DEFAULT */
	struct store *quota;    /* asked whether what is new fits; NULL: everything fits */
	const struct jv *about; /* members of head.json for people: whose it is; NULL: none */
	bool read_only;         /* what a command leaves is dropped */
};

struct snapshot_info {
	struct str id;         /* hash of its manifest */
	uint64_t files, bytes; /* of what is restored */
	struct str saved;      /* when */
	const struct jv *about;
};
/* ERR_NOT_FOUND: there is none. */
int snapshot_show(struct store *store, struct ctx *ctx, struct snapshot_info *ret, struct err *err);
/* Removes what no head names: what a process that was killed has left. Waits for a command that is saving. *ret_bytes
   is what became free. */
int snapshot_sweep(struct store *store, struct ctx *ctx, uint64_t *ret_bytes, struct err *err);
/* Removes the snapshot. */
int snapshot_drop(struct store *store, struct ctx *ctx, struct err *err);
/* Removes the restored files of one snapshot that no command uses now. */
void snapshot_forget(const char *cache);

/* Where the snapshots of a workspace are, one directory for each. */
#define SNAPSHOTS_DIR ".stead/sandbox"
/* Calls `each` for every directory in `dir`, with a store of its own; 0 continues. */
typedef int (*snapshot_fn)(void *arg, struct ctx *ctx, struct str name, struct store *store, struct err *err);
int snapshots_each(struct store *store, struct ctx *ctx, struct wpath dir, snapshot_fn each, void *arg,
		   struct err *err);
/* snapshot_sweep() of each of them. */
int snapshots_sweep(struct store *store, struct ctx *ctx, struct wpath dir, uint64_t *ret_bytes, struct err *err);

#endif
