/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection to PostgreSQL over libpq. The library is loaded when the first connection is opened, not at start: it
 * brings fifteen others with it, four milliseconds for every `stead` that never speaks to a database.
 *
 * libpq's blocking calls have no deadline that holds while a server stalls, so only its asynchronous half is used. Its
 * PQcancel opens another connection and blocks; instead the connection is closed, and the session asks the server to
 * look once a second whether its client is still there.
 */
#include "store/backends/postgres/postgres_conn.h"

#include <dlfcn.h>
#include <endian.h>
#include <errno.h>
#include <libpq-fe.h>
#include <poll.h>
#include <pthread.h>

#include "base/clock.h"
#include "base/fatal.h"
#include "base/limits.h"

#define PQ_FUNCTIONS(X)                                                                                                \
	X(PQconnectStartParams)                                                                                        \
	X(PQconnectPoll)                                                                                               \
	X(PQstatus)                                                                                                    \
	X(PQsocket)                                                                                                    \
	X(PQfinish)                                                                                                    \
	X(PQerrorMessage)                                                                                              \
	X(PQsetErrorVerbosity)                                                                                         \
	X(PQsetnonblocking)                                                                                            \
	X(PQserverVersion)                                                                                             \
	X(PQparameterStatus)                                                                                           \
	X(PQsendQuery)                                                                                                 \
	X(PQsendQueryParams)                                                                                           \
	X(PQsendQueryPrepared)                                                                                         \
	X(PQsetSingleRowMode)                                                                                          \
	X(PQflush)                                                                                                     \
	X(PQconsumeInput)                                                                                              \
	X(PQisBusy)                                                                                                    \
	X(PQgetResult)                                                                                                 \
	X(PQresultStatus)                                                                                              \
	X(PQresultErrorField)                                                                                          \
	X(PQclear)                                                                                                     \
	X(PQntuples)                                                                                                   \
	X(PQgetisnull)                                                                                                 \
	X(PQgetvalue)                                                                                                  \
	X(PQgetlength)                                                                                                 \
	X(PQnotifies)                                                                                                  \
	X(PQfreemem)                                                                                                   \
	X(PQconninfoParse)                                                                                             \
	X(PQconninfoFree)                                                                                              \
	X(PQsetNoticeProcessor)

#define PQ_POINTER(name) __typeof__(name) *(name);
static struct {
	PQ_FUNCTIONS(PQ_POINTER)
} pq;

static struct {
	pthread_once_t once;
	bool ok;
} library = {.once = PTHREAD_ONCE_INIT};

static void load_library(void)
{
	void *handle = dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL);

	if (!handle)
		return;
	library.ok = true;
#define PQ_LOAD(name)                                                                                                  \
	*(void **)&pq.name = dlsym(handle, #name);                                                                     \
	library.ok = library.ok && pq.name;
	PQ_FUNCTIONS(PQ_LOAD)
}

static int need_library(struct err *err)
{
	pthread_once(&library.once, load_library);
	if (!library.ok)
		return err_set(err, ERR_UNSUPPORTED,
			       "PostgreSQL's client library libpq.so.5 cannot be loaded; install it (Debian: libpq5)");
	return 0;
}

/* Errors. */

struct pg_problem {
	const char *state; /* SQLSTATE, or its first characters */
	enum err_kind kind;
	bool retryable;
	const char *says;
};

/* The first that fits counts. */
static const struct pg_problem problems[] = {
	{"28P01", ERR_UNAUTHENTICATED, false,
	 "the password was refused; set the right one in PGPASSWORD, STEAD_POSTGRES_PASSWORD or ~/.pgpass"},
	{"28000", ERR_UNAUTHENTICATED, false,
	 "the server rejects this user; check the user in the URL, and pg_hba.conf on the server"},
	{"3D000", ERR_UNAVAILABLE, false, "there is no such database; create it with createdb, or correct the URL"},
	{"53300", ERR_UNAVAILABLE, true,
	 "the server has no connections left; raise its max_connections, or lower pool= in the store's URL"},
	{"25006", ERR_DENIED, false,
	 "the server is read-only, like a standby; name the primary, or several hosts with "
	 "target_session_attrs=read-write"},
	{"53100", ERR_UNAVAILABLE, false, "the disk of the server is full; free space there, then try again"},
	{"53200", ERR_UNAVAILABLE, true, "the server is out of memory; try again, or lower pool= in the store's URL"},
	{"42501", ERR_DENIED, false, "the user lacks a right for this; grant it rights on the schema"},
	{"57014", ERR_TIMEOUT, true,
	 "the statement took longer than allowed; try again, or raise timeout= in the store's URL"},
	{"55P03", ERR_TIMEOUT, true, "another session holds a lock for too long; try again"},
	{"57P0", ERR_UNAVAILABLE, true, "the server is shutting down or starting; try again in a moment"},
	{"40", ERR_UNAVAILABLE, true, "the server aborted this call in favour of another; try again"},
	{"42P01", ERR_CORRUPT, false, "a table of the schema is missing; open the store again to create it"},
	{"42883", ERR_CORRUPT, false, "a function of the schema is missing; open the store again to create it"},
	{"26000", ERR_UNAVAILABLE, true,
	 "a prepared statement has disappeared, as happens with a pooler; add pooler=transaction to the store's URL"},
	{"08", ERR_UNAVAILABLE, true, "the connection broke; try again"},
};

