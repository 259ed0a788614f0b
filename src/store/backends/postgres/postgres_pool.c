/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pool, and the one way in which an operation of one statement is made.
 *
 * A lost answer is the hard case: the connection died, and nobody knows whether the statement was done. Then the
 * server's process that may still be at it is ended first (so that it cannot be done later), and the same call is made
 * again with its flag `again`: every function of ours that changes something then looks whether it was done before, by
 * the version, the receipt or the journal entry that it would have left. A process ended in the middle leaves nothing.
 */
#include "store/backends/postgres/postgres_pool.h"

#include <stdatomic.h>

#include "base/clock.h"
#include "base/limits.h"
#include "store/backends/postgres/postgres_schema.h"

#define SWEEP_EVERY 4096 /* receipts */

struct pg_pool {
	struct sql_pool base;
	struct pg_config config;
	struct pg_stmt stmts[PG_STMTS]; /* with the schema put in */
	char *set_up;
	atomic_uint waiting;  /* connections that calls hold for long */
	atomic_uint receipts; /* left since the last sweep */
};

/* Sets a new connection up: settings, all statements, and which process serves it. */
static char *make_set_up(const struct pg_pool *p)
{
	struct buf out;

	buf_init(&out, NULL, 4 * MIB);
	if (!p->config.pooler) {
		buf_printf(&out, "SET statement_timeout = %lld; ", (long long)(p->config.timeout_ns / NS_PER_MS));
		buf_lit(&out, "SET client_connection_check_interval = 1000; "
			      "SET idle_in_transaction_session_timeout = 600000; "
			      "SET default_transaction_isolation = 'read committed'; "
			      "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; "
			      "SET enable_bitmapscan = off; SET jit = off; "
			      "SELECT set_config('synchronous_commit', 'on', false) "
			      "WHERE current_setting('synchronous_commit') = 'off'; ");
		for (size_t i = 0; i < PG_STMTS; i++)
			buf_printf(&out, "PREPARE %s AS %s; ", p->stmts[i].name, p->stmts[i].text);
	}
	buf_lit(&out, "SELECT a.pid, extract(epoch from a.backend_start)::text, (SELECT version FROM @.stead_meta) "
		      "FROM pg_stat_activity a WHERE a.pid = pg_backend_pid()");
	buf_char(&out, '\0');
	return out.ptr;
}

static int set_up(struct pg_pool *p, struct pg_link *l, struct ctx *ctx, struct err *err)
{
	PG_RESULT_SCOPE struct pg_result *res = NULL;
	int64_t version = -1;
	int r = pg_exec_text(l, ctx, p->set_up, &res, err);

	if (r)
		return r;
	if (pg_rows(res) == 1) {
		str_to_i64(pg_str(res, 0, 0), &l->pid);
		snprintf(l->began, sizeof(l->began), "%.*s", STR_ARG(pg_str(res, 0, 1)));
		str_to_i64(pg_str(res, 0, 2), &version);
	}
	if (version != PG_SCHEMA_VERSION)
		return err_set(err, ERR_UNSUPPORTED,
			       "%s: the schema \"%s\" now has version %lld, but this Stead works with %d; %s",
			       p->config.server, p->config.schema, (long long)version, PG_SCHEMA_VERSION,
			       version > PG_SCHEMA_VERSION ? "use a newer Stead" : "open the store again");
	return 0;
}

static int open_link(void *owner, struct ctx *ctx, struct sql_link **ret_link, struct err *err)
{
	struct pg_pool *p = owner;
	struct pg_link *l;
	int r = pg_open(&p->config, ctx, &l, err);

	if (r)
		return r;
	r = set_up(p, l, ctx, err);
	if (r)
		pg_close(l);
	else
		*ret_link = &l->base;
	return r;
}

static void close_link(struct sql_link *l)
{
	pg_close((struct pg_link *)l);
}

static const struct sql_pool_ops pool_ops = {.open = open_link, .close = close_link};

struct pg_pool *pg_pool_new(struct pg_config config)
{
	struct pg_pool *p = xcalloc(1, sizeof(*p));
	char *text;

