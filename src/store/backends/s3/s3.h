/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the S3 backend share. Operations are in s3.c (one object) and s3_tree.c (many), large objects in
 * s3_large.c; s3_call() in s3_request.c is the only way to the server, s3_place.c keeps names from being file and
 * directory at once.
 */
#ifndef STEAD_STORE_BACKENDS_S3_S3_H
#define STEAD_STORE_BACKENDS_S3_S3_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "net/http.h"
#include "net/sigv4.h"
#include "store/backends/s3/s3_xml.h"
#include "store/stores.h"

/* The part of the prefix that is ours alone: no path may begin with it, no list shows it. */
#define S3_OWN ".stead-s3"
/* Parts of a large object; all but the last are equally long. 10,000 of them are a file of 78 GiB. */
#define S3_PART      (8 * MIB)
#define S3_PARTS_MAX 10000
/* The most that one request may send or copy on the server. */
#define S3_SINGLE_MAX (5ULL * 1024 * MIB)
/* Parts on their way at once. */
#define S3_LANES 4

enum s3_answer_known { S3_UNKNOWN, S3_YES, S3_NO };

struct s3_conf {
	char *endpoint; /* "https://host:port", without the bucket */
	char *bucket;
	char *prefix; /* of keys: "" or ends in '/' */
	char *region;
	char *key_id, *secret, *session; /* session: NULL, none */
	char *sse, *sse_key;             /* NULL: the server's default */
	bool path_style, create, r2, single_writer;
	bool aws; /* the endpoint follows from the region */
};

struct s3_places;

struct s3 {
	struct store base;
	struct s3_conf conf;
	struct http *http;
	struct s3_places *places;
	pthread_mutex_t lock; /* of what follows */
	char region[64];      /* as the server wants it */
	struct sigv4_key key; /* for that region; its day is empty before the first request */
	int64_t clock_ns;     /* the server's clock less ours */
	enum s3_answer_known conditions;
	bool swept;           /* stale uploads were looked for */
	atomic_bool answered; /* the server, once */
	atomic_uint_fast64_t requests;
};

static inline struct s3 *s3_of(struct store *s)
{
	return (struct s3 *)s;
}

struct s3_param {
	const char *name;
	struct str value;
};

struct s3_call {
	const char *method;
	struct str key;           /* ptr NULL: the bucket itself */
	struct s3_param query[6]; /* in any order; name NULL: the end */
	struct http_header headers[14];
	size_t header_count;
	struct str body;
	const struct http_source *source; /* or from here, with its hash: */
	const char *source_sha256;
	int (*push)(void *arg, const void *bytes, size_t len, struct err *err);
	int (*head)(void *arg, int status, const struct http_header *headers, size_t count, struct err *err);
	void *arg;
	uint64_t expect; /* bytes that move, for the time it may take */
};

struct s3_answer {
	struct http_response http;
	struct s3_error error; /* of a status from 300 on, and of an error inside of a 200 */
	bool repeated;         /* an earlier try of this call may have been carried out */
};

/* Signs, sends, repeats what may pass (with jitter, within the deadline), corrects region and clock. 0: the answer is a
   2xx or one that the caller must judge: 304, 404 of a key, 412, 416, 501. Everything else is an error with its
   sentence. Once bytes were pushed a call is not repeated. */
int s3_call(struct s3 *s3, struct ctx *ctx, const struct s3_call *call, struct s3_answer *ret, struct err *err);
/* The sentence for an answer that the caller cannot use. */
int s3_refused(struct s3 *s3, const struct s3_answer *answer, struct err *err);
void s3_header(struct s3_call *call, const char *name, struct str value);
/* Waits like a retry does: full jitter, 0.1 s doubled `n` times at most. */
int s3_pause(struct ctx *ctx, unsigned n, struct err *err);

/* Keys. */
struct str s3_key(struct s3 *s3, struct arena *arena, struct str path);
struct str s3_dir_key(struct s3 *s3, struct arena *arena, struct str dir); /* with a final '/'; of the root: prefix */
struct str s3_own_key(struct s3 *s3, struct arena *arena, const char *area, struct str name);

/* What the server says of one object, and our metadata of it. */
struct s3_head {
	bool exists;
	uint64_t size;
	int64_t mtime_ns;
	struct str etag;   /* without quotes: the version */
	struct str tokens; /* of the last writers, newest first, ',' between */
	struct str moved;  /* where it was moved from, and which version that was */
};
int s3_head(struct s3 *s3, struct ctx *ctx, struct str key, struct s3_head *ret, struct err *err);
void s3_head_of(struct s3 *s3, struct ctx *ctx, const struct http_header *headers, size_t count, struct s3_head *ret);
void s3_stat_of(const struct s3_head *head, struct store_stat *ret_stat);
bool s3_has_token(const struct s3_head *head, struct str token);
/* True when a key begins with `dir_key`. */
int s3_any_below(struct s3 *s3, struct ctx *ctx, struct str dir_key, bool *ret_any, struct err *err);
/* For a path whose key is absent: ERR_INVALID (a directory) or ERR_NOT_FOUND. `root` counts as a directory. */
int s3_absent(struct s3 *s3, struct ctx *ctx, struct str path, struct err *err);
int s3_list(struct s3 *s3, struct ctx *ctx, struct str prefix, bool level, struct str start_after, struct str token,
	    size_t max, struct s3_listing *ret, struct err *err);

