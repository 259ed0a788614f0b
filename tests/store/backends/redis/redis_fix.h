/* SPDX-License-Identifier: Apache-2.0 */
/* Stores in the Redis server that tests/servers/redis started, each under a prefix of its own. */
#ifndef STEAD_TESTS_REDIS_FIX_H
#define STEAD_TESTS_REDIS_FIX_H

#include <unistd.h>

#include "store/store_fix.h"

static const char *redis_env(const char *name)
{
	const char *value = getenv(name);

	if (!value) {
		printf("# %s is not set: run this through tests/servers/with redis --\n", name);
		abort();
	}
	return value;
}

/* A prefix that no other store of any test has; good until eight more were asked for. Its keys go with the test. */
static const char *redis_prefix(void)
{
	static char prefixes[8][32];
	static unsigned count;
	char *prefix = prefixes[++count % 8], *url = NULL;

	snprintf(prefix, sizeof(prefixes[0]), "t%d-%u", (int)getpid(), count);
	if (asprintf(&url, "%s?prefix=%s", redis_env("STEAD_TEST_REDIS"), prefix) < 0)
		abort();
	test_defer(drop_keys, url);
	return prefix;
}

static struct store *redis_open_at(const char *base, const char *prefix, const char *options)
{
	char url[512];
	struct store *s;
	struct err err;

	snprintf(url, sizeof(url), "%s?prefix=%s%s", base, prefix, options);
	CHECK_OK(store_open_url(str_of(url), NULL, &s, &err), err);
	return s;
}

static struct store *redis_open_new(void)
{
	return redis_open_at(redis_env("STEAD_TEST_REDIS"), redis_prefix(), "");
}

#endif
