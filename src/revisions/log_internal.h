/* SPDX-License-Identifier: Apache-2.0 */
/* The log in memory: for the files log*.c, retain.c and carry.c only. Everything here is called with the lock held,
   unless it says otherwise. */
#ifndef STEAD_REVISIONS_LOG_INTERNAL_H
#define STEAD_REVISIONS_LOG_INTERNAL_H

#include "base/limits.h"
#include "revisions/line.h"

#define SEGMENT_BYTES ((uint64_t)4 * 1024 * 1024)
#define SEGMENT_READ  (512 * MIB)
#define SEGMENT_END   20
#define NOTE_BYTES    96                  /* about what a record's "done" line takes */
#define BATCH_MAX     (256 * MIB)         /* one append: moving a directory is one, however many files it has */
#define GAP_MAX       ((uint64_t)1 << 20) /* numbers that may be missing between two records */
#define APPEND_TRIES  1000

/* The segment that is being written. */
struct tail {
	uint64_t first;  /* revision */
	uint64_t parsed; /* bytes taken in: up to the end of the last whole append */
	uint32_t line;   /* the number of the next line */
	uint64_t size;   /* bytes in all; more than parsed when a writer was cut off */
	char version[64];
	size_t version_len;
	char end[SEGMENT_END]; /* the last bytes that were taken in: if they changed, retention has cut the file */
	size_t end_len;
	bool exists, sealed;
	uint64_t next;   /* sealed: the first revision of the next one */
	uint64_t before; /* of the segment that this one follows, which was there when this was begun; 0: not known */
};

/* Something that waits to be logged. */
struct entry {
	struct rev_draft *drafts;
	struct str *bodies; /* one formatted record each, without number and sum */
	size_t count;
	struct rev_step *step;  /* of the drafts, or NULL */
	struct rev_record **of; /* instead of drafts: records that are made by `step`, or aborted; `note` says so */
	size_t of_count;
	bool aborts;                         /* they are aborted */
	bool even_helped;                    /* also when another process may be about to make them */
	const struct rev_obstacle *obstacle; /* only as long as this is in their way; NULL: whatever is */
	struct str note;                     /* instead of drafts: lines without their sums, each with a newline */
	bool seal;                           /* instead of drafts: the tail segment ends here */
	bool end_torn; /* instead of drafts: says that what a killed writer left at the end is void */
	size_t bytes;
	int64_t deadline_ns; /* of its call; 0: none */
	bool stale;          /* in this try of the batch */
	bool finished;
	int result;
	struct err err;
	pthread_cond_t wake; /* it is finished or leads next; one for each entry, so that nobody is woken in vain */
	struct entry *next;
};

/* Entries of the journal that were read for one of their lines: the next line that is wanted is often among them. */
#define KEPT_ENTRIES 16384
struct kept_entry {
	uint64_t number; /* 0: free */
	struct str bytes;
	uint64_t first;   /* the first revision in it; 0: it has none */
	uint32_t index;   /* of that one's line */
	uint32_t *starts; /* of the lines from that one on */
	size_t count;
};
struct kept_entries {
	pthread_mutex_t lock;                     /* its own: lines are also read without the log's lock */
	struct kept_entry *entries[KEPT_ENTRIES]; /* by number; on the heap */
	size_t bytes;
	uint64_t last; /* the entry that was asked for last */
	unsigned near; /* how often in turn it was near the one before */
	int credit;    /* for reading a stretch of entries: grows with each question, and more so if it was worth it */
};

/* The journal that a log continues in. */
struct log_journal {
	struct store *at; /* borrowed; NULL: there is none */
	struct wpath path;
	bool begun;        /* the segments before it have been read: new lines come from it */
	uint64_t entry;    /* the last one that was taken in */
	int64_t known_ns;  /* when `entry` was known to be the last one; 0: never */
	bool skipped;      /* entries were cut away before they were read here */
	uint64_t first_in; /* the first revision that was read from it; 0: not known */
	bool one_step;     /* a change is made with its entry */
	bool write_step;   /* a write is */
	uint64_t bytes;
	struct journal_entry *recent; /* the newest entries (malloc), for a store that gathers them */
	size_t recent_count, recent_bytes;
	struct kept_entries kept;
};

