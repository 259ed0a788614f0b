/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One request to an S3 server, from its parts to an answer that can be judged. Here is everything that makes the
 * difference between a call and a call that ends well: signing, waiting and trying again, a region or a clock that was
 * wrong, a bucket that is to be made, and the sentence for what cannot be corrected. Callers see a 404 or a 412 as an
 * answer, because only they know what it means.
 *
 * A call ends by the deadline of its context; without one, by one of its own. Between tries it sleeps a random part of
 * a doubling time (full jitter: the crowd of clients that failed together does not come back together), or as long as
 * the server asked. Each try gets its own signature, with the time of the try.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fatal.h"
#include "base/limits.h"
#include "net/sigv4.h"
#include "store/backends/s3/s3.h"

#define TRIES          7
#define TRIES_FIRST    4 /* to connect, when there was never an answer: the address may be wrong */
#define PAUSE_FIRST_MS 100
#define PAUSE_MAX_MS   20000
#define DEADLINE_MS    60000
#define TRY_MS         20000
#define SLOWEST_BPS    (256 * KIB) /* a transfer slower than this is given up */

/* An answer that is read whole: a list of 1,000 long keys, each byte as %XX. */
#define ANSWER_MAX (8 * MIB)

struct attempt {
	struct s3 *s3;
	struct ctx *ctx;
	const struct s3_call *call;
	struct str redirect; /* where a 307 sent us, or empty */
	bool pushed, push_failed;
	unsigned mended; /* region, clock, bucket: at most a few times */
};

void s3_header(struct s3_call *call, const char *name, struct str value)
{
	if (call->header_count == COUNT(call->headers))
		fatal("too many headers for a request to S3: %s", name);
	call->headers[call->header_count++] = (struct http_header){str_of(name), value};
}

int s3_pause(struct ctx *ctx, unsigned n, struct err *err)
{
	int64_t top = PAUSE_FIRST_MS, end;

	while (n-- && top < PAUSE_MAX_MS)
		top *= 2;
	end = clock_monotonic_ns() + (int64_t)(random_u64() % (uint64_t)(top * NS_PER_MS));
	for (;;) {
		int64_t left = end - clock_monotonic_ns();
		struct timespec nap = {0, (long)(left < 50 * NS_PER_MS ? left : 50 * NS_PER_MS)};
		int r = ctx_check(ctx, err);

		if (r || left <= 0)
			return r;
		nanosleep(&nap, NULL);
	}
}

/* Addresses. */

static struct str host_of(struct str url)
{
	size_t from = str_find(url, STR("://"), 0);
	struct str host = str_from(url, from == SIZE_MAX ? 0 : from + 3);

	return str_first(host, str_find_char(host, '/'));
}

/* "https://host" as the bucket is addressed, and the path after it. */
static void address(struct s3 *s3, struct arena *arena, struct str key, struct str *ret_base, struct str *ret_path)
{
	struct str endpoint = str_of(s3->conf.endpoint);
	struct buf path;

	if (s3->conf.aws) {
		pthread_mutex_lock(&s3->lock);
		endpoint = arena_printf(arena, "https://s3.%s.amazonaws.com", s3->region);
		pthread_mutex_unlock(&s3->lock);
	}
	buf_init(&path, arena, 16 * KIB);
	if (s3->conf.path_style) {
		buf_char(&path, '/');
		http_encode(&path, str_of(s3->conf.bucket), true);
		*ret_base = endpoint;
	} else {
		struct str host = host_of(endpoint);

		*ret_base = arena_printf(arena, "%.*s%s.%.*s", (int)(host.ptr - endpoint.ptr), endpoint.ptr,
					 s3->conf.bucket, STR_ARG(host));
	}
	if (key.ptr || !s3->conf.path_style)
		buf_char(&path, '/');
	if (key.ptr)
		http_encode(&path, key, true);
	*ret_path = buf_str(&path);
}

/* The messages for failures that cannot be corrected. None of them shows keys, secrets or signatures. */

