/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files as objects of an S3 server: the key is the store's prefix and the path. A read is one GET, a write one PUT, a
 * list one LIST for a thousand names.
 *
 * The version of a file is its ETag, which every answer of the server has, lists too, and which If-Match compares. It
 * is sent without quotes: some servers compare the header as it is. Three small values of ours accompany the bytes
 * (x-amz-meta-stead-…): the tokens of the last writers, so that a writer whose answer was lost can tell its own success
 * from another's; the time of a file that was moved; and where it was moved from, so that an interrupted move can be
 * continued.
 *
 * A conditional write is one PutObject with If-Match or If-None-Match, also for large files: other requests have
 * conditions on some servers only. An append is a conditional rewrite, made again when another writer was faster.
 * Servers without conditions are found out by asking, once (s3_conditions).
 */
#include <stdlib.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/limits.h"
#include "store/backends/s3/s3.h"
#include "store/list_stream.h"

#define APPEND_TRIES  400
#define TOKENS_KEPT   12 /* some servers allow 256 bytes for one value */
#define TOKEN_LEN     16
#define CONFLICT_GOES 4 /* a condition that holds on a second look is tried this often */

/* Keys. */

static bool is_own(struct str path)
{
	return wpath_within((struct wpath){path}, (struct wpath){STR(S3_OWN)});
}

static int refuse_own(struct str path, struct err *err)
{
	return is_own(path) ? err_set(err, ERR_INVALID, "the name \"%s\" is reserved for the store; use another name",
				      S3_OWN)
			    : 0;
}

struct str s3_key(struct s3 *s3, struct arena *arena, struct str path)
{
	return arena_printf(arena, "%s%.*s", s3->conf.prefix, STR_ARG(path));
}

struct str s3_dir_key(struct s3 *s3, struct arena *arena, struct str dir)
{
	return dir.len ? arena_printf(arena, "%s%.*s/", s3->conf.prefix, STR_ARG(dir)) : str_of(s3->conf.prefix);
}

struct str s3_own_key(struct s3 *s3, struct arena *arena, const char *area, struct str name)
{
	return arena_printf(arena, "%s%s/%s%.*s", s3->conf.prefix, S3_OWN, area, STR_ARG(name));
}

/* Metadata of an object. */

static struct str header_in(const struct http_header *headers, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (str_eq_nocase(headers[i].name, str_of(name)))
			return headers[i].value;
	return STR("");
}

static struct str bare_etag(struct str etag)
{
	if (str_starts(etag, STR("W/")))
		etag = str_from(etag, 2);
	if (etag.len >= 2 && etag.ptr[0] == '"' && etag.ptr[etag.len - 1] == '"')
		return str_n(etag.ptr + 1, etag.len - 2);
	return etag;
}

void s3_head_of(struct s3 *s3, struct ctx *ctx, const struct http_header *headers, size_t count, struct s3_head *ret)
{
	struct str range = header_in(headers, count, "content-range");
	struct str mtime = header_in(headers, count, "x-amz-meta-stead-mtime");
	struct str size = header_in(headers, count, "content-length");
	int64_t n;

	(void)s3;
	if (range.len)
		size = str_from(range, str_find_char(range, '/') + 1);
	*ret = (struct s3_head){.exists = true};
	ret->size = str_to_i64(size, &n) && n > 0 ? (uint64_t)n : 0;
	ret->etag = arena_str(ctx->arena, bare_etag(header_in(headers, count, "etag")));
	ret->tokens = arena_str(ctx->arena, header_in(headers, count, "x-amz-meta-stead-tokens"));
	ret->moved = arena_str(ctx->arena, header_in(headers, count, "x-amz-meta-stead-moved"));
	if (mtime.len && str_to_i64(mtime, &n))
		ret->mtime_ns = n;
	else
		ret->mtime_ns = s3_time(header_in(headers, count, "last-modified"));
}

/* The answer to a HEAD has no body and so no reason: the same is asked with a GET of one byte, which tells a wrong key
   from a wrong clock, and corrects the latter. 0: it works now. */
static int why_denied(struct s3 *s3, struct ctx *ctx, struct str key, struct err *err)
{
	struct s3_call call = {.method = "GET", .key = key};
	struct s3_answer a;

	s3_header(&call, "range", STR("bytes=0-0"));
	return s3_call(s3, ctx, &call, &a, err);
}

