/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes that do not fit into memory. Three ways, none of which holds more than S3_LANES parts:
 *
 * - A large write without a condition goes up in equal parts (R2 wants them equal), several at once, and becomes
 *   visible when the upload is completed. Whatever fails, the upload is aborted; what a killed process left is swept a
 *   day later by the next large write.
 * - A large write with a condition is one PutObject all the same, because completing an upload has no condition on
 *   many servers. Its bytes are first put into a temporary file: the request needs their length and hash before it
 *   starts, and may have to be sent twice.
 * - A large read is a row of ranged GETs of one version, several at once, handed on in order.
 *
 * A lane is a thread that lives for one part: starting one costs nothing compared with moving 8 MiB, and leaves no
 * pool to look after.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/limits.h"
#include "net/digest.h"
#include "store/backends/s3/s3.h"

#define STALE_NS      (24 * 3600 * NS_PER_S)
#define CLEAN_UP_NS   (10 * NS_PER_S)
#define PART_TRIES    5
#define ETAG_MAX      (VERSION_BARE_MAX + 8) /* with its quotes */
#define COMPLETE_EACH 220                    /* bytes of one part in the request that completes an upload */

/* Bodies. */

void s3_body_release(struct s3_body *body)
{
	if (body->file)
		fclose(body->file);
	free(body->own);
	*body = (struct s3_body){0};
}

static int file_pull(void *arg, void *buf, size_t cap, size_t *ret_len, struct err *err)
{
	FILE *file = arg;

	*ret_len = fread(buf, 1, cap, file);
	if (*ret_len == 0 && ferror(file))
		return err_sys(err, errno, "read the temporary file");
	return 0;
}

static int file_rewind(void *arg, struct err *err)
{
	return fseeko(arg, 0, SEEK_SET) ? err_sys(err, errno, "rewind the temporary file") : 0;
}

int s3_send_body(struct s3 *s3, struct ctx *ctx, struct s3_call *call, const struct s3_body *body,
		 struct s3_answer *ret, struct err *err)
{
	struct http_source source = {.pull = file_pull, .rewind = file_rewind, .arg = body->file, .length = body->size};

	if (body->size > S3_SINGLE_MAX)
		return err_set(err, ERR_TOO_LARGE,
			       "an S3 object of more than 5 GiB cannot be written conditionally or appended to");
	call->expect = body->size;
	if (!body->file) {
		call->body = body->bytes;
		return s3_call(s3, ctx, call, ret, err);
	}
	call->source = &source;
	call->source_sha256 = body->sha256;
	return s3_call(s3, ctx, call, ret, err);
}

/* A temporary file that is filled: bytes, length and hash grow together. */
struct spool {
	FILE *file;
	struct digest *digest;
	uint64_t size;
};

static int spool_push(void *arg, const void *bytes, size_t len, struct err *err)
{
	struct spool *sp = arg;

	if (len && fwrite(bytes, 1, len, sp->file) != len)
		return err_sys(err, errno, "write a temporary file; set TMPDIR to a directory with more room");
	digest_add(sp->digest, str_n(bytes, len));
	sp->size += len;
	return 0;
}

static int spool_begin(struct spool *sp, struct err *err)
{
	*sp = (struct spool){.file = tmpfile()};
	if (!sp->file)
		return err_sys(err, errno, "create a temporary file for a large object");
	sp->digest = digest_sha256_begin();
	return 0;
}

/* With `r` not 0, all is dropped. */
static int spool_end(struct spool *sp, int r, struct s3_body *ret_body, struct err *err)
{
	uint8_t hash[SHA256_LEN];

	digest_end(sp->digest, hash);
	if (r == 0 && fflush(sp->file))
		r = err_sys(err, errno, "write a temporary file; set TMPDIR to a directory with more room");
	if (r) {
		fclose(sp->file);
		return r;
	}
	*ret_body = (struct s3_body){.file = sp->file, .size = sp->size};
	hex_bytes(hash, SHA256_LEN, ret_body->sha256);
	return 0;
}

/* Fills `buf` as far as the source gives. */
static int fill(struct ctx *ctx, const struct source *source, char *buf, size_t cap, size_t *ret_len, struct err *err)
{
	size_t len = 0, n = 1;
	int r = 0;

	while (r == 0 && n && len < cap) {
		r = ctx_check(ctx, err);
		n = 0;
		if (r == 0)
			r = source->pull(source->arg, buf + len, cap - len, &n, err);
		len += r == 0 ? n : 0;
	}
	*ret_len = len;
	return r;
}

