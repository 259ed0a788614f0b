/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory: what an agent keeps across conversations, as Markdown that people read and edit.
 *
 *   MEMORY.md                 facts that hold now, a bullet each
 *   memory/YYYY-MM-DD.md      ledgers: what was learned on a day, only ever appended to
 *   memory/archive/           older ledgers, and facts that left MEMORY.md
 *   memory/forgotten.jsonl    receipts of what was forgotten, without its words
 *
 * A fact's provenance follows it as <!-- stead:fact {"id":…,"trust":…,…} -->. A bullet without it is a fact that a
 * person wrote. A fact that is saved cannot bring such a comment along: its text is escaped.
 */
#ifndef STEAD_HOME_MEMORY_MEMORY_H
#define STEAD_HOME_MEMORY_MEMORY_H

#include "text/jv.h"
#include "tool/prompt_section.h"
#include "tool/search_source.h"
#include "workspace/workspace.h"

/* How far a fact can be relied on. What is not known is the lowest. */
enum memory_trust { TRUST_OUTSIDE = 1, TRUST_AGENT, TRUST_DOCUMENT, TRUST_PERSON };
const char *memory_trust_name(enum memory_trust trust);
/* 0: there is none of that name. */
enum memory_trust memory_trust_of(struct str name);

/* True for what can be the id of a fact. */
bool memory_id_is(struct str text);

struct memory_save {
	struct str content;          /* bullets, or paragraphs: one fact each */
	struct str source;           /* the tool or document that it comes from; may be empty */
	enum memory_trust caller;    /* the most that the caller can give */
	enum memory_trust trust;     /* 0: the caller's */
	struct str from, until;      /* when it holds; empty: from now on, for good */
	const struct jv *supersedes; /* ids, an array; NULL: none. A fact yields only to one of at least its trust */
	bool ledger_only;            /* for the next consolidation, not for MEMORY.md */
};
/* {saved:[{id,text,trust,…}], known:[id] (was there already), superseded:[id], path, ledger} */
int memory_save(struct workspace *ws, struct ctx *ctx, const struct memory_save *save, struct jv **ret,
		struct err *err);

/* {facts:[…], total}: of MEMORY.md, in its order; `all`: also what does not hold now. */
int memory_list(struct workspace *ws, struct ctx *ctx, bool all, enum memory_trust least, struct jv **ret,
		struct err *err);
/* The lines from `first` to `last` (1-based) of MEMORY.md or a file below memory/: {path,start_line,end_line,
   total_lines,content}. */
int memory_get(struct workspace *ws, struct ctx *ctx, struct str path, uint64_t first, uint64_t last, struct jv **ret,
	       struct err *err);
/* Ranked: {matches:[{id?,path,line,text,trust?,score,…}], total, note?}. A fact is found once, and only while it holds,
   unless `all`. */
int memory_search(struct workspace *ws, struct ctx *ctx, struct str query, size_t limit, bool all, struct jv **ret,
		  struct err *err);
/* {bytes,budget_bytes,facts,current,by_trust:{…},ledgers,ledger_bytes,archived,consolidated_at?,pending} */
int memory_stats(struct workspace *ws, struct ctx *ctx, struct jv **ret, struct err *err);

/* --- consolidation (memory_consolidate.c) --- */

/* What the workspace's agent has not merged yet: {basis, facts:[…] (of MEMORY.md), entries:[…] (of ledgers after the
   watermark), budget_bytes}. `basis` is for memory_consolidate; a later call makes an earlier basis void. */
int memory_pending(struct workspace *ws, struct ctx *ctx, struct jv **ret, struct err *err);
/* Replaces MEMORY.md by `text`, in which every bullet names its sources: "- fact [m-1… m-2…]", or has the words of one.
   Refused as a whole (ERR_INVALID) when a bullet has none. A fact gets the lowest trust of its sources, and no more
   than an agent's when its words are new. What was saved since `basis`, and what people wrote and no bullet names,
   stays. What goes is added to memory/archive/MEMORY.md first. {total,merged,kept,dropped,bytes,consolidated_at} */
int memory_consolidate(struct workspace *ws, struct ctx *ctx, struct str text, struct str basis, struct jv **ret,
		       struct err *err);
/* Ledgers older than memory.ledger_days go to memory/archive/, and MEMORY.md is brought within memory.max_tokens: facts
   that no longer hold go first, then the oldest; what people wrote goes last. {ledgers,facts,bytes} */
int memory_archive(struct workspace *ws, struct ctx *ctx, struct jv **ret, struct err *err);

/* --- forgetting (memory_forget.c) --- */

/* Removes the fact with this id, or with these words, from MEMORY.md, ledgers and archives, from forks of the
   workspace, from what history holds of them, and from the index. The receipt is kept in memory/forgotten.jsonl too,
   and never has the words:
   {receipt,sha256:[…],time,by,ids,files:[{path,facts}],history:{covered,revisions,contents,left?,
   waiting?,why?},index,forks,derived:[id] (merged from it),mentions:[path] (other files that have the words)}.
   ERR_NOT_FOUND: neither a file nor history has it. ERR_DENIED: it is trusted above `caller`. Killed at any instant, it
   is completed by forgetting the same words again. */
int memory_forget(struct workspace *ws, struct ctx *ctx, struct str id, struct str text, enum memory_trust caller,
		  struct jv **ret, struct err *err);

/* For search. */
extern const struct search_source memory_sources[];
/* For the prompt. */
extern const struct prompt_section memory_sections[];

#endif
