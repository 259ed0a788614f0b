/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of a revision log: to text and back. The format is described in log.h and docs/revisions.md. */
#ifndef STEAD_REVISIONS_LINE_H
#define STEAD_REVISIONS_LINE_H

#include "revisions/log.h"
#include "text/jv.h"

enum rev_line_kind {
	REV_LINE_RECORD,
	REV_LINE_DONE,
	REV_LINE_ABORT,
	REV_LINE_CHECKPOINT,
	REV_LINE_SEAL,
	REV_LINE_HORIZON,
	REV_LINE_HELP
};

struct rev_line {
	enum rev_line_kind kind;
	struct rev_record record;
	uint64_t number;
	int64_t time_ns;
	struct str text; /* version, or the checkpoint's name */
};

/* What follows {"rev":N,"left":M of a record, up to its sum. */
void rev_line_body(struct arena *arena, struct buf *out, const struct rev_draft *draft);
/* A whole line. */
void rev_line_checkpoint(struct buf *out, const struct rev_checkpoint *checkpoint);
/* Adds the sum of everything from `start` on, and ends the line. */
void rev_line_finish(struct buf *out, size_t start);
/* False: it is not a complete line of a log. `line` is without its newline. Strings are in the arena. */
bool rev_line_parse(struct arena *arena, struct str line, struct rev_line *ret);
/* 32 hex digits; an empty string gives zero. */
bool hex_hash(struct str s, uint64_t ret[2]);
/* The bytes that a record's line carries. */
bool rev_line_data(struct arena *arena, struct str line, struct str *ret_data);

#endif
