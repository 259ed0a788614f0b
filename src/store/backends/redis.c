/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workspaces in Redis, for many replicas. Every change is one script, so conditions hold against everybody and a change
 * with its journal entry is one round trip. docs/decisions/0022-redis.md has the layout of the keys and why.
 *
 * WATCH and MULTI were rejected: they need a trip to look and another to change, and repeat under contention.
 */
#include "store/backends/redis.h"

#include <stdlib.h>

#include "base/clock.h"

/* What one page of a list or one step of a recursive remove holds the server up for. */
#define LIST_STEP   1000
#define REMOVE_STEP "1000"
#define LIST_ANSWER (LIST_STEP * (PATH_LEN_MAX + 256))

/* One trip for a file; a directory, which has no key of its own, takes a second one. */
static int redis_stat(struct store *s, struct ctx *ctx, struct wpath path, struct store_stat *ret_stat, struct err *err)
{
	struct redis *rd = redis_of(s);
	struct str args[] = {STR("HMGET"), redis_key(rd, ctx->arena, "f:", path.s), STR("v"), STR("s"), STR("m")};
	struct resp_value v;
	int64_t mtime = 0;
	int r;

	*ret_stat = (struct store_stat){.kind = STORE_DIR};
	if (wpath_is_root(path))
		return 0;
	r = redis_command(rd, ctx, args, 5, REDIS_META_MAX, &v, err);
	if (r)
		return r;
	if (redis_item(&v, 0).len == 0) {
		r = redis_missing(rd, ctx, path, err);
		return r == -ERR_INVALID ? 0 : r;
	}
	str_to_i64(redis_item(&v, 2), &mtime);
	*ret_stat = (struct store_stat){
		.kind = STORE_FILE, .size = redis_number(&v, 1), .mtime_ns = mtime, .version = redis_item(&v, 0)};
	return 0;
}

int redis_missing(struct redis *rd, struct ctx *ctx, struct wpath path, struct err *err)
{
	struct str args[] = {STR("ZRANGEBYLEX"),
			     rd->names,
			     arena_printf(ctx->arena, "[%.*s/", STR_ARG(path.s)),
			     arena_printf(ctx->arena, "(%.*s0", STR_ARG(path.s)),
			     STR("LIMIT"),
			     STR("0"),
			     STR("1")};
	struct resp_value v;
	int r = redis_command(rd, ctx, args, 7, REDIS_META_MAX, &v, err);

	if (r)
		return r;
	if (v.type == RESP_ARRAY && v.count)
		return err_set(err, ERR_INVALID, "\"%.*s\" is a directory; name a file", STR_ARG(path.s));
	return err_set(err, ERR_NOT_FOUND, "there is no such file or directory; list its parent to see what is there");
}

/* A write or an append. */
static int change(struct redis *rd, struct ctx *ctx, enum redis_script script, struct wpath path,
		  const struct source *source, struct store_cond cond, struct store_stat *ret_stat, struct err *err)
{
	struct str version = redis_token(ctx->arena);
	struct redis_bytes bytes;
	struct resp_value v;
	int64_t mtime;
	int r = redis_take_in(rd, ctx, source, script == REDIS_APPEND, version, &bytes, err);

	if (r == 0) {
		struct str args[REDIS_BEFORE + 8] = {
			[REDIS_BEFORE + 1] = path.s,    redis_cond_kind(cond), cond.version, version,
			redis_time(ctx->arena, &mtime), bytes.bytes,           bytes.staged,
		};

		r = redis_script(rd, ctx, script, true, args, REDIS_BEFORE + 8, REDIS_META_MAX, &v, err);
		if (r == 0 && !redis_says(&v, "ok"))
			r = redis_refused(&v, cond, err);
		if (r)
			redis_take_back(rd, ctx, &bytes);
	}
	if (r == 0)
		*ret_stat = (struct store_stat){
			.kind = STORE_FILE, .size = redis_number(&v, 1), .mtime_ns = mtime, .version = version};
	return r;
}

