/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One tree whose parts are in two stores, at the same paths in both: files in one place, what a running system needs in
 * another. Unlike a mount, which is one directory that is known beforehand, a rule over paths decides on the store
 * ("…/tasks of every workspace"), and the directories above the parts are seen as one.
 *
 * A directory that has parts in both is removed and moved in both, the second store first: the file that makes a
 * directory a workspace (agent.yaml) is in the first, so a half-moved one is not taken for a whole. Across the two, a
 * move is a copy and then a removal, so that a failure in between leaves too much rather than too little.
 */
#include "base/limits.h"
#include "store/list_stream.h"
#include "store/stores.h"

struct split {
	struct store base;
	struct store *first, *second;
	enum split_side (*side)(struct wpath path);
};

static struct split *split_of(struct store *s)
{
	return (struct split *)s;
}

/* The store of a file. Only directories can be in both; a file at such a path belongs to the first. */
static struct store *store_of(const struct split *s, struct wpath path)
{
	return s->side(path) == SPLIT_SECOND ? s->second : s->first;
}

/* --- directories that both have --- */

static int stat_both(struct split *s, struct ctx *ctx, struct wpath path, struct store_stat *ret_stat, struct err *err)
{
	struct store_call call = {.op = STORE_OP_STAT, .path = path, .ret_stat = ret_stat};
	int r = store_forward(s->first, ctx, &call, err);

	return r == -ERR_NOT_FOUND ? store_forward(s->second, ctx, &call, err) : r;
}

static int remove_both(struct split *s, struct ctx *ctx, const struct store_call *call, struct err *err)
{
	struct store *const parts[] = {s->second, s->first};
	struct store_stat stat;
	uint64_t count = 0;
	int r = stat_both(s, ctx, call->path, &stat, err);

	if (r)
		return r;
	if (stat.kind == STORE_FILE || !call->recursive || call->cond.kind != STORE_ANY) {
		struct store_call one = *call;

		if (stat.kind == STORE_DIR && !call->recursive)
			return err_set(err, ERR_INVALID,
				       ERR_PATH " is a directory; remove it with everything in it (recursive)",
				       STR_ARG(call->path.s));
		return store_forward(s->first, ctx, &one, err);
	}
	for (size_t i = 0; i < 2; i++) {
		struct store_call part = *call;
		uint64_t n = 0;

		part.ret_count = &n;
		r = store_forward(parts[i], ctx, &part, err);
		if (r && r != -ERR_NOT_FOUND)
			return r;
		count += n;
	}
	*call->ret_count = count;
	return 0;
}

static bool has(struct store *s, struct ctx *ctx, struct wpath path)
{
	struct store_stat stat;
	struct store_call call = {.op = STORE_OP_STAT, .path = path, .ret_stat = &stat};
	struct err ignored;

	return store_forward(s, ctx, &call, &ignored) == 0;
}

static int move_both(struct split *s, struct ctx *ctx, const struct store_call *call, struct err *err)
{
	bool in_first = has(s->first, ctx, call->path), in_second = has(s->second, ctx, call->path);
	struct store_call part = *call, back = *call;
	struct err ignored;
	int r = 0;

	if (in_second && has(s->first, ctx, call->to))
		return err_set(err, call->to_cond.kind == STORE_ABSENT ? ERR_EXISTS : ERR_INVALID,
			       ERR_PATH " already exists; a directory is never replaced", STR_ARG(call->to.s));
	if (in_second)
		r = store_forward(s->second, ctx, &part, err);
	part = *call;
	if (r == 0 && in_first)
		r = store_forward(s->first, ctx, &part, err);
	if (r && in_first && in_second && !has(s->second, ctx, call->path)) {
		back.path = call->to;
		back.to = call->path;
		(void)store_forward(s->second, ctx, &back, &ignored);
	}
	if (r == 0 && !in_first && !in_second)
		return err_set(err, ERR_NOT_FOUND, "there is no " ERR_PATH, STR_ARG(call->path.s));
	return r;
}

/* --- lists --- */

