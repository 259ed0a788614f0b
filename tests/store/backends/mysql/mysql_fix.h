/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the MySQL store share. They run below `tests/servers/with mariadb -- …`. */
#ifndef STEAD_TESTS_MYSQL_FIX_H
#define STEAD_TESTS_MYSQL_FIX_H

#include "store/store_fix.h"

static const char *mysql_env(const char *name)
{
	const char *value = getenv(name);

	if (!value) {
		printf("# %s is not set; run this test with tests/servers/with mariadb -- TEST\n", name);
		exit(1);
	}
	return value;
}

static struct store *mysql_open(const char *params)
{
	struct store *s = NULL;
	struct err err;
	char url[1500];

	snprintf(url, sizeof(url), "%s?%s", mysql_env("STEAD_TEST_MARIADB"), params);
	CHECK_OK(store_open_url(str_of(url), NULL, &s, &err), err);
	return s;
}

/* The same with nothing in it. */
static struct store *mysql_empty(const char *params)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};
	struct store *s = mysql_open(params);
	struct err err;

	CHECK_OK(store_remove(s, &ctx, WPATH_ROOT, true, ANY, NULL, &err), err);
	return s;
}

/* For store/server_fault_test.c. */
#define SERVER_SCRIPT      "mariadb"
#define SERVER_URL         mysql_env("STEAD_TEST_MARIADB")
#define SERVER_DIR         mysql_env("STEAD_TEST_DIR_MARIADB")
#define SERVER_PROXIED     "mysql://stead@127.0.0.1:%u/stead?%s"
#define SERVER_PLACE(name) "prefix=" name
#define server_open        mysql_open
#define server_empty       mysql_empty

#endif