static int redis_write(struct store *s, struct ctx *ctx, struct wpath path, const struct source *source,
		       struct store_cond cond, struct store_stat *ret_stat, struct err *err)
{
	return change(redis_of(s), ctx, REDIS_WRITE, path, source, cond, ret_stat, err);
}

static int redis_append(struct store *s, struct ctx *ctx, struct wpath path, const struct source *source,
			struct store_cond cond, struct store_stat *ret_stat, struct err *err)
{
	return change(redis_of(s), ctx, REDIS_APPEND, path, source, cond, ret_stat, err);
}

static int redis_remove(struct store *s, struct ctx *ctx, struct wpath path, bool recursive, struct store_cond cond,
			uint64_t *ret_count, struct err *err)
{
	struct redis *rd = redis_of(s);
	uint64_t count = 0;
	bool more = false;

	do {
		struct str args[REDIS_BEFORE + 8] = {
			[REDIS_BEFORE + 1] = path.s, recursive ? STR("1") : STR(""),
			redis_cond_kind(cond),       cond.version,
			redis_token(ctx->arena),     STR(REMOVE_STEP),
			more ? STR("1") : STR(""),
		};
		struct resp_value v;
		int r = redis_script(rd, ctx, REDIS_REMOVE, true, args, REDIS_BEFORE + 8, REDIS_META_MAX, &v, err);

		if (r == 0 && !redis_says(&v, "ok"))
			r = redis_refused(&v, cond, err);
		if (r)
			return r;
		count += redis_number(&v, 1);
		more = redis_item(&v, 2).len > 0;
	} while (more);
	*ret_count = count;
	return 0;
}

static int redis_move(struct store *s, struct ctx *ctx, struct wpath from, struct wpath to, struct store_cond cond,
		      struct store_cond to_cond, struct store_stat *ret_stat, struct err *err)
{
	struct redis *rd = redis_of(s);
	struct str args[REDIS_BEFORE + 9] = {
		[REDIS_BEFORE + 1] = from.s, to.s,
		redis_cond_kind(cond),       cond.version,
		redis_cond_kind(to_cond),    to_cond.version,
		redis_token(ctx->arena),     arena_printf(ctx->arena, "%zu", PATH_LEN_MAX),
	};
	struct resp_value v;
	int64_t mtime = 0;
	int r = redis_script(rd, ctx, REDIS_MOVE, true, args, REDIS_BEFORE + 9, REDIS_META_MAX, &v, err);

	if (r)
		return r;
	if (!redis_says(&v, "ok"))
		return redis_refused(&v, cond.kind == STORE_VERSION ? cond : to_cond, err);
	str_to_i64(redis_item(&v, 3), &mtime);
	*ret_stat = (struct store_stat){.kind = STORE_DIR};
	if (redis_item(&v, 1).len)
		*ret_stat = (struct store_stat){.kind = STORE_FILE,
						.size = redis_number(&v, 2),
						.mtime_ns = mtime,
						.version = redis_item(&v, 1)};
	return 0;
}

static int redis_copy(struct store *s, struct ctx *ctx, struct wpath from, struct wpath to, struct store_cond to_cond,
		      struct store_stat *ret_stat, struct err *err)
{
	struct redis *rd = redis_of(s);
	struct str version = redis_token(ctx->arena);
	int64_t mtime;
	struct str args[REDIS_BEFORE + 7] = {
		[REDIS_BEFORE + 1] = from.s,    to.s, redis_cond_kind(to_cond), to_cond.version, version,
		redis_time(ctx->arena, &mtime),
	};
	struct resp_value v;
	int r = redis_script(rd, ctx, REDIS_COPY, true, args, REDIS_BEFORE + 7, REDIS_META_MAX, &v, err);

	if (r)
		return r;
	if (!redis_says(&v, "ok"))
		return redis_refused(&v, to_cond, err);
	*ret_stat = (struct store_stat){
		.kind = STORE_FILE, .size = redis_number(&v, 1), .mtime_ns = mtime, .version = version};
	return 0;
}