/* The rest of a source whose first bytes were taken already. */
static int spool_rest(struct ctx *ctx, struct str first, const struct source *source, struct s3_body *ret_body,
		      struct err *err)
{
	char *chunk = xmalloc(STREAM_CHUNK);
	struct spool sp;
	size_t n = 1;
	int r = spool_begin(&sp, err);

	if (r == 0) {
		r = spool_push(&sp, first.ptr, first.len, err);
		while (r == 0 && n) {
			r = fill(ctx, source, chunk, STREAM_CHUNK, &n, err);
			if (r == 0 && n)
				r = spool_push(&sp, chunk, n, err);
		}
		r = spool_end(&sp, r, ret_body, err);
	}
	free(chunk);
	return r;
}

/* The first part of a source, on the heap; *ret_more: it may have more. */
static int first_part(struct ctx *ctx, const struct source *source, struct s3_body *ret_body, bool *ret_more,
		      struct err *err)
{
	char *buf = NULL;
	size_t len = 0, cap = 64 * KIB;
	int r = 0;

	*ret_more = true;
	while (r == 0 && *ret_more && len < S3_PART) {
		size_t n;

		buf = xrealloc(buf, cap);
		r = fill(ctx, source, buf + len, cap - len, &n, err);
		len += n;
		*ret_more = len == cap;
		cap = cap * 4 < S3_PART ? cap * 4 : S3_PART;
	}
	if (r) {
		free(buf);
		return r;
	}
	*ret_body = (struct s3_body){.own = buf, .bytes = str_n(buf, len), .size = len};
	return 0;
}

int s3_collect(struct ctx *ctx, const struct source *source, struct s3_body *ret_body, struct err *err)
{
	struct s3_body first;
	bool more;
	int r;

	if (!source->pull) {
		*ret_body = (struct s3_body){.bytes = source->bytes, .size = source->bytes.len};
		return 0;
	}
	r = first_part(ctx, source, &first, &more, err);
	if (r)
		return r;
	if (!more) {
		*ret_body = first;
		return 0;
	}
	r = spool_rest(ctx, first.bytes, source, ret_body, err);
	s3_body_release(&first);
	return r;
}

int s3_join(struct s3 *s3, struct ctx *ctx, struct str key, const struct s3_head *old, const struct s3_body *more,
	    struct s3_body *ret_body, struct err *err)
{
	char *chunk = xmalloc(STREAM_CHUNK);
	struct spool sp;
	struct sink sink = {.push = spool_push, .arg = &sp};
	size_t n = 1;
	int r = spool_begin(&sp, err);

	if (r == 0) {
		if (old->size)
			r = s3_read_parts(s3, ctx, key, old->etag, 0, old->size, &sink, err);
		if (r == 0 && !more->file)
			r = spool_push(&sp, more->bytes.ptr, more->bytes.len, err);
		if (r == 0 && more->file)
			r = file_rewind(more->file, err);
		while (r == 0 && more->file && n) {
			r = file_pull(more->file, chunk, STREAM_CHUNK, &n, err);
			if (r == 0)
				r = spool_push(&sp, chunk, n, err);
		}
		r = spool_end(&sp, r, ret_body, err);
	}
	free(chunk);
	return r;
}

/* Lanes. */

struct transfer {
	struct s3 *s3;
	struct ctx *ctx;
	struct str key;
	struct str etag;   /* reads */
	struct str upload; /* writes: its id */
	char (*etags)[ETAG_MAX];
};

struct lane {
	struct transfer *t;
	pthread_t thread;
	bool running;
	char *buf; /* S3_PART bytes */
	size_t len;
	uint64_t from, end; /* reads */
	unsigned number;    /* writes: 1 … */
	int r;
	struct err err;
};

static int lane_push(void *arg, const void *bytes, size_t len, struct err *err)
{
	struct lane *l = arg;

	if (len > S3_PART - l->len)
		return err_set(err, ERR_CORRUPT, "the S3 server sent more than requested");
	memcpy(l->buf + l->len, bytes, len);
	l->len += len;
	return 0;
}

