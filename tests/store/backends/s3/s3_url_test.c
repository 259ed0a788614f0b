/* SPDX-License-Identifier: Apache-2.0 */
/* What the URL of an S3 store may say, what the environment adds, the address of a request, and the XML of answers. No
 * S3 server is asked. */
#include "store/backends/s3/s3.h"

#include "net/loopback.h"
#include "store/store_fix.h"

static void clean_env(void)
{
	static const char *const names[] = {"AWS_ACCESS_KEY_ID",   "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
					    "AWS_REGION",          "AWS_DEFAULT_REGION",    "AWS_ENDPOINT_URL",
					    "AWS_ENDPOINT_URL_S3", "AWS_S3_BUCKET",         "R2_ACCOUNT_ID",
					    "R2_ACCESS_KEY_ID",    "R2_SECRET_ACCESS_KEY",  "R2_BUCKET_NAME"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unsetenv(names[i]);
	setenv("AWS_ACCESS_KEY_ID", "AKID", 1);
	setenv("AWS_SECRET_ACCESS_KEY", "s3cr3t", 1);
	setenv("R2_ACCESS_KEY_ID", "R2ID", 1);
	setenv("R2_SECRET_ACCESS_KEY", "s3cr3t", 1);
}

static struct s3 *opened(const char *url)
{
	struct store *s;
	struct err err;

	CHECK_OK(store_open_url(str_of(url), NULL, &s, &err), err);
	return s3_of(s);
}

static void refused(const char *url, const char *because)
{
	struct store *s;
	struct err err;

	CHECK(store_open_url(str_of(url), NULL, &s, &err) != 0);
	CHECK_HAS(str_of(err.msg), str_of(because));
	CHECK_LACKS(str_of(err.msg), STR("s3cr3t"));
}

TEST(a_url_names_bucket_prefix_region_and_style)
{
	struct s3 *s3;

	clean_env();
	s3 = opened("s3://bucket/a/b/?region=eu-central-1");
	CHECK_STR(str_of(s3->conf.bucket), STR("bucket"));
	CHECK_STR(str_of(s3->conf.prefix), STR("a/b/"));
	CHECK_STR(str_of(s3->region), STR("eu-central-1"));
	CHECK(s3->conf.aws && !s3->conf.path_style);
	store_destroy(&s3->base);
	s3 = opened("s3://bucket?endpoint=http://127.0.0.1:9000&create=1&sse=AES256");
	CHECK(s3->conf.path_style && s3->conf.create && !s3->conf.aws);
	CHECK_STR(str_of(s3->conf.prefix), STR(""));
	CHECK_STR(str_of(s3->conf.sse), STR("AES256"));
	store_destroy(&s3->base);
}

TEST(the_environment_gives_what_the_url_leaves_out)
{
	struct s3 *s3;

	clean_env();
	setenv("AWS_S3_BUCKET", "from-env", 1);
	setenv("AWS_REGION", "eu-west-3", 1);
	setenv("AWS_SESSION_TOKEN", "session", 1);
	setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9000/", 1);
	s3 = opened("s3://");
	CHECK_STR(str_of(s3->conf.bucket), STR("from-env"));
	CHECK_STR(str_of(s3->region), STR("eu-west-3"));
	CHECK_STR(str_of(s3->conf.session), STR("session"));
	CHECK_STR(str_of(s3->conf.endpoint), STR("http://127.0.0.1:9000"));
	store_destroy(&s3->base);
}

TEST(an_r2_url_goes_to_the_account_in_its_jurisdiction)
{
	struct s3 *s3;

	clean_env();
	setenv("R2_ACCOUNT_ID", "abc", 1);
	s3 = opened("r2://bucket/p");
	CHECK_STR(str_of(s3->conf.endpoint), STR("https://abc.r2.cloudflarestorage.com"));
	CHECK_STR(str_of(s3->region), STR("auto"));
	store_destroy(&s3->base);
	s3 = opened("r2://bucket/p?account=def&jurisdiction=eu");
	CHECK_STR(str_of(s3->conf.endpoint), STR("https://def.eu.r2.cloudflarestorage.com"));
	store_destroy(&s3->base);
}

static int keep(void *arg, const void *bytes, size_t len, struct err *err)
{
	(void)err;
	buf_add(arg, str_n(bytes, len));
	return 0;
}

/* The bucket's name makes the server answer with the request that it got. */
TEST(a_request_has_its_whole_query_however_long_it_is)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct loopback *server = loopback_start();
	struct ctx ctx = {.arena = arena};
	struct s3_answer answer;
	struct err err;
	struct buf request;
	struct str name = {arena_alloc(arena, 3000), 3000};
	struct s3_call call = {.method = "GET", .query = {{"prefix", name}, {"start-after", name}}, .push = keep};
	struct s3 *s3;

	clean_env();
	s3 = opened(arena_printf(arena, "s3://echo?endpoint=http://127.0.0.1:%d", loopback_port(server)).ptr);
	memset((char *)name.ptr, '"', name.len);
	buf_init(&request, arena, MIB);
	call.arg = &request;
	CHECK_OK(s3_call(s3, &ctx, &call, &answer, &err), err);
	CHECK_INT(str_find_char(str_from(buf_str(&request), 4), ' '), strlen("/echo?prefix=&start-after=") + 3 * 6000);
	store_destroy(&s3->base);
	loopback_stop(server);
}