/* One line of what the server said, without quotes of a statement. */
static struct str first_line(const char *says)
{
	struct str s = str_of(says);

	return str_trim(str_first(s, str_find_char(s, '\n')));
}

int pg_error(const struct pg_config *config, const char *state, const char *says, struct err *err)
{
	for (size_t i = 0; i < COUNT(problems); i++) {
		const struct pg_problem *p = &problems[i];

		if (strncmp(state, p->state, strlen(p->state)) != 0)
			continue;
		err_set(err, p->kind, "%s: %s", config->server, p->says);
		err->retryable = p->retryable;
		return -p->kind;
	}
	return err_set(err, ERR_INTERNAL, "%s: %.*s (SQLSTATE %s)", config->server, STR_ARG(first_line(says)), state);
}

/* A failed connection gives its SQLSTATE only within the text: "FATAL:  28P01: …". */
static bool find_state(const char *says, char ret_state[6])
{
	for (const char *at = strstr(says, ":  "); at; at = strstr(at + 1, ":  ")) {
		size_t n = strspn(at + 3, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ");

		if (n == 5 && at[8] == ':') {
			memcpy(ret_state, at + 3, 5);
			ret_state[5] = '\0';
			return true;
		}
	}
	return false;
}

static int connect_error(struct pg_link *l, struct err *err)
{
	const char *says = pq.PQerrorMessage(l->conn);
	char state[6];

	if (find_state(says, state))
		return pg_error(l->config, state, says, err);
	if (strstr(says, "no password supplied"))
		return err_set(
			err, ERR_UNAUTHENTICATED,
			"%s: the server requires a password; set PGPASSWORD, STEAD_POSTGRES_PASSWORD or ~/.pgpass",
			l->config->server);
	if (strstr(says, "certificate") || strstr(says, "SSL"))
		return err_set(err, ERR_UNAVAILABLE,
			       "%s: TLS failed: %.*s; check sslmode= and sslrootcert=", l->config->server,
			       STR_ARG(first_line(says)));
	err_set(err, ERR_UNAVAILABLE, "%s cannot be reached: %.*s; check the host and port, and that it runs",
		l->config->server, STR_ARG(first_line(says)));
	err->retryable = true;
	return -ERR_UNAVAILABLE;
}

static int link_died(struct pg_link *l, struct err *err)
{
	l->base.broken = true;
	err_set(err, ERR_UNAVAILABLE, "%s: the connection broke; try again", l->config->server);
	err->retryable = true;
	return -ERR_UNAVAILABLE;
}

static int result_error(struct pg_link *l, const PGresult *res, struct err *err)
{
	const char *state = pq.PQresultErrorField(res, PG_DIAG_SQLSTATE);
	const char *says = pq.PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY);

	if (!state || pq.PQstatus(l->conn) == CONNECTION_BAD) {
		l->base.lost = true;
		return link_died(l, err);
	}
	if (strncmp(state, "57P0", 4) == 0)
		l->base.broken = true; /* the server ends this connection */
	return pg_error(l->config, state, says ? says : "", err);
}

/* Waiting. */

static int timed_out(struct pg_link *l, const struct ctx *ctx, int64_t now, struct err *err)
{
	int r = ctx->deadline_ns && now >= ctx->deadline_ns ? ctx_check(ctx, err) : 0;

	l->base.broken = true;
	if (r)
		return r;
	err_set(err, ERR_TIMEOUT, "%s did not answer within %lld ms; try again, or raise timeout= in the store's URL",
		l->config->server, (long long)(l->config->timeout_ns / NS_PER_MS));
	err->retryable = true;
	return -ERR_TIMEOUT;
}