int s3_head(struct s3 *s3, struct ctx *ctx, struct str key, struct s3_head *ret, struct err *err)
{
	struct s3_call call = {.method = "HEAD", .key = key};
	struct s3_answer a;
	int r = s3_call(s3, ctx, &call, &a, err);

	if (r == -ERR_DENIED && why_denied(s3, ctx, key, err) == 0)
		r = s3_call(s3, ctx, &call, &a, err);
	if (r)
		return r;
	if (a.http.status >= 300 && a.http.status != 404)
		return s3_refused(s3, &a, err);
	if (a.http.status == 404)
		*ret = (struct s3_head){0};
	else
		s3_head_of(s3, ctx, a.http.headers, a.http.header_count, ret);
	return 0;
}

void s3_stat_of(const struct s3_head *head, struct store_stat *ret_stat)
{
	*ret_stat = (struct store_stat){
		.kind = STORE_FILE, .size = head->size, .mtime_ns = head->mtime_ns, .version = head->etag};
}

bool s3_has_token(const struct s3_head *head, struct str token)
{
	struct str rest = head->tokens, one;

	while (str_cut(&rest, ',', &one))
		if (str_eq(one, token))
			return true;
	return false;
}

struct str s3_token_new(struct arena *arena)
{
	char *hex = arena_alloc(arena, TOKEN_LEN + 1);

	hex_u64(random_u64(), hex);
	return str_n(hex, TOKEN_LEN);
}

void s3_meta_headers(struct s3 *s3, struct arena *arena, struct s3_call *call, const struct s3_put *put)
{
	struct str older = str_first(put->older, (TOKENS_KEPT - 1) * (TOKEN_LEN + 1) - 1);

	s3_header(call, "x-amz-meta-stead-tokens",
		  older.len ? arena_printf(arena, "%.*s,%.*s", STR_ARG(put->token), STR_ARG(older)) : put->token);
	if (put->mtime_ns)
		s3_header(call, "x-amz-meta-stead-mtime", arena_printf(arena, "%lld", (long long)put->mtime_ns));
	if (put->moved.len)
		s3_header(call, "x-amz-meta-stead-moved", put->moved);
	if (s3->conf.sse)
		s3_header(call, "x-amz-server-side-encryption", str_of(s3->conf.sse));
	if (s3->conf.sse_key)
		s3_header(call, "x-amz-server-side-encryption-aws-kms-key-id", str_of(s3->conf.sse_key));
}

/* Lists. */

int s3_list(struct s3 *s3, struct ctx *ctx, struct str prefix, bool level, struct str start_after, struct str token,
	    size_t max, struct s3_listing *ret, struct err *err)
{
	struct s3_call call = {.method = "GET"};
	struct s3_answer a;
	size_t n = 0;
	int r;

	call.query[n++] = (struct s3_param){"list-type", STR("2")};
	call.query[n++] = (struct s3_param){"encoding-type", STR("url")};
	call.query[n++] = (struct s3_param){"max-keys", arena_printf(ctx->arena, "%zu", max < 1000 ? max : 1000)};
	call.query[n++] = (struct s3_param){"prefix", prefix};
	if (level)
		call.query[n++] = (struct s3_param){"delimiter", STR("/")};
	if (token.len)
		call.query[n++] = (struct s3_param){"continuation-token", token};
	else if (start_after.len)
		call.query[n++] = (struct s3_param){"start-after", start_after};
	r = s3_call(s3, ctx, &call, &a, err);
	if (r)
		return r;
	if (a.http.status >= 300)
		return s3_refused(s3, &a, err);
	return s3_xml_listing(ctx->arena, a.http.body, ret, err);
}

int s3_any_below(struct s3 *s3, struct ctx *ctx, struct str dir_key, bool *ret_any, struct err *err)
{
	struct s3_listing list;
	int r = s3_list(s3, ctx, dir_key, false, STR(""), STR(""), 1, &list, err);

	if (r == 0)
		*ret_any = list.count > 0;
	return r;
}

