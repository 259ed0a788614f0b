/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Boards: items of work with a filesystem each, the lanes (threads) that work on them, and deliverables that were
 * checked when the work was called complete.
 *
 *     boards/<board>/board.json              what the board is called; its coordinator
 *     boards/<board>/items/<id>.json         one record for each item, with its assignments and deliverables
 *     boards/<board>/archive/<id>.json       the records of archived items
 *     boards/<board>/tasks/<key>/            what the item's threads see as /task
 *     boards/<board>/comments/<id>.jsonl     what people and agents said about it
 *     boards/<board>/threads/<id>.json       one record for each lane
 *     boards/<board>/lanes/<id>/             its own files: workspace/ and uploads/
 *     boards/<board>/notices.jsonl           notices for users and lanes
 *
 * A record is changed by one conditional write, so every transition is one transaction and takes any number of writers.
 * What a completion adds to the journal is part of the same record until the journal has it (board_journal.c).
 *
 * `ref` names an item: its id, its key (TASK-<id>), or the last digits of the id if they are unique.
 */
#ifndef STEAD_HOME_BOARD_BOARD_H
#define STEAD_HOME_BOARD_BOARD_H

#include "command/command.h"
#include "store/store.h"
#include "text/jv.h"
#include "workspace/workspace.h"

#define BOARD_DEFAULT "main"

/* Which item, of which board. */
struct board_ref {
	struct str board; /* empty: BOARD_DEFAULT */
	struct str ref;
};

/* Who acts: the lane that this connection is bound to (its session is the id of a thread), or else the one that it
   names. Empty: a person, or a program that acts for one. */
struct board_caller {
	struct str thread_id;
	struct str board;   /* that the thread is on */
	struct str purpose; /* of the thread */
	struct str name;    /* for the journal */
};

/* --- items (board_items.c) --- */

/* `fields`: title!, description, priority, status, child_of, checks, mounts, metadata, exclusive_owner_agent_id. */
int board_item_create(struct workspace *ws, struct ctx *ctx, struct str board, const struct jv *fields,
		      struct jv **ret_item, struct err *err);
int board_item_get(struct workspace *ws, struct ctx *ctx, struct board_ref ref, struct jv **ret_item, struct err *err);
struct board_list {
	struct str board, status, thread_id, child_of;
	bool archived;  /* only archived items, in place of the others */
	bool scheduled; /* only items whose time has not come, in place of the others */
	size_t limit;
	struct str cursor; /* the id that the previous page ended with */
};
/* {items, next_cursor?, total}: newest first; `total` counts all items of the board, whatever the filter. */
int board_item_list(struct workspace *ws, struct ctx *ctx, const struct board_list *list, struct jv **ret,
		    struct err *err);
/* Items whose time has come are on their boards from now on. *ret_next_ns: when the next one is due (real time);
   INT64_MAX: there is none. Lists do this by themselves; for who acts when nobody looks. */
#define BOARD_DUE_DIR "boards/.due"
#define BOARD_SHARED  "shared" /* below /task of an item that comes again: one directory for all of its series */
int board_fire(struct workspace *ws, struct ctx *ctx, int64_t now_ns, int64_t *ret_next_ns, struct err *err);
/* Title, description, priority, metadata, checks, status with what the status needs (board_complete.c). */
int board_item_update(struct workspace *ws, struct ctx *ctx, struct board_ref ref, const struct jv *fields,
		      const struct board_caller *caller, struct jv **ret_item, struct err *err);
/* Removes the files of the item, which history keeps, and puts its record into the archive; and back. */
int board_item_archive(struct workspace *ws, struct ctx *ctx, struct board_ref ref, struct jv **ret_item,
		       struct err *err);
int board_item_unarchive(struct workspace *ws, struct ctx *ctx, struct board_ref ref, struct jv **ret_item,
			 struct err *err);
/* Puts {path, name, original_name, mime_type, size_bytes} of a file into uploads/ of the item, and gives it. */
int board_item_attach(struct workspace *ws, struct ctx *ctx, struct board_ref ref, struct str name, struct str mime,
		      const struct source *source, struct jv **ret_attachment, struct err *err);

/* --- the filesystem of an item (board_files.c) --- */

