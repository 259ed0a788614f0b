/* SPDX-License-Identifier: Apache-2.0 */
/* Which addresses are public, and that URLs are read in one way only. */
#include "test.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "base/clock.h"
#include "net/http.h"
#include "net/loopback.h"
#include "net/reach.h"
#include "net/url.h"

static bool permitted(const struct reach *reach, const char *text)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};

	if (inet_pton(AF_INET, text, &v4.sin_addr) == 1)
		return reach_permits(reach, (struct sockaddr *)&v4);
	CHECK(inet_pton(AF_INET6, text, &v6.sin6_addr) == 1);
	return reach_permits(reach, (struct sockaddr *)&v6);
}

TEST(addresses_that_are_not_public_are_not_permitted)
{
	static const char *const refused[] = {"0.0.0.0",
					      "10.0.0.1",
					      "100.64.0.1",
					      "100.127.255.255",
					      "127.0.0.1",
					      "127.255.255.254",
					      "169.254.169.254",
					      "172.16.0.1",
					      "172.31.255.255",
					      "192.0.0.1",
					      "192.168.1.1",
					      "198.18.0.1",
					      "198.19.255.255",
					      "203.0.113.9",
					      "224.0.0.1",
					      "239.255.255.250",
					      "240.0.0.1",
					      "255.255.255.255",
					      "::",
					      "::1",
					      "::127.0.0.1",
					      "::ffff:127.0.0.1",
					      "::ffff:8.8.8.8",
					      "64:ff9b::7f00:1",
					      "fe80::1",
					      "fec0::1",
					      "fc00::1",
					      "fd12:3456::1",
					      "ff02::1",
					      "2001::1",
					      "2001:db8::1",
					      "2002:7f00:1::",
					      "3fff::1",
					      "100::1",
					      "5f00::1"};
	static const char *const public[] = {"1.1.1.1",     "8.8.8.8",         "9.255.255.255",   "100.63.255.255",
					     "100.128.0.0", "126.255.255.255", "128.0.0.1",       "169.253.0.1",
					     "172.15.0.1",  "172.32.0.1",      "192.167.0.1",     "198.17.0.1",
					     "198.20.0.1",  "223.255.255.255", "2606:4700::1111", "2a00:1450:4001::1"};
	struct reach reach = {0};

	for (size_t i = 0; i < COUNT(refused); i++)
		if (permitted(&reach, refused[i]))
			TEST_FAIL("%s is permitted", refused[i]);
	for (size_t i = 0; i < COUNT(public); i++)
		if (!permitted(&reach, public[i]))
			TEST_FAIL("%s is not permitted", public[i]);
}

TEST(allowed_networks_are_permitted_and_nothing_next_to_them)
{
	struct reach reach = {0};
	struct err err = {0};

	CHECK_OK(reach_allow(&reach, STR("10.1.0.0/16"), &err), err);
	CHECK_OK(reach_allow(&reach, STR("127.0.0.2"), &err), err);
	CHECK_OK(reach_allow(&reach, STR("fd00::/9"), &err), err);
	CHECK(permitted(&reach, "10.1.255.255") && !permitted(&reach, "10.2.0.0"));
	CHECK(permitted(&reach, "127.0.0.2") && !permitted(&reach, "127.0.0.1"));
	CHECK(permitted(&reach, "fd7f::1") && !permitted(&reach, "fd80::1"));
	CHECK(!permitted(&reach, "::ffff:10.1.0.1"));
	CHECK_ERR(reach_allow(&reach, STR("10.1.0.0/33"), &err), err, ERR_INVALID);
	CHECK_ERR(reach_allow(&reach, STR("localhost"), &err), err, ERR_INVALID);
	CHECK_ERR(reach_allow(&reach, STR("10.1/16"), &err), err, ERR_INVALID);
}

TEST(every_spelling_of_loopback_is_refused_before_a_connection)
{
	static const char *const hosts[] = {"localhost",  "127.1", "127.0.0.1", "2130706433",      "0x7f.1",
					    "0177.0.0.1", "::1",   "0",         "::ffff:127.0.0.1"};
	struct reach reach = {0};

	for (size_t i = 0; i < COUNT(hosts); i++) {
		ARENA_SCOPE struct arena *arena = arena_new();
		struct ctx ctx = {.arena = arena};
		struct reach_addresses got;
		struct err err = {0};

		CHECK_ERR(reach_resolve(&reach, &ctx, str_of(hosts[i]), 80, &got, &err), err, ERR_DENIED);
		CHECK_HAS(str_of(err.msg), STR("no connection was made"));
	}
}

TEST(a_cancelled_resolution_ends)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct cancel cancel = {true};
	struct ctx ctx = {.arena = arena, .cancel = &cancel};
	struct reach reach = {0};
	struct reach_addresses got;
	struct err err = {0};
	int r = reach_resolve(&reach, &ctx, STR("localhost"), 80, &got, &err);

	CHECK(r == -ERR_CANCELLED || r == -ERR_DENIED); /* it may have been faster */
}

