/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Write and append. What fits into one statement is one: the procedure that makes the change checks its condition too.
 * Larger bytes go as chunks of a generation that no file has yet, in one transaction with the statement that makes the
 * file point at them. So a reader never sees a part, and a client that dies leaves nothing that must be swept: the
 * server rolls back. Others are held up only at the end, since chunks are put without the lock of the path's first
 * name.
 */
#include "base/clock.h"
#include "base/limits.h"
#include "store/backends/mysql/mysql.h"

/* One change on its way. */
struct writing {
	struct mysql_store *m;
	struct ctx *ctx;
	struct wpath path;
	const struct source *source;
	struct store_cond cond;
	bool append;
	struct str version;
	int64_t mtime, gen, token;
	char *buf; /* of MY_INLINE_MAX bytes, when the source is pulled */
};

/* The call of stead_write or stead_append, up to its last argument; without `bytes`, `n` of them are in chunks. */
static void add_call(const struct writing *w, const struct str *bytes, uint64_t n, struct my_sql *sql)
{
	my_sql_add(sql, w->append ? "stead_append(" : "stead_write(");
	my_sql_str(sql, w->path.s);
	my_sql_add(sql, ", ");
	my_sql_cond(sql, w->cond);
	my_sql_add(sql, ", ");
	my_sql_str(sql, w->version);
	my_sql_add(sql, ", ");
	my_sql_i64(sql, w->mtime);
	my_sql_add(sql, ", ");
	if (bytes)
		my_sql_str(sql, *bytes);
	else
		my_sql_add(sql, "NULL");
	my_sql_add(sql, ", ");
	my_sql_i64(sql, w->gen);
	my_sql_add(sql, ", ");
	my_sql_i64(sql, (int64_t)n);
	my_sql_add(sql, ", ");
	if (w->append) {
		my_sql_i64(sql, w->token);
		my_sql_add(sql, ", ");
	}
	my_sql_again(sql);
}

/* What both procedures answer. */
static int take_answer(const struct writing *w, const struct my_result *res, struct store_stat *ret_stat,
		       struct err *err)
{
	int r = sql_outcome_check((enum sql_outcome)my_i64(res, 0, 0), my_str(res, 0, 1), w->path.s, w->cond, err);

	if (r == 0)
		*ret_stat = (struct store_stat){.kind = STORE_FILE,
						.size = (uint64_t)my_i64(res, 0, 2),
						.mtime_ns = my_i64(res, 0, 3),
						.version = w->version};
	return r;
}

static int write_small(struct writing *w, struct str bytes, struct store_stat *ret_stat, struct err *err)
{
	MY_RESULT_SCOPE struct my_result *res = NULL;
	MY_SQL_SCOPE struct my_sql sql = {0};
	int r;

	my_sql_init(&sql, MY_CHANGE);
	add_call(w, &bytes, bytes.len, &sql);
	r = my_change(w->m->pool, w->ctx, &sql, &res, err);
	return r ? r : take_answer(w, res, ret_stat, err);
}

/* Fills the buffer as far as the source gives. */
static int fill(struct writing *w, size_t *ret_len, struct err *err)
{
	size_t len = 0, n = 1;

	while (len < MY_INLINE_MAX && n) {
		int r = ctx_check(w->ctx, err);

		if (r == 0)
			r = w->source->pull(w->source->arg, w->buf + len, MY_INLINE_MAX - len, &n, err);
		if (r)
			return r;
		len += n;
	}
	*ret_len = len;
	return 0;
}

static int send_chunk(struct writing *w, struct my_link *l, uint64_t at, struct str bytes, struct err *err)
{
	MY_SQL_SCOPE struct my_sql sql = {0};

	my_sql_init(&sql, "INSERT INTO stead_chunks VALUES (");
	my_sql_i64(&sql, w->gen);
	my_sql_add(&sql, ", ");
	my_sql_i64(&sql, (int64_t)at);
	my_sql_add(&sql, ", ");
	my_sql_i64(&sql, (int64_t)bytes.len);
	my_sql_add(&sql, ", ");
	my_sql_str(&sql, bytes);
	my_sql_add(&sql, ")");
	return my_exec(l, w->ctx, buf_str(&sql.text), NULL, err);
}

/* Every chunk; the buffer already has `first` bytes of a pulled source. */
static int send_chunks(struct writing *w, struct my_link *l, size_t first, uint64_t *ret_total, struct err *err)
{
	uint64_t at = 0;
	size_t len = first;
	int r = 0;

	while (r == 0 && !w->source->pull && at < w->source->bytes.len) {
		struct str part = str_first(str_from(w->source->bytes, (size_t)at), MY_INLINE_MAX);

		r = send_chunk(w, l, at, part, err);
		at += part.len;
	}
	while (r == 0 && w->source->pull && len) {
		r = send_chunk(w, l, at, str_n(w->buf, len), err);
		at += len;
		if (r == 0)
			r = fill(w, &len, err);
	}
	*ret_total = at;
	return r;
}

