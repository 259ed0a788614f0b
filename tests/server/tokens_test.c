/* SPDX-License-Identifier: Apache-2.0 */
/* Who may do what: tokens, workspaces, users; and every route with the token of another tenant. */
#include "client.h"
#include "server/server_internal.h"

static struct reply with(struct site *s, const char *token, const char *method, const char *target, struct str body)
{
	return ask(s, method, target, bearer(s, token), body);
}

TEST(without_a_token_nothing_is_served)
{
	static struct site s;
	struct reply reply;
	const char *good;

	site_start(&s, false);
	good = site_token(&s, ACCESS_ADMIN, NULL, NULL);
	reply = get(&s, "/v1/workspaces");
	CHECK_STATUS(reply, 401);
	CHECK_STARTS(head_value(reply.head, "WWW-Authenticate"), STR("Bearer"));
	CHECK_STATUS(with(&s, "stead_x", "GET", "/v1/workspaces", STR_NONE), 401);
	CHECK_STATUS(with(&s, arena_printf(s.arena, "%.*s0", (int)strlen(good) - 1, good).ptr, "GET", "/v1/workspaces",
			  STR_NONE),
		     good[strlen(good) - 1] == '0' ? 200 : 401);
	CHECK_STATUS(ask(&s, "GET", "/v1/workspaces", "Authorization: Basic YTpi\r\n", STR_NONE), 401);
	CHECK_STATUS(with(&s, good, "GET", "/v1/workspaces", STR_NONE), 200);
}

TEST(the_store_has_only_a_hash)
{
	static struct site s;
	const char *token;
	char *command, line[400];
	FILE *found;

	site_start(&s, false);
	token = site_token(&s, ACCESS_READ, "demo", NULL);
	CHECK(asprintf(&command, "grep -rl %s %s", token + 23, s.dir) > 0);
	found = popen(command, "r");
	CHECK(!fgets(line, sizeof(line), found));
	pclose(found);
	free(command);
}

TEST(access_has_three_steps)
{
	static const struct {
		const char *method, *target;
		enum access needs;
	} calls[] = {
		{"GET", "/v1/workspaces/demo/files", ACCESS_READ},
		{"GET", "/v1/workspaces", ACCESS_READ},
		{"POST", "/v1/workspaces/demo/tools/ls", ACCESS_READ},
		{"PUT", "/v1/workspaces/demo/files/a", ACCESS_WRITE},
		{"POST", "/v1/workspaces/demo/tools/write_file", ACCESS_WRITE},
		{"DELETE", "/v1/workspaces/demo/files/a", ACCESS_WRITE},
		{"PUT", "/v1/workspaces/new", ACCESS_ADMIN},
		{"GET", "/metrics", ACCESS_ADMIN},
	};
	static struct site s;

	site_start(&s, false);
	for (enum access access = ACCESS_READ; access <= ACCESS_ADMIN; access++) {
		const char *token = site_token(&s, access, NULL, NULL);

		for (size_t i = 0; i < COUNT(calls); i++) {
			struct str body = str_is(str_of(calls[i].method), "POST")
						  ? STR("{\"path\":\"a\",\"content\":\"x\"}")
						  : STR_NONE;
			struct reply reply = with(&s, token, calls[i].method, calls[i].target, body);

			if ((reply.status == 403) != (access < calls[i].needs))
				TEST_FAIL("%s %s with %s gives %d", calls[i].method, calls[i].target,
					  access_name(access), reply.status);
		}
	}
}

TEST(a_reader_sees_only_tools_that_read)
{
	static struct site s;
	struct str text;

	site_start(&s, false);
	text = with(&s, site_token(&s, ACCESS_READ, "demo", NULL), "GET", "/v1/workspaces/demo/tools", STR_NONE).body;
	CHECK_HAS(text, STR("\"name\":\"read_file\""));
	CHECK_LACKS(text, STR("\"name\":\"write_file\""));
	CHECK_LACKS(text, STR("\"reads_only\":false"));
	text = with(&s, site_token(&s, ACCESS_WRITE, "demo", NULL), "GET", "/v1/workspaces/demo/tools", STR_NONE).body;
	CHECK_HAS(text, STR("\"name\":\"write_file\""));
}

TEST(a_token_ends_when_it_expires_or_is_revoked)
{
	struct token_want want = {.access = ACCESS_READ, .expires_ns = 1};
	static struct site s;
	struct ctx ctx;
	struct store *base;
	struct jv *token;
	struct err err = {0};
	const char *good;
	int tries = 0;

	site_start(&s, false);
	ctx = (struct ctx){.arena = s.arena};
	CHECK_OK(store_open_url(s.store_url, NULL, &base, &err), err);
	CHECK_OK(token_create(base, &ctx, &want, &token, &err), err);
	CHECK_STATUS(with(&s, arena_cstr(s.arena, jv_get_str(token, "token")), "GET", "/v1/workspaces", STR_NONE), 401);
	CHECK_OK(token_list(base, &ctx, &token, &err), err);
	CHECK(jv_get_bool(jv_at(token, 0), "expired", false));
	CHECK(!jv_get(jv_at(token, 0), "sha256"));
	good = site_token(&s, ACCESS_READ, NULL, NULL);
	CHECK_STATUS(with(&s, good, "GET", "/v1/workspaces", STR_NONE), 200);
	CHECK_OK(token_revoke(base, &ctx, str_n(good + 6, 16), &err), err);
	CHECK_ERR(token_revoke(base, &ctx, str_n(good + 6, 16), &err), err, ERR_NOT_FOUND);
	CHECK_ERR(token_revoke(base, &ctx, STR("../../demo/agent"), &err), err, ERR_NOT_FOUND);
	while (with(&s, good, "GET", "/v1/workspaces", STR_NONE).status != 401 && tries++ < 2000)
		usleep(5000);
	CHECK(tries < 2000);
	store_destroy(base);
}

