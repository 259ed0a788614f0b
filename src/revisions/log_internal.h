/* SPDX-License-Identifier: Apache-2.0 */
/* The log in memory: for log.c, log_journal.c, retain.c and carry.c only. */
#ifndef STEAD_REVISIONS_LOG_INTERNAL_H
#define STEAD_REVISIONS_LOG_INTERNAL_H

#include "base/limits.h"
#include "revisions/line.h"

#define SEGMENT_READ (512 * MIB)
#define SEGMENT_END  20
#define NOTE_BYTES   96 /* about what a record's "done" line takes */

struct segment {
	uint64_t first;  /* revision */
	uint64_t parsed; /* bytes taken in: up to the last whole line */
	uint64_t size;   /* bytes in all; more than parsed when a writer was cut off in its last line */
	char version[64];
	size_t version_len;
	char end[SEGMENT_END]; /* the last bytes that were taken in: if they changed, retention has cut the file */
	size_t end_len;
	bool exists, sealed;
};

#define BATCH_MAX    (256 * MIB) /* one append: moving a directory is one, however many files it has */
#define APPEND_TRIES 1000

/* Something that waits to be logged. */
struct entry {
	struct rev_draft *drafts;
	struct str *bodies; /* one formatted record each, without number and sum */
	size_t count;
	struct rev_step *step; /* of the only draft, or NULL */
	struct str note;       /* instead of drafts: finished lines (checkpoint, horizon) */
	bool seal;             /* instead of drafts: the tail segment ends here */
	size_t bytes;
	int64_t deadline_ns; /* of its call; 0: none */
	bool stale;          /* in this try of the batch */
	bool finished;
	int result;
	struct err err;
	pthread_cond_t wake; /* it is finished or leads next; one for each entry, so that nobody is woken in vain */
	struct entry *next;
};

/* The journal that a log continues in. */
struct log_journal {
	struct store *at;  /* borrowed; NULL: there is none */
	struct wpath path; /* in the log's memory */
	bool begun;        /* the segments before it have been read: new lines come from it */
	uint64_t entry;    /* the last one that was taken in */
	int64_t known_ns;  /* when `entry` was known to be the last one; 0: never */
	bool skipped;      /* entries were cut away before they were read here */
	bool one_step;     /* a change is made with its entry */
	uint64_t bytes;
	struct journal_entry *recent; /* the newest entries (malloc), for a store that gathers them */
	size_t recent_count, recent_bytes;
};

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
	struct actor last_actor; /* its strings are shared: most records have the same actor as the one before */
	struct entry *queue, **queue_end;
	bool leading;
	struct log_journal journal;
};

struct wpath segment_path(struct arena *arena, uint64_t first);
/* The lowest number in the names of the segments, and the lowest one above `above`; 0: there is none. */
int segments_find(struct store *meta, struct ctx *ctx, uint64_t above, uint64_t *ret_lowest, uint64_t *ret_next,
		  struct err *err);
/* The number in a line that begins with the key `kind` ("rev", "done", "abort"); 0: it is another line. */
uint64_t line_number(struct str line, const char *kind);

/* --- between log.c and log_journal.c; the lock is held --- */

/* Every whole line of `bytes`; `offset` as in a record. */
void log_take_lines(struct revlog *log, struct str bytes, uint64_t offset);
/* Notes and lines of a batch that are not stale; `made`: the version of the change that is made with it (ptr NULL:
   no change). *ret_notes_len: where the records begin. */
void log_build_batch(struct revlog *log, struct entry *taken, struct str made, struct buf *out, size_t *ret_notes_len);
/* The batch is durable: its records enter the table, and its notes are not written again. */
void log_take_batch(struct revlog *log, struct entry *taken, struct str bytes, uint64_t offset, size_t notes_len,
		    size_t notes_taken);

/* Takes in the entries that were added since the last time. */
int journal_take(struct revlog *log, struct ctx *ctx, struct err *err);
/* Adds the batch as one entry. The lock is released while waiting. */
int journal_lead(struct revlog *log, struct entry *taken, struct err *err);
/* Adds finished lines as one entry, and takes them in; once. The lock is released while waiting. */
int journal_take_up(struct revlog *log, struct ctx *ctx, struct str lines, struct err *err);
void journal_release(struct log_journal *j);
/* The line of a record whose entry is `entry`; ERR_NOT_FOUND when it is not there. The lock is not held. */
int journal_line(struct revlog *log, struct ctx *ctx, uint64_t entry, uint64_t number, struct str *ret_line,
		 struct err *err);
/* The same, searched for in all entries that are kept. */
int journal_find_line(struct revlog *log, struct ctx *ctx, uint64_t number, struct str *ret_line, struct err *err);

#endif
