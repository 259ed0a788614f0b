/* SPDX-License-Identifier: Apache-2.0 */
/* What the files behind history.h share: paths of the log and of the tools, walks over the log, bytes of the past. */
#ifndef STEAD_HOME_TIMELINE_HISTORY_INTERNAL_H
#define STEAD_HOME_TIMELINE_HISTORY_INTERNAL_H

#include "home/timeline/history.h"
#include "revisions/revisions.h"
#include "store/stores.h"

/* Calls `each` for the revisions of the query, page by page: `r` is good during the call only. It returns 0 to go on,
   PAST_ENOUGH to end, or an error. The query's limit is not used. */
#define PAST_ENOUGH 1
typedef int (*past_fn)(void *arg, const struct revision *r, struct err *err);
int past_each(struct workspace *ws, struct ctx *ctx, struct rev_query query, past_fn each, void *arg, struct err *err);

/* One file that differs, or may, between two revisions. */
struct past_change {
	struct wpath logged, shown;
	struct rev_state before, after;
	bool fixed; /* tools may not change it */
};
/* What the revisions after `since` up to `until` (0: all) changed at `path` and below, sorted by path. */
int past_changes(struct workspace *ws, struct ctx *ctx, struct wpath path, uint64_t since, uint64_t until,
		 struct past_change **ret, size_t *ret_count, struct err *err);
/* ERR_NOT_FOUND when history does not reach back to what was after `number`. */
int past_kept(struct workspace *ws, struct ctx *ctx, uint64_t number, struct err *err);
/* Records what other programs did to `path` and below. */
int past_notice(struct workspace *ws, struct ctx *ctx, struct wpath path, struct err *err);

bool past_same(const struct rev_state *a, const struct rev_state *b);
/* The versions of a state outlive the page they came from. */
struct rev_state past_keep(struct ctx *ctx, const struct rev_state *state);
int past_read(struct workspace *ws, struct ctx *ctx, struct wpath logged, uint64_t number, size_t max,
	      struct str *ret_bytes, struct err *err);
/* {"path","change","diff"}; NULL when there is no difference. Contents that are too large to compare have no "diff".
 */
int past_diff(struct workspace *ws, struct ctx *ctx, const struct past_change *change, uint64_t from, uint64_t to,
	      unsigned lines_max, struct jv **ret, struct err *err);

#endif
