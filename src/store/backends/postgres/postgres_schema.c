/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schema in the database. Tables change by numbered steps that are never edited again (postgres/1.sql …), functions
 * belong to the program and are created again with each version. One transaction under an advisory lock does it all, so
 * a schema is whole at one version or at the other, and ten replicas that start together migrate once.
 *
 * Names begin with "stead_", so that the schema may be one that others use as well ("public").
 */
#include "store/backends/postgres/postgres_schema.h"

#include "base/hash.h"
#include "base/limits.h"
#include "store/backends/postgres/postgres_sql.h"

#define OLDEST_SERVER 140000

const struct pg_stmt pg_stmts[PG_STMTS] = {
	[PG_STAT] = {"stead_stat", "SELECT f.version, f.size, f.mtime, CASE WHEN f.path IS NULL THEN "
				   "@.stead_is_dir($1::text) END "
				   "FROM (VALUES (1)) one LEFT JOIN @.stead_files f ON f.path = $1::text"},
	/* Without bytes when they are in chunks. */
	[PG_READ] =
		{"stead_read",
		 "SELECT f.version, f.size, f.mtime, CASE WHEN f.path IS NULL THEN @.stead_is_dir($1::text) END, "
		 "substr(f.content, least($2::bigint, 1048576)::int + 1, least($3::bigint - $2::bigint, 1048576)::int) "
		 "FROM (VALUES (1)) one LEFT JOIN @.stead_files f ON f.path = $1::text"},
	/* The same with chunks, one row each; a file of more than $4 bytes in the range has no bytes here. */
	[PG_READ_CHUNKS] =
		{"stead_read_chunks",
		 "SELECT f.version, f.size, f.mtime, CASE WHEN f.path IS NULL THEN @.stead_is_dir($1::text) END, "
		 "CASE WHEN f.gen IS NULL THEN substr(f.content, least($2::bigint, 1048576)::int + 1, "
		 "least($3::bigint - $2::bigint, 1048576)::int) ELSE c.part END "
		 "FROM (VALUES (1)) one LEFT JOIN @.stead_files f ON f.path = $1::text LEFT JOIN LATERAL ("
		 "SELECT substr(k.bytes, greatest($2::bigint - k.at, 0)::int + 1, "
		 "least($3::bigint - greatest(k.at, $2::bigint), 1048576)::int) AS part "
		 "FROM @.stead_chunks k WHERE k.gen = f.gen AND k.at > $2::bigint - 1048576 AND k.at < $3::bigint "
		 "AND k.at + octet_length(k.bytes) > $2::bigint "
		 "AND least(f.size, $3::bigint) - $2::bigint <= $4::bigint ORDER BY k.at) c ON true"},
	[PG_WRITE] = {"stead_write", "SELECT * FROM @.stead_write($1, $2, $3, $4, $5, $6, $7, $8, $9)"},
	[PG_APPEND] = {"stead_append", "SELECT * FROM @.stead_append($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"},
	[PG_REMOVE] = {"stead_remove", "SELECT * FROM @.stead_remove($1, $2, $3, $4, $5, $6)"},
	[PG_MOVE] = {"stead_move", "SELECT * FROM @.stead_move($1, $2, $3, $4, $5, $6, $7, $8)"},
	[PG_COPY] = {"stead_copy", "SELECT * FROM @.stead_copy($1, $2, $3, $4, $5, $6, $7, $8)"},
	[PG_LIST] = {"stead_list", "SELECT * FROM @.stead_list($1, $2, $3, $4)"},
	[PG_CHUNK] = {"stead_chunk", "INSERT INTO @.stead_chunks VALUES ($1, $2, $3)"},
	[PG_JOURNAL_READ] =
		{"stead_journal_read",
		 "SELECT j.first, j.last, n.number, n.bytes FROM @.stead_journals j "
		 "LEFT JOIN LATERAL @.stead_news(j.id, $2::bigint, $3::bigint) n ON j.first <= $2::bigint + 1 "
		 "WHERE j.path = $1::text"},
	[PG_JOURNAL_ADD] = {"stead_journal_add", "SELECT * FROM @.stead_journal_add($1, $2, $3, $4, $5, $6, $7, $8, "
						 "$9, $10, $11, $12, $13, $14, $15, $16)"},
	[PG_JOURNAL_GROUP] = {"stead_journal_group",
			      "SELECT * FROM @.stead_journal_group($1, $2, $3, $4, $5, $6, $7, $8, "
			      "$9, $10, $11, $12, $13, $14, $15, $16)"},
	[PG_RECEIPT] = {"stead_receipt",
			"SELECT r.token, r.amount, r.mtime FROM @.stead_receipts r WHERE r.token = $1"},
	[PG_SWEEP] = {"stead_sweep", "DELETE FROM @.stead_receipts WHERE made < now() - interval '1 hour'"},
	[PG_JOURNAL_CUT] = {"stead_journal_cut", "SELECT @.stead_journal_cut($1, $2)"},
};

static void add_quoted(struct buf *out, const char *name)
{
	buf_char(out, '"');
	for (const char *c = name; *c; c++) {
		if (*c == '"')
			buf_char(out, '"');
		buf_char(out, *c);
	}
	buf_char(out, '"');
}