static int64_t statement_deadline(const struct pg_link *l, const struct ctx *ctx)
{
	int64_t until = clock_monotonic_ns() + l->config->timeout_ns;

	return ctx->deadline_ns && ctx->deadline_ns < until ? ctx->deadline_ns : until;
}

/* Until the socket is ready: >0 its events; 0 when `until_ns` came. A cancelled call fails. */
static int wait_socket(struct pg_link *l, struct ctx *ctx, short events, int64_t until_ns, struct err *err)
{
	struct pollfd fd = {.fd = pq.PQsocket(l->conn), .events = events};

	for (;;) {
		int64_t now = clock_monotonic_ns(), left = until_ns - now;
		int ms = left <= 0 ? 0 : left > 50000000 ? 50 : (int)((left + 999999) / 1000000), n;
		struct err why;

		if (ctx_check(ctx, &why) == -ERR_CANCELLED) {
			l->base.broken = true;
			*err = why;
			return -ERR_CANCELLED;
		}
		n = poll(&fd, 1, ms);
		if (n > 0)
			return fd.revents;
		if (n < 0 && errno != EINTR)
			return link_died(l, err);
		if (left <= 0)
			return 0;
	}
}

/* Connecting. */

static void no_notice(void *arg, const char *message)
{
	(void)arg;
	(void)message;
}

static int finish_connecting(struct pg_link *l, struct ctx *ctx, struct err *err)
{
	int64_t until = statement_deadline(l, ctx);
	PostgresPollingStatusType status = PGRES_POLLING_WRITING;

	if (pq.PQstatus(l->conn) == CONNECTION_BAD)
		return connect_error(l, err);
	while (status != PGRES_POLLING_OK) {
		int n = wait_socket(l, ctx, status == PGRES_POLLING_READING ? POLLIN : POLLOUT, until, err);

		if (n < 0)
			return n;
		if (n == 0)
			return timed_out(l, ctx, clock_monotonic_ns(), err);
		status = pq.PQconnectPoll(l->conn);
		if (status == PGRES_POLLING_FAILED)
			return connect_error(l, err);
	}
	return 0;
}

int pg_open(const struct pg_config *config, struct ctx *ctx, struct pg_link **ret_link, struct err *err)
{
	/* The URL is expanded from "dbname"; later keys override it. */
	const char *keys[] = {"dbname", "client_encoding", "application_name", config->password ? "password" : NULL,
			      NULL};
	const char *values[] = {config->conninfo, "UTF8", "stead", config->password, NULL};
	struct pg_link *l;
	int r = need_library(err);

	if (r)
		return r;
	l = xcalloc(1, sizeof(*l));
	l->config = config;
	l->conn = pq.PQconnectStartParams(keys, values, 1);
	if (!l->conn)
		fatal("out of memory in libpq");
	pq.PQsetErrorVerbosity(l->conn, PQERRORS_VERBOSE);
	pq.PQsetNoticeProcessor(l->conn, no_notice, NULL);
	r = finish_connecting(l, ctx, err);
	if (r == 0 && pq.PQsetnonblocking(l->conn, 1))
		r = link_died(l, err);
	if (r) {
		pg_close(l);
		return r;
	}
	*ret_link = l;
	return 0;
}

void pg_close(struct pg_link *l)
{
	pq.PQfinish(l->conn);
	free(l);
}

int pg_server_version(const struct pg_link *l)
{
	return pq.PQserverVersion(l->conn);
}

const char *pg_server_says(const struct pg_link *l, const char *name)
{
	const char *value = pq.PQparameterStatus(l->conn, name);

	return value ? value : "";
}

/* Parameters. */

static void add_arg(struct pg_args *a, const char *value, size_t length)
{
	if (a->n == PG_ARGS_MAX || length > INT32_MAX)
		fatal("the parameters are too many or too long for a statement");
	a->value[a->n] = value;
	a->length[a->n++] = (int)length;
}

void pg_arg_str(struct pg_args *a, struct str s)
{
	add_arg(a, s.ptr ? s.ptr : "", s.len);
}

void pg_arg_null(struct pg_args *a)
{
	add_arg(a, NULL, 0);
}

