/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files, for the same reason as the outbox: a request arrives at any replica, and one of them has the channels. A mark
 * holds the name of the file that was taken under it. So a file that is found again after a kill, between its mark and
 * its removal, is handed over once more (a message of the same id counts once in the queue), while a second file with
 * the same id is a request that was sent again, and is dropped.
 */
#include "home/channels/inbox.h"

#include "base/clock.h"
#include "base/limits.h"
#include "base/sha256.h"

#define DIR      "channels/inbox"
#define SEEN     "channels/seen"
#define DAMAGED  "channels/damaged"
#define ITEM_MAX (CHANNEL_POST_MAX + 4 * KIB)
#define MARK_MAX KIB

int inbox_put(struct workspace *ws, struct ctx *ctx, const struct inbox_item *item, struct err *err)
{
	struct arena *arena = ctx->arena;
	struct wpath path = {arena_printf(arena, DIR "/%020lld-%016llx.json", (long long)clock_real_ns(),
					  (unsigned long long)random_u64())};
	struct jv *v = jv_object(arena);
	struct buf text;

	jv_set_str(arena, v, "channel", item->channel);
	jv_set_str(arena, v, "id", item->id);
	jv_set_int(arena, v, "until", item->until);
	jv_set(arena, v, "body", (struct jv *)item->body);
	buf_init(&text, arena, 2 * ITEM_MAX);
	jv_write(&text, v);
	if (text.overflow)
		return err_set(err, ERR_TOO_LARGE, "the request has more than %zu MiB", CHANNEL_POST_MAX / MIB);
	return store_write(workspace_home(ws), ctx, path, buf_str(&text), (struct store_cond){.kind = STORE_ABSENT},
			   NULL, err);
}

int inbox_parse(struct arena *arena, struct str bytes, struct inbox_item *ret, struct err *err)
{
	struct jv *v;
	int r = jv_parse(arena, bytes, &v, err);

	if (r)
		return r;
	*ret = (struct inbox_item){.channel = jv_get_str(v, "channel"),
				   .id = jv_get_str(v, "id"),
				   .until = jv_get_int(v, "until", -1),
				   .body = jv_get(v, "body")};
	if (!ret->channel.len || !ret->id.len || ret->until < 0 || !ret->body)
		return err_set(err, ERR_INVALID, "the file has no channel, id, until or body");
	return 0;
}

int channels_set_aside(struct workspace *ws, struct ctx *ctx, struct wpath path, struct err *err)
{
	struct wpath aside = {arena_printf(ctx->arena, DAMAGED "/%.*s", STR_ARG(wpath_name(path)))};
	struct err ignored;

	if (store_move(workspace_home(ws), ctx, path, aside, (struct store_cond){0}, (struct store_cond){0}, NULL,
		       &ignored) != 0)
		return err_prefix(err, "%.*s", STR_ARG(path.s));
	return err_prefix(err, "%.*s was moved to %.*s", STR_ARG(path.s), STR_ARG(aside.s));
}

static int read_item(struct workspace *ws, struct ctx *ctx, struct wpath path, struct inbox_item *ret, struct err *err)
{
	struct str bytes;
	int r = store_read(workspace_home(ws), ctx, path, STORE_WHOLE, 2 * ITEM_MAX, &bytes, NULL, err);

	if (r)
		return r;
	r = inbox_parse(ctx->arena, bytes, ret, err);
	return r ? channels_set_aside(ws, ctx, path, err) : 0;
}

/* True when another request with this id was taken. */
static int mark(struct workspace *ws, struct ctx *ctx, struct wpath file, const struct inbox_item *item, bool *ret_seen,
		struct err *err)
{
	struct str id = arena_printf(ctx->arena, "%.*s %.*s", STR_ARG(item->channel), STR_ARG(item->id)), other;
	struct wpath path = {arena_printf(ctx->arena, SEEN "/%012lld-%.*s", (long long)item->until,
					  STR_ARG(sha256_hex(ctx->arena, id)))};
	int r = store_write(workspace_home(ws), ctx, path, file.s, (struct store_cond){.kind = STORE_ABSENT}, NULL,
			    err);

	*ret_seen = false;
	if (r != -ERR_EXISTS && r != -ERR_CONFLICT)
		return r;
	r = store_read(workspace_home(ws), ctx, path, STORE_WHOLE, MARK_MAX, &other, NULL, err);
	*ret_seen = r == 0 && !str_eq(other, file.s);
	return r;
}

int inbox_each(struct workspace *ws, struct ctx *ctx, bool (*take)(void *arg, const struct inbox_item *item), void *arg,
	       struct err *err)
{
	struct store_list_req req = {.limit = STORE_PAGE_MAX};
	struct store_page page = {0};
	int r = store_list(workspace_home(ws), ctx, (struct wpath){STR(DIR)}, &req, &page, err);

	if (r == -ERR_NOT_FOUND)
		return 0;
	for (size_t i = 0; r == 0 && i < page.count; i++) {
		struct inbox_item item;
		bool seen = false;

		r = read_item(ws, ctx, page.entries[i].path, &item, err);
		if (r == 0)
			r = mark(ws, ctx, page.entries[i].path, &item, &seen, err);
		if (r == 0 && !seen && !take(arg, &item))
			return 0; /* the others wait for it, so that the order is kept */
		if (r == 0)
			r = store_remove(workspace_home(ws), ctx, page.entries[i].path, false, (struct store_cond){0},
					 NULL, err);
	}
	return r;
}

int inbox_sweep(struct workspace *ws, struct ctx *ctx, int64_t now, struct err *err)
{
	struct store_list_req req = {.limit = STORE_PAGE_MAX, .names_only = true};
	struct store_page page = {0};
	int r = store_list(workspace_home(ws), ctx, (struct wpath){STR(SEEN)}, &req, &page, err);

	if (r == -ERR_NOT_FOUND)
		return 0;
	for (size_t i = 0; r == 0 && i < page.count; i++) {
		struct str name = wpath_name(page.entries[i].path);
		int64_t until = INT64_MAX;

		if (str_to_i64(str_first(name, str_find_char(name, '-')), &until) && until >= now)
			break; /* the names are in the order of that time */
		r = store_remove(workspace_home(ws), ctx, page.entries[i].path, false, (struct store_cond){0}, NULL,
				 err);
	}
	return r;
}
