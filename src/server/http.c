/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libmicrohttpd, driven so that no thread of it ever waits for anything but the network.
 *
 * Its own thread pool shares the connections by epoll. A request that may take long is suspended, handed to a worker
 * and resumed when its answer is there. "A thread per connection" was rejected, because ten thousand idle clients must
 * cost ten thousand small structs and not as many stacks.
 *
 * The library is loaded with the command that serves: its TLS half brings libraries that every other command would have
 * to wait for at its start.
 *
 * Connections are accepted here, by one thread, and handed over. The library can accept them itself, but then the way
 * to stop (MHD_quiesce_daemon) races with its own threads: both take the listening socket out of the same epoll set,
 * and who comes second aborts the process.
 *
 * What the library does not bound is bounded here: once a second one thread looks at all connections and cuts off those
 * whose head does not come, whose body comes too slowly, or whose client has gone in the middle of a request. The
 * library's own timeout starts again with every byte. The same thread cancels work that is of no use without its
 * client.
 */
#include "server/http.h"

#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/env.h"
#include "base/hex.h"
#include "base/limits.h"
#include "command/output.h"
#include "net/dynlib.h"
#include "server/listen.h"
#include "server/pool.h"

#define HEADERS_MAX     100
#define THREADS_MAX     8
#define IDLE_S          60
#define SPARE_MAX       64
#define FDS_KEPT        256 /* descriptors that connections leave to the rest of the program */
#define DISCARD_MAX     (1 * MIB)
#define READER_BLOCK    (32 * KIB)
#define RETRY_ACCEPT_MS 50

static struct {
	__typeof__(MHD_start_daemon) *start;
	__typeof__(MHD_add_connection) *add_connection;
	__typeof__(MHD_stop_daemon) *stop;
	__typeof__(MHD_get_connection_values) *values;
	__typeof__(MHD_get_connection_info) *info;
	__typeof__(MHD_suspend_connection) *suspend;
	__typeof__(MHD_resume_connection) *resume;
	__typeof__(MHD_create_response_from_buffer) *from_buffer;
	__typeof__(MHD_create_response_from_callback) *from_callback;
	__typeof__(MHD_create_response_from_fd_at_offset64) *from_fd;
	__typeof__(MHD_add_response_header) *add_header;
	__typeof__(MHD_queue_response) *queue;
	__typeof__(MHD_destroy_response) *destroy_response;
} api;

static int api_load(struct err *err)
{
	const struct dynlib_entry entries[] = {
		{"MHD_start_daemon", &api.start},
		{"MHD_add_connection", &api.add_connection},
		{"MHD_stop_daemon", &api.stop},
		{"MHD_get_connection_values", &api.values},
		{"MHD_get_connection_info", &api.info},
		{"MHD_suspend_connection", &api.suspend},
		{"MHD_resume_connection", &api.resume},
		{"MHD_create_response_from_buffer", &api.from_buffer},
		{"MHD_create_response_from_callback", &api.from_callback},
		{"MHD_create_response_from_fd_at_offset64", &api.from_fd},
		{"MHD_add_response_header", &api.add_header},
		{"MHD_queue_response", &api.queue},
		{"MHD_destroy_response", &api.destroy_response},
	};

	return dynlib_load("libmicrohttpd.so.12", "libmicrohttpd12", entries, COUNT(entries), err);
}

/* A connection, for as long as it is open. */
struct conn {
	struct conn *next, **slot;
	int fd;
	char peer[48];
	/* Under httpd.lock: since when it waits for a head, or its body comes; 0: neither. */
	int64_t head_ns, body_ns;
	uint64_t body_bytes;
	bool has_ended; /* its client sends no more: it was so a second ago */
};

struct httpd {
	struct httpd_opts opts;
	struct MHD_Daemon *daemon;
	struct pool *pool;
	int listen_fd, stop_fd; /* stop_fd: an eventfd that ends the thread that accepts */
	pthread_t acceptor;
	bool accepting;
	char url[80];
	char *tmp_dir;
	pthread_mutex_t lock;
	pthread_cond_t ended; /* an exchange has ended, or the watchdog is to */
	struct conn *conns;
	uint64_t conn_count, running;
	struct exchange *active;
	struct exchange *spare;
	size_t spare_count;
	pthread_t watchdog;
	bool watching;
	atomic_bool stopping;
	atomic_size_t body_memory; /* bytes of bodies that are in memory */
};

/* What an exchange has besides what its owner sees. */
struct exchange_inside {
	struct httpd *httpd;
	struct MHD_Connection *connection;
	struct conn *conn;
	struct exchange *next, **slot; /* of those that are under way */
	bool begun, checked, submitted, chunked;
	bool is_unclear;  /* where the request ends, so nothing that follows it is looked at */
	atomic_uint pins; /* who still works on a suspended exchange */
	bool for_client;  /* under httpd.lock: it is cancelled when its client goes */
	struct buf body;
	struct err body_err; /* kind 0: none */
	uint64_t discarded;
	enum { ANSWER_BYTES, ANSWER_HEAD, ANSWER_FILE, ANSWER_STREAM } kind;
	struct str bytes;
	int fd;
	uint64_t offset;
	struct stream *stream;
};

