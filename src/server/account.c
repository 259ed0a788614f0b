/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an administrator and a payer ask for: tokens, the use of tokens of models, and what agents do by themselves.
 *
 * A token can be made and revoked over HTTP only by who may use all workspaces, and never for a user whom its maker may
 * not act as: otherwise a token would be a way to more than it was given for.
 */
#include "base/clock.h"
#include "base/hex.h"
#include "base/limits.h"
#include "home/sessions/sessions.h"
#include "runner/status.h"
#include "server/server_internal.h"
#include "text/schema.h"
#include "tool/schema_text.h"

#define SECONDS_PER_DAY 86400

void run_usage(struct exchange *x)
{
	struct web_call *call = call_of(x);
	struct ctx ctx = exchange_ctx(x);
	struct str agent, since;
	struct jv *sum;
	struct err err;
	bool found;
	int64_t from = 0;
	int r = query_get(x->arena, x->query, "agent", &agent, &found, &err);

	if (r == 0)
		r = query_get(x->arena, x->query, "since", &since, &found, &err);
	if (r == 0 && since.len && !clock_parse(since, &from))
		r = err_set(&err, ERR_INVALID, "since: write a time such as 2026-11-15 or 2026-11-15T09:30:00Z");
	if (r == 0)
		r = usage_sum(call->tenant->ws, &ctx, agent, from, &sum, &err);
	if (r)
		answer_error(x, &err);
	else
		answer_json(x, 200, sum);
}

void run_status(struct exchange *x)
{
	struct ctx ctx = exchange_ctx(x);
	struct jv *v;
	struct err err;

	if (runner_status(call_of(x)->tenant->ws, &ctx, &v, &err) != 0)
		answer_error(x, &err);
	else
		answer_json(x, 200, v);
}

static int check_admin(const struct grant *grant, struct err *err)
{
	if (!grant->workspaces)
		return 0;
	return err_set(err, ERR_DENIED,
		       "only a token for all workspaces can manage tokens; this one is for some of them");
}

void run_token_list(struct exchange *x)
{
	struct ctx ctx = exchange_ctx(x);
	struct jv *v = jv_object(x->arena), *list;
	struct err err;
	int r = check_admin(&call_of(x)->grant, &err);

	if (r == 0)
		r = token_list(call_of(x)->serve->base, &ctx, &list, &err);
	if (r) {
		answer_error(x, &err);
		return;
	}
	jv_set(x->arena, v, "tokens", list);
	answer_json(x, 200, v);
}

static const char token_form[] = "name str<=200\naccess read|write|admin\nworkspaces [str>=1]\nusers [str>=1]\n"
				 "expires_days int>=1<=36500";

static int check_form(struct arena *arena, const struct jv *body, struct err *err)
{
	struct jv *schema;
	int r = schema_text_parse(arena, token_form, &schema, err);

	return r ? r : schema_check(schema, body, "the token", err);
}

static const struct str *names_of(struct arena *arena, const struct jv *list, size_t *ret_count)
{
	struct str *names = ARENA_ARRAY(arena, struct str, jv_count(list) + 1);
	size_t count = 0;

	for (const struct jv_member *m = jv_first(list); m; m = m->next)
		names[count++] = jv_str_of(m->value);
	*ret_count = count;
	return names;
}

static int want_of(struct exchange *x, const struct jv *body, struct token_want *want, struct err *err)
{
	struct str access = jv_get_str(body, "access"), user;
	int64_t days = jv_get_int(body, "expires_days", 0);
	int r = check_form(x->arena, body, err);

	if (r)
		return r;
	*want = (struct token_want){.name = jv_get_str(body, "name"),
				    .access = str_is(access, "read")    ? ACCESS_READ
					      : str_is(access, "admin") ? ACCESS_ADMIN
									: ACCESS_WRITE};
	if (days)
		want->expires_ns = clock_real_ns() + days * SECONDS_PER_DAY * NS_PER_S;
	want->workspaces = names_of(x->arena, jv_get(body, "workspaces"), &want->workspace_count);
	want->users = names_of(x->arena, jv_get(body, "users"), &want->user_count);
	if (!want->user_count) /* that would be a token for what no user owns */
		r = grant_user(&call_of(x)->grant, STR_NONE, &user, err);
	if (r || (!want->user_count && user.len))
		return err_set(err, ERR_DENIED, "this token is for some users; name those of the new token in users");
	for (size_t i = 0; r == 0 && i < want->user_count; i++)
		r = grant_user(&call_of(x)->grant, want->users[i], &user, err);
	return r;
}

void run_token_create(struct exchange *x)
{
	struct ctx ctx = exchange_ctx(x);
	struct token_want want;
	struct jv *body, *made;
	struct err err;
	int r = check_admin(&call_of(x)->grant, &err);

	if (r == 0)
		r = body_json(x, &body, &err);
	if (r == 0)
		r = want_of(x, body, &want, &err);
	if (r == 0)
		r = token_create(call_of(x)->serve->base, &ctx, &want, &made, &err);
	if (r)
		answer_error(x, &err);
	else
		answer_json(x, 201, made);
}

void run_token_revoke(struct exchange *x)
{
	struct ctx ctx = exchange_ctx(x);
	struct err err;
	int r = check_admin(&call_of(x)->grant, &err);

	if (r == 0)
		r = token_revoke(call_of(x)->serve->base, &ctx, percent_decode(x->arena, call_of(x)->rest), &err);
	if (r)
		answer_error(x, &err);
	else
		answer_empty(x, 204);
}
