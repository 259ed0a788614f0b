/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Search by meaning: the vectors of an index's documents, kept in step with it, and the documents whose vectors are
 * nearest to a question. Documents are cut into pieces; a piece is known by the hash of model and text, so that what
 * was embedded once is never embedded again, whatever becomes of the index. What has no vector yet is not found here;
 * words find it. Thread-safe.
 */
#ifndef STEAD_HOME_SEARCH_SEARCH_MEANING_H
#define STEAD_HOME_SEARCH_SEARCH_MEANING_H

#include "home/search/embedder.h"
#include "index/words.h"
#include "workspace/config.h"

#define MEANING_DEPTH 100 /* how many of the nearest are ranked */

struct meaning;

struct meaning_hit {
	uint32_t segment, doc;
	uint32_t piece; /* the nearest of the document */
	float cosine;
};

/* NULL when there is no embedder. `dir` NULL: vectors are in memory. */
struct meaning *meaning_new(const struct config_embedding *config, const char *dir);
void meaning_destroy(struct meaning *m);
/* Deletes all vectors. */
void meaning_forget(struct meaning *m);
/* The nearest documents that pass the filters of `query` (of its clauses: phrases, and what is to be left out), nearest
   first, in ctx->arena. With the question a batch of pieces that have no vector yet is sent; with `all`, further
   batches as long as one request may take. Fails as embedder_embed() does. */
int meaning_rank(struct meaning *m, struct ctx *ctx, struct words_view *view, const struct words_query *query,
		 struct str text, bool all, struct meaning_hit **ret, size_t *ret_count, struct err *err);
/* True when there are pieces without a vector, and the embedder may be asked. */
bool meaning_is_due(struct meaning *m);
/* Embeds one batch of what is alive in the view. False: nothing is left to do, or it failed. */
bool meaning_work(struct meaning *m, struct ctx *ctx, struct words_view *view);
/* The text of a piece, for its snippet: a part of doc->body. */
struct str meaning_piece(const struct words_doc *doc, uint32_t piece);

#endif
