/* SPDX-License-Identifier: Apache-2.0 */
/* What at.c and at_scan.c share: the past as a store. */
#ifndef STEAD_REVISIONS_AT_INTERNAL_H
#define STEAD_REVISIONS_AT_INTERNAL_H

#include "revisions/layer.h"

#define AT_QUIET_MAX 64

/* A path that was changed since, and what it was. */
struct changed {
	struct str path; /* stays as long as the view */
	bool existed;
	uint64_t size;
	int64_t time_ns;
};

struct at {
	struct store base;
	struct store *revisions; /* borrowed */
	uint64_t number;
	pthread_mutex_t lock;
	struct arena *memory;
	struct changed *changed; /* sorted by path */
	size_t count, cap;
	uint64_t known;     /* the log's head that `changed` covers */
	int64_t settled_ns; /* what has not changed since this time is what it was at the revision; 0: not known yet */
	/* Directories that were found to be what they were, each with the stamp that it had: as long as it has that
	   one, the log need not be looked at to list its names. */
	uint64_t quiet[AT_QUIET_MAX];
};

static inline struct at *at_of(struct store *s)
{
	return (struct at *)s;
}

/* The lock of the view is held in all of these. */

/* The first entry of `changed` that is not before `path`. */
size_t at_changed_from(const struct at *at, struct str path);
const struct changed *at_changed_find(const struct at *at, struct str path);
/* Takes in what was added to the log since the last time. The log is pinned. */
int at_bring_up(struct at *at, struct ctx *ctx, struct err *err);
/* Sets `settled_ns`, after at_bring_up(). */
int at_settle(struct at *at, struct ctx *ctx, struct err *err);

int at_scan(struct store *s, struct ctx *ctx, struct wpath path, const struct scan_req *req, struct err *err);

#endif
