/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of libstead share: the handle, and the frame of every call that works on the workspace. */
#ifndef STEAD_LIB_LIB_INTERNAL_H
#define STEAD_LIB_LIB_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/ctx.h"
#include "stead.h"
#include "store/store.h"
#include "tool/tool.h"
#include "workspace/workspace.h"

struct subscription;

struct stead {
	struct stead *root; /* whose workspace is opened; itself unless stead_open_for() made this one */
	atomic_size_t refs; /* of a root: its handle and those opened from it. The last one closes the workspace. */
	struct workspace *ws;
	struct toolset *set;
	pthread_mutex_t lock; /* of the list; never held while a listener runs */
	struct subscription *subscriptions;
};

struct stead_cancel {
	struct cancel cancel;
};

/* One call: its memory, its error, and what stead_call_options said. */
struct lib_call {
	struct ctx ctx;
	struct store_cond cond;
	struct wpath path;
	struct err err;
};

/* lib_begin() writes all of it and it is released when it leaves its scope, also when lib_begin() failed. */
#define LIB_CALL __attribute__((cleanup(lib_call_release))) struct lib_call
void lib_call_release(struct lib_call *c);

/* Starts a call: -kind (in c->err) for options that are wrong, and when the call is over before it began. */
int lib_begin(struct lib_call *c, struct stead *stead, const struct stead_call_options *how);
/* The same for calls that know no if_version. */
int lib_begin_plain(struct lib_call *c, struct stead *stead, const struct stead_call_options *how);
/* Parses a path into c->path. */
int lib_path(struct lib_call *c, const char *path);
/* What the function returns, with its error: `r` as internal functions have it. */
int lib_end(const struct err *err, int r, struct stead_error *error);

/* Copies a struct that the caller filled in to `ret`, of `known` bytes: a longer one is accepted when the rest is 0.
   `name` is its tag. */
int lib_take(const void *given, const char *name, void *ret, size_t known, struct err *err);
/* The end of a call that has `timeout_ms` from now; 0: none. */
int lib_deadline(int64_t timeout_ms, int64_t *ret_ns, struct err *err);

#endif
