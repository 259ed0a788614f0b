/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pool of a database's connections (store/sql.h). A connection is set up in one round trip when it begins, so that
 * every operation after that is one.
 */
#ifndef STEAD_STORE_BACKENDS_MYSQL_MYSQL_POOL_H
#define STEAD_STORE_BACKENDS_MYSQL_MYSQL_POOL_H

#include "store/backends/mysql/mysql_schema.h"

struct my_pool;

/* Takes `config` over. Nothing is opened yet. */
struct my_pool *my_pool_new(struct my_config config);
void my_pool_destroy(struct my_pool *pool);
/* Round trips of all connections that were given back, without those that opened one. */
uint64_t my_pool_trips(struct my_pool *pool);

/* A connection for this call alone. ERR_TIMEOUT when none gets free. */
int my_take(struct my_pool *pool, struct ctx *ctx, struct my_link **ret_link, struct err *err);
/* Back into the pool, or closed when it is broken. */
void my_give(struct my_pool *pool, struct my_link *link);

/* One statement as one operation. A connection that is lost, and a deadlock, are tried again within the deadline. When
   the answer was lost, the session that may still be at it is ended first, and the statement says `again`. */
int my_call(struct my_pool *pool, struct ctx *ctx, struct my_sql *sql, struct my_result **ret_res, struct err *err);
/* The same for a change: in a transaction. `begin` of my_sql_init() is MY_CHANGE. */
#define MY_CHANGE "START TRANSACTION; CALL "
int my_change(struct my_pool *pool, struct ctx *ctx, struct my_sql *sql, struct my_result **ret_res, struct err *err);
/* Ends the session of a connection that was lost; returns when it is gone. */
int my_end_other(struct my_link *link, struct ctx *ctx, const struct my_link *dead, struct err *err);

#endif
