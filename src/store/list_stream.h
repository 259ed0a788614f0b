/* SPDX-License-Identifier: Apache-2.0 */
/* A list read entry by entry, over its pages: for layers that merge the lists of several stores. */
#ifndef STEAD_STORE_LIST_STREAM_H
#define STEAD_STORE_LIST_STREAM_H

#include "store/store.h"

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
/* The cursor that goes on after an entry. */
struct str list_cursor(struct arena *arena, const struct store_entry *entry);

#endif
