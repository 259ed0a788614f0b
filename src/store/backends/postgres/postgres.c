/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files as rows of a PostgreSQL table. Every operation is one statement, most of them a function in the database
 * (postgres/functions.sql), so it is one round trip and one transaction, and its conditions hold against every other
 * client. Only what is too large for one statement takes more: it is sent and read in chunks, within one transaction,
 * so that nobody ever sees a part of it and nothing is left behind when it breaks off.
 *
 * Reads, lists and the rest are here; writes are in postgres_write.c, journals in postgres_journal.c.
 */
#include "store/backends/postgres/postgres.h"

#include "base/clock.h"
#include "base/limits.h"
#include "store/list_stream.h"
#include "store/stores.h"

void pg_arg_cond(struct pg_args *args, struct store_cond cond)
{
	pg_arg_i32(args, sql_cond_kind(cond));
	/* No file has a version that is not UTF-8, and the server would not take it. */
	pg_arg_str(args, cond.kind == STORE_VERSION && utf8_valid(cond.version) &&
					 (!cond.version.len || !memchr(cond.version.ptr, '\0', cond.version.len))
				 ? cond.version
				 : STR(""));
}

/* A range of up to so many bytes is likely to be a piece of a file that is in chunks: one statement reads either. */
#define PIECE_MAX (64 * KIB)

/* The first columns of PG_STAT and PG_READ: version, size, mtime, and whether it is a directory. */
static int row_stat(struct arena *arena, const struct pg_result *row, struct store_stat *ret, struct err *err)
{
	if (pg_null(row, 0, 0)) {
		if (!pg_bool(row, 0, 3))
			return store_not_found(err);
		*ret = (struct store_stat){.kind = STORE_DIR};
		return 0;
	}
	*ret = (struct store_stat){.kind = STORE_FILE,
				   .size = (uint64_t)pg_i64(row, 0, 1),
				   .mtime_ns = pg_i64(row, 0, 2),
				   .version = arena_str(arena, pg_str(row, 0, 0))};
	return 0;
}

static int postgres_stat(struct store *s, struct ctx *ctx, struct wpath path, struct store_stat *ret_stat,
			 struct err *err)
{
	PG_RESULT_SCOPE struct pg_result *res = NULL;
	struct pg_args args = {0};
	int r;

	if (wpath_is_root(path)) {
		*ret_stat = (struct store_stat){.kind = STORE_DIR};
		return 0;
	}
	pg_arg_str(&args, path.s);
	r = pg_call(postgres_of(s)->pool, ctx, PG_STAT, &args, -1, &res, err);
	return r ? r : row_stat(ctx->arena, res, ret_stat, err);
}

/* One read on its way to the sink. */
struct reading {
	struct ctx *ctx;
	struct wpath path;
	int64_t from, end; /* of the range, end not beyond what a number holds */
	const struct sink *sink;
	struct store_stat stat;
	char *direct; /* from the sink's reserve */
	uint64_t want, got;
	bool begun, pushed; /* the sink has seen something: no second try */
};

static int take_row(struct reading *rd, const struct pg_result *row, struct err *err)
{
	struct str part = pg_str(row, 0, 4);

	if (!rd->begun) {
		int r = row_stat(rd->ctx->arena, row, &rd->stat, err);
		int64_t end;

		if (r == 0 && rd->stat.kind == STORE_DIR)
			r = store_refuse(REFUSE_DIR, rd->path.s, err);
		if (r)
			return r;
		end = (int64_t)rd->stat.size < rd->end ? (int64_t)rd->stat.size : rd->end;
		rd->want = end > rd->from ? (uint64_t)(end - rd->from) : 0;
		rd->begun = true;
	}
	if (part.len == 0)
		return 0;
	if (rd->got + part.len > rd->want)
		return err_set(err, ERR_CORRUPT, "the database has more bytes of it than its size says");
	if (rd->got == 0 && rd->sink->reserve)
		rd->direct = rd->sink->reserve(rd->sink->arg, (size_t)rd->want);
	rd->got += part.len;
	if (rd->direct) {
		memcpy(rd->direct + rd->got - part.len, part.ptr, part.len);
		return rd->got == rd->want ? rd->sink->push(rd->sink->arg, rd->direct, (size_t)rd->want, err) : 0;
	}
	return rd->sink->push(rd->sink->arg, part.ptr, part.len, err);
}

