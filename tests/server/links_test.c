/* SPDX-License-Identifier: Apache-2.0 */
/* Links that work without a token, limits for tokens, and who gives out tokens. */
#include "client.h"

#define FILES "/v1/workspaces/demo/files/"
#define LINKS "/v1/workspaces/demo/links"

static const char *link_to(struct site *s, const char *headers, const char *body)
{
	struct reply reply = ask(s, "POST", LINKS, headers, str_of(body));

	CHECK_STATUS(reply, 201);
	return arena_cstr(s->arena, jv_get_str(json_of(s, reply), "url"));
}

TEST(a_link_works_once_and_without_a_token)
{
	static struct site s;
	const char *reader, *url;
	struct reply reply;

	site_start(&s, false);
	reader = bearer(&s, site_token(&s, ACCESS_READ, "demo", NULL));
	CHECK_STATUS(ask(&s, "PUT", FILES "a.md", bearer(&s, site_token(&s, ACCESS_WRITE, "demo", NULL)), STR("one")),
		     201);
	url = link_to(&s, reader, "{\"path\":\"a.md\"}");
	reply = get(&s, url);
	CHECK_STATUS(reply, 200);
	CHECK_STR(reply.body, STR("one"));
	CHECK(str_starts(head_value(reply.head, "Content-Disposition"), STR("attachment")));
	CHECK_STATUS(get(&s, url), 404);
	CHECK_STATUS(get(&s, FILES "a.md"), 401);
}

TEST(a_link_that_may_be_used_again_takes_ranges_and_shows_the_file)
{
	static struct site s;
	const char *url;
	struct reply reply;

	site_start(&s, true);
	ask(&s, "PUT", FILES "film.mp4", NULL, STR("0123456789"));
	url = link_to(&s, NULL, "{\"path\":\"film.mp4\",\"once\":false,\"show\":true}");
	for (int i = 0; i < 3; i++) {
		reply = ask(&s, "GET", url, "Range: bytes=2-4\r\n", STR_NONE);
		CHECK_STATUS(reply, 206);
		CHECK_STR(reply.body, STR("234"));
		CHECK(!head_value(reply.head, "Content-Disposition").ptr);
	}
}

TEST(a_link_ends_with_the_token_that_made_it)
{
	static struct site s;
	const char *token, *url, *admin;
	struct str id;

	site_start(&s, false);
	admin = bearer(&s, site_token(&s, ACCESS_ADMIN, NULL, NULL));
	token = site_token(&s, ACCESS_WRITE, "demo", NULL);
	ask(&s, "PUT", FILES "a.md", bearer(&s, token), STR("one"));
	url = link_to(&s, bearer(&s, token), "{\"path\":\"a.md\",\"once\":false}");
	CHECK_STATUS(get(&s, url), 200);
	id = str_n(token + strlen("stead_"), 16);
	CHECK_STATUS(ask(&s, "DELETE", arena_printf(s.arena, "/v1/tokens/%.*s", STR_ARG(id)).ptr, admin, STR_NONE),
		     204);
	CHECK_STATUS(get(&s, url), 404);
}

TEST(a_link_leads_only_where_its_maker_may_read)
{
	static struct site s;
	const char *bad[] = {"{\"path\":\"none.md\"}",
			     "{\"path\":\"../other/a.md\"}",
			     "{\"path\":\".env\"}",
			     "{\"path\":\"a.md\",\"workspace\":\"other\"}",
			     "{}",
			     "{\"path\":\"a.md\",\"expires_seconds\":0}"};

	site_start(&s, true);
	ask(&s, "PUT", FILES "a.md", NULL, STR("one"));
	for (size_t i = 0; i < COUNT(bad); i++) {
		struct reply reply = ask(&s, "POST", LINKS, NULL, str_of(bad[i]));

		if (reply.status < 400 || reply.status > 404)
			TEST_FAIL("%s gives %d", bad[i], reply.status);
	}
}

TEST(secrets_that_are_guessed_or_changed_lead_nowhere)
{
	static struct site s;
	char *url;
	size_t len;

	site_start(&s, true);
	ask(&s, "PUT", FILES "a.md", NULL, STR("one"));
	url = (char *)link_to(&s, NULL, "{\"path\":\"a.md\",\"once\":false}");
	len = strlen(url);
	for (size_t i = strlen("/links/"); i < len; i++) {
		char before = url[i];

		url[i] = before == 'f' ? '0' : 'f';
		CHECK_STATUS(get(&s, url), 404);
		url[i] = before;
	}
	CHECK_STATUS(get(&s, "/links/x"), 404);
	CHECK_STATUS(get(&s, "/links/%2e%2e%2ftokens"), 404);
	CHECK_STATUS(get(&s, url), 200);
}

