/* SPDX-License-Identifier: Apache-2.0 */
/* The PostgreSQL store's own parts, shared by its files. */
#ifndef STEAD_STORE_BACKENDS_POSTGRES_POSTGRES_H
#define STEAD_STORE_BACKENDS_POSTGRES_POSTGRES_H

#include "store/backends/postgres/postgres_pool.h"
#include "store/journal.h"

struct postgres {
	struct store base;
	struct pg_pool *pool;
};

static inline struct postgres *postgres_of(struct store *s)
{
	return (struct postgres *)s;
}

#define PG_VERSION_LEN 16

void pg_arg_cond(struct pg_args *args, struct store_cond cond); /* its kind and its version */

int postgres_write(struct store *s, struct ctx *ctx, struct wpath path, const struct source *source,
		   struct store_cond cond, struct store_stat *ret_stat, struct err *err);
int postgres_append(struct store *s, struct ctx *ctx, struct wpath path, const struct source *source,
		    struct store_cond cond, struct store_stat *ret_stat, struct err *err);
int postgres_journal_read(struct store *s, struct ctx *ctx, struct wpath journal, const struct journal_read *req,
			  struct journal_page *ret_page, struct err *err);
int postgres_journal_add(struct store *s, struct ctx *ctx, struct wpath journal, struct wpath to,
			 struct store_cond cond, const struct journal_add *add, struct journal_added *ret_added,
			 struct err *err);
int postgres_journal_cut(struct store *s, struct ctx *ctx, struct wpath journal, uint64_t before, struct err *err);

#endif