int s3_absent(struct s3 *s3, struct ctx *ctx, struct str path, struct err *err)
{
	bool any;
	int r = s3_any_below(s3, ctx, s3_dir_key(s3, ctx->arena, path), &any, err);

	if (r)
		return r;
	return any ? store_refuse(REFUSE_DIR, path, err) : store_not_found(err);
}

static int s3_stat(struct store *s, struct ctx *ctx, struct wpath path, struct store_stat *ret_stat, struct err *err)
{
	struct s3 *s3 = s3_of(s);
	struct s3_head head = {0};
	bool any = true;
	int r;

	if (wpath_is_root(path)) {
		*ret_stat = (struct store_stat){.kind = STORE_DIR};
		return 0;
	}
	if (is_own(path.s))
		return store_not_found(err);
	r = s3_head(s3, ctx, s3_key(s3, ctx->arena, path.s), &head, err);
	if (r == 0 && !head.exists)
		r = s3_any_below(s3, ctx, s3_dir_key(s3, ctx->arena, path.s), &any, err);
	if (r)
		return r;
	if (!any)
		return store_not_found(err);
	if (head.exists)
		s3_stat_of(&head, ret_stat);
	else
		*ret_stat = (struct store_stat){.kind = STORE_DIR};
	return 0;
}

/* Reads. */

struct reading {
	struct s3 *s3;
	struct ctx *ctx;
	const struct sink *sink;
	struct s3_head head;
	uint64_t from, end; /* what is to be delivered; end is known with the head */
	uint64_t at;
	char *direct; /* the sink's own memory */
	bool ended;   /* by the sink */
};

static int reading_push(void *arg, const void *bytes, size_t len, struct err *err)
{
	struct reading *rd = arg;

	if (len > rd->end - rd->at)
		len = (size_t)(rd->end - rd->at);
	if (rd->direct)
		memcpy(rd->direct + (rd->at - rd->from), bytes, len);
	rd->at += len;
	if (rd->direct || len == 0)
		return 0;
	rd->ended = rd->sink->push(rd->sink->arg, bytes, len, err) != 0;
	return rd->ended ? -(int)err->kind : 0;
}

static int reading_head(void *arg, int status, const struct http_header *headers, size_t count, struct err *err)
{
	struct reading *rd = arg;

	if (status != 200 && status != 206)
		return 0;
	s3_head_of(rd->s3, rd->ctx, headers, count, &rd->head);
	if (status == 200 && rd->from)
		return err_set(err, ERR_UNSUPPORTED, "the S3 server cannot return parts of an object");
	if (rd->end > rd->head.size)
		rd->end = rd->head.size;
	if (rd->sink->reserve && !rd->direct && rd->end > rd->from && rd->end - rd->from <= SIZE_MAX)
		rd->direct = rd->sink->reserve(rd->sink->arg, (size_t)(rd->end - rd->from));
	return 0;
}

/* The first part, which tells how much there is. *ret_status: of the answer. */
static int read_first(struct reading *rd, struct str key, int *ret_status, struct err *err)
{
	uint64_t last = rd->end - rd->from < S3_PART ? rd->end - 1 : rd->from + S3_PART - 1;
	struct s3_call call = {
		.method = "GET", .key = key, .push = reading_push, .head = reading_head, .arg = rd, .expect = S3_PART};
	struct s3_answer a;
	int r;

	s3_header(&call, "range",
		  arena_printf(rd->ctx->arena, "bytes=%llu-%llu", (unsigned long long)rd->from,
			       (unsigned long long)last));
	r = s3_call(rd->s3, rd->ctx, &call, &a, err);
	if (r && rd->at > rd->from && err->retryable && !rd->ended)
		r = 0; /* cut off: the rest is asked for, of the same version */
	else if (r == 0 && a.http.status >= 300 && a.http.status != 404 && a.http.status != 416)
		r = s3_refused(rd->s3, &a, err);
	*ret_status = r == 0 && rd->at == rd->from ? a.http.status : 200;
	return r;
}

