/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store: where the bytes of workspaces are kept. One interface; backends (memory, disk, …) keep bytes, layers
 * (prefix, guard, quota, …) wrap another store. Nothing above this line knows where the bytes are.
 *
 * The contract. Each line is a case of the conformance suite that every backend, layer and opened workspace passes:
 *  - Paths are struct wpath. The root always exists and is a directory.
 *  - Directories are implied by what is in them, as in git: writing creates parents; removing or moving the last file
 *    away removes them. A directory's stat has size 0, mtime 0 and an empty version.
 *  - A name is a file or a directory, never both: writing "a/b" where "a" is a file, or "a" where it is a directory,
 *    fails as ERR_INVALID and changes nothing.
 *  - A write is all or nothing; a reader sees the old bytes or the new ones; when it has returned it is durable.
 *    Conditions (absent, version equal) hold against other threads, processes and replicas.
 *  - ERR_EXISTS: condition "absent" and it exists. ERR_CONFLICT: condition "version" and it is another one or gone.
 *    ERR_NOT_FOUND: stat, read, list, remove or move of what is not there. ERR_INVALID: read or copy of a directory,
 *    list of a file, remove of a directory without `recursive`, a version condition on a directory.
 *  - A read past the end gives no bytes. A moved file keeps its bytes and mtime (its version may change).
 *  - append never loses or interleaves another writer's bytes; it creates the file.
 *  - Streams use bounded memory. Bytes are stored exactly.
 *  - Lists come in byte order of the path, in which a directory counts with a '/' after its name; they are paged, the
 *    cursor survives restarts; a name that cannot be a path here is left out and counted.
 *  - Operations may be called from several threads at once.
 */
#ifndef STEAD_STORE_STORE_H
#define STEAD_STORE_STORE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/ctx.h"
#include "base/err.h"
#include "base/str.h"
#include "store/wpath.h"

enum store_kind { STORE_FILE = 1, STORE_DIR };

/* Whom a file belongs to, in a store that has owners. STORE_OWNER_TOP: whom the store's top directory belongs to, which
   is the same for every process and needs no number. */
enum store_owner_kind { STORE_OWNER_UNKNOWN, STORE_OWNER_TOP, STORE_OWNER_IDS };
struct store_owner {
	enum store_owner_kind kind;
	uint32_t uid, gid; /* STORE_OWNER_IDS */
};
bool store_owner_eq(struct store_owner a, struct store_owner b);

struct store_stat {
	enum store_kind kind;
	uint64_t size;
	int64_t mtime_ns;         /* real time */
	struct str version;       /* changes whenever the bytes change; opaque; in the caller's arena */
	uint32_t mode;            /* permission bits of a file, where the store has them; else 0 */
	int64_t changed_ns;       /* when it was last changed by anybody, name and rights included; 0: not known */
	struct store_owner owner; /* of a file */
};

enum store_cond_kind { STORE_ANY, STORE_ABSENT, STORE_VERSION };

/* {0} is "any". */
struct store_cond {
	enum store_cond_kind kind;
	struct str version;
	/* May be NULL; only for a store with STORE_ASKS. Asked last, under the lock that is held while the path is
	   changed: what it refuses is not done. It may read the store. */
	int (*still)(void *arg, struct err *err);
	void *arg;
	/* When (clock_monotonic_ns) a log in which all writers note their changes first said that it holds; 0: never.
	   What a store would have to ask others about may be taken from there for a moment. */
	int64_t known_ns;
};

/* Where a write takes its bytes from. `bytes` alone is enough for what is in memory; else `pull` gives the next ones:
   up to `cap`, *ret_len 0 at the end. `rewind` starts again (NULL: cannot, so the write cannot be repeated). `mode` is
   the permission bits that a written file gets, where the store has them; 0: those of the file that it replaces, or the
   default. `owner` is the same for its owner, as far as this process may give files away, and never makes it root's. An
   append does not use them. */
struct source {
	struct str bytes;
	uint32_t mode;
	struct store_owner owner;
	int (*pull)(void *arg, void *buf, size_t cap, size_t *ret_len, struct err *err);
	int (*rewind)(void *arg, struct err *err);
	void *arg;
};

/* Where a read puts its bytes. `push` gets them in order. `reserve` (optional) is asked once with the exact size that
   will come; memory it returns is filled directly and then `push` is called once with that pointer. `take_file`
   (optional) is offered the open file first, by a store that has the bytes in a file of this machine: true means that
   they were taken from there (with dup(2)), and nothing is pushed. `skip_dirs`: a store that has to ask once more to
   tell a directory from nothing need not do that; then it fails with ERR_NOT_FOUND and DETAIL_MAY_BE_DIR. `unchanged`
   (STORE_OVER_PAST): the caller knows that nothing was ever changed at this path, so only what is below is read. */