char *pg_in_schema(const struct pg_config *config, const char *sql)
{
	struct buf out;

	buf_init(&out, NULL, 4 * MIB);
	for (const char *c = sql; *c; c++) {
		if (*c == '@')
			add_quoted(&out, config->schema);
		else if (*c == '~')
			buf_i64(&out, (int64_t)(hash_u64(str_of(config->schema), 0) >> 2));
		else
			buf_char(&out, *c);
	}
	buf_char(&out, '\0');
	return out.ptr;
}

static int run(struct pg_link *link, struct ctx *ctx, const struct pg_config *config, const char *sql,
	       struct pg_result **ret_res, struct err *err)
{
	char *text = pg_in_schema(config, sql);
	int r = pg_exec_text(link, ctx, text, ret_res, err);

	free(text);
	return r;
}

/* -1: there is none. */
static int schema_version(struct pg_link *link, struct ctx *ctx, const struct pg_config *config, int *ret,
			  struct err *err)
{
	PG_RESULT_SCOPE struct pg_result *there = NULL, *version = NULL;
	int64_t v;
	int r = run(link, ctx, config, "SELECT to_regclass('@.stead_meta') IS NOT NULL", &there, err);

	*ret = -1;
	if (r || str_is(pg_str(there, 0, 0), "f"))
		return r;
	r = run(link, ctx, config, "SELECT version FROM @.stead_meta", &version, err);
	if (r == 0 && pg_rows(version) == 1 && str_to_i64(pg_str(version, 0, 0), &v))
		*ret = (int)v;
	return r;
}

static int check_server(struct pg_link *link, const struct pg_config *config, struct err *err)
{
	int version = pg_server_version(link);

	if (version < OLDEST_SERVER)
		return err_set(err, ERR_UNSUPPORTED, "%s is PostgreSQL %d; Stead needs %d or newer", config->server,
			       version / 10000, OLDEST_SERVER / 10000);
	if (strcmp(pg_server_says(link, "server_encoding"), "UTF8") != 0)
		return err_set(err, ERR_UNSUPPORTED, "%s has the encoding %s; create the database with ENCODING 'UTF8'",
			       config->server, pg_server_says(link, "server_encoding"));
	return 0;
}

static int too_new(const struct pg_config *config, int version, struct err *err)
{
	return err_set(
		err, ERR_UNSUPPORTED,
		"%s: the schema \"%s\" has version %d, but this Stead knows versions up to %d; use a newer Stead",
		config->server, config->schema, version, PG_SCHEMA_VERSION);
}

static int begin_migration(struct pg_link *link, struct ctx *ctx, const struct pg_config *config, struct err *err)
{
	return run(link, ctx, config,
		   "BEGIN; SELECT pg_advisory_xact_lock(~); SET LOCAL client_min_messages = warning; "
		   "DO $$ BEGIN IF to_regnamespace('@') IS NULL THEN CREATE SCHEMA @; END IF; END $$; "
		   "CREATE TABLE IF NOT EXISTS @.stead_meta (version int NOT NULL)",
		   NULL, err);
}

/* All functions of ours, whatever their arguments were. */
static const char drop_functions[] = "DO $$ DECLARE f regprocedure; BEGIN FOR f IN SELECT p.oid FROM pg_proc p "
				     "WHERE p.pronamespace = '@'::regnamespace AND p.proname LIKE 'stead\\_%' LOOP "
				     "EXECUTE 'DROP FUNCTION ' || f || ' CASCADE'; END LOOP; END $$";

static int steps(struct pg_link *link, struct ctx *ctx, const struct pg_config *config, int from, int to,
		 struct err *err)
{
	const struct str step[] = {pg_sql_1, pg_sql_2, STR("SELECT 1") /* functions alone */, STR("SELECT 1"),
				   STR("SELECT 1")};
	char set[120];
	int r = 0;

	for (int v = from < 0 ? 0 : from; r == 0 && v < to; v++)
		r = run(link, ctx, config, step[v].ptr, NULL, err);
	if (r == 0)
		r = run(link, ctx, config, drop_functions, NULL, err);
	if (r == 0 && to == PG_SCHEMA_VERSION)
		r = run(link, ctx, config, pg_sql_functions.ptr, NULL, err);
	if (r)
		return r;
	snprintf(set, sizeof(set), "DELETE FROM @.stead_meta; INSERT INTO @.stead_meta VALUES (%d); COMMIT", to);
	return run(link, ctx, config, set, NULL, err);
}

int pg_migrate_to(struct pg_link *link, struct ctx *ctx, const struct pg_config *config, int to, struct err *err)
{
	struct err ignored;
	int version, r = check_server(link, config, err);

	if (r == 0)
		r = schema_version(link, ctx, config, &version, err);
	if (r == 0 && version > PG_SCHEMA_VERSION)
		r = too_new(config, version, err);
	if (r || version >= to)
		return r;
	r = begin_migration(link, ctx, config, err);
	if (r == 0)
		r = schema_version(link, ctx, config, &version, err); /* another may have been faster */
	if (r == 0 && version > PG_SCHEMA_VERSION)
		r = too_new(config, version, err);
	if (r == 0 && version < to)
		return steps(link, ctx, config, version, to, err);
	run(link, ctx, config, "ROLLBACK", NULL, &ignored);
	return r;
}

int pg_migrate(struct pg_link *link, struct ctx *ctx, const struct pg_config *config, struct err *err)
{
	return pg_migrate_to(link, ctx, config, PG_SCHEMA_VERSION, err);
}