static int write_chunks(struct writing *w, struct my_link *l, size_t first, struct store_stat *ret_stat,
			bool *ret_committing, struct err *err)
{
	MY_RESULT_SCOPE struct my_result *res = NULL;
	MY_SQL_SCOPE struct my_sql sql = {0};
	struct store_stat stat;
	uint64_t total = 0;
	int r = my_exec(l, w->ctx, STR("START TRANSACTION"), NULL, err);

	if (r == 0)
		r = send_chunks(w, l, first, &total, err);
	if (r == 0) {
		my_sql_init(&sql, "CALL ");
		add_call(w, NULL, total, &sql);
		my_sql_add(&sql, ")");
		r = my_exec(l, w->ctx, buf_str(&sql.text), &res, err);
	}
	if (r == 0)
		r = take_answer(w, res, &stat, err);
	if (r == 0) {
		r = my_exec(l, w->ctx, STR("COMMIT"), NULL, err);
		*ret_committing = r && l->base.lost;
	} else {
		my_abandon(l); /* the server rolls back */
	}
	if (r == 0)
		*ret_stat = stat;
	return r;
}

/* After a COMMIT whose answer was lost: 1 when it was made. */
static int was_made(struct writing *w, const struct my_link *dead, struct store_stat *ret_stat, struct err *err)
{
	MY_RESULT_SCOPE struct my_result *res = NULL;
	MY_SQL_SCOPE struct my_sql sql = {0};
	struct my_link *l;
	int r = my_take(w->m->pool, w->ctx, &l, err);

	if (r)
		return r;
	my_sql_init(&sql, "");
	if (w->append) {
		my_sql_add(&sql, "SELECT amount, mtime FROM stead_receipts WHERE token = ");
		my_sql_i64(&sql, w->token);
	} else {
		my_sql_add(&sql, "SELECT size, mtime FROM stead_files WHERE path = ");
		my_sql_str(&sql, w->path.s);
		my_sql_add(&sql, " AND version = ");
		my_sql_str(&sql, w->version);
	}
	r = my_end_other(l, w->ctx, dead, err);
	if (r == 0)
		r = my_exec(l, w->ctx, buf_str(&sql.text), &res, err);
	my_give(w->m->pool, l);
	if (r || my_rows(res) == 0)
		return r;
	*ret_stat = (struct store_stat){.kind = STORE_FILE,
					.size = (uint64_t)my_i64(res, 0, 0),
					.mtime_ns = my_i64(res, 0, 1),
					.version = w->version};
	return 1;
}

static int start_again(struct writing *w, size_t *ret_first, struct err *err)
{
	int r;

	if (!w->source->pull)
		return 0;
	if (!w->source->rewind)
		return err_set(err, ERR_UNAVAILABLE,
			       "the connection broke, and the bytes cannot be sent again; write it again");
	r = w->source->rewind(w->source->arg, err);
	return r ? r : fill(w, ret_first, err);
}

static int write_large(struct writing *w, size_t first, struct store_stat *ret_stat, struct err *err)
{
	struct my_link dead = {0};
	int r;

	for (unsigned tries = 0;; tries++) {
		bool committing = false;
		struct my_link *l;

		r = my_take(w->m->pool, w->ctx, &l, err);
		if (r == 0) {
			r = write_chunks(w, l, first, ret_stat, &committing, err);
			dead = *l;
			my_give(w->m->pool, l);
		}
		if (r == 0 || !sql_try_again(w->ctx, tries, err))
			return r;
		if (committing) {
			do
				r = was_made(w, &dead, ret_stat, err);
			while (r < 0 && sql_try_again(w->ctx, ++tries, err));
			if (r)
				return r < 0 ? r : 0;
		}
		r = start_again(w, &first, err);
		if (r)
			return r;
		w->gen = sql_token_new();
	}
}

static int change(struct writing *w, struct store_stat *ret_stat, struct err *err)
{
	size_t first = 0;
	int r = 0;

	w->version = sql_version_new(w->ctx->arena);
	w->mtime = clock_real_ns();
	w->gen = sql_token_new();
	w->token = sql_token_new();
	if (!w->source->pull && w->source->bytes.len <= MY_INLINE_MAX)
		return write_small(w, w->source->bytes, ret_stat, err);
	if (!w->source->pull)
		return write_large(w, 0, ret_stat, err);
	w->buf = xmalloc(MY_INLINE_MAX);
	r = fill(w, &first, err);
	if (r == 0 && first < MY_INLINE_MAX)
		r = write_small(w, str_n(w->buf, first), ret_stat, err);
	else if (r == 0)
		r = write_large(w, first, ret_stat, err);
	free(w->buf);
	return r;
}

int mysql_write(struct store *s, struct ctx *ctx, struct wpath path, const struct source *source,
		struct store_cond cond, struct store_stat *ret_stat, struct err *err)
{
	struct writing w = {.m = mysql_of(s), .ctx = ctx, .path = path, .source = source, .cond = cond};

	return change(&w, ret_stat, err);
}

int mysql_append(struct store *s, struct ctx *ctx, struct wpath path, const struct source *source,
		 struct store_cond cond, struct store_stat *ret_stat, struct err *err)
{
	struct writing w = {.m = mysql_of(s), .ctx = ctx, .path = path, .source = source, .cond = cond, .append = true};

	return change(&w, ret_stat, err);
}