static const struct {
	const char *code;
	enum err_kind kind;
	const char *say; /* '@': the names of the variables that hold the key */
} sentences[] = {
	{"InvalidAccessKeyId", ERR_UNAUTHENTICATED, "does not know the access key; check @"},
	{"SignatureDoesNotMatch", ERR_UNAUTHENTICATED, "refused the signature; check the secret that goes with @"},
	{"InvalidToken", ERR_UNAUTHENTICATED, "refused the session token; renew the credentials in @"},
	{"ExpiredToken", ERR_UNAUTHENTICATED, "says that the session token has expired; renew the credentials in @"},
	{"AccessDenied", ERR_DENIED, "denied access; give the key in @ the right to list, read, write and delete"},
	{"AllAccessDisabled", ERR_DENIED, "has disabled the bucket; check the account of @"},
	{"QuotaExceeded", ERR_QUOTA, "has no room left because the quota is used up; remove files or raise the quota"},
	{"InsufficientStorage", ERR_QUOTA, "has no room left; free some space or add storage"},
	{"EntityTooLarge", ERR_TOO_LARGE, "refused an object of this size; write a smaller file"},
	{"KeyTooLongError", ERR_INVALID, "refused the key; prefix and path together are longer than it allows"},
	{"XAmzContentSHA256Mismatch", ERR_CORRUPT, "received other bytes than were sent; try again"},
	{"BadDigest", ERR_CORRUPT, "received other bytes than were sent; try again"},
};

static const char *key_names(const struct s3 *s3)
{
	return s3->conf.r2 ? "R2_ACCESS_KEY_ID and R2_SECRET_ACCESS_KEY"
			   : "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY";
}

static bool skewed(const struct s3_answer *a)
{
	return str_is(a->error.code, "RequestTimeTooSkewed") || str_is(a->error.code, "ExpiredRequest") ||
	       str_is(a->error.code, "RequestExpired");
}

int s3_refused(struct s3 *s3, const struct s3_answer *a, struct err *err)
{
	struct str host = host_of(str_of(s3->conf.endpoint)), code = a->error.code;
	int status = a->http.status, r;

	if (str_is(code, "NoSuchBucket"))
		return err_set(err, ERR_UNAVAILABLE,
			       "there is no bucket \"%s\" at %.*s; make it, or add create=1 to the store's URL",
			       s3->conf.bucket, STR_ARG(host));
	if (skewed(a))
		return err_set(err, ERR_UNAUTHENTICATED,
			       "the S3 server at %.*s says that this machine's clock is wrong; set the clock",
			       STR_ARG(host));
	for (size_t i = 0; i < COUNT(sentences); i++)
		if (str_is(code, sentences[i].code)) {
			const char *at = strchrnul(sentences[i].say, '@');

			return err_set(err, sentences[i].kind, "the S3 server at %.*s %.*s%s%s", STR_ARG(host),
				       (int)(at - sentences[i].say), sentences[i].say, *at ? key_names(s3) : "",
				       *at ? at + 1 : "");
		}
	if (status == 403)
		return err_set(err, ERR_DENIED, "the S3 server at %.*s denied access; check %s and what they may do",
			       STR_ARG(host), key_names(s3));
	if (status == 507)
		return err_set(err, ERR_QUOTA, "the S3 server at %.*s has no room left", STR_ARG(host));
	if (status == 429 || str_is(code, "SlowDown"))
		r = err_set(err, ERR_RATE_LIMITED,
			    "the S3 server at %.*s is getting too many requests; wait and try again", STR_ARG(host));
	else
		r = err_set(err, status >= 500 ? ERR_UNAVAILABLE : ERR_INVALID,
			    "the S3 server at %.*s answered %d %.*s", STR_ARG(host), status,
			    STR_ARG(utf8_first(code, 64)));
	err->retryable = status == 429 || status >= 500;
	return r;
}

/* One try. */