/* Where a list goes on behind a cursor, as ZRANGEBYLEX wants it. */
static struct str list_from(struct arena *arena, struct str dir, struct str after, bool recursive)
{
	struct str first = dir.len ? arena_printf(arena, "%.*s/", STR_ARG(dir)) : STR("");

	if (after.len == 0 || str_cmp(after, first) < 0)
		return first.len ? arena_printf(arena, "[%.*s", STR_ARG(first)) : STR("-");
	if (!recursive && str_ends(after, STR("/")))
		return arena_printf(arena, "[%.*s0", STR_ARG(str_first(after, after.len - 1)));
	return arena_printf(arena, "(%.*s", STR_ARG(after));
}

/* The entries of one answer behind those of the page. */
static void take_entries(struct ctx *ctx, const struct resp_value *v, size_t limit, struct store_page *page)
{
	for (size_t i = 2; i + 3 < v->count && page->count < limit; i += 4) {
		struct str path = redis_item(v, i);
		bool dir = str_ends(path, STR("/"));
		struct store_entry *e = &page->entries[page->count];
		int64_t mtime = 0;
		struct err ignored;

		if (dir)
			path.len--;
		if (wpath_parse(path, &e->path, &ignored)) {
			page->skipped++;
			continue;
		}
		page->count++;
		str_to_i64(redis_item(v, i + 2), &mtime);
		e->stat = (struct store_stat){.kind = STORE_DIR};
		if (!dir)
			e->stat = (struct store_stat){.kind = STORE_FILE,
						      .size = redis_number(v, i + 1),
						      .mtime_ns = mtime,
						      .version = redis_item(v, i + 3)};
		page->next = dir ? arena_printf(ctx->arena, "%.*s/", STR_ARG(path)) : path;
	}
}

static int redis_list(struct store *s, struct ctx *ctx, struct wpath path, const struct store_list_req *req,
		      struct store_page *ret_page, struct err *err)
{
	struct redis *rd = redis_of(s);
	struct store_page page = {.next = req->after};
	bool more = true;

	while (more && page.count < req->limit) {
		size_t step = req->limit - page.count < LIST_STEP ? req->limit - page.count : LIST_STEP;
		struct str args[REDIS_BEFORE + 4] = {
			[REDIS_BEFORE] = path.s,
			req->recursive ? STR("1") : STR(""),
			list_from(ctx->arena, path.s, page.next, req->recursive),
			arena_printf(ctx->arena, "%zu", step),
		};
		size_t room = page.count + step;
		struct resp_value v;
		int r = redis_script(rd, ctx, REDIS_LIST, false, args, REDIS_BEFORE + 4, LIST_ANSWER, &v, err);

		if (r)
			return r;
		if (!redis_says(&v, "ok"))
			return redis_refused(&v, (struct store_cond){0}, err);
		page.entries = arena_grow(ctx->arena, page.entries, page.count * sizeof(*page.entries),
					  room * sizeof(*page.entries));
		more = redis_item(&v, 1).len > 0;
		take_entries(ctx, &v, room, &page);
		if (more && v.count < 6)
			return err_set(err, ERR_CORRUPT, "Redis says that a list goes on but gave nothing of it");
	}
	if (!more)
		page.next = STR_NONE;
	*ret_page = page;
	return 0;
}

static void redis_destroy(struct store *s)
{
	struct redis *rd = redis_of(s);

	if (rd->client)
		resp_client_destroy(rd->client);
	free((char *)rd->key_base.ptr);
	free((char *)rd->names.ptr);
	for (size_t i = 0; i < REDIS_SCRIPTS; i++)
		free((char *)rd->scripts[i].ptr);
	free(rd);
}

const struct store_ops redis_ops = {
	.name = "redis",
	.stat = redis_stat,
	.read = redis_read,
	.write = redis_write,
	.append = redis_append,
	.remove = redis_remove,
	.move = redis_move,
	.copy = redis_copy,
	.list = redis_list,
	.scan = store_scan_generic,
	.journal_read = redis_journal_read,
	.journal_add = redis_journal_add,
	.journal_cut = redis_journal_cut,
	.destroy = redis_destroy,
};
