/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a URL to a Redis store, and the first look at the server: does it speak our protocol, is the data under the
 * prefix ours, and does it keep what it acknowledges?
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/hex.h"
#include "store/backends/redis/redis.h"

#define FORMAT         "2" /* of the keys below a prefix */
#define URL_MAX        ((size_t)2048)
#define PREFIX_DEFAULT "stead"
#define PREFIX_MAX     ((size_t)128)
#define PORT_DEFAULT   6379
#define INFO_MAX       (256 * KIB)
#define CONNECTIONS    32

struct parsed {
	struct resp_opts opts;
	struct str prefix;
};

static int bad_url(struct err *err, const char *what)
{
	return err_set(err, ERR_INVALID,
		       "the Redis URL has %s; write redis://[user@]host[:port][/db][?prefix=…], with the password in "
		       "STEAD_REDIS_PASSWORD",
		       what);
}

/* %XX decoded, in the arena; NULL for what is malformed or has a NUL. */
static const char *decoded(struct arena *arena, struct str text)
{
	struct str s = percent_decode(arena, text);

	return s.ptr && !memchr(s.ptr, '\0', s.len) ? s.ptr : NULL;
}

static bool to_number(const char *text, unsigned max, unsigned *ret)
{
	int64_t n;

	if (!text || !str_to_i64(str_of(text), &n) || n < 0 || n > max)
		return false;
	*ret = (unsigned)n;
	return true;
}

static bool prefix_ok(struct str prefix)
{
	for (size_t i = 0; i < prefix.len; i++)
		if (!isalnum((unsigned char)prefix.ptr[i]) && !memchr("_.:/-", prefix.ptr[i], 5))
			return false;
	return prefix.len > 0 && prefix.len <= PREFIX_MAX;
}

static int parse_option(struct parsed *p, struct str key, const char *value, struct err *err)
{
	if (!value)
		return bad_url(err, "a percent sign that is not followed by two hex digits");
	if (str_is(key, "prefix")) {
		p->prefix = str_of(value);
		return prefix_ok(p->prefix) ? 0
					    : bad_url(err, "a prefix that is empty, too long, or has characters other "
							   "than letters, digits and _ . : / -");
	}
	if (str_is(key, "db"))
		return to_number(value, 100000, &p->opts.db) ? 0 : bad_url(err, "a database that is not a number");
	if (str_is(key, "timeout_ms"))
		return to_number(value, 600000, &p->opts.answer_ms) && p->opts.answer_ms
			       ? 0
			       : bad_url(err, "a timeout_ms that is not 1 to 600000");
	if (str_is(key, "connections"))
		return to_number(value, 1000, &p->opts.connections) && p->opts.connections
			       ? 0
			       : bad_url(err, "a number of connections that is not 1 to 1000");
	if (str_is(key, "ca"))
		p->opts.tls_opts.ca_file = value;
	else if (str_is(key, "cert"))
		p->opts.tls_opts.cert_file = value;
	else if (str_is(key, "key"))
		p->opts.tls_opts.key_file = value;
	else
		return bad_url(err,
			       "an unknown option; the options are prefix, db, timeout_ms, connections, ca, cert, key");
	return 0;
}

static int parse_options(struct arena *arena, struct parsed *p, struct str query, struct err *err)
{
	struct str pair;
	int r = 0;

	while (r == 0 && str_cut(&query, '&', &pair)) {
		size_t eq = str_find_char(pair, '=');

		if (pair.len)
			r = parse_option(p, str_first(pair, eq), decoded(arena, str_from(pair, eq + 1)), err);
	}
	return r;
}

static int parse_user(struct arena *arena, struct parsed *p, struct str user, struct err *err)
{
	size_t colon = str_find_char(user, ':');
	const char *name = decoded(arena, str_first(user, colon));
	const char *secret = colon < user.len ? decoded(arena, str_from(user, colon + 1)) : "";

	if (!name || !secret)
		return bad_url(err, "a percent sign that is not followed by two hex digits");
	if (*name)
		p->opts.user = name;
	if (*secret)
		p->opts.password = secret;
	return 0;
}