static int attempt_push(void *arg, const void *bytes, size_t len, struct err *err)
{
	struct attempt *at = arg;
	int r;

	at->pushed = at->pushed || len;
	r = at->call->push(at->call->arg, bytes, len, err);
	at->push_failed = r != 0;
	return r;
}

static int attempt_head(void *arg, int status, const struct http_header *headers, size_t count, struct err *err)
{
	struct attempt *at = arg;
	int r = at->call->head ? at->call->head(at->call->arg, status, headers, count, err) : 0;

	at->push_failed = r != 0;
	return r;
}

static struct str payload_hash(struct arena *arena, const struct s3_call *call)
{
	uint8_t hash[SHA256_LEN];
	char *hex;

	if (call->source)
		return str_of(call->source_sha256);
	if (call->body.len == 0)
		return SIGV4_EMPTY;
	hex = arena_alloc(arena, 2 * SHA256_LEN + 1);
	digest_sha256(call->body, hash);
	hex_bytes(hash, SHA256_LEN, hex);
	return str_n(hex, 2 * SHA256_LEN);
}

/* Headers with their signature for now, and where they are sent. */
static struct str sign(struct attempt *at, const struct http_header **ret_headers, size_t *ret_count)
{
	struct s3 *s3 = at->s3;
	const struct s3_call *call = at->call;
	struct arena *arena = at->ctx->arena;
	struct sigv4_param params[6];
	struct sigv4_request req = {
		.method = call->method, .params = params, .headers = call->headers, .header_count = call->header_count};
	struct sigv4 signer = {.access_key = str_of(s3->conf.key_id), .service = STR("s3")};
	struct str base, query;
	struct sigv4_key key;

	while (req.param_count < 6 && call->query[req.param_count].name) {
		const struct s3_param *q = &call->query[req.param_count];

		params[req.param_count++] = (struct sigv4_param){str_of(q->name), q->value};
	}
	address(s3, arena, call->key, &base, &req.path);
	if (at->redirect.len) {
		req.host = host_of(at->redirect);
		base = str_n(at->redirect.ptr, (size_t)(req.host.ptr + req.host.len - at->redirect.ptr));
		req.path = str_from(at->redirect, base.len);
		req.path = str_first(req.path, str_find_char(req.path, '?'));
	}
	req.host = host_of(base);
	req.payload = payload_hash(arena, call);
	if (s3->conf.session)
		signer.token = str_of(s3->conf.session);
	pthread_mutex_lock(&s3->lock);
	signer.when = sigv4_time((clock_real_ns() + s3->clock_ns) / NS_PER_S);
	signer.region = arena_str(arena, str_of(s3->region));
	/* good for a day; a corrected region leaves `key.day` empty */
	if (!str_starts(str_of(signer.when.text), str_of(s3->key.day)) || !s3->key.day[0])
		sigv4_key_derive(&s3->key, str_of(s3->conf.secret), signer.when, signer.region, signer.service);
	key = s3->key;
	pthread_mutex_unlock(&s3->lock);
	signer.key = &key;
	sigv4_sign(arena, &signer, &req, ret_headers, ret_count);
	explicit_bzero(&key, sizeof(key));
	query = sigv4_query(arena, params, req.param_count);
	return arena_printf(arena, "%.*s%.*s%s%.*s", STR_ARG(base), STR_ARG(req.path), query.len ? "?" : "",
			    STR_ARG(query));
}

