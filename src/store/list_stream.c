/* SPDX-License-Identifier: Apache-2.0 */
#include "store/list_stream.h"

#include "base/limits.h"

/* The greatest code point: sorts after every name. */
#define LAST_NAME "\xF4\x8F\xBF\xBF"

/* Translates the outer cursor to the store's own terms. */
static void set_after(struct list_stream *ls, struct str after)
{
	struct str at = ls->at.s, slashed;

	ls->req.after = after;
	if (at.len == 0 || after.len == 0)
		return;
	slashed = arena_printf(ls->ctx->arena, "%.*s/", STR_ARG(at));
	if (str_starts(after, slashed))
		ls->req.after = str_from(after, slashed.len);
	else if (str_cmp(after, slashed) < 0)
		ls->req.after = STR_NONE;
	else
		ls->done = true; /* everything here was given already */
}

/* Asks the store for what follows. */
static int pages_load(struct list_pages *p, struct err *err)
{
	struct ctx ctx = p->ctx;
	struct store_call call = {.op = STORE_OP_LIST, .path = p->dir, .list = &p->asked, .ret_page = &p->ahead};
	size_t len = p->ahead.next.len < sizeof(p->cursor) ? p->ahead.next.len : sizeof(p->cursor);

	if (p->ahead.next.ptr) {
		memcpy(p->cursor, p->ahead.next.ptr, len);
		p->asked.after = str_n(p->cursor, len);
		p->asked.limit = p->asked.limit < STORE_PAGE_MAX / 2 ? p->asked.limit * 2 : STORE_PAGE_MAX;
		arena_reset(p->arena);
	}
	p->given = 0;
	ctx.arena = p->arena;
	return p->is_layer ? store_forward(p->store, &ctx, &call, err)
			   : store_list(p->store, &ctx, p->dir, &p->asked, &p->ahead, err);
}

int list_pages_next(struct list_pages *p, struct err *err)
{
	bool is_first = !p->arena;
	int r;

	if (is_first) {
		p->asked = p->req;
		p->ctx.arena = arena_new();
		p->arena = arena_new();
	} else {
		arena_reset(p->ctx.arena);
	}
	r = ctx_check(&p->ctx, err);
	p->page = (struct store_page){0};
	if (r == 0 && p->given == p->ahead.count) {
		if (!is_first && !p->ahead.next.ptr)
			return 0;
		r = pages_load(p, err);
		if (r == -ERR_NOT_FOUND && p->asked.after.len)
			return 0;
		p->page.skipped = r ? 0 : p->ahead.skipped;
	}
	if (r)
		return r;
	p->page.entries = p->ahead.count ? p->ahead.entries + p->given : NULL;
	p->page.count = p->ahead.count - p->given < p->req.limit ? p->ahead.count - p->given : p->req.limit;
	p->given += p->page.count;
	return 1;
}

void list_stream_init(struct list_stream *ls, struct store *store, struct ctx *ctx, struct wpath dir, struct wpath at,
		      const struct store_list_req *req)
{
	*ls = (struct list_stream){.store = store, .ctx = ctx, .dir = dir, .at = at, .req = *req};
	ls->req.count = NULL; /* what is merged is counted by whoever merges */
	if (ls->req.limit < STORE_PAGE_MAX)
		ls->req.limit++;
	set_after(ls, req->after);
}

static int load(struct list_stream *ls, struct err *err)
{
	struct store_call call = {.op = STORE_OP_LIST, .path = ls->dir, .list = &ls->req, .ret_page = &ls->page};
	int r = ctx_check(ls->ctx, err);

	if (r == 0)
		r = store_forward(ls->store, ls->ctx, &call, err);
	if (r == -ERR_NOT_FOUND) { /* nothing in it, which a merge does not treat as an error */
		ls->done = true;
		return 0;
	}
	if (r)
		return r;
	ls->index = 0;
	ls->loaded = true;
	ls->skipped += ls->page.skipped;
	for (size_t i = 0; r == 0 && ls->at.s.len && i < ls->page.count; i++)
		r = wpath_join(ls->ctx->arena, ls->at, ls->page.entries[i].path, &ls->page.entries[i].path, err);
	return r;
}

int list_stream_peek(struct list_stream *ls, const struct store_entry **ret_entry, struct err *err)
{
	while (!ls->done && (!ls->loaded || ls->index == ls->page.count)) {
		int r;

		if (ls->loaded && !ls->page.next.ptr) {
			ls->done = true;
			break;
		}
		if (ls->loaded)
			ls->req.after = ls->page.next;
		r = load(ls, err);
		if (r)
			return r;
	}
	*ret_entry = ls->done ? NULL : &ls->page.entries[ls->index];
	return 0;
}

void list_stream_next(struct list_stream *ls)
{
	ls->index++;
}

void list_stream_leave(struct list_stream *ls, struct str dir)
{
	struct wpath d = {dir};

	while (ls->index < ls->page.count && wpath_within(ls->page.entries[ls->index].path, d))
		ls->index++;
	if (ls->index == ls->page.count && ls->page.next.ptr)
		ls->page.next = arena_printf(ls->ctx->arena, "%.*s/" LAST_NAME, STR_ARG(dir));
}

void page_builder_add(struct page_builder *b, const struct store_entry *entry)
{
	ARENA_ROOM(b->arena, b->page.entries, b->page.count, b->cap);
	b->page.entries[b->page.count++] = *entry;
}

void page_builder_finish(struct page_builder *b, struct store_page *ret_page)
{
	if (page_builder_full(b)) {
		b->page.count = b->limit;
		b->page.next = list_cursor(b->arena, &b->page.entries[b->limit - 1]);
	}
	*ret_page = b->page;
}

struct str list_cursor(struct arena *arena, const struct store_entry *entry)
{
	return entry->stat.kind == STORE_DIR ? arena_printf(arena, "%.*s/", STR_ARG(entry->path.s)) : entry->path.s;
}
