/* SPDX-License-Identifier: Apache-2.0 */
/* A store that has no journal operations of its own: everything else is passed on, so the generic form is used. */
#ifndef STEAD_TESTS_STORE_PLAIN_FIX_H
#define STEAD_TESTS_STORE_PLAIN_FIX_H

#include "base/arena.h"
#include "store/stores.h"

static int plain_stat(struct store *s, struct ctx *ctx, struct wpath path, struct store_stat *ret, struct err *err)
{
	struct store_call c = {.op = STORE_OP_STAT, .path = path, .ret_stat = ret};

	return store_forward(s->inner, ctx, &c, err);
}

static int plain_read(struct store *s, struct ctx *ctx, struct wpath path, struct store_range range,
		      const struct sink *sink, struct store_stat *ret, struct err *err)
{
	struct store_call c = {.op = STORE_OP_READ, .path = path, .range = range, .sink = sink, .ret_stat = ret};

	return store_forward(s->inner, ctx, &c, err);
}

static int plain_write(struct store *s, struct ctx *ctx, struct wpath path, const struct source *source,
		       struct store_cond cond, struct store_stat *ret, struct err *err)
{
	struct store_call c = {.op = STORE_OP_WRITE, .path = path, .source = source, .cond = cond, .ret_stat = ret};

	return store_forward(s->inner, ctx, &c, err);
}

static int plain_append(struct store *s, struct ctx *ctx, struct wpath path, const struct source *source,
			struct store_cond cond, struct store_stat *ret, struct err *err)
{
	struct store_call c = {.op = STORE_OP_APPEND, .path = path, .source = source, .cond = cond, .ret_stat = ret};

	return store_forward(s->inner, ctx, &c, err);
}

static int plain_remove(struct store *s, struct ctx *ctx, struct wpath path, bool recursive, struct store_cond cond,
			uint64_t *ret_count, struct err *err)
{
	struct store_call c = {
		.op = STORE_OP_REMOVE, .path = path, .recursive = recursive, .cond = cond, .ret_count = ret_count};

	return store_forward(s->inner, ctx, &c, err);
}

static int plain_move(struct store *s, struct ctx *ctx, struct wpath from, struct wpath to, struct store_cond cond,
		      struct store_cond to_cond, struct store_stat *ret, struct err *err)
{
	struct store_call c = {
		.op = STORE_OP_MOVE, .path = from, .to = to, .cond = cond, .to_cond = to_cond, .ret_stat = ret};

	return store_forward(s->inner, ctx, &c, err);
}

static int plain_copy(struct store *s, struct ctx *ctx, struct wpath from, struct wpath to, struct store_cond to_cond,
		      struct store_stat *ret, struct err *err)
{
	struct store_call c = {.op = STORE_OP_COPY, .path = from, .to = to, .to_cond = to_cond, .ret_stat = ret};

	return store_forward(s->inner, ctx, &c, err);
}

static int plain_list(struct store *s, struct ctx *ctx, struct wpath path, const struct store_list_req *req,
		      struct store_page *ret, struct err *err)
{
	struct store_call c = {.op = STORE_OP_LIST, .path = path, .list = req, .ret_page = ret};

	return store_forward(s->inner, ctx, &c, err);
}

static void plain_destroy(struct store *s)
{
	free(s);
}

static const struct store_ops plain_ops = {
	.name = "plain",
	.cannot = STORE_JOURNAL | STORE_ONE_STEP | STORE_GROUP_STEP | STORE_WRITE_STEP,
	.stat = plain_stat,
	.read = plain_read,
	.write = plain_write,
	.append = plain_append,
	.remove = plain_remove,
	.move = plain_move,
	.copy = plain_copy,
	.list = plain_list,
	.destroy = plain_destroy,
};

static struct store *plain_new(struct store *inner)
{
	struct store *s = xcalloc(1, sizeof(*s));

	*s = (struct store){.ops = &plain_ops, .inner = inner};
	return s;
}

#endif