struct sink {
	int (*push)(void *arg, const void *bytes, size_t len, struct err *err);
	void *(*reserve)(void *arg, size_t size);
	void *arg;
	bool (*take_file)(void *arg, int fd, uint64_t offset, uint64_t length);
	bool skip_dirs, unchanged;
};

struct store_range {
	uint64_t offset;
	uint64_t length; /* UINT64_MAX: to the end */
};
#define STORE_WHOLE ((struct store_range){0, UINT64_MAX})

struct store_entry {
	struct wpath path; /* full path in the store that was asked */
	struct store_stat stat;
};

/* How many entries a directory has. A store that can tell without listing all of them sets the last three. */
struct store_count {
	/* NULL: all. False for a name that is left out. `rule` is the number of what is asked: a store may remember the
	   answer under it, as long as the directory is the same. */
	bool (*counts)(void *arg, struct str name);
	void *arg;
	uint64_t rule;
	bool known;
	uint64_t total, skipped; /* skipped: as in a page */
};

struct store_list_req {
	bool recursive;   /* files only, at any depth; else files and directories of one level */
	size_t limit;     /* 1 … STORE_PAGE_MAX */
	struct str after; /* cursor of the page before, empty: from the start */
	bool names_only;  /* the caller uses paths and kinds alone: a store may leave out the rest of a file's stat */
	struct store_count *count; /* NULL: not asked for. Not with `recursive` */
	/* It is a directory or nothing: a store that has to ask once more to tell a file from nothing need not do that,
	   and fails with ERR_NOT_FOUND. */
	bool never_file;
};

struct store_page {
	struct store_entry *entries; /* in the caller's arena */
	size_t count;
	struct str next;  /* cursor: the last entry's path, a directory's with a final '/'; ptr NULL: that was all.
			     The next page begins after that place, whether or not the entry still exists. */
	uint64_t skipped; /* names on this page that cannot be paths, links, devices */
	/* Two lists of a directory with the same stamp: nothing in it was made, removed or replaced between them, by
	   anybody. 0: not known. */
	uint64_t stamp;
};

/* A scan visits every file below a directory, in list order, with its bytes if asked, from several threads at once.
   It is what grep, glob and indexes are built on. */
struct scan_item {
	uint64_t seq;    /* 0, 1, 2 … in list order; files are begun in this order, but finish in any */
	unsigned worker; /* < threads, or < SCAN_WORKERS_MAX when that is 0: for per-thread state */
	struct str path; /* valid during the visit */
	uint64_t size;   /* as far as known before reading; 0 without contents */
	struct str data; /* with contents: the next chunk, ends after a '\n' unless it is the last or the line is longer
			    than a chunk */
	uint64_t offset; /* of data in the file */
	bool last;       /* nothing of this file comes after */
	bool unreadable; /* the file could not be opened or read; data is empty, last is set */
	/* With `dated`: when the file was last changed by anybody, looked at after `data` was read; 0: not known. */
	int64_t changed_ns;
};

#define SCAN_WORKERS_MAX 8
#define SCAN_SKIP_FILE   1 /* a visit's answer: no more of this file */

struct scan_req {
	bool contents;
	bool use_ignore;  /* leave out .git/ and what .gitignore files on the way down ignore */
	bool dated;       /* the visitor uses changed_ns */
	unsigned threads; /* 0: as many as there are cores, at most 8 */
	/* Both may be NULL (all). Called on one thread at a time, before anything is opened. */
	bool (*want_dir)(void *arg, struct str path);
	bool (*want_file)(void *arg, struct str path);
	/* Called at least once for every file that was wanted. 0: continue, SCAN_SKIP_FILE, or an error that ends the
	 * scan. */
	int (*visit)(void *arg, const struct scan_item *item, struct err *err);
	void *arg;
};

enum store_op {
	STORE_OP_STAT,
	STORE_OP_READ,
	STORE_OP_WRITE,
	STORE_OP_APPEND,
	STORE_OP_REMOVE,
	STORE_OP_MOVE,
	STORE_OP_COPY,
	STORE_OP_LIST,
	STORE_OP_SCAN,
	STORE_OP_GROUP,
	STORE_OP_JOURNAL_READ,
	STORE_OP_JOURNAL_ADD,
	STORE_OP_JOURNAL_CUT,
	STORE_OPS
};

