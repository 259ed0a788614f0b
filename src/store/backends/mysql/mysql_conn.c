/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection to MariaDB or MySQL. The library is loaded when the first connection is opened, not at start, as every
 * library that few need.
 *
 * Its blocking calls have no deadline that holds while a server stalls, so only its non-blocking half is used: each
 * call has a _start and a _cont, and between them this file polls the socket until the call's deadline, the time-out of
 * the URL or a cancellation. Whoever gives up closes the connection; the server ends what it was doing when it notices.
 */
#include "store/backends/mysql/mysql_conn.h"

#include <dlfcn.h>
#include <errno.h>
#include <mysql.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fatal.h"
#include "base/limits.h"

#define MY_FUNCTIONS(X)                                                                                                \
	X(mysql_init)                                                                                                  \
	X(mysql_optionsv)                                                                                              \
	X(mysql_real_connect_start)                                                                                    \
	X(mysql_real_connect_cont)                                                                                     \
	X(mysql_real_query_start)                                                                                      \
	X(mysql_real_query_cont)                                                                                       \
	X(mysql_store_result_start)                                                                                    \
	X(mysql_store_result_cont)                                                                                     \
	X(mysql_next_result_start)                                                                                     \
	X(mysql_next_result_cont)                                                                                      \
	X(mysql_fetch_row_start)                                                                                       \
	X(mysql_fetch_row_cont)                                                                                        \
	X(mysql_use_result)                                                                                            \
	X(mysql_fetch_row)                                                                                             \
	X(mysql_fetch_lengths)                                                                                         \
	X(mysql_num_rows)                                                                                              \
	X(mysql_num_fields)                                                                                            \
	X(mysql_field_count)                                                                                           \
	X(mysql_free_result)                                                                                           \
	X(mysql_more_results)                                                                                          \
	X(mysql_errno)                                                                                                 \
	X(mysql_error)                                                                                                 \
	X(mysql_get_socket)                                                                                            \
	X(mysql_get_timeout_value_ms)                                                                                  \
	X(mysql_get_server_version)                                                                                    \
	X(mysql_get_server_info)                                                                                       \
	X(mysql_close)

#define MY_POINTER(name) __typeof__(name) *(name);
static struct {
	MY_FUNCTIONS(MY_POINTER)
} my;

static struct {
	pthread_once_t once;
	bool ok;
} library = {.once = PTHREAD_ONCE_INIT};

