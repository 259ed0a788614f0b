/* SPDX-License-Identifier: Apache-2.0 */
/* The contract of stores and journals, on a real MariaDB: bare, with a prefix, with revisions. */
#include "revisions/revisions.h"
#include "store/backends/mysql/mysql_fix.h"
#include "store/conformance.h"
#include "store/journal_conformance.h"

static struct store *bare(void)
{
	return mysql_empty("pool=24");
}

static struct store *prefixed(void)
{
	return mysql_empty("prefix=team/one");
}

static struct store *with_revisions(struct revisions_opts opts)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};
	struct store *s;
	struct err err;

	CHECK_OK(store_revisions_open(mysql_empty("prefix=revised/files"), mysql_empty("prefix=revised/meta"), opts,
				      &ctx, &s, &err),
		 err);
	return s;
}

static struct store *with_segments(void)
{
	return with_revisions((struct revisions_opts){0});
}

static struct store *with_a_journal(void)
{
	return with_revisions((struct revisions_opts){.journal = true});
}

static struct store *in_one_step(void)
{
	return with_revisions((struct revisions_opts){.journal = true, .own = P(".stead/rev")});
}

TEST(mariadb_keeps_the_contract)
{
	conf_run(&store_cases, bare);
}

TEST(a_prefix_in_mariadb_keeps_the_contract)
{
	conf_run(&store_cases, prefixed);
}

TEST(revisions_in_files_in_mariadb_keep_the_contract)
{
	conf_run(&store_cases, with_segments);
}

TEST(revisions_in_a_journal_in_mariadb_keep_the_contract)
{
	conf_run(&store_cases, with_a_journal);
}

TEST(revisions_in_one_step_in_mariadb_keep_the_contract)
{
	conf_run(&store_cases, in_one_step);
}

TEST(a_journal_in_mariadb_keeps_the_contract)
{
	conf_run(&journal_cases, bare);
}

TEST(a_journal_behind_a_prefix_in_mariadb_keeps_the_contract)
{
	conf_run(&journal_cases, prefixed);
}
