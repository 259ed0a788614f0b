/* SPDX-License-Identifier: Apache-2.0 */
/* The pieces of a view: nodes, requests, and the files that are being written. */
#ifndef STEAD_SANDBOX_FUSE_FUSE_INTERNAL_H
#define STEAD_SANDBOX_FUSE_FUSE_INTERNAL_H

#include <linux/fuse.h>
#include <pthread.h>

#include "sandbox/fuse/fuse.h"

#define FUSE_THREADS_MAX 16
#define FUSE_WRITE_MAX   (1024 * 1024) /* bytes of one request; the kernel's own limit */
#define FUSE_NODES_KEPT  200000        /* that the kernel has forgotten */

/* A file that is open for writing, or was. */
struct stage {
	int fd;         /* a nameless temporary file */
	uint64_t size;  /* of the file */
	uint64_t hole;  /* the first bytes, which are in the store only */
	uint64_t clean; /* the first bytes, which the store has and has nothing after them; 0: all must be written */
	bool is_dirty;
	uint64_t asked; /* up to this size the quota was asked */
};

struct listing {
	struct arena *arena;
	struct listed {
		struct str name;
		bool is_dir;
	} * entries;
	size_t count, cap;
};

/* What the kernel knows by a number: a path, while it has one. */
struct node {
	uint64_t id, lookups;
	struct node *next_by_id, *next_by_path;
	char *path; /* NULL: it was removed, and is open still */
	size_t path_len;
	uint64_t path_hash;
	bool is_dir;
	bool is_made;                        /* a directory that the store does not have, because it is empty */
	bool is_new;                         /* a file that the store does not have yet */
	bool is_known;                       /* the rest is filled in */
	struct node **extra_at, *next_extra; /* in the list of those that the store does not list */
	uint64_t size;
	int64_t mtime_ns;
	int64_t own_mtime_ns; /* as set or caused through this view; 0: none. Of `version` */
	uint32_t mode;        /* 0: the store has none */
	char *version;        /* NULL: none */
	bool is_staged;       /* `size` is that of the stage, and what the store says does not count */
	/* Under `lock`: */
	pthread_mutex_t lock;
	unsigned opens;
	struct stage *stage;
	int fd; /* the file of this machine that has the bytes; -1: none */
	int64_t fd_delta;
	char *ahead; /* bytes that were read in advance */
	uint64_t ahead_at, ahead_len, ahead_window;
	struct listing *listing;
};

struct worker;

struct fuse_view {
	struct fuse_opts opts;
	int over; /* an eventfd: the mount is gone */
	int stop; /* an eventfd: end */
	int64_t started_ns;
	bool has_no_open;    /* the kernel opens files without asking */
	bool has_no_opendir; /* and directories */
	bool is_local;
	/* Who reads the next request. */
	pthread_mutex_t lead;
	atomic_uint waiting;
	pthread_mutex_t crew; /* of the two: */
	struct worker *workers[FUSE_THREADS_MAX];
	unsigned worker_count;
	atomic_bool is_ending, is_over;
	atomic_uint fds; /* kept open by nodes */
	_Atomic uint64_t ahead_bytes;
	/* The table. */
	pthread_mutex_t table;
	struct node **by_id, **by_path;
	size_t slots, node_count, named_count;
	uint64_t next_id;
	struct node *extras;
	uint64_t forgotten;
};

/* A request that is being answered, and the thread that does. */
struct worker {
	struct fuse_view *v;
	pthread_t thread;
	unsigned number;
	bool leads;
	atomic_bool is_writing; /* what it does is to be completed, also at the end */
	struct cancel cancel;
	_Atomic uint64_t unique;
	struct ctx ctx;
	char *in, *out; /* a request, an answer */
	size_t in_cap;
};

/* --- nodes (fuse_nodes.c); those without a remark take the lock of the table --- */

