/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections to one Redis server, kept open and lent out. The one used last is lent first, so that as few as possible
 * stay warm. A connection begins with one pipeline: who we are, which database, and the scripts; after that a script
 * is named by its hash alone.
 *
 * hiredis was rejected: Debian's has neither TLS nor deadlines over a whole exchange, and the protocol is small.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/limits.h"
#include "net/resp.h"
#include "net/sock.h"

#define IDLE_TRUST_NS   NS_PER_S /* a connection that was idle for longer is looked at first */
#define OUT_KEPT        (64 * KIB)
#define PIPELINE_MAX    (1024 * MIB)
#define WAIT_SLICE_NS   20000000
#define SETUP_REPLY_MAX (64 * KIB)
#define RESP_HASH_LEN   40        /* SHA-1 in hex digits */
#define COPY_BELOW      (4 * KIB) /* longer arguments are sent from where they are */
#define LONG_MAX        8         /* of one pipeline; more are copied */

struct resp_conn {
	struct resp_conn *next; /* idle */
	struct resp_client *client;
	struct sock *sock;
	struct resp_in in;
	struct buf out;
	struct {
		size_t at; /* in out */
		struct str bytes;
	} longs[LONG_MAX];
	size_t long_count;
	char name[RESP_CONN_NAME + 1];
	struct ctx *ctx; /* of the answer that is being read */
	int64_t deadline_ns;
	int64_t idle_ns; /* since when */
	uint64_t era;    /* of the address */
	unsigned pending;
	bool broken, extra, sent;
	char buf[RESP_BUF];
};

struct resp_client {
	struct resp_opts opts; /* strings owned */
	struct tls_config *tls;
	pthread_mutex_t lock;
	pthread_cond_t freed;
	struct resp_conn *idle;
	unsigned out;
	uint64_t era;     /* counts changes of address */
	char *moved_host; /* of a cluster: where the keys are; NULL: where the URL says */
	unsigned moved_port;
	atomic_uint_fast64_t trips;
	char (*hashes)[RESP_HASH_LEN];
};

static char *copied(const char *text)
{
	return text ? xstrndup(str_of(text)) : NULL;
}

int resp_client_new(const struct resp_opts *opts, struct resp_client **ret_client, struct err *err)
{
	struct resp_client *c = xcalloc(1, sizeof(*c));
	pthread_condattr_t attr;

	if (opts->tls) {
		int r = tls_config_new(&opts->tls_opts, &c->tls, err);

		if (r) {
			free(c);
			return r;
		}
	}
	c->opts = *opts;
	c->opts.host = copied(opts->host);
	c->opts.unix_path = copied(opts->unix_path);
	c->opts.user = copied(opts->user);
	c->opts.password = copied(opts->password);
	c->hashes = xcalloc(opts->script_count + 1, RESP_HASH_LEN);
	pthread_mutex_init(&c->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&c->freed, &attr);
	pthread_condattr_destroy(&attr);
	*ret_client = c;
	return 0;
}

static void conn_destroy(struct resp_conn *conn)
{
	sock_close(conn->sock);
	buf_release(&conn->out);
	free(conn);
}

void resp_client_destroy(struct resp_client *c)
{
	while (c->idle) {
		struct resp_conn *next = c->idle->next;

		conn_destroy(c->idle);
		c->idle = next;
	}
	tls_config_destroy(c->tls);
	pthread_cond_destroy(&c->freed);
	pthread_mutex_destroy(&c->lock);
	free((char *)c->opts.host);
	free((char *)c->opts.unix_path);
	free((char *)c->opts.user);
	if (c->opts.password) {
		explicit_bzero((char *)c->opts.password, strlen(c->opts.password));
		free((char *)c->opts.password);
	}
	free(c->moved_host);
	free(c->hashes);
	free(c);
}

/* Opening. */

static int conn_fill(void *arg, void *bytes, size_t cap, void *spill, size_t spill_cap, size_t *ret_len,
		     struct err *err)
{
	struct resp_conn *conn = arg;

