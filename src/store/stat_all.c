/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of many files, for stores where a request is what costs. In the order of their paths a page of a recursive
 * list answers for all paths between its first and its last entry, those that are not there included. So one path is
 * asked for by itself and a list that begins after it answers for those that follow. A page that answered for few of
 * them, because other files lie between, makes the next one smaller, and the next paths are asked for one by one.
 */
#include <stdlib.h>

#include "base/limits.h"
#include "store/store.h"

#define FEW      4 /* paths that are not worth a list */
#define PAGE_MIN 64
#define ALONE    16 /* paths asked for by themselves after a list that answered for none */

struct asking {
	struct store *s;
	struct ctx *ctx;
	const struct wpath *paths;
	struct store_stat *stats;
	size_t *order; /* of the paths */
	size_t count, next;
	size_t page_size, alone;
};

static int by_path(const void *a, const void *b, void *arg)
{
	const struct wpath *paths = arg;

	return str_cmp(paths[*(const size_t *)a].s, paths[*(const size_t *)b].s);
}

static int ask_one(struct asking *a, struct err *err)
{
	size_t at = a->order[a->next];
	struct store_call get = {.op = STORE_OP_STAT, .path = a->paths[at], .ret_stat = &a->stats[at]};
	int r = store_forward(a->s, a->ctx, &get, err);

	if (r && r != -ERR_NOT_FOUND)
		return r;
	if (r)
		a->stats[at] = (struct store_stat){0};
	a->next++;
	return 0;
}

/* True when the page says what is at `path`. `at` is the first entry that is not before it. */
static bool page_answers(const struct store_page *page, struct wpath path, size_t at, struct store_stat *ret)
{
	*ret = (struct store_stat){0};
	if (at < page->count && str_eq(page->entries[at].path.s, path.s)) {
		*ret = page->entries[at].stat;
		return true;
	}
	for (; at < page->count; at++) { /* names between "a" and "a/", such as "a-b", come before what is in "a" */
		struct str s = page->entries[at].path.s;

		if (wpath_within(page->entries[at].path, path)) {
			ret->kind = STORE_DIR;
			return true;
		}
		if (!str_starts(s, path.s) || (s.len > path.s.len && s.ptr[path.s.len] > '/'))
			return true;
	}
	return !page->next.ptr;
}

static int ask_page(struct asking *a, struct err *err)
{
	struct store_list_req req = {
		.recursive = true, .limit = a->page_size, .after = a->paths[a->order[a->next - 1]].s};
	struct store_page page = {0};
	struct store_call list = {.op = STORE_OP_LIST, .path = WPATH_ROOT, .list = &req, .ret_page = &page};
	int r = store_forward(a->s, a->ctx, &list, err);
	size_t before = a->next, at = 0;

	if (r)
		return r;
	for (; a->next < a->count; a->next++) {
		struct wpath path = a->paths[a->order[a->next]];

		while (at < page.count && str_cmp(page.entries[at].path.s, path.s) < 0)
			at++;
		if (!page_answers(&page, path, at, &a->stats[a->order[a->next]]))
			break;
	}
	a->page_size = 2 * (a->next - before);
	if (a->page_size < PAGE_MIN)
		a->page_size = PAGE_MIN;
	if (a->page_size > STORE_PAGE_MAX)
		a->page_size = STORE_PAGE_MAX;
	a->alone = a->next - before < FEW ? ALONE : 0;
	return 0;
}

int store_stat_all(struct store *s, struct ctx *ctx, const struct wpath *paths, size_t count, struct store_stat *ret,
		   struct err *err)
{
	struct asking a = {.s = s, .ctx = ctx, .paths = paths, .stats = ret, .count = count};
	int r = 0;

	a.order = ARENA_ARRAY(ctx->arena, size_t, count);
	for (size_t i = 0; i < count; i++)
		a.order[i] = i;
	if (count)
		qsort_r(a.order, count, sizeof(*a.order), by_path, (void *)paths);
	a.page_size = 2 * count < PAGE_MIN ? PAGE_MIN : 2 * count < STORE_PAGE_MAX ? 2 * count : STORE_PAGE_MAX;
	while (r == 0 && a.next < count) {
		r = ask_one(&a, err);
		if (r == 0 && a.alone)
			a.alone--;
		else if (r == 0 && count - a.next >= FEW)
			r = ask_page(&a, err);
	}
	return r;
}