static int get_part(struct lane *l, struct ctx *ctx)
{
	struct transfer *t = l->t;
	int r = 0;

	for (unsigned n = 0; n < PART_TRIES; n++) {
		struct s3_call call = {
			.method = "GET", .key = t->key, .push = lane_push, .arg = l, .expect = l->end - l->from};
		struct s3_answer a;

		l->len = 0;
		s3_header(&call, "range",
			  arena_printf(ctx->arena, "bytes=%llu-%llu", (unsigned long long)l->from,
				       (unsigned long long)l->end - 1));
		s3_header(&call, "if-match",
			  t->s3->conf.r2 ? arena_printf(ctx->arena, "\"%.*s\"", STR_ARG(t->etag)) : t->etag);
		r = s3_call(t->s3, ctx, &call, &a, &l->err);
		if (r == 0 && (a.http.status == 412 || a.http.status == 404)) {
			r = err_set(&l->err, ERR_CONFLICT, "it changed while it was being read; read again");
			l->err.retryable = true;
			return r;
		}
		if (r == 0 && a.http.status >= 300)
			return s3_refused(t->s3, &a, &l->err);
		if (r == 0 && l->len == l->end - l->from)
			return 0;
		if (r && !l->err.retryable)
			return r;
		r = err_set(&l->err, ERR_UNAVAILABLE, "the S3 server sent only a part of what was requested");
		l->err.retryable = true;
		if (s3_pause(ctx, n, &l->err))
			return -(int)l->err.kind;
	}
	return r;
}

static int put_part(struct lane *l, struct ctx *ctx)
{
	struct transfer *t = l->t;
	struct s3_call call = {.method = "PUT", .key = t->key, .body = str_n(l->buf, l->len), .expect = l->len};
	struct s3_answer a;
	struct str etag;
	int r;

	call.query[0] = (struct s3_param){"partNumber", arena_printf(ctx->arena, "%u", l->number)};
	call.query[1] = (struct s3_param){"uploadId", t->upload};
	r = s3_call(t->s3, ctx, &call, &a, &l->err);
	if (r)
		return r;
	if (a.http.status >= 300)
		return s3_refused(t->s3, &a, &l->err);
	etag = http_header_of(&a.http, "etag");
	if (etag.len == 0 || etag.len >= ETAG_MAX)
		return err_set(&l->err, ERR_CORRUPT, "the S3 server returned no ETag for a part");
	memcpy(t->etags[l->number - 1], etag.ptr, etag.len);
	return 0;
}

static void *lane_run(void *arg)
{
	struct lane *l = arg;
	struct ctx ctx = *l->t->ctx;
	ARENA_SCOPE struct arena *arena = arena_new();

	ctx.arena = arena;
	ctx.progress = NULL;
	l->r = l->number ? put_part(l, &ctx) : get_part(l, &ctx);
	return NULL;
}

static void lane_start(struct lane *l)
{
	if (pthread_create(&l->thread, NULL, lane_run, l) == 0)
		l->running = true;
	else
		lane_run(l); /* no thread to be had: one after the other */
}

/* 0, or how the lane's part failed. */
static int lane_join(struct lane *l, struct err *err)
{
	int r;

	if (l->running)
		pthread_join(l->thread, NULL);
	l->running = false;
	r = l->r;
	if (r)
		*err = l->err;
	l->r = 0;
	return r;
}

static void lanes_release(struct lane *lanes, size_t count)
{
	struct err ignored;

	for (size_t i = 0; i < count; i++) {
		(void)lane_join(&lanes[i], &ignored);
		free(lanes[i].buf);
	}
}

static void start_read(struct lane *l, struct transfer *t, uint64_t *next, uint64_t end)
{
	if (*next >= end)
		return;
	if (!l->buf)
		l->buf = xmalloc(S3_PART);
	l->t = t;
	l->from = *next;
	l->end = end - *next < S3_PART ? end : *next + S3_PART;
	*next = l->end;
	lane_start(l);
}

int s3_read_parts(struct s3 *s3, struct ctx *ctx, struct str key, struct str etag, uint64_t from, uint64_t end,
		  const struct sink *sink, struct err *err)
{
	struct transfer t = {.s3 = s3, .ctx = ctx, .key = key, .etag = etag};
	struct lane lanes[S3_LANES] = {0};
	uint64_t next = from;
	int r = 0;

	for (size_t i = 0; i < S3_LANES; i++)
		start_read(&lanes[i], &t, &next, end);
	for (size_t i = 0; r == 0 && from < end; i = (i + 1) % S3_LANES) {
		struct lane *l = &lanes[i];

		r = lane_join(l, err);
		if (r == 0)
			r = sink->push(sink->arg, l->buf, l->len, err);
		from = l->end;
		if (r == 0)
			start_read(l, &t, &next, end);
	}
	lanes_release(lanes, S3_LANES);
	return r;
}

