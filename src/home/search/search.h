/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Search over everything a workspace knows: notes, memory, sessions, knowledge and files. One index per workspace and
 * user, derived from the files: it follows the change feed, so whatever was written before a search is found by it; it
 * can be deleted at any time, and never holds up a writer. Families say how their files become documents
 * (tool/search_source.h); everything else is here and in src/index/.
 */
#ifndef STEAD_HOME_SEARCH_SEARCH_H
#define STEAD_HOME_SEARCH_SEARCH_H

#include "tool/search_source.h"
#include "workspace/workspace.h"

/* By words, by meaning (which needs an embedder), or both rankings as one (reciprocal rank fusion). */
enum search_mode {
	SEARCH_AUTO, /* both, where there is an embedder */
	SEARCH_BY_WORDS,
	SEARCH_BY_MEANING
};

struct search_query {
	enum search_mode mode;
	struct str text;  /* words (any may match), "phrases", -without; empty: everything, newest first */
	unsigned areas;   /* bits of search_area(); 0: all */
	struct str under; /* only paths below this directory of the workspace; empty: all */
	struct str kind, author;
	const struct str *tags; /* all of them */
	size_t tag_count;
	int64_t since_ns, until_ns; /* real time; 0: no bound */
	bool exact;                 /* no typo tolerance */
	bool with_archived;         /* also what is archived */
	bool explain;               /* fill in `explanation` */
	size_t limit;               /* 0: 10; at most 100 */
	size_t offset;
};

struct search_hit {
	const char *area; /* as its source names it: "notes" */
	struct str path;  /* in the workspace */
	struct str id;    /* within the file (a memory entry, a session line); empty: the file as a whole */
	struct str title, kind, author;
	const struct str *tags;
	size_t tag_count;
	int64_t time_ns;
	double score;       /* BM25; by meaning the cosine; of both the sum of 1 / (60 + rank) */
	struct str snippet; /* the best passage, matches between ** and ** */
	/* Of a file that is indexed in parts: where the part that has it begins. Else 0 and 1. */
	uint64_t offset, line;
};

struct search_hits {
	struct search_hit *hits; /* best first */
	size_t count;
	uint64_t total;         /* that match in all */
	struct str explanation; /* what was asked of the index, and what that cost */
	struct str note; /* something to tell (the embedder did not answer; a file could not be read); else empty */
};

/* Sees everything that was written before the call, by any process. An embedder that fails costs the part of the answer
   that it has in it: words decide then, and `note` says why. */
int home_search(struct workspace *ws, struct ctx *ctx, const struct search_query *query, struct search_hits *ret,
		struct err *err);

/* Deletes the index of every user of the workspace, on disk and in this handle: what was taken out of the files is then
   nowhere in it. The next search builds it again. Other processes let go of it when they next take changes in. */
void home_search_forget(struct workspace *ws);
/* The bit of the area of that name; 0: there is none. */
unsigned search_area(struct str name);
/* The names of all areas, in one order, with `separator` between them. */
struct str search_areas(struct arena *arena, const char *separator);
/* "auto", "text", "semantic" ("hybrid" is as auto). */
int search_mode_of(struct str name, enum search_mode *ret, struct err *err);

/* "2026-11-15", "2026-11-15T10:00:00Z", or a time ago: "30m", "12h", "7d", "2w". A date alone is its first instant,
   with `end` its last. */
int search_time(struct str text, bool end, int64_t *ret_ns, struct err *err);

#endif