struct stream {
	pthread_mutex_t lock;
	unsigned refs;
	struct MHD_Connection *connection;
	struct stream_opts opts;
	struct buf pending;
	size_t sent; /* of pending */
	bool suspended, drained, ended, broken, gone;
};

/* --- exchanges --- */

static struct exchange *exchange_new(struct httpd *h)
{
	struct exchange *x;

	pthread_mutex_lock(&h->lock);
	x = h->spare;
	if (x) {
		h->spare = x->inside->next;
		h->spare_count--;
	}
	pthread_mutex_unlock(&h->lock);
	if (!x) {
		x = xcalloc(1, sizeof(*x));
		x->arena = arena_new();
		x->inside = xcalloc(1, sizeof(*x->inside));
	}
	x->arg = h->opts.arg;
	x->body_fd = -1;
	x->started_ns = clock_monotonic_ns();
	x->inside->httpd = h;
	x->inside->fd = -1;
	buf_init(&x->inside->body, NULL, HTTP_BODY_MEMORY);
	return x;
}

static void exchange_destroy(struct exchange *x)
{
	arena_destroy(x->arena);
	free(x->inside);
	free(x);
}

/* Keeps the memory of a few for the next requests. */
static void exchange_recycle(struct exchange *x)
{
	struct arena *arena = x->arena;
	struct exchange_inside *in = x->inside;
	struct httpd *h = in->httpd;

	if (x->body_fd >= 0)
		close(x->body_fd);
	if (in->fd >= 0)
		close(in->fd);
	atomic_fetch_sub(&h->body_memory, in->body.len);
	buf_release(&in->body);
	arena_reset(arena);
	memset(in, 0, sizeof(*in));
	*x = (struct exchange){.arena = arena, .inside = in};
	pthread_mutex_lock(&h->lock);
	if (h->spare_count < SPARE_MAX) {
		in->next = h->spare;
		h->spare = x;
		h->spare_count++;
		x = NULL;
	}
	pthread_mutex_unlock(&h->lock);
	if (x)
		exchange_destroy(x);
}

struct httpd *exchange_httpd(struct exchange *x)
{
	return x->inside->httpd;
}

struct str exchange_header(const struct exchange *x, const char *name)
{
	for (size_t i = 0; i < x->header_count; i++)
		if (str_eq_nocase(x->headers[i].name, str_of(name)))
			return x->headers[i].value;
	return STR_NONE;
}

void exchange_add_header(struct exchange *x, const char *name, struct str value)
{
	if (x->answer_header_count < HTTP_ANSWER_HEADERS)
		x->answer_headers[x->answer_header_count++] =
			(struct exchange_header){str_of(name), arena_str(x->arena, value)};
}

static void answer(struct exchange *x, int status, uint64_t size)
{
	x->answered = true;
	x->status = status;
	x->answer_size = size;
}

void exchange_answer(struct exchange *x, int status, struct str body)
{
	x->inside->kind = ANSWER_BYTES;
	x->inside->bytes = body;
	answer(x, status, body.len);
}

void exchange_answer_head(struct exchange *x, int status, uint64_t size)
{
	x->inside->kind = ANSWER_HEAD;
	answer(x, status, size);
}

void exchange_answer_file(struct exchange *x, int status, int fd, uint64_t offset, uint64_t size)
{
	x->inside->kind = ANSWER_FILE;
	x->inside->fd = fd;
	x->inside->offset = offset;
	answer(x, status, size);
}

void exchange_park(struct exchange *x)
{
	atomic_fetch_add(&x->inside->pins, 1);
}

void exchange_park_for_client(struct exchange *x)
{
	struct httpd *h = x->inside->httpd;

	exchange_park(x);
	pthread_mutex_lock(&h->lock);
	x->inside->for_client = true;
	pthread_mutex_unlock(&h->lock);
}

void exchange_resume(struct exchange *x)
{
	if (atomic_fetch_sub(&x->inside->pins, 1) == 1)
		api.resume(x->inside->connection);
}

/* --- streams --- */

