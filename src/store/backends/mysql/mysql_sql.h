/* SPDX-License-Identifier: Apache-2.0 */
/* The SQL files next to this one, embedded by the build. */
#ifndef STEAD_STORE_BACKENDS_MYSQL_MYSQL_SQL_H
#define STEAD_STORE_BACKENDS_MYSQL_MYSQL_SQL_H

#include "base/str.h"

extern const struct str my_sql_1, my_sql_procedures;

#endif