/* Numbers are stored in the struct itself; value is set when it is sent, since the struct may be copied. */
static void add_number(struct pg_args *a, const void *bytes, size_t size)
{
	memcpy(a->number[a->n], bytes, size);
	add_arg(a, "", size);
	a->is_number[a->n - 1] = true;
}

void pg_arg_i64(struct pg_args *a, int64_t v)
{
	uint64_t be = htobe64((uint64_t)v);

	add_number(a, &be, 8);
}

void pg_arg_i32(struct pg_args *a, int32_t v)
{
	uint32_t be = htobe32((uint32_t)v);

	add_number(a, &be, 4);
}

void pg_arg_bool(struct pg_args *a, bool v)
{
	char byte = v;

	add_number(a, &byte, 1);
}

void pg_set_bool(struct pg_args *a, int index, bool v)
{
	a->number[index][0] = v;
}

/* Answers. */

int pg_rows(const struct pg_result *res)
{
	return pq.PQntuples(res);
}

bool pg_null(const struct pg_result *res, int row, int col)
{
	return pq.PQgetisnull(res, row, col);
}

struct str pg_str(const struct pg_result *res, int row, int col)
{
	return str_n(pq.PQgetvalue(res, row, col), (size_t)pq.PQgetlength(res, row, col));
}

int64_t pg_i64(const struct pg_result *res, int row, int col)
{
	struct str s = pg_str(res, row, col);
	uint64_t v8;
	uint32_t v4;

	if (s.len == 8) {
		memcpy(&v8, s.ptr, 8);
		return (int64_t)be64toh(v8);
	}
	if (s.len == 4) {
		memcpy(&v4, s.ptr, 4);
		return (int32_t)be32toh(v4);
	}
	return 0;
}

bool pg_bool(const struct pg_result *res, int row, int col)
{
	struct str s = pg_str(res, row, col);

	return s.len == 1 && s.ptr[0];
}

void pg_result_free(struct pg_result *res)
{
	pq.PQclear(res);
}

/* Statements. */

/* Sends everything. Input that arrives while sending is read too, so that neither side waits for the other. */
static int flush(struct pg_link *l, struct ctx *ctx, int64_t until, struct err *err)
{
	int more;

	while ((more = pq.PQflush(l->conn)) == 1) {
		int n = wait_socket(l, ctx, POLLIN | POLLOUT, until, err);

		if (n < 0)
			return n;
		if (n == 0)
			return timed_out(l, ctx, clock_monotonic_ns(), err);
		if ((n & POLLIN) && !pq.PQconsumeInput(l->conn))
			more = -1;
		if (more < 0)
			break;
	}
	if (more < 0) {
		l->base.lost = true;
		return link_died(l, err);
	}
	return 0;
}

/* The next result, NULL at the end of the answer. */
static int get_result(struct pg_link *l, struct ctx *ctx, int64_t until, PGresult **ret, struct err *err)
{
	while (pq.PQisBusy(l->conn)) {
		int n = wait_socket(l, ctx, POLLIN, until, err);

		if (n < 0)
			return n;
		if (n == 0)
			return timed_out(l, ctx, clock_monotonic_ns(), err);
		if (!pq.PQconsumeInput(l->conn)) {
			l->base.lost = true;
			return link_died(l, err);
		}
	}
	*ret = pq.PQgetResult(l->conn);
	return 0;
}

static bool is_good(const PGresult *res)
{
	ExecStatusType status = pq.PQresultStatus(res);

	return status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK || status == PGRES_SINGLE_TUPLE;
}

/* The last result of the answer; the first error in it counts. */
static int whole_answer(struct pg_link *l, struct ctx *ctx, struct pg_result **ret_res, struct err *err)
{
	int64_t until = statement_deadline(l, ctx);
	PGresult *res = NULL, *last = NULL;
	int r = flush(l, ctx, until, err), failed = 0;

	while (r == 0) {
		r = get_result(l, ctx, until, &res, err);
		if (r || !res)
			break;
		if (!is_good(res)) {
			if (!failed)
				failed = result_error(l, res, err);
			pq.PQclear(res);
			continue;
		}
		if (last)
			pq.PQclear(last);
		last = res;
	}
	if (r == 0)
		r = failed;
	if (r == 0 && !last)
		r = link_died(l, err);
	if (r == 0 && ret_res)
		*ret_res = last;
	else if (last)
		pq.PQclear(last);
	return r;
}