static void stream_unref(struct stream *s)
{
	bool last;

	pthread_mutex_lock(&s->lock);
	last = --s->refs == 0;
	pthread_mutex_unlock(&s->lock);
	if (!last)
		return;
	buf_release(&s->pending);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

void stream_release(struct stream *s)
{
	stream_unref(s);
}

struct stream *exchange_answer_stream(struct exchange *x, int status, const struct stream_opts *opts)
{
	struct stream *s = xcalloc(1, sizeof(*s));

	pthread_mutex_init(&s->lock, NULL);
	s->refs = 2;
	s->connection = x->inside->connection;
	s->opts = *opts;
	buf_init(&s->pending, NULL, opts->pending_max);
	x->inside->kind = ANSWER_STREAM;
	x->inside->stream = s;
	answer(x, status, opts->size);
	return s;
}

/* stream.lock is held. */
static void wake(struct stream *s)
{
	if (s->suspended) {
		s->suspended = false;
		api.resume(s->connection);
	}
}

bool stream_add(struct stream *s, struct str bytes)
{
	bool added;

	pthread_mutex_lock(&s->lock);
	added = !s->gone && !s->ended && s->pending.len + bytes.len <= s->opts.pending_max;
	if (added) {
		buf_add(&s->pending, bytes);
		s->drained = false;
		wake(s);
	}
	pthread_mutex_unlock(&s->lock);
	return added;
}

void stream_end(struct stream *s, bool broken)
{
	pthread_mutex_lock(&s->lock);
	s->ended = true;
	s->broken |= broken;
	wake(s);
	pthread_mutex_unlock(&s->lock);
}

static size_t take_pending(struct stream *s, char *buf, size_t max)
{
	size_t n = s->pending.len - s->sent < max ? s->pending.len - s->sent : max;

	memcpy(buf, s->pending.ptr + s->sent, n);
	s->sent += n;
	if (s->sent == s->pending.len) {
		s->sent = 0;
		if (s->pending.cap > READER_BLOCK)
			buf_release(&s->pending);
		buf_clear(&s->pending);
	}
	return n;
}

static ssize_t read_stream(void *cls, uint64_t pos, char *buf, size_t max)
{
	struct stream *s = cls;
	bool drained = false;
	ssize_t n = 0;

	(void)pos;
	pthread_mutex_lock(&s->lock);
	if (s->pending.len) {
		n = (ssize_t)take_pending(s, buf, max);
	} else if (s->ended) {
		n = s->broken ? MHD_CONTENT_READER_END_WITH_ERROR : MHD_CONTENT_READER_END_OF_STREAM;
	} else {
		drained = !s->drained;
		s->drained = true;
		s->suspended = true;
		api.suspend(s->connection);
	}
	pthread_mutex_unlock(&s->lock);
	if (drained && s->opts.drained)
		s->opts.drained(s->opts.arg);
	return n;
}

static void free_stream(void *cls)
{
	stream_unref(cls);
}

static void stream_detach(struct stream *s)
{
	pthread_mutex_lock(&s->lock);
	s->gone = true;
	pthread_mutex_unlock(&s->lock);
	if (s->opts.gone)
		s->opts.gone(s->opts.arg);
	stream_unref(s);
}

/* --- answers --- */

/* Never called: HEAD has no body. */
static ssize_t read_nothing(void *cls, uint64_t pos, char *buf, size_t max)
{
	(void)cls, (void)pos, (void)buf, (void)max;
	return MHD_CONTENT_READER_END_WITH_ERROR;
}

static struct MHD_Response *make_response(struct exchange *x)
{
	struct exchange_inside *in = x->inside;
	struct MHD_Response *response = NULL;

	switch (in->kind) {
	case ANSWER_BYTES:
		return api.from_buffer(in->bytes.len, (void *)in->bytes.ptr, MHD_RESPMEM_PERSISTENT);
	case ANSWER_HEAD:
		return api.from_callback(x->answer_size, 1, read_nothing, NULL, NULL);
	case ANSWER_FILE:
		response = api.from_fd(x->answer_size, in->fd, in->offset);
		if (response)
			in->fd = -1;
		return response;
	case ANSWER_STREAM:
		pthread_mutex_lock(&in->stream->lock);
		in->stream->refs++;
		pthread_mutex_unlock(&in->stream->lock);
		response = api.from_callback(x->answer_size, READER_BLOCK, read_stream, in->stream, free_stream);
		if (!response)
			stream_unref(in->stream);
		return response;
	}
	return NULL;
}

static bool announces_body(const struct exchange *x)
{
	struct str length = exchange_header(x, "Content-Length");

	return exchange_header(x, "Transfer-Encoding").ptr || (length.ptr && !str_is(length, "0"));
}

static enum MHD_Result send_answer(struct exchange *x)
{
	struct MHD_Response *response = make_response(x);
	enum MHD_Result result;

	if (!response)
		return MHD_NO;
	for (size_t i = 0; i < x->answer_header_count; i++)
		api.add_header(response, x->answer_headers[i].name.ptr, x->answer_headers[i].value.ptr);
	/* a body that was not read to its end must not be taken for the next request */
	if (atomic_load(&x->inside->httpd->stopping) || x->inside->is_unclear ||
	    (!x->inside->submitted && announces_body(x)))
		api.add_header(response, "Connection", "close");
	result = api.queue(x->inside->connection, (unsigned)x->status, response);
	api.destroy_response(response);
	return result;
}

/* --- bodies --- */

int httpd_spool(struct httpd *h, struct err *err)
{
	int fd = open(h->tmp_dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	char *name;

	if (fd >= 0)
		return fd;
	/* a file system without O_TMPFILE */
	name = xmalloc(strlen(h->tmp_dir) + 32);
	stpcpy(stpcpy(name, h->tmp_dir), "/stead-body-XXXXXX");
	fd = mkostemp(name, O_CLOEXEC);
	if (fd >= 0)
		unlink(name);
	else
		err_sys(err, errno, "%s has no room for a file", h->tmp_dir);
	free(name);
	return fd;
}

bool write_whole(int fd, struct str bytes)
{
	while (bytes.len) {
		ssize_t n = write(fd, bytes.ptr, bytes.len);

		if (n < 0 && errno != EINTR)
			return false;
		bytes = str_from(bytes, n > 0 ? (size_t)n : 0);
	}
	return true;
}

static void spool(struct exchange *x, struct str bytes)
{
	struct exchange_inside *in = x->inside;

	if (x->body_fd < 0) {
		x->body_fd = httpd_spool(in->httpd, &in->body_err);
		if (x->body_fd < 0)
			return;
		if (!write_whole(x->body_fd, buf_str(&in->body)))
			err_sys(&in->body_err, errno, "the body of the request cannot be stored");
		atomic_fetch_sub(&in->httpd->body_memory, in->body.len);
		buf_release(&in->body);
		buf_init(&in->body, NULL, HTTP_BODY_MEMORY);
	}
	if (!write_whole(x->body_fd, bytes))
		err_sys(&in->body_err, errno, "the body of the request cannot be stored");
}

static int body_too_large(struct exchange *x, struct err *err)
{
	return err_set(err, ERR_TOO_LARGE, "the body of this request may have at most %.*s",
		       STR_ARG(output_size(x->arena, x->body_max)));
}

/* False: the client sends on although the body is refused already. */
static bool take_body(struct exchange *x, struct str bytes)
{
	struct exchange_inside *in = x->inside;
	size_t in_memory;

	if (in->body_err.kind) {
		in->discarded += bytes.len;
		return in->discarded <= DISCARD_MAX;
	}
	x->body_size += bytes.len;
	if (x->body_size > x->body_max) {
		body_too_large(x, &in->body_err);
		return true;
	}
	in_memory = atomic_load(&in->httpd->body_memory);
	if (x->body_fd < 0 && in->body.len + bytes.len <= HTTP_BODY_MEMORY && in_memory <= HTTP_BODIES_MEMORY) {
		buf_add(&in->body, bytes);
		atomic_fetch_add(&in->httpd->body_memory, bytes.len);
	} else {
		spool(x, bytes);
	}
	pthread_mutex_lock(&in->httpd->lock);
	in->conn->body_bytes += bytes.len;
	pthread_mutex_unlock(&in->httpd->lock);
	return true;
}

/* --- requests --- */

static void set_conn(struct exchange *x, int64_t head_ns, int64_t body_ns)
{
	struct exchange_inside *in = x->inside;

	pthread_mutex_lock(&in->httpd->lock);
	in->conn->head_ns = head_ns;
	in->conn->body_ns = body_ns;
	in->conn->body_bytes = 0;
	in->conn->has_ended = false;
	pthread_mutex_unlock(&in->httpd->lock);
}

static enum MHD_Result add_header(void *cls, enum MHD_ValueKind kind, const char *name, const char *value)
{
	struct exchange *x = cls;

	(void)kind;
	if (x->header_count == HEADERS_MAX)
		return MHD_NO;
	x->headers[x->header_count++] = (struct exchange_header){str_of(name), str_of(value ? value : "")};
	return MHD_YES;
}

static size_t count_header(const struct exchange *x, const char *name)
{
	size_t n = 0;

	for (size_t i = 0; i < x->header_count; i++)
		n += str_eq_nocase(x->headers[i].name, str_of(name));
	return n;
}

/* A name with a blank at its end is another header to the library, and the same one to some proxies. */
static bool is_token(struct str name)
{
	static const bool chars[256] = {
		['0' ... '9'] = true, ['a' ... 'z'] = true, ['A' ... 'Z'] = true, ['!'] = true,  ['#'] = true,
		['$'] = true,         ['%'] = true,         ['&'] = true,         ['\''] = true, ['*'] = true,
		['+'] = true,         ['-'] = true,         ['.'] = true,         ['^'] = true,  ['_'] = true,
		['`'] = true,         ['|'] = true,         ['~'] = true,
	};

	for (size_t i = 0; i < name.len; i++)
		if (!chars[(unsigned char)name.ptr[i]])
			return false;
	return name.len > 0;
}

/* What two programs on the way of a request could understand differently is refused. */
static int check_framing(struct exchange *x, struct err *err)
{
	static const char *const once[] = {"Host",   "Content-Length", "Transfer-Encoding", "Content-Type",
					   "Origin", "Authorization",  "Stead-User"};
	struct str length = exchange_header(x, "Content-Length"), coding = exchange_header(x, "Transfer-Encoding");
	int64_t size = 0;

	if (x->header_count == HEADERS_MAX)
		return err_set(err, ERR_INVALID, "a request may have at most %d headers", HEADERS_MAX - 1);
	for (size_t i = 0; i < x->header_count; i++)
		if (!is_token(x->headers[i].name))
			return err_set(err, ERR_INVALID,
				       "\"%.*s\" is not a valid header name; it must have no blank before the ':'",
				       STR_ARG(utf8_first(x->headers[i].name, 40)));
	for (size_t i = 0; i < COUNT(once); i++)
		if (count_header(x, once[i]) > 1)
			return err_set(err, ERR_INVALID, "the request has the header %s more than once", once[i]);
	if (length.ptr && coding.ptr)
		return err_set(err, ERR_INVALID, "the request has both Content-Length and Transfer-Encoding");
	if (coding.ptr && !str_eq_nocase(coding, STR("chunked")))
		return err_set(err, ERR_UNSUPPORTED, "the only transfer coding is \"chunked\"");
	if (length.ptr && (!str_to_i64(length, &size) || size < 0))
		return err_set(err, ERR_INVALID, "the Content-Length of the request is not a number");
	if (x->path.len == 0 || x->path.ptr[0] != '/')
		return err_set(err, ERR_INVALID, "the target of a request must begin with '/'");
	if (str_find_char(x->path, ' ') < x->path.len || str_find_char(x->query, ' ') < x->query.len)
		return err_set(err, ERR_INVALID, "the request target has a blank; write it as %%20");
	return 0;
}

static int check_body(struct exchange *x, struct err *err)
{
	struct str length = exchange_header(x, "Content-Length");
	int64_t size = 0;

	x->inside->chunked = exchange_header(x, "Transfer-Encoding").ptr;
	if (length.ptr)
		str_to_i64(length, &size);
	if (!x->body_max && (size || x->inside->chunked))
		return err_set(err, ERR_INVALID, "a %.*s request takes no body here",
			       STR_ARG(utf8_first(x->method, 20)));
	if ((uint64_t)size > x->body_max)
		return body_too_large(x, err);
	return 0;
}

static void name_exchange(struct exchange *x)
{
	struct str given = exchange_header(x, "X-Request-Id");
	bool good = given.len > 0 && given.len < sizeof(x->id);

	for (size_t i = 0; good && i < given.len; i++)
		good = given.ptr[i] > ' ' && given.ptr[i] < 0x7f && given.ptr[i] != '"' && given.ptr[i] != '\\';
	if (good)
		memcpy(x->id, given.ptr, given.len);
	else
		hex_u64(random_u64(), x->id);
}

static void activate(struct exchange *x)
{
	struct exchange_inside *in = x->inside;
	struct httpd *h = in->httpd;

	pthread_mutex_lock(&h->lock);
	h->running++;
	in->next = h->active;
	in->slot = &h->active;
	if (h->active)
		h->active->inside->slot = &in->next;
	h->active = x;
	pthread_mutex_unlock(&h->lock);
}

/* The head was looked at. */
static enum MHD_Result go_on(struct exchange *x)
{
	struct err err;

	x->inside->checked = true;
	if (!x->answered && check_body(x, &err) != 0)
		x->inside->httpd->opts.refuse(x, &err);
	/* Without a body to come, the answer is given at the next call: the library closes the connection after an
	   answer to the head alone. */
	return x->answered && announces_body(x) ? send_answer(x) : MHD_YES;
}

static void begin_job(void *arg)
{
	struct exchange *x = arg;

	x->inside->httpd->opts.begin(x, true);
	exchange_resume(x);
}

static void run_job(void *arg)
{
	struct exchange *x = arg;

	x->inside->httpd->opts.run(x);
	exchange_resume(x);
}

/* The connection waits until a worker has done its part. */
static enum MHD_Result suspend(struct exchange *x, void (*job)(void *arg))
{
	struct exchange_inside *in = x->inside;
	struct err err;

	atomic_store(&in->pins, 1);
	api.suspend(in->connection);
	if (!pool_add(in->httpd->pool, x->owner, job, x)) {
		err_set(&err, ERR_UNAVAILABLE, "the server is overloaded; try again in a moment");
		err.retryable = true;
		in->httpd->opts.refuse(x, &err);
		exchange_resume(x);
	}
	return MHD_YES;
}

/* The head is there. */
static enum MHD_Result begin(struct exchange *x, struct MHD_Connection *connection, const char *method)
{
	struct exchange_inside *in = x->inside;
	struct err err;

	in->begun = true;
	x->method = str_of(method);
	x->headers = ARENA_ARRAY(x->arena, struct exchange_header, HEADERS_MAX);
	api.values(connection, MHD_HEADER_KIND, add_header, x);
	memcpy(x->peer, in->conn->peer, sizeof(x->peer));
	name_exchange(x);
	activate(x);
	set_conn(x, 0, clock_monotonic_ns());
	/* Those that were activated before it stops are waited for; no other may be suspended when the library ends. */
	if (atomic_load(&in->httpd->stopping)) {
		err_set(&err, ERR_UNAVAILABLE, "the server is shutting down; try again in a moment");
		err.retryable = true;
		in->httpd->opts.refuse(x, &err);
	} else if (check_framing(x, &err) != 0) {
		in->is_unclear = true;
		in->httpd->opts.refuse(x, &err);
	} else if (!in->httpd->opts.begin(x, false)) {
		return suspend(x, begin_job);
	}
	return go_on(x);
}

/* The body is there, too. */
static enum MHD_Result submit(struct exchange *x)
{
	struct exchange_inside *in = x->inside;
	struct httpd *h = in->httpd;

	in->submitted = true;
	set_conn(x, 0, 0);
	x->body = in->body.ptr ? buf_str(&in->body) : STR("");
	if (in->body_err.kind) {
		h->opts.refuse(x, &in->body_err);
		return send_answer(x);
	}
	if (x->is_quick) {
		h->opts.run(x);
		return send_answer(x);
	}
	return suspend(x, run_job);
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *connection, const char *url, const char *method,
				  const char *version, const char *data, size_t *size, void **req_cls)
{
	struct exchange *x = *req_cls;
	struct str bytes = str_n(data, *size);

	(void)cls, (void)url, (void)version;
	if (!x->inside->begun)
		return begin(x, connection, method);
	if (!x->inside->checked)
		return go_on(x);
	if (bytes.len) {
		*size = 0;
		return take_body(x, bytes) ? MHD_YES : MHD_NO;
	}
	/* While it ends, the library forgets an answer to the head and asks again. */
	if (!x->inside->submitted && !x->answered)
		return submit(x);
	return send_answer(x);
}

/* The first that is known of a request: its target, before the head is read. */
static void *on_target(void *cls, const char *uri, struct MHD_Connection *connection)
{
	struct httpd *h = cls;
	struct exchange *x = exchange_new(h);
	const union MHD_ConnectionInfo *info = api.info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct str target = arena_str(x->arena, str_of(uri));
	size_t mark = str_find_char(target, '?');

	x->path = str_first(target, mark);
	x->query = str_from(target, mark + 1);
	/* The library parses the query next, which nobody asks it for. When its parameters do not fit into its memory,
	   it neither answers nor closes. The text is its buffer, so it is cut off here. */
	if (x->query.len)
		((char *)uri)[mark + 1] = '\0';
	x->inside->connection = connection;
	x->inside->conn = info->socket_context;
	return x;
}

static void on_completed(void *cls, struct MHD_Connection *connection, void **req_cls,
			 enum MHD_RequestTerminationCode code)
{
	struct httpd *h = cls;
	struct exchange *x = *req_cls;
	struct exchange_inside *in;

	(void)connection, (void)code;
	if (!x)
		return;
	*req_cls = NULL;
	in = x->inside;
	if (in->stream)
		stream_detach(in->stream);
	set_conn(x, clock_monotonic_ns(), 0);
	if (in->begun) {
		h->opts.done(x);
		pthread_mutex_lock(&h->lock);
		h->running--;
		*in->slot = in->next;
		if (in->next)
			in->next->inside->slot = in->slot;
		pthread_cond_broadcast(&h->ended);
		pthread_mutex_unlock(&h->lock);
	}
	exchange_recycle(x);
}

/* Nothing is decoded by the library: what a name means is decided once, by the owner. */
static size_t keep_escapes(void *cls, struct MHD_Connection *connection, char *text)
{
	(void)cls, (void)connection;
	return strlen(text);
}

/* --- connections --- */

static void on_connection(void *cls, struct MHD_Connection *connection, void **socket_context,
			  enum MHD_ConnectionNotificationCode code)
{
	struct httpd *h = cls;
	struct conn *c = *socket_context;

	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		const struct sockaddr *address = api.info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr;

		c = xcalloc(1, sizeof(*c));
		c->fd = api.info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
		c->head_ns = clock_monotonic_ns();
		if (!address || getnameinfo(address,
					    address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
									   : sizeof(struct sockaddr_in),
					    c->peer, sizeof(c->peer), NULL, 0, NI_NUMERICHOST) != 0)
			stpcpy(c->peer, "-");
		*socket_context = c;
	}
	pthread_mutex_lock(&h->lock);
	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		c->next = h->conns;
		c->slot = &h->conns;
		if (c->next)
			c->next->slot = &c->next;
		h->conns = c;
		h->conn_count++;
	} else {
		*c->slot = c->next;
		if (c->next)
			c->next->slot = c->slot;
		h->conn_count--;
	}
	pthread_mutex_unlock(&h->lock);
	if (code == MHD_CONNECTION_NOTIFY_CLOSED)
		free(c);
}