static int read_bytes(struct reading *rd, struct wpath path, struct err *err)
{
	struct str key = s3_key(rd->s3, rd->ctx->arena, path.s);
	struct sink rest = {.push = reading_push, .arg = rd};
	int status = 416, r = 0;

	if (rd->from < rd->end && rd->from < INT64_MAX)
		r = read_first(rd, key, &status, err);
	if (r == 0 && status == 416) { /* past the end: only the stat is left to give */
		r = s3_head(rd->s3, rd->ctx, key, &rd->head, err);
		rd->end = rd->at = rd->from;
		if (r == 0 && !rd->head.exists)
			status = 404;
	}
	if (r == 0 && status == 404)
		return rd->sink->skip_dirs ? store_may_be_dir(err) : s3_absent(rd->s3, rd->ctx, path.s, err);
	if (r == 0 && rd->at < rd->end)
		r = s3_read_parts(rd->s3, rd->ctx, key, rd->head.etag, rd->at, rd->end, &rest, err);
	if (r == 0 && rd->direct)
		r = rd->sink->push(rd->sink->arg, rd->direct, (size_t)(rd->end - rd->from), err);
	return r;
}

static int s3_read(struct store *s, struct ctx *ctx, struct wpath path, struct store_range range,
		   const struct sink *sink, struct store_stat *ret_stat, struct err *err)
{
	struct reading rd = {.s3 = s3_of(s), .ctx = ctx, .sink = sink, .from = range.offset, .at = range.offset};
	int r;

	if (is_own(path.s))
		return store_not_found(err);
	rd.end = range.length > UINT64_MAX - range.offset ? UINT64_MAX : range.offset + range.length;
	r = read_bytes(&rd, path, err);
	if (r == 0)
		s3_stat_of(&rd.head, ret_stat);
	return r;
}

/* Conditions. */

static int probe_put(struct s3 *s3, struct ctx *ctx, const char *name, const char *value, int *ret_status,
		     struct err *err)
{
	struct s3_call call = {
		.method = "PUT", .key = s3_own_key(s3, ctx->arena, "probe", STR("")), .body = STR("stead\n")};
	struct s3_answer a;
	int r;

	s3_header(&call, name, str_of(value));
	r = s3_call(s3, ctx, &call, &a, err);
	if (r == 0)
		*ret_status = a.http.status;
	return r;
}

/* Two requests to a server that has them (three the first time of all): a server that ignores conditions says 200. */
static int probe(struct s3 *s3, struct ctx *ctx, enum s3_answer_known *ret, struct err *err)
{
	int status = 0;
	int r = probe_put(s3, ctx, "if-none-match", "*", &status, err);

	if (r == 0 && status == 200)
		r = probe_put(s3, ctx, "if-none-match", "*", &status, err);
	*ret = status == 412 ? S3_YES : S3_NO;
	if (r == 0 && *ret == S3_YES) {
		r = probe_put(s3, ctx, "if-match", "00000000000000000000000000000000", &status, err);
		*ret = status == 412 || status == 404 ? S3_YES : S3_NO;
	}
	return r;
}

int s3_conditions(struct s3 *s3, struct ctx *ctx, bool *ret_has, struct err *err)
{
	enum s3_answer_known known;
	int r = 0;

	pthread_mutex_lock(&s3->lock);
	known = s3->conditions;
	pthread_mutex_unlock(&s3->lock);
	if (known == S3_UNKNOWN) {
		r = probe(s3, ctx, &known, err);
		if (r)
			return r;
		pthread_mutex_lock(&s3->lock);
		s3->conditions = known;
		pthread_mutex_unlock(&s3->lock);
	}
	if (known == S3_NO && !s3->conf.single_writer)
		return err_set(
			err, ERR_UNSUPPORTED,
			"this S3 server has no conditional writes, so two writers could overwrite each other; if "
			"only one process ever writes here, add single_writer=1 to the store's URL");
	*ret_has = known == S3_YES;
	return r;
}

pthread_mutex_t *s3_key_lock(struct s3 *s3, struct str key)
{
	static pthread_mutex_t locks[64] = {[0 ... 63] = PTHREAD_MUTEX_INITIALIZER};

	return &locks[hash_u64(key, hash_u64(str_of(s3->conf.bucket), 0)) % 64];
}

/* Writes. */

static void cond_header(struct s3 *s3, struct arena *arena, struct s3_call *call, struct store_cond cond)
{
	if (cond.kind == STORE_ABSENT)
		s3_header(call, "if-none-match", STR("*"));
	else if (cond.kind == STORE_VERSION && s3->conf.r2)
		s3_header(call, "if-match", arena_printf(arena, "\"%.*s\"", STR_ARG(cond.version)));
	else if (cond.kind == STORE_VERSION)
		s3_header(call, "if-match", cond.version);
}