	return sock_read(conn->sock, conn->ctx, conn->deadline_ns, bytes, cap, spill, spill_cap, ret_len, err);
}

static void put_setup(struct resp_client *c, struct resp_conn *conn)
{
	struct str hello[5] = {STR("HELLO"), STR("3"), STR("AUTH"), str_of(c->opts.user ? c->opts.user : "default"),
			       str_of(c->opts.password)};
	char db[16];

	resp_put(conn, hello, c->opts.password ? 5 : 2);
	if (c->opts.db) {
		snprintf(db, sizeof(db), "%u", c->opts.db);
		resp_put(conn, (struct str[]){STR("SELECT"), str_of(db)}, 2);
	}
	for (size_t i = 0; i < c->opts.script_count; i++)
		resp_put(conn, (struct str[]){STR("SCRIPT"), STR("LOAD"), c->opts.scripts[i]}, 3);
}

/* The hash of a script as the server computes it: the same from every connection. */
static void keep_hash(struct resp_client *c, size_t script, struct str hash)
{
	pthread_mutex_lock(&c->lock);
	if (!c->hashes[script][0] && hash.len == RESP_HASH_LEN)
		memcpy(c->hashes[script], hash.ptr, RESP_HASH_LEN);
	pthread_mutex_unlock(&c->lock);
}

struct str resp_script_hash(const struct resp_client *c, size_t script)
{
	return str_n(c->hashes[script], RESP_HASH_LEN);
}

/* The answers of the set-up; the first that is an error says what is wrong. */
static int conn_setup(struct resp_client *c, struct resp_conn *conn, struct ctx *ctx, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	int r;

	put_setup(c, conn);
	r = resp_send(conn, ctx, err);
	conn->sent = false; /* opening is not counted */
	while (r == 0 && conn->pending) {
		unsigned left = conn->pending;
		struct resp_value v;

		r = resp_get(conn, ctx, arena, SETUP_REPLY_MAX, 0, &v, err);
		if (r == 0 && v.type == RESP_ERROR)
			r = resp_error(v.s, err);
		else if (r == 0 && left <= c->opts.script_count)
			keep_hash(c, c->opts.script_count - left, v.s);
	}
	if (r && c->opts.password && *c->opts.password && err_mentions(err, c->opts.password))
		r = err_set(err, ERR_UNAVAILABLE, "the server refused the connection and echoed the password");
	return r;
}

/* 48 random bits. */
static void name_conn(struct resp_conn *conn)
{
	static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-";
	uint64_t bits = random_u64();

	for (size_t i = 0; i < RESP_CONN_NAME; i++, bits >>= 6)
		conn->name[i] = digits[bits & 63];
}

static int conn_open(struct resp_client *c, struct ctx *ctx, const char *host, unsigned port,
		     struct resp_conn **ret_conn, struct err *err)
{
	struct sock_target target = {.host = host, .port = port, .unix_path = c->opts.unix_path, .tls = c->tls};
	struct resp_conn *conn;
	struct sock *sock;
	int r = sock_connect(&target, ctx, clock_monotonic_ns() + (int64_t)c->opts.connect_ms * NS_PER_MS, &sock, err);

	if (r == 0) {
		conn = xcalloc(1, sizeof(*conn));
		conn->client = c;
		conn->sock = sock;
		conn->in = (struct resp_in){.buf = conn->buf, .fill = conn_fill, .arg = conn};
		buf_init(&conn->out, NULL, PIPELINE_MAX);
		name_conn(conn);
		r = conn_setup(c, conn, ctx, err);
		if (r == 0)
			*ret_conn = conn;
		else
			conn_destroy(conn);
	}
	if (r && c->opts.unix_path)
		err_prefix(err, "Redis at %s", c->opts.unix_path);
	else if (r)
		err_prefix(err, "Redis at %s:%u", host, port);
	return r;
}

