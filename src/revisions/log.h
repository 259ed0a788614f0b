/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log of a revisions layer: JSON lines. Where files can grow cheaply they are stored in segments in meta's log/;
 * elsewhere in a journal (store/journal.h), with one entry per batch (log_journal.c).
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
 *   {"torn":31,"sum":"…"}                       the 31 bytes before it were never acknowledged
 *   {"lost":7,"sum":"…"}                        the line of revision 7 was damaged and has been set aside
 *
 * The last line of each append has "end" instead of "sum". What follows the last end is the beginning of an append that
 * was cut off: it was never acknowledged, is not read, and the next append says so ("torn"). So a batch is in the log
 * as a whole or not at all. Everything else that cannot be read is damage: the revisions in question cannot be read,
 * and the others can. Records that form one change (a move, a removed directory) say how many of them follow ("left").
 *
 * Only the end of the log is in memory. What is before it is found by its index (run.h).
 */
#ifndef STEAD_REVISIONS_LOG_H
#define STEAD_REVISIONS_LOG_H

#include <pthread.h>

#include "base/buf.h"
#include "revisions/revisions.h"
#include "revisions/run.h"
#include "store/journal.h"

#define REV_INLINE_MAX ((size_t)64 * 1024) /* larger contents are blobs */

struct rev_record {
	struct revision r; /* strings in the log's own memory */
	bool done;
	bool helped;           /* another process may have applied it */
	bool doubted;          /* done before the machine was restarted: it may not have reached the disk */
	bool damaged;          /* its line cannot be read, or a line about it: nothing else here is known */
	bool in_runs;          /* the index has it, so its prev is known */
	uint64_t left;         /* records of the same group that follow */
	struct rev_hash piece; /* appends whose bytes are a blob of their own: its hash */
	uint64_t prev;         /* the record of the same path before it; see revlog_prev() */
	struct rev_place place;
};

struct rev_draft {
	enum rev_op op;
	struct wpath path;
	struct str other;
	struct rev_state before, after;
	uint64_t first_seen;    /* revlog_first() when a state of another path was looked at; else 0 */
	struct str was;         /* the content before it, if that is REV_HERE */
	struct str data;        /* REV_LOG, or what an append adds, unless it is a blob: */
	struct rev_state piece; /* what an append adds; where is REV_LOG or REV_BLOB */
	uint64_t base;          /* the path's last record as the drafter saw it; 0: none, or none in memory */
	uint64_t other_base;    /* a copy: the same for its source */
	int64_t time_ns;        /* filled in by revlog_append, as is the actor */
	struct actor actor;
	struct str made;           /* of a group that is made in one step: the version that the file gets */
	struct rev_record *record; /* out */
};

/* The change of a draft, for a store that can make it in the same step as its record. */
struct rev_step {
	enum journal_change change;
	struct wpath path;
	struct store_cond cond;
	struct wpath from; /* a move: the other path, and its version */
	struct store_cond from_cond;
	struct str content;
	struct str version; /* that the file gets */
	/* JOURNAL_GROUP: the changes, and what of a draft they make is in its `made`. */
	const struct journal_item *items;
	size_t item_count;
	/* Out. */
	size_t failed; /* of a group that was refused: the item */
	bool made;     /* logged and made; otherwise it must still be made */
	bool refused;  /* on failure: the file did not meet the condition, and nothing was logged */
	struct store_stat stat;
};

struct revlog;

/* Where a log is. The stores are borrowed. */
struct revlog_place {
	struct store *meta;
	struct store *runs;   /* has the index; NULL: there is none, and the log is read from its beginning */
	struct store *at;     /* the log continues in its journal `journal`; segments that exist (from a bundle, or from
				 before) are its beginning. NULL: segments only */
	struct wpath journal; /* its path there */
	bool booted;          /* the machine was restarted since: the last append may have any form */
	uint64_t known_end;   /* the newest revision of the last clean end; 0: not known */
};
int revlog_open(const struct revlog_place *place, struct ctx *ctx, struct revlog **ret_log, struct err *err);
/* Moves what is in memory to the index if there is much of it. */
void revlog_close(struct revlog *log, struct ctx *ctx);
/* The same for a log that stays open. Nobody may have a record in hand. */
void revlog_trim(struct revlog *log, struct ctx *ctx);
/* The files of the log were repaired: everything is read again at the next trim. */
void revlog_forget(struct revlog *log);
/* True when there is so much in memory that a trim would be good. */
bool revlog_is_large(struct revlog *log);

/* Logs all drafts next to each other and returns when they are as durable as meta is. ERR_CONFLICT with nothing logged
   when a path got a newer record than its draft's `base`: look and draft again. Concurrent calls share an append.
 */
