/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workspaces in Redis, for many replicas. Every change is one script, so conditions hold against everybody and a change
 * with its journal entry is one round trip. docs/decisions/0022-redis.md has the layout of the keys and why.
 *
 * WATCH and MULTI were rejected: they need a trip to look and another to change, and repeat under contention.
 */
#include "store/backends/redis/redis.h"

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
	struct str args[] = {STR("GETRANGE"), redis_key(rd, ctx->arena, "f:", path.s), STR("0"), STR(REDIS_HEAD_END)};
	struct redis_file file;
	struct resp_value v;
	int r;

	*ret_stat = (struct store_stat){.kind = STORE_DIR};
	if (wpath_is_root(path))
		return 0;
	r = redis_command(rd, ctx, args, 4, REDIS_META_MAX, &v, err);
	if (r)
		return r;
	if (v.type != RESP_STR || v.s.len == 0) {
		r = redis_missing(rd, ctx, path, err);
		return r == -ERR_INVALID ? 0 : r;
	}
	if (!redis_head_parse(v.s, &file))
		return redis_no_head(err);
	*ret_stat = redis_head_stat(&file);
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
		return store_refuse(REFUSE_DIR, path.s, err);
	return store_not_found(err);
}

int redis_no_head(struct err *err)
{
	return err_set(err, ERR_CORRUPT,
		       "the Redis key for this path does not hold a Stead file; choose another prefix in the URL");
}

void redis_file_args(struct redis *rd, struct ctx *ctx, struct wpath path, struct store_cond cond,
		     struct redis_change *ch, bool write, struct str bytes, struct str *args)
{
	args += REDIS_BEFORE;
	args[1] = redis_key(rd, ctx->arena, "f:", path.s);
	args[2] = ch->simple_arg;
	args[3] = redis_cond_kind(cond);
	args[4] = ch->want_arg;
	args[5] = bytes;
	args[6] = ch->bytes_key;
	if (write)
		args[5] = ch->bytes_key.len ? STR("") : str_n(ch->head, REDIS_HEAD);
	ch->joined = write ? REDIS_BEFORE + 5 : 0;
}

/* How large the file is now; a script that answers with a number leaves that to the caller, which knows it. */
static uint64_t redis_size(const struct resp_value *v, const struct redis_bytes *bytes)
{
	return v->type == RESP_INT ? bytes->bytes.len : redis_number(v, 1);
}