static int send(struct pg_link *l, const struct pg_stmt *stmt, const struct pg_args *args, struct err *err)
{
	const char *value[PG_ARGS_MAX];
	int format[PG_ARGS_MAX], ok;

	for (int i = 0; i < args->n; i++) {
		value[i] = args->is_number[i] ? args->number[i] : args->value[i];
		format[i] = 1;
	}
	l->base.trips++;
	if (l->config->pooler)
		ok = pq.PQsendQueryParams(l->conn, stmt->text, args->n, NULL, value, args->length, format, 1);
	else
		ok = pq.PQsendQueryPrepared(l->conn, stmt->name, args->n, value, args->length, format, 1);
	return ok ? 0 : link_died(l, err);
}

int pg_exec(struct pg_link *l, struct ctx *ctx, const struct pg_stmt *stmt, const struct pg_args *args,
	    struct pg_result **ret_res, struct err *err)
{
	int r = ctx_check(ctx, err);

	if (r == 0)
		r = send(l, stmt, args, err);
	return r ? r : whole_answer(l, ctx, ret_res, err);
}

int pg_exec_text(struct pg_link *l, struct ctx *ctx, const char *sql, struct pg_result **ret_res, struct err *err)
{
	int r = ctx_check(ctx, err);

	if (r)
		return r;
	l->base.trips++;
	if (!pq.PQsendQuery(l->conn, sql))
		return link_died(l, err);
	return whole_answer(l, ctx, ret_res, err);
}

int pg_begin(struct pg_link *l, struct ctx *ctx, const struct pg_stmt *stmt, const struct pg_args *args,
	     struct err *err)
{
	int r = ctx_check(ctx, err);

	if (r == 0)
		r = send(l, stmt, args, err);
	if (r == 0 && !pq.PQsetSingleRowMode(l->conn))
		r = link_died(l, err);
	return r ? r : flush(l, ctx, statement_deadline(l, ctx), err);
}

int pg_next(struct pg_link *l, struct ctx *ctx, struct pg_result **ret_row, struct err *err)
{
	PGresult *res = NULL;
	int r = get_result(l, ctx, statement_deadline(l, ctx), &res, err);

	if (r || !res) {
		*ret_row = NULL;
		return r;
	}
	if (!is_good(res)) {
		r = result_error(l, res, err);
		pq.PQclear(res);
		l->base.broken = true; /* the rest of the answer is not worth the wait */
		return r;
	}
	if (pq.PQntuples(res) == 0) { /* the end of the rows; the end of the answer follows */
		pq.PQclear(res);
		return pg_next(l, ctx, ret_row, err);
	}
	*ret_row = res;
	return 0;
}

void pg_abandon(struct pg_link *l)
{
	l->base.broken = true;
}

int pg_wait_notify(struct pg_link *l, struct ctx *ctx, int64_t until_ns, struct err *err)
{
	for (;;) {
		PGnotify *note = pq.PQnotifies(l->conn);
		int n;

		if (note) {
			pq.PQfreemem(note);
			return 0;
		}
		n = wait_socket(l, ctx, POLLIN, until_ns, err);
		if (n < 0)
			return n;
		if (n == 0)
			return err_set(err, ERR_TIMEOUT, "nothing arrived in time");
		if (!pq.PQconsumeInput(l->conn))
			return link_died(l, err);
	}
}

int pg_conninfo_check(const char *conninfo, struct err *err)
{
	char *says = NULL;
	PQconninfoOption *options;
	bool password = false;
	int r = need_library(err);

	if (r)
		return r;
	options = pq.PQconninfoParse(conninfo, &says);
	if (!options) {
		err_set(err, ERR_INVALID,
			"the store's URL is not understood: %.*s; write "
			"postgres://USER@HOST:PORT/DATABASE?schema=NAME",
			STR_ARG(first_line(says ? says : "")));
		pq.PQfreemem(says);
		return -ERR_INVALID;
	}
	for (const PQconninfoOption *o = options; o->keyword; o++)
		password |= strcmp(o->keyword, "password") == 0 && o->val;
	pq.PQconninfoFree(options);
	if (password)
		return err_set(err, ERR_INVALID,
			       "the store's URL has a password, which would show in process lists and logs; put it "
			       "into PGPASSWORD, STEAD_POSTGRES_PASSWORD or ~/.pgpass");
	return 0;
}
