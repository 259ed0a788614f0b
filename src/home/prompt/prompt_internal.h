/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the prompt share: escaped text, the files it is made of, and how their changes are noticed. */
#ifndef STEAD_HOME_PROMPT_PROMPT_INTERNAL_H
#define STEAD_HOME_PROMPT_PROMPT_INTERNAL_H

#include "home/prompt/prompt.h"
#include "workspace/workspace_internal.h"

/* --- text (prompt_text.c) --- */

/* With every '<' that could begin a tag as "&lt;"; controls and malformed bytes as U+FFFD. */
void prompt_escape(struct buf *b, struct str text);
/* The same on one line, trimmed, with "…" when it has more than `max` bytes. */
void prompt_escape_line(struct buf *b, struct str text, size_t max);
void prompt_escape_attribute(struct buf *b, struct str text);
/* What a text counts against the budget; of two texts together never more than the sum of both. */
uint64_t prompt_cost(struct str text);
/* As many whole lines from the start, or from the end, as cost at most `max`; part of one line when not even that fits.
 *ret_cost: no less than what they cost. */
struct str prompt_first_lines(struct str text, uint64_t max, uint64_t *ret_cost);
struct str prompt_last_lines(struct str text, uint64_t max, uint64_t *ret_cost);
size_t prompt_count_lines(struct str text);

/* --- noticing (prompt_watch.c) --- */

/* inotify over a few directories, without a thread: it is asked. */
struct prompt_watch;
/* NULL: not to be had, or not to be trusted on that file system. */
struct prompt_watch *prompt_watch_new(const char *dir);
void prompt_watch_destroy(struct prompt_watch *w);
/* Before all directories are named again. */
void prompt_watch_begin(struct prompt_watch *w);
/* Watches `path` below the directory, those above it for its coming and going, and with `with_below` all in it. What is
   read after this call and changed later is noticed. */
void prompt_watch_add(struct prompt_watch *w, struct str path, bool with_below);
/* What happened since it was last asked. */
struct prompt_news {
	struct arena *arena;  /* of the paths */
	bool anything;        /* more than what follows, and it is not known what */
	struct str paths[32]; /* files below the directory that came, changed or went */
	bool came[32];        /* it came or went */
	size_t count;
};
void prompt_watch_ask(struct prompt_watch *w, struct arena *arena, struct prompt_news *ret);

/* --- files (prompt_files.c) --- */

enum prompt_kind {
	PART_IDENTITY,
	PART_SOUL,
	PART_WORKSPACE,
	PART_NOTEBOOK,
	PART_CONTEXT,
	PART_KNOWLEDGE,
	PART_KNOWLEDGE_FILES,
	PART_SKILLS,
	PART_SUBAGENTS,
	PART_USER,
	PART_HEARTBEAT,
	PART_MEMORY,
	PART_NOTES,
	PART_RECENT,
	PART_TASKS,
	PART_PLAN,
	PART_TODO,
	PART_SESSION,
	PART_KINDS
};

/* A file as it stands in the prompt. On the heap, kept until its version is another one. */
struct prompt_piece {
	enum prompt_kind kind;
	char *path, *version;
	char *text; /* escaped; of a list: its line */
	size_t len;
	uint64_t cost, bytes;
	char *problem; /* why it is not shown; NULL: it is */
	bool young;    /* read so shortly after its last change that the next one may look the same */
};

struct prompt_files {
	struct prompt_piece **pieces; /* in the order of kinds and paths */
	size_t count;
	uint64_t knowledge_more; /* files that were not even listed */
	uint64_t read;           /* how many files were read the last time */
	uint64_t memory[2];      /* of MEMORY.md's version and the day */
};
void prompt_files_release(struct prompt_files *files);

/* A file that was found, before it is read. */
struct prompt_found {
	enum prompt_kind kind;
	struct wpath path;
	struct store_stat stat;
	struct str line;    /* ptr not NULL: what it gives, so it is not read */
	struct str problem; /* not empty: why it gives nothing */
};
struct prompt_sweep {
	struct prompt_found *found;
	size_t count, cap;
	uint64_t knowledge_more;
};
/* Of all paths and versions. */
void prompt_sweep_hash(struct arena *arena, const struct prompt_sweep *sweep, uint64_t ret_hash[2]);
struct prompt_sweep prompt_sweep_copy(struct arena *arena, const struct prompt_sweep *sweep);
/* Looks which files there are; reads none. Directories go to `watch` (may be NULL) before they are listed. */
int prompt_look(struct workspace *ws, struct ctx *ctx, struct prompt_watch *watch, struct prompt_sweep *ret,
		struct err *err);
/* True when agent.yaml names skills outside of the workspace: nobody tells when those change. */
bool prompt_skills_elsewhere(const struct workspace *ws);
/* After nothing but `news`: asks for those files only. False: that is not enough, look at everything. */
bool prompt_look_again(struct workspace *ws, struct ctx *ctx, const struct prompt_news *news,
		       struct prompt_sweep *sweep);
/* Brings the pieces up to date with what was found: reads what has another version. */
int prompt_files_update(struct prompt_files *files, struct workspace *ws, struct ctx *ctx,
			const struct prompt_sweep *sweep, struct err *err);

/* --- sections (prompt_parts.c) and the budget (prompt_fit.c) --- */

struct prompt_part {
	enum prompt_kind kind;
	struct str source; /* goes into the tag; may be empty */
	struct str text;   /* escaped, with a newline at its end; or the items of a list */
	struct str *items;
	size_t item_count, item_cap;
	uint64_t more; /* items that are not even here */
	uint64_t cost, bytes;
	struct str sources;
	/* The budget's: what the whole takes with its tag, and what it gets. */
	uint64_t frame, need, give;
};
struct prompt_parts {
	struct prompt_part *at; /* in the order of the prompt */
	size_t count, cap;
	struct str *problems;
	size_t problem_count, problem_cap;
};
/* Texts are borrowed from `files`. */
int prompt_parts_make(struct workspace *ws, struct ctx *ctx, const struct prompt_files *files, struct prompt_parts *ret,
		      struct err *err);
/* Shares out the tokens and writes the text. Everything in `arena`. */
void prompt_fit(struct arena *arena, struct prompt_parts *parts, uint64_t max_tokens, struct prompt *ret);

/* "- name: description" and a newline, escaped. */
void prompt_entry(struct buf *b, struct str name, struct str description);
/* "2026-11-15", `days` before today. */
struct str prompt_day(struct arena *arena, int days);

#endif
