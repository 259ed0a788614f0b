/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logins at servers that want OAuth 2.1: authorization code with PKCE, for a public or a registered client. A person is
 * needed once, with a browser; after that the token is renewed by itself for as long as the server allows it. What a
 * login gave is bound to the authorization server that gave it: if the MCP server names another one, nothing of it is
 * shown there.
 */
#include <stdlib.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/limits.h"
#include "mcp/oauth_internal.h"
#include "net/digest.h"
#include "net/url.h"

struct oauth {
	const struct mcp_login *login; /* NULL: nobody is there */
	struct arena *arena;           /* of the state */
	struct jv *state; /* {issuer, client, token_endpoint, access_token, refresh_token?, scope?}; NULL: none */
	bool was_read;
};

static struct oauth *oauth_of(struct mcp_client *c)
{
	if (!c->oauth) {
		c->oauth = xcalloc(1, sizeof(*c->oauth));
		c->oauth->arena = arena_new();
	}
	return c->oauth;
}

void mcp_client_set_login(struct mcp_client *c, const struct mcp_login *login)
{
	oauth_of(c)->login = login;
}

bool oauth_has_person(const struct mcp_client *c)
{
	return c->oauth && c->oauth->login;
}

void oauth_destroy(struct oauth *o)
{
	if (o)
		arena_destroy(o->arena);
	free(o);
}

static struct jv *state_of(struct mcp_client *c)
{
	struct oauth *o = oauth_of(c);

	if (!o->was_read)
		o->state = oauth_file_read(o->arena, oauth_resource(o->arena, c));
	o->was_read = true;
	return o->state;
}

struct str oauth_token(struct mcp_client *c, struct ctx *ctx)
{
	(void)ctx;
	return jv_get_str(state_of(c), "access_token");
}

bool mcp_client_logout(struct mcp_client *c)
{
	struct oauth *o = oauth_of(c);

	o->state = NULL;
	o->was_read = true;
	return oauth_file_remove(o->arena, oauth_resource(o->arena, c));
}

/* --- forms --- */

static void add_field(struct buf *form, const char *name, struct str value)
{
	if (!value.len)
		return;
	if (form->len)
		buf_char(form, '&');
	buf_printf(form, "%s=", name);
	http_encode(form, value, false);
}

static bool lists(const struct jv *list, const char *word)
{
	for (const struct jv_member *m = jv_first(list); m; m = m->next)
		if (str_is(jv_str_of(m->value), word))
			return true;
	return false;
}

static struct str secret_text(struct arena *arena)
{
	uint64_t random[4] = {random_u64(), random_u64(), random_u64(), random_u64()};
	struct str text = base64_encode(arena, str_n(random, sizeof random));
	char *p = (char *)text.ptr;

	for (size_t i = 0; i < text.len; i++)
		p[i] = p[i] == '+' ? '-' : p[i] == '/' ? '_' : p[i];
	return str_first(text, str_find_char(text, '='));
}

static struct str challenge_of(struct arena *arena, struct str verifier)
{
	uint8_t digest[SHA256_LEN];
	struct str text;
	char *p;

	digest_sha256(verifier, digest);
	text = base64_encode(arena, str_n(digest, sizeof digest));
	p = (char *)text.ptr;
	for (size_t i = 0; i < text.len; i++)
		p[i] = p[i] == '+' ? '-' : p[i] == '/' ? '_' : p[i];
	return str_first(text, str_find_char(text, '='));
}

/* --- the client --- */

static int post_json(struct login_run *l, struct str url, const struct jv *body, struct jv **ret, struct err *err)
{
	struct http_header headers[] = {{STR("content-type"), STR("application/json")},
					{STR("accept"), STR("application/json")}};
	struct http_request req = {.method = "POST", .url = url, .headers = headers, .header_count = 2};
	struct http_response response;
	struct url checked;
	struct buf text;
	int r = oauth_check_url(l->ctx->arena, url, &checked, err);

	buf_init(&text, l->ctx->arena, 64 * KIB);
	jv_write(&text, body);
	req.body = buf_str(&text);
	if (r == 0)
		r = http_perform(l->c->http, l->ctx, &req, &response, err);
	if (r == 0 && response.status / 100 != 2)
		r = err_set(err, ERR_UNAUTHENTICATED, "%.*s answered with HTTP %d", STR_ARG(utf8_first(url, 200)),
			    response.status);
	return r ? r : jv_parse(l->ctx->arena, response.body, ret, err);
}

