/* SPDX-License-Identifier: Apache-2.0 */
/* A store on the S3 server that tests/servers/with started, below a prefix of its own. */
#ifndef STEAD_TESTS_S3_FIX_H
#define STEAD_TESTS_S3_FIX_H

#include "store/store_fix.h"

#define S3_BUCKET "stead-test"

/* Swift is the server without conditional writes. */
static bool s3_unconditional(void)
{
	return getenv("STEAD_TEST_SWIFT") && !getenv("STEAD_TEST_S3");
}

/* STEAD_TEST_S3 and the like, or STEAD_TEST_SWIFT and the like. */
static const char *s3_env(const char *behind)
{
	char name[64];
	const char *value;

	snprintf(name, sizeof(name), "STEAD_TEST_%s%s", s3_unconditional() ? "SWIFT" : "S3", behind);
	value = getenv(name);
	if (!value) {
		printf("Bail out! %s is not set; run this with tests/servers/with\n", name);
		exit(1);
	}
	return value;
}

static void s3_keys(void)
{
	setenv("AWS_ACCESS_KEY_ID", s3_env("_KEY"), 1);
	setenv("AWS_SECRET_ACCESS_KEY", s3_env("_SECRET"), 1);
	unsetenv("AWS_SESSION_TOKEN");
	unsetenv("AWS_ENDPOINT_URL");
	unsetenv("AWS_ENDPOINT_URL_S3");
	setenv("AWS_REGION", "us-east-1", 1);
}

/* "s3://…" of `prefix` with `more` options ("" or "&…"), on the server at `endpoint` (NULL: the one that was started).
 */
static void s3_url(char *ret, size_t size, const char *endpoint, const char *prefix, const char *more)
{
	snprintf(ret, size, "s3://" S3_BUCKET "/%s?create=1&endpoint=%s%s", prefix, endpoint ? endpoint : s3_env(""),
		 more);
}

static struct store *s3_at(const char *endpoint, const char *prefix, const char *more)
{
	char url[512];
	struct store *s;
	struct err err;

	s3_keys();
	s3_url(url, sizeof(url), endpoint, prefix, more);
	CHECK_OK(store_open_url(str_of(url), NULL, &s, &err), err);
	return s;
}

/* A prefix that nobody had before. Its objects go with the test. */
static const char *s3_prefix(void)
{
	static char prefix[32];
	char *url = xmalloc(512);

	snprintf(prefix, sizeof(prefix), "t/%016llx", (unsigned long long)random_u64());
	s3_keys();
	s3_url(url, 512, NULL, prefix, s3_unconditional() ? "&single_writer=1" : "");
	test_defer(drop_keys, url);
	return prefix;
}

#endif
