/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Constructors of every backend and layer. A layer owns the store it is put on: destroying the outermost destroys all.
 * A store that has another owner too is given as store_share(inner). A constructor that fails leaves the inner store to
 * its caller.
 */
#ifndef STEAD_STORE_STORES_H
#define STEAD_STORE_STORES_H

#include "base/env.h"
#include "store/store.h"

/* Backends. */
struct store *store_memory_new(void);

/* redis://[user@]host[:port][/db][?prefix=…], rediss:// (TLS), redis+unix:///path/of.sock; docs/stores.md has the
   options. Connects, so that what is wrong is known at once, within the deadline and cancel of `limits`. */
int store_redis_open(struct str url, const struct env *env, const struct ctx *limits, struct store **ret_store,
		     struct err *err);
/* What the server's settings mean for the files, when that is not "they are safe"; NULL: nothing to say. */
const char *store_redis_advice(struct store *s);
/* Round trips so far. */
uint64_t store_redis_trips(struct store *redis);

struct store_disk_opts {
	bool relaxed;        /* no fsync: a power cut may lose what was just acknowledged; a killed process may not */
	bool create;         /* make the directory if it is missing */
	const char *tmp_dir; /* for unfinished writes, on the same file system; NULL: the directory of the target */
	bool keep_links;     /* a file that has more than one name (hard links) cannot be changed: a write replaces the
				file, and the other names would keep the old bytes */
};
/* `dir` is a path of the host. Unfinished writes of dead processes in tmp_dir are swept at open. */
int store_disk_open(const char *dir, const struct store_disk_opts *opts, struct store **ret_store, struct err *err);
/* How often lists have read the names of a directory so far: for tests. */
uint64_t store_disk_dirs_read(struct store *disk);

/* "postgres://USER@HOST/DATABASE?schema=…&prefix=…" (docs/stores.md). The schema is made, or brought up to date, within
   the deadline and cancel of `limits`. */
int store_postgres_open(struct str url, const struct env *env, const struct ctx *limits, struct store **ret_store,
			struct err *err);
/* Of the schema that an open store has. */
int store_postgres_schema_version(void);
/* Round trips made so far, of a store without a prefix: for tests and benchmarks. */
uint64_t store_postgres_trips(struct store *postgres);
/* "mysql://USER@HOST/DATABASE?prefix=…", also "mariadb://…" (docs/stores.md). The tables are made, or brought up to
   date, within `limits`. */
int store_mysql_open(struct str url, const struct env *env, const struct ctx *limits, struct store **ret_store,
		     struct err *err);
/* The version of the tables that this program makes. */
int store_mysql_schema_version(void);
/* Round trips of the calls so far, for tests. */
uint64_t store_mysql_trips(struct store *mysql);

/* "s3://bucket/prefix?…" and "r2://…" (docs/stores.md); the server is not asked before the first operation. Keys come
   from `env`. */
int store_s3_open(struct str url, const struct env *env, struct store **ret_store, struct err *err);
/* Unfinished uploads below the store's prefix that are older than a day; `abort` ends them. */
int store_s3_uploads(struct store *s3, struct ctx *ctx, bool abort, uint64_t *ret_count, struct err *err);
/* Requests sent so far. */
uint64_t store_s3_requests(struct store *s3);

/* "disk:./dir", "memory:", "postgres://…", "s3://…". Credentials come from `env` (env_get(); used during the call
 * only). A URL of a kind that this build does not have is ERR_UNSUPPORTED; the message names those that it has. */
int store_open_url(struct str url, const struct env *env, struct store **ret_store, struct err *err);
/* The same within the deadline and cancel of `limits`. */
int store_open_url_within(struct str url, const struct env *env, const struct ctx *limits, struct store **ret_store,
			  struct err *err);
/* True when only this machine, or this process, sees what is stored there. */
bool store_url_is_local(struct str url);
/* The URL as it may be shown and logged: without a password. */
struct str store_url_shown(struct arena *arena, struct str url);

/* Layers. */
/* The subtree `dir` of inner as a store of its own. Errors and events name paths within it. */
struct store *store_prefix_new(struct store *inner, struct wpath dir);
struct store *store_readonly_new(struct store *inner);

/* Globs, compared without regard to case; one without '/' is an element at any depth, and a directory that matches
   covers all in it. "!glob" takes back earlier ones. */
struct guard_rules {
	const char *const *hidden; /* neither read nor written; absent from lists and scans */
	size_t hidden_count;
	const char *const *fixed; /* read but never changed */
	size_t fixed_count;
	/* Why a path may be read and not changed: the end of a sentence; NULL: it may be changed. NULL: no more rules.
	   Also asked for directories on the way. `refusal_arg` is borrowed. */
	const char *(*refusal)(const void *refusal_arg, struct wpath path);
	const void *refusal_arg;
};
/* The globs that are hidden everywhere: .stead and below, .env and its kin, key files. */
extern const struct guard_rules guard_defaults;
struct store *store_guard_new(struct store *inner, const struct guard_rules *rules);
/* What the rules of a store's guard say of a path; the store below is not asked. Without a guard everything is free. */
enum guard_says { GUARD_FREE, GUARD_FIXED, GUARD_HIDDEN };
enum guard_says store_guard_says(struct store *s, struct wpath path);
/* Refuses what a change of `path` through the store would be refused with. */
int store_guard_check_change(struct store *s, struct wpath path, struct err *err);
/* A number that no other guard of this process has or will have; 0: there is no guard. */
uint64_t store_guard_id(struct store *s);

