/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the disk backend share. Rules for all of them: a path is resolved only by disk_open_path() and its
 * kin, from the root's descriptor; every other call works on a directory descriptor and one plain name; no link is ever
 * followed. Helpers that return a descriptor return -errno instead when they fail.
 */
#ifndef STEAD_STORE_BACKENDS_DISK_DISK_H
#define STEAD_STORE_BACKENDS_DISK_DISK_H

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/limits.h"
#include "store/store.h"

/* Names of unfinished writes. They do not belong to the store: never listed, read or written through it. */
#define DISK_TMP_PREFIX ".stead-tmp-"

#define DISK_TURNS 64

struct disk_kept;

struct disk {
	struct store base;
	int root; /* the directory that is the store's root */
	int tmp;  /* where named temporary files go; -1: into the directory of their target */
	dev_t tmp_dev;
	uid_t uid; /* of the root directory */
	gid_t gid;
	bool relaxed, keep_links;
	struct disk_reaper *reaper;
	struct disk_kept *kept;
	atomic_uint_fast64_t dirs_read; /* for lists */
	/* Who waits for the lock of a directory polls for it. Threads of this process take turns instead, by directory,
	   so that at most one of them polls. */
	pthread_mutex_t turns[DISK_TURNS];
	/* Learnt once from the kernel's first answer. */
	atomic_bool no_tmpfile;     /* the file system has no O_TMPFILE */
	atomic_bool above_synced;   /* the names of the directories above it */
	atomic_bool no_link_counts; /* the file system says that files have no links */
	atomic_bool link_by_proc;   /* linkat(AT_EMPTY_PATH) is not allowed: go by /proc/self/fd */
};

static inline struct disk *disk_of(struct store *s)
{
	return (struct disk *)s;
}

/* disk_fs.c: resolving, locking, errors. */

/* openat2 below `dir` with no link followed; a descriptor or -errno. `name` may have several elements. */
int disk_open_at(int dir, const char *name, int flags);
/* The same from the root with a store path ("" is the root itself). */
int disk_open_path(const struct disk *d, struct wpath path, int flags);
/* A directory to read and lock: O_RDONLY | O_DIRECTORY. */
int disk_open_dir(const struct disk *d, struct wpath path);
/* The same, and makes what is missing of it. *ret_made when it made something, also on failure. */
int disk_make_dir(struct disk *d, struct wpath path, bool *ret_made);
/* True when the open directory has been removed. */
bool disk_dir_is_gone(int dir);

/* One sentence for an errno of the file system; returns -kind. */
int disk_fail(struct err *err, int sys);
/* For what should be a file or directory of the store and is something else (mode of a link, FIFO, device, socket). */
int disk_fail_kind(struct err *err, mode_t mode);
/* When resolving the directory of `path` failed: names the element that is a file, below which nothing can be written.
 */
int disk_fail_parent(const struct disk *d, struct wpath path, int sys, struct err *err);
int disk_is_dir(struct wpath path, struct err *err);

/* True when an element of the path is the name of an unfinished write. */
bool disk_reserved(struct wpath path);
bool disk_name_reserved(const char *name);
/* ERR_INVALID for a reserved path that someone wants to make. */
int disk_refuse_reserved(struct wpath path, struct err *err);
/* The last element of `path`, terminated. */
void disk_name(struct wpath path, char ret_name[PATH_NAME_MAX + 1]);

/* Waits for the exclusive lock of a directory, at most until the call's deadline or DISK_LOCK_MAX. */
#define DISK_LOCK_MAX_NS (INT64_C(30) * 1000 * 1000 * 1000)
int disk_lock(const struct ctx *ctx, int dir, struct err *err);
/* How often a path is resolved again, when its directories vanish, before the call gives up because of others; between
   tries it waits, longer each time and at random. */
#define DISK_TRIES_MAX 1000
void disk_back_off(unsigned round);
void disk_unlock(int dir);
/* The turn of a directory is taken before its lock, and given back after it. Nobody holds two. NULL: it did not come
   for so long that the caller is to poll like everybody else, by its own deadline. */
