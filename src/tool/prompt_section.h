/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A family's section of the prompt: where it is, what it is made of, and how it gives way when there is too little
 * room. A section is either made of files (`find`, `read`) or of what Stead knows (`make`). Files are found at each
 * turn that may have changed them, and read only when they have. src/home/prompt puts the sections together;
 * docs/prompt.md describes the result.
 */
#ifndef STEAD_TOOL_PROMPT_SECTION_H
#define STEAD_TOOL_PROMPT_SECTION_H

#include "base/buf.h"
#include "tool/family.h"
#include "tool/offered.h"

/* What changes together. A class is cut without regard to those after it. */
enum prompt_class {
	PROMPT_STATIC,  /* people write it */
	PROMPT_LASTING, /* changes from day to day */
	PROMPT_WORKING, /* may change with each turn */
	PROMPT_SESSION, /* of this session and day */
	PROMPT_CLASSES
};

enum prompt_form {
	PROMPT_TEXT,   /* each file has its own tags; loses its last lines, and of several files the last */
	PROMPT_LEDGER, /* the same, but the newest is at the end: loses its first lines, and the first file */
	PROMPT_LIST,   /* one item per line, from all files; loses its last items */
	PROMPT_SORTED, /* the same, and each line begins with a key, which decides the order and is not shown */
};

#define PROMPT_KEY_END '\x01' /* follows the key */

#define PROMPT_WHOLE  100 /* a floor: the section is short, and is there whole or not at all */
#define PROMPT_YIELDS 10  /* the last to yield, and never below its floor */

struct prompt_find;
struct prompt_read;
struct prompt_made;

struct prompt_section {
	const char *name; /* of its tags */
	enum prompt_class class;
	unsigned position; /* in its class */
	enum prompt_form form;
	unsigned floor;    /* percent of its class that it keeps while others have something to give */
	unsigned yields;   /* 1 to PROMPT_YIELDS: the lowest gives way first */
	const char *about; /* precedes its items; NULL: nothing */
	const char *rest;  /* where to find what was cut: "list_notes shows them"; of several lines the first that names
			      only tools that the agent has */
	const char *file;  /* the one that it is made of; NULL: `find` names them with the functions below */
	int (*find)(struct prompt_find *find, struct err *err);
	/* Adds what a file gives, escaped. An error is about this file only: it is left out and named with the reason.
	   NULL: all of its text. */
	int (*read)(struct prompt_read *read, struct buf *text, struct err *err);
	/* In place of files: fills `made`. No text: no section. An error is the prompt's. */
	int (*make)(struct prompt_made *made, struct err *err);
	/* May add lines to the section `workspace`. Like `about` and `rest`, they name native tools: a line that names
	   one which the agent does not have is left out, and others get the names that its dialect has. */
	void (*advise)(struct workspace *ws, struct buf *text);
	const char *reads_also; /* an earlier section: when its files change, those of this one are read again */
	const char *derived;    /* a file that Stead writes next to those of the prompt, which is not part of it */
};

/* --- for `find` --- */

struct prompt_find {
	struct workspace *ws;
	struct ctx *ctx;
	bool is_unwatched; /* set it when nothing reports changes of these files: they are found at each turn */
	/* The prompt's own. */
	struct prompt_watch *watch;
	struct prompt_files *files;
	size_t section, count;
};
/* The file `path` of the home, if it exists. */
int prompt_find_file(struct prompt_find *find, struct str path, struct err *err);
#define PROMPT_DEPTH_MAX 16
/* Gives the files below `dir` to `take`, which adds those it wants. `depth`: how many levels of directories below it
   may have such files; 0: only `dir` itself. */
int prompt_find_below(struct prompt_find *find, const char *dir, unsigned depth,
		      void (*take)(struct prompt_find *find, const struct store_entry *file), struct err *err);
/* Adds a file to read. */
void prompt_add_file(struct prompt_find *find, struct str path, const struct store_stat *stat);
/* Adds a file whose line is known, so that it is not read; of more than PROMPT_LIST_MAX only the number counts.
   `version` changes when the line may have. */
void prompt_add_line(struct prompt_find *find, struct str path, struct str version, struct str line);
/* Adds a file that cannot be used. */
void prompt_add_unusable(struct prompt_find *find, struct str path, struct str why);
/* True when a name in `path` begins with '.'. */
bool prompt_is_hidden(struct str path);

/* --- for `read` --- */

struct prompt_read {
	struct workspace *ws;
	struct ctx *ctx;
	struct str path, bytes; /* of PROMPT_FILE_MAX bytes at most; except for lists, not binary */
	void *shared;           /* the section's, for all of its files; NULL at the first */
};

/* --- for `make` --- */

struct prompt_made {
	struct workspace *ws;
	struct ctx *ctx;
	const struct toolset *set; /* the tools that the agent has */
	struct buf text;
	struct str sources;         /* shown to people */
	uint64_t more;              /* items of a list that are not in `text` */
	struct prompt_parts *parts; /* the prompt's own */
};
/* A file that could not be used. */
void prompt_add_problem(struct prompt_made *made, struct str path, struct str why);

/* --- for all of them (prompt_section.c) --- */

/* Adds text with every '<' that could begin a tag as "&lt;"; controls and malformed bytes as U+FFFD. */
void prompt_escape(struct buf *b, struct str text);
/* The same on one line, trimmed, with "…" when it has more than `max` bytes. */
void prompt_escape_line(struct buf *b, struct str text, size_t max);
/* "- name: description" and a newline, escaped. */
void prompt_escape_entry(struct buf *b, struct str name, struct str description);
#define PROMPT_ENTRY_MAX ((size_t)1024) /* bytes of a description */
/* True when the agent has this native tool, under whatever name. */
bool prompt_offers(const struct toolset *set, const char *tool);
/* A text by people without its comments (<!-- … -->), which are for people; those in fenced code stay. */
struct str prompt_without_comments(struct arena *arena, struct str text);

#endif