struct quota_limits {
	uint64_t bytes, files, file_size; /* 0: unlimited */
	const char *whose;                /* "the workspace's" in messages; NULL: that */
	bool skips_own;                   /* .stead/ at the top is not counted */
};
/* Usage is counted once (lazily) and then kept; a recount when a write would fail catches up with outside changes. */
struct store *store_quota_new(struct store *inner, struct quota_limits limits);
/* Counts what `kept` reports in addition to the files: what history keeps of contents that were replaced or removed. A
   change then needs room for all of its new content, because what it replaces stays, and `each` bytes for its record.
   `again`: what `kept` remembers may be too much, so it counts from the beginning. Removing is never refused. */
void store_quota_count_kept(struct store *quota, uint64_t (*kept)(void *arg, bool again), void *arg, uint64_t each);

/* What changes that are still to be made would need. */
struct quota_need {
	uint64_t bytes;     /* that are new, in all */
	uint64_t replaced;  /* bytes that they replace or remove */
	uint64_t changes;   /* files that are written */
	uint64_t files;     /* those of them that are not there yet */
	uint64_t file_size; /* the largest */
};
/* Would they fit? ERR_QUOTA, with the sentence of a write. All quotas that are layers of `s` are asked; without one
   everything fits. */
int store_quota_check(struct store *s, struct ctx *ctx, struct quota_need need, struct err *err);
/* True when `s` has a quota among its layers. */
bool store_quota_bounds(const struct store *s);
/* Calls `make` for a change of files that are counted but that is not made through `s` and has no history. It is
   refused if it does not fit, and counted if it succeeds. */
int store_quota_around(struct store *s, struct ctx *ctx, struct quota_need need,
		       int (*make)(void *arg, struct err *err), void *arg, struct err *err);

/* Upper is written; lower is only read. Deleting what lower has leaves a whiteout in upper, below ".stead-wh", a name
   that no path may have here. Versions of lower's files begin with "l:". Owns both. */
struct store *store_overlay_new(struct store *upper, struct store *lower);
/* The same with another name for ".stead-wh" (borrowed), so that one overlay may hold the whiteouts of another. */
struct store *store_overlay_marked_new(struct store *upper, struct store *lower, const char *mark);

struct store_mount {
	struct wpath at;
	struct store *store; /* owned */
	bool read_only;
};
/* Longest prefix wins; what no mount covers is `base`'s. A mount hides what base has below it. Owns all. */
struct store *store_mounts_new(struct store *base, const struct store_mount *mounts, size_t count);

enum split_side { SPLIT_FIRST, SPLIT_SECOND, SPLIT_BOTH };
/* One tree in two stores, at the same paths. `side` tells which store has a path, with all below it; SPLIT_BOTH is a
   directory that both may have parts of. Owns both. */
struct store *store_split_new(struct store *first, struct store *second, enum split_side (*side)(struct wpath path));

struct cache_opts {
	struct str identity; /* of the inner store: unlike that of any other that shares the directory */
	uint64_t bytes;      /* how much is kept */
	const char *dir;     /* of the host; several processes may share it. NULL: in memory */
};
/* Keeps bytes of files, never versions: what is given is always what the inner store has now. For stores far away; a
   scan reads only what changed since the last one. */
struct store *store_cache_new(struct store *inner, struct cache_opts opts);
struct cache_state {
	uint64_t files, bytes, damaged;
};
/* Reads all that is kept in a cache's directory; `remove`: what is damaged goes. False: there is none. */
bool store_cache_check(const char *dir, bool remove, struct cache_state *ret);

struct store_event {
	enum store_op op; /* write, append, remove, move, copy */
	struct wpath path, to;
	struct str version;        /* after; empty when removed */
	enum store_cond_kind cond; /* of what was written: "absent" made a file, "version" replaced one */
	struct actor actor;
};
typedef void (*store_listener)(void *arg, const struct store_event *event);
/* Tells listeners of every change made through it, after it happened, on the changing thread. */
struct store *store_events_new(struct store *inner);
/* A handle for store_events_unlisten; listeners may be added and removed at any time from any thread. */
uint64_t store_events_listen(struct store *events, store_listener listener, void *arg);
/* When it returns, the listener is not running and will not run again. Not to be called from a listener. */
void store_events_unlisten(struct store *events, uint64_t handle);

/* Tests: fails the n-th operation (1 …) with `kind`, before or after it reached inner; 0: never. Counts operations. */
struct store *store_fault_new(struct store *inner);
void store_fault_arm(struct store *fault, uint64_t nth, enum err_kind kind, bool after);
uint64_t store_fault_count(const struct store *fault);

#endif
