/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Journals: rows of a table, one statement per operation. Adding an entry and changing a file is one function, so both
 * or neither happen, in one round trip; one that was overtaken gets what it missed in the same answer.
 *
 * Whoever waits for an entry holds an advisory lock of the journal shared, and listens; whoever adds one tries to take
 * that lock exclusively, and notifies only when it cannot. Without that, every commit of every journal would pass
 * through the one lock of the server's notification queue. Nothing is missed: an adder that found nobody holds the lock
 * until its commit, so whoever begins to wait before that gets the lock after it, and then sees the entry.
 */
#include <endian.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/limits.h"
#include "store/backends/postgres/postgres.h"

/* Missed entries that the answer to an overtaken add brings along. */
#define NEWS_MAX (1 * MIB)
/* How often a waiter looks that found no connection to wait on. */
#define LOOK_EVERY_NS 200000000

static int64_t wake_key(const struct postgres *p, struct wpath journal)
{
	uint64_t schema = hash_u64(str_of(pg_pool_config(p->pool)->schema), 0);

	return (int64_t)(hash_u64(journal.s, schema) >> 1);
}

/* Rows [from …) have number and bytes in the columns `col` and `col` + 1. */
static void take_entries(struct arena *arena, const struct pg_result *res, int from, int col, struct journal_page *page)
{
	int rows = pg_rows(res);

	page->entries = ARENA_ARRAY(arena, struct journal_entry, (size_t)(rows > from ? rows - from : 1));
	for (int i = from; i < rows; i++)
		if (!pg_null(res, i, col))
			page->entries[page->count++] = (struct journal_entry){
				(uint64_t)pg_i64(res, i, col), arena_str(arena, pg_str(res, i, col + 1))};
}

static void read_args(struct wpath journal, const struct journal_read *req, struct pg_args *ret)
{
	*ret = (struct pg_args){0};
	pg_arg_str(ret, journal.s);
	pg_arg_i64(ret, req->after < INT64_MAX ? (int64_t)req->after : INT64_MAX - 1);
	pg_arg_i64(ret, req->max_bytes < INT64_MAX ? (int64_t)req->max_bytes : INT64_MAX);
}

static int take_page(struct arena *arena, const struct journal_read *req, const struct pg_result *res,
		     struct journal_page *ret, struct err *err)
{
	struct journal_page page = {.first = 1};

	if (pg_rows(res)) {
		page.first = (uint64_t)pg_i64(res, 0, 0);
		page.last = (uint64_t)pg_i64(res, 0, 1);
		take_entries(arena, res, 0, 2, &page);
	}
	*ret = page;
	if (req->after + 1 < page.first)
		return err_set(err, ERR_NOT_FOUND, "entries up to %llu were removed; begin at %llu",
			       (unsigned long long)page.first - 1, (unsigned long long)page.first);
	return 0;
}

static int read_once(struct postgres *p, struct ctx *ctx, struct wpath journal, const struct journal_read *req,
		     struct journal_page *ret_page, struct err *err)
{
	PG_RESULT_SCOPE struct pg_result *res = NULL;
	struct pg_args args;
	int r;

	read_args(journal, req, &args);
	r = pg_call(p->pool, ctx, PG_JOURNAL_READ, &args, -1, &res, err);
	return r ? r : take_page(ctx->arena, req, res, ret_page, err);
}

/* On a connection that listens; returns with the page when something came or the time is up. */
static int listen_and_read(struct postgres *p, struct pg_link *l, struct ctx *ctx, struct wpath journal,
			   const struct journal_read *req, int64_t until, struct journal_page *ret_page,
			   struct err *err)
{
	int64_t key = wake_key(p, journal);
	struct pg_args args;
	char sql[160];
	int r;

	snprintf(sql, sizeof(sql), "SELECT pg_advisory_lock_shared(%lld); LISTEN stead_%lld", (long long)key,
		 (long long)key);
	r = pg_exec_text(l, ctx, sql, NULL, err);
	while (r == 0) {
		PG_RESULT_SCOPE struct pg_result *res = NULL;

		read_args(journal, req, &args);
		r = pg_exec(l, ctx, pg_pool_stmt(p->pool, PG_JOURNAL_READ), &args, &res, err);
		if (r == 0)
			r = take_page(ctx->arena, req, res, ret_page, err);
		if (r || ret_page->count)
			break;
		r = pg_wait_notify(l, ctx, until, err);
		if (r == -ERR_TIMEOUT && clock_monotonic_ns() >= until) {
			r = 0;
			break;
		}
	}
	if (r == 0)
		r = pg_exec_text(l, ctx, "UNLISTEN *; SELECT pg_advisory_unlock_all()", NULL, err);
	else
		pg_abandon(l); /* the lock goes with the connection */
	return r;
}

