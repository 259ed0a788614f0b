/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection to PostgreSQL: libpq with deadlines. Nothing else knows libpq; the pool is postgres_pool.h.
 *
 * A statement is sent and its answer awaited by polling, so that every wait ends by the call's deadline, by the
 * time-out of the URL, or when the call is cancelled. Whoever gives up closes the connection; the server then notices
 * (it checks once a second) and ends the statement.
 */
#ifndef STEAD_STORE_BACKENDS_POSTGRES_POSTGRES_CONN_H
#define STEAD_STORE_BACKENDS_POSTGRES_POSTGRES_CONN_H

#include "base/buf.h"
#include "base/ctx.h"
#include "base/env.h"
#include "store/sql.h"

/* The settings from the URL, all owned. */
struct pg_config {
	char *conninfo; /* for libpq, without what is ours */
	char *password; /* from STEAD_POSTGRES_PASSWORD, or NULL: libpq looks for one itself */
	char *server;   /* "database "d" on h:p", for sentences */
	char *schema;
	char *prefix;
	int64_t timeout_ns; /* of one statement */
	unsigned pool;      /* connections at most */
	bool pooler;        /* connected through a transaction pooler: nothing may be kept in a session */
};

/* postgres://user@host:port/db?schema=…&prefix=…&pool=…&timeout=…&pooler=transaction and libpq's own parameters. */
int pg_config_parse(struct str url, const struct env *env, struct pg_config *ret, struct err *err);
void pg_config_release(struct pg_config *config);

/* A statement: prepared once per connection under its name. */
struct pg_stmt {
	const char *name;
	const char *text; /* the types of its parameters follow from it; "@" stands for the schema */
};

#define PG_ARGS_MAX 16

/* Parameters, in binary form; what they point to must stay until the call ends. */
struct pg_args {
	int n;
	const char *value[PG_ARGS_MAX];
	int length[PG_ARGS_MAX];
	char number[PG_ARGS_MAX][8];
	bool is_number[PG_ARGS_MAX];
};

void pg_arg_str(struct pg_args *args, struct str s); /* text or bytea */
void pg_arg_null(struct pg_args *args);
void pg_arg_i64(struct pg_args *args, int64_t v);
void pg_arg_i32(struct pg_args *args, int32_t v);
void pg_arg_bool(struct pg_args *args, bool v);
void pg_set_bool(struct pg_args *args, int index, bool v); /* of one that is there */

/* An answer, or one row of it. */
struct pg_result;
int pg_rows(const struct pg_result *res);
bool pg_null(const struct pg_result *res, int row, int col);
struct str pg_str(const struct pg_result *res, int row, int col); /* lives as long as the answer */
int64_t pg_i64(const struct pg_result *res, int row, int col);    /* int or bigint; 0 for NULL */
bool pg_bool(const struct pg_result *res, int row, int col);
void pg_result_free(struct pg_result *res);
static inline void pg_result_cleanup(struct pg_result **res)
{
	if (*res)
		pg_result_free(*res);
}
#define PG_RESULT_SCOPE __attribute__((cleanup(pg_result_cleanup)))

struct pg_conn; /* libpq's */

/* One connection; belongs to one thread at a time. */
struct pg_link {
	struct sql_link base;
	struct pg_conn *conn;
	const struct pg_config *config;
	int64_t pid; /* who serves it, and since when */
	char began[40];
};

/* Connected and nothing more. Fails by its deadline with the reason and what to do. */
int pg_open(const struct pg_config *config, struct ctx *ctx, struct pg_link **ret_link, struct err *err);
void pg_close(struct pg_link *link);
/* 150020 is 15.20. */
int pg_server_version(const struct pg_link *link);
/* A setting that the server reports by itself, such as "server_encoding"; never NULL. */
const char *pg_server_says(const struct pg_link *link, const char *name);

/* One statement, one round trip, the whole answer. */
int pg_exec(struct pg_link *link, struct ctx *ctx, const struct pg_stmt *stmt, const struct pg_args *args,
	    struct pg_result **ret_res, struct err *err);
/* Statements without parameters, separated by ';', one round trip; the last one's answer (ret_res may be NULL). */
int pg_exec_text(struct pg_link *link, struct ctx *ctx, const char *sql, struct pg_result **ret_res, struct err *err);
/* The answer row by row: pg_next gives one row, NULL at the end. Stopping before the end closes the connection. */
int pg_begin(struct pg_link *link, struct ctx *ctx, const struct pg_stmt *stmt, const struct pg_args *args,
	     struct err *err);
int pg_next(struct pg_link *link, struct ctx *ctx, struct pg_result **ret_row, struct err *err);
void pg_abandon(struct pg_link *link);
/* Waits until the server notifies this connection; ERR_TIMEOUT when `until_ns` comes first. */
int pg_wait_notify(struct pg_link *link, struct ctx *ctx, int64_t until_ns, struct err *err);

/* An error that the server reported with this SQLSTATE (five characters) and sentence, in our words. */
int pg_error(const struct pg_config *config, const char *state, const char *says, struct err *err);
/* 0 when libpq understands the connection string and there is no password in it. */
int pg_conninfo_check(const char *conninfo, struct err *err);

#endif
