/* SPDX-License-Identifier: Apache-2.0 */
/* What run.c and run_merge.c share: the blocks of a run. */
#ifndef STEAD_REVISIONS_RUN_INTERNAL_H
#define STEAD_REVISIONS_RUN_INTERNAL_H

#include "base/buf.h"
#include "revisions/run.h"

#define PAYLOAD     (RUN_BLOCK - 8)
#define PER_BLOCK   (PAYLOAD / sizeof(struct run_entry))
#define PATH_ROOM   (PAYLOAD - 4)        /* after the bytes in use and the mark that a path had to go further */
#define PATH_FULL   (PATH_ROOM * 7 / 10) /* how full a block of paths is on average */
#define PATH_FIXED  17                   /* bytes of a path without its version */
#define BLOCK_CACHE 8
#define BLOCKS_MAX  256 /* in the cache of a run that a call asks for many blocks of, */
#define MISSES_MANY 64  /* that is, for so many that were not in the cache */
#define GROWN_NS    NS_PER_S

struct run_header {
	char magic[16];
	uint32_t order, entry_size;
	struct run_head head;
	uint64_t buckets;     /* blocks that a hash may fall into */
	uint64_t path_blocks; /* with those that the last buckets needed besides */
	uint64_t path_count;
	uint64_t mark_bytes; /* of checkpoints */
};

struct run_cached {
	uint64_t block; /* 0: free */
	char *bytes;    /* the payload */
};

/* Where a read is a request, a run of which several blocks were asked for is read in stretches of STRETCH blocks. */
#define STRETCH       64
#define STRETCHES_MAX 64

struct run {
	struct store *store; /* borrowed */
	struct run_header h;
	struct run_cached cache[BLOCK_CACHE];
	unsigned misses;
	struct run_cached *large; /* BLOCKS_MAX of them; NULL: there is only the small cache */
	int64_t grown_ns;         /* when that was made */
	char **stretches;         /* by their number; NULL: not read */
	size_t stretch_count;
};

struct wpath run_path_of(struct arena *arena, uint64_t first, uint64_t last);
struct run_header run_header_new(const struct run_head *head);
uint64_t run_entry_blocks(const struct run_header *h);
uint64_t run_mark_blocks(const struct run_header *h);
uint64_t run_bucket_of(uint64_t hash, uint64_t buckets);
/* Bytes of a path in a block. */
static inline size_t run_path_size(const struct run_path *p)
{
	return PATH_FIXED + (size_t)p->version_len;
}
/* Puts a path into a block. False: there is no room, and the block says that the search continues after it. */
bool run_put_path(char *payload, const struct run_path *p);
/* The path at `at` of a block, and how many bytes it takes; 0: that was the last one. */
size_t run_get_path(const char *payload, size_t at, struct run_path *ret);
/* Checkpoints as they are in the last blocks. */
void run_put_marks(struct buf *out, const struct rev_checkpoint *marks, size_t count);
/* Writes the checksum before the payload of a block. */
void run_seal(char *block, uint64_t number, uint64_t first);
/* The payload of one block, from the cache if it is there. Stays until the next call. */
int run_block(struct run *run, struct ctx *ctx, uint64_t block, const char **ret, struct err *err);

#endif
