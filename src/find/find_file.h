/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread's look at one file after the other: cuts them into lines, numbers these, adds the lines around a match.
 */
#ifndef STEAD_FIND_FIND_FILE_H
#define STEAD_FIND_FIND_FILE_H

#include "find/find.h"
#include "find/find_order.h"
#include "text/grep.h"

/* What all threads of one search share. */
struct grep_job {
	const struct grep_req *req;
	struct ctx *ctx;
	struct order order;
	struct str cursor_path; /* where the page before ended; ptr NULL: from the start */
	uint64_t cursor_line;
	atomic_bool page_full; /* from here on files are only counted */
};

/* The last lines of the previous chunk, which may be before-context of a match in this one. */
struct tail {
	char *text;
	size_t len, cap;
	size_t count; /* lines, each with a '\n' */
};

struct looker {
	struct grep_job *job;
	struct searcher *searcher;
	/* the file */
	struct str path;
	uint64_t seq;
	struct outcome *out;
	uint64_t matches, eligible; /* eligible: after the cursor */
	uint64_t stored;            /* eligible and kept */
	uint64_t line;              /* number of the line at `pos` */
	size_t pos;
	uint64_t last_given;  /* line */
	uint64_t shown_until; /* by the page before */
	unsigned after_left;
	bool counts_only, numbers, in_file;
	uint64_t offset;
	struct tail tail;
	struct str text;
	/* a line that is longer than a chunk */
	char *hold;
	size_t hold_len, hold_cap;
	/* over all files */
	uint64_t total_matches, total_eligible, files, searched, binary, unreadable;
};

void looker_init(struct looker *looker, struct grep_job *job, const struct matcher *matcher);
void looker_release(struct looker *looker);
/* A visit of a scan. */
int looker_visit(struct looker *looker, const struct scan_item *item, struct err *err);

#endif
