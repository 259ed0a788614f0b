/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client of Redis: the RESP3 protocol, and connections that are kept and shared by many threads. A request is a list
 * of byte strings, an answer a tree of values in an arena. Several requests may be put before the first answer is
 * taken (a pipeline): that is one round trip.
 */
#ifndef STEAD_NET_RESP_H
#define STEAD_NET_RESP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/ctx.h"
#include "base/err.h"
#include "base/str.h"
#include "net/tls.h"

/* A map comes as an array of twice as many, a set as an array, true as 1, other numbers as their text. */
enum resp_type { RESP_NULL, RESP_STR, RESP_ERROR, RESP_INT, RESP_ARRAY, RESP_PUSH };

struct resp_value {
	enum resp_type type;
	struct str s;             /* str, error; NUL-terminated */
	int64_t i;                /* int */
	struct resp_value *items; /* array, push */
	size_t count;
};

/* Where the bytes of an answer go that is one long string. It is asked when the first `head` bytes are there: those
   alone are then the value, and the others go to the memory that it returns, unless that is NULL. */
struct resp_place {
	size_t head;
	char *(*to)(void *arg, const char *head, size_t rest);
	void *arg;
};

/* The parser, over any source of bytes. Nothing larger than `left` bytes in all is taken, and no more than
   RESP_ITEMS_MAX values, RESP_DEPTH_MAX deep. */
struct resp_in {
	char *buf; /* owned by whoever made it; RESP_BUF bytes */
	size_t at, len;
	/* At least one byte. Bytes after the first `cap` may go to `spill`. */
	int (*fill)(void *arg, void *bytes, size_t cap, void *spill, size_t spill_cap, size_t *ret_len,
		    struct err *err);
	void *arg;
	const struct resp_place *place; /* NULL: everything goes into the arena */
	struct arena *arena;
	size_t left, items;
};
#define RESP_BUF ((size_t)16384)

/* ERR_CORRUPT: the bytes are not a valid answer, so later ones cannot be trusted either; the same for ERR_TOO_LARGE. */
int resp_parse(struct resp_in *in, size_t max, struct resp_value *ret_value, struct err *err);
/* The error that a server answered, as one sentence that says what to do. Always fails. */
int resp_error(struct str text, struct err *err);

struct resp_opts {
	const char *host;
	unsigned port;
	const char *unix_path; /* instead of host and port; NULL: none */
	bool tls;
	struct tls_opts tls_opts;
	const char *user, *password; /* NULL: none */
	unsigned db;
	unsigned connect_ms, answer_ms; /* at most, in addition to ctx's deadline */
	unsigned connections;           /* at once */
	const struct str *scripts;      /* loaded into the server by every new connection; borrowed */
	size_t script_count;
};

struct resp_client;
struct resp_conn;

/* Connects to nothing yet. */
int resp_client_new(const struct resp_opts *opts, struct resp_client **ret_client, struct err *err);
/* No connection may be out. */
void resp_client_destroy(struct resp_client *client);
/* A connection that nobody else uses until it is given back; waits for one when all are out, unless it is `extra`
   (for a request that blocks on purpose). */
int resp_take(struct resp_client *client, struct ctx *ctx, bool extra, struct resp_conn **ret_conn, struct err *err);
/* Closes it when something went wrong with it, or when answers are still to come. */
void resp_give(struct resp_client *client, struct resp_conn *conn);
/* Closes it, because it no longer leads to the right server. */
void resp_drop(struct resp_client *client, struct resp_conn *conn);
/* What EVALSHA calls the n-th of the scripts; known when a connection was taken. */
struct str resp_script_hash(const struct resp_client *client, size_t script);
/* Puts a request into the pipeline; nothing is sent before resp_send(), until when the bytes of the arguments must
   stay. */
void resp_put(struct resp_conn *conn, const struct str *args, size_t count);
/* The same; `tail` is part of argument `joined`, after what `args` has of it. */
void resp_put_joined(struct resp_conn *conn, const struct str *args, size_t count, size_t joined, struct str tail);
int resp_send(struct resp_conn *conn, struct ctx *ctx, struct err *err);
/* The next answer. An error that the server answers is a value. `more_ns` is added to the time that it may take. */
int resp_get(struct resp_conn *conn, struct ctx *ctx, struct arena *arena, size_t max, int64_t more_ns,
	     struct resp_value *ret_value, struct err *err);
int resp_get_placed(struct resp_conn *conn, struct ctx *ctx, struct arena *arena, size_t max,
		    const struct resp_place *place, struct resp_value *ret_value, struct err *err);
/* RESP_CONN_NAME letters, digits, "_" and "-" that no other connection has. */
const char *resp_conn_name(const struct resp_conn *conn);
#define RESP_CONN_NAME 8
/* The server of a cluster that a MOVED error names: later connections go there. False: it is not such an error. */
bool resp_follow(struct resp_client *client, struct str error);
/* Round trips so far, without those that open a connection. */
uint64_t resp_trips(const struct resp_client *client);

#endif
