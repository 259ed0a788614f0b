/* SPDX-License-Identifier: Apache-2.0 */
/* The contract of stores and journals, on a real PostgreSQL: bare, with a prefix, through TLS, with revisions. */
#include "revisions/revisions.h"
#include "store/backends/postgres/postgres_fix.h"
#include "store/conformance.h"
#include "store/journal_conformance.h"

static struct store *bare(void)
{
	return postgres_empty("schema=bare");
}

static struct store *prefixed(void)
{
	return postgres_empty("schema=prefixed&prefix=team/one");
}

static struct store *through_tls(void)
{
	char params[600];

	snprintf(params, sizeof(params), "schema=tls&sslmode=verify-full&sslrootcert=%s",
		 postgres_env("STEAD_TEST_POSTGRES_CA"));
	return postgres_empty(params);
}

static struct store *without_session(void)
{
	return postgres_empty("schema=pooled&pooler=transaction");
}

static struct store *with_revisions(struct revisions_opts opts)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};
	struct store *s;
	struct err err;

	CHECK_OK(store_revisions_open(postgres_empty("schema=revised&prefix=files"),
				      postgres_empty("schema=revised&prefix=meta"), opts, &ctx, &s, &err),
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

TEST(postgres_keeps_the_contract)
{
	conf_run(&store_cases, bare);
}

TEST(a_prefix_in_postgres_keeps_the_contract)
{
	conf_run(&store_cases, prefixed);
}

TEST(postgres_through_tls_keeps_the_contract)
{
	conf_run(&store_cases, through_tls);
}

TEST(postgres_without_anything_kept_in_a_session_keeps_the_contract)
{
	conf_run(&store_cases, without_session);
}

TEST(revisions_in_files_in_postgres_keep_the_contract)
{
	conf_run(&store_cases, with_segments);
}

TEST(revisions_in_a_journal_in_postgres_keep_the_contract)
{
	conf_run(&store_cases, with_a_journal);
}

TEST(revisions_in_one_step_in_postgres_keep_the_contract)
{
	conf_run(&store_cases, in_one_step);
}

TEST(a_journal_in_postgres_keeps_the_contract)
{
	conf_run(&journal_cases, bare);
}

TEST(a_journal_behind_a_prefix_in_postgres_keeps_the_contract)
{
	conf_run(&journal_cases, prefixed);
}

TEST(a_journal_in_postgres_without_a_session_keeps_the_contract)
{
	conf_run(&journal_cases, without_session);
}