void nodes_init(struct fuse_view *v);
void nodes_release(struct fuse_view *v);
struct node *node_by_id(struct fuse_view *v, uint64_t id);
/* NULL: none. With the table locked. */
struct node *node_find_locked(struct fuse_view *v, struct str path);
/* The node of a path, made when there is none, with one lookup more. With the table locked. */
struct node *node_take_locked(struct fuse_view *v, struct str path);
/* With the table locked: */
/* True: it is another version than the one that was known. */
bool node_set_locked(struct node *n, const struct store_stat *stat);
void node_unname_locked(struct fuse_view *v, struct node *n);
void node_rename_locked(struct fuse_view *v, struct node *n, struct str to);
void node_extra_locked(struct fuse_view *v, struct node *n, bool is_extra);
void node_forget(struct fuse_view *v, uint64_t id, uint64_t count);
/* The path in the arena; false: it has none any longer. */
bool node_path(struct fuse_view *v, struct arena *arena, struct node *n, struct wpath *ret);
void node_attr_locked(struct fuse_view *v, struct node *n, struct fuse_attr *ret);
/* Directories above a path that lost a file stay. */
void nodes_keep_above(struct fuse_view *v, struct wpath path);
/* With its own lock: drops what is cached of the bytes. */
void node_drop_bytes(struct fuse_view *v, struct node *n);

/* --- requests (fuse_serve.c) --- */

/* From here on it may take time: another thread reads the requests. */
void step_aside(struct worker *w);
/* The same, if the store is not on this machine. */
void may_wait(struct worker *w);
void answer(struct worker *w, const struct fuse_in_header *in, int error, const void *bytes, size_t len);
void answer_entry(struct worker *w, const struct fuse_in_header *in, struct node *n, const struct fuse_open_out *open);
void fill_entry(struct fuse_view *v, struct node *n, struct fuse_entry_out *ret);
/* An error of a store as the kernel knows it; more than 0. */
int errno_of(const struct err *err);
/* A path below a directory; 0 or an errno. */
int child_path(struct worker *w, uint64_t parent, const char *name, struct wpath *ret);
void notify_inode(struct fuse_view *v, uint64_t id);
void notify_entry(struct fuse_view *v, uint64_t parent, struct str name);

typedef void (*fuse_op)(struct worker *w, const struct fuse_in_header *in, const void *arg, size_t len);

/* --- reading (fuse_read.c) --- */
void op_lookup(struct worker *w, const struct fuse_in_header *in, const void *arg, size_t len);
void op_getattr(struct worker *w, const struct fuse_in_header *in, const void *arg, size_t len);
void op_open(struct worker *w, const struct fuse_in_header *in, const void *arg, size_t len);
void op_read(struct worker *w, const struct fuse_in_header *in, const void *arg, size_t len);
void op_opendir(struct worker *w, const struct fuse_in_header *in, const void *arg, size_t len);
void op_readdir(struct worker *w, const struct fuse_in_header *in, const void *arg, size_t len);
void op_releasedir(struct worker *w, const struct fuse_in_header *in, const void *arg, size_t len);
void op_statfs(struct worker *w, const struct fuse_in_header *in, const void *arg, size_t len);
/* Bytes of a file as the store has it; a negative errno. With the node's lock. */
ssize_t read_stored(struct worker *w, struct node *n, uint64_t offset, size_t len, char *to);
void listing_destroy(struct listing *l);

/* --- writing (fuse_write.c, fuse_names.c) --- */
void op_create(struct worker *w, const struct fuse_in_header *in, const void *arg, size_t len);
void op_mknod(struct worker *w, const struct fuse_in_header *in, const void *arg, size_t len);
void op_write(struct worker *w, const struct fuse_in_header *in, const void *arg, size_t len);
void op_setattr(struct worker *w, const struct fuse_in_header *in, const void *arg, size_t len);
void op_flush(struct worker *w, const struct fuse_in_header *in, const void *arg, size_t len);
void op_fsync(struct worker *w, const struct fuse_in_header *in, const void *arg, size_t len);
void op_release(struct worker *w, const struct fuse_in_header *in, const void *arg, size_t len);
void op_mkdir(struct worker *w, const struct fuse_in_header *in, const void *arg, size_t len);
void op_unlink(struct worker *w, const struct fuse_in_header *in, const void *arg, size_t len);
void op_rmdir(struct worker *w, const struct fuse_in_header *in, const void *arg, size_t len);
void op_rename(struct worker *w, const struct fuse_in_header *in, const void *arg, size_t len);
/* With the node's lock; 0 or an errno. */
int stage_begin(struct worker *w, struct node *n);
int stage_load(struct worker *w, struct node *n);
int stage_commit(struct worker *w, struct node *n, struct err *err);
void stage_drop(struct node *n);
/* What is not written yet is, at the end. */
void stages_commit(struct worker *w);

#endif