/* What its threads see as /task: mounts included, the journal and the audit logs fixed, within the caps. The caller
   destroys it. */
int board_task_open(struct workspace *ws, struct ctx *ctx, struct board_ref ref, struct store **ret_task,
		    struct err *err);
/* "/task/x" or "x" as a path of that store. */
int board_task_path(struct arena *arena, struct str text, struct wpath *ret, struct err *err);
/* True for a directory of the layout of a task. It can be listed before the first file is in it. */
bool board_dir_is_fixed(struct wpath path);
/* The item whose /task is the tool root of this workspace handle (`--root task:KEY`); false: the root is another one.
 */
bool board_bound_item(struct workspace *ws, struct ctx *ctx, struct board_ref *ret);

/* --- the filesystem of a thread (board_lanes.c) --- */

/* Its own files, which outlive its runs and its items: workspace/ and uploads/, within the caps of an item. The caller
   destroys it. */
int board_thread_open(struct workspace *ws, struct ctx *ctx, struct str board, struct str id, struct store **ret,
		      struct err *err);
/* "/workspace/x" or "workspace/x" as a path of that store. */
int board_thread_path(struct arena *arena, struct str text, struct wpath *ret, struct err *err);
/* True for "/workspace" and "/uploads", and what is below. */
bool board_is_thread_path(struct str text);
/* Puts a file into uploads/ and gives its path, "/uploads/…". */
int board_thread_attach(struct workspace *ws, struct ctx *ctx, struct str board, struct str id, struct str name,
			const struct source *source, struct str *ret_path, struct err *err);
int board_thread_get(struct workspace *ws, struct ctx *ctx, struct str board, struct str id, struct jv **ret,
		     struct err *err);
/* The board that it is on: an id is unique in a workspace. */
int board_of_thread(struct workspace *ws, struct ctx *ctx, struct str id, struct str *ret, struct err *err);
/* What its run is doing: a status of threads, and why it failed (may be empty). */
int board_thread_note(struct workspace *ws, struct ctx *ctx, struct str board, struct str id, struct str status,
		      struct str problem, struct err *err);

/* --- the journal (board_journal.c) --- */

/* The last lines of the journal for a prompt: at most 60 lines of the last 16 KiB. Empty: there is none yet. */
int board_journal_tail(struct workspace *ws, struct ctx *ctx, struct board_ref ref, struct str *ret, struct err *err);
/* Adds a section that an agent or a person wrote. */
int board_journal_add(struct workspace *ws, struct ctx *ctx, struct board_ref ref, struct str text, struct err *err);

/* --- the end of a run (board_loop.c) --- */

/* Who acts: the thread that the session is bound to wins over `thread_id`. */
int board_caller(struct workspace *ws, struct ctx *ctx, struct str board, struct str thread_id,
		 struct board_caller *ret, struct err *err);
/* ERR_CONFLICT: the caller must not stop yet, and why. Else its thread is idle. */
int board_stop(struct workspace *ws, struct ctx *ctx, struct board_ref ref, const struct board_caller *caller,
	       struct err *err);
/* ERR_CONFLICT: TASK.md says too little to assign the item. */
int board_check_brief(struct workspace *ws, struct ctx *ctx, struct board_ref ref, struct err *err);

/* --- what only people decide (board_talk.c) ---

   There is no tool for these: an agent could answer its own question. */

/* `fields`: answers [{question_id!, value!}] or freeform_text. */
int board_question_answer(struct workspace *ws, struct ctx *ctx, struct board_ref ref, const struct jv *fields,
			  struct jv **ret_item, struct err *err);
/* `fields`: request_message_id!, approvals [{tool_name!, mode! allow_once|allow_always}]. */
int board_approval_answer(struct workspace *ws, struct ctx *ctx, struct board_ref ref, const struct jv *fields,
			  struct jv **ret_item, struct err *err);

/* --- changes of one item, for events (board_events.c) --- */

/* Like history_changes(): {changes, next, more}. A change of the record, of a comment, or of a file below /task; `path`
   of a change is "item", "comments" or "/task/…". */
int board_changes(struct workspace *ws, struct ctx *ctx, struct board_ref ref, uint64_t since, size_t limit,
		  struct jv **ret, struct err *err);

extern const struct command board_commands[];

#endif