/* Reads a file whose bytes are in its row whole; of any other, only its stat. */
static int read_row(struct postgres *p, struct pg_link *l, struct reading *rd, struct err *err)
{
	PG_RESULT_SCOPE struct pg_result *res = NULL;
	struct pg_args args = {0};
	int r;

	pg_arg_str(&args, rd->path.s);
	pg_arg_i64(&args, rd->from);
	pg_arg_i64(&args, rd->end);
	r = pg_exec(l, rd->ctx, pg_pool_stmt(p->pool, PG_READ), &args, &res, err);
	if (r == 0) {
		r = take_row(rd, res, err);
		rd->pushed |= rd->got > 0;
	}
	return r;
}

/* All chunks in the range, row by row. `max`: a larger part of a file gives no bytes. */
static int read_rows(struct postgres *p, struct pg_link *l, struct reading *rd, int64_t max, struct err *err)
{
	struct pg_args args = {0};
	int r;

	rd->begun = false;
	pg_arg_str(&args, rd->path.s);
	pg_arg_i64(&args, rd->from);
	pg_arg_i64(&args, rd->end);
	pg_arg_i64(&args, max);
	r = pg_begin(l, rd->ctx, pg_pool_stmt(p->pool, PG_READ_CHUNKS), &args, err);
	while (r == 0) {
		struct pg_result *row;

		r = pg_next(l, rd->ctx, &row, err);
		if (r || !row)
			break;
		r = ctx_check(rd->ctx, err);
		if (r == 0) {
			r = take_row(rd, row, err);
			rd->pushed |= rd->got > 0;
		}
		pg_result_free(row);
		if (r && rd->want > PG_INLINE_MAX)
			pg_abandon(l);
		while (r && !l->base.broken) { /* to the end of the answer */
			struct err ignored;

			if (pg_next(l, rd->ctx, &row, &ignored) || !row)
				break;
			pg_result_free(row);
		}
	}
	return r;
}

/* Too large for one answer: again, in a transaction without a time-out of its statement. It is one statement too. */
static int read_large(struct postgres *p, struct pg_link *l, struct reading *rd, struct err *err)
{
	int r = pg_exec_text(l, rd->ctx,
			     "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = 0", NULL,
			     err);

	if (r == 0)
		r = read_rows(p, l, rd, INT64_MAX, err);
	if (r == 0)
		r = pg_exec_text(l, rd->ctx, "COMMIT", NULL, err);
	else
		pg_abandon(l);
	return r;
}

static int postgres_read(struct store *s, struct ctx *ctx, struct wpath path, struct store_range range,
			 const struct sink *sink, struct store_stat *ret_stat, struct err *err)
{
	struct postgres *p = postgres_of(s);
	uint64_t top = (uint64_t)1 << 62, from = range.offset < top ? range.offset : top;
	struct reading rd = {.ctx = ctx, .path = path, .sink = sink, .from = (int64_t)from};
	int r;

	rd.end = (int64_t)(range.length < top - from ? from + range.length : top);
	for (unsigned tries = 0;; tries++) {
		struct pg_link *l;

		r = pg_take(p->pool, ctx, &l, err);
		if (r == 0) {
			rd.begun = false;
			r = range.length > PIECE_MAX ? read_row(p, l, &rd, err) : 0;
			if (r == 0 && (range.length <= PIECE_MAX || (rd.want && !rd.got && rd.want <= PG_READ_MAX)))
				r = read_rows(p, l, &rd, PG_READ_MAX, err);
			if (r == 0 && rd.want && !rd.got)
				r = read_large(p, l, &rd, err);
			pg_give(p->pool, l);
		}
		if (r == 0 || rd.pushed || !sql_try_again(ctx, tries, err))
			break;
	}
	if (r == 0 && rd.got != rd.want)
		r = err_set(err, ERR_CORRUPT, "the database has %llu of %llu bytes of it", (unsigned long long)rd.got,
			    (unsigned long long)rd.want);
	if (r == 0)
		*ret_stat = rd.stat;
	return r;
}