static bool is_too_slow(const struct conn *c, int64_t now, int64_t head_s)
{
	int64_t body_s = (now - c->body_ns) / NS_PER_S;

	if (c->head_ns && now - c->head_ns > head_s * NS_PER_S)
		return true;
	return c->body_ns && body_s > head_s && c->body_bytes / (uint64_t)body_s < HTTP_BODY_RATE_MIN;
}

/* True when the rest of a request is waited for, and the client has closed its side: the library would wait for its
   timeout. Seen twice, because what came last may not have been looked at yet. */
static bool is_cut_off(struct conn *c)
{
	bool before = c->has_ended;
	char byte;

	if (c->head_ns || c->body_ns)
		c->has_ended = recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
	return before && c->has_ended;
}

/* A suspended connection is not looked at by the library, so nobody else sees that its client has closed it. */
static void cancel_if_alone(struct exchange *x)
{
	struct pollfd fd = {.fd = x->inside->conn->fd, .events = POLLRDHUP};

	if (x->inside->for_client && poll(&fd, 1, 0) > 0)
		atomic_store(&x->cancel.requested, true);
}

static void *watch_connections(void *arg)
{
	struct httpd *h = arg;

	pthread_mutex_lock(&h->lock);
	while (!h->stopping) {
		struct timespec until = clock_timespec(clock_monotonic_ns() + NS_PER_S);
		int64_t now;

		pthread_cond_timedwait(&h->ended, &h->lock, &until);
		now = clock_monotonic_ns();
		for (struct conn *c = h->conns; c; c = c->next)
			if (is_too_slow(c, now, h->opts.head_s) || is_cut_off(c))
				shutdown(c->fd, SHUT_RDWR);
		for (struct exchange *x = h->active; x; x = x->inside->next)
			cancel_if_alone(x);
	}
	pthread_mutex_unlock(&h->lock);
	return NULL;
}