/* To where the keys are; when that server is gone, to where the URL says. */
static int open_somewhere(struct resp_client *c, struct ctx *ctx, struct resp_conn **ret_conn, struct err *err)
{
	char *host = NULL;
	unsigned port = 0;
	uint64_t era;
	int r = -1;

	pthread_mutex_lock(&c->lock);
	if (c->moved_host) {
		host = copied(c->moved_host);
		port = c->moved_port;
	}
	era = c->era;
	pthread_mutex_unlock(&c->lock);
	if (host)
		r = conn_open(c, ctx, host, port, ret_conn, err);
	free(host);
	if (r)
		r = conn_open(c, ctx, c->opts.host, c->opts.port, ret_conn, err);
	if (r == 0)
		(*ret_conn)->era = era;
	return r;
}

bool resp_follow(struct resp_client *c, struct str error)
{
	struct str rest = error, word, address;
	int64_t port;
	size_t colon;

	if (c->opts.unix_path || !str_cut(&rest, ' ', &word) || !str_is(word, "MOVED") || !str_cut(&rest, ' ', &word))
		return false;
	address = str_trim(rest);
	colon = str_rfind_char(address, ':');
	if (!str_to_i64(str_from(address, colon + 1), &port) || port < 1 || port > 65535)
		return false;
	pthread_mutex_lock(&c->lock);
	free(c->moved_host);
	c->moved_host = colon ? xstrndup(str_first(address, colon)) : copied(c->opts.host);
	c->moved_port = (unsigned)port;
	c->era++;
	pthread_mutex_unlock(&c->lock);
	return true;
}

/* Lending. */

/* Waits until one of the connections is free; holds the lock. */
static int wait_for_one(struct resp_client *c, struct ctx *ctx, int64_t deadline_ns, struct err *err)
{
	while (c->out >= c->opts.connections) {
		int64_t now = clock_monotonic_ns(), until = now + WAIT_SLICE_NS;
		struct timespec t = clock_timespec(until);
		int r = ctx_check(ctx, err);

		if (r == 0 && now > deadline_ns) {
			r = err_set(err, ERR_TIMEOUT, "all %u connections to Redis are in use; try again",
				    c->opts.connections);
			err->retryable = true;
		}
		if (r)
			return r;
		pthread_cond_timedwait(&c->freed, &c->lock, &t);
	}
	return 0;
}

int resp_take(struct resp_client *c, struct ctx *ctx, bool extra, struct resp_conn **ret_conn, struct err *err)
{
	int64_t now = clock_monotonic_ns();
	struct resp_conn *conn = NULL;
	int r = 0;

	pthread_mutex_lock(&c->lock);
	if (!extra)
		r = wait_for_one(c, ctx, now + (int64_t)c->opts.answer_ms * NS_PER_MS, err);
	while (r == 0 && !conn && (conn = c->idle)) {
		c->idle = conn->next;
		if (conn->era != c->era || (now - conn->idle_ns > IDLE_TRUST_NS && !sock_is_quiet(conn->sock))) {
			conn_destroy(conn);
			conn = NULL;
		}
	}
	if (r == 0 && !extra)
		c->out++;
	pthread_mutex_unlock(&c->lock);
	if (r)
		return r;
	if (!conn)
		r = open_somewhere(c, ctx, &conn, err);
	if (r == 0) {
		conn->extra = extra;
		*ret_conn = conn;
		return 0;
	}
	if (!extra) {
		pthread_mutex_lock(&c->lock);
		c->out--;
		pthread_cond_signal(&c->freed);
		pthread_mutex_unlock(&c->lock);
	}
	return r;
}

void resp_give(struct resp_client *c, struct resp_conn *conn)
{
	bool keep = !conn->broken && !conn->pending;

	buf_clear(&conn->out);
	conn->long_count = 0;
	if (conn->out.cap > OUT_KEPT) {
		buf_release(&conn->out);
		buf_init(&conn->out, NULL, PIPELINE_MAX);
	}
	conn->idle_ns = clock_monotonic_ns();
	pthread_mutex_lock(&c->lock);
	if (!conn->extra) {
		c->out--;
		pthread_cond_signal(&c->freed);
	}
	if (keep) {
		conn->next = c->idle;
		c->idle = conn;
	}
	pthread_mutex_unlock(&c->lock);
	if (!keep)
		conn_destroy(conn);
}

