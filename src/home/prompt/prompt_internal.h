/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the prompt share: the files that it is made of, how their changes are noticed, and its parts. */
#ifndef STEAD_HOME_PROMPT_PROMPT_INTERNAL_H
#define STEAD_HOME_PROMPT_PROMPT_INTERNAL_H

#include "home/prompt/prompt.h"
#include "workspace/workspace_parts.h"

/* --- measuring and cutting (prompt_cut.c) --- */

static inline bool prompt_is_list(const struct prompt_section *section)
{
	return section->form == PROMPT_LIST || section->form == PROMPT_SORTED;
}

/* A line without its key, if it has one. */
static inline struct str prompt_item(struct str line)
{
	size_t end = str_find_char(line, PROMPT_KEY_END);

	return end < line.len ? str_from(line, end + 1) : line;
}

/* What a text counts against the budget; of two texts together never more than the sum of both. */
uint64_t prompt_cost(struct str text);
/* The same for text of a section: of a list, the sum of its lines. */
uint64_t prompt_cost_of(const struct prompt_section *section, struct str text);
/* As many whole lines from the start, or from the end, as cost at most `max`; part of one line when not even that fits.
 *ret_cost: no less than what they cost. */
struct str prompt_first_lines(struct str text, uint64_t max, uint64_t *ret_cost);
struct str prompt_last_lines(struct str text, uint64_t max, uint64_t *ret_cost);
size_t prompt_count_lines(struct str text);

/* --- noticing changes (prompt_watch.c) --- */

/* inotify over a few directories, without a thread: it is asked. */
struct prompt_watch;
/* NULL: not available, or not to be trusted on that file system. */
struct prompt_watch *prompt_watch_new(const char *dir);
void prompt_watch_destroy(struct prompt_watch *w);
/* Before all directories are named again. */
void prompt_watch_begin(struct prompt_watch *w);
/* Watches `path` below the directory, those above it for its creation and removal, and `depth` levels of directories in
   it. What is read after this call and changed later is noticed. */
void prompt_watch_add(struct prompt_watch *w, struct str path, unsigned depth);
/* What happened since it was last asked. */
struct prompt_news {
	struct arena *arena;  /* of the paths */
	bool anything;        /* more than what follows, and it is not known what */
	struct str paths[32]; /* files below the directory that were created, changed or removed */
	bool came[32];        /* it was created or removed */
	size_t count;
};
void prompt_watch_ask(struct prompt_watch *w, struct arena *arena, struct prompt_news *ret);

/* --- files (prompt_find.c, prompt_read.c) --- */

/* A file, and once it is read, what it gives to the prompt. On the heap; kept until its version changes. */
/* What of a text was shown when there was room for so many tokens: the next turn has the same room more often than not,
   and counting tokens is the most of what it costs. */
struct prompt_shown {
	uint64_t room, cost; /* room 0: nothing is known */
	struct str part;     /* of the text */
	size_t lines, all;
};

struct prompt_file {
	size_t section; /* index in prompt_files.sections */
	char *path, *version;
	uint64_t bytes;
	bool is_given; /* by `find`: never read */
	bool is_read;
	bool is_young;   /* read so soon after its last change that the next one may leave the version as it is */
	bool is_doubted; /* it was read young, and something may have happened to it since: the version decides nothing
			  */
	char *text;      /* escaped; of a list: its lines */
	size_t len;
	uint64_t cost;
	struct prompt_shown shown;
	char *problem; /* why it is not shown; NULL: it is */
};

struct prompt_section_state {
	const struct prompt_section *section;
	uint64_t more; /* files that are not even in the list */
	bool changed;  /* since the files were last read */
};

struct prompt_files {
	struct prompt_section_state *sections; /* of all families, in the order of the prompt */
	size_t section_count;
	struct prompt_file **at; /* in the order of sections */
	size_t count, cap;
};
void prompt_files_init(struct prompt_files *files);
void prompt_files_release(struct prompt_files *files);

/* Finds all files without reading any; what was read and has not changed stays. Directories are watched before they are
   listed (`watch` may be NULL). Sets *ret_unwatched when some cannot be. */
int prompt_find_all(struct prompt_files *files, struct workspace *ws, struct ctx *ctx, struct prompt_watch *watch,
		    bool *ret_unwatched, struct err *err);
/* Looks only at the files in `news`. False: that is not enough, find all. */
bool prompt_find_changed(struct prompt_files *files, struct workspace *ws, struct ctx *ctx,
			 const struct prompt_news *news);
/* Of all paths and versions, and of what else a prompt depends on. */
void prompt_files_hash(struct arena *arena, const struct prompt_files *files, uint64_t revision, const char *day,
		       uint64_t ret_hash[2]);
/* Reads what has changed. *ret_count: how many files that was. */
int prompt_read_files(struct prompt_files *files, struct workspace *ws, struct ctx *ctx, uint64_t *ret_count,
		      struct err *err);

/* --- parts (prompt_parts.c) and the budget (prompt_fit.c) --- */

/* What has tags of its own: a section, or one of its files. */
struct prompt_part {
	const struct prompt_section *section;
	struct str source;      /* goes into the tag; may be empty */
	struct str text;        /* escaped, with a newline at its end; of a list: its items, a line each */
	uint64_t more;          /* items that are not even here */
	struct str about, rest; /* of the section, as the agent may read them */
	uint64_t cost, bytes;
	struct str sources;
	struct prompt_shown *shown; /* of the last time; NULL: it is not kept */
	/* The budget's: what the whole takes with its tag, and what it gets. */
	uint64_t frame, need, give;
};
struct prompt_parts {
	enum workspace_layout layout; /* whose names the tags have */
	const struct prompt_files *files;
	const struct toolset *set;
	struct prompt_part *at; /* in the order of the prompt */
	size_t count;
	struct str *problems;
	size_t problem_count, problem_cap;
};
/* Texts are borrowed from `files`. */
int prompt_parts_make(struct workspace *ws, struct ctx *ctx, const struct prompt_files *files,
		      const struct toolset *set, struct prompt_parts *ret, struct err *err);
/* Shares out the tokens and writes the text. Everything in `arena`. */
void prompt_fit(struct arena *arena, struct prompt_parts *parts, uint64_t max_tokens, struct prompt *ret);

/* The prompt's own sections (prompt_sections.c). */
extern const struct prompt_section prompt_sections[];
/* Files of prompt.context_files that are not used, for `stead doctor`. */
struct findings;
void prompt_check(struct workspace *ws, struct ctx *ctx, const struct findings *findings);
/* "2026-11-15": today, in the zone of the workspace. */
struct str prompt_today(struct arena *arena, const struct workspace *ws);

#endif