/* Hands over every connection that waits. False: there are no descriptors left for more at the moment. */
static bool accept_waiting(struct httpd *h)
{
	for (;;) {
		struct sockaddr_storage address;
		socklen_t len = sizeof(address);
		int fd = accept4(h->listen_fd, (struct sockaddr *)&address, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd >= 0) /* the library closes it when it has too many */
			api.add_connection(h->daemon, fd, (struct sockaddr *)&address, len);
		else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
			return false;
		else if (errno != EINTR && errno != ECONNABORTED)
			return true;
	}
}

static void *accept_connections(void *arg)
{
	struct httpd *h = arg;
	struct pollfd fds[] = {{.fd = h->stop_fd, .events = POLLIN}, {.fd = h->listen_fd, .events = POLLIN}};
	bool has_room = true;

	for (;;) {
		/* without room, only the end is waited for, and then it is tried again */
		int n = poll(fds, has_room ? 2 : 1, has_room ? -1 : RETRY_ACCEPT_MS);

		if (n > 0 && fds[0].revents)
			return NULL;
		if (n >= 0 || errno == EINTR)
			has_room = accept_waiting(h);
	}
}

/* From here on nobody can connect. */
static void stop_accepting(struct httpd *h)
{
	uint64_t one = 1;

	if (h->accepting) {
		if (write(h->stop_fd, &one, sizeof(one)) < 0)
			abort(); /* an eventfd takes it, or the descriptor is not ours */
		pthread_join(h->acceptor, NULL);
	}
	h->accepting = false;
	if (h->listen_fd >= 0)
		close(h->listen_fd);
	h->listen_fd = -1;
}