void resp_drop(struct resp_client *c, struct resp_conn *conn)
{
	conn->broken = true;
	resp_give(c, conn);
}

/* Exchanging. */

static void put_bytes(struct resp_conn *conn, struct str bytes)
{
	if (bytes.len < COPY_BELOW || conn->long_count == LONG_MAX) {
		buf_add(&conn->out, bytes);
		return;
	}
	conn->longs[conn->long_count].at = conn->out.len;
	conn->longs[conn->long_count++].bytes = bytes;
}

void resp_put(struct resp_conn *conn, const struct str *args, size_t count)
{
	resp_put_joined(conn, args, count, SIZE_MAX, STR(""));
}

void resp_put_joined(struct resp_conn *conn, const struct str *args, size_t count, size_t joined, struct str tail)
{
	struct buf *out = &conn->out;

	buf_char(out, '*');
	buf_u64(out, count);
	buf_lit(out, "\r\n");
	for (size_t i = 0; i < count; i++) {
		buf_char(out, '$');
		buf_u64(out, args[i].len + (i == joined ? tail.len : 0));
		buf_lit(out, "\r\n");
		put_bytes(conn, args[i]);
		if (i == joined)
			put_bytes(conn, tail);
		buf_lit(out, "\r\n");
	}
	conn->pending++;
}

int resp_send(struct resp_conn *conn, struct ctx *ctx, struct err *err)
{
	int64_t deadline_ns = clock_monotonic_ns() + (int64_t)conn->client->opts.answer_ms * NS_PER_MS;
	struct iovec pieces[2 * LONG_MAX + 1];
	size_t count = 0, at = 0;
	int r = 0;

	for (size_t i = 0; i < conn->long_count; i++) {
		struct str bytes = conn->longs[i].bytes;

		pieces[count++] = (struct iovec){conn->out.ptr + at, conn->longs[i].at - at};
		pieces[count++] = (struct iovec){(char *)bytes.ptr, bytes.len};
		at = conn->longs[i].at;
	}
	pieces[count++] = (struct iovec){conn->out.ptr + at, conn->out.len - at};
	conn->long_count = 0;
	if (conn->out.overflow)
		r = err_set(err, ERR_TOO_LARGE, "a request to Redis is larger than %zu bytes", (size_t)PIPELINE_MAX);
	if (r == 0)
		r = sock_write(conn->sock, ctx, deadline_ns, pieces, count, err);
	buf_clear(&conn->out);
	conn->broken |= r != 0;
	conn->sent = true;
	return r;
}

int resp_get(struct resp_conn *conn, struct ctx *ctx, struct arena *arena, size_t max, int64_t more_ns,
	     struct resp_value *ret_value, struct err *err)
{
	int r;

	if (conn->sent)
		atomic_fetch_add(&conn->client->trips, 1);
	conn->sent = false;
	conn->ctx = ctx;
	conn->deadline_ns = clock_monotonic_ns() + (int64_t)conn->client->opts.answer_ms * NS_PER_MS + more_ns;
	conn->in.arena = arena;
	do
		r = resp_parse(&conn->in, max, ret_value, err);
	while (r == 0 && ret_value->type == RESP_PUSH);
	conn->ctx = NULL;
	if (r)
		conn->broken = true;
	else
		conn->pending--;
	return r;
}

int resp_get_placed(struct resp_conn *conn, struct ctx *ctx, struct arena *arena, size_t max,
		    const struct resp_place *place, struct resp_value *ret_value, struct err *err)
{
	int r;

	conn->in.place = place;
	r = resp_get(conn, ctx, arena, max, 0, ret_value, err);
	conn->in.place = NULL;
	return r;
}

const char *resp_conn_name(const struct resp_conn *conn)
{
	return conn->name;
}

uint64_t resp_trips(const struct resp_client *c)
{
	return atomic_load(&c->trips);
}
