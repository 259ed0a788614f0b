/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pool, and the one way in which an operation of one statement is made.
 *
 * A lost answer is the hard case: the connection died, and nobody knows whether the statement was made. Then the
 * session that may still be at it is ended (so that it cannot be made later), and the same call is made again with its
 * flag `again`: every procedure that changes something then looks whether it was made before, by the version, the
 * receipt or the journal entry that it would have left. A session is found by a lock that it holds under a name of its
 * own: numbers of sessions are used again after a restart of the server.
 */
#include "store/backends/mysql/mysql_pool.h"

#include <stdatomic.h>

#include "base/clock.h"
#include "base/limits.h"

#define SWEEP_EVERY 4096 /* changes */

struct my_pool {
	struct sql_pool base;
	struct my_config config;
	atomic_uint changes; /* since the last sweep */
};

/* Settings of the session, its name, and whether the tables are of our version. */
static int set_up(struct my_pool *p, struct my_link *l, struct ctx *ctx, struct err *err)
{
	MY_RESULT_SCOPE struct my_result *res = NULL;
	const struct my_result *last;
	char sql[600];
	int r;

	snprintf(l->name, sizeof l->name, "stead_%016llx", (unsigned long long)random_u64());
	snprintf(sql, sizeof sql,
		 "SET SESSION sql_mode = 'NO_BACKSLASH_ESCAPES,STRICT_ALL_TABLES', autocommit = 1, "
		 "innodb_lock_wait_timeout = %lld; SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED; "
		 "SELECT GET_LOCK('%s', 0); SELECT MAX(version) FROM stead_meta",
		 (long long)(p->config.timeout_ns / NS_PER_S) + 1, l->name);
	r = my_exec(l, ctx, str_of(sql), &res, err);
	if (r)
		return r;
	for (last = res; my_result_next(last);)
		last = my_result_next(last);
	if (my_i64(last, 0, 0) != MY_SCHEMA_VERSION)
		return err_set(err, ERR_UNSUPPORTED,
			       "%s: its tables now have version %lld, but this Stead works with %d; %s",
			       p->config.server, (long long)my_i64(last, 0, 0), MY_SCHEMA_VERSION,
			       my_i64(last, 0, 0) > MY_SCHEMA_VERSION ? "use a newer Stead" : "open the store again");
	return 0;
}

static int open_link(void *owner, struct ctx *ctx, struct sql_link **ret_link, struct err *err)
{
	struct my_pool *p = owner;
	struct my_link *l;
	int r = my_open(&p->config, ctx, &l, err);

	if (r)
		return r;
	r = set_up(p, l, ctx, err);
	if (r)
		my_close(l);
	else
		*ret_link = &l->base;
	return r;
}

static void close_link(struct sql_link *l)
{
	my_close((struct my_link *)l);
}

static const struct sql_pool_ops pool_ops = {.open = open_link, .close = close_link};

struct my_pool *my_pool_new(struct my_config config)
{
	struct my_pool *p = xcalloc(1, sizeof *p);

	p->config = config;
	p->base = (struct sql_pool){.ops = &pool_ops,
				    .owner = p,
				    .server = p->config.server,
				    .size = p->config.pool,
				    .timeout_ns = p->config.timeout_ns};
	sql_pool_init(&p->base);
	return p;
}

void my_pool_destroy(struct my_pool *p)
{
	sql_pool_release(&p->base);
	my_config_release(&p->config);
	free(p);
}

uint64_t my_pool_trips(struct my_pool *p)
{
	return sql_pool_trips(&p->base);
}

int my_take(struct my_pool *p, struct ctx *ctx, struct my_link **ret_link, struct err *err)
{
	return sql_take(&p->base, ctx, (struct sql_link **)ret_link, err);
}

void my_give(struct my_pool *p, struct my_link *l)
{
	sql_give(&p->base, &l->base);
}

int my_end_other(struct my_link *l, struct ctx *ctx, const struct my_link *dead, struct err *err)
{
	MY_RESULT_SCOPE struct my_result *found = NULL;
	struct err ignored;
	char sql[160];
	int r;

	if (!dead->name[0])
		return 0;
	snprintf(sql, sizeof sql, "SELECT IS_USED_LOCK('%s')", dead->name);
	r = my_exec(l, ctx, str_of(sql), &found, err);
	if (r || my_null(found, 0, 0))
		return r;
	snprintf(sql, sizeof sql, "KILL CONNECTION %lld", (long long)my_i64(found, 0, 0));
	if (my_exec(l, ctx, str_of(sql), NULL, &ignored) != 0 && l->base.lost)
		return err_set(err, ignored.kind, "%s", ignored.msg);
	l->base.broken = false; /* that it was gone already is not a failure */
	snprintf(sql, sizeof sql, "SELECT GET_LOCK('%s', 3); SELECT RELEASE_LOCK('%s')", dead->name, dead->name);
	return my_exec(l, ctx, str_of(sql), NULL, err);
}

/* Removes, now and then, receipts that nobody can ask for again. If it fails, the next sweep does it. */
static void sweep(struct my_pool *p, struct ctx *ctx)
{
	struct my_link *l;
	struct err ignored;

	if (atomic_fetch_add(&p->changes, 1) % SWEEP_EVERY != SWEEP_EVERY - 1)
		return;
	if (my_take(p, ctx, &l, &ignored) == 0) {
		my_exec(l, ctx, STR("DELETE FROM stead_receipts WHERE made < NOW() - INTERVAL 1 HOUR"), NULL, &ignored);
		my_give(p, l);
	}
}

int my_call(struct my_pool *p, struct ctx *ctx, struct my_sql *sql, struct my_result **ret_res, struct err *err)
{
	struct my_link dead = {0};
	int r;

	for (unsigned tries = 0;; tries++) {
		struct my_link *l;

		r = my_take(p, ctx, &l, err);
		if (r == 0) {
			if (dead.name[0])
				r = my_end_other(l, ctx, &dead, err);
			if (r == 0) {
				r = my_exec(l, ctx, buf_str(&sql->text), ret_res, err);
				if (l->base.lost && sql->again) {
					dead = *l;
					my_sql_set_again(sql);
				}
			}
			my_give(p, l);
		}
		if (r == 0 || !sql_try_again(ctx, tries, err))
			return r;
	}
}

int my_change(struct my_pool *p, struct ctx *ctx, struct my_sql *sql, struct my_result **ret_res, struct err *err)
{
	int r;

	my_sql_add(sql, "); COMMIT");
	if (sql->text.overflow)
		return err_set(err, ERR_TOO_LARGE, "%s: the change is too large for one statement", p->config.server);
	r = my_call(p, ctx, sql, ret_res, err);
	if (r == 0)
		sweep(p, ctx);
	return r;
}