int revlog_append(struct revlog *log, struct ctx *ctx, struct rev_draft *drafts, size_t count, struct err *err);
/* The same for the drafts of one change, which is made in the same step where that can be done. */
int revlog_append_step(struct revlog *log, struct ctx *ctx, struct rev_draft *drafts, size_t count,
		       struct rev_step *step, struct err *err);
/* Makes the change of records that are in the log, in one step with the note that they are done. ERR_CONFLICT with
   nothing made when one of them is settled by now. Only where revlog_one_step(). */
int revlog_make(struct revlog *log, struct ctx *ctx, struct rev_record **records, size_t count, struct rev_step *step,
		struct err *err);
/* True when the change of a record is still to be made, as far as the log says now: lines that other processes have
   added are looked at, too. */
bool revlog_is_open(struct revlog *log, struct ctx *ctx, const struct rev_record *record);
/* True when the log says that it is done. */
bool revlog_is_done(struct revlog *log, const struct rev_record *record);
/* The change is visible as `version` (empty: removed). Written with a later append. */
void revlog_done(struct revlog *log, struct rev_record *record, struct str version);
/* The change was not made, whatever others do: for a log that cannot be written now. Written with a later append, until
   which another process may make it. Not in a journal. */
void revlog_abort(struct revlog *log, struct rev_record *record);
/* A file that keeps others from being made, and its newest record; 0: it has none. */
struct rev_obstacle {
	struct wpath path;
	uint64_t base;
};
/* Aborts records that are open, all or none, and returns when the log says so. ERR_CONFLICT with nothing aborted when
   one of them is settled; when the obstacle (NULL: none is given) has got a newer record, since it may be gone and the
   records made; or, unless `even_helped`, when another process has noted that it is about to make one of them. The
   deadline of a call does not count: what the call has logged must not stay open. */
int revlog_give_up(struct revlog *log, struct ctx *ctx, struct rev_record **records, size_t count,
		   const struct rev_obstacle *obstacle, bool even_helped, struct err *err);
/* Notes in the log that this process is about to make the change for its owner. */
int revlog_help(struct revlog *log, struct ctx *ctx, struct rev_record *record, struct err *err);
int revlog_checkpoint(struct revlog *log, struct ctx *ctx, struct str name, uint64_t number, struct err *err);
/* Says at the end of the log that what a killed writer or a power cut left there is void, if there is something. */
int revlog_end_torn(struct revlog *log, struct err *err);
/* Ends the tail segment, so that it can be cut. */
int revlog_seal(struct revlog *log, struct ctx *ctx, struct err *err);
/* From now on what is before `number` is not kept: forgotten here, and by every process before it appends again. */
int revlog_set_horizon(struct revlog *log, struct ctx *ctx, uint64_t number, struct err *err);
/* Adds lines of another log, whose numbers continue this one's; they are without their sums and end with a newline.
   ERR_CONFLICT with nothing added when another process was first. */
int revlog_take_up(struct revlog *log, struct ctx *ctx, struct str lines, struct err *err);
/* Writes the notes that revlog_done and revlog_abort left. */
int revlog_flush(struct revlog *log, struct ctx *ctx, struct err *err);
/* Takes in what other processes appended. */
int revlog_refresh(struct revlog *log, struct ctx *ctx, struct err *err);

/* The log's lock: records may be looked at while it is held, and their constant fields after. */
void revlog_lock(struct revlog *log);
void revlog_unlock(struct revlog *log);

/* With the lock held. A record that was found stays valid until the next trim. */
uint64_t revlog_head(const struct revlog *log);
uint64_t revlog_first(const struct revlog *log); /* oldest number that is kept */
/* The newest record of a path that was not aborted. *ret is NULL: there is none. */
int revlog_last(struct revlog *log, struct ctx *ctx, struct wpath path, struct rev_record **ret, struct err *err);
/* The same as far as it is in memory. */
struct rev_record *revlog_last_known(struct revlog *log, struct wpath path);
/* True when the record is done or aborted, or its path has got a newer one: there is nothing left to make. */
bool revlog_is_settled(struct revlog *log, const struct rev_record *record);
/* *ret is NULL: the number is not kept, or was never used. A damaged record is an error. */
int revlog_at(struct revlog *log, struct ctx *ctx, uint64_t number, struct rev_record **ret, struct err *err);
/* The same into `ret`, with its strings in ctx's arena: for walks over many records. *ret_has: there is one. */
int revlog_get(struct revlog *log, struct ctx *ctx, uint64_t number, struct rev_record *ret, bool *ret_has,
	       struct err *err);
