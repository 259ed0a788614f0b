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

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "base/clock.h"
#include "base/limits.h"
#include "store/backends/postgres/postgres_schema.h"

#define TRIES_MAX     7
#define SWEEP_EVERY   4096 /* receipts */
#define WAIT_SLICE_NS 20000000

struct pg_pool {
	struct pg_config config;
	struct pg_stmt stmts[PG_STMTS]; /* with the schema put in */
	char *set_up;
	pthread_mutex_t lock;
	pthread_cond_t freed;
	struct pg_link *idle;
	unsigned open, waiting;
	uint64_t epoch; /* idle connections of an earlier one are no longer used */
	uint64_t trips;
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

struct pg_pool *pg_pool_new(struct pg_config config)
{
	struct pg_pool *p = xcalloc(1, sizeof(*p));
	pthread_condattr_t attr;
	char *text;

	p->config = config;
	for (size_t i = 0; i < PG_STMTS; i++)
		p->stmts[i] = (struct pg_stmt){pg_stmts[i].name, pg_in_schema(&p->config, pg_stmts[i].text)};
	text = make_set_up(p);
	p->set_up = pg_in_schema(&p->config, text);
	free(text);
	pthread_mutex_init(&p->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&p->freed, &attr);
	pthread_condattr_destroy(&attr);
	return p;
}

static void close_all(struct pg_link *l)
{
	while (l) {
		struct pg_link *next = l->next;

		pg_close(l);
		l = next;
	}
}

void pg_pool_destroy(struct pg_pool *p)
{
	close_all(p->idle);
	for (size_t i = 0; i < PG_STMTS; i++)
		free((char *)p->stmts[i].text);
	free(p->set_up);
	pg_config_release(&p->config);
	pthread_cond_destroy(&p->freed);
	pthread_mutex_destroy(&p->lock);
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
	uint64_t trips;

	pthread_mutex_lock(&p->lock);
	trips = p->trips;
	pthread_mutex_unlock(&p->lock);
	return trips;
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
			       "%s: the schema \"%s\" now has version %lld, this Stead works with %d; %s",
			       p->config.server, p->config.schema, (long long)version, PG_SCHEMA_VERSION,
			       version > PG_SCHEMA_VERSION ? "use a newer Stead" : "open the store again");
	l->counted = l->trips;
	return 0;
}

static int64_t take_deadline(const struct pg_pool *p, const struct ctx *ctx)
{
	int64_t until = clock_monotonic_ns() + p->config.timeout_ns;

	return ctx->deadline_ns && ctx->deadline_ns < until ? ctx->deadline_ns : until;
}

/* With the lock held: an idle connection, or (NULL) the right to open one. */
static int wait_for_place(struct pg_pool *p, struct ctx *ctx, struct pg_link **ret, struct err *err)
{
	int64_t until = take_deadline(p, ctx), now;

	while (!p->idle && p->open >= p->config.pool) {
		struct timespec slice;
		int r = ctx_check(ctx, err);

		if (r)
			return r;
		now = clock_monotonic_ns();
		slice = clock_timespec(until < now + WAIT_SLICE_NS ? until : now + WAIT_SLICE_NS);
		if (pthread_cond_timedwait(&p->freed, &p->lock, &slice) == ETIMEDOUT && clock_monotonic_ns() >= until) {
			err_set(err, ERR_TIMEOUT,
				"%s: all %u connections were busy until the deadline; raise pool= in the "
				"store's URL",
				p->config.server, p->config.pool);
			err->retryable = true;
			return -ERR_TIMEOUT;
		}
	}
	*ret = p->idle;
	if (*ret)
		p->idle = (*ret)->next;
	else
		p->open++;
	return 0;
}

static void give_place_back(struct pg_pool *p)
{
	pthread_mutex_lock(&p->lock);
	p->open--;
	pthread_cond_signal(&p->freed);
	pthread_mutex_unlock(&p->lock);
}

int pg_take(struct pg_pool *p, struct ctx *ctx, struct pg_link **ret_link, struct err *err)
{
	struct pg_link *l = NULL;
	uint64_t epoch;
	int r = ctx_check(ctx, err);

	if (r)
		return r;
	pthread_mutex_lock(&p->lock);
	r = wait_for_place(p, ctx, &l, err);
	epoch = p->epoch;
	pthread_mutex_unlock(&p->lock);
	if (r)
		return r;
	if (l && l->epoch != epoch) {
		pg_close(l);
		l = NULL;
	}
	if (!l) {
		r = pg_open(&p->config, ctx, &l, err);
		if (r == 0) {
			r = set_up(p, l, ctx, err);
			if (r)
				pg_close(l);
		}
		if (r) {
			give_place_back(p);
			return r;
		}
		l->epoch = epoch;
	}
	*ret_link = l;
	return 0;
}

void pg_give(struct pg_pool *p, struct pg_link *l, bool keep)
{
	keep = keep && !l->broken;
	pthread_mutex_lock(&p->lock);
	p->trips += l->trips - l->counted;
	l->counted = l->trips;
	if (l->lost)
		p->epoch++;
	if (keep) {
		l->next = p->idle;
		p->idle = l;
	} else {
		p->open--;
	}
	pthread_cond_signal(&p->freed);
	pthread_mutex_unlock(&p->lock);
	if (!keep)
		pg_close(l);
}

int pg_take_waiting(struct pg_pool *p, struct ctx *ctx, struct pg_link **ret_link, struct err *err)
{
	bool may;
	int r;

	*ret_link = NULL;
	pthread_mutex_lock(&p->lock);
	may = !p->config.pooler && p->waiting < p->config.pool / 2;
	p->waiting += may;
	pthread_mutex_unlock(&p->lock);
	if (!may)
		return 0;
	r = pg_take(p, ctx, ret_link, err);
	if (r) {
		pthread_mutex_lock(&p->lock);
		p->waiting--;
		pthread_mutex_unlock(&p->lock);
	}
	return r;
}

void pg_give_waiting(struct pg_pool *p, struct pg_link *l)
{
	pthread_mutex_lock(&p->lock);
	p->waiting--;
	pthread_mutex_unlock(&p->lock);
	pg_give(p, l, true);
}

void pg_pause(struct ctx *ctx, int64_t ns)
{
	int64_t until = clock_monotonic_ns() + ns;
	struct timespec at;

	if (ctx->deadline_ns && ctx->deadline_ns < until)
		until = ctx->deadline_ns;
	at = clock_timespec(until);
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
		;
}

bool pg_try_again(struct ctx *ctx, unsigned tries, const struct err *err)
{
	struct err ignored;

	if (err->kind != ERR_UNAVAILABLE || !err->retryable || tries + 1 >= TRIES_MAX)
		return false;
	if (tries) /* the first time at once: an idle connection had died */
		pg_pause(ctx, (int64_t)(10000000 << tries));
	return ctx_check(ctx, &ignored) == 0;
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
		pg_give(p, l, true);
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
				if (l->lost && again >= 0) {
					dead = *l;
					pg_set_bool(args, again, true);
				}
			}
			pg_give(p, l, true);
		}
		if (r == 0 || !pg_try_again(ctx, tries, err))
			break;
	}
	if (r == 0 && (id == PG_APPEND || id == PG_REMOVE || id == PG_MOVE))
		sweep(p, ctx);
	return r;
}