/* What is true of an operation, for layers that treat operations alike. Zero is the cautious answer. */
struct store_op_info {
	const char *name;
	bool reads_only;
};
extern const struct store_op_info store_op_info[STORE_OPS];

/* Changes of several files that belong together: first those that go, then those that are written. No path is given
   twice. */
struct store_group_item {
	enum store_op op; /* STORE_OP_WRITE or STORE_OP_REMOVE, of a file */
	struct wpath path;
	const struct source *source; /* write; one that pulls can rewind */
	struct store_cond cond;      /* STORE_ABSENT or STORE_VERSION */
	/* Out. */
	bool made;
	struct store_stat stat; /* write */
};
struct store_group {
	struct store_group_item *items;
	size_t count;
	size_t failed; /* out, on failure: the item that could not be made; count: none in particular */
};

/* Journals: journal.h. */
struct journal_read;
struct journal_page;
struct journal_add;
struct journal_added;

/* One operation as a value: what `around` layers see. Fields that the operation does not use are zero. */
struct store_call {
	enum store_op op;
	struct wpath path;
	struct wpath to;           /* move, copy; journal_add: the file that is changed in the same step, or the root */
	struct store_cond cond;    /* write, append, remove, move (of the source), journal_add (of `to`) */
	struct store_cond to_cond; /* move, copy (of the target) */
	bool recursive;            /* remove */
	struct store_range range;  /* read */
	const struct sink *sink;
	const struct source *source; /* write, append */
	const struct store_list_req *list;
	const struct scan_req *scan;
	struct store_stat *ret_stat; /* stat, read, write, append, move, copy (of the target); never NULL */
	struct store_page *ret_page;
	uint64_t *ret_count; /* remove: files removed; never NULL */
	const struct journal_read *journal_read;
	struct journal_page *ret_journal;
	const struct journal_add *journal_add;
	struct journal_added *ret_added;
	uint64_t journal_before; /* journal_cut */
	struct store_group *group;
};

struct store;

/* What a store can do beyond the contract. A layer can do what the store below it can, less what it takes away. */
enum store_ability {
	STORE_LOCAL = 1,    /* a file that grows is cheap, and only this machine sees it: a log is better kept in files
			       than in a journal */
	STORE_JOURNAL = 2,  /* journals are its own operations: reading one can wait for the next entry */
	STORE_ONE_STEP = 4, /* an entry of a journal and a change of a file are made in one step */
	STORE_FIXED = 8,    /* what it has never changes */
	STORE_ASKS = 16,    /* asks store_cond.still */
	/* With STORE_ONE_STEP: so is a group of changes, all or none (JOURNAL_GROUP). */
	STORE_GROUP_STEP = 32,
	STORE_WRITE_STEP = 64, /* as STORE_ONE_STEP, but perhaps for writes only (JOURNAL_WRITE) */
	/* What was never changed in it comes from a store that may be STORE_FIXED: sink.unchanged. ERR_UNSUPPORTED when
	   that is not fixed. */
	STORE_OVER_PAST = 128,
};

/* One const table per backend or layer. An operation that is NULL goes to `around`; with no `around` either, it is
   unsupported (copy, scan and the journal then fall back to a generic form over the same store's read, write and list).
   A group never goes to `around`: where `group` is NULL, its changes are made one by one, each as an operation of its
   own. */
