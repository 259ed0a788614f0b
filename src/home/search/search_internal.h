/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of search share: the index that follows a workspace, the question, the snippet. */
#ifndef STEAD_HOME_SEARCH_SEARCH_INTERNAL_H
#define STEAD_HOME_SEARCH_SEARCH_INTERNAL_H

#include "home/search/search.h"
#include "index/words.h"
#include "store/store.h"
#include "tool/family.h"

/* --- the index (search_index.c) --- */

struct home_index;

/* The index with everything that was written before the call. The view is the caller's to unref. *ret_note: something
   to tell, or empty. */
int home_index_view(struct workspace *ws, struct ctx *ctx, struct words_view **ret_view, struct str *ret_note,
		    struct err *err);
/* Lets the worker begin, if there is something to do. */
void home_index_wake(struct workspace *ws);
/* The vectors of the index; NULL: no embedder is configured. */
struct meaning;
struct meaning *home_index_meaning(struct workspace *ws);
void *home_index_new(struct workspace *ws);
void home_index_close(void *state);
extern const struct family search_family;

/* The source that a file belongs to; NULL: it is not searched (search_sources.c). */
const struct search_source *search_source_of(struct wpath path);
/* The places of all sources by their index; NULL after the last. A place may come twice. */
const char *search_place(size_t index);
/* The name of an area by its bit. */
const char *search_area_name(unsigned area);
/* Emits nothing for what is not text. False: the family could not parse it, and it was emitted as plain text. */
bool search_documents(struct arena *arena, const struct search_source *source, struct wpath path, struct str bytes,
		      int64_t mtime_ns, search_emit emit, void *arg);

/* --- a directory of the person's own (search_own.c) --- */

#define OWN_FILES "files" /* where the index has its files */
/* What may be searched: the home, without secrets and Stead's own, and the directory of the person's own. */
struct store *search_home_new(struct workspace *ws);
/* All its files that Git does not ignore, as paths of search_home_new(). */
typedef void (*search_own_emit)(void *arg, const struct store_entry *entry);
int search_own_walk(struct workspace *ws, struct ctx *ctx, search_own_emit emit, void *arg, struct err *err);
/* True when its log has moved on from *head, which becomes the newest. */
bool search_own_moved(struct workspace *ws, struct ctx *ctx, uint64_t *head);
/* The path in it of a file of the index; ptr NULL: it is another one. */
struct str search_own_path(const struct workspace *ws, struct str path);
/* `under` of a question, which may name a directory in it, as the index has it. */
struct str search_own_under(struct workspace *ws, struct ctx *ctx, struct str under);

/* --- the question (search_query.c) --- */

struct search_plan {
	struct words_clause *clauses;
	size_t count;
	bool can_widen; /* some word is rare and was not widened */
};
/* `widen`: also look for near spellings of rare words, not only of unknown ones. ERR_INVALID when the text is too long
   or has too many words. */
int search_plan(struct arena *arena, const struct words_view *view, struct str text, bool exact, bool widen,
		struct search_plan *ret, struct err *err);

/* --- the snippet (search_snippet.c) --- */

/* The best passage of `body` for the clauses, on one line, with matches between ** and **. */
struct str search_snippet(struct arena *arena, const struct words_view *view, const struct search_plan *plan,
			  struct str body);

#endif
