/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Revisions: every change made through this layer gets the next revision number and one record in an append-only log.
 * A record says who changed which path, when, by which operation, from what to what, and where both contents are
 * stored. This gives durability (the log is the write-ahead log), history, undo, views of the past, forks and the
 * change feed.
 *
 * A record is the change of ONE path from one state (absent, or bytes) to another. A move is two records, a removed
 * directory as many as it had files. So all readers of the log (undo, views, merge) deal with one kind of thing.
 *
 * The layer is written over the store interface and runs on any backend. `meta` holds log and blobs; on disk it
 * is a store that syncs, while `inner` does not: a write is acknowledged when its record (with the bytes) is synced,
 * many writers share one sync, and the visible file is replaced atomically and synced by the kernel in its own time.
 */
#ifndef STEAD_REVISIONS_REVISIONS_H
#define STEAD_REVISIONS_REVISIONS_H

#include "store/store.h"

/* Where the bytes of a state are stored; content.c explains it. */
enum rev_where {
	REV_NOWHERE, /* the path did not exist, or they are no longer kept */
	REV_LOG,     /* in the record itself (small writes) */
	REV_BLOB,    /* blobs/<hash> */
	REV_PREFIX,  /* the first `size` bytes of the next state: the content before an append */
	REV_HERE, /* only of a state before a change: in that change's own record (small contents that no earlier record
		     has) */
};

/* Identifies a content. Zero: not known. A blob is named by the SHA-256 of its content (four words), which nobody can
   make to fit another content. A content in a record of the log has a checksum only (two words, XXH128); if retention
   moves it to a blob, that is named by the checksum and the number of the record (three words). */
struct rev_hash {
	uint64_t w[4];
};
#define REV_HASH_DIGITS 64
bool rev_hash_is_set(const struct rev_hash *hash);
/* For sorting; 0: the same. */
int rev_hash_cmp(const struct rev_hash *a, const struct rev_hash *b);
/* 32, 48 or 64 hex digits; returns how many. */
size_t rev_hash_hex(const struct rev_hash *hash, char ret_hex[REV_HASH_DIGITS]);
/* False: it is not the text of a hash. An empty text is zero. */
bool rev_hash_parse(struct str hex, struct rev_hash *ret);
/* "<2 digits>/<the others>": the name of a blob in blobs/, and the way back; false: it is not one. */
struct str rev_blob_name(struct arena *arena, const struct rev_hash *hash);
bool rev_blob_hash(struct str name, struct rev_hash *ret);
/* Checks a content piece by piece against a hash of any kind. */
struct rev_hashing *rev_hashing_begin(const struct rev_hash *like);
void rev_hashing_add(struct rev_hashing *hashing, struct str bytes);
/* The same as the `push` of a sink whose `arg` is a struct rev_hashing. */
int rev_hashing_push(void *hashing, const void *bytes, size_t len, struct err *err);
/* Frees it. True: the content is what the hash says. */
bool rev_hashing_end(struct rev_hashing *hashing);

/* A path before or after a change. */
struct rev_state {
	bool exists;
	enum rev_where where;
	uint64_t size;
	uint64_t held_by; /* REV_LOG, REV_HERE: the revision whose record has the bytes; 0: this one */
	uint32_t mode;    /* permissions; 0: not known */
	struct store_owner owner;
	struct rev_hash hash; /* of the content; zero where it was not computed (appends) */
	struct str version;   /* as the store below knew it; empty: not known (the change was cut off and replayed) */
};

enum rev_op { REV_WRITE, REV_APPEND, REV_REMOVE, REV_MOVE, REV_COPY, REV_OUTSIDE, REV_OPS };
const char *rev_op_name(enum rev_op op);

struct revision {
	uint64_t number; /* 1, 2, 3 … */
	int64_t time_ns;
	enum rev_op op;
	bool aborted; /* logged, but the change was not made: another writer was first */
	bool own;     /* made through this layer, not read from another process's lines */
	bool done;    /* known to be visible in the store below; otherwise revisions_settle() finds out */
	struct wpath path;
	struct str other; /* move and copy: the other path; else empty */
	struct rev_state before, after;
	struct actor actor;
};

