/* SPDX-License-Identifier: Apache-2.0 */
/* mysql://… and mariadb://… as a configuration. A password is never in it: URLs are seen in lists of processes. */
#include "base/clock.h"
#include "base/hex.h"
#include "base/limits.h"
#include "store/backends/mysql/mysql_conn.h"
#include "store/wpath.h"

#define URL_MAX ((size_t)4096)

static int not_understood(const char *why, struct err *err)
{
	return err_set(err, ERR_INVALID,
		       "the store's URL is not understood: %s; write mysql://USER@HOST:PORT/DATABASE?prefix=PATH", why);
}

static int number(const char *key, struct str value, int64_t low, int64_t high, int64_t *ret, struct err *err)
{
	if (!str_to_i64(value, ret) || *ret < low || *ret > high)
		return err_set(err, ERR_INVALID, "the store's URL: %s is \"%.*s\"; give a number from %lld to %lld",
			       key, STR_ARG(utf8_first(value, 40)), (long long)low, (long long)high);
	return 0;
}

static int decoded(struct arena *arena, struct str text, char **ret, struct err *err)
{
	struct str value = percent_decode(arena, text);

	if (!value.ptr || memchr(value.ptr, '\0', value.len))
		return not_understood("a part is not percent-encoded correctly", err);
	free(*ret);
	*ret = xstrndup(value);
	return 0;
}

static int take_parameter(struct arena *arena, struct str key, struct str value, struct my_config *c, struct err *err)
{
	struct wpath path;
	int64_t n = 0;
	int r;

	if (str_is(key, "socket"))
		return decoded(arena, value, &c->socket, err);
	if (str_is(key, "ssl-ca"))
		return decoded(arena, value, &c->ca, err);
	if (str_is(key, "prefix")) {
		r = decoded(arena, value, &c->prefix, err);
		return r ? r : wpath_parse(str_of(c->prefix), &path, err);
	}
	if (str_is(key, "pool")) {
		r = number("pool", value, 1, 1000, &n, err);
		c->pool = (unsigned)n;
		return r;
	}
	if (str_is(key, "timeout")) {
		r = number("timeout (in seconds)", value, 1, 86400, &n, err);
		c->timeout_ns = n * NS_PER_S;
		return r;
	}
	return err_set(err, ERR_INVALID,
		       "the store's URL: \"%.*s\" is not a parameter; the parameters are prefix, pool, timeout, socket "
		       "and ssl-ca",
		       STR_ARG(utf8_first(key, 40)));
}

/* "[::1]:3306", "db.internal", "db:3307" */
static int take_host(struct arena *arena, struct str host, struct my_config *c, struct err *err)
{
	size_t colon = str_rfind_char(host, ':'), end = str_rfind_char(host, ']');
	int64_t port = 3306;
	int r = 0;

	if (colon < host.len && (end == host.len || end < colon)) {
		r = number("the port", str_from(host, colon + 1), 1, 65535, &port, err);
		host = str_first(host, colon);
	}
	if (str_starts(host, STR("[")) && str_ends(host, STR("]")))
		host = str_from(str_first(host, host.len - 1), 1);
	c->port = (unsigned)port;
	return r ? r : decoded(arena, host, &c->host, err);
}

static int take_server(struct arena *arena, struct str rest, struct my_config *c, struct err *err)
{
	struct str place = str_first(rest, str_find_char(rest, '/')), user;
	size_t at = str_rfind_char(place, '@');
	int r;

	if (place.len + 1 >= rest.len)
		return not_understood("it names no database", err);
	user = at < place.len ? str_first(place, at) : STR("");
	if (str_find_char(user, ':') < user.len)
		return err_set(err, ERR_INVALID,
			       "the store's URL has a password, which would show in process lists and logs; put it "
			       "into STEAD_MYSQL_PASSWORD or MYSQL_PWD");
	r = take_host(arena, at < place.len ? str_from(place, at + 1) : place, c, err);
	if (r == 0 && user.len)
		r = decoded(arena, user, &c->user, err);
	return r ? r : decoded(arena, str_from(rest, place.len + 1), &c->database, err);
}

int my_config_parse(struct str url, const struct env *env, struct my_config *ret, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct my_config c = {.timeout_ns = 30000000000, .pool = 24};
	const char *password = env_get(env, "STEAD_MYSQL_PASSWORD");
	struct str rest = str_from(url, str_find(url, STR("//"), 0) + 2), query, pair;
	size_t mark = str_find_char(rest, '?');
	int r;

	if (url.len > URL_MAX || memchr(url.ptr, '\0', url.len))
		return err_set(err, ERR_INVALID, "the store's URL is longer than %zu bytes or has a NUL character",
			       URL_MAX);
	if (!password || !*password)
		password = env_get(env, "MYSQL_PWD");
	c.password = password && *password ? xstrndup(str_of(password)) : NULL;
	c.prefix = xstrndup(STR(""));
	query = str_from(rest, mark + 1);
	rest = str_first(rest, mark);
	r = take_server(arena, rest, &c, err);
	while (r == 0 && str_cut(&query, '&', &pair)) {
		size_t eq = str_find_char(pair, '=');

		if (!pair.len)
			continue;
		r = take_parameter(arena, str_first(pair, eq), str_from(pair, eq + 1), &c, err);
	}
	if (r) {
		my_config_release(&c);
		return r;
	}
	c.server = xstrndup(arena_printf(arena, "the database \"%s\" at %s", c.database,
					 c.socket ? c.socket : arena_printf(arena, "%s:%u", c.host, c.port).ptr));
	*ret = c;
	return 0;
}

void my_config_release(struct my_config *c)
{
	if (c->password)
		explicit_bzero(c->password, strlen(c->password));
	free(c->host);
	free(c->user);
	free(c->database);
	free(c->socket);
	free(c->password);
	free(c->ca);
	free(c->server);
	free(c->prefix);
	*c = (struct my_config){0};
}