/* The next entry of a side, without what is the other's. */
static int peek(struct split *s, struct list_stream *ls, enum split_side other, const struct store_entry **ret,
		struct err *err)
{
	int r;

	while ((r = list_stream_peek(ls, ret, err)) == 0 && *ret && s->side((*ret)->path) == other)
		list_stream_next(ls);
	return r;
}

static int list_both(struct split *s, struct ctx *ctx, const struct store_call *call, struct err *err)
{
	struct page_builder out = {.arena = ctx->arena, .limit = call->list->limit};
	struct list_stream a, b;
	int r = 0;

	list_stream_init(&a, s->first, ctx, call->path, WPATH_ROOT, call->list);
	list_stream_init(&b, s->second, ctx, call->path, WPATH_ROOT, call->list);
	while (r == 0 && !page_builder_full(&out)) {
		const struct store_entry *x = NULL, *y = NULL;
		int order;

		r = peek(s, &a, SPLIT_SECOND, &x, err);
		if (r == 0)
			r = peek(s, &b, SPLIT_FIRST, &y, err);
		if (r || (!x && !y))
			break;
		order = !y ? -1 : !x ? 1 : store_entry_cmp(x, y);
		page_builder_add(&out, order <= 0 ? x : y);
		if (order <= 0)
			list_stream_next(&a);
		if (order >= 0)
			list_stream_next(&b);
	}
	if (r == 0 && out.page.count == 0 && !call->list->after.len) {
		struct store_stat stat;

		r = stat_both(s, ctx, call->path, &stat, err);
	}
	if (r)
		return r;
	out.page.skipped = a.skipped + b.skipped;
	page_builder_finish(&out, call->ret_page);
	return 0;
}

/* --- across --- */

static int copy_file(struct split *s, struct ctx *ctx, const struct store_call *call, struct err *err)
{
	struct store *from = store_of(s, call->path), *to = store_of(s, call->to);
	struct store_call same = *call;

	if (from == to)
		return store_forward(from, ctx, &same, err);
	return store_copy_between(from, ctx, call->path, to, call->to, call->to_cond, call->ret_stat, err);
}

/* A file: copied, then removed if it is still the one that was copied. */
static int move_file(struct split *s, struct ctx *ctx, const struct store_call *call, struct str version,
		     struct err *err)
{
	uint64_t n;
	struct store_call gone = {.op = STORE_OP_REMOVE,
				  .path = call->path,
				  .cond = {.kind = STORE_VERSION, .version = version},
				  .ret_count = &n};
	int r = store_cond_check(call->cond, true, version, err);

	if (r == 0)
		r = copy_file(s, ctx, call, err);
	return r ? r : store_forward(store_of(s, call->path), ctx, &gone, err);
}

/* Everything below a directory, file by file: the directory has parts on either side, or goes to the other one. */
static int move_dir(struct split *s, struct ctx *ctx, const struct store_call *call, struct err *err)
{
	struct store_list_req req = {.recursive = true, .limit = 1000};
	struct store_page page;
	struct store_stat stat;
	int r = store_cond_check(call->cond, true, STR(""), err);

	if (r == 0 && wpath_within(call->to, call->path))
		r = err_set(err, ERR_INVALID, "a directory cannot be moved into itself");
	if (r == 0 && stat_both(s, ctx, call->to, &stat, err) == 0)
		r = err_set(err, call->to_cond.kind == STORE_ABSENT ? ERR_EXISTS : ERR_INVALID,
			    ERR_PATH " already exists; a directory is never replaced", STR_ARG(call->to.s));
	do {
		if (r == 0)
			r = store_list(&s->base, ctx, call->path, &req, &page, err);
		for (size_t i = 0; r == 0 && i < page.count; i++) {
			struct store_call one = {.op = STORE_OP_MOVE,
						 .path = page.entries[i].path,
						 .to_cond = {.kind = STORE_ABSENT},
						 .ret_stat = &stat};

			r = wpath_join(ctx->arena, call->to, wpath_relative(one.path, call->path), &one.to, err);
			if (r == 0)
				r = move_file(s, ctx, &one, page.entries[i].stat.version, err);
		}
		req.after = page.next;
	} while (r == 0 && page.next.ptr);
	if (r == 0)
		*call->ret_stat = (struct store_stat){.kind = STORE_DIR};
	return r;
}

