/* SPDX-License-Identifier: Apache-2.0 */
/* The tables and procedures in the database, and the migration of older ones. */
#ifndef STEAD_STORE_BACKENDS_MYSQL_MYSQL_SCHEMA_H
#define STEAD_STORE_BACKENDS_MYSQL_MYSQL_SCHEMA_H

#include "store/backends/mysql/mysql_conn.h"

#define MY_SCHEMA_VERSION 1

/* Bytes in memory up to this are sent in one statement and stored in the file's row; more in chunks of this size. */
#define MY_INLINE_MAX (1 * MIB)

/* Makes the tables and procedures, or brings them to MY_SCHEMA_VERSION; refuses newer ones. Safe to run from many at
   once. */
int my_migrate(struct my_link *link, struct ctx *ctx, const struct my_config *config, struct err *err);

#endif
