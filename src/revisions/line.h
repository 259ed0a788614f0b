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
	REV_LINE_HELP,
	REV_LINE_TORN,
	REV_LINE_LOST,
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
/* A checkpoint without its sum. */
void rev_line_checkpoint(struct buf *out, const struct rev_checkpoint *checkpoint);
#define REV_LINE_SUM 26 /* bytes of ,"sum":"0123456789abcdef"} */

/* Which line comes next. It is part of a line's sum, so that a line that is missing or in another place is found. */
struct rev_seq {
	uint64_t at;   /* of the segment or entry, as in a place */
	uint32_t line; /* from 0 */
};
/* Adds the sum of everything from `start` on, ends the line, and moves on to the next one. */
void rev_line_finish(struct buf *out, size_t start, struct rev_seq *seq);
/* A whole line {"<kind>":number}. */
void rev_line_note(struct buf *out, const char *kind, uint64_t number, struct rev_seq *seq);
/* Marks the last line of `out` as the end of an append. */
void rev_line_mark_end(struct buf *out);

/* Takes the next line, which is without its newline, off `rest`. False: there is no whole one. */
bool rev_line_next(struct str *rest, struct str *ret_line);
/* The sum that a line says it has, and whether it is the end of an append. False: it does not look like a line. */
bool rev_line_sum(struct str line, uint64_t *ret_sum, bool *ret_end);
/* True when the sum of the line is right in that place. `line` is without its newline. */
bool rev_line_is_whole(struct str line, struct rev_seq seq);
/* Finds out which line this is: the one that `seq` says, or one of the next few thousand, if some are missing. False:
   it is not one of them, or it is damaged. */
bool rev_line_find(struct str line, struct rev_seq *seq);
/* How many bytes the next append of `rest` has, up to the line that ends it; 0: there is no whole one. *ret_void: bytes
   before it that a later append declared void. *ret_bad: some of its lines are not what was written. `seq` is of its
   first line. */
size_t rev_append_next(struct str rest, struct rev_seq seq, size_t *ret_void, bool *ret_bad);
/* True when `rest`, which has no whole append, is what killed writers leave: good lines and the beginning of one. */
bool rev_append_is_cut_off(struct str rest, struct rev_seq first);
/* False: it is not a line that this program knows. The sum is not looked at. Strings are in the arena. */
bool rev_line_parse(struct arena *arena, struct str line, struct rev_line *ret);
/* The bytes that a record's line carries: of its change, and of the state before it. */
bool rev_line_data(struct arena *arena, struct str line, struct str *ret_data);
bool rev_line_was(struct arena *arena, struct str line, struct str *ret_was);
/* The number in a line that begins with the key `kind` ("rev", "done", "abort"); 0: it is another line. */
uint64_t rev_line_number(struct str line, const char *kind);

#endif