static int wait_by_looking(struct postgres *p, struct ctx *ctx, struct wpath journal, const struct journal_read *req,
			   int64_t until, struct journal_page *ret_page, struct err *err)
{
	int r = 0;

	while (r == 0 && ret_page->count == 0 && clock_monotonic_ns() < until) {
		int64_t left = until - clock_monotonic_ns();

		sql_pause(ctx, left < LOOK_EVERY_NS ? left : LOOK_EVERY_NS);
		r = ctx_check(ctx, err);
		if (r == 0)
			r = read_once(p, ctx, journal, req, ret_page, err);
	}
	return r;
}

int postgres_journal_read(struct store *s, struct ctx *ctx, struct wpath journal, const struct journal_read *req,
			  struct journal_page *ret_page, struct err *err)
{
	struct postgres *p = postgres_of(s);
	int64_t now = clock_monotonic_ns();
	int64_t until = req->wait_ns > INT64_MAX - now ? INT64_MAX : now + req->wait_ns;
	struct pg_link *l;
	int r = read_once(p, ctx, journal, req, ret_page, err);

	if (r || ret_page->count || req->wait_ns <= 0)
		return r;
	if (ctx->deadline_ns && ctx->deadline_ns < until)
		until = ctx->deadline_ns;
	r = pg_take_waiting(p->pool, ctx, &l, err);
	if (r)
		return r;
	if (!l)
		return wait_by_looking(p, ctx, journal, req, until, ret_page, err);
	r = listen_and_read(p, l, ctx, journal, req, until, ret_page, err);
	pg_give_waiting(p->pool, l);
	/* A connection that broke while waiting has shown nothing; looking continues. */
	if (r == -ERR_UNAVAILABLE && err->retryable)
		r = wait_by_looking(p, ctx, journal, req, until, ret_page, err);
	return r;
}

static void add_args(const struct postgres *p, struct wpath journal, struct wpath to, struct store_cond cond,
		     const struct journal_add *add, struct pg_args *ret)
{
	bool bytes = add->change == JOURNAL_WRITE || add->change == JOURNAL_APPEND;

	*ret = (struct pg_args){0};
	pg_arg_str(ret, journal.s);
	pg_arg_i64(ret, (int64_t)add->after);
	pg_arg_str(ret, add->bytes);
	pg_arg_i32(ret, (int32_t)add->change);
	pg_arg_str(ret, to.s);
	pg_arg_cond(ret, cond);
	pg_arg_str(ret, add->version);
	pg_arg_i64(ret, clock_real_ns());
	if (bytes)
		pg_arg_str(ret, add->content);
	else
		pg_arg_null(ret);
	pg_arg_i64(ret, sql_token_new());
	pg_arg_i64(ret, (int64_t)NEWS_MAX);
	pg_arg_i64(ret, wake_key(p, journal));
	pg_arg_str(ret, add->from.s);
	pg_arg_str(ret, add->from_cond.version);
	pg_arg_bool(ret, false);
}

/* --- groups --- */

enum { OID_BYTES = 17, OID_INT = 23, OID_TEXT = 25 };

static void add_u32(struct buf *out, uint32_t v)
{
	uint32_t be = htobe32(v);

	buf_add(out, str_n((const char *)&be, sizeof(be)));
}

/* The beginning of an array in the form in which the server takes it: one dimension, `count` values from 1 on. */
static void array_begin(struct buf *out, struct arena *arena, uint32_t oid, size_t count)
{
	buf_init(out, arena, JOURNAL_GROUP_BYTES + JOURNAL_GROUP_MAX * (size_t)PATH_LEN_MAX * 2);
	add_u32(out, 1);
	add_u32(out, 0);
	add_u32(out, oid);
	add_u32(out, (uint32_t)count);
	add_u32(out, 1);
}

static void array_str(struct buf *out, struct str value)
{
	add_u32(out, (uint32_t)value.len);
	buf_add(out, value.len ? value : STR(""));
}

static void array_int(struct buf *out, uint32_t value)
{
	add_u32(out, sizeof(value));
	add_u32(out, value);
}

static struct str wanted(struct store_cond cond)
{
	return cond.kind == STORE_VERSION ? cond.version : STR("");
}

