/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations that the files of the revisions layer share. */
#ifndef STEAD_REVISIONS_LAYER_H
#define STEAD_REVISIONS_LAYER_H

#include "base/clock.h"
#include "base/limits.h"
#include "revisions/log.h"

#define REV_STRIPES 256
/* A larger content is written to the store on its own, not in one step with its record. */
#define REV_STEP_MAX (1 * MIB)

struct revisions {
	struct store base;
	struct store *meta;
	struct store *scratch; /* may be NULL */
	struct str boot_id;    /* owned */
	bool journal;          /* the log is a journal */
	struct store *log_at;  /* the store that has the journal: inner or meta */
	struct wpath log_path; /* owned */
	bool log_syncs;        /* as in the options */
	bool (*apart)(struct wpath path);
	_Atomic uint64_t blob_bytes;
	_Atomic bool blobs_counted; /* they are when somebody asks */
	_Atomic int64_t counted_ns; /* monotonic: when the log was last read for the sake of counting */
	pthread_mutex_t opening;
	_Atomic size_t marks_len; /* of the file with marks of a clean end, when it was read */
	_Atomic bool boot_due;    /* the boot is noted before the first record, not by a process that only asks */
	_Atomic bool opened;      /* the log has been read: at the first change or query, if not at the start */
	struct revlog *log;
	pthread_rwlock_t pins; /* held shared by whoever has records in hand, and alone to trim the log's memory */
	/* A change of one path holds `tree` shared and its stripe; one of many paths holds `tree` alone. Between
	   processes nothing is held: the log's append and the store's conditions decide. */
	pthread_rwlock_t tree;
	pthread_mutex_t stripes[REV_STRIPES];
};

struct revisions *revisions_of(struct store *s);
/* Reads the end of the log and replays it, unless that was done. Must be called before any function below. */
int revisions_ready(struct revisions *rv, struct ctx *ctx, struct err *err);
/* Logs the drafts of a change that is made afterwards, as revlog_append() does. */
int revisions_log(struct revisions *rv, struct ctx *ctx, struct rev_draft *drafts, size_t count, struct err *err);

/* Records are valid as long as the caller is pinned: `REV_PINNED struct revisions *pin = revisions_pin(rv);` */
struct revisions *revisions_pin(struct revisions *rv);
/* When the last one lets go, the log's memory is trimmed if it has grown. */
void revisions_unpin(struct revisions **rv);
/* Lets others trim the log's memory. No record may be in hand. */
void revisions_pause(struct revisions *rv);
#define REV_PINNED __attribute__((cleanup(revisions_unpin), unused))

/* revlog_find(), without the lock. A file that still is what its last record says makes up for damaged records. */
int revisions_find(struct revisions *rv, struct ctx *ctx, struct wpath path, uint64_t number,
		   struct rev_record **ret_at, struct rev_record **ret_after, struct err *err);

/* False for Stead's own data, which is not part of the history. */
bool revisions_records(struct wpath path);
void revisions_lock_path(struct revisions *rv, struct wpath path);
void revisions_unlock_path(struct revisions *rv, struct wpath path);

/* The owner that a file may get on behalf of a record. A log on a server may have lines that others have put there: it
   has no say in whom a file of this machine belongs to, and gets no owners either. */
struct store_owner revisions_owner(const struct revisions *rv, struct store_owner owner);
/* Takes the permissions and the owner of a file into a state of its path. */
void revisions_take_rights(const struct revisions *rv, struct rev_state *state, const struct store_stat *stat);
/* Reads a small source into memory, for the record itself (d->path is set; after and data are filled in). A larger one
   becomes a blob, which is then the source. */
int revisions_take_source(struct revisions *rv, struct ctx *ctx, const struct source *source, struct rev_draft *d,
			  struct source *ret_source, struct err *err);

/* A file system's clock advances in steps, so a file may have a time that is a little before its change. */
#define CLOCK_STEP_NS (20 * NS_PER_MS)

/* --- looking at a path (look.c) --- */

