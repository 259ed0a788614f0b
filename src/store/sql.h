/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts that backends in SQL databases share: the outcomes that their functions and procedures return, and a pool
 * of connections. A backend has its own connections, statements and schema.
 */
#ifndef STEAD_STORE_SQL_H
#define STEAD_STORE_SQL_H

#include <pthread.h>

#include "store/store.h"

/* What a function in the database returns in its column "outcome". The numbers are part of the schema. */
enum sql_outcome {
	SQL_DONE,
	SQL_NOT_FOUND,
	SQL_EXISTS,
	SQL_CONFLICT, /* detail: the version that it has */
	SQL_GONE,     /* a version condition on what is not there */
	SQL_IS_DIR,
	SQL_BELOW_FILE, /* detail: that file */
	SQL_TOO_LONG,   /* detail: the path that would get too long */
	SQL_OVERTAKEN,  /* journal */
	SQL_IS_FILE,
	SQL_DIR_COND,   /* a version condition on a directory */
	SQL_ENDS_BEFORE /* journal: detail: its last number */
};

/* The sentence of an outcome; `path` is what it is about. 0 for SQL_DONE. */
int sql_outcome_check(enum sql_outcome outcome, struct str detail, struct str path, struct store_cond cond,
		      struct err *err);
/* How a condition is sent: 0 none, 1 absent, 2 a version. */
int sql_cond_kind(struct store_cond cond);
/* Where a page of a list begins: the first place after the cursor, which is refused if it is not one of a store's. */
int sql_list_seek(struct arena *arena, struct wpath dir, const struct store_list_req *req, struct str *ret,
		  struct err *err);
/* A version that no file has had. */
struct str sql_version_new(struct arena *arena);
/* A number that nothing else has, of 62 bits. */
int64_t sql_token_new(void);

/* One connection, the first member of a backend's own struct; it belongs to one thread at a time. */
struct sql_link {
	uint64_t trips; /* round trips since it was opened */
	bool broken;    /* not to be used again: it died, or was left in the middle of an answer */
	bool lost;      /* it died between sending and answer: whether the statement was made is unknown */
	/* The pool's. */
	struct sql_link *next;
	uint64_t epoch, counted;
};

struct sql_pool_ops {
	/* A new connection, ready for use; its round trips up to here are not counted. */
	int (*open)(void *owner, struct ctx *ctx, struct sql_link **ret_link, struct err *err);
	void (*close)(struct sql_link *link);
};

/*
 * Connections to one database. One that was lost takes the idle ones with it: a server that was restarted costs one
 * failed try, not one per connection.
 */
struct sql_pool {
	const struct sql_pool_ops *ops;
	void *owner;        /* of the callbacks */
	const char *server; /* for sentences; borrowed */
	unsigned size;      /* connections at most */
	int64_t timeout_ns; /* how long a call waits for one */
	/* Private. */
	pthread_mutex_t lock;
	pthread_cond_t freed;
	struct sql_link *idle;
	unsigned open;
	uint64_t epoch, trips;
};

/* The public fields are set. Nothing is opened yet. */
void sql_pool_init(struct sql_pool *pool);
/* All connections were given back. */
void sql_pool_release(struct sql_pool *pool);
/* Round trips of all connections that were given back, without those that opened one. */
uint64_t sql_pool_trips(struct sql_pool *pool);
/* A connection for this call alone. ERR_TIMEOUT when none gets free. */
int sql_take(struct sql_pool *pool, struct ctx *ctx, struct sql_link **ret_link, struct err *err);
/* Back into the pool, or closed when it is broken. */
void sql_give(struct sql_pool *pool, struct sql_link *link);

/* Whether a failure is worth another try after `tries` of them; pauses before that. */
bool sql_try_again(struct ctx *ctx, unsigned tries, const struct err *err);
/* Sleeps, at most until the call's deadline. */
void sql_pause(struct ctx *ctx, int64_t ns);

#endif