#define DISK_TURN_MAX_NS (INT64_C(100) * 1000 * 1000)
pthread_mutex_t *disk_turn_take(struct disk *d, struct wpath dir);
static inline void disk_turn_end(pthread_mutex_t **turn)
{
	if (*turn)
		pthread_mutex_unlock(*turn);
	*turn = NULL;
}
#define TURN_SCOPE __attribute__((cleanup(disk_turn_end)))
/* fsync, unless the store is relaxed. */
int disk_sync(const struct disk *d, int fd, struct err *err);

/* True when the stat is of a file that is just being replaced or removed: it has no name in the directory any longer,
   and the kernel still finds it under the old one, with a new ctime and so with a version that it never had. Then the
   path must be resolved again; this waits a little before that. `round` counts from 0. Not needed under the lock. */
bool disk_is_going(struct disk *d, const struct stat *st, unsigned round);
/* lstat of a name; 0 or -errno. */
int disk_lstat(int dir, const char *name, struct stat *ret);
#define DISK_VERSION_LEN 16
void disk_version(const struct stat *st, char ret_hex[DISK_VERSION_LEN]);
/* Whom a file belongs to. */
struct store_owner disk_owner(const struct disk *d, const struct stat *st);
void disk_fill_stat(const struct disk *d, struct arena *arena, const struct stat *st, struct store_stat *ret);
/* `st` NULL: there is no file. */
int disk_check_cond(const struct stat *st, struct store_cond cond, struct err *err);

/* Removes `dir` and its parents as far as they are empty, never the root. Each is locked while it is removed, so that a
   writer who has the lock can rely on the directory; failures mean that it is in use. */
void disk_prune(const struct disk *d, struct wpath dir);
/* True when `name` was an empty directory (which does not exist, by the contract) and is gone now. */
bool disk_drop_empty_dir(int dir, const char *name);
/* Removes an unfinished write if its writer is dead. False when it lives. */
bool disk_sweep_name(int dir, const char *name);
/* All of them in one directory. */
void disk_sweep(int dir);

/* disk_reap.c: closes descriptors of files that were replaced, which may take long, on a thread of its own. */
struct disk_reaper *disk_reaper_new(void);
void disk_reaper_destroy(struct disk_reaper *reaper);
/* Takes the descriptor over; negative ones are ignored. */
void disk_let_go(const struct disk *d, int fd);

/* disk_names.c: the names of a directory. */
struct disk_names {
	char *text; /* heap */
	size_t len, cap;
	struct disk_name_ref *refs; /* heap */
	size_t count, ref_cap;
	size_t sorted; /* so many of the first are in their final places */
	size_t dead;   /* bytes of text that no name uses */
	struct store_count counted;
	int watch;     /* of the directory: changes are followed (disk_follow.c); 0: they are not */
	bool followed; /* it was changed since the names were read */
};
struct disk_name_ref {
	uint32_t at, len;   /* in text; terminated */
	unsigned char type; /* DT_REG, DT_DIR, DT_LNK …, never DT_UNKNOWN */
	bool valid;         /* can be an element of a path */
};
/* Reads all names but "." and "..", unsorted. Names of unfinished writes are left out, and those of dead writers are
   removed, unless `all`. */
int disk_names_read(int dir, bool all, struct disk_names *ret, struct err *err);
/* In list order: a directory counts with a '/' after its name. */
void disk_names_sort(struct disk_names *names);
/* Sorts at least the first `count` of them; the others follow in any order. */
void disk_names_sort_first(struct disk_names *names, size_t count);
void disk_names_release(struct disk_names *names);
/* A name was added (`by` 1) or is removed (-1). */
typedef void disk_names_hook(void *arg, struct disk_names *names, const struct disk_name_ref *ref, int by);
/* Adds a name to sorted ones, or corrects the kind of one that is there; removes one that may be there. A directory and
   a file of the same name are different names. False: there is no room. */
bool disk_names_put(struct disk_names *names, const char *name, unsigned char type, disk_names_hook *hook, void *arg);
void disk_names_remove(struct disk_names *names, const char *name, unsigned char type, disk_names_hook *hook,
		       void *arg);