/* --- start and stop --- */

/* As many connections as there may be descriptors, less what the rest of the program needs. */
static unsigned connection_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return 512;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_cur > HTTP_CONNECTIONS_MAX + FDS_KEPT)
		return HTTP_CONNECTIONS_MAX;
	return limit.rlim_cur > 2 * FDS_KEPT ? (unsigned)limit.rlim_cur - FDS_KEPT : FDS_KEPT;
}

static unsigned thread_count(void)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);

	return cores < 2 ? 2 : cores > THREADS_MAX ? THREADS_MAX : (unsigned)cores;
}

static int start_daemon(struct httpd *h, struct err *err)
{
	h->daemon = api.start(
		MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_SUSPEND_RESUME | MHD_USE_ITC | MHD_USE_NO_LISTEN_SOCKET, 0,
		NULL, NULL, on_request, h, MHD_OPTION_THREAD_POOL_SIZE, thread_count(), MHD_OPTION_CONNECTION_LIMIT,
		connection_limit(), MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		HTTP_REQUEST_HEAD_MAX, MHD_OPTION_CONNECTION_MEMORY_INCREMENT, 4 * KIB, MHD_OPTION_URI_LOG_CALLBACK,
		on_target, h, MHD_OPTION_UNESCAPE_CALLBACK, keep_escapes, h, MHD_OPTION_NOTIFY_COMPLETED, on_completed,
		h, MHD_OPTION_NOTIFY_CONNECTION, on_connection, h, MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1,
		MHD_OPTION_STRICT_FOR_CLIENT, 0, MHD_OPTION_END);
	return h->daemon ? 0 : err_set(err, ERR_INTERNAL, "libmicrohttpd cannot be started");
}