static int postgres_remove(struct store *s, struct ctx *ctx, struct wpath path, bool recursive, struct store_cond cond,
			   uint64_t *ret_count, struct err *err)
{
	PG_RESULT_SCOPE struct pg_result *res = NULL;
	struct pg_args args = {0};
	enum sql_outcome outcome;
	int r;

	pg_arg_str(&args, path.s);
	pg_arg_bool(&args, recursive);
	pg_arg_cond(&args, cond);
	pg_arg_i64(&args, sql_token_new());
	pg_arg_bool(&args, false);
	r = pg_call(postgres_of(s)->pool, ctx, PG_REMOVE, &args, args.n - 1, &res, err);
	if (r)
		return r;
	outcome = (enum sql_outcome)pg_i64(res, 0, 0);
	if (outcome == SQL_IS_DIR)
		return store_refuse(REFUSE_NOT_RECURSIVE, path.s, err);
	r = sql_outcome_check(outcome, pg_str(res, 0, 1), path.s, cond, err);
	if (r == 0)
		*ret_count = (uint64_t)pg_i64(res, 0, 2);
	return r;
}

static int postgres_move(struct store *s, struct ctx *ctx, struct wpath from, struct wpath to, struct store_cond cond,
			 struct store_cond to_cond, struct store_stat *ret_stat, struct err *err)
{
	PG_RESULT_SCOPE struct pg_result *res = NULL;
	struct pg_args args = {0};
	enum sql_outcome outcome;
	struct str about = to.s;
	int r;

	pg_arg_str(&args, from.s);
	pg_arg_str(&args, to.s);
	pg_arg_cond(&args, cond);
	pg_arg_cond(&args, to_cond);
	pg_arg_i64(&args, sql_token_new());
	pg_arg_bool(&args, false);
	r = pg_call(postgres_of(s)->pool, ctx, PG_MOVE, &args, args.n - 1, &res, err);
	if (r)
		return r;
	outcome = (enum sql_outcome)pg_i64(res, 0, 0);
	if (outcome == SQL_DIR_COND)
		about = from.s;
	r = sql_outcome_check(outcome, pg_str(res, 0, 1), about, cond.kind == STORE_VERSION ? cond : to_cond, err);
	if (r)
		return r;
	*ret_stat = (struct store_stat){.kind = STORE_DIR};
	if (!pg_null(res, 0, 4))
		*ret_stat = (struct store_stat){.kind = STORE_FILE,
						.size = (uint64_t)pg_i64(res, 0, 2),
						.mtime_ns = pg_i64(res, 0, 3),
						.version = arena_str(ctx->arena, pg_str(res, 0, 4))};
	return 0;
}

static int postgres_copy(struct store *s, struct ctx *ctx, struct wpath from, struct wpath to,
			 struct store_cond to_cond, struct store_stat *ret_stat, struct err *err)
{
	PG_RESULT_SCOPE struct pg_result *res = NULL;
	struct str version = sql_version_new(ctx->arena);
	struct pg_args args = {0};
	struct str detail;
	int r;

	pg_arg_str(&args, from.s);
	pg_arg_str(&args, to.s);
	pg_arg_cond(&args, to_cond);
	pg_arg_str(&args, version);
	pg_arg_i64(&args, clock_real_ns());
	pg_arg_i64(&args, sql_token_new());
	pg_arg_bool(&args, false);
	r = pg_call(postgres_of(s)->pool, ctx, PG_COPY, &args, args.n - 1, &res, err);
	if (r)
		return r;
	detail = pg_str(res, 0, 1);
	r = sql_outcome_check((enum sql_outcome)pg_i64(res, 0, 0), detail, detail.len ? detail : to.s, to_cond, err);
	if (r == 0)
		*ret_stat = (struct store_stat){.kind = STORE_FILE,
						.size = (uint64_t)pg_i64(res, 0, 2),
						.mtime_ns = pg_i64(res, 0, 3),
						.version = version};
	return r;
}

static int list_page(struct arena *arena, struct wpath dir, size_t limit, const struct pg_result *res,
		     struct store_page *ret_page, struct err *err)
{
	struct page_builder b = {.arena = arena, .limit = limit};