static int parse_host(struct arena *arena, struct parsed *p, struct str host, struct err *err)
{
	bool bracket = str_starts(host, STR("["));
	size_t end = bracket ? str_find_char(host, ']') : str_rfind_char(host, ':');
	struct str port = str_from(host, bracket ? end + 1 : end);

	if (bracket && end == host.len)
		return bad_url(err, "an address without its closing bracket");
	host = bracket ? str_n(host.ptr + 1, end - 1) : str_first(host, end);
	p->opts.host = host.len ? decoded(arena, host) : "127.0.0.1";
	p->opts.port = PORT_DEFAULT;
	if (!p->opts.host)
		return bad_url(err, "a percent sign that is not followed by two hex digits");
	if (port.len && (port.ptr[0] != ':' || !to_number(arena_cstr(arena, str_from(port, 1)), 65535, &p->opts.port) ||
			 p->opts.port == 0))
		return bad_url(err, "a port that is not a number from 1 to 65535");
	return 0;
}

/* redis://, rediss://, redis+unix://[user@]/path/of.sock */
static int parse_url(struct arena *arena, struct str url, struct parsed *p, struct err *err)
{
	bool tls = str_starts(url, STR("rediss://")), unix_socket = str_starts(url, STR("redis+unix://"));
	struct str rest = str_from(url, unix_socket ? 13 : tls ? 9 : 8), query, authority, path;
	size_t at;
	int r = 0;

	if (url.len > URL_MAX)
		return bad_url(err, "more than 2048 bytes");
	at = str_find_char(rest, '?');
	query = str_from(rest, at + 1);
	rest = str_first(rest, at);
	at = str_find_char(rest, '/');
	authority = str_first(rest, at);
	path = str_from(rest, at);
	at = str_rfind_char(authority, '@');
	if (at < authority.len) {
		r = parse_user(arena, p, str_first(authority, at), err);
		authority = str_from(authority, at + 1);
	}
	p->opts.tls = tls;
	if (r == 0 && unix_socket) {
		p->opts.unix_path = decoded(arena, path);
		if (!p->opts.unix_path || path.len < 2 || authority.len)
			r = bad_url(err, "no absolute path to a socket");
	} else if (r == 0) {
		r = parse_host(arena, p, authority, err);
		path = str_from(path, 1);
		if (r == 0 && path.len && !to_number(arena_cstr(arena, path), 100000, &p->opts.db))
			r = bad_url(err, "a database that is not a number");
	}
	return r ? r : parse_options(arena, p, query, err);
}

/* A secret in the environment does not appear in a list of processes. */
static void from_environment(struct parsed *p, const struct env *env)
{
	static const char *const secrets[] = {"STEAD_REDIS_PASSWORD", "REDIS_PASSWORD"};
	const char *ca = env_get(env, "STEAD_REDIS_CA");

	for (size_t i = 0; i < 2 && !p->opts.password; i++) {
		const char *value = env_get(env, secrets[i]);

		if (value && *value)
			p->opts.password = value;
	}
	if (!p->opts.tls_opts.ca_file && ca && *ca)
		p->opts.tls_opts.ca_file = ca;
}

/* The value of "name:value" in what INFO answers. */
static struct str info_value(const struct resp_value *v, const char *name)
{
	struct str rest = v->type == RESP_STR ? v->s : STR(""), line;
	size_t len = strlen(name);

	while (str_cut(&rest, '\n', &line))
		if (str_starts(line, str_of(name)) && line.len > len && line.ptr[len] == ':')
			return str_trim(str_from(line, len + 1));
	return STR("");
}

/* What the server's settings mean for what is kept in it. Silent when it does not let us ask. */
static void look_at_settings(struct redis *rd, struct ctx *ctx)
{
	struct resp_value info, fsync;
	struct err ignored;
	struct str policy;
	const char *durable = "";

	if (redis_command(rd, ctx, (struct str[]){STR("INFO"), STR("everything")}, 2, INFO_MAX, &info, &ignored))
		return;
	policy = info_value(&info, "maxmemory_policy");
	if (str_is(info_value(&info, "aof_enabled"), "0"))
		durable = "this Redis server keeps no append-only file, so it may lose acknowledged writes when it "
			  "stops; set \"appendonly yes\" and \"appendfsync always\"";
	else if (redis_command(rd, ctx, (struct str[]){STR("CONFIG"), STR("GET"), STR("appendfsync")}, 3,
			       REDIS_META_MAX, &fsync, &ignored) == 0 &&
		 fsync.count == 2 && !str_is(redis_item(&fsync, 1), "always"))
		durable = "this Redis server syncs its append-only file once a second or less often, so a power cut "
			  "may lose the last acknowledged writes; set \"appendfsync always\"";
	if (str_starts(policy, STR("allkeys")))
		snprintf(rd->advice, sizeof(rd->advice),
			 "this Redis server evicts files when it is full (maxmemory-policy %.*s); set it to "
			 "noeviction%s%s",
			 STR_ARG(utf8_first(policy, 40)), *durable ? "; " : "", durable);
	else
		snprintf(rd->advice, sizeof(rd->advice), "%s", durable);
}