/* The same, but a record whose line does not have `text` in it may be left out, which saves parsing it. */
int revlog_get_with(struct revlog *log, struct ctx *ctx, uint64_t number, struct str text, struct rev_record *ret,
		    bool *ret_has, struct err *err);
/* Numbers among which is the newest record of each path, from the highest on (malloc). There are as many as paths, and
   a few more. */
int revlog_newest(struct revlog *log, struct ctx *ctx, uint64_t **ret, size_t *ret_count, struct err *err);
/* The record of the same path before it, or NULL. */
int revlog_prev(struct revlog *log, struct ctx *ctx, struct rev_record *record, struct rev_record **ret,
		struct err *err);
/* The newest record of a path that is not after `number`, and the oldest one that is; NULL: there is none. ERR_CORRUPT,
   with both set: there may have been others, which are damaged. */
int revlog_find(struct revlog *log, struct ctx *ctx, struct wpath path, uint64_t number, struct rev_record **ret_at,
		struct rev_record **ret_after, struct err *err);
/* The same for the state after `number`, for which one of the two is enough: *ret_at is NULL also when only the record
   after it tells what was before. *ret_lost: the number in question, of an error that only this is the cause of. */
int revlog_find_state(struct revlog *log, struct ctx *ctx, struct wpath path, uint64_t number,
		      struct rev_record **ret_at, struct rev_record **ret_after, uint64_t *ret_lost, struct err *err);
/* True when no record of their path can be missing between the two. */
bool revlog_is_next(const struct revlog *log, const struct rev_record *at, const struct rev_record *after);
/* The same as an error. */
int revlog_check_next(struct revlog *log, const struct rev_record *at, const struct rev_record *after, struct err *err);
/* True when a record in (low, high], of whatever path, was lost by damage. The lock is held. */
bool revlog_lost_between(const struct revlog *log, uint64_t low, uint64_t high);
/* True when the line of one of them is damaged and was not set aside yet. */
bool revlog_unread_between(const struct revlog *log, uint64_t low, uint64_t high);
/* The record that ended the run of appends that `record` is in, or the newest one of the path, if that run continues.
 */
int revlog_end_of_appends(struct revlog *log, struct ctx *ctx, struct rev_record *record, struct rev_record **ret,
			  struct err *err);
/* 0 when the state after revision `number` is still kept; otherwise an error that says what is. */
int revlog_keeps(const struct revlog *log, uint64_t number, struct err *err);
/* By name; in ctx's arena. */
int revlog_checkpoints(struct revlog *log, struct ctx *ctx, struct rev_checkpoint **ret, size_t *ret_count,
		       struct err *err);
/* The records that are neither done nor aborted nor followed by another one of their path. In ctx's arena. */
struct rev_record **revlog_open_records(struct revlog *log, struct ctx *ctx, size_t *ret_count);
/* Waits on new records until `deadline_ns` (monotonic); the lock is released during the wait. */
void revlog_wait(struct revlog *log, int64_t deadline_ns);
/* True when every change can be made in the same step as its record. The lock is held. */
bool revlog_one_step(const struct revlog *log);
/* The same for one kind of change. */
bool revlog_steps(const struct revlog *log, enum journal_change change);
/* Waits for another entry of the journal until `deadline_ns`. False: the store cannot wait for one. The lock is not
   held. */
bool revlog_listen(struct revlog *log, struct ctx *ctx, int64_t deadline_ns);
/* Removes what the journal has before the horizon, which is set already. */
int revlog_cut(struct revlog *log, struct ctx *ctx, uint64_t horizon, struct err *err);

/* True when every record is done and the log says so; then where the log ends: the tail segment's file name and size,
   and the newest revision. Takes the lock itself. */
bool revlog_all_done(struct revlog *log, struct arena *arena, struct str *ret_name, uint64_t *ret_size,
		     uint64_t *ret_head);

/* Bytes of the log. Takes the lock itself. *ret_recount: blobs may have been removed since the last call. */
uint64_t revlog_bytes(struct revlog *log, bool *ret_recount);

/* The bytes that a record holds inline. The lock is not held. */
int revlog_read_data(struct revlog *log, struct ctx *ctx, const struct rev_record *record, struct str *ret_data,
		     struct err *err);
/* The bytes before its change, of a record whose state before is REV_HERE. */
int revlog_read_was(struct revlog *log, struct ctx *ctx, const struct rev_record *record, struct str *ret_was,
		    struct err *err);
/* The same for a record before the horizon whose line is still there. ERR_NOT_FOUND: it is not. */
int revlog_read_dropped(struct revlog *log, struct ctx *ctx, uint64_t number, struct str *ret_data, struct err *err);

#endif