struct revisions_opts {
	/* Identifies the current boot of the machine. If it differs from the one at the last opening, the newest
	   records are compared with the files, because the kernel may not have written those back. Empty: they never
	   are. */
	struct str boot_id;
	/* Holds the mark that saves the next start from reading the log. Derived, so it need not sync. Owned;
	   NULL: the log is read at every start. */
	struct store *scratch;
	/* The log is kept in a journal (store/journal.h): for stores in which a file that grows is not cheap, and which
	   are durable when they answer. It is read at the first change or query, not at the start; boot_id and
	   scratch are not used. */
	bool journal;
	/* With a journal: the path of meta within inner. Then a change and its record can be one step. The root: meta
	   is not within inner. */
	struct wpath own;
	/* meta syncs, and inner does not. Then contents are not dropped before inner was synced, since the log is what
	   brings a file back after a power cut. */
	bool log_syncs;
	/* True for paths whose contents are never in the log, however small, so that they can be redacted. NULL: none.
	 */
	bool (*apart)(struct wpath path);
};

/* Puts the layer on `inner`. `meta` is owned too and must not be reachable by users through this layer (the guard
   above it keeps them out). Paths below ".stead/" are passed on and not recorded. Opening replays what was
   acknowledged and not yet applied. On failure the stores stay the caller's. */
int store_revisions_open(struct store *inner, struct store *meta, struct revisions_opts opts, struct ctx *ctx,
			 struct store **ret_store, struct err *err);

/* The newest revision number, 0 before the first. Sees other processes' records. */
int revisions_head(struct store *revisions, struct ctx *ctx, uint64_t *ret_head, struct err *err);

/* Which revisions. Zero fields do not restrict. */
struct rev_query {
	uint64_t since;    /* those after this one */
	uint64_t until;    /* up to and with this one */
	struct wpath path; /* this path and all paths below it */
	struct str user, agent, session, call_id;
	bool newest_first;
	bool with_aborted;
	bool until_damage; /* what comes before a damaged record is an answer, with *ret_more set, unless it is empty */
	size_t limit;      /* 0: all */
};
/* Copies into ctx->arena. *ret_more: the limit cut the answer. */
int revisions_query(struct store *revisions, struct ctx *ctx, const struct rev_query *query, struct revision **ret,
		    size_t *ret_count, bool *ret_more, struct err *err);

/* The state of one path after revision `number` (0: before the first record). ERR_NOT_FOUND is not used: `exists`. */
int revisions_state(struct store *revisions, struct ctx *ctx, struct wpath path, uint64_t number,
		    struct rev_state *ret_state, struct err *err);
/* The bytes of `path` as they were after revision `number`. ERR_NOT_FOUND: it did not exist then, or is no
   longer kept. */
int revisions_read(struct store *revisions, struct ctx *ctx, struct wpath path, uint64_t number,
		   struct store_range range, const struct sink *sink, struct rev_state *ret_state, struct err *err);

/* A read-only store: everything as it was after revision `number`. Its cost depends on what changed since, not on what
   there is. The revisions store must outlive it. */
struct store *store_at_revision_new(struct store *revisions, uint64_t number);

/* Waits until there is a revision after `since` or the context ends (ERR_TIMEOUT). Changes by other processes are seen
   within `poll_ms`. */
int revisions_wait(struct store *revisions, struct ctx *ctx, uint64_t since, unsigned poll_ms, struct err *err);

/* Checkpoints: names for revisions, in the log itself. A name given again moves. */
int revisions_checkpoint(struct store *revisions, struct ctx *ctx, struct str name, uint64_t number, struct err *err);
struct rev_checkpoint {
	struct str name;
	uint64_t number;
	int64_t time_ns;
};
int revisions_checkpoints(struct store *revisions, struct ctx *ctx, struct rev_checkpoint **ret, size_t *ret_count,
			  struct err *err);

/* Bytes of log and blobs. */
uint64_t revisions_kept_bytes(struct store *revisions);

/* What history keeps in addition to the present files, for quotas: the contents that were replaced or removed, and
   REV_RECORD_BYTES for each change but a removal, which must fit whatever is in use. An upper bound: equal contents are
   counted each time (past.c). */