/* What is known of a path before a change. */
struct look {
	uint64_t base;          /* its newest record; 0: none */
	uint64_t first;         /* the oldest revision that was kept then */
	struct rev_state state; /* now; `where` says whether and where its bytes are kept */
	bool is_dir;
};

/* Looks until file and log agree. */
int look_at(struct revisions *rv, struct ctx *ctx, struct wpath path, struct look *ret, struct err *err);
/* What the log says about a path, without a look. False: it does not say enough, or it does not meet the caller's
   condition; then the path must be looked at. */
bool look_known(struct revisions *rv, struct ctx *ctx, struct wpath path, struct store_cond cond, struct look *ret);
/* What a fork has at a path that the log says was never changed in it, and that it has from its parent: in one request,
   along with the content if it is small enough to be kept in the record of its change (REV_HERE). False: it is not such
   a file, or it does not meet the caller's condition. */
bool look_inherited(struct revisions *rv, struct ctx *ctx, struct wpath path, struct store_cond cond, struct look *ret,
		    struct str *ret_was);
/* Compares what was seen at a path (kind 0: nothing) with the log, as far as it has been read. False: they do not
   agree, and the path must be looked at. */
bool look_agrees(struct revisions *rv, struct ctx *ctx, struct wpath path, const struct store_stat *stat,
		 struct look *ret);
/* look_at() for many paths, in few requests. */
int look_all(struct revisions *rv, struct ctx *ctx, const struct wpath *paths, size_t count, struct look *ret,
	     struct err *err);
/* Makes sure that the present bytes of the path are kept, because they are about to be replaced. */
int look_hold(struct revisions *rv, struct ctx *ctx, struct wpath path, struct look *l, struct err *err);
/* A directory that another program emptied may still exist on the host. To a store it does not exist, and its path may
   become a file. */
bool look_empty_dir(struct revisions *rv, struct ctx *ctx, struct wpath path);
/* Refuses a path that cannot exist because one of its parents is a file, before the change is logged: other processes
   should not find a record that cannot be made. */
int look_refuse_below_file(struct revisions *rv, struct ctx *ctx, struct wpath path, struct err *err);
/* The file that keeps one from being made at `path`: a part of that path, or below it. False: there is none. */
bool look_obstacle(struct revisions *rv, struct ctx *ctx, struct wpath path, struct rev_obstacle *ret);

/* --- making what was logged (make.c) --- */

/* The change of `call` for a store that makes it in one step with its record. False: it is made on its own. */
bool make_step(struct revisions *rv, struct ctx *ctx, const struct store_call *call, struct rev_step *ret);
/* True when changes are made as a group, in one step with their records. */
bool make_groups(const struct revisions *rv);
/* Where a change is made apart from its record, an owner that is later than the first asks the log again before it
   makes the change, and nobody makes it for the owner before the second. */
#define REV_LATE_NS       (1 * NS_PER_S)
#define REV_HELP_AFTER_NS (2 * NS_PER_S)
/* Makes the change of records that are in the log, and notes that they are done: a write, an append, a removal or a
   copy (one record; a copy has the version of its source as call->cond.version), or a move (two: of `path`, of `to`).
   The condition of `call` is what the record says was there before. */
int make_change(struct revisions *rv, struct ctx *ctx, struct store_call *call, struct rev_record **recs, size_t count,
		struct err *err);
/* The same for the owner of the records: a change that a helper has made is success. */
int make_or_find(struct revisions *rv, struct ctx *ctx, struct store_call *call, struct rev_record **recs, size_t count,
		 struct err *err);
/* Notes that the records of one change were not made: all of them, or none (false) if one is settled or about to be
   made by a helper. */
bool make_abort(struct revisions *rv, struct ctx *ctx, struct rev_record **recs, size_t count);
/* The same for an owner that could not make them. Returns `result`, or 0 when others have made them after all. */
int make_abort_or_find(struct revisions *rv, struct ctx *ctx, struct rev_record **recs, size_t count,
		       struct store_stat *ret_stat, int result, struct err *err);
