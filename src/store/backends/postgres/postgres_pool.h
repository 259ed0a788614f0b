/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pool of a database's connections (store/sql.h). Each connection prepares all statements in one round trip when it
 * begins, so that every operation after that is one.
 */
#ifndef STEAD_STORE_BACKENDS_POSTGRES_POSTGRES_POOL_H
#define STEAD_STORE_BACKENDS_POSTGRES_POSTGRES_POOL_H

#include "store/backends/postgres/postgres_schema.h"

struct pg_pool;

/* Takes `config` over. Nothing is opened yet. */
struct pg_pool *pg_pool_new(struct pg_config config);
void pg_pool_destroy(struct pg_pool *pool);
const struct pg_config *pg_pool_config(const struct pg_pool *pool);
/* Round trips of all connections that were given back, without those that opened one. */
uint64_t pg_pool_trips(struct pg_pool *pool);

/* A connection for this call alone. ERR_TIMEOUT when none gets free. */
int pg_take(struct pg_pool *pool, struct ctx *ctx, struct pg_link **ret_link, struct err *err);
/* Back into the pool, or closed when it is broken. */
void pg_give(struct pg_pool *pool, struct pg_link *link);
/* A connection that its call will hold for long, if fewer than half are held so; else NULL in *ret_link. */
int pg_take_waiting(struct pg_pool *pool, struct ctx *ctx, struct pg_link **ret_link, struct err *err);
void pg_give_waiting(struct pg_pool *pool, struct pg_link *link);

/* One statement as one operation. A connection that is lost, and a deadlock, are tried again within the deadline;
   `again` (an index into args of a bool, or -1) is then true, and the server's process that may still be at the first
   try is ended before. */
int pg_call(struct pg_pool *pool, struct ctx *ctx, enum pg_stmt_id id, struct pg_args *args, int again,
	    struct pg_result **ret_res, struct err *err);
/* Ends the server's process of a connection that was lost; returns when it is gone. */
int pg_end_other(struct pg_link *link, struct ctx *ctx, const struct pg_link *dead, struct err *err);
const struct pg_stmt *pg_pool_stmt(const struct pg_pool *pool, enum pg_stmt_id id);

#endif