#define REV_RECORD_BYTES 512
struct rev_past {
	struct wpath dir; /* in: changes of this directory */
	uint64_t bytes;   /* out */
	uint64_t first, seen, stored;
	int64_t asked_ns;
};
/* Brings the sum up to date; `past` is kept by the caller, and begins as zero but for `dir`. `again`: it is added up
   from the beginning. */
int revisions_past(struct store *revisions, struct ctx *ctx, bool again, struct rev_past *past, struct err *err);

/* How large history may be; zero fields do not restrict. */
struct rev_limits {
	uint64_t revisions;
	int64_t age_ns;
	uint64_t bytes;
};
struct rev_retain {
	struct rev_limits limits;
	/* Revisions that others depend on (forks): they stay readable. So do those that have a checkpoint. */
	const uint64_t *pins;
	size_t pin_count;
	int64_t grace_ns; /* blobs younger than this stay: their record may still come. 0: the default; < 0: none */
	bool dry_run;
};
struct rev_retained {
	uint64_t first, head;  /* numbers that are kept */
	uint64_t dropped;      /* revisions */
	uint64_t freed, bytes; /* bytes of log and blobs: removed, and left */
	uint64_t blobs;        /* that were removed */
	uint64_t waiting;      /* bytes of unused blobs that are too young to go */
	uint64_t held_at;      /* the revision that keeps the limits from being reached; UINT64_MAX: none does */
	struct str held_by;    /* the checkpoint's name; empty: a pin */
};
/* Drops the oldest history until it is within the limits, and the blobs that nothing refers to. Never waits for a
   writer and no writer for it; may be killed at any instant; several processes may do it at once. */
int revisions_retain(struct store *revisions, struct ctx *ctx, const struct rev_retain *want, struct rev_retained *ret,
		     struct err *err);

/* --- is everything as it was written? (check.c) --- */

struct rev_check {
	/* In. */
	bool repair; /* what is damaged is set aside, in meta's damaged/; what can be read stays */
	/* Without `repair`: only the newest segment (or the newest entries of a journal), where the log should end, and
	   what reading it has met before. Costs the same at any length of the log. */
	bool end_only;
	void (*found)(void *arg, struct str sentence); /* called for each damage */
	void *arg;
	/* Out. */
	uint64_t first, last; /* revisions that are kept; 0: there are none */
	uint64_t contents;    /* that were checked */
	uint64_t aside;       /* that are lost, which an earlier repair has noted */
	uint64_t damages;
	uint64_t too_large; /* end_only: bytes of the newest segment, if it was not read for that */
};
/* Reads every line of the log and every content that a record refers to. Works also when the log cannot be opened. No
   other process may use the log during a repair. */
int revisions_check(struct store *revisions, struct ctx *ctx, struct rev_check *check, struct err *err);
/* The same for a log in segments that is not open: `meta` is its store. */
int revisions_check_files(struct store *meta, struct ctx *ctx, struct rev_check *check, struct err *err);

/* --- contents that must go (redact.c) --- */

struct rev_redact {
	bool (*wanted)(void *arg, struct wpath path);
	bool (*holds)(void *arg, struct str bytes); /* a content, or what an append added */
	void *arg;
	int64_t grace_ns; /* of contents that have no record yet, as for retention */
	bool dry_run;
};
struct rev_redacted {
	uint64_t revisions; /* that refer to removed contents */
	uint64_t contents;  /* that were removed; some may have had no record */
	uint64_t left;      /* revisions that still hold it: in the log itself, or as the present content of a file */
	uint64_t waiting;   /* contents without a record that are too young to go: redact again after the grace */
};
/* Removes the contents of the wanted paths for which `holds` is true. The records stay, and reading those states is
   ERR_NOT_FOUND. The present content of a path is never touched. May be killed at any instant and done again; writers
   continue. */
int revisions_redact(struct store *revisions, struct ctx *ctx, const struct rev_redact *want, struct rev_redacted *ret,
		     struct err *err);

/* --- taking a log elsewhere (carry.c) --- */