/* Uploads. */

static int upload_begin(struct transfer *t, const struct s3_put *put, struct err *err)
{
	struct s3_call call = {.method = "POST", .key = t->key};
	struct s3_answer a;
	int r;

	call.query[0] = (struct s3_param){"uploads", STR("")};
	s3_meta_headers(t->s3, t->ctx->arena, &call, put);
	r = s3_call(t->s3, t->ctx, &call, &a, err);
	if (r)
		return r;
	if (a.http.status >= 300)
		return s3_refused(t->s3, &a, err);
	t->upload = s3_xml_text(t->ctx->arena, a.http.body, "UploadId");
	return t->upload.len ? 0 : err_set(err, ERR_CORRUPT, "the S3 server did not begin an upload");
}

static void upload_abort(struct s3 *s3, struct ctx *ctx, struct str key, struct str id)
{
	struct s3_call call = {.method = "DELETE", .key = key};
	struct ctx own = *ctx; /* also when the call was cancelled or is late */
	struct s3_answer a;
	struct err ignored;

	own.cancel = NULL;
	own.deadline_ns = clock_monotonic_ns() + CLEAN_UP_NS;
	call.query[0] = (struct s3_param){"uploadId", id};
	(void)s3_call(s3, &own, &call, &a, &ignored); /* what stays is swept later */
}

static int upload_complete(struct transfer *t, const struct s3_put *put, unsigned parts, struct store_stat *ret_stat,
			   struct err *err)
{
	struct s3_call call = {.method = "POST", .key = t->key, .expect = (uint64_t)parts * S3_PART / 8};
	struct s3_head head;
	struct s3_answer a;
	struct buf xml;
	int r;

	buf_init(&xml, t->ctx->arena, (size_t)parts * COMPLETE_EACH + KIB);
	buf_lit(&xml, "<CompleteMultipartUpload>");
	for (unsigned i = 0; i < parts; i++)
		buf_printf(&xml, "<Part><PartNumber>%u</PartNumber><ETag>%s</ETag></Part>", i + 1, t->etags[i]);
	buf_lit(&xml, "</CompleteMultipartUpload>");
	call.body = buf_str(&xml);
	call.query[0] = (struct s3_param){"uploadId", t->upload};
	r = s3_call(t->s3, t->ctx, &call, &a, err);
	if (r)
		return r;
	if (a.http.status >= 300 && a.http.status != 404) /* 404: an earlier try may have completed it */
		return s3_refused(t->s3, &a, err);
	r = s3_head(t->s3, t->ctx, t->key, &head, err);
	if (r)
		return r;
	if (!s3_has_token(&head, put->token) && a.http.status == 404)
		return err_set(err, ERR_UNAVAILABLE, "the upload was lost on the S3 server; write again");
	if (!head.exists)
		return err_set(err, ERR_CONFLICT, "it was removed as soon as it was written");
	s3_stat_of(&head, ret_stat);
	return 0;
}

int s3_stale_uploads(struct s3 *s3, struct ctx *ctx, bool abort, uint64_t *ret_count, struct err *err)
{
	struct s3_call call = {.method = "GET"};
	struct s3_upload *uploads;
	struct s3_answer a;
	size_t count;
	int r;

	call.query[0] = (struct s3_param){"uploads", STR("")};
	call.query[1] = (struct s3_param){"prefix", str_of(s3->conf.prefix)};
	call.query[2] = (struct s3_param){"encoding-type", STR("url")};
	r = s3_call(s3, ctx, &call, &a, err);
	if (r == 0 && a.http.status >= 300)
		r = s3_refused(s3, &a, err);
	if (r == 0)
		r = s3_xml_uploads(ctx->arena, a.http.body, &uploads, &count, err);
	*ret_count = 0;
	for (size_t i = 0; r == 0 && i < count; i++) {
		if (!uploads[i].begun_ns || uploads[i].begun_ns >= clock_real_ns() - STALE_NS)
			continue;
		++*ret_count;
		if (abort)
			upload_abort(s3, ctx, uploads[i].key, uploads[i].id);
	}
	return r;
}

