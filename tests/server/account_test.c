/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens and usage over HTTP. */
#include "client.h"

static struct reply post(struct site *s, const char *token, const char *target, struct str body)
{
	return ask(s, "POST", target,
		   arena_cstr(s->arena, arena_printf(s->arena, "Authorization: Bearer %s\r\n", token)), body);
}

static struct reply with(struct site *s, const char *method, const char *token, const char *target)
{
	return ask(s, method, target,
		   arena_cstr(s->arena, arena_printf(s->arena, "Authorization: Bearer %s\r\n", token)), STR_NONE);
}

TEST(an_admin_makes_lists_and_revokes_tokens)
{
	static struct site s;
	const char *admin, *made, *target;
	const struct jv *token, *list;

	site_start(&s, false);
	admin = site_token(&s, ACCESS_ADMIN, NULL, NULL);
	token = json_of(
		&s, post(&s, admin, "/v1/tokens",
			 STR("{\"name\":\"ci\",\"access\":\"read\",\"workspaces\":[\"demo\"],\"expires_days\":30}")));
	made = arena_cstr(s.arena, jv_get_str(token, "token"));
	CHECK_INT(with(&s, "GET", made, "/v1/workspaces/demo/files").status, 200);
	list = jv_get(json_of(&s, with(&s, "GET", admin, "/v1/tokens")), "tokens");
	CHECK_INT(jv_count(list), 2);
	for (const struct jv_member *m = jv_first(list); m; m = m->next)
		CHECK(!jv_get(m->value, "token"));
	target = arena_cstr(s.arena, arena_printf(s.arena, "/v1/tokens/%.*s", STR_ARG(jv_get_str(token, "id"))));
	CHECK_INT(with(&s, "DELETE", admin, target).status, 204);
	CHECK_INT(with(&s, "DELETE", admin, target).status, 404);
}

TEST(a_token_is_not_a_way_to_more_than_it_was_given_for)
{
	static struct site s;
	const char *some, *writer, *admin;

	site_start(&s, false);
	some = site_token(&s, ACCESS_ADMIN, "demo", NULL);
	writer = site_token(&s, ACCESS_WRITE, NULL, NULL);
	admin = site_token(&s, ACCESS_ADMIN, NULL, "alice");
	CHECK_INT(post(&s, some, "/v1/tokens", STR("{\"name\":\"x\"}")).status, 403);
	CHECK_INT(with(&s, "GET", some, "/v1/tokens").status, 403);
	CHECK_INT(post(&s, writer, "/v1/tokens", STR("{\"name\":\"x\"}")).status, 403);
	CHECK_INT(post(&s, admin, "/v1/tokens", STR("{\"name\":\"x\"}")).status, 403);
	CHECK_INT(post(&s, admin, "/v1/tokens", STR("{\"name\":\"x\",\"users\":[\"bob\"]}")).status, 403);
	CHECK_INT(post(&s, admin, "/v1/tokens", STR("{\"name\":\"x\",\"users\":[\"*\"]}")).status, 403);
	CHECK_INT(post(&s, admin, "/v1/tokens", STR("{\"name\":\"x\",\"users\":[\"alice\"]}")).status, 201);
	CHECK_INT(post(&s, admin, "/v1/tokens", STR("{\"access\":\"all\"}")).status, 400);
	CHECK_INT(post(&s, admin, "/v1/tokens", STR("{\"users\":\"alice\"}")).status, 400);
	CHECK_INT(post(&s, admin, "/v1/tokens", STR("{\"expires_days\":-1}")).status, 400);
}

TEST(usage_is_given_by_day)
{
	static struct site s;
	const struct jv *sum;

	site_start(&s, true);
	CHECK_INT(ask(&s, "POST", "/v1/workspaces/demo/tools/session_append", NULL,
		      STR("{\"session\":\"s\",\"agent\":\"a\",\"entries\":[{\"type\":\"usage\",\"input_tokens\":10,"
			  "\"output_tokens\":5,\"model\":\"m\",\"timestamp\":\"2026-11-15T09:00:00Z\"}]}"))
			  .status,
		  200);
	sum = json_of(&s, get(&s, "/v1/workspaces/demo/usage?agent=a"));
	CHECK_INT(jv_get_int(jv_get(jv_get(sum, "by_day"), "2026-11-15"), "total_tokens", 0), 15);
	CHECK_INT(
		jv_get_int(json_of(&s, get(&s, "/v1/workspaces/demo/usage?agent=a&since=2026-11-16")), "llm_calls", -1),
		0);
	CHECK_INT(get(&s, "/v1/workspaces/demo/usage?since=soon").status, 400);
}

TEST(a_list_of_workspaces_says_what_is_a_fork_if_asked)
{
	static struct site s;
	const struct jv *list;

	site_start(&s, true);
	CHECK_INT(ask(&s, "POST", "/v1/workspaces/demo/tools/fork", NULL, STR("{\"name\":\"try\"}")).status, 200);
	list = jv_get(json_of(&s, get(&s, "/v1/workspaces?forks=true")), "workspaces");
	CHECK_INT(jv_count(list), 2);
	for (const struct jv_member *m = jv_first(list); m; m = m->next)
		CHECK_STR(jv_get_str(m->value, "fork_of"),
			  str_is(jv_get_str(m->value, "name"), "try") ? STR("demo") : STR(""));
}