struct rev_blob {
	struct rev_hash hash;
	uint64_t size;
};
struct rev_carry {
	/* In. */
	uint64_t until;
	uint64_t since; /* blobs that only revisions up to this one refer to are left out */
	bool (*wanted)(void *arg, struct wpath path); /* paths whose history is carried */
	void *arg;
	/* Out: what there is to carry. */
	uint64_t first, head, revisions; /* head: of the last one that is carried; first - 1: none */
	int64_t newest_ns;
	struct rev_checkpoint *checkpoints; /* by name */
	size_t checkpoint_count;
	struct rev_blob *blobs; /* by hash */
	size_t blob_count;
	size_t missing; /* contents that revisions refer to, and that are not there or are cut short */
};
/* Completes changes that are not done, and finds what there is to carry up to `until`. */
int revisions_carry(struct store *revisions, struct ctx *ctx, struct rev_carry *carry, struct err *err);
/* The log as segments in their canonical form, and a blob. */
int revisions_carry_log(struct store *revisions, struct ctx *ctx, const struct rev_carry *carry,
			int (*put)(void *arg, uint64_t first, struct str bytes, struct err *err), void *arg,
			struct err *err);
int revisions_carry_blob(struct store *revisions, struct ctx *ctx, const struct rev_blob *blob, const struct sink *sink,
			 struct err *err);
/* Looks whether this log is the beginning of another one. *ret_head: where it ends; *ret_differs: the first revision
   that the other log does not have, or has with another content; 0: there is none. */
int revisions_compare(struct store *revisions, struct ctx *ctx, struct store *with, uint64_t *ret_head,
		      uint64_t *ret_differs, struct err *err);
/* Adds what `carry` (of the log `from`, with everything wanted) has after the end of this log, which is its beginning.
   The blobs are already there. A kill leaves a longer beginning. ERR_CONFLICT: another process changed this log during
   the call. */
int revisions_follow(struct store *revisions, struct ctx *ctx, struct store *from, const struct rev_carry *carry,
		     struct err *err);
/* Checks whether a segment from elsewhere may be put in place: ERR_CORRUPT when its lines are not whole, not in order,
   or of paths that are not wanted. */
struct rev_segment_check {
	bool (*wanted)(void *arg, struct wpath path);
	void *arg;
	uint64_t first;   /* the segment's number */
	uint64_t gap_max; /* how many numbers may be missing between two records */
	uint64_t last;    /* in: the number before the segment; out: the last one of it */
	bool sealed;      /* out: another one follows */
};
int revisions_check_segment(struct ctx *ctx, struct str bytes, struct rev_segment_check *check, struct err *err);

/* Looks at `path` (or, for a directory, at every file below it) and records what another program has changed. */
int revisions_notice(struct store *revisions, struct ctx *ctx, struct wpath path, uint64_t *ret_count, struct err *err);
/* True when the log has a record of the path. */
bool revisions_knows(struct store *revisions, struct wpath path);
/* Records a file that was made without a record, as an outside change from what was there before (`existed`, with
   the bytes `before`; ptr NULL: no longer known). Does nothing when the path has a record. */
int revisions_adopt(struct store *revisions, struct ctx *ctx, struct wpath path, bool existed, struct str before,
		    struct err *err);
/* The same for one file, at the cost of one look: its last change is completed, and what another program did to
   it is recorded. A path with no record is left alone. *ret_new (may be NULL): it got a record. */
int revisions_settle(struct store *revisions, struct ctx *ctx, struct wpath path, bool *ret_new, struct err *err);
/* The same for several files, after one look at the log: calls `path` until it returns false. *ret_new: one of them got
   a record. */
int revisions_settle_all(struct store *revisions, struct ctx *ctx, bool (*path)(void *arg, struct wpath *ret_path),
			 void *arg, bool *ret_new, struct err *err);
/* True when a remote log takes a group of changes in one step. It has been read. */
bool revisions_makes_groups(struct store *revisions);
/* Writes the notes that wait for the next record: which changes are done. */
int revisions_flush(struct store *revisions, struct ctx *ctx, struct err *err);

#endif