static void load_library(void)
{
	void *handle = dlopen("libmariadb.so.3", RTLD_NOW | RTLD_LOCAL);

	if (!handle)
		return;
	library.ok = true;
#define MY_LOAD(name)                                                                                                  \
	*(void **)&my.name = dlsym(handle, #name);                                                                     \
	library.ok = library.ok && my.name;
	MY_FUNCTIONS(MY_LOAD)
}

static int need_library(struct err *err)
{
	pthread_once(&library.once, load_library);
	if (!library.ok)
		return err_set(
			err, ERR_UNSUPPORTED,
			"MariaDB's client library libmariadb.so.3 cannot be loaded; install it (Debian: libmariadb3)");
	return 0;
}

/* --- errors --- */

static const struct {
	unsigned code;
	enum err_kind kind;
	bool retryable;
	const char *says;
} problems[] = {
	{1045, ERR_UNAUTHENTICATED, false,
	 "the server rejects this user; check the user in the URL, and set the password in STEAD_MYSQL_PASSWORD"},
	{1044, ERR_DENIED, false, "the user may not use this database; grant it rights on the database"},
	{1049, ERR_UNAVAILABLE, false, "there is no such database; create it, or correct the URL"},
	{1040, ERR_UNAVAILABLE, true,
	 "the server has no connections left; raise its max_connections, or lower pool= in the store's URL"},
	{1203, ERR_UNAVAILABLE, true,
	 "the user has no connections left; raise max_user_connections, or lower pool= in the store's URL"},
	{1290, ERR_DENIED, false, "the server is read-only, like a replica; name the primary"},
	{1836, ERR_DENIED, false, "the server is read-only, like a replica; name the primary"},
	{1021, ERR_UNAVAILABLE, false, "the disk of the server is full; free space there, then try again"},
	{1114, ERR_UNAVAILABLE, false, "a table of the server is full; free space there, then try again"},
	{1142, ERR_DENIED, false, "the user lacks a right for this; grant it rights on the database"},
	{1370, ERR_DENIED, false, "the user may not use procedures; grant it EXECUTE and CREATE ROUTINE"},
	{1205, ERR_UNAVAILABLE, true, "another session held a lock for too long; try again"},
	{1213, ERR_UNAVAILABLE, true, "the server aborted this call in favour of another; try again"},
	{1020, ERR_UNAVAILABLE, true, "the server aborted this call in favour of another; try again"},
	{1053, ERR_UNAVAILABLE, true, "the server is shutting down; try again in a moment"},
	{1969, ERR_TIMEOUT, true,
	 "the statement took longer than allowed; try again, or raise timeout= in the store's URL"},
	{1153, ERR_TOO_LARGE, false, "the server accepts no statement of this size; raise its max_allowed_packet"},
	{2020, ERR_TOO_LARGE, false, "the server accepts no statement of this size; raise its max_allowed_packet"},
	{1146, ERR_CORRUPT, false, "one of Stead's tables is missing; open the store again to create it"},
	{1305, ERR_CORRUPT, false, "one of Stead's procedures is missing; open the store again to create it"},
};

/* Codes that mean that the connection is gone. */
static bool is_gone(unsigned code)
{
	return code == 2006 || code == 2013 || code == 2055 || code == 1927 || code == 1317 || code == 2014 ||
	       code == 1158 || code == 1159 || code == 1160 || code == 1161;
}

static int link_died(struct my_link *l, struct err *err)
{
	l->base.broken = true;
	err_set(err, ERR_UNAVAILABLE, "%s: the connection broke; try again", l->config->server);
	err->retryable = true;
	return -ERR_UNAVAILABLE;
}

static int server_error(struct my_link *l, struct err *err)
{
	unsigned code = my.mysql_errno(l->conn);
	struct str says = str_of(my.mysql_error(l->conn));

	if (code == 0 || is_gone(code)) {
		l->base.lost = true;
		return link_died(l, err);
	}
	l->base.broken = true; /* a transaction may be open: the server rolls it back */
	for (size_t i = 0; i < COUNT(problems); i++)
		if (problems[i].code == code) {
			err_set(err, problems[i].kind, "%s: %s", l->config->server, problems[i].says);
			err->retryable = problems[i].retryable;
			return -problems[i].kind;
		}
	return err_set(err, ERR_INTERNAL, "%s: %.*s (error %u)", l->config->server, STR_ARG(utf8_first(says, 200)),
		       code);
}

/* --- waiting --- */

static int64_t statement_deadline(const struct my_link *l, const struct ctx *ctx)
{
	int64_t until = clock_monotonic_ns() + l->config->timeout_ns;

	return ctx->deadline_ns && ctx->deadline_ns < until ? ctx->deadline_ns : until;
}

static int timed_out(struct my_link *l, const struct ctx *ctx, struct err *err)
{
	int r = ctx->deadline_ns && clock_monotonic_ns() >= ctx->deadline_ns ? ctx_check(ctx, err) : 0;

	l->base.broken = true;
	if (r)
		return r;
	err_set(err, ERR_TIMEOUT, "%s did not answer within %lld ms; try again, or raise timeout= in the store's URL",
		l->config->server, (long long)(l->config->timeout_ns / NS_PER_MS));
	err->retryable = true;
	return -ERR_TIMEOUT;
}

/* Waits for what `status` asks for; *ret_ready is what came. */
static int wait_for(struct my_link *l, struct ctx *ctx, int status, int64_t until, int *ret_ready, struct err *err)
{
	struct pollfd fd = {.fd = my.mysql_get_socket(l->conn)};
	struct err why;

	fd.events = (short)((status & MYSQL_WAIT_READ ? POLLIN : 0) | (status & MYSQL_WAIT_WRITE ? POLLOUT : 0) |
			    (status & MYSQL_WAIT_EXCEPT ? POLLPRI : 0));
	for (;;) {
		int64_t left = until - clock_monotonic_ns();
		int ms = left <= 0 ? 0 : left > 50000000 ? 50 : (int)((left + 999999) / 1000000), n;

		if (ctx_check(ctx, &why) == -ERR_CANCELLED) {
			l->base.broken = true;
			*err = why;
			return -ERR_CANCELLED;
		}
		n = poll(&fd, 1, ms);
		if (n < 0 && errno != EINTR)
			return link_died(l, err);
		if (n > 0)
			break;
		if (left <= 0)
			return timed_out(l, ctx, err);
	}
	*ret_ready = (fd.revents & (POLLIN | POLLHUP | POLLERR) ? MYSQL_WAIT_READ : 0) |
		     (fd.revents & POLLOUT ? MYSQL_WAIT_WRITE : 0) | (fd.revents & POLLPRI ? MYSQL_WAIT_EXCEPT : 0);
	*ret_ready &= status;
	if (!*ret_ready) /* the other side is gone: the library finds out by trying */
		*ret_ready = status & (MYSQL_WAIT_READ | MYSQL_WAIT_WRITE);
	return 0;
}

/* Runs a call of the library to its end. `status` of its _start; `go_on` makes the next step. */
#define FINISH(l, ctx, until, status, cont, err)                                                                       \
	({                                                                                                             \
		int status_ = (status), r_ = 0, ready_;                                                                \
		while (r_ == 0 && status_) {                                                                           \
			r_ = wait_for(l, ctx, status_, until, &ready_, err);                                           \
			if (r_ == 0) {                                                                                 \
				int ready = ready_;                                                                    \
				status_ = (cont);                                                                      \
			}                                                                                              \
		}                                                                                                      \
		r_;                                                                                                    \
	})

/* --- connecting --- */

static int set_options(struct my_link *l, struct err *err)
{
	const struct my_config *c = l->config;
	my_bool verify = c->ca != NULL;
	unsigned seconds = (unsigned)(c->timeout_ns / NS_PER_S) + 1;
	size_t packet = (size_t)1 << 30;
	int bad = my.mysql_optionsv(l->conn, MYSQL_OPT_NONBLOCK, (void *)0);

	bad |= my.mysql_optionsv(l->conn, MYSQL_OPT_CONNECT_TIMEOUT, &seconds);
	bad |= my.mysql_optionsv(l->conn, MYSQL_OPT_MAX_ALLOWED_PACKET, &packet);
	bad |= my.mysql_optionsv(l->conn, MYSQL_SET_CHARSET_NAME, "utf8mb4");
	if (c->ca) {
		bad |= my.mysql_optionsv(l->conn, MYSQL_OPT_SSL_CA, c->ca);
		bad |= my.mysql_optionsv(l->conn, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &verify);
	}
	return bad ? err_set(err, ERR_INTERNAL, "%s: the client library refused an option", c->server) : 0;
}

static int connect_error(struct my_link *l, struct err *err)
{
	unsigned code = my.mysql_errno(l->conn);

	if (code < 2000 && code)
		return server_error(l, err);
	if (code == 2026)
		return err_set(err, ERR_UNAVAILABLE, "%s: TLS failed: %.*s; check ssl-ca= in the store's URL",
			       l->config->server, STR_ARG(utf8_first(str_of(my.mysql_error(l->conn)), 200)));
	err_set(err, ERR_UNAVAILABLE, "%s cannot be reached; check the host and port, and that it runs",
		l->config->server);
	err->retryable = true;
	return -ERR_UNAVAILABLE;
}

int my_open(const struct my_config *c, struct ctx *ctx, struct my_link **ret_link, struct err *err)
{
	struct my_link *l;
	MYSQL *made = NULL;
	int64_t until;
	int status, r = need_library(err);

	if (r)
		return r;
	l = xcalloc(1, sizeof *l);
	l->config = c;
	l->conn = my.mysql_init(NULL);
	if (!l->conn)
		fatal("out of memory in libmariadb");
	until = statement_deadline(l, ctx);
	r = set_options(l, err);
	if (r == 0) {
		status = my.mysql_real_connect_start(&made, l->conn, c->host, c->user, c->password, c->database,
						     c->port, c->socket, CLIENT_MULTI_STATEMENTS);
		r = FINISH(l, ctx, until, status, my.mysql_real_connect_cont(&made, l->conn, ready), err);
		if (r == 0 && !made)
			r = connect_error(l, err);
	}
	if (r) {
		my_close(l);
		return r;
	}
	*ret_link = l;
	return 0;
}

void my_close(struct my_link *l)
{
	my_socket fd = my.mysql_get_socket(l->conn);

	if (l->base.broken && fd >= 0)
		shutdown(fd, SHUT_RDWR); /* so that saying good-bye cannot wait */
	my.mysql_close(l->conn);
	free(l);
}

unsigned long my_server_version(const struct my_link *l, bool *ret_mariadb)
{
	*ret_mariadb = strstr(my.mysql_get_server_info(l->conn), "MariaDB") != NULL;
	return my.mysql_get_server_version(l->conn);
}

void my_abandon(struct my_link *l)
{
	l->base.broken = true;
}

/* --- statements --- */

void my_sql_init(struct my_sql *sql, const char *begin)
{
	*sql = (struct my_sql){0};
	buf_init(&sql->text, NULL, 3 * (size_t)JOURNAL_ENTRY_MAX);
	my_sql_add(sql, begin);
}

void my_sql_release(struct my_sql *sql)
{
	free(sql->text.ptr);
}

void my_sql_add(struct my_sql *sql, const char *text)
{
	buf_add(&sql->text, str_of(text));
}

void my_sql_str(struct my_sql *sql, struct str value)
{
	buf_lit(&sql->text, "_binary'");
	while (value.len) {
		size_t n = str_find_char(value, '\'');

		buf_add(&sql->text, str_first(value, n));
		if (n < value.len)
			buf_lit(&sql->text, "''");
		value = str_from(value, n + 1);
	}
	buf_char(&sql->text, '\'');
}

void my_sql_i64(struct my_sql *sql, int64_t value)
{
	buf_i64(&sql->text, value);
}

void my_sql_again(struct my_sql *sql)
{
	sql->again = sql->text.len;
	buf_char(&sql->text, '0');
}

void my_sql_set_again(struct my_sql *sql)
{
	if (sql->again)
		sql->text.ptr[sql->again] = '1';
}

/* --- answers --- */

struct my_result {
	MYSQL_RES *res;  /* NULL: one row that is given below */
	MYSQL_ROW *rows; /* of res */
	unsigned long **lengths;
	size_t count;
	struct my_result *next;
};

size_t my_rows(const struct my_result *r)
{
	return r->count;
}

bool my_null(const struct my_result *r, size_t row, unsigned col)
{
	return row >= r->count || !r->rows[row][col];
}

struct str my_str(const struct my_result *r, size_t row, unsigned col)
{
	return my_null(r, row, col) ? STR_NONE : str_n(r->rows[row][col], r->lengths[row][col]);
}

int64_t my_i64(const struct my_result *r, size_t row, unsigned col)
{
	int64_t v = 0;

	return str_to_i64(my_str(r, row, col), &v) ? v : 0;
}

const struct my_result *my_result_next(const struct my_result *r)
{
	return r->next;
}

void my_result_free(struct my_result *r)
{
	while (r) {
		struct my_result *next = r->next;

		for (size_t i = 0; i < r->count; i++)
			free(r->lengths[i]);
		free(r->lengths);
		free(r->rows);
		my.mysql_free_result(r->res);
		free(r);
		r = next;
	}
}

static struct my_result *take_rows(MYSQL_RES *res)
{
	struct my_result *r = xcalloc(1, sizeof *r);
	size_t cols = my.mysql_num_fields(res);

	r->res = res;
	r->count = (size_t)my.mysql_num_rows(res);
	r->rows = xcalloc(r->count + 1, sizeof *r->rows);
	r->lengths = xcalloc(r->count + 1, sizeof *r->lengths);
	for (size_t i = 0; i < r->count; i++) {
		r->rows[i] = my.mysql_fetch_row(res);
		r->lengths[i] = xcalloc(cols + 1, sizeof **r->lengths);
		memcpy(r->lengths[i], my.mysql_fetch_lengths(res), cols * sizeof **r->lengths);
	}
	return r;
}

/* Every result set of the answer, in order. */
static int whole_answer(struct my_link *l, struct ctx *ctx, int64_t until, struct my_result **ret, struct err *err)
{
	struct my_result **end = ret;
	int r = 0, more = 0, status;

	while (r == 0 && more == 0) {
		MYSQL_RES *res = NULL;

		status = my.mysql_store_result_start(&res, l->conn);
		r = FINISH(l, ctx, until, status, my.mysql_store_result_cont(&res, l->conn, ready), err);
		if (r)
			break;
		if (!res && my.mysql_field_count(l->conn))
			return server_error(l, err);
		if (res) {
			*end = take_rows(res);
			end = &(*end)->next;
		}
		if (!my.mysql_more_results(l->conn))
			break;
		status = my.mysql_next_result_start(&more, l->conn);
		r = FINISH(l, ctx, until, status, my.mysql_next_result_cont(&more, l->conn, ready), err);
		if (r == 0 && more > 0)
			return server_error(l, err);
	}
	return r;
}

static int send_query(struct my_link *l, struct ctx *ctx, struct str sql, int64_t until, struct err *err)
{
	int failed = 0, status, r = ctx_check(ctx, err);

	if (r)
		return r;
	l->base.trips++;
	status = my.mysql_real_query_start(&failed, l->conn, sql.ptr, sql.len);
	r = FINISH(l, ctx, until, status, my.mysql_real_query_cont(&failed, l->conn, ready), err);
	return r == 0 && failed ? server_error(l, err) : r;
}

int my_exec(struct my_link *l, struct ctx *ctx, struct str sql, struct my_result **ret_res, struct err *err)
{
	MY_RESULT_SCOPE struct my_result *all = NULL;
	int64_t until = statement_deadline(l, ctx);
	int r = send_query(l, ctx, sql, until, err);

	if (r == 0)
		r = whole_answer(l, ctx, until, &all, err);
	if (r == 0 && ret_res && !all)
		return link_died(l, err);
	if (r == 0 && ret_res) {
		*ret_res = all;
		all = NULL;
	}
	return r;
}

int my_stream(struct my_link *l, struct ctx *ctx, struct str sql,
	      int (*row)(void *arg, const struct my_result *res, struct err *err), void *arg, struct err *err)
{
	int status, r = send_query(l, ctx, sql, statement_deadline(l, ctx), err);
	MYSQL_RES *res = r ? NULL : my.mysql_use_result(l->conn);

	if (r == 0 && !res)
		return server_error(l, err);
	while (r == 0) {
		MYSQL_ROW fields = NULL;
		struct my_result one = {.rows = &fields, .count = 1};
		unsigned long *lengths;

		status = my.mysql_fetch_row_start(&fields, res);
		r = FINISH(l, ctx, statement_deadline(l, ctx), status, my.mysql_fetch_row_cont(&fields, res, ready),
			   err);
		if (r || !fields)
			break;
		lengths = my.mysql_fetch_lengths(res);
		one.lengths = &lengths;
		r = row(arg, &one, err);
		if (r)
			l->base.broken = true; /* the rest of the answer is not read */
	}
	if (r == 0 && my.mysql_errno(l->conn))
		r = server_error(l, err);
	if (l->base.broken) { /* freeing would read the rest */
		shutdown(my.mysql_get_socket(l->conn), SHUT_RDWR);
	}
	if (res)
		my.mysql_free_result(res);
	return r;
}
