/* SPDX-License-Identifier: Apache-2.0 */
/* Lists read page by page, in bounded memory, or entry by entry, for layers that merge the lists of several stores. */
#ifndef STEAD_STORE_LIST_STREAM_H
#define STEAD_STORE_LIST_STREAM_H

#include "base/limits.h"
#include "store/store.h"

/* `LIST_PAGES_SCOPE struct list_pages pages = {.store = s, .dir = dir, .req = {.limit = 1000}, .ctx = *ctx};`
   The store is asked for more at a time than a page gives, and for more each time: a caller that removes what it is
   given changes the directory, which the store then has to read again for each request. */
struct list_pages {
	struct store *store;
	struct wpath dir;
	struct store_list_req req;
	bool is_layer;  /* a layer reads its inner store: errors get no prefix */
	struct ctx ctx; /* the caller's; from the first page on with an arena that is reset for each page */
	struct store_page page;
	/* its own */
	struct store_list_req asked;
	struct arena *arena; /* of `ahead`; NULL: not begun */
	struct store_page ahead;
	size_t given; /* of `ahead` */
	char cursor[PATH_LEN_MAX + 2];
};
/* 1: `page` is the next one; 0: that was all (also when the directory went away after a page); below: an error. */
int list_pages_next(struct list_pages *pages, struct err *err);
static inline void list_pages_end(struct list_pages *pages)
{
	if (pages->arena) {
		arena_destroy(pages->ctx.arena);
		arena_destroy(pages->arena);
	}
}
#define LIST_PAGES_SCOPE __attribute__((cleanup(list_pages_end)))

struct list_stream {
	struct store *store;
	struct ctx *ctx;
	struct wpath dir; /* in `store` */
	struct wpath at;  /* put before every path that comes out */
	struct store_list_req req;
	struct store_page page;
	size_t index;
	bool loaded, done;
	uint64_t skipped;
};

/* Begins after the cursor `after`, which is in the terms of what comes out. Pages are in ctx's arena. */
void list_stream_init(struct list_stream *ls, struct store *store, struct ctx *ctx, struct wpath dir, struct wpath at,
		      const struct store_list_req *req);
/* The next entry, NULL at the end; it stays until list_stream_next(). */
int list_stream_peek(struct list_stream *ls, const struct store_entry **ret_entry, struct err *err);
void list_stream_next(struct list_stream *ls);
/* Leaves out everything below the directory `dir` (in `store`), which contains the next entry. */
void list_stream_leave(struct list_stream *ls, struct str dir);

/* A page that is gathered entry by entry. It is given one more than its limit, to know whether there is a next one. */
struct page_builder {
	struct arena *arena;
	size_t limit, cap;
	struct store_page page;
};

static inline bool page_builder_full(const struct page_builder *b)
{
	return b->page.count > b->limit;
}

void page_builder_add(struct page_builder *b, const struct store_entry *entry);
/* Drops the one too many and sets the cursor. */
void page_builder_finish(struct page_builder *b, struct store_page *ret_page);
/* The cursor that continues after an entry. */
struct str list_cursor(struct arena *arena, const struct store_entry *entry);

#endif
