/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log of a revisions layer: JSON lines, and what is known of them in memory. Where files can grow cheaply they are
 * stored in segments in meta's log/; elsewhere in a journal (store/journal.h), with one entry per batch
 * (log_journal.c).
 *
 *   log/<first revision, 16 digits>.jsonl      at most about SEGMENT_BYTES, then sealed
 *   {"rev":7,"time":…,"op":"write","path":"a.md","before":null,"after":{"size":5,"hash":"…","in":"log"},
 *    "by":{"user":"ann"},"data":"hello","sum":"…"}
 *   {"done":7,"version":"…","sum":"…"}          the change is visible; written with the next batch, never waited for
 *   {"abort":7,"sum":"…"}                       another writer was first
 *   {"checkpoint":"before-refactor","rev":7,"time":…,"sum":"…"}
 *   {"help":7,"sum":"…"}                        another process is about to apply it (journals only)
 *   {"seal":9,"sum":"…"}                        the next segment starts with revision 9
 *   {"horizon":5,"sum":"…"}                     revisions before 5 are no longer kept (retain.c)
 *
 * A line whose sum does not fit is skipped: it is the torn end of a killed writer, and was never acknowledged. Records
 * that form one change (a move, a removed directory) say how many of them follow ("left"); a group whose end is missing
 * is skipped as a whole, so a kill never leaves half of a move.
 */
#ifndef STEAD_REVISIONS_LOG_H
#define STEAD_REVISIONS_LOG_H

#include <pthread.h>

#include "base/buf.h"
#include "revisions/revisions.h"
#include "store/journal.h"

#define REV_INLINE_MAX ((size_t)64 * 1024) /* larger contents are blobs */

#define REV_IN_JOURNAL UINT32_MAX

struct rev_record {
	struct revision r; /* strings in the log's own memory */
	bool done;
	bool helped;       /* another process may have applied it */
	bool doubted;      /* done before the machine was restarted: it may not have reached the disk */
	uint64_t left;     /* records of the same group that follow */
	uint64_t piece[2]; /* appends whose bytes are a blob of their own: its hash */
	/* Where its line is; with the lock held, since retention moves it. */
	uint32_t segment; /* index, or REV_IN_JOURNAL */
	uint64_t offset;  /* in the segment, or the number of the journal's entry */
	uint32_t length;
	struct rev_record *prev, *next; /* of the same path; aborted ones are not linked */
};

struct rev_draft {
	enum rev_op op;
	struct wpath path;
	struct str other;
	struct rev_state before, after;
	uint64_t first_seen;           /* revlog_first() when a state of another path was looked at; else 0 */
	struct str data;               /* REV_LOG, or what an append adds, unless it is a blob: */
	struct rev_state piece;        /* what an append adds; where is REV_LOG or REV_BLOB */
	const struct rev_record *base; /* the path's last record as the drafter saw it */
	int64_t time_ns;               /* filled in by revlog_append, as is the actor */
	struct actor actor;
	struct rev_record *record; /* out */
};

/* The change of a draft, for a store that can make it in the same step as its record. */
struct rev_step {
	enum journal_change change;
	struct store_cond cond;
	struct str content;
	struct str version; /* that the file gets */
	/* Out. */
	bool made;    /* logged and made; otherwise it must still be made */
	bool refused; /* on failure: the file did not meet the condition, and nothing was logged */
	struct store_stat stat;
};

struct revlog;

/* Reads the log. The stores are borrowed. With `at`, the log continues in its journal `journal`; existing segments
   (from a bundle, or from before) are its beginning. NULL: segments only. */
int revlog_open(struct store *meta, struct store *at, struct wpath journal, struct ctx *ctx, struct revlog **ret_log,
		struct err *err);
void revlog_close(struct revlog *log);

/* Logs all drafts next to each other and returns when they are as durable as meta is. ERR_CONFLICT with nothing logged
   when a path got a newer record than its draft's `base`: look and draft again. Concurrent calls share an append.
 */
