/* SPDX-License-Identifier: Apache-2.0 */
/* The MySQL store's own parts, shared by its files. */
#ifndef STEAD_STORE_BACKENDS_MYSQL_MYSQL_H
#define STEAD_STORE_BACKENDS_MYSQL_MYSQL_H

#include "store/backends/mysql/mysql_pool.h"
#include "store/journal.h"

struct mysql_store {
	struct store base;
	struct my_pool *pool;
};

static inline struct mysql_store *mysql_of(struct store *s)
{
	return (struct mysql_store *)s;
}

#define MY_SQL_SCOPE __attribute__((cleanup(my_sql_release)))

void my_sql_cond(struct my_sql *sql, struct store_cond cond); /* "kind, version" */

int mysql_write(struct store *s, struct ctx *ctx, struct wpath path, const struct source *source,
		struct store_cond cond, struct store_stat *ret_stat, struct err *err);
int mysql_append(struct store *s, struct ctx *ctx, struct wpath path, const struct source *source,
		 struct store_cond cond, struct store_stat *ret_stat, struct err *err);
int mysql_journal_read(struct store *s, struct ctx *ctx, struct wpath journal, const struct journal_read *req,
		       struct journal_page *ret_page, struct err *err);
int mysql_journal_add(struct store *s, struct ctx *ctx, struct wpath journal, struct wpath to, struct store_cond cond,
		      const struct journal_add *add, struct journal_added *ret_added, struct err *err);
int mysql_journal_cut(struct store *s, struct ctx *ctx, struct wpath journal, uint64_t before, struct err *err);

#endif
