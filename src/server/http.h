/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP server (libmicrohttpd's one module). A few threads wait for all connections; what may take long runs on a
 * pool of workers while its connection is suspended, so a slow call, a slow client or a waiting one never holds a
 * thread that others need.
 *
 * A request passes through three functions of the owner:
 *   begin  on a network thread, when the head is there: checks it, sets body_max and is_quick, or answers at once.
 *          False: it would have to wait for something, and is called again on a worker, with may_wait
 *   run    when the body is there too: on a worker, or with is_quick on the network thread. Answers, or parks the
 *          exchange and answers later from any thread
 *   done   on a network thread, after the answer was sent or the client went away
 *
 * A body up to HTTP_BODY_MEMORY is kept in memory, a longer one in an unlinked file: a client that sends slowly costs
 * no thread, and one that never ends leaves nothing.
 */
#ifndef STEAD_SERVER_HTTP_H
#define STEAD_SERVER_HTTP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/ctx.h"
#include "base/err.h"
#include "base/str.h"

struct httpd;
struct exchange;
struct stream;
struct exchange_inside;

struct httpd_opts {
	struct str host; /* a numeric address, or "localhost" */
	uint16_t port;   /* 0: a free one */
	unsigned workers;
	unsigned head_s; /* seconds in which the head of a request must come; 0: HTTP_HEAD_S */
	bool (*begin)(struct exchange *x, bool may_wait);
	void (*run)(struct exchange *x);
	void (*done)(struct exchange *x);
	/* Answers with an error that was found in here: a body that is too large, no room in the queue. */
	void (*refuse)(struct exchange *x, const struct err *err);
	void *arg; /* exchange.arg */
};

#define HTTP_ANSWER_HEADERS 20

struct exchange_header {
	struct str name, value;
};

/* One request and its answer. */
struct exchange {
	void *arg;           /* of httpd_opts */
	void *state;         /* the owner's; NULL at first */
	struct arena *arena; /* until done() has returned; one thread at a time */
	struct str method;
	struct str path, query; /* of the target, as they came: nothing is decoded */
	struct exchange_header *headers;
	size_t header_count;
	char peer[48];
	char id[65]; /* of this request, for logs: the client's or a new one */
	int64_t started_ns;
	struct cancel cancel; /* set when the server stops, and by exchange_park_for_client() */
	/* Set by begin(). */
	uint64_t body_max; /* 0: a body is refused */
	bool is_quick;
	uint64_t owner; /* whose turn a worker takes for it (pool.h) */
	/* For run(): the body, in memory or else in a file. */
	struct str body;
	int body_fd; /* -1: in memory */
	uint64_t body_size;
	/* The answer. */
	bool answered;
	int status;
	struct exchange_header answer_headers[HTTP_ANSWER_HEADERS];
	size_t answer_header_count;
	uint64_t answer_size; /* UINT64_MAX: not known before its end */
	struct exchange_inside *inside;
};

/* Starts to serve. ERR_INVALID: the address; ERR_EXISTS: the port is taken; ERR_UNSUPPORTED: no libmicrohttpd. */
int httpd_start(const struct httpd_opts *opts, struct httpd **ret_httpd, struct err *err);
/* "http://127.0.0.1:7777" */
struct str httpd_url(const struct httpd *httpd);
/* No new connection from now on; the requests that run have `grace_ms` to end, then they are cancelled. False: some did
   not end even then, and the process had better end without freeing anything. The streams must have been ended. */
bool httpd_drain(struct httpd *httpd, int64_t grace_ms);
void httpd_destroy(struct httpd *httpd);
/* Connections that are open; requests that wait for a worker. */
uint64_t httpd_connections(struct httpd *httpd);
uint64_t httpd_waiting(struct httpd *httpd);
/* Runs on a worker. False: too many wait already. */
bool httpd_submit(struct httpd *httpd, uint64_t owner, void (*run)(void *arg), void *arg);
struct httpd *exchange_httpd(struct exchange *x);
/* A new file without a name, in the directory in which long bodies are kept; negative: an error. */
int httpd_spool(struct httpd *httpd, struct err *err);
/* False: errno says why. */
bool write_whole(int fd, struct str bytes);

/* A header of the request without regard to case; ptr NULL: it has none. */
struct str exchange_header(const struct exchange *x, const char *name);

/* The parts of an answer, before it is given. Strings live as long as the exchange. */
void exchange_add_header(struct exchange *x, const char *name, struct str value);
/* Bytes of the exchange's arena. */
void exchange_answer(struct exchange *x, int status, struct str body);
/* For HEAD: the size of a body that is not sent. */
void exchange_answer_head(struct exchange *x, int status, uint64_t size);
/* A part of a file. Owns fd. */
void exchange_answer_file(struct exchange *x, int status, int fd, uint64_t offset, uint64_t size);

/* Called in run() on a worker: the answer is given later, from any thread, and then exchange_resume() is called. */
void exchange_park(struct exchange *x);
/* The same for work that is of no use without its client: exchange.cancel is set within a second or two after the
   client has closed its connection. */
void exchange_park_for_client(struct exchange *x);
void exchange_resume(struct exchange *x);

/* An answer that is written piece by piece, from any thread. */
struct stream_opts {
	uint64_t size;              /* UINT64_MAX: not known */
	size_t pending_max;         /* bytes that the client may be behind; more ends the stream */
	void (*drained)(void *arg); /* all was sent: more may be added. On a network thread, must not block */
	void (*gone)(void *arg);    /* the client is gone, or all was sent: the last call */
	void *arg;
};
/* The stream has two owners, the exchange and the caller, who calls stream_release() after stream_end() or gone(). */
struct stream *exchange_answer_stream(struct exchange *x, int status, const struct stream_opts *opts);
/* False: the client is gone or too far behind; nothing was added. */
bool stream_add(struct stream *stream, struct str bytes);
/* No more will come. `broken`: the answer is not whole, so the connection is cut off. */
void stream_end(struct stream *stream, bool broken);
void stream_release(struct stream *stream);

#endif
