/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files as rows of a table in MariaDB or MySQL. Every operation is one round trip: a SELECT, or a transaction around a
 * procedure in the database (procedures.sql), so its conditions hold against every other client. Only what is too large
 * for one statement takes more: it is sent in chunks within one transaction, so that nobody ever sees a part of it and
 * nothing is left behind when it breaks off.
 *
 * Reads, lists and the rest are here; writes are in mysql_write.c, journals in mysql_journal.c.
 */
#include "store/backends/mysql/mysql.h"

#include "base/clock.h"
#include "base/limits.h"
#include "store/list_stream.h"
#include "store/stores.h"

void my_sql_cond(struct my_sql *sql, struct store_cond cond)
{
	my_sql_i64(sql, sql_cond_kind(cond));
	my_sql_add(sql, ", ");
	/* no file has a version of more bytes */
	my_sql_str(sql, cond.kind == STORE_VERSION && cond.version.len <= 320 ? cond.version : STR(""));
}

/* The first columns of a stat and of a read: version, size, mtime, and whether it is a directory. */
static int row_stat(struct arena *arena, const struct my_result *row, struct store_stat *ret, struct err *err)
{
	if (my_null(row, 0, 0)) {
		if (!my_i64(row, 0, 3))
			return store_not_found(err);
		*ret = (struct store_stat){.kind = STORE_DIR};
		return 0;
	}
	*ret = (struct store_stat){.kind = STORE_FILE,
				   .size = (uint64_t)my_i64(row, 0, 1),
				   .mtime_ns = my_i64(row, 0, 2),
				   .version = arena_str(arena, my_str(row, 0, 0))};
	return 0;
}

/* "SELECT" of these columns for a path; `more` is what follows them. */
static void sql_stat(struct my_sql *sql, struct wpath path, const char *more)
{
	my_sql_init(sql, "SELECT f.version, f.size, f.mtime, IF(f.path IS NULL, EXISTS (SELECT 1 FROM stead_files d "
			 "WHERE d.path > CONCAT(p.path, '/') AND d.path < CONCAT(p.path, '0')), 0)");
	my_sql_add(sql, more);
	my_sql_add(sql, " FROM (SELECT ");
	my_sql_str(sql, path.s);
	my_sql_add(sql, " AS path) p LEFT JOIN stead_files f ON f.path = p.path");
}

static int mysql_stat(struct store *s, struct ctx *ctx, struct wpath path, struct store_stat *ret_stat, struct err *err)
{
	MY_RESULT_SCOPE struct my_result *res = NULL;
	MY_SQL_SCOPE struct my_sql sql = {0};
	int r;

	if (wpath_is_root(path)) {
		*ret_stat = (struct store_stat){.kind = STORE_DIR};
		return 0;
	}
	sql_stat(&sql, path, "");
	r = my_call(mysql_of(s)->pool, ctx, &sql, &res, err);
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
	int refused;        /* there is no such file: the error has been set */
	bool begun, pushed; /* the sink has seen something: no second try */
};

static int begin_reading(struct reading *rd, const struct my_result *row, struct err *err)
{
	int r = row_stat(rd->ctx->arena, row, &rd->stat, err);
	int64_t end;

	if (r == 0 && rd->stat.kind == STORE_DIR)
		r = store_refuse(REFUSE_DIR, rd->path.s, err);
	if (r)
		return r;
	end = (int64_t)rd->stat.size < rd->end ? (int64_t)rd->stat.size : rd->end;
	rd->want = end > rd->from ? (uint64_t)(end - rd->from) : 0;
	rd->begun = true;
	return 0;
}

