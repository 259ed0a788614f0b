/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables change by numbered steps that are never edited again (1.sql …), procedures belong to the program and are made
 * again with each version. The server commits after each of these statements, so a migration is not one transaction:
 * it runs under a lock of the server, each statement of a step can be repeated, and the version is written last. One
 * that was cut off is taken up again by the next that opens the store.
 */
#include "store/backends/mysql/mysql_schema.h"

#include "base/limits.h"
#include "store/backends/mysql/mysql_sql.h"

#define OLDEST_MARIADB 100500
#define OLDEST_MYSQL   80000
#define LOCK_SECONDS   60

static const struct str next_mark = STR("-- next\n");

static int run(struct my_link *link, struct ctx *ctx, const char *sql, struct my_result **ret, struct err *err)
{
	return my_exec(link, ctx, str_of(sql), ret, err);
}

/* Each statement up to the mark is sent by itself. */
static int run_all(struct my_link *link, struct ctx *ctx, struct str sql, struct err *err)
{
	int r = 0;

	while (r == 0 && sql.len) {
		size_t end = str_find(sql, next_mark, 0);
		struct str one = end == SIZE_MAX ? sql : str_first(sql, end);

		sql = end == SIZE_MAX ? STR("") : str_from(sql, end + next_mark.len);
		r = my_exec(link, ctx, str_trim(one), NULL, err);
	}
	return r;
}

/* -1: there is none. */
static int schema_version(struct my_link *link, struct ctx *ctx, int *ret, struct err *err)
{
	MY_RESULT_SCOPE struct my_result *there = NULL, *version = NULL;
	int r = run(link, ctx,
		    "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE() "
		    "AND table_name = 'stead_meta'",
		    &there, err);

	*ret = -1;
	if (r || my_i64(there, 0, 0) == 0)
		return r;
	r = run(link, ctx, "SELECT MAX(version) FROM stead_meta", &version, err);
	if (r == 0 && !my_null(version, 0, 0))
		*ret = (int)my_i64(version, 0, 0);
	return r;
}

static int check_server(struct my_link *link, const struct my_config *config, struct err *err)
{
	bool mariadb;
	unsigned long version = my_server_version(link, &mariadb);
	unsigned long oldest = mariadb ? OLDEST_MARIADB : OLDEST_MYSQL;

	if (version >= oldest)
		return 0;
	return err_set(err, ERR_UNSUPPORTED, "%s is served by %s %lu.%lu; Stead needs %lu.%lu or newer", config->server,
		       mariadb ? "MariaDB" : "MySQL", version / 10000, version / 100 % 100, oldest / 10000,
		       oldest / 100 % 100);
}

static int too_new(const struct my_config *config, int version, struct err *err)
{
	return err_set(err, ERR_UNSUPPORTED,
		       "%s: its tables have version %d, but this Stead knows versions up to %d; use a newer Stead",
		       config->server, version, MY_SCHEMA_VERSION);
}

static const char drop_procedures[] =
	"DROP PROCEDURE IF EXISTS stead_lock; DROP PROCEDURE IF EXISTS stead_place; "
	"DROP PROCEDURE IF EXISTS stead_split; DROP PROCEDURE IF EXISTS stead_put; "
	"DROP PROCEDURE IF EXISTS stead_write; DROP PROCEDURE IF EXISTS stead_add; "
	"DROP PROCEDURE IF EXISTS stead_append; DROP PROCEDURE IF EXISTS stead_take; "
	"DROP PROCEDURE IF EXISTS stead_remove; DROP PROCEDURE IF EXISTS stead_shift; "
	"DROP PROCEDURE IF EXISTS stead_move; DROP PROCEDURE IF EXISTS stead_copy; "
	"DROP PROCEDURE IF EXISTS stead_list; DROP PROCEDURE IF EXISTS stead_news; "
	"DROP PROCEDURE IF EXISTS stead_journal_add; DROP PROCEDURE IF EXISTS stead_journal_cut";

static int migrate_locked(struct my_link *link, struct ctx *ctx, const struct my_config *config, struct err *err)
{
	char set[120];
	int version, r = schema_version(link, ctx, &version, err); /* another may have been faster */

	if (r == 0 && version > MY_SCHEMA_VERSION)
		return too_new(config, version, err);
	if (r || version == MY_SCHEMA_VERSION)
		return r;
	r = run(link, ctx, "CREATE TABLE IF NOT EXISTS stead_meta (version INT NOT NULL) ENGINE = InnoDB", NULL, err);
	if (r == 0)
		r = run_all(link, ctx, my_sql_1, err);
	if (r == 0)
		r = run(link, ctx, drop_procedures, NULL, err);
	if (r == 0)
		r = run_all(link, ctx, my_sql_procedures, err);
	snprintf(set, sizeof set,
		 "START TRANSACTION; DELETE FROM stead_meta; INSERT INTO stead_meta VALUES (%d); COMMIT",
		 MY_SCHEMA_VERSION);
	return r ? r : run(link, ctx, set, NULL, err);
}

int my_migrate(struct my_link *link, struct ctx *ctx, const struct my_config *config, struct err *err)
{
	MY_RESULT_SCOPE struct my_result *locked = NULL;
	int version, r = check_server(link, config, err);

	if (r == 0)
		r = schema_version(link, ctx, &version, err);
	if (r == 0 && version > MY_SCHEMA_VERSION)
		return too_new(config, version, err);
	if (r || version == MY_SCHEMA_VERSION)
		return r;
	r = run(link, ctx, "SELECT GET_LOCK(CONCAT('stead_migrate_', DATABASE()), 60)", &locked, err);
	if (r == 0 && my_i64(locked, 0, 0) != 1)
		return err_set(err, ERR_TIMEOUT,
			       "%s: another Stead has been creating its tables for more than %d seconds; try again",
			       config->server, LOCK_SECONDS);
	if (r == 0)
		r = migrate_locked(link, ctx, config, err);
	return r; /* the lock goes with the connection */
}