/* A write or an append. */
static int change(struct redis *rd, struct ctx *ctx, enum redis_script script, struct wpath path,
		  const struct source *source, struct store_cond cond, struct store_stat *ret_stat, struct err *err)
{
	struct str version = redis_token(ctx->arena);
	int64_t mtime = clock_real_ns();
	struct redis_change ch;
	struct redis_bytes bytes;
	struct resp_value v;
	int r = redis_change_init(&ch, cond, version, mtime, err);

	if (r == 0)
		r = redis_take_in(rd, ctx, source, script == REDIS_APPEND, version, &bytes, err);
	if (r == 0) {
		struct str args[REDIS_BEFORE + 9];

		if (script == REDIS_WRITE) {
			redis_change_bytes(rd, ctx, &ch, version, bytes.bytes, bytes.size);
			redis_change_simple(&ch, cond);
		}
		redis_file_args(rd, ctx, path, cond, &ch, script == REDIS_WRITE, bytes.bytes, args);
		args[REDIS_BEFORE + 7] = bytes.staged;
		args[REDIS_BEFORE + 8] = str_n(ch.head, REDIS_HEAD);
		r = redis_script(rd, ctx, script, &ch, args, REDIS_BEFORE + (script == REDIS_WRITE ? 8 : 9),
				 REDIS_META_MAX, &v, err);
		if (r == 0 && !redis_says(&v, "ok"))
			r = redis_refused(&v, cond, err);
		if (r)
			redis_take_back(rd, ctx, &bytes);
	}
	if (r == 0)
		*ret_stat = (struct store_stat){
			.kind = STORE_FILE, .size = redis_size(&v, &bytes), .mtime_ns = mtime, .version = version};
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
	struct redis_change ch;
	uint64_t count = 0;
	bool more = false;
	int r = redis_change_init(&ch, cond, STR(""), clock_real_ns(), err);

	if (r)
		return r;
	do {
		struct str args[REDIS_BEFORE + 9] = {
			[REDIS_BEFORE + 1] = path.s, recursive ? STR("1") : STR(""),
			redis_cond_kind(cond),       ch.want_arg,
			redis_token(ctx->arena),     STR(REMOVE_STEP),
			more ? STR("1") : STR(""),   str_n(ch.head, REDIS_HEAD),
		};
		struct resp_value v;

		r = redis_script(rd, ctx, REDIS_REMOVE, &ch, args, REDIS_BEFORE + 9, REDIS_META_MAX, &v, err);

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
	struct redis_change ch, to_ch;
	struct str args[REDIS_BEFORE + 10] = {
		[REDIS_BEFORE + 1] = from.s, to.s,
		redis_cond_kind(cond),       STR(""),
		redis_cond_kind(to_cond),    STR(""),
		redis_token(ctx->arena),     arena_printf(ctx->arena, "%zu", PATH_LEN_MAX),
		str_n(ch.head, REDIS_HEAD),
	};
	struct redis_file file;
	struct resp_value v;
	int r = redis_change_init(&ch, cond, STR(""), clock_real_ns(), err);

	if (r == 0)
		r = redis_change_init(&to_ch, to_cond, STR(""), 0, err);
	args[REDIS_BEFORE + 4] = ch.want_arg;
	args[REDIS_BEFORE + 6] = to_ch.want_arg;
	if (r == 0)
		r = redis_script(rd, ctx, REDIS_MOVE, &ch, args, REDIS_BEFORE + 10, REDIS_META_MAX, &v, err);
	if (r)
		return r;
	if (!redis_says(&v, "ok"))
		return redis_refused(&v, cond.kind == STORE_VERSION ? cond : to_cond, err);
	*ret_stat = (struct store_stat){.kind = STORE_DIR};
	if (redis_head_parse(redis_item(&v, 1), &file))
		*ret_stat = redis_head_stat(&file);
	return 0;
}

static int redis_copy(struct store *s, struct ctx *ctx, struct wpath from, struct wpath to, struct store_cond to_cond,
		      struct store_stat *ret_stat, struct err *err)
{
	struct redis *rd = redis_of(s);
	struct str version = redis_token(ctx->arena);
	int64_t mtime = clock_real_ns();
	struct redis_change ch;
	struct str args[REDIS_BEFORE + 6] = {
		[REDIS_BEFORE + 1] = from.s, to.s, redis_cond_kind(to_cond), STR(""), str_n(ch.head, REDIS_HEAD),
	};
	struct resp_value v;
	int r = redis_change_init(&ch, to_cond, version, mtime, err);

	args[REDIS_BEFORE + 4] = ch.want_arg;
	if (r == 0)
		r = redis_script(rd, ctx, REDIS_COPY, &ch, args, REDIS_BEFORE + 6, REDIS_META_MAX, &v, err);
	if (r)
		return r;
	if (!redis_says(&v, "ok"))
		return redis_refused(&v, to_cond, err);
	*ret_stat = (struct store_stat){
		.kind = STORE_FILE, .size = redis_number(&v, 1), .mtime_ns = mtime, .version = version};
	return 0;
}

/* Where a list continues after a cursor, as ZRANGEBYLEX wants it. */
static struct str list_from(struct arena *arena, struct str dir, struct str after, bool recursive)
{
	struct str first = dir.len ? arena_printf(arena, "%.*s/", STR_ARG(dir)) : STR("");

	if (after.len == 0 || str_cmp(after, first) < 0)
		return first.len ? arena_printf(arena, "[%.*s", STR_ARG(first)) : STR("-");
	if (!recursive && str_ends(after, STR("/")))
		return arena_printf(arena, "[%.*s0", STR_ARG(str_first(after, after.len - 1)));
	return arena_printf(arena, "(%.*s", STR_ARG(after));
}

/* Adds the entries of one answer to the page. */
static void take_entries(struct ctx *ctx, const struct resp_value *v, size_t limit, struct store_page *page)
{
	for (size_t i = 2; i + 1 < v->count && page->count < limit; i += 2) {
		struct str path = redis_item(v, i);
		bool dir = str_ends(path, STR("/"));
		struct store_entry *e = &page->entries[page->count];
		struct redis_file at;
		struct err ignored;

		if (dir)
			path.len--;
		if (wpath_parse(path, &e->path, &ignored)) {
			page->skipped++;
			continue;
		}
		page->count++;
		e->stat = (struct store_stat){.kind = STORE_DIR};
		if (!dir)
			e->stat = (struct store_stat){.kind = STORE_FILE};
		if (!dir && redis_head_parse(redis_item(v, i + 1), &at))
			e->stat = redis_head_stat(&at);
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
		int r = redis_script(rd, ctx, REDIS_LIST, NULL, args, REDIS_BEFORE + 4, LIST_ANSWER, &v, err);

		if (r)
			return r;
		if (!redis_says(&v, "ok"))
			return redis_refused(&v, (struct store_cond){0}, err);
		page.entries = arena_grow(ctx->arena, page.entries, page.count * sizeof(*page.entries),
					  room * sizeof(*page.entries));
		more = redis_item(&v, 1).len > 0;
		take_entries(ctx, &v, room, &page);
		if (more && v.count < 4)
			return err_set(err, ERR_CORRUPT, "Redis says that a list continues but returned no more of it");
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
	free((char *)rd->journals.ptr);
	for (size_t i = 0; i < REDIS_SCRIPTS; i++)
		free((char *)rd->scripts[i].ptr);
	free(rd);
}

const struct store_ops redis_ops = {
	.name = "redis",
	.can = STORE_JOURNAL | STORE_ONE_STEP | STORE_WRITE_STEP | STORE_GROUP_STEP,
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