static int take_row(void *arg, const struct my_result *row, struct err *err)
{
	struct reading *rd = arg;
	struct str part = my_str(row, 0, 4);
	int r = rd->begun ? 0 : begin_reading(rd, row, err);

	if (r == -ERR_NOT_FOUND || r == -ERR_INVALID) { /* the only row: the answer is read to its end */
		rd->refused = r;
		return 0;
	}
	if (r || part.len == 0)
		return r;
	if (rd->got + part.len > rd->want)
		return err_set(err, ERR_CORRUPT, "the database has more bytes of it than its size says");
	if (rd->got == 0 && rd->sink->reserve)
		rd->direct = rd->sink->reserve(rd->sink->arg, (size_t)rd->want);
	rd->got += part.len;
	rd->pushed = true;
	if (rd->direct) {
		memcpy(rd->direct + rd->got - part.len, part.ptr, part.len);
		return rd->got == rd->want ? rd->sink->push(rd->sink->arg, rd->direct, (size_t)rd->want, err) : 0;
	}
	return rd->sink->push(rd->sink->arg, part.ptr, part.len, err);
}

/* One statement for files of any size: a row, or a row for each chunk in the range. */
static void sql_read(struct my_sql *sql, const struct reading *rd)
{
	char more[400];

	snprintf(more, sizeof more,
		 ", IF(f.gen IS NULL, SUBSTRING(f.content, %lld, %lld), "
		 "SUBSTRING(c.bytes, GREATEST(%lld - c.at, 0) + 1, %lld - GREATEST(c.at, %lld)))",
		 (long long)(rd->from < INT32_MAX ? rd->from + 1 : INT32_MAX),
		 (long long)(rd->end - rd->from < INT32_MAX ? rd->end - rd->from : INT32_MAX), (long long)rd->from,
		 (long long)rd->end, (long long)rd->from);
	sql_stat(sql, rd->path, more);
	snprintf(more, sizeof more,
		 " LEFT JOIN stead_chunks c ON c.gen = f.gen AND c.at > %lld AND c.at < %lld AND c.at + c.len > %lld "
		 "ORDER BY c.at",
		 (long long)rd->from - MY_INLINE_MAX - 1, (long long)rd->end, (long long)rd->from);
	my_sql_add(sql, more);
}

