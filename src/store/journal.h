/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A journal: an ordered list of entries that is only added to at its end and cut at its beginning. It is what the
 * revision log is kept in where a file that grows is not cheap: on Redis it is a stream, on PostgreSQL rows of a table,
 * on an object store one object per entry. A path names it; everything below that path belongs to the journal
 * alone. Entries are numbered 1, 2, 3 … without gaps.
 *
 * Adding is conditional on the number of the last entry that the caller knows, so that two replicas never believe that
 * they were both next. A store that has files and journal in one place can change a file, or a group of files, in the
 * same step: all of it or nothing, in one round trip.
 *
 * A store without operations of its own gets the generic form (journal.c): objects "<path>/<number>", made under the
 * condition "absent", old ones gathered into larger objects.
 */
#ifndef STEAD_STORE_JOURNAL_H
#define STEAD_STORE_JOURNAL_H

#include "base/clock.h"
#include "base/limits.h"
#include "store/store.h"

struct journal_entry {
	uint64_t number;
	struct str bytes;
};

struct journal_read {
	uint64_t after;   /* entries after this one */
	size_t max_bytes; /* at least one entry is given, then no more than fit */
	int64_t wait_ns;  /* when there is none: how long to wait for one; 0: not at all */
	/* When (clock_real_ns) entry `after` was known to be the last one. A store that keeps an object per entry need
	   not look around then. 0: not known, or long ago. */
	int64_t known_ns;
};

struct journal_page {
	struct journal_entry *entries; /* in the caller's arena */
	size_t count;
	uint64_t first; /* the oldest entry that is kept (last + 1: none is); 0: the store did not look (known_ns) */
	uint64_t last;  /* the newest entry, 0 before the first; more than the page has: read on */
};

enum journal_change { JOURNAL_ALONE, JOURNAL_WRITE, JOURNAL_APPEND, JOURNAL_REMOVE, JOURNAL_MOVE, JOURNAL_GROUP };

/* At most so many changes, and so many bytes of contents, are made in one step. */
#define JOURNAL_GROUP_MAX   512
#define JOURNAL_GROUP_BYTES (4 * MIB)

/* One change of a group. The fields are as in journal_add. */
struct journal_item {
	enum journal_change change; /* a write, a removal or a move */
	struct wpath path;
	struct store_cond cond;
	struct str content;
	struct str version;
	struct wpath from;
	struct store_cond from_cond;
};

struct journal_add {
	uint64_t after; /* the entry gets the number after + 1 */
	struct str
		bytes; /* at most JOURNAL_ENTRY_MAX; no two adds ever have the same bytes (the caller sees to that) */
	/* In the same step: a change of the file `to` of the call, under its condition. */
	enum journal_change change;
	struct str content; /* write: the file; append: what is added */
	/* The version that the file gets, chosen by the caller. Write, append: never used before. Move: the one that
	   the file has. */
	struct str version;
	struct wpath from;           /* move: the file that becomes `to` */
	struct store_cond from_cond; /* a version */
	/* A group: changes that are made all or none, with `to` the root. Their conditions are of what was there before
	   the group, and no path is given twice. */
	const struct journal_item *items;
	size_t item_count;
	int64_t known_ns; /* as for reading */
	/* The entries up to `after`, in order, as far as the caller still has them: the generic form gathers them into
	   larger objects without reading them again. May be none. */
	const struct journal_entry *recent;
	size_t recent_count;
};

struct journal_added {
	struct store_stat stat; /* write, append, move: the file */
	bool overtaken; /* on ERR_CONFLICT: entry after + 1 already exists. False: the file's condition failed */
	size_t failed;  /* of a group whose change was refused: the item */
	struct journal_page news; /* when overtaken: the entries that were missed, if the store reported them at once;
				     may be empty */
};

/* ERR_NOT_FOUND: entries after `after` were cut away; page->first says where to begin. A journal that was never added
   to is empty, not an error. */
int store_journal_read(struct store *s, struct ctx *ctx, struct wpath journal, const struct journal_read *req,
		       struct journal_page *ret_page, struct err *err);
/* Durable when it returns. ERR_CONFLICT with overtaken: nothing was added. What a write or remove under `cond` can fail
   with: nothing was added either. ERR_UNSUPPORTED with a change: this store cannot do both in one step; add the entry
   alone, then make the change. The store handles a lost answer itself: it reads entry after + 1 and compares. */
int store_journal_add(struct store *s, struct ctx *ctx, struct wpath journal, struct wpath to, struct store_cond cond,
		      const struct journal_add *add, struct journal_added *ret_added, struct err *err);
/* Entries before `before` go. Never the last one: its number must stay known. */
int store_journal_cut(struct store *s, struct ctx *ctx, struct wpath journal, uint64_t before, struct err *err);

/* The generic forms, over the front doors of `s` itself. */
int store_journal_read_generic(struct store *s, struct ctx *ctx, struct wpath journal, const struct journal_read *req,
			       struct journal_page *ret_page, struct err *err);
int store_journal_add_generic(struct store *s, struct ctx *ctx, struct wpath journal, const struct journal_add *add,
			      struct journal_added *ret_added, struct err *err);
/* Objects go only when they are `grace_ns` older than the newest one: whoever knew them as the end of the journal knows
   by then that its knowledge is stale. */
int store_journal_cut_generic(struct store *s, struct ctx *ctx, struct wpath journal, uint64_t before, int64_t grace_ns,
			      struct err *err);
#define JOURNAL_GRACE_NS (3600 * NS_PER_S)
/* True when the entry after `after` has these bytes: the answer to an add was lost. */
bool store_journal_has(struct store *s, struct ctx *ctx, struct wpath journal, uint64_t after, struct str bytes);

#endif