/* The prefix is new, or of a form that this build knows. */
static int check_format(struct redis *rd, struct ctx *ctx, struct err *err)
{
	struct str key = redis_key(rd, ctx->arena, "format", STR(""));
	struct resp_value v;
	int r = redis_command(rd, ctx, (struct str[]){STR("GET"), key}, 2, REDIS_META_MAX, &v, err);

	if (r == 0 && v.type == RESP_NULL)
		return redis_command(rd, ctx, (struct str[]){STR("SET"), key, STR(FORMAT), STR("NX")}, 4,
				     REDIS_META_MAX, &v, err);
	if (r == 0 && (v.type != RESP_STR || !str_is(v.s, FORMAT)))
		r = err_set(err, ERR_UNSUPPORTED,
			    "the data under this prefix in Redis has format %.*s, but this build knows  " FORMAT
			    "; use a newer Stead or another prefix",
			    STR_ARG(utf8_first(v.s, 40)));
	return r;
}

/* What is tried before anything else of a script. */
static struct str first_of(size_t script)
{
	return script == REDIS_WRITE         ? redis_lua_write_fast
	       : script == REDIS_JOURNAL_ADD ? redis_lua_journal_fast
					     : STR("");
}

static void make_scripts(struct redis *rd)
{
	static const struct str *const own[REDIS_SCRIPTS] = {
		[REDIS_WRITE] = &redis_lua_write,
		[REDIS_APPEND] = &redis_lua_append,
		[REDIS_REMOVE] = &redis_lua_remove,
		[REDIS_MOVE] = &redis_lua_move,
		[REDIS_COPY] = &redis_lua_copy,
		[REDIS_LIST] = &redis_lua_list,
		[REDIS_JOURNAL_ADD] = &redis_lua_journal_add,
		[REDIS_JOURNAL_GROUP] = &redis_lua_journal_group,
		[REDIS_JOURNAL_READ] = &redis_lua_journal_read,
		[REDIS_JOURNAL_CUT] = &redis_lua_journal_cut,
	};

	for (size_t i = 0; i < REDIS_SCRIPTS; i++) {
		struct str parts[] = {first_of(i), redis_lua_common, *own[i]};
		char *text = xmalloc(parts[0].len + parts[1].len + parts[2].len);
		size_t len = 0;

		for (size_t k = 0; k < 3; k++) {
			if (parts[k].len)
				memcpy(text + len, parts[k].ptr, parts[k].len);
			len += parts[k].len;
		}
		rd->scripts[i] = str_n(text, len);
	}
}

static struct str owned_key(struct str prefix, const char *rest)
{
	size_t len = prefix.len + 3 + strlen(rest);
	char *key = xmalloc(len + 1);

	snprintf(key, len + 1, "{%.*s}:%s", STR_ARG(prefix), rest);
	return str_n(key, len);
}

int store_redis_open(struct str url, const struct env *env, const struct ctx *limits, struct store **ret_store,
		     struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena, .deadline_ns = limits->deadline_ns, .cancel = limits->cancel};
	struct parsed p = {.prefix = STR(PREFIX_DEFAULT),
			   .opts = {.connect_ms = 5000, .answer_ms = 15000, .connections = CONNECTIONS}};
	struct redis *rd;
	int r = parse_url(arena, url, &p, err);

	if (r)
		return r;
	from_environment(&p, env);
	if (p.opts.connect_ms > p.opts.answer_ms)
		p.opts.connect_ms = p.opts.answer_ms;
	rd = xcalloc(1, sizeof(*rd));
	rd->base.ops = &redis_ops;
	rd->key_base = owned_key(p.prefix, "");
	rd->names = owned_key(p.prefix, "n");
	rd->journals = owned_key(p.prefix, "j");
	rd->answer_ms = p.opts.answer_ms;
	make_scripts(rd);
	p.opts.scripts = rd->scripts;
	p.opts.script_count = REDIS_SCRIPTS;
	r = resp_client_new(&p.opts, &rd->client, err);
	if (r == 0)
		r = check_format(rd, &ctx, err);
	if (r) {
		store_destroy(&rd->base);
		return r;
	}
	look_at_settings(rd, &ctx);
	*ret_store = &rd->base;
	return 0;
}

const char *store_redis_advice(struct store *s)
{
	return s->ops == &redis_ops && redis_of(s)->advice[0] ? redis_of(s)->advice : NULL;
}

uint64_t store_redis_trips(struct store *s)
{
	return resp_trips(redis_of(s)->client);
}
