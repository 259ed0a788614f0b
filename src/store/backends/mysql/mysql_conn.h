/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection to MariaDB or MySQL: libmariadb with deadlines. Nothing else knows the library; the pool is
 * mysql_pool.h.
 *
 * Statements are text. Values are put into it by struct my_sql, which is the only way in which a value gets there:
 * bytes between quotes that are doubled, under a mode in which nothing else has a meaning between quotes.
 */
#ifndef STEAD_STORE_BACKENDS_MYSQL_MYSQL_CONN_H
#define STEAD_STORE_BACKENDS_MYSQL_MYSQL_CONN_H

#include "base/buf.h"
#include "base/ctx.h"
#include "base/env.h"
#include "store/sql.h"

/* The settings from the URL, all owned. */
struct my_config {
	char *host, *user, *database;
	char *socket;   /* NULL: TCP */
	char *password; /* NULL: none */
	char *ca;       /* a file of certificates: TLS, and the server's is checked; NULL: as the server wants */
	char *server;   /* for sentences */
	char *prefix;
	unsigned port;
	int64_t timeout_ns; /* of one statement */
	unsigned pool;      /* connections at most */
};

/* mysql://USER@HOST:PORT/DATABASE?prefix=…&pool=…&timeout=…&socket=…&ssl-ca=… */
int my_config_parse(struct str url, const struct env *env, struct my_config *ret, struct err *err);
void my_config_release(struct my_config *config);

/* A statement, or several with ';' between them, that is being written. */
struct my_sql {
	struct buf text;
	size_t again; /* where the digit of the last my_sql_again() is */
};
/* On the heap: my_sql_release(). */
void my_sql_init(struct my_sql *sql, const char *begin);
void my_sql_release(struct my_sql *sql);
void my_sql_add(struct my_sql *sql, const char *text);
void my_sql_str(struct my_sql *sql, struct str value); /* text or bytes */
void my_sql_i64(struct my_sql *sql, int64_t value);
/* 0, or 1 after my_sql_set_again(): the answer to the same statement was lost. */
void my_sql_again(struct my_sql *sql);
void my_sql_set_again(struct my_sql *sql);

/* The rows of an answer; the last result set of several, or what `set` of my_exec() says. */
struct my_result;
size_t my_rows(const struct my_result *res);
bool my_null(const struct my_result *res, size_t row, unsigned col);
struct str my_str(const struct my_result *res, size_t row, unsigned col); /* lives as long as the answer */
int64_t my_i64(const struct my_result *res, size_t row, unsigned col);    /* 0 for NULL */
void my_result_free(struct my_result *res);
/* The result set after this one in the same answer; NULL: there is none. */
const struct my_result *my_result_next(const struct my_result *res);
static inline void my_result_cleanup(struct my_result **res)
{
	if (*res)
		my_result_free(*res);
}
#define MY_RESULT_SCOPE __attribute__((cleanup(my_result_cleanup)))

struct st_mysql; /* the library's */

/* One connection; belongs to one thread at a time. */
struct my_link {
	struct sql_link base;
	struct st_mysql *conn;
	const struct my_config *config;
	char name[40]; /* a lock that its session holds, by which another finds and ends it */
};

/* Connected and nothing more. Fails by its deadline with the reason and what to do. */
int my_open(const struct my_config *config, struct ctx *ctx, struct my_link **ret_link, struct err *err);
void my_close(struct my_link *link);
/* 101119 is 10.11.19. */
unsigned long my_server_version(const struct my_link *link, bool *ret_mariadb);
/* One round trip, the whole answer. `ret_res` NULL: no rows are wanted. */
int my_exec(struct my_link *link, struct ctx *ctx, struct str sql, struct my_result **ret_res, struct err *err);
/* The rows of a single SELECT one by one, in bounded memory: `row` gets each as an answer of one row. What it returns
   other than 0 ends the call and the connection. */
int my_stream(struct my_link *link, struct ctx *ctx, struct str sql,
	      int (*row)(void *arg, const struct my_result *res, struct err *err), void *arg, struct err *err);
void my_abandon(struct my_link *link);

#endif