static int register_client(struct login_run *l, struct err *err)
{
	struct arena *arena = l->ctx->arena;
	struct jv *v = jv_object(arena), *uris = jv_array(arena), *grants = jv_array(arena), *types = jv_array(arena);
	const struct jv *methods = jv_get(l->server, "token_endpoint_auth_methods_supported");
	const char *method = !methods || lists(methods, "none")      ? "none"
			     : lists(methods, "client_secret_basic") ? "client_secret_basic"
								     : "client_secret_post";
	int r;

	jv_push(arena, uris, jv_str(arena, oauth_of(l->c)->login->redirect_uri));
	jv_push(arena, grants, jv_str(arena, STR("authorization_code")));
	jv_push(arena, grants, jv_str(arena, STR("refresh_token")));
	jv_push(arena, types, jv_str(arena, STR("code")));
	jv_set_str(arena, v, "client_name", STR("Stead"));
	jv_set(arena, v, "redirect_uris", uris);
	jv_set(arena, v, "grant_types", grants);
	jv_set(arena, v, "response_types", types);
	jv_set_str(arena, v, "token_endpoint_auth_method", str_of(method));
	jv_set_str(arena, v, "application_type", STR("native"));
	if (l->scope.len)
		jv_set_str(arena, v, "scope", l->scope);
	r = post_json(l, jv_get_str(l->server, "registration_endpoint"), v, &l->client, err);
	if (r == 0 && !jv_get_str(l->client, "client_id").len)
		r = err_set(err, ERR_INVALID, "the authorization server has registered no client");
	return r ? err_prefix(err, "the login for the MCP server \"%.*s\"", STR_ARG(l->c->name)) : 0;
}

/* As whom Stead logs in: as configured, as registered before, by a document, or newly registered. */
static int find_client(struct login_run *l, struct err *err)
{
	struct arena *arena = l->ctx->arena;
	const struct jv *own = jv_get(l->c->server, "oauth"), *state = state_of(l->c);
	const struct mcp_login *login = oauth_of(l->c)->login;

	l->client = jv_object(arena);
	if (jv_get_str(own, "clientId").len) {
		jv_set_str(arena, l->client, "client_id", jv_get_str(own, "clientId"));
		if (jv_get_str(own, "clientSecret").len)
			jv_set_str(arena, l->client, "client_secret", jv_get_str(own, "clientSecret"));
		return 0;
	}
	if (str_eq(jv_get_str(state, "issuer"), l->issuer) && jv_get(state, "client") &&
	    str_eq(jv_get_str(state, "redirect_uri"), login->redirect_uri)) {
		l->client = jv_copy(arena, jv_get(state, "client"));
		return 0;
	}
	if (login->client_id_url.len && jv_get_bool(l->server, "client_id_metadata_document_supported", false)) {
		jv_set_str(arena, l->client, "client_id", login->client_id_url);
		return 0;
	}
	if (!jv_get_str(l->server, "registration_endpoint").len)
		return err_set(err, ERR_UNAUTHENTICATED,
			       "the MCP server \"%.*s\" accepts only clients that it knows; register one there and set "
			       "oauth.clientId in tools.json",
			       STR_ARG(l->c->name));
	return register_client(l, err);
}

/* --- tokens --- */

