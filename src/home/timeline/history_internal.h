/* SPDX-License-Identifier: Apache-2.0 */
/* What the files behind history.h share: paths of the log and of the tools, walks over the log, bytes of the past. */
#ifndef STEAD_HOME_TIMELINE_HISTORY_INTERNAL_H
#define STEAD_HOME_TIMELINE_HISTORY_INTERNAL_H

#include "home/timeline/history.h"
#include "revisions/revisions.h"
#include "store/stores.h"

/* Calls `each` for the revisions of the query, page by page: `r` is good during the call only. It returns 0 to
   continue, PAST_ENOUGH to end, or an error. The query's limit is what the caller is likely to look at; 0: it is not
   known. */
#define PAST_ENOUGH 1
typedef int (*past_fn)(void *arg, const struct revision *r, struct err *err);
int past_each(struct workspace *ws, struct ctx *ctx, struct rev_query query, past_fn each, void *arg, struct err *err);
/* The same of any log. */
int past_each_in(struct store *log, struct ctx *ctx, struct rev_query query, past_fn each, void *arg, struct err *err);

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

bool past_same(const struct rev_state *a, const struct rev_state *b);
/* True when two files are known to have other permissions or another owner. */
bool past_rights_differ(const struct rev_state *a, const struct rev_state *b);
/* A copy of the state that outlives the page it came from. */
const struct rev_state *past_keep(struct ctx *ctx, const struct rev_state *state);
int past_read(struct workspace *ws, struct ctx *ctx, struct wpath logged, uint64_t number, size_t max,
	      struct str *ret_bytes, struct err *err);
/* {"path","change","diff"}; NULL when there is no difference. Contents that are too large to compare have no "diff".
 */
int past_diff(struct workspace *ws, struct ctx *ctx, const struct past_change *change, uint64_t from, uint64_t to,
	      unsigned lines_max, struct jv **ret, struct err *err);

/* --- going back (history_restore.c) --- */

/* A path that goes back, and to what. */
struct step {
	struct wpath logged, shown;
	bool is_home;    /* of a family: `shown` is its path in workspace_home(), else in workspace_files() */
	uint64_t number; /* to what it was after this */
	const struct rev_state *then, *now;
	bool with_rights; /* the file gets the permissions and the owner that it had then, as far as they are known */
};
/* Some of them, as the first members of an array's elements. */
struct steps {
	const void *first;
	size_t size, count;        /* size: of an element */
	const char *taken_back_by; /* the command that takes back a part that was made */
};
bool step_is_needed(const struct step *step);
/* "restored", "removed" or "unchanged". */
const char *step_how(const struct step *step);
/* The log that has the path. */
struct store *step_log(struct workspace *ws, const struct step *step);
/* Records what another program did to one of the paths; *ret_new: it did something, so the plan must be made again. */
int steps_settle(struct workspace *ws, struct ctx *ctx, const struct steps *steps, bool *ret_new, struct err *err);
/* ERR_NOT_FOUND when a content that is to come back is not kept. */
int steps_check_kept(struct workspace *ws, struct ctx *ctx, const struct steps *steps, struct err *err);
/* Makes all of them: what goes first, then what comes back. */
int steps_make(struct workspace *ws, struct ctx *ctx, const struct steps *steps, struct err *err);

/* --- which calls are undone (undo_marks.c) --- */

/* What an undo took back, as far as the next undo has to know it. */
enum undo_what { UNDO_NUMBER, UNDO_SINCE, UNDO_SESSION, UNDO_ACTOR };
struct undo_mark {
	bool is_redo;
	enum undo_what what;
	uint64_t number; /* the newest revision of the call that was taken back; UNDO_SINCE: all after this */
	struct str name; /* of a session or actor, encoded */
};
/* The id of a call that takes back what the mark says: it marks the call's changes in the log. */
struct str undo_mark_call(struct arena *arena, const struct undo_mark *mark, struct str call_id);

/* Finds the next call to undo or redo while the log is walked from the newest change back. */
struct undo_walk {
	struct arena *arena;
	bool redo;
	struct strmap *numbers, *calls; /* that were taken back */
	uint64_t floor;                 /* so was everything after this */
	struct undo_mark *names;        /* and everything by these */
	size_t name_count, name_cap;
};
struct undo_walk undo_walk_new(struct arena *arena, bool redo);
/* The call of this revision counts as taken back. */
void undo_walk_skip(struct undo_walk *walk, uint64_t number);
enum undo_met { UNDO_PASS, UNDO_CHANGE, UNDO_UNDO };
/* UNDO_PASS: continue with the next older one. UNDO_CHANGE: a change that is in effect; when redoing, that ends the
   chain. UNDO_UNDO: when redoing, the undo that is to be taken back. */
enum undo_met undo_walk_meet(struct undo_walk *walk, const struct revision *r);

#endif