/* Calls `make` until the records are made, settled by others, or given up because a file is in the way of the last one,
   which all agree on from then on: *ret_gave_up, and the file's ERR_INVALID. Without records (count 0) nothing is given
   up. */
struct making {
	int (*make)(void *arg, struct err *err);
	void *arg;
	struct rev_record **recs;
	size_t count;
};
int make_or_give_up(struct revisions *rv, struct ctx *ctx, const struct making *m, bool *ret_gave_up, struct err *err);
/* make_or_find() in such a loop. */
int make_try(struct revisions *rv, struct ctx *ctx, struct store_call *call, struct rev_record **recs, size_t count,
	     bool *ret_gave_up, struct err *err);
/* make_try(), and if that fails the records are aborted. */
int make_logged(struct revisions *rv, struct ctx *ctx, struct store_call *call, struct rev_record **recs, size_t count,
		struct err *err);
/* With a journal: true when the change and the note that it is done may be two steps. */
bool make_is_apart(const struct revisions *rv, const struct rev_record *rec);
/* True when the record is done, aborted or followed by another one, as far as the log has been read. */
bool make_is_settled(struct revisions *rv, const struct rev_record *rec);
/* Reads the log again until it is, or until `until_ns` (monotonic), or the end of the call. */
void make_wait_settled(struct revisions *rv, struct ctx *ctx, const struct rev_record *rec, int64_t until_ns);

/* --- moves, copies and directories (tree.c) --- */

/* Makes the rest of a move of a directory: of files that have no record after `until`, and whose new place is free. */
int tree_move_rest(struct revisions *rv, struct ctx *ctx, struct wpath from, struct wpath to, uint64_t until,
		   struct err *err);
int tree_remove(struct revisions *rv, struct ctx *ctx, struct wpath path, uint64_t *ret_count, struct err *err);
int revisions_move(struct store *s, struct ctx *ctx, struct wpath from, struct wpath to, struct store_cond cond,
		   struct store_cond to_cond, struct store_stat *ret_stat, struct err *err);
int revisions_copy(struct store *s, struct ctx *ctx, struct wpath from, struct wpath to, struct store_cond to_cond,
		   struct store_stat *ret_stat, struct err *err);

/* --- changes that belong together (group.c) --- */

int revisions_group(struct store *s, struct ctx *ctx, struct store_group *group, struct err *err);

/* --- moves in several batches, which a kill must not leave half made (moves.c) --- */

/* Notes that a directory is about to be moved. */
int moves_begin(struct revisions *rv, struct ctx *ctx, struct wpath from, struct wpath to, struct wpath *ret_note,
		struct err *err);
/* The move is made, or its caller knows why not. */
void moves_end(struct revisions *rv, struct ctx *ctx, struct wpath note);
/* Makes the rest of moves whose process was killed. */
int moves_resume(struct revisions *rv, struct ctx *ctx, struct err *err);

/* --- contents (content.c) --- */

/* How long a blob may wait for the record that refers to it. */
#define REV_BLOB_GRACE_NS (60 * NS_PER_S)

struct wpath content_blob_path(struct arena *arena, const struct rev_hash *hash);
/* The hash that a blob is named by; false for other files, like the unfinished copy of a killed process. */
bool content_blob_hash(struct str path, struct rev_hash *ret);
/* The name of the blob that a content in the log gets when its record is dropped. */
struct rev_hash content_held_hash(const struct rev_state *state);
/* Keeps `bytes` under a name that is given. */
int content_keep_as(struct revisions *rv, struct ctx *ctx, struct str bytes, const struct rev_hash *hash,
		    struct err *err);
/* Keeps `bytes` as a blob; the state gets hash, size and place. */
int content_keep_bytes(struct revisions *rv, struct ctx *ctx, struct str bytes, struct rev_state *state,
		       struct err *err);
/* Keeps the present content of `path`, whatever its size, as a blob. ERR_CONFLICT when it changes during the call, or
   is not of the version and size that the state has, if it has them. */