/* The server said that the condition does not hold. Was it ourselves? *ret_again: it does hold now. */
static int lost_condition(struct s3 *s3, struct ctx *ctx, const struct s3_put *put, struct s3_head *ret_head,
			  bool *ret_again, struct err *err)
{
	int r = s3_head(s3, ctx, put->key, ret_head, err);

	*ret_again = false;
	if (r || s3_has_token(ret_head, put->token))
		return r;
	r = store_cond_check(put->cond, ret_head->exists, ret_head->etag, err);
	*ret_again = r == 0;
	return r;
}

/* A version that could be an ETag. Anything else ("*", a list, a line break) must not get into a header, and matches
   nothing. */
static bool could_match(struct store_cond cond)
{
	if (cond.kind != STORE_VERSION)
		return true;
	for (size_t i = 0; i < cond.version.len; i++) {
		char c = cond.version.ptr[i];

		if (!((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '-' ||
		      c == '_' || c == '.' || c == '='))
			return false;
	}
	return cond.version.len > 0 && cond.version.len <= VERSION_BARE_MAX;
}

int s3_put_body(struct s3 *s3, struct ctx *ctx, const struct s3_put *put, const struct s3_body *body,
		struct store_stat *ret_stat, struct err *err)
{
	for (unsigned n = 0;; n++) {
		struct s3_call call = {.method = "PUT", .key = put->key, .body = body->bytes, .expect = body->size};
		struct s3_head head = {.exists = true, .size = body->size};
		struct s3_answer a;
		bool again = false;
		int r;

		if (!could_match(put->cond)) {
			r = lost_condition(s3, ctx, put, &head, &again, err);
			return r ? r : err_set(err, ERR_CONFLICT, "this store never gave this version");
		}
		s3_meta_headers(s3, ctx->arena, &call, put);
		cond_header(s3, ctx->arena, &call, put->cond);
		r = s3_send_body(s3, ctx, &call, body, &a, err);
		if (r)
			return r;
		if (a.http.status < 300) {
			head.etag = arena_str(ctx->arena, bare_etag(http_header_of(&a.http, "etag")));
			head.mtime_ns = put->mtime_ns ? put->mtime_ns : s3_time(http_header_of(&a.http, "date"));
			if (head.etag.len == 0)
				r = s3_head(s3, ctx, put->key, &head, err);
		} else if (put->cond.kind != STORE_ANY && (a.http.status == 412 || a.http.status == 404)) {
			r = lost_condition(s3, ctx, put, &head, &again, err);
		} else {
			r = s3_refused(s3, &a, err);
		}
		if (r)
			return r;
		if (!again) {
			s3_stat_of(&head, ret_stat);
			return 0;
		}
		if (n + 1 == CONFLICT_GOES)
			return err_set(err, ERR_CONFLICT, "it keeps changing; read it again and decide again");
		r = s3_pause(ctx, n, err);
		if (r)
			return r;
	}
}

/* Where the server has no conditions, they are looked at while the key is locked in this process. */
static int write_locked(struct s3 *s3, struct ctx *ctx, struct s3_put *put, const struct source *source,
			struct store_stat *ret_stat, struct err *err)
{
	pthread_mutex_t *lock = s3_key_lock(s3, put->key);
	struct s3_head head = {0};
	int r;

	pthread_mutex_lock(lock);
	r = s3_head(s3, ctx, put->key, &head, err);
	if (r == 0)
		r = store_cond_check(put->cond, head.exists, head.etag, err);
	put->cond = (struct store_cond){0};
	if (r == 0)
		r = s3_write_source(s3, ctx, put, source, ret_stat, err);
	pthread_mutex_unlock(lock);
	return r;
}

static int s3_write(struct store *s, struct ctx *ctx, struct wpath path, const struct source *source,
		    struct store_cond cond, struct store_stat *ret_stat, struct err *err)
{
	struct s3 *s3 = s3_of(s);
	struct s3_put put = {.key = s3_key(s3, ctx->arena, path.s), .cond = cond, .token = s3_token_new(ctx->arena)};
	bool has = true;
	int r = refuse_own(path.s, err);

	if (r == 0 && cond.kind != STORE_VERSION) /* a file of that version is there, or nothing is written */
		r = s3_place_check(s3, ctx, path.s, err);
	if (r == 0 && cond.kind != STORE_ANY)
		r = s3_conditions(s3, ctx, &has, err);
	if (r)
		return r;
	r = has ? s3_write_source(s3, ctx, &put, source, ret_stat, err)
		: write_locked(s3, ctx, &put, source, ret_stat, err);
	if (r == 0)
		s3_place_made(s3, path.s);
	else if (cond.kind == STORE_VERSION && err->kind == ERR_CONFLICT &&
		 s3_place_check(s3, ctx, path.s, &(struct err){0}) == -ERR_INVALID)
		r = s3_place_check(s3, ctx, path.s, err);
	return r;
}

/* Appends. */

struct grow {
	char *bytes;
	size_t len, cap;
};

static void *grow_reserve(void *arg, size_t size)
{
	struct grow *g = arg;

	g->cap = size;
	g->bytes = xrealloc(g->bytes, size ? size : 1);
	return g->bytes;
}

static int grow_push(void *arg, const void *bytes, size_t len, struct err *err)
{
	struct grow *g = arg;

	(void)bytes;
	(void)err;
	g->len = len;
	return 0;
}

/* What is there now, and its bytes when all of it and `more` fit into one part; *ret_head.exists false: nothing. */
static int append_look(struct s3 *s3, struct ctx *ctx, struct str path, struct s3_head *ret_head, struct grow *ret_old,
		       struct err *err)
{
	struct sink sink = {.push = grow_push, .reserve = grow_reserve, .arg = ret_old};
	struct reading rd = {.s3 = s3, .ctx = ctx, .sink = &sink, .end = S3_PART};
	struct str key = s3_key(s3, ctx->arena, path);
	int status, r = read_first(&rd, key, &status, err);

	if (r)
		return r;
	if (status == 404) {
		*ret_head = (struct s3_head){0};
		return 0;
	}
	if (status == 416) { /* an empty file */
		rd.end = 0;
		r = s3_head(s3, ctx, key, &rd.head, err);
	}
	if (r == 0 && rd.at < rd.end) { /* cut off */
		struct sink rest = {.push = reading_push, .arg = &rd};

		r = s3_read_parts(s3, ctx, key, rd.head.etag, rd.at, rd.end, &rest, err);
	}
	ret_old->len = (size_t)rd.end;
	*ret_head = rd.head;
	return r;
}

struct append {
	struct s3 *s3;
	struct ctx *ctx;
	struct str path;
	struct store_cond cond;
	const struct s3_body *more;
	struct s3_put put;
	bool has; /* the server has conditions */
};

static int append_put(struct append *ap, const struct s3_head *head, struct grow *old, struct store_stat *ret_stat,
		      struct err *err)
{
	struct s3_body body = {0};
	int r = 0;

	ap->put.older = head->tokens;
	ap->put.cond = (struct store_cond){.kind = head->exists ? STORE_VERSION : STORE_ABSENT, .version = head->etag};
	if (!ap->has)
		ap->put.cond.kind = STORE_ANY;
	if (head->size + ap->more->size > S3_PART || ap->more->file) {
		r = s3_join(ap->s3, ap->ctx, ap->put.key, head, ap->more, &body, err);
	} else {
		body.size = old->len + ap->more->size;
		old->bytes = xrealloc(old->bytes, body.size ? body.size : 1);
		if (ap->more->bytes.len)
			memcpy(old->bytes + old->len, ap->more->bytes.ptr, ap->more->bytes.len);
		body.bytes = str_n(old->bytes, body.size);
	}
	if (r == 0)
		r = s3_put_body(ap->s3, ap->ctx, &ap->put, &body, ret_stat, err);
	s3_body_release(&body);
	return r;
}

/* One try; *ret_again: another writer was faster. */
static int append_once(struct append *ap, struct store_stat *ret_stat, bool *ret_again, struct err *err)
{
	struct grow old = {0};
	struct s3_head head = {0};
	int r = append_look(ap->s3, ap->ctx, ap->path, &head, &old, err);

	*ret_again = false;
	if (r == 0 && s3_has_token(&head, ap->put.token)) { /* an earlier try did it, though its answer was lost */
		s3_stat_of(&head, ret_stat);
		free(old.bytes);
		return 0;
	}
	if (r == 0 && !head.exists)
		r = s3_place_check(ap->s3, ap->ctx, ap->path, err);
	if (r == 0)
		r = store_cond_check(ap->cond, head.exists, head.etag, err);
	if (r == 0) {
		r = append_put(ap, &head, &old, ret_stat, err);
		*ret_again = r == -ERR_CONFLICT || r == -ERR_EXISTS;
	}
	free(old.bytes);
	return r;
}

static int append_tries(struct append *ap, struct store_stat *ret_stat, struct err *err)
{
	bool again = true;
	int r = 0;

	for (unsigned n = 0; again && n < APPEND_TRIES; n++) {
		ARENA_SCOPE struct arena *arena = arena_new();
		struct ctx *outer = ap->ctx, own = *outer;
		struct store_stat st;

		own.arena = arena;
		ap->ctx = &own;
		r = append_once(ap, &st, &again, err);
		ap->ctx = outer;
		if (r == 0) {
			*ret_stat = st;
			ret_stat->version = arena_str(outer->arena, st.version);
		}
		if (again && s3_pause(outer, n < 4 ? n : 4, err))
			return -(int)err->kind;
	}
	return r;
}

static int s3_append(struct store *s, struct ctx *ctx, struct wpath path, const struct source *source,
		     struct store_cond cond, struct store_stat *ret_stat, struct err *err)
{
	struct s3 *s3 = s3_of(s);
	struct append ap = {.s3 = s3, .ctx = ctx, .path = path.s, .cond = cond};
	pthread_mutex_t *lock;
	struct s3_body more;
	int r = refuse_own(path.s, err);

	if (r == 0)
		r = s3_conditions(s3, ctx, &ap.has, err);
	if (r == 0)
		r = s3_collect(ctx, source, &more, err);
	if (r)
		return r;
	ap.more = &more;
	ap.put = (struct s3_put){.key = s3_key(s3, ctx->arena, path.s), .token = s3_token_new(ctx->arena)};
	lock = s3_key_lock(s3, ap.put.key);
	pthread_mutex_lock(lock); /* threads of one process do not race each other through the server */
	r = append_tries(&ap, ret_stat, err);
	pthread_mutex_unlock(lock);
	s3_body_release(&more);
	if (r == 0)
		s3_place_made(s3, path.s);
	return r;
}

/* The list operation. */

struct lister {
	struct s3 *s3;
	struct ctx *ctx;
	const struct store_list_req *req;
	struct str path, dir_key;
	struct page_builder page;
	bool any;
};

/* An object or common prefix as an entry; false: it is not an entry. */
static bool entry_of(struct lister *l, const struct s3_object *o, struct store_entry *ret)
{
	struct str text = str_from(o->key, strlen(l->s3->conf.prefix));
	struct err ignored;

	if (is_own(o->prefix && text.len ? str_first(text, text.len - 1) : text) || o->key.len <= l->dir_key.len)
		return false;
	if (o->prefix)
		text.len--;
	*ret = (struct store_entry){0};
	if (wpath_parse(text, &ret->path, &ignored)) {
		l->page.page.skipped++;
		return false;
	}
	if (o->prefix)
		ret->stat = (struct store_stat){.kind = STORE_DIR};
	else
		ret->stat = (struct store_stat){
			.kind = STORE_FILE, .size = o->size, .mtime_ns = o->modified_ns, .version = o->etag};
	return true;
}

/* The key after which a page begins. After a directory means after its prefix with the highest character. */
static struct str cursor_key(struct lister *l, struct str after)
{
	struct str key = s3_key(l->s3, l->ctx->arena, after);

	if (after.len == 0)
		return after;
	if (!l->req->recursive && str_ends(after, STR("/")))
		return arena_printf(l->ctx->arena, "%.*s\xF4\x8F\xBF\xBF", STR_ARG(key));
	return key;
}

static void take_entries(struct lister *l, const struct s3_listing *list)
{
	for (size_t i = 0; i < list->count && l->page.page.count <= l->page.limit; i++) {
		struct store_entry e;

		if (!entry_of(l, &list->objects[i], &e))
			continue;
		if (l->req->after.len && str_cmp(list_cursor(l->ctx->arena, &e), l->req->after) <= 0)
			continue;
		page_builder_add(&l->page, &e);
	}
}

static int list_pages(struct lister *l, struct err *err)
{
	struct str token = STR(""), start = cursor_key(l, l->req->after);

	for (;;) {
		size_t want = l->page.limit - l->page.page.count + 1;
		struct s3_listing list = {0};
		int r = s3_list(l->s3, l->ctx, l->dir_key, !l->req->recursive, start, token, want, &list, err);

		if (r)
			return r;
		if (!l->req->recursive && start.len == 0 && token.len == 0)
			s3_place_listed(l->s3, l->path, l->dir_key.len, &list);
		l->any = l->any || list.count;
		take_entries(l, &list);
		token = list.token;
		if (!list.truncated || !token.len || page_builder_full(&l->page))
			return 0;
		if (l->page.page.count == l->page.limit) { /* there is more, what it is need not be known */
			l->page.page.next = list_cursor(l->ctx->arena, &l->page.page.entries[l->page.limit - 1]);
			return 0;
		}
	}
}

static int s3_list_op(struct store *s, struct ctx *ctx, struct wpath path, const struct store_list_req *req,
		      struct store_page *ret_page, struct err *err)
{
	struct s3 *s3 = s3_of(s);
	struct lister l = {
		.s3 = s3, .ctx = ctx, .req = req, .path = path.s, .page = {.arena = ctx->arena, .limit = req->limit}};
	struct s3_head head = {0};
	int r;

	if (is_own(path.s))
		return store_not_found(err);
	l.dir_key = s3_dir_key(s3, ctx->arena, path.s);
	r = list_pages(&l, err);
	if (r)
		return r;
	if (!l.any && !wpath_is_root(path) && req->after.len == 0) {
		if (req->never_file)
			return store_not_found(err);
		r = s3_head(s3, ctx, s3_key(s3, ctx->arena, path.s), &head, err);
		if (r)
			return r;
		return head.exists ? store_refuse(REFUSE_FILE, path.s, err) : store_not_found(err);
	}
	page_builder_finish(&l.page, ret_page);
	return 0;
}

void s3_conf_release(struct s3_conf *conf)
{
	if (conf->secret)
		explicit_bzero(conf->secret, strlen(conf->secret));
	free(conf->endpoint);
	free(conf->bucket);
	free(conf->prefix);
	free(conf->region);
	free(conf->key_id);
	free(conf->secret);
	free(conf->session);
	free(conf->sse);
	free(conf->sse_key);
	*conf = (struct s3_conf){0};
}

static void s3_destroy(struct store *s)
{
	struct s3 *s3 = s3_of(s);

	explicit_bzero(&s3->key, sizeof(s3->key));
	http_destroy(s3->http);
	s3_places_destroy(s3->places);
	s3_conf_release(&s3->conf);
	pthread_mutex_destroy(&s3->lock);
	free(s3);
}

static const struct store_ops s3_ops = {
	.name = "s3",
	.stat = s3_stat,
	.read = s3_read,
	.write = s3_write,
	.append = s3_append,
	.remove = s3_remove,
	.move = s3_move,
	.copy = s3_copy,
	.list = s3_list_op,
	.scan = store_scan_generic,
	.destroy = s3_destroy,
};

struct store *s3_new(struct s3_conf *conf)
{
	static const struct http_opts opts = {.path_as_is = true};
	struct s3 *s3 = xcalloc(1, sizeof(*s3));

	s3->base.ops = &s3_ops;
	s3->conf = *conf;
	*conf = (struct s3_conf){0};
	snprintf(s3->region, sizeof(s3->region), "%s", s3->conf.region);
	pthread_mutex_init(&s3->lock, NULL);
	s3->places = s3_places_new();
	s3->http = http_new(&opts);
	return &s3->base;
}

int store_s3_uploads(struct store *s, struct ctx *ctx, bool abort, uint64_t *ret_count, struct err *err)
{
	return s3_stale_uploads(s3_of(s), ctx, abort, ret_count, err);
}

uint64_t store_s3_requests(struct store *s)
{
	return atomic_load(&s3_of(s)->requests);
}
