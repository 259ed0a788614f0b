/* SPDX-License-Identifier: Apache-2.0 */
/* The pieces of snapshots: manifests, what a command left, and the tree of restored files. */
#ifndef STEAD_SANDBOX_SNAPSHOT_INTERNAL_H
#define STEAD_SANDBOX_SNAPSHOT_INTERNAL_H

#include "base/buf.h"
#include "base/strmap.h"
#include "sandbox/sandbox_internal.h"
#include "sandbox/snapshot.h"

#define SNAPSHOT_HOME  "home"  /* first element of paths in a manifest: the home directory, */
#define SNAPSHOT_FILES "files" /* and what `exclude` names among the files */

enum snap_kind { SNAP_FILE = 'f', SNAP_DIR = 'd', SNAP_LINK = 'l', SNAP_GONE = 'w' };

struct snap_entry {
	enum snap_kind kind;
	struct str path; /* any bytes but NUL; no empty element, "." or ".." */
	uint32_t mode;
	int64_t mtime_ns;
	bool opaque;           /* SNAP_DIR: nothing of the files below shows through */
	uint64_t size, offset; /* SNAP_FILE: where its bytes are in the pack */
	size_t pack;           /* number of the pack; SNAP_NEW: not written yet */
	struct str hash;       /* SHA-256 in hex */
	struct str target;     /* SNAP_LINK */
	bool is_cover;         /* of a delta: only removes what is below its path */
};
#define SNAP_NEW SIZE_MAX

struct snap_pack {
	struct str hash; /* over the hashes of its files */
	uint64_t size;
};

/* Entries are sorted by path, each path once, so a directory comes before what is in it. */
struct manifest {
	struct snap_entry *entries;
	size_t count, cap;
	struct snap_pack *packs;
	size_t pack_count, pack_cap;
	uint64_t files, bytes;
};

/* Everything is in the arena and may point into `text`. ERR_CORRUPT. */
int manifest_parse(struct arena *arena, struct str text, struct manifest *ret, struct err *err);
int manifest_format(struct arena *arena, const struct manifest *m, struct str *ret, struct err *err);
/* `base` with the changes of `delta` (sorted) made to it. Packs that nothing uses any longer are left out. */
void manifest_apply(struct arena *arena, const struct manifest *base, const struct manifest *delta,
		    struct manifest *ret);
/* NULL: there is no such path. */
const struct snap_entry *manifest_find(const struct manifest *m, struct str path);
bool snap_entry_same(const struct snap_entry *a, const struct snap_entry *b);
void manifest_add(struct arena *arena, struct manifest *m, struct snap_entry entry);
void manifest_sort(struct manifest *m);

struct kept;
/* What the upper layers of a command have, as changes (snapshot_scan.c). Contents are hashed. `home` and `files` are
   the directories, -1: none. `kept` with a copy: they are not layers, and all that is in them is listed. */
int snapshot_scan(struct ctx *ctx, const struct kept *kept, int home, int files, const char *const *exclude,
		  uint64_t size_max, struct manifest *ret, struct err *err);
/* Opens the file of an entry below `home` or `files`. -errno. */
int snapshot_open(int home, int files, struct str path);

/* The newest snapshot of a store. `id` empty: there is none yet. */
struct snap_head {
	struct str id;
	struct store_cond cond; /* that it is still the same */
	struct manifest manifest;
};
/* Its id alone. */
int snapshot_id(struct store *store, struct ctx *ctx, struct str *ret, struct err *err);
int snapshot_head(struct store *store, struct ctx *ctx, struct snap_head *ret, struct err *err);
/* This start of this machine, as far as process numbers go; empty: not known. */
struct str snapshot_machine(struct arena *arena);
/* When the process was started, as the kernel counts it; "-": there is none. */
const char *snapshot_started(struct arena *arena, pid_t pid);
struct wpath snapshot_pack_path(struct arena *arena, struct str hash);

/* --- for a run --- */

/* A tree of restored files in the cache, in use as long as `lock` is open (snapshot_tree.c). */
struct kept {
	struct store *store; /* of the snapshot alone */
	struct str id;       /* empty: there is none yet */
	const char *dir;     /* has "home" and "files"; NULL: there is no snapshot yet */
	int lock;            /* -1: none */
	/* Of a command that has a copy of it rather than a layer above it. */
	bool is_copied;
	struct manifest copied;      /* what was copied, */
	int64_t copied_ns;           /* and when, by the clock of its files */
	const struct baseline *base; /* the files of the store next to it */
};
/* As root, files belong to `uid`. *ret is {.lock = -1} before, and is released whatever happens. */
int kept_restore(struct ctx *ctx, const struct sandbox_keep *keep, uid_t uid, gid_t gid, struct kept *ret,
		 struct err *err);
/* Copies it to "home" and "files" of the directory `work` of the command, as files of `uid`. What it says of files of
   the store wins over those. */
int kept_copy(struct ctx *ctx, struct kept *kept, const char *work, uid_t uid, gid_t gid, struct err *err);
/* What the command changed of its copy, when `all` is everything that is there now. */
void kept_compare(struct arena *arena, const struct kept *kept, const struct manifest *all, struct manifest *ret);
/* Saves what the command left on top of what was restored (snapshot_save.c). What another command saved in the
   meantime stays; where both changed a path, this one, which ends later, wins. */
int kept_save(struct ctx *ctx, const struct sandbox_keep *keep, const struct kept *kept, int home, int files,
	      const char *const *exclude, struct err *err);
/* The same for the job of a command that has run: a failure is one more thing that became of it, and part of the
   result. -ERR_CANCELLED. */
int kept_finish(struct ctx *ctx, const struct sandbox_job *job, const struct kept *kept, int home, int files,
		struct sandbox_result *ret);
void kept_release(struct kept *kept);

#endif