/* How the client shows who it is at the token endpoint. */
static void add_client(struct login_run *l, const struct jv *methods, struct buf *form, struct str *ret_header)
{
	struct arena *arena = l->ctx->arena;
	struct str id = jv_get_str(l->client, "client_id"), secret = jv_get_str(l->client, "client_secret");
	struct buf pair;

	*ret_header = STR_NONE;
	if (secret.len && (!methods || lists(methods, "client_secret_basic"))) {
		buf_init(&pair, arena, 64 * KIB);
		http_encode(&pair, id, false);
		buf_char(&pair, ':');
		http_encode(&pair, secret, false);
		*ret_header = arena_printf(arena, "Basic %.*s", STR_ARG(base64_encode(arena, buf_str(&pair))));
		return;
	}
	add_field(form, "client_id", id);
	if (!methods || !lists(methods, "none") || lists(methods, "client_secret_post"))
		add_field(form, "client_secret", secret);
}

static int ask_token(struct login_run *l, struct str endpoint, const struct jv *methods, struct buf *form,
		     struct jv **ret, struct err *err)
{
	struct http_header headers[3] = {{STR("content-type"), STR("application/x-www-form-urlencoded")},
					 {STR("accept"), STR("application/json")}};
	struct http_request req = {.method = "POST", .url = endpoint, .headers = headers, .header_count = 2};
	struct http_response response;
	struct url checked;
	int r = oauth_check_url(l->ctx->arena, endpoint, &checked, err);

	add_client(l, methods, form, &headers[2].value);
	headers[2].name = STR("authorization");
	req.header_count += headers[2].value.ptr != NULL;
	req.body = buf_str(form);
	if (r == 0)
		r = http_perform(l->c->http, l->ctx, &req, &response, err);
	if (r == 0 && response.status / 100 != 2)
		r = err_set(err, ERR_UNAUTHENTICATED, "it gave no token (HTTP %d)", response.status);
	if (r == 0)
		r = jv_parse(l->ctx->arena, response.body, ret, err);
	if (r == 0 && !jv_get_str(*ret, "access_token").len)
		r = err_set(err, ERR_UNAUTHENTICATED, "it gave no token");
	return r ? err_prefix(err, "the authorization server of the MCP server \"%.*s\"", STR_ARG(l->c->name)) : 0;
}

/* Keeps what a token answer has; what it leaves out stays as it was. */
static int keep(struct login_run *l, const struct jv *answer, struct jv *next, struct err *err)
{
	struct oauth *o = oauth_of(l->c);
	struct arena *arena = l->ctx->arena;
	struct buf text;

	jv_set_str(arena, next, "access_token", jv_get_str(answer, "access_token"));
	if (jv_get_str(answer, "refresh_token").len)
		jv_set_str(arena, next, "refresh_token", jv_get_str(answer, "refresh_token"));
	jv_set_str(arena, next, "scope",
		   jv_get_str(answer, "scope").len ? jv_get_str(answer, "scope") : jv_get_str(next, "scope"));
	buf_init(&text, arena, 256 * KIB);
	jv_write(&text, next);
	o->was_read = true;
	if (jv_parse(o->arena, buf_str(&text), &o->state, err) != 0)
		return -(int)err->kind;
	return oauth_file_write(arena, oauth_resource(arena, l->c), o->state, err);
}

/* A new token for the one that has expired. */
static int renew(struct login_run *l, struct err *err)
{
	struct arena *arena = l->ctx->arena;
	const struct jv *state = state_of(l->c);
	struct jv *answer, *next = jv_copy(arena, state);
	struct buf form;
	int r;

	l->client = (struct jv *)jv_get(state, "client");
	buf_init(&form, arena, 64 * KIB);
	add_field(&form, "grant_type", STR("refresh_token"));
	add_field(&form, "refresh_token", jv_get_str(state, "refresh_token"));
	add_field(&form, "resource", jv_get_str(state, "resource"));
	r = ask_token(l, jv_get_str(state, "token_endpoint"), jv_get(state, "token_auth"), &form, &answer, err);
	return r ? r : keep(l, answer, next, err);
}

/* --- a login --- */

static bool has_scope(struct str list, struct str scope)
{
	struct str part;

	while (list.len) {
		if (!str_cut(&list, ' ', &part)) {
			part = list;
			list = STR_NONE;
		}
		if (str_eq(part, scope))
			return true;
	}
	return false;
}