/* A name server that answers differently the second time changes nothing: the socket goes to what was checked. */
TEST(a_pinned_request_goes_to_the_checked_address_and_no_other)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct loopback *server = loopback_start();
	struct ctx ctx = {.arena = arena};
	struct reach reach = {0};
	struct reach_addresses good, other;
	struct http *http = http_new(NULL), *another = http_new(NULL);
	struct http_response response;
	struct http_request req = {.method = "GET"};
	struct err err = {0};

	test_defer(loopback_stop, server);
	test_defer(http_destroy, http);
	test_defer(http_destroy, another);
	CHECK_OK(reach_allow(&reach, STR("127.0.0.0/8"), &err), err);
	CHECK_OK(reach_resolve(&reach, &ctx, STR("127.0.0.1"), loopback_port(server), &good, &err), err);
	req.url = arena_printf(arena, "http://no-such-name.invalid:%u/size/3", loopback_port(server));
	req.pin = &good;
	CHECK_OK(http_perform(http, &ctx, &req, &response, &err), err);
	CHECK_INT(response.status, 200);
	CHECK_OK(reach_resolve(&reach, &ctx, STR("127.0.0.9"), loopback_port(server), &other, &err), err);
	req.url = arena_printf(arena, "http://127.0.0.1:%u/size/3", loopback_port(server));
	req.pin = &other; /* not where the URL leads */
	CHECK_ERR(http_perform(another, &ctx, &req, &response, &err), err, ERR_UNAVAILABLE);
	req.url = arena_printf(arena, "http://[::1]:%u/size/3", loopback_port(server));
	CHECK_ERR(http_perform(another, &ctx, &req, &response, &err), err, ERR_DENIED);
	CHECK_INT(loopback_requests(server), 1);
}

TEST(urls_are_read_strictly)
{
	static const struct {
		const char *text, *want;
	} good[] = {
		{"http://Example.COM", "http://example.com/"},
		{"https://h:443/a b?x=\"y\"#f", "https://h/a%20b?x=%22y%22"},
		{"http://h:8080?q", "http://h:8080/?q"},
		{" http://[2001:DB8::1]:81/x ", "http://[2001:db8::1]:81/x"},
		{"http://h/%41%zz", "http://h/%41%25zz"},
		{"http://H.example./", "http://h.example/"},
		{"http://8.8.8.8./", "http://8.8.8.8/"},
		{"http://3com.example/", "http://3com.example/"},
		{"http://0xa.b/", "http://0xa.b/"},
	};
	static const char *const bad[] = {
		"ftp://h/",        "h/x",         "http://",       "http://u@h/",      "http://h:0/",
		"http://h:99999/", "http://h:x/", "http://h\\@x/", "http://a b/",      "http://h\tx/",
		"http://[::1/",    "http://[x]/", "javascript:1",  "http://\xC3\xA9/", "http://h:-1/",
		"http://./",       "http://.h/",  "http://a..b/",  "http://h../",      "http://1.2.3.4.5/",
		"http://h.7/",     "http://0x/"};
	ARENA_SCOPE struct arena *arena = arena_new();
	struct err err = {0};
	struct url url;

	for (size_t i = 0; i < COUNT(good); i++) {
		CHECK_OK(url_parse(arena, str_of(good[i].text), &url, &err), err);
		CHECK_STR(url_format(arena, &url), str_of(good[i].want));
	}
	for (size_t i = 0; i < COUNT(bad); i++)
		CHECK_ERR(url_parse(arena, str_of(bad[i]), &url, &err), err, ERR_INVALID);
	CHECK_ERR(url_parse(arena, STR("http://ann:hush@h/"), &url, &err), err, ERR_INVALID);
	CHECK(!strstr(err.msg, "hush"));
}

TEST(references_are_resolved_against_their_page)
{
	static const struct {
		const char *reference, *want;
	} cases[] = {
		{"g", "http://a/b/c/g"},
		{"./g", "http://a/b/c/g"},
		{"g/", "http://a/b/c/g/"},
		{"/g", "http://a/g"},
		{"//g", "http://g/"},
		{"?y", "http://a/b/c/d;p?y"},
		{"g?y", "http://a/b/c/g?y"},
		{"#s", "http://a/b/c/d;p?q"},
		{"g#s", "http://a/b/c/g"},
		{"", "http://a/b/c/d;p?q"},
		{".", "http://a/b/c/"},
		{"..", "http://a/b/"},
		{"../..", "http://a/"},
		{"../../../g", "http://a/g"},
		{"/./g", "http://a/g"},
		{"/../g", "http://a/g"},
		{"g;x=1/../y", "http://a/b/c/y"},
		{"https://z/x", "https://z/x"},
		{"./g/.", "http://a/b/c/g/"},
	};
	ARENA_SCOPE struct arena *arena = arena_new();
	struct err err = {0};
	struct url base, url;

	CHECK_OK(url_parse(arena, STR("http://a/b/c/d;p?q"), &base, &err), err);
	for (size_t i = 0; i < COUNT(cases); i++) {
		CHECK_OK(url_join(arena, &base, str_of(cases[i].reference), &url, &err), err);
		CHECK_STR(url_format(arena, &url), str_of(cases[i].want));
	}
	CHECK_ERR(url_join(arena, &base, STR("mailto:x"), &url, &err), err, ERR_INVALID);
}
