/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Write and append. What fits into one statement is one: the function that makes the change checks its condition too.
 * Larger bytes go as chunks of a generation that no file has yet, in one transaction with the statement that makes the
 * file point at them. So a reader never sees a part, and a client that dies leaves nothing that must be swept: the
 * server rolls back. The price is a transaction that lasts as long as the source gives bytes; a generation per upload
 * that commits piece by piece was rejected, because then somebody has to decide when an upload is dead.
 */
#include "base/clock.h"
#include "base/limits.h"
#include "store/backends/postgres/postgres.h"

/* One change on its way. */
struct writing {
	struct postgres *p;
	struct ctx *ctx;
	struct wpath path;
	const struct source *source;
	struct store_cond cond;
	bool append;
	struct str version;
	int64_t mtime, gen, token;
	char *buf; /* of PG_INLINE_MAX bytes, when the source is pulled */
};

/* The arguments of PG_WRITE or PG_APPEND; without `bytes`, `n` of them are in chunks. The last is `again`. */
static void set_args(const struct writing *w, const struct str *bytes, uint64_t n, struct pg_args *ret)
{
	*ret = (struct pg_args){0};
	pg_arg_str(ret, w->path.s);
	pg_arg_cond(ret, w->cond);
	pg_arg_str(ret, w->version);
	pg_arg_i64(ret, w->mtime);
	if (bytes)
		pg_arg_str(ret, *bytes);
	else
		pg_arg_null(ret);
	pg_arg_i64(ret, w->gen);
	pg_arg_i64(ret, (int64_t)n);
	if (w->append)
		pg_arg_i64(ret, w->token);
	pg_arg_bool(ret, false);
}

/* What both functions answer. */
static int take_answer(const struct writing *w, const struct pg_result *res, struct store_stat *ret_stat,
		       struct err *err)
{
	int r = sql_outcome_check((enum sql_outcome)pg_i64(res, 0, 0), pg_str(res, 0, 1), w->path.s, w->cond, err);

	if (r == 0)
		*ret_stat = (struct store_stat){.kind = STORE_FILE,
						.size = (uint64_t)pg_i64(res, 0, 2),
						.mtime_ns = pg_i64(res, 0, 3),
						.version = w->version};
	return r;
}

static int write_small(struct writing *w, struct str bytes, struct store_stat *ret_stat, struct err *err)
{
	PG_RESULT_SCOPE struct pg_result *res = NULL;
	struct pg_args args;
	int r;

	set_args(w, &bytes, bytes.len, &args);
	r = pg_call(w->p->pool, w->ctx, w->append ? PG_APPEND : PG_WRITE, &args, args.n - 1, &res, err);
	return r ? r : take_answer(w, res, ret_stat, err);
}

/* Fills the buffer as far as the source gives. */
static int fill(struct writing *w, size_t *ret_len, struct err *err)
{
	size_t len = 0, n = 1;

	while (len < PG_INLINE_MAX && n) {
		int r = ctx_check(w->ctx, err);

		if (r == 0)
			r = w->source->pull(w->source->arg, w->buf + len, PG_INLINE_MAX - len, &n, err);
		if (r)
			return r;
		len += n;
	}
	*ret_len = len;
	return 0;
}

static int send_chunk(struct writing *w, struct pg_link *l, uint64_t at, struct str bytes, struct err *err)
{
	struct pg_args args = {0};

	pg_arg_i64(&args, w->gen);
	pg_arg_i64(&args, (int64_t)at);
	pg_arg_str(&args, bytes);
	return pg_exec(l, w->ctx, pg_pool_stmt(w->p->pool, PG_CHUNK), &args, NULL, err);
}

/* Every chunk; the buffer already has `first` bytes of a pulled source. */
static int send_chunks(struct writing *w, struct pg_link *l, size_t first, uint64_t *ret_total, struct err *err)
{
	uint64_t at = 0;
	size_t len = first;
	int r = 0;

	if (!w->source->pull) {
		while (r == 0 && at < w->source->bytes.len) {
			struct str part = str_first(str_from(w->source->bytes, (size_t)at), PG_INLINE_MAX);

			r = send_chunk(w, l, at, part, err);
			at += part.len;
		}
		*ret_total = at;
		return r;
	}
	while (r == 0 && len) {
		r = send_chunk(w, l, at, str_n(w->buf, len), err);
		at += len;
		if (r == 0)
			r = fill(w, &len, err);
	}
	*ret_total = at;
	return r;
}