	if (pg_i64(res, 0, 0) == -1)
		return store_not_found(err);
	if (pg_i64(res, 0, 0) == -2)
		return store_refuse(REFUSE_FILE, dir.s, err);
	for (int i = 0; pg_i64(res, 0, 0) > 0 && i < pg_rows(res); i++) {
		struct store_entry e = {.path.s = arena_str(arena, pg_str(res, i, 1))};

		if (pg_i64(res, i, 0) == 2)
			e.stat.kind = STORE_DIR;
		else
			e.stat = (struct store_stat){.kind = STORE_FILE,
						     .size = (uint64_t)pg_i64(res, i, 2),
						     .mtime_ns = pg_i64(res, i, 3),
						     .version = arena_str(arena, pg_str(res, i, 4))};
		page_builder_add(&b, &e);
	}
	page_builder_finish(&b, ret_page);
	return 0;
}

static int postgres_list(struct store *s, struct ctx *ctx, struct wpath path, const struct store_list_req *req,
			 struct store_page *ret_page, struct err *err)
{
	PG_RESULT_SCOPE struct pg_result *res = NULL;
	struct pg_args args = {0};
	struct str seek;
	int r = sql_list_seek(ctx->arena, path, req, &seek, err);

	if (r)
		return r;
	pg_arg_str(&args, path.s);
	pg_arg_str(&args, seek);
	pg_arg_bool(&args, req->recursive);
	pg_arg_i32(&args, (int32_t)req->limit + 1);
	r = pg_call(postgres_of(s)->pool, ctx, PG_LIST, &args, -1, &res, err);
	return r ? r : list_page(ctx->arena, path, req->limit, res, ret_page, err);
}

static void postgres_destroy(struct store *s)
{
	struct postgres *p = postgres_of(s);

	pg_pool_destroy(p->pool);
	free(p);
}

static const struct store_ops postgres_ops = {
	.name = "PostgreSQL",
	.can = STORE_JOURNAL | STORE_ONE_STEP | STORE_WRITE_STEP | STORE_GROUP_STEP,
	.stat = postgres_stat,
	.read = postgres_read,
	.write = postgres_write,
	.append = postgres_append,
	.remove = postgres_remove,
	.move = postgres_move,
	.copy = postgres_copy,
	.list = postgres_list,
	.scan = store_scan_generic,
	.journal_read = postgres_journal_read,
	.journal_add = postgres_journal_add,
	.journal_cut = postgres_journal_cut,
	.destroy = postgres_destroy,
};

/* The schema as this program needs it, and old receipts gone. */
static int prepare_database(const struct pg_config *config, const struct ctx *limits, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena, .deadline_ns = limits->deadline_ns, .cancel = limits->cancel};
	struct pg_link *l;
	char *sweep;
	int r = pg_open(config, &ctx, &l, err);

	if (r)
		return r;
	r = pg_migrate(l, &ctx, config, err);
	if (r == 0) {
		sweep = pg_in_schema(config, "DELETE FROM @.stead_receipts WHERE made < now() - interval '1 hour'");
		r = pg_exec_text(l, &ctx, sweep, NULL, err);
		free(sweep);
	}
	pg_close(l);
	return r;
}

int store_postgres_open(struct str url, const struct env *env, const struct ctx *limits, struct store **ret_store,
			struct err *err)
{
	struct pg_config config;
	struct wpath prefix;
	struct postgres *p;
	int r = pg_config_parse(url, env, &config, err);

	if (r)
		return r;
	r = prepare_database(&config, limits, err);
	if (r == 0)
		r = wpath_parse(str_of(config.prefix), &prefix, err);
	if (r) {
		pg_config_release(&config);
		return err_prefix(err, "open the store");
	}
	p = xcalloc(1, sizeof(*p));
	p->base.ops = &postgres_ops;
	p->pool = pg_pool_new(config);
	*ret_store = wpath_is_root(prefix) ? &p->base : store_prefix_new(&p->base, prefix);
	return 0;
}

int store_postgres_schema_version(void)
{
	return PG_SCHEMA_VERSION;
}

uint64_t store_postgres_trips(struct store *s)
{
	return pg_pool_trips(postgres_of(s)->pool);
}
