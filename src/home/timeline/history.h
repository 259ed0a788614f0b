/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The past of a workspace, for people and tools: history, difference, restore, undo, checkpoints, the change feed.
 * Paths are those that file tools use (relative to the tool root); the log's own paths never leave this file. Answers
 * are values (JSON), one shape for the tool, the command line and the library.
 *
 * A revision is named by its number, by a checkpoint's name, or by "head".
 */
#ifndef STEAD_HOME_TIMELINE_HISTORY_H
#define STEAD_HOME_TIMELINE_HISTORY_H

#include "workspace/past.h"

struct history_req {
	struct wpath path;     /* root: everything below the tool root */
	uint64_t since, until; /* 0: no bound */
	struct str user, agent, session, call_id;
	size_t limit; /* 0: HISTORY_LIMIT_DEFAULT */
	bool oldest_first;
	bool as_known; /* do not look for outside changes: the page before did */
};
/* {"head", "revisions":
   [{"revision","path","operation","actor":{…},"time","before":{…}|null,"after":{…}|null,"from"?,"to"?}],"more","next"?}:
   newest first; `next` is the `until` (oldest first: the `since`) to continue with. Records outside changes of what it
   looks at first. */
int history_list(struct workspace *ws, struct ctx *ctx, const struct history_req *req, struct jv **ret,
		 struct err *err);

/* {"from","to","files":[{"path","change":"added|removed|changed|binary|large","diff"?}],"more"}: unified differences of
   every file at and below `path` that differs between the two revisions, in the order of paths. Bounded. */
int history_diff(struct workspace *ws, struct ctx *ctx, struct wpath path, uint64_t from, uint64_t to, struct jv **ret,
		 struct err *err);

/* The same without a bound, one file at a time: `file` is good during the call only. `each` returns 0 to continue, 1 to
   end, or an error. */
typedef int (*history_diff_fn)(void *arg, const struct jv *file, struct err *err);
int history_diff_each(struct workspace *ws, struct ctx *ctx, struct wpath path, uint64_t from, uint64_t to,
		      history_diff_fn each, void *arg, struct err *err);
/* Records what other programs changed at `path` and below, so that "head" is what is there. In a store elsewhere than
   on this machine only a file is looked at, not what is below a directory. */
int history_notice(struct workspace *ws, struct ctx *ctx, struct wpath path, struct err *err);

/* Makes `path` (a file, or everything below a directory) what it was after `number`. A change like any other.
   {"path","to","restored":[paths],"removed":[paths],"counts":{"restored","removed"},"total","revision"}; the lists are
   bounded, `counts` and `total` are not. */
int history_restore(struct workspace *ws, struct ctx *ctx, struct wpath path, uint64_t number, struct jv **ret,
		    struct err *err);

struct undo_req {
	/* Which changes: exactly one of these, or none for the last call that is not undone yet. */
	bool has_since;
	uint64_t since;                     /* everything after this revision */
	struct str call_id, session, actor; /* actor: a user or an agent */
	bool redo;                          /* instead, takes back the last undo, if nothing was changed after it */
	bool dry_run;
	/* A person asks, at the command line. Without a name of an agent they may take back what any agent did in the
	   files of a family (a fact, a note); an agent only what itself did. */
	bool by_person;
};
/* Takes back the chosen changes. What was changed by others since is a conflict: reported with the difference, and then
   nothing at all is changed. What another program did is nobody's call: it is never taken back, only in the way.
   Undone again and again it goes further back; the call ids of the changes that it makes say what was taken back.
   Only the last call and a call by its id include files outside the tool root.
   {"undone":[numbers],"changes","files":[{"path","to","how":"restored|removed|unchanged"}],"counts":{"restored",
   "removed","unchanged"},"total","conflicts":[{"path","revision","diff"?}],"redo","dry_run"}; ERR_CONFLICT when there
   are conflicts and it is not a dry run (ret is written then too). The lists are bounded; `changes`, `counts` and
   `total` (files) are not. */
int history_undo(struct workspace *ws, struct ctx *ctx, const struct undo_req *req, struct jv **ret, struct err *err);

int history_checkpoint(struct workspace *ws, struct ctx *ctx, struct str name, struct jv **ret, struct err *err);
int history_checkpoints(struct workspace *ws, struct ctx *ctx, struct jv **ret, struct err *err);

/* The feed: revisions after `since` below `path`, oldest first; waits up to wait_ms for the first. {"changes":[…as in
   history_list…],"next": the number to ask with next,"more"} No gap and no repeat, whatever restarts. */
int history_changes(struct workspace *ws, struct ctx *ctx, uint64_t since, struct wpath path, unsigned wait_ms,
		    size_t limit, struct jv **ret, struct err *err);

#endif
