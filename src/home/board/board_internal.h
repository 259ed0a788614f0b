/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the family share. */
#ifndef STEAD_HOME_BOARD_BOARD_INTERNAL_H
#define STEAD_HOME_BOARD_BOARD_INTERNAL_H

#include "base/limits.h"
#include "home/board/board.h"
#include "store/stores.h"
#include "tool/family.h"
#include "tool/prompt_section.h"

/* --- names (board.c) --- */

/* ERR_INVALID: not a name of a board. Empty: the default. */
int board_name(struct str text, struct str *ret, struct err *err);
/* "boards/<board>/<rest>" in the arena. */
__attribute__((format(printf, 3, 4))) struct wpath board_path(struct arena *arena, struct str board, const char *fmt,
							      ...);
/* 64 bits as decimal digits that sort by time. */
struct str board_id_new(struct arena *arena);
bool board_is_id(struct str text);
struct str board_now(struct arena *arena);
bool word_in(struct str word, const char *const *words, size_t count);
/* Copies the members of `from` that are named (ends with NULL) and there; null removes the member. */
void copy_members(struct arena *arena, struct jv *to, const struct jv *from, const char *const *names);

/* --- records (board_record.c) --- */

struct item {
	struct str board, id;
	struct jv *v; /* may be changed */
	struct str version;
	bool archived;
};
/* Reads a record, and first lets the journal have what it still lacks. */
int item_load(struct workspace *ws, struct ctx *ctx, struct board_ref ref, struct item *ret, struct err *err);
/* Changes the record by a conditional write; `edit` may run several times, each time on what is there then. It sets
   e->is_unchanged when there is nothing to change. */
struct item_edit {
	int (*edit)(struct item_edit *e, struct jv *item, struct err *err);
	void *arg;
	struct store_cond cond; /* a version: nothing is tried again */
	/* Filled in. */
	struct workspace *ws;
	struct ctx *ctx;
	struct str board, id;
	struct jv *item;
	bool is_unchanged;
};
int item_edit(struct workspace *ws, struct ctx *ctx, struct board_ref ref, struct item_edit *e, struct err *err);
/* The record as clients see it, and as a line of a list. */
struct jv *item_view(struct arena *arena, const struct jv *record);
struct jv *item_line(struct arena *arena, const struct jv *record);
struct str item_key(const struct jv *item);
/* Any other record of a board: `change` gets it parsed, or NULL when it is new. */
struct record_edit {
	int (*edit)(struct record_edit *e, struct jv *record, bool is_new, struct err *err);
	void *arg;
	bool create;
	struct ctx *ctx;
	struct jv *record;
};
int record_edit(struct workspace *ws, struct ctx *ctx, struct wpath path, struct record_edit *e, struct err *err);
int record_read(struct workspace *ws, struct ctx *ctx, struct wpath path, struct jv **ret, struct str *ret_version,
		struct err *err);
/* All records of a directory, in the order of their names, at most `max`. */
int records_read(struct workspace *ws, struct ctx *ctx, struct wpath dir, size_t max, struct jv **ret, struct err *err);

/* --- the board itself (board.c) --- */

int board_get(struct workspace *ws, struct ctx *ctx, struct str board, struct jv **ret, struct err *err);
int board_set(struct workspace *ws, struct ctx *ctx, struct str board, const struct jv *fields, struct jv **ret,
	      struct err *err);
int board_all(struct workspace *ws, struct ctx *ctx, struct jv **ret, struct err *err);
/* The id of the coordinator's thread, or empty. */
struct str board_coordinator(struct workspace *ws, struct ctx *ctx, struct str board);

/* --- threads and assignments (board_threads.c, board_assign.c) --- */

int thread_create(struct workspace *ws, struct ctx *ctx, struct str board, const struct jv *fields, struct jv **ret,
		  struct err *err);
int thread_update(struct workspace *ws, struct ctx *ctx, struct str board, struct str id, const struct jv *fields,
		  struct jv **ret, struct err *err);
int thread_list(struct workspace *ws, struct ctx *ctx, struct str board, struct jv **ret, struct err *err);
/* ERR_NOT_FOUND names list_threads. */
int thread_get(struct workspace *ws, struct ctx *ctx, struct str board, struct str id, struct jv **ret,
	       struct err *err);
int item_assign(struct workspace *ws, struct ctx *ctx, struct board_ref ref, const struct jv *fields, struct jv **ret,
		struct err *err);
int assignment_update(struct workspace *ws, struct ctx *ctx, struct board_ref ref, const struct jv *fields,
		      const struct board_caller *caller, struct jv **ret, struct err *err);
int item_delegate(struct workspace *ws, struct ctx *ctx, struct str board, const struct jv *fields, struct jv **ret,
		  struct err *err);
/* The item's status and thread follow from its assignments. */
void item_reconcile(struct arena *arena, struct jv *item, struct str coordinator);
/* Running assignments wait again, and the coordinator decides. */
void item_preempt(struct arena *arena, struct jv *item, struct str coordinator, const char *reason);
/* The assignment of this id, or the newest one of the thread that has not ended; NULL: none. */
struct jv *assignment_find(const struct jv *item, struct str id, struct str thread_id);

/* --- completion (board_complete.c) --- */

bool status_is_final(struct str status);
/* What ends work, checked: summary, lines, artifacts with size and SHA-256, the item's acceptance checks. */
struct handoff {
	struct str status, summary, findings, cautions, next;
	struct jv *artifacts, *checks;
};
int handoff_make(struct workspace *ws, struct ctx *ctx, const struct item *item, const struct jv *fields,
		 struct handoff *ret, struct err *err);