struct store_ops {
	const char *name;
	int (*stat)(struct store *s, struct ctx *ctx, struct wpath path, struct store_stat *ret_stat, struct err *err);
	int (*read)(struct store *s, struct ctx *ctx, struct wpath path, struct store_range range,
		    const struct sink *sink, struct store_stat *ret_stat, struct err *err);
	int (*write)(struct store *s, struct ctx *ctx, struct wpath path, const struct source *source,
		     struct store_cond cond, struct store_stat *ret_stat, struct err *err);
	int (*append)(struct store *s, struct ctx *ctx, struct wpath path, const struct source *source,
		      struct store_cond cond, struct store_stat *ret_stat, struct err *err);
	int (*remove)(struct store *s, struct ctx *ctx, struct wpath path, bool recursive, struct store_cond cond,
		      uint64_t *ret_count, struct err *err);
	int (*move)(struct store *s, struct ctx *ctx, struct wpath from, struct wpath to, struct store_cond cond,
		    struct store_cond to_cond, struct store_stat *ret_stat, struct err *err);
	int (*copy)(struct store *s, struct ctx *ctx, struct wpath from, struct wpath to, struct store_cond to_cond,
		    struct store_stat *ret_stat, struct err *err);
	int (*list)(struct store *s, struct ctx *ctx, struct wpath path, const struct store_list_req *req,
		    struct store_page *ret_page, struct err *err);
	int (*scan)(struct store *s, struct ctx *ctx, struct wpath path, const struct scan_req *req, struct err *err);
	int (*group)(struct store *s, struct ctx *ctx, struct store_group *group, struct err *err);
	int (*journal_read)(struct store *s, struct ctx *ctx, struct wpath journal, const struct journal_read *req,
			    struct journal_page *ret_page, struct err *err);
	int (*journal_add)(struct store *s, struct ctx *ctx, struct wpath journal, struct wpath to,
			   struct store_cond cond, const struct journal_add *add, struct journal_added *ret_added,
			   struct err *err);
	int (*journal_cut)(struct store *s, struct ctx *ctx, struct wpath journal, uint64_t before, struct err *err);
	/* Backends that do not sync each change: everything that was written through any of their handles becomes
	   durable. */
	int (*sync)(struct store *s, struct err *err);
	int (*around)(struct store *s, struct ctx *ctx, struct store_call *call, struct err *err);
	unsigned can;    /* enum store_ability: backends; layers: what the store below them need not be able to do */
	unsigned cannot; /* layers: abilities of the store below that they do not pass on */
	/* Layers that have no `inner`: the store whose place counts as theirs, the one that has the log. */
	const struct store *(*stands_on)(const struct store *s);
	void (*destroy)(struct store *s); /* frees what is its own; the inner store is destroyed by store_destroy() */
};

/* First member of every backend's and layer's struct. */
struct store {
	const struct store_ops *ops;
	struct store *inner; /* layers: owned; backends: NULL */
	atomic_uint shares;  /* owners besides the first */
};

/* The front doors. Outputs may be NULL where a caller does not care; they are written on success only. An error gets
   "<operation> <path>: " before it (with the path as this store knows it). */
int store_stat(struct store *s, struct ctx *ctx, struct wpath path, struct store_stat *ret_stat, struct err *err);
/* Bytes in the arena, with one NUL after them; ERR_TOO_LARGE when the range holds more than `max`. */
int store_read(struct store *s, struct ctx *ctx, struct wpath path, struct store_range range, size_t max,
	       struct str *ret_bytes, struct store_stat *ret_stat, struct err *err);
/* The same of a path that is a file or nothing: a store that has to ask once more to tell a directory from nothing does
   not do that. */
int store_read_file(struct store *s, struct ctx *ctx, struct wpath path, size_t max, struct str *ret_bytes,
		    struct store_stat *ret_stat, struct err *err);
int store_read_stream(struct store *s, struct ctx *ctx, struct wpath path, struct store_range range,
		      const struct sink *sink, struct store_stat *ret_stat, struct err *err);
int store_write(struct store *s, struct ctx *ctx, struct wpath path, struct str bytes, struct store_cond cond,
		struct store_stat *ret_stat, struct err *err);
int store_write_stream(struct store *s, struct ctx *ctx, struct wpath path, const struct source *source,
		       struct store_cond cond, struct store_stat *ret_stat, struct err *err);
int store_append(struct store *s, struct ctx *ctx, struct wpath path, struct str bytes, struct store_cond cond,
		 struct store_stat *ret_stat, struct err *err);
int store_append_stream(struct store *s, struct ctx *ctx, struct wpath path, const struct source *source,
			struct store_cond cond, struct store_stat *ret_stat, struct err *err);
/* Of the root, recursive: everything in it. */
int store_remove(struct store *s, struct ctx *ctx, struct wpath path, bool recursive, struct store_cond cond,
		 uint64_t *ret_count, struct err *err);
/* A file or a directory. to_cond is of a file that is replaced; a directory is never replaced. */
int store_move(struct store *s, struct ctx *ctx, struct wpath from, struct wpath to, struct store_cond cond,
	       struct store_cond to_cond, struct store_stat *ret_stat, struct err *err);
/* One file. */
int store_copy(struct store *s, struct ctx *ctx, struct wpath from, struct wpath to, struct store_cond to_cond,
	       struct store_stat *ret_stat, struct err *err);
int store_list(struct store *s, struct ctx *ctx, struct wpath path, const struct store_list_req *req,
	       struct store_page *ret_page, struct err *err);
int store_scan(struct store *s, struct ctx *ctx, struct wpath path, const struct scan_req *req, struct err *err);
/* Makes the changes in their order, each under its condition, and ends with the first that cannot be made; those that
   were made are marked. A store that has a log on disk records the group with one append, or with few if it is large;
   what was recorded is finished after a kill. Where a file takes the place of a directory, or the other way round, what
   goes is a group of its own. The error is about one of the items, and has its operation and path before it. */
