/* SPDX-License-Identifier: Apache-2.0 */
/* What the log consists of in memory: for log.c and retain.c only. */
#ifndef STEAD_STORE_REVISIONS_LOG_OWN_H
#define STEAD_STORE_REVISIONS_LOG_OWN_H

#include "base/limits.h"
#include "store/revisions/line.h"

#define SEGMENT_READ (512 * MIB)
#define SEGMENT_END  20

struct segment {
	uint64_t first;  /* revision */
	uint64_t parsed; /* bytes taken in: up to the last whole line */
	uint64_t size;   /* bytes in all; more than parsed when a writer was cut off in its last line */
	char version[64];
	size_t version_len;
	char end[SEGMENT_END]; /* the last bytes that were taken in: they tell when retention has cut the file */
	size_t end_len;
	bool exists, sealed;
};

struct entry;

struct path_slot {
	struct rev_record *last;
	struct path_slot *next;
	uint64_t hash;
	struct str path;
};

struct revlog {
	struct store *meta;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct arena *memory; /* strings and records; with the lock held */
	struct arena *batch;  /* the leader's */
	struct segment *segments;
	size_t segment_count, segment_cap;
	struct rev_record **records; /* [i] has number first + i; NULL: a number that was never used */
	size_t record_count, record_cap;
	uint64_t first; /* the oldest number that is kept, and the one after the newest when there is none */
	bool recount;   /* another process has cut the log since its bytes were counted */
	struct path_slot **slots;
	size_t slot_count, slot_cap;
	struct rev_checkpoint *checkpoints;
	size_t checkpoint_count, checkpoint_cap;
	struct buf notes;                     /* done and abort lines that wait for the next append */
	struct rev_record *group, *group_end; /* records of a group whose end has not been read yet; linked by next */
	struct actor last_actor;              /* as kept: most records are by the same as the one before */
	struct entry *queue, **queue_end;
	bool leading;
};

struct wpath segment_path(struct arena *arena, uint64_t first);
/* The lowest number in the names of the segments that are there, and the lowest above `above`; 0: there is none. */
int segments_find(struct store *meta, struct ctx *ctx, uint64_t above, uint64_t *ret_lowest, uint64_t *ret_next,
		  struct err *err);
/* The number of a record's line, of {"done": and {"abort": lines with `kind`; 0: it is none. */
uint64_t line_number(struct str line, const char *kind);

#endif