int content_keep_file(struct revisions *rv, struct ctx *ctx, struct wpath path, struct rev_state *state,
		      struct err *err);
/* Takes a stream to its end and keeps it as a blob. */
int content_keep_stream(struct revisions *rv, struct ctx *ctx, const struct source *source, struct rev_state *state,
			struct err *err);
/* The bytes of the state after `record` (of its path). */
int content_read_after(struct revisions *rv, struct ctx *ctx, struct rev_record *record, struct store_range range,
		       const struct sink *sink, struct err *err);
int content_read_before(struct revisions *rv, struct ctx *ctx, struct rev_record *record, struct store_range range,
			const struct sink *sink, struct err *err);
/* The present content of `path`, as long as its newest record is `last` (NULL: it has none). *ret_changed: it has got
   another one, after *ret_len bytes of the range were passed on. `ret_stat` is the file's, without its version. */
int content_read_now(struct revisions *rv, struct ctx *ctx, struct wpath path, const struct rev_record *last,
		     struct store_range range, const struct sink *sink, struct store_stat *ret_stat, uint64_t *ret_len,
		     bool *ret_changed, struct err *err);
/* True when the version of a file alone tells that it still is what the record left. Only where the store's versions
   never come back with other bytes. */
bool content_is_of(struct revisions *rv, const struct rev_record *record, const struct store_stat *stat);
/* A source of the whole content after `record`, from kept contents only: for an append, the content before it
   and all that was appended. Call content_source_end() unless it was read to its end. */
int content_source_after(struct revisions *rv, struct ctx *ctx, struct rev_record *record, struct source *ret_source,
			 struct err *err);
void content_source_end(struct source *source);
/* A source of the bytes that an append added, without the first `skip` of them. */
int content_piece(struct revisions *rv, struct ctx *ctx, const struct rev_record *record, uint64_t skip,
		  struct source *ret_source, struct err *err);
/* A source over a kept state (blob or log record), for writes. Lives in the arena. */
int content_source(struct revisions *rv, struct ctx *ctx, const struct rev_record *record,
		   const struct rev_state *state, struct source *ret_source, struct err *err);
/* Counts the bytes of all blobs. */
int content_count(struct revisions *rv, struct ctx *ctx, struct err *err);
/* The checksum of a content that goes into the log. */
void content_checksum(struct str bytes, struct rev_hash *ret_hash);
/* True when the content of `path` has this hash; *ret_stat is its stat. */
bool content_is(struct store *store, struct ctx *ctx, struct wpath path, const struct rev_hash *hash,
		struct store_stat *ret_stat);

/* --- recovery (recover.c) --- */

/* Completes a record that is not done: makes its change, or finds that it was made, or leaves the file to be recorded
   as an outside change. */
int recover_record(struct revisions *rv, struct ctx *ctx, struct rev_record *record, struct err *err);
/* True when the record's change is in effect although making it failed: another process completed our
   record first, or the answer was lost. Notes it as done; the path's stat goes to *ret_stat. `guessed`: it was refused
   because the path exists. */
bool recover_took_effect(struct revisions *rv, struct ctx *ctx, struct rev_record *record, bool guessed,
			 struct store_stat *ret_stat);
/* True when the machine may have been restarted since the log was last used. */
bool recover_booted(struct revisions *rv, struct ctx *ctx);
/* Notes that the log is used in this boot. */
void recover_note_boot(struct revisions *rv, struct ctx *ctx);
int recover_all(struct revisions *rv, struct ctx *ctx, bool booted, struct err *err);
/* The mark says that everything in the log is done, so the next start need not read the log. */
bool recover_is_clean(struct revisions *rv, struct ctx *ctx);
void recover_mark_clean(struct revisions *rv, struct ctx *ctx);
/* The newest revision of the last clean end in this boot; 0: it is not known. A log that ends before it was cut. */
uint64_t recover_known_end(struct revisions *rv, struct ctx *ctx);

#endif