static void add_scope(struct buf *all, struct str scope)
{
	if (!scope.len || has_scope(buf_str(all), scope))
		return;
	if (all->len)
		buf_char(all, ' ');
	buf_add(all, scope);
}

static void add_scopes(struct buf *all, struct str list)
{
	struct str part;

	while (list.len) {
		if (!str_cut(&list, ' ', &part)) {
			part = list;
			list = STR_NONE;
		}
		add_scope(all, part);
	}
}

/* What is asked for: what the challenge names, with what was given before, else all that the resource knows. */
static void choose_scope(struct login_run *l, struct str challenge, bool more)
{
	struct str named = oauth_challenge_param(challenge, "scope");
	struct buf all;

	buf_init(&all, l->ctx->arena, 64 * KIB);
	if (more)
		add_scopes(&all, jv_get_str(state_of(l->c), "scope"));
	if (named.len)
		add_scopes(&all, named);
	for (const struct jv_member *m = named.len ? NULL : jv_first(l->scopes); m; m = m->next)
		add_scope(&all, jv_str_of(m->value));
	if (lists(jv_get(l->server, "scopes_supported"), "offline_access"))
		add_scope(&all, STR("offline_access"));
	l->scope = all.len ? buf_str(&all) : STR_NONE;
}

/* A field of the query of a URL, decoded; ptr NULL: it has none. */
static struct str query_field(struct arena *arena, struct str url, const char *name)
{
	struct str query = str_from(url, str_find_char(url, '?') + 1), part, key;

	query = str_first(query, str_find_char(query, '#'));
	while (query.len) {
		struct buf text;

		if (!str_cut(&query, '&', &part)) {
			part = query;
			query = STR_NONE;
		}
		if (!str_cut(&part, '=', &key) || !str_is(key, name))
			continue;
		buf_init(&text, arena, 64 * KIB);
		for (size_t i = 0; i < part.len; i++) {
			char hex[3] = {0}, *end;

			if (part.ptr[i] != '%' || i + 2 >= part.len) {
				buf_char(&text, part.ptr[i] == '+' ? ' ' : part.ptr[i]);
				continue;
			}
			memcpy(hex, part.ptr + i + 1, 2);
			buf_char(&text, (char)strtol(hex, &end, 16));
			i += 2;
		}
		return text.len ? buf_str(&text) : STR("");
	}
	return STR_NONE;
}

static int check_back(struct login_run *l, struct str back, struct str state, struct str *ret_code, struct err *err)
{
	struct arena *arena = l->ctx->arena;
	struct str iss = query_field(arena, back, "iss"), why = query_field(arena, back, "error");

	if (!str_eq(query_field(arena, back, "state"), state))
		return err_set(err, ERR_DENIED, "the answer from \"%.*s\" belongs to another login",
			       STR_ARG(l->c->name));
	if ((iss.ptr && !str_eq(iss, l->issuer)) ||
	    (!iss.ptr && jv_get_bool(l->server, "authorization_response_iss_parameter_supported", false)))
		return err_set(err, ERR_DENIED,
			       "the answer to the login at \"%.*s\" does not come from its authorization server",
			       STR_ARG(l->c->name));
	*ret_code = query_field(arena, back, "code");
	if (why.len || !ret_code->len)
		return err_set(err, ERR_UNAUTHENTICATED, "the login at \"%.*s\" was refused: %.*s", STR_ARG(l->c->name),
			       STR_ARG(utf8_first(why, 100)));
	return 0;
}

