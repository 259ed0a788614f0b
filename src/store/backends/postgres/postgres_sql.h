/* SPDX-License-Identifier: Apache-2.0 */
/* The files of postgres/, as text. Each ends in a NUL. */
#ifndef STEAD_STORE_BACKENDS_POSTGRES_POSTGRES_SQL_H
#define STEAD_STORE_BACKENDS_POSTGRES_POSTGRES_SQL_H

#include "base/str.h"

extern const struct str pg_sql_1, pg_sql_2, pg_sql_functions;

#endif
