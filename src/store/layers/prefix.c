/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A directory of another store as a store of its own: how workspaces share one store without seeing each other. Paths
 * get the directory put before them on the way in and taken off on the way out: in entries, cursors, scans and the
 * paths of errors, so that nobody inside learns where the workspace is stored.
 *
 * The root of a store always exists, the directory only when something is in it; this layer makes up the difference.
 */
#include "base/limits.h"
#include "store/journal.h"
#include "store/stores.h"

struct prefix {
	struct store base;
	struct wpath dir; /* owned */
};

static struct prefix *prefix_of(struct store *s)
{
	return (struct prefix *)s;
}

struct prefix_scan {
	const struct prefix *prefix;
	const struct scan_req *req;
};

static struct str strip(const struct prefix *p, struct str path)
{
	return wpath_relative((struct wpath){path}, p->dir).s;
}

static bool scan_want_dir(void *arg, struct str path)
{
	struct prefix_scan *s = arg;

	return s->req->want_dir(s->req->arg, strip(s->prefix, path));
}

static bool scan_want_file(void *arg, struct str path)
{
	struct prefix_scan *s = arg;

	return s->req->want_file(s->req->arg, strip(s->prefix, path));
}

static int scan_visit(void *arg, const struct scan_item *item, struct err *err)
{
	struct prefix_scan *s = arg;
	struct scan_item own = *item;

	own.path = strip(s->prefix, item->path);
	return s->req->visit(s->req->arg, &own, err);
}

/* The call in inner's terms; the copies that `call` then points to are the caller's. */
struct prefix_call {
	struct store_call call;
	struct store_list_req list;
	struct scan_req scan;
	struct prefix_scan scan_arg;
	struct journal_add add;
};

static int translate_items(const struct prefix *p, struct ctx *ctx, const struct journal_add *add,
			   struct prefix_call *ret, struct err *err)
{
	struct journal_item *items = ARENA_ARRAY(ctx->arena, struct journal_item, add->item_count);
	int r = 0;

	for (size_t i = 0; r == 0 && i < add->item_count; i++) {
		items[i] = add->items[i];
		r = wpath_join(ctx->arena, p->dir, add->items[i].path, &items[i].path, err);
		if (r == 0 && add->items[i].change == JOURNAL_MOVE)
			r = wpath_join(ctx->arena, p->dir, add->items[i].from, &items[i].from, err);
		if (r)
			ret->call.ret_added->failed = i;
	}
	ret->add = *add;
	ret->add.items = items;
	ret->call.journal_add = &ret->add;
	return r;
}

static int translate(const struct prefix *p, struct ctx *ctx, const struct store_call *call, struct prefix_call *ret,
		     struct err *err)
{
	int r = wpath_join(ctx->arena, p->dir, call->path, &ret->call.path, err);

	if (r == 0 && !wpath_is_root(call->to))
		r = wpath_join(ctx->arena, p->dir, call->to, &ret->call.to, err);
	if (r == 0 && call->journal_add && call->journal_add->change == JOURNAL_MOVE) {
		ret->add = *call->journal_add;
		r = wpath_join(ctx->arena, p->dir, call->journal_add->from, &ret->add.from, err);
		ret->call.journal_add = &ret->add;
	}
	if (r == 0 && call->journal_add && call->journal_add->change == JOURNAL_GROUP)
		r = translate_items(p, ctx, call->journal_add, ret, err);
	if (r)
		return r;
	if (call->list) {
		ret->list = *call->list;
		if (ret->list.after.len && p->dir.s.len)
			ret->list.after =
				arena_printf(ctx->arena, "%.*s/%.*s", STR_ARG(p->dir.s), STR_ARG(ret->list.after));
		ret->call.list = &ret->list;
	}
	if (call->scan) {
		ret->scan_arg = (struct prefix_scan){p, call->scan};
		ret->scan = *call->scan;
		ret->scan.want_dir = call->scan->want_dir ? scan_want_dir : NULL;
		ret->scan.want_file = call->scan->want_file ? scan_want_file : NULL;
		ret->scan.visit = scan_visit;
		ret->scan.arg = &ret->scan_arg;
		ret->call.scan = &ret->scan;
	}
	return 0;
}

static void strip_page(const struct prefix *p, struct store_page *page)
{
	for (size_t i = 0; i < page->count; i++)
		page->entries[i].path.s = strip(p, page->entries[i].path.s);
	if (page->next.ptr)
		page->next = strip(p, page->next);
}

/* The root exists though nothing is in it. */
static int answer_empty_root(struct store_call *call)
{
	if (call->ret_stat)
		*call->ret_stat = (struct store_stat){.kind = STORE_DIR};
	if (call->ret_page)
		*call->ret_page = (struct store_page){0};
	if (call->ret_count)
		*call->ret_count = 0;
	return 0;
}

static int prefix_around(struct store *s, struct ctx *ctx, struct store_call *call, struct err *err)
{
	struct prefix *p = prefix_of(s);
	struct prefix_call own = {.call = *call};
	int r = translate(p, ctx, call, &own, err);

	if (r)
		return r;
	r = store_forward(s->inner, ctx, &own.call, err);
	if (r == -ERR_NOT_FOUND && wpath_is_root(call->path))
		return answer_empty_root(call);
	if (r)
		err_leave_dir(err, p->dir.s);
	else if (call->ret_page)
		strip_page(p, call->ret_page);
	return r;
}

static int prefix_group(struct store *s, struct ctx *ctx, struct store_group *group, struct err *err)
{
	struct prefix *p = prefix_of(s);
	struct store_group own = {.items = ARENA_ARRAY(ctx->arena, struct store_group_item, group->count),
				  .count = group->count,
				  .failed = group->count};
	struct store_call call = {.op = STORE_OP_GROUP, .group = &own};
	int r;

	for (size_t i = 0; i < group->count; i++) {
		own.items[i] = group->items[i];
		r = wpath_join(ctx->arena, p->dir, group->items[i].path, &own.items[i].path, err);
		if (r) {
			group->failed = i;
			return r;
		}
	}
	r = store_forward(s->inner, ctx, &call, err);
	for (size_t i = 0; i < group->count; i++) {
		group->items[i].made = own.items[i].made;
		group->items[i].stat = own.items[i].stat;
	}
	group->failed = own.failed;
	if (r)
		err_leave_dir(err, p->dir.s);
	return r;
}

static void prefix_destroy(struct store *s)
{
	struct prefix *p = prefix_of(s);

	free((char *)p->dir.s.ptr);
	free(p);
}

static const struct store_ops prefix_ops = {
	.name = "prefix",
	.group = prefix_group,
	.around = prefix_around,
	.destroy = prefix_destroy,
};

struct store *store_prefix_new(struct store *inner, struct wpath dir)
{
	struct prefix *p = xcalloc(1, sizeof(*p));

	p->base.ops = &prefix_ops;
	p->base.inner = inner;
	p->dir.s = str_n(xstrndup(dir.s), dir.s.len);
	return &p->base;
}