/* What processes that died left behind, once for each store that writes something large. */
static void sweep(struct s3 *s3, struct ctx *ctx)
{
	struct err ignored;
	uint64_t count;
	bool done;

	pthread_mutex_lock(&s3->lock);
	done = s3->swept;
	s3->swept = true;
	pthread_mutex_unlock(&s3->lock);
	if (!done)
		(void)s3_stale_uploads(s3, ctx, true, &count, &ignored);
}

/* Parts from `first` and then the source; *ret_parts is how many there were. */
static int upload_parts(struct transfer *t, struct s3_body *first, const struct source *source, unsigned *ret_parts,
			struct err *err)
{
	struct lane lanes[S3_LANES] = {0};
	unsigned n = 0;
	bool more = true;
	int r = 0;

	while (r == 0 && more) {
		struct lane *l = &lanes[n % S3_LANES];

		r = lane_join(l, err);
		if (r)
			break;
		if (n == 0) {
			l->buf = first->own;
			l->len = first->bytes.len;
			first->own = NULL;
		} else {
			if (!l->buf)
				l->buf = xmalloc(S3_PART);
			r = fill(t->ctx, source, l->buf, S3_PART, &l->len, err);
		}
		more = l->len == S3_PART;
		if (r || (l->len == 0 && n))
			break;
		if (n == S3_PARTS_MAX)
			r = err_set(err, ERR_TOO_LARGE, "a file on S3 may have at most %zu GiB",
				    S3_PARTS_MAX * S3_PART / (1024 * MIB));
		l->t = t;
		l->number = ++n;
		if (r == 0)
			lane_start(l);
	}
	for (size_t i = 0; i < S3_LANES; i++) {
		struct err other;
		int failed = lane_join(&lanes[i], &other);

		if (failed && r == 0) {
			r = failed;
			*err = other;
		}
	}
	lanes_release(lanes, S3_LANES);
	*ret_parts = n;
	return r;
}

static int upload(struct s3 *s3, struct ctx *ctx, const struct s3_put *put, struct s3_body *first,
		  const struct source *source, struct store_stat *ret_stat, struct err *err)
{
	struct transfer t = {.s3 = s3, .ctx = ctx, .key = put->key};
	unsigned parts = 0;
	int r;

	sweep(s3, ctx);
	r = upload_begin(&t, put, err);
	if (r)
		return r;
	t.etags = xcalloc(S3_PARTS_MAX, sizeof(t.etags[0]));
	r = upload_parts(&t, first, source, &parts, err);
	if (r == 0)
		r = upload_complete(&t, put, parts, ret_stat, err);
	if (r)
		upload_abort(s3, ctx, t.key, t.upload);
	free(t.etags);
	return r;
}

/* A source over bytes in memory. */
struct slice {
	struct str rest;
};

static int slice_pull(void *arg, void *buf, size_t cap, size_t *ret_len, struct err *err)
{
	struct slice *s = arg;
	size_t n = cap < s->rest.len ? cap : s->rest.len;

	(void)err;
	if (n)
		memcpy(buf, s->rest.ptr, n);
	s->rest = str_from(s->rest, n);
	*ret_len = n;
	return 0;
}

int s3_write_source(struct s3 *s3, struct ctx *ctx, const struct s3_put *put, const struct source *source,
		    struct store_stat *ret_stat, struct err *err)
{
	struct s3_body body = {.bytes = source->bytes, .size = source->bytes.len}, all;
	struct slice slice = {source->bytes};
	struct source from = {.pull = slice_pull, .arg = &slice};
	bool more = true;
	int r = ctx_check(ctx, err);

	if (r)
		return r;
	if (!source->pull && (source->bytes.len <= S3_PART || put->cond.kind != STORE_ANY))
		return s3_put_body(s3, ctx, put, &body, ret_stat, err);
	if (source->pull)
		from = *source;
	r = first_part(ctx, &from, &body, &more, err);
	if (r)
		return r;
	if (!more) {
		r = s3_put_body(s3, ctx, put, &body, ret_stat, err);
	} else if (put->cond.kind == STORE_ANY) {
		r = upload(s3, ctx, put, &body, &from, ret_stat, err);
	} else {
		r = spool_rest(ctx, body.bytes, &from, &all, err);
		s3_body_release(&body);
		if (r)
			return r;
		body = all;
		r = s3_put_body(s3, ctx, put, &body, ret_stat, err);
	}
	s3_body_release(&body);
	return r;
}
