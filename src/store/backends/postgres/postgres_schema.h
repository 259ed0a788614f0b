/* SPDX-License-Identifier: Apache-2.0 */
/* The schema in the database: tables, functions, the statements that call them, and the migration of older schemas. */
#ifndef STEAD_STORE_BACKENDS_POSTGRES_POSTGRES_SCHEMA_H
#define STEAD_STORE_BACKENDS_POSTGRES_POSTGRES_SCHEMA_H

#include "store/backends/postgres/postgres_conn.h"

#define PG_SCHEMA_VERSION 5

/* Up to this many bytes are stored in the file's row, more in chunks of at most this size. */
#define PG_INLINE_MAX (1 * MIB)
/* A file that is appended to goes into chunks from here on, and its last chunk grows up to this. */
#define PG_TAIL_MAX (64 * KIB)
/* Bytes in memory up to this are sent in one statement. */
#define PG_ONE_STATEMENT_MAX (8 * MIB)
/* What is read in one statement; more is read in a transaction of its own. */
#define PG_READ_MAX (8 * MIB)

enum pg_stmt_id {
	PG_STAT,
	PG_READ,
	PG_READ_CHUNKS,
	PG_WRITE,
	PG_APPEND,
	PG_REMOVE,
	PG_MOVE,
	PG_COPY,
	PG_LIST,
	PG_CHUNK,
	PG_JOURNAL_READ,
	PG_JOURNAL_ADD,
	PG_JOURNAL_GROUP,
	PG_JOURNAL_CUT,
	PG_RECEIPT,
	PG_SWEEP,
	PG_STMTS
};
extern const struct pg_stmt pg_stmts[PG_STMTS];

/* Makes the schema, or brings it to PG_SCHEMA_VERSION; refuses a newer one. Safe to run from many at once. */
int pg_migrate(struct pg_link *link, struct ctx *ctx, const struct pg_config *config, struct err *err);
/* The same up to `version` only: for tests of what an older Stead left. */
int pg_migrate_to(struct pg_link *link, struct ctx *ctx, const struct pg_config *config, int version, struct err *err);
/* `sql` with "@" replaced by the quoted schema, on the heap. */
char *pg_in_schema(const struct pg_config *config, const char *sql);

#endif