static int try_once(struct attempt *at, struct s3_answer *ret, struct err *err)
{
	const struct s3_call *call = at->call;
	struct http_request req = {.method = call->method, .body = call->body, .source = call->source, .arg = at};
	int r = 0;

	if (call->source)
		r = call->source->rewind(call->source->arg, err);
	if (r)
		return r;
	req.url = sign(at, &req.headers, &req.header_count);
	if (call->push) {
		req.push = attempt_push;
		req.head = attempt_head;
	}
	req.body_max = ANSWER_MAX;
	req.timeout_ms = TRY_MS + (int64_t)(call->expect / (SLOWEST_BPS / 1000));
	*ret = (struct s3_answer){0};
	r = http_perform(at->s3->http, at->ctx, &req, &ret->http, err);
	atomic_fetch_add(&at->s3->requests, ret->http.requests ? ret->http.requests : 1);
	if (r)
		return r;
	if (!atomic_load_explicit(&at->s3->answered, memory_order_relaxed))
		atomic_store(&at->s3->answered, true);
	ret->repeated = ret->http.requests > 1;
	r = s3_check_etag(http_header_of(&ret->http, "etag"), err);
	if (r)
		return r;
	if (ret->http.status >= 300 || (!call->push && strcmp(call->method, "GET") != 0))
		s3_xml_error(at->ctx->arena, ret->http.body, &ret->error);
	return 0;
}

/* Mending. */

static struct str answer_header(const struct s3_answer *a, const char *name)
{
	return http_header_of(&a->http, name);
}

static bool mend_region(struct s3 *s3, const struct s3_answer *a)
{
	struct str region = answer_header(a, "x-amz-bucket-region");
	bool mended;

	if (!region.len)
		region = a->error.region;
	if (a->http.status != 301 && a->http.status != 400)
		return false;
	if (!region.len || region.len >= sizeof(s3->region))
		return false;
	for (size_t i = 0; i < region.len; i++)
		if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789-", region.ptr[i]))
			return false; /* it becomes part of a host name */
	pthread_mutex_lock(&s3->lock);
	mended = !str_is(region, s3->region);
	memcpy(s3->region, region.ptr, region.len);
	s3->region[region.len] = '\0';
	s3->key.day[0] = '\0';
	pthread_mutex_unlock(&s3->lock);
	return mended;
}

static bool mend_clock(struct s3 *s3, const struct s3_answer *a)
{
	int64_t server = s3_time(answer_header(a, "date")), now = clock_real_ns();

	if (!skewed(a))
		return false;
	if (!server)
		server = s3_time(a->error.server_time);
	if (!server)
		return false;
	pthread_mutex_lock(&s3->lock);
	s3->clock_ns = server - now;
	pthread_mutex_unlock(&s3->lock);
	return true;
}

/* A 307 goes to another host for this one call; never from https to http. */
static bool mend_place(struct attempt *at, const struct s3_answer *a)
{
	struct str to = answer_header(a, "location");

	if (a->http.status != 307 || to.len > 8 * KIB ||
	    !(str_starts(to, STR("https://")) ||
	      (str_starts(to, STR("http://")) && str_starts(str_of(at->s3->conf.endpoint), STR("http://")))))
		return false;
	at->redirect = to;
	return true;
}

static bool mend_bucket(struct attempt *at, const struct s3_answer *a)
{
	struct s3 *s3 = at->s3;
	struct s3_call make = {.method = "PUT", .expect = 0};
	struct attempt own = {.s3 = s3, .ctx = at->ctx, .call = &make};
	struct s3_answer made;
	struct err ignored;

	if (!s3->conf.create || !str_is(a->error.code, "NoSuchBucket"))
		return false;
	if (s3->conf.aws && strcmp(s3->conf.region, "us-east-1") != 0)
		make.body = arena_printf(at->ctx->arena,
					 "<CreateBucketConfiguration><LocationConstraint>%s</LocationConstraint>"
					 "</CreateBucketConfiguration>",
					 s3->conf.region);
	return try_once(&own, &made, &ignored) == 0 && (made.http.status < 300 || made.http.status == 409);
}

static bool mended(struct attempt *at, const struct s3_answer *a)
{
	if (at->pushed || at->mended >= 3)
		return false;
	at->mended++;
	return mend_region(at->s3, a) || mend_clock(at->s3, a) || mend_place(at, a) || mend_bucket(at, a);
}

