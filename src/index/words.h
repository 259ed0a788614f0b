/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inverted index: documents in, the best ones for a question out. It is a set of immutable segments. A segment is
 * made from documents (words_builder) or from other segments (words_merge), is held in memory or in a mapped file, and
 * is checked before it is used. A newer segment overrides older ones for every file that it names. A segment never
 * changes, so nothing is ever locked: a search holds the segments that it began with.
 *
 * Ranking is BM25 (k1 1.2, b 0.75) in its field-weighted form: a word in the title counts as 3, in a tag as 2, in the
 * body as 1 occurrence; the length is that of all fields together; idf is ln(1 + (N - n + 0.5) / (n + 0.5)) over all
 * segments. Scores are sums of whole numbers (1 / WORDS_ONE), so that the order in which lists are read cannot change
 * them: the same documents give the same order, however they are spread over segments.
 */
#ifndef STEAD_INDEX_WORDS_H
#define STEAD_INDEX_WORDS_H

#include "base/ctx.h"

#define WORDS_K1    1.2
#define WORDS_B     0.75
#define WORDS_ONE   4294967296.0 /* a score of 1 */
#define WORDS_TITLE 3
#define WORDS_TAG   2
#define WORDS_BODY  1

/* A document. All borrowed. */
struct words_doc {
	struct str id, title, body, kind, author;
	const struct str *tags;
	size_t tag_count;
	int64_t time_ns;
	double credit; /* the score is multiplied by 1 + ln(1 + credit) / 10 */
	unsigned area; /* one bit of at most 8 */
	bool archived;
};

/* --- making segments --- */

struct words_builder;
struct words_segment;

struct words_builder *words_builder_new(void);
void words_builder_destroy(struct words_builder *b);
/* A file begins; its documents follow. An empty version says that it is gone. Any order; a path only once. */
void words_builder_file(struct words_builder *b, struct str path, struct str version);
/* Documents over WORDS_TEXT_MAX are cut. */
void words_builder_add(struct words_builder *b, const struct words_doc *doc);
/* What it holds by now, in bytes of memory (about). */
size_t words_builder_size(const struct words_builder *b);
/* The segment, in memory. The builder is empty then. */
struct words_segment *words_builder_finish(struct words_builder *b);

/* A file with the segment; complete when it returns. Not synced: it is derived, and has a checksum. */
int words_segment_save(const struct words_segment *segment, const char *path, struct err *err);
/* Maps a file. ERR_CORRUPT: not a whole segment of this version. */
int words_segment_open(const char *path, struct words_segment **ret, struct err *err);
/* The same for bytes in memory (copied). */
int words_segment_parse(struct str bytes, struct words_segment **ret, struct err *err);
struct words_segment *words_segment_ref(struct words_segment *segment);
void words_segment_unref(struct words_segment *segment);
uint32_t words_segment_docs(const struct words_segment *segment);
size_t words_segment_bytes(const struct words_segment *segment);
/* What the segment says of a file: false when it does not name it. An empty version: it is gone. */
bool words_segment_file(const struct words_segment *segment, struct str path, struct str *ret_version);
uint32_t words_segment_files(const struct words_segment *segment);
struct str words_segment_path(const struct words_segment *segment, uint32_t file, struct str *ret_version);

/* --- several of them --- */

/* Segments, oldest first, and which of their documents newer ones have replaced. Immutable once made. */
struct words_view;
/* Takes a reference to each. */
struct words_view *words_view_new(struct words_segment *const *segments, size_t count);
/* `view` (may be NULL) with one more segment on top; `view` stays as it is. */
struct words_view *words_view_push(const struct words_view *view, struct words_segment *segment);
/* `view` with `segment`, a merge of `count` of its segments from `first` on, in place of these. Segments that were
   pushed since the merge began come after it. */
struct words_view *words_view_replace(const struct words_view *view, size_t first, size_t count,
				      struct words_segment *segment);
struct words_view *words_view_ref(struct words_view *view);
void words_view_unref(struct words_view *view);
size_t words_view_count(const struct words_view *view);
struct words_segment *words_view_at(const struct words_view *view, size_t i);
/* Documents of a segment that are still what it says. */
uint32_t words_view_alive(const struct words_view *view, size_t i);
/* False when another program cut off a file that is mapped: nothing of the view may be used then. Cheap. */
bool words_view_is_whole(const struct words_view *view);
bool words_view_has(const struct words_view *view, size_t segment, uint32_t doc);
bool words_view_file(const struct words_view *view, struct str path, struct str *ret_version);

/* Segments `first` … `first + count - 1` of the view as one, without what was replaced; `oldest`: there are no older
   segments, so deleted files need not be named. ERR_CANCELLED when *stop becomes true. */
int words_merge(const struct words_view *view, size_t first, size_t count, bool oldest, const atomic_bool *stop,
		struct words_segment **ret, struct err *err);

/* --- searching --- */

struct words_clause {
	struct str term; /* as text/terms.h gives it */
	double weight;
	int phrase;   /* >= 0: the terms of one phrase are adjacent, in the order of the clauses; -1: alone */
	uint32_t at;  /* in a phrase: offset in words from its first */
	bool without; /* documents with it (or with its phrase) are left out */
};

struct words_query {
	const struct words_clause *clauses;
	size_t count;
	unsigned areas;
	struct str kind, author, under; /* empty: any */
	const struct str *tags;
	size_t tag_count;
	int64_t since_ns, until_ns; /* 0: no bound */
	bool with_archived;
	size_t top;      /* how many of the best */
	bool want_total; /* count all that match: reads every list to its end */
};

struct words_hit {
	uint32_t segment, doc;
	int64_t score; /* in 1 / WORDS_ONE */
};

struct words_hits {
	struct words_hit *hits; /* best first; equal ones: newest first, then by path and id */
	size_t count;
	uint64_t total;
	/* how it was found, for --explain and the benchmark */
	uint64_t blocks_read, blocks_skipped, scored;
};

/* A document must have every phrase; where there is none, one of the words. With neither all documents match, newest
   first. Hits are in ctx->arena. */
int words_search(const struct words_view *view, struct ctx *ctx, const struct words_query *query,
		 struct words_hits *ret, struct err *err);
/* Whether single documents pass the filters of a query (row), and have its phrases and none of what is to be left out
   (text; the row has passed). Fastest segment by segment. Lives in the arena; one thread. */
struct words_check;
struct words_check *words_check_new(const struct words_view *view, struct arena *arena,
				    const struct words_query *query);
bool words_check_row(struct words_check *check, uint32_t segment, uint32_t doc);
bool words_check_text(struct words_check *check, uint32_t segment, uint32_t doc);
/* The weight of a term: its idf over the whole view; 0 when no document has it. *ret_docs: how many have it. */
double words_idf(const struct words_view *view, struct str term, uint64_t *ret_docs);
/* The document of a hit, in the segment (it must be held). */
void words_doc_of(const struct words_view *view, const struct words_hit *hit, struct arena *arena,
		  struct words_doc *ret, struct str *ret_path);
/* Terms of the view within `distance` changes of `term` (one changed, added or left out, or two neighbours swapped),
   nearest and most frequent first; at most `max`. */
struct words_near {
	struct str term;
	unsigned distance;
	uint64_t docs;
};
size_t words_near(const struct words_view *view, struct arena *arena, struct str term, unsigned distance, size_t max,
		  struct words_near **ret);

#endif