/* What is known of a path. */
struct path_slot {
	struct path_slot *next;
	uint64_t hash;
	struct str path;
	uint64_t last;    /* its newest record in memory; 0: none */
	uint64_t older;   /* its newest record in the index; 0: none */
	bool older_known; /* the index has been asked */
	struct str older_version;
};

/* A record that was loaded by its number. */
struct loaded {
	struct loaded *next;
	struct rev_record rec;
};

/* A checkpoint. */
struct mark {
	struct rev_checkpoint c;
	bool saved; /* in the index */
};

/* Where damage was found, for the message. */
struct damage {
	bool found;
	bool at_end;      /* nothing that can be read follows it: nobody knows how the log continues */
	bool before_next; /* the next record shows what was lost: */
	uint32_t lines;   /* so many lines */
	bool cut;         /* the log ends before a revision that it had */
	struct rev_place place;
	uint64_t *numbers; /* whose lines cannot be read, in order */
	size_t count, cap;
	uint64_t lost_first, lost_last; /* as in the head of a run */
};

/* Lines that were read ahead. */
struct window {
	uint64_t at; /* of the segment; 0: empty */
	uint64_t offset;
	struct buf bytes;
	uint64_t last; /* the number that was asked for last: whether to read ahead, and in which direction */
};

struct revlog {
	struct store *meta;
	struct store *run_store;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct arena *memory; /* strings and records */
	struct arena *batch;  /* the leader's */
	struct arena *names;  /* what stays when the memory is cleared */
	struct tail tail;
	uint64_t sealed_bytes; /* of the segments before the tail, unless they have to be counted (recount) */
	struct run *runs[RUN_MAX];
	size_t run_count;
	bool runs_in_use;            /* a caller is in the middle of one: they must not be closed */
	bool index_is_broken;        /* the log has to be read again; done at the next trim */
	struct rev_record **records; /* [i] has number low + i; NULL: a number that was never used */
	size_t record_count, record_cap;
	uint64_t low;   /* the number of records[0] */
	uint64_t first; /* the oldest number that is kept, and the one after the newest when there is none */
	bool recount;   /* another process has cut the log since its bytes were counted */
	bool booted;
	struct path_slot **slots;
	size_t slot_count, slot_cap;
	struct loaded **loaded;
	size_t loaded_count, loaded_cap;
	struct strmap *mark_names; /* to their indexes in `marks` */
	struct mark *marks;
	size_t mark_count, mark_cap;
	bool marks_loaded;       /* those of the index are among them */
	struct actor last_actor; /* its strings are shared: most records have the same actor as the one before */
	struct buf notes;        /* done and abort lines, without sums, that wait for the next append */
	struct entry *queue, **queue_end;
	bool leading;
	bool has_reserve; /* the leader's */
	struct damage damage;
	struct window window;
	struct log_journal journal;
};

struct wpath segment_path(struct arena *arena, uint64_t first);
struct segment {
	uint64_t first; /* revision */
	struct store_stat stat;
};
/* All segments, in order of their numbers, in ctx's arena. The lock is not needed. */
int segments_list(struct store *meta, struct ctx *ctx, struct segment **ret, size_t *ret_count, struct err *err);
/* The lowest number in the names of the segments, and the lowest one above `above`; 0: there is none. The lock is not
   needed. */
int segments_find(struct store *meta, struct ctx *ctx, uint64_t above, uint64_t *ret_lowest, uint64_t *ret_next,
		  struct err *err);

/* --- the table (log_table.c) --- */

void table_init(struct revlog *log);
void table_free(struct revlog *log);
void table_add(struct revlog *log, struct rev_record *rec);
/* The record was aborted. */
void table_unlink(struct revlog *log, struct rev_record *rec);
/* A record in memory, damaged ones included; NULL: it is not there. */
struct rev_record *table_at(struct revlog *log, uint64_t number);
/* Forgets the records before `horizon`. Their memory stays, because another thread may be looking at one of them. */
void table_forget(struct revlog *log, uint64_t horizon);
/* The numbers from the head's on up to `until` have lines that cannot be read. */
void table_lose(struct revlog *log, uint64_t until);
/* The record with this number cannot be trusted. */
void table_note_damaged(struct revlog *log, uint64_t number);
/* The log has been read: records that are not done, before numbers that were set aside, have lost their "done". */
void table_lose_open(struct revlog *log);
/* The number was lost by damage, and nothing is known of it. */
void table_skip(struct revlog *log, uint64_t number);
struct str table_keep(struct revlog *log, struct str s);
/* Copies the strings of a record that was parsed into the log's memory, except the path. */
void table_keep_record(struct revlog *log, struct rev_record *rec);
void checkpoint_put(struct revlog *log, const struct rev_checkpoint *c);
/* *ret_has: there is a checkpoint of this name. */
int checkpoint_find(struct revlog *log, struct ctx *ctx, struct str name, struct rev_checkpoint *ret, bool *ret_has,
		    struct err *err);