static int start_accepting(struct httpd *h, struct err *err)
{
	int failed;

	h->stop_fd = eventfd(0, EFD_CLOEXEC);
	if (h->stop_fd < 0)
		return err_sys(err, errno, "the server cannot be started");
	failed = pthread_create(&h->acceptor, NULL, accept_connections, h);
	if (failed)
		return err_sys(err, failed, "the server cannot be started");
	h->accepting = true;
	return 0;
}

int httpd_start(const struct httpd_opts *opts, struct httpd **ret_httpd, struct err *err)
{
	struct httpd *h = xcalloc(1, sizeof(*h));
	const char *tmp = env_process("TMPDIR");
	pthread_condattr_t attr;
	int r;

	h->opts = *opts;
	if (!h->opts.head_s)
		h->opts.head_s = HTTP_HEAD_S;
	h->listen_fd = h->stop_fd = -1;
	h->tmp_dir = xstrndup(str_of(tmp && tmp[0] == '/' ? tmp : "/var/tmp"));
	h->pool = pool_new(opts->workers, HTTP_QUEUE_MAX);
	pthread_mutex_init(&h->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&h->ended, &attr);
	pthread_condattr_destroy(&attr);
	r = api_load(err);
	if (r == 0)
		r = listen_open(h->opts.host, h->opts.port, &h->listen_fd, h->url, sizeof(h->url), err);
	if (r == 0)
		r = start_daemon(h, err);
	if (r == 0)
		r = start_accepting(h, err);
	if (r) {
		httpd_destroy(h);
		return r;
	}
	h->watching = pthread_create(&h->watchdog, NULL, watch_connections, h) == 0;
	*ret_httpd = h;
	return 0;
}