static int write_chunks(struct writing *w, struct pg_link *l, size_t first, struct store_stat *ret_stat,
			bool *ret_committing, struct err *err)
{
	PG_RESULT_SCOPE struct pg_result *res = NULL;
	struct store_stat stat;
	struct pg_args args;
	uint64_t total = 0;
	int r = pg_exec_text(l, w->ctx, "BEGIN", NULL, err);

	if (r == 0)
		r = send_chunks(w, l, first, &total, err);
	if (r == 0) {
		set_args(w, NULL, total, &args);
		r = pg_exec(l, w->ctx, pg_pool_stmt(w->p->pool, w->append ? PG_APPEND : PG_WRITE), &args, &res, err);
	}
	if (r == 0)
		r = take_answer(w, res, &stat, err);
	if (r == 0) {
		*ret_committing = true;
		r = pg_exec_text(l, w->ctx, "COMMIT", NULL, err);
		*ret_committing = r && l->base.lost;
	} else {
		pg_abandon(l); /* the server rolls back */
	}
	if (r == 0)
		*ret_stat = stat;
	return r;
}

/* After a COMMIT whose answer was lost: 1 when it was made. */
static int was_made(struct writing *w, const struct pg_link *dead, struct store_stat *ret_stat, struct err *err)
{
	PG_RESULT_SCOPE struct pg_result *res = NULL;
	struct pg_args args = {0};
	struct pg_link *l;
	bool made = false;
	int r = pg_take(w->p->pool, w->ctx, &l, err);

	if (r)
		return r;
	r = pg_end_other(l, w->ctx, dead, err);
	if (w->append)
		pg_arg_i64(&args, w->token);
	else
		pg_arg_str(&args, w->path.s);
	if (r == 0)
		r = pg_exec(l, w->ctx, pg_pool_stmt(w->p->pool, w->append ? PG_RECEIPT : PG_STAT), &args, &res, err);
	pg_give(w->p->pool, l);
	if (r)
		return r;
	made = w->append ? pg_rows(res) > 0 : str_eq(pg_str(res, 0, 0), w->version);
	if (made)
		*ret_stat = (struct store_stat){.kind = STORE_FILE,
						.size = (uint64_t)pg_i64(res, 0, 1),
						.mtime_ns = pg_i64(res, 0, 2),
						.version = w->version};
	return made;
}

static int start_again(struct writing *w, size_t *ret_first, struct err *err)
{
	int r = 0;

	if (!w->source->pull)
		return 0;
	if (!w->source->rewind) {
		err_set(err, ERR_UNAVAILABLE,
			"the connection broke, and the bytes cannot be sent again; write it again");
		return -ERR_UNAVAILABLE;
	}
	r = w->source->rewind(w->source->arg, err);
	return r ? r : fill(w, ret_first, err);
}

static int write_large(struct writing *w, size_t first, struct store_stat *ret_stat, struct err *err)
{
	struct pg_link dead = {0};
	int r;

	for (unsigned tries = 0;; tries++) {
		bool committing = false;
		struct pg_link *l;

		r = pg_take(w->p->pool, w->ctx, &l, err);
		if (r == 0) {
			r = write_chunks(w, l, first, ret_stat, &committing, err);
			dead = *l;
			pg_give(w->p->pool, l);
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
	if (!w->source->pull && w->source->bytes.len <= PG_ONE_STATEMENT_MAX)
		return write_small(w, w->source->bytes, ret_stat, err);
	if (w->source->pull) {
		w->buf = xmalloc(PG_INLINE_MAX);
		r = fill(w, &first, err);
		if (r == 0 && first < PG_INLINE_MAX)
			r = write_small(w, str_n(w->buf, first), ret_stat, err);
		else if (r == 0)
			r = write_large(w, first, ret_stat, err);
		free(w->buf);
		return r;
	}
	return write_large(w, 0, ret_stat, err);
}

int postgres_write(struct store *s, struct ctx *ctx, struct wpath path, const struct source *source,
		   struct store_cond cond, struct store_stat *ret_stat, struct err *err)
{
	struct writing w = {.p = postgres_of(s), .ctx = ctx, .path = path, .source = source, .cond = cond};

	return change(&w, ret_stat, err);
}

int postgres_append(struct store *s, struct ctx *ctx, struct wpath path, const struct source *source,
		    struct store_cond cond, struct store_stat *ret_stat, struct err *err)
{
	struct writing w = {
		.p = postgres_of(s), .ctx = ctx, .path = path, .source = source, .cond = cond, .append = true};

	return change(&w, ret_stat, err);
}
