/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of memory share: a memory file in parts, and facts. */
#ifndef STEAD_HOME_MEMORY_MEMORY_INTERNAL_H
#define STEAD_HOME_MEMORY_MEMORY_INTERNAL_H

#include "base/buf.h"
#include "home/memory/memory.h"

#define MEMORY_PATH    "MEMORY.md"
#define MEMORY_ARCHIVE "memory/archive/MEMORY.md"
#define MEMORY_STATE   "memory/.consolidation_state"

/* --- the file (memory_file.c) --- */

struct fact {
	struct str id;   /* derived from the text for what a person wrote */
	struct str text; /* lines by '\n', unescaped */
	enum memory_trust trust;
	const struct jv *mark; /* its provenance; NULL: it has none */
	struct str at, from, until;
	bool superseded;
};

/* A fact with the lines that belong to it, or anything else between facts. All parts together are the file. */
struct part {
	struct str raw;
	bool is_fact;
	size_t line; /* 1-based */
	struct fact fact;
};

struct parts {
	struct part *list;
	size_t count;
};

/* Never fails: anything that is not a fact is text. */
void memory_parse(struct arena *arena, struct str bytes, struct parts *ret);
/* The fact with this id. One that has a mark is found without parsing the others. */
bool memory_find(struct arena *arena, struct str bytes, struct str id, struct part *ret);
/* One bullet with its mark and a newline. `mark` NULL: none. */
void memory_write_fact(struct buf *out, struct str text, const struct jv *mark);
/* Without control characters, blank lines and blanks at the ends of lines: what a fact's text can be. */
struct str memory_normal(struct arena *arena, struct str text);
/* The texts of `content`: bullets, else paragraphs; normal. ERR_INVALID: there is none, or it is too much. */
int memory_split(struct arena *arena, struct str content, struct str **ret, size_t *ret_count, struct err *err);
bool memory_holds(const struct fact *fact, int64_t now_ns);
/* For programs: {id,text,trust,path,line,current,user?,agent?,…}. */
struct jv *memory_value(struct arena *arena, const struct part *part, struct str path, int64_t now_ns);

/* --- the files (memory.c) --- */

/* A memory file's bytes; ptr NULL when it is missing. */
int memory_read(struct workspace *ws, struct ctx *ctx, struct str path, struct str *ret, struct store_stat *ret_stat,
		struct err *err);
/* Paths of all files with facts: MEMORY.md, ledgers by date, then with `archives` those in memory/archive/. */
int memory_files(struct workspace *ws, struct ctx *ctx, bool archives, struct str **ret, size_t *ret_count,
		 struct err *err);
bool memory_is_ledger(struct str path, int64_t *ret_day_ns);
size_t memory_budget(struct workspace *ws);
struct str memory_agent(struct workspace *ws, struct ctx *ctx);
struct str memory_new_id(struct arena *arena);
struct str memory_now(struct arena *arena);
/* "2026-11-15": the day of a ledger, so many days ago, in the zone of the workspace. */
struct str memory_day(struct arena *arena, const struct workspace *ws, int back);
/* {id,trust,user?,agent?,session?,source?,at,…} for the caller. */
struct jv *memory_mark(struct workspace *ws, struct ctx *ctx, struct str id, enum memory_trust trust);
/* Ids that a fact of these parts has superseded, for those whose own line says nothing of it. */
bool memory_is_superseded(const struct parts *parts, struct str id);

/* --- the budget (memory_consolidate.c) --- */

/* Brings MEMORY.md to a third of its budget, so that it has room for a while. What people wrote and the facts `keep`
   (ids) stay. When there is little that can go, nothing does. */
int memory_trim(struct workspace *ws, struct ctx *ctx, const struct jv *keep, struct err *err);

/* --- the state of consolidation (memory_consolidate.c) --- */

/* A ledger lost `len` bytes at `at`: the watermarks after it move. */
int memory_shift_marks(struct workspace *ws, struct ctx *ctx, struct str ledger, uint64_t at, uint64_t len,
		       struct err *err);

#endif
