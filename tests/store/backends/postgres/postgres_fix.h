/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the PostgreSQL store share. They run below `tests/servers/with postgres -- …`. */
#ifndef STEAD_TESTS_POSTGRES_FIX_H
#define STEAD_TESTS_POSTGRES_FIX_H

#include "store/store_fix.h"

static const char *postgres_env(const char *name)
{
	const char *value = getenv(name);

	if (!value) {
		printf("# %s is not set; run this test with tests/servers/with postgres -- TEST\n", name);
		exit(1);
	}
	return value;
}

/* The server's URL with parameters appended, valid until this thread asks for the next one. */
static const char *postgres_url(const char *params)
{
	static _Thread_local char url[1500];

	snprintf(url, sizeof(url), "%s?%s", postgres_env("STEAD_TEST_POSTGRES"), params);
	return url;
}

static struct store *postgres_open(const char *params)
{
	struct store *s = NULL;
	struct err err;

	CHECK_OK(store_open_url(str_of(postgres_url(params)), NULL, &s, &err), err);
	return s;
}

/* The same with nothing in it. */
static struct store *postgres_empty(const char *params)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};
	struct store *s = postgres_open(params);
	struct err err;

	CHECK_OK(store_remove(s, &ctx, WPATH_ROOT, true, ANY, NULL, &err), err);
	return s;
}

/* For store/server_fault_test.c. */
#define SERVER_SCRIPT      "postgres"
#define SERVER_URL         postgres_env("STEAD_TEST_POSTGRES")
#define SERVER_DIR         postgres_env("STEAD_TEST_DIR_POSTGRES")
#define SERVER_PROXIED     "postgres://stead@127.0.0.1:%u/stead?%s&sslmode=disable"
#define SERVER_PLACE(name) "schema=" name
#define server_open        postgres_open
#define server_empty       postgres_empty

#endif
