/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grep and glob over any store: one scan, in list order, counted in full, answered by the page. Deterministic: the same
 * tree gives the same answer in the same order, however many threads looked. Every pattern ends: PCRE2's match limits
 * and a work budget per call turn a catastrophic one into ERR_INVALID with a sentence.
 */
#ifndef STEAD_FIND_FIND_H
#define STEAD_FIND_FIND_H

#include <stdbool.h>
#include <stdint.h>

#include "base/ctx.h"
#include "store/store.h"

enum grep_output { GREP_LINES, GREP_FILES, GREP_COUNT };

struct grep_req {
	struct wpath path; /* a directory, or one file */
	struct str pattern;
	bool literal;
	bool ignore_case;
	bool use_ignore;           /* .gitignore and .git/ are honoured */
	const struct str *include; /* globs on the path below `path`; without '/' they match the name at any depth */
	size_t include_count;
	const struct str *exclude;
	size_t exclude_count;
	unsigned context; /* lines before and after */
	enum grep_output output;
	uint64_t limit;    /* matching lines (GREP_LINES), files (else) that are given; UINT64_MAX: all */
	size_t bytes_max;  /* the page ends with the line that reaches this; 0: no such limit */
	struct str cursor; /* from grep_result.next; empty: from the start */
	size_t line_cut;   /* bytes of a line that are given, cut at a code point; SIZE_MAX: all */
	unsigned threads;  /* 0: cores */
};

struct grep_line {
	struct str path;
	uint64_t line;    /* 1-based */
	bool is_match;    /* false: context */
	bool cut;         /* the line is longer than its text */
	bool group_start; /* not adjacent to the line given before it */
	struct str text;  /* without the line end; may hold any bytes */
	uint64_t count;   /* GREP_FILES, GREP_COUNT: matching lines in this file; line is then 0 */
};

struct grep_result {
	uint64_t matches;  /* matching lines in all, not only on this page */
	uint64_t files;    /* files with a match, in all */
	uint64_t searched; /* files read */
	uint64_t binary;   /* left out: a NUL byte in what was read */
	uint64_t unreadable;
	struct str next;         /* cursor; ptr NULL: that was all */
	struct grep_line *lines; /* unless `emit` took them */
	size_t count;
};

/* Gets lines in order as they become known, instead of collecting them: for "print all". Non-zero ends the search.
   Called by one thread at a time, but not always by the same. */
typedef int (*grep_emit)(void *arg, const struct grep_line *line, struct err *err);

int find_grep(struct store *store, struct ctx *ctx, const struct grep_req *req, grep_emit emit, void *arg,
	      struct grep_result *ret_result, struct err *err);

struct glob_req {
	struct wpath path;
	struct str pattern; /* matched against the path below `path` */
	bool use_ignore;
	uint64_t limit;   /* UINT64_MAX: all */
	size_t bytes_max; /* as for grep */
	struct str cursor;
	unsigned threads;
};

struct glob_result {
	struct str *paths; /* full paths, list order, unless `emit` took them */
	size_t count;
	uint64_t total; /* matches in all */
	struct str next;
};

typedef int (*glob_emit)(void *arg, struct str path, struct err *err);

int find_glob(struct store *store, struct ctx *ctx, const struct glob_req *req, glob_emit emit, void *arg,
	      struct glob_result *ret_result, struct err *err);

#endif