/* Failures that may pass when the request is simply repeated. */
static bool passes(const struct s3_answer *a)
{
	static const char *const codes[] = {"SlowDown",         "InternalError",  "ServiceUnavailable",
					    "OperationAborted", "RequestTimeout", "ConditionalRequestConflict"};
	int status = a->http.status;

	for (size_t i = 0; i < COUNT(codes); i++)
		if (str_is(a->error.code, codes[i]))
			return true;
	return status == 429 || status == 408 || status == 500 || status == 502 || status == 503 || status == 504;
}

/* Waits before the next try: what the server asked for, or jitter; a key that R2 calls too busy needs a second. */
static int wait_for(struct s3 *s3, struct ctx *ctx, const struct s3_answer *a, unsigned n, struct err *err)
{
	int64_t asked = 0;
	struct str after = a ? answer_header(a, "retry-after") : STR("");

	if (after.len && str_to_i64(after, &asked) && asked > 0 && asked <= 60)
		asked *= 1000;
	else
		asked = 0;
	if (a && a->http.status == 429 && s3->conf.r2 && asked < 1000)
		asked = 1000;
	if (asked && ctx->deadline_ns && clock_monotonic_ns() + asked * NS_PER_MS > ctx->deadline_ns)
		return s3_refused(s3, a, err);
	for (int64_t end = clock_monotonic_ns() + asked * NS_PER_MS; asked && clock_monotonic_ns() < end;) {
		struct timespec nap = {0, 20 * NS_PER_MS};
		int r = ctx_check(ctx, err);

		if (r)
			return r;
		nanosleep(&nap, NULL);
	}
	return s3_pause(ctx, n, err);
}

static bool caller_judges(const struct s3_answer *a)
{
	int status = a->http.status;

	if (status >= 200 && status < 300)
		return a->error.code.len == 0;
	if (str_is(a->error.code, "NoSuchBucket"))
		return false;
	return status == 304 || status == 404 || status == 412 || status == 416 || status == 501;
}

/* Why the last try failed stays the reason when the time runs out before the next one. */
static int out_of_time(int r, const struct err *why, struct err *err)
{
	if (r == -ERR_TIMEOUT && why->kind) {
		*err = *why;
		return -(int)why->kind;
	}
	return r;
}

/* Judges a try that gave neither an answer for the caller nor something that could be corrected; 0: try again. */
static int after_failure(struct attempt *at, int r, const struct s3_answer *a, unsigned n, struct err *err)
{
	bool in_vain = !a->http.sent && !atomic_load(&at->s3->answered);
	struct err why;

	if (r == 0) {
		r = s3_refused(at->s3, a, &why);
		if (at->pushed || !passes(a) || n + 1 >= TRIES) {
			*err = why;
			return r;
		}
	} else {
		why = *err;
		if (at->pushed || at->push_failed || n + 1 >= (in_vain ? TRIES_FIRST : TRIES) ||
		    (!err->retryable && err->kind != ERR_TIMEOUT))
			return r;
		a = NULL;
	}
	return out_of_time(wait_for(at->s3, at->ctx, a, n, err), &why, err);
}

int s3_call(struct s3 *s3, struct ctx *ctx, const struct s3_call *call, struct s3_answer *ret, struct err *err)
{
	struct ctx own = *ctx;
	struct attempt at = {.s3 = s3, .ctx = &own, .call = call};
	bool repeated = false;
	int r = ctx_check(ctx, err);

	if (!own.deadline_ns)
		own.deadline_ns = clock_monotonic_ns() +
				  (DEADLINE_MS + (int64_t)(call->expect / (SLOWEST_BPS / 1000))) * NS_PER_MS;
	for (unsigned n = 0; r == 0; n++) {
		struct s3_answer a = {0};

		r = try_once(&at, &a, err);
		if (r == 0 && caller_judges(&a)) {
			*ret = a;
			ret->repeated = repeated || a.repeated;
			return 0;
		}
		if (r == 0 && mended(&at, &a))
			continue;
		repeated = repeated || (r ? a.http.sent : a.http.status >= 500 || a.http.status == 200);
		r = after_failure(&at, r, &a, n, err);
	}
	return r;
}