struct str httpd_url(const struct httpd *h)
{
	return str_of(h->url);
}

static bool wait_for_end(struct httpd *h, int64_t ms)
{
	struct timespec until = clock_timespec(clock_monotonic_ns() + ms * NS_PER_MS);
	int r = 0;

	while (h->running && r == 0)
		r = pthread_cond_timedwait(&h->ended, &h->lock, &until);
	return h->running == 0;
}

bool httpd_drain(struct httpd *h, int64_t grace_ms)
{
	bool ended;

	stop_accepting(h);
	pthread_mutex_lock(&h->lock);
	h->stopping = true;
	pthread_cond_broadcast(&h->ended);
	ended = wait_for_end(h, grace_ms);
	for (struct exchange *x = h->active; x; x = x->inside->next)
		atomic_store(&x->cancel.requested, true);
	for (struct conn *c = h->conns; c && !ended; c = c->next)
		if (c->body_ns) /* the rest of its body will not come in time */
			shutdown(c->fd, SHUT_RDWR);
	if (!ended)
		ended = wait_for_end(h, HTTP_CANCEL_MS);
	pthread_mutex_unlock(&h->lock);
	return ended;
}

void httpd_destroy(struct httpd *h)
{
	if (!h)
		return;
	pthread_mutex_lock(&h->lock);
	h->stopping = true;
	pthread_cond_broadcast(&h->ended);
	pthread_mutex_unlock(&h->lock);
	if (h->watching)
		pthread_join(h->watchdog, NULL);
	stop_accepting(h);
	if (h->daemon)
		api.stop(h->daemon);
	pool_destroy(h->pool);
	if (h->stop_fd >= 0)
		close(h->stop_fd);
	while (h->spare) {
		struct exchange *x = h->spare;

		h->spare = x->inside->next;
		exchange_destroy(x);
	}
	pthread_cond_destroy(&h->ended);
	pthread_mutex_destroy(&h->lock);
	free(h->tmp_dir);
	free(h);
}

uint64_t httpd_connections(struct httpd *h)
{
	uint64_t count;

	pthread_mutex_lock(&h->lock);
	count = h->conn_count;
	pthread_mutex_unlock(&h->lock);
	return count;
}

uint64_t httpd_waiting(struct httpd *h)
{
	return pool_waiting(h->pool);
}

bool httpd_submit(struct httpd *h, uint64_t owner, void (*run)(void *arg), void *arg)
{
	return pool_add(h->pool, owner, run, arg);
}
