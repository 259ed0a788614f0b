/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory of an index: segments, and a manifest that names those that count, with the revision up to which they
 * are complete. The manifest is replaced as a whole by the holder of the lock file; readers need no lock. All of it may
 * be deleted at any time.
 */
#ifndef STEAD_HOME_SEARCH_SEARCH_DISK_H
#define STEAD_HOME_SEARCH_SEARCH_DISK_H

#include "index/words.h"

#define INDEX_VECTORS  "vectors-" /* and which: search_meaning.c */
#define INDEX_NAME_LEN 18         /* "s-" and 16 digits */

struct index_manifest {
	uint64_t generation; /* 0: there is none */
	uint64_t revision;
	struct str *names; /* oldest first */
	size_t count;
};

/* Makes the directory and those above it. */
int index_dir_make(const char *dir, struct err *err);
/* One that is missing, of another version or damaged counts as none. */
void index_manifest_read(struct arena *arena, const char *dir, struct index_manifest *ret);
/* For the fuzzer and the function above. */
bool index_manifest_parse(struct arena *arena, struct str text, struct index_manifest *ret);
int index_manifest_write(struct arena *arena, const char *dir, const struct index_manifest *manifest, struct err *err);
/* -1: another process holds it. Close it to release the lock. */
int index_lock(const char *dir);
/* Opens all segments of the newest manifest, in `ret_segments` (each to be unrefed). ERR_CORRUPT or another: build
   again. */
int index_open(struct arena *arena, const char *dir, struct index_manifest *ret_manifest,
	       struct words_segment ***ret_segments, struct err *err);
/* Saves a segment under a new name. */
int index_save(struct arena *arena, const char *dir, const struct words_segment *segment, struct str *ret_name,
	       struct err *err);
/* All files were compared with the index just now; how long ago any process did, INT64_MAX: never. */
void index_stamp(const char *dir);
int64_t index_stamp_age(const char *dir);
/* Removes every segment that the manifest does not name. The lock is held. */
void index_sweep_dir(struct arena *arena, const char *dir, const struct index_manifest *manifest);
/* Removes the vectors; a process that has them open starts again. */
void index_drop_vectors(struct arena *arena, const char *dir);

#endif