static int mysql_read(struct store *s, struct ctx *ctx, struct wpath path, struct store_range range,
		      const struct sink *sink, struct store_stat *ret_stat, struct err *err)
{
	struct mysql_store *m = mysql_of(s);
	uint64_t top = (uint64_t)1 << 61, from = range.offset < top ? range.offset : top;
	struct reading rd = {.ctx = ctx, .path = path, .sink = sink, .from = (int64_t)from};
	MY_SQL_SCOPE struct my_sql sql = {0};
	int r;

	rd.end = (int64_t)(range.length < top - from ? from + range.length : top);
	sql_read(&sql, &rd);
	for (unsigned tries = 0;; tries++) {
		struct my_link *l;

		r = my_take(m->pool, ctx, &l, err);
		if (r == 0) {
			rd.begun = false;
			rd.refused = 0;
			r = my_stream(l, ctx, buf_str(&sql.text), take_row, &rd, err);
			r = r ? r : rd.refused;
			my_give(m->pool, l);
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

static int mysql_remove(struct store *s, struct ctx *ctx, struct wpath path, bool recursive, struct store_cond cond,
			uint64_t *ret_count, struct err *err)
{
	MY_RESULT_SCOPE struct my_result *res = NULL;
	MY_SQL_SCOPE struct my_sql sql = {0};
	enum sql_outcome outcome;
	int r;

	my_sql_init(&sql, MY_CHANGE "stead_remove(");
	my_sql_str(&sql, path.s);
	my_sql_add(&sql, recursive ? ", 1, " : ", 0, ");
	my_sql_cond(&sql, cond);
	my_sql_add(&sql, ", ");
	my_sql_i64(&sql, sql_token_new());
	my_sql_add(&sql, ", ");
	my_sql_again(&sql);
	r = my_change(mysql_of(s)->pool, ctx, &sql, &res, err);
	if (r)
		return r;
	outcome = (enum sql_outcome)my_i64(res, 0, 0);
	if (outcome == SQL_IS_DIR)
		return store_refuse(REFUSE_NOT_RECURSIVE, path.s, err);
	r = sql_outcome_check(outcome, my_str(res, 0, 1), path.s, cond, err);
	if (r == 0)
		*ret_count = (uint64_t)my_i64(res, 0, 2);
	return r;
}

static int mysql_move(struct store *s, struct ctx *ctx, struct wpath from, struct wpath to, struct store_cond cond,
		      struct store_cond to_cond, struct store_stat *ret_stat, struct err *err)
{
	MY_RESULT_SCOPE struct my_result *res = NULL;
	MY_SQL_SCOPE struct my_sql sql = {0};
	enum sql_outcome outcome;
	int r;

	my_sql_init(&sql, MY_CHANGE "stead_move(");
	my_sql_str(&sql, from.s);
	my_sql_add(&sql, ", ");
	my_sql_str(&sql, to.s);
	my_sql_add(&sql, ", ");
	my_sql_cond(&sql, cond);
	my_sql_add(&sql, ", ");
	my_sql_cond(&sql, to_cond);
	my_sql_add(&sql, ", ");
	my_sql_i64(&sql, sql_token_new());
	my_sql_add(&sql, ", ");
	my_sql_again(&sql);
	r = my_change(mysql_of(s)->pool, ctx, &sql, &res, err);
	if (r)
		return r;
	outcome = (enum sql_outcome)my_i64(res, 0, 0);
	r = sql_outcome_check(outcome, my_str(res, 0, 1), outcome == SQL_DIR_COND ? from.s : to.s,
			      cond.kind == STORE_VERSION ? cond : to_cond, err);
	if (r)
		return r;
	*ret_stat = (struct store_stat){.kind = STORE_DIR};
	if (!my_null(res, 0, 4))
		*ret_stat = (struct store_stat){.kind = STORE_FILE,
						.size = (uint64_t)my_i64(res, 0, 2),
						.mtime_ns = my_i64(res, 0, 3),
						.version = arena_str(ctx->arena, my_str(res, 0, 4))};
	return 0;
}

static int mysql_copy(struct store *s, struct ctx *ctx, struct wpath from, struct wpath to, struct store_cond to_cond,
		      struct store_stat *ret_stat, struct err *err)
{
	MY_RESULT_SCOPE struct my_result *res = NULL;
	MY_SQL_SCOPE struct my_sql sql = {0};
	struct str version = sql_version_new(ctx->arena), detail;
	int r;

	my_sql_init(&sql, MY_CHANGE "stead_copy(");
	my_sql_str(&sql, from.s);
	my_sql_add(&sql, ", ");
	my_sql_str(&sql, to.s);
	my_sql_add(&sql, ", ");
	my_sql_cond(&sql, to_cond);
	my_sql_add(&sql, ", ");
	my_sql_str(&sql, version);
	my_sql_add(&sql, ", ");
	my_sql_i64(&sql, clock_real_ns());
	my_sql_add(&sql, ", ");
	my_sql_i64(&sql, sql_token_new());
	my_sql_add(&sql, ", ");
	my_sql_again(&sql);
	r = my_change(mysql_of(s)->pool, ctx, &sql, &res, err);
	if (r)
		return r;
	detail = my_str(res, 0, 1);
	r = sql_outcome_check((enum sql_outcome)my_i64(res, 0, 0), detail, detail.len ? detail : to.s, to_cond, err);
	if (r == 0)
		*ret_stat = (struct store_stat){.kind = STORE_FILE,
						.size = (uint64_t)my_i64(res, 0, 2),
						.mtime_ns = my_i64(res, 0, 3),
						.version = version};
	return r;
}

static int list_page(struct arena *arena, struct wpath dir, size_t limit, const struct my_result *res,
		     struct store_page *ret_page, struct err *err)
{
	struct page_builder b = {.arena = arena, .limit = limit};

	if (my_i64(res, 0, 0) == -1)
		return store_not_found(err);
	if (my_i64(res, 0, 0) == -2)
		return store_refuse(REFUSE_FILE, dir.s, err);
	for (size_t i = 0; my_i64(res, 0, 0) > 0 && i < my_rows(res); i++) {
		struct store_entry e = {.path.s = arena_str(arena, my_str(res, i, 1))};

		if (my_i64(res, i, 0) == 2)
			e.stat.kind = STORE_DIR;
		else
			e.stat = (struct store_stat){.kind = STORE_FILE,
						     .size = (uint64_t)my_i64(res, i, 2),
						     .mtime_ns = my_i64(res, i, 3),
						     .version = arena_str(arena, my_str(res, i, 4))};
		page_builder_add(&b, &e);
	}
	page_builder_finish(&b, ret_page);
	return 0;
}

static int mysql_list(struct store *s, struct ctx *ctx, struct wpath path, const struct store_list_req *req,
		      struct store_page *ret_page, struct err *err)
{
	MY_RESULT_SCOPE struct my_result *res = NULL;
	MY_SQL_SCOPE struct my_sql sql = {0};
	struct str seek;
	int r = sql_list_seek(ctx->arena, path, req, &seek, err);

	if (r)
		return r;
	my_sql_init(&sql, "CALL stead_list(");
	my_sql_str(&sql, path.s);
	my_sql_add(&sql, ", ");
	my_sql_str(&sql, seek);
	my_sql_add(&sql, req->recursive ? ", 1, " : ", 0, ");
	my_sql_i64(&sql, (int64_t)req->limit + 1);
	my_sql_add(&sql, ")");
	r = my_call(mysql_of(s)->pool, ctx, &sql, &res, err);
	return r ? r : list_page(ctx->arena, path, req->limit, res, ret_page, err);
}

static void mysql_destroy(struct store *s)
{
	struct mysql_store *m = mysql_of(s);

	my_pool_destroy(m->pool);
	free(m);
}

static const struct store_ops mysql_ops = {
	.name = "MySQL",
	.can = STORE_JOURNAL | STORE_ONE_STEP | STORE_WRITE_STEP,
	.stat = mysql_stat,
	.read = mysql_read,
	.write = mysql_write,
	.append = mysql_append,
	.remove = mysql_remove,
	.move = mysql_move,
	.copy = mysql_copy,
	.list = mysql_list,
	.scan = store_scan_generic,
	.journal_read = mysql_journal_read,
	.journal_add = mysql_journal_add,
	.journal_cut = mysql_journal_cut,
	.destroy = mysql_destroy,
};

/* The tables as this program needs them, and old receipts gone. */
static int prepare_database(const struct my_config *config, const struct ctx *limits, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena, .deadline_ns = limits->deadline_ns, .cancel = limits->cancel};
	struct my_link *l;
	int r = my_open(config, &ctx, &l, err);

	if (r)
		return r;
	r = my_migrate(l, &ctx, config, err);
	if (r == 0)
		r = my_exec(l, &ctx, STR("DELETE FROM stead_receipts WHERE made < NOW() - INTERVAL 1 HOUR"), NULL, err);
	my_close(l);
	return r;
}

int store_mysql_open(struct str url, const struct env *env, const struct ctx *limits, struct store **ret_store,
		     struct err *err)
{
	struct my_config config;
	struct mysql_store *m;
	struct wpath prefix;
	int r = my_config_parse(url, env, &config, err);

	if (r)
		return r;
	r = prepare_database(&config, limits, err);
	if (r == 0)
		r = wpath_parse(str_of(config.prefix), &prefix, err);
	if (r) {
		my_config_release(&config);
		return err_prefix(err, "open the store");
	}
	m = xcalloc(1, sizeof *m);
	m->base.ops = &mysql_ops;
	m->pool = my_pool_new(config);
	*ret_store = wpath_is_root(prefix) ? &m->base : store_prefix_new(&m->base, prefix);
	return 0;
}

int store_mysql_schema_version(void)
{
	return MY_SCHEMA_VERSION;
}

uint64_t store_mysql_trips(struct store *s)
{
	return my_pool_trips(mysql_of(s)->pool);
}
