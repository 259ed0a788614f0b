/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the notebook share: the handle, and the catalogue of what there is. */
#ifndef STEAD_HOME_NOTEBOOK_NOTEBOOK_INTERNAL_H
#define STEAD_HOME_NOTEBOOK_NOTEBOOK_INTERNAL_H

#include <pthread.h>

#include "base/limits.h"
#include "home/notebook/notebook.h"
#include "text/frontmatter.h"
#include "tool/prompt_section.h"
#include "tool/search_source.h"
#include "workspace/workspace_parts.h"

#define NOTE_PROBLEMS_SHOWN 20
#define NOTES_DIR           ((struct wpath){STR("notes")})
#define NOTE_INDEX          ((struct wpath){STR("WORKSPACE.md")})

/* --- note_file.c --- */

/* The nearest kind there is: finding for nothing, note for what is not known. */
struct str note_kind(struct str kind);
/* False when the path is not one of a note. Names are as encoded in the path. */
bool note_path_split(struct wpath path, struct str *ret_author, struct str *ret_namespace, struct str *ret_slug);
/* The number before the first '-', of 3 or more digits; else 0. */
uint64_t note_number(struct str slug);
/* The file; `old_head` (may be NULL) keeps its place and what we do not know of it. */
int note_format(struct arena *arena, const struct note *note, const struct jv *old_head, struct str *ret,
		struct err *err);

/* --- notebook_catalog.c --- */

struct entry;
struct catalog;

void catalog_destroy(struct catalog *c);
struct notebook;
/* Keeps a large catalogue for the next process, when it differs enough from the one that is kept. */
void catalog_save(struct notebook *nb);

struct notebook {
	struct workspace *ws;
	struct store *home, *shared; /* of the user; of the workspace, where the log is */
	struct arena *arena;         /* what lives as long as the handle; written to while it is opened only */
	struct str author, author_dir;
	struct wpath part, counter; /* in shared */
	pthread_mutex_t lock;       /* catalog and cited */
	struct catalog *catalog;    /* NULL: not looked at yet */
	struct cited *cited;
	/* notebook_index.c */
	pthread_mutex_t flush_lock;
	pthread_cond_t flush_wake;
	pthread_t flusher;
	bool flushing, has_flusher, ending, dirty;
	uint64_t last_number; /* the highest that this handle has given */
};

/* Brings the catalogue up to date with everything written before the call. With nb->lock held. */
int catalog_refresh(struct notebook *nb, struct ctx *ctx, struct err *err);
size_t catalog_count(const struct catalog *c);
/* Entries from the last updated on: 0 … count - 1. Good until the next refresh. */
const struct note *catalog_at(const struct catalog *c, size_t index);
/* The next entry after `after` (NULL: the first) that has the slug; NULL when there are no more. */
const struct note *catalog_slug(const struct catalog *c, struct str slug, const struct note *after);
/* Index of the first entry after the cursor. */
int catalog_seek(const struct catalog *c, struct str cursor, size_t *ret_index, struct err *err);
struct str catalog_cursor(struct arena *arena, const struct note *note);
uint64_t catalog_problems(const struct catalog *c, struct arena *arena, struct note_problem **ret);
/* The revision that the catalogue shows, and the highest number in it. */
uint64_t catalog_revision(const struct catalog *c);
uint64_t catalog_number(const struct catalog *c);
/* A copy without the body, in the arena. */
struct note note_copy(struct arena *arena, const struct note *n);

/* --- notebook.c --- */

struct notebook *notebook_new(struct workspace *ws);
void notebook_destroy(struct notebook *nb);
/* Reads and parses the note at a path. *ret_stat may be NULL. */
int notebook_load(struct notebook *nb, struct ctx *ctx, struct wpath path, struct note *ret, struct jv **ret_head,
		  struct store_stat *ret_stat, struct err *err);
/* The path of the note that `ref` names (notebook_read). */
int notebook_find(struct notebook *nb, struct ctx *ctx, struct str ref, struct wpath *ret, struct err *err);

/* --- notebook_index.c --- */

/* Something was written: WORKSPACE.md is to follow, soon. */
void index_dirty(struct notebook *nb, uint64_t number);
/* Ends the thread that writes it, after a last time. */
void index_end(struct notebook *nb);

/* For search. */
extern const struct search_source notebook_sources[];
/* For the prompt. */
extern const struct prompt_section notebook_sections[];

#endif