/* Opens the index. `names`: what is in meta, as far as the index goes; NULL: it is listed. */
int table_open_runs(struct revlog *log, struct ctx *ctx, const struct store_page *names, struct err *err);
/* Forgets and removes the index. */
void table_drop_runs(struct revlog *log, struct ctx *ctx);
/* Retention has cut the log at `horizon`: the index gets the new places of the lines that are left. */
void table_cut_runs(struct revlog *log, struct ctx *ctx, uint64_t horizon);
/* Moves settled records to a new run, if there are at least `least` of them. */
void table_spill(struct revlog *log, struct ctx *ctx, size_t least);
/* The same when the log is closed. */
void table_spill_at_close(struct revlog *log, struct ctx *ctx);

/* --- reading (log_read.c) --- */

/* Takes in what was added since the last time. */
int log_take_tail(struct revlog *log, struct ctx *ctx, struct err *err);
/* Reads everything that there is. */
int log_load(struct revlog *log, struct ctx *ctx, struct err *err);
/* Takes in the lines of one whole append, which are in `place`. */
void log_take_batch_lines(struct revlog *log, struct str bytes, struct rev_place place, bool in_segment);
/* The line of a record, checked. */
int log_line(struct revlog *log, struct ctx *ctx, uint64_t number, const struct rev_place *place, struct str *ret_line,
	     struct err *err);
/* The log ends before `number`, which it had: all from its end to there is lost. */
void log_lose_end(struct revlog *log, uint64_t number);
/* True when no record follows the damage: nobody knows how the log continues. */
bool log_end_is_damaged(const struct revlog *log);
int log_damaged(const struct revlog *log, uint64_t number, struct err *err);
void tail_set_version(struct tail *t, struct str version);
void tail_set_end(struct tail *t, struct str taken);
void tail_start(struct revlog *log, uint64_t first);

/* --- between log.c and log_journal.c --- */

/* Notes and lines of a batch that are not stale; `made`: the version of the change that is made with it (ptr NULL:
   no change). The first line is `seq`. *ret_notes_len: where the records begin. */
void log_build_batch(struct revlog *log, struct entry *taken, struct str made, struct rev_seq seq, struct buf *out,
		     size_t *ret_notes_len);
/* The batch is durable: its records enter the table, and its notes are not written again. `place` is of the batch. */
void log_take_batch(struct revlog *log, struct entry *taken, struct str bytes, struct rev_place place, size_t notes_len,
		    size_t notes_taken);
/* Finishes lines that have no sums. */
void log_finish_lines(struct buf *out, struct str lines, struct rev_seq *seq);

/* Takes in the entries of a page that follow what is known. */
void journal_take_page(struct revlog *log, const struct journal_page *page);
/* Takes in the entries that were added since the last time. */
int journal_take(struct revlog *log, struct ctx *ctx, struct err *err);
/* Adds the batch as one entry. The lock is released while waiting. */
int journal_lead(struct revlog *log, struct entry *taken, struct err *err);
/* Adds lines without sums as one entry, and takes them in; once. The lock is released while waiting. */
int journal_take_up(struct revlog *log, struct ctx *ctx, struct str lines, struct err *err);
void journal_release(struct log_journal *j);
/* The line of a record whose entry is `entry`, and which line of the entry it is; ERR_NOT_FOUND when it is not there.
 */
int journal_line(struct revlog *log, struct ctx *ctx, uint64_t entry, uint64_t number, struct str *ret_line,
		 uint32_t *ret_index, struct err *err);
/* The same, searched for in all entries that are kept. The lock is not held. */
int journal_find_line(struct revlog *log, struct ctx *ctx, uint64_t number, struct str *ret_line, struct err *err);

#endif