/* A body that may be sent more than once. */
struct s3_body {
	struct str bytes;
	char *own;  /* what `bytes` are in when they are ours */
	FILE *file; /* or, not NULL: a temporary file, whose hash is sha256 */
	uint64_t size;
	char sha256[65];
};
/* Meta data and conditions of a write. */
struct s3_put {
	struct str key;
	struct store_cond cond;
	struct str token; /* ours, new for each write */
	struct str older; /* tokens of the writers before, or empty */
	int64_t mtime_ns; /* 0: now, as the server has it */
	struct str moved; /* or empty */
};
struct str s3_token_new(struct arena *arena);
void s3_meta_headers(struct s3 *s3, struct arena *arena, struct s3_call *call, const struct s3_put *put);
/* One conditional PutObject; ERR_EXISTS, ERR_CONFLICT as store.h has them. A lost answer is resolved. */
int s3_put_body(struct s3 *s3, struct ctx *ctx, const struct s3_put *put, const struct s3_body *body,
		struct store_stat *ret_stat, struct err *err);
/* Whether the server honours conditions, asked once. Without them, and without single_writer: ERR_UNSUPPORTED. */
int s3_conditions(struct s3 *s3, struct ctx *ctx, bool *ret_has, struct err *err);
/* Where the server has no conditions: one writer of a key at a time within this process. */
pthread_mutex_t *s3_key_lock(struct s3 *s3, struct str key);

/* s3_large.c */
/* All of a source: in memory up to S3_PART, more in a temporary file. */
int s3_collect(struct ctx *ctx, const struct source *source, struct s3_body *ret_body, struct err *err);
/* An object as it is, followed by `more`. */
int s3_join(struct s3 *s3, struct ctx *ctx, struct str key, const struct s3_head *old, const struct s3_body *more,
	    struct s3_body *ret_body, struct err *err);
void s3_body_release(struct s3_body *body);
/* A call with that body. */
int s3_send_body(struct s3 *s3, struct ctx *ctx, struct s3_call *call, const struct s3_body *body,
		 struct s3_answer *ret, struct err *err);
/* Writes a source: one PUT when it is small or conditional, else in parts. */
int s3_write_source(struct s3 *s3, struct ctx *ctx, const struct s3_put *put, const struct source *source,
		    struct store_stat *ret_stat, struct err *err);
/* The bytes [from, end) of one version of an object, in parts side by side, to the sink in order. */
int s3_read_parts(struct s3 *s3, struct ctx *ctx, struct str key, struct str etag, uint64_t from, uint64_t end,
		  const struct sink *sink, struct err *err);

/* Unfinished uploads older than a day below the prefix; they are ended when `abort` is set. */
int s3_stale_uploads(struct s3 *s3, struct ctx *ctx, bool abort, uint64_t *ret_count, struct err *err);

/* s3_place.c */
struct s3_places *s3_places_new(void);
void s3_places_destroy(struct s3_places *places);
/* The whole list of a level, whose keys have `skip` bytes before the name, was asked for. */
void s3_place_listed(struct s3 *s3, struct str dir, size_t skip, const struct s3_listing *list);
/* Checks that a file may be at `path`: it is not a directory, and none of its parents is a file; else ERR_INVALID. */
int s3_place_check(struct s3 *s3, struct ctx *ctx, struct str path, struct err *err);
/* A file was made at `path`. */
void s3_place_made(struct s3 *s3, struct str path);
/* Names were taken away at or below `path`. */
void s3_place_gone(struct s3 *s3, struct str path);

/* s3_tree.c */
int s3_remove(struct store *s, struct ctx *ctx, struct wpath path, bool recursive, struct store_cond cond,
	      uint64_t *ret_count, struct err *err);
int s3_move(struct store *s, struct ctx *ctx, struct wpath from, struct wpath to, struct store_cond cond,
	    struct store_cond to_cond, struct store_stat *ret_stat, struct err *err);
int s3_copy(struct store *s, struct ctx *ctx, struct wpath from, struct wpath to, struct store_cond to_cond,
	    struct store_stat *ret_stat, struct err *err);

/* s3.c */
struct store *s3_new(struct s3_conf *conf); /* takes what conf points to */
void s3_conf_release(struct s3_conf *conf);

#endif