static int split_move(struct split *s, struct ctx *ctx, const struct store_call *call, struct err *err)
{
	enum split_side from = s->side(call->path), to = s->side(call->to);
	struct store_call same = *call;
	struct store_stat stat;
	int r;

	if (from == to && from != SPLIT_BOTH)
		return store_forward(store_of(s, call->path), ctx, &same, err);
	r = stat_both(s, ctx, call->path, &stat, err);
	if (r)
		return r;
	if (stat.kind == STORE_FILE)
		return store_of(s, call->path) == store_of(s, call->to)
			       ? store_forward(store_of(s, call->path), ctx, &same, err)
			       : move_file(s, ctx, call, stat.version, err);
	return from == to ? move_both(s, ctx, call, err) : move_dir(s, ctx, call, err);
}

/* --- the layer --- */

/* A file where the other store has a directory would be both. */
static int check_free(struct split *s, struct ctx *ctx, struct wpath path, struct err *err)
{
	if (s->side(path) == SPLIT_BOTH && has(s->second, ctx, path))
		return err_set(err, ERR_INVALID, ERR_PATH " is a directory; name a file in it", STR_ARG(path.s));
	return 0;
}

static int split_around(struct store *store, struct ctx *ctx, struct store_call *call, struct err *err)
{
	struct split *s = split_of(store);
	bool both = s->side(call->path) == SPLIT_BOTH;
	int r;

	switch (call->op) {
	case STORE_OP_MOVE:
		r = check_free(s, ctx, call->to, err);
		return r && !both ? r : split_move(s, ctx, call, err);
	case STORE_OP_COPY:
		r = check_free(s, ctx, call->to, err);
		return r ? r : copy_file(s, ctx, call, err);
	case STORE_OP_WRITE:
	case STORE_OP_APPEND:
		r = check_free(s, ctx, call->path, err);
		return r ? r : store_forward(store_of(s, call->path), ctx, call, err);
	case STORE_OP_STAT:
		if (both)
			return stat_both(s, ctx, call->path, call->ret_stat, err);
		break;
	case STORE_OP_REMOVE:
		if (both)
			return remove_both(s, ctx, call, err);
		break;
	case STORE_OP_LIST:
		if (both)
			return list_both(s, ctx, call, err);
		break;
	case STORE_OP_SCAN:
		if (both || call->scan->use_ignore) /* the rules may be on the other side */
			return store_scan_generic(store, ctx, call->path, call->scan, err);
		break;
	case STORE_OP_JOURNAL_ADD:
		if (!wpath_is_root(call->to) && store_of(s, call->to) != store_of(s, call->path))
			return err_set(
				err, ERR_UNSUPPORTED,
				"the file and the journal are in different stores; they cannot change in one step");
		break;
	default:
		break;
	}
	return store_forward(store_of(s, call->path), ctx, call, err);
}

static const struct store *split_stands_on(const struct store *store)
{
	return ((const struct split *)store)->second;
}

static void split_destroy(struct store *store)
{
	struct split *s = split_of(store);

	store_destroy(s->first);
	store_destroy(s->second);
	free(s);
}

static const struct store_ops split_ops = {
	.name = "split",
	.cannot = STORE_ONE_STEP | STORE_GROUP_STEP | STORE_WRITE_STEP | STORE_OVER_PAST,
	.stands_on = split_stands_on,
	.around = split_around,
	.destroy = split_destroy,
};

struct store *store_split_new(struct store *first, struct store *second, enum split_side (*side)(struct wpath path))
{
	struct split *s = xcalloc(1, sizeof *s);

	s->base = (struct store){.ops = &split_ops};
	s->first = first;
	s->second = second;
	s->side = side;
	return &s->base;
}