/* disk_follow.c: what happens in directories whose names are kept. */
struct inotify_event;
struct disk_follow {
	int fd; /* of inotify; -1: none yet */
	bool failed;
};
void disk_follow_init(struct disk_follow *follow);
void disk_follow_release(struct disk_follow *follow);
/* Begins to watch an open directory; 0 when that cannot be done. */
int disk_follow_watch(struct disk_follow *follow, int dir);
void disk_follow_unwatch(struct disk_follow *follow, int watch);
/* Gives each event that has happened since the last time. False: some were lost. */
bool disk_follow_read(struct disk_follow *follow, void (*each)(void *arg, const struct inotify_event *event),
		      void *arg);
/* Events of a directory that wait for its next list. */
struct disk_events {
	char *text; /* heap */
	size_t len, cap;
	bool lost; /* there were too many, or the directory is gone */
};
#define DISK_EVENTS_MAX (16 * KIB) /* more: reading the names again is cheaper */
void disk_events_add(struct disk_events *events, const struct inotify_event *event);
/* Brings names up to date with the events, which are freed. False: the names cannot be used. */
bool disk_events_apply(struct disk_events *events, int dir, struct disk_names *names, disk_names_hook *hook, void *arg);

/* disk_kept.c: names of large directories, kept between the pages of a list. */
struct disk_stamp {
	dev_t dev;
	ino_t ino;
	struct timespec changed, modified;
	bool settled;    /* a change from now on cannot leave these times as they are */
	bool is_trusted; /* the file system tells of every change */
	bool is_large;   /* it may have so many names that following it is worth a watch */
	uint64_t missed; /* events that found no kept names, when it was taken */
};
struct disk_kept *disk_kept_new(void);
void disk_kept_destroy(struct disk_kept *kept);
/* To be taken before the names are read. */
struct disk_stamp disk_stamp_take(const struct disk *d, int dir);
/* The same for a list's page; 0 when it is not settled. */
uint64_t disk_stamp_number(const struct disk_stamp *stamp);
/* The names that were kept for the directory, if it is as it was then or what happened since is known; the caller owns
   them. `hook` gets the names that came and went. */
bool disk_kept_take(const struct disk *d, int dir, struct disk_stamp *stamp, disk_names_hook *hook, void *arg,
		    struct disk_names *ret);
/* To be called before the names of a large directory are read: follows it from now on, if that can be done. */
int disk_kept_watch(const struct disk *d, int dir, const struct disk_stamp *stamp);
/* True when names that were read after the stamp can be kept. */
bool disk_kept_can(const struct disk_stamp *stamp, const struct disk_names *names);
/* Keeps the names for the next page, or frees them. `stamp` is the one from before they were read. */
void disk_kept_put(const struct disk *d, const struct disk_stamp *stamp, struct disk_names *names);
/* Frees names that are no longer needed. */
void disk_kept_drop(const struct disk *d, struct disk_names *names);

/* disk_write.c */
int disk_write(struct store *s, struct ctx *ctx, struct wpath path, const struct source *source, struct store_cond cond,
	       struct store_stat *ret_stat, struct err *err);
int disk_append(struct store *s, struct ctx *ctx, struct wpath path, const struct source *source,
		struct store_cond cond, struct store_stat *ret_stat, struct err *err);
/* The same, and the copy belongs to `owner`, as far as that is permitted. */
int disk_copy_owned(struct store *s, struct ctx *ctx, struct wpath from, struct wpath to, struct store_cond to_cond,
		    struct store_owner owner, struct store_stat *ret_stat, struct err *err);
int disk_copy(struct store *s, struct ctx *ctx, struct wpath from, struct wpath to, struct store_cond to_cond,
	      struct store_stat *ret_stat, struct err *err);

/* disk_tree.c */
int disk_remove(struct store *s, struct ctx *ctx, struct wpath path, bool recursive, struct store_cond cond,
		uint64_t *ret_count, struct err *err);
int disk_move(struct store *s, struct ctx *ctx, struct wpath from, struct wpath to, struct store_cond cond,
	      struct store_cond to_cond, struct store_stat *ret_stat, struct err *err);

/* disk_list.c */
int disk_list(struct store *s, struct ctx *ctx, struct wpath path, const struct store_list_req *req,
	      struct store_page *ret_page, struct err *err);

/* disk_scan.c */
int disk_scan(struct store *s, struct ctx *ctx, struct wpath path, const struct scan_req *req, struct err *err);

#endif
