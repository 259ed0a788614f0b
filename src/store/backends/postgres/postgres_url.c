/* SPDX-License-Identifier: Apache-2.0 */
/*
 * postgres://… as a configuration. The parameters that are ours (schema, prefix, pool, timeout, pooler) are taken out;
 * what is left goes to libpq as it is, so that several hosts, sockets, certificates and target_session_attrs mean what
 * they mean to psql.
 */
#include "base/clock.h"
#include "base/hex.h"
#include "base/limits.h"
#include "store/backends/postgres/postgres_conn.h"
#include "store/wpath.h"

#define URL_MAX ((size_t)4096)

static bool schema_ok(const char *name)
{
	size_t len = strlen(name);

	return len > 0 && len <= 63 && !(name[0] >= '0' && name[0] <= '9') &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == len;
}

static int number(const char *key, const char *value, int64_t low, int64_t high, int64_t *ret, struct err *err)
{
	if (!str_to_i64(str_of(value), ret) || *ret < low || *ret > high)
		return err_set(err, ERR_INVALID, "the store's URL: %s is \"%s\"; give a number from %lld to %lld", key,
			       value, (long long)low, (long long)high);
	return 0;
}

/* 1 when the parameter is libpq's. */
static int take_own(struct pg_config *c, struct str key, const char *value, struct err *err)
{
	struct wpath path;
	int64_t n;
	int r;

	if (str_is(key, "schema")) {
		free(c->schema);
		c->schema = xstrndup(str_of(value));
		return schema_ok(value) ? 0
					: err_set(err, ERR_INVALID,
						  "the store's URL: the schema \"%s\" is not a name of at most 63 "
						  "lower-case letters, digits and '_'",
						  value);
	}
	if (str_is(key, "prefix")) {
		free(c->prefix);
		c->prefix = xstrndup(str_of(value));
		return wpath_parse(str_of(c->prefix), &path, err);
	}
	if (str_is(key, "pool")) {
		r = number("pool", value, 1, 1000, &n, err);
		c->pool = r ? 0 : (unsigned)n;
		return r;
	}
	if (str_is(key, "timeout")) {
		r = number("timeout (in seconds)", value, 1, 86400, &n, err);
		c->timeout_ns = r ? 0 : n * NS_PER_S;
		return r;
	}
	if (str_is(key, "pooler")) {
		c->pooler = true;
		return strcmp(value, "transaction") == 0 ? 0
							 : err_set(err, ERR_INVALID,
								   "the store's URL: pooler is \"%s\"; the only "
								   "value is \"transaction\"",
								   value);
	}
	return 1;
}

static int split_query(struct pg_config *c, struct str query, struct buf *libpq, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct str pair;
	char sep = '?';

	while (str_cut(&query, '&', &pair)) {
		size_t eq = str_find_char(pair, '=');
		struct str key = str_first(pair, eq);
		struct str value = percent_decode(arena, str_from(pair, eq + 1));
		int r = value.ptr && !memchr(value.ptr, '\0', value.len)
				? take_own(c, key, value.ptr, err)
				: err_set(err, ERR_INVALID,
					  "the store's URL: the value of \"%.*s\" is not percent-encoded correctly",
					  STR_ARG(key));

		if (r < 0)
			return r;
		if (r == 1) {
			buf_char(libpq, sep);
			buf_add(libpq, pair);
			sep = '&';
		}
	}
	return 0;
}

int pg_config_parse(struct str url, const struct env *env, struct pg_config *ret, struct err *err)
{
	struct pg_config c = {.timeout_ns = 30000000000, .pool = 24};
	const char *password = env_get(env, "STEAD_POSTGRES_PASSWORD");
	size_t mark = str_find_char(url, '?'), at;
	struct str server = str_first(url, mark);
	struct buf libpq;
	int r;

	if (url.len > URL_MAX || memchr(url.ptr, '\0', url.len))
		return err_set(err, ERR_INVALID, "the store's URL is longer than %zu bytes or has a NUL character",
			       URL_MAX);
	c.schema = xstrndup(STR("stead"));
	c.prefix = xstrndup(STR(""));
	c.password = password && *password ? xstrndup(str_of(password)) : NULL;
	buf_init(&libpq, NULL, URL_MAX + 1);
	buf_add(&libpq, server);
	r = split_query(&c, str_from(url, mark + 1), &libpq, err);
	buf_char(&libpq, '\0');
	c.conninfo = libpq.ptr;
	if (r == 0)
		r = pg_conninfo_check(c.conninfo, err);
	/* Without the user: everything up to '@'. */
	server = str_from(server, str_find(server, STR("//"), 0) + 2);
	at = str_rfind_char(server, '@');
	server = at < server.len ? str_from(server, at + 1) : server;
	c.server = xmalloc(server.len + 16);
	snprintf(c.server, server.len + 16, "PostgreSQL at %.*s", STR_ARG(server));
	if (r) {
		pg_config_release(&c);
		return r;
	}
	*ret = c;
	return 0;
}

void pg_config_release(struct pg_config *c)
{
	if (c->password)
		explicit_bzero(c->password, strlen(c->password));
	free(c->conninfo);
	free(c->password);
	free(c->server);
	free(c->schema);
	free(c->prefix);
	*c = (struct pg_config){0};
}