int revlog_append(struct revlog *log, struct ctx *ctx, struct rev_draft *drafts, size_t count, struct err *err);
/* The same for one draft and its change, which is made in the same step where that can be done. */
int revlog_append_step(struct revlog *log, struct ctx *ctx, struct rev_draft *draft, struct rev_step *step,
		       struct err *err);
/* The change is visible as `version` (empty: removed). Written with a later append. */
void revlog_done(struct revlog *log, struct rev_record *record, struct str version);
/* The change was not made. Flush soon, or another process may make it. */
void revlog_abort(struct revlog *log, struct rev_record *record);
/* Notes in the log that this process is about to make the change for its owner. */
int revlog_help(struct revlog *log, struct ctx *ctx, struct rev_record *record, struct err *err);
int revlog_checkpoint(struct revlog *log, struct ctx *ctx, struct str name, uint64_t number, struct err *err);
/* Ends the tail segment, so that it can be cut. */
int revlog_seal(struct revlog *log, struct ctx *ctx, struct err *err);
/* From now on what is before `number` is not kept: forgotten here, and by every process before it appends again. */
int revlog_set_horizon(struct revlog *log, struct ctx *ctx, uint64_t number, struct err *err);
/* Adds finished lines of another log, whose numbers continue this one's. ERR_CONFLICT with nothing added when another
   process was first. */
int revlog_take_up(struct revlog *log, struct ctx *ctx, struct str lines, struct err *err);
/* Writes the notes that revlog_done and revlog_abort left. */
int revlog_flush(struct revlog *log, struct ctx *ctx, struct err *err);
/* Takes in what other processes appended. */
int revlog_refresh(struct revlog *log, struct ctx *ctx, struct err *err);

/* The log's lock: records may be looked at while it is held, and their constant fields after. */
void revlog_lock(struct revlog *log);
void revlog_unlock(struct revlog *log);
/* With the lock held. */
uint64_t revlog_head(const struct revlog *log);
struct rev_record *revlog_last(struct revlog *log, struct wpath path); /* newest record of the path, or NULL */
struct rev_record *revlog_at(struct revlog *log, uint64_t number);     /* NULL: not kept */
uint64_t revlog_first(const struct revlog *log);                       /* oldest number that is kept */
/* 0 when the state after revision `number` is still kept; otherwise an error that says what is. */
int revlog_keeps(const struct revlog *log, uint64_t number, struct err *err);
const struct rev_checkpoint *revlog_checkpoints(const struct revlog *log, size_t *ret_count);
/* Waits on new records until `deadline_ns` (monotonic); the lock is released during the wait. */
void revlog_wait(struct revlog *log, int64_t deadline_ns);
/* True when a change can be made in the same step as its record. The lock is held. */
bool revlog_one_step(const struct revlog *log);
/* Waits for another entry of the journal until `deadline_ns`. False: the store cannot wait for one. The lock is not
   held. */
bool revlog_listen(struct revlog *log, struct ctx *ctx, int64_t deadline_ns);
/* Removes what the journal has before the horizon, which is set already. */
int revlog_cut(struct revlog *log, struct ctx *ctx, uint64_t horizon, struct err *err);

/* True when every record is done and the log says so; then where the log ends: the tail segment's file name and size.
   Takes the lock itself. */
bool revlog_all_done(struct revlog *log, struct arena *arena, struct str *ret_name, uint64_t *ret_size);

/* Bytes of all segments. Takes the lock itself. *ret_recount: blobs may have been removed since the last
   call. */
uint64_t revlog_bytes(struct revlog *log, bool *ret_recount);

/* The bytes that a record holds inline. */
int revlog_read_data(struct revlog *log, struct ctx *ctx, const struct rev_record *record, struct str *ret_data,
		     struct err *err);
/* The same for a record before the horizon whose line is still there. ERR_NOT_FOUND: it is not. */
int revlog_read_dropped(struct revlog *log, struct ctx *ctx, uint64_t number, struct str *ret_data, struct err *err);

#endif