static void add_arrays(struct arena *arena, const struct journal_add *add, struct pg_args *ret)
{
	static const uint32_t oids[] = {OID_INT, OID_TEXT, OID_INT, OID_TEXT, OID_TEXT, OID_BYTES, OID_TEXT, OID_TEXT};
	struct buf arrays[COUNT(oids)];

	for (size_t k = 0; k < COUNT(oids); k++)
		array_begin(&arrays[k], arena, oids[k], add->item_count);
	for (size_t i = 0; i < add->item_count; i++) {
		const struct journal_item *item = &add->items[i];

		array_int(&arrays[0], item->change);
		array_str(&arrays[1], item->path.s);
		array_int(&arrays[2], (uint32_t)sql_cond_kind(item->cond));
		array_str(&arrays[3], wanted(item->cond));
		array_str(&arrays[4], item->version);
		array_str(&arrays[5], item->content);
		array_str(&arrays[6], item->from.s);
		array_str(&arrays[7], wanted(item->from_cond));
	}
	for (size_t k = 0; k < COUNT(oids); k++)
		pg_arg_str(ret, buf_str(&arrays[k]));
}

static int take_refusal(struct ctx *ctx, const struct pg_result *res, struct wpath path, struct store_cond cond,
			struct journal_added *ret_added, struct err *err)
{
	enum sql_outcome outcome = (enum sql_outcome)pg_i64(res, 0, 0);

	if (outcome == SQL_OVERTAKEN) {
		ret_added->overtaken = true;
		ret_added->news.first = (uint64_t)pg_i64(res, 0, 4);
		ret_added->news.last = (uint64_t)pg_i64(res, 0, 5);
		take_entries(ctx->arena, res, 1, 6, &ret_added->news);
	}
	return sql_outcome_check(outcome, pg_str(res, 0, 1), path.s, cond, err);
}

static int add_group(struct postgres *p, struct ctx *ctx, struct wpath journal, const struct journal_add *add,
		     struct journal_added *ret_added, struct err *err)
{
	PG_RESULT_SCOPE struct pg_result *res = NULL;
	struct pg_args args = {0};
	const struct journal_item *item;
	int r;

	pg_arg_str(&args, journal.s);
	pg_arg_i64(&args, (int64_t)add->after);
	pg_arg_str(&args, add->bytes);
	add_arrays(ctx->arena, add, &args);
	pg_arg_i64(&args, clock_real_ns());
	pg_arg_i64(&args, sql_token_new());
	pg_arg_i64(&args, (int64_t)NEWS_MAX);
	pg_arg_i64(&args, wake_key(p, journal));
	pg_arg_bool(&args, false);
	r = pg_call(p->pool, ctx, PG_JOURNAL_GROUP, &args, args.n - 1, &res, err);
	if (r)
		return r;
	ret_added->failed = (size_t)pg_i64(res, 0, 6);
	if (ret_added->failed >= add->item_count)
		ret_added->failed = 0;
	item = &add->items[ret_added->failed];
	return take_refusal(ctx, res, item->path, item->cond, ret_added, err);
}

int postgres_journal_add(struct store *s, struct ctx *ctx, struct wpath journal, struct wpath to,
			 struct store_cond cond, const struct journal_add *add, struct journal_added *ret_added,
			 struct err *err)
{
	PG_RESULT_SCOPE struct pg_result *res = NULL;
	struct pg_args args;
	int r;

	if (add->change == JOURNAL_GROUP)
		return add_group(postgres_of(s), ctx, journal, add, ret_added, err);
	if (add->content.len > JOURNAL_ENTRY_MAX)
		return err_set(err, ERR_TOO_LARGE,
			       "the file has %zu bytes; at most %zu can change in one step with the journal",
			       add->content.len, JOURNAL_ENTRY_MAX);
	add_args(postgres_of(s), journal, to, cond, add, &args);
	r = pg_call(postgres_of(s)->pool, ctx, PG_JOURNAL_ADD, &args, args.n - 1, &res, err);
	if (r)
		return r;
	r = take_refusal(ctx, res, to, add->change == JOURNAL_MOVE ? add->from_cond : cond, ret_added, err);
	if (r == 0 && add->change != JOURNAL_ALONE && add->change != JOURNAL_REMOVE)
		ret_added->stat = (struct store_stat){.kind = STORE_FILE,
						      .size = (uint64_t)pg_i64(res, 0, 2),
						      .mtime_ns = pg_i64(res, 0, 3),
						      .version = arena_str(ctx->arena, add->version)};
	return r;
}

int postgres_journal_cut(struct store *s, struct ctx *ctx, struct wpath journal, uint64_t before, struct err *err)
{
	PG_RESULT_SCOPE struct pg_result *res = NULL;
	struct pg_args args = {0};

	pg_arg_str(&args, journal.s);
	pg_arg_i64(&args, before < INT64_MAX ? (int64_t)before : INT64_MAX);
	return pg_call(postgres_of(s)->pool, ctx, PG_JOURNAL_CUT, &args, -1, &res, err);
}
