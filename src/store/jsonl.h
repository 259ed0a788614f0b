/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that grow by one JSON object a line: session logs, token usage. Adding a line never reads the file; the newest
 * lines are read from the end, so a question about today does not cost what last year left. A line that is not a
 * JSON object (torn, or written by a person) is counted and passed over.
 */
#ifndef STEAD_STORE_JSONL_H
#define STEAD_STORE_JSONL_H

#include "store/store.h"
#include "text/jv.h"

/* Adds `object` as one line. `first` (may be NULL) is written before it when the file does not exist. */
int jsonl_append(struct store *store, struct ctx *ctx, struct wpath path, const struct jv *object,
		 const struct jv *first, struct err *err);

/* A line with the place where it begins. */
struct jsonl_line {
	const struct jv *value;
	uint64_t offset;
};
/* Reads lines from the last one to the first; `before` (0: the end) is the offset of the line to stop in front of: it
   and later lines are left out. `visit` gets each and returns false to end. A missing file has no lines. What `visit`
   keeps of a value it must copy. */
struct jsonl_back {
	uint64_t before;
	bool (*visit)(void *arg, const struct jsonl_line *line);
	void *arg;
	uint64_t bad; /* out: lines that are not objects */
};
int jsonl_read_back(struct store *store, struct ctx *ctx, struct wpath path, struct jsonl_back *back, struct err *err);
/* From `offset` (where a line begins) to the end, in order. *ret_end: the end of the last whole line. */
int jsonl_read_from(struct store *store, struct ctx *ctx, struct wpath path, uint64_t offset,
		    bool (*visit)(void *arg, const struct jsonl_line *line), void *arg, uint64_t *ret_end,
		    struct err *err);

#endif
