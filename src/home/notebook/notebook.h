/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The notebook: notes that the agents of a workspace write for each other and for themselves. A note is one Markdown
 * file, notes/<author>/[<namespace>/]NNN-title.md, whose head holds what is known of it; nobody but its author changes
 * it. The number is the notebook's, so a slug names one note whoever wrote it. WORKSPACE.md is the table of contents
 * for people: derived, and never waited for.
 *
 * One handle belongs to one open workspace, so to one user and one author. Thread-safe. The list of notes is loaded
 * when it is first needed, and freed with the workspace. Everything returned is in ctx->arena.
 */
#ifndef STEAD_HOME_NOTEBOOK_NOTEBOOK_H
#define STEAD_HOME_NOTEBOOK_NOTEBOOK_H

#include "workspace/workspace.h"

struct notebook;

/* The workspace's own; goes with it. */
struct notebook *workspace_notebook(struct workspace *ws);

enum note_answer { NOTE_NOT_ASKED, NOTE_OPEN, NOTE_ANSWERED };

struct note {
	struct str path; /* in the home of the user */
	struct str slug, author, title, kind, namespace;
	struct str body; /* exactly as it was written; of a listed note ptr is NULL */
	struct str lede; /* the first line of text, cut at 120 characters */
	const struct str *tags;
	size_t tag_count;
	int64_t created_ns, updated_ns;
	int64_t archived_ns, last_cited_ns; /* 0: never */
	enum note_answer answer;
	struct str answered_by, parent_slug, user_id, run_id;
	uint64_t number;  /* of the slug; 0: it has none */
	uint64_t version; /* 1, and one more with each update */
	uint64_t cited, succeeded;
	uint64_t body_size;
};

/* finding question decision summary artifact plan note; NULL at the end. */
extern const char *const note_kinds[];

struct note_new {
	struct str title, body, kind; /* kind empty: finding; unknown: note */
	const struct str *tags;
	size_t tag_count;
	struct str namespace, parent_slug;
};
/* Costs the same however many notes there are. */
int notebook_add(struct notebook *nb, struct ctx *ctx, const struct note_new *in, struct note *ret, struct err *err);

/* A note by "slug", "author/slug", a beginning of a slug that one note has, or part of a title in any case (the most
   recently updated one wins). ERR_NOT_FOUND says what to do; ERR_CONFLICT: several notes have this slug. */
int notebook_read(struct notebook *nb, struct ctx *ctx, struct str ref, struct note *ret, struct err *err);
/* The same as it was in an earlier version, as far as history is kept. */
int notebook_read_version(struct notebook *nb, struct ctx *ctx, struct str ref, uint64_t version, struct note *ret,
			  struct err *err);
struct note_version {
	uint64_t version, revision;
	int64_t time_ns;
	struct str lede;
	uint64_t size;
};
/* Oldest first, the present one last. */
int notebook_versions(struct notebook *nb, struct ctx *ctx, struct str ref, struct note_version **ret,
		      size_t *ret_count, struct err *err);

struct note_query {
	struct str author, kind, namespace, tag; /* empty: any */
	bool with_archived;
	bool open_questions; /* only those */
	size_t limit;        /* 0: 50; at most 1000 */
	struct str cursor;
};
struct note_problem {
	struct str path, why;
};
struct note_list {
	struct note *notes; /* last updated first */
	size_t count;
	uint64_t total;  /* that match */
	struct str next; /* cursor; ptr NULL: that was all */
	uint64_t problem_count;
	struct note_problem *problems; /* files that are not notes; the first 20 */
};
int notebook_list(struct notebook *nb, struct ctx *ctx, const struct note_query *query, struct note_list *ret,
		  struct err *err);

/* Only by the author: ERR_DENIED names the author. `tags` NULL keeps the tags. */
int notebook_update(struct notebook *nb, struct ctx *ctx, struct str slug, struct str body, const struct str *tags,
		    size_t tag_count, struct note *ret, struct err *err);
/* Hides it from lists, search and the index, or shows it again. */
int notebook_archive(struct notebook *nb, struct ctx *ctx, struct str slug, bool archived, struct note *ret,
		     struct err *err);
int notebook_ask(struct notebook *nb, struct ctx *ctx, struct str title, struct str body, struct note *ret,
		 struct err *err);
/* A finding whose parent is the question, which is then answered, whoever asked it. */
int notebook_answer(struct notebook *nb, struct ctx *ctx, struct str slug, struct str body, struct note *ret,
		    struct note *ret_question, struct err *err);

/* Slugs that were read through this handle since the last credit, oldest first, at most 1000. */
void notebook_cited(struct notebook *nb, struct ctx *ctx, struct str **ret, size_t *ret_count);
/* Credits notes with an outcome: one more citation each, one more success when it was one. `slugs` NULL: those that
   were read since the last time, which are then forgotten, so that an outcome counts once. */
int notebook_credit(struct notebook *nb, struct ctx *ctx, bool success, const struct str *slugs, size_t count,
		    uint64_t *ret_credited, struct err *err);

struct note_prune {
	int64_t idle_ns;    /* neither updated nor cited for this long; 0: whatever its age */
	uint64_t min_cited; /* notes cited at least so often stay; 0: 1 */
	const struct str *keep_kinds;
	size_t keep_count;
	bool dry_run;
};
/* Removes notes for good (history keeps them as long as it keeps anything). The host's, never a model's. */
int notebook_prune(struct notebook *nb, struct ctx *ctx, const struct note_prune *want, struct note_list *ret,
		   struct err *err);

/* The table of contents, as WORKSPACE.md has it: what is there now. */
int notebook_index(struct notebook *nb, struct ctx *ctx, struct str *ret, struct err *err);
/* Writes WORKSPACE.md if it is not up to date. */
int notebook_flush(struct notebook *nb, struct ctx *ctx, struct err *err);
/* The instructions for a model on the notebook: with teammates, and alone. */
struct str notebook_prompt(struct notebook *nb, struct ctx *ctx, const struct str *teammates, size_t count);

/* --- note files (note_file.c) --- */

/* Reads a note file. `path` gives slug, author and namespace: what the head says of them does not count. */
int note_parse(struct arena *arena, struct wpath path, struct str bytes, int64_t mtime_ns, struct note *ret,
	       struct err *err);
/* "2026-11-15T09:50:42.000001Z" */
struct str note_time(struct arena *arena, int64_t ns);
/* The part of a slug after the number. */
struct str note_fragment(struct arena *arena, struct str title);
/* The first `max` characters, with "…" when there are more. */
struct str note_cut(struct arena *arena, struct str text, size_t max);
bool note_has_tag(const struct note *note, struct str tag);

#endif