/* {id, at, by_thread_id, by_agent_name, result_summary, artifacts, findings, cautions, next, checks}. */
struct jv *handoff_value(struct arena *arena, const struct handoff *handoff, const struct board_caller *caller,
			 struct str assignment_id);
/* An item that waits for its children becomes pending when all of them are completed. */
int item_wake(struct workspace *ws, struct ctx *ctx, struct board_ref ref, struct err *err);
/* True when one of its children has not ended. */
int item_has_open_children(struct workspace *ws, struct ctx *ctx, struct str board, const struct jv *item, bool *ret,
			   struct err *err);
/* ERR_INVALID: the list of checks, or one of mounts, is not valid. */
int checks_validate(struct workspace *ws, const struct jv *checks, struct err *err);
/* Runs the checks of the item over its files. *ret_ok: all passed. */
int checks_run(struct workspace *ws, struct ctx *ctx, struct store *task, const struct item *item,
	       struct jv **ret_results, bool *ret_ok, struct err *err);

/* --- files --- */

int mounts_validate(struct workspace *ws, struct ctx *ctx, const struct jv *mounts, struct err *err);
/* The item's directory without mounts, caps and guard. */
struct store *item_dir(struct workspace *ws, struct ctx *ctx, struct str board, struct str key);
struct jv *mounts_view(struct arena *arena, const struct jv *mounts);
/* The last name of a path with all but [A-Za-z0-9._-] as '_'. */
struct str attachment_name(struct arena *arena, struct str name);

/* --- schedules (board_schedule.c) --- */

/* Checks schedule_kind, next_run_at and interval_seconds, and puts what follows from them into a new record. */
int schedule_fields(struct arena *arena, const struct jv *fields, struct jv *record, struct err *err);
/* Whether its time has not come, or nobody has looked since. */
bool schedule_waits(const struct jv *item);
/* The mark that makes it come: written before the record, if it waits; removed. */
int schedule_mark(struct workspace *ws, struct ctx *ctx, struct str board, const struct jv *record, struct err *err);
int schedule_unmark(struct workspace *ws, struct ctx *ctx, struct str id, struct err *err);
/* From now on it is an item like others. */
void schedule_clear(struct jv *item);
/* Makes the item that `item` names as the next one, if it is not there. */
int item_follow(struct workspace *ws, struct ctx *ctx, struct str board, const struct jv *item, struct err *err);

/* --- the journal --- */

/* Puts an entry into the record; item_settle() moves it to the file. */
void item_journal_queue(struct arena *arena, struct jv *item, const struct handoff *handoff, struct str name,
			const char *marker_kind, struct str marker_id);
/* Adds what is queued, and takes it off the record. */
int item_settle(struct workspace *ws, struct ctx *ctx, struct item *item, struct err *err);
/* The journal as it is; empty: none. */
int item_journal_read(struct workspace *ws, struct ctx *ctx, const struct item *item, struct str *ret, struct err *err);
/* What of a journal goes into a prompt. */
struct str item_journal_tail(struct arena *arena, struct str journal);
/* For tests: compacts when it is due. *ret_old: the entries that leave the file, verbatim; ptr NULL: it is not due. */
struct str item_journal_compact(struct arena *arena, struct str journal, struct str archive_name, struct str now,
				struct str *ret_old);

/* --- comments, questions, approvals, notices (board_talk.c) --- */

int comment_add(struct workspace *ws, struct ctx *ctx, struct board_ref ref, const struct jv *fields,
		const struct board_caller *caller, struct jv **ret, struct err *err);
int comment_resolve(struct workspace *ws, struct ctx *ctx, struct board_ref ref, const struct jv *fields,
		    const struct board_caller *caller, struct jv **ret, struct err *err);
/* {comments: [...], next_cursor?}, newest last. */
int comment_list(struct workspace *ws, struct ctx *ctx, struct board_ref ref, size_t limit, struct str cursor,
		 struct jv **ret, struct err *err);
int question_ask(struct workspace *ws, struct ctx *ctx, struct board_ref ref, const struct jv *fields,
		 const struct board_caller *caller, struct jv **ret, struct err *err);
int approval_request(struct workspace *ws, struct ctx *ctx, struct board_ref ref, const struct jv *fields,
		     const struct board_caller *caller, struct jv **ret, struct err *err);
int item_watch(struct workspace *ws, struct ctx *ctx, struct board_ref ref, struct str thread_id,
	       const struct jv *events, struct jv **ret, struct err *err);
/* {text, level?, item?, thread_id?}. */
int notice_add(struct workspace *ws, struct ctx *ctx, struct str board, struct jv *notice, struct err *err);
/* Tells the threads that watch the item. */
void notice_watchers(struct workspace *ws, struct ctx *ctx, struct str board, const struct jv *item, const char *event);
int notice_list(struct workspace *ws, struct ctx *ctx, struct str board, const struct jv *args, struct jv **ret,
		struct err *err);
int notice_mark(struct workspace *ws, struct ctx *ctx, struct str board, const struct jv *ids, struct jv **ret,
		struct err *err);

/* --- the family's tables --- */

extern const struct family board_family;
extern const struct prompt_section board_sections[];
/* What the family keeps for an open workspace. */
struct board_state;
void *board_state_new(struct workspace *ws);
void board_state_destroy(void *state);
void board_check(struct workspace *ws, struct ctx *ctx, const struct findings *findings);

/* `files` of the family: what is mounted into the task that is the root of the tools. */
int board_root_files(struct workspace *ws, struct ctx *ctx, struct store **ret, struct err *err);

#endif