	p->config = config;
	for (size_t i = 0; i < PG_STMTS; i++)
		p->stmts[i] = (struct pg_stmt){pg_stmts[i].name, pg_in_schema(&p->config, pg_stmts[i].text)};
	text = make_set_up(p);
	p->set_up = pg_in_schema(&p->config, text);
	free(text);
	p->base = (struct sql_pool){.ops = &pool_ops,
				    .owner = p,
				    .server = p->config.server,
				    .size = p->config.pool,
				    .timeout_ns = p->config.timeout_ns};
	sql_pool_init(&p->base);
	return p;
}

void pg_pool_destroy(struct pg_pool *p)
{
	sql_pool_release(&p->base);
	for (size_t i = 0; i < PG_STMTS; i++)
		free((char *)p->stmts[i].text);
	free(p->set_up);
	pg_config_release(&p->config);
	free(p);
}

const struct pg_config *pg_pool_config(const struct pg_pool *p)
{
	return &p->config;
}

const struct pg_stmt *pg_pool_stmt(const struct pg_pool *p, enum pg_stmt_id id)
{
	return &p->stmts[id];
}

uint64_t pg_pool_trips(struct pg_pool *p)
{
	return sql_pool_trips(&p->base);
}

int pg_take(struct pg_pool *p, struct ctx *ctx, struct pg_link **ret_link, struct err *err)
{
	return sql_take(&p->base, ctx, (struct sql_link **)ret_link, err);
}

void pg_give(struct pg_pool *p, struct pg_link *l)
{
	sql_give(&p->base, &l->base);
}

int pg_take_waiting(struct pg_pool *p, struct ctx *ctx, struct pg_link **ret_link, struct err *err)
{
	int r;

	*ret_link = NULL;
	if (p->config.pooler)
		return 0;
	if (atomic_fetch_add(&p->waiting, 1) >= p->config.pool / 2) {
		atomic_fetch_sub(&p->waiting, 1);
		return 0;
	}
	r = pg_take(p, ctx, ret_link, err);
	if (r)
		atomic_fetch_sub(&p->waiting, 1);
	return r;
}

void pg_give_waiting(struct pg_pool *p, struct pg_link *l)
{
	atomic_fetch_sub(&p->waiting, 1);
	pg_give(p, l);
}

int pg_end_other(struct pg_link *l, struct ctx *ctx, const struct pg_link *dead, struct err *err)
{
	char sql[240];

	if (l->config->pooler || dead->pid == 0)
		return 0; /* only the pooler knows which process it is */
	snprintf(sql, sizeof(sql),
		 "SELECT pg_terminate_backend(a.pid, 3000) FROM pg_stat_activity a "
		 "WHERE a.pid = %lld AND extract(epoch from a.backend_start)::text = '%s'",
		 (long long)dead->pid, dead->began);
	return pg_exec_text(l, ctx, sql, NULL, err);
}

/* Removes, now and then, receipts that nobody can ask for again. If it fails, the next sweep does it. */
static void sweep(struct pg_pool *p, struct ctx *ctx)
{
	struct pg_args none = {0};
	struct pg_link *l;
	struct err ignored;

	if (atomic_fetch_add(&p->receipts, 1) % SWEEP_EVERY != SWEEP_EVERY - 1)
		return;
	if (pg_take(p, ctx, &l, &ignored) == 0) {
		pg_exec(l, ctx, &p->stmts[PG_SWEEP], &none, NULL, &ignored);
		pg_give(p, l);
	}
}

int pg_call(struct pg_pool *p, struct ctx *ctx, enum pg_stmt_id id, struct pg_args *args, int again,
	    struct pg_result **ret_res, struct err *err)
{
	struct pg_link dead = {0};
	int r;

	for (unsigned tries = 0;; tries++) {
		struct pg_link *l;

		r = pg_take(p, ctx, &l, err);
		if (r == 0) {
			if (dead.pid && again >= 0)
				r = pg_end_other(l, ctx, &dead, err);
			if (r == 0) {
				r = pg_exec(l, ctx, &p->stmts[id], args, ret_res, err);
				if (l->base.lost && again >= 0) {
					dead = *l;
					pg_set_bool(args, again, true);
				}
			}
			pg_give(p, l);
		}
		if (r == 0 || !sql_try_again(ctx, tries, err))
			break;
	}
	if (r == 0 && (id == PG_APPEND || id == PG_REMOVE || id == PG_MOVE))
		sweep(p, ctx);
	return r;
}