TEST(a_url_that_is_wrong_says_what_to_write)
{
	clean_env();
	refused("s3://bucket?regoin=x", "did you mean \"region\"");
	refused("r2://bucket?account=a&region=x", "r2 stores do not know");
	refused("s3://bucket?create=yes", "write 0 or 1");
	refused("s3://key:s3cr3t@bucket/p", "must hold no key or secret");
	refused("s3://bucket?endpoint=ftp://x", "https://HOST");
	refused("s3://bucket/../x", "prefix");
	refused("s3:///p", "names no bucket");
	refused("r2://bucket", "R2_ACCOUNT_ID");
	refused("s3://bucket?sse=rot13", "AES256 or aws:kms");
	unsetenv("AWS_SECRET_ACCESS_KEY");
	refused("s3://bucket", "set AWS_SECRET_ACCESS_KEY in the environment");
}

/* XML. */

TEST(a_listing_is_read_in_key_order)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct s3_listing list;
	struct err err;
	struct str xml = STR("<?xml version=\"1.0\"?><ListBucketResult xmlns=\"x\"><IsTruncated>true</IsTruncated>"
			     "<NextContinuationToken>a+b/=&amp;</NextContinuationToken>"
			     "<Contents><Key>p/z%20%2B</Key><LastModified>2026-11-15T12:00:00.500Z</LastModified>"
			     "<ETag>&quot;abc&quot;</ETag><Size>12</Size><Owner><ID>p</ID></Owner></Contents>"
			     "<CommonPrefixes><Prefix>p/d/</Prefix></CommonPrefixes></ListBucketResult>");

	CHECK_OK(s3_xml_listing(arena, xml, &list, &err), err);
	CHECK_INT(list.count, 2);
	CHECK(list.truncated && list.objects[0].prefix);
	CHECK_STR(list.token, STR("a+b/=&"));
	CHECK_STR(list.objects[0].key, STR("p/d/"));
	CHECK_STR(list.objects[1].key, STR("p/z +"));
	CHECK_STR(list.objects[1].etag, STR("abc"));
	CHECK_INT(list.objects[1].size, 12);
	CHECK_INT(list.objects[1].modified_ns, 1794744000LL * 1000000000);
}

TEST(xml_that_is_not_whole_is_corrupt)
{
	static const char *const bad[] = {"",
					  "x",
					  "<a>",
					  "<a></b>",
					  "</a>",
					  "<a></a><b></b>",
					  "<a><!DOCTYPE x></a>",
					  "<a>&unknown;</a>",
					  "<a>&#x110000;</a>",
					  "<a><b></a></b>",
					  "<",
					  "<a><!-- </a>"};
	ARENA_SCOPE struct arena *arena = arena_new();

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct s3_listing list;
		struct err err;

		if (s3_xml_listing(arena, str_of(bad[i]), &list, &err) != -ERR_CORRUPT)
			TEST_FAIL("\"%s\" was read", bad[i]);
	}
}

TEST(an_error_is_read_also_from_a_good_status)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct s3_error e;

	s3_xml_error(arena, STR("<Error><Code>SlowDown</Code><Region>eu-west-1</Region></Error>"), &e);
	CHECK_STR(e.code, STR("SlowDown"));
	CHECK_STR(e.region, STR("eu-west-1"));
	s3_xml_error(arena, STR("<html>busy"), &e);
	CHECK_INT(e.code.len, 0);
}

TEST(both_forms_of_a_time_are_read)
{
	CHECK_INT(s3_time(STR("2026-11-15T12:00:00.123Z")), 1794744000LL * 1000000000);
	CHECK_INT(s3_time(STR("Sun, 15 Nov 2026 12:00:00 GMT")), 1794744000LL * 1000000000);
	CHECK_INT(s3_time(STR("yesterday")), 0);
}
