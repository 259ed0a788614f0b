/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where to log in: the server's challenge, the metadata of the resource (RFC 9728), and that of its authorization
 * server (RFC 8414, OpenID Connect). Everything is checked against what it was asked for, so that one server cannot
 * send a person, or the token of another server, elsewhere.
 */
#include "base/buf.h"
#include "base/limits.h"
#include "mcp/oauth_internal.h"
#include "net/url.h"

#define METADATA_MAX (256 * KIB)

/* The value of a parameter of a challenge: name="value" or name=value; ptr NULL: it has none. */
struct str oauth_challenge_param(struct str challenge, const char *name)
{
	struct str rest = challenge;
	size_t len = strlen(name);

	for (size_t i = 0; i + len < rest.len; i++) {
		struct str value;

		if (!str_eq_nocase(str_first(str_from(rest, i), len), str_of(name)) || rest.ptr[i + len] != '=' ||
		    (i && !memchr(" ,\t", rest.ptr[i - 1], 3)))
			continue;
		value = str_from(rest, i + len + 1);
		if (value.len && value.ptr[0] == '"') {
			value = str_from(value, 1);
			return str_first(value, str_find_char(value, '"'));
		}
		for (size_t k = 0; k < value.len; k++)
			if (memchr(" ,\t", value.ptr[k], 3))
				return str_first(value, k);
		return value;
	}
	return STR_NONE;
}

int oauth_check_url(struct arena *arena, struct str text, struct url *ret, struct err *err)
{
	int r = url_parse(arena, text, ret, err);

	if (r)
		return r;
	if (!ret->tls && !str_is(ret->host, "localhost") && !str_starts(ret->host, STR("127.")) &&
	    !str_is(ret->host, "::1"))
		return err_set(err, ERR_DENIED, "the login would go to an unencrypted address, on \"%.*s\"",
			       STR_ARG(utf8_first(ret->host, 100)));
	return 0;
}

/* A JSON document; ERR_NOT_FOUND: the server has none there. */
static int fetch(struct login_run *l, struct str url, struct jv **ret, struct err *err)
{
	struct http_header headers[] = {{STR("accept"), STR("application/json")},
					{STR("mcp-protocol-version"), STR(MCP_LEGACY)}};
	struct http_request req = {
		.method = "GET", .url = url, .headers = headers, .header_count = 2, .body_max = METADATA_MAX};
	struct http_response response;
	struct url checked;
	int r = oauth_check_url(l->ctx->arena, url, &checked, err);

	if (r == 0)
		r = http_perform(l->c->http, l->ctx, &req, &response, err);
	if (r)
		return r;
	if (response.status / 100 != 2)
		return err_set(err, ERR_NOT_FOUND, "%.*s answered with HTTP %d", STR_ARG(utf8_first(url, 200)),
			       response.status);
	r = jv_parse(l->ctx->arena, response.body, ret, err);
	if (r == 0 && (*ret)->type != JV_OBJECT)
		r = err_set(err, ERR_INVALID, "it is not an object");
	return r ? err_prefix(err, "%.*s", STR_ARG(utf8_first(url, 200))) : 0;
}

/* "https://host:port" and the path without its query and a '/' at its end. */
static struct str origin_of(struct arena *arena, const struct url *url, struct str *ret_path)
{
	struct url root = *url;
	struct str text, path = str_first(url->target, str_find_char(url->target, '?'));

	root.target = STR("/");
	text = url_format(arena, &root);
	while (str_ends(path, STR("/")))
		path = str_first(path, path.len - 1);
	*ret_path = path;
	return str_first(text, text.len - 1);
}

struct str oauth_resource(struct arena *arena, struct mcp_client *c)
{
	struct str url = jv_get_str(c->server, "url");

	url = str_first(url, str_find_char(url, '#'));
	url = str_first(url, str_find_char(url, '?'));
	if (str_ends(url, STR("/")))
		url = str_first(url, url.len - 1);
	return arena_str(arena, url);
}