/* A server with a stead.yaml that has these settings. */
static void start_with_settings(struct site *s, const char *settings, bool is_open)
{
	struct serve_opts opts = {.host = STR("127.0.0.1"), .relaxed = true, .is_open = is_open};
	const char *path;
	struct err err = {0};
	int64_t port = 0;
	FILE *f;

	*s = (struct site){.arena = arena_new(), .dir = temp_dir_new()};
	test_defer(site_stop, s);
	path = arena_printf(s->arena, "%s/stead.yaml", s->dir).ptr;
	f = fopen(path, "we");
	CHECK(f && fprintf(f, "store: disk:./ws\nserver:\n%s", settings) > 0 && fclose(f) == 0);
	s->store_url = arena_printf(s->arena, "disk:%s/ws", s->dir);
	site_make_workspace(s, "demo");
	opts.store_url = arena_printf(s->arena, "config:%s", path);
	CHECK_OK(serve_start(&opts, &s->serve, &err), err);
	CHECK(str_to_i64(str_from(serve_url(s->serve), strlen("http://127.0.0.1:")), &port));
	s->port = (uint16_t)port;
}

TEST(a_token_that_asks_too_often_is_told_when_to_come_back)
{
	static struct site s;
	const char *busy, *other;
	struct reply reply;
	int64_t wait = 0;

	start_with_settings(&s, "  requests_per_minute: 3\n", false);
	busy = bearer(&s, site_token(&s, ACCESS_READ, "demo", NULL));
	other = bearer(&s, site_token(&s, ACCESS_READ, "demo", NULL));
	for (int i = 0; i < 3; i++)
		CHECK_STATUS(ask(&s, "GET", "/v1/workspaces/demo/files", busy, STR_NONE), 200);
	reply = ask(&s, "GET", "/v1/workspaces/demo/files", busy, STR_NONE);
	CHECK_STATUS(reply, 429);
	CHECK(str_to_i64(head_value(reply.head, "Retry-After"), &wait) && wait >= 1 && wait <= 21);
	CHECK_STR(jv_get_str(json_of(&s, reply), "kind"), STR("rate_limited"));
	CHECK_STATUS(ask(&s, "GET", "/v1/workspaces/demo/files", other, STR_NONE), 200);
	CHECK_STATUS(get(&s, "/healthz"), 200);
}

TEST(a_token_has_so_many_requests_under_way_and_no_more)
{
	static struct site s;
	static struct wire first, second;
	const char *token;

	start_with_settings(&s, "  requests_at_once: 2\n", false);
	token = bearer(&s, site_token(&s, ACCESS_WRITE, "demo", NULL));
	wire_open(&first, &s);
	wire_open(&second, &s);
	for (int i = 0; i < 2; i++) { /* uploads whose bytes do not come */
		struct wire *w = i ? &second : &first;

		wire_send(w, arena_printf(s.arena,
					  "PUT " FILES "a.md HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n"
					  "Expect: 100-continue\r\n%s\r\n",
					  token));
		CHECK(wire_more(w));
	}
	CHECK_STATUS(ask(&s, "GET", "/v1/workspaces/demo/files", token, STR_NONE), 429);
	test_close(&first);
	for (int i = 0; i < 10000; i++) /* the server has to notice it */
		if (ask(&s, "GET", "/v1/workspaces/demo/files", token, STR_NONE).status == 200)
			return;
	TEST_FAIL("the place of a request that has ended is not free");
}

TEST(mcp_clients_learn_who_gives_out_tokens)
{
	static struct site s;
	const struct jv *v;
	struct reply reply;

	start_with_settings(
		&s,
		"  public_url: https://stead.example.org\n  authorization_servers: [\"https://login.example.org\"]\n",
		false);
	reply = ask(&s, "POST", "/mcp/demo", NULL, STR("{}"));
	CHECK_STATUS(reply, 401);
	CHECK(str_find(head_value(reply.head, "WWW-Authenticate"),
		       STR("resource_metadata=\"https://stead.example.org/.well-known/oauth-protected-resource/mcp/"
			   "demo\""),
		       0) != SIZE_MAX);
	v = json_of(&s, get(&s, "/.well-known/oauth-protected-resource/mcp/demo"));
	CHECK_STR(jv_get_str(v, "resource"), STR("https://stead.example.org/mcp/demo"));
	CHECK_STR(jv_str_of(jv_at(jv_get(v, "authorization_servers"), 0)), STR("https://login.example.org"));
	CHECK_STR(jv_str_of(jv_at(jv_get(v, "bearer_methods_supported"), 0)), STR("header"));
	CHECK_STR(head_value(get(&s, "/v1/workspaces/demo/files").head, "WWW-Authenticate"),
		  STR("Bearer realm=\"stead\""));
}