TEST(a_token_is_for_its_users_only)
{
	static struct site s;
	const char *alice, *two, *any, *none, *target = "/v1/workspaces/demo/files/a";

	site_start(&s, false);
	alice = site_token(&s, ACCESS_WRITE, "demo", "alice");
	any = site_token(&s, ACCESS_WRITE, "demo", "*");
	none = site_token(&s, ACCESS_WRITE, "demo", NULL);
	two = arena_printf(s.arena, "%sStead-User: bob\r\n", bearer(&s, alice)).ptr;
	CHECK_STATUS(with(&s, alice, "PUT", target, STR("alice's")), 201); /* the only user is the user */
	CHECK_STATUS(ask(&s, "GET", target, two, STR_NONE), 403);
	CHECK_STATUS(with(&s, none, "GET", target, STR_NONE), 404);
	CHECK_STATUS(ask(&s, "GET", target, arena_printf(s.arena, "%sStead-User: alice\r\n", bearer(&s, none)).ptr,
			 STR_NONE),
		     403);
	CHECK_STR(
		ask(&s, "GET", target, arena_printf(s.arena, "%sStead-User: alice\r\n", bearer(&s, any)).ptr, STR_NONE)
			.body,
		STR("alice's"));
}

/* A target of the route, with the names of another tenant. */
static const char *target_of(struct site *s, const struct route *route)
{
	struct str rest = str_of(route->path);
	struct buf b;

	buf_init(&b, s->arena, 1000);
	while (rest.len) {
		size_t open = str_find_char(rest, '{'), close = str_find_char(rest, '}');
		struct str name = open < rest.len ? str_first(str_from(rest, open + 1), close - open - 1) : STR("");

		buf_add(&b, str_first(rest, open));
		buf_add(&b, str_is(name, "workspace") ? STR("other")
			    : str_is(name, "path")    ? STR("secret.md")
			    : name.len                ? STR("read_file")
						      : STR(""));
		rest = str_from(rest, close + 1);
	}
	return arena_cstr(s->arena, buf_str(&b));
}

TEST(no_route_crosses_workspaces_or_users)
{
	static struct site s;
	const char *owner, *thief;
	int tried = 0;

	site_start(&s, false);
	site_make_workspace(&s, "other");
	owner = site_token(&s, ACCESS_WRITE, "other", "bob");
	CHECK_STATUS(with(&s, owner, "PUT", "/v1/workspaces/other/files/secret.md", STR("qz-secret-zq")), 201);
	thief = site_token(&s, ACCESS_ADMIN, "demo", "alice");
	for (const struct route *route = routes; route->path; route++) {
		struct str body = route->body_max ? STR("{\"path\":\"secret.md\"}") : STR_NONE;
		struct reply reply;

		if (!strstr(route->path, "{workspace}"))
			continue;
		reply = with(&s, thief, route->method, target_of(&s, route), body);
		CHECK_STATUS(reply, 403);
		CHECK_LACKS(reply.body, STR("qz-secret-zq"));
		tried++;
	}
	CHECK(tried >= 8);
	CHECK_LACKS(with(&s, thief, "GET", "/v1/workspaces", STR_NONE).body, STR("other"));
	CHECK_STR(with(&s, owner, "GET", "/v1/workspaces/other/files/secret.md", STR_NONE).body, STR("qz-secret-zq"));
}

TEST(tokens_are_made_and_revoked_over_http_by_an_admin_of_everything)
{
	static struct site s;
	const char *admin, *scoped, *made;
	const struct jv *v;
	struct reply reply;

	site_start(&s, false);
	admin = bearer(&s, site_token(&s, ACCESS_ADMIN, NULL, NULL));
	scoped = bearer(&s, site_token(&s, ACCESS_ADMIN, "demo", NULL));
	CHECK_STATUS(ask(&s, "POST", "/v1/tokens", scoped, STR("{\"access\":\"admin\"}")), 403);
	CHECK_STATUS(ask(&s, "GET", "/v1/tokens", scoped, STR_NONE), 403);
	CHECK_STATUS(ask(&s, "POST", "/v1/tokens", admin, STR("{\"acess\":\"read\"}")), 400);
	reply = ask(&s, "POST", "/v1/tokens", admin,
		    STR("{\"access\":\"read\",\"workspaces\":[\"demo\"],\"expires_days\":1}"));
	CHECK_STATUS(reply, 201);
	v = json_of(&s, reply);
	made = bearer(&s, arena_cstr(s.arena, jv_get_str(v, "token")));
	CHECK_STATUS(ask(&s, "GET", "/v1/workspaces/demo/files", made, STR_NONE), 200);
	CHECK_STATUS(ask(&s, "PUT", "/v1/workspaces/demo/files/a", made, STR("x")), 403);
	CHECK_INT(jv_count(jv_get(json_of(&s, ask(&s, "GET", "/v1/tokens", admin, STR_NONE)), "tokens")), 3);
	CHECK_STATUS(ask(&s, "DELETE", arena_printf(s.arena, "/v1/tokens/%.*s", STR_ARG(jv_get_str(v, "id"))).ptr,
			 admin, STR_NONE),
		     204);
	CHECK_INT(jv_count(jv_get(json_of(&s, ask(&s, "GET", "/v1/tokens", admin, STR_NONE)), "tokens")), 2);
}