/* Sends the person to the authorization server. */
static int authorize(struct login_run *l, struct str verifier, struct str *ret_code, struct err *err)
{
	struct arena *arena = l->ctx->arena;
	const struct mcp_login *login = oauth_of(l->c)->login;
	struct str endpoint = jv_get_str(l->server, "authorization_endpoint"), state = secret_text(arena), back;
	struct url checked;
	struct buf query;
	int r = oauth_check_url(arena, endpoint, &checked, err);

	if (r)
		return r;
	if (!lists(jv_get(l->server, "code_challenge_methods_supported"), "S256"))
		return err_set(err, ERR_DENIED,
			       "the authorization server of the MCP server \"%.*s\" does not offer PKCE with S256; "
			       "a login there is not safe",
			       STR_ARG(l->c->name));
	buf_init(&query, arena, 64 * KIB);
	add_field(&query, "response_type", STR("code"));
	add_field(&query, "client_id", jv_get_str(l->client, "client_id"));
	add_field(&query, "redirect_uri", login->redirect_uri);
	add_field(&query, "state", state);
	add_field(&query, "code_challenge", challenge_of(arena, verifier));
	add_field(&query, "code_challenge_method", STR("S256"));
	add_field(&query, "resource", l->resource);
	add_field(&query, "scope", l->scope);
	if (has_scope(l->scope, STR("offline_access")))
		add_field(&query, "prompt", STR("consent"));
	r = login->visit(login->arg, l->ctx,
			 arena_printf(arena, "%.*s%c%.*s", STR_ARG(endpoint),
				      str_find_char(endpoint, '?') < endpoint.len ? '&' : '?',
				      STR_ARG(buf_str(&query))),
			 &back, err);
	return r ? r : check_back(l, back, state, ret_code, err);
}

static int log_in(struct login_run *l, struct err *err)
{
	struct arena *arena = l->ctx->arena;
	struct str verifier = secret_text(arena), code, endpoint = jv_get_str(l->server, "token_endpoint");
	const struct jv *methods = jv_get(l->server, "token_endpoint_auth_methods_supported");
	struct jv *answer, *next = jv_object(arena);
	struct buf form;
	int r = find_client(l, err);

	if (r == 0)
		r = authorize(l, verifier, &code, err);
	if (r)
		return r;
	buf_init(&form, arena, 64 * KIB);
	add_field(&form, "grant_type", STR("authorization_code"));
	add_field(&form, "code", code);
	add_field(&form, "redirect_uri", oauth_of(l->c)->login->redirect_uri);
	add_field(&form, "code_verifier", verifier);
	add_field(&form, "resource", l->resource);
	r = ask_token(l, endpoint, methods, &form, &answer, err);
	if (r)
		return r;
	jv_set_str(arena, next, "server", oauth_resource(arena, l->c));
	jv_set_str(arena, next, "resource", l->resource);
	jv_set_str(arena, next, "issuer", l->issuer);
	jv_set_str(arena, next, "redirect_uri", oauth_of(l->c)->login->redirect_uri);
	jv_set(arena, next, "client", l->client);
	jv_set_str(arena, next, "token_endpoint", endpoint);
	if (methods)
		jv_set(arena, next, "token_auth", (struct jv *)methods);
	jv_set_str(arena, next, "scope", l->scope);
	return keep(l, answer, next, err);
}

int oauth_login(struct mcp_client *c, struct ctx *ctx, const struct http_response *refused, struct err *err)
{
	struct str challenge = http_header_of(refused, "www-authenticate");
	struct login_run l = {.c = c, .ctx = ctx};
	bool more = refused->status == 403;
	int r;

	for (const struct jv_member *m = jv_first(jv_get(c->server, "headers")); m; m = m->next)
		if (str_eq_nocase(m->key, STR("authorization")))
			return err_set(err, ERR_UNAUTHENTICATED,
				       "the MCP server \"%.*s\" refuses the authorization in its headers in tools.json",
				       STR_ARG(c->name));
	r = oauth_find_resource(&l, challenge, err);
	if (r == 0 && !more && jv_get_str(state_of(c), "refresh_token").len &&
	    str_eq(jv_get_str(state_of(c), "issuer"), l.issuer) && renew(&l, err) == 0)
		return 0;
	if (r == 0 && !oauth_of(c)->login)
		return err_set(err, ERR_UNAUTHENTICATED,
			       "the MCP server \"%.*s\" requires a login; run: stead servers login %.*s",
			       STR_ARG(c->name), STR_ARG(c->name));
	if (r == 0)
		r = oauth_find_server(&l, err);
	if (r)
		return r;
	choose_scope(&l, challenge, more);
	return log_in(&l, err);
}
