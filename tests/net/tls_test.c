/* SPDX-License-Identifier: Apache-2.0 */
/* Whom the HTTP client trusts, against a server of OpenSSL that tests/servers/with started. */
#include "net/http.h"
#include "test.h"

static const char *env(const char *name)
{
	const char *value = getenv(name);

	if (!value) {
		printf("Bail out! %s is not set; run this with tests/servers/with\n", name);
		exit(1);
	}
	return value;
}

static int get(const char *ca_file, struct str url, int *ret_status, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};
	struct http *http = http_new(&(struct http_opts){.ca_file = ca_file});
	struct http_request req = {.method = "GET", .url = url};
	struct http_response response;
	int r = http_perform(http, &ctx, &req, &response, err);

	*ret_status = response.status;
	http_destroy(http);
	return r;
}

TEST(a_certificate_of_a_named_authority_is_trusted)
{
	struct err err;
	int status;

	CHECK_OK(get(env("STEAD_TEST_TLS_CA"), str_of(env("STEAD_TEST_TLS")), &status, &err), err);
	CHECK_INT(status, 200);
}

TEST(a_certificate_that_nobody_vouches_for_is_denied)
{
	struct err err;
	int status;

	CHECK_ERR(get(NULL, str_of(env("STEAD_TEST_TLS")), &status, &err), err, ERR_DENIED);
	CHECK_HAS(str_of(err.msg), STR("certificate"));
	CHECK(!err.retryable);
}

TEST(a_certificate_for_another_name_is_denied)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct str url = str_of(env("STEAD_TEST_TLS"));
	struct err err;
	int status;

	url = arena_printf(arena, "https://localhost%s", env("STEAD_TEST_TLS") + str_rfind_char(url, ':'));
	CHECK_ERR(get(env("STEAD_TEST_TLS_CA"), url, &status, &err), err, ERR_DENIED);
}

TEST(a_file_of_authorities_that_is_not_there_is_denied_and_not_passed_over)
{
	struct err err;
	int status;

	CHECK_ERR(get("/nonexistent/ca.pem", str_of(env("STEAD_TEST_TLS")), &status, &err), err, ERR_DENIED);
}

TEST(plain_http_to_an_https_port_ends)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct err err;
	int status;
	struct str url = arena_printf(arena, "http%s", env("STEAD_TEST_TLS") + 5);

	CHECK_ERR(get(NULL, url, &status, &err), err, ERR_UNAVAILABLE);
}