/* The metadata must be about this server: the same address, or one above it. */
static int check_resource(struct login_run *l, const struct jv *metadata, struct err *err)
{
	struct arena *arena = l->ctx->arena;
	struct str named = jv_get_str(metadata, "resource"), own_path, path;
	struct url own, url;
	int r = url_parse(arena, jv_get_str(l->c->server, "url"), &own, err);

	if (r == 0)
		r = url_parse(arena, named, &url, err);
	if (r)
		return err_prefix(err, "the metadata of the MCP server \"%.*s\"", STR_ARG(l->c->name));
	if (!str_eq(origin_of(arena, &own, &own_path), origin_of(arena, &url, &path)) || !str_starts(own_path, path) ||
	    (own_path.len > path.len && path.len && own_path.ptr[path.len] != '/'))
		return err_set(err, ERR_DENIED,
			       "the MCP server \"%.*s\" says that its logins are for another resource, \"%.*s\"; Stead "
			       "does not use them",
			       STR_ARG(l->c->name), STR_ARG(utf8_first(named, 200)));
	l->resource = named;
	return 0;
}

int oauth_find_resource(struct login_run *l, struct str challenge, struct err *err)
{
	struct arena *arena = l->ctx->arena;
	struct str named = oauth_challenge_param(challenge, "resource_metadata"), path, origin;
	struct jv *v = NULL;
	struct url url;
	int r = url_parse(arena, jv_get_str(l->c->server, "url"), &url, err);

	if (r)
		return r;
	origin = origin_of(arena, &url, &path);
	if (named.len) {
		r = fetch(l, named, &v, err);
	} else {
		r = fetch(l,
			  arena_printf(arena, "%.*s/.well-known/oauth-protected-resource%.*s", STR_ARG(origin),
				       STR_ARG(path)),
			  &v, err);
		if (r == -ERR_NOT_FOUND && path.len)
			r = fetch(l, arena_printf(arena, "%.*s/.well-known/oauth-protected-resource", STR_ARG(origin)),
				  &v, err);
	}
	if (r)
		return err_prefix(err, "the MCP server \"%.*s\" requires a login but does not say where",
				  STR_ARG(l->c->name));
	r = check_resource(l, v, err);
	if (r)
		return r;
	l->issuer = jv_str_of(jv_at(jv_get(v, "authorization_servers"), 0));
	l->scopes = jv_get(v, "scopes_supported");
	return l->issuer.len ? 0
			     : err_set(err, ERR_INVALID, "the MCP server \"%.*s\" names no authorization server",
				       STR_ARG(l->c->name));
}

int oauth_find_server(struct login_run *l, struct err *err)
{
	struct arena *arena = l->ctx->arena;
	struct str path, origin, urls[3];
	size_t count = 0;
	struct jv *v = NULL;
	struct url url;
	int r = oauth_check_url(arena, l->issuer, &url, err);

	if (r)
		return r;
	origin = origin_of(arena, &url, &path);
	urls[count++] =
		arena_printf(arena, "%.*s/.well-known/oauth-authorization-server%.*s", STR_ARG(origin), STR_ARG(path));
	urls[count++] =
		arena_printf(arena, "%.*s/.well-known/openid-configuration%.*s", STR_ARG(origin), STR_ARG(path));
	if (path.len)
		urls[count++] = arena_printf(arena, "%.*s%.*s/.well-known/openid-configuration", STR_ARG(origin),
					     STR_ARG(path));
	r = -ERR_NOT_FOUND;
	for (size_t i = 0; i < count && r; i++)
		r = fetch(l, urls[i], &v, err);
	if (r)
		return err_prefix(err, "the login for the MCP server \"%.*s\"", STR_ARG(l->c->name));
	if (!str_eq(jv_get_str(v, "issuer"), l->issuer))
		return err_set(err, ERR_DENIED,
			       "the authorization server of the MCP server \"%.*s\" calls itself \"%.*s\", but its "
			       "address is \"%.*s\"; Stead does not use it",
			       STR_ARG(l->c->name), STR_ARG(utf8_first(jv_get_str(v, "issuer"), 120)),
			       STR_ARG(utf8_first(l->issuer, 120)));
	l->server = v;
	return 0;
}
