/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a family that are searched, and how they become documents (home/search/search.h). */
#ifndef STEAD_TOOL_SEARCH_SOURCE_H
#define STEAD_TOOL_SEARCH_SOURCE_H

#include "store/wpath.h"

/* What a file contributes. One file may give several documents. */
struct search_doc {
	struct str id; /* empty: the only one */
	struct str title, body, kind, author;
	const struct str *tags;
	size_t tag_count;
	int64_t time_ns;
	double credit; /* >= 0: raises it among equals (citations, outcomes) */
	bool archived;
};
typedef void (*search_emit)(void *arg, const struct search_doc *doc);

/* Of a file that grows at its end. */
enum search_line {
	SEARCH_WITHIN, /* it continues with what is before it */
	SEARCH_BEGINS, /* a part of the file may begin with it */
	SEARCH_HEAD,   /* the first line, which is needed to understand any other */
};

struct search_source {
	const char *area;                /* its name in questions and hits: "notes"; NULL ends a table */
	const char *const *places;       /* files and directories of the home that have its files; NULL at the end */
	bool (*owns)(struct wpath path); /* one of them, as a path in the home of a user */
	/* Emits the documents of a file. When it fails, and when it is NULL, the file is one plain text. */
	int (*documents)(struct arena *arena, struct wpath path, struct str bytes, int64_t mtime_ns, search_emit emit,
			 void *arg, struct err *err);
	/* For files that grow at their end: what a line is. Such a file is indexed in parts, and `documents` gets one
	   part, with the head before it. NULL: a file is indexed as a whole. */
	enum search_line (*line)(struct wpath path, struct str line);
};

#endif
