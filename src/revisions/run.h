/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs: the index of the log. A run is a file that never changes and says, for each revision of a range of numbers,
 * where its line is and which revision of the same path came before it; and for each path that was changed in that
 * range, which change was the last. So one revision, the newest revision of a path, or the one that was in effect at
 * an old number is found without reading the log.
 *
 * Runs are derived from the log: without them it is read from its beginning, and they are made again. They are written
 * without a sync, and each block has a checksum. A process that reads much of the log's end adds a run for it; runs
 * whose sizes are near each other are merged, so there are few of them at any length of the log.
 *
 *   index/<first>-<last>          decimal, 16 digits each
 *
 * A run is made of blocks of RUN_BLOCK bytes, each with a checksum of the rest: one header; the entries, by number; the
 * paths, by their hash; the checkpoints. So every question costs one block, also where reading is a request.
 */
#ifndef STEAD_REVISIONS_RUN_H
#define STEAD_REVISIONS_RUN_H

#include "revisions/revisions.h"

#define RUN_BLOCK       4096
#define RUN_VERSION_MAX 64 /* bytes of a file's version */
#define RUN_MAX         32 /* runs in use at once; many more than merging leaves */

#define REV_IN_JOURNAL UINT32_MAX

/* Where a line is. */
struct rev_place {
	uint64_t at;     /* the first revision of its segment, or the number of its entry in the journal */
	uint32_t offset; /* in the segment; REV_IN_JOURNAL: it is in a journal */
	uint32_t length;
	uint32_t line; /* which line of the segment or entry it is, from 0 */
	uint32_t unused;
};

enum run_flag {
	RUN_ABORTED = 1,
	RUN_NEVER = 2, /* the number was never used */
};

/* One revision. */
struct run_entry {
	struct rev_place place;
	uint64_t prev;  /* the revision of the same path before it; 0: none */
	uint64_t jump;  /* an earlier one, far enough back that any of them is reached in few steps */
	uint64_t base;  /* of a run of appends: the revision that it began with; otherwise this one */
	uint32_t depth; /* how many revisions of the path came before */
	uint32_t flags;
};

/* A path that was changed in the range of a run. */
struct run_path {
	uint64_t hash;
	uint64_t last; /* the last revision of it there that was not aborted */
	uint8_t version_len;
	char version[RUN_VERSION_MAX]; /* that the file had after it */
};

/* What a run says about the log up to its last revision. */
struct run_head {
	uint64_t first, last;
	struct rev_place end; /* of the last revision's line; its segment or entry is where reading continues */
	uint64_t horizon;     /* the oldest revision that was kept */
	uint64_t bytes;       /* of the log before the end */
	/* Revisions from the first to the last of which some were lost by damage; 0: none were. */
	uint64_t lost_first, lost_last;
};

struct run;

struct run_build {
	struct run_head head;
	struct run_entry *entries; /* head.last - head.first + 1 */
	struct run_path *paths;    /* each hash and path once; sorted by run_write() */
	size_t path_count;
	const struct rev_checkpoint *checkpoints;
	size_t checkpoint_count;
};

/* Writes a run into `store`. */
int run_write(struct store *store, struct ctx *ctx, struct run_build *build, struct err *err);
/* Runs whose ranges follow each other, to become one. */
struct run_merge {
	struct run *const *runs;
	size_t count;
	/* Whether the revision `older` is one of the path of `newer`. */
	int (*is_before)(void *arg, struct ctx *ctx, uint64_t newer, uint64_t older, bool *ret, struct err *err);
	void *arg;
};
/* Writes what they have as one run, block by block: it takes the same memory whatever their size. */
int run_merge(struct store *store, struct ctx *ctx, const struct run_merge *merge, struct err *err);
/* Opens runs that together cover the longest range without a gap, from the lowest number on. Those that are damaged, or
   a part of a longer one, are removed. *ret_runs is in the order of their numbers. `names`: what is in the store, as
   far as the index goes; NULL: it is listed. */
int runs_open(struct store *store, struct ctx *ctx, const struct store_page *names, struct run *ret_runs[RUN_MAX],
	      size_t *ret_count, struct err *err);
/* Opens the run of this range; NULL: it is not there, or damaged. */
struct run *run_open(struct store *store, struct ctx *ctx, uint64_t first, uint64_t last);
void run_close(struct run *run);
const struct run_head *run_head(const struct run *run);
/* Gives back what is in memory for a call that asked for many blocks. run_may_shrink(): it has been there for a while;
   a call that still needs it reads it again. */
void run_shrink(struct run *run);
bool run_may_shrink(const struct run *run);
/* ERR_CORRUPT: a block is damaged or gone; forget all runs and read the log. */
int run_entry(struct run *run, struct ctx *ctx, uint64_t number, struct run_entry *ret, struct err *err);
/* Calls `found` for each path with this hash (there may be several, or none) until it returns other than 0. */
int run_lookup(struct run *run, struct ctx *ctx, uint64_t hash,
	       int (*found)(void *arg, const struct run_path *path, struct err *err), void *arg, struct err *err);
int run_each_path(struct run *run, struct ctx *ctx, void (*each)(void *arg, const struct run_path *path), void *arg,
		  struct err *err);
/* All paths and all checkpoints of a run. Checkpoints are in ctx's arena. */
int run_paths(struct run *run, struct ctx *ctx, struct run_path **ret, size_t *ret_count, struct err *err);
int run_checkpoints(struct run *run, struct ctx *ctx, struct rev_checkpoint **ret, size_t *ret_count, struct err *err);
/* Which runs at the end of the list should become one: the index of the first of them; `count`: none. */
size_t runs_to_merge(struct run *const *runs, size_t count);
void run_remove(struct store *store, struct ctx *ctx, uint64_t first, uint64_t last);
void runs_remove_all(struct store *store, struct ctx *ctx);

#endif