int store_group(struct store *s, struct ctx *ctx, struct store_group *group, struct err *err);

/* Read, change, write conditionally; repeated if another writer was first. `before` has ptr NULL when there is
   no such file (only with `create`; else that is ERR_NOT_FOUND). `change` may be called several times; it sets
   *ret_after, and leaves `ptr` NULL to change nothing. *ret_stat is the final state (kind 0: nothing). */
typedef int (*store_change_fn)(void *arg, struct arena *arena, struct str before, struct str *ret_after,
			       struct err *err);
struct store_change {
	size_t max;             /* bytes that the file may have */
	bool create;            /* the file need not exist */
	struct store_cond cond; /* a version: of what is read; then nothing is tried again */
	bool dry_run;
	store_change_fn change;
	void *arg;
};
int store_change(struct store *s, struct ctx *ctx, struct wpath path, const struct store_change *change,
		 struct str *ret_before, struct str *ret_after, struct store_stat *ret_stat, struct err *err);

/* For layers: the call made on `inner`, without a prefix to its error. */
int store_forward(struct store *inner, struct ctx *ctx, struct store_call *call, struct err *err);

/* Another owner of the same store: returns `s`. Each owner calls store_destroy() once. */
struct store *store_share(struct store *s);
/* Ends one ownership. With the last one the layers are destroyed from the outside in, and the backend. NULL is allowed.
 */
void store_destroy(struct store *s);

bool store_can(const struct store *s, enum store_ability ability);
/* Makes what was written durable, where that takes a call. */
int store_sync(struct store *s, struct err *err);
static inline bool store_is_local(const struct store *s)
{
	return store_can(s, STORE_LOCAL);
}

/* 0 when the condition holds for what is there (`version` only when it exists); else the sentence that all stores use.
 */
int store_cond_check(struct store_cond cond, bool exists, struct str version, struct err *err);

/* ERR_NOT_FOUND, with the sentence that all stores use. */
int store_not_found(struct err *err);
/* The same for a read that does without asking whether it is a directory. */
int store_may_be_dir(struct err *err);
/* What all stores refuse (ERR_INVALID) with the same sentence about a path. */
enum store_refusal {
	REFUSE_DIR,           /* a file is wanted */
	REFUSE_FILE,          /* a directory is wanted */
	REFUSE_BELOW_FILE,    /* a part of the path is a file */
	REFUSE_FILE_TARGET,   /* a directory would replace it */
	REFUSE_NOT_RECURSIVE, /* a directory is removed only recursively */
	REFUSE_DIR_VERSION,   /* a version is the condition, and a directory has none */
	REFUSE_LONG_PATH,     /* after a move it would have a path longer than PATH_LEN_MAX */
};
int store_refuse(enum store_refusal why, struct str path, struct err *err);

/* Shared by backends that hold the whole of a file's directory at once. The byte order of lists: a directory counts as
   its name with a final '/'. */
int store_entry_cmp(const struct store_entry *a, const struct store_entry *b);

/* The generic forms that store_copy and store_scan fall back to: over the front doors of `s` itself, so that no layer
   is bypassed. Layers whose answer is not their inner store's (overlay, mounts) use them as well. */
int store_copy_generic(struct store *s, struct ctx *ctx, struct wpath from, struct wpath to, struct store_cond to_cond,
		       struct store_stat *ret_stat, struct err *err);
/* One file from one store to another, in bounded memory; ERR_CONFLICT when it changes while it is copied. */
int store_copy_between(struct store *from_store, struct ctx *ctx, struct wpath from, struct store *to_store,
		       struct wpath to, struct store_cond to_cond, struct store_stat *ret_stat, struct err *err);
int store_scan_generic(struct store *s, struct ctx *ctx, struct wpath path, const struct scan_req *req,
		       struct err *err);
/* What is at each of the paths, in few requests where they are near each other; kind 0: nothing. For layers: without a
   prefix to its error. */
int store_stat_all(struct store *s, struct ctx *ctx, const struct wpath *paths, size_t count, struct store_stat *ret,
		   struct err *err);
/* The changes of a group, one by one. */
int store_group_generic(struct store *s, struct ctx *ctx, struct store_group *group, struct err *err);
/* One file of a scan, read from `s` and handed to the visitor. `item` has its number, worker, path and size, and the
   offset from which on it is read; `chunk` has SCAN_CHUNK bytes (with contents); ctx's arena is reset. */
int store_scan_file(struct store *s, struct ctx *ctx, const struct scan_req *req, const struct scan_item *item,
		    char *chunk, struct err *err);

#endif
