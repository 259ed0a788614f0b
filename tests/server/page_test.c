/* SPDX-License-Identifier: Apache-2.0 */
/* The page as it is sent: whole or compressed, with a version and with a policy. What it does is tested in a browser
   (tests/web). */
#include "client.h"
#include "server/page.h"

TEST(the_page_is_html_with_a_policy_that_names_no_other_host)
{
	static struct site s;
	struct reply reply;

	site_start(&s, false);
	reply = get(&s, "/");
	CHECK_INT(reply.status, 200);
	CHECK_STR(head_value(reply.head, "Content-Type"), STR("text/html; charset=utf-8"));
	CHECK(str_starts(head_value(reply.head, "Content-Security-Policy"),
			 STR("default-src 'none'; script-src 'self';")));
	CHECK(!strstr(arena_cstr(s.arena, head_value(reply.head, "Content-Security-Policy")), "http"));
	CHECK(str_starts(reply.body, STR("<!doctype html>")));
}

TEST(a_compressed_page_is_sent_only_to_those_who_take_it)
{
	static struct site s;
	struct reply plain, packed;

	site_start(&s, true);
	plain = get(&s, "/");
	packed = ask(&s, "GET", "/", "Accept-Encoding: br, gzip\r\n", STR_NONE);
	CHECK(!head_value(plain.head, "Content-Encoding").len);
	CHECK_STR(head_value(packed.head, "Content-Encoding"), STR("gzip"));
	CHECK(packed.body.len < plain.body.len);
	CHECK(!str_eq(head_value(plain.head, "ETag"), head_value(packed.head, "ETag")));
}

TEST(an_unchanged_page_is_not_sent_again)
{
	static struct site s;
	struct str tag;

	site_start(&s, true);
	tag = head_value(get(&s, "/").head, "ETag");
	CHECK_INT(ask(&s, "GET", "/",
		      arena_cstr(s.arena, arena_printf(s.arena, "If-None-Match: %.*s\r\n", STR_ARG(tag))), STR_NONE)
			  .status,
		  304);
}

TEST(gzip_is_taken_as_the_header_says)
{
	CHECK(accepts_gzip(STR("gzip")));
	CHECK(accepts_gzip(STR("deflate, GZIP;q=0.5")));
	CHECK(!accepts_gzip(STR("gzip;q=0, br")));
	CHECK(!accepts_gzip(STR("gzip; q=0.000")));
	CHECK(!accepts_gzip(STR("xgzip")));
	CHECK(!accepts_gzip(STR("")));
}

TEST(no_file_outside_the_page_is_served_as_one_of_it)
{
	static struct site s;

	site_start(&s, true);
	CHECK_INT(get(&s, "/assets/none.js").status, 404);
	CHECK_INT(get(&s, "/assets/../index.html").status, 404);
	CHECK_INT(get(&s, "/assets/%2e%2e/index.html").status, 404);
}
